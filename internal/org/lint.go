package org

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Finding is something in a file that probably does not mean what its writer thinks.
type Finding struct {
	Pos     int    // byte offset
	Code    string // stable name, such as "duplicate-id"
	Message string
}

// Lint looks for mistakes; findings come in file order.
func (f *File) Lint() []Finding {
	l := &linter{f: f}
	l.file()
	l.headlines()
	l.bodies()
	slices.SortStableFunc(l.found, func(a, b Finding) int { return a.Pos - b.Pos })
	return l.found
}

type linter struct {
	f     *File
	found []Finding
}

func (l *linter) report(pos int, code, format string, args ...any) {
	l.found = append(l.found, Finding{pos, code, fmt.Sprintf(format, args...)})
}

// file checks what concerns the bytes as a whole.
func (l *linter) file() {
	f := l.f
	if err := f.Editable(); err != nil {
		pos := 0
		for p := 0; p < len(f.src); {
			r, w := utf8.DecodeRune(f.src[p:])
			if r == utf8.RuneError && w == 1 || r == 0 {
				pos = p
				break
			}
			p += w
		}
		l.report(pos, "encoding", "%v: the file is read but never edited", err)
	}
	if !f.crlf && bytes.Contains(f.src, []byte("\r\n")) {
		l.report(bytes.Index(f.src, []byte("\r\n")), "line-ends", "CR LF among bare LF: Emacs takes the CR for text")
	}
}

func (l *linter) headlines() {
	seen := map[string]int{}
	lines := l.f.Lines()
	level := 0
	for h := range l.f.Headlines() {
		pos := h.Span().Start
		if id := h.ID(); id != "" {
			if first, ok := seen[id]; ok {
				l.report(pos, "duplicate-id", "id %s is already used on line %d", id, first)
			} else {
				seen[id] = lines.At(pos)
			}
		}
		if level > 0 && h.Stars() > level+l.f.step() {
			l.report(pos, "skipped-level", "level jumps from %d to %d stars", level, h.Stars())
		}
		level = h.Stars()
		l.headline(h, pos)
	}
}

func (l *linter) headline(h Headline, pos int) {
	hd := h.head()
	if hd.tagsEnd != 0 && hd.tagsBeg > 0 && !blank(l.f.src[h.span(hd.tagsBeg, 0).Start-1]) {
		l.report(pos, "glued-tags", "no blank between the title and the tags")
	}
	if p := h.Priority(); p != "" && len(p) == 1 {
		if hi, lo := l.f.set.priorities[0], l.f.set.priorities[1]; asciiLetter(p[0]) && (p[0] < hi || p[0] > lo) {
			l.report(pos, "priority-range", "priority %s is outside %c to %c", p, hi, lo)
		}
	}
	if word, _, _ := strings.Cut(h.Title(), " "); h.Todo() == "" && looksTodo(word) {
		l.report(pos, "unknown-keyword", "%s is not a keyword of this file", word)
	}
	h.eachPlan(func(word string, s Span) {
		switch {
		case word != strings.ToUpper(word):
			l.report(s.Start, "planning-case", "%s is read as CLOSED; write it in capitals", word)
		case s.Empty():
			l.report(s.Start, "planning-empty", "%s has no timestamp", word)
		default:
			l.stamp(s.Start, l.f.Text(s))
		}
	})
}

func looksTodo(word string) bool {
	switch word {
	case "TODO", "DONE", "NEXT", "WAITING", "CANCELLED", "CANCELED", "STARTED", "SOMEDAY":
		return true
	}
	return false
}

// bodies checks what the walk of all bodies shows.
func (l *linter) bodies() {
	c := l.f.Contents()
	for _, s := range c.Timestamps {
		l.stamp(s.Span.Start, s.Raw)
	}
	for _, d := range c.Drawers {
		if strings.EqualFold(d.Name, "PROPERTIES") {
			l.report(d.Span.Start, "property-place", "this property drawer does not count: it must follow the headline and its planning line, with only properties in it")
		}
	}
	for _, k := range c.Clocks {
		l.clock(k)
	}
	l.footnotes(c)
	l.lines()
}

// stamp checks the date and its day name.
func (l *linter) stamp(pos int, raw string) {
	t, err := ParseTimestamp(raw)
	if err != nil {
		l.report(pos, "bad-date", "%s is no date of the calendar", raw)
		return
	}
	if t.Diary || t.Start.IsZero() {
		return
	}
	words := strings.Fields(strings.Trim(raw, "<>[]"))
	days := []string{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}
	if len(words) > 1 && slices.Contains(days, words[1]) && words[1] != t.Start.Format("Mon") {
		l.report(pos, "wrong-day", "%s is a %s", words[0], t.Start.Format("Mon"))
	}
}

// clock checks the duration written behind a closed clock.
func (l *linter) clock(k Clock) {
	t, err := ParseTimestamp(k.Raw)
	if k.Raw == "" || err != nil || !t.Range || k.Duration == "" {
		return
	}
	minutes := int(t.End.Sub(t.Start).Minutes())
	if want := fmt.Sprintf("%d:%02d", minutes/60, minutes%60); minutes >= 0 && want != k.Duration {
		l.report(k.Span.Start, "clock-sum", "the clock says %s, its times make %s", k.Duration, want)
	}
}

func (l *linter) footnotes(c *Contents) {
	defined, used := map[string]bool{}, map[string]bool{}
	for _, n := range c.Footnotes {
		inline := !n.Definition && !strings.HasSuffix(l.f.Text(n.Span), n.Label+"]")
		if n.Definition || inline {
			defined[n.Label] = true
		}
		if !n.Definition {
			used[n.Label] = true
		}
	}
	for _, n := range c.Footnotes {
		switch {
		case n.Label == "":
		case n.Definition && !used[n.Label]:
			l.report(n.Span.Start, "unused-footnote", "footnote %s is never referred to", n.Label)
		case !n.Definition && !defined[n.Label]:
			l.report(n.Span.Start, "missing-footnote", "footnote %s is not defined", n.Label)
		}
	}
}

// lines finds openers that nothing closes and lines that almost are something.
func (l *linter) lines() {
	w := walker{f: l.f, out: &unclosed{l}, plain: true}
	w.walkFile()
}

type unclosed struct{ *linter }

func (u *unclosed) shut(*node) {}

// open looks through the lines of a paragraph: an unclosed block or drawer is read as one.
func (u *unclosed) open(n *node) {
	if n.kind != kindParagraph {
		return
	}
	b := u.f.src
	for p := n.span.Start; p < n.span.End; {
		e, next := u.f.eol(p)
		q := skipBlank(b, p, e)
		switch {
		case hasFold(b[:e], q, "#+BEGIN_"):
			u.report(q, "unclosed-block", "%s is never closed", b[q:nonBlankRun(b, q, e)])
		case hasFold(b[:e], q, "#+END_"):
			u.report(q, "stray-end", "%s closes nothing", b[q:nonBlankRun(b, q, e)])
		case drawerName(b, q, e) != nil && !equalFold(drawerName(b, q, e), "END"):
			u.report(q, "unclosed-drawer", "drawer %s is never closed", b[q:trimRight(b, q, e)])
		case p == q && q < e && b[q] == '*' && strings.TrimLeft(string(b[q:e]), "*") == "":
			u.report(q, "bare-stars", "stars without a blank are not a headline")
		}
		p = next
	}
}
