package lisp

import "slices"

// arr returns the thread's view of an array.
func (th *Thread) arr(a *array) *array {
	if a.frozen {
		return th.current(a).(*array)
	}
	return a
}

func (th *Thread) arrToChange(a *array) *array {
	a = th.arr(a)
	if !a.frozen {
		return a
	}
	th.alloc(2 + len(a.items))
	c := *a
	c.items, c.frozen = slices.Clone(a.items), false
	th.thaw(a, &c)
	return &c
}

func (th *Thread) inst(x *instance) *instance {
	if x.frozen {
		return th.current(x).(*instance)
	}
	return x
}

func (th *Thread) instToChange(x *instance) *instance {
	x = th.inst(x)
	if !x.frozen {
		return x
	}
	c := th.newInstance(x.class)
	copy(c.slots, x.slots)
	th.thaw(x, c)
	return c
}

// boxToChange returns the thread's own version of a variable that a closure of the
// image shares with others.
func (th *Thread) boxToChange(b *box) *box {
	b = th.current(b).(*box)
	if !b.frozen {
		return b
	}
	th.alloc(2)
	own := &box{v: b.v}
	th.thaw(b, own)
	return own
}

func biMakeArray(th *Thread, a []Value) Value {
	var dims []int
	if c, ok := a[0].(*Cons); ok {
		for _, d := range th.items(c) {
			dims = append(dims, th.index(d))
		}
	} else if a[0] == Value(Nil) {
		dims = []int{}
	} else {
		dims = []int{th.index(a[0])}
	}
	n := 1
	for _, d := range dims {
		if d > 0 && n > (1<<40)/d {
			th.exhaust("cells")
		}
		n *= d
	}
	elem := Value(symT)
	if a[1] != nil {
		elem = a[1]
	}
	fill := noFill
	if a[4] != nil && isTrue(a[4]) {
		fill = n
		if a[4] != Value(symT) {
			fill = th.fillPointer(a[4], n)
		}
		if len(dims) != 1 {
			th.fail(classSimpleError, "only vectors can have fill pointers")
		}
	}
	adjust := a[5] != nil && isTrue(a[5])
	if len(dims) == 1 && th.isCharType(elem) {
		return th.makeString(n, a[2], a[3], fill, adjust)
	}
	th.alloc(1 + n)
	arr := &array{items: make([]Value, n), fill: fill, elem: symT, adjust: adjust}
	if len(dims) != 1 {
		arr.dims = dims
	}
	if elem == Value(symBit) || th.equal(elem, list(symUnsignedByte, Int(1))) {
		arr.elem = symBit
	}
	init := a[2]
	if init == nil {
		init = Int(0)
	}
	for i := range arr.items {
		arr.items[i] = init
	}
	if a[3] != nil {
		th.fillContents(arr.items, dims, a[3])
	}
	return arr
}

// fillPointer checks a fill pointer of a vector with room for n.
func (th *Thread) fillPointer(v Value, n int) int {
	i := th.index(v)
	if i > n {
		th.fail(classSimpleError, "fill pointer %d is beyond the end of a vector of %d", i, n)
	}
	return i
}

// isCharType reports whether an element type means characters.
func (th *Thread) isCharType(v Value) bool {
	switch v {
	case symCharacter, symBaseChar, symStandardChar:
		return true
	}
	return false
}

func (th *Thread) fillContents(items []Value, dims []int, contents Value) {
	if len(dims) == 0 {
		items[0] = contents
		return
	}
	parts := th.seq(contents)
	if len(parts) != dims[0] {
		th.fail(classSimpleError, "malformed :INITIAL-CONTENTS: want %d elements, found %d", dims[0], len(parts))
	}
	if len(dims) == 1 {
		copy(items, parts)
		return
	}
	size := len(items) / max(dims[0], 1)
	for i, p := range parts {
		th.fillContents(items[i*size:(i+1)*size], dims[1:], p)
	}
}

func (th *Thread) makeString(n int, init, contents Value, fill int, adjust bool) Value {
	th.alloc(1 + n/4)
	c := rune(0)
	if init != nil {
		ch, ok := init.(Char)
		if !ok {
			th.typeError(init, symCharacter)
		}
		c = rune(ch)
	}
	s := &Str{runes: make([]rune, n), fill: fill, adjust: adjust, dirty: true}
	for i := range s.runes {
		s.runes[i] = c
	}
	if contents != nil {
		for i, x := range th.seq(contents) {
			if ch, ok := x.(Char); ok && i < n {
				s.runes[i] = rune(ch)
			}
		}
	}
	return s
}

// offset turns subscripts into an index.
func (th *Thread) offset(a *array, subs []Value) int {
	if a.dims == nil {
		if len(subs) != 1 {
			th.fail(classProgramError, "wrong number of subscripts: %d", len(subs))
		}
		return th.inRange(subs[0], len(a.items))
	}
	if len(subs) != len(a.dims) {
		th.fail(classProgramError, "wrong number of subscripts: %d", len(subs))
	}
	i := 0
	for k, s := range subs {
		i = i*a.dims[k] + th.inRange(s, a.dims[k])
	}
	return i
}

func biAref(th *Thread, a []Value) Value {
	switch v := a[0].(type) {
	case *array:
		v = th.arr(v)
		return v.items[th.offset(v, a[1:])]
	case *Str:
		if len(a) != 2 {
			th.fail(classProgramError, "wrong number of subscripts: %d", len(a)-1)
		}
		n := v.length()
		if v.runes != nil {
			n = len(v.runes)
		}
		return Char(v.at(th.inRange(a[1], n)))
	}
	th.typeError(a[0], symArray)
	return nil
}

func biAref1(th *Thread, x, i Value) Value {
	if v, ok := x.(*array); ok && v.dims == nil {
		v = th.arr(v)
		return v.items[th.inRange(i, len(v.items))]
	}
	return biAref(th, []Value{x, i})
}

func biChar(th *Thread, x, i Value) Value {
	s, ok := x.(*Str)
	if !ok {
		th.typeError(x, symString)
	}
	return Char(s.at(th.inRange(i, s.length())))
}

// setAref stores into a vector, array or string.
func (th *Thread) setAref(x Value, subs []Value, val Value) {
	switch v := x.(type) {
	case *array:
		v = th.arrToChange(v)
		if v.elem == Value(symBit) && val != Value(Int(0)) && val != Value(Int(1)) {
			th.typeError(val, symBit)
		}
		v.items[th.offset(v, subs)] = val
		return
	case *Str:
		c, ok := val.(Char)
		if !ok {
			th.typeError(val, symCharacter)
		}
		if len(subs) != 1 {
			th.fail(classProgramError, "wrong number of subscripts: %d", len(subs))
		}
		th.editable(v)
		v.runes[th.inRange(subs[0], len(v.runes))] = rune(c)
		return
	}
	th.typeError(x, symArray)
}

// editable makes ready to change the characters of a string.
func (th *Thread) editable(s *Str) {
	if s.frozen {
		th.fail(classSimpleError, "attempt to modify a string of the loaded image: copy it first")
	}
	if s.runes == nil {
		th.alloc(len(s.s) / 4)
	}
	if !s.dirty {
		th.step(uint64(1 + s.length()/64))
	}
	s.edit()
}

func biVectorPush(extend bool) func(*Thread, []Value) Value {
	return func(th *Thread, a []Value) Value {
		switch v := a[1].(type) {
		case *array:
			return th.pushArray(v, a[0], extend)
		case *Str:
			return th.pushChar(v, a[0], extend)
		}
		th.typeError(a[1], symVector)
		return nil
	}
}

func (th *Thread) pushArray(x *array, val Value, extend bool) Value {
	v := th.arrToChange(x)
	if v.fill == noFill {
		th.typeError(x, list(symAnd, symVector, list(symSatisfies, symHasFill)))
	}
	if v.fill == len(v.items) {
		if !extend {
			return Nil
		}
		th.alloc(1 + len(v.items))
		grown := make([]Value, max(4, 2*len(v.items)))
		copy(grown, v.items)
		for i := len(v.items); i < len(grown); i++ {
			grown[i] = Int(0)
		}
		v.items = grown
	}
	v.items[v.fill] = val
	v.fill++
	return mkInt(int64(v.fill - 1))
}

func (th *Thread) pushChar(v *Str, val Value, extend bool) Value {
	c, ok := val.(Char)
	if !ok {
		th.typeError(val, symCharacter)
	}
	if v.fill == noFill {
		th.typeError(v, list(symAnd, symVector, list(symSatisfies, symHasFill)))
	}
	th.editable(v)
	if v.fill == len(v.runes) {
		if !extend {
			return Nil
		}
		th.alloc(1 + len(v.runes)/4)
		grown := make([]rune, max(4, 2*len(v.runes)))
		copy(grown, v.runes)
		v.runes = grown
	}
	v.runes[v.fill] = rune(c)
	v.fill++
	return mkInt(int64(v.fill - 1))
}

func biVectorPop(th *Thread, x Value) Value {
	switch v := x.(type) {
	case *array:
		v = th.arrToChange(v)
		if v.fill > 0 {
			v.fill--
			return v.items[v.fill]
		}
		if v.fill == 0 {
			th.fail(classSimpleError, "There is nothing left to pop.")
		}
	case *Str:
		if v.fill > 0 {
			th.editable(v)
			v.fill--
			return Char(v.runes[v.fill])
		}
	}
	th.typeError(x, list(symAnd, symVector, list(symSatisfies, symHasFill)))
	return nil
}

func biFillPointer(th *Thread, x Value) Value {
	switch v := x.(type) {
	case *array:
		if v = th.arr(v); v.fill != noFill {
			return mkInt(int64(v.fill))
		}
	case *Str:
		if v.fill != noFill {
			return mkInt(int64(v.fill))
		}
	}
	th.typeError(x, list(symAnd, symVector, list(symSatisfies, symHasFill)))
	return nil
}

func biSetFillPointer(th *Thread, a []Value) Value {
	n := th.index(a[1])
	switch v := a[0].(type) {
	case *array:
		if v = th.arrToChange(v); v.fill != noFill && n <= len(v.items) {
			v.fill = n
			return a[1]
		}
	case *Str:
		if v.fill != noFill && n <= len(v.runes) {
			th.editable(v)
			v.fill = n
			return a[1]
		}
	}
	th.typeError(a[0], list(symAnd, symVector, list(symSatisfies, symHasFill)))
	return nil
}

func (th *Thread) dimensions(x Value) []int {
	switch v := x.(type) {
	case *array:
		v = th.arr(v)
		if v.dims != nil {
			return v.dims
		}
		return []int{len(v.items)}
	case *Str:
		if v.runes != nil {
			return []int{len(v.runes)}
		}
		return []int{len(v.s)}
	}
	th.typeError(x, symArray)
	return nil
}

func biAdjustArray(th *Thread, a []Value) Value {
	v, ok := a[0].(*array)
	if !ok {
		if s, ok := a[0].(*Str); ok {
			return th.adjustString(s, a)
		}
		th.typeError(a[0], symArray)
	}
	if c, ok := a[1].(*Cons); th.arr(v).dims != nil || ok && c.cdr != Value(Nil) {
		th.fail(classSimpleError, "adjust-array: only vectors are adjusted here")
	}
	v = th.arrToChange(v)
	n := th.index(firstOr(a[1]))
	th.alloc(n)
	grown := make([]Value, n)
	init := a[3]
	if init == nil {
		init = Int(0)
	}
	for i := range grown {
		grown[i] = init
	}
	copy(grown, v.items)
	v.items = grown
	if a[4] != nil {
		th.fillContents(v.items, []int{n}, a[4])
	}
	if v.fill != noFill {
		v.fill = min(v.fill, n)
		if a[5] != nil && isTrue(a[5]) {
			v.fill = n
			if a[5] != Value(symT) {
				v.fill = th.fillPointer(a[5], n)
			}
		}
	}
	return a[0]
}

func (th *Thread) adjustString(s *Str, a []Value) Value {
	n := th.index(firstOr(a[1]))
	th.alloc(n / 4)
	th.editable(s)
	grown := make([]rune, n)
	if c, ok := a[3].(Char); ok {
		for i := range grown {
			grown[i] = rune(c)
		}
	}
	copy(grown, s.runes)
	s.runes = grown
	if s.fill != noFill {
		s.fill = min(s.fill, n)
	}
	return s
}

func firstOr(v Value) Value {
	if c, ok := v.(*Cons); ok {
		return c.car
	}
	return v
}

var arrayPrims = []prim{
	{usage: "(make-array dimensions &key element-type initial-element initial-contents fill-pointer adjustable displaced-to)", doc: "a new array", fn: biMakeArray},
	{usage: "(vector &rest objects)", doc: "a new vector", fn: func(th *Thread, a []Value) Value { th.alloc(1 + len(a)); return newVector(slices.Clone(a)) }},
	{usage: "(aref array &rest subscripts)", doc: "an element", fn: biAref, fn2: biAref1},
	{usage: "(svref vector index)", doc: "an element", fn2: biAref1},
	{usage: "(bit array index)", doc: "an element of a bit array", fn2: biAref1},
	{usage: "(sbit array index)", doc: "an element of a bit array", fn2: biAref1},
	{usage: "(char string index)", doc: "a character", fn2: biChar},
	{usage: "(schar string index)", doc: "a character", fn2: biChar},
	{usage: "(row-major-aref array index)", doc: "an element by its place in memory", fn2: func(th *Thread, x, i Value) Value {
		if v, ok := x.(*array); ok {
			v = th.arr(v)
			return v.items[th.inRange(i, len(v.items))]
		}
		return biChar(th, x, i)
	}},
	{usage: "(passepartout-kernel:set-aref array value &rest subscripts)", doc: "set an element", fn: func(th *Thread, a []Value) Value {
		th.setAref(a[0], a[2:], a[1])
		return a[1]
	}},
	{usage: "(vector-push object vector)", doc: "add at the fill pointer, NIL if full", fn: biVectorPush(false)},
	{usage: "(vector-push-extend object vector &optional extension)", doc: "add at the fill pointer, growing", fn: biVectorPush(true)},
	{usage: "(vector-pop vector)", doc: "take the last element off", fn1: biVectorPop},
	{usage: "(fill-pointer vector)", doc: "the fill pointer", fn1: biFillPointer},
	{usage: "(passepartout-kernel:set-fill-pointer vector value)", doc: "set the fill pointer", fn: biSetFillPointer},
	{usage: "(adjust-array array dimensions &key element-type initial-element initial-contents fill-pointer displaced-to)", doc: "change the size of a vector", fn: biAdjustArray},
	{usage: "(array-dimensions array)", doc: "the dimensions", fn1: func(th *Thread, x Value) Value {
		b := listBuilder{th: th}
		for _, d := range th.dimensions(x) {
			b.add(mkInt(int64(d)))
		}
		return b.end(Nil)
	}},
	{usage: "(array-dimension array axis)", doc: "one dimension", fn2: func(th *Thread, x, i Value) Value {
		d := th.dimensions(x)
		return mkInt(int64(d[th.inRange(i, len(d))]))
	}},
	{usage: "(array-rank array)", doc: "number of dimensions", fn1: func(th *Thread, x Value) Value { return mkInt(int64(len(th.dimensions(x)))) }},
	{usage: "(array-total-size array)", doc: "number of elements", fn1: func(th *Thread, x Value) Value {
		n := 1
		for _, d := range th.dimensions(x) {
			n *= d
		}
		return mkInt(int64(n))
	}},
	{usage: "(array-in-bounds-p array &rest subscripts)", doc: "true if the subscripts are valid", fn: func(th *Thread, a []Value) Value {
		d := th.dimensions(a[0])
		for i, s := range a[1:] {
			n, ok := s.(Int)
			if !ok || i >= len(d) || n < 0 || int(n) >= d[i] {
				return Nil
			}
		}
		return symT
	}},
	{usage: "(array-has-fill-pointer-p array)", doc: "true if there is a fill pointer", fn1: func(th *Thread, x Value) Value {
		th.dimensions(x)
		switch v := x.(type) {
		case *array:
			return mkBool(v.fill != noFill)
		case *Str:
			return mkBool(v.fill != noFill)
		}
		return Nil
	}},
	{usage: "(adjustable-array-p array)", doc: "true if the array was made adjustable", fn1: func(th *Thread, x Value) Value {
		th.dimensions(x)
		switch v := x.(type) {
		case *array:
			return mkBool(v.adjust || v.fill != noFill)
		case *Str:
			return mkBool(v.adjust || v.fill != noFill)
		}
		return Nil
	}},
	{usage: "(array-element-type array)", doc: "the type elements have", fn1: func(th *Thread, x Value) Value {
		th.dimensions(x)
		if v, ok := x.(*array); ok {
			return v.elem
		}
		return symCharacter
	}},
}
