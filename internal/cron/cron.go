// Package cron says when a cron expression is due.
//
// The central type is [Schedule]: [Parse] reads an expression, [Schedule.Next] is
// the first due time after a moment. An expression has five fields (minute, hour,
// day of month, month, day of week) or six with the second in front; @daily and
// the like; or @every with a duration. CRON_TZ=Zone in front of it names a time
// zone.
//
// What happens when clocks are changed, because programs differ in it and people
// are woken by it:
//
//   - Where the hour is given (30 2 * * *), every due time happens once. One that the
//     change skips is due at the moment of the change, once however many are skipped;
//     one that the change repeats is due at its first passing only.
//   - Where the hour is left open (*/10 * * * *, 0 */2 * * *), the clock on the wall
//     is followed: what does not exist is not due, what exists twice is due twice. So
//     a job of every ten minutes keeps running every ten minutes.
//
// The rule a newcomer will break: days are alternatives. With both a day of the
// month and a day of the week given, either suffices; a field that begins with *
// gives none, as in the original.
package cron

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // zones are known wherever the program runs
)

// A Schedule is when something is due. It is immutable.
type Schedule struct {
	text  string
	loc   *time.Location
	every time.Duration // of @every; 0 for fields

	second, minute, hour uint64
	day, month, weekday  uint64
	open                 bool // the hour is left open
	eitherDay            bool // day of month or day of week
}

// String is the expression as it was written.
func (s *Schedule) String() string { return s.text }

// Location is the time zone the fields are read in.
func (s *Schedule) Location() *time.Location { return s.loc }

var short = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// Parse reads an expression. Fields are read in loc unless the expression names a
// zone of its own.
func Parse(text string, loc *time.Location) (*Schedule, error) {
	s := &Schedule{text: strings.Join(strings.Fields(text), " "), loc: loc}
	expr := s.text
	for _, key := range []string{"CRON_TZ=", "TZ="} {
		if rest, ok := strings.CutPrefix(expr, key); ok {
			zone, fields, _ := strings.Cut(rest, " ")
			var err error
			if s.loc, err = time.LoadLocation(zone); err != nil || zone == "" {
				return nil, fmt.Errorf("schedule %q: unknown time zone %q", text, zone)
			}
			expr = fields
			break
		}
	}
	if s.loc == nil {
		return nil, fmt.Errorf("schedule %q: no time zone", text)
	}
	if d, ok := strings.CutPrefix(expr, "@every "); ok {
		return s, s.parseEvery(d)
	}
	if long, ok := short[strings.ToLower(expr)]; ok {
		expr = long
	}
	if err := s.parseFields(strings.Fields(expr)); err != nil {
		return nil, fmt.Errorf("schedule %q: %w", text, err)
	}
	return s, nil
}

func (s *Schedule) parseEvery(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second || d%time.Second != 0 {
		return fmt.Errorf("schedule %q: want @every with whole seconds, such as 10m", s.text)
	}
	s.every = d
	return nil
}

// A field is what one position of an expression may hold.
type field struct {
	name  string
	min   int
	max   int
	names string // three letters each, from min
}

var fields = [6]field{
	{"second", 0, 59, ""},
	{"minute", 0, 59, ""},
	{"hour", 0, 23, ""},
	{"day of the month", 1, 31, ""},
	{"month", 1, 12, "janfebmaraprmayjunjulaugsepoctnovdec"},
	{"day of the week", 0, 7, "sunmontuewedthufrisat"},
}

func (s *Schedule) parseFields(words []string) error {
	switch len(words) {
	case 5:
		words = append([]string{"0"}, words...)
	case 6:
	default:
		return fmt.Errorf("found %d fields: want five, or six with seconds in front", len(words))
	}
	for i, to := range []*uint64{&s.second, &s.minute, &s.hour, &s.day, &s.month, &s.weekday} {
		var err error
		if *to, err = fields[i].parse(words[i]); err != nil {
			return fmt.Errorf("%s: %w", fields[i].name, err)
		}
	}
	const sunday = 1<<0 | 1<<7
	if s.weekday&sunday != 0 {
		s.weekday |= sunday
	}
	free := func(w string) bool { return w[0] == '*' || w[0] == '?' }
	s.open = free(words[2])
	s.eitherDay = !free(words[3]) && !free(words[5])
	return nil
}

// parse reads a list of values, ranges and steps into a set of bits.
func (f field) parse(word string) (uint64, error) {
	var set uint64
	for part := range strings.SplitSeq(word, ",") {
		span, by, stepped := strings.Cut(part, "/")
		step := 1
		if stepped {
			n, err := strconv.Atoi(by)
			if err != nil || n < 1 || by[0] == '+' {
				return 0, fmt.Errorf("step %q: want a number of 1 or more", by)
			}
			step = min(n, f.max+1) // more is as much, and cannot overflow
		}
		lo, hi, err := f.span(span, stepped)
		if err != nil {
			return 0, err
		}
		for v := lo; v <= hi; v += step {
			set |= 1 << v
		}
	}
	return set, nil
}

func (f field) span(text string, stepped bool) (lo, hi int, err error) {
	if text == "*" || text == "?" {
		if f.max == 7 {
			return 0, 6, nil // Sunday once, so that steps count days
		}
		return f.min, f.max, nil
	}
	from, to, isRange := strings.Cut(text, "-")
	if lo, err = f.value(from); err != nil {
		return 0, 0, err
	}
	hi = lo
	switch {
	case isRange:
		if hi, err = f.value(to); err != nil {
			return 0, 0, err
		}
	case stepped:
		hi = f.max // 5/15 means from 5 on
	}
	if f.max == 7 && isRange && hi == 0 && lo > 0 {
		hi = 7 // fri-sun
	}
	if lo > hi {
		return 0, 0, fmt.Errorf("range %q runs backwards", text)
	}
	return lo, hi, nil
}

func (f field) value(text string) (int, error) {
	if len(text) == 3 && f.names != "" {
		if i := strings.Index(f.names, strings.ToLower(text)); i >= 0 && i%3 == 0 {
			return f.min + i/3, nil
		}
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < f.min || n > f.max || text[0] == '+' {
		return 0, fmt.Errorf("%q: want %d to %d", text, f.min, f.max)
	}
	return n, nil
}

// horizon is how many days ahead a due time is looked for: the 29th of February
// can be eight years away.
const horizon = 9 * 366

// Next is the first due time after a moment, in the schedule's zone. It is false
// when there is none, as for the 30th of February.
func (s *Schedule) Next(after time.Time) (time.Time, bool) {
	if s.every > 0 {
		step := int64(s.every / time.Second)
		n := after.Unix() / step
		if after.Unix() < 0 && after.Unix()%step != 0 {
			n--
		}
		return time.Unix((n+1)*step, 0).In(s.loc), true
	}
	at := after.In(s.loc)
	y, m, d := at.Date()
	// A skipped evening is due on the day after, so begin a day early; the day
	// is counted in UTC, where every date exists.
	day := time.Date(y, m, d-1, 0, 0, 0, 0, time.UTC)
	for range horizon {
		if s.month>>day.Month()&1 == 0 {
			day = time.Date(day.Year(), day.Month()+1, 1, 0, 0, 0, 0, time.UTC)
			continue
		}
		if s.onDay(day) {
			if t, ok := s.within(day, after); ok {
				return t, true
			}
		}
		day = day.AddDate(0, 0, 1)
	}
	return time.Time{}, false
}

func (s *Schedule) onDay(day time.Time) bool {
	inMonth, inWeek := s.day>>day.Day()&1 == 1, s.weekday>>day.Weekday()&1 == 1
	if s.eitherDay {
		return inMonth || inWeek
	}
	return inMonth && inWeek
}

// within is the first due time of one date after a moment. The date is walked in
// stretches between changes of the clock; within one, due times are offsets from a
// midnight that may lie outside of it.
func (s *Schedule) within(day, after time.Time) (time.Time, bool) {
	tomorrow := day.AddDate(0, 0, 1)
	passed := day // what the clock has shown so far
	at := wall(day, s.loc)
	for range maxStretches {
		shown := face(at)
		if !s.open && shown.After(passed) && at.After(after) && s.hits(passed.Sub(day), min(shown.Sub(day), wholeDay)) {
			return at, true // skipped by the change
		}
		if !shown.Before(tomorrow) {
			break
		}
		midnight := at.Add(-shown.Sub(day))
		end := midnight.Add(wholeDay)
		_, change := at.ZoneBounds()
		if !change.IsZero() && change.Before(end) {
			end = change
		}
		from := shown.Sub(day)
		if !s.open {
			from = max(from, passed.Sub(day))
		}
		if !after.Before(midnight) {
			from = max(from, after.Sub(midnight).Truncate(time.Second)+time.Second)
		}
		if off, ok := s.first(from); ok && midnight.Add(off).Before(end) {
			return midnight.Add(off), true
		}
		if showed := day.Add(end.Sub(midnight)); showed.After(passed) {
			passed = showed
		}
		if change.IsZero() || change.After(end) {
			break
		}
		at = end.In(s.loc)
	}
	return time.Time{}, false
}

const (
	wholeDay     = 24 * time.Hour
	maxStretches = 8 // more changes of the clock than any day has seen
)

// hits reports whether a time of day from one offset up to another is due.
func (s *Schedule) hits(from, to time.Duration) bool {
	off, ok := s.first(from)
	return ok && off < to
}

// first is the first due time of day from an offset on.
func (s *Schedule) first(offset time.Duration) (time.Duration, bool) {
	from := int(offset / time.Second)
	for h := next(s.hour, from/3600); h < 24; h = next(s.hour, h+1) {
		for m := next(s.minute, max(0, from-h*3600)/60); m < 60; m = next(s.minute, m+1) {
			if sec := next(s.second, max(0, from-h*3600-m*60)); sec < 60 {
				return time.Duration(h*3600+m*60+sec) * time.Second, true
			}
		}
	}
	return 0, false
}

// next is the first member of a set from v on, 64 or more if there is none.
func next(set uint64, v int) int {
	if v > 63 {
		return 64
	}
	return v + bits.TrailingZeros64(set>>v)
}

// wall is the moment at which a clock in the zone shows a time: the earlier one
// where it shows it twice, the moment of the change where it never does. The
// clock's own location is UTC, where every reading exists.
func wall(clock time.Time, loc *time.Location) time.Time {
	y, mo, d := clock.Date()
	h, m, s := clock.Clock()
	t := time.Date(y, mo, d, h, m, s, 0, loc)
	start, until := t.ZoneBounds()
	if !shows(t, clock) {
		if face(t).After(clock) {
			return start.In(loc)
		}
		return until.In(loc)
	}
	if !start.IsZero() {
		_, offset := start.Add(-1).Zone()
		if before := clock.Add(-time.Duration(offset) * time.Second).In(loc); before.Before(start) && shows(before, clock) {
			return before
		}
	}
	return t
}

// face is what a clock shows at a moment, as a time in UTC.
func face(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.Add(time.Duration(offset) * time.Second).UTC()
}

func shows(t, clock time.Time) bool { return face(t).Equal(clock) }

// Wall is the moment at which a clock in the zone shows what t shows in its own:
// the earlier one where that happens twice, the moment of the change where it
// never does.
func Wall(t time.Time, loc *time.Location) time.Time {
	return wall(time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC), loc)
}
