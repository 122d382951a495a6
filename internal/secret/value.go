package secret

import "strings"

// common[a] holds the letters that often follow a in words. Random letters break it about every second time, words rarely.
var common = [26]string{
	"bcdfgiklmnprstuvwxyz", "abeijlorstuy", "acehikloqrstuy", "adegilmnorsuvwy", "abcdefgilmnopqrstuvwxy", "aefilorstuy", "aeghilmnorstuy",
	"aeimnorstuy", "abcdefgklmnopqrstvxz", "aeou", "aeiklnosy", "acdefgiklmoprstuvy", "abeimnopstuy", "acdefgijklnostuvy", "abcdefgiklmnoprstuvwxy",
	"aehiloprstuy", "u", "abcdefgiklmnoprstuvy", "acehiklmnopqrstuwy", "acehilmorstuwy", "abcdefgilmnprstxz", "aeioy", "aehilnors", "aceiptu", "aceilmnoprstw", "aeioyz",
}

var commonPair = func() (t [32][32]bool) {
	for a, followers := range common {
		for _, b := range followers {
			t[a][b-'a'] = true
		}
	}
	return t
}()

// profile counts what a value is made of.
type profile struct {
	n, lower, upper, digit, other int
	hex                           int // hexadecimal digits
	distinct                      int
	signs                         int // distinct characters other than letters and digits
	breaks                        int // neighbours that words seldom have: odd letter pairs, changes between letters and digits
	switches                      int // changes between lower case, upper case and digits
	longest                       int // longest run of one character
}

func measure(s string) profile {
	p := profile{n: len(s)}
	var seen set
	var count [4]int
	before, last, same := otherKind, byte(0), 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		k := kindOf[c]
		count[k]++
		if anyHex[c] {
			p.hex++
		}
		if !seen[c] {
			seen[c] = true
			p.distinct++
			if k == otherKind {
				p.signs++
			}
		}
		if i > 0 {
			if k != before {
				p.switches++
			}
			if odd(before, k, last, c) {
				p.breaks++
			}
		}
		if i > 0 && last == c {
			same++
		} else {
			same = 1
		}
		p.longest = max(p.longest, same)
		before, last = k, c
	}
	p.other, p.lower, p.upper, p.digit = count[otherKind], count[lowerKind], count[upperKind], count[digitKind]
	return p
}

// The kinds of characters a value is made of.
const (
	otherKind uint8 = iota
	lowerKind
	upperKind
	digitKind
)

var kindOf = func() (t [256]uint8) {
	for c := range t {
		switch {
		case c >= 'a' && c <= 'z':
			t[c] = lowerKind
		case c >= 'A' && c <= 'Z':
			t[c] = upperKind
		case c >= '0' && c <= '9':
			t[c] = digitKind
		}
	}
	return t
}()

// odd reports whether b, of kind kb, is unusual after a in words and names. A lower-case letter before an upper-case one is how names are
// joined.
func odd(ka, kb, a, b uint8) bool {
	switch {
	case ka == otherKind || kb == otherKind || ka == lowerKind && kb == upperKind:
		return false
	case ka == digitKind || kb == digitKind:
		return ka != kb
	}
	return !commonPair[a&31-1][b&31-1]
}

// kinds counts the character classes among lower case, upper case and digits.
func (p profile) kinds() int {
	k := 0
	for _, n := range [...]int{p.lower, p.upper, p.digit} {
		if n > 0 {
			k++
		}
	}
	return k
}

// random reports whether the value looks drawn by a generator rather than written by a person.
func (p profile) random() bool {
	if p.n < 8 || p.kinds() < 2 && p.breaks*3 < p.n || p.distinct < 5 || p.digit == p.n {
		return false
	}
	if p.longest > 5 && p.longest*3 > p.n {
		return false
	}
	if p.hex == p.n && p.n >= 32 && p.digit > 0 {
		return p.distinct >= 8
	}
	share := 100 * p.breaks / (p.n - 1)
	switch {
	case p.n >= 20 && p.kinds() == 3 && 100*p.switches/(p.n-1) >= 45:
		return true
	case p.digit == 0:
		return share >= 28
	case p.n < 16:
		return share >= 25
	}
	return share >= 20
}

// looksRandom is random for a value taken as it stands.
func looksRandom(s string) bool { return measure(s).random() }

// stand-ins are what people write where a secret would be. A value that is one of these, or is made of these and separators, is none.
var standIns = wordSet(`password passwords option options passwd passwort passphrase pass pwd pw secret secrets token tokens key keys apikey api credential credentials creds auth
	user username admin login name email id root test tests testing example examples sample demo dummy fake mock foo bar baz foobar qux placeholder changeme change
	replaceme replace me your yours my our mysecret mypassword mytoken mykey here insert enter put todo tbd none null nil undefined void empty blank unset
	true false yes no on off string str text int integer number bool boolean bytes char varchar object array list map dict any optional required hidden masked
	redacted removed omitted censored value values val var variable env environ environment default config setting settings type types kind field input label
	output invalid incorrect wrong missing expired unknown unauthorized denied failed basic bearer digest oauth oauth2 jwt new old current confirm confirmation
	reset forgot forgotten update create delete remove show hide the a an is are was not and or of for to in with from this that abc xyz abcd abcdef abc123
	xxx xxxx const let public private static final this self super await async function func def return import require goes some thing something generated
	random access refresh client server service account accounts session cookie header plain plaintext hash hashed encrypted encoded sha256 md5 bcrypt disabled enabled
	prompt ask manual auto read write only authentication authorization mandatory rotate rotation policy manager vault store storage keyring file path url uri host
	endpoint expiry expires method mode format prefix suffix length min max count limit usage used cached total budget json yaml xml html css http https`)

// standInMarks are parts that no generated secret has, in lower case.
var standInMarks = []string{
	"redacted", "xxxx", "****", "....", "placeholder", "changeme", "change-me", "change_me", "your-", "your_", "yourpass", "yourtoken", "yoursecret", "yourkey",
	"yourapi", "insert", "replace", "<your", "notapassword", "notasecret", "not-a-", "afake", "fakekey", "dummy",
}

// templateMarks are the signs of values that a program fills in, and of patterns that describe values.
var templateMarks = []string{
	"<%", "%>", "`$", "process.env", "os.environ", "getenv", "System.", "{0}", "{1}", "{2}", "{3}", "%s", "%v", "%d", "[a-z", "[A-Z", "[0-9", "[^", `\d`, `\w`,
}

// templateBrackets enclose what a program puts in.
var templateBrackets = [...][2]string{{"${", "}"}, {"{{", "}}"}, {"$(", ")"}, {"#{", "}"}, {"%(", ")s"}}

func wordSet(words string) map[string]bool {
	m := make(map[string]bool)
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}

// placeholder reports whether the value stands for a secret instead of being one.
func placeholder(s string) bool {
	if s == "" || template(s) {
		return true
	}
	low := strings.ToLower(s)
	for _, mark := range standInMarks {
		if strings.Contains(low, mark) {
			return true
		}
	}
	switch {
	case strings.Contains(s, "EXAMPLE"), strings.HasSuffix(s, "..."), strings.HasSuffix(s, "…"):
		return true
	case strings.Contains(s, "Password") && letters.all(s): // a name, such as challengePassword
		return true
	}
	if p := measure(s); p.distinct <= 2 || p.longest*2 > p.n && p.n >= 8 {
		return p.distinct <= 2 || !strings.HasPrefix(s, "00")
	}
	return allStandIns(low)
}

// allStandIns reports whether a lower-case value is nothing but stand-in words, joined by separators and numbered.
func allStandIns(low string) bool {
	words := 0
	for w := range strings.FieldsFuncSeq(low, func(r rune) bool { return r < 'a' || r > 'z' }) {
		if !standIns[w] {
			return false
		}
		words++
	}
	return words > 0 && len(low) < 40 && measure(low).digit <= 1 && wordy.all(low)
}

var wordy = setOf("a-z0-9_ .:/!\x2d")

// template reports whether the value is to be filled in by a program: a variable, a substitution, a format verb.
func template(s string) bool {
	switch c := s[0]; {
	case c == '$' && len(s) > 1:
		return true
	case strings.IndexByte("<{[(%", c) >= 0 && strings.IndexByte(">}])%", s[len(s)-1]) >= 0:
		return true
	}
	for _, mark := range templateMarks {
		if strings.Contains(s, mark) {
			return true
		}
	}
	for _, b := range templateBrackets {
		_, rest, ok := strings.Cut(s, b[0])
		if !ok {
			continue
		}
		if inner, _, closed := strings.Cut(rest, b[1]); !closed && expression.all(rest) || closed && expression.all(inner) {
			return true
		}
	}
	return false
}

// expression is what stands between a template's brackets; a password that merely contains them has other signs as well.
var expression = setOf("0-9a-zA-Z_.:|?'\"()/,[]$@ \x2d")

// elided reports whether the text goes on with a mark of omission, so that what stands before it is only the beginning of something.
func elided(text string, end int) bool {
	rest := text[end:min(len(text), end+12)]
	for _, mark := range [...]string{"..", "…", "***"} {
		if strings.HasPrefix(rest, mark) {
			return true
		}
	}
	return strings.HasPrefix(strings.ToLower(strings.TrimLeft(rest, " ([<")), "redact")
}

// joinedWords reports names such as MatrixView4x4: few digits, and capitals only where words begin.
func joinedWords(s string) bool {
	if !word.all(s) {
		return false
	}
	p := measure(s)
	return (p.upper > 0 || strings.Contains(s, "_")) && p.digit*6 <= p.n && p.switches*3 <= p.n && 100*p.breaks < 35*p.n
}

// codeLike reports whether an unquoted value is an expression: a path of names, a call, a type.
func codeLike(s string) bool {
	if strings.ContainsAny(s, "()[]{}<>\\") {
		return true
	}
	for _, op := range [...]string{"::", "->", "&&"} {
		if strings.Contains(s, op) {
			return true
		}
	}
	if (s[0] == '&' || s[0] == '*') && word.all(s[1:]) {
		return true
	}
	if !letters[s[0]] && strings.IndexByte("_&*./~", s[0]) < 0 {
		return false
	}
	if p := measure(s); p.n >= 24 && p.kinds() == 3 && p.random() && !strings.Contains(s, ".") {
		return false // base64 has slashes too
	}
	// A dotted or slashed path of plain names.
	if strings.ContainsAny(s, "./") && !strings.ContainsAny(s, "+=!@#$%^") {
		for part := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == '.' || r == '/' }) {
			if measure(part).random() {
				return false
			}
		}
		return true
	}
	return false
}
