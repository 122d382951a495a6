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

// parseClock reads "CLOCK: [from]--[to] =>  1:00" in its forms: running, closed,
// a range without duration, and a duration alone. What counts as a clock is
// decided by the whole line, as Emacs's expression does it, so two clocks joined
// on one line are one clock with the first one's times.
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
	body := durationStart(b, v, e) // where " => H:MM" begins, e without one
	switch {
	case body == v-1: // a duration alone
		return clock{duration: Span{skipBlank(b, v+2, e), e}}, true
	case b[v] != '[' || b[body-1] != ']':
		return c, false
	case body == e && !isDateText(b[v:e]), body < e && !isDateRange(b[v:body]):
		return c, false
	}
	c.stamp = Span{v, v + stampLen(b[v:e])}
	if j := bytes.Index(b[c.stamp.End:e], []byte(" => ")); j >= 0 {
		d := skipBlank(b, c.stamp.End+j+4, e)
		if nonBlankRun(b, d, e) == e {
			c.duration = Span{d, e}
		}
	}
	return c, true
}

// durationStart is the end of what precedes blanks, "=>", blanks and H:MM at the
// end of b[v:e]; v-1 if nothing does; e if the line does not end so.
func durationStart(b []byte, v, e int) int {
	d := e
	for d > v && !blank(b[d-1]) {
		d--
	}
	arrow := trimRight(b, v, d)
	if !isDuration(b[d:e]) || arrow == d || arrow-v < 2 || b[arrow-1] != '>' || b[arrow-2] != '=' {
		return e
	}
	if arrow-2 == v {
		return v - 1
	}
	if end := trimRight(b, v, arrow-2); end < arrow-2 {
		return end
	}
	return e
}

// isDateText accepts [date] and [date anything].
func isDateText(b []byte) bool {
	d := dateEnd(b[1:])
	return d > 0 && len(b) > d+1 && (b[d+1] == ' ' || b[d+1] == ']' && len(b) == d+2)
}

// isDateRange accepts two date texts joined by "--".
func isDateRange(b []byte) bool {
	for at := 0; ; {
		j := bytes.Index(b[at:], []byte("]--["))
		if j < 0 {
			return false
		}
		at += j + 1
		if isDateText(b[:at]) && isDateText(b[at+2:]) {
			return true
		}
	}
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
