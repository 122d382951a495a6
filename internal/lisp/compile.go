package lisp

import "slices"

// compiler turns one top-level form into nodes: macros are expanded, names are
// resolved to slots, and calls to builtins are bound.
type compiler struct {
	th     *Thread
	levels int
	line   int32
}

// env is the lexical environment at one point of the code. It is a value:
// inner scopes extend their copy.
type env struct {
	vars   *binding
	funs   *binding
	blocks *binding
	fn     *fnState
	// level names the statement chain the form is in. A return-from or go whose
	// target has the same level can be passed up by value; any other must panic.
	level int
}

type binding struct {
	next  *binding
	sym   Value // a symbol; (SETF x) for local setf functions; a tag
	v     *variable
	macro *Function
	alias Value // expansion of a symbol macro
	// special: the name refers to its dynamic value in this scope
	special bool
	block   *blockNode
	tags    *tagbodyNode
	tag     int
	level   int
	fn      *fnState
}

// fnState is a function being compiled.
type fnState struct {
	parent   *fnState
	slots    int
	captures []*variable
	nest     int
	maxNest  int
}

// variable is a lexical variable, a local function, or the exit token of a
// block. It needs a box when it is captured by a closure and assigned later.
type variable struct {
	fn       *fnState
	slot     int
	captured bool
	assigned bool
	boxed    []*bool // flags in the nodes that touch it, set at the end of its scope
}

func (v *variable) close() {
	if v.captured && v.assigned {
		for _, b := range v.boxed {
			*b = true
		}
	}
}

func (fs *fnState) newVar() *variable {
	fs.slots++
	return &variable{fn: fs, slot: fs.slots - 1}
}

// capture returns the place of an outer variable among fs's captured ones.
func (fs *fnState) capture(v *variable) int {
	for i, c := range fs.captures {
		if c == v {
			return i
		}
	}
	v.captured = true
	if fs.parent != v.fn {
		fs.parent.capture(v)
	}
	fs.captures = append(fs.captures, v)
	return len(fs.captures) - 1
}

// find looks a name up in a scope. The code decides how many names there are, so
// each costs a part of a step.
func (c *compiler) find(b *binding, s Value) *binding {
	n := 0
	for b != nil && b.sym != s {
		b = b.next
		n++
	}
	c.th.step(uint64(n / 16))
	return b
}

func (e env) bindVar(s *Symbol, v *variable) env {
	e.vars = &binding{next: e.vars, sym: s, v: v}
	return e
}

func (c *compiler) newLevel() int {
	c.levels++
	return c.levels
}

// arg compiles a form whose value is used in place.
func (c *compiler) arg(x Value, e env) node {
	e.level = c.newLevel()
	return c.form(x, e)
}

// args compiles the arguments of a call.
func (c *compiler) args(x Value, e env) []node {
	forms := c.th.items(x)
	out := make([]node, len(forms))
	for i, f := range forms {
		out[i] = c.arg(f, e)
	}
	return out
}

// form compiles x as a statement: an exit may be passed through its value.
func (c *compiler) form(x Value, e env) node {
	c.th.step(1)
	c.th.alloc(2)
	c.th.enter(1)
	e.fn.nest++
	e.fn.maxNest = max(e.fn.maxNest, e.fn.nest)
	n := c.dispatch(x, e)
	e.fn.nest--
	c.th.leave(1)
	return n
}

func (c *compiler) dispatch(x Value, e env) node {
	switch x := x.(type) {
	case *Symbol:
		return c.variable(x, e)
	case *Cons:
		line := c.line
		if l, ok := c.th.where[x]; ok {
			c.line = l
		}
		n := c.compound(x, e)
		c.line = line
		return n
	}
	return c.constant(x)
}

// constant is a literal of the code. It belongs to the image once there is one, like
// everything else a program can reach.
func (c *compiler) constant(v Value) node {
	switch v.(type) {
	case Int, Single, Double, Char, *Symbol:
	default:
		c.th.literals = append(c.th.literals, v)
	}
	return &constNode{v}
}

func (c *compiler) variable(s *Symbol, e env) node {
	if s == Nil || s == symT || s.keyword() {
		return &constNode{s}
	}
	if b := c.find(e.vars, s); b != nil {
		switch {
		case b.alias != nil:
			return c.form(b.alias, e)
		case b.v != nil:
			return c.ref(b.v, e)
		}
		return &specialRef{s}
	}
	cl := c.th.cell(s)
	switch {
	case cl.constant && cl.value != nil:
		return &constNode{cl.value}
	case cl.expand != nil:
		return c.form(cl.expand, e)
	}
	return &specialRef{s}
}

func (c *compiler) ref(v *variable, e env) node {
	if v.fn == e.fn {
		n := &localRef{slot: v.slot}
		v.boxed = append(v.boxed, &n.boxed)
		return n
	}
	c.th.step(uint64(len(e.fn.captures) / 16))
	n := &upRef{slot: e.fn.capture(v)}
	v.boxed = append(v.boxed, &n.boxed)
	return n
}

// assign compiles a store into a lexical or special variable.
func (c *compiler) assign(s *Symbol, val node, e env) node {
	b := c.find(e.vars, s)
	if b == nil || b.v == nil {
		if s == Nil || s == symT || s.keyword() || c.th.cell(s).constant {
			c.bad("%s is a constant and cannot be set", c.th.show(s))
		}
		return &specialSet{s, val}
	}
	return c.store(b.v, val, e)
}

func (c *compiler) store(v *variable, val node, e env) node {
	v.assigned = true
	if v.fn == e.fn {
		n := &localSet{slot: v.slot, val: val}
		v.boxed = append(v.boxed, &n.boxed)
		return n
	}
	c.th.step(uint64(len(e.fn.captures) / 16))
	return &upSet{slot: e.fn.capture(v), val: val}
}

// compound compiles a list form: special form, macro call or function call.
func (c *compiler) compound(x *Cons, e env) node {
	head, ok := x.car.(*Symbol)
	if !ok {
		if l, ok := x.car.(*Cons); ok && l.car == Value(symLambda) {
			return &callValue{fn: c.lambdaForm(l, nil, e), args: c.args(x.cdr, e), line: c.line}
		}
		c.bad("illegal function call: %s", c.th.show(x))
	}
	if b := c.find(e.funs, head); b != nil {
		if b.macro != nil {
			return c.form(c.expandWith(b.macro, x, e), e)
		}
		return &callValue{fn: c.ref(b.v, e), args: c.args(x.cdr, e), line: c.line}
	}
	if sf := c.th.img.special[head]; sf != nil {
		return sf(c, x, e)
	}
	cl := c.th.cell(head)
	if cl.macro != nil {
		return c.form(c.expandWith(cl.macro, x, e), e)
	}
	if m := c.th.img.macros[head]; m != nil {
		return c.form(m(c, x, e), e)
	}
	return c.callGlobal(head, cl, x, e)
}

func (c *compiler) callGlobal(head *Symbol, cl *cell, x *Cons, e env) node {
	args := c.args(x.cdr, e)
	if fn := cl.fn; fn != nil && fn.prim != nil && c.locked(head) && fn.prim.needs == 0 {
		p := fn.prim
		switch {
		case len(args) == 1 && p.fn1 != nil:
			return &prim1{p.fn1, args[0]}
		case len(args) == 2 && p.fn2 != nil:
			return &prim2{p.fn2, args[0], args[1]}
		}
		return &callPrim{p, args, c.line}
	}
	return &callGlobal{head, args, c.line}
}

// locked reports whether a name belongs to a package programs may not redefine.
func (c *compiler) locked(s *Symbol) bool {
	return s.pkg != nil && c.th.pkgTable(s.pkg).locked
}

// macro returns the expansion of x and whether x was a macro call.
func (c *compiler) macroexpand1(x Value, e env) (Value, bool) {
	switch x := x.(type) {
	case *Symbol:
		if b := c.find(e.vars, x); b != nil {
			if b.alias != nil {
				return b.alias, true
			}
			return x, false
		}
		if ex := c.th.cell(x).expand; ex != nil {
			return ex, true
		}
	case *Cons:
		head, ok := x.car.(*Symbol)
		if !ok {
			return x, false
		}
		if b := c.find(e.funs, head); b != nil {
			if b.macro == nil {
				return x, false
			}
			return c.expandWith(b.macro, x, e), true
		}
		if m := c.th.cell(head).macro; m != nil {
			return c.expandWith(m, x, e), true
		}
		if m := c.th.img.macros[head]; m != nil {
			return m(c, x, e), true
		}
	}
	return x, false
}

func (c *compiler) expandWith(m *Function, x *Cons, e env) Value {
	env := &envValue{c, e}
	out := c.th.call(m, x, env)
	if l, ok := c.th.where[x]; ok {
		if y, ok := out.(*Cons); ok {
			if _, known := c.th.where[y]; !known {
				c.th.where[y] = l
			}
		}
	}
	return out
}

// envValue lets a macro function pass its environment on to MACROEXPAND.
type envValue struct {
	c *compiler
	e env
}

func (*envValue) lispValue() {}

// bad reports a form that cannot be compiled.
func (c *compiler) bad(format string, args ...any) {
	c.th.fail(classProgramError, format, args...)
}

// body splits declarations and a documentation string from the forms.
type bodyParts struct {
	forms    []Value
	specials []*Symbol
	doc      string
}

func (c *compiler) body(x Value, docAllowed bool) bodyParts {
	var b bodyParts
	b.forms = c.th.items(x)
	for len(b.forms) > 0 {
		switch f := b.forms[0].(type) {
		case *Cons:
			if f.car == Value(symDeclare) {
				b.specials = append(b.specials, c.declaredSpecial(f.cdr)...)
				b.forms = b.forms[1:]
				continue
			}
		case *Str:
			if docAllowed && b.doc == "" && len(b.forms) > 1 {
				b.doc = f.text()
				b.forms = b.forms[1:]
				continue
			}
		}
		break
	}
	return b
}

func (c *compiler) declaredSpecial(decls Value) []*Symbol {
	var out []*Symbol
	for _, d := range c.th.items(decls) {
		if car(d) != Value(symSpecial) {
			continue
		}
		for _, v := range c.th.items(cdr(d)) {
			if s, ok := v.(*Symbol); ok {
				out = append(out, s)
			}
		}
	}
	return out
}

func (e env) declare(specials []*Symbol) env {
	for _, s := range specials {
		e.vars = &binding{next: e.vars, sym: s, special: true}
	}
	return e
}

// progn compiles forms in sequence.
func (c *compiler) progn(forms []Value, e env) node {
	switch len(forms) {
	case 0:
		return &constNode{Nil}
	case 1:
		return c.form(forms[0], e)
	}
	n := &prognNode{make([]node, len(forms))}
	for i, f := range forms {
		n.forms[i] = c.form(f, e)
	}
	return n
}

// isSpecial reports whether binding s binds it dynamically.
func (c *compiler) isSpecial(s *Symbol, declared []*Symbol) bool {
	if c.th.cell(s).special {
		return true
	}
	c.th.step(uint64(len(declared) / 16))
	return slices.Contains(declared, s)
}

func (c *compiler) symbol(v Value, what string) *Symbol {
	s, ok := v.(*Symbol)
	if !ok {
		c.bad("%s: want a symbol, found %s", what, c.th.show(v))
	}
	return s
}

// varName checks a name that is about to be bound.
func (c *compiler) varName(v Value) *Symbol {
	s := c.symbol(v, "variable")
	if s == Nil || s == symT || s.keyword() || c.th.cell(s).constant {
		c.bad("%s is a constant and cannot be bound", c.th.show(s))
	}
	return s
}

// Eval of a top-level form: the parts of progn and its kin are evaluated one
// after the other, so that each can use what the ones before it defined.
func (th *Thread) eval(x Value, e env) Value {
	c := &compiler{th: th}
	for {
		form, ok := x.(*Cons)
		if !ok {
			break
		}
		if l, ok := th.where[form]; ok {
			c.line = l
			th.pos = l
		}
		head, _ := form.car.(*Symbol)
		switch head {
		case symProgn:
			var v Value = Nil
			for _, f := range th.items(form.cdr) {
				v = th.eval(f, e)
			}
			return v
		case symEvalWhen:
			if !c.evalNow(car(form.cdr)) {
				return Nil
			}
			x = cons(symProgn, cdr(form.cdr))
			continue
		}
		if head != nil && th.img.special[head] != nil {
			break
		}
		th.enter(1)
		y, expanded := c.macroexpand1(x, e)
		th.leave(1)
		if !expanded {
			break
		}
		th.step(1)
		x = y
	}
	e.fn = &fnState{}
	e.level = c.newLevel()
	body := c.form(x, e)
	code := &lambda{body: body, slots: e.fn.slots, simple: true}
	code.weigh(e.fn)
	return code.run(th.push(code.slots))
}

// evalNow reports whether an eval-when applies: there is no separate compile
// time here, so loading and executing are the same.
func (c *compiler) evalNow(situations Value) bool {
	for _, v := range c.th.items(situations) {
		if s, ok := v.(*Symbol); ok {
			switch s.name {
			case "EXECUTE", "LOAD-TOPLEVEL", "EVAL", "LOAD":
				return true
			}
		}
	}
	return false
}
