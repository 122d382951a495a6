package flight

import (
	"maps"
	"path"
	"slices"
	"strings"

	"passepartout/internal/gate"
	"passepartout/internal/proto"
	"passepartout/internal/shell"
)

// places is in how many classes the same thing must have been agreed to before a
// rule is proposed that covers what they share.
const places = 3

// widen finds the classes that differ in one respect only, and together are a habit:
//
//   - one program that only reads, from the service its settings name, asked for in
//     different words (kubectl get, kubectl describe);
//   - one thing done to files in different directories below one.
//
// What widening answers is bounded by the codes of the questions: whatever else such
// an action would do raises another one, which is still asked.
func widen(classes map[string][]*evidence) [][]*evidence {
	kinds := map[string][]*evidence{}
	count := map[string]int{}
	for _, class := range slices.Sorted(maps.Keys(classes)) {
		es := classes[class]
		if k := kindOf(es[0]); k != "" {
			kinds[k] = append(kinds[k], es...)
			count[k]++
		}
	}
	var out [][]*evidence
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		if count[k] >= places {
			out = append(out, kinds[k])
		}
	}
	return out
}

// kindOf is what widening keeps of an action, "" for one it leaves alone.
func kindOf(e *evidence) string {
	codes := codesOf(e)
	parts, ok := shapeOf(e.action)
	if !ok {
		return ""
	}
	key := []string{e.action.Name(), strings.Join(codes, " ")}
	if slices.Equal(codes, []string{shell.NeedsService}) && len(parts) == 1 && parts[0].means == proto.Command && !parts[0].exact {
		return strings.Join(append(key, parts[0].words[0]), "\x1f")
	}
	if !slices.Equal(codes, []string{"permissions.ask"}) && !slices.Equal(codes, []string{"shell.read-system"}) {
		return "" // a question about what is done, not about where
	}
	some := false
	for _, p := range parts {
		key = append(key, string(p.arg))
		for _, w := range p.words {
			if dir, name := path.Split(w); p.isPath(w) && dir != "" {
				key, some = append(key, "\x00"+path.Ext(name)), true
			} else {
				key = append(key, p.pattern(w))
			}
		}
	}
	if !some {
		return ""
	}
	return strings.Join(key, "\x1f")
}

func codesOf(e *evidence) []string {
	var out []string
	for _, v := range e.asked {
		out = append(append(out, v.Code), strings.Fields(v.Also)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// isPath reports whether a word is a path that has a pattern.
func (p part) isPath(word string) bool {
	return !p.exact && !strings.Contains(word, "://") && p.pattern(word) != word && p.means != proto.Content
}

// wideRule is the smallest rule over several classes.
func (m Miner) wideRule(es []*evidence, d gate.Decision) gate.Rule {
	r := gate.Rule{Decision: d, Verb: es[0].action.Name(), Shadow: d == gate.Allow, Where: "proposal"}
	var shapes [][]part
	for _, e := range es {
		s, _ := shapeOf(e.action)
		shapes = append(shapes, s)
	}
	for i, p := range shapes[0] {
		var pat string
		if slices.Equal(codesOf(es[0]), []string{shell.NeedsService}) {
			pat = callPattern(shapes)
		} else {
			pat = placePattern(shapes, i)
		}
		if pat != "*" && pat != "" {
			r.When = append(r.When, gate.Condition{Arg: p.arg, Pattern: pat})
		}
	}
	return m.complete(r, es)
}

// callPattern is the words all calls of a program begin with, and the options that
// were agreed to with any of them.
func callPattern(shapes [][]part) string {
	head := shapes[0][0].words
	options := map[string]bool{}
	for _, s := range shapes {
		words := s[0].words
		n := 0
		for n < min(len(head), len(words)) && words[n] == head[n] && !strings.HasPrefix(words[n], "-") {
			n++
		}
		head = head[:max(n, 1)]
		for _, w := range words {
			if name, _, _ := strings.Cut(w, "="); strings.HasPrefix(w, "-") {
				options[name] = true
			}
		}
	}
	rest := "...{" + strings.Join(slices.Sorted(maps.Keys(options)), ",") + "}"
	return strings.Join(append(slices.Clone(head), rest), " ")
}

// placePattern is one argument with the paths that differ replaced by the directory
// they share.
func placePattern(shapes [][]part, i int) string {
	var out []string
	p := shapes[0][i]
	for j, w := range p.words {
		var all []string
		for _, s := range shapes {
			all = append(all, s[i].words[j])
		}
		switch {
		case !slices.ContainsFunc(all, func(o string) bool { return o != w }):
			out = append(out, w)
		case p.isPath(w):
			out = append(out, below(all, p.means))
		default:
			out = append(out, p.pattern(w))
		}
	}
	return strings.Join(out, " ")
}

// below is the pattern of everything of that kind in the directory all paths share.
// One that is too near to the root, where nothing is a project any more, gives a
// pattern that no path fits.
func below(paths []string, means proto.Meaning) string {
	dir := strings.Split(path.Dir(paths[0]), "/")
	for _, p := range paths[1:] {
		other := strings.Split(path.Dir(p), "/")
		n := 0
		for n < min(len(dir), len(other)) && dir[n] == other[n] {
			n++
		}
		dir = dir[:n]
	}
	depth := 1
	if strings.HasPrefix(paths[0], "/") {
		depth = 4 // the empty word before the first slash, and three directories
	}
	if len(dir) < depth || dir[0] == "." || dir[0] == ".." {
		return "nothing-is-shared"
	}
	star := "/*"
	if means != proto.Command {
		star = "/**"
	}
	return strings.Join(dir, "/") + star + path.Ext(paths[0])
}
