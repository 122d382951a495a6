package journal_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"passepartout/internal/journal"
	"passepartout/internal/sexp"
)

// forge returns text as a line with a correct sum of its own. Anybody can make
// one: the sums show accidents, and changes by those who cannot change all.
func forge(text string) string {
	return fmt.Sprintf("%s ;%x\n", text, sha256.Sum256([]byte(text)))
}

func TestALineWithACorrectSumMustStillBeAnEntry(t *testing.T) {
	const at = "2026-11-15T03:30:01Z"
	zeros := strings.Repeat("0", 64)
	line := func(seq, at, prev, body string) string {
		return fmt.Sprintf(`(:SEQ %s :AT "%s" :PREV "%s" :ENTRY %s)`, seq, at, prev, body)
	}
	tests := []struct{ name, text, want string }{
		{"good", line("1", at, zeros, "(:A 1)"), ""},
		{"no header", `(:ENTRY (:A 1))`, "want :SEQ, :AT, :PREV and :ENTRY in this order"},
		{"a number that is none", line("one", at, zeros, "(:A 1)"), "sequence number"},
		{"a number too large", line("18446744073709551616", at, zeros, "(:A 1)"), "sequence number"},
		{"no time", line("1", "today", zeros, "(:A 1)"), "time: "},
		{"a short sum", line("1", at, zeros[1:], "(:A 1)"), "digest of 63 characters"},
		{"a sum in capitals", line("1", at, strings.Repeat("A", 64), "(:A 1)"), "want lower-case hex digits"},
		{"another number", line("2", at, zeros, "(:A 1)"), "entry 2 follows entry 0: want 1"},
		{"another sum before", line("1", at, strings.Repeat("a", 64), "(:A 1)"), "entry 1 names aaaa"},
		{"a body that is no property list", line("1", at, zeros, "(:A)"), "entry: property list has 1 items"},
		{"a body that does not read", line("1", at, zeros, "(:A #.(quit))"), "entry: 1:5: #. is refused"},
		{"two bodies", line("1", at, zeros, "(:A 1) (:B 2)"), "a second datum"},
		{"a picture quoted for nothing", line("1", at, zeros, `(:A "␦x")`), "U+2426 in an entry"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "000001.journal"), []byte(forge(tt.text)), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := journal.Verify(dir)
			var broken *journal.BrokenError
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("Verify: %v", err)
			case tt.want != "" && (!errors.As(err, &broken) || broken.Line != 1 || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("Verify: %v, want %q", err, tt.want)
			}
		})
	}
}

func TestReadersReportDamageOnceAndStop(t *testing.T) {
	dir := fill(t, 9, journal.Options{SegmentBytes: 500}) // three entries a segment
	rewrite(t, dir, 2, func(b []byte) []byte {
		b[300] ^= 1
		return b
	})
	var broken *journal.BrokenError
	count := func(name string, entries func(func(journal.Entry, error) bool), wantSeen int) {
		t.Helper()
		seen, failed := 0, 0
		for _, err := range entries {
			switch {
			case err == nil:
				seen++
			case errors.As(err, &broken) && broken.Segment == "000002.journal":
				failed++
			default:
				t.Errorf("%s: %v", name, err)
			}
		}
		if seen != wantSeen || failed != 1 {
			t.Errorf("%s returned %d entries and %d errors, want %d and 1", name, seen, failed, wantSeen)
		}
	}
	s, err := journal.Verify(dir)
	if err == nil || s.Entries < 3 || s.Entries > 5 {
		t.Fatalf("Verify = %+v, %v", s, err)
	}
	count("Read", journal.Read(dir), int(s.Entries))
	count("Follow", journal.Follow(t.Context(), dir, 0, nil), int(s.Entries))
	if tail, err := journal.Tail(dir, 3); err != nil || len(tail) != 3 {
		t.Errorf("Tail(3), all of it in the last segment = %d entries, %v", len(tail), err)
	}
	if _, err := journal.Tail(dir, 4); !errors.As(err, &broken) {
		t.Errorf("Tail(4) reaches into the damage: %v", err)
	}
	for _, err := range journal.Read(filepath.Join(dir, "nowhere")) {
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("Read without a journal: %v", err)
		}
	}
}

func TestTailAndReadStopBeforeATornEnd(t *testing.T) {
	dir := fill(t, 3, journal.Options{})
	rewrite(t, dir, 1, func(b []byte) []byte { return append(b, "(:SEQ 4 :AT"...) })
	tail, err := journal.Tail(dir, 2)
	if err != nil || len(tail) != 2 || tail[1].Seq != 3 {
		t.Errorf("Tail = %v, %v", tail, err)
	}
	var torn *journal.TornError
	seen := 0
	for _, err := range journal.Read(dir) {
		if err == nil {
			seen++
		} else if !errors.As(err, &torn) {
			t.Error(err)
		}
	}
	if seen != 3 || torn == nil || torn.Bytes != 11 || torn.Line != 4 || !strings.Contains(torn.Error(), "000001.journal line 4: 11 bytes") {
		t.Errorf("%d entries, then %v", seen, torn)
	}
}

func TestFollowWaitsForTheRestOfALine(t *testing.T) {
	whole := fill(t, 2, journal.Options{})
	text, err := os.ReadFile(filepath.Join(whole, "000001.journal"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	name := filepath.Join(dir, "000001.journal")
	if err := os.WriteFile(name, text[:len(text)-20], 0o600); err != nil {
		t.Fatal(err)
	}
	tick := make(chan time.Time)
	done := make(chan struct{})
	go func() { // ticks until told, completing the line after the first
		defer close(done)
		tick <- time.Time{}
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Error(err)
		}
		tick <- time.Time{}
	}()
	want := journal.Seq(1)
	for e, err := range journal.Follow(t.Context(), dir, 0, tick) {
		if err != nil || e.Seq != want {
			t.Fatalf("entry %d, %v; want %d", e.Seq, err, want)
		}
		if want++; want > 2 {
			break
		}
	}
	select {
	case <-tick: // the line was whole at the first look after the first tick
	case <-done:
	}
	<-done
}

func TestASegmentThatCannotBeMadeStopsTheJournal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	j, _ := open(t, dir, journal.Options{SegmentBytes: 1})
	if _, err := j.Append(note("fills the segment")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "000002.journal"), []byte("not ours"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Append(note("needs another")); !errors.Is(err, journal.ErrFailed) || !errors.Is(err, os.ErrExist) {
		t.Errorf("Append: %v", err)
	}
	if err := j.Close(); !errors.Is(err, journal.ErrFailed) {
		t.Errorf("Close: %v", err)
	}
	// What was in the way is a torn end, and is kept.
	j, rec := open(t, dir, journal.Options{})
	if !rec.Torn() || rec.Bytes != 8 || rec.Head != 1 {
		t.Errorf("recovered %+v", rec)
	}
	closeJournal(t, j)
}

// A held disk writes nothing until it is let go.
type held struct {
	journal.File
	letGo chan struct{}
}

func (h *held) Write(b []byte) (int, error) {
	<-h.letGo
	return h.File.Write(b)
}

func TestCallersWaitWhenTheDiskFallsBehind(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	letGo := make(chan struct{})
	j, _ := open(t, dir, journal.WithFiles(journal.Options{}, func(f journal.File) journal.File { return &held{f, letGo} }))
	const entries = 30
	big := sexp.P(sexp.Keyword("NOTE"), strings.Repeat("x", 1<<20))
	accepted := make(chan int, entries)
	go func() {
		defer close(accepted)
		for i := range entries {
			if _, err := j.AppendLazy(big); err != nil {
				t.Error(err)
			}
			accepted <- i
		}
	}()
	for range 7 { // one batch is with the writer or not yet, and there is room for seven more
		<-accepted
	}
	if n := len(accepted); n > entries/2 {
		t.Errorf("%d MB accepted that are not written", n)
	}
	close(letGo)
	for range accepted {
	}
	closeJournal(t, j)
	if s, err := journal.Verify(dir); err != nil || s.Entries != entries {
		t.Errorf("Verify = %+v, %v", s, err)
	}
}

// TestASegmentEmptiedBetweenTwoIsDamage: the entry after it would be taken at its word
// about the one before, and the journal opened and written on.
func TestASegmentEmptiedBetweenTwoIsDamage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	j, _, err := journal.Open(dir, journal.Options{SegmentBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		if _, err := j.Append(sexp.P(sexp.Keyword("N"), i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	n, err := journal.Segments(dir)
	if err != nil || n < 3 {
		t.Fatalf("%d segments, %v: want some", n, err)
	}
	name := fmt.Sprintf("%06d.journal", n-1)
	if err := os.Truncate(filepath.Join(dir, name), 0); err != nil {
		t.Fatal(err)
	}
	var broken *journal.BrokenError
	if j, _, err := journal.Open(dir, journal.Options{}); !errors.As(err, &broken) || broken.Segment != name {
		if err == nil {
			_ = j.Close()
		}
		t.Errorf("Open: %v, want damage in %s", err, name)
	}
	if _, err := journal.Verify(dir); !errors.As(err, &broken) {
		t.Errorf("Verify: %v, want damage", err)
	}
	r := journal.ReadFrom(dir, n-1)
	defer r.Close()
	if l, err := r.Next(); !errors.As(err, &broken) {
		t.Errorf("ReadFrom: entry %d, %v, want damage", l.Seq, err)
	}
}
