package memory_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"passepartout/internal/memory"
	"passepartout/internal/org"
)

var errCrashed = errors.New("the power is gone")

// crashDisk is a disk whose power fails at a chosen step. Reads see the real
// directory; beside it the disk keeps what would survive: the bytes of a file since
// its last Sync, the names of a directory since its last SyncDir.
type crashDisk struct {
	steps   int // until the power fails; negative: never
	taken   int
	noSwap  bool
	names   map[string]*crashFile // as the running system sees them
	durable map[string]*crashFile
}

type crashFile struct {
	data, synced []byte
}

// newCrashDisk takes everything below the directories as durable.
func newCrashDisk(t testing.TB, steps int, dirs ...string) *crashDisk {
	d := &crashDisk{steps: steps, names: map[string]*crashFile{}}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			b, err := os.ReadFile(p)
			d.names[p] = &crashFile{b, b}
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	d.durable = maps.Clone(d.names)
	return d
}

// step counts an action and fails once the power is gone.
func (d *crashDisk) step() error {
	if d.steps >= 0 && d.taken >= d.steps {
		return errCrashed
	}
	d.taken++
	return nil
}

func (d *crashDisk) OpenFile(name string, flag int, perm fs.FileMode) (memory.DiskFile, error) {
	if err := d.step(); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	if d.names[name] == nil {
		d.names[name] = &crashFile{}
	}
	return &crashHandle{d, d.names[name], f}, nil
}

func (d *crashDisk) Rename(from, to string, how memory.Renaming) error {
	if err := d.step(); err != nil {
		return err
	}
	if how == memory.Swap && d.noSwap {
		return memory.ErrNoSwap
	}
	if err := memory.RealDisk().Rename(from, to, how); err != nil {
		return err
	}
	if how == memory.Swap {
		d.names[from], d.names[to] = d.names[to], d.names[from]
		return nil
	}
	d.names[to] = d.names[from]
	delete(d.names, from)
	return nil
}

func (d *crashDisk) Remove(name string) error {
	if err := d.step(); err != nil {
		return err
	}
	delete(d.names, name)
	return os.Remove(name)
}

func (d *crashDisk) SyncDir(dir string) error {
	if err := d.step(); err != nil {
		return err
	}
	for p := range d.durable {
		if filepath.Dir(p) == dir && d.names[p] == nil {
			delete(d.durable, p)
		}
	}
	for p, f := range d.names {
		if filepath.Dir(p) == dir {
			d.durable[p] = f
		}
	}
	return nil
}

type crashHandle struct {
	d *crashDisk
	f *crashFile
	r *os.File
}

func (h *crashHandle) Write(b []byte) (int, error) {
	if err := h.d.step(); err != nil {
		return 0, err
	}
	h.f.data = append(slices.Clip(h.f.data), b...)
	return h.r.Write(b)
}

func (h *crashHandle) Sync() error {
	if err := h.d.step(); err != nil {
		return err
	}
	h.f.synced = h.f.data
	return nil
}

func (h *crashHandle) Close() error { return h.r.Close() }

func (h *crashHandle) Chmod(mode fs.FileMode) error { return h.r.Chmod(mode) }

// survive is what the disk may hold after the power failed: names as last synced
// or as last seen, and of unsynced bytes none, half or all.
func (d *crashDisk) survive(names, bytes string) map[string][]byte {
	seen := d.durable
	if names == "all" {
		seen = d.names
	}
	out := map[string][]byte{}
	for p, f := range seen {
		b := f.synced
		switch more := len(f.data) - len(f.synced); {
		case bytes == "all":
			b = f.data
		case bytes == "half" && more > 0:
			b = f.data[:len(f.synced)+more/2]
		}
		out[p] = b
	}
	return out
}

// rebuild writes what survived into a new pair of directories.
func rebuild(t testing.TB, from, to *fixture, files map[string][]byte) {
	t.Helper()
	for p, b := range files {
		q := p
		for _, dir := range [][2]string{{from.dir, to.dir}, {from.stateFile("."), to.stateFile(".")}} {
			if rest, ok := strings.CutPrefix(p, dir[0]+string(filepath.Separator)); ok {
				q = filepath.Join(dir[1], rest)
			}
		}
		if err := os.MkdirAll(filepath.Dir(q), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(q, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// crashRound is the number of the last transaction in every file of the scenario.
func crashRound(t testing.TB, f *fixture) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(f.dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(f.dir, p)
		if err != nil {
			return err
		}
		if b, err := os.ReadFile(p); err == nil && !strings.HasPrefix(e.Name(), ".") {
			out[filepath.ToSlash(rel)] = string(b)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// crashScenario runs transactions over several files until the power fails, and
// returns the state of all files after each transaction that was acknowledged.
func crashScenario(t testing.TB, f *fixture, d *crashDisk) (states []map[string]string, failed error) {
	t.Helper()
	ctx := context.Background()
	f.ids = 0
	s, err := memory.Open(ctx, f.dir, f.options().OnDisk(d))
	if err != nil {
		return nil, err
	}
	states = append(states, crashRound(t, f))
	for _, step := range crashSteps(t, s) {
		if err := step(); err != nil {
			return states, err
		}
		states = append(states, crashRound(t, f))
	}
	return states, s.Close()
}

// crashSteps are the transactions.
func crashSteps(t testing.TB, s *memory.Store) []func() error {
	ctx := context.Background()
	return []func() error{
		func() error {
			a, b := titled(t, s.View(), "A"), titled(t, s.View(), "B")
			_, err := s.Apply(ctx, memory.Tx{Edits: []memory.Edit{
				{Object: a.ID, Expect: a.Hash, Change: memory.Change{Kind: memory.SetBody, Value: "one\n"}},
				{Object: b.ID, Expect: b.Hash, Change: memory.Change{Kind: memory.SetTodo, Value: "DONE"}},
				{File: "new/c.org", Change: memory.Change{Kind: memory.Insert, Entry: org.Entry{Title: "C"}}},
			}})
			return err
		},
		func() error {
			a, b := titled(t, s.View(), "A"), titled(t, s.View(), "B")
			_, err := s.Apply(ctx, memory.Tx{Edits: []memory.Edit{{Object: a.ID, Expect: a.Hash, Change: memory.Change{Kind: memory.Refile, Target: b.ID}}}})
			return err
		},
		func() error { _, err := s.Undo(ctx, memory.Mark{}); return err },
		func() error { _, err := s.Rewind(ctx, memory.Mark{}); return err },
	}
}

func crashFixture(t testing.TB) *fixture {
	return newFixture(t, map[string]string{
		"a.org": "* TODO A\nbody of a\n* Beside a\n",
		"b.org": "#+TITLE: B file\n* TODO B\n" + strings.Repeat("filler\n", 50),
	})
}

func TestAfterACrashAtAnyStepEachTransactionIsWholeOrAbsent(t *testing.T) {
	for _, noSwap := range []bool{false, true} {
		ref := crashFixture(t)
		d := newCrashDisk(t, -1, ref.dir)
		d.noSwap = noSwap
		want, err := crashScenario(t, ref, d)
		if err != nil {
			t.Fatal(err)
		}
		total := d.taken
		if total < 40 {
			t.Fatalf("the scenario takes only %d steps: crash points are missing", total)
		}
		bytesKept := []string{"half"}
		if soak() > 0 {
			bytesKept = []string{"synced", "half", "all"}
		}
		step := 1
		if testing.Short() {
			step = 9 // no divisor of a transaction's steps: each kind is met
		}
		for at := 0; at < total; at += step {
			for _, names := range []string{"synced", "all"} {
				for _, bytes := range bytesKept {
					t.Run(fmt.Sprintf("swap=%v/step %d/names %s/bytes %s", !noSwap, at, names, bytes), func(t *testing.T) {
						crashOnce(t, at, names, bytes, noSwap, want)
					})
				}
			}
		}
	}
}

func crashOnce(t *testing.T, at int, names, bytes string, noSwap bool, want []map[string]string) {
	f := crashFixture(t)
	d := newCrashDisk(t, at, f.dir)
	d.noSwap = noSwap
	states, err := crashScenario(t, f, d)
	if !errors.Is(err, errCrashed) {
		t.Fatalf("want a crash, found %v", err)
	}
	g := newFixture(t, nil)
	rebuild(t, f, g, d.survive(names, bytes))
	// The power fails once more while the first crash is being cleaned up.
	again := newCrashDisk(t, at%7, g.dir, g.state)
	if s, err := memory.Open(context.Background(), g.dir, g.options().OnDisk(again)); err == nil {
		_ = s.Close() // may fail: the power is gone
	}
	h := newFixture(t, nil)
	rebuild(t, g, h, again.survive(names, bytes))
	s := h.open()
	got := crashRound(t, h)
	n := max(0, len(states)-1) // transactions acknowledged before the crash
	switch {
	case maps.Equal(got, want[n]):
	case n+1 < len(want) && maps.Equal(got, want[n+1]):
		n++ // the one in flight was finished
	default:
		t.Fatalf("neither before nor after transaction %d:\n%q\nwant\n%q\nor\n%q", n+1, got, want[n], want[min(n+1, len(want)-1)])
	}
	done := 0
	for _, op := range s.History() {
		if op.Kind != memory.OpExternal {
			done++
		}
	}
	if done != n {
		t.Errorf("files are after transaction %d, history after %d", n, done)
	}
	if p := s.Verify(); len(p) > 0 {
		t.Error(p)
	}
}
