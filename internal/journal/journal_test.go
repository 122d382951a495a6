package journal_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"passepartout/internal/journal"
	"passepartout/internal/sexp"
)

// clock is a Now that advances a second at each call.
func clock() func() time.Time {
	at := time.Date(2026, 11, 15, 3, 30, 0, 0, time.UTC)
	return func() time.Time {
		at = at.Add(time.Second)
		return at
	}
}

func open(tb testing.TB, dir string, o journal.Options) (*journal.Journal, journal.Recovery) {
	tb.Helper()
	if o.Now == nil {
		o.Now = clock()
	}
	j, rec, err := journal.Open(dir, o)
	if err != nil {
		tb.Fatal(err)
	}
	return j, rec
}

func closeJournal(tb testing.TB, j *journal.Journal) {
	tb.Helper()
	if err := j.Close(); err != nil {
		tb.Fatal(err)
	}
}

func note(text string) sexp.Plist { return sexp.P(sexp.Keyword("NOTE"), text) }

// fill writes n entries and returns their directory.
func fill(tb testing.TB, n int, o journal.Options) string {
	tb.Helper()
	dir := filepath.Join(tb.TempDir(), "journal")
	j, _ := open(tb, dir, o)
	for i := range n {
		if _, err := j.Append(note(fmt.Sprintf("entry %d", i+1))); err != nil {
			tb.Fatal(err)
		}
	}
	closeJournal(tb, j)
	return dir
}

func texts(tb testing.TB, dir string) []string {
	tb.Helper()
	var out []string
	for e, err := range journal.Read(dir) {
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, e.Body.Text("NOTE"))
	}
	return out
}

func TestEntriesAreReadBackAsWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "journal")
	j, rec := open(t, dir, journal.Options{})
	if rec.Torn() || rec.Head != 0 {
		t.Errorf("a new journal recovered %v", rec)
	}
	bodies := []sexp.Plist{
		sexp.P(sexp.Keyword("RULING"), sexp.Keyword("DENY"), sexp.Keyword("REASON"), "two\nlines\r\n\tand an \x1b[31mescape\x7f"),
		sexp.P(sexp.Keyword("NOTE"), "pictures ␊ ␛ ␡ ␦ ␠ as they are"),
		sexp.P(sexp.Keyword("line\nbreak"), sexp.Char('\n')),
		{},
	}
	for i, b := range bodies {
		seq, err := j.Append(b)
		if err != nil || seq != journal.Seq(i+1) {
			t.Fatalf("Append = %d, %v; want %d", seq, err, i+1)
		}
	}
	closeJournal(t, j)

	i, prev := 0, sexp.Digest{}
	for e, err := range journal.Read(dir) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Body.String() != bodies[i].String() || e.Seq != journal.Seq(i+1) || e.Line != i+1 || e.Segment != "000001.journal" || e.Prev != prev {
			t.Errorf("entry %d = %+v", i+1, e)
		}
		if want := time.Date(2026, 11, 15, 3, 30, i+1, 0, time.UTC); !e.At.Equal(want) {
			t.Errorf("entry %d at %v, want %v", i+1, e.At, want)
		}
		prev = e.Sum
		i++
	}
	if i != len(bodies) {
		t.Errorf("read %d entries, want %d", i, len(bodies))
	}
	text, err := os.ReadFile(filepath.Join(dir, "000001.journal"))
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(text, []byte("\n")); n != len(bodies) {
		t.Errorf("%d lines for %d entries", n, len(bodies))
	}
	if bytes.ContainsAny(bytes.ReplaceAll(text, []byte("\n"), nil), "\x1b\r\t\x7f") {
		t.Error("the segment holds control characters")
	}
}

func TestFilesAreForTheirOwnerAlone(t *testing.T) {
	dir := fill(t, 1, journal.Options{})
	for _, name := range []string{"", "lock", "000001.journal"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%q has mode %v", name, info.Mode())
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, _, err := journal.Open(dir, journal.Options{}); err == nil || !strings.Contains(err.Error(), "chmod 700") {
		t.Errorf("a directory open to others: error %v", err)
	}
}

func TestASecondWriterIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	j, _ := open(t, dir, journal.Options{})
	if _, _, err := journal.Open(dir, journal.Options{}); !errors.Is(err, journal.ErrLocked) {
		t.Errorf("second Open: error %v, want ErrLocked", err)
	}
	closeJournal(t, j)
	j, _ = open(t, dir, journal.Options{})
	closeJournal(t, j)
}

func TestAClosedJournalRefusesEntries(t *testing.T) {
	j, _ := open(t, filepath.Join(t.TempDir(), "journal"), journal.Options{})
	closeJournal(t, j)
	if _, err := j.Append(note("late")); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("Append: error %v, want ErrClosed", err)
	}
	if _, err := j.AppendLazy(note("late")); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("AppendLazy: error %v, want ErrClosed", err)
	}
	if err := j.Sync(); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("Sync: error %v, want ErrClosed", err)
	}
	if err := j.Close(); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("Close: error %v, want ErrClosed", err)
	}
}

func TestTheChainGoesOnAcrossSegmentsAndRestarts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	const rounds, each = 5, 20
	for round := range rounds {
		j, rec := open(t, dir, journal.Options{SegmentBytes: 1000})
		if rec.Torn() || rec.Head != journal.Seq(round*each) {
			t.Fatalf("round %d recovered %v", round, rec)
		}
		for i := range each {
			if _, err := j.Append(note(fmt.Sprint(round*each + i))); err != nil {
				t.Fatal(err)
			}
		}
		closeJournal(t, j)
	}
	s, err := journal.Verify(dir)
	if err != nil || s.Entries != rounds*each || s.Segments < 10 || s.Torn != nil {
		t.Errorf("Verify = %+v, %v", s, err)
	}
	for i, text := range texts(t, dir) {
		if text != fmt.Sprint(i) {
			t.Fatalf("entry %d says %q", i, text)
		}
	}
	for _, n := range []int{0, 1, 3, 50, rounds * each, 1000} {
		tail, err := journal.Tail(dir, n)
		if err != nil || len(tail) != min(n, rounds*each) {
			t.Fatalf("Tail(%d) has %d entries, %v", n, len(tail), err)
		}
		for i, e := range tail {
			if want := journal.Seq(rounds*each - len(tail) + i + 1); e.Seq != want {
				t.Fatalf("Tail(%d)[%d] is entry %d, want %d", n, i, e.Seq, want)
			}
		}
	}
}

func TestAnEmptyLastSegmentIsNoDamage(t *testing.T) {
	dir := fill(t, 3, journal.Options{})
	if err := os.WriteFile(filepath.Join(dir, "000002.journal"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	j, rec := open(t, dir, journal.Options{})
	if rec.Torn() || rec.Head != 3 {
		t.Errorf("recovered %v", rec)
	}
	if seq, err := j.Append(note("four")); seq != 4 || err != nil {
		t.Errorf("Append = %d, %v", seq, err)
	}
	closeJournal(t, j)
	if s, err := journal.Verify(dir); err != nil || s.Entries != 4 {
		t.Errorf("Verify = %+v, %v", s, err)
	}
}

// TestAJournalCutAnywhereKeepsItsWholeEntries is a crash at every byte.
func TestAJournalCutAnywhereKeepsItsWholeEntries(t *testing.T) {
	dir := fill(t, 2, journal.Options{})
	segment := filepath.Join(dir, "000001.journal")
	whole, err := os.ReadFile(segment)
	if err != nil {
		t.Fatal(err)
	}
	step := 1
	if testing.Short() {
		step = 13
	}
	for cut := 0; cut < len(whole); cut += step {
		if err := os.WriteFile(segment, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		lines := bytes.Count(whole[:cut], []byte("\n"))
		end := bytes.LastIndexByte(whole[:cut], '\n') + 1

		s, err := journal.Verify(dir)
		if err != nil || int(s.Entries) != lines || (s.Torn != nil) != (end != cut) {
			t.Fatalf("cut at %d: Verify = %+v, %v", cut, s, err)
		}
		j, rec := open(t, dir, journal.Options{})
		if int(rec.Head) != lines || rec.Torn() != (end != cut) || rec.Bytes != int64(cut-end) {
			t.Fatalf("cut at %d, %d whole entries to byte %d: recovered %+v", cut, lines, end, rec)
		}
		if rec.Torn() {
			kept, err := os.ReadFile(rec.Kept)
			if err != nil || !bytes.Equal(kept, whole[end:cut]) {
				t.Fatalf("cut at %d: kept %q, %v; want %q", cut, kept, err, whole[end:cut])
			}
			if err := os.Remove(rec.Kept); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := j.Append(note("after")); err != nil {
			t.Fatal(err)
		}
		closeJournal(t, j)
		if s, err := journal.Verify(dir); err != nil || int(s.Entries) != lines+1 || s.Torn != nil {
			t.Fatalf("cut at %d, gone on: Verify = %+v, %v", cut, s, err)
		}
	}
}

// TestAChangedByteIsFoundWhereverItIs flips bits of every byte. In the last
// entry that cannot be told from a torn end; before it, it is damage.
func TestAChangedByteIsFoundWhereverItIs(t *testing.T) {
	dir := fill(t, 3, journal.Options{})
	segment := filepath.Join(dir, "000001.journal")
	whole, err := os.ReadFile(segment)
	if err != nil {
		t.Fatal(err)
	}
	last := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
	for i := range whole {
		for _, flip := range []byte{1, 0x80} {
			changed := bytes.Clone(whole)
			changed[i] ^= flip
			if err := os.WriteFile(segment, changed, 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := journal.Verify(dir)
			var broken *journal.BrokenError
			switch {
			case i >= last || i == last-1: // its line break joins the last two lines
				if err != nil || s.Torn == nil {
					t.Fatalf("byte %d ^ %#x: Verify = %+v, %v; want a torn end", i, flip, s, err)
				}
			case !errors.As(err, &broken) || broken.Line != bytes.Count(whole[:i], []byte("\n"))+1:
				t.Fatalf("byte %d ^ %#x: Verify = %+v, %v; want damage", i, flip, s, err)
			default:
				if _, _, err := journal.Open(dir, journal.Options{}); !errors.As(err, &broken) {
					t.Fatalf("byte %d ^ %#x: Open: %v", i, flip, err)
				}
			}
		}
	}
}

func TestDamageIsNamedBySegmentAndLine(t *testing.T) {
	lines := func(b []byte) [][]byte { return bytes.SplitAfter(b, []byte("\n")) }
	tests := []struct {
		name   string
		damage func(t *testing.T, dir string)
		want   string
	}{
		{"an entry removed", func(t *testing.T, dir string) {
			rewrite(t, dir, 1, func(b []byte) []byte { return bytes.Join(append(lines(b)[:1], lines(b)[2:]...), nil) })
		}, "segment 000001.journal line 2: entry 3 follows entry 1"},
		{"an entry repeated", func(t *testing.T, dir string) {
			rewrite(t, dir, 1, func(b []byte) []byte { return append(bytes.Clone(lines(b)[0]), b...) })
		}, "segment 000001.journal line 2: entry 1 follows entry 1"},
		{"the first entry of all removed", func(t *testing.T, dir string) {
			rewrite(t, dir, 1, func(b []byte) []byte { return b[len(lines(b)[0]):] })
		}, "segment 000001.journal line 1: entry 2 follows entry 0"},
		{"a segment's last entry removed", func(t *testing.T, dir string) {
			rewrite(t, dir, 1, func(b []byte) []byte { return b[:bytes.LastIndexByte(b[:len(b)-1], '\n')+1] })
		}, "segment 000002.journal line 1: entry 4 follows entry 2"},
		{"a torn end before the last segment", func(t *testing.T, dir string) {
			rewrite(t, dir, 2, func(b []byte) []byte { return b[:len(b)-5] })
		}, "segment 000002.journal line 3: the line is not whole"},
		{"a segment missing", func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, "000002.journal")); err != nil {
				t.Fatal(err)
			}
		}, "segment 000002.journal: missing"},
		{"another journal's segment put in", func(t *testing.T, dir string) {
			other := fill(t, 9, journal.Options{SegmentBytes: 500, Now: func() time.Time { return time.Unix(0, 0) }})
			rewrite(t, dir, 3, func([]byte) []byte {
				b, err := os.ReadFile(filepath.Join(other, "000003.journal"))
				if err != nil {
					t.Fatal(err)
				}
				return b
			})
		}, "segment 000003.journal line 1: entry 7 names"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := fill(t, 9, journal.Options{SegmentBytes: 500}) // three entries a segment
			tt.damage(t, dir)
			_, err := journal.Verify(dir)
			var broken *journal.BrokenError
			if !errors.As(err, &broken) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Verify: error %v, want %q", err, tt.want)
			}
		})
	}
}

func rewrite(t *testing.T, dir string, segment int, change func([]byte) []byte) {
	t.Helper()
	name := filepath.Join(dir, fmt.Sprintf("%06d.journal", segment))
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, change(b), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A flaky disk writes and syncs until it is told not to.
type flaky struct {
	journal.File
	mu       sync.Mutex
	room     int   // bytes that still fit; negative for no limit
	cause    error // what a write beyond it fails with; nil: no space
	failSync bool
	syncs    error // what a sync fails with; nil: an input/output error
	unsynced int
}

func (f *flaky) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.room >= 0 && len(b) > f.room {
		n, err := f.File.Write(b[:f.room])
		f.room -= n
		return n, errors.Join(err, cmp.Or(f.cause, error(syscall.ENOSPC)))
	}
	if f.room >= 0 {
		f.room -= len(b)
	}
	f.unsynced += len(b)
	return f.File.Write(b)
}

func (f *flaky) Sync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failSync {
		return cmp.Or(f.syncs, error(syscall.EIO))
	}
	f.unsynced = 0
	return f.File.Sync()
}

func TestAFailingDiskStopsTheJournalForGood(t *testing.T) {
	tests := []struct {
		name   string
		breaks func(*flaky)
		cause  error
		torn   bool
	}{
		{"unable to write", func(f *flaky) { f.room, f.cause = 100, syscall.EIO }, syscall.EIO, true},
		{"unable to sync", func(f *flaky) { f.failSync = true }, syscall.EIO, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "journal")
			disk := &flaky{room: -1}
			j, _ := open(t, dir, journal.WithFiles(journal.Options{}, func(f journal.File) journal.File {
				disk.File = f
				return disk
			}))
			if _, err := j.Append(note("fits")); err != nil {
				t.Fatal(err)
			}
			disk.mu.Lock()
			tt.breaks(disk)
			disk.mu.Unlock()
			if seq, err := j.Append(note("does not")); seq != 0 || !errors.Is(err, journal.ErrFailed) || !errors.Is(err, tt.cause) {
				t.Errorf("Append = %d, %v; want ErrFailed from %v", seq, err, tt.cause)
			}
			disk.mu.Lock()
			disk.room, disk.failSync = -1, false
			disk.mu.Unlock()
			for range 2 {
				if _, err := j.Append(note("later")); !errors.Is(err, journal.ErrFailed) {
					t.Errorf("Append after the failure: %v, want ErrFailed", err)
				}
			}
			if err := j.Sync(); !errors.Is(err, journal.ErrFailed) {
				t.Errorf("Sync after the failure: %v, want ErrFailed", err)
			}
			if err := j.Close(); !errors.Is(err, journal.ErrFailed) {
				t.Errorf("Close after the failure: %v, want ErrFailed", err)
			}
			j, rec := open(t, dir, journal.Options{})
			if rec.Torn() != tt.torn || !strings.Contains(rec.String(), "entry") {
				t.Errorf("recovered %v", rec)
			}
			if _, err := j.Append(note("again")); err != nil {
				t.Error(err)
			}
			closeJournal(t, j)
			if _, err := journal.Verify(dir); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAppendReturnsOnlyWhenSynced(t *testing.T) {
	disk := &flaky{room: -1}
	j, _ := open(t, filepath.Join(t.TempDir(), "journal"), journal.WithFiles(journal.Options{}, func(f journal.File) journal.File {
		disk.File = f
		return disk
	}))
	left := func() int {
		disk.mu.Lock()
		defer disk.mu.Unlock()
		return disk.unsynced
	}
	for range 20 {
		if _, err := j.AppendLazy(note("lazy")); err != nil {
			t.Fatal(err)
		}
		if _, err := j.Append(note("eager")); err != nil {
			t.Fatal(err)
		}
		if n := left(); n != 0 {
			t.Fatalf("%d bytes not synced after Append", n)
		}
	}
	if _, err := j.AppendLazy(note("lazy")); err != nil {
		t.Fatal(err)
	}
	if err := j.Sync(); err != nil || left() != 0 {
		t.Errorf("Sync: %v, %d bytes not synced", err, left())
	}
	closeJournal(t, j)
}

func TestManyWritersShareOneChain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	now := time.Now
	j, _ := open(t, dir, journal.Options{Now: now, SegmentBytes: 4000})
	const writers, each = 16, 25
	var wg sync.WaitGroup
	seen := make([][]journal.Seq, writers)
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				add := j.Append
				if i%3 == 0 {
					add = j.AppendLazy
				}
				seq, err := add(note(fmt.Sprintf("%d/%d", w, i)))
				if err != nil {
					t.Error(err)
					return
				}
				seen[w] = append(seen[w], seq)
			}
		})
	}
	wg.Wait()
	head, sum := j.Head()
	closeJournal(t, j)
	s, err := journal.Verify(dir)
	if err != nil || s.Entries != writers*each || s.Entries != head || s.Head != sum {
		t.Fatalf("Verify = %+v, %v; head %d %s", s, err, head, sum)
	}
	all := texts(t, dir)
	for w := range writers {
		for i, seq := range seen[w] {
			if want := fmt.Sprintf("%d/%d", w, i); all[seq-1] != want {
				t.Errorf("entry %d is %q, want %q", seq, all[seq-1], want)
			}
		}
	}
}

func TestFollowReturnsEntriesAsTheyCome(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tick := make(chan time.Time)
	got := make(chan journal.Seq)
	go func() {
		defer close(got)
		for e, err := range journal.Follow(ctx, dir, 2, tick) {
			if err != nil {
				t.Error(err)
				return
			}
			got <- e.Seq
		}
	}()
	tick <- time.Time{} // there is no journal yet
	j, _ := open(t, dir, journal.Options{SegmentBytes: 400})
	for seq := journal.Seq(1); seq <= 20; seq++ {
		if _, err := j.Append(note("x")); err != nil {
			t.Fatal(err)
		}
		if seq <= 2 {
			continue
		}
		select {
		case tick <- time.Time{}:
			if s := <-got; s != seq {
				t.Fatalf("followed to entry %d, want %d", s, seq)
			}
		case s := <-got: // it was still looking
			if s != seq {
				t.Fatalf("followed to entry %d, want %d", s, seq)
			}
		}
	}
	closeJournal(t, j)
	cancel()
	for s := range got {
		t.Errorf("an entry %d that was not written", s)
	}
}

func TestFollowStartsInTheSegmentItNeeds(t *testing.T) {
	dir := fill(t, 30, journal.Options{SegmentBytes: 400})
	for _, after := range []journal.Seq{0, 1, 7, 29} {
		want := after + 1
		for e, err := range journal.Follow(t.Context(), dir, after, nil) {
			if err != nil || e.Seq != want {
				t.Fatalf("after %d: entry %d, %v; want %d", after, e.Seq, err, want)
			}
			if want++; want > 30 {
				break
			}
		}
	}
}

func TestControlPicturesAreUndone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(rapid.OneOf(
			rapid.String(),
			rapid.SampledFrom([]string{"\n", "\r", "\x1b", "\x7f", "␊", "␛", "␡", "␦", "␠", "␤", "\u243f", "\u2440", "â"}),
		)).Draw(t, "parts"), "")
		pictures, back, err := journal.RoundTrip(text)
		if err != nil || back != text {
			t.Fatalf("%q became %q became %q, %v", text, pictures, back, err)
		}
		for _, c := range pictures {
			if c < ' ' || c == 0x7f {
				t.Fatalf("%q holds a control character", pictures)
			}
		}
	})
}

func TestAnEntryThatCouldNotBeReadIsRefusedAndHarmless(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	j, _ := open(t, dir, journal.Options{})
	var deep sexp.Value = sexp.Nil
	for range 20_000 {
		deep = sexp.NewList(deep)
	}
	for _, v := range []sexp.Value{deep, sexp.String(strings.Repeat("x", sexp.MaxBytes))} {
		if _, err := j.Append(sexp.P(sexp.Keyword("V"), v)); err == nil {
			t.Error("an unreadable entry was accepted")
		}
	}
	if seq, err := j.Append(note("fine")); seq != 1 || err != nil {
		t.Errorf("Append = %d, %v", seq, err)
	}
	closeJournal(t, j)
}
