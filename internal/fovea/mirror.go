package fovea

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"passepartout/internal/memory"
	"passepartout/internal/org"
	"passepartout/internal/recall"
)

// Mirror keeps a recall index equal to the memex. It is safe for concurrent use.
type Mirror struct {
	index *recall.Index
	mode  recall.Mode
	feed  *recall.Feed // a provider's vectors; nil for none

	view atomic.Pointer[memory.View] // last seen; read by searches without mu

	have, want atomic.Int64 // files of the Sync that runs

	mu     sync.Mutex
	files  map[string]mirrored
	learnt int                       // notes when vectors were last learnt
	fresh  []memory.ID               // put after the first Sync, oldest first
	links  map[memory.ID][]memory.ID // a target to the nodes that link to it
	dates  calendar                  // deadlines of open tasks
}

// mirrored is what the index holds of a file.
type mirrored struct {
	hash     memory.Hash
	standing uint64 // what its objects have from outside it
	ids      []memory.ID
	targets  []memory.ID // of its links
}

// NewMirror returns a mirror that has seen nothing yet. With trigrams indexed it
// searches by them alone, as the ancestor did.
func NewMirror(o recall.Options) *Mirror {
	m := &Mirror{files: map[string]mirrored{}, links: map[memory.ID][]memory.ID{}}
	o.Text, o.Parts = m.text, m.parts
	m.index = recall.New(o)
	if o.Hashing {
		m.mode = recall.Hashing
	}
	return m
}

// Index is the index as it is now.
func (m *Mirror) Index() *recall.Index { return m.index }

// Lend gives the index the vectors of a provider. It must be called before anything
// else runs.
func (m *Mirror) Lend(o recall.FeedOptions) *recall.Feed {
	m.feed = recall.NewFeed(m.index, o)
	return m.feed
}

// Progress is how far the vectors of a provider are; false without one.
func (m *Mirror) Progress() (recall.Progress, bool) {
	if m.feed == nil {
		return recall.Progress{}, false
	}
	return m.feed.Progress(), true
}

// question is a question's vector, if a provider's vectors help. Only if it may
// leave is it sent to an embedder that is not on this machine.
func (m *Mirror) question(text string, leave bool) []float32 {
	if p, ok := m.Progress(); !ok || p.Cal.Weight == 0 {
		return nil
	}
	return m.feed.Question(context.Background(), text, leave)
}

// parts are a note's title and text in the view last seen, without its drawers, and
// whether they are private there.
func (m *Mirror) parts(id string) (title, body string, private bool) {
	v := m.view.Load()
	if v == nil {
		return "", "", true
	}
	o, ok := v.Get(memory.ID(id))
	if !ok {
		return "", "", true
	}
	return o.Title, o.Body(), v.PrivateObject(o)
}

// text is a note's text in the view last seen.
func (m *Mirror) text(id string) string {
	v := m.view.Load()
	if v == nil {
		return ""
	}
	o, ok := v.Get(memory.ID(id))
	if !ok {
		return ""
	}
	return o.Text()
}

// Indexing is how many files the Sync that runs has looked at, and how many there
// are; the same number when none runs.
func (m *Mirror) Indexing() (have, want int) {
	have = int(m.have.Load()) // first: it only grows towards want
	return have, int(m.want.Load())
}

// Sync brings the index to the view: only files that changed are read.
func (m *Mirror) Sync(v *memory.View) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if last := m.view.Load(); last != nil && last.Rev() >= v.Rev() {
		return
	}
	begun := m.view.Swap(v) != nil
	m.have.Store(0)
	m.want.Store(files(v))
	defer func() { m.have.Store(m.want.Load()) }()
	gone, changed := m.forget(v)
	for _, now := range changed {
		m.put(v, now.file, now, begun)
		m.files[now.file.File] = now.mirrored
		m.have.Add(1)
	}
	for _, id := range gone {
		if _, still := v.Get(id); !still {
			m.index.Delete(string(id))
		}
	}
	m.dates.settle() // here, where nobody waits for a context
}

// A change is a file whose objects are to be read again.
type change struct {
	mirrored
	file memory.Object
}

// forget unlinks all files that are gone or changed, and returns what was known by
// them and what is to be read. All of it comes before the first is read: a heading
// may have moved from any of them to any other.
func (m *Mirror) forget(v *memory.View) (gone []memory.ID, changed []*change) {
	there := map[string]bool{}
	standing := v.Standings()
	for f := range v.FileObjects() {
		there[f.File] = true
		now := mirrored{hash: f.Hash, standing: standing(f)}
		old, known := m.files[f.File]
		if known && old.hash == now.hash && old.standing == now.standing {
			m.have.Add(1)
			continue
		}
		gone = append(gone, old.ids...)
		m.unlink(old)
		changed = append(changed, &change{now, f})
	}
	for path, old := range m.files {
		if !there[path] {
			gone = append(gone, old.ids...)
			m.unlink(old)
			delete(m.files, path)
		}
	}
	return gone, changed
}

func files(v *memory.View) (n int64) {
	for range v.Files() {
		n++
	}
	return n
}

// mostFresh is how many changed nodes are remembered.
const mostFresh = 64

// put indexes an object and everything below it.
func (m *Mirror) put(v *memory.View, o memory.Object, file *change, begun bool) {
	if !o.IsFile() || written(o) {
		d := note(v, o)
		if begun {
			if old, known := m.index.Stamp(d.ID); !known || old != d.Stamp {
				m.fresh = append(slices.DeleteFunc(m.fresh, func(id memory.ID) bool { return id == o.ID }), o.ID)
				m.fresh = m.fresh[max(len(m.fresh)-mostFresh, 0):]
			}
		}
		file.ids = append(file.ids, o.ID)
		m.index.Put(d)
		m.relate(v, o, d.Body, file)
	}
	for c := range o.Children() {
		m.put(v, c, file, begun)
	}
}

// relate notes an object's links and its deadline.
func (m *Mirror) relate(v *memory.View, o memory.Object, body string, file *change) {
	if strings.Contains(body, "[[id:") || strings.Contains(o.Title, "[[id:") {
		for _, l := range v.Links(o) {
			if to := memory.ID(l.Target); to != o.ID && !slices.Contains(m.links[to], o.ID) {
				m.links[to] = append(m.links[to], o.ID)
				file.targets = append(file.targets, to)
			}
		}
	}
	if o.Todo != "" && !o.Done && o.Deadline.Raw != "" {
		m.dates.add(deadline{at: o.Deadline.Start.Unix(), warn: o.Deadline.Start.AddDate(0, 0, -warning(o.Deadline)).Unix(), id: o.ID})
	}
}

// A deadline is shown so many days ahead, as in Org, and forgotten so many after.
const warnDays, staleDays = 14, 30

// warning is the days a deadline is shown ahead: its own, if it says.
func warning(t org.Timestamp) int {
	switch w := t.Warn; {
	case w.Mark == "":
		return warnDays
	case w.Unit == 'd':
		return w.N
	case w.Unit == 'w':
		return 7 * w.N
	case w.Unit == 'm':
		return 30 * w.N
	case w.Unit == 'y':
		return 365 * w.N
	}
	return 1
}

// unlink forgets what was noted of a file.
func (m *Mirror) unlink(old mirrored) {
	from := map[memory.ID]bool{}
	for _, id := range old.ids {
		from[id] = true
		m.dates.drop(id)
	}
	for _, t := range old.targets {
		if m.links[t] = slices.DeleteFunc(m.links[t], func(id memory.ID) bool { return from[id] }); len(m.links[t]) == 0 {
			delete(m.links, t)
		}
	}
}

// linking is the nodes that link to a node.
func (m *Mirror) linking(id memory.ID) []memory.ID {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := slices.Clone(m.links[id])
	slices.Sort(out)
	return out
}

// due is the open tasks whose deadline has been warned of by then, earliest first.
func (m *Mirror) due(now time.Time) []memory.ID {
	m.mu.Lock()
	defer m.mu.Unlock()
	const most = 32
	y, mon, day := now.Date()
	now = time.Date(y, mon, day, now.Hour(), now.Minute(), 0, 0, time.UTC) // as timestamps are carried
	last := now.AddDate(longestWarning, 0, 0).Unix()
	var out []memory.ID
	for _, d := range m.dates.after(now.AddDate(0, 0, -staleDays).Unix()) {
		if d.warn <= now.Unix() {
			if out = append(out, d.id); len(out) == most {
				break
			}
		} else if d.at > last {
			break
		}
	}
	return out
}

// longestWarning is how many years ahead a deadline can be warned of.
const longestWarning = 10

// changed is the nodes put since the mirror began, last first.
func (m *Mirror) changed() []memory.ID {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := slices.Clone(m.fresh)
	slices.Reverse(out)
	return out
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

// leastScore is the share of the best score below which a note is not what a
// person would call found.
const leastScore = 0.3

// Search returns the objects of the view that fit the text, best first. The text
// does not leave the machine: who searches may have read what must not.
func (m *Mirror) Search(v *memory.View, text string, limit int) []memory.Object {
	m.Sync(v)
	var out []memory.Object
	hits := m.index.SearchNear(text, m.question(text, false), limit, m.mode)
	for _, h := range hits {
		if o, ok := v.Get(memory.ID(h.ID)); ok && h.Score >= leastScore*hits[0].Score {
			out = append(out, o)
		}
	}
	return out
}
