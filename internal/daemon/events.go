package daemon

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"passepartout/internal/memory"
	"passepartout/internal/pulse"
	"passepartout/internal/sexp"
	"passepartout/internal/skill"
)

// stir says that the memex has changed. It is called with the store locked.
func (d *Daemon) stir() {
	select {
	case d.stirred <- struct{}{}:
	default:
	}
}

// watchMemex turns changes of the memex into events until the context ends.
func (d *Daemon) watchMemex(ctx context.Context) {
	seen := d.memory.View()
	seq := uint64(0)
	if ops := d.memory.History(); len(ops) > 0 {
		seq = ops[len(ops)-1].Seq
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.stirred:
		}
		now := d.memory.View()
		for _, op := range d.memory.Since(seq) {
			seq = op.Seq
			for _, e := range changeEvents(op, seen, now) {
				d.pulse.Notify(e)
			}
		}
		seen = now
		d.pulse.Wake()
	}
}

// changeEvents are what one operation on the memex was, as events: files that
// changed, and headings whose state did. The agent's own board is no event.
func changeEvents(op memory.Op, before, after *memory.View) []pulse.Event {
	var out []pulse.Event
	for _, f := range op.Files {
		if f.Path != plansFile {
			out = append(out, pulse.Event{Kind: "file", What: f.Path, Text: f.Path + " changed", Turn: op.Turn})
		}
	}
	for i := range op.Objects {
		c := &op.Objects[i]
		was, ok1 := before.Get(c.ID)
		is, ok2 := after.Get(c.ID)
		if !ok1 || !ok2 || was.Todo == is.Todo || c.File == plansFile {
			continue
		}
		out = append(out, pulse.Event{
			Kind: "todo", What: is.Todo, Path: is.File, Turn: op.Turn,
			Text: fmt.Sprintf("%q in %s went from %s to %s", is.Title, is.File, orNone(was.Todo), orNone(is.Todo)),
		})
	}
	return out
}

func orNone(s string) string {
	if s == "" {
		return "no state"
	}
	return s
}

// causes remember which turn a ruling belongs to, for records that name only the
// ruling.
type causes struct {
	mu    sync.Mutex // guards what follows
	turn  map[string]string
	order []string
	// private are turns in which something private took part.
	private map[string]bool
	marked  []string
}

// maxCauses is how many rulings are remembered.
const maxCauses = 4096

func (c *causes) put(ruling, turn string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.turn == nil {
		c.turn = map[string]string{}
	}
	c.turn[ruling] = turn
	if c.order = append(c.order, ruling); len(c.order) > maxCauses {
		delete(c.turn, c.order[0])
		c.order = c.order[1:]
	}
}

// mark remembers that something private took part in a turn.
func (c *causes) mark(turn string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.private == nil {
		c.private = map[string]bool{}
	}
	if c.private[turn] {
		return
	}
	c.private[turn] = true
	if c.marked = append(c.marked, turn); len(c.marked) > maxCauses {
		delete(c.private, c.marked[0])
		c.marked = c.marked[1:]
	}
}

func (c *causes) isPrivate(turn string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.private[turn]
}

func (c *causes) of(ruling string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.turn[ruling]
}

// recorded turns what was written to the journal into events.
func (d *Daemon) recorded(p sexp.Plist, err error) {
	if err != nil || d.pulse == nil {
		return
	}
	kind := strings.ToLower(string(p.Word("KIND")))
	turn := p.Text("TURN")
	defer func() { d.diary.note(kind, turn, p) }()
	switch kind {
	case "signal":
		sensor := strings.ToLower(string(p.Sub("BODY").Word("SENSOR")))
		if turn == "" {
			turn = p.Text("ID")
		}
		d.pulse.Notify(pulse.Event{Kind: "signal", What: sensor, Turn: turn, Text: "a signal of " + sensor})
	case "ruling":
		d.causes.put(p.Text("ID"), turn)
		if p.Sub("FACTS").Flag("PRIVATE") {
			d.causes.mark(turn)
		}
	case "outcome":
		turn = d.causes.of(p.Text("RULING"))
	case "answer":
		turn = d.causes.of(p.Text("TOKEN"))
		what := "denied"
		if yes, _ := p.Get("YES"); !sexp.IsNil(yes) {
			what = "approved"
		}
		d.pulse.Notify(pulse.Event{Kind: "approval", What: what, Turn: turn, Text: fmt.Sprintf("%s was %s", p.Text("TOKEN"), what)})
	}
	d.pulse.Notify(pulse.Event{Kind: "journal", What: kind, Turn: turn, Text: "a record of a " + kind})
}

// skillEvents names the functions skills have registered for an event.
func (d *Daemon) skillEvents(e pulse.Event) []string {
	if d.skills == nil {
		return nil
	}
	name := map[string]string{"file": "file-changed", "todo": "todo-changed", "approval": "approval", "signal": "signal", "journal": "journal"}[e.Kind]
	var out []string
	for _, h := range d.skills.Set().Hooks() {
		if h.Event == name {
			out = append(out, registeredName(h))
		}
	}
	return out
}

// registeredName is what a skill's hook is called in records.
func registeredName(h skill.Hook) string { return h.Skill + " on " + h.Event }
