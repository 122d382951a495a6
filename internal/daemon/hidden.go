package daemon

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"passepartout/internal/place"
)

// Bounds of the look for credentials before a command runs.
const (
	secretDepth = 3      // directories in each other, below the home
	secretNames = 20_000 // looked at, those near the top first
)

// sealed is what no command may see: the daemon's own files, the policy, the
// socket, and whatever in the home holds credentials by its name. The gates refuse
// commands that name such a path; this is for programs that look for themselves.
func (d *Daemon) sealed() []string {
	out := append(d.hidden(), filepath.Join(d.s.MemexDir, "system"))
	if d.s.SocketPath != "" {
		out = append(out, d.s.SocketPath)
	}
	roots := d.writeRoots()
	layout := place.Layout{Home: d.s.Home, User: d.s.User, Own: d.hidden()}
	type dir struct {
		path string
		deep int
	}
	queue := []dir{{d.s.Home, 0}}
	for _, r := range roots {
		queue = append(queue, dir{r, secretDepth}) // a root is the user's own choice: only what lies on top
	}
	left := secretNames
	for len(queue) > 0 && left > 0 {
		at := queue[0]
		queue = queue[1:]
		entries, err := os.ReadDir(at.path)
		if err != nil {
			continue // what this user cannot list, a command cannot either
		}
		for _, e := range entries {
			left--
			p := filepath.Join(at.path, e.Name())
			switch kind := layout.Kind(p); {
			case kind == place.Secret || kind == place.Own:
				if real, ok := hideable(p, roots); ok {
					out = append(out, real)
				}
			case e.IsDir() && at.deep < secretDepth && (at.deep > 0 || strings.HasPrefix(e.Name(), ".")):
				queue = append(queue, dir{p, at.deep + 1})
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// hideable is the real name of a path that can be hidden: one that leads
// somewhere, and not to what commands are to work on.
func hideable(path string, roots []string) (string, bool) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", false
	}
	for _, r := range roots {
		if root, err := filepath.EvalSymlinks(r); err == nil && (root == real || strings.HasPrefix(root, real+"/")) {
			return "", false
		}
	}
	return real, true
}
