package act_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"passepartout/internal/act"
	"passepartout/internal/gate"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// ruling lets the gates judge a command, and nobody answer.
func (s *shop) ruling(cmd string) gate.Ruling {
	s.t.Helper()
	v, err := sexp.Read([]byte(fmt.Sprintf(`(:TARGET :TOOL :PAYLOAD (:TOOL "shell" :ARGS (:CMD %q) :EXPLANATION "a test wants it"))`, cmd)), sexp.Limits{})
	must(s.t, err)
	a, err := s.table.Vocabulary().Decode(v, proto.Cause{Signal: "s-1", Session: "main", Origin: owner, Proposer: "test"})
	must(s.t, err)
	return s.chain.Decide(a, gate.Facts{Now: noon, Signal: proto.Signal{ID: "s-1", Session: "main", Origin: owner}, World: disk{}})
}

// tries has a command tried and sees that nothing of it lasts.
func (s *shop) tries(cmd string) act.Preview {
	s.t.Helper()
	before := s.tree()
	r := s.ruling(cmd)
	if r.Decision() != gate.Ask {
		s.t.Fatalf("%s is not asked about: %s", cmd, r.Decision())
	}
	p, ok := s.table.Rehearse(context.Background(), r)
	if !ok {
		s.t.Fatal("there is nothing to try")
	}
	if after := s.tree(); after != before {
		s.t.Errorf("a trial changed\n%s\nwas\n%s", after, before)
	}
	left, err := os.ReadDir(filepath.Join(s.dir, "state", "trials"))
	if len(left) > 0 || err != nil && !os.IsNotExist(err) {
		s.t.Errorf("a trial left %v (%v)", left, err)
	}
	return p
}

// overlaid skips where nothing can be tried.
func overlaid(t *testing.T, s *shop) {
	t.Helper()
	if p := s.tries("rm inbox.org"); !p.Tried {
		t.Skip("nothing can be tried here: ", p.Text)
	}
}

func TestAPersonIsShownWhatACommandWouldChange(t *testing.T) {
	sandboxed(t)
	s := open(t, act.Web{})
	overlaid(t, s)
	s.write("memex/a.txt", "one\ntwo\nthree\n")
	s.write("memex/old.txt", "going\n")
	s.write("memex/raw", "\x00\xff")
	s.write("memex/tree/deep", "below\n")
	cmd := `sed -i s/two/zwei/ a.txt; rm old.txt; rm raw; rm -r tree; echo new > fresh.txt; ln -s a.txt link; chmod 600 inbox.org; echo done`
	p := s.tries(cmd)
	want := []string{
		"modified a.txt", "created fresh.txt", "modified inbox.org", "created link",
		"deleted old.txt", "deleted raw", "deleted tree", "deleted tree/deep",
	}
	if !p.Tried || !slices.Equal(p.Changed, want) {
		t.Errorf("tried %t, %v\n%s", p.Tried, p.Changed, p.Text)
	}
	if !strings.Contains(p.Text, "exit code 0") || !strings.Contains(p.Text, "2 created, 2 modified, 4 deleted.") {
		t.Errorf("said %s", p.Text)
	}
	for _, part := range []string{
		"It printed:\n    done\n", "-two\n+zwei\n", "--- a/a.txt\n+++ b/a.txt\n", "+new\n", "-going\n", "-below\n",
		"link -> a.txt\n", "inbox.org: mode -rw-------\n", "raw: too large, or not text\n",
	} {
		if !strings.Contains(p.Diff, part) {
			t.Errorf("the differences lack %q:\n%s", part, p.Diff)
		}
	}
	// What was shown is what happens when the person agrees.
	if o := s.succeeds("shell", ":CMD %q", cmd); len(o.Changed) != len(want) {
		t.Errorf("changed %v", o.Changed)
	}
	if s.read("memex/a.txt") != "one\nzwei\nthree\n" || s.read("memex/fresh.txt") != "new\n" {
		t.Error("the command did something else than its trial")
	}
}

func TestATrialSaysWhatItDoesNotKnow(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run by make test")
	}
	sandboxed(t)
	s := open(t, act.Web{})
	overlaid(t, s)
	s.write("memex/old.txt", "going\n")
	for cmd, want := range map[string]string{
		"rm old.txt; exit 3":                        "exit code 3",
		"rm old.txt; curl -s https://other.example": "Not tried beforehand: it talks to other machines",
		"rm old.txt; sleep 300":                     "stopped for taking too long",
		"rm old.txt; dd if=/dev/zero of=big bs=1M":  "", // its size ends it, or the bound on what is held
		"rm old.txt; yes > big":                     "",
		"rm old.txt; for i in 1 2 3 4; do head -c 60000000 /dev/zero > f$i; done": "Not tried beforehand: sandbox unavailable: its changes are more than",
	} {
		p := s.tries(cmd)
		if !strings.Contains(p.Text, want) {
			t.Errorf("%s: %s", cmd, p.Text)
		}
		if !p.Tried && len(p.Changed)+len(p.Diff) > 0 {
			t.Errorf("%s was not tried and yet: %v", cmd, p)
		}
	}
}

// What a command does in a trial, nobody outside hears, and what is hidden from
// commands stays hidden.
func TestATrialReachesNothing(t *testing.T) {
	sandboxed(t)
	s := open(t, act.Web{})
	overlaid(t, s)
	s.write("state/vault", "swordfish")
	s.write("outside/diary", "swordfish")
	s.write("memex/old.txt", "going\n")
	must(t, os.Symlink(s.path("outside"), s.path("memex/door")))
	s.write("memex/veiled", strings.ToUpper("cat "+s.path("state")+"/*; echo x > "+s.path("outside/made")+"; (setsid sleep 1000 &); "+
		"rm door; mkdir door; echo mine > door/diary; (exec 3<>/dev/tcp/127.0.0.1/22); true"))
	p := s.tries(`rm old.txt; eval "$(tr A-Z a-z < veiled)"`) // what the gates cannot read out of the command
	if strings.Contains(p.Diff+p.Text+strings.Join(p.Changed, " "), "swordfish") {
		t.Errorf("a trial showed what is hidden:\n%s", p.Diff)
	}
	if _, err := os.Stat(s.path("outside/made")); err == nil {
		t.Error("a trial wrote outside the roots")
	}
	if !p.Tried || !slices.Contains(p.Changed, "created door/diary") {
		t.Errorf("%s\nchanged %v", p.Text, p.Changed)
	}
}

func TestNothingIsTriedWhenThatIsSwitchedOff(t *testing.T) {
	s := open(t, act.Web{})
	off := act.Shell{Dir: s.memex, WriteRoots: []string{s.memex}}
	table, err := act.NewTable(off)
	must(t, err)
	r := s.ruling("rm inbox.org")
	if p, ok := table.Rehearse(context.Background(), r); !ok || p.Tried || !strings.Contains(p.Text, "PASSEPARTOUT_TRY_SECONDS") {
		t.Errorf("%t %+v", ok, p)
	}
	speaker, err := act.NewTable(act.Speaker{Channel: "cli"})
	must(t, err)
	if _, ok := speaker.Rehearse(context.Background(), r); ok {
		t.Error("an action of a target that is not there was tried")
	}
}
