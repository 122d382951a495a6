package backup_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"passepartout/internal/backup"
	"passepartout/internal/powercut"
)

// layout writes files below a directory.
func layout(dir string, files map[string]string) error {
	for name, text := range files {
		at := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(text), 0o600)); err != nil {
			return err
		}
	}
	return nil
}

// archived packs files of one root.
func archived(files map[string]string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "backup-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := layout(dir, files); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	_, err = backup.Write(&b, []backup.Root{{Name: "memex", Dir: dir}}, "test", made)
	return b.Bytes(), err
}

// TestARestoreSurvivesAPowerCut: whenever the power fails, a file that was there is as
// it was or as in the archive; what is replaced is kept; and a restore that said it was
// done is.
func TestARestoreSurvivesAPowerCut(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run by make test")
	}
	before := map[string]string{"notes/a.org": "old a", "b.org": "old b", "same.org": "same", "mine.org": "mine"}
	packed := map[string]string{"notes/a.org": strings.Repeat("new a ", 200), "b.org": "new b", "same.org": "same", "deep/er/c.org": "c"}
	powercut.Run(t, powercut.Scenario{
		Work: func(dir string, mark func(string)) error {
			archive, err := archived(packed)
			if err != nil {
				return err
			}
			target := filepath.Join(dir, "home", "memex")
			for name, text := range before {
				at := filepath.Join(target, name)
				if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(text), 0o600), syncAll(dir)); err != nil {
					return err
				}
			}
			mark("begun")
			if _, err := backup.Restore(bytes.NewReader(archive), map[string]string{"memex": target}, true, backup.Options{}); err != nil {
				return err
			}
			mark("restored")
			if _, err := backup.Restore(bytes.NewReader(archive), map[string]string{"memex": filepath.Join(dir, "new", "memex")}, false, backup.Options{}); err != nil {
				return err
			}
			mark("made")
			return nil
		},
		Check: func(dir string, marks []string) error {
			if !slices.Contains(marks, "begun") {
				return nil
			}
			done := slices.Contains(marks, "restored")
			home := filepath.Join(dir, "home")
			for _, name := range []string{"notes/a.org", "b.org", "same.org", "mine.org", "deep/er/c.org"} {
				got, err := os.ReadFile(filepath.Join(home, "memex", name))
				was, had := before[name]
				want, comes := packed[name]
				switch {
				case errors.Is(err, fs.ErrNotExist) && !had && !done:
				case err != nil:
					return err
				case comes && string(got) == want:
					if had && was != want && !kept(home, name, was) {
						return fmt.Errorf("%s was replaced, and what it held is lost", name)
					}
				case !had || string(got) != was || done && comes:
					return fmt.Errorf("%s holds %.40q", name, got)
				}
			}
			fresh := filepath.Join(dir, "new", "memex")
			if _, err := os.Stat(fresh); errors.Is(err, fs.ErrNotExist) && !slices.Contains(marks, "made") {
				return nil
			}
			for name, want := range packed {
				if got, err := os.ReadFile(filepath.Join(fresh, name)); err != nil || string(got) != want {
					return fmt.Errorf("%s of the new memex holds %.40q: %w", name, got, err)
				}
			}
			return nil
		},
	})
}

// kept reports whether a text stands in one of the directories of what was replaced.
func kept(home, name, text string) bool {
	dirs, _ := filepath.Glob(filepath.Join(home, "memex.replaced-*"))
	return slices.ContainsFunc(dirs, func(d string) bool {
		got, err := os.ReadFile(filepath.Join(d, name))
		return err == nil && string(got) == text
	})
}

// syncAll makes everything below a directory durable.
func syncAll(dir string) error {
	return filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		f, err := os.Open(p)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}

// TestABackupIsWholeOrAbsentAfterAPowerCut: a file by the name of a backup is one.
func TestABackupIsWholeOrAbsentAfterAPowerCut(t *testing.T) {
	powercut.Run(t, powercut.Scenario{
		Work: func(dir string, mark func(string)) error {
			from := t.TempDir()
			if err := layout(from, map[string]string{"a.org": "a", "b.org": strings.Repeat("b", 700)}); err != nil {
				return err
			}
			file := filepath.Join(dir, "a.backup")
			if _, err := backup.Create(file, []backup.Root{{Name: "memex", Dir: from}}, backup.Lock{Plain: true}, "test", made); err != nil {
				return err
			}
			mark("made")
			return nil
		},
		Check: func(dir string, marks []string) error {
			a, err := backup.Open(filepath.Join(dir, "a.backup"), backup.Keys{})
			if errors.Is(err, fs.ErrNotExist) && len(marks) == 0 {
				return nil
			}
			if err != nil {
				return err
			}
			_, err = backup.Check(a, backup.Options{})
			return errors.Join(err, a.Close())
		},
	})
}
