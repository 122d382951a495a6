package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"passepartout/internal/daemon"
	"passepartout/internal/journal"
	"passepartout/internal/sexp"
)

// talkedLong writes a journal of many conversations in many segments, as an earlier
// daemon would have.
func talkedLong(t *testing.T, s daemon.Settings, sessions, entries int) (segments int) {
	t.Helper()
	dir := filepath.Join(s.StateDir, "journal")
	if err := os.MkdirAll(s.StateDir, 0o700); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	j, _, err := journal.Open(dir, journal.Options{SegmentBytes: 100 << 10, Now: func() time.Time { at = at.Add(time.Second); return at }})
	if err != nil {
		t.Fatal(err)
	}
	for i := range entries {
		e := sexp.P(
			sexp.Keyword("KIND"), sexp.Keyword("SIGNAL"), sexp.Keyword("ID"), fmt.Sprintf("s-%d", i), sexp.Keyword("SESSION"), fmt.Sprintf("talk %d", i%sessions),
			sexp.Keyword("ORIGIN"), sexp.P(sexp.Keyword("ROLE"), sexp.Keyword("OWNER"), sexp.Keyword("CHANNEL"), "cli"), sexp.Keyword("TYPE"), sexp.Keyword("EVENT"),
			sexp.Keyword("BODY"), sexp.P(sexp.Keyword("SENSOR"), sexp.Keyword("USER-INPUT"), sexp.Keyword("TEXT"), fmt.Sprintf("message %d", i)))
		if i == 0 {
			e = e.With("SESSION", sexp.String("the oldest"))
		}
		if _, err := j.AppendLazy(e); err != nil {
			t.Fatal(err)
		}
		if i%10 != 9 {
			continue
		}
		if _, err := j.AppendLazy(sexp.P(
			sexp.Keyword("KIND"), sexp.Keyword("RULING"), sexp.Keyword("ID"), fmt.Sprintf("a-%d", i), sexp.Keyword("TURN"), fmt.Sprintf("s-%d", i),
			sexp.Keyword("ACTION"), sexp.P(sexp.Keyword("SESSION"), fmt.Sprintf("talk %d", i%sessions)), sexp.Keyword("FACTS"), sexp.P(sexp.Keyword("PRIVATE"), false))); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	n, err := journal.Segments(dir)
	if err != nil || n < 3 {
		t.Fatalf("%d segments, %v", n, err)
	}
	return n
}

// TestEverySessionIsFoundHoweverLongTheJournal: over more than 10,000 entries in many
// segments, and at the next start without reading what was read before.
func TestEverySessionIsFoundHoweverLongTheJournal(t *testing.T) {
	if testing.Short() {
		t.Skip("writes a long journal: run by make test")
	}
	s := settings(t)
	s.JournalBytes = 100 << 10
	segments := talkedLong(t, s, 150, 10_100)
	look := func(when string) {
		t.Helper()
		h := open(t, s)
		defer h.close()
		p := h.connect()
		if n := p.view("main", ":SESSIONS"); n.Number("COUNT") != 151 {
			t.Errorf("%s %d sessions are found: %.200s", when, n.Number("COUNT"), n)
		}
		if words := p.view("main", `:COMPLETE :KIND :SESSION :TEXT "the old"`).String(); !strings.Contains(words, `"the oldest"`) {
			t.Errorf("%s it is not completed: %s", when, words)
		}
		said := plists(t, p.view("talk 7", ":CONVERSATION :COUNT 10"), "SAID")
		if len(said) != 10 || said[9].Text("TEXT") != "message 10057" || said[0].Text("TEXT") != "message 8707" {
			t.Errorf("%s the conversation is %d long, from %v", when, len(said), said[:min(len(said), 1)])
		}
	}
	look("at first")

	// What is in the index is not read again: a damaged segment shows only to those
	// who need what it holds.
	first := filepath.Join(s.StateDir, "journal", "000001.journal")
	raw, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)/2] ^= 1
	if err := os.WriteFile(first, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	look("with a damaged beginning")
	h := open(t, s)
	p := h.connect()
	if r := p.request(say("the oldest", "what did I say?")); !strings.Contains(r.Payload.Text("TEXT"), "record is damaged") {
		t.Errorf("a session whose record is damaged goes on with %s", r.Payload)
	}
	if r := p.request(say("talk 9", "what did I say?")); strings.Contains(r.Payload.Text("TEXT"), "damaged") {
		t.Errorf("a session whose record is whole is told of damage: %s", r.Payload)
	}
	h.close()

	// Without the index the damage is found, said, and everything else is there.
	if err := os.RemoveAll(filepath.Join(s.StateDir, "sessions")); err != nil {
		t.Fatal(err)
	}
	h = open(t, s)
	p = h.connect()
	n := p.view("main", ":SESSIONS")
	if !strings.Contains(n.Text("DAMAGE"), "000001.journal") || n.Number("COUNT") < 150 {
		t.Errorf("%d sessions, damage %q", n.Number("COUNT"), n.Text("DAMAGE"))
	}
	if segments < 10 {
		t.Errorf("%d segments are not many", segments)
	}
}

func TestAnIndexOfConversationsThatIsDamagedIsMadeAnew(t *testing.T) {
	if testing.Short() {
		t.Skip("writes a long journal: run by make test")
	}
	s := settings(t)
	s.JournalBytes = 100 << 10
	talkedLong(t, s, 20, 1_500)
	index := filepath.Join(s.StateDir, "sessions", "index")
	for _, change := range []func([]byte) []byte{
		nil, // there is none yet
		func(b []byte) []byte { b[40] ^= 1; return b },
		func(b []byte) []byte { return b[:len(b)/2] },
		func([]byte) []byte { return []byte("nonsense") },
	} {
		if raw, err := os.ReadFile(index); err == nil && change != nil {
			if err := os.WriteFile(index, change(raw), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		h := open(t, s)
		if n := h.connect().view("main", ":SESSIONS").Number("COUNT"); n != 21 {
			t.Errorf("%d sessions are found", n)
		}
		h.close()
	}
}

func TestARewoundTurnIsNotShownInTheConversation(t *testing.T) {
	s := settings(t)
	h := open(t, s)
	p := h.connect()
	p.request(say("main", "what do I know about the lemon tree?"))
	p.request(say("main", "remind me to call Ana by friday"))
	if r := p.request(say("main", "/rewind")); !strings.Contains(r.Payload.Text("TEXT"), "forgotten") {
		t.Fatalf("%s", r.Payload)
	}
	for _, when := range []string{"live", "after a restart"} {
		got := p.view("main", ":CONVERSATION").String()
		if !strings.Contains(got, "lemon tree") || strings.Contains(got, "Ana") {
			t.Errorf("%s the conversation is %s", when, got)
		}
		h.close()
		h = open(t, s)
		p = h.connect()
	}
}
