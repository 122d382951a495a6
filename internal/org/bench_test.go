//go:build unix

package org_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"passepartout/internal/org"
)

func total(docs [][]byte) (n int64) {
	for _, d := range docs {
		n += int64(len(d))
	}
	return n
}

func BenchmarkOutline(b *testing.B) {
	docs := readAll(b, sharedOrgFiles(b))
	b.SetBytes(total(docs))
	heads := 0
	allocs := testing.AllocsPerRun(1, func() {
		for _, d := range docs {
			heads += org.Parse(d).Len()
		}
	})
	heads /= 2 // AllocsPerRun warms up with one more run
	start := cpuSeconds(b)
	for b.Loop() {
		for _, d := range docs {
			org.Parse(d)
		}
	}
	reportCPU(b, start, total(docs))
	b.ReportMetric(allocs/float64(heads), "allocs/headline")
}

func BenchmarkEverything(b *testing.B) {
	docs := readAll(b, sharedOrgFiles(b))
	b.SetBytes(total(docs))
	b.ReportAllocs()
	start := cpuSeconds(b)
	for b.Loop() {
		for _, d := range docs {
			org.Parse(d).Contents()
		}
	}
	reportCPU(b, start, total(docs))
}

// BenchmarkAgainstEmacs reports how many times faster the outline is than
// org-element reading headlines only, on the same files in the same run.
func BenchmarkAgainstEmacs(b *testing.B) {
	emacs, err := exec.LookPath("emacs")
	if err != nil {
		b.Skip("emacs is not installed")
	}
	files := sharedOrgFiles(b)
	docs := readAll(b, files)
	list := filepath.Join(b.TempDir(), "list")
	if err := os.WriteFile(list, []byte(strings.Join(files, "\n")+"\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	out, err := exec.Command(emacs, "-Q", "--batch", "-l", filepath.Join("testdata", "headlines.el"), list).Output()
	if err != nil {
		b.Fatal(err)
	}
	var parse, mode float64
	if _, err := fmt.Sscan(string(out), &parse, &mode); err != nil {
		b.Fatal(err)
	}
	start := cpuSeconds(b)
	for b.Loop() {
		for _, d := range docs {
			org.Parse(d)
		}
	}
	ours := (cpuSeconds(b) - start) / float64(b.N)
	b.ReportMetric(parse/ours, "times-emacs-parse")
	b.ReportMetric((parse+mode)/ours, "times-emacs-mode+parse")
}

// cpuSeconds is the processor time this process has used. Other work on the
// machine does not count into it, as it does into the time of the clock.
func cpuSeconds(b *testing.B) float64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// reportCPU reports megabytes per processor second, and milliseconds per run.
func reportCPU(b *testing.B, start float64, bytes int64) {
	b.Helper()
	used := (cpuSeconds(b) - start) / float64(b.N)
	b.ReportMetric(used*1000, "cpu-ms/op")
	if bytes > 0 {
		b.ReportMetric(float64(bytes)/1e6/used, "MB/cpu-s")
	}
}

// tenMegabytes is a file of ordinary entries.
func tenMegabytes() []byte {
	entry := "* TODO Water the plants :home:garden:\nSCHEDULED: <2026-05-01 Fri +1w>\n:PROPERTIES:\n:ID:       0000-1111\n:END:\n" +
		strings.Repeat("Some words about it, with a [[https://example.org][link]] in them.\n", 2)
	return []byte(strings.Repeat(entry, 10<<20/len(entry)+1))
}

// BenchmarkEdit is one edit in the middle of a 10 MB file, with the reading of
// what changed.
func BenchmarkEdit(b *testing.B) {
	for _, name := range []string{"title", "repeat"} {
		b.Run(name, func(b *testing.B) {
			f := org.Parse(tenMegabytes())
			if err := f.Editable(); err != nil {
				b.Fatal(err)
			}
			i := f.Len() / 2
			b.ReportAllocs()
			start := cpuSeconds(b)
			for b.Loop() {
				var ps []org.Patch
				var err error
				if name == "title" {
					ps, err = f.Headline(i).SetTitle("Water them all")
				} else {
					ps, err = f.Headline(i).SetTodo("DONE", org.Change{At: moment})
				}
				if err != nil {
					b.Fatal(err)
				}
				g, err := f.Apply(ps)
				if err != nil || g.Len() != f.Len() {
					b.Fatal(err)
				}
			}
			reportCPU(b, start, 0)
		})
	}
}

func BenchmarkMillionHeadlines(b *testing.B) {
	src := []byte(strings.Repeat("* a\n", 1_000_000))
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		org.Parse(src)
	}
}
