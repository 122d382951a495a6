package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"passepartout/internal/sexp"
)

// An Entry is one verified entry of a journal.
type Entry struct {
	Seq     Seq
	At      time.Time
	Prev    sexp.Digest // sum of the entry before, zero for the first
	Sum     sexp.Digest
	Body    sexp.Plist
	Segment string // file name
	Line    int    // from 1
}

// The parts of a line, around the number, time, sum and body.
const (
	lineSeq  = "(:SEQ "
	lineAt   = ` :AT "`
	linePrev = `" :PREV "`
	lineBody = `" :ENTRY `
	lineSum  = ") ;"

	hexLen     = 2 * sha256.Size
	trailerLen = len(lineSum) - 1 + hexLen // from the blank to the end of the line
	maxLine    = 3*sexp.MaxBytes + 1024    // an entry of nothing but control characters
)

// bodyLimits admit more than any reader of messages: what was accepted once
// must be readable forever.
var bodyLimits = sexp.Limits{Depth: 10_000, Items: sexp.MaxBytes, Symbols: sexp.MaxBytes}

// A chain is the end of a journal as far as it has been read or written.
type chain struct {
	seq Seq
	sum sexp.Digest
}

// encodeBody prints an entry for its line. An entry that could not be read
// again is refused here, since a line once written stays.
func encodeBody(entry sexp.Plist) ([]byte, error) {
	text := sexp.AppendValue(nil, entry.List())
	if _, err := sexp.ReadPlist(text, bodyLimits); err != nil {
		return nil, fmt.Errorf("journal entry cannot be read back: %w", err)
	}
	return appendPictures(make([]byte, 0, len(text)), text), nil
}

// append writes the line that follows c and returns the new end.
func (c chain) append(dst []byte, at time.Time, body []byte) ([]byte, chain) {
	from := len(dst)
	dst = append(dst, lineSeq...)
	dst = strconv.AppendUint(dst, uint64(c.seq)+1, 10)
	dst = append(dst, lineAt...)
	dst = at.UTC().AppendFormat(dst, time.RFC3339Nano)
	dst = append(dst, linePrev...)
	dst = hex.AppendEncode(dst, c.sum[:])
	dst = append(dst, lineBody...)
	dst = append(dst, body...)
	dst = append(dst, ')')
	next := chain{c.seq + 1, sha256.Sum256(dst[from:])}
	dst = append(dst, " ;"...)
	dst = hex.AppendEncode(dst, next.sum[:])
	return append(dst, '\n'), next
}

var errTorn = errors.New("the line is not whole")

// parseLine takes a line without its line break apart and checks its own sum.
// The body is left as text, since opening a journal has no use for it. An
// error that is errTorn says that this line was never finished.
func parseLine(line []byte) (Entry, []byte, error) {
	var e Entry
	if len(line) < trailerLen || !bytes.HasSuffix(line[:len(line)-hexLen], []byte(lineSum)) {
		return e, nil, fmt.Errorf("%w: want it to end in ) ; and %d hex digits", errTorn, hexLen)
	}
	text := line[:len(line)-trailerLen]
	want, err := parseSum(line[len(line)-hexLen:])
	if err != nil {
		return e, nil, fmt.Errorf("%w: %w", errTorn, err)
	}
	if e.Sum = sha256.Sum256(text); e.Sum != want {
		return e, nil, fmt.Errorf("%w: its sum is %s, want %s", errTorn, e.Sum, want)
	}
	rest, ok := bytes.CutPrefix(text[:len(text)-1], []byte(lineSeq))
	seq, rest, ok1 := bytes.Cut(rest, []byte(lineAt))
	at, rest, ok2 := bytes.Cut(rest, []byte(linePrev))
	prev, body, ok3 := bytes.Cut(rest, []byte(lineBody))
	if !ok || !ok1 || !ok2 || !ok3 {
		return e, nil, errors.New("want :SEQ, :AT, :PREV and :ENTRY in this order")
	}
	n, err := strconv.ParseUint(string(seq), 10, 64)
	if err != nil {
		return e, nil, fmt.Errorf("sequence number: %w", err)
	}
	if e.At, err = time.Parse(time.RFC3339Nano, string(at)); err != nil {
		return e, nil, fmt.Errorf("time: %w", err)
	}
	if e.Prev, err = parseSum(prev); err != nil {
		return e, nil, err
	}
	e.Seq = Seq(n)
	return e, body, nil
}

// parseSum is strict about case: a sum has one spelling.
func parseSum(text []byte) (sexp.Digest, error) {
	d, err := sexp.ParseDigest(string(text))
	if err == nil && d.String() != string(text) {
		return d, fmt.Errorf("sum %s: want lower-case hex digits", text)
	}
	return d, err
}

// follows checks that e is the entry after c.
func (c chain) follows(e Entry) error {
	if e.Seq != c.seq+1 {
		return fmt.Errorf("entry %d follows entry %d: want %d", e.Seq, c.seq, c.seq+1)
	}
	if e.Prev != c.sum {
		return fmt.Errorf("entry %d names %s as the sum of the one before, which is %s", e.Seq, e.Prev, c.sum)
	}
	return nil
}

// decodeBody undoes encodeBody.
func decodeBody(body []byte) (sexp.Plist, error) {
	text, err := removePictures(body)
	if err != nil {
		return sexp.Plist{}, err
	}
	p, err := sexp.ReadPlist(text, bodyLimits)
	if err != nil {
		return sexp.Plist{}, fmt.Errorf("entry: %w", err)
	}
	return p, nil
}

// Pictures of control characters are three bytes each, and share two.
const (
	pictureLead = "\xe2\x90"
	pictureDel  = 0xa1 // third byte of U+2421
	quoteLast   = 0xa6 // third byte of U+2426
)

func isPicture(third byte) bool { return third >= 0x80 && third <= 0x9f || third == pictureDel }

// appendPictures writes text, which is UTF-8, without control characters. A
// character below U+0020 becomes its picture, U+2400 and on, and U+007F becomes
// U+2421. Where the text itself has one of those pictures, or U+2426, a U+2426
// goes before it.
func appendPictures(dst, text []byte) []byte {
	run := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c < 0x20 || c == 0x7f:
			dst = append(dst, text[run:i]...)
			p := 0x2400 + rune(c)
			if c == 0x7f {
				p = 0x2421
			}
			dst = utf8.AppendRune(dst, p)
			run = i + 1
		case c == pictureLead[0] && bytes.HasPrefix(text[i:], []byte(pictureLead)) && i+2 < len(text):
			if t := text[i+2]; isPicture(t) || t == quoteLast {
				dst = append(dst, text[run:i]...)
				dst = append(dst, pictureLead...)
				dst = append(dst, quoteLast)
				run = i
			}
			i += 2
		}
	}
	return append(dst, text[run:]...)
}

// removePictures undoes appendPictures.
func removePictures(text []byte) ([]byte, error) {
	if !bytes.Contains(text, []byte(pictureLead)) {
		return text, nil
	}
	out := make([]byte, 0, len(text))
	for len(text) > 0 {
		i := bytes.Index(text, []byte(pictureLead))
		if i < 0 || i+2 >= len(text) {
			break
		}
		out = append(out, text[:i]...)
		third, next := text[i+2], text[i+3:]
		switch {
		case third == pictureDel:
			out = append(out, 0x7f)
		case isPicture(third):
			out = append(out, third-0x80)
		case third == quoteLast:
			if len(next) < 3 || string(next[:2]) != pictureLead || !isPicture(next[2]) && next[2] != quoteLast {
				return nil, errors.New("U+2426 in an entry: want a control picture after it")
			}
			out = append(out, next[:3]...)
			next = next[3:]
		default:
			out = append(out, text[i:i+3]...)
		}
		text = next
	}
	return append(out, text...), nil
}
