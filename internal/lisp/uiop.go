package lisp

import (
	"strings"
	"unicode/utf8"
)

// biSplitString is uiop:split-string: pieces between separator characters; with
// :max the leftmost piece keeps the rest.
func biSplitString(th *Thread, a []Value) Value {
	s := th.stringArg(a[0])
	sep := func(c rune) bool { return c == ' ' || c == '\t' }
	if a[2] != nil && isTrue(a[2]) {
		sep = th.charBag(a[2])
	}
	limit := 0
	if a[1] != nil && isTrue(a[1]) {
		limit = th.index(a[1])
	}
	text := s.text()
	th.step(uint64(1 + len(text)/16))
	if text == "" {
		return Nil
	}
	var out []Value
	for {
		i := strings.LastIndexFunc(text, sep)
		if i < 0 || limit > 0 && len(out) >= limit-1 {
			break
		}
		_, n := utf8.DecodeRuneInString(text[i:])
		out = append(out, th.str(text[i+n:]))
		text = text[:i]
	}
	out = append(out, th.str(text))
	b := Value(Nil)
	for _, x := range out {
		b = th.cons(x, b)
	}
	return b
}

func affix(test func(s, part string) bool) func(*Thread, Value, Value) Value {
	return func(th *Thread, x, y Value) Value {
		part := th.designated(x)
		th.chargeLook(part.length())
		return mkBool(test(th.designated(y).text(), part.text()))
	}
}

func (th *Thread) emptyp(x Value) bool {
	switch v := x.(type) {
	case *Str:
		return v.length() == 0
	case *array:
		return len(th.arr(v).live()) == 0
	}
	return x == Value(Nil)
}

var uiopPrims = []prim{
	{usage: "(uiop:split-string string &key max separator)", doc: "pieces between separator characters", fn: biSplitString},
	{usage: "(uiop:string-prefix-p prefix string)", doc: "true if string starts with prefix", fn2: affix(strings.HasPrefix)},
	{usage: "(uiop:string-suffix-p string suffix)", doc: "true if string ends with suffix", fn2: func(th *Thread, x, y Value) Value {
		return affix(strings.HasSuffix)(th, y, x)
	}},
	{usage: "(uiop:string-enclosed-p prefix string suffix)", doc: "true if string starts and ends so", fn: func(th *Thread, a []Value) Value {
		starts := affix(strings.HasPrefix)(th, a[0], a[1])
		return mkBool(isTrue(starts) && isTrue(affix(strings.HasSuffix)(th, a[2], a[1])))
	}},
	{usage: "(uiop:strcat &rest strings)", doc: "the strings joined", fn: func(th *Thread, a []Value) Value {
		var b strings.Builder
		for _, x := range a {
			if x == Value(Nil) {
				continue
			}
			t := th.designated(x).text()
			th.alloc(len(t) / 16)
			b.WriteString(t)
		}
		return th.str(b.String())
	}},
	{usage: "(uiop:reduce/strcat strings &key key start end)", doc: "the strings joined", fn: func(th *Thread, a []Value) Value {
		t := th.tester(nil, nil, a[1])
		all := th.seq(a[0])
		i, j := th.bounds(a[2], a[3], len(all))
		var b strings.Builder
		for _, x := range all[i:j] {
			if x = t.keyOf(x); x != Value(Nil) {
				s := th.designated(x).text()
				th.alloc(len(s) / 16)
				b.WriteString(s)
			}
		}
		return th.str(b.String())
	}},
	{usage: "(uiop:emptyp sequence)", doc: "true for NIL or an empty sequence", fn1: func(th *Thread, x Value) Value { return mkBool(th.emptyp(x)) }},
	{usage: "(uiop:first-char string)", doc: "the first character, or NIL", fn1: func(th *Thread, x Value) Value {
		if s, ok := x.(*Str); ok && s.length() > 0 {
			return Char(s.at(0))
		}
		return Nil
	}},
	{usage: "(uiop:last-char string)", doc: "the last character, or NIL", fn1: func(th *Thread, x Value) Value {
		if s, ok := x.(*Str); ok && s.length() > 0 {
			return Char(s.at(s.length() - 1))
		}
		return Nil
	}},
	{usage: "(uiop:stripln string)", doc: "the string without its line ending, and the ending", fn1: func(th *Thread, x Value) Value {
		t := th.stringArg(x).text()
		s := strings.TrimSuffix(strings.TrimSuffix(t, "\n"), "\r")
		if !strings.HasSuffix(t, "\n") {
			s = strings.TrimSuffix(t, "\r")
		}
		if s == t {
			return th.values(x, Nil)
		}
		return th.values(th.str(s), th.str(t[len(s):]))
	}},
	{usage: "(uiop:ensure-list object)", doc: "the object if it is a list, else a list of it", fn1: func(th *Thread, x Value) Value {
		if _, ok := x.(*Cons); ok || x == Value(Nil) {
			return x
		}
		return th.cons(x, Nil)
	}},
	{usage: "(uiop:getenv name)", doc: "NIL: the environment is the host's", fn1: func(th *Thread, x Value) Value { th.stringArg(x); return Nil }},
	{usage: "(uiop:remove-plist-key key plist)", doc: "plist without a key", fn2: func(th *Thread, k, l Value) Value {
		all := th.items(l)
		var out []Value
		for i := 0; i+1 < len(all); i += 2 {
			if all[i] != k {
				out = append(out, all[i], all[i+1])
			}
		}
		return th.newList(out, Nil)
	}},
}
