package sandbox

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// A witness sees which of some files are opened while a command runs, or get another
// name under which they could be opened later. It watches inodes and not names: a hard
// link, a bind mount, a file renamed first are all the same to it. It errs on the side
// of the command: what could not be watched, and whatever the command cannot be cleared
// of, counts as opened.
//
// Whom it can clear depends on the kernel. Fanotify tells an ordinary user which events
// are their own process's and of all others only that there was one; inotify tells not
// even that. See docs/decisions/020-who-opened-a-private-file.md.
type witness struct {
	ear ear

	mu     sync.Mutex // guards what follows
	fd     int        // the kernel's queue; negative when there is none, or none any more
	heard  []string   // opened, or not to be ruled out
	misses bool       // events were lost: nothing can be ruled out
}

// An ear understands the events of one of the kernel's interfaces.
type ear interface {
	// understand names the files that events are about; ok is false when one was
	// lost or means nothing known.
	understand(events []byte) (names []string, ok bool)
	// all are the files and directories that are listened to.
	all() []string
}

// watch begins to look at files, on behalf of a command that may write below roots.
// Files that are not there are nobody's to open.
func watch(files, roots []string) *witness {
	if len(files) == 0 {
		return &witness{fd: -1}
	}
	w, err := listen(files, roots)
	if err != nil {
		w = overhear(files, roots)
	}
	return w
}

// some reports whether anything was opened so far. It is safe for concurrent use, and
// what happened before the call is in the answer.
func (w *witness) some() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hearLocked()
	return len(w.heard) > 0 || w.misses
}

// opened ends the watch. Nothing of the command may be running any more: then all it
// did is in the kernel's queue.
func (w *witness) opened() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hearLocked()
	if w.fd >= 0 {
		unix.Close(w.fd)
		w.fd = -1
	}
	if w.misses {
		w.heard = append(w.heard, w.ear.all()...)
	}
	slices.Sort(w.heard)
	w.heard = slices.Compact(w.heard)
	return slices.Clone(w.heard)
}

// hearLocked empties the kernel's queue.
func (w *witness) hearLocked() {
	buf := make([]byte, 64<<10)
	for w.fd >= 0 && !w.misses {
		n, err := unix.Read(w.fd, buf)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return
		case err != nil || n <= 0:
			w.misses = true
			return
		}
		names, ok := w.ear.understand(buf[:n])
		w.heard, w.misses = append(w.heard, names...), !ok
		slices.Sort(w.heard)
		w.heard = slices.Compact(w.heard)
	}
}

// above are the directories that a command could give another name, and with them the
// files below. A root is none of them, since a mount cannot be moved. What cannot be
// found out about is unsure.
func above(files, roots []string) (dirs, unsure []string) {
	if len(roots) == 0 {
		return nil, nil
	}
	seen := map[string]bool{}
	for _, f := range files {
		dir := filepath.Dir(f)
		if seen[dir] {
			continue
		}
		seen[dir] = true
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				unsure = append(unsure, dir)
			}
			continue
		}
		for ; !slices.Contains(dirs, real) && belowOne(real, roots); real = filepath.Dir(real) {
			dirs = append(dirs, real)
		}
	}
	return dirs, unsure
}

func belowOne(path string, roots []string) bool {
	return slices.ContainsFunc(roots, func(r string) bool { return path != r && within(path, r) })
}
