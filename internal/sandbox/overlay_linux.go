package sandbox

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// DryRun runs s with an overlay over every write root (each a directory, none
// inside another): the command sees its changes, the disk does not. They are
// collected in dir, an existing private directory outside the roots, and
// listed in order of path. More changes than Limits.Scratch holds are
// [ErrUnavailable]: a part of them would be a wrong picture.
func DryRun(ctx context.Context, s Spec, dir string) (Result, []Change, error) {
	if !filepath.IsAbs(dir) {
		return Result{}, nil, fmt.Errorf("%w: overlay directory %q is not absolute", ErrSpec, dir)
	}
	o := &overlay{dir: filepath.Clean(dir)}
	s.Hidden = append(slices.Clone(s.Hidden), o.dir)
	bounded, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	full, ended := make(chan error, 1), make(chan struct{})
	go func() { full <- o.guard(orElse(s.Limits.Scratch, DefaultLimits().Scratch), stop, ended) }()
	res, err := run(bounded, s, o)
	close(ended)
	if overflow := <-full; overflow != nil {
		err = overflow
	}
	o.tidy()
	if err != nil {
		return res, nil, err
	}
	var all []Change
	for _, d := range o.dirs {
		changes, err := d.changes()
		if err != nil {
			return res, nil, fmt.Errorf("reading what a dry run changed: %w", err)
		}
		all = append(all, changes...)
	}
	slices.SortFunc(all, func(a, b Change) int { return cmp.Compare(a.Path, b.Path) })
	return res, all, nil
}

// plan adds the overlays to p. A nil overlay adds none.
func (o *overlay) plan(p *plan) error {
	if o == nil {
		return nil
	}
	if err := checkReal(o.dir); err != nil {
		return fmt.Errorf("overlay directory: %w", err)
	}
	if w, ok := p.writable(o.dir); ok {
		return fmt.Errorf("%w: overlay directory %s lies in write root %s", ErrSpec, o.dir, w)
	}
	o.dirs = nil
	for i, w := range p.WriteRoots {
		if outer, ok := p.writable(filepath.Dir(w)); ok {
			return fmt.Errorf("%w: dry run: write root %s lies in %s", ErrSpec, w, outer)
		}
		if info, err := os.Lstat(w); err != nil || !info.IsDir() {
			return fmt.Errorf("%w: dry run: write root %s is not a directory", ErrSpec, w)
		}
		d := overlayDirs{w, filepath.Join(o.dir, strconv.Itoa(i), "upper"), filepath.Join(o.dir, strconv.Itoa(i), "work")}
		for _, sub := range []string{d.Upper, d.Work} {
			if err := os.MkdirAll(sub, 0o700); err != nil {
				return fmt.Errorf("%w: overlay: %w", ErrUnavailable, err)
			}
		}
		o.dirs = append(o.dirs, d)
	}
	p.Overlays = o.dirs
	return nil
}

// tidy removes the work directories. The kernel leaves one in each that its
// own user may not open, and the caller could not remove it by ordinary means.
func (o *overlay) tidy() {
	for _, d := range o.dirs {
		_ = os.Chmod(filepath.Join(d.Work, "work"), 0o700)
		_ = os.RemoveAll(d.Work)
	}
}

// How the changes of a dry run are bounded.
const (
	guardEvery = 20 * time.Millisecond
	guardFiles = 50_000
)

// guard ends a dry run whose changes outgrow what is held of them. It looks once
// more when the run has ended.
func (o *overlay) guard(most int64, stop context.CancelCauseFunc, ended <-chan struct{}) error {
	for over := false; ; {
		began := time.Now()
		var bytes int64
		files := 0
		_ = filepath.WalkDir(o.dir, func(_ string, e fs.DirEntry, err error) error {
			if err != nil {
				return nil // it changes under our eyes
			}
			if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
				bytes += info.Sys().(*syscall.Stat_t).Blocks * 512 // what it takes, not what it claims
			}
			if files++; files > guardFiles || bytes > most {
				return fs.SkipAll
			}
			return nil
		})
		if files > guardFiles || bytes > most {
			err := fmt.Errorf("%w: its changes are more than the %d bytes or %d files that a dry run holds", ErrUnavailable, most, guardFiles)
			stop(err)
			return err
		}
		if over {
			return nil
		}
		select {
		case <-ended:
			over = true
		case <-time.After(max(guardEvery, 10*time.Since(began))):
		}
	}
}

// opaque marks a directory that replaced one of the same name.
const opaque = "user.overlay.opaque"

// changes compares the upper directory with the root it lies over.
func (d overlayDirs) changes() ([]Change, error) {
	var out []Change
	err := filepath.WalkDir(d.Upper, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == d.Upper {
			return err
		}
		rel, err := filepath.Rel(d.Upper, path)
		if err != nil {
			return err
		}
		changes, err := d.change(path, filepath.Join(d.Root, rel), e)
		out = append(out, changes...)
		return err
	})
	return out, err
}

// change describes one entry of the upper directory.
func (d overlayDirs) change(upper, lower string, e fs.DirEntry) ([]Change, error) {
	info, err := e.Info()
	if err != nil {
		return nil, err
	}
	old, err := d.lstat(lower)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return nil, err
	}
	existed := err == nil
	if isWhiteout(info) {
		return deletedBelow(lower, existed)
	}
	c := Change{Path: lower, Kind: Created, Mode: info.Mode()}
	var gone []Change
	if existed {
		c.Kind = Modified
		switch {
		case info.IsDir() && old.IsDir() && !isOpaque(upper):
			if info.Mode() == old.Mode() {
				return nil, nil // only a way to what changed below
			}
		case old.IsDir():
			// Another thing, or a new directory, stands where one was.
			if gone, err = deletedBelow(lower, true); err != nil {
				return nil, err
			}
			if info.IsDir() {
				gone = d.keepDeleted(gone, upper)
			}
		}
	}
	switch {
	case info.Mode().IsRegular():
		c.Upper, c.Size = upper, info.Size()
		if c.SHA256, err = hashFile(upper); err != nil {
			return nil, err
		}
	case info.Mode()&fs.ModeSymlink != 0:
		if c.Target, err = os.Readlink(upper); err != nil {
			return nil, err
		}
	}
	return append(gone, c), nil
}

// lstat looks at what a path was before. A link on the way to it is not followed:
// where the run put a directory in a link's place there was nothing of that name,
// and what lies behind the link is none of the run's business.
func (d overlayDirs) lstat(lower string) (fs.FileInfo, error) {
	if dir := filepath.Dir(lower); within(dir, d.Root) {
		if real, err := filepath.EvalSymlinks(dir); err == nil && real != dir {
			return nil, fs.ErrNotExist
		}
	}
	return os.Lstat(lower)
}

// keepDeleted drops from the files of a replaced directory those that the new
// directory has again; they are reported as changed when the walk meets them.
func (d overlayDirs) keepDeleted(gone []Change, upper string) []Change {
	var out []Change
	for _, g := range gone {
		rel, err := filepath.Rel(d.Root, g.Path)
		if err != nil {
			continue
		}
		again := filepath.Join(d.Upper, rel)
		if _, err := os.Lstat(again); err != nil && again != upper {
			out = append(out, g)
		}
	}
	return out
}

// deletedBelow lists a path that is gone and everything that was in it.
func deletedBelow(path string, existed bool) ([]Change, error) {
	if !existed {
		return nil, nil // made and deleted within the run
	}
	var out []Change
	err := filepath.WalkDir(path, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		out = append(out, Change{Path: p, Kind: Deleted})
		return nil
	})
	return out, err
}

// isWhiteout recognises the overlay's mark for "not there": device 0:0.
func isWhiteout(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode()&fs.ModeCharDevice != 0 && st.Rdev == 0
}

func isOpaque(path string) bool {
	var b [1]byte
	n, err := unix.Lgetxattr(path, opaque, b[:])
	return err == nil && n == 1 && b[0] == 'y'
}

func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
