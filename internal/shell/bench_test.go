package shell_test

import (
	"strings"
	"testing"

	"passepartout/internal/shell"
)

func BenchmarkAnalyze(b *testing.B) {
	for _, c := range []struct{ name, cmd string }{
		{"simple", "ls -la src"},
		{"pipe", "git ls-files '*.go' | xargs grep -n 'panic(' | sort | uniq -c | head -20"},
		{"nested", `for f in a b c; do bash -c "wc -l $f | awk '{print \$1}'"; done`},
		{"dangerous", `env X=1 sudo -u root -- rm -rf "$HOME"/*`},
	} {
		b.Run(c.name, func(b *testing.B) {
			env := world()
			b.ReportAllocs()
			for b.Loop() {
				shell.Analyze(c.cmd, env)
			}
		})
	}
}

// hostile texts of the largest size allowed, each aimed at one part of the analysis.
func hostile() map[string]string {
	fill := func(s string) string { return strings.Repeat(s, shell.MaxBytes/len(s)) }
	return map[string]string{
		"parens":         fill("("),
		"dollar-parens":  fill("$("),
		"braces":         "echo " + strings.Repeat("{a,b}", 1000),
		"brace-bomb":     "echo " + strings.Repeat("{1..99}", 200),
		"backticks":      fill("`"),
		"quotes":         fill("'a'\"b\""),
		"if":             fill("if true; then "),
		"not":            fill("! "),
		"functions":      fill("f(){ f;};"),
		"func-chain":     fill("f()"),
		"semicolons":     fill("a;"),
		"ands":           strings.TrimSuffix(fill("a && "), " && "),
		"pipes":          strings.TrimSuffix(fill("a|"), "|"),
		"arithmetic":     "echo $((" + strings.Repeat("1+", 30000) + "1))",
		"unary":          "echo $((" + strings.Repeat("-", 60000) + "1))",
		"ternary":        "echo $((" + strings.Repeat("1?", 30000) + "1))",
		"tests":          "[[ " + strings.Repeat("! ", 30000) + "a ]]",
		"variables":      fill("a=$a$a;"),
		"globs":          "rm " + strings.Repeat("/*?[a-z]", 8000),
		"one-word":       "cat " + strings.Repeat("a", 65000),
		"many-words":     "cat " + strings.Repeat("a ", 32000),
		"many-paths":     "foo " + strings.Repeat("~/.a/b ", 9000),
		"heredoc":        "cat <<E\n" + strings.Repeat("$a", 30000) + "\nE\n",
		"evals":          strings.Repeat("eval ", 10000) + "ls",
		"bash-c":         strings.Repeat("bash -c '", 500) + strings.Repeat("'", 500),
		"loops":          strings.Repeat("for i in 1 2 3 4 5 6 7 8; do ", 20) + "a" + strings.Repeat("; done", 20),
		"python":         "python3 -c '" + strings.Repeat("a.", 32000) + "'",
		"python-strings": `python3 -c "import os;os.system(` + strings.Repeat("'a'+", 15000) + `'b')"`,
		"sed":            "sed '" + strings.Repeat("s/[a/b/;", 8000) + "' f",
		"awk":            "awk '" + strings.Repeat("{print | ", 7000) + "' f",
		"doubling":       "a=xxxxxxxxxxxxxxxx;" + strings.Repeat("a=$a$a;", 60) + "echo $a",
		"loop-body":      strings.Repeat("for i in 1 2 3 4 5 6 7 8; do ", 5) + "cat " + strings.Repeat("a ", 25000) + strings.Repeat("; done", 5),
		"func-calls":     "f() { cat " + strings.Repeat("a ", 2000) + "; }\n" + strings.Repeat("f\n", 250),
		"code-in-code":   "python3 -c \"import os; os.system('" + strings.Repeat("python3 -c \\\"import os; os.system(", 40) + "')\"",
		"else":           "if a; then b;" + strings.Repeat("elif a; then b;", 4000) + " fi",
		"case":           "case x in " + strings.Repeat("a) b;; ", 9000) + "esac",
	}
}

func BenchmarkHostile(b *testing.B) {
	for name, cmd := range hostile() {
		b.Run(name, func(b *testing.B) {
			env := world()
			for b.Loop() {
				shell.Analyze(cmd, env)
			}
		})
	}
}
