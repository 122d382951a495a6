package skill_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"passepartout/internal/gate"
	"passepartout/internal/sexp"
	"passepartout/internal/skill"
)

// pinnable is a skill with every part, which says its version in all of them.
func pinnable(version string) string {
	return lispFile(strings.ReplaceAll(`(defskill :one :capabilities '(:memory) :mandate "listen to VERSION"
  :deterministic (lambda (a c) (declare (ignore a c)) (reject "VERSION objects")))
(def-cognitive-tool :look "looks" () :body (lambda (args) (declare (ignore args)) (format nil "VERSION sees ~a" (org-object-id (lookup-object "n1")))))
(defhook :daily (event) "VERSION")`, "VERSION", version))
}

// TestAGrantedSkillRunsTheBytesThatWereGranted changes the file of a skill behind the
// user's back. What was granted goes on, through a restart too, and the change is told
// and not taken up until the user grants or revokes.
func TestAGrantedSkillRunsTheBytesThatWereGranted(t *testing.T) {
	l, dir := open(t, map[string]string{"one.org": pinnable("first")})
	file, grants := filepath.Join(dir, "skills", "one.org"), filepath.Join(dir, "state", "grants")
	reopen := func() *skill.Set {
		t.Helper()
		again, err := skill.Open(skill.Options{Dir: filepath.Dir(file), Grants: grants, Now: now, Memory: notes{}})
		if err != nil {
			t.Fatal(err)
		}
		return again.Set()
	}
	grant := func(caps ...string) {
		t.Helper()
		k, ok, err := l.OnDisk("one")
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		g, err := skill.LoadGrants(grants)
		if err == nil {
			err = g.Set(skill.Grant{Name: "one", Digest: k.Digest, Capabilities: caps, Source: k.Source()})
		}
		if err == nil {
			err = g.Save(grants)
		}
		if err != nil {
			t.Fatal(err)
		}
		l.Refresh()
	}
	is := func(set *skill.Set, version string, sees, problem bool) {
		t.Helper()
		k, ok := set.Find("one")
		if !ok {
			t.Fatalf("it is not there: %v", set.Problems)
		}
		if v := k.Gate().Check(say(t, "hi"), facts()); v.Decision != gate.Deny || v.Reason != version+" objects" {
			t.Errorf("its gate says %q, want %s", v.Reason, version)
		}
		got, err := set.CallTool("look", sexp.Plist{})
		if sees != (err == nil && got.Text == version+" sees n1") {
			t.Errorf("its tool says %q, %v", got.Text, err)
		}
		var all []string
		for _, p := range set.Problems {
			all = append(all, p.Error())
		}
		if text := strings.Join(all, "\n"); problem != strings.Contains(text, "changed since its capabilities were granted") {
			t.Errorf("problems: %q", text)
		}
		if told := strings.Join(set.Mandates(facts().Signal), "\n"); !k.Usage().Quarantined && told != "listen to "+version || k.Usage().Quarantined && told != "" {
			t.Errorf("it tells the model %q", told)
		}
	}
	grant("memory")
	is(l.Set(), "first", true, false)

	save(t, file, pinnable("second"))
	is(l.Refresh(), "first", true, true)
	is(reopen(), "first", true, true)
	save(t, file, "not even #+begin_src lisp\n(")
	is(l.Refresh(), "first", true, true)

	save(t, file, pinnable("second"))
	l.Refresh()
	grant("memory")
	is(l.Set(), "second", true, false)
	save(t, file, pinnable("third"))
	l.Refresh()
	grant() // revoked: the file is taken up, and may use nothing
	is(l.Set(), "third", false, false)
	if left, _ := filepath.Glob(filepath.Join(dir, "state", "granted", "*")); len(left) != 0 {
		t.Errorf("kept though nothing is granted: %v", left)
	}

	grant("memory")
	kept, _ := filepath.Glob(filepath.Join(dir, "state", "granted", "one-*.org"))
	if len(kept) != 1 {
		t.Fatalf("kept: %v", kept)
	}
	save(t, kept[0], pinnable("forged"))
	save(t, file, pinnable("fourth"))
	for _, set := range []*skill.Set{l.Refresh(), reopen()} {
		is(set, "fourth", false, true)
		k, _ := set.Find("one")
		if !k.Usage().Quarantined || len(k.Has) != 0 || len(set.Hooks()) != 0 || set.Problems[0].Kept {
			t.Errorf("not in quarantine: %+v, has %v, %d hooks", k.Usage(), k.Has, len(set.Hooks()))
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, ok := l.Refresh().Find("one"); ok {
		t.Error("a removed skill is still there")
	}
}

// TestInstallingAVersionTakesItUp installs over a skill that was granted something:
// this change was asked for, and needs no second question but the grant.
func TestInstallingAVersionTakesItUp(t *testing.T) {
	const body = `(defskill :one :capabilities '(:memory) :mandate "VERSION") (deftest works (is t))`
	l, dir := open(t, map[string]string{"one.org": lispFile(strings.Replace(body, "VERSION", "first", 1))})
	grants := filepath.Join(dir, "state", "grants")
	k, _ := l.Set().Find("one")
	g, err := skill.LoadGrants(grants)
	if err == nil {
		err = g.Set(skill.Grant{Name: "one", Digest: k.Digest, Capabilities: []string{"memory"}, Source: k.Source()})
	}
	if err == nil {
		err = g.Save(grants)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Install("one", []byte(lispFile(strings.Replace(body, "VERSION", "second", 1)))); err != nil {
		t.Fatal(err)
	}
	k, _ = l.Set().Find("one")
	if got := l.Set().Mandates(facts().Signal); len(got) != 1 || got[0] != "second" || len(k.Has) != 0 || len(l.Set().Problems) != 0 {
		t.Errorf("told %q, has %v, problems %v", got, k.Has, l.Set().Problems)
	}
}
