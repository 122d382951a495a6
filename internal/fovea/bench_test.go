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
)

// BenchmarkRender is a context for a random focus and question, in a memex of 1k
// and 10k headings or of as many as PASSEPARTOUT_BENCH_NOTES says.
func BenchmarkRender(b *testing.B) {
	sizes := []int{1000, 10_000}
	if n, err := strconv.Atoi(os.Getenv("PASSEPARTOUT_BENCH_NOTES")); err == nil {
		sizes = []int{n}
	}
	for _, n := range sizes {
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
