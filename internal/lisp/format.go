package lisp

import (
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// directive is one parsed piece of a format control: text, or ~params:@char.
type directive struct {
	text   string
	char   rune
	params []fparam
	colon  bool
	at     bool
	// of a compound directive: the clauses between ~; and how they were marked
	clauses  [][]directive
	defaults []bool // ~:; before clause i+1
	endColon bool
	endAt    bool
}

type fparam struct {
	set  bool
	n    int
	v    bool // taken from the arguments
	hash bool // the number of arguments left
	c    bool // n is a character
}

// formatter runs directives over arguments.
type formatter struct {
	th    *Thread
	out   *stream
	args  []Value
	all   []Value
	outer *formatter // for ~:^ inside ~:{
}

// escape is the panic-free way out of ~^: a flag threaded through run.
type escape uint8

const (
	goOn escape = iota
	leaveClause
	leaveAll
)

// formatTo formats to a string.
func (th *Thread) formatTo(control Value, args []Value) string {
	s := th.newStringOutput()
	th.formatOn(s, control, args)
	return s.take()
}

func (th *Thread) formatOn(s *stream, control Value, args []Value) {
	if fn, ok := control.(*Function); ok {
		th.apply(fn, append([]Value{s}, args...))
		return
	}
	text := th.stringArg(control).text()
	th.step(uint64(1 + len(text)/16))
	p := fparser{th: th, src: text}
	ds := p.clauses(0)[0]
	f := &formatter{th: th, out: s, args: args, all: args}
	f.run(ds)
}

// fparser reads a format control.
type fparser struct {
	th   *Thread
	src  string
	pos  int
	last directive // the directive that ended the clauses
	defs []bool
}

func (p *fparser) fail(msg string) {
	p.th.fail(classError, "error in FORMAT: %s in %s", msg, p.th.show(newStr(p.src)))
}

// clauses reads up to the closing character (0 for the end), split at ~;
func (p *fparser) clauses(end rune) [][]directive {
	p.th.enter(1)
	defer p.th.leave(1)
	out := [][]directive{nil}
	var defs []bool
	for {
		i := strings.IndexByte(p.src[p.pos:], '~')
		text := p.src[p.pos:]
		if i >= 0 {
			text = text[:i]
		}
		if text != "" {
			out[len(out)-1] = append(out[len(out)-1], directive{text: text})
		}
		p.pos += len(text)
		if i < 0 {
			if end != 0 {
				p.fail("no matching close directive")
			}
			return out
		}
		d := p.directive()
		switch d.char {
		case end:
			p.last, p.defs = d, defs
			return out
		case ';':
			if end == 0 {
				p.fail("~; outside of a compound directive")
			}
			defs = append(defs, d.colon)
			out = append(out, nil)
			continue
		case '}', ')', ']', '>':
			p.fail("no matching open directive")
		case '{', '(', '[', '<':
			closing := map[rune]rune{'{': '}', '(': ')', '[': ']', '<': '>'}[d.char]
			d.clauses = p.clauses(closing)
			d.defaults, d.endColon, d.endAt = p.defs, p.last.colon, p.last.at
		}
		out[len(out)-1] = append(out[len(out)-1], d)
	}
}

func (p *fparser) directive() directive {
	p.th.step(1)
	p.pos++
	var d directive
	for {
		if p.pos >= len(p.src) {
			p.fail("string ended before directive was found")
		}
		c, n := utf8.DecodeRuneInString(p.src[p.pos:])
		switch {
		case c >= '0' && c <= '9' || (c == '-' || c == '+') && p.pos+1 < len(p.src) && p.src[p.pos+1] >= '0' && p.src[p.pos+1] <= '9':
			start := p.pos
			for p.pos++; p.pos < len(p.src) && p.src[p.pos] >= '0' && p.src[p.pos] <= '9'; p.pos++ {
			}
			v, err := strconv.Atoi(p.src[start:p.pos])
			if err != nil {
				p.fail("parameter too large")
			}
			d.params = append(d.params, fparam{set: true, n: v})
		case c == '\'':
			q, m := utf8.DecodeRuneInString(p.src[min(p.pos+1, len(p.src)):])
			d.params = append(d.params, fparam{set: true, n: int(q), c: true})
			p.pos += 1 + m
		case c == 'v' || c == 'V':
			d.params = append(d.params, fparam{v: true})
			p.pos++
		case c == '#':
			d.params = append(d.params, fparam{hash: true})
			p.pos++
		case c == ',':
			if len(d.params) == 0 || p.src[p.pos-1] == ',' {
				d.params = append(d.params, fparam{})
			}
			p.pos++
			if p.pos < len(p.src) && strings.IndexByte(",:@", p.src[p.pos]) >= 0 && p.src[p.pos] == ',' {
				continue
			}
			continue
		case c == ':':
			d.colon = true
			p.pos++
		case c == '@':
			d.at = true
			p.pos++
		default:
			p.pos += n
			d.char = unicode.ToUpper(c)
			if c == '\n' && !d.colon {
				p.pos = len(p.src) - len(strings.TrimLeft(p.src[p.pos:], " \t\n\r"))
			}
			return d
		}
	}
}

func (f *formatter) fail(msg string) {
	f.th.fail(classError, "error in FORMAT: %s", msg)
}

func (f *formatter) next() Value {
	if len(f.args) == 0 {
		f.fail("no more arguments")
	}
	v := f.args[0]
	f.args = f.args[1:]
	return v
}

// param returns parameter i or its default.
func (f *formatter) param(d *directive, i, def int) int {
	if i >= len(d.params) {
		return def
	}
	if p := &d.params[i]; p.set {
		return f.bounded(p.n)
	}
	return def
}

// bounded keeps widths and counts within what the budget could pay for. A negative
// one costs the same: as a scale factor it is that many digits too.
func (f *formatter) bounded(n int) int {
	if n > 1<<20 || n < -1<<20 {
		f.th.alloc(max(n, -(n+1)) / 16)
	}
	return n
}

func (f *formatter) write(s string) { f.out.write(f.th, s) }

func (f *formatter) repeat(s string, n int) {
	if n <= 0 {
		return
	}
	f.th.alloc(n * len(s) / 16)
	f.write(strings.Repeat(s, n))
}

func (f *formatter) run(ds []directive) escape {
	f.th.enter(1)
	defer f.th.leave(1)
	for i := range ds {
		d := &ds[i]
		f.th.step(1)
		if d.char == 0 {
			f.write(d.text)
			continue
		}
		if d.char == '^' {
			if e := f.caret(f.resolved(d)); e != goOn {
				return e
			}
			continue
		}
		if e := f.directive(f.resolved(d)); e != goOn {
			return e
		}
	}
	return goOn
}

// resolved replaces the parameters that come from the arguments: they are
// taken before the directive takes its own.
func (f *formatter) resolved(d *directive) *directive {
	late := false
	for _, p := range d.params {
		late = late || p.v || p.hash
	}
	if !late {
		return d
	}
	c := *d
	c.params = make([]fparam, len(d.params))
	for i, p := range d.params {
		switch {
		case p.hash:
			p = fparam{set: true, n: len(f.args)}
		case p.v:
			p = fparam{}
			switch v := f.next().(type) {
			case Int:
				p = fparam{set: true, n: f.bounded(int(v))}
			case Char:
				p = fparam{set: true, n: int(v), c: true}
			}
		}
		c.params[i] = p
	}
	return &c
}

// caret is ~^: stop when no arguments are left, or the parameters say so.
func (f *formatter) caret(d *directive) escape {
	stop := false
	switch len(d.params) {
	case 0:
		if d.colon && f.outer != nil {
			stop = len(f.outer.args) == 0
		} else {
			stop = len(f.args) == 0
		}
	case 1:
		stop = f.param(d, 0, 0) == 0
	case 2:
		stop = f.param(d, 0, 0) == f.param(d, 1, 0)
	default:
		a, b, c := f.param(d, 0, 0), f.param(d, 1, 0), f.param(d, 2, 0)
		stop = a <= b && b <= c
	}
	switch {
	case stop && d.colon:
		return leaveAll
	case stop:
		return leaveClause
	}
	return goOn
}

func (f *formatter) directive(d *directive) escape {
	switch d.char {
	case 'A', 'S':
		f.object(d)
	case 'W':
		f.write(f.th.prin1As(f.next()))
	case 'D':
		f.integer(d, 10, 0)
	case 'B':
		f.integer(d, 2, 0)
	case 'O':
		f.integer(d, 8, 0)
	case 'X':
		f.integer(d, 16, 0)
	case 'R':
		f.radix(d)
	case 'C':
		f.char(d)
	case 'F':
		f.fixed(d)
	case 'E':
		f.exponent(d)
	case 'G':
		f.general(d)
	case '$':
		f.money(d)
	case '%':
		f.repeat("\n", f.param(d, 0, 1))
	case '&':
		f.fresh(d)
	case '|':
		f.repeat("\f", f.param(d, 0, 1))
	case '~':
		f.repeat("~", f.param(d, 0, 1))
	case '\n':
		f.newline(d)
	case 'T':
		f.tab(d)
	case '*':
		f.jump(d)
	case 'P':
		f.plural(d)
	case '(':
		return f.caseConvert(d)
	case '[':
		return f.conditional(d)
	case '{':
		f.iterate(d)
	case '?':
		return f.recurse(d)
	case '<':
		f.justify(d)
	case '_', 'I':
	default:
		f.fail("unknown directive ~" + string(d.char))
	}
	return goOn
}

func (f *formatter) object(d *directive) {
	v := f.next()
	var s string
	switch {
	case d.colon && v == Value(Nil):
		s = "()"
	case d.char == 'A':
		s = f.th.princ(v)
	default:
		s = f.th.prin1(v)
	}
	f.padded(s, f.param(d, 0, 0), f.param(d, 1, 1), f.param(d, 2, 0), f.param(d, 3, ' '), d.at)
}

// padded writes s in a field.
func (f *formatter) padded(s string, width, inc, least, pad int, left bool) {
	n := utf8.RuneCountInString(s) + least
	fill := least
	if n < width {
		inc = max(inc, 1)
		fill += (width - n + inc - 1) / inc * inc
	}
	if left {
		f.repeat(string(rune(pad)), fill)
		f.write(s)
		return
	}
	f.write(s)
	f.repeat(string(rune(pad)), fill)
}

// integer is ~D and its kin; skip is the number of parameters before the width.
func (f *formatter) integer(d *directive, base, skip int) {
	v := f.next()
	width, pad := f.param(d, skip, 0), f.param(d, skip+1, ' ')
	comma, every := f.param(d, skip+2, ','), f.param(d, skip+3, 3)
	n := bigOf(v)
	if n == nil {
		mark := len(f.th.dyn)
		f.th.bind(symPrintBase, Int(base))
		f.th.bind(symPrintRadix, Nil)
		s := f.th.princ(v)
		f.th.unbind(mark)
		f.write(s)
		return
	}
	f.th.step(bigCost(n))
	digits := strings.ToUpper(new(big.Int).Abs(n).Text(base))
	if d.colon && every > 0 {
		digits = groupDigits(digits, string(rune(comma)), every)
	}
	switch {
	case n.Sign() < 0:
		digits = "-" + digits
	case d.at:
		digits = "+" + digits
	}
	f.padded(digits, width, 1, 0, pad, true)
}

func groupDigits(s, comma string, every int) string {
	var b strings.Builder
	for i, c := range s {
		if i > 0 && (len(s)-i)%every == 0 {
			b.WriteString(comma)
		}
		b.WriteRune(c)
	}
	return b.String()
}

func (f *formatter) radix(d *directive) {
	if len(d.params) > 0 {
		base := f.param(d, 0, 10)
		if base < 2 || base > 36 {
			f.fail("illegal radix")
		}
		f.integer(d, base, 1)
		return
	}
	v := f.next()
	n := bigOf(v)
	if n == nil {
		f.th.typeError(v, symInteger)
	}
	switch {
	case d.at:
		if !n.IsInt64() || n.Sign() <= 0 || n.Int64() > 3999 {
			f.fail("number too large to print in Roman numerals")
		}
		f.write(roman(int(n.Int64()), d.colon))
	case n.BitLen() > 200:
		f.fail("number too large to print in English")
	case d.colon:
		f.write(ordinal(n))
	default:
		f.write(cardinal(n))
	}
}

func (f *formatter) char(d *directive) {
	v := f.next()
	ch, ok := v.(Char)
	if !ok {
		f.fail(f.th.show(v) + " is not of type CHARACTER")
	}
	c := rune(ch)
	switch {
	case d.at:
		f.write("#\\" + charName(c))
	case d.colon:
		f.write(charName(c))
	default:
		f.write(string(c))
	}
}

func (f *formatter) fresh(d *directive) {
	n := f.param(d, 0, 1)
	if n <= 0 {
		return
	}
	if f.out.column != 0 {
		f.write("\n")
	}
	f.repeat("\n", n-1)
}

// newline is tilde-newline; the white space after it was dropped while parsing.
func (f *formatter) newline(d *directive) {
	if d.at {
		f.write("\n")
	}
}

func (f *formatter) tab(d *directive) {
	col, inc := f.param(d, 0, 1), f.param(d, 1, 1)
	cur := f.out.column
	if d.at {
		if inc > 0 {
			f.repeat(" ", col+(inc-(cur+col)%inc)%inc)
		} else {
			f.repeat(" ", col)
		}
		return
	}
	switch {
	case cur < col:
		f.repeat(" ", col-cur)
	case inc > 0:
		f.repeat(" ", inc-(cur-col)%inc)
	}
}

func (f *formatter) jump(d *directive) {
	pos := len(f.all) - len(f.args)
	switch {
	case d.at:
		pos = f.param(d, 0, 0)
	case d.colon:
		pos -= f.param(d, 0, 1)
	default:
		pos += f.param(d, 0, 1)
	}
	if pos < 0 || pos > len(f.all) {
		f.fail("no such argument")
	}
	f.args = f.all[pos:]
}

func (f *formatter) plural(d *directive) {
	if d.colon {
		pos := len(f.all) - len(f.args) - 1
		if pos < 0 {
			f.fail("no previous argument")
		}
		f.args = f.all[pos:]
	}
	one := f.th.eql(f.next(), Int(1))
	switch {
	case d.at && one:
		f.write("y")
	case d.at:
		f.write("ies")
	case !one:
		f.write("s")
	}
}

func (f *formatter) caseConvert(d *directive) escape {
	saved := f.out
	f.out = f.th.newStringOutput()
	f.out.column = saved.column
	e := f.run(d.clauses[0])
	s := f.out.take()
	f.out = saved
	switch {
	case d.colon && d.at:
		s = upcase(s)
	case d.colon:
		s = capitalize(s)
	case d.at:
		s = firstCapital(downcase(s))
	default:
		s = downcase(s)
	}
	f.write(s)
	return e
}

func firstCapital(s string) string {
	for i, c := range s {
		if unicode.IsLetter(c) {
			return s[:i] + string(upcaseRune(c)) + s[i+utf8.RuneLen(c):]
		}
		if unicode.IsDigit(c) {
			return s
		}
	}
	return s
}

func (f *formatter) conditional(d *directive) escape {
	switch {
	case d.colon:
		if len(d.clauses) != 2 {
			f.fail("~:[ wants two clauses")
		}
		if isTrue(f.next()) {
			return f.run(d.clauses[1])
		}
		return f.run(d.clauses[0])
	case d.at:
		if len(f.args) > 0 && isTrue(f.args[0]) {
			return f.run(d.clauses[0])
		}
		f.next()
		return goOn
	}
	i := f.param(d, 0, -1)
	if len(d.params) == 0 || i == -1 {
		v := f.next()
		n := bigOf(v)
		if n == nil {
			f.th.typeError(v, symInteger)
		}
		i = -1
		if n.IsInt64() && n.Int64() >= 0 && n.Int64() < 1<<20 {
			i = int(n.Int64())
		}
	}
	if i >= 0 && i < len(d.clauses) && (i == 0 || !d.defaults[i-1] || i < len(d.clauses)) {
		return f.run(d.clauses[i])
	}
	if k := len(d.clauses) - 1; k > 0 && d.defaults[k-1] {
		return f.run(d.clauses[k])
	}
	return goOn
}

// iterate is ~{: over a list, the remaining arguments, or lists of either.
func (f *formatter) iterate(d *directive) {
	limit := f.param(d, 0, -1)
	body := d.clauses[0]
	if len(body) == 0 {
		p := fparser{th: f.th, src: f.th.stringArg(f.next()).text()}
		body = p.clauses(0)[0]
	}
	in := formatter{th: f.th, out: f.out}
	if d.at {
		in.args = f.args
		f.args = nil
	} else {
		in.args = f.th.items(f.next())
	}
	in.all = in.args
	for n := 0; ; n++ {
		f.th.step(1)
		if limit >= 0 && n >= limit {
			break
		}
		if len(in.args) == 0 && !(d.endColon && n == 0) {
			break
		}
		if d.colon {
			if len(in.args) == 0 {
				break
			}
			sub := formatter{th: f.th, out: f.out, args: f.th.items(in.next()), outer: &in}
			sub.all = sub.args
			if sub.run(body) == leaveAll {
				break
			}
			continue
		}
		before := len(in.args)
		if in.run(body) != goOn {
			break
		}
		if len(in.args) == before && limit < 0 {
			f.th.step(16)
		}
	}
	if d.at {
		f.args = in.args
	}
}

func (f *formatter) recurse(d *directive) escape {
	control := f.th.stringArg(f.next()).text()
	p := fparser{th: f.th, src: control}
	ds := p.clauses(0)[0]
	if d.at {
		return f.run(ds)
	}
	args := f.th.items(f.next())
	sub := formatter{th: f.th, out: f.out, args: args, all: args}
	sub.run(ds)
	return goOn
}

// justify is ~mincol,colinc,minpad,padchar<…~;…~>.
func (f *formatter) justify(d *directive) {
	if d.endColon { // a logical block: printed as its text
		for _, c := range d.clauses {
			f.run(c)
		}
		return
	}
	width, inc := f.param(d, 0, 0), max(f.param(d, 1, 1), 1)
	least, pad := f.param(d, 2, 0), f.param(d, 3, ' ')
	var parts []string
	total := 0
	saved := f.out
	for _, c := range d.clauses {
		f.out = f.th.newStringOutput()
		e := f.run(c)
		s := f.out.take()
		if e != goOn {
			break
		}
		parts = append(parts, s)
		total += utf8.RuneCountInString(s)
	}
	f.out = saved
	gaps := len(parts) - 1
	before, after := d.colon, d.at
	if gaps == 0 && !before && !after {
		before = true
	}
	if before {
		gaps++
	}
	if after {
		gaps++
	}
	need := total + gaps*least
	if need > width {
		width += (need - width + inc - 1) / inc * inc
	}
	f.spread(parts, width-total, gaps, pad, before)
}

// spread writes parts with the free room shared among the gaps, the later
// ones getting the rest.
func (f *formatter) spread(parts []string, free, gaps, pad int, before bool) {
	gap := func() {
		if gaps <= 0 {
			return
		}
		n := free / gaps
		free -= n
		gaps--
		f.repeat(string(rune(pad)), n)
	}
	if before {
		gap()
	}
	for i, s := range parts {
		if i > 0 {
			gap()
		}
		f.write(s)
	}
	gap()
}

func biFormat(th *Thread, a []Value) Value {
	switch dst := a[0].(type) {
	case *Symbol:
		if dst == Nil {
			return th.str(th.formatTo(a[1], a[2:]))
		}
		if dst == symT {
			th.formatOn(th.outStream(symT), a[1], a[2:])
			return Nil
		}
	case *stream:
		th.formatOn(th.outStream(dst), a[1], a[2:])
		return Nil
	case *Str:
		th.formatOn(&stream{target: dst}, a[1], a[2:])
		return Nil
	}
	th.typeError(a[0], symStreamType)
	return nil
}

var formatPrims = []prim{
	{usage: "(format destination control &rest arguments)", doc: "write text as the control string says", fn: biFormat},
}
