package memory

import (
	"fmt"
	"iter"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"passepartout/internal/org"
	"passepartout/internal/pattern"
	"passepartout/internal/sexp"
)

// Query is a compiled question about headlines. It belongs to no view and is safe
// for concurrent use. docs/memory.md describes the language.
type Query struct {
	text string
	root pred
	sets []func(tags []string) bool // tests of tag lists, judged once per distinct list
	tags []string                   // tags asked for, for hints
	now  time.Time
}

// pred tests one headline of the matcher's file.
type pred func(m *matcher, i int) bool

// QueryError says what in a query cannot be understood and, where one can guess,
// what was meant.
type QueryError struct {
	Query, Found, Want, Meant string
}

// Error says what was wanted, what was found and what was probably meant.
func (e *QueryError) Error() string {
	s := fmt.Sprintf("query %q: want %s, found %q", e.Query, e.Want, e.Found)
	if e.Meant != "" {
		s += fmt.Sprintf(": did you mean %q", e.Meant)
	}
	return s
}

// ParseQuery compiles a query: words that must all hold, each an Org match string
// or key:value, or one s-expression. now is what relative dates are reckoned from.
func ParseQuery(text string, now time.Time) (*Query, error) {
	q := &Query{text: text, now: now}
	trimmed := strings.TrimSpace(text)
	if strings.HasPrefix(trimmed, "(") {
		root, err := q.parseSexp(trimmed)
		q.root = root
		return q, err
	}
	var all []pred
	for _, word := range splitWords(trimmed) {
		p, err := q.word(word)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	q.root = and(all)
	return q, nil
}

// Match returns the headlines a query selects, files in path order.
func (v *View) Match(query string) ([]Object, error) {
	q, err := ParseQuery(query, v.clock())
	if err != nil {
		return nil, err
	}
	type place struct {
		n *node
		i int
	}
	var found []place // first, because an Object is large and growing a slice copies
	for _, k := range v.sorted {
		m := q.on(v, v.files[k])
		for i := range m.n.recs {
			if m.headline(i) {
				found = append(found, place{m.n, i})
			}
		}
	}
	out := make([]Object, len(found))
	for j, p := range found {
		v.fill(&out[j], p.n, p.i)
	}
	return out, nil
}

// Select yields the headlines a query selects, one at a time.
func (v *View) Select(q *Query) iter.Seq[Object] {
	return func(yield func(Object) bool) {
		for _, k := range v.sorted {
			n := v.files[k]
			m := q.on(v, n)
			for i := range n.recs {
				if m.headline(i) && !yield(v.object(n, i)) {
					return
				}
			}
		}
	}
}

// Count is the number of headlines a query selects.
func (v *View) Count(q *Query) int {
	total := 0
	for _, k := range v.sorted {
		m := q.on(v, v.files[k])
		for i := range v.files[k].recs {
			if m.headline(i) {
				total++
			}
		}
	}
	return total
}

// Hint explains an empty answer: a tag asked for that no headline has, with the
// nearest one that exists. "" if there is nothing to say.
func (v *View) Hint(q *Query) string {
	var known []string
	for _, k := range v.sorted {
		known = append(known, v.files[k].everyTag()...)
	}
	slices.Sort(known)
	known = slices.Compact(known)
	for _, t := range q.tags {
		if slices.Contains(known, t) {
			continue
		}
		if near, ok := sexp.Nearest(t, known); ok {
			return fmt.Sprintf("no headline has the tag %q: did you mean %q, or text:%s", t, near, t)
		}
		return fmt.Sprintf("no headline has the tag %q; to search the text, write text:%s", t, t)
	}
	return ""
}

// matcher is a query bound to one file of a view.
type matcher struct {
	q    *Query
	v    *View
	n    *node
	hits []int8 // per tag test and tag list: 0 not judged, 1 yes, -1 no
}

func (q *Query) on(v *View, n *node) *matcher {
	return &matcher{q: q, v: v, n: n, hits: make([]int8, len(q.sets)*len(n.tagSets))}
}

func (m *matcher) headline(i int) bool { return m.q.root(m, i) }

func (m *matcher) head(i int) org.Headline { return m.n.of.Headline(i) }

// tagged judges a test of the headline's tags, remembering the answer per list.
func (m *matcher) tagged(test, i int) bool {
	set := int(m.n.recs[i].tags)
	h := &m.hits[test*len(m.n.tagSets)+set]
	if *h == 0 {
		*h = -1
		if m.q.sets[test](m.n.tagSets[set]) {
			*h = 1
		}
	}
	return *h > 0
}

func (q *Query) tagTest(f func([]string) bool) pred {
	k := len(q.sets)
	q.sets = append(q.sets, f)
	return func(m *matcher, i int) bool { return m.tagged(k, i) }
}

func (q *Query) hasTag(tag string) pred {
	q.tags = append(q.tags, tag)
	return q.tagTest(func(tags []string) bool { return slices.Contains(tags, tag) })
}

func and(ps []pred) pred {
	switch len(ps) {
	case 0:
		return func(*matcher, int) bool { return true }
	case 1:
		return ps[0]
	}
	return func(m *matcher, i int) bool {
		for _, p := range ps {
			if !p(m, i) {
				return false
			}
		}
		return true
	}
}

func or(ps []pred) pred {
	if len(ps) == 1 {
		return ps[0]
	}
	return func(m *matcher, i int) bool {
		for _, p := range ps {
			if p(m, i) {
				return true
			}
		}
		return false
	}
}

func not(p pred) pred { return func(m *matcher, i int) bool { return !p(m, i) } }

func (q *Query) bad(found, want string, known []string) error {
	e := &QueryError{Query: q.text, Found: found, Want: want}
	if near, ok := sexp.Nearest(found, known); ok {
		e.Meant = near
	}
	return e
}

// splitWords cuts at blanks outside quotes and braces.
func splitWords(s string) []string {
	var out []string
	start, quote, brace := -1, false, false
	for i, c := range s {
		switch {
		case c == '"' && !brace:
			quote = !quote
		case c == '{' && !quote:
			brace = true
		case c == '}' && !quote:
			brace = false
		}
		if (c == ' ' || c == '\t' || c == '\n') && !quote && !brace {
			if start >= 0 {
				out = append(out, s[start:i])
				start = -1
			}
			continue
		}
		if start < 0 {
			start = i
		}
	}
	if start >= 0 {
		out = append(out, s[start:])
	}
	return out
}

var keyWord = pattern.New(`^(-?)([a-z][a-z-]*):(.+)$`)

// word compiles one word of a query.
func (q *Query) word(w string) (pred, error) {
	if len(w) > 1 && w[0] == '"' && w[len(w)-1] == '"' {
		return q.term("text", []string{w[1 : len(w)-1]})
	}
	if m := keyWord.FindStringSubmatch(w); m != nil {
		p, err := q.term(m[2], []string{strings.Trim(m[3], `"`)})
		if err == nil && m[1] != "" {
			p = not(p)
		}
		return p, err
	}
	return q.matchString(w)
}

// terms are the keys of key:value words and the operators of s-expressions.
var terms = []string{
	"tag", "own", "todo", "is", "priority", "level", "prop", "text", "title", "path", "scope", "origin", "id", "parent",
	"scheduled", "deadline", "closed", "since", "until", "links", "match",
}

// term compiles one test. An operator may stand before the value: deadline:<2026-01-01.
func (q *Query) term(key string, args []string) (pred, error) {
	arg := strings.Join(args, " ")
	switch key {
	case "tag":
		return q.hasTag(arg), nil
	case "own":
		q.tags = append(q.tags, arg)
		return func(m *matcher, i int) bool { return slices.Contains(m.n.tagsOf(i), arg) }, nil
	case "todo":
		words := strings.FieldsFunc(arg, func(r rune) bool { return r == ',' || r == '|' || r == ' ' })
		return func(m *matcher, i int) bool { return slices.Contains(words, m.todo(i)) }, nil
	case "is":
		return q.state(arg)
	case "priority":
		return func(m *matcher, i int) bool { return m.head(i).Priority() == arg }, nil
	case "level":
		op, v := cutOp(arg)
		n, err := strconv.Atoi(v)
		if err != nil {
			return nil, q.bad(arg, "a number", nil)
		}
		return func(m *matcher, i int) bool { return compare(op, m.level(i)-n) }, nil
	case "prop":
		return q.property(args)
	case "scheduled", "deadline", "closed":
		return q.planned(key, arg)
	case "since", "until":
		return q.changed(key, arg)
	case "match":
		return q.matchString(arg)
	}
	return q.textTerm(key, arg)
}

// textTerm compiles the tests of names and text.
func (q *Query) textTerm(key, arg string) (pred, error) {
	fold := strings.ToLower(arg)
	switch key {
	case "text":
		return func(m *matcher, i int) bool {
			return strings.Contains(strings.ToLower(string(m.n.section(i))), fold)
		}, nil
	case "title":
		return func(m *matcher, i int) bool { return strings.Contains(strings.ToLower(m.head(i).Title()), fold) }, nil
	case "path":
		if _, err := path.Match(arg, ""); err != nil {
			return nil, q.bad(arg, "a path or pattern", nil)
		}
		return func(m *matcher, _ int) bool { return underPath(m.n.path, arg) }, nil
	case "scope":
		if scopes := []string{"memex", "session", "project"}; !slices.Contains(scopes, arg) {
			return nil, q.bad(arg, "memex, session or project", scopes)
		}
		return func(m *matcher, i int) bool { return m.v.object(m.n, i).Scope() == arg }, nil
	case "origin":
		return func(m *matcher, i int) bool { return strings.EqualFold(m.v.object(m.n, i).Origin(), arg) }, nil
	case "id":
		return func(m *matcher, i int) bool { return m.v.idOf(m.n, i) == ID(arg) }, nil
	case "parent":
		return func(m *matcher, i int) bool { return m.v.object(m.n, i).Parent == ID(arg) }, nil
	case "links":
		return func(m *matcher, i int) bool { return m.linksTo(i, arg) }, nil
	}
	return nil, q.bad(key, "one of "+strings.Join(terms, " "), terms)
}

// underPath reports whether a file is the one named, lies in the folder named, or
// matches the pattern.
func underPath(file, arg string) bool {
	arg = strings.TrimSuffix(arg, "/")
	if file == arg || strings.HasPrefix(file, arg+"/") {
		return true
	}
	ok, err := path.Match(arg, file)
	return ok && err == nil
}

// linksTo reports whether headline i links to an identifier or file.
func (m *matcher) linksTo(i int, target string) bool {
	if !strings.Contains(string(m.n.section(i)), target) {
		return false
	}
	return slices.ContainsFunc(m.head(i).Contents().Links, func(l org.Link) bool {
		return linkTarget(m.n.path, l) == target
	})
}

func (m *matcher) level(i int) int {
	if d := m.n.recs[i].deep; d < math.MaxUint8 {
		return int(d)
	}
	return m.head(i).Level()
}

func (m *matcher) todo(i int) string {
	if t := m.n.recs[i].todo; t > 0 {
		return m.n.todos[t-1]
	}
	return ""
}

// states are the values of is:.
var states = []string{"open", "done", "task", "archived", "commented", "private", "untrusted", "project", "planned", "link"}

func (q *Query) state(arg string) (pred, error) {
	bit := func(b uint8) pred { return func(m *matcher, i int) bool { return m.n.recs[i].bits&b != 0 } }
	task := func(m *matcher, i int) bool { return m.n.recs[i].todo > 0 }
	switch arg {
	case "task":
		return task, nil
	case "open":
		return and([]pred{task, not(bit(bitDone))}), nil
	case "done":
		return bit(bitDone), nil
	case "archived":
		return bit(bitArchived), nil
	case "commented":
		return bit(bitCommented), nil
	case "planned":
		return bit(bitPlanned), nil
	case "private":
		return func(m *matcher, i int) bool { return m.v.privateAt(m.n, i) }, nil
	case "untrusted":
		return func(m *matcher, i int) bool { return m.v.object(m.n, i).Origin() != "" }, nil
	case "project": // the seeds' active project: tagged itself, not done
		return func(m *matcher, i int) bool {
			return m.n.recs[i].bits&bitDone == 0 && slices.Contains(m.n.tagsOf(i), "project")
		}, nil
	case "link":
		return func(m *matcher, i int) bool { return len(m.head(i).Contents().Links) > 0 }, nil
	}
	return nil, q.bad(arg, "one of "+strings.Join(states, " "), states)
}

// cutOp takes a comparison off the front of a value; "=" if there is none.
func cutOp(s string) (op, rest string) {
	for _, op := range []string{"<=", "=<", ">=", "=>", "==", "<>", "!=", "<", ">", "="} {
		if r, ok := strings.CutPrefix(s, op); ok {
			return op, r
		}
	}
	return "=", s
}

// compare applies an operator to a difference.
func compare(op string, d int) bool {
	switch op {
	case "<":
		return d < 0
	case ">":
		return d > 0
	case "<=", "=<":
		return d <= 0
	case ">=", "=>":
		return d >= 0
	case "<>", "!=":
		return d != 0
	}
	return d == 0
}

// planned compares a planning date by day: deadline:<2026-01-01, scheduled:today, closed:>=-1w, deadline:any.
func (q *Query) planned(key, arg string) (pred, error) {
	get, bit := org.Headline.Closed, bitClosed
	switch key {
	case "scheduled":
		get, bit = org.Headline.Scheduled, bitScheduled
	case "deadline":
		get, bit = org.Headline.Deadline, bitDeadline
	}
	op, v := cutOp(arg)
	if v == "any" {
		return func(m *matcher, i int) bool { return m.n.recs[i].bits&bit != 0 }, nil
	}
	t, ok := q.when(v)
	if !ok {
		return nil, q.bad(v, "a date (2026-01-31, today, -3d, +1w) or any", nil)
	}
	day := dayOf(t)
	return func(m *matcher, i int) bool {
		if m.n.recs[i].bits&bit == 0 {
			return false
		}
		ts := get(m.head(i))
		return !ts.Start.IsZero() && compare(op, int(dayOf(ts.Start)-day))
	}, nil
}

// changed compares the last recorded change.
func (q *Query) changed(key, arg string) (pred, error) {
	t, ok := q.when(arg)
	if !ok {
		return nil, q.bad(arg, "a date (2026-01-31, today, -3d, +1w)", nil)
	}
	return func(m *matcher, i int) bool {
		_, at := m.v.changes.last(m.v.idOf(m.n, i), m.n)
		if key == "since" {
			return !at.Before(t)
		}
		return at.Before(t)
	}, nil
}

// when reads a date: YYYY-MM-DD[ HH:MM], today, tomorrow, yesterday, now, or a
// distance from today.
func (q *Query) when(s string) (time.Time, bool) {
	s = strings.Trim(s, "<>[]")
	y, mo, d := q.now.Date()
	today := time.Date(y, mo, d, 0, 0, 0, 0, q.now.Location())
	switch s {
	case "now":
		return q.now, true
	case "today":
		return today, true
	case "tomorrow":
		return today.AddDate(0, 0, 1), true
	case "yesterday":
		return today.AddDate(0, 0, -1), true
	}
	if m := distance.FindStringSubmatch(s); m != nil {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			return time.Time{}, false
		}
		switch m[2] {
		case "h":
			return q.now.Add(time.Duration(n) * time.Hour), true
		case "d":
			return today.AddDate(0, 0, n), true
		case "w":
			return today.AddDate(0, 0, 7*n), true
		case "m":
			return today.AddDate(0, n, 0), true
		}
		return today.AddDate(n, 0, 0), true
	}
	if ts, err := org.ParseTimestamp("<" + s + ">"); err == nil && !ts.Diary {
		t := ts.Start
		return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), 0, 0, q.now.Location()), true
	}
	return time.Time{}, false
}

var distance = pattern.New(`^([-+][0-9]{1,5})([hdwmy])$`)
