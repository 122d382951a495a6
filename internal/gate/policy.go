package gate

import (
	"fmt"
	"slices"
	"strings"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// A Sandbox says how well commands are shut in. The zero Sandbox is none, under
// which every command asks.
type Sandbox uint8

// The levels of the sandbox.
const (
	SandboxNone Sandbox = iota
	SandboxPart         // some of it is missing on this machine: every command still asks
	SandboxFull         // no network, writes under the roots only, secrets hidden
)

func (s Sandbox) String() string {
	switch s {
	case SandboxPart:
		return "part"
	case SandboxFull:
		return "full"
	case SandboxNone:
	}
	return "none"
}

// ParseSandbox is the inverse of [Sandbox.String]; an unknown name is none.
func ParseSandbox(s string) Sandbox {
	switch s {
	case "part":
		return SandboxPart
	case "full":
		return SandboxFull
	}
	return SandboxNone
}

// A Policy is everything a person can configure about the standard gates. Its
// digest is part of every ruling. The zero Policy knows no tool, no root and no
// host.
type Policy struct {
	Permissions []Permission
	Rules       []Rule

	Home, User, Cwd       string
	ReadRoots, WriteRoots []string // what may be read and written without a question
	Own                   []string // journal, policy, vault, socket, settings: never written, never read by an action
	Steering              []string // skills, schedule, identity: changing them changes the agent, so it asks
	Hosts                 []string // reachable without a question, in the notation of host.List
	Recipients            []string // who may be written to without a question
	LocalChannels         []string // channels that end at this machine's own screen
	PrivacyTags           []string
	Sandbox               Sandbox
}

// Plist is the policy as the journal keeps it, so that rulings can be replayed.
func (p Policy) Plist() sexp.Plist {
	perms := make([]sexp.Value, len(p.Permissions))
	for i, r := range p.Permissions {
		perms[i] = sexp.NewList(sexp.String(r.Name), sexp.String(r.Decision.String()), sexp.String(r.Rule))
	}
	rules := make([]sexp.Value, len(p.Rules))
	for i, r := range p.Rules {
		rules[i] = r.Plist().List()
	}
	out := sexp.P(
		sexp.Keyword("PERMISSIONS"), sexp.NewList(perms...),
		sexp.Keyword("RULES"), sexp.NewList(rules...),
		sexp.Keyword("HOME"), p.Home, sexp.Keyword("USER"), p.User, sexp.Keyword("CWD"), p.Cwd,
		sexp.Keyword("SANDBOX"), p.Sandbox.String())
	for _, l := range p.lists() {
		out = out.With(l.key, sexp.Strings(*l.list))
	}
	return out
}

// listField is a list of the policy under its key.
type listField struct {
	key  sexp.Keyword
	list *[]string
}

func (p *Policy) lists() []listField {
	return []listField{
		{"READ-ROOTS", &p.ReadRoots},
		{"WRITE-ROOTS", &p.WriteRoots},
		{"OWN", &p.Own},
		{"STEERING", &p.Steering},
		{"HOSTS", &p.Hosts},
		{"RECIPIENTS", &p.Recipients},
		{"LOCAL-CHANNELS", &p.LocalChannels},
		{"PRIVACY-TAGS", &p.PrivacyTags},
	}
}

// ParsePolicy is the inverse of [Policy.Plist]. A key it does not know is an
// error: a policy read in part would be another policy.
func ParsePolicy(pl sexp.Plist) (Policy, error) {
	var p Policy
	lists := map[sexp.Keyword]*[]string{}
	for _, l := range p.lists() {
		lists[l.key] = l.list
	}
	for _, e := range pl.Pairs() {
		items, _ := e.Value.(sexp.List)
		var err error
		switch e.Key {
		case "PERMISSIONS":
			p.Permissions, err = permissionsOf(items)
		case "RULES":
			p.Rules, err = rulesOf(items)
		case "HOME":
			p.Home = pl.Text(e.Key)
		case "USER":
			p.User = pl.Text(e.Key)
		case "CWD":
			p.Cwd = pl.Text(e.Key)
		case "SANDBOX":
			p.Sandbox = ParseSandbox(pl.Text(e.Key))
		default:
			list, ok := lists[e.Key]
			if !ok {
				return Policy{}, fmt.Errorf("policy has the unknown key %s", e.Key)
			}
			*list = textItems(items)
		}
		if err != nil {
			return Policy{}, fmt.Errorf("policy: %w", err)
		}
	}
	return p, nil
}

func permissionsOf(l sexp.List) ([]Permission, error) {
	var out []Permission
	for _, item := range l.Items() {
		row, _ := item.(sexp.List)
		cells := textItems(row)
		if len(cells) != 3 {
			return nil, fmt.Errorf("permission %s: want a name, a level and where it is written", item)
		}
		d, ok := ParseDecision(cells[1])
		if !ok {
			return nil, fmt.Errorf("permission %s: level %q, want allow, ask or deny", cells[0], cells[1])
		}
		out = append(out, Permission{Name: cells[0], Decision: d, Rule: cells[2]})
	}
	return out, nil
}

func rulesOf(l sexp.List) ([]Rule, error) {
	var out []Rule
	for _, item := range l.Items() {
		il, _ := item.(sexp.List)
		pl, err := sexp.AsPlist(il)
		if err != nil {
			return nil, fmt.Errorf("rule: %w", err)
		}
		r, err := ruleOf(pl)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// Digest identifies the policy.
func (p Policy) Digest() sexp.Digest { return sexp.Sum(p.Plist().List()) }

// A Change is one difference between two policies.
type Change struct {
	What, Old, New string // Old or New is "" when the thing was added or removed
}

// Diff lists what distinguishes two policies, in a fixed order.
func (p Policy) Diff(q Policy) []Change {
	var out []Change
	for _, f := range [...]struct{ what, old, new string }{
		{"home", p.Home, q.Home},
		{"user", p.User, q.User},
		{"cwd", p.Cwd, q.Cwd},
		{"sandbox", p.Sandbox.String(), q.Sandbox.String()},
	} {
		if f.old != f.new {
			out = append(out, Change{f.what, f.old, f.new})
		}
	}
	old, now := p.lists(), q.lists()
	for i := range old {
		out = append(out, diffSets(strings.ToLower(string(old[i].key)), *old[i].list, *now[i].list)...)
	}
	out = append(out, diffKeyed("permission", permissionTexts(p), permissionTexts(q))...)
	return append(out, diffKeyed("rule", ruleTexts(p), ruleTexts(q))...)
}

func diffSets(what string, old, now []string) []Change {
	var out []Change
	for _, s := range old {
		if !slices.Contains(now, s) {
			out = append(out, Change{what, s, ""})
		}
	}
	for _, s := range now {
		if !slices.Contains(old, s) {
			out = append(out, Change{what, "", s})
		}
	}
	return out
}

func permissionTexts(p Policy) [][2]string {
	out := make([][2]string, len(p.Permissions))
	for i, r := range p.Permissions {
		out[i] = [2]string{r.Name, r.Decision.String()}
	}
	return out
}

func ruleTexts(p Policy) [][2]string {
	out := make([][2]string, len(p.Rules))
	for i, r := range p.Rules {
		r.Where = "" // a rule that only moved is the same rule
		out[i] = [2]string{r.Name, r.Plist().String()}
	}
	return out
}

func diffKeyed(what string, old, now [][2]string) []Change {
	find := func(rows [][2]string, key string) (string, bool) {
		for _, r := range rows {
			if r[0] == key {
				return r[1], true
			}
		}
		return "", false
	}
	var out []Change
	for _, r := range old {
		if text, ok := find(now, r[0]); !ok || text != r[1] {
			out = append(out, Change{what + " " + r[0], r[1], text})
		}
	}
	for _, r := range now {
		if _, ok := find(old, r[0]); !ok {
			out = append(out, Change{what + " " + r[0], "", r[1]})
		}
	}
	return out
}

// Standard builds the chain of the compiled-in gates, and any extra ones, under a
// policy, after running the examples of its rules. A skill's gate can be added to
// them and can replace none.
func Standard(p Policy, v *proto.Vocabulary, extra ...Gate) (*Chain, error) {
	rules, err := newRuleset(p)
	if err != nil {
		return nil, err
	}
	for _, r := range p.Rules {
		if err := TestRule(r, p, v); err != nil {
			return nil, err
		}
	}
	gates := standardGates(p, v)
	names := make([]string, len(gates))
	for i, g := range gates {
		names[i] = g.Name()
	}
	c, err := New(v, p.Digest(), names, append(gates, extra...)...)
	if err != nil {
		return nil, err
	}
	c.rules = rules
	return c, nil
}

// standardGates is the manifest of the compiled-in gates.
func standardGates(p Policy, v *proto.Vocabulary) []Gate {
	s := newSetting(p)
	return []Gate{
		originGate{},
		newPermissions(p.Permissions),
		standardGate{"vault", 600, s, judgeVault},
		guideGate{},
		standardGate{"rules", 550, s, judgeRules},
		explainGate{},
		standardGate{"dispatcher/lisp", 150, s, judgeLisp},
		standardGate{"dispatcher/secret-path", 150, s, judgeSecretPath},
		standardGate{"dispatcher/self-build", 150, s, judgeSelfBuild},
		standardGate{"dispatcher/exposure", 150, s, judgeExposure},
		standardGate{"dispatcher/vault", 150, s, judgeVaultValues},
		standardGate{"dispatcher/privacy-tags", 150, s, judgePrivacyTags},
		standardGate{"dispatcher/privacy-text", 150, s, judgePrivacyText},
		standardGate{"dispatcher/shell", 150, s, judgeShell},
		standardGate{"dispatcher/network", 150, s, judgeNetwork},
		standardGate{"dispatcher/impact", 150, s, judgeImpact},
		standardGate{"dispatcher/repl-lint", 150, s, judgeReplLint},
		standardGate{"flow", 140, s, judgeFlow},
		standardGate{"confine", 130, s, judgeConfine},
		validatorGate{v},
	}
}
