package org

import (
	"iter"
	"slices"
	"strings"
)

// Headline is a handle on one headline of a File. The zero value is not usable.
type Headline struct {
	f *File
	i int
}

// Property is one line of a property drawer, key and value as written.
type Property struct{ Key, Value string }

func (h Headline) head() *head { return &h.f.heads[h.i] }

func (h Headline) span(from, to uint32) Span {
	b := h.head().beg
	return Span{b + int(from), b + int(to)}
}

func (h Headline) text(from, to uint32) string { return h.f.Text(h.span(from, to)) }

// File is the file the headline belongs to.
func (h Headline) File() *File { return h.f }

// Index is the headline's number in document order.
func (h Headline) Index() int { return h.i }

// Stars is the number of stars written.
func (h Headline) Stars() int { return int(h.head().level) }

// Level is the outline level: the stars, or with "#+STARTUP: odd" about half of them.
func (h Headline) Level() int {
	if h.f.set.odd {
		return h.Stars()/2 + 1
	}
	return h.Stars()
}

// Todo is the TODO keyword, or "".
func (h Headline) Todo() string { return h.text(h.head().todoBeg, h.head().todoEnd) }

// Done reports whether the TODO keyword means done.
func (h Headline) Done() bool { return h.head().done }

// Priority is the character of the priority cookie, or "". It is one character
// because that is all Emacs 9.7 reads; "[#10]" is part of the title.
func (h Headline) Priority() string { return h.text(h.head().prioBeg, h.head().prioEnd) }

// Commented reports whether the title is preceded by the word COMMENT.
func (h Headline) Commented() bool { return h.head().comment != 0 }

// Title is the raw title: no stars, keyword, priority, COMMENT or tags.
func (h Headline) Title() string { return h.text(h.head().titleBeg, h.head().titleEnd) }

// TitleSpan is where the title stands.
func (h Headline) TitleSpan() Span { return h.span(h.head().titleBeg, h.head().titleEnd) }

// Tags are the headline's own tags in order.
func (h Headline) Tags() []string {
	if h.head().tagsEnd == 0 {
		return nil
	}
	return splitTags(h.text(h.head().tagsBeg, h.head().tagsEnd))
}

// AllTags are the file's tags, the ancestors' outermost first, then the
// headline's own; of duplicates the last is kept, as org-get-tags does.
func (h Headline) AllTags() []string {
	chain := [][]string{h.Tags()}
	for p, ok := h.Parent(); ok; p, ok = p.Parent() {
		if t := p.Tags(); t != nil {
			chain = append(chain, t)
		}
	}
	chain = append(chain, h.f.set.fileTags)
	var out []string // built last to first
	seen := map[string]bool{}
	for _, tags := range chain {
		for _, t := range slices.Backward(tags) {
			if !seen[t] {
				seen[t] = true
				out = append(out, t)
			}
		}
	}
	slices.Reverse(out)
	return out
}

// Archived reports whether the headline carries the ARCHIVE tag itself.
func (h Headline) Archived() bool { return slices.Contains(h.Tags(), "ARCHIVE") }

// Scheduled is the SCHEDULED timestamp, zero if there is none.
func (h Headline) Scheduled() Timestamp { return h.planned("SCHEDULED:") }

// Deadline is the DEADLINE timestamp, zero if there is none.
func (h Headline) Deadline() Timestamp { return h.planned("DEADLINE:") }

// Closed is the CLOSED timestamp, zero if there is none.
func (h Headline) Closed() Timestamp { return h.planned("CLOSED:") }

// planned parses one entry of the planning line; a timestamp that Org accepts
// but no calendar holds keeps its Raw text.
func (h Headline) planned(word string) Timestamp {
	raw := h.plannedRaw(word)
	t, err := ParseTimestamp(raw)
	if err != nil {
		t.Raw = raw
	}
	return t
}

func (h Headline) plannedRaw(word string) string {
	raw := ""
	h.eachPlan(func(w string, s Span) {
		if planWord(w) == word {
			raw = h.f.Text(s)
		}
	})
	return raw
}

// planWord maps a planning word to the one Emacs takes it for: words are found
// in any case, but only upper case ones are told apart.
func planWord(w string) string {
	if w == "SCHEDULED:" || w == "DEADLINE:" {
		return w
	}
	return "CLOSED:"
}

// eachPlan calls fn for every entry of the planning line with its word and the
// span of its timestamp, empty if none follows the word.
func (h Headline) eachPlan(fn func(word string, stamp Span)) {
	if h.head().planEnd == 0 {
		return
	}
	s := h.span(h.head().lineNext, h.head().planEnd)
	b := h.f.src
	for p := s.Start; p < s.End; p++ {
		if !asciiLetter(b[p]) {
			continue
		}
		for _, w := range []string{"SCHEDULED:", "DEADLINE:", "CLOSED:"} {
			if !hasFold(b[:s.End], p, w) {
				continue
			}
			v := skipBlank(b, p+len(w), s.End)
			n := stampLen(b[v:s.End])
			fn(string(b[p:p+len(w)]), Span{v, v + n})
			p = v + max(n, 1) - 1
			break
		}
	}
}

// Properties are the pairs of the property drawer, as written.
func (h Headline) Properties() []Property { return h.f.drawerProps(h.drawer()) }

// drawer is the span of the property drawer with its first and last line.
func (h Headline) drawer() Span {
	if h.head().drawerBeg == 0 {
		return Span{}
	}
	return h.span(h.head().drawerBeg, h.head().body)
}

// drawerProps reads the properties of a drawer found by propDrawer.
func (f *File) drawerProps(d Span) []Property {
	var out []Property
	f.eachProp(d, func(_, key, value Span) {
		out = append(out, Property{f.Text(key), f.Text(value)})
	})
	return out
}

func (f *File) eachProp(d Span, fn func(line, key, value Span)) {
	if d.Empty() {
		return
	}
	_, p := f.eol(d.Start)
	for p < d.End {
		e, n := f.eol(p)
		key, value, ok := propLine(f.src, skipBlank(f.src, p, e), e)
		if n == d.End || !ok { // the :END: line
			return
		}
		fn(Span{p, n}, key, value)
		p = n
	}
}

// ID is the ID property, or "".
func (h Headline) ID() string { return firstID(h.Properties()) }

func firstID(props []Property) string {
	for _, p := range props {
		if strings.EqualFold(p.Key, "ID") {
			return p.Value
		}
	}
	return ""
}

// Property is the value of the headline's own property, its "KEY+" lines
// appended, in any letter case.
func (h Headline) Property(key string) (string, bool) { return lookup(h.Properties(), key) }

// lookup resolves a key in one drawer: KEY sets, KEY+ appends with a space.
func lookup(props []Property, key string) (string, bool) {
	value, found := "", false
	for _, p := range props {
		name, more := strings.CutSuffix(p.Key, "+")
		switch {
		case !strings.EqualFold(name, key):
		case more && found && value != "":
			value += " " + p.Value
		default:
			value, found = p.Value, true
		}
	}
	return value, found
}

// Inherited is the property of the headline or of the nearest ancestor that has
// it, then of the file drawer, then of a #+PROPERTY line. "KEY+" without a KEY
// of its own adds to what is inherited.
func (h Headline) Inherited(key string) (string, bool) {
	var parts []string
	for g, ok := h, true; ok; g, ok = g.Parent() {
		props := g.Properties()
		if v, found := lookup(props, key); found {
			parts = append(parts, v)
			if hasPlainKey(props, key) {
				return joinBackward(parts), true
			}
		}
	}
	if v, found := h.f.Property(key); found {
		parts = append(parts, v)
	}
	return joinBackward(parts), len(parts) > 0
}

// Property is a file-wide property: file drawer first, then #+PROPERTY lines.
func (f *File) Property(key string) (string, bool) {
	if v, ok := lookup(f.Properties(), key); ok {
		return v, true
	}
	return lookup(f.set.props, key)
}

func hasPlainKey(props []Property, key string) bool {
	return slices.ContainsFunc(props, func(p Property) bool { return strings.EqualFold(p.Key, key) })
}

func joinBackward(parts []string) string {
	slices.Reverse(parts)
	return strings.Join(parts, " ")
}

// Category is the inherited CATEGORY property, or the file's #+CATEGORY, or "".
func (h Headline) Category() string {
	if v, ok := h.Inherited("CATEGORY"); ok {
		return v
	}
	return h.f.set.category
}

// LineSpan is the headline line without its line end.
func (h Headline) LineSpan() Span { return h.span(0, h.head().lineEnd) }

// Span is the whole subtree.
func (h Headline) Span() Span { return Span{h.head().beg, h.f.headStart(int(h.head().after))} }

// SectionSpan is the headline with its own text, up to the next headline of any level.
func (h Headline) SectionSpan() Span { return Span{h.head().beg, h.f.headStart(h.i + 1)} }

// BodySpan is the headline's own text after the planning line and property
// drawer, up to the next headline of any level.
func (h Headline) BodySpan() Span {
	end := h.f.headStart(h.i + 1)
	return Span{min(h.head().beg+int(h.head().body), end), end}
}

// Body is the text of BodySpan.
func (h Headline) Body() string { return h.f.Text(h.BodySpan()) }

// Parent is the enclosing headline; false at the top.
func (h Headline) Parent() (Headline, bool) {
	p := int(h.head().parent)
	return Headline{h.f, p}, p >= 0
}

// Children yields the direct children in order.
func (h Headline) Children() iter.Seq[Headline] {
	return h.f.siblings(h.i+1, int(h.head().after))
}

// Subtree yields the headline and all its descendants in document order.
func (h Headline) Subtree() iter.Seq[Headline] {
	return func(yield func(Headline) bool) {
		for i := h.i; i < int(h.head().after); i++ {
			if !yield(Headline{h.f, i}) {
				return
			}
		}
	}
}

// Path is the titles from the outermost ancestor to the headline itself.
func (h Headline) Path() []string {
	path := []string{h.Title()}
	for p, ok := h.Parent(); ok; p, ok = p.Parent() {
		path = append(path, p.Title())
	}
	slices.Reverse(path)
	return path
}
