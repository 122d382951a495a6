package org

import (
	"bytes"
	"strings"
)

// Format is what Convert writes.
type Format uint8

// The zero Format is invalid and converts to plain text.
const (
	// HTML is safe to show: everything from the file is escaped, export blocks
	// and snippets are dropped, links go only to http, https, mailto and places
	// in the same page.
	HTML Format = iota + 1
	// Markdown is CommonMark with tables, strikethrough and task lists.
	Markdown
	// PlainText is the text without markup.
	PlainText
)

// Convert renders the whole file.
func (f *File) Convert(to Format) string {
	r := newRenderer(f, to)
	if f.Title() != "" {
		r.add(r.d.heading(0, "", r.d.escape(f.Title()), nil))
	}
	beg := f.bom
	if !f.drawer.Empty() {
		beg = f.drawer.End
	}
	r.section(beg, f.headStart(0))
	for h := range f.Headlines() {
		r.headline(h, h.Stars())
	}
	return r.finish()
}

// Convert renders the subtree, its headline on the first level.
func (h Headline) Convert(to Format) string {
	r := newRenderer(h.f, to)
	for c := range h.Subtree() {
		r.headline(c, c.Stars()-h.Stars()+1)
	}
	return r.finish()
}

// dialect is one output format: it escapes text and wraps what was rendered.
type dialect interface {
	escape(text string) string
	wrap(p *part, inner string) string
	heading(level int, todo, title string, tags []string) string
}

// part is a node on its way out, with what a dialect wants to know about it.
type part struct {
	kind    kind
	link    Link
	name    string // block name, footnote label, source language
	ordered bool   // list
	first   bool   // first row of a table
	header  bool   // first row of a table that has a rule below it
	box     byte   // checkbox of an item
	text    strings.Builder
}

// maxContainers bounds how deep containers are wrapped in each other; deeper
// ones are rendered flat, which keeps the work linear.
const maxContainers = 32

// renderer folds the walk into text: each open part collects what is inside it.
type renderer struct {
	f     *File
	d     dialect
	w     walker
	stack []*part
	at    int // source up to here is rendered
	mute  int // open nodes whose contents are not shown
	lists []listLevel
	own   int // start of the text that belongs to the item just opened, -1
	blank int // blank lines just passed
	rules bool
}

type listLevel struct {
	indent  int
	ordered bool
}

func newRenderer(f *File, to Format) *renderer {
	r := &renderer{f: f, own: -1, stack: []*part{{}}}
	switch to {
	case HTML:
		r.d = htmlDialect{}
	case Markdown:
		r.d = markdownDialect{}
	default:
		r.d = textDialect{}
	}
	r.w = walker{f: f, out: r, radio: f.radio()}
	return r
}

func (r *renderer) top() *part { return r.stack[len(r.stack)-1] }

func (r *renderer) add(s string) { r.top().text.WriteString(s) }

func (r *renderer) push(p *part) { r.stack = append(r.stack, p) }

func (r *renderer) pop() {
	p := r.top()
	r.stack = r.stack[:len(r.stack)-1]
	r.add(r.d.wrap(p, p.text.String()))
}

func (r *renderer) finish() string {
	r.closeLists(-1)
	return r.top().text.String()
}

func (r *renderer) section(beg, end int) {
	r.w.walkSection(beg, end)
	r.closeLists(-1)
}

func (r *renderer) headline(h Headline, level int) {
	r.closeLists(-1)
	t := h.TitleSpan()
	r.at = t.Start
	r.push(&part{})
	r.w.objects(t.Start, t.End, inTitle)
	r.textTo(t.End)
	title := r.top().text.String()
	r.stack = r.stack[:len(r.stack)-1]
	if h.Commented() {
		return
	}
	r.add(r.d.heading(level, h.Todo(), title, h.Tags()))
	b := h.BodySpan()
	r.section(b.Start, b.End)
}

// textTo renders plain source text up to end.
func (r *renderer) textTo(end int) {
	if end > r.at {
		if r.mute == 0 {
			r.add(r.d.escape(string(r.f.src[r.at:end])))
		}
		r.at = end
	}
}

// object reports kinds that stand inside text.
func (k kind) object() bool { return k >= kindBold }

func (r *renderer) open(n *node) {
	switch {
	case r.mute > 0:
		r.mute++
	case n.kind.object():
		r.textTo(n.span.Start)
		r.push(&part{kind: n.kind, link: n.link, name: r.label(n)})
		r.at = n.inner.Start
		if n.inner.Empty() {
			r.at = n.span.End
		}
	default:
		r.openElement(n)
	}
}

func (r *renderer) shut(n *node) {
	switch {
	case r.mute > 1:
		r.mute--
	case n.kind.object():
		if !n.inner.Empty() {
			r.textTo(n.inner.End)
		}
		r.at = max(r.at, n.span.End)
		r.pop()
	default:
		r.shutElement(n)
	}
}

// label is the name an object is shown by.
func (r *renderer) label(n *node) string {
	if n.kind == kindFootnote {
		return r.f.footnote(n).Label
	}
	return ""
}

func (r *renderer) openElement(n *node) {
	if n.kind != kindBlank {
		r.place(n)
	}
	switch n.kind {
	case kindBlank:
		if r.blank++; r.blank >= 2 {
			r.closeLists(-1)
		}
		r.mute = 1
		return
	case kindComment, kindKeyword, kindCall, kindClock, kindDiary, kindDrawer:
		r.mute = 1
	case kindItem:
		r.item(n)
		r.mute = 1
	case kindFootnoteDef:
		r.push(&part{kind: n.kind, name: r.f.footnote(n).Label})
	case kindParagraph, kindCell, kindItemTag:
		r.push(&part{kind: n.kind})
		r.at = n.inner.Start
	case kindTable:
		r.push(&part{kind: n.kind})
		e, next := r.f.eol(n.span.Start)
		second := skipBlank(r.f.src, next, len(r.f.src))
		r.rules = e < n.span.End && bytes.HasPrefix(r.f.src[second:], []byte("|-"))
	case kindRow:
		r.push(&part{kind: n.kind, first: r.top().text.Len() == 0, header: r.rules})
		r.rules = false
	case kindBlock:
		r.openBlock(n)
	case kindDynamic:
	default:
		r.push(&part{kind: n.kind})
	}
	r.blank = 0
}

func (r *renderer) openBlock(n *node) {
	b := r.f.block(n)
	p := &part{kind: kindBlock, name: b.Name}
	switch b.Name {
	case "EXPORT", "COMMENT":
		r.mute = 1
		return
	case "SRC":
		p.link.Path = b.Language
	}
	if len(r.stack) < maxContainers {
		r.push(p)
	}
	switch b.Name {
	case "SRC", "EXAMPLE":
		r.top().text.WriteString(r.d.escape(unquoteLines(r.f.Text(n.inner))))
	case "VERSE":
		r.at = n.inner.Start
	}
}

func (r *renderer) shutElement(n *node) {
	if r.mute > 0 {
		r.mute--
		return
	}
	switch n.kind {
	case kindDynamic:
		return
	case kindParagraph, kindCell, kindItemTag:
		r.textTo(n.inner.End)
	case kindFixed:
		line := strings.TrimLeft(r.f.Text(n.inner), " \t")
		r.add(r.d.escape(strings.TrimPrefix(line[1:], " ")))
	case kindLatexEnv:
		r.add(r.d.escape(r.f.Text(n.inner)))
	case kindBlock:
		if equalFold(r.f.blockName(n.span.Start), "VERSE") {
			r.textTo(n.inner.End)
		}
		if p := r.top(); p.kind != kindBlock || len(r.stack) == 1 {
			return // rendered flat
		}
	default:
	}
	r.pop()
}

// place closes the list items the element does not belong to.
func (r *renderer) place(n *node) {
	switch n.kind {
	case kindRow, kindRowRule, kindCell, kindItemTag, kindItem:
		return
	default:
	}
	if n.kind == kindParagraph && n.span.Start == r.own {
		return
	}
	if len(r.lists) > 0 {
		r.closeLists(column([]byte(r.f.indentAt(n.aff))))
	}
}

// closeLists ends every item whose bullet does not stand left of the column.
func (r *renderer) closeLists(column int) {
	for len(r.lists) > 0 && r.lists[len(r.lists)-1].indent >= column {
		r.pop() // item
		r.pop() // list
		r.lists = r.lists[:len(r.lists)-1]
	}
}

func (r *renderer) item(n *node) {
	e, _ := r.f.eol(n.span.Start)
	it := parseItem(r.f.src, n.span.Start, e)
	ordered := asciiDigit(r.f.src[it.bullet.Start])
	r.closeLists(it.indent + 1)
	if k := len(r.lists) - 1; k >= 0 && r.lists[k].indent == it.indent {
		r.pop()
		if r.lists[k].ordered != ordered {
			r.pop()
			r.push(&part{kind: kindList, ordered: ordered})
			r.lists[k].ordered = ordered
		}
	} else if len(r.stack) < 2*maxContainers {
		r.push(&part{kind: kindList, ordered: ordered})
		r.lists = append(r.lists, listLevel{it.indent, ordered})
	} else {
		return
	}
	r.push(&part{kind: kindItem, ordered: ordered, box: it.checkbox})
	r.own = it.text
}

// unquoteLines takes off the comma Org puts before lines that look like Org.
func unquoteLines(s string) string {
	lines := strings.SplitAfter(s, "\n")
	for i, l := range lines {
		t := strings.TrimLeft(l, " \t")
		if rest := strings.TrimLeft(t, ","); len(rest) < len(t) && (strings.HasPrefix(rest, "*") || strings.HasPrefix(rest, "#+")) {
			lines[i] = l[:len(l)-len(t)] + t[1:]
		}
	}
	return strings.Join(lines, "")
}

// entities are the LaTeX-like names common in notes.
var entities = map[string]string{
	"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "lambda": "λ", "mu": "μ", "pi": "π",
	"sigma": "σ", "omega": "ω", "Delta": "Δ", "Sigma": "Σ", "Omega": "Ω", "rarr": "→", "larr": "←", "to": "→",
	"Rightarrow": "⇒", "ndash": "–", "mdash": "—", "hellip": "…", "dots": "…", "times": "×", "deg": "°", "euro": "€",
	"copy": "©", "nbsp": "\u00a0", "ast": "*", "le": "≤", "ge": "≥", "ne": "≠", "approx": "≈", "infin": "∞", "amp": "&",
	"lt": "<", "gt": ">", "vert": "|", "under": "_", "slash": "/", "plus": "+", "equal": "=", "tilde": "~", "checkmark": "✓",
}

// entity is the character for \name or \name{}, or the text itself.
func entity(text string) string {
	if e, ok := entities[strings.TrimSuffix(strings.TrimPrefix(text, `\`), "{}")]; ok {
		return e
	}
	return text
}

// textDialect writes words without markup.
type textDialect struct{}

func (textDialect) escape(s string) string { return s }

func (textDialect) heading(level int, todo, title string, tags []string) string {
	s := strings.TrimSpace(todo + " " + title)
	if len(tags) > 0 {
		s += " (" + strings.Join(tags, ", ") + ")"
	}
	return strings.Repeat("  ", max(0, level-1)) + s + "\n\n"
}

func (textDialect) wrap(p *part, inner string) string {
	switch p.kind {
	case kindParagraph:
		return unindent(inner) + "\n\n"
	case kindBlock, kindLatexEnv:
		return strings.TrimRight(inner, "\n") + "\n\n"
	case kindFixed:
		return inner + "\n"
	case kindItem:
		mark := "- "
		if p.box == 'X' {
			mark = "- [x] "
		} else if p.box != 0 {
			mark = "- [ ] "
		}
		return hang(mark, "  ", inner)
	case kindItemTag:
		return inner + ": "
	case kindList, kindTable:
		return inner + "\n"
	case kindRow:
		return strings.TrimSuffix(inner, "\t") + "\n"
	case kindCell:
		return inner + "\t"
	case kindRule:
		return "----\n\n"
	case kindFootnoteDef:
		return "[" + p.name + "] "
	case kindFootnote:
		if p.name == "" {
			return " (" + inner + ")"
		}
		return "[" + p.name + "]"
	case kindLink:
		return linkText(p.link, inner)
	case kindEntity:
		return entity(inner)
	case kindBreak, kindExport, kindRowRule:
		return ""
	default:
	}
	return inner
}

// linkText is a link's description, or where it goes.
func linkText(l Link, description string) string {
	switch {
	case description != "":
		return description
	case l.Type == "fuzzy", l.Type == "radio", l.Type == "custom-id", l.Type == "file":
		return l.Path
	}
	return l.Type + ":" + l.Path
}

// unindent takes the common leading blanks off the lines of a paragraph.
func unindent(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimLeft(strings.TrimSuffix(lines[i], "\r"), " \t")
	}
	return strings.Join(lines, "\n")
}

// hang puts mark before the first line of s and indent before the others.
func hang(mark, indent, s string) string {
	lines := strings.Split(strings.Trim(s, "\n"), "\n")
	for i := 1; i < len(lines); i++ {
		if lines[i] != "" {
			lines[i] = indent + lines[i]
		}
	}
	return mark + strings.Join(lines, "\n") + "\n"
}
