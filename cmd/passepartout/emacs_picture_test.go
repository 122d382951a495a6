package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// newEmacs is a terminal with a real Emacs in it, whose client talks to a real
// daemon with a scripted model.
func newEmacs(t *testing.T, w, h int) (x *terminal, memex string) {
	t.Helper()
	emacs := emacsOf(t)
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed, so there is no terminal to drive")
	}
	if testing.Short() {
		t.Skip("driving a terminal takes seconds")
	}
	env, memex := editorHome(t)
	dir, err := os.MkdirTemp("", "pp") // short: socket paths are limited
	if err != nil {
		t.Fatal(err)
	}
	lisp, err := filepath.Abs(filepath.Join("..", "..", "emacs"))
	if err != nil {
		t.Fatal(err)
	}
	x = &terminal{T: t, dir: dir, looks: 2400, env: append(env, "TERM=tmux-256color", "COLORTERM=truecolor")}
	t.Cleanup(func() {
		_ = x.tmux("kill-server").Run() // it may be gone already
		os.RemoveAll(dir)
	})
	run := fmt.Sprintf("%s -Q -nw -L %s -l passepartout --eval '(progn (menu-bar-mode -1) (setq passepartout-program %q make-backup-files nil create-lockfiles nil))' -f passepartout",
		emacs, lisp, binary)
	x.do("new-session", "-d", "-x", fmt.Sprint(w), "-y", fmt.Sprint(h), run)
	x.do("set-option", "-g", "default-terminal", "tmux-256color")
	x.wait("Say something")
	x.keys("C-x", "1")
	x.gone("*scratch*")
	return x, memex
}

func TestEmacsInARealTerminal(t *testing.T) {
	x, memex := newEmacs(t, 110, 34)
	x.write("code please")
	x.keys("C-c", "C-c")
	x.wait("(defun x () nil)")
	x.write("keep the lamp in mind")
	x.keys("C-c", "C-c")
	x.wait("[Approve once]")
	x.wait("Waiting for you: tool.capture")
	if *pictures != "" { // go test ./cmd/passepartout -run EmacsInAReal -pictures "$PWD/docs/img"
		x.picture("emacs", "Emacs: an answer with code, and a question with its buttons")
	}
	x.keys("M-<")
	x.keys("C-s")
	x.write("[Approve")
	x.keys("Enter")
	x.keys("Enter") // on the button
	x.wait("That is done.")
	x.gone("[Approve once]")
	raw, err := os.ReadFile(filepath.Join(memex, "inbox", "inbox.org"))
	if err != nil || len(raw) == 0 {
		t.Errorf("inbox: %q, %v", raw, err)
	}
}
