package tui

import (
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// A span is text in one role. It holds no line end.
type span struct {
	text string
	role role
}

// width is the number of cells a text without escape sequences takes.
func width(s string) int {
	if ascii7(s) {
		return len(s)
	}
	return ansiWidth(s)
}

// ansiWidth is the number of cells a painted text takes. Terminals disagree about
// characters that are put together of several, such as 👍🏽: what is too wide for one
// of them is cut off there, so the wider measure counts.
func ansiWidth(s string) int {
	n := ansi.StringWidth(s)
	if ascii7(s) {
		return n
	}
	return max(n, ansi.StringWidthWc(s))
}

// truncate cuts a painted text to at most n cells by either measure, and ends what
// was cut with a tail.
func truncate(s string, n int, tail string) string {
	if ascii7(s) {
		return ansi.Truncate(s, n, tail)
	}
	s = ansi.Truncate(s, n, tail)
	for room := n - 1; ansiWidth(s) > n; room-- {
		if room < 0 { // a mark one measure does not see, and the other does
			return ""
		}
		s = ansi.Truncate(s, room, tail)
	}
	return s
}

func ascii7(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// A wrapper breaks spans into lines of at most limit cells, each painted on its
// own so that any line can be shown without its neighbours.
type wrapper struct {
	look  look
	limit int
	hang  string // begins every line but the first, painted
	lines []string

	hangs int // the cells of hang
	line  strings.Builder
	used  int
	link  string  // where the text leads; the terminal opens it, from any part of it
	gap   []span  // blanks since the last word: they vanish at a line's end
	word  []piece // since then: only blanks end it, so that a comma stays with what it follows
}

// A piece is a part of a word in one role.
type piece struct {
	span
	link string
}

// wrap lays spans out as lines. Blanks inside a line are kept, because people
// align things with them.
func wrap(l look, limit int, first, hang string, spans []span) []string {
	limit = max(limit, 1)
	if ansiWidth(hang) >= limit {
		first, hang = truncate(first, limit-1, ""), ""
	}
	w := &wrapper{look: l, limit: limit, hang: hang, hangs: ansiWidth(hang)}
	w.line.WriteString(first)
	w.used = ansiWidth(first)
	for _, s := range spans {
		if l.plain {
			s.text = ascii(s.text)
		}
		w.link = ""
		if l.links && (s.role == roleLink || s.role == roleDim) {
			// Only an address that is shown leads anywhere: a name might lie.
			if to := strings.Trim(s.text, " ()"); address.FindString(to) == to && plainASCII(to) {
				w.link = to
			}
		}
		w.add(s)
	}
	w.flush()
	return append(w.lines, w.line.String())
}

func (w *wrapper) add(s span) {
	for s.text != "" {
		if s.text[0] == ' ' {
			w.flush()
			word := s.text[:len(s.text)-len(strings.TrimLeft(s.text, " "))]
			w.gap = append(w.gap, span{word, s.role})
			s.text = s.text[len(word):]
			continue
		}
		end := strings.IndexByte(s.text, ' ')
		if end < 0 {
			end = len(s.text)
		}
		w.word = append(w.word, piece{span{s.text[:end], s.role}, w.link})
		s.text = s.text[end:]
	}
}

// flush places the word that has come together, breaking the line before it, or
// inside it when no line could hold it.
func (w *wrapper) flush() {
	n, blanks := 0, 0
	for _, p := range w.word {
		n += width(p.text)
	}
	if n == 0 {
		return
	}
	for _, g := range w.gap {
		blanks += len(g.text)
	}
	if w.used+blanks+n > w.limit && w.used > w.hangs {
		w.turn()
		blanks = 0
	}
	if w.used+blanks+n <= w.limit {
		for _, g := range w.gap {
			w.line.WriteString(w.look.paint(g.role, g.text))
		}
		w.used += blanks
	}
	w.gap = w.gap[:0]
	for _, p := range w.word {
		w.place(p)
	}
	w.word = w.word[:0]
}

// place puts a piece of a word, and breaks it where the line ends.
func (w *wrapper) place(p piece) {
	for p.text != "" {
		part := p.text
		if w.used+width(part) > w.limit {
			part = fit(p.text, w.limit-w.used)
		}
		switch {
		case part != "":
			w.put(p, part)
			w.used += width(part)
			p.text = p.text[len(part):]
		case w.used > w.hangs:
			w.turn()
		default: // a character wider than the whole line
			_, size := utf8.DecodeRuneInString(p.text)
			p.text = p.text[size:]
		}
	}
}

// put paints a part of a piece.
func (w *wrapper) put(p piece, s string) {
	if p.link == "" {
		w.line.WriteString(w.look.paint(p.role, s))
		return
	}
	w.line.WriteString(ansi.SetHyperlink(p.link) + w.look.paint(p.role, s) + ansi.ResetHyperlink())
}

// turn begins a new line.
func (w *wrapper) turn() {
	w.lines = append(w.lines, w.line.String())
	w.line.Reset()
	w.line.WriteString(w.hang)
	w.used = w.hangs
	w.gap = w.gap[:0]
}

// fit is the longest beginning of a text that takes at most n cells.
func fit(s string, n int) string {
	if n <= 0 {
		return ""
	}
	if len(s) <= n {
		return s
	}
	if plainASCII(s[:n+1]) {
		return s[:n]
	}
	// Truncate reads on to the end, which in a very long word is far away. Few
	// bytes are enough unless letters carry many marks.
	for _, perCell := range []int{4, 64} {
		part := truncate(head(s, n*perCell+16), n, "")
		if width(part) >= n-1 { // a wide character may not fit the last cell
			return part
		}
	}
	return truncate(s, n, "")
}

// head is at most n bytes of a text, ending with a whole character.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// chop breaks a text into pieces of at most n cells, keeping every blank.
func chop(s string, n int) []string {
	n = max(n, 1)
	var out []string
	for {
		part := fit(s, n)
		if part == "" && s != "" {
			_, size := utf8.DecodeRuneInString(s)
			part = s[:size] // wider than the line: cut off at painting
		}
		out = append(out, part)
		if s = s[len(part):]; s == "" {
			return out
		}
	}
}

// pad fills a painted line with blanks up to n cells, or cuts it there.
func pad(s string, n int) string {
	w := ansiWidth(s)
	switch {
	case w > n:
		s = truncate(s, n, "")
		return s + strings.Repeat(" ", max(0, n-ansiWidth(s)))
	case w < n:
		return s + strings.Repeat(" ", n-w)
	}
	return s
}

// short is a text on one line of at most n cells, with dots where it was cut.
func (l look) short(s string, n int) string {
	s = oneLine(s)
	if l.plain {
		s = ascii(s)
	}
	if n <= 0 {
		return ""
	}
	return truncate(s, n, l.dots)
}
