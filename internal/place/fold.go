package place

import (
	"path"
	"strings"
	"unicode/utf8"
)

// oneMeaning reports whether every reader of p would open the same file: no control characters, no NT or UNC syntax, valid UTF-8.
func oneMeaning(p string) bool {
	for i := 0; i < len(p); i++ {
		if p[i] < ' ' || p[i] == 0x7f {
			return false
		}
	}
	if strings.Contains(p, `\\`) || strings.Contains(p, `\?`) || strings.Contains(p, `??\`) {
		return false
	}
	return utf8.ValidString(p)
}

// fold reduces a path to the form in which names are compared: lower case, no invisible characters, no trailing dots or spaces in an
// element, backslash as separator, and the directories that are links on every machine replaced.
func fold(p string) string {
	if !plain(p) {
		p = ligatures.Replace(p)
		p = strings.Map(func(r rune) rune {
			if invisible(r) {
				return -1
			}
			if r == '\\' {
				return '/'
			}
			return r
		}, p)
		p = path.Clean("/" + strings.ToLower(p))
		p = trimElements(p)
	}
	for _, link := range [...][2]string{{"/var/run", "/run"}, {"/private/etc", "/etc"}, {"/private/var", "/var"}, {"/private/tmp", "/tmp"}} {
		if under(p, link[0]) {
			return link[1] + p[len(link[0]):]
		}
	}
	return p
}

// ligatures are the letters that a file system which ignores case takes for two others, or for another: .ßh is .ssh there.
var ligatures = strings.NewReplacer("ß", "ss", "ẞ", "ss", "ſ", "s", "ﬀ", "ff", "ﬁ", "fi", "ﬂ", "fl", "ﬃ", "ffi", "ﬄ", "ffl", "ﬅ", "st", "ﬆ", "st", "ŉ", "ʼn")

// plain reports whether p is already folded, which nearly every path is.
func plain(p string) bool {
	prev := byte(0)
	for i := 0; i < len(p); i++ {
		c := p[i]
		switch {
		case c >= utf8.RuneSelf, c >= 'A' && c <= 'Z', c == '\\', c == ':':
			return false
		case c == '/' && (prev == '/' || prev == '.' || prev == ' '):
			return false
		}
		prev = c
	}
	return p == "/" || prev != '/' && prev != '.' && prev != ' '
}

// trimElements drops what Windows and some network file systems ignore at the end of a name: dots, spaces and stream suffixes.
func trimElements(p string) string {
	elems := strings.Split(p, "/")
	for i, e := range elems {
		if head, _, ok := strings.Cut(e, "::$"); ok {
			e = head
		}
		if t := strings.TrimRight(e, ". "); t != "" {
			e = t
		}
		elems[i] = e
	}
	return strings.Join(elems, "/")
}

// invisible reports the characters that case-folding file systems drop from names and that a reader cannot see.
func invisible(r rune) bool {
	switch {
	case r == 0xAD, r == 0x034F, r == 0x061C, r == 0xFEFF, r == 0x3164, r == 0x2060:
		return true
	case r >= 0x200B && r <= 0x200F, r >= 0x202A && r <= 0x202E, r >= 0x2061 && r <= 0x206F, r >= 0xFE00 && r <= 0xFE0F:
		return true
	}
	return r >= 0xE0000 && r <= 0xE0FFF
}

// unpercent decodes percent-encoding, repeatedly up to three times, and cleans the result.
func unpercent(p string) string {
	for range 3 {
		next := unpercentOnce(p)
		if next == p {
			break
		}
		p = next
	}
	return path.Clean(p)
}

func unpercentOnce(p string) string {
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		if p[i] == '%' && i+2 < len(p) {
			hi, lo := unhex(p[i+1]), unhex(p[i+2])
			if hi >= 0 && lo >= 0 {
				b.WriteByte(byte(hi<<4 | lo))
				i += 2
				continue
			}
		}
		b.WriteByte(p[i])
	}
	return b.String()
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// split appends the elements of a folded absolute path to dst.
func split(dst []string, p string) []string {
	for elem := range strings.SplitSeq(p, "/") {
		if elem != "" {
			dst = append(dst, elem)
		}
	}
	return dst
}
