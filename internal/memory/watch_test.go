package memory_test

import (
	"context"
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
