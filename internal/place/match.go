package place

import (
	"strings"
	"sync"
)

// pattern is one compiled line of the table.
type pattern struct {
	kind   Kind
	rooted bool     // begins at the root
	tree   bool     // takes everything below as well
	elems  []string // folded, each with at most a few stars
}

// index finds the patterns that can begin at an element without trying them all.
type index struct {
	literal map[string][]pattern // by first element
	prefix  [256]bool            // first bytes with which a literal first element begins
	leaf    stars                // patterns of one element that name a file
	deep    stars                // all others with a star in their first element
}

// stars holds patterns whose first element has a star, by that element's last byte; 0 when it is itself a star.
type stars [256][]pattern

func (s *stars) add(p pattern) {
	first := p.elems[0]
	last := first[len(first)-1]
	if last == '*' || last == ']' {
		last = 0
	}
	s[last] = append(s[last], p)
}

// rules is everything compiled.
type rules struct {
	special                                        index
	exemptNames, exemptRoots, sinkNames, openRoots []pattern
}

// compiled waits until somebody asks, because every process of this program starts
// with its tables, and most of them, such as a sandbox's first, judge no path.
var compiled = sync.OnceValue(func() *rules {
	return &rules{
		special:     compileTable(),
		exemptNames: compile(Ordinary, exempt), exemptRoots: compile(Ordinary, exemptTrees),
		sinkNames: compile(Sink, sinks), openRoots: compile(Ordinary, openTrees),
	}
})

func compileTable() index {
	ix := index{literal: make(map[string][]pattern)}
	for _, row := range table {
		for _, p := range compile(row.kind, row.patterns) {
			first := p.elems[0]
			switch {
			case !strings.ContainsAny(first, "*["):
				ix.literal[first] = append(ix.literal[first], p)
				ix.prefix[first[0]] = true
			case len(p.elems) == 1 && !p.tree:
				ix.leaf.add(p)
			default:
				ix.deep.add(p)
			}
		}
	}
	return ix
}

func compile(kind Kind, sources []string) []pattern {
	var out []pattern
	for _, src := range sources {
		for _, s := range braces(src) {
			p := pattern{kind: kind}
			s, p.rooted = strings.CutPrefix(s, "/")
			s, p.tree = strings.CutSuffix(s, "/**")
			p.elems = strings.Split(strings.ToLower(s), "/")
			out = append(out, p)
		}
	}
	return out
}

// braces expands {a,b} groups, which may nest.
func braces(s string) []string {
	open := strings.IndexByte(s, '{')
	if open < 0 {
		return []string{s}
	}
	depth, start := 0, open+1
	var words []string
	for i := open; i < len(s); i++ {
		switch s[i] {
		case '{':
			depth++
		case ',':
			if depth == 1 {
				words = append(words, s[start:i])
				start = i + 1
			}
		case '}':
			if depth--; depth == 0 {
				words = append(words, s[start:i])
				var out []string
				for _, w := range words {
					out = append(out, braces(s[:open]+w+s[i+1:])...)
				}
				return out
			}
		}
	}
	panic("place: unbalanced braces in pattern " + s)
}

// classify returns the strictest kind the table gives to a path split into folded elements.
func classify(elems []string) Kind {
	if len(elems) == 0 {
		return Top
	}
	r := compiled()
	if matchAny(r.sinkNames, elems) {
		return Sink
	}
	k := Ordinary
	for i, e := range elems {
		if r.special.prefix[e[0]] {
			k = strictest(k, r.special.literal[e], elems, i)
		}
		k = strictest(k, r.special.deep[e[len(e)-1]], elems, i)
		k = strictest(k, r.special.deep[0], elems, i)
	}
	leaf := elems[len(elems)-1]
	if k < Secret && namedSecret(leaf) && !matchAny(r.exemptNames, elems[len(elems)-1:]) && !matchAny(r.exemptRoots, elems) {
		k = Secret
	}
	k = strictest(k, r.special.leaf[leaf[len(leaf)-1]], elems, len(elems)-1)
	k = strictest(k, r.special.leaf[0], elems, len(elems)-1)
	if (k == System || k == Device) && matchAny(r.openRoots, elems) {
		return Ordinary
	}
	return k
}

// namedSecret reports whether a file's name says that it lists secrets.
func namedSecret(leaf string) bool {
	stem, ext, ok := strings.Cut(leaf, ".")
	if ok && secretStems[stem] && dataExts[ext] {
		return true
	}
	if ok && secretPlurals[stem] && archiveExts[ext] {
		return true
	}
	dot := strings.LastIndexByte(leaf, '.')
	if dot <= 0 || !dataExts[leaf[dot+1:]] && !archiveExts[leaf[dot+1:]] {
		return false
	}
	joint := strings.LastIndexAny(leaf[:dot], "-_.")
	return joint >= 0 && secretPlurals[leaf[joint+1:dot]]
}

func wordSet(words string) map[string]bool {
	set := make(map[string]bool)
	for w := range strings.FieldsSeq(words) {
		set[w] = true
	}
	return set
}

// strictest raises k to the strictest kind among the patterns that match from elems[at].
func strictest(k Kind, patterns []pattern, elems []string, at int) Kind {
	for i := range patterns {
		if p := &patterns[i]; p.kind > k && p.matches(elems, at) && !p.excused(elems) {
			k = p.kind
		}
	}
	return k
}

// excused reports whether the match is a likeness only: the file's own name, or the tree it lies in, says that it is public.
func (p *pattern) excused(elems []string) bool {
	if p.kind != Secret {
		return false
	}
	if !p.rooted && matchAny(compiled().exemptRoots, elems) {
		return true
	}
	if p.tree && !(len(p.elems) == 1 && p.elems[0] == ".ssh") {
		return false
	}
	last := elems[len(elems)-1:]
	return matchAny(compiled().exemptNames, last)
}

func matchAny(patterns []pattern, elems []string) bool {
	for i := range patterns {
		if patterns[i].matches(elems, 0) {
			return true
		}
	}
	return false
}

// matches reports whether the pattern applies when its first element is elems[at].
func (p *pattern) matches(elems []string, at int) bool {
	if p.rooted && at != 0 {
		return false
	}
	rest := elems[at:]
	if len(rest) < len(p.elems) || !p.tree && len(rest) != len(p.elems) {
		return false
	}
	for i, want := range p.elems {
		if !glob(want, rest[i]) {
			return false
		}
	}
	return true
}

// glob matches one element: "*" stands for any run of characters, "[0-9]" for a digit.
func glob(want, s string) bool {
	star, mark := -1, 0
	w, i := 0, 0
	for i < len(s) {
		switch {
		case w < len(want) && want[w] == '*':
			star, mark = w, i
			w++
		case strings.HasPrefix(want[w:], "[0-9]") && s[i] >= '0' && s[i] <= '9':
			w += len("[0-9]")
			i++
		case w < len(want) && want[w] == s[i] && want[w] != '[':
			w++
			i++
		case star >= 0:
			mark++
			w, i = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(want[w:], "*") == ""
}
