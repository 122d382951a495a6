package sexp

import (
	"errors"
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The names that quote forms stand for, as values made once.
var (
	symQuote      Value = Sym("QUOTE")
	symQuasiquote Value = Sym("QUASIQUOTE")
	symUnquote    Value = Sym("UNQUOTE")
	symSplice     Value = Sym("UNQUOTE-SPLICING")
	symFunction   Value = Sym("FUNCTION")
)

// What a byte can be within a token.
const (
	isEnd    uint8 = 1 << iota // ends the token
	isLower                    // needs folding
	isEscape                   // | or \
	isColon                    // package marker
	isHigh                     // part of a character beyond ASCII
	isGap                      // before a datum: not part of it, or perhaps not
)

var class = func() (t [256]uint8) {
	for c := range 0x21 {
		t[c] = isEnd
	}
	t[0x7f] = isEnd
	for c := range len(t) {
		if isSpace(byte(c)) {
			t[c] |= isGap
		}
	}
	for _, c := range "()\"';`," {
		t[c] = isEnd
	}
	t[';'] |= isGap
	for c := 'a'; c <= 'z'; c++ {
		t[c] = isLower
	}
	t['#'] = isGap
	t['|'], t['\\'], t[':'] = isEscape, isEscape, isColon
	for c := 0x80; c < 0x100; c++ {
		t[c] = isHigh
	}
	return t
}()

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// token reads a number, a keyword or a symbol.
func (r *Reader) token() Value {
	at := r.off
	i, key := at, nameKey{}
	if r.src[at] == ':' {
		i, key.keyword = at+1, true
	}
	from := i
	var seen uint8
	hash := hashSeed
	for ; i < len(r.src); i++ {
		c := r.src[i]
		k := class[c]
		if k&isEnd != 0 {
			break
		}
		seen |= k
		if k == isLower {
			c -= 'a' - 'A'
		}
		hash = hashStep(hash, c)
	}
	tok := r.src[from:i]
	switch {
	case seen&(isEscape|isHigh) != 0, seen&isColon != 0 && !key.keyword:
		return r.spelled()
	case seen&isColon != 0:
		r.fail(at, ":%s: want one colon in a keyword", tok)
	case len(tok) == 0 && key.keyword:
		r.fail(at, "a colon alone: want a keyword's name after it")
	case len(tok) == 0:
		r.fail(at, "the character %U between data: want it within a string", r.src[at])
	}
	r.off = i
	if tok[0] <= '9' && !key.keyword { // every number starts with a digit, a sign or a point
		if v := r.number(at, tok, 10); v != nil {
			return v
		}
		if tok[0] == '.' && strings.Trim(string(tok), ".") == "" {
			r.fail(at, "%s: want a dot alone, within a list", tok)
		}
	}
	if seen&isLower == 0 {
		return r.intern(at, key, tok, hash)
	}
	var buf [64]byte
	return r.intern(at, key, upper(buf[:0], tok), hash)
}

// upper appends an ASCII token to buf, folded.
func upper(buf, tok []byte) []byte {
	for _, c := range tok {
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		buf = append(buf, c)
	}
	return buf
}

// foldRune folds only letters whose cases correspond one to one. The long s
// and the dotless i have ASCII upper cases; folding them would let two
// spellings of one word pass as different before and the same after.
func foldRune(c rune) rune {
	if u := unicode.ToUpper(c); unicode.ToLower(u) == c {
		return u
	}
	return c
}

func fold(s string) string { return strings.Map(foldRune, s) }

// bareRune reports whether c, beyond ASCII, may stand in a name without bars.
func bareRune(c rune) bool { return unicode.IsGraphic(c) && !unicode.IsSpace(c) }

// A spelling is a token with escapes or package markers, taken apart.
type spelling struct {
	part    [2][]byte // name, or package and name
	colons  int       // 0, 1 or 2
	escaped bool
}

// spelled reads a token that the fast path of [Reader.token] does not cover.
func (r *Reader) spelled() Value {
	at := r.off
	s := r.spell()
	pkg, name := s.part[0], s.part[1]
	switch {
	case s.colons == 0: // an escape or a letter beyond ASCII: no number
		return r.intern(at, nameKey{}, pkg, hashName(pkg))
	case len(pkg) == 0 && s.colons == 1 && r.src[at] == ':':
		return r.intern(at, nameKey{keyword: true}, name, hashName(name))
	case len(pkg) == 0:
		r.fail(at, "%s: want a package before the colons", r.src[at:r.off])
	}
	return r.intern(at, nameKey{pkg: string(pkg)}, name, hashName(name))
}

// spell reads the token at r.off, resolving case and escapes.
func (r *Reader) spell() (s spelling) {
	at, part, bars := r.off, 0, -1
	add := func(c rune) { s.part[part] = utf8.AppendRune(s.part[part], c) }
	for r.off < len(r.src) {
		c, n := utf8.DecodeRune(r.src[r.off:])
		switch {
		case c == '\\':
			if r.off+1 == len(r.src) {
				r.failIncomplete(r.off, "a backslash at the end of input")
			}
			s.escaped = true
			c, m := utf8.DecodeRune(r.src[r.off+1:])
			add(c)
			n += m
		case c == '|' && bars < 0:
			s.escaped, bars = true, r.off
		case c == '|':
			bars = -1
		case bars >= 0:
			add(c)
		case c < utf8.RuneSelf && class[c]&isEnd != 0:
			r.checkColons(at, s)
			return s
		case c == ':':
			s.colons++
			part = 1
			if s.colons > 2 || s.colons == 2 && r.src[r.off-1] != ':' {
				r.fail(at, "more than one package marker in a name")
			}
		case c >= utf8.RuneSelf && !bareRune(c):
			r.fail(r.off, "the character %U in a name: want it between bars", c)
		default:
			add(foldRune(c))
		}
		r.off += n
	}
	if bars >= 0 {
		r.failIncomplete(bars, "a name without its closing bar")
	}
	r.checkColons(at, s)
	return s
}

func (r *Reader) checkColons(at int, s spelling) {
	if s.colons > 0 && len(s.part[1]) == 0 && !s.escaped {
		r.fail(at, "%s: want a name after the colon", r.src[at:r.off])
	}
}

// uninterned reads #:name.
func (r *Reader) uninterned() Value {
	at := r.off
	r.off += 2
	s := r.spell()
	if s.colons > 0 || len(s.part[0]) == 0 && !s.escaped {
		r.fail(at, "%s: want a name without package after #:", r.src[at:r.off])
	}
	return r.intern(at, nameKey{pkg: "#"}, s.part[0], hashName(s.part[0]))
}

// charNames are the characters written by name. Of several names for one
// character the first is printed.
var charNames = []struct {
	name string
	c    rune
}{
	{"Newline", '\n'},
	{"Space", ' '},
	{"Tab", '\t'},
	{"Return", '\r'},
	{"Page", '\f'},
	{"Backspace", '\b'},
	{"Rubout", 0x7f},
	{"Nul", 0},
	{"Escape", 0x1b},
	{"Linefeed", '\n'},
	{"Null", 0},
	{"Delete", 0x7f},
	{"Esc", 0x1b},
}

// char reads #\x, #\Name or #\U+hex.
func (r *Reader) char() Value {
	at := r.off
	r.off += 2
	if r.off == len(r.src) {
		r.failIncomplete(at, `end of input after #\`)
	}
	first, n := utf8.DecodeRune(r.src[r.off:])
	from := r.off
	r.off += n
	for r.off < len(r.src) && class[r.src[r.off]]&isEnd == 0 {
		r.off++
	}
	if r.off == from+n {
		return Char(first)
	}
	name := string(r.src[from:r.off])
	for _, e := range charNames {
		if strings.EqualFold(e.name, name) {
			return Char(e.c)
		}
	}
	if first == 'U' || first == 'u' {
		hex := strings.TrimPrefix(name[1:], "+")
		if c, err := strconv.ParseUint(hex, 16, 21); err == nil && utf8.ValidRune(rune(c)) {
			return Char(c)
		}
	}
	r.fail(at, `#\%s: want one character, its name or U+ and its code`, name)
	return nil
}

// radix reads #x, #o or #b and an integer or ratio.
func (r *Reader) radix() Value {
	at, base := r.off, map[byte]int{'x': 16, 'o': 8, 'b': 2}[r.src[r.off+1]|0x20]
	r.off += 2
	from := r.off
	for r.off < len(r.src) && class[r.src[r.off]]&isEnd == 0 {
		r.off++
	}
	v := r.number(at, r.src[from:r.off], base)
	if v == nil {
		r.fail(at, "%s: want an integer or a ratio in base %d", r.src[at:r.off], base)
	}
	return v
}

// number returns the number tok spells, or nil when it spells none.
func (r *Reader) number(at int, tok []byte, base int) Value {
	if v, ok := smallInt(tok, base); ok {
		return v
	}
	body := tok
	if len(body) > 0 && (body[0] == '+' || body[0] == '-') {
		body = body[1:]
	}
	n := digits(body, base)
	rest := body[n:]
	switch {
	case n > 0 && (len(rest) == 0 || base == 10 && len(rest) == 1 && rest[0] == '.'):
		r.checkDigits(at, n)
		return NewBigInt(bigInt(tok[:len(tok)-len(rest)], base))
	case n > 0 && len(rest) > 1 && rest[0] == '/' && digits(rest[1:], base) == len(rest)-1:
		r.checkDigits(at, len(body))
		num, den := bigInt(tok[:len(tok)-len(rest)], base), bigInt(rest[1:], base)
		v, err := NewRatio(num, den)
		if err != nil {
			r.fail(at, "%v", err)
		}
		return v
	case base == 10 && isFloat(rest, n > 0):
		r.checkDigits(at, len(body))
		return r.float(at, tok)
	}
	return nil
}

func (r *Reader) checkDigits(at, n int) {
	if n > MaxDigits {
		r.fail(at, "a number of %d digits: want at most %d", n, MaxDigits)
	}
}

// smallInt covers the integers that cannot overflow.
func smallInt(tok []byte, base int) (Value, bool) {
	const safe = 15 // digits, in base 16
	i := 0
	if len(tok) > 0 && (tok[0] == '-' || tok[0] == '+') {
		i = 1
	}
	if len(tok) == i || len(tok) > i+safe {
		return nil, false
	}
	var n int64
	for _, c := range tok[i:] {
		d := digit(c)
		if d >= base {
			return nil, false
		}
		n = n*int64(base) + int64(d)
	}
	if tok[0] == '-' {
		n = -n
	}
	if 0 <= n && n < int64(len(lowInts)) {
		return lowInts[n], true
	}
	return Int{small: n}, true
}

// lowInts are the most frequent numbers, as values made once.
var lowInts = func() (t [64]Value) {
	for n := range t {
		t[n] = NewInt(int64(n))
	}
	return t
}()

func digit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return 99
}

// digits counts the digits tok starts with.
func digits(tok []byte, base int) int {
	n := 0
	for n < len(tok) && digit(tok[n]) < base {
		n++
	}
	return n
}

func bigInt(digits []byte, base int) *big.Int {
	n, _ := new(big.Int).SetString(string(digits), base)
	return n
}

// isFloat reports whether rest, following the whole digits if there are any,
// makes a float: .digits, an exponent, or both, with digits on one side.
func isFloat(rest []byte, whole bool) bool {
	point := false
	if len(rest) > 0 && rest[0] == '.' {
		n := digits(rest[1:], 10)
		rest = rest[1+n:]
		point = n > 0
		if n == 0 && !whole {
			return false
		}
	}
	if len(rest) == 0 {
		return point
	}
	if !point && !whole || !strings.ContainsRune("esfdlESFDL", rune(rest[0])) {
		return false
	}
	rest = rest[1:]
	if len(rest) > 0 && (rest[0] == '+' || rest[0] == '-') {
		rest = rest[1:]
	}
	return len(rest) > 0 && digits(rest, 10) == len(rest)
}

func (r *Reader) float(at int, tok []byte) Value {
	s := strings.Map(func(c rune) rune {
		if unicode.IsLetter(c) {
			return 'e' // all exponent letters mean a double here
		}
		return c
	}, string(tok))
	f, err := strconv.ParseFloat(s, 64)
	if errors.Is(err, strconv.ErrRange) {
		r.fail(at, "%s: want a number that fits a double", tok)
	}
	return Float(f)
}

// A nameKey tells names apart.
type nameKey struct {
	pkg, name string
	keyword   bool
}

func (k nameKey) value() Value {
	switch {
	case k.keyword:
		return Keyword(k.name)
	case k.pkg == "" && k.name == "NIL":
		return Nil
	}
	return Symbol{Pkg: k.pkg, Name: k.name}
}

// keyOf undoes value.
func keyOf(v Value) nameKey {
	switch v := v.(type) {
	case Keyword:
		return nameKey{name: string(v), keyword: true}
	case Symbol:
		return nameKey{pkg: v.Pkg, name: v.Name}
	}
	return nameKey{name: "NIL"}
}

const (
	smallNames = 32 // slots, a power of two
	fullNames  = 24 // taken slots after which the map is cheaper
)

// names holds each distinct symbol and keyword of the input once: for the
// limit, and so that a repeated name costs no memory. Most inputs have a
// handful, for which a map would cost more than all else.
type names struct {
	small [smallNames]Value
	n     int
	large map[nameKey]Value // all of them, once there are more than fullNames
}

// intern returns the value of a name. The caller leaves key.name empty: name
// becomes a string only when it is new. hash is its [hashName].
func (r *Reader) intern(at int, key nameKey, name []byte, hash uint32) Value {
	if key.keyword {
		if e := &commonWords[hash%uint32(len(commonWords))]; e.name == string(name) && e.v != nil {
			return e.v
		}
	}
	t := &r.names
	slot := hash % smallNames
	if t.large != nil {
		if v, ok := t.large[nameKey{key.pkg, string(name), key.keyword}]; ok {
			return v
		}
	} else {
		for ; t.small[slot] != nil; slot = (slot + 1) % smallNames {
			if k := keyOf(t.small[slot]); k.name == string(name) && k.keyword == key.keyword && k.pkg == key.pkg {
				return t.small[slot]
			}
		}
	}
	t.n++
	if t.n > r.lim.Symbols {
		r.fail(at, "more than %d distinct names", r.lim.Symbols)
	}
	key.name = r.nameString(at, name)
	v := key.value()
	t.add(slot, key, v)
	return v
}

// add puts a new name into the free slot, or into the map.
func (t *names) add(slot uint32, key nameKey, v Value) {
	if t.large == nil && t.n <= fullNames {
		t.small[slot] = v
		return
	}
	if t.large == nil {
		t.large = make(map[nameKey]Value, 4*fullNames)
		for _, v := range t.small {
			if v != nil {
				t.large[keyOf(v)] = v
			}
		}
	}
	t.large[key] = v
}

// FNV-1a, in steps so that a token is hashed while it is scanned.
const hashSeed uint32 = 2166136261

func hashStep(h uint32, c byte) uint32 { return (h ^ uint32(c)) * 16777619 }

func hashName(name []byte) uint32 {
	h := hashSeed
	for _, c := range name {
		h = hashStep(h, c)
	}
	return h
}

// nameString returns name as a string, a part of the shared input if the name
// stands there just so, after a colon or not.
func (r *Reader) nameString(at int, name []byte) string {
	if r.text != "" {
		for _, from := range [2]int{at, at + 1} {
			if to := from + len(name); to <= len(r.text) && r.text[from:to] == string(name) {
				return r.text[from:to]
			}
		}
	}
	return string(name)
}

// commonWords holds the keywords that nearly every message repeats, as values
// made once. They cost no memory and so do not count towards [Limits]. Each
// has the one slot its hash names; of two that fall together the first stays.
var commonWords = func() (t [512]struct {
	name string
	v    Value
},
) {
	words := []string{
		"TYPE", "META", "PAYLOAD", "DEPTH", "REQUEST", "EVENT", "RESPONSE", "LOG", "STATUS", "STREAM-CHUNK",
		"ACTION", "HANDSHAKE", "VERSION", "FRAME", "BYTES", "NONCE", "CAPABILITIES", "SOURCE", "SESSION", "ID",
		"PARENT", "SENSOR", "USER-INPUT", "TEXT", "TARGET", "VERB", "ARGS", "EXPLANATION", "TOOL", "NAME", "PATH",
		"COMMAND", "CONTENT", "MESSAGE", "SYSTEM", "CLI", "TUI", "SHELL", "AT", "KIND", "ORIGIN", "TAINT", "BODY",
		"FOCUS", "GATE", "VERDICTS", "DECISION", "CODE", "REASON", "RULE", "RULING", "ALLOW", "ASK", "DENY",
		"DIGEST", "POLICY", "FACTS", "OUTCOME", "ERROR", "OK", "ATTEMPT", "TRUSTED", "UNTRUSTED", "USER", "SEQ",
		"PREV", "ENTRY", "PRIORITY", "EFFECT", "MODEL",
	}
	for _, w := range words {
		if e := &t[hashName([]byte(w))%uint32(len(t))]; e.v == nil {
			e.name, e.v = w, Keyword(w)
		}
	}
	return t
}()
