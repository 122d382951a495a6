package sexp

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"math"
	"strings"
	"unicode/utf8"
)

// A Digest identifies a value: equal values have equal digests, and nobody can
// find two values that share one.
type Digest [sha256.Size]byte

// String is the digest in 64 lower-case hex digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// IsZero reports whether d was never computed.
func (d Digest) IsZero() bool { return d == Digest{} }

// ParseDigest reads what [Digest.String] prints.
func ParseDigest(s string) (Digest, error) {
	var d Digest
	if len(s) != 2*len(d) {
		return Digest{}, fmt.Errorf("digest of %d characters: want %d hex digits", len(s), 2*len(d))
	}
	if _, err := hex.Decode(d[:], []byte(s)); err != nil {
		return Digest{}, fmt.Errorf("digest %q: want %d hex digits: %w", s, 2*len(d), err)
	}
	return d, nil
}

// Sum returns the SHA-256 of v's encoding. The encoding of a value is one tag
// byte and then, n8 being a length or count as 8 bytes, big end first, and
// text being n8 followed by that many bytes of UTF-8:
//
//	N                    NIL, which is also the empty list and the symbol NIL
//	y text text          symbol: package, name
//	k text               keyword, without its colon
//	s text               string
//	i text               integer, in decimal with a minus sign if it is negative
//	f 8 bytes            float: the IEEE 754 bits, big end first
//	r text               ratio: numerator/denominator in decimal, lowest terms
//	c 4 bytes            character: its code point, big end first
//	l n8 values          list: its items, one encoding after another
//	d n8 values value    dotted list: its items, then its tail
//	v n8 values          vector: its items
//
// Every encoding says where it ends, so two different values never have the
// same one. What has no notation is encoded as what [AppendValue] prints for
// it, so that a value and its printed form have one digest.
func Sum(v Value) Digest {
	e := encoder{buf: make([]byte, 0, 512)}
	var first [16]printFrame
	open := first[:0]
	for {
		switch x := v.(type) {
		case List:
			if len(x.items) == 0 {
				e.tag('N')
				break
			}
			if x.tail != nil {
				e.tag('d')
			} else {
				e.tag('l')
			}
			e.count(len(x.items))
			open = append(open, printFrame(x))
		case Vector:
			e.tag('v')
			e.count(len(x.items))
			open = append(open, printFrame{x.items, nil})
		default:
			e.atom(v)
		}
		for len(open) > 0 && len(open[len(open)-1].items) == 0 && open[len(open)-1].tail == nil {
			open = open[:len(open)-1]
		}
		if len(open) == 0 {
			return e.sum()
		}
		if f := &open[len(open)-1]; len(f.items) > 0 {
			v, f.items = f.items[0], f.items[1:]
		} else {
			v, f.tail = f.tail, nil
		}
	}
}

// An encoder gathers small writes before they are hashed. Most values are
// hashed at one stroke.
type encoder struct {
	h   hash.Hash // nil until there is more than fits buf
	buf []byte
}

func (e *encoder) tag(t byte) { e.buf = append(e.buf, t) }

func (e *encoder) count(n int) { e.buf = binary.BigEndian.AppendUint64(e.buf, uint64(n)) }

func (e *encoder) text(s string) {
	if strings.IndexByte(s, 0) >= 0 || !utf8.ValidString(s) {
		s = clean(s)
	}
	e.count(len(s))
	e.buf = append(e.buf, s...)
	if len(e.buf) > 8<<10 {
		e.flush()
	}
}

func (e *encoder) flush() {
	if e.h == nil {
		e.h = sha256.New()
	}
	e.h.Write(e.buf)
	e.buf = e.buf[:0]
}

// number writes the digits of a number as text.
func (e *encoder) number(v Value) {
	at := len(e.buf)
	e.count(0)
	e.buf = appendAtom(e.buf, v)
	binary.BigEndian.PutUint64(e.buf[at:], uint64(len(e.buf)-at-8))
}

// clean replaces, byte for byte, what has no notation as the printer does.
func clean(s string) string {
	return strings.Map(func(c rune) rune {
		if c == 0 {
			return utf8.RuneError
		}
		return c
	}, s)
}

func (e *encoder) atom(v Value) {
	switch v := v.(type) {
	case Keyword:
		e.tag('k')
		e.text(string(v))
	case String:
		e.tag('s')
		e.text(string(v))
	case Symbol:
		if IsNil(v) {
			e.tag('N')
			return
		}
		e.tag('y')
		e.text(v.Pkg)
		e.text(v.Name)
	case Int:
		e.tag('i')
		e.number(v)
	case Ratio:
		e.tag('r')
		e.number(v)
	case Float:
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			e.tag('k')
			e.text(v.String()[1:])
			return
		}
		e.tag('f')
		e.buf = binary.BigEndian.AppendUint64(e.buf, math.Float64bits(float64(v)))
	case Char:
		if !utf8.ValidRune(rune(v)) {
			v = utf8.RuneError
		}
		e.tag('c')
		e.buf = binary.BigEndian.AppendUint32(e.buf, uint32(v))
	case List, Vector, nil:
		e.tag('N')
	}
}

func (e *encoder) sum() (d Digest) {
	if e.h == nil {
		return sha256.Sum256(e.buf)
	}
	e.flush()
	e.h.Sum(d[:0])
	return d
}
