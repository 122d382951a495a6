package pulse

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
)

// What a clock says may be wrong, and nobody can tell when it is. So three things
// are remembered of a job, and each answers one question:
//
//   - horizon: where are we? What is due after it is still to come. It goes back with
//     the clock.
//   - far: how far were we ever? Every due time up to here was told of: as a run, or
//     as missed. A clock that was behind and is set right does not tell it again.
//   - did: which due times led to a run? They never do again, whatever the clock says.
//
// A due time that a clock ahead of its time only had told as missed is run when its
// time really comes.

// A stretch is a stretch of time, without its beginning and with its end, of which every
// due time led to a run.
type stretch struct{ after, until time.Time }

// maxStretches is how many stretches are kept of a job. Beyond that the oldest two become
// one: what was missed between them stays missed.
const maxStretches = 64

// A stretches is a list of stretches by time, none of which touch.
type stretches []stretch

// with is the list with one more stretch.
func (ss stretches) with(add stretch) stretches {
	if !add.until.After(add.after) {
		return ss
	}
	out := make(stretches, 0, len(ss)+1)
	for _, s := range ss {
		switch {
		case s.until.Before(add.after):
			out = append(out, s)
		case add.until.Before(s.after):
			out = append(out, add)
			add = s
		default:
			add.after, add.until = earlier(add.after, s.after), later(add.until, s.until)
		}
	}
	out = append(out, add)
	for len(out) > maxStretches {
		out[1].after = out[0].after
		out = out[1:]
	}
	return out
}

// holding is the end of the stretch that holds a moment.
func (ss stretches) holding(t time.Time) (until time.Time, ok bool) {
	i, _ := slices.BinarySearchFunc(ss, t, func(s stretch, t time.Time) int { return s.until.Compare(t) })
	if i < len(ss) && ss[i].after.Before(t) {
		return ss[i].until, true
	}
	return time.Time{}, false
}

// texts is the list as it is kept.
func (ss stretches) texts() []string {
	out := make([]string, len(ss))
	for i, s := range ss {
		out[i] = s.after.UTC().Format(time.RFC3339Nano) + " " + s.until.UTC().Format(time.RFC3339Nano)
	}
	return out
}

func readStretch(text string) (stretch, error) {
	a, b, _ := strings.Cut(text, " ")
	after, err := time.Parse(time.RFC3339Nano, a)
	if err != nil {
		return stretch{}, fmt.Errorf("a stretch of due times: want two times, found %q", text)
	}
	until, err := time.Parse(time.RFC3339Nano, b)
	if err != nil {
		return stretch{}, fmt.Errorf("a stretch of due times: want two times, found %q", text)
	}
	return stretch{after, until}, nil
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// open are the due times of a job after a moment that led to no run, in order and
// without end.
func (pa past) open(j *Job, after time.Time) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		for due, ok := j.Next(after, pa.done); ok; due, ok = j.Next(due, pa.done) {
			if until, did := pa.did.holding(due); did {
				due = until
				continue
			}
			if !yield(due) {
				return
			}
		}
	}
}

// next is the first of the open ones.
func (pa past) next(j *Job, after time.Time) (time.Time, bool) {
	for due := range pa.open(j, after) {
		return due, true
	}
	return time.Time{}, false
}

// from is the moment after which due times count that are open now. Where the clock
// went back and has jumped forward again, what lies between was told of before, and
// only what is just due is still of interest.
func (pa past) from(j *Job, now time.Time) time.Time {
	if !pa.horizon.Before(pa.far) || now.Before(pa.far) {
		return pa.horizon
	}
	return later(pa.horizon, earlier(pa.far, now.Add(-grace-j.Jitter)))
}

// late are the open due times after a moment that have passed: the first, the last ones
// (one more than are made up for, to name the last that is missed), and how many they
// are. A clock that goes from 1970 to today passes more than anybody wants counted, so
// beyond a limit only every other half is looked at.
func (pa past) late(j *Job, from, now time.Time) (first time.Time, last []time.Time, n int) {
	for again := true; again; {
		again = false
		for due := range pa.open(j, from) {
			if due.Add(jitter(j, due)).After(now) {
				break
			}
			if n++; n == 1 {
				first = due
			}
			if last = append(last, due); len(last) >= 2*maxCatchUp {
				last = slices.Delete(last, 0, len(last)-maxCatchUp-1)
			}
			if rest := now.Sub(due); n%maxCounted == 0 && rest > time.Hour {
				from, again = due.Add(rest/2), true
				break
			}
		}
	}
	return first, last, n
}

// overtaken reports whether a later due time led to a run already, under a clock that
// was ahead. Who wants only the last of those that passed has had it.
func (pa past) overtaken(j *Job, due, now time.Time) bool {
	for _, s := range pa.did {
		if !s.until.After(due) {
			continue
		}
		if ran, ok := j.Next(later(s.after, due), pa.done); ok && !ran.After(earlier(s.until, now)) {
			return true
		}
	}
	return false
}

// turnBack lets a job go on from now when the clock is behind what is known of it. It
// is called before each look at what is next, so that a clock that was set while
// nothing ran is found out as well.
func (p *Pulse) turnBack(s *scheduled, pa past, now time.Time) past {
	if !pa.horizon.After(now.Add(setBack)) {
		return pa
	}
	// A series that goes on from when it was last done was done no later than now.
	if pa.done.After(now) {
		pa.done = now
	}
	pa.horizon = now
	r := Run{ID: "seen", Job: s.ID, State: Seen, At: now, Ended: pa.done, Far: pa.far, Did: pa.did, Timing: s.timing}
	if err := p.log.Put(false, r); err != nil {
		p.note(err.Error())
	}
	s.handled = now
	return pa
}
