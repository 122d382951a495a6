package tui

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A family is languages that look alike: how their comments begin, what quotes
// their strings. Lines are painted one by one, so that code which is still
// arriving costs its last line only; a string or comment of several lines is
// plain from its second.
type family struct {
	comments []string
	quotes   string
	dashed   bool // names may hold dashes
}

var (
	braces  = family{[]string{"//", "/*"}, "\"'`", false}
	hashes  = family{[]string{"#"}, "\"'`", false}
	lisps   = family{[]string{";"}, "\"", true}
	dashes  = family{[]string{"--"}, "\"'", false}
	nothing = family{nil, "\"", false}
)

// families by the names people give after a fence.
var families = map[string]family{
	"go": braces, "c": braces, "cpp": braces, "c++": braces, "java": braces, "js": braces, "javascript": braces, "ts": braces,
	"typescript": braces, "tsx": braces, "jsx": braces, "rust": braces, "rs": braces, "kotlin": braces, "swift": braces, "php": braces, "css": braces,
	"sh": hashes, "bash": hashes, "zsh": hashes, "shell": hashes, "console": hashes, "python": hashes, "py": hashes, "ruby": hashes, "rb": hashes,
	"yaml": hashes, "yml": hashes, "toml": hashes, "ini": hashes, "make": hashes, "makefile": hashes, "dockerfile": hashes, "perl": hashes, "r": hashes,
	"lisp": lisps, "elisp": lisps, "emacs-lisp": lisps, "scheme": lisps, "clojure": lisps, "common-lisp": lisps,
	"sql": dashes, "lua": dashes, "haskell": dashes, "json": nothing,
}

// codeWords are keywords of the languages above. One set serves all: what is a
// keyword in one is seldom a name in another.
var codeWords = wordSet(`and as async await begin bool break case catch chan char class const continue crate def default defer
defmacro defun defvar del do done double elif else elseif elsif end enum esac except export extends extern fallthrough false fi final finally float
fn for foreach from func function global go goto guard if impl implements import in include instanceof int interface into is lambda let local
long loop map match mod module move mut namespace new nil none not null nullptr of or override package pass private protected pub public raise
range readonly ref require return rune select self setf setq short signed static std string struct super switch template then this throw trait true try
type typedef typeof uint union unless unsafe unsigned until use using var virtual void volatile when where while with yield
SELECT FROM WHERE INSERT INTO UPDATE DELETE CREATE TABLE JOIN LEFT RIGHT ON GROUP BY ORDER LIMIT VALUES SET AND OR NOT NULL AS
True False None echo cd export local`)

func wordSet(s string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(s) {
		out[w] = true
	}
	return out
}

// highlight splits a line of code into spans. The text of the spans is the line.
func highlight(lang, line string) []span {
	if lang == "diff" || lang == "patch" {
		return []span{{line, diffRole(line)}}
	}
	f, known := families[lang]
	if !known || len(line) > maxReach {
		return []span{{line, roleCode}}
	}
	var out []span
	add := func(s string, r role) {
		if n := len(out); n > 0 && out[n-1].role == r {
			out[n-1].text += s
			return
		}
		out = append(out, span{s, r})
	}
	for line != "" {
		n, r := f.token(line)
		add(line[:n], r)
		line = line[n:]
	}
	return out
}

// token is the length and the role of what a line begins with.
func (f family) token(s string) (int, role) {
	for _, c := range f.comments {
		if strings.HasPrefix(s, c) {
			return len(s), roleDim
		}
	}
	c, size := utf8.DecodeRuneInString(s)
	switch {
	case strings.ContainsRune(f.quotes, c):
		return quoted(s), roleOK
	case unicode.IsDigit(c):
		return f.run(s), roleHigh
	case unicode.IsLetter(c) || c == '_':
		n := f.run(s)
		if codeWords[s[:n]] {
			return n, roleUser
		}
		return n, roleCode
	}
	return size, roleCode
}

// run is the length of the word or number at the beginning.
func (f family) run(s string) int {
	for i, c := range s {
		if !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '_' && (!f.dashed || c != '-') {
			return i
		}
	}
	return len(s)
}

// quoted is the length of the string at the beginning, to the end of the line if
// it is not closed there.
func quoted(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[0]:
			return i + 1
		}
	}
	return len(s)
}

func diffRole(line string) role {
	switch {
	case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"), strings.HasPrefix(line, "@@"):
		return roleDim
	case strings.HasPrefix(line, "+"):
		return roleOK
	case strings.HasPrefix(line, "-"):
		return roleDeny
	}
	return rolePlain
}

// chopSpans breaks spans into painted lines of at most n cells, keeping every
// blank.
func chopSpans(l look, spans []span, n int) []string {
	n = max(n, 1)
	var out []string
	var line strings.Builder
	used := 0
	for _, s := range spans {
		for s.text != "" {
			part := fit(s.text, n-used)
			if part == "" && used == 0 {
				_, size := utf8.DecodeRuneInString(s.text)
				part = s.text[:size] // wider than the line: cut off at painting
			}
			if part != "" {
				line.WriteString(l.paint(s.role, part))
				used += width(part)
				s.text = s.text[len(part):]
			}
			if s.text != "" {
				out = append(out, line.String())
				line.Reset()
				used = 0
			}
		}
	}
	return append(out, line.String())
}
