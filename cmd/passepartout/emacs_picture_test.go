package main_test

import (
	"os"
	"path/filepath"
	"testing"
)

func TestEmacsInARealTerminal(t *testing.T) {
	env, memex := editorHome(t)
	x := newEmacs(t, env, 110, 34)
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
