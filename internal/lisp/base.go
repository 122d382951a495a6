package lisp

import (
	_ "embed"
	"fmt"
)

//go:embed prelude.lisp
var prelude []byte

// globalVars are the standard variables and constants with their values.
func globalVars() (vars, constants map[*Symbol]Value) {
	vars = map[*Symbol]Value{
		symPackage: userPackage, symStdout: &stream{std: true}, symStderr: &stream{null: true}, symStdin: &stream{input: true},
		symPrintBase: Int(10), symPrintRadix: Nil, symPrintCase: key("UPCASE"), symPrintLength: Nil, symPrintLevel: Nil, symPrintEscape: symT,
		symPrintPretty: Nil, symPrintCircle: Nil, symPrintReadably: Nil, symPrintGensym: symT, symPrintArray: symT,
		symReadBase: Int(10), symReadFloat: symSingleFloat, sym("*READ-EVAL*"): Nil, sym("*GENSYM-COUNTER*"): Int(1),
		sym("*FEATURES*"): list(key("PASSEPARTOUT"), key("COMMON-LISP"), key("ANSI-CL"), key("UNICODE")),
		sym("*MODULES*"):  Nil, sym("*MACROEXPAND-HOOK*"): symFuncall, sym("*BREAK-ON-SIGNALS*"): Nil, sym("*DEBUGGER-HOOK*"): Nil,
		sym("*PRINT-LINES*"): Nil, sym("*PRINT-MISER-WIDTH*"): Nil, sym("*PRINT-RIGHT-MARGIN*"): Nil, sym("*READ-SUPPRESS*"): Nil,
	}
	for _, n := range []string{"*QUERY-IO*", "*DEBUG-IO*", "*TERMINAL-IO*", "*TRACE-OUTPUT*"} {
		vars[sym(n)] = vars[symStderr]
	}
	for _, n := range []string{"*", "**", "***", "+", "++", "+++", "/", "//", "///", "-"} {
		vars[sym(n)] = Nil
	}
	constants = map[*Symbol]Value{
		Nil: Nil, symT: symT, sym("PI"): Double(3.141592653589793), sym("MOST-POSITIVE-FIXNUM"): Int(1<<62 - 1), sym("MOST-NEGATIVE-FIXNUM"): Int(-1 << 62),
		sym("CHAR-CODE-LIMIT"): Int(1114112), sym("ARRAY-DIMENSION-LIMIT"): Int(1<<62 - 3), sym("ARRAY-RANK-LIMIT"): Int(129), sym("ARRAY-TOTAL-SIZE-LIMIT"): Int(1<<62 - 3),
		sym("CALL-ARGUMENTS-LIMIT"): Int(1<<62 - 1), sym("LAMBDA-PARAMETERS-LIMIT"): Int(1<<62 - 1), sym("MULTIPLE-VALUES-LIMIT"): Int(1<<62 - 1),
		sym("LAMBDA-LIST-KEYWORDS"):       list(symAllow, symAux, symBody, symEnv, symKey, symOptional, symRest, symWhole),
		sym("MOST-POSITIVE-SINGLE-FLOAT"): Single(3.4028235e38), sym("MOST-NEGATIVE-SINGLE-FLOAT"): Single(-3.4028235e38),
		sym("MOST-POSITIVE-DOUBLE-FLOAT"): Double(1.7976931348623157e308), sym("MOST-NEGATIVE-DOUBLE-FLOAT"): Double(-1.7976931348623157e308),
		sym("LEAST-POSITIVE-SINGLE-FLOAT"): Single(1.4012985e-45), sym("LEAST-POSITIVE-DOUBLE-FLOAT"): Double(5e-324),
		sym("SINGLE-FLOAT-EPSILON"): Single(5.960465e-8), sym("DOUBLE-FLOAT-EPSILON"): Double(1.1102230246251568e-16),
		sym("INTERNAL-TIME-UNITS-PER-SECOND"): Int(1000000),
	}
	return vars, constants
}

// buildBase makes the image everything else starts from.
func buildBase() *Image {
	smallInts = boxSmallInts()
	special, macros, stores := specialTable(), macroTable(), storeTable()
	tables := [][]prim{
		numberPrims, listPrims(), hashPrims, sequencePrims(), arrayPrims, stringPrims(), streamPrims, typePrims(),
		functionPrims(), storePrims(), objectPrims, conditionPrims, formatPrims, regexPrims, uiopPrims,
	}
	type entry struct {
		s *Symbol
		p *prim
	}
	var prims []entry
	for _, t := range tables {
		for i := range t {
			p := &t[i]
			if err := p.parseUsage(p.usage, key); err != nil {
				panic(err)
			}
			p.name = qualified(usageName(p.usage))
			completePrim(p)
			prims = append(prims, entry{p.name, p})
		}
	}
	vars, constants := globalVars()
	img := &Image{
		packages: map[string]*pkgTable{}, special: special, macros: macros, stores: stores,
		regexes: &regexCache{m: map[string]*regex{}}, frozen: map[*Cons]struct{}{}, current: userPackage,
	}
	for n, t := range names.tables {
		img.packages[n] = t
	}
	img.next = names.count
	names.sealed = true
	th := img.Thread(Budget{Steps: 1 << 40, Cells: 1 << 40, Depth: 1 << 14})
	th.unlock = true
	for _, e := range prims {
		c := th.own(e.s)
		if c.fn != nil {
			panic("lisp: builtin declared twice: " + e.s.name)
		}
		c.fn = &Function{name: e.s, prim: e.p}
	}
	for s, v := range vars {
		c := th.own(s)
		c.value, c.special = v, true
	}
	for s, v := range constants {
		c := th.own(s)
		c.value, c.special, c.constant = v, true, true
	}
	for _, k := range builtinClasses {
		th.own(k.name).class = k
	}
	if _, err := th.Load("prelude.lisp", prelude); err != nil {
		panic(fmt.Sprintf("lisp: prelude: %v", err))
	}
	out, err := th.Freeze()
	if err != nil {
		panic(fmt.Sprintf("lisp: prelude: %v", err))
	}
	return out
}

func usageName(usage string) string {
	for i := 1; i < len(usage); i++ {
		if usage[i] == ' ' || usage[i] == ')' {
			return usage[1:i]
		}
	}
	return usage
}

// completePrim derives the general form of a builtin that was given only its
// short one.
func completePrim(p *prim) {
	if p.fn != nil {
		return
	}
	switch {
	case p.fn1 != nil:
		f := p.fn1
		p.fn = func(th *Thread, a []Value) Value { return f(th, a[0]) }
	case p.fn2 != nil:
		f := p.fn2
		p.fn = func(th *Thread, a []Value) Value { return f(th, a[0], a[1]) }
	}
}
