package secret

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"io"
	"strings"
	"unicode/utf8"
)

// view is a text to scan and where it came from in the text before it.
type view struct {
	text   string
	parent *view
	start  int     // with no offsets: the span in the parent that decodes to this text
	end    int     //
	offset []int32 // with offsets: where each byte came from
}

// origin translates a span into the outermost text.
func (v *view) origin(start, end int) (int, int) {
	for v.parent != nil {
		if v.offset != nil {
			start, end = int(v.offset[start]), int(v.offset[end])
		} else {
			start, end = v.start, v.end
		}
		v = v.parent
	}
	return start, end
}

// decode scans what the text hides: whole-text escapes first, then every run that looks like base64 or hexadecimal.
func (r *run) decode(v *view, depth int) {
	if depth == 0 {
		r.literals(v)
	}
	if depth >= maxDepth {
		return
	}
	for _, unescape := range [...]func(string) (string, []int32){unpercent, unbackslash, unentity} {
		if r.budget < len(v.text) {
			return
		}
		if text, offset := unescape(v.text); offset != nil {
			r.budget -= len(text)
			r.view(&view{text: text, parent: v, offset: offset}, depth+1)
		}
	}
	r.runs(v, depth)
}

// minRun is the shortest encoded run worth decoding: a dozen bytes.
const minRun = 16

// runs decodes base64 and hexadecimal runs.
func (r *run) runs(v *view, depth int) {
	t := v.text
	for i, n := base64Body.next(t, 0, minRun); n > 0; i, n = base64Body.next(t, i+n, minRun) {
		n = wrapped(t, i, n)
		if r.budget < n {
			return
		}
		if dec := decodeRun(t[i : i+n]); dec != "" {
			r.budget -= len(dec)
			r.view(&view{text: dec, parent: v, start: i, end: i + n + padding.runLen(t, i+n, 2)}, depth+1)
		}
	}
}

var (
	base64Body = setOf("0-9a-zA-Z+/_\x2d")
	padding    = setOf("=")
)

// wrapped extends a run over line ends, as encoders break lines at 64 or 76 characters.
func wrapped(t string, i, n int) int {
	for n >= 60 {
		j := i + n
		if j < len(t) && t[j] == '\r' {
			j++
		}
		if j >= len(t) || t[j] != '\n' {
			break
		}
		j++
		m := 0
		for j+m < len(t) && base64Body[t[j+m]] {
			m++
		}
		if m < 4 {
			break
		}
		n = j + m - i
		if m < 60 {
			break
		}
	}
	return n
}

// decodeRun returns the text a run stands for, or nothing when it stands for no text.
func decodeRun(s string) string {
	if strings.ContainsAny(s, "\r\n") {
		s = strings.NewReplacer("\r", "", "\n", "").Replace(s)
	}
	if anyHex.all(s) && len(s)%2 == 0 {
		if b, err := hex.DecodeString(s); err == nil {
			if t := asText(b); t != "" {
				return t
			}
		}
	}
	enc := base64.RawStdEncoding
	if strings.ContainsAny(s, "-_") {
		enc = base64.RawURLEncoding
	}
	if len(s)%4 == 1 { // no encoding has this length: the last character belongs to something else
		s = s[:len(s)-1]
	}
	if len(s) < minRun {
		return ""
	}
	// Most runs are not text: look at the beginning before decoding it all.
	head, err := enc.DecodeString(s[:12])
	if err != nil || !gzipped(head) && !utf8Start(head) {
		return ""
	}
	b, err := enc.DecodeString(s)
	if err != nil {
		return ""
	}
	return asText(b)
}

func gzipped(b []byte) bool { return len(b) > 2 && b[0] == 0x1f && b[1] == 0x8b }

func utf8Start(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\n' && c != '\t' && c != '\r' || c == 0x7f {
			return false
		}
	}
	return true
}

// asText returns b as text when it is text, unpacking gzip within bounds.
func asText(b []byte) string {
	if gzipped(b) {
		zr, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return ""
		}
		// A damaged or cut stream still yields what precedes the damage.
		b, _ = io.ReadAll(io.LimitReader(zr, 1<<20))
	}
	if len(b) < 8 || !utf8Start(b) || !utf8.Valid(b) {
		return ""
	}
	return string(b)
}

// unpercent decodes percent-encoding; no offsets when there is none.
func unpercent(s string) (string, []int32) {
	if strings.IndexByte(s, '%') < 0 {
		return s, nil
	}
	changed := false
	b := make([]byte, 0, len(s))
	offset := make([]int32, 0, len(s)+1)
	for i := 0; i < len(s); {
		offset = append(offset, int32(i))
		if s[i] == '%' && i+2 < len(s) && anyHex[s[i+1]] && anyHex[s[i+2]] {
			b = append(b, unhex(s[i+1])<<4|unhex(s[i+2]))
			i += 3
			changed = true
			continue
		}
		b = append(b, s[i])
		i++
	}
	if !changed {
		return s, nil
	}
	return string(b), append(offset, int32(len(s)))
}

// unentity decodes the numbered characters of HTML and XML; no offsets when there are none.
func unentity(s string) (string, []int32) {
	if !strings.Contains(s, "&#") {
		return s, nil
	}
	changed := false
	b := make([]byte, 0, len(s))
	offset := make([]int32, 0, len(s)+1)
	for i := 0; i < len(s); {
		r, n := entity(s[i:])
		if n == 0 {
			b, offset = append(b, s[i]), append(offset, int32(i))
			i++
			continue
		}
		before := len(b)
		b = utf8.AppendRune(b, r)
		for range len(b) - before {
			offset = append(offset, int32(i))
		}
		i += n
		changed = true
	}
	if !changed {
		return s, nil
	}
	return string(b), append(offset, int32(len(s)))
}

// entity decodes &#65; or &#x41; at the start of s; n is 0 when there is none.
func entity(s string) (r rune, n int) {
	const most = 8 // digits
	if !strings.HasPrefix(s, "&#") {
		return 0, 0
	}
	base, i := rune(10), 2
	if i < len(s) && s[i]|0x20 == 'x' {
		base, i = 16, 3
	}
	start := i
	for i < len(s) && i-start < most && (digits[s[i]] || base == 16 && anyHex[s[i]]) {
		r = r*base + rune(unhex(s[i]))
		i++
	}
	if i == start || r > utf8.MaxRune {
		return 0, 0
	}
	if i < len(s) && s[i] == ';' {
		i++ // which readers do without
	}
	return r, i
}

// unbackslash undoes the escapes of JSON, C and the shell.
func unbackslash(s string) (string, []int32) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, nil
	}
	b := make([]byte, 0, len(s))
	offset := make([]int32, 0, len(s)+1)
	for i := 0; i < len(s); {
		if s[i] != '\\' || i+1 == len(s) {
			b, offset = append(b, s[i]), append(offset, int32(i))
			i++
			continue
		}
		r, n := escape(s[i:])
		before := len(b)
		if r >= 0 {
			b = utf8.AppendRune(b, r)
		}
		for range len(b) - before {
			offset = append(offset, int32(i))
		}
		i += n
	}
	return string(b), append(offset, int32(len(s)))
}

// escape decodes the escape at the start of s; a negative rune means that it stands for nothing.
func escape(s string) (rune, int) {
	width := 0
	switch s[1] {
	case 'n':
		return '\n', 2
	case 't':
		return '\t', 2
	case 'r':
		return '\r', 2
	case '\n':
		return -1, 2
	case '0', '1', '2', '3':
		if len(s) >= 4 && octal.all(s[2:4]) {
			return rune(s[1]-'0')<<6 | rune(s[2]-'0')<<3 | rune(s[3]-'0'), 4
		}
	case 'u':
		width = 4
	case 'x':
		width = 2
	}
	if width > 0 && len(s) >= 2+width && anyHex.all(s[2:2+width]) {
		v := rune(0)
		for _, c := range []byte(s[2 : 2+width]) {
			v = v<<4 | rune(unhex(c))
		}
		return v, 2 + width
	}
	if s[1] >= utf8.RuneSelf {
		return -1, 1
	}
	return rune(s[1]), 2
}

func unhex(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	case c <= 'F':
		return c - 'A' + 10
	}
	return c - 'a' + 10
}

// literals finds long random string literals that no keyword announces.
func (r *run) literals(v *view) {
	if r.scanner.triggers == nil {
		return
	}
	t := v.text
	const least = 32
	for i, n := urlSafe.next(t, 0, least); n > 0; i, n = urlSafe.next(t, i+n, least) {
		if n <= 128 && enclosed(t, i, i+n) && keyLiteral(t[i:i+n]) && !digestBefore(t, i) {
			r.add(v, Match{Rule: "random-literal", Class: Generic, Start: i, End: i + n})
		}
	}
}

// enclosed reports whether a span is a whole quoted literal that something is set to, rather than one line of many.
func enclosed(t string, start, end int) bool {
	if start < 2 || end >= len(t) || t[start-1] != t[end] || strings.IndexByte("\"'`", t[end]) < 0 {
		return false
	}
	before := strings.TrimRight(t[max(0, start-12):start-1], " \t\n")
	return before != "" && strings.IndexByte("=:([", before[len(before)-1]) >= 0
}

// keyLiteral holds for a literal of all three kinds whose neighbours are odd throughout: no name and no hash is like that.
func keyLiteral(s string) bool {
	p := measure(s)
	if p.digit < 3 || p.upper < 4 || p.lower < 4 || p.other > 3 || p.longest > 4 || p.hex == p.n {
		return false
	}
	return 100*p.breaks/(p.n-1) >= 35 && !stuffed(s) && !alphabet(s)
}

// alphabet reports a list of characters in order, as encoders have.
func alphabet(s string) bool {
	low := strings.ToLower(s)
	return strings.Contains(low, "efghijk") || strings.Contains(low, "0123456") || strings.Contains(low, "1234567")
}

// publicWords announce hashes, identifiers and other random text that is no secret.
var publicWords = []string{
	"sha", "integrity", "checksum", "hash", "digest", "md5", "fingerprint", "thumbprint", "commit", "etag", "nonce", "base64",
	"image", "font", "blob", "cert", "public", "pub",
	"pin", "url", "cid", "csrf", "authenticity", "pagetoken", "page_token", "cursor", "continuation", "id\"", "id'", "id:", "id=", "id =",
}

// digestBefore reports whether the line says that what follows is a hash or other public data.
func digestBefore(t string, at int) bool {
	line := strings.ToLower(t[max(0, at-60):at])
	if i := strings.LastIndexByte(line, '\n'); i >= 0 {
		line = line[i:]
	}
	for _, w := range publicWords {
		if strings.Contains(line, w) {
			return true
		}
	}
	return false
}
