package tui

import (
	"strings"
	"time"
)

// A kind is what a block of the transcript is.
type kind uint8

const (
	noteBlock kind = iota // the client's own words
	userBlock
	answerBlock
	traceBlock
	askBlock
)

// A block is one thing that was said or decided. Its text has been cleaned.
type block struct {
	kind   kind
	buf    strings.Builder // the text
	turn   string          // the turn it belongs to
	status string          // of an answer: how the turn ended, "" while it streams; of the user's words: "unsent" until they are
	trace  *trace          // of a trace, and of an answer whose own ruling it is
	ask    *question
	open   bool // a trace that shows every gate

	lines []string // the layout, valid for drawn
	drawn drawn
	body  markup
}

// drawn is what a layout depends on besides the block.
type drawn struct {
	width  int
	theme  *theme
	serial int // of the text; 0 is never drawn
}

// touch makes the next look at the block lay it out again.
func (b *block) touch() { b.drawn.serial = 0 }

// text is what was said.
func (b *block) text() string { return b.buf.String() }

// append adds text that is still arriving.
func (b *block) append(s string) {
	b.buf.WriteString(s)
	b.touch()
}

// set replaces the text.
func (b *block) set(s string) *block {
	if s != b.text() {
		b.buf.Reset()
		b.buf.WriteString(s)
		b.body = markup{}
	}
	b.touch()
	return b
}

// layout is the block as lines of at most width cells.
func (b *block) layout(l look, width int, name string) []string {
	want := drawn{width, l.theme, 1}
	if b.drawn == want {
		return b.lines
	}
	if b.drawn.width != width || b.drawn.theme != l.theme {
		b.body = markup{}
	}
	b.drawn = want
	switch b.kind {
	case userBlock:
		b.lines = b.said(l, width)
	case answerBlock:
		b.lines = b.answer(l, width, name)
	case traceBlock:
		b.lines = b.trace.layout(l, width, b.open)
	case askBlock:
		b.lines = b.ask.layout(l, width)
	case noteBlock:
		b.lines = b.noted(l, width)
	}
	return b.lines
}

// forget gives a layout's memory back.
func (b *block) forget() {
	b.lines, b.body = nil, markup{}
	b.touch()
}

// said is the user's words in a box.
func (b *block) said(l look, width int) []string {
	title := "you"
	if b.status != "" {
		title += ", " + b.status
	}
	var body []string
	for line := range strings.SplitSeq(b.text(), "\n") {
		body = append(body, wrap(l, width-4, "", "", []span{{line, rolePlain}})...)
	}
	return append([]string{""}, box(l, width, roleUser, title, body)...)
}

// box frames lines. In a narrow terminal there is no room for a frame.
func box(l look, width int, r role, title string, body []string) []string {
	if width < 24 {
		out := make([]string, len(body))
		for i, s := range body {
			out[i] = l.paint(r, l.prompt) + s
		}
		return out
	}
	title = l.short(title, width-6)
	fill := max(0, width-5-ansiWidth(title))
	out := make([]string, 0, len(body)+2)
	out = append(out, l.paint(r, l.corner[0]+l.rule+" "+title+" "+strings.Repeat(l.rule, fill)+l.corner[1]))
	for _, s := range body {
		out = append(out, l.paint(r, l.bar)+" "+pad(s, width-4)+" "+l.paint(r, l.bar))
	}
	return append(out, l.paint(r, l.corner[3]+strings.Repeat(l.rule, width-2)+l.corner[2]))
}

// answer is a header with the ruling on the reply itself, then the text.
func (b *block) answer(l look, width int, name string) []string {
	lines := []string{"", b.header(l, width, name)}
	if b.open && b.trace != nil {
		lines = append(lines, b.trace.detail(l, width)...)
	}
	return b.body.below(lines, "  ").update(l, width, b.text())
}

func (b *block) header(l look, width int, name string) string {
	head := l.paint(roleAccent, l.agent+" "+l.short(name, width-2))
	room := width - ansiWidth(head)
	add := func(r role, s string) {
		if s = "  " + s; ansiWidth(s) <= room {
			head += l.paint(r, s)
			room -= ansiWidth(s)
		}
	}
	switch b.status {
	case "", "done":
	default:
		_, r := l.sign(b.status)
		add(r, b.status)
	}
	if b.trace != nil {
		g, r := l.sign(b.trace.decision)
		add(r, "reply "+g) // the ruling on the words, not on what was asked for
		add(roleDim, b.trace.count())
		add(roleDim, b.trace.id)
	}
	return head
}

func (b *block) noted(l look, width int) []string {
	return b.body.below([]string{""}, "  ").update(l, width, b.text())
}

// A question is an action that waits for a person.
type question struct {
	token, name, why string
	class            string   // what else a yes for the session covers, "" for nothing
	args             []string // one "KEY value" each, revealed
	reasons          []string
	preview          []string // what a trial of it changed, revealed
	expires          time.Time
	session          string
	state            string // "" while it is open, then how it was answered
	begun            bool   // its first line was shown
}

// label is the left column of a table of facts.
func (l look) label(s string, column int) string {
	return l.paint(roleDim, pad(l.short(s, column-1), column))
}

// exact shows an argument with every blank where it is.
func exact(l look, inner, column int, label, text string) []string {
	var out []string
	if l.plain {
		text = ascii(text)
	}
	for line := range strings.SplitSeq(text, "\n") {
		for _, part := range chop(line, inner-column) {
			out = append(out, l.label(label, column)+l.paint(roleStrong, part))
			label = ""
		}
	}
	return out
}

// until is when the question lapses, with its day: it may be tomorrow.
func (q *question) until() string { return q.expires.Format("Mon 2 Jan 15:04:05") }

// layout is the whole of what a person decides on. Nothing is shortened.
func (q *question) layout(l look, width int) []string {
	inner := width - 4
	if width < 24 {
		inner = width - 2
	}
	title, r := l.ask+" needs your approval: "+q.name, roleAsk
	if q.state != "" {
		title, r = q.name+": "+q.state, roleBorder
	}
	column := len("session ")
	for _, a := range q.args {
		key, _, _ := strings.Cut(a, " ")
		column = max(column, min(ansiWidth(key)+1, inner/2))
	}
	var body []string
	row := func(label, text string, tr role) {
		for i, line := range strings.Split(text, "\n") {
			if i > 0 {
				label = ""
			}
			body = append(body, wrap(l, inner, l.label(label, column), strings.Repeat(" ", column), []span{{line, tr}})...)
		}
	}
	for _, a := range q.args {
		key, value, _ := strings.Cut(a, " ")
		body = append(body, exact(l, inner, column, strings.ToLower(key), value)...)
	}
	row("why", q.why, rolePlain)
	for _, reason := range q.reasons {
		row("asks", reason, roleAsk)
	}
	switch {
	case len(q.preview) == 1: // a remark, no difference
		row("tried", q.preview[0], rolePlain)
	case len(q.preview) > 1:
		body = append(body, exact(l, inner, column, "tried", strings.Join(q.preview, "\n"))...)
	}
	row("scope", "y: this one action, once", rolePlain)
	if q.class != "" {
		row("", "s: and in this session "+q.class, rolePlain)
		row("", "m: once, and a rule for such actions is put on trial", rolePlain)
	}
	if q.session != "" {
		row("session", q.session, rolePlain)
	}
	if !q.expires.IsZero() {
		row("until", q.until()+"; silence means no", rolePlain)
	}
	row("token", q.token, roleDim)
	return append([]string{""}, box(l, width, r, title, body)...)
}
