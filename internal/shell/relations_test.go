package shell_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
	"pgregory.net/rapid"

	"passepartout/internal/shell"
)

// memFiles is a file system in a map.
type memFiles map[string]string

func (m memFiles) ReadFile(p string) ([]byte, bool) {
	s, ok := m[p]
	return []byte(s), ok
}

func (m memFiles) Glob(pattern string) ([]string, bool) {
	var out []string
	for p := range m {
		if ok, _ := path.Match(pattern, p); ok {
			out = append(out, p)
		}
	}
	return out, true
}

func quote(t testing.TB, s string) string {
	t.Helper()
	q, err := syntax.Quote(s, syntax.LangBash)
	if err != nil {
		t.Skip("cannot be quoted: ", err)
	}
	return q
}

// wrappings are ways to write a command that run the same thing.
func wrappings(t testing.TB, cmd string) map[string]string {
	q := quote(t, cmd)
	all := map[string]string{
		"bash -c":      "bash -c " + q,
		"env":          "env A=b sh -c " + q,
		"subshell":     "( " + cmd + "\n)",
		"block":        "{ " + cmd + "\n}",
		"substitution": "echo \"$( " + cmd + "\n)\"",
		"function":     "f() { " + cmd + "\n}; f",
		"uncalled":     "f() { " + cmd + "\n}",
		"eval":         "eval " + q,
		"trap":         "trap " + q + " EXIT",
		"timeout":      "timeout 5 nice bash -c " + q,
		"xargs":        "echo x | xargs bash -c " + q,
		"find":         "find . -exec sh -c " + q + " \\;",
		"pipe":         "printf %s " + q + " | sh",
		"base64":       "echo " + base64.StdEncoding.EncodeToString([]byte(cmd)) + " | base64 -d | bash",
		"here-string":  "bash <<< " + q,
		"if":           "if true; then " + cmd + "\nfi",
		"or":           "false || { " + cmd + "\n}",
		"background":   "{ " + cmd + "\n} &",
		"loop":         "for i in 1 2; do " + cmd + "\ndone",
		"proc-subst":   "cat <( " + cmd + "\n)",
	}
	if strings.Contains(cmd, "{}") {
		delete(all, "find") // the outer find would put its own files in
	}
	return all
}

func TestWrappingNeverLoosens(t *testing.T) {
	for _, tr := range tricks {
		plain := shell.Analyze(tr.cmd, ann())
		if plain.Level == shell.Harmless || hasCode(plain, "shell.unparsed") || !parses(tr.cmd) || strings.ContainsRune(tr.cmd, 0) {
			continue
		}
		for how, wrapped := range wrappings(t, tr.cmd) {
			if r := shell.Analyze(wrapped, ann()); r.Level > plain.Level {
				t.Errorf("%s: %q is %v, but wrapped in %s it is %v", tr.name, tr.cmd, plain.Level, how, r.Level)
			}
		}
		env := ann()
		env.Files = memFiles{"/home/ann/work/s.sh": tr.cmd}
		if r := shell.Analyze("sh s.sh", env); r.Level > plain.Level {
			t.Errorf("%s: %q is %v, but in a script it is %v", tr.name, tr.cmd, plain.Level, r.Level)
		}
	}
}

func TestWrappingSharedDangerousCommandsNeverLoosens(t *testing.T) {
	env := world()
	for _, r := range rows(t, "shell_dangerous") {
		if !parses(r.Cmd) || strings.ContainsAny(r.Cmd, "\r\x00") {
			continue
		}
		plain := shell.Analyze(r.Cmd, env)
		for how, wrapped := range wrappings(t, r.Cmd) {
			if got := shell.Analyze(wrapped, env); got.Level > plain.Level {
				t.Errorf("row %s is %v, but wrapped in %s it is %v", r.ID, plain.Level, how, got.Level)
			}
		}
	}
}

func parses(cmd string) bool {
	_, err := syntax.NewParser().Parse(strings.NewReader(cmd), "")
	return err == nil
}

func hasCode(r shell.Report, code string) bool {
	for _, f := range r.Findings {
		if f.Code == code {
			return true
		}
	}
	return false
}

func TestAddingACommandNeverLoosens(t *testing.T) {
	parts := make([]string, 0, len(tricks))
	for _, tr := range tricks {
		if parses(tr.cmd) {
			parts = append(parts, tr.cmd)
		}
	}
	parts = append(parts, "ls", "echo hi", "git status", "cd src", "x=1")
	rapid.Check(t, func(t *rapid.T) {
		cmds := rapid.SliceOfN(rapid.SampledFrom(parts), 1, 4).Draw(t, "commands")
		sep := rapid.SampledFrom([]string{"\n", "\n\n"}).Draw(t, "separator")
		worst := shell.Harmless
		for _, c := range cmds[:1] {
			worst = min(worst, shell.Analyze(c, ann()).Level)
		}
		if got := shell.Analyze(strings.Join(cmds, sep), ann()).Level; got > worst {
			t.Fatalf("%q is %v, but its first command alone is %v", cmds, got, worst)
		}
	})
}

func TestTheSameTextAlwaysGetsTheSameReport(t *testing.T) {
	for _, tr := range tricks {
		a, b := shell.Analyze(tr.cmd, ann()), shell.Analyze(tr.cmd, ann())
		if fmt.Sprintf("%#v", a) != fmt.Sprintf("%#v", b) {
			t.Errorf("%s: two analyses differ:\n%+v\n%+v", tr.name, a, b)
		}
	}
}

func TestScriptsThatCanBeReadAreJudgedAndNamed(t *testing.T) {
	env := ann()
	env.Files = memFiles{
		"/home/ann/work/good.sh":      "#!/bin/bash\nset -e\nls\n",
		"/home/ann/work/bad.sh":       "#!/bin/sh\ntrap 'rm -rf \"$D\"' EXIT\n",
		"/home/ann/work/good.py":      "#!/usr/bin/env python3\nprint(1 + 1)\n",
		"/home/ann/work/bad.py":       "import os\nos.system('rm -rf /home/ann')\n",
		"/home/ann/work/lib.sh":       "greet() { echo hi; }\n",
		"/home/ann/work/x.awk":        "{ system($1) }\n",
		"/home/ann/work/tool":         "\x7fELF\x00\x01",
		"/home/ann/work/.git/config":  "[core]\n\tfsmonitor = ./evil.sh\n",
		"/home/ann/memex/.git/config": "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://github.com/a/b\n",
	}
	for _, c := range []struct {
		cmd     string
		want    shell.Level
		scripts int
	}{
		{"bash good.sh", shell.Harmless, 1},
		{"./good.sh", shell.Harmless, 1},
		{". ./lib.sh; greet", shell.Harmless, 1},
		{"bash bad.sh", shell.Forbidden, 1},
		{"./bad.sh", shell.Forbidden, 1},
		{"python3 good.py", shell.Harmless, 1},
		{"python3 bad.py", shell.Forbidden, 1},
		{"awk -f x.awk list", shell.Forbidden, 1},
		{"./tool", shell.Question, 1},
		{"bash missing.sh", shell.Question, 0},
		{"git status", shell.Question, 0},
		{"cd ../memex && git status", shell.Harmless, 0},
	} {
		r := shell.Analyze(c.cmd, env)
		if r.Level != c.want || len(r.Scripts) != c.scripts {
			t.Errorf("%q is %v with %d scripts, want %v with %d: %+v", c.cmd, r.Level, len(r.Scripts), c.want, c.scripts, r.Findings)
		}
		for _, s := range r.Scripts {
			if !strings.HasPrefix(s.Digest, "sha256:") || len(s.Digest) != 7+64 {
				t.Errorf("%q: digest %q is not a sha256", c.cmd, s.Digest)
			}
		}
	}
}

func TestTheReportNamesWhatIsTouched(t *testing.T) {
	env := ann()
	env.Hosts = []string{"files.example.org"}
	r := shell.Analyze("cat a b; cp a out/c; rm old; curl -s https://files.example.org/x -o p; curl -s http://files.example.org:8080/ 'https://[2001:4860::1]:444/'", env)
	for _, c := range []struct {
		what      string
		got, want []string
	}{
		{"reads", r.Reads, []string{"/home/ann/work/a", "/home/ann/work/b"}},
		{"writes", r.Writes, []string{"/home/ann/work/out/c", "/home/ann/work/p"}},
		{"deletes", r.Deletes, []string{"/home/ann/work/old"}},
		{"hosts", r.Hosts, []string{"[2001:4860::1]:444", "files.example.org", "files.example.org:8080"}},
		{"effects", r.Effects.Names(), []string{"read", "write", "delete", "network"}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s are %v, want %v", c.what, c.got, c.want)
		}
	}
	if r.Commands != 5 {
		t.Errorf("%d commands, want 5", r.Commands)
	}
}

func TestFindingsPointIntoTheText(t *testing.T) {
	r := shell.Analyze("ls\n  rm -rf /home/ann", ann())
	if len(r.Findings) != 1 {
		t.Fatalf("want one finding, found %+v", r.Findings)
	}
	f := r.Findings[0]
	if f.Line != 2 || f.Col != 3 || f.Command != "rm" || f.Code != "shell.delete-home" {
		t.Errorf("found %+v, want rm at 2:3", f)
	}
}

func TestLimitsForbid(t *testing.T) {
	for name, cmd := range hostile() {
		if r := shell.Analyze(cmd, ann()); name != "heredoc" && name != "doubling" && r.Level == shell.Harmless {
			t.Errorf("%s: hostile text is harmless", name)
		}
	}
	for name, cmd := range map[string]string{
		"too long":          strings.Repeat("a", shell.MaxBytes+1),
		"too many commands": strings.Repeat("true\n", shell.MaxCommands+1),
		"too deep":          strings.Repeat("(", shell.MaxDepth+1) + "ls" + strings.Repeat(")", shell.MaxDepth+1),
		"unbalanced":        "echo 'x",
		"not a command":     "fi",
	} {
		if r := shell.Analyze(cmd, ann()); r.Level != shell.Forbidden {
			t.Errorf("%s is %v, want forbidden", name, r.Level)
		}
	}
	if r := shell.Analyze(strings.Repeat("true\n", shell.MaxCommands), ann()); r.Level != shell.Harmless {
		t.Errorf("as many commands as allowed are %v, want harmless: %+v", r.Level, r.Findings)
	}
}

func TestArgvIsJudgedWithoutAShell(t *testing.T) {
	for _, c := range []struct {
		argv []string
		want shell.Level
	}{
		{[]string{"echo", "$(rm -rf /)"}, shell.Harmless},
		{[]string{"ls", "-la"}, shell.Harmless},
		{[]string{"bash", "-c", "rm -rf /home/ann"}, shell.Forbidden},
		{[]string{"rm", "-rf", "/"}, shell.Forbidden},
		{[]string{"cat", "a\x00b"}, shell.Forbidden},
		{nil, shell.Forbidden},
		{[]string{""}, shell.Forbidden},
	} {
		if r := shell.AnalyzeArgv(c.argv, ann()); r.Level != c.want {
			t.Errorf("%q is %v, want %v: %+v", c.argv, r.Level, c.want, r.Findings)
		}
	}
}

func TestGlobsAreExpandedAgainstTheFiles(t *testing.T) {
	env := ann()
	env.Files = memFiles{"/home/ann/work/.env": "K=v", "/home/ann/work/a.txt": ""}
	if r := shell.Analyze("cat .e*", env); r.Level != shell.Forbidden {
		t.Errorf("a pattern that matches a secret is %v, want forbidden", r.Level)
	}
	if r := shell.Analyze("cat *.txt", env); r.Level != shell.Harmless {
		t.Errorf("a pattern that matches ordinary files is %v: %+v", r.Level, r.Findings)
	}
}

// bashAccepts asks the real shell whether a text is a program.
func bashAccepts(t testing.TB, bash, text string) bool {
	t.Helper()
	c := exec.Command(bash, "--norc", "--noprofile", "-n")
	c.Stdin = strings.NewReader(text)
	var errs bytes.Buffer
	c.Stderr = &errs
	return c.Run() == nil && errs.Len() == 0
}

func TestWhatBashAcceptsIsParsedOrForbidden(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not here")
	}
	for _, text := range []string{
		"coproc x { ls; }", "select i in a b; do echo $i; done", "echo ${x^^}", "case a in (a) ls;; esac", "function f { ls; }", "((i++))", "[[ a =~ b ]]", "echo {a..c}", "a=(1 2 3)", "declare -A m=([k]=v)", "cat <<-E\n\tx\n\tE", "echo $'a\\x41'",
		"time -p ls", "! ls", "ls |& wc", "echo ${x@Q}", "echo \"${x[@]}\"", "exec {fd}>out", "until false; do break; done", "let x=1+2", "for ((i=0;i<3;i++)); do ls; done", "ls &>x", "f() ( ls )", "echo \\\nx",
	} {
		if !bashAccepts(t, bash, text) {
			continue
		}
		r := shell.Analyze(text, ann())
		if hasCode(r, "shell.unparsed") != (r.Level == shell.Forbidden) && hasCode(r, "shell.unparsed") {
			t.Errorf("%q is unparsed but %v", text, r.Level)
		}
		if r.Commands == 0 && r.Level != shell.Forbidden && strings.Contains(text, "ls") {
			t.Errorf("%q: bash would run a command that was not seen", text)
		}
	}
}
