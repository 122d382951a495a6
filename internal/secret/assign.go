package secret

import "strings"

// keywords are the stems that make a name worth looking at. The name they stand in decides (see naming), not the stem.
var keywords = []string{
	"pass", "pwd", "pw", "psw", "pword", "secret", "token", "key", "cred", "auth", "api", "cookie", "session", "signature", "sas", "login", "kennwort", "hmac", "parol",
	"jwt", "bearer", "appid",
}

// foreign are words for password in other languages; being no part of names, they stand for themselves.
var foreign = []string{
	"비밀번호", "비번", "암호", "密码", "密碼", "口令", "パスワード", "пароль", "mot de passe", "contraseña", "senha", "wachtwoord", "hasło", "lösenord",
	"salasana", "heslo",
}

// defaultTriggers is everything Default looks for.
var defaultTriggers = func() *automaton[trigger] {
	all := append(formatTriggers(), shapes...)
	for _, k := range keywords {
		all = append(all, trigger{word: k, rule: assignment})
	}
	for _, w := range foreign {
		all = append(all, trigger{word: w, rule: foreignPassword})
	}
	return newAutomaton(all, func(t trigger) string { return t.word })
}()

// claim is how strongly a name says that its value is a secret.
type claim uint8

const (
	noClaim  claim = iota
	hinted         // mentions a secret somewhere: the value must be long and of every kind
	weak           // might hold a secret: the value must be plainly random
	medium         // is meant for a secret: the value must be random
	password       // is chosen by people: the value need only not be something else
)

// assignment judges the value given to a name that contains a keyword.
func assignment(c *cursor) (Match, bool) {
	if c.start < c.skip {
		return Match{}, false
	}
	start, end := identifier(c.text, c.start, c.end)
	c.skip = end
	name := c.text[start:end]
	cl, alone := naming(name)
	if cl == noClaim {
		return Match{}, false
	}
	if cl == weak && alone {
		switch before := wordBefore(c.text, start); {
		case keyOwners[before]: // as in "api key"
			cl, alone = medium, false
		case keyKinds[before]:
			return Match{}, false
		}
	}
	a := assigned{text: c.text, start: start, claim: cl, alone: alone, upper: upNumOnly(name)}
	if !a.separator(end) {
		return Match{}, false
	}
	return a.values()
}

// foreignPassword judges the value given to a word for password.
func foreignPassword(c *cursor) (Match, bool) {
	if !boundary(c.text, c.start) || c.end < len(c.text) && word[c.text[c.end]] {
		return Match{}, false
	}
	a := assigned{text: c.text, start: c.start, claim: password}
	if !a.separator(c.end) {
		return Match{}, false
	}
	return a.values()
}

// wordBefore returns the word that a space separates from the name at start, in lower case.
func wordBefore(text string, start int) string {
	if start < 2 || text[start-1] != ' ' {
		return ""
	}
	n := back(letters, text, start-1, 16)
	return strings.ToLower(text[start-1-n : start-1])
}

// identifier widens a hit to the name around it.
func identifier(text string, start, end int) (int, int) {
	for n := 0; n < maxIdent && start > 0 && nameByte(text, start-1); n++ {
		start--
	}
	for n := 0; n < maxIdent && end < len(text) && nameByte(text, end); n++ {
		end++
	}
	return start, end
}

// nameByte reports whether the byte at i belongs to a name: a word character, or a joint between two of them.
func nameByte(text string, i int) bool {
	c := text[i]
	if word[c] {
		return i == 0 || text[i-1] != '\\' || !word[c] // the letter of an escape is no part of a name
	}
	return (c == '-' || c == '.') && i > 0 && i+1 < len(text) && word[text[i-1]] && word[text[i+1]]
}

func upNumOnly(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= 'a' && s[i] <= 'z' {
			return false
		}
	}
	return true
}

// assigned is a name with the text that follows it.
type assigned struct {
	text  string
	start int // of the name
	claim claim
	alone bool // the name is only the keyword
	upper bool // the name is in capitals, as environment variables are

	at     int  // where the value begins
	tight  bool // no space around the sign of assignment
	sign   byte // '=', ',', '(', '>', ' ' for none, 'i' for the word "is"
	option bool // the name is a command-line option
	group  bool // the value stands in parentheses or in a call
	later  bool // the value is not the first of several
}

// separator moves past the sign of assignment after the name; it reports whether there is one.
func (a *assigned) separator(i int) bool {
	t := a.text
	a.option = a.start > 0 && t[a.start-1] == '-'
	i = forWhom(t, valueAttribute(t, i))
	closed := skipTo(t, i, "\"'`]\\")
	j := skipTo(t, closed, " \t")
	if j >= len(t) {
		return false
	}
	sign := j
	for j < len(t) && j-sign < 3 && strings.IndexByte("=:?|+<>-!~", t[j]) >= 0 {
		j++
	}
	run := t[sign:j]
	switch {
	case strings.ContainsAny(run, "=:") || run == "->" || run == "<-" || run == "-->":
		a.sign = '='
		if strings.HasSuffix(run, "-") && !strings.HasPrefix(run, "<") {
			j-- // a value may begin with a dash
		}
		a.tight = sign == i && (j < len(t) && t[j] > ' ')
		if run == ":" {
			j = a.annotation(j)
		}
	case strings.HasPrefix(run, ">"):
		a.sign, j = '>', sign+1
	case run == "" && t[j] == ',':
		a.sign, j = ',', j+1
	case run == "" && t[j] == '(' && sign == i:
		a.sign, j = '(', j+1
	case run == "" && sign > closed && (hasWord(t, j, "is") || hasWord(t, j, "was")):
		a.sign, j = 'i', j+3
	case run == "" && sign > i:
		a.sign = ' '
	default:
		return false
	}
	a.at = skipTo(t, j, " \t:=")
	return a.at < len(t)
}

// valueAttribute steps over the second half of a pair spelled out: key="NAME" value="…", {"name": "NAME", "value": "…"}.
func valueAttribute(t string, i int) int {
	j := skipTo(t, i, "\"', \t\n{}")
	if j == i || j+6 > len(t) || !strings.EqualFold(t[j:j+5], "value") || word[t[j+5]] {
		return i
	}
	return j + 5
}

// forWhom steps over whose secret it is: "password for NAME:".
func forWhom(t string, i int) int {
	rest := t[i:min(len(t), i+48)]
	if !strings.HasPrefix(rest, " for ") && !strings.HasPrefix(rest, " of ") {
		return i
	}
	if end := strings.IndexAny(rest[5:], " :\n"); end > 0 && rest[5+end] == ':' {
		return i + 5 + end
	}
	return i
}

// annotation skips a type between the colon and the sign of assignment: "token: str = …".
func (a *assigned) annotation(i int) int {
	limit := min(len(a.text), i+40)
	for j := i; j < limit; j++ {
		switch c := a.text[j]; {
		case c == '=':
			if j > i && a.text[j-1] == ' ' && strings.TrimSpace(a.text[i:j]) != "" {
				return j + 1
			}
			return i
		case !word[c] && strings.IndexByte(" &<>[]'?|.*", c) < 0:
			return i
		}
	}
	return i
}

func hasWord(t string, i int, w string) bool {
	return strings.HasPrefix(t[i:], w) && i+len(w) < len(t) && (t[i+len(w)] == ' ' || t[i+len(w)] == ':')
}

// values judges the value, or each of a call's arguments.
func (a *assigned) values() (Match, bool) {
	i := a.at
	for range 4 {
		start, end, quoted := a.value(i)
		if end <= start {
			return Match{}, false
		}
		if a.later && !quoted {
			return Match{}, false
		}
		if m, ok := a.judge(start, end, quoted); ok {
			return m, true
		}
		if !quoted || a.sign != '(' && !a.group {
			return Match{}, false
		}
		// The next argument of a call, the password after a user's name, or the fallback of a lookup.
		a.later = true
		i = skipTo(a.text, end, "\"'`\\ ")
		if i >= len(a.text) || a.text[i] != ',' {
			return Match{}, false
		}
		if i = skipTo(a.text, i, ", [\n\t"); i >= len(a.text) {
			return Match{}, false
		}
	}
	return Match{}, false
}

// value returns the span of the value at i and whether it was quoted.
func (a *assigned) value(i int) (start, end int, quoted bool) {
	t := a.text
	opened := skipTo(t, i, "([{@ ")
	a.group = a.group || strings.IndexByte(t[i:opened], '(') >= 0
	i = opened
	if i+1 < len(t) && strings.IndexByte("brufLN", t[i]) >= 0 && (t[i+1] == '"' || t[i+1] == '\'') {
		i++
	}
	// A lookup with a fallback: name = os.getenv("NAME", "value").
	if j := alnumDots.runLen(t, i, 40); j > 2 && i+j+1 < len(t) && t[i+j] == '(' && strings.IndexByte("\"'", t[i+j+1]) >= 0 && lookup(t[i:i+j]) {
		i += j + 1
		a.group = true
	}
	open := i
	i = skipTo(t, i, "\"'`\\")
	limit := min(len(t), i+maxValue)
	if a.sign == '>' {
		end = i
		for end < limit && t[end] != '<' && t[end] != '}' && t[end] != '\n' {
			end++
		}
		return i, end, true
	}
	if i == open {
		return i, a.bare(i, min(limit, i+maxJudged)), false
	}
	quote := t[i-1]
	end = i
	for end < limit && t[end] != quote && t[end] != '\n' {
		if t[end] == '\\' && end+1 < limit {
			if t[end+1] == '"' || t[end+1] == '\'' || t[end+1] == 'n' || t[end+1] == 'r' {
				break
			}
			end++
		}
		end++
	}
	return i, min(end, limit), true
}

var alnumDots = setOf("0-9a-zA-Z_.")

// lookup reports whether a function's name says that it finds a value, or takes one as the fallback.
func lookup(name string) bool {
	name = strings.ToLower(name)
	for _, part := range [...]string{"env", "get", "config", "default", "credential"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// What an unquoted value stops before. A password may hold signs that would end anything else.
var (
	endsPassword = setOf("\x00- \"'`,;)]}<>|")
	endsValue    = setOf("\x00- \"'`,;()[]{}<>&|\\")
)

// bare returns the end of the unquoted value at i, no further than limit.
func (a *assigned) bare(i, limit int) int {
	ends := endsValue
	if a.claim == password {
		ends = endsPassword
	}
	for i < limit && !ends[a.text[i]] {
		i++
	}
	return i
}

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
		return found("password", Password, start, end)
	}
	return found("generic-secret", Generic, start, end)
}

// pieces looks for a long random word in a value with spaces, which is otherwise a sentence.
func (a *assigned) pieces(start int, v string) (Match, bool) {
	at := 0
	for piece := range strings.FieldsSeq(v) {
		at += strings.Index(v[at:], piece)
		p := measure(piece)
		if a.claim >= medium && p.n >= 12 && p.digit > 0 && p.kinds() >= 2 && p.random() && !placeholder(piece) && !codeLike(piece) {
			return found("generic-secret", Generic, start+at, start+at+len(piece))
		}
		at += len(piece)
	}
	if a.claim == password && appPassword(v) {
		return found("password", Password, start, start+len(v))
	}
	if a.claim == password && a.sign == '=' && at < 40 {
		if p := measure(v); p.kinds() == 3 && p.other >= 4 && !template(v) {
			return found("password", Password, start, start+len(v))
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
	if !quoted && (a.sign == ',' || a.sign == '(') {
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
		return a.acceptsPassword(v, p, quoted)
	case medium:
		if a.sign == ' ' && !a.option && !quoted || a.sign == 'i' && !quoted && p.digit == 0 {
			return false
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
		return p.secretLike() || a.sign == '(' && p.n >= 12 && p.random()
	case weak:
		if a.sign == ' ' || a.sign == 'i' || a.sign == ',' && a.alone {
			return false
		}
		if uuid(v) {
			return !a.alone && a.sign != ',' || a.tight && !quoted
		}
		if basicPair(v) {
			return true
		}
		if a.tight && !quoted && p.n >= 12 && p.kinds() == 3 && p.digit > 1 && p.random() && word.all(v) {
			return true
		}
		if a.later && quoted && p.n >= 8 && p.digit > 0 && p.lower+p.upper > 2 && a.sign == '=' {
			return !strings.ContainsAny(v, "/.")
		}
		least := 16
		if p.hex == p.n && !(a.alone && a.tight) { // the length of half the identifiers in the world
			least = 20
		}
		return p.n >= least && p.random() && p.digit > 0 && !spaced(v)
	case hinted:
		return a.sign == '=' && p.n >= 24 && p.kinds() == 3 && p.random() && p.digit >= 2 && !spaced(v)
	}
	return false
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

// acceptsPassword holds for what people choose: anything with digits or signs among letters, and plain words where only a literal can stand.
func (a *assigned) acceptsPassword(v string, p profile, quoted bool) bool {
	if p.digit == p.n || p.n > 128 || p.lower+p.upper == 0 && p.other < 3 {
		return false
	}
	if a.sign == ' ' && (!quoted || a.alone) && !a.option && !a.netrc() {
		return p.n >= 8 && p.kinds() == 3 && strings.ContainsAny(v, "!@#$%^&*~?") && !strings.ContainsAny(v, "/.:=")
	}
	if a.alone && !quoted && p.other == 0 && !(a.tight && p.digit > 0) { // "pass" is what tests do
		return false
	}
	if (a.sign == '(' || a.sign == ',' || a.alone) && (p.digit == 0 || strings.ContainsAny(v, "()")) && !(p.random() && p.n >= 12) {
		return a.sign == '=' && quoted && letters.all(v) && p.n >= 6
	}
	signs := 0
	for i := 0; i < len(v); i++ {
		if strings.IndexByte("!@#$%^&*~+=?", v[i]) >= 0 {
			signs++
		}
	}
	switch {
	case p.n >= 6 && p.digit > 0 && p.lower+p.upper > 0:
		return quoted || a.tight || signs > 0 || p.random() || a.sign == '=' || a.option || a.netrc() || a.sign == 'i' && p.digit > 1
	case p.n >= 6 && signs > 0 && p.lower+p.upper > 2:
		return true
	case quoted && a.sign != ',' && a.sign != '(':
		return p.n >= 6 && !spaced(v) && (p.upper <= 1 || p.random())
	case quoted:
		return p.n >= 8 && p.random()
	case a.tight && a.upper || a.connection() || a.option && a.sign == '=' || a.netrc():
		return p.n >= 6 && !spaced(v)
	}
	return false
}

// netrc reports whether "password WORD" follows "login WORD".
func (a *assigned) netrc() bool {
	return a.sign == ' ' && strings.Contains(a.text[max(0, a.start-80):a.start], "login ")
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
