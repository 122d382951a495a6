package lisp

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// printer writes values as SBCL does with *PRINT-PRETTY* off.
type printer struct {
	th     *Thread
	b      []byte
	escape bool
	base   int
	radix  bool
	kase   string
	length int // limits, -1 for none
	level  int
	depth  int
	array  bool
	gensym bool
	charge int
}

func (th *Thread) newPrinter(escape bool) *printer {
	p := &printer{th: th, escape: escape, base: 10, length: -1, level: -1}
	if n, ok := th.cell(symPrintBase).value.(Int); ok && n >= 2 && n <= 36 {
		p.base = int(n)
	}
	p.radix = isTrue(th.symbolValue(symPrintRadix))
	if s, ok := th.cell(symPrintCase).value.(*Symbol); ok {
		p.kase = s.name
	}
	if n, ok := th.cell(symPrintLength).value.(Int); ok {
		p.length = int(n)
	}
	if n, ok := th.cell(symPrintLevel).value.(Int); ok {
		p.level = int(n)
	}
	p.gensym = isTrue(th.symbolValue(symPrintGensym))
	p.array = true
	return p
}

func (th *Thread) prin1(v Value) string {
	p := th.newPrinter(true)
	p.print(v)
	return string(p.b)
}

func (th *Thread) princ(v Value) string {
	switch v := v.(type) {
	case *Str:
		return v.text()
	case Char:
		return string(rune(v))
	}
	p := th.newPrinter(false)
	p.print(v)
	return string(p.b)
}

// show prints a value for an error message: never long.
func (th *Thread) show(v Value) string {
	if s, ok := v.(*Str); ok && s.length() > 200 {
		return strconv.Quote(s.slice(0, 200)) + "…"
	}
	p := th.newPrinter(true)
	p.length, p.level = 20, 6
	p.print(v)
	return string(p.b)
}

func (p *printer) str(s string) {
	p.b = append(p.b, s...)
	if grown := len(p.b) - p.charge; grown > 256 {
		p.th.alloc(grown / 16)
		p.charge = len(p.b)
	}
}

func (p *printer) print(v Value) {
	p.th.step(1)
	switch v := v.(type) {
	case *Symbol:
		p.symbol(v)
	case Int:
		p.integer(strings.ToUpper(strconv.FormatInt(int64(v), p.base)))
	case *bignum:
		p.th.alloc(len(v.n.Bits()) * 4)
		p.th.step(bigCost(v.n))
		p.integer(strings.ToUpper(v.n.Text(p.base)))
	case *ratio:
		p.ratio(v)
	case Single, Double:
		p.str(p.th.floatString(v))
	case Char:
		if p.escape {
			p.str("#\\" + printedChar(rune(v)))
		} else {
			p.str(string(rune(v)))
		}
	case *Str:
		if p.escape {
			p.quoted(v.text())
		} else {
			p.str(v.text())
		}
	case *Cons:
		p.nested(func() { p.list(v) })
	case *array:
		p.nested(func() { p.vector(p.th.arr(v)) })
	case *instance:
		p.nested(func() { p.instance(v) })
	default:
		p.str(p.opaque(v))
	}
}

// nested prints a compound unless it lies too deep.
func (p *printer) nested(f func()) {
	if p.level >= 0 && p.depth >= p.level {
		p.str("#")
		return
	}
	p.depth++
	p.th.enter(1)
	f()
	p.th.leave(1)
	p.depth--
}

func (p *printer) integer(s string) {
	if p.radix {
		switch p.base {
		case 10:
			s += "."
		case 2:
			s = "#b" + s
		case 8:
			s = "#o" + s
		case 16:
			s = "#x" + s
		default:
			s = fmt.Sprintf("#%dr%s", p.base, s)
		}
	}
	p.str(s)
}

func (p *printer) ratio(v *ratio) {
	if p.radix {
		switch p.base {
		case 2:
			p.str("#b")
		case 8:
			p.str("#o")
		case 16:
			p.str("#x")
		default:
			p.str(fmt.Sprintf("#%dr", p.base))
		}
	}
	p.th.step(bigCost(v.r.Num()) + bigCost(v.r.Denom()))
	p.str(strings.ToUpper(v.r.Num().Text(p.base) + "/" + v.r.Denom().Text(p.base)))
}

func (p *printer) quoted(s string) {
	p.str(`"`)
	if strings.ContainsAny(s, `"\`) {
		s = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s)
	}
	p.str(s)
	p.str(`"`)
}

func (p *printer) symbol(s *Symbol) {
	if !p.escape {
		p.str(p.cased(s.name))
		return
	}
	switch {
	case s.pkg == nil:
		if p.gensym {
			p.str("#:")
		}
	case s.keyword():
		p.str(":")
	default:
		p.prefix(s)
	}
	p.str(p.symbolName(s.name))
}

// prefix prints the package of a symbol that the current one does not see.
func (p *printer) prefix(s *Symbol) {
	th := p.th
	if found, _ := th.findSymbol(s.name, th.currentPackage()); found == s {
		return
	}
	p.str(p.symbolName(th.shortName(s.pkg)))
	if own, ext := th.pkgTable(s.pkg).own(s.name); own == s && ext {
		p.str(":")
	} else {
		p.str("::")
	}
}

// shortName is how SBCL prints a package before a symbol: its name.
func (th *Thread) shortName(p *Package) string { return p.name }

// symbolName escapes a name that would not read back as itself.
func (p *printer) symbolName(s string) string {
	if p.needsBars(s) {
		return "|" + strings.NewReplacer(`\`, `\\`, `|`, `\|`).Replace(s) + "|"
	}
	return p.cased(s)
}

func (p *printer) needsBars(s string) bool {
	if s == "" || strings.Trim(s, ".") == "" {
		return true
	}
	for _, c := range s {
		if c < 0x80 && delimiter(byte(c)) || c == '|' || c == '\\' || c == ':' {
			return true
		}
		if upcaseRune(c) != c {
			return true
		}
	}
	if s[0] == '#' {
		return true
	}
	return looksNumeric(s, p.base)
}

// looksNumeric reports whether a token is a potential number: made of digits,
// signs, ratio and point marks and single letters, with a digit somewhere,
// starting like a number and not ending in a sign.
func looksNumeric(s string, base int) bool {
	digit := false
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= '0' && c <= '9':
			digit = true
		case strings.IndexByte("+-/.^_", c) >= 0:
		case digitIn(rune(c), base):
			digit = true
		case c >= 'A' && c <= 'Z':
			if i+1 < len(s) && s[i+1] >= 'A' && s[i+1] <= 'Z' {
				return false
			}
		default:
			return false
		}
	}
	first, last := s[0], s[len(s)-1]
	starts := digitIn(rune(first), base) || strings.IndexByte("+-.^_", first) >= 0
	return digit && starts && last != '+' && last != '-'
}

func (p *printer) cased(s string) string {
	switch p.kase {
	case "DOWNCASE":
		return strings.ToLower(s)
	case "CAPITALIZE":
		return capitalize(s)
	}
	return s
}

func (p *printer) list(v *Cons) {
	p.str("(")
	var rest Value = v
	for n := 0; ; n++ {
		c, ok := rest.(*Cons)
		if !ok {
			if rest != Value(Nil) {
				p.str(" . ")
				p.print(rest)
			}
			break
		}
		if n > 0 {
			p.str(" ")
		}
		if p.length >= 0 && n >= p.length {
			p.str("...")
			break
		}
		p.print(c.car)
		rest = c.cdr
	}
	p.str(")")
}

func (p *printer) vector(a *array) {
	switch {
	case a.elem == Value(symBit) && a.dims == nil:
		p.str("#*")
		for _, b := range a.live() {
			p.print(b)
		}
	case a.dims != nil:
		p.str(fmt.Sprintf("#%dA", len(a.dims)))
		items := a.items
		p.dimension(a.dims, &items)
	default:
		p.str("#(")
		p.elements(a.live())
		p.str(")")
	}
}

func (p *printer) elements(vs []Value) {
	for i, x := range vs {
		if i > 0 {
			p.str(" ")
		}
		if p.length >= 0 && i >= p.length {
			p.str("...")
			return
		}
		p.print(x)
	}
}

func (p *printer) dimension(dims []int, items *[]Value) {
	if len(dims) == 0 {
		p.print((*items)[0])
		*items = (*items)[1:]
		return
	}
	p.str("(")
	for i := range dims[0] {
		if i > 0 {
			p.str(" ")
		}
		p.dimension(dims[1:], items)
	}
	p.str(")")
}

func (p *printer) instance(v *instance) {
	th := p.th
	if fn := th.printMethod(v); fn != nil {
		s := th.newStringOutput()
		mark := len(th.dyn)
		th.bind(symPrintEscape, mkBool(p.escape))
		th.call(fn, v, s)
		th.unbind(mark)
		p.str(s.take())
		return
	}
	v = th.inst(v)
	switch v.class.kind {
	case kindStructure:
		p.structure(v)
	case kindCondition:
		if !p.escape {
			p.str(th.report(v))
			return
		}
		p.str("#<")
		p.symbol(v.class.name)
		if v.class.is(classSimple) || v.slots[0] != nil {
			p.str(" ")
			p.quoted(th.report(v))
		}
		p.str(">")
	default:
		p.str("#<")
		p.symbol(v.class.name)
		p.str(">")
	}
}

func (p *printer) structure(v *instance) {
	p.str("#S(")
	p.symbol(v.class.name)
	for i, s := range v.class.slots {
		if p.length >= 0 && i >= p.length {
			p.str(" ...")
			break
		}
		p.str(" :" + p.symbolName(s.name.name) + " ")
		x := v.slots[i]
		if x == nil {
			x = Nil
		}
		p.print(x)
	}
	p.str(")")
}

// opaque prints an object without a readable form.
func (p *printer) opaque(v Value) string {
	th := p.th
	switch v := v.(type) {
	case *Function:
		if v.name == nil {
			return "#<FUNCTION (LAMBDA)>"
		}
		return "#<FUNCTION " + th.prin1(v.name) + ">"
	case *table:
		t := th.table(v)
		return fmt.Sprintf("#<HASH-TABLE :TEST %s :COUNT %d>", t.testName().name, t.count())
	case *Package:
		return fmt.Sprintf("#<PACKAGE %q>", v.name)
	case *class:
		return "#<CLASS " + th.prin1(v.name) + ">"
	case *stream:
		return "#<" + v.kind() + ">"
	case *restart:
		if !p.escape && v.report != nil && isTrue(v.report) {
			if s, ok := v.report.(*Str); ok {
				return s.text()
			}
		}
		return "#<RESTART " + v.name.name + ">"
	case *regex:
		return fmt.Sprintf("#<REGEX %q>", v.src)
	}
	return "#<OBJECT>"
}

// floatString prints a float so that it reads back, marking the type unless it
// is the default one.
func (th *Thread) floatString(v Value) string {
	double := th.cell(symReadFloat).value == Value(symDoubleFloat)
	switch v := v.(type) {
	case Single:
		mark := byte('e')
		if double {
			mark = 'f'
		}
		return floatDigits(float64(v), 32, mark, double)
	case Double:
		mark := byte('d')
		if double {
			mark = 'e'
		}
		return floatDigits(float64(v), 64, mark, !double)
	}
	return ""
}

// floatDigits prints f with the shortest digits that give it back. Numbers
// from 1/1000 up to 10^7 are written plainly, others with an exponent; always
// forces the exponent marker that tells the type.
func floatDigits(f float64, bits int, mark byte, always bool) string {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return infinite(f, bits)
	}
	s := strconv.FormatFloat(math.Abs(f), 'e', -1, bits)
	mant, exp, _ := strings.Cut(s, "e")
	e, _ := strconv.Atoi(exp)
	digits := tieUp(math.Abs(f), strings.Replace(mant, ".", "", 1), bits)
	sign := ""
	if math.Signbit(f) {
		sign = "-"
	}
	if f == 0 {
		e = 0
	}
	if f == 0 || e >= -3 && e < 7 {
		out := sign + plainDigits(digits, e)
		if always {
			out += string(mark) + "0"
		}
		return out
	}
	frac := digits[1:]
	if frac == "" {
		frac = "0"
	}
	return fmt.Sprintf("%s%s.%s%c%d", sign, digits[:1], frac, mark, e)
}

// tieUp chooses between two shortest forms that are equally near as SBCL does:
// the greater one, where strconv takes the even one.
func tieUp(f float64, digits string, bits int) string {
	n := len(digits)
	exact := strconv.FormatFloat(f, 'e', n+30, 64)
	exact = strings.Replace(exact[:strings.IndexByte(exact, 'e')], ".", "", 1)
	if exact[:n] != digits || exact[n] != '5' || strings.Trim(exact[n+1:], "0") != "" || digits[n-1] == '9' {
		return digits
	}
	up := digits[:n-1] + string(digits[n-1]+1)
	e := strconv.FormatFloat(f, 'e', -1, bits)
	again, err := strconv.ParseFloat(up[:1]+"."+up[1:]+e[strings.IndexByte(e, 'e'):], bits)
	if err != nil || again != f {
		return digits
	}
	return up
}

// plainDigits writes d.ddd × 10^e without an exponent.
func plainDigits(digits string, e int) string {
	if e < 0 {
		return "0." + strings.Repeat("0", -e-1) + digits
	}
	if len(digits) <= e+1 {
		return digits + strings.Repeat("0", e+1-len(digits)) + ".0"
	}
	return digits[:e+1] + "." + digits[e+1:]
}

func infinite(f float64, bits int) string {
	kind := "SINGLE-FLOAT"
	if bits == 64 {
		kind = "DOUBLE-FLOAT"
	}
	switch {
	case math.IsNaN(f):
		return "#<" + kind + " quiet NaN>"
	case f < 0:
		return "#.SB-EXT:" + kind + "-NEGATIVE-INFINITY"
	}
	return "#.SB-EXT:" + kind + "-POSITIVE-INFINITY"
}
