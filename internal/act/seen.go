package act

import (
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// seen is what a person would have read of what a program printed for a terminal:
// of a line that was written over again and again, how it stood at last; no colours,
// no cursor movements. The gates would not let the rest be repeated.
func seen(text string) string {
	if strings.IndexFunc(text, drives) < 0 {
		return text
	}
	text = ansi.Strip(strings.ReplaceAll(text, "\r\n", "\n"))
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.ContainsRune(line, '\r') {
			line = strings.TrimRight(line, "\r")
			line = line[strings.LastIndexByte(line, '\r')+1:]
		}
		lines[i] = strings.Map(func(r rune) rune {
			if drives(r) {
				return -1
			}
			return r
		}, line)
	}
	return strings.Join(lines, "\n")
}

// drives reports whether a character moves a terminal instead of being shown.
func drives(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
