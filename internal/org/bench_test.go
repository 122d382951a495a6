package org_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

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
	for b.Loop() {
		for _, d := range docs {
			org.Parse(d)
		}
	}
	b.ReportMetric(allocs/float64(heads), "allocs/headline")
}

func BenchmarkEverything(b *testing.B) {
	docs := readAll(b, sharedOrgFiles(b))
	b.SetBytes(total(docs))
	b.ReportAllocs()
	for b.Loop() {
		for _, d := range docs {
			org.Parse(d).Contents()
		}
	}
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
	theirs, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
	if err != nil {
		b.Fatal(err)
	}
	start, n := time.Now(), 0
	for b.Loop() {
		for _, d := range docs {
			org.Parse(d)
		}
		n++
	}
	ours := time.Since(start).Seconds() / float64(n)
	b.ReportMetric(theirs, "emacs-s")
	b.ReportMetric(theirs/ours, "times-emacs")
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
