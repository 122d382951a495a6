package org

import (
	"bytes"
	"sort"
)

// kind names what a node of a body is. Elements are made of lines, objects of text.
type kind uint8

const (
	kindNone kind = iota
	kindBlank
	kindParagraph
	kindComment
	kindKeyword
	kindCall
	kindClock
	kindFixed
	kindRule
	kindDiary
	kindLatexEnv
	kindDrawer
	kindDynamic
	kindBlock
	kindTable
	kindRow
	kindRowRule
	kindCell
	kindItem
	kindItemTag
	kindFootnoteDef
	kindList // made by the renderer; the walker sees items only

	kindBold
	kindItalic
	kindUnderline
	kindStrike
	kindVerbatim
	kindCode
	kindSubscript
	kindSuperscript
	kindExport
	kindMacro
	kindLatex
	kindEntity
	kindBreak
	kindInlineSrc
	kindInlineCall
	kindFootnote
	kindCitation
	kindTimestamp
	kindCookie
	kindTarget
	kindRadioTarget
	kindLink
)

// node is one element or object, as the walker meets it.
type node struct {
	kind  kind
	span  Span
	inner Span // contents; what remains of span is markup
	aff   int  // elements: start of the affiliated keywords, else span.Start
	link  Link // kindLink only
}

// sink receives a body in document order. Nodes that hold others are closed
// after them; leaves are opened and closed at once. Pointers are good only during the call.
type sink interface {
	open(*node)
	shut(*node)
}

// walker reads elements, and the objects in them, by the rules of org-element.
// It keeps no more than a stack of open containers, so depth costs no recursion,
// and every search for a closing line or marker is indexed or remembered, so
// that no run of unclosed openers makes it quadratic.
type walker struct {
	f      *File
	out    sink
	plain  bool // elements only, no objects
	one    node // the leaf being emitted
	ends   closers
	seek   [needles]gap
	blank  gap
	hard   int // end of the outermost text being scanned
	nomark [len(markers)]gap
	pairs  pairTable
	radio  []string
}

type gap struct{ from, to int }

type frame struct {
	n             node
	limit, resume int
}

// walkSection reads the elements of [beg,limit), which holds no headline.
func (w *walker) walkSection(beg, limit int) {
	w.ends.reset(beg, limit)
	var stack []frame
	for p := beg; ; {
		if p >= limit {
			if len(stack) == 0 {
				return
			}
			top := &stack[len(stack)-1]
			w.out.shut(&top.n)
			p, limit = top.resume, top.limit
			stack = stack[:len(stack)-1]
			continue
		}
		n, inner := w.element(p, limit)
		if inner.Empty() {
			p = n.span.End
			continue
		}
		stack = append(stack, frame{n: n, limit: limit, resume: n.span.End})
		p, limit = inner.Start, inner.End
	}
}

// element reads the element at the line p. For a container that holds further
// elements it returns their range and leaves the node open.
func (w *walker) element(p, limit int) (node, Span) {
	aff := p
	e, n := w.f.eol(p)
	if w.affiliated(p, e) {
		a := p
		for a < limit {
			ae, an := w.f.eol(a)
			if !w.affiliated(a, ae) {
				break
			}
			a = an
		}
		if w.orphan(a, limit) {
			for l := p; l < a; l = n {
				e, n = w.f.eol(l)
				w.leaf(node{kind: kindKeyword, span: Span{l, n}, inner: Span{l, e}, aff: l})
			}
			return node{span: Span{p, a}}, Span{}
		}
		p = a
		e, n = w.f.eol(p)
	}
	k, c := w.classify(p, e, n, limit)
	nd := node{kind: k, span: Span{p, n}, inner: Span{p, e}, aff: aff}
	switch k {
	case kindBlank, kindFixed, kindRule, kindDiary, kindComment, kindCall, kindClock, kindKeyword:
		w.leaf(nd)
	case kindLatexEnv:
		_, nd.span.End = w.f.eol(c)
		nd.inner = nd.span
		w.leaf(nd)
	case kindDrawer, kindDynamic, kindBlock:
		return w.container(nd, n, c)
	case kindTable:
		nd.span.End = w.table(nd, limit)
	case kindItem, kindFootnoteDef, kindParagraph:
		nd.span.End = w.paragraph(nd, c, e, n, limit)
	default:
	}
	return nd, Span{}
}

// leaf emits a node that holds no other. All leaves share one place in memory, so
// that a file's many small objects cost no allocation each; a sink must not keep
// the pointer.
func (w *walker) leaf(n node) {
	w.one = n
	w.out.open(&w.one)
	w.out.shut(&w.one)
}

// orphan reports whether affiliated keywords above line a attach to nothing.
func (w *walker) orphan(a, limit int) bool {
	if a >= limit {
		return true
	}
	e, n := w.f.eol(a)
	k, _ := w.classify(a, e, n, limit)
	return k == kindBlank || k == kindComment || k == kindClock
}

// container opens a drawer or block whose contents are [n,c). Blocks that hold
// text or raw lines are finished here; others hand their contents back.
func (w *walker) container(nd node, n, c int) (node, Span) {
	_, nd.span.End = w.f.eol(c)
	nd.inner = Span{n, c}
	w.out.open(&nd)
	if nd.kind == kindBlock {
		switch name := w.f.blockName(nd.span.Start); {
		case equalFold(name, "VERSE"):
			w.objects(n, c, inText)
			fallthrough
		case equalFold(name, "SRC"), equalFold(name, "EXAMPLE"), equalFold(name, "EXPORT"), equalFold(name, "COMMENT"):
			w.out.shut(&nd)
			return nd, Span{}
		}
	}
	if nd.inner.Empty() {
		w.out.shut(&nd)
	}
	return nd, nd.inner
}

// blockName is the word after #+begin_ on the line at p.
func (f *File) blockName(p int) []byte {
	e, _ := f.eol(p)
	q := skipBlank(f.src, p, e) + len("#+BEGIN_")
	return f.src[q:nonBlankRun(f.src, q, e)]
}

func equalFold(b []byte, s string) bool { return len(b) == len(s) && hasFold(b, 0, s) }

func (w *walker) table(nd node, limit int) int {
	b, p := w.f.src, nd.span.Start
	end := w.f.skipLines(p, limit, func(q, e int) bool { return q < e && b[q] == '|' })
	nd.inner = Span{p, end}
	end = w.f.skipLines(end, limit, func(q, e int) bool { return hasFold(b[:e], q, "#+TBLFM:") })
	nd.span.End = end
	w.out.open(&nd)
	for p < nd.inner.End {
		e, n := w.f.eol(p)
		w.row(p, e, n)
		p = n
	}
	w.out.shut(&nd)
	return end
}

func (w *walker) row(p, e, n int) {
	b := w.f.src
	q := skipBlank(b, p, e)
	if q+1 < e && b[q+1] == '-' {
		w.leaf(node{kind: kindRowRule, span: Span{p, n}, inner: Span{q, e}, aff: p})
		return
	}
	if w.plain {
		return
	}
	row := node{kind: kindRow, span: Span{p, n}, inner: Span{q, e}, aff: p}
	w.out.open(&row)
	for s := q + 1; ; {
		ce := e
		j := bytes.IndexByte(b[s:e], '|')
		if j >= 0 {
			ce = s + j
		}
		if j >= 0 || trimRight(b, s, e) > s {
			cs := skipBlank(b, s, ce)
			cell := node{kind: kindCell, span: Span{s, ce}, inner: Span{cs, max(cs, trimRight(b, cs, ce))}, aff: s}
			w.out.open(&cell)
			w.objects(cell.inner.Start, cell.inner.End, inCell)
			w.out.shut(&cell)
		}
		if j < 0 {
			break
		}
		s = ce + 1
	}
	w.out.shut(&row)
}

// paragraph reads a paragraph and what may stand before it on its first line: a
// list bullet or a footnote label. c is the offset after the label.
func (w *walker) paragraph(nd node, c, e, n, limit int) int {
	b, s := w.f.src, nd.span.Start
	switch nd.kind {
	case kindFootnoteDef:
		nd.inner = Span{nd.span.Start, c}
		w.leaf(nd)
		s = skipBlank(b, c, e)
	case kindItem:
		it := parseItem(b, nd.span.Start, e)
		nd.inner = Span{nd.span.Start, it.text}
		w.leaf(nd)
		if !it.tag.Empty() {
			t := node{kind: kindItemTag, span: Span{it.tag.Start, it.text}, inner: it.tag, aff: it.tag.Start}
			w.out.open(&t)
			w.objects(t.inner.Start, t.inner.End, inTitle)
			w.out.shut(&t)
		}
		s = it.text
	default:
	}
	end := w.paraEnd(n, limit)
	switch t := trimSpan(b, s, end); {
	case t.Empty():
	case w.plain:
		w.leaf(node{kind: kindParagraph, span: Span{s, end}, inner: t, aff: nd.aff})
	default:
		par := &node{kind: kindParagraph, span: Span{s, end}, inner: t, aff: nd.aff}
		w.out.open(par)
		w.objects(t.Start, t.End, inText)
		w.out.shut(par)
	}
	return end
}

// paraEnd is the start of the first line at or after p that ends a paragraph.
func (w *walker) paraEnd(p, limit int) int {
	b := w.f.src
	for p < limit {
		e, n := w.f.eol(p)
		q := skipBlank(b, p, e)
		if q == e {
			return p
		}
		if lineMark[b[q]] {
			k, _ := w.classify(p, e, n, limit)
			if k == kindKeyword && bracketedKey(b, q, e) {
				k = kindParagraph
			}
			if k != kindParagraph {
				return p
			}
		}
		p = n
	}
	return limit
}

// lineMark holds the characters with which a line can start anything but plain text.
var lineMark = markSet(`#:|\-[%Cc+*0123456789`)

func markSet(chars string) (set [256]bool) {
	for i := range len(chars) {
		set[chars[i]] = true
	}
	return set
}

// bracketedKey reports whether #+KEY[…]: is written with a key that takes no bracket;
// such a line does not interrupt a paragraph.
func bracketedKey(b []byte, q, e int) bool {
	k := q + 2
	for k < e && !blank(b[k]) && b[k] != '[' && b[k] != ':' {
		k++
	}
	return k < e && b[k] == '[' && !dualKey(b[q+2:k]) && bytes.Contains(b[k:e], []byte("]:"))
}

// classify says what the line [p,e) starts. The second result is where the
// closing line begins, or for a footnote definition the end of its label.
func (w *walker) classify(p, e, next, limit int) (kind, int) {
	b := w.f.src
	q := skipBlank(b, p, e)
	if q == e {
		return kindBlank, 0
	}
	switch c := b[q]; c {
	case '#':
		return w.classifyHash(p, q, e, next, limit)
	case ':':
		if drawerName(b, q, e) != nil {
			if c := w.ends.after(w.f, ":END:", next, limit); c >= 0 {
				return kindDrawer, c
			}
		} else if q+1 == e || b[q+1] == ' ' {
			return kindFixed, 0
		}
		return kindParagraph, 0
	case '|':
		return kindTable, 0
	case '\\':
		if name := latexEnv(b[q:e]); name != nil {
			if c := w.ends.after(w.f, `\END{`+asciiUpper(name)+"}", p, limit); c >= 0 {
				return kindLatexEnv, c
			}
		}
		return kindParagraph, 0
	case '[':
		if q == p && hasFold(b[:e], q, "[fn:") {
			if k := wordRun(b, q+4, e); k > q+4 && k < e && b[k] == ']' {
				return kindFootnoteDef, k + 1
			}
		}
		return kindParagraph, 0
	case '%':
		if q == p && bytes.HasPrefix(b[p:e], []byte("%%(")) {
			return kindDiary, 0
		}
		return kindParagraph, 0
	case 'C', 'c':
		if _, ok := parseClock(b, q, e); ok {
			return kindClock, 0
		}
		return kindParagraph, 0
	case '-':
		if t := trimRight(b, q, e); t-q >= 5 && len(bytes.Trim(b[q:t], "-")) == 0 {
			return kindRule, 0
		}
	}
	if bulletEnd(b, p, e) >= 0 {
		return kindItem, 0
	}
	return kindParagraph, 0
}

func (w *walker) classifyHash(p, q, e, next, limit int) (kind, int) {
	b := w.f.src
	if q+1 == e || b[q+1] == ' ' {
		return kindComment, 0
	}
	if b[q+1] != '+' {
		return kindParagraph, 0
	}
	if hasFold(b[:e], q, "#+BEGIN") {
		if k := skipBlank(b, q+8, e); hasFold(b[:e], q, "#+BEGIN:") && k > q+8 && k < e {
			if c := w.ends.after(w.f, "#+END", next, limit); c >= 0 {
				return kindDynamic, c
			}
			return kindParagraph, 0
		}
		if name := b[min(q+8, e):nonBlankRun(b, min(q+8, e), e)]; hasFold(b[:e], q, "#+BEGIN_") && len(name) > 0 {
			if c := w.ends.after(w.f, "#+END_"+asciiUpper(name), next, limit); c >= 0 {
				return kindBlock, c
			}
			return kindParagraph, 0
		}
	}
	if hasFold(b[:e], q, "#+CALL:") {
		return kindCall, 0
	}
	k := nonBlankRun(b, q+2, e)
	if bytes.LastIndexByte(b[q+2:k], ':') > 0 || w.affiliated(p, e) {
		return kindKeyword, 0
	}
	return kindParagraph, 0
}

// drawerName is the name when the line at the colon q is ":name:".
func drawerName(b []byte, q, e int) []byte {
	if q >= e || b[q] != ':' {
		return nil
	}
	k := wordRun(b, q+1, e)
	if k == q+1 || k >= e || b[k] != ':' || trimRight(b, k, e) != k+1 {
		return nil
	}
	return b[q+1 : k]
}

// latexEnv is the name of the environment that the line opens.
func latexEnv(b []byte) []byte {
	const open = `\begin{`
	if !bytes.HasPrefix(b, []byte(open)) {
		return nil
	}
	return envName(b[len(open):])
}

// envName reads name} at the start of b.
func envName(b []byte) []byte {
	k := 0
	for k < len(b) && (asciiAlnum(b[k]) || b[k] == '*') {
		k++
	}
	if k == 0 || k == len(b) || b[k] != '}' {
		return nil
	}
	return b[:k]
}

func dualKey(name []byte) bool { return equalFold(name, "CAPTION") || equalFold(name, "RESULTS") }

// affiliated reports whether the line is a keyword that belongs to the next element.
func (w *walker) affiliated(p, e int) bool {
	b := w.f.src
	q := skipBlank(b, p, e)
	if q+2 >= e || b[q] != '#' || b[q+1] != '+' {
		return false
	}
	k := q + 2
	for k < e && (asciiAlnum(b[k]) || b[k] == '_' || b[k] == '-') {
		k++
	}
	if k == e {
		return false
	}
	name := b[q+2 : k]
	if hasFold(name, 0, "ATTR_") && len(name) > len("ATTR_") && b[k] == ':' {
		return true
	}
	if !affiliatedName(name) {
		return false
	}
	return b[k] == ':' || b[k] == '[' && dualKey(name) && bytes.Contains(b[k:e], []byte("]:"))
}

func affiliatedName(name []byte) bool {
	return anyFold(name, "CAPTION", "DATA", "HEADER", "HEADERS", "LABEL", "NAME", "PLOT", "RESNAME",
		"RESULT", "RESULTS", "SOURCE", "SRCNAME", "TBLNAME")
}

// anyFold reports whether b is one of the words, in any case.
func anyFold(b []byte, words ...string) bool {
	for _, w := range words {
		if equalFold(b, w) {
			return true
		}
	}
	return false
}

func asciiUpper(b []byte) string {
	u := make([]byte, len(b))
	for i, c := range b {
		u[i] = upper(c)
	}
	return string(u)
}

// closers indexes the lines of one section that can close something, by what they close.
type closers struct {
	beg, limit int
	built      bool
	at         map[string][]int
}

func (c *closers) reset(beg, limit int) { *c = closers{beg: beg, limit: limit} }

// after is the start of the first closing line for key in [from,limit), or -1.
func (c *closers) after(f *File, key string, from, limit int) int {
	if !c.built {
		c.build(f)
	}
	lines := c.at[key]
	i := sort.SearchInts(lines, from)
	if i == len(lines) || lines[i] >= limit {
		return -1
	}
	return lines[i]
}

func (c *closers) build(f *File) {
	c.built, c.at = true, map[string][]int{}
	b := f.src
	for p := c.beg; p < c.limit; {
		e, n := f.eol(p)
		q := skipBlank(b, p, e)
		if t := trimRight(b, q, e); q < t {
			switch {
			case b[q] == ':' && equalFold(b[q:t], ":END:"):
				c.at[":END:"] = append(c.at[":END:"], p)
			case b[q] == '#' && hasFold(b[:t], q, "#+END"):
				key := asciiUpper(b[q:t])
				if key == "#+END:" {
					key = "#+END"
				}
				c.at[key] = append(c.at[key], p)
			case b[t-1] == '}':
				const open = `\END{`
				if j := bytes.LastIndexByte(b[q:t], '\\'); j >= 0 && hasFold(b[:t], q+j, open) {
					if name := envName(b[q+j+len(open) : t]); name != nil {
						key := open + asciiUpper(name) + "}"
						c.at[key] = append(c.at[key], p)
					}
				}
			}
		}
		p = n
	}
}
