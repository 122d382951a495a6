// Package journal keeps the append-only record of what was decided and done.
//
// A journal is a directory of numbered segments. A segment is text, one entry
// a line; a line is a property list followed by its own SHA-256 as a comment:
//
//	(:SEQ 2 :AT "2026-11-15T03:30:00Z" :PREV "<sum of entry 1>" :ENTRY (…)) ;<sum of this entry>
//
// The sum covers every byte before the blank and semicolon that precede it.
// :PREV of entry 1 is 64 zeros. Each entry so vouches for all before it, across
// segments. Control characters inside strings are written as their Unicode
// pictures (a line break as ␊), so that a line is a line and showing a journal
// cannot drive a terminal; see [appendPictures] for the whole scheme.
//
// The central types:
//
//   - [Journal] is the one writer. Its goroutine writes and syncs entries in
//     groups; [Journal.Append] returns when its entry is on the disk.
//   - [Entry] is one entry as [Read], [Tail] and [Follow] return it, verified.
//   - [Recovery] tells what [Open] cut off after a crash, and where it was kept.
//   - [BrokenError] is a record that was changed, with segment and line.
//
// The rule a newcomer will break: after an error from Append the caller must not
// act. The record may end anywhere in what was being written. Where the disk was
// full the journal examines its end and goes on by itself once there is room
// (mend.go); after any other failure it takes nothing more until it is opened again.
//
// What the chain cannot show is that whole entries are missing from its end.
// Whoever needs that keeps [Summary.Head] elsewhere.
package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"passepartout/internal/durable"
	"passepartout/internal/sexp"
)

// A Seq numbers the entries of a journal, from 1 without a gap.
type Seq uint64

// Options are the parts of a journal that can be chosen.
type Options struct {
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// SegmentBytes is the size at which the next entry starts a new segment;
	// zero means 16 MiB.
	SegmentBytes int64

	wrap func(file) file // set by tests, to make a disk fail
}

const (
	defaultSegment = 16 << 20
	maxPending     = 8 << 20 // bytes waiting for the disk before callers wait too
)

// Errors that callers tell apart.
var (
	// ErrLocked means that another process, or this one, has the journal open.
	ErrLocked = errors.New("journal is open elsewhere")
	// ErrClosed means that the journal was closed in good order.
	ErrClosed = errors.New("journal is closed")
	// ErrFailed means that the disk refused this entry or an earlier one: no
	// effect may follow it.
	ErrFailed = errors.New("journal has failed")
)

// A file is what the writer needs of an *os.File.
type file interface {
	io.WriteCloser
	Sync() error
}

// errTaken is why a file that was given up cannot be written.
var errTaken = errors.New("no segment is open")

// A Journal appends entries. It is safe for concurrent use.
type Journal struct {
	// Constant after Open.
	dir  string
	opts Options
	lock io.Closer
	wake chan struct{} // holds at most one note that there is work
	done chan struct{} // closed when the writer has ended

	// Owned by the writer goroutine.
	out     file // nil: given up, until the journal is mended
	segment int
	size    int64
	synced  int64  // how much of the segment is known to be on the disk
	lost    []byte // lines that were accepted and found no room

	mu      sync.Mutex // guards what follows
	head    chain      // the last entry accepted
	pending *batch     // accepted, not yet taken by the writer
	err     error      // why nothing more is accepted
	full    bool       // err is want of room: whoever comes next lets the writer try again
	closing bool
}

// A batch is a group of entries that go to the disk together.
type batch struct {
	lines []byte
	sync  bool          // somebody waits for the disk
	done  chan struct{} // closed when the batch is written, or has failed
	err   error         // valid once done is closed
}

func newBatch() *batch { return &batch{done: make(chan struct{})} }

// Open opens the journal in dir for writing, creating it if there is none, and
// repairs the end that a crash may have left. A journal that is damaged
// anywhere else is refused with a [*BrokenError].
func Open(dir string, o Options) (*Journal, Recovery, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.SegmentBytes <= 0 {
		o.SegmentBytes = defaultSegment
	}
	if o.wrap == nil {
		o.wrap = func(f file) file { return f }
	}
	if err := makePrivate(dir); err != nil {
		return nil, Recovery{}, err
	}
	lock, err := lockFile(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, Recovery{}, fmt.Errorf("journal %s: %w", dir, err)
	}
	j := &Journal{
		dir: dir, opts: o, lock: lock, pending: newBatch(),
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	rec, end, err := j.recover()
	if err != nil {
		return nil, Recovery{}, errors.Join(err, lock.Close())
	}
	j.head, j.synced = end, j.size
	go j.write()
	return j, rec, nil
}

// makePrivate creates dir for its owner alone, or checks that it is so.
func makePrivate(dir string) error {
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("journal directory: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("journal directory: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("journal directory %s has mode %04o: want 0700, for its owner alone (chmod 700 %s)", dir, mode, dir)
	}
	return nil
}

// Append records an entry and returns when it is on the disk. After an error
// the entry may or may not be found by the next [Open]; see [ErrFailed].
func (j *Journal) Append(entry sexp.Plist) (Seq, error) {
	seq, b, err := j.accept(entry, true)
	if err != nil {
		return 0, err
	}
	<-b.done
	if b.err != nil {
		return 0, b.err
	}
	return seq, nil
}

// AppendLazy records an entry that no effect depends on. It returns before the
// entry is written: a crash of the machine may lose it, but never one without
// losing all later ones too. The next [Journal.Append] or [Journal.Sync] takes
// it to the disk.
func (j *Journal) AppendLazy(entry sexp.Plist) (Seq, error) {
	seq, _, err := j.accept(entry, false)
	return seq, err
}

// Sync returns when all entries accepted before it are on the disk.
func (j *Journal) Sync() error {
	j.mu.Lock()
	if err := j.refusesLocked(); err != nil {
		defer j.mu.Unlock()
		return err
	}
	b := j.pending
	b.sync = true
	j.mu.Unlock()
	j.notify()
	<-b.done
	return b.err
}

// refusesLocked says why nothing is accepted. A full disk is no reason: the writer
// will say whether it still is.
func (j *Journal) refusesLocked() error {
	switch {
	case j.closing && j.err == nil:
		return ErrClosed
	case j.closing:
		return j.err // nobody is left to try again
	case j.err != nil && !j.full:
		return j.err
	}
	return nil
}

// Head returns the number and sum of the last entry accepted.
func (j *Journal) Head() (Seq, sexp.Digest) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.head.seq, j.head.sum
}

// Close writes what is pending, ends the writer and gives up the lock. Later
// calls fail with [ErrClosed].
func (j *Journal) Close() error {
	j.mu.Lock()
	again := j.closing
	j.closing, j.pending.sync = true, true
	j.mu.Unlock()
	j.notify()
	<-j.done
	if again {
		return ErrClosed
	}
	j.mu.Lock()
	failed := j.err
	j.err, j.full = ErrClosed, false
	j.mu.Unlock()
	errs := []error{failed}
	if j.out != nil {
		errs = append(errs, j.out.Close())
	}
	return errors.Join(append(errs, j.lock.Close())...)
}

// accept numbers an entry, chains it to the one before and hands it over.
func (j *Journal) accept(entry sexp.Plist, durable bool) (Seq, *batch, error) {
	body, err := encodeBody(entry)
	if err != nil {
		return 0, nil, err
	}
	for {
		j.mu.Lock()
		if err := j.refusesLocked(); err != nil {
			defer j.mu.Unlock()
			return 0, nil, err
		}
		b := j.pending
		if j.full {
			j.mu.Unlock()
			j.notify()
			if <-b.done; b.err != nil {
				return 0, nil, b.err
			}
			continue
		}
		if len(b.lines) > 0 && len(b.lines)+len(body) > maxPending {
			j.mu.Unlock()
			<-b.done
			continue
		}
		b.lines, j.head = j.head.append(b.lines, j.opts.Now(), body)
		b.sync = b.sync || durable
		seq := j.head.seq
		j.mu.Unlock()
		j.notify()
		return seq, b, nil
	}
}

func (j *Journal) notify() {
	select {
	case j.wake <- struct{}{}:
	default: // a note is there already
	}
}

// write is the writer goroutine. Entries that arrive while it waits for the
// disk form the next batch, so the slower the disk the larger the groups.
func (j *Journal) write() {
	defer close(j.done)
	for range j.wake {
		j.mu.Lock()
		b, full, last := j.pending, j.full, j.closing
		j.pending = newBatch()
		j.mu.Unlock()

		var err error
		if full {
			err = j.mend(b)
		}
		if err == nil {
			err = j.flush(b)
		}
		if err != nil {
			last = !j.fail(b, err) || last
		}
		close(b.done)
		if last {
			return
		}
	}
}

// fail refuses a batch and all that is pending. It reports whether there is hope:
// then the lines are kept, since later ones are chained to them, and those who did
// not wait were told that they are recorded.
func (j *Journal) fail(b *batch, cause error) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.err, j.full = fmt.Errorf("%w: %w", ErrFailed, cause), noRoom(cause)
	if j.full {
		j.err = fmt.Errorf("%w: the disk is full; it goes on by itself when there is room: %w", ErrFailed, cause)
	}
	b.err, j.pending.err = j.err, j.err
	if j.full {
		j.lost = append(append(j.lost, b.lines...), j.pending.lines...)
		b.lines = nil
	}
	close(j.pending.done)
	j.pending = newBatch()
	return j.full
}

// flush writes one batch. It never tries again: after a failed write or sync
// nobody knows what the disk holds, except by reading it.
func (j *Journal) flush(b *batch) error {
	if j.out == nil {
		return errTaken
	}
	if len(b.lines) > 0 {
		if j.size >= j.opts.SegmentBytes {
			if err := j.rotate(); err != nil {
				return err
			}
		}
		n, err := j.out.Write(b.lines)
		j.size += int64(n)
		if err != nil {
			return fmt.Errorf("write entries: %w", err)
		}
	}
	if b.sync {
		if err := j.out.Sync(); err != nil {
			return fmt.Errorf("sync entries: %w", err)
		}
		j.synced = j.size
	}
	return nil
}

// rotate starts the next segment. The old one is synced first, lazy entries
// and all: only the last segment may ever have a torn end.
func (j *Journal) rotate() error {
	if err := j.out.Sync(); err != nil {
		return fmt.Errorf("sync segment: %w", err)
	}
	j.synced = j.size
	old := j.out
	j.out = nil
	if err := old.Close(); err != nil {
		return fmt.Errorf("close segment: %w", err)
	}
	return j.create(j.segment + 1)
}

// create makes a segment and makes sure its name is on the disk.
func (j *Journal) create(number int) error {
	f, err := os.OpenFile(filepath.Join(j.dir, segmentName(number)), os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("new segment: %w", err)
	}
	j.out, j.segment, j.size, j.synced = j.opts.wrap(f), number, 0, 0
	if err := durable.SyncDir(j.dir); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}
