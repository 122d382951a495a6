package tui

import (
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// A place is a line of the transcript: a block and a line of its layout. Places
// need no count of all lines, so that resizing a long transcript costs nothing.
type place struct{ block, line int }

func (p place) before(q place) bool {
	return p.block < q.block || p.block == q.block && p.line < q.line
}

// A transcript is the blocks of a conversation and the part of it on the screen.
type transcript struct {
	blocks        []*block
	look          look
	name          string // over answers
	width, height int
	top           place // the first line shown, unless following
	away          bool  // scrolled away from the end; the zero transcript follows it
	search        search
	laid          int // lines of layout that are kept
}

// maxLaidOut is how many lines of layout are kept besides those on the screen.
const maxLaidOut = 5_000

// add appends a block.
func (t *transcript) add(b *block) *block {
	t.blocks = append(t.blocks, b)
	t.trim()
	return b
}

// lines is a block's layout.
func (t *transcript) lines(i int) []string {
	b := t.blocks[i]
	before := len(b.lines)
	lines := b.layout(t.look, t.width, t.name)
	t.laid += len(lines) - before
	return lines
}

// last is the place at which the end of the transcript is at the bottom.
func (t *transcript) last() place {
	left := t.height
	for i := len(t.blocks) - 1; i >= 0; i-- {
		n := len(t.lines(i))
		if n >= left {
			return place{i, n - left}
		}
		left -= n
	}
	return place{}
}

// start is the first place on the screen.
func (t *transcript) start() place {
	if !t.away {
		return t.last()
	}
	if t.top.block >= len(t.blocks) {
		return t.last()
	}
	p := t.top
	p.line = max(0, min(p.line, len(t.lines(p.block))-1))
	return p
}

// scroll moves by n lines, down when n is positive. Reaching the end follows it.
func (t *transcript) scroll(n int) {
	if len(t.blocks) == 0 {
		return
	}
	p := t.start()
	p.line += n
	for p.line < 0 && p.block > 0 {
		p.block--
		p.line += len(t.lines(p.block))
	}
	p.line = max(0, p.line)
	for p.line >= len(t.lines(p.block)) && p.block < len(t.blocks)-1 {
		p.line -= len(t.lines(p.block))
		p.block++
	}
	t.show(p)
}

// show puts a place at the top, or as near as the end allows.
func (t *transcript) show(p place) {
	last := t.last()
	t.away = p.before(last)
	t.top = p
	t.trim()
}

// reveal scrolls just enough for a block to be seen, from its first line if it is
// taller than the screen.
func (t *transcript) reveal(i int) {
	from, to := t.span(i)
	switch {
	case from < 0 || to-from > t.height:
		t.show(place{i, 0})
	case to > t.height:
		t.scroll(to - t.height)
	}
}

// span is where on the screen a block's lines are, counted from the top row; from
// is negative for a block that begins above it.
func (t *transcript) span(i int) (from, to int) {
	p := t.start()
	if i < p.block {
		return -1, 0
	}
	from = -p.line
	for j := p.block; j < i; j++ {
		if from += len(t.lines(j)); from > t.height {
			return from, from + len(t.lines(i))
		}
	}
	return from, from + len(t.lines(i))
}

// index is where a block is, or -1.
func (t *transcript) index(b *block) int {
	for i := len(t.blocks) - 1; i >= 0; i-- {
		if t.blocks[i] == b {
			return i
		}
	}
	return -1
}

// at is the block shown in a row, or nil.
func (t *transcript) at(row int) *block {
	p := t.start()
	row += p.line
	for i := p.block; i < len(t.blocks) && row >= 0; i++ {
		n := len(t.lines(i))
		if row < n {
			return t.blocks[i]
		}
		row -= n
	}
	return nil
}

// view is the lines on the screen, exactly height of them.
func (t *transcript) view() []string {
	out := make([]string, 0, t.height)
	p := t.start()
	for i := p.block; i < len(t.blocks) && len(out) < t.height; i++ {
		lines := t.lines(i)
		if i == p.block {
			lines = lines[min(p.line, len(lines)):]
		}
		out = append(out, lines[:min(len(lines), t.height-len(out))]...)
	}
	if t.search.needle != "" {
		for i, s := range out {
			out[i] = t.search.mark(t.look, s)
		}
	}
	for len(out) < t.height {
		out = append(out, "")
	}
	return out
}

// trim forgets layouts far from the screen once there are many.
func (t *transcript) trim() {
	if t.laid <= maxLaidOut {
		return
	}
	p := t.start()
	t.laid = 0
	for i, b := range t.blocks {
		if i < p.block || i > p.block+t.height {
			b.forget()
		}
		t.laid += len(b.lines)
	}
}

// below counts the blocks that begin after the screen.
func (t *transcript) below() int {
	if !t.away {
		return 0
	}
	p := t.start()
	row := -p.line
	for i := p.block; i < len(t.blocks); i++ {
		if row >= t.height {
			return len(t.blocks) - i
		}
		row += len(t.lines(i))
	}
	return 0
}

// A search is a text looked for and the places it was found at.
type search struct {
	needle string // in lower case; "" for no search
	hits   []place
	at     int
}

// find looks for a text from the end backwards and shows the newest hit.
func (t *transcript) find(needle string) {
	t.search = search{needle: strings.ToLower(needle)}
	t.collect()
	t.search.at = max(0, len(t.search.hits)-1)
	t.center()
}

// collect lays out only the blocks whose text has the needle.
func (t *transcript) collect() {
	s := &t.search
	s.hits = s.hits[:0]
	for i, b := range t.blocks {
		if !strings.Contains(strings.ToLower(b.source()), s.needle) {
			continue
		}
		before := len(s.hits)
		for j, line := range t.lines(i) {
			if strings.Contains(strings.ToLower(ansi.Strip(line)), s.needle) {
				s.hits = append(s.hits, place{i, j})
			}
		}
		if len(s.hits) == before {
			s.hits = append(s.hits, place{i, 0}) // the line was broken inside the text
		}
	}
}

// source is what a search looks at.
func (b *block) source() string {
	switch {
	case b.ask != nil:
		return strings.Join(slices.Concat([]string{b.ask.name, b.ask.why, b.ask.token}, b.ask.args, b.ask.reasons), "\n")
	case b.kind == traceBlock:
		s := b.trace.name + " " + b.trace.args + " " + b.trace.id + " " + b.trace.summary()
		for _, v := range b.trace.verdicts {
			s += "\n" + v.gate + " " + v.code + " " + v.reason
		}
		return s
	}
	return b.text()
}

// step goes to another hit: 1 for older, -1 for newer.
func (t *transcript) step(n int) {
	at := t.search.at
	t.collect() // what has been said since counts too, and a new width moves lines
	if len(t.search.hits) == 0 {
		return
	}
	k := len(t.search.hits)
	t.search.at = ((at-n)%k + k) % k
	t.center()
}

func (t *transcript) center() {
	if len(t.search.hits) == 0 {
		return
	}
	t.show(t.search.hits[t.search.at])
	t.scroll(-t.height / 3)
}

// mark highlights the needle in a painted line.
func (s search) mark(l look, line string) string {
	plain := strings.ToLower(ansi.Strip(line))
	var ranges []lipgloss.Range
	for from := 0; ; {
		i := strings.Index(plain[from:], s.needle)
		if i < 0 {
			break
		}
		i += from
		from = i + len(s.needle)
		at := ansiWidth(plain[:i])
		ranges = append(ranges, lipgloss.NewRange(at, at+ansiWidth(s.needle), l.styles[roleMatch]))
	}
	if ranges == nil {
		return line
	}
	return lipgloss.StyleRanges(line, ranges...)
}
