package lisp

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"passepartout/internal/sexp"
)

// reader reads Lisp source into runtime values. It differs from [sexp.Reader]
// in what the language asks for beyond data: symbols are interned in packages,
// single and double floats are told apart, and every cons is charged to the
// thread. Nothing is ever evaluated while reading.
type reader struct {
	th   *Thread
	src  string
	pos  int
	line int32
	// stream is set when a program reads: errors are then conditions.
	stream *stream
	quasi  int
	seen   int // lines are counted up to here
}

func (th *Thread) newReader(src string) *reader {
	return &reader{th: th, src: src, line: 1}
}

// fail reports text that cannot be read.
func (r *reader) fail(incomplete bool, msg string) {
	if r.stream != nil {
		c := classReaderError
		if incomplete {
			c = classEndOfFile
		}
		r.th.raise(r.th.condition(c, msg, symStream, r.stream))
	}
	upto := r.src[:min(r.pos, len(r.src))]
	line := 1 + strings.Count(upto, "\n")
	col := 1 + utf8.RuneCountInString(upto[strings.LastIndexByte(upto, '\n')+1:])
	panic(&sexp.SyntaxError{File: r.th.file, Line: line, Col: col, Offset: r.pos, Msg: msg, Incomplete: incomplete})
}

// lineAt returns the line of an offset; offsets only grow.
func (r *reader) lineAt(pos int) int32 {
	if pos > r.seen {
		r.line += int32(strings.Count(r.src[r.seen:pos], "\n"))
		r.seen = pos
	}
	return r.line
}

// next reads one datum; false at the end of the text.
func (r *reader) next() (Value, bool) {
	for {
		r.space()
		if r.pos >= len(r.src) {
			return nil, false
		}
		if v, ok := r.datum(); ok {
			return v, true
		}
	}
}

func (r *reader) mustRead() Value {
	v, ok := r.next()
	if !ok {
		r.fail(true, "unexpected end of input: want a datum")
	}
	return v
}

// space skips white space and line comments.
func (r *reader) space() {
	for r.pos < len(r.src) {
		switch c := r.src[r.pos]; {
		case c == ';':
			i := strings.IndexByte(r.src[r.pos:], '\n')
			if i < 0 {
				r.pos = len(r.src)
				return
			}
			r.pos += i
		case c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' || c == '\v':
			r.pos++
		case c == 0xC2 && strings.HasPrefix(r.src[r.pos:], "\u00a0"):
			r.pos += 2
		default:
			return
		}
	}
}

// datum reads what starts at pos; false if it was a comment or a #+ that
// reads as nothing.
func (r *reader) datum() (Value, bool) {
	r.th.step(1)
	r.th.enter(1)
	defer r.th.leave(1)
	switch c := r.src[r.pos]; c {
	case '(':
		return r.list(), true
	case ')':
		r.pos++
		r.fail(false, "unmatched close parenthesis")
	case '\'':
		r.pos++
		return r.wrap(symQuote), true
	case '`':
		r.pos++
		r.quasi++
		x := r.mustRead()
		r.quasi--
		return r.th.quasi(x, 1), true
	case ',':
		return r.comma(), true
	case '"':
		return r.str(), true
	case '#':
		return r.dispatch()
	}
	return r.token(), true
}

func (r *reader) wrap(s *Symbol) Value {
	x := r.mustRead()
	return r.th.cons(s, r.th.cons(x, Nil))
}

func (r *reader) comma() Value {
	r.pos++
	if r.quasi == 0 {
		r.fail(false, "comma not inside a backquote")
	}
	s := symUnquote
	if r.pos < len(r.src) && (r.src[r.pos] == '@' || r.src[r.pos] == '.') {
		r.pos++
		s = symSplice
	}
	r.quasi--
	v := r.wrap(s)
	r.quasi++
	return v
}

func (r *reader) list() Value {
	start := r.pos
	r.pos++
	var head, tail *Cons
	for {
		r.space()
		if r.pos >= len(r.src) {
			r.fail(true, "unexpected end of input: want a close parenthesis")
		}
		if r.src[r.pos] == ')' {
			r.pos++
			if head == nil {
				return Nil
			}
			if r.th.where != nil && r.stream == nil {
				r.th.where[head] = r.lineAt(start)
			}
			return head
		}
		if r.dot() {
			if head == nil {
				r.fail(false, "nothing appears before . in list")
			}
			tail.cdr = r.mustRead()
			r.closeDotted()
			return head
		}
		if r.th.where != nil && head == nil {
			r.lineAt(start)
		}
		v, ok := r.datum()
		if !ok {
			continue
		}
		c := r.th.cons(v, Nil)
		if head == nil {
			head = c
		} else {
			tail.cdr = c
		}
		tail = c
	}
}

func (r *reader) dot() bool {
	if r.src[r.pos] != '.' || r.pos+1 < len(r.src) && !delimiter(r.src[r.pos+1]) {
		return false
	}
	r.pos++
	return true
}

func (r *reader) closeDotted() {
	for {
		r.space()
		if r.pos >= len(r.src) {
			r.fail(true, "unexpected end of input: want a close parenthesis")
		}
		if r.src[r.pos] == ')' {
			r.pos++
			return
		}
		if _, ok := r.datum(); ok {
			r.fail(false, "more than one object follows . in list")
		}
	}
}

func (r *reader) str() Value {
	r.pos++
	start := r.pos
	var b []byte
	for r.pos < len(r.src) {
		switch r.src[r.pos] {
		case '"':
			s := r.src[start:r.pos]
			if b != nil {
				s = string(append(b, s...))
			}
			r.pos++
			return r.th.str(s)
		case '\\':
			b = append(b, r.src[start:r.pos]...)
			r.pos++
			start = r.pos
			if r.pos < len(r.src) {
				_, n := utf8.DecodeRuneInString(r.src[r.pos:])
				r.pos += n
			}
		default:
			r.pos++
		}
	}
	r.fail(true, "unexpected end of input: want a closing quote")
	return nil
}

// dispatch reads a # form.
func (r *reader) dispatch() (Value, bool) {
	if r.pos+1 >= len(r.src) {
		r.fail(true, "unexpected end of input after #")
	}
	at := r.pos
	r.pos++
	num := -1
	for r.pos < len(r.src) && r.src[r.pos] >= '0' && r.src[r.pos] <= '9' && r.pos-at < 9 {
		num = max(num, 0)*10 + int(r.src[r.pos]-'0')
		r.pos++
	}
	if r.pos >= len(r.src) {
		r.fail(true, "unexpected end of input after #")
	}
	c := r.src[r.pos]
	r.pos++
	switch c {
	case '\'':
		return r.wrap(symFunction), true
	case '\\':
		return r.char(), true
	case '(':
		r.pos--
		return r.vector(num), true
	case '|':
		r.blockComment()
		return nil, false
	case ':':
		return r.th.newSymbol(r.plainName(), nil), true
	case 'x', 'X':
		return r.radix(16), true
	case 'b', 'B':
		return r.radix(2), true
	case 'o', 'O':
		return r.radix(8), true
	case 'r', 'R':
		if num >= 2 && num <= 36 {
			return r.radix(num), true
		}
		r.fail(false, "illegal radix in #R")
	case '*':
		return r.bits(), true
	case 'a', 'A':
		if num >= 0 {
			return r.array(num), true
		}
		r.fail(false, "no dimensions argument to #A")
	case '+', '-':
		return r.feature(c == '+')
	case 'p', 'P':
		return r.path(), true
	case '.':
		r.fail(false, "can't read #. while *READ-EVAL* is NIL")
	}
	r.fail(false, "no dispatch function defined for #"+string(rune(c)))
	return nil, false
}

// path reads #P"…". There are no pathnames: the text stands for one.
func (r *reader) path() Value {
	if r.pos >= len(r.src) {
		r.fail(true, "unexpected end of input after #P")
	}
	if r.src[r.pos] != '"' {
		r.fail(false, "want a text after #P")
	}
	return r.str()
}

func (r *reader) blockComment() {
	depth := 1
	for r.pos < len(r.src) {
		switch {
		case strings.HasPrefix(r.src[r.pos:], "|#"):
			r.pos += 2
			if depth--; depth == 0 {
				return
			}
		case strings.HasPrefix(r.src[r.pos:], "#|"):
			r.pos += 2
			depth++
		default:
			r.pos++
		}
	}
	r.fail(true, "unexpected end of input in a #| comment")
}

func (r *reader) char() Value {
	start := r.pos
	if r.pos >= len(r.src) {
		r.fail(true, "unexpected end of input after #\\")
	}
	c, n := utf8.DecodeRuneInString(r.src[r.pos:])
	r.pos += n
	for r.pos < len(r.src) && !delimiter(r.src[r.pos]) {
		r.pos++
	}
	name := r.src[start:r.pos]
	if len(name) == n {
		return Char(c)
	}
	if c, ok := charNamed(name); ok {
		return Char(c)
	}
	r.fail(false, "unrecognized character name: "+name)
	return nil
}

func (r *reader) vector(num int) Value {
	l := r.list()
	if c, ok := l.(*Cons); ok && r.th.lastCons(c).cdr != Value(Nil) {
		r.fail(false, "a vector cannot be dotted")
	}
	elems := r.th.items(l)
	r.th.alloc(len(elems))
	if num >= 0 {
		if len(elems) > num || len(elems) == 0 && num > 0 {
			r.fail(false, "vector is not as long as its #n( says")
		}
		r.th.alloc(num)
		for len(elems) < num {
			elems = append(elems, elems[len(elems)-1])
		}
	}
	return newVector(elems)
}

// array reads the contents of #nA; the dimensions are those of its first parts.
func (r *reader) array(rank int) Value {
	contents := r.mustRead()
	dims := []int{}
	part := contents
	for range rank {
		items := r.th.seq(part)
		dims = append(dims, len(items))
		if len(items) == 0 {
			break
		}
		part = items[0]
	}
	size := 1
	for _, d := range dims {
		size *= d
	}
	r.th.alloc(1 + size)
	a := &array{items: make([]Value, size), dims: dims, fill: noFill, elem: symT}
	if len(dims) == 1 {
		a.dims = nil
	}
	r.th.fillContents(a.items, dims, contents)
	return a
}

func (r *reader) bits() Value {
	var out []Value
	for r.pos < len(r.src) && (r.src[r.pos] == '0' || r.src[r.pos] == '1') {
		out = append(out, Int(r.src[r.pos]-'0'))
		r.pos++
	}
	r.th.alloc(len(out))
	a := newVector(out)
	a.elem = symBit
	return a
}

func (r *reader) radix(base int) Value {
	word := r.word()
	if v := r.th.parseInteger(word, base); v != nil {
		return v
	}
	if n, d, ok := strings.Cut(word, "/"); ok {
		num, den := r.th.parseInteger(n, base), r.th.parseInteger(d, base)
		if num != nil && den != nil {
			return r.th.divide(num, den)
		}
	}
	r.fail(false, "#"+strconv.Itoa(base)+"R: not a rational: "+word)
	return nil
}

// feature reads #+ and #-: the next form is kept only if the test holds.
func (r *reader) feature(want bool) (Value, bool) {
	test := r.mustRead()
	if r.th.hasFeature(test) == want {
		return r.mustRead(), true
	}
	r.mustRead()
	return nil, false
}

func (th *Thread) hasFeature(x Value) bool {
	switch x := x.(type) {
	case *Symbol:
		switch x.name {
		case "PASSEPARTOUT", "COMMON-LISP", "ANSI-CL", "UNICODE":
			return true
		}
	case *Cons:
		s, _ := x.car.(*Symbol)
		if s == nil {
			return false
		}
		parts := th.items(x.cdr)
		switch s.name {
		case "NOT":
			return len(parts) == 1 && !th.hasFeature(parts[0])
		case "AND":
			for _, p := range parts {
				if !th.hasFeature(p) {
					return false
				}
			}
			return true
		case "OR":
			for _, p := range parts {
				if th.hasFeature(p) {
					return true
				}
			}
		}
	}
	return false
}

func delimiter(c byte) bool {
	switch c {
	case '(', ')', '\'', '"', ';', '`', ',', ' ', '\n', '\t', '\r', '\f', '\v':
		return true
	}
	return false
}

// word returns the characters up to the next delimiter.
func (r *reader) word() string {
	start := r.pos
	for r.pos < len(r.src) && !delimiter(r.src[r.pos]) {
		r.pos++
	}
	return r.src[start:r.pos]
}

func (r *reader) plainName() string {
	t := r.scanToken()
	return t.text
}

type scanned struct {
	text    string
	escaped bool
	colon   int // byte offset of the package marker in text, or -1
	double  bool
}

// scanToken reads a symbol or number, folding case outside escapes.
func (r *reader) scanToken() scanned {
	t := scanned{colon: -1}
	var b strings.Builder
	for r.pos < len(r.src) && !delimiter(r.src[r.pos]) {
		switch c := r.src[r.pos]; c {
		case '|':
			t.escaped = true
			r.pos++
			i := strings.IndexByte(r.src[r.pos:], '|')
			for i > 0 && r.src[r.pos+i-1] == '\\' {
				j := strings.IndexByte(r.src[r.pos+i+1:], '|')
				if j < 0 {
					i = -1
					break
				}
				i += 1 + j
			}
			if i < 0 {
				r.fail(true, "unexpected end of input: want a closing |")
			}
			b.WriteString(strings.NewReplacer(`\\`, `\`, `\|`, `|`).Replace(r.src[r.pos : r.pos+i]))
			r.pos += i + 1
		case '\\':
			t.escaped = true
			r.pos++
			ch, n := utf8.DecodeRuneInString(r.src[r.pos:])
			if n == 0 {
				r.fail(true, "unexpected end of input after \\")
			}
			b.WriteRune(ch)
			r.pos += n
		case ':':
			if t.colon >= 0 {
				r.fail(false, "too many colons in symbol name")
			}
			t.colon = b.Len()
			r.pos++
			if r.pos < len(r.src) && r.src[r.pos] == ':' {
				t.double = true
				r.pos++
			}
		default:
			ch, n := utf8.DecodeRuneInString(r.src[r.pos:])
			b.WriteRune(upcaseRune(ch))
			r.pos += n
		}
	}
	t.text = b.String()
	return t
}

// upcaseRune is the upper case of c if that is one character that maps back.
func upcaseRune(c rune) rune {
	if c < utf8.RuneSelf {
		if c >= 'a' && c <= 'z' {
			return c - 32
		}
		return c
	}
	if u := unicode.ToUpper(c); unicode.ToLower(u) == c {
		return u
	}
	return c
}

func downcaseRune(c rune) rune {
	if c < utf8.RuneSelf {
		if c >= 'A' && c <= 'Z' {
			return c + 32
		}
		return c
	}
	if l := unicode.ToLower(c); unicode.ToUpper(l) == c {
		return l
	}
	return c
}

func (r *reader) token() Value {
	start := r.pos
	t := r.scanToken()
	if r.pos == start {
		r.fail(false, "unreadable character")
	}
	if !t.escaped && t.colon < 0 {
		if v := r.th.parseNumber(t.text, r.th.readBase()); v != nil {
			return v
		}
		if strings.Trim(t.text, ".") == "" {
			r.fail(false, "dot context error")
		}
	}
	return r.symbol(t)
}

func (r *reader) symbol(t scanned) Value {
	th := r.th
	switch {
	case t.colon < 0:
		return th.intern(t.text, th.currentPackage())
	case t.colon == 0:
		return th.keyword(t.text)
	}
	pkg, name := t.text[:t.colon], t.text[t.colon:]
	tab := th.findPackage(pkg)
	if tab == nil {
		r.missingPackage(pkg)
	}
	if t.double {
		return th.intern(name, tab.pkg)
	}
	s, status := th.findSymbol(name, tab.pkg)
	if s == nil && tab.library {
		return th.readLibrary(name, tab.pkg)
	}
	if s == nil || status != "EXTERNAL" {
		r.fail(false, "symbol "+name+" not found as external in the "+pkg+" package")
	}
	return s
}

func (r *reader) missingPackage(pkg string) {
	if r.stream == nil {
		r.fail(false, "package "+pkg+" does not exist")
	}
	r.th.raise(r.th.condition(classReaderPackage, "package "+pkg+" does not exist", symStream, r.stream, symPackageSlot, newStr(pkg)))
}

var classReaderPackage = newCondition("READER-PACKAGE-ERROR", nil, classReaderError, classPackageError)

func (th *Thread) readBase() int {
	if n, ok := th.cell(symReadBase).value.(Int); ok && n >= 2 && n <= 36 {
		return int(n)
	}
	return 10
}

// parseNumber returns the number a token stands for, or nil.
func (th *Thread) parseNumber(s string, base int) Value {
	if s == "" {
		return nil
	}
	if c := s[0]; base == 10 && (c < '0' || c > '9') && c != '+' && c != '-' && c != '.' {
		return nil
	}
	if s[len(s)-1] == '.' && len(s) > 1 {
		return th.parseInteger(s[:len(s)-1], 10)
	}
	if v := th.parseInteger(s, base); v != nil {
		return v
	}
	if n, d, ok := strings.Cut(s, "/"); ok {
		num, den := th.parseInteger(n, base), th.parseInteger(d, base)
		if num == nil || den == nil || d[0] == '+' || d[0] == '-' {
			return nil
		}
		if isZero(den) {
			th.fail(classReaderError, "division by zero in the number %s", s)
		}
		return th.divide(num, den)
	}
	return th.parseFloat(s)
}

// parseInteger returns nil if s is not wholly an integer in that base. Reading many
// digits takes time that grows with their square.
func (th *Thread) parseInteger(s string, base int) Value {
	digits := strings.TrimLeft(s, "+-")
	if digits == "" || len(s)-len(digits) > 1 {
		return nil
	}
	for i := range len(digits) {
		if d := digitValue(rune(digits[i])); d < 0 || d >= base {
			return nil
		}
	}
	if n, err := strconv.ParseInt(s, base, 64); err == nil {
		return mkInt(n)
	}
	th.step(uint64(1 + len(s)*len(s)/4096))
	th.alloc(len(s) / 32)
	if n, ok := new(big.Int).SetString(s, base); ok {
		return mkBig(n)
	}
	return nil
}

func digitValue(c rune) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'z':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'Z':
		return int(c-'A') + 10
	}
	return -1
}

// parseFloat reads [sign] {digit}* [. {digit}+] [exponent]; the exponent's
// letter chooses the type.
func (th *Thread) parseFloat(s string) Value {
	i := 0
	if s[0] == '+' || s[0] == '-' {
		i++
	}
	mant := i
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	whole := i - mant
	frac := -1
	if i < len(s) && s[i] == '.' {
		i++
		start := i
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		frac = i - start
	}
	digits := s[:i]
	if frac == 0 && i == len(s) || frac <= 0 && whole == 0 {
		return nil
	}
	letter := byte('E')
	exp := ""
	if i < len(s) {
		letter = s[i]
		exp = s[i+1:]
		if !strings.ContainsRune("ESFDL", rune(letter)) || !wholeExponent(exp) {
			return nil
		}
	} else if frac < 0 {
		return nil
	}
	if exp == "" {
		exp = "0"
	}
	double := letter == 'D' || letter == 'L'
	if letter == 'E' && exp != "" {
		double = th.cell(symReadFloat).value == Value(symDoubleFloat)
	}
	return th.floatFrom(digits+"e"+exp, double)
}

func wholeExponent(s string) bool {
	t := strings.TrimLeft(s, "+-")
	if t == "" || len(s)-len(t) > 1 || len(t) > 9 {
		return false
	}
	return strings.Trim(t, "0123456789") == ""
}

func (th *Thread) floatFrom(s string, double bool) Value {
	if double {
		f, _ := strconv.ParseFloat(s, 64)
		if math.IsInf(f, 0) {
			th.fail(classReaderError, "floating-point-overflow: %s", s)
		}
		return Double(f)
	}
	f, _ := strconv.ParseFloat(s, 32)
	if math.IsInf(f, 0) {
		th.fail(classReaderError, "floating-point-overflow: %s", s)
	}
	return Single(f)
}

// quasi turns a backquoted form into code that builds it. Nested backquotes
// have been turned into code already when the outer one is read, so depth is
// only ever one here.
func (th *Thread) quasi(x Value, depth int) Value {
	th.enter(1)
	defer th.leave(1)
	th.alloc(4)
	switch x := x.(type) {
	case *Cons:
		if x.car == Value(symUnquote) {
			return car(x.cdr)
		}
		if x.car == Value(symSplice) {
			th.fail(classReaderError, ",@ after backquote")
		}
		return th.quasiList(x, depth)
	case *array:
		return list(symCoerce, th.quasi(list(x.items...), depth), list(symQuote, symVector))
	case *Symbol:
		if x == Nil || x == symT || x.keyword() {
			return x
		}
		return list(symQuote, x)
	case *Str, Int, Char:
		return x
	}
	return list(symQuote, x)
}

func (th *Thread) quasiList(x *Cons, depth int) Value {
	var parts []Value // arguments of append
	var run []Value   // elements of the list being collected
	flush := func() {
		if run != nil {
			parts = append(parts, listTo(Nil, append([]Value{symList}, run...)...))
			run = nil
		}
	}
	var rest Value = x
	for {
		c, ok := rest.(*Cons)
		if !ok {
			break
		}
		th.step(1)
		if c.car == Value(symUnquote) { // (a . ,b)
			flush()
			parts = append(parts, car(c.cdr))
			return listTo(Nil, append([]Value{symAppend}, parts...)...)
		}
		if s, ok := c.car.(*Cons); ok && s.car == Value(symSplice) {
			flush()
			parts = append(parts, car(s.cdr))
		} else {
			run = append(run, th.quasi(c.car, depth))
		}
		rest = c.cdr
	}
	flush()
	if rest != Value(Nil) {
		parts = append(parts, th.quasi(rest, depth))
	} else if len(parts) == 1 && car(parts[0]) == Value(symList) {
		return parts[0]
	}
	return listTo(Nil, append([]Value{symAppend}, parts...)...)
}
