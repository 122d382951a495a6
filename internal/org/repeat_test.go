package org_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"passepartout/internal/org"
)

// repeatOracle asks a real Emacs, one answer a form.
func repeatOracle(t *testing.T, forms []string) []string {
	t.Helper()
	emacs, err := exec.LookPath("emacs")
	if err != nil {
		t.Skip("emacs is not installed")
	}
	in := filepath.Join(t.TempDir(), "forms.el")
	if err := os.WriteFile(in, []byte(strings.Join(forms, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(emacs, "-Q", "--batch", "-l", filepath.Join("testdata", "repeat-oracle.el"), in)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TZ=UTC", "HOME="+t.TempDir())
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("emacs: %v", err)
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) != len(forms) {
		t.Fatalf("want %d answers, found %d", len(forms), len(lines))
	}
	return lines
}

// stamps are timestamps with every kind of repeater, with and without a time of
// day, a range, a warning, a habit; many at ends of months.
func stamps(r *rand.Rand, now time.Time, n int) []string {
	pick := func(xs ...string) string { return xs[r.IntN(len(xs))] }
	var out []string
	for range n {
		d := now.AddDate(0, 0, -r.IntN(1100)+60)
		if r.IntN(3) == 0 {
			d = time.Date(d.Year(), d.Month(), 0, 0, 0, 0, 0, time.UTC) // the last of a month
		}
		s := d.Format("2006-01-02 Mon")
		switch r.IntN(4) {
		case 0, 1:
			s += fmt.Sprintf(" %02d:%02d", r.IntN(24), r.IntN(60))
		case 2:
			h := r.IntN(20)
			s += fmt.Sprintf(" %02d:%02d-%02d:%02d", h, r.IntN(60), h+1+r.IntN(3), r.IntN(60))
		}
		unit := pick("h", "d", "d", "w", "m", "y")
		if unit == "h" { // Emacs wants a time of day, and goes the way to now hour by hour
			s = now.Add(-time.Duration(r.IntN(200)) * time.Hour).Format("2006-01-02 Mon 15:04")
		}
		s += fmt.Sprintf(" %s%d%s", pick("+", "++", ".+"), 1+r.IntN(9), unit)
		if r.IntN(5) == 0 {
			s += pick(" -3d", " -1w")
		}
		out = append(out, "<"+s+">")
	}
	return out
}

func TestDoneTasksMoveOnAsInEmacs(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run by make test")
	}
	const n = 600
	now := time.Now().UTC()
	all := stamps(rand.New(rand.NewPCG(4, 2)), now, n)
	forms := make([]string, n)
	for i, s := range all {
		forms[i] = fmt.Sprintf("(repeat %q)", s)
	}
	before := time.Now().UTC()
	answers := repeatOracle(t, forms)
	after := time.Now().UTC()
	wrong := 0
	for i, want := range answers {
		ts, err := org.ParseTimestamp(all[i])
		if err != nil {
			t.Fatal(err)
		}
		first, err1 := ts.Repeated(before)
		last, err2 := ts.Repeated(after)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if first.Raw != want && last.Raw != want { // a minute or a day may have passed meanwhile
			if wrong++; wrong <= 10 {
				t.Errorf("%s done: Emacs makes it %s, we %s", all[i], want, first.Raw)
			}
		}
	}
	t.Logf("%d timestamps, %d differ", n, wrong)
}

func TestRepetitionsFallOnTheDaysEmacsShows(t *testing.T) {
	const n = 600
	r := rand.New(rand.NewPCG(4, 3))
	var forms []string
	var all []org.Timestamp
	var days []time.Time
	for _, s := range stamps(r, time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC), 2*n) {
		ts, err := org.ParseTimestamp(s)
		if err != nil {
			t.Fatal(err)
		}
		if ts.Repeat.Unit == 'h' || len(all) == n { // the agenda knows days
			continue
		}
		day := ts.Start.Truncate(24*time.Hour).AddDate(0, 0, 1+r.IntN(900))
		all, days = append(all, ts), append(days, day)
		forms = append(forms, fmt.Sprintf("(closest %q %d)", s, day.Unix()/86400+719163))
	}
	wrong := 0
	for i, want := range repeatOracle(t, forms) {
		got, ok := all[i].After(days[i].Add(-time.Nanosecond))
		number := got.Unix()/86400 + 719163
		if !ok || want != strconv.FormatInt(number, 10) {
			if wrong++; wrong <= 10 {
				t.Errorf("%s from %s: Emacs says day %s, we say %d (%s)", all[i].Raw, days[i].Format(time.DateOnly), want, number, got)
			}
		}
	}
	t.Logf("%d timestamps, %d differ", len(all), wrong)
}

func TestASeriesIsCountedFromItsStart(t *testing.T) {
	for _, c := range []struct{ stamp, after, want string }{
		{"<2026-01-31 Sat 08:00 +1m>", "2026-01-31 08:00", "2026-03-03 08:00"},
		{"<2026-01-31 Sat 08:00 +1m>", "2026-03-03 08:00", "2026-03-31 08:00"},
		{"<2026-01-01 Thu 08:00 +36h>", "2026-01-01 08:00", "2026-01-02 20:00"},
		{"<2026-01-01 Thu 08:00 +1d>", "2025-06-01 00:00", "2026-01-01 08:00"},
		{"<2026-01-01 Thu 08:00 ++2w>", "2026-01-15 07:59", "2026-01-15 08:00"},
		{"<2024-02-29 Thu +1y>", "2024-03-01 00:00", "2025-03-01 00:00"},
		{"<2026-01-01 Thu 08:00>", "2026-01-01 08:00", ""},
		{"<2026-01-01 Thu 08:00 +0d>", "2026-01-01 08:00", ""},
	} {
		ts, err := org.ParseTimestamp(c.stamp)
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse("2006-01-02 15:04", c.after)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := ts.After(at)
		if text := got.Format("2006-01-02 15:04"); ok != (c.want != "") || ok && text != c.want {
			t.Errorf("%s after %s: want %q, found %q", c.stamp, c.after, c.want, text)
		}
	}
}

// TestALongSeriesEnds: what a Duration cannot hold, 292 years, must neither send a
// date back in time nor keep a task from ever being done.
func TestALongSeriesEnds(t *testing.T) {
	now := time.Date(2026, 11, 1, 12, 30, 0, 0, time.UTC)
	for raw, want := range map[string]string{
		"<1600-01-01 Sat +1d>":        "2026-11-02 00:00",
		"<1600-01-01 Sat +2w>":        "2026-11-07 00:00",
		"<1600-01-01 Sat 00:00 +1h>":  "2026-11-01 13:00",
		"<2026-10-31 Sat ++2999999h>": "2369-01-25 23:00",
	} {
		ts, err := org.ParseTimestamp(raw)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := ts.After(now); !ok || got.Format("2006-01-02 15:04") != want {
			t.Errorf("%s: want %s, found %s", raw, want, got.Format("2006-01-02 15:04"))
		}
		if _, err := ts.Repeated(now); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
}
