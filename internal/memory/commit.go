package memory

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"passepartout/internal/org"
)

// target is one file of a transaction: what is on disk and what shall be.
type target struct {
	path      string
	base, now *node // nil: no such file
	before    []byte
	after     []byte
}

// commitLocked makes a transaction durable: the intent, the files, the outcome,
// the new view, in this order.
func (s *Store) commitLocked(op *Op, w *work, r Result, dry bool) (Result, error) {
	var ts []target
	for _, d := range w.drafts {
		if d.base != nil && d.base.of == d.f || d.base == nil && len(d.f.Bytes()) == 0 {
			continue
		}
		t := target{path: d.path, base: d.base, after: d.f.Bytes()}
		if t.after == nil {
			t.after = []byte{}
		}
		t.now = s.nodeOf(t, d.f)
		ts = append(ts, t)
	}
	return s.writeLocked(op, ts, w.was, r, dry)
}

// nodeOf is the node a target will be once written.
func (s *Store) nodeOf(t target, f *org.File) *node {
	if t.base != nil {
		return t.base.rebuild(f, fileStat{racy: true})
	}
	return buildNode(t.path, f, fileStat{racy: true}, nil)
}

// writeLocked carries out the targets of an operation. was maps identifiers it
// gave to the ones they replace.
func (s *Store) writeLocked(op *Op, ts []target, was map[ID]ID, r Result, dry bool) (Result, error) {
	slices.SortFunc(ts, func(a, b target) int { return cmp.Compare(a.path, b.path) })
	real := ts[:0]
	for _, t := range ts {
		if t.base != nil {
			t.before = t.base.of.Bytes()
			if t.before == nil {
				t.before = []byte{}
			}
		}
		f, os, changed := describeChange(t.path, t.base, t.now)
		if !changed {
			continue
		}
		op.Files = append(op.Files, f)
		op.Objects = append(op.Objects, os...)
		r.Files = append(r.Files, FileDiff{t.path, t.before, t.after})
		real = append(real, t)
	}
	op.Objects = joinMoves(op.Objects, was)
	r.Objects = slices.Clone(op.Objects)
	if dry || len(real) == 0 {
		return r, nil
	}
	if err := s.hist.intent(op); err != nil {
		return Result{}, err
	}
	for i, t := range real {
		if err := replace(s.disk, s.abs(t.path), t.before, t.after); err != nil {
			return Result{}, s.withdrawLocked(op, real[:i], fmt.Errorf("%s: %w", t.path, err))
		}
	}
	if err := s.hist.outcome(op, true); err != nil {
		return Result{}, s.withdrawLocked(op, real, err)
	}
	cs := make([]replacement, len(real))
	for i, t := range real {
		if t.now != nil {
			if fi, err := os.Lstat(s.abs(t.path)); err == nil {
				t.now.stat = statOf(fi, time.Now())
			}
		}
		cs[i] = replacement{t.path, t.now}
	}
	s.publishLocked(cs, op)
	r.Seq = op.Seq
	return r, nil
}

// withdrawLocked puts back the files already written when a later one failed. If
// even that fails the intent stays open and the next Open finishes the work.
func (s *Store) withdrawLocked(op *Op, done []target, cause error) error {
	for _, t := range done {
		if err := replace(s.disk, s.abs(t.path), t.after, t.before); err != nil {
			if errors.Is(err, errRaced) {
				continue // somebody wrote on top of ours: theirs stays
			}
			return errors.Join(cause, fmt.Errorf("withdrawing operation %d: %s: %w", op.Seq, t.path, err))
		}
	}
	return errors.Join(cause, s.hist.outcome(op, false))
}

// recover finishes what an interrupted session left: an intent without outcome.
// Files that are as before get their new text; if any was changed since by
// somebody else, those already written go back instead.
func (s *Store) recover() ([]Problem, error) {
	op := s.hist.pending
	if op == nil {
		return nil, nil
	}
	op, err := s.hist.load(op)
	if err != nil {
		return nil, err
	}
	type state struct {
		f    FileChange
		now  []byte // nil if absent
		hash Hash
	}
	var all []state
	diverged := ""
	for _, f := range op.Files {
		b, err := os.ReadFile(s.abs(f.Path))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("finishing operation %d: %w", op.Seq, err)
		}
		st := state{f: f, now: b}
		if err == nil {
			st.hash = sumFile(b)
		}
		if st.hash != f.Before && st.hash != f.After {
			diverged = f.Path
		}
		all = append(all, st)
	}
	var problems []Problem
	for _, st := range all {
		p, err := s.clearTemps(op, st.f, st.hash)
		if err != nil {
			return nil, err
		}
		problems = append(problems, p...)
	}
	for _, st := range all {
		want, hunks := st.f.After, st.f.Hunks
		if diverged != "" {
			want, hunks = st.f.Before, inverse(st.f.Hunks)
		}
		if st.hash == want || st.hash != st.f.Before && st.hash != st.f.After {
			continue
		}
		after, ok := splice(st.now, hunks)
		if !ok {
			return nil, fmt.Errorf("finishing operation %d: %s: %w", op.Seq, st.f.Path, errHistory)
		}
		if want.IsZero() {
			after = nil
		}
		if err := replace(s.disk, s.abs(st.f.Path), st.now, after); err != nil {
			return nil, fmt.Errorf("finishing operation %d: %s: %w", op.Seq, st.f.Path, err)
		}
	}
	if err := s.hist.outcome(op, diverged == ""); err != nil {
		return nil, err
	}
	if diverged != "" {
		problems = append(problems, Problem{diverged, fmt.Errorf(
			"operation %d was interrupted and the file changed since: withdrawn, the file is as found", op.Seq)})
	}
	return problems, nil
}

// clearTemps removes temporary files of an interrupted write. One that holds a
// text neither we nor the history know was displaced in a race: it is kept where
// the user will see it.
func (s *Store) clearTemps(op *Op, f FileChange, now Hash) ([]Problem, error) {
	name := s.abs(f.Path)
	entries, err := os.ReadDir(filepath.Dir(name))
	if err != nil {
		return nil, nil // the directory was never made
	}
	var problems []Problem
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), tempPrefix+filepath.Base(name)+"-") || !strings.HasSuffix(e.Name(), tempSuffix) {
			continue
		}
		tmp := filepath.Join(filepath.Dir(name), e.Name())
		b, err := os.ReadFile(tmp)
		if err != nil {
			return nil, err
		}
		if h := sumFile(b); h == f.Before || h == f.After || now != f.After || s.startsAfter(f, name, b) {
			if err := s.disk.Remove(tmp); err != nil {
				return nil, err
			}
			continue
		}
		kept := fmt.Sprintf("%s-conflict-%d.org", strings.TrimSuffix(f.Path, ".org"), op.Seq)
		if err := s.disk.Rename(tmp, s.abs(kept), false); err != nil {
			return nil, err
		}
		problems = append(problems, Problem{kept, fmt.Errorf("a version of %s written while it was being replaced", f.Path)})
	}
	return problems, s.disk.SyncDir(filepath.Dir(name))
}

// startsAfter reports whether b is the torn beginning of the new text in place.
func (s *Store) startsAfter(f FileChange, name string, b []byte) bool {
	now, err := os.ReadFile(name)
	return err == nil && sumFile(now) == f.After && bytes.HasPrefix(now, b)
}
