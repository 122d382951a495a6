package llm

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// USD is an amount of money in billionths of a dollar, so that a single token has
// a price.
type USD int64

const dollar USD = 1_000_000_000

// ParseUSD reads an amount in dollars, such as 0.25.
func ParseUSD(s string) (USD, error) {
	f, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(s), "$"), 64)
	if err != nil || f < 0 || f > 1e6 || math.IsNaN(f) {
		return 0, fmt.Errorf("amount %q: want dollars, such as 0.25", s)
	}
	return USD(math.Round(f * float64(dollar))), nil
}

func (u USD) String() string {
	f := float64(u) / float64(dollar)
	if u != 0 && u < dollar/100 {
		return fmt.Sprintf("$%.6f", f)
	}
	return fmt.Sprintf("$%.2f", f)
}

// A Price is in dollars for a million tokens.
type Price struct {
	In, Cached, Stored, Out float64
}

// ParsePrice reads the price of a model in dollars for a million tokens:
// provider/model=IN:OUT[:CACHED[:STORED]]. What is left out costs as much as IN.
func ParsePrice(s string) (model string, p Price, err error) {
	model, text, _ := strings.Cut(strings.TrimSpace(s), "=")
	numbers := strings.Split(text, ":")
	if provider, m := modelOf(model); provider == "" || m == "" || len(numbers) < 2 || len(numbers) > 4 {
		return "", Price{}, fmt.Errorf("price %q: want provider/model=IN:OUT[:CACHED[:STORED]], in dollars for a million tokens", s)
	}
	var n [4]float64
	for i, t := range numbers {
		if n[i], err = strconv.ParseFloat(t, 64); err != nil || n[i] < 0 || math.IsNaN(n[i]) || math.IsInf(n[i], 0) {
			return "", Price{}, fmt.Errorf("price %q: want dollars, found %q", s, t)
		}
	}
	p = Price{In: n[0], Out: n[1], Cached: n[0], Stored: n[0]}
	if len(numbers) > 2 {
		p.Cached = n[2]
	}
	if len(numbers) > 3 {
		p.Stored = n[3]
	}
	return model, p, nil
}

// believable is the usage without what no exchange can have taken: a provider that
// counts below nothing would give money back, and lift a cap by it.
func (u Usage) believable() Usage {
	clamp := func(n int) int { return min(max(n, 0), 1<<30) }
	return Usage{In: clamp(u.In), Cached: clamp(u.Cached), Stored: clamp(u.Stored), Out: clamp(u.Out)}
}

// of is what an exchange costs, rounded up.
func (p Price) of(u Usage) USD {
	u = u.believable()
	fresh := max(0, u.In-u.Cached-u.Stored)
	perToken := float64(fresh)*p.In + float64(u.Cached)*p.Cached + float64(u.Stored)*p.Stored + float64(u.Out)*p.Out
	return USD(math.Ceil(perToken * float64(dollar) / 1e6))
}

// Caps are what may be spent; zero is no cap.
type Caps struct {
	Turn, Session, Job, Day, Month USD
}

// An Entry is one call in the ledger.
type Entry struct {
	At      time.Time `json:"at"`
	Model   string    `json:"model"`
	Session string    `json:"session,omitempty"`
	Turn    string    `json:"turn,omitempty"`
	Job     bool      `json:"job,omitempty"`
	Usage   Usage     `json:"usage"`
	Cost    USD       `json:"cost"`
	Class   Class     `json:"failed,omitempty"` // how it failed, "" when it did not
}

// A Ledger knows what was spent and refuses the call that would be too much. It is
// safe for concurrent use.
type Ledger struct {
	caps Caps
	save func(Entry) error // may be nil

	mu      sync.Mutex // guards what follows
	past    []Entry    // of this month, oldest first
	held    []*hold
	unsaved []Entry // which the record has not taken; while there are any, nothing more is spent
}

// A hold is money set aside for a call that is under way.
type hold struct {
	entry Entry
}

// NewLedger returns a ledger that continues past entries and saves new ones.
func NewLedger(caps Caps, past []Entry, save func(Entry) error) *Ledger {
	return &Ledger{caps: caps, past: slices.Clone(past), save: save}
}

// reserve sets money aside for a call. The error names the cap it would break.
func (l *Ledger) reserve(model string, p Purpose, most USD, now time.Time) (*hold, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if most > 0 {
		if err := l.saveLocked(); err != nil {
			return nil, fmt.Errorf("the cost ledger cannot be written, so nothing is spent: %w", err)
		}
		if err := l.checkLocked(p, most, now); err != nil {
			return nil, err
		}
	}
	h := &hold{Entry{At: now, Model: model, Session: p.Session, Turn: p.Turn, Job: p.Job, Cost: most}}
	l.held = append(l.held, h)
	return h, nil
}

func (l *Ledger) checkLocked(p Purpose, most USD, now time.Time) error {
	for _, c := range []struct {
		name  string
		cap   USD
		count func(Entry) bool
	}{
		{"this turn", l.caps.Turn, func(e Entry) bool { return p.Turn != "" && e.Turn == p.Turn }},
		{"this session", l.caps.Session, func(e Entry) bool { return e.Session == p.Session }},
		{"this background job", jobCap(l.caps, p), func(e Entry) bool { return e.Job && e.Turn == p.Turn }},
		{"today", l.caps.Day, func(e Entry) bool { return sameDay(e.At, now) }},
		{"this month", l.caps.Month, func(e Entry) bool { return sameMonth(e.At, now) }},
	} {
		if c.cap == 0 {
			continue
		}
		if spent := l.sumLocked(c.count); spent+most > c.cap {
			return fmt.Errorf("the cap of %v for %s: %v is spent, and this call could cost %v", c.cap, c.name, spent, most)
		}
	}
	return nil
}

func jobCap(c Caps, p Purpose) USD {
	if p.Job {
		return c.Job
	}
	return 0
}

func (l *Ledger) sumLocked(count func(Entry) bool) (sum USD) {
	for _, e := range l.past {
		if count(e) {
			sum += e.Cost
		}
	}
	for _, h := range l.held {
		if count(h.entry) {
			sum += h.entry.Cost
		}
	}
	return sum
}

// settle books what a call really cost.
func (l *Ledger) settle(h *hold, u Usage, cost USD, class Class) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = slices.DeleteFunc(l.held, func(x *hold) bool { return x == h })
	e := h.entry
	e.Usage, e.Cost, e.Class = u, cost, class
	if n := len(l.past); n > 0 && !sameMonth(l.past[n-1].At, e.At) {
		l.past = nil
	}
	l.past = append(l.past, e)
	if l.save != nil {
		l.unsaved = append(l.unsaved, e)
		_ = l.saveLocked() // tried again before anything more is spent
	}
}

// saveLocked saves what has not been, also what an earlier attempt could not: a disk
// that was full has room again some time.
func (l *Ledger) saveLocked() error {
	for ; len(l.unsaved) > 0; l.unsaved = l.unsaved[1:] {
		if err := l.save(l.unsaved[0]); err != nil {
			return err
		}
	}
	return nil
}

// Entries returns the calls of this month, oldest first.
func (l *Ledger) Entries() []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.past)
}

// Caps returns what may be spent.
func (l *Ledger) Caps() Caps { return l.caps }

// Spent returns what today and this month cost so far.
func (l *Ledger) Spent(now time.Time) (day, month USD) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sumLocked(func(e Entry) bool { return sameDay(e.At, now) }), l.sumLocked(func(e Entry) bool { return sameMonth(e.At, now) })
}

func sameMonth(a, b time.Time) bool {
	b = b.In(a.Location())
	return a.Year() == b.Year() && a.Month() == b.Month()
}

func sameDay(a, b time.Time) bool {
	return sameMonth(a, b) && a.Day() == b.In(a.Location()).Day()
}
