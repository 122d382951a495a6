package gate

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"passepartout/internal/proto"
)

// judgePrivacyTags is check 7 of the dispatcher: what the user tagged private is
// not shown to others. The tags come from the Org tree through the World,
// inherited ones included, never from the proposal.
func judgePrivacyTags(v *view) Verdict {
	by := v.action.Cause().Origin
	ownUse := by.Role == proto.RoleOwner || by.Role == proto.RoleJob
	if ownUse && !v.outbound() {
		return Pass()
	}
	for _, a := range v.texts(proto.Node, proto.ReadPath, proto.WritePath) {
		what := a.text
		if a.means != proto.Node {
			what = v.layout.Resolve(v.policy.Cwd, a.text)
		}
		for _, tag := range v.facts.World.Know("tags", what) {
			if v.private(tag) {
				return Verdict{Code: "privacy.tag", Reason: fmt.Sprintf("%s is tagged %s, which is for the owner's eyes only", quote(a.text), quote(tag))}
			}
		}
	}
	return Pass()
}

func (v *view) private(tag string) bool {
	for _, p := range v.policy.PrivacyTags {
		if strings.EqualFold(strings.Trim(p, ":"), strings.Trim(tag, ":")) {
			return true
		}
	}
	return false
}

// judgePrivacyText is check 8 of the dispatcher: a text about to leave the machine
// that still carries a privacy tag was copied out of a private note.
func judgePrivacyText(v *view) Verdict {
	if !v.outbound() {
		return Pass()
	}
	for _, a := range v.args {
		for _, tag := range v.policy.PrivacyTags {
			if mentions(a.text, strings.Trim(tag, ":")) {
				return Verdict{Code: "privacy.text", Reason: fmt.Sprintf("argument %s carries the privacy tag %s out of the machine", a.name, quote(tag))}
			}
		}
	}
	return Pass()
}

// mentions reports whether text holds word in any case, not inside a longer word.
func mentions(text, word string) bool {
	if word == "" {
		return false
	}
	low, want := strings.ToLower(text), strings.ToLower(word)
	for from := 0; ; {
		i := strings.Index(low[from:], want)
		if i < 0 {
			return false
		}
		start, end := from+i, from+i+len(want)
		before, _ := utf8.DecodeLastRuneInString(low[:start])
		after, _ := utf8.DecodeRuneInString(low[end:])
		if !wordRune(before) && !wordRune(after) {
			return true
		}
		from = end
	}
}

func wordRune(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_')
}
