package gate

import (
	"fmt"

	"passepartout/internal/place"
	"passepartout/internal/proto"
)

// judgeConfine (130) keeps paths inside the roots. It judges the name an action
// would really reach, links followed, whether or not the file exists yet; the
// actuator opens it beneath the same root, so that a link made in between does
// not help.
func judgeConfine(v *view) Verdict {
	verdict := Pass()
	for _, p := range v.paths {
		one := v.confine(p)
		if one.Decision < verdict.Decision {
			verdict = one
		}
	}
	return verdict
}

func (v *view) confine(p pathArg) Verdict {
	write := p.means == proto.WritePath
	deny := func(code, why string) Verdict {
		return Verdict{Code: code, Reason: fmt.Sprintf("%s %s", quote(p.abs), why)}
	}
	if what, ok := concealed(p.text, false); ok {
		return Verdict{Code: "confine.unclear", Reason: fmt.Sprintf("%s holds %s", quote(p.abs), what)}
	}
	switch p.kind {
	case place.Unknown:
		return deny("confine.unclear", "does not name one file to everybody")
	case place.Device:
		return deny("confine.device", "is hardware, a control socket or a network path")
	case place.Sink:
		return Pass()
	case place.Startup, place.System, place.Top:
		if write {
			return deny("confine."+p.kind.String(), protectedWhy[p.kind])
		}
	case place.Ordinary, place.Agent, place.Process, place.Secret, place.Own:
	}
	if v := v.links(p, write); v.Decision != Allow {
		return v
	}
	if write && !v.layout.Writable(p.abs) {
		return Verdict{Decision: Ask, Code: "confine.outside", Reason: fmt.Sprintf("%s lies outside the directories that may be written", quote(p.abs))}
	}
	if !write && !v.layout.Readable(p.abs) {
		return Verdict{Decision: Ask, Code: "confine.outside", Reason: fmt.Sprintf("%s lies outside the directories that may be read", quote(p.abs))}
	}
	return Pass()
}

var protectedWhy = map[place.Kind]string{
	place.Startup: "is run or obeyed later without anybody asking",
	place.System:  "belongs to the operating system",
	place.Top:     "is a whole home, root or top-level directory",
}

// links looks at a file's other names: a hard link makes a protected file out of
// an ordinary one without any link to follow.
func (v *view) links(p pathArg, write bool) Verdict {
	for _, other := range v.facts.World.Know("links", p.abs) {
		if other == "" {
			if write {
				return Verdict{Decision: Ask, Code: "confine.hard-link", Reason: fmt.Sprintf("%s is one of several names of a file", quote(p.abs))}
			}
			continue
		}
		switch v.layout.Kind(other) {
		case place.Unknown, place.Own, place.Secret, place.Process, place.Device:
			return Verdict{Code: "confine.linked", Reason: fmt.Sprintf("%s is another name of %s", quote(p.abs), quote(other))}
		case place.Startup, place.System, place.Agent, place.Top:
			if write {
				return Verdict{Code: "confine.linked", Reason: fmt.Sprintf("%s is another name of %s", quote(p.abs), quote(other))}
			}
		case place.Ordinary, place.Sink:
		}
	}
	return Pass()
}
