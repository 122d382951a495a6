package org

import "strings"

// Contents is what a piece of a file holds, each list in document order.
type Contents struct {
	Links      []Link
	Blocks     []Block
	Timestamps []Stamp
	Drawers    []Drawer
	Clocks     []Clock
	Keywords   []Keyword
	Tables     []Table
	Items      []Item
	Footnotes  []Footnote
	Targets    []Target
	Macros     []Span // {{{name(args)}}}
	Citations  []Span
	Cookies    []Span // [1/2], [50%]
	Comments   []Span // # lines
	FixedWidth []Span // : lines
	Latex      []Span // fragments and environments
	Diary      []Span // %%(…) lines, kept opaque
	InlineCode []Span // src_lang{…} and call_name(…)
}

// Block is a #+begin_… block. Name is upper case: SRC, EXAMPLE, QUOTE, … and
// DYNAMIC for "#+begin: name".
type Block struct {
	Name     string
	Language string // SRC only
	Params   string // what follows the language (or the name) on the first line
	Span     Span
	Inner    Span // the lines between
	Caption  Span // affiliated keyword lines above, empty if none
}

// Stamp is a timestamp in running text. Diary expressions are kept opaque.
type Stamp struct {
	Raw  string
	Span Span
}

// Drawer is an ordinary drawer (not the property drawer). Name is as written.
type Drawer struct {
	Name        string
	Span, Inner Span
}

// Clock is a CLOCK line; Duration is empty while it runs.
type Clock struct {
	Raw, Duration string
	Span          Span
}

// Table is a table with its #+TBLFM lines; Rows counts the rows that are not rules.
type Table struct {
	Span Span
	Rows int
}

// Item is the first line of a list item.
type Item struct {
	Indent   int // column of the bullet
	Bullet   string
	Counter  string // what [@…] sets
	Checkbox string // "[ ]", "[X]", "[-]" or ""
	Tag      Span   // term of a description list, empty if none
	Span     Span   // the line
}

// Footnote is a reference or a definition. Label is "" for an anonymous one.
type Footnote struct {
	Label      string
	Definition bool // [fn:x] at the start of a line
	Span       Span
}

// Target is <<target>> or, when Radio, <<<target>>>.
type Target struct {
	Text  string
	Radio bool
	Span  Span
}

// Contents reads the whole file: preamble, titles and bodies.
func (f *File) Contents() *Contents {
	c := &Contents{}
	w := walker{f: f, out: &collector{f, c}, radio: f.radio()}
	w.walkFile()
	return c
}

// Contents reads the headline's title and its own body, not its children.
func (h Headline) Contents() *Contents {
	c := &Contents{}
	w := walker{f: h.f, out: &collector{h.f, c}, radio: h.f.radio()}
	w.walkHeadline(h)
	return c
}

// collector sorts the nodes of a walk into Contents.
type collector struct {
	f *File
	c *Contents
}

func (s *collector) shut(*node) {}

func (s *collector) open(n *node) {
	c, f := s.c, s.f
	switch n.kind {
	case kindLink:
		c.Links = append(c.Links, n.link)
	case kindBlock, kindDynamic:
		c.Blocks = append(c.Blocks, f.block(n))
	case kindTimestamp:
		c.Timestamps = append(c.Timestamps, Stamp{f.Text(n.span), n.span})
	case kindDrawer:
		q := skipBlank(f.src, n.span.Start, n.span.End)
		e, _ := f.eol(q)
		c.Drawers = append(c.Drawers, Drawer{string(drawerName(f.src, q, e)), n.span, n.inner})
	case kindClock:
		q := skipBlank(f.src, n.inner.Start, n.inner.End)
		if ck, ok := parseClock(f.src, q, n.inner.End); ok {
			c.Clocks = append(c.Clocks, Clock{f.Text(ck.stamp), f.Text(ck.duration), n.span})
		}
	case kindKeyword:
		if k, ok := f.keywordAt(n); ok {
			c.Keywords = append(c.Keywords, k)
		}
	case kindTable:
		c.Tables = append(c.Tables, Table{Span: n.span})
	case kindRow:
		c.Tables[len(c.Tables)-1].Rows++
	case kindItem:
		c.Items = append(c.Items, f.item(n))
	case kindFootnote, kindFootnoteDef:
		c.Footnotes = append(c.Footnotes, f.footnote(n))
	case kindTarget, kindRadioTarget:
		c.Targets = append(c.Targets, Target{f.Text(n.inner), n.kind == kindRadioTarget, n.span})
	default:
		if l := s.spans(n.kind); l != nil {
			*l = append(*l, n.span)
		}
	}
}

// spans is the list for kinds of which only the place is told.
func (s *collector) spans(k kind) *[]Span {
	switch k {
	case kindMacro:
		return &s.c.Macros
	case kindCitation:
		return &s.c.Citations
	case kindCookie:
		return &s.c.Cookies
	case kindComment:
		return &s.c.Comments
	case kindFixed:
		return &s.c.FixedWidth
	case kindLatex, kindLatexEnv:
		return &s.c.Latex
	case kindDiary:
		return &s.c.Diary
	case kindInlineSrc, kindInlineCall:
		return &s.c.InlineCode
	default:
	}
	return nil
}

func (f *File) item(n *node) Item {
	e, _ := f.eol(n.span.Start)
	it := parseItem(f.src, n.span.Start, e)
	box := ""
	if it.checkbox != 0 {
		box = "[" + string(it.checkbox) + "]"
	}
	return Item{it.indent, f.Text(it.bullet), f.Text(it.counter), box, it.tag, n.span}
}

func (f *File) footnote(n *node) Footnote {
	b := f.src
	s := n.span.Start + len("[fn:")
	return Footnote{string(b[s:wordRun(b, s, n.span.End)]), n.kind == kindFootnoteDef, n.span}
}

func (f *File) block(n *node) Block {
	b := f.src
	e, _ := f.eol(n.span.Start)
	q := skipBlank(b, n.span.Start, e)
	blk := Block{Span: n.span, Inner: n.inner, Caption: Span{n.aff, n.span.Start}}
	if n.kind == kindDynamic {
		blk.Name, blk.Params = "DYNAMIC", strings.TrimSpace(string(b[q+len("#+BEGIN:"):e]))
		return blk
	}
	q += len("#+BEGIN_")
	k := nonBlankRun(b, q, e)
	blk.Name = asciiUpper(b[q:k])
	if blk.Name != "SRC" {
		blk.Params = strings.TrimSpace(string(b[k:e]))
		return blk
	}
	blk.Language, blk.Params = srcHeader(string(b[k:e]))
	return blk
}

// srcHeader splits " lang -n switches :args". Only spaces, not tabs, lead to the language.
func srcHeader(s string) (language, params string) {
	rest := strings.TrimLeft(s, " ")
	if len(rest) < len(s) && rest != "" && !blank(rest[0]) {
		n := strings.IndexFunc(rest, spaceChar)
		if n < 0 {
			n = len(rest)
		}
		language, rest = rest[:n], rest[n:]
	}
	for {
		next := skipSwitch(rest)
		if next == rest {
			return language, strings.TrimSpace(rest)
		}
		rest = next
	}
}

// skipSwitch drops one leading switch: -n 10, +n, -l "fmt", -i, -k, -r.
func skipSwitch(s string) string {
	rest := strings.TrimLeft(s, " ")
	if len(rest) == len(s) || len(rest) < 2 {
		return s
	}
	switch sw, tail := rest[:2], rest[2:]; sw {
	case "-i", "-k", "-r":
		return tail
	case "-n", "+n":
		num := strings.TrimLeft(tail, " ")
		return strings.TrimLeft(num, "0123456789")
	case "-l":
		if strings.HasPrefix(tail, ` "`) {
			if j := strings.LastIndexByte(tail, '"'); j > 2 {
				return tail[j+1:]
			}
		}
	}
	return s
}
