package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runLisp runs the lisp command on its own.
func runLisp(t *testing.T, json bool, in string, args ...string) (out string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	a := &app{in: strings.NewReader(in), out: &stdout, errw: &stderr, json: json}
	cmd := a.lispCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append([]string{}, args...))
	err = cmd.Execute()
	return stdout.String(), err
}

func TestLispCommandEvaluatesForms(t *testing.T) {
	file := filepath.Join(t.TempDir(), "defs.lisp")
	if err := os.WriteFile(file, []byte("(defun twice (x) (* 2 x))\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, in string
		json     bool
		args     []string
		want     string
	}{
		{name: "a form", args: []string{"-e", "(+ 1 2)"}, want: "3\n"},
		{name: "several values", args: []string{"-e", "(floor 7 2)"}, want: "3\n1\n"},
		{name: "output before values", args: []string{"-e", `(progn (princ "hi") 5)`}, want: "hi\n5\n"},
		{name: "a file, then a form", args: []string{file, "-e", "(twice 21)"}, want: "42\n"},
		{name: "json", json: true, args: []string{"-e", `(values 1 "a")`}, want: `{"values":["1","\"a\""]}` + "\n"},
		{name: "standard input over several lines", in: "(list 1\n 2)\n(car '(a))\n", want: "(1 2)\nA\n"},
		{name: "a keyword is no command", in: ":foo\n", want: ":FOO\n"},
		{name: "quit", in: "1\n:quit\n2\n", want: "1\n"},
		{name: "history", in: "(+ 1 1)\n:history\n", want: "2\n1: (+ 1 1)\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := runLisp(t, c.json, c.in, c.args...)
			if err != nil {
				t.Fatal(err)
			}
			if got != c.want {
				t.Errorf("printed %q, want %q", got, c.want)
			}
		})
	}
}

func TestLispCommandReportsErrors(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		args []string
		want string
	}{
		"a condition":    {args: []string{"-e", "(car 5)"}, want: "type-error"},
		"a missing file": {args: []string{"no-such-file.lisp"}, want: "no-such-file"},
		"an open form":   {in: "(list 1\n", want: "ends inside a form"},
		"a wrong form":   {in: "(foo)\n", want: "undefined"},
		"no host power":  {args: []string{"-e", `(open "/etc/passwd")`}, want: "refused in the jail"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := runLisp(t, false, c.in, c.args...)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error about %q", err, c.want)
			}
		})
	}
}

func TestLispPromptLooksNamesUp(t *testing.T) {
	out, err := runLisp(t, false, ":doc mapcar\n:apropos string-upc\n")
	if err != nil || !strings.Contains(out, "(mapcar function list &rest more)") || !strings.Contains(out, "string-upcase (function)") {
		t.Errorf("printed %q, %v", out, err)
	}
}

func TestLispPromptCompletesNames(t *testing.T) {
	r, err := newLispRunner(&app{}, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := (&lispRunner{a: &app{out: &bytes.Buffer{}}, th: r.th}).eval("", "(defun a-name-of-my-own (x) x)"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		line    string
		pos     int
		want    string
		choices int
	}{
		{"(a-name-of", 10, "(a-name-of-my-own ", 1},
		{"(multiple-value-b", 17, "(multiple-value-bind ", 1},
		{"(string-upc x)", 11, "(string-upcase  x)", 1},
		{"(multiple-val", 13, "(multiple-value", 6},
		{"(cl-ppcre:regex-replace-a", 25, "(cl-ppcre:regex-replace-all ", 1},
		{"(no-such-thing", 14, "(no-such-thing", 0},
		{":ap", 3, ":apropos ", 1},
		{"(", 1, "(", 0},
	} {
		got, at, choices := r.complete(c.line, c.pos)
		if got != c.want || len(choices) != c.choices || at < c.pos {
			t.Errorf("%q: got %q at %d with %v, want %q and %d choices", c.line, got, at, choices, c.want, c.choices)
		}
	}
}
