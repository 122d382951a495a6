package daemon

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"

	"passepartout/internal/journal"
	"passepartout/internal/sexp"
)

// TestAConversationIsFoundWhileTheIndexIsBeingMade: whoever goes on with one does not
// wait for the rest of a long journal to be read.
func TestAConversationIsFoundWhileTheIndexIsBeingMade(t *testing.T) {
	state := t.TempDir()
	j, _, err := journal.Open(filepath.Join(state, "journal"), journal.Options{SegmentBytes: 2000})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		if _, err := j.AppendLazy(sexp.P(
			sexp.Keyword("KIND"), sexp.Keyword("SIGNAL"), sexp.Keyword("ID"), fmt.Sprintf("s-%d", i), sexp.Keyword("SESSION"), fmt.Sprintf("talk %d", i/10),
			sexp.Keyword("BODY"), sexp.P(sexp.Keyword("SENSOR"), sexp.Keyword("USER-INPUT"), sexp.Keyword("TEXT"), fmt.Sprintf("message %d", i)))); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	c := newConversations(state, slog.New(slog.DiscardHandler))
	defer c.close()
	if err := c.begin(t.Context()); err != nil { // somebody makes it, for long
		t.Fatal(err)
	}
	three := func(es []journal.Entry) bool { return len(es) >= 3 }
	got, err := c.read(t.Context(), "talk 4", false, three)
	if err != nil || len(got) < 3 || got[len(got)-1].Body.Sub("BODY").Text("TEXT") != "message 49" {
		t.Errorf("the last conversation is %d entries, %v", len(got), err)
	}
	old := make(chan int)
	go func() {
		es, err := c.read(t.Context(), "talk 0", false, three) // waits: it is not at the end
		if err != nil {
			t.Error(err)
		}
		old <- len(es)
	}()
	select {
	case n := <-old:
		t.Errorf("an old conversation was found without the index: %d", n)
	default:
	}
	c.end()
	if n := <-old; n < 3 {
		t.Errorf("an old conversation is %d entries", n)
	}
}
