package pulse_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"passepartout/internal/cron"
	"passepartout/internal/pulse"
)

// A ledger is the naive model of a job under a clock that cannot be trusted: which due
// times were carried out, and which were told of at all.
type ledger struct {
	series *cron.Schedule
	ran    map[time.Time]int
	told   map[time.Time]bool
}

func (l *ledger) between(after, until time.Time) (out []time.Time) {
	for due, ok := l.series.Next(after); ok && !due.After(until); due, ok = l.series.Next(due) {
		out = append(out, due.UTC())
	}
	return out
}

// tell writes down a run that ended.
func (l *ledger) tell(r pulse.Run) {
	until := r.Due
	if r.Until.After(until) {
		until = r.Until
	}
	for _, due := range l.between(r.Due.Add(-1), until) {
		l.told[due] = true
	}
}

// TestWhateverTheClockSaysNoDueTimeIsCarriedOutTwiceOrLost lets clocks jump by up to 40
// hours either way, beside restarts and kills. No due time leads to two runs; each one
// the clock has ever passed is told of; and one that comes in its time, watched, is
// carried out unless it was before.
func TestWhateverTheClockSaysNoDueTimeIsCarriedOutTwiceOrLost(t *testing.T) {
	if testing.Short() {
		t.Skip("many clocks: run by make test")
	}
	rounds := 12
	if soak() {
		rounds = 300
	}
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(40, seed))
		pick := func(xs ...string) string { return xs[r.IntN(len(xs))] }
		expr := pick("*/7 * * * *", "0 * * * *", "30 */3 * * *", "15 10 * * *", "0 9 * * mon")
		order := job("J", "", "CRON="+expr, "DO=call x", "CATCHUP="+pick("all", "last", "none", "last 1h", "all 30m"), "OVERLAP="+pick("skip", "queue", "parallel"))
		series, err := cron.Parse(expr, time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		l := &ledger{series: series, ran: map[time.Time]int{}, told: map[time.Time]bool{}}
		b := newBed(t, schedule(order))
		b.do = func(_ context.Context, o pulse.Order) (string, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			l.ran[o.Due.UTC()]++
			return "fine", nil
		}
		options := b.options()
		options.Tell = func(run pulse.Run, _ bool) {
			b.mu.Lock()
			defer b.mu.Unlock()
			l.tell(run)
		}
		if err := b.p.Close(); err != nil {
			t.Fatal(err)
		}
		b.openWith(options)
		furthest := start
		var steps []string
		what := func() string {
			return fmt.Sprintf("seed %d, %s\n%s\n%s", seed, order, strings.Join(steps, ", "), b.story("J"))
		}
		for range 14 {
			step := time.Duration(r.Int64N(int64(40 * time.Hour))).Truncate(time.Second)
			kind := pick("watch", "watch", "watch", "jump", "back", "stop", "kill", "stop back", "kill back")
			steps = append(steps, fmt.Sprint(kind, " ", step))
			from := b.clock()
			to := from.Add(step)
			if strings.HasSuffix(kind, "back") {
				to = from.Add(-step)
			}
			switch {
			case kind == "watch":
				step /= 4
				to = from.Add(step)
				b.pass(to)
				for _, due := range l.between(from, to) {
					if l.ran[due] != 1 && due.After(from) {
						t.Fatalf("%s came in its time, and was carried out %d times: %s", due, l.ran[due], what())
					}
				}
			case strings.HasPrefix(kind, "stop"), strings.HasPrefix(kind, "kill"):
				if strings.HasPrefix(kind, "kill") {
					b.p.Abandon()
				} else if err := b.p.Close(); err != nil {
					t.Fatal(err)
				}
				b.set(to)
				b.openWith(options)
				b.tick(to)
			default:
				b.tick(to)
			}
			if to.After(furthest) {
				furthest = to
			}
			for due, n := range l.ran {
				if n > 1 {
					t.Fatalf("%s was carried out %d times: %s", due, n, what())
				}
			}
			for _, due := range l.between(start, furthest) {
				if !l.told[due] {
					t.Fatalf("nothing is told of %s: %s", due, what())
				}
			}
		}
		if err := b.p.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Found by the soak: a clock 25 hours behind let jobs forget what they had done, and
// when it was set right they did it again.
func TestAClockThatWasFarBehindRepeatsNothing(t *testing.T) {
	b := newBed(t, schedule(job("Hourly", "", "CRON=0 * * * *", "DO=call x")))
	for h := 11; h < 16; h++ {
		b.tick(at(h, 0))
	}
	b.tick(at(15, 10).Add(-40 * time.Hour))
	b.p.Abandon()
	b.open()
	b.tick(at(15, 20))
	b.tick(at(16, 0))
	if got, want := b.story("Hourly"), "done 11:00, done 12:00, done 13:00, done 14:00, done 15:00, done 16:00"; got != want {
		t.Errorf("want %s, found %s", want, got)
	}
}

// What a clock ahead of its time only had told as missed is carried out in its time,
// and what passes unseen after that is made up for as ever.
func TestWhatAClockAheadCalledMissedIsDoneInItsTime(t *testing.T) {
	b := newBed(t, schedule(job("Hourly", "", "CRON=0 * * * *", "DO=call x")))
	b.tick(at(11, 0).Add(20 * time.Hour)) // misses nineteen and does the last
	b.tick(at(11, 30))
	b.tick(at(12, 0))
	if err := b.p.Close(); err != nil {
		t.Fatal(err)
	}
	b.set(at(15, 30))
	b.open()
	var ran []string
	for _, o := range b.orders() {
		ran = append(ran, o.Due.UTC().Format("02 15:04"))
	}
	if got, want := strings.Join(ran, ", "), "17 07:00, 16 12:00, 16 15:00"; got != want {
		t.Errorf("want %s, found %s", want, got)
	}
}

func TestAClockThatBeganIn1970IsSetRightInNoTime(t *testing.T) {
	if testing.Short() {
		t.Skip("fifty years: run by make test")
	}
	b := newBed(t, map[string]string{})
	b.set(time.Unix(60, 0))
	if err := b.p.Close(); err != nil {
		t.Fatal(err)
	}
	b.write("system/schedule.org", job("Busy", "", "CRON=* * * * *", "DO=call x"))
	b.open()
	b.tick(start)
	runs, err := b.p.History("Busy", 10)
	if err != nil || len(runs) != 2 || runs[0].State != pulse.Done || !runs[0].Due.Equal(start) || !strings.Contains(runs[1].Text, "more than were counted") {
		t.Errorf("found %+v, %v", runs, err)
	}
	if n := runs[len(runs)-1].Count; n < 50_000 {
		t.Errorf("%d are counted", n)
	}
}

// A heartbeat, a retry and a hook that wait must not wait for a time that the clock,
// set back by days, reaches only then.
func TestWhatWaitsDoesNotWaitForAClockThatWasWrong(t *testing.T) {
	b := newBed(t, schedule(job("Flaky", "", "CRON=0 * * * *", "DO=call x", "RETRIES=1", "BACKOFF=2m", "CATCHUP=none")))
	if err := b.p.Close(); err != nil {
		t.Fatal(err)
	}
	o := b.options()
	beats := 0
	o.Checks = []pulse.Check{{Name: "c", Every: time.Minute, Run: func(context.Context) (string, error) { beats++; return "", nil }}}
	b.do = func(context.Context, pulse.Order) (string, error) { return "", fmt.Errorf("no") }
	b.openWith(o)
	ahead := at(11, 0).Add(40 * time.Hour)
	b.tick(ahead)
	b.p.Beat(t.Context(), ahead)
	b.tick(at(11, 30))
	b.p.Beat(t.Context(), at(11, 30))
	b.tick(at(11, 32))
	if runs := len(b.orders()); beats != 2 || runs != 2 {
		t.Errorf("%d beats and %d attempts, want 2 and 2", beats, runs)
	}
}
