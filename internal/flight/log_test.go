package flight_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"passepartout/internal/flight"
	"passepartout/internal/gate"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

var owner = proto.Origin{Role: proto.RoleOwner, Channel: "cli", Who: "uid:1"}

// A clock is a wall clock that can be set, as people and time servers do.
type clock struct {
	mu   sync.Mutex
	wall time.Time
}

func newClock() *clock { return &clock{wall: time.Date(2026, 11, 15, 9, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wall
}

func (c *clock) set(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall = c.wall.Add(d)
}

func openLog(t testing.TB, dir string, now func() time.Time) *flight.Log {
	t.Helper()
	l, err := flight.Open(flight.Options{Dir: dir, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func plan(token string) flight.Plan {
	return flight.Plan{
		Token: token, Session: "main", Requester: owner, Digest: "d-" + token,
		Action: sexp.P(sexp.Keyword("TARGET"), sexp.Keyword("SHELL"), sexp.Keyword("VERB"), sexp.Keyword("RUN"),
			sexp.Keyword("ARGS"), sexp.P(sexp.Keyword("CMD"), "make\n\"deploy\"")),
		Turn: sexp.P(sexp.Keyword("ID"), "s-1", sexp.Keyword("TALK"), strings.Repeat("words\n", 10)),
	}
}

func ask(t testing.TB, l *flight.Log, token string) {
	t.Helper()
	if _, err := l.Ask(plan(token), time.Hour); err != nil {
		t.Fatal(err)
	}
}

func yes(by proto.Origin) flight.Answer { return flight.Answer{Yes: true, By: by} }

func TestAPlanIsTheSameAfterARestart(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	l := openLog(t, dir, c.now)
	ask(t, l, "a-1")
	ask(t, l, "a-2")
	if _, err := l.Answer("a-2", flight.Answer{Yes: true, Scope: flight.Session, Reason: "go on", By: owner}); err != nil {
		t.Fatal(err)
	}
	if err := l.Start("a-2", "a-9"); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, token := range []string{"a-1", "a-2"} {
		p, _ := l.Get(token)
		want[token] = p.Plist().String()
	}
	l.Close()
	again := openLog(t, dir, c.now)
	for token, text := range want {
		p, ok := again.Get(token)
		if !ok || p.Plist().String() != text {
			t.Errorf("after a restart %s is\n%s\nwant\n%s", token, p.Plist(), text)
		}
	}
	if err := again.Start("a-2", "a-10"); !errors.Is(err, gate.ErrNotPending) {
		t.Errorf("a plan that had started can be started again: %v", err)
	}
}

func TestOfSixtyFourConcurrentAnswersOneWins(t *testing.T) {
	l := openLog(t, t.TempDir(), time.Now)
	ask(t, l, "a-1")
	var wins atomic.Int64
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			_, err := l.Answer("a-1", yes(owner))
			switch {
			case err == nil:
				wins.Add(1)
			case !errors.Is(err, gate.ErrNotPending) || !strings.Contains(err.Error(), "a-1 was approved over cli"):
				t.Errorf("the loser is told %q", err)
			}
		})
	}
	wg.Wait()
	if wins.Load() != 1 {
		t.Errorf("%d answers won, want 1", wins.Load())
	}
}

func TestEveryAnswerThatDoesNotCountSaysWhy(t *testing.T) {
	c := newClock()
	l, err := flight.Open(flight.Options{Now: c.now, Approvers: flight.Approvers{Channels: []string{"cli", "telegram:4711"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{"open", "denied", "done", "late"} {
		ask(t, l, token)
	}
	if _, err := l.Answer("denied", flight.Answer{By: owner}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Answer("done", yes(owner)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Start("done", "r"), l.End("done", flight.Done, "all\nwell")); err != nil {
		t.Fatal(err)
	}
	role := func(r proto.Role, channel, who string) proto.Origin {
		return proto.Origin{Role: r, Channel: channel, Who: who}
	}
	for name, tt := range map[string]struct {
		token string
		by    proto.Origin
		is    error
		says  string
	}{
		"nobody's token":                {"a-404", owner, gate.ErrNotPending, `"a-404" is unknown`},
		"a second answer":               {"denied", owner, gate.ErrNotPending, "denied over cli"},
		"after it was carried out":      {"done", owner, gate.ErrNotPending, "carried out at"},
		"a job":                         {"open", role(proto.RoleJob, "cron", "cron:1"), gate.ErrNotApprover, "job on cron"},
		"a guest":                       {"open", role(proto.RoleGuest, "telegram", "telegram:1"), gate.ErrNotApprover, "guest on telegram"},
		"a peer":                        {"open", role(proto.RolePeer, "mcp", "mcp:x"), gate.ErrNotApprover, "peer on mcp"},
		"nobody":                        {"open", proto.Origin{}, gate.ErrNotApprover, "none on"},
		"the owner on a closed channel": {"open", role(proto.RoleOwner, "signal", "signal:1"), gate.ErrNotApprover, "not taken from signal"},
	} {
		if _, err := l.Answer(tt.token, yes(tt.by)); !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %v saying %q", name, err, tt.is, tt.says)
		}
	}
	if _, err := l.Answer("open", yes(role(proto.RoleOwner, "telegram", "telegram:4711"))); err != nil {
		t.Errorf("the listed sender may not answer: %v", err)
	}
	c.set(time.Hour)
	if _, err := l.Answer("late", yes(owner)); !errors.Is(err, gate.ErrExpired) {
		t.Errorf("an answer at the last moment plus nothing: %v, want %v", err, gate.ErrExpired)
	}
}

func TestAnAnswerMayBeRequiredFromElsewhere(t *testing.T) {
	a := flight.Approvers{Elsewhere: true}
	if err := a.Check(owner, owner); !errors.Is(err, gate.ErrNotApprover) {
		t.Errorf("the same channel answers: %v", err)
	}
	other := owner
	other.Channel = "tui"
	if err := a.Check(other, owner); err != nil {
		t.Error(err)
	}
}

func TestExpiryHoldsWhateverTheWallClockDoes(t *testing.T) {
	for name, tt := range map[string]struct {
		move    time.Duration
		restart bool
		open    bool
	}{
		"a while":                        {30 * time.Minute, false, true},
		"a while and a restart":          {30 * time.Minute, true, true},
		"set forward past the end":       {2 * time.Hour, false, false},
		"set forward, and a restart":     {2 * time.Hour, true, false},
		"set back, and a restart":        {-24 * time.Hour, true, false},
		"set back a little, and restart": {-time.Second, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir, c := t.TempDir(), newClock()
			l := openLog(t, dir, c.now)
			ask(t, l, "a-1")
			c.set(tt.move)
			if tt.restart {
				l.Close()
				l = openLog(t, dir, c.now)
			}
			_, err := l.Answer("a-1", yes(owner))
			if (err == nil) != tt.open || err != nil && !errors.Is(err, gate.ErrExpired) {
				t.Errorf("the answer gave %v, want it to count: %t", err, tt.open)
			}
		})
	}
}

func TestAClockSetBackDoesNotLengthenAPlansTime(t *testing.T) {
	// The process's own clock goes on while the wall's is set back: what Go
	// compares when both times carry it.
	start := time.Now()
	at := start
	l := openLog(t, t.TempDir(), func() time.Time { return at })
	if _, err := l.Ask(plan("a-1"), time.Hour); err != nil {
		t.Fatal(err)
	}
	at = start.Add(61 * time.Minute)
	if _, err := l.Answer("a-1", yes(owner)); !errors.Is(err, gate.ErrExpired) {
		t.Errorf("after 61 minutes of its own clock: %v, want %v", err, gate.ErrExpired)
	}
}

func TestATornEndIsCutOffAndDamageIsRefused(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	l := openLog(t, dir, c.now)
	ask(t, l, "a-1")
	if _, err := l.Answer("a-1", yes(owner)); err != nil {
		t.Fatal(err)
	}
	l.Close()
	path := filepath.Join(dir, "plans.log")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first := bytes.IndexByte(whole, '\n') // records hold newlines; only ends matter here
	for cut := range len(whole) {
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		torn, err := flight.Open(flight.Options{Dir: dir, Now: c.now})
		if err != nil {
			t.Fatalf("cut at %d of %d: %v", cut, len(whole), err)
		}
		if p, ok := torn.Get("a-1"); ok && p.State != flight.Planned {
			t.Fatalf("cut at %d, the plan is %s: half an answer counts", cut, p.State)
		} else if !ok && cut > first*20 {
			t.Fatalf("cut at %d, the plan is gone", cut)
		}
		torn.Close()
	}
	for _, at := range []int{3, 30, 200, len(whole) - 20} {
		bad := bytes.Clone(whole)
		bad[at] ^= 1
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := flight.Open(flight.Options{Dir: dir, Now: c.now}); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("a flipped bit at %d gave %v, want an error", at, err)
		}
	}
}

func TestAnAnswerThatCannotBeWrittenDoesNotCount(t *testing.T) {
	l := openLog(t, t.TempDir(), time.Now)
	ask(t, l, "a-1")
	l.Close() // the disk goes away
	if _, err := l.Answer("a-1", yes(owner)); err == nil {
		t.Error("an answer counts that is on no disk")
	}
	if p, _ := l.Get("a-1"); p.State != flight.Planned {
		t.Errorf("the plan is %s although nothing was written", p.State)
	}
}

// TestAStateOnlyMovesForward drives a log with random calls and restarts, and
// compares it with the few moves that are allowed.
func TestAStateOnlyMovesForward(t *testing.T) {
	next := map[flight.State][]flight.State{
		flight.Planned:  {flight.Approved, flight.Denied, flight.Expired, flight.Failed, flight.Done, flight.Unknown},
		flight.Approved: {flight.Planned, flight.Started, flight.Failed, flight.Done, flight.Unknown},
		flight.Started:  {flight.Done, flight.Failed, flight.Unknown},
		flight.Denied:   {flight.Planned},
	}
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		c := newClock()
		l, err := flight.Open(flight.Options{Dir: dir, Now: c.now})
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { l.Close() }()
		if _, err := l.Ask(plan("p"), time.Hour); err != nil {
			rt.Fatal(err)
		}
		for range rapid.IntRange(1, 12).Draw(rt, "calls") {
			before, _ := l.Get("p")
			switch rapid.IntRange(0, 6).Draw(rt, "call") {
			case 0:
				_, _ = l.Answer("p", yes(owner))
			case 1:
				_, _ = l.Answer("p", flight.Answer{By: owner})
			case 2:
				_ = l.Start("p", "r")
			case 3:
				_ = l.End("p", rapid.SampledFrom([]flight.State{flight.Done, flight.Failed, flight.Unknown}).Draw(rt, "end"), "x")
			case 4:
				_ = l.Withdraw("p")
			case 5:
				c.set(time.Duration(rapid.IntRange(0, 40).Draw(rt, "minutes")) * time.Minute)
				_, _ = l.Pending()
			case 6:
				l.Close()
				if l, err = flight.Open(flight.Options{Dir: dir, Now: c.now}); err != nil {
					rt.Fatal(err)
				}
			}
			after, _ := l.Get("p")
			moved := before.State == after.State
			for _, s := range next[before.State] {
				moved = moved || s == after.State
			}
			if !moved {
				rt.Fatalf("%s became %s", before.State, after.State)
			}
		}
	})
}

func BenchmarkAnswer(b *testing.B) {
	l := openLog(b, b.TempDir(), time.Now)
	for i := 0; b.Loop(); i++ {
		token := fmt.Sprintf("a-%d", i)
		ask(b, l, token)
		if _, err := l.Answer(token, yes(owner)); err != nil {
			b.Fatal(err)
		}
		if err := errors.Join(l.Start(token, "r"), l.End(token, flight.Done, "")); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPending10k(b *testing.B) {
	l, err := flight.Open(flight.Options{Now: time.Now})
	if err != nil {
		b.Fatal(err)
	}
	for i := range 10_000 {
		ask(b, l, fmt.Sprintf("a-%d", i))
	}
	for b.Loop() {
		if plans, err := l.Pending(); err != nil || len(plans) != 10_000 {
			b.Fatal(len(plans), err)
		}
	}
}
