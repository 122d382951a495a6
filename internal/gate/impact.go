package gate

import (
	"fmt"
	"slices"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// judgeImpact is check 11 of the dispatcher: what reaches beyond the machine, or
// changes the agent, needs a person. It goes by effect; where a verb declares a
// command, a URL or a path, the check for that has looked and this one trusts it.
func judgeImpact(v *view) Verdict {
	ask := func(code, why string) Verdict { return Verdict{Decision: Ask, Code: code, Reason: why} }
	switch v.facts.Effect() {
	case proto.Rewrite:
		return ask("impact.rewrite", fmt.Sprintf("%s changes what the agent is or may do", v.action.Name()))
	case proto.SendMessage:
		return v.recipients()
	case proto.Execute:
		if !v.declares(proto.Command) && !v.declares(proto.Code) {
			return ask("impact.execute", fmt.Sprintf("what %s runs cannot be judged beforehand", v.action.Name()))
		}
		if name, ok := v.undeclared(); ok {
			return ask("impact.execute", fmt.Sprintf("argument %s may change what %s runs", name, v.action.Name()))
		}
	case proto.Network:
		if !v.declares(proto.URL) {
			return ask("impact.network", fmt.Sprintf("where %s connects to cannot be judged beforehand", v.action.Name()))
		}
	case proto.WriteLocal:
		if !v.declares(proto.WritePath) {
			return ask("impact.write", fmt.Sprintf("what %s writes cannot be judged beforehand", v.action.Name()))
		}
	case proto.EffectUnknown, proto.Speak, proto.ReadLocal, proto.WriteMemory:
	}
	return Pass()
}

// declares reports whether the action has an argument of that meaning.
func (v *view) declares(m proto.Meaning) bool {
	return slices.ContainsFunc(v.args, func(a arg) bool { return a.means == m })
}

// undeclared returns an argument whose form nobody declared, if there is one.
func (v *view) undeclared() (sexp.Keyword, bool) {
	for _, p := range v.action.Spec().Params {
		if val, ok := v.action.Args().Get(p.Name); ok && p.Type == proto.Data && !sexp.IsNil(val) {
			return p.Name, true
		}
	}
	return "", false
}

// recipients asks before somebody new is written to.
func (v *view) recipients() Verdict {
	to := v.texts(proto.Recipient)
	for _, a := range to {
		if !slices.Contains(v.policy.Recipients, a.text) {
			return Verdict{Decision: Ask, Code: "impact.recipient", Reason: fmt.Sprintf("%s has not been written to before", quote(a.text))}
		}
	}
	if len(to) == 0 {
		return Verdict{Decision: Ask, Code: "impact.message", Reason: fmt.Sprintf("%s speaks to somebody and does not say to whom", v.action.Name())}
	}
	return Pass()
}
