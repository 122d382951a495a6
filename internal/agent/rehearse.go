package agent

import (
	"context"
	"time"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// rehearse tries what a person is about to be asked about, where nothing of it
// lasts, and records what was seen. An error means that the turn was stopped.
func (t *turn) rehearse(ctx context.Context, ruling proto.ID) (sexp.Plist, error) {
	p, ok := t.a.Table.Rehearse(ctx, t.ruling)
	if ctx.Err() != nil {
		return sexp.Plist{}, context.Cause(ctx)
	}
	if !ok {
		return sexp.Plist{}, nil
	}
	seen := t.a.clean(p.Plist())
	return seen, t.a.Journal.Note(sexp.P(
		sexp.Keyword("KIND"), sexp.Keyword("REHEARSAL"), sexp.Keyword("RULING"), string(ruling),
		sexp.Keyword("AT"), t.a.Now().UTC().Format(time.RFC3339Nano), sexp.Keyword("PREVIEW"), seen))
}

// tried is what the reply says of a trial: no names and no text, because an engine
// will read the reply, and a command chooses the names of its files.
func tried(preview sexp.Plist) string {
	if v, _ := preview.Get("TRIED"); sexp.IsNil(v) {
		return ""
	}
	return preview.Text("TEXT") + " The differences: passepartout approvals.\n"
}
