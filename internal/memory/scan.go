package memory

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"passepartout/internal/org"
)

// Problem is something about the memex the user should know: a file that was not
// read, or was read but cannot be edited.
type Problem struct {
	Path string
	Err  error
}

// Limits and reasons.
var (
	// ErrTooLarge means the file exceeds Options.MaxFile and was not read.
	ErrTooLarge = errors.New("file too large")
	// ErrOutside means a link or path leads out of the memex; it is not followed.
	ErrOutside = errors.New("leads outside the memex")

	// errName means history could not say which file an edit was of.
	errName = errors.New("its name is not UTF-8")
)

// ignoreFile lists patterns of what not to read, one a line, as in path.Match;
// a pattern with a slash is matched against the whole path, else against each name.
const ignoreFile = ".memexignore"

// racyWindow is how close to now a modification time may lie before a second
// change could hide behind the same time.
const racyWindow = 50 * time.Millisecond

// listing is what a walk over the directory found.
type listing struct {
	files    map[string]fileStat
	problems []Problem
	dirs     []string // relative, for watching
	patterns []string
	root     string
	skip     string // absolute path of the state directory, if inside
	max      int64
	now      time.Time
}

// list walks the memex and returns every Org file with its stat.
func (s *Store) list(ctx context.Context) (*listing, error) {
	l := &listing{files: map[string]fileStat{}, root: s.root, skip: s.opt.State, max: s.opt.MaxFile, now: time.Now()}
	if b, err := readFile(filepath.Join(s.root, ignoreFile), s.opt.MaxFile); err == nil {
		for line := range strings.Lines(string(b)) {
			if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
				l.patterns = append(l.patterns, strings.TrimSuffix(line, "/"))
			}
		}
	}
	if fi, err := os.Stat(s.root); err != nil {
		return nil, fmt.Errorf("memex: %w", err)
	} else if !fi.IsDir() {
		return nil, fmt.Errorf("memex: want a directory, found a file: %s", s.root)
	}
	if err := l.walk(ctx, "."); err != nil {
		return nil, err
	}
	return l, nil
}

func (l *listing) walk(ctx context.Context, rel string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	abs := filepath.Join(l.root, filepath.FromSlash(rel))
	entries, err := os.ReadDir(abs)
	if err != nil {
		// A directory that vanished or became a file meanwhile is not an error of ours.
		if !errors.Is(err, fs.ErrNotExist) {
			l.problems = append(l.problems, Problem{rel, err})
		}
		return nil
	}
	l.dirs = append(l.dirs, rel)
	for _, e := range entries {
		p := path.Join(rel, e.Name())
		switch {
		case l.ignored(p):
		case e.IsDir():
			if filepath.Join(l.root, filepath.FromSlash(p)) != l.skip {
				if err := l.walk(ctx, p); err != nil {
					return err
				}
			}
		case e.Type()&fs.ModeSymlink != 0:
			l.link(p)
		case isOrg(p) && e.Type().IsRegular():
			l.file(p, e)
		}
	}
	return nil
}

// isOrg reports whether a name is one of the memex's: Org files and their archives,
// not editors' lock, backup and autosave files.
func isOrg(p string) bool {
	base := path.Base(p)
	return (strings.HasSuffix(base, ".org") || strings.HasSuffix(base, ".org_archive")) && base[0] != '#'
}

func (l *listing) ignored(p string) bool {
	base := path.Base(p)
	if strings.HasPrefix(base, ".") {
		return true
	}
	for _, pat := range l.patterns {
		name := base
		if strings.Contains(pat, "/") {
			name = p
		}
		if ok, err := path.Match(strings.TrimPrefix(pat, "/"), name); ok && err == nil {
			return true
		}
	}
	return false
}

// link says what was done about a symbolic link: inside the memex its target is
// read where it really is; outside it is not followed.
func (l *listing) link(p string) {
	real, err := filepath.EvalSymlinks(filepath.Join(l.root, filepath.FromSlash(p)))
	if err != nil {
		if isOrg(p) {
			l.problems = append(l.problems, Problem{p, err})
		}
		return
	}
	if within(l.root, real) {
		return
	}
	fi, err := os.Stat(real)
	if err == nil && (fi.IsDir() || isOrg(p)) {
		l.problems = append(l.problems, Problem{p, fmt.Errorf("link to %s: %w", real, ErrOutside)})
	}
}

func within(root, p string) bool {
	rel, err := filepath.Rel(root, p)
	return err == nil && filepath.IsLocal(rel)
}

func (l *listing) file(p string, e fs.DirEntry) {
	fi, err := e.Info()
	if err != nil {
		return // gone since
	}
	if fi.Size() > l.max {
		l.problems = append(l.problems, Problem{p, fmt.Errorf("%w: %d bytes, limit %d", ErrTooLarge, fi.Size(), l.max)})
		return
	}
	l.files[p] = statOf(fi, l.now)
}

func statOf(fi fs.FileInfo, now time.Time) fileStat {
	t := fi.ModTime()
	return fileStat{fi.Size(), t.UnixNano(), inodeOf(fi), now.Sub(t) < racyWindow}
}

// read builds the node of one file, known by hash if the index vouches for it.
func (s *Store) read(p string, st fileStat, known *hashes) (*node, error) {
	b, err := readFile(s.abs(p), s.opt.MaxFile)
	if err != nil {
		return nil, err
	}
	if int64(len(b)) != st.size {
		known, st.racy = nil, true // it is being written
	}
	return s.node(p, s.parse(p, b), st, known), nil
}

// node builds the node of a file and remembers how its setup files were.
func (s *Store) node(p string, of *org.File, st fileStat, known *hashes) *node {
	n := buildNode(p, of, st, known)
	n.setup = s.setupNow(n)
	return n
}

func (s *Store) abs(p string) string { return filepath.Join(s.root, filepath.FromSlash(p)) }

// parse outlines a file; its #+SETUPFILE lines may name files of the memex.
func (s *Store) parse(p string, b []byte) *org.File {
	return org.ParseWith(b, org.Options{Setup: func(name string) ([]byte, bool) {
		real, ok := s.setupPath(p, name)
		if !ok {
			return nil, false
		}
		b, err := readFile(real, s.opt.MaxFile)
		return b, err == nil
	}})
}

// setupPath is where a setup file really is, if it lies in the memex.
func (s *Store) setupPath(p, name string) (string, bool) {
	q := path.Join(path.Dir(p), name)
	if !filepath.IsLocal(filepath.FromSlash(q)) {
		return "", false
	}
	real, err := filepath.EvalSymlinks(s.abs(q))
	return real, err == nil && within(s.root, real)
}

// setupNow tells versions of a file's setup files apart: when they change, its tags
// and keywords do, though not one byte of it.
func (s *Store) setupNow(n *node) uint64 {
	if len(n.setups) == 0 {
		return 0
	}
	h := fnv.New64a()
	for _, name := range n.setups {
		fi, err := fs.FileInfo(nil), fs.ErrNotExist
		if real, ok := s.setupPath(n.path, name); ok {
			fi, err = os.Stat(real)
		}
		if err != nil {
			fmt.Fprint(h, "none;") // a hash never fails to write
			continue
		}
		fmt.Fprint(h, fi.Size(), fi.ModTime().UnixNano(), inodeOf(fi), ";")
	}
	return h.Sum64()
}

// setupChangedLocked are the files whose setup files are not what they were.
func (s *Store) setupChangedLocked() []string {
	var out []string
	for p := range s.View().Files() {
		if n := s.diskNode(p); n != nil && s.setupNow(n) != n.setup {
			out = append(out, p)
		}
	}
	return out
}

// readFile reads a file of at most so many bytes. What is no file, or became a link
// or a pipe since it was looked at, is not read: a pipe would be waited for.
func readFile(name string, most int64) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: want a regular file, found %s", name, fi.Mode().Type())
	}
	if fi.Size() > most {
		return nil, fmt.Errorf("%w: %d bytes, limit %d", ErrTooLarge, fi.Size(), most)
	}
	b := make([]byte, 0, fi.Size()+1)
	for {
		n, err := f.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case errors.Is(err, io.EOF):
			return b, nil
		case err != nil:
			return nil, err
		case int64(len(b)) > most:
			return nil, fmt.Errorf("%w: still growing, limit %d", ErrTooLarge, most)
		case len(b) == cap(b):
			b = slices.Grow(b, len(b))
		}
	}
}

// each calls fn for 0 ≤ i < n from a few goroutines and waits for them.
func each(ctx context.Context, n int, fn func(i int)) error {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				fn(i)
			}
		})
	}
	wg.Wait()
	return ctx.Err()
}
