package pulse

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"passepartout/internal/cron"
	"passepartout/internal/memory"
	"passepartout/internal/org"
	"passepartout/internal/sexp"
)

// A Problem is an order that cannot be read, and why.
type Problem struct {
	File string
	Line int
	Name string
	Err  error
}

func (p Problem) Error() string { return fmt.Sprintf("%s:%d: %s: %v", p.File, p.Line, p.Name, p.Err) }

// Unwrap is why.
func (p Problem) Unwrap() error { return p.Err }

// Places orders are read from. What stands in system/ is the person's: the agent
// asks before it writes there.
const (
	systemDir    = "system/"
	scheduleFile = "system/schedule.org"
	jobTag       = "job"
)

// Orders are all standing orders of a memex.
type Orders struct {
	Jobs     []*Job
	Hooks    []*Hook
	Problems []Problem
}

// A Source reads orders, and reads again only the files that changed.
type Source struct {
	Zone *time.Location // of times that name none
	// Written reports whether an object's text is the agent's own. Such an order
	// waits for a person's yes, wherever it stands. nil: none is.
	Written func(memory.Object) bool

	files map[string]fileOrders
}

type fileOrders struct {
	hash memory.Hash
	Orders
}

// Read returns the orders of a view. The Source belongs to one goroutine.
func (s *Source) Read(v *memory.View) Orders {
	next := make(map[string]fileOrders, len(s.files))
	var all Orders
	for f := range v.FileObjects() {
		known, ok := s.files[f.File]
		if !ok || known.hash != f.Hash {
			known = fileOrders{hash: f.Hash}
			if mayHoldOrders(f.Subtree()) {
				s.file(&known.Orders, f)
			}
		}
		next[f.File] = known
		all.Jobs = append(all.Jobs, known.Jobs...)
		all.Hooks = append(all.Hooks, known.Hooks...)
		all.Problems = append(all.Problems, known.Problems...)
	}
	s.files = next
	return all
}

// mayHoldOrders looks for the words without which there are none. Most files stop
// here.
func mayHoldOrders(text string) bool {
	for _, w := range []string{":JOB:", ":job:", ":CRON:", ":cron:", ":HOOK:", ":hook:", "#+HOOK:", "#+hook:"} {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

func (s *Source) file(to *Orders, f memory.Object) {
	if f.Origin() != "" {
		to.Problems = append(to.Problems, Problem{f.File, 1, f.Title, fmt.Errorf("text from elsewhere (%s) gives no orders", f.Origin())})
		return
	}
	s.keywordHooks(to, f)
	var walk func(memory.Object)
	walk = func(o memory.Object) {
		s.object(to, o)
		for c := range o.Children() {
			walk(c)
		}
	}
	for c := range f.Children() {
		walk(c)
	}
}

func (s *Source) object(to *Orders, o memory.Object) {
	expr, timed := o.Property("CRON")
	_, marked := o.Property("JOB")
	marked = marked || slices.Contains(o.Tags, jobTag)
	event, hooked := o.Property("HOOK")
	if !timed && !marked && !hooked || o.HasTag("ARCHIVE") {
		return
	}
	bad := func(err error) { to.Problems = append(to.Problems, Problem{o.File, o.Line, o.Title, err}) }
	if o.Origin() != "" {
		bad(fmt.Errorf("text from elsewhere (%s) gives no orders", o.Origin()))
		return
	}
	if o.Done {
		return
	}
	if timed || marked {
		if j, err := s.job(o, expr); err != nil {
			bad(err)
		} else {
			to.Jobs = append(to.Jobs, j)
		}
	}
	if hooked {
		if h, err := s.hook(o, event); err != nil {
			bad(err)
		} else {
			to.Hooks = append(to.Hooks, h)
		}
	}
}

// base is what a heading says about an order of either kind.
func (s *Source) base(o memory.Object) (Job, error) {
	j := Job{ID: string(o.ID), Name: o.Title, File: o.File, Line: o.Line, Text: strings.TrimSpace(o.Body())}
	err := j.settings(func(key string) string { v, _ := o.Property(key); return strings.TrimSpace(v) })
	j.NeedsYes = !strings.HasPrefix(o.File, systemDir) || s.Written != nil && s.Written(o)
	return j, err
}

func (s *Source) job(o memory.Object, expr string) (*Job, error) {
	j, err := s.base(o)
	if err != nil {
		return nil, err
	}
	usual := CatchUp{Policy: "last"}
	if expr != "" {
		c, err := cron.Parse(expr, s.Zone)
		if err != nil {
			return nil, err
		}
		j.Schedule = c.String()
		j.from = func(time.Time) func(time.Time) (time.Time, bool) { return c.Next }
	} else if usual, err = j.byDate(o, s.Zone); err != nil {
		return nil, err
	}
	j.CatchUp = usual
	if v, ok := o.Property("CATCHUP"); ok {
		if j.CatchUp, err = ParseCatchUp(v); err != nil {
			return nil, err
		}
	}
	j.timing = digest(j.Schedule, s.Zone.String())
	j.Digest = digest(j.Schedule, j.Name, j.Do, j.What, j.Text, string(j.Tier), j.When.String(), j.CatchUp.Policy)
	return &j, nil
}

// byDate takes the heading's planning: SCHEDULED, else DEADLINE. "+" means that
// every one of the dates counts, the others that only the last does.
func (j *Job) byDate(o memory.Object, zone *time.Location) (CatchUp, error) {
	ts, delay := o.Scheduled, span(o.Scheduled.Warn)
	if ts.IsZero() {
		ts, delay = o.Deadline, -span(o.Deadline.Warn)
	}
	if ts.IsZero() || !ts.Active || ts.Diary {
		return CatchUp{}, fmt.Errorf("a job wants a :CRON: property, or a SCHEDULED or DEADLINE date")
	}
	if ts.Repeat.Mark != "" && ts.Repeat.N <= 0 {
		return CatchUp{}, fmt.Errorf("%s repeats after nothing", ts.Raw)
	}
	j.Schedule = ts.Raw
	j.from = func(done time.Time) func(time.Time) (time.Time, bool) {
		next := dates(ts, zone, done)
		return func(after time.Time) (time.Time, bool) {
			due, ok := next(after.Add(-delay))
			return due.Add(delay), ok
		}
	}
	if ts.Repeat.Mark == "+" {
		return CatchUp{Policy: "all"}, nil
	}
	return CatchUp{Policy: "last"}, nil
}

// span is how long a warning period is, with Org's mean lengths. For a scheduled
// job it is a delay; one with a deadline is due that much ahead of it.
func span(w org.Interval) time.Duration {
	const day = 24 * time.Hour
	unit := map[byte]time.Duration{'h': time.Hour, 'd': day, 'w': 7 * day, 'm': 730 * time.Hour, 'y': 8766 * time.Hour}
	if w.Mark == "" {
		return 0
	}
	return time.Duration(w.N) * unit[w.Unit]
}

// dates is the series of a timestamp in a zone. One marked ".+" goes on from when
// the job was last done.
func dates(ts org.Timestamp, zone *time.Location, done time.Time) func(time.Time) (time.Time, bool) {
	if ts.Repeat.Mark == ".+" && !done.IsZero() {
		if next, err := ts.Repeated(done.In(zone)); err == nil {
			ts = next
		}
	}
	return func(after time.Time) (time.Time, bool) {
		at := after.In(zone)
		shown := time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), time.UTC)
		// Where a clock was set back it shows a time that is already past, so look a
		// little earlier and let the moment decide.
		shown = shown.Add(-3 * time.Hour)
		for range maxTries {
			wall, ok := ts.After(shown)
			if !ok {
				return time.Time{}, false
			}
			if t := cron.Wall(wall, zone); t.After(after) {
				return t, true
			}
			shown = wall
		}
		return time.Time{}, false
	}
}

// maxTries is more dates than lie within the hours looked back over.
const maxTries = 100

// digest tells one version of an order from the next.
func digest(parts ...string) string {
	return sexp.Sum(sexp.Strings(parts)).String()[:24]
}
