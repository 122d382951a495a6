package daemon_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"passepartout/internal/daemon"
	"passepartout/internal/journal"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// askFirst is a permissions table under which capturing needs a person.
const askFirst = `| tool | level |
|------+-------|
| cli.message | allow |
| capture | ask |
| read-file | allow |
`

func askingSettings(t testing.TB) daemon.Settings {
	t.Helper()
	s := settings(t)
	if err := os.WriteFile(filepath.Join(s.MemexDir, "system", "permissions.org"), []byte(askFirst), 0o644); err != nil {
		t.Fatal(err)
	}
	return s
}

// captured counts the headings of that title in the inbox.
func captured(t testing.TB, s daemon.Settings, title string) int {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(s.MemexDir, "inbox", "inbox.org"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(raw), "* "+title+"\n")
}

func approvalsRequest() proto.Message {
	return proto.Message{Kind: proto.Request, Payload: sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("APPROVALS"))}
}

func answerMessage(token, decision string) proto.Message {
	return proto.Message{Kind: proto.Request, Payload: sexp.P(
		sexp.Keyword("ACTION"), sexp.Keyword("HITL-RESPOND"), sexp.Keyword("TOKEN"), token, sexp.Keyword("DECISION"), sexp.Keyword(decision))}
}

func plists(t testing.TB, p sexp.Plist, key sexp.Keyword) []sexp.Plist {
	t.Helper()
	v, _ := p.Get(key)
	l, _ := v.(sexp.List)
	var out []sexp.Plist
	for _, item := range l.Items() {
		il, _ := item.(sexp.List)
		pl, err := sexp.AsPlist(il)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, pl)
	}
	return out
}

// The steps of an approval, in order.
var steps = []string{"asked", "recorded", "notified", "approved", "decided", "started", "acted", "ended", "reported"}

// TestADaemonMadeToBeKilled is no test: it is the process the crash matrix kills.
func TestADaemonMadeToBeKilled(t *testing.T) {
	home := os.Getenv("PASSEPARTOUT_TEST_VICTIM")
	if home == "" {
		t.Skip("only runs as the victim of another test")
	}
	step := os.Getenv("PASSEPARTOUT_TEST_STEP")
	s := daemon.Settings{
		MemexDir: filepath.Join(home, "memex"), StateDir: filepath.Join(home, "state"), SocketPath: filepath.Join(home, "run", "pp.sock"),
		Assistant: "test", Home: home, User: "test", ApprovalTTL: time.Hour, MaxClients: 16,
		Step: func(name string) {
			if name == step {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		},
	}
	ctx := context.Background()
	if url := os.Getenv("PASSEPARTOUT_TEST_TELEGRAM"); url != "" {
		s.Channels = telegramAt(url)
	}
	d, err := daemon.Open(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Fatal(d.Run(ctx))
}

// A victim is a daemon in a process of its own.
type victim struct {
	house
	cmd *exec.Cmd
}

func startVictim(t *testing.T, s daemon.Settings, step string, env ...string) *victim {
	t.Helper()
	v := &victim{house: house{t: t, settings: s}, cmd: exec.Command(os.Args[0], "-test.run=^TestADaemonMadeToBeKilled$")}
	v.cmd.Env = append(os.Environ(), "PASSEPARTOUT_TEST_VICTIM="+filepath.Dir(s.MemexDir), "PASSEPARTOUT_TEST_STEP="+step)
	v.cmd.Env = append(v.cmd.Env, env...)
	if err := v.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.kill)
	return v
}

func (v *victim) kill() {
	if v.cmd.ProcessState == nil {
		_ = v.cmd.Process.Kill() // it may be dead already, which is the point
		_ = v.cmd.Wait()
	}
}

// try sends a message and returns its response, if the daemon lives to give one.
func (p *peer) try(m proto.Message) (proto.Message, bool) {
	p.id++
	m.Meta = m.Meta.With("ID", sexp.NewInt(p.id))
	if p.Send(m) != nil {
		return proto.Message{}, false
	}
	for {
		r, err := p.Receive()
		if err != nil {
			return proto.Message{}, false
		}
		if id, ok := r.Meta.Get("IN-REPLY-TO"); ok && r.Kind == proto.Response && sexp.Equal(id, sexp.NewInt(p.id)) {
			return r, true
		}
	}
}

// untilEnded waits until no plan is open and returns those that ended.
func (p *peer) untilEnded(t *testing.T) []sexp.Plist {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		r := p.request(approvalsRequest())
		ended := plists(t, r.Payload, "ENDED")
		if len(plists(t, r.Payload, "PENDING")) == 0 && len(ended) > 0 {
			return ended
		}
	}
	t.Fatal("the plan does not end")
	return nil
}

// TestINV09CrashMatrixOfAnApproval kills the daemon with SIGKILL at every step.
// Afterwards the action has happened exactly once or not at all, and what the
// person is told is what is true.
func TestINV09CrashMatrixOfAnApproval(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run by make test")
	}
	for i, step := range steps {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			s := askingSettings(t)
			title := fmt.Sprintf("number %d", i)
			v := startVictim(t, s, step)
			p := v.connect()
			if r, ok := p.try(say("main", "note that "+title)); ok {
				if got := r.Payload.Word("STATUS"); got != "PENDING" {
					t.Fatalf("status %s, want PENDING: %s", got, r.Payload.Text("TEXT"))
				}
				if open, ok := p.try(approvalsRequest()); ok {
					p.try(answerMessage(plists(t, open.Payload, "PENDING")[0].Text("TOKEN"), "APPROVED"))
				}
			}
			if err := v.cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
				t.Fatalf("the daemon ended with %v, want it killed at %q", err, step)
			}
			before := captured(t, s, title)
			again := startVictim(t, s, "")
			q := again.connect()
			open := plists(t, q.request(approvalsRequest()).Payload, "PENDING")
			if slices.Index(steps, step) >= slices.Index(steps, "approved") == (len(open) > 0) && step != "asked" {
				t.Fatalf("killed at %q, %d questions are open again", step, len(open))
			}
			if step == "asked" {
				if len(open) != 0 || captured(t, s, title) != 0 {
					t.Fatal("a question nobody saw came back, or was carried out")
				}
				return
			}
			if len(open) > 0 {
				q.request(answerMessage(open[0].Text("TOKEN"), "APPROVED"))
			}
			ended := q.untilEnded(t)
			state, n := ended[0].Word("STATE"), captured(t, s, title)
			want := map[string]struct {
				state sexp.Keyword
				n     int
			}{"started": {"FAILED", 0}}[step]
			if want.state == "" {
				want.state, want.n = "DONE", 1
			}
			if state != want.state || n != want.n || before > n {
				t.Fatalf("killed at %q: the person is told %s (%s), the inbox holds it %d times, %d before the restart", step, state, ended[0].Text("TEXT"), n, before)
			}
			unseen := []string{"approved", "decided", "started", "acted"} // nobody was connected when it ended
			reply := q.request(say("main", "what is due today?")).Payload.Text("TEXT")
			if told := strings.Contains(reply, ended[0].Text("TOKEN")); told != slices.Contains(unseen, step) {
				t.Errorf("killed at %q, the next reply begins with the news: %t\n%s", step, told, reply)
			}
			again.kill()
			if _, err := journal.Verify(filepath.Join(s.StateDir, "journal")); err != nil {
				t.Errorf("the journal does not verify: %v", err)
			}
		})
	}
}

func TestINV09OfSixtyFourAnswersOverTheSocketOneHasAnEffect(t *testing.T) {
	s := askingSettings(t)
	h := open(t, s)
	asker := h.connect()
	asker.request(say("main", "note that once"))
	token := plists(t, asker.request(approvalsRequest()).Payload, "PENDING")[0].Text("TOKEN")
	var wg sync.WaitGroup
	texts := make([]string, 64)
	for i := range texts {
		p := h.connect()
		wg.Go(func() {
			if r, ok := p.try(answerMessage(token, "APPROVED")); ok {
				texts[i] = r.Payload.Text("TEXT")
			}
		})
	}
	wg.Wait()
	asker.untilEnded(t)
	if n := captured(t, s, "once"); n != 1 {
		t.Errorf("64 answers had %d effects, want 1", n)
	}
	yes := 0
	for _, text := range texts {
		switch {
		case text == "Approved "+token+".":
			yes++
		case !strings.Contains(text, token+" was approved over cli"):
			t.Errorf("a late answer was told %q, want how the plan stands", text)
		}
	}
	if yes != 1 {
		t.Errorf("%d answers were told that they count, want 1", yes)
	}
}

// waitFor returns a file's text once it contains the words.
func waitFor(t *testing.T, path, words string) string {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if raw, err := os.ReadFile(path); err == nil && strings.Contains(string(raw), words) {
			return string(raw)
		}
	}
	t.Fatalf("%s never contains %q", path, words)
	return ""
}

func TestAPlanIsShownInTheMemexAndTheAgentCannotWriteThere(t *testing.T) {
	s := askingSettings(t)
	h := open(t, s)
	p := h.connect()
	p.request(say("main", "note that shown"))
	token := plists(t, p.request(approvalsRequest()).Payload, "PENDING")[0].Text("TOKEN")
	board := filepath.Join(s.MemexDir, "system", "flight-plans.org")
	text := waitFor(t, board, token)
	for _, want := range []string{"* PLAN tool.capture", ":FLIGHT_PLAN:", ":DIGEST:", ":POLICY:", ":EXPIRES:", "permissions.ask", "shown", "What it can do: "} {
		if !strings.Contains(text, want) {
			t.Errorf("the plan in the memex lacks %q:\n%s", want, text)
		}
	}
	p.request(answerMessage(token, "APPROVED"))
	waitFor(t, board, "* DONE tool.capture")
	r := p.request(proto.Message{Kind: proto.Request, Target: "TOOL", Payload: sexp.P(
		sexp.Keyword("ACTION"), sexp.Keyword("READ-FILE"), sexp.Keyword("FILEPATH"), board, sexp.Keyword("EXPLANATION"), "to see what waits there")})
	if got := r.Payload.Word("STATUS"); got != "DENIED" || !strings.Contains(r.Payload.Text("TEXT"), "self-build.own") {
		t.Errorf("reading the board as an action is %s, want DENIED: %s", got, r.Payload.Text("TEXT"))
	}
}

// BenchmarkApproveToEffect is the round trip over the socket from a yes to the
// reply after the effect, which is in an Org file on disk by then.
func BenchmarkApproveToEffect(b *testing.B) {
	s := askingSettings(b)
	h := open(b, s)
	p := h.connect()
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		p.request(say("main", fmt.Sprintf("note that bench %d", i)))
		token := plists(b, p.request(approvalsRequest()).Payload, "PENDING")[0].Text("TOKEN")
		b.StartTimer()
		start := time.Now()
		p.answerAndSee(token)
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}

// answerAndSee approves a plan and reads until both the answer is acknowledged and
// the resumed turn has replied.
func (p *peer) answerAndSee(token string) {
	p.t.Helper()
	if err := p.Send(answerMessage(token, "APPROVED")); err != nil {
		p.t.Fatal(err)
	}
	for replies := 0; replies < 2; {
		m, err := p.Receive()
		if err != nil {
			p.t.Fatal(err)
		}
		if m.Kind == proto.Response {
			replies++
		}
	}
}

// TestAnAnswerReachesAsFarAsItSays gives the three scopes over the wire.
func TestAnAnswerReachesAsFarAsItSays(t *testing.T) {
	rules := func(s daemon.Settings) string {
		raw, _ := os.ReadFile(filepath.Join(s.MemexDir, "system", "rules.org")) // there may be none yet
		return string(raw)
	}
	for scope, want := range map[string]struct{ again, other, trial bool }{
		"ONCE":    {},
		"SESSION": {again: true},
		"RULE":    {trial: true},
	} {
		t.Run(scope, func(t *testing.T) {
			t.Parallel()
			s := askingSettings(t)
			h := open(t, s)
			p := h.connect()
			capture := func(session string) string {
				m := proto.Message{Kind: proto.Request, Target: "TOOL", Meta: sexp.P(sexp.Keyword("SESSION-ID"), session), Payload: sexp.P(
					sexp.Keyword("ACTION"), sexp.Keyword("CAPTURE"), sexp.Keyword("TITLE"), "scoped", sexp.Keyword("EXPLANATION"), "to see how far a yes reaches")}
				return string(p.request(m).Payload.Word("STATUS"))
			}
			before := rules(s)
			if got := capture("main"); got != "PENDING" {
				t.Fatalf("ended %s", got)
			}
			m := answerMessage(p.pending()[0], "APPROVED")
			m.Payload = m.Payload.With("SCOPE", sexp.Keyword(scope))
			told := p.request(m).Payload.Text("TEXT")
			p.untilCaptured("scoped")
			if got := capture("main") == "DONE"; got != want.again {
				t.Errorf("the same in this session is done: %t, want %t", got, want.again)
			}
			if got := capture("other") == "DONE"; got != want.other {
				t.Errorf("the same in another session is done: %t, want %t", got, want.other)
			}
			after := rules(s)
			if got := strings.Contains(strings.TrimPrefix(after, before), ":SHADOW: t"); got != want.trial || !strings.HasPrefix(after, before) {
				t.Errorf("a rule is on trial: %t, want %t; told %q\n%s", got, want.trial, told, after)
			}
		})
	}
	h := open(t, askingSettings(t))
	p := h.connect()
	p.request(say("main", "note that x"))
	m := answerMessage(p.pending()[0], "APPROVED")
	m.Payload = m.Payload.With("SCOPE", sexp.Keyword("FOREVER"))
	if r := p.request(m); r.Payload.Word("STATUS") != "FAILED" || len(p.pending()) != 1 {
		t.Errorf("an unknown scope was %s", r.Payload)
	}
}

// TestINV09CrashMatrixOfAFileAndOfAPlan kills the daemon around the effect of a plan
// on a file, and around the first step of a plan of two.
func TestINV09CrashMatrixOfAFileAndOfAPlan(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run by make test")
	}
	writing := func(name string) sexp.Plist {
		return sexp.P(sexp.Keyword("TOOL"), "write-file", sexp.Keyword("ARGS"), sexp.P(
			sexp.Keyword("FILEPATH"), name, sexp.Keyword("CONTENT"), "written\n"), sexp.Keyword("EXPLANATION"), "to have something on disk")
	}
	file := proto.Message{Kind: proto.Request, Target: "TOOL", Payload: writing("one.txt")}
	plan := proto.Message{Kind: proto.Request, Target: "PLAN", Payload: sexp.P(
		sexp.Keyword("STEPS"), sexp.NewList(writing("one.txt").List(), writing("two.txt").List()), sexp.Keyword("EXPLANATION"), "two files, one after the other")}
	for name, tt := range map[string]struct {
		ask   proto.Message
		step  string
		state sexp.Keyword
		files []string
		says  string
	}{
		"a file, before":         {file, "started", "FAILED", nil, "nothing was done"},
		"a file, after":          {file, "acted", "DONE", []string{"one.txt"}, "carried out"},
		"a plan, approved":       {plan, "approved", "DONE", []string{"one.txt", "two.txt"}, "carried out"},
		"a plan, before a step":  {plan, "started", "FAILED", nil, "nothing of it was done; the 1 after it were not"},
		"a plan, after a step":   {plan, "acted", "FAILED", []string{"one.txt"}, "step 1, tool.write-file: it was carried out; the 1 after it were not"},
		"a plan, between steps":  {plan, "ended", "DONE", []string{"one.txt", "two.txt"}, "carried out"},
		"a plan, before anybody": {plan, "asked", "", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := settings(t)
			if err := os.WriteFile(filepath.Join(s.MemexDir, "system", "permissions.org"), []byte("| plan | allow |\n| write-file | ask |\n| cli.message | allow |\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			v := startVictim(t, s, tt.step)
			p := v.connect()
			if _, ok := p.try(tt.ask); ok {
				if open, ok := p.try(approvalsRequest()); ok {
					p.try(answerMessage(plists(t, open.Payload, "PENDING")[0].Text("TOKEN"), "APPROVED"))
				}
			}
			if err := v.cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
				t.Fatalf("the daemon ended with %v, want it killed at %q", err, tt.step)
			}
			q := startVictim(t, s, "").connect()
			if tt.state != "" {
				ended := q.untilEnded(t)
				if ended[0].Word("STATE") != tt.state || !strings.Contains(ended[0].Text("TEXT")+ended[0].Text("RESULT"), tt.says) {
					t.Errorf("the person is told %s: %s (%s), want %s and %q", ended[0].Word("STATE"), ended[0].Text("TEXT"), ended[0].Text("RESULT"), tt.state, tt.says)
				}
			} else if n := len(q.pending()); n != 0 {
				t.Errorf("%d questions nobody saw came back", n)
			}
			for _, f := range []string{"one.txt", "two.txt"} {
				raw, err := os.ReadFile(filepath.Join(s.MemexDir, f))
				if got := err == nil; got != slices.Contains(tt.files, f) || got && string(raw) != "written\n" {
					t.Errorf("%s is there: %t (%q), want %v", f, got, raw, tt.files)
				}
			}
		})
	}
}
