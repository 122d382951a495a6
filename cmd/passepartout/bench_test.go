package main_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// BenchmarkTurn is a chat turn end to end: client, socket, reflex engine, gates,
// tool, journal, reply; a command with a sandbox of its own. It reports the median and the 99th percentile.
func BenchmarkTurn(b *testing.B) {
	for name, text := range map[string]string{"read": "list my projects", "write": "note that this is a note", "command": "$ true"} {
		b.Run(name, func(b *testing.B) {
			home := b.TempDir()
			sock := filepath.Join(home, "s")
			cmd := exec.Command(binary, "daemon")
			cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "MEMEX_DIR=" + filepath.Join(home, "memex"), "PASSEPARTOUT_STATE_DIR=" + filepath.Join(home, "state"), "PASSEPARTOUT_RUNTIME_DIR=" + home, "PASSEPARTOUT_SOCKET=" + sock}
			if err := os.MkdirAll(filepath.Join(home, "memex"), 0o755); err != nil {
				b.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				b.Fatal(err)
			}
			defer cmd.Wait()
			defer cmd.Process.Kill()
			c := dialBench(b, sock)
			var took []time.Duration
			for b.Loop() {
				start := time.Now()
				if !turn(c, text) {
					b.Fatal("the turn failed")
				}
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
			b.ReportMetric(float64(rss(b, cmd.Process.Pid))/1024, "RSS-MB")
		})
	}
}

// BenchmarkColdStart is from no daemon to the first answer on stdout.
func BenchmarkColdStart(b *testing.B) {
	for b.Loop() {
		home := b.TempDir()
		env := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + home, "MEMEX_DIR=" + filepath.Join(home, "memex"), "PASSEPARTOUT_STATE_DIR=" + filepath.Join(home, "state"), "PASSEPARTOUT_RUNTIME_DIR=" + home, "PASSEPARTOUT_SOCKET=" + filepath.Join(home, "s")}
		if err := os.MkdirAll(filepath.Join(home, "memex"), 0o755); err != nil {
			b.Fatal(err)
		}
		cmd := exec.Command(binary, "help me") // not a subcommand: a sentence
		cmd.Env = env
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		b.StopTimer()
		killDaemon(filepath.Join(home, "state", "daemon.lock"))
		b.StartTimer()
	}
}

func dialBench(b *testing.B, sock string) *proto.Client {
	b.Helper()
	v := &victim{t: b, socket: sock}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c, nc := v.connect(ctx)
	b.Cleanup(func() { nc.Close() })
	return c
}

func turn(c *proto.Client, text string) bool {
	err := c.Send(proto.Message{Kind: proto.Event, Payload: sexp.P(sexp.Keyword("SENSOR"), sexp.Keyword("USER-INPUT"), sexp.Keyword("TEXT"), text)})
	for err == nil {
		var m proto.Message
		if m, err = c.Receive(); err == nil && m.Kind == proto.Response {
			return m.Payload.Word("STATUS") == "DONE"
		}
	}
	return false
}

// rss is a process's resident memory in KiB.
func rss(b testing.TB, pid int) int {
	b.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(raw)) {
		var n int
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &n); err == nil {
			return n
		}
	}
	return 0
}
