package lisp

import "slices"

// cxr makes a composition of car and cdr: "AD" is cadr.
func cxr(path string) func(*Thread, Value) Value {
	return func(th *Thread, x Value) Value {
		for i := len(path) - 1; i >= 0; i-- {
			if x == Value(Nil) {
				return x
			}
			c, ok := x.(*Cons)
			if !ok {
				th.typeError(x, symList)
			}
			if path[i] == 'A' {
				x = c.car
			} else {
				x = c.cdr
			}
		}
		return x
	}
}

func biCar(th *Thread, x Value) Value {
	if c, ok := x.(*Cons); ok {
		return c.car
	}
	if x != Value(Nil) {
		th.typeError(x, symList)
	}
	return Nil
}

func biCdr(th *Thread, x Value) Value {
	if c, ok := x.(*Cons); ok {
		return c.cdr
	}
	if x != Value(Nil) {
		th.typeError(x, symList)
	}
	return Nil
}

// nthcdr walks n conses down; it stops at the end of the list.
func (th *Thread) nthcdr(n int, x Value) Value {
	for ; n > 0 && x != Value(Nil); n-- {
		th.step(1)
		x = biCdr(th, x)
	}
	return x
}

func (th *Thread) consArg(v Value) *Cons {
	c, ok := v.(*Cons)
	if !ok {
		th.typeError(v, symCons)
	}
	return c
}

func (th *Thread) listArg(v Value) Value {
	if _, ok := v.(*Cons); !ok && v != Value(Nil) {
		th.typeError(v, symList)
	}
	return v
}

// mutable checks that a cons belongs to the thread, not to a shared image.
func (th *Thread) mutable(c *Cons) *Cons {
	if _, frozen := th.img.frozen[c]; frozen {
		th.fail(classSimpleError, "attempt to modify a list of the loaded image: copy it first")
	}
	return c
}

// listBuilder collects a fresh list front to back.
type listBuilder struct {
	th         *Thread
	head, tail *Cons
}

func (b *listBuilder) add(v Value) {
	c := b.th.cons(v, Nil)
	if b.head == nil {
		b.head = c
	} else {
		b.tail.cdr = c
	}
	b.tail = c
}

// end closes the list with a last cdr.
func (b *listBuilder) end(last Value) Value {
	if b.head == nil {
		return last
	}
	b.tail.cdr = last
	return b.head
}

func biAppend(th *Thread, a []Value) Value {
	if len(a) == 0 {
		return Nil
	}
	b := listBuilder{th: th}
	for _, l := range a[:len(a)-1] {
		for _, x := range th.items(l) {
			b.add(x)
		}
	}
	return b.end(a[len(a)-1])
}

func biNconc(th *Thread, a []Value) Value {
	var result Value = Nil
	var last *Cons
	for _, l := range a {
		if l == Value(Nil) {
			continue
		}
		if last == nil {
			result = l
		} else {
			th.mutable(last).cdr = l
		}
		if c, ok := l.(*Cons); ok {
			last = th.lastCons(c)
		} else {
			last = nil
		}
	}
	return result
}

func (th *Thread) lastCons(c *Cons) *Cons {
	for {
		next, ok := c.cdr.(*Cons)
		if !ok {
			return c
		}
		th.step(1)
		c = next
	}
}

func biLast(th *Thread, a []Value) Value {
	n := 1
	if a[1] != nil {
		n = th.index(a[1])
	}
	return th.tail(a[0], n)
}

// tail returns the last n conses of a list.
func (th *Thread) tail(l Value, n int) Value {
	lead := th.listArg(l)
	for ; n > 0; n-- {
		c, ok := lead.(*Cons)
		if !ok {
			return l
		}
		th.step(1)
		lead = c.cdr
	}
	for {
		c, ok := lead.(*Cons)
		if !ok {
			return l
		}
		th.step(1)
		lead, l = c.cdr, cdr(l)
	}
}

func biButlast(th *Thread, a []Value) Value {
	n := 1
	if a[1] != nil {
		n = th.index(a[1])
	}
	var all []Value
	for c, ok := th.listArg(a[0]).(*Cons); ok; c, ok = c.cdr.(*Cons) {
		th.step(1)
		all = append(all, c.car)
	}
	return th.newList(all[:max(0, len(all)-n)], Nil)
}

func biListLength(th *Thread, x Value) Value {
	slow, n := th.listArg(x), int64(0)
	for c, ok := x.(*Cons); ok; c, ok = c.cdr.(*Cons) {
		th.step(1)
		n++
		if n%2 == 0 {
			if Value(c) == slow {
				return Nil
			}
			slow = cdr(slow)
		}
		x = c.cdr
	}
	if x != Value(Nil) {
		th.typeError(x, symList)
	}
	return mkInt(n)
}

func (th *Thread) copyTree(x Value) Value {
	c, ok := x.(*Cons)
	if !ok {
		return x
	}
	th.enter(1)
	defer th.leave(1)
	b := listBuilder{th: th}
	for ok {
		th.step(1)
		b.add(th.copyTree(c.car))
		x = c.cdr
		c, ok = x.(*Cons)
	}
	return b.end(x)
}

func biGetf(th *Thread, a []Value) Value {
	x := a[0]
	for {
		c, ok := x.(*Cons)
		if !ok {
			break
		}
		th.step(1)
		rest, ok := c.cdr.(*Cons)
		if !ok {
			th.fail(classTypeError, "malformed property list: %s.", th.show(a[0]))
		}
		if c.car == a[1] {
			return rest.car
		}
		x = rest.cdr
	}
	if x != Value(Nil) {
		th.typeError(x, symList)
	}
	if a[2] != nil {
		return a[2]
	}
	return Nil
}

// putf returns the plist with a property set: changed in place where it can
// be, as SBCL does, and otherwise put in front.
func biPutf(th *Thread, a []Value) Value {
	for c, ok := a[0].(*Cons); ok; {
		th.step(1)
		rest, isCons := c.cdr.(*Cons)
		if !isCons {
			break
		}
		if c.car == a[1] {
			if _, frozen := th.img.frozen[rest]; frozen {
				return th.putfCopy(a)
			}
			rest.car = a[2]
			return a[0]
		}
		c, ok = rest.cdr.(*Cons)
	}
	return th.cons(a[1], th.cons(a[2], a[0]))
}

// putfCopy sets a property of a list that belongs to the image.
func (th *Thread) putfCopy(a []Value) Value {
	all := th.items(a[0])
	for i := 0; i+1 < len(all); i += 2 {
		if all[i] == a[1] {
			all[i+1] = a[2]
			break
		}
	}
	return th.newList(all, Nil)
}

// remf returns the plist without a property, and whether it had one.
func biRemf(th *Thread, a []Value) Value {
	all := th.items(a[0])
	for i := 0; i+1 < len(all); i += 2 {
		if all[i] == a[1] {
			return th.values(th.newList(append(all[:i:i], all[i+2:]...), Nil), symT)
		}
	}
	return th.values(a[0], Nil)
}

func biGetProperties(th *Thread, a []Value) Value {
	want := th.items(a[1])
	x := a[0]
	for c, ok := x.(*Cons); ok; c, ok = x.(*Cons) {
		th.step(uint64(1 + len(want)))
		for _, w := range want {
			if w == c.car {
				return th.values(c.car, car(c.cdr), c)
			}
		}
		x = cdr(c.cdr)
	}
	return th.values(Nil, Nil, Nil)
}

func biAcons(th *Thread, a []Value) Value { return th.cons(th.cons(a[0], a[1]), a[2]) }

func biPairlis(th *Thread, a []Value) Value {
	keys, vals := th.items(a[0]), th.items(a[1])
	if len(keys) != len(vals) {
		th.fail(classSimpleError, "The lists of keys and data are of unequal length.")
	}
	tail := Value(Nil)
	if a[2] != nil {
		tail = a[2]
	}
	for i := range keys {
		tail = th.cons(th.cons(keys[i], vals[i]), tail)
	}
	return tail
}

func biListStar(th *Thread, a []Value) Value {
	return th.newList(a[:len(a)-1], a[len(a)-1])
}

func biLdiff(th *Thread, a []Value) Value {
	b := listBuilder{th: th}
	x := th.listArg(a[0])
	for !th.eql(x, a[1]) {
		c, ok := x.(*Cons)
		if !ok {
			return b.end(x)
		}
		b.add(c.car)
		x = c.cdr
	}
	return b.end(Nil)
}

func biTailp(th *Thread, a []Value) Value {
	x := a[1]
	for {
		if th.eql(x, a[0]) {
			return symT
		}
		c, ok := x.(*Cons)
		if !ok {
			return Nil
		}
		th.step(1)
		x = c.cdr
	}
}

// mapper makes the mapping functions: over elements or tails, collecting,
// appending or returning the first list.
func mapper(tails bool, collect string) func(*Thread, []Value) Value {
	return func(th *Thread, a []Value) Value {
		fn := th.fn(a[0])
		lists := append([]Value(nil), a[1:]...)
		b := listBuilder{th: th}
		var parts []Value
		for {
			base := len(th.stk)
			done := false
			for i, l := range lists {
				c, ok := l.(*Cons)
				if !ok {
					th.listArg(l)
					done = true
					break
				}
				if tails {
					th.stk = append(th.stk, c)
				} else {
					th.stk = append(th.stk, c.car)
				}
				lists[i] = c.cdr
			}
			if done {
				th.stk = th.stk[:base]
				break
			}
			v := th.one(th.callStack(fn, base))
			switch collect {
			case "list":
				b.add(v)
			case "append":
				th.alloc(1)
				parts = append(parts, v)
			}
		}
		switch collect {
		case "list":
			return b.end(Nil)
		case "append":
			return biNconc(th, parts)
		}
		return a[1]
	}
}

// tester is the :test, :test-not and :key of a sequence function.
type tester struct {
	th  *Thread
	key *Function
	fn  *Function // nil for eql
	not bool
}

func (th *Thread) tester(test, testNot, key Value) tester {
	t := tester{th: th}
	if test != nil && isTrue(test) {
		t.fn = th.fn(test)
	}
	if testNot != nil && isTrue(testNot) {
		t.fn, t.not = th.fn(testNot), true
	}
	if key != nil && isTrue(key) {
		t.key = th.fn(key)
	}
	return t
}

func (t *tester) keyOf(x Value) Value {
	if t.key == nil {
		return x
	}
	return t.th.call1(t.key, x)
}

// same compares an item with an element whose key has been taken.
func (t *tester) same(item, k Value) bool {
	t.th.step(1)
	if t.fn == nil {
		return t.th.eql(item, k)
	}
	return isTrue(t.th.call2(t.fn, item, k)) != t.not
}

func (t *tester) match(item, elem Value) bool { return t.same(item, t.keyOf(elem)) }

func biMember(th *Thread, a []Value) Value {
	t := th.tester(a[2], a[3], a[4])
	x := a[1]
	for {
		c, ok := x.(*Cons)
		if !ok {
			th.listArg(x)
			return Nil
		}
		if t.match(a[0], c.car) {
			return c
		}
		x = c.cdr
	}
}

// memberIf finds the first tail whose head satisfies; want says how.
func memberIf(want bool) func(*Thread, []Value) Value {
	return func(th *Thread, a []Value) Value {
		fn := th.fn(a[0])
		t := th.tester(nil, nil, a[2])
		for x := a[1]; ; {
			c, ok := x.(*Cons)
			if !ok {
				th.listArg(x)
				return Nil
			}
			if isTrue(th.call1(fn, t.keyOf(c.car))) == want {
				return c
			}
			x = c.cdr
		}
	}
}

// assoc makes assoc and rassoc.
func assoc(part func(*Cons) Value) func(*Thread, []Value) Value {
	return func(th *Thread, a []Value) Value {
		t := th.tester(a[2], a[3], a[4])
		for x := a[1]; ; {
			c, ok := x.(*Cons)
			if !ok {
				th.listArg(x)
				return Nil
			}
			x = c.cdr
			if c.car == Value(Nil) {
				th.step(1)
				continue
			}
			if p := th.consArg(c.car); t.match(a[0], part(p)) {
				return p
			}
		}
	}
}

func assocIf(part func(*Cons) Value, want bool) func(*Thread, []Value) Value {
	return func(th *Thread, a []Value) Value {
		fn := th.fn(a[0])
		t := th.tester(nil, nil, a[2])
		for _, x := range th.items(a[1]) {
			if x == Value(Nil) {
				continue
			}
			if p := th.consArg(x); isTrue(th.call1(fn, t.keyOf(part(p)))) == want {
				return p
			}
		}
		return Nil
	}
}

func biAdjoin(th *Thread, a []Value) Value {
	t := th.tester(a[2], a[3], a[4])
	k := t.keyOf(a[0])
	for _, x := range th.items(a[1]) {
		if t.match(k, x) {
			return a[1]
		}
	}
	return th.cons(a[0], a[1])
}

// inSet reports whether x's key is among the list's.
func (t *tester) inSet(x Value, set []Value, flip bool) bool {
	k := t.keyOf(x)
	for _, y := range set {
		if flip {
			if t.same(t.keyOf(y), k) {
				return true
			}
		} else if t.match(k, y) {
			return true
		}
	}
	return false
}

func biUnion(th *Thread, a []Value) Value {
	t := th.tester(a[2], a[3], a[4])
	x, y := th.items(a[0]), th.items(a[1])
	result := a[1]
	for _, e := range x {
		if !t.inSet(e, y, false) {
			result = th.cons(e, result)
		}
	}
	return result
}

// pick keeps the elements of the first list that are, or are not, in the
// second, in SBCL's order: last first.
func pick(keep bool) func(*Thread, []Value) Value {
	return func(th *Thread, a []Value) Value {
		t := th.tester(a[2], a[3], a[4])
		y := th.items(a[1])
		var result Value = Nil
		for _, e := range th.items(a[0]) {
			if t.inSet(e, y, false) == keep {
				result = th.cons(e, result)
			}
		}
		return result
	}
}

func biSetXor(th *Thread, a []Value) Value {
	t := th.tester(a[2], a[3], a[4])
	x, y := th.items(a[0]), th.items(a[1])
	var result Value = Nil
	for _, e := range x {
		if !t.inSet(e, y, false) {
			result = th.cons(e, result)
		}
	}
	for _, e := range y {
		if !t.inSet(e, x, true) {
			result = th.cons(e, result)
		}
	}
	return result
}

func biSubsetp(th *Thread, a []Value) Value {
	t := th.tester(a[2], a[3], a[4])
	y := th.items(a[1])
	for _, e := range th.items(a[0]) {
		if !t.inSet(e, y, false) {
			return Nil
		}
	}
	return symT
}

// subst makes the family subst, subst-if and sublis from a replacement rule.
func (th *Thread) substitute(tree Value, replace func(Value) (Value, bool)) Value {
	th.step(1)
	if v, ok := replace(tree); ok {
		return v
	}
	c, ok := tree.(*Cons)
	if !ok {
		return tree
	}
	th.enter(1)
	defer th.leave(1)
	var before []Value // the cars on the way down the list, replaced
	var spine []*Cons
	var tail Value
	for {
		th.alloc(1)
		before = append(before, th.substitute(c.car, replace))
		spine = append(spine, c)
		tail = c.cdr
		th.step(1)
		if v, ok := replace(tail); ok {
			tail = v
			break
		}
		if c, ok = tail.(*Cons); !ok {
			break
		}
	}
	for i := len(spine) - 1; i >= 0; i-- { // what has not changed is shared
		if c := spine[i]; before[i] == c.car && tail == c.cdr {
			tail = c
		} else {
			tail = th.cons(before[i], tail)
		}
	}
	return tail
}

func biSubst(th *Thread, a []Value) Value {
	t := th.tester(a[3], a[4], a[5])
	return th.substitute(a[2], func(x Value) (Value, bool) { return a[0], t.match(a[1], x) })
}

func biSubstIf(th *Thread, a []Value) Value {
	fn := th.fn(a[1])
	t := th.tester(nil, nil, a[3])
	return th.substitute(a[2], func(x Value) (Value, bool) { return a[0], isTrue(th.call1(fn, t.keyOf(x))) })
}

func biSublis(th *Thread, a []Value) Value {
	t := th.tester(a[2], a[3], a[4])
	pairs := th.items(a[0])
	return th.substitute(a[1], func(x Value) (Value, bool) {
		k := t.keyOf(x)
		for _, p := range pairs {
			if c, ok := p.(*Cons); ok && t.same(c.car, k) {
				return c.cdr, true
			}
		}
		return nil, false
	})
}

func biTreeEqual(th *Thread, a []Value) Value {
	t := th.tester(a[2], a[3], nil)
	var same func(x, y Value) bool
	same = func(x, y Value) bool {
		th.enter(1)
		defer th.leave(1)
		for {
			c, ok := x.(*Cons)
			d, ok2 := y.(*Cons)
			if !ok || !ok2 {
				return ok == ok2 && t.same(x, y)
			}
			th.step(1)
			if !same(c.car, d.car) {
				return false
			}
			x, y = c.cdr, d.cdr
		}
	}
	return mkBool(same(a[0], a[1]))
}

func pairCar(c *Cons) Value { return c.car }
func pairCdr(c *Cons) Value { return c.cdr }

var consPrims = []prim{
	{usage: "(car list)", doc: "the first element", fn1: biCar},
	{usage: "(cdr list)", doc: "all but the first element", fn1: biCdr},
	{usage: "(first list)", doc: "the first element", fn1: biCar},
	{usage: "(rest list)", doc: "all but the first element", fn1: biCdr},
	{usage: "(cons car cdr)", doc: "a new pair", fn2: func(th *Thread, x, y Value) Value { return th.cons(x, y) }},
	{
		usage: "(list &rest objects)", doc: "a new list", fn: func(th *Thread, a []Value) Value { return th.newList(a, Nil) },
		fn1: func(th *Thread, x Value) Value { return th.cons(x, Nil) },
	},
	{usage: "(list* object &rest more)", doc: "a new list ending in the last argument", fn: biListStar},
	{usage: "(nth n list)", doc: "element n, counting from 0", fn2: func(th *Thread, n, l Value) Value { return biCar(th, th.nthcdr(th.index(n), l)) }},
	{usage: "(nthcdr n list)", doc: "the list without its first n elements", fn2: func(th *Thread, n, l Value) Value { return th.nthcdr(th.index(n), th.listArg(l)) }},
	{usage: "(append &rest lists)", doc: "a list of all elements; the last list is shared", fn: biAppend},
	{usage: "(nconc &rest lists)", doc: "the lists joined by changing their ends", fn: biNconc},
	{usage: "(revappend list tail)", doc: "the list reversed, in front of tail", fn: func(th *Thread, a []Value) Value {
		tail := a[1]
		for _, x := range th.items(a[0]) {
			tail = th.cons(x, tail)
		}
		return tail
	}},
	{usage: "(nreconc list tail)", doc: "the list reversed, in front of tail", fn: func(th *Thread, a []Value) Value {
		return biAppend(th, []Value{biReverse(th, a[0]), a[1]})
	}},
	{usage: "(make-list size &key initial-element)", doc: "a list of that many elements", fn: func(th *Thread, a []Value) Value {
		n, init := th.index(a[0]), a[1]
		if init == nil {
			init = Nil
		}
		th.alloc(n)
		var l Value = Nil
		for range n {
			l = &Cons{init, l}
		}
		return l
	}},
	{usage: "(last list &optional n)", doc: "the last n conses", fn: biLast},
	{usage: "(butlast list &optional n)", doc: "a copy without the last n elements", fn: biButlast},
	{usage: "(nbutlast list &optional n)", doc: "like BUTLAST", fn: biButlast},
	{usage: "(list-length list)", doc: "the length, NIL for a circular list", fn1: biListLength},
	{usage: "(copy-list list)", doc: "a copy of the list's own conses", fn1: func(th *Thread, x Value) Value {
		b := listBuilder{th: th}
		for c, ok := th.listArg(x).(*Cons); ok; c, ok = x.(*Cons) {
			b.add(c.car)
			x = c.cdr
		}
		return b.end(x)
	}},
	{usage: "(copy-tree tree)", doc: "a copy of all conses", fn1: (*Thread).copyTree},
	{usage: "(copy-alist alist)", doc: "a copy of an association list and its pairs", fn1: func(th *Thread, x Value) Value {
		b := listBuilder{th: th}
		for _, p := range th.items(x) {
			if c, ok := p.(*Cons); ok {
				p = th.cons(c.car, c.cdr)
			}
			b.add(p)
		}
		return b.end(Nil)
	}},
	{usage: "(rplaca cons object)", doc: "set the car", fn2: func(th *Thread, x, y Value) Value { th.mutable(th.consArg(x)).car = y; return x }},
	{usage: "(rplacd cons object)", doc: "set the cdr", fn2: func(th *Thread, x, y Value) Value { th.mutable(th.consArg(x)).cdr = y; return x }},
	{
		usage: "(getf plist indicator &optional default)", doc: "the value of a property", fn: biGetf,
		fn2: func(th *Thread, x, y Value) Value { return biGetf(th, []Value{x, y, nil}) },
	},
	{usage: "(passepartout-kernel:putf plist indicator value)", doc: "plist with a property set", fn: biPutf},
	{usage: "(passepartout-kernel:remf plist indicator)", doc: "plist without a property", fn: biRemf},
	{usage: "(get-properties plist indicators)", doc: "the first property that is one of several", fn: biGetProperties},
	{usage: "(acons key datum alist)", doc: "the alist with a pair in front", fn: biAcons},
	{usage: "(pairlis keys data &optional alist)", doc: "an alist of keys and data", fn: biPairlis},
	{usage: "(ldiff list tail)", doc: "the elements before tail", fn: biLdiff},
	{usage: "(tailp object list)", doc: "true if object is a tail of list", fn: biTailp},
	{usage: "(mapcar function list &rest more)", doc: "the list of results over the elements", fn: mapper(false, "list")},
	{usage: "(mapc function list &rest more)", doc: "call over the elements, return the first list", fn: mapper(false, "")},
	{usage: "(mapcan function list &rest more)", doc: "the results over the elements, joined", fn: mapper(false, "append")},
	{usage: "(maplist function list &rest more)", doc: "the list of results over the tails", fn: mapper(true, "list")},
	{usage: "(mapl function list &rest more)", doc: "call over the tails, return the first list", fn: mapper(true, "")},
	{usage: "(mapcon function list &rest more)", doc: "the results over the tails, joined", fn: mapper(true, "append")},
	{usage: "(member item list &key test test-not key)", doc: "the tail that starts with item", fn: biMember},
	{usage: "(member-if predicate list &key key)", doc: "the tail whose first element satisfies", fn: memberIf(true)},
	{usage: "(member-if-not predicate list &key key)", doc: "the tail whose first element does not satisfy", fn: memberIf(false)},
	{usage: "(assoc item alist &key test test-not key)", doc: "the pair with that car", fn: assoc(pairCar)},
	{usage: "(rassoc item alist &key test test-not key)", doc: "the pair with that cdr", fn: assoc(pairCdr)},
	{usage: "(assoc-if predicate alist &key key)", doc: "the pair whose car satisfies", fn: assocIf(pairCar, true)},
	{usage: "(assoc-if-not predicate alist &key key)", doc: "the pair whose car does not satisfy", fn: assocIf(pairCar, false)},
	{usage: "(rassoc-if predicate alist &key key)", doc: "the pair whose cdr satisfies", fn: assocIf(pairCdr, true)},
	{usage: "(adjoin item list &key test test-not key)", doc: "the list with item in front unless it is there", fn: biAdjoin},
	{usage: "(subsetp list1 list2 &key test test-not key)", doc: "true if every element is in list2", fn: biSubsetp},
	{usage: "(subst new old tree &key test test-not key)", doc: "tree with new in place of old", fn: biSubst},
	{usage: "(nsubst new old tree &key test test-not key)", doc: "like SUBST", fn: biSubst},
	{usage: "(subst-if new predicate tree &key key)", doc: "tree with new where the predicate holds", fn: biSubstIf},
	{usage: "(sublis alist tree &key test test-not key)", doc: "tree with replacements from alist", fn: biSublis},
	{usage: "(nsublis alist tree &key test test-not key)", doc: "like SUBLIS", fn: biSublis},
	{usage: "(tree-equal x y &key test test-not)", doc: "true if trees have the same shape and leaves", fn: biTreeEqual},
}

func listPrims() []prim {
	ps := slices.Clone(consPrims)
	for _, n := range []string{"", "n"} {
		ps = append(ps,
			prim{usage: "(" + n + "union list1 list2 &key test test-not key)", doc: "elements of either list", fn: biUnion},
			prim{usage: "(" + n + "intersection list1 list2 &key test test-not key)", doc: "elements of both lists", fn: pick(true)},
			prim{usage: "(" + n + "set-difference list1 list2 &key test test-not key)", doc: "elements of list1 not in list2", fn: pick(false)},
			prim{usage: "(" + n + "set-exclusive-or list1 list2 &key test test-not key)", doc: "elements of exactly one list", fn: biSetXor})
	}
	for _, p := range []string{"aa", "ad", "da", "dd", "aaa", "aad", "ada", "add", "daa", "dad", "dda", "ddd", "addd", "dddd"} {
		up := make([]byte, len(p))
		for i := range p {
			up[i] = p[i] - 32
		}
		ps = append(ps, prim{usage: "(c" + p + "r list)", doc: "a composition of CAR and CDR", fn1: cxr(string(up))})
	}
	for i, n := range []string{"second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"} {
		ps = append(ps, prim{usage: "(" + n + " list)", doc: "the " + n + " element", fn1: func(th *Thread, x Value) Value {
			return biCar(th, th.nthcdr(i+1, th.listArg(x)))
		}})
	}
	return ps
}
