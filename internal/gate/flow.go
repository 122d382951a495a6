package gate

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"passepartout/internal/host"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
	"passepartout/internal/shell"
)

// judgeFlow (140) follows the session's labels. Text from outside may have
// written the proposal, so a sink then needs a person, unless every argument is in
// the requester's own words. Text the user marked private does not leave for a
// stranger.
func judgeFlow(v *view) Verdict {
	taint := v.facts.Signal.Taint
	if taint.Private {
		if out := v.leak(); out.Decision != Allow {
			return out
		}
	}
	if taint.Untrusted && v.sink() && !v.said() {
		return Verdict{Decision: Ask, Code: "flow.untrusted", Reason: fmt.Sprintf("text from outside took part in this session, and %s was not asked for in these words", v.action.Name())}
	}
	return Pass()
}

// sink reports whether the action does something that text from outside could be
// after. A command that only reads, shut in a sandbox, is none.
func (v *view) sink() bool {
	switch v.facts.Effect() {
	case proto.SendMessage, proto.Network, proto.Rewrite, proto.EffectUnknown:
		return true
	case proto.Execute:
		return len(v.commands()) == 0 || slices.ContainsFunc(v.commands(), func(r shell.Report) bool {
			return r.Level != shell.Harmless || r.Effects&^shell.Reads != 0
		})
	case proto.WriteLocal, proto.WriteMemory:
		return slices.ContainsFunc(v.paths, func(p pathArg) bool {
			return p.means == proto.WritePath && inside(p.abs, v.policy.Steering)
		})
	case proto.Speak, proto.ReadLocal:
	}
	return false
}

// leak judges a private session's action by who would get to see something.
func (v *view) leak() Verdict {
	known := func(ok bool, whom string) Verdict {
		if ok {
			return Verdict{Decision: Ask, Code: "flow.private", Reason: "private text took part in this session, and this would tell " + whom}
		}
		return Verdict{Code: "flow.private", Reason: "private text took part in this session, and this would tell " + whom}
	}
	switch v.facts.Effect() {
	case proto.Speak:
		if v.outbound() {
			return Verdict{Code: "flow.private", Reason: "private text took part in this session, and the answer would leave this machine"}
		}
	case proto.SendMessage:
		to := v.texts(proto.Recipient)
		ok := len(to) > 0 && !slices.ContainsFunc(to, func(a arg) bool { return !slices.Contains(v.policy.Recipients, a.text) })
		return known(ok, "somebody else")
	case proto.Network:
		urls := v.texts(proto.URL)
		ok := len(urls) > 0 && !slices.ContainsFunc(urls, func(a arg) bool {
			h, err := host.Parse(a.text)
			return err != nil || !v.hosts.Allows(h)
		})
		return known(ok, "another machine")
	case proto.Execute:
		if slices.ContainsFunc(v.commands(), func(r shell.Report) bool { return r.Effects.Has(shell.Network) }) {
			return known(false, "another machine")
		}
	case proto.EffectUnknown, proto.ReadLocal, proto.WriteMemory, proto.WriteLocal, proto.Rewrite:
	}
	return Pass()
}

// said reports whether every argument stands in the requester's own words. An
// action without arguments says nothing of itself, so nobody can have said it.
func (v *view) said() bool {
	if v.action.Args().Len() == 0 || len(v.facts.Said) == 0 {
		return false
	}
	var spoken strings.Builder
	for _, s := range v.facts.Said {
		spoken.WriteString(" " + strings.Join(words(s), " ") + " \x00")
	}
	all := spoken.String()
	for _, e := range v.action.Args().Pairs() {
		if p, _ := v.action.Spec().Param(e.Key); p.Means == proto.Command {
			if !v.saidCommand(e.Value) {
				return false
			}
		} else if !saidValue(all, e.Value) {
			return false
		}
	}
	return true
}

// saidCommand reports whether the requester spelt out this command. In one every
// sign counts, so no punctuation is taken away but what stands around the whole.
func (v *view) saidCommand(val sexp.Value) bool {
	var text string
	switch val := val.(type) {
	case sexp.String:
		text = string(val)
	case sexp.List:
		text = strings.Join(textItems(val), " ")
	default:
	}
	want := strings.Join(strings.Fields(text), " ")
	return want != "" && slices.ContainsFunc(v.facts.Said, func(s string) bool {
		s = strings.Join(strings.Fields(s), " ")
		for from := 0; ; {
			i := strings.Index(s[from:], want)
			if i < 0 {
				return false
			}
			from += i
			before, _ := utf8.DecodeLastRuneInString(s[:from])
			after, _ := utf8.DecodeRuneInString(s[from+len(want):])
			if aside(before) && aside(after) {
				return true
			}
			from += len(want)
		}
	})
}

// aside reports a character that stands between a command and the words around it,
// or none at all.
func aside(r rune) bool {
	return r == utf8.RuneError || r == ' ' || strings.ContainsRune(punctuation, r)
}

// punctuation is what stands around words without being part of them.
const punctuation = `.,;:!?"'()[]<>{}` + "`“”‘’„«»"

func saidValue(all string, v sexp.Value) bool {
	if l, ok := v.(sexp.List); ok && l.Len() > 0 && l.Tail() == nil {
		for i, item := range l.Items() {
			if _, key := item.(sexp.Keyword); key && i%2 == 0 && l.Len()%2 == 0 {
				continue // a key of a nested argument; its value is looked at in turn
			}
			if !saidValue(all, item) {
				return false
			}
		}
		return true
	}
	var text string
	switch v := v.(type) {
	case sexp.String:
		text = string(v)
	case sexp.Int:
		text = v.String()
	case sexp.Keyword:
		text = string(v)
	default:
		return false
	}
	w := words(text)
	return len(w) > 0 && strings.Contains(all, " "+strings.Join(w, " ")+" ")
}

// words splits a text into lower-case words without the punctuation around them.
func words(s string) []string {
	fields := strings.Fields(strings.ToLower(s))
	out := fields[:0]
	for _, f := range fields {
		if f = strings.Trim(f, punctuation); f != "" {
			out = append(out, f)
		}
	}
	return out
}
