package gate

import (
	"fmt"
	"strings"

	"passepartout/internal/proto"
)

// guideGate (560) holds a turn that follows a guide to the tools the guide names.
// It only narrows: what it lets pass is judged by all others as ever. Answering and
// reading a further guide, which can only narrow more, are always possible.
type guideGate struct{}

func (guideGate) Name() string  { return "guide" }
func (guideGate) Priority() int { return 560 }

func (guideGate) Check(a proto.Action, f Facts) Verdict {
	if f.Only == nil || f.effect == proto.Speak || a.Spec().Tool == "read-guide" {
		return Pass()
	}
	for _, one := range f.Only {
		if within(one, a) {
			return Pass()
		}
	}
	may := "no tools"
	if len(f.Only) > 0 {
		may = "only " + strings.Join(f.Only, ", ")
	}
	return Verdict{Code: "guide.outside", Reason: fmt.Sprintf("the guide that is followed in this turn uses %s", may)}
}

// within reports whether an action is what one entry names: a tool, or a tool and
// in parentheses what its command must be or, before :*, begin with.
func within(one string, a proto.Action) bool {
	tool, rest, narrowed := strings.Cut(one, "(")
	name := a.Spec().Tool
	if name == "" {
		name = a.Name()
	}
	if tool != name {
		return false
	}
	if !narrowed {
		return true
	}
	cmd := strings.TrimSpace(a.Args().Text("CMD"))
	if cmd == "" || strings.ContainsAny(cmd, ";&|<>$`()\n\r\\") { // more than one simple command
		return false
	}
	pattern := strings.TrimSuffix(rest, ")")
	start, open := strings.CutSuffix(pattern, ":*")
	return cmd == start || open && strings.HasPrefix(cmd, start+" ")
}

// Narrow is what remains of the tools a turn may use when it follows a further
// guide: what both name. Nil means any tool.
func Narrow(was, only []string) []string {
	if only == nil {
		return was
	}
	if was == nil {
		return only
	}
	out := []string{}
	for _, one := range only {
		tool, _, narrowed := strings.Cut(one, "(")
		for _, w := range was {
			base, _, already := strings.Cut(w, "(")
			switch {
			case base != tool:
			case !already, w == one:
				out = append(out, one)
			case !narrowed:
				out = append(out, w)
			}
		}
	}
	return out
}
