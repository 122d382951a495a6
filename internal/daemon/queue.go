package daemon

import (
	"errors"
	"sync"
)

// Limits of what waits for a slow client.
const (
	maxDeltas  = 64      // frames waiting beyond which deltas are dropped
	maxWaiting = 1 << 14 // frames waiting beyond which the client is cut off
	maxBacklog = 48 << 20
)

// errSlow is why a client was cut off that did not read.
var errSlow = errors.New("the client does not read its messages")

// A queue holds frames for one client's writer. Frames that must arrive wait
// however slow the client is, until the backlog is absurd; deltas are dropped
// first.
type queue struct {
	wake chan struct{} // has one token when there is something new

	mu     sync.Mutex // guards what follows
	frames [][]byte
	bytes  int
	ended  bool // nothing more is taken; the writer closes when it has drained
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

// put adds a frame. It never blocks. A delta that does not fit is dropped in
// silence; anything else that does not fit is errSlow.
func (q *queue) put(frame []byte, delta bool) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.ended:
		return nil
	case delta && len(q.frames) >= maxDeltas:
		return nil
	case len(q.frames) >= maxWaiting || q.bytes+len(frame) > maxBacklog:
		return errSlow
	}
	q.frames = append(q.frames, frame)
	q.bytes += len(frame)
	q.signal()
	return nil
}

// end lets the writer drain what is there and stop.
func (q *queue) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	q.signal()
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take returns all frames that wait, and whether the queue has ended.
func (q *queue) take() (frames [][]byte, ended bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	frames, q.frames, q.bytes = q.frames, nil, 0
	return frames, q.ended
}
