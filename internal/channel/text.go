package channel

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean returns a text without what cannot be seen: control characters but for
// line ends and tabs, marks that turn the direction of writing, characters of no
// width, and bytes that are no text.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == utf8.RuneError, unicode.IsControl(r), invisible(r):
			return -1
		}
		return r
	}, strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n"))
}

// invisible reports whether a character only changes how others are seen. The
// joiner stays: scripts and pictures need it.
func invisible(r rune) bool {
	switch {
	case r == 0x200d: // zero width joiner
		return false
	case r >= 0x200b && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2060 && r <= 0x206f,
		r == 0xfeff, r == 0x061c, r == 0x00ad, r >= 0xfff9 && r <= 0xfffb, r >= 0xe0000 && r <= 0xe007f:
		return true
	}
	return false
}

// line is a text on one line, at most so many characters long.
func line(s string, most int) string {
	s = strings.Join(strings.Fields(Clean(s)), " ")
	if short, cut := head(s, most); cut {
		return short + "…"
	}
	return s
}

// size is the length of a text as messengers count it: in UTF-16 units.
func size(s string) int {
	n := 0
	for _, r := range s {
		if n++; r >= 0x10000 {
			n++
		}
	}
	return n
}

// head is the longest beginning of at most so many units.
func head(s string, most int) (string, bool) {
	n := 0
	for i, r := range s {
		if n++; r >= 0x10000 {
			n++
		}
		if n > most {
			return s[:i], true
		}
	}
	return s, false
}

// teaser is the beginning of a text, never more than half of it: enough to see
// what a message is about, too little to be mistaken for it.
func teaser(s string) string {
	const most = 60
	short, _ := head(strings.Join(strings.Fields(s), " "), min(most, size(s)/2))
	return strings.TrimSpace(short) + "…"
}

// How blocks of code begin and end, as models and as Org files write them.
const (
	fence    = "```"
	orgBegin = "#+begin_"
	orgEnd   = "#+end_"
)

// fenceRoom is what closing a block of code and opening it again may take.
const fenceRoom = 2*len(orgBegin) + 2 + 2*maxInfo

// maxInfo is how much of the word after a fence is repeated in the next part.
const maxInfo = 16

// Split cuts a text into parts of at most so many units (at least 128): between
// paragraphs rather than lines, lines rather than words, words rather than
// letters. A block of code stays in one part if it fits; else it is closed at the
// end of a part and opened again in the next.
func Split(text string, most int) []string {
	var parts []string
	for p := (splitter{rest: text, most: most}); p.next(); {
		parts = append(parts, p.part)
	}
	return parts
}

// A splitter takes parts off a text.
type splitter struct {
	rest string
	most int
	open string // the fence line of a block that goes on
	part string
}

func (p *splitter) next() bool {
	prefix := ""
	if p.open != "" {
		prefix = p.open + "\n"
	}
	if p.rest == "" {
		return false
	}
	room := p.most - size(prefix)
	if size(p.rest) <= room {
		p.part, p.rest, p.open = prefix+p.rest, "", ""
		return true
	}
	fit, _ := head(p.rest, room-fenceRoom)
	end, fenced := cut(fit, p.open)
	body := strings.TrimSuffix(p.rest[:end], "\n")
	p.rest = p.rest[end:]
	if p.part = prefix + body; fenced != "" {
		p.part += "\n" + fenceEnd(fenced)
	}
	p.open = fenced
	return true
}

// cut finds where a part ends: after so many bytes, in the block with this fence
// line, or in none.
func cut(fit, open string) (end int, fenced string) {
	type place struct {
		end    int
		fenced string
	}
	var paragraph, newline place // the last of each
	inside, lineStart := open, 0
	for i := 0; i < len(fit); i++ {
		if fit[i] != '\n' {
			continue
		}
		l := fit[lineStart:i]
		wasInside := inside
		switch {
		case inside != "" && ends(l, inside):
			inside = ""
		case inside == "" && begins(l):
			inside = fenceLine(l)
			if lineStart > 0 { // a block begins: the best place is before it
				paragraph = place{lineStart, ""}
			}
		}
		lineStart = i + 1
		newline = place{i + 1, inside}
		if inside == "" && (strings.TrimSpace(l) == "" || wasInside != "") {
			paragraph = place{i + 1, ""}
		}
	}
	switch {
	case paragraph.end > len(fit)/4:
		return paragraph.end, paragraph.fenced
	case newline.end > len(fit)/4:
		return newline.end, newline.fenced
	case paragraph.end > 0 && inside != "" && open == "":
		return paragraph.end, paragraph.fenced // a block that may fit as a whole
	}
	if i := gap(fit, lineStart); i > len(fit)/4 {
		return i + 1, inside
	}
	if newline.end > 0 {
		return newline.end, newline.fenced
	}
	return whole(fit), inside
}

// gap is the last space to cut a line at: rather one that is in no link and in no
// piece of code, which would fall apart.
func gap(fit string, lineStart int) int {
	last := strings.LastIndexAny(fit, " \t")
	for i := last; i > len(fit)/4; i = strings.LastIndexAny(fit[:i], " \t") {
		if l := fit[min(lineStart, i):i]; strings.Count(l, "`")%2 == 0 && strings.Count(l, "[") <= strings.Count(l, "]") && !strings.HasSuffix(l, "](") {
			return i
		}
	}
	return last
}

// whole is where a text without spaces can be cut: not between a letter and what
// is drawn over it, and not within a picture that is made of several.
func whole(fit string) int {
	const most = 32 // characters one picture may have
	end := len(fit)
	for range most {
		r, n := utf8.DecodeLastRuneInString(fit[:end])
		if n == 0 || end-n == 0 {
			return len(fit)
		}
		before, _ := utf8.DecodeLastRuneInString(fit[:end-n])
		if end -= n; !joins(r) && !joins(before) && (!isFlag(r) || flags(fit[:end])%2 == 0) {
			return end
		}
	}
	return len(fit)
}

// joins reports whether a character belongs to its neighbour.
func joins(r rune) bool {
	return r == 0x200d || r >= 0xfe00 && r <= 0xfe0f || r >= 0x1f3fb && r <= 0x1f3ff || unicode.In(r, unicode.Mn, unicode.Me)
}

func isFlag(r rune) bool { return r >= 0x1f1e6 && r <= 0x1f1ff }

// flags counts the letters of flags a text ends with; two make one.
func flags(s string) (n int) {
	for {
		r, size := utf8.DecodeLastRuneInString(s)
		if !isFlag(r) {
			return n
		}
		s = s[:len(s)-size]
		n++
	}
}

// begins reports whether a line begins a block of code.
func begins(l string) bool {
	l = strings.ToLower(strings.TrimSpace(l))
	return strings.HasPrefix(l, fence) || strings.HasPrefix(l, orgBegin)
}

// ends reports whether a line ends the block that was begun so.
func ends(l, begun string) bool {
	l = strings.ToLower(strings.TrimSpace(l))
	if strings.HasPrefix(begun, fence) {
		return strings.HasPrefix(l, fence)
	}
	return l == strings.ToLower(fenceEnd(begun))
}

// fenceEnd is how a block ends that was begun so.
func fenceEnd(begun string) string {
	if strings.HasPrefix(begun, fence) {
		return fence
	}
	kind, _, _ := strings.Cut(begun[len(orgBegin):], " ")
	return orgEnd + kind
}

// fenceLine is how a block is opened again.
func fenceLine(l string) string {
	l = strings.TrimSpace(l)
	if begins(l) && !strings.HasPrefix(l, fence) {
		kind, rest, _ := strings.Cut(l, " ")
		if short, cut := head(kind, len(orgBegin)+maxInfo); cut {
			return short
		}
		language, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
		language, _ = head(language, maxInfo)
		return strings.TrimSpace(kind + " " + language)
	}
	if short, _ := head(l, len(fence)+maxInfo); !strings.Contains(strings.TrimLeft(short, "`"), "`") {
		return short
	}
	return fence
}
