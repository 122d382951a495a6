package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "passepartout"

// layers lists packages bottom-up. A package may import packages of lower layers
// only.
var layers = [][]string{
	{"sexp", "org", "secret", "place", "host", "cron", "pattern", "durable", "powercut"},
	{"proto", "lisp", "journal", "record", "config", "vault", "backup", "shell", "sandbox", "undo"},
	{"gate", "memory", "memory/memorytest", "llm", "recall", "label"},
	{"act", "skill", "fovea", "flight", "gardener", "scribe"},
	{"agent", "pulse", "channel", "channel/channeltest"},
	{"daemon", "tui", "acp"},
	{"cmd/passepartout", "cmd/measure", "soak"},
}

// A power is an import, or one name of an import, that only some packages may
// use, and why.
type power struct {
	only []string
	why  string
}

var powers = map[string]power{
	"os/exec":  {[]string{"sandbox", "cmd/measure"}, "processes are started only on a permit, inside the sandbox; what measures the tree is no part of the product"},
	"net/http": {[]string{"llm", "sandbox", "channel", "channel/channeltest", "recall", "daemon"}, "the network is reached only through a backend, a channel or the filtering proxy"},
	"net":      {[]string{"daemon", "sandbox", "channel", "channel/channeltest", "cmd/passepartout"}, "sockets are opened at the edge"},
	"os": {
		[]string{"durable", "memory", "memory/memorytest", "act", "skill", "config", "journal", "record", "label", "vault", "backup", "sandbox", "undo", "recall", "flight", "pulse", "channel", "channel/channeltest", "daemon", "tui", "powercut", "cmd/passepartout", "cmd/measure"},
		"languages, gates and the loop are pure",
	},
	"unsafe":                        {[]string{"sandbox", "powercut"}, "only a kernel interface needs it"},
	"reflect":                       {nil, "types are known"},
	"passepartout/internal/sandbox": {[]string{"act", "daemon", "cmd/passepartout"}, "only actuators start processes; the edge asks what protection there is"},
}

// spawners may call the functions of os and syscall that start a process.
var spawners = []string{"sandbox", "powercut", "cmd/passepartout"}

// onlyTests lists packages that are part of tests and of no program.
var onlyTests = []string{"powercut", "channel/channeltest", "memory/memorytest"}

// blind lists packages that must not see a package although it is lower.
var blind = map[string][]string{
	"tui":  {"agent", "gate", "memory", "llm", "act", "skill", "lisp", "config"},
	"acp":  {"agent", "gate", "memory", "llm", "act", "skill", "lisp", "config"},
	"gate": {"memory", "lisp"},
	"llm":  {"sexp", "proto"},
}

// A file is one parsed source file of the product.
type file struct {
	rel, pkg string
	fset     *token.FileSet
	ast      *ast.File
}

// files parses every source file that is part of the product: no tests, no test
// data, no tools.
func files(t *testing.T) []file {
	t.Helper()
	root := filepath.Join("..", "..")
	var out []file
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "tools" || strings.HasPrefix(d.Name(), ".") && p != root) {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, p, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		out = append(out, file{filepath.ToSlash(rel), name(module + "/" + path.Dir(filepath.ToSlash(rel))), fset, f})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 30 {
		t.Fatalf("found only %d source files: wrong root?", len(out))
	}
	return out
}

func name(imp string) string {
	return strings.TrimPrefix(strings.TrimPrefix(imp, module+"/"), "internal/")
}

func layer(pkg string) int {
	return slices.IndexFunc(layers, func(l []string) bool { return slices.Contains(l, pkg) })
}

func TestImportsPointDownAndPowersStayWhereTheyBelong(t *testing.T) {
	for _, f := range files(t) {
		if f.pkg == "arch" {
			continue
		}
		if layer(f.pkg) < 0 {
			t.Errorf("%s: package %s is in no layer", f.rel, f.pkg)
			continue
		}
		for _, s := range f.ast.Imports {
			imp, err := strconv.Unquote(s.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if pw, ok := powers[imp]; ok && !slices.Contains(pw.only, f.pkg) {
				t.Errorf("%s: imports %s: %s", f.rel, imp, pw.why)
			}
			if !strings.HasPrefix(imp, module+"/") {
				continue
			}
			to := name(imp)
			if layer(to) >= layer(f.pkg) {
				t.Errorf("%s: %s imports %s, which is not below it", f.rel, f.pkg, to)
			}
			if slices.Contains(onlyTests, to) {
				t.Errorf("%s: %s is for tests", f.rel, to)
			}
			if slices.Contains(blind[f.pkg], to) {
				t.Errorf("%s: %s must not know %s", f.rel, f.pkg, to)
			}
		}
	}
}

func TestOnlySpawnersStartProcesses(t *testing.T) {
	starts := map[string][]string{"os": {"StartProcess"}, "syscall": {"ForkExec", "StartProcess", "Exec"}, "unix": {"Exec"}}
	for _, f := range files(t) {
		if slices.Contains(spawners, f.pkg) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && slices.Contains(starts[x.Name], sel.Sel.Name) {
				t.Errorf("%s: %s.%s: only %s may start a process", f.fset.Position(n.Pos()), x.Name, sel.Sel.Name, strings.Join(spawners, ", "))
			}
			return true
		})
	}
}
