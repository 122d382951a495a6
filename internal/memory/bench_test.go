package memory_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"passepartout/internal/memory"
	"passepartout/internal/memory/memorytest"
)

// generate writes the baseline memex of n headlines, with plans or without.
func generate(t testing.TB, dir string, n int, plans bool) (bytes int64) {
	t.Helper()
	var around time.Time
	if plans {
		around = noon
	}
	bytes, err := memorytest.WriteBaseline(dir, n, around)
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// sizes are 1k and 10k headlines; PASSEPARTOUT_SCALE=100k or 1m adds larger ones.
func sizes() []int {
	out := []int{1_000, 10_000}
	switch os.Getenv("PASSEPARTOUT_SCALE") {
	case "100k":
		out = append(out, 100_000)
	case "1m":
		out = append(out, 100_000, 1_000_000)
	}
	return out
}

func label(n int) string {
	if n >= 1_000_000 {
		return fmt.Sprintf("%dm", n/1_000_000)
	}
	return fmt.Sprintf("%dk", n/1000)
}

// scaled runs fn as a sub-benchmark on an open store of every size.
func scaled(b *testing.B, fn func(b *testing.B, s *memory.Store, n int)) {
	for _, n := range sizes() {
		b.Run(label(n), func(b *testing.B) {
			f := newFixture(b, nil)
			generate(b, f.dir, n, true)
			s := f.open()
			runtime.GC()
			b.ResetTimer()
			start := cpuTime()
			fn(b, s, n)
			b.StopTimer()
			b.ReportMetric(float64((cpuTime()-start).Microseconds())/1000/float64(b.N), "cpu-ms/op")
		})
	}
}

func BenchmarkColdScan(b *testing.B) {
	for _, n := range sizes() {
		b.Run(label(n), func(b *testing.B) {
			f := newFixture(b, nil)
			generate(b, f.dir, n, true)
			start := cpuTime()
			for b.Loop() {
				s, err := memory.Open(context.Background(), f.dir, memory.Options{})
				if err != nil || s.View().Len() != n/100*100 {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((cpuTime()-start).Milliseconds())/float64(b.N), "cpu-ms/op")
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "headlines/s")
		})
	}
}

func BenchmarkWarmStart(b *testing.B) {
	for _, n := range sizes() {
		b.Run(label(n), func(b *testing.B) {
			f := newFixture(b, nil)
			generate(b, f.dir, n, true)
			settle(b, f)
			start := cpuTime()
			for b.Loop() {
				s, err := memory.Open(context.Background(), f.dir, f.options())
				if err != nil || s.View().Len() != n {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			b.ReportMetric(float64((cpuTime()-start).Milliseconds())/float64(b.N), "cpu-ms/op")
		})
	}
}

// settle leaves an index behind that vouches for every file.
func settle(t testing.TB, f *fixture) {
	t.Helper()
	old := time.Now().Add(-time.Hour)
	err := filepath.WalkDir(f.dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return os.Chtimes(p, old, old)
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := memory.Open(context.Background(), f.dir, f.options())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkSnapshot(b *testing.B) {
	scaled(b, func(b *testing.B, s *memory.Store, _ int) {
		for b.Loop() {
			if s.View() == nil {
				b.Fatal("no view")
			}
		}
	})
}

// BenchmarkEdit is one edit from the call to the new view, written, synced and read back.
func BenchmarkEdit(b *testing.B) {
	scaled(b, func(b *testing.B, s *memory.Store, n int) {
		for i := 0; b.Loop(); i++ {
			o, _ := s.View().Get(memory.ID(fmt.Sprintf("hl-%07d", i*37%n)))
			_, err := s.Apply(context.Background(), memory.Tx{Edits: []memory.Edit{{
				Object: o.ID, Expect: o.Hash, Change: memory.Change{Kind: memory.SetProperty, Key: "N", Value: fmt.Sprint(i)},
			}}})
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkUndo is the rollback of one operation, files included.
func BenchmarkUndo(b *testing.B) {
	scaled(b, func(b *testing.B, s *memory.Store, _ int) {
		for b.Loop() {
			b.StopTimer()
			o, _ := s.View().Get("hl-0000007")
			_, err := s.Apply(context.Background(), memory.Tx{Edits: []memory.Edit{{Object: o.ID, Expect: o.Hash, Change: memory.Change{Kind: memory.SetBody, Value: "x"}}}})
			if err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			if _, err := s.Undo(context.Background(), memory.Mark{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkExternalEdit is a file changed by somebody else, from Refresh to the new view.
func BenchmarkExternalEdit(b *testing.B) {
	scaled(b, func(b *testing.B, s *memory.Store, _ int) {
		name := filepath.Join(s.Root(), "d000", "p00000.org")
		text, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		for i := 0; b.Loop(); i++ {
			b.StopTimer()
			if err := os.WriteFile(name, fmt.Appendf(text, "* New %d\n", i), 0o600); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			refresh(b, s)
		}
	})
}

func BenchmarkSaveIndex(b *testing.B) {
	scaled(b, func(b *testing.B, s *memory.Store, n int) {
		for i := 0; b.Loop(); i++ {
			b.StopTimer()
			if err := s.ShowBuffer("bench", "d000/p00000.org", fmt.Appendf(nil, "* %d\n", i)); err != nil {
				b.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(s.Root(), "x.org"), fmt.Appendf(nil, "* %d\n", i), 0o600); err != nil {
				b.Fatal(err)
			}
			refresh(b, s)
			b.StartTimer()
			if err := s.Save(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkAgendaWeek(b *testing.B) {
	scaled(b, func(b *testing.B, s *memory.Store, _ int) {
		items := 0
		for b.Loop() {
			items = len(s.View().Agenda(memory.AgendaQuery{From: noon, To: noon.AddDate(0, 0, 6)}))
		}
		b.ReportMetric(float64(items), "items")
	})
}

// BenchmarkTagQuery asks what the ancestor's context-query-store asked: headlines
// that carry the tag themselves.
func BenchmarkTagQuery(b *testing.B) {
	scaled(b, func(b *testing.B, s *memory.Store, n int) {
		for b.Loop() {
			os, err := s.View().Match("project LEVEL=1")
			if err != nil || len(os) != n/100 {
				b.Fatal(err, len(os))
			}
		}
	})
}

func BenchmarkTagQueryInherited(b *testing.B) {
	scaled(b, func(b *testing.B, s *memory.Store, n int) {
		q, err := memory.ParseQuery("+project+work-@home", noon)
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if got := s.View().Count(q); got != n/100*99 {
				b.Fatal(got)
			}
		}
	})
}

func BenchmarkSearch(b *testing.B) {
	scaled(b, func(b *testing.B, s *memory.Store, _ int) {
		for b.Loop() {
			if len(s.View().Search("headline 77", 10)) != 10 {
				b.Fatal("nothing found")
			}
		}
	})
}

// BenchmarkFootprint reports what a headline costs beyond its text: on the heap,
// and in the process once the garbage of the scan has been given back.
func BenchmarkFootprint(b *testing.B) {
	for _, n := range sizes() {
		b.Run(label(n), func(b *testing.B) {
			f := newFixture(b, nil)
			text := generate(b, f.dir, n, true)
			heap, resident := footprint()
			s, err := memory.Open(context.Background(), f.dir, memory.Options{})
			if err != nil {
				b.Fatal(err)
			}
			heapAfter, residentAfter := footprint()
			for b.Loop() {
				runtime.KeepAlive(s)
			}
			b.ReportMetric(float64(heapAfter-heap-text)/float64(n), "heap-B/headline")
			b.ReportMetric(float64(residentAfter-resident-text)/float64(n), "rss-B/headline")
		})
	}
}

// footprint is the live heap, and the resident memory where the system tells it.
func footprint() (heap, resident int64) {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if b, err := os.ReadFile("/proc/self/statm"); err == nil {
		var size, pages int64
		if _, err := fmt.Sscan(string(b), &size, &pages); err == nil {
			resident = pages * int64(os.Getpagesize())
		}
	}
	return int64(m.HeapAlloc), resident
}
