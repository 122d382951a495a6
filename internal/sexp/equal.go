package sexp

import "math"

// Equal reports whether a and b are the same datum: of the same type, and
// alike in every part. 1 and 1.0 differ, and so do 0.0 and -0.0.
func Equal(a, b Value) bool {
	var first [16]pending
	rest := first[:0]
	for {
		x, y, ok := parts(a, b)
		if !ok {
			return false
		}
		if len(x.items) > 0 || x.tail != nil {
			rest = append(rest, pending{x, y})
		}
		for len(rest) > 0 && rest[len(rest)-1].done() {
			rest = rest[:len(rest)-1]
		}
		if len(rest) == 0 {
			return true
		}
		a, b = rest[len(rest)-1].next()
	}
}

// A pending comparison is that of two lists of one length, from some item on.
type pending struct{ x, y List }

func (p *pending) done() bool { return len(p.x.items) == 0 && p.x.tail == nil }

func (p *pending) next() (a, b Value) {
	if len(p.x.items) == 0 {
		a, b = p.x.tail, p.y.tail
		p.x.tail = nil
		return a, b
	}
	a, b = p.x.items[0], p.y.items[0]
	p.x.items, p.y.items = p.x.items[1:], p.y.items[1:]
	return a, b
}

// parts reports whether a and b are alike but for their items, and returns
// those.
func parts(a, b Value) (x, y List, alike bool) {
	if IsNil(a) || IsNil(b) {
		return x, y, IsNil(a) && IsNil(b)
	}
	switch l := a.(type) {
	case List:
		m, ok := b.(List)
		return l, m, ok && len(l.items) == len(m.items) && (l.tail == nil) == (m.tail == nil)
	case Vector:
		m, ok := b.(Vector)
		return List{items: l.items}, List{items: m.items}, ok && len(l.items) == len(m.items)
	}
	return x, y, equalAtom(a, b)
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
	return a == b // of different types, or both of a type that == can compare
}
