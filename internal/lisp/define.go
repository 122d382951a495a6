package lisp

import (
	"fmt"
	"slices"
	"strings"
)

// definable checks that a program may give a name a new meaning.
func (th *Thread) definable(s *Symbol) {
	if th.unlock || s.pkg == nil {
		return
	}
	if s == Nil || th.pkgTable(s.pkg).locked {
		th.packageError(s.pkg, "lock on package %s violated when defining %s", s.pkg.name, s.name)
	}
}

func (th *Thread) symbolArg(v Value) *Symbol {
	s, ok := v.(*Symbol)
	if !ok {
		th.typeError(v, symSymbol)
	}
	return s
}

func (th *Thread) setDoc(s *Symbol, kind, text string) {
	c := th.own(s)
	docs := map[string]string{}
	for k, v := range c.doc {
		docs[k] = v
	}
	docs[kind] = text
	c.doc = docs
}

// setFunction defines a global function; name may be (SETF symbol).
func (th *Thread) setFunction(name Value, fn *Function) {
	if l, ok := name.(*Cons); ok {
		s := th.symbolArg(car(l.cdr))
		th.definable(s)
		th.own(s).setter = &setter{fn: fn}
		return
	}
	s := th.symbolArg(name)
	th.definable(s)
	c := th.own(s)
	if th.img.special[s] != nil {
		th.fail(classProgramError, "%s is a special operator and cannot be redefined", s.name)
	}
	c.fn, c.macro = fn, nil
	if fn.code != nil && fn.code.doc != "" {
		th.setDoc(s, "FUNCTION", fn.code.doc)
	}
}

// functionNamed returns the function of a symbol or (SETF symbol).
func (th *Thread) functionNamed(v Value) *Function {
	if l, ok := v.(*Cons); ok && l.car == Value(symSetf) {
		return th.setfFunction(th.symbolArg(car(l.cdr)))
	}
	return th.function(th.symbolArg(v))
}

func biApply(th *Thread, a []Value) Value {
	fn := th.fn(a[0])
	base := len(th.stk)
	last := len(a) - 1
	if last == 0 {
		th.fail(classProgramError, "apply: want a function and a list of arguments")
	}
	th.stk = append(th.stk, a[1:last]...)
	th.stk = append(th.stk, th.items(a[last])...)
	return th.callStack(fn, base)
}

// biNeed returns the head of a list that a pattern wants to have one.
func biNeed(th *Thread, x Value) Value {
	c, ok := x.(*Cons)
	if !ok {
		th.fail(classError, "too few elements in a list to satisfy the lambda list")
	}
	return c.car
}

func biCheckKeys(th *Thread, a []Value) Value {
	all := th.items(a[0])
	if len(all)%2 != 0 {
		th.fail(classError, "odd number of keyword arguments in a list")
	}
	if th.allowsOthers(all) {
		return Nil
	}
	for i := 0; i < len(all); i += 2 {
		known := all[i] == Value(keyAllow)
		for _, k := range th.items(a[1]) {
			known = known || k == all[i]
		}
		if !known {
			th.fail(classError, "unknown keyword %s in a list; want one of %s", th.show(all[i]), th.show(a[1]))
		}
	}
	return Nil
}

// biFindKey returns the tail that starts with a key's value, or NIL.
func biFindKey(th *Thread, x, k Value) Value {
	for c, ok := x.(*Cons); ok; c, ok = x.(*Cons) {
		th.step(1)
		if c.car == k {
			return c.cdr
		}
		x = cdr(c.cdr)
	}
	return Nil
}

// packageArg resolves a package designator, or nil when there is none.
func (th *Thread) packageOrNil(v Value) *pkgTable {
	switch x := v.(type) {
	case *Package:
		return th.pkgTable(x)
	case *Str, *Symbol, Char:
		return th.findPackage(th.designated(x).text())
	}
	th.typeError(v, symPackageType)
	return nil
}

func (th *Thread) packageArg(v Value) *Package {
	if v == nil {
		return th.currentPackage()
	}
	t := th.packageOrNil(v)
	if t == nil {
		th.packageError(v, "The name %s does not designate any package.", th.show(v))
	}
	return t.pkg
}

func (th *Thread) status(s *Symbol, status string) Value {
	if s == nil {
		return th.values(Nil, Nil)
	}
	return th.values(s, th.keyword(status))
}

// importSymbol makes a symbol present in a package.
func (th *Thread) importSymbol(s *Symbol, p *Package) {
	if old, _ := th.findSymbol(s.name, p); old != nil && old != s {
		th.packageError(p, "importing %s into %s would hide another symbol of that name", s.name, p.name)
	}
	t := th.ownPackage(p)
	if t.locked && !th.unlock {
		th.packageError(p, "package %s is locked", p.name)
	}
	if own, _ := t.own(s.name); own != s {
		t.add(s)
	}
}

// stringsOf resolves a designator for a list of names.
func (th *Thread) stringsOf(v Value) []string {
	if v == nil || v == Value(Nil) {
		return nil
	}
	if _, ok := v.(*Cons); !ok {
		return []string{th.designated(v).text()}
	}
	var out []string
	for _, x := range th.items(v) {
		out = append(out, th.designated(x).text())
	}
	return out
}

func (th *Thread) symbolsOf(v Value) []*Symbol {
	if s, ok := v.(*Symbol); ok && s != Nil {
		return []*Symbol{s}
	}
	var out []*Symbol
	for _, x := range th.items(v) {
		out = append(out, th.symbolArg(x))
	}
	return out
}

// biDefpackage: (defpackage name options), each option (keyword . names).
func biDefpackage(th *Thread, a []Value) Value {
	name := th.designated(a[0]).text()
	t := th.findPackage(name)
	if t == nil {
		t = th.makePackage(name, nil, nil)
	} else if t.locked {
		th.packageError(t.pkg, "package %s is locked", name)
	}
	p := t.pkg
	t = th.ownPackage(p)
	for _, o := range th.items(a[1]) {
		words := th.items(o)
		if len(words) == 0 {
			continue
		}
		switch th.designated(words[0]).text() {
		case "USE":
			for _, u := range words[1:] {
				th.usePackage(th.packageArg(u), t)
			}
		case "EXPORT":
			for _, w := range words[1:] {
				s := th.intern(th.designated(w).text(), p)
				th.export(s, t)
			}
		case "NICKNAMES":
			for _, w := range words[1:] {
				t.nicknames = append(slices.Clone(t.nicknames), th.designated(w).text())
			}
			th.setPackage(t)
		case "IMPORT-FROM", "SHADOWING-IMPORT-FROM":
			from := th.packageArg(words[1])
			for _, w := range words[2:] {
				s, _ := th.findSymbol(th.designated(w).text(), from)
				if s == nil {
					th.packageError(p, "no symbol named %s in %s", th.show(w), from.name)
				}
				th.importSymbol(s, p)
			}
		case "SHADOW":
			for _, w := range words[1:] {
				n := th.designated(w).text()
				if own, _ := t.own(n); own == nil {
					t.add(th.newSymbol(n, p))
				}
			}
		}
	}
	return p
}

func (th *Thread) usePackage(u *Package, t *pkgTable) {
	if !slices.Contains(t.uses, u) {
		t.uses = append(slices.Clone(t.uses), u)
	}
}

func (th *Thread) export(s *Symbol, t *pkgTable) {
	if own, _ := t.own(s.name); own == nil {
		t.add(s)
	}
	t.external[s.name] = true
}

// visible lists the symbols accessible in a package, sorted by name.
func (th *Thread) visible(p *Package, externalOnly bool) []*Symbol {
	t := th.pkgTable(p)
	var out []*Symbol
	for _, s := range t.symbols() {
		if !externalOnly || t.open || t.exports(s.name) {
			out = append(out, s)
		}
	}
	if !externalOnly {
		for _, u := range t.uses {
			out = append(out, th.visible(u, true)...)
		}
	}
	th.step(uint64(len(out)))
	return out
}

// documentation finds the text for a name; builtins describe themselves.
func (th *Thread) documentation(s *Symbol, kind string) string {
	c := th.cell(s)
	if d := c.doc[kind]; d != "" {
		return d
	}
	if kind == "FUNCTION" && c.fn != nil && c.fn.prim != nil {
		return c.fn.prim.usage + ": " + c.fn.prim.doc
	}
	return ""
}

func biDocumentation(th *Thread, a []Value) Value {
	s, ok := a[0].(*Symbol)
	if !ok {
		if f, isFn := a[0].(*Function); isFn && f.code != nil && f.code.doc != "" {
			return th.str(f.code.doc)
		}
		return Nil
	}
	if d := th.documentation(s, th.symbolArg(a[1]).name); d != "" {
		return th.str(d)
	}
	return Nil
}

func (th *Thread) apropos(part string, p *Package) []*Symbol {
	seen := map[*Symbol]bool{}
	var out []*Symbol
	for _, name := range th.packageNames() {
		t := th.findPackage(name)
		if p != nil && t.pkg != p {
			continue
		}
		for _, s := range th.visible(t.pkg, false) {
			if !seen[s] && strings.Contains(s.name, strings.ToUpper(part)) {
				seen[s] = true
				out = append(out, s)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b *Symbol) int { return strings.Compare(a.name, b.name) })
	return out
}

// packageNames lists all packages, sorted.
func (th *Thread) packageNames() []string {
	set := map[string]bool{}
	for _, t := range th.img.packages {
		set[t.pkg.name] = true
	}
	for _, t := range th.pkgs {
		set[t.pkg.name] = true
	}
	delete(set, kernelPackage.name)
	var out []string
	for n := range set {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// Apropos lists the symbols whose name contains part, with what they are.
func (th *Thread) Apropos(part string) []string {
	var out []string
	for _, s := range th.apropos(part, nil) {
		c := th.cell(s)
		kind := ""
		switch {
		case th.img.special[s] != nil:
			kind = "special operator"
		case c.macro != nil || th.img.macros[s] != nil:
			kind = "macro"
		case c.fn != nil:
			kind = "function"
		case c.value != nil:
			kind = "variable"
		case c.class != nil:
			kind = "class"
		default:
			continue
		}
		out = append(out, fmt.Sprintf("%s (%s)", qualifiedName(s), kind))
	}
	return out
}

// Doc returns what is known about a name, "" if nothing is.
func (th *Thread) Doc(name string) string {
	v, err := th.guard(func() Value { return th.newReader(name).mustRead() })
	s, ok := v.(*Symbol)
	if err != nil || !ok {
		return ""
	}
	var parts []string
	if d := th.documentation(s, "FUNCTION"); d != "" {
		parts = append(parts, d)
	} else if f := th.cell(s).fn; f != nil && f.code != nil {
		parts = append(parts, th.show(cons(s, f.code.list)))
	}
	if d := th.documentation(s, "VARIABLE"); d != "" {
		parts = append(parts, d)
	}
	if th.img.special[s] != nil {
		parts = append(parts, "a special operator")
	} else if th.img.macros[s] != nil || th.cell(s).macro != nil {
		parts = append(parts, "a macro")
	}
	return strings.Join(parts, "\n")
}

func biMacroexpand(once bool) func(*Thread, []Value) Value {
	return func(th *Thread, a []Value) Value {
		c, e := &compiler{th: th}, env{}
		if ev, ok := a[1].(*envValue); ok {
			e = ev.e
		}
		x, did := c.macroexpand1(a[0], e)
		for more := did && !once; more; {
			th.step(1)
			x, more = c.macroexpand1(x, e)
		}
		return th.values(x, mkBool(did))
	}
}

// noFile answers for a program that asks whether there is a file: in the jail
// there is none.
func noFile(name string) prim {
	return prim{usage: "(" + name + " path)", doc: "NIL: there are no files", vacant: true, fn1: func(*Thread, Value) Value { return Nil }}
}

// host powers that programs of other Lisps expect; here they are refused with
// a reason instead of being undefined.
func refusal(name, why string) prim {
	return prim{usage: "(" + name + " &rest arguments)", doc: "refused: " + why, vacant: true, fn: func(th *Thread, _ []Value) Value {
		th.fail(classSimpleError, "%s is refused in the jail: %s", name, why)
		return nil
	}}
}

var callPrims = []prim{
	{
		usage: "(funcall function &rest arguments)", doc: "call a function", fn: func(th *Thread, a []Value) Value { return th.apply(th.fn(a[0]), a[1:]) },
		fn2: func(th *Thread, f, x Value) Value {
			base := len(th.stk)
			th.stk = append(th.stk, x)
			return th.callStack(th.fn(f), base)
		},
	},
	{usage: "(apply function &rest arguments)", doc: "call a function; the last argument is a list of more", fn: biApply},
	{usage: "(values &rest objects)", doc: "return several values", fn: func(th *Thread, a []Value) Value {
		if len(a) == 1 {
			return a[0]
		}
		return th.values(a...)
	}},
	{usage: "(values-list list)", doc: "return the elements as values", fn1: func(th *Thread, x Value) Value { return th.values(th.items(x)...) }},
	{usage: "(identity object)", doc: "the object", fn1: func(_ *Thread, x Value) Value { return x }},
	{usage: "(constantly value)", doc: "a function that returns value", fn1: func(th *Thread, x Value) Value {
		th.alloc(4)
		return &Function{prim: &prim{name: symConstantly, usage: "(constantly &rest arguments)", rest: true, fn: func(*Thread, []Value) Value { return x }}}
	}},
	{usage: "(complement function)", doc: "the function with its truth reversed", fn1: func(th *Thread, x Value) Value {
		th.alloc(4)
		fn := th.fn(x)
		return &Function{prim: &prim{name: symComplement, usage: "(complement &rest arguments)", rest: true, fn: func(th *Thread, a []Value) Value {
			return mkBool(!isTrue(th.call(fn, a...)))
		}}}
	}},
	{usage: "(eval form)", doc: "evaluate, inside the same jail and budget", fn1: func(th *Thread, x Value) Value {
		th.enter(1)
		defer th.leave(1)
		return th.eval(x, env{})
	}},
	{usage: "(macroexpand form &optional environment)", doc: "expand until it is no macro call", fn: biMacroexpand(false)},
	{usage: "(macroexpand-1 form &optional environment)", doc: "expand once", fn: biMacroexpand(true)},
	{usage: "(macro-function symbol &optional environment)", doc: "the expander of a macro", fn: func(th *Thread, a []Value) Value {
		s := th.symbolArg(a[0])
		if m := th.cell(s).macro; m != nil {
			return m
		}
		if m := th.img.macros[s]; m != nil {
			return &Function{name: s, prim: &prim{name: s, usage: "(expander form environment)", req: 2, fn: func(th *Thread, a []Value) Value {
				return m(&compiler{th: th}, th.consArg(a[0]), env{})
			}}}
		}
		return Nil
	}},
	{usage: "(special-operator-p symbol)", doc: "true for a special operator", fn1: func(th *Thread, x Value) Value { return mkBool(th.img.special[th.symbolArg(x)] != nil) }},
	{usage: "(constantp form &optional environment)", doc: "true if the form always has the same value", fn: func(th *Thread, a []Value) Value {
		switch v := a[0].(type) {
		case *Symbol:
			return mkBool(v.keyword() || th.cell(v).constant)
		case *Cons:
			return mkBool(v.car == Value(symQuote))
		}
		return symT
	}},
	{usage: "(function-lambda-expression function)", doc: "NIL: code is not kept as data", fn1: func(th *Thread, x Value) Value { return th.values(Nil, symT, Nil) }},
	{usage: "(passepartout-kernel:need list)", doc: "first of a list that must have one", fn1: biNeed},
	{usage: "(passepartout-kernel:want-end list)", doc: "check that a list has ended", fn1: func(th *Thread, x Value) Value {
		if x != Value(Nil) {
			th.fail(classError, "too many elements in a list to satisfy the lambda list")
		}
		return Nil
	}},
	{usage: "(passepartout-kernel:want-nil object)", doc: "check that a pattern's NIL matches", fn1: func(th *Thread, x Value) Value {
		if x != Value(Nil) {
			th.fail(classError, "too many elements in a list to satisfy the lambda list")
		}
		return Nil
	}},
	{usage: "(passepartout-kernel:check-keys plist known)", doc: "check the keys of a destructured list", fn: biCheckKeys},
	{usage: "(passepartout-kernel:find-key plist key)", doc: "tail with a key's value", fn2: biFindKey},
	{usage: "(passepartout-kernel:case-failure object keys)", doc: "no clause of ecase matched", fn2: func(th *Thread, x, keys Value) Value {
		th.raise(th.condition(classTypeError, th.show(x)+" fell through ECASE expression.", symDatum, x, symExpectedType, cons(symMember, keys)))
		return nil
	}},
	{usage: "(passepartout-kernel:typecase-failure object types)", doc: "no clause of etypecase matched", fn2: func(th *Thread, x, types Value) Value {
		th.raise(th.condition(classTypeError, th.show(x)+" fell through ETYPECASE expression.", symDatum, x, symExpectedType, cons(symOr, types)))
		return nil
	}},
	{usage: "(passepartout-kernel:tail-add tail object)", doc: "add to the list being collected", fn2: func(th *Thread, t, x Value) Value {
		c := th.cons(x, Nil)
		th.collected(t).cdr = c
		th.lastTail = c
		return c
	}},
	{usage: "(passepartout-kernel:tail-append tail list)", doc: "add a copy of a list", fn2: func(th *Thread, t, x Value) Value {
		last := th.collected(t)
		for c, ok := x.(*Cons); ok; c, ok = x.(*Cons) {
			n := th.cons(c.car, Nil)
			last.cdr = n
			last, x = n, c.cdr
		}
		last.cdr = x
		th.lastTail = last
		return last
	}},
	{usage: "(passepartout-kernel:tail-nconc tail list)", doc: "add a list itself", fn2: func(th *Thread, t, x Value) Value {
		c, ok := x.(*Cons)
		if !ok {
			return t
		}
		th.collected(t).cdr = c
		return th.mutable(th.lastCons(c))
	}},
	refusal("random", "a ruling must be the same when it is replayed"), refusal("make-random-state", "a ruling must be the same when it is replayed"),
	refusal("get-universal-time", "there is no clock"), refusal("get-internal-real-time", "there is no clock"), refusal("get-internal-run-time", "there is no clock"),
	refusal("get-decoded-time", "there is no clock"), refusal("sleep", "there is no clock"), refusal("open", "there are no files"), refusal("load", "there are no files"),
	refusal("compile-file", "there are no files"), noFile("probe-file"), refusal("delete-file", "there are no files"), refusal("rename-file", "there are no files"),
	refusal("ensure-directories-exist", "there are no files"), refusal("directory", "there are no files"), refusal("file-write-date", "there are no files"),
	refusal("user-homedir-pathname", "there are no files"), refusal("require", "there are no files"), refusal("read-byte", "there are no files"), refusal("write-byte", "there are no files"),
	refusal("disassemble", "there is no machine code"), refusal("machine-instance", "the host is none of the program's business"),
	refusal("uiop:run-program", "a program proposes actions, it does not start processes"), refusal("uiop:launch-program", "a program proposes actions, it does not start processes"),
	refusal("uiop:read-file-string", "there are no files"), refusal("uiop:read-file-lines", "there are no files"), refusal("uiop:quit", "the daemon is not the program's to end"),
	noFile("uiop:file-exists-p"), noFile("uiop:directory-exists-p"), noFile("uiop:probe-file*"), refusal("uiop:delete-file-if-exists", "there are no files"),
}

// collected is the end of a list that a loop collects. A program can get hold of the
// functions loops are made of, so it may be any list.
func (th *Thread) collected(v Value) *Cons {
	if c, ok := v.(*Cons); ok && c == th.lastTail {
		return c
	}
	return th.mutable(th.consArg(v))
}

func functionPrims() []prim {
	ps := slices.Clone(callPrims)
	return append(ps, symbolPrims...)
}

var symbolPrims = []prim{
	{usage: "(passepartout-kernel:defun name function)", doc: "define a function", fn2: func(th *Thread, name, fn Value) Value {
		th.setFunction(name, fn.(*Function))
		return name
	}},
	{usage: "(passepartout-kernel:defmacro name function)", doc: "define a macro", fn2: func(th *Thread, name, fn Value) Value {
		s := th.symbolArg(name)
		th.definable(s)
		if th.img.special[s] != nil && !th.unlock {
			th.fail(classProgramError, "%s is a special operator and cannot be redefined", s.name)
		}
		c := th.own(s)
		f := fn.(*Function)
		c.macro, c.fn = f, nil
		if f.code != nil && f.code.doc != "" {
			th.setDoc(s, "FUNCTION", f.code.doc)
		}
		return s
	}},
	{usage: "(passepartout-kernel:deftype name function)", doc: "define a type", fn2: func(th *Thread, name, fn Value) Value {
		s := th.symbolArg(name)
		th.definable(s)
		th.own(s).typ = fn.(*Function)
		return s
	}},
	{usage: "(passepartout-kernel:defsetf name update expander)", doc: "define how a place is stored", fn: func(th *Thread, a []Value) Value {
		s := th.symbolArg(a[0])
		th.definable(s)
		st := &setter{}
		if f, ok := a[2].(*Function); ok {
			st.expand = f
		} else {
			st.update = th.symbolArg(a[1])
		}
		th.own(s).setter = st
		return s
	}},
	{usage: "(passepartout-kernel:proclaim-special name &optional doc)", doc: "make a variable special", fn: func(th *Thread, a []Value) Value {
		s := th.symbolArg(a[0])
		th.definable(s)
		th.own(s).special = true
		if d, ok := a[1].(*Str); ok {
			th.setDoc(s, "VARIABLE", d.text())
		}
		return s
	}},
	{usage: "(passepartout-kernel:defconstant name value &optional doc)", doc: "define a constant", fn: func(th *Thread, a []Value) Value {
		s := th.symbolArg(a[0])
		th.definable(s)
		if old := th.cell(s); old.constant && !th.eql(old.value, a[1]) {
			th.fail(classSimpleError, "The constant %s is being redefined.", s.name)
		}
		c := th.own(s)
		c.value, c.constant, c.special = a[1], true, true
		return s
	}},
	{usage: "(passepartout-kernel:define-symbol-macro name expansion)", doc: "define a symbol macro", fn2: func(th *Thread, name, x Value) Value {
		s := th.symbolArg(name)
		th.definable(s)
		th.own(s).expand = x
		return s
	}},
	{usage: "(boundp symbol)", doc: "true if the variable has a value", fn1: func(th *Thread, x Value) Value {
		s := th.symbolArg(x)
		return mkBool(s.keyword() || th.cell(s).value != nil)
	}},
	{usage: "(fboundp name)", doc: "true if the name is a function or macro", fn1: func(th *Thread, x Value) Value {
		if l, ok := x.(*Cons); ok {
			st := th.cell(th.symbolArg(car(l.cdr))).setter
			return mkBool(st != nil && st.fn != nil)
		}
		s := th.symbolArg(x)
		c := th.cell(s)
		return mkBool(c.fn != nil || c.macro != nil || th.img.special[s] != nil || th.img.macros[s] != nil)
	}},
	{usage: "(makunbound symbol)", doc: "take a variable's value away", fn1: func(th *Thread, x Value) Value {
		s := th.symbolArg(x)
		th.definable(s)
		th.own(s).value = nil
		return s
	}},
	{usage: "(fmakunbound symbol)", doc: "take a function away", fn1: func(th *Thread, x Value) Value {
		s := th.symbolArg(x)
		th.definable(s)
		c := th.own(s)
		c.fn, c.macro = nil, nil
		return s
	}},
	{usage: "(set symbol value)", doc: "set a special variable", fn2: func(th *Thread, s, v Value) Value { th.setSymbolValue(th.symbolArg(s), v); return v }},
	{usage: "(symbol-value symbol)", doc: "the value of a special variable", fn1: func(th *Thread, x Value) Value { return th.symbolValue(th.symbolArg(x)) }},
	{usage: "(symbol-function symbol)", doc: "the function of a name", fn1: func(th *Thread, x Value) Value { return th.function(th.symbolArg(x)) }},
	{usage: "(fdefinition name)", doc: "the function of a name", fn1: func(th *Thread, x Value) Value { return th.functionNamed(x) }},
	{usage: "(passepartout-kernel:set-fdefinition name function)", doc: "store", fn2: func(th *Thread, name, fn Value) Value {
		th.setFunction(name, th.fn(fn))
		return fn
	}},
	{usage: "(passepartout-kernel:set-macro-function name function)", doc: "store", fn2: func(th *Thread, name, fn Value) Value {
		s := th.symbolArg(name)
		th.definable(s)
		th.own(s).macro = th.fn(fn)
		return fn
	}},
	{usage: "(symbol-name symbol)", doc: "the name", fn1: func(th *Thread, x Value) Value { return th.str(th.symbolArg(x).name) }},
	{usage: "(symbol-package symbol)", doc: "the home package", fn1: func(th *Thread, x Value) Value {
		if p := th.symbolArg(x).pkg; p != nil {
			return p
		}
		return Nil
	}},
	{usage: "(symbol-plist symbol)", doc: "the properties", fn1: func(th *Thread, x Value) Value {
		if p := th.cell(th.symbolArg(x)).plist; p != nil {
			return p
		}
		return Nil
	}},
	{usage: "(passepartout-kernel:set-plist symbol value)", doc: "store", fn2: func(th *Thread, s, v Value) Value { th.own(th.symbolArg(s)).plist = v; return v }},
	{usage: "(get symbol indicator &optional default)", doc: "a property of a symbol", fn: func(th *Thread, a []Value) Value {
		p := th.cell(th.symbolArg(a[0])).plist
		if p == nil {
			p = Nil
		}
		return biGetf(th, []Value{p, a[1], a[2]})
	}},
	{usage: "(passepartout-kernel:store-property symbol indicator &rest more)", doc: "store", fn: func(th *Thread, a []Value) Value {
		c := th.own(th.symbolArg(a[0]))
		p := c.plist
		if p == nil {
			p = Nil
		}
		v := a[len(a)-1]
		c.plist = biPutf(th, []Value{p, a[1], v})
		return v
	}},
	{usage: "(remprop symbol indicator)", doc: "remove a property", fn2: func(th *Thread, s, ind Value) Value {
		c := th.own(th.symbolArg(s))
		if c.plist == nil {
			return Nil
		}
		vs := th.all(biRemf(th, []Value{c.plist, ind}))
		c.plist = vs[0]
		return vs[1]
	}},
	{usage: "(make-symbol name)", doc: "a new symbol in no package", fn1: func(th *Thread, x Value) Value { return th.newSymbol(th.stringArg(x).text(), nil) }},
	{usage: "(copy-symbol symbol &optional copy-properties)", doc: "a new symbol of the same name", fn: func(th *Thread, a []Value) Value {
		return th.newSymbol(th.symbolArg(a[0]).name, nil)
	}},
	{usage: "(gensym &optional prefix)", doc: "a new symbol in no package", fn: func(th *Thread, a []Value) Value {
		if a[0] == nil {
			return th.gensym("G")
		}
		return th.gensym(th.designated(a[0]).text())
	}},
	{usage: "(gentemp &optional prefix package)", doc: "a new interned symbol", fn: func(th *Thread, a []Value) Value {
		for {
			th.gensyms++
			n := fmt.Sprintf("T%d", th.gensyms)
			if s, _ := th.findSymbol(n, th.currentPackage()); s == nil {
				return th.intern(n, th.currentPackage())
			}
		}
	}},
	{usage: "(intern name &optional package)", doc: "the symbol of that name, made if needed", fn: func(th *Thread, a []Value) Value {
		p, name := th.packageArg(a[1]), th.stringArg(a[0]).text()
		if s, st := th.findSymbol(name, p); s != nil {
			return th.status(s, st)
		}
		return th.values(th.intern(name, p), Nil)
	}},
	{usage: "(find-symbol name &optional package)", doc: "the symbol of that name, if there is one", fn: func(th *Thread, a []Value) Value {
		s, st := th.findSymbol(th.stringArg(a[0]).text(), th.packageArg(a[1]))
		return th.status(s, st)
	}},
	{usage: "(find-package name)", doc: "the package of that name, or NIL", fn1: func(th *Thread, x Value) Value {
		if t := th.packageOrNil(x); t != nil {
			return t.pkg
		}
		return Nil
	}},
	{usage: "(package-name package)", doc: "its name", fn1: func(th *Thread, x Value) Value { return th.str(th.packageArg(x).name) }},
	{usage: "(package-nicknames package)", doc: "its other names", fn1: func(th *Thread, x Value) Value {
		b := listBuilder{th: th}
		for _, n := range th.pkgTable(th.packageArg(x)).nicknames {
			b.add(th.str(n))
		}
		return b.end(Nil)
	}},
	{usage: "(package-use-list package)", doc: "the packages it uses", fn1: func(th *Thread, x Value) Value {
		b := listBuilder{th: th}
		for _, p := range th.pkgTable(th.packageArg(x)).uses {
			b.add(p)
		}
		return b.end(Nil)
	}},
	{usage: "(list-all-packages)", doc: "all packages", fn: func(th *Thread, _ []Value) Value {
		b := listBuilder{th: th}
		for _, n := range th.packageNames() {
			b.add(th.findPackage(n).pkg)
		}
		return b.end(Nil)
	}},
	{usage: "(make-package name &key nicknames use)", doc: "a new package", fn: func(th *Thread, a []Value) Value {
		name := th.designated(a[0]).text()
		if th.findPackage(name) != nil {
			th.packageError(a[0], "A package named %s already exists", name)
		}
		var uses []*Package
		if a[2] != nil {
			for _, u := range th.items(a[2]) {
				uses = append(uses, th.packageArg(u))
			}
		}
		return th.makePackage(name, th.stringsOf(a[1]), uses).pkg
	}},
	{usage: "(passepartout-kernel:defpackage name options)", doc: "define a package", fn: biDefpackage},
	{usage: "(passepartout-kernel:in-package name)", doc: "make a package current", fn1: func(th *Thread, x Value) Value {
		p := th.packageArg(x)
		th.setSymbolValue(symPackage, p)
		return p
	}},
	{usage: "(export symbols &optional package)", doc: "make symbols external", fn: func(th *Thread, a []Value) Value {
		t := th.ownPackage(th.packageArg(a[1]))
		for _, s := range th.symbolsOf(a[0]) {
			th.export(s, t)
		}
		return symT
	}},
	{usage: "(import symbols &optional package)", doc: "make symbols present", fn: func(th *Thread, a []Value) Value {
		for _, s := range th.symbolsOf(a[0]) {
			th.importSymbol(s, th.packageArg(a[1]))
		}
		return symT
	}},
	{usage: "(use-package packages &optional package)", doc: "inherit external symbols", fn: func(th *Thread, a []Value) Value {
		t := th.ownPackage(th.packageArg(a[1]))
		if _, ok := a[0].(*Cons); !ok {
			th.usePackage(th.packageArg(a[0]), t)
			return symT
		}
		for _, u := range th.items(a[0]) {
			th.usePackage(th.packageArg(u), t)
		}
		return symT
	}},
	{usage: "(passepartout-kernel:package-symbols &optional package)", doc: "the symbols visible in a package", fn: func(th *Thread, a []Value) Value {
		b := listBuilder{th: th}
		for _, s := range th.visible(th.packageArg(a[0]), false) {
			b.add(s)
		}
		return b.end(Nil)
	}},
	{usage: "(passepartout-kernel:external-symbols &optional package)", doc: "the external symbols of a package", fn: func(th *Thread, a []Value) Value {
		b := listBuilder{th: th}
		for _, s := range th.visible(th.packageArg(a[0]), true) {
			b.add(s)
		}
		return b.end(Nil)
	}},
	{usage: "(apropos-list string &optional package)", doc: "the symbols whose name contains a string", fn: func(th *Thread, a []Value) Value {
		var p *Package
		if a[1] != nil && isTrue(a[1]) {
			p = th.packageArg(a[1])
		}
		return th.newList(symbolsAsValues(th.apropos(th.designated(a[0]).text(), p)), Nil)
	}},
	{usage: "(documentation object type)", doc: "the documentation string", fn: biDocumentation},
	{usage: "(passepartout-kernel:set-documentation object type value)", doc: "store", fn: func(th *Thread, a []Value) Value {
		if s, ok := a[0].(*Symbol); ok {
			th.definable(s)
			th.setDoc(s, th.symbolArg(a[1]).name, th.stringArg(a[2]).text())
		}
		return a[2]
	}},
	{usage: "(proclaim declaration)", doc: "make a declaration global", fn1: func(th *Thread, x Value) Value {
		if car(x) == Value(symSpecial) {
			for _, s := range th.items(cdr(x)) {
				th.definable(th.symbolArg(s))
				th.own(th.symbolArg(s)).special = true
			}
		}
		return th.values()
	}},
	{usage: "(lisp-implementation-type)", doc: "the name of this Lisp", fn: func(th *Thread, _ []Value) Value { return th.str("Passepartout") }},
	{usage: "(lisp-implementation-version)", doc: "the version of this Lisp", fn: func(th *Thread, _ []Value) Value { return th.str("1") }},
}
