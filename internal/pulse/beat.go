package pulse

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// A Check is something the heartbeat looks after: it keeps a part of the daemon in
// order, or finds out that it is not. It calls no model.
type Check struct {
	Name  string
	Every time.Duration
	Run   func(context.Context) (string, error)
}

// beat is a check with what came of it.
type beat struct {
	Check
	next, at time.Time
	text     string
	failed   bool
	took     time.Duration
	n        int
}

// checkTimeout is how long one check may take.
const checkTimeout = time.Minute

// beat runs the checks until the context ends, one after the other.
func (p *Pulse) beat(ctx context.Context) {
	for ctx.Err() == nil {
		next := p.Beat(ctx, p.o.Now())
		wait := longest
		if !next.IsZero() {
			wait = min(longest, max(time.Second, next.Sub(p.o.Now())))
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		t.Stop()
	}
}

// Beat runs the checks that are due and returns when one is next.
func (p *Pulse) Beat(ctx context.Context, now time.Time) time.Time {
	var next time.Time
	for _, b := range p.beats {
		if ctx.Err() != nil {
			break
		}
		if !b.next.After(now) || b.next.After(now.Add(b.Every)) { // the latter: the clock went back
			p.check(ctx, b, now)
		}
		if next.IsZero() || b.next.Before(next) {
			next = b.next
		}
	}
	return next
}

func (p *Pulse) check(ctx context.Context, b *beat, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	text, err := guarded(ctx, b.Run)
	p.mu.Lock()
	defer p.mu.Unlock()
	was := b.failed
	b.text, b.failed = text, err != nil
	if err != nil {
		b.text = err.Error()
		if !was {
			p.o.Log.Error("heartbeat", "check", b.Name, "error", err)
		}
	}
	b.at, b.next, b.took = now, now.Add(b.Every), p.o.Now().Sub(now)
	b.n++
}

func guarded(ctx context.Context, run func(context.Context) (string, error)) (text string, err error) {
	defer func() {
		if x := recover(); x != nil {
			err = fmt.Errorf("internal error: %v", x)
		}
	}()
	return run(ctx)
}

// A CheckState is how one check stands.
type CheckState struct {
	Name   string
	At     time.Time
	Text   string
	Failed bool
	Times  int
}

// A JobState is how one job or hook stands.
type JobState struct {
	*Job
	Next    time.Time // zero: never, or not in force
	State   string    // "", "paused", "not allowed", "running"
	LastRun Run       // the zero Run: none is remembered
}

// A Status is everything the daemon does in the background.
type Status struct {
	Jobs     []JobState // by next due time
	Hooks    []JobState
	Running  []Run
	Waiting  int
	Retrying int
	Dropped  int // events nobody had time for
	Checks   []CheckState
	Problems []string
}

// Status tells how everything stands.
func (p *Pulse) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	st := Status{Waiting: len(p.queue), Retrying: len(p.retries), Dropped: int(p.dropped.Load())}
	for _, s := range p.jobs {
		st.Jobs = append(st.Jobs, p.state(s))
	}
	slices.SortFunc(st.Jobs, func(a, b JobState) int {
		return cmp.Or(cmp.Compare(order(a), order(b)), a.Next.Compare(b.Next), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	for _, id := range sortedKeys(p.hooks) {
		st.Hooks = append(st.Hooks, p.state(p.hooks[id].scheduled))
	}
	for _, id := range sortedKeys(p.active) {
		st.Running = append(st.Running, p.active[id])
	}
	for _, b := range p.beats {
		st.Checks = append(st.Checks, CheckState{b.Name, b.at, b.text, b.failed, b.n})
	}
	for _, pr := range p.orders.Problems {
		st.Problems = append(st.Problems, pr.Error())
	}
	st.Problems = append(st.Problems, p.problems...)
	return st
}

func order(j JobState) int {
	if j.Next.IsZero() {
		return 1
	}
	return 0
}

func (p *Pulse) state(s *scheduled) JobState {
	js := JobState{Job: s.Job, LastRun: p.log.latest(s.ID)}
	switch {
	case !p.allowed(s.Job):
		js.State = "not allowed"
	case s.Paused || p.choices.paused[s.ID]:
		js.State = "paused"
	case s.running > 0:
		js.State = "running"
		js.Next = s.due
	default:
		js.Next = s.due
	}
	return js
}

// History are the last n runs, newest first, of all jobs or of one.
func (p *Pulse) History(name string, n int) ([]Run, error) {
	if name == "" {
		return p.log.History("", n), nil
	}
	p.mu.Lock()
	o, err := p.order(name)
	p.mu.Unlock()
	if err != nil {
		if runs := p.log.History(name, n); len(runs) > 0 {
			return runs, nil // a job that is gone
		}
		return nil, err
	}
	return p.log.History(o.ID, n), nil
}

// Upcoming are the next n due times of a job.
func (p *Pulse) Upcoming(name string, n int) ([]time.Time, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, err := p.find(name)
	if err != nil {
		return nil, err
	}
	pa := p.past(s)
	at := pa.horizon
	if now := p.o.Now(); now.After(at) {
		at = now
	}
	var out []time.Time
	for due := range pa.open(s.Job, at) {
		if len(out) >= n {
			break
		}
		out = append(out, due)
	}
	return out, nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
