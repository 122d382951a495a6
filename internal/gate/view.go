package gate

import (
	"slices"
	"strings"

	"passepartout/internal/host"
	"passepartout/internal/place"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
	"passepartout/internal/shell"
)

// scratch holds the view of one round, so that gates share its work. It is never
// recorded and gives no answer that the action and the facts do not determine.
type scratch struct{ view *view }

// setting is a policy in the form the gates use.
type setting struct {
	policy Policy
	layout place.Layout
	hosts  host.List
}

func newSetting(p Policy) *setting {
	return &setting{
		policy: p,
		hosts:  host.List(p.Hosts),
		layout: place.Layout{
			Home: p.Home, User: p.User, Own: p.Own,
			ReadRoots: p.ReadRoots, WriteRoots: p.WriteRoots,
		},
	}
}

// An arg is one text of an action, with what its parameter declares it to be.
type arg struct {
	name  sexp.Keyword
	means proto.Meaning
	text  string
}

// A view is one action as the standard gates see it: texts with their meanings,
// resolved paths, and the report on its commands.
type view struct {
	*setting
	action  proto.Action
	facts   Facts
	layout  place.Layout // with links resolved through the World
	args    []arg
	paths   []pathArg
	reports []shell.Report // see [view.commands]
	judged  bool           // reports are there
}

// A pathArg is a path an action names, resolved.
type pathArg struct {
	arg
	abs  string
	kind place.Kind
}

// A standardGate is one of ours: a name, a place in the order, and a judgement of
// the shared view.
type standardGate struct {
	name     string
	priority int
	setting  *setting
	judge    func(*view) Verdict
}

func (g standardGate) Name() string  { return g.name }
func (g standardGate) Priority() int { return g.priority }

func (g standardGate) Check(a proto.Action, f Facts) Verdict {
	if f.scratch == nil {
		f.scratch = new(scratch)
	}
	if f.scratch.view == nil {
		f.scratch.view = g.setting.view(a, f)
	}
	return g.judge(f.scratch.view)
}

func (s *setting) view(a proto.Action, f Facts) *view {
	v := &view{setting: s, action: a, facts: f, layout: s.layout}
	if f.World == nil {
		v.facts.World = void{}
	}
	v.layout.Real = v.facts.World.Real
	for _, p := range a.Spec().Params {
		val, ok := a.Args().Get(p.Name)
		if !ok {
			continue
		}
		for _, text := range leaves(val, nil) {
			one := arg{p.Name, p.Means, text}
			v.args = append(v.args, one)
			if p.Means == proto.ReadPath || p.Means == proto.WritePath {
				abs := v.layout.Resolve(s.policy.Cwd, text)
				v.paths = append(v.paths, pathArg{one, abs, v.layout.Kind(abs)})
			}
			if p.Means == proto.Node {
				v.paths = append(v.paths, v.holding(one)...)
			}
		}
	}
	return v
}

// holding are the files a heading stands in. Whoever changes the heading writes the
// file, and a file can be what no action may write.
func (v *view) holding(node arg) []pathArg {
	means := proto.WritePath
	if v.action.Spec().Effect == proto.ReadLocal {
		means = proto.ReadPath
	}
	var out []pathArg
	for _, file := range v.facts.World.Know("file", node.text) {
		abs := v.layout.Resolve(v.policy.Cwd, file)
		out = append(out, pathArg{arg{node.name, means, file}, abs, v.layout.Kind(abs)})
	}
	return out
}

// commands reports on the action's commands. They are judged when somebody asks,
// so that a failure there is the failure of the gate that needed them.
func (v *view) commands() []shell.Report {
	if v.judged {
		return v.reports
	}
	for _, p := range v.action.Spec().Params {
		if val, ok := v.action.Args().Get(p.Name); ok && p.Means == proto.Command {
			v.reports = append(v.reports, v.analyze(val))
		}
	}
	v.judged = true
	return v.reports
}

// analyze judges a command line, or an argument vector when it is a list.
func (v *view) analyze(val sexp.Value) shell.Report {
	env := shell.Env{
		Places: v.layout, Cwd: v.policy.Cwd, Hosts: v.hosts,
		Sandboxed: v.policy.Sandbox == SandboxFull, Files: files{v.facts.World},
	}
	if l, ok := val.(sexp.List); ok {
		return shell.AnalyzeArgv(textItems(l), env)
	}
	text, _ := val.(sexp.String)
	return shell.Analyze(string(text), env)
}

// files is a World as the analysis of commands wants it.
type files struct{ world World }

func (f files) Glob(pattern string) ([]string, bool) { return f.world.Glob(pattern) }

func (f files) ReadFile(path string) ([]byte, bool) {
	text, ok := f.world.Read(path)
	return []byte(text), ok
}

// texts returns the arguments with one of these meanings.
func (v *view) texts(means ...proto.Meaning) []arg {
	var out []arg
	for _, a := range v.args {
		if slices.Contains(means, a.means) {
			out = append(out, a)
		}
	}
	return out
}

// effects adds what the commands do to the names of effects.
func (v *view) effects(names []string) []string {
	for _, r := range v.reports {
		for _, n := range r.Effects.Names() {
			if !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	return names
}

// outbound reports whether carrying out the action shows its texts to anybody
// but the owner sitting at it.
func (v *view) outbound() bool {
	switch v.facts.Effect() {
	case proto.SendMessage, proto.Network:
		return true
	case proto.Speak:
		switch by := v.action.Cause().Origin; by.Role {
		case proto.RoleOwner:
			return !v.local(by.Channel)
		case proto.RoleJob: // has no screen of its own, so it matters whom it addresses
			return !v.local(v.action.Target())
		case proto.RoleNone, proto.RolePeer, proto.RoleGuest:
		}
		return true
	case proto.EffectUnknown, proto.ReadLocal, proto.WriteMemory, proto.WriteLocal, proto.Execute, proto.Rewrite:
	}
	return false
}

func (v *view) local(channel string) bool {
	return slices.Contains(v.policy.LocalChannels, channel)
}

// quote shortens a text for a reason and makes what cannot be seen visible.
func quote(s string) string {
	const most = 80
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return sexp.String(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || hidden(r) {
			return '\uFFFD'
		}
		return r
	}, s)).String()
}
