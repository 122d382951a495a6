package tui

import (
	"context"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"passepartout/internal/proto"
)

// Sizes of a link's queues.
const (
	inQueue  = 512
	outQueue = 256
)

// A link is one connection with the two goroutines that read and write it. It
// ends when either of them fails or close is called; close waits for both.
type link struct {
	conn Conn
	in   chan proto.Message // closed by the reader
	out  chan proto.Message
	stop chan struct{}
	once sync.Once
	wg   sync.WaitGroup
}

func newLink(c Conn) *link {
	l := &link{conn: c, in: make(chan proto.Message, inQueue), out: make(chan proto.Message, outQueue), stop: make(chan struct{})}
	l.wg.Add(2)
	go l.read()
	go l.write()
	return l
}

func (l *link) read() {
	defer l.wg.Done()
	defer close(l.in)
	for {
		m, err := l.conn.Receive()
		if err != nil {
			return // how a stream ends says nothing a person can use
		}
		select {
		case l.in <- m:
		case <-l.stop:
			return
		}
	}
}

func (l *link) write() {
	defer l.wg.Done()
	for {
		select {
		case m := <-l.out:
			if err := l.conn.Send(m); err != nil {
				l.conn.Close() //nolint:errcheck // wakes the reader, which reports the loss
				return
			}
		case <-l.stop:
			return
		}
	}
}

// send queues a message. It never blocks; false means that the daemon has stopped
// reading.
func (l *link) send(m proto.Message) bool {
	select {
	case l.out <- m:
		return true
	default:
		return false
	}
}

func (l *link) close() {
	l.once.Do(func() {
		close(l.stop)
		l.conn.Close() //nolint:errcheck // nothing is left to be told
	})
	l.wg.Wait()
}

// Messages a link sends to the model.
type (
	dialedMsg struct {
		try  int
		conn Conn
		err  error
	}
	framesMsg struct {
		link   *link
		frames []proto.Message
	}
	lostMsg   struct{ link *link }
	redialMsg struct{ try int }
)

// listen waits for frames and takes all that have arrived, so that a fast stream
// costs one update a frame of the screen and not one a token.
func (l *link) listen() tea.Msg {
	m, ok := <-l.in
	if !ok {
		return lostMsg{l}
	}
	batch := []proto.Message{m}
	for len(batch) < inQueue {
		select {
		case m, ok := <-l.in:
			if !ok {
				return framesMsg{l, batch} // the next listen reports the loss
			}
			batch = append(batch, m)
		default:
			return framesMsg{l, batch}
		}
	}
	return framesMsg{l, batch}
}

// Backoff between tries to reach the daemon.
const (
	firstDelay = 100 * time.Millisecond
	maxDelay   = 5 * time.Second
)

func delay(failures int) time.Duration {
	d := firstDelay
	for range min(failures, 10) {
		d = min(2*d, maxDelay)
	}
	return d
}

// dial joins the daemon in the background. A connection that comes too late is
// closed.
func dial(ctx context.Context, wg *sync.WaitGroup, join func(context.Context) (Conn, error), try int) tea.Cmd {
	wg.Add(1)
	return func() tea.Msg {
		defer wg.Done()
		c, err := join(ctx)
		if err == nil && ctx.Err() != nil {
			c.Close() //nolint:errcheck // nobody is there to use it
			return nil
		}
		return dialedMsg{try, c, err}
	}
}
