package memory_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"passepartout/internal/memory"
	"passepartout/internal/org"
)

// TestReadersNeverSeeHalfAChange has eight writers set the same value in two files
// at once while sixty-four readers compare the two in every view they get.
func TestReadersNeverSeeHalfAChange(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run by make test")
	}
	const writers, readers, edits = 8, 64, 12
	files := map[string]string{}
	for w := range writers {
		for _, side := range []string{"l", "r"} {
			files[fmt.Sprintf("%s%d.org", side, w%3)] += fmt.Sprintf("* %s%d\n:PROPERTIES:\n:ID: %s%d\n:N: 0\n:END:\n", side, w, side, w)
		}
	}
	f := newFixture(t, files)
	s, err := memory.Open(t.Context(), f.dir, f.options().OnDisk(lazyDisk{memory.RealDisk()}))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var writing, reading sync.WaitGroup
	var done atomic.Bool
	for w := range writers {
		writing.Go(func() {
			for n := 1; n <= edits; {
				if err := setBoth(s, w, n); err == nil {
					n++
				} else if c := (*memory.ConflictError)(nil); !errors.As(err, &c) {
					t.Error(err)
					return
				}
			}
		})
	}
	for range readers {
		reading.Go(func() {
			var last uint64
			for !done.Load() {
				v := s.View()
				if v.Rev() < last {
					t.Error("a view went back in time")
				}
				last = v.Rev()
				for w := range writers {
					if l, r := number(v, "l", w), number(v, "r", w); l != r {
						t.Errorf("writer %d: %s on the left, %s on the right", w, l, r)
					}
				}
			}
		})
	}
	writing.Wait()
	done.Store(true)
	reading.Wait()
	for w := range writers {
		if got := number(s.View(), "l", w); got != fmt.Sprint(edits) {
			t.Errorf("writer %d: want %d, found %s: an update was lost", w, edits, got)
		}
	}
	if p := s.Verify(); len(p) > 0 {
		t.Error(p)
	}
}

func setBoth(s *memory.Store, w, n int) error {
	v := s.View()
	var tx memory.Tx
	for _, side := range []string{"l", "r"} {
		o, ok := v.Get(memory.ID(fmt.Sprintf("%s%d", side, w)))
		if !ok {
			return errors.New("object is gone")
		}
		tx.Edits = append(tx.Edits, memory.Edit{Object: o.ID, Expect: o.Hash, Change: memory.Change{Kind: memory.SetProperty, Key: "N", Value: fmt.Sprint(n)}})
	}
	_, err := s.Apply(context.Background(), tx)
	return err
}

func number(v *memory.View, side string, w int) string {
	o, _ := v.Get(memory.ID(fmt.Sprintf("%s%d", side, w)))
	n, _ := o.Property("N")
	return n
}

// stuckDisk does not return from opening a file until it is let go.
type stuckDisk struct {
	memory.Disk
	reached, release chan struct{}
	once             sync.Once
}

func (d *stuckDisk) OpenFile(name string, flag int, perm fs.FileMode) (memory.DiskFile, error) {
	if filepath.Ext(name) == ".tmp" {
		d.once.Do(func() { close(d.reached); <-d.release })
	}
	return d.Disk.OpenFile(name, flag, perm)
}

func TestReadersDoNotWaitForAWriterThatIsStuck(t *testing.T) {
	f := newFixture(t, map[string]string{"a.org": "* A :x:\n"})
	d := &stuckDisk{Disk: memory.RealDisk(), reached: make(chan struct{}), release: make(chan struct{})}
	s, err := memory.Open(t.Context(), f.dir, memory.Options{}.OnDisk(d))
	if err != nil {
		t.Fatal(err)
	}
	before := s.View()
	finished := make(chan error)
	go func() {
		o := titled(t, before, "A")
		_, err := s.Apply(context.Background(), memory.Tx{Edits: []memory.Edit{{Object: o.ID, Expect: o.Hash, Change: memory.Change{Kind: memory.SetBody, Value: "new"}}}})
		finished <- err
	}()
	<-d.reached
	// The writer is inside Apply, holding its lock, and will stay there.
	if os, err := s.View().Match("x"); err != nil || len(os) != 1 || os[0].Body() != "" || s.View() != before {
		t.Errorf("match while writing: %v %v", os, err)
	}
	if len(s.View().Search("a", 1)) != 1 || len(s.Problems()) != 0 || s.Private("a.org") {
		t.Error("reading failed while writing")
	}
	close(d.release)
	if err := <-finished; err != nil {
		t.Fatal(err)
	}
	if titled(t, before, "A").Body() != "" || titled(t, s.View(), "A").Body() != "new\n" {
		t.Error("the old view changed, or the new one did not")
	}
}

// racingDisk lets somebody else write the file at the very moment it is replaced.
type racingDisk struct {
	memory.Disk
	meddle func()
	from   bool // when the file gives its name away, not when it gets one
	noSwap bool
}

func (d *racingDisk) Rename(from, to string, how memory.Renaming) error {
	if how == memory.Swap && d.noSwap {
		return memory.ErrNoSwap
	}
	at := to
	if d.from {
		at = from
	}
	if m := d.meddle; m != nil && filepath.Ext(at) == ".org" {
		d.meddle = nil
		m()
	}
	return d.Disk.Rename(from, to, how)
}

func TestAWriteInTheLastMomentIsNotLost(t *testing.T) {
	f := newFixture(t, map[string]string{"a.org": "* A\nold\n* B\n"})
	d := &racingDisk{Disk: memory.RealDisk()}
	s, err := memory.Open(t.Context(), f.dir, memory.Options{}.OnDisk(d))
	if err != nil {
		t.Fatal(err)
	}
	a := titled(t, s.View(), "A")
	edit := memory.Tx{Edits: []memory.Edit{{Object: a.ID, Expect: a.Hash, Change: memory.Change{Kind: memory.SetBody, Value: "ours"}}}}

	d.meddle = func() { f.write("a.org", "* A\nold\n* B\ntheirs\n") }
	if _, err := s.Apply(t.Context(), edit); err != nil {
		t.Fatal(err)
	}
	if got, want := f.read("a.org"), "* A\nours\n* B\ntheirs\n"; got != want {
		t.Errorf("want %q, found %q", want, got)
	}

	a = titled(t, s.View(), "A")
	edit.Edits[0].Expect, edit.Edits[0].Change.Value = a.Hash, "ours again"
	d.meddle = func() { f.write("a.org", "* A\ntheirs too\n") }
	_, err = s.Apply(t.Context(), edit)
	var c *memory.ConflictError
	if !errors.As(err, &c) {
		t.Errorf("want a conflict, found %v", err)
	}
	if got := f.read("a.org"); got != "* A\ntheirs too\n" {
		t.Errorf("found %q", got)
	}
	if left, err := filepath.Glob(filepath.Join(f.dir, ".passepartout-*")); err != nil || len(left) > 0 {
		t.Errorf("temporary files were left: %q %v", left, err)
	}
}

// TestAFileMadeOrWrittenInTheLastMomentIsNotLost: neither under one that is being made
// nor under one that is being removed.
func TestAFileMadeOrWrittenInTheLastMomentIsNotLost(t *testing.T) {
	f := newFixture(t, nil)
	d := &racingDisk{Disk: memory.RealDisk()}
	s, err := memory.Open(t.Context(), f.dir, memory.Options{}.OnDisk(d))
	if err != nil {
		t.Fatal(err)
	}
	insert := func() {
		t.Helper()
		if _, err := s.Apply(t.Context(), memory.Tx{Edits: []memory.Edit{{File: "a.org", Change: memory.Change{Kind: memory.Insert, Entry: org.Entry{Title: "Ours"}}}}}); err != nil {
			t.Fatal(err)
		}
	}
	d.meddle = func() { f.write("a.org", "* Theirs\n") }
	insert()
	if got := f.read("a.org"); !strings.HasPrefix(got, "* Theirs\n* Ours\n") {
		t.Errorf("a file made meanwhile is lost: %q", got)
	}
	if err := os.Remove(filepath.Join(f.dir, "a.org")); err != nil {
		t.Fatal(err)
	}
	refresh(t, s)
	insert()
	made := f.read("a.org")
	d.from = true
	d.meddle = func() { f.write("a.org", made+"* Theirs\n") }
	if _, err := s.Undo(t.Context(), memory.Mark{}); err == nil {
		t.Error("a file somebody was writing was removed")
	}
	if got := f.read("a.org"); got != made+"* Theirs\n" {
		t.Errorf("what was written meanwhile is lost: %q", got)
	}
	if left, err := filepath.Glob(filepath.Join(f.dir, ".passepartout-*")); err != nil || len(left) > 0 {
		t.Errorf("temporary files were left: %q %v", left, err)
	}
}

func TestAnEditKeepsTheModeOfAFile(t *testing.T) {
	f := newFixture(t, map[string]string{"a.org": "* A\n"})
	name := filepath.Join(f.dir, "a.org")
	for _, mode := range []fs.FileMode{0o666, 0o640, 0o755, 0o600} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
		s := f.open()
		if err := setBody(s, titled(t, s.View(), "A"), mode.String()); err != nil {
			t.Fatal(err)
		}
		if fi, err := os.Stat(name); err != nil || fi.Mode() != mode {
			t.Errorf("want %v, found %v %v", mode, fi.Mode(), err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAFileWithTheLongestNameCanBeEdited(t *testing.T) {
	name := strings.Repeat("ä", 125) + ".org" // 254 bytes of the 255 there may be
	f := newFixture(t, map[string]string{name: "* A\n"})
	s := f.open()
	if err := setBody(s, titled(t, s.View(), "A"), "text"); err != nil {
		t.Fatal(err)
	}
	if got := f.read(name); got != "* A\ntext\n" {
		t.Errorf("found %q", got)
	}
}

func TestTheWatcherSeesEditorsSaveFilesComeAndDirectoriesGo(t *testing.T) {
	f := newFixture(t, map[string]string{"a.org": "* A\n", "d/b.org": "* B\n"})
	s := f.open()
	looked := make(chan *memory.View, 100)
	err := s.Watch(memory.WatchOptions{Quiet: 5 * time.Millisecond, Notify: func(v *memory.View, err error) {
		if err != nil {
			t.Error(err)
		}
		looked <- v
	}})
	if err != nil {
		t.Fatal(err)
	}
	until := func(what string, ok func(*memory.View) bool) {
		t.Helper()
		giveUp := time.After(20 * time.Second)
		for {
			select {
			case v := <-looked:
				if ok(v) {
					return
				}
			case <-giveUp:
				t.Fatalf("%s was not seen", what)
			}
		}
	}
	has := func(title string) func(*memory.View) bool {
		return func(v *memory.View) bool {
			for o := range v.All() {
				if o.Title == title {
					return true
				}
			}
			return false
		}
	}
	// An editor's way of saving: a new file takes the old one's name.
	f.write("a.org~new", "* A saved\n")
	if err := os.Rename(filepath.Join(f.dir, "a.org~new"), filepath.Join(f.dir, "a.org")); err != nil {
		t.Fatal(err)
	}
	until("a save by rename", has("A saved"))
	f.write("new/deep/c.org", "* C\n")
	until("a file in a new directory", has("C"))
	if err := os.RemoveAll(filepath.Join(f.dir, "d")); err != nil {
		t.Fatal(err)
	}
	until("a directory going", func(v *memory.View) bool { return !has("B")(v) })
}
