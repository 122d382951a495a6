package org

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// where says what surrounds a piece of text, which decides what may occur in it.
type where uint8

const (
	inText  where = iota // paragraph
	inTitle              // headline, item tag: as a paragraph, here told apart for readers
	inCell               // table cell: no inline source, no statistics cookie
	inLink               // link description: no links, timestamps, targets, footnotes
)

// maxNesting bounds emphasis in emphasis. Emacs has no bound; real text stays
// under ten, and without one a line of nested markers costs the square of its length.
const maxNesting = 64

// needle names a string whose next occurrence is remembered.
type needle uint8

const (
	needGT needle = iota
	needBracket
	needBrackets
	needNewline
	needParen
	needSquare
	needMacro
	needExport
	needDollars
	needAt
	needles
)

var needleText = [needles]string{">", "]", "]]", "\n", `\)`, `\]`, ")}}}", "@@", "$$", "@"}

// next is the first occurrence of the needle at or after i that ends by end, or -1.
// Searches run to the end of the outermost text once and are then remembered.
func (w *walker) next(nd needle, i, end int) int {
	g := &w.seek[nd]
	if g.from > i || g.to < i {
		j := bytes.Index(w.f.src[min(i, w.hard):w.hard], []byte(needleText[nd]))
		if j < 0 {
			*g = gap{i, w.hard}
		} else {
			*g = gap{i, i + j}
		}
	}
	if g.to+len(needleText[nd]) > end {
		return -1
	}
	return g.to
}

// special holds the characters at which an object can start, or, for the colon
// and underscore, just before which the name of one can end.
var special = markSet(`*/+_^=~@{$\[<:`)

// objects scans the text [beg,end).
func (w *walker) objects(beg, end int, in where) {
	if w.plain || beg >= end {
		return
	}
	w.hard = end
	for i := range w.seek {
		w.seek[i] = gap{1, 0}
	}
	w.blank = gap{1, 0}
	for i := range w.nomark {
		w.nomark[i] = gap{1, 0}
	}
	w.pairs.built = false
	w.scan(beg, end, in, 0)
}

// scan reads the objects of [beg,end), which is one container's contents.
func (w *walker) scan(beg, end int, in where, depth int) {
	b := w.f.src
	done := beg // everything before it belongs to an object already
	for i := beg; i < end; {
		if len(w.radio) > 0 && in != inLink {
			if k := w.radioLink(beg, i, end); k > 0 {
				i, done = k, k
				continue
			}
		}
		if !special[b[i]] {
			i++
			continue
		}
		if k := w.object(beg, done, i, end, in, depth); k > i {
			i, done = k, k
			continue
		}
		i++
	}
}

// object reads the object at i and returns its end, or 0.
func (w *walker) object(beg, done, i, end int, in where, depth int) int {
	b := w.f.src
	switch b[i] {
	case '*', '/', '+':
		return w.emphasis(beg, i, end, in, depth)
	case '_':
		if k := w.inlineCode(beg, done, i, end, in); k > 0 {
			return k
		}
		if k := w.emphasis(beg, i, end, in, depth); k > 0 {
			return k
		}
		return w.script(beg, i, end, in, depth)
	case '^':
		return w.script(beg, i, end, in, depth)
	case '=', '~':
		return w.verbatim(beg, i, end)
	case '@':
		return w.exportSnippet(i, end)
	case '{':
		return w.macro(i, end)
	case '$':
		if k := w.dollar(beg, i, end); k > 0 {
			return w.text(kindLatex, i, k)
		}
	case '\\':
		return w.backslash(i, end)
	case '[':
		return w.square(i, end, in, depth)
	case '<':
		if in != inLink {
			return w.angle(i, end)
		}
	case ':':
		if in != inLink {
			return w.plainLink(beg, done, i, end)
		}
	}
	return 0
}

// text emits an object without further objects in it and returns its end.
func (w *walker) text(k kind, beg, end int) int {
	w.leaf(node{kind: k, span: Span{beg, end}, inner: Span{beg, end}})
	return end
}

func (w *walker) prevRune(beg, i int) rune {
	if i <= beg {
		return '\n'
	}
	r, _ := utf8.DecodeLastRune(w.f.src[beg:i])
	return r
}

// markers are the characters that can open emphasis.
const markers = "*/_+=~"

func emphasisKind(c byte) kind {
	switch c {
	case '*':
		return kindBold
	case '/':
		return kindItalic
	case '_':
		return kindUnderline
	case '+':
		return kindStrike
	case '=':
		return kindVerbatim
	}
	return kindCode
}

func (w *walker) emphasis(beg, i, end int, in where, depth int) int {
	if depth >= maxNesting {
		return 0
	}
	k := w.emphasisEnd(beg, i, end)
	if k < 0 {
		return 0
	}
	n := node{kind: emphasisKind(w.f.src[i]), span: Span{i, k + 1}, inner: Span{i + 1, k}}
	w.out.open(&n)
	w.scan(i+1, k, in, depth+1)
	w.out.shut(&n)
	return k + 1
}

func (w *walker) verbatim(beg, i, end int) int {
	k := w.emphasisEnd(beg, i, end)
	if k < 0 {
		return 0
	}
	w.leaf(node{kind: emphasisKind(w.f.src[i]), span: Span{i, k + 1}, inner: Span{i + 1, k}})
	return k + 1
}

// emphasisEnd is the offset of the marker that closes the one at i, or -1.
func (w *walker) emphasisEnd(beg, i, end int) int {
	b, m := w.f.src, w.f.src[i]
	if i > beg {
		if r := w.prevRune(beg, i); !spaceChar(r) && !strings.ContainsRune(`-('"{`, r) {
			return -1
		}
	}
	if i+1 >= end {
		return -1
	}
	if r, _ := utf8.DecodeRune(b[i+1 : end]); spaceChar(r) {
		return -1
	}
	missed := &w.nomark[strings.IndexByte(markers, m)]
	if g := *missed; g.to == end && g.from <= i {
		return -1
	}
	for k := i + 2; k < end; k++ {
		j := bytes.IndexByte(b[k:end], m)
		if j < 0 {
			break
		}
		k += j
		if r, _ := utf8.DecodeLastRune(b[i+1 : k]); spaceChar(r) {
			continue
		}
		if k+1 >= end {
			return k
		}
		if r, _ := utf8.DecodeRune(b[k+1 : end]); spaceChar(r) || strings.ContainsRune("-.,;:!?'\")}\\[", r) {
			return k
		}
	}
	*missed = gap{i, end}
	return -1
}

// script reads a sub- or superscript at i.
func (w *walker) script(beg, i, end int, in where, depth int) int {
	if i <= beg || i+1 >= end || depth >= maxNesting || spaceChar(w.prevRune(beg, i)) {
		return 0
	}
	b := w.f.src
	n := node{kind: kindSubscript}
	if b[i] == '^' {
		n.kind = kindSuperscript
	}
	var k int
	switch c := b[i+1]; c {
	case '{', '(':
		if k = groupEnd(b, i+1, end); k < 0 {
			return 0
		}
		n.inner = Span{i + 2, k - 1}
		if c == '(' {
			n.inner = Span{i + 1, k}
		}
	case '*':
		k = i + 2
		n.inner = Span{i + 1, k}
	default:
		if k = scriptWord(b, i+1, end); k < 0 {
			return 0
		}
		n.inner = Span{i + 1, k}
	}
	n.span = Span{i, k}
	w.out.open(&n)
	if b[i+1] == '{' || b[i+1] == '(' {
		w.scan(n.inner.Start, n.inner.End, in, depth+1)
	}
	w.out.shut(&n)
	return k
}

// groupEnd is the end of the bracket group at i, which may hold one more level.
func groupEnd(b []byte, i, end int) int {
	open, shut := b[i], byte('}')
	if open == '(' {
		shut = ')'
	}
	depth := 0
	for k := i; k < end; k++ {
		switch b[k] {
		case open:
			if depth++; depth > 2 {
				return -1
			}
		case shut:
			if depth--; depth == 0 {
				return k + 1
			}
		}
	}
	return -1
}

// scriptWord is the end of an unbraced script: sign, then characters that end in a letter or digit.
func scriptWord(b []byte, i, end int) int {
	if b[i] == '+' || b[i] == '-' {
		i++
	}
	last := -1
	for i < end {
		r, n := utf8.DecodeRune(b[i:end])
		i += n
		if alnum(r) && !(r == utf8.RuneError && n == 1) {
			last = i
		} else if r != '.' && r != ',' && r != '\\' {
			break
		}
	}
	return last
}

// exportSnippet reads @@backend:…@@.
func (w *walker) exportSnippet(i, end int) int {
	b := w.f.src
	if i+1 >= end || b[i+1] != '@' {
		return 0
	}
	k := i + 2
	for k < end && (asciiAlnum(b[k]) || b[k] == '-') {
		k++
	}
	if k == i+2 || k >= end || b[k] != ':' {
		return 0
	}
	if c := w.next(needExport, k+1, end); c >= 0 {
		return w.text(kindExport, i, c+2)
	}
	return 0
}

// macro reads {{{name}}} or {{{name(args)}}}.
func (w *walker) macro(i, end int) int {
	b := w.f.src
	if !bytes.HasPrefix(b[i:end], []byte("{{{")) || i+3 >= end || !asciiLetter(b[i+3]) {
		return 0
	}
	k := i + 3
	for k < end && (asciiAlnum(b[k]) || b[k] == '-' || b[k] == '_') {
		k++
	}
	if bytes.HasPrefix(b[k:end], []byte("}}}")) {
		return w.text(kindMacro, i, k+3)
	}
	if k < end && b[k] == '(' {
		if c := w.next(needMacro, k+1, end); c >= 0 {
			return w.text(kindMacro, i, c+4)
		}
	}
	return 0
}

// dollar is the end of $…$ or $$…$$ at i, or 0.
func (w *walker) dollar(beg, i, end int) int {
	b := w.f.src
	if i+1 >= end {
		return 0
	}
	if b[i+1] == '$' {
		if j := w.next(needDollars, i+2, end); j >= 0 {
			return j + 2
		}
		return 0
	}
	if i > beg && b[i-1] == '$' || strings.IndexByte(" \t\n,.;", b[i+1]) >= 0 {
		return 0
	}
	j := bytes.IndexByte(b[i+1:end], '$')
	if j < 0 {
		return 0
	}
	k := i + 1 + j
	if strings.IndexByte(" \t\n,.", b[k-1]) >= 0 {
		return 0
	}
	if k+1 >= end {
		return k + 1
	}
	r, _ := utf8.DecodeRune(b[k+1 : end])
	if spaceChar(r) || strings.ContainsRune("'.,;:?!#@^`()[]{}<>\"", r) || r >= utf8.RuneSelf && unicode.IsPunct(r) {
		return k + 1
	}
	return 0
}

// backslash reads \(…\), \[…\], a line break or \command{…}.
func (w *walker) backslash(i, end int) int {
	b := w.f.src
	if i+1 >= end {
		return 0
	}
	switch n := b[i+1]; {
	case n == '(':
		if j := w.next(needParen, i, end); j >= 0 {
			return w.text(kindLatex, i, j+2)
		}
	case n == '[':
		if j := w.next(needSquare, i, end); j >= 0 {
			return w.text(kindLatex, i, j+2)
		}
	case n == '\\':
		return w.text(kindBreak, i, i+2)
	case asciiLetter(n):
		k, entity := latexCommand(b, i, end)
		if entity {
			return w.text(kindEntity, i, k)
		}
		return w.text(kindLatex, i, k)
	}
	return 0
}

// latexCommand is the end of \name*[…]{…} and whether it is a bare \name.
func latexCommand(b []byte, i, end int) (k int, entity bool) {
	for k = i + 1; k < end && asciiLetter(b[k]); k++ {
	}
	entity = true
	if k < end && b[k] == '*' {
		k, entity = k+1, false
	}
	for k < end && (b[k] == '[' || b[k] == '{') {
		x, stop := k+1, "{}\n"
		if b[k] == '[' {
			stop = "][{}\n"
		}
		for x < end && strings.IndexByte(stop, b[x]) < 0 {
			x++
		}
		if x >= end || b[x] != b[k]+2 { // ] and } follow their openers by two
			break
		}
		k, entity = x+1, entity && x == k+1
	}
	return k, entity
}

// inlineCode reads src_lang[…]{…} or call_name[…](…)[…]; i is at the underscore.
func (w *walker) inlineCode(beg, done, i, end int, in where) int {
	if in == inCell {
		return 0
	}
	b := w.f.src
	for _, c := range []struct {
		word string
		kind kind
	}{{"src", kindInlineSrc}, {"call", kindInlineCall}} {
		s := i - len(c.word)
		if s < done || string(b[s:i]) != c.word || wordChar(w.prevRune(beg, s)) {
			continue
		}
		if k := w.inlineEnd(i+1, end, c.kind == kindInlineSrc); k > 0 {
			return w.text(c.kind, s, k)
		}
	}
	return 0
}

func (w *walker) inlineEnd(k, end int, src bool) int {
	b, s := w.f.src, k
	for k < end && strings.IndexByte(" \t\n[{", b[k]) < 0 && (src || b[k] != '(') {
		k++
	}
	if k == s || k >= end {
		return 0
	}
	if b[k] == '[' {
		if k = w.pair(k, end) + 1; k == 0 || k >= end {
			return 0
		}
	}
	want := byte('{')
	if !src {
		want = '('
	}
	if b[k] != want {
		return 0
	}
	if k = w.pair(k, end) + 1; k == 0 {
		return 0
	}
	if !src && k < end && b[k] == '[' {
		if y := w.pair(k, end); y >= 0 {
			k = y + 1
		}
	}
	return k
}

// pairTable holds the closing bracket of every bracket of one text, built in one
// pass when first needed so that unbalanced brackets cost nothing twice.
type pairTable struct {
	built bool
	shut  map[int]int
}

// pair is the offset of the bracket that closes the one at i before end, or -1.
func (w *walker) pair(i, end int) int {
	if !w.pairs.built {
		w.pairs = pairTable{true, map[int]int{}}
		var open [3][]int
		for k := i; k < w.hard; k++ {
			switch t := strings.IndexByte("[{(]})", w.f.src[k]); {
			case t >= 3 && len(open[t-3]) > 0:
				s := open[t-3]
				w.pairs.shut[s[len(s)-1]] = k
				open[t-3] = s[:len(s)-1]
			case t >= 0 && t < 3:
				open[t] = append(open[t], k)
			}
		}
	}
	if k, ok := w.pairs.shut[i]; ok && k < end {
		return k
	}
	return -1
}

// square reads what can start with an opening square bracket.
func (w *walker) square(i, end int, in where, depth int) int {
	b := w.f.src
	if i+1 >= end {
		return 0
	}
	switch n := b[i+1]; {
	case n == '[':
		if in != inLink {
			return w.bracketLink(i, end, depth)
		}
	case n == 'f':
		if in != inLink && bytes.HasPrefix(b[i:end], []byte("[fn:")) {
			return w.footnote(i, end, in, depth)
		}
	case n == 'c':
		if in != inLink && bytes.HasPrefix(b[i:end], []byte("[cite")) {
			return w.citation(i, end)
		}
	case asciiDigit(n), n == '%', n == '/':
		if in != inLink && asciiDigit(n) {
			if k := w.timestamp(i, end); k > 0 {
				return k
			}
		}
		if k := cookieEnd(b, i, end); k > 0 && in != inCell {
			return w.text(kindCookie, i, k)
		}
	}
	return 0
}

func (w *walker) footnote(i, end int, in where, depth int) int {
	b := w.f.src
	x := wordRun(b, i+4, end)
	if x >= end || depth >= maxNesting || b[x] != ':' && (b[x] != ']' || x == i+4) {
		return 0
	}
	k := w.pair(i, end)
	if k < 0 {
		return 0
	}
	n := node{kind: kindFootnote, span: Span{i, k + 1}, inner: Span{k, k}}
	if b[x] == ':' {
		n.inner.Start = x + 1
	}
	w.out.open(&n)
	w.scan(n.inner.Start, n.inner.End, in, depth+1)
	w.out.shut(&n)
	return k + 1
}

func (w *walker) citation(i, end int) int {
	b := w.f.src
	x := i + len("[cite")
	if x < end && b[x] == '/' {
		for x < end && (asciiAlnum(b[x]) || b[x] == '/' || b[x] == '_' || b[x] == '-') {
			x++
		}
	}
	if x >= end || b[x] != ':' {
		return 0
	}
	if k := w.pair(i, end); k > 0 && w.next(needAt, i, k) >= 0 {
		return w.text(kindCitation, i, k+1)
	}
	return 0
}

// cookieEnd is the end of a statistics cookie [1/2] or [50%], or 0.
func cookieEnd(b []byte, i, end int) int {
	k := i + 1
	for k < end && asciiDigit(b[k]) {
		k++
	}
	if k >= end || b[k] != '%' && b[k] != '/' {
		return 0
	}
	slash := b[k] == '/'
	for k++; slash && k < end && asciiDigit(b[k]); k++ {
	}
	if k >= end || b[k] != ']' {
		return 0
	}
	return k + 1
}

// timestamp reads the timestamp at i, which must end on its own line.
func (w *walker) timestamp(i, end int) int {
	b := w.f.src
	if i+4 > end || b[i+1] != '%' && !asciiDigit(b[i+1]) {
		return 0
	}
	if nl := w.next(needNewline, i, end); nl >= 0 {
		end = nl
		if w.f.crlf && end > i && b[end-1] == '\r' {
			end--
		}
	}
	closing := func(from int) int {
		a, c := w.next(needBracket, from, end), w.next(needGT, from, end)
		if a < 0 || c >= 0 && c < a {
			return c
		}
		return a
	}
	first := closing(i)
	if first < 0 {
		return 0
	}
	n := stampEnd(b[i:end], first-i,
		func(from int) int { return closing(i+from) - i },
		func() int { return w.next(needGT, i, end) - i })
	if n == 0 {
		return 0
	}
	return w.text(kindTimestamp, i, i+n)
}
