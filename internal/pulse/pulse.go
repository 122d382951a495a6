package pulse

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"passepartout/internal/memory"
)

// An Order is one run as whoever carries it out sees it.
type Order struct {
	Run    string // also the identifier of the signal, so that what follows from it is known to
	Job    string // its identifier: of the heading, or [HookOf]
	Name   string
	Sensor string // "scheduled" or "hook"
	Do     string
	What   string
	Text   string
	Tier   Tier
	Quiet  bool
	Due    time.Time
}

// Options are what a pulse is put together from. Ask, Written, Tell, Registered and
// Checks may be left out.
type Options struct {
	Dir     string // where runs are recorded; "" forgets them
	Root    string // of the memex
	Now     func() time.Time
	Zone    *time.Location
	View    func() *memory.View
	NewID   func(prefix string) string
	Log     *slog.Logger
	Do      func(context.Context, Order) (string, error)
	Ask     func(ctx context.Context, skill, function string) (bool, error)
	Written func(memory.Object) bool
	// Tell is told of every run that ends, before the record says so: whoever has to
	// pass it on loses nothing to a crash in between, and may hear of it again. Quiet
	// is what its order wants. It must not wait for anything, nor call back.
	Tell func(r Run, quiet bool)
	// Registered names the functions skills want called at an event.
	Registered func(Event) []string
	Checks     []Check
}

// Limits of the pulse.
const (
	maxRuns    = 4               // that go on at a time
	maxCatchUp = 100             // due times of one job that are made up for
	maxWaiting = 1000            // runs that wait for a place
	maxCounted = 50_000          // due times of one look that are counted one by one
	grace      = time.Minute     // by which a due time may be looked at late and is on time
	longest    = time.Minute     // between two looks, so that a clock that was set is noticed
	setBack    = 2 * time.Second // a clock that goes back by less was only adjusted
)

// A scheduled job is one in the queue of due times.
type scheduled struct {
	*Job
	due, fire time.Time // fire is due with jitter
	place     int       // in the heap; -1 when not there
	handled   time.Time // the horizon: what is due up to here is on its way; the record may be behind
	running   int
	behind    []pending // of this job, waiting for it to end
}

// A pending run waits for a place, or for its job.
type pending struct {
	s   *scheduled
	run Run
}

// A Pulse is the background of one memex. It is safe for concurrent use.
type Pulse struct {
	o      Options
	log    *Log
	source Source
	wake   chan struct{}
	events chan Event
	beats  []*beat

	dropped atomic.Int64 // events nobody had time for

	mu         sync.Mutex // guards what follows
	orders     Orders
	rev        uint64 // of the view the orders are from
	read       bool
	jobs       map[string]*scheduled
	hooks      map[string]*hooked
	registered map[string]*hooked // hooks of skills that have run
	timers     timers
	queue      []pending
	retries    []pending // by time
	active     map[string]Run
	chains     chains
	choices    choices
	last       time.Time // the previous look
	closed     bool
	problems   []string

	runs sync.WaitGroup
	ctx  context.Context // of runs; ends with Close
	stop context.CancelFunc
}

// Open reads the record of runs and settles what an earlier process left open.
func Open(o Options) (*Pulse, error) {
	if o.Now == nil || o.View == nil || o.Do == nil || o.NewID == nil || o.Log == nil || o.Zone == nil {
		return nil, errors.New("pulse is missing a part: want clock, zone, view, ids, log and something to do")
	}
	log, err := OpenLog(o.Dir)
	if err != nil {
		return nil, err
	}
	p := &Pulse{
		o: o, log: log, source: Source{Zone: o.Zone, Written: o.Written},
		wake: make(chan struct{}, 1), events: make(chan Event, maxEvents),
		jobs: map[string]*scheduled{}, hooks: map[string]*hooked{}, active: map[string]Run{},
	}
	p.ctx, p.stop = context.WithCancel(context.Background())
	for _, c := range o.Checks {
		p.beats = append(p.beats, &beat{Check: c})
	}
	if p.choices, err = readChoices(o.Dir); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	if err := p.settle(o.Now()); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return p, nil
}

// settle ends what was going on when the last process ended. How far it had come
// nobody knows, and that is what the record says.
func (p *Pulse) settle(now time.Time) error {
	var ended []Run
	for _, r := range p.log.open() {
		if r.State == Started {
			r.State, r.Ended, r.Text = Failed, now, "the daemon ended while it ran: what it had done by then is not known"
			r.Retry = now // if its job wants that, which is not known yet
			ended = append(ended, r)
		}
	}
	return p.log.Put(true, ended...)
}

// Run looks after everything until the context ends, and then waits for what is
// running.
func (p *Pulse) Run(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() { p.beat(ctx) })
	all.Go(func() { p.listen(ctx) })
	for ctx.Err() == nil {
		now := p.o.Now()
		next := p.Tick(now)
		wait := longest
		if !next.IsZero() {
			wait = min(longest, max(0, next.Sub(now)))
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-t.C:
		case <-p.wake:
		}
		t.Stop()
	}
	all.Wait()
}

// Close stops the runs, waits for them and closes the record.
func (p *Pulse) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.stop()
	p.runs.Wait()
	return p.log.Close()
}

// Wake makes the pulse look at once: the memex or the choices have changed. It
// never blocks.
func (p *Pulse) Wake() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Tick deals with everything that is due by now, and returns when something will
// be next; the zero time means nothing is.
func (p *Pulse) Tick(now time.Time) time.Time {
	now = now.Round(0) // the clock on the wall is what may be set
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return time.Time{}
	}
	if err := p.refresh(now); err != nil {
		p.note("orders: " + err.Error())
	}
	if now.Before(p.last.Add(-setBack)) {
		p.o.Log.Warn("the clock was set back", "by", p.last.Sub(now))
		for _, s := range p.jobs {
			p.schedule(s, now)
		}
		p.retrySooner(now)
	}
	p.last = now
	for len(p.timers) > 0 && !p.timers[0].fire.After(now) {
		s := p.timers[0]
		p.look(s, now)
		p.schedule(s, now)
	}
	for len(p.retries) > 0 && !p.retries[0].run.Retry.After(now) {
		again := p.retries[0]
		p.retries = p.retries[1:]
		p.again(again)
	}
	p.fill()
	next := time.Time{}
	if len(p.timers) > 0 {
		next = p.timers[0].fire
	}
	if len(p.retries) > 0 && (next.IsZero() || p.retries[0].run.Retry.Before(next)) {
		next = p.retries[0].run.Retry
	}
	return next
}

// refresh takes up the orders as the memex has them now.
func (p *Pulse) refresh(now time.Time) error {
	v := p.o.View()
	if p.read && v.Rev() == p.rev {
		return nil
	}
	first := !p.read
	p.orders, p.rev, p.read = p.source.Read(v), v.Rev(), true
	known := make(map[string]*scheduled, len(p.orders.Jobs))
	var seen []Run
	var changed []*scheduled
	for _, j := range p.orders.Jobs {
		if known[j.ID] != nil {
			continue
		}
		s := p.jobs[j.ID]
		if s == nil {
			s = &scheduled{place: -1}
		}
		if s.Job == j {
			known[j.ID] = s
			continue
		}
		s.Job = j
		known[j.ID] = s
		changed = append(changed, s)
		p.choices.distrust(j)
		if pa, ok := p.log.past(j.ID); !ok || pa.timing != j.timing {
			seen = append(seen, Run{ID: "seen", Job: j.ID, State: Seen, At: now, Timing: j.timing})
			s.handled = now
		}
	}
	if err := p.log.Put(len(seen) > 0, seen...); err != nil {
		return err
	}
	for id, s := range p.jobs {
		if known[id] == nil && s.place >= 0 {
			heap.Remove(&p.timers, s.place)
		}
	}
	p.jobs = known
	for _, s := range changed {
		p.schedule(s, now)
	}
	p.takeHooks()
	if p.choices.unsaved {
		if err := p.choices.save(); err != nil {
			return err
		}
		p.choices.unsaved = false
	}
	if first {
		p.resume(now)
	}
	return nil
}

// schedule puts a job where its next due time belongs.
func (p *Pulse) schedule(s *scheduled, now time.Time) {
	pa := p.turnBack(s, p.past(s), now)
	due, ok := pa.next(s.Job, pa.horizon)
	if !ok || !p.counts(s.Job) {
		if s.place >= 0 {
			heap.Remove(&p.timers, s.place)
		}
		s.due = time.Time{}
		if ok {
			s.due = due
		}
		return
	}
	s.due, s.fire = due, due.Add(jitter(s.Job, due))
	if s.place < 0 {
		heap.Push(&p.timers, s)
	} else {
		heap.Fix(&p.timers, s.place)
	}
}

// past is what is known of a job, with what is on its way.
func (p *Pulse) past(s *scheduled) past {
	pa, _ := p.log.past(s.ID)
	if s.handled.IsZero() {
		s.handled = pa.horizon
	}
	pa.horizon = s.handled
	pa.far = later(pa.far, pa.horizon)
	return pa
}

// counts reports whether a job is in force.
func (p *Pulse) counts(j *Job) bool {
	return !j.Paused && !p.choices.paused[j.ID] && p.allowed(j)
}

// allowed reports whether a job needs no yes, or has one.
func (p *Pulse) allowed(j *Job) bool {
	return p.choices.allowed[j.Digest] || !j.NeedsYes && !p.choices.distrusted[j.Digest]
}

// jitter spreads jobs that are due at one time; for a job and a due time it is
// always the same.
func jitter(j *Job, due time.Time) time.Duration {
	if j.Jitter <= 0 {
		return 0
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d", j.ID, due.Unix())
	return time.Duration(h.Sum64() % uint64(j.Jitter))
}

// look deals with the due times of a job up to now: which are run, which missed.
func (p *Pulse) look(s *scheduled, now time.Time) {
	pa := p.past(s)
	from := pa.from(s.Job, now)
	s.handled = from
	first, late, n := pa.late(s.Job, from, now)
	if n == 0 {
		return
	}
	s.handled = late[len(late)-1]
	run := wanted(s.Job, late, now)
	if len(run) > 0 && s.CatchUp.Policy != "all" && pa.overtaken(s.Job, run[len(run)-1], now) {
		run = nil
	}
	var records []Run
	if missed := n - len(run); missed > 0 {
		until := late[len(late)-1-len(run)]
		from = until
		records = append(records, Run{
			ID: p.o.NewID("r"), Job: s.ID, Name: s.Name, State: Missed, Due: first, Until: until, Count: missed, At: now, Ended: now,
			Text: missedText(s.Job, pa, now, n),
		})
	}
	runs := make([]Run, len(run))
	for i, due := range run {
		runs[i] = Run{ID: p.o.NewID("r"), Job: s.ID, Name: s.Name, Due: due, After: from, At: now, Attempt: 1}
		from = due
		// The record may come later, and the clock go back meanwhile.
		p.log.claim(s.ID, runs[i].stretch())
		if len(run) > 1 { // or the record of a later one would say that this one was dealt with
			runs[i].State = Waiting
		}
	}
	if len(run) > 1 {
		records = append(records, runs...)
	}
	p.put(records...)
	for _, r := range runs {
		p.begin(s, r, len(run) > 1)
	}
}

func missedText(j *Job, pa past, now time.Time, n int) string {
	text := fmt.Sprintf("not run in time, seen %s; catch-up is %s", now.Sub(pa.horizon).Truncate(time.Second), strings.TrimSpace(j.CatchUp.Policy+" "+windowText(j.CatchUp.Window)))
	if n >= maxCounted {
		text += "; there are more than were counted"
	}
	return text
}

func windowText(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return "within " + d.String()
}

// wanted are the due times that are still to be run, the latest of a list.
func wanted(j *Job, due []time.Time, now time.Time) []time.Time {
	late := func(t time.Time) time.Duration { return now.Sub(t) - j.Jitter }
	last := due[len(due)-1]
	from := len(due) - 1
	switch {
	case late(last) <= grace && j.CatchUp.Policy != "all":
	case j.CatchUp.Policy == "none":
		return nil
	case j.CatchUp.Policy == "all":
		from = max(0, len(due)-maxCatchUp)
	}
	run := due[from:]
	for len(run) > 0 && j.CatchUp.Window > 0 && late(run[0]) > max(grace, j.CatchUp.Window) {
		run = run[1:]
	}
	return run
}

// begin puts a run on its way, as the job's overlap allows. One that belongs to
// others of the same look waits for them. One that is waiting is recorded as that.
func (p *Pulse) begin(s *scheduled, r Run, after bool) {
	busy := s.running > 0 || len(s.behind) > 0
	switch {
	case !busy, s.Overlap == OverlapParallel && !after:
		p.enqueue(pending{s, r})
	case (after || s.Overlap == OverlapQueue) && len(s.behind) < maxCatchUp:
		if r.State != Waiting {
			r.State = Waiting
			p.put(r)
		}
		s.behind = append(s.behind, pending{s, r})
	default:
		r.State, r.Ended, r.Text = Skipped, r.At, "it was still running"
		p.put(r)
	}
}

// enqueue counts a run as its job's, and lets it wait for a place.
func (p *Pulse) enqueue(w pending) {
	if len(p.queue) >= maxWaiting+len(p.jobs) {
		w.run.State, w.run.Ended, w.run.Text = Skipped, w.run.At, "too many runs were waiting"
		p.put(w.run)
		return
	}
	w.s.running++
	if len(p.active) >= maxRuns && w.run.State != Waiting {
		w.run.State = Waiting
		p.put(w.run)
	}
	p.queue = append(p.queue, w)
}

// fill starts what waits while there is room.
func (p *Pulse) fill() {
	for len(p.queue) > 0 && len(p.active) < maxRuns && !p.closed {
		w := p.queue[0]
		p.queue = p.queue[1:]
		p.active[w.run.ID] = w.run
		p.runs.Add(1)
		go p.carryOut(w)
	}
}

// resume takes up what waited when the last process ended.
func (p *Pulse) resume(now time.Time) {
	for _, r := range p.log.open() {
		s := p.jobs[r.Job]
		switch {
		case s == nil || !p.counts(s.Job):
			if r.State == Waiting {
				r.State, r.Ended, r.Text = Missed, now, "the daemon ended before it ran, and the job is no longer in force"
			}
			r.Retry = time.Time{}
			p.put(r)
		case !r.Retry.IsZero() && r.Attempt > s.Retries:
			r.Retry = time.Time{}
			p.put(r)
		case !r.Retry.IsZero():
			p.retryLater(pending{s, r})
		case r.State == Waiting && len(wanted(s.Job, []time.Time{r.Due}, now)) == 1:
			p.begin(s, r, s.running > 0)
		case r.State == Waiting:
			r.State, r.Ended, r.Text = Missed, now, "the daemon ended before it ran"
			p.put(r)
		}
	}
}

// put records runs, all or none, that need no place on disk before something happens.
func (p *Pulse) put(runs ...Run) {
	for _, r := range runs {
		if r.State.ended() && p.o.Tell != nil {
			p.o.Tell(r, p.quiet(r.Job))
		}
	}
	if err := p.log.Put(false, runs...); err != nil {
		p.note(err.Error())
	}
}

// quiet reports whether an order wants nobody told how it went.
func (p *Pulse) quiet(id string) bool {
	if s := p.jobs[id]; s != nil {
		return s.Quiet
	}
	if h := p.hooks[id]; h != nil {
		return h.Quiet
	}
	return p.registered[id] != nil // those of skills are
}

// note remembers a problem for the status, once.
func (p *Pulse) note(text string) {
	if !slices.Contains(p.problems, text) {
		p.o.Log.Error("pulse", "problem", text)
		const most = 20
		p.problems = append(p.problems, text)
		p.problems = p.problems[max(0, len(p.problems)-most):]
	}
}

// timers is a heap of jobs by when they fire.
type timers []*scheduled

func (t timers) Len() int { return len(t) }
func (t timers) Less(i, j int) bool {
	return cmp.Or(t[i].fire.Compare(t[j].fire), cmp.Compare(t[i].ID, t[j].ID)) < 0
}

func (t timers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].place, t[j].place = i, j
}

// Push is part of heap.Interface.
func (t *timers) Push(x any) {
	if s, ok := x.(*scheduled); ok {
		s.place = len(*t)
		*t = append(*t, s)
	}
}

// Pop is part of heap.Interface.
func (t *timers) Pop() any {
	old := *t
	s := old[len(old)-1]
	s.place = -1
	*t = old[:len(old)-1]
	return s
}
