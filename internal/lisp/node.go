package lisp

type constNode struct{ v Value }

func (n *constNode) eval(*frame) Value { return n.v }

// ev evaluates n for its first value.
func ev(n node, f *frame) Value {
	v := n.eval(f)
	if v == manyValues {
		return f.th.one(v)
	}
	return v
}

type localRef struct {
	slot  int
	boxed bool
}

func (n *localRef) eval(f *frame) Value {
	v := f.slots[n.slot]
	if n.boxed {
		return v.(*box).v
	}
	return v
}

type upRef struct {
	slot  int
	boxed bool
}

func (n *upRef) eval(f *frame) Value {
	v := f.up[n.slot]
	if n.boxed {
		b := v.(*box)
		if b.frozen {
			b = f.th.current(b).(*box)
		}
		return b.v
	}
	return v
}

type specialRef struct{ sym *Symbol }

func (n *specialRef) eval(f *frame) Value {
	f.th.step(1)
	if v := f.th.cell(n.sym).value; v != nil {
		return v
	}
	return f.th.symbolValue(n.sym)
}

type localSet struct {
	slot  int
	boxed bool
	val   node
}

func (n *localSet) eval(f *frame) Value {
	f.th.step(1)
	v := ev(n.val, f)
	if n.boxed {
		f.slots[n.slot].(*box).v = v
	} else {
		f.slots[n.slot] = v
	}
	return v
}

// upSet assigns a captured variable; being both, it is in a box.
type upSet struct {
	slot int
	val  node
}

func (n *upSet) eval(f *frame) Value {
	f.th.step(1)
	v := ev(n.val, f)
	b := f.up[n.slot].(*box)
	if b.frozen {
		b = f.th.boxToChange(b)
	}
	b.v = v
	return v
}

type specialSet struct {
	sym *Symbol
	val node
}

func (n *specialSet) eval(f *frame) Value {
	f.th.step(1)
	v := ev(n.val, f)
	f.th.setSymbolValue(n.sym, v)
	return v
}

type ifNode struct{ test, then, other node }

func (n *ifNode) eval(f *frame) Value {
	f.th.step(1)
	if ev(n.test, f) != Value(Nil) {
		return n.then.eval(f)
	}
	return n.other.eval(f)
}

type prognNode struct{ forms []node }

func (n *prognNode) eval(f *frame) Value {
	f.th.step(1)
	last := len(n.forms) - 1
	for _, x := range n.forms[:last] {
		if v := x.eval(f); v == exiting {
			return v
		}
	}
	return n.forms[last].eval(f)
}

type andNode struct{ forms []node }

func (n *andNode) eval(f *frame) Value {
	f.th.step(1)
	last := len(n.forms) - 1
	for _, x := range n.forms[:last] {
		if ev(x, f) == Value(Nil) {
			return Nil
		}
	}
	return n.forms[last].eval(f)
}

type orNode struct{ forms []node }

func (n *orNode) eval(f *frame) Value {
	f.th.step(1)
	last := len(n.forms) - 1
	for _, x := range n.forms[:last] {
		if v := ev(x, f); v != Value(Nil) {
			return v
		}
	}
	return n.forms[last].eval(f)
}

type letVar struct {
	slot    int
	boxed   bool
	special *Symbol
	init    node
}

func (v *letVar) set(f *frame, x Value) {
	switch {
	case v.special != nil:
		f.th.bind(v.special, x)
	case v.boxed:
		f.slots[v.slot] = &box{v: x}
	default:
		f.slots[v.slot] = x
	}
}

// letNode binds variables in order (let*) or, when parallel, all at once. Only
// dynamic bindings and assigned closures can tell the two apart, so plain
// lets are compiled as ordered.
type letNode struct {
	vars     []letVar
	body     node
	parallel bool
	specials bool
}

func (n *letNode) eval(f *frame) Value {
	th := f.th
	th.step(uint64(1 + len(n.vars)))
	if !n.parallel && !n.specials {
		for i := range n.vars {
			v := &n.vars[i]
			v.set(f, ev(v.init, f))
		}
		return n.body.eval(f)
	}
	mark := len(th.dyn)
	if n.parallel {
		base := len(th.stk)
		for i := range n.vars {
			th.stk = append(th.stk, ev(n.vars[i].init, f))
		}
		for i := range n.vars {
			n.vars[i].set(f, th.stk[base+i])
		}
		th.stk = th.stk[:base]
	} else {
		for i := range n.vars {
			v := &n.vars[i]
			v.set(f, ev(v.init, f))
		}
	}
	v := n.body.eval(f)
	th.unbind(mark)
	return v
}

// specialParams binds parameters that are special variables.
type specialParams struct {
	slots []int
	syms  []*Symbol
	body  node
}

func (n *specialParams) eval(f *frame) Value {
	mark := len(f.th.dyn)
	for i, s := range n.syms {
		f.th.bind(s, f.slots[n.slots[i]])
	}
	v := n.body.eval(f)
	f.th.unbind(mark)
	return v
}

// blockNode is a block. Exits from the same activation arrive as the value
// exiting; others, if there are any, find the token in its slot.
type blockNode struct {
	body  node
	token *variable // nil unless some exit needs it
}

func (n *blockNode) eval(f *frame) Value {
	th := f.th
	if n.token == nil {
		return n.arrive(th, n.body.eval(f))
	}
	tok := &token{}
	f.slots[n.token.slot] = tok
	v, _ := th.catch(tok, func() Value { return n.body.eval(f) })
	return n.arrive(th, v)
}

func (n *blockNode) arrive(th *Thread, v Value) Value {
	if v == exiting && th.exitTo == node(n) {
		return th.exitVal
	}
	return v
}

// exitNode returns from a block of the same statement chain.
type exitNode struct {
	block *blockNode
	val   node
}

func (n *exitNode) eval(f *frame) Value {
	th := f.th
	th.step(1)
	v := n.val.eval(f)
	th.exitTo, th.exitVal = n.block, v
	return exiting
}

// throwNode returns from a block through its token.
type throwNode struct{ token, val node }

func (n *throwNode) eval(f *frame) Value {
	f.th.step(1)
	v := n.val.eval(f)
	f.th.throw(n.token.eval(f).(*token), v)
	return nil
}

// tagbodyNode runs segments; tag i stands before segment i.
type tagbodyNode struct {
	segments []node
	token    *variable
}

func (n *tagbodyNode) eval(f *frame) Value {
	if n.token == nil {
		return n.loop(f, 0)
	}
	start := 0
	for {
		tok := &token{}
		f.slots[n.token.slot] = tok
		v, caught := f.th.catch(tok, func() Value { return n.loop(f, start) })
		if !caught {
			return v
		}
		f.th.step(1)
		start = int(v.(Int))
	}
}

func (n *tagbodyNode) loop(f *frame, i int) Value {
	th := f.th
	for i < len(n.segments) {
		th.step(1)
		v := n.segments[i].eval(f)
		if v == exiting {
			if th.exitTo != node(n) {
				return v
			}
			i = th.exitTag
			continue
		}
		i++
	}
	return Nil
}

type goNode struct {
	body *tagbodyNode
	tag  int
}

func (n *goNode) eval(f *frame) Value {
	f.th.step(1)
	f.th.exitTo, f.th.exitTag = n.body, n.tag
	return exiting
}

// closureNode makes a function of code and the variables it captures.
type closureNode struct {
	code *lambda
	from []captureFrom
	fn   *Function // ready when nothing is captured
}

type captureFrom struct {
	slot int
	up   bool // from the enclosing closure's captures, not from its frame
}

func (n *closureNode) eval(f *frame) Value {
	if n.fn != nil {
		return n.fn
	}
	f.th.step(1)
	f.th.alloc(2 + len(n.from))
	up := make([]Value, len(n.from))
	for i, c := range n.from {
		if c.up {
			up[i] = f.up[c.slot]
		} else {
			up[i] = f.slots[c.slot]
		}
	}
	return &Function{name: n.code.name, code: n.code, up: up}
}

// prim1 and prim2 call builtins of one and two arguments without the stack.
type prim1 struct {
	fn func(*Thread, Value) Value
	x  node
}

func (n *prim1) eval(f *frame) Value {
	f.th.step(1)
	return n.fn(f.th, ev(n.x, f))
}

type prim2 struct {
	fn   func(*Thread, Value, Value) Value
	x, y node
}

func (n *prim2) eval(f *frame) Value {
	f.th.step(1)
	x := ev(n.x, f)
	return n.fn(f.th, x, ev(n.y, f))
}

type callPrim struct {
	p    *prim
	args []node
	line int32
}

func (n *callPrim) eval(f *frame) Value {
	th := f.th
	th.step(uint64(1 + len(n.args)))
	if n.line > 0 {
		th.pos = n.line
	}
	base := len(th.stk)
	for _, a := range n.args {
		v := ev(a, f)
		th.stk = append(th.stk, v)
	}
	th.enter(1)
	v := n.p.run(th, base)
	th.leave(1)
	return v
}

type callGlobal struct {
	sym  *Symbol
	args []node
	line int32
}

func (n *callGlobal) eval(f *frame) Value {
	th := f.th
	fn := th.cell(n.sym).fn
	if fn == nil {
		for _, a := range n.args {
			ev(a, f)
		}
		fn = th.function(n.sym)
	}
	return th.invoke(fn, n.args, n.line, f)
}

type callValue struct {
	fn   node
	args []node
	line int32
}

func (n *callValue) eval(f *frame) Value {
	return f.th.invoke(n.fn.eval(f).(*Function), n.args, n.line, f)
}

// invoke evaluates args in f and calls fn. A closure with only required
// parameters gets them straight in its frame.
func (th *Thread) invoke(fn *Function, args []node, line int32, f *frame) Value {
	th.step(uint64(1 + len(args)))
	if code := fn.code; code != nil && code.simple && len(args) == code.req {
		nf := th.push(code.slots)
		for i, a := range args {
			nf.slots[i] = ev(a, f)
		}
		if line > 0 {
			th.pos = line
		}
		nf.up = fn.up
		code.boxParams(nf)
		return code.run(nf)
	}
	base := len(th.stk)
	for _, a := range args {
		v := ev(a, f)
		th.stk = append(th.stk, v)
	}
	if line > 0 {
		th.pos = line
	}
	return th.callStack(fn, base)
}

type mvBindNode struct {
	vars []letVar
	val  node
	body node
}

func (n *mvBindNode) eval(f *frame) Value {
	th := f.th
	th.step(uint64(1 + len(n.vars)))
	mark := len(th.dyn)
	vals := th.all(n.val.eval(f))
	for i := range n.vars {
		var x Value = Nil
		if i < len(vals) {
			x = vals[i]
		}
		n.vars[i].set(f, x)
	}
	v := n.body.eval(f)
	th.unbind(mark)
	return v
}
