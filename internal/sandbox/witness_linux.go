package sandbox

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
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
type witness interface {
	// opened ends the watch. Nothing of the command may be running any more: then all
	// it did is in the kernel's queue.
	opened() []string
}

// watch begins to look at files, on behalf of a command that may write below roots.
// Files that are not there are nobody's to open.
func watch(files, roots []string) witness {
	if len(files) == 0 {
		return &overhearer{fd: -1}
	}
	if l, err := listen(files, roots); err == nil {
		return l
	}
	return overhear(files, roots)
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

// sorted are the names that a witness gives, each once.
func sorted(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
