package arch_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestEveryTestADocumentNamesExists keeps promises in documents tied to what shows
// them: a renamed or deleted test must not leave a claim behind.
func TestEveryTestADocumentNamesExists(t *testing.T) {
	root := filepath.Join("..", "..")
	have := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
	named := regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z]\\w{7,})`")
	walk(t, root, "_test.go", func(_, text string) {
		for _, m := range declared.FindAllStringSubmatch(text, -1) {
			have[m[1]] = true
		}
	})
	claims := 0
	walk(t, root, ".md", func(path, text string) {
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			claims++
			if !have[m[1]] {
				t.Errorf("%s names %s, which no test file declares", path, m[1])
			}
		}
	})
	if claims == 0 {
		t.Error("no document names a test: the pattern has come apart from the documents")
	}
}

// walk calls f with every file of the tree whose name ends so.
func walk(t *testing.T, root, suffix string, f func(path, text string)) {
	t.Helper()
	skip := []string{".git", "bin", "dist", "testdata", "node_modules"}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(skip, d.Name()):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, suffix):
			return nil
		}
		b, err := os.ReadFile(path)
		if err == nil {
			f(path, string(b))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
