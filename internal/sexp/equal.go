package sexp

import "math"

// Equal reports whether a and b are the same datum: of the same type, and
// alike in every part. 1 and 1.0 differ, and so do 0.0 and -0.0.
func Equal(a, b Value) bool {
	type pair struct{ a, b Value }
	var first [16]pair
	rest := append(first[:0], pair{a, b})
	both := func(x, y []Value) bool {
		if len(x) != len(y) {
			return false
		}
		for i := range x {
			rest = append(rest, pair{x[i], y[i]})
		}
		return true
	}
	for len(rest) > 0 {
		p := rest[len(rest)-1]
		rest = rest[:len(rest)-1]
		if IsNil(p.a) || IsNil(p.b) {
			if !IsNil(p.a) || !IsNil(p.b) {
				return false
			}
			continue
		}
		switch x := p.a.(type) {
		case List:
			y, ok := p.b.(List)
			if !ok || !both(x.items, y.items) {
				return false
			}
			rest = append(rest, pair{x.tail, y.tail})
		case Vector:
			y, ok := p.b.(Vector)
			if !ok || !both(x.items, y.items) {
				return false
			}
		default:
			if !equalAtom(p.a, p.b) {
				return false
			}
		}
	}
	return true
}

func equalAtom(a, b Value) bool {
	switch x := a.(type) {
	case Int:
		y, ok := b.(Int)
		if !ok || x.big == nil || y.big == nil {
			return ok && x == y
		}
		return x.big.Cmp(y.big) == 0
	case Ratio:
		y, ok := b.(Ratio)
		return ok && x.rat.Cmp(y.rat) == 0
	case Float:
		y, ok := b.(Float)
		return ok && math.Float64bits(float64(x)) == math.Float64bits(float64(y))
	}
	return a == b
}
