package lisp

// structOptions are the options of a defstruct.
type structOptions struct {
	name         *Symbol
	conc         string
	constructors []Value // (name) or (name boa-list); nil entries suppress
	copier       *Symbol
	predicate    *Symbol
	include      *class
	overrides    []Value
	printer      Value
	typ          Value
	named        bool
	plain        bool // the default constructor is wanted
}

func (c *compiler) internHere(name string) *Symbol {
	return c.th.intern(name, c.th.currentPackage())
}

// mDefstruct defines a structure: its class now, since accessors are setf
// places for the code that follows, and its functions in the expansion.
func mDefstruct(c *compiler, x *Cons, _ env) Value {
	c.want(x, 1, -1)
	o := c.structOptions(c.nth(x, 1))
	fields := c.th.items(cdr(x.cdr))
	if len(fields) > 0 {
		if _, doc := fields[0].(*Str); doc {
			fields = fields[1:]
		}
	}
	var specs []Value // (name default type read-only)
	if o.include != nil {
		for _, s := range o.include.slots {
			specs = append(specs, c.inherited(&o, s))
		}
	}
	for _, f := range fields {
		specs = append(specs, c.fieldSpec(f))
	}
	super := Value(Nil)
	if o.include != nil {
		super = o.include.name
	}
	out := []Value{symProgn, list(symDefstructK, quoted(o.name), quoted(super), quoted(list(specs...)),
		listTo(c.slotThunks(specs), symList), o.typeForm(), quoted(newStr(o.conc)))}
	for _, con := range o.constructors {
		out = append(out, c.constructor(&o, con, specs))
	}
	out = append(out, list(symDefstructFns, quoted(o.name), quoted(newStr(o.conc)), quoted(symOrNil(o.copier)), quoted(symOrNil(o.predicate))))
	if o.printer != nil {
		out = append(out, list(symSetPrinter, quoted(o.name), list(symFunction, o.printer)))
	}
	return list(append(out, quoted(o.name))...)
}

func symOrNil(s *Symbol) Value {
	if s == nil {
		return Nil
	}
	return s
}

func (o *structOptions) typeForm() Value {
	if o.typ == nil {
		return Nil
	}
	return quoted(list(o.typ, mkBool(o.named)))
}

func (c *compiler) inherited(o *structOptions, s slot) Value {
	for _, ov := range o.overrides {
		spec := c.fieldSpec(ov)
		if car(spec) == Value(s.name) {
			return spec
		}
	}
	def := Value(Nil)
	if s.init != nil {
		def = list(symFuncall, s.init)
	}
	return list(s.name, def, s.typ2(), mkBool(s.fixed))
}

func (s *slot) typ2() Value {
	if s.typ == nil {
		return symT
	}
	return s.typ
}

// fieldSpec normalises a slot description to (name default type read-only).
func (c *compiler) fieldSpec(f Value) Value {
	l, ok := f.(*Cons)
	if !ok {
		return list(c.symbol(f, "defstruct slot"), Nil, symT, Nil)
	}
	typ, fixed := Value(symT), Value(Nil)
	rest := cdr(cdr(l))
	for rest != Value(Nil) {
		c.th.step(1)
		switch c.symbol(car(rest), "defstruct slot option").name {
		case "TYPE":
			typ = car(cdr(rest))
		case "READ-ONLY":
			fixed = car(cdr(rest))
		}
		rest = cdr(cdr(rest))
	}
	return list(c.symbol(l.car, "defstruct slot"), car(l.cdr), typ, fixed)
}

func (c *compiler) slotThunks(specs []Value) Value {
	var out []Value
	for _, s := range specs {
		out = append(out, list(symFunction, list(symLambda, Nil, car(cdr(s)))))
	}
	return list(out...)
}

func (c *compiler) structOptions(spec Value) structOptions {
	o := structOptions{plain: true}
	var opts []Value
	if l, ok := spec.(*Cons); ok {
		spec = l.car
		opts = c.th.items(l.cdr)
	}
	o.name = c.symbol(spec, "defstruct")
	o.conc = o.name.name + "-"
	o.copier = c.internHere("COPY-" + o.name.name)
	o.predicate = c.internHere(o.name.name + "-P")
	for _, opt := range opts {
		words := []Value{opt}
		if _, ok := opt.(*Cons); ok {
			words = c.th.items(opt)
		}
		c.structOption(&o, c.symbol(words[0], "defstruct option").name, words[1:], len(words))
	}
	if o.typ != nil && !o.named {
		o.predicate = nil
	}
	if o.plain {
		o.constructors = append(o.constructors, list(c.internHere("MAKE-"+o.name.name)))
	}
	return o
}

func (c *compiler) structOption(o *structOptions, name string, args []Value, n int) {
	arg := Value(Nil)
	if len(args) > 0 {
		arg = args[0]
	}
	switch name {
	case "CONC-NAME":
		o.conc = ""
		if n > 1 && arg != Value(Nil) {
			o.conc = c.th.designated(arg).text()
		}
	case "CONSTRUCTOR":
		if n == 1 {
			return
		}
		o.plain = false
		if arg != Value(Nil) {
			o.constructors = append(o.constructors, list(args...))
		}
	case "COPIER":
		if n > 1 {
			o.copier, _ = arg.(*Symbol)
			if o.copier == Nil {
				o.copier = nil
			}
		}
	case "PREDICATE":
		if n > 1 {
			o.predicate, _ = arg.(*Symbol)
			if o.predicate == Nil {
				o.predicate = nil
			}
		}
	case "INCLUDE":
		k := c.th.cell(c.symbol(arg, "defstruct include")).class
		if k == nil || k.kind != kindStructure {
			c.bad("defstruct: %s is no structure to include", c.th.show(arg))
		}
		o.include, o.overrides = k, args[1:]
	case "PRINT-FUNCTION", "PRINT-OBJECT":
		if n > 1 {
			o.printer = arg
			if name == "PRINT-FUNCTION" {
				obj, str := c.th.gensym("OBJECT"), c.th.gensym("STREAM")
				o.printer = list(symLambda, list(obj, str), list(symFuncall, list(symFunction, arg), obj, str, Int(0)))
			}
		}
	case "TYPE":
		o.typ = arg
	case "NAMED":
		o.named = true
	}
}

// constructor defines one constructor: by keywords or by position.
func (c *compiler) constructor(o *structOptions, con Value, specs []Value) Value {
	name := car(con)
	var params, values []Value
	if cdr(con) == Value(Nil) {
		params = []Value{symKey}
		for _, s := range specs {
			params = append(params, list(car(s), car(cdr(s))))
			values = append(values, car(s))
		}
		return list(symDefunM, name, list(params...), listTo(listTo(Nil, values...), symMakeStruct, quoted(o.name)))
	}
	p := c.parseParams(car(cdr(con)), false)
	given := map[Value]bool{}
	for _, r := range p.req {
		given[r] = true
	}
	for _, g := range [][]paramSpec{p.opt, p.keys, p.aux} {
		for _, s := range g {
			given[s.name] = true
		}
	}
	if p.rest != nil {
		given[p.rest] = true
	}
	for _, s := range specs {
		if given[car(s)] {
			values = append(values, car(s))
		} else {
			values = append(values, car(cdr(s)))
		}
	}
	boa := c.boaList(car(cdr(con)), specs)
	return list(symDefunM, name, boa, listTo(listTo(Nil, values...), symMakeStruct, quoted(o.name)))
}

// boaList gives &optional and &key parameters without a default the slot's.
func (c *compiler) boaList(params Value, specs []Value) Value {
	var out []Value
	mode := symT
	for _, p := range c.th.items(params) {
		switch p {
		case symOptional, symKey, symAux, symRest:
			mode = p.(*Symbol)
			out = append(out, p)
			continue
		}
		if s, ok := p.(*Symbol); ok && (mode == symOptional || mode == symKey) {
			for _, spec := range specs {
				if car(spec) == Value(s) {
					p = list(s, car(cdr(spec)))
				}
			}
		}
		out = append(out, p)
	}
	return list(out...)
}

func (th *Thread) classArg(v Value) *class {
	switch x := v.(type) {
	case *class:
		return x
	case *Symbol:
		if k := th.cell(x).class; k != nil {
			return k
		}
		th.raise(th.condition(classCellError, "There is no class named "+th.show(v)+".", symName, v))
	}
	th.typeError(v, symClassType)
	return nil
}

// biDefstruct makes the class: (name super specs thunks type conc).
func biDefstruct(th *Thread, a []Value) Value {
	name := th.symbolArg(a[0])
	th.definable(name)
	k := &class{name: name, kind: kindStructure, supers: []*class{classStructure}, conc: a[5].(*Str).text()}
	if a[1] != Value(Nil) {
		k.supers = []*class{th.classArg(a[1])}
	}
	if c, ok := a[4].(*Cons); ok {
		k.typ = c
	}
	thunks := th.items(a[3])
	for i, s := range th.items(a[2]) {
		parts := th.items(s)
		n := parts[0].(*Symbol)
		k.slots = append(k.slots, slot{name: n, args: []*Symbol{th.keyword(n.name)}, init: thunks[i].(*Function), typ: parts[2], fixed: isTrue(parts[3])})
	}
	own := k.slots
	k.slots = nil
	th.chargeClass(k)
	k.linearise()
	k.slots = own
	th.own(name).class = k
	return name
}

// biDefstructFns defines accessors, copier and predicate.
func biDefstructFns(th *Thread, a []Value) Value {
	k := th.classArg(a[0])
	conc := a[1].(*Str).text()
	pkg := th.currentPackage()
	for i := range k.slots {
		s := k.slots[i]
		acc := th.intern(conc+s.name.name, pkg)
		if inheritedAccessor(k, i, acc, th) {
			continue
		}
		th.setFunction(acc, structReader(k, i, acc))
		if !s.fixed {
			th.setFunction(list(symSetf, acc), structWriter(k, i, acc))
		}
	}
	if c := th.symbolArg(a[2]); c != Nil {
		th.setFunction(c, onePrim(c, "structure", func(th *Thread, x Value) Value {
			if k.typ != nil {
				return th.like(x, th.seq(x))
			}
			in := th.structArg(x, k)
			n := th.newInstance(in.class)
			copy(n.slots, th.inst(in).slots)
			return n
		}))
	}
	if p := th.symbolArg(a[3]); p != Nil {
		th.setFunction(p, onePrim(p, "object", func(th *Thread, x Value) Value {
			if k.typ != nil {
				return mkBool(firstOf(th, x) == Value(k.name))
			}
			in, ok := x.(*instance)
			return mkBool(ok && in.class.is(k))
		}))
	}
	return Nil
}

func firstOf(th *Thread, x Value) Value {
	switch v := x.(type) {
	case *Cons:
		return v.car
	case *array:
		if l := th.arr(v).live(); len(l) > 0 {
			return l[0]
		}
	}
	return Nil
}

// inheritedAccessor reports whether the accessor is the included structure's.
func inheritedAccessor(k *class, i int, acc *Symbol, th *Thread) bool {
	super := k.supers[0]
	return super.kind == kindStructure && i < len(super.slots) && super.conc == k.conc && th.cell(acc).fn != nil
}

func onePrim(name *Symbol, arg string, fn func(*Thread, Value) Value) *Function {
	p := &prim{name: name, usage: "(" + name.name + " " + arg + ")", doc: "of a structure", req: 1, fn1: fn}
	p.fn = func(th *Thread, a []Value) Value { return fn(th, a[0]) }
	return &Function{name: name, prim: p}
}

func (th *Thread) structArg(x Value, k *class) *instance {
	in, ok := x.(*instance)
	if !ok || !in.class.is(k) {
		th.typeError(x, k.name)
	}
	return in
}

// typedIndex is the place of slot i in a structure that is only a sequence.
func (k *class) typedIndex(i int) int {
	if isTrue(car(cdr(k.typ))) {
		return i + 1
	}
	return i
}

func structReader(k *class, i int, acc *Symbol) *Function {
	return onePrim(acc, "structure", func(th *Thread, x Value) Value {
		if k.typ != nil {
			return biElt(th, x, Int(k.typedIndex(i)))
		}
		in, ok := x.(*instance)
		if !ok || in.class != k && !in.class.is(k) {
			th.typeError(x, k.name)
		}
		return th.inst(in).slots[i]
	})
}

func structWriter(k *class, i int, acc *Symbol) *Function {
	p := &prim{name: acc, usage: "((setf " + acc.name + ") value structure)", doc: "of a structure", req: 2}
	p.fn = func(th *Thread, a []Value) Value {
		if k.typ != nil {
			return biSetElt(th, []Value{a[1], Int(k.typedIndex(i)), a[0]})
		}
		in := th.structArg(a[1], k)
		if t := k.slots[i].typ; t != nil && t != Value(symT) && !th.typep(a[0], t) {
			th.typeError(a[0], t)
		}
		th.instToChange(in).slots[i] = a[0]
		return a[0]
	}
	return &Function{name: list(symSetf, acc), prim: p}
}

// biMakeStruct: (make-struct class . slot values)
func biMakeStruct(th *Thread, a []Value) Value {
	k := th.classArg(a[0])
	if k.typ != nil {
		var vals []Value
		if isTrue(car(cdr(k.typ))) {
			vals = append(vals, k.name)
		}
		return th.coerceSeq(append(vals, a[1:]...), car(k.typ))
	}
	in := th.newInstance(k)
	for i, v := range a[1:] {
		if t := k.slots[i].typ; t != nil && t != Value(symT) && !th.typep(v, t) {
			th.typeError(v, t)
		}
		in.slots[i] = v
	}
	return in
}
