package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// A listener is an ear that knows what this program did itself. Everybody else is
// the same to it: whose event it was the kernel tells the privileged only.
//
// Events carry the handle of a file and not its name. Only what is watched makes any, so
// one with a handle nobody knows is held against every file.
type listener struct {
	fd    int
	files map[string]string // by handle
	dirs  map[string]string // watched for what is in them, by handle
	ways  map[string]string // watched for being moved, by handle

	unsure []string // could not be marked
}

// listen fails where the kernel (before 5.13), its settings or the file system cannot
// do it.
func listen(files, roots []string) (*witness, error) {
	fd, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF|unix.FAN_REPORT_FID|unix.FAN_REPORT_DIR_FID|unix.FAN_CLOEXEC|unix.FAN_NONBLOCK, unix.O_RDONLY)
	if err != nil {
		return nil, fmt.Errorf("fanotify: %w", err)
	}
	l := &listener{fd: fd, files: make(map[string]string, len(files)), dirs: map[string]string{}, ways: map[string]string{}}
	if err := l.markAll(files, roots); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &witness{ear: l, fd: fd, heard: l.unsure}, nil
}

func (l *listener) markAll(files, roots []string) error {
	moves := uint64(0)
	if len(roots) > 0 {
		moves = unix.FAN_MOVE_SELF | unix.FAN_ATTRIB // a new link is a change of attributes
	}
	for _, f := range files {
		if err := l.mark(f, moves); err != nil {
			return err
		}
	}
	dirs, unsure := above(files, roots)
	l.unsure = append(l.unsure, unsure...)
	for _, d := range dirs {
		if err := l.add(d, l.ways, unix.FAN_MOVE_SELF|unix.FAN_ONDIR); err != nil {
			return err
		}
	}
	return nil
}

func (l *listener) mark(f string, moves uint64) error {
	if info, err := os.Stat(f); err == nil && info.IsDir() {
		return l.add(f, l.dirs, unix.FAN_OPEN|unix.FAN_EVENT_ON_CHILD)
	}
	return l.add(f, l.files, unix.FAN_OPEN|moves)
}

// add marks what has the name now, and remembers it by the handle of that very inode:
// an editor may put another file in its place meanwhile.
func (l *listener) add(name string, to map[string]string, mask uint64) error {
	fd, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		l.unsure = append(l.unsure, name)
		return nil
	}
	defer unix.Close(fd)
	h, err := handleOf(fd)
	if err != nil {
		return fmt.Errorf("handle of %s: %w", name, err)
	}
	err = unix.FanotifyMark(l.fd, unix.FAN_MARK_ADD, mask, unix.AT_FDCWD, fdPath(fd))
	if errors.Is(err, fs.ErrPermission) {
		l.unsure = append(l.unsure, name)
		return nil
	}
	if err != nil {
		return fmt.Errorf("fanotify mark on %s: %w", name, err)
	}
	to[h] = name
	return nil
}

// handleOnly asks for a handle that need not be good for opening, which more file
// systems have (AT_HANDLE_FID, Linux 6.5).
const handleOnly = unix.AT_REMOVEDIR

// handleOf is the handle of an open file, with its type in front.
func handleOf(fd int) (string, error) {
	h, _, err := unix.NameToHandleAt(fd, "", unix.AT_EMPTY_PATH|handleOnly)
	if errors.Is(err, unix.EINVAL) {
		h, _, err = unix.NameToHandleAt(fd, "", unix.AT_EMPTY_PATH)
	}
	if err != nil {
		return "", err
	}
	return string(binary.NativeEndian.AppendUint32(nil, uint32(h.Type()))) + string(h.Bytes()), nil
}

// Sizes of what the kernel writes: struct fanotify_event_metadata, and of an
// fanotify_event_info_fid all that is in front of the handle's bytes.
const (
	fanEvent  = 24
	fanHandle = 20
)

// understand implements [ear].
func (l *listener) understand(events []byte) (names []string, ok bool) {
	for len(events) > 0 {
		if len(events) < fanEvent {
			return names, false
		}
		size, header := binary.NativeEndian.Uint32(events), binary.NativeEndian.Uint16(events[6:])
		if events[4] != unix.FANOTIFY_METADATA_VERSION || header < fanEvent || size < uint32(header) || int(size) > len(events) {
			return names, false
		}
		mask, pid := binary.NativeEndian.Uint64(events[8:]), int32(binary.NativeEndian.Uint32(events[20:]))
		if mask&unix.FAN_Q_OVERFLOW != 0 {
			return names, false
		}
		if int(pid) != os.Getpid() {
			found, ok := l.subject(mask, events[header:size])
			if !ok {
				return names, false
			}
			names = append(names, found...)
		}
		events = events[size:]
	}
	return names, true
}

// subject finds what an event is about; ok is false when that is nothing known.
func (l *listener) subject(mask uint64, records []byte) (names []string, ok bool) {
	if mask&unix.FAN_ONDIR != 0 && mask&unix.FAN_MOVE_SELF == 0 {
		return nil, true // a directory was listed, which tells names only
	}
	for len(records) >= fanHandle {
		size := int(binary.NativeEndian.Uint16(records[2:]))
		n := int(binary.NativeEndian.Uint32(records[12:]))
		if size < fanHandle || size > len(records) || n < 0 || n > size-fanHandle {
			return nil, false
		}
		handle := records[16 : fanHandle+n]
		var f string
		switch records[0] {
		case unix.FAN_EVENT_INFO_TYPE_FID:
			f = l.files[string(handle)]
		case unix.FAN_EVENT_INFO_TYPE_DFID:
			if mask&unix.FAN_OPEN != 0 {
				f = l.dirs[string(handle)]
			}
		}
		if f == "" && mask&unix.FAN_MOVE_SELF != 0 {
			f = l.ways[string(handle)]
		}
		if f != "" {
			names = append(names, f)
		}
		records = records[size:]
	}
	return names, len(names) > 0
}

// all implements [ear].
func (l *listener) all() []string {
	return slices.Concat(slices.Collect(maps.Values(l.files)), slices.Collect(maps.Values(l.dirs)), slices.Collect(maps.Values(l.ways)))
}
