package pulse

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"passepartout/internal/record"
	"passepartout/internal/sexp"
)

// A State is what became of a due time.
type State string

// The states. A run is waiting, then started, then done or failed; a due time that
// led to no run is missed or skipped. Seen is not about a due time: it says since
// when a job is known.
const (
	Seen    State = "seen"
	Waiting State = "waiting"
	Started State = "started"
	Done    State = "done"
	Failed  State = "failed"
	Missed  State = "missed"
	Skipped State = "skipped"
)

// ended reports whether nothing more will happen.
func (s State) ended() bool { return s == Done || s == Failed || s == Missed || s == Skipped }

// A Run is what became of one due time, or of several in a row that were missed.
type Run struct {
	ID, Job, Name string
	State         State
	Due           time.Time
	After         time.Time // since then it is the first due time that led to no run before; zero: not known
	Until         time.Time // the last of several missed ones
	Count         int       // how many due times this is about; 0 is 1
	At            time.Time // when it began, or was seen not to
	Ended         time.Time
	Attempt       int       // 1 for the first
	Retry         time.Time // when it is tried again; zero for never
	Text          string    // how it ended
	Mark          string    // what its predicate saw
	Timing        string    // for Seen: of which schedule
	Far           time.Time // for Seen: how far the job ever was
	Did           stretches // for Seen: which due times led to a run
	Manual        bool      // a person asked for it
}

// last is the latest due time the run is about.
func (r Run) last() time.Time {
	if r.Until.After(r.Due) {
		return r.Until
	}
	return r.Due
}

// stretch is the time of which the run is the only due time that was open.
func (r Run) stretch() stretch {
	if r.After.IsZero() {
		return stretch{r.Due.Add(-1), r.Due}
	}
	return stretch{r.After, r.Due}
}

// Plist is the run as it is kept and sent.
func (r Run) Plist() sexp.Plist {
	p := sexp.P(sexp.Keyword("RUN"), r.ID, sexp.Keyword("JOB"), r.Job, sexp.Keyword("NAME"), r.Name, sexp.Keyword("STATE"), sexp.Keyword(stateWord(r.State)))
	for _, f := range r.moments() {
		if !f.at.IsZero() {
			p = p.With(f.key, sexp.String(f.at.UTC().Format(time.RFC3339Nano)))
		}
	}
	for _, f := range []struct {
		key sexp.Keyword
		n   int
	}{{"COUNT", r.Count}, {"ATTEMPT", r.Attempt}} {
		if f.n > 1 {
			p = p.With(f.key, sexp.NewInt(int64(f.n)))
		}
	}
	for _, f := range []struct {
		key  sexp.Keyword
		text string
	}{{"TEXT", r.Text}, {"MARK", r.Mark}, {"TIMING", r.Timing}} {
		if f.text != "" {
			p = p.With(f.key, sexp.String(f.text))
		}
	}
	if r.Manual {
		p = p.With("MANUAL", sexp.True)
	}
	if len(r.Did) > 0 {
		p = p.With("DID", sexp.Strings(r.Did.texts()))
	}
	return p
}

func stateWord(s State) string {
	return map[State]string{Seen: "SEEN", Waiting: "WAITING", Started: "STARTED", Done: "DONE", Failed: "FAILED", Missed: "MISSED", Skipped: "SKIPPED"}[s]
}

type moment struct {
	key sexp.Keyword
	at  *time.Time
}

func (r *Run) moments() []moment {
	return []moment{{"DUE", &r.Due}, {"AFTER", &r.After}, {"UNTIL", &r.Until}, {"AT", &r.At}, {"ENDED", &r.Ended}, {"RETRY", &r.Retry}, {"FAR", &r.Far}}
}

func runOf(p sexp.Plist) (Run, error) {
	r := Run{ID: p.Text("RUN"), Job: p.Text("JOB"), Name: p.Text("NAME"), Text: p.Text("TEXT"), Mark: p.Text("MARK"), Timing: p.Text("TIMING"), Attempt: 1}
	word := string(p.Word("STATE"))
	for _, s := range []State{Seen, Waiting, Started, Done, Failed, Missed, Skipped} {
		if stateWord(s) == word {
			r.State = s
		}
	}
	if r.ID == "" || r.Job == "" || r.State == "" {
		return r, fmt.Errorf("want a run with job and state, found %s", p)
	}
	for _, f := range r.moments() {
		if v := p.Text(f.key); v != "" {
			t, err := time.Parse(time.RFC3339Nano, v)
			if err != nil {
				return r, err
			}
			*f.at = t
		}
	}
	for _, f := range []struct {
		key sexp.Keyword
		to  *int
	}{{"COUNT", &r.Count}, {"ATTEMPT", &r.Attempt}} {
		if v, ok := p.Get(f.key); ok {
			n, isInt := v.(sexp.Int)
			if k, fits := n.Int64(); isInt && fits {
				*f.to = int(k)
			}
		}
	}
	_, r.Manual = p.Get("MANUAL")
	v, _ := p.Get("DID")
	l, _ := v.(sexp.List)
	for _, item := range l.Items() {
		text, _ := item.(sexp.String)
		s, err := readStretch(string(text))
		if err != nil {
			return r, err
		}
		r.Did = r.Did.with(s)
	}
	return r, nil
}

// Limits of what is kept.
const (
	logName    = "runs.log"
	keepPerJob = 20     // ended runs of a job that outlive a restart
	keepRuns   = 20_000 // of all jobs
	maxText    = 500    // bytes of an outcome
)

// A past is what the log knows of a job.
type past struct {
	timing  string    // the schedule it was seen with
	horizon time.Time // every due time up to here is dealt with
	far     time.Time // the latest the horizon ever was
	did     stretches // the due times that led to a run
	done    time.Time // when it last ended well
	mark    string    // what its predicate last saw
	runs    []*Run    // oldest first
}

// A Log is the record of runs. It is safe for concurrent use.
type Log struct {
	mu    sync.Mutex   // guards what follows; held while writing, so that file and memory agree
	file  *record.File // nil: forgotten when the program ends
	jobs  map[string]*past
	runs  map[string]*Run
	fault error // a write failed, so what is on disk is not known
}

// OpenLog reads the log in a directory, or makes one; "" keeps it in memory. A torn
// end, which nobody was told of, is cut off. Damage elsewhere is an error: a due time
// that led to a run must not lead to another.
func OpenLog(dir string) (*Log, error) {
	l := &Log{jobs: map[string]*past{}, runs: map[string]*Run{}}
	if dir == "" {
		return l, nil
	}
	path := filepath.Join(dir, logName)
	err := record.Read(path, func(p sexp.Plist) error {
		r, err := runOf(p)
		if err == nil {
			l.take(r)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("what was run is not known: %w", err)
	}
	return l, l.rewrite(path)
}

// take puts a record into memory.
func (l *Log) take(r Run) {
	p := l.jobs[r.Job]
	if p == nil {
		p = &past{}
		l.jobs[r.Job] = p
	}
	if r.State == Seen {
		if r.Timing != p.timing { // due times of another series
			p.did, p.far = nil, time.Time{}
		}
		for _, s := range r.Did {
			p.did = p.did.with(s)
		}
		p.timing, p.horizon, p.far = r.Timing, r.At, later(later(p.far, r.Far), r.At)
		if !r.Ended.IsZero() {
			p.done = r.Ended
		}
		return
	}
	if !r.Manual && !isHook(r.Job) {
		// Later records of a run are no news of where we are, nor is one of a due time
		// that is ahead of the clock: meanwhile that went back.
		if _, known := l.runs[r.ID]; !known && !r.last().After(r.At.Add(setBack)) {
			p.horizon = later(p.horizon, r.last())
		}
		p.far = later(p.far, r.last())
		if r.Until.IsZero() {
			p.did = p.did.with(r.stretch())
		}
	}
	if r.State == Done {
		p.done = r.Ended
	}
	if r.Mark != "" {
		p.mark = r.Mark
	}
	if old, ok := l.runs[r.ID]; ok {
		*old = r
		return
	}
	l.runs[r.ID] = &r
	p.runs = append(p.runs, &r)
	if len(p.runs) > 4*keepPerJob {
		l.trim(p)
	}
}

// trim forgets old ended runs of a job.
func (l *Log) trim(p *past) {
	ended := 0
	kept := p.runs[:0:0]
	for _, r := range slices.Backward(p.runs) {
		if r.State.ended() {
			if ended++; ended > keepPerJob {
				delete(l.runs, r.ID)
				continue
			}
		}
		kept = append(kept, r)
	}
	slices.Reverse(kept)
	p.runs = kept
}

// rewrite replaces the file by what is remembered, and opens it for appending.
func (l *Log) rewrite(path string) error {
	var records []sexp.Plist
	left := keepRuns
	for _, id := range l.jobNames() {
		p := l.jobs[id]
		l.trim(p)
		if left < len(p.runs) && !slices.ContainsFunc(p.runs, func(r *Run) bool { return !r.State.ended() }) {
			p.runs = p.runs[max(0, len(p.runs)-1):]
		}
		left -= len(p.runs)
		for _, r := range p.runs {
			records = append(records, r.Plist())
		}
		// What is remembered of a job may be later than the runs that are left.
		records = append(records, Run{ID: "seen", Job: id, State: Seen, Timing: p.timing, At: p.horizon, Far: p.far, Did: p.did}.Plist())
	}
	var err error
	l.file, err = record.Create(path, records)
	return err
}

func (l *Log) jobNames() []string {
	out := make([]string, 0, len(l.jobs))
	for id := range l.jobs {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

// Put records runs, all or none. With durable they are on disk when it returns; without, they
// are written and may be lost if the machine stops, not if the program does. After
// a failed write nothing more is accepted.
func (l *Log) Put(durable bool, runs ...Run) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fault != nil {
		return l.fault
	}
	if l.file != nil {
		records := make([]sexp.Plist, len(runs))
		for i := range runs {
			if t := runs[i].Text; len(t) > maxText {
				runs[i].Text = string(bytes.ToValidUTF8([]byte(t[:maxText]), nil)) + "…"
			}
			records[i] = runs[i].Plist()
		}
		if err := l.file.Append(durable, records...); err != nil {
			l.fault = fmt.Errorf("the record of runs: %w", err)
			return l.fault
		}
	}
	for _, r := range runs {
		l.take(r)
	}
	return nil
}

// Close lets go of the file.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

// past is what is known of a job.
func (l *Log) past(job string) (past, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p, ok := l.jobs[job]; ok {
		return past{timing: p.timing, horizon: p.horizon, far: p.far, did: p.did, done: p.done, mark: p.mark}, true
	}
	return past{}, false
}

// claim says that due times lead to a run, before the record does. It is forgotten
// with the process, like the run if that is not on disk by then.
func (l *Log) claim(job string, s stretch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.jobs[job]; p != nil {
		p.did = p.did.with(s)
	}
}

// open are the runs that have not ended, oldest first.
func (l *Log) open() []Run {
	return l.pick(func(r *Run) bool { return !r.State.ended() || !r.Retry.IsZero() })
}

func (l *Log) pick(want func(*Run) bool) []Run {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []Run
	for _, r := range l.runs {
		if want(r) {
			out = append(out, *r)
		}
	}
	slices.SortFunc(out, func(a, b Run) int {
		return cmp.Or(a.Due.Compare(b.Due), a.At.Compare(b.At), cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Job, b.Job), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// latest is the last run of a job, the zero Run if there is none.
func (l *Log) latest(job string) Run {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.jobs[job]; p != nil && len(p.runs) > 0 {
		return *p.runs[len(p.runs)-1]
	}
	return Run{}
}

// History are the last n runs, newest first; of one job, if one is named by
// identifier.
func (l *Log) History(job string, n int) []Run {
	all := l.pick(func(r *Run) bool { return job == "" || r.Job == job })
	slices.Reverse(all)
	return all[:min(n, len(all))]
}
