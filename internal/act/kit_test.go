package act_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"passepartout/internal/act"
	"passepartout/internal/gate"
	"passepartout/internal/label"
	"passepartout/internal/memory"
	"passepartout/internal/proto"
	"passepartout/internal/sandbox"
	"passepartout/internal/sexp"
	"passepartout/internal/undo"
)

func TestMain(m *testing.M) {
	sandbox.Init()
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		_ = f.Value.Set("15") // a step is a sandboxed process; ask for more with -rapid.checks
	}
	os.Exit(m.Run())
}

// tb is a test, a benchmark or a run of a property.
type tb interface {
	rapid.TB
	Cleanup(func())
}

var owner = proto.Origin{Role: proto.RoleOwner, Channel: "cli", Who: "uid:1"}

// noon is the clock of tests that need one.
var noon = time.Date(2026, 3, 11, 12, 0, 0, 0, time.UTC) // a Wednesday

// disk answers the gates from the real file system.
type disk struct{}

func (disk) Real(path string) (string, bool) {
	rest := ""
	for dir := path; dir != "/"; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			real = filepath.Join(real, rest)
			return real, real != path
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
	return "", false
}

func (disk) Read(path string) (string, bool) {
	b, err := os.ReadFile(path)
	return string(b), err == nil
}

func (disk) Glob(pattern string) ([]string, bool) {
	paths, err := filepath.Glob(pattern)
	return paths, err == nil && len(paths) > 0
}

func (disk) Know(string, string) []string { return nil }

// A shop is the real actuators over a memex of their own, behind real gates.
type shop struct {
	t       tb
	dir     string // holds memex, state, outside
	memex   string
	outside string
	undo    *undo.Store
	memory  *memory.Store
	history act.History
	labels  *label.Store // of what commands write
	table   *act.Table
	chain   *gate.Chain
	steps   int
}

// open builds a shop. Further tools may be given.
func open(t tb, web act.Web, extra ...act.Tool) *shop {
	t.Helper()
	dir, err := os.MkdirTemp("", "act")
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	s := &shop{t: t, dir: dir, memex: filepath.Join(dir, "memex"), outside: filepath.Join(dir, "outside")}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for _, d := range []string{"memex", "outside", "state/undo"} {
		must(t, os.MkdirAll(filepath.Join(dir, d), 0o755))
	}
	s.write("memex/inbox.org", "* TODO Water the plants  :home:\n")
	s.write("memex/notes/garden.org", garden)
	s.undo, err = undo.Open(filepath.Join(dir, "state/undo"), undo.Options{})
	must(t, err)
	t.Cleanup(func() { s.undo.Close() })
	s.memory, err = memory.Open(context.Background(), s.memex, memory.Options{State: filepath.Join(dir, "state/memory"), PrivacyTags: []string{"@personal"}})
	must(t, err)
	t.Cleanup(func() { s.memory.Close() })
	s.history = act.History{Files: s.undo, Memory: s.memory}
	m := act.Memex{Store: s.memory, Now: func() time.Time { return noon }, Inbox: "inbox.org", PrivateTags: []string{"@personal"}}
	f := act.Files{History: s.history, Label: m.Label, PrivateTags: []string{"@personal"}, Skip: func(p string) bool { return strings.Contains(p, "secret") }}
	box, err := act.NewToolbox(slices.Concat(f.Tools(), m.Tools(), s.history.Tools(), web.Tools(), act.Plain(), extra)...)
	must(t, err)
	s.labels, err = label.Open(filepath.Join(dir, "state/labels"))
	must(t, err)
	t.Cleanup(func() { s.labels.Close() })
	shell := act.Shell{
		Labels: s.labels,
		Dir:    s.memex, WriteRoots: []string{s.memex, filepath.Join(s.memex, "notes")}, History: s.history,
		Hidden:  func() []string { return []string{filepath.Join(dir, "state")} },
		Private: web.Private, Resolver: web.Resolver, Trials: filepath.Join(dir, "state/trials"), Trial: 3 * time.Second,
	}
	s.table, err = act.NewTable(box, shell, act.Tests{Shell: shell}, act.Speaker{Channel: "cli"})
	must(t, err)
	s.chain, err = gate.Standard(gate.Policy{
		Permissions: []gate.Permission{{Name: "*", Decision: gate.Allow}}, Home: filepath.Join(dir, "home"), Cwd: s.memex,
		ReadRoots: []string{"/"}, WriteRoots: []string{s.memex, s.outside}, LocalChannels: []string{"cli"}, Sandbox: gate.SandboxFull,
		Hosts: []string{"127.0.0.1", "allowed.example"},
	}, s.table.Vocabulary())
	must(t, err)
	return s
}

const garden = `#+TITLE: Garden
* Plan
** TODO Order seeds
DEADLINE: <2026-03-13 Fri>
beans and peas
** TODO Dig the beds
SCHEDULED: <2026-03-09 Mon>
* Diary  :@personal:
** A quiet day
`

func must(t tb, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *shop) path(rel string) string { return filepath.Join(s.dir, rel) }

func (s *shop) write(rel, text string) {
	s.t.Helper()
	must(s.t, os.MkdirAll(filepath.Dir(s.path(rel)), 0o755))
	must(s.t, os.WriteFile(s.path(rel), []byte(text), 0o644))
}

func (s *shop) read(rel string) string {
	s.t.Helper()
	b, err := os.ReadFile(s.path(rel))
	must(s.t, err)
	return string(b)
}

// permit lets the gates judge a tool call written as a property list.
func (s *shop) permit(tool, args string) gate.Permit {
	s.t.Helper()
	v, err := sexp.Read([]byte(fmt.Sprintf(`(:TARGET :TOOL :PAYLOAD (:TOOL %q :ARGS (%s) :EXPLANATION "a test wants it"))`, tool, args)), sexp.Limits{})
	must(s.t, err)
	a, err := s.table.Vocabulary().Decode(v, proto.Cause{Signal: "s-1", Session: "main", Origin: owner, Proposer: "test"})
	must(s.t, err)
	facts := gate.Facts{Now: noon, Signal: proto.Signal{ID: "s-1", Session: "main", Origin: owner}, World: disk{}}
	r := s.chain.Decide(a, facts)
	if r.Decision() == gate.Ask { // the owner is asked, and says yes
		var ledger gate.Ledger
		q, err := ledger.Open(r, noon.Add(time.Hour))
		must(s.t, err)
		r, err = ledger.Answer(q.ID, true, owner, s.chain, facts)
		must(s.t, err)
	}
	p, err := r.Permit()
	if err != nil {
		s.t.Fatalf("%s (%s): %v\n%v", tool, args, err, r.Objections())
	}
	return p
}

func (s *shop) carryOut(ctx context.Context, p gate.Permit) act.Outcome {
	s.t.Helper()
	o, err := s.table.Do(ctx, p)
	must(s.t, err)
	return o
}

// step is the context of the next step of the turn s-1.
func (s *shop) step() context.Context {
	s.steps++
	return act.InTurn(context.Background(), act.Turn{ID: "s-1", Step: fmt.Sprintf("a-%d", s.steps)})
}

// do has a tool call judged and carried out as the next step.
func (s *shop) do(tool, format string, args ...any) act.Outcome {
	s.t.Helper()
	return s.carryOut(s.step(), s.permit(tool, fmt.Sprintf(format, args...)))
}

func (s *shop) succeeds(tool, format string, args ...any) act.Outcome {
	s.t.Helper()
	o := s.do(tool, format, args...)
	if !o.OK {
		s.t.Fatalf("%s failed: %s", tool, o.Text)
	}
	return o
}

func (s *shop) fails(want, tool, format string, args ...any) {
	s.t.Helper()
	if o := s.do(tool, format, args...); o.OK || !strings.Contains(o.Text, want) {
		s.t.Errorf("%s: got ok %t, %q: want a failure with %q", tool, o.OK, o.Text, want)
	}
}

// tree is all of the memex: names, modes, contents, link targets.
func (s *shop) tree() string {
	s.t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(s.memex, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %v", strings.TrimPrefix(p, s.memex), st.Mode())
		switch {
		case st.Mode().IsRegular():
			fmt.Fprintf(&b, " %q", must1(os.ReadFile(p)))
		case st.Mode()&os.ModeSymlink != 0:
			fmt.Fprintf(&b, " -> %s", must1(os.Readlink(p)))
		}
		b.WriteByte('\n')
		return nil
	})
	must(s.t, err)
	return b.String()
}

func must1[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// sandboxed skips where commands cannot run.
func sandboxed(t testing.TB) {
	t.Helper()
	if st := sandbox.Probe(context.Background()); st.Level == sandbox.None {
		t.Skip("no sandbox here: ", st.Missing())
	}
}
