package undo

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Undo puts every path of the entry back as it was before. It refuses with a
// ConflictError or an IncompleteError before touching anything.
func (s *Store) Undo(id uint64) error { return s.swap(id, true, false) }

// UndoKept is Undo for an entry of which some paths were not kept: those stay
// as they are.
func (s *Store) UndoKept(id uint64) error { return s.swap(id, true, true) }

// Redo puts every path of an undone entry as it was after.
func (s *Store) Redo(id uint64) error { return s.swap(id, false, true) }

// intent is written before the first path is touched.
type intent struct {
	ID   uint64
	Back bool
}

func (s *Store) swap(id uint64, back, partial bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[id]
	if !ok || e.Undone == back {
		return fmt.Errorf("entry %d: %w", id, ErrNone)
	}
	if len(e.Lost) > 0 && !partial {
		return &IncompleteError{ID: id, Paths: e.Lost}
	}
	half, err := s.unfinished()
	if err != nil {
		return err
	}
	if half != nil && *half != (intent{id, back}) { // else nobody would know any more that it is half done
		if err := s.finishIntent(); err != nil {
			return err
		}
		half = nil
	}
	if err := s.check(e, back, half != nil); err != nil {
		return err
	}
	if err := writeRecord(filepath.Join(s.dir, intentFile), intent{id, back}); err != nil {
		return fmt.Errorf("undo store: %w", err)
	}
	return s.applyLocked(e, back)
}

// finishIntent completes a swap that a crash cut off. Each path is then either
// as before or as after, and putting it right twice does no harm.
func (s *Store) finishIntent() error {
	in, err := s.unfinished()
	if in == nil {
		return err
	}
	path := filepath.Join(s.dir, intentFile)
	e, ok := s.entries[in.ID]
	if !ok || e.Undone == in.Back {
		return os.Remove(path)
	}
	if err := s.check(e, in.Back, true); err != nil {
		var conflict *ConflictError
		if errors.As(err, &conflict) {
			return os.Remove(path) // somebody went on working; the entry stays as it is
		}
		return err
	}
	if err := s.applyLocked(e, in.Back); err != nil && !errors.Is(err, errWithdrawn) {
		return err
	}
	return nil
}

// unfinished is the swap that was begun and did not come to its end, nil for none.
func (s *Store) unfinished() (*intent, error) {
	var in intent
	err := readRecord(filepath.Join(s.dir, intentFile), &in)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("undo store: %w", err)
	}
	return &in, nil
}

// sides returns how the path should be now and how it should become.
func (c Change) sides(back bool) (now, then Image) {
	if back {
		return c.After, c.Before
	}
	return c.Before, c.After
}

// check finds paths that are not as expected, blobs that are missing, and
// directories that hold more than is known. With halfway, a path may be on
// either side already.
func (s *Store) check(e *Entry, back, halfway bool) error {
	var conflicts []string
	for root, changes := range e.byRoot() {
		if err := checkRoot(root); err != nil { // a link in its place leads elsewhere
			return fmt.Errorf("entry %d: %w", e.ID, err)
		}
		r, err := os.OpenRoot(root)
		if err != nil {
			return fmt.Errorf("entry %d: %w", e.ID, err)
		}
		found, err := s.checkRoot(r, changes, back, halfway)
		r.Close()
		if err != nil {
			return fmt.Errorf("entry %d: %w", e.ID, err)
		}
		conflicts = append(conflicts, found...)
	}
	if len(conflicts) > 0 {
		slices.Sort(conflicts)
		return &ConflictError{ID: e.ID, Paths: conflicts}
	}
	return nil
}

func (s *Store) checkRoot(r *os.Root, changes []Change, back, halfway bool) ([]string, error) {
	var conflicts []string
	touched := map[string]bool{}
	for _, c := range changes {
		touched[c.Path] = true
	}
	for _, c := range changes {
		now, then := c.sides(back)
		if then.Kind == File {
			if info, err := os.Stat(s.blobPath(then.Blob)); err != nil || info.Size() != then.Size {
				return nil, fmt.Errorf("%s: kept content is missing", c.Abs())
			}
		}
		is, err := s.image(r, c.Path, false)
		if err != nil {
			return nil, err
		}
		if is != now && !(halfway && (is == then || is.Kind == Absent || is.Kind == Dir)) {
			conflicts = append(conflicts, c.Abs())
			continue
		}
		if is.Kind == Dir && then.Kind != Dir {
			more, err := strangers(r, c.Path, touched)
			if err != nil {
				return nil, err
			}
			conflicts = append(conflicts, more...)
		}
	}
	return conflicts, nil
}

// strangers lists what lies in a directory that has to go and is not ours.
func strangers(r *os.Root, dir string, touched map[string]bool) ([]string, error) {
	list, err := fs.ReadDir(r.FS(), filepath.ToSlash(dir))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range list {
		if p := filepath.Join(dir, e.Name()); !touched[p] && !strings.HasPrefix(e.Name(), tempPrefix) {
			out = append(out, filepath.Join(r.Name(), p))
		}
	}
	return out, nil
}

func (e *Entry) byRoot() map[string][]Change {
	m := map[string][]Change{}
	for _, c := range e.Changes {
		m[c.Root] = append(m[c.Root], c)
	}
	return m
}

// errWithdrawn means that a swap failed and everything is as it was before it.
var errWithdrawn = errors.New("nothing was changed")

// applyLocked makes the change that check allowed and the intent announced. Where
// that fails in the middle it goes back; where that fails too the intent stays, and
// the swap can be asked for again.
func (s *Store) applyLocked(e *Entry, back bool) error {
	if err := s.put(e, back); err != nil {
		if worse := s.put(e, !back); worse != nil {
			return errors.Join(err, fmt.Errorf("and is left half done: %w", worse))
		}
		return errors.Join(fmt.Errorf("%w: %w", errWithdrawn, err), os.Remove(filepath.Join(s.dir, intentFile)))
	}
	done := *e
	done.Undone = back
	if err := writeRecord(s.entryPath(e.ID), done); err != nil {
		return fmt.Errorf("undo store: %w", err)
	}
	s.entries[e.ID] = &done
	if err := os.Remove(filepath.Join(s.dir, intentFile)); err != nil {
		return fmt.Errorf("undo store: %w", err)
	}
	return nil
}

// put brings every path of an entry to one side.
func (s *Store) put(e *Entry, back bool) error {
	for root, changes := range e.byRoot() {
		r, err := os.OpenRoot(root)
		if err != nil {
			return fmt.Errorf("entry %d: %w", e.ID, err)
		}
		a := applier{store: s, root: r, back: back, modes: map[string]fs.FileMode{}}
		err = a.apply(changes)
		r.Close()
		if err != nil {
			return fmt.Errorf("entry %d: %w", e.ID, err)
		}
	}
	return nil
}

// applier puts the paths of one root on one side.
type applier struct {
	store *Store
	root  *os.Root
	back  bool
	modes map[string]fs.FileMode // of directories, to be set at the end
}

// apply removes from the leaves up, then makes from the root down, then sets
// the modes of directories, which may forbid what came before.
func (a *applier) apply(changes []Change) error {
	slices.SortFunc(changes, func(x, y Change) int { return cmp.Compare(x.Path, y.Path) })
	for _, c := range slices.Backward(changes) {
		if err := a.clear(c); err != nil {
			return err
		}
	}
	for _, c := range changes {
		if err := a.make(c); err != nil {
			return err
		}
	}
	if err := a.sync(changes); err != nil {
		return err
	}
	for dir, mode := range a.modes {
		if err := a.root.Chmod(dir, mode); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return a.verify(changes)
}

// sync makes the names durable that were made and removed: an entry must not count as
// undone while the files may still come back.
func (a *applier) sync(changes []Change) error {
	dirs := map[string]bool{}
	for _, c := range changes {
		if c.Path != "." {
			dirs[filepath.Dir(c.Path)] = true
		}
	}
	if len(dirs) > fewBlobs {
		return syncAll(a.root.Name())
	}
	for dir := range dirs {
		d, err := a.root.Open(dir)
		if absent(err) {
			continue // it went too; that is in the directory above
		}
		if err != nil { // not ours to read
			return syncAll(a.root.Name())
		}
		if err := errors.Join(d.Sync(), d.Close()); err != nil {
			return err
		}
	}
	return nil
}

// clear removes what stands in the way of what is to be there.
func (a *applier) clear(c Change) error {
	_, then := c.sides(a.back)
	info, err := lstat(a.root, c.Path)
	if absent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	keep := info.IsDir() && then.Kind == Dir || !info.IsDir() && (then.Kind == File || then.Kind == Link)
	if keep {
		return nil // directories stay, files are replaced by renaming over them
	}
	if err := a.openParent(c.Path); err != nil {
		return err
	}
	if info.IsDir() {
		delete(a.modes, c.Path)
	}
	return a.root.Remove(c.Path)
}

// openParent makes sure that the directory around p can be written, and
// remembers the mode it had.
func (a *applier) openParent(p string) error {
	dir := filepath.Dir(p)
	info, err := a.root.Lstat(dir)
	if err != nil {
		return err
	}
	const need = 0o300
	if info.Mode()&need == need {
		return nil
	}
	if _, ok := a.modes[dir]; !ok {
		a.modes[dir] = info.Mode() & modeBits
	}
	return a.root.Chmod(dir, info.Mode()&modeBits|need)
}

func (a *applier) make(c Change) error {
	_, then := c.sides(a.back)
	if then.Kind == Absent {
		return nil
	}
	if then.Kind == Dir {
		a.modes[c.Path] = then.Mode
		if _, err := a.root.Lstat(c.Path); err == nil {
			return nil
		}
	}
	if c.Path != "." {
		if err := a.openParent(c.Path); err != nil {
			return err
		}
	}
	switch then.Kind {
	case Dir:
		return a.root.Mkdir(c.Path, 0o700)
	case Link:
		tmp := a.temp(c.Path)
		if err := a.root.Symlink(then.Target, tmp); err != nil {
			return err
		}
		return a.root.Rename(tmp, c.Path)
	case File:
		return a.file(c.Path, then)
	case Absent, Unknown:
	}
	return nil
}

// tempPrefix starts the names of files on their way to their place.
const tempPrefix = ".passepartout-undo-"

func (a *applier) temp(p string) string {
	const longest = 200 // of the 255 bytes a name may have
	base := filepath.Base(p)
	if len(base) > longest {
		base = fmt.Sprintf("%x", sha256.Sum256([]byte(base)))
	}
	tmp := filepath.Join(filepath.Dir(p), tempPrefix+base)
	_ = a.root.Remove(tmp) // left by a crash
	return tmp
}

// file writes the kept content beside the place and moves it there.
func (a *applier) file(p string, im Image) error {
	from, err := os.Open(a.store.blobPath(im.Blob))
	if err != nil {
		return err
	}
	defer from.Close()
	tmp := a.temp(p)
	to, err := a.root.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	h := sha256.New()
	_, err = io.Copy(io.MultiWriter(to, h), from)
	err = errors.Join(err, to.Chmod(im.Mode), to.Sync(), to.Close())
	if got := hex.EncodeToString(h.Sum(nil)); err == nil && got != im.Blob {
		err = fmt.Errorf("%s: kept content is damaged: wanted %s, found %s", p, im.Blob, got)
	}
	if err != nil {
		_ = a.root.Remove(tmp)
		return err
	}
	return a.root.Rename(tmp, p)
}

// verify reads back every path.
func (a *applier) verify(changes []Change) error {
	for _, c := range changes {
		_, then := c.sides(a.back)
		is, err := a.store.image(a.root, c.Path, false)
		if err != nil {
			return err
		}
		if is != then {
			return fmt.Errorf("%s: wanted %+v after restoring, found %+v", c.Abs(), then, is)
		}
	}
	return nil
}
