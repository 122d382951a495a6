package lisp

import (
	"slices"
	"strings"
)

// sequenceItems returns the elements of a string or array as values.
func (th *Thread) sequenceItems(v Value) ([]Value, bool) {
	switch v := v.(type) {
	case *Str:
		n := v.length()
		th.step(uint64(n))
		th.alloc(n / 4)
		out := make([]Value, n)
		for i := range out {
			out[i] = Char(v.at(i))
		}
		return out, true
	case *array:
		items := th.arr(v).live()
		th.step(uint64(len(items) / 16))
		return items, true
	}
	return nil, false
}

// seq returns the elements of any sequence. Those of a vector are its own: the
// caller must not change them.
func (th *Thread) seq(v Value) []Value {
	switch v.(type) {
	case *Cons:
		return th.items(v)
	case *Str, *array:
		s, _ := th.sequenceItems(v)
		if a, ok := v.(*array); ok && a.dims != nil {
			th.typeError(v, symSequence)
		}
		return s
	}
	if v != Value(Nil) {
		th.typeError(v, symSequence)
	}
	return nil
}

// like makes a sequence of the same kind as v.
func (th *Thread) like(v Value, items []Value) Value {
	switch v := v.(type) {
	case *Str:
		return th.charsToString(items)
	case *array:
		th.alloc(len(items))
		a := newVector(slices.Clone(items))
		a.elem = v.elem
		return a
	}
	return th.newList(items, Nil)
}

func (th *Thread) charsToString(items []Value) Value {
	th.alloc(1 + len(items)/16)
	var b strings.Builder
	for _, x := range items {
		c, ok := x.(Char)
		if !ok {
			th.typeError(x, symCharacter)
		}
		b.WriteRune(rune(c))
	}
	return newStr(b.String())
}

// bounds checks :start and :end against a length.
func (th *Thread) bounds(start, end Value, n int) (int, int) {
	s, e := 0, n
	if start != nil {
		i, ok := start.(Int)
		if !ok {
			th.typeError(start, symUnsignedByte)
		}
		s = int(i)
	}
	if end != nil && end != Value(Nil) {
		i, ok := end.(Int)
		if !ok {
			th.typeError(end, symUnsignedByte)
		}
		e = int(i)
	}
	if s < 0 || e > n || s > e {
		th.boundsError(s, e, n)
	}
	return s, e
}

func (th *Thread) boundsError(s, e, n int) {
	th.raise(th.condition(classTypeError, "The bounding indices are bad for a sequence of that length.",
		symDatum, cons(Int(s), Int(e)), symExpectedType, list(symInteger, Int(0), Int(n))))
}

func biLength(th *Thread, x Value) Value {
	switch v := x.(type) {
	case *Str:
		return mkInt(int64(v.length()))
	case *array:
		if v.dims == nil {
			return mkInt(int64(len(th.arr(v).live())))
		}
		th.typeError(x, symSequence)
	case *Cons:
		n := int64(0)
		for c, ok := v, true; ok; c, ok = c.cdr.(*Cons) {
			th.step(1)
			n++
			x = c.cdr
		}
		if x != Value(Nil) {
			th.typeError(x, symList)
		}
		return mkInt(n)
	}
	if x != Value(Nil) {
		th.typeError(x, symSequence)
	}
	return Int(0)
}

func biElt(th *Thread, x, i Value) Value {
	switch v := x.(type) {
	case *Str:
		return Char(v.at(th.inRange(i, v.length())))
	case *array:
		l := th.arr(v).live()
		return l[th.inRange(i, len(l))]
	}
	all := th.seq(x)
	return all[th.inRange(i, len(all))]
}

// inRange checks an index.
func (th *Thread) inRange(i Value, n int) int {
	k, ok := i.(Int)
	if !ok || k < 0 || int(k) >= n {
		th.raise(th.condition(classTypeError, "Invalid index "+th.show(i)+", should be a non-negative integer below "+th.show(Int(n))+".",
			symDatum, i, symExpectedType, list(symInteger, Int(0), list(Int(n)))))
	}
	return int(k)
}

func biSetElt(th *Thread, a []Value) Value {
	if c, ok := a[0].(*Cons); ok {
		t := th.nthcdr(th.index(a[1]), c)
		d, ok := t.(*Cons)
		if !ok {
			th.inRange(a[1], 0)
		}
		th.mutable(d).car = a[2]
		return a[2]
	}
	th.setAref(a[0], a[1:2], a[2])
	return a[2]
}

func biSubseq(th *Thread, a []Value) Value {
	if s, ok := a[0].(*Str); ok {
		i, j := th.bounds(a[1], a[2], s.length())
		return th.str(s.slice(i, j))
	}
	all := th.seq(a[0])
	i, j := th.bounds(a[1], a[2], len(all))
	return th.like(a[0], all[i:j])
}

func biReverse(th *Thread, x Value) Value {
	if _, ok := x.(*Cons); ok || x == Value(Nil) {
		var out Value = Nil
		for x != Value(Nil) {
			c, ok := x.(*Cons)
			if !ok {
				th.typeError(x, symList)
			}
			out = th.cons(c.car, out)
			x = c.cdr
		}
		return out
	}
	all := slices.Clone(th.seq(x))
	slices.Reverse(all)
	return th.like(x, all)
}

// finder selects elements by item, predicate or its opposite.
type finder func(elem Value) bool

func (th *Thread) byItem(item, test, testNot, key Value) finder {
	t := th.tester(test, testNot, key)
	return func(e Value) bool { return t.match(item, e) }
}

func (th *Thread) byPredicate(pred, key Value, want bool) finder {
	fn := th.fn(pred)
	t := th.tester(nil, nil, key)
	return func(e Value) bool { return isTrue(th.call1(fn, t.keyOf(e))) == want }
}

// seqArgs are the arguments common to find, position, count, remove and
// substitute, in the order the three forms of each take them.
type seqArgs struct {
	match   finder
	seq     Value
	fromEnd bool
	start   Value
	end     Value
	count   Value
}

type seqForm uint8

const (
	formItem seqForm = iota
	formIf
	formIfNot
)

const (
	keysItem  = "&key from-end test test-not start end key"
	keysIf    = "&key from-end start end key"
	countItem = "&key from-end test test-not start end key count"
	countIf   = "&key from-end start end key count"
)

// seqCall unpacks arguments laid out as (what sequence . keys).
func (th *Thread) seqCall(form seqForm, a []Value) seqArgs {
	s := seqArgs{seq: a[1], fromEnd: a[2] != nil && isTrue(a[2])}
	if form == formItem {
		s.match = th.byItem(a[0], a[3], a[4], a[7])
		s.start, s.end = a[5], a[6]
		if len(a) > 8 {
			s.count = a[8]
		}
		return s
	}
	s.match = th.byPredicate(a[0], a[5], form == formIf)
	s.start, s.end = a[3], a[4]
	if len(a) > 6 {
		s.count = a[6]
	}
	return s
}

// locate returns the index of the first (or last) match, or -1.
func (th *Thread) locate(s *seqArgs) (int, Value) {
	all := th.seq(s.seq)
	i, j := th.bounds(s.start, s.end, len(all))
	if s.fromEnd {
		for k := j - 1; k >= i; k-- {
			if s.match(all[k]) {
				return k, all[k]
			}
		}
		return -1, nil
	}
	for k := i; k < j; k++ {
		if s.match(all[k]) {
			return k, all[k]
		}
	}
	return -1, nil
}

func biFind(form seqForm) func(*Thread, []Value) Value {
	return func(th *Thread, a []Value) Value {
		s := th.seqCall(form, a)
		if _, v := th.locate(&s); v != nil {
			return v
		}
		return Nil
	}
}

func biPosition(form seqForm) func(*Thread, []Value) Value {
	return func(th *Thread, a []Value) Value {
		s := th.seqCall(form, a)
		if i, _ := th.locate(&s); i >= 0 {
			return mkInt(int64(i))
		}
		return Nil
	}
}

func biCount(form seqForm) func(*Thread, []Value) Value {
	return func(th *Thread, a []Value) Value {
		s := th.seqCall(form, a)
		all := th.seq(s.seq)
		i, j := th.bounds(s.start, s.end, len(all))
		n := int64(0)
		for _, e := range all[i:j] {
			if s.match(e) {
				n++
			}
		}
		return mkInt(n)
	}
}

// marks says which elements a remove or substitute touches.
func (th *Thread) marks(s *seqArgs, all []Value) []bool {
	i, j := th.bounds(s.start, s.end, len(all))
	limit := len(all)
	if s.count != nil && s.count != Value(Nil) {
		n := th.integerArg(s.count)
		limit = 0
		if n.Sign() > 0 {
			limit = len(all)
			if n.IsInt64() {
				limit = int(min(n.Int64(), int64(len(all))))
			}
		}
	}
	th.alloc(len(all) / 16)
	out := make([]bool, len(all))
	if s.fromEnd {
		for k := j - 1; k >= i && limit > 0; k-- {
			if out[k] = s.match(all[k]); out[k] {
				limit--
			}
		}
		return out
	}
	for k := i; k < j && limit > 0; k++ {
		if out[k] = s.match(all[k]); out[k] {
			limit--
		}
	}
	return out
}

func biRemove(form seqForm) func(*Thread, []Value) Value {
	return func(th *Thread, a []Value) Value {
		s := th.seqCall(form, a)
		all := th.seq(s.seq)
		gone := th.marks(&s, all)
		kept := make([]Value, 0, len(all))
		for i, e := range all {
			if !gone[i] {
				kept = append(kept, e)
			}
		}
		return th.like(s.seq, kept)
	}
}

func biSubstitute(form seqForm) func(*Thread, []Value) Value {
	return func(th *Thread, a []Value) Value {
		s := th.seqCall(form, a[1:])
		all := slices.Clone(th.seq(s.seq))
		for i, hit := range th.marks(&s, all) {
			if hit {
				all[i] = a[0]
			}
		}
		return th.like(s.seq, all)
	}
}

func biRemoveDuplicates(th *Thread, a []Value) Value {
	t := th.tester(a[2], a[3], a[6])
	all := th.seq(a[0])
	i, j := th.bounds(a[4], a[5], len(all))
	fromEnd := a[1] != nil && isTrue(a[1])
	keys := make([]Value, len(all))
	th.alloc(len(all))
	for k := i; k < j; k++ {
		keys[k] = t.keyOf(all[k])
	}
	var kept []Value
	for k, e := range all {
		dup := false
		if k >= i && k < j {
			if fromEnd {
				for m := i; m < k && !dup; m++ {
					dup = t.same(keys[m], keys[k])
				}
			} else {
				for m := k + 1; m < j && !dup; m++ {
					dup = t.same(keys[k], keys[m])
				}
			}
		}
		if !dup {
			kept = append(kept, e)
		}
	}
	return th.like(a[0], kept)
}

// sorted returns the elements in order; the sort is stable.
func (th *Thread) sorted(all []Value, pred, key Value) []Value {
	fn := th.fn(pred)
	t := th.tester(nil, nil, key)
	th.alloc(len(all))
	type keyed struct{ k, v Value }
	ks := make([]keyed, len(all))
	for i, v := range all {
		ks[i] = keyed{t.keyOf(v), v}
	}
	slices.SortStableFunc(ks, func(a, b keyed) int {
		switch {
		case isTrue(th.call2(fn, a.k, b.k)):
			return -1
		case isTrue(th.call2(fn, b.k, a.k)):
			return 1
		}
		return 0
	})
	out := make([]Value, len(all))
	for i := range ks {
		out[i] = ks[i].v
	}
	return out
}

func biSort(th *Thread, a []Value) Value {
	out := th.sorted(th.seq(a[0]), a[1], a[2])
	switch v := a[0].(type) {
	case *array:
		copy(th.arrToChange(v).items, out)
		return v
	case *Str:
		if !v.frozen {
			v.edit()
			for i, c := range out {
				v.runes[i] = rune(c.(Char))
			}
			return v
		}
	}
	return th.like(a[0], out)
}

func biMerge(th *Thread, a []Value) Value {
	x, y := th.seq(a[1]), th.seq(a[2])
	fn := th.fn(a[3])
	t := th.tester(nil, nil, a[4])
	var out []Value
	for len(x) > 0 && len(y) > 0 {
		if isTrue(th.call2(fn, t.keyOf(y[0]), t.keyOf(x[0]))) {
			out, y = append(out, y[0]), y[1:]
		} else {
			out, x = append(out, x[0]), x[1:]
		}
	}
	return th.coerceSeq(append(append(out, x...), y...), a[0])
}

// quantifier makes every, some, notany and notevery.
func quantifier(stopOn, atStop, atEnd bool, value bool) func(*Thread, []Value) Value {
	return func(th *Thread, a []Value) Value {
		var found Value = Nil
		stopped := th.mapSeqs(a[0], a[1:], func(v Value) bool {
			found = v
			return isTrue(v) == stopOn
		})
		switch {
		case stopped && value:
			return found
		case stopped:
			return mkBool(atStop)
		}
		return mkBool(atEnd)
	}
}

// mapSeqs calls fn over sequences in parallel until visit says to stop.
func (th *Thread) mapSeqs(fn Value, seqs []Value, visit func(Value) bool) bool {
	f := th.fn(fn)
	all := make([][]Value, len(seqs))
	n := -1
	for i, s := range seqs {
		all[i] = th.seq(s)
		if n < 0 || len(all[i]) < n {
			n = len(all[i])
		}
	}
	for k := range n {
		base := len(th.stk)
		for _, s := range all {
			th.stk = append(th.stk, s[k])
		}
		if visit(th.one(th.callStack(f, base))) {
			return true
		}
	}
	return false
}

func biMap(th *Thread, a []Value) Value {
	var out []Value
	collect := a[0] != Value(Nil)
	th.mapSeqs(a[1], a[2:], func(v Value) bool {
		if collect {
			th.alloc(1)
			out = append(out, v)
		}
		return false
	})
	if !collect {
		return Nil
	}
	return th.coerceSeq(out, a[0])
}

func biMapInto(th *Thread, a []Value) Value {
	room := len(th.seq(a[0]))
	var out []Value
	if room > 0 {
		th.mapSeqs(a[1], a[2:], func(v Value) bool {
			th.alloc(1)
			out = append(out, v)
			return len(out) >= room
		})
	}
	if len(a) == 2 {
		for range room {
			out = append(out, th.call(th.fn(a[1])))
		}
	}
	th.storeSeq(a[0], 0, out)
	return a[0]
}

// storeSeq writes items into a sequence from start on.
func (th *Thread) storeSeq(dst Value, start int, items []Value) {
	if c, ok := dst.(*Cons); ok {
		t := th.nthcdr(start, c)
		for _, v := range items {
			th.step(1)
			c := th.consArg(t)
			th.mutable(c).car = v
			t = c.cdr
		}
		return
	}
	th.step(uint64(len(items)))
	for i, v := range items {
		th.setAref(dst, []Value{Int(start + i)}, v)
	}
}

func biReduce(th *Thread, a []Value) Value {
	fn := th.fn(a[0])
	t := th.tester(nil, nil, a[2])
	all := th.seq(a[1])
	i, j := th.bounds(a[4], a[5], len(all))
	keys := make([]Value, 0, j-i+1)
	fromEnd := a[3] != nil && isTrue(a[3])
	if a[6] != nil && !fromEnd {
		keys = append(keys, a[6])
	}
	for _, e := range all[i:j] {
		keys = append(keys, t.keyOf(e))
	}
	if a[6] != nil && fromEnd {
		keys = append(keys, a[6])
	}
	if len(keys) == 0 {
		return th.call(fn)
	}
	if fromEnd {
		acc := keys[len(keys)-1]
		for k := len(keys) - 2; k >= 0; k-- {
			acc = th.call2(fn, keys[k], acc)
		}
		return acc
	}
	acc := keys[0]
	for _, e := range keys[1:] {
		acc = th.call2(fn, acc, e)
	}
	return acc
}

func biFill(th *Thread, a []Value) Value {
	n := len(th.seq(a[0]))
	i, j := th.bounds(a[2], a[3], n)
	vals := make([]Value, j-i)
	for k := range vals {
		vals[k] = a[1]
	}
	th.storeSeq(a[0], i, vals)
	return a[0]
}

func biReplace(th *Thread, a []Value) Value {
	dst, src := th.seq(a[0]), th.seq(a[1])
	i, j := th.bounds(a[2], a[3], len(dst))
	k, l := th.bounds(a[4], a[5], len(src))
	n := min(j-i, l-k)
	th.storeSeq(a[0], i, slices.Clone(src[k:k+n]))
	return a[0]
}

func biConcatenate(th *Thread, a []Value) Value {
	if isStringType(a[0]) {
		var b strings.Builder
		for _, s := range a[1:] {
			if x, ok := s.(*Str); ok {
				th.alloc(1 + x.length()/16)
				b.WriteString(x.text())
				continue
			}
			b.WriteString(th.charsToString(th.seq(s)).(*Str).text())
		}
		return newStr(b.String())
	}
	var out []Value
	for _, s := range a[1:] {
		part := th.seq(s)
		th.alloc(len(part))
		out = append(out, part...)
	}
	return th.coerceSeq(out, a[0])
}

// biSearch finds one sequence in another.
func biSearch(th *Thread, a []Value) Value {
	t := th.tester(a[3], a[4], a[5])
	fromEnd := a[2] != nil && isTrue(a[2])
	if x, ok := a[0].(*Str); ok {
		if y, ok := a[1].(*Str); ok && t.key == nil && !fromEnd && a[6] == nil && a[7] == nil && a[8] == nil && a[9] == nil {
			if v, done := th.searchText(x, y, &t); done {
				return v
			}
		}
	}
	x, y := th.seq(a[0]), th.seq(a[1])
	i, j := th.bounds(a[6], a[8], len(x))
	k, l := th.bounds(a[7], a[9], len(y))
	x = x[i:j]
	if len(x) > l-k {
		return Nil
	}
	at := func(p int) bool {
		for q, e := range x {
			if !t.same(t.keyOf(e), t.keyOf(y[p+q])) {
				return false
			}
		}
		return true
	}
	if fromEnd {
		for p := l - len(x); p >= k; p-- {
			if at(p) {
				return mkInt(int64(p))
			}
		}
		return Nil
	}
	for p := k; p+len(x) <= l; p++ {
		th.step(1)
		if at(p) {
			return mkInt(int64(p))
		}
	}
	return Nil
}

// searchText is search for strings under the usual tests.
func (th *Thread) searchText(x, y *Str, t *tester) (Value, bool) {
	if t.not {
		return nil, false
	}
	fold := false
	if t.fn != nil {
		s, _ := t.fn.name.(*Symbol)
		switch s {
		case symEql, symEq, symEqual, symCharEq:
		case symCharEqual, symEqualp:
			fold = true
		default:
			return nil, false
		}
	}
	th.step(uint64(1 + y.length()/8))
	hay, needle := y.text(), x.text()
	if fold {
		hay, needle = strings.Map(foldRune, hay), strings.Map(foldRune, needle)
	}
	i := strings.Index(hay, needle)
	if i < 0 {
		return Nil, true
	}
	return mkInt(int64(len([]rune(hay[:i])))), true
}

func biMismatch(th *Thread, a []Value) Value {
	t := th.tester(a[3], a[4], a[5])
	x, y := th.seq(a[0]), th.seq(a[1])
	i, j := th.bounds(a[6], a[8], len(x))
	k, l := th.bounds(a[7], a[9], len(y))
	x, y = x[i:j], y[k:l]
	if a[2] != nil && isTrue(a[2]) {
		n := 0
		for n < len(x) && n < len(y) && t.same(t.keyOf(x[len(x)-1-n]), t.keyOf(y[len(y)-1-n])) {
			n++
		}
		if n == len(x) && n == len(y) {
			return Nil
		}
		return mkInt(int64(i + len(x) - n))
	}
	n := 0
	for n < len(x) && n < len(y) && t.same(t.keyOf(x[n]), t.keyOf(y[n])) {
		n++
	}
	if n == len(x) && n == len(y) {
		return Nil
	}
	return mkInt(int64(i + n))
}

var plainSeqPrims = []prim{
	{usage: "(length sequence)", doc: "number of elements", fn1: biLength},
	{usage: "(elt sequence index)", doc: "element at index", fn2: biElt},
	{usage: "(passepartout-kernel:set-elt sequence index value)", doc: "set an element", fn: biSetElt},
	{usage: "(subseq sequence start &optional end)", doc: "a copy of part of a sequence", fn: biSubseq},
	{usage: "(copy-seq sequence)", doc: "a copy", fn1: func(th *Thread, x Value) Value {
		if s, ok := x.(*Str); ok {
			return th.str(s.text())
		}
		return th.like(x, th.seq(x))
	}},
	{usage: "(reverse sequence)", doc: "a reversed copy", fn1: biReverse},
	{usage: "(nreverse sequence)", doc: "the sequence reversed", fn1: biReverse},
	{usage: "(remove-duplicates sequence &key from-end test test-not start end key)", doc: "each element once", fn: biRemoveDuplicates},
	{usage: "(delete-duplicates sequence &key from-end test test-not start end key)", doc: "each element once", fn: biRemoveDuplicates},
	{usage: "(sort sequence predicate &key key)", doc: "the elements in order", fn: biSort},
	{usage: "(stable-sort sequence predicate &key key)", doc: "the elements in order; equal ones keep theirs", fn: biSort},
	{usage: "(merge result-type sequence1 sequence2 predicate &key key)", doc: "two sorted sequences as one", fn: biMerge},
	{usage: "(every predicate sequence &rest more)", doc: "true if all satisfy", fn: quantifier(false, false, true, false)},
	{usage: "(some predicate sequence &rest more)", doc: "the first true result", fn: quantifier(true, true, false, true)},
	{usage: "(notany predicate sequence &rest more)", doc: "true if none satisfies", fn: quantifier(true, false, true, false)},
	{usage: "(notevery predicate sequence &rest more)", doc: "true if some do not satisfy", fn: quantifier(false, true, false, false)},
	{usage: "(map result-type function sequence &rest more)", doc: "the results as a sequence of a type", fn: biMap},
	{usage: "(map-into result function &rest sequences)", doc: "store the results in a sequence", fn: biMapInto},
	{usage: "(reduce function sequence &key key from-end start end initial-value)", doc: "combine the elements", fn: biReduce},
	{usage: "(fill sequence item &key start end)", doc: "store item everywhere", fn: biFill},
	{usage: "(replace target source &key start1 end1 start2 end2)", doc: "copy elements over", fn: biReplace},
	{usage: "(concatenate result-type &rest sequences)", doc: "all elements as one sequence", fn: biConcatenate},
	{usage: "(search sequence1 sequence2 &key from-end test test-not key start1 start2 end1 end2)", doc: "where sequence1 occurs in sequence2", fn: biSearch},
	{usage: "(mismatch sequence1 sequence2 &key from-end test test-not key start1 start2 end1 end2)", doc: "where two sequences begin to differ", fn: biMismatch},
}

func sequencePrims() []prim {
	ps := slices.Clone(plainSeqPrims)
	for form, suffix := range []string{"", "-if", "-if-not"} {
		keys, counts, what := keysIf, countIf, "predicate"
		if suffix == "" {
			keys, counts, what = keysItem, countItem, "item"
		}
		f := seqForm(form)
		ps = append(ps,
			prim{usage: "(find" + suffix + " " + what + " sequence " + keys + ")", doc: "the first element that matches", fn: biFind(f)},
			prim{usage: "(position" + suffix + " " + what + " sequence " + keys + ")", doc: "the index of the first match", fn: biPosition(f)},
			prim{usage: "(count" + suffix + " " + what + " sequence " + keys + ")", doc: "number of matches", fn: biCount(f)},
			prim{usage: "(remove" + suffix + " " + what + " sequence " + counts + ")", doc: "a copy without the matches", fn: biRemove(f)},
			prim{usage: "(delete" + suffix + " " + what + " sequence " + counts + ")", doc: "the sequence without the matches", fn: biRemove(f)},
			prim{usage: "(substitute" + suffix + " new " + what + " sequence " + counts + ")", doc: "a copy with new for the matches", fn: biSubstitute(f)},
			prim{usage: "(nsubstitute" + suffix + " new " + what + " sequence " + counts + ")", doc: "the sequence with new for the matches", fn: biSubstitute(f)})
	}
	return ps
}
