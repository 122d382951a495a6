package arch

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"testing"
)

// TestNoPackageCompilesExpressionsAtTheStart keeps the start of every command and of
// every sandbox short: a package variable holds a pattern.Pattern, which compiles
// itself when it is used.
func TestNoPackageCompilesExpressionsAtTheStart(t *testing.T) {
	patterns := 0
	for _, f := range files(t) {
		for _, d := range f.ast.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			ast.Inspect(g, func(n ast.Node) bool {
				if _, later := n.(*ast.FuncLit); later {
					return false // runs when it is called
				}
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				switch at := f.fset.Position(n.Pos()); selected(call) {
				case "regexp.MustCompile", "regexp.Compile":
					t.Errorf("%s: compiled whenever the program starts; use pattern.New", at)
				case "pattern.New", "pattern.Needing":
					patterns++
					if expr, ok := constant(call.Args[0]); ok {
						if _, err := regexp.Compile(expr); err != nil {
							t.Errorf("%s: %v", at, err)
						}
					}
				}
				return true
			})
		}
	}
	if patterns < 30 {
		t.Errorf("found only %d patterns: this test has come apart from the code", patterns)
	}
}

// selected is the package and name a call calls, "" for anything else.
func selected(call *ast.CallExpr) string {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	x, ok := sel.X.(*ast.Ident)
	if !ok {
		return ""
	}
	return x.Name + "." + sel.Sel.Name
}

// constant is the text of string literals joined by plus signs.
func constant(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		return s, err == nil
	case *ast.BinaryExpr:
		x, ok1 := constant(e.X)
		y, ok2 := constant(e.Y)
		return x + y, ok1 && ok2 && e.Op == token.ADD
	}
	return "", false
}
