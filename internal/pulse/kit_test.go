package pulse_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"passepartout/internal/memory"
	"passepartout/internal/pulse"
)

// A bed is a memex with a clock of its own and a pulse.
type bed struct {
	t     *testing.T
	memex string
	state string
	store *memory.Store
	p     *pulse.Pulse

	mu  sync.Mutex
	now time.Time
	ids int
	did []pulse.Order
	do  func(context.Context, pulse.Order) (string, error)
}

var start = time.Date(2026, 11, 16, 10, 0, 0, 0, time.UTC) // a Monday

func newBed(t *testing.T, files map[string]string) *bed {
	t.Helper()
	b := &bed{t: t, memex: t.TempDir(), state: t.TempDir(), now: start}
	for name, text := range files {
		b.write(name, text)
	}
	b.open()
	return b
}

func (b *bed) write(name, text string) {
	b.t.Helper()
	path := filepath.Join(b.memex, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
	if b.store != nil {
		if err := b.store.Refresh(context.Background()); err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *bed) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *bed) options() pulse.Options {
	return pulse.Options{
		Dir: b.state, Root: b.memex, Now: b.clock, Zone: time.UTC, View: func() *memory.View { return b.store.View() }, Log: slog.New(slog.DiscardHandler),
		NewID: func(prefix string) string {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.ids++
			return fmt.Sprintf("%s-%d-%d", prefix, b.now.Unix(), b.ids)
		},
		Do: func(ctx context.Context, o pulse.Order) (string, error) {
			b.mu.Lock()
			b.did = append(b.did, o)
			do := b.do
			b.mu.Unlock()
			if do != nil {
				return do(ctx, o)
			}
			return "fine", nil
		},
	}
}

func (b *bed) open() {
	b.t.Helper()
	b.openWith(b.options())
}

func (b *bed) openWith(o pulse.Options) {
	b.t.Helper()
	var err error
	if b.store == nil {
		if b.store, err = memory.Open(context.Background(), b.memex, memory.Options{Now: b.clock}); err != nil {
			b.t.Fatal(err)
		}
		b.t.Cleanup(func() { _ = b.store.Close() })
	}
	if b.p, err = pulse.Open(o); err != nil {
		b.t.Fatal(err)
	}
	p := b.p
	b.t.Cleanup(func() { _ = p.Close() })
	b.p.Tick(b.clock())
	b.p.Settled()
}

// set moves the clock without looking.
func (b *bed) set(at time.Time) {
	b.mu.Lock()
	b.now = at
	b.mu.Unlock()
}

// tick looks at a moment.
func (b *bed) tick(at time.Time) {
	b.set(at)
	b.p.Tick(at)
	b.p.Settled()
	b.p.Tick(at) // what waited for a place, or for another run
	b.p.Settled()
}

// pass lets time go by, from due time to due time.
func (b *bed) pass(until time.Time) {
	for b.clock().Before(until) {
		b.p.Tick(b.clock())
		b.p.Settled()
		next := b.p.Tick(b.clock()) // again, for what a run has left to do
		b.p.Settled()
		if next.IsZero() || next.After(until) {
			next = until
		}
		if !next.After(b.clock()) {
			next = b.clock().Add(time.Second)
		}
		b.set(next)
	}
	b.tick(until)
}

// orders are what was carried out so far.
func (b *bed) orders() []pulse.Order {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]pulse.Order(nil), b.did...)
}

// story is the history of a job, oldest first: state and due times.
func (b *bed) story(job string) string {
	b.t.Helper()
	runs, err := b.p.History(job, 1000)
	if err != nil {
		b.t.Fatal(err)
	}
	var lines []string
	for i := len(runs) - 1; i >= 0; i-- {
		r := runs[i]
		line := string(r.State) + " " + r.Due.UTC().Format("15:04")
		if r.Count > 1 {
			line += fmt.Sprintf("-%s×%d", r.Until.UTC().Format("15:04"), r.Count)
		}
		if r.Attempt > 1 {
			line += fmt.Sprintf(" #%d", r.Attempt)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, ", ")
}

// job is the text of a heading with an order.
func job(title, body string, props ...string) string {
	s := "* " + title + "\n:PROPERTIES:\n"
	for _, p := range props {
		key, value, _ := strings.Cut(p, "=")
		s += ":" + key + ": " + value + "\n"
	}
	return s + ":END:\n" + body + "\n"
}

func schedule(jobs ...string) map[string]string {
	return map[string]string{"system/schedule.org": strings.Join(jobs, "")}
}
