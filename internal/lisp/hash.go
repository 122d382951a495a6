package lisp

import (
	"math"
	"math/big"
	"strings"
)

type hashTest uint8

const (
	testEq hashTest = iota
	testEql
	testEqual
	testEqualp
)

// table is a hash table that remembers the order in which keys came.
type table struct {
	test    hashTest
	entries []tableEntry
	plain   map[any]int      // keys that Go can compare
	deep    map[uint64][]int // conses and arrays under equal and equalp, by hash
	live    int
	frozen  bool
}

type tableEntry struct {
	key, val Value // key is nil once removed
}

type (
	textKey string // a string under equal
	foldKey string // a string, character or number under equalp
	numKey  string // a bignum or ratio
	zeroKey int    // negative zeros
)

func newTable(test hashTest) *table { return &table{test: test, plain: map[any]int{}} }

func (t *table) count() int { return t.live }

func (t *table) testName() *Symbol {
	return []*Symbol{symEq, symEql, symEqual, symEqualp}[t.test]
}

// table returns the thread's view of a table: its own copy if it changed one
// that belongs to the image.
func (th *Thread) table(t *table) *table {
	if t.frozen {
		return th.current(t).(*table)
	}
	return t
}

// tableToChange returns a table the thread may write.
func (th *Thread) tableToChange(t *table) *table {
	t = th.table(t)
	if !t.frozen {
		return t
	}
	th.alloc(4 + 4*len(t.entries))
	c := newTable(t.test)
	for _, e := range t.entries {
		if e.key != nil {
			th.put(c, e.key, e.val)
		}
	}
	th.thaw(t, c)
	return c
}

// current returns the version of a frozen object this thread sees: the image's
// latest, or the thread's own copy of that.
func (th *Thread) current(v Value) Value {
	if m, ok := th.img.moved[v]; ok {
		v = m
	}
	if c, ok := th.thawed[v]; ok {
		return c
	}
	return v
}

func (th *Thread) thaw(old, own Value) {
	if th.thawed == nil {
		th.thawed = map[Value]Value{}
	}
	th.thawed[old] = own
}

func (th *Thread) tableArg(v Value) *table {
	t, ok := v.(*table)
	if !ok {
		th.typeError(v, symHashTable)
	}
	return t
}

// plainKey returns what to look a key up by, or false when it must be hashed.
func (th *Thread) plainKey(t *table, k Value) (any, bool) {
	switch v := k.(type) {
	case *bignum:
		th.chargeDigits(v.n)
		return numKey(v.n.String()), true
	case *ratio:
		th.chargeDigits(v.r.Num(), v.r.Denom())
		if t.test != testEqualp {
			return numKey(v.r.String()), true
		}
	case Single:
		if v == 0 && math.Signbit(float64(v)) {
			return zeroKey(1), true
		}
	case Double:
		if v == 0 && math.Signbit(float64(v)) {
			return zeroKey(2), true
		}
	case *Str:
		switch t.test {
		case testEqual:
			th.step(uint64(v.length() / 32))
			return textKey(v.text()), true
		case testEqualp:
			th.chargeText(len(v.text()))
			return foldKey("s" + strings.Map(foldRune, v.text())), true
		default:
		}
	case *Cons:
		if t.test >= testEqual {
			return nil, false
		}
	case *array:
		if t.test == testEqualp || t.test == testEqual && v.elem == Value(symBit) {
			return nil, false
		}
	case *instance, *table:
		if t.test == testEqualp {
			return nil, false
		}
	}
	if t.test == testEqualp {
		switch v := k.(type) {
		case Char:
			return foldKey("c" + string(foldRune(rune(v)))), true
		case Int, *ratio, Single, Double:
			return foldKey("n" + th.exact(v).String()), true
		}
	}
	return k, true
}

// chargeDigits pays for writing numbers out.
func (th *Thread) chargeDigits(ns ...*big.Int) {
	for _, n := range ns {
		th.step(bigCost(n))
	}
	th.chargeBig(ns...)
}

// find returns the place of a key, or -1.
func (th *Thread) find(t *table, k Value) int {
	p, ok := th.plainKey(t, k)
	if ok {
		if i, ok := t.plain[p]; ok {
			return i
		}
		return -1
	}
	for _, i := range t.deep[th.hash(k, 0)] {
		th.step(1)
		e := t.entries[i].key
		if e == nil {
			continue
		}
		if t.test == testEqual && th.equal(e, k) || t.test == testEqualp && th.equalp(e, k) {
			return i
		}
	}
	return -1
}

func (th *Thread) get(t *table, k Value) (Value, bool) {
	th.step(1)
	if i := th.find(t, k); i >= 0 {
		return t.entries[i].val, true
	}
	return nil, false
}

func (th *Thread) put(t *table, k, v Value) {
	th.step(1)
	if i := th.find(t, k); i >= 0 {
		t.entries[i].val = v
		return
	}
	th.alloc(4)
	t.entries = append(t.entries, tableEntry{k, v})
	t.live++
	th.reindex(t, len(t.entries)-1)
}

func (th *Thread) reindex(t *table, i int) {
	k := t.entries[i].key
	if p, ok := th.plainKey(t, k); ok {
		t.plain[p] = i
		return
	}
	if t.deep == nil {
		t.deep = map[uint64][]int{}
	}
	h := th.hash(k, 0)
	t.deep[h] = append(t.deep[h], i)
}

func (th *Thread) remove(t *table, k Value) bool {
	th.step(1)
	i := th.find(t, k)
	if i < 0 {
		return false
	}
	if p, ok := th.plainKey(t, k); ok {
		delete(t.plain, p)
	}
	t.entries[i] = tableEntry{}
	t.live--
	if len(t.entries) > 32 && t.live < len(t.entries)/4 {
		th.compact(t)
	}
	return true
}

// compact drops removed entries. It runs only when most are gone, so a walk
// that removes what it visits stays in order.
func (th *Thread) compact(t *table) {
	th.step(uint64(len(t.entries)))
	kept := t.entries[:0:0]
	for _, e := range t.entries {
		if e.key != nil {
			kept = append(kept, e)
		}
	}
	t.entries, t.plain, t.deep = kept, map[any]int{}, nil
	for i := range kept {
		th.reindex(t, i)
	}
}

// hash is alike for objects that are equalp; it looks a few levels deep.
func (th *Thread) hash(v Value, depth int) uint64 {
	th.step(1)
	h := uint64(14695981039346656037)
	mix := func(x uint64) { h = (h ^ x) * 1099511628211 }
	switch x := v.(type) {
	case *Cons:
		n := 0
		for c, ok := x, true; ok && n < 16; c, ok = c.cdr.(*Cons) {
			if depth < 4 {
				mix(th.hash(c.car, depth+1))
			}
			n++
		}
		mix(uint64(n))
	case *Str, *array:
		seq, _ := th.sequenceItems(v)
		mix(uint64(len(seq)))
		if depth < 4 {
			for _, e := range seq[:min(len(seq), 16)] {
				mix(th.hash(e, depth+1))
			}
		}
	case *Symbol:
		th.step(uint64(len(x.name) / 16))
		for i := range len(x.name) {
			mix(uint64(x.name[i]))
		}
	case Char:
		mix(uint64(foldRune(rune(x))))
	case Int, *bignum, *ratio, Single, Double:
		th.weigh(v)
		mix(math.Float64bits(floatOf(v) + 0))
	}
	return h
}

func biMakeHashTable(th *Thread, a []Value) Value {
	th.alloc(16)
	test := testEql
	if a[0] != nil {
		name := a[0]
		if f, ok := name.(*Function); ok && f.name != nil {
			name = f.name
		}
		switch name {
		case symEq:
			test = testEq
		case symEql:
			test = testEql
		case symEqual:
			test = testEqual
		case symEqualp:
			test = testEqualp
		default:
			th.fail(classSimpleError, "unknown :TEST for MAKE-HASH-TABLE: %s", th.show(a[0]))
		}
	}
	return newTable(test)
}

func biGethash(th *Thread, a []Value) Value {
	v, ok := th.get(th.table(th.tableArg(a[1])), a[0])
	if ok {
		return th.values(v, symT)
	}
	if a[2] != nil {
		return th.values(a[2], Nil)
	}
	return th.values(Nil, Nil)
}

func biMaphash(th *Thread, a []Value) Value {
	fn := th.fn(a[0])
	th.eachEntry(a[1], func(k, v Value) { th.call2(fn, k, v) })
	return Nil
}

// eachEntry walks a table in order; the walker may change it.
func (th *Thread) eachEntry(v Value, f func(k, v Value)) {
	src := th.tableArg(v)
	th.step(uint64(len(th.table(src).entries) / 16))
	for _, e := range append([]tableEntry(nil), th.table(src).entries...) {
		th.step(1)
		if e.key == nil {
			continue
		}
		if v, ok := th.get(th.table(src), e.key); ok {
			f(e.key, v)
		}
	}
}

func (th *Thread) tableList(v Value, part func(k, v Value) Value) Value {
	b := listBuilder{th: th}
	th.eachEntry(v, func(k, v Value) { b.add(part(k, v)) })
	return b.end(Nil)
}

func (th *Thread) equalpTables(a, b *table) bool {
	if a.live != b.live || a.test != b.test {
		return false
	}
	for _, e := range a.entries {
		if e.key == nil {
			continue
		}
		v, ok := th.get(b, e.key)
		if !ok || !th.equalp(e.val, v) {
			return false
		}
	}
	return true
}

var hashPrims = []prim{
	{usage: "(make-hash-table &key test size rehash-size rehash-threshold synchronized weakness)", doc: "an empty table that keeps the order of its keys", fn: biMakeHashTable},
	{usage: "(gethash key table &optional default)", doc: "the value of a key, and whether it was there", fn: biGethash},
	{usage: "(passepartout-kernel:puthash key table value)", doc: "set a key", fn: func(th *Thread, a []Value) Value {
		th.put(th.tableToChange(th.tableArg(a[1])), a[0], a[2])
		return a[2]
	}},
	{usage: "(remhash key table)", doc: "remove a key; true if it was there", fn2: func(th *Thread, k, t Value) Value {
		return mkBool(th.remove(th.tableToChange(th.tableArg(t)), k))
	}},
	{usage: "(clrhash table)", doc: "remove all keys", fn1: func(th *Thread, x Value) Value {
		t := th.tableToChange(th.tableArg(x))
		*t = table{test: t.test, plain: map[any]int{}}
		return x
	}},
	{usage: "(maphash function table)", doc: "call with each key and value, in order", fn: biMaphash},
	{usage: "(hash-table-count table)", doc: "number of keys", fn1: func(th *Thread, x Value) Value { return mkInt(int64(th.table(th.tableArg(x)).count())) }},
	{usage: "(hash-table-size table)", doc: "room in the table", fn1: func(th *Thread, x Value) Value { return mkInt(int64(max(14, len(th.table(th.tableArg(x)).entries)))) }},
	{usage: "(hash-table-test table)", doc: "name of the table's test", fn1: func(th *Thread, x Value) Value { return th.tableArg(x).testName() }},
	{usage: "(hash-table-p object)", doc: "true for a hash table", fn1: func(_ *Thread, x Value) Value { _, ok := x.(*table); return mkBool(ok) }},
	{usage: "(passepartout-kernel:hash-keys table)", doc: "the keys in order", fn1: func(th *Thread, x Value) Value {
		return th.tableList(x, func(k, _ Value) Value { return k })
	}},
	{usage: "(passepartout-kernel:hash-values table)", doc: "the values in order", fn1: func(th *Thread, x Value) Value {
		return th.tableList(x, func(_, v Value) Value { return v })
	}},
	{usage: "(passepartout-kernel:hash-pairs table)", doc: "keys and values in order", fn1: func(th *Thread, x Value) Value {
		return th.tableList(x, func(k, v Value) Value { return th.cons(k, v) })
	}},
	{usage: "(sxhash object)", doc: "a hash code", fn1: func(th *Thread, x Value) Value {
		if s, ok := x.(*Str); ok {
			th.step(uint64(s.length() / 16))
			h := uint64(14695981039346656037)
			for _, c := range s.text() {
				h = (h ^ uint64(c)) * 1099511628211
			}
			return mkInt(int64(h >> 2))
		}
		return mkInt(int64(th.hash(x, 0) >> 2))
	}},
}
