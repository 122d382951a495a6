package lisp

import (
	"math"
	"math/big"
	"math/bits"
)

// Numbers form a ladder: Int, bignum, ratio, Single, Double. A binary
// operation lifts both operands to the higher rung.
type rung uint8

const (
	rungNone rung = iota
	rungInt
	rungBig
	rungRatio
	rungSingle
	rungDouble
)

func rungOf(v Value) rung {
	switch v.(type) {
	case Int:
		return rungInt
	case *bignum:
		return rungBig
	case *ratio:
		return rungRatio
	case Single:
		return rungSingle
	case Double:
		return rungDouble
	}
	return rungNone
}

func (th *Thread) number(v Value) rung {
	r := rungOf(v)
	switch r {
	case rungNone:
		th.typeError(v, symNumber)
	case rungBig, rungRatio:
		th.weigh(v)
	default:
	}
	return r
}

func (th *Thread) real(v Value) rung {
	if rungOf(v) == rungNone {
		th.typeError(v, symReal)
	}
	return th.number(v)
}

// weigh charges for going once over the digits of a number, which comparing and
// converting do.
func (th *Thread) weigh(v Value) {
	switch v := v.(type) {
	case *bignum:
		th.step(uint64(len(v.n.Bits()) / 32))
	case *ratio:
		th.step(uint64((len(v.r.Num().Bits()) + len(v.r.Denom().Bits())) / 4))
	}
}

// bigOf returns an integer as a big.Int the caller must not change.
func bigOf(v Value) *big.Int {
	switch v := v.(type) {
	case Int:
		return big.NewInt(int64(v))
	case *bignum:
		return v.n
	}
	return nil
}

// ratOf returns a rational as a big.Rat the caller must not change.
func ratOf(v Value) *big.Rat {
	if r, ok := v.(*ratio); ok {
		return r.r
	}
	return new(big.Rat).SetInt(bigOf(v))
}

// exact returns any finite real as a fraction.
func (th *Thread) exact(v Value) *big.Rat {
	f := 0.0
	switch v := v.(type) {
	case Single:
		f = float64(v)
	case Double:
		f = float64(v)
	default:
		return ratOf(v)
	}
	r := new(big.Rat)
	if r.SetFloat64(f) == nil {
		th.fail(classArithmetic, "cannot represent %s as a rational", th.show(v))
	}
	return r
}

func floatOf(v Value) float64 {
	switch v := v.(type) {
	case Int:
		return float64(v)
	case *bignum:
		if v.n.BitLen() > 1024 { // whatever its digits are
			return math.Inf(v.n.Sign())
		}
		f, _ := new(big.Float).SetInt(v.n).Float64()
		return f
	case *ratio:
		f, _ := v.r.Float64()
		return f
	case Single:
		return float64(v)
	case Double:
		return float64(v)
	}
	return 0
}

func singleOf(v Value) float32 {
	switch v := v.(type) {
	case Int:
		return float32(v)
	case *bignum:
		if v.n.BitLen() > 1024 {
			return float32(math.Inf(v.n.Sign()))
		}
		f, _ := new(big.Float).SetInt(v.n).Float32()
		return f
	case *ratio:
		f, _ := v.r.Float32()
		return f
	case Single:
		return float32(v)
	}
	return float32(floatOf(v))
}

// bigCost is what an operation on a bignum costs in steps.
func bigCost(n *big.Int) uint64 {
	w := uint64(len(n.Bits()))
	return 1 + w*w/64 + w/4
}

// mulCost is what multiplying or dividing bignums costs in steps, beyond making the
// result.
func mulCost(a, b *big.Int) uint64 {
	return uint64(len(a.Bits())) * uint64(len(b.Bits())) / 64
}

func (th *Thread) chargeBig(ns ...*big.Int) {
	words := 0
	for _, n := range ns {
		words += len(n.Bits())
	}
	th.step(uint64(words/4 + 1))
	th.alloc(words/2 + 1)
}

// single checks the result of an operation on floats, as SBCL's traps do.
func (th *Thread) single(f float32) Value {
	if math.IsInf(float64(f), 0) {
		th.fail(classOverflow, "arithmetic error FLOATING-POINT-OVERFLOW signalled")
	}
	if f != f {
		th.fail(classInvalidFloat, "arithmetic error FLOATING-POINT-INVALID-OPERATION signalled")
	}
	return Single(f)
}

func (th *Thread) double(f float64) Value {
	if math.IsInf(f, 0) {
		th.fail(classOverflow, "arithmetic error FLOATING-POINT-OVERFLOW signalled")
	}
	if f != f {
		th.fail(classInvalidFloat, "arithmetic error FLOATING-POINT-INVALID-OPERATION signalled")
	}
	return Double(f)
}

func (th *Thread) add(x, y Value) Value {
	if a, ok := x.(Int); ok {
		if b, ok := y.(Int); ok {
			if s := a + b; (s > a) == (b > 0) {
				return mkInt(int64(s))
			}
		}
	}
	switch max(th.number(x), th.number(y)) {
	case rungInt, rungBig:
		a, b := bigOf(x), bigOf(y)
		th.chargeBig(a, b)
		return mkBig(new(big.Int).Add(a, b))
	case rungRatio:
		return th.ratOp(x, y, (*big.Rat).Add)
	case rungSingle:
		return th.single(singleOf(x) + singleOf(y))
	default:
	}
	return th.double(floatOf(x) + floatOf(y))
}

func (th *Thread) ratOp(x, y Value, op func(z, a, b *big.Rat) *big.Rat) Value {
	a, b := ratOf(x), ratOf(y)
	th.step(bigCost(a.Num()) + bigCost(b.Num()) + bigCost(a.Denom()) + bigCost(b.Denom()))
	th.chargeBig(a.Num(), b.Num(), a.Denom(), b.Denom())
	return mkRat(op(new(big.Rat), a, b))
}

func (th *Thread) sub(x, y Value) Value {
	if a, ok := x.(Int); ok {
		if b, ok := y.(Int); ok {
			if s := a - b; (s < a) == (b > 0) {
				return mkInt(int64(s))
			}
		}
	}
	switch max(th.number(x), th.number(y)) {
	case rungInt, rungBig:
		a, b := bigOf(x), bigOf(y)
		th.chargeBig(a, b)
		return mkBig(new(big.Int).Sub(a, b))
	case rungRatio:
		return th.ratOp(x, y, (*big.Rat).Sub)
	case rungSingle:
		return th.single(singleOf(x) - singleOf(y))
	default:
	}
	return th.double(floatOf(x) - floatOf(y))
}

func (th *Thread) mul(x, y Value) Value {
	if a, ok := x.(Int); ok {
		if b, ok := y.(Int); ok {
			hi, lo := bits.Mul64(uint64(max(a, -a)), uint64(max(b, -b)))
			if hi == 0 && lo < 1<<63 {
				return mkInt(int64(a * b))
			}
		}
	}
	switch max(th.number(x), th.number(y)) {
	case rungInt, rungBig:
		a, b := bigOf(x), bigOf(y)
		th.chargeBig(a, b)
		th.step(mulCost(a, b))
		return mkBig(new(big.Int).Mul(a, b))
	case rungRatio:
		return th.ratOp(x, y, (*big.Rat).Mul)
	case rungSingle:
		return th.single(singleOf(x) * singleOf(y))
	default:
	}
	return th.double(floatOf(x) * floatOf(y))
}

// divide is the exact quotient.
func (th *Thread) divide(x, y Value) Value {
	switch r := max(th.number(x), th.number(y)); r {
	case rungInt, rungBig, rungRatio:
		if isZero(y) {
			th.divisionByZero(symSlash, x, y)
		}
		if a, ok := x.(Int); ok {
			if b, ok := y.(Int); ok && b != -1 && a%b == 0 {
				return mkInt(int64(a / b))
			}
		}
		return th.ratOp(x, y, (*big.Rat).Quo)
	case rungSingle:
		if singleOf(y) == 0 {
			th.divisionByZero(symSlash, x, y)
		}
		return th.single(singleOf(x) / singleOf(y))
	default:
	}
	if floatOf(y) == 0 {
		th.divisionByZero(symSlash, x, y)
	}
	return th.double(floatOf(x) / floatOf(y))
}

func isZero(v Value) bool {
	switch v := v.(type) {
	case Int:
		return v == 0
	case Single:
		return v == 0
	case Double:
		return v == 0
	}
	return false
}

// compare orders two reals exactly: floats are compared by the fraction they
// stand for.
func (th *Thread) compare(x, y Value) int {
	if a, ok := x.(Int); ok {
		if b, ok := y.(Int); ok {
			switch {
			case a < b:
				return -1
			case a > b:
				return 1
			}
			return 0
		}
	}
	a, b := th.real(x), th.real(y)
	if a >= rungSingle && b >= rungSingle {
		f, g := floatOf(x), floatOf(y)
		switch {
		case f < g:
			return -1
		case f > g:
			return 1
		case f == g:
			return 0
		}
		return 2 // unordered
	}
	if f := floatOf(x); a >= rungSingle && math.IsInf(f, 0) {
		return int(math.Copysign(1, f))
	}
	if g := floatOf(y); b >= rungSingle && math.IsInf(g, 0) {
		return -int(math.Copysign(1, g))
	}
	if a <= rungBig && b <= rungBig {
		return bigOf(x).Cmp(bigOf(y))
	}
	p, q := th.exact(x), th.exact(y)
	th.step(mulCost(p.Num(), q.Denom()) + mulCost(q.Num(), p.Denom()))
	return p.Cmp(q)
}

func (th *Thread) sign(v Value) int {
	switch v := v.(type) {
	case Int:
		switch {
		case v < 0:
			return -1
		case v > 0:
			return 1
		}
		return 0
	case *bignum:
		return v.n.Sign()
	case *ratio:
		return v.r.Sign()
	}
	th.real(v)
	f := floatOf(v)
	switch {
	case f < 0:
		return -1
	case f > 0:
		return 1
	}
	return 0
}

func (th *Thread) negate(v Value) Value {
	switch v := v.(type) {
	case Single:
		return -v
	case Double:
		return -v
	}
	return th.sub(Int(0), v)
}

// quotient divides with the given rounding and returns quotient and remainder.
type rounding uint8

const (
	roundFloor rounding = iota
	roundCeiling
	roundTruncate
	roundNearest // ties to even
)

func (th *Thread) quotient(x, y Value, mode rounding, op *Symbol) (q, r Value) {
	if a, ok := x.(Int); ok {
		if b, ok := y.(Int); ok && b != 0 && a != math.MinInt64 {
			return smallQuotient(int64(a), int64(b), mode)
		}
	}
	level := max(th.real(x), th.real(y))
	if isZero(y) {
		th.divisionByZero(op, x, y)
	}
	if level <= rungBig {
		a, b := bigOf(x), bigOf(y)
		th.chargeBig(a, b)
		th.step(mulCost(a, b))
		n := roundRat(a, b, mode)
		return mkBig(n), mkBig(new(big.Int).Sub(a, new(big.Int).Mul(n, b)))
	}
	a, b := th.exact(x), th.exact(y)
	th.chargeBig(a.Num(), a.Denom(), b.Num(), b.Denom())
	th.step(bigCost(a.Num()) + bigCost(a.Denom()) + bigCost(b.Num()) + bigCost(b.Denom()))
	exact := new(big.Rat).Quo(a, b)
	n := roundRat(exact.Num(), exact.Denom(), mode)
	q = mkBig(n)
	rest := new(big.Rat).Sub(a, new(big.Rat).Mul(new(big.Rat).SetInt(n), b))
	switch level {
	case rungSingle:
		f, _ := rest.Float32()
		return q, Single(signedZero(float64(f), x))
	case rungDouble:
		f, _ := rest.Float64()
		return q, Double(signedZero(f, x))
	default:
	}
	return q, mkRat(rest)
}

// signedZero gives a remainder of zero the sign SBCL gives it: none for a
// positive dividend.
func signedZero(f float64, x Value) float64 {
	if f == 0 && math.Signbit(floatOf(x)) {
		return math.Copysign(0, -1)
	}
	return f
}

func smallQuotient(a, b int64, mode rounding) (Value, Value) {
	q, r := a/b, a%b
	switch mode {
	case roundFloor:
		if r != 0 && (r < 0) != (b < 0) {
			q, r = q-1, r+b
		}
	case roundCeiling:
		if r != 0 && (r < 0) == (b < 0) {
			q, r = q+1, r-b
		}
	case roundNearest:
		twice := 2 * max(r, -r)
		if m := max(b, -b); twice > m || twice == m && q%2 != 0 {
			if (r < 0) == (b < 0) {
				q, r = q+1, r-b
			} else {
				q, r = q-1, r+b
			}
		}
	default:
	}
	return mkInt(q), mkInt(r)
}

// roundRat rounds a/b to an integer.
func roundRat(a, b *big.Int, mode rounding) *big.Int {
	q, r := new(big.Int).QuoRem(a, b, new(big.Int))
	if r.Sign() == 0 {
		return q
	}
	same := (r.Sign() < 0) == (b.Sign() < 0)
	switch mode {
	case roundFloor:
		if !same {
			q.Sub(q, big.NewInt(1))
		}
	case roundCeiling:
		if same {
			q.Add(q, big.NewInt(1))
		}
	case roundNearest:
		twice := new(big.Int).Abs(r)
		twice.Lsh(twice, 1)
		c := twice.CmpAbs(b)
		if c > 0 || c == 0 && q.Bit(0) == 1 {
			if same {
				q.Add(q, big.NewInt(1))
			} else {
				q.Sub(q, big.NewInt(1))
			}
		}
	default:
	}
	return q
}

// integerArg checks that v is an integer.
func (th *Thread) integerArg(v Value) *big.Int {
	n := bigOf(v)
	if n == nil {
		th.typeError(v, symInteger)
	}
	th.weigh(v)
	return n
}

// index checks that v is a small non-negative integer.
func (th *Thread) index(v Value) int {
	n, ok := v.(Int)
	if !ok || n < 0 || n > 1<<40 {
		th.typeError(v, symUnsignedByte)
	}
	return int(n)
}

// eql is true for the same object, and for equal numbers of the same type.
func (th *Thread) eql(a, b Value) bool {
	if a == b {
		if f, ok := a.(Single); ok {
			return math.Signbit(float64(f)) == math.Signbit(float64(b.(Single)))
		}
		if f, ok := a.(Double); ok {
			return math.Signbit(float64(f)) == math.Signbit(float64(b.(Double)))
		}
		return true
	}
	switch x := a.(type) {
	case *bignum:
		y, ok := b.(*bignum)
		th.weigh(a)
		return ok && x.n.Cmp(y.n) == 0
	case *ratio:
		y, ok := b.(*ratio)
		th.weigh(a)
		return ok && x.r.Num().Cmp(y.r.Num()) == 0 && x.r.Denom().Cmp(y.r.Denom()) == 0
	}
	return false
}

func (th *Thread) equal(a, b Value) bool {
	for {
		if th.eql(a, b) {
			return true
		}
		switch x := a.(type) {
		case *Cons:
			y, ok := b.(*Cons)
			if !ok {
				return false
			}
			th.step(1)
			th.enter(1)
			same := th.equal(x.car, y.car)
			th.leave(1)
			if !same {
				return false
			}
			a, b = x.cdr, y.cdr
			continue
		case *Str:
			y, ok := b.(*Str)
			if !ok || x.length() != y.length() {
				return false
			}
			th.step(uint64(1 + x.length()/32))
			return x.text() == y.text()
		case *array:
			y, ok := b.(*array)
			if !ok || x.elem != Value(symBit) || y.elem != Value(symBit) || len(x.live()) != len(y.live()) {
				return false
			}
			th.step(uint64(len(x.items)))
			for i, v := range x.live() {
				if v != y.items[i] {
					return false
				}
			}
			return true
		}
		return false
	}
}

func (th *Thread) equalp(a, b Value) bool {
	th.step(1)
	if th.eql(a, b) {
		return true
	}
	if rungOf(a) != rungNone && rungOf(b) != rungNone {
		return th.compare(a, b) == 0
	}
	th.enter(1)
	defer th.leave(1)
	switch x := a.(type) {
	case Char:
		y, ok := b.(Char)
		return ok && foldRune(rune(x)) == foldRune(rune(y))
	case *Cons:
		y, ok := b.(*Cons)
		for ok && th.equalp(x.car, y.car) {
			th.step(1)
			nx, okx := x.cdr.(*Cons)
			ny, oky := y.cdr.(*Cons)
			if !okx || !oky {
				return th.equalp(x.cdr, y.cdr)
			}
			x, y = nx, ny
		}
		return false
	case *Str, *array:
		return th.equalpArrays(a, b)
	case *instance:
		y, ok := b.(*instance)
		if !ok || x.class != y.class || x.class.kind != kindStructure {
			return false
		}
		xs, ys := th.inst(x).slots, th.inst(y).slots
		for i := range xs {
			if !th.equalp(xs[i], ys[i]) {
				return false
			}
		}
		return true
	case *table:
		y, ok := b.(*table)
		return ok && th.equalpTables(th.table(x), th.table(y))
	}
	return false
}

func (th *Thread) equalpArrays(a, b Value) bool {
	x, ok := th.sequenceItems(a)
	y, ok2 := th.sequenceItems(b)
	if !ok || !ok2 || len(x) != len(y) {
		return false
	}
	if p, ok := a.(*array); ok {
		if q, ok := b.(*array); ok && !sameDims(p.dims, q.dims) {
			return false
		}
	}
	for i := range x {
		if !th.equalp(x[i], y[i]) {
			return false
		}
	}
	return true
}

func sameDims(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func foldRune(c rune) rune { return downcaseRune(upcaseRune(c)) }
