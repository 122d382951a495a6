package backup

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"passepartout/internal/durable"
)

// A Proposal is what a restore would do to its targets.
type Proposal struct {
	Summary
	New     int      // entries that are not there yet
	Same    int      // files and links that are there already, with the same contents
	Differs []string // paths whose contents would be replaced
	Blocked []string // paths that cannot be written because something else is there
}

// Plan reads an archive and compares it with the targets, by root. Nothing is
// written. Roots without a target are left out.
func Plan(r io.Reader, targets map[string]string, opt Options) (Proposal, error) {
	var p Proposal
	blocked := map[string]bool{}
	s, err := walk(r, opt, func(it item) error {
		dir, wanted := targets[it.root]
		if !wanted {
			return nil
		}
		if it.rel != "." && blocked[path.Dir(it.Name)] {
			blocked[it.Name] = true
			return nil
		}
		state, err := compare(it, filepath.Join(dir, filepath.FromSlash(it.rel)))
		switch state {
		case missing:
			p.New++
		case same:
			p.Same++
		case differs:
			p.Differs = append(p.Differs, it.Name)
		case inTheWay:
			blocked[it.Name] = true
			p.Blocked = append(p.Blocked, it.Name)
		}
		return err
	})
	p.Summary = s
	return p, err
}

// A state is how an entry and what is at its place compare.
type state uint8

const (
	missing state = iota
	same
	differs
	inTheWay // of another type
)

func compare(it item, at string) (state, error) {
	st, err := os.Lstat(at)
	if it.rel == "." {
		st, err = os.Stat(at) // a root may be a link of the user's
	}
	if errors.Is(err, fs.ErrNotExist) {
		return missing, nil
	}
	if err != nil {
		return inTheWay, err
	}
	switch it.Typeflag {
	case tar.TypeDir:
		if !st.IsDir() {
			return inTheWay, nil
		}
		return same, nil
	case tar.TypeSymlink:
		if st.Mode()&fs.ModeSymlink == 0 {
			return inTheWay, nil
		}
		to, err := os.Readlink(at)
		if err != nil || to != it.Linkname {
			return differs, err
		}
		return same, nil
	}
	if !st.Mode().IsRegular() {
		return inTheWay, nil
	}
	if st.Size() != it.Size || st.Mode().Perm() != fs.FileMode(it.Mode) {
		return differs, nil
	}
	equal, err := sameContents(at, it.body)
	if err != nil || !equal {
		return differs, err
	}
	return same, nil
}

func sameContents(file string, body io.Reader) (bool, error) {
	f, err := os.Open(file)
	if err != nil {
		return false, err
	}
	defer f.Close()
	a, b := sha256.New(), sha256.New()
	if _, err := io.Copy(a, f); err != nil {
		return false, err
	}
	if _, err := io.Copy(b, body); err != nil {
		return false, err
	}
	return bytes.Equal(a.Sum(nil), b.Sum(nil)), nil
}

// ErrDiffers means that a restore would replace what is there.
var ErrDiffers = errors.New("something else is there")

// A Result is what a restore did.
type Result struct {
	Summary
	Replaced int
	Saved    []string // directories with what was replaced
}

// Restore unpacks an archive into targets, by root. Everything is unpacked beside
// its target first; if anything is wrong nothing has changed. Files that are
// there and differ are replaced only if replace says so, and what they held is
// kept in a directory beside the target.
func Restore(r io.ReadSeeker, targets map[string]string, replace bool, opt Options) (res Result, err error) {
	p, err := Plan(r, targets, opt)
	switch {
	case err != nil:
		return Result{}, err
	case len(p.Blocked) > 0:
		return Result{}, fmt.Errorf("%w: %s and %d more are of another kind than in the archive; move them away", ErrDiffers, p.Blocked[0], len(p.Blocked)-1)
	case len(p.Differs) > 0 && !replace:
		return Result{}, fmt.Errorf("%w: %s and %d more would be replaced", ErrDiffers, p.Differs[0], len(p.Differs)-1)
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return Result{}, err
	}
	stages := map[string]*stage{}
	defer func() {
		for _, s := range stages {
			err = errors.Join(err, s.discard())
		}
	}()
	sum, err := walk(r, opt, func(it item) error {
		dir, wanted := targets[it.root]
		if !wanted {
			return nil
		}
		if stages[it.root] == nil {
			s, err := newStage(dir)
			if err != nil {
				return err
			}
			stages[it.root] = s
		}
		if err := stages[it.root].unpack(it); err != nil {
			return fmt.Errorf("%s: %w", it.Name, err)
		}
		return nil
	})
	if err != nil {
		return Result{}, err
	}
	if sum.Digest != p.Digest {
		return Result{}, refuse("it changed while it was read")
	}
	res.Summary = sum
	for _, root := range sum.Roots {
		if s := stages[root]; s != nil {
			if err := s.commit(&res); err != nil {
				return res, fmt.Errorf("%s: %w", root, err)
			}
		}
	}
	return res, nil
}

// A stage is a directory beside a target in which it is unpacked.
type stage struct {
	target string
	dir    string // "" when it has taken its place
	root   *os.Root
	dirs   []item // whose modes and times come last
	items  []item // without bodies
}

func newStage(target string) (*stage, error) {
	if real, err := filepath.EvalSymlinks(target); err == nil {
		target = real
	}
	if err := durable.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(filepath.Dir(target), filepath.Base(target)+".restoring-")
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, errors.Join(err, os.Remove(dir))
	}
	return &stage{target: target, dir: dir, root: root}, nil
}

func (s *stage) unpack(it item) error {
	rel := filepath.FromSlash(it.rel)
	kept := it
	kept.body = nil
	s.items = append(s.items, kept)
	switch it.Typeflag {
	case tar.TypeDir:
		s.dirs = append(s.dirs, kept)
		if it.rel == "." {
			return nil
		}
		return s.root.Mkdir(rel, 0o700)
	case tar.TypeSymlink:
		if err := s.root.Symlink(it.Linkname, rel); err != nil {
			return err
		}
		return linkTimes(filepath.Join(s.dir, rel), it.ModTime)
	}
	f, err := s.root.OpenFile(rel, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, it.body)
	if err == nil {
		err = f.Chmod(fs.FileMode(it.Mode))
	}
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return s.root.Chtimes(rel, time.Time{}, it.ModTime)
}

// finish gives directories their modes and times, the innermost first.
func (s *stage) finish() error {
	for _, it := range slices.Backward(s.dirs) {
		rel := filepath.FromSlash(it.rel)
		if err := errors.Join(s.root.Chmod(rel, fs.FileMode(it.Mode)), s.root.Chtimes(rel, time.Time{}, it.ModTime)); err != nil {
			return err
		}
	}
	return nil
}

// commit moves what was unpacked into place: in one step where nothing is there,
// else file by file. On return it is there for good.
func (s *stage) commit(res *Result) error {
	entries, err := os.ReadDir(s.target)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(entries) > 0 {
		return s.merge(res)
	}
	if err := s.settle(s.dir); err != nil {
		return err
	}
	if err := s.finish(); err != nil {
		return err
	}
	if err == nil { // it is there and empty
		if rerr := os.Remove(s.target); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			return rerr
		}
	}
	if err := os.Rename(s.dir, s.target); err != nil {
		return err
	}
	s.dir = ""
	return durable.SyncDir(filepath.Dir(s.target))
}

// settle makes the names in the directories of the archive durable, below at. They
// must still be open to us: their own modes come after.
func (s *stage) settle(at string) error {
	for _, it := range slices.Backward(s.dirs) {
		if err := durable.SyncDir(filepath.Join(at, filepath.FromSlash(it.rel))); err != nil {
			return err
		}
	}
	return nil
}

// merge moves files one by one into a target that has others. What will be replaced
// has a second name, for good, before the first is: at no time is there neither.
func (s *stage) merge(res *Result) error {
	target, err := os.OpenRoot(s.target)
	if err != nil {
		return err
	}
	defer target.Close()
	fresh, old, err := s.sort(target)
	if err != nil {
		return err
	}
	if err := s.save(old, res); err != nil {
		return err
	}
	for _, rel := range slices.Concat(fresh, old) {
		if err := s.move(target, rel); err != nil {
			return err
		}
	}
	res.Replaced += len(old)
	if err := s.settle(s.target); err != nil {
		return err
	}
	return s.dress(target)
}

// sort makes the directories, and tells files that are not there from those that are
// and differ.
func (s *stage) sort(target *os.Root) (fresh, old []string, err error) {
	for _, it := range s.items {
		rel := filepath.FromSlash(it.rel)
		if it.rel == "." {
			continue
		}
		if it.Typeflag == tar.TypeDir {
			if err := target.Mkdir(rel, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
				return nil, nil, err
			}
			continue
		}
		switch _, err := target.Lstat(rel); {
		case errors.Is(err, fs.ErrNotExist):
			fresh = append(fresh, rel)
		case err != nil:
			return nil, nil, err
		case !unchanged(filepath.Join(s.dir, rel), filepath.Join(s.target, rel)):
			old = append(old, rel)
		}
	}
	return fresh, old, nil
}

// save keeps what will be replaced, in a directory beside the target.
func (s *stage) save(old []string, res *Result) error {
	if len(old) == 0 {
		return nil
	}
	saved, err := os.MkdirTemp(filepath.Dir(s.target), filepath.Base(s.target)+".replaced-")
	if err != nil {
		return err
	}
	res.Saved = append(res.Saved, saved)
	dirs := map[string]bool{saved: true}
	for _, rel := range old {
		to := filepath.Join(saved, rel)
		if err := durable.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		if err := keep(filepath.Join(s.target, rel), to); err != nil {
			return err
		}
		dirs[filepath.Dir(to)] = true
	}
	for d := range dirs {
		if err := durable.SyncDir(d); err != nil {
			return err
		}
	}
	return durable.SyncDir(filepath.Dir(saved))
}

// keep gives a file or link a second name, or copies it where there are no such.
func keep(at, to string) error {
	err := os.Link(at, to)
	if err == nil {
		return nil
	}
	st, serr := os.Lstat(at)
	if serr != nil {
		return errors.Join(err, serr)
	}
	if st.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(at)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	}
	from, err := os.Open(at)
	if err != nil {
		return err
	}
	defer from.Close()
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, st.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// move renames one file out of the stage. The way there is walked through the
// root first, so that no link on it leads elsewhere.
func (s *stage) move(target *os.Root, rel string) error {
	if dir := filepath.Dir(rel); dir != "." {
		st, err := target.Stat(dir)
		if err != nil {
			return err
		}
		if !st.IsDir() {
			return fmt.Errorf("%s is no directory", dir)
		}
		real, err := filepath.EvalSymlinks(filepath.Join(s.target, dir))
		if err != nil || real != s.target && !strings.HasPrefix(real, s.target+string(filepath.Separator)) {
			return fmt.Errorf("%s leads out of %s: %w", dir, s.target, err)
		}
	}
	return os.Rename(filepath.Join(s.dir, rel), filepath.Join(s.target, rel))
}

// dress gives the directories of a merged target their modes and times.
func (s *stage) dress(target *os.Root) error {
	for _, it := range slices.Backward(s.dirs) {
		rel := filepath.FromSlash(it.rel)
		if it.rel == "." {
			continue // the user's own
		}
		if err := errors.Join(target.Chmod(rel, fs.FileMode(it.Mode)), target.Chtimes(rel, time.Time{}, it.ModTime)); err != nil {
			return err
		}
	}
	return nil
}

// unchanged reports whether two regular files, or two links, are alike.
func unchanged(a, b string) bool {
	x, err1 := os.Lstat(a)
	y, err2 := os.Lstat(b)
	if err1 != nil || err2 != nil || x.Mode() != y.Mode() || x.Size() != y.Size() {
		return false
	}
	if x.Mode()&fs.ModeSymlink != 0 {
		p, err1 := os.Readlink(a)
		q, err2 := os.Readlink(b)
		return err1 == nil && err2 == nil && p == q
	}
	f, err := os.Open(a)
	if err != nil {
		return false
	}
	defer f.Close()
	equal, err := sameContents(b, f)
	return err == nil && equal
}

// discard removes what was not moved into place.
func (s *stage) discard() error {
	err := s.root.Close()
	if s.dir == "" {
		return err
	}
	// Directories without permission for their owner would resist.
	walked := filepath.WalkDir(s.dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(p, 0o700)
		}
		return nil
	})
	return errors.Join(err, walked, os.RemoveAll(s.dir))
}
