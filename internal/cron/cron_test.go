package cron_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	reference "github.com/robfig/cron/v3"

	"passepartout/internal/cron"
)

// zones have changes of an hour and of half an hour, in both hemispheres, at
// midnight, and none at all.
var zones = []string{"America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "America/Santiago", "Africa/Cairo", "Asia/Kolkata"}

// changes are when clocks are changed in a zone within some years.
func changes(loc *time.Location, from, to int) (out []time.Time) {
	t := time.Date(from, 1, 1, 0, 0, 0, 0, loc)
	for {
		_, end := t.ZoneBounds()
		if end.IsZero() || end.Year() > to {
			return out
		}
		out = append(out, end)
		t = end
	}
}

// random makes an expression; the hour is given or left open.
func random(r *rand.Rand, open bool) string {
	pick := func(xs ...string) string { return xs[r.IntN(len(xs))] }
	n := func(lo, hi int) string { return fmt.Sprint(lo + r.IntN(hi-lo+1)) }
	span := func(lo, hi int) string {
		a := lo + r.IntN(hi-lo)
		return fmt.Sprintf("%d-%d", a, a+1+r.IntN(hi-a))
	}
	minute := pick("0", "30", n(0, 59), "*/"+n(1, 30), n(0, 29)+","+n(30, 59), span(0, 59), span(0, 59)+"/7", "*")
	hour := pick("0", "1", "2", "3", n(0, 23), span(0, 23), "1,2,3", "0-4/2", "23,0,1")
	if open {
		hour = pick("*", "*/2", "*/3")
	}
	day := pick("*", "*", "*", n(1, 28), span(1, 31), "*/3", "31", "1,15")
	month := pick("*", "*", "*", n(1, 12), span(1, 12), "jan-jun", "*/2")
	week := pick("*", "*", "*", n(0, 6), span(0, 6), "mon-fri", "sat,sun")
	if day[0] == '*' && len(day) > 1 && week != "*" {
		week = "*" // */3 beside a weekday: programs differ on whether it is given
	}
	return strings.Join([]string{minute, hour, day, month, week}, " ")
}

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

// face is what a clock in the moment's zone shows, as a time in UTC.
func face(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}

// A window is some hours around a change of the clock, minute by minute.
type window struct {
	zone    string
	from    time.Time
	minutes []time.Time // all of them
	first   []time.Time // those at which the clock shows more than ever before
}

func newWindow(zone string, from time.Time, hours int) window {
	w := window{zone: zone, from: from}
	latest := face(from)
	for i := range hours * 60 {
		m := from.Add(time.Duration(i+1) * time.Minute)
		w.minutes = append(w.minutes, m)
		if face(m).After(latest) {
			latest = face(m)
			w.first = append(w.first, m)
		}
	}
	return w
}

// once is what the package promises for a given hour, made the long way: another
// cron says, in a zone without changes, what the clock shows when something is due;
// of all minutes the first that shows it, or the first that shows more, is meant.
func (w window) once(t *testing.T, expr string) (out []time.Time) {
	t.Helper()
	other := another(t, "CRON_TZ=UTC "+expr)
	latest := face(w.first[len(w.first)-1])
	for shown := other.Next(face(w.from)); !shown.After(latest) && !shown.IsZero(); shown = other.Next(shown) {
		i, _ := slices.BinarySearchFunc(w.first, shown, func(m, shown time.Time) int { return face(m).Compare(shown) })
		if len(out) == 0 || !out[len(out)-1].Equal(w.first[i]) {
			out = append(out, w.first[i])
		}
	}
	return out
}

// always is what an open hour means: whatever the clock shows. The other cron
// answers for the zone itself, but where clocks are changed at midnight or by half
// an hour, at which it loses days and hours: there every minute is looked at.
func (w window) always(t *testing.T, expr string) (out []time.Time) {
	t.Helper()
	if w.zone == "Australia/Lord_Howe" || w.zone == "America/Santiago" || w.zone == "Africa/Cairo" {
		other := another(t, "CRON_TZ=UTC "+expr)
		for _, m := range w.minutes {
			if other.Next(face(m).Add(-time.Second)).Equal(face(m)) {
				out = append(out, m)
			}
		}
		return out
	}
	other := another(t, "CRON_TZ="+w.zone+" "+expr)
	for at := other.Next(w.from); !at.IsZero() && !at.After(w.minutes[len(w.minutes)-1]); at = other.Next(at) {
		out = append(out, at)
	}
	return out
}

func another(t *testing.T, expr string) reference.Schedule {
	t.Helper()
	s, err := reference.ParseStandard(expr)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDueTimesAgreeWithAnotherCron(t *testing.T) {
	const hours = 28
	expressions := 600
	switch {
	case testing.Short():
		expressions = 60
	case underRace:
		expressions = 150
	}
	r := rand.New(rand.NewPCG(11, 1))
	var windows []window
	for _, name := range zones {
		loc := zone(t, name)
		windows = append(windows, newWindow(name, time.Date(2026, 6, 29, 12, 7, 0, 0, loc), hours))
		for _, c := range changes(loc, 2026, 2026) {
			windows = append(windows, newWindow(name, c.Add(-14*time.Hour), hours))
		}
	}
	due, differ := 0, 0
	for i := range expressions {
		open := i%3 == 0
		expr := random(r, open)
		for _, w := range windows {
			var want []time.Time
			if open {
				want = w.always(t, expr)
			} else {
				want = w.once(t, expr)
			}
			due += len(want)
			if got := series(t, expr, w.from, hours); !slices.EqualFunc(got, want, time.Time.Equal) {
				if differ++; differ <= 10 {
					t.Errorf("%s in %s from %s:\nwant  %v\nfound %v", expr, w.zone, w.from, want, got)
				}
			}
		}
	}
	t.Logf("%d expressions, %d zones, %d windows of %d hours: %d due times, %d windows differ", expressions, len(zones), len(windows), hours, due, differ)
}

func series(t *testing.T, expr string, from time.Time, hours int) []time.Time {
	t.Helper()
	s, err := cron.Parse(expr, from.Location())
	if err != nil {
		t.Fatal(err)
	}
	var out []time.Time
	for at, ok := s.Next(from); ok && !at.After(from.Add(time.Duration(hours)*time.Hour)); at, ok = s.Next(at) {
		out = append(out, at)
	}
	return out
}

func TestFarDueTimesAgreeWithAnotherCron(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 2))
	asked := 0
	for range 600 {
		expr := random(r, r.IntN(2) == 0)
		ours, err := cron.Parse(expr, time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := reference.ParseStandard("CRON_TZ=UTC " + expr)
		if err != nil {
			t.Fatal(err)
		}
		at := time.Date(2020+r.IntN(10), time.Month(1+r.IntN(12)), 1+r.IntN(28), r.IntN(24), r.IntN(60), r.IntN(60), 0, time.UTC)
		for range 30 {
			want := theirs.Next(at)
			got, ok := ours.Next(at)
			if asked++; want.IsZero() == ok || ok && !got.Equal(want) {
				t.Fatalf("%s after %s: want %s, found %s", expr, at, want, got)
			}
			if !ok {
				break
			}
			at = got
		}
	}
	t.Logf("%d due times agree", asked)
}

func TestChangesOfTheClockAreTreatedAsPromised(t *testing.T) {
	for _, c := range []struct {
		name, expr, zone, from string
		want                   []string
	}{
		{"a skipped time is due at the change", "30 2 * * *", "America/New_York", "2026-03-08T00:00:00-05:00", []string{"2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00"}},
		{"many skipped times are due once", "*/10 2 * * *", "America/New_York", "2026-03-08T00:00:00-05:00", []string{"2026-03-08T03:00:00-04:00", "2026-03-09T02:00:00-04:00"}},
		{"a repeated time is due at first only", "30 1 * * *", "America/New_York", "2026-11-01T00:00:00-04:00", []string{"2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"}},
		{"an open hour goes on", "*/30 * * * *", "America/New_York", "2026-11-01T01:00:00-04:00", []string{"2026-11-01T01:30:00-04:00", "2026-11-01T01:00:00-05:00", "2026-11-01T01:30:00-05:00", "2026-11-01T02:00:00-05:00"}},
		{"a skipped midnight", "@daily", "America/Santiago", "2026-09-05T12:00:00-04:00", []string{"2026-09-06T01:00:00-03:00", "2026-09-07T00:00:00-03:00"}},
		{"half an hour", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00+10:30", []string{"2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"}},
		{"a skipped day", "0 12 * * *", "Pacific/Apia", "2011-12-29T13:00:00-10:00", []string{"2011-12-31T00:00:00+14:00", "2011-12-31T12:00:00+14:00"}},
		{"seconds", "*/20 59 23 * * *", "Europe/Berlin", "2026-01-31T23:59:20+01:00", []string{"2026-01-31T23:59:40+01:00", "2026-02-01T23:59:00+01:00"}},
		{"a leap day", "0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", []string{"2104-02-29T00:00:00Z"}},
		{"either day", "0 0 13 * fri", "UTC", "2026-11-10T00:00:00Z", []string{"2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z"}},
		{"every", "@every 90m", "UTC", "2026-11-10T00:10:00Z", []string{"2026-11-10T01:30:00Z", "2026-11-10T03:00:00Z"}},
		{"its own zone", "CRON_TZ=Asia/Kolkata 0 8 * * *", "UTC", "2026-11-10T00:10:00Z", []string{"2026-11-10T08:00:00+05:30", "2026-11-11T08:00:00+05:30"}},
		{"never", "0 0 30 2 *", "UTC", "2026-11-10T00:10:00Z", []string{""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := cron.Parse(c.expr, zone(t, c.zone))
			if err != nil {
				t.Fatal(err)
			}
			at, err := time.Parse(time.RFC3339, c.from)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				got, ok := s.Next(at)
				if text := got.Format(time.RFC3339); ok && text != want || !ok && want != "" {
					t.Fatalf("after %s: want %q, found %q", at, want, text)
				}
				at = got
			}
		})
	}
}

func TestMistakesInExpressionsAreNamed(t *testing.T) {
	for expr, want := range map[string]string{
		"":                           "found 0 fields",
		"* * * *":                    "found 4 fields",
		"60 * * * *":                 "want 0 to 59",
		"*/0 * * * *":                "step",
		"5-1 * * * *":                "runs backwards",
		"* * 0 * *":                  "want 1 to 31",
		"* * * foo *":                "want 1 to 12",
		"* * * * 8":                  "want 0 to 7",
		"@sometimes":                 "found 1 fields",
		"@every fast":                "whole seconds",
		"@every 100ms":               "whole seconds",
		"CRON_TZ=Mars/One * * * * *": "unknown time zone",
		"CRON_TZ= * * * * *":         "unknown time zone",
		"1,,2 * * * *":               "want 0 to 59",
		"-1 * * * *":                 "want 0 to 59",
	} {
		if _, err := cron.Parse(expr, time.UTC); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: want an error with %q, found %v", expr, want, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"*/5 1-3 * * mon", "@daily", "@every 1h", "CRON_TZ=Europe/Berlin 0 8 29 2 *", "* * * * * *"} {
		f.Add(seed, int64(1_773_000_000))
	}
	f.Fuzz(func(t *testing.T, expr string, unix int64) {
		s, err := cron.Parse(expr, time.UTC)
		if err != nil {
			return
		}
		at := time.Unix(unix%(1<<33), 0)
		if next, ok := s.Next(at); ok && !next.After(at) {
			t.Fatalf("%q: %s is not after %s", expr, next, at)
		}
	})
}

func BenchmarkNext(b *testing.B) {
	s, err := cron.Parse("CRON_TZ=Europe/Berlin 30 7 * * mon-fri", time.UTC)
	if err != nil {
		b.Fatal(err)
	}
	at := time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC)
	for b.Loop() {
		s.Next(at)
	}
}

// A step of more than there is made the sum overflow, and reading the heading ended the
// daemon.
func TestAStepBeyondAllBoundsIsTheFirstValueOnly(t *testing.T) {
	s, err := cron.Parse("1/9223372036854775807 3-4/9223372036854775806 * * *", time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC)
	for range 2 {
		next, ok := s.Next(at)
		if want := time.Date(at.Year(), at.Month(), at.Day(), 3, 1, 0, 0, time.UTC); !ok || !next.Equal(want) {
			t.Fatalf("after %s: want %s, found %s", at, want, next)
		}
		at = at.AddDate(0, 0, 1)
	}
}
