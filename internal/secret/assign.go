package secret

import "strings"

// keywords are the stems that make a name worth looking at. The name they stand in decides (see naming), not the stem.
var keywords = []string{"pass", "pwd", "pw", "secret", "token", "key", "cred", "auth", "api", "cookie", "session", "signature", "sas", "login", "kennwort", "hmac", "parol", "jwt", "bearer", "psw", "pword"}

// defaultTriggers is everything Default looks for.
var defaultTriggers = func() *automaton[trigger] {
	all := append(formatTriggers(), shapes...)
	for _, k := range keywords {
		all = append(all, trigger{word: k, rule: assignment})
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
	a := assigned{text: c.text, start: start, claim: cl, alone: alone, upper: upNumOnly(name)}
	if !a.separator(end) {
		return Match{}, false
	}
	return a.values()
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

// words splits a name at case changes, digits and joints, lower-cased, at most the last eight.
func words(name string) []string {
	var out []string
	start := 0
	flush := func(end int) {
		if end > start {
			out = append(out, strings.ToLower(name[start:end]))
		}
		start = end
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		switch {
		case !letters[c]:
			flush(i)
			start = i + 1
		case i > start && c <= 'Z' && name[i-1] >= 'a':
			flush(i)
		case i > start && c >= 'a' && i-1 > start && name[i-1] <= 'Z' && name[i-2] <= 'Z':
			flush(i - 1)
		}
	}
	flush(len(name))
	return out[max(0, len(out)-8):]
}

// tails follow a keyword without changing what the value is.
var tails = wordSet(`value val string str text txt plain plaintext raw b hex base b64 prod production dev development staging live test default new old tmp local
	main one two`)

// passing precede a "token" that is handed around in public: cursors of lists, guards of forms, handles of running work.
var passing = wordSet("page next continuation cancellation cancel csrf xsrf authenticity sync resume start stop eos bos pad mask unk special stop sep cls prompt input output max min num total")

// keyOwners make a "key" a secret; keyKinds make it something else.
var (
	keyOwners = wordSet(`api access secret private priv auth encryption encrypt signing sign license account shared master storage service client app application admin
		server hmac aes des rsa jwt session webhook consumer subscription integration ingest ingestion deploy bot rest security cloud web license activation
		authentication authorization connection sas cos iam pass wallet validator deployer function host`)
	keyKinds = wordSet(`public pub foreign primary partition cache sort idempotency registry object row lookup index group query dedup trace correlation request event message
		translation hot shortcut map dict json xml cookie field column table sub parent child item unique composite natural surrogate arrow enter escape home end tab
		space function locale lang language theme color icon menu tree node hash cluster range shard routing bucket s3 file path image i18n fk pk by on or and no any
		each for the this that left right up down react list meta metadata config setting settings property attribute attr state action param header context tag label
		primarykey apikeyname pressed down up host known recipient`)
)

// naming says what a name claims about its value, and whether it is nothing but the keyword.
func naming(name string) (cl claim, alone bool) {
	ws := words(name)
	for len(ws) > 1 && (tails[ws[len(ws)-1]] || len(ws[len(ws)-1]) == 1) {
		ws = ws[:len(ws)-1]
	}
	if len(ws) == 0 {
		return noClaim, false
	}
	alone = len(ws) == 1
	last := ws[len(ws)-1]
	before := ""
	if !alone {
		before = ws[len(ws)-2]
	}
	joined := before + last
	switch {
	case last == "pass":
		return password, alone
	case last == "pw", last == "pwd", last == "pws", hasSuffix(joined, "password", "passwords", "passwd", "passphrase", "passcode", "passwort", "kennwort", "parola", "parol", "userpass", "dbpass", "upwd", "userpwd", "pswd", "psw", "psword", "passwrd", "pword"):
		return password, false
	case last == "pin", last == "count", last == "name", last == "id":
		return noClaim, false
	case hasSuffix(joined, "secret", "secrets", "token", "apikey", "accesskey", "secretkey", "privatekey", "credential", "credentials", "creds", "secretaccesskey", "authkey", "passkey", "privkey"):
		if last == "token" && passing[before] || hasSuffix(last, "key") && keyKinds[before] {
			return noClaim, false
		}
		return medium, false
	case last == "tokens" && !passing[before], last == "keys" && keyOwners[before], last == "apikeys":
		return medium, false
	case last == "key" && keyOwners[before]:
		return medium, false
	case last == "key" && keyKinds[before]:
		return noClaim, false
	case hasSuffix(last, "key"):
		return weak, alone
	case publicTails[last]:
		return noClaim, false
	case mentions(ws, "secret", "token", "password", "passwd", "apikey", "credential", "credentials"):
		return hinted, false
	case hasSuffix(joined, "auth", "authorization", "session", "sessionid", "cookie", "signature", "sas", "hmac", "api", "login", "jwt", "bearer", "authtoken"):
		return weak, false
	}
	return noClaim, false
}

// publicTails end names of things about a secret that anybody may know.
var publicTails = wordSet(`id ids name names url uri urls path paths file files dir type types hash hashes digest count counts size length len limit limits usage used
	expiry expires expiration ttl age date time at arn version algorithm alg issuer audience scope scopes provider manager service store storage source ref refs
	reference endpoint host method mode policy rotation status state error err message prompt label title placeholder pattern regex format prefix suffix index
	fingerprint thumbprint kid checksum sha md5 parser class interface factory handler helper util test tests spec mock enabled required`)

// mentions reports whether any of the words is in the list.
func mentions(ws []string, list ...string) bool {
	for _, w := range ws {
		for _, l := range list {
			if w == l {
				return true
			}
		}
	}
	return false
}

func hasSuffix(s string, suffixes ...string) bool {
	for _, suf := range suffixes {
		if strings.HasSuffix(s, suf) {
			return true
		}
	}
	return false
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
		if m, ok := a.judge(start, end, quoted); ok {
			return m, true
		}
		if !quoted || a.sign != '(' && a.sign != '=' && a.sign != ',' {
			return Match{}, false
		}
		// The next argument of a call, or the fallback of a lookup.
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
	i = skipTo(t, i, "([{@ ")
	if i+1 < len(t) && strings.IndexByte("brufLN", t[i]) >= 0 && (t[i+1] == '"' || t[i+1] == '\'') {
		i++
	}
	// A lookup with a fallback: name = getenv("NAME", "value").
	if j := alnumDots.runLen(t, i, 40); j > 2 && i+j+1 < len(t) && t[i+j] == '(' && strings.IndexByte("\"'", t[i+j+1]) >= 0 {
		i += j + 1
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
		limit = min(limit, i+maxJudged)
		for end = i; end < limit && t[end] > ' ' && !a.ends(t[end]); end++ {
		}
		return i, end, false
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

// ends reports whether an unquoted value stops before c. A password may hold signs that would end anything else.
func (a *assigned) ends(c byte) bool {
	if a.claim == password {
		return strings.IndexByte("\"'`,;)]}<>|", c) >= 0
	}
	return strings.IndexByte("\"'`,;()[]{}<>&|\\", c) >= 0
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
	if i := strings.IndexAny(v, " \t"); i >= 0 {
		return a.pieces(start, v)
	}
	if !a.accepts(v, quoted, start+len(v)) || elided(a.text, start+len(v)) {
		return Match{}, false
	}
	end = start + len(v)
	if len(v) == maxJudged { // the judged part stands for all of it
		for limit := min(len(a.text), start+maxValue); end < limit && a.text[end] > ' ' && !a.ends(a.text[end]); end++ {
		}
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
		if p := measure(piece); a.claim >= medium && p.n >= 12 && p.random() && p.kinds() >= 2 && !placeholder(piece) && !codeLike(piece) && p.digit > 0 {
			return found("generic-secret", Generic, start+at, start+at+len(piece))
		}
		at += len(piece)
	}
	if a.claim == password && a.sign == '=' && at < 40 {
		if p := measure(v); p.kinds() == 3 && p.other >= 4 && !template(v) {
			return found("password", Password, start, start+len(v))
		}
	}
	return Match{}, false
}

// accepts is the heart of the matter: is this value, in this place, a secret?
func (a *assigned) accepts(v string, quoted bool, end int) bool {
	if len(v) < 4 || len(v) >= maxValue || placeholder(v) && !(a.connection() && !urlStandIn(v)) {
		return false
	}
	if end < len(a.text) && a.text[end] == '(' {
		return false
	}
	if !quoted && codeLike(v) || path(v) || number(v) {
		return false
	}
	if !quoted && (a.sign == ',' || a.sign == '(') {
		return false
	}
	p := measure(v)
	switch a.claim {
	case password:
		return a.acceptsPassword(v, p, quoted)
	case medium:
		if a.sign == ' ' && !a.option && !quoted || a.sign == 'i' && !quoted && p.digit == 0 {
			return false
		}
		return p.secretLike() || a.sign == '(' && p.n >= 12 && p.random() || quoted && digits.all(v) && p.n >= 16 && p.n <= 40 && p.distinct >= 6
	case hinted:
		return a.sign == '=' && p.n >= 24 && p.kinds() == 3 && p.random() && p.digit >= 2 && !spaced(v)
	case weak:
		if a.sign == ' ' || a.sign == 'i' || a.sign == ',' && a.alone {
			return false
		}
		if uuid(v) {
			return !a.alone && a.sign != ','
		}
		return p.n >= 16 && p.random() && p.digit > 0 && !spaced(v)
	}
	return false
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
	if a.sign == ' ' && !quoted && !a.option && !a.netrc() {
		return false
	}
	if a.alone && !quoted && p.other == 0 && !(a.tight && p.digit > 0) { // "pass" is what tests do
		return false
	}
	signs := 0
	for i := 0; i < len(v); i++ {
		if strings.IndexByte("!@#$%^&*~+=?", v[i]) >= 0 {
			signs++
		}
	}
	switch {
	case p.n >= 6 && p.digit > 0 && p.lower+p.upper > 0:
		return quoted || a.tight || signs > 0 || p.random() || a.sign == '=' || a.option || a.netrc()
	case p.n >= 6 && signs > 0 && p.lower+p.upper > 2:
		return true
	case quoted && a.sign != ',' && a.sign != '(':
		return p.n >= 6 && !spaced(v) && (p.upper <= 1 || p.random())
	case quoted:
		return p.n >= 8 && p.random()
	case a.tight && a.upper || a.connection() || a.option || a.netrc():
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
