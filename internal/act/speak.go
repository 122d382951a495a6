package act

import (
	"context"

	"passepartout/internal/gate"
	"passepartout/internal/proto"
)

// A Speaker delivers text to the people of one channel: the verb "message".
type Speaker struct {
	Channel string
	// Deliver hands the text to whoever listens to the session. It must not
	// block. Nil means that the turn's own reply carries the text.
	Deliver func(session string, cause proto.ID, text string) error
}

var _ Actuator = Speaker{}

// Target implements [Actuator].
func (s Speaker) Target() string { return s.Channel }

// Verbs implements [Actuator].
func (s Speaker) Verbs() []proto.Verb {
	return []proto.Verb{{
		Target: s.Channel, Name: "message", Effect: proto.Speak,
		Doc:    "Say something to the person who asked.",
		Params: []proto.Param{{Name: "TEXT", Type: proto.Text, Means: proto.Outbound, Required: true, Doc: "what to say"}},
	}}
}

// Act implements [Actuator].
func (s Speaker) Act(_ context.Context, p gate.Permit) (Outcome, error) {
	a, err := p.Redeem()
	if err != nil {
		return Outcome{}, err
	}
	text := a.Args().Text("TEXT")
	if s.Deliver == nil {
		return Outcome{OK: true, Text: text, Quiet: true}, nil
	}
	if err := s.Deliver(a.Cause().Session, a.Cause().Signal, text); err != nil {
		return Failed("the message could not be delivered to %s: %v", s.Channel, err), nil
	}
	return Outcome{OK: true, Text: text, Quiet: true}, nil
}
