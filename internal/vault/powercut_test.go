package vault_test

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"passepartout/internal/powercut"
	"passepartout/internal/vault"
)

// TestAVaultOpensAfterAPowerCut: whenever the power fails, while entries are set or the
// key is changed, the vault opens and holds what was acknowledged, or what was on its
// way.
func TestAVaultOpensAfterAPowerCut(t *testing.T) {
	steps := []struct {
		do   func(*vault.Vault) error
		then map[string]string
	}{
		{func(v *vault.Vault) error { return v.Set("A", "one") }, map[string]string{"A": "one"}},
		{func(v *vault.Vault) error { return v.Set("B", strings.Repeat("b", 1000)) }, map[string]string{"A": "one", "B": strings.Repeat("b", 1000)}},
		{func(v *vault.Vault) error { return v.Rotate(vault.KeyFile) }, map[string]string{"A": "one", "B": strings.Repeat("b", 1000)}},
		{func(v *vault.Vault) error { return v.Delete("B") }, map[string]string{"A": "one"}},
		{func(v *vault.Vault) error { return v.Set("A", "two") }, map[string]string{"A": "two"}},
	}
	at := func(dir string) vault.Place { return vault.Place{Dir: filepath.Join(dir, "home", "config")} }
	powercut.Run(t, powercut.Scenario{
		Work: func(dir string, mark func(string)) error {
			v, err := vault.Create(at(dir), vault.KeyFile)
			if err != nil {
				return err
			}
			mark("made")
			for i, s := range steps {
				if err := s.do(v); err != nil {
					return err
				}
				mark(fmt.Sprint(i))
			}
			return nil
		},
		Check: func(dir string, marks []string) error {
			v, err := vault.Open(at(dir))
			if errors.Is(err, vault.ErrNone) && len(marks) == 0 {
				_, err := vault.Create(at(dir), vault.KeyFile) // it can be made again
				return err
			}
			if err != nil {
				return err
			}
			now := map[string]string{}
			if len(marks) > 1 {
				now = steps[len(marks)-2].then
			}
			next := now
			if n := len(marks) - 1; n >= 0 && n < len(steps) {
				next = steps[n].then
			}
			if got := v.Values(); !maps.Equal(got, now) && !maps.Equal(got, next) {
				return fmt.Errorf("after %q it holds %v", marks, got)
			}
			return nil
		},
		Again: 2,
	})
}
