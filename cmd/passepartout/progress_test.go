package main_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestSeveralClientsCanStartTheDaemonAtOnce: one of them wins, and the others join it.
func TestSeveralClientsCanStartTheDaemonAtOnce(t *testing.T) {
	h := bareHome(t, "PROVIDER_CASCADE=reflex")
	h.file("memex/inbox.org", "* TODO Buy a ladder\n", 0o600)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			c := exec.Command(binary, "list my todos")
			c.Env = h.env
			if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "Buy a ladder") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	wg.Wait()
}

// A slowStart is a daemon that takes long to read its memex: it holds the lock and
// says how far it is.
type slowStart struct {
	*newcomersHome
	lock, far string
	socket    string
}

func newSlowStart(t *testing.T, env ...string) *slowStart {
	t.Helper()
	h := bareHome(t, env...)
	state := filepath.Join(h.home, ".local", "state", "passepartout")
	s := &slowStart{newcomersHome: h, lock: filepath.Join(state, "daemon.lock"), far: filepath.Join(state, "starting"), socket: h.socket()}
	h.file("memex/inbox.org", "* TODO Buy a ladder\n", 0o600)
	h.file(".local/state/passepartout/daemon.lock", fmt.Sprintln(os.Getpid()), 0o600)
	h.file(".local/state/passepartout/starting", "reading 512 2048\n", 0o600)
	f, err := os.Open(s.lock)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.Close()
		os.Remove(s.lock) // it names this process
	})
	return s
}

// goOn reads on until that is seen: a bar comes only after a while in which there
// was nothing to see.
func (s *slowStart) goOn(seen func() bool) {
	s.t.Helper()
	for n := 512; n < 1500; n++ {
		s.file(".local/state/passepartout/starting", fmt.Sprintf("reading %d 2048\n", n), 0o600)
		if seen() {
			return
		}
		time.Sleep(10 * time.Millisecond) // between looks
	}
	s.t.Fatal("nobody was told how far it is")
}

// ready lets a daemon listen where the slow one would.
func (s *slowStart) ready() {
	s.t.Helper()
	f := newFastDaemon(s.t, func(int, func(string)) string { return "Here I am." }, nil)
	if err := os.Rename(f.socket, s.socket); err != nil {
		s.t.Fatal(err)
	}
}

func TestALongStartIsShownAsItGoes(t *testing.T) {
	if testing.Short() {
		t.Skip("waiting for a bar takes half a second: run by make test")
	}
	t.Parallel()
	t.Run("to a person", func(t *testing.T) {
		s := newSlowStart(t)
		c := exec.Command(binary, "hello")
		c.Env = s.env
		g := newGlass(t, c)
		s.goOn(func() bool {
			text, _ := g.look()
			return strings.Contains(text, "Reading the memex ▰▰▰▰▰▰▰")
		})
		s.ready()
		g.until("Here I am.")
	})
	t.Run("in the terminal client", func(t *testing.T) {
		s := newSlowStart(t)
		x := bareTerminal(t, s.env...)
		x.open(100, 30, binary+" tui")
		x.wait("reading ▰▰▱▱▱▱▱▱▱▱ 512/2048")
		x.write("typed meanwhile")
		x.wait("› typed meanwhile")
		s.ready()
		x.gone("512/2048")
		x.keys("Enter")
		x.wait("Here I am.")
		x.say("/quit")
		x.wait("it left with 0")
	})
	t.Run("to a program", func(t *testing.T) {
		s := newSlowStart(t)
		c := exec.Command(binary, "--format", "stream-json", "hello")
		c.Env = s.env
		var out lockedBuffer
		c.Stdout, c.Stderr = &out, &out
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		s.goOn(func() bool { return strings.Contains(out.String(), `"type":"progress"`) })
		s.ready()
		if err := c.Wait(); err != nil || !strings.Contains(out.String(), `"want":2048,"what":"reading"`) || !strings.Contains(out.String(), `"type":"answer"`) {
			t.Errorf("%v\n%s", err, out.String())
		}
	})
}

// A lockedBuffer can be read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// TestALargeImportIsShownAndStopped: in the shell it runs in, and in a terminal client
// elsewhere; Ctrl-C ends it between two files, and the same command goes on.
func TestALargeImportIsShownAndStopped(t *testing.T) {
	if testing.Short() {
		t.Skip("a large import takes seconds: run by make test")
	}
	t.Parallel()
	h := bareHome(t, "PROVIDER_CASCADE=reflex")
	h.file("memex/inbox.org", "* TODO Buy a ladder\n", 0o600)
	h.file("vault/0000.md", strings.Repeat("- a line of a long list, with *words* in it\n", 2_000), 0o600)
	const files = 500
	for i := 1; i < files; i++ { // the same bytes under many names
		if err := os.Link(filepath.Join(h.home, "vault", "0000.md"), filepath.Join(h.home, "vault", fmt.Sprintf("%04d.md", i))); err != nil {
			t.Fatal(err)
		}
	}
	x := bareTerminal(t, h.env...)
	x.open(100, 30, binary+" tui")
	x.wait("● main")

	c := exec.Command(binary, "import", filepath.Join(h.home, "vault"))
	c.Env = h.env
	g := newGlass(t, c)
	g.until("Importing ▰")
	x.wait("importing ▰", "importing ▱")
	g.write("\x03")
	g.until(fmt.Sprintf("of %d files; the same command goes on from there", files))
	x.gone("importing")
	x.say("/quit")
	x.wait("it left with 0")

	imported := func() int {
		names, err := filepath.Glob(filepath.Join(h.home, "memex", "resources", "imported", "vault", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if !strings.HasSuffix(name, ".org") {
				t.Errorf("%s was left behind", name)
			}
		}
		return len(names)
	}
	if n := imported(); n == 0 || n == files {
		t.Fatalf("%d of %d files were imported before it was stopped", n, files)
	}
	for i := 10; i < files; i++ { // what is left is not worth the wait
		if err := os.Remove(filepath.Join(h.home, "vault", fmt.Sprintf("%04d.md", i))); err != nil {
			t.Fatal(err)
		}
	}
	out, code := h.call("", "import", "--format", "stream-json", filepath.Join(h.home, "vault"))
	if code != 0 || !strings.Contains(out, `"done":"same"`) || !strings.Contains(out, `"type":"result"`) || imported() < 10 {
		t.Errorf("the second time: exit %d, %.300s", code, out)
	}
}
