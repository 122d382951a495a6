package gate_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"passepartout/internal/gate"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

var update = flag.Bool("update", false, "write the generated part of docs/gates.md")

// An example is an action the guide shows, with the answer it claims.
type example struct {
	say  string // as a person would put it
	verb string
	args []string
	code string // "pass" or what the gate says
	with func(*moment)
}

// A moment is what else an example depends on.
type moment struct {
	gate.Facts
	policy gate.Policy
	why    string // the explanation the action comes with
}

func untrusted(m *moment) { m.Signal.Taint.Untrusted = true }
func private(m *moment)   { m.Signal.Taint.Private = true }
func cron(m *moment)      { m.Signal.Origin = proto.Origin{Role: proto.RoleJob, Channel: "cron"} }
func deep(m *moment)      { m.Signal.Depth = proto.MaxDepth + 1 }

func table(d gate.Decision) func(*moment) {
	return func(m *moment) { m.policy.Permissions = []gate.Permission{{Name: "shell", Decision: d, Rule: "test"}} }
}

func rule(d gate.Decision, verb string, arg sexp.Keyword, pattern string) func(*moment) {
	return func(m *moment) {
		m.policy.Rules = []gate.Rule{{Name: "one of mine", Decision: d, Verb: verb, When: []gate.Condition{{Arg: arg, Pattern: pattern}}}}
	}
}

// guide explains every gate of the standard stack, in the order they run.
var guide = []struct {
	gate, prose string
	examples    []example
}{
	{"origin", "Who may ask for what. The owner may ask for everything, a job the user scheduled for little without a question, a guest or a linked program for less, an unknown origin for nothing.", []example{
		{"the owner runs `ls`", "shell.run", []string{"CMD", "ls"}, "pass", nil},
		{"a scheduled job runs `ls`", "shell.run", []string{"CMD", "ls"}, "origin.ask", cron},
		{"a scheduled job writes a skill", "tool.create-skill", []string{"NAME", "x"}, "origin.denied", cron},
	}},
	{"permissions", "The table of tools in `system/permissions.org`: allow, ask or deny; a tool that is not in it asks. An allow only means that this gate has no objection.", []example{
		{"a tool the table allows", "cli.message", []string{"TEXT", "hello"}, "pass", nil},
		{"a tool that is not in the table", "shell.run", []string{"CMD", "ls"}, "permissions.ask", func(m *moment) { m.policy.Permissions = nil }},
		{"`shell` where the table says ask", "shell.run", []string{"CMD", "ls"}, "permissions.ask", table(gate.Ask)},
		{"`shell` where the table says deny", "shell.run", []string{"CMD", "ls"}, "permissions.deny", table(gate.Deny)},
	}},
	{"vault", "No action is given a credential. `vault:NAME` where a program or a server would see it is refused, and so is the value itself wherever it stands. Which host is shown which entry is said in the settings (`PASSEPARTOUT_WEB_CREDENTIALS`).", []example{
		{"a header without a credential", "tool.web-fetch", []string{"URL", "https://docs.example.org/", "HEADER", "Accept: text/html"}, "pass", nil},
		{"a header with `vault:weather`", "tool.web-fetch", []string{"URL", "https://docs.example.org/", "HEADER", "X-Key: vault:weather"}, "vault.reference", func(m *moment) {
			m.World = world{know: map[string][]string{"vault weather": {"weather"}}}
		}},
		{"a message to Grace with `vault:weather`", "telegram.send", []string{"TO", "grace", "TEXT", "use vault:weather"}, "vault.leaves", nil},
	}},
	{"guide", "Holds a turn that follows a guide, an Agent Skill with `allowed-tools`, to the tools it names, until the turn ends. Naming a tool permits nothing.", []example{
		{"a command, when no guide is followed", "shell.run", []string{"CMD", "ls"}, "pass", nil},
		{"a command, when the guide names `read-file` only", "shell.run", []string{"CMD", "ls"}, "guide.outside", func(m *moment) { m.Only = []string{"read-file"} }},
		{"`git log`, when the guide names `Bash(git:*)`", "shell.run", []string{"CMD", "git log"}, "pass", func(m *moment) { m.Only = []string{"shell(git:*)"} }},
	}},
	{"rules", "The user's own rules in `system/rules.org` that object. Rules that allow are no gate: they answer questions, as said above.", []example{
		{"anything, without rules", "cli.message", []string{"TEXT", "hello"}, "pass", nil},
		{"`git push`, under a rule that asks about `git push ...`", "shell.run", []string{"CMD", "git push"}, "rule.ask", rule(gate.Ask, "shell.run", "CMD", "git push ...")},
		{"`env git push`, under a rule that denies it", "shell.run", []string{"CMD", "env git push"}, "rule.deny", rule(gate.Deny, "shell.run", "CMD", "git push ...")},
		{"`git status`, under the same rule", "shell.run", []string{"CMD", "git status"}, "pass", rule(gate.Deny, "shell.run", "CMD", "git push ...")},
	}},
	{"policy", "Every action says why, in more than ten characters. The explanation is for the person who reads the trace; it carries no authority.", []example{
		{"an action with a reason", "cli.message", []string{"TEXT", "hello"}, "pass", nil},
		{"an action that says only `because`", "cli.message", []string{"TEXT", "hello"}, "policy.explanation", func(m *moment) { m.why = "because" }},
	}},
	{"dispatcher/exposure", "Content exposure. No credential may stand in an action, in any encoding the scanner knows, nor cut into several arguments; and a text must show its reader what it says.", []example{
		{"a message", "cli.message", []string{"TEXT", "the kettle is on"}, "pass", nil},
		{"a message with a token in it", "cli.message", []string{"TEXT", "it is hunter2"}, "exposure.credential", func(m *moment) { m.World = world{marks: map[string]string{"hunter2": "password"}} }},
		{"a message with reversed text", "cli.message", []string{"TEXT", "abc\u202edef"}, "exposure.hidden-text", nil},
	}},
	{"dispatcher/impact", "High impact, judged by effect and not by name. What speaks to somebody new, changes the agent, or cannot be judged beforehand needs a person.", []example{
		{"a message to Grace, who is on the list", "telegram.send", []string{"TO", "grace", "TEXT", "hi"}, "pass", nil},
		{"a message to somebody new", "telegram.send", []string{"TO", "mallory", "TEXT", "hi"}, "impact.recipient", nil},
		{"a new skill", "tool.create-skill", []string{"NAME", "x"}, "impact.rewrite", nil},
	}},
	{"dispatcher/lisp", "Lisp validity. Lisp that is stored or evaluated must read to its end, with nothing evaluated while reading.", []example{
		{"writing `(defun f (x) x)` to a.lisp", "tool.write-file", []string{"FILEPATH", "a.lisp", "CONTENT", "(defun f (x) x)"}, "pass", nil},
		{"writing `(defun f (x)` to a.lisp", "tool.write-file", []string{"FILEPATH", "a.lisp", "CONTENT", "(defun f (x)"}, "lisp.unreadable", nil},
	}},
	{"dispatcher/network", "Network. Every host, in any spelling: on the list it passes, this machine's own network and metadata services are refused, the rest asks. Pictures in messages count, because they are fetched without a click.", []example{
		{"fetching from a listed host", "tool.web-fetch", []string{"URL", "https://docs.example.org/"}, "pass", nil},
		{"fetching from another host", "tool.web-fetch", []string{"URL", "https://other.org/"}, "network.unlisted", nil},
		{"fetching `http://2852039166/`", "tool.web-fetch", []string{"URL", "http://2852039166/"}, "network.metadata", nil},
		{"a message with a picture from elsewhere", "cli.message", []string{"TEXT", "![x](https://evil.com/x.png)"}, "network.embedded", nil},
	}},
	{"dispatcher/privacy-tags", "Privacy tags. Headings and files tagged private are for the owner. The tags come from the Org tree, inherited ones included, never from the proposal.", []example{
		{"showing the owner a private heading", "tool.show-node", []string{"ID", "n1"}, "pass", func(m *moment) { m.World = world{know: map[string][]string{"tags n1": {"@personal"}}} }},
		{"sending a private heading to Grace", "tool.share-node", []string{"ID", "n1", "TO", "grace"}, "privacy.tag", func(m *moment) { m.World = world{know: map[string][]string{"tags n1": {"@personal"}}} }},
	}},
	{"dispatcher/privacy-text", "Privacy text. A text about to leave the machine that still carries a privacy tag was copied out of a private note.", []example{
		{"sending Grace `* Recipe :kitchen:`", "telegram.send", []string{"TO", "grace", "TEXT", "* Recipe :kitchen:"}, "pass", nil},
		{"sending Grace `* Diary :@personal:`", "telegram.send", []string{"TO", "grace", "TEXT", "* Diary :@personal:"}, "privacy.text", nil},
	}},
	{"dispatcher/repl-lint", "REPL lint. It warns and never objects.", []example{
		{"a note in prose", "tool.write-file", []string{"FILEPATH", "a.org", "CONTENT", "* A note"}, "pass", nil},
		{"a note that defines a function", "tool.write-file", []string{"FILEPATH", "a.org", "CONTENT", "(defun f () 1)"}, "repl-lint.untried", nil},
	}},
	{"dispatcher/secret-path", "Secret paths. Files that hold credentials or private histories are neither read nor written, whatever the path is spelt like and whether or not they exist.", []example{
		{"reading `notes.txt`", "tool.read-file", []string{"FILEPATH", "notes.txt"}, "pass", nil},
		{"reading `~ada/.ssh/id_rsa`", "tool.read-file", []string{"FILEPATH", "~ada/.ssh/id_rsa"}, "secret-path.read", nil},
		{"writing `~/.netrc`", "tool.write-file", []string{"FILEPATH", "~/.netrc"}, "secret-path.write", nil},
	}},
	{"dispatcher/self-build", "Self-build. The journal, the policy and the vault are out of reach; what steers this agent asks; what steers another agent or an editor is refused.", []example{
		{"writing `src/main.go`", "tool.write-file", []string{"FILEPATH", "src/main.go"}, "pass", nil},
		{"writing into the directory of skills", "tool.write-file", []string{"FILEPATH", "~/memex/skills/tea.org"}, "self-build.steering", nil},
		{"writing `.claude/settings.json`", "tool.write-file", []string{"FILEPATH", ".claude/settings.json"}, "self-build.agent", nil},
		{"writing a rule", "tool.write-file", []string{"FILEPATH", "~/memex/system/rules.org"}, "self-build.own", nil},
	}},
	{"dispatcher/shell", "Shell safety. A command line is parsed as Bash would parse it and judged by what every program in it would do; package `shell` lists its codes. What is not known beforehand asks, what does not parse is refused.", []example{
		{"`ls -l`", "shell.run", []string{"CMD", "ls -l"}, "pass", nil},
		{"`curl https://other.org/`", "shell.run", []string{"CMD", "curl https://other.org/"}, "shell.host", nil},
		{"`ls $(` (does not parse)", "shell.run", []string{"CMD", "ls $("}, "shell.unparsed", nil},
		{"`r''m -r''f ~`", "shell.run", []string{"CMD", "r''m -r''f ~"}, "shell.delete-home", nil},
	}},
	{"dispatcher/vault", "Vault secrets. No value of the vault may stand in an action.", []example{
		{"a message without one", "cli.message", []string{"TEXT", "open the door"}, "pass", nil},
		{"a message with the value of `vault:door`", "cli.message", []string{"TEXT", "s3same"}, "vault-value.found", func(m *moment) { m.World = world{marks: map[string]string{"s3same": "vault:door"}} }},
	}},
	{"flow", "Where a session's text came from. After text from outside, a sink needs a person, unless every argument stands in the user's own words. What took in private text tells no stranger.", []example{
		{"after reading a web page, `touch a`", "shell.run", []string{"CMD", "touch a"}, "flow.untrusted", untrusted},
		{"after reading a web page, `ls -l`", "shell.run", []string{"CMD", "ls -l"}, "pass", untrusted},
		{"after reading the diary, a message to a stranger", "telegram.send", []string{"TO", "mallory", "TEXT", "hi"}, "flow.private", private},
	}},
	{"confine", "Paths stay inside the roots, by the name they really reach, links followed.", []example{
		{"writing `src/new.go`", "tool.write-file", []string{"FILEPATH", "src/new.go"}, "pass", nil},
		{"writing `/tmp/x`", "tool.write-file", []string{"FILEPATH", "/tmp/x"}, "confine.outside", nil},
		{"writing `~/.bashrc`", "tool.write-file", []string{"FILEPATH", "~/.bashrc"}, "confine.startup", nil},
	}},
	{"validator", "The form of the action once more, behind all other gates: the decoder should have refused anything it objects to.", []example{
		{"a well-formed action", "cli.message", []string{"TEXT", "hello"}, "pass", nil},
		{"the eleventh action in a chain of causes", "cli.message", []string{"TEXT", "hello"}, "validator.depth", deep},
	}},
}

// generated renders the guide, proving every example on the way.
func generated(t *testing.T) string {
	t.Helper()
	c := standard(t, policy())
	var names []string
	var b strings.Builder
	for _, g := range guide {
		names = append(names, g.gate)
		fmt.Fprintf(&b, "### %s\n\nPriority %d. %s\n\n| for example | it says |\n|---|---|\n", g.gate, c.PriorityOf(g.gate), g.prose)
		said := map[gate.Decision]bool{}
		for _, e := range g.examples {
			m := moment{Facts: facts(), policy: policy()}
			if e.with != nil {
				e.with(&m)
			}
			v := verdictOf(t, standard(t, m.policy).Decide(explained(t, m, e), m.Facts), g.gate)
			if v.Code != e.code {
				t.Errorf("%s: %s: says %s, want %s", g.gate, e.say, v.Code, e.code)
			}
			said[v.Decision] = true
			fmt.Fprintf(&b, "| %s | %s, `%s` |\n", e.say, v.Decision, v.Code)
		}
		if !said[gate.Allow] || len(said) == 1 && g.gate != "dispatcher/repl-lint" {
			t.Errorf("%s: want an example that passes and one that does not", g.gate)
		}
		b.WriteString("\n")
	}
	if !slices.Equal(names, c.Gates()) {
		t.Errorf("the guide explains %v, the stack runs %v", names, c.Gates())
	}
	b.WriteString("## Codes\n\n| code | at most | a rule may answer it | said when |\n|---|---|---|---|\n")
	for _, c := range gate.Codes() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", c.Name, c.Decision, map[bool]string{true: "yes", false: "no"}[c.Lift], c.Doc)
	}
	return b.String()
}

// explained is the action of an example, with the moment's explanation.
func explained(t *testing.T, m moment, e example) proto.Action {
	t.Helper()
	if m.why == "" {
		return actionBy(t, m.Signal.Origin, e.verb, e.args...)
	}
	target, verb, _ := strings.Cut(e.verb, ".")
	body := sexp.P(sexp.Keyword("ACTION"), sexp.Keyword(strings.ToUpper(verb)), sexp.Keyword("EXPLANATION"), m.why)
	for i := 0; i < len(e.args); i += 2 {
		body = body.With(sexp.Keyword(e.args[i]), sexp.String(e.args[i+1]))
	}
	a, err := vocabulary(t).Decode(sexp.P(sexp.Keyword("TARGET"), sexp.Keyword(strings.ToUpper(target)), sexp.Keyword("PAYLOAD"), body).List(),
		proto.Cause{Signal: "s1", Session: "one", Origin: m.Signal.Origin, Proposer: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestTheGuideShowsTheGatesAsTheyAre(t *testing.T) {
	const begin, end = "<!-- generated: go test ./internal/gate -run Guide -update -->\n", "<!-- end of the generated part -->\n"
	file := filepath.Join("..", "..", "docs", "gates.md")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(data), begin)
	old, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s lacks its markers", file)
	}
	now := "\n" + generated(t) + "\n"
	if old == now {
		return
	}
	if !*update {
		t.Fatalf("%s is out of date: run go test ./internal/gate -run Guide -update", file)
	}
	if err := os.WriteFile(file, []byte(head+begin+now+end+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Every code in the source is in the table, and the other way round.
func TestEveryCodeIsListed(t *testing.T) {
	listed := map[string]bool{}
	families := map[string]bool{}
	for _, c := range gate.Codes() {
		if listed[c.Name] {
			t.Errorf("%s is listed twice", c.Name)
		}
		listed[c.Name] = true
		family, _, _ := strings.Cut(c.Name, ".")
		families[family] = true
	}
	form := regexp.MustCompile(`^[a-z-]+\.[a-z-]+$`)
	used := map[string]bool{"permissions.ask": true, "permissions.deny": true, "rule.ask": true, "rule.deny": true, "confine.startup": true, "confine.system": true, "confine.top": true}
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range sources {
		if strings.HasSuffix(name, "_test.go") || name == "codes.go" {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			s, err := strconv.Unquote(lit.Value)
			family, _, _ := strings.Cut(s, ".")
			if err == nil && form.MatchString(s) && families[family] {
				used[s] = true
				if !listed[s] {
					t.Errorf("%s: the code %s is not listed", name, s)
				}
			}
			return true
		})
	}
	for code := range listed {
		if !used[code] {
			t.Errorf("the code %s is listed and nobody says it", code)
		}
	}
}
