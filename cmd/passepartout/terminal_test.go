package main_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A terminal is a real one, held by tmux.
type terminal struct {
	*testing.T
	dir   string
	env   []string
	looks int // how often it is looked at the screen before giving up
}

// newTerminal is one in which the client runs, with the demo memex.
func newTerminal(t *testing.T, w, h int, env ...string) *terminal {
	t.Helper()
	x := bareTerminal(t, env...)
	x.start(w, h)
	return x
}

// bareTerminal is one with a home of its own, in which nothing runs yet.
func bareTerminal(t *testing.T, env ...string) *terminal {
	t.Helper()
	x := holdTerminal(t)
	x.env = append(x.env, append([]string{
		"HOME=" + filepath.Join(x.dir, "home"), "TMPDIR=" + x.dir, "XDG_RUNTIME_DIR=" + x.dir, "PATH=" + os.Getenv("PATH"),
	}, env...)...)
	return x
}

// holdTerminal is one that has nothing but what is given.
func holdTerminal(t *testing.T, env ...string) *terminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed, so there is no terminal to drive")
	}
	if testing.Short() {
		t.Skip("driving a terminal takes seconds: run by make test")
	}
	dir, err := os.MkdirTemp("", "pp") // short: socket paths are limited
	if err != nil {
		t.Fatal(err)
	}
	x := &terminal{T: t, dir: dir, looks: 2400, env: append([]string{"LANG=C.UTF-8", "TERM=tmux-256color", "COLORTERM=truecolor"}, env...)}
	t.Cleanup(func() {
		x.close()
		stopDaemon(x.lock())
		os.RemoveAll(dir)
	})
	return x
}

// close ends what runs in the terminal and waits for it: a client that has not ended yet
// would start the daemon again that the test is about to stop.
func (x *terminal) close() {
	panes, _ := x.tmux("list-panes", "-a", "-F", "#{pane_pid}").Output()
	if x.tmux("kill-server").Run() != nil {
		return // it is gone already
	}
	for _, pane := range strings.Fields(string(panes)) {
		for range 1000 {
			if !sessionLives(pane) {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// sessionLives reports whether a process is left in a session of the system's, as far as
// it tells.
func sessionLives(id string) bool {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	return slices.ContainsFunc(stats, func(name string) bool {
		raw, err := os.ReadFile(name)
		f := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:])) // state, parent, group, session
		return err == nil && len(f) > 3 && f[3] == id && f[0] != "Z"
	})
}

// newEmacs is a terminal with a real Emacs in it, whose client talks to the daemon of
// an environment.
func newEmacs(t *testing.T, env []string, w, h int) *terminal {
	t.Helper()
	emacs := emacsOf(t)
	lisp, err := filepath.Abs(filepath.Join("..", "..", "emacs"))
	if err != nil {
		t.Fatal(err)
	}
	x := holdTerminal(t, env...)
	x.open(w, h, fmt.Sprintf(
		"%s -Q -nw -L %s -l passepartout --eval '(progn (menu-bar-mode -1) (setq passepartout-program %q make-backup-files nil create-lockfiles nil))' -f passepartout",
		emacs, lisp, binary))
	x.wait("Say something")
	x.keys("C-x", "1")
	x.gone("*scratch*")
	return x
}

func (x *terminal) tmux(args ...string) *exec.Cmd {
	c := exec.Command("tmux", append([]string{"-S", filepath.Join(x.dir, "tmux"), "-f", os.DevNull}, args...)...)
	c.Env = x.env
	return c
}

func (x *terminal) do(args ...string) string {
	x.Helper()
	out, err := x.tmux(args...).CombinedOutput()
	if err != nil {
		x.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// start opens the client. The line after it tells when it has left, and how.
func (x *terminal) start(w, h int) {
	x.Helper()
	x.open(w, h, binary+" --demo tui")
	x.wait("●", "connected", "o main")
}

// open runs a command in a new window.
func (x *terminal) open(w, h int, command string) {
	x.Helper()
	x.do("new-session", "-d", "-x", fmt.Sprint(w), "-y", fmt.Sprint(h), command+"; echo it left with $?; exec cat")
}

// keys presses keys by tmux's names; write types text.
func (x *terminal) keys(names ...string) {
	x.Helper()
	x.do(append([]string{"send-keys"}, names...)...)
}
func (x *terminal) write(text string) { x.Helper(); x.do("send-keys", "-l", text) }
func (x *terminal) say(text string)   { x.Helper(); x.write(text); x.keys("Enter") }
func (x *terminal) screen() string    { x.Helper(); return x.do("capture-pane", "-p") }

// wait looks at the screen until it shows one of the texts.
func (x *terminal) wait(texts ...string) {
	x.Helper()
	x.until("one of "+strings.Join(texts, " / "), func(s string) bool {
		for _, text := range texts {
			if strings.Contains(s, text) {
				return true
			}
		}
		return false
	})
}

// gone looks at the screen until it no longer shows a text.
func (x *terminal) gone(text string) {
	x.Helper()
	x.until("no more "+text, func(s string) bool { return !strings.Contains(s, text) })
}

func (x *terminal) until(what string, ok func(screen string) bool) {
	x.Helper()
	var got string
	for range x.looks {
		if got = x.screen(); ok(got) {
			return
		}
		time.Sleep(25 * time.Millisecond) // between looks
	}
	x.Fatalf("the screen never showed %s:\n%s", what, got)
}

// lock is the lock file of the demo's daemon.
func (x *terminal) lock() string {
	found, err := filepath.Glob(filepath.Join(x.dir, "passepartout-demo-*", "*", "*", "state", "daemon.lock"))
	if err != nil || len(found) == 0 {
		return ""
	}
	return found[0]
}

// so looks until something is so.
func (x *terminal) so(ok func() bool) {
	x.Helper()
	for range x.looks {
		if ok() {
			return
		}
		time.Sleep(25 * time.Millisecond) // between looks
	}
	x.Fatal("it never came to be")
}
