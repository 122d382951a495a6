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
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return ansi.StringWidth(s)
		}
	}
	return len(s)
}

// A wrapper breaks spans into lines of at most limit cells, each painted on its
// own so that any line can be shown without its neighbours.
type wrapper struct {
	look  look
	limit int
	hang  string // begins every line but the first
	lines []string

	line strings.Builder
	used int
	link string // where the text leads; the terminal opens it, from any part of it
	gap  []span // blanks since the last word: they vanish at a line's end
}

// wrap lays spans out as lines. Blanks inside a line are kept, because people
// align things with them.
func wrap(l look, limit int, first, hang string, spans []span) []string {
	limit = max(limit, 1)
	if width(hang) >= limit {
		first, hang = ansi.Truncate(first, limit-1, ""), ""
	}
	w := &wrapper{look: l, limit: limit, hang: hang}
	w.line.WriteString(first)
	w.used = ansi.StringWidth(first)
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
	return append(w.lines, w.line.String())
}

func (w *wrapper) add(s span) {
	for s.text != "" {
		if s.text[0] == ' ' {
			word := s.text[:len(s.text)-len(strings.TrimLeft(s.text, " "))]
			w.gap = append(w.gap, span{word, s.role})
			s.text = s.text[len(word):]
			continue
		}
		end := strings.IndexByte(s.text, ' ')
		if end < 0 {
			end = len(s.text)
		}
		w.word(span{s.text[:end], s.role})
		s.text = s.text[end:]
	}
}

// word places one word, breaking the line before it, or inside it when no line
// could hold it.
func (w *wrapper) word(s span) {
	n, blanks := width(s.text), 0
	for _, g := range w.gap {
		blanks += len(g.text)
	}
	if w.used+blanks+n > w.limit && w.used > len(w.hang) {
		w.turn()
		blanks = 0
	}
	if w.used+blanks+n <= w.limit {
		for _, g := range w.gap {
			w.line.WriteString(w.look.paint(g.role, g.text))
		}
		w.put(s.role, s.text)
		w.used += blanks + n
		w.gap = w.gap[:0]
		return
	}
	w.gap = w.gap[:0]
	for s.text != "" {
		part := fit(s.text, w.limit-w.used)
		switch {
		case part != "":
			w.put(s.role, part)
			w.used += width(part)
			s.text = s.text[len(part):]
		case w.used > width(w.hang):
			w.turn()
		default: // a character wider than the whole line
			_, size := utf8.DecodeRuneInString(s.text)
			s.text = s.text[size:]
		}
	}
}

// put paints a piece of a word.
func (w *wrapper) put(r role, s string) {
	if w.link == "" {
		w.line.WriteString(w.look.paint(r, s))
		return
	}
	w.line.WriteString(ansi.SetHyperlink(w.link) + w.look.paint(r, s) + ansi.ResetHyperlink())
}

// turn begins a new line.
func (w *wrapper) turn() {
	w.lines = append(w.lines, w.line.String())
	w.line.Reset()
	w.line.WriteString(w.hang)
	w.used = width(w.hang)
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
		part := ansi.Truncate(head(s, n*perCell+16), n, "")
		if width(part) >= n-1 { // a wide character may not fit the last cell
			return part
		}
	}
	return ansi.Truncate(s, n, "")
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
	w := ansi.StringWidth(s)
	switch {
	case w > n:
		return ansi.Truncate(s, n, "")
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
	return ansi.Truncate(s, n, l.dots)
}
