package secret

import "strings"

// judge decides about one value.
func (a *assigned) judge(start, end int, quoted bool) (Match, bool) {
	v := strings.TrimRight(a.text[start:end], " \t\\")
	if !quoted {
		v = strings.TrimRight(v, ".:,")
	}
	if v == "" {
		return Match{}, false
	}
	if quoted && strings.ContainsAny(v, " \t") {
		return a.pieces(start, v)
	}
	if !a.accepts(v, quoted, start+len(v)) || elided(a.text, start+len(v)) {
		return Match{}, false
	}
	end = start + len(v)
	if len(v) == maxJudged { // the judged part stands for all of it
		end = a.bare(end, min(len(a.text), start+maxValue))
	}
	if a.claim == password {
		return report("password", Password, start, end)
	}
	return report("generic-secret", Generic, start, end)
}

// pieces looks for a long random word in a value with spaces, which is otherwise a sentence.
func (a *assigned) pieces(start int, v string) (Match, bool) {
	at := 0
	for piece := range strings.FieldsSeq(v) {
		at += strings.Index(v[at:], piece)
		p := measure(piece)
		if a.claim >= medium && p.n >= 12 && p.digit > 0 && p.kinds() >= 2 && p.random() && !placeholder(piece) && !codeLike(piece) {
			return report("generic-secret", Generic, start+at, start+at+len(piece))
		}
		at += len(piece)
	}
	if a.claim == password && appPassword(v) {
		return report("password", Password, start, start+len(v))
	}
	if a.claim == password && a.sign == assigns && at < 40 {
		if p := measure(v); p.kinds() == 3 && p.other >= 4 && !template(v) {
			return report("password", Password, start, start+len(v))
		}
	}
	return Match{}, false
}

// appPassword recognises four groups of four letters, as mail providers generate them.
func appPassword(v string) bool {
	groups := strings.Fields(v)
	if len(groups) != 4 {
		return false
	}
	for _, g := range groups {
		if len(g) != 4 || !letters.all(g) || strings.ToLower(g) != g {
			return false
		}
	}
	return true
}

// accepts is the heart of the matter: is this value, in this place, a secret? What costs least is asked first.
func (a *assigned) accepts(v string, quoted bool, end int) bool {
	if len(v) < 4 || len(v) >= maxValue || end < len(a.text) && a.text[end] == '(' {
		return false
	}
	if !quoted && (a.sign == lists || a.sign == calls) {
		return false
	}
	if !a.convinces(v, measure(v), quoted) {
		return false
	}
	if placeholder(v) && !(a.connection() && !urlStandIn(v)) || a.claim != password && joinedWords(v) {
		return false
	}
	return (quoted || !codeLike(v)) && !path(v) && !number(v)
}

// convinces weighs the value against what the name claims.
func (a *assigned) convinces(v string, p profile, quoted bool) bool {
	switch a.claim {
	case password:
		return a.password(v, p, quoted)
	case medium:
		return a.medium(v, p, quoted)
	case weak:
		return a.weak(v, p, quoted)
	case hinted:
		return a.sign == assigns && p.n >= 24 && p.kinds() == 3 && p.random() && p.digit >= 2 && !spaced(v)
	default:
	}
	return false
}

// medium is for names meant for secrets: the value must have been generated, or be the password of a pair.
func (a *assigned) medium(v string, p profile, quoted bool) bool {
	if a.sign == says && !quoted && p.digit == 0 {
		return false
	}
	if a.sign == spaces && !a.option && !quoted { // ENV API_TOKEN value, but also prose
		return p.n >= 20 && p.digit >= 3 && p.secretLike()
	}
	if a.later && p.n >= 8 && p.digit > 0 && p.lower+p.upper > 2 && !strings.Contains(v, "/") {
		return true
	}
	if _, pass, ok := strings.Cut(v, ":"); ok && pairLike(pass) {
		return true
	}
	if quoted && p.digit == p.n { // a number long enough to be an account's
		return p.n >= 16 && p.n <= 40 && p.distinct >= 6
	}
	if quoted && p.signs >= 6 && p.n >= 10 && p.n <= 80 { // nothing but a password has that many different signs
		return true
	}
	return p.secretLike() || a.sign == calls && p.n >= 12 && p.random()
}

// weak is for names that hold anything at all: the value must be random beyond doubt.
func (a *assigned) weak(v string, p profile, quoted bool) bool {
	inLog := a.tight && !quoted // as programs print their settings
	switch {
	case a.sign == spaces, a.sign == says, a.sign == lists && a.alone:
		return false
	case uuid(v):
		return inLog || !a.alone && a.sign != lists
	case basicPair(v):
		return true
	case inLog && p.n >= 12 && p.kinds() == 3 && p.digit > 1 && p.random() && word.all(v):
		return true
	case a.later && quoted && p.n >= 8 && p.digit > 0 && p.lower+p.upper > 2:
		return !strings.ContainsAny(v, "/.") // auth=("user", "password")
	}
	least := 16
	if p.hex == p.n && !(a.alone && a.tight) { // sixteen hexadecimal digits are the length of half the identifiers in the world
		least = 20
	}
	return p.n >= least && p.random() && p.digit > 0 && !spaced(v)
}

// pairLike holds for the second half of user:password.
func pairLike(pass string) bool {
	p := measure(pass)
	return p.n >= 8 && p.n <= 64 && p.digit > 0 && p.lower+p.upper > 2 && p.kinds() >= 2 && !strings.ContainsAny(pass, "/:.")
}

// secretLike holds for values long or varied enough to have been generated.
func (p profile) secretLike() bool {
	if !p.random() {
		return false
	}
	switch {
	case p.digit == 0 && p.other == 0:
		return p.n >= 20
	case p.kinds() == 3:
		return p.n >= 12
	case p.other > 0 && p.digit > 0:
		return p.n >= 10 && p.breaks >= 4
	}
	return p.n >= 18
}

// password holds for what people choose: anything with digits or signs among letters, and plain words where only a literal can stand.
func (a *assigned) password(v string, p profile, quoted bool) bool {
	if p.digit == p.n || p.n > 128 || p.lower+p.upper == 0 && p.other < 3 {
		return false
	}
	if !quoted && p.digit == 0 && strings.IndexByte(v, '=') > 0 { // the next assignment
		return false
	}
	if a.sign == spaces && (!quoted || a.alone) && !a.option && !a.netrc() {
		return p.n >= 8 && p.kinds() == 3 && strings.ContainsAny(v, "!@#$%^&*~?") && !strings.ContainsAny(v, "/.:=")
	}
	if a.alone && !quoted && p.other == 0 && !(a.tight && p.digit > 0) { // "pass" is what tests do
		return false
	}
	if (a.sign == calls || a.sign == lists || a.alone) && (p.digit == 0 || strings.ContainsAny(v, "()")) && !(p.random() && p.n >= 12) {
		return a.sign == assigns && quoted && letters.all(v) && p.n >= 6
	}
	signs := strings.ContainsAny(v, "!@#$%^&*~+=?")
	switch {
	case p.n >= 6 && p.digit > 0 && p.lower+p.upper > 0:
		return quoted || a.sign == assigns || a.option || a.netrc() || signs || p.random() || a.sign == says && p.digit > 1
	case p.n >= 6 && signs && p.lower+p.upper > 2:
		return true
	case quoted && a.sign != lists && a.sign != calls:
		return p.n >= 6 && !spaced(v) && (p.upper <= 1 || p.random())
	case quoted:
		return p.n >= 8 && p.random()
	case a.tight && a.upper || a.connection() || a.option && a.sign == assigns || a.netrc():
		return p.n >= 6 && !spaced(v)
	}
	return false
}

// netrc reports whether "password WORD" follows "login WORD".
func (a *assigned) netrc() bool {
	return a.sign == spaces && strings.Contains(a.text[max(0, a.start-80):a.start], "login ")
}

// connection reports whether the assignment stands among others separated by semicolons.
func (a *assigned) connection() bool {
	if a.claim != password || !a.tight {
		return false
	}
	before := strings.TrimRight(a.text[max(0, a.start-40):a.start], " ")
	return strings.HasSuffix(before, ";")
}

// spaced reports names of several plain words, such as form-control or NOT_A_SECRET.
func spaced(v string) bool {
	if !strings.ContainsAny(v, "-_.:/") {
		return false
	}
	for w := range strings.FieldsFuncSeq(v, func(r rune) bool { return strings.ContainsRune("-_.:/", r) }) {
		if p := measure(w); p.n >= 8 && p.random() || p.digit > 0 && p.lower > 0 && p.upper > 0 || p.n >= 20 {
			return false
		}
	}
	return !uuid(v)
}

// path reports file names and addresses, which are not secret themselves.
func path(v string) bool {
	if strings.HasPrefix(v, "/") || strings.HasPrefix(v, "~/") || strings.HasPrefix(v, "./") || strings.HasPrefix(v, "../") {
		for part := range strings.SplitSeq(v, "/") {
			if p := measure(part); p.n >= 20 && p.random() {
				return false
			}
		}
		return true
	}
	return strings.Contains(v, "://")
}

// number reports a hexadecimal constant of a machine word or less.
func number(v string) bool {
	v = strings.TrimPrefix(v, "-")
	return len(v) <= 18 && strings.HasPrefix(v, "0x") && anyHex.all(v[2:])
}

func uuid(v string) bool {
	if len(v) != 36 {
		return false
	}
	for i := 0; i < len(v); i++ {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (v[i] == '-') || !dash && !anyHex[v[i]] {
			return false
		}
	}
	return true
}
