package undo

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Capture is the state of a scope before a change. It is used by one goroutine
// and ends with Commit or Discard.
type Capture struct {
	store    *Store
	id       uint64
	manifest manifest
}

// manifest is a capture as it waits on disk.
type manifest struct {
	Label, Group string
	At           time.Time
	Scopes       []Scope
	// Before has an image for each path of each scope.
	Before []map[string]Image
}

// Begin captures the scopes. When it returns, what they hold is on disk, and
// the change may be made. Captures may overlap in time: what one of named paths
// records, one of whole directories leaves to it; else both record what happened to a
// path they share.
func (s *Store) Begin(label, group string, scopes ...Scope) (*Capture, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &Capture{store: s, id: s.next, manifest: manifest{Label: label, Group: group, At: s.opt.Now(), Scopes: scopes}}
	for _, sc := range scopes {
		if err := checkRoot(sc.Root); err != nil {
			return nil, err
		}
	}
	var err error
	if c.manifest.Before, err = s.scan(scopes, nil); err != nil {
		return nil, fmt.Errorf("capturing: %w", err)
	}
	if err := s.flush(); err != nil {
		return nil, fmt.Errorf("undo store: %w", err)
	}
	if err := writeRecord(s.pendingPath(c.id), c.manifest); err != nil {
		return nil, fmt.Errorf("undo store: %w", err)
	}
	s.next++
	s.open[c.id] = true
	return c, nil
}

func checkRoot(root string) error {
	if !filepath.IsAbs(root) || filepath.Clean(root) != root {
		return fmt.Errorf("scope: wanted an absolute, clean root, got %q", root)
	}
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		return fmt.Errorf("scope: %w", err)
	}
	if real != root {
		return fmt.Errorf("scope: root %s goes through a symbolic link; its real name is %s", root, real)
	}
	return nil
}

// scan reads the scopes. With before given, files that were not kept then are
// not kept now either, and contents equal to those before are not read twice.
func (s *Store) scan(scopes []Scope, before []map[string]Image) ([]map[string]Image, error) {
	budget := &budget{paths: s.opt.MaxPaths, bytes: s.opt.MaxBytes}
	var out []map[string]Image
	for i, sc := range scopes {
		root, err := os.OpenRoot(sc.Root)
		if err != nil {
			return nil, err
		}
		var old map[string]Image
		if before != nil {
			old = before[i]
		}
		w := walk{store: s, root: root, budget: budget, images: map[string]Image{}}
		err = w.scope(sc, old)
		root.Close()
		if err != nil {
			return nil, err
		}
		out = append(out, w.images)
	}
	return out, nil
}

// budget is what one scan may take.
type budget struct {
	paths int
	bytes int64
}

// walk scans one scope.
type walk struct {
	store  *Store
	root   *os.Root
	budget *budget
	images map[string]Image
}

func (w *walk) scope(sc Scope, old map[string]Image) error {
	if len(sc.Paths) == 0 {
		return w.tree(".")
	}
	for _, p := range sc.Paths {
		if !filepath.IsLocal(p) {
			return fmt.Errorf("scope: %q leaves %s", p, sc.Root)
		}
		if err := w.withParents(filepath.Clean(p)); err != nil {
			return err
		}
	}
	for p := range old { // what was there before and may be gone
		if _, ok := w.images[p]; !ok {
			if err := w.add(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// withParents also looks at the directories on the way, which the change may
// make, and at everything below.
func (w *walk) withParents(p string) error {
	for d := filepath.Dir(p); d != "."; d = filepath.Dir(d) {
		if err := w.add(d); err != nil {
			return err
		}
		if w.images[d].Kind == Link {
			return fmt.Errorf("scope: %s goes through the symbolic link %s", p, d)
		}
	}
	return w.tree(p)
}

// tree scans p and what lies below it.
func (w *walk) tree(p string) error {
	if w.skip(p) {
		return nil
	}
	if err := w.add(p); err != nil {
		return err
	}
	if w.images[p].Kind != Dir {
		return nil
	}
	list, err := fs.ReadDir(w.root.FS(), filepath.ToSlash(p))
	if errors.Is(err, fs.ErrPermission) {
		return w.unlisted(p)
	}
	if err != nil && !absent(err) { // it may be gone by now
		return err
	}
	for _, e := range list {
		err := w.tree(filepath.Join(p, e.Name()))
		if errors.Is(err, fs.ErrPermission) {
			return w.unlisted(p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unlisted notes a directory that cannot be looked into.
func (w *walk) unlisted(p string) error {
	info, err := w.root.Lstat(p)
	if err != nil {
		return err
	}
	w.images[p] = notKept(info)
	return nil
}

// skip leaves out what must not be read, and the store itself.
func (w *walk) skip(p string) bool {
	abs := filepath.Join(w.root.Name(), p)
	return abs == w.store.dir || strings.HasPrefix(abs, w.store.dir+"/") || w.store.opt.Skip != nil && w.store.opt.Skip(abs)
}

func (w *walk) add(p string) error {
	if _, ok := w.images[p]; ok || w.skip(p) {
		return nil
	}
	if w.budget.paths--; w.budget.paths < 0 {
		return fmt.Errorf("%s: more than %d paths", w.root.Name(), w.store.opt.MaxPaths)
	}
	info, err := w.root.Lstat(p)
	if err == nil && info.Mode().IsRegular() && info.Size() > w.budget.bytes {
		w.images[p] = notKept(info)
		return nil
	}
	im, err := w.store.image(w.root, p, true)
	if err != nil {
		return err
	}
	w.budget.bytes -= im.Size
	w.images[p] = im
	return nil
}

// A Claim reports whether a change is somebody else's, who remembers it too: texts
// are the file's before and after, nil where there was none.
type Claim func(abs string, texts func() (before, after []byte, err error)) bool

// Commit compares the scopes with how they were and keeps what changed and nobody
// claims. When nothing did, the entry has ID 0 and is not remembered.
func (c *Capture) Commit(claims ...Claim) (Entry, error) {
	s := c.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open[c.id] {
		return Entry{}, fmt.Errorf("capture %d has already ended", c.id)
	}
	return c.commitLocked(false, claims)
}

func (c *Capture) commitLocked(interrupted bool, claims []Claim) (Entry, error) {
	s := c.store
	after, err := s.scan(c.manifest.Scopes, c.manifest.Before)
	if err != nil {
		return Entry{}, fmt.Errorf("entry %d: %w", c.id, err)
	}
	e := Entry{ID: c.id, Label: c.manifest.Label, Group: c.manifest.Group, At: c.manifest.At, Interrupted: interrupted}
	for i, sc := range c.manifest.Scopes {
		e.compare(sc.Root, c.manifest.Before[i], after[i])
	}
	if err := s.flush(); err != nil {
		return Entry{}, fmt.Errorf("undo store: %w", err)
	}
	e.named = !slices.ContainsFunc(c.manifest.Scopes, func(sc Scope) bool { return len(sc.Paths) == 0 })
	e.Changes = slices.DeleteFunc(e.Changes, func(ch Change) bool {
		return !e.named && s.recordedSince(c.id, ch) || s.claimed(ch, claims)
	})
	if len(e.Changes) == 0 && len(e.Lost) == 0 {
		c.endLocked()
		return Entry{}, nil
	}
	if err := writeRecord(s.entryPath(e.ID), e); err != nil {
		return Entry{}, fmt.Errorf("undo store: %w", err)
	}
	s.entries[e.ID] = &e
	c.endLocked()
	return e, s.pruneLocked()
}

// recordedSince reports whether captures of named paths, begun after the given one,
// account for a change.
func (s *Store) recordedSince(id uint64, c Change) bool {
	at := c.Before
	for n := id + 1; n < s.next; n++ {
		e := s.entries[n]
		if e == nil || !e.named {
			continue
		}
		for _, o := range e.Changes {
			if o.Abs() == c.Abs() && o.Before == at {
				at = o.After
			}
		}
	}
	return at == c.After
}

// claimed reports whether somebody else remembers a change of a file.
func (s *Store) claimed(c Change, claims []Claim) bool {
	if !c.Before.isText() || !c.After.isText() || c.Before.Kind == c.After.Kind && c.Before.Mode != c.After.Mode {
		return false // no text says who did it
	}
	texts := func() (before, after []byte, err error) {
		before, err1 := s.text(c.Before)
		after, err2 := s.text(c.After)
		return before, after, errors.Join(err1, err2)
	}
	return slices.ContainsFunc(claims, func(claim Claim) bool { return claim != nil && claim(c.Abs(), texts) })
}

// isText reports whether an image is all there is to know of a file.
func (im Image) isText() bool { return im.Kind == File || im.Kind == Absent }

// text is what a file has in an image, nil where there is none.
func (s *Store) text(im Image) ([]byte, error) {
	if im.Kind == Absent {
		return nil, nil
	}
	return os.ReadFile(s.blobPath(im.Blob))
}

// compare adds what differs below root.
func (e *Entry) compare(root string, before, after map[string]Image) {
	paths := maps.Clone(before)
	maps.Copy(paths, after)
	for _, p := range slices.Sorted(maps.Keys(paths)) {
		b, ok := before[p]
		if !ok {
			b = Image{Kind: Absent}
		}
		a, ok := after[p]
		if !ok {
			a = Image{Kind: Absent}
		}
		switch {
		case a == b:
		case b.Kind == Unknown || a.Kind == Unknown:
			e.Lost = append(e.Lost, filepath.Join(root, p))
		default:
			e.Changes = append(e.Changes, Change{Root: root, Path: p, Before: b, After: a})
		}
	}
}

// Discard ends the capture without an entry.
func (c *Capture) Discard() {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	c.endLocked()
}

func (c *Capture) endLocked() {
	delete(c.store.open, c.id)
	_ = os.Remove(c.store.pendingPath(c.id)) // if it stays, Open finds nothing changed
}

// pruneLocked forgets the oldest entries beyond the bounds, then the blobs
// nobody needs if there is not room for all.
func (s *Store) pruneLocked() error {
	ids := s.idsLocked()
	for len(ids) > s.opt.MaxEntries {
		if err := s.forgetLocked(ids[len(ids)-1]); err != nil {
			return err
		}
		ids = ids[:len(ids)-1]
	}
	sizes, total, err := s.blobs()
	if err != nil {
		return err
	}
	if total <= s.opt.MaxBytes || len(s.open) > 0 {
		return nil // an open capture still needs blobs that no entry names
	}
	for {
		total, err = s.sweepLocked(sizes, total)
		if err != nil || total <= s.opt.MaxBytes || len(ids) <= 1 {
			return err
		}
		if err := s.forgetLocked(ids[len(ids)-1]); err != nil {
			return err
		}
		ids = ids[:len(ids)-1]
	}
}

func (s *Store) forgetLocked(id uint64) error {
	delete(s.entries, id)
	if err := os.Remove(s.entryPath(id)); err != nil {
		return fmt.Errorf("undo store: %w", err)
	}
	return nil
}

func (s *Store) blobs() (map[string]int64, int64, error) {
	sizes, total := map[string]int64{}, int64(0)
	base := filepath.Join(s.dir, blobDir)
	err := filepath.WalkDir(base, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		sizes[filepath.Base(filepath.Dir(p))+d.Name()] = info.Size()
		total += info.Size()
		return nil
	})
	return sizes, total, err
}

// sweepLocked removes blobs that no entry names.
func (s *Store) sweepLocked(sizes map[string]int64, total int64) (int64, error) {
	used := map[string]bool{}
	for _, e := range s.entries {
		for _, c := range e.Changes {
			used[c.Before.Blob], used[c.After.Blob] = true, true
		}
	}
	for blob, size := range sizes {
		if used[blob] {
			continue
		}
		if err := os.Remove(s.blobPath(blob)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return total, fmt.Errorf("undo store: %w", err)
		}
		delete(sizes, blob)
		total -= size
	}
	return total, nil
}
