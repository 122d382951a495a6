package lisp

import "strings"

// setter is how a place is stored into: a (setf name) function, the short form
// of defsetf, or its long form.
type setter struct {
	fn     *Function
	update *Symbol
	expand *Function // of the place's arguments and the store variable
}

func (th *Thread) setfFunction(s *Symbol) *Function {
	if st := th.cell(s).setter; st != nil && st.fn != nil {
		return st.fn
	}
	th.undefinedFunction(list(symSetf, s))
	return nil
}

// storeTable says which function stores into a builtin place: it is called
// with the place's arguments and then the value, and returns the value.
func storeTable() map[*Symbol]*Symbol {
	t := map[*Symbol]*Symbol{
		symCar: kernel("SET-CAR"), symCdr: kernel("SET-CDR"), sym("FIRST"): kernel("SET-CAR"), sym("REST"): kernel("SET-CDR"),
		sym("NTH"): kernel("SET-NTH"), symAref: kernel("STORE-AREF"), sym("SVREF"): kernel("STORE-AREF"), sym("CHAR"): kernel("STORE-AREF"),
		sym("SCHAR"): kernel("STORE-AREF"), sym("BIT"): kernel("STORE-AREF"), sym("SBIT"): kernel("STORE-AREF"), sym("ELT"): kernel("SET-ELT"),
		sym("ROW-MAJOR-AREF"): kernel("SET-ROW-MAJOR"), symGethash: kernel("STORE-HASH"), sym("SYMBOL-VALUE"): symSet,
		sym("SYMBOL-FUNCTION"): kernel("SET-FDEFINITION"), sym("FDEFINITION"): kernel("SET-FDEFINITION"), sym("SYMBOL-PLIST"): kernel("SET-PLIST"),
		sym("MACRO-FUNCTION"): kernel("SET-MACRO-FUNCTION"), sym("GET"): kernel("STORE-PROPERTY"), sym("FILL-POINTER"): kernel("SET-FILL-POINTER"),
		sym("SLOT-VALUE"): kernel("SET-SLOT-VALUE"), sym("DOCUMENTATION"): kernel("SET-DOCUMENTATION"), sym("SUBSEQ"): kernel("SET-SUBSEQ"),
	}
	for _, n := range []string{"SECOND", "THIRD", "FOURTH", "FIFTH", "SIXTH", "SEVENTH", "EIGHTH", "NINTH", "TENTH"} {
		t[sym(n)] = kernel("SET-" + n)
	}
	return t
}

// expandPlace expands macros until the place is a variable or a call the
// store forms know.
func (c *compiler) expandPlace(p Value, e env) Value {
	for {
		l, ok := p.(*Cons)
		if ok {
			if s, isSym := l.car.(*Symbol); isSym && (c.th.img.stores[s] != nil || c.th.cell(s).setter != nil) && c.find(e.funs, s) == nil {
				return p
			}
		}
		c.th.step(1)
		q, expanded := c.macroexpand1(p, e)
		if !expanded {
			return p
		}
		p = q
	}
}

// store returns a form that puts the value of val in a place and returns it.
func (c *compiler) storeForm(place, val Value, e env) Value {
	place = c.expandPlace(place, e)
	l, ok := place.(*Cons)
	if !ok {
		return list(symSetq, c.symbol(place, "setf"), val)
	}
	head := c.symbol(l.car, "setf")
	args := c.th.items(l.cdr)
	least := map[*Symbol]int{symGetf: 2, symThe: 2, symProgn: 1}[head]
	if len(args) < least {
		c.bad("setf: the place %s has too few parts", c.th.show(place))
	}
	switch head {
	case symGetf:
		return c.storeGetf(args, val, e)
	case symValues:
		return c.storeValues(args, val)
	case symThe:
		return c.storeForm(args[1], list(symThe, args[0], val), e)
	case symGethash:
		if len(args) > 2 {
			args = args[:2]
		}
	case symProgn:
		return list(symProgn, list(append([]Value{symProgn}, args[:len(args)-1]...)...), c.storeForm(args[len(args)-1], val, e))
	}
	if len(args) == 1 && strings.HasPrefix(head.name, "C") && strings.HasSuffix(head.name, "R") && len(head.name) > 3 &&
		strings.Trim(head.name[1:len(head.name)-1], "AD") == "" && head.pkg == clPackage {
		outer := map[byte]*Symbol{'A': symCar, 'D': symCdr}[head.name[1]]
		inner := sym("C" + head.name[2:])
		return c.storeForm(list(outer, list(inner, args[0])), val, e)
	}
	if s := c.th.img.stores[head]; s != nil {
		return listTo(list(val), append([]Value{s}, args...)...)
	}
	return c.storeUser(head, args, val)
}

// storeUser stores through defsetf or a setf function.
func (c *compiler) storeUser(head *Symbol, args []Value, val Value) Value {
	st := c.th.cell(head).setter
	switch {
	case st != nil && st.update != nil:
		return listTo(list(val), append([]Value{st.update}, args...)...)
	case st != nil && st.expand != nil:
		var binds, temps []Value
		for _, a := range args {
			t := Value(c.th.gensym("ARG"))
			temps = append(temps, t)
			binds = append(binds, list(t, a))
		}
		store := Value(c.th.gensym("STORE"))
		form := c.th.one(c.th.apply(st.expand, append([]Value{store}, temps...)))
		return list(symLetStar, list(append(binds, list(store, val))...), form)
	}
	return listTo(list(val), append([]Value{symCallSetf, list(symFunction, list(symSetf, head))}, args...)...)
}

func (c *compiler) storeGetf(args []Value, val Value, e env) Value {
	binds, inner := c.stable(args[0], e)
	ind, v := Value(c.th.gensym("KEY")), Value(c.th.gensym("VALUE"))
	binds = append(binds, list(ind, args[1]), list(v, val))
	return list(symLetStar, list(binds...), c.storeForm(inner, list(symPutf, inner, ind, v), e), v)
}

func (c *compiler) storeValues(places []Value, val Value) Value {
	var temps, sets []Value
	for _, p := range places {
		t := Value(c.th.gensym("VALUE"))
		temps = append(temps, t)
		sets = append(sets, list(symSetf, p, t))
	}
	return listTo(listTo(list(listTo(listTo(Nil, temps...), symValues)), sets...), symMVBind, list(temps...), val)
}

// stable returns bindings that evaluate a place's subforms once, and the place
// in terms of them.
func (c *compiler) stable(place Value, e env) ([]Value, Value) {
	place = c.expandPlace(place, e)
	l, ok := place.(*Cons)
	if !ok {
		return nil, place
	}
	args := c.th.items(l.cdr)
	if l.car == Value(symGetf) && len(args) >= 2 {
		binds, inner := c.stable(args[0], e)
		more, rest := c.temps(args[1:])
		return append(binds, more...), listTo(listTo(Nil, rest...), l.car, inner)
	}
	if l.car == Value(symThe) && len(args) == 2 {
		binds, inner := c.stable(args[1], e)
		return binds, list(l.car, args[0], inner)
	}
	binds, out := c.temps(args)
	return binds, listTo(listTo(Nil, out...), l.car)
}

// temps binds the arguments that are more than a constant or a variable.
func (c *compiler) temps(args []Value) (binds, out []Value) {
	for _, a := range args {
		l, isForm := a.(*Cons)
		if !isForm || l.car == Value(symQuote) || l.car == Value(symFunction) {
			out = append(out, a)
			continue
		}
		t := Value(c.th.gensym("ARG"))
		binds = append(binds, list(t, a))
		out = append(out, t)
	}
	return binds, out
}

func letStar(binds []Value, body ...Value) Value {
	if len(binds) == 0 {
		return prognOf(body)
	}
	return listTo(listTo(Nil, body...), symLetStar, list(binds...))
}

func mSetf(c *compiler, x *Cons, e env) Value {
	forms := c.formsOf(x)
	if len(forms)%2 != 0 {
		c.bad("setf: odd number of parts")
	}
	if len(forms) == 0 {
		return Nil
	}
	var out []Value
	for i := 0; i < len(forms); i += 2 {
		out = append(out, c.storeForm(forms[i], forms[i+1], e))
	}
	return prognOf(out)
}

func mPsetf(c *compiler, x *Cons, e env) Value {
	forms := c.formsOf(x)
	if len(forms)%2 != 0 {
		c.bad("psetf: odd number of parts")
	}
	var binds, sets []Value
	for i := 0; i < len(forms); i += 2 {
		more, p := c.stable(forms[i], e)
		t := Value(c.th.gensym("NEW"))
		binds = append(append(binds, more...), list(t, forms[i+1]))
		sets = append(sets, list(symSetf, p, t))
	}
	return letStar(binds, append(sets, Nil)...)
}

func mIncf(c *compiler, x *Cons, e env, op *Symbol) Value {
	c.want(x, 1, 2)
	binds, p := c.stable(c.nth(x, 1), e)
	delta := Value(Int(1))
	if cdr(x.cdr) != Value(Nil) {
		delta = c.nth(x, 2)
	}
	if _, form := delta.(*Cons); form || len(binds) > 0 {
		// The delta is evaluated before the place is read.
		t := Value(c.th.gensym("DELTA"))
		binds = append(binds, list(t, delta))
		delta = t
	}
	return letStar(binds, c.storeForm(p, list(op, p, delta), e))
}

func mPush(c *compiler, x *Cons, e env) Value {
	c.want(x, 2, 2)
	binds, p := c.stable(c.nth(x, 2), e)
	item := c.nth(x, 1)
	if len(binds) > 0 {
		t := Value(c.th.gensym("ITEM"))
		binds = append([]Value{list(t, item)}, binds...)
		item = t
	}
	return letStar(binds, c.storeForm(p, list(symCons, item, p), e))
}

func mPop(c *compiler, x *Cons, e env) Value {
	c.want(x, 1, 1)
	binds, p := c.stable(c.nth(x, 1), e)
	t := Value(c.th.gensym("LIST"))
	binds = append(binds, list(t, p))
	return letStar(binds, c.storeForm(p, list(symCdr, t), e), list(symCar, t))
}

func mPushnew(c *compiler, x *Cons, e env) Value {
	c.want(x, 2, -1)
	t := Value(c.th.gensym("ITEM"))
	binds, p := c.stable(c.nth(x, 2), e)
	binds = append([]Value{list(t, c.nth(x, 1))}, binds...)
	keys := c.th.items(cdr(cdr(x.cdr)))
	return letStar(binds, c.storeForm(p, listTo(listTo(Nil, keys...), symAdjoin, t, p), e))
}

func mRemf(c *compiler, x *Cons, e env) Value {
	c.want(x, 2, 2)
	binds, p := c.stable(c.nth(x, 1), e)
	l, had := Value(c.th.gensym("PLIST")), Value(c.th.gensym("HAD"))
	return letStar(binds, list(symMVBind, list(l, had), list(symRemfK, p, c.nth(x, 2)), c.storeForm(p, l, e), had))
}

func mShiftf(c *compiler, x *Cons, e env) Value {
	c.want(x, 2, -1)
	forms := c.formsOf(x)
	var binds, places, olds []Value
	for _, f := range forms[:len(forms)-1] {
		more, p := c.stable(f, e)
		t := Value(c.th.gensym("OLD"))
		binds = append(append(binds, more...), list(t, p))
		places, olds = append(places, p), append(olds, t)
	}
	last := Value(c.th.gensym("NEW"))
	binds = append(binds, list(last, forms[len(forms)-1]))
	var sets []Value
	for i, p := range places {
		v := last
		if i+1 < len(olds) {
			v = olds[i+1]
		}
		sets = append(sets, c.storeForm(p, v, e))
	}
	return letStar(binds, append(sets, olds[0])...)
}

func mRotatef(c *compiler, x *Cons, e env) Value {
	forms := c.formsOf(x)
	if len(forms) < 2 {
		return prognOf(append(forms, Nil))
	}
	var binds, places, olds, sets []Value
	for _, f := range forms {
		more, p := c.stable(f, e)
		t := Value(c.th.gensym("OLD"))
		binds = append(append(binds, more...), list(t, p))
		places, olds = append(places, p), append(olds, t)
	}
	for i, p := range places {
		sets = append(sets, c.storeForm(p, olds[(i+1)%len(olds)], e))
	}
	return letStar(binds, append(sets, Nil)...)
}

// mDefsetf: (defsetf name update) or (defsetf name lambda-list (store) body…).
func mDefsetf(c *compiler, x *Cons, _ env) Value {
	c.want(x, 2, -1)
	name := quoted(c.symbol(c.nth(x, 1), "defsetf"))
	if s, ok := c.nth(x, 2).(*Symbol); ok && s != Nil {
		return list(symDefsetfK, name, quoted(s), Nil)
	}
	stores := c.th.items(c.nth(x, 3))
	if len(stores) != 1 {
		c.bad("defsetf: want one store variable")
	}
	params := cons(stores[0], c.nth(x, 2))
	fn := listTo(cdr(cdr(cdr(x.cdr))), symLambda, params)
	return list(symDefsetfK, name, Nil, list(symFunction, fn))
}

// storePrims are the functions places are stored with.
func storePrims() []prim {
	ps := []prim{
		{usage: "(passepartout-kernel:set-car cons value)", doc: "store", fn2: func(th *Thread, x, v Value) Value { th.mutable(th.consArg(x)).car = v; return v }},
		{usage: "(passepartout-kernel:set-cdr cons value)", doc: "store", fn2: func(th *Thread, x, v Value) Value { th.mutable(th.consArg(x)).cdr = v; return v }},
		{usage: "(passepartout-kernel:set-nth n list value)", doc: "store", fn: func(th *Thread, a []Value) Value {
			th.mutable(th.consArg(th.nthcdr(th.index(a[0]), a[1]))).car = a[2]
			return a[2]
		}},
		{usage: "(passepartout-kernel:store-aref array &rest more)", doc: "store", fn: func(th *Thread, a []Value) Value {
			th.setAref(a[0], a[1:len(a)-1], a[len(a)-1])
			return a[len(a)-1]
		}},
		{usage: "(passepartout-kernel:set-row-major array index value)", doc: "store", fn: func(th *Thread, a []Value) Value {
			if v, ok := a[0].(*array); ok {
				v = th.arrToChange(v)
				v.items[th.inRange(a[1], len(v.items))] = a[2]
				return a[2]
			}
			th.setAref(a[0], a[1:2], a[2])
			return a[2]
		}},
		{usage: "(passepartout-kernel:store-hash key table value)", doc: "store", fn: func(th *Thread, a []Value) Value {
			th.put(th.tableToChange(th.tableArg(a[1])), a[0], a[2])
			return a[2]
		}},
		{usage: "(passepartout-kernel:set-subseq sequence start &rest more)", doc: "store", fn: func(th *Thread, a []Value) Value {
			val := a[len(a)-1]
			var end Value
			if len(a) > 3 {
				end = a[2]
			}
			i, j := th.bounds(a[1], end, len(th.seq(a[0])))
			src := th.seq(val)
			th.storeSeq(a[0], i, append([]Value(nil), src[:min(len(src), j-i)]...))
			return val
		}},
		{usage: "(passepartout-kernel:call-setf function &rest arguments)", doc: "call a setf function", fn: func(th *Thread, a []Value) Value {
			n := len(a) - 1
			args := append([]Value{a[n]}, a[1:n]...)
			return th.apply(th.fn(a[0]), args)
		}},
	}
	for i, n := range []string{"second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"} {
		ps = append(ps, prim{usage: "(passepartout-kernel:set-" + n + " list value)", doc: "store", fn2: func(th *Thread, x, v Value) Value {
			th.mutable(th.consArg(th.nthcdr(i+1, x))).car = v
			return v
		}})
	}
	return ps
}
