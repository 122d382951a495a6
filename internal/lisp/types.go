package lisp

import (
	"math"
	"math/big"
	"slices"
)

// typep reports whether v is of a type.
func (th *Thread) typep(v, typ Value) bool {
	th.step(1)
	switch t := typ.(type) {
	case *Symbol:
		if ok, known := th.typepName(v, t); known {
			return ok
		}
		c := th.cell(t)
		if c.class != nil {
			return th.isA(v, c.class)
		}
		if c.typ != nil {
			th.enter(1)
			defer th.leave(1)
			return th.typep(v, th.expandType(c.typ, list(t)))
		}
		if t.pkg != nil && th.pkgTable(t.pkg).library { // nothing here is of a type of a library that is not
			return false
		}
		th.fail(classSimpleError, "unknown type specifier: %s", th.show(typ))
	case *Cons:
		return th.typepCompound(v, t)
	case *class:
		return th.isA(v, t)
	}
	th.fail(classSimpleError, "bad thing to be a type specifier: %s", th.show(typ))
	return false
}

// isA reports whether a value is of a class.
func (th *Thread) isA(v Value, k *class) bool {
	c := th.classOf(v)
	th.step(uint64(len(c.order) / 16))
	return c.is(k)
}

func (th *Thread) expandType(fn *Function, form Value) Value {
	th.enter(1)
	defer th.leave(1)
	return th.call(fn, form, Nil)
}

// typepName decides the types with a name of their own.
func (th *Thread) typepName(v Value, t *Symbol) (is, known bool) {
	if t.pkg != clPackage {
		return false, false
	}
	r := rungOf(v)
	switch t.name {
	case "T":
		return true, true
	case "NIL":
		return false, true
	case "NULL":
		return v == Value(Nil), true
	case "BOOLEAN":
		return v == Value(Nil) || v == Value(symT), true
	case "NUMBER", "REAL":
		return r != rungNone, true
	case "INTEGER", "SIGNED-BYTE":
		return r == rungInt || r == rungBig, true
	case "RATIONAL":
		return r >= rungInt && r <= rungRatio, true
	case "RATIO":
		return r == rungRatio, true
	case "FLOAT":
		return r >= rungSingle, true
	case "SINGLE-FLOAT", "SHORT-FLOAT":
		return r == rungSingle, true
	case "DOUBLE-FLOAT", "LONG-FLOAT":
		return r == rungDouble, true
	case "COMPLEX":
		return false, true
	case "FIXNUM":
		n, ok := v.(Int)
		return ok && n >= -1<<62 && n < 1<<62, true
	case "BIGNUM":
		n, ok := v.(Int)
		return r == rungBig || ok && (n < -1<<62 || n >= 1<<62), true
	case "BIT":
		return v == Value(Int(0)) || v == Value(Int(1)), true
	case "UNSIGNED-BYTE":
		return (r == rungInt || r == rungBig) && th.sign(v) >= 0, true
	}
	return th.typepObject(v, t)
}

// typepObject decides the types of objects other than numbers.
func (th *Thread) typepObject(v Value, t *Symbol) (is, known bool) {
	switch t.name {
	case "SYMBOL":
		_, is = v.(*Symbol)
	case "KEYWORD":
		s, ok := v.(*Symbol)
		is = ok && s.keyword()
	case "CONS":
		_, is = v.(*Cons)
	case "LIST":
		_, is = v.(*Cons)
		is = is || v == Value(Nil)
	case "ATOM":
		_, is = v.(*Cons)
		is = !is
	case "CHARACTER", "BASE-CHAR", "EXTENDED-CHAR":
		c, ok := v.(Char)
		is = ok && (t.name == "CHARACTER" || (c < 128) == (t.name == "BASE-CHAR"))
	case "STANDARD-CHAR":
		c, ok := v.(Char)
		is = ok && (c >= 32 && c < 127 || c == '\n')
	case "STRING":
		_, is = v.(*Str)
	case "SIMPLE-STRING":
		s, ok := v.(*Str)
		is = ok && s.fill == noFill && !s.adjust
	case "BASE-STRING", "SIMPLE-BASE-STRING":
		is = false
	case "SEQUENCE":
		switch x := v.(type) {
		case *Cons, *Str:
			is = true
		case *array:
			is = x.dims == nil
		default:
			is = v == Value(Nil)
		}
	case "VECTOR", "ARRAY", "SIMPLE-VECTOR", "BIT-VECTOR", "SIMPLE-BIT-VECTOR", "SIMPLE-ARRAY":
		is = th.typepArray(v, t.name)
	case "HASH-TABLE":
		_, is = v.(*table)
	case "FUNCTION", "COMPILED-FUNCTION":
		_, is = v.(*Function)
	case "STANDARD-GENERIC-FUNCTION", "GENERIC-FUNCTION":
		f, ok := v.(*Function)
		is = ok && f.generic != nil
	case "PACKAGE":
		_, is = v.(*Package)
	case "STREAM":
		_, is = v.(*stream)
	case "STRING-STREAM":
		s, ok := v.(*stream)
		is = ok && !s.std && !s.null
	case "RESTART":
		_, is = v.(*restart)
	case "CLASS", "STANDARD-CLASS", "STRUCTURE-CLASS":
		_, is = v.(*class)
	case "PATHNAME", "RANDOM-STATE", "READTABLE":
		is = false
	default:
		return false, false
	}
	return is, true
}

func (th *Thread) typepArray(v Value, name string) bool {
	switch x := v.(type) {
	case *Str:
		return name == "VECTOR" || name == "ARRAY" || name == "SIMPLE-ARRAY" && x.fill == noFill && !x.adjust
	case *array:
		plain := x.fill == noFill && !x.adjust
		bits := x.elem == Value(symBit)
		switch name {
		case "ARRAY":
			return true
		case "SIMPLE-ARRAY":
			return plain
		case "VECTOR":
			return x.dims == nil
		case "SIMPLE-VECTOR":
			return x.dims == nil && plain && !bits
		case "BIT-VECTOR":
			return x.dims == nil && bits
		case "SIMPLE-BIT-VECTOR":
			return x.dims == nil && plain && bits
		}
	}
	return false
}

func (th *Thread) typepCompound(v Value, t *Cons) bool {
	th.enter(1)
	defer th.leave(1)
	head, ok := t.car.(*Symbol)
	if !ok {
		th.fail(classSimpleError, "bad thing to be a type specifier: %s", th.show(t))
	}
	args := th.items(t.cdr)
	switch head.name {
	case "OR":
		for _, x := range args {
			if th.typep(v, x) {
				return true
			}
		}
		return false
	case "AND":
		for _, x := range args {
			if !th.typep(v, x) {
				return false
			}
		}
		return true
	case "NOT":
		return len(args) == 1 && !th.typep(v, args[0])
	case "MEMBER":
		for _, x := range args {
			if th.eql(v, x) {
				return true
			}
		}
		return false
	case "EQL":
		return len(args) == 1 && th.eql(v, args[0])
	case "SATISFIES":
		return len(args) == 1 && isTrue(th.call1(th.fn(args[0]), v))
	case "VALUES":
		return len(args) == 0 || th.typep(v, args[0])
	case "CONS":
		c, ok := v.(*Cons)
		return ok && (len(args) < 1 || th.anyType(c.car, args[0])) && (len(args) < 2 || th.anyType(c.cdr, args[1]))
	}
	if c := th.cell(head); c.typ != nil {
		return th.typep(v, th.expandType(c.typ, t))
	}
	return th.typepSized(v, head, args)
}

func (th *Thread) anyType(v, t Value) bool { return t == Value(symStar) || th.typep(v, t) }

// typepSized decides types with bounds or dimensions.
func (th *Thread) typepSized(v Value, head *Symbol, args []Value) bool {
	arg := func(i int) Value {
		if i < len(args) {
			return args[i]
		}
		return symStar
	}
	switch head.name {
	case "INTEGER", "REAL", "RATIONAL", "FLOAT", "SINGLE-FLOAT", "DOUBLE-FLOAT", "NUMBER":
		return th.typep(v, head) && th.within(v, arg(0), arg(1))
	case "MOD":
		return th.typep(v, symInteger) && th.sign(v) >= 0 && th.compare(v, arg(0)) < 0
	case "UNSIGNED-BYTE", "SIGNED-BYTE":
		n := bigOf(v)
		if n == nil || head.name == "UNSIGNED-BYTE" && n.Sign() < 0 {
			return false
		}
		bits, ok := arg(0).(Int)
		if !ok {
			return true
		}
		if head.name == "UNSIGNED-BYTE" {
			return n.BitLen() <= int(bits)
		}
		m := n
		if m.Sign() < 0 {
			m = new(big.Int).Not(n)
		}
		return m.BitLen() < int(bits)
	case "STRING", "SIMPLE-STRING", "BIT-VECTOR", "SIMPLE-VECTOR":
		return th.typep(v, head) && th.dimsMatch(v, arg(0))
	case "VECTOR":
		return th.typep(v, head) && th.elementsAre(v, arg(0)) && th.dimsMatch(v, arg(1))
	case "ARRAY", "SIMPLE-ARRAY":
		return th.typep(v, head) && th.elementsAre(v, arg(0)) && th.dimsMatch(v, arg(1))
	case "FUNCTION":
		return th.typep(v, head)
	}
	th.fail(classSimpleError, "unknown type specifier: %s", th.show(head))
	return false
}

// within checks bounds; (n) excludes n.
func (th *Thread) within(v, lo, hi Value) bool {
	if lo != Value(symStar) {
		if c, ok := lo.(*Cons); ok {
			if th.compare(v, c.car) <= 0 {
				return false
			}
		} else if th.compare(v, lo) < 0 {
			return false
		}
	}
	if hi != Value(symStar) {
		if c, ok := hi.(*Cons); ok {
			return th.compare(v, c.car) < 0
		}
		return th.compare(v, hi) <= 0
	}
	return true
}

func (th *Thread) elementsAre(v, elem Value) bool {
	if elem == Value(symStar) {
		return true
	}
	switch x := v.(type) {
	case *Str:
		return th.isCharType(elem)
	case *array:
		return x.elem == elem
	}
	return false
}

func (th *Thread) dimsMatch(v, want Value) bool {
	dims := th.dimensions(v)
	switch w := want.(type) {
	case Int:
		if _, isArray := v.(*array); isArray && len(dims) != 1 {
			return len(dims) == int(w)
		}
		return len(dims) == 1 && dims[0] == int(w)
	case *Cons:
		ws := th.items(w)
		if len(ws) != len(dims) {
			return false
		}
		for i, x := range ws {
			if x != Value(symStar) && x != Value(Int(dims[i])) {
				return false
			}
		}
		return true
	}
	return true
}

// classOf returns the class methods are chosen by.
func (th *Thread) classOf(v Value) *class {
	switch v := v.(type) {
	case *instance:
		return v.class
	case Int, *bignum:
		if th.typep(v, symFixnum) {
			return classFixnum
		}
		return classBignum
	case *ratio:
		return classRatio
	case Single:
		return classSingle
	case Double:
		return classDouble
	case Char:
		return classCharacter
	case *Symbol:
		if v == Nil {
			return classNull
		}
		if v.keyword() {
			return classKeyword
		}
		return classSymbol
	case *Cons:
		return classCons
	case *Str:
		return classString
	case *array:
		if v.dims != nil {
			return classArray
		}
		return classVector
	case *table:
		return classTable
	case *Function:
		return classFunction
	case *Package:
		return classPackage
	case *stream:
		return classStream
	case *class:
		return classClass
	}
	return classT
}

var (
	classNumber    = newClass(kindBuiltin, "NUMBER", nil, classT)
	classReal      = newClass(kindBuiltin, "REAL", nil, classNumber)
	classRational  = newClass(kindBuiltin, "RATIONAL", nil, classReal)
	classInteger   = newClass(kindBuiltin, "INTEGER", nil, classRational)
	classFixnum    = newClass(kindBuiltin, "FIXNUM", nil, classInteger)
	classBignum    = newClass(kindBuiltin, "BIGNUM", nil, classInteger)
	classRatio     = newClass(kindBuiltin, "RATIO", nil, classRational)
	classFloat     = newClass(kindBuiltin, "FLOAT", nil, classReal)
	classSingle    = newClass(kindBuiltin, "SINGLE-FLOAT", nil, classFloat)
	classDouble    = newClass(kindBuiltin, "DOUBLE-FLOAT", nil, classFloat)
	classCharacter = newClass(kindBuiltin, "CHARACTER", nil, classT)
	classSymbol    = newClass(kindBuiltin, "SYMBOL", nil, classT)
	classKeyword   = newClass(kindBuiltin, "KEYWORD", nil, classSymbol)
	classSequence  = newClass(kindBuiltin, "SEQUENCE", nil, classT)
	classList      = newClass(kindBuiltin, "LIST", nil, classSequence)
	classNull      = newClass(kindBuiltin, "NULL", nil, classSymbol, classList)
	classCons      = newClass(kindBuiltin, "CONS", nil, classList)
	classArray     = newClass(kindBuiltin, "ARRAY", nil, classT)
	classVector    = newClass(kindBuiltin, "VECTOR", nil, classArray, classSequence)
	classString    = newClass(kindBuiltin, "STRING", nil, classVector)
	classTable     = newClass(kindBuiltin, "HASH-TABLE", nil, classT)
	classFunction  = newClass(kindBuiltin, "FUNCTION", nil, classT)
	classPackage   = newClass(kindBuiltin, "PACKAGE", nil, classT)
	classStream    = newClass(kindBuiltin, "STREAM", nil, classT)
	classClass     = newClass(kindBuiltin, "CLASS", nil, classT)
)

func biTypeOf(th *Thread, x Value) Value {
	switch v := x.(type) {
	case Int:
		switch {
		case v == 0 || v == 1:
			return symBit
		case v < -1<<62 || v >= 1<<62:
			return th.bignumType(x)
		case v > 0:
			return list(symInteger, Int(0), Int(1<<62-1))
		}
		return symFixnum
	case *bignum:
		return th.bignumType(x)
	case *Str:
		if v.fill != noFill || v.adjust {
			return list(symAnd, list(symVector, symCharacter, Int(len(v.runes))), list(symNot, symSimpleArray))
		}
		return list(symSimpleArray, symCharacter, list(Int(v.length())))
	case *array:
		return th.arrayType(v)
	case *Symbol:
		switch {
		case v == Nil:
			return symNull
		case v == symT:
			return symBoolean
		case v.keyword():
			return symKeywordType
		}
		return symSymbol
	case Char:
		if v < 128 {
			return symStandardCharOr(v)
		}
		return symCharacter
	case *Function:
		if v.generic != nil {
			return symStandardGeneric
		}
		if v.code != nil && v.name == nil || v.code != nil {
			return symFunction
		}
		return symCompiledFunction
	}
	return th.classOf(x).name
}

func symStandardCharOr(c Char) Value {
	if c >= 32 && c < 127 || c == '\n' {
		return symStandardChar
	}
	return symBaseChar
}

func (th *Thread) bignumType(x Value) Value {
	if th.sign(x) > 0 {
		return list(symInteger, mkInt(1<<62))
	}
	return symBignum
}

func (th *Thread) arrayType(v *array) Value {
	dims := listBuilder{th: th}
	for _, d := range th.dimensions(v) {
		dims.add(Int(d))
	}
	d := dims.end(Nil)
	if v.dims == nil && v.elem == Value(symT) && v.fill == noFill && !v.adjust {
		return list(symSimpleVector, car(d))
	}
	if v.dims == nil && v.fill == noFill && !v.adjust {
		return list(symSimpleBitVector, car(d))
	}
	if v.dims == nil {
		return list(symAnd, list(symVector, v.elem, car(d)), list(symNot, symSimpleArray))
	}
	return list(symSimpleArray, v.elem, d)
}

func isStringType(t Value) bool {
	switch t {
	case symString, symSimpleString, symBaseString:
		return true
	}
	if c, ok := t.(*Cons); ok {
		if c.car == Value(symString) || c.car == Value(symSimpleString) {
			return true
		}
		if c.car == Value(symVector) || c.car == Value(symArray) || c.car == Value(symSimpleArray) {
			switch car(c.cdr) {
			case symCharacter, symBaseChar:
				return true
			}
		}
	}
	return false
}

// coerceSeq makes a sequence of a type.
func (th *Thread) coerceSeq(items []Value, t Value) Value {
	if isStringType(t) {
		return th.charsToString(items)
	}
	name := t
	if c, ok := t.(*Cons); ok {
		name = c.car
	}
	switch name {
	case symList, symCons:
		return th.newList(items, Nil)
	case symNull:
		if len(items) > 0 {
			th.typeError(th.newList(items, Nil), symNull)
		}
		return Nil
	case symVector, symSimpleVector, symArray, symSimpleArray, symSequence:
		th.alloc(1 + len(items))
		return newVector(append([]Value(nil), items...))
	case symBitVector, symSimpleBitVector:
		th.alloc(1 + len(items))
		a := newVector(append([]Value(nil), items...))
		a.elem = symBit
		return a
	}
	if s, ok := name.(*Symbol); ok {
		if fn := th.cell(s).typ; fn != nil {
			th.enter(1)
			defer th.leave(1)
			return th.coerceSeq(items, th.expandType(fn, list(s)))
		}
	}
	th.typeError(t, symSequence)
	return nil
}

func biCoerce(th *Thread, x, t Value) Value {
	switch t {
	case symT:
		return x
	case symFloat, symSingleFloat, symShortFloat:
		th.real(x)
		if t == Value(symFloat) && rungOf(x) >= rungSingle {
			return x
		}
		return th.single(singleOf(x))
	case symDoubleFloat, symLongFloat:
		th.real(x)
		return Double(floatOf(x))
	case symCharacter:
		if c, ok := x.(Char); ok {
			return c
		}
		if s := th.designated(x); s.length() == 1 {
			return Char(s.at(0))
		}
		th.typeError(x, symCharacter)
	case symFunction:
		if l, ok := x.(*Cons); ok && l.car == Value(symLambda) {
			return th.one(th.eval(list(symFunction, l), env{}))
		}
		return th.fn(x)
	}
	if th.typep(x, t) {
		return x
	}
	switch x.(type) {
	case *Cons, *Str, *array:
		return th.coerceSeq(th.seq(x), t)
	}
	if x == Value(Nil) {
		return th.coerceSeq(nil, t)
	}
	th.typeError(x, t)
	return nil
}

// subtypep answers for named types by their classes and for members, unions
// and ranges by cases; anything else is "not known".
func (th *Thread) subtypep(a, b Value) (is, sure bool) {
	th.step(1)
	th.enter(1)
	defer th.leave(1)
	if th.equal(a, b) || b == Value(symT) || a == Value(Nil) {
		return true, true
	}
	if ca, ok := a.(*Cons); ok {
		switch ca.car {
		case symOr:
			for _, x := range th.items(ca.cdr) {
				if is, sure := th.subtypep(x, b); !is {
					return false, sure
				}
			}
			return true, true
		case symMember, symEql:
			for _, x := range th.items(ca.cdr) {
				if !th.typep(x, b) {
					return false, true
				}
			}
			return true, true
		case symAnd:
			for _, x := range th.items(ca.cdr) {
				if is, _ := th.subtypep(x, b); is {
					return true, true
				}
			}
			return false, false
		}
	}
	if cb, ok := b.(*Cons); ok {
		switch cb.car {
		case symOr:
			for _, x := range th.items(cb.cdr) {
				if is, _ := th.subtypep(a, x); is {
					return true, true
				}
			}
			return false, true
		case symAnd:
			for _, x := range th.items(cb.cdr) {
				if is, sure := th.subtypep(a, x); !is {
					return false, sure
				}
			}
			return true, true
		}
	}
	return th.subtypepRange(a, b)
}

func (th *Thread) subtypepRange(a, b Value) (is, sure bool) {
	ra, rb := th.rangeOf(a), th.rangeOf(b)
	if ra == nil || rb == nil {
		sa, ok := a.(*Symbol)
		sb, ok2 := b.(*Symbol)
		if !ok || !ok2 {
			return false, false
		}
		return th.subtypepNames(sa, sb)
	}
	if up, _ := th.subtypepNames(ra.kind, rb.kind); !up {
		return false, true
	}
	return rb.lo <= ra.lo && rb.hi >= ra.hi, true
}

// numRange is a numeric type as an interval.
type numRange struct {
	kind   *Symbol
	lo, hi float64
}

func (th *Thread) rangeOf(t Value) *numRange {
	inf := math.Inf(1)
	switch t {
	case symFixnum:
		return &numRange{symInteger, -1 << 62, 1<<62 - 1}
	case symBit:
		return &numRange{symInteger, 0, 1}
	case symUnsignedByte:
		return &numRange{symInteger, 0, inf}
	case symInteger, symRational, symReal, symFloat, symSingleFloat, symDoubleFloat, symNumber:
		return &numRange{t.(*Symbol), -inf, inf}
	}
	c, ok := t.(*Cons)
	if !ok {
		return nil
	}
	args := th.items(c.cdr)
	bound := func(i int, def, step float64) float64 {
		if i >= len(args) || args[i] == Value(symStar) {
			return def
		}
		if e, ok := args[i].(*Cons); ok {
			return floatOf(e.car) + step
		}
		return floatOf(args[i])
	}
	switch c.car {
	case symInteger, symRational, symReal, symFloat, symSingleFloat, symDoubleFloat:
		return &numRange{c.car.(*Symbol), bound(0, -inf, 1), bound(1, inf, -1)}
	case symMod:
		return &numRange{symInteger, 0, bound(0, inf, 0) - 1}
	case symUnsignedByte:
		return &numRange{symInteger, 0, math.Exp2(bound(0, inf, 0)) - 1}
	case symSignedByte:
		n := math.Exp2(bound(0, inf, 0) - 1)
		return &numRange{symInteger, -n, n - 1}
	}
	return nil
}

// typeParents are the named types that are no classes here.
var typeParents = map[string][]string{
	"BIT": {"FIXNUM", "UNSIGNED-BYTE"}, "UNSIGNED-BYTE": {"INTEGER"}, "SIGNED-BYTE": {"INTEGER"}, "BOOLEAN": {"SYMBOL"},
	"SIMPLE-STRING": {"STRING", "SIMPLE-ARRAY"}, "BASE-STRING": {"STRING"}, "SIMPLE-VECTOR": {"VECTOR", "SIMPLE-ARRAY"}, "SIMPLE-ARRAY": {"ARRAY"},
	"BIT-VECTOR": {"VECTOR"}, "SIMPLE-BIT-VECTOR": {"BIT-VECTOR", "SIMPLE-ARRAY"}, "STANDARD-CHAR": {"BASE-CHAR"}, "BASE-CHAR": {"CHARACTER"},
	"COMPILED-FUNCTION": {"FUNCTION"}, "GENERIC-FUNCTION": {"FUNCTION"}, "STANDARD-GENERIC-FUNCTION": {"GENERIC-FUNCTION"}, "STRING-STREAM": {"STREAM"},
	"SHORT-FLOAT": {"SINGLE-FLOAT"}, "LONG-FLOAT": {"DOUBLE-FLOAT"}, "ATOM": {"T"}, "RESTART": {"T"}, "STANDARD-CLASS": {"CLASS"}, "EXTENDED-CHAR": {"CHARACTER"},
}

func (th *Thread) subtypepNames(a, b *Symbol) (is, sure bool) {
	th.step(1)
	if a == b || b == symT {
		return true, true
	}
	if b == symAtom {
		is, _ := th.subtypepNames(a, symList)
		return !is && a != symSequence && a != symT || a == symNull, true
	}
	for _, p := range typeParents[a.name] {
		if is, _ := th.subtypepNames(names.tables["COMMON-LISP"].present[p], b); is {
			return true, true
		}
	}
	c := th.cell(a)
	if c.typ != nil {
		return th.subtypep(th.expandType(c.typ, list(a)), b)
	}
	cb := th.cell(b)
	if cb.typ != nil {
		return th.subtypep(a, th.expandType(cb.typ, list(b)))
	}
	if c.class != nil && cb.class != nil {
		return c.class.is(cb.class), true
	}
	if c.class == nil && typeParents[a.name] == nil || cb.class == nil && typeParents[b.name] == nil {
		return false, false
	}
	if c.class != nil {
		for _, s := range c.class.supers {
			if is, _ := th.subtypepNames(s.name, b); is {
				return true, true
			}
		}
	}
	return false, true
}

func typePred(name string) func(*Thread, Value) Value {
	t := sym(name)
	return func(th *Thread, x Value) Value {
		is, _ := th.typepName(x, t)
		return mkBool(is)
	}
}

var plainTypePrims = []prim{
	{usage: "(typep object type &optional environment)", doc: "true if object is of the type", fn: func(th *Thread, a []Value) Value { return mkBool(th.typep(a[0], a[1])) }},
	{usage: "(type-of object)", doc: "a type of the object", fn1: biTypeOf},
	{usage: "(subtypep type1 type2 &optional environment)", doc: "whether one type includes another, and whether that is certain", fn: func(th *Thread, a []Value) Value {
		is, sure := th.subtypep(a[0], a[1])
		return th.values(mkBool(is), mkBool(sure))
	}},
	{usage: "(coerce object type)", doc: "the object as a type", fn2: biCoerce},
	{usage: "(eq x y)", doc: "true for the same object", fn2: func(_ *Thread, x, y Value) Value { return mkBool(x == y) }},
	{usage: "(eql x y)", doc: "true for the same object, number or character", fn2: func(th *Thread, x, y Value) Value { return mkBool(th.eql(x, y)) }},
	{usage: "(equal x y)", doc: "true for objects that look the same", fn2: func(th *Thread, x, y Value) Value { return mkBool(th.equal(x, y)) }},
	{usage: "(equalp x y)", doc: "like EQUAL, ignoring case and number types", fn2: func(th *Thread, x, y Value) Value { return mkBool(th.equalp(x, y)) }},
	{usage: "(not object)", doc: "true for NIL", fn1: func(_ *Thread, x Value) Value { return mkBool(x == Value(Nil)) }},
	{usage: "(null object)", doc: "true for NIL", fn1: func(_ *Thread, x Value) Value { return mkBool(x == Value(Nil)) }},
	{usage: "(endp list)", doc: "true at the end of a list", fn1: func(th *Thread, x Value) Value { return mkBool(th.listArg(x) == Value(Nil)) }},
	{usage: "(consp object)", doc: "true for a cons", fn1: func(_ *Thread, x Value) Value { _, ok := x.(*Cons); return mkBool(ok) }},
	{usage: "(atom object)", doc: "true for anything but a cons", fn1: func(_ *Thread, x Value) Value { _, ok := x.(*Cons); return mkBool(!ok) }},
	{usage: "(listp object)", doc: "true for a list", fn1: func(_ *Thread, x Value) Value { _, ok := x.(*Cons); return mkBool(ok || x == Value(Nil)) }},
	{usage: "(stringp object)", doc: "true for a string", fn1: func(_ *Thread, x Value) Value { _, ok := x.(*Str); return mkBool(ok) }},
	{usage: "(symbolp object)", doc: "true for a symbol", fn1: func(_ *Thread, x Value) Value { _, ok := x.(*Symbol); return mkBool(ok) }},
	{usage: "(keywordp object)", doc: "true for a keyword", fn1: func(_ *Thread, x Value) Value { s, ok := x.(*Symbol); return mkBool(ok && s.keyword()) }},
}

func typePrims() []prim {
	ps := slices.Clone(plainTypePrims)
	for _, p := range [][2]string{
		{"characterp", "CHARACTER"},
		{"functionp", "FUNCTION"},
		{"vectorp", "VECTOR"},
		{"arrayp", "ARRAY"},
		{"simple-vector-p", "SIMPLE-VECTOR"},
		{"simple-string-p", "SIMPLE-STRING"},
		{"bit-vector-p", "BIT-VECTOR"},
		{"packagep", "PACKAGE"},
		{"compiled-function-p", "COMPILED-FUNCTION"},
		{"pathnamep", "PATHNAME"},
	} {
		ps = append(ps, prim{usage: "(" + p[0] + " object)", doc: "true for an object of type " + p[1], fn1: typePred(p[1])})
	}
	return ps
}
