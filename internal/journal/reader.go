package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"passepartout/internal/sexp"
)

// Segments returns how many segments the journal in dir has. They are numbered
// from 1; all but the last are finished.
func Segments(dir string) (int, error) {
	n, err := segments(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	return n, err
}

// SegmentSize returns the bytes of a segment.
func SegmentSize(dir string, number int) (int64, error) {
	st, err := os.Stat(filepath.Join(dir, segmentName(number)))
	if err != nil {
		return 0, fmt.Errorf("journal: %w", err)
	}
	return st.Size(), nil
}

// A Reader goes through a journal, segment by segment, and can go on later from
// where it stopped. Entries are verified; their bodies are read only when asked for,
// so that looking for a few among many is cheap. It belongs to one goroutine.
type Reader struct {
	dir    string
	number int
	c      *cursor // nil: the segment was not there yet
}

// ReadFrom returns a reader at the beginning of a segment. Close must be called.
func ReadFrom(dir string, segment int) *Reader { return &Reader{dir: dir, number: segment} }

// Segment is the number of the segment the last line was read from.
func (r *Reader) Segment() int { return r.number }

// Close gives up the file that is open.
func (r *Reader) Close() error {
	if r.c == nil {
		return nil
	}
	return r.c.close()
}

// Next returns the next line, valid until the next call; io.EOF when there is none
// yet. A torn end is no line; damage is a [*BrokenError].
func (r *Reader) Next() (Line, error) {
	if r.c == nil {
		c, err := openCursor(r.dir, r.number)
		if errors.Is(err, fs.ErrNotExist) {
			return Line{}, io.EOF
		}
		if err != nil {
			return Line{}, err
		}
		r.c = c
	}
	final := false // the next segment is there, so this one has ended
	for {
		e, body, err := r.c.next()
		torn := (*TornError)(nil)
		switch {
		case err == nil:
			return Line{Entry: e, body: body}, nil
		case !errors.Is(err, io.EOF) && !errors.As(err, &torn):
			return Line{}, err
		case final && torn != nil:
			return Line{}, tornInside(err)
		case final:
			r.number++
			if err := r.c.advance(); err != nil {
				return Line{}, err
			}
			final = false
			continue
		}
		if err := r.c.rewind(); err != nil {
			return Line{}, err
		}
		if _, err := os.Stat(filepath.Join(r.dir, segmentName(r.number+1))); err != nil {
			return Line{}, io.EOF
		}
		final = true
	}
}

// A Line is an entry whose body is still text. The Entry's own Body is empty.
type Line struct {
	Entry
	body []byte
}

// Has reports whether the entry holds a key with this text as its value, anywhere.
func (l Line) Has(key sexp.Keyword, text string) bool {
	mark := appendPictures(nil, sexp.AppendValue(keyMark(key), sexp.String(text)))
	return bytes.Contains(l.body, mark)
}

// Texts returns the texts that stand anywhere in the entry as values of a key.
func (l Line) Texts(key sexp.Keyword) []string {
	var out []string
	mark := append(keyMark(key), '"')
	for rest := l.body; ; {
		i := bytes.Index(rest, mark)
		if i < 0 {
			return out
		}
		rest = rest[i+len(mark)-1:]
		n := 1
		for n < len(rest) && rest[n] != '"' {
			if rest[n] == '\\' {
				n++
			}
			n++
		}
		quoted, err := removePictures(rest[:min(n+1, len(rest))])
		if err != nil {
			return out
		}
		v, err := sexp.Read(quoted, bodyLimits)
		s, ok := v.(sexp.String)
		if err != nil || !ok {
			return out // not what it looked like; the sum is right, so nobody is fooled
		}
		out = append(out, string(s))
		rest = rest[min(n+1, len(rest)):]
	}
}

// keyMark is a key as it is printed before its value. Inside a string a quotation
// mark is never printed as it is, so a mark that ends in one is a key.
func keyMark(key sexp.Keyword) []byte { return append([]byte(":"+string(key)), ' ') }

// Read returns the entry with its body.
func (l Line) Read() (Entry, error) {
	e := l.Entry
	var err error
	if e.Body, err = decodeBody(l.body); err != nil {
		return e, &BrokenError{Segment: l.Segment, Line: l.Line, Err: err}
	}
	return e, nil
}

// HasWord reports whether the entry may hold a key with this keyword as its value.
// A text that says so has it too: whoever needs to know reads the entry.
func (l Line) HasWord(key, word sexp.Keyword) bool {
	return bytes.Contains(l.body, append(keyMark(key), ":"+string(word)...))
}
