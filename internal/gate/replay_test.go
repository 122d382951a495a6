package gate_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"passepartout/internal/gate"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// recorded is one ruling as a journal keeps it.
type recorded struct{ action, trace, facts sexp.Plist }

func record(r gate.Ruling) recorded {
	return recorded{r.Action().Plist(), r.Trace(), r.Facts()}
}

func (r recorded) String() string {
	return sexp.P(sexp.Keyword("ACTION"), r.action, sexp.Keyword("TRACE"), r.trace, sexp.Keyword("FACTS"), r.facts).String()
}

// readBack parses what String printed, as another process would.
func readBack(t testing.TB, line string) recorded {
	t.Helper()
	p, err := sexp.ReadPlist([]byte(line), sexp.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return recorded{p.Sub("ACTION"), p.Sub("TRACE"), p.Sub("FACTS")}
}

func replay(t testing.TB, c *gate.Chain, v *proto.Vocabulary, r recorded) gate.Ruling {
	t.Helper()
	a, err := v.Recorded(r.action)
	if err != nil {
		t.Fatal(err)
	}
	got, err := gate.Replay(c, a, r.facts)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// mixed makes the i-th ruling of a varied day: all verbs, origins and labels,
// links, scripts, tags and credentials, and now and then an approval.
func mixed(t testing.TB, c *gate.Chain, rng *rand.Rand) gate.Ruling {
	t.Helper()
	pick := func(ss ...string) string { return ss[rng.IntN(len(ss))] }
	path := pick("a.txt", "link", "~/.ssh/id_rsa", "/etc/hosts", "~/memex/n.org", "../up", "src/x.lisp", "/tmp/t", "twin", "~/memex/skills/x.org")
	text := pick("hello", "see https://other.org/x", "![p](https://evil.com/p)", "the word is hunter2", "* Diary :@personal:", "pay 100 to mallory", "\u202ehidden")
	calls := [][]string{
		{"cli.message", "TEXT", text},
		{"shell.run", "CMD", pick("ls -l", "rm -rf ~", "bash run.sh", "curl https://other.org", "echo $X", "npm publish", "touch a; rm b", "git status", "deploy now", "echo hunter2")},
		{"tool.read-file", "FILEPATH", path},
		{"tool.write-file", "FILEPATH", path, "CONTENT", pick("text", "(defun f () 1)", "(oops", text)},
		{"tool.web-fetch", "URL", pick("https://docs.example.org/", "https://other.org/", "http://169.254.169.254/", "http://[::1]/", "ftp://x", "not a host")},
		{"tool.show-node", "ID", pick("n1", "n2")},
		{"tool.share-node", "ID", pick("n1", "n2"), "TO", pick("grace", "mallory")},
		{"tool.create-skill", "NAME", "s"},
		{"telegram.send", "TO", pick("grace", "mallory"), "TEXT", text},
		{"lisp.eval", "FORM", pick("(+ 1 2)", "(")},
	}
	call := calls[rng.IntN(len(calls))]
	by := proto.Origin{Role: proto.Role(rng.IntN(5)), Channel: pick("cli", "telegram", "cron"), Who: pick("uid:1000", "g")}
	if rng.IntN(3) > 0 {
		by = owner
	}
	f := factsBy(by)
	f.Now = f.Now.Add(time.Duration(rng.Int64N(int64(time.Hour))))
	f.Signal.Depth = rng.IntN(12)
	f.Signal.Taint = proto.Taint{Untrusted: rng.IntN(3) == 0, Private: rng.IntN(5) == 0}
	if rng.IntN(2) == 0 {
		f.Said = []string{"please pay 100 to mallory", "and fetch https://docs.example.org/"}
	}
	f.World = world{
		real:  map[string]string{"/home/ada/work/link": "/home/ada/.bashrc"},
		files: map[string]string{"/home/ada/work/run.sh": pick("echo hi\n", "rm -rf ~\n", "curl https://other.org\n", "key=hunter2\n")},
		know:  map[string][]string{"tags n1": {"@personal"}, "links /home/ada/work/twin": {"/home/ada/.bash_history"}},
		marks: map[string]string{"hunter2": "password"},
	}
	r := c.Decide(actionBy(t, by, call[0], call[1:]...), f)
	if r.Decision() != gate.Ask || rng.IntN(2) == 0 {
		return r
	}
	var l gate.Ledger
	p, err := l.Open(r, f.Now.Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	again, err := l.Answer(p.ID, true, owner, c, f)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// childEnv makes the test binary replay a file in place of testing.
const childEnv = "PASSEPARTOUT_TEST_REPLAY"

func TestINV07TenThousandRulingsAreTheSameInAnotherProcess(t *testing.T) {
	if file := os.Getenv(childEnv); file != "" {
		replayFile(t, file)
		return
	}
	n := 10_000
	if testing.Short() {
		n = 500
	}
	p := withRules(t, parseRules(t, rulesOrg)...)
	c := standard(t, p)
	rng := rand.New(rand.NewPCG(1, 2))
	file := filepath.Join(t.TempDir(), "rulings")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(out)
	put := func(s string) {
		if _, err := w.WriteString(strings.ReplaceAll(s, "\n", "\x1e") + "\n"); err != nil {
			t.Fatal(err)
		}
	}
	put(p.Plist().String())
	seen := map[gate.Decision]int{}
	for range n {
		r := mixed(t, c, rng)
		seen[r.Decision()]++
		put(record(r).String())
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	for _, d := range []gate.Decision{gate.Deny, gate.Ask, gate.Allow} {
		if seen[d] < n/20 {
			t.Errorf("only %d of %d rulings are %v: the mix is no test", seen[d], n, d)
		}
	}
	child := exec.Command(os.Args[0], "-test.run=^TestINV07TenThousandRulingsAreTheSameInAnotherProcess$", "-test.v")
	child.Env = append(os.Environ(), childEnv+"="+file)
	report, err := child.CombinedOutput()
	if err != nil || !strings.Contains(string(report), fmt.Sprintf("replayed %d rulings", n)) {
		t.Errorf("the other process: %v\n%.2000s", err, report)
	}
}

func replayFile(t *testing.T, file string) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	pl, err := sexp.ReadPlist([]byte(lines[0]), sexp.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := gate.ParsePolicy(pl)
	if err != nil {
		t.Fatal(err)
	}
	c, v := standard(t, p), vocabulary(t)
	for i, line := range lines[1:] {
		r := readBack(t, strings.ReplaceAll(line, "\x1e", "\n"))
		if got := replay(t, c, v, r).Trace(); got.String() != r.trace.String() {
			t.Fatalf("ruling %d differs:\n%s\n%s\n%s", i, got, r.trace, r.action)
		}
	}
	t.Logf("replayed %d rulings", len(lines)-1)
}

func TestINV07AReplayedRulingGivesNoPermit(t *testing.T) {
	c := standard(t, policy())
	r := c.Decide(action(t, "cli.message", "TEXT", "hello"), facts())
	again := replay(t, c, vocabulary(t), record(r))
	if again.Decision() != gate.Allow {
		t.Fatalf("got %v", again.Decision())
	}
	if _, err := again.Permit(); err == nil {
		t.Error("a replayed ruling gives a permit")
	}
}

func TestINV07TheWorldIsAskedOnceAndRemembered(t *testing.T) {
	w := world{files: map[string]string{"/home/ada/work/run.sh": "echo hi\n"}}
	f := facts()
	f.World = w
	c := standard(t, policy())
	r := c.Decide(action(t, "shell.run", "CMD", "bash run.sh"), f)
	w.files["/home/ada/work/run.sh"] = "rm -rf ~\n"
	if got := replay(t, c, vocabulary(t), record(r)).Decision(); got != r.Decision() {
		t.Errorf("replay says %v, the record %v: it looked at the disk", got, r.Decision())
	}
	if got := c.Decide(action(t, "shell.run", "CMD", "bash run.sh"), f).Decision(); got != gate.Deny {
		t.Errorf("deciding anew says %v", got)
	}
}

func TestOneChangedRuleChangesExactlyItsActions(t *testing.T) {
	before := standard(t, policy())
	rule := gate.Rule{Name: "no npm", Decision: gate.Deny, Verb: "shell.run", When: []gate.Condition{{Arg: "CMD", Pattern: "npm publish ..."}}, Where: "rules.org:1"}
	after := standard(t, withRules(t, rule))
	v := vocabulary(t)
	rng := rand.New(rand.NewPCG(3, 4))
	changed, meant := 0, 0
	for range 2000 {
		r := mixed(t, before, rng)
		is := strings.Contains(r.Action().Args().Text("CMD"), "npm publish") && r.Decision() != gate.Deny
		differs := replay(t, after, v, record(r)).Decision() != r.Decision()
		if is != differs {
			t.Fatalf("%s: meant %v, changed %v", r.Action().Args(), is, differs)
		}
		if is {
			meant++
		}
		if differs {
			changed++
		}
	}
	if changed == 0 {
		t.Errorf("%d of %d meant actions changed: the mix is no test", changed, meant)
	}
}

func TestFactsThatWereTamperedWithAreRefused(t *testing.T) {
	c := standard(t, policy())
	r := record(c.Decide(action(t, "cli.message", "TEXT", "hello"), facts()))
	a, err := vocabulary(t).Recorded(r.action)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]sexp.Plist{
		"no time":           r.facts.Without("NOW"),
		"a broken answer":   r.facts.With("WORLD", sexp.NewList(sexp.String("x"))),
		"a broken omission": r.facts.With("WITHHELD", sexp.NewList(sexp.String("x"))),
	} {
		if _, err := gate.Replay(c, a, bad); err == nil {
			t.Errorf("%s: replayed", name)
		}
	}
}
