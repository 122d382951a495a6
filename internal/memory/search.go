package memory

import (
	"bytes"
	"cmp"
	"path"
	"slices"
	"strings"

	"passepartout/internal/org"
)

// Hit is one result of a text search.
type Hit struct {
	Object Object
	Score  int
	Line   string // the first line that matched
}

// Search finds headlines that hold all words of the text, in any letter case, and
// ranks them: words in the title weigh most, then tags, then how often they occur.
// Equal scores keep the order of the memex.
func (v *View) Search(text string, limit int) []Hit {
	words := strings.Fields(strings.ToLower(text))
	if len(words) == 0 || limit <= 0 {
		return nil
	}
	var hits []Hit
	for _, k := range v.sorted {
		n := v.files[k]
		if !n.mayHold(words) {
			continue
		}
		for i := range n.recs {
			if h, ok := v.score(n, i, words); ok {
				hits = append(hits, h)
			}
		}
	}
	slices.SortStableFunc(hits, func(a, b Hit) int { return cmp.Compare(b.Score, a.Score) })
	return hits[:min(limit, len(hits))]
}

// mayHold reports whether every word occurs somewhere in the file, or is one of its
// tags, which may come from a setup file.
func (n *node) mayHold(words []string) bool {
	whole := bytes.ToLower(n.of.Bytes())
	return !slices.ContainsFunc(words, func(w string) bool {
		return !bytes.Contains(whole, []byte(w)) &&
			!slices.ContainsFunc(n.everyTag(), func(t string) bool { return strings.EqualFold(t, w) })
	})
}

func (v *View) score(n *node, i int, words []string) (Hit, bool) {
	const inTitle, inTags, mostCounted = 20, 10, 5
	h := n.of.Headline(i)
	title := strings.ToLower(h.Title())
	body := strings.ToLower(string(n.section(i)))
	tags := n.tagSets[n.recs[i].tags]
	score := 0
	for _, w := range words {
		found := min(strings.Count(body, w), mostCounted)
		if strings.Contains(title, w) {
			found += inTitle
		}
		if slices.ContainsFunc(tags, func(t string) bool { return strings.EqualFold(t, w) }) {
			found += inTags
		}
		if found == 0 {
			return Hit{}, false
		}
		score += found
	}
	hit := Hit{Object: v.object(n, i), Score: score}
	for line := range strings.Lines(string(n.section(i))) {
		if strings.Contains(strings.ToLower(line), words[0]) {
			hit.Line = strings.TrimSpace(line)
			break
		}
	}
	return hit, true
}

// Link is a connection between two objects of the memex.
type Link struct {
	From   Object
	Target string // identifier, path, or address as written
	To     Object // the zero Object if it leads out of the memex or nowhere
}

// linkTarget is what a link leads to, in the form objects are looked up by.
func linkTarget(file string, l org.Link) string {
	switch l.Type {
	case "id":
		id, _, _ := strings.Cut(l.Path, "::")
		return id
	case "file":
		p, _, _ := strings.Cut(l.Path, "::")
		return path.Join(path.Dir(file), p)
	}
	return l.Type + ":" + l.Path
}

// Links are the links in an object's own text.
func (v *View) Links(o Object) []Link {
	var c *org.Contents
	if o.i < 0 {
		c = o.n.of.Contents()
	} else {
		c = o.n.of.Headline(o.i).Contents()
	}
	var out []Link
	for _, l := range c.Links {
		if o.i < 0 && l.Span.Start >= o.n.of.Preamble().End {
			break
		}
		t := linkTarget(o.File, l)
		link := Link{From: o, Target: t}
		if l.Type == "id" {
			link.To, _ = v.Get(ID(t))
		} else if l.Type == "file" {
			link.To, _ = v.File(t)
		}
		out = append(out, link)
	}
	return out
}

// Backlinks are the headlines that link to an object, by its identifier or, for a
// file, by its path.
func (v *View) Backlinks(o Object) []Object {
	want := string(o.ID)
	if o.IsFile() && o.ID.Derived() {
		want = o.File
	}
	last := want[strings.LastIndexByte(want, '/')+1:]
	var out []Object
	for _, k := range v.sorted {
		n := v.files[k]
		if !strings.Contains(string(n.of.Bytes()), last) {
			continue
		}
		for i := range n.recs {
			if !strings.Contains(string(n.section(i)), last) {
				continue
			}
			for _, l := range n.of.Headline(i).Contents().Links {
				if linkTarget(n.path, l) == want {
					out = append(out, v.object(n, i))
					break
				}
			}
		}
	}
	return out
}
