package skill

import (
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
// file it was given to: a changed skill has to be granted again.
type Grants struct {
	byName map[string]Grant
}

// A Grant is the capabilities of one version of one skill.
type Grant struct {
	Name         string
	Digest       sexp.Digest
	Capabilities []string
}

// LoadGrants reads the file of grants; one that does not exist grants nothing.
func LoadGrants(path string) (Grants, error) {
	g := Grants{byName: map[string]Grant{}}
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

// Save writes the grants, whole or not at all.
func (g Grants) Save(path string) error {
	var b strings.Builder
	for _, name := range names(g.byName) {
		n := g.byName[name]
		b.WriteString(sexp.P(sexp.Keyword("NAME"), n.Name, sexp.Keyword("DIGEST"), n.Digest.String(),
			sexp.Keyword("CAPABILITIES"), sexp.Strings(n.Capabilities)).String() + "\n")
	}
	return WriteFile(path, []byte(b.String()), 0o600)
}

// WriteFile writes a file of the skills whole or not at all, and makes its
// directory.
func WriteFile(path string, text []byte, mode fs.FileMode) error {
	if err := durable.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return durable.Replace(path, text, mode)
}
