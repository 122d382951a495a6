package sandbox

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// An overhearer is the ear for kernels without fanotify: it cannot tell anybody from
// the command, this program included.
type overhearer struct {
	files map[int32]string // by watch
	dirs  map[int32]bool   // which of them are directories
}

func overhear(files, roots []string) *witness {
	o := &overhearer{files: make(map[int32]string, len(files)), dirs: map[int32]bool{}}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return &witness{ear: o, fd: -1, heard: slices.Clone(files)}
	}
	w := &witness{ear: o, fd: fd}
	add := func(f string, mask uint32, isDir bool) {
		d, err := unix.InotifyAddWatch(fd, f, mask)
		switch {
		case err == nil && o.files[int32(d)] == "":
			o.files[int32(d)], o.dirs[int32(d)] = f, isDir
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			w.heard = append(w.heard, f)
		}
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
		add(f, mask, isDir)
	}
	dirs, unsure := above(files, roots)
	w.heard = append(w.heard, unsure...)
	for _, dir := range dirs {
		add(dir, unix.IN_MOVE_SELF|unix.IN_MASK_ADD, true)
	}
	return w
}

// understand implements [ear].
func (o *overhearer) understand(events []byte) (names []string, ok bool) {
	for len(events) >= unix.SizeofInotifyEvent {
		d := int32(binary.NativeEndian.Uint32(events))
		mask := binary.NativeEndian.Uint32(events[4:])
		name := binary.NativeEndian.Uint32(events[12:])
		if mask&unix.IN_Q_OVERFLOW != 0 {
			return names, false
		}
		f, known := o.files[d]
		inside := name > 0 && mask&unix.IN_ISDIR == 0 && mask&unix.IN_OPEN != 0
		meant := mask&(unix.IN_OPEN|unix.IN_ATTRIB) != 0 && !o.dirs[d] || inside || mask&unix.IN_MOVE_SELF != 0
		if known && meant {
			names = append(names, f)
		}
		events = events[min(len(events), unix.SizeofInotifyEvent+int(name)):]
	}
	return names, true
}

// all implements [ear].
func (o *overhearer) all() []string { return slices.Collect(maps.Values(o.files)) }
