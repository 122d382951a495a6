package fovea

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"strings"
	"sync"
	"sync/atomic"

	"passepartout/internal/memory"
	"passepartout/internal/recall"
)

// Mirror keeps a recall index equal to the memex. It is safe for concurrent use.
type Mirror struct {
	index *recall.Index

	view atomic.Pointer[memory.View] // last seen; read by searches without mu

	mu     sync.Mutex
	files  map[string]mirrored
	learnt int // notes when vectors were last learnt
}

// mirrored is what the index holds of a file.
type mirrored struct {
	hash memory.Hash
	ids  []memory.ID
}

// NewMirror returns a mirror that has seen nothing yet.
func NewMirror(o recall.Options) *Mirror {
	m := &Mirror{files: map[string]mirrored{}}
	o.Text = m.text
	m.index = recall.New(o)
	return m
}

// Index is the index as it is now.
func (m *Mirror) Index() *recall.Index { return m.index }

// text is a note's text in the view last seen.
func (m *Mirror) text(id string) string {
	v := m.view.Load()
	if v == nil {
		return ""
	}
	o, _ := v.Get(memory.ID(id))
	if o.ID == "" {
		return ""
	}
	return o.Text()
}

// Sync brings the index to the view: only files that changed are read.
func (m *Mirror) Sync(v *memory.View) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if last := m.view.Load(); last != nil && last.Rev() >= v.Rev() {
		return
	}
	m.view.Store(v)
	gone := []memory.ID{}
	there := map[string]bool{}
	for f := range v.FileObjects() {
		there[f.File] = true
		old, known := m.files[f.File]
		if known && old.hash == f.Hash {
			continue
		}
		gone = append(gone, old.ids...)
		now := mirrored{hash: f.Hash}
		m.put(v, f, &now)
		m.files[f.File] = now
	}
	for path, old := range m.files {
		if !there[path] {
			gone = append(gone, old.ids...)
			delete(m.files, path)
		}
	}
	for _, id := range gone {
		if _, still := v.Get(id); !still {
			m.index.Delete(string(id))
		}
	}
}

// put indexes an object and everything below it.
func (m *Mirror) put(v *memory.View, o memory.Object, file *mirrored) {
	if !o.IsFile() || written(o) {
		file.ids = append(file.ids, o.ID)
		m.index.Put(note(v, o))
	}
	for c := range o.Children() {
		m.put(v, c, file)
	}
}

// written reports whether a file has text of its own above its first headline.
func written(o memory.Object) bool {
	for line := range strings.Lines(o.Body()) {
		if s := strings.TrimSpace(line); s != "" && !strings.HasPrefix(s, "#+") && !strings.HasPrefix(s, ":") {
			return true
		}
	}
	return false
}

// note is an object as the index takes it. The stamp covers what is inherited, for
// that changes without the object's own section.
func note(v *memory.View, o memory.Object) recall.Doc {
	d := recall.Doc{
		ID: string(o.ID), Title: o.Title, Tags: o.AllTags, Outline: o.Outline(), Body: o.Body(),
		Stamp: o.Own, Private: v.PrivateObject(o),
	}
	h := fnv.New64a()
	for _, list := range [][]string{d.Tags, d.Outline} {
		for _, s := range list {
			h.Write([]byte(s)) // a hash never fails to write
			h.Write([]byte{0})
		}
	}
	head := d.Stamp[:8]
	binary.LittleEndian.PutUint64(head, binary.LittleEndian.Uint64(head)^h.Sum64())
	return d
}

// Learn learns vectors from the notes again if there are a tenth more or fewer
// than last time. It may take seconds and is meant for the background.
func (m *Mirror) Learn(ctx context.Context) error {
	n := m.index.Len()
	m.mu.Lock()
	due := m.learnt == 0 || max(n, m.learnt)-min(n, m.learnt) > m.learnt/10
	m.mu.Unlock()
	if !due {
		return nil
	}
	if err := m.index.Learn(ctx); err != nil {
		return err
	}
	m.mu.Lock()
	m.learnt = n
	m.mu.Unlock()
	return nil
}

// Search returns the objects of the view that fit the text best.
func (m *Mirror) Search(v *memory.View, text string, limit int) []memory.Object {
	m.Sync(v)
	var out []memory.Object
	for _, h := range m.index.Search(text, limit, recall.Fused) {
		if o, ok := v.Get(memory.ID(h.ID)); ok {
			out = append(out, o)
		}
	}
	return out
}
