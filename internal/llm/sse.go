package llm

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Limits of a stream.
const (
	maxEvent  = 4 << 20  // bytes of one event
	maxStream = 64 << 20 // bytes of one answer
)

// errDone is returned by a consumer that has what it needs.
var errDone = errors.New("the answer is complete")

// readEvents reads a stream of server-sent events. Lines end in LF, CR LF or CR;
// lines of comment keep the connection alive and mean nothing; several data lines
// make one event; an event that the end of the stream cut off before its blank
// line is still given, because its data may be whole.
func readEvents(r io.Reader, each func(name string, data []byte) error) error {
	lines := newLines(r)
	var name string
	var data []byte
	some := false
	flush := func() error {
		defer func() { name, data, some = "", nil, false }()
		if !some {
			return nil
		}
		return each(name, data)
	}
	first := true
	for {
		line, err := lines.next()
		if first {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
			first = false
		}
		if errors.Is(err, io.EOF) {
			return done(flush())
		}
		if err != nil {
			return err
		}
		if len(line) == 0 {
			if err := flush(); err != nil {
				return done(err)
			}
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			name = string(value)
		case "data":
			if some {
				data = append(data, '\n')
			}
			data, some = append(data, value...), true
			if len(data) > maxEvent {
				return fmt.Errorf("an event of more than %d bytes", maxEvent)
			}
		}
	}
}

// readLines reads a stream of JSON values, one a line.
func readLines(r io.Reader, each func(line []byte) error) error {
	lines := newLines(r)
	for {
		line, err := lines.next()
		if len(bytes.TrimSpace(line)) > 0 {
			if err := each(line); err != nil {
				return done(err)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// done is the error of a consumer, nil for one that is satisfied.
func done(err error) error {
	if errors.Is(err, errDone) {
		return nil
	}
	return err
}

// lines splits a stream at any of the three line ends.
type lines struct {
	r    *bufio.Reader
	skip bool // a CR ended the last line: a LF that follows belongs to it
	read int
}

func newLines(r io.Reader) *lines { return &lines{r: bufio.NewReader(r)} }

// next returns a line without its end. The last line, if it has no end, comes with
// io.EOF.
func (l *lines) next() ([]byte, error) {
	var line []byte
	for {
		c, err := l.r.ReadByte()
		if err != nil {
			return line, err
		}
		if l.read++; l.read > maxStream || len(line) > maxEvent {
			return nil, fmt.Errorf("an answer of more than %d bytes, or a line of more than %d", maxStream, maxEvent)
		}
		if l.skip {
			l.skip = false
			if c == '\n' {
				continue
			}
		}
		switch c {
		case '\n':
			return line, nil
		case '\r':
			l.skip = true
			return line, nil
		}
		line = append(line, c)
	}
}
