package lisp

import "slices"

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
	th.chargeClass(k)
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
	th.step(uint64(len(k.defaults) * len(args) / 16))
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
	th.step(uint64(len(in.class.slots) / 16))
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
	th.step(uint64(len(in.class.slots) / 16))
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
		th.alloc(len(old.generic.methods) / 4)
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
	th.step(uint64(len(g.methods)))
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
		if th.eql(car(s.cdr), arg) {
			return 0
		}
		return -1
	case *class:
		order := th.classOf(arg).order
		th.step(uint64(len(order) / 16))
		for i, k := range order {
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
	main := nextMethod(primary, func(th *Thread, _ []Value) Value {
		th.fail(classError, "There is no next method for the generic function %s.", th.show(g.name))
		return nil
	})
	if len(before)+len(after) > 0 {
		inner := main
		main = func(th *Thread, args []Value) Value {
			for _, m := range before {
				th.apply(m.fn, []Value{Nil, th.newList(args, Nil)})
			}
			v := append([]Value(nil), th.all(inner(th, args))...)
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
		return nextMethod(around, main)(th, args)
	}
	return main(th, args)
}

// methodCall runs methods in the thread that calls it. A program can keep one and
// call it in a later thread, which may have less power.
type methodCall func(th *Thread, args []Value) Value

// nextMethod makes a call of the first method whose next is the rest.
func nextMethod(ms []*method, last methodCall) methodCall {
	if len(ms) == 0 {
		return last
	}
	return func(th *Thread, args []Value) Value {
		var next Value = Nil
		rest := nextMethod(ms[1:], last)
		if len(ms) > 1 || ms[0].qualifier == "AROUND" {
			next = &Function{prim: &prim{name: symCallNext, usage: "(call-next-method &rest arguments)", rest: true, fn: func(th *Thread, a []Value) Value {
				return rest(th, slices.Clone(a))
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
		c := th.classArg(k)
		if c.frozen {
			th.fail(classSimpleError, "attempt to modify the class %s of the loaded image", c.name.name)
		}
		c.printer = th.fn(f)
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
	{usage: "(slot-exists-p object slot)", doc: "true if there is such a slot", fn2: func(th *Thread, x, name Value) Value {
		in, ok := x.(*instance)
		if ok {
			th.step(uint64(len(in.class.slots) / 16))
		}
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
