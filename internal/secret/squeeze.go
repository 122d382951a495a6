package secret

import (
	b32 "encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// A secret need not stand in one piece to be told: a line's end, quotes and a plus sign, blanks or marks that cannot be seen between its
// letters change nothing for whoever reads it. A known value is looked for among the letters and digits alone; a vendor's token, whose
// form is all that is known of it, only where one run of letters meets the next over such a seam.

// bareSpellings are the letters and digits of a value's spellings. Those too short, or too much like a word, are found by themselves or not at all.
func bareSpellings(rule, v string) []knownValue {
	spelt := []string{v, hex.EncodeToString([]byte(v)), strings.TrimRight(b32.StdEncoding.EncodeToString([]byte(v)), "=")}
	for shift := range 3 {
		spelt = append(spelt, shifted(base64.StdEncoding, v, shift))
	}
	var out []knownValue
	for _, s := range spelt {
		const least, leastWord = 8, 12
		bare, _ := squeeze(s)
		if len(bare) >= leastWord || len(bare) >= least && strings.ContainsAny(bare, "0123456789") {
			out = append(out, knownValue{name: rule, spelling: bare, fold: true})
		}
	}
	return out
}

// squeeze keeps the letters and digits of a text, in lower case and their usual width, and says where each stood.
func squeeze(s string) (string, []int32) {
	b := make([]byte, 0, len(s))
	offset := make([]int32, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r < 0xFF01 || r > 0xFF5E {
				i += n - 1
				continue
			}
			c = byte(r - 0xFF01 + '!')
			if alnum[c] {
				b, offset = append(b, lower(c)), append(offset, int32(i))
			}
			i += n - 1
			continue
		}
		if alnum[c] {
			b, offset = append(b, lower(c)), append(offset, int32(i))
		}
	}
	return string(b), offset
}

// squeezed finds known values whatever stands between their letters and digits.
func (r *run) squeezed(text string) {
	if r.scanner.bare == nil {
		return
	}
	bare, offset := squeeze(text)
	r.scanner.bare.find(bare, func(k *knownValue, end int) {
		start, last := int(offset[end-len(k.spelling)]), int(offset[end-1])
		_, n := utf8.DecodeRuneInString(text[last:])
		r.found = append(r.found, Match{Rule: "vault-" + k.name, Class: Known, Start: start, End: last + n})
	})
}

// Bounds of what is put together at seams.
const (
	minPiece  = 6   // characters on either side of a seam
	mostSeams = 16  // in one token
	mostPiece = 512 // bytes of the pieces together
)

// cuts are the bytes with which what cuts a token in two can begin.
var cuts = setOf("\n\r\\\"'`\xc2\xe2\xef")

// seams puts the pieces of tokens together that a line's end or the signs between two string literals cut apart.
func (r *run) seams(text string) {
	if r.scanner.triggers == nil {
		return
	}
	for i := minPiece; i < len(text); i++ {
		if !cuts[text[i]] || !urlSafe[text[i-1]] {
			continue
		}
		start := i
		for start > 0 && urlSafe[text[start-1]] && i-start < mostPiece {
			start--
		}
		if i-start < minPiece {
			continue
		}
		pieces, size, end := []string{text[start:i]}, i-start, i
		for range mostSeams {
			gap := seam(text[end:])
			n := urlSafe.runLen(text, end+gap, mostPiece)
			if gap == 0 || n < minPiece || size+n > mostPiece {
				break
			}
			pieces, size = append(pieces, text[end+gap:end+gap+n]), size+n
			end += gap + n
		}
		if len(pieces) > 1 {
			r.piecedTogether(strings.Join(pieces, ""), start, end)
			i = end - 1
		}
	}
}

// piecedTogether scans what stood in pieces between two offsets. Words run together too, so only what has a form of its own counts.
func (r *run) piecedTogether(joined string, start, end int) {
	c := cursor{text: joined}
	r.scanner.triggers.find(joined, func(t *trigger, at int) {
		c.start, c.end = at-len(t.word), at
		if t.exact && joined[c.start:at] != t.word {
			return
		}
		if m, ok := t.rule(&c); ok && m.Class == Token {
			m.Start, m.End = start, end
			r.found = append(r.found, m)
		}
	})
}

// seam returns the length of what cuts a token in two at the start of s, 0 when it is none: a line's end with the indent after it, the end of one
// string literal and the beginning of the next, or marks that take no room.
func seam(s string) int {
	i, quotes := 0, 0
	for i < len(s) && i < 64 {
		switch c := s[i]; {
		case c == '\n' || c == '\r' || c == '\\':
			quotes = max(quotes, 2)
			i++
		case c == ' ' || c == '\t' || c == '+' || c == '.' || c == '&':
			i++
		case c == '"' || c == '\'' || c == '`':
			quotes++
			i++
		case strings.HasPrefix(s[i:], "\u200b"), strings.HasPrefix(s[i:], "\u2060"), strings.HasPrefix(s[i:], "\ufeff"):
			quotes = max(quotes, 2)
			i += 3
		case strings.HasPrefix(s[i:], "\u00ad"):
			quotes = max(quotes, 2)
			i += 2
		default:
			if quotes < 2 {
				return 0
			}
			return i
		}
	}
	return 0
}
