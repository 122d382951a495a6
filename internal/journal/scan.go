package journal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"passepartout/internal/durable"
	"passepartout/internal/sexp"
)

// A BrokenError is a place where the record is not what was written: an entry
// was changed, removed or put in.
type BrokenError struct {
	Segment string
	Line    int // 0 for the segment as a whole
	Err     error
}

func (e *BrokenError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("journal segment %s: %v", e.Segment, e.Err)
	}
	return fmt.Sprintf("journal segment %s line %d: %v", e.Segment, e.Line, e.Err)
}

func (e *BrokenError) Unwrap() error { return e.Err }

// A TornError is an end of the record that is not a whole entry: what a crash
// leaves, or what a reader sees while a writer is at work.
type TornError struct {
	Segment string
	Line    int
	Offset  int64 // of the first byte that belongs to no whole entry
	Bytes   int64 // from there to the end
}

func (e *TornError) Error() string {
	return fmt.Sprintf("journal segment %s line %d: %d bytes at the end are no whole entry", e.Segment, e.Line, e.Bytes)
}

const segmentSuffix = ".journal"

func segmentName(n int) string { return fmt.Sprintf("%06d%s", n, segmentSuffix) }

// segments returns how many segments there are, numbered from 1.
func segments(dir string) (int, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return 0, fmt.Errorf("journal: %w", err)
	}
	var found []int
	for _, f := range files {
		stem, ok := strings.CutSuffix(f.Name(), segmentSuffix)
		n, err := strconv.Atoi(stem)
		if ok && err == nil && f.Name() == segmentName(n) {
			found = append(found, n)
		}
	}
	slices.Sort(found)
	for i, n := range found {
		if n != i+1 {
			return 0, &BrokenError{Segment: segmentName(i + 1), Err: fmt.Errorf("missing, though %s is there", segmentName(n))}
		}
	}
	return len(found), nil
}

// A cursor reads one segment after the other, checking the chain.
type cursor struct {
	dir    string
	number int
	f      *os.File
	r      *bufio.Reader
	buf    []byte
	line   int   // last whole line
	off    int64 // where it ended
	head   chain
	// anchored is false until the chain's beginning is known. The first entry
	// of a later segment is then taken at its word about the one before.
	anchored bool
}

// openCursor starts at a segment.
func openCursor(dir string, number int) (*cursor, error) {
	c := &cursor{dir: dir, number: number, anchored: number == 1}
	return c, c.open()
}

func (c *cursor) open() error {
	f, err := os.Open(filepath.Join(c.dir, segmentName(c.number)))
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	c.f, c.r, c.line, c.off = f, bufio.NewReaderSize(f, 64<<10), 0, 0
	return nil
}

// advance goes on to the next segment. One that was finished holds an entry at
// least; without any, nothing would say what the next must go on from.
func (c *cursor) advance() error {
	if c.line == 0 {
		return &BrokenError{Segment: segmentName(c.number), Err: errors.New("holds no entry, and this is not the last segment")}
	}
	if err := c.close(); err != nil {
		return err
	}
	c.number++
	return c.open()
}

func (c *cursor) close() error {
	if c.f == nil {
		return nil
	}
	f := c.f
	c.f = nil
	return f.Close()
}

// rewind goes back to the end of the last whole line, to look for more.
func (c *cursor) rewind() error {
	if _, err := c.f.Seek(c.off, io.SeekStart); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	c.r.Reset(c.f)
	return nil
}

// next returns the next entry of the segment, its body still as text that is
// valid until the next call. The error is io.EOF at a clean end, a *TornError
// at an unclean one, a *BrokenError at damage.
func (c *cursor) next() (Entry, []byte, error) {
	line, whole, err := c.readLine()
	if err != nil {
		return Entry{}, nil, err
	}
	if !whole {
		return Entry{}, nil, &TornError{Segment: segmentName(c.number), Line: c.line + 1, Offset: c.off, Bytes: int64(len(line))}
	}
	e, body, err := parseLine(line)
	if err == nil && c.anchored {
		err = c.head.follows(e)
	}
	if err != nil {
		hole := durable.Hole(line, len(line), c.off)
		return Entry{}, nil, c.judge(int64(len(line))+1, hole, err)
	}
	c.head, c.anchored = chain{e.Seq, e.Sum}, true
	c.line++
	c.off += int64(len(line)) + 1
	e.Segment, e.Line = segmentName(c.number), c.line
	return e, body, nil
}

// readLine returns the next line without its break, and whether it had one.
func (c *cursor) readLine() ([]byte, bool, error) {
	c.buf = c.buf[:0]
	for {
		part, err := c.r.ReadSlice('\n')
		c.buf = append(c.buf, part...)
		switch {
		case err == nil:
			return c.buf[:len(c.buf)-1], true, nil
		case errors.Is(err, io.EOF) && len(c.buf) == 0:
			return nil, false, io.EOF
		case errors.Is(err, io.EOF):
			return c.buf, false, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, false, fmt.Errorf("journal: %w", err)
		case len(c.buf) > maxLine:
			return nil, false, &BrokenError{Segment: segmentName(c.number), Line: c.line + 1, Err: fmt.Errorf("longer than %d bytes", maxLine)}
		}
	}
}

// judge tells a torn end from damage, given that the next n bytes are no good.
// Nothing whole can come after a torn end, except after a hole: when the power
// fails, a disk may have written a later part of an append and not an earlier
// one. What was acknowledged lies before it, for a sync leaves no holes.
func (c *cursor) judge(n int64, hole bool, cause error) error {
	broken := &BrokenError{Segment: segmentName(c.number), Line: c.line + 1, Err: cause}
	if !errors.Is(cause, errTorn) && !hole {
		return broken
	}
	for {
		line, whole, err := c.readLine()
		if errors.Is(err, io.EOF) {
			return &TornError{Segment: broken.Segment, Line: broken.Line, Offset: c.off, Bytes: n}
		}
		if err != nil {
			return err
		}
		n += int64(len(line))
		if whole {
			n++
			if _, _, err := parseLine(line); !hole && !errors.Is(err, errTorn) {
				return broken
			}
		}
	}
}

// Read returns all entries of the journal in dir, verified one by one. It may
// be used while the journal is being written. The iteration ends at the first
// error; if that is a [*TornError], all whole entries have been returned.
func Read(dir string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		last, err := segments(dir)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		if last == 0 {
			return
		}
		if err := readRange(dir, 1, last, func(e Entry) bool { return yield(e, nil) }); err != nil {
			yield(Entry{}, err)
		}
	}
}

// readRange calls fn for each entry of the segments from first to last.
func readRange(dir string, first, last int, fn func(Entry) bool) (err error) {
	c, err := openCursor(dir, first)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	for {
		e, body, err := c.next()
		switch {
		case errors.Is(err, io.EOF):
			if c.number == last {
				return nil
			}
			if err := c.advance(); err != nil {
				return err
			}
			continue
		case err != nil && c.number < last:
			return tornInside(err)
		case err != nil:
			return err
		}
		if e.Body, err = decodeBody(body); err != nil {
			return &BrokenError{Segment: e.Segment, Line: e.Line, Err: err}
		}
		if !fn(e) {
			return nil
		}
	}
}

// tornInside turns a torn end into damage, for segments that are not the last.
func tornInside(err error) error {
	var torn *TornError
	if errors.As(err, &torn) {
		return &BrokenError{Segment: torn.Segment, Line: torn.Line, Err: fmt.Errorf("%w, and this is not the last segment", errTorn)}
	}
	return err
}

// A Summary is what [Verify] found.
type Summary struct {
	Segments    int
	Entries     Seq
	First, Last time.Time   // of the first and the last entry
	Head        sexp.Digest // sum of the last entry
	Torn        *TornError  // the end that is no whole entry, or nil
}

// Verify reads the whole journal. It returns an error at the first damage;
// a torn end is no damage, and is in the summary.
func Verify(dir string) (Summary, error) {
	var s Summary
	var err error
	if s.Segments, err = segments(dir); err != nil {
		return s, err
	}
	for e, err := range Read(dir) {
		if err != nil {
			if errors.As(err, &s.Torn) {
				return s, nil
			}
			return s, err
		}
		if e.Seq == 1 {
			s.First = e.At
		}
		s.Entries, s.Last, s.Head = e.Seq, e.At, e.Sum
	}
	return s, nil
}

// Tail returns the last n entries, oldest first, reading no more segments than
// that takes. An end that a writer is just writing does not count.
func Tail(dir string, n int) ([]Entry, error) {
	last, err := segments(dir)
	if err != nil {
		return nil, err
	}
	var tail []Entry
	for number := last; number >= 1 && len(tail) < n; number-- {
		var part []Entry
		err := readRange(dir, number, number, func(e Entry) bool {
			if len(part) >= 2*n {
				part = slices.Delete(part, 0, n)
			}
			part = append(part, e)
			return true
		})
		var torn *TornError
		if number < last {
			err = tornInside(err)
		} else if errors.As(err, &torn) {
			err = nil
		}
		if err != nil {
			return nil, err
		}
		if len(part) > 0 && len(tail) > 0 {
			end := part[len(part)-1]
			if err := (chain{end.Seq, end.Sum}).follows(tail[0]); err != nil {
				return nil, &BrokenError{Segment: tail[0].Segment, Line: tail[0].Line, Err: err}
			}
		}
		tail = append(part[max(0, len(part)-(n-len(tail))):], tail...)
	}
	return tail, nil
}

// Follow returns the entries after number after, and then waits for more: each
// time tick delivers, it looks whether there are any. It ends with the context,
// or after an error.
func Follow(ctx context.Context, dir string, after Seq, tick <-chan time.Time) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		var c *cursor
		defer func() {
			if c != nil {
				_ = c.close() // read only, and nobody is left to tell
			}
		}()
		for ctx.Err() == nil {
			if c == nil {
				var err error
				if c, err = cursorAt(dir, after); err != nil {
					yield(Entry{}, err)
					return
				}
			}
			if c != nil && !c.drain(after, yield) {
				return
			}
			select {
			case <-ctx.Done():
			case <-tick:
			}
		}
	}
}

// cursorAt opens the last segment that can hold the entry after number after;
// nil when there is no segment yet.
func cursorAt(dir string, after Seq) (*cursor, error) {
	last, err := segments(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for number := last; number >= 1; number-- {
		c, err := openCursor(dir, number)
		if err != nil {
			return nil, err
		}
		line, whole, err := c.readLine()
		if err == nil && whole {
			if e, _, err := parseLine(line); number == 1 || err == nil && e.Seq <= after+1 {
				return c, c.rewind()
			}
		} else if number == 1 {
			return c, c.rewind()
		}
		if err := c.close(); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// drain yields what is there; it is false when the iteration is over.
func (c *cursor) drain(after Seq, yield func(Entry, error) bool) bool {
	for {
		e, body, err := c.next()
		var torn *TornError
		switch {
		case errors.Is(err, io.EOF):
			next := filepath.Join(c.dir, segmentName(c.number+1))
			if _, err := os.Stat(next); err != nil {
				return c.retry(yield)
			}
			// The segment was ended before the next was begun, but perhaps
			// after this end was read.
			if err := c.rewind(); err != nil {
				return stop(yield, err)
			}
			if _, err := c.r.Peek(1); err == nil {
				continue
			}
			if err := c.advance(); err != nil {
				return stop(yield, err)
			}
			continue
		case errors.As(err, &torn):
			return c.retry(yield)
		case err == nil:
			e.Body, err = decodeBody(body)
		}
		if err != nil {
			return stop(yield, err)
		}
		if e.Seq > after && !yield(e, nil) {
			return false
		}
	}
}

// stop yields an error as the last thing.
func stop(yield func(Entry, error) bool, err error) bool {
	yield(Entry{}, err)
	return false
}

// retry makes the cursor ready to look again for what is not there yet.
func (c *cursor) retry(yield func(Entry, error) bool) bool {
	if err := c.rewind(); err != nil {
		return stop(yield, err)
	}
	return true
}
