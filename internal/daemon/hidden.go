package daemon

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"passepartout/internal/place"
)

// Bounds of the look for credentials before a command runs.
const (
	secretNames = 300_000         // looked at, those near the top first
	secretMasks = 500             // hidden one by one; more of them take their directories along
	settled     = 2 * time.Second // after which a directory's time tells whether it changed
)

// stores are directories of downloaded packages: public, large, and full of keys
// that are part of somebody's tests.
var stores = []string{
	"node_modules", "site-packages", "dist-packages", "go/pkg/mod", ".cache/go-build", ".cargo/registry", ".cargo/git", ".rustup/toolchains",
	".npm/_cacache", ".pnpm-store", ".m2/repository", ".gradle/caches", ".nuget/packages", ".gem/ruby", ".git/objects",
}

// A sealer finds what commands must not see. It remembers directories that have not
// changed since, because it looks before every command.
type sealer struct {
	always []string // hidden whether or not they are there
	home   string
	roots  []string // which commands are to work on
	layout place.Layout
	most   int // names looked at

	mu   sync.Mutex // guards seen
	seen map[string]listing
}

// A listing is what matters of one directory.
type listing struct {
	changed time.Time
	names   int
	dirs    []string
	secrets []string
}

// newSealer hides the daemon's own files, the policy, the socket, and whatever in
// the home and the roots holds credentials by its name. The gates refuse commands
// that name such a path; this is for programs that look for themselves.
func (d *Daemon) newSealer() *sealer {
	s := &sealer{
		always: append(d.hidden(), filepath.Join(d.s.MemexDir, "system")),
		home:   d.s.Home, roots: d.writeRoots(), most: secretNames, seen: map[string]listing{},
		layout: d.layout(),
	}
	if d.s.SocketPath != "" {
		s.always = append(s.always, d.s.SocketPath)
	}
	return s
}

// paths is what no command may see.
func (s *sealer) paths() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var roots []string
	for _, r := range s.roots {
		if real, err := filepath.EvalSymlinks(r); err == nil {
			roots = append(roots, real)
		}
	}
	found := s.lookLocked(append(slices.Clone(roots), s.home), roots)
	out := append(slices.Clone(s.always), gather(found, s.home, roots)...)
	slices.Sort(out)
	return slices.Compact(out)
}

// lookLocked walks from the given directories, near ones first. A directory that
// it has no time for is taken for one that holds credentials, unless commands are to
// work in it.
func (s *sealer) lookLocked(queue, roots []string) []string {
	var out []string
	fresh := make(map[string]listing, len(s.seen))
	for left := s.most; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if _, twice := fresh[at]; twice {
			continue
		}
		if left <= 0 {
			if !touches(at, roots) {
				out = append(out, at)
			}
			continue
		}
		l := s.listLocked(at)
		fresh[at] = l
		left -= l.names
		for _, p := range l.secrets {
			if real, err := filepath.EvalSymlinks(p); err == nil && !covers(real, roots) {
				out = append(out, real)
			}
		}
		queue = append(queue, l.dirs...)
	}
	s.seen = fresh // what is gone is forgotten
	return out
}

// listLocked reads a directory, or remembers it.
func (s *sealer) listLocked(at string) listing {
	st, err := os.Lstat(at)
	if err != nil || !st.IsDir() {
		return listing{}
	}
	if l, ok := s.seen[at]; ok && l.changed.Equal(st.ModTime()) {
		return l
	}
	entries, err := os.ReadDir(at)
	if err != nil {
		return listing{} // what this user cannot list, a command cannot either
	}
	l := listing{names: len(entries)}
	for _, e := range entries {
		p := filepath.Join(at, e.Name())
		switch kind := s.layout.Kind(p); {
		case kind == place.Secret || kind == place.Own:
			l.secrets = append(l.secrets, p)
		case e.IsDir() && !isStore(p):
			l.dirs = append(l.dirs, p)
		}
	}
	if time.Since(st.ModTime()) > settled { // else it may change again and look the same
		l.changed = st.ModTime()
	}
	return l
}

func isStore(path string) bool {
	return slices.ContainsFunc(stores, func(s string) bool { return strings.HasSuffix(path, "/"+s) })
}

// gather keeps the number of masks bearable: where there are too many, the
// directories around the deepest are hidden instead, outside the roots.
func gather(found []string, home string, roots []string) []string {
	deep := 0
	for _, p := range found {
		deep = max(deep, strings.Count(p, "/"))
	}
	for ; len(found) > secretMasks && deep > strings.Count(home, "/")+1; deep-- {
		for i, p := range found {
			if strings.Count(p, "/") != deep {
				continue
			}
			if dir := filepath.Dir(p); !touches(dir, roots) && dir != home {
				found[i] = dir
			}
		}
		slices.Sort(found)
		found = slices.Compact(found)
	}
	return found
}

// covers reports whether a root lies in the path, which therefore cannot be hidden.
func covers(path string, roots []string) bool {
	return slices.ContainsFunc(roots, func(r string) bool { return inside(r, path) })
}

// touches reports whether commands are to work in the directory, or in a part of it.
func touches(dir string, roots []string) bool {
	return covers(dir, roots) || slices.ContainsFunc(roots, func(r string) bool { return inside(dir, r) })
}

func inside(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// own is what decides about the agent and records what it did: no action's business.
func (d *Daemon) own() []string {
	out := d.hidden()
	for _, f := range append([]string{plansFile, plansFile + "_archive"}, policyFiles...) {
		out = append(out, filepath.Join(d.s.MemexDir, filepath.FromSlash(f)))
	}
	return out
}
