package lisp

import (
	"slices"
	"strings"
)

// A cell holds everything a name means: its value, function, macro, class and
// properties. Cells of an image are shared and never written; a thread that
// writes gets its own copy first.
type cell struct {
	value    Value // nil while unbound
	fn       *Function
	macro    *Function
	setter   *setter
	typ      *Function // a deftype expander
	class    *class
	expand   Value // of a global symbol macro, nil for none
	plist    Value // nil for none
	doc      map[string]string
	special  bool
	constant bool
}

var emptyCell = &cell{}

// A pkgTable is one layer of a package's names: an image's layer is read-only,
// a thread puts its own on top.
type pkgTable struct {
	pkg       *Package
	base      *pkgTable
	present   map[string]*Symbol
	external  map[string]bool
	order     []*Symbol // present symbols of this layer in the order they came
	uses      []*Package
	nicknames []string
	open      bool // every present symbol is external
	locked    bool // names may not be added or redefined by programs
	library   bool // stands for a library: every name of it can be read
}

func newPkgTable(p *Package) *pkgTable {
	return &pkgTable{pkg: p, present: map[string]*Symbol{}, external: map[string]bool{}}
}

// layer returns a writable table on top of t.
func (t *pkgTable) layer() *pkgTable {
	n := newPkgTable(t.pkg)
	n.base, n.uses, n.nicknames, n.open, n.locked, n.library = t, t.uses, t.nicknames, t.open, t.locked, t.library
	return n
}

// flatten returns a table equal to t without layers.
func (t *pkgTable) flatten() *pkgTable {
	n := t.layer()
	n.base = nil
	var layers []*pkgTable
	for l := t; l != nil; l = l.base {
		layers = append(layers, l)
	}
	for _, l := range slices.Backward(layers) {
		for _, s := range l.order {
			if l.present[s.name] == s {
				n.add(s)
			}
		}
		for name, ext := range l.external {
			n.external[name] = ext
		}
		for name, s := range l.present {
			if s == nil {
				delete(n.present, name)
			}
		}
	}
	return n
}

func (t *pkgTable) add(s *Symbol) {
	if t.present[s.name] == nil {
		t.order = append(t.order, s)
	}
	t.present[s.name] = s
}

// own finds a symbol present in the package; the bool says if it is external.
func (t *pkgTable) own(name string) (*Symbol, bool) {
	for l := t; l != nil; l = l.base {
		if s, ok := l.present[name]; ok {
			if s == nil {
				return nil, false
			}
			return s, t.open || t.exports(name)
		}
	}
	return nil, false
}

func (t *pkgTable) exports(name string) bool {
	for l := t; l != nil; l = l.base {
		if e, ok := l.external[name]; ok {
			return e
		}
	}
	return false
}

// symbols lists the symbols present, oldest first.
func (t *pkgTable) symbols() []*Symbol {
	var out []*Symbol
	if t.base != nil {
		out = t.base.symbols()
	}
	return append(out, t.order...)
}

// A registry is the set of names known before any program runs. It is written
// only while the package's variables are initialised.
type registry struct {
	tables map[string]*pkgTable
	count  int
	sealed bool // the base image exists: names can only be looked up
}

var (
	names          = &registry{tables: map[string]*pkgTable{}}
	clPackage      = names.addPackage("COMMON-LISP", "CL", "LISP")
	keywordPackage = names.addKeyword()
	userPackage    = names.addUser(clPackage)
	_              = names.addPackage("CL-PPCRE", "PPCRE")
	_              = names.addPackage("UIOP", "UIOP/DRIVER")
	_              = names.addLibraries()
	_              = names.addStandard()
)

func (r *registry) addPackage(name string, nicknames ...string) *Package {
	p := &Package{name}
	t := newPkgTable(p)
	t.nicknames = nicknames
	t.open, t.locked = true, true
	r.tables[name] = t
	for _, n := range nicknames {
		r.tables[n] = t
	}
	return p
}

// addUser makes the package programs start in.
func (r *registry) addUser(cl *Package) *Package {
	p := r.addPackage("COMMON-LISP-USER", "CL-USER", "USER")
	t := r.tables[p.name]
	t.open, t.locked, t.uses = false, false, []*Package{cl}
	return p
}

// addUsing makes a locked package that uses another.
func (r *registry) addUsing(used *Package, name string) *Package {
	p := r.addPackage(name)
	r.tables[p.name].uses = []*Package{used}
	return p
}

// addKeyword makes the package everybody may add to.
func (r *registry) addKeyword() *Package {
	p := r.addPackage("KEYWORD")
	r.tables[p.name].locked = false
	return p
}

func (r *registry) intern(p *Package, name string) *Symbol {
	t := r.tables[p.name]
	if s, ok := t.present[name]; ok {
		return s
	}
	if r.sealed {
		panic("lisp: the name " + name + " was not declared before the base image was built")
	}
	s := &Symbol{name: name, pkg: p, idx: r.count}
	r.count++
	t.add(s)
	return s
}

func sym(name string) *Symbol { return names.intern(clPackage, name) }

func key(name string) *Symbol { return names.intern(keywordPackage, name) }

// qualified interns a name written as in a usage line: cl-ppcre:scan.
func qualified(name string) *Symbol {
	name = strings.ToUpper(name)
	if pkg, rest, ok := strings.Cut(name, ":"); ok && pkg != "" {
		if t := names.tables[pkg]; t != nil {
			return names.intern(t.pkg, strings.TrimPrefix(rest, ":"))
		}
		return names.intern(names.addPackage(pkg), strings.TrimPrefix(rest, ":"))
	}
	return sym(name)
}

// Nil is the empty list, false, and the symbol NIL.
var Nil = sym("NIL")

var (
	symT         = sym("T")
	symQuote     = sym("QUOTE")
	symFunction  = sym("FUNCTION")
	symLambda    = sym("LAMBDA")
	symIf        = sym("IF")
	symProgn     = sym("PROGN")
	symLet       = sym("LET")
	symLetStar   = sym("LET*")
	symSetq      = sym("SETQ")
	symSetf      = sym("SETF")
	symBlock     = sym("BLOCK")
	symReturn    = sym("RETURN-FROM")
	symTagbody   = sym("TAGBODY")
	symGo        = sym("GO")
	symDeclare   = sym("DECLARE")
	symSpecial   = sym("SPECIAL")
	symOptional  = sym("&OPTIONAL")
	symRest      = sym("&REST")
	symBody      = sym("&BODY")
	symKey       = sym("&KEY")
	symAux       = sym("&AUX")
	symAllow     = sym("&ALLOW-OTHER-KEYS")
	symWhole     = sym("&WHOLE")
	symEnv       = sym("&ENVIRONMENT")
	symFuncall   = sym("FUNCALL")
	symApply     = sym("APPLY")
	symCons      = sym("CONS")
	symList      = sym("LIST")
	_            = sym("LIST*")
	symAppend    = sym("APPEND")
	symVector    = sym("VECTOR")
	symWhen      = sym("WHEN")
	symUnless    = sym("UNLESS")
	symCond      = sym("COND")
	symAnd       = sym("AND")
	symOr        = sym("OR")
	symNot       = sym("NOT")
	symEql       = sym("EQL")
	symEqual     = sym("EQUAL")
	symEq        = sym("EQ")
	symEqualp    = sym("EQUALP")
	symMember    = sym("MEMBER")
	symOtherwise = sym("OTHERWISE")
	symValues    = sym("VALUES")
	symThe       = sym("THE")

	symUnquote = kernel("UNQUOTE")
	symSplice  = kernel("UNQUOTE-SPLICING")
	symMVBind  = sym("MULTIPLE-VALUE-BIND")
	symCar     = sym("CAR")
	symCdr     = sym("CDR")
	symPlus    = sym("+")
	symMinus   = sym("-")
	symLess    = sym("<")
	symGreater = sym(">")
	symLE      = sym("<=")
	symGE      = sym(">=")
	_          = sym("=")
	symStar    = sym("*")
	symAref    = sym("AREF")
	symGethash = sym("GETHASH")
	_          = sym("ERROR")
	symPackage = sym("*PACKAGE*")
	symStdout  = sym("*STANDARD-OUTPUT*")
	symStdin   = sym("*STANDARD-INPUT*")
	symStderr  = sym("*ERROR-OUTPUT*")
	keyAllow   = key("ALLOW-OTHER-KEYS")
	_          = key("TEST")
	_          = key("KEY")
)
