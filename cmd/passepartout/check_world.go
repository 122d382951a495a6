package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"passepartout/internal/gate"
	"passepartout/internal/proto"
	"passepartout/internal/secret"
	"passepartout/internal/sexp"
)

// A machine is what a world file describes: where things are, what may be
// reached, what is secret, and which foreign tools are linked.
type machine struct {
	Home        string            `json:"home"`
	Cwd         string            `json:"cwd"`
	User        string            `json:"user"`
	WriteRoots  []string          `json:"write_roots"`
	ReadRoots   []string          `json:"read_roots"`
	Hosts       []string          `json:"hosts"`
	Sandbox     string            `json:"sandbox"`
	PrivacyTags []string          `json:"privacy_tags"`
	Vault       map[string]string `json:"vault"`
	Tools       map[string]struct {
		Effect  string `json:"effect"`
		Command string `json:"command_arg"`
		Path    string `json:"path_arg"`
		URL     string `json:"url_arg"`
	} `json:"tools"`
}

// A checker judges rows for one machine.
type checker struct {
	policy     gate.Policy
	vocabulary *proto.Vocabulary
	chain      *gate.Chain
	world      gate.World
	foreign    map[string]foreignTool // by the exact name a row uses
}

// checker makes one for the machine a file describes, or for this one when there
// is no file.
func (a *app) checker(file string) (*checker, error) {
	if file == "" {
		return a.localChecker()
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var m machine
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("world %s: %w", file, err)
	}
	return m.checker()
}

func (m machine) checker() (*checker, error) {
	c := &checker{
		world:   known{scanner: secret.Default().WithValues(m.Vault), vault: m.Vault},
		foreign: m.foreign(),
		policy: gate.Policy{
			Permissions: []gate.Permission{{Name: "*", Decision: gate.Allow, Rule: "world"}},
			Home:        m.Home, User: m.User, Cwd: m.Cwd,
			ReadRoots: m.ReadRoots, WriteRoots: m.WriteRoots, Own: []string{filepath.Join(m.Home, ".config", "passepartout"), filepath.Join(m.Home, ".local", "state", "passepartout")},
			Steering: []string{filepath.Join(m.Home, "memex", "system")},
			Hosts:    m.Hosts, PrivacyTags: m.PrivacyTags, LocalChannels: []string{"cli"},
			Sandbox: gate.ParseSandbox(m.Sandbox),
		},
	}
	err := c.build()
	return c, err
}

// build makes the vocabulary and the chain out of policy and tools.
func (c *checker) build() (err error) {
	verbs := checkVerbs()
	for _, name := range slices.Sorted(maps.Keys(c.foreign)) {
		verbs = append(verbs, c.foreign[name].verb())
	}
	if c.vocabulary, err = proto.NewVocabulary(verbs...); err != nil {
		return err
	}
	c.chain, err = gate.Standard(c.policy, c.vocabulary)
	return err
}

// worldFor is the world of one row, in which these symbolic links exist.
func (c *checker) worldFor(links map[string]string) gate.World {
	if len(links) == 0 {
		return c.world
	}
	return linked{c.world, links}
}

// checkVerbs are the actions a row can mean without a tool of the world's.
func checkVerbs() []proto.Verb {
	return []proto.Verb{
		{Target: "cli", Name: "message", Effect: proto.Speak, Params: []proto.Param{
			{Name: "TEXT", Type: proto.Text, Means: proto.Outbound, Required: true},
		}},
		{Target: "shell", Name: "run", Effect: proto.Execute, Params: []proto.Param{
			{Name: "CMD", Type: proto.Text, Means: proto.Command, Required: true},
		}},
		{Target: "tool", Name: "read-file", Tool: "read-file", Effect: proto.ReadLocal, Params: []proto.Param{
			{Name: "FILEPATH", Type: proto.Text, Means: proto.ReadPath, Required: true},
		}},
		{Target: "tool", Name: "write-file", Tool: "write-file", Effect: proto.WriteLocal, Params: []proto.Param{
			{Name: "FILEPATH", Type: proto.Text, Means: proto.WritePath, Required: true},
			{Name: "CONTENT", Type: proto.Text, Means: proto.Content},
		}},
		{Target: "tool", Name: "web-fetch", Tool: "web-fetch", Effect: proto.Network, Params: []proto.Param{
			{Name: "URL", Type: proto.Text, Means: proto.URL, Required: true},
		}},
	}
}

// A foreignTool is one the world links, such as an MCP server's. Its arguments
// that are commands, paths or addresses are declared; the rest goes in one piece.
type foreignTool struct {
	name               string // in the vocabulary
	effect             proto.Effect
	command, path, url string
}

// restArg holds the arguments nobody declared.
const restArg = "INPUT"

// foreign gives every tool of the world a name of its own; two that differ only
// in case stay two.
func (m machine) foreign() map[string]foreignTool {
	effects := map[string]proto.Effect{
		"read": proto.ReadLocal, "write": proto.WriteLocal, "message": proto.SendMessage, "network": proto.Network, "execute": proto.Execute,
	}
	out := map[string]foreignTool{}
	for i, name := range slices.Sorted(maps.Keys(m.Tools)) {
		t := m.Tools[name]
		if effects[t.Effect] == proto.EffectUnknown {
			continue // nobody said what it does, so nobody may call it
		}
		out[name] = foreignTool{
			name: fmt.Sprintf("linked-%d-%s", i, strings.ToLower(name)), effect: effects[t.Effect],
			command: t.Command, path: t.Path, url: t.URL,
		}
	}
	return out
}

func (t foreignTool) verb() proto.Verb {
	rest := proto.Param{Name: restArg, Type: proto.Data}
	pathMeans := proto.ReadPath
	switch t.effect {
	case proto.SendMessage, proto.Network:
		rest.Means = proto.Outbound
	case proto.WriteLocal:
		rest.Means, pathMeans = proto.Content, proto.WritePath
	default:
	}
	v := proto.Verb{Target: "tool", Name: t.name, Tool: t.name, Effect: t.effect, Params: []proto.Param{rest}}
	for _, p := range [...]struct {
		name     string
		means    proto.Meaning
		required bool
	}{{t.command, proto.Command, true}, {t.path, pathMeans, false}, {t.url, proto.URL, true}} {
		if p.name != "" {
			v.Params = append(v.Params, proto.Param{Name: argName(p.name), Type: proto.Text, Means: p.means, Required: p.required})
		}
	}
	if t.effect == proto.Execute {
		v.Params = append(v.Params, proto.Param{Name: argName("description"), Type: proto.Text}, proto.Param{Name: argName("timeout"), Type: proto.Number})
	}
	return v
}

// argName keeps a declared argument apart from the keys of a proposal.
func argName(name string) sexp.Keyword { return sexp.Keyword("IN-" + strings.ToUpper(name)) }

// arrange sorts a call's arguments into the declared ones and the rest.
func (t foreignTool) arrange(args sexp.Plist) sexp.Plist {
	var out, rest sexp.Plist
	for _, e := range args.Pairs() {
		switch name := string(e.Key); {
		case name == "":
			rest = rest.With("EMPTY", e.Value)
		case name == t.command, name == t.path, name == t.url, t.effect == proto.Execute && (name == "description" || name == "timeout"):
			out = out.With(argName(name), e.Value)
		default:
			rest = rest.With(e.Key, e.Value)
		}
	}
	if rest.Len() > 0 {
		out = out.With(restArg, rest.List())
	}
	return out
}

// known is a world in which no file exists and these credentials are known.
type known struct {
	scanner *secret.Scanner
	vault   map[string]string
}

func (known) Real(string) (string, bool)   { return "", false }
func (known) Read(string) (string, bool)   { return "", false }
func (known) Glob(string) ([]string, bool) { return nil, false }

func (k known) Know(what, text string) []string {
	switch what {
	case "secret":
		return kinds(k.scanner.Scan(text))
	case "split":
		return kinds(k.scanner.ScanAll(strings.Split(text, "\x00"))[-1])
	case "vault":
		if _, ok := k.vault[text]; ok {
			return []string{text}
		}
	}
	return nil
}

// kinds names matches as the gates want them.
func kinds(found []secret.Match) []string {
	var out []string
	for _, m := range found {
		name := m.Rule
		if m.Class == secret.Known {
			name = "vault:" + strings.TrimPrefix(name, "vault-")
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// linked adds symbolic links to a world.
type linked struct {
	gate.World
	links map[string]string
}

func (l linked) Real(path string) (string, bool) {
	to, ok := l.links[path]
	return to, ok
}
