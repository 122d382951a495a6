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
	var known *hashes
	if t.base != nil {
		known = carryHashes(t.base, f)
	}
	return s.node(t.path, f, fileStat{racy: true}, known)
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
	if err := s.carryOutLocked(op, real); err != nil {
		return Result{}, err
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

// carryOutLocked makes an operation happen on disk: first its intent, then all new
// texts beside the files, then names are exchanged. An error means that nothing
// happened, unless it says that even going back failed; then the next Open finishes.
func (s *Store) carryOutLocked(op *Op, ts []target) error {
	if err := s.hist.intent(op); err != nil {
		return err
	}
	var rs []*replacing
	err := func() error {
		for _, t := range ts {
			r, err := stage(s.disk, s.abs(t.path), t.before, t.after)
			if err != nil {
				return fmt.Errorf("%s: %w", t.path, err)
			}
			rs = append(rs, r)
		}
		for i, r := range rs {
			if err := r.install(); err != nil {
				return errors.Join(fmt.Errorf("%s: %w", ts[i].path, err), revertAll(rs[:i]))
			}
		}
		return nil
	}()
	for _, r := range rs {
		err2 := r.clear()
		if err == nil && err2 != nil {
			s.hist.problem = fmt.Errorf("a temporary file was left: %w", err2)
		}
	}
	if err == nil {
		s.hist.commit(op)
		return nil
	}
	if failed := (*revertError)(nil); errors.As(err, &failed) {
		return err
	}
	return errors.Join(err, s.hist.abort(op))
}

// revertError means a file could not be put back: the operation stays open.
type revertError struct{ err error }

func (e *revertError) Error() string {
	return "going back failed, the next start finishes: " + e.err.Error()
}
func (e *revertError) Unwrap() error { return e.err }

func revertAll(rs []*replacing) error {
	var errs []error
	for _, r := range rs {
		if err := r.revert(); err != nil {
			errs = append(errs, &revertError{err})
		}
	}
	return errors.Join(errs...)
}

// found is a file of an interrupted operation as the next start finds it.
type found struct {
	FileChange
	now  []byte // nil if absent
	hash Hash
}

// foreign reports whether somebody else changed the file since.
func (f found) foreign() bool { return f.hash != f.Before && f.hash != f.After }

// recover finishes what an interrupted session left: an intent without outcome.
// Files that are as before get their new text; if any was changed since by
// somebody else, those already written go back instead.
func (s *Store) recover() ([]Problem, error) {
	if s.hist.pending == nil {
		return nil, nil
	}
	op, err := s.hist.load(s.hist.pending)
	if err != nil {
		return nil, err
	}
	bad := func(err error) ([]Problem, error) { return nil, fmt.Errorf("finishing operation %d: %w", op.Seq, err) }
	all, problems, err := s.inspect(op)
	if err != nil {
		return bad(err)
	}
	k := slices.IndexFunc(all, found.foreign)
	for _, f := range all {
		if err := s.settle(f, k < 0); err != nil {
			return bad(fmt.Errorf("%s: %w", f.Path, err))
		}
	}
	if k < 0 {
		s.hist.commit(op)
		return problems, nil
	}
	if err := s.hist.abort(op); err != nil {
		return bad(err)
	}
	return append(problems, Problem{all[k].Path, fmt.Errorf(
		"operation %d was interrupted and the file changed since: withdrawn, the file is as found", op.Seq)}), nil
}

// inspect reads the files of an operation and clears away what its writes left.
func (s *Store) inspect(op *Op) ([]found, []Problem, error) {
	var all []found
	var problems []Problem
	for _, c := range op.Files {
		b, err := os.ReadFile(s.abs(c.Path))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, err
		}
		f := found{FileChange: c, now: b}
		if err == nil {
			f.hash = sumFile(b)
		}
		ps, err := s.clearTemps(op, c, f.hash)
		if err != nil {
			return nil, nil, err
		}
		all, problems = append(all, f), append(problems, ps...)
	}
	return all, problems, nil
}

// settle brings one file to where the operation leaves it, or found it.
func (s *Store) settle(f found, forward bool) error {
	want, hunks := f.After, f.Hunks
	if !forward {
		want, hunks = f.Before, inverse(f.Hunks)
	}
	if f.hash == want || f.foreign() {
		return nil
	}
	after, ok := splice(f.now, hunks)
	if !ok {
		return errHistory
	}
	if want.IsZero() {
		after = nil
	}
	return replace(s.disk, s.abs(f.Path), f.now, after)
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
		if !strings.HasPrefix(e.Name(), tempStem(name)) || !strings.HasSuffix(e.Name(), tempSuffix) {
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
		kept, err := s.keepTemp(tmp, fmt.Sprintf("%s-conflict-%d", strings.TrimSuffix(f.Path, ".org"), op.Seq))
		if err != nil {
			return nil, err
		}
		problems = append(problems, Problem{kept, fmt.Errorf("a version of %s written while it was being replaced", f.Path)})
	}
	return problems, s.disk.SyncDir(filepath.Dir(name))
}

// keepTemp gives a displaced text a name that nothing has yet.
func (s *Store) keepTemp(tmp, stem string) (string, error) {
	kept := stem + ".org"
	for n := 2; ; n++ {
		err := s.disk.Rename(tmp, s.abs(kept), fresh)
		if !errors.Is(err, fs.ErrExist) || n > maxKept {
			return kept, err
		}
		kept = fmt.Sprintf("%s-%d.org", stem, n)
	}
}

// maxKept is how many displaced texts of one file an operation may leave.
const maxKept = 100

// startsAfter reports whether b is the torn beginning of the new text in place.
func (s *Store) startsAfter(f FileChange, name string, b []byte) bool {
	now, err := os.ReadFile(name)
	return err == nil && sumFile(now) == f.After && bytes.HasPrefix(now, b)
}
