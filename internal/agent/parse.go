package agent

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"passepartout/internal/llm"
	"passepartout/internal/pattern"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// Limits of what is read out of a model's text.
var textLimits = sexp.Limits{Bytes: 1 << 20, Depth: 64, Items: 1 << 14, Symbols: 1 << 10}

// maxForms bounds how many places of a text are looked at.
const maxForms = 32

// Why a text is neither a message nor one proposal.
var (
	errSeveral = errors.New("several proposals in one answer: want exactly one step")
	errNoWords = errors.New("the answer is all thought: want a step, or an answer in text")
)

// parse turns a reply into one action: a tool call, a proposal written as text in
// one of the ways models write them, or else a message. A proposal that cannot be
// decoded strictly is an error, never a guess.
func (t *turn) parse(r llm.Reply) (a proto.Action, message bool, err error) {
	v, c := t.a.Table.Vocabulary(), t.cause(t.proposer(r))
	data, text, err := readReply(r)
	if err != nil {
		return proto.Action{}, false, err
	}
	if data != nil {
		a, err = v.Decode(t.addressed(data), c)
		return a, false, err
	}
	if r.Note != "" {
		text = strings.TrimSpace(text + "\n\n" + r.Note)
	}
	a, err = v.Decode(t.message(text), c)
	return a, true, err
}

// proposer is who proposed, as the record names it.
func (t *turn) proposer(r llm.Reply) string {
	if r.Model != "" {
		return r.Model
	}
	return t.a.Engine.Info().Name
}

// addressed completes a reply that does not say to whom: to whoever asked.
func (t *turn) addressed(data sexp.Value) sexp.Value {
	l, ok := data.(sexp.List)
	if !ok || has(l, "TARGET") {
		return data
	}
	payload, ok := get(l, "PAYLOAD").(sexp.List)
	if !ok || !strings.EqualFold(name(get(payload, "ACTION")), "MESSAGE") {
		return data
	}
	target := t.a.Table.Resolve("", t.sig.Origin.Channel, t.a.fallback())
	return sexp.NewList(append([]sexp.Value{sexp.Keyword("TARGET"), sexp.Keyword(strings.ToUpper(target))}, l.Items()...)...)
}

// readReply finds the one proposal in a reply, as data, or the text that is left
// when there is none.
func readReply(r llm.Reply) (data sexp.Value, text string, err error) {
	if r.Problem != "" {
		return nil, "", errors.New(r.Problem)
	}
	if r.Call != nil {
		data, err = callData(*r.Call)
		return data, "", err
	}
	text, err = withoutThought(r.Text)
	if err != nil {
		return nil, "", err
	}
	forms, err := findForms(text, r.Cut)
	switch {
	case err != nil:
		return nil, "", err
	case len(forms) == 0 && strangeMarks.MatchString(text):
		return nil, "", errMarks
	case len(forms) == 0:
		return nil, text, nil
	case len(forms) > 1:
		return nil, "", fmt.Errorf("%w: found %d", errSeveral, len(forms))
	}
	f := forms[0]
	return f.data, "", doubt(text[:f.start], text[min(f.end, len(text)):])
}

var thought = pattern.New(`(?is)^\s*<(think|thinking|reasoning|thought)>(.*?)</(?:think|thinking|reasoning|thought)>`)

var openThought = pattern.New(`(?is)^\s*<(think|thinking|reasoning|thought)>`)

// withoutThought drops the thinking some models write before their answer.
func withoutThought(s string) (string, error) {
	s = strings.Trim(s, " \t\r\n\ufeff\u200b\u2060")
	for {
		m := thought.FindStringIndex(s)
		if m == nil {
			break
		}
		s = strings.TrimSpace(s[m[1]:])
	}
	if openThought.MatchString(s) {
		return "", errNoWords
	}
	if _, rest, ok := strings.Cut(s, "</think>"); ok && !strings.Contains(s, "<think>") {
		s = strings.TrimSpace(rest) // a template swallowed the beginning
	}
	return s, nil
}

// A form is a proposal found in text.
type form struct {
	start, end int
	data       sexp.Value
}

// findForms finds the proposals in a text. What looks like one and cannot be read
// is an error.
func findForms(text string, cut bool) ([]form, error) {
	var out []form
	looks := 0
	for at := 0; at < len(text); {
		p, ok := nextPlace(text, at)
		if !ok {
			break
		}
		if looks++; looks > maxForms {
			return nil, fmt.Errorf("%w: more than %d places look like one", errSeveral, maxForms)
		}
		fs, end, err := p.read(text, cut)
		if err != nil {
			return nil, fmt.Errorf("a proposal that cannot be read: %w", err)
		}
		out = append(out, fs...)
		at = max(end, p.start+1)
	}
	return out, nil
}

// A place is where a proposal may stand.
type place struct {
	start int // of the mark, or of the form
	body  int // of the form itself
	end   int // of the whole, -1 when the form has to say
	tool  string
}

// places are the marks models put around calls, with the form as the first group
// and the tool's name, if the mark holds it, as "tool".
var places = []*pattern.Pattern{
	pattern.Needing("(?s)(?m:^[ \\t]*)(?:```|~~~)[A-Za-z0-9_+-]*[ \\t]*\\n\\s*(['`]?[({\\[].*?)(?:\\n[ \\t]*(?:```|~~~)|\\z)", "```", "~~~"),
	pattern.Needing(`(?s)<(?:tool_call|function_call|tool_use|action)>\s*(.*?)(?:</(?:tool_call|function_call|tool_use|action)>|\z)`, "<tool_call>", "<function_call>", "<tool_use>", "<action>"),
	pattern.Needing(`(?s)<function=(?P<tool>[A-Za-z0-9_.-]+)>\s*(\{.*?)(?:</function>|\z)`, "<function="),
	pattern.Needing(`(?s)\[TOOL_CALLS\]\s*(\[.*|\{.*)\z`, "[TOOL_CALLS]"),
	pattern.Needing(`(?s)\[TOOL_CALLS\]\s*(?P<tool>[A-Za-z0-9_.-]+)\[ARGS\]\s*(\{.*)\z`, "[TOOL_CALLS]"),
	pattern.Needing(`(?s)(?:<\|tool_call\|>|(?m:^)functools)\s*(\[.*)\z`, "<|tool_call|>", "functools"),
	pattern.Needing(`(?s)<\|python_tag\|>\s*(\{.*?)(?:<\|eom_id\|>|<\|eot_id\|>|\z)`, "<|python_tag|>"),
	pattern.Needing(`(?s)(?m:^Action:)[ \t]*(?P<tool>[A-Za-z0-9_.-]+)[ \t]*\nAction Input:[ \t]*(\{.*)`, "\nAction Input:"),
	pattern.Needing(`(?m)^[ \t]*(['`+"`"+`]?\(\s*:?\|?"?(?i:type|target|tool|payload|explanation|args|meta|approved)\b)`, "("),
	pattern.Needing(`(?m)^[ \t]*(\{\s*["'“]?(?i:type|target|tool|tool_name|payload|name|function|tool_calls|function_?call|tool_call|action|explanation|arguments|parameters|id)\b)`, "{"),
	pattern.Needing(`(?m)^[ \t]*(\[\s*\{\s*["'“]?(?i:type|target|tool|tool_name|name|function|id)\b)`, "["),
}

// bare is the first of the places at which the form itself says where it ends.
const bare = 7

// nextPlace is the first place at or after an offset.
func nextPlace(text string, from int) (best place, ok bool) {
	for i, re := range places {
		m := re.FindStringSubmatchIndex(text[from:])
		if m == nil {
			continue
		}
		p := place{start: from + m[0], end: from + m[1]}
		if t := re.SubexpIndex("tool"); t > 0 {
			p.tool = text[from+m[2*t] : from+m[2*t+1]]
			p.body = from + m[4]
			p.end = from + m[5]
		} else {
			p.body = from + m[2]
			p.end = from + m[3]
		}
		if i >= bare {
			p.end = -1
		}
		if !ok || p.start < best.start {
			best, ok = p, true
		}
	}
	return best, ok
}

// read reads the form at a place. One that is no proposal is nothing.
func (p place) read(text string, cut bool) (fs []form, end int, err error) {
	body := text[p.body:]
	if p.end >= 0 {
		body = text[p.body:p.end]
	}
	lisp := strings.HasPrefix(strings.TrimLeft(body, "'` \t\r\n"), "(")
	var vs []sexp.Value
	var n int
	if lisp {
		vs, n, err = readLisp(body, cut, p.end >= 0)
	} else {
		vs, n, err = readObjects(body, p.tool, p.end >= 0)
	}
	if err != nil {
		return nil, 0, err
	}
	end = p.body + n
	for _, v := range vs {
		fs = append(fs, form{p.start, end, v})
	}
	return fs, max(end, p.end), nil
}

var looksLisp = pattern.New(`(?i)^['` + "`" + `]?\(\s*:?\|?"?(type|target|tool|payload|explanation|args|meta|approved)\b`)

// readLisp reads property lists. Alone, as in a fence, everything must be read;
// in prose the first one counts and the rest is prose.
func readLisp(body string, cut, alone bool) (out []sexp.Value, n int, err error) {
	src := body
	for {
		trimmed := strings.TrimLeft(src, " \t\r\n")
		if trimmed == "" || alone && strings.Trim(trimmed, ") \t\r\n") == "" && len(out) > 0 {
			return out, len(body), nil
		}
		if !looksLisp.MatchString(trimmed) {
			if alone && len(out) > 0 {
				return nil, 0, errors.New("text after the list inside its fence")
			}
			return out, max(len(body)-len(src), 1), nil // data, code or prose
		}
		v, used, err := readList(trimmed, cut)
		if err != nil {
			return nil, 0, err
		}
		if v = unquoted(v); proposes(v) {
			out = append(out, enveloped(v))
		}
		src = trimmed[used:]
		if !alone {
			rest := strings.TrimLeft(src, ")") // a parenthesis too many
			return out, len(body) - len(rest), nil
		}
	}
}

// readList reads one list, and repairs it only where there is one way to: curly
// quotation marks in place of straight ones, and parentheses missing at the end of
// a text that the model ended by itself.
func readList(src string, cut bool) (sexp.Value, int, error) {
	v, n, err := readOne(src)
	curly := err == nil && strings.ContainsAny(src[:n], "“”„‟") && !strings.Contains(src[:n], `"`)
	if err == nil && !curly {
		return v, n, escapes(src[:n])
	}
	if fixed := strings.NewReplacer("“", `"`, "”", `"`, "„", `"`, "‟", `"`).Replace(src); fixed != src {
		if v, n, ferr := readOne(fixed); ferr == nil {
			return v, unfixed(src, n), escapes(fixed[:n])
		}
		src = fixed
	}
	if cut {
		return nil, 0, fmt.Errorf("it was cut off because the answer was too long: %w", err)
	}
	var syntax *sexp.SyntaxError
	whole := strings.TrimRight(src, " \t\r\n")
	if !errors.As(err, &syntax) || !strings.HasSuffix(whole, ")") && !strings.HasSuffix(whole, `"`) {
		return nil, 0, err
	}
	for k := 1; k <= 4; k++ {
		if v, n, ferr := readOne(whole + strings.Repeat(")", k)); ferr == nil {
			return v, min(n, len(src)), escapes(whole)
		}
	}
	return nil, 0, err
}

// escapes refuses strings with the escapes of other languages: to Lisp "a\nb" is
// anb, and the model meant something else.
func escapes(src string) error {
	inside := false
	for i := 0; i < len(src); i++ {
		switch src[i] {
		case '"':
			inside = !inside
		case '\\':
			i++
			if inside && i < len(src) && src[i] != '"' && src[i] != '\\' {
				return fmt.Errorf("the escape \\%c in a string: want the character itself, since a backslash stands only before a quotation mark or a backslash", src[i])
			}
		}
	}
	return nil
}

// unfixed is where in src the n-th byte of its repaired form lies; curly marks are
// three bytes, straight ones are one.
func unfixed(src string, n int) int {
	for i, r := range src {
		if n <= 0 {
			return i
		}
		if strings.ContainsRune("“”„‟", r) {
			n--
		} else {
			n -= len(string(r))
		}
	}
	return len(src)
}

func readOne(src string) (sexp.Value, int, error) {
	r := sexp.NewReader([]byte(src), sexp.Options{Limits: textLimits})
	v, err := r.Read()
	if err != nil {
		return nil, 0, err
	}
	return v, r.End().Offset, nil
}

// unquoted takes the quote off '(…).
func unquoted(v sexp.Value) sexp.Value {
	if l, ok := v.(sexp.List); ok && l.Len() == 2 && l.Tail() == nil {
		if s, ok := l.Items()[0].(sexp.Symbol); ok && (s.Name == "QUOTE" || s.Name == "QUASIQUOTE") {
			return l.Items()[1]
		}
	}
	return v
}

// proposes reports whether a list has the shape of a proposal, however wrong it
// may be otherwise.
func proposes(v sexp.Value) bool {
	l, ok := v.(sexp.List)
	if !ok {
		return false
	}
	switch {
	case has(l, "TARGET"), has(l, "PAYLOAD"), has(l, "APPROVED"):
		return true
	case has(l, "TOOL"):
		return has(l, "ARGS") || has(l, "EXPLANATION")
	}
	return strings.EqualFold(name(get(l, "TYPE")), "REQUEST")
}

// enveloped puts a bare tool call into its envelope, and says for a payload that
// names a tool that it is for one.
func enveloped(v sexp.Value) sexp.Value {
	l, ok := v.(sexp.List)
	if !ok || has(l, "TARGET") {
		return v
	}
	if has(l, "TOOL") && !has(l, "PAYLOAD") && !has(l, "TYPE") {
		return sexp.NewList(sexp.Keyword("TARGET"), sexp.Keyword("TOOL"), sexp.Keyword("PAYLOAD"), l)
	}
	if p, ok := get(l, "PAYLOAD").(sexp.List); ok && has(p, "TOOL") {
		return sexp.NewList(append([]sexp.Value{sexp.Keyword("TARGET"), sexp.Keyword("TOOL")}, l.Items()...)...)
	}
	return v
}

// get is the value of a key that may be written in any case and without its colon.
func get(l sexp.List, key string) sexp.Value {
	items := l.Items()
	for i := 0; i+1 < len(items); i += 2 {
		if strings.EqualFold(name(items[i]), key) {
			return items[i+1]
		}
	}
	return nil
}

func has(l sexp.List, key string) bool { return get(l, key) != nil }

// name is the name a keyword, symbol or string spells.
func name(v sexp.Value) string {
	switch v := v.(type) {
	case sexp.Keyword:
		return string(v)
	case sexp.Symbol:
		return v.Name
	case sexp.String:
		return string(v)
	}
	return ""
}

// message is text as the proposal to say it to whoever asked.
func (t *turn) message(text string) sexp.Value {
	target := t.a.Table.Resolve("", t.sig.Origin.Channel, t.a.fallback())
	return sexp.P(
		sexp.Keyword("TYPE"), sexp.Keyword("REQUEST"),
		sexp.Keyword("TARGET"), sexp.Keyword(strings.ToUpper(target)),
		sexp.Keyword("PAYLOAD"), sexp.P(
			sexp.Keyword("ACTION"), sexp.Keyword("MESSAGE"), sexp.Keyword("TEXT"), text,
			sexp.Keyword("EXPLANATION"), fmt.Sprintf("Reply of the %s engine to the person who asked.", t.a.Engine.Info().Name)),
	).List()
}

// callData is a native tool call in the property-list form.
func callData(c llm.Call) (sexp.Value, error) {
	payload := []sexp.Pair{{Key: "TOOL", Value: sexp.String(c.Name)}}
	var args []sexp.Pair
	names := make([]string, 0, len(c.Args))
	for n := range c.Args {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		v, err := datum(c.Args[n], 0)
		if err != nil {
			return nil, fmt.Errorf("argument %q of %s: %w", n, c.Name, err)
		}
		if strings.EqualFold(n, "explanation") {
			payload = append(payload, sexp.Pair{Key: "EXPLANATION", Value: v})
			continue
		}
		args = append(args, sexp.Pair{Key: sexp.Keyword(strings.ToUpper(n)), Value: v})
	}
	list, err := sexp.NewPlist(args...)
	if err != nil {
		return nil, err
	}
	body, err := sexp.NewPlist(append(payload, sexp.Pair{Key: "ARGS", Value: list.List()})...)
	if err != nil {
		return nil, err
	}
	return sexp.P(sexp.Keyword("TARGET"), sexp.Keyword("TOOL"), sexp.Keyword("PAYLOAD"), body).List(), nil
}

// datum is a JSON value as data.
func datum(x any, depth int) (sexp.Value, error) {
	if depth > textLimits.Depth {
		return nil, errors.New("nested too deeply")
	}
	switch x := x.(type) {
	case nil:
		return sexp.Nil, nil
	case string:
		return sexp.String(x), nil
	case bool:
		return sexp.Bool(x), nil
	case int:
		return sexp.NewInt(int64(x)), nil
	case int64:
		return sexp.NewInt(x), nil
	case float64:
		return sexp.Float(x), nil
	case []string:
		return sexp.Strings(x), nil
	case []any:
		items := make([]sexp.Value, len(x))
		for i, e := range x {
			v, err := datum(e, depth+1)
			if err != nil {
				return nil, err
			}
			items[i] = v
		}
		return sexp.NewList(items...), nil
	case map[string]any:
		return object(x, depth)
	}
	return nil, fmt.Errorf("found a %T: want a string, an integer, a flag or a list of strings", x)
}

// object is a JSON object as a property list, keys sorted.
func object(m map[string]any, depth int) (sexp.Value, error) {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	var items []sexp.Value
	for _, k := range keys {
		v, err := datum(m[k], depth+1)
		if err != nil {
			return nil, err
		}
		items = append(items, sexp.Keyword(strings.ToUpper(k)), v)
	}
	return sexp.NewList(items...), nil
}
