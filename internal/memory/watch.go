package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

// WatchOptions tune how changes on disk are noticed.
type WatchOptions struct {
	// Quiet is how long the disk must be still before files are read: editors
	// save in several steps. 100 ms if zero.
	Quiet time.Duration
	// Rescan is how often everything is looked at regardless, for what watches
	// miss (network file systems, too many directories). 5 minutes if zero.
	Rescan time.Duration
	// Notify is called after every look at the disk, from the watching
	// goroutine; it must not call Close. It may be nil.
	Notify func(*View, error)
}

const (
	defaultQuiet  = 100 * time.Millisecond
	defaultRescan = 5 * time.Minute
	// mostQuiets is how many times the quiet time a busy disk can put reading off.
	mostQuiets = 10
	// mostLooks is how often in a row new directories are looked for.
	mostLooks = 3
)

// watcher follows the disk until stopped.
type watcher struct {
	s       *Store
	opt     WatchOptions
	fs      *fsnotify.Watcher
	cancel  context.CancelFunc
	done    chan struct{}
	now     chan chan struct{} // asks for a look without waiting for quiet
	watched map[string]bool
}

// Watch follows changes on disk in the background until Close. If the system
// cannot watch, that is a problem of [Store.Problems] and rescanning goes on.
func (s *Store) Watch(o WatchOptions) error {
	o.Quiet = cmp.Or(o.Quiet, defaultQuiet)
	o.Rescan = cmp.Or(o.Rescan, defaultRescan)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if s.watch != nil {
		return errors.New("memory is being watched already")
	}
	ctx, cancel := context.WithCancel(context.Background())
	w := &watcher{s: s, opt: o, cancel: cancel, done: make(chan struct{}), now: make(chan chan struct{}), watched: map[string]bool{}}
	var err error
	if w.fs, err = fsnotify.NewWatcher(); err == nil {
		_, err = w.add(s.dirs)
	}
	s.watchProblem = err
	s.watch = w
	go w.run(ctx)
	return nil
}

// CatchUp takes up what is known to have changed on disk, without waiting for quiet: a
// person who saves a note and asks for it in the next breath means that note. It costs
// next to nothing when nothing has changed, and nothing where the disk is not watched.
func (s *Store) CatchUp(ctx context.Context) {
	s.mu.Lock()
	w := s.watch
	s.mu.Unlock()
	if w == nil {
		return
	}
	looked := make(chan struct{})
	select {
	case w.now <- looked:
	case <-w.done:
		return
	case <-ctx.Done():
		return
	}
	select {
	case <-looked:
	case <-w.done:
	case <-ctx.Done():
	}
}

// stop ends the watching goroutine and waits for it.
func (w *watcher) stop() {
	w.cancel()
	<-w.done
}

// add watches directories not watched yet, and reports whether there were any; those
// that are gone are forgotten.
func (w *watcher) add(dirs []string) (added bool, first error) {
	if w.fs == nil {
		return false, nil
	}
	now := map[string]bool{}
	for _, d := range dirs {
		if w.watched[d] {
			now[d] = true
			continue
		}
		if err := w.fs.Add(w.s.abs(d)); err != nil {
			first = cmp.Or(first, fmt.Errorf("not watched, only rescanned: %w", err))
			continue
		}
		now[d], added = true, true
	}
	w.watched = now
	return added, first
}

// lose forgets every watch when a directory went: one stays with what went, whatever
// is called so now, and is the same as that of the name it has there. All are made
// anew at the next look.
func (w *watcher) lose(gone string) {
	if !w.watched[gone] {
		return
	}
	for d := range w.watched {
		_ = w.fs.Remove(w.s.abs(d)) // the system may have done so already
	}
	clear(w.watched)
}

func (w *watcher) run(ctx context.Context) {
	defer close(w.done)
	var events <-chan fsnotify.Event
	var errs <-chan error
	if w.fs != nil {
		defer func() { _ = w.fs.Close() }() // nothing is pending in a watcher
		events, errs = w.fs.Events, w.fs.Errors
	}
	rescan := time.NewTicker(w.opt.Rescan)
	defer rescan.Stop()
	quiet := time.NewTimer(w.opt.Quiet)
	quiet.Stop()
	defer quiet.Stop()
	// The first look is for what changed after the memex was read and before it was
	// watched.
	b := burst{all: true}
	quiet.Reset(w.opt.Quiet)
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-events:
			if w.take(&b, e) && (b.waits == 1 || b.since(w.opt.Quiet)) {
				quiet.Reset(w.opt.Quiet)
			}
			continue
		case <-errs: // events were lost
			b.all = true
			quiet.Reset(w.opt.Quiet)
			continue
		case looked := <-w.now:
			w.drain(&b, events)
			if b.waits > 0 || b.all {
				quiet.Stop()
				w.look(ctx, b)
				b = burst{}
			}
			close(looked)
			continue
		case <-quiet.C:
		case <-rescan.C:
			b.all = true
		}
		w.look(ctx, b)
		b = burst{}
	}
}

// drain takes the events that are there already.
func (w *watcher) drain(b *burst, events <-chan fsnotify.Event) {
	for {
		select {
		case e := <-events:
			w.take(b, e)
		default:
			return
		}
	}
}

// take notes an event and reports whether it concerns the memex.
func (w *watcher) take(b *burst, e fsnotify.Event) bool {
	rel, err := filepath.Rel(w.s.root, e.Name)
	if err != nil || !b.take(filepath.ToSlash(rel), e.Op) {
		return false
	}
	if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
		w.lose(filepath.ToSlash(rel))
	}
	b.waits++
	return true
}

// burst is what events since the last look were about.
type burst struct {
	paths []string
	all   bool // something other than a known kind of file changed
	waits int
	first time.Time
}

// since reports whether waiting longer is still worth it.
func (b *burst) since(quiet time.Duration) bool { return time.Since(b.first) < mostQuiets*quiet }

// take notes what happened to a path and reports whether it concerns the memex.
func (b *burst) take(p string, op fsnotify.Op) bool {
	base := path.Base(p)
	if base[0] == '.' && base != ignoreFile && p != "." || op == fsnotify.Chmod {
		return false
	}
	if b.first.IsZero() {
		b.first = time.Now()
	}
	if isOrg(base) {
		if !slices.Contains(b.paths, p) {
			b.paths = append(b.paths, p)
		}
		const many = 64
		b.all = b.all || len(b.paths) > many
		return true
	}
	// A directory came or went, or the ignore file changed. Other files are none
	// of ours, but telling them from directories that are gone takes a look.
	b.all = true
	return true
}

// look brings the view up to date.
func (w *watcher) look(ctx context.Context, b burst) {
	w.s.mu.Lock()
	if w.s.closed {
		w.s.mu.Unlock()
		return
	}
	err := w.s.lookLocked(ctx, b)
	for range mostLooks {
		added, problem := w.add(w.s.dirs)
		if w.fs != nil {
			w.s.watchProblem = problem
		}
		if !added || err != nil {
			break
		}
		err = w.s.refreshLocked(ctx) // for what came into a new directory before it was watched
	}
	w.s.mu.Unlock()
	if w.opt.Notify != nil {
		w.opt.Notify(w.s.View(), err)
	}
}

func (s *Store) lookLocked(ctx context.Context, b burst) error {
	if b.all {
		return s.refreshLocked(ctx)
	}
	known := slices.DeleteFunc(b.paths, func(p string) bool { return s.diskNode(p) == nil })
	if len(known) < len(b.paths) {
		return s.refreshLocked(ctx) // a new file: ignore rules and limits apply
	}
	for _, p := range s.setupChangedLocked() {
		if !slices.Contains(known, p) {
			known = append(known, p)
		}
	}
	if err := s.rereadLocked(known); err != nil {
		return s.refreshLocked(ctx)
	}
	return nil
}
