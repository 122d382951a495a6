package skill_test

import (
	"path/filepath"
	"strings"
	"testing"

	"passepartout/internal/sexp"
	"passepartout/internal/skill"
)

func TestBundledSkillsLoadAndPassTheirTests(t *testing.T) {
	l, err := skill.Open(skill.Options{Dir: filepath.Join(t.TempDir(), "none"), Grants: filepath.Join(t.TempDir(), "g"), Now: now, Bundled: skill.Bundled(), Memory: notes{}})
	if err != nil {
		t.Fatal(err)
	}
	set := l.Set()
	if len(set.Problems) > 0 {
		t.Fatal(set.Problems)
	}
	for _, k := range set.Skills {
		if k.Tests == 0 || !k.Bundled {
			t.Errorf("%s: %d tests, bundled %v", k.Name, k.Tests, k.Bundled)
		}
	}
	if len(set.Gates()) != 0 {
		t.Error("a bundled skill has a gate: what is permitted by default is for the compiled-in ones to say")
	}
	for _, name := range []string{"engineering-standards", "lisp-tools", "literate-programming", "memory-introspection", "org-tools", "self-improve"} {
		if _, ok := set.Find(name); !ok {
			t.Errorf("%s is not bundled", name)
		}
	}
	for _, name := range skill.Examples() {
		text, _ := skill.Example(name)
		if _, err := set.Draft(name, text); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []struct{ tool, code, want string }{
		{"validate-lisp", "(+ 1 2)", "well formed"}, {"list-definitions", "(defun a ()) (defmacro b ())", "defun a\ndefmacro b"}, {"list-definitions", "1", "nothing is defined"},
	} {
		if got, err := set.CallTool(c.tool, sexp.P(sexp.Keyword("CODE"), c.code)); err != nil || !strings.Contains(got.Text, c.want) {
			t.Errorf("%s %s: got %q, %v", c.tool, c.code, got.Text, err)
		}
	}
	if _, err := set.CallTool("validate-lisp", sexp.P(sexp.Keyword("CODE"), "(defun")); err == nil {
		t.Error("half a form was called well formed")
	}
	if _, err := set.CallTool("describe-object", sexp.P(sexp.Keyword("ID"), "n1")); err == nil {
		t.Error("the memex was read without a grant")
	}
}

func TestEveryTemplateIsAWorkingSkill(t *testing.T) {
	for _, kind := range skill.TemplateKinds() {
		text, err := skill.Template("my-"+kind, kind)
		if err != nil {
			t.Fatal(err)
		}
		l, _ := open(t, map[string]string{"my-" + kind + ".org": text})
		k, ok := l.Set().Find("my-" + kind)
		if !ok || k.Tests != 2 {
			t.Errorf("%s: %v", kind, l.Set().Problems)
		}
	}
	if _, err := skill.Template("x", "tol"); err == nil || !strings.Contains(err.Error(), "did you mean tool?") {
		t.Errorf("got %v", err)
	}
}
