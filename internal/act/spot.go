package act

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// A spot is a name in a directory that is held open. It is reached from the root
// one name at a time without following a link: the gates judged a path that had
// none, so a link on the way was made after the ruling, and is an error.
//
// Everything is done relative to the open directory. Renaming a directory on the
// way, or putting a link in its place, changes nothing any more.
type spot struct {
	dir  int    // descriptor
	name string // "." for the directory itself
	path string // as judged, for messages
}

// errLinked means that a link appeared where the gates saw none.
var errLinked = errors.New("a symbolic link is there now that was not there when the path was judged")

// locate opens the directory around a judged path. With create it makes the
// directories that are missing.
func locate(path string, create bool) (spot, error) {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || strings.ContainsRune(path, 0) {
		return spot{}, fmt.Errorf("%q: want an absolute, clean path", path)
	}
	fd, err := unix.Open("/", dirFlags, 0)
	if err != nil {
		return spot{}, fmt.Errorf("/: %w", err)
	}
	elems := strings.Split(path[1:], "/")
	for _, e := range elems[:len(elems)-1] {
		next, err := enter(fd, e, create)
		_ = unix.Close(fd)
		if err != nil {
			return spot{}, plain(err, path)
		}
		fd = next
	}
	name := elems[len(elems)-1]
	if name == "" {
		name = "."
	}
	return spot{dir: fd, name: name, path: path}, nil
}

// enter opens one directory inside another.
func enter(fd int, name string, create bool) (int, error) {
	next, err := unix.Openat(fd, name, dirFlags, 0)
	if create && errors.Is(err, unix.ENOENT) {
		if err := unix.Mkdirat(fd, name, 0o755); err != nil && !errors.Is(err, unix.EEXIST) {
			return -1, err
		}
		next, err = unix.Openat(fd, name, dirFlags, 0)
	}
	if err != nil && linked(fd, name) {
		return -1, errLinked
	}
	return next, err
}

func linked(fd int, name string) bool {
	var st unix.Stat_t
	return unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK
}

// taken reports whether something has that name, were it a link.
func (s spot) taken() bool {
	var st unix.Stat_t
	return !errors.Is(unix.Fstatat(s.dir, s.name, &st, unix.AT_SYMLINK_NOFOLLOW), unix.ENOENT)
}

func (s spot) close() { _ = unix.Close(s.dir) }

// open opens what stands there for reading. It does not wait: a pipe without a
// writer must not hang the caller.
func (s spot) open() (*os.File, error) {
	fd, err := unix.Openat(s.dir, s.name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		if linked(s.dir, s.name) {
			err = errLinked
		}
		return nil, plain(err, s.path)
	}
	return os.NewFile(uintptr(fd), s.path), nil
}

// read returns a regular file's content and what it was when it was read.
func (s spot) read() ([]byte, os.FileInfo, error) {
	f, err := s.open()
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, nil, plain(err, s.path)
	}
	switch {
	case st.IsDir():
		return nil, nil, fmt.Errorf("%s is a directory: use list-directory", s.path)
	case !st.Mode().IsRegular():
		return nil, nil, fmt.Errorf("%s is not a regular file", s.path)
	case st.Size() > maxFile:
		return nil, nil, fmt.Errorf("%s has %d bytes: at most %d are read", s.path, st.Size(), maxFile)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil, nil, plain(err, s.path)
	}
	return data, st, nil
}

// write puts data there in one step: a reader sees the old file or the new one.
// was is the file it replaces, as [spot.read] returned it; nil means that there
// must be none. The mode of the old file is kept, and the result is read back.
func (s spot) write(data []byte, was os.FileInfo) error {
	mode := fs.FileMode(0o644)
	tmp, err := s.temporary(data, was)
	if err != nil {
		return plain(err, s.path)
	}
	defer func() { _ = unix.Unlinkat(s.dir, tmp, 0) }() // gone already after a rename
	if was == nil {
		err = unix.Linkat(s.dir, tmp, s.dir, s.name, 0) // fails when the name is taken
	} else {
		mode = was.Mode().Perm()
		if err = s.still(was); err == nil {
			err = unix.Renameat(s.dir, tmp, s.dir, s.name)
		}
	}
	if err != nil {
		return plain(err, s.path)
	}
	if err := s.sync(); err != nil {
		return plain(err, s.path)
	}
	back, now, err := s.read()
	switch {
	case err != nil:
		return fmt.Errorf("reading back: %w", err)
	case !bytes.Equal(back, data):
		return fmt.Errorf("%s reads back differently from what was written", s.path)
	case was != nil && now.Mode().Perm() != mode:
		return fmt.Errorf("%s has the mode %v: want %v", s.path, now.Mode().Perm(), mode)
	}
	return nil
}

// temporary writes data to a new file beside the place.
func (s spot) temporary(data []byte, was os.FileInfo) (string, error) {
	var b [6]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails
	name := ".passepartout-" + hex.EncodeToString(b[:])
	fd, err := unix.Openat(s.dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return "", err
	}
	f := os.NewFile(uintptr(fd), name)
	_, err = f.Write(data)
	if was != nil {
		err = errors.Join(err, f.Chmod(was.Mode().Perm()))
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		_ = unix.Unlinkat(s.dir, name, 0)
		return "", err
	}
	return name, nil
}

// still sees that the file is the one that was read.
func (s spot) still(was os.FileInfo) error {
	f, err := s.open()
	if err != nil {
		return err
	}
	defer f.Close()
	now, err := f.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(was, now) || now.Size() != was.Size() || !now.ModTime().Equal(was.ModTime()) {
		return errors.New("somebody changed it meanwhile: read it again")
	}
	return nil
}

// sync makes the directory's names durable.
func (s spot) sync() error {
	fd, err := unix.Openat(s.dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return errors.Join(unix.Fsync(fd), unix.Close(fd))
}

// plain says what is wrong in words, without the mechanics of descriptors.
func plain(err error, path string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist", path)
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s exists already", path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s may not be opened by this user", path)
	case errors.Is(err, unix.ENOTDIR):
		return fmt.Errorf("%s: something on the way to it is not a directory", path)
	}
	return fmt.Errorf("%s: %w", path, err)
}
