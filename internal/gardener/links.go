package gardener

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"passepartout/internal/memory"
	"passepartout/internal/org"
	"passepartout/internal/sexp"
)

// A placed link is a link with the heading it stands in; -1 is before the first.
type placed struct {
	org.Link
	head int
}

// links are the bracket links of a file.
func (b *bed) links() []placed {
	var out []placed
	take := func(c *org.Contents, head int) {
		for _, l := range c.Links {
			if l.Form == org.BracketLink && (head >= 0 || l.Span.Start < b.of.Preamble().End) {
				out = append(out, placed{l, head})
			}
		}
	}
	take(b.of.Contents(), -1)
	for i := range b.heads {
		if i < b.of.Len() {
			take(b.of.Headline(i).Contents(), i)
		}
	}
	return out
}

// leads is the file a link leads to, "" if it leads out of the memex, and whether
// it leads anywhere.
func (g *garden) leads(b *bed, l org.Link) (string, bool) {
	switch l.Type {
	case "id":
		id, _, _ := strings.Cut(l.Path, "::")
		o, ok := g.v.Get(memory.ID(id))
		return o.File, ok
	case "file", "attachment":
		return g.leadsToFile(b, l)
	case "fuzzy", "custom-id":
		return b.file.File, hasTarget(b, l)
	}
	return "", true
}

func (g *garden) leadsToFile(b *bed, l org.Link) (string, bool) {
	name, search, _ := b.target(l)
	to, inside := resolve(b.file.File, name)
	if !inside || l.Type == "attachment" {
		return "", true // nobody here can tell
	}
	if f, ok := g.v.File(to); ok {
		return f.File, search == "" || !strings.HasPrefix(search, "*") || headingIn(newBed(g.v, f), search[1:])
	}
	return to, g.o.Exists != nil && g.o.Exists(to)
}

// target is the file a link names and what it looks for in there.
func (b *bed) target(l org.Link) (name, search string, inFile bool) {
	if l.Type != "file" {
		return l.Path, "", false
	}
	raw, _, _ := strings.Cut(strings.TrimPrefix(b.of.Text(l.Span), "[["), "]")
	_, search, inFile = strings.Cut(raw, "::")
	return l.Path, search, inFile
}

// resolve is a link's path from the top of the memex; false if it leads out.
func resolve(from, name string) (string, bool) {
	if name == "" {
		return from, true
	}
	if strings.HasPrefix(name, "/") || strings.HasPrefix(name, "~") || strings.Contains(name, "://") || strings.HasPrefix(name, "//") {
		return "", false
	}
	to := path.Join(path.Dir(from), name)
	return to, to != ".." && !strings.HasPrefix(to, "../")
}

// hasTarget reports whether a link within a file finds what it names.
func hasTarget(b *bed, l org.Link) bool {
	if l.Type == "custom-id" {
		return slices.ContainsFunc(b.heads, func(h memory.Object) bool {
			id, ok := h.Property("CUSTOM_ID")
			return ok && id == strings.TrimPrefix(l.Path, "#")
		})
	}
	if !strings.HasPrefix(l.Path, "*") {
		return true // a search for words may find anything
	}
	return headingIn(b, l.Path[1:])
}

func headingIn(b *bed, title string) bool {
	return slices.ContainsFunc(b.heads, func(h memory.Object) bool { return fold(h.Title) == fold(title) })
}

// links finds those that lead nowhere, each with what it most likely meant.
func (g *garden) links(b *bed) {
	for _, l := range b.links() {
		if _, ok := g.leads(b, l.Link); ok {
			continue
		}
		kind, what := BrokenHeading, l.Path
		switch l.Type {
		case "id":
			kind, what = BrokenID, "id:"+l.Path
		case "file":
			kind, what = BrokenFile, "file:"+l.Path
			if name, search, inFile := b.target(l.Link); inFile {
				what += "::" + search
				if to, _ := resolve(b.file.File, name); to != "" {
					if _, there := g.v.File(to); there {
						kind = BrokenHeading
					}
				}
			}
		}
		at := b.file
		if l.head >= 0 {
			at = b.heads[l.head]
		}
		g.add(kind, at, b.of.Text(l.Span), what+" leads nowhere", g.relink(b, l, at, kind))
	}
}

// relink is the repair of a link: to what it most likely meant, or to its words.
func (g *garden) relink(b *bed, l placed, at memory.Object, kind Kind) *Fix {
	if l.head < 0 {
		return nil
	}
	words := b.of.Text(l.Description)
	to, text := g.meant(b, l.Link, words, kind)
	now := fmt.Sprintf("[[%s][%s]]", to, cmp.Or(words, strings.TrimPrefix(l.Path, "*")))
	if to == "" {
		now, text = cmp.Or(words, strings.TrimPrefix(l.Path, "*")), "leave only its words"
	}
	old := b.of.Text(l.Span)
	switch {
	case strings.Contains(at.Body(), old):
		return g.change(at, text, memory.Change{Kind: memory.SetBody, Value: strings.Replace(at.Body(), old, now, 1)})
	case strings.Contains(at.Title, old):
		return g.change(at, text, memory.Change{Kind: memory.SetTitle, Value: strings.Replace(at.Title, old, now, 1)})
	}
	return nil // it stands in a property, say
}

// meant is the most likely target of a broken link, and why; "" if none is likely.
func (g *garden) meant(b *bed, l org.Link, words string, kind Kind) (to, why string) {
	if kind == BrokenID {
		return g.meantID(l, words)
	}
	if kind == BrokenFile {
		return g.meantFile(b, l)
	}
	name, search, inFile := b.target(l)
	if !inFile {
		name, search = "", l.Path
	}
	in := b
	if to, _ := resolve(b.file.File, name); inFile {
		if f, ok := g.v.File(to); ok {
			in = newBed(g.v, f)
		}
	}
	var titles []string
	for _, h := range in.heads {
		if !g.v.PrivateObject(h) {
			titles = append(titles, h.Title)
		}
	}
	near, ok := sexp.Nearest(strings.TrimPrefix(search, "*"), titles)
	if !ok {
		return "", ""
	}
	if inFile {
		return "file:" + name + "::*" + near, "point it to " + near
	}
	return "*" + near, "point it to " + near
}

func (g *garden) meantID(l org.Link, words string) (string, string) {
	if same := g.titles[fold(words)]; words != "" && len(same) > 0 {
		for _, o := range same {
			if !o.ID.Derived() && !g.v.PrivateObject(o) {
				return "id:" + string(o.ID), fmt.Sprintf("point it to %q in %s", o.Title, o.File)
			}
		}
	}
	var ids []string
	for _, b := range g.beds {
		for _, h := range b.heads {
			if !h.ID.Derived() && len(h.ID) == len(l.Path) {
				ids = append(ids, string(h.ID))
			}
		}
	}
	if near, ok := sexp.Nearest(l.Path, ids); ok {
		if o, found := g.v.Get(memory.ID(near)); found && !g.v.PrivateObject(o) {
			return "id:" + near, fmt.Sprintf("point it to %q in %s, whose id is nearly the same", o.Title, o.File)
		}
	}
	return "", ""
}

func (g *garden) meantFile(b *bed, l org.Link) (string, string) {
	name, search, inFile := b.target(l)
	var found []string
	for _, o := range g.beds {
		if path.Base(o.file.File) == path.Base(name) {
			found = append(found, o.file.File)
		}
	}
	if len(found) == 0 {
		var names []string
		for _, o := range g.beds {
			if path.Dir(o.file.File) == path.Dir(path.Join(path.Dir(b.file.File), name)) {
				names = append(names, path.Base(o.file.File))
			}
		}
		if near, ok := sexp.Nearest(path.Base(name), names); ok {
			found = append(found, path.Join(path.Dir(path.Join(path.Dir(b.file.File), name)), near))
		}
	}
	if len(found) != 1 {
		return "", ""
	}
	to := "file:" + relative(b.file.File, found[0])
	if inFile {
		to += "::" + search
	}
	return to, "point it to " + found[0]
}
