package recall_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"passepartout/internal/recall"
)

// benchSizes are 1k, 10k and 100k notes, a million with PASSEPARTOUT_SCALE=1M, or as
// many as PASSEPARTOUT_BENCH_NOTES says.
func benchSizes(b *testing.B) []int {
	b.Helper()
	if n, err := strconv.Atoi(os.Getenv("PASSEPARTOUT_BENCH_NOTES")); err == nil {
		return []int{n}
	}
	sizes := []int{1000, 10_000, 100_000}
	if os.Getenv("PASSEPARTOUT_SCALE") == "1M" {
		sizes = append(sizes, 1_000_000)
	}
	return sizes
}

// BenchmarkScan looks at the signs of a million vectors, and reads as much memory
// for comparison: times-memory is how often longer it takes.
func BenchmarkScan(b *testing.B) {
	for _, dims := range []int{128, 768} {
		b.Run(fmt.Sprint(dims), func(b *testing.B) {
			s := recall.NewScan(1_000_000, dims)
			s.Run() // touches every page
			var scan, read time.Duration
			for b.Loop() {
				start := time.Now()
				s.Run()
				mid := time.Now()
				s.Read()
				scan, read = scan+mid.Sub(start), read+time.Since(mid)
			}
			b.ReportMetric(float64(s.Bytes())*float64(b.N)/scan.Seconds()/1e9, "scan-GB/s")
			b.ReportMetric(float64(s.Bytes())*float64(b.N)/read.Seconds()/1e9, "memory-GB/s")
			b.ReportMetric(float64(scan)/float64(read), "times-memory")
		})
	}
}

// BenchmarkCosine is the likeness of two vectors.
func BenchmarkCosine(b *testing.B) {
	for _, dims := range []int{384, 768, 1536} {
		b.Run(fmt.Sprint(dims), func(b *testing.B) {
			x, y := make([]int8, dims), make([]int8, dims)
			for i := range x {
				x[i], y[i] = int8(i%127), int8(i%113)
			}
			sum := int32(0)
			for b.Loop() {
				sum += recall.Dot(x, y)
			}
			if sum == 1 {
				b.Fatal("not reached")
			}
		})
	}
}

// grown caches the index of a size, because a benchmark function runs many times.
var grown = map[int]*recall.Index{}

func grow(b *testing.B, n int) *recall.Index {
	b.Helper()
	if grown[n] == nil {
		x := recall.New(recall.Options{})
		for _, d := range invented(n, 4) {
			x.Put(d)
		}
		if err := x.Learn(context.Background()); err != nil {
			b.Fatal(err)
		}
		grown[n] = x
	}
	return grown[n]
}

func BenchmarkBuild(b *testing.B) {
	for _, n := range benchSizes(b) {
		docs := invented(n, 4)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			cpu := cpuTime()
			for b.Loop() {
				x := recall.New(recall.Options{})
				for _, d := range docs {
					x.Put(d)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "notes/s")
			b.ReportMetric(float64(n)*float64(b.N)/(cpuTime()-cpu).Seconds(), "notes/cpu-s")
		})
	}
}

func BenchmarkSearch(b *testing.B) {
	for _, n := range benchSizes(b) {
		for _, mode := range []recall.Mode{recall.Lexical, recall.Vector, recall.Fused} {
			b.Run(fmt.Sprintf("%d/%v", n, mode), func(b *testing.B) {
				x := grow(b, n)
				var took []time.Duration
				cpu := cpuTime()
				for i := 0; b.Loop(); i++ {
					start := time.Now()
					x.Search(fmt.Sprintf("topic%dword%d topic%dword%d common%d common%d", i%20, i%40, i%20, i%37, i%400, i%399), 10, mode)
					took = append(took, time.Since(start))
				}
				b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N)/1e6, "cpu-ms/op")
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)*99/100])/1e6, "p99-ms")
			})
		}
	}
}

func BenchmarkUpdate(b *testing.B) {
	for _, n := range benchSizes(b) {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			x := grow(b, n)
			docs := invented(min(n, 10_000), 5)
			for i := 0; b.Loop(); i++ {
				x.Put(docs[i*7919%len(docs)])
			}
			bytes := 0
			for _, size := range x.Size() {
				bytes += size
			}
			b.ReportMetric(float64(bytes)/float64(n), "B/note")
		})
	}
}
