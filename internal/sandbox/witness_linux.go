package sandbox

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// A witness sees which of some files are opened while a command runs, or get another
// name under which they could be opened later. It watches inodes and not names: a hard
// link, a bind mount, a file renamed first are all the same to it. It cannot tell the command from anybody else, and errs on the side of
// the command: what could not be watched counts as opened.
type witness struct {
	fd    int
	files map[int32]string // by watch
	dirs  map[int32]bool   // which of them are directories

	parents map[string]bool // of the files
	sure    []string        // opened, or not to be ruled out
}

// watch begins to look. Files that are not there are nobody's to open.
func watch(files []string) *witness {
	w := &witness{fd: -1, files: make(map[int32]string, len(files)), dirs: map[int32]bool{}, parents: map[string]bool{}}
	if len(files) == 0 {
		return w
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		w.sure = slices.Clone(files)
		return w
	}
	w.fd = fd
	for _, f := range files {
		// A new link is a change of the file's attributes. Once is enough, and keeps
		// the kernel's queue short.
		mask := uint32(unix.IN_OPEN | unix.IN_MOVE_SELF | unix.IN_ATTRIB | unix.IN_ONESHOT)
		info, err := os.Stat(f)
		isDir := err == nil && info.IsDir()
		if isDir {
			mask = unix.IN_OPEN // its own opening comes first, and is not meant
		}
		d, err := unix.InotifyAddWatch(fd, f, mask)
		switch {
		case err == nil:
			w.files[int32(d)], w.dirs[int32(d)] = f, isDir
		case !errors.Is(err, fs.ErrNotExist):
			w.sure = append(w.sure, f)
			continue
		}
		w.above(f)
	}
	return w
}

// above sees whether a directory on the way to a file gets another name.
func (w *witness) above(f string) {
	for dir := filepath.Dir(f); dir != "/" && dir != "." && !w.parents[dir]; dir = filepath.Dir(dir) {
		w.parents[dir] = true
		d, err := unix.InotifyAddWatch(w.fd, dir, unix.IN_MOVE_SELF|unix.IN_MASK_ADD)
		if err == nil && w.files[int32(d)] == "" {
			w.files[int32(d)], w.dirs[int32(d)] = dir, true
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			w.sure = append(w.sure, dir)
		}
	}
}

// opened ends the watch. Nothing of the command may be running any more: then all
// it did is in the queue.
func (w *witness) opened() []string {
	if w.fd < 0 {
		return w.sure
	}
	defer unix.Close(w.fd)
	buf := make([]byte, 64<<10)
	for {
		n, err := unix.Read(w.fd, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil && !errors.Is(err, unix.EAGAIN) {
			return w.everything()
		}
		if n <= 0 {
			slices.Sort(w.sure)
			return slices.Compact(w.sure)
		}
		if !w.take(buf[:n]) {
			return w.everything()
		}
	}
}

// take reads events; ok is false when some were lost.
func (w *witness) take(events []byte) (ok bool) {
	for len(events) >= unix.SizeofInotifyEvent {
		d := int32(binary.NativeEndian.Uint32(events))
		mask := binary.NativeEndian.Uint32(events[4:])
		name := binary.NativeEndian.Uint32(events[12:])
		if mask&unix.IN_Q_OVERFLOW != 0 {
			return false
		}
		f, known := w.files[d]
		inside := name > 0 && mask&unix.IN_ISDIR == 0 && mask&unix.IN_OPEN != 0
		meant := mask&(unix.IN_OPEN|unix.IN_ATTRIB) != 0 && !w.dirs[d] || inside || mask&unix.IN_MOVE_SELF != 0
		if known && meant {
			w.sure = append(w.sure, f)
		}
		events = events[min(len(events), unix.SizeofInotifyEvent+int(name)):]
	}
	return true
}

func (w *witness) everything() []string {
	for _, f := range w.files {
		w.sure = append(w.sure, f)
	}
	slices.Sort(w.sure)
	return slices.Compact(w.sure)
}
