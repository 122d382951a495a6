package soak

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Books are a naive model of what the notes must hold: who wrote which cell when,
// what the person decided, and what was seen to be wrong while the run went on.
type books struct {
	mu      sync.Mutex
	writes  map[string][]*cellWrite
	yes     map[string]bool // tokens to which somebody said yes, perhaps in vain
	wrongs  []string
	runs    map[string]map[string]string // of jobs: by due time, by run, how it went
	redone  int                          // edits in place that met a replacement and were made again
	edits   int
	removed int
	renewed atomic.Int32 // conversations begun anew over Telegram
}

// A cellWrite is one attempt to give a cell a value, by an agent or by the editor.
type cellWrite struct {
	value string
	m     *message // nil for the editor's
	start time.Duration
	end   time.Duration // of the editor's; 0 while nobody knows
}

// interval is when the write may have happened; open is true when it may still.
func (c *cellWrite) interval() (start, end time.Duration, open bool) {
	if c.m == nil {
		return c.start, c.end, c.end == 0
	}
	return c.m.sent, c.m.ended, !c.m.done()
}

func (b *books) write(cell string, m *message) {
	b.add(cell, &cellWrite{value: m.mark, m: m})
}

func (b *books) add(cell string, c *cellWrite) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.writes == nil {
		b.writes = map[string][]*cellWrite{}
	}
	b.writes[cell] = append(b.writes[cell], c)
}

func (b *books) decided(token string, yes bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.yes == nil {
		b.yes = map[string]bool{}
	}
	b.yes[token] = b.yes[token] || yes
}

// wrong records a violation that was seen while it happened.
func (b *books) wrong(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wrongs = append(b.wrongs, fmt.Sprintf(format, args...))
}

// values are the lines of a cell file that may differ from the first text.
var values = regexp.MustCompile(`(?m)^:ID: +((?:cell|victim)-[-0-9]+)\n:V: +(\S+)$|^\* Hers ([-0-9]+) :her:\nwritten by hand: (\S+)$`)

// cellsOf reads the cells of a file, by name. Those of the person are called hers-….
func cellsOf(text string) map[string]string {
	out := map[string]string{}
	for _, m := range values.FindAllStringSubmatch(text, -1) {
		if m[1] != "" {
			out[m[1]] = m[2]
		} else {
			out["hers-"+m[3]] = m[4]
		}
	}
	return out
}

// skeleton is a file with the values of its cells taken out: what no edit changes.
func skeleton(text string) string {
	return values.ReplaceAllStringFunc(text, func(s string) string {
		i := strings.LastIndexAny(s, " ")
		return s[:i+1] + "?"
	})
}

// editor is the person's own editor, which changes notes in both ways editors do,
// and knows nothing of the agent.
func (w *world) editor(ctx context.Context) {
	r := w.random("editor")
	for n := 1; rest(ctx, time.Duration(r.Int64N(int64(600*time.Millisecond)))); n++ {
		file, cell := r.IntN(cellFiles), r.IntN(cellsEach)
		for !w.editOnce(ctx, file, cell, fmt.Sprintf("e%05d", n), r.IntN(2) == 0) {
			if !rest(ctx, 20*time.Millisecond) {
				break
			}
		}
	}
}

// editOnce changes the person's text of one cell. False means that it did not work
// and is to be tried again.
func (w *world) editOnce(ctx context.Context, file, cell int, value string, inPlace bool) bool {
	path := w.notes("notes", cellFile(file))
	raw, err := os.ReadFile(path)
	if err != nil {
		return false // permissions are taken away just now
	}
	line := fmt.Sprintf("* Hers %d-%d :her:\nwritten by hand: ", file, cell)
	at := bytes.Index(raw, []byte(line))
	if at < 0 {
		w.books.wrong("%s lost the person's heading %d-%d:\n%s", path, file, cell, last(string(raw), 300))
		rest(ctx, time.Second)
		return false
	}
	at += len(line)
	end := at + bytes.IndexByte(raw[at:], '\n')
	text := string(raw[:at]) + value + string(raw[end:])
	entry := w.begins(text, fmt.Sprintf("hers-%d-%d", file, cell), value)
	if inPlace {
		err = w.overwrite(path, text)
		for range 1000 {
			if !errors.Is(err, errReplaced) {
				break
			}
			err = w.overwrite(path, text) // it has the text, half of which the file may have been when it was replaced
		}
	} else {
		err = replace(path, text)
	}
	if err != nil {
		w.note("editor: %v", err)
		return false // what it began may be there or not: its writes stay open
	}
	now := w.now()
	w.books.mu.Lock()
	defer w.books.mu.Unlock()
	for _, e := range entry {
		e.end = now
	}
	w.books.edits++
	return true
}

// begins enters what the editor is about to write: a whole file, so also the agents'
// cells, as it has read them.
func (w *world) begins(text, own, value string) []*cellWrite {
	var out []*cellWrite
	start := w.now()
	for cell, v := range cellsOf(text) {
		if strings.HasPrefix(cell, "hers-") && cell != own {
			continue // nobody else writes these
		}
		c := &cellWrite{value: v, start: start}
		w.books.add(cell, c)
		out = append(out, c)
	}
	if len(out) == 0 {
		w.books.wrong("the editor writes %s=%s into a file without cells", own, value)
	}
	return out
}

// replace is how most editors save: a new file in the place of the old one.
func replace(path, text string) error {
	tmp := path + "~"
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	return os.Rename(tmp, path)
}

// errReplaced means that the file was another one when the editor had written it:
// an editor asks its person then, and writes again.
var errReplaced = errors.New("the file was replaced while it was written")

// overwrite is how some editors save: the old bytes are cut off, new ones written.
// What it has begun it brings to an end, however long the disk is full.
func (w *world) overwrite(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	half := len(text) / 2
	for range 2000 {
		if _, err = f.WriteAt([]byte(text[:half]), 0); err == nil {
			time.Sleep(2 * time.Millisecond) // the half-written file can be seen
			_, err = f.WriteAt([]byte(text[half:]), int64(half))
		}
		if err = errors.Join(err, f.Sync()); err == nil {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err != nil {
		return err
	}
	mine, err := f.Stat()
	if err != nil {
		return err
	}
	for range 2000 {
		var there os.FileInfo
		if there, err = os.Stat(path); err == nil {
			if !os.SameFile(mine, there) {
				w.books.mu.Lock()
				w.books.redone++
				w.books.mu.Unlock()
				return errReplaced
			}
			return nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	return err
}

// maxValue is more than a change of a value adds to a file.
const maxValue = 16

// vandal deletes, cuts and brings back whole files. What is gone must stay gone until
// the person brings it back; the agent may not write it again.
func (w *world) vandal(ctx context.Context, r *rand.Rand, i int) {
	path := w.notes("notes", victimFile(i))
	kind, left := "delete", ""
	var err error
	if r.IntN(2) == 0 {
		err = os.Remove(path)
	} else {
		kind = "truncate"
		var raw []byte
		if raw, err = os.ReadFile(path); err == nil && len(raw) > 0 {
			left = string(raw[:r.IntN(len(raw))])
			err = os.Truncate(path, int64(len(left)))
		}
	}
	if err != nil {
		w.note("vandal: %v", err)
		return
	}
	w.fault("org "+kind, "%s", path)
	w.books.mu.Lock()
	w.books.removed++
	w.books.mu.Unlock()
	rest(ctx, time.Duration(100+r.IntN(1200))*time.Millisecond)
	if kind == "delete" {
		if !gone(path) {
			raw, _ := os.ReadFile(path)
			w.books.wrong("%s was deleted by the person and is there again:\n%s", path, last(string(raw), 300))
		}
	} else if raw, err := os.ReadFile(path); err == nil && len(raw) > len(left)+maxValue {
		w.books.wrong("%s was cut to %d bytes by the person and has %d again:\n%s", path, len(left), len(raw), last(string(raw), 300))
	}
	if err := replace(path, victimText(i)); err != nil {
		w.note("vandal: %v", err)
	}
}
