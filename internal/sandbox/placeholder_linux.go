package sandbox

import (
	"fmt"
	"os"
	"sync"
)

// A hidden path that does not exist has no place to mount a mask on, so an
// empty file (or directory, where more than the last name is missing) stands
// in for it during the run. Runs that overlap share it: removing a mount point
// from outside would take the other run's mask away with it.
var placeholders = struct {
	mu    sync.Mutex // guards users
	users map[string]int
}{users: map[string]int{}}

// takePlaceholders makes what the plan's masks stand on.
func (p *plan) takePlaceholders() (release func(), err error) {
	placeholders.mu.Lock()
	defer placeholders.mu.Unlock()
	var taken []string
	for _, path := range p.placeholders {
		if placeholders.users[path] == 0 {
			if err := makePlaceholder(path, p.maskIsDir(path)); err != nil {
				releasePlaceholdersLocked(taken)
				return nil, fmt.Errorf("%w: hiding %s before it exists: %w", ErrUnavailable, path, err)
			}
		}
		placeholders.users[path]++
		taken = append(taken, path)
	}
	return func() {
		placeholders.mu.Lock()
		defer placeholders.mu.Unlock()
		releasePlaceholdersLocked(taken)
	}, nil
}

func (p *plan) maskIsDir(path string) bool {
	for _, m := range p.Masks {
		if m.Path == path {
			return m.Dir
		}
	}
	return false
}

func makePlaceholder(path string, dir bool) error {
	if dir {
		return os.Mkdir(path, 0o700)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// releasePlaceholdersLocked removes what no run needs any more, and only while it is
// still empty: the owner of the path may have filled it meanwhile.
func releasePlaceholdersLocked(paths []string) {
	for _, path := range paths {
		placeholders.users[path]--
		if placeholders.users[path] > 0 {
			continue
		}
		delete(placeholders.users, path)
		info, err := os.Lstat(path)
		if err == nil && (info.IsDir() || info.Mode().IsRegular() && info.Size() == 0) {
			_ = os.Remove(path) // a directory that is not empty stays
		}
	}
}
