// Package sexp reads, prints and digests S-expressions and property lists.
//
// Everything that moves in Passepartout is a property list: frames, actions,
// rules, journal entries, skill code. This package is the one place that turns
// bytes into such values and back. It never evaluates anything.
//
// The central types:
//
//   - [Value] is a closed sum of immutable data: [Symbol], [Keyword], [String],
//     [Int], [Float], [Ratio], [Char], [List] and [Vector]. Values may be shared
//     between goroutines and compared with [Equal].
//   - [Plist] is a list checked to be key/value pairs with distinct keyword keys.
//   - [Reader] reads values from bytes within [Limits]; its errors carry a
//     position, and say whether more input could have helped.
//   - [Digest] is the SHA-256 of a value's canonical, length-prefixed encoding.
//
// The rule a newcomer will break: there is no separate NIL. The symbol NIL and
// the empty list are one value, the zero [List], printed as NIL.
package sexp

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
)

// A Value is one immutable datum. The set of implementations is closed.
//
//sumtype:decl
type Value interface {
	// String is the canonical printed form; reading it gives an equal value.
	String() string
	isValue()
}

// A Symbol is a name, folded to upper case by the reader unless it was written
// between bars. Pkg is the package prefix, folded likewise: "" for none, "#" for
// an uninterned symbol.
type Symbol struct{ Pkg, Name string }

// A Keyword is a self-evaluating name, held without its colon.
type Keyword string

// A String is text. It is valid UTF-8 when it comes from a [Reader].
type String string

// An Int is an integer of any size. The zero Int is 0.
type Int struct {
	small int64
	big   *big.Int // nil while the number fits small; never shared with callers
}

// A Float is a double.
type Float float64

// A Ratio is an exact fraction in lowest terms that is not an integer.
type Ratio struct{ rat *big.Rat }

// A Char is one Unicode code point.
type Char rune

// A List is zero or more items and, when it is dotted, a tail that is not a
// list. The zero List is NIL.
type List struct {
	items []Value
	tail  Value
}

// A Vector is a one-dimensional array, written #(…).
type Vector struct{ items []Value }

func (Symbol) isValue()  {}
func (Keyword) isValue() {}
func (String) isValue()  {}
func (Int) isValue()     {}
func (Float) isValue()   {}
func (Ratio) isValue()   {}
func (Char) isValue()    {}
func (List) isValue()    {}
func (Vector) isValue()  {}

// Nil is the empty list, which is also the symbol NIL.
var Nil = List{}

// True is the symbol T.
var True = Symbol{Name: "T"}

// Sym returns the symbol of that name in no package.
func Sym(name string) Symbol { return Symbol{Name: name} }

// Bool returns T or NIL.
func Bool(b bool) Value {
	if b {
		return True
	}
	return Nil
}

// IsNil reports whether v is NIL, by either of its names, or absent.
func IsNil(v Value) bool {
	switch v := v.(type) {
	case nil:
		return true
	case List:
		return len(v.items) == 0
	case Symbol:
		return v.Name == "NIL" && v.Pkg == ""
	}
	return false
}

// NewInt returns n as an Int.
func NewInt(n int64) Int { return Int{small: n} }

// NewBigInt returns a copy of n as an Int.
func NewBigInt(n *big.Int) Int {
	if n.IsInt64() {
		return Int{small: n.Int64()}
	}
	return Int{big: new(big.Int).Set(n)}
}

// Int64 returns the number, and whether it fits.
func (i Int) Int64() (int64, bool) { return i.small, i.big == nil }

// Big returns the number as a fresh big.Int.
func (i Int) Big() *big.Int {
	if i.big != nil {
		return new(big.Int).Set(i.big)
	}
	return big.NewInt(i.small)
}

// NewRatio returns num/den, which is an [Int] when the division is exact.
// A zero den is an error.
func NewRatio(num, den *big.Int) (Value, error) {
	if den.Sign() == 0 {
		return nil, fmt.Errorf("ratio %s/0: want a denominator other than zero", num)
	}
	r := new(big.Rat).SetFrac(num, den)
	if r.IsInt() {
		return NewBigInt(r.Num()), nil
	}
	return Ratio{r}, nil
}

// Rat returns the fraction as a fresh big.Rat.
func (r Ratio) Rat() *big.Rat { return new(big.Rat).Set(r.rat) }

// NewList returns the proper list of items. The slice is copied.
func NewList(items ...Value) List {
	if len(items) == 0 {
		return Nil
	}
	return List{items: slices.Clone(items)}
}

// NewDotted returns (items… . tail). A list as tail is spliced, as in Lisp.
func NewDotted(items []Value, tail Value) List {
	if len(items) == 0 || IsNil(tail) {
		return NewList(items...)
	}
	if t, ok := tail.(List); ok {
		return List{items: slices.Concat(items, t.items), tail: t.tail}
	}
	return List{items: slices.Clone(items), tail: tail}
}

// Len is the number of items before the tail.
func (l List) Len() int { return len(l.items) }

// At returns item i; it panics when i is out of range.
func (l List) At(i int) Value { return l.items[i] }

// Items returns the items before the tail. The caller must not change them.
func (l List) Items() []Value { return l.items }

// Tail returns the tail of a dotted list, nil for a proper one.
func (l List) Tail() Value { return l.tail }

// NewVector returns #(items…). The slice is copied.
func NewVector(items ...Value) Vector { return Vector{slices.Clone(items)} }

// Items returns the elements. The caller must not change them.
func (v Vector) Items() []Value { return v.items }

// Strings returns a list of strings.
func Strings(ss []string) List {
	items := make([]Value, len(ss))
	for i, s := range ss {
		items[i] = String(s)
	}
	return List{items: items}
}

// A Pair is one key of a property list with its value.
type Pair struct {
	Key   Keyword
	Value Value
}

// A Plist is an immutable property list: keyword keys, each at most once. The
// zero Plist is empty.
type Plist struct{ pairs []Pair }

// AsPlist checks that l is a property list. A key given twice is an error, not
// a choice: the two readers of an ambiguous message might choose differently.
func AsPlist(l List) (Plist, error) {
	if l.tail != nil {
		return Plist{}, fmt.Errorf("property list ends in %s: want key and value pairs", brief(l.tail))
	}
	if len(l.items)%2 != 0 {
		return Plist{}, fmt.Errorf("property list has %d items: want key and value pairs", len(l.items))
	}
	pairs := make([]Pair, 0, len(l.items)/2)
	for i := 0; i < len(l.items); i += 2 {
		k, ok := l.items[i].(Keyword)
		if !ok {
			return Plist{}, fmt.Errorf("property list has %s in place of a key: want a keyword", brief(l.items[i]))
		}
		pairs = append(pairs, Pair{k, l.items[i+1]})
	}
	if err := checkKeys(pairs); err != nil {
		return Plist{}, err
	}
	return Plist{pairs}, nil
}

// NewPlist returns the property list of those pairs in that order.
func NewPlist(pairs ...Pair) (Plist, error) {
	if err := checkKeys(pairs); err != nil {
		return Plist{}, err
	}
	return Plist{slices.Clone(pairs)}, nil
}

// checkKeys refuses a key given twice.
func checkKeys(pairs []Pair) error {
	const few = 16 // below this, comparing all with all is cheaper than sorting
	if len(pairs) <= few {
		for i, p := range pairs {
			for _, q := range pairs[:i] {
				if p.Key == q.Key {
					return fmt.Errorf("property list has the key %s twice", brief(p.Key))
				}
			}
		}
		return nil
	}
	keys := make([]Keyword, len(pairs))
	for i, p := range pairs {
		keys[i] = p.Key
	}
	slices.Sort(keys)
	for i := 1; i < len(keys); i++ {
		if keys[i] == keys[i-1] {
			return fmt.Errorf("property list has the key %s twice", brief(keys[i]))
		}
	}
	return nil
}

// P builds a property list from literal pairs written in the code: key, value,
// key, value. Keys are Keywords; a Go string, int or bool stands for the value
// it means. It panics on anything else, since that is a mistake in the program.
func P(kv ...any) Plist {
	if len(kv)%2 != 0 {
		panic("sexp.P: odd number of arguments")
	}
	pairs := make([]Pair, 0, len(kv)/2)
	for i := 0; i < len(kv); i += 2 {
		pairs = append(pairs, Pair{kv[i].(Keyword), literal(kv[i+1])})
	}
	p, err := NewPlist(pairs...)
	if err != nil {
		panic("sexp.P: " + err.Error())
	}
	return p
}

func literal(x any) Value {
	switch x := x.(type) {
	case Plist:
		return x.List()
	case Value:
		return x
	case string:
		return String(x)
	case int:
		return NewInt(int64(x))
	case int64:
		return NewInt(x)
	case bool:
		return Bool(x)
	case []string:
		return Strings(x)
	}
	panic(fmt.Sprintf("sexp.P: no value for a %T", x))
}

// Get returns the value of a key.
func (p Plist) Get(k Keyword) (Value, bool) {
	for _, e := range p.pairs {
		if e.Key == k {
			return e.Value, true
		}
	}
	return nil, false
}

// Text returns the string under k, or "" when it is absent or no string.
func (p Plist) Text(k Keyword) string {
	v, _ := p.Get(k)
	s, _ := v.(String)
	return string(s)
}

// Word returns the keyword under k, or "" when it is absent or no keyword.
func (p Plist) Word(k Keyword) Keyword {
	v, _ := p.Get(k)
	w, _ := v.(Keyword)
	return w
}

// Flag says whether k is there and not nil.
func (p Plist) Flag(k Keyword) bool {
	v, ok := p.Get(k)
	return ok && !IsNil(v)
}

// Number returns the integer under k, or 0 when it is absent, no integer or too
// large for one.
func (p Plist) Number(k Keyword) int {
	v, _ := p.Get(k)
	i, _ := v.(Int)
	n, _ := i.Int64()
	return int(n)
}

// Sub returns the property list under k; it is empty when absent or not one.
func (p Plist) Sub(k Keyword) Plist {
	v, _ := p.Get(k)
	l, ok := v.(List)
	if !ok {
		return Plist{}
	}
	sub, err := AsPlist(l)
	if err != nil {
		return Plist{}
	}
	return sub
}

// With returns a copy in which k has value v: replaced in its place, or added
// at the end.
func (p Plist) With(k Keyword, v Value) Plist {
	pairs := slices.Clone(p.pairs)
	if i := slices.IndexFunc(pairs, func(e Pair) bool { return e.Key == k }); i >= 0 {
		pairs[i].Value = v
		return Plist{pairs}
	}
	return Plist{append(pairs, Pair{k, v})}
}

// Without returns a copy that lacks k.
func (p Plist) Without(k Keyword) Plist {
	return Plist{slices.DeleteFunc(slices.Clone(p.pairs), func(e Pair) bool { return e.Key == k })}
}

// Len is the number of pairs.
func (p Plist) Len() int { return len(p.pairs) }

// Pairs returns the pairs in order. The caller must not change them.
func (p Plist) Pairs() []Pair { return p.pairs }

// List returns the property list as a plain list.
func (p Plist) List() List {
	items := make([]Value, 0, 2*len(p.pairs))
	for _, e := range p.pairs {
		items = append(items, e.Key, e.Value)
	}
	return List{items: items}
}

// Sorted returns the property list with its keys in alphabetical order, for
// digests that must not depend on the order a peer wrote them in.
func (p Plist) Sorted() Plist {
	pairs := slices.Clone(p.pairs)
	slices.SortFunc(pairs, func(a, b Pair) int { return cmp.Compare(a.Key, b.Key) })
	return Plist{pairs}
}

// String is the canonical printed form.
func (p Plist) String() string { return p.List().String() }
