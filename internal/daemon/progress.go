package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// A Work is something that takes long, and how far it is.
type Work struct {
	What       string // reading, indexing, embedding, importing
	Have, Want int
}

// startFile says how far a daemon is that does not listen yet, in the state
// directory. It is gone as soon as there is a socket to ask.
const startFile = "starting"

// patience is how long a start may take before it is told how far it is.
const patience = 200 * time.Millisecond

// Starting is how far the daemon of a state directory is with its start. There is
// nothing to tell of one that listens, or has only just begun.
func Starting(stateDir string) (Work, bool) {
	raw, err := os.ReadFile(filepath.Join(stateDir, startFile))
	if err != nil {
		return Work{}, false
	}
	var w Work
	n, err := fmt.Sscanf(string(raw), "%s %d %d", &w.What, &w.Have, &w.Want)
	return w, err == nil && n == 3
}

// reading returns what is told how many files of the memex were read, from any
// goroutine. A start that cannot say how far it is goes on.
func (d *Daemon) reading(ctx context.Context) func(done, total int) {
	begun := time.Now()
	var mu sync.Mutex
	return func(done, total int) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(begun) < patience {
			return
		}
		if err := os.WriteFile(d.statePath(startFile), fmt.Appendf(nil, "reading %d %d\n", done, total), 0o600); err != nil {
			d.log.Debug("how far the start is was not written", "error", err)
		}
		// A service manager gives up on a service that does not say it is alive.
		d.notify(ctx, fmt.Sprintf("STATUS=Reading the memex: %d of %d files\nEXTEND_TIMEOUT_USEC=%d", done, total, time.Minute.Microseconds()))
	}
}

// forgetStart forgets how far the start was.
func (d *Daemon) forgetStart() {
	if err := os.Remove(d.statePath(startFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		d.log.Debug("how far the start was is still written", "error", err)
	}
}

// tasks are what clients do that takes long, as they tell it: each is over when its
// client is gone. It is safe for concurrent use.
type tasks struct {
	mu sync.Mutex // guards what follows
	of map[*conn]Work
}

// set takes how far a client's work is; work that is done is forgotten.
func (t *tasks) set(c *conn, w Work) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.Have >= w.Want {
		delete(t.of, c)
		return
	}
	if t.of == nil {
		t.of = map[*conn]Work{}
	}
	t.of[c] = w
}

// leave forgets a client, and reports whether it was at work.
func (t *tasks) leave(c *conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, worked := t.of[c]
	delete(t.of, c)
	return worked
}

func (t *tasks) list() []Work {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []Work
	for _, w := range t.of {
		out = append(out, w)
	}
	slices.SortFunc(out, func(a, b Work) int { return b.Want - a.Want })
	return out
}

// work is everything long that goes on.
func (d *Daemon) work() []Work {
	var out []Work
	if have, want := d.mirror.Indexing(); have < want {
		out = append(out, Work{"indexing", have, want})
	}
	if e, ok := d.mirror.Progress(); ok && e.Have < e.Want {
		out = append(out, Work{"embedding", e.Have, e.Want})
	}
	return append(out, d.tasks.list()...)
}

// workList is the work that goes on, as clients read it.
func (d *Daemon) workList() sexp.List {
	var rows []sexp.Value
	for _, w := range d.work() {
		rows = append(rows, sexp.P(sexp.Keyword("WHAT"), w.What, sexp.Keyword("HAVE"), w.Have, sexp.Keyword("WANT"), w.Want).List())
	}
	return sexp.NewList(rows...)
}

// tellWork shows all who listen what goes on.
func (d *Daemon) tellWork() {
	d.hub.tell(proto.Message{Kind: proto.Event, Payload: sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("WORK"), sexp.Keyword("WORK"), d.workList())})
}

// answerWorking takes how far a client is with work of its own.
func answerWorking(_ context.Context, d *Daemon, a asking) (sexp.Plist, error) {
	p := a.message.Payload
	w := Work{p.Text("WHAT"), p.Number("HAVE"), p.Number("WANT")}
	if w.What != "importing" || w.Have < 0 || w.Want < 0 {
		return sexp.Plist{}, fmt.Errorf("working: want :WHAT \"importing\" and counts, found %q, %d of %d", w.What, w.Have, w.Want)
	}
	d.tasks.set(a.conn, w)
	d.tellWork()
	return sexp.Plist{}, nil
}
