package memory

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
)

// disk is everything that alters files. Reading goes to the operating system
// directly; writing goes through here, so that tests can pull the plug at any point.
type disk interface {
	// OpenFile opens for writing; flag is os.O_WRONLY with O_CREATE and O_EXCL or O_APPEND.
	OpenFile(name string, flag int, perm fs.FileMode) (diskFile, error)
	// Rename gives from the name to.
	Rename(from, to string, how renaming) error
	Remove(name string) error
	// SyncDir makes creations, renames and removals in dir durable.
	SyncDir(dir string) error
}

// renaming is what becomes of a file that has the name already.
type renaming uint8

const (
	over  renaming = iota // it is replaced
	swap                  // the two exchange their names, so that it can still be looked at; errNoSwap if the system cannot
	fresh                 // it stays, and that is an error: fs.ErrExist
)

type diskFile interface {
	io.Writer
	Chmod(mode fs.FileMode) error
	Sync() error
	Close() error
}

var errNoSwap = errors.New("exchanging names is not supported here")

// osDisk is the real one.
type osDisk struct{}

func (osDisk) OpenFile(name string, flag int, perm fs.FileMode) (diskFile, error) {
	return os.OpenFile(name, flag, perm)
}

func (osDisk) Rename(from, to string, how renaming) error {
	switch how {
	case swap:
		return swapNames(from, to)
	case fresh:
		// A second name is the one thing every system refuses to give twice.
		if err := os.Link(from, to); err == nil {
			return os.Remove(from)
		} else if errors.Is(err, fs.ErrExist) {
			return err
		}
		if _, err := os.Lstat(to); err == nil { // no links here: the last look comes just before
			return &os.LinkError{Op: "rename", Old: from, New: to, Err: fs.ErrExist}
		}
	case over:
	}
	return os.Rename(from, to)
}

func (osDisk) Remove(name string) error { return os.Remove(name) }

func (osDisk) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// errRaced means somebody wrote the file between our reading and our replacing it.
// Nothing was lost: the other's text is in place again.
var errRaced = errors.New("file changed while it was being replaced")

const (
	tempPrefix  = ".passepartout-"
	tempSuffix  = ".tmp"
	newFileMode = 0o600
	newDirMode  = 0o700
)

// replacing is one file on its way from one content to another. There is never a
// moment without one of the two under its name. All that needs room on the disk is
// done by stage; install and revert only exchange names.
type replacing struct {
	d             disk
	name          string
	before, after []byte // nil: no such file
	mode          fs.FileMode
	tmp           string // the new text, then the old one; "" if there is none
}

// stage writes the new text beside the file.
func stage(d disk, name string, before, after []byte) (*replacing, error) {
	r := &replacing{d: d, name: name, before: before, after: after, mode: newFileMode}
	if after == nil {
		return r, nil
	}
	if fi, err := os.Lstat(name); err == nil {
		r.mode = fi.Mode().Perm()
	}
	if before == nil {
		if err := makeDirs(d, filepath.Dir(name)); err != nil {
			return nil, err
		}
	}
	var err error
	r.tmp, err = writeTemp(d, name, after, r.mode)
	return r, err
}

// install puts the new text in place of the file, whose content must still be
// before, makes that durable and reads it back. If it fails the file is as it was.
func (r *replacing) install() error {
	switch {
	case r.after == nil:
		return r.remove()
	case r.before == nil:
		err := r.rename(r.tmp, r.name, fresh)
		if errors.Is(err, fs.ErrExist) {
			return errRaced
		}
		if err != nil {
			return err
		}
		r.tmp = ""
	default:
		if err := r.exchange(); err != nil {
			return err
		}
	}
	got, err := os.ReadFile(r.name)
	if err == nil && !bytes.Equal(got, r.after) {
		err = fmt.Errorf("want %d bytes as written, found %d others: %w", len(r.after), len(got), errRaced)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("read back: %w", err), r.revert())
	}
	return nil
}

// exchange swaps the names of the old and the new text. That shows what was really
// replaced, even if it was written a moment ago; where it is impossible the last
// look comes just before.
func (r *replacing) exchange() error {
	err := r.d.Rename(r.tmp, r.name, swap)
	if errors.Is(err, errNoSwap) {
		if got, err := os.ReadFile(r.name); err != nil || !bytes.Equal(got, r.before) {
			return errors.Join(errRaced, err)
		}
		if err := r.rename(r.tmp, r.name, over); err != nil {
			return err
		}
		r.tmp = ""
		return nil
	}
	if err != nil {
		return err
	}
	if got, err := os.ReadFile(r.tmp); err != nil || !bytes.Equal(got, r.before) {
		if err := r.d.Rename(r.tmp, r.name, swap); err != nil {
			theirs := r.tmp
			r.tmp = "" // not ours to clear
			return fmt.Errorf("%w; the other version is in %s: %w", errRaced, theirs, err)
		}
		return errors.Join(errRaced, err)
	}
	return r.d.SyncDir(filepath.Dir(r.name))
}

// remove moves the file aside, so that it can come back. Only then can nobody write
// it under its name any more, and it is seen what was really removed.
func (r *replacing) remove() error {
	got, err := os.ReadFile(r.name)
	if err != nil || !bytes.Equal(got, r.before) {
		return errors.Join(errRaced, err)
	}
	tmp := tempName(r.name)
	if err := r.rename(r.name, tmp, over); err != nil {
		return err
	}
	if got, err := os.ReadFile(tmp); err != nil || !bytes.Equal(got, r.before) {
		if back := r.rename(tmp, r.name, fresh); back != nil {
			return fmt.Errorf("%w; the other version is in %s: %w", errRaced, tmp, back)
		}
		return errors.Join(errRaced, err)
	}
	r.tmp = tmp
	return nil
}

func (r *replacing) rename(from, to string, how renaming) error {
	if err := r.d.Rename(from, to, how); err != nil {
		return err
	}
	return r.d.SyncDir(filepath.Dir(to))
}

// revert undoes install. What somebody else wrote on top of ours stays.
func (r *replacing) revert() error {
	got, err := os.ReadFile(r.name)
	gone := errors.Is(err, fs.ErrNotExist)
	switch {
	case r.after == nil && gone:
		err = r.rename(r.tmp, r.name, fresh)
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		r.tmp = ""
		return err
	case r.after == nil || gone || err == nil && !bytes.Equal(got, r.after):
		return nil
	case err != nil:
		return err
	case r.before == nil:
		return errors.Join(r.d.Remove(r.name), r.d.SyncDir(filepath.Dir(r.name)))
	case r.tmp != "":
		return errors.Join(r.d.Rename(r.tmp, r.name, swap), r.d.SyncDir(filepath.Dir(r.name)))
	}
	// Names cannot be exchanged here: the old text has to be written again.
	tmp, err := writeTemp(r.d, r.name, r.before, r.mode)
	if err != nil {
		return err
	}
	return r.rename(tmp, r.name, over)
}

// clear removes the text that is not in use.
func (r *replacing) clear() error {
	if r.tmp == "" {
		return nil
	}
	return r.d.Remove(r.tmp)
}

// replace stages and installs one file.
func replace(d disk, name string, before, after []byte) error {
	r, err := stage(d, name, before, after)
	if err != nil {
		return err
	}
	return errors.Join(r.install(), r.clear())
}

var tempCount atomic.Uint64

// tempStem begins the names of a file's temporary files, however long its own is.
func tempStem(name string) string {
	const longest = 180 // of the 255 bytes a name may have
	base := filepath.Base(name)
	if len(base) > longest {
		base = strings.ToValidUTF8(base[:longest-16], "") + sumFile([]byte(base)).String()[:16]
	}
	return tempPrefix + base + "-"
}

// tempName is a name in the same directory that no scan looks at.
func tempName(name string) string {
	n := strconv.Itoa(os.Getpid()) + "-" + strconv.FormatUint(tempCount.Add(1), 10)
	return filepath.Join(filepath.Dir(name), tempStem(name)+n+tempSuffix)
}

// isTemp reports whether this process has given out a name by [tempName].
func isTemp(name string) bool {
	rest, ok := strings.CutPrefix(filepath.Base(name), tempPrefix)
	rest, ours := strings.CutSuffix(rest, tempSuffix)
	i := strings.LastIndexByte(rest, '-')
	n, err := strconv.ParseUint(rest[i+1:], 10, 64)
	return ok && ours && i > 0 && err == nil && n <= tempCount.Load() && strings.HasSuffix(rest[:i], "-"+strconv.Itoa(os.Getpid()))
}

// writeTemp writes a durable temporary file next to name.
func writeTemp(d disk, name string, b []byte, mode fs.FileMode) (string, error) {
	tmp := tempName(name)
	f, err := d.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return "", err
	}
	_, err = f.Write(b)
	if err == nil && mode != newFileMode {
		err = f.Chmod(mode) // what the umask took away
	}
	if err == nil {
		err = f.Sync()
	}
	if err2 := f.Close(); err == nil {
		err = err2
	}
	if err != nil {
		return "", errors.Join(err, d.Remove(tmp))
	}
	return tmp, nil
}

// makeDirs creates missing directories and makes their entries durable.
func makeDirs(d disk, dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := makeDirs(d, parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, newDirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return d.SyncDir(parent)
}

// overwrite replaces one of our own files, whose former content does not matter.
func overwrite(d disk, name string, b []byte) error {
	tmp, err := writeTemp(d, name, b, newFileMode)
	if err != nil {
		return err
	}
	if err := d.Rename(tmp, name, over); err != nil {
		return errors.Join(err, d.Remove(tmp))
	}
	return d.SyncDir(filepath.Dir(name))
}
