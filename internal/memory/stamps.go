package memory

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"time"

	"passepartout/internal/org"
)

// stampKind tells where a date stands, which decides how the agenda shows it.
type stampKind uint8

const (
	stampScheduled stampKind = iota + 1
	stampDeadline
	stampPlain // an active timestamp in title, properties or body
	stampRange // <from>--<to>
)

// stamp is a date of a headline, small enough to keep for every one of them.
// Days count from the day 0000-12-31, as Emacs counts.
type stamp struct {
	head      int32
	ts        *org.Timestamp
	day, last int32 // first day, and last one of a range
	every     int32 // repeater, 0 for none
	lead      int32 // days of warning or delay, -1 if not given
	kind      stampKind
	unit      byte // of the repeater: h d w m y
	hour      int8
	clock     int32 // minute of the day, -1 without a time
}

// findStamps collects the dates of all headlines the agenda may show.
func (n *node) findStamps() {
	for h := range n.of.Headlines() {
		r := &n.recs[h.Index()]
		line := h.LineSpan()
		if meta := n.of.Bytes()[line.End:h.BodySpan().Start]; mayBePlanning(meta) {
			n.planStamps(h, r, meta)
		}
		if r.bits&(bitCommented|bitArchived) == 0 && mayHoldDate(n.section(h.Index())) {
			n.plainStamps(h)
		}
	}
}

// mayBePlanning looks at the first letter after the headline line.
func mayBePlanning(b []byte) bool {
	b = bytes.TrimLeft(b, " \t\r\n")
	return len(b) > 0 && strings.IndexByte("SDCsdc", b[0]) >= 0
}

// planStamps reads the planning line. Words are told apart first, because asking
// for a timestamp that is not there is dear.
func (n *node) planStamps(h org.Headline, r *record, line []byte) {
	var s, d org.Timestamp
	if bytes.Contains(line, []byte("SCHEDULED:")) {
		if s = h.Scheduled(); !s.IsZero() {
			r.bits |= bitScheduled
		}
	}
	if bytes.Contains(line, []byte("DEADLINE:")) {
		if d = h.Deadline(); !d.IsZero() {
			r.bits |= bitDeadline
		}
	}
	if r.bits&(bitScheduled|bitDeadline) == 0 || bytes.Contains(bytes.ToUpper(line), []byte("CLOSED:")) {
		if !h.Closed().IsZero() {
			r.bits |= bitClosed
		}
	}
	if r.bits&(bitCommented|bitArchived) == 0 {
		n.addStamp(h, stampDeadline, d)
		n.addStamp(h, stampScheduled, s)
	}
}

// mayHoldDate looks for "<" and a digit, as cheaply as can be.
func mayHoldDate(b []byte) bool {
	for {
		i := bytes.IndexByte(b, '<')
		if i < 0 || i+1 >= len(b) {
			return false
		}
		if c := b[i+1]; c >= '0' && c <= '9' {
			return true
		}
		b = b[i+1:]
	}
}

// plainStamps adds the active timestamps of title, body and properties. Those in
// source blocks, examples and comments are text, not dates; so are clock lines.
func (n *node) plainStamps(h org.Headline) {
	c := h.Contents()
	for _, s := range c.Timestamps {
		n.addRaw(h, s.Raw)
	}
	for _, p := range h.Properties() {
		for v := p.Value; ; {
			i := strings.IndexByte(v, '<')
			if i < 0 {
				break
			}
			v = v[i:]
			end := strings.IndexByte(v, '>')
			if end < 0 {
				break
			}
			n.addRaw(h, v[:end+1])
			v = v[end+1:]
		}
	}
}

func (n *node) addRaw(h org.Headline, raw string) {
	ts, err := org.ParseTimestamp(raw)
	if err != nil {
		return
	}
	kind := stampPlain
	if strings.Contains(raw, "--<") {
		kind = stampRange
	}
	n.addStamp(h, kind, ts)
}

func (n *node) addStamp(h org.Headline, kind stampKind, ts org.Timestamp) {
	if ts.IsZero() || !ts.Active || ts.Diary || ts.Start.IsZero() {
		return
	}
	s := stamp{
		head: int32(h.Index()), ts: &ts, kind: kind,
		day: dayOf(ts.Start), last: dayOf(ts.Start), lead: -1, hour: int8(ts.Start.Hour()), clock: -1,
	}
	if ts.HasTime {
		s.clock = int32(ts.Start.Hour()*60 + ts.Start.Minute())
	}
	if kind == stampRange {
		s.last = dayOf(ts.End)
	}
	if ts.Repeat.Mark != "" && ts.Repeat.N > 0 {
		s.every, s.unit = int32(ts.Repeat.N), ts.Repeat.Unit
	}
	// In running text only a repeater at the very end counts.
	if kind == stampPlain && !strings.HasSuffix(ts.Raw, ts.Repeat.String()+">") {
		s.every = 0
	}
	if ts.Warn.Mark != "" {
		s.lead = leadDays(ts.Warn)
	}
	n.stamps = append(n.stamps, s)
}

// planned is the timestamp of a planning word, which headline i is known to have.
// It was parsed when the file was read, unless the agenda leaves the headline out.
func (n *node) planned(i int, kind stampKind) org.Timestamp {
	k, _ := slices.BinarySearchFunc(n.stamps, int32(i), func(s stamp, i int32) int { return cmp.Compare(s.head, i) })
	for ; k < len(n.stamps) && n.stamps[k].head == int32(i); k++ {
		if n.stamps[k].kind == kind {
			return *n.stamps[k].ts
		}
	}
	if kind == stampDeadline {
		return n.of.Headline(i).Deadline()
	}
	return n.of.Headline(i).Scheduled()
}

// leadDays turns a warning or delay into days, with Emacs's mean lengths.
func leadDays(w org.Interval) int32 {
	switch w.Unit {
	case 'h':
		return int32(float64(w.N) * 0.041667)
	case 'd':
		return int32(w.N)
	case 'w':
		return int32(w.N) * 7
	case 'm':
		return int32(float64(w.N) * 30.4)
	}
	return int32(float64(w.N) * 365.25)
}

// dayOf numbers days: 1 is the first of January of year 1.
func dayOf(t time.Time) int32 {
	y, m, d := t.Date()
	const first = -62135596800 // that day in Unix seconds
	return int32((time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix()-first)/86400) + 1
}

// dateOf is the inverse of dayOf.
func dateOf(day int32) time.Time {
	return time.Date(1, 1, int(day), 0, 0, 0, 0, time.UTC)
}

// occurrence is the repetition of the stamp nearest to a day: the last one up to
// it, or the first one from it if future is set. Without a repeater, or before the
// first date, it is the first date.
func (s *stamp) occurrence(day int32, future bool) int32 {
	if s.every == 0 || day <= s.day {
		return s.day
	}
	var before, after int32
	switch s.unit {
	case 'h':
		missing := (24*(day-s.day) - int32(s.hour)) % s.every
		if missing < 0 {
			missing += s.every
		}
		before = day
		if missing != 0 {
			before = day - (1 + missing/24)
		}
		after = day + (s.every-missing)/24
	case 'd', 'w':
		n := s.every
		if s.unit == 'w' {
			n *= 7
		}
		before = s.day + n*((day-s.day)/n)
		after = before + n
	case 'm':
		before, after = s.months(day)
	default:
		before, after = s.years(day)
	}
	if future {
		if day == before {
			return before
		}
		return after
	}
	if day == after {
		return after
	}
	return before
}

// months steps by whole months; a day the month does not have runs over into the
// next one, as in Emacs.
func (s *stamp) months(day int32) (before, after int32) {
	by, bm, bd := dateOf(s.day).Date()
	ty, tm, td := dateOf(day).Date()
	n := 12*(ty-by) + int(tm-bm)
	if td <= bd {
		n--
	}
	n = n / int(s.every) * int(s.every)
	at := func(n int) int32 { return dayOf(time.Date(by, bm+time.Month(n), bd, 0, 0, 0, 0, time.UTC)) }
	return at(n), at(n + int(s.every))
}

func (s *stamp) years(day int32) (before, after int32) {
	by, bm, bd := dateOf(s.day).Date()
	ty, tm, td := dateOf(day).Date()
	n := ty - by
	if tm < bm || tm == bm && td <= bd {
		n--
	}
	n = n / int(s.every) * int(s.every)
	at := func(n int) int32 { return dayOf(time.Date(by+n, bm, bd, 0, 0, 0, 0, time.UTC)) }
	return at(n), at(n + int(s.every))
}
