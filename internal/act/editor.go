package act

import (
	"context"
	"strings"

	"passepartout/internal/gate"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// An Editor speaks to the people at an editor, and asks it to show, insert or
// replace text there. The editor's person confirms each request; the gates have
// judged it before.
type Editor struct {
	Channel string // also the target: "emacs"
	// Ask hands a request to an editor that listens to the session and waits for
	// what its person decides.
	Ask func(ctx context.Context, session string, cause proto.ID, request sexp.Plist) (Outcome, error)
}

var _ Actuator = Editor{}

// Target implements [Actuator].
func (e Editor) Target() string { return e.Channel }

// Verbs implements [Actuator].
func (e Editor) Verbs() []proto.Verb {
	line := func(doc string) proto.Param { return proto.Param{Name: "LINE", Type: proto.Number, Doc: doc} }
	return append(Speaker{Channel: e.Channel}.Verbs(),
		proto.Verb{
			Target: e.Channel, Name: "show", Tool: e.Channel + "-show", Effect: proto.ReadLocal,
			Doc: "Show the person a file in their editor, if they agree there.",
			Params: []proto.Param{
				{Name: "FILE", Type: proto.Text, Means: proto.ReadPath, Required: true, Doc: "the file"},
				line("the line to show"),
			},
		},
		proto.Verb{
			Target: e.Channel, Name: "insert", Tool: e.Channel + "-insert", Effect: proto.WriteLocal,
			Doc: "Insert lines into a file in the person's editor, as a change they review there.",
			Params: []proto.Param{
				{Name: "FILE", Type: proto.Text, Means: proto.WritePath, Required: true, Doc: "the file"},
				line("the line before which it goes; the end when it is left out"),
				{Name: "TEXT", Type: proto.Text, Means: proto.Content, Required: true, Doc: "what to insert"},
			},
		},
		proto.Verb{
			Target: e.Channel, Name: "replace", Tool: e.Channel + "-replace", Effect: proto.WriteLocal,
			Doc: "Replace one passage of a file in the person's editor, as a change they review there; the passage must stand there exactly once.",
			Params: []proto.Param{
				{Name: "FILE", Type: proto.Text, Means: proto.WritePath, Required: true, Doc: "the file"},
				{Name: "OLD", Type: proto.Text, Required: true, Doc: "the passage, to the letter"},
				{Name: "TEXT", Type: proto.Text, Means: proto.Content, Required: true, Doc: "what takes its place"},
			},
		})
}

// Act implements [Actuator].
func (e Editor) Act(ctx context.Context, p gate.Permit) (Outcome, error) {
	if p.Action().Verb() == "message" {
		return Speaker{Channel: e.Channel}.Act(ctx, p)
	}
	path, ok := p.Path("FILE")
	if !ok {
		return Failed("the gates judged no path"), nil
	}
	a, err := p.Redeem()
	if err != nil {
		return Outcome{}, err
	}
	request := a.Args().With("FILE", sexp.String(path)).With("WHY", sexp.String(a.Why()))
	return e.Ask(ctx, a.Cause().Session, a.Cause().Signal, request.With("ACTION", sexp.Keyword(strings.ToUpper(a.Verb()))))
}
