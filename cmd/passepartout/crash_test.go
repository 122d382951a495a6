package main_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"passepartout/internal/journal"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// A victim is a real daemon process on a memex of its own, made to be killed.
type victim struct {
	t            testing.TB
	home, socket string
	cmd          *exec.Cmd
}

func newVictim(t *testing.T) *victim {
	t.Helper()
	home, err := os.MkdirTemp("", "pp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	if err := os.MkdirAll(filepath.Join(home, "memex"), 0o755); err != nil {
		t.Fatal(err)
	}
	return &victim{t: t, home: home, socket: filepath.Join(home, "passepartout.sock")}
}

func (v *victim) start() {
	v.t.Helper()
	v.cmd = exec.Command(binary, "daemon")
	v.cmd.Env = []string{
		"HOME=" + v.home, "PATH=" + os.Getenv("PATH"), "MEMEX_DIR=" + filepath.Join(v.home, "memex"),
		"PASSEPARTOUT_STATE_DIR=" + filepath.Join(v.home, "state"), "PASSEPARTOUT_RUNTIME_DIR=" + v.home,
	}
	var stderr strings.Builder
	v.cmd.Stderr = &stderr
	if err := v.cmd.Start(); err != nil {
		v.t.Fatal(err)
	}
}

// kill ends the daemon at once and reaps it.
func (v *victim) kill() {
	v.cmd.Process.Kill()
	v.cmd.Wait()
}

func (v *victim) connect(ctx context.Context) (*proto.Client, net.Conn) {
	v.t.Helper()
	var d net.Dialer
	for ctx.Err() == nil {
		nc, err := d.DialContext(ctx, "unix", v.socket)
		if err != nil {
			time.Sleep(2 * time.Millisecond) // it is still starting
			continue
		}
		c, err := proto.Connect(nc, "cli", nil)
		if err == nil {
			return c, nc
		}
		nc.Close()
	}
	v.t.Fatal("the daemon does not come up")
	return nil, nil
}

// note captures one heading and reports whether the daemon lived to say so.
func note(c *proto.Client, n int) bool {
	err := c.Send(proto.Message{
		Kind: proto.Event, Meta: sexp.P(sexp.Keyword("ID"), n),
		Payload: sexp.P(sexp.Keyword("SENSOR"), sexp.Keyword("USER-INPUT"), sexp.Keyword("TEXT"), fmt.Sprintf("note that number %d", n)),
	})
	for err == nil {
		var m proto.Message
		if m, err = c.Receive(); err == nil && m.Kind == proto.Response {
			return m.Payload.Word("STATUS") == "DONE"
		}
	}
	return false
}

// TestCrashAtRandomPoints kills the daemon with SIGKILL again and again in the
// middle of its work. Afterwards the journal must verify, every effect must have
// its ruling before it, and whatever was acknowledged must be in the Org file.
func TestCrashAtRandomPoints(t *testing.T) {
	kills, turns, longest, least := 12, 50, 150*time.Millisecond, 0
	if os.Getenv("PASSEPARTOUT_SOAK") != "" {
		kills, turns, longest, least = 200, 200, 2*time.Second, 10_000
	}
	if testing.Short() {
		kills = 3
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, at least %d kills and %d turns", seed, kills, least)
	rnd := rand.New(rand.NewPCG(seed, 1))
	v := newVictim(t)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	defer cancel()
	n := 0
	acknowledged := map[int]bool{}
	for killed := 0; killed < kills || n < least; killed++ {
		v.start()
		c, nc := v.connect(ctx)
		die := time.AfterFunc(time.Duration(rnd.Int64N(int64(longest))), func() { v.cmd.Process.Kill() })
		for range turns {
			n++
			if !note(c, n) {
				break
			}
			acknowledged[n] = true
		}
		die.Stop()
		v.kill()
		nc.Close()
	}
	v.start() // recovers
	_, nc := v.connect(ctx)
	nc.Close()
	v.kill()
	checkAftermath(t, v, acknowledged)
	t.Logf("%d turns begun, %d acknowledged", n, len(acknowledged))
}

func checkAftermath(t *testing.T, v *victim, acknowledged map[int]bool) {
	t.Helper()
	if _, err := journal.Verify(filepath.Join(v.home, "state", "journal")); err != nil {
		t.Fatalf("the journal does not verify: %v", err)
	}
	permitted := map[string]bool{}
	for e, err := range journal.Read(filepath.Join(v.home, "state", "journal")) {
		if err != nil {
			t.Fatal(err)
		}
		if b := e.Body; b.Word("KIND") == "RULING" && b.Sub("TRACE").Word("DECISION") == "ALLOW" && b.Sub("ACTION").Word("VERB") == "CAPTURE" {
			permitted[b.Sub("ACTION").Sub("ARGS").Text("TITLE")] = true
		}
	}
	raw, err := os.ReadFile(filepath.Join(v.home, "memex", "inbox", "inbox.org"))
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]int{}
	for line := range strings.Lines(string(raw)) {
		title, heading := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "* ")
		switch {
		case heading && strings.HasPrefix(title, "number "):
			kept[title]++
		case strings.HasPrefix(line, ":PROPERTIES:"), strings.HasPrefix(line, ":ID: "), strings.HasPrefix(line, ":END:"):
		default:
			t.Fatalf("the Org file holds a line nobody wrote: %q", line)
		}
	}
	for title, times := range kept {
		if !permitted[title] {
			t.Errorf("%q was written without a ruling before it", title)
		}
		if times != 1 {
			t.Errorf("%q was written %d times", title, times)
		}
	}
	for n := range acknowledged {
		if title := fmt.Sprintf("number %d", n); kept[title] != 1 {
			t.Errorf("%q was acknowledged and is not in the file", title)
		}
	}
	if len(kept) == 0 {
		t.Error("nothing was written, so this test shows nothing")
	}
}
