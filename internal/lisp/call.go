package lisp

import (
	"fmt"
	"strings"
)

// A Function is anything that can be called: a closure, a builtin or a generic
// function.
type Function struct {
	name    Value // a symbol, (SETF symbol), or nil
	code    *lambda
	up      []Value
	prim    *prim
	generic *generic
}

// prim is a builtin, ready to be called. Its lambda list comes from its usage
// line; fn gets one argument per name in that order, nil for one not given,
// and the &rest arguments at the end.
type prim struct {
	name   *Symbol
	usage  string
	doc    string
	needs  Caps
	vacant bool // refuses: a host may put a function of its own in its place
	req    int
	opt    int
	rest   bool
	keys   []*Symbol
	others bool // unknown keys are ignored
	fn     func(th *Thread, a []Value) Value
	fn1    func(th *Thread, x Value) Value    // when called with one argument
	fn2    func(th *Thread, x, y Value) Value // when called with two
}

// parseUsage reads "(name a b &optional c &key d)" into p.
func (p *prim) parseUsage(usage string, keyword func(name string) *Symbol) error {
	words := strings.Fields(strings.Trim(usage, "()"))
	if len(words) == 0 {
		return fmt.Errorf("usage %q: want (name arguments…)", usage)
	}
	mode := ""
	for _, w := range words[1:] {
		if strings.HasPrefix(w, "&") {
			mode = w
			switch w {
			case "&rest":
				p.rest = true
			case "&allow-other-keys":
				p.others = true
			case "&optional", "&key":
			default:
				return fmt.Errorf("usage %q: %s is no lambda list keyword a builtin may have", usage, w)
			}
			continue
		}
		switch mode {
		case "":
			p.req++
		case "&optional":
			p.opt++
		case "&key":
			p.keys = append(p.keys, keyword(strings.ToUpper(w)))
		}
	}
	p.usage = usage
	return nil
}

// run calls the builtin with the arguments on the stack from base, and takes
// them off.
func (p *prim) run(th *Thread, base int) Value {
	n := len(th.stk) - base
	if n < p.req || !p.rest && p.keys == nil && n > p.req+p.opt {
		th.arity(p, n)
	}
	if p.needs&^th.caps != 0 {
		th.refused(p)
	}
	at := base
	switch {
	case p.keys != nil:
		at = p.unpackKeys(th, base, n)
	case p.opt > 0:
		for ; n < p.req+p.opt; n++ {
			th.stk = append(th.stk, nil)
		}
	}
	v := p.fn(th, th.stk[at:len(th.stk):len(th.stk)])
	th.stk = th.stk[:base]
	return v
}

// unpackKeys lays the arguments out by position behind the ones given.
func (p *prim) unpackKeys(th *Thread, base, n int) int {
	at := len(th.stk)
	fixed := p.req + p.opt
	for i := range fixed {
		if i < n {
			th.stk = append(th.stk, th.stk[base+i])
		} else {
			th.stk = append(th.stk, nil)
		}
	}
	for range p.keys {
		th.stk = append(th.stk, nil)
	}
	if n > fixed && (n-fixed)%2 != 0 {
		th.fail(classProgramError, "%s: odd number of keyword arguments", p.name.name)
	}
	for i := fixed; i < n; i += 2 {
		if !p.place(th, at+fixed, th.stk[base+i], th.stk[base+i+1]) && !p.others && !th.allowsOthers(th.stk[base+fixed:base+n]) {
			th.badKey(p.name.name, th.stk[base+i], p.keys)
		}
	}
	return at
}

func (p *prim) place(th *Thread, at int, k, v Value) bool {
	for i, want := range p.keys {
		if k == Value(want) {
			if th.stk[at+i] == nil {
				th.stk[at+i] = v
			}
			return true
		}
	}
	return false
}

func (th *Thread) allowsOthers(plist []Value) bool {
	for i := 0; i+1 < len(plist); i += 2 {
		if plist[i] == Value(keyAllow) {
			return isTrue(plist[i+1])
		}
	}
	return false
}

func (th *Thread) badKey(who string, k Value, known []*Symbol) {
	var all []string
	for _, s := range known {
		all = append(all, ":"+s.name)
	}
	th.fail(classProgramError, "%s: unknown keyword argument %s: want one of %s", who, th.show(k), strings.Join(all, " "))
}

func (th *Thread) arity(p *prim, n int) {
	th.fail(classProgramError, "invalid number of arguments: %d: want %s", n, p.usage)
}

func (th *Thread) refused(p *prim) {
	th.fail(classSimpleError, "%s is not permitted here: the skill lacks the capability for it", strings.ToLower(p.name.name))
}

// function returns the global function of a symbol.
func (th *Thread) function(s *Symbol) *Function {
	if fn := th.cell(s).fn; fn != nil {
		return fn
	}
	th.undefinedFunction(s)
	return nil
}

// fn resolves a function designator.
func (th *Thread) fn(v Value) *Function {
	switch v := v.(type) {
	case *Function:
		return v
	case *Symbol:
		return th.function(v)
	}
	th.typeError(v, list(symOr, symFunction, symSymbol))
	return nil
}

// call calls fn and returns its first value.
func (th *Thread) call(fn *Function, args ...Value) Value {
	return th.one(th.apply(fn, args))
}

func (th *Thread) call1(fn *Function, x Value) Value {
	if fn.prim != nil && fn.prim.fn1 != nil {
		th.step(1)
		return th.one(fn.prim.fn1(th, x))
	}
	base := len(th.stk)
	th.stk = append(th.stk, x)
	return th.one(th.callStack(fn, base))
}

func (th *Thread) call2(fn *Function, x, y Value) Value {
	if fn.prim != nil && fn.prim.fn2 != nil {
		th.step(1)
		return th.one(fn.prim.fn2(th, x, y))
	}
	base := len(th.stk)
	th.stk = append(th.stk, x, y)
	return th.one(th.callStack(fn, base))
}

// apply calls fn with args and returns all its values.
func (th *Thread) apply(fn *Function, args []Value) Value {
	base := len(th.stk)
	th.stk = append(th.stk, args...)
	return th.callStack(fn, base)
}

// callStack calls fn with the arguments on the stack from base on, and takes
// them off.
func (th *Thread) callStack(fn *Function, base int) Value {
	th.step(1)
	switch {
	case fn.prim != nil:
		th.enter(1)
		v := fn.prim.run(th, base)
		th.leave(1)
		return v
	case fn.generic != nil:
		args := append([]Value(nil), th.stk[base:]...)
		th.stk = th.stk[:base]
		return fn.generic.call(th, args)
	}
	code := fn.code
	f := th.push(code.slots)
	f.up = fn.up
	if n := len(th.stk) - base; code.simple && n == code.req {
		copy(f.slots, th.stk[base:])
		th.stk = th.stk[:base]
		code.boxParams(f)
	} else {
		code.bind(f, base)
	}
	return code.run(f)
}

// boxParams boxes the parameters that closures share and somebody assigns.
func (l *lambda) boxParams(f *frame) {
	for _, p := range l.params {
		if p.boxed {
			f.slots[p.slot] = &box{v: f.slots[p.slot]}
		}
	}
}

// run evaluates the body in a frame whose parameters are bound, and drops the
// frame.
func (l *lambda) run(f *frame) Value {
	th := f.th
	th.enter(l.weight)
	v := l.body.eval(f)
	th.depth -= l.weight
	th.fp--
	return v
}

// items returns the elements of a proper list, charging a step for each.
func (th *Thread) items(v Value) []Value {
	var out []Value
	for {
		c, ok := v.(*Cons)
		if !ok {
			if v != Value(Nil) {
				th.typeError(v, symList)
			}
			return out
		}
		th.step(1)
		if len(out)&63 == 63 {
			th.alloc(32)
		}
		out = append(out, c.car)
		v = c.cdr
	}
}

// newList makes a list of fresh conses.
func (th *Thread) newList(vs []Value, tail Value) Value {
	th.alloc(len(vs))
	for i := len(vs) - 1; i >= 0; i-- {
		tail = &Cons{vs[i], tail}
	}
	return tail
}

// cons makes a metered pair.
func (th *Thread) cons(a, d Value) *Cons {
	th.alloc(1)
	return &Cons{a, d}
}

// str makes a metered string.
func (th *Thread) str(s string) *Str {
	th.alloc(1 + len(s)/16)
	return newStr(s)
}
