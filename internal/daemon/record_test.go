package daemon_test

import (
	"path/filepath"
	"strings"
	"testing"

	"passepartout/internal/journal"
)

// Found by the soak: the journal kept what a tool had read of a private note.
func TestINV12WhatAToolReadOfAPrivateNoteIsNotInTheJournal(t *testing.T) {
	m := newModel(t, inTurn(
		call("org-find-headline", map[string]any{"text": "Letters to nobody", "full": true, "explanation": "The person asked for this note."}, 1),
		speak("summary")))
	s := m.cloud(settings(t))
	h := open(t, s)
	h.connect().request(say("main", "read me the heading about letters"))
	h.close() // what no effect waits for is on disk then
	outcomes := 0
	for e, err := range journal.Read(filepath.Join(s.StateDir, "journal")) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(e.Body.String(), "It stays on this machine") {
			t.Errorf("the journal holds the note: %s", e.Body)
		}
		if strings.Contains(e.Body.Text("TEXT"), "private text, not recorded") {
			outcomes++
		}
	}
	if outcomes != 1 {
		t.Errorf("%d outcomes say that something private was read; want 1", outcomes)
	}
}
