package sexp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// Limits bound what a [Reader] accepts, so that hostile input costs little. A
// field that is zero or negative stands for its default.
type Limits struct {
	Bytes   int // length of the input; default [MaxBytes]
	Depth   int // nesting of lists, vectors and quote forms; default 256, never above 10,000
	Items   int // data in the whole input, counting every atom and every list; default 1<<20
	Symbols int // distinct names of symbols and keywords, not counting a few that all messages share; default 1<<16
}

// MaxBytes is the longest input read by default: the most that a frame's six
// hex digits can announce.
const MaxBytes = 1<<24 - 1

// MaxDigits is the most digits a number may be written with. Converting
// decimal digits takes more than linear time, so a length limit is not enough.
const MaxDigits = 10_000

const (
	defaultDepth   = 256
	maxDepth       = 10_000 // the reader recurses: this keeps its stack within a few MB
	defaultItems   = 1 << 20
	defaultSymbols = 1 << 16

	// Strings read from inputs up to this size share one copy of the input. In
	// longer ones a small string must not keep the whole input alive.
	shareBytes = 4 << 10
)

func (l Limits) orDefault() Limits {
	set := func(n *int, d int) {
		if *n <= 0 {
			*n = d
		}
	}
	set(&l.Bytes, MaxBytes)
	set(&l.Depth, defaultDepth)
	set(&l.Items, defaultItems)
	set(&l.Symbols, defaultSymbols)
	l.Depth = min(l.Depth, maxDepth)
	return l
}

// Options tell a [Reader] what to accept.
type Options struct {
	Limits Limits
	File   string // named in errors; may be empty
	// Lisp admits what only program text needs: block comments #| |#, feature
	// tests #+ #- and numbers in another radix #x #o #b. Without it they are
	// errors, as evaluation, labels, structures and pathnames always are.
	Lisp     bool
	Features []string // names that hold in #+ and #-, in any case
}

// A Reader reads data one after another from one slice of bytes.
//
// The notation is that of Common Lisp as far as it is data. Letters outside
// bars and not after a backslash are folded to upper case. 'x, `x, ,x, ,@x and
// #'x stand for the lists (QUOTE x), (QUASIQUOTE x), (UNQUOTE x),
// (UNQUOTE-SPLICING x) and (FUNCTION x). PKG:NAME and PKG::NAME are the same
// symbol. A number with a point or an exponent is a double, whichever exponent
// letter it is written with.
type Reader struct {
	src      []byte
	text     string // src again, when it is short enough to be shared
	file     string
	lisp     bool
	features []string
	lim      Limits

	off   int   // next byte to read
	start int   // first byte of the datum last read
	err   error // the first error; the reader stays there

	depth int
	items int
	names names

	lines []int      // offset of each line's first byte, once asked for
	where *Positions // being recorded, or nil
	marks []int      // offsets of the items of all open lists, while where is not nil
}

// NewReader returns a reader of src, which must not change while it is used.
func NewReader(src []byte, o Options) *Reader {
	r := &Reader{src: src, file: o.File, lisp: o.Lisp, features: o.Features, lim: o.Limits.orDefault()}
	r.check()
	return r
}

// check refuses input that is too long, or is not text, as a whole.
func (r *Reader) check() {
	switch {
	case len(r.src) > r.lim.Bytes:
		r.err = &SyntaxError{
			File: r.file, Line: 1, Col: 1,
			Msg: fmt.Sprintf("input has %d bytes: want at most %d", len(r.src), r.lim.Bytes),
		}
		return
	case bytes.IndexByte(r.src, 0) >= 0:
		r.err = r.errorAt(bytes.IndexByte(r.src, 0), "a NUL byte: want text")
	case !utf8.Valid(r.src):
		r.err = r.errorAt(invalidAt(r.src), "a byte that is not UTF-8")
	}
	if len(r.src) <= shareBytes {
		r.text = string(r.src)
	}
}

func invalidAt(src []byte) int {
	for i := 0; i < len(src); {
		c, n := utf8.DecodeRune(src[i:])
		if c == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(src)
}

// Read returns the next datum, or [io.EOF] when only white space and comments
// are left. Any other error is a [*SyntaxError] and ends the reading.
func (r *Reader) Read() (v Value, err error) {
	if r.err != nil {
		return nil, r.err
	}
	defer func() {
		if p := recover(); p != nil {
			e, ok := p.(*SyntaxError)
			if !ok { // a mistake of ours must not end the process of whoever was sent the input
				e = r.errorAt(min(r.off, len(r.src)), "internal error: %v", p)
			}
			r.err, v, err = e, nil, e
		}
	}()
	if !r.skip() {
		r.err = io.EOF
		return nil, io.EOF
	}
	r.start, r.depth = r.off, 0
	return r.datum(), nil
}

// Read reads exactly one datum; white space and comments may surround it.
func Read(src []byte, l Limits) (Value, error) {
	r := Reader{src: src, lim: l.orDefault()}
	r.check()
	v, err := r.Read()
	if errors.Is(err, io.EOF) {
		e := r.errorAt(len(src), "end of input: want a datum")
		e.Incomplete = true
		return nil, e
	}
	if err != nil {
		return nil, err
	}
	if r.skip() { // cannot fail: only program text has comments that can
		return nil, r.errorAt(r.off, "a second datum: want one only")
	}
	return v, nil
}

// ReadPlist reads exactly one datum, which must be a property list.
func ReadPlist(src []byte, l Limits) (Plist, error) {
	v, err := Read(src, l)
	if err != nil {
		return Plist{}, err
	}
	list, ok := v.(List)
	if !ok {
		return Plist{}, fmt.Errorf("%s: want a property list", brief(v))
	}
	return AsPlist(list)
}

// skip passes over white space and comments; it is false at the end of input.
func (r *Reader) skip() bool {
	tested := -1 // where a feature test that holds was, which wants a datum
	for r.off < len(r.src) {
		c := r.src[r.off]
		switch {
		case isSpace(c):
			r.off++
		case c == ';':
			n := bytes.IndexByte(r.src[r.off:], '\n')
			if n < 0 {
				n = len(r.src) - r.off - 1
			}
			r.off += n + 1
		case c == '#' && r.lisp && r.next() == '|':
			r.blockComment()
		case c == '#' && r.lisp && (r.next() == '+' || r.next() == '-'):
			at := r.off
			if r.featureTest() {
				tested = at
			}
		case c == ')' && tested >= 0:
			r.fail(tested, "a feature test without a datum after it")
		default:
			return true
		}
	}
	if tested >= 0 {
		r.failIncomplete(tested, "a feature test without a datum after it")
	}
	return false
}

// next returns the byte after the one at r.off, 0 at the end.
func (r *Reader) next() byte {
	if r.off+1 == len(r.src) {
		return 0
	}
	return r.src[r.off+1]
}

// need skips to the next datum, which must be there.
func (r *Reader) need(what string) {
	at := r.off
	if !r.skip() {
		r.failIncomplete(at, "end of input: want %s", what)
	}
}

func (r *Reader) blockComment() {
	at, open := r.off, 0
	for ; r.off+1 < len(r.src); r.off++ {
		switch {
		case r.src[r.off] == '#' && r.src[r.off+1] == '|':
			open++
			r.off++
		case r.src[r.off] == '|' && r.src[r.off+1] == '#':
			open--
			r.off++
			if open == 0 {
				r.off++
				return
			}
		}
	}
	r.failIncomplete(at, "block comment without its end |#")
}

// datum reads the datum that starts at r.off.
func (r *Reader) datum() Value {
	r.items++
	if r.items > r.lim.Items {
		r.fail(r.off, "more than %d items", r.lim.Items)
	}
	switch r.src[r.off] {
	case '(':
		return r.list()
	case ')':
		r.fail(r.off, "a closing parenthesis without its opening one")
	case '"':
		return r.str()
	case '\'':
		return r.quoted(1, symQuote)
	case '`':
		return r.quoted(1, symQuasiquote)
	case ',':
		return r.comma()
	case '#':
		return r.dispatch()
	}
	return r.token()
}

func (r *Reader) enter() {
	r.depth++
	if r.depth > r.lim.Depth {
		r.fail(r.off, "nesting deeper than %d", r.lim.Depth)
	}
}

// A list is gathered on the goroutine's stack while it has no more items than
// this, so that only its final, exact slice is allocated.
const shortList = 16

// list reads (items…) or (items… . tail).
func (r *Reader) list() Value {
	r.enter()
	at, mark := r.off, len(r.marks)
	r.off++
	var short [shortList]Value
	items := short[:0]
	var tail Value
	for !r.closes(at) {
		if r.dot() {
			if len(items) == 0 {
				r.fail(r.off, "a dot with nothing before it in a list")
			}
			tail = r.tail(at)
			break
		}
		items = append(items, r.item())
	}
	r.depth--
	if len(items) == 0 {
		return Nil
	}
	if sub, ok := tail.(List); ok {
		items, tail = append(items, sub.items...), sub.tail
	}
	kept := exactly(items)
	r.record(kept, at, mark)
	return List{items: kept, tail: tail}
}

// vector reads the items of #(items…), r.off being at the parenthesis.
func (r *Reader) vector() Value {
	r.enter()
	at, mark := r.off-1, len(r.marks)
	r.off++
	var short [shortList]Value
	items := short[:0]
	for !r.closes(at) {
		if r.dot() {
			r.fail(r.off, "a dot in a vector")
		}
		items = append(items, r.item())
	}
	r.depth--
	kept := exactly(items)
	r.record(kept, at, mark)
	return Vector{kept}
}

// item reads an item of a list, noting its place if places are asked for.
func (r *Reader) item() Value {
	if r.where != nil {
		r.marks = append(r.marks, r.off)
	}
	return r.datum()
}

// exactly copies items to the heap. The result must not be assigned to a
// variable that held a short list, which would take the array there too.
func exactly(items []Value) []Value {
	out := make([]Value, len(items))
	copy(out, items)
	return out
}

// closes skips to the next item of the list opened at byte at, and passes the
// closing parenthesis if that comes first.
func (r *Reader) closes(at int) bool {
	if r.off < len(r.src) && r.src[r.off] == ' ' { // as the printer separates items
		r.off++
	}
	if r.off == len(r.src) || class[r.src[r.off]]&isGap != 0 {
		if !r.skip() {
			r.failIncomplete(at, "a list without its closing parenthesis")
		}
	}
	if r.src[r.off] != ')' {
		return false
	}
	r.off++
	return true
}

// dot reports whether the next token is a lone dot.
func (r *Reader) dot() bool {
	return r.src[r.off] == '.' && (r.off+1 == len(r.src) || class[r.src[r.off+1]]&isEnd != 0)
}

func (r *Reader) tail(at int) Value {
	r.off++
	if r.closes(at) {
		r.fail(r.off-1, "a dot with nothing after it in a list")
	}
	tail := r.datum()
	if !r.closes(at) {
		r.fail(r.off, "more than one datum after the dot of a list")
	}
	return tail
}

// quoted reads the datum after a prefix of n bytes as (name datum).
func (r *Reader) quoted(n int, name Value) Value {
	r.enter()
	at, mark := r.off, len(r.marks)
	r.off += n
	r.need("the datum that a prefix is for")
	if r.dot() || r.src[r.off] == ')' {
		r.fail(r.off, "%q: want a datum after %s", r.src[r.off:r.off+1], r.src[at:at+n])
	}
	if r.where != nil {
		r.marks = append(r.marks, at, r.off)
	}
	items := []Value{name, r.datum()}
	r.depth--
	r.record(items, at, mark)
	return List{items: items}
}

func (r *Reader) comma() Value {
	switch r.next() {
	case '@':
		return r.quoted(2, symSplice)
	case '.':
		r.fail(r.off, "the destructive splice ,. is not supported: want ,@")
	}
	return r.quoted(1, symUnquote)
}

// str reads a string; a backslash takes the next character as it is.
func (r *Reader) str() Value {
	at := r.off
	r.off++
	n := bytes.IndexByte(r.src[r.off:], '"')
	if n < 0 {
		r.failIncomplete(at, "a string without its closing quote")
	}
	if bytes.IndexByte(r.src[r.off:r.off+n], '\\') < 0 {
		from := r.off
		r.off += n + 1
		return String(r.slice(from, from+n))
	}
	return r.escapedString(at)
}

// slice returns bytes of the input as a string.
func (r *Reader) slice(from, to int) string {
	if r.text != "" {
		return r.text[from:to]
	}
	return string(r.src[from:to])
}

// escapedString reads a string with backslashes, r.off being after the quote.
func (r *Reader) escapedString(at int) Value {
	end := r.off // of the string
	for end < len(r.src) && r.src[end] != '"' {
		if r.src[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(r.src) {
		r.failIncomplete(at, "a string without its closing quote")
	}
	out, n := make([]byte, end-r.off), 0
	for i := r.off; i < end; i++ {
		if r.src[i] == '\\' {
			i++ // of a longer character the rest follows as it is
		}
		out[n] = r.src[i]
		n++
	}
	r.off = end + 1
	return String(out[:n])
}

// dispatch reads what begins with a sharp sign.
func (r *Reader) dispatch() Value {
	if r.off+1 == len(r.src) {
		r.failIncomplete(r.off, "end of input after #")
	}
	switch r.src[r.off+1] {
	case '\'':
		return r.quoted(2, symFunction)
	case '(':
		r.off++
		return r.vector()
	case '\\':
		return r.char()
	case ':':
		return r.uninterned()
	case 'x', 'X', 'o', 'O', 'b', 'B':
		if r.lisp {
			return r.radix()
		}
	case '.':
		r.fail(r.off, "#. is refused: nothing is evaluated while reading")
	}
	c, _ := utf8.DecodeRune(r.src[r.off+1:])
	r.fail(r.off, "the notation #%c is refused", c)
	return nil
}

// featureTest reads #+feature or #-feature. It is true when the next datum
// counts; otherwise that datum has been read and dropped.
func (r *Reader) featureTest() bool {
	want := r.src[r.off+1] == '+'
	r.enter()
	r.off += 2
	at := r.off
	r.need("a feature")
	if r.feature(r.datum(), at) != want {
		r.need("a datum after a feature test")
		r.datum()
		r.depth--
		return false
	}
	r.depth--
	return true
}

func (r *Reader) feature(v Value, at int) bool {
	switch v := v.(type) {
	case Keyword:
		return r.hasFeature(string(v))
	case Symbol:
		return r.hasFeature(v.Name)
	case List:
		if v.Len() == 0 || v.tail != nil {
			break
		}
		op := name(v.items[0])
		switch args := v.items[1:]; {
		case op == "NOT" && len(args) == 1:
			return !r.feature(args[0], at)
		case op == "AND":
			for _, a := range args {
				if !r.feature(a, at) {
					return false
				}
			}
			return true
		case op == "OR":
			for _, a := range args {
				if r.feature(a, at) {
					return true
				}
			}
			return false
		}
	}
	r.fail(at, "%s: want a feature: a name, or AND, OR, NOT of features", brief(v))
	return false
}

func (r *Reader) hasFeature(name string) bool {
	for _, f := range r.features {
		if fold(f) == name {
			return true
		}
	}
	return false
}

// name returns the name of a symbol or keyword, "" for anything else.
func name(v Value) string {
	switch v := v.(type) {
	case Symbol:
		return v.Name
	case Keyword:
		return string(v)
	}
	return ""
}

// brief is the printed form of v for an error message.
func brief(v Value) string { return shorten(v.String(), 60) }

// shorten cuts s to at most n bytes and an ellipsis.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
