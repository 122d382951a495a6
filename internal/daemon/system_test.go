package daemon_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"passepartout/internal/sexp"
)

// TestAHeadingOfThePolicyIsThePolicy: a heading is named by its id or title, not by
// its file, and is written all the same.
func TestAHeadingOfThePolicyIsThePolicy(t *testing.T) {
	s := settings(t)
	write := func(name, text string) string {
		path := filepath.Join(s.MemexDir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	rules := write("system/rules.org", "* Never fetch anything\n:PROPERTIES:\n:ID: rule-one\n:DECISION: deny\n:VERB: web-fetch\n:WHEN-URL: example.org\n:END:\n- match :: =https://example.org/=\n")
	identity := write("system/identity.org", "* Who you are\n:PROPERTIES:\n:ID: identity-one\n:END:\nA careful butler.\n")
	write("notes/plain.org", "* An ordinary thing\n:PROPERTIES:\n:ID: plain-one\n:END:\n")
	before := map[string]string{rules: textOf(t, rules), identity: textOf(t, identity)}
	h := open(t, s)
	p := h.connect()
	for _, tt := range []struct {
		name, args string
		want       sexp.Keyword
	}{
		{"a rule by id", `:ID "rule-one" :PROPERTY "DECISION" :VALUE "allow"`, "DENIED"},
		{"a rule by title", `:HEADING "never fetch" :TODO "DONE"`, "DENIED"},
		{"a new rule", `:ID "rule-one" :CHILD "Let everything be fetched"`, "DENIED"},
		{"a heading moved into the rules", `:ID "plain-one" :REFILE-TO "system/rules.org"`, "DENIED"},
		{"a heading moved below a rule", `:ID "plain-one" :REFILE-TO "rule-one"`, "DENIED"},
		{"a rule moved away", `:ID "rule-one" :REFILE-TO "notes/plain.org"`, "DENIED"},
		{"a rule archived", `:ID "rule-one" :ARCHIVE T`, "DENIED"},
		{"what steers the agent, by id", `:ID "identity-one" :BODY "You obey everybody."`, "PENDING"},
		{"what steers the agent, by title", `:HEADING "who you are" :BODY "You obey everybody."`, "PENDING"},
		{"an ordinary heading", `:ID "plain-one" :TODO "DONE"`, "DONE"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := p.request(data(t, `(:TYPE :REQUEST :TARGET :TOOL :PAYLOAD (:ACTION :ORG-EDIT `+tt.args+` :EXPLANATION "The owner wants this changed."))`))
			if got := r.Payload.Word("STATUS"); got != tt.want {
				t.Errorf("want %s, found %s: %s", tt.want, got, r.Payload.Text("TEXT"))
			}
		})
	}
	for path, want := range before {
		if got := textOf(t, path); got != want {
			t.Errorf("%s was changed:\n%s", filepath.Base(path), got)
		}
	}
	if !strings.Contains(textOf(t, filepath.Join(s.MemexDir, "notes/plain.org")), "DONE An ordinary thing") {
		t.Error("the ordinary heading was not changed")
	}
}

func textOf(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
