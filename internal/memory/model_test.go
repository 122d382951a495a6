package memory_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"passepartout/internal/memory"
	"passepartout/internal/org"
)

// lazyDisk is the file system without waiting for it: a model test tries logic, the
// crash test tries durability.
type lazyDisk struct{ memory.Disk }

func (lazyDisk) SyncDir(string) error { return nil }

func (d lazyDisk) OpenFile(name string, flag int, perm os.FileMode) (memory.DiskFile, error) {
	f, err := d.Disk.OpenFile(name, flag, perm)
	return lazyFile{f}, err
}

type lazyFile struct{ memory.DiskFile }

func (lazyFile) Sync() error { return nil }

// model is the naive memex: a map of texts. Its edits read the whole text afresh.
type model struct {
	t     *testing.T
	f     *fixture
	r     *rand.Rand
	s     *memory.Store
	files map[string]string
	// seen is a view from some steps ago, with the files as they were then.
	seen      *memory.View
	seenFiles map[string]string
	// done are the agent's operations that stand, undone those taken back, with
	// the files before and after.
	done, undone []modelOp
	counter      int
}

type modelOp struct{ before, after map[string]string }

func newModel(t *testing.T, seed uint64) *model {
	m := &model{t: t, f: newFixture(t, nil), r: rand.New(rand.NewPCG(seed, 1)), files: map[string]string{}}
	for _, p := range []string{"a.org", "b.org", "sub/c.org"} {
		m.put(p, m.text(4))
	}
	m.open()
	return m
}

func (m *model) open() {
	s, err := memory.Open(context.Background(), m.f.dir, m.f.options().OnDisk(lazyDisk{memory.RealDisk()}))
	if err != nil {
		m.t.Fatal(err)
	}
	m.s = s
	m.seen, m.seenFiles = nil, nil
}

// put writes a file behind the store's back.
func (m *model) put(p, text string) {
	m.files[p] = text
	m.f.write(p, text)
}

func (m *model) word() string {
	m.counter++
	return fmt.Sprintf("w%d", m.counter)
}

// text makes an Org text of n headlines.
func (m *model) text(n int) string {
	var sb strings.Builder
	if m.r.IntN(3) == 0 {
		fmt.Fprintf(&sb, "#+FILETAGS: :%s:\n", m.word())
	}
	level := 1
	for range n {
		sb.WriteString(m.headline(level))
		level = 1 + m.r.IntN(level+1)
	}
	return sb.String()
}

func (m *model) headline(level int) string {
	todo := []string{"", "TODO ", "DONE "}[m.r.IntN(3)]
	tags := []string{"", " :x:", " :x:y:"}[m.r.IntN(3)]
	title := "T" + fmt.Sprint(m.r.IntN(6)) // equal titles happen
	id := ""
	if m.r.IntN(3) == 0 {
		id = fmt.Sprintf(":PROPERTIES:\n:ID: id%d\n:END:\n", m.r.IntN(20)) // so do equal ids
	}
	return strings.Repeat("*", level) + " " + todo + title + tags + "\n" + id + "body " + m.word() + "\n"
}

func (m *model) path() string {
	return slices.Sorted(maps.Keys(m.files))[m.r.IntN(len(m.files))]
}

// step does one random thing and says what.
func (m *model) step() string {
	if len(m.files) == 0 {
		m.put("a.org", m.text(3))
		m.refresh()
		return "revive"
	}
	switch k := m.r.IntN(100); {
	case k < 40:
		return m.edit(m.s.View(), m.files)
	case k < 50:
		if m.seen == nil {
			m.seen, m.seenFiles = m.s.View(), maps.Clone(m.files)
			return "pin"
		}
		out := m.edit(m.seen, m.seenFiles)
		m.seen = nil
		return "late " + out
	case k < 70:
		return m.external()
	case k < 76:
		m.refresh()
		return "refresh"
	case k < 84:
		return m.undo()
	case k < 89:
		return m.redo()
	case k < 92:
		return m.buffer()
	case k < 96:
		if err := m.s.Close(); err != nil {
			m.t.Fatal(err)
		}
		m.open()
		return "restart"
	case k < 98:
		m.s.Kill()
		m.open()
		return "kill"
	}
	return m.breakIndex()
}

func (m *model) refresh() { refresh(m.t, m.s) }

// external is somebody else's change; half of the time nobody tells the store.
func (m *model) external() string {
	p := m.path()
	what := ""
	switch m.r.IntN(6) {
	case 0:
		m.put(fmt.Sprintf("n%d.org", m.r.IntN(5)), m.text(3))
		what = "write"
	case 1:
		delete(m.files, p)
		if err := os.Remove(filepath.Join(m.f.dir, p)); err != nil {
			m.t.Fatal(err)
		}
		what = "remove"
	case 2:
		q := fmt.Sprintf("moved%d.org", m.r.IntN(5))
		m.files[q] = m.files[p]
		if q != p {
			delete(m.files, p)
		}
		if err := os.Rename(filepath.Join(m.f.dir, p), filepath.Join(m.f.dir, q)); err != nil {
			m.t.Fatal(err)
		}
		what = "rename"
	default:
		f := org.Parse([]byte(m.files[p]))
		if f.Len() == 0 {
			m.put(p, m.files[p]+m.headline(1))
			break
		}
		h := f.Headline(m.r.IntN(f.Len()))
		s := h.SectionSpan()
		text := []string{
			"", m.headline(h.Stars()), f.Text(s) + "more " + m.word() + "\n",
			m.headline(h.Stars()) + f.Text(s), strings.Replace(f.Text(s), "body", "BODY", 1),
		}[m.r.IntN(5)]
		m.put(p, m.files[p][:s.Start]+text+m.files[p][s.End:])
		what = "rewrite"
	}
	if m.r.IntN(2) == 0 {
		m.refresh()
		return "external " + what + " seen"
	}
	return "external " + what
}

// edit changes a random headline as the view shows it; known is what the files
// were then.
func (m *model) edit(v *memory.View, known map[string]string) string {
	all := slices.Collect(v.All())
	if len(all) == 0 {
		return "nothing to edit"
	}
	o := all[m.r.IntN(len(all))]
	c := m.change()
	before := maps.Clone(m.files)
	r, err := m.s.Apply(context.Background(), memory.Tx{Actor: "agent", Edits: []memory.Edit{{Object: o.ID, Expect: o.Hash, Change: c}}})
	var conflict *memory.ConflictError
	switch {
	case errors.As(err, &conflict), errors.Is(err, memory.ErrNotFound):
		if m.files[o.File] == known[o.File] && v.Rev() == m.s.View().Rev() {
			m.t.Fatalf("%s of %s %q: nothing had changed, yet %v", c.Kind, o.File, o.Title, err)
		}
		return string(c.Kind) + " conflict"
	case errors.Is(err, memory.ErrUnsaved):
		return string(c.Kind) + " unsaved"
	case err != nil:
		m.t.Fatalf("%s: %v", c.Kind, err)
	}
	if len(r.Files) == 0 {
		return string(c.Kind) + " without effect"
	}
	m.expectEdit(o, c, r)
	m.done = append(m.done, modelOp{before, maps.Clone(m.files)})
	m.undone = nil
	return string(c.Kind)
}

func (m *model) change() memory.Change {
	switch m.r.IntN(6) {
	case 0:
		return memory.Change{Kind: memory.SetTodo, Value: []string{"TODO", "DONE", ""}[m.r.IntN(3)]}
	case 1:
		return memory.Change{Kind: memory.SetBody, Value: "body " + m.word() + "\n"}
	case 2:
		return memory.Change{Kind: memory.SetProperty, Key: "P", Value: m.word()}
	case 3:
		return memory.Change{Kind: memory.Delete}
	case 4:
		return memory.Change{Kind: memory.Insert, Entry: org.Entry{Title: "New " + m.word()}}
	}
	return memory.Change{Kind: memory.SetTags, Tags: []string{m.word()}}
}

// expectEdit works out naively what the edit must have done: find the one headline
// whose change gives the text now on disk, and make sure it is the right one.
func (m *model) expectEdit(o memory.Object, c memory.Change, r memory.Result) {
	m.t.Helper()
	if len(r.Files) != 1 {
		m.t.Fatalf("%s changed %d files", c.Kind, len(r.Files))
	}
	p := r.Files[0].Path
	got := m.f.read(p)
	for h := range org.Parse([]byte(m.files[p])).Headlines() {
		if h.Title() != o.Title || c.Kind != memory.Insert && h.File().Text(h.SectionSpan()) != o.Text() {
			continue
		}
		var ps []org.Patch
		var err error
		switch c.Kind {
		case memory.SetTodo:
			ps, err = h.SetTodo(c.Value, org.Change{At: noon, LogDone: true})
		case memory.SetBody:
			ps, err = h.SetBody(c.Value)
		case memory.SetProperty:
			ps, err = h.SetProperty(c.Key, c.Value)
		case memory.Delete:
			ps, err = h.Delete()
		case memory.SetTags:
			ps, err = h.SetTags(c.Tags)
		case memory.Insert:
			e := c.Entry
			e.Properties = []org.Property{{Key: "ID", Value: string(r.IDs[0])}}
			ps, err = h.AppendChild(e.Format(1))
		}
		if err != nil {
			m.t.Fatal(err)
		}
		f, err := h.File().Apply(ps)
		if err != nil {
			m.t.Fatal(err)
		}
		if string(f.Bytes()) == got {
			m.files[p] = got
			return
		}
	}
	m.t.Fatalf("%s of %q in %s: no headline explains\n%s\nfrom\n%s", c.Kind, o.Title, p, got, m.files[p])
}

// undo is exact if nobody touched the files since, and otherwise either refused or
// only the model's business as far as untouched files go.
func (m *model) undo() string {
	return m.goBack("undo", &m.done, &m.undone, func(op modelOp) (now, then map[string]string) { return op.after, op.before },
		func() error { _, err := m.s.Undo(context.Background(), memory.Mark{}); return err })
}

func (m *model) redo() string {
	return m.goBack("redo", &m.undone, &m.done, func(op modelOp) (now, then map[string]string) { return op.before, op.after },
		func() error { _, err := m.s.Redo(context.Background()); return err })
}

func (m *model) goBack(name string, from, to *[]modelOp, sides func(modelOp) (now, then map[string]string), do func() error) string {
	m.t.Helper()
	err := do()
	if len(*from) == 0 {
		if !errors.Is(err, memory.ErrNothing) {
			m.t.Fatalf("%s with nothing to %s: %v", name, name, err)
		}
		return "nothing to " + name
	}
	op := (*from)[len(*from)-1]
	now, then := sides(op)
	touched, exact := "", true
	for p := range merged(now, then) {
		if now[p] != then[p] {
			touched = p
			text, exists := m.files[p]
			_, existed := now[p]
			exact = exact && text == now[p] && exists == existed
		}
	}
	var diverged *memory.DivergedError
	switch {
	case errors.Is(err, memory.ErrUnsaved):
		return name + " unsaved"
	case errors.As(err, &diverged):
		if exact {
			m.t.Fatalf("%s: nothing had changed, yet %v\n%s", name, err, diverged.Diff)
		}
		return name + " diverged"
	case err != nil:
		m.t.Fatalf("%s: %v", name, err)
	}
	*from = (*from)[:len(*from)-1]
	*to = append(*to, op)
	if exact {
		if text, ok := then[touched]; ok {
			m.files[touched] = text
		} else {
			delete(m.files, touched)
		}
		return name
	}
	m.files[touched] = m.f.read(touched)
	return name + " merged"
}

func merged(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// buffer shows a client's text and takes it away again: nothing may reach the disk.
func (m *model) buffer() string {
	p := m.path()
	text := m.text(2)
	if err := m.s.ShowBuffer("emacs", p, []byte(text)); err != nil {
		m.t.Fatal(err)
	}
	if o, ok := m.s.View().File(p); !ok || o.Subtree() != text {
		m.t.Fatalf("buffer of %s is not shown", p)
	}
	if out := m.edit(m.s.View(), m.files); m.f.read(p) != m.files[p] {
		m.t.Fatalf("a buffer reached the disk through %s", out)
	}
	m.s.DropBuffer("emacs", "")
	return "buffer"
}

func (m *model) breakIndex() string {
	name := m.f.stateFile("index")
	if m.r.IntN(2) == 0 {
		if err := os.RemoveAll(name); err != nil {
			m.t.Fatal(err)
		}
		return "index removed"
	}
	if err := os.WriteFile(name, []byte("rubbish "+m.word()), 0o600); err != nil {
		m.t.Fatal(err)
	}
	return "index damaged"
}

// check compares disk, view and model.
func (m *model) check(everything bool) {
	m.t.Helper()
	for p, text := range m.files {
		if got := m.f.read(p); got != text {
			m.t.Fatalf("%s on disk:\n%q\nwant\n%q", p, got, text)
		}
	}
	if !everything {
		return
	}
	m.refresh()
	v := m.s.View()
	if got, want := slices.Collect(v.Files()), slices.Sorted(maps.Keys(m.files)); !slices.Equal(got, want) {
		m.t.Fatalf("files %q, want %q", got, want)
	}
	objects := slices.Collect(v.All())
	i := 0
	for _, p := range slices.Sorted(maps.Keys(m.files)) {
		for h := range org.Parse([]byte(m.files[p])).Headlines() {
			if i == len(objects) {
				m.t.Fatalf("headline %q of %s is missing", h.Title(), p)
			}
			o := objects[i]
			i++
			if o.File != p || o.Title != h.Title() || o.Todo != h.Todo() || !slices.Equal(o.AllTags, h.AllTags()) ||
				o.Text() != h.File().Text(h.SectionSpan()) {
				m.t.Fatalf("object %+v\nwant %q of %s", o, h.File().Text(h.SectionSpan()), p)
			}
		}
	}
	if i != len(objects) || v.Len() != len(objects) {
		m.t.Fatalf("%d objects, %d counted, want %d", len(objects), v.Len(), i)
	}
	if p := m.s.Verify(); len(p) > 0 {
		m.t.Fatal(p)
	}
}

func TestTheStoreAgreesWithANaiveModel(t *testing.T) {
	steps, rounds := 400, 3
	if n := soak(); n > 0 {
		steps, rounds = 2000, (n+1999)/2000
	}
	always := os.Getenv("PASSEPARTOUT_VERIFY") == "all"
	total := map[string]int{}
	for round := range rounds {
		if t.Failed() {
			t.Fatalf("after %d steps", round*steps)
		}
		m := newModel(t, uint64(round))
		for i := range steps {
			what := m.step()
			total[what]++
			m.check(always || i%5 == 0)
		}
		if err := m.s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(total)) {
		t.Logf("%6d %s", total[k], k)
	}
}
