package daemon

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"passepartout/internal/fovea"
	"passepartout/internal/llm"
	"passepartout/internal/proto"
	"passepartout/internal/recall"
	"passepartout/internal/secret"
	"passepartout/internal/sexp"
)

// relearn is how often the daemon looks whether notes want new vectors: whether the
// memex has grown so much that its own should be learnt again, and whether any lacks
// a provider's.
const relearn = 10 * time.Minute

// vectorDir holds the vectors of providers, in the state directory. It can be deleted
// at any time.
const vectorDir = "vectors"

// openRecall prepares what the memex is searched with.
func (d *Daemon) openRecall() error {
	var err error
	if d.gazes, err = openGazes(d.statePath(focusFile)); err != nil {
		return fmt.Errorf("focus: %w", err)
	}
	if d.s.Models.Embedder.Name == "" {
		return nil
	}
	e, err := d.engine.Embedder(d.s.Models.Embedder)
	if err != nil {
		return err
	}
	d.feed = d.mirror.Lend(recall.FeedOptions{Dir: d.s.VectorDir(""), Embedder: e, Former: d.formerEmbedder})
	return nil
}

// VectorDir is where the vectors for a memex are kept, which need not be the one the
// daemon serves.
func (s Settings) VectorDir(memex string) string {
	dir := filepath.Join(s.StateDir, vectorDir)
	if abs, err := filepath.Abs(memex); memex != "" && (err != nil || abs != s.MemexDir) {
		sum := sha256.Sum256([]byte(abs))
		dir = filepath.Join(dir, fmt.Sprintf("%x", sum[:8]))
	}
	return dir
}

// OpenEmbedder opens the embedder of the settings for a command that works without
// a daemon. What it costs is booked where the daemon books. The embedder is nil when
// the settings name none.
func OpenEmbedder(s Settings) (e *llm.Embedder, done func() error, err error) {
	if s.Models.Embedder.Name == "" {
		return nil, func() error { return nil }, nil
	}
	d := &Daemon{s: s, now: time.Now, log: slog.New(slog.DiscardHandler)}
	if err := os.MkdirAll(s.StateDir, 0o700); err != nil {
		return nil, nil, err
	}
	if d.engine, err = d.openEngine(secret.Default().WithValues(s.Secrets).Redact); err != nil {
		return nil, nil, errors.Join(err, d.release())
	}
	if e, err = d.engine.Embedder(s.Models.Embedder); err != nil {
		return nil, nil, errors.Join(err, d.release())
	}
	return e, d.release, nil
}

// formerEmbedder is the one that made vectors which still serve, if its provider is
// still known.
func (d *Daemon) formerEmbedder(name string) recall.Embedder {
	provider, model, _ := strings.Cut(name, "/")
	for _, p := range append([]llm.Provider{d.s.Models.Embedder}, d.s.Models.Providers...) {
		if p.Name == provider {
			p.Model = model
			if e, err := d.engine.Embedder(p); err == nil {
				return e
			}
		}
	}
	return nil
}

// follow keeps the index equal to the memex until the context ends.
func (d *Daemon) follow(ctx context.Context) {
	tick := time.NewTicker(relearn)
	defer tick.Stop()
	d.mirror.Sync(d.memory.View())
	if d.feed != nil {
		d.conns.Go(func() { d.feed.Run(ctx) })
	}
	for {
		d.mirror.Sync(d.memory.View())
		if d.feed != nil {
			d.feed.Wake()
		}
		if err := d.mirror.Learn(ctx); err != nil && ctx.Err() == nil {
			d.log.Warn("recall: vectors were not learnt", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// awareness is what of the memex belongs to a signal. Which model will read it is
// not known yet, so nothing privacy-tagged is in it, nor text that is not the
// person's own: both are for tools, which label what they return. The question goes
// to an embedder elsewhere only if the session has read nothing private.
func (d *Daemon) awareness(_ context.Context, sig proto.Signal, tokens int) (string, proto.Taint, func()) {
	v := d.memory.View()
	f := d.gazes.focus(v, sig.Session)
	f.Query, f.Now, f.Budget = sig.Text(), d.now(), min(tokens, fovea.DefaultBudget)
	f.Cloud, f.Trusted, f.Leave = true, true, f.Query != "" && !sig.Taint.Private
	c := d.mirror.Render(v, f)
	return c.Text, proto.Taint{Private: c.Private, Untrusted: c.Untrusted}, func() { d.gazes.showed(sig.Session, c) }
}

// embeddings is how far the vectors of a provider are, for clients.
func embeddings(p recall.Progress) sexp.Plist {
	out := sexp.P(
		sexp.Keyword("EMBEDDER"), p.Embedder, sexp.Keyword("LOCAL"), p.Local, sexp.Keyword("SERVING"), p.Serving,
		sexp.Keyword("HAVE"), p.Have, sexp.Keyword("WANT"), p.Want, sexp.Keyword("WITHHELD"), p.Withheld, sexp.Keyword("REFUSED"), p.Refused,
		sexp.Keyword("WEIGHT"), fmt.Sprintf("%.2f", p.Cal.Weight), sexp.Keyword("GAIN"), fmt.Sprintf("%.3f", p.Cal.Gain),
		sexp.Keyword("QUESTIONS"), p.Cal.Questions)
	if p.Problem != "" {
		out = out.With("PROBLEM", sexp.String(p.Problem))
	}
	return out
}

// mostRecalled bounds what a client is shown of a search.
const mostRecalled = 100

// answerRecallStatus says how many notes are indexed, and with whose vectors.
func answerRecallStatus(_ context.Context, d *Daemon, _ asking) (sexp.Plist, error) {
	p, lent := d.mirror.Progress()
	if !lent {
		return sexp.P(sexp.Keyword("NOTES"), d.mirror.Index().Len(), sexp.Keyword("EMBEDDER"), d.builtIn()), nil
	}
	return embeddings(p).With("NOTES", sexp.NewInt(int64(d.mirror.Index().Len()))), nil
}

// builtIn is the embedder that needs nobody.
func (d *Daemon) builtIn() string {
	if d.s.Models.Hashing {
		return "hashing"
	}
	return "embedded"
}

// answerRecall finds notes for a client.
func answerRecall(_ context.Context, d *Daemon, a asking) (sexp.Plist, error) {
	m := a.message
	limit := m.Payload.Number("LIMIT")
	if limit <= 0 {
		limit = 10
	}
	limit = min(limit, mostRecalled)
	var rows []sexp.Value
	for _, o := range d.mirror.Search(d.memory.View(), m.Payload.Text("TEXT"), limit) {
		rows = append(rows, located(o).List())
	}
	return sexp.P(sexp.Keyword("HITS"), sexp.NewList(rows...)), nil
}

// answerContext shows what a model would be shown for a text now, and why.
func answerContext(_ context.Context, d *Daemon, a asking) (sexp.Plist, error) {
	m, v := a.message, d.memory.View()
	f := d.gazes.focus(v, a.session)
	if name := m.Payload.Text("NODE"); name != "" {
		o, err := d.node(v, name)
		if err != nil {
			return sexp.Plist{}, err
		}
		f.ID = o.ID
	}
	f.Query, f.Now, f.Cloud, f.Trusted = m.Payload.Text("TEXT"), d.now(), true, true
	c := d.mirror.Render(v, f)
	var rows []sexp.Value
	for _, e := range c.Entries {
		rows = append(rows, sexp.P(
			sexp.Keyword("ID"), string(e.ID), sexp.Keyword("TITLE"), e.Title, sexp.Keyword("FILE"), e.File, sexp.Keyword("LINE"), e.Line,
			sexp.Keyword("SECTION"), e.Section, sexp.Keyword("FORM"), string(e.Form), sexp.Keyword("REASON"), e.Reason, sexp.Keyword("TOKENS"), e.Tokens).List())
	}
	return sexp.P(
		sexp.Keyword("TEXT"), c.Text, sexp.Keyword("TOKENS"), c.Tokens, sexp.Keyword("BUDGET"), c.Budget, sexp.Keyword("UNSEEN"), c.Unseen,
		sexp.Keyword("ENTRIES"), sexp.NewList(rows...)), nil
}
