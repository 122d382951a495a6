package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"passepartout/internal/act"
	"passepartout/internal/gate"
	"passepartout/internal/proto"
	"passepartout/internal/secret"
)

// localChecker judges for this machine: this user's settings, the permissions
// and rules in the memex, links and scripts as they are on disk.
func (a *app) localChecker() (*checker, error) {
	p, err := a.localPolicy()
	if err != nil {
		return nil, err
	}
	verbs, err := localVerbs()
	if err != nil {
		return nil, err
	}
	c := &checker{policy: p, world: disk{known{scanner: secret.Default()}}}
	return c, c.build(verbs)
}

// localVerbs are the verbs of the actuators this program has. They are asked for
// their declarations only.
func localVerbs() ([]proto.Verb, error) {
	tools, err := act.NewToolbox(slices.Concat(act.Files{}.Tools(), act.Memex{}.Tools())...)
	if err != nil {
		return nil, err
	}
	all := []act.Actuator{tools, act.Shell{}, act.Speaker{Channel: "system"}}
	for _, c := range localChannels {
		all = append(all, act.Speaker{Channel: c})
	}
	t, err := act.NewTable(all...)
	if err != nil {
		return nil, err
	}
	return t.Vocabulary().Verbs(), nil
}

// localPolicy is the policy of this user's memex, on the assumption that the
// sandbox works; doctor says whether it does.
func (a *app) localPolicy() (gate.Policy, error) {
	cfg, err := a.config()
	if err != nil {
		return gate.Policy{}, err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return gate.Policy{}, err
	}
	cwd, err := os.Getwd()
	if err != nil {
		return gate.Policy{}, err
	}
	p := gate.Policy{
		Home: home, User: filepath.Base(home), Cwd: cwd, ReadRoots: []string{"/"}, WriteRoots: append([]string{cwd, cfg.MemexDir}, cfg.WriteRoots...),
		Own: append(policyFiles(cfg.MemexDir), cfg.StateDir, cfg.ConfigDir, cfg.SocketPath), Steering: []string{filepath.Join(cfg.MemexDir, "system"), cfg.DataDir},
		Hosts: cfg.AllowHosts, PrivacyTags: cfg.PrivacyTags, LocalChannels: localChannels, Sandbox: gate.SandboxFull,
	}
	verbs, err := localVerbs()
	if err != nil {
		return gate.Policy{}, err
	}
	v, err := proto.NewVocabulary(verbs...)
	if err != nil {
		return gate.Policy{}, err
	}
	err = readPolicyFiles(&p, cfg.MemexDir, v)
	return p, err
}

// policyFiles are the Org files that hold policy.
func policyFiles(memex string) []string {
	return []string{filepath.Join(memex, "system", "permissions.org"), filepath.Join(memex, "system", "rules.org")}
}

// readPolicyFiles adds the permissions and rules of a memex. A file that is not
// there says nothing: without a table every tool is left to the other gates.
func readPolicyFiles(p *gate.Policy, memex string, v *proto.Vocabulary) error {
	files := policyFiles(memex)
	src, err := os.ReadFile(files[0])
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.Permissions = []gate.Permission{{Name: "*", Decision: gate.Allow, Rule: "no " + files[0]}}
	case err != nil:
		return err
	default:
		if p.Permissions, err = gate.ParsePermissions(files[0], src, v); err != nil {
			return err
		}
	}
	src, err = os.ReadFile(files[1])
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	p.Rules, err = gate.ParseRules(files[1], src, v)
	return err
}

// disk is the world as it is on this machine's disk.
type disk struct{ known }

// Real follows links, also one whose target does not exist: that is where a write
// would go.
func (disk) Real(path string) (string, bool) {
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		return real, real != path
	}
	to, err := os.Readlink(path)
	if err != nil {
		return "", false
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(filepath.Dir(path), to)
	}
	return to, true
}

// Limits of what is read to make up a mind.
const (
	maxScript = 64 << 10
	maxGlob   = 1000
)

func (disk) Read(path string) (string, bool) {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxScript {
		return "", false
	}
	data, err := os.ReadFile(path)
	return string(data), err == nil
}

func (disk) Glob(pattern string) ([]string, bool) {
	found, err := filepath.Glob(pattern)
	return found, err == nil && len(found) > 0 && len(found) <= maxGlob
}

// Know adds to what is known that a file with several names has others.
func (d disk) Know(what, text string) []string {
	if what != "links" {
		return d.known.Know(what, text)
	}
	info, err := os.Lstat(text)
	if err != nil || !info.Mode().IsRegular() || !severalNames(info) {
		return nil
	}
	return []string{""}
}
