package memory

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"passepartout/internal/org"
	"passepartout/internal/pattern"
)

// One term of an Org match string: a sign and a tag, {regexp}, LEVEL or property
// comparison.
var matchTerm = pattern.New(`^&?([-+:]?)(?:(\{[^}]+\})|LEVEL([<=>]{1,2})([0-9]+)|((?:[\pL\pN_]|\\-)+)([<>=]{1,2})(\{[^}]+\}|"[^"]*"|-?[.0-9]+(?:[eE][-+]?[0-9]+)?)|([\pL\pN_@#%]+))`)

// matchString compiles an Org match string as org-make-tags-matcher does:
// alternatives of terms, and after a slash what the TODO keyword must be.
func (q *Query) matchString(s string) (pred, error) {
	tags, todo, hasTodo := cutTodo(s)
	var all []pred
	if strings.TrimSpace(tags) != "" {
		p, err := q.alternatives(tags, q.tagTerm)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	if !hasTodo {
		return and(all), nil
	}
	todo, open := strings.CutPrefix(todo, "!")
	if open {
		all = append(all, func(m *matcher, i int) bool { return m.n.recs[i].todo > 0 && m.n.recs[i].bits&bitDone == 0 })
	}
	if strings.TrimSpace(todo) != "" {
		p, err := q.alternatives(todo, q.todoTerm)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return and(all), nil
}

// cutTodo splits at the last run of slashes, unless a quote follows it.
func cutTodo(s string) (tags, todo string, ok bool) {
	i := strings.LastIndexByte(s, '/')
	if i < 0 || strings.Contains(s[i:], `"`) {
		return s, "", false
	}
	return strings.TrimRight(s[:i], "/"), s[i+1:], true
}

func (q *Query) alternatives(s string, term func([]string) (pred, error)) (pred, error) {
	var any []pred
	for _, alt := range splitBars(s) {
		var all []pred
		for rest := alt; rest != ""; {
			m := matchTerm.FindStringSubmatch(rest)
			if m == nil {
				return nil, q.bad(rest, `terms like +tag-tag, PROP="value", LEVEL>1, {regexp}`, nil)
			}
			p, err := term(m)
			if err != nil {
				return nil, err
			}
			if m[1] == "-" {
				p = not(p)
			}
			all = append(all, p)
			rest = rest[len(m[0]):]
		}
		any = append(any, and(all))
	}
	return or(any), nil
}

// splitBars splits at bars outside quotes and braces.
func splitBars(s string) []string {
	var out []string
	start, quote, brace := 0, false, false
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' && !brace:
			quote = !quote
		case c == '{' && !quote:
			brace = true
		case c == '}' && !quote:
			brace = false
		case c == '|' && !quote && !brace:
			if i > start {
				out = append(out, s[start:i])
			}
			start = i + 1
		}
	}
	if start < len(s) {
		out = append(out, s[start:])
	}
	return out
}

// tagTerm compiles one term of the part before the slash.
func (q *Query) tagTerm(m []string) (pred, error) {
	switch {
	case m[2] != "":
		re, err := q.regexp(m[2])
		if err != nil {
			return nil, err
		}
		return q.tagTest(func(tags []string) bool { return slices.ContainsFunc(tags, re.MatchString) }), nil
	case m[3] != "":
		n, err := strconv.Atoi(m[4])
		if err != nil {
			return nil, q.bad(m[4], "a level", nil)
		}
		op := m[3]
		return func(mt *matcher, i int) bool { return compare(op, mt.level(i)-n) }, nil
	case m[5] != "":
		return q.property([]string{strings.ReplaceAll(m[5], `\-`, "-"), m[6], m[7]})
	}
	return q.hasTag(m[8]), nil
}

// todoTerm compiles one term of the part after the slash.
func (q *Query) todoTerm(m []string) (pred, error) {
	if m[2] != "" {
		re, err := q.regexp(m[2])
		return func(mt *matcher, i int) bool { return re.MatchString(mt.todo(i)) }, err
	}
	word := m[8]
	if word == "" {
		return nil, q.bad(m[0], "a TODO keyword", nil)
	}
	return func(mt *matcher, i int) bool { return mt.todo(i) == word }, nil
}

var emacsRegexp = strings.NewReplacer(`\|`, `|`, `\(?:`, `(?:`, `\(`, `(`, `\)`, `)`, `|`, `\|`, `(`, `\(`, `)`, `\)`,
	`\<`, `\b`, `\>`, `\b`, "\\`", `\A`, `\'`, `\z`, `\{`, `{`, `\}`, `}`)

// regexp compiles {…} from Emacs's notation; letter case does not count, as there.
func (q *Query) regexp(braced string) (*regexp.Regexp, error) {
	body := braced[1 : len(braced)-1]
	re, err := regexp.Compile("(?i)" + emacsRegexp.Replace(body))
	if err != nil {
		return nil, q.bad(body, "a regular expression", nil)
	}
	return re, nil
}

// property compiles KEY, operator, value: the value in quotes is compared as text
// or, in angle brackets, as time; in braces as a regular expression; else as a number.
func (q *Query) property(args []string) (pred, error) {
	if len(args) == 1 { // prop:KEY or prop:KEY=value
		k := strings.IndexAny(args[0], "<>=!")
		if k < 0 {
			key := args[0]
			return func(m *matcher, i int) bool { _, ok := m.head(i).Property(key); return ok }, nil
		}
		op, v := cutOp(args[0][k:])
		if !strings.HasPrefix(v, `"`) && !strings.HasPrefix(v, "{") {
			v = `"` + v + `"`
		}
		args = []string{args[0][:k], op, v}
	}
	if len(args) != 3 {
		return nil, q.bad(strings.Join(args, " "), "a property, an operator and a value", nil)
	}
	get, op, v := propertyOf(args[0]), args[1], args[2]
	switch {
	case strings.HasPrefix(v, "{"):
		re, err := q.regexp(v)
		if err != nil {
			return nil, err
		}
		want := op != "<>" && op != "!="
		return func(m *matcher, i int) bool { return re.MatchString(get(m, i)) == want }, nil
	case strings.HasPrefix(v, `"`):
		v = strings.Trim(v, `"`)
		if len(v) > 1 && strings.ContainsAny(v[:1], "<[") && strings.ContainsAny(v[len(v)-1:], ">]") {
			return q.timeProperty(get, op, v)
		}
		return func(m *matcher, i int) bool { return compare(op, cmp.Compare(get(m, i), v)) }, nil
	}
	want, err := strconv.ParseFloat(v, 64)
	if err != nil {
		return nil, q.bad(v, "a number", nil)
	}
	return func(m *matcher, i int) bool { return compare(op, cmp.Compare(leadingNumber(get(m, i)), want)) }, nil
}

func (q *Query) timeProperty(get func(*matcher, int) string, op, v string) (pred, error) {
	t, ok := q.when(v)
	if !ok {
		return nil, q.bad(v, "a timestamp, <today>, <now> or <-3d>", nil)
	}
	return func(m *matcher, i int) bool {
		got, ok := q.when(get(m, i))
		return ok && compare(op, got.Compare(t))
	}, nil
}

// leadingNumber reads a number off the front of a text as Emacs does; 0 if there is none.
func leadingNumber(s string) float64 {
	s = strings.TrimLeft(s, " \t")
	for n := len(s); n > 0; n-- {
		if f, err := strconv.ParseFloat(s[:n], 64); err == nil && !strings.ContainsAny(s[:n], "xXpP_iInN") {
			return f
		}
	}
	return 0
}

// propertyOf resolves a property name, the special ones included, for comparison;
// what is missing reads as "".
func propertyOf(key string) func(*matcher, int) string {
	stamp := func(get func(org.Headline) org.Timestamp, bit uint8) func(*matcher, int) string {
		return func(m *matcher, i int) string {
			if m.n.recs[i].bits&bit == 0 {
				return ""
			}
			return get(m.head(i)).Raw
		}
	}
	switch strings.ToUpper(key) {
	case "TODO":
		return (*matcher).todo
	case "CATEGORY":
		return func(m *matcher, i int) string { return m.v.object(m.n, i).Category() }
	case "PRIORITY":
		return func(m *matcher, i int) string { return cmp.Or(m.head(i).Priority(), "B") }
	case "ITEM":
		return func(m *matcher, i int) string { return m.head(i).Title() }
	case "FILE":
		return func(m *matcher, _ int) string { return m.n.path }
	case "TAGS":
		return func(m *matcher, i int) string { return colons(m.n.tagsOf(i)) }
	case "ALLTAGS":
		return func(m *matcher, i int) string { return colons(m.n.tagSets[m.n.recs[i].tags]) }
	case "SCHEDULED":
		return stamp(org.Headline.Scheduled, bitScheduled)
	case "DEADLINE":
		return stamp(org.Headline.Deadline, bitDeadline)
	case "CLOSED":
		return stamp(org.Headline.Closed, bitClosed)
	}
	return func(m *matcher, i int) string {
		v, _ := m.head(i).Property(key)
		return v
	}
}

func colons(tags []string) string {
	if len(tags) == 0 {
		return ""
	}
	return ":" + strings.Join(tags, ":") + ":"
}
