package llm

import (
	"sync"
	"time"
)

// Limits of a breaker.
const (
	tripAfter  = 3 // failures in a row
	shortBreak = 15 * time.Second
	longBreak  = 5 * time.Minute
)

// A breaker keeps a provider that fails from costing every turn its patience.
// After a break one request is let through; if it fails too, the next break is
// twice as long.
type breaker struct {
	mu     sync.Mutex // guards what follows
	row    int        // failures in a row
	until  time.Time  // no request before
	pause  time.Duration
	probed bool // the one request after a break is under way
}

// admit reports whether a request may be made, and else when.
func (b *breaker) admit(now time.Time) (wait time.Duration, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Before(b.until) {
		return b.until.Sub(now), false
	}
	if !b.until.IsZero() {
		if b.probed {
			return 0, false
		}
		b.probed = true
	}
	return 0, true
}

func (b *breaker) succeeded() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.row, b.until, b.pause, b.probed = 0, time.Time{}, 0, false
}

func (b *breaker) failed(e *Error, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.probed = false
	s := steps[e.Class]
	switch {
	case s.shuts > 0:
		b.until = now.Add(s.shuts)
	case e.Class == classRate && e.After > 0:
		b.until = now.Add(e.After)
	case s.trips:
		if b.row++; b.row >= tripAfter {
			b.pause = min(max(2*b.pause, shortBreak), longBreak)
			b.until = now.Add(b.pause)
		}
	}
}
