package tui_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
	"passepartout/internal/tui"
)

// A daemon at the other end of a client that runs for real.
type fakeDaemon struct {
	sent chan proto.Message
	back chan proto.Message
	once sync.Once
	gone chan struct{}
}

func newFakeDaemon() *fakeDaemon {
	return &fakeDaemon{sent: make(chan proto.Message, 64), back: make(chan proto.Message, 64), gone: make(chan struct{})}
}

func (d *fakeDaemon) Send(m proto.Message) error {
	select {
	case d.sent <- m:
		return nil
	case <-d.gone:
		return io.ErrClosedPipe
	}
}

func (d *fakeDaemon) Receive() (proto.Message, error) {
	select {
	case m := <-d.back:
		return m, nil
	case <-d.gone:
		return proto.Message{}, io.EOF
	}
}

func (d *fakeDaemon) Close() error {
	d.once.Do(func() { close(d.gone) })
	return nil
}

// next is the next message that satisfies want.
func (d *fakeDaemon) next(t *testing.T, want func(proto.Message) bool) proto.Message {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		select {
		case m := <-d.sent:
			if want(m) {
				return m
			}
		case <-deadline:
			t.Fatal("the client did not send it")
		}
	}
}

// A glass is an output that can be looked at while it is written.
type glass struct {
	mu sync.Mutex
	b  strings.Builder
}

func (g *glass) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.b.Write(p)
}

func TestRunTalksReconnectsAndKeepsWhatWasNotSent(t *testing.T) {
	dir := t.TempDir()
	daemons := []*fakeDaemon{newFakeDaemon(), newFakeDaemon()}
	dials := 0
	in, keyboard := io.Pipe()
	done := make(chan error, 1)
	draft := filepath.Join(dir, "draft")
	go func() {
		done <- tui.Run(context.Background(), tui.Options{
			Dial: func(context.Context) (tui.Conn, error) {
				dials++
				switch {
				case dials == 2:
					return nil, errors.New("not yet")
				case dials > 2:
					return daemons[1], nil
				}
				return daemons[0], nil
			},
			Input: in, Output: &glass{}, Environ: []string{"TERM=xterm-256color"}, Theme: "dark",
			History: filepath.Join(dir, "history"), Draft: draft,
		})
	}()
	typed := func(s string) {
		if _, err := io.WriteString(keyboard, s); err != nil {
			t.Error(err)
		}
	}
	said := func(m proto.Message) bool { return m.Sensor() == "user-input" }
	typed("hello\r")
	first := daemons[0].next(t, said)
	if got := first.Payload.Text("TEXT"); got != "hello" {
		t.Errorf("said %q", got)
	}
	daemons[0].back <- replyTo(first, "t1", "DONE", "Hello.")
	daemons[0].next(t, func(m proto.Message) bool { return m.Do() == "approvals" }) // asked after every turn
	daemons[0].Close()
	daemons[1].next(t, func(m proto.Message) bool { return m.Do() == "listen" })
	typed("again\r")
	if got := daemons[1].next(t, said).Payload.Text("TEXT"); got != "again" {
		t.Errorf("said %q after the reconnect", got)
	}
	typed("half a thought")
	typed("\x1b[200~ pasted\x1b[201~")
	daemons[1].back <- proto.Message{Kind: proto.Log, Payload: sexp.P(kw("ACTION"), kw("ERROR"), kw("TEXT"), "ignored")}
	typed("\x10quit\r") // the palette leaves without touching the input
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it did not leave")
	}
	for i, d := range daemons {
		select {
		case <-d.gone:
		default:
			t.Errorf("connection %d was left open", i)
		}
	}
	raw, err := os.ReadFile(draft)
	if err != nil || string(raw) != "half a thought pasted" {
		t.Errorf("the draft is %q, %v", raw, err)
	}
	raw, err = os.ReadFile(filepath.Join(dir, "history"))
	if err != nil || string(raw) != "hello\nagain\n" {
		t.Errorf("the history is %q, %v", raw, err)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	in, _ := io.Pipe()
	done := make(chan error, 1)
	dialed := make(chan struct{}, 8)
	go func() {
		done <- tui.Run(ctx, tui.Options{
			Dial: func(ctx context.Context) (tui.Conn, error) {
				dialed <- struct{}{}
				<-ctx.Done()
				return nil, ctx.Err()
			},
			Input: in, Output: io.Discard, Environ: []string{"TERM=xterm"},
		})
	}()
	<-dialed
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it did not end")
	}
}

func TestRunWantsADaemon(t *testing.T) {
	if err := tui.Run(context.Background(), tui.Options{}); err == nil {
		t.Error("it ran without a way to reach the daemon")
	}
}

func TestInputThatCannotBeKeptIsGivenBack(t *testing.T) {
	in, keyboard := io.Pipe()
	defer keyboard.Close()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	done, dir := make(chan error, 1), t.TempDir()
	history := filepath.Join(dir, "history")
	go func() {
		done <- tui.Run(ctx, tui.Options{
			Dial:  func(context.Context) (tui.Conn, error) { return nil, errors.New("nobody is there") },
			Draft: filepath.Join(dir, "no", "such", "place"), History: history, Input: in, Output: &glass{}, Environ: []string{"TERM=xterm"}, Theme: "mono",
		})
	}()
	const thought = "half a thought"
	if _, err := io.WriteString(keyboard, thought+"\r"); err != nil { // said, and nobody is there to hear it
		t.Fatal(err)
	}
	for range 2000 {
		if raw, err := os.ReadFile(history); err == nil && len(raw) > 0 {
			break
		}
		time.Sleep(5 * time.Millisecond) // between looks
	}
	stop()
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), thought) {
			t.Errorf("the end says %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the client did not leave")
	}
}
