package durable_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"passepartout/internal/durable"
	"passepartout/internal/powercut"
)

func TestAReplacedFileIsTheOldOrTheNewAfterAPowerCut(t *testing.T) {
	texts := []string{"", "first", strings.Repeat("second ", 300), "third"}
	powercut.Run(t, powercut.Scenario{
		Work: func(dir string, mark func(string)) error {
			dir = filepath.Join(dir, "a", "b")
			if err := durable.MkdirAll(dir, 0o700); err != nil {
				return err
			}
			for _, text := range texts[1:] {
				if err := durable.Replace(filepath.Join(dir, "file"), []byte(text), 0o640); err != nil {
					return err
				}
				mark(text)
			}
			return nil
		},
		Check: func(dir string, marks []string) error {
			raw, err := os.ReadFile(filepath.Join(dir, "a", "b", "file"))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			n := len(marks)
			if got := string(raw); got != texts[n] && got != texts[min(n+1, len(texts)-1)] {
				return fmt.Errorf("after %d replacements: %.20q of %d bytes", n, got, len(got))
			}
			return nil
		},
	})
}

// TestAFilePutIntoARootIsTheOldOrTheNewAfterAPowerCut: first one that must be new, then
// one in its place; and both again after every cut.
func TestAFilePutIntoARootIsTheOldOrTheNewAfterAPowerCut(t *testing.T) {
	texts := []string{"", strings.Repeat("first ", 200), "second"}
	name := filepath.Join("notes", "in", "file")
	put := func(dir string, n int) error {
		root, err := os.OpenRoot(dir)
		if err != nil {
			return err
		}
		return errors.Join(durable.PutIn(root, name, []byte(texts[n]), 0o600, n == 1), root.Close())
	}
	powercut.Run(t, powercut.Scenario{
		Work: func(dir string, mark func(string)) error {
			for n := 1; n < len(texts); n++ {
				if err := put(dir, n); err != nil {
					return err
				}
				mark(texts[n])
			}
			return nil
		},
		Check: func(dir string, marks []string) error {
			raw, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			n := len(marks)
			if got := string(raw); got != texts[n] && got != texts[min(n+1, len(texts)-1)] {
				return fmt.Errorf("after %d: %.20q of %d bytes", n, got, len(got))
			}
			if len(raw) == 0 {
				return put(dir, 1) // what was left behind is in nobody's way
			}
			return nil
		},
		Again: 2,
	})
}

func TestAFileIsPutIntoARootOnlyWhereItMayBe(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := os.Symlink(outside, filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	if err := durable.PutIn(root, "a", []byte("mine"), 0o600, true); err != nil {
		t.Fatal(err)
	}
	for name, fresh := range map[string]bool{"a": true, "out/b": true, "out/c": false, "../d": false, "a/e": false} {
		if err := durable.PutIn(root, name, []byte("theirs"), 0o600, fresh); err == nil {
			t.Errorf("%s was written", name)
		}
	}
	if raw, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || string(raw) != "mine" {
		t.Errorf("%q %v", raw, err)
	}
	for _, d := range []string{dir, outside} {
		list, err := os.ReadDir(d)
		if want := map[string]int{dir: 2, outside: 0}[d]; err != nil || len(list) != want {
			t.Errorf("left behind: %v, %v", list, err)
		}
	}
}

func TestWhatCannotBeReplacedStaysAndLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := durable.Replace(path, []byte("x"), 0o600); err == nil {
		t.Error("a directory was replaced by a file")
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("left behind: %v, %v", list, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "plain"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := durable.MkdirAll(filepath.Join(dir, "plain", "sub"), 0o700); err == nil {
		t.Error("a directory was made inside a file")
	}
}

func TestAHoleEndsWithASectorOrTheFile(t *testing.T) {
	zeros := make([]byte, 600)
	for _, c := range []struct {
		rest []byte
		n    int
		off  int64
		want bool
	}{
		{[]byte("text"), 4, 0, false},
		{[]byte("te\x00xt"), 5, 0, false}, // a flipped byte
		{[]byte("text\x00"), 4, 0, false},
		{[]byte("text\x00"), 5, 0, true},
		{[]byte("text\x00more"), 5, 507, true},
		{append(bytes.Clone(zeros[:412]), 'x'), 10, 100, true},
		{append(bytes.Clone(zeros[:400]), 'x'), 400, 0, false},
		{append([]byte("ab\x00c"), zeros...), 10, 0, true},
	} {
		if got := durable.Hole(c.rest, c.n, c.off); got != c.want {
			t.Errorf("%.8q of %d bytes at %d: %v, want %v", c.rest, len(c.rest), c.off, got, c.want)
		}
	}
}
