package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"passepartout/internal/daemon"
	"passepartout/internal/durable"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// How long a client waits for a daemon it has started.
const (
	startTimeout = 15 * time.Second
	startPoll    = 10 * time.Millisecond
)

// A client is a connection to the daemon with the answers sorted by request.
type client struct {
	*proto.Client
	conn   net.Conn
	nextID atomic.Int64
}

// connect joins the daemon, starting it when none runs.
func (a *app) connect(ctx context.Context, name string) (*client, error) {
	cfg, err := a.config()
	if err != nil {
		return nil, err
	}
	conn, err := a.dial(ctx, cfg.SocketPath)
	if err != nil {
		return nil, err
	}
	pc, err := proto.Connect(conn, name, nil)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("daemon at %s: %w", cfg.SocketPath, err), conn.Close())
	}
	return &client{Client: pc, conn: conn}, nil
}

func (a *app) dial(ctx context.Context, socket string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err == nil || a.noStart || !notRunning(err) {
		return conn, err
	}
	child, err := a.startDaemon()
	if err != nil {
		return nil, fmt.Errorf("starting the daemon: %w", err)
	}
	show := a.newBar()
	defer show.end()
	far, deadline := daemon.Work{}, time.Now().Add(startTimeout)
	for {
		conn, err = d.DialContext(ctx, "unix", socket)
		if err == nil {
			return conn, nil
		}
		if dead := child.dead(); dead != nil && !child.outrun() {
			return nil, dead
		}
		if w, ok := daemon.Starting(child.state); ok && w != far { // a large memex takes the time it takes
			far, deadline = w, time.Now().Add(startTimeout)
			show.at(w)
		}
		if !notRunning(err) || time.Now().After(deadline) {
			return nil, fmt.Errorf("the daemon did not open %s within %v: %w", socket, startTimeout, err)
		}
		time.Sleep(startPoll)
	}
}

func notRunning(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}

// A daemonChild is a daemon this client has started and not waited for yet.
type daemonChild struct {
	exited chan error
	ended  error // what exited brought
	state  string
	logs   string
	pid    int
}

// dead is nil while the daemon runs, and afterwards why it does not.
func (c *daemonChild) dead() error {
	select {
	case c.ended = <-c.exited:
	default:
	}
	if c.ended == nil {
		return nil
	}
	tail, err := tailOf(c.logs, 2000)
	if err != nil || tail == "" {
		return fmt.Errorf("the daemon ended at once: %w", c.ended)
	}
	return fmt.Errorf("the daemon ended at once: %w\n%s", c.ended, tail)
}

// outrun reports whether another daemon was there first: another client has started
// it at the same time, and its socket is as good.
func (c *daemonChild) outrun() bool {
	raw, err := os.ReadFile(filepath.Join(c.state, "daemon.lock"))
	if err != nil {
		return false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	return err == nil && pid != c.pid && syscall.Kill(pid, 0) == nil
}

// startDaemon starts this binary as the daemon, in a session of its own so that
// closing the terminal does not take it along.
func (a *app) startDaemon() (*daemonChild, error) {
	cfg, err := a.config()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if err := durable.MkdirAll(cfg.StateDir, 0o700); err != nil {
		return nil, err
	}
	logs := filepath.Join(cfg.StateDir, "daemon.log")
	log, err := os.OpenFile(logs, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	argv := []string{self, "daemon"}
	if a.demo {
		argv = append(argv, "--idle-exit", demoIdle.String())
	}
	p, err := os.StartProcess(self, argv, &os.ProcAttr{
		Dir: "/", Env: a.environ, Files: []*os.File{null, log, log}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return nil, err
	}
	c := &daemonChild{exited: make(chan error, 1), state: cfg.StateDir, logs: logs, pid: p.Pid}
	go func() { // reaps the child if it ends while we wait for its socket
		st, err := p.Wait()
		if err == nil {
			err = errors.New(st.String())
		}
		c.exited <- err
	}()
	return c, nil
}

// tailOf is the end of a file, for showing why a daemon ended.
func tailOf(path string, most int64) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return "", err
	}
	if st.Size() > most {
		if _, err := f.Seek(-most, io.SeekEnd); err != nil {
			return "", err
		}
	}
	b, err := io.ReadAll(f)
	return string(b), err
}

// id returns a fresh number to correlate a request with its reply.
func (c *client) id() sexp.Int { return sexp.NewInt(c.nextID.Add(1)) }

// close hangs up. The daemon needs no goodbye, so its error does not matter.
func (c *client) close() { _ = c.conn.Close() }

// exchange sends one message and returns its terminal response. Other frames go
// to watch as they come; watch may be nil.
func (c *client) exchange(m proto.Message, watch func(proto.Message)) (proto.Message, error) {
	id := c.id()
	m.Meta = m.Meta.With("ID", id)
	if err := c.Send(m); err != nil {
		return proto.Message{}, err
	}
	return c.await(id, watch)
}

// await receives until the terminal response to a message.
func (c *client) await(id sexp.Int, watch func(proto.Message)) (proto.Message, error) {
	for {
		r, err := c.Receive()
		if err != nil {
			return proto.Message{}, fmt.Errorf("the daemon hung up before it answered: %w", err)
		}
		if r.Kind == proto.Log && r.Do() == "error" {
			return proto.Message{}, fmt.Errorf("the daemon refused the message: %s: %s", r.Payload.Text("CODE"), r.Payload.Text("TEXT"))
		}
		if to, ok := r.Meta.Get("IN-REPLY-TO"); ok && r.Kind == proto.Response && sexp.Equal(to, id) {
			return r, nil
		}
		if watch != nil {
			watch(r)
		}
	}
}

// say is a message of user input.
func say(session, text string) proto.Message {
	return proto.Message{
		Kind: proto.Event, Meta: sexp.P(sexp.Keyword("SESSION-ID"), session),
		Payload: sexp.P(sexp.Keyword("SENSOR"), sexp.Keyword("USER-INPUT"), sexp.Keyword("TEXT"), text),
	}
}

// codeOf is the exit code a terminal response stands for.
func codeOf(r proto.Message) int {
	switch r.Payload.Word("STATUS") {
	case "DONE":
		return exitOK
	case "DENIED":
		return exitDenied
	case "PENDING":
		return exitPending
	}
	return exitFailed
}
