// Package label remembers where the text of a file came from, for files that have no
// place to say it themselves.
//
// What a turn writes carries the labels of what it has read. A note says so in its
// own tags and properties; a plain text file cannot, and a command writes whatever it
// likes. A [Store] keeps the labels of such files by path, in a file of its own, and
// whoever reads one of them later takes its labels over.
//
// What a command has written gets its labels when it ends. Until then whatever was
// changed since it began counts as private, from the moment on when it opened something
// private ([Store.Begin]).
//
// Labels are only ever added here. Taking one off is for a person: [Store.Clear].
//
// The rule a newcomer will break: a mark that cannot be kept on disk still counts
// until the program ends, and [Store.Mark] says so with an error. It must be told,
// not swallowed.
package label

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"passepartout/internal/proto"
	"passepartout/internal/record"
	"passepartout/internal/sexp"
)

// maxMarks is how many files are told apart. Beyond it every file counts as labelled.
const maxMarks = 200_000

// A Mark is a file and its labels.
type Mark struct {
	Path string
	proto.Taint
}

// Store keeps marks. It is safe for concurrent use. A nil Store knows of none and
// keeps none.
type Store struct {
	mu    sync.Mutex // guards what follows
	file  *record.File
	marks map[string]proto.Taint
	rest  proto.Taint // of all files that found no room
	runs  map[*run]bool
}

// A run is a command that has not ended.
type run struct {
	since time.Time
	reads func() bool // whether it has opened something private
}

// Open reads the marks at path and forgets those of files that are gone.
func Open(path string) (*Store, error) {
	s := &Store{marks: map[string]proto.Taint{}, runs: map[*run]bool{}}
	if err := record.Read(path, s.take); err != nil {
		return nil, fmt.Errorf("labels: %w", err)
	}
	for p := range s.marks {
		if _, err := os.Lstat(p); errors.Is(err, fs.ErrNotExist) {
			delete(s.marks, p)
		}
	}
	var records []sexp.Plist
	for _, m := range s.allLocked() {
		records = append(records, m.plist())
	}
	if s.rest != (proto.Taint{}) {
		records = append(records, Mark{Taint: s.rest}.plist())
	}
	var err error
	s.file, err = record.Create(path, records)
	return s, err
}

func (m Mark) plist() sexp.Plist {
	return sexp.P(sexp.Keyword("PATH"), m.Path, sexp.Keyword("PRIVATE"), m.Private, sexp.Keyword("UNTRUSTED"), m.Untrusted)
}

// take puts one record into memory. A mark replaces the one before it.
func (s *Store) take(p sexp.Plist) error {
	path, t := p.Text("PATH"), proto.Taint{Private: p.Flag("PRIVATE"), Untrusted: p.Flag("UNTRUSTED")}
	switch {
	case path == "":
		s.rest = t
	case !filepath.IsAbs(path):
		return fmt.Errorf("want an absolute path, found %q", path)
	case t == proto.Taint{}:
		delete(s.marks, path)
	default:
		s.marks[path] = t
	}
	return nil
}

// Close lets go of the file.
func (s *Store) Close() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.file.Close()
}

// Mark adds labels to files, by their absolute paths. When it returns without an
// error they outlive the machine.
func (s *Store) Mark(paths []string, t proto.Taint) error {
	if s == nil || len(paths) == 0 || t == (proto.Taint{}) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var records []sexp.Plist
	for _, p := range paths {
		p = filepath.Clean(p)
		old, known := s.marks[p]
		now := Mark{p, old.Join(t)}
		if now.Taint == old {
			continue
		}
		if !known && len(s.marks) >= maxMarks {
			if now = (Mark{Taint: s.rest.Join(t)}); now.Taint == s.rest {
				continue
			}
		}
		if err := s.take(now.plist()); err != nil {
			return err
		}
		records = append(records, now.plist())
	}
	if len(records) == 0 {
		return nil
	}
	if err := s.file.Append(true, records...); err != nil {
		return fmt.Errorf("labels are kept only until the daemon ends: %w", err)
	}
	return nil
}

// Of are the labels of a file. Whoever has read the file asks afterwards: what a command
// wrote meanwhile is then accounted for.
func (s *Store) Of(path string) proto.Taint {
	if s == nil {
		return proto.Taint{}
	}
	s.mu.Lock()
	t := s.marks[filepath.Clean(path)].Join(s.rest)
	runs := slices.Collect(maps.Keys(s.runs))
	s.mu.Unlock()
	if !t.Private && len(runs) > 0 {
		t.Private = writtenBy(path, runs)
	}
	return t
}

// clockSlack is how far the clock of a file system may be behind ours.
const clockSlack = 2 * time.Second

// writtenBy reports whether one of these commands may have written private text into a
// file. The time asked for is the one that no program can set.
func writtenBy(path string, runs []*run) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false // then there is nothing to read either
	}
	changed := changeTime(info)
	return slices.ContainsFunc(runs, func(r *run) bool {
		return !changed.Before(r.since.Add(-clockSlack)) && r.reads()
	})
}

// Begin says that a command is about to begin that may write; reads tells whether it
// has opened something private by now. End says that it has ended, and that what it
// changed is marked.
func (s *Store) Begin(reads func() bool) (end func()) {
	if s == nil {
		return func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &run{time.Now(), reads}
	s.runs[r] = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.runs, r)
	}
}

// Spreading reports whether a command is running that may be writing private text just
// now, to files nobody can know yet.
func (s *Store) Spreading() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	runs := slices.Collect(maps.Keys(s.runs))
	s.mu.Unlock()
	return slices.ContainsFunc(runs, func(r *run) bool { return r.reads() })
}

// Clear takes a file's labels off, and says what they were.
func (s *Store) Clear(path string) (proto.Taint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path = filepath.Clean(path)
	was, ok := s.marks[path]
	if !ok {
		return was, fmt.Errorf("%s has no label of its own", path)
	}
	if err := s.file.Append(true, Mark{Path: path}.plist()); err != nil {
		return was, err
	}
	delete(s.marks, path)
	return was, nil
}

// All lists the marks in order of path.
func (s *Store) All() []Mark {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.allLocked()
}

func (s *Store) allLocked() []Mark {
	out := make([]Mark, 0, len(s.marks))
	for p, t := range s.marks {
		out = append(out, Mark{p, t})
	}
	slices.SortFunc(out, func(a, b Mark) int { return cmp.Compare(a.Path, b.Path) })
	return out
}

// Private lists the files with private text in them.
func (s *Store) Private() []string {
	var out []string
	for _, m := range s.All() {
		if m.Private {
			out = append(out, m.Path)
		}
	}
	return out
}
