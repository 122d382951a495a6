package lisp

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"
	"unicode/utf8"
)

// regexCache remembers compiled patterns across threads. It changes nothing a
// program can see, and what a pattern costs is charged whether it was there or
// not. mu guards the map.
type regexCache struct {
	mu sync.Mutex
	m  map[string]*regex
}

const maxCachedRegexes = 1024

func (c *regexCache) get(key string, build func() *regex) *regex {
	c.mu.Lock()
	r := c.m[key]
	c.mu.Unlock()
	if r != nil {
		return r
	}
	r = build()
	c.mu.Lock()
	if len(c.m) >= maxCachedRegexes {
		clear(c.m)
	}
	c.m[key] = r
	c.mu.Unlock()
	return r
}

// compileRegex accepts what Perl and Go agree on and refuses the rest.
func (th *Thread) compileRegex(src, flags string) *regex {
	th.step(uint64(4 + len(src)))
	if len(src) > 1<<14 {
		th.fail(classRegexError, "regular expression of %d bytes: want at most 16384", len(src))
	}
	return th.img.regexes.get(flags+"/"+src, func() *regex { return th.buildRegex(src, flags) })
}

func (th *Thread) buildRegex(src, flags string) *regex {
	if what := unsupported(src); what != "" {
		th.fail(classRegexError, "regular expression %s: %s is not supported, because matching must take linear time", th.show(newStr(src)), what)
	}
	pattern := src
	if flags != "" {
		pattern = "(?" + flags + ")" + src
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		th.fail(classRegexError, "regular expression %s: %s", th.show(newStr(src)), err.Error())
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		th.fail(classRegexError, "regular expression %s: %s", th.show(newStr(src)), err.Error())
	}
	r := &regex{src: src, re: regexp.MustCompile(pattern), cost: uint64(len(prog.Inst))}
	r.wide = r.re
	if w := widen(pattern); w != pattern {
		if r.wide, err = regexp.Compile(w); err != nil {
			th.fail(classRegexError, "regular expression %s: %s", th.show(newStr(src)), err.Error())
		}
	}
	return r
}

// wordRunes is what cl-ppcre's \w matches, as the inside of a class: the letters and
// digits of all scripts. Go's own \w knows those of ASCII only.
const wordRunes = `\p{L}\p{Nd}_`

// otherRunes is what \W matches. A class cannot hold the complement of another, so
// these are ranges.
var otherRunes = sync.OnceValue(func() string {
	class, err := syntax.Parse("[^"+wordRunes+"]", syntax.Perl)
	if err != nil {
		panic(err) // the pattern is a constant
	}
	var b strings.Builder
	for i := 0; i+1 < len(class.Rune); i += 2 {
		fmt.Fprintf(&b, `\x{%x}-\x{%x}`, class.Rune[i], class.Rune[i+1])
	}
	return b.String()
})

// widen writes a pattern so that \w and \W mean letters of all scripts.
func widen(pattern string) string {
	if !strings.Contains(pattern, `\w`) && !strings.Contains(pattern, `\W`) {
		return pattern
	}
	var b strings.Builder
	inClass := false
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		if c != '\\' || i+1 == len(pattern) {
			inClass = c == '[' || inClass && c != ']'
			b.WriteByte(c)
			continue
		}
		i++
		switch next := pattern[i]; {
		case next == 'w' && inClass:
			b.WriteString(wordRunes)
		case next == 'W' && inClass:
			b.WriteString(otherRunes())
		case next == 'w':
			b.WriteString("[" + wordRunes + "]")
		case next == 'W':
			b.WriteString("[^" + wordRunes + "]")
		default:
			b.WriteString(pattern[i-1 : i+1])
		}
	}
	return b.String()
}

// on is the pattern as it is run on that text.
func (r *regex) on(s *subject) *regexp.Regexp {
	if s.ascii {
		return r.re
	}
	return r.wide
}

// unsupported names a construct Go's engine has not: look-around, atomic
// groups, back-references, possessive quantifiers.
func unsupported(src string) string {
	inClass := false
	for i := 0; i < len(src); i++ {
		switch src[i] {
		case '\\':
			if i+1 < len(src) && !inClass && (src[i+1] >= '1' && src[i+1] <= '9' || src[i+1] == 'k' || src[i+1] == 'g') {
				return "a back-reference"
			}
			i++
		case '[':
			inClass = true
		case ']':
			inClass = false
		case '(':
			if inClass {
				continue
			}
			for _, p := range []string{"(?=", "(?!", "(?<=", "(?<!"} {
				if strings.HasPrefix(src[i:], p) {
					return "look-around"
				}
			}
			if strings.HasPrefix(src[i:], "(?>") {
				return "an atomic group"
			}
		}
	}
	return ""
}

var classRegexError = newCondition("REGEX-SYNTAX-ERROR", nil, classSimpleError)

// regexArg resolves a pattern: a string or a scanner.
func (th *Thread) regexArg(v Value) *regex {
	switch x := v.(type) {
	case *regex:
		return x
	case *Str:
		return th.compileRegex(x.text(), "")
	}
	th.typeError(v, symString)
	return nil
}

// chargeScan pays for running a pattern over n bytes.
func (th *Thread) chargeScan(r *regex, n int) {
	th.step(1 + uint64(n)*r.cost/32 + uint64(n)/32)
}

// subject is the text a pattern is run on, with byte and character offsets.
type subject struct {
	text  string
	start int // byte offsets
	end   int
	ascii bool
}

func (th *Thread) subject(v, start, end Value) subject {
	s := th.designated(v)
	t := s.text()
	ascii := s.runes == nil || isASCII(t)
	i, j := th.bounds(start, end, s.length())
	if ascii {
		return subject{t, i, j, true}
	}
	return subject{t, len(s.slice(0, i)), len(s.slice(0, j)), false}
}

// index turns a byte offset into a character offset.
func (s *subject) index(b int) Value {
	if b < 0 {
		return Nil
	}
	if s.ascii {
		return mkInt(int64(b))
	}
	return mkInt(int64(utf8.RuneCountInString(s.text[:b])))
}

// match finds the first match at or after byte offset from.
func (th *Thread) match(r *regex, s *subject, from int) []int {
	th.chargeScan(r, s.end-from)
	loc := r.on(s).FindStringSubmatchIndex(s.text[from:s.end])
	for i := range loc {
		if loc[i] >= 0 {
			loc[i] += from
		}
	}
	return loc
}

// matches finds all matches, as cl-ppcre does: after an empty one it moves on
// by a character.
func (th *Thread) matches(r *regex, s *subject) [][]int {
	th.chargeScan(r, s.end-s.start)
	var out [][]int
	for _, loc := range r.on(s).FindAllStringSubmatchIndex(s.text[s.start:s.end], -1) {
		th.alloc(2 + len(loc)/4)
		for i := range loc {
			if loc[i] >= 0 {
				loc[i] += s.start
			}
		}
		out = append(out, loc)
	}
	return out
}

func biScan(th *Thread, a []Value) Value {
	r := th.regexArg(a[0])
	s := th.subject(a[1], a[2], a[3])
	loc := th.match(r, &s, s.start)
	if loc == nil {
		return Nil
	}
	n := len(loc)/2 - 1
	th.alloc(2 + 2*n)
	starts, ends := make([]Value, n), make([]Value, n)
	for i := range n {
		starts[i], ends[i] = s.index(loc[2*i+2]), s.index(loc[2*i+3])
	}
	return th.values(s.index(loc[0]), s.index(loc[1]), newVector(starts), newVector(ends))
}

// groups returns the registers of a match as strings or NIL.
func (th *Thread) groups(s *subject, loc []int) []Value {
	out := make([]Value, len(loc)/2-1)
	for i := range out {
		out[i] = Nil
		if loc[2*i+2] >= 0 {
			out[i] = th.str(s.text[loc[2*i+2]:loc[2*i+3]])
		}
	}
	return out
}

func biScanToStrings(th *Thread, a []Value) Value {
	r := th.regexArg(a[0])
	s := th.subject(a[1], a[2], a[3])
	loc := th.match(r, &s, s.start)
	if loc == nil {
		return Nil
	}
	return th.values(th.str(s.text[loc[0]:loc[1]]), newVector(th.groups(&s, loc)))
}

func biAllMatches(asStrings bool) func(*Thread, []Value) Value {
	return func(th *Thread, a []Value) Value {
		r := th.regexArg(a[0])
		s := th.subject(a[1], a[2], a[3])
		b := listBuilder{th: th}
		for _, loc := range th.matches(r, &s) {
			if asStrings {
				b.add(th.str(s.text[loc[0]:loc[1]]))
			} else {
				b.add(s.index(loc[0]))
				b.add(s.index(loc[1]))
			}
		}
		return b.end(Nil)
	}
}

// biAllGroups: (all-groups regex string start end) is the registers of every
// match, for do-register-groups.
func biAllGroups(th *Thread, a []Value) Value {
	r := th.regexArg(a[0])
	s := th.subject(a[1], a[2], a[3])
	b := listBuilder{th: th}
	for _, loc := range th.matches(r, &s) {
		b.add(newVector(th.groups(&s, loc)))
	}
	return b.end(Nil)
}

// biSplit: (split regex target &key start end limit with-registers-p omit-unmatched-p sharedp)
func biSplit(th *Thread, a []Value) Value {
	r := th.regexArg(a[0])
	s := th.subject(a[1], a[2], a[3])
	limit := 0
	if a[4] != nil && isTrue(a[4]) {
		limit = th.index(a[4])
	}
	withGroups := a[5] != nil && isTrue(a[5])
	var out []Value
	last := s.start
	pieces := 0
	for _, loc := range th.matches(r, &s) {
		if limit > 0 && pieces >= limit-1 {
			break
		}
		if loc[0] == loc[1] && (loc[0] == s.start || loc[0] >= s.end) {
			continue
		}
		out = append(out, th.str(s.text[last:loc[0]]))
		pieces++
		if withGroups {
			out = append(out, th.groups(&s, loc)...)
		}
		last = loc[1]
	}
	out = append(out, th.str(s.text[last:s.end]))
	if limit == 0 {
		for len(out) > 0 {
			t, ok := out[len(out)-1].(*Str)
			if ok && t.length() > 0 {
				break
			}
			out = out[:len(out)-1]
		}
	}
	return th.newList(out, Nil)
}

// replacement expands \& \1 \{1} \` \' in a replacement string.
func (th *Thread) replacement(rep Value, s *subject, loc []int) string {
	switch v := rep.(type) {
	case *Function, *Symbol:
		return th.replaceByCall(th.fn(v), s, loc)
	case *Cons:
		var b strings.Builder
		for _, x := range th.items(v) {
			b.WriteString(th.replacementPart(x, s, loc))
		}
		return b.String()
	}
	t := th.stringArg(rep).text()
	if !strings.Contains(t, `\`) {
		return t
	}
	var b strings.Builder
	for i := 0; i < len(t); i++ {
		if t[i] != '\\' || i+1 >= len(t) {
			b.WriteByte(t[i])
			continue
		}
		i++
		switch c := t[i]; {
		case c == '&':
			b.WriteString(s.text[loc[0]:loc[1]])
		case c == '`':
			b.WriteString(s.text[s.start:loc[0]])
		case c == '\'':
			b.WriteString(s.text[loc[1]:s.end])
		case c >= '1' && c <= '9':
			b.WriteString(groupText(s, loc, int(c-'0')))
		case c == '{':
			j := strings.IndexByte(t[i:], '}')
			n, ok := parseInteger(t[i+1:i+max(j, 1)], 10).(Int)
			if j < 0 || !ok {
				th.fail(classRegexError, "replacement %s: malformed \\{n}", th.show(rep))
			}
			b.WriteString(groupText(s, loc, int(n)))
			i += j
		case c == '\\':
			b.WriteByte('\\')
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	return b.String()
}

func (th *Thread) replacementPart(x Value, s *subject, loc []int) string {
	switch v := x.(type) {
	case *Str:
		return v.text()
	case Int:
		return groupText(s, loc, int(v)+1)
	case *Symbol:
		if v.keyword() && v.name == "MATCH" {
			return s.text[loc[0]:loc[1]]
		}
	}
	return th.replaceByCall(th.fn(x), s, loc)
}

func groupText(s *subject, loc []int, n int) string {
	if 2*n+1 >= len(loc) || n < 0 || loc[2*n] < 0 {
		return ""
	}
	return s.text[loc[2*n]:loc[2*n+1]]
}

// replaceByCall calls a replacement function the way cl-ppcre does: with the
// target, its bounds, the match's bounds and the registers' bounds.
func (th *Thread) replaceByCall(fn *Function, s *subject, loc []int) string {
	n := len(loc)/2 - 1
	starts, ends := make([]Value, n), make([]Value, n)
	for i := range n {
		starts[i], ends[i] = s.index(loc[2*i+2]), s.index(loc[2*i+3])
	}
	v := th.call(fn, newStr(s.text), s.index(s.start), s.index(s.end), s.index(loc[0]), s.index(loc[1]), newVector(starts), newVector(ends))
	return th.stringArg(v).text()
}

// simpleCall adapts a function of the match and registers as strings.
func (th *Thread) simpleCall(fn *Function) func(*subject, []int) string {
	return func(s *subject, loc []int) string {
		args := append([]Value{th.str(s.text[loc[0]:loc[1]])}, th.groups(s, loc)...)
		return th.stringArg(th.call(fn, args...)).text()
	}
}

// biReplace: (regex-replace[-all] regex target replacement &key start end preserve-case simple-calls element-type)
func biRegexReplace(all bool) func(*Thread, []Value) Value {
	return func(th *Thread, a []Value) Value {
		r := th.regexArg(a[0])
		s := th.subject(a[1], a[3], a[4])
		expand := func(s *subject, loc []int) string { return th.replacement(a[2], s, loc) }
		if a[6] != nil && isTrue(a[6]) {
			if fn, ok := a[2].(*Function); ok {
				expand = th.simpleCall(fn)
			}
		}
		var locs [][]int
		if all {
			locs = th.matches(r, &s)
		} else if loc := th.match(r, &s, s.start); loc != nil {
			locs = [][]int{loc}
		}
		if locs == nil {
			return th.values(th.str(s.text), Nil)
		}
		var b strings.Builder
		last := 0
		for _, loc := range locs {
			part := s.text[last:loc[0]] + expand(&s, loc)
			th.alloc(len(part) / 16)
			b.WriteString(part)
			last = loc[1]
		}
		b.WriteString(s.text[last:])
		return th.values(th.str(b.String()), symT)
	}
}

func biCreateScanner(th *Thread, a []Value) Value {
	flags := ""
	for i, f := range []string{"i", "m", "s"} {
		if a[1+i] != nil && isTrue(a[1+i]) {
			flags += f
		}
	}
	if a[4] != nil && isTrue(a[4]) {
		th.fail(classRegexError, "create-scanner: :extended-mode is not supported")
	}
	return th.compileRegex(th.stringArg(a[0]).text(), flags)
}

// quoteMeta escapes what cl-ppcre escapes: everything but word characters.
func quoteMeta(s string) string {
	var b strings.Builder
	for _, c := range s {
		if c < utf8.RuneSelf && !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_') {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return b.String()
}

var regexPrims = []prim{
	{usage: "(cl-ppcre:scan regex target &key start end)", doc: "bounds of the first match and of its registers", fn: biScan},
	{usage: "(cl-ppcre:scan-to-strings regex target &key start end sharedp)", doc: "the first match and its registers as strings", fn: biScanToStrings},
	{usage: "(cl-ppcre:all-matches regex target &key start end)", doc: "bounds of all matches", fn: biAllMatches(false)},
	{usage: "(cl-ppcre:all-matches-as-strings regex target &key start end sharedp)", doc: "all matches as strings", fn: biAllMatches(true)},
	{usage: "(passepartout-kernel:all-groups regex target &optional start end)", doc: "registers of all matches", fn: biAllGroups},
	{usage: "(cl-ppcre:split regex target &key start end limit with-registers-p omit-unmatched-p sharedp)", doc: "the pieces between matches", fn: biSplit},
	{usage: "(cl-ppcre:regex-replace regex target replacement &key start end preserve-case simple-calls element-type)", doc: "target with the first match replaced", fn: biRegexReplace(false)},
	{usage: "(cl-ppcre:regex-replace-all regex target replacement &key start end preserve-case simple-calls element-type)", doc: "target with all matches replaced", fn: biRegexReplace(true)},
	{usage: "(cl-ppcre:create-scanner regex &key case-insensitive-mode multi-line-mode single-line-mode extended-mode destructive)", doc: "a compiled regular expression", fn: biCreateScanner},
	{usage: "(cl-ppcre:quote-meta-chars string &key start end)", doc: "the string with special characters escaped", fn: func(th *Thread, a []Value) Value {
		t, _ := th.part(th.stringArg(a[0]), a[1], a[2])
		q := quoteMeta(t)
		return th.values(th.str(q), mkBool(q != t))
	}},
}
