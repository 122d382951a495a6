// Package act carries out what the gates permitted, and nothing else.
//
// The central types:
//
//   - [Actuator] redeems a [gate.Permit] for the verbs of one target. A permit is
//     all it accepts, so an ungated call does not compile.
//   - [Table] is the closed set of actuators. It declares the vocabulary from
//     which actions are decoded and finds the actuator of a permit.
//   - [Tool] is data: a verb of the target "tool" with the function behind it.
//     The function is reachable only through the tool actuator.
//   - [Outcome] is what happened, in the form people and models read.
//   - [Turn] travels in the context: which turn and ruling a step belongs to, and
//     who hears a command's output while it runs.
//   - [History] is what the agent changed, files and memex in one order, and takes
//     it back.
//
// Files are reached through a spot (spot.go): the path the gates judged, opened one
// name at a time without following links. Whatever writes does so inside
// History.keep, so that it can be undone.
//
// The rule a newcomer will break: use the action that [gate.Permit.Redeem]
// returns and the path that [gate.Permit.Path] names, never what was kept or
// resolved besides. A path that is resolved again may lead elsewhere by now.
package act

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"passepartout/internal/gate"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// An Outcome is what carrying out an action gave.
type Outcome struct {
	OK        bool
	Text      string      // for people and models, already capped
	Taint     proto.Taint // labels of what was read
	Truncated bool        // Text is not all there was
	Quiet     bool        // nobody needs to reason about it: a delivered message
	Changed   []string    // files written, for the person
	Detail    sexp.Plist  // how it went, for the record: exit code, time, sandbox
	Only      []string    // tools the rest of the turn may use, because of what it has read; nil: any
}

// Plist is the outcome in the seeds' form: (:STATUS :SUCCESS :CONTENT …) or
// (:STATUS :ERROR :MESSAGE …).
func (o Outcome) Plist() sexp.Plist {
	p := sexp.P(sexp.Keyword("STATUS"), sexp.Keyword("SUCCESS"), sexp.Keyword("CONTENT"), o.Text)
	if !o.OK {
		p = sexp.P(sexp.Keyword("STATUS"), sexp.Keyword("ERROR"), sexp.Keyword("MESSAGE"), o.Text)
	}
	if o.Truncated {
		p = p.With("TRUNCATED", sexp.True)
	}
	if len(o.Changed) > 0 {
		p = p.With("CHANGED", sexp.Strings(o.Changed))
	}
	if o.Detail.Len() > 0 {
		p = p.With("DETAIL", o.Detail.List())
	}
	return p
}

// Failed is the outcome of an action that was permitted and did not work.
func Failed(format string, args ...any) Outcome {
	return Outcome{Text: fmt.Sprintf(format, args...)}
}

// An Actuator carries out the verbs of one target.
type Actuator interface {
	Target() string
	Verbs() []proto.Verb
	Act(ctx context.Context, p gate.Permit) (Outcome, error)
}

// A Table is an immutable set of actuators.
type Table struct {
	actuators  map[string]Actuator
	vocabulary *proto.Vocabulary
}

// NewTable checks the actuators: distinct targets, and verbs that declare what
// they do.
func NewTable(as ...Actuator) (*Table, error) {
	t := &Table{actuators: map[string]Actuator{}}
	var verbs []proto.Verb
	for _, a := range as {
		if _, dup := t.actuators[a.Target()]; dup {
			return nil, fmt.Errorf("actuator %q given twice", a.Target())
		}
		t.actuators[a.Target()] = a
		for _, v := range a.Verbs() {
			if v.Target != a.Target() {
				return nil, fmt.Errorf("actuator %q declares the verb %s of another target", a.Target(), v)
			}
			verbs = append(verbs, v)
		}
	}
	var err error
	t.vocabulary, err = proto.NewVocabulary(verbs...)
	return t, err
}

// Vocabulary is everything that can be proposed.
func (t *Table) Vocabulary() *proto.Vocabulary { return t.vocabulary }

// Resolve is the target of a reply: the one named, else the channel the signal
// came over, else fallback.
func (t *Table) Resolve(named, source, fallback string) string {
	for _, name := range []string{named, source} {
		if _, ok := t.actuators[name]; ok {
			return name
		}
	}
	return fallback
}

// ErrNoActuator means the permit is for a target nothing here serves.
var ErrNoActuator = errors.New("no actuator for this target")

// Do carries out a permit. An error means the action was not attempted; an
// attempt that failed is an [Outcome] that is not OK.
func (t *Table) Do(ctx context.Context, p gate.Permit) (Outcome, error) {
	a, ok := t.actuators[p.Action().Target()]
	if !ok {
		return Outcome{}, fmt.Errorf("%w: %q", ErrNoActuator, p.Action().Target())
	}
	return a.Act(ctx, p)
}

// Tools lists the verbs that have a tool name, sorted by it.
func (t *Table) Tools() []proto.Verb {
	tools := slices.DeleteFunc(t.vocabulary.Verbs(), func(v proto.Verb) bool { return v.Tool == "" })
	slices.SortFunc(tools, func(a, b proto.Verb) int { return cmp.Compare(a.Tool, b.Tool) })
	return tools
}
