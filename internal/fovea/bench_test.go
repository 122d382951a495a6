package fovea_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"passepartout/internal/fovea"
	"passepartout/internal/memory"
	"passepartout/internal/recall"
)

// benchSizes are 1k, 10k and 100k headings, a million with PASSEPARTOUT_SCALE=1M, or
// as many as PASSEPARTOUT_BENCH_NOTES says.
func benchSizes() []int {
	if n, err := strconv.Atoi(os.Getenv("PASSEPARTOUT_BENCH_NOTES")); err == nil {
		return []int{n}
	}
	sizes := []int{1000, 10_000, 100_000}
	if os.Getenv("PASSEPARTOUT_SCALE") == "1M" {
		sizes = append(sizes, 1_000_000)
	}
	return sizes
}

// BenchmarkSync is the indexing of a whole memex that is open already.
func BenchmarkSync(b *testing.B) {
	for _, n := range benchSizes() {
		s, err := memory.Open(b.Context(), writeMemex(b, n), memory.Options{State: b.TempDir()})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			cpu := cpuTime()
			for b.Loop() {
				m := fovea.NewMirror(recall.Options{})
				m.Sync(s.View())
			}
			b.ReportMetric(float64(s.View().Len())*float64(b.N)/b.Elapsed().Seconds(), "headings/s")
			b.ReportMetric(float64(s.View().Len())*float64(b.N)/(cpuTime()-cpu).Seconds(), "headings/cpu-s")
		})
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRender is a context for a random focus and question.
func BenchmarkRender(b *testing.B) {
	for _, n := range benchSizes() {
		s, m := open(b, writeMemex(b, n))
		v := s.View()
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var took []time.Duration
			cpu := cpuTime()
			for i := 0; b.Loop(); i++ {
				start := time.Now()
				m.Render(v, fovea.Focus{ID: memory.ID(fmt.Sprintf("n%d-%d", i%40, i%19)), Query: asked[i%len(asked)].query, Now: clock, Cloud: true})
				took = append(took, time.Since(start))
			}
			b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N)/1e6, "cpu-ms/op")
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100])/1e6, "p99-ms")
		})
	}
}
