package org

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Link is one link. Type is "file", "https", "id", "fuzzy", "custom-id",
// "coderef", "radio", "attachment" and so on; Path is what follows the type,
// #+LINK abbreviations expanded.
type Link struct {
	Type, Path  string
	Form        LinkForm
	Span        Span
	Description Span // empty if there is none
}

// LinkForm is how a link is written.
type LinkForm uint8

// The zero LinkForm is no link.
const (
	BracketLink LinkForm = iota + 1
	AngleLink
	PlainLink
	RadioLink
)

// linkType reports whether a stock Emacs knows the type.
func linkType(t string) bool {
	switch t {
	case "id", "eww", "rmail", "mhe", "irc", "info", "gnus", "docview", "bibtex", "bbdb", "w3m", "doi",
		"file+sys", "file+emacs", "shell", "news", "mailto", "https", "http", "ftp", "help", "file", "elisp":
		return true
	}
	return false
}

const maxLinkType = len("file+emacs")

// typeEnd is the length of "type:" at i, or 0.
func typeEnd(b []byte, i, end int) int {
	k := i
	for k < end && k-i <= maxLinkType && (asciiAlnum(b[k]) || b[k] == '+') {
		k++
	}
	if k >= end || b[k] != ':' || !linkType(strings.ToLower(string(b[i:k]))) {
		return 0
	}
	return k + 1 - i
}

func (w *walker) emitLink(l Link, depth int) {
	switch strings.ToLower(l.Type) {
	case "file", "file+sys", "file+emacs":
		l.Type = "file"
		if c := strings.Index(l.Path, "::"); c >= 0 && !strings.Contains(l.Path[c:], "\n") {
			l.Path = l.Path[:c]
		}
		l.Path = filePath(l.Path)
	}
	if l.Description.Empty() {
		w.leaf(node{kind: kindLink, span: l.Span, inner: l.Description, link: l})
		return
	}
	n := &node{kind: kindLink, span: l.Span, inner: l.Description, link: l}
	w.out.open(n)
	w.scan(l.Description.Start, l.Description.End, inLink, depth+1)
	w.out.shut(n)
}

// filePath drops the empty host of file:///path, keeping a drive letter's colon.
func filePath(p string) string {
	rest := strings.TrimLeft(p, "/")
	n := len(p) - len(rest)
	if n < 2 {
		return p
	}
	if _, w := utf8.DecodeRuneInString(rest); w > 0 && strings.HasPrefix(rest[w:], ":/") {
		return rest
	}
	if n == 2 {
		return p
	}
	return "/" + rest
}

// bracketLink reads [[target]] or [[target][description]].
func (w *walker) bracketLink(i, end, depth int) int {
	b := w.f.src
	k := targetEnd(b, i+2, end)
	if k == i+2 || k+1 >= end || b[k] != ']' {
		return 0
	}
	l := Link{Form: BracketLink}
	target := string(b[i+2 : k])
	switch b[k+1] {
	case ']':
		k += 2
	case '[':
		j := w.next(needBrackets, min(k+3, end), end)
		if j < 0 {
			return 0
		}
		l.Description = Span{k + 2, j}
		k = j + 2
	default:
		return 0
	}
	l.Span = Span{i, k}
	l.Type, l.Path = w.f.splitTarget(w.f.expandLink(unescape(joinLines(target, " "))))
	w.emitLink(l, depth)
	return k
}

// targetEnd is the first bracket at or after k that no backslash escapes.
func targetEnd(b []byte, k, end int) int {
	for k < end && b[k] != '[' && b[k] != ']' {
		if b[k] != '\\' {
			k++
			continue
		}
		x := k
		for x < end && b[x] == '\\' {
			x++
		}
		if (x-k)%2 == 1 && x < end && (b[x] == '[' || b[x] == ']') {
			x++
		}
		k = x
	}
	return k
}

// joinLines replaces every line break and the blanks around it with sep.
func joinLines(s, sep string) string {
	if !strings.Contains(s, "\n") {
		return s
	}
	lines := strings.Split(s, "\n")
	for i := range lines {
		if i < len(lines)-1 {
			lines[i] = strings.TrimRight(strings.TrimSuffix(lines[i], "\r"), " \t")
		}
		if i > 0 {
			lines[i] = strings.TrimLeft(lines[i], " \t")
		}
	}
	return strings.Join(lines, sep)
}

// unescape halves the backslashes that stand before a bracket or the end.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var sb strings.Builder
	for i := 0; i < len(s); {
		k := i
		for k < len(s) && s[k] == '\\' {
			k++
		}
		n := k - i
		if k == len(s) || s[k] == '[' || s[k] == ']' {
			n /= 2
		}
		sb.WriteString(s[i : i+n])
		if k < len(s) {
			sb.WriteByte(s[k])
		}
		i = k + 1
	}
	return sb.String()
}

// splitTarget decides the type of a bracket link.
func (f *File) splitTarget(raw string) (typ, path string) {
	switch {
	case strings.HasPrefix(raw, "/"), raw == "~", strings.HasPrefix(raw, "~/"),
		strings.HasPrefix(raw, "./"), strings.HasPrefix(raw, "../"):
		return "file", raw
	}
	if t, p, ok := strings.Cut(raw, ":"); ok && (linkType(strings.ToLower(t)) || t == "attachment") {
		return t, p
	}
	switch {
	case strings.HasPrefix(raw, "(") && strings.HasSuffix(raw, ")"):
		return "coderef", strings.TrimSuffix(raw[1:], ")")
	case strings.HasPrefix(raw, "#"):
		return "custom-id", raw[1:]
	}
	return "fuzzy", raw
}

// expandLink applies a #+LINK abbreviation. One that calls a Lisp function stays as written.
func (f *File) expandLink(raw string) string {
	if len(f.set.links) == 0 {
		return raw
	}
	key, tag, _ := strings.Cut(raw, ":")
	tag = strings.TrimPrefix(tag, ":")
	u, ok := f.set.links[key]
	switch {
	case !ok, strings.Contains(u, "%("):
		return raw
	case strings.Contains(u, "%s"):
		return strings.Replace(u, "%s", tag, 1)
	case strings.Contains(u, "%h"):
		return strings.Replace(u, "%h", hexify(tag), 1)
	}
	return u + tag
}

func hexify(s string) string {
	const digits = "0123456789ABCDEF"
	var sb strings.Builder
	for i := range len(s) {
		if c := s[i]; asciiAlnum(c) || strings.IndexByte("-_.~", c) >= 0 {
			sb.WriteByte(c)
		} else {
			sb.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return sb.String()
}

// angle reads a target, a timestamp or an angle link.
func (w *walker) angle(i, end int) int {
	b := w.f.src
	if i+1 >= end {
		return 0
	}
	if b[i+1] != '<' {
		if k := w.timestamp(i, end); k > 0 {
			return k
		}
		return w.angleLink(i, end)
	}
	if i+2 < end && b[i+2] == '<' {
		if t := targetText(b, i+3, end, ">>>"); !t.Empty() {
			w.leaf(node{kind: kindRadioTarget, span: Span{i, t.End + 3}, inner: t})
			return t.End + 3
		}
	}
	if t := targetText(b, i+2, end, ">>"); !t.Empty() {
		w.leaf(node{kind: kindTarget, span: Span{i, t.End + 2}, inner: t})
		return t.End + 2
	}
	return 0
}

// targetText is the text between i and shut: no angle brackets, line ends or outer blanks.
func targetText(b []byte, i, end int, shut string) Span {
	k := i
	for k < end && strings.IndexByte("<>\n\r", b[k]) < 0 {
		k++
	}
	if k == i || !bytes.HasPrefix(b[k:end], []byte(shut)) || blank(b[i]) || blank(b[k-1]) {
		return Span{}
	}
	return Span{i, k}
}

func (w *walker) angleLink(i, end int) int {
	b := w.f.src
	n := typeEnd(b, i+1, end)
	if n == 0 {
		return 0
	}
	k := i + 1 + n
	j := w.next(needGT, k, end)
	if j < 0 || w.nextBlankLine(k) < j {
		return 0
	}
	w.emitLink(Link{Type: string(b[i+1 : k-1]), Path: joinLines(string(b[k:j]), ""), Form: AngleLink, Span: Span{i, j + 1}}, 0)
	return j + 1
}

// nextBlankLine is where the next line of nothing but blanks ends, from k on.
func (w *walker) nextBlankLine(k int) int {
	if g := w.blank; g.from <= k && k <= g.to {
		return g.to
	}
	b, p := w.f.src, k
	for p < w.hard {
		j := bytes.IndexByte(b[p:w.hard], '\n')
		if j < 0 {
			p = w.hard
			break
		}
		p += j + 1
		q := p
		for q < w.hard && (blank(b[q]) || b[q] == '\r') {
			q++
		}
		if q == w.hard || b[q] == '\n' {
			p = q
			break
		}
	}
	w.blank = gap{k, p}
	return p
}

// plainLink looks back from the colon at i for a link type, then ahead for its path.
func (w *walker) plainLink(beg, done, i, end int) int {
	b := w.f.src
	s := i
	for s > done && i-s < maxLinkType && (asciiAlnum(b[s-1]) || b[s-1] == '+') {
		s--
	}
	for ; s < i; s++ {
		if asciiLetter(b[s]) && w.wordStart(beg, s) && linkType(strings.ToLower(string(b[s:i]))) {
			if k := w.pathEnd(i+1, end); k > 0 {
				w.emitLink(Link{Type: string(b[s:i]), Path: string(b[i+1 : k]), Form: PlainLink, Span: Span{s, k}}, 0)
				return k
			}
		}
	}
	return 0
}

// wordStart reports whether a word can start at i. Scripts that write no spaces
// do not bind Latin letters into a word.
func (w *walker) wordStart(beg, i int) bool {
	if i <= beg {
		return true
	}
	r := w.prevRune(beg, i)
	return !wordChar(r) || r >= utf8.RuneSelf && !unicode.Is(unicode.Latin, r)
}

// pathEnd is the end of the path of a plain link, or 0: at least two characters
// or bracket groups, the last not punctuation.
func (w *walker) pathEnd(k, end int) int {
	b, n, last := w.f.src, 0, 0
	for k < end && !(w.f.crlf && b[k] == '\r') {
		if strings.IndexByte("[]() \t\n<>", b[k]) < 0 {
			r, size := utf8.DecodeRune(b[k:end])
			k += size
			if n >= 1 && (r == '/' || !punctChar(r)) {
				last = k
			}
		} else if g := bracketGroup(b, k, end); g > 0 {
			k = g
			if n >= 1 {
				last = k
			}
		} else {
			break
		}
		n++
	}
	return last
}

// bracketGroup is the end of a bracketed part of a plain link, one more level allowed, or 0.
func bracketGroup(b []byte, i, end int) int {
	open := func(c byte) bool { return c == '<' || c == '(' || c == '[' }
	shut := func(c byte) bool { return c == '>' || c == ')' || c == ']' }
	pathByte := func(c byte) bool { return strings.IndexByte("[]() \t\n<>", c) < 0 }
	if !open(b[i]) {
		return 0
	}
	k := i + 1
	for k < end && (pathByte(b[k]) || open(b[k])) {
		if open(b[k]) {
			for k++; k < end && pathByte(b[k]); k++ {
			}
			if k >= end || !shut(b[k]) {
				return 0
			}
		}
		k++
	}
	if k < end && shut(b[k]) {
		return k + 1
	}
	return 0
}

// radioLink emits a link where the text at i repeats a radio target, and returns its end, or 0.
func (w *walker) radioLink(beg, i, end int) int {
	b := w.f.src
	if i > beg && alnum(w.prevRune(beg, i)) {
		return 0
	}
	for _, t := range w.radio {
		k := i + len(t)
		if k > end || !strings.EqualFold(string(b[i:k]), t) {
			continue
		}
		if r, _ := utf8.DecodeRune(b[k:end]); k < end && alnum(r) {
			continue
		}
		w.emitLink(Link{Type: "radio", Path: string(b[i:k]), Form: RadioLink, Span: Span{i, k}}, 0)
		return k
	}
	return 0
}

// maxRadio bounds the radio targets of one file, because each is looked for at
// every word of it.
const maxRadio = 256

// radioSink collects the radio targets of a file.
type radioSink struct {
	f     *File
	found []string
}

func (r *radioSink) open(n *node) {
	if n.kind == kindRadioTarget && len(r.found) < maxRadio {
		if t := strings.ToLower(r.f.Text(n.inner)); !slices.Contains(r.found, t) {
			r.found = append(r.found, t)
		}
	}
}

func (r *radioSink) shut(*node) {}

// radio is the file's radio targets, longest first, read when first needed.
func (f *File) radio() []string {
	f.radioOnce.Do(func() { f.radioText = radioTargets(f) })
	return f.radioText
}

func radioTargets(f *File) []string {
	if !bytes.Contains(f.src, []byte("<<<")) {
		return nil
	}
	r := &radioSink{f: f}
	w := walker{f: f, out: r}
	w.walkFile()
	slices.SortStableFunc(r.found, func(a, b string) int { return len(b) - len(a) })
	return r.found
}

// walkFile walks the preamble, every title and every body.
func (w *walker) walkFile() {
	f := w.f
	beg := f.bom
	if !f.drawer.Empty() {
		beg = f.drawer.End
	}
	w.walkSection(beg, f.headStart(0))
	for i := range f.heads {
		w.walkHeadline(Headline{f, i})
	}
}

func (w *walker) walkHeadline(h Headline) {
	t := h.TitleSpan()
	w.objects(t.Start, t.End, inTitle)
	b := h.BodySpan()
	w.walkSection(b.Start, b.End)
}
