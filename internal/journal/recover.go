package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"passepartout/internal/durable"
)

// A Recovery tells what [Open] found. The zero Recovery is a clean journal.
type Recovery struct {
	Head    Seq    // number of the last whole entry
	Segment string // the segment that had a torn end, "" for none
	Line    int
	Bytes   int64  // how many were cut off
	Kept    string // the file that now holds them
}

// Torn reports whether something was cut off.
func (r Recovery) Torn() bool { return r.Segment != "" }

// String says what happened, in words for a log.
func (r Recovery) String() string {
	if !r.Torn() {
		return fmt.Sprintf("journal is whole up to entry %d", r.Head)
	}
	return fmt.Sprintf("journal segment %s had %d bytes of an unfinished entry at line %d: cut after entry %d, kept in %s",
		r.Segment, r.Bytes, r.Line, r.Head, r.Kept)
}

// recover finds the end of the journal and makes it ready to be written. It
// reads the last two segments: the last may be empty or torn, and the one
// before says what the chain must go on from.
func (j *Journal) recover() (rec Recovery, end chain, err error) {
	last, err := segments(j.dir)
	if err != nil {
		return rec, end, err
	}
	if last == 0 {
		return rec, end, j.create(1)
	}
	c, err := openCursor(j.dir, max(1, last-1))
	if err != nil {
		return rec, end, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	torn, err := c.toEnd(last)
	if err != nil {
		return rec, end, err
	}
	rec.Head = c.head.seq
	if torn != nil {
		rec.Segment, rec.Line, rec.Bytes = torn.Segment, torn.Line, torn.Bytes
		if rec.Kept, err = setAside(j.dir, torn); err != nil {
			return rec, end, err
		}
	}
	f, err := os.OpenFile(filepath.Join(j.dir, segmentName(last)), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return rec, end, fmt.Errorf("journal: %w", err)
	}
	j.out, j.segment, j.size = j.opts.wrap(f), last, c.off
	return rec, c.head, nil
}

// toEnd reads to the end of segment last and returns how it was torn, if so.
func (c *cursor) toEnd(last int) (*TornError, error) {
	for {
		_, _, err := c.next()
		var torn *TornError
		switch {
		case err == nil:
		case errors.Is(err, io.EOF) && c.number == last:
			return nil, nil
		case errors.Is(err, io.EOF):
			if err := c.advance(); err != nil {
				return nil, err
			}
		case errors.As(err, &torn) && c.number == last:
			return torn, nil
		default:
			return nil, tornInside(err)
		}
	}
}

// setAside copies a torn end to a file of its own, and only when that is on
// the disk cuts it off.
func setAside(dir string, torn *TornError) (kept string, err error) {
	f, err := os.OpenFile(filepath.Join(dir, torn.Segment), os.O_RDWR, 0)
	if err != nil {
		return "", fmt.Errorf("journal: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	kept, err = keep(filepath.Join(dir, torn.Segment), torn.Offset, io.NewSectionReader(f, torn.Offset, torn.Bytes))
	if err != nil {
		return "", err
	}
	if err := durable.SyncDir(dir); err != nil {
		return "", fmt.Errorf("sync directory: %w", err)
	}
	if err := f.Truncate(torn.Offset); err != nil {
		return "", fmt.Errorf("cut the torn end: %w", err)
	}
	if err := f.Sync(); err != nil {
		return "", fmt.Errorf("sync the segment: %w", err)
	}
	return kept, nil
}

// keep writes a new file beside the segment, under a name not yet taken.
func keep(segment string, off int64, r io.Reader) (name string, err error) {
	var f *os.File
	for i := 0; ; i++ {
		name = fmt.Sprintf("%s.%d.torn", segment, off)
		if i > 0 {
			name = fmt.Sprintf("%s.%d-%d.torn", segment, off, i)
		}
		f, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err != nil {
		return "", fmt.Errorf("keep the torn end: %w", err)
	}
	_, err = io.Copy(f, r)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", fmt.Errorf("keep the torn end: %w", err)
	}
	return name, nil
}
