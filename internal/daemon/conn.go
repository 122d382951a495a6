package daemon

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"time"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// Deadlines of a connection. Silence between frames is free; a frame that has
// begun must end, and so must the handshake.
const (
	frameTimeout = 10 * time.Second
	writeTimeout = 10 * time.Second
)

// channels a local client may call itself by; anything else is plain "cli".
var channels = []string{"cli", "tui", "emacs", "acp"}

// A conn is one client. One goroutine reads, one writes; the reader owns
// everything but the queue.
type conn struct {
	d      *Daemon
	tag    string // of this connection and no other
	nc     net.Conn
	origin proto.Origin
	out    *queue
	edits  bool // can be asked to change a buffer
	far    bool // came over TCP, with a proof
}

// serve talks to one client until either side is done. It returns when both of
// the connection's goroutines have ended.
func (d *Daemon) serve(nc net.Conn, who proto.Origin, auth bool) {
	c := &conn{d: d, tag: string(d.newID("c")), nc: nc, origin: who, out: newQueue(), far: auth}
	written := make(chan struct{})
	go func() {
		defer close(written)
		c.write()
	}()
	err := c.read(auth)
	d.hub.leave(c)
	d.asked.leave(c)
	if d.tasks.leave(c) {
		d.tellWork()
	}
	if frame := (*proto.FrameError)(nil); errors.As(err, &frame) {
		c.send(proto.ErrorMessage(frame.Code, frame.Err.Error()))
	} else if err != nil && !quietEnd(err) {
		c.send(proto.ErrorMessage("connection", err.Error()))
	}
	c.out.end()
	<-written
	// A peer that is still sending would turn our close into a reset that can
	// overtake the error frame; half-closing first lets it read why.
	if h, ok := nc.(interface{ CloseWrite() error }); ok && err != nil && !quietEnd(err) {
		if h.CloseWrite() == nil {
			drain(nc)
		}
	}
	if err := nc.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		d.log.Debug("closing a connection", "error", err)
	}
}

// drain swallows a little of what a refused peer still sends.
func drain(nc net.Conn) {
	if nc.SetReadDeadline(time.Now().Add(100*time.Millisecond)) == nil {
		_, _ = io.CopyN(io.Discard, nc, proto.MaxGreeting) // its end is all we wait for
	}
}

// quietEnd reports whether a connection ended in an ordinary way.
func quietEnd(err error) bool {
	sys := (*os.SyscallError)(nil) // the peer's way of hanging up: reset, broken pipe
	return errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &sys)
}

// read greets the client and takes its messages, one after the other.
func (c *conn) read(auth bool) error {
	r := proto.NewReader(c.nc, proto.MaxGreeting)
	if err := c.handshake(r, auth); err != nil {
		return err
	}
	r.Allow(proto.MaxPayload)
	for {
		if err := c.nc.SetReadDeadline(time.Time{}); err != nil {
			return err
		}
		if c.d.open.closing() { // looked at after the deadline was lifted
			return io.EOF
		}
		if err := r.Wait(); err != nil {
			return err
		}
		m, err := c.next(r)
		if err != nil {
			return err
		}
		if err := c.d.handle(c, m); err != nil {
			return err
		}
	}
}

func (c *conn) next(r *proto.Reader) (proto.Message, error) {
	if err := c.nc.SetReadDeadline(time.Now().Add(c.d.s.FrameTimeout)); err != nil {
		return proto.Message{}, err
	}
	v, err := r.Next()
	if err != nil {
		if ne := net.Error(nil); errors.As(err, &ne) && ne.Timeout() {
			return proto.Message{}, &proto.FrameError{Code: "frame.timeout", Err: fmt.Errorf("a frame must arrive within %v", c.d.s.FrameTimeout)}
		}
		return proto.Message{}, err
	}
	return proto.ParseMessage(v)
}

func (c *conn) handshake(r *proto.Reader, auth bool) error {
	g := proto.Greeting{Version: proto.Version, Nonce: c.d.nonce(), Auth: auth, Capabilities: c.d.capabilities()}
	c.send(g.Message())
	m, err := c.next(r)
	if err != nil {
		return err
	}
	h, err := proto.ParseHello(m)
	if err != nil {
		return &proto.FrameError{Code: "handshake", Err: err}
	}
	if auth && !proto.Signed(c.d.token, g.Nonce, h.MAC) {
		return &proto.FrameError{Code: "handshake.refused", Err: errors.New("the proof does not match the token file")}
	}
	if auth {
		c.origin.Role = proto.RoleOwner
	}
	c.origin.Channel = "cli"
	if slices.Contains(channels, h.Client) {
		c.origin.Channel = h.Client
	}
	c.edits = h.Client == editor && slices.Contains(h.Capabilities, canEdit)
	return nil
}

// send queues a message for the writer. A client too slow to take what must
// arrive is cut off: it can reconnect, which is better than a daemon out of
// memory.
func (c *conn) send(m proto.Message) {
	frame, err := proto.AppendFrame(nil, m.Value())
	if err != nil {
		e := proto.ErrorMessage("frame.size", err.Error())
		e.Meta = m.Meta
		frame, err = proto.AppendFrame(nil, e.Value())
	}
	if err == nil {
		err = c.out.put(frame, m.Kind == proto.StreamChunk)
	}
	if err != nil {
		c.d.log.Warn("cutting off a client", "who", c.origin.Who, "channel", c.origin.Channel, "error", err)
		c.out.end()
		_ = c.nc.Close() // the reader notices and cleans up
	}
}

// write is the connection's only writer.
func (c *conn) write() {
	for range c.out.wake {
		frames, ended := c.out.take()
		if len(frames) > 0 {
			if err := c.flush(frames); err != nil {
				c.out.end()
				_ = c.nc.Close() // wakes the reader
				return
			}
		}
		if ended {
			return
		}
	}
}

func (c *conn) flush(frames [][]byte) error {
	if err := c.nc.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	bufs := net.Buffers(frames)
	_, err := bufs.WriteTo(c.nc)
	return err
}

// answer replies to one of the client's own messages, outside any turn.
func (c *conn) answer(m proto.Message, payload sexp.Plist) {
	c.send(proto.Message{Kind: proto.Response, Meta: replyMeta(m), Payload: payload})
}

func (c *conn) fail(m proto.Message, code, text string) {
	e := proto.ErrorMessage(code, text)
	e.Kind = proto.Response
	e.Meta = replyMeta(m)
	e.Payload = e.Payload.With("STATUS", sexp.Keyword("FAILED"))
	c.send(e)
}

// asked is a message's :ID as this client's own. Others hear the session too, and
// number their messages the same way.
func (c *conn) asked(m proto.Message) sexp.Value {
	id, ok := m.Meta.Get("ID")
	if !ok {
		return nil
	}
	return sexp.NewList(sexp.String(c.tag), id)
}

// heard is a session's frame as this client is to see it: :IN-REPLY-TO only where
// the message was its own, and what was said only where it was not.
func (c *conn) heard(m proto.Message) proto.Message {
	v, ok := m.Meta.Get("IN-REPLY-TO")
	if !ok {
		return m
	}
	m.Meta = m.Meta.Without("IN-REPLY-TO")
	if l, isList := v.(sexp.List); isList && l.Len() == 2 && sexp.Equal(l.Items()[0], sexp.String(c.tag)) {
		m.Meta = m.Meta.With("IN-REPLY-TO", l.Items()[1])
		if m.Kind == proto.Status {
			m.Payload = m.Payload.Without("SAID").Without("OVER")
		}
	}
	return m
}

func replyMeta(m proto.Message) sexp.Plist {
	var meta sexp.Plist
	if s := m.Session(); s != "" {
		meta = meta.With("SESSION-ID", sexp.String(s))
	}
	if id, ok := m.Meta.Get("ID"); ok {
		meta = meta.With("IN-REPLY-TO", id)
	}
	return meta
}
