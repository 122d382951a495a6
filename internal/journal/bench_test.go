package journal_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"passepartout/internal/journal"
	"passepartout/internal/sexp"
)

var ruling = sexp.P(
	sexp.Keyword("RULING"), sexp.Keyword("ALLOW"), sexp.Keyword("ACTION"), "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
	sexp.Keyword("GATE"), "permissions", sexp.Keyword("REASON"), "the tool read-file is allowed by permissions.org:12",
)

func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			j, _ := open(b, filepath.Join(b.TempDir(), "journal"), journal.Options{Now: time.Now})
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for w := range writers {
				wg.Go(func() {
					for range (b.N + w) / writers {
						if _, err := j.Append(ruling); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			closeJournal(b, j)
		})
	}
	b.Run("lazy", func(b *testing.B) {
		j, _ := open(b, filepath.Join(b.TempDir(), "journal"), journal.Options{Now: time.Now})
		b.ReportAllocs()
		for b.Loop() {
			if _, err := j.AppendLazy(ruling); err != nil {
				b.Fatal(err)
			}
		}
		closeJournal(b, j)
	})
}

func BenchmarkVerify(b *testing.B) {
	const entries = 10_000
	dir := filepath.Join(b.TempDir(), "journal")
	j, _ := open(b, dir, journal.Options{})
	for range entries {
		if _, err := j.AppendLazy(ruling); err != nil {
			b.Fatal(err)
		}
	}
	closeJournal(b, j)
	for b.Loop() {
		if s, err := journal.Verify(dir); err != nil || s.Entries != entries {
			b.Fatal(s, err)
		}
	}
	b.ReportMetric(float64(entries*b.N)/b.Elapsed().Seconds(), "entries/s")
}
