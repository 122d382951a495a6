package config_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"passepartout/internal/config"
)

func missing(string) ([]byte, fs.FileMode, error) { return nil, 0, fs.ErrNotExist }

func TestANewSettingsFileExplainsEverything(t *testing.T) {
	text, err := config.Edit(environ, missing, config.Change{Key: "MEMEX_USER", Value: "Jean"})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range config.Settings() {
		if !s.EnvOnly && !strings.Contains(string(text), "\n#"+s.Key+"=") && !strings.Contains(string(text), "\n"+s.Key+"=") {
			t.Errorf("%s is not in the new file", s.Key)
		}
	}
	if c := load(t, environ, string(text)); c.User != "Jean" {
		t.Errorf("the user is %q", c.User)
	}
}

// TestAnEditChangesItsSettingAndNothingElse: whatever a value holds, it is read
// back, other lines stay as they are, and taking it out again restores the file.
func TestAnEditChangesItsSettingAndNothingElse(t *testing.T) {
	start, err := config.Edit(environ, missing)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		value := rapid.StringMatching(`[a-z #'"\\=$ü]{0,20}[a-z]`).Draw(rt, "value")
		value = strings.TrimSpace(value)
		text, err := config.Edit(environ, reading(string(start), 0o600), config.Change{Key: "MEMEX_ASSISTANT", Value: value})
		if err != nil {
			rt.Fatal(err)
		}
		c, err := config.Load(environ, reading(string(text), 0o600))
		if err != nil || c.Assistant != value {
			rt.Fatalf("read back %q, want %q: %v", c.Assistant, value, err)
		}
		was, is := strings.Split(string(start), "\n"), strings.Split(string(text), "\n")
		for i := range was {
			if was[i] != is[i] && !strings.Contains(is[i], "MEMEX_ASSISTANT") {
				rt.Fatalf("line %d became %q", i+1, is[i])
			}
		}
		back, err := config.Edit(environ, reading(string(text), 0o600), config.Change{Key: "MEMEX_ASSISTANT"})
		if err != nil || string(back) != string(start) {
			rt.Fatalf("taking it out left a difference: %v", err)
		}
	})
}

func TestAnEditIsRefusedWhereTheFileWouldNotLoad(t *testing.T) {
	for _, tt := range []struct {
		c    config.Change
		want string
	}{
		{config.Change{Key: "MEMEX_USR", Value: "x"}, "did you mean MEMEX_USER"},
		{config.Change{Key: "OPENAI_API_KEY", Value: "sk-canary"}, "vault set OPENAI_API_KEY"},
		{config.Change{Key: "PASSEPARTOUT_CONFIG_DIR", Value: "/x"}, "process environment"},
		{config.Change{Key: "PASSEPARTOUT_TCP", Value: "0.0.0.0:1"}, "loopback"},
		{config.Change{Key: "MEMEX_USER", Value: "a\nOPENAI_API_KEY=sk-canary-2"}, "want"},
		{config.Change{Key: "MEMEX_USER", Value: "a\x1b[2J"}, "control character"},
	} {
		// The environment sets the same key, which must not hide the mistake.
		_, err := config.Edit(append(environ, "PASSEPARTOUT_TCP=127.0.0.1:1"), missing, tt.c)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "sk-canary") {
			t.Errorf("%s: %v, want %q", tt.c.Key, err, tt.want)
		}
	}
}

func TestWriteFileFollowsALinkAndIsForItsOwner(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "dotfiles"), filepath.Join(dir, "config", "env")
	if err := errors.Join(os.WriteFile(real, nil, 0o644), os.Mkdir(filepath.Dir(link), 0o700), os.Symlink(real, link)); err != nil {
		t.Fatal(err)
	}
	if err := config.WriteFile(link, []byte("MEMEX_USER=Jean\n")); err != nil {
		t.Fatal(err)
	}
	text, mode, err := config.ReadFile(real)
	st, lerr := os.Lstat(link)
	if err != nil || lerr != nil || string(text) != "MEMEX_USER=Jean\n" || mode.Perm() != 0o600 || st.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("%q with mode %v; the link is %v: %v %v", text, mode, st.Mode(), err, lerr)
	}
}

func TestTheVaultGivesSecretsThatNobodySet(t *testing.T) {
	c := load(t, append(environ, "GROQ_API_KEY=from-env"), "")
	full, err := c.WithVault(map[string]string{"OPENAI_API_KEY": "from-vault", "GROQ_API_KEY": "not used", "MEMEX_USER": "nobody", "other": "x y"})
	if err != nil {
		t.Fatal(err)
	}
	if full.Keys["openai"].Reveal() != "from-vault" || full.Keys["groq"].Reveal() != "from-env" || full.User != "" {
		t.Error("the wrong values were taken")
	}
	if full.Origin("OPENAI_API_KEY").String() != "vault" || shown(full, "OPENAI_API_KEY") != "set" {
		t.Errorf("the origin is %v", full.Origin("OPENAI_API_KEY"))
	}
	if c.Keys["openai"].IsSet() {
		t.Error("the settings it was called on were changed")
	}
	if _, err := c.WithVault(map[string]string{"OPENAI_API_KEY": "two words canary"}); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("a malformed key: %v", err)
	}
}
