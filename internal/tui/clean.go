package tui

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// tabStop is how wide a tab is drawn; a real one would move the cursor.
const tabStop = "    "

// hidden reports whether a rune would drive the terminal or change how its
// neighbours are read, instead of showing something.
func hidden(r rune) bool {
	switch {
	case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
		return true
	case r == '\u2028', r == '\u2029', r == '\ufeff', r >= 0xFFF9 && r <= 0xFFFB:
		return true
	case r >= 0xE0000 && r <= 0xE007F: // tags: invisible copies of ASCII
		return true
	}
	return false
}

// clean makes text from anywhere safe to show. Line ends stay; tabs become
// blanks; control characters and bidirectional overrides go.
func clean(s string) string {
	if plainASCII(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for _, r := range s { // bytes that are no UTF-8 come out as U+FFFD
		switch {
		case r == '\n':
			b.WriteByte('\n')
		case r == '\t':
			b.WriteString(tabStop)
		case hidden(r):
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// plainASCII reports whether s can be shown as it stands.
func plainASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= utf8.RuneSelf || c == 0x7f || c < ' ' && c != '\n' {
			return false
		}
	}
	return true
}

// reveal is clean for text a person decides on: what cannot be seen is spelled
// out, and so are the marks that do so, so that two different actions never look
// alike.
func reveal(s string) string {
	if plainASCII(s) && strings.IndexByte(s, '\n') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, "⟨0x%02X⟩", s[i])
		case r == '\n':
			b.WriteString(lineEnd + "\n")
		case hidden(r), strings.ContainsRune("⟨"+lineEnd, r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Variation_Selector, r), unicode.Is(unicode.Zs, r) && r != ' ':
			fmt.Fprintf(&b, "⟨%U⟩", r)
		default:
			b.WriteRune(r)
		}
		i += n
	}
	return b.String()
}

// lineEnd shows where a line of revealed text ends: the screen breaks lines too.
const lineEnd = "↵"

// oneLine is text on a single line, for places that have no more.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// ascii writes what it can without leaving ASCII. Each replacement is as wide as
// what it stands for, or the layout would be wrong.
func ascii(s string) string {
	if plainASCII(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r < utf8.RuneSelf:
			return r
		case r == '‘' || r == '’' || r == '‚':
			return '\''
		case r == '“' || r == '”' || r == '„' || r == '«' || r == '»':
			return '"'
		case r == '–' || r == '—' || r == '−' || r == '‐' || r == '‑':
			return '-'
		case r == '•' || r == '·' || r == '▪':
			return '*'
		case r == '→' || r == '⟩':
			return '>'
		case r == '⟨':
			return '<'
		case r == '↵':
			return '$'
		case r == '…':
			return '.'
		case r == '\u00a0':
			return ' '
		}
		return '?'
	}, s)
}
