package lisp

import (
	"math"
	"strconv"
	"strings"
)

// floatArg returns the next argument if it is a real.
func (f *formatter) floatArg() (Value, float64, bool) {
	v := f.next()
	if rungOf(v) == rungNone {
		return v, 0, false
	}
	return v, floatOf(v), true
}

// shortest gives the decimal digits of v and where the point is: 0.DDD × 10^e.
func shortest(v Value) (digits string, e int) {
	bits := 64
	if _, ok := v.(Single); ok || rungOf(v) < rungSingle {
		bits = 32
	}
	x := math.Abs(floatOf(v))
	if x == 0 {
		return "0", 1
	}
	s := strconv.FormatFloat(x, 'e', -1, bits)
	mant, exp, _ := strings.Cut(s, "e")
	n, _ := strconv.Atoi(exp)
	return strings.Replace(mant, ".", "", 1), n + 1
}

// roundDigits rounds 0.DDD × 10^e to n digits after the point, half up as SBCL
// does on the shortest digits.
func roundDigits(digits string, e, n int) (string, int) {
	keep := e + n
	if keep < 0 {
		return "0", 1 - n
	}
	if keep >= len(digits) {
		return digits, e
	}
	up := digits[keep] >= '5'
	b := []byte("0" + digits[:keep])
	if up {
		for i := len(b) - 1; i >= 0; i-- {
			if b[i] != '9' {
				b[i]++
				break
			}
			b[i] = '0'
		}
	}
	if b[0] == '1' {
		return string(b), e + 1
	}
	if len(b) == 1 {
		return "0", e
	}
	return string(b[1:]), e
}

// plainFixed writes 0.DDD × 10^e with n digits after the point, all of them if
// n < 0.
func plainFixed(digits string, e, n int) string {
	if n >= 0 {
		digits, e = roundDigits(digits, e, n)
	}
	whole, frac := "0", ""
	if strings.Trim(digits, "0") == "" {
		digits = ""
	}
	switch {
	case digits == "":
	case e <= 0:
		frac = strings.Repeat("0", -e) + digits
	case e >= len(digits):
		whole = digits + strings.Repeat("0", e-len(digits))
	default:
		whole, frac = digits[:e], digits[e:]
	}
	if n >= 0 {
		if len(frac) > n {
			frac = frac[:n]
		}
		frac += strings.Repeat("0", n-len(frac))
	} else {
		frac = strings.TrimRight(frac, "0")
		if frac == "" {
			frac = "0"
		}
	}
	return whole + "." + frac
}

// fixed is ~width,digits,scale,overflow,padF.
func (f *formatter) fixed(d *directive) {
	w, n, k := f.param(d, 0, 0), f.param(d, 1, -1), f.param(d, 2, 0)
	over, pad := f.param(d, 3, 0), f.param(d, 4, ' ')
	v, x, ok := f.floatArg()
	if !ok {
		f.padded(f.th.princ(v), w, 1, 0, ' ', true)
		return
	}
	f.th.alloc(max(n, 0) / 16)
	digits, e := shortest(v)
	if n < 0 && w > 0 {
		n = f.fitDigits(digits, e+k, w, x < 0 || d.at)
	}
	s := plainFixed(digits, e+k, n)
	sign := ""
	switch {
	case math.Signbit(x):
		sign = "-"
	case d.at:
		sign = "+"
	}
	if w > 0 && len(sign)+len(s) > w && strings.HasPrefix(s, "0.") && len(s) > 2 {
		s = s[1:]
	}
	if w > 0 && over != 0 && len(sign)+len(s) > w {
		f.repeat(string(rune(over)), w)
		return
	}
	f.padded(sign+s, w, 1, 0, pad, true)
}

// fitDigits chooses the digits after the point so that the number fits w.
func (f *formatter) fitDigits(digits string, e, w int, signed bool) int {
	room := w - 1 - max(e, 0)
	if signed {
		room--
	}
	have := max(len(digits)-e, 1)
	if strings.Trim(digits, "0") == "" {
		have = 1
	}
	return max(min(room, have), 0)
}

// exponent is ~E with its usual parameters.
func (f *formatter) exponent(d *directive) {
	w, n, ed, k := f.param(d, 0, 0), f.param(d, 1, -1), f.param(d, 2, 1), f.param(d, 3, 1)
	over, pad, mark := f.param(d, 4, 0), f.param(d, 5, ' '), f.param(d, 6, 0)
	v, x, ok := f.floatArg()
	if !ok {
		f.padded(f.th.princ(v), w, 1, 0, ' ', true)
		return
	}
	f.th.alloc(max(n, 0) / 16)
	digits, e := shortest(v)
	if x == 0 {
		e = k
	}
	exp := e - k
	if n >= 0 {
		var e2 int
		digits, e2 = roundDigits(digits, k, n)
		if e2 > k {
			exp++
			e2 = k
		}
		_ = e2
	}
	s := plainFixed(digits, k, n)
	if mark == 0 {
		mark = 'e'
		if _, isDouble := v.(Double); isDouble {
			mark = 'd'
		}
	}
	sign := ""
	switch {
	case math.Signbit(x):
		sign = "-"
	case d.at:
		sign = "+"
	}
	es := strconv.Itoa(max(exp, -exp))
	es = strings.Repeat("0", max(0, ed-len(es))) + es
	esign := "+"
	if exp < 0 {
		esign = "-"
	}
	out := sign + s + string(rune(mark)) + esign + es
	if w > 0 && over != 0 && len(out) > w {
		f.repeat(string(rune(over)), w)
		return
	}
	f.padded(out, w, 1, 0, pad, true)
}

// general is ~G: fixed with room for an exponent, or ~E.
func (f *formatter) general(d *directive) {
	v := f.args
	if len(v) == 0 {
		f.fail("no more arguments")
	}
	if rungOf(v[0]) == rungNone {
		f.object(&directive{char: 'A', params: d.params[:min(1, len(d.params))], at: true})
		return
	}
	x := math.Abs(floatOf(v[0]))
	if x != 0 && (x < 0.1 || x >= 1e7) {
		f.exponent(&directive{char: 'E', params: d.params, at: d.at})
		return
	}
	w := f.param(d, 0, 0)
	inner := &directive{char: 'F', at: d.at}
	if w > 4 {
		inner.params = append(inner.params, fparam{set: true, n: w - 4})
		inner.params = append(inner.params, d.params[1:min(2, len(d.params))]...)
	}
	f.fixed(inner)
	f.write("    ")
}

// money is ~digits,whole,width,pad$.
func (f *formatter) money(d *directive) {
	n, whole, w, pad := f.param(d, 0, 2), f.param(d, 1, 1), f.param(d, 2, 0), f.param(d, 3, ' ')
	v, x, ok := f.floatArg()
	if !ok {
		f.padded(f.th.princ(v), w, 1, 0, ' ', true)
		return
	}
	f.th.alloc((max(n, 0) + max(whole, 0)) / 16)
	digits, e := shortest(v)
	s := plainFixed(digits, e, n)
	if i := strings.IndexByte(s, '.'); i < whole {
		s = strings.Repeat("0", whole-i) + s
	}
	sign := ""
	switch {
	case x < 0:
		sign = "-"
	case d.at:
		sign = "+"
	}
	if d.colon {
		f.write(sign)
		f.padded(s, w-len(sign), 1, 0, pad, true)
		return
	}
	f.padded(sign+s, w, 1, 0, pad, true)
}
