package proto

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"passepartout/internal/sexp"
)

// Framing limits.
const (
	HeaderLen  = 6        // hex digits before every payload
	MaxPayload = 0xFFFFFF // bytes, the most six digits can say
	// MaxGreeting bounds frames of a peer that has not introduced itself, so
	// that strangers cannot make the daemon hold megabytes.
	MaxGreeting = 64 << 10
	// maxGap is how much white space may stand between frames, for people who
	// type them.
	maxGap = 64
)

// wireLimits bound what a frame may hold besides its bytes. They are what keeps
// a frame of a million parentheses or symbols cheap to refuse; ten thousand open
// questions fit.
var wireLimits = sexp.Limits{Depth: 64, Items: 1 << 19, Symbols: 4096}

// A FrameError says why a peer's bytes are no frame. After one the stream has
// lost its footing and must be closed.
type FrameError struct {
	Code string // stable: "frame.header", "frame.size", "frame.body", "frame.shape"
	Err  error
}

func (e *FrameError) Error() string { return e.Code + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *FrameError) Unwrap() error { return e.Err }

func frameErrorf(code, format string, args ...any) error {
	return &FrameError{code, fmt.Errorf(format, args...)}
}

// AppendFrame appends the frame of v to dst: its printed length in bytes as six
// upper-case hex digits, then its canonical print.
func AppendFrame(dst []byte, v sexp.Value) ([]byte, error) {
	start := len(dst)
	dst = append(dst, "000000"...)
	dst = sexp.AppendValue(dst, v)
	n := len(dst) - start - HeaderLen
	if n > MaxPayload {
		return dst[:start], frameErrorf("frame.size", "message of %d bytes: want at most %d", n, MaxPayload)
	}
	putHex(dst[start:start+HeaderLen], n)
	return dst, nil
}

func putHex(dst []byte, n int) {
	for i := HeaderLen - 1; i >= 0; i-- {
		dst[i] = "0123456789ABCDEF"[n&15]
		n >>= 4
	}
}

// A Reader reads frames from a stream. It is not safe for concurrent use.
type Reader struct {
	br  *bufio.Reader
	max int
	buf bytes.Buffer
}

// NewReader returns a reader that refuses payloads longer than most bytes.
func NewReader(r io.Reader, most int) *Reader {
	return &Reader{br: bufio.NewReaderSize(r, 4096), max: min(most, MaxPayload)}
}

// Allow sets the longest payload accepted from here on.
func (r *Reader) Allow(most int) { r.max = min(most, MaxPayload) }

// Wait blocks until the next frame has begun, so that a caller can put a deadline
// on the frame but none on the silence before it. It returns io.EOF at a clean end.
func (r *Reader) Wait() error {
	for range maxGap {
		b, err := r.br.Peek(1)
		if err != nil {
			return err
		}
		if !isSpace(b[0]) {
			return nil
		}
		if _, err := r.br.Discard(1); err != nil {
			return err
		}
	}
	return frameErrorf("frame.header", "more than %d blanks between frames", maxGap)
}

// Next reads one frame's value. A clean end between frames is io.EOF; anything
// else that is not a frame is a [*FrameError].
func (r *Reader) Next() (sexp.Value, error) {
	if err := r.Wait(); err != nil {
		return nil, err
	}
	n, err := r.header()
	if err != nil {
		return nil, err
	}
	// The buffer grows with the bytes that arrive, not with the number a peer
	// announced.
	r.buf.Reset()
	if _, err := io.CopyN(&r.buf, r.br, int64(n)); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, frameErrorf("frame.body", "stream ended after %d of %d bytes", r.buf.Len(), n)
		}
		return nil, err
	}
	lim := wireLimits
	lim.Bytes = n + 1
	v, err := sexp.Read(r.buf.Bytes(), lim)
	if r.buf.Cap() > MaxGreeting {
		r.buf = bytes.Buffer{} // one large frame must not stay with an idle client
	}
	if err != nil {
		return nil, &FrameError{"frame.body", err}
	}
	return v, nil
}

func (r *Reader) header() (int, error) {
	var h [HeaderLen]byte
	if _, err := io.ReadFull(r.br, h[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return 0, frameErrorf("frame.header", "stream ended inside the length")
		}
		return 0, err
	}
	n := 0
	for _, c := range h {
		d, ok := hexDigit(c)
		if !ok {
			return 0, frameErrorf("frame.header", "length %q: want %d hex digits", h[:], HeaderLen)
		}
		n = n<<4 | d
	}
	if n == 0 {
		return 0, frameErrorf("frame.header", "length 0: want a payload")
	}
	if n > r.max {
		return 0, frameErrorf("frame.size", "payload of %d bytes: want at most %d here", n, r.max)
	}
	return n, nil
}

func hexDigit(c byte) (int, bool) {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0'), true
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10, true
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10, true
	}
	return 0, false
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }
