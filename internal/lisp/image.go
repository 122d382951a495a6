// Package lisp is a jailed Common Lisp: the language skills and their gates are
// written in. It agrees with SBCL wherever the two overlap, which a test checks
// form by form; docs/lisp.md lists what differs on purpose.
//
// Source is read, macros are expanded, names are resolved to slots, and the
// result is a tree of small nodes that is run. The central types:
//
//   - [Image] is a loaded world: packages, functions, variables. It is immutable
//     and shared by any number of threads. [New] makes the first one, from the
//     language and the functions the host hands in.
//   - [Thread] is one metered run over an image. What it defines, assigns or
//     interns stays in the thread, until [Thread.Freeze] makes a new image of it.
//   - [Budget] bounds a thread: steps, cells, depth, output. The zero Budget
//     permits nothing, and a program cannot catch running out.
//   - [Builtin] is a host function as data. The package itself has no power: no
//     file, network, process, clock or randomness. [Thread.Drop] takes powers
//     away; nothing gives them back.
//   - [Value] is a Lisp object; [Thread.FromData] and [Thread.ToData] convert to
//     and from the immutable data of package sexp.
//
// Two rules a newcomer will break. Inside the package an error is a panic that
// carries a Lisp condition, and only guard turns it into a Go error: never call
// Lisp from outside a guard. And every loop over data a program made must charge
// the meter, because that data may be circular or huge.
package lisp

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"passepartout/internal/sexp"
)

// A Budget is what a thread may use. The zero Budget permits nothing.
type Budget struct {
	Steps  uint64 // evaluation steps, about one for each piece of code run
	Cells  uint64 // memory ever allocated, in conses
	Depth  int    // nesting of calls and of data while it is walked
	Output int    // bytes written to the standard output
}

// Caps is a set of powers the host grants. This package attaches no meaning to
// the bits: the host that declares a [Builtin] does.
type Caps uint32

// A Builtin is a function the host hands in. Name may carry a package:
// "passepartout:harness-log". It may be that of a function the language has only
// to refuse it, like get-universal-time. Usage is its lambda list, "(name a &key b)", and
// decides how many arguments Fn gets: one for each name, nil for one that was
// not given, and the &rest arguments at the end. Fn must not keep the slice.
type Builtin struct {
	Name  string
	Usage string
	Doc   string
	Needs Caps
	Fn    func(th *Thread, args []Value) (Value, error)
}

// An Image is a loaded world: packages, functions, variables. It is immutable
// and may be shared by any number of threads.
type Image struct {
	cells    []*cell
	packages map[string]*pkgTable
	special  map[*Symbol]specialForm
	macros   map[*Symbol]macroFn
	stores   map[*Symbol]*Symbol
	regexes  *regexCache
	next     int
	frozen   map[*Cons]struct{} // conses reachable from the image
	moved    map[Value]Value    // objects of older images, to what later loads made of them
	current  *Package           // *PACKAGE* of new threads
}

var (
	kernelPackage = names.addPackage("PASSEPARTOUT-KERNEL", "%")
	_             = names.addUsing(clPackage, "PASSEPARTOUT-PRELUDE")
)

// kernel names the functions that macros expand to and programs do not call.
func kernel(name string) *Symbol { return names.intern(kernelPackage, name) }

// base is the image without host functions. It is the same for everybody, so
// it is built once.
var base = sync.OnceValue(buildBase)

// New returns an image with the language and the host's functions.
func New(host []Builtin) (*Image, error) {
	th := base().Thread(Budget{Steps: 1 << 40, Cells: 1 << 30, Depth: 1 << 12})
	th.unlock = true
	for _, b := range host {
		if err := th.defineHost(b); err != nil {
			return nil, fmt.Errorf("builtin %s: %w", b.Name, err)
		}
	}
	return th.Freeze()
}

// defineHost adds one host function.
func (th *Thread) defineHost(b Builtin) error {
	if b.Fn == nil || b.Name == "" || b.Doc == "" {
		return fmt.Errorf("want a name, a doc line and a function")
	}
	p := &prim{doc: b.Doc, needs: b.Needs}
	if err := p.parseUsage(b.Usage, th.keyword); err != nil {
		return err
	}
	p.name = th.hostName(strings.ToUpper(b.Name))
	fn := b.Fn
	p.fn = func(th *Thread, a []Value) Value {
		v, err := fn(th, a)
		if th.dead != nil { // a builtin cannot swallow it either
			panic(th.dead)
		}
		if err != nil {
			th.fail(classSimpleError, "%s", err.Error())
		}
		if v == nil {
			return Nil
		}
		return v
	}
	c := th.own(p.name)
	if c.fn != nil && !c.fn.vacant() || th.img.special[p.name] != nil {
		return fmt.Errorf("the name is taken")
	}
	c.fn = &Function{name: p.name, prim: p}
	return nil
}

func (th *Thread) hostName(name string) *Symbol {
	pkg, rest, ok := strings.Cut(name, ":")
	if !ok {
		return th.intern(name, clPackage)
	}
	t := th.findPackage(pkg)
	if t == nil {
		t = th.makePackage(pkg, nil, nil)
		t.open = true
	}
	return th.intern(strings.TrimPrefix(rest, ":"), t.pkg)
}

// Thread returns a new run over the image, with all powers the image's
// builtins ask for: drop the ones it should not have.
func (img *Image) Thread(b Budget) *Thread {
	return &Thread{
		img: img, budget: b, steps: b.Steps, cells: b.Cells, next: img.next, caps: ^Caps(0),
	}
}

// Load evaluates every form of src. It returns the value of the last one. Code
// without a file name has no lines: an error in it is told at the line that led
// there.
func (th *Thread) Load(file string, src []byte) (Value, error) {
	return th.guard(func() Value {
		oldFile, oldPos, oldWhere := th.file, th.pos, th.where
		th.file, th.where = file, nil
		if file != "" {
			th.where = map[*Cons]int32{}
		}
		mark := len(th.dyn)
		th.bind(symPackage, th.symbolValue(symPackage))
		var v Value = Nil
		r := th.newReader(string(src))
		for {
			x, ok := r.next()
			if !ok {
				break
			}
			v = th.eval(x, env{})
		}
		v = th.one(v)
		th.unbind(mark)
		th.file, th.pos, th.where = oldFile, oldPos, oldWhere
		return v
	})
}

// EvalString reads src, evaluates its forms and returns all values of the
// last. Unlike Load it leaves *PACKAGE* where the program put it.
func (th *Thread) EvalString(file, src string) ([]Value, error) {
	var out []Value
	_, err := th.guard(func() Value {
		th.file, th.where = file, map[*Cons]int32{}
		r := th.newReader(src)
		for {
			x, ok := r.next()
			if !ok {
				return Nil
			}
			out = append([]Value(nil), th.all(th.eval(x, env{}))...)
		}
	})
	return out, err
}

// Call calls the function of that name, written as in Lisp source, with args.
func (th *Thread) Call(name string, args ...Value) (Value, error) {
	return th.guard(func() Value {
		s, ok := th.newReader(name).mustRead().(*Symbol)
		if !ok {
			th.fail(classProgramError, "want the name of a function, found %s", name)
		}
		return th.apply(th.function(s), args)
	})
}

// Apply calls a function value.
func (th *Thread) Apply(fn Value, args ...Value) (Value, error) {
	return th.guard(func() Value { return th.apply(th.fn(fn), args) })
}

// Defined reports whether a name, written as in Lisp source, is a function.
func (th *Thread) Defined(name string) bool {
	v, err := th.guard(func() Value {
		s, ok := th.newReader(name).mustRead().(*Symbol)
		return mkBool(ok && th.cell(s).fn != nil)
	})
	return err == nil && isTrue(v)
}

// Print returns the value as PRIN1 prints it.
func (th *Thread) Print(v Value) (string, error) {
	var s string
	_, err := th.guard(func() Value { s = th.prin1(v); return Nil })
	return s, err
}

// Freeze turns what the thread has loaded into a new image. The thread cannot
// be used afterwards.
func (th *Thread) Freeze() (*Image, error) {
	if th.dead != nil {
		return nil, th.dead
	}
	old := th.img
	img := &Image{
		cells: make([]*cell, th.next), packages: map[string]*pkgTable{}, special: old.special,
		macros: old.macros, stores: old.stores, regexes: old.regexes, next: th.next, frozen: map[*Cons]struct{}{}, current: old.current,
	}
	copy(img.cells, old.cells)
	for i, c := range th.over {
		if c != nil {
			img.cells[i] = c
		}
	}
	if p, ok := th.cell(symPackage).value.(*Package); ok {
		img.current = p
	}
	for name, t := range old.packages {
		img.packages[name] = t
	}
	flat := map[*pkgTable]*pkgTable{}
	for name, t := range th.pkgs {
		if flat[t] == nil {
			flat[t] = t.flatten()
		}
		img.packages[name] = flat[t]
	}
	for c := range old.frozen {
		img.frozen[c] = struct{}{}
	}
	img.moved = th.movedObjects()
	z := freezer{img: img, seen: map[Value]bool{}}
	for _, v := range img.moved {
		z.add(v)
	}
	z.add(th.literals...)
	for _, c := range img.cells {
		if c != nil {
			z.cell(c)
		}
	}
	z.run()
	th.dead = fmt.Errorf("lisp thread was frozen into an image")
	return img, nil
}

// movedObjects says where each changed object of an older image now is.
func (th *Thread) movedObjects() map[Value]Value {
	out := map[Value]Value{}
	for old, m := range th.img.moved {
		out[old] = th.current(m)
	}
	for old, own := range th.thawed {
		out[old] = own
	}
	return out
}

// A freezer walks everything an image reaches and marks it read-only. What an older
// image has marked is not touched: other threads read it meanwhile.
type freezer struct {
	img  *Image
	seen map[Value]bool
	work []Value
}

func (z *freezer) add(vs ...Value) {
	for _, v := range vs {
		switch v.(type) {
		case nil, Int, Single, Double, Char, *Symbol, *Package, *bignum, *ratio, *regex, *multi, *token, *marker, *restart, *envValue:
			continue
		}
		if !z.seen[v] {
			z.seen[v] = true
			z.work = append(z.work, v)
		}
	}
}

func (z *freezer) cell(c *cell) {
	z.add(c.value, c.plist, c.expand)
	z.functions(c.fn, c.macro, c.typ)
	if c.class != nil {
		z.add(c.class)
	}
	if c.setter != nil {
		z.functions(c.setter.fn, c.setter.expand)
	}
}

func (z *freezer) run() {
	for len(z.work) > 0 {
		v := z.work[len(z.work)-1]
		z.work = z.work[:len(z.work)-1]
		switch v := v.(type) {
		case *Cons:
			if _, known := z.img.frozen[v]; !known {
				z.img.frozen[v] = struct{}{}
				z.add(v.car, v.cdr)
			}
		case *Str:
			if !v.frozen {
				v.text()
				v.frozen = true
			}
		case *array:
			if !v.frozen {
				v.frozen = true
				z.add(v.items...)
			}
		case *instance:
			if !v.frozen {
				v.frozen = true
				z.add(v.class)
				z.add(v.slots...)
			}
		case *table:
			if !v.frozen {
				v.frozen = true
				for _, e := range v.entries {
					z.add(e.key, e.val)
				}
			}
		case *box:
			if !v.frozen {
				v.frozen = true
				z.add(v.v)
			}
		case *stream:
			if !v.frozen {
				v.frozen = true
				if v.target != nil {
					z.add(v.target)
				}
			}
		case *Function:
			z.function(v)
		case *class:
			z.class(v)
		}
	}
}

func (z *freezer) function(f *Function) {
	z.add(f.up...)
	if f.generic != nil {
		for _, m := range f.generic.methods {
			z.add(m.fn)
			z.add(m.specs...)
		}
	}
}

func (z *freezer) class(k *class) {
	if k.frozen {
		return
	}
	k.frozen = true
	for i := range k.slots {
		z.functions(k.slots[i].init)
	}
	for _, d := range k.defaults {
		z.add(d.name)
	}
	z.functions(k.report, k.printer)
}

func (z *freezer) functions(fs ...*Function) {
	for _, f := range fs {
		if f != nil {
			z.add(f)
		}
	}
}

// findPackage returns the table of a package by name or nickname. Programs
// cannot name the kernel: its functions trust their callers.
func (th *Thread) findPackage(name string) *pkgTable {
	t := th.namedTable(name)
	if t != nil && t.pkg == kernelPackage && !th.unlock {
		return nil
	}
	return t
}

func (th *Thread) namedTable(name string) *pkgTable {
	if t := th.pkgs[name]; t != nil {
		return t
	}
	return th.img.packages[name]
}

func (th *Thread) pkgTable(p *Package) *pkgTable { return th.namedTable(p.name) }

// ownPackage returns a table of the package the thread may write.
func (th *Thread) ownPackage(p *Package) *pkgTable {
	if t := th.pkgs[p.name]; t != nil {
		return t
	}
	t := th.img.packages[p.name].layer()
	th.setPackage(t)
	return t
}

func (th *Thread) setPackage(t *pkgTable) {
	if th.pkgs == nil {
		th.pkgs = map[string]*pkgTable{}
	}
	th.pkgs[t.pkg.name] = t
	for _, n := range t.nicknames {
		th.pkgs[n] = t
	}
}

func (th *Thread) makePackage(name string, nicknames []string, uses []*Package) *pkgTable {
	th.alloc(16)
	t := newPkgTable(&Package{name})
	t.nicknames, t.uses = nicknames, uses
	th.setPackage(t)
	return t
}

// findSymbol looks a name up in a package and the ones it uses. The status is
// "" when there is none.
func (th *Thread) findSymbol(name string, p *Package) (*Symbol, string) {
	t := th.pkgTable(p)
	if s, ext := t.own(name); s != nil {
		if ext {
			return s, "EXTERNAL"
		}
		return s, "INTERNAL"
	}
	for _, u := range t.uses {
		if s, ext := th.pkgTable(u).own(name); s != nil && ext {
			return s, "INHERITED"
		}
	}
	return nil, ""
}

func (th *Thread) intern(name string, p *Package) *Symbol {
	if s, _ := th.findSymbol(name, p); s != nil {
		return s
	}
	if th.pkgTable(p).locked && !th.unlock {
		th.packageError(p, "package %s is locked: %s cannot be added to it", p.name, name)
	}
	s := th.newSymbol(name, p)
	th.ownPackage(p).add(s)
	return s
}

func (th *Thread) newSymbol(name string, p *Package) *Symbol {
	th.alloc(4 + len(name)/16)
	s := &Symbol{name: name, pkg: p, idx: th.next}
	th.next++
	return s
}

func (th *Thread) keyword(name string) *Symbol { return th.intern(name, keywordPackage) }

func (th *Thread) gensym(prefix string) *Symbol {
	th.gensyms++
	return th.newSymbol(fmt.Sprintf("%s%d", prefix, th.gensyms), nil)
}

func (th *Thread) currentPackage() *Package {
	if p, ok := th.cell(symPackage).value.(*Package); ok {
		return p
	}
	return userPackage
}

// FromData returns the Lisp value of a datum. Symbols without a package are
// interned in the current one.
func (th *Thread) FromData(v sexp.Value) (Value, error) {
	return th.guard(func() Value { return th.fromData(v) })
}

func (th *Thread) fromData(v sexp.Value) Value {
	th.step(1)
	th.enter(1)
	defer th.leave(1)
	switch v := v.(type) {
	case sexp.Symbol:
		return th.dataSymbol(v)
	case sexp.Keyword:
		return th.keyword(string(v))
	case sexp.String:
		return th.str(string(v))
	case sexp.Int:
		if n, ok := v.Int64(); ok {
			return mkInt(n)
		}
		return mkBig(v.Big())
	case sexp.Float:
		return Double(v)
	case sexp.Ratio:
		return mkRat(v.Rat())
	case sexp.Char:
		return Char(v)
	case sexp.List:
		return th.listFromData(v)
	case sexp.Vector:
		th.alloc(len(v.Items()))
		out := make([]Value, len(v.Items()))
		for i, x := range v.Items() {
			out[i] = th.fromData(x)
		}
		return newVector(out)
	}
	return Nil
}

// listFromData makes all conses of a list at once.
func (th *Thread) listFromData(v sexp.List) Value {
	n := v.Len()
	tail := Value(Nil)
	if v.Tail() != nil {
		tail = th.fromData(v.Tail())
	}
	if n == 0 {
		return tail
	}
	th.alloc(n)
	cells := make([]Cons, n)
	for i, x := range v.Items() {
		cells[i].car = th.fromData(x)
		if i+1 < n {
			cells[i].cdr = &cells[i+1]
		}
	}
	cells[n-1].cdr = tail
	return &cells[0]
}

// IsData reports whether a value is what [Thread.FromData] makes of a datum,
// without making anything.
func (th *Thread) IsData(v Value, d sexp.Value) (bool, error) {
	same := false
	_, err := th.guard(func() Value { same = th.isData(v, d); return Nil })
	return same, err
}

func (th *Thread) isData(v Value, d sexp.Value) bool {
	th.step(1)
	th.enter(1)
	defer th.leave(1)
	switch v := v.(type) {
	case *Symbol:
		if k, ok := d.(sexp.Keyword); ok {
			return v.pkg == keywordPackage && v.name == string(k)
		}
	case *Str:
		s, ok := d.(sexp.String)
		th.step(uint64(len(s) / 64))
		return ok && v.text() == string(s)
	case *Cons:
		l, ok := d.(sexp.List)
		if !ok || l.Len() == 0 {
			return false
		}
		at := Value(v)
		for _, x := range l.Items() {
			c, ok := at.(*Cons)
			if !ok || !th.isData(c.car, x) {
				return false
			}
			at = c.cdr
		}
		if l.Tail() != nil {
			return th.isData(at, l.Tail())
		}
		return at == Value(Nil)
	}
	return sexp.Equal(th.toData(v), d)
}

func (th *Thread) dataSymbol(v sexp.Symbol) Value {
	switch v.Pkg {
	case "":
		return th.intern(v.Name, th.currentPackage())
	case "#":
		return th.newSymbol(v.Name, nil)
	}
	t := th.findPackage(v.Pkg)
	if t == nil {
		th.packageError(newStr(v.Pkg), "The name %q does not designate any package.", v.Pkg)
	}
	return th.intern(v.Name, t.pkg)
}

// ToData returns the value as data. Functions, tables and other objects that
// only mean something inside the thread are an error.
func (th *Thread) ToData(v Value) (sexp.Value, error) {
	var out sexp.Value
	_, err := th.guard(func() Value { out = th.toData(v); return Nil })
	return out, err
}

func (th *Thread) toData(v Value) sexp.Value {
	th.step(1)
	th.enter(1)
	defer th.leave(1)
	switch v := v.(type) {
	case *Symbol:
		th.chargeData(len(v.name))
		return symbolData(v)
	case *Str:
		th.chargeData(len(v.text()))
		return sexp.String(v.text())
	case Int:
		return sexp.NewInt(int64(v))
	case *bignum:
		th.dataNumber(v, v.n.BitLen())
		return sexp.NewBigInt(v.n)
	case Single:
		return sexp.Float(v)
	case Double:
		return sexp.Float(v)
	case *ratio:
		th.dataNumber(v, v.r.Num().BitLen()+v.r.Denom().BitLen())
		th.step(bigCost(v.r.Num()) + bigCost(v.r.Denom()))
		r, _ := sexp.NewRatio(v.r.Num(), v.r.Denom())
		return r
	case Char:
		return sexp.Char(v)
	case *Cons:
		return th.listData(v)
	case *array:
		if v.dims == nil {
			var out []sexp.Value
			for _, x := range th.arr(v).live() {
				th.alloc(1)
				out = append(out, th.toData(x))
			}
			return sexp.NewVector(out...)
		}
	}
	th.fail(classTypeError, "%s is no plain data", th.show(v))
	return nil
}

// chargeData pays for a text or number that leaves the jail. Inside it may be in a
// list many times and take its room once; outside it is printed each time.
func (th *Thread) chargeData(bytes int) {
	th.step(uint64(bytes / 64))
	th.alloc(bytes / 64)
}

// dataNumber refuses a number that could be printed and not be read again, and pays
// for any other.
func (th *Thread) dataNumber(v Value, bits int) {
	if bits > maxDataBits {
		th.fail(classTypeError, "a number of %d bits is no plain data, want at most %d", bits, maxDataBits)
	}
	th.chargeData(bits / 8)
}

const maxDataBits = sexp.MaxDigits * 33 / 10 // in one decimal digit are a little more

func symbolData(s *Symbol) sexp.Value {
	switch {
	case s == Nil:
		return sexp.Nil
	case s.pkg == nil:
		return sexp.Symbol{Pkg: "#", Name: s.name}
	case s.keyword():
		return sexp.Keyword(s.name)
	}
	return sexp.Symbol{Name: s.name}
}

func (th *Thread) listData(v *Cons) sexp.Value {
	var out []sexp.Value
	var rest Value = v
	for {
		c, ok := rest.(*Cons)
		if !ok {
			break
		}
		th.step(1)
		if len(out)&15 == 15 {
			th.alloc(16)
		}
		out = append(out, th.toData(c.car))
		rest = c.cdr
	}
	if rest == Value(Nil) {
		return sexp.NewList(out...)
	}
	return sexp.NewDotted(out, th.toData(rest))
}

// String returns a Lisp string holding s, for host functions.
func String(s string) Value { return newStr(s) }

// Text returns the characters of a Lisp string or the name of a symbol.
func Text(v Value) (string, bool) {
	switch v := v.(type) {
	case *Str:
		return v.text(), true
	case *Symbol:
		return v.name, true
	}
	return "", false
}

// Nth is an element of a proper list, counted from 0; NIL beyond its end.
func Nth(list Value, n int) Value {
	c, ok := list.(*Cons)
	for ; ok && n > 0; n-- {
		c, ok = c.cdr.(*Cons)
	}
	if !ok {
		return Nil
	}
	return c.car
}

// Pairs are the keys and values of a property list, as far as it is one, for host
// functions. Each costs a step, for the list may be circular.
func (th *Thread) Pairs(plist Value) iter.Seq2[Value, Value] {
	return func(yield func(k, v Value) bool) {
		for c, ok := plist.(*Cons); ok; {
			th.step(1)
			rest, more := c.cdr.(*Cons)
			if !more || !yield(c.car, rest.car) {
				return
			}
			c, ok = rest.cdr.(*Cons)
		}
	}
}

// IsNil reports whether v is NIL or was not given.
func IsNil(v Value) bool { return v == nil || v == Value(Nil) }

// Builtins lists every function of the image that is written in Go, sorted by
// name: the whole of what a program can do to the world outside it.
func (img *Image) Builtins() []Builtin {
	var out []Builtin
	for _, c := range img.cells {
		if c == nil || c.fn == nil || c.fn.prim == nil {
			continue
		}
		p := c.fn.prim
		if p.name.pkg == kernelPackage {
			continue
		}
		out = append(out, Builtin{Name: qualifiedName(p.name), Usage: p.usage, Doc: p.doc, Needs: p.needs})
	}
	slices.SortFunc(out, func(a, b Builtin) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(out, func(a, b Builtin) bool { return a.Name == b.Name })
}

func qualifiedName(s *Symbol) string {
	if s.pkg == clPackage || s.pkg == nil {
		return strings.ToLower(s.name)
	}
	return strings.ToLower(s.pkg.name + ":" + s.name)
}
