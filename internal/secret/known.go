package secret

import (
	"encoding/base64"
	"encoding/hex"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// minKnown is the shortest value looked for by itself; anything shorter would be found everywhere.
const minKnown = 6

// knownValue is one spelling of a value the user wants protected.
type knownValue struct {
	name     string
	spelling string
	fold     bool // hexadecimal: case does not matter
}

func (k *knownValue) matches(s string) bool { return k.fold || s == k.spelling }

// WithValues returns a scanner that also finds the given values, keyed by name: as they are, reversed, in base64, hexadecimal and percent-encoding, and
// whatever stands between their letters and digits.
// Values shorter than six bytes are ignored. The receiver is unchanged; the new scanner knows only these values and not those of an
// earlier call.
func (s *Scanner) WithValues(values map[string]string) *Scanner {
	var all, bare []knownValue
	for _, name := range slices.Sorted(maps.Keys(values)) {
		v := values[name]
		if len(v) < minKnown {
			continue
		}
		rule := ruleName(name)
		for _, spelling := range spellings(v) {
			all = append(all, knownValue{name: rule, spelling: spelling})
		}
		all = append(all, knownValue{name: rule, spelling: hex.EncodeToString([]byte(v)), fold: true})
		bare = append(bare, bareSpellings(rule, v)...)
	}
	out := &Scanner{triggers: s.triggers}
	if len(bare) > 0 {
		out.bare = newAutomaton(bare, func(k knownValue) string { return k.spelling })
	}
	if len(all) > 0 {
		out.known = newAutomaton(all, func(k knownValue) string { return k.spelling })
	}
	return out
}

func spellings(v string) []string {
	back := []byte(v)
	slices.Reverse(back)
	out := []string{v, string(back), url.QueryEscape(v), url.PathEscape(v)}
	for shift := range 3 {
		out = append(out, shifted(base64.StdEncoding, v, shift), shifted(base64.URLEncoding, v, shift))
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return slices.DeleteFunc(out, func(s string) bool { return len(s) < minKnown })
}

// shifted returns the part of v's encoding that does not depend on what stands before and after it, when v begins shift bytes into a group.
func shifted(enc *base64.Encoding, v string, shift int) string {
	text := strings.TrimRight(enc.EncodeToString([]byte(strings.Repeat("\x00", shift)+v)), "=")
	if shift > 0 {
		text = text[shift+1:]
	}
	if (len(v)+shift)%3 != 0 {
		text = text[:len(text)-1]
	}
	return text
}

// ruleName makes a vault name fit for a rule name, so that the note of a redaction cannot be mistaken for anything else.
func ruleName(name string) string {
	clean := strings.Map(func(r rune) rune {
		if r < 0x80 && (letters[byte(r)] || r == '-') {
			return rune(lower(byte(r)))
		}
		return '-'
	}, name)
	return clean[:min(len(clean), 24)]
}
