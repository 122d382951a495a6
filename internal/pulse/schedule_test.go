package pulse_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"passepartout/internal/pulse"
)

func at(hour, minute int) time.Time {
	return time.Date(start.Year(), start.Month(), start.Day(), hour, minute, 0, 0, time.UTC)
}

// TestDueTimesWhileTheDaemonWasOffAreTruthfullyTold stops a daemon over due times,
// once in order and once by force, for each policy.
func TestDueTimesWhileTheDaemonWasOffAreTruthfullyTold(t *testing.T) {
	for _, c := range []struct {
		catchUp string
		back    time.Time
		want    string
	}{
		{"all", at(14, 10), "done 11:00, done 12:00, done 13:00, done 14:00"},
		{"last", at(14, 10), "missed 11:00-13:00×3, done 14:00"},
		{"none", at(14, 10), "missed 11:00-14:00×4"},
		{"none", at(14, 0).Add(20 * time.Second), "missed 11:00-13:00×3, done 14:00"}, // that is in time
		{"last 5m", at(14, 10), "missed 11:00-14:00×4"},
		{"last 30m", at(14, 10), "missed 11:00-13:00×3, done 14:00"},
		{"all 90m", at(14, 10), "missed 11:00-12:00×2, done 13:00, done 14:00"},
		{"2h", at(14, 10), "missed 11:00-13:00×3, done 14:00"},
		{"", at(14, 10), "missed 11:00-13:00×3, done 14:00"},
		{"all", at(10, 40), ""},
	} {
		for _, end := range []string{"stopped", "killed", "killed twice"} {
			t.Run(c.catchUp+" "+end, func(t *testing.T) {
				b := newBed(t, schedule(job("Hourly", "", "CRON=0 * * * *", "DO=call x", "CATCHUP="+c.catchUp)))
				b.tick(at(10, 30))
				leave := func() {
					if end == "stopped" {
						if err := b.p.Close(); err != nil {
							t.Fatal(err)
						}
					} else {
						b.p.Abandon()
					}
				}
				leave()
				b.set(c.back)
				b.open()
				b.tick(c.back)
				if end == "killed twice" {
					leave()
					b.open()
					b.tick(c.back.Add(time.Second))
				}
				if got := b.story("Hourly"); got != c.want {
					t.Errorf("want  %s\nfound %s", c.want, got)
				}
				n := strings.Count(c.want, "done")
				if got := len(b.orders()); got != n {
					t.Errorf("want %d runs, found %d", n, got)
				}
				b.tick(at(15, 0))
				if got := b.story("Hourly"); !strings.HasSuffix(got, "done 15:00") {
					t.Errorf("it does not go on: %s", got)
				}
			})
		}
	}
}

func TestARunThatACrashCutOffIsFailedAndNotRepeated(t *testing.T) {
	for _, retries := range []int{0, 1} {
		t.Run(fmt.Sprint(retries, " retries"), func(t *testing.T) {
			b := newBed(t, schedule(job("Fragile", "", "CRON=0 * * * *", "DO=call x", "BACKOFF=1m", fmt.Sprintf("RETRIES=%d", retries))))
			begun := make(chan struct{})
			b.do = func(ctx context.Context, _ pulse.Order) (string, error) {
				close(begun)
				<-ctx.Done()
				return "", ctx.Err()
			}
			b.set(at(11, 0))
			b.p.Tick(at(11, 0))
			<-begun
			b.p.Abandon()
			b.do = nil
			b.set(at(11, 5))
			b.open()
			b.tick(at(11, 5))
			b.tick(at(11, 7))
			want := "failed 11:00"
			if retries > 0 {
				want += ", done 11:00 #2"
			}
			if got := b.story("Fragile"); got != want {
				t.Errorf("want %s, found %s", want, got)
			}
			runs, err := b.p.History("Fragile", 10)
			if err != nil || !strings.Contains(runs[len(runs)-1].Text, "not known") {
				t.Errorf("the record claims to know: %+v, %v", runs, err)
			}
		})
	}
}

// A reminder does nothing but tell, so it is told again rather than not at all; the order
// is the same, by which whoever must not be told twice knows it.
func TestAReminderThatACrashCutOffIsRepeated(t *testing.T) {
	b := newBed(t, schedule(job("Plants", "", "CRON=0 * * * *")))
	begun := make(chan struct{})
	b.do = func(ctx context.Context, _ pulse.Order) (string, error) {
		close(begun)
		<-ctx.Done()
		return "", ctx.Err()
	}
	b.set(at(11, 0))
	b.p.Tick(at(11, 0))
	<-begun
	b.p.Abandon()
	b.do = nil
	b.set(at(11, 5))
	b.open()
	b.tick(at(11, 5))
	if got, want := b.story("Plants"), "failed 11:00, done 11:00 #2"; got != want {
		t.Errorf("want %s, found %s", want, got)
	}
	if o := b.orders(); len(o) != 2 || o[0].Job != o[1].Job || o[0].Job == "" || !o[0].Due.Equal(o[1].Due) {
		t.Errorf("the orders are %+v", o)
	}
}

func TestRunsThatWaitSurviveACrash(t *testing.T) {
	b := newBed(t, schedule(job("Slow", "", "CRON=0 * * * *", "DO=call x", "OVERLAP=queue")))
	begun := make(chan struct{}, 10)
	b.do = func(ctx context.Context, _ pulse.Order) (string, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return "", ctx.Err()
	}
	b.set(at(11, 0))
	b.p.Tick(at(11, 0))
	<-begun
	b.set(at(12, 0))
	b.p.Tick(at(12, 0)) // waits for the first
	b.p.Abandon()
	b.do = nil
	b.set(at(12, 5))
	b.open()
	b.tick(at(12, 5))
	if got, want := b.story("Slow"), "failed 11:00, done 12:00"; got != want {
		t.Errorf("want %s, found %s", want, got)
	}
}

func TestOverlapIsAsTheJobWants(t *testing.T) {
	for overlap, want := range map[string]string{
		"skip":     "done 11:00, skipped 12:00, skipped 13:00, done 14:00",
		"queue":    "done 11:00, done 12:00, done 13:00, done 14:00",
		"parallel": "done 11:00, done 12:00, done 13:00, done 14:00",
	} {
		t.Run(overlap, func(t *testing.T) {
			b := newBed(t, schedule(job("Slow", "", "CRON=0 * * * *", "DO=call x", "OVERLAP="+overlap)))
			release := make(chan struct{})
			var most, now atomic.Int32
			b.do = func(ctx context.Context, _ pulse.Order) (string, error) {
				if n := now.Add(1); n > most.Load() {
					most.Store(n)
				}
				defer now.Add(-1)
				<-release
				return "", nil
			}
			for h := 11; h <= 13; h++ {
				b.set(at(h, 0))
				b.p.Tick(at(h, 0))
			}
			close(release)
			b.p.Settled()
			b.tick(at(14, 0))
			if got := b.story("Slow"); got != want {
				t.Errorf("want %s, found %s", want, got)
			}
			if overlap != "parallel" && most.Load() > 1 {
				t.Errorf("%d ran at a time", most.Load())
			}
		})
	}
}

func TestAFailedRunIsRetriedWithLongerPauses(t *testing.T) {
	b := newBed(t, schedule(job("Flaky", "", "CRON=0 * * * *", "DO=call x", "RETRIES=2", "BACKOFF=2m")))
	b.do = func(context.Context, pulse.Order) (string, error) { return "", errors.New("no") }
	b.pass(at(11, 30))
	if got, want := b.story("Flaky"), "failed 11:00, failed 11:00 #2, failed 11:00 #3"; got != want {
		t.Errorf("want %s, found %s", want, got)
	}
	runs, _ := b.p.History("Flaky", 3)
	if a, c := runs[1].At.Sub(runs[2].At), runs[0].At.Sub(runs[1].At); a != 2*time.Minute || c != 4*time.Minute {
		t.Errorf("pauses of %s and %s", a, c)
	}
}

func TestAJobThatTakesTooLongIsStopped(t *testing.T) {
	b := newBed(t, schedule(job("Endless", "", "CRON=0 * * * *", "DO=call x", "TIMEOUT=50ms")))
	b.do = func(ctx context.Context, _ pulse.Order) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}
	b.tick(at(11, 0))
	runs, err := b.p.History("Endless", 1)
	if err != nil || len(runs) != 1 || runs[0].State != pulse.Failed || runs[0].Text != "stopped after 50ms" {
		t.Errorf("found %+v, %v", runs, err)
	}
}

func TestAJobThatPanicsFailsAlone(t *testing.T) {
	b := newBed(t, schedule(job("Bad", "", "CRON=0 * * * *", "DO=call x"), job("Good", "", "CRON=0 * * * *", "DO=call y")))
	b.do = func(_ context.Context, o pulse.Order) (string, error) {
		if o.What == "x" {
			panic("oops")
		}
		return "fine", nil
	}
	b.tick(at(11, 0))
	if got := b.story("Bad") + "; " + b.story("Good"); got != "failed 11:00; done 11:00" {
		t.Error(got)
	}
}

func TestClocksThatAreSet(t *testing.T) {
	b := newBed(t, schedule(job("Hourly", "", "CRON=0 * * * *", "DO=call x")))
	b.tick(at(11, 0))
	b.tick(at(12, 0))
	b.tick(at(10, 50)) // an hour back, and a bit
	b.tick(at(11, 0))
	b.tick(at(12, 0))
	if got, want := b.story("Hourly"), "done 11:00, done 12:00"; got != want {
		t.Errorf("set back: want %s, found %s", want, got)
	}
	b.tick(at(13, 0))
	b.tick(at(13, 0).AddDate(1, 0, 0)) // a clock that is wrong by a year, for a moment
	b.tick(at(13, 30))
	b.tick(at(14, 0))
	if got := b.story("Hourly"); !strings.Contains(got, "done 13:00, done 14:00, missed") {
		t.Errorf("set back by a year: %s", got)
	}
}

// Found by the soak: a clock that was far ahead for a moment made what had been done
// before that, under a clock a little ahead, be done again.
func TestAClockThatWasFarAheadRepeatsNothingEither(t *testing.T) {
	b := newBed(t, schedule(job("Hourly", "", "CRON=0 * * * *", "CATCHUP=none", "DO=call x")))
	b.tick(at(11, 0))
	b.tick(at(12, 0))
	b.tick(at(12, 10).AddDate(1, 0, 0))
	b.tick(at(11, 30))
	b.tick(at(12, 0))
	b.tick(at(13, 0))
	if got := b.story("Hourly"); strings.Count(got, "done 12:00") != 1 || !strings.Contains(got, "done 13:00") {
		t.Errorf("set back: %s", got)
	}
}

func TestDatesInHeadingsAreSchedules(t *testing.T) {
	heading := func(title, stamp string) string {
		return "* TODO " + title + " :job:\nSCHEDULED: " + stamp + "\n:PROPERTIES:\n:DO: call x\n:END:\n"
	}
	b := newBed(t, map[string]string{"system/home.org": heading("Every one", "<2026-11-16 Mon 11:00 +1h>") +
		heading("The last", "<2026-11-16 Mon 11:00 ++1h>") +
		heading("From when it was done", "<2026-11-16 Mon 11:00 .+2h>") +
		heading("Once", "<2026-11-16 Mon 12:30>") +
		heading("Delayed", "<2026-11-16 Mon 10:30 ++1d -2h>") +
		strings.Replace(heading("Ahead", "<2026-11-16 Mon 15:00 ++1d -3h>"), "SCHEDULED", "DEADLINE", 1) +
		strings.Replace(heading("Done", "<2026-11-16 Mon 11:00 +1h>"), "TODO", "DONE", 1)})
	b.tick(at(13, 30))
	for name, want := range map[string]string{
		"Every one":             "done 11:00, done 12:00, done 13:00",
		"The last":              "missed 11:00-12:00×2, done 13:00",
		"From when it was done": "missed 11:00, done 13:00",
		"Once":                  "done 12:30",
		"Delayed":               "done 12:30",
		"Ahead":                 "done 12:00",
	} {
		if got := b.story(name); got != want {
			t.Errorf("%s: want %s, found %s", name, want, got)
		}
	}
	if next, err := b.p.Upcoming("From when it was done", 1); err != nil || !next[0].Equal(at(15, 30)) {
		t.Errorf("it goes on at %v, %v", next, err)
	}
	if _, err := b.p.History("Done", 1); err == nil {
		t.Error("a task that is done is no job")
	}
}

func TestJitterSpreadsAndStaysTheSame(t *testing.T) {
	var jobs []string
	for i := range 50 {
		jobs = append(jobs, job(fmt.Sprintf("J%02d", i), "", "CRON=0 * * * *", "DO=call x", "JITTER=10m"))
	}
	b := newBed(t, schedule(jobs...))
	b.tick(at(11, 0))
	first := len(b.orders())
	b.pass(at(11, 10))
	if n := len(b.orders()); first > 10 || n != 50 {
		t.Errorf("%d at once, %d in all", first, n)
	}
}

func TestPausedJobsRestAndSaySo(t *testing.T) {
	b := newBed(t, schedule(job("Hourly", "", "CRON=0 * * * *", "DO=call x")))
	if _, err := b.p.Pause("hourly", true); err != nil {
		t.Fatal(err)
	}
	b.tick(at(12, 30))
	b.p.Abandon()
	b.open()
	b.tick(at(13, 30))
	if _, err := b.p.Pause("Hourly", false); err != nil {
		t.Fatal(err)
	}
	b.tick(at(14, 0))
	if got, want := b.story("Hourly"), "skipped 11:00-13:00×3, done 14:00"; got != want {
		t.Errorf("want %s, found %s", want, got)
	}
	if _, err := b.p.Pause("Hourly", false); err == nil {
		t.Error("resuming what goes on is no error")
	}
}

func TestOrdersOutsideSystemWaitForAYes(t *testing.T) {
	b := newBed(t, map[string]string{
		"notes/a.org":    job("Elsewhere", "", "CRON=0 * * * *", "DO=call x"),
		"notes/mail.org": "#+PROPERTY: x y\n* Mail\n:PROPERTIES:\n:ORIGIN: mail\n:END:\n*" + job("Planted", "", "CRON=* * * * *", "DO=call x")[0:],
	})
	b.tick(at(11, 0))
	if n := len(b.orders()); n != 0 {
		t.Fatalf("%d ran without a yes", n)
	}
	if _, err := b.p.RunNow("Elsewhere"); err == nil {
		t.Error("it can be run by hand without a yes")
	}
	if _, err := b.p.Allow("Elsewhere"); err != nil {
		t.Fatal(err)
	}
	b.tick(at(12, 0))
	if got, want := b.story("Elsewhere"), "done 12:00"; got != want {
		t.Errorf("want %s, found %s", want, got)
	}
	b.write("notes/a.org", job("Elsewhere", "", "CRON=0 * * * *", "DO=call another"))
	b.tick(at(13, 0))
	if n := len(b.orders()); n != 1 {
		t.Errorf("a changed order ran on the old yes: %d", n)
	}
	st := b.p.Status()
	if len(st.Problems) != 1 || !strings.Contains(st.Problems[0], "Planted: text from elsewhere (mail) gives no orders") {
		t.Errorf("problems: %q", st.Problems)
	}
}

func TestMistakesInOrdersAreProblemsAndTheOthersGoOn(t *testing.T) {
	b := newBed(t, schedule(
		job("No time", "", "JOB=t", "DO=call x"), job("Bad cron", "", "CRON=61 * * * *", "DO=call x"), job("Bad do", "", "CRON=0 * * * *", "DO=dance"),
		job("No words", "", "CRON=0 * * * *", "DO=prompt"), job("Bad tier", "words", "CRON=0 * * * *", "TIER=reflex", "DO=prompt"),
		job("Bad args", "(:x", "CRON=0 * * * *", "DO=tool shell"), job("Bad catch-up", "", "CRON=0 * * * *", "DO=call x", "CATCHUP=soon"),
		job("Bad when", "", "CRON=0 * * * *", "DO=call x", "WHEN=moon"), job("Bad limits", "", "CRON=0 * * * *", "DO=call x", "RETRIES=99", "TIMEOUT=-1s", "OVERLAP=maybe"),
		job("Good", "", "CRON=0 * * * *", "DO=call x")))
	b.tick(at(11, 0))
	if n := len(b.orders()); n != 1 {
		t.Errorf("want one run, found %d", n)
	}
	st := b.p.Status()
	if len(st.Problems) != 9 {
		t.Errorf("want 9 problems, found %d:\n%s", len(st.Problems), strings.Join(st.Problems, "\n"))
	}
	for i, want := range []string{"a job wants", "want 0 to 59", "dance", "without words", "tier", "arguments", "soon", "moon", "RETRIES"} {
		if i < len(st.Problems) && !strings.Contains(st.Problems[i], want) {
			t.Errorf("problem %d: want %q in %q", i, want, st.Problems[i])
		}
	}
}

func TestMoreDueTimesThanAreMadeUpForAreToldAsMissed(t *testing.T) {
	for n := 195; n < 205; n++ {
		b := newBed(t, schedule(job("J", "", "CRON=* * * * *", "DO=call x", "CATCHUP=all")))
		b.tick(start.Add(time.Duration(n) * time.Minute))
		missed, done := 0, 0
		runs, err := b.p.History("J", 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range runs {
			if r.State == pulse.Missed {
				missed += r.Count
			} else {
				done++
			}
		}
		if got := len(b.orders()); got != 100 || missed != n-100 {
			t.Errorf("%d due times: %d runs (%d in the history), %d missed", n, got, done, missed)
		}
	}
}
