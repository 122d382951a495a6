package lisp

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

var charNames = []struct {
	name string
	c    rune
}{
	{"Nul", 0},
	{"Backspace", 8},
	{"Tab", 9},
	{"Newline", 10},
	{"Page", 12},
	{"Return", 13},
	{"Esc", 27},
	{"Space", 32},
	{"Rubout", 127},
	{"Bel", 7},
	{"Vt", 11},
	{"No-break_space", 0xA0},
	{"Null", 0},
	{"Linefeed", 10},
	{"Escape", 27},
	{"Delete", 127},
	{"Bell", 7},
	{"Soh", 1},
	{"Stx", 2},
	{"Etx", 3},
	{"Eot", 4},
	{"Enq", 5},
	{"Ack", 6},
	{"So", 14},
	{"Si", 15},
	{"Dle", 16},
	{"Dc1", 17},
	{"Dc2", 18},
	{"Dc3", 19},
	{"Dc4", 20},
	{"Nak", 21},
	{"Syn", 22},
	{"Etb", 23},
	{"Can", 24},
	{"Em", 25},
	{"Sub", 26},
	{"Fs", 28},
	{"Gs", 29},
	{"Rs", 30},
	{"Us", 31},
}

func charNamed(s string) (rune, bool) {
	for _, n := range charNames {
		if strings.EqualFold(n.name, s) {
			return n.c, true
		}
	}
	if (s[0] == 'U' || s[0] == 'u') && len(s) > 1 {
		h := strings.TrimPrefix(s[1:], "+")
		if n, err := strconv.ParseUint(h, 16, 32); err == nil && n <= unicode.MaxRune {
			return rune(n), true
		}
	}
	return 0, false
}

// charName is the name or the character itself, as after #\.
func charName(c rune) string {
	for _, n := range charNames {
		if n.c == c {
			return n.name
		}
	}
	if c < 0x20 || !unicode.IsPrint(c) {
		return fmt.Sprintf("U%X", c)
	}
	return string(c)
}

// printedChar is what follows #\ when a character is printed: SBCL writes a
// space as itself.
func printedChar(c rune) string {
	if c == ' ' {
		return " "
	}
	return charName(c)
}

// designated resolves a string designator.
func (th *Thread) designated(v Value) *Str {
	switch v := v.(type) {
	case *Str:
		return v
	case *Symbol:
		if len(v.name) > 64 { // the few cells of a usual name are not worth counting
			th.chargeText(len(v.name))
		}
		return newStr(v.name)
	case Char:
		return newStr(string(rune(v)))
	}
	th.typeError(v, list(symOr, symString, symSymbol, symCharacter))
	return nil
}

// chargeText pays for making a text of n bytes.
func (th *Thread) chargeText(n int) {
	th.step(uint64(n / 64))
	th.alloc(1 + n/16)
}

// chargeLook pays for going once over n characters.
func (th *Thread) chargeLook(n int) { th.step(uint64(1 + n/32)) }

func (th *Thread) stringArg(v Value) *Str {
	s, ok := v.(*Str)
	if !ok {
		th.typeError(v, symString)
	}
	return s
}

func (th *Thread) charArg(v Value) rune {
	c, ok := v.(Char)
	if !ok {
		th.typeError(v, symCharacter)
	}
	return rune(c)
}

// part returns the characters of a designator between bounds.
func (th *Thread) part(v, start, end Value) (string, int) {
	s := th.designated(v)
	if start == nil && end == nil {
		th.chargeLook(s.length())
		return s.text(), 0
	}
	i, j := th.bounds(start, end, s.length())
	th.chargeLook(j - i)
	return s.slice(i, j), i
}

// stringCompare makes the ten string comparisons. Those of order return the
// index where the strings begin to differ.
func stringCompare(fold bool, ok func(c int) bool, index bool) func(*Thread, []Value) Value {
	return func(th *Thread, a []Value) Value {
		x, off := th.part(a[0], a[2], a[3])
		y, _ := th.part(a[1], a[4], a[5])
		if !index && !fold {
			return mkBool((x == y) == ok(0))
		}
		at, c := compareText(x, y, fold)
		if !ok(c) {
			return Nil
		}
		if !index {
			return symT
		}
		return mkInt(int64(off + at))
	}
}

func compareText(x, y string, fold bool) (at, c int) {
	p, q := []rune(x), []rune(y)
	for i := range min(len(p), len(q)) {
		a, b := p[i], q[i]
		if fold {
			a, b = foldRune(a), foldRune(b)
		}
		if a < b {
			return i, -1
		}
		if a > b {
			return i, 1
		}
	}
	switch {
	case len(p) < len(q):
		return len(p), -1
	case len(p) > len(q):
		return len(q), 1
	}
	return len(p), 0
}

func stringEq2(th *Thread, x, y Value) Value {
	a, b := th.designated(x), th.designated(y)
	th.chargeLook(a.length())
	return mkBool(a.text() == b.text())
}

// recase makes string-upcase and its kin.
func recase(f func(string) string) func(*Thread, []Value) Value {
	return func(th *Thread, a []Value) Value {
		s := th.designated(a[0])
		th.step(uint64(1 + s.length()/16))
		if a[1] == nil && a[2] == nil {
			return th.str(f(s.text()))
		}
		i, j := th.bounds(a[1], a[2], s.length())
		return th.str(s.slice(0, i) + f(s.slice(i, j)) + s.slice(j, s.length()))
	}
}

func upcase(s string) string   { return strings.Map(upcaseRune, s) }
func downcase(s string) string { return strings.Map(downcaseRune, s) }

func capitalize(s string) string {
	inWord := false
	return strings.Map(func(c rune) rune {
		if !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			inWord = false
			return c
		}
		if inWord {
			return downcaseRune(c)
		}
		inWord = true
		return upcaseRune(c)
	}, s)
}

// charBag tells which characters are in a sequence. A look into it takes the same
// time however many there are.
func (th *Thread) charBag(v Value) func(rune) bool {
	bag := map[rune]bool{}
	for _, c := range th.seq(v) {
		bag[th.charArg(c)] = true
	}
	return func(c rune) bool { return bag[c] }
}

func trimmer(left, right bool) func(*Thread, []Value) Value {
	return func(th *Thread, a []Value) Value {
		bag := th.charBag(a[0])
		s := th.designated(a[1])
		th.step(uint64(1 + s.length()/16))
		t := s.text()
		if left {
			t = strings.TrimLeftFunc(t, bag)
		}
		if right {
			t = strings.TrimRightFunc(t, bag)
		}
		return th.str(t)
	}
}

func biParseInteger(th *Thread, a []Value) Value {
	s := th.stringArg(a[0])
	i, j := th.bounds(a[1], a[2], s.length())
	radix := 10
	if a[3] != nil {
		radix = th.index(a[3])
		if radix < 2 || radix > 36 {
			th.typeError(a[3], list(symInteger, Int(2), Int(36)))
		}
	}
	th.chargeLook(j - i)
	junk := a[4] != nil && isTrue(a[4])
	k := i
	for k < j && isSpace(s.at(k)) {
		k++
	}
	start := k
	if k < j && (s.at(k) == '+' || s.at(k) == '-') {
		k++
	}
	digits := k
	for k < j && digitIn(s.at(k), radix) {
		k++
	}
	end := k
	if !junk {
		for k < j && isSpace(s.at(k)) {
			k++
		}
	}
	if digits == end || k < j && !junk {
		if junk {
			return th.values(Nil, mkInt(int64(k)))
		}
		th.fail(classParseError, "no integer in string %s", th.show(s))
	}
	return th.values(th.parseInteger(s.slice(start, end), radix), mkInt(int64(k)))
}

func digitIn(c rune, radix int) bool {
	d := digitValue(c)
	return d >= 0 && d < radix
}

func isSpace(c rune) bool {
	switch c {
	case ' ', '\t', '\n', '\r', '\f', '\v', 8:
		return c != 8
	}
	return false
}

// charCompare makes the character comparisons.
func charCompare(fold bool, ok func(a, b rune) bool) func(*Thread, []Value) Value {
	return func(th *Thread, a []Value) Value {
		result := true
		for i := range a {
			y := th.charArg(a[i])
			if i == 0 {
				continue
			}
			x := th.charArg(a[i-1])
			if fold {
				x, y = foldRune(x), foldRune(y)
			}
			result = result && ok(x, y)
		}
		return mkBool(result)
	}
}

func charDifferent(fold bool) func(*Thread, []Value) Value {
	return func(th *Thread, a []Value) Value {
		for i := range a {
			th.step(uint64(i))
			for j := range i {
				x, y := th.charArg(a[i]), th.charArg(a[j])
				if fold {
					x, y = foldRune(x), foldRune(y)
				}
				if x == y {
					return Nil
				}
			}
		}
		return symT
	}
}

func charPred(ok func(c rune) bool) func(*Thread, Value) Value {
	return func(th *Thread, x Value) Value { return mkBool(ok(th.charArg(x))) }
}

func bothCase(c rune) bool { return upcaseRune(c) != c || downcaseRune(c) != c }

var textPrims = []prim{
	{usage: "(string object)", doc: "the string a symbol, character or string stands for", fn1: func(th *Thread, x Value) Value {
		if s, ok := x.(*Str); ok {
			return s
		}
		s := th.designated(x)
		th.alloc(2)
		return s
	}},
	{usage: "(make-string length &key initial-element element-type)", doc: "a new string", fn: func(th *Thread, a []Value) Value {
		init := a[1]
		if init == nil {
			init = Char(0)
		}
		return th.makeString(th.index(a[0]), init, nil, noFill, false)
	}},
	{usage: "(string-upcase string &key start end)", doc: "in upper case", fn: recase(upcase)},
	{usage: "(string-downcase string &key start end)", doc: "in lower case", fn: recase(downcase)},
	{usage: "(string-capitalize string &key start end)", doc: "each word capitalised", fn: recase(capitalize)},
	{usage: "(nstring-upcase string &key start end)", doc: "in upper case", fn: recase(upcase)},
	{usage: "(nstring-downcase string &key start end)", doc: "in lower case", fn: recase(downcase)},
	{usage: "(string-trim bag string)", doc: "without the characters of bag at both ends", fn: trimmer(true, true)},
	{usage: "(string-left-trim bag string)", doc: "without the characters of bag at the left", fn: trimmer(true, false)},
	{usage: "(string-right-trim bag string)", doc: "without the characters of bag at the right", fn: trimmer(false, true)},
	{usage: "(parse-integer string &key start end radix junk-allowed)", doc: "the integer a string holds, and where it ends", fn: biParseInteger},
	{usage: "(char-code char)", doc: "the code point", fn1: func(th *Thread, x Value) Value { return mkInt(int64(th.charArg(x))) }},
	{usage: "(char-int char)", doc: "the code point", fn1: func(th *Thread, x Value) Value { return mkInt(int64(th.charArg(x))) }},
	{usage: "(code-char code)", doc: "the character", fn1: func(th *Thread, x Value) Value {
		n, ok := x.(Int)
		if !ok || n < 0 || n > unicode.MaxRune {
			th.typeError(x, list(symMod, Int(unicode.MaxRune+1)))
		}
		return Char(n)
	}},
	{usage: "(character object)", doc: "the character an object stands for", fn1: func(th *Thread, x Value) Value {
		if c, ok := x.(Char); ok {
			return c
		}
		if s := th.designated(x); s.length() == 1 {
			return Char(s.at(0))
		}
		th.typeError(x, symCharacter)
		return nil
	}},
	{usage: "(char-upcase char)", doc: "in upper case", fn1: func(th *Thread, x Value) Value { return Char(upcaseRune(th.charArg(x))) }},
	{usage: "(char-downcase char)", doc: "in lower case", fn1: func(th *Thread, x Value) Value { return Char(downcaseRune(th.charArg(x))) }},
	{usage: "(char-name char)", doc: "the character's name, if it has one", fn1: func(th *Thread, x Value) Value {
		c := th.charArg(x)
		if n := charName(c); n != string(c) {
			return th.str(n)
		}
		if c > 0xA0 {
			return th.str(fmt.Sprintf("U%X", c))
		}
		return th.str(charName(c))
	}},
	{usage: "(name-char name)", doc: "the character of that name", fn1: func(th *Thread, x Value) Value {
		if t := th.designated(x).text(); t != "" {
			if c, ok := charNamed(t); ok {
				return Char(c)
			}
		}
		return Nil
	}},
	{usage: "(digit-char weight &optional radix)", doc: "the digit of that weight", fn: func(th *Thread, a []Value) Value {
		radix := 10
		if a[1] != nil {
			radix = th.index(a[1])
		}
		if w := th.index(a[0]); w < radix && w < 36 {
			return Char("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[w])
		}
		return Nil
	}},
	{usage: "(digit-char-p char &optional radix)", doc: "the weight of a digit", fn: func(th *Thread, a []Value) Value {
		radix := 10
		if a[1] != nil {
			radix = th.index(a[1])
		}
		if c := th.charArg(a[0]); digitIn(c, radix) {
			return mkInt(int64(digitValue(c)))
		}
		return Nil
	}},
	{usage: "(alpha-char-p char)", doc: "true for a letter", fn1: charPred(unicode.IsLetter)},
	{usage: "(alphanumericp char)", doc: "true for a letter or digit", fn1: charPred(func(c rune) bool { return unicode.IsLetter(c) || unicode.IsNumber(c) })},
	{usage: "(upper-case-p char)", doc: "true for a capital", fn1: charPred(func(c rune) bool { return downcaseRune(c) != c })},
	{usage: "(lower-case-p char)", doc: "true for a small letter", fn1: charPred(func(c rune) bool { return upcaseRune(c) != c })},
	{usage: "(both-case-p char)", doc: "true for a letter with case", fn1: charPred(bothCase)},
	{usage: "(graphic-char-p char)", doc: "true for a character one can see", fn1: charPred(func(c rune) bool { return c >= 32 && c < 127 || c > 159 })},
	{usage: "(standard-char-p char)", doc: "true for a standard character", fn1: charPred(func(c rune) bool { return c >= 32 && c < 127 || c == '\n' })},
	{usage: "(char/= char &rest more)", doc: "true if all differ", fn: charDifferent(false)},
	{usage: "(char-not-equal char &rest more)", doc: "true if all differ, ignoring case", fn: charDifferent(true)},
}

func stringPrims() []prim {
	ps := slices.Clone(textPrims)
	for _, c := range []struct {
		op, word string
		ok       func(c int) bool
	}{
		{"=", "equal", func(c int) bool { return c == 0 }},
		{"/=", "not-equal", func(c int) bool { return c != 0 }},
		{"<", "lessp", func(c int) bool { return c < 0 }},
		{">", "greaterp", func(c int) bool { return c > 0 }},
		{"<=", "not-greaterp", func(c int) bool { return c <= 0 }},
		{">=", "not-lessp", func(c int) bool { return c >= 0 }},
	} {
		ok := c.ok
		index := c.op != "="
		order := func(a, b rune) bool { return ok(int(a) - int(b)) }
		p := prim{usage: "(string" + c.op + " string1 string2 &key start1 end1 start2 end2)", doc: "compare strings", fn: stringCompare(false, ok, index)}
		if !index {
			p.fn2 = stringEq2
		}
		ps = append(ps, p,
			prim{usage: "(string-" + c.word + " string1 string2 &key start1 end1 start2 end2)", doc: "compare strings, ignoring case", fn: stringCompare(true, ok, index)})
		if c.op != "/=" {
			ps = append(ps,
				prim{usage: "(char" + c.op + " char &rest more)", doc: "compare characters", fn: charCompare(false, order)},
				prim{usage: "(char-" + c.word + " char &rest more)", doc: "compare characters, ignoring case", fn: charCompare(true, order)})
		}
	}
	return ps
}
