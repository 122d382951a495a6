package act

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"passepartout/internal/memory"
	"passepartout/internal/org"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// Label is what reading a file does to a turn: the memex holds the user's own
// words, some of them private, some from elsewhere. It is meant for [Files].
func (m Memex) Label(path string) proto.Taint {
	t := m.Labels.Of(path)
	rel, err := filepath.Rel(m.Store.Root(), path)
	if err != nil || !filepath.IsLocal(rel) {
		return t.Join(proto.Taint{Untrusted: true})
	}
	v := m.Store.View()
	o, ok := v.File(filepath.ToSlash(rel))
	if !ok {
		// No note: it has no tags and names no origin, but may be a copy of one.
		kin := original(filepath.ToSlash(rel))
		_, known := v.File(kin)
		return t.Join(proto.Taint{Private: known && v.Private(kin)})
	}
	return t.Join(proto.Taint{Private: v.Private(o.File), Untrusted: foreign(o)})
}

// Secluded is where private text stands now. It is meant for [Shell].
func (m Memex) Secluded() Seclusion {
	v := m.Store.View()
	root := m.Store.Root()
	out := Seclusion{Files: m.Labels.Private(), Done: func() {}}
	var private []string
	for f := range v.Files() {
		if v.Private(f) {
			private = append(private, f)
		}
	}
	for _, f := range private {
		out.Files = append(out.Files, filepath.Join(root, filepath.FromSlash(f)))
	}
	out.Files = append(out.Files, copies(v, root, private)...)
	out.Stores = stores(root, private)
	return out
}

// foreign reports whether some of an object's text came from elsewhere.
func foreign(o memory.Object) bool {
	if o.Origin() != "" {
		return true
	}
	for child := range o.Children() {
		if foreign(child) {
			return true
		}
	}
	return false
}

func (m Memex) edit(ctx context.Context, c Call) (Outcome, error) {
	v := m.Store.View()
	o, err := m.target(v, c)
	if err != nil {
		return Outcome{}, err
	}
	if err := errors.Join(m.open(o), m.keepsLabels(o, c)); err != nil {
		return Outcome{}, err
	}
	t := turnOf(ctx)
	changes, err := m.changes(t, v, o, c)
	if err != nil {
		return Outcome{}, err
	}
	tx := memory.Tx{Actor: "agent", Turn: t.ID, Label: t.label("org-edit " + o.Title)}
	for _, ch := range changes {
		tx.Edits = append(tx.Edits, memory.Edit{Object: o.ID, Expect: o.Hash, Change: ch})
	}
	r, err := m.Store.Apply(ctx, tx)
	if err != nil {
		return Outcome{}, err
	}
	var files []string
	for _, f := range r.Files {
		files = append(files, f.Path)
	}
	return Outcome{OK: true, Text: m.result(o, c, r), Changed: files}, nil
}

// result is a heading after an edit, for the person.
func (m Memex) result(o memory.Object, c Call, r memory.Result) string {
	if c.Flag("ARCHIVE") {
		return fmt.Sprintf("Archived: %s", line(o))
	}
	for i := len(r.IDs) - 1; i >= 0; i-- {
		if now, ok := m.Store.View().Get(r.IDs[i]); ok {
			return "Now: " + line(now)
		}
	}
	return "Changed: " + line(o)
}

// changes are what an edit's arguments ask for, in a fixed order: what moves the
// heading comes last.
func (m Memex) changes(t Turn, v *memory.View, o memory.Object, c Call) ([]memory.Change, error) {
	var out []memory.Change
	if c.Has("TITLE") {
		out = append(out, memory.Change{Kind: memory.SetTitle, Value: c.Text("TITLE")})
	}
	if c.Has("TAGS") {
		out = append(out, memory.Change{Kind: memory.SetTags, Tags: c.Texts("TAGS")})
	}
	out = append(out, m.relabel(t, v, o, c)...)
	if c.Has("PRIORITY") {
		out = append(out, memory.Change{Kind: memory.SetPriority, Value: strings.ToUpper(c.Text("PRIORITY"))})
	}
	planned, err := planning(c)
	if err != nil {
		return nil, err
	}
	out = append(out, planned...)
	if key := c.Text("PROPERTY"); key != "" && c.Text("VALUE") != "" {
		out = append(out, memory.Change{Kind: memory.SetProperty, Key: key, Value: c.Text("VALUE")})
	} else if key != "" {
		out = append(out, memory.Change{Kind: memory.RemoveProperty, Key: key})
	}
	if c.Has("BODY") {
		out = append(out, memory.Change{Kind: memory.SetBody, Value: c.Text("BODY")})
	}
	if c.Has("TODO") {
		out = append(out, memory.Change{Kind: memory.SetTodo, Value: strings.ToUpper(c.Text("TODO"))})
	}
	if c.Text("CHILD") != "" {
		out = append(out, memory.Change{Kind: memory.Insert, Entry: m.labelled(t, org.Entry{Title: c.Text("CHILD")})})
	}
	if to := c.Text("REFILE-TO"); to != "" {
		target, err := destination(v, to)
		if err == nil {
			err = m.open(target)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, memory.Change{Kind: memory.Refile, Target: target.ID})
	}
	if c.Flag("ARCHIVE") {
		out = append(out, memory.Change{Kind: memory.Archive})
	}
	if len(out) == 0 {
		return nil, errors.New("nothing is to be changed: give :TODO, :DEADLINE, :SCHEDULED, :TITLE, :TAGS, :PRIORITY, :PROPERTY, :BODY, :CHILD, :REFILE-TO or :ARCHIVE")
	}
	return out, nil
}

// planning are the changes of a heading's dates.
func planning(c Call) ([]memory.Change, error) {
	var out []memory.Change
	for _, d := range []struct {
		key  sexp.Keyword
		kind memory.ChangeKind
	}{{"DEADLINE", memory.SetDeadline}, {"SCHEDULED", memory.Schedule}} {
		if !c.Has(d.key) {
			continue
		}
		ts, err := stamp(c.Text(d.key))
		if err != nil {
			return nil, err
		}
		out = append(out, memory.Change{Kind: d.kind, Value: ts})
	}
	return out, nil
}

// destination is where a heading is to be moved.
func destination(v *memory.View, name string) (memory.Object, error) {
	if o, ok := v.Get(memory.ID(name)); ok {
		return o, nil
	}
	if o, ok := v.Lookup(name); ok {
		return o, nil
	}
	o, err := titled(v, name)
	if err != nil {
		return o, fmt.Errorf("where to: %w", err)
	}
	return o, nil
}
