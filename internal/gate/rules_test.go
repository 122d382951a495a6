package gate_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"passepartout/internal/gate"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// rulesOrg is a rules file as a person would keep it.
const rulesOrg = `#+TITLE: Rules

Some prose that is no rule.

* Commands
** Let the forecast be fetched
:PROPERTIES:
:DECISION: allow
:VERB: web-fetch
:WHEN-URL: .forecast.example
:LIFTS: network.unlisted
:END:
The weather is public.
- match :: =https://api.forecast.example/today=
- no-match :: =https://forecast.example.evil.com/=

** No shouting at Grace
:PROPERTIES:
:DECISION: deny
:VERB: telegram.send
:WHEN-TO: grace
:WHEN-TEXT: *!!!*
:END:
- match :: =(:TO "grace" :TEXT "now!!!")=
- no-match :: =(:TO "grace" :TEXT "now, please")=

** Ask before anything is published
:PROPERTIES:
:DECISION: ask
:VERB: shell
:WHEN-CMD: npm publish ...
:END:
- match :: =npm publish --tag next=
- match :: =cd x && env A=1 npm publish=
- no-match :: =npm pack=

* COMMENT Not yet
:PROPERTIES:
:DECISION: maybe
:END:
`

func parseRules(t testing.TB, src string) []gate.Rule {
	t.Helper()
	rules, err := gate.ParseRules("rules.org", []byte(src), vocabulary(t))
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

func withRules(t testing.TB, rules ...gate.Rule) gate.Policy {
	t.Helper()
	p := policy()
	p.Rules = rules
	return p
}

func TestRulesAreReadFromOrg(t *testing.T) {
	rules := parseRules(t, rulesOrg)
	if len(rules) != 3 {
		t.Fatalf("%d rules, want 3", len(rules))
	}
	r := rules[0]
	if r.Name != "Let the forecast be fetched" || r.Decision != gate.Allow || r.Where != "rules.org:6" || len(r.Match) != 1 || r.NoMatch[0] != "https://forecast.example.evil.com/" {
		t.Errorf("read %+v", r)
	}
	c := standard(t, withRules(t, rules...))
	run(t, c, facts(), []step{
		{"an allow rule answers its question", "tool.web-fetch", []string{"URL", "https://api.forecast.example/today"}, gate.Allow, ""},
		{"and no other", "tool.web-fetch", []string{"URL", "https://u@api.forecast.example/"}, gate.Ask, "network.user"},
		{"a deny rule denies", "telegram.send", []string{"TO", "grace", "TEXT", "come!!!"}, gate.Deny, "rule.deny"},
		{"and leaves the rest alone", "telegram.send", []string{"TO", "grace", "TEXT", "come"}, gate.Allow, ""},
	})
	got := c.Decide(action(t, "tool.web-fetch", "URL", "https://api.forecast.example/today"), facts())
	if v := verdictOf(t, got, "dispatcher/network"); v.Code != "network.unlisted+rule" || v.Rule != "rules.org:6" {
		t.Errorf("the trace does not name the rule: %v", v)
	}
}

func TestARuleThatCannotBeMeantDoesNotLoad(t *testing.T) {
	rule := func(props, rest string) string {
		return "* A rule\n:PROPERTIES:\n" + props + ":END:\n" + rest
	}
	allow := func(lifts, when, rest string) string {
		return rule(":DECISION: allow\n:VERB: shell\n:WHEN-CMD: "+when+"\n:LIFTS: "+lifts+"\n", rest)
	}
	const examples = "- match :: =deploy now=\n- no-match :: =ls=\n"
	for name, tt := range map[string]struct{ src, want string }{
		"a wrong decision":           {rule(":DECISION: perhaps\n:VERB: shell\n", ""), `decision "perhaps": want allow, ask or deny`},
		"a wrong verb":               {rule(":DECISION: deny\n:VERB: shel\n", ""), `unknown verb "shel": did you mean "shell"?`},
		"a wrong property":           {rule(":DECISION: deny\n:VERB: shell\n:LIFT: x\n", ""), `unknown property "LIFT": did you mean "LIFTS"?`},
		"a wrong argument":           {rule(":DECISION: deny\n:VERB: shell\n:WHEN-COMMAND: x\n", ""), "shell.run takes no argument :COMMAND"},
		"a wrong role":               {rule(":DECISION: deny\n:VERB: shell\n:ROLE: god\n", ""), `role "god"`},
		"a deny that lifts":          {rule(":DECISION: deny\n:VERB: shell\n:LIFTS: permissions.ask\n", ""), "only an allow rule"},
		"an allow without condition": {rule(":DECISION: allow\n:VERB: shell\n:LIFTS: permissions.ask\n", examples), "at least one condition"},
		"an allow without codes":     {rule(":DECISION: allow\n:VERB: shell\n:WHEN-CMD: deploy now\n", examples), "names the codes"},
		"an allow without examples":  {allow("permissions.ask", "deploy now", ""), "an example of either kind"},
		"a code that does not exist": {allow("permission.ask", "deploy now", examples), "did you mean permissions.ask?"},
		"a refusal":                  {allow("self-build.own", "deploy now", examples), "a refusal stands"},
		"the floor by another name":  {allow("vault.literal", "deploy now", examples), "a refusal stands"},
		"untrusted text":             {allow("flow.untrusted", "deploy now", examples), "by a person each time"},
		"a dynamic command":          {allow("shell.dynamic", "deploy now", examples), "not known beforehand"},
		"a missing sandbox":          {allow("shell.no-sandbox", "deploy now", examples), "not known beforehand"},
		"a name twice":               {rule(":DECISION: deny\n:VERB: shell\n:WHEN-CMD: x\n", "") + rule(":DECISION: ask\n:VERB: shell\n:WHEN-CMD: x\n", ""), "given twice"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := gate.ParseRules("rules.org", []byte(tt.src), vocabulary(t))
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "rules.org:") {
				t.Errorf("got %v, want %q with file and line", err, tt.want)
			}
		})
	}
}

func TestExamplesAreRunWhenAPolicyLoads(t *testing.T) {
	allow := gate.Rule{
		Name: "deploy", Decision: gate.Allow, Verb: "shell.run", When: []gate.Condition{{Arg: "CMD", Pattern: "deploy *"}},
		Lifts: []string{"shell.unknown-command"}, Match: []string{"deploy now"}, NoMatch: []string{"deploy --force"}, Where: "rules.org:1",
	}
	for name, tt := range map[string]struct {
		change func(*gate.Rule)
		want   string
	}{
		"all hold":                           {func(*gate.Rule) {}, ""},
		"a match that does not":              {func(r *gate.Rule) { r.Match = append(r.Match, "deploy a b") }, `the example "deploy a b" does not match`},
		"a no-match that does":               {func(r *gate.Rule) { r.NoMatch = append(r.NoMatch, "deploy x") }, `the example "deploy x" matches and should not`},
		"an example that is no proposal":     {func(r *gate.Rule) { r.Match = []string{"(:CMD 12)"} }, "want a string"},
		"a rule about what no rule can lift": {func(r *gate.Rule) { r.When[0].Pattern, r.Match = "rm -rf /", []string{"rm -rf /"} }, "which no rule can lift"},
	} {
		t.Run(name, func(t *testing.T) {
			r := allow
			r.When = append([]gate.Condition(nil), allow.When...)
			tt.change(&r)
			_, err := gate.Standard(withRules(t, r), vocabulary(t))
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "rules.org:1: ")):
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestAnAllowRuleMatchesPlainCommandsOnly(t *testing.T) {
	rule := gate.Rule{
		Name: "deploy", Decision: gate.Allow, Verb: "shell.run", When: []gate.Condition{{Arg: "CMD", Pattern: "deploy --env test ..."}},
		Lifts: []string{"shell.unknown-command"}, Match: []string{"deploy --env test web"}, NoMatch: []string{"deploy web"}, Where: "r:1",
	}
	c := standard(t, withRules(t, rule))
	for cmd, want := range map[string]gate.Decision{
		"deploy --env test":                    gate.Allow,
		"deploy --env test web 'the api'":      gate.Allow,
		"deploy --env prod web":                gate.Ask,
		"deploy --env test --exec x":           gate.Ask,
		"deploy --env test ../../x":            gate.Ask,
		"deploy --env test $X":                 gate.Ask,
		"deploy --env test `id`":               gate.Ask,
		"deploy --env test; deploy":            gate.Ask,
		"deploy --env test > out":              gate.Ask,
		"deploy --env test & deploy other":     gate.Ask,
		"deploy --env test\ndeploy other":      gate.Ask,
		"deploy=x --env test":                  gate.Ask,
		"A=1 deploy --env test":                gate.Ask,
		"./deploy --env test":                  gate.Ask,
		"env deploy --env test":                gate.Ask,
		"deploy --env test *":                  gate.Ask,
		"deploy --env test web | deploy other": gate.Ask,
	} {
		if got := c.Decide(action(t, "shell.run", "CMD", cmd), facts()).Decision(); got > want {
			t.Errorf("%q is %v, want %v", cmd, got, want)
		}
	}
	if got := c.Decide(action(t, "shell.run", "CMD", "deploy --env test web"), facts()); got.Decision() != gate.Allow {
		t.Errorf("the rule lifts nothing: %v", got.Objections())
	}
	job := proto.Origin{Role: proto.RoleJob, Channel: "cron"}
	if got := c.Decide(actionBy(t, job, "shell.run", "CMD", "deploy --env test web"), factsBy(job)); got.Decision() != gate.Ask {
		t.Errorf("a rule of the owner's spoke for a job: %v", got.Decision())
	}
}

func TestADenyRuleSeesThroughWrappers(t *testing.T) {
	rule := gate.Rule{Name: "no npm", Decision: gate.Deny, Verb: "shell.run", When: []gate.Condition{{Arg: "CMD", Pattern: "npm publish ..."}}, Where: "r:1"}
	c := standard(t, withRules(t, rule))
	for _, cmd := range []string{
		"npm publish", "npm publish --tag x", "/usr/bin/npm publish", "n'p'm \"publish\"", "ls; npm publish", "(npm publish)", "echo $(npm publish)",
		"env A=1 npm publish", "sudo -u x npm publish", "bash -c 'npm publish'", "bash -lc 'cd x && npm publish'", "eval npm publish", "f() { npm publish; }; f",
		"xargs npm publish", "npm $CMD", "$PROGRAM publish",
	} {
		r := c.Decide(action(t, "shell.run", "CMD", cmd), facts())
		if v := verdictOf(t, r, "rules"); v.Decision != gate.Deny {
			t.Errorf("%q passed the rule", cmd)
		}
	}
	for _, cmd := range []string{"npm pack", "echo publish", "npm view publish"} {
		if v := verdictOf(t, c.Decide(action(t, "shell.run", "CMD", cmd), facts()), "rules"); v.Decision != gate.Allow {
			t.Errorf("%q is caught by the rule", cmd)
		}
	}
}

func TestPatternsMeanWhatTheySay(t *testing.T) {
	for _, tt := range []struct {
		pattern, text string
		path, want    bool
	}{
		{"/srv/*.csv", "/srv/a.csv", true, true},
		{"/srv/*.csv", "/srv/a/b.csv", true, false},
		{"/srv/**.csv", "/srv/a/b.csv", true, true},
		{"/srv/*/x/**/z", "/srv/a/x/b/c/z", true, true},
		{"/srv/*/x/**/z", "/srv/a/b/x/c/z", true, false},
		{"/srv/**/a/*b", "/srv/q/a/r/a/xb", true, true},
		{"/srv/**/a/*b", "/srv/q/a/r/a/x/b", true, false},
		{"/srv/a*", "/srv/a", true, true},
		{"/srv/a", "/srv/ab", true, false},
		{"*lamp*", "the lamp is broken", false, true},
		{"*lamp*", "the lam is broken", false, false},
		{"a*b*c", "a-b-b-c", false, true},
		{"a*b*c", "a-c-b", false, false},
		{"*a*a*a*a*a*a*a*a*a*b", strings.Repeat("a", 20_000), false, false},
	} {
		verb, arg := "tool.create-skill", sexp.Keyword("NAME")
		if tt.path {
			verb, arg = "tool.read-file", "FILEPATH"
		}
		rule := gate.Rule{Name: "r", Decision: gate.Deny, Verb: verb, When: []gate.Condition{{Arg: arg, Pattern: tt.pattern}}, Where: "r:1"}
		v := verdictOf(t, standard(t, withRules(t, rule)).Decide(action(t, verb, string(arg), tt.text), facts()), "rules")
		if (v.Code == "rule.deny") != tt.want {
			t.Errorf("%q on %.40q: %s", tt.pattern, tt.text, v.Code)
		}
	}
}

func TestARuleOnTrialChangesNothing(t *testing.T) {
	rules := parseRules(t, strings.Replace(rulesOrg, ":LIFTS:", ":SHADOW: t\n:LIFTS:", 1))
	r := standard(t, withRules(t, rules...)).Decide(action(t, "tool.web-fetch", "URL", "https://api.forecast.example/"), facts())
	if r.Decision() != gate.Ask || !strings.Contains(r.Objections()[0].Reason, "on trial, would allow it") {
		t.Errorf("got %v %v", r.Decision(), r.Objections())
	}
}

func TestAPathRuleGoesByTheRealPath(t *testing.T) {
	rule := gate.Rule{
		Name: "exports", Decision: gate.Allow, Verb: "write-file", When: []gate.Condition{{Arg: "FILEPATH", Pattern: "/srv/export/**.csv"}},
		Lifts: []string{"confine.outside"}, Match: []string{"/srv/export/a/b.csv"}, NoMatch: []string{"/srv/export/a.sh"}, Where: "r:1",
	}
	f := facts()
	f.World = world{real: map[string]string{"/srv/export/link.csv": "/home/ada/elsewhere.csv", "/srv/export/rc.csv": "/home/ada/.bashrc"}}
	run(t, standard(t, withRules(t, rule)), f, []step{
		{"inside", "tool.write-file", []string{"FILEPATH", "/srv/export/x.csv"}, gate.Allow, ""},
		{"up and out", "tool.write-file", []string{"FILEPATH", "/srv/export/../x.csv"}, gate.Ask, "confine.outside"},
		{"through a link", "tool.write-file", []string{"FILEPATH", "/srv/export/link.csv"}, gate.Ask, "confine.outside"},
		{"through a link to what is protected", "tool.write-file", []string{"FILEPATH", "/srv/export/rc.csv"}, gate.Deny, "confine.startup"},
	})
}

func TestAddingARuleNeverMakesAnAllowOutOfADeny(t *testing.T) {
	commands := []string{"rm -rf ~", "deploy now", "curl https://other.org/", "ls", "cat ~/.ssh/id_rsa", "bash -c 'rm -rf /'", "git push --force", "echo hi > /etc/passwd"}
	codes := []string{"permissions.ask", "network.unlisted", "shell.unknown-command", "shell.host", "shell.option", "confine.outside", "impact.recipient"}
	plain := standard(t, policy())
	rapid.Check(t, func(rt *rapid.T) {
		cmd := rapid.SampledFrom(commands).Draw(rt, "command")
		rule := gate.Rule{
			Name: "r", Decision: rapid.SampledFrom([]gate.Decision{gate.Allow, gate.Ask, gate.Deny}).Draw(rt, "decision"), Verb: "shell.run", Where: "r:1",
			When: []gate.Condition{{Arg: "CMD", Pattern: rapid.SampledFrom([]string{cmd, "*", "* ...", "..."}).Draw(rt, "pattern")}},
		}
		if rule.Decision == gate.Allow {
			rule.Lifts = rapid.SliceOfNDistinct(rapid.SampledFrom(codes), 1, len(codes), rapid.ID[string]).Draw(rt, "lifts")
			rule.Match, rule.NoMatch = []string{"ls"}, []string{"(:CMD \"a;b\")"}
		}
		p := policy()
		p.Rules = []gate.Rule{rule}
		c, err := gate.Standard(p, vocabulary(t))
		if err != nil {
			return // a rule that does not load changes nothing
		}
		a := action(t, "shell.run", "CMD", cmd)
		before, after := plain.Decide(a, facts()).Decision(), c.Decide(a, facts()).Decision()
		if before == gate.Deny && after != gate.Deny || rule.Decision != gate.Allow && after > before {
			rt.Fatalf("%q: %v became %v by %+v", cmd, before, after, rule)
		}
	})
}

func TestAPolicyComesBackFromItsRecord(t *testing.T) {
	p := withRules(t, parseRules(t, rulesOrg)...)
	p.Rules[0].Shadow, p.Rules[0].Role = true, proto.RoleJob
	got, err := gate.ParsePolicy(p.Plist())
	if err != nil {
		t.Fatal(err)
	}
	if got.Digest() != p.Digest() || fmt.Sprint(got) != fmt.Sprint(p) {
		t.Errorf("read back\n%+v\nwant\n%+v", got, p)
	}
	if len(p.Diff(got)) != 0 {
		t.Errorf("differences with itself: %v", p.Diff(got))
	}
	printed, err := sexp.ReadPlist([]byte(p.Plist().String()), sexp.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if q, err := gate.ParsePolicy(printed); err != nil || q.Digest() != p.Digest() {
		t.Errorf("a printed policy comes back as another: %v", err)
	}
	if _, err := gate.ParsePolicy(p.Plist().With("EXTRA", p.Plist().List())); err == nil {
		t.Error("a policy with an unknown part was read")
	}
}

func TestEveryPartOfAPolicyIsInItsDigest(t *testing.T) {
	base := withRules(t, parseRules(t, rulesOrg)...)
	for name, change := range map[string]func(*gate.Policy){
		"permissions": func(p *gate.Policy) { p.Permissions = nil }, "rules": func(p *gate.Policy) { p.Rules = p.Rules[1:] },
		"home": func(p *gate.Policy) { p.Home = "/x" }, "user": func(p *gate.Policy) { p.User = "x" }, "cwd": func(p *gate.Policy) { p.Cwd = "/x" },
		"read roots": func(p *gate.Policy) { p.ReadRoots = nil }, "write roots": func(p *gate.Policy) { p.WriteRoots = nil }, "own": func(p *gate.Policy) { p.Own = nil },
		"steering": func(p *gate.Policy) { p.Steering = nil }, "hosts": func(p *gate.Policy) { p.Hosts = nil }, "recipients": func(p *gate.Policy) { p.Recipients = nil },
		"channels": func(p *gate.Policy) { p.LocalChannels = nil }, "tags": func(p *gate.Policy) { p.PrivacyTags = nil }, "sandbox": func(p *gate.Policy) { p.Sandbox = gate.SandboxNone },
	} {
		p := base
		change(&p)
		if p.Digest() == base.Digest() {
			t.Errorf("%s: the digest did not change", name)
		}
		if len(base.Diff(p)) == 0 {
			t.Errorf("%s: no difference is listed", name)
		}
	}
}
