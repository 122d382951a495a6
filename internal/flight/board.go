package flight

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"passepartout/internal/memory"
	"passepartout/internal/org"
	"passepartout/internal/sexp"
)

// A Board shows plans as headings of one Org file. It writes behind the log's
// back, so that nobody who answers waits for it, and only ever the newest state of
// a plan. What stands in the file is never read as an answer.
type Board struct {
	store *memory.Store
	file  string
	log   *slog.Logger

	mu     sync.Mutex // guards what follows
	queue  []Plan     // the newest state of each plan still to be shown
	truth  *Log       // what the board is compared with; nil: nothing yet
	look   bool       // somebody else may have written to the file
	closed bool
	wake   chan struct{} // a token when there is something to show
	stop   chan struct{} // closed by Close
	gone   chan struct{} // closed when the writer has ended
}

// settle is how long the board lets plans move before it shows them: an approved
// plan is usually done by then, and its effect need not wait for the view of it.
const settle = 200 * time.Millisecond

// NewBoard returns a board on a file of the memex. Close must be called, and
// before the store is.
func NewBoard(s *memory.Store, file string, log *slog.Logger) *Board {
	b := &Board{store: s, file: file, log: log, wake: make(chan struct{}, 1), stop: make(chan struct{}), gone: make(chan struct{})}
	go b.write()
	return b
}

// Show takes the newest state of a plan. It does not block.
func (b *Board) Show(p Plan) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	for i := range b.queue {
		if b.queue[i].Token == p.Token {
			b.queue[i] = p
			return
		}
	}
	b.queue = append(b.queue, p)
	b.rouse()
}

// rouse wakes the writer, with the lock held.
func (b *Board) rouse() {
	select {
	case b.wake <- struct{}{}:
	default: // it has been woken already
	}
}

// Close shows what is left and ends the writer.
func (b *Board) Close() {
	b.mu.Lock()
	if !b.closed {
		b.closed = true
		close(b.stop)
	}
	b.mu.Unlock()
	<-b.gone
}

func (b *Board) write() {
	defer close(b.gone)
	for over := false; !over; {
		select {
		case <-b.wake:
			select {
			case <-time.After(settle):
			case <-b.stop:
				over = true
			}
		case <-b.stop:
			over = true
		}
		b.flush()
	}
}

// flush shows what is queued.
func (b *Board) flush() {
	b.mu.Lock()
	plans, log, look := b.queue, b.truth, b.look
	b.queue, b.look = nil, false
	b.mu.Unlock()
	if log != nil && look {
		b.setBack(log)
	}
	if err := b.put(plans); err == nil || len(plans) < 2 {
		b.note(plans, err)
	} else {
		for _, p := range plans { // one of them keeps the others from being shown
			b.note([]Plan{p}, b.put([]Plan{p}))
		}
	}
	if log != nil {
		b.prune()
	}
}

func (b *Board) note(plans []Plan, err error) {
	if err != nil && len(plans) > 0 {
		b.log.Warn("a plan could not be shown in the memex", "plan", plans[0].Token, "error", err)
	}
}

// put shows plans in one transaction: each one makes the store wait for the disk.
func (b *Board) put(plans []Plan) error {
	tx := memory.Tx{Actor: "flight", Shown: true}
	view := b.store.View()
	var fresh strings.Builder // new headings go in as one text: each edit costs the whole file
	if _, made := view.File(b.file); !made {
		fresh.WriteString(boardHead)
	}
	var shown []string
	for _, p := range plans {
		o, ok := view.Get(boardID(p))
		switch {
		case !ok:
			fresh.WriteString(entry(p).Format(1))
		case o.Todo == p.State.String():
			continue
		default:
			tx.Edits = append(tx.Edits, rewritten(o, p.State, body(p))...)
		}
		shown = append(shown, p.Token+" is "+p.State.String())
	}
	if len(shown) == 0 {
		return nil
	}
	if fresh.Len() > 0 && fresh.String() != boardHead {
		tx.Edits = append(tx.Edits, memory.Edit{File: b.file, Change: memory.Change{Kind: memory.Insert, Value: fresh.String()}})
	}
	const most = 5
	if n := len(shown); n > most {
		shown = append(shown[:most], fmt.Sprintf("and %d more", n-most))
	}
	tx.Label = "plan " + strings.Join(shown, ", ")
	_, err := b.store.Apply(context.Background(), tx)
	return err
}

// boardHead begins a new file: a heading, because that is what can be inserted.
// The states must be known to Org before a heading uses one.
const boardHead = `* What this file is
#+TODO: PLAN APPROVED STARTED | DONE DENIED EXPIRED FAILED UNKNOWN
What waited, or waits, for your approval. This is a view: changing a state here
answers nothing. Answer with =passepartout approve TOKEN=.
`

// rewritten gives a heading another state and text.
func rewritten(o memory.Object, s State, text string) []memory.Edit {
	return []memory.Edit{
		{Object: o.ID, Expect: o.Hash, Change: memory.Change{Kind: memory.SetBody, Value: text}},
		{Object: o.ID, Expect: o.Hash, Change: memory.Change{Kind: memory.SetTodo, Value: s.String()}},
	}
}

// boardPrefix begins the id of every plan's heading, and boardStamp is how its times
// are written.
const (
	boardPrefix = "flight-"
	boardStamp  = "[2006-01-02 Mon 15:04]"
)

func boardID(p Plan) memory.ID { return memory.ID(boardPrefix + p.Token) }

func entry(p Plan) org.Entry {
	stamp := func(t time.Time) string { return t.Local().Format(boardStamp) }
	return org.Entry{
		Todo: p.State.String(), Title: oneLine(fmt.Sprintf("%s: %s", p.Name(), p.Action.Text("WHY"))), Tags: []string{"FLIGHT_PLAN"},
		Properties: []org.Property{
			{Key: "ID", Value: string(boardID(p))},
			{Key: "TOKEN", Value: p.Token},
			{Key: "DIGEST", Value: p.Digest},
			{Key: "REQUESTER", Value: oneLine(p.Requester.Role.String() + " " + p.Requester.Channel + " " + p.Requester.Who)},
			{Key: "SESSION", Value: oneLine(p.Session)},
			{Key: "POLICY", Value: p.Policy},
			{Key: "CREATED", Value: stamp(p.Created)},
			{Key: "EXPIRES", Value: stamp(p.Expires)},
		},
		Body: body(p),
	}
}

// body says in plain words what would happen and why it is asked. Every line is
// indented, so that no text of an action can become a heading or a drawer.
func body(p Plan) string {
	var b strings.Builder
	line := func(format string, args ...any) {
		for l := range strings.SplitSeq(fmt.Sprintf(format, args...), "\n") {
			b.WriteString("  " + l + "\n")
		}
	}
	line("%s.", p.Fate())
	args := func(p Plan) {
		for _, e := range p.Action.Sub("ARGS").Pairs() {
			line("  %s = %s", strings.ToLower(string(e.Key)), strings.ReplaceAll(e.Value.String(), "\n", "\n    "))
		}
	}
	if len(p.Steps) > 0 {
		line("What would happen: %d steps, one after the other until one fails.", len(p.Steps))
	} else {
		line("What would happen: %s with", p.Name())
		args(p)
	}
	for i, s := range p.Steps {
		line("Step %d, %s: %s with", i+1, s.State, s.Name())
		args(p.AsStep(i))
		line("  The gates: %s", s.Verdict())
		if s.Result != "" {
			line("  What came of it: %s", s.Result)
		}
	}
	for _, v := range p.Asked() {
		line("Asked by %s (%s): %s", v.Gate, v.Code, v.Reason)
		if v.Bound != "" {
			line("  holds only for the files as they were: %s", v.Bound)
		}
	}
	showPreview(p, line)
	if len(p.Effects) > 0 {
		line("What it can do: %s.", strings.Join(p.Effects, ", "))
	}
	for _, u := range p.Unforeseen() {
		line("Not known beforehand: %s", u)
	}
	if p.Result != "" {
		line("What came of it: %s", p.Result)
	}
	return b.String()
}

// showPreview says what the action did when it was tried where nothing lasts.
func showPreview(p Plan, line func(string, ...any)) {
	if text := p.Preview.Text("TEXT"); text != "" {
		line("%s", text)
	}
	v, _ := p.Preview.Get("CHANGED")
	l, _ := v.(sexp.List)
	for _, c := range l.Items() {
		if s, ok := c.(sexp.String); ok {
			line("  %s", oneLine(string(s)))
		}
	}
	if diff := strings.TrimRight(p.Preview.Text("DIFF"), "\n"); diff != "" {
		line("  %s", strings.ReplaceAll(diff, "\n", "\n  "))
	}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
