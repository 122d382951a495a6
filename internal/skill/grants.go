package skill

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"passepartout/internal/durable"
	"passepartout/internal/lisp"
	"passepartout/internal/sexp"
)

// Grants is what the user lets skills use. A grant holds for the bytes of the
// file it was given to, and those bytes are kept beside it: what was granted is what
// runs, until the user grants or revokes again.
type Grants struct {
	byName map[string]Grant
	dir    string // of the file they were read from
}

// A Grant is the capabilities of one version of one skill.
type Grant struct {
	Name         string
	Digest       sexp.Digest
	Capabilities []string
	Source       []byte // the file that was granted, to be kept; nil: do not
}

// LoadGrants reads the file of grants; one that does not exist grants nothing.
func LoadGrants(path string) (Grants, error) {
	g := Grants{byName: map[string]Grant{}, dir: filepath.Dir(path)}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return g, nil
	}
	if err != nil {
		return g, err
	}
	for i, line := range strings.Split(string(raw), "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		p, err := sexp.ReadPlist([]byte(line), sexp.Limits{})
		if err != nil {
			return Grants{}, fmt.Errorf("%s:%d: %w", path, i+1, err)
		}
		digest, err := sexp.ParseDigest(p.Text("DIGEST"))
		if err != nil {
			return Grants{}, fmt.Errorf("%s:%d: %w", path, i+1, err)
		}
		n := Grant{Name: p.Text("NAME"), Digest: digest, Capabilities: textList(p, "CAPABILITIES")}
		if _, err := parseCaps(n.Capabilities); err != nil {
			return Grants{}, fmt.Errorf("%s:%d: %w", path, i+1, err)
		}
		g.byName[n.Name] = n
	}
	return g, nil
}

// caps is what a version of a skill was granted.
func (g Grants) caps(name string, digest sexp.Digest) lisp.Caps {
	n, ok := g.byName[name]
	if !ok || n.Digest != digest {
		return 0
	}
	c, err := parseCaps(n.Capabilities)
	if err != nil {
		return 0
	}
	return c
}

// stale reports whether there is a grant for another version of the skill.
func (g Grants) stale(name string, digest sexp.Digest) bool {
	n, ok := g.byName[name]
	return ok && n.Digest != digest
}

// pin is where the bytes of a granted file are kept.
func (g Grants) pin(n Grant) string {
	return filepath.Join(g.dir, "granted", fmt.Sprintf("%s-%.12s.org", n.Name, n.Digest))
}

// granted is the file as it was when the user granted it something, if it was kept.
func (g Grants) granted(name string) ([]byte, bool) {
	n, ok := g.byName[name]
	if !ok || !namePattern.MatchString(name) {
		return nil, false
	}
	raw, err := readSmall(g.pin(n))
	return raw, err == nil && sexp.Digest(sha256.Sum256(raw)) == n.Digest
}

// Set gives a skill exactly these capabilities; none takes its grant away.
func (g Grants) Set(n Grant) error {
	if _, err := parseCaps(n.Capabilities); err != nil {
		return err
	}
	slices.Sort(n.Capabilities)
	if len(n.Capabilities) == 0 {
		delete(g.byName, n.Name)
	} else {
		g.byName[n.Name] = n
	}
	return nil
}

// Save writes the grants, whole or not at all, after the files that were granted.
func (g Grants) Save(path string) error {
	var b strings.Builder
	g.dir = filepath.Dir(path)
	keep := map[string]bool{}
	for _, name := range names(g.byName) {
		n := g.byName[name]
		keep[g.pin(n)] = true
		if n.Source != nil {
			if err := WriteFile(g.pin(n), n.Source, 0o600); err != nil {
				return err
			}
		}
		b.WriteString(sexp.P(sexp.Keyword("NAME"), n.Name, sexp.Keyword("DIGEST"), n.Digest.String(),
			sexp.Keyword("CAPABILITIES"), sexp.Strings(n.Capabilities)).String() + "\n")
	}
	if err := WriteFile(path, []byte(b.String()), 0o600); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(g.dir, "granted", "*.org"))
	for _, f := range old {
		if !keep[f] {
			err = errors.Join(err, os.Remove(f))
		}
	}
	return err
}

// Forget takes back what a skill was granted, because another version of it is put
// in its place. It reports whether there was anything.
func Forget(path, name string) (bool, error) {
	g, err := LoadGrants(path)
	if _, had := g.byName[name]; err != nil || !had {
		return false, err
	}
	delete(g.byName, name)
	return true, g.Save(path)
}

// WriteFile writes a file of the skills whole or not at all, and makes its
// directory.
func WriteFile(path string, text []byte, mode fs.FileMode) error {
	if err := durable.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return durable.Replace(path, text, mode)
}
