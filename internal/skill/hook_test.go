package skill_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"passepartout/internal/gate"
	"passepartout/internal/sexp"
	"passepartout/internal/skill"
)

const hooked = `
(defhook :todo-changed (event)
  (inject-stimulus (list :type :event :payload (list :sensor :user-input :text (format nil "~a is ~a" (getf event :title) (getf event :new)))))
  (propose '(:type :request :target :cli :payload (:action :message :text "done" :explanation "the task is done")))
  "noticed")
(register-hook :file-changed (lambda (event) (error "boom ~a" (getf event :path))))
(register-pre-reason-handler :weather (lambda (signal) (format nil "it is ~a" (getf (getf signal :payload) :text))))
(defun urgent-p (event) (equal (getf event :priority) "A"))
(deftest a-hook-injects (passepartout::call-hook 0 '(:title "x")) (is (= 2 (length passepartout::*stimuli*))))
(defskill :one :capabilities '(:signals))`

func grantAll(t *testing.T, l *skill.Library, dir, name string, caps ...string) {
	t.Helper()
	k, ok := l.Set().Find(name)
	if !ok {
		t.Fatal(l.Set().Problems)
	}
	path := filepath.Join(dir, "state", "grants")
	g, err := skill.LoadGrants(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(g.Set(skill.Grant{Name: name, Digest: k.Digest, Capabilities: caps}), g.Save(path)); err != nil {
		t.Fatal(err)
	}
	l.Refresh()
}

func TestHooksAreCalledAndOnlySignalWithAGrant(t *testing.T) {
	ctx := context.Background()
	l, dir := open(t, map[string]string{"one.org": lispFile(hooked)})
	event := sexp.P(sexp.Keyword("TITLE"), "Water the ferns", sexp.Keyword("NEW"), "DONE")
	hooks := l.Set().Hooks()
	if len(hooks) != 2 || hooks[0].Event != "todo-changed" || hooks[1].Event != "file-changed" {
		t.Fatalf("hooks %+v, problems %v", hooks, l.Set().Problems)
	}
	got, err := l.Set().Call(ctx, hooks[0], event)
	if err != nil || got.Text != "noticed" || !got.True || len(got.Signals) != 0 {
		t.Errorf("without a grant: %+v, %v", got, err)
	}
	grantAll(t, l, dir, "one", "signals")
	got, err = l.Set().Call(ctx, l.Set().Hooks()[0], event)
	if err != nil || len(got.Signals) != 2 || got.Signals[0].Sub("PAYLOAD").Text("TEXT") != "Water the ferns is DONE" || got.Signals[1].Word("TYPE") != "REQUEST" {
		t.Errorf("with a grant: %+v, %v", got, err)
	}
	handlers := l.Set().Handlers()
	if len(handlers) != 1 || handlers[0].Event != "weather" {
		t.Fatalf("handlers %+v", handlers)
	}
	got, err = l.Set().Call(ctx, handlers[0], sexp.P(sexp.Keyword("PAYLOAD"), sexp.P(sexp.Keyword("TEXT"), "fine")))
	if err != nil || got.Text != "it is fine" {
		t.Errorf("the handler: %+v, %v", got, err)
	}
}

func TestAJobCanAskAFunctionOfASkill(t *testing.T) {
	l, _ := open(t, map[string]string{"one.org": lispFile(hooked)})
	h, err := l.Set().Function("one/urgent-p")
	if err != nil {
		t.Fatal(err)
	}
	for priority, want := range map[string]bool{"A": true, "C": false} {
		if got, err := l.Set().Call(context.Background(), h, sexp.P(sexp.Keyword("PRIORITY"), priority)); err != nil || got.True != want {
			t.Errorf("priority %s: %+v, %v", priority, got, err)
		}
	}
	for _, ref := range []string{"one", "two/f", "one/"} {
		if _, err := l.Set().Function(ref); err == nil {
			t.Errorf("%q names a function", ref)
		}
	}
	for _, ref := range []string{"one/nothing", "one/eval"} {
		h, err := l.Set().Function(ref)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Set().Call(context.Background(), h, sexp.Plist{}); err == nil {
			t.Errorf("%s was called", ref)
		}
	}
}

func TestAHookThatFailsOftenIsNotAskedAgain(t *testing.T) {
	l, _ := open(t, map[string]string{"one.org": lispFile(hooked)})
	h := l.Set().Hooks()[1]
	for range 3 {
		if _, err := l.Set().Call(context.Background(), h, sexp.P(sexp.Keyword("PATH"), "a.org")); err == nil || !strings.Contains(err.Error(), "boom a.org") {
			t.Fatalf("got %v", err)
		}
	}
	if _, err := l.Set().Call(context.Background(), h, sexp.Plist{}); !errors.Is(err, skill.ErrQuarantined) {
		t.Errorf("got %v", err)
	}
	if n := len(l.Set().Hooks()); n != 0 {
		t.Errorf("%d hooks of a skill in quarantine are there", n)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := l.Set().Call(ctx, h, sexp.Plist{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestTheAncestorsHabitsAreUnderstood loads what older skills do: put themselves into
// the harness's package, use its older words, name libraries, and hold lines that
// look like headings in their texts.
func TestTheAncestorsHabitsAreUnderstood(t *testing.T) {
	file := "#+TITLE: old\n#+begin_src lisp :tangle ../src/old.lisp\n" + `(in-package :org-agent)
(defun old-report (x) (format nil "* Report
** Body
#+begin_example
~a
#+end_example" x))
(defun old-unused () (bt:make-thread (lambda () (dex:get (asdf:no-such :x)))))
(defun old-save () (with-open-file (out (uiop:merge-pathnames* "a" (asdf:system-source-directory :x)) :direction :output) (print 1 out)))
(defun helper () (gethash "root" *memory*))
` + "#+end_src\n* Registration\n#+begin_src lisp\n" + `(in-package :org-agent)
(defskill :skill-old :priority 900 :neuro nil :trigger (lambda (c) (eq (getf (getf c :candidate) :target) :cli))
  :symbolic (lambda (action context) (declare (ignore context)) (validate-communication-protocol-schema action) (list :type :log :payload (list :text (old-report 1)))))
` + "#+end_src\n#+begin_src lisp :tangle ../tests/old.lisp\n" + `(defpackage :old-tests (:use :cl :fiveam :opencortex) (:export #:old-suite))
(in-package :old-tests)
(eval-when (:compile-toplevel :load-toplevel :execute) (ql:quickload :fiveam :silent t))
(def-suite old-suite :description "x")
(test reports "doc" (is (search "** Body" (old-report 2))) (is (null (helper))) (is (stringp (uuid:make-v4-uuid))))
(test refuses (signals error (old-unused)) (signals error (old-save)))
` + "#+end_src\n"
	l, _ := open(t, map[string]string{"org-skill-old.org": file})
	k, ok := l.Set().Find("old")
	if !ok {
		t.Fatal(l.Set().Problems)
	}
	if k.Tests != 2 || k.Priority != skill.MaxPriority {
		t.Errorf("%d tests, priority %d", k.Tests, k.Priority)
	}
	if v := k.Gate().Check(say(t, "hi"), facts()); v.Decision != gate.Deny || !strings.Contains(v.Reason, "** Body") {
		t.Errorf("got %+v", v)
	}
	read := action(t, `(:TYPE :REQUEST :TARGET :TOOL :PAYLOAD (:ACTION :CALL :TOOL "read-file" :ARGS (:PATH "a") :EXPLANATION "to look at it"))`)
	if v := k.Gate().Check(read, facts()); v.Decision != gate.Allow {
		t.Errorf("its trigger does not see the candidate: %+v", v)
	}
}

func TestAToolsParametersCannotBreakTheVocabulary(t *testing.T) {
	l, _ := open(t, map[string]string{
		"good.org": lispFile(`(def-cognitive-tool :permit "Permits." ((:action :type :keyword :default :get) (tool :required t))
  :body (lambda (args) (format nil "~s ~s" (getf args :action) (getf args :tool))))`),
		"bad.org": lispFile(`(def-cognitive-tool :bad "Bad." ((x) (x)) :body (lambda (args) args))`),
	})
	tools := l.Set().Tools()
	if len(tools) == 0 || tools[len(tools)-1].Name != "permit" || tools[len(tools)-1].Params[0].Name != "THE-ACTION" {
		t.Fatalf("tools %+v, problems %v", tools, l.Set().Problems)
	}
	for args, want := range map[*sexp.Plist]string{
		ptr(sexp.P(sexp.Keyword("THE-TOOL"), "shell")):                                 `:GET "shell"`,
		ptr(sexp.P(sexp.Keyword("THE-ACTION"), ":set", sexp.Keyword("THE-TOOL"), "x")): `:SET "x"`,
	} {
		if got, err := l.Set().CallTool("permit", *args); err != nil || got.Text != want {
			t.Errorf("%s: got %q, %v, want %q", args, got.Text, err, want)
		}
	}
}

func ptr[T any](v T) *T { return &v }

// TestAGuideCanOnlyNarrow reads guides that name tools: those that are not there are
// not promised, and naming one permits nothing.
func TestAGuideCanOnlyNarrow(t *testing.T) {
	there := []string{"read-file", "shell", "capture"}
	for _, c := range []struct{ tools, want string }{
		{"", "The text."},
		{"allowed-tools: Read-File, Bash(git:*), capture, capture\n", "The text.\n\n[Until your answer use only these tools: read-file, shell(git:*), capture. What they may do is decided as always.]"},
		{"allowed-tools: [rm, sudo]\n", "The text.\n\n[Until your answer use no tools: none of those this guide names is here.]"},
	} {
		l, _ := open(t, map[string]string{"careful/SKILL.md": "---\nname: careful\ndescription: how to be careful\n" + c.tools + "---\nThe text.\n"})
		g, err := l.Set().Guide("careful")
		if err != nil {
			t.Fatal(err, l.Set().Problems)
		}
		if got := g.Told(there); got != c.want {
			t.Errorf("%q: told %q", c.tools, got)
		}
		if n := len(l.Set().Gates()) + len(l.Set().Tools()); n != 0 {
			t.Errorf("a guide brought %d gates or tools", n)
		}
	}
}

// TestIdiomsOfRealFilesLoad loads a file that does what real ones do at their top: make a
// package, require systems, declaim, export, name libraries in functions nobody calls.
func TestIdiomsOfRealFilesLoad(t *testing.T) {
	l, err := skill.Open(skill.Options{Dir: "testdata/idioms", Grants: filepath.Join(t.TempDir(), "grants"), Now: now})
	if err != nil {
		t.Fatal(err)
	}
	k, ok := l.Set().Find("idioms")
	if !ok || len(l.Set().Problems) != 1 || !strings.Contains(l.Set().Problems[0].Error(), "it is in force without") {
		t.Fatalf("problems %v", l.Set().Problems)
	}
	if v := k.Gate().Check(say(t, "hi"), facts()); v.Decision != gate.Allow {
		t.Errorf("got %+v", v)
	}
	if got := l.Set().Mandates(facts().Signal); len(got) != 1 || got[0] != "be kind" {
		t.Errorf("told %q", got)
	}
	if got, err := l.Set().CallTool("idioms-tool", sexp.P(sexp.Keyword("TEXT"), "x")); err != nil || got.Text != "x" {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, c := range []struct{ form, want string }{
		{`(idioms-twice 21)`, "42"},
		{`(idioms-regs "a=b")`, `("a" "b")`},
		{`(idioms-fmt t)`, "\"yes 00042          r|K abc  1, 2 three\n\""},
		{`(idioms-net "http://x")`, ":FAILED"},
		{`(handler-case (idioms-path) (error () :refused))`, ":REFUSED"},
		{`(idioms-run '(:a 1) nil)`, "(:A 1)"},
		{`(funcall (gethash "a" *idioms-table*) 4)`, "8"},
		{`(idiom-value (make-idiom "n" 7))`, "7"},
		{`(princ-to-string (make-instance 'idiom-object :name "n"))`, `"#<IDIOM-OBJECT n>"`},
		{`(handler-case (error 'idiom-error :text "t") (error (c) (princ-to-string c)))`, `"idiom: t"`},
		{`(handler-case (idioms-later) (undefined-function () :undefined))`, ":UNDEFINED"},
		{`(handler-case (idioms-exit) (error () :refused))`, ":REFUSED"},
		{`(handler-case (idioms-time) (error () :refused))`, ":REFUSED"},
		{`(list (idioms-count) (idioms-count))`, "(1 2)"},
	} {
		got, err := l.Set().Eval(context.Background(), "idioms", "(in-package :opencortex.skills.idioms) "+c.form)
		if err != nil || len(got.Values) != 1 || got.Values[0] != c.want {
			t.Errorf("%s: got %q, %v, want %q", c.form, got.Values, err, c.want)
		}
	}
}
