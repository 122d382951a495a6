package skill

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"passepartout/internal/gate"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// TestGatesDecideWhatTheVerdictsOfSBCLMean takes the actions that can really be
// proposed through the gates of the skills, as the daemon does, and compares the
// decisions with what SBCL's answer to the same proposal means.
func TestGatesDecideWhatTheVerdictsOfSBCLMean(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of decisions: run by make test")
	}
	compareDecisions(t, filepath.Join("testdata", "ancestor"))
}

func (m memex) Real(string) (string, bool)   { return "", false }
func (m memex) Read(string) (string, bool)   { return "", false }
func (m memex) Glob(string) ([]string, bool) { return nil, false }

func (m memex) Know(what, text string) []string {
	key, value, some := strings.Cut(text, "=")
	switch {
	case what == KnowObject:
		if o, ok := m.Lookup(text); ok {
			return Known(slices.Values([]sexp.Plist{o}))
		}
	case what == KnowObjects && some:
		return Known(slices.Values(m.WithAttribute(key, value)))
	case what == KnowObjects:
		return Known(slices.Values(m.All()))
	}
	return nil
}

func compareDecisions(t *testing.T, dir string) {
	t.Helper()
	if _, err := exec.LookPath("sbcl"); err != nil {
		t.Skip("sbcl is not installed: there is nothing to compare with")
	}
	set := openAncestor(t, dir)
	cases := decisionCases(t, set)
	qs := make([]question, len(cases))
	for i, c := range cases {
		qs[i] = c.question
	}
	count := map[gate.Decision]int{}
	for i, answer := range askHost(t, dir, qs) {
		c := cases[i]
		want := meaning(answer, c.proposal)
		got := c.gate.Check(c.action, c.facts)
		if count[want]++; got.Decision != want {
			t.Errorf("%s\n  here %s %s %q\n  sbcl %s", c.question, got.Decision, got.Code, got.Reason, answer)
		}
	}
	t.Logf("%d decisions as in SBCL: %d allow, %d ask, %d deny", len(cases), count[gate.Allow], count[gate.Ask], count[gate.Deny])
}

type decisionCase struct {
	question
	gate     gate.Gate
	action   proto.Action
	facts    gate.Facts
	proposal string
}

func decisionCases(t *testing.T, set *Set) []decisionCase {
	t.Helper()
	text := func(k sexp.Keyword, m proto.Meaning) proto.Param {
		return proto.Param{Name: k, Type: proto.Text, Means: m}
	}
	v, err := proto.NewVocabulary(
		proto.Verb{Target: "cli", Name: "message", Effect: proto.Speak, Doc: "say", Params: []proto.Param{text("TEXT", proto.Outbound)}},
		proto.Verb{Target: "tui", Name: "message", Effect: proto.Speak, Doc: "say", Params: []proto.Param{text("TEXT", proto.Outbound), {Name: "TAGS", Type: proto.Texts}}},
		proto.Verb{Target: "shell", Name: "run", Tool: "shell", Effect: proto.Execute, Doc: "run", Params: []proto.Param{text("CMD", proto.Command)}},
		proto.Verb{Target: "tool", Name: "read-file", Tool: "read-file", Effect: proto.ReadLocal, Doc: "read", Params: []proto.Param{text("FILEPATH", proto.ReadPath)}},
		proto.Verb{Target: "tool", Name: "write-file", Tool: "write-file", Effect: proto.WriteLocal, Doc: "write", Params: []proto.Param{text("FILEPATH", proto.WritePath), text("CONTENT", proto.Content)}},
		proto.Verb{Target: "tool", Name: "delete-file", Tool: "delete-file", Effect: proto.WriteLocal, Doc: "remove", Params: []proto.Param{text("FILEPATH", proto.WritePath)}},
	)
	if err != nil {
		t.Fatal(err)
	}
	owner := proto.Origin{Role: proto.RoleOwner, Channel: "cli"}
	world := readMemex(t)
	var out []decisionCase
	for _, l := range linesOf(t, "actions.lisp") {
		p, err := sexp.ReadPlist([]byte(strings.ReplaceAll(strings.Replace(l, "(:CMD", "(:ACTION :RUN :CMD", 1), "⏎", "\n")), sexp.Limits{})
		if err != nil {
			continue // not even a list
		}
		a, err := v.Decode(p.List(), proto.Cause{Session: "s", Origin: owner})
		if err != nil {
			continue // the decoder refuses it before any gate
		}
		for _, sensor := range []sexp.Keyword{"USER-INPUT", "HEARTBEAT"} {
			sig := proto.Signal{Kind: proto.Event, Session: "s", Origin: owner, Body: sexp.P(sexp.Keyword("SENSOR"), sensor, sexp.Keyword("TEXT"), "what now?")}
			f := gate.Facts{Now: time.Unix(1_700_000_000, 0), Signal: sig, World: world}
			given := sexp.Print(proposal(a))
			both := sexp.Print(sexp.NewList(append([]sexp.Value{sexp.Keyword("CANDIDATE"), proposal(a)}, signalData(sig).Items()...)...))
			for _, k := range set.Skills {
				if k.Gate() == nil {
					continue
				}
				k.caps = gateCaps
				form := fmt.Sprintf("(list (passepartout::ask-trigger '%s) (passepartout::ask-gate '%s '%s))", both, given, both)
				out = append(out, decisionCase{question{k.Name, strings.ReplaceAll(form, "\n", "⏎")}, k.Gate(), a, f, given})
			}
		}
	}
	return out
}

// meaning is the decision behind an answer: whether the skill is concerned, and what
// it says then. What is no verdict at all refuses.
func meaning(answer, proposal string) gate.Decision {
	said, ok := strings.CutPrefix(answer, "= ((")
	concerned, said, _ := strings.Cut(said, " ")
	said, _, injected := strings.Cut(said, ")) & ")
	if !injected {
		said = strings.TrimSuffix(said, "))")
	}
	switch {
	case !ok:
		return gate.Deny
	case concerned == "NIL" || said == strings.ReplaceAll(proposal, "\n", `\n`):
		return gate.Allow
	case strings.HasPrefix(said, "(:TYPE :EVENT") && (strings.Contains(said, ":APPROVAL-REQUIRED") || strings.Contains(said, ":ASK-PERMISSION")):
		return gate.Ask
	}
	return gate.Deny
}
