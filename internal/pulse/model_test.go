package pulse_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"passepartout/internal/cron"
)

// TestEveryDueTimeIsAccountedForOnce lets time pass in random steps, with daemons
// that are stopped and killed, clocks that are set back and jobs that are paused,
// and compares the history with the plain list of due times.
func TestEveryDueTimeIsAccountedForOnce(t *testing.T) {
	rounds := 20
	if soak() {
		rounds = 500
	}
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(11, seed))
		pick := func(xs ...string) string { return xs[r.IntN(len(xs))] }
		expr := pick("* * * * *", "*/7 * * * *", "0 * * * *", "*/20 * * * * *", "30 */3 * * *", "15 10 * * *")
		order := job("J", "", "CRON="+expr, "DO=call x", "CATCHUP="+pick("all", "last", "none", "last 1h", "all 30m"), "OVERLAP="+pick("skip", "queue", "parallel"))
		b := newBed(t, schedule(order))
		var steps []string
		for range 8 {
			step := time.Duration(1+r.IntN(int(5*time.Hour/time.Second))) * time.Second
			what := pick("look", "look", "look", "stop", "kill", "pause", "back")
			steps = append(steps, fmt.Sprint(what, " ", step))
			at := b.clock().Add(step)
			switch what {
			case "stop", "kill":
				if what == "kill" {
					b.p.Abandon()
				} else if err := b.p.Close(); err != nil {
					t.Fatal(err)
				}
				b.set(at)
				b.open()
			case "pause":
				if _, err := b.p.Pause("J", true); err != nil {
					t.Fatal(err)
				}
				b.tick(at)
				if _, err := b.p.Pause("J", false); err != nil {
					t.Fatal(err)
				}
			case "back":
				b.tick(b.clock().Add(-step / 10))
				at = b.clock().Add(step)
			}
			b.tick(at)
		}
		compare(t, b, expr, fmt.Sprintf("seed %d, %s, %v", seed, order, steps))
		if t.Failed() {
			return
		}
		if err := b.p.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// compare wants each due time in the history once. What is older than the history
// reaches is not asked about.
func compare(t *testing.T, b *bed, expr, what string) {
	t.Helper()
	s, err := cron.Parse(expr, time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	runs, err := b.p.History("J", 1000)
	if err != nil {
		t.Fatal(err)
	}
	if len(runs) == 0 {
		if due, ok := s.Next(start); ok && !due.After(b.clock()) {
			t.Errorf("%s: nothing is told", what)
		}
		return
	}
	oldest := start
	if last := 15; len(runs) > last { // twenty are kept, in the order in which they ended
		oldest = runs[last].Due
	}
	told := map[time.Time]int{}
	for _, r := range runs {
		n := 1
		told[r.Due.UTC()]++
		for due, ok := s.Next(r.Due); ok && !due.After(r.Until); due, ok = s.Next(due) {
			told[due.UTC()]++
			n++
		}
		if n != max(1, r.Count) {
			t.Errorf("%s: %s to %s are %d due times, told as %d", what, r.Due, r.Until, n, r.Count)
		}
	}
	for due, ok := s.Next(oldest.Add(-time.Nanosecond)); ok && !due.After(b.clock()); due, ok = s.Next(due) {
		if due.After(start) && told[due.UTC()] != 1 {
			t.Errorf("%s: %s is told %d times\n%s", what, due, told[due.UTC()], b.story("J"))
			return
		}
	}
}
