package gate_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"passepartout/internal/gate"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

func TestATraceReadsBackVerdictForVerdict(t *testing.T) {
	f := facts()
	f.World = world{files: map[string]string{"/home/ada/work/net.sh": "curl https://other.org\nnc other.org 80\n"}}
	r := standard(t, policy()).Decide(action(t, "shell.run", "CMD", "bash net.sh"), f)
	printed, err := sexp.ReadPlist([]byte(r.Trace().String()), sexp.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if got := gate.VerdictsOf(printed); !slices.Equal(got, r.Verdicts()) {
		t.Errorf("read\n%v\nwant\n%v", got, r.Verdicts())
	}
	if v := verdictOf(t, r, "dispatcher/shell"); !strings.Contains(v.Bound, "net.sh=sha256:") {
		t.Errorf("the verdict is not bound to the script: %+v", v)
	}
	if got := r.Effects(); !slices.Contains(got, "execute") || !slices.Contains(got, "network") {
		t.Errorf("effects %v, want what the verb declares and what the commands do", got)
	}
	if r.Policy() != standard(t, policy()).Policy() || r.Policy().IsZero() {
		t.Error("the ruling does not name its policy")
	}
}

func TestReplacementsShowInTheTrace(t *testing.T) {
	shorten := fn{"shorten", 5, func(a proto.Action, _ gate.Facts) gate.Verdict {
		if len(a.Args().Text("TEXT")) < 5 {
			return gate.Pass()
		}
		b, err := a.Replace(a.Args().With("TEXT", sexp.String("hey")))
		if err != nil {
			t.Error(err)
		}
		return gate.Verdict{Decision: gate.Allow, Code: "test.shorten", Replace: &b}
	}}
	r := chain(t, shorten).Decide(action(t, "cli.message", "TEXT", "good morning"), facts())
	printed := gate.VerdictsOf(r.Trace())
	if r.Decision() != gate.Allow || len(printed) != 2 || printed[0].Round != 0 || printed[1].Round != 1 {
		t.Errorf("got %v %v", r.Decision(), printed)
	}
	p, err := r.Permit()
	if err != nil || p.Action().Args().Text("TEXT") != "hey" || len(p.Files()) != 0 {
		t.Errorf("the permit is for %v, %v", p.Action().Args(), err)
	}
}

func TestOpenQuestionsAreListedByDeadline(t *testing.T) {
	c := chain(t, says("hm", gate.Ask))
	var l gate.Ledger
	for i, text := range []string{"third", "first", "second"} {
		after := []time.Duration{3, 1, 1}[i] * time.Hour
		if _, err := l.Open(c.Decide(action(t, "cli.message", "TEXT", text), facts()), facts().Now.Add(after)); err != nil {
			t.Fatal(err)
		}
	}
	list := l.List()
	if len(list) != 3 || list[2].Ruling.Action().Args().Text("TEXT") != "third" || list[0].ID.String() > list[1].ID.String() {
		t.Errorf("listed %v", list)
	}
}

func TestWordsOfTheUserCoverNestedArguments(t *testing.T) {
	c := standard(t, policy())
	f := facts()
	f.Signal.Taint.Untrusted = true
	f.Said = []string{"Transfer 250 to grace, reference: summer rent."}
	for _, tt := range []struct {
		name  string
		input sexp.Value
		said  bool
	}{
		{"all of it", sexp.P(sexp.Keyword("TO"), "Grace", sexp.Keyword("AMOUNT"), 250, sexp.Keyword("NOTE"), "summer rent").List(), true},
		{"another amount", sexp.P(sexp.Keyword("TO"), "grace", sexp.Keyword("AMOUNT"), 2500).List(), false},
		{"another person", sexp.P(sexp.Keyword("TO"), "mallory", sexp.Keyword("AMOUNT"), 250).List(), false},
		{"words in another order", sexp.P(sexp.Keyword("NOTE"), "rent summer").List(), false},
		{"part of a word", sexp.P(sexp.Keyword("NOTE"), "sum").List(), false},
		{"something that cannot be said", sexp.P(sexp.Keyword("FLAG"), sexp.True).List(), false},
		{"nothing", sexp.P(sexp.Keyword("NOTE"), " ").List(), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, err := decode(t, owner, "tool.opaque-send", sexp.P(sexp.Keyword("INPUT"), tt.input))
			if err != nil {
				t.Fatal(err)
			}
			v := verdictOf(t, c.Decide(a, f), "flow")
			if (v.Decision == gate.Allow) != tt.said {
				t.Errorf("flow says %v %s", v.Decision, v.Code)
			}
		})
	}
}

func TestCredentialsAreFoundInEveryPartOfAnArgument(t *testing.T) {
	f := facts()
	f.World = world{marks: map[string]string{"hunter2": "password", "HUNTER2": "password"}}
	c := standard(t, policy())
	for name, args := range map[string]sexp.Value{
		"a string in a list": sexp.NewList(sexp.NewList(sexp.String("hunter2"))),
		"a symbol":           sexp.NewList(sexp.Sym("HUNTER2")),
		"a keyword":          sexp.NewList(sexp.Keyword("HUNTER2")),
		"a vector":           sexp.NewVector(sexp.String("hunter2")),
		"a dotted tail":      sexp.NewDotted([]sexp.Value{sexp.NewInt(1)}, sexp.String("hunter2")),
	} {
		a, err := decode(t, owner, "tool.opaque-send", sexp.P(sexp.Keyword("INPUT"), args))
		if err != nil {
			t.Fatal(err)
		}
		r := c.Decide(a, f)
		if r.Decision() != gate.Deny || !strings.Contains(codesOf(r), "exposure.credential") || strings.Contains(strings.ToLower(r.Action().Plist().String()), "hunter2") {
			t.Errorf("%s: %v %s about %s", name, r.Decision(), codesOf(r), r.Action().Args())
		}
	}
	argv, err := decode(t, owner, "shell.exec", sexp.P(sexp.Keyword("ARGV"), []string{"echo", "hunter2"}))
	if err != nil {
		t.Fatal(err)
	}
	if r := c.Decide(argv, f); r.Decision() != gate.Deny || strings.Contains(r.Action().Plist().String(), "hunter2") {
		t.Errorf("an argument vector: %v about %s", r.Decision(), r.Action().Args())
	}
}

func TestRulesSpeakAboutArgumentVectorsAndRoles(t *testing.T) {
	rule := gate.Rule{
		Name: "nightly", Decision: gate.Allow, Verb: "shell.exec", Role: proto.RoleJob, When: []gate.Condition{{Arg: "ARGV", Pattern: "ls ..."}},
		Lifts: []string{"origin.ask"}, Match: []string{`(:ARGV ("ls" "src"))`}, NoMatch: []string{`(:ARGV ("ls" "--color"))`, `(:ARGV ("cat" "x"))`}, Where: "r:1",
	}
	c := standard(t, withRules(t, rule))
	decide := func(by proto.Origin, argv ...string) gate.Decision {
		a, err := decode(t, by, "shell.exec", sexp.P(sexp.Keyword("ARGV"), argv))
		if err != nil {
			t.Fatal(err)
		}
		return c.Decide(a, factsBy(by)).Decision()
	}
	job := proto.Origin{Role: proto.RoleJob, Channel: "cron"}
	if got := decide(job, "ls", "src"); got != gate.Allow {
		t.Errorf("the job's listing is %v", got)
	}
	if got := decide(job, "ls", "-R"); got != gate.Ask {
		t.Errorf("with an option it is %v", got)
	}
	if got := decide(proto.Origin{Role: proto.RolePeer, Channel: "mcp"}, "ls", "src"); got != gate.Deny {
		t.Errorf("a peer's is %v", got)
	}
}

func TestSandboxLevelsHaveSafeNames(t *testing.T) {
	for s, want := range map[gate.Sandbox]string{gate.SandboxNone: "none", gate.SandboxPart: "part", gate.SandboxFull: "full", 9: "none"} {
		if s.String() != want {
			t.Errorf("%d is %q, want %q", s, s, want)
		}
	}
	for word, want := range map[string]gate.Sandbox{"full": gate.SandboxFull, "part": gate.SandboxPart, "none": gate.SandboxNone, "Full": gate.SandboxNone, "": gate.SandboxNone} {
		if got := gate.ParseSandbox(word); got != want {
			t.Errorf("%q is %v", word, got)
		}
	}
}

func TestARecordedPolicyThatIsDamagedIsRefused(t *testing.T) {
	good := withRules(t, parseRules(t, rulesOrg)...).Plist()
	one := func(v sexp.Value) sexp.Value { return sexp.NewList(v) }
	for name, bad := range map[string]sexp.Plist{
		"a permission without its place": good.With("PERMISSIONS", one(sexp.Strings([]string{"*", "allow"}))),
		"a permission of another level":  good.With("PERMISSIONS", one(sexp.Strings([]string{"*", "yes", "x"}))),
		"a rule that is no list":         good.With("RULES", one(sexp.Strings([]string{"x"}))),
		"a rule without a decision":      good.With("RULES", one(sexp.P(sexp.Keyword("NAME"), "x").List())),
		"a condition without a pattern": good.With("RULES", one(sexp.P(
			sexp.Keyword("DECISION"), "deny", sexp.Keyword("WHEN"), sexp.NewList(sexp.Strings([]string{"x"}))).List())),
	} {
		if _, err := gate.ParsePolicy(bad); err == nil {
			t.Errorf("%s: read", name)
		}
	}
}
