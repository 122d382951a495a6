package undo

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"passepartout/internal/durable"
)

// Kind is what stands at a path.
type Kind uint8

// Kinds. Unknown is something that is there and was not kept; all that can be
// said of it is whether its metadata changed.
const (
	Unknown Kind = iota
	Absent
	File
	Dir
	Link
)

// Image is the state of one path, without its name.
type Image struct {
	Kind Kind
	// Mode has the permission and set-id bits of a file or directory.
	Mode fs.FileMode
	// Blob is the SHA-256 of a file's content, in hexadecimal; of an Unknown
	// path, its metadata in a form that can be compared.
	Blob string
	Size int64
	// Target is where a link points.
	Target string
}

// modeBits are the bits that are kept.
const modeBits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// sighting is what a file's metadata was when its content was last read. The
// content need not be read again while they are equal and the change time lies
// safely before the reading: two writes within one tick of the kernel's clock
// leave the same time.
type sighting struct {
	Dev, Ino     uint64
	Size         int64
	Mtime, Ctime int64
	Mode         fs.FileMode
	Settled      bool
	Blob         string
}

// mostSeen bounds how many files' contents are known by their metadata.
const mostSeen = 400_000

// tick is longer than any file system clock's granularity that matters here.
const tick = 100 * time.Millisecond

func see(info fs.FileInfo) sighting {
	g := sighting{Size: info.Size(), Mode: info.Mode(), Mtime: info.ModTime().UnixNano()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		g.Dev, g.Ino, g.Ctime = uint64(st.Dev), st.Ino, changeTime(st)
	}
	return g
}

// same tells whether g still describes what was sighted as old.
func (g sighting) same(old sighting) bool {
	old.Settled, old.Blob = g.Settled, g.Blob
	return g == old
}

// known returns the blob of a file that need not be read.
func (s *Store) known(abs string, info fs.FileInfo) (string, bool) {
	old, ok := s.seen[abs]
	if !ok || !old.Settled || !see(info).same(old) {
		return "", false
	}
	return old.Blob, s.has(old.Blob)
}

// has reports whether a content is kept.
func (s *Store) has(blob string) bool {
	if _, ok := s.fresh[blob]; ok {
		return true
	}
	_, err := os.Stat(s.blobPath(blob))
	return err == nil
}

// absent tells that a path is not there, or cannot be, because something on
// the way is no directory.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// lstat is root.Lstat without following links on the way either: below a link
// there is nothing, whatever it points to.
func lstat(root *os.Root, rel string) (fs.FileInfo, error) {
	for i, c := range rel {
		if c != filepath.Separator {
			continue
		}
		info, err := root.Lstat(rel[:i])
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			return nil, fmt.Errorf("%s: %w", rel, syscall.ENOTDIR)
		}
	}
	return root.Lstat(rel)
}

// image reads the state of rel below root. With keep, contents go to the blob
// store; without, they are only hashed.
func (s *Store) image(root *os.Root, rel string, keep bool) (Image, error) {
	info, err := lstat(root, rel)
	if absent(err) {
		return Image{Kind: Absent}, nil
	}
	if err != nil {
		return Image{}, err
	}
	switch {
	case info.IsDir():
		return Image{Kind: Dir, Mode: info.Mode() & modeBits}, nil
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := root.Readlink(rel)
		return Image{Kind: Link, Target: target}, err
	case !info.Mode().IsRegular():
		return notKept(info), nil
	case keep && info.Size() > s.opt.MaxFile:
		return notKept(info), nil
	}
	im := Image{Kind: File, Mode: info.Mode() & modeBits, Size: info.Size()}
	abs := filepath.Join(root.Name(), rel)
	if blob, ok := s.known(abs, info); ok {
		im.Blob = blob
		return im, nil
	}
	im.Blob, im.Size, err = s.read(root, rel, abs, keep)
	if errors.Is(err, fs.ErrPermission) {
		return notKept(info), nil
	}
	return im, err
}

// notKept is the image of something whose content is not known.
func notKept(info fs.FileInfo) Image {
	g := see(info)
	return Image{Kind: Unknown, Blob: fmt.Sprintf("%d:%d:%d:%d:%d:%v", g.Dev, g.Ino, g.Size, g.Mtime, g.Ctime, g.Mode)}
}

// read hashes a file, and keeps it if asked. A file that changes while it is
// read is read again; one that never holds still is an error.
func (s *Store) read(root *os.Root, rel, abs string, keep bool) (blob string, size int64, err error) {
	const attempts = 5
	for range attempts {
		f, err := root.OpenFile(rel, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
		if err != nil {
			return "", 0, err
		}
		began := time.Now()
		before, err := f.Stat()
		if err != nil {
			f.Close()
			return "", 0, err
		}
		blob, size, err = s.digest(f, keep)
		after, serr := f.Stat()
		f.Close()
		if err = errors.Join(err, serr); err != nil {
			return "", 0, err
		}
		g := see(after)
		if !g.same(see(before)) || size != after.Size() {
			continue
		}
		if keep {
			g.Blob = blob
			g.Settled = time.Unix(0, g.Ctime).Before(began.Add(-tick))
			if len(s.seen) > mostSeen {
				clear(s.seen) // it only saves reading
			}
			s.seen[abs] = g
		}
		return blob, size, nil
	}
	return "", 0, fmt.Errorf("%s: changes faster than it can be read", abs)
}

func (s *Store) blobPath(blob string) string {
	if len(blob) < 3 {
		return filepath.Join(s.dir, blobDir, "none")
	}
	return filepath.Join(s.dir, blobDir, blob[:2], blob[2:])
}

// digest reads r to its end. With keep it becomes a blob once flush has run.
func (s *Store) digest(r io.Reader, keep bool) (string, int64, error) {
	h := sha256.New()
	if !keep {
		n, err := io.Copy(h, r)
		return hex.EncodeToString(h.Sum(nil)), n, err
	}
	tmp, err := os.CreateTemp(filepath.Join(s.dir, blobDir), ".new-")
	if err != nil {
		return "", 0, err
	}
	n, err := io.Copy(io.MultiWriter(tmp, h), r)
	err = errors.Join(err, tmp.Close())
	blob := hex.EncodeToString(h.Sum(nil))
	if err != nil || s.has(blob) {
		return blob, n, errors.Join(err, os.Remove(tmp.Name()))
	}
	s.fresh[blob] = tmp.Name()
	return blob, n, nil
}

// fewBlobs is how many new blobs are made durable one by one. Beyond it the
// whole file system is told to write, which costs what others have written
// too, but only once.
const fewBlobs = 32

// flush makes the new blobs durable. A blob gets its name only when its content is
// on the disk: what has the name is taken to be whole for ever after.
func (s *Store) flush() error {
	if len(s.fresh) == 0 {
		return nil
	}
	many := len(s.fresh) > fewBlobs
	sync, mkdir := durable.SyncFile, durable.MkdirAll
	if many {
		sync, mkdir = func(string) error { return nil }, os.MkdirAll
		if err := syncAll(s.dir); err != nil {
			return err
		}
	}
	for blob, tmp := range s.fresh {
		path := s.blobPath(blob)
		if err := errors.Join(sync(tmp), mkdir(filepath.Dir(path), 0o700)); err != nil {
			return err
		}
		if err := os.Rename(tmp, path); err != nil {
			return err
		}
		delete(s.fresh, blob)
		if err := sync(filepath.Dir(path)); err != nil {
			return err
		}
	}
	if many {
		return syncAll(s.dir)
	}
	return nil
}
