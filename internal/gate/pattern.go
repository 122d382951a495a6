package gate

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"passepartout/internal/host"
	"passepartout/internal/sexp"
	"passepartout/internal/shell"
)

// glob reports whether s fits a pattern in which * stands for any run of
// characters, except sep when there is one, and ** for any run at all. It goes back
// to the last star only, or to the last ** where a * cannot reach further, so its
// time is bounded by the product of the lengths.
func glob(pattern, s string, sep byte) bool {
	type mark struct{ p, s int } // where to go on when the star takes one more
	star, deep := mark{-1, 0}, mark{-1, 0}
	i, j := 0, 0
	for j < len(s) {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			stars := len(pattern[i:]) - len(strings.TrimLeft(pattern[i:], "*"))
			i += stars
			star = mark{i, j}
			if sep == 0 || stars > 1 {
				deep, star = star, mark{-1, 0}
			}
		case i < len(pattern) && pattern[i] == s[j]:
			i, j = i+1, j+1
		case star.p >= 0 && s[star.s] != sep:
			star.s++
			i, j = star.p, star.s
		case deep.p >= 0:
			deep.s++
			star = mark{-1, 0}
			i, j = deep.p, deep.s
		default:
			return false
		}
	}
	return strings.Trim(pattern[i:], "*") == ""
}

// addressFits compares an address with a host, in the notation of host.List, or with
// a whole address in which * stands for any text. An allow rule that names a whole
// address admits that scheme, host, path and query only; one that objects means the
// host, whatever is fetched from it.
func addressFits(pattern, address string, strict bool) bool {
	h, err := host.Parse(address)
	if err != nil || strict && h.HasUser() {
		return false
	}
	if !strict || !strings.Contains(pattern, "://") {
		return host.List{pattern}.Allows(h)
	}
	want, err := host.Parse(pattern)
	if err != nil || want.HasUser() || h.Class() == host.Metadata || h.Scheme() != want.Scheme() || h.String() != want.String() {
		return false
	}
	path, rest := cmp.Or(afterHost(pattern), "/"), cmp.Or(afterHost(address), "/")
	if low := strings.ToLower(rest); strings.Contains(path, "*") && (strings.Contains(low, "..") || strings.Contains(low, "%2e")) {
		return false
	}
	return glob(path, rest, 0)
}

// exactly begins a pattern that is a command line to the letter.
const exactly = "="

// anyMore is the last word of a pattern that lets more words follow. In an allow rule
// options are none of them, but those it names: ...{-n,--output}.
const anyMore = "..."

// anyCall splits a last word that names the options which may be among the rest.
func anyCall(word string) (options []string, ok bool) {
	list, ok := strings.CutPrefix(word, anyMore+"{")
	list, closed := strings.CutSuffix(list, "}")
	if !ok || !closed {
		return nil, false
	}
	return strings.Split(list, ","), true
}

// callFits reports whether the rest of a command is words and the named options,
// and nothing that says which machine to talk to or leads upwards.
func callFits(options, rest []string) bool {
	for _, w := range rest {
		name, _, _ := strings.Cut(w, "=")
		switch {
		case strings.Contains(w, "://"), upwards(w), w == "-", w == "--":
			return false
		case strings.HasPrefix(w, "-") && !slices.Contains(options, name):
			return false
		}
	}
	return true
}

// commandFits compares a command, or an argument vector, with a pattern of words.
//
// Strictly, for allow rules, the command must be one program and plain words: no
// expansion, no operator, no redirection. A wildcard then stands neither for an
// option, since options change what a program does, nor for a way upwards.
// Otherwise any program started anywhere in the command line will do, and what
// is not known beforehand fits everything.
//
// A pattern that begins with = is a whole command line, to the letter. It may hold
// operators and quotes, and nothing that is expanded.
func commandFits(pattern string, val sexp.Value, strict bool) bool {
	if exact, ok := strings.CutPrefix(pattern, exactly); ok {
		text, _ := val.(sexp.String)
		return string(text) == exact && !strings.ContainsAny(exact, "$`\n\r\x00")
	}
	want := strings.Fields(pattern)
	if l, ok := val.(sexp.List); ok {
		return wordsFit(want, textItems(l), strict)
	}
	text, _ := val.(sexp.String)
	if strict {
		got, ok := plainWords(string(text))
		return ok && wordsFit(want, got, true)
	}
	return slices.ContainsFunc(programs(string(text), 0), func(argv []string) bool { return wordsFit(want, argv, false) })
}

func wordsFit(want, got []string, strict bool) bool {
	for i, w := range want {
		if w == anyMore && i == len(want)-1 {
			return !strict || !slices.ContainsFunc(got[min(i, len(got)):], evasive)
		}
		if options, ok := anyCall(w); ok && i == len(want)-1 {
			return i > 0 && (!strict || callFits(options, got[min(i, len(got)):]))
		}
		if i >= len(got) {
			return false
		}
		word := got[i]
		if !strict && i == 0 {
			word = path.Base(word)
		}
		if !wordFits(w, word, strict) {
			return false
		}
	}
	return len(got) == len(want)
}

func wordFits(pattern, word string, strict bool) bool {
	if strings.Contains(word, dynamic) {
		return true // only programs() makes such words, for rules that object
	}
	if strict && strings.Contains(pattern, "*") && evasive(word) && !strings.HasPrefix(pattern, "-") {
		return false
	}
	return glob(pattern, word, 0)
}

// evasive reports a word that a wildcard must not stand for.
func evasive(word string) bool {
	return strings.HasPrefix(word, "-") || upwards(word)
}

func upwards(word string) bool { return slices.Contains(strings.Split(word, "/"), "..") }

// PlainWords splits a command that is nothing but words, some of them in quotes: what
// an allow rule can name word by word. ok is false for any other.
func PlainWords(cmd string) (words []string, ok bool) { return plainWords(cmd) }

// plainWords splits a command that is nothing but words, some in quotes.
func plainWords(s string) ([]string, bool) {
	if strings.ContainsAny(s, "$`;&|<>(){}[]*?~#!\\\n\r\x00") {
		return nil, false
	}
	var out []string
	var word strings.Builder
	inWord, quote := false, byte(0)
	for i := range len(s) {
		switch c := s[i]; {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteByte(c)
		case c == '\'' || c == '"':
			quote, inWord = c, true
		case c == ' ' || c == '\t':
			if inWord {
				out = append(out, word.String())
				word.Reset()
				inWord = false
			}
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	if inWord {
		out = append(out, word.String())
	}
	return out, quote == 0 && len(out) > 0 && !strings.Contains(out[0], "=") // which would be an assignment
}

// dynamic marks what a word holds that is only known when it runs.
const dynamic = "\x00"

// programs lists every program a command line names, with its words, also behind
// the usual wrappers and inside shells started with -c.
func programs(src string, depth int) [][]string {
	const deepest = 8
	if depth > deepest || len(src) > shell.MaxBytes || strings.Count(src, "(")+strings.Count(src, "{") > shell.MaxDepth {
		return [][]string{{dynamic}}
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(src), "")
	if err != nil {
		return [][]string{{dynamic}}
	}
	var out [][]string
	syntax.Walk(file, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		argv := make([]string, len(call.Args))
		for i, w := range call.Args {
			argv[i] = staticWord(w)
		}
		out = append(out, unwrap(argv, depth)...)
		return true
	})
	return out
}

// wrappers start the program named in their arguments.
var wrappers = []string{
	"builtin", "command", "doas", "env", "exec", "ionice", "nice", "nohup", "setsid", "stdbuf", "sudo", "time", "timeout", "watch", "xargs",
}

var shells = []string{"ash", "bash", "dash", "ksh", "sh", "zsh"}

// unwrap adds what a wrapper or a shell started with -c would run.
func unwrap(argv []string, depth int) [][]string {
	out := [][]string{argv}
	name := path.Base(argv[0])
	switch {
	case slices.Contains(wrappers, name):
		for i := 1; i < len(argv); i++ {
			out = append(out, argv[i:])
		}
	case name == "eval":
		out = append(out, programs(strings.Join(argv[1:], " "), depth+1)...)
	case slices.Contains(shells, name):
		for i := 1; i+1 < len(argv); i++ {
			if strings.HasPrefix(argv[i], "-") && strings.Contains(argv[i], "c") {
				out = append(out, programs(argv[i+1], depth+1)...)
			}
		}
	}
	return out
}

// staticWord is a word's text, with dynamic in place of what expands.
func staticWord(w *syntax.Word) string {
	var b strings.Builder
	var part func(syntax.WordPart)
	part = func(p syntax.WordPart) {
		switch p := p.(type) {
		case *syntax.Lit:
			b.WriteString(strings.ReplaceAll(p.Value, "\\", ""))
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			for _, inner := range p.Parts {
				part(inner)
			}
		default:
			b.WriteString(dynamic)
		}
	}
	for _, p := range w.Parts {
		part(p)
	}
	return b.String()
}
