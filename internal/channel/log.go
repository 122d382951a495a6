package channel

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"passepartout/internal/sexp"
)

// A logFile is an append-only file of property lists, each with its length and
// checksum. A record that is not whole was never acknowledged to anybody.
type logFile struct {
	path  string
	file  *os.File
	bytes int64
	fault error // a write failed, so what is on disk is not known
}

// frame is a record as it stands in the file.
func frame(p sexp.Plist) []byte {
	text := []byte(p.String())
	return fmt.Appendf(make([]byte, 0, len(text)+19), "%08x %08x %s\n", len(text), crc32.ChecksumIEEE(text), text)
}

// unframe takes the first record off raw; ok is false when there is no whole one.
func unframe(raw []byte) (text, rest []byte, ok bool) {
	const head = 18
	if len(raw) < head {
		return nil, nil, false
	}
	n, err1 := strconv.ParseUint(string(raw[:8]), 16, 32)
	sum, err2 := strconv.ParseUint(string(raw[9:17]), 16, 32)
	end := head + int(n)
	if err1 != nil || err2 != nil || end >= len(raw) || raw[end] != '\n' {
		return nil, nil, false
	}
	text = raw[head:end]
	return text, raw[end+1:], uint64(crc32.ChecksumIEEE(text)) == sum
}

// readLog gives every whole record of a file to apply. A torn end is left out;
// damage before it is an error, because a message taken must not look new.
func readLog(path string, apply func(sexp.Plist) error) error {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for n := 1; len(raw) > 0; n++ {
		text, rest, ok := unframe(raw)
		if !ok {
			if text != nil || wholeIn(raw) {
				return fmt.Errorf("%s: record %d is damaged: what was answered is not known; move the file away to start afresh", path, n)
			}
			return nil
		}
		p, err := sexp.ReadPlist(text, sexp.Limits{})
		if err == nil {
			err = apply(p)
		}
		if err != nil {
			return fmt.Errorf("%s: record %d: %w", path, n, err)
		}
		raw = rest
	}
	return nil
}

// wholeIn reports whether a whole record begins anywhere after a line's end.
func wholeIn(raw []byte) bool {
	for {
		i := bytes.IndexByte(raw, '\n')
		if i < 0 {
			return false
		}
		raw = raw[i+1:]
		if _, _, ok := unframe(raw); ok {
			return true
		}
	}
}

// replace puts a new file with these records in the place of the old one.
func (l *logFile) replace(records []sexp.Plist) error {
	var buf bytes.Buffer
	for _, p := range records {
		buf.Write(frame(p))
	}
	dir := filepath.Dir(l.path)
	f, err := os.CreateTemp(dir, filepath.Base(l.path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(buf.Bytes())
	if err = errors.Join(err, f.Sync()); err == nil {
		err = os.Rename(f.Name(), l.path)
	}
	if err == nil {
		err = syncDir(dir)
	}
	if err != nil {
		return errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	if l.file != nil {
		err = l.file.Close()
	}
	l.file, l.bytes = f, int64(buf.Len())
	return err
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// append writes records and returns when they are on disk. After a failure
// nothing more is taken: half a record may be in the file.
func (l *logFile) append(records ...sexp.Plist) error {
	if l.fault != nil {
		return l.fault
	}
	var buf []byte
	for _, p := range records {
		buf = append(buf, frame(p)...)
	}
	_, err := l.file.Write(buf)
	if err = errors.Join(err, l.file.Sync()); err != nil {
		l.fault = fmt.Errorf("%s cannot be written: %w", l.path, err)
		return l.fault
	}
	l.bytes += int64(len(buf))
	return nil
}

func (l *logFile) close() error {
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file, l.fault = nil, errors.New("the record of the channel is closed")
	return err
}
