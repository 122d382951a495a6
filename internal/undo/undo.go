// Package undo remembers what files looked like before they were changed, and
// puts them back byte for byte: contents, modes, symbolic links, deletions.
//
// A [Store] lives in one directory outside everything it watches. Before a
// change, [Store.Begin] takes a [Capture] of the paths that may be touched
// (one file for an editing tool, a whole root for a shell command); after it,
// [Capture.Commit] keeps an [Entry] with an [Image] before and after for each
// path that differs. [Store.Undo] and [Store.Redo] swap between the two.
//
// The rule a newcomer will break: nothing is restored over work the store does
// not know. Each path must look exactly as the entry left it, all paths are
// checked before the first is touched, and a difference is a [ConflictError],
// never an overwrite. Files are reached through os.Root, so a link that
// appeared in the meantime leads nowhere.
//
// Kept durable in this order: blobs, then the capture's manifest, then (by the
// caller) the change itself. A crash in between leaves a manifest, which Open
// turns into an entry; a crash in the middle of an undo is finished by Open.
// Not kept: owners, times, extended attributes, hard links between files, and
// anything that is neither file, directory nor link.
package undo

import (
	"bytes"
	"cmp"
	"encoding/gob"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"passepartout/internal/durable"
)

// ErrNone means that there is nothing to undo or redo.
var ErrNone = errors.New("nothing to undo or redo")

// ErrInUse means that another process has the store open.
var ErrInUse = errors.New("undo store in use")

// ConflictError lists paths that do not look as the entry left them. Nothing
// was changed; the caller should show the paths to a person.
type ConflictError struct {
	ID    uint64
	Paths []string
}

// Error names the first paths.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("entry %d: changed since: %s", e.ID, some(e.Paths))
}

// IncompleteError lists paths whose earlier state was not kept (too large,
// unreadable, or not a file). Nothing was changed; UndoKept restores the rest.
type IncompleteError struct {
	ID    uint64
	Paths []string
}

// Error names the first paths.
func (e *IncompleteError) Error() string {
	return fmt.Sprintf("entry %d: earlier state not kept: %s", e.ID, some(e.Paths))
}

func some(paths []string) string {
	const shown = 5
	if len(paths) <= shown {
		return strings.Join(paths, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(paths[:shown], ", "), len(paths)-shown)
}

// Options bounds a store. Zero fields mean the defaults.
type Options struct {
	// MaxFile is the largest file kept; default 64 MiB.
	MaxFile int64
	// MaxBytes is what all kept contents together may take; default 1 GiB.
	MaxBytes int64
	// MaxPaths is how many paths one capture may cover; default 200 000.
	MaxPaths int
	// MaxEntries is how many entries are remembered; default 1000.
	MaxEntries int
	// Skip tells which paths must not be read, such as a vault inside a
	// root. It gets absolute paths; a skipped directory is skipped whole.
	Skip func(path string) bool
	// Now is the clock; nil is the real one.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	o.MaxFile = cmp.Or(o.MaxFile, 64<<20)
	o.MaxBytes = cmp.Or(o.MaxBytes, 1<<30)
	o.MaxPaths = cmp.Or(o.MaxPaths, 200_000)
	o.MaxEntries = cmp.Or(o.MaxEntries, 1000)
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Scope is what a capture covers.
type Scope struct {
	// Root is an absolute path of a directory, without symbolic links.
	Root string
	// Paths are relative to Root; they need not exist. None means all of it.
	Paths []string
}

// Entry is one remembered change.
type Entry struct {
	ID uint64
	// Label is for people; Group ties together what one turn did.
	Label, Group string
	At           time.Time
	Changes      []Change
	// Lost lists absolute paths that changed but were not kept before.
	Lost []string
	// Undone tells that the paths now look as before.
	Undone bool
	// Interrupted marks an entry made by Open after a crash: its changes
	// may include what others did meanwhile.
	Interrupted bool

	named bool // its scopes name their paths, so that its changes are surely its own
}

// Change is one path and how it looked on either side.
type Change struct {
	Root, Path    string // Path is relative to Root
	Before, After Image
}

// Abs is the absolute path.
func (c Change) Abs() string { return filepath.Join(c.Root, c.Path) }

// Store is the memory. It is safe for concurrent use.
type Store struct {
	// constant after Open
	dir  string
	opt  Options
	lock *os.File

	mu      sync.Mutex // guards the rest, and everything on disk
	entries map[uint64]*Entry
	open    map[uint64]bool // captures begun by this process
	next    uint64
	seen    map[string]sighting // what is known of a file's content, by absolute path
	fresh   map[string]string   // blobs that are not yet durable, and where they are
}

// Open opens or makes the store in dir, an absolute path. Captures that a
// crash cut off become entries; an undo that was cut off is finished.
func Open(dir string, o Options) (*Store, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("undo store: wanted an absolute path, got %q", dir)
	}
	for _, sub := range []string{blobDir, entryDir, pendingDir} {
		if err := durable.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, fmt.Errorf("undo store: %w", err)
		}
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("undo store: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(real, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("undo store: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		return nil, fmt.Errorf("%w: %s: %w", ErrInUse, real, err)
	}
	s := &Store{
		dir: real, opt: o.withDefaults(), lock: lock, entries: map[uint64]*Entry{},
		open: map[uint64]bool{}, next: 1, seen: map[string]sighting{}, fresh: map[string]string{},
	}
	if err := s.load(); err != nil {
		lock.Close()
		return nil, err
	}
	return s, nil
}

// Close lets another process open the store.
func (s *Store) Close() error { return s.lock.Close() }

// Entries lists what is remembered, newest first.
func (s *Store) Entries() []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Entry
	for _, id := range s.idsLocked() {
		out = append(out, *s.entries[id])
	}
	return out
}

// idsLocked are the known entries, newest first.
func (s *Store) idsLocked() []uint64 {
	ids := slices.Sorted(maps.Keys(s.entries))
	slices.Reverse(ids)
	return ids
}

// Last finds the newest entry that can be undone (or, with undone set, the
// oldest of those undone last, which is the next to redo).
func (s *Store) Last(undone bool) (Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := s.idsLocked()
	if undone {
		// Undoing goes back in time, redoing forward again: the next to
		// redo is the oldest undone entry above the newest that stands.
		var found *Entry
		for _, id := range ids {
			if !s.entries[id].Undone {
				break
			}
			found = s.entries[id]
		}
		if found == nil {
			return Entry{}, ErrNone
		}
		return *found, nil
	}
	for _, id := range ids {
		if e := s.entries[id]; !e.Undone {
			return *e, nil
		}
	}
	return Entry{}, ErrNone
}

// Group lists the entries of one group, newest first: the order to undo in.
func (s *Store) Group(name string) []Entry {
	all := s.Entries()
	return slices.DeleteFunc(all, func(e Entry) bool { return e.Group != name })
}

// Names inside the store's directory.
const (
	blobDir    = "blobs"
	entryDir   = "entries"
	pendingDir = "pending"
	intentFile = "intent"
)

func (s *Store) entryPath(id uint64) string {
	return filepath.Join(s.dir, entryDir, strconv.FormatUint(id, 10))
}

func (s *Store) pendingPath(id uint64) string {
	return filepath.Join(s.dir, pendingDir, strconv.FormatUint(id, 10))
}

// tidy removes files that a crash kept from being renamed to their place.
func (s *Store) tidy() error {
	for _, sub := range []string{".", blobDir, entryDir, pendingDir} {
		list, err := os.ReadDir(filepath.Join(s.dir, sub))
		if err != nil {
			return err
		}
		for _, e := range list {
			if e.Type().IsRegular() && strings.HasPrefix(e.Name(), ".") {
				if err := os.Remove(filepath.Join(s.dir, sub, e.Name())); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// load reads the entries and repairs what a crash left.
func (s *Store) load() error {
	if err := s.tidy(); err != nil {
		return fmt.Errorf("undo store: %w", err)
	}
	for _, sub := range []string{entryDir, pendingDir} {
		list, err := os.ReadDir(filepath.Join(s.dir, sub))
		if err != nil {
			return fmt.Errorf("undo store: %w", err)
		}
		for _, e := range list {
			id, err := strconv.ParseUint(e.Name(), 10, 64)
			if err != nil {
				continue // not ours
			}
			s.next = max(s.next, id+1)
			if sub == pendingDir {
				continue
			}
			var entry Entry
			if err := readRecord(s.entryPath(id), &entry); err != nil {
				return fmt.Errorf("undo store: %w", err)
			}
			s.entries[id] = &entry
		}
	}
	if err := s.finishIntent(); err != nil {
		return err
	}
	return s.adoptPending()
}

// adoptPending makes entries of captures that never came to their end.
func (s *Store) adoptPending() error {
	list, err := os.ReadDir(filepath.Join(s.dir, pendingDir))
	if err != nil {
		return fmt.Errorf("undo store: %w", err)
	}
	for _, e := range list {
		id, err := strconv.ParseUint(e.Name(), 10, 64)
		if err != nil {
			continue // not ours
		}
		c := &Capture{store: s, id: id}
		if err := readRecord(s.pendingPath(id), &c.manifest); err != nil {
			return fmt.Errorf("undo store: interrupted capture: %w", err)
		}
		if _, known := s.entries[id]; known {
			_ = os.Remove(s.pendingPath(id)) // the entry was written, only this was left
			continue
		}
		if _, err := c.commitLocked(true, nil); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// readRecord reads what writeRecord wrote. Records are gob and not JSON: names
// of files are bytes, which need not be text.
func readRecord(path string, v any) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := gob.NewDecoder(f).Decode(v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// writeRecord replaces path in one step that survives a crash.
func writeRecord(path string, v any) error {
	var text bytes.Buffer
	if err := gob.NewEncoder(&text).Encode(v); err != nil {
		return err
	}
	return durable.Replace(path, text.Bytes(), 0o600)
}
