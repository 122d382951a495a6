package sandbox

import (
	"fmt"
	"io"
	"sync"
)

// Output is a stream of which the beginning and the end were kept.
type Output struct {
	Head, Tail []byte
	// Total is how many bytes the command wrote.
	Total int64
}

// Cut is how many bytes between Head and Tail were dropped.
func (o Output) Cut() int64 { return o.Total - int64(len(o.Head)) - int64(len(o.Tail)) }

// String is the kept text, with a line that says what was cut.
func (o Output) String() string {
	if o.Cut() == 0 {
		return string(o.Head) + string(o.Tail)
	}
	return fmt.Sprintf("%s\n[%d of %d bytes cut]\n%s", o.Head, o.Cut(), o.Total, o.Tail)
}

// collector keeps the head of a stream and a ring of its tail: memory is the
// same for ten bytes and for ten gigabytes.
type collector struct {
	head  []byte
	ring  []byte
	next  int // where the next tail byte goes
	total int64
	limit int // of head, and of ring
}

func newCollector(keep int) *collector {
	return &collector{limit: max(keep/2, 1)}
}

func (c *collector) add(p []byte) {
	c.total += int64(len(p))
	if room := c.limit - len(c.head); room > 0 {
		n := min(room, len(p))
		c.head = append(c.head, p[:n]...)
		p = p[n:]
	}
	if len(p) == 0 {
		return
	}
	if len(p) >= c.limit {
		c.ring = append(c.ring[:0], p[len(p)-c.limit:]...)
		c.next = 0
		return
	}
	if room := c.limit - len(c.ring); room > 0 {
		n := min(room, len(p))
		c.ring = append(c.ring, p[:n]...)
		p = p[n:]
	}
	for len(p) > 0 {
		n := copy(c.ring[c.next:], p)
		c.next = (c.next + n) % c.limit
		p = p[n:]
	}
}

func (c *collector) output() Output {
	tail := make([]byte, 0, len(c.ring))
	tail = append(tail, c.ring[c.next:]...)
	tail = append(tail, c.ring[:c.next]...)
	return Output{Head: c.head, Tail: tail, Total: c.total}
}

// readSize is a quarter of the pipe we ask for: large enough that system
// calls do not matter, small enough to stay in the cache.
const readSize = 256 << 10

// drain reads r to its end into c and the sink. Errors end it like the end of
// the stream does: a terminal whose other side has gone answers EIO.
func drain(r io.Reader, c *collector, s Stream, sink *lockedSink) {
	buf := make([]byte, readSize)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			c.add(buf[:n])
			sink.send(Chunk{Stream: s, Data: buf[:n]})
		}
		if err != nil {
			return
		}
	}
}

// lockedSink makes the two readers take turns.
type lockedSink struct {
	mu sync.Mutex // held during f, which is the promise Spec.Sink makes
	f  func(Chunk)
}

func (l *lockedSink) send(c Chunk) {
	if l.f == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.f(c)
}
