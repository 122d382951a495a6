package secret

import (
	"strings"
	"sync"
)

// keywords are the stems that make a name worth looking at. The name they stand in decides (see naming), not the stem.
var keywords = []string{
	"pass", "pwd", "pw", "psw", "pword", "secret", "token", "key", "cred", "auth", "api", "cookie", "session", "signature", "sas", "login", "kennwort", "hmac", "parol",
	"jwt", "bearer", "appid", "otp",
}

// foreign are words for password in other languages; being no part of names, they stand for themselves.
var foreign = []string{
	"비밀번호", "비번", "암호", "密码", "密碼", "口令", "パスワード", "пароль", "mot de passe", "contraseña", "senha", "wachtwoord", "hasło", "lösenord",
	"salasana", "heslo",
}

// defaultTriggers is everything Default looks for. It is built when somebody looks:
// most processes of this program, such as a sandbox's first, never do.
var defaultTriggers = sync.OnceValue(func() *automaton[trigger] {
	all := append(formatTriggers(), shapes...)
	for _, k := range keywords {
		all = append(all, trigger{word: k, rule: assignment})
	}
	for _, w := range foreign {
		all = append(all, trigger{word: w, rule: foreignPassword})
	}
	return newAutomaton(all, func(t trigger) string { return t.word })
})

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
		return i == 0 || text[i-1] != '\\' // the letter of an escape is no part of a name
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

// sign is what stands between a name and its value.
type sign uint8

const (
	noSign   sign = iota
	assigns       // = : := => and their kin
	lists         // a comma: the value is the next item
	calls         // an opening parenthesis: the values are arguments
	encloses      // the end of a tag
	says          // the word "is"
	spaces        // nothing but space
)

// assigned is a name with the text that follows it.
type assigned struct {
	text  string
	start int // of the name
	claim claim
	alone bool // the name is only the keyword
	upper bool // the name is in capitals, as environment variables are

	at     int  // where the value begins
	tight  bool // no space around the sign of assignment
	sign   sign
	option bool // the name is a command-line option
	group  bool // the value stands in parentheses or in a call
	later  bool // the value is not the first of several
}

// separator moves past the sign of assignment after the name; it reports whether there is one.
func (a *assigned) separator(i int) bool {
	t := a.text
	a.option = a.start > 0 && t[a.start-1] == '-'
	i = forWhom(t, valueAttribute(t, subscript(t, i)))
	if end := closingTag(t, i); end > i {
		a.sign, a.at = encloses, openingTags(t, end)
		return a.at < len(t)
	}
	closed := skipTo(t, i, "\"'`]\\")
	j := skipTo(t, closed, " \t")
	if j >= len(t) {
		return false
	}
	from := j
	for j < len(t) && j-from < 3 && strings.IndexByte("=:?|+<>-!~", t[j]) >= 0 {
		j++
	}
	run := t[from:j]
	switch {
	case strings.ContainsAny(run, "=:") || run == "->" || run == "<-" || run == "-->":
		a.sign = assigns
		if strings.HasSuffix(run, "-") && !strings.HasPrefix(run, "<") {
			j-- // a value may begin with a dash
		}
		a.tight = from == i && (j < len(t) && t[j] > ' ')
		if run == ":" {
			j = a.annotation(j)
		}
	case strings.HasPrefix(run, ">"):
		a.sign, j = encloses, openingTags(t, from+1)
	case run == "" && t[j] == ',':
		a.sign, j = lists, j+1
	case run == "" && t[j] == '(' && from == i:
		a.sign, j = calls, j+1
	case run == "" && from > closed && (hasWord(t, j, "is") || hasWord(t, j, "was")):
		a.sign, j = says, j+3
	case run == "" && from > i:
		a.sign = spaces
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

// subscript steps over the index of an array.
func subscript(t string, i int) int {
	if i < len(t) && t[i] == '[' {
		if n := strings.IndexByte(t[i:min(len(t), i+24)], ']'); n > 0 {
			return i + n + 1
		}
	}
	return i
}

// closingTag returns the end of the tag that closes around a name, as in a property list's <key>NAME</key>, or i.
func closingTag(t string, i int) int {
	if strings.HasPrefix(t[i:], "</") {
		if n := strings.IndexByte(t[i:min(len(t), i+40)], '>'); n > 0 {
			return i + n + 1
		}
	}
	return i
}

// openingTags steps over the tags before a value.
func openingTags(t string, i int) int {
	for range 3 {
		j := skipTo(t, i, " \t\r\n")
		if j+1 >= len(t) || t[j] != '<' || !letters[t[j+1]] {
			break
		}
		n := strings.IndexByte(t[j:min(len(t), j+40)], '>')
		if n < 0 {
			break
		}
		i = j + n + 1
	}
	return i
}

// forWhom steps over whose secret it is: "password for NAME:", "password for the NAME account is".
func forWhom(t string, i int) int {
	rest := t[i:min(len(t), i+48)]
	if !strings.HasPrefix(rest, " for ") && !strings.HasPrefix(rest, " of ") {
		return i
	}
	if end := strings.IndexAny(rest[5:], " :\n"); end > 0 && rest[5+end] == ':' {
		return i + 5 + end
	}
	if line, _, _ := strings.Cut(rest, "\n"); strings.Contains(line, " is ") {
		return i + strings.Index(line, " is ")
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
		if !quoted || a.sign != calls && !a.group {
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
	if a.sign == encloses {
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
		// Padding ends a value; in the middle of one it would be the next assignment. Only passwords hold anything.
		if a.text[i] == '=' && a.claim != password && i+1 < limit && alnum[a.text[i+1]] {
			break
		}
		i++
	}
	return i
}
