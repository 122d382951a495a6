package tui

import (
	"slices"
	"strings"

	"passepartout/internal/pattern"
)

// emphasis are the marks that must stand between words: the opening one after a
// blank or a bracket, the closing one before a blank or punctuation. Slashes are
// left alone, since paths have them.
var emphasis = []struct {
	mark string
	role role
}{
	{"**", roleStrong},
	{"*", roleStrong},
	{"__", roleStrong},
	{"_", roleEmph},
	{"`", roleCode},
	{"~~", roleDim}, // struck out
	{"~", roleCode},
	{"=", roleCode},
}

var (
	mdLink   = pattern.New(`^\[([^\]\n]+)\]\(([^)\s]+)\)`)
	orgLink  = pattern.New(`^\[\[([^\]]+)\](?:\[([^\]]+)\])?\]`)
	address  = pattern.New(`^(?:https?|file|mailto):[^\s<>"]+`)
	checkbox = pattern.New(`^\[[ xX-]\](?:\s|$)`)
	todoWord = pattern.New(`\b(?:` + strings.Join(todoWords, "|") + `)\b`)
)

// todoWords are Org's task states.
var todoWords = []string{"TODO", "NEXT", "WAITING", "DONE", "CANCELLED"}

// Bounds on how much markup is looked for in one line, and how far: text that is
// all brackets must not cost more than text that is all letters.
const (
	maxMarks = 400
	maxReach = 2048
)

// inline splits a line into spans.
func inline(s string) []span {
	if !strings.ContainsAny(s, "*_`~=[:") {
		return keywords(s, rolePlain)
	}
	var out []span
	from := 0
	flush := func(to int) {
		if to > from {
			out = append(out, keywords(s[from:to], rolePlain)...)
		}
	}
	tries := 0
	for i := 0; i < len(s) && tries < maxMarks; {
		if strings.IndexByte("*_`~=[hfm", s[i]) < 0 {
			i++
			continue
		}
		tries++
		spans, n := mark(s, i)
		if n == 0 {
			i++
			continue
		}
		flush(i)
		out = append(out, spans...)
		i += n
		from = i
	}
	flush(len(s))
	return out
}

// mark is what a piece of markup at i means, and how long it is; 0 when there is
// none.
func mark(s string, i int) ([]span, int) {
	near := s[i:min(len(s), i+maxReach)]
	switch c := s[i]; {
	case c == '[':
		if strings.IndexByte(near, ']') > 0 {
			return bracket(near)
		}
	case c == 'h' || c == 'f' || c == 'm':
		if i > 0 && letter(s[i-1]) {
			return nil, 0
		}
		if a := address.FindString(near); a != "" {
			a = strings.TrimRight(a, ".,;:!?)'")
			return []span{{a, roleLink}}, len(a)
		}
	case strings.IndexByte("*_`~=", c) >= 0:
		return emphasised(s, i)
	}
	return nil, 0
}

// bracket is a link or a check box. A link whose text is not its address shows
// both: a person must see where it leads.
func bracket(s string) ([]span, int) {
	if c := checkbox.FindString(s); c != "" {
		r := roleAsk
		if c[1] == 'x' || c[1] == 'X' {
			r = roleOK
		}
		return []span{{c[:3], r}}, 3
	}
	to, name, n := "", "", 0
	if l := orgLink.FindStringSubmatch(s); l != nil {
		to, name, n = l[1], l[2], len(l[0])
	} else if l := mdLink.FindStringSubmatch(s); l != nil {
		to, name, n = l[2], l[1], len(l[0])
	}
	switch {
	case n == 0:
		return nil, 0
	case name == "" || name == to:
		return []span{{to, roleLink}}, n
	}
	return []span{{name, roleLink}, {" (" + to + ")", roleDim}}, n
}

func emphasised(s string, i int) ([]span, int) {
	if i > 0 && strings.IndexByte(" \t([{'\"-", s[i-1]) < 0 {
		return nil, 0
	}
	for _, e := range emphasis {
		if !strings.HasPrefix(s[i:], e.mark) {
			continue
		}
		body := s[i+len(e.mark):]
		end := strings.Index(body[:min(len(body), maxReach)], e.mark)
		if end <= 0 || body[0] == ' ' || body[end-1] == ' ' {
			continue
		}
		if after := end + len(e.mark); after < len(body) && strings.IndexByte(" \t)]}'\".,;:!?-", body[after]) < 0 {
			continue
		}
		return []span{{body[:end], e.role}}, end + 2*len(e.mark)
	}
	return nil, 0
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' }

// keywords puts Org's task states into colours.
func keywords(s string, base role) []span {
	if !slices.ContainsFunc(todoWords, func(w string) bool { return strings.Contains(s, w) }) {
		return []span{{s, base}} // the expression is slow, and most text has none
	}
	at := todoWord.Regexp().FindAllStringIndex(s, -1)
	var out []span
	from := 0
	for _, p := range at {
		if p[0] > from {
			out = append(out, span{s[from:p[0]], base})
		}
		r := roleAsk
		if w := s[p[0]:p[1]]; w == "DONE" || w == "CANCELLED" {
			r = roleOK
		}
		out = append(out, span{s[p[0]:p[1]], r})
		from = p[1]
	}
	if from < len(s) {
		out = append(out, span{s[from:], base})
	}
	return out
}
