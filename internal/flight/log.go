package flight

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"passepartout/internal/gate"
	"passepartout/internal/proto"
	"passepartout/internal/record"
	"passepartout/internal/sexp"
)

// logName is the file in the log's directory.
const logName = "plans.log"

// Limits of what is kept.
const (
	keepEnded = 1000                // ended plans that are remembered
	keepFor   = 30 * 24 * time.Hour // and for how long
	maxResult = 500                 // bytes of a result that are kept
)

// Options configure a Log.
type Options struct {
	Dir       string           // "": plans are forgotten when the program ends
	Now       func() time.Time // required
	Approvers Approvers
	Changed   func(Plan) // told of every change, after it is on disk; may be nil; must not block
}

// A Log is the authority on plans. Every change is on disk before it is
// acknowledged. It is safe for concurrent use.
type Log struct {
	o Options

	mu    sync.Mutex   // guards what follows; held while writing, so that records and states agree
	file  *record.File // nil for a log without a directory
	plans map[string]*Plan
	order []string // tokens, oldest first
}

// Open reads the log in a directory, or makes one. A torn end, which nobody was
// told of, is cut off; damage elsewhere is an error, because a plan that has
// started must not look as if it had not.
func Open(o Options) (*Log, error) {
	l := &Log{o: o, plans: map[string]*Plan{}}
	if o.Dir == "" {
		return l, nil
	}
	path := filepath.Join(o.Dir, logName)
	var newest time.Time
	if err := record.Read(path, func(p sexp.Plist) error { return l.load(p, &newest) }); err != nil {
		return nil, fmt.Errorf("what was carried out is not known: %w", err)
	}
	l.restoreDeadlines(newest)
	return l, l.rewrite(path)
}

// load takes a record in, and keeps the time of the newest.
func (l *Log) load(pl sexp.Plist, newest *time.Time) error {
	p, err := planOf(pl)
	if err != nil {
		return err
	}
	for _, e := range p.times() {
		if e.key != "EXPIRES" && e.at.After(*newest) {
			*newest = *e.at
		}
	}
	if old, ok := l.plans[p.Token]; ok && p.Turn.Len() == 0 {
		p.Turn = old.Turn
	}
	l.put(p)
	return nil
}

func (l *Log) put(p Plan) {
	if _, ok := l.plans[p.Token]; !ok {
		l.order = append(l.order, p.Token)
	}
	l.plans[p.Token] = &p
}

// restoreDeadlines gives open plans a deadline by this process's clock. A clock
// that was set back hides how long they waited, so then they have expired.
func (l *Log) restoreDeadlines(newest time.Time) {
	now := l.o.Now()
	for _, p := range l.plans {
		p.deadline = now.Add(p.Expires.Sub(now.Round(0)))
		if now.Round(0).Before(newest) {
			p.deadline = now
		}
	}
}

// expired goes by both clocks: the wall's, which a person sees and can set, and
// the process's own, which nobody can.
func (p *Plan) expired(now time.Time) bool {
	return !now.Before(p.deadline) || !now.Round(0).Before(p.Expires.Round(0))
}

// rewrite replaces the file by one record a plan, without those that ended long
// ago, and opens it for appending.
func (l *Log) rewrite(path string) error {
	now := l.o.Now()
	ended := 0
	kept := l.order[:0:0]
	for _, token := range slices.Backward(l.order) {
		p := l.plans[token]
		if p.State.Ended() {
			p.Turn = sexp.Plist{}
			if ended++; ended > keepEnded || now.Sub(p.Created) > keepFor {
				delete(l.plans, token)
				continue
			}
		}
		kept = append(kept, token)
	}
	slices.Reverse(kept)
	l.order = kept
	records := make([]sexp.Plist, len(l.order))
	for i, token := range l.order {
		records[i] = l.plans[token].Plist()
	}
	var err error
	l.file, err = record.Create(path, records)
	return err
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

// write puts a plan on disk, and then into memory. After a failed write nothing
// more is accepted: half a record may be in the file.
func (l *Log) write(p Plan, whole bool) error {
	if l.file != nil {
		rec := p
		if !whole {
			rec.Turn = sexp.Plist{}
		}
		if err := l.file.Append(true, rec.Plist()); err != nil {
			return fmt.Errorf("the log of plans: %w", err)
		}
	}
	if p.State.Ended() && p.State != Denied { // a denial can still be withdrawn
		p.Turn = sexp.Plist{}
	}
	l.put(p)
	if l.o.Changed != nil {
		l.o.Changed(p)
	}
	return nil
}

// Ask records a new plan. Created, Expires and State are set here.
func (l *Log) Ask(p Plan, ttl time.Duration) (Plan, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.plans[p.Token]; ok || p.Token == "" {
		return Plan{}, fmt.Errorf("plan %q: the token is empty or taken", p.Token)
	}
	now := l.o.Now()
	p.State, p.Created, p.deadline = Planned, now, now.Add(ttl)
	p.Expires = p.deadline.Round(0)
	return p, l.write(p, true)
}

// An Answer is what a person said about a plan.
type Answer struct {
	Yes    bool
	Scope  Scope
	Reason string
	By     proto.Origin
}

// Answer closes a question. Of several answers the first that may count does;
// every other gets an error that says how the plan stands, wrapping
// [gate.ErrNotPending], [gate.ErrNotApprover] or [gate.ErrExpired].
func (l *Log) Answer(token string, a Answer) (Plan, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, err := l.open(token)
	if err != nil {
		return Plan{}, err
	}
	if err := l.o.Approvers.Check(a.By, p.Requester); err != nil {
		return Plan{}, err
	}
	p.State, p.By, p.Scope, p.Reason, p.Answered = Denied, a.By, a.Scope, a.Reason, l.o.Now()
	if a.Yes {
		p.State = Approved
	}
	return p, l.write(p, false)
}

// open is a copy of a plan that still waits; one whose time is over is closed.
func (l *Log) open(token string) (Plan, error) {
	p, ok := l.plans[token]
	if !ok {
		return Plan{}, fmt.Errorf("%w: %q is unknown, or was closed long ago", gate.ErrNotPending, token)
	}
	if p.State == Planned && p.expired(l.o.Now()) {
		if err := l.expire(*p); err != nil {
			return Plan{}, err
		}
		p = l.plans[token]
	}
	switch p.State {
	case Planned:
		return *p, nil
	case Expired:
		return Plan{}, fmt.Errorf("%w: %s", gate.ErrExpired, p.Fate())
	default:
		return Plan{}, fmt.Errorf("%w: %s", gate.ErrNotPending, p.Fate())
	}
}

func (l *Log) expire(p Plan) error {
	p.State, p.Ended = Expired, l.o.Now()
	return l.write(p, false)
}

// Withdraw takes back an answer that could not be acted on, before anything was
// done. The plan waits again.
func (l *Log) Withdraw(token string) error {
	return l.move(token, []State{Approved, Denied}, func(p *Plan) {
		p.State, p.By, p.Scope, p.Reason, p.Answered = Planned, proto.Origin{}, Once, "", time.Time{}
	})
}

// Start records that an approved plan's effect is about to happen.
func (l *Log) Start(token, ruling string) error {
	return l.move(token, []State{Approved}, func(p *Plan) {
		p.State, p.Ruling, p.Started = Started, ruling, l.o.Now()
	})
}

// End records how a plan went: Done, Failed or Unknown.
func (l *Log) End(token string, s State, result string) error {
	if !s.Ended() {
		return fmt.Errorf("plan %s cannot end in the state %s", token, s)
	}
	return l.move(token, []State{Planned, Approved, Started}, func(p *Plan) {
		p.State, p.Result, p.Ended = s, brief(result), l.o.Now()
	})
}

func (l *Log) move(token string, from []State, change func(*Plan)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, ok := l.plans[token]
	if !ok {
		return fmt.Errorf("%w: %q is unknown", gate.ErrNotPending, token)
	}
	if !slices.Contains(from, p.State) {
		return fmt.Errorf("%w: %s", gate.ErrNotPending, p.Fate())
	}
	q := *p
	change(&q)
	return l.write(q, false)
}

// Get returns a plan.
func (l *Log) Get(token string) (Plan, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, ok := l.plans[token]
	if !ok {
		return Plan{}, false
	}
	return *p, true
}

// Pending lists the plans that have not ended, the next to expire first. Those whose
// time is over are closed first.
func (l *Log) Pending() ([]Plan, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.o.Now()
	var open []*Plan // sorted by reference: plans are large
	for _, token := range l.order {
		p := l.plans[token]
		if p.State == Planned && p.expired(now) {
			if err := l.expire(*p); err != nil {
				return nil, err
			}
			continue
		}
		if !p.State.Ended() {
			open = append(open, p)
		}
	}
	slices.SortFunc(open, func(a, b *Plan) int { return cmp.Or(a.Expires.Compare(b.Expires), cmp.Compare(a.Token, b.Token)) })
	out := make([]Plan, len(open))
	for i, p := range open {
		out[i] = *p
	}
	return out, nil
}

// Running lists the plans that were approved and have not ended, oldest first.
func (l *Log) Running() []Plan {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []Plan
	for _, token := range l.order {
		if p := l.plans[token]; p.State == Approved || p.State == Started {
			out = append(out, *p)
		}
	}
	return out
}

// Ended lists at most n plans that ended, the last first.
func (l *Log) Ended(n int) []Plan {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []Plan
	for _, p := range l.plans {
		if p.State.Ended() {
			out = append(out, *p)
		}
	}
	slices.SortFunc(out, func(a, b Plan) int { return cmp.Or(lastOf(b).Compare(lastOf(a)), cmp.Compare(a.Token, b.Token)) })
	return out[:min(n, len(out))]
}

func lastOf(p Plan) time.Time {
	if p.Ended.IsZero() {
		return p.Answered
	}
	return p.Ended
}

// brief is a result's beginning, on one line.
func brief(text string) string {
	text = string(bytes.Join(bytes.Fields([]byte(text)), []byte(" ")))
	if len(text) > maxResult {
		text = string(bytes.ToValidUTF8([]byte(text[:maxResult]), nil)) + "…"
	}
	return text
}
