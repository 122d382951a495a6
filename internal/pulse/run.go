package pulse

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// carryOut is one run: the predicate, the record that it begins, the work, the
// record of how it ended.
func (p *Pulse) carryOut(w pending) {
	defer p.runs.Done()
	r := w.run
	job := w.s.Job
	ctx, cancel := context.WithTimeout(p.ctx, job.Timeout)
	defer cancel()
	if fires, done := p.asked(ctx, job, &r); !fires {
		p.over(w, done)
		return
	}
	r.State, r.At = Started, p.o.Now()
	if err := p.log.Put(true, r); err != nil {
		r.State, r.Ended, r.Text = Failed, p.o.Now(), "not begun: "+err.Error()
		p.over(w, r)
		return
	}
	text, err := p.work(ctx, job, r)
	r.State, r.Ended, r.Text = Done, p.o.Now(), text
	switch {
	case err != nil && p.ctx.Err() != nil:
		r.State, r.Text = Failed, "cut short: the daemon was stopped"
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		r.State, r.Text = Failed, fmt.Sprintf("stopped after %s", job.Timeout)
	case err != nil:
		r.State, r.Text = Failed, err.Error()
	}
	if r.State == Failed && r.Attempt <= job.Retries {
		r.Retry = r.Ended.Add(job.Backoff << (r.Attempt - 1))
	}
	p.over(w, r)
}

// asked puts the predicate. When it does not fire, or cannot be put, the run is
// over.
func (p *Pulse) asked(ctx context.Context, job *Job, r *Run) (fires bool, over Run) {
	if r.Manual || r.Attempt > 1 {
		return true, *r
	}
	pa, _ := p.log.past(r.Job)
	fires, mark, err := job.When.ask(ctx, &p.o, p.o.Now(), pa.mark)
	r.Mark = mark
	switch {
	case err != nil:
		r.State, r.Ended, r.Text = Failed, p.o.Now(), fmt.Sprintf("predicate %s: %v", job.When, err)
	case !fires:
		r.State, r.Ended, r.Text = Skipped, p.o.Now(), fmt.Sprintf("nothing to do: %s", job.When)
	default:
		return true, *r
	}
	return false, *r
}

// work calls what is to be done. It recovers, because one job's bug must not take
// the others with it.
func (p *Pulse) work(ctx context.Context, job *Job, r Run) (text string, err error) {
	defer func() {
		if x := recover(); x != nil {
			text, err = "", fmt.Errorf("internal error: %v", x)
		}
	}()
	sensor := "scheduled"
	if isHook(r.Job) {
		sensor = "hook"
	}
	return p.o.Do(ctx, Order{
		Run: r.ID, Job: r.Job, Name: job.Name, Sensor: sensor, Do: job.Do, What: job.What, Text: job.Text, Tier: job.Tier, Quiet: job.Quiet, Due: r.Due,
	})
}

// over records the end of a run and lets the next begin.
func (p *Pulse) over(w pending, r Run) {
	if p.o.Tell != nil {
		p.o.Tell(r, w.s.Quiet)
	}
	err := p.log.Put(r.State != Skipped, r)
	p.mu.Lock()
	delete(p.active, r.ID)
	w.s.running--
	if err != nil {
		p.note(err.Error())
	}
	w.run = r
	if !r.Retry.IsZero() && !p.closed {
		p.retryLater(w)
	}
	if len(w.s.behind) > 0 && w.s.running == 0 {
		next := w.s.behind[0]
		w.s.behind = w.s.behind[1:]
		p.enqueue(next)
	}
	if cur := p.jobs[w.s.ID]; cur == w.s && !p.closed {
		p.schedule(w.s, p.o.Now()) // a series may go on from now
	}
	p.fill()
	p.mu.Unlock()
	p.Wake()
}

// retryLater keeps a failed run for another attempt.
func (p *Pulse) retryLater(w pending) {
	i, _ := slices.BinarySearchFunc(p.retries, w.run.Retry, func(q pending, t time.Time) int { return q.run.Retry.Compare(t) })
	p.retries = slices.Insert(p.retries, i, w)
}

// retrySooner keeps to the pauses of what is tried again when the clock has gone
// back: by the new one they would last until the old one is reached.
func (p *Pulse) retrySooner(now time.Time) {
	for i := range p.retries {
		w := &p.retries[i]
		if pause := w.s.Backoff << (w.run.Attempt - 1); w.run.Retry.After(now.Add(pause)) {
			w.run.Retry = now.Add(pause)
		}
	}
	slices.SortStableFunc(p.retries, func(a, b pending) int { return a.run.Retry.Compare(b.run.Retry) })
}

// again makes a further attempt of a run. The failed one stays in the record, and
// is not tried from there a second time.
func (p *Pulse) again(w pending) {
	old := w.run
	old.Retry = time.Time{}
	records := []Run{old}
	next := Run{
		ID: p.o.NewID("r"), Job: old.Job, Name: old.Name, State: Waiting, Due: old.Due, At: p.o.Now(), Attempt: old.Attempt + 1, Mark: old.Mark, Manual: old.Manual,
	}
	s := p.jobs[w.s.ID]
	if s == nil && isHook(w.s.ID) {
		s = w.s
	}
	if s != nil {
		records = append(records, next) // together, or a crash between them would lose the attempt
	}
	if err := p.log.Put(false, records...); err != nil {
		p.note(err.Error())
	}
	if s != nil {
		p.begin(s, next, true) // the order may have changed since
	}
}

// RunNow runs a job at once, whatever its schedule and predicate say.
func (p *Pulse) RunNow(name string) (Run, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, err := p.find(name)
	if err != nil {
		return Run{}, err
	}
	switch {
	case p.closed:
		return Run{}, errors.New("the daemon is shutting down")
	case !p.allowed(s.Job):
		return Run{}, fmt.Errorf("%s is not allowed yet: passepartout schedule allow %s", s.Name, s.ID)
	case s.running > 0 && s.Overlap != OverlapParallel:
		return Run{}, fmt.Errorf("%s is running already", s.Name)
	}
	now := p.o.Now()
	r := Run{ID: p.o.NewID("r"), Job: s.ID, Name: s.Name, Due: now, At: now, Attempt: 1, Manual: true}
	p.enqueue(pending{s, r})
	p.fill()
	return r, nil
}
