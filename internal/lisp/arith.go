package lisp

import (
	"math"
	"math/big"
	"math/bits"
)

// fold2 makes the general form of an operation from the binary one.
func fold2(unit Value, op func(*Thread, Value, Value) Value) func(*Thread, []Value) Value {
	return func(th *Thread, a []Value) Value {
		if len(a) == 0 {
			return unit
		}
		acc := a[0]
		th.number(acc)
		for _, x := range a[1:] {
			acc = op(th, acc, x)
		}
		return acc
	}
}

// chain makes a comparison of any number of arguments from the binary one.
func chain(check func(*Thread, Value) rung, ok func(th *Thread, x, y Value) bool) func(*Thread, []Value) Value {
	return func(th *Thread, a []Value) Value {
		if len(a) == 1 {
			check(th, a[0])
		}
		result := true
		for i := 1; i < len(a); i++ {
			result = ok(th, a[i-1], a[i]) && result
		}
		return mkBool(result)
	}
}

func test2(ok func(th *Thread, x, y Value) bool) func(*Thread, Value, Value) Value {
	return func(th *Thread, x, y Value) Value { return mkBool(ok(th, x, y)) }
}

func less(th *Thread, x, y Value) bool    { return th.compare(x, y) == -1 }
func greater(th *Thread, x, y Value) bool { return th.compare(x, y) == 1 }
func atMost(th *Thread, x, y Value) bool  { c := th.compare(x, y); return c == -1 || c == 0 }
func atLeast(th *Thread, x, y Value) bool { c := th.compare(x, y); return c == 1 || c == 0 }

func numEqual(th *Thread, x, y Value) bool {
	th.number(x)
	th.number(y)
	return th.compare(x, y) == 0
}

func allDifferent(th *Thread, a []Value) Value {
	if len(a) == 1 {
		th.number(a[0])
	}
	for i := range a {
		th.step(uint64(i))
		for j := range i {
			if numEqual(th, a[i], a[j]) {
				return Nil
			}
		}
	}
	return symT
}

func extreme(want int) func(*Thread, []Value) Value {
	return func(th *Thread, a []Value) Value {
		best := a[0]
		th.real(best)
		for _, x := range a[1:] {
			if th.compare(x, best) == want {
				best = x
			}
		}
		return best
	}
}

// test1 makes a predicate of one number.
func test1(ok func(th *Thread, x Value) bool) func(*Thread, Value) Value {
	return func(th *Thread, x Value) Value { return mkBool(ok(th, x)) }
}

func odd(th *Thread, x Value) bool {
	if n, ok := x.(Int); ok {
		return n&1 == 1
	}
	return th.integerArg(x).Bit(0) == 1
}

func rounder(mode rounding, name string, float bool) func(*Thread, []Value) Value {
	op := sym(name)
	return func(th *Thread, a []Value) Value {
		y := a[1]
		if y == nil {
			y = Int(1)
		}
		q, r := th.quotient(a[0], y, mode, op)
		if float {
			switch max(rungOf(a[0]), rungOf(y)) {
			case rungDouble:
				q = Double(floatOf(q))
			default:
				q = Single(singleOf(q))
			}
		}
		return th.values(q, r)
	}
}

func biMod(th *Thread, x, y Value) Value {
	_, r := th.quotient(x, y, roundFloor, symMod)
	return r
}

func biRem(th *Thread, x, y Value) Value {
	_, r := th.quotient(x, y, roundTruncate, symRem)
	return r
}

func biGcd(th *Thread, x, y Value) Value {
	a, b := th.integerArg(x), th.integerArg(y)
	th.chargeBig(a, b)
	th.step(bigCost(a) + bigCost(b))
	return mkBig(new(big.Int).GCD(nil, nil, new(big.Int).Abs(a), new(big.Int).Abs(b)))
}

func biLcm(th *Thread, x, y Value) Value {
	if isZero(x) || isZero(y) {
		return Int(0)
	}
	q, _ := th.quotient(th.mul(x, y), biGcd(th, x, y), roundTruncate, symTruncate)
	return biAbs(th, q)
}

func biAbs(th *Thread, x Value) Value {
	switch v := x.(type) {
	case Single:
		return Single(math.Abs(float64(v)))
	case Double:
		return Double(math.Abs(float64(v)))
	}
	if th.sign(x) < 0 {
		return th.negate(x)
	}
	return x
}

// biExpt raises to a power: exactly when the power is an integer.
func biExpt(th *Thread, x, y Value) Value {
	switch th.number(y) {
	case rungInt, rungBig:
		return th.power(x, y)
	default:
	}
	th.number(x)
	level := max(rungOf(x), rungOf(y), rungSingle)
	f := math.Pow(floatOf(x), floatOf(y))
	if math.IsNaN(f) {
		th.fail(classArithmetic, "expt: the result would be a complex number, which this Lisp has not")
	}
	return th.floatAt(f, level)
}

func (th *Thread) floatAt(f float64, level rung) Value {
	if level == rungDouble {
		return th.double(f)
	}
	return th.single(float32(f))
}

func (th *Thread) power(x, y Value) Value {
	n, ok := y.(Int)
	if !ok {
		switch {
		case x == Value(Int(1)), x == Value(Int(0)):
			return x
		case x == Value(Int(-1)):
			if odd(th, y) {
				return x
			}
			return Int(1)
		}
		th.exhaust("cells")
	}
	if n < 0 {
		if isZero(x) {
			th.divisionByZero(symSlash, Int(1), Int(0))
		}
		return th.divide(Int(1), th.power(x, th.negate(y)))
	}
	if b := bigOf(x); b != nil {
		size := (uint64(b.BitLen())*uint64(n))/64 + 1
		if b.BitLen() <= 1 {
			size = 1
		}
		th.alloc(int(min(size, 1<<40)))
		th.step(size * size / 64)
	}
	var result Value = Int(1)
	switch x.(type) {
	case Single:
		result = Single(1)
	case Double:
		result = Double(1)
	}
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			result = th.mul(result, x)
		}
		if n > 1 {
			x = th.mul(x, x)
		}
	}
	return result
}

func biSqrt(th *Thread, x Value) Value {
	level := max(th.number(x), rungSingle)
	if th.sign(x) < 0 {
		th.fail(classArithmetic, "sqrt: the result would be a complex number, which this Lisp has not")
	}
	return th.floatAt(math.Sqrt(floatOf(x)), level)
}

func biIsqrt(th *Thread, x Value) Value {
	n := th.integerArg(x)
	if n.Sign() < 0 {
		th.typeError(x, symUnsignedByte)
	}
	th.chargeBig(n)
	th.step(bigCost(n) * 4)
	return mkBig(new(big.Int).Sqrt(n))
}

// floatFn makes a function of one real from one of math's.
func floatFn(f func(float64) float64) func(*Thread, Value) Value {
	return func(th *Thread, x Value) Value {
		level := max(th.number(x), rungSingle)
		return th.floatAt(f(floatOf(x)), level)
	}
}

func biLog(th *Thread, a []Value) Value {
	level := max(th.number(a[0]), rungSingle)
	if isZero(a[0]) {
		th.divisionByZero(symLog, a[0], Int(0))
	}
	if th.sign(a[0]) < 0 {
		th.fail(classArithmetic, "log: the result would be a complex number, which this Lisp has not")
	}
	f := math.Log(floatOf(a[0]))
	if b, ok := a[0].(*bignum); ok {
		e := b.n.BitLen() - 60
		m, _ := new(big.Float).SetInt(new(big.Int).Rsh(b.n, uint(e))).Float64()
		f = math.Log(m) + float64(e)*math.Ln2
	}
	if a[1] != nil {
		level = max(level, th.number(a[1]))
		if level == rungSingle {
			return th.floatAt(float64(float32(f))/float64(float32(math.Log(floatOf(a[1])))), level)
		}
		f /= math.Log(floatOf(a[1]))
	}
	return th.floatAt(f, level)
}

func biAtan(th *Thread, a []Value) Value {
	level := max(th.number(a[0]), rungSingle)
	if a[1] == nil {
		return th.floatAt(math.Atan(floatOf(a[0])), level)
	}
	level = max(level, th.number(a[1]))
	return th.floatAt(math.Atan2(floatOf(a[0]), floatOf(a[1])), level)
}

func biFloat(th *Thread, a []Value) Value {
	r := th.real(a[0])
	switch {
	case a[1] != nil && rungOf(a[1]) == rungDouble:
		return Double(floatOf(a[0]))
	case a[1] != nil && rungOf(a[1]) == rungSingle:
		return th.single(singleOf(a[0]))
	case r >= rungSingle:
		return a[0]
	}
	return th.single(singleOf(a[0]))
}

func biRational(th *Thread, x Value) Value {
	if th.real(x) < rungSingle {
		return x
	}
	return mkRat(th.exact(x))
}

// biRationalize finds the simplest fraction that reads back as the float.
func biRationalize(th *Thread, x Value) Value {
	if th.real(x) < rungSingle {
		return x
	}
	want := floatOf(x)
	if want == 0 {
		return Int(0)
	}
	r := new(big.Rat).SetFloat64(math.Abs(want))
	h0, h1 := big.NewInt(0), big.NewInt(1)
	k0, k1 := big.NewInt(1), big.NewInt(0)
	for range 64 {
		th.step(4)
		a := new(big.Int).Quo(r.Num(), r.Denom())
		h0, h1 = h1, new(big.Int).Add(new(big.Int).Mul(a, h1), h0)
		k0, k1 = k1, new(big.Int).Add(new(big.Int).Mul(a, k1), k0)
		got := new(big.Rat).SetFrac(h1, k1)
		if _, single := x.(Single); single {
			if f, _ := got.Float32(); float64(f) == math.Abs(want) {
				break
			}
		} else if f, _ := got.Float64(); f == math.Abs(want) {
			break
		}
		rest := new(big.Rat).Sub(r, new(big.Rat).SetInt(a))
		if rest.Sign() == 0 {
			break
		}
		r = rest.Inv(rest)
	}
	out := new(big.Rat).SetFrac(h1, k1)
	if want < 0 {
		out.Neg(out)
	}
	return mkRat(out)
}

func biAsh(th *Thread, x, y Value) Value {
	n := th.integerArg(x)
	shift, ok := y.(Int)
	if small, isSmall := x.(Int); isSmall && ok && shift <= 0 {
		return mkInt(int64(small) >> min(-uint64(shift), 63))
	}
	if !ok {
		th.integerArg(y)
		if th.sign(y) < 0 {
			shift = math.MinInt32
		} else if n.Sign() == 0 {
			return Int(0)
		} else {
			th.exhaust("cells")
		}
	}
	if shift <= 0 {
		if shift < -1<<30 {
			shift = -1 << 30
		}
		th.chargeBig(n)
		return mkBig(new(big.Int).Rsh(n, uint(-shift)))
	}
	if n.Sign() == 0 {
		return Int(0)
	}
	th.alloc(int(min(shift, 1<<40)/128) + len(n.Bits()) + 1)
	return mkBig(new(big.Int).Lsh(n, uint(shift)))
}

func bitOp(op func(z, x, y *big.Int) *big.Int, small func(x, y int64) int64) func(*Thread, Value, Value) Value {
	return func(th *Thread, x, y Value) Value {
		if a, ok := x.(Int); ok {
			if b, ok := y.(Int); ok {
				return mkInt(small(int64(a), int64(b)))
			}
		}
		a, b := th.integerArg(x), th.integerArg(y)
		th.chargeBig(a, b)
		return mkBig(op(new(big.Int), a, b))
	}
}

func bitFold(unit Value, op func(*Thread, Value, Value) Value) func(*Thread, []Value) Value {
	return func(th *Thread, a []Value) Value {
		acc := unit
		for _, x := range a {
			acc = op(th, acc, x)
		}
		return acc
	}
}

var (
	logand = bitOp((*big.Int).And, func(x, y int64) int64 { return x & y })
	logior = bitOp((*big.Int).Or, func(x, y int64) int64 { return x | y })
	logxor = bitOp((*big.Int).Xor, func(x, y int64) int64 { return x ^ y })
)

func biLogcount(th *Thread, x Value) Value {
	n := th.integerArg(x)
	if n.Sign() < 0 {
		n = new(big.Int).Not(n)
	}
	c := 0
	for _, w := range n.Bits() {
		c += bits.OnesCount(uint(w))
	}
	th.step(uint64(len(n.Bits())))
	return mkInt(int64(c))
}

func biIntegerLength(th *Thread, x Value) Value {
	n := th.integerArg(x)
	if n.Sign() < 0 {
		n = new(big.Int).Not(n)
	}
	return mkInt(int64(n.BitLen()))
}

func biLogbitp(th *Thread, x, y Value) Value {
	n := th.integerArg(y)
	i, ok := x.(Int)
	if !ok || i < 0 {
		th.typeError(x, symUnsignedByte)
	}
	if int64(i) > int64(n.BitLen()) {
		return mkBool(n.Sign() < 0)
	}
	return mkBool(n.Bit(int(i)) == 1)
}

func biSignum(th *Thread, x Value) Value {
	switch v := x.(type) {
	case Single:
		if v == 0 {
			return x
		}
		return Single(th.sign(x))
	case Double:
		if v == 0 {
			return x
		}
		return Double(th.sign(x))
	}
	th.number(x)
	return Int(th.sign(x))
}

func biMinus(th *Thread, a []Value) Value {
	if len(a) == 1 {
		th.number(a[0])
		return th.negate(a[0])
	}
	return fold2(nil, (*Thread).sub)(th, a)
}

func biSlash(th *Thread, a []Value) Value {
	if len(a) == 1 {
		return th.divide(Int(1), a[0])
	}
	return fold2(nil, (*Thread).divide)(th, a)
}

func numberPred(ok func(r rung) bool) func(*Thread, Value) Value {
	return func(_ *Thread, x Value) Value { return mkBool(ok(rungOf(x))) }
}

func biDecodeFloat(th *Thread, a []Value) Value {
	f := floatOf(a[0])
	digits := 53
	switch a[0].(type) {
	case Single:
		digits = 24
	case Double:
	default:
		th.typeError(a[0], symFloat)
	}
	frac, exp := math.Frexp(math.Abs(f))
	n := int64(math.Ldexp(frac, digits))
	sign := int64(1)
	if math.Signbit(f) {
		sign = -1
	}
	return th.values(mkInt(n), mkInt(int64(exp-digits)), mkInt(sign))
}

var numberPrims = []prim{
	{usage: "(+ &rest numbers)", doc: "the sum", fn: fold2(Int(0), (*Thread).add), fn2: (*Thread).add},
	{usage: "(- number &rest more)", doc: "the difference, or the negative of one number", fn: biMinus, fn2: (*Thread).sub},
	{usage: "(* &rest numbers)", doc: "the product", fn: fold2(Int(1), (*Thread).mul), fn2: (*Thread).mul},
	{usage: "(/ number &rest more)", doc: "the exact quotient, or the reciprocal of one number", fn: biSlash, fn2: (*Thread).divide},
	{usage: "(1+ number)", doc: "one more", fn1: func(th *Thread, x Value) Value { return th.add(x, Int(1)) }},
	{usage: "(1- number)", doc: "one less", fn1: func(th *Thread, x Value) Value { return th.sub(x, Int(1)) }},
	{usage: "(= number &rest more)", doc: "true if all are equal numbers", fn: chain((*Thread).number, numEqual), fn2: test2(numEqual)},
	{usage: "(/= number &rest more)", doc: "true if no two numbers are equal", fn: allDifferent},
	{usage: "(< number &rest more)", doc: "true if the numbers increase", fn: chain((*Thread).real, less), fn2: test2(less)},
	{usage: "(> number &rest more)", doc: "true if the numbers decrease", fn: chain((*Thread).real, greater), fn2: test2(greater)},
	{usage: "(<= number &rest more)", doc: "true if the numbers never decrease", fn: chain((*Thread).real, atMost), fn2: test2(atMost)},
	{usage: "(>= number &rest more)", doc: "true if the numbers never increase", fn: chain((*Thread).real, atLeast), fn2: test2(atLeast)},
	{usage: "(max number &rest more)", doc: "the greatest", fn: extreme(1)},
	{usage: "(min number &rest more)", doc: "the least", fn: extreme(-1)},
	{usage: "(floor number &optional divisor)", doc: "quotient rounded down, and remainder", fn: rounder(roundFloor, "FLOOR", false)},
	{usage: "(ceiling number &optional divisor)", doc: "quotient rounded up, and remainder", fn: rounder(roundCeiling, "CEILING", false)},
	{usage: "(truncate number &optional divisor)", doc: "quotient rounded towards zero, and remainder", fn: rounder(roundTruncate, "TRUNCATE", false)},
	{usage: "(round number &optional divisor)", doc: "quotient rounded to the nearest, ties to even, and remainder", fn: rounder(roundNearest, "ROUND", false)},
	{usage: "(ffloor number &optional divisor)", doc: "FLOOR with a float quotient", fn: rounder(roundFloor, "FLOOR", true)},
	{usage: "(fceiling number &optional divisor)", doc: "CEILING with a float quotient", fn: rounder(roundCeiling, "CEILING", true)},
	{usage: "(ftruncate number &optional divisor)", doc: "TRUNCATE with a float quotient", fn: rounder(roundTruncate, "TRUNCATE", true)},
	{usage: "(fround number &optional divisor)", doc: "ROUND with a float quotient", fn: rounder(roundNearest, "ROUND", true)},
	{usage: "(mod number divisor)", doc: "remainder of FLOOR", fn2: biMod},
	{usage: "(rem number divisor)", doc: "remainder of TRUNCATE", fn2: biRem},
	{usage: "(gcd &rest integers)", doc: "greatest common divisor", fn: bitFold(Int(0), biGcd)},
	{usage: "(lcm &rest integers)", doc: "least common multiple", fn: bitFold(Int(1), biLcm)},
	{usage: "(abs number)", doc: "absolute value", fn1: biAbs},
	{usage: "(signum number)", doc: "-1, 0 or 1", fn1: biSignum},
	{usage: "(expt base power)", doc: "base to the power", fn2: biExpt},
	{usage: "(exp number)", doc: "e to the power", fn1: floatFn(math.Exp)},
	{usage: "(sqrt number)", doc: "square root", fn1: biSqrt},
	{usage: "(isqrt integer)", doc: "integer square root", fn1: biIsqrt},
	{usage: "(log number &optional base)", doc: "logarithm", fn: biLog},
	{usage: "(sin radians)", doc: "sine", fn1: floatFn(math.Sin)},
	{usage: "(cos radians)", doc: "cosine", fn1: floatFn(math.Cos)},
	{usage: "(tan radians)", doc: "tangent", fn1: floatFn(math.Tan)},
	{usage: "(asin number)", doc: "arc sine", fn1: floatFn(math.Asin)},
	{usage: "(acos number)", doc: "arc cosine", fn1: floatFn(math.Acos)},
	{usage: "(atan y &optional x)", doc: "arc tangent", fn: biAtan},
	{usage: "(sinh number)", doc: "hyperbolic sine", fn1: floatFn(math.Sinh)},
	{usage: "(cosh number)", doc: "hyperbolic cosine", fn1: floatFn(math.Cosh)},
	{usage: "(tanh number)", doc: "hyperbolic tangent", fn1: floatFn(math.Tanh)},
	{usage: "(float number &optional prototype)", doc: "the number as a float", fn: biFloat},
	{usage: "(rational number)", doc: "the exact value of a number", fn1: biRational},
	{usage: "(rationalize number)", doc: "the simplest fraction a float could stand for", fn1: biRationalize},
	{usage: "(numerator rational)", doc: "the numerator", fn1: func(th *Thread, x Value) Value {
		if r, ok := x.(*ratio); ok {
			return mkBig(r.r.Num())
		}
		th.integerArg(x)
		return x
	}},
	{usage: "(denominator rational)", doc: "the denominator", fn1: func(th *Thread, x Value) Value {
		if r, ok := x.(*ratio); ok {
			return mkBig(r.r.Denom())
		}
		th.integerArg(x)
		return Int(1)
	}},
	{usage: "(integer-decode-float float)", doc: "significand, exponent and sign", fn: biDecodeFloat},
	{usage: "(realpart number)", doc: "the number", fn1: func(th *Thread, x Value) Value { th.number(x); return x }},
	{usage: "(imagpart number)", doc: "zero", fn1: func(th *Thread, x Value) Value { th.number(x); return th.mul(x, Int(0)) }},
	{usage: "(zerop number)", doc: "true for zero", fn1: test1(func(th *Thread, x Value) bool { th.number(x); return isZero(x) })},
	{usage: "(plusp number)", doc: "true above zero", fn1: test1(func(th *Thread, x Value) bool { return th.sign(x) > 0 })},
	{usage: "(minusp number)", doc: "true below zero", fn1: test1(func(th *Thread, x Value) bool { return th.sign(x) < 0 })},
	{usage: "(evenp integer)", doc: "true for an even integer", fn1: test1(func(th *Thread, x Value) bool { return !odd(th, x) })},
	{usage: "(oddp integer)", doc: "true for an odd integer", fn1: test1(odd)},
	{usage: "(ash integer count)", doc: "shift left, or right by a negative count", fn2: biAsh},
	{usage: "(logand &rest integers)", doc: "bitwise and", fn: bitFold(Int(-1), logand), fn2: logand},
	{usage: "(logior &rest integers)", doc: "bitwise or", fn: bitFold(Int(0), logior), fn2: logior},
	{usage: "(logxor &rest integers)", doc: "bitwise exclusive or", fn: bitFold(Int(0), logxor), fn2: logxor},
	{usage: "(lognot integer)", doc: "bitwise complement", fn1: func(th *Thread, x Value) Value {
		n := th.integerArg(x)
		th.chargeBig(n)
		return mkBig(new(big.Int).Not(n))
	}},
	{usage: "(logtest x y)", doc: "true if the integers share a bit", fn2: func(th *Thread, x, y Value) Value { return mkBool(!isZero(logand(th, x, y))) }},
	{usage: "(logbitp index integer)", doc: "true if the bit is one", fn2: biLogbitp},
	{usage: "(logcount integer)", doc: "number of one bits", fn1: biLogcount},
	{usage: "(integer-length integer)", doc: "number of bits needed", fn1: biIntegerLength},
	{usage: "(numberp object)", doc: "true for a number", fn1: numberPred(func(r rung) bool { return r != rungNone })},
	{usage: "(realp object)", doc: "true for a real number", fn1: numberPred(func(r rung) bool { return r != rungNone })},
	{usage: "(complexp object)", doc: "never true: there are no complex numbers", fn1: numberPred(func(rung) bool { return false })},
	{usage: "(integerp object)", doc: "true for an integer", fn1: numberPred(func(r rung) bool { return r == rungInt || r == rungBig })},
	{usage: "(rationalp object)", doc: "true for an integer or ratio", fn1: numberPred(func(r rung) bool { return r >= rungInt && r <= rungRatio })},
	{usage: "(floatp object)", doc: "true for a float", fn1: numberPred(func(r rung) bool { return r >= rungSingle })},
}
