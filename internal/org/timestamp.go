package org

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Timestamp is a parsed Org timestamp. The zero value is "none".
type Timestamp struct {
	// Raw is the timestamp as written, brackets included.
	Raw string
	// Active is true for <…>, false for […].
	Active bool
	// Diary marks <%%(…)>, an Emacs expression that is kept but not understood.
	Diary bool
	// Start and End are wall-clock times, carried in UTC. End equals Start
	// unless Range is set. HasTime tells whether a time of day was given.
	Start, End time.Time
	HasTime    bool
	Range      bool
	Repeat     Interval // +1w, ++1w, .+1w; Mark is empty if there is none
	Habit      Interval // the /3d of .+2d/3d
	Warn       Interval // -3d or --3d
}

// Interval is the repeater, habit or warning part of a timestamp.
type Interval struct {
	Mark string // "+", "++", ".+", "/", "-" or "--"
	N    int
	Unit byte // h d w m y
}

// String prints the interval as Org writes it, "" for none.
func (i Interval) String() string {
	if i.Mark == "" {
		return ""
	}
	return i.Mark + strconv.Itoa(i.N) + string(i.Unit)
}

// IsZero reports whether there is no timestamp.
func (t Timestamp) IsZero() bool { return t.Raw == "" }

// Repeater is the repeater with its habit part, as in "++1w" or ".+2d/3d".
func (t Timestamp) Repeater() string {
	if t.Repeat.Mark == "" {
		return ""
	}
	return t.Repeat.String() + t.Habit.String()
}

// ErrTimestamp is returned for text that is not an Org timestamp.
var ErrTimestamp = errors.New("not an org timestamp")

// ParseTimestamp reads one timestamp or timestamp range.
func ParseTimestamp(raw string) (Timestamp, error) {
	bad := func(why string) (Timestamp, error) {
		return Timestamp{}, fmt.Errorf("%w: %s in %q", ErrTimestamp, why, raw)
	}
	if n := stampLen([]byte(raw)); n == 0 || n != len(raw) {
		return bad("want <YYYY-MM-DD …> or [YYYY-MM-DD …]")
	}
	t := Timestamp{Raw: raw, Active: raw[0] == '<'}
	if strings.HasPrefix(raw, "<%%") {
		t.Diary = true
		return t, nil
	}
	first, second, isRange := strings.Cut(raw, "--"+raw[:1])
	if !t.readHalf(strings.Trim(first, "<>[]"), &t.Start, &t.End) {
		return bad("no such date")
	}
	if isRange {
		var end2 time.Time
		t.Range = true
		if !t.readHalf(strings.Trim(second, "<>[]"), &t.End, &end2) {
			return bad("no such end date")
		}
	}
	return t, nil
}

// readHalf reads "YYYY-MM-DD Day HH:MM-HH:MM +1w -2d" into the timestamp.
func (t *Timestamp) readHalf(s string, start, end *time.Time) bool {
	date, rest, _ := strings.Cut(s, " ")
	d, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return false
	}
	*start, *end = d, d
	for w := range strings.FieldsSeq(rest) {
		if iv, habit, ok := parseInterval(w); ok {
			if iv.Mark[0] == '-' {
				t.Warn = iv
			} else {
				t.Repeat, t.Habit = iv, habit
			}
			continue
		}
		from, to, isRange := strings.Cut(w, "-")
		h, ok := clockTime(from)
		if !ok {
			continue
		}
		t.HasTime = true
		*start = d.Add(h)
		*end = *start
		if h, ok := clockTime(to); isRange && ok {
			t.Range = true
			*end = d.Add(h)
		}
	}
	return true
}

// clockTime reads H:MM or HH:MM.
func clockTime(s string) (time.Duration, bool) {
	hs, ms, ok := strings.Cut(s, ":")
	h, err1 := strconv.Atoi(hs)
	m, err2 := strconv.Atoi(ms)
	if !ok || err1 != nil || err2 != nil || len(ms) != 2 || h < 0 || h > 24 || m < 0 || m > 59 {
		return 0, false
	}
	return time.Duration(h)*time.Hour + time.Duration(m)*time.Minute, true
}

// parseInterval reads "+1w", ".+2d/3d", "--4d".
func parseInterval(w string) (iv, habit Interval, ok bool) {
	for _, mark := range []string{"++", "+", ".+", "--", "-"} {
		if !strings.HasPrefix(w, mark) {
			continue
		}
		n, unit, rest, ok := countUnit(w[len(mark):])
		if !ok {
			return iv, habit, false
		}
		iv = Interval{mark, n, unit}
		if strings.HasPrefix(rest, "/") {
			if n, unit, _, ok := countUnit(rest[1:]); ok {
				habit = Interval{"/", n, unit}
			}
		}
		return iv, habit, true
	}
	return iv, habit, false
}

// countUnit reads "3d" at the start of s.
func countUnit(s string) (n int, unit byte, rest string, ok bool) {
	k := 0
	for k < len(s) && asciiDigit(s[k]) {
		k++
	}
	if k == 0 || k > 9 || k == len(s) || strings.IndexByte("hdwmy", s[k]) < 0 {
		return 0, 0, s, false
	}
	n, _ = strconv.Atoi(s[:k]) // at most nine digits
	return n, s[k], s[k+1:], true
}

// stampLen is the length of the timestamp at the start of line, or 0.
func stampLen(line []byte) int {
	c := bytes.IndexAny(line, "]>")
	return stampEnd(line, c, func(i int) int {
		if j := bytes.IndexAny(line[i:], "]>"); j >= 0 {
			return i + j
		}
		return -1
	}, func() int { return bytes.IndexByte(line, '>') })
}

// stampEnd is the end of the timestamp at the start of b, or 0. first is the
// offset of the first closing bracket (] or >), -1 for none; next finds the one
// at or after an offset and gt the first >: callers remember these searches.
func stampEnd(b []byte, first int, next func(int) int, gt func() int) int {
	if first < 4 || !isStamp(b, first, gt) {
		return 0
	}
	end := first + 1
	if e := end + 3; len(b) > e && b[end] == '-' && b[end+1] == '-' && (b[end+2] == '<' || b[end+2] == '[') {
		if d := dateEnd(b[e:]); d > 0 && e+d < len(b) {
			switch b[e+d] {
			case ']', '>':
				return e + d + 1
			case ' ':
				if c := next(e + d); c >= 0 {
					return c + 1
				}
			}
		}
	}
	return end
}

// isStamp reports whether b starts with one of the three forms Org accepts.
func isStamp(b []byte, first int, gt func() int) bool {
	if d := dateEnd(b[1:]); d > 0 && (1+d == first || b[1+d] == ' ') {
		return true
	}
	if b[0] != '<' {
		return false
	}
	if bytes.HasPrefix(b, []byte("<%%(")) {
		g := gt()
		return g > 5 && bytes.LastIndexByte(b[5:g], ')') >= 0
	}
	return oldRepeater(b, gt)
}

// dateEnd is 10 if b starts with YYYY-MM-DD, else 0.
func dateEnd(b []byte) int {
	const form = "0000-00-00"
	if len(b) < len(form) {
		return 0
	}
	for i := range len(form) {
		if form[i] == '-' && b[i] != '-' || form[i] == '0' && !asciiDigit(b[i]) {
			return 0
		}
	}
	return len(form)
}

// oldRepeater accepts <1-2-3 … +1w>, a form of date only a repeater makes valid.
func oldRepeater(b []byte, gt func() int) bool {
	k := 1
	for i := range 3 {
		s := k
		for k < len(b) && asciiDigit(b[k]) {
			k++
		}
		if k == s || i < 2 && (k == len(b) || b[k] != '-') {
			return false
		}
		if i < 2 {
			k++
		} else {
			k = s + 1
		}
	}
	g := gt()
	if g < k+4 || bytes.IndexByte([]byte("dwmy"), b[g-1]) < 0 {
		return false
	}
	p := g - 2
	for p > k && asciiDigit(b[p]) {
		p--
	}
	return p > k && p < g-2 && b[p] == '+'
}
