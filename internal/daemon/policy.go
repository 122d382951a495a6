package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"passepartout/internal/gate"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
	"passepartout/internal/skill"
)

// policyFiles are the Org files a policy is read from, in the memex.
var policyFiles = []string{permissionsFile, rulesFile}

// A policySource keeps the chain in step with the policy's files: it looks at
// them before each use. A file that does not parse leaves the last good policy in
// force, and says so.
type policySource struct {
	memex      string
	base       gate.Policy // what does not come from files
	vocabulary *proto.Vocabulary
	skills     *skill.Library // whose gates are added to the chain; nil: none
	record     func(sexp.Plist) error
	log        *slog.Logger
	wait       func() // between two looks at a file that is being saved; nil: a moment

	mu     sync.Mutex // guards what follows
	seen   []fileState
	now    *gate.Chain
	tools  map[string]gate.Decision // what the permissions say, by name
	set    *skill.Set               // the skills now was built with
	failed error
}

// A fileState is what tells one version of a file from the next.
type fileState struct {
	size  int64
	mtime time.Time
	ok    bool
}

func stateOf(path string) fileState {
	st, err := os.Stat(path)
	if err != nil {
		return fileState{}
	}
	return fileState{st.Size(), st.ModTime(), true}
}

// open reads the policy for the first time, when a mistake in it is fatal.
func (p *policySource) open() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = p.look()
	p.refresh()
	c, err := p.build()
	if err != nil {
		return err
	}
	p.now = c
	return nil
}

// chain is the chain in force.
func (p *policySource) chain() *gate.Chain {
	if p.skills != nil {
		p.skills.Refresh() // not under the lock: loading a skill may take a while
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := p.look()
	if !p.refresh() && equalStates(seen, p.seen) {
		return p.now
	}
	p.seen = p.settled(seen)
	c, err := p.build()
	p.failed = err
	if err != nil {
		p.log.Error("the policy does not load; the last good one stays in force", "error", err)
		return p.now
	}
	p.log.Info("policy loaded", "digest", c.Policy().String())
	p.now = c
	return c
}

// refresh takes up skills that were loaded, and reports whether any did.
func (p *policySource) refresh() bool {
	if p.skills == nil {
		return false
	}
	set := p.skills.Set()
	if set == p.set {
		return false
	}
	p.set = set
	tellSkills(p.log, set)
	if err := p.record(set.Plist()); err != nil {
		p.log.Error("the skills in force could not be recorded", "error", err)
	}
	return true
}

// forbids reports whether the permissions rule a verb out, so that it need not be
// offered. The gate decides; this only spares a model the attempt.
func (p *policySource) forbids(v proto.Verb) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range []string{v.String(), v.Tool, "*"} {
		if d, ok := p.tools[name]; ok && name != "" {
			return d == gate.Deny
		}
	}
	return false
}

// problem is why the files do not load at present, nil when they do.
func (p *policySource) problem() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

func (p *policySource) look() []fileState {
	out := make([]fileState, len(policyFiles))
	for i, f := range policyFiles {
		out[i] = stateOf(filepath.Join(p.memex, f))
	}
	return out
}

// A file that is being saved may be empty, or not there, for a moment. It is given
// this long: without it a person's prohibitions would not hold meanwhile.
const (
	saveLooks = 20
	savePause = 10 * time.Millisecond
)

// settled looks again while a file that had something in it has nothing.
func (p *policySource) settled(seen []fileState) []fileState {
	gone := func() bool {
		for i := range min(len(seen), len(p.seen)) {
			if seen[i].size == 0 && p.seen[i].size > 0 {
				return true
			}
		}
		return false
	}
	wait := p.wait
	if wait == nil {
		wait = func() { time.Sleep(savePause) }
	}
	for n := 0; n < saveLooks && gone(); n++ {
		wait()
		seen = p.look()
	}
	return seen
}

func equalStates(a, b []fileState) bool {
	for i := range a {
		if a[i].size != b[i].size || a[i].ok != b[i].ok || !a[i].mtime.Equal(b[i].mtime) {
			return false
		}
	}
	return true
}

// load reads the policy as its files say now.
func (p *policySource) load() (gate.Policy, error) {
	pol := p.base
	perms, name, err := p.permissions()
	if err != nil {
		return pol, err
	}
	if pol.Permissions, err = gate.ParsePermissions(name, perms, p.vocabulary); err != nil {
		return pol, err
	}
	rules, name, err := p.read(rulesFile)
	if errors.Is(err, fs.ErrNotExist) {
		return pol, nil
	}
	if err != nil {
		return pol, err
	}
	pol.Rules, err = gate.ParseRules(name, rules, p.vocabulary)
	return pol, err
}

// build makes the chain of the policy, and records a policy that is new.
func (p *policySource) build() (*gate.Chain, error) {
	pol, err := p.load()
	if err != nil {
		return nil, err
	}
	var extra []gate.Gate
	if p.set != nil {
		extra = append(p.set.Gates(), p.set.Drafts())
	}
	c, err := gate.Standard(pol, p.vocabulary, extra...)
	if err != nil {
		return nil, err
	}
	p.tools = map[string]gate.Decision{}
	for _, row := range pol.Permissions {
		p.tools[row.Name] = row.Decision
	}
	if p.now != nil && p.now.Policy() == c.Policy() {
		return c, nil
	}
	entry := sexp.P(sexp.Keyword("KIND"), sexp.Keyword("POLICY"), sexp.Keyword("DIGEST"), pol.Digest().String(), sexp.Keyword("POLICY"), pol.Plist())
	if err := p.record(entry); err != nil {
		return nil, fmt.Errorf("recording the policy: %w", err)
	}
	return c, nil
}

// permissions is the table of tools: the memex's, or the built-in one.
func (p *policySource) permissions() (text []byte, name string, err error) {
	text, name, err = p.read(permissionsFile)
	if errors.Is(err, fs.ErrNotExist) {
		name = "built-in " + permissionsFile
		text, err = BuiltInPermissions(), nil
	}
	return text, name, err
}

// BuiltInPermissions is the text of the table of tools that holds where a memex has
// none of its own.
func BuiltInPermissions() []byte {
	text, err := demoFiles.ReadFile("demo/" + permissionsFile)
	if err != nil {
		panic(err) // it is part of this binary
	}
	return text
}

func (p *policySource) read(name string) ([]byte, string, error) {
	path := filepath.Join(p.memex, filepath.FromSlash(name))
	raw, err := os.ReadFile(path)
	return raw, path, err
}
