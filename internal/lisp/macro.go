package lisp

// macroFn expands a macro call written in Go.
type macroFn func(c *compiler, x *Cons, e env) Value

// formsOf returns the arguments of a form as a slice.
func (c *compiler) formsOf(x *Cons) []Value { return c.th.items(x.cdr) }

// prognOf wraps forms in progn unless there is exactly one.
func prognOf(forms []Value) Value {
	if len(forms) == 1 {
		return forms[0]
	}
	return listTo(listTo(Nil, forms...), symProgn)
}

func quoted(v Value) Value { return list(symQuote, v) }

func macroTable() map[*Symbol]macroFn {
	return map[*Symbol]macroFn{
		symWhen:                    mWhen,
		symUnless:                  mUnless,
		symCond:                    mCond,
		sym("CASE"):                func(c *compiler, x *Cons, _ env) Value { return mCase(c, x, nil) },
		sym("ECASE"):               func(c *compiler, x *Cons, _ env) Value { return mCase(c, x, kernel("CASE-FAILURE")) },
		sym("CCASE"):               func(c *compiler, x *Cons, _ env) Value { return mCase(c, x, kernel("CASE-FAILURE")) },
		sym("TYPECASE"):            func(c *compiler, x *Cons, _ env) Value { return mTypecase(c, x, nil) },
		sym("ETYPECASE"):           func(c *compiler, x *Cons, _ env) Value { return mTypecase(c, x, kernel("TYPECASE-FAILURE")) },
		sym("CTYPECASE"):           func(c *compiler, x *Cons, _ env) Value { return mTypecase(c, x, kernel("TYPECASE-FAILURE")) },
		sym("RETURN"):              func(c *compiler, x *Cons, _ env) Value { return list(symReturn, Nil, c.nth(x, 1)) },
		sym("PROG1"):               mProg1,
		sym("PROG2"):               func(_ *compiler, x *Cons, _ env) Value { return list(symProgn, car(x.cdr), cons(symProg1, cdr(x.cdr))) },
		sym("DO"):                  func(c *compiler, x *Cons, _ env) Value { return mDo(c, x, symLet, symPsetq) },
		sym("DO*"):                 func(c *compiler, x *Cons, _ env) Value { return mDo(c, x, symLetStar, symSetq) },
		symPsetq:                   mPsetq,
		symSetf:                    mSetf,
		sym("PSETF"):               mPsetf,
		sym("INCF"):                func(c *compiler, x *Cons, e env) Value { return mIncf(c, x, e, symPlus) },
		sym("DECF"):                func(c *compiler, x *Cons, e env) Value { return mIncf(c, x, e, symMinus) },
		sym("PUSH"):                mPush,
		sym("POP"):                 mPop,
		sym("PUSHNEW"):             mPushnew,
		sym("REMF"):                mRemf,
		sym("SHIFTF"):              mShiftf,
		sym("ROTATEF"):             mRotatef,
		sym("MULTIPLE-VALUE-SETQ"): mMVSetq,
		sym("DESTRUCTURING-BIND"):  mDestructuringBind,
		sym("DEFUN"):               mDefun,
		sym("DEFMACRO"):            mDefmacro,
		sym("DEFVAR"):              mDefvar,
		sym("DEFPARAMETER"):        mDefparameter,
		sym("DEFCONSTANT"):         mDefconstant,
		sym("DEFSTRUCT"):           mDefstruct,
		sym("DEFCLASS"):            mDefclass,
		sym("DEFINE-CONDITION"):    mDefineCondition,
		sym("DEFGENERIC"):          mDefgeneric,
		sym("DEFMETHOD"):           mDefmethod,
		sym("DEFSETF"):             mDefsetf,
		sym("DEFTYPE"):             mDeftype,
		sym("LOOP"):                mLoop,
		sym("RESTART-CASE"):        mRestartCase,
		sym("IN-PACKAGE"): func(c *compiler, x *Cons, _ env) Value {
			return list(symInPackage, quoted(c.th.designated(c.nth(x, 1))))
		},
	}
}

func mWhen(c *compiler, x *Cons, _ env) Value {
	c.want(x, 1, -1)
	return list(symIf, car(x.cdr), prognOf(c.th.items(cdr(x.cdr))))
}

func mUnless(c *compiler, x *Cons, _ env) Value {
	c.want(x, 1, -1)
	return list(symIf, car(x.cdr), Nil, prognOf(c.th.items(cdr(x.cdr))))
}

func mCond(c *compiler, x *Cons, _ env) Value {
	var out Value = Nil
	clauses := c.formsOf(x)
	for i := len(clauses) - 1; i >= 0; i-- {
		cl, ok := clauses[i].(*Cons)
		if !ok {
			c.bad("cond: clause %s is no list", c.th.show(clauses[i]))
		}
		body := c.th.items(cl.cdr)
		switch {
		case len(body) == 0:
			out = list(symOr, cl.car, out)
		case cl.car == Value(symT):
			out = prognOf(body)
		default:
			out = list(symIf, cl.car, prognOf(body), out)
		}
	}
	return out
}

// keyTest is the test of a case clause.
func (c *compiler) keyTest(keys, v Value) Value {
	ks, isList := keys.(*Cons)
	if !isList {
		if keys == Value(Nil) {
			return Nil
		}
		return list(symEql, v, quoted(keys))
	}
	if ks.cdr == Value(Nil) {
		return list(symEql, v, quoted(ks.car))
	}
	return list(symMember, v, quoted(keys))
}

func mCase(c *compiler, x *Cons, failure *Symbol) Value {
	c.want(x, 1, -1)
	clauses := c.th.items(cdr(x.cdr))
	v := Value(c.th.gensym("KEY"))
	var out Value = Nil
	if failure != nil {
		var all []Value
		for _, cl := range clauses {
			if _, ok := car(cl).(*Cons); ok {
				all = append(all, c.th.items(car(cl))...)
			} else {
				all = append(all, car(cl))
			}
		}
		out = list(failure, v, quoted(list(all...)))
	}
	for i := len(clauses) - 1; i >= 0; i-- {
		cl, ok := clauses[i].(*Cons)
		if !ok {
			c.bad("case: clause %s is no list", c.th.show(clauses[i]))
		}
		body := prognOf(c.th.items(cl.cdr))
		if failure == nil && (cl.car == Value(symT) || cl.car == Value(symOtherwise)) {
			if i != len(clauses)-1 {
				c.bad("case: the clause for %s must be the last", c.th.show(cl.car))
			}
			out = body
			continue
		}
		out = list(symIf, c.keyTest(cl.car, v), body, out)
	}
	return list(symLet, list(list(v, car(x.cdr))), out)
}

func mTypecase(c *compiler, x *Cons, failure *Symbol) Value {
	c.want(x, 1, -1)
	clauses := c.th.items(cdr(x.cdr))
	v := Value(c.th.gensym("KEY"))
	var out Value = Nil
	if failure != nil {
		var all []Value
		for _, cl := range clauses {
			all = append(all, car(cl))
		}
		out = list(failure, v, quoted(list(all...)))
	}
	for i := len(clauses) - 1; i >= 0; i-- {
		cl := clauses[i]
		body := prognOf(c.th.items(cdr(cl)))
		if car(cl) == Value(symT) || car(cl) == Value(symOtherwise) {
			out = body
			continue
		}
		out = list(symIf, list(symTypep, v, quoted(car(cl))), body, out)
	}
	return list(symLet, list(list(v, car(x.cdr))), out)
}

func mProg1(c *compiler, x *Cons, _ env) Value {
	c.want(x, 1, -1)
	v := Value(c.th.gensym("FIRST"))
	return listTo(list(listTo(list(v), symProgn, prognOf(c.th.items(cdr(x.cdr))))), symLet, list(list(v, car(x.cdr))))
}

// mDo expands do and do*.
func mDo(c *compiler, x *Cons, let, set *Symbol) Value {
	c.want(x, 2, -1)
	var bindings, steps []Value
	for _, v := range c.th.items(c.nth(x, 1)) {
		parts := []Value{v}
		if _, ok := v.(*Cons); ok {
			parts = c.th.items(v)
		}
		switch len(parts) {
		case 1:
			bindings = append(bindings, parts[0])
		case 2, 3:
			bindings = append(bindings, list(parts[0], parts[1]))
			if len(parts) == 3 {
				steps = append(steps, parts[0], parts[2])
			}
		default:
			c.bad("do: malformed variable %s", c.th.show(v))
		}
	}
	end := c.th.items(c.nth(x, 2))
	if len(end) == 0 {
		end = []Value{Nil}
	}
	body := c.th.items(cdr(cdr(x.cdr)))
	var decls []Value
	for len(body) > 0 && car(body[0]) == Value(symDeclare) {
		decls = append(decls, body[0])
		body = body[1:]
	}
	next := Value(c.th.gensym("NEXT"))
	tag := []Value{
		symTagbody, next,
		list(symWhen, end[0], list(symReturn, Nil, prognOf(end[1:]))),
	}
	tag = append(tag, body...)
	if len(steps) > 0 {
		tag = append(tag, listTo(listTo(Nil, steps...), set))
	}
	tag = append(tag, list(symGo, next))
	inner := append([]Value{let, list(bindings...)}, decls...)
	inner = append(inner, list(tag...))
	return list(symBlock, Nil, list(inner...))
}

func mPsetq(c *compiler, x *Cons, _ env) Value {
	forms := c.formsOf(x)
	if len(forms)%2 != 0 {
		c.bad("psetq: odd number of parts")
	}
	if len(forms) == 2 {
		return list(symProgn, list(symSetq, forms[0], forms[1]), Nil)
	}
	var binds, sets []Value
	for i := 0; i < len(forms); i += 2 {
		t := Value(c.th.gensym("NEW"))
		binds = append(binds, list(t, forms[i+1]))
		sets = append(sets, list(symSetq, forms[i], t))
	}
	return listTo(listTo(list(Nil), sets...), symLet, list(binds...))
}

func mMVSetq(c *compiler, x *Cons, _ env) Value {
	c.want(x, 2, 2)
	var temps, sets []Value
	for _, v := range c.th.items(c.nth(x, 1)) {
		t := Value(c.th.gensym("NEW"))
		temps = append(temps, t)
		sets = append(sets, list(symSetf, v, t))
	}
	if len(temps) == 0 {
		return list(symValues, c.nth(x, 2))
	}
	return listTo(listTo(list(temps[0]), sets...), symMVBind, list(temps...), c.nth(x, 2))
}

func mDestructuringBind(c *compiler, x *Cons, _ env) Value {
	c.want(x, 2, -1)
	bindings := c.destructure(c.nth(x, 1), c.nth(x, 2))
	return listTo(cdr(cdr(x.cdr)), symLetStar, list(bindings...))
}

func mDefun(c *compiler, x *Cons, _ env) Value {
	c.want(x, 2, -1)
	name := car(x.cdr)
	block := blockName(name)
	if block == nil {
		c.bad("defun: want a name, found %s", c.th.show(name))
	}
	fn := listTo(cdr(x.cdr), symNamedLambda, name, block)
	return list(symDefun, quoted(name), list(symFunction, fn))
}

func mDefmacro(c *compiler, x *Cons, _ env) Value {
	c.want(x, 2, -1)
	name := c.symbol(car(x.cdr), "defmacro")
	return list(symDefmacroK, quoted(name), listTo(cdr(x.cdr), symMacroLambda, name))
}

func mDeftype(c *compiler, x *Cons, _ env) Value {
	c.want(x, 2, -1)
	name := c.symbol(car(x.cdr), "deftype")
	return list(symDeftypeK, quoted(name), listTo(cdr(x.cdr), symMacroLambda, name))
}

func mDefvar(c *compiler, x *Cons, _ env) Value {
	c.want(x, 1, 3)
	name := c.varName(car(x.cdr))
	forms := []Value{list(symProclaimSpecial, quoted(name), c.nth(x, 3))}
	if cdr(x.cdr) != Value(Nil) {
		forms = append(forms, list(symUnless, list(symBoundp, quoted(name)), list(symSet, quoted(name), c.nth(x, 2))))
	}
	return prognOf(append(forms, quoted(name)))
}

func mDefparameter(c *compiler, x *Cons, _ env) Value {
	c.want(x, 2, 3)
	name := c.varName(car(x.cdr))
	return list(symProgn, list(symProclaimSpecial, quoted(name), c.nth(x, 3)), list(symSet, quoted(name), c.nth(x, 2)), quoted(name))
}

func mDefconstant(c *compiler, x *Cons, _ env) Value {
	c.want(x, 2, 3)
	return list(symDefconstantK, quoted(c.symbol(car(x.cdr), "defconstant")), c.nth(x, 2), c.nth(x, 3))
}

// mRestartCase: clauses are (name lambda-list [:report r] [:test t] [:interactive i] . body).
func mRestartCase(c *compiler, x *Cons, _ env) Value {
	c.want(x, 1, -1)
	var specs []Value
	for _, cl := range c.th.items(cdr(x.cdr)) {
		body := cdr(cdr(cl))
		var report, test Value = Nil, Nil
		for {
			k, ok := car(body).(*Symbol)
			if !ok || !k.keyword() {
				break
			}
			v := car(cdr(body))
			switch k.name {
			case "REPORT":
				if _, str := v.(*Str); str {
					report = v
				} else {
					report = list(symFunction, v)
				}
			case "TEST":
				test = list(symFunction, v)
			}
			body = cdr(cdr(body))
		}
		specs = append(specs, list(car(cl), listTo(body, symLambda, car(cdr(cl))), report, test))
	}
	return list(symWithRestarts, Nil, list(specs...), car(x.cdr))
}
