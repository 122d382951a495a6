package journal_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"passepartout/internal/journal"
	"passepartout/internal/sexp"
)

// small returns a journal on a disk that can be filled and emptied.
func small(t *testing.T, dir string, o journal.Options) (*journal.Journal, *flaky) {
	t.Helper()
	disk := &flaky{room: -1}
	j, _ := open(t, dir, journal.WithFiles(o, func(f journal.File) journal.File {
		disk.mu.Lock()
		defer disk.mu.Unlock()
		disk.File = f
		return disk
	}))
	return j, disk
}

func (f *flaky) set(room int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.room, f.failSync = room, false
}

// notes reads the texts of all entries, and how many say that the journal resumed.
func notes(t *testing.T, dir string) (texts []string, resumed int) {
	t.Helper()
	for e, err := range journal.Read(dir) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Body.Word("KIND") == "RESUMED" {
			resumed++
			if whole, _ := e.Body.Get("WHOLE"); sexp.IsNil(whole) {
				t.Errorf("entry %d says that something is missing: %s", e.Seq, e.Body)
			}
			continue
		}
		texts = append(texts, e.Body.Text("NOTE"))
	}
	return texts, resumed
}

// TestAFullDiskIsRefusedUntilThereIsRoomAndThenForgotten: no restart is needed, what
// was accepted without waiting is there, and the chain has no hole.
func TestAFullDiskIsRefusedUntilThereIsRoomAndThenForgotten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	j, disk := small(t, dir, journal.Options{})
	if _, err := j.Append(note("fits")); err != nil {
		t.Fatal(err)
	}
	disk.set(100)
	if _, err := j.AppendLazy(note("lazy")); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if seq, err := j.Append(note("refused")); seq != 0 || !errors.Is(err, journal.ErrFailed) || !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("Append on a full disk = %d, %v", seq, err)
		}
		if _, err := j.AppendLazy(note("refused")); !errors.Is(err, journal.ErrFailed) || !strings.Contains(err.Error(), "the disk is full") {
			t.Fatalf("AppendLazy on a full disk: %v", err)
		}
		if err := j.Sync(); !errors.Is(err, journal.ErrFailed) {
			t.Fatalf("Sync on a full disk: %v", err)
		}
	}
	disk.set(-1)
	seq, err := j.Append(note("room again"))
	if err != nil {
		t.Fatal(err)
	}
	closeJournal(t, j)
	got, resumed := notes(t, dir)
	if len(got) < 3 || got[0] != "fits" || got[1] != "lazy" || got[len(got)-1] != "room again" || resumed != 1 {
		t.Errorf("%q, resumed %d times", got, resumed)
	}
	if s, err := journal.Verify(dir); err != nil || s.Torn != nil || s.Entries != seq {
		t.Errorf("Verify = %+v, %v; the last was entry %d", s, err, seq)
	}
}

func TestASyncThatFindsNoRoomIsMendedToo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	j, disk := small(t, dir, journal.Options{})
	if _, err := j.AppendLazy(note("lazy")); err != nil {
		t.Fatal(err)
	}
	disk.mu.Lock()
	disk.failSync, disk.syncs = true, syscall.EDQUOT
	disk.mu.Unlock()
	if _, err := j.Append(note("written, not synced")); !errors.Is(err, syscall.EDQUOT) {
		t.Fatal(err)
	}
	disk.set(-1)
	if _, err := j.Append(note("after")); err != nil {
		t.Fatal(err)
	}
	closeJournal(t, j)
	if got, resumed := notes(t, dir); fmt.Sprint(got) != "[lazy written, not synced after]" || resumed != 1 {
		t.Errorf("%q, resumed %d times", got, resumed)
	}
}

func TestAJournalClosedOnAFullDiskSaysSoAndOpensAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	j, disk := small(t, dir, journal.Options{})
	disk.set(50)
	if _, err := j.Append(note("no room")); !errors.Is(err, journal.ErrFailed) {
		t.Fatal(err)
	}
	if err := j.Close(); !errors.Is(err, journal.ErrFailed) {
		t.Errorf("Close: %v", err)
	}
	if _, err := j.Append(note("closed")); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("Append after Close: %v", err)
	}
	j, _ = open(t, dir, journal.Options{})
	if _, err := j.Append(note("again")); err != nil {
		t.Error(err)
	}
	closeJournal(t, j)
	if _, err := journal.Verify(dir); err != nil {
		t.Error(err)
	}
}

// TestNothingAcceptedIsLostHoweverOftenTheDiskIsFull compares a journal on a disk that
// fills up at any byte, again and again, with a list of what its callers were told.
func TestNothingAcceptedIsLostHoweverOftenTheDiskIsFull(t *testing.T) {
	seeds := uint64(3)
	if os.Getenv("PASSEPARTOUT_SOAK") != "" {
		seeds = 200
	}
	for seed := range seeds {
		rnd := rand.New(rand.NewPCG(seed, 7))
		dir := filepath.Join(t.TempDir(), "journal")
		j, disk := small(t, dir, journal.Options{SegmentBytes: 900})
		var mu sync.Mutex
		accepted := map[string]bool{}
		for round := range 15 {
			disk.set(rnd.IntN(1500))
			var wg sync.WaitGroup
			for w := range 3 {
				wg.Go(func() {
					for i := range 6 {
						name := fmt.Sprintf("%d.%d.%d", round, w, i)
						add := j.Append
						if i%2 == 0 {
							add = j.AppendLazy
						}
						if _, err := add(note(name)); err == nil {
							mu.Lock()
							accepted[name] = true
							mu.Unlock()
						} else if !errors.Is(err, syscall.ENOSPC) {
							t.Errorf("seed %d: %v", seed, err)
						}
					}
				})
			}
			wg.Wait()
		}
		disk.set(-1)
		if _, err := j.Append(note("end")); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		closeJournal(t, j)
		got, _ := notes(t, dir)
		count := map[string]int{}
		for _, n := range got {
			count[n]++
		}
		for n := range accepted {
			if count[n] != 1 {
				t.Errorf("seed %d: %s was accepted and is there %d times", seed, n, count[n])
			}
		}
		for n, c := range count {
			if c != 1 {
				t.Errorf("seed %d: %s is there %d times", seed, n, c)
			}
		}
		if s, err := journal.Verify(dir); err != nil || s.Torn != nil {
			t.Errorf("seed %d: Verify = %+v, %v", seed, s, err)
		}
	}
}
