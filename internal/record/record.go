// Package record keeps property lists in a file that only grows, each of them whole
// or absent.
//
// A record is one line: its length and its checksum in hexadecimal, then the printed
// list. [Read] tells a torn end, which nobody was ever told of, from damage: a torn
// end is left out, damage is [ErrDamaged], because what follows it may say that
// something was done. A [File] appends; a write that failed for want of room is cut
// off again before the next, and after any other failure it takes nothing more, since
// half a record may be on disk.
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
	for n := 1; len(raw) > 0; n++ {
		text, rest, ok := cut(raw)
		if !ok {
			if text != nil || wholeIn(raw) {
				return fmt.Errorf("%s: record %d %w", path, n, ErrDamaged)
			}
			return nil // torn
		}
		p, err := sexp.ReadPlist(text, sexp.Limits{})
		if err == nil {
			err = take(p)
		}
		if err != nil {
			return fmt.Errorf("%s: record %d: %w", path, n, err)
		}
		raw = rest
	}
	return nil
}

// frame appends a record as it stands in the file.
func frame(dst []byte, p sexp.Plist) []byte {
	text := []byte(p.String())
	return fmt.Appendf(dst, "%08x %08x %s\n", len(text), crc32.ChecksumIEEE(text), text)
}

// cut takes the first record off raw; ok is false when there is no whole one. A
// record that has all its bytes, and not its checksum or not its line's end, comes
// with its text: that one is damaged, not torn.
func cut(raw []byte) (text, rest []byte, ok bool) {
	const head = len("00000000 00000000 ")
	if len(raw) < head {
		return nil, nil, false
	}
	n, err1 := strconv.ParseUint(string(raw[:8]), 16, 32)
	sum, err2 := strconv.ParseUint(string(raw[9:17]), 16, 32)
	end := head + int(n)
	if err1 != nil || err2 != nil || end >= len(raw) {
		return nil, nil, false
	}
	text = raw[head:end]
	whole := uint64(crc32.ChecksumIEEE(text)) == sum
	if raw[end] != '\n' && !whole {
		return nil, nil, false // the length itself is not to be believed
	}
	return text, raw[end+1:], whole && raw[end] == '\n'
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

// A File is a file that is appended to.
type File struct {
	path   string
	file   *os.File
	size   int64
	synced int64 // how much of it is known to be on the disk
	fault  error
}

// Create puts a new file with these records in the place of what is at path.
func Create(path string, records []sexp.Plist) (*File, error) {
	f := &File{path: path}
	return f, f.Replace(records)
}

// Replace puts a new file with these records in the place of the old one. Whoever
// looks finds the one or the other.
func (f *File) Replace(records []sexp.Plist) error {
	var buf []byte
	for _, p := range records {
		buf = frame(buf, p)
	}
	fresh, err := os.CreateTemp(filepath.Dir(f.path), filepath.Base(f.path)+".*")
	if err != nil {
		return err
	}
	_, err = fresh.Write(buf)
	if err = errors.Join(err, fresh.Sync()); err == nil {
		err = os.Rename(fresh.Name(), f.path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(f.path))
	}
	if err != nil {
		return errors.Join(err, fresh.Close(), os.Remove(fresh.Name()))
	}
	if f.file != nil {
		err = f.file.Close()
	}
	f.file, f.size, f.synced = fresh, int64(len(buf)), int64(len(buf))
	return err
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Append writes records. With durable they are on disk when it returns; without, they
// survive the end of the program, not that of the machine.
func (f *File) Append(durable bool, records ...sexp.Plist) error {
	if err := f.mend(); err != nil {
		return err
	}
	var buf []byte
	for _, p := range records {
		buf = frame(buf, p)
	}
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
