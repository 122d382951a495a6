package flight

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"passepartout/internal/gate"
	"passepartout/internal/proto"
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

	mu    sync.Mutex // guards what follows; held while writing, so that records and states agree
	file  *os.File   // nil for a log without a directory
	plans map[string]*Plan
	order []string // tokens, oldest first
	fault error    // a write failed, so what is on disk is not known
}

// Open reads the log in a directory, or makes one. A torn end, which nobody was
// told of, is cut off; damage elsewhere is an error, because a plan that has
// started must not look as if it had not.
func Open(o Options) (*Log, error) {
	l := &Log{o: o, plans: map[string]*Plan{}}
	if o.Dir == "" {
		return l, nil
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(o.Dir, logName)
	raw, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	newest, err := l.load(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	l.restoreDeadlines(newest)
	if err := l.rewrite(path); err != nil {
		return nil, err
	}
	return l, nil
}

// frame is a record as it stands in the file: length, checksum, text.
func frame(text []byte) []byte {
	return fmt.Appendf(make([]byte, 0, len(text)+19), "%08x %08x %s\n", len(text), crc32.ChecksumIEEE(text), text)
}

// next takes the first record off raw; ok is false when there is no whole one. A
// record that has its length and its end, and not its checksum, comes with its
// text: that one is damaged, not torn.
func next(raw []byte) (text, rest []byte, ok bool) {
	const head = 18
	if len(raw) < head {
		return nil, nil, false
	}
	n, err1 := strconv.ParseUint(string(raw[:8]), 16, 32)
	sum, err2 := strconv.ParseUint(string(raw[9:17]), 16, 32)
	end := head + int(n)
	if err1 != nil || err2 != nil || end >= len(raw) || raw[end] != '\n' {
		return nil, nil, false
	}
	text = raw[head:end]
	return text, raw[end+1:], uint64(crc32.ChecksumIEEE(text)) == sum
}

// load takes the records in. It returns the time of the newest.
func (l *Log) load(raw []byte) (newest time.Time, err error) {
	for n := 1; len(raw) > 0; n++ {
		text, rest, ok := next(raw)
		if !ok {
			if text != nil || wholeRecordIn(raw) {
				return newest, fmt.Errorf("record %d is damaged: what was carried out is not known; move the file away to start afresh", n)
			}
			return newest, nil // torn
		}
		pl, err := sexp.ReadPlist(text, sexp.Limits{})
		if err != nil {
			return newest, fmt.Errorf("record %d: %w", n, err)
		}
		p, err := planOf(pl)
		if err != nil {
			return newest, fmt.Errorf("record %d: %w", n, err)
		}
		for _, e := range p.times() {
			if e.key != "EXPIRES" && e.at.After(newest) {
				newest = *e.at
			}
		}
		if old, ok := l.plans[p.Token]; ok && p.Turn.Len() == 0 {
			p.Turn = old.Turn
		}
		l.put(p)
		raw = rest
	}
	return newest, nil
}

// wholeRecordIn reports whether a whole record begins anywhere after a newline.
func wholeRecordIn(raw []byte) bool {
	for {
		i := bytes.IndexByte(raw, '\n')
		if i < 0 {
			return false
		}
		raw = raw[i+1:]
		if _, _, ok := next(raw); ok {
			return true
		}
	}
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
	var buf bytes.Buffer
	for _, token := range l.order {
		buf.Write(frame([]byte(l.plans[token].Plist().String())))
	}
	f, err := os.CreateTemp(filepath.Dir(path), logName+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(buf.Bytes())
	if err = errors.Join(err, f.Sync()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		return errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	l.file = f
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Close lets go of the file.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file, l.fault = nil, errors.New("the log of plans is closed")
	return err
}

// write puts a plan on disk, and then into memory. After a failed write nothing
// more is accepted: half a record may be in the file.
func (l *Log) write(p Plan, whole bool) error {
	if l.fault != nil {
		return l.fault
	}
	if l.file != nil {
		rec := p
		if !whole {
			rec.Turn = sexp.Plist{}
		}
		_, err := l.file.Write(frame([]byte(rec.Plist().String())))
		if err = errors.Join(err, l.file.Sync()); err != nil {
			l.fault = fmt.Errorf("the log of plans cannot be written: %w", err)
			return l.fault
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
