package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/term"

	"passepartout/internal/daemon"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// What a bar waits for: work that is over before hush is not worth a word, and
// nobody reads faster than barEvery.
const (
	hush     = 300 * time.Millisecond
	barEvery = 100 * time.Millisecond
)

// A bar says how far long work is: to a person by a bar and a count on stderr, to
// a program that asked for events by one each. Where neither is there it is silent.
// Its methods are for one goroutine.
type bar struct {
	a     *app
	begun time.Time
	last  time.Time
	drawn bool // it stands on the terminal
	tenth int  // of the work, when it was last told in a line
}

func (a *app) newBar() *bar { return &bar{a: a, begun: time.Now(), tenth: -1} }

// at tells how far the work is.
func (b *bar) at(w daemon.Work) {
	now := time.Now()
	if b.a.work != nil {
		b.a.work.Store(&w)
		return
	}
	if now.Sub(b.begun) < hush || now.Sub(b.last) < barEvery && w.Have < w.Want {
		return
	}
	b.last = now
	switch {
	case b.a.format == "stream-json":
		// What cannot be told of the way is told of the end: that is written too.
		_ = json.NewEncoder(b.a.out).Encode(map[string]any{"type": "progress", "what": w.What, "have": w.Have, "want": w.Want})
	case !isTerminal(b.a.errw):
	case b.a.plain || b.a.getenv("TERM") == "dumb" || b.a.getenv("TERM") == "":
		b.line(w)
	default:
		b.draw(w)
	}
}

// line tells a tenth of the work in a line of its own: a screen reader reads it once.
func (b *bar) line(w daemon.Work) {
	if tenth := 10 * w.Have / max(w.Want, 1); tenth != b.tenth {
		b.tenth = tenth
		fmt.Fprintf(b.a.errw, "%s: %d of %d\n", workName(w.What), w.Have, w.Want)
	}
}

// draw puts the bar over the one before.
func (b *bar) draw(w daemon.Work) {
	columns := 80
	if f, ok := b.a.errw.(*os.File); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil {
			columns = n
		}
	}
	full, empty := "#", "."
	if utf8Locale(b.a.getenv) {
		full, empty = "▰", "▱"
	}
	name, count := workName(w.What), fmt.Sprintf("%d/%d", w.Have, w.Want)
	cells := max(0, min(30, columns-len(name)-len(count)-4))
	done := min(cells, cells*w.Have/max(w.Want, 1))
	text := fmt.Sprintf("%s %s%s %s", name, strings.Repeat(full, done), strings.Repeat(empty, cells-done), count)
	fmt.Fprintf(b.a.errw, "\r%s\x1b[K", text)
	b.drawn = true
}

// end leaves nothing of the bar.
func (b *bar) end() {
	if b.a.work != nil {
		b.a.work.Store(nil)
	}
	if b.drawn {
		fmt.Fprint(b.a.errw, "\r\x1b[K")
		b.drawn = false
	}
}

func workName(what string) string {
	switch what {
	case "reading":
		return "Reading the memex"
	case "":
		return "Working"
	}
	return strings.ToUpper(what[:1]) + what[1:]
}

// counting is work two counters tell of.
func counting(what string, have, want *atomic.Int64) func() daemon.Work {
	return func() daemon.Work { return daemon.Work{What: what, Have: int(have.Load()), Want: int(want.Load())} }
}

// errStopped is what a person wanted who pressed Ctrl-C.
var errStopped = errors.New("stopped")

// during does something long and tells how far it is meanwhile. Ctrl-C ends the
// context, a second one the program.
func (a *app) during(ctx context.Context, far func() daemon.Work, do func(context.Context) error) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	defer context.AfterFunc(ctx, stop)() // the signal kills again after the first
	over := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		b := a.newBar()
		defer b.end()
		tick := time.NewTicker(barEvery)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
				b.at(far())
			}
		}
	})
	err := do(ctx)
	close(over)
	wg.Wait()
	if errors.Is(err, context.Canceled) {
		err = errStopped
	}
	return err
}

// announced also tells a daemon that runs, so that its clients see it, until done.
func (a *app) announced(ctx context.Context, far func() daemon.Work) (told func() daemon.Work, done func()) {
	joining := *a
	joining.noStart = true
	c, err := joining.connect(ctx, "cli")
	if err != nil {
		return far, func() {} // nobody is there to be told
	}
	var last daemon.Work
	return func() daemon.Work {
		w := far()
		if w == last || err != nil {
			return w
		}
		last = w
		// The work must not wait for who hears of it.
		if err = c.conn.SetDeadline(time.Now().Add(time.Second)); err == nil {
			_, err = c.exchange(proto.Message{Kind: proto.Request, Payload: sexp.P(
				sexp.Keyword("ACTION"), sexp.Keyword("WORKING"), sexp.Keyword("WHAT"), w.What, sexp.Keyword("HAVE"), w.Have, sexp.Keyword("WANT"), w.Want)}, nil)
		}
		return w
	}, c.close
}
