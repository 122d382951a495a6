package act_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"passepartout/internal/act"
)

func labels(steps []act.Step) string {
	var out []string
	for _, s := range steps {
		mark := ""
		if s.Undone {
			mark = " undone"
		}
		out = append(out, s.Label+mark)
	}
	return strings.Join(out, "\n")
}

func TestFilesAndNotesAreOneHistory(t *testing.T) {
	sandboxed(t)
	s := open(t, act.Web{})
	trees := []string{s.tree()}
	after := func() { trees = append(trees, s.tree()) }
	s.succeeds("capture", `:TITLE "buy a lamp" :TODO "TODO"`)
	after()
	s.succeeds("write-file", `:FILEPATH "plan.txt" :CONTENT "one"`)
	after()
	s.succeeds("org-edit", `:HEADING "Order seeds" :TODO "DONE"`)
	after()
	s.succeeds("shell", `:CMD "mv plan.txt old.txt; rm notes/garden.org; mkdir d; ln -s ../old.txt d/link; chmod 600 old.txt"`)
	after()
	if got := labels(s.history.Steps()); got != "shell mv plan.txt old.txt; rm notes/garden.org; mkdir d; ln -s ../old.txt d/link; chmod 600 old.txt (a-4)\norg-edit Order seeds (a-3)\nwrite-file plan.txt (a-2)\ncapture buy a lamp (a-1)" {
		t.Errorf("the history is\n%s", got)
	}
	for i := len(trees) - 2; i >= 0; i-- {
		s.succeeds("undo", ``)
		if s.tree() != trees[i] {
			t.Fatalf("undone to %d:\n%s\nwant\n%s", i, s.tree(), trees[i])
		}
	}
	s.fails("nothing to be undone", "undo", ``)
	for i := 1; i < len(trees); i++ {
		s.succeeds("redo", ``)
		if s.tree() != trees[i] {
			t.Fatalf("redone to %d:\n%s\nwant\n%s", i, s.tree(), trees[i])
		}
	}
	s.fails("nothing to be redone", "redo", ``)
	s.succeeds("undo", `:OF "s-1"`)
	if s.tree() != trees[0] {
		t.Errorf("the whole turn undone:\n%s\nwant\n%s", s.tree(), trees[0])
	}
	s.succeeds("redo", `:COUNT 10`)
	if s.tree() != trees[len(trees)-1] {
		t.Errorf("all redone:\n%s", s.tree())
	}
	if o := s.succeeds("list-changes", `:COUNT 2`); !strings.Contains(o.Text, "(a-4)") || strings.Contains(o.Text, "(a-2)") || !o.Truncated {
		t.Errorf("listed\n%s", o.Text)
	}
}

// What else changes in the memex while a command runs there is not the command's, to
// take back or to label; what it changes in the same files is.
func TestACommandIsNotBlamedForWhatOthersDoMeanwhile(t *testing.T) {
	sandboxed(t)
	s := open(t, act.Web{})
	s.write("memex/mixed.org", "* One\n")
	s.write("memex/mode.org", "* Mode\n")
	must(t, s.memory.Refresh(t.Context()))
	permit, ctx := s.permit("shell", fmt.Sprintf(`:CMD "echo mine > mine.txt; echo '* Two' >> mixed.org; chmod 640 mode.org; echo mine > .passepartout-x.org-%d-1.tmp; touch begun; until test -e go; do sleep 0.01; done"`, os.Getpid())), s.step()
	ended := make(chan act.Outcome)
	go func() {
		o, err := s.table.Do(ctx, permit)
		if err != nil {
			t.Error(err)
		}
		ended <- o
	}()
	for range 3000 {
		if _, err := os.Lstat(s.path("memex/begun")); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.succeeds("capture", `:TITLE "buy a lamp"`)
	s.succeeds("org-edit", `:HEADING "Order seeds" :TODO "DONE"`)
	s.succeeds("org-edit", `:HEADING "Order seeds" :TITLE "Order"`)
	s.succeeds("org-edit", `:HEADING "Mode" :TODO "DONE"`)
	s.succeeds("write-file", `:FILEPATH "other.txt" :CONTENT "not the command's"`)
	must(t, s.memory.Refresh(t.Context()))
	s.succeeds("org-edit", `:HEADING "Two" :TODO "DONE"`)
	s.write("memex/go", "")
	o := <-ended
	for i := range o.Changed {
		o.Changed[i] = strings.TrimPrefix(o.Changed[i], s.memex+"/")
	}
	if got := strings.Join(o.Changed, " "); !o.OK || got != fmt.Sprintf(".passepartout-x.org-%d-1.tmp begun go mine.txt mixed.org mode.org", os.Getpid()) {
		t.Errorf("%s\nthe command changed %s", o.Text, got)
	}
	s.succeeds("undo", `:OF "a-1"`)
	if tree := s.tree(); strings.Contains(tree, "mine.txt") || !strings.Contains(tree, "buy a lamp") || !strings.Contains(tree, "other.txt") || !strings.Contains(tree, "DONE Order") {
		t.Errorf("the command was taken back, and there is\n%s", tree)
	}
}

func TestOneStepCanBeUndoneAloneByItsRuling(t *testing.T) {
	s := open(t, act.Web{})
	s.succeeds("write-file", `:FILEPATH "a.txt" :CONTENT "a"`)      // a-1
	s.succeeds("write-file", `:FILEPATH "b.txt" :CONTENT "b"`)      // a-2
	s.succeeds("org-edit", `:HEADING "Dig the beds" :TODO "DONE"`)  // a-3
	s.succeeds("org-edit", `:HEADING "Order seeds" :TITLE "Order"`) // a-4
	s.succeeds("undo", `:OF "a-1"`)
	s.succeeds("undo", `:OF "a-3"`)
	if _, err := os.Lstat(s.path("memex/a.txt")); !errors.Is(err, os.ErrNotExist) || s.read("memex/b.txt") != "b" {
		t.Errorf("a.txt: %v", err)
	}
	if got := s.read("memex/notes/garden.org"); !strings.Contains(got, "TODO Dig the beds") || !strings.Contains(got, "TODO Order\n") {
		t.Errorf("the garden is\n%s", got)
	}
	s.fails("nothing to be undone", "undo", `:OF "a-1"`)
	s.fails("nothing to be undone", "undo", `:OF "a-99"`)
	s.fails("not both", "undo", `:OF "a-1" :COUNT 2`)
}

func TestUndoLeavesAloneWhatSomebodyChangedSince(t *testing.T) {
	s := open(t, act.Web{})
	s.succeeds("write-file", `:FILEPATH "a.txt" :CONTENT "agent"`)
	s.succeeds("write-file", `:FILEPATH "b.txt" :CONTENT "agent"`)
	s.write("memex/a.txt", "person")
	o := s.do("undo", `:COUNT 2`)
	if o.OK || !strings.Contains(o.Text, "Undone: write-file b.txt") || !strings.Contains(o.Text, "changed since, and left alone: "+s.path("memex/a.txt")) {
		t.Errorf("ok %t: %s", o.OK, o.Text)
	}
	if s.read("memex/a.txt") != "person" {
		t.Errorf("a.txt became %q", s.read("memex/a.txt"))
	}
	s.succeeds("org-edit", `:HEADING "Order seeds" :TITLE "Order beans"`)
	s.write("memex/notes/garden.org", strings.Replace(s.read("memex/notes/garden.org"), "Order beans", "Order nothing", 1))
	if o := s.do("undo", ``); o.OK || !strings.Contains(o.Text, "left alone: notes/garden.org") {
		t.Errorf("ok %t: %s", o.OK, o.Text)
	}
}

func TestAWriteThatFailedIsNoStep(t *testing.T) {
	s := open(t, act.Web{})
	s.do("replace-in-file", `:FILEPATH "inbox.org" :OLD "nowhere" :NEW "x"`)
	s.do("write-note", `:FILEPATH "inbox.org" :CONTENT "x"`)
	if steps := s.history.Steps(); len(steps) != 0 {
		t.Errorf("steps: %s", labels(steps))
	}
}

// Whatever tools and commands did, undoing all of it gives the same tree: bytes,
// modes, links.
func TestUndoingEverythingGivesTheSameTree(t *testing.T) {
	sandboxed(t)
	names := rapid.SampledFrom([]string{"a.txt", "b.txt", "d/c.txt", "d/e/f.txt", "notes/n.org"})
	rapid.Check(t, func(rt *rapid.T) {
		s := open(rt, act.Web{})
		before := s.tree()
		for range rapid.IntRange(1, 6).Draw(rt, "steps") {
			x, y := names.Draw(rt, "x"), names.Draw(rt, "y")
			switch rapid.IntRange(0, 8).Draw(rt, "kind") {
			case 0:
				s.do("write-file", ":FILEPATH %q :CONTENT %q", x, rapid.StringMatching(`[a-z\n]{0,20}`).Draw(rt, "text"))
			case 1:
				s.do("replace-in-file", `:FILEPATH %q :OLD "a" :NEW "bb"`, x)
			case 2:
				s.do("capture", `:TITLE %q`, "note on "+x)
			case 3:
				s.do("org-edit", `:HEADING "Water the plants" :TODO "DONE"`)
			case 4:
				s.do("shell", `:CMD "echo more >> %s"`, x)
			case 5:
				s.do("shell", `:CMD "rm -f %s"`, x)
			case 6:
				s.do("shell", `:CMD "mv %s %s"`, x, y)
			case 7:
				s.do("shell", `:CMD "ln -sf target %s.link; chmod 600 inbox.org"`, x)
			case 8:
				s.do("shell", `:CMD "mkdir -p d/e; cp inbox.org d/e/copy"`)
			}
		}
		after := s.tree()
		n := len(s.history.Steps())
		steps, err := s.history.Undo(context.Background(), 100)
		if err != nil && !errors.Is(err, act.ErrNothing) || len(steps) != n {
			rt.Fatalf("undid %d of %d: %v", len(steps), n, err)
		}
		if got := s.tree(); got != before {
			rt.Fatalf("%s\nbecame\n%s\nwant\n%s", labels(steps), got, before)
		}
		if _, err := s.history.Redo(context.Background(), 100); err != nil && !errors.Is(err, act.ErrNothing) {
			rt.Fatal(fmt.Errorf("redo: %w", err))
		}
		if got := s.tree(); got != after {
			rt.Fatalf("redone to\n%s\nwant\n%s", got, after)
		}
	})
}
