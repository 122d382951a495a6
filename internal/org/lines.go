package org

import "bytes"

// Readers for lines that need more than a prefix to be recognised.

// bulletEnd is the offset after the list bullet of the line [p,e), or -1.
func bulletEnd(b []byte, p, e int) int {
	q := skipBlank(b, p, e)
	if q >= e {
		return -1
	}
	k := q + 1
	switch c := b[q]; {
	case c == '-' || c == '+':
	case c == '*':
		if q == p {
			return -1
		}
	case asciiDigit(c):
		for k < e && asciiDigit(b[k]) {
			k++
		}
		if k >= e || b[k] != '.' && b[k] != ')' {
			return -1
		}
		k++
	default:
		return -1
	}
	if k == e || blank(b[k]) {
		return k
	}
	return -1
}

// item is the first line of a list item, taken apart.
type item struct {
	indent   int  // column of the bullet, tabs to the next multiple of eight
	bullet   Span // "-", "1." …
	counter  Span // what stands in [@…]
	checkbox byte // ' ', 'X', '-' or 0
	tag      Span // before " :: "
	text     int  // start of the item's own text
}

// parseItem reads a line for which bulletEnd found a bullet.
func parseItem(b []byte, p, e int) item {
	q, k := skipBlank(b, p, e), bulletEnd(b, p, e)
	it := item{indent: column(b[p:q]), bullet: Span{q, k}}
	s := skipBlank(b, k, e)
	if c := counterEnd(b, s, e); c > 0 {
		it.counter = Span{s + 2, c - 1}
		s = skipBlank(b, c, e)
	}
	if s+3 <= e && b[s] == '[' && b[s+2] == ']' && (b[s+1] == ' ' || b[s+1] == 'X' || b[s+1] == '-') && (s+3 == e || blank(b[s+3])) {
		it.checkbox = b[s+1]
		s = skipBlank(b, s+3, e)
	}
	it.text = s
	if x := tagEnd(b, s, e); x >= 0 {
		it.tag = trimSpan(b, s, x)
		it.text = skipBlank(b, x+2, e)
	}
	return it
}

// counterEnd is the end of [@5], [@a] or [@start:5] at s, or 0.
func counterEnd(b []byte, s, e int) int {
	if s+3 >= e || b[s] != '[' || b[s+1] != '@' {
		return 0
	}
	k := s + 2
	if bytes.HasPrefix(b[k:e], []byte("start:")) {
		k += len("start:")
	}
	d := k
	for d < e && asciiDigit(b[d]) {
		d++
	}
	if d == k && d < e && asciiLetter(b[d]) {
		d++
	}
	if d == k || d >= e || b[d] != ']' {
		return 0
	}
	return d + 1
}

// tagEnd is the offset of the last "::" of [s,e) that stands alone, or -1.
func tagEnd(b []byte, s, e int) int {
	for k := e; k > s+1; {
		j := bytes.LastIndex(b[s:k], []byte("::"))
		if j < 0 {
			return -1
		}
		x := s + j
		if x > s && blank(b[x-1]) && (x+2 == e || blank(b[x+2])) {
			return x
		}
		k = x + 1
	}
	return -1
}

// column is the width of leading white space.
func column(ws []byte) int {
	n := 0
	for _, c := range ws {
		if c == '\t' {
			n = n/8*8 + 8
		} else {
			n++
		}
	}
	return n
}

// clock is a CLOCK: line, taken apart.
type clock struct{ stamp, duration Span }

// parseClock reads "CLOCK: [from]--[to] =>  1:00" in its three forms: running,
// closed, and a duration alone.
func parseClock(b []byte, q, e int) (c clock, ok bool) {
	const word = "CLOCK:"
	if !hasFold(b[:e], q, word) {
		return c, false
	}
	e = trimRight(b, q, e)
	v := skipBlank(b, q+len(word), e)
	if v == q+len(word) || v >= e {
		return c, false
	}
	if b[v] == '[' {
		first := inactiveEnd(b, v, e)
		if first < 0 {
			return c, false
		}
		if b[e-1] == ']' && (first == e || b[v+1+len("2006-01-02")] == ' ') {
			// Running, or a range without duration: Emacs takes all of it.
			c.stamp = Span{v, e}
			return c, true
		}
		if !bytes.HasPrefix(b[first:e], []byte("--[")) {
			return c, false
		}
		c.stamp = Span{v, inactiveEnd(b, first+2, e)}
		if c.stamp.End < 0 {
			return clock{}, false
		}
		v = skipBlank(b, c.stamp.End, e)
		if v == c.stamp.End {
			return c, false
		}
	}
	d := skipBlank(b, v+2, e)
	if !bytes.HasPrefix(b[v:e], []byte("=>")) || d == v+2 || !isDuration(b[d:e]) {
		return c, false
	}
	c.duration = Span{d, e}
	return c, true
}

// inactiveEnd is the end of the inactive date at p, or -1.
func inactiveEnd(b []byte, p, e int) int {
	d := dateEnd(b[p+1 : e])
	if d == 0 || p+1+d >= e {
		return -1
	}
	switch k := p + 1 + d; b[k] {
	case ']':
		return k + 1
	case ' ':
		if j := bytes.IndexByte(b[k:e], ']'); j >= 0 {
			return k + j + 1
		}
	}
	return -1
}

// isDuration accepts H:MM with any number of hours.
func isDuration(b []byte) bool {
	h := bytes.IndexByte(b, ':')
	if h < 1 || len(b) != h+3 {
		return false
	}
	for i, c := range b {
		if i != h && !asciiDigit(c) {
			return false
		}
	}
	return true
}
