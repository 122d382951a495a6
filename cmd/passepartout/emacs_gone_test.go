package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Found by the soak: writing to a daemon that had just gone was an error in the middle
// of whatever Emacs was doing, and an answer being shown was lost with it. With a new
// connection made at once, nobody was ever told about the old one's questions.
func TestTheEmacsClientReportsWhatItCouldNotSendAndGoesOn(t *testing.T) {
	dir, err := os.MkdirTemp("", "pp") // short: socket paths are limited
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	c := exec.Command("env", "--ignore-signal=PIPE", emacsOf(t), "-Q", "--batch", "-L", filepath.Join("..", "..", "emacs"), "-l", filepath.Join("testdata", "emacs", "gone.el"))
	c.Env = append(os.Environ(), "TMPDIR="+dir)
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "told ((1 . :lost)), 2 wait") {
		t.Errorf("%v\n%s", err, out)
	}
}
