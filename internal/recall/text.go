package recall

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kljensen/snowball/english"
)

// longestWord bounds what counts as a word: longer runs are encoded data.
const longestWord = 40

// A scanner cuts text into words. Its buffers are reused, so that indexing does
// not allocate for words it has seen before.
type scanner struct {
	run   []byte // the run of letters and digits, folded
	cuts  []int  // where in run a new part of an identifier starts
	whole []byte // runs joined by a connector
	parts int
}

// words calls emit for every word of the text in order. A compound is the joined
// form of parts that were emitted before it: org-mode gives org, mode, orgmode.
func (s *scanner) words(text string, emit func(word []byte, compound bool)) {
	s.run, s.whole, s.cuts, s.parts = s.run[:0], s.whole[:0], s.cuts[:0], 0
	prev := rune(0)
	for i := 0; i < len(text); {
		if low := asciiLower[text[i]]; low != 0 && (low == text[i] || len(s.run) == 0) {
			i = s.plain(text, i)
			prev = rune(text[i-1])
			continue
		}
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[i:])
		}
		switch {
		case isWord(r):
			s.add(r, prev, text[i+size:])
		case ignorable(r):
			i += size
			continue
		case len(s.run) > 0 && connects(r) && startsWord(text[i+size:]):
			s.flush(emit)
		case len(s.run) > 0 && (r == '\'' || r == '’'):
			i += size + clitic(text[i+size:])
			s.end(emit)
			prev = ' '
			continue
		default:
			s.end(emit)
		}
		prev = r
		i += size
	}
	s.end(emit)
}

// asciiLower is the lower case of ASCII letters and digits, 0 for all else.
var asciiLower = func() (t [256]byte) {
	for c := range byte(utf8.RuneSelf) {
		switch {
		case c >= 'A' && c <= 'Z':
			t[c] = c + 'a' - 'A'
		case isWord(rune(c)):
			t[c] = c
		}
	}
	return t
}()

// plain appends a letter or digit and all small letters and digits behind it, which
// is what most text is made of, and returns where it stopped.
func (s *scanner) plain(text string, i int) int {
	low := asciiLower[text[i]]
	for {
		s.run = append(s.run, low)
		if i++; i == len(text) {
			return i
		}
		if low = asciiLower[text[i]]; low == 0 || low != text[i] {
			return i
		}
	}
}

// add appends a letter to the run, noting where camel case starts a new part.
func (s *scanner) add(r, prev rune, rest string) {
	if len(s.run) > 0 && unicode.IsUpper(r) {
		next, _ := utf8.DecodeRuneInString(rest)
		if unicode.IsLower(prev) || unicode.IsUpper(prev) && unicode.IsLower(next) {
			s.cuts = append(s.cuts, len(s.run))
		}
	}
	s.run = fold(s.run, r)
}

// flush emits the run and its parts and remembers it for the compound.
func (s *scanner) flush(emit func([]byte, bool)) {
	if len(s.run) == 0 {
		return
	}
	if len(s.run) <= longestWord {
		if len(s.cuts) > 0 {
			from := 0
			for _, c := range append(s.cuts, len(s.run)) {
				emit(s.run[from:c], false)
				from = c
			}
			emit(s.run, true)
		} else {
			emit(s.run, false)
		}
		s.whole = append(s.whole, s.run...)
		s.parts++
	} else {
		s.parts += 2 * longestWord // too long for a compound, too
	}
	s.run, s.cuts = s.run[:0], s.cuts[:0]
}

// end emits the run and, if several were connected, the compound.
func (s *scanner) end(emit func([]byte, bool)) {
	s.flush(emit)
	if s.parts > 1 && s.parts <= longestWord && len(s.whole) <= longestWord {
		emit(s.whole, true)
	}
	s.whole, s.parts = s.whole[:0], 0
}

func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	}
	return !ignorable(r) && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.Mn, r))
}

// ignorable marks carry no meaning of their own: Arabic vowel signs and the
// stretching mark, combining accents, soft hyphens.
func ignorable(r rune) bool {
	return r == 0xAD || r == 0x640 || r >= 0x64B && r <= 0x65F || r == 0x670 || r >= 0x300 && r <= 0x36F
}

func connects(r rune) bool { return r == '-' || r == '_' || r == '.' }

func startsWord(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return isWord(r)
}

// clitic is the length of a short ending after an apostrophe ('s, 't, 'll), which
// is no word.
func clitic(s string) int {
	n := 0
	for n < len(s) && (s[n] >= 'a' && s[n] <= 'z' || s[n] >= 'A' && s[n] <= 'Z') {
		n++
	}
	if n <= 2 {
		return n
	}
	return 0
}

// latin folds accented Latin letters from U+00C0 to U+017F; a space means the
// letter is kept as it is.
const latin = "aaaaaaaceeeeiiiidnooooo ouuuuyts" + "aaaaaaaceeeeiiiidnooooo ouuuuyty" +
	"aaaaaaccccccccddddeeeeeeeeeegggggggghhhhiiiiiiiiiiiijjkkklllllll" + "lllnnnnnnnnnoooooooorrrrrrssssssssttttttuuuuuuuuuuuuwwyyyzzzzzzs"

// fold appends a letter in the form words are compared by: lower case, without
// accents, Arabic letter forms made one.
func fold(b []byte, r rune) []byte {
	switch {
	case r < utf8.RuneSelf:
		if r >= 'A' && r <= 'Z' {
			r += 'a' - 'A'
		}
		return append(b, byte(r))
	case r == 'ß':
		return append(b, "ss"...)
	case r == 'æ' || r == 'Æ':
		return append(b, "ae"...)
	case r == 'œ' || r == 'Œ':
		return append(b, "oe"...)
	case r >= 0xC0 && r <= 0x17F && int(r-0xC0) < len(latin) && latin[r-0xC0] != ' ':
		return append(b, latin[r-0xC0])
	}
	switch r {
	case 'أ', 'إ', 'آ', 'ٱ':
		r = 'ا'
	case 'ى':
		r = 'ي'
	case 'ة':
		r = 'ه'
	}
	return utf8.AppendRune(b, unicode.ToLower(r))
}

// stem is the form of a folded word that is indexed, "" for a stop word.
func stem(word string) string {
	if stopWords[word] {
		return ""
	}
	if word[0] >= utf8.RuneSelf {
		return stemArabic(word)
	}
	for i := range len(word) {
		if word[i] < 'a' || word[i] > 'z' {
			return word
		}
	}
	if len(word) < 3 {
		return word
	}
	return english.Stem(word, false)
}

// stemArabic takes the article, the conjunction and the commonest endings off.
func stemArabic(word string) string {
	letters := utf8.RuneCountInString(word)
	for _, p := range []string{"وال", "بال", "كال", "فال", "لل", "ال"} {
		if n := utf8.RuneCountInString(p); letters-n >= 3 && strings.HasPrefix(word, p) {
			word, letters = word[len(p):], letters-n
			break
		}
	}
	for _, e := range []string{"ات", "ون", "ين", "ان", "ها", "ه"} {
		if n := utf8.RuneCountInString(e); letters-n >= 3 && strings.HasSuffix(word, e) {
			return word[:len(word)-len(e)]
		}
	}
	return word
}

// stopWords are words that say nothing about what a note is about, folded.
var stopWords = wordSet(`a about above after again against all also am an and any are aren as at be because been
before being below between both but by can cannot could couldn did didn do does doesn doing don down during each few for
from further had hadn has hasn have haven having he her here hers herself him himself his how i if in into is isn it its
itself let me more most mustn my myself no nor not of off on once only or other ought our ours ourselves out over own
same shan she should shouldn so some such than that the their theirs them themselves then there these they this those
through to too under until up upon very was wasn we were weren what when where which while who whom why will with won
would wouldn you your yours yourself yourselves
der die das den dem des ein eine einer eines einem einen und oder aber ist sind war waren wird werden ich du er sie es wir
ihr mich dich mir dir uns euch sich mein dein sein von vom zu zum zur mit nach bei fur uber unter auf aus im am als wie wenn
weil dass nicht auch noch nur schon
في من على الى عن مع هذا هذه ذلك التي الذي ان لا ما هل كان او ثم`)

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}
