package org

import "time"

// Repeated is the timestamp as it stands after its task was done at the given
// time: "+" moves by one step, "++" by as many as it takes to lie in the future,
// ".+" counts from that day. It is what org-auto-repeat-maybe makes of it.
func (t Timestamp) Repeated(now time.Time) (Timestamp, error) {
	if t.Repeat.Mark == "" {
		return t, nil
	}
	return ParseTimestamp(t.next(now))
}

// After is the first date of the timestamp's series that lies after a moment: the
// start, or a repetition counted from the start as the agenda counts. Like Start it
// is what a clock on the wall shows, carried in UTC. It is false when none is left.
func (t Timestamp) After(moment time.Time) (time.Time, bool) {
	switch {
	case t.Diary || t.Start.IsZero():
		return time.Time{}, false
	case moment.Before(t.Start):
		return t.Start, true
	case t.Repeat.Mark == "" || t.Repeat.N <= 0:
		return time.Time{}, false
	}
	n := t.Repeat.N
	hours := int((moment.Unix() - t.Start.Unix()) / 3600) // a Duration ends after 292 years
	switch t.Repeat.Unit {
	case 'm', 'y':
		if t.Repeat.Unit == 'y' {
			n *= 12
		}
		months := 12*(moment.Year()-t.Start.Year()) + int(moment.Month()-t.Start.Month())
		// A month too short runs over, so a date may belong to the month before.
		for k := max(0, months/n-1); ; k++ {
			if d := t.Start.AddDate(0, k*n, 0); d.After(moment) {
				return d, true
			}
		}
	case 'h':
		return Interval{N: (hours/n + 1) * n, Unit: 'h'}.after(t.Start), true
	case 'w':
		n *= 7
	}
	return t.Start.AddDate(0, 0, (hours/24/n+1)*n), true
}
