package gate_test

import (
	"strings"
	"testing"
	"time"

	"passepartout/internal/gate"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// The vocabulary of these tests: one verb for every effect and meaning.
var verbs = []proto.Verb{
	{Target: "cli", Name: "message", Effect: proto.Speak, Params: []proto.Param{{Name: "TEXT", Type: proto.Text, Means: proto.Outbound, Required: true}}},
	{Target: "shell", Name: "run", Tool: "shell", Effect: proto.Execute, Params: []proto.Param{{Name: "CMD", Type: proto.Text, Means: proto.Command, Required: true}}},
	{Target: "shell", Name: "exec", Effect: proto.Execute, Params: []proto.Param{{Name: "ARGV", Type: proto.Texts, Means: proto.Command, Required: true}}},
	{Target: "lisp", Name: "eval", Effect: proto.Execute, Params: []proto.Param{{Name: "FORM", Type: proto.Text, Means: proto.Code, Required: true}}},
	{Target: "tool", Name: "read-file", Tool: "read-file", Effect: proto.ReadLocal, Params: []proto.Param{{Name: "FILEPATH", Type: proto.Text, Means: proto.ReadPath, Required: true}}},
	{Target: "tool", Name: "write-file", Tool: "write-file", Effect: proto.WriteLocal, Params: []proto.Param{
		{Name: "FILEPATH", Type: proto.Text, Means: proto.WritePath, Required: true}, {Name: "CONTENT", Type: proto.Text, Means: proto.Content},
	}},
	{Target: "tool", Name: "web-fetch", Tool: "web-fetch", Effect: proto.Network, Params: []proto.Param{
		{Name: "URL", Type: proto.Text, Means: proto.URL, Required: true}, {Name: "HEADER", Type: proto.Text},
	}},
	{Target: "tool", Name: "show-node", Tool: "show-node", Effect: proto.ReadLocal, Params: []proto.Param{{Name: "ID", Type: proto.Text, Means: proto.Node, Required: true}}},
	{Target: "tool", Name: "share-node", Tool: "share-node", Effect: proto.SendMessage, Params: []proto.Param{
		{Name: "ID", Type: proto.Text, Means: proto.Node, Required: true}, {Name: "TO", Type: proto.Text, Means: proto.Recipient, Required: true},
	}},
	{Target: "tool", Name: "create-skill", Tool: "create-skill", Effect: proto.Rewrite, Params: []proto.Param{{Name: "NAME", Type: proto.Text, Required: true}}},
	{Target: "tool", Name: "set-alarm", Tool: "set-alarm", Effect: proto.WriteMemory, Params: []proto.Param{{Name: "HOUR", Type: proto.Number}, {Name: "LOUD", Type: proto.Flag}}},
	{Target: "tool", Name: "opaque-write", Tool: "opaque-write", Effect: proto.WriteLocal, Params: []proto.Param{{Name: "INPUT", Type: proto.Data}}},
	{Target: "tool", Name: "opaque-run", Tool: "opaque-run", Effect: proto.Execute, Params: []proto.Param{{Name: "INPUT", Type: proto.Data}}},
	{Target: "tool", Name: "opaque-net", Tool: "opaque-net", Effect: proto.Network, Params: []proto.Param{{Name: "INPUT", Type: proto.Data}}},
	{Target: "tool", Name: "opaque-send", Tool: "opaque-send", Effect: proto.SendMessage, Params: []proto.Param{{Name: "INPUT", Type: proto.Data, Means: proto.Outbound}}},
	{Target: "telegram", Name: "send", Effect: proto.SendMessage, Params: []proto.Param{
		{Name: "TO", Type: proto.Text, Means: proto.Recipient, Required: true}, {Name: "TEXT", Type: proto.Text, Means: proto.Outbound, Required: true},
	}},
}

func vocabulary(t testing.TB) *proto.Vocabulary {
	t.Helper()
	v, err := proto.NewVocabulary(verbs...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// policy is a small machine: one user, a project, a memex, one host.
func policy() gate.Policy {
	return gate.Policy{
		Permissions: []gate.Permission{{Name: "*", Decision: gate.Allow, Rule: "test"}},
		Home:        "/home/ada", User: "ada", Cwd: "/home/ada/work",
		ReadRoots: []string{"/"}, WriteRoots: []string{"/home/ada/work", "/home/ada/memex"},
		Own: []string{"/home/ada/.local/state/passepartout", "/home/ada/memex/system/rules.org"}, Steering: []string{"/home/ada/memex/skills"},
		Hosts: []string{"docs.example.org", ".example.net"}, Recipients: []string{"grace"}, LocalChannels: []string{"cli"},
		PrivacyTags: []string{"@personal"}, Sandbox: gate.SandboxFull,
	}
}

func standard(t testing.TB, p gate.Policy, extra ...gate.Gate) *gate.Chain {
	t.Helper()
	c, err := gate.Standard(p, vocabulary(t), extra...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var owner = proto.Origin{Role: proto.RoleOwner, Channel: "cli", Who: "uid:1000"}

// action decodes a proposal as a model would write it; args are key and value.
func action(t testing.TB, name string, args ...string) proto.Action {
	t.Helper()
	return actionBy(t, owner, name, args...)
}

func actionBy(t testing.TB, by proto.Origin, name string, args ...string) proto.Action {
	t.Helper()
	p := sexp.Plist{}
	for i := 0; i < len(args); i += 2 {
		p = p.With(sexp.Keyword(args[i]), sexp.String(args[i+1]))
	}
	a, err := decode(t, by, name, p)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func decode(t testing.TB, by proto.Origin, name string, args sexp.Plist) (proto.Action, error) {
	t.Helper()
	target, verb, _ := strings.Cut(name, ".")
	body := args.With("ACTION", sexp.Keyword(strings.ToUpper(verb))).With("EXPLANATION", sexp.String("because the test wants it"))
	data := sexp.P(sexp.Keyword("TARGET"), sexp.Keyword(strings.ToUpper(target)), sexp.Keyword("PAYLOAD"), body).List()
	return vocabulary(t).Decode(data, proto.Cause{Signal: "s1", Session: "one", Origin: by, Proposer: "test"})
}

func facts() gate.Facts { return factsBy(owner) }

func factsBy(by proto.Origin) gate.Facts {
	return gate.Facts{
		Now:    time.Date(2026, 11, 15, 4, 0, 0, 0, time.UTC),
		Signal: proto.Signal{ID: "s1", Session: "one", Origin: by, Kind: proto.Event, Body: sexp.P(sexp.Keyword("SENSOR"), sexp.Keyword("USER-INPUT"))},
		World:  world{},
	}
}

// world is a World out of maps. A text holds a secret when it contains one of the
// marked words.
type world struct {
	real  map[string]string
	files map[string]string
	globs map[string][]string
	know  map[string][]string // "what text"
	marks map[string]string   // word → kind
}

func (w world) Real(p string) (string, bool) { s, ok := w.real[p]; return s, ok }

func (w world) Read(p string) (string, bool) { s, ok := w.files[p]; return s, ok }

func (w world) Glob(p string) ([]string, bool) { s, ok := w.globs[p]; return s, ok }

func (w world) Know(what, text string) []string {
	switch what {
	case "split":
		text = strings.ReplaceAll(text, "\x00", "")
	case "secret":
	default:
		return w.know[what+" "+text]
	}
	var out []string
	for word, kind := range w.marks {
		if strings.Contains(text, word) {
			out = append(out, kind)
		}
	}
	return out
}

// verdictOf returns what one gate said in the last round.
func verdictOf(t testing.TB, r gate.Ruling, name string) gate.Verdict {
	t.Helper()
	var found gate.Verdict
	for _, v := range r.Verdicts() {
		if v.Gate == name {
			found = v
		}
	}
	if found.Gate == "" {
		t.Fatalf("no verdict of %s in %v", name, r.Verdicts())
	}
	return found
}

// codesOf lists the codes of the objections.
func codesOf(r gate.Ruling) string {
	var out []string
	for _, v := range r.Objections() {
		out = append(out, v.Code)
	}
	return strings.Join(out, " ")
}

// fn is a gate out of a function.
type fn struct {
	name     string
	priority int
	f        func(proto.Action, gate.Facts) gate.Verdict
}

func (g fn) Name() string                                    { return g.name }
func (g fn) Priority() int                                   { return g.priority }
func (g fn) Check(a proto.Action, f gate.Facts) gate.Verdict { return g.f(a, f) }

// says is a gate that always gives the same answer.
func says(name string, d gate.Decision) fn {
	return fn{name, 10, func(proto.Action, gate.Facts) gate.Verdict {
		return gate.Verdict{Decision: d, Code: "test." + d.String()}
	}}
}

func chain(t testing.TB, gates ...gate.Gate) *gate.Chain {
	t.Helper()
	c, err := gate.New(vocabulary(t), sexp.Digest{}, nil, gates...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
