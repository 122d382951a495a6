package lisp

// mLoop expands loop. A simple loop has only compound forms; anything else is
// parsed clause by clause into the parts of one tagbody.
func mLoop(c *compiler, x *Cons, _ env) Value {
	forms := c.formsOf(x)
	simple := true
	for _, f := range forms {
		if _, ok := f.(*Cons); !ok {
			simple = false
		}
	}
	if simple {
		next := Value(c.th.gensym("NEXT"))
		return list(symBlock, Nil, listTo(append2(forms, list(symGo, next)), symTagbody, next))
	}
	l := &looper{c: c, rest: forms, end: c.th.gensym("END"), name: Nil}
	l.parse()
	return l.expand()
}

func append2(forms []Value, last Value) Value { return listTo(list(last), forms...) }

// looper collects the parts of an extended loop.
type looper struct {
	c        *compiler
	rest     []Value
	name     *Symbol
	end      *Symbol
	binds    []Value // let* bindings, in order
	prologue []Value // initially
	first    []Value // before the first round: initial values and end tests
	body     []Value
	step     []Value // before each later round
	epilogue []Value // finally
	result   Value   // nil until an accumulation or finally return sets it
	accums   map[*Symbol]*accum
	value    *accum // the default accumulation
}

// accum is one accumulation: a list with its tail, or a number.
type accum struct {
	kind string
	v    Value // variable visible to the program or a gensym
	head Value
	tail Value
	used Value // whether maximize or minimize has seen a value
}

// word returns the next item as the name of a loop keyword, "" if it is none.
func (l *looper) word() string {
	if len(l.rest) == 0 {
		return ""
	}
	if s, ok := l.rest[0].(*Symbol); ok {
		return s.name
	}
	return ""
}

func (l *looper) accept(words ...string) bool {
	w := l.word()
	for _, x := range words {
		if w == x {
			l.rest = l.rest[1:]
			return true
		}
	}
	return false
}

func (l *looper) form() Value {
	if len(l.rest) == 0 {
		l.c.bad("loop: something is missing at the end")
	}
	f := l.rest[0]
	l.rest = l.rest[1:]
	return f
}

func (l *looper) temp(prefix string, init Value) Value {
	t := Value(l.c.th.gensym(prefix))
	l.binds = append(l.binds, list(t, init))
	return t
}

func (l *looper) parse() {
	if l.accept("NAMED") {
		l.name = l.c.symbol(l.form(), "loop named")
	}
	for len(l.rest) > 0 {
		l.c.th.step(1)
		switch {
		case l.accept("WITH"):
			l.with()
		case l.accept("FOR", "AS"):
			l.fors()
		case l.accept("INITIALLY"):
			l.prologue = append(l.prologue, l.forms()...)
		case l.accept("FINALLY"):
			if l.accept("RETURN") {
				l.epilogue = append(l.epilogue, list(symReturn, l.name, l.form()))
			} else {
				l.accept("DO", "DOING")
				l.epilogue = append(l.epilogue, l.forms()...)
			}
		default:
			l.body = append(l.body, l.clause())
		}
	}
}

// forms returns the compound forms up to the next keyword.
func (l *looper) forms() []Value {
	var out []Value
	for len(l.rest) > 0 {
		if _, ok := l.rest[0].(*Cons); !ok {
			break
		}
		out = append(out, l.form())
	}
	return out
}

// skipType skips a type after a variable.
func (l *looper) skipType() {
	if l.accept("OF-TYPE") {
		l.form()
		return
	}
	switch l.word() {
	case "FIXNUM", "FLOAT", "T", "SINGLE-FLOAT", "DOUBLE-FLOAT", "INTEGER", "NUMBER":
		l.form()
	}
}

func (l *looper) with() {
	for {
		v := l.form()
		l.skipType()
		init := Value(Nil)
		if l.accept("=") {
			init = l.form()
		}
		if _, ok := v.(*Cons); ok {
			t := l.temp("WITH", init)
			for _, s := range l.pattern(v) {
				l.binds = append(l.binds, list(s, Nil))
			}
			l.binds = append(l.binds, list(l.c.th.gensym("SET"), prognOf(append(l.assign(v, t), Nil))))
		} else if v != Value(Nil) {
			l.binds = append(l.binds, list(v, init))
		}
		if !l.accept("AND") {
			return
		}
	}
}

// pattern returns the variables of a destructuring pattern.
func (l *looper) pattern(p Value) []Value {
	l.c.th.step(1)
	switch p := p.(type) {
	case *Symbol:
		if p == Nil {
			return nil
		}
		return []Value{p}
	case *Cons:
		l.c.th.enter(1)
		defer l.c.th.leave(1)
		return append(l.pattern(p.car), l.pattern(p.cdr)...)
	}
	l.c.bad("loop: %s is no variable", l.c.th.show(p))
	return nil
}

// assign returns forms that set the variables of a pattern from a form.
func (l *looper) assign(p, form Value) []Value {
	switch p := p.(type) {
	case *Symbol:
		if p == Nil {
			return nil
		}
		return []Value{list(symSetq, p, form)}
	case *Cons:
		t := l.temp("PART", Nil)
		out := []Value{list(symSetq, t, form)}
		out = append(out, l.assign(p.car, list(symCar, t))...)
		return append(out, l.assign(p.cdr, list(symCdr, t))...)
	}
	return nil
}

// stepper is one for clause: how its variable starts, steps and ends.
type stepper struct {
	firstTest, nextTest Value   // true when the loop is over; nil for never
	first, next         []Value // set the variable
	pre                 []Value // before the test of later rounds
}

func (l *looper) fors() {
	var group []stepper
	for {
		group = append(group, l.forClause())
		if !l.accept("AND") {
			break
		}
		l.accept("FOR", "AS")
	}
	exit := func(test Value) Value { return list(symWhen, test, list(symGo, l.end)) }
	for _, s := range group {
		if s.firstTest != nil {
			l.first = append(l.first, exit(s.firstTest))
		}
		l.first = append(l.first, s.first...)
	}
	if len(group) > 1 {
		l.parallel(group, exit)
		return
	}
	s := group[0]
	l.step = append(l.step, s.pre...)
	if s.nextTest != nil {
		l.step = append(l.step, exit(s.nextTest))
	}
	l.step = append(l.step, s.next...)
}

// parallel steps variables joined by AND: all new values are computed from the
// old ones.
func (l *looper) parallel(group []stepper, exit func(Value) Value) {
	var later []Value
	for _, s := range group {
		l.step = append(l.step, s.pre...)
		if s.nextTest != nil {
			l.step = append(l.step, exit(s.nextTest))
		}
		for _, set := range s.next {
			parts := l.c.th.items(set)
			if len(parts) == 3 && parts[0] == Value(symSetq) {
				t := l.temp("NEW", Nil)
				l.step = append(l.step, list(symSetq, t, parts[2]))
				later = append(later, list(symSetq, parts[1], t))
			} else {
				later = append(later, set)
			}
		}
	}
	l.step = append(l.step, later...)
}

func (l *looper) forClause() stepper {
	v := l.form()
	l.skipType()
	for _, s := range l.pattern(v) {
		l.binds = append(l.binds, list(s, Nil))
	}
	switch {
	case l.accept("IN"):
		return l.forList(v, true)
	case l.accept("ON"):
		return l.forList(v, false)
	case l.accept("ACROSS"):
		return l.forAcross(v)
	case l.accept("="):
		return l.forEquals(v)
	case l.accept("BEING"):
		return l.forBeing(v)
	}
	return l.forNumber(v)
}

func (l *looper) forList(v Value, elements bool) stepper {
	at := l.temp("LIST", l.form())
	by := Value(nil)
	if l.accept("BY") {
		by = l.temp("BY", l.form())
	}
	advance := list(symCdr, at)
	if by != nil {
		advance = list(symFuncall, by, at)
	}
	from, test := Value(at), list(symAtom, at)
	if elements {
		from, test = list(symCar, at), list(symEndp, at)
	}
	set := l.assign(v, from)
	return stepper{firstTest: test, nextTest: test, first: set, next: set, pre: []Value{list(symSetq, at, advance)}}
}

func (l *looper) forAcross(v Value) stepper {
	vec := l.temp("VECTOR", l.form())
	i := l.temp("INDEX", Int(0))
	n := l.temp("LENGTH", list(symLength, vec))
	test := list(symGE, i, n)
	set := l.assign(v, list(symElt, vec, i))
	return stepper{firstTest: test, nextTest: test, first: set, next: set, pre: []Value{list(symSetq, i, list(symOnePlus, i))}}
}

func (l *looper) forEquals(v Value) stepper {
	init := l.form()
	if l.accept("THEN") {
		return stepper{first: l.assign(v, init), next: l.assign(v, l.form())}
	}
	set := l.assign(v, init)
	return stepper{first: set, next: set}
}

func (l *looper) forBeing(v Value) stepper {
	l.accept("THE", "EACH")
	kind := l.word()
	l.form()
	if !l.accept("OF", "IN") {
		l.c.bad("loop: want OF after %s", kind)
	}
	src := l.form()
	fn, other := symHashKeys, ""
	switch kind {
	case "HASH-KEY", "HASH-KEYS":
		other = "HASH-VALUE"
	case "HASH-VALUE", "HASH-VALUES":
		fn, other = symHashValues, "HASH-KEY"
	case "SYMBOL", "SYMBOLS", "PRESENT-SYMBOL", "PRESENT-SYMBOLS", "EXTERNAL-SYMBOL", "EXTERNAL-SYMBOLS":
		at := l.temp("SYMBOLS", list(symPackageSymbols, src))
		return l.overList(v, at, nil)
	default:
		l.c.bad("loop: cannot iterate over %s", kind)
	}
	if l.accept("USING") {
		using := l.c.th.items(l.form())
		if len(using) != 2 || l.c.symbol(using[0], "using").name != other {
			l.c.bad("loop: want (%s variable) after USING", other)
		}
		l.binds = append(l.binds, list(using[1], Nil))
		at := l.temp("PAIRS", list(symHashPairs, src))
		if fn == symHashKeys {
			return l.overList(cons(v, using[1]), at, nil)
		}
		return l.overList(cons(using[1], v), at, nil)
	}
	return l.overList(v, l.temp("KEYS", list(fn, src)), nil)
}

func (l *looper) overList(v, at Value, _ Value) stepper {
	set := l.assign(v, list(symCar, at))
	test := list(symNull, at)
	return stepper{firstTest: test, nextTest: test, first: set, next: set, pre: []Value{list(symSetq, at, list(symCdr, at))}}
}

// forNumber parses from/upfrom/downfrom, to/upto/downto/below/above and by, in
// any order.
func (l *looper) forNumber(v Value) stepper {
	start, by := Value(Int(0)), Value(Int(1))
	var limit Value
	down, strict := false, false
	for {
		switch {
		case l.accept("FROM", "UPFROM"):
			start = l.temp("START", l.form())
		case l.accept("DOWNFROM"):
			start, down = l.temp("START", l.form()), true
		case l.accept("TO", "UPTO"):
			limit = l.temp("LIMIT", l.form())
		case l.accept("DOWNTO"):
			limit, down = l.temp("LIMIT", l.form()), true
		case l.accept("BELOW"):
			limit, strict = l.temp("LIMIT", l.form()), true
		case l.accept("ABOVE"):
			limit, strict, down = l.temp("LIMIT", l.form()), true, true
		case l.accept("BY"):
			by = l.temp("BY", l.form())
		default:
			return l.counted(v, start, by, limit, down, strict)
		}
	}
}

func (l *looper) counted(v, start, by, limit Value, down, strict bool) stepper {
	op, past := symPlus, symGreater
	switch {
	case down && strict:
		op, past = symMinus, symLE
	case down:
		op, past = symMinus, symLess
	case strict:
		past = symGE
	}
	s := stepper{first: l.assign(v, start), next: l.assign(v, list(op, v, by))}
	if limit != nil {
		// The variable is set before the test, as the first value may be past it.
		test := list(symWhen, list(past, v, limit), list(symGo, l.end))
		s.first = append(s.first, test)
		s.next = append(s.next, test)
	}
	return s
}

// clause parses one main clause into a form.
func (l *looper) clause() Value {
	th := l.c.th
	th.enter(1)
	defer th.leave(1)
	switch {
	case l.accept("DO", "DOING"):
		return prognOf(append(l.forms(), Nil))
	case l.accept("RETURN"):
		return list(symReturn, l.name, l.form())
	case l.accept("WHILE"):
		return list(symUnless, l.form(), list(symGo, l.end))
	case l.accept("UNTIL"):
		return list(symWhen, l.form(), list(symGo, l.end))
	case l.accept("REPEAT"):
		n := l.temp("COUNT", l.form())
		test := list(symWhen, list(symLE, n, Int(0)), list(symGo, l.end))
		l.first = append(l.first, test)
		l.step = append(l.step, test)
		return list(symSetq, n, list(symOneMinus, n))
	case l.accept("WHEN", "IF"):
		return l.conditional(false)
	case l.accept("UNLESS"):
		return l.conditional(true)
	case l.accept("ALWAYS"):
		l.result = symT
		return list(symUnless, l.form(), list(symReturn, l.name, Nil))
	case l.accept("NEVER"):
		l.result = symT
		return list(symWhen, l.form(), list(symReturn, l.name, Nil))
	case l.accept("THEREIS"):
		t := l.temp("FOUND", Nil)
		return list(symWhen, list(symSetq, t, l.form()), list(symReturn, l.name, t))
	}
	return l.accumulate()
}

// conditional parses when/if/unless test clause {and clause} [else …] [end].
func (l *looper) conditional(negate bool) Value {
	test := l.form()
	it := Value(nil)
	if l.usesIt() {
		it = l.temp("IT", Nil)
		test = list(symSetq, it, test)
	}
	then := l.selectable(it)
	var other []Value
	if l.accept("ELSE") {
		other = l.selectable(nil)
	}
	l.accept("END")
	if negate {
		then, other = other, then
	}
	return list(symIf, test, prognOf(append(then, Nil)), prognOf(append(other, Nil)))
}

// usesIt reports whether the clause after a test takes IT as its value.
func (l *looper) usesIt() bool {
	if len(l.rest) < 2 {
		return false
	}
	s, ok := l.rest[1].(*Symbol)
	return ok && s.name == "IT"
}

func (l *looper) selectable(it Value) []Value {
	var out []Value
	for {
		if it != nil && l.usesIt() {
			l.rest = append([]Value{l.rest[0], it}, l.rest[2:]...)
		}
		out = append(out, l.clause())
		if !l.accept("AND") {
			return out
		}
	}
}

func (l *looper) accumulate() Value {
	kind := l.word()
	switch kind {
	case "COLLECT", "COLLECTING", "APPEND", "APPENDING", "NCONC", "NCONCING":
	case "SUM", "SUMMING", "COUNT", "COUNTING", "MAXIMIZE", "MAXIMIZING", "MINIMIZE", "MINIMIZING":
	default:
		l.c.bad("loop: unknown keyword %s", l.c.th.show(l.form()))
	}
	l.form()
	x := l.form()
	var into *Symbol
	if l.accept("INTO") {
		into = l.c.symbol(l.form(), "loop into")
	}
	l.skipType()
	kind = accumKind(kind)
	a := l.accum(kind, into)
	switch kind {
	case "LIST":
		return l.collect(a, list(symTailAdd, a.tail, x))
	case "APPEND":
		return l.collect(a, list(symTailAppend, a.tail, x))
	case "NCONC":
		return l.collect(a, list(symTailNconc, a.tail, x))
	case "SUM":
		return list(symSetq, a.v, list(symPlus, a.v, x))
	case "COUNT":
		return list(symWhen, x, list(symSetq, a.v, list(symOnePlus, a.v)))
	}
	t := l.temp("VALUE", Nil)
	op := symGreater
	if kind == "MIN" {
		op = symLess
	}
	return list(symProgn, list(symSetq, t, x),
		list(symIf, list(symAnd, a.used, list(symNot, list(op, t, a.v))), Nil, list(symSetq, a.v, t, a.used, symT)))
}

func accumKind(word string) string {
	switch word {
	case "COLLECT", "COLLECTING":
		return "LIST"
	case "APPEND", "APPENDING":
		return "APPEND"
	case "NCONC", "NCONCING":
		return "NCONC"
	case "SUM", "SUMMING":
		return "SUM"
	case "COUNT", "COUNTING":
		return "COUNT"
	case "MAXIMIZE", "MAXIMIZING":
		return "MAX"
	}
	return "MIN"
}

func (l *looper) collect(a *accum, add Value) Value {
	form := list(symSetq, a.tail, add)
	if a.v == nil {
		return form
	}
	return list(symProgn, form, list(symSetq, a.v, list(symCdr, a.head)))
}

// accum finds or makes the accumulation a clause adds to.
func (l *looper) accum(kind string, into *Symbol) *accum {
	if into == nil && l.value != nil {
		return l.value
	}
	if a := l.accums[into]; into != nil && a != nil {
		return a
	}
	a := &accum{kind: kind}
	switch kind {
	case "LIST", "APPEND", "NCONC":
		a.head = l.temp("HEAD", list(symList, Nil))
		a.tail = l.temp("TAIL", a.head)
		if into != nil {
			a.v = into
			l.binds = append(l.binds, list(into, Nil))
		}
	default:
		init := Value(Int(0))
		if kind == "MAX" || kind == "MIN" {
			a.used = l.temp("USED", Nil)
		}
		a.v = l.c.th.gensym("ACCUM")
		if into != nil {
			a.v = into
		}
		l.binds = append(l.binds, list(a.v, init))
	}
	if into != nil {
		if l.accums == nil {
			l.accums = map[*Symbol]*accum{}
		}
		l.accums[into] = a
		return a
	}
	l.value = a
	if a.head != nil {
		l.result = list(symCdr, a.head)
	} else {
		l.result = a.v
	}
	return a
}

func (l *looper) expand() Value {
	next := Value(l.c.th.gensym("NEXT"))
	result := l.result
	if result == nil {
		result = Nil
	}
	tag := []Value{symTagbody}
	tag = append(tag, l.prologue...)
	tag = append(tag, l.first...)
	tag = append(tag, next)
	tag = append(tag, l.body...)
	tag = append(tag, l.step...)
	tag = append(tag, list(symGo, next), l.end)
	tag = append(tag, l.epilogue...)
	tag = append(tag, list(symReturn, l.name, result))
	finish := list(list(symLoopFinish, Nil, list(symQuote, list(symGo, l.end))))
	return list(symBlock, l.name, list(symLetStar, list(l.binds...), list(symMacrolet, finish, list(tag...))))
}
