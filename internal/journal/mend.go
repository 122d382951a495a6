package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"passepartout/internal/sexp"
)

// noRoom reports whether a failure ends when somebody makes room. After any other
// the disk itself is in doubt, and that is for a person to look at.
func noRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// slack is how much more room is wanted before a full journal goes on, so that it
// does not fail again at once.
const slack = 64 << 10

// mend makes a journal that found no room ready again, or says why it cannot. It
// reads the end as [Open] does, cuts what is no whole entry, and writes the lines
// that are missing as they were: the chain has no hole, and what was accepted
// without waiting for the disk is not lost. The last entry, put into b, says so.
//
// It runs in the writer goroutine.
func (j *Journal) mend(b *batch) error {
	if err := j.probe(); err != nil {
		return err
	}
	if j.out != nil {
		_ = j.out.Close() // what it could say is found out by reading
		j.out = nil
	}
	segment, synced := j.segment, j.synced
	_, end, err := j.recover()
	if err != nil {
		return err
	}
	if j.segment != segment {
		synced = 0
	}
	if err := j.settle(min(synced, j.size)); err != nil {
		return err
	}
	rest, whole := after(j.lost, end)
	n, err := j.out.Write(rest)
	if j.size += int64(n); err != nil {
		return fmt.Errorf("write entries again: %w", err)
	}
	if err := j.out.Sync(); err != nil {
		return fmt.Errorf("sync entries: %w", err)
	}
	j.synced = j.size
	j.resume(b, end, whole)
	return nil
}

// resume takes entries again, the first of which tells what happened.
func (j *Journal) resume(b *batch, end chain, whole bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	note := sexp.P(
		sexp.Keyword("KIND"), sexp.Keyword("RESUMED"), sexp.Keyword("CAUSE"), j.err.Error(),
		sexp.Keyword("AFTER"), int64(end.seq), sexp.Keyword("UNTIL"), int64(j.head.seq), sexp.Keyword("WHOLE"), whole)
	if !whole {
		j.head = end // what came between was never on the disk, and nobody has it
	}
	body, err := encodeBody(note)
	if err == nil { // always: it is a small property list
		b.lines, j.head = j.head.append(b.lines, j.opts.Now(), body)
	}
	b.sync = true
	j.err, j.full, j.lost = nil, false, nil
}

// probe finds out whether there is room for what is missing and a little more.
func (j *Journal) probe() (err error) {
	f, err := os.OpenFile(filepath.Join(j.dir, "room"), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("look for room: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	if _, err := f.Write(make([]byte, len(j.lost)+slack)); err != nil {
		return fmt.Errorf("look for room: %w", err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("look for room: %w", err)
	}
	return nil
}

// settle writes again what follows the last byte known to be on the disk: after a
// sync that failed, what reads well may be in memory only.
func (j *Journal) settle(from int64) error {
	f, err := os.OpenFile(filepath.Join(j.dir, segmentName(j.segment)), os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	text := make([]byte, j.size-from)
	_, err = f.ReadAt(text, from)
	if err == nil {
		_, err = f.WriteAt(text, from)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write the end again: %w", err)
	}
	return nil
}

// after is the part of some lines that goes on from an end of the journal; whole is
// false when there is none.
func after(lines []byte, end chain) (rest []byte, whole bool) {
	for len(lines) > 0 {
		i := bytes.IndexByte(lines, '\n')
		e, _, err := parseLine(lines[:i])
		switch {
		case err != nil || e.Seq > end.seq+1:
			return nil, false
		case e.Seq == end.seq+1:
			if end.follows(e) != nil {
				return nil, false
			}
			return lines, true
		}
		lines = lines[i+1:]
	}
	return nil, true // all of it had been written
}
