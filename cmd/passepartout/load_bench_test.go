package main_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"passepartout/internal/memory/memorytest"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// A served is the real binary as a daemon, with a memex of the baseline's shape and,
// if asked for, a model on this machine that answers at once.
type served struct {
	b    *testing.B
	home string
	cmd  *exec.Cmd
	env  []string
}

// serve prepares a daemon with n headlines. A reply makes the model say it.
func serve(b *testing.B, n int, reply string) *served {
	b.Helper()
	home, err := os.MkdirTemp("", "pp") // short: socket paths are limited
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(home) })
	s := &served{b: b, home: home}
	memex := filepath.Join(home, "memex")
	if err := os.MkdirAll(memex, 0o755); err != nil {
		b.Fatal(err)
	}
	if _, err := memorytest.WriteBaseline(memex, n, time.Now()); err != nil {
		b.Fatal(err)
	}
	s.env = []string{
		"HOME=" + home, "PATH=" + os.Getenv("PATH"), "MEMEX_DIR=" + memex, "PASSEPARTOUT_STATE_DIR=" + filepath.Join(home, "state"),
		"PASSEPARTOUT_RUNTIME_DIR=" + home, "PASSEPARTOUT_SOCKET=" + s.socket(), "PASSEPARTOUT_MAX_CLIENTS=2048", "OLLAMA_URL=http://127.0.0.1:1",
	}
	if reply != "" {
		s.env = append(s.env, "LOCAL_URL="+model(b, reply)+"/v1")
	}
	s.start()
	return s
}

// model is the baseline's mock backend behind the wire every provider speaks.
func model(b *testing.B, reply string) (url string) {
	b.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/models", func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(rw, `{"object":"list","data":[{"id":"mock.gguf","meta":{"n_ctx_train":32768}}]}`)
	})
	answer := fmt.Sprintf("data: {\"choices\":[{\"delta\":{\"content\":%q},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", reply)
	mux.HandleFunc("/v1/chat/completions", func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(rw, answer)
	})
	srv := httptest.NewServer(mux)
	b.Cleanup(srv.Close)
	return srv.URL
}

// mockReply is what the baseline's mock says.
const mockReply = `(:TYPE :REQUEST :TARGET :CLI :PAYLOAD (:ACTION :MESSAGE :TEXT "You have three open tasks today." :EXPLANATION "Fixed reply from the mock backend."))`

func (s *served) socket() string { return filepath.Join(s.home, "s") }

func (s *served) start() {
	s.b.Helper()
	s.cmd = exec.Command(binary, "daemon")
	s.cmd.Env = s.env
	if err := s.cmd.Start(); err != nil {
		s.b.Fatal(err)
	}
	s.b.Cleanup(s.stop)
}

// stop ends the daemon as its manager would, so that it leaves its index behind.
func (s *served) stop() {
	if s.cmd.ProcessState != nil {
		return
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.b.Log(err)
	}
	_ = s.cmd.Wait()
}

// dial connects a client, waiting for a daemon that still starts.
func (s *served) dial() (*proto.Client, net.Conn) {
	s.b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	return (&victim{t: s.b, socket: s.socket()}).connect(ctx)
}

// quiet waits until the daemon has done what it does after its start.
func (s *served) quiet() {
	const step = 200 * time.Millisecond
	for range 300 {
		before := processTime(s.cmd.Process.Pid)
		time.Sleep(step)
		if processTime(s.cmd.Process.Pid)-before <= step/20 {
			return
		}
	}
	s.b.Log("the daemon was still at work after a minute")
}

// processTime is the processor time a process has used.
func processTime(pid int) time.Duration {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	var user, system int64
	if len(fields) < 13 {
		return 0
	}
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		return 0
	}
	return time.Duration(user+system) * 10 * time.Millisecond // USER_HZ is 100 on every Linux
}

// ask sends one message and waits for its terminal reply.
func ask(c *proto.Client, m proto.Message) error {
	if err := c.Send(m); err != nil {
		return err
	}
	for {
		r, err := c.Receive()
		if err != nil {
			return err
		}
		if r.Kind == proto.Response {
			if w := r.Payload.Word("STATUS"); w != "DONE" && w != "" {
				return fmt.Errorf("the turn ended %s", r.Payload)
			}
			return nil
		}
	}
}

func agendaQuestion(session int) proto.Message {
	return proto.Message{
		Kind: proto.Event, Meta: sexp.P(sexp.Keyword("SESSION-ID"), fmt.Sprintf("bench-session-%04d", session)),
		Payload: sexp.P(sexp.Keyword("SENSOR"), sexp.Keyword("USER-INPUT"), sexp.Keyword("TEXT"), "What is on my agenda today?"),
	}
}

func healthQuestion(int) proto.Message {
	return proto.Message{Kind: proto.Request, Payload: sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("HEALTH-CHECK"))}
}

// load lets clients, connected beforehand, ask as fast as they are answered, and
// reports the spread of round trips, the throughput and the daemon's memory.
func (s *served) load(b *testing.B, clients, turns int, question func(session int) proto.Message) {
	b.Helper()
	var conns []*proto.Client
	for range clients {
		c, nc := s.dial()
		defer nc.Close()
		conns = append(conns, c)
	}
	s.quiet()
	var took []time.Duration
	var spent time.Duration
	cpu := processTime(s.cmd.Process.Pid)
	for b.Loop() {
		start := time.Now()
		took = append(took, drive(b, conns, turns, question)...)
		spent += time.Since(start)
	}
	slices.Sort(took)
	at := func(share int) float64 { return float64(took[(len(took)-1)*share/100].Microseconds()) / 1000 }
	b.ReportMetric(0, "ns/op") // a round of many turns: the figures below are those of one
	b.ReportMetric(at(50), "p50-ms")
	b.ReportMetric(at(90), "p90-ms")
	b.ReportMetric(at(99), "p99-ms")
	b.ReportMetric(float64(len(took))/spent.Seconds(), "turns/s")
	b.ReportMetric(float64((processTime(s.cmd.Process.Pid)-cpu).Microseconds())/1000/float64(len(took)), "cpu-ms/turn")
	b.ReportMetric(float64(rss(b, s.cmd.Process.Pid))/1024, "RSS-MB")
}

// drive has all clients share a number of turns and returns how long each took.
func drive(b *testing.B, conns []*proto.Client, turns int, question func(int) proto.Message) (took []time.Duration) {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(turns))
	var mu sync.Mutex
	var wait sync.WaitGroup
	for i, c := range conns {
		wait.Go(func() {
			var mine []time.Duration
			for left.Add(-1) >= 0 {
				start := time.Now()
				if err := ask(c, question(i)); err != nil {
					b.Error(err)
					return
				}
				mine = append(mine, time.Since(start))
			}
			mu.Lock()
			took = append(took, mine...)
			mu.Unlock()
		})
	}
	wait.Wait()
	if len(took) == 0 {
		b.Fatal("nothing was answered")
	}
	return took
}

// BenchmarkClients is a turn through a model that answers at once, end to end, for
// one client up to a thousand, each in a conversation of its own.
func BenchmarkClients(b *testing.B) {
	for _, n := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			serve(b, 0, mockReply).load(b, n, max(1000, 3*n), agendaQuestion)
		})
	}
}

// BenchmarkLongReply is a turn whose answer is longer than one write of the ancestor,
// which then waited for the peer's acknowledgement.
func BenchmarkLongReply(b *testing.B) {
	serve(b, 0, strings.Repeat("An answer of some length. ", 350)).load(b, 1, 500, agendaQuestion)
}

// BenchmarkMemexTurn is the same turn over memexes of several sizes.
func BenchmarkMemexTurn(b *testing.B) {
	sizes := map[string]int{"1k": 1000, "10k": 10_000}
	if !testing.Short() {
		sizes["100k"] = 100_000
	}
	for name, n := range sizes {
		b.Run(name, func(b *testing.B) {
			s := serve(b, n, mockReply)
			for _, clients := range []int{1, 10} {
				b.Run(fmt.Sprint(clients), func(b *testing.B) { s.load(b, clients, 300, agendaQuestion) })
			}
		})
	}
}

// BenchmarkHealthCheck is a question the daemon answers itself.
func BenchmarkHealthCheck(b *testing.B) {
	s := serve(b, 0, "")
	for _, n := range []int{1, 10} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { s.load(b, n, 5000, healthQuestion) })
	}
}

// BenchmarkDaemonStart is from the start of the process to an accepted and greeted
// connection, with the index of an earlier run; then how much memory it rests at.
func BenchmarkDaemonStart(b *testing.B) {
	sizes := map[string]int{"0": 0, "10k": 10_000}
	if !testing.Short() {
		sizes["100k"] = 100_000
	}
	for name, n := range sizes {
		b.Run(name, func(b *testing.B) {
			s := serve(b, n, "")
			_, nc := s.dial()
			nc.Close()
			s.quiet()
			var took []time.Duration
			for b.Loop() {
				s.stop()
				start := time.Now()
				s.start()
				_, nc := s.dial()
				took = append(took, time.Since(start))
				nc.Close()
			}
			slices.Sort(took)
			b.ReportMetric(0, "ns/op") // includes the end of the one before
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			s.quiet()
			b.ReportMetric(float64(rss(b, s.cmd.Process.Pid))/1024, "RSS-MB")
		})
	}
}

// BenchmarkConnectAtOnce has a hundred clients connect at the same moment, and then
// five hundred rest.
func BenchmarkConnectAtOnce(b *testing.B) {
	s := serve(b, 0, "")
	_, first := s.dial()
	defer first.Close()
	refused := 0
	for b.Loop() {
		refused += s.rush(b, 100)
	}
	b.ReportMetric(float64(refused)/float64(b.N), "refused-of-100")
	for range 500 {
		_, nc := s.dial()
		defer nc.Close()
	}
	b.ReportMetric(float64(rss(b, s.cmd.Process.Pid))/1024, "RSS-MB-at-500")
}

// rush connects n clients at once and says how many were turned away.
func (s *served) rush(b *testing.B, n int) (refused int) {
	var wait sync.WaitGroup
	var bad atomic.Int64
	for range n {
		wait.Go(func() {
			nc, err := net.Dial("unix", s.socket())
			if err != nil {
				bad.Add(1)
				return
			}
			defer nc.Close()
			if _, err := proto.Connect(nc, "cli", nil); err != nil {
				b.Log(err)
				bad.Add(1)
			}
		})
	}
	wait.Wait()
	return int(bad.Load())
}

// BenchmarkCommand is a command that needs no daemon: what the start of the binary
// costs everybody, and every sandbox once more.
func BenchmarkCommand(b *testing.B) {
	var used time.Duration
	for b.Loop() {
		c := exec.Command(binary, "version")
		if err := c.Run(); err != nil {
			b.Fatal(err)
		}
		used += c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	}
	b.ReportMetric(float64(used.Microseconds())/1000/float64(b.N), "cpu-ms/op")
}
