package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Options are what a store needs beside the directory. The zero value works: it
// keeps history in memory only and writes no index.
type Options struct {
	// State is the directory for history and index, in a directory of its own for
	// each memex. It is created if missing.
	State string
	// Now is the clock; time.Now if nil.
	Now func() time.Time
	// NewID makes an identifier for an object whose derived one would change
	// with the edit; a random UUID if nil.
	NewID func() string
	// Progress is called during the first scan with the files read so far.
	Progress func(done, total int)
	// PrivacyTags mark what must not leave the machine; "@personal" and
	// "personal" and "private" if nil.
	PrivacyTags []string
	// Secluded names files, relative to the memex, whose text is private whatever
	// their tags say. It is asked often and must not call the store. It may be nil.
	Secluded func(file string) bool
	// Still reports that files are not to be opened without need: those that only
	// may have changed are read later. It may be nil.
	Still func() bool
	// MaxFile is the size beyond which a file is not read; 64 MiB if zero.
	MaxFile int64
	// KeepHistory is how large the history may grow before old operations are
	// dropped at the next opening; 128 MiB if zero.
	KeepHistory int64
	// Changed is called after every change of the view, with the store locked: it
	// must neither block nor call the store. It may be nil.
	Changed func()
	// ReadOnly opens beside another process that writes: nothing is locked,
	// finished or recorded, and every edit is refused.
	ReadOnly bool

	disk disk
}

const (
	defaultMaxFile     = 64 << 20
	defaultKeepHistory = 128 << 20
)

// Store is an open memex. It is safe for concurrent use: views are read without
// any lock, writers wait for each other.
type Store struct {
	root  string
	state string // "" if nothing is kept
	opt   Options
	disk  disk

	view     atomic.Pointer[View]
	problems atomic.Pointer[[]Problem]

	mu       sync.Mutex // guards what follows, and publishing a view
	hist     *history
	overlays map[string]overlay
	unsaved  bool // the index on disk is behind
	closed   bool
	lock     *os.File
	watch    *watcher
	dirs     []string // of the last walk, relative

	watchProblem error
}

// Reasons for which a store cannot be written to.
var (
	// ErrClosed is returned by every method that writes after Close.
	ErrClosed = errors.New("memory is closed")
	// ErrReadOnly is returned by every method that writes to a store opened so.
	ErrReadOnly = errors.New("memory is open for reading only")
	// ErrLocked means another process, usually the daemon, has the state
	// directory; ask it, or open with ReadOnly.
	ErrLocked = errors.New("memory is in use by another process")
)

// stateName is the directory of a memex below Options.State: two memexes never
// share a history.
func stateName(root string) string { return sumFile([]byte(root)).String()[:16] }

// Open reads the memex in dir. If the last session was interrupted inside a
// transaction, it is finished or withdrawn first.
func Open(ctx context.Context, dir string, o Options) (*Store, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	root, err := filepath.Abs(dir)
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		return nil, fmt.Errorf("memex: %w", err)
	}
	s := &Store{root: root, opt: o, disk: o.disk, overlays: map[string]overlay{}}
	s.view.Store(&View{byPath: &pathIndex{map[string]int32{}}, ids: newIndex(), private: o.PrivacyTags, secluded: o.Secluded, now: o.Now})
	log := ""
	if o.State != "" {
		s.state = filepath.Join(o.State, stateName(root))
		log = filepath.Join(s.state, "history.log")
		if err := s.takeState(); err != nil {
			return nil, fmt.Errorf("state directory: %w", err)
		}
	}
	if err := s.start(ctx, log); err != nil {
		return nil, errors.Join(err, s.release())
	}
	return s, nil
}

// takeState makes and locks the state directory.
func (s *Store) takeState() (err error) {
	if s.opt.ReadOnly {
		return nil
	}
	if err := makeDirs(s.disk, s.state); err != nil {
		return err
	}
	s.lock, err = lockState(filepath.Join(s.state, "lock"))
	return err
}

func (s *Store) release() error {
	if s.lock == nil {
		return nil
	}
	f := s.lock
	s.lock = nil
	return f.Close()
}

// start reads history and files.
func (s *Store) start(ctx context.Context, log string) error {
	var err error
	if s.hist, err = openHistory(s.disk, log, s.opt.ReadOnly); err != nil {
		return err
	}
	var recovered []Problem
	if !s.opt.ReadOnly {
		if recovered, err = s.recover(); err != nil {
			return err
		}
	}
	return s.firstScan(ctx, recovered)
}

// writableLocked is nil, or why nothing may be written.
func (s *Store) writableLocked() error {
	switch {
	case s.closed:
		return ErrClosed
	case s.opt.ReadOnly:
		return ErrReadOnly
	}
	return nil
}

func (o *Options) complete() error {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = newUUID
	}
	if o.PrivacyTags == nil {
		o.PrivacyTags = []string{"@personal", "personal", "private"}
	}
	o.MaxFile = cmp.Or(o.MaxFile, defaultMaxFile)
	o.KeepHistory = cmp.Or(o.KeepHistory, defaultKeepHistory)
	if o.disk == nil {
		o.disk = osDisk{}
	}
	if o.State == "" {
		return nil
	}
	abs, err := filepath.Abs(o.State)
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	o.State = abs
	return nil
}

// View is the memex as it is now.
func (s *Store) View() *View { return s.view.Load() }

// Root is the absolute path of the memex.
func (s *Store) Root() string { return s.root }

// Problems are what the last scan could not read or follow, in path order.
func (s *Store) Problems() []Problem {
	if p := s.problems.Load(); p != nil {
		return slices.Clone(*p)
	}
	return nil
}

// Tags are the inherited tags of an object, file or directory of the current view;
// see [View.Tags]. Paths may be absolute.
func (s *Store) Tags(idOrPath string) []string {
	name, inside := s.relative(idOrPath)
	if !inside {
		return nil
	}
	return s.View().Tags(name)
}

func (s *Store) still() bool { return s.opt.Still != nil && s.opt.Still() }

// Private reports whether an object, file or directory carries a privacy tag; see
// [View.Private]. Paths may be absolute; one outside the memex carries no tags and
// is not private, as far as memory can tell.
func (s *Store) Private(idOrPath string) bool {
	name, inside := s.relative(idOrPath)
	return inside && s.View().Private(name)
}

// relative turns an absolute path into one of the memex; false if it lies outside.
// Links are followed, so that no other name of a file hides its tags.
func (s *Store) relative(name string) (string, bool) {
	if !filepath.IsAbs(name) {
		return name, true
	}
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real
	}
	if !within(s.root, name) {
		return "", false
	}
	rel, err := filepath.Rel(s.root, name)
	return filepath.ToSlash(rel), err == nil
}

// Close stops watching, saves the index and refuses further writes. Views stay usable.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	w := s.watch
	s.watch = nil
	s.mu.Unlock()
	if w != nil {
		w.stop()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.hist.pay(), s.saveIndexLocked(), s.release())
}

// Save writes the index if it is behind. Losing it loses nothing but time.
func (s *Store) Save() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.saveIndexLocked()
}

// firstScan fills the first view, taking hashes from the index where a file is unchanged.
func (s *Store) firstScan(ctx context.Context, found []Problem) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, err := s.list(ctx)
	if err != nil {
		return err
	}
	s.dirs = l.dirs
	ix, problem := s.loadIndex()
	if problem != nil {
		l.problems = append(l.problems, *problem)
	}
	paths := slices.Sorted(maps.Keys(l.files))
	nodes, problems, err := s.readAll(ctx, paths, l.files, ix)
	if err != nil {
		return err
	}
	if err := s.compactHistory(); err != nil {
		l.problems = append(l.problems, Problem{"history.log", err})
	}
	cs := make([]replacement, 0, len(nodes))
	for _, n := range nodes {
		if n != nil {
			cs = append(cs, replacement{n.path, n})
		}
	}
	next := s.View().with(cs)
	next.changes = s.recordedChanges()
	s.view.Store(next)
	s.unsaved = s.unsaved || ix == nil || ix.behind(next)
	s.noteAbsence(ix, next)
	s.report(slices.Concat(found, l.problems, problems)...)
	return nil
}

// readAll builds nodes in parallel; a nil node stands for a file that could not be read.
func (s *Store) readAll(ctx context.Context, paths []string, stats map[string]fileStat, ix *index) ([]*node, []Problem, error) {
	nodes := make([]*node, len(paths))
	errs := make([]error, len(paths))
	var done atomic.Int64
	err := each(ctx, len(paths), func(i int) {
		p := paths[i]
		nodes[i], errs[i] = s.read(p, stats[p], ix.known(p, stats[p]))
		if n := done.Add(1); s.opt.Progress != nil && (n%256 == 0 || int(n) == len(paths)) {
			s.opt.Progress(int(n), len(paths))
		}
	})
	if err != nil {
		return nil, nil, err
	}
	var problems []Problem
	for i, err := range errs {
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			problems = append(problems, Problem{paths[i], err})
		}
	}
	return nodes, problems, nil
}

// report replaces the list of problems.
func (s *Store) report(ps ...Problem) {
	if s.hist.problem != nil {
		ps = append(ps, Problem{"history.log", s.hist.problem})
	}
	if s.watchProblem != nil {
		ps = append(ps, Problem{".", s.watchProblem})
	}
	v := s.View()
	for _, k := range v.sorted {
		if n := v.files[k]; n.limit != nil {
			ps = append(ps, Problem{n.path, fmt.Errorf("read only: %w", n.limit)})
		}
	}
	slices.SortStableFunc(ps, func(a, b Problem) int { return cmp.Compare(a.Path, b.Path) })
	s.problems.Store(&ps)
}

// Refresh reads what changed on disk. Changes are recorded in the history as
// external operations.
func (s *Store) Refresh(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	return s.refreshLocked(ctx)
}

func (s *Store) refreshLocked(ctx context.Context) error {
	l, err := s.list(ctx)
	if err != nil {
		return err
	}
	s.dirs = l.dirs
	var stale []string
	for p, st := range l.files {
		if n := s.diskNode(p); n == nil || !n.stat.same(st) && !(s.still() && n.stat.looks(st)) || s.setupNow(n) != n.setup {
			stale = append(stale, p)
		}
	}
	slices.Sort(stale)
	nodes, problems, err := s.readAll(ctx, stale, l.files, nil)
	if err != nil {
		return err
	}
	unreadable := map[string]bool{}
	for _, p := range append(slices.Clone(l.problems), problems...) {
		unreadable[p.Path] = true
	}
	var cs []replacement
	for i, n := range nodes {
		if n != nil || !unreadable[stale[i]] {
			cs = append(cs, replacement{stale[i], n})
		}
	}
	for p := range s.View().Files() {
		if _, ok := l.files[p]; !ok && !s.hidden(p, unreadable) {
			cs = append(cs, replacement{p, nil})
		}
	}
	err = s.absorbLocked(cs)
	s.report(append(l.problems, problems...)...)
	return err
}

// hidden reports whether a file is missing only because it, or a directory above
// it, could not be read: what we know of it is then kept, and said.
func (s *Store) hidden(p string, unreadable map[string]bool) bool {
	for q := p; q != "."; q = filepath.ToSlash(filepath.Dir(q)) {
		if unreadable[q] {
			return true
		}
	}
	return unreadable["."]
}

// diskNode is the file as it was last read from disk, whatever clients show.
func (s *Store) diskNode(p string) *node {
	if o, ok := s.overlays[p]; ok {
		return o.saved
	}
	v := s.View()
	if k, ok := v.byPath.m[p]; ok {
		return v.files[k]
	}
	return nil
}

// absorbLocked takes in what was found on disk: one external operation, one new view.
func (s *Store) absorbLocked(cs []replacement) error {
	op := &Op{Kind: OpExternal, At: s.opt.Now()}
	var real []replacement
	for _, c := range cs {
		old := s.diskNode(c.path)
		if old == nil && c.now == nil {
			continue
		}
		if f, os, changed := describeChange(c.path, old, c.now); changed {
			op.Files = append(op.Files, f)
			op.Objects = append(op.Objects, os...)
		}
		real = append(real, c)
	}
	if len(real) == 0 {
		return nil
	}
	op.Objects = joinMoves(op.Objects, nil)
	var err error
	if len(op.Files) > 0 {
		err = s.hist.fact(op)
	}
	s.publishLocked(real, op)
	return err
}

// describeChange is what an operation records of one file.
func describeChange(p string, old, now *node) (FileChange, []ObjectChange, bool) {
	f := FileChange{Path: p}
	switch {
	case old == nil:
		f.After = sumFile(now.of.Bytes())
		f.Hunks = []hunk{{New: now.of.Bytes()}}
	case now == nil:
		f.Before = sumFile(old.of.Bytes())
		f.Hunks = []hunk{{Old: old.of.Bytes()}}
	default:
		if old.sum == now.sum {
			return f, nil, false
		}
		f.Before, f.After = sumFile(old.of.Bytes()), sumFile(now.of.Bytes())
		f.Hunks = hunksBetween(old, now)
	}
	return f, objectChanges(p, old, now), true
}

// replacement is a file's new node, nil if it is gone.
type replacement struct {
	path string
	now  *node
}

// publishLocked makes a new view of what is on disk, under the overlays.
func (s *Store) publishLocked(cs []replacement, op *Op) {
	shown := make([]replacement, 0, len(cs))
	for _, c := range cs {
		o, covered := s.overlays[c.path]
		if !covered {
			shown = append(shown, c)
			continue
		}
		if c.now != nil && c.now.sum == o.shown.sum { // saved: the buffer is the file now
			delete(s.overlays, c.path)
			shown = append(shown, c)
			continue
		}
		o.saved = c.now
		s.overlays[c.path] = o
	}
	next := s.View().with(shown)
	if op != nil {
		next.changes = next.changes.with(changedIDs(op), op.At)
	}
	s.unsaved = true
	s.view.Store(next)
	if s.opt.Changed != nil {
		s.opt.Changed()
	}
}

// changedIDs are the objects whose own text an operation altered.
func changedIDs(op *Op) []ID {
	var ids []ID
	for i := range op.Objects {
		if c := &op.Objects[i]; !c.New.IsZero() && !c.Old.IsZero() && c.OldOwn != c.NewOwn {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// recordedChanges counts the changes history holds.
func (s *Store) recordedChanges() *changeLog {
	if len(s.hist.ops) == 0 {
		return nil
	}
	m := map[ID]lastChange{}
	for _, op := range s.hist.ops {
		for _, id := range changedIDs(op) {
			l, ok := m[id]
			if !ok {
				l.version = firstSeen
			}
			m[id] = lastChange{l.version + 1, op.At}
		}
	}
	return &changeLog{m: m}
}

// with returns the next view: everything that did not change is shared.
func (v *View) with(cs []replacement) *View {
	next := &View{
		rev: v.rev + 1, files: slices.Clone(v.files), sorted: v.sorted, byPath: v.byPath, ids: v.ids,
		count: v.count, changes: v.changes, private: v.private, secluded: v.secluded, now: v.now,
	}
	paths := &pathIndex{v.byPath.m}
	moved := false // files came or went
	own := func() {
		if !moved {
			moved = true
			paths.m = maps.Clone(v.byPath.m)
		}
	}
	var free []int32
	for k, n := range next.files {
		if n == nil {
			free = append(free, int32(k))
		}
	}
	e := v.ids.edit(next.files)
	for _, c := range cs {
		k, known := paths.m[c.path]
		switch {
		case !known && c.now == nil:
			continue
		case !known:
			own()
			if len(free) > 0 {
				k, free = free[len(free)-1], free[:len(free)-1]
			} else {
				k = int32(len(next.files))
				next.files = append(next.files, nil)
			}
			paths.m[c.path] = k
			next.files[k] = c.now
			e.files = next.files
			e.replace(k, nil, c.now)
			next.count += len(c.now.recs)
		default:
			old := next.files[k]
			e.replace(k, old, c.now)
			next.count += c.now.len() - len(old.recs)
			next.files[k] = c.now
			if c.now == nil {
				own()
				delete(paths.m, c.path)
			}
		}
	}
	next.ids = e.x
	next.byPath = paths
	if moved {
		next.sorted = slices.Collect(maps.Values(paths.m))
		slices.SortFunc(next.sorted, func(a, b int32) int { return comparePaths(next.files[a], next.files[b]) })
	}
	return next
}
