package lisp_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"passepartout/internal/lisp"
)

// FuzzEvalNeverPanics evaluates anything: whatever comes in, what comes out is
// a value or an error that is not an internal one.
func FuzzEvalNeverPanics(f *testing.F) {
	files, _ := filepath.Glob(filepath.Join("testdata", "forms", "*.lisp"))
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for i, form := range splitForms(string(src)) {
			if i%7 == 0 {
				f.Add(form)
			}
		}
	}
	img, err := lisp.New(nil)
	if err != nil {
		f.Fatal(err)
	}
	budget := lisp.Budget{Steps: 100_000, Cells: 50_000, Depth: 500, Output: 1 << 12}
	f.Fuzz(func(t *testing.T, src string) {
		th := img.Thread(budget)
		vals, err := th.EvalString("fuzz", src)
		if err != nil && strings.Contains(err.Error(), "internal error") {
			t.Fatalf("%q: %v", src, err)
		}
		for _, v := range vals {
			if _, err := th.Print(v); err != nil && strings.Contains(err.Error(), "internal error") {
				t.Fatalf("%q: printing: %v", src, err)
			}
		}
	})
}
