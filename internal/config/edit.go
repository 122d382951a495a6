package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"passepartout/internal/durable"
	"passepartout/internal/sexp"
)

// A Change gives a setting a value in the settings file; an empty value takes it
// out.
type Change struct{ Key, Value string }

// Edit returns the text of the settings file after some changes, checked as
// [Load] checks it. A setting stays where it stands; a new one goes where its
// comment explains it. Where there is no file yet, every setting's comment is
// written first. Secrets are refused: they belong in the vault.
func Edit(environ []string, read ReadFunc, changes ...Change) ([]byte, error) {
	for _, c := range changes {
		if err := mayEdit(c.Key); err != nil {
			return nil, err
		}
		if strings.ContainsFunc(c.Value, unicode.IsControl) { // a line break would begin another setting
			return nil, fmt.Errorf("%s: want one line of text, found a control character", c.Key)
		}
	}
	path, err := FilePath(environ)
	if err != nil {
		return nil, err
	}
	text, _, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		text, err = []byte(fileHead+strings.TrimPrefix(Example(), exampleHead)), nil
	}
	if err != nil {
		return nil, fmt.Errorf("settings file: %w", err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for _, c := range changes {
		lines = edited(lines, c)
	}
	out := []byte(strings.Join(lines, "\n") + "\n")
	return out, CheckFile(environ, out)
}

// CheckFile says what is wrong with a settings file before it is put in place.
// What the process environment sets is left out of account, so that nothing in
// the file escapes the check.
func CheckFile(environ []string, text []byte) error {
	bare := slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		key, _, _ := strings.Cut(kv, "=")
		s, known := find(key)
		return known && !s.EnvOnly || !known && strings.HasPrefix(key, prefix)
	})
	_, err := Load(bare, func(string) ([]byte, fs.FileMode, error) { return text, 0o600, nil })
	return err
}

// FilePath is where the settings file is, or would be.
func FilePath(environ []string) (string, error) {
	l := loader{env: map[string]string{}, raw: map[string]rawValue{}}
	l.environment(environ)
	dir, err := l.configDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "env"), nil
}

// mayEdit says why a setting cannot stand in the file.
func mayEdit(key string) error {
	s, known := find(key)
	switch {
	case !known:
		if near, ok := sexp.Nearest(key, keys()); ok {
			return fmt.Errorf("there is no setting %s: did you mean %s?", key, near)
		}
		return fmt.Errorf("there is no setting %s: see passepartout config list", key)
	case s.EnvOnly:
		return fmt.Errorf("%s says where the settings file is: set it in the process environment", key)
	case s.Secret:
		return fmt.Errorf("%s is a secret: keep it with passepartout vault set %s", key, key)
	}
	return nil
}

// edited is the file after one change.
func edited(lines []string, c Change) []string {
	s, _ := find(c.Key)
	line := c.Key + "=" + quote(c.Value)
	if c.Value == "" {
		line = "#" + c.Key + "=" + s.example()
	}
	commented := -1
	for i, have := range lines {
		t := strings.TrimPrefix(strings.TrimSpace(have), "export ")
		switch {
		case strings.HasPrefix(t, c.Key+"="):
			lines[i] = line
			return lines
		case strings.HasPrefix(t, "#"+c.Key+"=") && commented < 0:
			commented = i
		}
	}
	switch {
	case commented >= 0:
		lines[commented] = line
	case c.Value != "":
		lines = append(lines, line)
	}
	return lines
}

// quote writes a value so that parseValue reads it back.
func quote(v string) string {
	switch {
	case !strings.ContainsAny(v, " \t#'\"\\"):
		return v
	case !strings.Contains(v, "'"):
		return "'" + v + "'"
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(v) + `"`
}

// WriteFile puts a settings file in place, all or nothing, for its owner alone. A
// link is followed, for those who keep their settings elsewhere.
func WriteFile(path string, text []byte) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if err := durable.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return durable.Replace(path, text, 0o600)
}

// WithVault returns the settings with those secrets that nobody set taken from
// the vault, where an entry is called as the setting.
func (c Config) WithVault(values map[string]string) (Config, error) {
	l := loader{c: c}
	l.c.Keys, l.c.channels, l.c.values, l.c.origins = maps.Clone(c.Keys), maps.Clone(c.channels), maps.Clone(c.values), maps.Clone(c.origins)
	for i := range table {
		s := &table[i]
		value := values[s.Key]
		if !s.Secret || value == "" || !c.origins[s.Key].IsDefault() {
			continue
		}
		origin := Origin{Vault: true}
		if err := l.assign(s, value); err != nil {
			l.errorf(origin, "%s: want %w, found a value of %d characters", s.Key, err, len(value))
			continue
		}
		l.c.origins[s.Key] = origin
	}
	return l.c, errors.Join(l.errs...)
}
