package main_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// history asks a daemon what became of a job's due times, oldest first.
func history(t *testing.T, c *proto.Client, job string) []sexp.Plist {
	t.Helper()
	err := c.Send(proto.Message{Kind: proto.Request, Meta: sexp.P(sexp.Keyword("ID"), 1), Payload: sexp.P(
		sexp.Keyword("ACTION"), sexp.Keyword("SCHEDULE-HISTORY"), sexp.Keyword("NAME"), job, sexp.Keyword("COUNT"), 500)})
	for err == nil {
		var m proto.Message
		if m, err = c.Receive(); err != nil || m.Kind != proto.Response {
			continue
		}
		v, _ := m.Payload.Get("RUNS")
		l, _ := v.(sexp.List)
		var out []sexp.Plist
		for _, x := range l.Items() {
			if p, err := sexp.AsPlist(x.(sexp.List)); err == nil {
				out = append(out, p)
			}
		}
		slices.Reverse(out)
		return out
	}
	t.Fatal(err)
	return nil
}

func when(t *testing.T, p sexp.Plist, key sexp.Keyword) time.Time {
	t.Helper()
	text := p.Text(key)
	if text == "" {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestEverySecondIsAccountedForThoughTheDaemonIsKilled has a real daemon run jobs
// of every second, kills it and stops it over due times, and wants each due time
// in the history once: done, missed, skipped or failed. What is told as done was done.
func TestEverySecondIsAccountedForThoughTheDaemonIsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run by make test")
	}
	rounds := 2
	if os.Getenv("PASSEPARTOUT_SOAK") != "" {
		rounds = 6
	}
	v := newVictim(t)
	policies := []string{"all", "last", "none"}
	var text strings.Builder
	for _, p := range policies {
		text.WriteString("* Job " + p + "\n:PROPERTIES:\n:CRON: * * * * * *\n:CATCHUP: " + p + "\n:DO: tool capture\n:END:\n(:TITLE \"mark of " + p + "\")\n")
	}
	system := filepath.Join(v.home, "memex", "system")
	if err := os.MkdirAll(system, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"schedule.org": text.String(), "permissions.org": "| tool | level |\n|-+-|\n| capture | allow |\n"} {
		if err := os.WriteFile(filepath.Join(system, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var last []sexp.Plist
	for round := range rounds + 1 {
		v.start()
		c, nc := v.connect(ctx)
		begun := time.Now()
		for _, p := range policies { // until each has run since
			for ctx.Err() == nil {
				last = history(t, c, "Job "+p)
				if n := len(last); n > 0 && last[n-1].Word("STATE") == "DONE" && when(t, last[n-1], "DUE").After(begun) {
					break
				}
			}
		}
		if round == rounds {
			for _, p := range policies {
				account(t, v, p, history(t, c, "Job "+p))
			}
		}
		nc.Close()
		if round%2 == 0 {
			v.kill()
		} else if err := v.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		} else if err := v.cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		for off := time.Now(); time.Since(off) < 2500*time.Millisecond && round < rounds; {
			time.Sleep(100 * time.Millisecond) // due times pass while nobody looks
		}
	}
}

// account checks that due times follow each other without gap and repetition.
func account(t *testing.T, v *victim, policy string, runs []sexp.Plist) {
	t.Helper()
	count := map[string]int{}
	var next time.Time
	for _, r := range runs {
		due, until := when(t, r, "DUE"), when(t, r, "UNTIL")
		n := 1
		if c, ok := r.Get("COUNT"); ok {
			k, _ := c.(sexp.Int).Int64()
			n = int(k)
		}
		if until.Before(due) {
			until = due
		}
		if !next.IsZero() && !due.Equal(next) {
			t.Errorf("%s: after %s comes %s: %s", policy, next.Add(-time.Second).Format(time.TimeOnly), due.Format(time.TimeOnly), r)
		}
		if got := int(until.Sub(due)/time.Second) + 1; got != n {
			t.Errorf("%s: %s to %s are %d due times, told as %d", policy, due, until, got, n)
		}
		next = until.Add(time.Second)
		count[strings.ToLower(string(r.Word("STATE")))] += n
	}
	raw, err := os.ReadFile(filepath.Join(v.home, "memex", "inbox", "inbox.org"))
	if err != nil {
		t.Fatal(err)
	}
	marks := strings.Count(string(raw), "mark of "+policy)
	if len(runs) < 20 && (marks < count["done"] || marks > count["done"]+count["failed"]+count["started"]+1) {
		t.Errorf("%s: %d marks, told %v", policy, marks, count)
	}
	t.Logf("%s: %v, %d marks", policy, count, marks)
}
