package skill_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"passepartout/internal/sexp"
)

// TestTheLispInDocumentsLoads loads every block of Lisp that the guides show, each as a
// skill of its own.
func TestTheLispInDocumentsLoads(t *testing.T) {
	files := map[string]string{"other.org": lispFile("(defun other-p (x) x)")}
	for _, doc := range []string{"skills.md", "skills-tutorial.md"} {
		src, err := os.ReadFile(filepath.Join("..", "..", "docs", doc))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for i, m := range regexp.MustCompile("(?s)(?:```lisp|#\\+begin_src lisp)\\n(.*?)\\n(?:```|#\\+end_src)").FindAllStringSubmatch(string(src), -1) {
			files[fmt.Sprintf("d%d-%s.org", i, doc[:len(doc)-3])] = lispFile(m[1])
			n++
		}
		if n == 0 {
			t.Errorf("%s shows no Lisp", doc)
		}
	}
	l, _ := open(t, files)
	for _, p := range l.Set().Problems {
		t.Error(p.Error())
	}
	if got, err := l.Set().CallTool("count-words", sexp.P(sexp.Keyword("TEXT"), "one two  three")); err != nil || got.Text != "3" {
		t.Errorf("count-words of three words is %q, %v", got.Text, err)
	}
}
