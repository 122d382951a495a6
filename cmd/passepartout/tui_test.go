package main_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestTheTerminalClientAnswersAndShowsItsGates(t *testing.T) {
	t.Parallel()
	x := newTerminal(t, 100, 40)
	x.say("what is due this week?")
	x.wait("Cut back the raspberries")
	x.wait("▸ ✓ allowed tool.agenda")
	x.keys("C-g")
	x.wait("▾ ✓ allowed tool.agenda")
	x.wait("policy ")
	x.keys("C-g")
	x.gone("▾")

	x.say("run rm -rf /")
	x.wait("✗ denied shell.run")
	x.wait("I may not do that.")
	x.say("/why")
	x.wait("shell.delete-home  rm:")

	x.say("/search raspberries")
	x.wait("1 of 1")
	x.keys("Escape")
	x.gone("1 of 1")

	x.keys("C-p")
	x.wait("commands")
	x.write("stat")
	x.gone("/approvals")
	x.keys("Enter")
	x.wait("journal")

	x.say("/aprove")
	x.wait("Did you mean /approve?")
	x.say("/quit")
	x.wait("it left with 0")
}

func TestTheTerminalClientAsksAndObeys(t *testing.T) {
	t.Parallel()
	x := newTerminal(t, 100, 40)
	const ready = "y allow once, s this session, m make a rule, n deny, r deny with a reason"
	x.say("run curl https://one.invalid/")
	x.wait(ready)
	x.keys("n")
	x.wait("shell.run: denied by you")
	x.wait("person.denied")

	x.say("/clear")
	x.say("run curl https://two.invalid/")
	x.wait(ready)
	x.keys("r")
	x.wait("Why not?")
	x.say("not that one")
	x.wait("denied by you: not that one")

	x.say("/clear")
	x.say("run curl https://three.invalid/")
	x.wait(ready)
	x.keys("y")
	x.wait("allowed once by you")
	x.wait("allowed shell.run")

	x.say("/clear")
	x.say("run curl https://four.invalid/")
	x.wait(ready)
	x.keys("s")
	x.wait("allowed by you for this session")
	x.wait("allowed shell.run")
	x.say("/clear")
	x.say("run curl https://four.invalid/")
	x.wait("allowed shell.run") // without a question
	x.say("/clear")
	x.say("run curl https://five.invalid/")
	x.wait(ready)
	x.keys("m")
	x.wait("with a rule on trial")
	x.wait("On trial: ")
	x.keys("C-d")
	x.wait("it left with 0")
}

func TestTheTerminalClientFitsEveryTerminal(t *testing.T) {
	t.Parallel()
	x := newTerminal(t, 80, 24)
	x.say("what is due this week?")
	x.wait("Renew the library card")
	x.do("resize-window", "-x", "140", "-y", "40")
	x.wait("headings")
	x.do("resize-window", "-x", "20", "-y", "5")
	x.gone("headings")
	x.wait("● main")
	x.do("resize-window", "-x", "300", "-y", "80")
	x.wait("headings")
	x.wait("raspberries")
	x.do("resize-window", "-x", "80", "-y", "24")
	x.gone("headings")
	x.say("/quit")
	x.wait("it left with 0")
}

func TestTheTerminalClientOutlivesItsDaemon(t *testing.T) {
	t.Parallel()
	x := newTerminal(t, 100, 40)
	x.write("what is due th")
	killDaemon(x.lock())
	x.wait("Connected again.")
	x.wait("what is due th")
	x.say("is week?")
	x.wait("Cut back the raspberries")

	x.write("half a thought")
	x.wait("half a thought")
	x.do("kill-session") // the terminal goes away
	x.so(func() bool { _, err := os.Stat(filepath.Join(filepath.Dir(x.lock()), "draft")); return err == nil })
	x.start(100, 40)
	x.wait("typed and not sent the last time")
	x.wait("› half a thought")
}

func TestTheTerminalClientOpensAnEditor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := filepath.Join(dir, "ed")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nprintf 'from the editor: ' >\"$1.new\"; cat \"$1\" >>\"$1.new\"; mv \"$1.new\" \"$1\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	x := newTerminal(t, 100, 30, "EDITOR="+script)
	x.write("a long letter")
	x.keys("C-o")
	x.wait("› from the editor: a long letter")
}

func TestTheTerminalClientNeedsNeitherColourNorUTF8(t *testing.T) {
	t.Parallel()
	x := newTerminal(t, 100, 30, "NO_COLOR=1", "LANG=C", "LC_ALL=C")
	x.say("what is due this week?")
	x.wait("+ allowed tool.agenda")
	raw := x.do("capture-pane", "-e", "-p")
	for _, r := range raw {
		if r > 0x7e {
			t.Fatalf("the screen has %q in the C locale:\n%s", r, raw)
		}
	}
	if regexp.MustCompile(`\x1b\[(?:\d+;)*(?:[349][0-8]|10[0-7])[;m]`).MatchString(raw) {
		t.Errorf("the screen has colours although NO_COLOR is set:\n%q", raw)
	}
}

func TestTheTerminalClientBrowsesAndTakesBack(t *testing.T) {
	t.Parallel()
	x := newTerminal(t, 140, 40)
	x.say("remind me to call Ana by friday")
	x.wait("Captured in inbox/inbox.org")
	x.wait("Files touched")
	x.wait("context   ")
	x.wait("sandbox   ")

	x.say("/agenda")
	x.wait("Water the lemon tree")
	x.wait("today")
	x.keys("m")
	x.wait("call Ana")
	x.keys("Right")
	x.gone(", today")
	x.keys("t")
	x.wait(", today")
	x.keys("Escape")
	x.gone("d w m span")

	x.say("/memory")
	x.wait("inbox/inbox.org")
	x.keys("/")
	x.write("inbox.org")
	x.gone("projects/garden.org")
	x.keys("Enter", "Enter")
	x.wait("* TODO call Ana")
	x.keys("q") // two Escapes at once would be one key with Alt
	x.gone("Memory:")

	x.say("/history call Ana")
	x.wait("History: call Ana")
	x.wait("edit")
	x.keys("Enter")
	x.wait("+* TODO call Ana")
	x.keys("Escape")
	x.gone("+* TODO call Ana")
	x.keys("u")
	x.wait("Undone: ")

	x.say("/focus garden")
	x.wait("In focus: ")
	x.wait("focus     ")
	x.say("/tags")
	x.wait("Leaves the machine")
	x.say("/eval (+ 20 22)")
	x.wait("│ 42")
	x.write("look at projects/gar")
	x.keys("Tab")
	x.wait("look at projects/garden.org")
	x.keys("C-c")
	x.say("/quit")
	x.wait("it left with 0")
}

func TestTheTerminalClientResumesAfterARestart(t *testing.T) {
	t.Parallel()
	x := newTerminal(t, 100, 40)
	x.say("remind me to buy tulips by friday")
	x.wait("Captured in inbox/inbox.org")
	x.say("/session trip")
	x.say("what is due this week?")
	x.wait("Cut back the raspberries")
	killDaemon(x.lock())
	x.wait("Connected again.")
	x.say("/sessions")
	x.wait("1 said  remind me to buy tulips")
	x.keys("Down", "Enter")
	x.wait("This is what was said in main, from the journal.")
	x.wait("remind me to buy tulips by friday")
	x.wait("allowed tool.capture")
	x.say("/rewind")
	x.wait("Undone: ")
	x.wait("› remind me to buy tulips by friday")
	x.keys("C-c")
	x.say("/quit")
	x.wait("it left with 0")
}

func TestTheTerminalClientShowsOutputAsItComes(t *testing.T) {
	t.Parallel()
	x := newTerminal(t, 100, 30)
	x.say("run sh -c 'echo first; sleep 30'")
	printed := regexp.MustCompile(`(?m)^ +first$`)
	x.until("the first line of a command that still runs, or a question", func(s string) bool {
		return printed.MatchString(s) || strings.Contains(s, "y allow once")
	})
	if strings.Contains(x.screen(), "y allow once") { // there is no sandbox here
		x.keys("y")
		x.until("the first line of a command that still runs", printed.MatchString)
	}
	x.keys("Escape")
	x.wait("interrupted")
	x.say("/quit")
	x.wait("it left with 0")
}

func TestTheTerminalClientEditsAsAShellDoes(t *testing.T) {
	t.Parallel()
	x := newTerminal(t, 100, 40)
	x.write("what is due\\")
	x.keys("Enter")
	x.say("this week?")
	x.wait("Cut back the raspberries")
	x.wait("│ this week?")
	x.keys("Up")
	x.wait("› what is due")
	x.keys("C-c")
	x.gone("› what is due")
	x.write("one two three")
	x.keys("C-w")
	x.gone("three")
	x.keys("C-a", "C-k")
	x.gone("one two")

	x.do("set-buffer", "a pasted\nsecond line\n")
	x.do("paste-buffer", "-p")
	x.wait("second line")
	x.keys("C-c")
	x.gone("second line")

	x.keys("?")
	x.wait("Ctrl+P")
	x.keys("PPage")
	x.wait("more below")
	x.keys("C-End")
	x.gone("more below")
	x.write("\x1b[<64;10;10M") // the wheel, up
	x.wait("more below")
	x.keys("C-End")
	for _, name := range []string{"light", "contrast", "mono", "dark"} {
		x.say("/theme " + name)
		x.wait("Theme: " + name)
	}
	x.say("/new")
	x.wait("A new conversation")
	for _, c := range []struct{ say, want string }{
		{"/compact", "makes room by itself"},
		{"/doctor", "passepartout doctor"},
		{"/skills", "Failures"},
		{"/jobs", "jobs"},
		{"/cost", "Spent today"},
		{"/models", "cognition"},
		{"/permissions", "permissions.org"},
	} {
		x.say("/clear")
		x.say(c.say)
		x.wait(c.want)
	}
	x.keys("q")
	x.keys("C-d")
	x.wait("it left with 0")
}

func TestTheTerminalClientLosesNothingOnAFullDisk(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("this system has no disk that is always full")
	}
	x := newTerminal(t, 100, 40)
	if err := os.Symlink("/dev/full", filepath.Join(filepath.Dir(x.lock()), "history")); err != nil {
		t.Fatal(err)
	}
	x.say("what is due this week?")
	x.wait("Cut back the raspberries")
	x.wait("The history could not be written")
	x.keys("Up")
	x.wait("› what is due this week?")
}

func TestTheTerminalClientNeedsATerminal(t *testing.T) {
	t.Parallel()
	h := bareHome(t)
	for name, prepare := range map[string]func(*exec.Cmd){
		"no input":    func(*exec.Cmd) {},
		"a dumb one":  func(c *exec.Cmd) { c.Env = append(c.Env, "TERM=dumb") },
		"closed ones": func(c *exec.Cmd) { c.Path, c.Args = "/bin/sh", []string{"sh", "-c", binary + " tui <&- >&-"} },
	} {
		c := exec.Command(binary, "tui")
		c.Env = h.env
		prepare(c)
		var exit *exec.ExitError
		if out, err := c.CombinedOutput(); !errors.As(err, &exit) || exit.ExitCode() != 2 || strings.Contains(string(out), "goroutine") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}
