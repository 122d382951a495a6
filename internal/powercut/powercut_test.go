package powercut

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// careful replaces a file as a program that fears for its data does.
func careful(dir, name, text string, skip ...string) error {
	does := func(step string) bool { return !slices.Contains(skip, step) }
	f, err := os.CreateTemp(dir, "new-")
	if err != nil {
		return err
	}
	if _, err := f.WriteString(text); err != nil {
		return err
	}
	if does("sync the file") {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), filepath.Join(dir, name)); err != nil {
		return err
	}
	if !does("sync the directory") {
		return nil
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// replacing is work that replaces one file twice, leaving steps out.
func replacing(skip ...string) Scenario {
	return Scenario{
		Work: func(dir string, mark func(string)) error {
			for _, text := range []string{"one", strings.Repeat("two ", 400)} {
				if err := careful(dir, "file", text, skip...); err != nil {
					return err
				}
				mark(text)
			}
			return nil
		},
		Check: func(dir string, marks []string) error {
			raw, err := os.ReadFile(filepath.Join(dir, "file"))
			if errors.Is(err, fs.ErrNotExist) && len(marks) == 0 {
				return nil
			}
			if err != nil {
				return err
			}
			all := []string{"one", strings.Repeat("two ", 400)}
			if i := slices.Index(all, string(raw)); i < 0 || i+1 < len(marks) {
				return fmt.Errorf("promised %d, found %.20q of %d bytes", len(marks), raw, len(raw))
			}
			return nil
		},
	}
}

func TestACarefulReplacementSurvives(t *testing.T) { Run(t, replacing()) }

// faults runs a scenario and returns what its checks said.
func faults(t *testing.T, s Scenario) []string {
	t.Helper()
	if dir := os.Getenv(dirVar); dir != "" {
		s.observed(dir)
	}
	tr := observe(t, room(t), nil)
	var out []string
	n := 0
	tr.each(func(st state) bool {
		n++
		dir := filepath.Join(t.TempDir(), "disk")
		if err := st.tree.write(dir); err != nil {
			t.Fatal(err)
		}
		if err := s.Check(dir, st.marks); err != nil {
			out = append(out, err.Error())
		}
		return true
	})
	t.Logf("%d disks, %d of them wrong", n, len(out))
	return out
}

func TestAFileThatWasNotSyncedIsFoundEmpty(t *testing.T) {
	got := faults(t, replacing("sync the file"))
	for _, want := range []string{`promised 2, found "" of 0 bytes`, `found "\x00\x00`, "of 800 bytes"} {
		if !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, want) }) {
			t.Errorf("no disk where %s in %q", want, got)
		}
	}
}

func TestANameThatWasNotSyncedIsLost(t *testing.T) {
	got := faults(t, replacing("sync the directory"))
	for _, want := range []string{"no such file", `promised 2, found "one"`} {
		if !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, want) }) {
			t.Errorf("no disk where %s in %q", want, got)
		}
	}
}

func TestADirectoryThatWasNotSyncedTakesItsFilesAlong(t *testing.T) {
	got := faults(t, Scenario{
		Work: func(dir string, mark func(string)) error {
			sub := filepath.Join(dir, "a", "b")
			if err := os.MkdirAll(sub, 0o700); err != nil {
				return err
			}
			if err := careful(sub, "file", "text"); err != nil {
				return err
			}
			mark("written")
			return nil
		},
		Check: func(dir string, marks []string) error {
			_, err := os.Stat(filepath.Join(dir, "a", "b", "file"))
			if len(marks) == 0 {
				return nil
			}
			return err
		},
	})
	if len(got) != 3 { // a is lost, whatever became of b; a is there and b is lost
		t.Errorf("want three disks without the file, found %q", got)
	}
}

// TestEveryWayOfWritingIsSeen compares the last disk, where nothing is lost, with
// what the work really left.
func TestEveryWayOfWritingIsSeen(t *testing.T) {
	s := Scenario{Work: func(dir string, mark func(string)) error {
		at := func(name string) string { return filepath.Join(dir, name) }
		log, err := os.OpenFile(at("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
		if err != nil {
			return err
		}
		from, err := os.Open(os.Args[0])
		if err != nil {
			return err
		}
		head := make([]byte, 3000)
		if _, err := from.ReadAt(head, 0); err != nil {
			return err
		}
		to, err := os.Create(at("to"))
		if err != nil {
			return err
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			return err
		}
		_, err = log.WriteString("one\n")
		_, err2 := log.WriteString("two\n")
		_, err3 := to.Write(head)
		_, err4 := to.WriteAt([]byte("xyz"), 100)
		if err := errors.Join(
			err, err2, err3, err4, log.Truncate(6), os.Truncate(at("to"), 2000),
			os.Mkdir(at("d"), 0o750), os.Symlink("log", at("link")), os.Link(at("to"), at("d/second")),
			os.Rename(at("log"), at("d/log")), os.WriteFile(at("gone"), []byte("x"), 0o600), os.Remove(at("gone")),
			root.Mkdir("r", 0o700), root.WriteFile("r/in", []byte("inside"), 0o600), root.Rename("r/in", "r/out"), os.Chmod(at("r/out"), 0o400),
		); err != nil {
			return err
		}
		_, err = log.WriteString("on\n") // under its new name
		mark("end")
		return err
	}}
	if dir := os.Getenv(dirVar); dir != "" {
		s.observed(dir)
	}
	root := room(t)
	tr := observe(t, root, nil)
	got := tr.build(len(tr.ops), func(int, *op) (bool, *fate) { return true, nil })
	d, err := newDisk(root)
	if err != nil {
		t.Fatal(err)
	}
	want := d.build(0, nil)
	if got.String() != want.String() {
		t.Errorf("seen:%s\nreally:%s", got, want)
	}
}

func TestSamplesAreSpreadOverAllDisks(t *testing.T) {
	c := &checker{again: 8}
	for i := range 1000 {
		c.passed++
		c.keep(state{name: fmt.Sprint(i)})
	}
	if n := len(c.sampled); n < 4 || n > 8 {
		t.Errorf("%d samples", n)
	}
}
