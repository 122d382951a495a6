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
	"sync/atomic"
)

// disk is everything that alters files. Reading goes to the operating system
// directly; writing goes through here, so that tests can pull the plug at any point.
type disk interface {
	// OpenFile opens for writing; flag is os.O_WRONLY with O_CREATE and O_EXCL or O_APPEND.
	OpenFile(name string, flag int, perm fs.FileMode) (diskFile, error)
	// Rename gives from the name to. With swap the two files exchange their
	// names, so that what was replaced can still be looked at; errNoSwap if the
	// system cannot.
	Rename(from, to string, swap bool) error
	Remove(name string) error
	// SyncDir makes creations, renames and removals in dir durable.
	SyncDir(dir string) error
}

type diskFile interface {
	io.Writer
	Sync() error
	Close() error
}

var errNoSwap = errors.New("exchanging names is not supported here")

// osDisk is the real one.
type osDisk struct{}

func (osDisk) OpenFile(name string, flag int, perm fs.FileMode) (diskFile, error) {
	return os.OpenFile(name, flag, perm)
}

func (osDisk) Rename(from, to string, swap bool) error {
	if swap {
		return swapNames(from, to)
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

// replace brings a file from one content to another: never a moment without one of
// the two under its name, durable when it returns, compared after the fact.
// A nil before means the file must not exist; a nil after removes it.
func replace(d disk, name string, before, after []byte) error {
	if after == nil {
		return removeFile(d, name, before)
	}
	dir := filepath.Dir(name)
	mode := fs.FileMode(newFileMode)
	if fi, err := os.Stat(name); err == nil {
		mode = fi.Mode().Perm()
	}
	if before == nil {
		if err := makeDirs(d, dir); err != nil {
			return err
		}
	}
	tmp, err := writeTemp(d, name, after, mode)
	if err != nil {
		return err
	}
	if err := install(d, tmp, name, before); err != nil {
		return err
	}
	got, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	if !bytes.Equal(got, after) {
		return fmt.Errorf("read back: want %d bytes as written, found %d others: %w", len(after), len(got), errRaced)
	}
	return nil
}

var tempCount atomic.Uint64

// tempName is a name in the same directory that no scan looks at.
func tempName(name string) string {
	n := strconv.Itoa(os.Getpid()) + "-" + strconv.FormatUint(tempCount.Add(1), 10)
	return filepath.Join(filepath.Dir(name), tempPrefix+filepath.Base(name)+"-"+n+tempSuffix)
}

// writeTemp writes a durable temporary file next to name.
func writeTemp(d disk, name string, b []byte, mode fs.FileMode) (string, error) {
	tmp := tempName(name)
	f, err := d.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return "", err
	}
	_, err = f.Write(b)
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

// install puts the temporary file in place of name, whose content must still be
// before. Exchanging the names shows what was really replaced, even if it was
// written a moment ago; where that is impossible the last look comes just before.
// The new name is durable when it returns.
func install(d disk, tmp, name string, before []byte) error {
	if before == nil {
		if _, err := os.Lstat(name); err == nil {
			return errors.Join(errRaced, d.Remove(tmp))
		}
		return renameDurably(d, tmp, name)
	}
	err := d.Rename(tmp, name, true)
	if errors.Is(err, errNoSwap) {
		if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, before) {
			return errors.Join(errRaced, err, d.Remove(tmp))
		}
		return renameDurably(d, tmp, name)
	}
	if err != nil {
		return errors.Join(err, d.Remove(tmp))
	}
	if got, err := os.ReadFile(tmp); err != nil || !bytes.Equal(got, before) {
		if err := d.Rename(tmp, name, true); err != nil {
			return fmt.Errorf("%w; the other version is in %s: %w", errRaced, tmp, err)
		}
		return errors.Join(errRaced, d.Remove(tmp))
	}
	// The exchange must be durable before the old text may go.
	if err := d.SyncDir(filepath.Dir(name)); err != nil {
		return err
	}
	return d.Remove(tmp)
}

func renameDurably(d disk, from, to string) error {
	if err := d.Rename(from, to, false); err != nil {
		return errors.Join(err, d.Remove(from))
	}
	return d.SyncDir(filepath.Dir(to))
}

func removeFile(d disk, name string, before []byte) error {
	got, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !bytes.Equal(got, before) {
		return errRaced
	}
	if err := d.Remove(name); err != nil {
		return err
	}
	return d.SyncDir(filepath.Dir(name))
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
	return renameDurably(d, tmp, name)
}
