package skill

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"passepartout/internal/lisp"
	"passepartout/internal/sexp"
)

// ancestorSkills are the files whose verdicts are compared.
var ancestorSkills = []string{
	"bouncer", "credentials-vault", "gardener", "policy", "protocol-validator", "scribe", "shell-actuator", "tool-permissions", "utils-lisp", "utils-org",
}

// TestSkillsGiveTheVerdictsSBCLGives loads skill files into SBCL, over a harness of
// its own (testdata/verdicts/host.lisp), and into our jails, and asks both the same:
// every gate and trigger about every action in every context, and the functions of
// every file. The files are ours, written in the ancestor's style.
func TestSkillsGiveTheVerdictsSBCLGives(t *testing.T) {
	if testing.Short() {
		t.Skip("thousands of verdicts: run by make test")
	}
	compareVerdicts(t, filepath.Join("testdata", "ancestor"))
}

// TestTheAncestorsOwnFilesGiveTheVerdictsSBCLGives does the same with the public
// files of the ancestor, which are not part of this project: PASSEPARTOUT_ANCESTOR
// names a directory that holds them.
func TestTheAncestorsOwnFilesGiveTheVerdictsSBCLGives(t *testing.T) {
	dir := os.Getenv("PASSEPARTOUT_ANCESTOR")
	if dir == "" {
		t.Skip("PASSEPARTOUT_ANCESTOR names no directory with the ancestor's skills")
	}
	compareVerdicts(t, dir)
	compareDecisions(t, dir)
}

// A question is a form, and the skill in whose package it is evaluated.
type question struct{ skill, form string }

func (q question) String() string { return q.skill + " " + q.form }

func compareVerdicts(t *testing.T, dir string) {
	t.Helper()
	if _, err := exec.LookPath("sbcl"); err != nil {
		t.Skip("sbcl is not installed: there is nothing to compare with")
	}
	qs, verdicts := questions(t)
	want := askHost(t, dir, qs)
	if len(want) != len(qs) {
		t.Fatalf("sbcl gave %d answers to %d questions", len(want), len(qs))
	}
	set := openAncestor(t, dir)
	jails := map[string]*lisp.Image{}
	for _, k := range set.Skills {
		jails[k.Name] = withAskers(t, k)
	}
	differ, errs := 0, 0
	for i, q := range qs {
		got := askJail(t, jails[q.skill], q)
		a, b := plain(got), plain(want[i])
		if strings.HasPrefix(b, "!") {
			errs++
		}
		if a == b || excused(q, a, b) {
			continue
		}
		if differ++; differ <= 12 {
			t.Errorf("%s\n  here %s\n  sbcl %s", q, got, want[i])
		}
	}
	t.Logf("%d questions, %d of them verdicts on actions; SBCL answered %d with an error; %d differ", len(qs), verdicts, errs, differ)
}

func questions(t *testing.T) (qs []question, verdicts int) {
	t.Helper()
	actions, contexts := linesOf(t, "actions.lisp"), linesOf(t, "contexts.lisp")
	for _, s := range ancestorSkills {
		for _, c := range contexts {
			qs = append(qs, question{s, fmt.Sprintf("(passepartout::ask-trigger '%s)", c)})
			for _, a := range actions {
				qs = append(qs, question{s, fmt.Sprintf("(passepartout::ask-gate '%s '%s)", a, c)})
				verdicts++
			}
		}
	}
	for _, l := range linesOf(t, "calls.lisp") {
		name, form, _ := strings.Cut(l, " ")
		qs = append(qs, question{name, form})
	}
	return qs, verdicts
}

// linesOf is a file of testdata/verdicts without its comments.
func linesOf(t *testing.T, name string) []string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "verdicts", name))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(string(raw)), "\n"), func(l string) bool { return l == "" || l[0] == ';' })
}

func askHost(t *testing.T, dir string, qs []question) []string {
	t.Helper()
	var text strings.Builder
	for _, q := range qs {
		text.WriteString(q.String() + "\n")
	}
	file := filepath.Join(t.TempDir(), "questions")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join("testdata", "verdicts")
	var stderr bytes.Buffer
	cmd := exec.Command("sbcl", "--noinform", "--no-sysinit", "--no-userinit", "--disable-debugger", "--load", filepath.Join(data, "host.lisp"),
		"--eval", fmt.Sprintf("(host::main %q %q %q)", dir, filepath.Join(data, "memory.lisp"), file), "--quit")
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("sbcl: %v\n%s\n%s", err, stderr.Bytes(), out)
	}
	return strings.Split(strings.TrimRight(string(out), "\n"), "\n")
}

// openAncestor loads the files with a grant of everything they may use.
func openAncestor(t *testing.T, dir string) *Set {
	t.Helper()
	l, err := Open(Options{
		Dir: dir, Grants: filepath.Join(t.TempDir(), "grants"), Memory: readMemex(t),
		Now: func() time.Time { return time.Unix(1_700_000_000, 0) },
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range l.Set().Problems {
		t.Errorf("does not load: %v", p)
	}
	for _, n := range ancestorSkills {
		if _, ok := l.Set().Find(n); !ok {
			t.Errorf("%s is not in force", n)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	return l.Set()
}

// memex is the memory both sides see.
type memex []sexp.Plist

func readMemex(t *testing.T) memex {
	t.Helper()
	var m memex
	for _, l := range linesOf(t, "memory.lisp") {
		p, err := sexp.ReadPlist([]byte(l), sexp.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		m = append(m, p)
	}
	return m
}

func (m memex) Lookup(id string) (sexp.Plist, bool) {
	i := slices.IndexFunc(m, func(p sexp.Plist) bool { return p.Text("ID") == id })
	if i < 0 {
		return sexp.Plist{}, false
	}
	return m[i], true
}

func (m memex) WithAttribute(key, value string) []sexp.Plist {
	return slices.DeleteFunc(slices.Clone(m), func(p sexp.Plist) bool { return p.Sub("ATTRIBUTES").Text(sexp.Keyword(key)) != value })
}

func (m memex) All() []sexp.Plist { return m }

const askers = `(setq passepartout::*testing* t)
(defun passepartout::ask-gate (action context)
  (let ((gate (getf (first passepartout::*registered*) :deterministic)))
    (if gate (funcall gate action context) :no-gate)))
(defun passepartout::ask-trigger (context)
  (let ((trigger (getf (first passepartout::*registered*) :trigger)))
    (if trigger (and (funcall trigger context) t) :no-trigger)))
`

// conditions maps our finer condition types to those the host tells apart.
var conditions = map[string]string{
	"SIMPLE-TYPE-ERROR": "TYPE-ERROR", "READER-PACKAGE-ERROR": "READER-ERROR", "FILE-ERROR": "ERROR", "REGEX-SYNTAX-ERROR": "SIMPLE-ERROR",
}

// withAskers is the image of a skill in which the questions can be put.
func withAskers(t *testing.T, k *Skill) *lisp.Image {
	t.Helper()
	th := k.image.Thread(workBudget)
	if _, err := th.EvalString("", fmt.Sprintf("%s(in-package %q)", askers, packageOf(k.Name))); err != nil {
		t.Fatal(err)
	}
	img, err := th.Freeze()
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// askJail answers a question in the skill's own jail, as the host does in SBCL.
func askJail(t *testing.T, img *lisp.Image, q question) string {
	t.Helper()
	th := img.Thread(workBudget)
	vals, err := th.EvalString("", strings.ReplaceAll(q.form, "⏎", "\n"))
	var c *lisp.ConditionError
	switch {
	case errors.As(err, &c):
		if to, ok := conditions[c.Type]; ok {
			return "! " + to
		}
		return "! " + c.Type
	case err != nil:
		return "! " + err.Error()
	}
	out := "= " + shownValues(t, th, vals)
	if inj, err := th.EvalString("", "(reverse passepartout::*stimuli*)"); err != nil {
		t.Fatal(err)
	} else if !lisp.IsNil(inj[0]) {
		text := shownValues(t, th, inj)
		out += " & " + text[1:len(text)-1]
	}
	return strings.NewReplacer("\n", `\n`, "\r", `\r`).Replace(out)
}

func shownValues(t *testing.T, th *lisp.Thread, vals []lisp.Value) string {
	t.Helper()
	parts := make([]string, len(vals))
	for i, v := range vals {
		var err error
		if parts[i], err = th.Print(v); err != nil {
			t.Fatal(err)
		}
	}
	if len(parts) == 0 {
		return "NIL"
	}
	return "(" + strings.Join(parts, " ") + ")"
}

// What a reader says about text it cannot read is each Lisp's own.
var readerText = regexp.MustCompile(`(Reader Error: |Lisp syntax error in [^:]*: |\[BOUNCER\] )(?:[^"\\]|\\.)*?(\. The write was blocked|")`)

// undefinedText is how SBCL names a function that is not there: always with its package.
var undefinedText = regexp.MustCompile(`The function [A-Z0-9.-]+::?`)

func plain(answer string) string {
	return undefinedText.ReplaceAllString(readerText.ReplaceAllString(answer, "${1}…$2"), "The function ")
}

// excused reports a difference that is meant; docs/skills.md lists them.
func excused(q question, here, sbcl string) bool {
	return strings.Contains(q.form, "'(TYPE REQUEST") && verdict(here) == verdict(sbcl) // our proto-get also finds keys that are plain symbols
}

// verdict is the beginning of an answer: what it decides, without its words.
func verdict(answer string) string {
	head, _, _ := strings.Cut(answer, ":PAYLOAD")
	return head
}
