package undo_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"passepartout/internal/durable"
	"passepartout/internal/powercut"
	"passepartout/internal/undo"
)

// contents are the files below a directory and what they hold, apart from files on
// their way to their place.
func contents(root string) (string, error) {
	var b strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || strings.HasPrefix(d.Name(), ".") {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil || d.IsDir() {
			fmt.Fprintf(&b, "%s/ ", rel)
			return err
		}
		text, err := os.ReadFile(path)
		fmt.Fprintf(&b, "%s=%.10s:%d ", rel, text, len(text))
		return err
	})
	return b.String(), err
}

// powercutUndo is work that changes a tree, takes it back and does it again. change
// makes its own changes durable, as a careful editor would: what is looked at here is
// the store.
func powercutUndo(t *testing.T, change func(root string) error, before map[string]string) powercut.Scenario {
	t.Helper()
	var was, is string // the tree before and after, found out where nothing fails
	try := filepath.Join(t.TempDir(), "tree")
	err := makeTree(try, before)
	if err == nil {
		was, err = contents(try)
	}
	if err == nil {
		err = change(try)
	}
	if err == nil {
		is, err = contents(try)
	}
	if err != nil {
		t.Fatal(err)
	}
	return powercut.Scenario{
		Work: func(dir string, mark func(string)) error {
			root := filepath.Join(dir, "tree")
			if err := makeTree(root, before); err != nil {
				return err
			}
			mark("ready")
			s, err := undo.Open(filepath.Join(dir, "state", "undo"), undo.Options{})
			if err != nil {
				return err
			}
			c, err := s.Begin("change", "turn", undo.Scope{Root: root})
			if err != nil {
				return err
			}
			mark("captured")
			if err := change(root); err != nil {
				return err
			}
			mark("changed")
			e, err := c.Commit()
			if err != nil {
				return err
			}
			mark("kept")
			if err := s.Undo(e.ID); err != nil {
				return err
			}
			mark("undone")
			mark("redoing")
			if err := s.Redo(e.ID); err != nil {
				return err
			}
			mark("redone")
			return s.Close()
		},
		Check: func(dir string, marks []string) error {
			if !slices.Contains(marks, "ready") {
				return nil
			}
			s, err := undo.Open(filepath.Join(dir, "state", "undo"), undo.Options{})
			if err != nil {
				return err
			}
			return errors.Join(checkUndo(s, filepath.Join(dir, "tree"), was, is, marks[len(marks)-1]), s.Close())
		},
		Repair: func(dir string) error {
			s, err := undo.Open(filepath.Join(dir, "state", "undo"), undo.Options{})
			if err != nil {
				return err
			}
			return s.Close()
		},
		Again: 2,
	}
}

// checkUndo wants the tree as it was promised, or nothing promised yet; and whatever it
// is, that what the store remembers leads to how it was and back.
func checkUndo(s *undo.Store, root, was, is, last string) error {
	found, err := contents(root)
	if err != nil {
		return err
	}
	switch last {
	case "ready", "undone":
		if found != was {
			return fmt.Errorf("after %q want the tree as it was, found %s", last, found)
		}
	case "changed", "redone":
		if found != is {
			return fmt.Errorf("after %q want the changed tree, found %s", last, found)
		}
	case "kept", "redoing":
		if found != is && found != was {
			return fmt.Errorf("after %q want one of two trees, found %s", last, found)
		}
	}
	entries := s.Entries()
	if len(entries) == 0 {
		if found != was {
			return fmt.Errorf("nothing can be undone, and the tree is %s", found)
		}
		return nil
	}
	e := entries[0]
	if e.Undone {
		if found != was {
			return fmt.Errorf("it counts as undone, and the tree is %s", found)
		}
		if err := s.Redo(e.ID); err != nil {
			return err
		}
		// What was cut off in the middle comes back as far as it had come.
		now, err := contents(root)
		if err == nil && now != is && !e.Interrupted {
			err = fmt.Errorf("redone it is %s", now)
		}
		if err != nil {
			return err
		}
		return s.Undo(e.ID)
	}
	if err := s.Undo(e.ID); err != nil {
		return err
	}
	now, err := contents(root)
	if err == nil && now != was {
		err = fmt.Errorf("undone it is %s", now)
	}
	if err != nil {
		return err
	}
	return s.Redo(e.ID)
}

func makeTree(root string, files map[string]string) error {
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := durable.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := durable.Replace(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func TestAChangeCanBeTakenBackAfterAPowerCut(t *testing.T) {
	if testing.Short() {
		t.Skip("many disks: run by make test")
	}
	powercut.Run(t, powercutUndo(t, func(root string) error {
		return errors.Join(
			durable.Replace(filepath.Join(root, "a"), []byte("new a"), 0o600),
			os.Remove(filepath.Join(root, "sub", "b")), durable.SyncDir(filepath.Join(root, "sub")),
			durable.MkdirAll(filepath.Join(root, "fresh"), 0o700),
			durable.Replace(filepath.Join(root, "fresh", "c"), []byte(strings.Repeat("c", 1500)), 0o600),
		)
	}, map[string]string{"a": strings.Repeat("old a ", 200), "sub/b": "b", "sub/d": "d"}))
}

func TestManyFilesCanBeTakenBackAfterAPowerCut(t *testing.T) {
	if os.Getenv("PASSEPARTOUT_SOAK") == "" {
		t.Skip("6,000 disks: run with PASSEPARTOUT_SOAK=1")
	}
	before := map[string]string{}
	for i := range 40 { // more than are synced one by one
		before[fmt.Sprint("f", i)] = fmt.Sprint("text ", i)
	}
	s := powercutUndo(t, func(root string) error {
		return durable.Replace(filepath.Join(root, "f7"), []byte("seven"), 0o600)
	}, before)
	s.Again = 0
	powercut.Run(t, s)
}
