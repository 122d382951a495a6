package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"passepartout/internal/org"
	"passepartout/internal/sexp"
)

// snapObject is an object of the ancestor's memory.
type snapObject struct {
	id, parent  string
	title, todo string
	tags        []string
	body        string
	children    []string
	rank        int // order in the snapshot
}

// ImportSnapshot adds the objects of the ancestor's memory.snap to a file, keeping
// their identifiers and their tree. The snapshot is a printed plist
// (:MEMORY OBJECTS :HISTORY-STORE …); an object is a plist with :ID, :ATTRIBUTES
// (:TITLE :TODO-STATE :TAGS), :CONTENT, :PARENT-ID and :CHILDREN, bare or after its
// identifier. It is read as data: nothing in it is evaluated. The history store is
// not imported, because its versions were altered in place and prove nothing.
//
// Objects the memex has already are left alone and returned.
func (s *Store) ImportSnapshot(ctx context.Context, snap []byte, file string) (r Result, known []ID, err error) {
	objs, err := readSnapshot(snap)
	if err != nil {
		return Result{}, nil, fmt.Errorf("memory.snap: %w", err)
	}
	v := s.View()
	for _, id := range slices.Sorted(maps.Keys(objs)) {
		if _, ok := v.Get(ID(id)); ok {
			known = append(known, ID(id))
			delete(objs, id)
		}
	}
	if len(objs) == 0 {
		return Result{}, known, nil
	}
	var sb strings.Builder
	seen := map[string]bool{}
	for _, o := range inOrder(objs) {
		if o.parent == "" || objs[o.parent] == nil {
			writeSnap(&sb, objs, o, 1, seen)
		}
	}
	for _, o := range inOrder(objs) { // what only a cycle of parents holds
		writeSnap(&sb, objs, o, 1, seen)
	}
	r, err = s.Apply(ctx, Tx{
		Actor: "import", Label: "import of memory.snap", kind: opImport,
		Edits: []Edit{{File: file, Change: Change{Kind: Insert, Value: sb.String()}}},
	})
	return r, known, err
}

func inOrder(objs map[string]*snapObject) []*snapObject {
	out := slices.Collect(maps.Values(objs))
	slices.SortFunc(out, func(a, b *snapObject) int { return a.rank - b.rank })
	return out
}

// writeSnap prints a subtree once, whatever cycles the snapshot holds.
func writeSnap(sb *strings.Builder, objs map[string]*snapObject, o *snapObject, level int, seen map[string]bool) {
	const deepest = 100
	if seen[o.id] || level > deepest {
		return
	}
	seen[o.id] = true
	sb.WriteString(org.Entry{
		Title: o.title, Todo: o.todo, Tags: o.tags, Body: o.body,
		Properties: []org.Property{{Key: "ID", Value: o.id}},
	}.Format(level))
	for _, c := range o.children {
		if child := objs[c]; child != nil && child.parent == o.id {
			writeSnap(sb, objs, child, level+1, seen)
		}
	}
}

// readSnapshot reads the objects of a snapshot.
func readSnapshot(b []byte) (map[string]*snapObject, error) {
	const mostItems = 1 << 26
	r := sexp.NewReader(b, sexp.Options{File: "memory.snap", Limits: sexp.Limits{Bytes: len(b), Items: mostItems}})
	v, err := r.Read()
	if err != nil {
		return nil, err
	}
	l, _ := v.(sexp.List)
	p, err := sexp.AsPlist(l)
	if err != nil {
		return nil, err
	}
	mem, ok := p.Get("MEMORY")
	list, isList := mem.(sexp.List)
	if !ok || !isList {
		return nil, fmt.Errorf("want a plist with :MEMORY, found %.40q", sexp.Print(v))
	}
	objs := map[string]*snapObject{}
	for i, item := range list.Items() {
		o, err := snapOf(item)
		if err != nil {
			return nil, fmt.Errorf("object %d: %w", i+1, err)
		}
		o.rank = i
		objs[o.id] = o
	}
	for _, o := range objs {
		for _, c := range o.children {
			if child := objs[c]; child != nil && child.parent == "" {
				child.parent = o.id
			}
		}
	}
	return objs, nil
}

// snapOf reads one object: a plist, or an identifier followed by one.
func snapOf(v sexp.Value) (*snapObject, error) {
	l, ok := v.(sexp.List)
	if !ok || l.Len() == 0 {
		return nil, fmt.Errorf("want a plist, found %.40q", sexp.Print(v))
	}
	if _, keyed := l.At(0).(sexp.String); keyed {
		items := l.Items()[1:]
		if len(items) == 1 {
			if inner, ok := items[0].(sexp.List); ok {
				items = inner.Items()
			}
		}
		l = sexp.NewList(items...)
	}
	p, err := sexp.AsPlist(l)
	if err != nil {
		return nil, err
	}
	o := &snapObject{id: plistText(p, "ID"), parent: plistText(p, "PARENT-ID")}
	if o.id == "" || strings.ContainsAny(o.id, " \t\r\n") || strings.HasPrefix(o.id, "~") {
		return nil, fmt.Errorf("want an :ID without blanks, found %q", o.id)
	}
	if a, ok := p.Get("ATTRIBUTES"); ok {
		if al, ok := a.(sexp.List); ok {
			if ap, err := sexp.AsPlist(al); err == nil {
				o.title, o.todo = plistText(ap, "TITLE"), plistText(ap, "TODO-STATE")
				o.tags = cleanTags(plistTexts(ap, "TAGS"))
			}
		}
	}
	o.children = plistTexts(p, "CHILDREN")
	o.body = plistText(p, "CONTENT")
	if first, rest, _ := strings.Cut(o.body, "\n"); o.title == "" || first == o.title {
		o.title, o.body = first, rest
	}
	if strings.TrimSpace(o.title) == "" {
		o.title = o.id
	}
	if strings.ContainsAny(o.todo, " \t\r\n") {
		o.todo = ""
	}
	return o, nil
}

func plistText(p sexp.Plist, key sexp.Keyword) string {
	v, _ := p.Get(key)
	switch v := v.(type) {
	case sexp.String:
		return string(v)
	case sexp.Keyword:
		return string(v)
	}
	return ""
}

func plistTexts(p sexp.Plist, key sexp.Keyword) []string {
	v, _ := p.Get(key)
	l, _ := v.(sexp.List)
	var out []string
	for _, item := range l.Items() {
		if s, ok := item.(sexp.String); ok {
			out = append(out, string(s))
		}
	}
	return out
}

// cleanTags makes tags of what the ancestor allowed as tags.
func cleanTags(tags []string) []string {
	var out []string
	for _, t := range tags {
		t = strings.Map(func(r rune) rune {
			if r == '-' || r == ' ' || r == ':' {
				return '_'
			}
			return r
		}, t)
		if checkEntry(org.Entry{Title: "x", Tags: []string{t}}) == nil {
			out = append(out, t)
		}
	}
	return out
}
