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
