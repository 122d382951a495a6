package act_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"passepartout/internal/act"
	"passepartout/internal/proto"
)

func TestCommandsRunForRealAndSayHowTheyEnded(t *testing.T) {
	sandboxed(t)
	s := open(t, act.Web{})
	for _, c := range []struct {
		args, want string
		ok         bool
	}{
		{`:CMD "echo hello; echo oops >&2"`, "hello\nstderr: oops", true},
		{`:ARGV ("printf" "%s|" "a b" "$HOME")`, "a b|$HOME|", true},
		{`:CMD "printf '10\\r50\\r100\\n\\033[31mred\\033[0m\\a done\\r\\n'"`, "100\nred done", true},
		{`:CMD "exit 3"`, "exit code 3", false},
		{`:CMD "kill -9 $$"`, "killed by", false},
		{`:CMD "true"`, "(no output)", true},
		{`:ARGV ("no-such-program")`, "not run: ", false},
		{`:CMD "test -t 0 && test -t 1 && echo a terminal" :PTY T`, "a terminal", true},
		{`:CMD "test -t 1 || echo no terminal"`, "no terminal", true},
		{`:CMD "cat ../state/undo/lock"`, "stderr: ", false},
	} {
		if o := s.do("shell", "%s", c.args); o.OK != c.ok || !strings.Contains(o.Text, c.want) || strings.ContainsAny(o.Text, "\r\x1b\a") {
			t.Errorf("%s: ok %t, %v, %q: want %t, %q", c.args, o.OK, o.Taint, o.Text, c.ok, c.want)
		}
	}
	for _, args := range []string{``, `:CMD " "`, `:CMD "ls" :ARGV ("ls")`} {
		s.fails("not run: give the program", "shell", "%s", args)
	}
}

func TestACommandThatOnlyReadsGetsNothingToWriteTo(t *testing.T) {
	sandboxed(t)
	s := open(t, act.Web{})
	s.write("memex/a.txt", "text\n")
	if o := s.succeeds("shell", `:CMD "cat a.txt"`); o.Text != "text" {
		t.Errorf("read %q", o.Text)
	}
	if n := len(s.history.Steps()); n != 0 {
		t.Errorf("%d steps were remembered of a command that reads", n)
	}
	o := s.succeeds("shell", `:CMD "echo more >> a.txt; mkdir d; touch d/f"`)
	if s.read("memex/a.txt") != "text\nmore\n" || len(o.Changed) != 3 {
		t.Errorf("changed %v: %q", o.Changed, s.read("memex/a.txt"))
	}
}

func TestAScriptThatChangedAfterTheRulingIsNotRun(t *testing.T) {
	sandboxed(t)
	s := open(t, act.Web{})
	s.write("memex/job.sh", "echo judged\n")
	p := s.permit("shell", `:CMD "sh job.sh"`)
	s.write("memex/job.sh", "echo other\n")
	if o := s.carryOut(context.Background(), p); o.OK || !strings.Contains(o.Text, "changed after the gates read it") {
		t.Errorf("ok %t: %s", o.OK, o.Text)
	}
	if o := s.succeeds("shell", `:CMD "sh job.sh"`); o.Text != "other" {
		t.Errorf("the new script gave %q", o.Text)
	}
}

func TestOutputIsHeardWhileTheCommandRunsAndItCanBeInterrupted(t *testing.T) {
	sandboxed(t)
	s := open(t, act.Web{})
	var mu sync.Mutex
	var heard strings.Builder
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	ctx = act.InTurn(ctx, act.Turn{ID: "s-1", Step: "a-1", Output: func(b []byte) {
		mu.Lock()
		defer mu.Unlock()
		heard.Write(b)
		if strings.Contains(heard.String(), "started") { // it runs: without an end of its own
			stop(errors.New("interrupted"))
		}
	}})
	o := s.carryOut(ctx, s.permit("shell", `:CMD "echo started; while true; do true; done"`))
	if o.OK || !strings.Contains(o.Text, "started") || !strings.Contains(o.Text, "interrupted") {
		t.Errorf("ok %t: %s", o.OK, o.Text)
	}
}

func TestMuchOutputIsCutInTheMiddle(t *testing.T) {
	sandboxed(t)
	s := open(t, act.Web{})
	o := s.succeeds("shell", `:CMD "echo first; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo last"`)
	if !o.Truncated || !strings.HasPrefix(o.Text, "first\n") || !strings.HasSuffix(o.Text, "last") || len(o.Text) > act.MaxOutput {
		t.Errorf("truncated %t, %d bytes", o.Truncated, len(o.Text))
	}
}

func TestTestsSayFirstWhatFailed(t *testing.T) {
	sandboxed(t)
	s := open(t, act.Web{})
	s.write("memex/t.sh", "echo 'ok 1 - adds'\ngrep -q fixed code.txt || { echo 'not ok 2 - subtracts'; exit 1; }\necho 'ok 2 - subtracts'\n")
	s.write("memex/code.txt", "broken\n")
	if o := s.do("run-tests", `:CMD "sh t.sh"`); o.OK || !strings.HasPrefix(o.Text, "1 failed: subtracts\n") {
		t.Errorf("ok %t: %s", o.OK, o.Text)
	}
	s.write("memex/code.txt", "fixed\n")
	if o := s.succeeds("run-tests", `:CMD "sh t.sh"`); !strings.HasPrefix(o.Text, "The tests passed.\n") {
		t.Errorf("got %s", o.Text)
	}
}

func BenchmarkShellWithUndo(b *testing.B) {
	sandboxed(b)
	s := open(b, act.Web{})
	for range 200 {
		s.write("memex/many/"+must1(os.CreateTemp(s.dir, "f")).Name()[len(s.dir)+1:], "text\n")
	}
	for b.Loop() {
		s.succeeds("shell", `:CMD "echo x > out.txt"`)
	}
}

// TestWhatACommandOfAPrivateTurnWritesIsPrivateAtOnce: it can hold what the turn has
// read, and its label comes only when the command ends.
func TestWhatACommandOfAPrivateTurnWritesIsPrivateAtOnce(t *testing.T) {
	sandboxed(t)
	s := open(t, act.Web{})
	for _, private := range []bool{false, true} {
		pieces := 0
		ctx := act.InTurn(t.Context(), act.Turn{ID: "s-1", Taint: proto.Taint{Private: private}, Output: func([]byte) {
			pieces++
			if got := s.labels.Of(s.path("memex/copy.txt")).Private; got != private || s.labels.Spreading() != private {
				t.Errorf("of a turn that is private (%t): %t while it runs", private, got)
			}
		}})
		s.carryOut(ctx, s.permit("shell", `:CMD "echo words >> copy.txt; echo here"`))
		if got := s.labels.Of(s.path("memex/copy.txt")).Private; pieces == 0 || got != private || s.labels.Spreading() {
			t.Errorf("of a turn that is private (%t): %t when it has ended", private, got)
		}
	}
}
