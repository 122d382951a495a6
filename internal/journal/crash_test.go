package journal_test

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"passepartout/internal/journal"
)

const crashVar = "JOURNAL_TEST_CRASH_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashVar); dir != "" {
		fmt.Fprintln(os.Stderr, writeUntilKilled(dir))
		os.Exit(1)
	}
	code := m.Run()
	if err := goleak.Find(); code == 0 && err != nil { // every journal's writer ends with it
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// writeUntilKilled is the child of the crash test: several goroutines append
// without end and print the number of each entry that was acknowledged.
func writeUntilKilled(dir string) error {
	j, _, err := journal.Open(dir, journal.Options{SegmentBytes: 64 << 10})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	errs := make(chan error)
	for w := range 4 {
		go func() {
			for i := 0; ; i++ {
				if _, err := j.AppendLazy(note("lazy")); err != nil {
					errs <- err
					return
				}
				seq, err := j.Append(note(strings.Repeat(strconv.Itoa(w), i%3000)))
				if err != nil {
					errs <- err
					return
				}
				mu.Lock()
				fmt.Println(seq)
				mu.Unlock()
			}
		}()
	}
	return <-errs
}

// TestNothingAcknowledgedIsLostToAKill kills a real process that writes, again
// and again on the same journal, after a random number of acknowledgements.
func TestNothingAcknowledgedIsLostToAKill(t *testing.T) {
	kills := 200
	if testing.Short() {
		kills = 10
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	dir := filepath.Join(t.TempDir(), "journal")
	torn := 0
	for range kills {
		acknowledged := killedAfter(t, dir, random.IntN(40))
		j, rec := open(t, dir, journal.Options{})
		if rec.Head < acknowledged {
			t.Fatalf("entry %d was acknowledged, the journal ends at %d", acknowledged, rec.Head)
		}
		if rec.Torn() {
			torn++
		}
		closeJournal(t, j)
	}
	s, err := journal.Verify(dir)
	if err != nil || s.Torn != nil {
		t.Fatalf("Verify = %+v, %v", s, err)
	}
	t.Logf("%d kills, %d torn ends, %d entries in %d segments", kills, torn, s.Entries, s.Segments)
}

// killedAfter runs the child until it has acknowledged n entries, kills it, and
// returns the highest number it acknowledged before it died.
func killedAfter(t *testing.T, dir string, n int) journal.Seq {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), crashVar+"="+dir)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var highest journal.Seq
	lines := bufio.NewScanner(out)
	for i := 0; lines.Scan(); i++ {
		if i == n {
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		seq, err := strconv.ParseUint(lines.Text(), 10, 64)
		if err != nil {
			break // the kill cut the child's output short
		}
		highest = max(highest, journal.Seq(seq))
	}
	var exit *exec.ExitError
	if err := child.Wait(); !errors.As(err, &exit) || exit.ExitCode() != -1 {
		t.Fatalf("the child ended by itself: %v", err)
	}
	return highest
}

// FuzzRecovery opens whatever bytes a segment holds. Either they are refused
// as damage, or what remains is a journal that verifies and goes on, and not a
// byte has been lost.
func FuzzRecovery(f *testing.F) {
	dir := fill(f, 3, journal.Options{})
	whole, err := os.ReadFile(filepath.Join(dir, "000001.journal"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add(whole[:len(whole)/2])
	f.Add(whole[200:])
	f.Add([]byte("\n"))
	f.Add([]byte("(:SEQ 1 :AT \"\" :PREV \"\" :ENTRY ()) ;"))
	f.Add(append(whole[:len(whole):len(whole)], make([]byte, 4096)...))
	f.Fuzz(func(t *testing.T, segment []byte) {
		dir := filepath.Join(t.TempDir(), "journal")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, "000001.journal")
		if err := os.WriteFile(name, segment, 0o600); err != nil {
			t.Fatal(err)
		}
		j, rec, err := journal.Open(dir, journal.Options{})
		var broken *journal.BrokenError
		if errors.As(err, &broken) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		left, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if rec.Torn() {
			cut, err := os.ReadFile(rec.Kept)
			if err != nil {
				t.Fatal(err)
			}
			left = append(left, cut...)
		}
		if string(left) != string(segment) {
			t.Fatalf("%d bytes became %d", len(segment), len(left))
		}
		if seq, err := j.Append(note("after")); err != nil || seq != rec.Head+1 {
			t.Fatalf("Append = %d, %v", seq, err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if s, err := journal.Verify(dir); err == nil && (s.Entries != rec.Head+1 || s.Torn != nil) {
			t.Fatalf("Verify = %+v", s)
		}
	})
}
