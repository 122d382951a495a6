package skill

import (
	"errors"
	"fmt"
	"strings"

	"passepartout/internal/gate"
	"passepartout/internal/lisp"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// A skillGate is a skill's deterministic function as a gate. Of the capabilities of
// its skill it has those that read what the decision records, see gateCaps, so its
// answer depends on the action and the facts alone.
type skillGate struct{ s *Skill }

// Name cannot be that of a compiled-in gate: none of those has this prefix.
func (g skillGate) Name() string { return "skill/" + g.s.Name }

func (g skillGate) Priority() int { return g.s.Priority }

// Check asks the skill. Whatever goes wrong refuses: an error, a spent budget, a
// trigger that fails, an answer that is none.
func (g skillGate) Check(a proto.Action, f gate.Facts) gate.Verdict {
	r := g.s.begin(gateBudget, g.s.caps&gateCaps)
	r.th.Attach(&judging{facts: f})
	v, err := g.judge(r.th, a, f.Signal)
	r.end(err, false)
	if err != nil {
		v = gate.Verdict{Code: "skill.failed", Reason: fmt.Sprintf("the skill %s could not judge this: %v%s", g.s.Name, err, g.s.ungranted())}
		if lisp.Exhausted(err) {
			v.Code = "skill.exhausted"
		}
	}
	v.Reason = short(v.Reason, maxReason)
	if v.Decision != gate.Allow {
		v.Rule = fmt.Sprintf("%s@%.12s", g.s.File, g.s.Digest.String())
	}
	return v
}

func (g skillGate) judge(th *lisp.Thread, a proto.Action, sig proto.Signal) (gate.Verdict, error) {
	given := proposal(a)
	both, err := th.FromData(sexp.NewList(append([]sexp.Value{sexp.Keyword("CANDIDATE"), given}, signalData(sig).Items()...)...))
	if err != nil {
		return gate.Verdict{}, err
	}
	ctx, shown := both, lisp.Nth(both, 1)
	on, err := g.s.triggered(th, ctx)
	if err != nil {
		return gate.Verdict{}, fmt.Errorf("its trigger: %w", err)
	}
	if !on {
		return gate.Pass(), nil
	}
	answer, err := th.Apply(g.s.gate, shown, ctx)
	if err != nil {
		return gate.Verdict{}, err
	}
	same, err := th.IsData(answer, given)
	if err != nil {
		return gate.Verdict{}, err
	}
	if same {
		return gate.Pass(), nil
	}
	data, err := th.ToData(answer)
	if err != nil {
		return gate.Verdict{}, err
	}
	return g.read(a, given, data, th.Output())
}

// proposal is an action in the form skills know: the arguments stand in the
// payload, each under its own name, and together under :ARGS.
func proposal(a proto.Action) sexp.List {
	args := a.Args()
	payload := make([]sexp.Value, 0, 8+2*args.Len())
	payload = append(payload, sexp.Keyword("ACTION"), sexp.Keyword(strings.ToUpper(a.Verb())))
	if tool := a.Spec().Tool; tool != "" {
		payload = append(payload, sexp.Keyword("TOOL"), sexp.String(tool))
	}
	payload = append(payload, sexp.Keyword("EXPLANATION"), sexp.String(a.Why()))
	for _, p := range args.Pairs() {
		if !ownKey(p.Key) {
			payload = append(payload, p.Key, p.Value)
		}
	}
	payload = append(payload, sexp.Keyword("ARGS"), args.List())
	return sexp.NewList(sexp.Keyword("TYPE"), sexp.Keyword("REQUEST"), sexp.Keyword("TARGET"), sexp.Keyword(strings.ToUpper(a.Target())),
		sexp.Keyword("PAYLOAD"), sexp.NewList(payload...))
}

// ownKey names the keys of a payload that are no arguments.
func ownKey(k sexp.Keyword) bool {
	return k == "ACTION" || k == "TOOL" || k == "EXPLANATION" || k == "ARGS"
}

// read turns a skill's answer into a verdict: :LOG and :EVENT refuse, an :EVENT that
// wants approval asks, the action with other arguments replaces it. A skill that
// gives no reason may have logged one.
func (g skillGate) read(a proto.Action, given sexp.List, data sexp.Value, log string) (gate.Verdict, error) {
	list, ok := data.(sexp.List)
	if !ok || list.Len() == 0 {
		return nonsense(data)
	}
	p, err := sexp.AsPlist(list)
	if err != nil {
		return nonsense(data)
	}
	switch p.Word("TYPE") {
	case "LOG":
		return gate.Verdict{Code: "skill.refused", Reason: g.reason(p, log, "objects")}, nil
	case "EVENT":
		if approval(p) || approval(p.Sub("PAYLOAD")) {
			return gate.Verdict{Decision: gate.Ask, Code: "skill.asks", Reason: g.reason(p, log, "wants a person to approve this")}, nil
		}
		return gate.Verdict{Code: "skill.refused", Reason: g.reason(p, log, "objects")}, nil
	case "REQUEST":
		return g.replace(a, given, p)
	}
	return nonsense(data)
}

func nonsense(v sexp.Value) (gate.Verdict, error) {
	return gate.Verdict{}, fmt.Errorf("want the action, a :LOG or an :EVENT from its gate, found %s", short(sexp.Print(v), 80))
}

// short is the beginning of a text, in bytes.
func short(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// maxReason is how much of a skill's words is recorded with a ruling.
const maxReason = 2000

// approval reports an answer that leaves the action to a person, in any of the ways
// skills have said so.
func approval(p sexp.Plist) bool {
	for _, k := range []sexp.Keyword{"LEVEL", "SENSOR", "REASON", "STATUS"} {
		switch p.Word(k) {
		case "APPROVAL-REQUIRED", "ASK-PERMISSION", "SUSPENDED":
			return true
		}
	}
	return false
}

// reason is what the skill says about its verdict: in the answer, or else in the
// last line of its log.
func (g skillGate) reason(p sexp.Plist, log, otherwise string) string {
	for _, q := range []sexp.Plist{p.Sub("PAYLOAD"), p} {
		for _, k := range []sexp.Keyword{"TEXT", "MESSAGE", "REASON"} {
			if t := strings.TrimSpace(q.Text(k)); t != "" {
				return t
			}
		}
	}
	log = strings.TrimSpace(log)
	if line := strings.TrimSpace(log[strings.LastIndexByte(log, '\n')+1:]); line != "" {
		return line
	}
	return "the skill " + g.s.Name + " " + otherwise
}

// replace offers the action with the arguments the skill changed. Nothing but
// arguments may differ: another target or verb is another action.
func (g skillGate) replace(a proto.Action, shown sexp.List, p sexp.Plist) (gate.Verdict, error) {
	given, err := sexp.AsPlist(shown)
	if err != nil {
		return gate.Verdict{}, err
	}
	was, is := given.Sub("PAYLOAD"), p.Sub("PAYLOAD")
	if p.Word("TARGET") != given.Word("TARGET") || is.Word("ACTION") != was.Word("ACTION") || is.Text("TOOL") != was.Text("TOOL") {
		return gate.Verdict{}, errors.New("its gate answered with another action")
	}
	args := is.Sub("ARGS")
	for _, arg := range a.Args().Pairs() {
		if now, ok := is.Get(arg.Key); ok && !sexp.Equal(now, arg.Value) && !ownKey(arg.Key) {
			args = args.With(arg.Key, now)
		}
	}
	next, err := a.Replace(args)
	if err != nil {
		return gate.Verdict{}, fmt.Errorf("what its gate made of the action: %w", err)
	}
	v := gate.Pass()
	if next.Digest() != a.Digest() {
		v.Code, v.Reason, v.Replace = "skill.replaced", "the skill "+g.s.Name+" changed the arguments", &next
	}
	return v, nil
}
