package lisp

// lambda is the compiled code of a function.
type lambda struct {
	name   Value // for messages and printing
	doc    string
	list   Value // the lambda list as written
	params []*paramSlot
	req    int
	opts   []optParam
	rest   int // slot of the &rest parameter, or -1
	keys   []keyParam
	hasKey bool
	allow  bool
	simple bool // only required parameters
	slots  int
	weight int // what a call costs of the depth budget
	body   node
}

// paramSlot is the place of one parameter, and whether it must be boxed.
type paramSlot struct {
	slot  int
	boxed bool
}

type optParam struct {
	at       *paramSlot
	def      node
	supplied *paramSlot // nil without a supplied-p parameter
}

type keyParam struct {
	optParam
	key *Symbol
}

// weigh sets what a call costs, from how deep the code nests and how much room
// its frame takes, so that the depth budget bounds Go's stack and the frames.
func (l *lambda) weigh(fs *fnState) {
	l.slots = fs.slots
	l.weight = 1 + fs.maxNest/24 + fs.slots/32
}

// bind fills the frame from the arguments on the stack, and takes them off.
func (l *lambda) bind(f *frame, base int) {
	th := f.th
	n := len(th.stk) - base
	if n < l.req || l.rest < 0 && !l.hasKey && n > l.req+len(l.opts) {
		th.fail(classProgramError, "invalid number of arguments for %s: %d", th.lambdaName(l), n)
	}
	args := th.stk[base : base+n : base+n]
	for i := range l.req {
		l.params[i].set(f, args[i])
	}
	for i := range l.opts {
		o := &l.opts[i]
		if k := l.req + i; k < n {
			o.give(f, args[k])
		} else {
			o.omit(f)
		}
	}
	tail := args[min(n, l.req+len(l.opts)):]
	if l.rest >= 0 {
		p := l.params[l.rest]
		p.set(f, th.newList(tail, Nil))
	}
	if l.hasKey {
		l.bindKeys(f, tail)
	}
	th.stk = th.stk[:base]
}

func (l *lambda) bindKeys(f *frame, tail []Value) {
	th := f.th
	if len(tail)%2 != 0 {
		th.fail(classProgramError, "odd number of keyword arguments for %s", th.lambdaName(l))
	}
	if !l.allow && !th.allowsOthers(tail) {
		th.step(uint64(len(l.keys) * len(tail) / 64))
		for i := 0; i < len(tail); i += 2 {
			if !l.knows(tail[i]) && tail[i] != Value(keyAllow) {
				known := make([]*Symbol, len(l.keys))
				for i := range l.keys {
					known[i] = l.keys[i].key
				}
				th.badKey(th.lambdaName(l), tail[i], known)
			}
		}
	}
	th.step(uint64(len(l.keys) * len(tail) / 64))
	for i := range l.keys {
		k := &l.keys[i]
		found := false
		for j := 0; j < len(tail) && !found; j += 2 {
			if tail[j] == Value(k.key) {
				k.give(f, tail[j+1])
				found = true
			}
		}
		if !found {
			k.omit(f)
		}
	}
}

func (l *lambda) knows(k Value) bool {
	for i := range l.keys {
		if k == Value(l.keys[i].key) {
			return true
		}
	}
	return false
}

func (p *paramSlot) set(f *frame, v Value) {
	if p.boxed {
		v = &box{v: v}
	}
	f.slots[p.slot] = v
}

func (o *optParam) give(f *frame, v Value) {
	o.at.set(f, v)
	if o.supplied != nil {
		o.supplied.set(f, symT)
	}
}

func (o *optParam) omit(f *frame) {
	o.at.set(f, ev(o.def, f))
	if o.supplied != nil {
		o.supplied.set(f, Nil)
	}
}

func (th *Thread) lambdaName(l *lambda) string {
	if l.name == nil {
		return "an anonymous function"
	}
	return th.show(l.name)
}

// paramList is a lambda list taken apart.
type paramList struct {
	whole, env Value
	req        []Value
	opt        []paramSpec
	rest       Value
	keys       []paramSpec
	hasKey     bool
	allow      bool
	aux        []paramSpec
}

type paramSpec struct {
	key      *Symbol
	name     Value
	def      Value
	supplied *Symbol
}

// parseParams takes a lambda list apart; patterns may nest when destructuring.
func (c *compiler) parseParams(x Value, destructuring bool) paramList {
	var p paramList
	mode := symT
	for {
		rest, ok := x.(*Cons)
		if !ok {
			break
		}
		c.th.step(1)
		item := rest.car
		x = rest.cdr
		switch item {
		case symOptional, symKey, symAux:
			mode = item.(*Symbol)
			p.hasKey = p.hasKey || mode == symKey
			continue
		case symAllow:
			p.allow = true
			continue
		case symRest, symBody, symWhole, symEnv:
			next, ok := x.(*Cons)
			if !ok {
				c.bad("lambda list: %s wants a name", c.th.show(item))
			}
			x = next.cdr
			c.namedParam(&p, item.(*Symbol), next.car)
			continue
		}
		switch mode {
		case symT:
			if !destructuring {
				c.varName(item)
			}
			p.req = append(p.req, item)
		case symOptional:
			p.opt = append(p.opt, c.paramSpec(item, false))
		case symKey:
			p.keys = append(p.keys, c.paramSpec(item, true))
		case symAux:
			p.aux = append(p.aux, c.paramSpec(item, false))
		}
	}
	if x != Value(Nil) {
		if !destructuring {
			c.bad("lambda list ends in %s: want a proper list", c.th.show(x))
		}
		p.rest = x
	}
	return p
}

func (c *compiler) namedParam(p *paramList, kind *Symbol, name Value) {
	switch kind {
	case symWhole:
		p.whole = name
	case symEnv:
		p.env = name
	default:
		p.rest = name
	}
}

func (c *compiler) paramSpec(x Value, keyed bool) paramSpec {
	s := paramSpec{name: x, def: Nil}
	if l, ok := x.(*Cons); ok {
		s.name = l.car
		s.def = car(l.cdr)
		if sup := cdr(l.cdr); sup != Value(Nil) {
			s.supplied = c.varName(car(sup))
		}
		if k, ok := s.name.(*Cons); ok && keyed {
			s.key = c.symbol(k.car, "keyword parameter")
			s.name = car(k.cdr)
		}
	}
	if keyed && s.key == nil {
		s.key = c.th.keyword(c.symbol(s.name, "keyword parameter").name)
	}
	return s
}

// lambdaForm compiles (lambda list body…) to a node that makes the closure.
func (c *compiler) lambdaForm(x *Cons, name Value, e env) node {
	l, ok := x.cdr.(*Cons)
	if !ok {
		c.bad("lambda: want a lambda list")
	}
	return c.function(name, l.car, l.cdr, nil, e)
}

// function compiles a function. block names an implicit block around the
// body, nil for none.
func (c *compiler) function(name Value, params, body Value, block *Symbol, e env) node {
	p := c.parseParams(params, false)
	parts := c.body(body, true)
	outer := e.fn
	fs := &fnState{parent: outer}
	e.fn = fs
	e.level = c.newLevel()
	line := c.line
	l := &lambda{name: name, doc: parts.doc, list: params, rest: -1, hasKey: p.hasKey, allow: p.allow}
	b := paramBinder{c: c, l: l, parts: parts}
	e = b.bindAll(&p, e)
	e = e.declare(parts.specials)
	forms := parts.forms
	if block != nil {
		forms = []Value{listTo(listTo(Nil, forms...), symBlock, block)}
	}
	if len(p.aux) > 0 {
		forms = []Value{c.auxLet(p.aux, forms)}
	}
	l.body = c.progn(forms, e)
	if len(b.syms) > 0 {
		l.body = &specialParams{b.slots, b.syms, l.body}
	}
	for _, v := range b.vars {
		v.close()
	}
	l.simple = len(l.opts) == 0 && l.rest < 0 && !l.hasKey
	l.weigh(fs)
	c.line = line
	return c.closure(l, fs, outer)
}

func (c *compiler) auxLet(aux []paramSpec, forms []Value) Value {
	var bs []Value
	for _, a := range aux {
		bs = append(bs, list(a.name, a.def))
	}
	return listTo(listTo(Nil, forms...), symLetStar, list(bs...))
}

func (c *compiler) closure(l *lambda, fs, outer *fnState) node {
	n := &closureNode{code: l}
	for _, v := range fs.captures {
		if v.fn == outer {
			n.from = append(n.from, captureFrom{slot: v.slot})
		} else {
			n.from = append(n.from, captureFrom{slot: outer.capture(v), up: true})
		}
	}
	if len(n.from) == 0 {
		n.fn = &Function{name: l.name, code: l}
	}
	return n
}

// paramBinder declares the parameters of one function.
type paramBinder struct {
	c     *compiler
	l     *lambda
	parts bodyParts
	vars  []*variable
	slots []int // parameters that are special variables
	syms  []*Symbol
}

func (b *paramBinder) bindAll(p *paramList, e env) env {
	var at *paramSlot
	for _, r := range p.req {
		_, e = b.declare(r, e)
	}
	b.l.req = len(p.req)
	for _, o := range p.opt {
		var opt optParam
		opt, e = b.optional(o, e)
		b.l.opts = append(b.l.opts, opt)
	}
	if p.rest != nil {
		at, e = b.declare(p.rest, e)
		for i, q := range b.l.params {
			if q == at {
				b.l.rest = i
			}
		}
	}
	for _, k := range p.keys {
		var opt optParam
		opt, e = b.optional(k, e)
		b.l.keys = append(b.l.keys, keyParam{opt, k.key})
	}
	return e
}

func (b *paramBinder) optional(s paramSpec, e env) (optParam, env) {
	o := optParam{def: b.c.arg(s.def, e)}
	o.at, e = b.declare(s.name, e)
	if s.supplied != nil {
		o.supplied, e = b.declare(s.supplied, e)
	}
	return o, e
}

func (b *paramBinder) declare(name Value, e env) (*paramSlot, env) {
	s := b.c.varName(name)
	v := e.fn.newVar()
	at := &paramSlot{slot: v.slot}
	b.l.params = append(b.l.params, at)
	if b.c.isSpecial(s, b.parts.specials) {
		b.slots = append(b.slots, v.slot)
		b.syms = append(b.syms, s)
		return at, e
	}
	v.boxed = append(v.boxed, &at.boxed)
	b.vars = append(b.vars, v)
	return at, e.bindVar(s, v)
}

// destructure turns a pattern into let* bindings that take the value of form
// apart, checking its shape.
func (c *compiler) destructure(pattern, form Value) []Value {
	d := destructurer{c: c}
	d.pattern(pattern, form)
	return d.bindings
}

type destructurer struct {
	c        *compiler
	bindings []Value
}

func (d *destructurer) bind(name, init Value) {
	d.bindings = append(d.bindings, list(name, init))
}

// target binds a variable or takes a nested pattern apart.
func (d *destructurer) target(t, init Value) {
	if t == Value(Nil) {
		d.bind(d.c.th.gensym("IGNORE"), list(kernel("WANT-NIL"), init))
		return
	}
	if s, ok := t.(*Symbol); ok {
		d.bind(s, init)
		return
	}
	d.pattern(t, init)
}

func (d *destructurer) pattern(pattern, form Value) {
	th := d.c.th
	th.enter(1)
	defer th.leave(1)
	p := d.c.parseParams(pattern, true)
	rest := Value(th.gensym("REST"))
	d.bind(rest, form)
	if p.whole != nil {
		d.target(p.whole, rest)
	}
	for _, r := range p.req {
		d.target(r, list(kernel("NEED"), rest))
		d.bind(rest, list(symCdr, rest))
	}
	for _, o := range p.opt {
		if o.supplied != nil {
			d.bind(o.supplied, list(symNot, list(symNot, rest)))
		}
		d.target(o.name, list(symIf, rest, list(symCar, rest), o.def))
		d.bind(rest, list(symCdr, rest))
	}
	switch {
	case p.rest != nil:
		d.target(p.rest, rest)
	case !p.hasKey:
		d.bind(th.gensym("END"), list(kernel("WANT-END"), rest))
	}
	if p.hasKey {
		d.keys(&p, rest)
	}
	for _, a := range p.aux {
		d.bind(a.name, a.def)
	}
}

func (d *destructurer) keys(p *paramList, rest Value) {
	th := d.c.th
	var known []Value
	for _, k := range p.keys {
		known = append(known, k.key)
	}
	if !p.allow {
		d.bind(th.gensym("KEYS"), list(kernel("CHECK-KEYS"), rest, list(symQuote, list(known...))))
	}
	for _, k := range p.keys {
		found := Value(th.gensym("FOUND"))
		d.bind(found, list(kernel("FIND-KEY"), rest, list(symQuote, k.key)))
		if k.supplied != nil {
			d.bind(k.supplied, list(symNot, list(symNot, found)))
		}
		d.target(k.name, list(symIf, found, list(symCar, found), k.def))
	}
}

// macroFunction compiles a macro's lambda list and body to a function of the
// form and the environment.
func (c *compiler) macroFunction(name *Symbol, params, body Value, e env) node {
	whole, environment := c.th.gensym("WHOLE"), c.th.gensym("ENV")
	params, envVar := c.splitEnv(params)
	parts := c.body(body, true)
	bindings := c.destructure(params, list(symCdr, whole))
	if l, ok := params.(*Cons); ok && l.car == Value(symWhole) {
		bindings = append([]Value{list(car(l.cdr), whole)}, c.destructure(cdr(l.cdr), list(symCdr, whole))...)
	}
	if envVar != nil {
		bindings = append([]Value{list(envVar, environment)}, bindings...)
	}
	decl := listTo(Nil, symDeclare, listTo(listTo(Nil, symbolsAsValues(parts.specials)...), symSpecial))
	inner := listTo(listTo(Nil, parts.forms...), symBlock, name)
	forms := list(list(symLetStar, list(bindings...), decl, inner))
	n := c.function(name, list(whole, symOptional, environment), forms, nil, e)
	if cn, ok := n.(*closureNode); ok {
		cn.code.doc, cn.code.list = parts.doc, params
	}
	return n
}

func symbolsAsValues(ss []*Symbol) []Value {
	out := make([]Value, len(ss))
	for i, s := range ss {
		out[i] = s
	}
	return out
}

// splitEnv removes &environment and its name from a macro lambda list.
func (c *compiler) splitEnv(params Value) (Value, Value) {
	var kept []Value
	var name Value
	for {
		l, ok := params.(*Cons)
		if !ok {
			break
		}
		c.th.step(1)
		params = l.cdr
		if l.car == Value(symEnv) {
			name = car(params)
			params = cdr(params)
			continue
		}
		kept = append(kept, l.car)
	}
	return listTo(params, kept...), name
}
