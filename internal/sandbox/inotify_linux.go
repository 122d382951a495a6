package sandbox

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// An overhearer is the witness of kernels without fanotify: it cannot tell anybody from
// the command, this program included.
type overhearer struct {
	fd    int
	files map[int32]string // by watch
	dirs  map[int32]bool   // which of them are directories
	sure  []string         // opened, or not to be ruled out
}

func overhear(files, roots []string) *overhearer {
	w := &overhearer{files: make(map[int32]string, len(files)), dirs: map[int32]bool{}}
	var err error
	if w.fd, err = unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK); err != nil {
		w.fd, w.sure = -1, slices.Clone(files)
		return w
	}
	for _, f := range files {
		// Once is enough, and keeps the kernel's queue short.
		mask := uint32(unix.IN_OPEN | unix.IN_ONESHOT)
		if len(roots) > 0 {
			mask |= unix.IN_MOVE_SELF | unix.IN_ATTRIB // a new link is a change of attributes
		}
		info, err := os.Stat(f)
		isDir := err == nil && info.IsDir()
		if isDir {
			mask = unix.IN_OPEN // its own opening comes first, and is not meant
		}
		w.add(f, mask, isDir)
	}
	dirs, unsure := above(files, roots)
	w.sure = append(w.sure, unsure...)
	for _, dir := range dirs {
		w.add(dir, unix.IN_MOVE_SELF|unix.IN_MASK_ADD, true)
	}
	return w
}

func (w *overhearer) add(f string, mask uint32, isDir bool) {
	d, err := unix.InotifyAddWatch(w.fd, f, mask)
	switch {
	case err == nil && w.files[int32(d)] == "":
		w.files[int32(d)], w.dirs[int32(d)] = f, isDir
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		w.sure = append(w.sure, f)
	}
}

// opened implements [witness].
func (w *overhearer) opened() []string {
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
			return sorted(w.sure)
		}
		if !w.take(buf[:n]) {
			return w.everything()
		}
	}
}

// take reads events; ok is false when some were lost.
func (w *overhearer) take(events []byte) (ok bool) {
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

func (w *overhearer) everything() []string {
	for _, f := range w.files {
		w.sure = append(w.sure, f)
	}
	return sorted(w.sure)
}
