package org

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// ErrEdit means the edit asked for cannot be written as Org: nothing was changed.
var ErrEdit = errors.New("edit refused")

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrEdit}, args...)...)
}

// section is a headline's own text while it is being edited: a file of that one
// headline under the settings of the whole. Steps work on it one after another
// and patches come from comparing the outcome with the original, so a step need
// not know what the others did.
type section struct {
	*File
	whole Headline // where the section comes from
}

// edit runs the steps on a copy of the section and returns the patches.
func (h Headline) edit(steps ...func(*section) error) ([]Patch, error) {
	if err := h.f.Editable(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEdit, err)
	}
	span := h.SectionSpan()
	old := h.f.src[span.Start:span.End]
	s := &section{File: &File{src: slices.Clone(old), crlf: h.f.crlf, set: h.f.set}, whole: h}
	s.parse()
	for _, step := range steps {
		if err := step(s); err != nil {
			return nil, err
		}
	}
	if !plainText(s.src) { // it would make the file one that cannot be edited again
		return nil, refuse("the text to write is not UTF-8, or holds a zero byte")
	}
	return diff(old, s.src, span.Start), nil
}

func (s *section) parse() {
	s.heads = findHeads(s.File, s.heads[:0], 0, len(s.src))
	link(s.heads)
	for i := range s.heads {
		parseHead(s.File, &s.heads[i])
	}
}

func (s *section) h() Headline { return Headline{s.File, 0} }

// put replaces a span and reads the section again.
func (s *section) put(at Span, text string) {
	s.src = slices.Concat(s.src[:at.Start], []byte(text), s.src[at.End:])
	s.parse()
}

// diff returns patches, offset by base, that turn old into text. A small middle
// is compared line by line so that two distant changes stay two patches.
func diff(old, text []byte, base int) []Patch {
	a, z := commonEnds(old, text)
	o, t := old[a:len(old)-z], text[a:len(text)-z]
	if len(o) == 0 && len(t) == 0 {
		return nil
	}
	ol, tl := splitLines(o), splitLines(t)
	if len(ol) > maxDiffLines || len(tl) > maxDiffLines {
		return []Patch{{base + a, base + a + len(o), bytes.Clone(t)}}
	}
	var out []Patch
	at := base + a
	for _, hunk := range lineHunks(ol, tl) {
		for _, l := range hunk.keep {
			at += len(l)
		}
		x, y := bytes.Join(hunk.old, nil), bytes.Join(hunk.text, nil)
		p, q := commonEnds(x, y)
		if p < len(x)-q || p < len(y)-q {
			out = append(out, Patch{at + p, at + len(x) - q, bytes.Clone(y[p : len(y)-q])})
		}
		at += len(x)
	}
	return out
}

const maxDiffLines = 64

// commonEnds is the length of the common prefix and of the common suffix, not
// overlapping and never inside a character.
func commonEnds(a, b []byte) (prefix, suffix int) {
	n := min(len(a), len(b))
	for prefix < n && a[prefix] == b[prefix] {
		prefix++
	}
	for prefix > 0 && (prefix < len(a) && !utf8.RuneStart(a[prefix]) || prefix < len(b) && !utf8.RuneStart(b[prefix])) {
		prefix--
	}
	for suffix < n-prefix && a[len(a)-1-suffix] == b[len(b)-1-suffix] {
		suffix++
	}
	for suffix > 0 && !utf8.RuneStart(a[len(a)-suffix]) {
		suffix--
	}
	return prefix, suffix
}

func splitLines(b []byte) [][]byte {
	lines := bytes.SplitAfter(b, []byte("\n"))
	if n := len(lines); len(lines[n-1]) == 0 {
		lines = lines[:n-1]
	}
	return lines
}

type hunk struct{ keep, old, text [][]byte }

// lineHunks aligns two short lists of lines by their longest common subsequence.
func lineHunks(a, b [][]byte) []hunk {
	best := make([][]int, len(a)+1)
	for i := range best {
		best[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if bytes.Equal(a[i], b[j]) {
				best[i][j] = best[i+1][j+1] + 1
			} else {
				best[i][j] = max(best[i+1][j], best[i][j+1])
			}
		}
	}
	var out []hunk
	for i, j := 0, 0; i < len(a) || j < len(b); {
		var h hunk
		for i < len(a) && j < len(b) && bytes.Equal(a[i], b[j]) {
			h.keep = append(h.keep, a[i])
			i, j = i+1, j+1
		}
		for i < len(a) || j < len(b) {
			if i < len(a) && j < len(b) && bytes.Equal(a[i], b[j]) {
				break
			}
			if j == len(b) || i < len(a) && best[i+1][j] >= best[i][j+1] {
				h.old = append(h.old, a[i])
				i++
			} else {
				h.text = append(h.text, b[j])
				j++
			}
		}
		out = append(out, h)
	}
	return out
}

// SetTitle replaces the title and leaves everything around it.
func (h Headline) SetTitle(title string) ([]Patch, error) {
	title = strings.TrimSpace(title)
	if strings.ContainsAny(title, "\n\r") {
		return nil, refuse("a title is one line, not %q", title)
	}
	return h.edit(func(s *section) error {
		hd := s.h().head()
		at := s.h().TitleSpan()
		text := title
		switch {
		case at.Empty() && hd.tagsEnd != 0 && at.Start == int(hd.tagsBeg):
			text += " "
		case title == "" && hd.tagsEnd != 0:
			at.End = int(hd.tagsBeg)
		}
		if at.Empty() && at.Start > 0 && !blank(s.src[at.Start-1]) {
			text = " " + text
		}
		s.put(at, text)
		if got := s.h(); got.Title() != title || got.Todo() != h.Todo() || got.Priority() != h.Priority() ||
			got.Commented() != h.Commented() || !slices.Equal(got.Tags(), h.Tags()) {
			return refuse("the title %q would be read as something else in this place", title)
		}
		return nil
	})
}

// SetPriority sets the priority to one character, or removes it with "".
func (h Headline) SetPriority(priority string) ([]Patch, error) {
	if n := utf8.RuneCountInString(priority); n > 1 || priority == "]" || strings.ContainsAny(priority, " \t\r\n") {
		return nil, refuse("a priority is one character, not %q", priority)
	}
	return h.edit(func(s *section) error {
		hd := s.h().head()
		cookie := Span{int(hd.prioBeg) - 2, int(hd.prioEnd) + 1}
		switch {
		case hd.prioEnd != 0 && priority != "":
			s.put(Span{int(hd.prioBeg), int(hd.prioEnd)}, priority)
		case hd.prioEnd != 0:
			if e := cookie.End; e < int(hd.lineEnd) && s.src[e] == ' ' {
				cookie.End++
			}
			s.put(cookie, "")
		case priority != "":
			p := skipBlank(s.src, int(hd.todoEnd), int(hd.lineEnd))
			gap := ""
			if !blank(s.src[p-1]) {
				gap = " "
			}
			s.put(Span{p, p}, gap+"[#"+priority+"] ")
		}
		return nil
	})
}

// SetTags replaces the headline's own tags. The gap before existing tags stays.
func (h Headline) SetTags(tags []string) ([]Patch, error) {
	for _, t := range tags {
		if t == "" || strings.Contains(t, ":") || strings.ContainsFunc(t, func(r rune) bool { return !tagChar(r) }) {
			return nil, refuse("tag %q must be letters, digits, _ @ # %%", t)
		}
	}
	return h.edit(func(s *section) error {
		hd := s.h().head()
		text := ""
		if len(tags) > 0 {
			text = ":" + strings.Join(tags, ":") + ":"
		}
		switch {
		case hd.tagsEnd != 0 && text != "":
			s.put(Span{int(hd.tagsBeg), int(hd.tagsEnd)}, text)
		case hd.tagsEnd != 0:
			s.put(Span{trimRight(s.src, int(hd.level)+1, int(hd.tagsBeg)), int(hd.lineEnd)}, "")
		case text != "":
			e := int(hd.lineEnd)
			t := trimRight(s.src, int(hd.level)+1, e)
			if t > int(hd.level)+1 {
				text = " " + text
			}
			s.put(Span{t, e}, text)
		}
		return nil
	})
}

// SetBody replaces the text between the headline's properties and the next
// headline. The text must not hold a headline; it gets the file's line ends, and a
// final one if that is missing.
func (h Headline) SetBody(body string) ([]Patch, error) {
	return h.edit(func(s *section) error {
		body = s.withLineEnds(body)
		if body != "" && !strings.HasSuffix(body, "\n") {
			body += s.EOL()
		}
		at := s.h().BodySpan()
		if at.Start == len(s.src) && body != "" && !bytes.HasSuffix(s.src, []byte("\n")) {
			body = s.EOL() + body
		}
		meta := *s.h().head()
		s.put(at, body)
		if len(s.heads) != 1 {
			return refuse("a body cannot hold a headline; start the line with a comma or insert a subtree")
		}
		if got := s.h().head(); got.body != meta.body && at.Start != len(s.src)-len(body) || got.drawerBeg != meta.drawerBeg || got.planEnd != meta.planEnd {
			return refuse("the body starts like a planning line or property drawer")
		}
		return nil
	})
}

// withLineEnds is a text with the line ends of the file: one bare LF would turn
// every CR of a CR LF file into text. Where a CR is text already it stays.
func (s *section) withLineEnds(text string) string {
	if !s.crlf && bytes.IndexByte(s.src, '\r') >= 0 {
		return text
	}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if s.crlf {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	return text
}

// SetProperty sets a property in the headline's drawer, making the drawer if
// there is none. An existing line keeps its indentation and gap.
func (h Headline) SetProperty(key, value string) ([]Patch, error) {
	if err := checkProperty(key, value); err != nil {
		return nil, err
	}
	return h.edit(func(s *section) error { s.setProperty(key, value); return nil })
}

func checkProperty(key, value string) error {
	if key == "" || strings.ContainsFunc(key, spaceChar) || strings.EqualFold(key, "END") || strings.HasSuffix(key, ":") {
		return refuse("property key %q is not one word", key)
	}
	if strings.ContainsAny(value, "\n\r") || value != strings.Trim(value, " \t") {
		return refuse("property value %q is not one trimmed line", value)
	}
	return nil
}

// SetID is SetProperty for ID; it refuses to replace an id, because links hold on to it.
func (h Headline) SetID(id string) ([]Patch, error) {
	if old := h.ID(); old != "" && old != id {
		return nil, refuse("the headline already has the id %q", old)
	}
	return h.SetProperty("ID", id)
}

// RemoveProperty removes all lines of a property, and the drawer with its last one.
func (h Headline) RemoveProperty(key string) ([]Patch, error) {
	return h.edit(func(s *section) error {
		for {
			at, left := Span{}, 0
			s.eachProp(s.h().drawer(), func(line, k, _ Span) {
				left++
				if name := strings.TrimSuffix(s.Text(k), "+"); at.Empty() && strings.EqualFold(name, key) {
					at = line
				}
			})
			switch {
			case at.Empty():
				return nil
			case left == 1:
				s.put(s.h().drawer(), "")
				return nil
			}
			s.put(at, "")
		}
	})
}

// setProperty writes one property; key and value are checked.
func (s *section) setProperty(key, value string) {
	d := s.h().drawer()
	if d.Empty() {
		s.putLines(s.metaEnd(), propertyLine("", key, value, false))
		return
	}
	var found Span
	tight := true
	indent := s.indentAt(d.Start)
	count := 0
	s.eachProp(d, func(line, k, v Span) {
		count++
		indent = s.indentAt(line.Start)
		if !v.Empty() && v.Start-k.End-1 != 1 || v.Start-k.Start >= 10 {
			tight = false
		}
		if found.Empty() && strings.EqualFold(s.Text(k), key) {
			found = Span{k.End + 1, v.End}
			if !v.Empty() {
				found.Start = v.Start
			}
		}
	})
	if found.Empty() {
		last := s.lineBefore(d.End)
		s.put(Span{last, last}, indent+propertyLine("", key, value, tight && count > 0)+s.EOL())
		return
	}
	text := value
	if s.src[found.Start-1] == ':' && value != "" {
		text = " " + value
	}
	if value == "" {
		found.Start = trimRight(s.src, 0, found.Start)
	}
	s.put(found, text)
}

// propertyLine formats a property as Emacs aligns it: the value in the twelfth column.
func propertyLine(indent, key, value string, tight bool) string {
	k := ":" + key + ":"
	if value != "" && !tight {
		k += strings.Repeat(" ", max(0, 10-utf8.RuneCountInString(k)))
	}
	if value != "" {
		k += " " + value
	}
	return indent + k
}

// metaEnd is where a new property drawer goes: after the planning line.
func (s *section) metaEnd() int {
	hd := s.h().head()
	if hd.planEnd != 0 {
		_, n := s.eol(int(hd.lineNext))
		return n
	}
	return int(hd.lineNext)
}

// putLines inserts a property drawer holding one line at p.
func (s *section) putLines(p int, property string) {
	indent := ""
	if hd := s.h().head(); hd.planEnd != 0 {
		indent = s.indentAt(int(hd.lineNext))
	}
	s.insertLines(p, indent+":PROPERTIES:", indent+property, indent+":END:")
}

// insertLines inserts whole lines at p, a line start or the end of the section.
func (s *section) insertLines(p int, lines ...string) {
	eol := s.EOL()
	text := strings.Join(lines, eol)
	if p > 0 && s.src[p-1] != '\n' { // the section's last line has no line end
		s.put(Span{p, p}, eol+text)
		return
	}
	s.put(Span{p, p}, text+eol)
}

// indentAt is the white space at the start of the line at p.
func (f *File) indentAt(p int) string {
	e, _ := f.eol(p)
	return string(f.src[p:skipBlank(f.src, p, e)])
}

// lineBefore is the start of the line that ends at p.
func (f *File) lineBefore(p int) int {
	return bytes.LastIndexByte(f.src[:max(0, p-1)], '\n') + 1
}

// FormatTimestamp prints a time as an Org timestamp, by day or by minute.
func FormatTimestamp(t time.Time, active, withTime bool) string {
	form := "2006-01-02 Mon"
	if withTime {
		form += " 15:04"
	}
	if active {
		return "<" + t.Format(form) + ">"
	}
	return "[" + t.Format(form) + "]"
}
