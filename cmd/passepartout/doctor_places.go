package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"passepartout/internal/config"
	"passepartout/internal/org"
	"passepartout/internal/sandbox"
	"passepartout/internal/vault"
)

// others are the permission bits of everybody but the owner; writers those with
// which they can change something.
const (
	others  fs.FileMode = 0o077
	writers fs.FileMode = 0o022
)

// private wants a path without some permission bits, and can take them away.
func private(id, path string, without fs.FileMode, why string) (finding, bool) {
	st, err := os.Stat(path)
	if err != nil || st.Mode().Perm()&without == 0 {
		return finding{}, false
	}
	mode := st.Mode().Perm() &^ without
	return bad(id, "%s has mode %04o: %s", path, st.Mode().Perm(), why).by(fmt.Sprintf("chmod %04o %s", mode, path), func() error {
		return os.Chmod(path, mode)
	}), true
}

// settingsFindings look at the settings file itself, and whether it loads.
func (a *app) settingsFindings() []finding {
	var out []finding
	path, err := config.FilePath(a.environ)
	if err != nil {
		return []finding{bad("settings", "%v", err)}
	}
	if f, found := private("settings.mode", path, others, "others can read or change the settings"); found {
		out = append(out, f)
	}
	if f, found := private("settings.folder", filepath.Dir(path), writers, "others can put files there"); found {
		out = append(out, f)
	}
	cfg, err := a.config()
	if err != nil {
		return append(out, bad("settings", "%v", err))
	}
	out = append([]finding{well("settings", "read; the memex is %s, state is in %s", cfg.MemexDir, cfg.StateDir)}, out...)
	var kept []string
	for _, it := range cfg.List() {
		if it.Setting.Secret && it.Origin.File != "" {
			kept = append(kept, it.Setting.Key)
		}
	}
	if len(kept) > 0 {
		out = append(out, weak("settings.secrets", "%s in the settings file as plain text: keep it with passepartout vault set, and take it out", strings.Join(kept, ", ")))
	}
	return out
}

func (a *app) sandboxFindings(ctx context.Context, cfg *config.Config) []finding {
	f := sandboxFinding(ctx)
	if st := sandbox.Probe(ctx); cfg.Sandbox == "require" && st.Level != sandbox.Full {
		f.State = stateBad
		f.Note += "; PASSEPARTOUT_SANDBOX=require, so the daemon does not start"
	}
	out := []finding{f}
	for _, r := range cfg.WriteRoots {
		if home := a.getenv("HOME"); r == "/" || filepath.IsAbs(home) && within(home, r) {
			out = append(out, bad("sandbox.roots", "PASSEPARTOUT_WRITE_ROOTS lets commands write anywhere below %s without a question", r))
		}
	}
	return out
}

// within reports whether a path is dir or lies below it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// placeFindings look at the directories: whose they are, whether they mix, and
// whether there is room.
func (a *app) placeFindings(cfg *config.Config) []finding {
	var out []finding
	st, err := os.Stat(cfg.StateDir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		out = append(out, well("state", "%s is made at the first start", cfg.StateDir))
	case err != nil:
		out = append(out, bad("state", "%v", err))
	case !st.IsDir():
		out = append(out, bad("state", "%s is no directory", cfg.StateDir))
	case unix.Access(cfg.StateDir, unix.W_OK) != nil:
		out = append(out, bad("state", "%s may not be written by this user", cfg.StateDir))
	default:
		if f, found := private("state", cfg.StateDir, others, "others can look into it"); found {
			out = append(out, f)
		} else {
			out = append(out, well("state", "%s is the owner's alone", cfg.StateDir))
		}
	}
	for _, own := range []string{cfg.StateDir, cfg.ConfigDir} {
		if within(own, cfg.MemexDir) || within(cfg.MemexDir, own) {
			out = append(out, bad("places", "%s and the memex %s lie in each other: what the agent may write and what it may not must be apart", own, cfg.MemexDir))
		}
	}
	if f, found := private("skills.folder", filepath.Join(cfg.DataDir, "skills"), writers, "others can put skills there"); found {
		out = append(out, f)
	}
	if cfg.TCPAddr != "" {
		if f, found := private("token", cfg.TokenFile, others, "others can read the token that lets clients in"); found {
			out = append(out, f)
		} else if !exists(cfg.TokenFile) {
			out = append(out, bad("token", "PASSEPARTOUT_TCP is set, and there is no token in %s", cfg.TokenFile))
		}
	}
	if self, err := os.Executable(); err == nil {
		if f, found := private("binary", self, writers, "others can replace the program you run"); found {
			out = append(out, f)
		}
	}
	return append(out, diskFinding("disk", existingAbove(cfg.StateDir)))
}

// vaultFindings look at the vault, and open it if that needs nobody.
func (a *app) vaultFindings(cfg *config.Config) []finding {
	var out []finding
	place := vault.Place{Dir: cfg.ConfigDir, Ring: vault.SystemRing(a.environ)}
	for _, file := range place.Files() {
		if f, found := private("vault.mode", file, others, "others can read it, so it is not opened"); found {
			out = append(out, f)
		}
	}
	if file := cfg.VaultPassFile; file != "" {
		place.Passphrase = func(bool) (string, error) { return readPassphrase(file) }
		if f, found := private("vault.passphrase", file, others, "others can read the vault's passphrase"); found {
			out = append(out, f)
		} else if !exists(file) {
			out = append(out, bad("vault.passphrase", "there is no %s, which PASSEPARTOUT_VAULT_PASSPHRASE_FILE names", file))
		}
	}
	if len(out) > 0 {
		return out
	}
	v, err := vault.Open(place)
	switch {
	case errors.Is(err, vault.ErrNone):
		return []finding{well("vault", "none yet")}
	case errors.Is(err, vault.ErrLocked):
		return []finding{weak("vault", "%v; a daemon that starts by itself goes on without it", err)}
	case err != nil:
		return []finding{bad("vault", "%v", err)}
	}
	if _, err := cfg.WithVault(v.Values()); err != nil {
		return []finding{bad("vault", "%v", err)}
	}
	return []finding{well("vault", "opens: %d entries, its key kept by %s", len(v.List()), v.Guard())}
}

// maxOrg is the largest Org file doctor reads.
const maxOrg = 64 << 20

// memexFindings look at every Org file of the memex.
func memexFindings(cfg *config.Config) []finding {
	dir := cfg.MemexDir
	st, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []finding{bad("memex", "there is no folder of notes at %s", dir).by("make "+dir, func() error {
			_, err := makeMemex(dir)
			return err
		})}
	case err != nil:
		return []finding{bad("memex", "%v", err)}
	case !st.IsDir():
		return []finding{bad("memex", "%s is no directory", dir)}
	case unix.Access(dir, unix.W_OK|unix.X_OK|unix.R_OK) != nil:
		return []finding{bad("memex", "%s may not be written by this user", dir)}
	}
	var m memexLook
	if err := filepath.WalkDir(dir, m.visit); err != nil {
		return []finding{bad("memex", "%v", err)}
	}
	return append([]finding{well("memex", "%s, %d Org files", dir, m.files)}, m.findings(dir)...)
}

// A memexLook gathers what is odd about a memex.
type memexLook struct {
	files                               int
	unreadable, odd, links, copies, ids []string
	seen                                map[string]string // by id, where
}

func (m *memexLook) visit(path string, d fs.DirEntry, err error) error {
	if err != nil {
		m.unreadable = append(m.unreadable, path)
		return nil
	}
	name := d.Name()
	if d.IsDir() {
		if strings.HasPrefix(name, ".") && len(name) > 1 {
			return fs.SkipDir
		}
		return nil
	}
	if !strings.HasSuffix(name, ".org") || strings.HasPrefix(name, ".") {
		return nil
	}
	if strings.Contains(name, "sync-conflict") || strings.Contains(name, "conflicted copy") {
		m.copies = append(m.copies, path)
	}
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && d.Type()&fs.ModeSymlink != 0:
		m.links = append(m.links, path)
		return nil
	case err != nil || !st.Mode().IsRegular():
		m.unreadable = append(m.unreadable, path)
		return nil
	case st.Size() > maxOrg:
		m.odd = append(m.odd, path)
		return nil
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		m.unreadable = append(m.unreadable, path)
		return nil
	}
	m.files++
	if !utf8.Valid(raw) {
		m.odd = append(m.odd, path)
		return nil
	}
	m.identify(path, org.Parse(raw))
	return nil
}

// identify notes identifiers that another heading has too.
func (m *memexLook) identify(path string, f *org.File) {
	if m.seen == nil {
		m.seen = map[string]string{}
	}
	for h := range f.Headlines() {
		id := h.ID()
		if id == "" {
			continue
		}
		if first, twice := m.seen[id]; twice {
			m.ids = append(m.ids, fmt.Sprintf("%s in %s and %s", id, first, path))
			continue
		}
		m.seen[id] = path
	}
}

func (m *memexLook) findings(dir string) []finding {
	var out []finding
	tell := func(f finding, paths []string) {
		if len(paths) == 0 {
			return
		}
		slices.Sort(paths)
		const shown = 10
		for i, p := range paths {
			if i == shown {
				f.More = append(f.More, fmt.Sprintf("and %d more", len(paths)-shown))
				break
			}
			f.More = append(f.More, strings.ReplaceAll(p, dir+string(filepath.Separator), ""))
		}
		out = append(out, f)
	}
	tell(bad("memex.unreadable", "%d files cannot be read, so nothing in them is known", len(m.unreadable)), m.unreadable)
	tell(bad("memex.ids", "%d identifiers are there twice, so links and edits by them are not safe", len(m.ids)), m.ids)
	tell(weak("memex.text", "%d files are not UTF-8 or too large; they are left alone", len(m.odd)), m.odd)
	tell(weak("memex.links", "%d links lead to nothing", len(m.links)), m.links)
	tell(weak("memex.copies", "%d files look like conflicting copies that a program for synchronising left", len(m.copies)), m.copies)
	return out
}
