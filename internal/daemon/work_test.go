package daemon_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"passepartout/internal/gate"
	"passepartout/internal/journal"
	"passepartout/internal/proto"
	"passepartout/internal/sandbox"
	"passepartout/internal/sexp"
)

// sandboxed skips where commands cannot run.
func sandboxed(t *testing.T) {
	t.Helper()
	if st := sandbox.Probe(t.Context()); st.Level == sandbox.None {
		t.Skip("no sandbox here: ", st.Missing())
	}
}

// A job is what a client saw of one message: the rulings, the output of commands
// while they ran, the answer.
type job struct {
	rulings []string // ids, in order
	names   []string
	output  string
	answer  proto.Message
	turn    string
}

// watch sends a message and listens until its answer.
func (p *peer) watch(m proto.Message) job {
	p.t.Helper()
	p.id++
	m.Meta = m.Meta.With("ID", sexp.NewInt(p.id))
	if err := p.Send(m); err != nil {
		p.t.Fatal(err)
	}
	var j job
	for {
		f, err := p.Receive()
		if err != nil {
			p.t.Fatal(err)
		}
		switch {
		case f.Do() == "gate-trace":
			j.rulings = append(j.rulings, f.Payload.Text("ID"))
			j.names = append(j.names, f.Payload.Text("NAME"))
		case f.Kind == proto.StreamChunk && f.Payload.Text("TOOL") != "":
			j.output += f.Payload.Text("OUTPUT")
		case f.Kind == proto.Response:
			j.answer, j.turn = f, f.Meta.Text("TURN")
			return j
		}
	}
}

// tool is the owner's own call of a tool.
func (p *peer) tool(name string, args sexp.Plist) proto.Message {
	p.t.Helper()
	return p.request(proto.Message{Kind: proto.Request, Target: "tool", Payload: sexp.P(
		sexp.Keyword("TOOL"), name, sexp.Keyword("ARGS"), args, sexp.Keyword("EXPLANATION"), "The owner asks for it.")})
}

const (
	brokenCalc = "minus() { echo $(($1 + $2)); }\n"
	fixedCalc  = "minus() { echo $(($1 - $2)); }\n"
	calcTest   = ". project/calc.sh\necho running >> project/log\ntest \"$(minus 5 3)\" = 2 && echo 'ok 1 - minus' || { echo 'not ok 1 - minus'; exit 1; }\n"
)

// project puts a small program with a mistake into the memex.
func project(t *testing.T, memex string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(memex, "project"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"calc.sh": brokenCalc, "test.sh": calcTest, "log": ""} {
		if err := os.WriteFile(filepath.Join(memex, "project", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// The agent finds a mistake, mends it, sees the tests pass and says so. Each step
// is judged, recorded, explained, and can be taken back on its own.
func TestAModelMendsAProgramStepByStep(t *testing.T) {
	sandboxed(t)
	s := settings(t)
	project(t, s.MemexDir)
	m := newModel(t, inTurn(
		call("run-tests", map[string]any{"cmd": "sh project/test.sh", "explanation": "To see what fails at all."}, 1),
		call("search-files", map[string]any{"path": "project", "pattern": "minus", "explanation": "To find where it is defined."}, 1),
		call("read-file", map[string]any{"filepath": "project/calc.sh", "explanation": "To see what is wrong with it."}, 1),
		call("replace-in-file", map[string]any{"filepath": "project/calc.sh", "old": "$1 + $2", "new": "$1 - $2", "explanation": "It adds instead of subtracting."}, 1),
		call("run-tests", map[string]any{"cmd": "sh project/test.sh", "explanation": "To see whether it is mended."}, 1),
		speak("minus added its arguments. Now it subtracts them, and the test passes."),
	))
	h := open(t, m.cloud(s))
	p := h.connect()
	j := p.watch(say("main", "sh project/test.sh fails, please mend project/calc.sh"))
	if j.answer.Payload.Word("STATUS") != "DONE" || !strings.Contains(j.answer.Payload.Text("TEXT"), "the test passes") {
		t.Fatalf("answered %s %s", j.answer.Payload.Word("STATUS"), j.answer.Payload.Text("TEXT"))
	}
	if got := strings.Join(j.names, " "); got != "tests.run tool.search-files tool.read-file tool.replace-in-file tests.run cli.message" {
		t.Fatalf("steps: %s", got)
	}
	if !strings.Contains(j.output, "not ok 1 - minus\n") || !strings.Contains(j.output, "\nok 1 - minus\n") {
		t.Errorf("while it ran clients saw %q", j.output)
	}
	file := func(name string) string {
		raw, err := os.ReadFile(filepath.Join(s.MemexDir, "project", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	if file("calc.sh") != fixedCalc || file("log") != "running\nrunning\n" {
		t.Errorf("calc.sh is %q, log %q", file("calc.sh"), file("log"))
	}
	if heard := m.heard(); len(heard) != 6 || !strings.Contains(heard[1], "1 failed: minus") || !strings.Contains(heard[5], "The tests passed.") {
		t.Errorf("the model heard %d requests", len(heard))
	}
	p.tool("list-changes", sexp.Plist{}) // its ruling is on disk when it answers, and so is all before it
	explained(t, h, j)

	undo := func(id, status, text string) {
		t.Helper()
		r := p.tool("undo", sexp.P(sexp.Keyword("OF"), id))
		if string(r.Payload.Word("STATUS")) != status || !strings.Contains(r.Payload.Text("TEXT"), text) {
			t.Errorf("undo of %s: %s %s", id, r.Payload.Word("STATUS"), r.Payload.Text("TEXT"))
		}
	}
	undo(j.rulings[1], "FAILED", "nothing to be undone") // searching changed nothing
	undo(j.rulings[2], "FAILED", "nothing to be undone") // nor did reading
	undo(j.rulings[3], "DONE", "replace-in-file project/calc.sh")
	if file("calc.sh") != brokenCalc || file("log") != "running\nrunning\n" {
		t.Errorf("after the edit was undone: calc.sh is %q, log %q", file("calc.sh"), file("log"))
	}
	undo(j.rulings[0], "FAILED", "left alone") // the second run wrote behind the first
	undo(j.rulings[4], "DONE", "shell sh project/test.sh")
	undo(j.rulings[0], "DONE", "shell sh project/test.sh")
	if file("log") != "" {
		t.Errorf("after all was undone the log is %q", file("log"))
	}
	if r := p.tool("redo", sexp.P(sexp.Keyword("COUNT"), 3)); r.Payload.Word("STATUS") != "DONE" || file("calc.sh") != fixedCalc || file("log") != "running\nrunning\n" {
		t.Errorf("redo: %s; calc.sh is %q, log %q", r.Payload.Text("TEXT"), file("calc.sh"), file("log"))
	}
	if r := p.tool("undo", sexp.P(sexp.Keyword("OF"), j.turn)); r.Payload.Word("STATUS") != "DONE" || file("calc.sh") != brokenCalc || file("log") != "" {
		t.Errorf("undo of the turn: %s; calc.sh is %q, log %q", r.Payload.Text("TEXT"), file("calc.sh"), file("log"))
	}
}

// explained sees that every step has a ruling with all verdicts in the journal,
// before its outcome, which is what `why` shows.
func explained(t *testing.T, h *house, j job) {
	t.Helper()
	at := map[string]int{}
	n := 0
	for e, err := range journal.Read(filepath.Join(h.settings.StateDir, "journal")) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		switch e.Body.Word("KIND") {
		case "RULING":
			at["ruling "+e.Body.Text("ID")] = n
			trace := e.Body.Sub("TRACE")
			if vs := gate.VerdictsOf(trace); trace.Word("DECISION") != "ALLOW" || len(vs) < 15 {
				t.Errorf("ruling %s: %s by %d gates", e.Body.Text("ID"), trace.Word("DECISION"), len(vs))
			}
		case "OUTCOME":
			at["outcome "+e.Body.Text("RULING")] = n
		}
	}
	for i, id := range j.rulings {
		ruled, done := at["ruling "+id], at["outcome "+id]
		if ruled == 0 || done <= ruled {
			t.Errorf("step %d, %s: ruling at %d, outcome at %d", i, id, ruled, done)
		}
	}
}

// A command that runs long is stopped by its own session's interrupt, and what it
// changed until then can be taken back.
func TestALongCommandCanBeInterruptedAndUndone(t *testing.T) {
	sandboxed(t)
	s := settings(t)
	h := open(t, s)
	p, q := h.connect(), h.connect()
	p.id++
	start := data(t, `(:TYPE :REQUEST :TARGET :SHELL :PAYLOAD (:CMD "echo begun | tee begun.txt; while true; do true; done" :EXPLANATION "A test of the interrupt."))`)
	start.Meta = sexp.P(sexp.Keyword("ID"), sexp.NewInt(p.id))
	if err := p.Send(start); err != nil {
		t.Fatal(err)
	}
	for { // until its output is seen
		f, err := p.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if f.Kind == proto.Response {
			t.Fatalf("ended too early: %s", f.Payload.Text("TEXT"))
		}
		if f.Kind == proto.StreamChunk && strings.Contains(f.Payload.Text("OUTPUT"), "begun") {
			break
		}
	}
	q.request(data(t, `(:TYPE :EVENT :PAYLOAD (:SENSOR :INTERRUPT))`))
	if r := p.response(); r.Payload.Word("STATUS") != "INTERRUPTED" {
		t.Errorf("ended as %s: %s", r.Payload.Word("STATUS"), r.Payload.Text("TEXT"))
	}
	begun := filepath.Join(s.MemexDir, "begun.txt")
	if _, err := os.Stat(begun); err != nil {
		t.Error(err)
	}
	if r := p.tool("undo", sexp.P()); r.Payload.Word("STATUS") != "DONE" {
		t.Errorf("undo: %s", r.Payload.Text("TEXT"))
	}
	if _, err := os.Stat(begun); err == nil {
		t.Error("what the command wrote is still there")
	}
}

// A program that looks for itself finds no credential, no policy and no state,
// though nothing in its command names them.
func TestACommandSeesNoSecretsPolicyOrState(t *testing.T) {
	sandboxed(t)
	s := settings(t)
	for name, text := range map[string]string{
		".ssh/id_ed25519": "KEY-MATERIAL", ".config/gcloud/creds.db": "KEY-MATERIAL", ".netrc": "KEY-MATERIAL",
		".docker/config.json": "KEY-MATERIAL", "memex/.env": "KEY-MATERIAL", "work/readme": "plain text",
		"old/disk/home/ann/.ssh/id_rsa": "KEY-MATERIAL", "a/b/c/d/e/.aws/credentials": "KEY-MATERIAL", "work/x/y/z/deploy/.env": "KEY-MATERIAL",
		"work/x/y/z/server.key": "KEY-MATERIAL", "memex/projects/p/q/r/id_ed25519": "KEY-MATERIAL",
	} {
		p := filepath.Join(s.Home, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o700), os.WriteFile(p, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	s.WriteRoots = []string{filepath.Join(s.Home, "work")}
	if _, err := os.Stat("/usr/bin/perl"); err != nil {
		t.Skip("no perl here to hide a command line from the gates")
	}
	look := "grep -r KEY-MATERIAL " + s.Home + " 2>/dev/null; ls -A " + s.Home + "/.ssh system ../state 2>/dev/null; " +
		"echo overwritten > system/permissions.org; cat ../work/readme"
	veiled := "my $c = '';\n"
	for _, b := range []byte(look) {
		veiled += fmt.Sprintf("$c .= chr(%d);\n", b)
	}
	if err := os.WriteFile(filepath.Join(s.MemexDir, "look.pl"), []byte(veiled+"system($c);\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	h := open(t, s)
	p := h.connect()
	before, err := os.ReadFile(filepath.Join(s.MemexDir, "system/permissions.org"))
	if err != nil {
		t.Fatal(err)
	}
	// What it does is only known when it runs, so a person is asked, and agrees.
	r := p.request(data(t, `(:TYPE :REQUEST :TARGET :SHELL :PAYLOAD (:CMD "perl look.pl" :EXPLANATION "A test of what is visible."))`))
	if r.Payload.Word("STATUS") != "PENDING" {
		t.Fatalf("not asked: %s: %s", r.Payload.Word("STATUS"), r.Payload.Text("TEXT"))
	}
	for _, q := range plists(t, p.request(approvalsRequest()).Payload, "PENDING") {
		p.id++
		m := answerMessage(q.Text("TOKEN"), "APPROVED")
		m.Meta = sexp.P(sexp.Keyword("ID"), sexp.NewInt(p.id))
		if err := p.Send(m); err != nil {
			t.Fatal(err)
		}
	}
	got := ""
	for !strings.Contains(got, "plain text") {
		f, err := p.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if f.Kind == proto.Response {
			got += f.Payload.Text("TEXT")
		}
		if f.Kind == proto.Response && f.Do() == "message" && !strings.Contains(got, "plain text") {
			t.Fatalf("the command did not read its own root:\n%s", got)
		}
	}
	if strings.Contains(got, "KEY-MATERIAL") || strings.Contains(got, "permissions.org\n") || strings.Contains(got, "journal") {
		t.Errorf("the command saw\n%s", got)
	}
	after, err := os.ReadFile(filepath.Join(s.MemexDir, "system/permissions.org"))
	if err != nil || string(after) != string(before) {
		t.Errorf("the policy became %q (%v)", after, err)
	}
}
