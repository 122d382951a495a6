package config

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// An assignment is one KEY=value of a settings file, or what is wrong with it.
type assignment struct {
	key, value string
	origin     Origin
	err        error
}

// parseFile reads the lines of a settings file:
//
//	# a comment
//	KEY=value            the value ends at the line's end or before blank and #
//	KEY='a # value'      as it is, up to the next quote
//	KEY="a \"value\""    the same, where \" and \\ stand for " and \
//
// Nothing else is special: no variable is expanded and no command is run. A
// leading export is allowed, so that a shell can read the file too. Errors do
// not repeat what a line holds, which might be a secret.
func parseFile(name string, text []byte) []assignment {
	var out []assignment
	for i, line := range bytes.Split(text, []byte("\n")) {
		s := strings.TrimSpace(string(line))
		if s == "" || s[0] == '#' {
			continue
		}
		a := assignment{origin: Origin{File: name, Line: i + 1}}
		a.key, a.value, a.err = parseLine(s)
		out = append(out, a)
	}
	return out
}

func parseLine(s string) (key, value string, err error) {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
		return "", "", errors.New("want text, found a control character or a byte that is not UTF-8")
	}
	if rest, ok := strings.CutPrefix(s, "export "); ok {
		s = strings.TrimSpace(rest)
	}
	key, rest, ok := strings.Cut(s, "=")
	if !ok {
		return "", "", errors.New("want KEY=value, found no =")
	}
	if !isKey(key) {
		return "", "", errors.New("want KEY=value, with a key of letters, digits and _ and no blank before the =")
	}
	value, err = parseValue(rest)
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", key, err)
	}
	return key, value, nil
}

func isKey(s string) bool {
	const longest = 64
	if s == "" || len(s) > longest || s[0] >= '0' && s[0] <= '9' {
		return false
	}
	return !strings.ContainsFunc(s, func(c rune) bool {
		return c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
	})
}

func parseValue(s string) (string, error) {
	if s == "" {
		return "", nil
	}
	switch s[0] {
	case ' ', '\t':
		if t := strings.TrimSpace(s); t != "" && t[0] != '#' {
			return "", errors.New("want no blank after the =")
		}
		return "", nil
	case '\'':
		value, rest, ok := strings.Cut(s[1:], "'")
		if !ok {
			return "", errors.New("want a closing ' in the same line")
		}
		return value, onlyComment(rest)
	case '"':
		return doubleQuoted(s[1:])
	}
	for i := 1; i < len(s); i++ {
		if s[i] == '#' && (s[i-1] == ' ' || s[i-1] == '\t') {
			s = s[:i]
			break
		}
	}
	return strings.TrimRight(s, " \t"), nil
}

func doubleQuoted(s string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			return b.String(), onlyComment(s[i+1:])
		case '\\':
			i++
			if i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", errors.New(`want \" or \\ after a backslash between double quotes; between single quotes a backslash is itself`)
			}
		}
		b.WriteByte(s[i])
	}
	return "", errors.New(`want a closing " in the same line`)
}

func onlyComment(rest string) error {
	if t := strings.TrimSpace(rest); t == "" || t[0] == '#' && rest[0] != '#' {
		return nil
	}
	return errors.New("want nothing but a comment after the closing quote")
}
