package secret

// set is a set of bytes.
type set [256]bool

func setOf(ranges string) *set {
	var s set
	for i := 0; i < len(ranges); i++ {
		if i+2 < len(ranges) && ranges[i+1] == '-' {
			for c := int(ranges[i]); c <= int(ranges[i+2]); c++ {
				s[c] = true
			}
			i += 2
			continue
		}
		s[ranges[i]] = true
	}
	return &s
}

var (
	digits   = setOf("0-9")
	octal    = setOf("0-7")
	hexits   = setOf("0-9a-f")
	anyHex   = setOf("0-9a-fA-F")
	lowNum   = setOf("0-9a-z")
	upNum    = setOf("0-9A-Z")
	letters  = setOf("a-zA-Z")
	alnum    = setOf("0-9a-zA-Z")
	word     = setOf("0-9a-zA-Z_")
	urlSafe  = setOf("0-9a-zA-Z_\x2d")
	dotted   = setOf("0-9a-zA-Z_.\x2d")
	base64s  = setOf("0-9a-zA-Z+/_=\x2d")
	base32   = setOf("A-Z2-7")
	base58   = setOf("1-9A-HJ-NP-Za-km-z")
	bech32   = setOf("0-9a-z")
	upBech32 = setOf("0-9A-Z")
)

// runLen returns how many bytes of text from i on are in the set, looking at no more than limit.
func (s *set) runLen(text string, i, limit int) int {
	n := 0
	for n < limit && i+n < len(text) && s[text[i+n]] {
		n++
	}
	return n
}

// next finds the first run of at least least bytes of the set from i on. It looks at every least-th byte until one is in the set, so that
// text without long runs costs almost nothing.
func (s *set) next(text string, i, least int) (start, n int) {
	for probe := i + least - 1; probe < len(text); {
		if !s[text[probe]] {
			i = probe + 1
			probe += least
			continue
		}
		start = probe
		for start > i && s[text[start-1]] {
			start--
		}
		end := probe + 1
		for end < len(text) && s[text[end]] {
			end++
		}
		if end-start >= least {
			return start, end - start
		}
		i = end
		probe = end + least - 1
	}
	return len(text), 0
}

// all reports whether every byte of text is in the set.
func (s *set) all(text string) bool { return s.runLen(text, 0, len(text)) == len(text) }

// boundary reports whether a token may begin at i: not in the middle of a word, except after the letter of a backslash escape.
func boundary(text string, i int) bool {
	if i == 0 || !word[text[i-1]] {
		return true
	}
	return i > 1 && text[i-2] == '\\'
}
