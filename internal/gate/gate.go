// Package gate decides whether a proposed action may be carried out.
//
// The central types:
//
//   - [Chain] is an immutable, totally ordered set of gates. Its Decide runs all of
//     them and takes the strictest answer, so adding a gate can only tighten it.
//   - [Gate] judges one action by the [Facts]; its [Verdict] says deny, ask or
//     allow, with a stable code and one sentence for person and model alike.
//   - [Ruling] is the chain's answer with the whole trace. An allowing ruling
//     gives one [Permit], which works once; actuators accept nothing else.
//   - [Ledger] holds asking rulings until a person answers.
//   - [Policy] is everything a person can configure about the standard gates;
//     [Standard] builds their chain. A [Rule] is one decision a person wrote down.
//   - [Codes] lists every objection the standard gates can make.
//
// The standard gates are files named after them, the eleven checks of the
// dispatcher among them; standardGates in policy.go is their manifest. They look at
// an action through one shared view (view.go), which resolves its paths and reads
// its commands once. Credentials are gone by then (withhold.go).
//
// A ruling is a pure function of the action, the facts and the policy: no clock,
// no disk, no memory of earlier rulings. What a gate asks of the outside goes
// through [World] and is recorded with the ruling, so [Replay] can repeat it.
//
// The rule a newcomer will break: never return Allow from an error path. A gate
// that does not know returns Deny or Ask; one that panics has denied.
package gate

import (
	"cmp"
	"fmt"
	"slices"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// A Decision is ordered by strictness; the zero Decision refuses.
type Decision uint8

// The decisions.
const (
	Deny  Decision = iota // refuse, whoever asks
	Ask                   // a person must approve this exact action
	Allow                 // no objection
)

func (d Decision) String() string {
	switch d {
	case Ask:
		return "ask"
	case Allow:
		return "allow"
	case Deny:
	}
	return "deny"
}

// ParseDecision is the inverse of [Decision.String]; ok is false for other words.
func ParseDecision(s string) (d Decision, ok bool) {
	switch s {
	case "deny":
		return Deny, true
	case "ask":
		return Ask, true
	case "allow":
		return Allow, true
	}
	return Deny, false
}

// A Verdict is one gate's answer, with what a person and a model need to act on it.
type Verdict struct {
	Gate     string
	Decision Decision
	Code     string        // stable, e.g. "confine.outside-root"
	Also     string        // further codes of the same decision, separated by spaces; whoever lifts one must lift all
	Reason   string        // one sentence, for the person and for the model's next try
	Bound    string        // digests of what else was judged, such as a script's bytes; an approval holds only for these
	Rule     string        // where the rule is written, file:line, when there is one
	Replace  *proto.Action // a safer action; the chain judges it from the top
	Round    int           // which judgement of a replaced action this was; set by the chain
}

// Pass is the verdict of a gate without objection.
func Pass() Verdict { return Verdict{Decision: Allow, Code: "pass"} }

// A Gate must be deterministic, must not block and must not keep its arguments.
type Gate interface {
	Name() string
	Priority() int // higher runs, and is reported, first
	Check(proto.Action, Facts) Verdict
}

// A Catalog says what actions do. [proto.Vocabulary] is one.
type Catalog interface {
	Effect(proto.Action) proto.Effect
}

// MaxRounds is how often an action may be replaced and judged anew.
const MaxRounds = 4

// A Chain is an immutable, totally ordered set of gates. It is safe for
// concurrent use when its gates are, which those of this package are.
type Chain struct {
	catalog Catalog
	policy  sexp.Digest
	gates   []Gate
	rules   *ruleset // what a person agreed to beforehand; nil for none
}

// New returns the chain of those gates. Two gates of one name are an error, and
// so is a missing name out of required: a chain that lost a gate must not start.
func New(catalog Catalog, policy sexp.Digest, required []string, gates ...Gate) (*Chain, error) {
	c := &Chain{catalog: catalog, policy: policy, gates: slices.Clone(gates)}
	slices.SortStableFunc(c.gates, func(a, b Gate) int {
		return cmp.Or(-cmp.Compare(a.Priority(), b.Priority()), cmp.Compare(a.Name(), b.Name()))
	})
	seen := map[string]bool{}
	for _, g := range c.gates {
		if seen[g.Name()] {
			return nil, fmt.Errorf("gate %q given twice", g.Name())
		}
		seen[g.Name()] = true
	}
	for _, name := range required {
		if !seen[name] {
			return nil, fmt.Errorf("mandatory gate %q is missing", name)
		}
	}
	if len(c.gates) == 0 || catalog == nil {
		return nil, fmt.Errorf("a chain of %d gates: want at least one, and a catalog", len(c.gates))
	}
	return c, nil
}

// Gates lists the gates' names in the order they run.
func (c *Chain) Gates() []string {
	names := make([]string, len(c.gates))
	for i, g := range c.gates {
		names[i] = g.Name()
	}
	return names
}

// Policy is the digest of the policy the chain was built from.
func (c *Chain) Policy() sexp.Digest { return c.policy }

// Decide judges an action. Every gate runs, so the record is complete and the
// proposer hears all objections at once. When gates offer a replacement, the first
// in order is judged from the top in place of the action, at most MaxRounds times.
// A nil chain denies.
func (c *Chain) Decide(a proto.Action, f Facts) Ruling {
	if c == nil {
		return c.decide(a, f)
	}
	f.withheld = nil
	a, f.withheld = withhold(a, f.World, c.catalog)
	r := c.decide(a, record(f))
	r.unused = newUse()
	return r
}

func (c *Chain) decide(a proto.Action, f Facts) Ruling {
	r := Ruling{action: a, facts: f}
	if c == nil || len(c.gates) == 0 {
		r.verdicts = []Verdict{{Gate: "chain", Code: "chain.empty", Reason: "no gate is installed, so nothing is permitted"}}
		return r
	}
	r.policy = c.policy
	r.verdicts = make([]Verdict, 0, len(c.gates)+1)
	for round := range MaxRounds {
		next := c.round(&r, round)
		if next == nil {
			return r
		}
		if next.Cause() != a.Cause() || next.Name() != a.Name() {
			r.object(Verdict{Gate: "chain", Code: "chain.swapped", Reason: "a gate replaced the action by another one", Round: round})
			return r
		}
		var held []withheld
		r.action, held = withhold(*next, f.World, c.catalog)
		r.facts.withheld = append(slices.Clip(r.facts.withheld), held...)
	}
	r.decision = Deny
	r.object(Verdict{Gate: "chain", Code: "chain.restless", Reason: fmt.Sprintf("gates still change the action after %d rounds", MaxRounds), Round: MaxRounds})
	return r
}

// round runs all gates once on r's action and returns a replacement, if any.
func (c *Chain) round(r *Ruling, round int) (next *proto.Action) {
	f := r.facts
	f.effect = c.catalog.Effect(r.action)
	f.scratch = new(scratch)
	r.decision = Allow
	r.waivers = c.rules.waivers(r.action, f)
	if f.effect == proto.EffectUnknown {
		r.object(Verdict{Gate: "chain", Code: "chain.unknown-effect", Reason: "nobody declared what this action does", Round: round})
	}
	for _, g := range c.gates {
		v := check(g, r.action, f)
		v.Round = round
		r.object(v)
		if v.Replace != nil && next == nil && v.Replace.Digest() != r.action.Digest() {
			next = v.Replace
		}
	}
	r.effects = append(r.effects[:0], f.effect.String())
	if f.scratch.view != nil {
		r.effects, r.view = f.scratch.view.effects(r.effects), f.scratch.view
	}
	return next
}

func check(g Gate, a proto.Action, f Facts) (v Verdict) {
	defer func() {
		if p := recover(); p != nil {
			v = Verdict{Code: "gate.panic", Reason: fmt.Sprintf("the gate failed: %v", p)}
		}
		if v.Decision > Allow {
			v = Verdict{Code: "gate.invalid", Reason: fmt.Sprintf("the gate answered %d, which is no decision", v.Decision)}
		}
		if v.Code == "" {
			v.Decision, v.Code = Deny, "gate.silent"
			v.Reason = cmp.Or(v.Reason, "the gate gave no code for its answer")
		}
		v.Gate = g.Name()
	}()
	return g.Check(a, f)
}
