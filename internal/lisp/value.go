package lisp

import (
	"math/big"
	"unicode/utf8"
)

// A Value is one Lisp object. The set of implementations is closed. Numbers,
// characters and symbols are immutable; everything else belongs to the thread
// that made it until the thread is frozen into an [Image].
//
//sumtype:decl
type Value interface{ lispValue() }

type (
	// Int is an integer that fits 64 bits; larger ones are bignums.
	Int int64
	// Single is a single-float, the type of a plain 1.5.
	Single float32
	// Double is a double-float, the type of 1.5d0.
	Double float64
	// Char is a character.
	Char rune
	// A Symbol is a name in a package. Its value, function and properties live
	// in the image and the thread, so that one symbol can be shared by all.
	Symbol struct {
		name string
		pkg  *Package // nil for an uninterned symbol
		idx  int      // place of its cell in the image's and the thread's tables
	}
	// A Cons is a pair.
	Cons struct{ car, cdr Value }
	// A Str is a string. While runes is nil the text is ASCII and in s;
	// otherwise runes is the truth and s is a copy of it unless dirty.
	Str struct {
		s      string
		runes  []rune
		fill   int // the fill pointer, or noFill
		dirty  bool
		frozen bool
		adjust bool
	}
	// A Package is the identity of a namespace; its tables live in the image.
	Package struct{ name string }
)

type (
	bignum struct{ n *big.Int }
	ratio  struct{ r *big.Rat }
	// array is a vector when dims is nil. Bits and other specialised arrays
	// differ only in what elem says and what may be stored.
	array struct {
		items  []Value
		dims   []int
		fill   int
		elem   Value // the upgraded element type: T, BIT
		frozen bool
		adjust bool
	}
	// instance is a structure, a condition or a standard object.
	instance struct {
		class  *class
		slots  []Value // nil for an unbound slot
		frozen bool
	}
	regex struct {
		src  string
		re   engine
		wide engine // for texts beyond ASCII; often the same
		size int    // instructions in the program
		cost uint64 // what a byte of text costs, in 1/32 steps
		far  bool   // it may look far beyond what it then matches
	}
	// multi stands for zero or several values on their way from a function to
	// its caller; the values themselves are in the thread.
	multi struct{}
	// box holds a variable that is both captured and assigned.
	box struct {
		v      Value
		frozen bool
	}
	// token is the identity of one entry into a block, tagbody, catch or
	// handler: the target of a non-local exit.
	token struct {
		dead bool
		tag  Value // for catch
	}
	marker struct{ name string }
)

func (Int) lispValue()       {}
func (Single) lispValue()    {}
func (Double) lispValue()    {}
func (Char) lispValue()      {}
func (*Symbol) lispValue()   {}
func (*Cons) lispValue()     {}
func (*Str) lispValue()      {}
func (*Package) lispValue()  {}
func (*bignum) lispValue()   {}
func (*ratio) lispValue()    {}
func (*array) lispValue()    {}
func (*table) lispValue()    {}
func (*instance) lispValue() {}
func (*regex) lispValue()    {}
func (*multi) lispValue()    {}
func (*box) lispValue()      {}
func (*token) lispValue()    {}
func (*marker) lispValue()   {}
func (*Function) lispValue() {}
func (*class) lispValue()    {}
func (*stream) lispValue()   {}
func (*restart) lispValue()  {}

const noFill = -1

// manyValues is what a node returns when it has other than one value.
var manyValues Value = &multi{}

// exiting is what a statement returns while a return-from or go is on its way
// to a block of the same activation.
var exiting Value = &marker{"exiting"}

const (
	minCached = -1024
	maxCached = 1 << 15
)

// smallInts keeps the usual integers boxed, so that counting does not allocate. The
// base image fills it: a process that never runs Lisp should not pay for it.
var smallInts []Value

func boxSmallInts() []Value {
	t := make([]Value, maxCached-minCached)
	for i := range t {
		t[i] = Int(i + minCached)
	}
	return t
}

func mkInt(n int64) Value {
	if i := uint64(n - minCached); i < uint64(len(smallInts)) {
		return smallInts[i]
	}
	return Int(n)
}

// mkBig takes ownership of n.
func mkBig(n *big.Int) Value {
	if n.IsInt64() {
		return mkInt(n.Int64())
	}
	return &bignum{n}
}

func mkRat(r *big.Rat) Value {
	if r.IsInt() {
		return mkBig(new(big.Int).Set(r.Num()))
	}
	return &ratio{r}
}

func mkBool(b bool) Value {
	if b {
		return symT
	}
	return Nil
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func newStr(s string) *Str {
	if isASCII(s) {
		return &Str{s: s, fill: noFill}
	}
	return &Str{s: s, runes: []rune(s), fill: noFill}
}

// text returns the string's contents.
func (s *Str) text() string {
	if s.dirty {
		s.s, s.dirty = string(s.live()), false
	}
	return s.s
}

func (s *Str) live() []rune {
	if s.fill != noFill {
		return s.runes[:s.fill]
	}
	return s.runes
}

func (s *Str) length() int {
	switch {
	case s.fill != noFill:
		return s.fill
	case s.runes != nil:
		return len(s.runes)
	}
	return len(s.s)
}

func (s *Str) at(i int) rune {
	if s.runes != nil {
		return s.runes[i]
	}
	return rune(s.s[i])
}

// slice returns characters from start to end, which must be in range.
func (s *Str) slice(start, end int) string {
	if s.runes != nil {
		return string(s.runes[start:end])
	}
	return s.s[start:end]
}

// edit makes the string ready for a change of its characters.
func (s *Str) edit() {
	if s.runes == nil {
		s.runes = []rune(s.s)
		if s.runes == nil {
			s.runes = []rune{}
		}
	}
	s.dirty = true
}

func newVector(items []Value) *array {
	return &array{items: items, fill: noFill, elem: symT}
}

// live returns the elements before the fill pointer.
func (a *array) live() []Value {
	if a.fill != noFill {
		return a.items[:a.fill]
	}
	return a.items
}

func cons(a, d Value) *Cons { return &Cons{a, d} }

// list builds a proper list without charging the meter: for code the compiler
// writes, whose size is bounded by the code it came from.
func list(items ...Value) Value { return listTo(Nil, items...) }

// listTo builds (items… . tail).
func listTo(tail Value, items ...Value) Value {
	for i := len(items) - 1; i >= 0; i-- {
		tail = cons(items[i], tail)
	}
	return tail
}

func car(v Value) Value {
	if c, ok := v.(*Cons); ok {
		return c.car
	}
	return Nil
}

func cdr(v Value) Value {
	if c, ok := v.(*Cons); ok {
		return c.cdr
	}
	return Nil
}

func isTrue(v Value) bool { return v != Value(Nil) }

// Name is the symbol's name, without its package.
func (s *Symbol) Name() string { return s.name }

func (s *Symbol) keyword() bool { return s.pkg == keywordPackage }
