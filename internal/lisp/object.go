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

// mDefclass: (defclass name (supers) (slots) options…)
func mDefclass(c *compiler, x *Cons, _ env) Value {
	c.want(x, 3, -1)
	return c.classForm(x, "STANDARD")
}

func mDefineCondition(c *compiler, x *Cons, _ env) Value {
	c.want(x, 3, -1)
	return c.classForm(x, "CONDITION")
}

// classForm defines a class, its slots' initial values as functions, and its
// accessors.
func (c *compiler) classForm(x *Cons, kind string) Value {
	name := c.symbol(c.nth(x, 1), "class")
	var slots, accessors []Value
	for _, s := range c.th.items(c.nth(x, 3)) {
		words := []Value{s}
		if _, ok := s.(*Cons); ok {
			words = c.th.items(s)
		}
		slot := words[0]
		var args []Value
		init := Value(Nil)
		for i := 1; i+1 < len(words); i += 2 {
			v := words[i+1]
			switch c.symbol(words[i], "slot option").name {
			case "INITARG":
				args = append(args, v)
			case "INITFORM":
				init = list(symFunction, list(symLambda, Nil, v))
			case "READER":
				accessors = append(accessors, list(symDefReader, quoted(v), quoted(slot), quoted(name)))
			case "WRITER":
				accessors = append(accessors, list(symDefWriter, quoted(v), quoted(slot), quoted(name)))
			case "ACCESSOR":
				accessors = append(accessors, list(symDefReader, quoted(v), quoted(slot), quoted(name)),
					list(symDefWriter, quoted(list(symSetf, v)), quoted(slot), quoted(name)))
			}
		}
		slots = append(slots, list(symList, quoted(slot), quoted(list(args...)), init))
	}
	report, defaults := Value(Nil), Value(Nil)
	for _, o := range c.th.items(cdr(cdr(cdr(x.cdr)))) {
		switch c.symbol(car(o), "class option").name {
		case "REPORT":
			report = car(cdr(o))
			if _, str := report.(*Str); !str {
				report = list(symFunction, report)
			}
		case "DEFAULT-INITARGS":
			defaults = c.defaultArgs(c.th.items(cdr(o)))
		}
	}
	def := list(symDefclassK, quoted(name), quoted(c.nth(x, 2)), listTo(listTo(Nil, slots...), symList), quoted(c.th.keyword(kind)), report, defaults)
	return list(append(append([]Value{symProgn, def}, accessors...), quoted(name))...)
}

func (c *compiler) defaultArgs(words []Value) Value {
	out := []Value{symList}
	for i := 0; i+1 < len(words); i += 2 {
		out = append(out, quoted(words[i]), list(symFunction, list(symLambda, Nil, words[i+1])))
	}
	return list(out...)
}

// biDefclass: (name supers slots kind report defaults)
func biDefclass(th *Thread, a []Value) Value {
	name := th.symbolArg(a[0])
	th.definable(name)
	k := &class{name: name, kind: kindStandard}
	root := classStandard
	if th.symbolArg(a[3]).name == "CONDITION" {
		k.kind, root = kindCondition, classCondition
	}
	for _, s := range th.items(a[1]) {
		k.supers = append(k.supers, th.classArg(s))
	}
	if len(k.supers) == 0 {
		k.supers = []*class{root}
	}
	for _, s := range th.items(a[2]) {
		parts := th.items(s)
		sl := slot{name: th.symbolArg(parts[0]), args: th.symbolsOf(parts[1])}
		if f, ok := parts[2].(*Function); ok {
			sl.init = f
		}
		k.slots = append(k.slots, sl)
	}
	for _, s := range k.supers {
		k.defaults = append(k.defaults, s.defaults...)
	}
	defaults := th.items(a[5])
	for i := 0; i+1 < len(defaults); i += 2 {
		k.defaults = append([]paramSpec{{key: th.symbolArg(defaults[i]), name: defaults[i+1]}}, k.defaults...)
	}
	switch r := a[4].(type) {
	case *Str:
		k.message = r.text()
	case *Function:
		k.report = r
	}
	k.linearise()
	th.own(name).class = k
	return k
}

// makeInstance makes an object from initargs, defaults and initforms.
func (th *Thread) makeInstance(k *class, args []Value) *instance {
	if len(args)%2 != 0 {
		th.fail(classProgramError, "odd number of initargs for %s", k.name.name)
	}
	in := th.newInstance(k)
	for i := 0; i < len(args); i += 2 {
		if !th.initarg(in, args[i], args[i+1]) && args[i] != Value(keyAllow) {
			th.fail(classProgramError, "invalid initialization argument %s for class %s", th.show(args[i]), k.name.name)
		}
	}
	for _, d := range k.defaults {
		given := false
		for i := 0; i < len(args); i += 2 {
			given = given || args[i] == Value(d.key)
		}
		if !given {
			th.initarg(in, d.key, th.call(d.name.(*Function)))
		}
	}
	for i := range k.slots {
		if in.slots[i] == nil && k.slots[i].init != nil {
			in.slots[i] = th.call(k.slots[i].init)
		}
	}
	return in
}

// initarg stores an initarg in its slots; the first one given wins.
func (th *Thread) initarg(in *instance, k, v Value) bool {
	found := false
	for i := range in.class.slots {
		for _, a := range in.class.slots[i].args {
			if Value(a) == k {
				found = true
				if in.slots[i] == nil {
					in.slots[i] = v
				}
			}
		}
	}
	return found
}

func (th *Thread) slotOf(x, name Value) (*instance, int) {
	in, ok := x.(*instance)
	if !ok {
		th.fail(classSimpleError, "%s has no slot named %s", th.show(x), th.show(name))
	}
	i := in.class.slot(name)
	if i < 0 {
		th.fail(classSimpleError, "When attempting to read the slot's value (slot-value), the slot %s is missing from the object %s.", th.show(name), th.show(x))
	}
	return in, i
}

func biSlotValue(th *Thread, x, name Value) Value {
	in, i := th.slotOf(x, name)
	v := th.inst(in).slots[i]
	if v == nil {
		th.raise(th.condition(classUnboundSlot, "The slot "+th.show(name)+" is unbound in the object "+th.show(x)+".", symName, name, symInstance, x))
	}
	return v
}

// generic is a generic function: methods chosen by the classes of all
// required arguments.
type generic struct {
	name    Value
	methods []*method
	list    Value
}

type method struct {
	qualifier string
	specs     []Value // a *class, or (EQL object)
	fn        *Function
}

// mDefgeneric: (defgeneric name lambda-list options…); methods may be inline.
func mDefgeneric(c *compiler, x *Cons, _ env) Value {
	c.want(x, 2, -1)
	name := c.nth(x, 1)
	out := []Value{symProgn, list(symDefgenericK, quoted(name), quoted(c.nth(x, 2)))}
	for _, o := range c.th.items(cdr(cdr(x.cdr))) {
		if s, ok := car(o).(*Symbol); ok && s.name == "METHOD" {
			out = append(out, listTo(cdr(o), symDefmethodM, name))
		}
	}
	return list(append(out, list(symFunction, name))...)
}

// mDefmethod: the method is a function of the next method, a test whether
// there is one, and the arguments.
func mDefmethod(c *compiler, x *Cons, _ env) Value {
	c.want(x, 2, -1)
	words := c.formsOf(x)
	name := words[0]
	words = words[1:]
	qualifier := ""
	for len(words) > 0 {
		s, ok := words[0].(*Symbol)
		if !ok || s == Nil {
			break
		}
		qualifier = s.name
		words = words[1:]
	}
	if len(words) == 0 {
		c.bad("defmethod: want a lambda list")
	}
	var params, specs []Value
	required := true
	for _, p := range c.th.items(words[0]) {
		if s, ok := p.(*Symbol); ok && len(s.name) > 0 && s.name[0] == '&' {
			required = false
		}
		if l, ok := p.(*Cons); ok && required {
			params = append(params, l.car)
			spec := car(l.cdr)
			if e, ok := spec.(*Cons); ok && e.car == Value(symEql) {
				specs = append(specs, list(symList, quoted(symEql), car(e.cdr)))
			} else {
				specs = append(specs, quoted(spec))
			}
			continue
		}
		if required {
			specs = append(specs, quoted(symT))
		}
		params = append(params, p)
	}
	for i, p := range params {
		// The generic function accepts the keys of all its methods.
		if p == Value(symKey) {
			at := len(params)
			for j := i; j < len(params); j++ {
				if params[j] == Value(symAux) || params[j] == Value(symAllow) {
					at = j
					break
				}
			}
			if at == len(params) || params[at] != Value(symAllow) {
				params = append(params[:at:at], append([]Value{symAllow}, params[at:]...)...)
			}
			break
		}
	}
	next, args := Value(c.th.gensym("NEXT")), Value(c.th.gensym("ARGS"))
	parts := c.body(list(words[1:]...), true)
	body := listTo(listTo(Nil, parts.forms...), symBlock, blockName(name))
	more := Value(c.th.gensym("MORE"))
	inner := list(symFlet, list(
		list(symCallNext, list(symRest, more), list(symNextCall, next, list(symOr, more, args))),
		list(symNextP, Nil, list(symNot, list(symNull, next)))), body)
	fn := list(symFunction, list(symLambda, list(next, args), list(symApply,
		list(symFunction, listTo(list(inner), symLambda, list(params...), c.specialDecl(parts.specials))), args)))
	return list(symDefmethodK, quoted(name), quoted(newStr(qualifier)), listTo(listTo(Nil, specs...), symList), fn, quoted(words[0]))
}

func (c *compiler) specialDecl(specials []*Symbol) Value {
	return list(symDeclare, listTo(listTo(Nil, symbolsAsValues(specials)...), symSpecial))
}

// ensureGeneric returns the generic function of a name, made if needed. It is
// a fresh copy when it belongs to the image.
func (th *Thread) ensureGeneric(name, params Value) *generic {
	var old *Function
	if l, ok := name.(*Cons); ok {
		if st := th.cell(th.symbolArg(car(l.cdr))).setter; st != nil {
			old = st.fn
		}
	} else {
		old = th.cell(th.symbolArg(name)).fn
	}
	g := &generic{name: name, list: params}
	if old != nil {
		if old.generic == nil {
			th.fail(classProgramError, "%s already names an ordinary function", th.show(name))
		}
		g.methods = append(g.methods, old.generic.methods...)
	}
	th.setFunction(name, &Function{name: name, generic: g})
	return g
}

// biDefmethod: (name qualifier specs function params)
func biDefmethod(th *Thread, a []Value) Value {
	m := &method{qualifier: a[1].(*Str).text(), fn: a[3].(*Function)}
	for _, s := range th.items(a[2]) {
		if _, ok := s.(*Cons); ok {
			m.specs = append(m.specs, s)
			continue
		}
		m.specs = append(m.specs, th.classArg(s))
	}
	if a[0] == Value(symPrintObject) || a[0] == Value(symInitialize) {
		unlock := th.unlock
		th.unlock = true
		defer func() { th.unlock = unlock }()
	}
	g := th.ensureGeneric(a[0], a[4])
	for i, old := range g.methods {
		if old.qualifier == m.qualifier && th.sameSpecs(old.specs, m.specs) {
			g.methods[i] = m
			return a[0]
		}
	}
	g.methods = append(g.methods, m)
	return a[0]
}

func (th *Thread) sameSpecs(a, b []Value) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !th.equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// rank says how closely an argument fits a specialiser: 0 is best, -1 no fit.
func (th *Thread) rank(spec, arg Value) int {
	switch s := spec.(type) {
	case *Cons:
		if eql(car(s.cdr), arg) {
			return 0
		}
		return -1
	case *class:
		for i, k := range th.classOf(arg).order {
			if k == s {
				return i + 1
			}
		}
	}
	return -1
}

// applicable returns the methods of a kind for some arguments, closest first.
func (g *generic) applicable(th *Thread, qualifier string, args []Value) []*method {
	var out []*method
	var ranks [][]int
	for _, m := range g.methods {
		th.step(1)
		if m.qualifier != qualifier || len(m.specs) > len(args) {
			continue
		}
		r := make([]int, len(m.specs))
		fits := true
		for i, s := range m.specs {
			r[i] = th.rank(s, args[i])
			fits = fits && r[i] >= 0
		}
		if !fits {
			continue
		}
		at := len(out)
		for at > 0 && closer(r, ranks[at-1]) {
			at--
		}
		out = append(out[:at:at], append([]*method{m}, out[at:]...)...)
		ranks = append(ranks[:at:at], append([][]int{r}, ranks[at:]...)...)
	}
	return out
}

func closer(a, b []int) bool {
	for i := range a {
		if i < len(b) && a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

func (g *generic) call(th *Thread, args []Value) Value {
	th.enter(2)
	defer th.leave(2)
	primary := g.applicable(th, "", args)
	around := g.applicable(th, "AROUND", args)
	if len(primary) == 0 {
		th.fail(classError, "There is no applicable method for the generic function %s when called with arguments %s.", th.show(g.name), th.show(list(args...)))
	}
	before, after := g.applicable(th, "BEFORE", args), g.applicable(th, "AFTER", args)
	main := th.nextMethod(primary, func(args []Value) Value {
		th.fail(classError, "There is no next method for the generic function %s.", th.show(g.name))
		return nil
	})
	if len(before)+len(after) > 0 {
		inner := main
		main = func(args []Value) Value {
			for _, m := range before {
				th.apply(m.fn, []Value{Nil, th.newList(args, Nil)})
			}
			v := append([]Value(nil), th.all(inner(args))...)
			for i := len(after) - 1; i >= 0; i-- {
				th.apply(after[i].fn, []Value{Nil, th.newList(args, Nil)})
			}
			if len(v) == 1 {
				return v[0]
			}
			return th.values(v...)
		}
	}
	if len(around) > 0 {
		return th.nextMethod(around, main)(args)
	}
	return main(args)
}

// nextMethod makes a call of the first method whose next is the rest.
func (th *Thread) nextMethod(ms []*method, last func([]Value) Value) func([]Value) Value {
	if len(ms) == 0 {
		return last
	}
	return func(args []Value) Value {
		var next Value = Nil
		rest := th.nextMethod(ms[1:], last)
		if len(ms) > 1 || ms[0].qualifier == "AROUND" {
			next = &Function{prim: &prim{name: symCallNext, usage: "(call-next-method &rest arguments)", rest: true, fn: func(_ *Thread, a []Value) Value {
				return rest(append([]Value(nil), a...))
			}}}
		}
		return th.apply(ms[0].fn, []Value{next, th.newList(args, Nil)})
	}
}

// printMethod returns the user's way to print an object, or nil.
func (th *Thread) printMethod(v *instance) *Function {
	if fn := th.cell(symPrintObject).fn; fn != nil && fn.generic != nil {
		if len(fn.generic.applicable(th, "", []Value{v, Nil})) > 0 {
			return fn
		}
	}
	for _, k := range v.class.order {
		if k.printer != nil {
			return k.printer
		}
	}
	return nil
}

func biMakeInstance(th *Thread, a []Value) Value {
	in := th.makeInstance(th.classArg(a[0]), a[1:])
	if fn := th.cell(symInitialize).fn; fn != nil && fn.generic != nil {
		args := append([]Value{in}, a[1:]...)
		for _, m := range fn.generic.applicable(th, "AFTER", args) {
			th.apply(m.fn, []Value{Nil, th.newList(args, Nil)})
		}
	}
	return in
}

var objectPrims = []prim{
	{usage: "(passepartout-kernel:defstruct name super specs thunks type conc)", doc: "define a structure", fn: biDefstruct},
	{usage: "(passepartout-kernel:defstruct-functions name conc copier predicate)", doc: "define a structure's functions", fn: biDefstructFns},
	{usage: "(passepartout-kernel:make-struct class &rest values)", doc: "make a structure", fn: biMakeStruct},
	{usage: "(passepartout-kernel:set-printer class function)", doc: "how a structure prints", fn2: func(th *Thread, k, f Value) Value {
		th.classArg(k).printer = th.fn(f)
		return Nil
	}},
	{usage: "(copy-structure structure)", doc: "a copy", fn1: func(th *Thread, x Value) Value {
		in := th.structArg(x, classStructure)
		n := th.newInstance(in.class)
		copy(n.slots, th.inst(in).slots)
		return n
	}},
	{usage: "(passepartout-kernel:defclass name supers slots kind report defaults)", doc: "define a class", fn: biDefclass},
	{usage: "(passepartout-kernel:defreader name slot class)", doc: "define a reader method", fn: func(th *Thread, a []Value) Value {
		slotName := a[1]
		fn := &Function{prim: &prim{name: symNextCall, usage: "(reader next args)", req: 2, fn: func(th *Thread, a []Value) Value {
			return biSlotValue(th, car(a[1]), slotName)
		}}}
		g := th.ensureGeneric(a[0], Nil)
		g.methods = append(g.methods, &method{specs: []Value{th.classArg(a[2])}, fn: fn})
		return a[0]
	}},
	{usage: "(passepartout-kernel:defwriter name slot class)", doc: "define a writer method", fn: func(th *Thread, a []Value) Value {
		slotName := a[1]
		fn := &Function{prim: &prim{name: symNextCall, usage: "(writer next args)", req: 2, fn: func(th *Thread, a []Value) Value {
			in, i := th.slotOf(car(cdr(a[1])), slotName)
			th.instToChange(in).slots[i] = car(a[1])
			return car(a[1])
		}}}
		g := th.ensureGeneric(a[0], Nil)
		g.methods = append(g.methods, &method{specs: []Value{classT, th.classArg(a[2])}, fn: fn})
		return a[0]
	}},
	{usage: "(passepartout-kernel:defgeneric name params)", doc: "define a generic function", fn2: func(th *Thread, name, params Value) Value {
		th.ensureGeneric(name, params)
		return name
	}},
	{usage: "(passepartout-kernel:defmethod name qualifier specs function params)", doc: "define a method", fn: biDefmethod},
	{usage: "(passepartout-kernel:next-call next args)", doc: "call the next method", fn2: func(th *Thread, next, args Value) Value {
		if next == Value(Nil) {
			th.fail(classError, "There is no next method.")
		}
		return th.apply(th.fn(next), th.items(args))
	}},
	{usage: "(make-instance class &rest initargs)", doc: "make an object", fn: biMakeInstance},
	{usage: "(slot-value object slot)", doc: "the value of a slot", fn2: biSlotValue},
	{usage: "(passepartout-kernel:set-slot-value object slot value)", doc: "store", fn: func(th *Thread, a []Value) Value {
		in, i := th.slotOf(a[0], a[1])
		th.instToChange(in).slots[i] = a[2]
		return a[2]
	}},
	{usage: "(slot-boundp object slot)", doc: "true if the slot has a value", fn2: func(th *Thread, x, name Value) Value {
		in, i := th.slotOf(x, name)
		return mkBool(th.inst(in).slots[i] != nil)
	}},
	{usage: "(slot-exists-p object slot)", doc: "true if there is such a slot", fn2: func(_ *Thread, x, name Value) Value {
		in, ok := x.(*instance)
		return mkBool(ok && in.class.slot(name) >= 0)
	}},
	{usage: "(slot-makunbound object slot)", doc: "take a slot's value away", fn2: func(th *Thread, x, name Value) Value {
		in, i := th.slotOf(x, name)
		th.instToChange(in).slots[i] = nil
		return x
	}},
	{usage: "(find-class name &optional errorp environment)", doc: "the class of that name", fn: func(th *Thread, a []Value) Value {
		if k := th.cell(th.symbolArg(a[0])).class; k != nil {
			return k
		}
		if a[1] != nil && !isTrue(a[1]) {
			return Nil
		}
		return th.classArg(a[0])
	}},
	{usage: "(class-of object)", doc: "the class of an object", fn1: func(th *Thread, x Value) Value { return th.classOf(x) }},
	{usage: "(class-name class)", doc: "the name of a class", fn1: func(th *Thread, x Value) Value {
		k, ok := x.(*class)
		if !ok {
			th.typeError(x, symClassType)
		}
		return k.name
	}},
}
