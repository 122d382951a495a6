package config_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"passepartout/internal/config"
	"passepartout/internal/powercut"
)

// TestSettingsAreTheOldOrTheNewAfterAPowerCut sets a user twice, the first time where
// there is no file and no folder for it yet.
func TestSettingsAreTheOldOrTheNewAfterAPowerCut(t *testing.T) {
	users := []string{"", "Ana", "Ben"}
	read := func(path string) config.ReadFunc {
		return func(string) ([]byte, fs.FileMode, error) {
			raw, err := os.ReadFile(path)
			return raw, 0o600, err
		}
	}
	powercut.Run(t, powercut.Scenario{
		Work: func(dir string, mark func(string)) error {
			path := filepath.Join(dir, "config", "passepartout", "env")
			for _, u := range users[1:] {
				text, err := config.Edit(environ, read(path), config.Change{Key: "MEMEX_USER", Value: u})
				if err != nil {
					return err
				}
				if err := config.WriteFile(path, text); err != nil {
					return err
				}
				mark(u)
			}
			return nil
		},
		Check: func(dir string, marks []string) error {
			raw, err := os.ReadFile(filepath.Join(dir, "config", "passepartout", "env"))
			if errors.Is(err, fs.ErrNotExist) && len(marks) == 0 {
				return nil
			}
			if err != nil {
				return err
			}
			n := len(marks)
			if got := load(t, environ, string(raw)).User; got != users[n] && got != users[min(n+1, len(users)-1)] {
				return fmt.Errorf("after %q the user is %q", marks, got)
			}
			return nil
		},
	})
}
