package lisp

type specialForm func(c *compiler, x *Cons, e env) node

var symEvalWhen = sym("EVAL-WHEN")

// specialTable is the operators the compiler knows itself.
func specialTable() map[*Symbol]specialForm {
	return map[*Symbol]specialForm{
		symQuote:                    cQuote,
		symFunction:                 cFunction,
		symLambda:                   func(c *compiler, x *Cons, e env) node { return c.lambdaForm(x, nil, e) },
		symIf:                       cIf,
		symProgn:                    func(c *compiler, x *Cons, e env) node { return c.progn(c.th.items(x.cdr), e) },
		symLet:                      func(c *compiler, x *Cons, e env) node { return cLet(c, x, e, false) },
		symLetStar:                  func(c *compiler, x *Cons, e env) node { return cLet(c, x, e, true) },
		symSetq:                     cSetq,
		symBlock:                    cBlock,
		symReturn:                   cReturnFrom,
		symTagbody:                  cTagbody,
		symGo:                       cGo,
		sym("CATCH"):                cCatch,
		sym("THROW"):                cThrow,
		sym("UNWIND-PROTECT"):       cUnwindProtect,
		sym("PROGV"):                cProgv,
		sym("FLET"):                 func(c *compiler, x *Cons, e env) node { return cFlet(c, x, e, false) },
		sym("LABELS"):               func(c *compiler, x *Cons, e env) node { return cFlet(c, x, e, true) },
		sym("MACROLET"):             cMacrolet,
		sym("SYMBOL-MACROLET"):      cSymbolMacrolet,
		sym("MULTIPLE-VALUE-CALL"):  cMVCall,
		sym("MULTIPLE-VALUE-PROG1"): cMVProg1,
		symMVBind:                   cMVBind,
		sym("MULTIPLE-VALUE-LIST"):  cMVList,
		sym("NTH-VALUE"):            cNthValue,
		sym("LOCALLY"):              cLocally,
		symThe:                      cThe,
		sym("TRULY-THE"):            cThe,
		symEvalWhen:                 cEvalWhen,
		sym("LOAD-TIME-VALUE"):      cLoadTimeValue,
		symAnd:                      cAnd,
		symOr:                       cOr,
		sym("DOLIST"):               cDolist,
		sym("DOTIMES"):              cDotimes,
		sym("HANDLER-BIND"):         cHandlerBind,
		sym("HANDLER-CASE"):         cHandlerCase,
		kernel("WITH-RESTARTS"):     cWithRestarts,
		symDeclare: func(c *compiler, _ *Cons, _ env) node {
			c.bad("declare is only allowed at the head of a body")
			return nil
		},
		kernel("NAMED-LAMBDA"): cNamedLambda,
		kernel("MACRO-LAMBDA"): cMacroLambda,
	}
}

// nth returns argument i of a form, counting from 1, or NIL.
func (c *compiler) nth(x *Cons, i int) Value {
	var v Value = x
	for ; i > 0; i-- {
		v = cdr(v)
	}
	return car(v)
}

// want checks the number of arguments of a special form; most < 0 is no limit.
func (c *compiler) want(x *Cons, least, most int) {
	n := len(c.th.items(x.cdr))
	if n < least || most >= 0 && n > most {
		c.bad("%s: wrong number of parts: %d", c.th.show(x.car), n)
	}
}

func cQuote(c *compiler, x *Cons, _ env) node {
	c.want(x, 1, 1)
	return c.constant(c.nth(x, 1))
}

func cFunction(c *compiler, x *Cons, e env) node {
	c.want(x, 1, 1)
	switch name := c.nth(x, 1).(type) {
	case *Symbol:
		if b := c.find(e.funs, name); b != nil && b.v != nil {
			return c.ref(b.v, e)
		}
		if c.th.img.special[name] != nil || c.th.cell(name).macro != nil || c.th.img.macros[name] != nil {
			c.undefined(name)
		}
		return &functionRef{name}
	case *Cons:
		switch name.car {
		case symLambda:
			return c.lambdaForm(name, nil, e)
		case symNamedLambda:
			return cNamedLambda(c, name, e)
		case symSetf:
			s := c.symbol(car(name.cdr), "function")
			for b := e.funs; b != nil; b = b.next {
				if l, ok := b.sym.(*Cons); ok && car(l.cdr) == Value(s) {
					return c.ref(b.v, e)
				}
			}
			return &setfRef{s}
		}
	}
	c.bad("function: want a name or a lambda expression, found %s", c.th.show(c.nth(x, 1)))
	return nil
}

func (c *compiler) undefined(name *Symbol) { c.th.undefinedFunction(name) }

type functionRef struct{ sym *Symbol }

func (n *functionRef) eval(f *frame) Value {
	f.th.step(1)
	return f.th.function(n.sym)
}

type setfRef struct{ sym *Symbol }

func (n *setfRef) eval(f *frame) Value { return f.th.setfFunction(n.sym) }

// cNamedLambda: (named-lambda name block params . body)
func cNamedLambda(c *compiler, x *Cons, e env) node {
	parts := x.cdr.(*Cons)
	rest := parts.cdr.(*Cons)
	block, _ := rest.car.(*Symbol)
	if block == Nil {
		block = nil
	}
	l := rest.cdr.(*Cons)
	return c.function(parts.car, l.car, l.cdr, block, e)
}

// cMacroLambda: (macro-lambda name params . body)
func cMacroLambda(c *compiler, x *Cons, e env) node {
	parts := x.cdr.(*Cons)
	l := parts.cdr.(*Cons)
	return c.macroFunction(parts.car.(*Symbol), l.car, l.cdr, e)
}

func cIf(c *compiler, x *Cons, e env) node {
	c.want(x, 2, 3)
	return &ifNode{c.arg(c.nth(x, 1), e), c.form(c.nth(x, 2), e), c.form(c.nth(x, 3), e)}
}

func cAnd(c *compiler, x *Cons, e env) node {
	forms := c.th.items(x.cdr)
	switch len(forms) {
	case 0:
		return &constNode{symT}
	case 1:
		return c.form(forms[0], e)
	}
	return &andNode{c.chain(forms, e)}
}

func cOr(c *compiler, x *Cons, e env) node {
	forms := c.th.items(x.cdr)
	switch len(forms) {
	case 0:
		return &constNode{Nil}
	case 1:
		return c.form(forms[0], e)
	}
	return &orNode{c.chain(forms, e)}
}

// chain compiles all but the last form as arguments.
func (c *compiler) chain(forms []Value, e env) []node {
	out := make([]node, len(forms))
	for i, f := range forms {
		if i == len(forms)-1 {
			out[i] = c.form(f, e)
		} else {
			out[i] = c.arg(f, e)
		}
	}
	return out
}

func cLet(c *compiler, x *Cons, e env, sequential bool) node {
	c.want(x, 1, -1)
	if c.nth(x, 1) != Value(Nil) {
		if _, ok := c.nth(x, 1).(*Cons); !ok {
			c.bad("let: want a list of bindings, found %s", c.th.show(c.nth(x, 1)))
		}
	}
	specs := c.th.items(c.nth(x, 1))
	parts := c.body(cdr(x.cdr), false)
	if len(specs) == 0 {
		return c.progn(parts.forms, e.declare(parts.specials))
	}
	n := &letNode{vars: make([]letVar, len(specs))}
	inner := e
	var vars []*variable
	for i, s := range specs {
		name, init := s, Value(Nil)
		if l, ok := s.(*Cons); ok {
			name, init = l.car, car(l.cdr)
			if cdr(cdr(l)) != Value(Nil) {
				c.bad("let: malformed binding %s", c.th.show(s))
			}
		}
		v := &n.vars[i]
		sym := c.varName(name)
		c.th.step(uint64(i / 16))
		for _, earlier := range specs[:i] {
			if !sequential && (earlier == name || car(earlier) == name) {
				c.bad("let: the variable %s is bound twice", sym.name)
			}
		}
		if sequential {
			v.init = c.arg(init, inner)
		} else {
			v.init = c.arg(init, e)
		}
		if c.isSpecial(sym, parts.specials) {
			v.special = sym
			n.specials = true
			inner.vars = &binding{next: inner.vars, sym: sym, special: true}
			continue
		}
		lv := e.fn.newVar()
		v.slot = lv.slot
		lv.boxed = append(lv.boxed, &v.boxed)
		vars = append(vars, lv)
		inner = inner.bindVar(sym, lv)
	}
	n.parallel = n.specials && !sequential && len(specs) > 1
	n.body = c.progn(parts.forms, inner.declare(c.others(parts.specials, specs)))
	for _, v := range vars {
		v.close()
	}
	return n
}

// others returns the declared specials that are not bound here.
func (c *compiler) others(declared []*Symbol, specs []Value) []*Symbol {
	var out []*Symbol
	c.th.step(uint64(len(declared) * len(specs) / 16))
	for _, d := range declared {
		bound := false
		for _, s := range specs {
			if s == Value(d) || car(s) == Value(d) {
				bound = true
			}
		}
		if !bound {
			out = append(out, d)
		}
	}
	return out
}

func cLocally(c *compiler, x *Cons, e env) node {
	parts := c.body(x.cdr, false)
	return c.progn(parts.forms, e.declare(parts.specials))
}

func cSetq(c *compiler, x *Cons, e env) node {
	forms := c.th.items(x.cdr)
	if len(forms)%2 != 0 {
		c.bad("setq: odd number of parts")
	}
	if len(forms) == 0 {
		return &constNode{Nil}
	}
	var out []node
	for i := 0; i < len(forms); i += 2 {
		s := c.symbol(forms[i], "setq")
		if b := c.find(e.vars, s); b != nil && b.alias != nil {
			out = append(out, c.form(list(symSetf, b.alias, forms[i+1]), e))
			continue
		} else if ex := c.th.cell(s).expand; b == nil && ex != nil {
			out = append(out, c.form(list(symSetf, ex, forms[i+1]), e))
			continue
		}
		out = append(out, c.assign(s, c.arg(forms[i+1], e), e))
	}
	if len(out) == 1 {
		return out[0]
	}
	return &prognNode{out}
}

func cBlock(c *compiler, x *Cons, e env) node {
	c.want(x, 1, -1)
	n := &blockNode{}
	name := c.symbol(c.nth(x, 1), "block")
	return c.block(n, name, e, func(e env) node { return c.progn(c.th.items(cdr(x.cdr)), e) })
}

// block compiles a body inside a named block.
func (c *compiler) block(n *blockNode, name *Symbol, e env, body func(env) node) node {
	b := &binding{next: e.blocks, sym: name, block: n, level: e.level, fn: e.fn}
	e.blocks = b
	n.body = body(e)
	return n
}

func (b *binding) tokenVar() *variable {
	if b.block != nil {
		if b.block.token == nil {
			b.block.token = b.fn.newVar()
		}
		return b.block.token
	}
	if b.tags.token == nil {
		b.tags.token = b.fn.newVar()
	}
	return b.tags.token
}

func cReturnFrom(c *compiler, x *Cons, e env) node {
	c.want(x, 1, 2)
	name := c.symbol(c.nth(x, 1), "return-from")
	b := e.blocks
	for b != nil && (b.sym != Value(name) || b.block == nil) {
		c.th.step(1)
		b = b.next
	}
	if b == nil {
		c.bad("return-from: no block named %s here", c.th.show(name))
	}
	val := c.arg(c.nth(x, 2), e)
	if b.fn == e.fn && b.level == e.level {
		return &exitNode{b.block, val}
	}
	return &throwNode{c.ref(b.tokenVar(), e), val}
}

func cTagbody(c *compiler, x *Cons, e env) node {
	return c.tagbody(c.th.items(x.cdr), e)
}

func isTag(v Value) bool {
	switch v.(type) {
	case *Symbol, Int, *bignum:
		return true
	}
	return false
}

func (c *compiler) tagbody(forms []Value, e env) node {
	n := &tagbodyNode{}
	segment := 0
	for _, f := range forms {
		if isTag(f) {
			segment++
			e.blocks = &binding{next: e.blocks, sym: f, tags: n, tag: segment, level: e.level, fn: e.fn}
		}
	}
	var cur []Value
	flush := func() {
		n.segments = append(n.segments, c.progn(cur, e))
		cur = nil
	}
	for _, f := range forms {
		if isTag(f) {
			flush()
			continue
		}
		cur = append(cur, f)
	}
	if segment == 0 {
		return c.progn(append(cur, Nil), e)
	}
	flush()
	return n
}

func cGo(c *compiler, x *Cons, e env) node {
	c.want(x, 1, 1)
	tag := c.nth(x, 1)
	b := e.blocks
	for b != nil && (b.tags == nil || !c.th.eql(b.sym, tag)) {
		c.th.step(1)
		b = b.next
	}
	if b == nil {
		c.bad("go: no tag %s here", c.th.show(tag))
	}
	if b.fn == e.fn && b.level == e.level {
		return &goNode{b.tags, b.tag}
	}
	return &throwNode{c.ref(b.tokenVar(), e), &constNode{Int(b.tag)}}
}

type catchNode struct{ tag, body node }

func cCatch(c *compiler, x *Cons, e env) node {
	c.want(x, 1, -1)
	return &catchNode{c.arg(c.nth(x, 1), e), c.progn(c.th.items(cdr(x.cdr)), e)}
}

func (n *catchNode) eval(f *frame) Value {
	th := f.th
	th.step(1)
	tok := &token{tag: ev(n.tag, f)}
	old := th.catches
	th.catches = append(th.catches, tok)
	v, _ := th.catch(tok, func() Value { return n.body.eval(f) })
	th.catches = old
	return v
}

type throwTagNode struct{ tag, val node }

func cThrow(c *compiler, x *Cons, e env) node {
	c.want(x, 2, 2)
	return &throwTagNode{c.arg(c.nth(x, 1), e), c.arg(c.nth(x, 2), e)}
}

func (n *throwTagNode) eval(f *frame) Value {
	th := f.th
	th.step(1)
	tag := ev(n.tag, f)
	v := n.val.eval(f)
	for i := len(th.catches) - 1; i >= 0; i-- {
		if t := th.catches[i]; t.tag == tag && !t.dead {
			th.throw(t, v)
		}
	}
	th.fail(classControlError, "attempt to throw to a tag that does not exist: %s", th.show(tag))
	return nil
}

type protectNode struct{ body, cleanup node }

func cUnwindProtect(c *compiler, x *Cons, e env) node {
	c.want(x, 1, -1)
	inner := e
	inner.level = c.newLevel()
	return &protectNode{c.form(c.nth(x, 1), e), c.progn(c.th.items(cdr(x.cdr)), inner)}
}

func (n *protectNode) eval(f *frame) Value {
	f.th.step(1)
	return f.th.protect(
		func() Value { return n.body.eval(f) },
		func() { n.cleanup.eval(f) })
}

type progvNode struct{ syms, vals, body node }

func cProgv(c *compiler, x *Cons, e env) node {
	c.want(x, 2, -1)
	return &progvNode{c.arg(c.nth(x, 1), e), c.arg(c.nth(x, 2), e), c.progn(c.th.items(cdr(cdr(x.cdr))), e)}
}

func (n *progvNode) eval(f *frame) Value {
	th := f.th
	th.step(1)
	syms := th.items(ev(n.syms, f))
	vals := th.items(ev(n.vals, f))
	mark := len(th.dyn)
	for i, s := range syms {
		var v Value
		if i < len(vals) {
			v = vals[i]
		}
		th.bind(th.symbolArg(s), v)
	}
	v := n.body.eval(f)
	th.unbind(mark)
	return v
}

type fletNode struct {
	vars []letVar
	rec  bool
	body node
}

func cFlet(c *compiler, x *Cons, e env, rec bool) node {
	c.want(x, 1, -1)
	defs := c.th.items(c.nth(x, 1))
	n := &fletNode{vars: make([]letVar, len(defs)), rec: rec}
	vars := make([]*variable, len(defs))
	inner := e
	for i, d := range defs {
		if _, ok := d.(*Cons); !ok {
			c.bad("flet: malformed definition %s", c.th.show(d))
		}
		v := e.fn.newVar()
		v.assigned = rec
		v.boxed = append(v.boxed, &n.vars[i].boxed)
		n.vars[i].slot = v.slot
		vars[i] = v
		inner.funs = &binding{next: inner.funs, sym: car(d), v: v}
	}
	scope := e
	if rec {
		scope = inner
	}
	for i, d := range defs {
		name := car(d)
		rest, ok := cdr(d).(*Cons)
		if !ok {
			c.bad("flet: %s has no lambda list", c.th.show(name))
		}
		n.vars[i].init = c.function(name, rest.car, rest.cdr, blockName(name), scope)
	}
	parts := c.body(cdr(x.cdr), false)
	n.body = c.progn(parts.forms, inner.declare(parts.specials))
	for _, v := range vars {
		v.close()
	}
	return n
}

// blockName is the name of the block around a function called name.
func blockName(name Value) *Symbol {
	if l, ok := name.(*Cons); ok {
		name = car(l.cdr)
	}
	s, _ := name.(*Symbol)
	return s
}

func (n *fletNode) eval(f *frame) Value {
	f.th.step(uint64(1 + len(n.vars)))
	if n.rec {
		for i := range n.vars {
			n.vars[i].set(f, Nil)
		}
	}
	for i := range n.vars {
		v := &n.vars[i]
		fn := v.init.eval(f)
		if v.boxed && n.rec {
			f.slots[v.slot].(*box).v = fn
		} else {
			v.set(f, fn)
		}
	}
	return n.body.eval(f)
}

func cMacrolet(c *compiler, x *Cons, e env) node {
	c.want(x, 1, -1)
	inner := e
	for _, d := range c.th.items(c.nth(x, 1)) {
		name := c.symbol(car(d), "macrolet")
		// The expander runs now: it may use the macros around it, not variables.
		me := env{funs: e.funs, fn: &fnState{}}
		rest, ok := cdr(d).(*Cons)
		if !ok {
			c.bad("macrolet: %s has no lambda list", name.name)
		}
		fn := c.macroFunction(name, rest.car, rest.cdr, me)
		cn := fn.(*closureNode)
		if cn.fn == nil {
			c.bad("macrolet: the expander of %s uses a local function", name.name)
		}
		inner.funs = &binding{next: inner.funs, sym: name, macro: cn.fn}
	}
	parts := c.body(cdr(x.cdr), false)
	return c.progn(parts.forms, inner.declare(parts.specials))
}

func cSymbolMacrolet(c *compiler, x *Cons, e env) node {
	c.want(x, 1, -1)
	for _, d := range c.th.items(c.nth(x, 1)) {
		e.vars = &binding{next: e.vars, sym: c.symbol(car(d), "symbol-macrolet"), alias: car(cdr(d))}
	}
	parts := c.body(cdr(x.cdr), false)
	return c.progn(parts.forms, e.declare(parts.specials))
}

type mvCallNode struct {
	fn   node
	args []node
}

func cMVCall(c *compiler, x *Cons, e env) node {
	c.want(x, 1, -1)
	return &mvCallNode{c.arg(c.nth(x, 1), e), c.args(cdr(x.cdr), e)}
}

func (n *mvCallNode) eval(f *frame) Value {
	th := f.th
	th.step(1)
	fn := th.fn(ev(n.fn, f))
	base := len(th.stk)
	for _, a := range n.args {
		vs := th.all(a.eval(f))
		th.stk = append(th.stk, vs...)
	}
	return th.callStack(fn, base)
}

type mvProg1Node struct{ first, rest node }

func cMVProg1(c *compiler, x *Cons, e env) node {
	c.want(x, 1, -1)
	return &mvProg1Node{c.arg(c.nth(x, 1), e), c.progn(c.th.items(cdr(x.cdr)), e)}
}

func (n *mvProg1Node) eval(f *frame) Value {
	th := f.th
	th.step(1)
	v := n.first.eval(f)
	if v != manyValues {
		if r := n.rest.eval(f); r == exiting {
			return r
		}
		return v
	}
	kept := append([]Value(nil), th.mv...)
	if r := n.rest.eval(f); r == exiting {
		return r
	}
	return th.values(kept...)
}

func cMVBind(c *compiler, x *Cons, e env) node {
	c.want(x, 2, -1)
	names := c.th.items(c.nth(x, 1))
	parts := c.body(cdr(cdr(x.cdr)), false)
	n := &mvBindNode{vars: make([]letVar, len(names)), val: c.arg(c.nth(x, 2), e)}
	var vars []*variable
	inner := e
	for i, name := range names {
		s := c.varName(name)
		if c.isSpecial(s, parts.specials) {
			n.vars[i].special = s
			inner.vars = &binding{next: inner.vars, sym: s, special: true}
			continue
		}
		v := e.fn.newVar()
		n.vars[i].slot = v.slot
		v.boxed = append(v.boxed, &n.vars[i].boxed)
		vars = append(vars, v)
		inner = inner.bindVar(s, v)
	}
	n.body = c.progn(parts.forms, inner.declare(c.others(parts.specials, names)))
	for _, v := range vars {
		v.close()
	}
	return n
}

type mvListNode struct{ val node }

func cMVList(c *compiler, x *Cons, e env) node {
	c.want(x, 1, 1)
	return &mvListNode{c.arg(c.nth(x, 1), e)}
}

func (n *mvListNode) eval(f *frame) Value {
	f.th.step(1)
	vs := f.th.all(n.val.eval(f))
	return f.th.newList(vs, Nil)
}

type nthValueNode struct{ n, val node }

func cNthValue(c *compiler, x *Cons, e env) node {
	c.want(x, 2, 2)
	return &nthValueNode{c.arg(c.nth(x, 1), e), c.arg(c.nth(x, 2), e)}
}

func (n *nthValueNode) eval(f *frame) Value {
	f.th.step(1)
	i := f.th.index(ev(n.n, f))
	vs := f.th.all(n.val.eval(f))
	if i >= len(vs) {
		return Nil
	}
	return vs[i]
}

type theNode struct {
	typ Value
	val node
}

func cThe(c *compiler, x *Cons, e env) node {
	c.want(x, 2, 2)
	typ := c.nth(x, 1)
	if typ == Value(symT) || car(typ) == Value(symValues) {
		return c.form(c.nth(x, 2), e)
	}
	return &theNode{typ, c.arg(c.nth(x, 2), e)}
}

func (n *theNode) eval(f *frame) Value {
	f.th.step(1)
	v := n.val.eval(f)
	if x := f.th.one(v); !f.th.typep(x, n.typ) {
		f.th.typeError(x, n.typ)
	}
	return v
}

func cEvalWhen(c *compiler, x *Cons, e env) node {
	c.want(x, 1, -1)
	if !c.evalNow(c.nth(x, 1)) {
		return &constNode{Nil}
	}
	return c.progn(c.th.items(cdr(x.cdr)), e)
}

func cLoadTimeValue(c *compiler, x *Cons, _ env) node {
	c.want(x, 1, 2)
	return c.constant(c.th.one(c.th.eval(c.nth(x, 1), env{})))
}

// dolistNode and dotimesNode run their loops in Go. The body is a statement
// inside the block NIL that the compiler puts around the whole.
type dolistNode struct {
	list   node
	v      letVar
	body   node
	result node
}

func cDolist(c *compiler, x *Cons, e env) node {
	spec := c.th.items(c.nth(x, 1))
	if len(spec) < 2 || len(spec) > 3 {
		c.bad("dolist: want (variable list [result])")
	}
	return c.block(&blockNode{}, Nil, e, func(e env) node {
		n := &dolistNode{list: c.arg(spec[1], e)}
		n.body, n.result = c.loopBody(x, spec, e, &n.v, false)
		return n
	})
}

// loopBody declares the variable of dolist or dotimes and compiles the body.
// A variable the loop itself assigns is shared by all closures over it.
func (c *compiler) loopBody(x *Cons, spec []Value, e env, lv *letVar, assigned bool) (body, result node) {
	parts := c.body(cdr(x.cdr), false)
	s := c.varName(spec[0])
	inner := e.declare(parts.specials)
	v := e.fn.newVar()
	v.assigned = assigned
	if c.isSpecial(s, parts.specials) {
		lv.special = s
		inner.vars = &binding{next: inner.vars, sym: s, special: true}
	} else {
		lv.slot = v.slot
		v.boxed = append(v.boxed, &lv.boxed)
		inner = inner.bindVar(s, v)
	}
	body = c.tagbody(parts.forms, inner)
	result = &constNode{Nil}
	if len(spec) == 3 {
		result = c.form(spec[2], inner)
	}
	v.close()
	return body, result
}

func (n *dolistNode) eval(f *frame) Value {
	th := f.th
	mark := len(th.dyn)
	l := ev(n.list, f)
	for {
		c, ok := l.(*Cons)
		if !ok {
			break
		}
		th.step(1)
		l = c.cdr
		n.v.set(f, c.car)
		v := n.body.eval(f)
		th.unbind(mark)
		if v == exiting {
			return v
		}
	}
	if l != Value(Nil) {
		th.typeError(l, symList)
	}
	n.v.set(f, Nil)
	v := n.result.eval(f)
	th.unbind(mark)
	return v
}

type dotimesNode struct {
	count  node
	v      letVar
	body   node
	result node
}

func cDotimes(c *compiler, x *Cons, e env) node {
	spec := c.th.items(c.nth(x, 1))
	if len(spec) < 2 || len(spec) > 3 {
		c.bad("dotimes: want (variable count [result])")
	}
	return c.block(&blockNode{}, Nil, e, func(e env) node {
		n := &dotimesNode{count: c.arg(spec[1], e)}
		n.body, n.result = c.loopBody(x, spec, e, &n.v, true)
		return n
	})
}

func (n *dotimesNode) eval(f *frame) Value {
	th := f.th
	mark := len(th.dyn)
	count := ev(n.count, f)
	limit, ok := count.(Int)
	if !ok {
		th.integerArg(count)
		limit = Int(1<<63 - 1) // a bignum: the budget ends the loop first
		if isTrue(mkBool(th.compare(count, Int(0)) < 0)) {
			limit = 0
		}
	}
	// One binding serves all rounds, as in SBCL: closures see the last count.
	n.v.set(f, Int(0))
	i := Int(0)
	for ; i < limit; i++ {
		th.step(1)
		n.assign(f, mkInt(int64(i)))
		if v := n.body.eval(f); v == exiting {
			th.unbind(mark)
			return v
		}
		i = n.current(f, i)
	}
	n.assign(f, mkInt(int64(max(i, 0))))
	v := n.result.eval(f)
	th.unbind(mark)
	return v
}

func (n *dotimesNode) assign(f *frame, v Value) {
	switch {
	case n.v.special != nil:
		f.th.own(n.v.special).value = v
	case n.v.boxed:
		f.slots[n.v.slot].(*box).v = v
	default:
		f.slots[n.v.slot] = v
	}
}

// current reads the variable back, since the body may have assigned it.
func (n *dotimesNode) current(f *frame, i Int) Int {
	var v Value
	switch {
	case n.v.special != nil:
		v = f.th.symbolValue(n.v.special)
	case n.v.boxed:
		v = f.slots[n.v.slot].(*box).v
	default:
		v = f.slots[n.v.slot]
	}
	if j, ok := v.(Int); ok {
		return j
	}
	return i
}
