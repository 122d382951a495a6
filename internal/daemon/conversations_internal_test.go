package daemon

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"passepartout/internal/journal"
	"passepartout/internal/sexp"
)

// longJournal is a journal of several segments with five conversations.
func longJournal(t *testing.T) (state string) {
	t.Helper()
	state = t.TempDir()
	j, _, err := journal.Open(filepath.Join(state, "journal"), journal.Options{SegmentBytes: 2000})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		if _, err := j.Append(sexp.P(
			sexp.Keyword("KIND"), sexp.Keyword("SIGNAL"), sexp.Keyword("ID"), fmt.Sprintf("s-%d", i), sexp.Keyword("SESSION"), fmt.Sprintf("talk %d", i/10),
			sexp.Keyword("BODY"), sexp.P(sexp.Keyword("SENSOR"), sexp.Keyword("USER-INPUT"), sexp.Keyword("TEXT"), fmt.Sprintf("message %d", i)))); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return state
}

// What one start has read, no other reads again.
func TestTheIndexOfConversationsIsGoodForEveryStart(t *testing.T) {
	state := longJournal(t)
	for start := range 4 {
		var log strings.Builder
		c := newConversations(state, slog.New(slog.NewTextHandler(&log, nil)))
		if err := c.update(t.Context()); err != nil {
			t.Fatal(err)
		}
		if finished := len(c.parts) - 1; start > 0 && (c.sealed != finished || finished < 3) || log.Len() > 0 {
			t.Errorf("start %d: %d of %d finished segments are known from the last\n%s", start, c.sealed, finished, log.String())
		}
		if err := c.close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAConversationIsFoundWhileTheIndexIsBeingMade: whoever goes on with one does not
// wait for the rest of a long journal to be read.
func TestAConversationIsFoundWhileTheIndexIsBeingMade(t *testing.T) {
	state := longJournal(t)
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
