package gate

import (
	"errors"
	"fmt"
	"slices"

	"passepartout/internal/proto"
	"passepartout/internal/shell"
)

// A Rehearsal is the right to run the commands of one action where nothing they do
// lasts: on an overlay, without a network. It exists so that the person who is asked
// sees what would change. It is no permit, and nothing turns it into one. The zero
// Rehearsal is worthless.
type Rehearsal struct{ ruling Ruling }

// ErrNotRehearsed wraps the reason why a command is not tried before a person
// agrees to it.
var ErrNotRehearsed = errors.New("not tried beforehand")

// rehearsed are the gates whose question is about what a command would do here,
// which an overlay keeps it from doing. Whoever asks for another reason (who wants
// it, what a credential would be used for, a skill's own) is not to be preceded.
var rehearsed = []string{"permissions", "rules", "dispatcher/self-build", "dispatcher/shell", "dispatcher/impact", "flow", "confine"}

// Rehearsal lets the commands of an asking ruling be tried. They are held by the
// same walls as a command that needs no question, so without all of these there is
// no trial.
func (r Ruling) Rehearsal() (Rehearsal, error) {
	no := func(why string) (Rehearsal, error) { return Rehearsal{}, fmt.Errorf("%w: %s", ErrNotRehearsed, why) }
	switch {
	case r.decision != Ask || r.unused == nil || !r.action.Valid():
		return no("the ruling is " + r.decision.String())
	case r.view == nil || len(r.view.commands()) == 0:
		return no("there is no command in it")
	case r.view.policy.Sandbox != SandboxFull:
		return no("the sandbox here is not whole")
	}
	for _, v := range r.Objections() {
		if !slices.Contains(rehearsed, v.Gate) {
			return no(fmt.Sprintf("%s asks first (%s)", v.Gate, v.Code))
		}
	}
	for _, rep := range r.view.commands() {
		switch {
		case rep.Effects.Has(shell.Network):
			return no("it talks to other machines, and what they would answer is not known")
		case rep.Effects.Has(shell.Privilege):
			return no("it wants rights that no command has here")
		}
	}
	return Rehearsal{r}, nil
}

// Action is what may be tried.
func (r Rehearsal) Action() proto.Action { return r.ruling.action }

// Files are the files the gates read; see [Ruling.Files].
func (r Rehearsal) Files() []File { return r.ruling.Files() }

// Valid reports whether the gates gave this right.
func (r Rehearsal) Valid() bool { return r.ruling.unused != nil }
