package acp

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// errGone means that the daemon hung up.
var errGone = errors.New("the daemon went away")

// A Conn is a connection to the daemon that has been greeted.
type Conn interface {
	Send(m proto.Message) error
	Receive() (proto.Message, error)
	Close() error
}

// A link is a connection shared by all sessions of one editor. One goroutine reads;
// it never waits for anybody.
type link struct {
	conn Conn
	done chan struct{} // closed when the reader has ended

	mu      sync.Mutex // guards what follows, and sending
	last    int
	waiting map[string]chan proto.Message // who asked what, each holds one
	turns   map[string]*inbox             // what happens in a session, while somebody wants to know
}

func newLink(c Conn) *link {
	l := &link{conn: c, done: make(chan struct{}), waiting: map[string]chan proto.Message{}, turns: map[string]*inbox{}}
	go l.read()
	return l
}

func (l *link) read() {
	defer close(l.done)
	for {
		m, err := l.conn.Receive()
		if err != nil {
			return
		}
		l.mu.Lock()
		id := m.Meta.Text("IN-REPLY-TO")
		ch := l.waiting[id]
		box := l.turns[m.Session()]
		if ch != nil && m.Kind == proto.Response {
			delete(l.waiting, id)
			ch <- m
		} else if box != nil {
			box.put(m)
		}
		l.mu.Unlock()
	}
}

// send gives a message a number and sends it.
func (l *link) send(m proto.Message, session string, wait bool) (id string, answer chan proto.Message, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	id = strconv.Itoa(l.last)
	m.Meta = sexp.P(sexp.Keyword("ID"), id, sexp.Keyword("SESSION-ID"), session)
	if wait {
		answer = make(chan proto.Message, 1)
		l.waiting[id] = answer
	}
	if err := l.conn.Send(m); err != nil {
		delete(l.waiting, id)
		return "", nil, fmt.Errorf("%w: %w", errGone, err)
	}
	return id, answer, nil
}

// ask sends a request about the daemon and waits for the answer.
func (l *link) ask(ctx context.Context, session string, payload sexp.Plist) (sexp.Plist, error) {
	_, ch, err := l.send(proto.Message{Kind: proto.Request, Payload: payload}, session, true)
	if err != nil {
		return sexp.Plist{}, err
	}
	select {
	case m := <-ch:
		if m.Do() == "error" {
			return sexp.Plist{}, fmt.Errorf("%s (%s)", m.Payload.Text("TEXT"), m.Payload.Text("CODE"))
		}
		return m.Payload, nil
	case <-l.done:
		return sexp.Plist{}, errGone
	case <-ctx.Done():
		return sexp.Plist{}, ctx.Err()
	}
}

// follow returns what happens in a session from now on; one at a time may.
func (l *link) follow(session string) (*inbox, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.turns[session] != nil {
		return nil, fmt.Errorf("session %s is answering already", session)
	}
	box := &inbox{wake: make(chan struct{}, 1)}
	l.turns[session] = box
	return box, nil
}

func (l *link) unfollow(session string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.turns, session)
}

// An inbox holds frames until they are taken. Putting never blocks: the daemon
// bounds what it sends by what turns do.
type inbox struct {
	mu     sync.Mutex // guards frames
	frames []proto.Message
	wake   chan struct{}
}

func (b *inbox) put(m proto.Message) {
	b.mu.Lock()
	b.frames = append(b.frames, m)
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default: // a note is there already
	}
}

func (b *inbox) take() []proto.Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.frames
	b.frames = nil
	return out
}
