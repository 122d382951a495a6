package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestANewcomersTenMinutes is somebody with an empty home who has heard of the project:
// from a clone to the first answer in three commands, then a task captured and found in
// the Org file, a command denied and explained, one approved, and what was done undone.
// It says how long the first answer took after the build; nothing depends on it.
func TestANewcomersTenMinutes(t *testing.T) {
	t.Parallel()
	x := bareTerminal(t)
	root := run(t, "git", "rev-parse", "--show-toplevel")
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPROXY"} { // what a newcomer would download
		x.env = append(x.env, name+"="+run(t, "go", "env", name))
	}
	x.env = append(x.env, "PS1=ready> ", "ENV=", "MAKEFLAGS=", "SHELL=/bin/sh", "GOTOOLCHAIN=local")
	home := filepath.Join(x.dir, "home")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	x.looks = 4000 // a first build takes as long as it takes
	x.open(120, 40, "cd "+home+"; /bin/sh")

	commands := []string{
		"git clone -q " + root + " passepartout",
		"cd passepartout",
		`echo "what is due this week?" | make -s run`,
	}
	x.wait("ready>")
	for _, c := range commands {
		x.say(c)
	}
	x.wait("Cut back the raspberries")
	answered := time.Now()
	built, err := os.Stat(filepath.Join(home, "passepartout", "bin", "passepartout"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d commands to the first answer, which came %.1f s after the build", len(commands), answered.Sub(built.ModTime()).Seconds())
	if len(commands) > 3 {
		t.Errorf("the first answer takes %d commands", len(commands))
	}

	x.say("clear; make run")
	x.wait("● main")
	x.say("remind me to call Ana by friday")
	x.wait("Captured in inbox/inbox.org")
	found, err := filepath.Glob(filepath.Join(x.dir, "passepartout-demo-*", "*", "memex", "inbox", "inbox.org"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the demo's inbox: %v, %v", found, err)
	}
	inbox := func() string {
		raw, err := os.ReadFile(found[0])
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	if got := inbox(); !strings.Contains(got, "\n* TODO call Ana\nDEADLINE: <20") {
		t.Errorf("the task is not in the Org file:\n%s", got)
	}

	x.say("run cat ~/.ssh/id_ed25519")
	x.wait("✗ denied shell.run")
	x.wait("I may not do that.")
	x.say("/why")
	x.wait("▾ ✗ denied shell.run")
	x.wait("a private key", "secret", "path.")

	x.say("/session web")
	x.say("run curl -sS http://127.0.0.1:1/")
	x.wait("y allow once")
	x.keys("y")
	x.wait("allowed once by you")
	x.wait("✓ allowed shell.run")
	x.wait("That did not work: stderr: ") // nobody listens there, or there is no curl

	x.say("/undo")
	x.wait("Undone: ")
	if got := inbox(); strings.Contains(got, "call Ana") {
		t.Errorf("it was taken back, and the Org file is still\n%s", got)
	}
	x.say("/quit")
	x.wait("ready>")
	if entries, err := os.ReadDir(home); err != nil || len(entries) > 2 { // the clone, and the shell's or Go's own
		t.Errorf("the home has %v, %v", entries, err)
	}
}

// run is what a program prints, without the line end.
func run(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := exec.Command(argv[0], argv[1:]...).Output()
	if err != nil {
		t.Skipf("%v: %v", argv, err)
	}
	return strings.TrimSpace(string(out))
}
