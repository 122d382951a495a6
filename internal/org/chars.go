package org

import (
	"unicode"
	"unicode/utf8"
)

// The character classes below are Emacs's, as its syntax tables define them for
// Org buffers; Go's unicode classes differ in the details that decide tags,
// emphasis and plain links.

// alnum is Emacs's [:alnum:].
func alnum(r rune) bool {
	if r < utf8.RuneSelf {
		return asciiAlnum(byte(r))
	}
	return unicode.In(r, unicode.L, unicode.M, unicode.Nl, unicode.Nd)
}

func asciiAlnum(c byte) bool { return asciiLetter(c) || asciiDigit(c) }

func asciiLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func asciiDigit(c byte) bool { return c >= '0' && c <= '9' }

// wordChar is word syntax in an Org buffer.
func wordChar(r rune) bool {
	if r < utf8.RuneSelf {
		return asciiAlnum(byte(r)) || r == '$' || r == '%' || r == '\''
	}
	return !unicode.In(r, unicode.P, unicode.S, unicode.Cf) && !unicode.IsSpace(r)
}

// spaceChar is whitespace syntax.
func spaceChar(r rune) bool {
	switch r {
	case ' ', '\t', '\n', '\r', '\f', 0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000:
		return true
	}
	return r >= 0x2000 && r <= 0x200b
}

// punctChar is [:punct:].
func punctChar(r rune) bool {
	if r < utf8.RuneSelf {
		return r > ' ' && r < 0x7f && !asciiAlnum(byte(r))
	}
	return !wordChar(r)
}

func tagChar(r rune) bool {
	return r == '_' || r == '@' || r == '#' || r == '%' || r == ':' || alnum(r)
}

func blank(c byte) bool { return c == ' ' || c == '\t' }

// skipBlank returns the first offset in [i,e) that is not a space or tab.
func skipBlank(b []byte, i, e int) int {
	for i < e && blank(b[i]) {
		i++
	}
	return i
}

// trimRight returns the end of b[s:e] without trailing spaces and tabs.
func trimRight(b []byte, s, e int) int {
	for e > s && blank(b[e-1]) {
		e--
	}
	return e
}

// trimSpan narrows [s,e) by blanks and line ends on both sides.
func trimSpan(b []byte, s, e int) Span {
	ws := func(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
	for s < e && ws(b[s]) {
		s++
	}
	for e > s && ws(b[e-1]) {
		e--
	}
	return Span{s, e}
}

// hasFold reports whether b[i:] starts with s, ignoring ASCII case.
func hasFold(b []byte, i int, s string) bool {
	if i+len(s) > len(b) {
		return false
	}
	for k := range len(s) {
		if upper(b[i+k]) != upper(s[k]) {
			return false
		}
	}
	return true
}

func upper(c byte) byte {
	if c >= 'a' && c <= 'z' {
		return c - 'a' + 'A'
	}
	return c
}

// wordRun returns the end of the run of word characters, - and _ that starts at i.
func wordRun(b []byte, i, e int) int {
	for i < e {
		r, n := utf8.DecodeRune(b[i:e])
		if r != '-' && r != '_' && !wordChar(r) {
			break
		}
		i += n
	}
	return i
}

// nonBlankRun returns the end of the run of bytes that are neither space nor tab.
func nonBlankRun(b []byte, i, e int) int {
	for i < e && !blank(b[i]) {
		i++
	}
	return i
}
