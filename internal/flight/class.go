package flight

import (
	"slices"
	"strings"

	"passepartout/internal/gate"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// Class puts like actions together: the same verb and, for a command, the same
// program, subcommand and options with the same number of words, in the same
// directories and at the same hosts. A command that is not plain words is in a class
// of its own. ok is false for what is in no class: a command that is expanded when
// it runs, or an argument that is no text.
func Class(a proto.Action) (class string, ok bool) {
	parts, ok := shapeOf(a)
	if !ok {
		return "", false
	}
	out := []string{a.Name()}
	for _, p := range parts {
		out = append(out, string(p.arg))
		for _, w := range p.words {
			out = append(out, p.pattern(w))
		}
	}
	return strings.Join(out, "\x1f"), true
}

// A part is one argument of an action, in words.
type part struct {
	arg   sexp.Keyword
	means proto.Meaning
	words []string
	exact bool // a whole command line, which no pattern stands for
}

// shapeOf reads the arguments that say what an action reaches. Free text, such as
// a title, is no part of a class only where the verb does nothing but write it.
func shapeOf(a proto.Action) ([]part, bool) {
	var out []part
	for _, e := range a.Args().Pairs() {
		spec, ok := a.Spec().Param(e.Key)
		if !ok {
			return nil, false
		}
		p := part{arg: e.Key, means: spec.Means}
		switch v := e.Value.(type) {
		case sexp.String:
			p.words = []string{string(v)}
			if spec.Means == proto.Command {
				if p.words, ok = words(string(v)); !ok {
					return nil, false
				}
				p.exact = strings.HasPrefix(p.words[0], "=")
			}
		case sexp.List:
			for _, item := range v.Items() {
				s, ok := item.(sexp.String)
				if !ok {
					return nil, false
				}
				p.words = append(p.words, string(s))
			}
		default:
			p.words = []string{e.Value.String()}
		}
		out = append(out, p)
	}
	return out, len(out) > 0
}

// words splits a command of plain words. One that a shell joins, redirects or
// unquotes is kept whole, behind a =, as rules write it; one that is expanded when
// it runs is dynamic, and no class holds it.
func words(cmd string) ([]string, bool) {
	if strings.ContainsAny(cmd, "$`\n\r\x00") || strings.TrimSpace(cmd) != cmd {
		return nil, false
	}
	out, plain := gate.PlainWords(cmd)
	if !plain || slices.ContainsFunc(out, func(w string) bool {
		return w == "" || w == "..." || strings.ContainsAny(w, " \t=") && !strings.HasPrefix(w, "-")
	}) || strings.HasPrefix(out[0], "=") {
		return []string{"=" + cmd}, true // its words are none that a pattern could name
	}
	return out, true
}

// pattern is what a word has in common with the others of its class: a path keeps
// its directory and the end of its name, an address its host. Everything else is
// itself.
func (p part) pattern(word string) string {
	switch p.means {
	case proto.Content:
		return "*"
	case proto.Command, proto.ReadPath, proto.WritePath, proto.URL:
		if p.exact {
			return word
		}
	default: // a slash in a message, a recipient or code is no directory
		return word
	}
	if strings.HasPrefix(word, "-") || slices.Contains(strings.Split(word, "/"), "..") {
		return word
	}
	if i := strings.Index(word, "://"); i > 0 {
		host, _, found := strings.Cut(word[i+3:], "/")
		if !found || host == "" || strings.ContainsAny(host, "@%") {
			return word
		}
		return word[:i+3] + host + "/*"
	}
	i := strings.LastIndexByte(word, '/')
	if i <= 0 || i == len(word)-1 {
		return word
	}
	dir, name := word[:i+1], word[i+1:]
	ext := ""
	if j := strings.LastIndexByte(name, '.'); j > 0 {
		ext = name[j:]
	}
	return dir + "*" + ext
}
