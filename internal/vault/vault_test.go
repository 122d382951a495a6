package vault_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"passepartout/internal/vault"
)

const canary = "sk-canary-93f1c2"

// place is a vault's place with a cheap passphrase.
func place(t testing.TB) vault.Place {
	t.Helper()
	return vault.Place{
		Dir: filepath.Join(t.TempDir(), "config"), Work: 4,
		Passphrase: func(bool) (string, error) { return "correct horse", nil },
	}
}

func create(t testing.TB, p vault.Place, g vault.Guard) *vault.Vault {
	t.Helper()
	v, err := vault.Create(p, g)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestWhatIsSetCanBeHadAgainAfterReopening(t *testing.T) {
	for _, g := range []vault.Guard{vault.Passphrase, vault.KeyFile} {
		p := place(t)
		v := create(t, p, g)
		for name, value := range map[string]string{"OPENAI_API_KEY": canary, "note": "two\nlines ü", "a.b-c_d": strings.Repeat("x", 64<<10)} {
			if err := v.Set(name, value); err != nil {
				t.Fatal(err)
			}
		}
		if err := v.Set("note", "other"); err != nil {
			t.Fatal(err)
		}
		if err := v.Delete("a.b-c_d"); err != nil {
			t.Fatal(err)
		}
		again, err := vault.Open(p)
		if err != nil {
			t.Fatal(err)
		}
		if got := again.Values(); !maps.Equal(got, map[string]string{"OPENAI_API_KEY": canary, "note": "other"}) || again.Guard() != g {
			t.Errorf("%v: holds %v", again.Guard(), slices.Sorted(maps.Keys(got)))
		}
		if _, err := again.Get("gone"); !errors.Is(err, vault.ErrNoEntry) {
			t.Errorf("a missing entry: %v", err)
		}
	}
}

func TestNothingOnDiskShowsAValueOrIsForOthers(t *testing.T) {
	p := place(t)
	v := create(t, p, vault.Passphrase)
	if err := v.Set("KEY", canary); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(p.Dir)
	if err != nil || len(files) != 3 {
		t.Fatalf("%v: %v", files, err)
	}
	for _, f := range files {
		name := filepath.Join(p.Dir, f.Name())
		raw, err := os.ReadFile(name)
		st, serr := os.Stat(name)
		if err != nil || serr != nil || st.Mode().Perm() != 0o600 || bytes.Contains(raw, []byte(canary)) || bytes.Contains(raw, []byte("AGE-SECRET-KEY")) {
			t.Errorf("%s: mode %v, %v", name, st.Mode(), errors.Join(err, serr))
		}
	}
}

func TestAVaultThatCannotBeTrustedDoesNotOpen(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(t *testing.T, p *vault.Place)
		want  error
	}{
		{"none", func(t *testing.T, p *vault.Place) { p.Dir = t.TempDir() }, vault.ErrNone},
		{"wrong passphrase", func(_ *testing.T, p *vault.Place) {
			p.Passphrase = func(bool) (string, error) { return "wrong horse", nil }
		}, vault.ErrLocked},
		{"nobody to ask", func(_ *testing.T, p *vault.Place) { p.Passphrase = nil }, vault.ErrLocked},
		{"no key", func(t *testing.T, p *vault.Place) { remove(t, p.Dir, "vault.key") }, vault.ErrLocked},
		{"readable data", func(t *testing.T, p *vault.Place) { chmod(t, p.Dir, "vault.age", 0o644) }, vault.ErrExposed},
		{"readable key", func(t *testing.T, p *vault.Place) { chmod(t, p.Dir, "vault.key", 0o640) }, vault.ErrExposed},
		{"flipped byte", func(t *testing.T, p *vault.Place) { flip(t, p.Dir, "vault.age") }, vault.ErrTampered},
		{"flipped key", func(t *testing.T, p *vault.Place) { flip(t, p.Dir, "vault.key") }, vault.ErrLocked},
		{"empty", func(t *testing.T, p *vault.Place) { write(t, p.Dir, "vault.age", "") }, vault.ErrTampered},
		{"a key that is none", func(t *testing.T, p *vault.Place) { write(t, p.Dir, "vault.key", "AGE-SECRET-KEY-1"+canary) }, vault.ErrLocked},
		{"a link", func(t *testing.T, p *vault.Place) {
			from, to := filepath.Join(p.Dir, "vault.age"), filepath.Join(p.Dir, "elsewhere")
			if err := errors.Join(os.Rename(from, to), os.Symlink(to, from)); err != nil {
				t.Fatal(err)
			}
		}, nil},
	} {
		p := place(t)
		v := create(t, p, vault.Passphrase)
		if err := v.Set("KEY", canary); err != nil {
			t.Fatal(err)
		}
		tt.spoil(t, &p)
		_, err := vault.Open(p)
		if err == nil || tt.want != nil && !errors.Is(err, tt.want) || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func chmod(t *testing.T, dir, name string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func flip(t *testing.T, dir, name string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)-3] ^= 0x10
	write(t, dir, name, string(raw))
}

func TestNamesAndValuesAreChecked(t *testing.T) {
	v := create(t, place(t), vault.KeyFile)
	for _, name := range []string{"", "-x", ".x", "a b", "ü", "a/b", strings.Repeat("x", 65), "a\n"} {
		if err := v.Set(name, "value"); err == nil {
			t.Errorf("the name %q was taken", name)
		}
	}
	for _, value := range []string{"", "\xff", "a\x00b", strings.Repeat("x", 64<<10+1)} {
		if err := v.Set("K", value); err == nil || value != "" && strings.Contains(err.Error(), value) {
			t.Errorf("a value of %d bytes: %v", len(value), err)
		}
	}
	if err := v.Delete("gone"); !errors.Is(err, vault.ErrNoEntry) {
		t.Errorf("deleting nothing: %v", err)
	}
	if _, err := vault.Create(vault.Place{Dir: t.TempDir()}, vault.Keyring); err == nil {
		t.Error("a keyring was used that is not there")
	}
	if _, err := vault.Create(vault.Place{Dir: t.TempDir(), Passphrase: func(bool) (string, error) { return "short", nil }}, vault.Passphrase); err == nil {
		t.Error("a short passphrase was taken")
	}
}

func TestRotationKeepsEntriesAndMakesTheOldKeyWorthless(t *testing.T) {
	p := place(t)
	v := create(t, p, vault.KeyFile)
	if err := v.Set("KEY", canary); err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadFile(filepath.Join(p.Dir, "vault.key"))
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Rotate(vault.Passphrase); err != nil {
		t.Fatal(err)
	}
	again, err := vault.Open(p)
	if err != nil || again.Guard() != vault.Passphrase || again.Values()["KEY"] != canary {
		t.Fatalf("after rotation: %v", err)
	}
	if err := v.Set("MORE", "value1"); err != nil { // the one that rotated goes on
		t.Error(err)
	}
	write(t, p.Dir, "vault.key", string(old))
	if _, err := vault.Open(p); !errors.Is(err, vault.ErrTampered) {
		t.Errorf("the old key: %v", err)
	}
}

func TestTwoProcessesDoNotLoseEachOthersEntries(t *testing.T) {
	p := place(t)
	create(t, p, vault.KeyFile)
	var wg sync.WaitGroup
	for i := range 4 {
		v, err := vault.Open(p)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			for j := range 5 {
				if err := v.Set(fmt.Sprintf("k%d-%d", i, j), "some value"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	v, err := vault.Open(p)
	if err != nil || len(v.List()) != 20 {
		t.Errorf("%d entries, %v", len(v.List()), err)
	}
}

// TestAVaultIsAMap compares a vault with a map, over reopening and rotation.
func TestAVaultIsAMap(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp("", "vault")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		p := vault.Place{Dir: dir}
		v := create(t, p, vault.KeyFile)
		model := map[string]string{}
		for range rapid.IntRange(1, 6).Draw(rt, "steps") {
			name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "name")
			var err error
			switch rapid.IntRange(0, 4).Draw(rt, "what") {
			case 0, 1:
				value := rapid.StringN(1, 20, -1).Filter(func(s string) bool { return !strings.ContainsRune(s, 0) }).Draw(rt, "value")
				err = v.Set(name, value)
				model[name] = value
			case 2:
				_, had := model[name]
				if err = v.Delete(name); errors.Is(err, vault.ErrNoEntry) && !had {
					err = nil
				}
				delete(model, name)
			case 3:
				v, err = vault.Open(p)
			case 4:
				err = v.Rotate(vault.KeyFile)
			}
			if err != nil {
				rt.Fatal(err)
			}
			if !maps.Equal(v.Values(), model) {
				rt.Fatalf("holds %q, want %q", v.Values(), model)
			}
		}
	})
}

// TestTheSystemsKeyringKeepsTheKey runs itself inside a session bus of its own
// with a real keyring on it.
func TestTheSystemsKeyringKeepsTheKey(t *testing.T) {
	if os.Getenv("VAULT_TEST_SESSION") == "" {
		for _, need := range []string{"dbus-run-session", "gnome-keyring-daemon"} {
			if _, err := exec.LookPath(need); err != nil {
				t.Skipf("%s is not installed", need)
			}
		}
		home := t.TempDir()
		cmd := exec.Command("dbus-run-session", "--", os.Args[0], "-test.run=^TestTheSystemsKeyringKeepsTheKey$", "-test.v")
		cmd.Env = append(os.Environ(), "VAULT_TEST_SESSION=1", "HOME="+home, "XDG_RUNTIME_DIR="+home, "XDG_DATA_HOME="+home)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	unlock := exec.Command("gnome-keyring-daemon", "--unlock", "--components=secrets")
	unlock.Stdin = strings.NewReader("login password")
	if out, err := unlock.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p := vault.Place{Dir: t.TempDir(), Ring: vault.SystemRing(os.Environ())}
	if p.Ring == nil {
		t.Fatal("the session's keyring was not found")
	}
	v := create(t, p, vault.Keyring)
	if err := v.Set("KEY", canary); err != nil {
		t.Fatal(err)
	}
	if len(p.Files()) != 1 {
		t.Errorf("files %v, want the data alone", p.Files())
	}
	if err := v.Rotate(vault.Keyring); err != nil {
		t.Fatal(err)
	}
	again, err := vault.Open(p)
	if err != nil || again.Guard() != vault.Keyring || again.Values()["KEY"] != canary {
		t.Fatalf("reopened: %v", err)
	}
	if err := again.Rotate(vault.KeyFile); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Ring.Get(p.Dir); err == nil {
		t.Error("the keyring still holds a key that is not used any more")
	}
	if vault.SystemRing([]string{"HOME=/"}) != nil {
		t.Error("a keyring was found where there is no session")
	}
}

// TestAnOpenVaultTakesUpWhatOthersChange: also another key, where nobody need be asked
// for it; else it stays as it was.
func TestAnOpenVaultTakesUpWhatOthersChange(t *testing.T) {
	p := vault.Place{Dir: t.TempDir(), Work: 10}
	open, err := vault.Create(p, vault.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	other, err := vault.Open(p)
	if err != nil {
		t.Fatal(err)
	}
	get := func() string { v, _ := open.Get("A"); return v }
	if err := errors.Join(other.Set("A", "one"), open.Reload(nil)); err != nil || get() != "one" {
		t.Fatalf("%q, %v", get(), err)
	}
	if err := errors.Join(other.Rotate(vault.KeyFile), other.Set("A", "two"), open.Reload(nil)); err != nil || get() != "two" {
		t.Fatalf("after another key: %q, %v", get(), err)
	}
	phrase := func(bool) (string, error) { return "correct horse battery", nil }
	asked := p
	asked.Passphrase = phrase
	if other, err = vault.Open(asked); err == nil {
		err = errors.Join(other.Rotate(vault.Passphrase), other.Set("A", "three"))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := open.Reload(nil); !errors.Is(err, vault.ErrLocked) || get() != "two" {
		t.Errorf("under a passphrase nobody can be asked for: %q, %v", get(), err)
	}
	if err := open.Reload(phrase); err != nil || get() != "three" || open.Guard() != vault.Passphrase {
		t.Errorf("with the passphrase: %q, %v, %v", get(), open.Guard(), err)
	}
}

// A forgetful ring takes a key and then says that it has trouble.
type forgetfulRing struct {
	key   string
	fails bool
}

func (r *forgetfulRing) Get(string) (string, error) {
	if r.fails {
		return "", errors.New("the session is locked")
	}
	return r.key, nil
}
func (r *forgetfulRing) Set(_, key string) error { r.key = key; return nil }
func (r *forgetfulRing) Delete(string) error     { r.key = ""; return nil }

// TestAFailedRotationLosesNothing: the keyring holds the new key by then, and the old
// one nowhere.
func TestAFailedRotationLosesNothing(t *testing.T) {
	ring := &forgetfulRing{}
	p := vault.Place{Dir: t.TempDir(), Ring: ring}
	v, err := vault.Create(p, vault.Keyring)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Set("A", "one"); err != nil {
		t.Fatal(err)
	}
	for i, value := range []string{"two", "three"} {
		ring.fails = true
		if err := v.Rotate(vault.Keyring); err == nil {
			t.Fatal("a key that the keyring does not give back was taken for kept")
		}
		ring.fails = false
		if w, err := vault.Open(p); err != nil || len(w.Values()) != 1 {
			t.Fatalf("after failure %d: %v", i+1, err)
		}
		if err := v.Set("A", value); err != nil { // in the process that failed
			t.Fatal(err)
		}
		w, err := vault.Open(p)
		if err != nil || w.Values()["A"] != value {
			t.Fatalf("after failure %d and a change: %v", i+1, err)
		}
	}
	if err := v.Rotate(vault.Keyring); err != nil {
		t.Fatal(err)
	}
	if w, err := vault.Open(p); err != nil || w.Values()["A"] != "three" {
		t.Fatal(err)
	}
}
