package skill

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"passepartout/internal/sexp"
)

// Options say where skills come from and what their jails are given.
type Options struct {
	Dir     string                       // installed skills: *.org files and folders with a SKILL.md; need not exist
	Grants  string                       // file of what the user granted
	Bundled fs.FS                        // skills that came with the program; an installed one of the same name wins; may be nil
	Memory  Memory                       // behind the capability "memory"; nil: there is none
	Journal func(limit int) []sexp.Plist // behind the capability "journal", newest first; nil: there is none
	Now     func() time.Time
}

// A Library holds the skills in force and follows their files. It is safe for
// concurrent use.
type Library struct {
	opt  Options
	jail *jail
	cur  atomic.Pointer[Set]
	busy atomic.Bool // skills are being loaded

	mu   sync.Mutex // guards what follows; held while skills load
	seen []stamp
}

// A stamp tells one state of a file from the next.
type stamp struct {
	path string
	info fs.FileInfo
}

func (a stamp) same(b stamp) bool {
	return a.path == b.path && a.info.Size() == b.info.Size() && a.info.ModTime().Equal(b.info.ModTime()) && os.SameFile(a.info, b.info)
}

// Open loads all skills. Files that do not load are the set's problems, not an
// error: a broken skill must not keep the agent from starting.
func Open(o Options) (*Library, error) {
	if o.Now == nil || o.Dir == "" || o.Grants == "" {
		return nil, errors.New("skills: want a directory, a file of grants and a clock")
	}
	l := &Library{opt: o, jail: newJail(o)}
	if _, err := l.jail.image(); err != nil {
		return nil, fmt.Errorf("skills: %w", err)
	}
	l.cur.Store(&Set{jail: l.jail})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = l.look()
	l.cur.Store(l.load())
	return l, nil
}

// Set is the generation in force. Whoever needs several answers that belong
// together asks one set.
func (l *Library) Set() *Set { return l.cur.Load() }

// Refresh looks at the files and loads what changed. It returns the generation
// in force afterwards. While somebody else is loading it does not wait: a skill that
// takes long to load must not hold up everybody.
func (l *Library) Refresh() *Set {
	if !l.mu.TryLock() {
		if l.busy.Load() {
			return l.cur.Load()
		}
		l.mu.Lock() // somebody is only looking, perhaps before the last change
	}
	defer l.mu.Unlock()
	return l.refresh()
}

func (l *Library) refresh() *Set {
	seen := l.look()
	if slices.EqualFunc(seen, l.seen, stamp.same) {
		return l.cur.Load()
	}
	l.seen = seen
	l.busy.Store(true)
	defer l.busy.Store(false)
	set := l.load()
	l.cur.Store(set)
	return set
}

// look lists the files skills are read from, with what tells their versions apart.
func (l *Library) look() []stamp {
	paths := []string{l.opt.Grants}
	if es, err := os.ReadDir(l.opt.Dir); err == nil {
		for _, e := range es {
			switch p := filepath.Join(l.opt.Dir, e.Name()); {
			case strings.HasPrefix(e.Name(), "."):
			case e.IsDir():
				paths = append(paths, filepath.Join(p, guideFile))
			case strings.HasSuffix(e.Name(), ".org"):
				paths = append(paths, p)
			}
		}
	}
	var out []stamp
	for _, p := range paths {
		if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() {
			out = append(out, stamp{p, info})
		}
	}
	return out
}

const guideFile = "SKILL.md"

// load makes the next generation. What did not change is taken over with its
// account; what does not load stays as it was.
func (l *Library) load() *Set {
	old, next := l.cur.Load(), &Set{jail: l.jail}
	grants, err := LoadGrants(l.opt.Grants)
	if err != nil {
		next.Problems = append(next.Problems, Problem{Name: "grants", File: l.opt.Grants, Err: fmt.Errorf("nothing is granted: %w", err)})
	}
	all := l.read(old, next)
	all.hold(grants, next)
	ord := arrange(all.sources)
	for _, n := range names(ord.failed) {
		all.failed[n] = ord.failed[n]
	}
	for _, n := range ord.sorted {
		below := slices.DeleteFunc(ord.below[n], func(b string) bool { return all.failed[b] != nil && !ord.asked[n][b] })
		k, err := l.one(old, all, below, all.sources[n], grants)
		if err != nil {
			all.failed[n] = err
			continue
		}
		next.Skills = append(next.Skills, k)
		if missing := errors.Join(ord.lacks[n], k.missing(all.sources)); missing != nil {
			next.Problems = append(next.Problems, Problem{Name: n, File: k.File, Err: fmt.Errorf("%w; it is in force without", missing)})
		}
	}
	for _, n := range names(all.failed) {
		p := Problem{Name: n, File: all.files[n], Err: all.failed[n]}
		if k, ok := old.Find(n); ok {
			next.Skills = append(next.Skills, k)
			p.Kept = true
		}
		next.Problems = append(next.Problems, p)
	}
	slices.SortFunc(next.Skills, func(a, b *Skill) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(next.Guides, func(a, b Guide) int { return cmp.Compare(a.Name, b.Name) })
	return next
}

// hold puts what the user granted something in the place of a file that changed
// since. Whoever changed it did not ask, and the grant was not for this.
func (f *found) hold(g Grants, next *Set) {
	for _, n := range names(g.byName) {
		src, failed := f.sources[n], f.failed[n]
		if src == nil && failed == nil || failed == nil && !g.stale(n, src.digest) {
			continue // gone, or as it was
		}
		p := Problem{Name: n, File: f.files[n], Held: true}
		switch raw, kept := g.granted(n); {
		case f.bundled[n]:
			p.Held = false
			p.Err = fmt.Errorf("%s: it came anew with the program and runs without what was granted to it before: passepartout skill grant %s %s", p.File, n, strings.Join(g.byName[n].Capabilities, " "))
		case kept:
			was, err := parse(n, p.File, raw)
			if err != nil {
				continue // it was in force once; what is wrong with the file is told
			}
			f.sources[n] = was
			delete(f.failed, n)
			p.Kept = true
			p.Err = fmt.Errorf("%s: changed since its capabilities were granted; to take the change up: passepartout skill grant %s %s, or skill revoke %s", p.File, n, strings.Join(g.byName[n].Capabilities, " "), n)
		case failed != nil:
			continue
		default:
			f.held[n] = true
			p.Err = fmt.Errorf("%s: changed since its capabilities were granted, and is in quarantine: only its gate is in force, without them; passepartout skill grant %s %s, or skill revoke %s", p.File, n, strings.Join(g.byName[n].Capabilities, " "), n)
		}
		next.Problems = append(next.Problems, p)
	}
}

// found is what lies in the directories.
type found struct {
	held    map[string]bool // changed after a grant, and the version granted is not kept
	sources map[string]*source
	bundled map[string]bool
	files   map[string]string // by name, also of what does not parse
	failed  map[string]error
}

func (f *found) add(base, file string, raw []byte, err error, bundled bool) {
	name, nerr := NameOf(base)
	if nerr != nil {
		f.files[base], f.failed[base] = file, nerr
		return
	}
	delete(f.failed, name)
	delete(f.sources, name)
	f.files[name], f.bundled[name] = file, bundled
	var src *source
	if err == nil {
		src, err = parse(name, file, raw)
	}
	if err != nil {
		f.failed[name] = err
		return
	}
	f.sources[name] = src
}

// read reads everything, bundled skills first, and the guides into next.
func (l *Library) read(old, next *Set) *found {
	f := &found{held: map[string]bool{}, sources: map[string]*source{}, bundled: map[string]bool{}, files: map[string]string{}, failed: map[string]error{}}
	if l.opt.Bundled != nil {
		paths, _ := fs.Glob(l.opt.Bundled, "*.org") // the pattern is well formed
		for _, p := range paths {
			raw, err := fs.ReadFile(l.opt.Bundled, p)
			f.add(p, "bundled/"+p, raw, err, true)
		}
	}
	for _, s := range l.seen {
		if s.path == l.opt.Grants {
			continue
		}
		raw, err := readSmall(s.path)
		if filepath.Base(s.path) != guideFile {
			f.add(filepath.Base(s.path), s.path, raw, err, false)
			continue
		}
		folder := filepath.Base(filepath.Dir(s.path))
		var g Guide
		if err == nil {
			g, err = parseGuide(folder, s.path, raw)
		}
		if err == nil {
			next.Guides = append(next.Guides, g)
			continue
		}
		p := Problem{Name: folder, File: s.path, Err: err}
		if g, gerr := old.Guide(folder); gerr == nil {
			next.Guides = append(next.Guides, g)
			p.Kept = true
		}
		next.Problems = append(next.Problems, p)
	}
	return f
}

func readSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxSource+1))
	return raw, errors.Join(err, f.Close())
}

// one loads a skill, unless the running version is the same in every respect.
func (l *Library) one(old *Set, all *found, below []string, src *source, g Grants) (*Skill, error) {
	caps := g.caps(src.name, src.digest)
	ident := []sexp.Value{sexp.String(src.file), sexp.String(src.digest.String()), sexp.Strings(capWords(caps)), sexp.Bool(all.held[src.name])}
	var deps []*source
	for _, b := range below {
		if err := all.failed[b]; err != nil {
			return nil, fmt.Errorf("%s: builds on %s, which does not load", src.file, b)
		}
		deps = append(deps, all.sources[b])
		ident = append(ident, sexp.String(b), sexp.String(all.sources[b].digest.String()))
	}
	id := sexp.Sum(sexp.NewList(ident...))
	if k, ok := old.Find(src.name); ok && k.stamp == id {
		return k, nil
	}
	k, err := l.jail.skill(src, deps, below, g)
	if err != nil {
		return nil, err
	}
	k.stamp, k.Bundled, k.held = id, all.bundled[src.name], all.held[src.name]
	return k, nil
}

// missing says which of the skills it names in :dependencies are not there.
func (s *Skill) missing(all map[string]*source) (err error) {
	for _, d := range textList(s.about, "DEPENDENCIES") {
		if all[strings.TrimPrefix(d, "org-skill-")] == nil {
			err = errors.Join(err, fmt.Errorf("%s: :dependencies: there is no skill %s", s.File, d))
		}
	}
	return err
}

// skill loads one source with what the user granted it, as far as it asks for it.
func (j *jail) skill(src *source, deps []*source, below []string, g Grants) (*Skill, error) {
	caps := g.caps(src.name, src.digest)
	l, err := j.load(src, deps, caps)
	if err != nil {
		return nil, err
	}
	k, err := newSkill(src, below, caps, l)
	if err != nil {
		return nil, err
	}
	wants, err := parseCaps(k.Wants)
	if err != nil {
		return nil, err
	}
	k.caps &= wants
	k.Has = capWords(k.caps)
	if _, err := k.Tools(); err != nil {
		return nil, err
	}
	return k, nil
}

// Try loads a file beside the skills in force, without putting it into force.
func (l *Library) Try(path string) (*Skill, error) {
	name, err := NameOf(filepath.Base(path))
	if err != nil {
		return nil, err
	}
	raw, err := readSmall(path)
	if err != nil {
		return nil, err
	}
	grants, err := LoadGrants(l.opt.Grants)
	if err != nil {
		return nil, err
	}
	k, _, err := l.Set().try(name, path, raw, grants) // what is missing may be installed later
	return k, err
}

// OnDisk is a skill as its file is now, also when another version is in force.
func (l *Library) OnDisk(name string) (*Skill, bool, error) {
	set := l.Set()
	for _, p := range set.Problems {
		if p.Name == name && p.Held {
			k, err := l.Try(p.File)
			return k, true, err
		}
	}
	k, ok := set.Find(name)
	return k, ok, nil
}

// Install tries a draft once more, writes it among the installed skills and puts
// it into force.
func (l *Library) Install(name string, text []byte) (*Skill, error) {
	k, err := l.Set().Draft(name, text)
	if err != nil {
		return nil, err
	}
	if _, err := Forget(l.opt.Grants, k.Name); err != nil {
		return nil, err
	}
	if err := WriteFile(filepath.Join(l.opt.Dir, k.Name+".org"), text, 0o600); err != nil {
		return nil, err
	}
	l.mu.Lock() // unlike Refresh, wait: the caller will say that it is in force
	l.refresh()
	l.mu.Unlock()
	if now, ok := l.Set().Find(k.Name); !ok || now.Digest != k.Digest {
		return nil, fmt.Errorf("%s was written and is not in force: %v", k.Name, l.Set().Problems)
	}
	return k, nil
}

// Source is the file a skill was loaded from, as it was read.
func (s *Skill) Source() []byte { return slices.Clone(s.src.raw) }
