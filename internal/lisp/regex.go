package lisp

import (
	"fmt"
	"regexp/syntax"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// regexCache remembers compiled patterns across threads. It changes nothing a
// program can see, and what a pattern costs is charged whether it was there or
// not. mu guards the rest.
type regexCache struct {
	mu   sync.Mutex
	m    map[string]*regex
	size int // instructions of all patterns together
}

const (
	maxRegexText   = 1 << 14 // bytes
	maxRegexSize   = 1 << 14 // instructions, of which a counted repetition makes many
	maxRegexGroups = 1 << 18 // groups times instructions: the engine keeps one for each
	maxCachedSize  = 1 << 17 // instructions
)

func (c *regexCache) get(key string, build func() *regex) *regex {
	c.mu.Lock()
	r := c.m[key]
	c.mu.Unlock()
	if r != nil {
		return r
	}
	r = build()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.size+r.size > maxCachedSize {
		clear(c.m)
		c.size = 0
	}
	if c.m[key] == nil {
		c.size += r.size
	}
	c.m[key] = r
	return r
}

// compileRegex accepts what Perl and Go agree on and refuses the rest.
func (th *Thread) compileRegex(src, flags string) *regex {
	if len(src) > maxRegexText {
		th.fail(classRegexError, "regular expression of %d bytes: want at most %d", len(src), maxRegexText)
	}
	th.step(4 + parseCost(src, flags))
	r := th.img.regexes.get(flags+"/"+src, func() *regex { return th.buildRegex(src, flags) })
	th.step(uint64(r.size))
	return r
}

func (th *Thread) buildRegex(src, flags string) *regex {
	refuse := func(why string) {
		th.fail(classRegexError, "regular expression %s: %s", th.show(newStr(src)), why)
	}
	if what := unsupported(src); what != "" {
		refuse(what + " is not supported, because matching must take linear time")
	}
	pattern := src
	if flags != "" {
		pattern = "(?" + flags + ")" + src
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		refuse(err.Error())
	}
	groups := parsed.MaxCap() + 1
	size := programSize(parsed)
	if size > maxRegexSize || size*groups > maxRegexGroups {
		refuse(fmt.Sprintf("it is too large: %d instructions and %d groups", size, groups))
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		refuse(err.Error())
	}
	r := &regex{src: src, size: size, cost: uint64(size) * uint64(16+groups) / 16, far: looksFar(prog)}
	if r.re, err = newEngine(pattern); err != nil {
		refuse(err.Error())
	}
	r.wide = r.re
	if w := widen(pattern); w != pattern {
		if r.wide, err = newEngine(w); err != nil {
			refuse(err.Error())
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
			b.WriteByte(c)
			switch {
			case inClass && strings.HasPrefix(pattern[i:], "[:"):
				if j := strings.Index(pattern[i:], ":]"); j > 0 { // a class with a name
					b.WriteString(pattern[i+1 : i+j+2])
					i += j + 1
				}
			case inClass:
				inClass = c != ']'
			case c == '[':
				inClass = true
				first := strings.TrimPrefix(pattern[i+1:], "^")
				if strings.HasPrefix(first, "]") { // stands for itself
					skip := len(pattern) - len(first) - i
					b.WriteString(pattern[i+1 : i+1+skip])
					i += skip
				}
			}
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
func (r *regex) on(s *subject) *engine {
	if s.ascii {
		return &r.re
	}
	return &r.wide
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
	first int // start and end as characters
	last  int
	// where the last offset was asked for: the next one is mostly near
	seenBytes, seenChars int
}

func (th *Thread) subject(v, start, end Value) subject {
	s := th.designated(v)
	t := s.text()
	i, j := th.bounds(start, end, s.length())
	if s.runes != nil {
		th.chargeLook(s.length())
	}
	out := subject{text: t, start: i, end: j, ascii: s.runes == nil || isASCII(t), first: i, last: j}
	if !out.ascii {
		out.start, out.end = len(s.slice(0, i)), len(s.slice(0, j))
	}
	return out
}

// index turns a byte offset into a character offset.
func (s *subject) index(b int) Value {
	switch {
	case b < 0:
		return Nil
	case s.ascii:
		return mkInt(int64(b))
	case b >= s.seenBytes:
		s.seenChars += utf8.RuneCountInString(s.text[s.seenBytes:b])
	default:
		s.seenChars -= utf8.RuneCountInString(s.text[b:s.seenBytes])
	}
	s.seenBytes = b
	return mkInt(int64(s.seenChars))
}

// match finds the first match.
func (th *Thread) match(r *regex, s *subject) []int {
	th.chargeScan(r, s.end-s.start)
	return moved(r.on(s).FindStringSubmatchIndex(s.text[s.start:s.end]), s.start)
}

// moved adds to the offsets of a match.
func moved(loc []int, by int) []int {
	for i := range loc {
		if loc[i] >= 0 {
			loc[i] += by
		}
	}
	return loc
}

// matches finds all matches, as cl-ppcre does: after an empty one it moves on
// by a character.
func (th *Thread) matches(r *regex, s *subject) [][]int {
	text := s.text[s.start:s.end]
	var all [][]int
	if n := uint64(len(text)); r.far && n*n*r.cost > farEnough {
		all = th.meteredMatches(r, r.on(s), text)
	} else {
		th.chargeScan(r, len(text))
		all = r.on(s).FindAllStringSubmatchIndex(text, -1)
	}
	for _, loc := range all {
		th.alloc(2 + len(loc)/2)
		moved(loc, s.start)
	}
	return all
}

func biScan(th *Thread, a []Value) Value {
	r := th.regexArg(a[0])
	s := th.subject(a[1], a[2], a[3])
	loc := th.match(r, &s)
	if loc == nil {
		return Nil
	}
	from, to := s.index(loc[0]), s.index(loc[1])
	starts, ends := th.registers(&s, loc)
	return th.values(from, to, starts, ends)
}

// registers returns the bounds of a match's groups.
func (th *Thread) registers(s *subject, loc []int) (starts, ends Value) {
	n := len(loc)/2 - 1
	th.alloc(2 + 2*n)
	from, to := make([]Value, n), make([]Value, n)
	for i := range n {
		from[i], to[i] = s.index(loc[2*i+2]), s.index(loc[2*i+3])
	}
	return newVector(from), newVector(to)
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
	loc := th.match(r, &s)
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

// replacement writes what stands for a match; \& \1 \{1} \` \' in it are expanded.
func (th *Thread) replacement(b *textBuilder, rep Value, s *subject, loc []int) {
	switch v := rep.(type) {
	case *Function, *Symbol:
		b.write(th.replaceByCall(th.fn(v), s, loc))
		return
	case *Cons:
		for _, x := range th.items(v) {
			b.write(th.replacementPart(x, s, loc))
		}
		return
	}
	t := th.stringArg(rep).text()
	for {
		i := strings.IndexByte(t, '\\')
		if i < 0 || i+1 == len(t) {
			b.write(t)
			return
		}
		b.write(t[:i])
		c := t[i+1]
		t = t[i+2:]
		switch {
		case c == '&':
			b.write(s.text[loc[0]:loc[1]])
		case c == '`':
			b.write(s.text[s.start:loc[0]])
		case c == '\'':
			b.write(s.text[loc[1]:s.end])
		case c >= '1' && c <= '9':
			b.write(groupText(s, loc, int(c-'0')))
		case c == '{':
			digits, rest, closed := strings.Cut(t, "}")
			n, err := strconv.Atoi(digits)
			if !closed || err != nil {
				th.fail(classRegexError, "replacement %s: malformed \\{n}", th.show(rep))
			}
			b.write(groupText(s, loc, n))
			t = rest
		case c == '\\':
			b.write(`\`)
		default:
			b.write(`\` + string(rune(c)))
		}
	}
}

func (th *Thread) replacementPart(x Value, s *subject, loc []int) string {
	switch v := x.(type) {
	case *Str:
		return v.text()
	case Int:
		return groupText(s, loc, int(min(v, maxRegexGroups))+1)
	case *Symbol:
		if v.keyword() && v.name == "MATCH" {
			return s.text[loc[0]:loc[1]]
		}
	}
	return th.replaceByCall(th.fn(x), s, loc)
}

func groupText(s *subject, loc []int, n int) string {
	if n < 0 || n >= len(loc)/2 || loc[2*n] < 0 {
		return ""
	}
	return s.text[loc[2*n]:loc[2*n+1]]
}

// replaceByCall calls a replacement function the way cl-ppcre does: with the
// target, its bounds, the match's bounds and the registers' bounds.
func (th *Thread) replaceByCall(fn *Function, s *subject, loc []int) string {
	from, to := s.index(loc[0]), s.index(loc[1])
	starts, ends := th.registers(s, loc)
	v := th.call(fn, th.str(s.text), mkInt(int64(s.first)), mkInt(int64(s.last)), from, to, starts, ends)
	return th.stringArg(v).text()
}

// simpleCall adapts a function of the match and registers as strings.
func (th *Thread) simpleCall(fn *Function, s *subject, loc []int) string {
	args := append([]Value{th.str(s.text[loc[0]:loc[1]])}, th.groups(s, loc)...)
	return th.stringArg(th.call(fn, args...)).text()
}

// biRegexReplace: (regex-replace[-all] regex target replacement &key start end preserve-case simple-calls element-type)
func biRegexReplace(all bool) func(*Thread, []Value) Value {
	return func(th *Thread, a []Value) Value {
		r := th.regexArg(a[0])
		s := th.subject(a[1], a[3], a[4])
		simple, _ := a[2].(*Function)
		if a[6] == nil || !isTrue(a[6]) {
			simple = nil
		}
		var locs [][]int
		if all {
			locs = th.matches(r, &s)
		} else if loc := th.match(r, &s); loc != nil {
			locs = [][]int{loc}
		}
		if locs == nil {
			return th.values(th.str(s.text), Nil)
		}
		b := textBuilder{th: th}
		last := 0
		for _, loc := range locs {
			b.write(s.text[last:loc[0]])
			if simple != nil {
				b.write(th.simpleCall(simple, &s, loc))
			} else {
				th.replacement(&b, a[2], &s, loc)
			}
			last = loc[1]
		}
		b.write(s.text[last:])
		return th.values(newStr(b.text.String()), symT)
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
	r := th.compileRegex(th.stringArg(a[0]).text(), flags)
	th.alloc(4 * r.size) // the program may keep it
	return r
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
