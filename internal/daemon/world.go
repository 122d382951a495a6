package daemon

import (
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"passepartout/internal/act"
	"passepartout/internal/gate"
	"passepartout/internal/memory"
	"passepartout/internal/place"
	"passepartout/internal/secret"
	"passepartout/internal/sexp"
	"passepartout/internal/skill"
)

// Limits of what the gates may read to make up their minds.
const (
	maxScript = 64 << 10
	maxGlob   = 1000
)

// A world answers the gates' questions about this machine. It only reads.
type world struct {
	scanner func() *secret.Scanner // as it is now
	places  place.Layout
	memory  *memory.Store // nil: no heading is known
	vault   *entries
}

var _ gate.World = world{}

// maxLinks bounds how many dangling links are followed one after the other.
const maxLinks = 40

// Real resolves the links of the longest part of a path that exists, and those
// that lead to nothing yet: that is where a write would go.
func (w world) Real(path string) (string, bool) {
	full := path
	for range maxLinks {
		next, dangling := realPrefix(full)
		if !dangling {
			return next, next != path
		}
		full = next
	}
	return full, true
}

// realPrefix resolves what exists of a path. When that ends at a link to nothing,
// it returns the link's target in its place, to be resolved in turn.
func realPrefix(path string) (real string, dangling bool) {
	rest := ""
	for dir := path; ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest), false
		}
		if to, err := os.Readlink(dir); err == nil {
			if !filepath.IsAbs(to) {
				to = filepath.Join(filepath.Dir(dir), to)
			}
			return filepath.Join(to, rest), true
		}
		if dir == filepath.Dir(dir) {
			return path, false
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

// Read returns a script's text. What it returns is recorded with the ruling, so a
// file that is where credentials are, one that holds one anywhere, and a note, whose
// tags may say that it is private, are not returned.
func (w world) Read(path string) (string, bool) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil || sealedPlace(w.places, path) || sealedPlace(w.places, real) || isNote(real) {
		return "", false
	}
	st, err := os.Stat(real)
	if err != nil || !st.Mode().IsRegular() || st.Size() > maxScript {
		return "", false
	}
	f, err := os.Open(real)
	if err != nil {
		return "", false
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxScript+1))
	if err != nil || len(raw) > maxScript || !utf8.Valid(raw) || w.scanner().Has(string(raw)) {
		return "", false
	}
	return string(raw), true
}

func isNote(path string) bool {
	ext := strings.ToLower(filepath.Ext(path))
	return ext == ".org" || ext == ".org_archive"
}

// Glob lists what a pattern stands for; too many matches are no answer.
func (w world) Glob(pattern string) ([]string, bool) {
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 || len(paths) > maxGlob {
		return nil, false
	}
	slices.Sort(paths)
	return paths, true
}

// Know implements [gate.World].
func (w world) Know(what, text string) []string {
	switch what {
	case "secret":
		return rules(w.scanner().Scan(text))
	case "split":
		var out []string
		for _, ms := range w.scanner().ScanAll(strings.Split(text, "\x00")) {
			out = append(out, rules(ms)...)
		}
		slices.Sort(out)
		return slices.Compact(out)
	case "tags":
		if w.memory == nil {
			return nil
		}
		return w.memory.Tags(text)
	case "file":
		if w.memory == nil {
			return nil
		}
		return act.Memex{Store: w.memory}.Holding(text)
	case "links":
		return linkNames(text)
	case skill.KnowObject, skill.KnowObjects:
		return w.objects(what, text)
	case "vault":
		if _, ok := w.vault.get(text); ok {
			return []string{text}
		}
	}
	return nil
}

// objects is what a skill's gate may see of the memex. It will be recorded, so it is
// without credentials.
func (w world) objects(what, text string) []string {
	m := skillMemory{w.memory}
	var found iter.Seq[sexp.Plist]
	if what == skill.KnowObject {
		o, ok := m.Lookup(text)
		if !ok {
			return nil
		}
		found = slices.Values([]sexp.Plist{o})
	} else {
		key, value, _ := strings.Cut(text, "=")
		found = m.having(key, value)
	}
	out := skill.Known(found)
	for i, s := range out {
		if w.scanner().Has(s) {
			out[i] = w.scanner().Redact(s)
		}
	}
	return out
}

func rules(ms []secret.Match) []string {
	var out []string
	for _, m := range ms {
		name := m.Rule
		if m.Class == secret.Known {
			name = "vault:" + strings.TrimPrefix(name, "vault-") // the gates' word for a value we keep
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// linkNames says that a file has other names, which cannot be listed cheaply.
func linkNames(path string) []string {
	if n, ok := links(path); ok && n > 1 {
		return []string{""}
	}
	return nil
}

// links is how many names a regular file has.
func links(path string) (int, bool) {
	st, err := os.Lstat(path)
	if err != nil || !st.Mode().IsRegular() {
		return 0, false
	}
	return nlink(st)
}
