package daemon

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"passepartout/internal/sexp"
)

// mostLabels is how many labelled files one answer names.
const mostLabels = 10_000

// answerLabels lists the files whose labels are kept for them: (:ACTION :LABELS).
func answerLabels(_ context.Context, d *Daemon, _ asking) (sexp.Plist, error) {
	all := d.labels.All()
	rows := make([]sexp.Value, 0, min(len(all), mostLabels))
	for _, m := range all[:min(len(all), mostLabels)] {
		rows = append(rows, sexp.P(
			sexp.Keyword("FILE"), m.Path, sexp.Keyword("PRIVATE"), m.Private, sexp.Keyword("UNTRUSTED"), m.Untrusted).List())
	}
	return sexp.P(sexp.Keyword("LABELS"), sexp.NewList(rows...), sexp.Keyword("COUNT"), len(all)), nil
}

// answerLabelClear takes a file's labels off: (:ACTION :LABEL-CLEAR :FILE "…"). Only
// the owner reaches it, and no action of a model can: a label that what is labelled
// can take off is none.
func answerLabelClear(_ context.Context, d *Daemon, a asking) (sexp.Plist, error) {
	file := a.message.Payload.Text("FILE")
	if file == "" {
		return sexp.Plist{}, errors.New("want :FILE with the file whose labels are to go")
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(d.s.MemexDir, file)
	}
	was := d.labels.Of(file)
	// On record before it is done, as everything that loosens something.
	if _, err := d.journal.Append(sexp.P(
		sexp.Keyword("KIND"), sexp.Keyword("LABEL-CLEARED"), sexp.Keyword("AT"), d.now().UTC().Format(time.RFC3339Nano),
		sexp.Keyword("FILE"), file, sexp.Keyword("PRIVATE"), was.Private, sexp.Keyword("UNTRUSTED"), was.Untrusted,
		sexp.Keyword("BY"), a.conn.origin.Plist())); err != nil {
		return sexp.Plist{}, err
	}
	if _, err := d.labels.Clear(file); err != nil {
		return sexp.Plist{}, err
	}
	return sexp.P(sexp.Keyword("FILE"), file, sexp.Keyword("LABELS"), was.String()), nil
}
