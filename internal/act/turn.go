package act

import (
	"context"
	"strings"

	"passepartout/internal/proto"
)

// A Turn is what an action is a step of: it names what was done so that it can be
// explained and taken back, and hears what a long step has to say meanwhile.
type Turn struct {
	ID   string // the turn's
	Step string // the ruling's: what `why` and `undo` are told
	// Taint is what the turn has read: what it writes carries the same labels.
	Taint proto.Taint
	// Output is handed pieces of a running command's output. It must not block,
	// and must not keep the slice. Nil: nobody listens.
	Output func(piece []byte)
}

type turnKey struct{}

// InTurn returns a context in which actions are steps of t.
func InTurn(ctx context.Context, t Turn) context.Context {
	return context.WithValue(ctx, turnKey{}, t)
}

func turnOf(ctx context.Context) Turn {
	t, _ := ctx.Value(turnKey{}).(Turn)
	return t
}

// maxLabel bounds what is kept of a label, in bytes.
const maxLabel = 120

// label names a step in a history: what was done, and the ruling that let it.
func (t Turn) label(what string) string {
	what = strings.Join(strings.Fields(what), " ")
	if len(what) > maxLabel {
		what = strings.ToValidUTF8(what[:maxLabel], "") + "…"
	}
	if t.Step == "" {
		return what
	}
	return what + " (" + t.Step + ")"
}

// stepOf is the ruling a label names, "" for none.
func stepOf(label string) string {
	i := strings.LastIndex(label, " (")
	if i < 0 || !strings.HasSuffix(label, ")") {
		return ""
	}
	return label[i+2 : len(label)-1]
}
