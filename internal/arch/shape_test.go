package arch

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// Budgets. An exception is named here, with its reason, or the code is split.
const (
	maxFile     = 900 // lines
	maxFunc     = 120
	maxExported = 60 // package-level names of one package
	maxMethods  = 4  // of one interface
)

// longFuncs names functions that may be long, and why.
var longFuncs = map[string]string{}

// wide names packages that may export more, and why.
var wide = map[string]string{
	"proto": "the vocabulary all packages share; more than half are values of its closed sets",
}

// methods names interfaces that may have more methods, and why.
var methods = map[string]string{}

// pure packages compute: same input, same output, no goroutine.
var pure = []string{"sexp", "org", "secret", "place", "host", "proto", "lisp", "shell", "gate"}

// impure lists calls that pure packages must not make; nil means every name.
var impure = map[string][]string{
	"time": {"Now", "Since", "Until", "Sleep", "After", "Tick", "NewTimer", "NewTicker", "AfterFunc"},
	"rand": nil,
	"fmt":  {"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"},
	"log":  nil,
	"slog": nil,
}

func TestFilesFunctionsAndInterfacesStaySmall(t *testing.T) {
	for _, f := range files(t) {
		if n := f.fset.File(f.ast.Pos()).LineCount(); n > maxFile {
			t.Errorf("%s has %d lines, more than %d", f.rel, n, maxFile)
		}
		for _, d := range f.ast.Decls {
			fd, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			n := f.fset.Position(fd.End()).Line - f.fset.Position(fd.Pos()).Line + 1
			if _, excused := longFuncs[f.pkg+"."+fd.Name.Name]; n > maxFunc && !excused {
				t.Errorf("%s: %s has %d lines, more than %d", f.rel, fd.Name.Name, n, maxFunc)
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			ts, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			it, ok := ts.Type.(*ast.InterfaceType)
			if _, excused := methods[f.pkg+"."+ts.Name.Name]; ok && it.Methods.NumFields() > maxMethods && !excused {
				t.Errorf("%s: interface %s of %d methods, more than %d", f.rel, ts.Name.Name, it.Methods.NumFields(), maxMethods)
			}
			return true
		})
	}
}

func TestPurePackagesOnlyCompute(t *testing.T) {
	for _, f := range files(t) {
		if !slices.Contains(pure, f.pkg) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s: pure package starts a goroutine", f.fset.Position(n.Pos()))
			case *ast.SelectorExpr:
				x, ok := n.X.(*ast.Ident)
				if !ok {
					break
				}
				if names, banned := impure[x.Name]; banned && (names == nil || slices.Contains(names, n.Sel.Name)) {
					t.Errorf("%s: pure package uses %s.%s", f.fset.Position(n.Pos()), x.Name, n.Sel.Name)
				}
			}
			return true
		})
	}
}

func TestEveryPackageHasOneMapAndAFewExports(t *testing.T) {
	docs, exported := map[string]int{}, map[string]int{}
	for _, f := range files(t) {
		docs[f.pkg] += 0
		if f.ast.Doc != nil {
			docs[f.pkg]++
		}
		for _, d := range f.ast.Decls {
			exported[f.pkg] += countExported(d)
			if fd, ok := d.(*ast.FuncDecl); ok && fd.Recv == nil && fd.Name.Name == "init" {
				t.Errorf("%s: init(): what is in the binary must not depend on import side effects", f.rel)
			}
		}
	}
	for pkg, n := range docs {
		if n != 1 {
			t.Errorf("%s has %d package comments, want 1", pkg, n)
		}
		if _, excused := wide[pkg]; exported[pkg] > maxExported && !excused {
			t.Errorf("%s exports %d names, more than %d", pkg, exported[pkg], maxExported)
		}
		for _, bad := range []string{"util", "utils", "common", "types", "core", "helpers", "misc"} {
			if pkg == bad || strings.HasSuffix(pkg, "/"+bad) {
				t.Errorf("package %s: name it after what it is for", pkg)
			}
		}
	}
}

func countExported(d ast.Decl) (n int) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil && d.Name.IsExported() {
			n++
		}
	case *ast.GenDecl:
		if d.Tok == token.IMPORT {
			return 0
		}
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() {
					n++
				}
			case *ast.ValueSpec:
				for _, id := range s.Names {
					if id.IsExported() {
						n++
					}
				}
			}
		}
	}
	return n
}
