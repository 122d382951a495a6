package arch_test

import (
	"fmt"
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

// TestEveryLinkInADocumentLeadsSomewhere follows links between documents, to headings
// too: a guide whose links are dead is read by nobody twice.
func TestEveryLinkInADocumentLeadsSomewhere(t *testing.T) {
	root := filepath.Join("..", "..")
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	fence := regexp.MustCompile("(?ms)^```.*?^```")
	headings := map[string]map[string]bool{}
	texts := map[string]string{}
	walk(t, root, ".md", func(path, text string) {
		texts[path] = fence.ReplaceAllString(text, "")
		headings[filepath.Clean(path)] = anchors(texts[path])
	})
	for path, text := range texts {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			file, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			to := filepath.Clean(path)
			if file != "" {
				to = filepath.Join(filepath.Dir(path), filepath.FromSlash(file))
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s: %v", path, m[1], err)
			} else if anchor != "" && !headings[to][anchor] {
				t.Errorf("%s links to %s, which has no such heading", path, m[1])
			}
		}
	}
}

// anchors are the names that headings of a document can be linked by.
func anchors(text string) map[string]bool {
	out := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#+ +(.*)$`).FindAllStringSubmatch(text, -1) {
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r > 127:
				return r
			}
			return -1
		}, strings.ToLower(strings.TrimSpace(m[1])))
		out[name] = true
	}
	return out
}

// TestDecisionsAreNumberedOneByOne: a number names one decision, and its title says it.
func TestDecisionsAreNumberedOneByOne(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "docs", "decisions", "*.md"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no decisions: %v", err)
	}
	for i, f := range files {
		number := fmt.Sprintf("%03d", i+1)
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(filepath.Base(f), number+"-") || !strings.HasPrefix(string(text), "# "+number+": ") {
			t.Errorf("%s: want a name and a title with the number %s", f, number)
		}
	}
}
