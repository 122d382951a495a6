// Package record keeps property lists in a file that only grows, each of them whole
// or absent.
//
// A record is one line: its length and its checksum in hexadecimal, then the printed
// list. Records that were appended together are all there or none of them: a plus
// stands before the list of each but the last. [Read] tells a torn end, which nobody
// was ever told of, from damage: a torn end, or one with holes, is left out, damage is
// [ErrDamaged], because what follows it may say that something was done. A [File]
// appends; a write that failed for want of room is cut off again before the next, and
// after any other failure it takes nothing more, since half a record may be on disk.
//
// Approvals, runs of jobs and messages of channels are kept so. What is hash-chained
// and replayed is the journal's, not ours.
//
// The rule a newcomer will break: a File has one owner. It holds no lock, because its
// users must change their own memory together with the disk anyway.
package record

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"passepartout/internal/durable"
	"passepartout/internal/sexp"
)

// ErrDamaged means that a record before the end of a file is not what was written.
var ErrDamaged = errors.New("is damaged: move the file away to start afresh")

// Read gives every whole record of a file to take, in order. A file that is not
// there holds none.
func Read(path string, take func(sexp.Plist) error) error {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var group []sexp.Plist // of the records appended together, those that came so far
	for n, size := 1, len(raw); len(raw) > 0; n++ {
		text, rest, ok := cut(raw)
		if !ok {
			if !hole(raw, size-len(raw)) && (text != nil || wholeIn(raw)) {
				return fmt.Errorf("%s: record %d %w", path, n, ErrDamaged)
			}
			return nil // torn
		}
		p, err := sexp.ReadPlist(text, sexp.Limits{})
		group = append(group, p)
		if raw[headLen-1] == more && err == nil {
			raw = rest
			continue
		}
		for i := 0; i < len(group) && err == nil; i++ {
			err = take(group[i])
		}
		if err != nil {
			return fmt.Errorf("%s: record %d: %w", path, n, err)
		}
		raw, group = rest, group[:0]
	}
	return nil
}

// more says that the next record belongs to this one.
const more = '+'

// frame appends records as they stand in the file.
func frame(dst []byte, records []sexp.Plist, together bool) []byte {
	for i, p := range records {
		text, mark := []byte(p.String()), ' '
		if together && i < len(records)-1 {
			mark = more
		}
		dst = fmt.Appendf(dst, "%08x %08x%c%s\n", len(text), crc32.ChecksumIEEE(text), mark, text)
	}
	return dst
}

// cut takes the first record off raw; ok is false when there is no whole one. A
// record that has all its bytes, and not its checksum or not its line's end, comes
// with its text: that one is damaged, not torn.
func cut(raw []byte) (text, rest []byte, ok bool) {
	n, sum, ok := header(raw)
	end := headLen + n
	if !ok || end >= len(raw) {
		return nil, nil, false
	}
	text = raw[headLen:end]
	whole := crc32.ChecksumIEEE(text) == sum
	if raw[end] != '\n' && !whole {
		return nil, nil, false // the length itself is not to be believed
	}
	return text, raw[end+1:], whole && raw[end] == '\n'
}

const headLen = len("00000000 00000000 ")

// header is what a record says of itself.
func header(raw []byte) (n int, sum uint32, ok bool) {
	if len(raw) < headLen {
		return 0, 0, false
	}
	length, err1 := strconv.ParseUint(string(raw[:8]), 16, 32)
	check, err2 := strconv.ParseUint(string(raw[9:17]), 16, 32)
	known := raw[headLen-1] == ' ' || raw[headLen-1] == more
	return int(length), uint32(check), err1 == nil && err2 == nil && known
}

// wholeIn reports whether a whole record begins anywhere after a line's end.
func wholeIn(raw []byte) bool {
	for {
		i := bytes.IndexByte(raw, '\n')
		if i < 0 {
			return false
		}
		raw = raw[i+1:]
		if _, _, ok := cut(raw); ok {
			return true
		}
	}
}

// hole reports whether the record that raw begins with has bytes missing that never
// reached the disk. Then nobody was told of it, nor of what follows: of an append,
// a disk may write a later part and not an earlier one before the power fails.
func hole(raw []byte, off int) bool {
	end := bytes.IndexByte(raw, '\n') + 1
	if n, _, ok := header(raw); ok {
		end = headLen + n + 1
	}
	if end == 0 || end > len(raw) {
		end = len(raw)
	}
	return durable.Hole(raw, end, int64(off))
}

// A File is a file that is appended to.
type File struct {
	path   string
	file   *os.File
	size   int64
	synced int64 // how much of it is known to be on the disk
	fault  error

	syncDir func(string) error // set by tests, to make a disk fail
}

// Create puts a new file with these records in the place of what is at path, and makes
// its directory.
func Create(path string, records []sexp.Plist) (*File, error) {
	if err := durable.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f := &File{path: path}
	return f, f.Replace(records)
}

// Replace puts a new file with these records in the place of the old one. Whoever
// looks finds the one or the other.
func (f *File) Replace(records []sexp.Plist) error {
	buf := frame(nil, records, false) // the rename keeps them together
	fresh, err := os.CreateTemp(filepath.Dir(f.path), filepath.Base(f.path)+".*")
	if err != nil {
		return err
	}
	_, err = fresh.Write(buf)
	if err = errors.Join(err, fresh.Sync()); err == nil {
		err = os.Rename(fresh.Name(), f.path)
	}
	if err != nil {
		return errors.Join(err, fresh.Close(), os.Remove(fresh.Name()))
	}
	syncDir := f.syncDir
	if syncDir == nil {
		syncDir = durable.SyncDir
	}
	if err := syncDir(filepath.Dir(f.path)); err != nil {
		// The old file has no name any more, and that of the new one may not last. This
		// is nothing to mend, whatever the reason, so it is not wrapped.
		f.fault = fmt.Errorf("%s cannot be written: its directory failed: %s", f.path, err.Error())
		return errors.Join(err, fresh.Close())
	}
	if f.file != nil {
		err = f.file.Close()
	}
	f.file, f.size, f.synced = fresh, int64(len(buf)), int64(len(buf))
	return err
}

// Append writes records, all or none. With durable they are on disk when it returns;
// without, they survive the end of the program, not that of the machine.
func (f *File) Append(durable bool, records ...sexp.Plist) error {
	if err := f.mend(); err != nil {
		return err
	}
	buf := frame(nil, records, true)
	_, err := f.file.Write(buf)
	if err == nil && durable {
		err = f.file.Sync()
	}
	if err != nil {
		f.fault = fmt.Errorf("%s cannot be written: %w", f.path, err)
		return f.fault
	}
	if f.size += int64(len(buf)); durable {
		f.synced = f.size
	}
	return nil
}

// mend makes a file that found no room ready again: what was refused is cut off, and
// what no sync has confirmed is written once more, since after one that failed it may
// be in memory only.
func (f *File) mend() error {
	if f.fault == nil || !errors.Is(f.fault, syscall.ENOSPC) && !errors.Is(f.fault, syscall.EDQUOT) {
		return f.fault
	}
	rest := make([]byte, f.size-f.synced)
	if err := f.file.Truncate(f.size); err != nil {
		return fmt.Errorf("%s cannot be mended: %w", f.path, err)
	}
	if _, err := f.file.ReadAt(rest, f.synced); err != nil && len(rest) > 0 {
		return fmt.Errorf("%s cannot be mended: %w", f.path, err)
	}
	if _, err := f.file.Seek(f.synced, io.SeekStart); err != nil {
		return fmt.Errorf("%s cannot be mended: %w", f.path, err)
	}
	if _, err := f.file.Write(rest); err != nil {
		return fmt.Errorf("%s cannot be mended: %w", f.path, err)
	}
	f.fault = nil
	return nil
}

// Size is how many bytes the file has.
func (f *File) Size() int64 { return f.size }

// Close lets go of the file; later appends fail.
func (f *File) Close() error {
	if f.file == nil {
		return nil
	}
	err := errors.Join(f.file.Sync(), f.file.Close())
	f.file, f.fault = nil, fmt.Errorf("%s is closed", f.path)
	return err
}
