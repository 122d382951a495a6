package memory_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"passepartout/internal/memory"
)

// TestCatchingUpDoesNotWaitForQuiet: what was saved counts for whoever asks next,
// however long editors are given to finish.
func TestCatchingUpDoesNotWaitForQuiet(t *testing.T) {
	f := newFixture(t, map[string]string{"a.org": "* A\n"})
	s := f.open()
	s.CatchUp(t.Context()) // nobody watches yet
	if err := s.Watch(memory.WatchOptions{Quiet: time.Hour, Rescan: time.Hour}); err != nil {
		t.Fatal(err)
	}
	f.write("new/b.org", "* Saved just now\n")
	f.write("a.org", "* A\n* And here\n")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, title := range []string{"Saved just now", "And here"} {
		for found := false; !found; { // until the kernel has told
			if ctx.Err() != nil {
				t.Fatalf("%q was not found", title)
			}
			s.CatchUp(ctx)
			for o := range s.View().All() {
				found = found || o.Title == title
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	s.CatchUp(t.Context()) // and nobody does any more
}

// TestASetupFileSpeaksForItsFilesAtOnce: a privacy tag there is one for every file that
// names it, though not one byte of them changes.
func TestASetupFileSpeaksForItsFilesAtOnce(t *testing.T) {
	f := newFixture(t, map[string]string{
		"a.org": "#+SETUPFILE: sub/common.setup\n* A\n", "b.org": "* B\n", "c.org": "#+SETUPFILE: d.org\n* WAIT C\n", "d.org": "#+TODO: TODO | DONE\n",
	})
	s := f.open()
	if s.Private("a.org") {
		t.Fatal("private already")
	}
	for _, text := range []string{"#+FILETAGS: :@personal:\n", "", "# nothing\n#+FILETAGS: :private:\n"} {
		f.write("sub/common.setup", text)
		refresh(t, s)
		if got, want := s.Private("a.org"), text != ""; got != want || s.Private("b.org") {
			t.Errorf("%q: private is %v", text, got)
		}
	}
	f.write("d.org", "#+TODO: WAIT | DONE\n")
	refresh(t, s)
	if o := titled(t, s.View(), "C"); o.Todo != "WAIT" {
		t.Errorf("the keyword is %q", o.Todo)
	}
	if p := s.Verify(); len(p) > 0 {
		t.Error(p)
	}
}

// TestADirectoryThatComesBackIsWatchedAgain: git, rsync and the like take one away and put
// another in its place within a moment.
func TestADirectoryThatComesBackIsWatchedAgain(t *testing.T) {
	f := newFixture(t, map[string]string{"d/a.org": "* A\n", "e/sub/b.org": "* B\n"})
	s := f.open()
	if err := s.Watch(memory.WatchOptions{Quiet: 200 * time.Millisecond, Rescan: time.Hour}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	until := func(titles ...string) {
		t.Helper()
		for {
			s.CatchUp(ctx)
			found := 0
			for o := range s.View().All() {
				if slices.Contains(titles, o.Title) {
					found++
				}
			}
			if found == len(titles) {
				return
			}
			if ctx.Err() != nil {
				t.Fatalf("%q was not seen", titles)
			}
		}
	}
	at := func(p string) string { return filepath.Join(f.dir, p) }
	if err := errors.Join(os.RemoveAll(at("d")), os.Rename(at("e"), at("moved"))); err != nil {
		t.Fatal(err)
	}
	f.write("d/a.org", "* Again\n")
	f.write("e/sub/b.org", "* Instead\n")
	until("Again", "Instead", "B")
	f.write("d/a.org", "* Again, changed\n")
	until("Again, changed")
	f.write("e/sub/b.org", "* Instead, changed\n")
	f.write("moved/sub/b.org", "* B, changed\n")
	until("Instead, changed", "B, changed")
	f.write("d/new.org", "* New\n")
	until("New")
}
