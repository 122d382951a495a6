package flight

import (
	"context"
	"fmt"
	"strings"
	"time"

	"passepartout/internal/memory"
)

// Limits of what the board shows. What has ended goes to the file's archive.
const (
	showFor  = 14 * 24 * time.Hour // how long an ended plan stays
	showMost = 200                 // ended plans that stay
	moveMost = 50                  // headings archived at a time
)

// Follow tells the board which log it shows.
func (b *Board) Follow(l *Log) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.truth, b.look = l, true
	b.rouse()
}

// Look has the board compare its file with the log, because somebody else may have
// written to it. It does not block.
func (b *Board) Look() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.truth == nil {
		return
	}
	b.look = true
	b.rouse()
}

// headings are the plans on the board, in its order.
func (b *Board) headings(view *memory.View) []memory.Object {
	f, ok := view.File(b.file)
	if !ok {
		return nil
	}
	var out []memory.Object
	for o := range f.Children() {
		if strings.HasPrefix(string(o.ID), boardPrefix) {
			out = append(out, o)
		}
	}
	return out
}

// setBack corrects every heading whose state is not the plan's, and says so there:
// whoever wrote it must not believe that it was an answer.
func (b *Board) setBack(log *Log) {
	for _, o := range b.headings(b.store.View()) {
		token := strings.TrimPrefix(string(o.ID), boardPrefix)
		p, known := log.Get(token)
		var edits []memory.Edit
		switch is := parseState(o.Todo); {
		case known && is == p.State:
			continue
		case known && is != StateInvalid && is < p.State:
			b.note([]Plan{p}, b.put([]Plan{p})) // the plan went on, and the board has not followed yet
			continue
		case known:
			edits = rewritten(o, p.State, fmt.Sprintf("  %q stood here, which answers nothing. Answer with =passepartout approve %s=.\n", oneLine(o.Todo), token)+body(p))
		case is != StateInvalid && is.Ended():
			continue // closed too long ago to be known
		default:
			edits = rewritten(o, Unknown, fmt.Sprintf("  There is no plan %q, so this is not one.\n", oneLine(token)))
		}
		b.log.Warn("a state written on the board was set back: it answers nothing", "plan", token, "found", o.Todo)
		if err := b.apply("set back "+token, edits); err != nil {
			b.log.Warn("a state written on the board could not be set back; it answers nothing all the same", "plan", token, "error", err)
		}
	}
}

// prune moves plans that ended long ago, and the oldest of too many, to the file's
// archive, so that the board stays short enough to read.
func (b *Board) prune() {
	var ended []memory.Object
	for _, o := range b.headings(b.store.View()) {
		if s := parseState(o.Todo); s != StateInvalid && s.Ended() {
			ended = append(ended, o)
		}
	}
	b.mu.Lock()
	now := b.truth.o.Now()
	b.mu.Unlock()
	var edits []memory.Edit
	for i, o := range ended {
		made, _ := o.Property("CREATED")
		at, err := time.ParseInLocation(boardStamp, made, time.Local)
		old := err == nil && now.Sub(at) > showFor
		if (old || len(ended)-i > showMost) && len(edits) < moveMost {
			edits = append(edits, memory.Edit{Object: o.ID, Expect: o.Hash, Change: memory.Change{Kind: memory.Archive}})
		}
	}
	if len(edits) == 0 {
		return
	}
	if err := b.apply(fmt.Sprintf("archive %d plans", len(edits)), edits); err != nil {
		b.log.Warn("plans that ended could not be archived", "error", err)
		return
	}
	if len(edits) == moveMost {
		b.mu.Lock()
		b.rouse() // there may be more
		b.mu.Unlock()
	}
}

func (b *Board) apply(label string, edits []memory.Edit) error {
	_, err := b.store.Apply(context.Background(), memory.Tx{Actor: "flight", Shown: true, Label: label, Edits: edits})
	return err
}
