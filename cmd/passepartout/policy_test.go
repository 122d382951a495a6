package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"passepartout/internal/gate"
	"passepartout/internal/journal"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

const goodRules = `* No archive is unpacked
:PROPERTIES:
:DECISION: ask
:VERB: shell
:WHEN-CMD: tar ...
:END:
- match :: =tar xf a.tar=
- no-match :: =ls=
`

func TestPolicyTestRunsTheExamples(t *testing.T) {
	_, environ := memex(t, goodRules)
	out, talk, code := command(t, (*app).policyCommand, "", environ, "test")
	if code != exitOK || !strings.HasPrefix(out, "ok") || !strings.Contains(out, "rules.org:1") || !strings.Contains(out, "2 examples") {
		t.Errorf("exit %d:\n%s%s", code, out, talk)
	}
	bad := filepath.Join(t.TempDir(), "bad.org")
	if err := os.WriteFile(bad, []byte(goodRules+"- match :: =ls=\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, talk, code = command(t, (*app).policyCommand, "", environ, "test", bad)
	if code != exitFailed || !strings.Contains(out, "FAIL") || !strings.Contains(out, `the example "ls" does not match`) || !strings.Contains(talk, "1 of 1 rules") {
		t.Errorf("exit %d:\n%s%s", code, out, talk)
	}
	out, _, _ = command(t, (*app).policyCommand, "", environ, "test", "--json", bad)
	var rows []ruleResult
	if err := json.Unmarshal([]byte(out), &rows); err != nil || len(rows) != 1 || rows[0].Error == "" {
		t.Errorf("as JSON: %v %s", err, out)
	}
}

// writeJournal records rulings about commands under a policy, the way the daemon
// does.
func writeJournal(t *testing.T, dir string, p gate.Policy, commands ...string) {
	t.Helper()
	v, err := proto.NewVocabulary(checkVerbs()...)
	if err != nil {
		t.Fatal(err)
	}
	c, err := gate.Standard(p, v)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	j, _, err := journal.Open(dir, journal.Options{Now: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	put := func(e sexp.Plist) {
		if _, err := j.AppendLazy(e); err != nil {
			t.Fatal(err)
		}
	}
	put(sexp.P(sexp.Keyword("KIND"), sexp.Keyword("POLICY"), sexp.Keyword("DIGEST"), p.Digest().String(), sexp.Keyword("POLICY"), p.Plist()))
	for i, cmd := range commands {
		cause := proto.Cause{Signal: "s", Session: "main", Origin: proto.Origin{Role: proto.RoleOwner, Channel: "cli"}}
		a, err := v.Decode(payload("SHELL", "RUN", sexp.P(sexp.Keyword("CMD"), cmd)), cause)
		if err != nil {
			t.Fatal(err)
		}
		f := gate.Facts{Now: at.AddDate(0, 0, i), Signal: proto.Signal{ID: "s", Session: "main", Origin: cause.Origin, Kind: proto.Event}}
		r := c.Decide(a, f)
		put(sexp.P(sexp.Keyword("KIND"), sexp.Keyword("RULING"), sexp.Keyword("ID"), fmt.Sprintf("a-%d", i),
			sexp.Keyword("ACTION"), r.Action().Plist(), sexp.Keyword("TRACE"), r.Trace(), sexp.Keyword("FACTS"), r.Facts()))
	}
	put(sexp.P(sexp.Keyword("KIND"), sexp.Keyword("OUTCOME"), sexp.Keyword("RULING"), "a-0"))
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

func somePolicy() gate.Policy {
	return gate.Policy{
		Permissions: []gate.Permission{{Name: "*", Decision: gate.Allow, Rule: "test"}}, Home: "/home/ada", Cwd: "/home/ada/work",
		ReadRoots: []string{"/"}, WriteRoots: []string{"/home/ada/work"}, Sandbox: gate.SandboxFull,
	}
}

func TestPolicyReplayListsExactlyWhatChanges(t *testing.T) {
	_, environ := memex(t, "")
	dir := filepath.Join(t.TempDir(), "journal")
	writeJournal(t, dir, somePolicy(), "ls -l", "tar tf a.tar", "rm -rf ~", "ls src", "tar tf b.tar")

	out, talk, code := command(t, (*app).policyCommand, "", environ, "replay", "--journal", dir, "--verify")
	if code != exitOK || !strings.Contains(out, "5 rulings: 5 the same, 0 changed, 0 could not") {
		t.Fatalf("exit %d:\n%s%s", code, out, talk)
	}
	rules := filepath.Join(t.TempDir(), "new.org")
	if err := os.WriteFile(rules, []byte(goodRules), 0o600); err != nil {
		t.Fatal(err)
	}
	replay := func(args ...string) replayReport {
		t.Helper()
		out, talk, code := command(t, (*app).policyCommand, "", environ, append([]string{"replay", "--journal", dir, "--json", "--policy", rules}, args...)...)
		var r replayReport
		if err := json.Unmarshal([]byte(out), &r); err != nil || code != exitOK {
			t.Fatalf("exit %d, %v:\n%s%s", code, err, out, talk)
		}
		return r
	}
	r := replay()
	if len(r.Changed) != 2 || r.Changed[0].ID != "a-1" || r.Changed[1].ID != "a-4" || r.Changed[0].Old != "allow" || r.Changed[0].New != "ask" || r.Same != 3 {
		t.Errorf("changed %+v", r)
	}
	if r := replay("--since", "2026-11-03"); r.Rulings != 3 || len(r.Changed) != 1 {
		t.Errorf("since the third: %+v", r)
	}
	for _, args := range [][]string{{"--since", "soon"}, {"--verify", "--policy", rules}} {
		if _, _, code := command(t, (*app).policyCommand, "", environ, append([]string{"replay", "--journal", dir}, args...)...); code != exitUsage {
			t.Errorf("%v: exit %d", args, code)
		}
	}
}

func TestPolicyReplayTakesAPersonsAnswerAsItWas(t *testing.T) {
	_, environ := memex(t, "")
	dir, other := filepath.Join(t.TempDir(), "journal"), filepath.Join(t.TempDir(), "journal")
	writeJournal(t, dir, somePolicy(), "curl https://other.org")
	rewrite(t, dir, other, func(body sexp.Plist) sexp.Plist {
		if body.Word("KIND") != "RULING" {
			return body
		}
		trace := body.Sub("TRACE")
		v, _ := trace.Get("VERDICTS")
		no := sexp.P(sexp.Keyword("GATE"), "person", sexp.Keyword("DECISION"), sexp.Keyword("DENY"), sexp.Keyword("CODE"), "person.denied", sexp.Keyword("REASON"), "no")
		all := append(slices.Clone(v.(sexp.List).Items()), no.List())
		return body.With("TRACE", trace.With("DECISION", sexp.Keyword("DENY")).With("VERDICTS", sexp.NewList(all...)).List())
	})
	out, talk, code := command(t, (*app).policyCommand, "", environ, "replay", "--journal", other, "--verify")
	if code != exitOK || !strings.Contains(out, "1 rulings: 1 the same") {
		t.Errorf("exit %d:\n%s%s", code, out, talk)
	}
}

// rewrite copies a journal, with its entries changed.
func rewrite(t *testing.T, from, to string, change func(sexp.Plist) sexp.Plist) {
	t.Helper()
	j, _, err := journal.Open(to, journal.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range journal.Read(from) {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := j.AppendLazy(change(e.Body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestPolicyReplayNoticesARecordThatNoLongerHolds(t *testing.T) {
	_, environ := memex(t, "")
	dir := filepath.Join(t.TempDir(), "journal")
	p := somePolicy()
	writeJournal(t, dir, p, "ls")
	// The same journal, read as if its rulings had been made under a laxer policy:
	// decisions differ, and the run must fail.
	other := filepath.Join(t.TempDir(), "journal")
	rewrite(t, dir, other, func(body sexp.Plist) sexp.Plist {
		if body.Word("KIND") != "POLICY" {
			return body
		}
		p.Sandbox = gate.SandboxNone
		return body.With("POLICY", p.Plist().List())
	})
	out, talk, code := command(t, (*app).policyCommand, "", environ, "replay", "--journal", other, "--verify")
	if code != exitFailed || !strings.Contains(out, "allow → ask") || !strings.Contains(talk, "1 of 1 rulings") {
		t.Errorf("exit %d:\n%s%s", code, out, talk)
	}
}

func TestPolicyDiffNamesTheDifferences(t *testing.T) {
	_, environ := memex(t, "")
	dir := t.TempDir()
	p := somePolicy()
	write := func(name string, p gate.Policy) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(p.Plist().String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	old := write("old", p)
	p.Hosts, p.Sandbox = []string{"docs.example.org"}, gate.SandboxNone
	p.Permissions = []gate.Permission{{Name: "*", Decision: gate.Ask, Rule: "test"}}
	now := write("new", p)
	out, talk, code := command(t, (*app).policyCommand, "", environ, "diff", old, now)
	want := "- sandbox: full\n+ sandbox: none\n+ hosts: docs.example.org\n- permission *: allow\n+ permission *: ask\n"
	if code != exitOK || out != want {
		t.Errorf("exit %d %s:\n%s\nwant\n%s", code, talk, out, want)
	}
	if _, _, code := command(t, (*app).policyCommand, "", environ, "diff", old, filepath.Join(dir, "none")); code != exitFailed {
		t.Errorf("a policy that is nowhere: exit %d", code)
	}
}
