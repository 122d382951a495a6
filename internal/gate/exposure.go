package gate

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"passepartout/internal/proto"
)

// judgeExposure is check 5 of the dispatcher: no credential may stand in an
// action, and a message or a file must show a reader what it says.
func judgeExposure(v *view) Verdict {
	found := v.withheldVerdict("exposure.credential", "a credential", func(kind string) bool {
		return !strings.HasPrefix(kind, vaultPrefix)
	})
	if found.Decision != Allow {
		return found
	}
	verdict := Pass()
	for _, a := range v.texts(proto.Outbound, proto.Content, proto.Recipient) {
		stored := a.means == proto.Content
		what, ok := concealed(a.text, stored)
		if !ok {
			continue
		}
		one := Verdict{Code: "exposure.hidden-text", Reason: fmt.Sprintf("argument %s holds %s, which a reader does not see", a.name, what)}
		if stored {
			one.Decision = Ask // some files need it, and the person can look
		}
		if one.Decision < verdict.Decision {
			verdict = one
		}
	}
	return verdict
}

// withheldVerdict denies when an argument was withheld for a credential of the
// kinds that want selects.
func (v *view) withheldVerdict(code, what string, want func(kind string) bool) Verdict {
	var where []string
	for _, h := range v.facts.withheld {
		var kinds []string
		for _, k := range h.kinds {
			if want(k) {
				kinds = append(kinds, k)
			}
		}
		if len(kinds) > 0 {
			where = append(where, fmt.Sprintf(":%s (%s)", h.arg, strings.Join(kinds, ", ")))
		}
	}
	if len(where) == 0 {
		return Pass()
	}
	return Verdict{Code: code, Reason: fmt.Sprintf("there is %s in %s: it belongs into the vault, and nowhere else", what, strings.Join(where, " and "))}
}

// concealed names the first thing in a text that hides from its reader. A file
// may hold what right-to-left languages need; terminal controls it may not.
func concealed(s string, stored bool) (string, bool) {
	if plain(s) {
		return "", false
	}
	prev := rune(0)
	for i, r := range s {
		switch {
		case r == '\t' || r == '\n' || r == '\r' && (stored || strings.HasPrefix(s[i:], "\r\n")):
		case r == '\f' && stored:
		case r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0:
			return fmt.Sprintf("the control character U+%04X", r), true
		case r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069:
			return fmt.Sprintf("the text-direction control U+%04X", r), true
		case r == 0xFEFF && i == 0:
		case hidden(r) && !stored && !joins(prev, r, s[i:]):
			return fmt.Sprintf("the invisible character U+%04X", r), true
		}
		if prev == 0x1F3F4 && r >= 0xE0020 && r <= 0xE007F {
			continue // a flag: its tags all follow the flag
		}
		prev = r
	}
	return "", false
}

// plain reports that s is ASCII text without controls: the common case.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= utf8.RuneSelf || c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// hidden reports characters that take no room on the screen.
func hidden(r rune) bool {
	switch {
	case r == 0xAD || r == 0x034F || r == 0x061C || r == 0x115F || r == 0x1160 || r == 0x17B4 || r == 0x17B5 || r == 0x3164 || r == 0xFEFF || r == 0xFFA0,
		r >= 0x180B && r <= 0x180F,
		r >= 0x200B && r <= 0x200F, r >= 0x202A && r <= 0x202E, r >= 0x2060 && r <= 0x206F,
		r >= 0xFE00 && r <= 0xFE0F, r >= 0xE0000 && r <= 0xE0FFF, r >= 0x1D173 && r <= 0x1D17A:
		return true
	}
	return false
}

// joins reports the uses of invisible characters that writing needs: joiners
// inside scripts and emoji, marks of direction beside right-to-left letters,
// variation selectors after a symbol, the tags of a flag.
func joins(prev, r rune, rest string) bool {
	_, size := utf8.DecodeRuneInString(rest)
	next, _ := utf8.DecodeRuneInString(rest[size:])
	switch {
	case r == 0x200C || r == 0x200D:
		return prev > 0x2FF && (next > 0x2FF || next == utf8.RuneError)
	case r == 0x200E || r == 0x200F || r == 0x061C:
		return unicode.In(prev, unicode.Arabic, unicode.Hebrew, unicode.Syriac) || unicode.In(next, unicode.Arabic, unicode.Hebrew, unicode.Syriac)
	case r == 0xFE0E || r == 0xFE0F:
		return prev > 0xFF || prev == '#' || prev == '*' || prev >= '0' && prev <= '9'
	case r >= 0xE0020 && r <= 0xE007F:
		return prev == 0x1F3F4
	}
	return false
}
