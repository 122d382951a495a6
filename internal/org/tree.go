package org

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Entry is a headline to be written. Only Title is needed.
type Entry struct {
	Todo, Priority, Title          string
	Tags                           []string
	Scheduled, Deadline, ClosedRaw string // timestamps as written
	Properties                     []Property
	Body                           string
}

// Format prints the entry as Org text at the level, with LF line ends.
func (e Entry) Format(level int) string {
	var sb strings.Builder
	sb.WriteString(strings.Repeat("*", max(1, level)))
	if e.Todo != "" {
		sb.WriteString(" " + e.Todo)
	}
	if e.Priority != "" {
		sb.WriteString(" [#" + e.Priority + "]")
	}
	sb.WriteString(" " + strings.Join(strings.Fields(e.Title), " "))
	if len(e.Tags) > 0 {
		sb.WriteString(" :" + strings.Join(e.Tags, ":") + ":")
	}
	sb.WriteByte('\n')
	var plan []string
	for _, p := range []struct{ word, raw string }{{closedWord, e.ClosedRaw}, {deadlineWord, e.Deadline}, {scheduledWord, e.Scheduled}} {
		if p.raw != "" {
			plan = append(plan, p.word+" "+p.raw)
		}
	}
	if len(plan) > 0 {
		sb.WriteString(strings.Join(plan, " ") + "\n")
	}
	if len(e.Properties) > 0 {
		sb.WriteString(":PROPERTIES:\n")
		for _, p := range e.Properties {
			sb.WriteString(propertyLine("", p.Key, p.Value, false) + "\n")
		}
		sb.WriteString(":END:\n")
	}
	if e.Body != "" {
		sb.WriteString(EscapeBody(strings.TrimRight(e.Body, "\n")) + "\n")
	}
	return sb.String()
}

// EscapeBody puts a comma before every line that would be read as a headline, as
// Org itself does in blocks.
func EscapeBody(body string) string {
	lines := strings.SplitAfter(body, "\n")
	for i, l := range lines {
		if s := strings.TrimLeft(l, "*"); len(s) < len(l) && strings.HasPrefix(s, " ") {
			lines[i] = "," + l
		}
	}
	return strings.Join(lines, "")
}

// Append adds text, one or more subtrees, at the end of the file on level one.
func (f *File) Append(text string) ([]Patch, error) { return f.insert(f.textEnd(), 1, text) }

// AppendChild adds text, one or more subtrees, as the headline's last children.
func (h Headline) AppendChild(text string) ([]Patch, error) {
	return h.f.insert(h.treeSpan().End, h.Stars()+h.f.step(), text)
}

// InsertAfter adds text, one or more subtrees, as the next siblings of the headline.
func (h Headline) InsertAfter(text string) ([]Patch, error) {
	return h.f.insert(h.treeSpan().End, h.Stars(), text)
}

// textEnd is where the file's text ends: before a closing "# Local Variables:"
// block, which belongs to the file and not to its last subtree.
func (f *File) textEnd() int {
	const reach = 3000 // as far from the end as Emacs looks
	last := f.bom
	if n := len(f.heads); n > 0 {
		last = f.heads[n-1].beg
	}
	end := len(f.src)
	for p := max(last, end-reach); ; {
		j := bytes.Index(f.src[p:], []byte("Local Variables:"))
		if j < 0 {
			return end
		}
		p += j
		line := bytes.LastIndexByte(f.src[:p], '\n') + 1
		if mark := bytes.TrimLeft(f.src[line:p], " \t"); len(mark) > 1 && mark[0] == '#' && len(bytes.TrimLeft(mark[1:], " ")) == 0 && line > last {
			return line
		}
		p++
	}
}

// treeSpan is the subtree without a closing "# Local Variables:" block.
func (h Headline) treeSpan() Span {
	s := h.Span()
	if s.End == len(h.f.src) {
		s.End = h.f.textEnd()
	}
	return s
}

// step is the number of stars from one level to the next.
func (f *File) step() int {
	if f.set.odd {
		return 2
	}
	return 1
}

// insert writes subtrees at p, a headline start or the end of the file, shifted
// so that the first is at the level.
func (f *File) insert(p, level int, text string) ([]Patch, error) {
	if err := f.Editable(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEdit, err)
	}
	if !plainText([]byte(text)) {
		return nil, refuse("the text to insert is not UTF-8")
	}
	text, err := f.relevel(text, level)
	if err != nil {
		return nil, err
	}
	if p > f.bom && f.src[p-1] != '\n' {
		text = f.EOL() + text
	}
	return []Patch{{p, p, []byte(text)}}, nil
}

// relevel shifts all headlines of text so that the first has the level, and
// gives it the file's line ends.
func (f *File) relevel(text string, level int) (string, error) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	g := Parse([]byte(text))
	if g.Len() == 0 || g.Headline(0).Span().Start != 0 {
		return "", refuse("text to insert must start with a headline")
	}
	delta := level - g.Headline(0).Stars()
	var sb strings.Builder
	for h := range g.Headlines() {
		if h.Stars()+delta < level {
			return "", refuse("headline %q is above the first one", h.Title())
		}
		sb.WriteString(strings.Repeat("*", h.Stars()+delta))
		s := h.SectionSpan()
		sb.Write(g.src[s.Start+h.Stars() : s.End])
	}
	out := sb.String()
	if !strings.HasSuffix(out, "\n") {
		out += "\n"
	}
	if f.crlf {
		out = strings.ReplaceAll(out, "\n", "\r\n")
	}
	return out, nil
}

// Delete removes the subtree.
func (h Headline) Delete() ([]Patch, error) {
	if err := h.f.Editable(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEdit, err)
	}
	s := h.treeSpan()
	return []Patch{{Start: s.Start, End: s.End}}, nil
}

// Shift demotes the subtree by levels, or promotes it if negative. Bodies are
// not re-indented.
func (h Headline) Shift(levels int) ([]Patch, error) {
	if err := h.f.Editable(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEdit, err)
	}
	delta := levels * h.f.step()
	if h.Stars()+delta < 1 {
		return nil, refuse("a headline of level %d cannot be promoted by %d", h.Level(), -levels)
	}
	var out []Patch
	for c := range h.Subtree() {
		at := c.Span().Start
		if delta >= 0 {
			out = append(out, Patch{at, at, bytes.Repeat([]byte("*"), delta)})
		} else {
			out = append(out, Patch{Start: at, End: at - delta})
		}
	}
	return out, nil
}

// Refile moves the subtree to be the last child of target, in the same file. For
// another file, AppendChild there and Delete here.
func (h Headline) Refile(target Headline) ([]Patch, error) {
	if h.f != target.f {
		return nil, refuse("the target belongs to another file")
	}
	s := h.treeSpan()
	if target.i >= h.i && target.i < int(h.head().after) {
		return nil, refuse("%q cannot be moved into itself", h.Title())
	}
	in, err := target.AppendChild(h.f.Text(s))
	if err != nil {
		return nil, err
	}
	return h.f.move(s, in[0]), nil
}

// move combines a removal and an insertion; where they touch they become one patch.
func (f *File) move(cut Span, in Patch) []Patch {
	switch {
	case in.Start == cut.Start || in.Start == cut.End:
		return diff(f.src[cut.Start:cut.End], in.Text, cut.Start)
	case in.Start < cut.Start:
		return []Patch{in, {Start: cut.Start, End: cut.End}}
	}
	return []Patch{{Start: cut.Start, End: cut.End}, in}
}

// Move exchanges the subtree with its next sibling, or with the previous one if up.
func (h Headline) Move(up bool) ([]Patch, error) {
	if err := h.f.Editable(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEdit, err)
	}
	a, b, found := h, h, false
	for c := range h.siblingSeq() {
		if up && c.i < h.i {
			a, found = c, true
		}
		if !up && c.i > h.i {
			b, found = c, true
			break
		}
	}
	if !found || a.Stars() != b.Stars() {
		return nil, refuse("%q has no sibling on that side", h.Title())
	}
	s := Span{a.Span().Start, b.treeSpan().End}
	text := h.f.joinSubtrees([]Headline{b, a}, s.End)
	return diff(h.f.src[s.Start:s.End], text, s.Start), nil
}

func (h Headline) siblingSeq() func(func(Headline) bool) {
	if p, ok := h.Parent(); ok {
		return p.Children()
	}
	return h.f.Top()
}

// joinSubtrees is the text of the subtrees in the order given, none reaching
// beyond limit; a line end missing at the end of the file stays missing there and
// nowhere else.
func (f *File) joinSubtrees(hs []Headline, limit int) []byte {
	var out []byte
	missing := false
	for i, h := range hs {
		s := h.treeSpan()
		s.End = min(s.End, limit)
		out = append(out, f.src[s.Start:s.End]...)
		if s.End == len(f.src) && f.src[s.End-1] != '\n' && i < len(hs)-1 {
			missing = true
			out = append(out, f.EOL()...)
		}
	}
	if missing {
		out = bytes.TrimSuffix(out, []byte(f.EOL()))
	}
	return out
}

// SortKey is what siblings are sorted by.
type SortKey uint8

// The zero SortKey is invalid.
const (
	SortTitle SortKey = iota + 1 // letter case ignored
	SortTodo                     // open ones in the file's order, then none, then done
	SortPriority
	SortScheduled // without one last
	SortDeadline
)

// Sort orders the headline's children; equal ones keep their order.
func (h Headline) Sort(key SortKey, reverse bool) ([]Patch, error) {
	return h.f.sort(slices.Collect(h.Children()), key, reverse)
}

// Sort orders the top-level headlines.
func (f *File) Sort(key SortKey, reverse bool) ([]Patch, error) {
	return f.sort(slices.Collect(f.Top()), key, reverse)
}

func (f *File) sort(hs []Headline, key SortKey, reverse bool) ([]Patch, error) {
	if err := f.Editable(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEdit, err)
	}
	order := f.sortOrder(key)
	if order == nil {
		return nil, refuse("unknown sort key %d", key)
	}
	if len(hs) < 2 {
		return nil, nil
	}
	if i := slices.IndexFunc(hs, func(h Headline) bool { return h.Stars() != hs[0].Stars() }); i >= 0 {
		return nil, refuse("%q is not on the level of %q", hs[i].Title(), hs[0].Title())
	}
	s := Span{hs[0].Span().Start, f.sortEnd(hs[len(hs)-1])}
	slices.SortStableFunc(hs, func(a, b Headline) int {
		if reverse {
			a, b = b, a
		}
		return order(a, b)
	})
	return diff(f.src[s.Start:s.End], f.joinSubtrees(hs, s.End), s.Start), nil
}

// sortEnd is the end of the last sibling without the blank lines, all but one,
// that close the list: they stay at its end.
func (f *File) sortEnd(last Headline) int {
	s := last.treeSpan()
	end, lines := s.End, 0
	for p := s.End; p > s.Start; p = end {
		line := f.lineBefore(p)
		if e, _ := f.eol(line); skipBlank(f.src, line, e) < e {
			break
		}
		end = line
		lines++
	}
	if lines == 0 {
		return s.End
	}
	_, end = f.eol(end)
	return end
}

func (f *File) sortOrder(key SortKey) func(a, b Headline) int {
	by := func(of func(Headline) string) func(a, b Headline) int {
		return func(a, b Headline) int { return strings.Compare(of(a), of(b)) }
	}
	const last = "~" // after every digit
	stamp := func(t Timestamp) string {
		if t.IsZero() {
			return last
		}
		return t.Start.Format("2006-01-02 15:04")
	}
	switch key {
	case SortTitle:
		return by(func(h Headline) string { return strings.ToLower(h.Title()) })
	case SortTodo:
		rank := func(h Headline) int {
			n := max(0, slices.Index(f.set.todo, h.Todo())) - len(f.set.todo)
			switch {
			case h.Todo() == "":
				return 0
			case h.Done():
				return -n
			}
			return n
		}
		return func(a, b Headline) int { return cmp.Compare(rank(a), rank(b)) }
	case SortPriority:
		return by(func(h Headline) string {
			if p := h.Priority(); p != "" {
				return p
			}
			return string(f.set.priorities[2])
		})
	case SortScheduled:
		return by(func(h Headline) string { return stamp(h.Scheduled()) })
	case SortDeadline:
		return by(func(h Headline) string { return stamp(h.Deadline()) })
	}
	return nil
}

// Archive removes the subtree and returns it as a level-one subtree for the
// archive file, with the properties Emacs leaves there. file is the name to
// record for the file it came from.
func (h Headline) Archive(at time.Time, file string) (patches []Patch, text string, err error) {
	patches, err = h.Delete()
	if err != nil {
		return nil, "", err
	}
	patches = append(patches, h.countParent("", true)...)
	text, err = (&File{set: h.f.set}).relevel(h.f.Text(h.treeSpan()), 1)
	if err != nil {
		return nil, "", err
	}
	g := Parse([]byte(text))
	g.set = h.f.set // the keywords mean what they meant at home
	for i := range g.heads {
		parseHead(g, &g.heads[i])
	}
	props := h.archiveProperties(at, file)
	out, err := g.Headline(0).edit(func(s *section) error {
		for _, p := range props {
			s.setProperty(p.Key, p.Value)
		}
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	return patches, string(g.splice(out)), nil
}

// plainTitle is the title as an outline path shows it: no statistics cookies,
// links by their description.
func (h Headline) plainTitle() string {
	t := &titleSink{f: h.f, at: h.TitleSpan().Start}
	w := walker{f: h.f, out: t}
	w.objects(h.TitleSpan().Start, h.TitleSpan().End, inTitle)
	t.copyTo(h.TitleSpan().End)
	return strings.TrimSpace(t.text.String())
}

// titleSink copies text and leaves out link markup and cookies.
type titleSink struct {
	f    *File
	at   int
	text strings.Builder
}

func (t *titleSink) copyTo(end int) {
	if end > t.at {
		t.text.Write(t.f.src[t.at:end])
		t.at = end
	}
}

func (t *titleSink) open(n *node) {
	switch {
	case n.kind == kindCookie:
		t.copyTo(n.span.Start)
		t.at = n.span.End
	case n.kind == kindLink && !n.inner.Empty():
		t.copyTo(n.span.Start)
		t.at = n.inner.Start
	}
}

func (t *titleSink) shut(n *node) {
	if n.kind == kindLink && !n.inner.Empty() {
		t.copyTo(n.inner.End)
		t.at = n.span.End
	}
}

func (h Headline) archiveProperties(at time.Time, file string) []Property {
	var olpath, inherited []string
	own := h.Tags()
	for _, t := range h.AllTags() {
		if !slices.Contains(own, t) {
			inherited = append(inherited, t)
		}
	}
	if p, ok := h.Parent(); ok {
		for g, more := p, true; more; g, more = g.Parent() {
			olpath = append(olpath, g.plainTitle())
		}
		slices.Reverse(olpath)
	}
	category := h.Category()
	if category == "" {
		base := path.Base(file)
		category = strings.TrimSuffix(base, path.Ext(base))
	}
	var out []Property
	for _, p := range []Property{
		{"ARCHIVE_TIME", at.Format("2006-01-02 Mon 15:04")},
		{"ARCHIVE_FILE", file},
		{"ARCHIVE_OLPATH", strings.Join(olpath, "/")},
		{"ARCHIVE_CATEGORY", category},
		{"ARCHIVE_TODO", h.Todo()},
		{"ARCHIVE_ITAGS", strings.Join(inherited, " ")},
	} {
		if p.Value != "" && utf8.ValidString(p.Value) {
			out = append(out, p)
		}
	}
	return out
}
