package fovea_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"passepartout/internal/fovea"
	"passepartout/internal/memory"
	"passepartout/internal/memory/memorytest"
	"passepartout/internal/recall"
)

// scales are the sizes PASSEPARTOUT_SCALES names, "1k,10k" if nothing does.
func scales(b *testing.B) (names []string, sizes []int) {
	b.Helper()
	list := os.Getenv("PASSEPARTOUT_SCALES")
	if list == "" {
		list = "1k,10k"
	}
	for name := range strings.SplitSeq(list, ",") {
		n := map[string]int{"1k": 1_000, "10k": 10_000, "100k": 100_000, "1m": 1_000_000}[name]
		if n == 0 {
			b.Fatalf("PASSEPARTOUT_SCALES: %q is none of 1k, 10k, 100k, 1m", name)
		}
		names, sizes = append(names, name), append(sizes, n)
	}
	return names, sizes
}

// BenchmarkScale takes the baseline's memex through everything that grows with its
// size: reading it, indexing it, changing it, asking it. One memex of a size serves
// all, since a million headlines take longer to write than to read.
func BenchmarkScale(b *testing.B) {
	names, sizes := scales(b)
	for i, n := range sizes {
		b.Run(names[i], func(b *testing.B) { scale(b, n) })
	}
}

// A grown is one memex under measurement.
type grown struct {
	dir, state string
	n          int
	text       int64
	s          *memory.Store
	m          *fovea.Mirror
}

func scale(b *testing.B, n int) {
	g := &grown{dir: b.TempDir(), state: b.TempDir(), n: n}
	var err error
	if g.text, err = memorytest.WriteBaseline(g.dir, n, clock); err != nil {
		b.Fatal(err)
	}
	age(b, g.dir) // an index vouches only for files that have been left alone for a while
	b.Run("scan", g.scan)
	g.reopen(b)
	b.Run("start", g.start)
	g.close(b)
	heap, resident := footprint()
	g.reopen(b)
	g.footprint(b, heap, resident)
	defer g.close(b)

	b.Run("snapshot", func(b *testing.B) {
		for b.Loop() {
			if g.s.View() == nil {
				b.Fatal("no view")
			}
		}
	})
	b.Run("refresh", func(b *testing.B) {
		for b.Loop() {
			g.refresh(b)
		}
	})
	b.Run("agenda", g.agenda)
	b.Run("tag", g.tag)
	b.Run("index", g.index)
	if err := g.m.Learn(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Run("query", g.query)
	b.Run("context", func(b *testing.B) { g.context(b, "") })
	b.Run("context-focus", func(b *testing.B) { g.context(b, memorytest.ID(0)) })
	b.Run("edit", g.edit)
	b.Run("undo", g.undo)
	b.Run("external", g.external)
	b.Run("save", g.save)
	b.Run("reindex", g.reindex)
}

func (g *grown) options() memory.Options {
	return memory.Options{State: g.state, Now: func() time.Time { return clock }}
}

func (g *grown) reopen(b *testing.B) {
	b.Helper()
	s, err := memory.Open(context.Background(), g.dir, g.options())
	if err != nil || s.View().Len() != g.n {
		b.Fatal(s.View().Len(), err)
	}
	g.s = s
}

func (g *grown) close(b *testing.B) {
	b.Helper()
	if err := g.s.Close(); err != nil {
		b.Fatal(err)
	}
	g.s, g.m = nil, nil
}

func (g *grown) refresh(b *testing.B) {
	b.Helper()
	if err := g.s.Refresh(context.Background()); err != nil {
		b.Fatal(err)
	}
}

// scan reads every file for the first time.
func (g *grown) scan(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		s, err := memory.Open(context.Background(), g.dir, memory.Options{})
		if err != nil || s.View().Len() != g.n {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(g.n)*float64(b.N)/b.Elapsed().Seconds(), "headlines/s")
}

// start opens a memex whose index is there.
func (g *grown) start(b *testing.B) {
	sampled(b, func(int) { g.close(b) }, func(int) { g.reopen(b) })
}

// footprint says what the memex costs in memory once the garbage is given back.
func (g *grown) footprint(b *testing.B, heap, resident int64) {
	heapAfter, residentAfter := footprint()
	b.Run("memory", func(b *testing.B) {
		for b.Loop() {
			runtime.KeepAlive(g.s)
		}
		b.ReportMetric(float64(residentAfter)/1e6, "RSS-MB")
		b.ReportMetric(float64(heapAfter-heap-g.text)/float64(g.n), "heap-B/headline")
		b.ReportMetric(float64(residentAfter-resident-g.text)/float64(g.n), "rss-B/headline")
	})
}

func (g *grown) agenda(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if len(g.s.View().Agenda(memory.AgendaQuery{From: clock, To: clock.AddDate(0, 0, 6)})) == 0 {
			b.Fatal("an empty week")
		}
	}
}

// tag asks what the ancestor's context-query-store asked.
func (g *grown) tag(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		found, err := g.s.View().Match("project LEVEL=1")
		if err != nil || len(found) != g.n/memorytest.PerProject {
			b.Fatal(len(found), err)
		}
	}
}

func (g *grown) index(b *testing.B) {
	for b.Loop() {
		g.m = fovea.NewMirror(recall.Options{})
		g.m.Sync(g.s.View())
	}
	b.ReportMetric(float64(g.n)*float64(b.N)/b.Elapsed().Seconds(), "headlines/s")
	size := 0
	for _, n := range g.m.Index().Size() {
		size += n
	}
	b.ReportMetric(float64(size)/float64(g.n), "B/headline")
}

func (g *grown) query(b *testing.B) {
	view := g.s.View()
	timed(b, func(i int) {
		if len(g.m.Search(view, fmt.Sprintf("headline %d of project %d", i*37%g.n, i*37%g.n/100), 10)) == 0 {
			b.Fatal("nothing found")
		}
	})
}

func (g *grown) context(b *testing.B, focus string) {
	view := g.s.View()
	chars := 0
	timed(b, func(int) {
		c := g.m.Render(view, fovea.Focus{ID: memory.ID(focus), Query: "What is on my agenda today?", Now: clock, Cloud: true})
		chars = len(c.Text)
	})
	b.ReportMetric(float64(chars), "chars")
}

// edit is one edit from the call to the new view, written, synced and read back.
func (g *grown) edit(b *testing.B) {
	timed(b, func(i int) {
		o, _ := g.s.View().Get(memory.ID(memorytest.ID(i * 37 % g.n)))
		g.apply(b, o, memory.Change{Kind: memory.SetProperty, Key: "N", Value: fmt.Sprint(i)})
	})
}

// undo is the rollback of one operation, files included.
func (g *grown) undo(b *testing.B) {
	sampled(b, func(int) {
		o, _ := g.s.View().Get(memory.ID(memorytest.ID(7)))
		g.apply(b, o, memory.Change{Kind: memory.SetBody, Value: "x"})
	}, func(int) {
		if _, err := g.s.Undo(context.Background(), memory.Mark{}); err != nil {
			b.Fatal(err)
		}
	})
}

func (g *grown) apply(b *testing.B, o memory.Object, c memory.Change) {
	b.Helper()
	if _, err := g.s.Apply(context.Background(), memory.Tx{Edits: []memory.Edit{{Object: o.ID, Expect: o.Hash, Change: c}}}); err != nil {
		b.Fatal(err)
	}
}

// external is a file changed by somebody else, from the look at the files to the view.
func (g *grown) external(b *testing.B) {
	sampled(b, func(i int) { g.touch(b, i) }, func(int) { g.refresh(b) })
}

// save is the index once one small file has changed.
func (g *grown) save(b *testing.B) {
	sampled(b, func(i int) { g.touch(b, i); g.refresh(b) }, func(int) {
		if err := g.s.Save(); err != nil {
			b.Fatal(err)
		}
	})
	size := int64(0)
	err := filepath.WalkDir(g.state, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(size)/1e6, "MB")
}

// reindex follows one changed file.
func (g *grown) reindex(b *testing.B) {
	sampled(b, func(i int) { g.touch(b, i); g.refresh(b) }, func(int) { g.m.Sync(g.s.View()) })
}

func (g *grown) touched() string { return filepath.Join(g.dir, "x.org") }

func (g *grown) touch(b *testing.B, i int) {
	b.Helper()
	if err := os.WriteFile(g.touched(), fmt.Appendf(nil, "* Touched %d\n", i), 0o600); err != nil {
		b.Fatal(err)
	}
}

// timed runs f and reports the middle and the slow end beside the mean.
func timed(b *testing.B, f func(i int)) {
	b.ReportAllocs()
	sampled(b, nil, f)
}

// sampled is timed with something to do before each run that is not counted. The
// benchmark's own timer is left running: to stop and start it takes longer than most of
// what is measured here.
func sampled(b *testing.B, before, f func(i int)) {
	var took []time.Duration
	sum := time.Duration(0)
	for i := 0; b.Loop(); i++ {
		if before != nil {
			before(i)
		}
		start := time.Now()
		f(i)
		took = append(took, time.Since(start))
		sum += took[i]
	}
	slices.Sort(took)
	b.ReportMetric(float64(sum)/float64(len(took)), "ns/op")
	b.ReportMetric(float64(took[len(took)/2])/1e6, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100])/1e6, "p99-ms")
}

// age makes every file an hour old.
func age(b *testing.B, dir string) {
	b.Helper()
	old := time.Now().Add(-time.Hour)
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return os.Chtimes(p, old, old)
	})
	if err != nil {
		b.Fatal(err)
	}
}

// footprint is the live heap, and the resident memory where the system tells it.
func footprint() (heap, resident int64) {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if raw, err := os.ReadFile("/proc/self/statm"); err == nil {
		var size, pages int64
		if _, err := fmt.Sscan(string(raw), &size, &pages); err == nil {
			resident = pages * int64(os.Getpagesize())
		}
	}
	return int64(m.HeapAlloc), resident
}
