package journal_test

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"testing"

	"passepartout/internal/journal"
	"passepartout/internal/sexp"
)

// rest reads what a reader finds now.
func rest(t *testing.T, r *journal.Reader) (notes []string, err error) {
	t.Helper()
	for {
		l, err := r.Next()
		if errors.Is(err, io.EOF) {
			return notes, nil
		}
		if err != nil {
			return notes, err
		}
		e, err := l.Read()
		if err != nil {
			t.Fatal(err)
		}
		notes = append(notes, e.Body.Text("NOTE"))
	}
}

func TestAReaderGoesOnWhereItStoppedAcrossSegments(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	r := journal.ReadFrom(dir, 1)
	defer r.Close()
	if got, err := rest(t, r); err != nil || got != nil {
		t.Errorf("before there is a journal: %q, %v", got, err)
	}
	if n, err := journal.Segments(dir); n != 0 || err != nil {
		t.Errorf("Segments = %d, %v", n, err)
	}
	j, _ := open(t, dir, journal.Options{SegmentBytes: 400})
	defer closeJournal(t, j)
	var all []string
	for round := range 6 {
		var want []string
		for i := range round {
			want = append(want, fmt.Sprintf("%d/%d", round, i))
			if _, err := j.Append(note(want[i])); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := rest(t, r); err != nil || !slices.Equal(got, want) {
			t.Errorf("round %d: %q, %v; want %q", round, got, err, want)
		}
		all = append(all, want...)
	}
	last, err := journal.Segments(dir)
	if err != nil || last < 3 || r.Segment() != last {
		t.Errorf("the reader is in segment %d of %d, %v", r.Segment(), last, err)
	}
	late := journal.ReadFrom(dir, 2)
	defer late.Close()
	got, err := rest(t, late)
	if err != nil || len(got) == 0 || !slices.Equal(got, all[len(all)-len(got):]) {
		t.Errorf("from segment 2: %q, %v", got, err)
	}
	if n, err := journal.SegmentSize(dir, 1); err != nil || n < 400 {
		t.Errorf("SegmentSize = %d, %v", n, err)
	}
}

func TestAReaderTellsATornEndFromDamage(t *testing.T) {
	dir := fill(t, 9, journal.Options{SegmentBytes: 500}) // three entries a segment
	torn := func(b []byte) []byte { return b[:len(b)-10] }
	rewrite(t, dir, 3, torn)
	r := journal.ReadFrom(dir, 3)
	defer r.Close()
	if got, err := rest(t, r); err != nil || len(got) != 2 {
		t.Errorf("a torn end: %q, %v", got, err)
	}
	rewrite(t, dir, 2, torn)
	inside := journal.ReadFrom(dir, 2)
	defer inside.Close()
	broken := (*journal.BrokenError)(nil)
	if _, err := rest(t, inside); !errors.As(err, &broken) || broken.Segment != "000002.journal" {
		t.Errorf("an end torn inside: %v", err)
	}
}

func TestALineIsSearchedWithoutReadingIt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	j, _ := open(t, dir, journal.Options{})
	names := []string{"main", `a "quoted" \ name`, "␤ picture", "zwei Wörter", `:SESSION "main"`, ""}
	for _, n := range names {
		if _, err := j.Append(sexp.P(sexp.Keyword("KIND"), sexp.Keyword("X"), sexp.Keyword("DEEP"), sexp.P(sexp.Keyword("SESSION"), n), sexp.Keyword("NOTE"), `it says :SESSION "fake"`+"\n")); err != nil {
			t.Fatal(err)
		}
	}
	closeJournal(t, j)
	r := journal.ReadFrom(dir, 1)
	defer r.Close()
	for i := range names {
		l, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Texts("SESSION"); len(got) != 1 || got[0] != names[i] {
			t.Errorf("the sessions of %q are %q", names[i], got)
		}
		for k, n := range names {
			if l.Has("SESSION", n) != (i == k) {
				t.Errorf("an entry of %q has %q: %t", names[i], n, i != k)
			}
		}
		if l.Has("SESSION", "fake") {
			t.Error("what a text says passes for a key")
		}
	}
}
