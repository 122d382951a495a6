package shell

import (
	"strings"
	"unicode/utf8"
)

// scanText looks at the raw text for characters that make what a person sees differ from what a shell reads.
func (j *judge) scanText(src string) {
	ascii := true
	for i := 0; i < len(src); i++ {
		switch c := src[i]; {
		case c == 0:
			j.find(Forbidden, "shell.nul", "the text holds a NUL byte, at which programs disagree about where it ends")
			return
		case c == '\r':
			j.find(Forbidden, "shell.carriage-return", "the text holds a carriage return, which hides what stands before it")
			return
		case c < ' ' && c != '\n' && c != '\t', c == 0x7f:
			j.find(Forbidden, "shell.control-character", "the text holds a control character")
			return
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	if ascii {
		return
	}
	if !utf8.ValidString(src) {
		j.find(Forbidden, "shell.encoding", "the text is not valid UTF-8")
		return
	}
	for _, r := range src {
		switch {
		case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0x061c:
			j.find(Forbidden, "shell.bidi", "the text holds characters that reorder what a reader sees")
			return
		case r == 0xad, r == 0x034f, r >= 0x200b && r <= 0x200d, r >= 0x2060 && r <= 0x2064, r == 0xfeff, r == 0x3164, r == 0x115f, r == 0x1160,
			r >= 0xe0000 && r <= 0xe007f, r >= 0x80 && r < 0xa0, r == 0x2028, r == 0x2029:
			j.find(Forbidden, "shell.invisible", "the text holds characters a reader cannot see")
			return
		case r == 0xa0, r == 0x1680, r >= 0x2000 && r <= 0x200a, r == 0x202f, r == 0x205f, r == 0x3000:
			j.find(Question, "shell.odd-space", "the text holds a space that the shell does not treat as one")
		}
	}
}

// nestingKeywords open or close a compound command; the ones with 0 merely put the parser one call deeper.
var nestingKeywords = map[string]int{
	"if": 1, "while": 1, "until": 1, "for": 1, "case": 1, "select": 1, "fi": -1, "done": -1, "esac": -1,
	"!": 0, "time": 0, "coproc": 0, "function": 0, "elif": 0, "else": 0,
}

// tooDeep bounds how deep the parser can recurse on src, before it does: the parser itself has no limit and a Go stack overflow cannot be
// recovered. It over-estimates (brackets in quoted text count), which only refuses texts nobody writes.
func tooDeep(src string) bool {
	brackets, words, inArith, chain := 0, 0, 0, 0
	start := -1
	for i := 0; i <= len(src); i++ {
		var c byte = ' '
		if i < len(src) {
			c = src[i]
		}
		if c > ' ' && c != ';' && c != '(' && c != ')' && c != '&' && c != '|' && c != '`' {
			if start < 0 {
				start = i
			}
		} else if start >= 0 {
			if d, ok := nestingKeywords[src[start:i]]; ok {
				words = max(words+d, 0)
				if d == 0 {
					chain++
				}
			}
			start = -1
		}
		switch c {
		case '(', '{', '[':
			brackets++
			if c == '(' && i > 0 && src[i-1] == '(' || c == '[' {
				inArith++
			}
		case ')', '}', ']':
			brackets = max(brackets-1, 0)
		case '`':
			chain++
		case '?', '=', '!', '~', '-', '+', ',', '*', '/', '%', '^', '<', '>', '&', '|', ':':
			if inArith > 0 {
				chain++
			}
		case '\n', ';':
			chain = 0
			if brackets == 0 {
				inArith = 0
			}
		}
		if brackets > MaxDepth || words > MaxDepth || chain > 16*MaxDepth {
			return true
		}
	}
	return strings.Count(src, "()") > MaxCommands
}

// tooMany bounds the number of commands, expansions and words before the parser builds a tree of them.
func tooMany(src string) bool {
	n, dollars, words := 0, 0, 0
	for i := 0; i < len(src); i++ {
		switch src[i] {
		case ';', '|', '&':
			n++
		case '$':
			dollars++
		case ' ', '\t', '\n':
			if i > 0 && src[i-1] > ' ' {
				words++
			}
		}
	}
	return n > maxSigns || dollars > maxDollars || words > maxBlanks
}
