package proto

import (
	"fmt"

	"passepartout/internal/sexp"
)

// MaxWhy is the longest explanation an action may carry, in bytes.
const MaxWhy = 4096

// An Action is a proposal to do one thing. It is immutable and opaque: the value
// the gates judged is the value an actuator gets, and nothing in it can claim
// that somebody agreed. The zero Action names nothing and is refused everywhere.
type Action struct {
	cause    ID
	session  string
	origin   Origin
	proposer string
	verb     Verb
	args     sexp.Plist
	why      string
}

// A Cause is the kernel's part of an action: which signal it answers, for whom,
// and which engine proposed it.
type Cause struct {
	Signal   ID
	Session  string
	Origin   Origin
	Proposer string // "reflex", "openai/gpt-5", "client", "skill:gardener"
}

// Cause returns what the action answers.
func (a Action) Cause() Cause {
	return Cause{Signal: a.cause, Session: a.session, Origin: a.origin, Proposer: a.proposer}
}

// Target is the actuator the action names.
func (a Action) Target() string { return a.verb.Target }

// Verb is what the actuator is to do.
func (a Action) Verb() string { return a.verb.Name }

// Name is target and verb in the form people read: "shell.run".
func (a Action) Name() string { return a.verb.String() }

// Spec is the verb as the vocabulary declares it.
func (a Action) Spec() Verb { return a.verb }

// Args are the checked arguments, sorted by key.
func (a Action) Args() sexp.Plist { return a.args }

// Why is the explanation the proposer gave.
func (a Action) Why() string { return a.why }

// Valid reports whether the action names a verb, which every decoded one does.
func (a Action) Valid() bool { return a.verb.Name != "" }

// Replace returns the action with other arguments, checked like the first ones.
// It is how a gate offers a safer form; the chain judges it from the top.
func (a Action) Replace(args sexp.Plist) (Action, error) {
	checked, err := a.verb.check(args)
	if err != nil {
		return Action{}, err
	}
	a.args = checked
	return a, nil
}

// Plist is the action as it is recorded and shown. It is not a wire form: it
// names the kernel's fields too.
func (a Action) Plist() sexp.Plist {
	return sexp.P(
		sexp.Keyword("TARGET"), sexp.Keyword(fold(a.verb.Target)),
		sexp.Keyword("VERB"), sexp.Keyword(fold(a.verb.Name)),
		sexp.Keyword("ARGS"), a.args,
		sexp.Keyword("WHY"), a.why,
		sexp.Keyword("CAUSE"), string(a.cause),
		sexp.Keyword("SESSION"), a.session,
		sexp.Keyword("ORIGIN"), a.origin.Plist(),
		sexp.Keyword("PROPOSER"), a.proposer,
	)
}

// Digest identifies the exact action: what, with which arguments, for whom, in
// answer to what. Approvals are bound to it.
func (a Action) Digest() sexp.Digest { return sexp.Sum(a.Plist().List()) }

// Recorded rebuilds an action from [Action.Plist], for replay and for turns that
// waited. It checks the arguments against today's vocabulary.
func (v *Vocabulary) Recorded(p sexp.Plist) (Action, error) {
	target, name := unfold(string(p.Word("TARGET"))), unfold(string(p.Word("VERB")))
	verb, ok := v.Verb(target, name)
	if !ok {
		return Action{}, fmt.Errorf("recorded action names %s.%s: no such verb now", target, name)
	}
	args, err := verb.check(p.Sub("ARGS"))
	if err != nil {
		return Action{}, fmt.Errorf("recorded action %s: %w", verb, err)
	}
	return Action{
		cause: ID(p.Text("CAUSE")), session: p.Text("SESSION"), origin: OriginOf(p.Sub("ORIGIN")),
		proposer: p.Text("PROPOSER"), verb: verb, args: args, why: p.Text("WHY"),
	}, nil
}
