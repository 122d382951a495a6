// Package durable writes files so that they outlive a power cut.
//
// [Replace] puts a whole new file in the place of another: whoever looks, now or after
// a crash, finds the one or the other. [PutIn] does so inside a root that no link leads
// out of. [MkdirAll] makes directories whose names are on
// the disk, and [SyncDir] does that for what was made, renamed or removed in one.
// [Hole] knows the traces of bytes that never reached the disk.
//
// The rule a newcomer will break: a file that was synced is lost all the same if its
// name was not, and so is everything below a directory whose name was not.
package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// MkdirAll makes a directory and those above it, as far as they are missing, for
// good.
func MkdirAll(dir string, mode fs.FileMode) error {
	if info, err := os.Stat(dir); err == nil {
		if !info.IsDir() {
			return fmt.Errorf("%s: want a directory, found %v", dir, info.Mode().Type())
		}
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := MkdirAll(parent, mode); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return SyncDir(parent)
}

// SyncDir makes the names in a directory durable.
func SyncDir(dir string) error { return SyncFile(dir) }

// SyncFile makes the bytes of a file durable that somebody has written.
func SyncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Replace puts a file with this text in the place of what is at path. On return it is
// there for good; after an error it is one of the two, and not for good.
func Replace(path string, text []byte, mode fs.FileMode) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil && mode.Perm() != 0o600 {
		err = f.Chmod(mode.Perm())
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return SyncDir(dir)
}

// PutIn is [Replace] for a name inside a root, with the directories it lacks. With fresh
// it puts the file there only where there is none.
func PutIn(root *os.Root, name string, text []byte, mode fs.FileMode, fresh bool) (err error) {
	dir := filepath.Dir(name)
	if err := mkdirIn(root, dir); err != nil {
		return err
	}
	tmp := filepath.Join(dir, "."+filepath.Base(name)+".new")
	f, err := root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode.Perm()) // one that a crash left is as good
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		if fresh {
			err = root.Link(tmp, name)
		} else {
			err = root.Rename(tmp, name)
		}
	}
	if err != nil || fresh {
		err = errors.Join(err, root.Remove(tmp))
	}
	if err != nil {
		return err
	}
	return syncIn(root, dir)
}

// mkdirIn makes a directory inside a root, for good.
func mkdirIn(root *os.Root, dir string) error {
	if info, err := root.Stat(dir); err == nil {
		if !info.IsDir() {
			return fmt.Errorf("%s: want a directory, found %v", dir, info.Mode().Type())
		}
		return nil
	}
	parent := filepath.Dir(dir)
	if err := mkdirIn(root, parent); err != nil {
		return err
	}
	if err := root.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncIn(root, parent)
}

func syncIn(root *os.Root, dir string) error {
	f, err := root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// sector is the most that a disk writes in one piece.
const sector = 512

// Hole reports whether one of the first n bytes of rest, the end of a file from off
// on, is a zero where something was written that never reached the disk: such zeros go
// on to the end of a sector or of the file. Text has none, so there a hole is what a
// power cut left of an append that nobody was told of.
func Hole(rest []byte, n int, off int64) bool {
	for i := 0; i < min(n, len(rest)); i++ {
		if rest[i] != 0 {
			continue
		}
		for i < len(rest) && rest[i] == 0 {
			i++
		}
		if i == len(rest) || (off+int64(i))%sector == 0 {
			return true
		}
	}
	return false
}
