package main_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// A glass is a terminal one can look at with a watch: it keeps when something was
// written to it.
type glass struct {
	testing.TB
	cmd   *exec.Cmd
	write func(string)

	mu   sync.Mutex
	text bytes.Buffer // since the last look
	at   []time.Time
}

func newGlass(t testing.TB, cmd *exec.Cmd, env ...string) *glass {
	t.Helper()
	cmd.Env = append(append(cmd.Env, "TERM=xterm-256color", "LANG=C.UTF-8"), env...)
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 140, Rows: 50})
	if err != nil {
		t.Fatal(err)
	}
	g := &glass{TB: t, cmd: cmd, write: func(s string) {
		if _, err := tty.WriteString(s); err != nil {
			t.Fatal(err)
		}
	}}
	read := make(chan struct{})
	go func() {
		defer close(read)
		buf := make([]byte, 1<<16)
		for {
			n, err := tty.Read(buf)
			g.mu.Lock()
			g.text.Write(buf[:n])
			g.at = append(g.at, time.Now())
			g.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have left
		_ = cmd.Wait()
		tty.Close()
		<-read
	})
	return g
}

// look is what was written since the last look, and when.
func (g *glass) look() (string, []time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s, at := g.text.String(), g.at
	g.text.Reset()
	g.at = nil
	return s, at
}

// until waits for a text, and says when it was there.
func (g *glass) until(text string) time.Time {
	g.Helper()
	_, at := g.wait(text)
	return at
}

// read waits for a text, and returns everything up to it.
func (g *glass) read(text string) string {
	g.Helper()
	s, _ := g.wait(text)
	return s
}

func (g *glass) wait(text string) (string, time.Time) {
	g.Helper()
	seen := ""
	for range 6000 {
		s, at := g.look()
		if seen += s; strings.Contains(seen, text) {
			return seen, at[len(at)-1]
		}
		time.Sleep(5 * time.Millisecond) // between looks
	}
	g.Fatalf("%q was never drawn:\n%q", text, seen)
	return "", time.Time{}
}

// quiet waits until nothing is drawn for a while.
func (g *glass) quiet() {
	for range 600 {
		if s, _ := g.look(); s == "" {
			return
		}
		time.Sleep(300 * time.Millisecond) // longer than between two pictures of a spinner
	}
	g.Fatal("it never stopped drawing")
}

// A fastDaemon speaks the protocol and says what it is told to, as fast as it is
// told to: the real one judges what it streams, which takes time that is not the
// client's.
type fastDaemon struct {
	testing.TB
	socket string
	answer func(n int, chunk func(string)) (whole string)
	said   chan struct{}                           // after each answer
	tells  func(question string, n int) sexp.Plist // what it says of itself after n answers; nil is nothing
}

func newFastDaemon(t testing.TB, answer func(n int, chunk func(string)) string, tells func(question string, n int) sexp.Plist) *fastDaemon {
	t.Helper()
	dir, err := os.MkdirTemp("", "pp") // short: socket paths are limited
	if err != nil {
		t.Fatal(err)
	}
	f := &fastDaemon{TB: t, socket: filepath.Join(dir, "s"), answer: answer, tells: tells, said: make(chan struct{}, 100)}
	l, err := net.Listen("unix", f.socket)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	over, hangUp := context.WithCancel(context.Background())
	go func() {
		defer close(served)
		nc, err := l.Accept()
		if err != nil {
			return
		}
		defer nc.Close()
		defer context.AfterFunc(over, func() { nc.Close() })()
		if err := f.serve(nc); err != nil && !errors.Is(err, io.EOF) {
			t.Log(err) // the client was ended
		}
	}()
	t.Cleanup(func() { l.Close(); hangUp(); <-served; os.RemoveAll(dir) })
	return f
}

func (f *fastDaemon) serve(nc net.Conn) error {
	send := func(m proto.Message) error {
		raw, err := proto.AppendFrame(nil, m.Value())
		if err == nil {
			_, err = nc.Write(raw)
		}
		return err
	}
	if err := send(proto.Greeting{Version: proto.Version, Nonce: "n"}.Message()); err != nil {
		return err
	}
	r := proto.NewReader(nc, proto.MaxPayload)
	for n := 0; ; {
		v, err := r.Next()
		if err != nil {
			return err
		}
		m, err := proto.ParseMessage(v)
		if err != nil {
			return err
		}
		id, ok := m.Meta.Get("ID")
		if !ok {
			continue // the client introduces itself
		}
		turn := sexp.P(sexp.Keyword("SESSION-ID"), "main", sexp.Keyword("TURN"), fmt.Sprint("t-", n), sexp.Keyword("IN-REPLY-TO"), id)
		payload := sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("NOTHING"), sexp.Keyword("STATUS"), sexp.Keyword("DONE"))
		if f.tells != nil {
			for _, p := range f.tells(m.Do(), n).Pairs() {
				payload = payload.With(p.Key, p.Value)
			}
		}
		if m.Sensor() == "user-input" {
			n++
			whole := f.answer(n, func(s string) {
				err = errors.Join(err, send(proto.Message{Kind: proto.StreamChunk, Meta: turn, Payload: sexp.P(sexp.Keyword("TEXT"), s)}))
			})
			payload = sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("MESSAGE"), sexp.Keyword("TEXT"), whole, sexp.Keyword("STATUS"), sexp.Keyword("DONE"))
		}
		if err := errors.Join(err, send(proto.Message{Kind: proto.Response, Meta: turn, Payload: payload})); err != nil {
			return err
		}
		if m.Sensor() == "user-input" {
			f.said <- struct{}{}
		}
	}
}

// client is the real client, joined to this daemon.
func (f *fastDaemon) client() *glass {
	f.Helper()
	home := f.TempDir()
	c := exec.Command(binary, "tui", "--no-start")
	c.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "PASSEPARTOUT_SOCKET=" + f.socket}
	return newGlass(f, c)
}

// thousandTokens is a model that says a thousand tokens a second for three seconds;
// all later answers are 2,000 lines.
func thousandTokens(n int, chunk func(string)) string {
	if n > 1 {
		var lines strings.Builder
		for i := range 2000 {
			fmt.Fprintf(&lines, "Line %d of answer %d with **bold** words and `code` in it, as they are.\n", i, n)
		}
		return lines.String()
	}
	var whole strings.Builder
	began := time.Now()
	for i := range 3000 {
		time.Sleep(time.Until(began.Add(time.Duration(i) * time.Millisecond))) // as fast as a model, no faster
		s := fmt.Sprintf("token%d ", i)
		if i%20 == 19 {
			s += "\n"
		}
		chunk(s)
		whole.WriteString(s)
	}
	return whole.String()
}

// BenchmarkTerminalClient is the real client in a real terminal: how long to the
// first picture, how often the screen is drawn while a model says 1,000 tokens a
// second for three seconds, how large the client is then and after 100,000 lines,
// and how fast it scrolls through them.
func BenchmarkTerminalClient(b *testing.B) {
	for b.Loop() {
		f := newFastDaemon(b, thousandTokens, nil)
		start := time.Now()
		g := f.client()
		b.ReportMetric(float64(g.until("Ask something").Sub(start).Microseconds())/1000, "first-paint-ms")
		g.quiet()
		g.write("stream\r")
		<-f.said
		g.frames(b, "stream")
		g.quiet()
		for range 50 {
			g.write("more\r")
			<-f.said
			g.quiet()
		}
		b.ReportMetric(float64(rss(b, g.cmd.Process.Pid))/1024, "RSS-MB")
		g.scroll()
		g.frames(b, "scroll")
		b.ReportMetric(float64(rss(b, g.cmd.Process.Pid))/1024, "RSS-scrolled-MB")
	}
}

// scroll presses PgUp a hundred times a second for three seconds.
func (g *glass) scroll() {
	began := time.Now()
	for i := range 300 {
		time.Sleep(time.Until(began.Add(time.Duration(i) * 10 * time.Millisecond))) // a held key
		g.write("\x1b[5~")
	}
}

// frames reports how often the screen was drawn since the last look.
func (g *glass) frames(b *testing.B, what string) {
	_, at := g.look()
	n, gap := 0, time.Duration(0)
	for i := 1; i < len(at); i++ {
		d := at[i].Sub(at[i-1])
		if d > 2*time.Millisecond { // what comes closer together is one picture
			n++
		}
		gap = max(gap, d)
	}
	b.ReportMetric(float64(n)/at[len(at)-1].Sub(at[0]).Seconds(), what+"-frames/s")
	b.ReportMetric(float64(gap.Microseconds())/1000, what+"-longest-gap-ms")
}

// TestTheTerminalClientStaysSmall: what a conversation of 20,000 lines leaves in
// memory. The benchmark has more lines and other figures.
func TestTheTerminalClientStaysSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("this takes seconds")
	}
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("this system does not say how large a process is")
	}
	f := newFastDaemon(t, func(int, func(string)) string { return thousandTokens(2, nil) }, nil)
	g := f.client()
	g.until("Ask something")
	for range 10 {
		g.write("more\r")
		<-f.said
	}
	g.quiet()
	if kb := rss(t, g.cmd.Process.Pid); kb > 40<<10 {
		t.Errorf("after 20,000 lines the client has %d KB in memory, want at most %d", kb, 40<<10)
	}
}
