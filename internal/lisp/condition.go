package lisp

import (
	"fmt"
	"slices"
	"strings"
)

type classKind uint8

const (
	kindBuiltin classKind = iota
	kindCondition
	kindStructure
	kindStandard
)

// class is a class of structures, conditions or objects, or the name of a
// builtin type that methods can specialise on.
type class struct {
	name     *Symbol
	kind     classKind
	supers   []*class
	order    []*class // the class and its supers, most specific first
	slots    []slot
	defaults []paramSpec // :default-initargs
	report   *Function
	message  string // a constant :report
	conc     string // of a structure: for describing it
	printer  *Function
	typ      Value // LIST or VECTOR for a structure that is only a sequence
	frozen   bool
}

type slot struct {
	name  *Symbol
	args  []*Symbol // initargs
	init  *Function // of no arguments, nil for none
	typ   Value
	fixed bool // read-only
}

func (c *class) is(super *class) bool {
	for _, s := range c.order {
		if s == super {
			return true
		}
	}
	return false
}

func (c *class) slot(name Value) int {
	for i := range c.slots {
		if Value(c.slots[i].name) == name {
			return i
		}
	}
	return -1
}

// linearise sets the precedence: the class, then its supers left to right,
// each after all its subclasses.
func (c *class) linearise() {
	var all []*class
	for _, s := range c.supers {
		all = append(all, s.order...)
	}
	last := map[*class]int{}
	for i, s := range all {
		last[s] = i
	}
	c.order = []*class{c}
	for i, s := range all {
		if last[s] == i {
			c.order = append(c.order, s)
		}
	}
	own := c.slots
	c.slots = nil
	for _, s := range c.supers {
		for _, sl := range s.slots {
			c.addSlot(sl)
		}
	}
	for _, sl := range own {
		c.addSlot(sl)
	}
}

// chargeClass pays for making a class of its supers and slots, before it is done.
func (th *Thread) chargeClass(c *class) {
	order, slots := 0, len(c.slots)
	for _, s := range c.supers {
		order += len(s.order)
		slots += len(s.slots)
	}
	th.step(uint64(order + slots*slots/16))
	th.alloc(order + 4*slots)
}

func (c *class) addSlot(s slot) {
	i := c.slot(s.name)
	if i < 0 {
		c.slots = append(c.slots, s)
		return
	}
	old := &c.slots[i]
	old.args = append(append([]*Symbol(nil), s.args...), old.args...)
	if s.init != nil {
		old.init = s.init
	}
}

var builtinClasses []*class

func newClass(kind classKind, name string, slots []string, supers ...*class) *class {
	c := &class{name: sym(name), kind: kind, supers: supers}
	for _, s := range slots {
		c.slots = append(c.slots, slot{name: sym(s), args: []*Symbol{key(s)}})
	}
	c.linearise()
	builtinClasses = append(builtinClasses, c)
	return c
}

func newCondition(name string, slots []string, supers ...*class) *class {
	return newClass(kindCondition, name, slots, supers...)
}

var (
	classT         = newClass(kindBuiltin, "T", nil)
	classStandard  = newClass(kindStandard, "STANDARD-OBJECT", nil, classT)
	classStructure = newClass(kindStructure, "STRUCTURE-OBJECT", nil, classT)
	// The first slot of every condition is the text of one raised by Go code.
	classCondition      = newCondition("CONDITION", []string{"%TEXT"}, classT)
	classSerious        = newCondition("SERIOUS-CONDITION", nil, classCondition)
	classError          = newCondition("ERROR", nil, classSerious)
	classWarning        = newCondition("WARNING", nil, classCondition)
	classStyleWarning   = newCondition("STYLE-WARNING", nil, classWarning)
	formatSlots         = []string{"FORMAT-CONTROL", "FORMAT-ARGUMENTS"}
	classSimple         = newCondition("SIMPLE-CONDITION", formatSlots, classCondition)
	classSimpleError    = newCondition("SIMPLE-ERROR", nil, classSimple, classError)
	classSimpleWarning  = newCondition("SIMPLE-WARNING", nil, classSimple, classWarning)
	classTypeError      = newCondition("TYPE-ERROR", []string{"DATUM", "EXPECTED-TYPE"}, classError)
	_                   = newCondition("SIMPLE-TYPE-ERROR", nil, classSimple, classTypeError)
	classCellError      = newCondition("CELL-ERROR", []string{"NAME"}, classError)
	classUnboundVar     = newCondition("UNBOUND-VARIABLE", nil, classCellError)
	classUndefinedFn    = newCondition("UNDEFINED-FUNCTION", nil, classCellError)
	classUnboundSlot    = newCondition("UNBOUND-SLOT", []string{"INSTANCE"}, classCellError)
	classProgramError   = newCondition("PROGRAM-ERROR", nil, classError)
	classControlError   = newCondition("CONTROL-ERROR", nil, classError)
	classPackageError   = newCondition("PACKAGE-ERROR", []string{"PACKAGE"}, classError)
	_                   = newCondition("PRINT-NOT-READABLE", []string{"OBJECT"}, classError)
	classStreamError    = newCondition("STREAM-ERROR", []string{"STREAM"}, classError)
	classEndOfFile      = newCondition("END-OF-FILE", nil, classStreamError)
	classParseError     = newCondition("PARSE-ERROR", nil, classError)
	classReaderError    = newCondition("READER-ERROR", nil, classParseError, classStreamError)
	_                   = newCondition("FILE-ERROR", []string{"PATHNAME"}, classError)
	classArithmetic     = newCondition("ARITHMETIC-ERROR", []string{"OPERATION", "OPERANDS"}, classError)
	classDivisionByZero = newCondition("DIVISION-BY-ZERO", nil, classArithmetic)
	classOverflow       = newCondition("FLOATING-POINT-OVERFLOW", nil, classArithmetic)
	_                   = newCondition("FLOATING-POINT-UNDERFLOW", nil, classArithmetic)
	classInvalidFloat   = newCondition("FLOATING-POINT-INVALID-OPERATION", nil, classArithmetic)
	_                   = newCondition("STORAGE-CONDITION", nil, classSerious)
)

type handlerLink struct {
	next    *handlerLink
	entries []handlerEntry
}

type handlerEntry struct {
	typ Value
	fn  func(c *instance)
}

type restart struct {
	name   *Symbol
	fn     *Function
	report Value // string, function or nil
	test   *Function
	tok    *token // nil for restart-bind
	args   []Value
}

type restartLink struct {
	next *restartLink
	r    *restart
}

func (th *Thread) newInstance(c *class) *instance {
	th.alloc(2 + len(c.slots))
	return &instance{class: c, slots: make([]Value, len(c.slots))}
}

// condition makes a condition whose report is text; slots are name, value pairs.
func (th *Thread) condition(c *class, text string, slots ...Value) *instance {
	in := th.newInstance(c)
	in.slots[0] = newStr(text)
	if i := c.slot(symFormatControl); i >= 0 {
		in.slots[i] = newStr(strings.ReplaceAll(text, "~", "~~"))
		in.slots[i+1] = Nil
	}
	for i := 0; i+1 < len(slots); i += 2 {
		in.slots[c.slot(slots[i])] = slots[i+1]
	}
	return in
}

// fail signals an error of class c.
func (th *Thread) fail(c *class, format string, args ...any) {
	th.raise(th.condition(c, fmt.Sprintf(format, args...)))
}

func (th *Thread) typeError(datum, want Value) {
	text := fmt.Sprintf("The value\n  %s\nis not of type\n  %s", th.show(datum), th.show(want))
	th.raise(th.condition(classTypeError, text, symDatum, datum, symExpectedType, want))
}

func (th *Thread) unboundVariable(s *Symbol) {
	th.raise(th.condition(classUnboundVar, fmt.Sprintf("The variable %s is unbound.", th.show(s)), symName, s))
}

func (th *Thread) undefinedFunction(name Value) {
	th.raise(th.condition(classUndefinedFn, th.absent(name), symName, name))
}

func (th *Thread) divisionByZero(op *Symbol, operands ...Value) {
	th.raise(th.condition(classDivisionByZero, "arithmetic error DIVISION-BY-ZERO signalled",
		symOperation, op, symOperands, list(operands...)))
}

func (th *Thread) packageError(p Value, format string, args ...any) {
	th.raise(th.condition(classPackageError, fmt.Sprintf(format, args...), symPackageSlot, p))
}

// maxReport is how much of a report leaves the jail in an error: those end in logs.
const maxReport = 4000

// raise signals an error and does not return.
func (th *Thread) raise(c *instance) {
	th.enter(1)
	th.signal(c)
	th.leave(1)
	e := &ConditionError{Type: c.class.name.name, File: th.file, Line: int(th.pos)}
	if e.Msg = th.report(c); len(e.Msg) > maxReport {
		e.Msg = strings.ToValidUTF8(e.Msg[:maxReport], "") + "…"
	}
	th.uncaught(e)
}

// signal offers c to the handlers, innermost first; each runs with only the
// handlers outside its own in force.
func (th *Thread) signal(c *instance) {
	saved := th.handlers
	for h := saved; h != nil; h = h.next {
		th.handlers = h.next
		for _, e := range h.entries {
			th.step(1)
			if th.typep(c, e.typ) {
				e.fn(c)
			}
		}
	}
	th.handlers = saved
}

// report is the text of a condition.
func (th *Thread) report(c *instance) string {
	for _, k := range c.class.order {
		if k.report != nil {
			s := th.newStringOutput()
			th.call(k.report, c, s)
			return s.take()
		}
		if k.message != "" {
			return k.message
		}
	}
	if t, ok := c.slots[0].(*Str); ok {
		return t.text()
	}
	if i := c.class.slot(symFormatControl); i >= 0 && c.slots[i] != nil {
		var args []Value
		if l := c.slots[i+1]; l != nil {
			args = th.items(l)
		}
		return th.formatTo(c.slots[i], args)
	}
	return th.standardReport(c)
}

// standardReport is the report of a standard condition made by MAKE-CONDITION.
func (th *Thread) standardReport(c *instance) string {
	get := func(name *Symbol) string {
		if i := c.class.slot(name); i >= 0 && c.slots[i] != nil {
			return th.show(c.slots[i])
		}
		return "NIL"
	}
	switch {
	case c.class.is(classTypeError):
		return fmt.Sprintf("The value\n  %s\nis not of type\n  %s", get(symDatum), get(symExpectedType))
	case c.class.is(classUnboundVar):
		return "The variable " + get(symName) + " is unbound."
	case c.class.is(classUndefinedFn):
		return "The function " + get(symName) + " is undefined."
	}
	return "Condition " + th.show(c.class.name) + " was signalled."
}

type handlerBindNode struct {
	types []Value
	fns   []node
	body  node
}

func cHandlerBind(c *compiler, x *Cons, e env) node {
	c.want(x, 1, -1)
	n := &handlerBindNode{}
	for _, b := range c.th.items(c.nth(x, 1)) {
		n.types = append(n.types, car(b))
		n.fns = append(n.fns, c.arg(car(cdr(b)), e))
	}
	n.body = c.progn(c.th.items(cdr(x.cdr)), e)
	return n
}

func (n *handlerBindNode) eval(f *frame) Value {
	th := f.th
	th.step(uint64(1 + len(n.fns)))
	link := &handlerLink{next: th.handlers}
	for i, fn := range n.fns {
		h := th.fn(ev(fn, f))
		link.entries = append(link.entries, handlerEntry{n.types[i], func(c *instance) { th.call1(h, c) }})
	}
	saved := th.handlers
	th.handlers = link
	v := n.body.eval(f)
	th.handlers = saved
	return v
}

type handlerCaseNode struct {
	body    node
	clauses []handlerClause
}

type handlerClause struct {
	typ    Value
	v      letVar
	hasVar bool
	body   node
}

// cHandlerCase: a :no-error clause becomes a call of its lambda with the
// values of the body, outside the handlers.
func cHandlerCase(c *compiler, x *Cons, e env) node {
	c.want(x, 1, -1)
	clauses := c.th.items(cdr(x.cdr))
	if k := slices.IndexFunc(clauses, func(cl Value) bool { return car(cl) == Value(keyNoError) }); k >= 0 {
		noError := clauses[k]
		clauses = append(clauses[:k:k], clauses[k+1:]...)
		tag := c.th.gensym("NO-ERROR")
		// The body's values must leave the handlers before the clause runs.
		ok, vals := c.th.gensym("OK"), c.th.gensym("VALUES")
		guarded := listTo(listTo(Nil, clauses...), x.car,
			list(symProgn, list(symSetq, vals, list(symMVList, c.nth(x, 1))), list(symSetq, ok, symT), Nil))
		form := list(symLet, list(list(ok, Nil), list(vals, Nil)),
			list(symBlock, tag,
				list(symReturn, tag, list(symMVProg1, guarded,
					list(symWhen, ok, list(symReturn, tag, list(symApply, cons(symLambda, cdr(noError)), vals)))))))
		return c.form(form, e)
	}
	n := &handlerCaseNode{}
	for _, cl := range clauses {
		h := handlerClause{typ: car(cl)}
		parts := c.body(cdr(cdr(cl)), false)
		inner := e
		if vars := c.th.items(car(cdr(cl))); len(vars) > 0 {
			s := c.varName(vars[0])
			v := e.fn.newVar()
			h.hasVar, h.v.slot = true, v.slot
			if c.isSpecial(s, parts.specials) {
				h.v.special = s
			} else {
				v.boxed = append(v.boxed, &h.v.boxed)
				inner = inner.bindVar(s, v)
			}
			n.clauses = append(n.clauses, h)
			k := &n.clauses[len(n.clauses)-1]
			k.body = c.progn(parts.forms, inner.declare(parts.specials))
			if v.captured && v.assigned {
				k.v.boxed = true
			}
			v.close()
			continue
		}
		h.body = c.progn(parts.forms, inner.declare(parts.specials))
		n.clauses = append(n.clauses, h)
	}
	n.body = c.form(c.nth(x, 1), e)
	return n
}

func (n *handlerCaseNode) eval(f *frame) Value {
	th := f.th
	th.step(1)
	tok := &token{}
	var got *instance
	var which int
	link := &handlerLink{next: th.handlers, entries: make([]handlerEntry, len(n.clauses))}
	for i := range n.clauses {
		link.entries[i] = handlerEntry{n.clauses[i].typ, func(c *instance) {
			got, which = c, i
			th.throw(tok, Nil)
		}}
	}
	saved := th.handlers
	th.handlers = link
	v, caught := th.catch(tok, func() Value { return n.body.eval(f) })
	th.handlers = saved
	if !caught {
		return v
	}
	cl := &n.clauses[which]
	mark := len(th.dyn)
	if cl.hasVar {
		cl.v.set(f, got)
	}
	v = cl.body.eval(f)
	th.unbind(mark)
	return v
}

// withRestartsNode: (with-restarts ((name function report test binds?)…) body…)
type withRestartsNode struct {
	names []*Symbol
	parts [][3]node
	binds bool
	body  node
}

func cWithRestarts(c *compiler, x *Cons, e env) node {
	n := &withRestartsNode{binds: isTrue(c.nth(x, 1))}
	for _, r := range c.th.items(c.nth(x, 2)) {
		parts := c.th.items(r)
		n.names = append(n.names, c.symbol(parts[0], "restart"))
		n.parts = append(n.parts, [3]node{c.arg(parts[1], e), c.arg(parts[2], e), c.arg(parts[3], e)})
	}
	n.body = c.progn(c.th.items(cdr(cdr(x.cdr))), e)
	return n
}

func (n *withRestartsNode) eval(f *frame) Value {
	th := f.th
	th.step(uint64(1 + len(n.names)))
	tok := &token{}
	link := th.restarts
	made := make([]*restart, len(n.names))
	for i, p := range n.parts {
		r := &restart{name: n.names[i], fn: th.fn(ev(p[0], f)), report: ev(p[1], f)}
		if t := ev(p[2], f); isTrue(t) {
			r.test = th.fn(t)
		}
		if !n.binds {
			r.tok = tok
		}
		made[i] = r
	}
	for i := len(made) - 1; i >= 0; i-- {
		link = &restartLink{link, made[i]}
	}
	saved := th.restarts
	th.restarts = link
	v, caught := th.catch(tok, func() Value { return n.body.eval(f) })
	th.restarts = saved
	if !caught {
		return v
	}
	r := v.(*restart)
	return th.apply(r.fn, r.args)
}

func (th *Thread) findRestart(x Value) *restart {
	for l := th.restarts; l != nil; l = l.next {
		if Value(l.r) == x || l.r.name != Nil && Value(l.r.name) == x {
			if l.r.test == nil || isTrue(th.call(l.r.test, Nil)) {
				return l.r
			}
		}
	}
	return nil
}

func (th *Thread) invokeRestart(r *restart, args []Value) Value {
	if r.tok == nil {
		return th.apply(r.fn, args)
	}
	r.args = append([]Value(nil), args...)
	th.throw(r.tok, r)
	return nil
}

// makeCondition resolves a condition designator: a condition, a format control
// with arguments, or a class name with initargs.
func (th *Thread) makeCondition(x Value, args []Value, simple *class) *instance {
	switch x := x.(type) {
	case *instance:
		if x.class.kind == kindCondition {
			return x
		}
	case *Str, *Function:
		in := th.newInstance(simple)
		i := simple.slot(symFormatControl)
		in.slots[i], in.slots[i+1] = x, th.newList(args, Nil)
		return in
	case *Symbol:
		if k := th.cell(x).class; k != nil && k.kind == kindCondition {
			return th.makeInstance(k, args)
		}
	case *class:
		return th.makeInstance(x, args)
	}
	th.typeError(x, classCondition.name)
	return nil
}

// withContinue runs body with a restart called name that makes it return NIL.
func (th *Thread) withContinue(name *Symbol, report string, body func()) (taken bool) {
	tok := &token{}
	fn := &Function{prim: &prim{name: name, rest: true, fn: func(*Thread, []Value) Value { return Nil }}}
	saved := th.restarts
	th.restarts = &restartLink{saved, &restart{name: name, fn: fn, report: newStr(report), tok: tok}}
	_, taken = th.catch(tok, func() Value { body(); return Nil })
	th.restarts = saved
	return taken
}

var conditionPrims = []prim{
	{usage: "(error datum &rest arguments)", doc: "signal an error; if nobody handles it the program ends", fn: func(th *Thread, a []Value) Value {
		th.raise(th.makeCondition(a[0], a[1:], classSimpleError))
		return nil
	}},
	{usage: "(cerror continue datum &rest arguments)", doc: "signal an error that the CONTINUE restart may overrule", fn: func(th *Thread, a []Value) Value {
		c := th.makeCondition(a[1], a[2:], classSimpleError)
		th.withContinue(symContinue, th.formatTo(a[0], a[2:]), func() { th.raise(c) })
		return Nil
	}},
	{usage: "(signal datum &rest arguments)", doc: "offer a condition to the handlers; NIL if none takes it", fn: func(th *Thread, a []Value) Value {
		th.signal(th.makeCondition(a[0], a[1:], classSimple))
		return Nil
	}},
	{usage: "(warn datum &rest arguments)", doc: "signal a warning and print it unless it is muffled", fn: func(th *Thread, a []Value) Value {
		c := th.makeCondition(a[0], a[1:], classSimpleWarning)
		if !c.class.is(classWarning) {
			th.typeError(c, classWarning.name)
		}
		muffled := th.withContinue(symMuffleWarning, "Skip warning.", func() { th.signal(c) })
		if !muffled {
			label := "WARNING: "
			if c.class.is(classStyleWarning) {
				label = "STYLE-WARNING: "
			}
			th.outStream(th.symbolValue(symStderr)).write(th, label+th.report(c)+"\n")
		}
		return Nil
	}},
	{usage: "(make-condition type &rest initargs)", doc: "make a condition without signalling it", fn: func(th *Thread, a []Value) Value {
		if s, ok := a[0].(*Symbol); ok && th.cell(s).class == nil {
			th.typeError(a[0], classCondition.name)
		}
		k := th.classArg(a[0])
		if k.kind != kindCondition {
			th.typeError(a[0], classCondition.name)
		}
		return th.makeInstance(k, a[1:])
	}},
	{usage: "(invoke-restart restart &rest arguments)", doc: "take a restart", fn: func(th *Thread, a []Value) Value {
		r := th.findRestart(a[0])
		if r == nil {
			th.fail(classControlError, "Restart %s is not active.", th.show(a[0]))
		}
		return th.invokeRestart(r, a[1:])
	}},
	{usage: "(find-restart name &optional condition)", doc: "the innermost active restart of that name, or NIL", fn: func(th *Thread, a []Value) Value {
		if r := th.findRestart(a[0]); r != nil {
			return r
		}
		return Nil
	}},
	{usage: "(compute-restarts &optional condition)", doc: "the active restarts, innermost first", fn: func(th *Thread, _ []Value) Value {
		var out []Value
		for l := th.restarts; l != nil; l = l.next {
			out = append(out, l.r)
		}
		return th.newList(out, Nil)
	}},
	{usage: "(restart-name restart)", doc: "the name of a restart", fn: func(th *Thread, a []Value) Value {
		r, ok := a[0].(*restart)
		if !ok {
			th.typeError(a[0], symRestart)
		}
		return r.name
	}},
	{usage: "(abort &optional condition)", doc: "take the ABORT restart", fn: func(th *Thread, _ []Value) Value { return th.takeRestart(symAbort, true, nil) }},
	{usage: "(continue &optional condition)", doc: "take the CONTINUE restart if there is one", fn: func(th *Thread, _ []Value) Value { return th.takeRestart(symContinue, false, nil) }},
	{usage: "(muffle-warning &optional condition)", doc: "take the MUFFLE-WARNING restart", fn: func(th *Thread, _ []Value) Value {
		return th.takeRestart(symMuffleWarning, true, nil)
	}},
	{usage: "(use-value value &optional condition)", doc: "take the USE-VALUE restart if there is one", fn: func(th *Thread, a []Value) Value {
		return th.takeRestart(symUseValue, false, a[:1])
	}},
	{usage: "(store-value value &optional condition)", doc: "take the STORE-VALUE restart if there is one", fn: func(th *Thread, a []Value) Value {
		return th.takeRestart(symStoreValue, false, a[:1])
	}},
	{usage: "(type-error-datum condition)", doc: "the value that had the wrong type", fn: conditionSlot("DATUM")},
	{usage: "(type-error-expected-type condition)", doc: "the type that was wanted", fn: conditionSlot("EXPECTED-TYPE")},
	{usage: "(cell-error-name condition)", doc: "the name that had no value", fn: conditionSlot("NAME")},
	{usage: "(package-error-package condition)", doc: "the package an error is about", fn: conditionSlot("PACKAGE")},
	{usage: "(stream-error-stream condition)", doc: "the stream an error is about", fn: conditionSlot("STREAM")},
	{usage: "(file-error-pathname condition)", doc: "the file an error is about", fn: conditionSlot("PATHNAME")},
	{usage: "(arithmetic-error-operation condition)", doc: "the operation that failed", fn: conditionSlot("OPERATION")},
	{usage: "(arithmetic-error-operands condition)", doc: "the operands of the operation that failed", fn: conditionSlot("OPERANDS")},
	{usage: "(simple-condition-format-control condition)", doc: "the format control of a simple condition", fn: conditionSlot("FORMAT-CONTROL")},
	{usage: "(simple-condition-format-arguments condition)", doc: "the format arguments of a simple condition", fn: conditionSlot("FORMAT-ARGUMENTS")},
}

func (th *Thread) takeRestart(name *Symbol, must bool, args []Value) Value {
	r := th.findRestart(name)
	if r == nil {
		if must {
			th.fail(classControlError, "Restart %s is not active.", name.name)
		}
		return Nil
	}
	return th.invokeRestart(r, args)
}

func conditionSlot(name string) func(*Thread, []Value) Value {
	s := sym(name)
	return func(th *Thread, a []Value) Value {
		in, ok := a[0].(*instance)
		if !ok || in.class.kind != kindCondition || in.class.slot(s) < 0 {
			th.typeError(a[0], classCondition.name)
		}
		if v := in.slots[in.class.slot(s)]; v != nil {
			return v
		}
		return Nil
	}
}
