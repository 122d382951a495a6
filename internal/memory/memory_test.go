package memory_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"passepartout/internal/memory"
	"passepartout/internal/org"
)

// soak is the number of steps PASSEPARTOUT_SOAK asks for, 0 in ordinary runs.
func soak() int {
	n, err := strconv.Atoi(os.Getenv("PASSEPARTOUT_SOAK"))
	if err != nil {
		return 0
	}
	return n
}

// noon is the moment tests happen at.
var noon = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

// fixture is a memex in a temporary directory.
type fixture struct {
	t     testing.TB
	dir   string
	state string
	ids   int
}

func newFixture(t testing.TB, files map[string]string) *fixture {
	t.Helper()
	base := t.TempDir()
	f := &fixture{t: t, dir: filepath.Join(base, "memex"), state: filepath.Join(base, "state")}
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for p, text := range files {
		f.write(p, text)
	}
	return f
}

func (f *fixture) write(p, text string) {
	f.t.Helper()
	name := filepath.Join(f.dir, filepath.FromSlash(p))
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) read(p string) string {
	f.t.Helper()
	b, err := os.ReadFile(filepath.Join(f.dir, filepath.FromSlash(p)))
	if err != nil {
		f.t.Fatal(err)
	}
	return string(b)
}

// stateFile is a file the store keeps.
func (f *fixture) stateFile(name string) string {
	f.t.Helper()
	root, err := filepath.EvalSymlinks(f.dir)
	if err != nil {
		f.t.Fatal(err)
	}
	return filepath.Join(f.state, memory.StateName(root), name)
}

func (f *fixture) options() memory.Options {
	return memory.Options{State: f.state, Now: func() time.Time { return noon }, NewID: func() string {
		f.ids++
		return fmt.Sprintf("new-%d", f.ids)
	}}
}

func (f *fixture) open() *memory.Store {
	f.t.Helper()
	s, err := memory.Open(context.Background(), f.dir, f.options())
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			f.t.Error(err)
		}
	})
	return s
}

func refresh(t testing.TB, s *memory.Store) {
	t.Helper()
	if err := s.Refresh(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// titled returns the only headline with the title.
func titled(t testing.TB, v *memory.View, title string) memory.Object {
	t.Helper()
	var found []memory.Object
	for o := range v.All() {
		if o.Title == title {
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		t.Fatalf("want one headline %q, found %d", title, len(found))
	}
	return found[0]
}

// change applies one change to a headline found by title.
func change(t testing.TB, s *memory.Store, title string, c memory.Change) memory.Result {
	t.Helper()
	o := titled(t, s.View(), title)
	r, err := s.Apply(context.Background(), memory.Tx{Actor: "agent", Turn: "t1", Edits: []memory.Edit{{Object: o.ID, Expect: o.Hash, Change: c}}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func titles(os []memory.Object) string {
	var out []string
	for _, o := range os {
		out = append(out, o.Title)
	}
	return strings.Join(out, ",")
}

const tasks = `#+TITLE: Tasks
#+FILETAGS: :work:
Some words first.
* TODO [#A] Write the report :urgent:
SCHEDULED: <2026-03-10 Tue> DEADLINE: <2026-03-20 Fri>
:PROPERTIES:
:ID: report
:EFFORT: 2:00
:END:
It is about whales.
** NEXT Ask Ann :@phone:
** DONE Read the old one
CLOSED: [2026-03-01 Sun 10:00]
* Ideas :@personal:
** A boat
`

func TestAnObjectSaysWhatTheHeadlineSays(t *testing.T) {
	f := newFixture(t, map[string]string{"tasks.org": tasks})
	v := f.open().View()
	o, ok := v.Get("report")
	if !ok {
		t.Fatal("the object with an ID property was not found")
	}
	if o.Title != "Write the report" || o.Todo != "TODO" || o.Done || o.Priority != "A" || o.Level != 1 || o.Line != 4 ||
		o.File != "tasks.org" || o.IsFile() {
		t.Errorf("fields: %+v", o)
	}
	if !slices.Equal(o.Tags, []string{"urgent"}) || !slices.Equal(o.AllTags, []string{"work", "urgent"}) {
		t.Errorf("tags %q, all %q", o.Tags, o.AllTags)
	}
	if o.Scheduled.Raw != "<2026-03-10 Tue>" || o.Deadline.Raw != "<2026-03-20 Fri>" {
		t.Errorf("planning %q %q", o.Scheduled.Raw, o.Deadline.Raw)
	}
	if e, _ := o.Property("effort"); e != "2:00" {
		t.Errorf("property %q", e)
	}
	if o.Body() != "It is about whales.\n" {
		t.Errorf("body %q", o.Body())
	}
	if got := titles(slices.Collect(o.Children())); got != "NEXT Ask Ann,Read the old one" {
		t.Errorf("children %q", got)
	}
	file, ok := v.Get(o.Parent)
	if !ok || !file.IsFile() || file.Title != "Tasks" || file.Parent != "" {
		t.Errorf("parent %+v", file)
	}
}

func TestAnObjectWithoutIDKeepsItsDerivedOneWhenOthersChange(t *testing.T) {
	f := newFixture(t, map[string]string{"a.org": "* One\n** Twin\nfirst\n** Twin\nsecond\n", "b.org": "* One\n"})
	s := f.open()
	seen := map[memory.ID]string{}
	for o := range s.View().All() {
		if !o.ID.Derived() || seen[o.ID] != "" {
			t.Errorf("identifier %q of %s %q", o.ID, o.File, o.Title)
		}
		seen[o.ID] = o.Text()
	}
	before := f.read("a.org")
	f.write("a.org", "* Zero\n* One\nnew body\n** Twin\nfirst\n** Other\n** Twin\nsecond\n")
	refresh(t, s)
	for id, text := range seen {
		o, ok := s.View().Get(id)
		if !ok || strings.HasPrefix(text, "** Twin") && o.Text() != text {
			t.Errorf("%s: was %q, is %q", id, text, o.Text())
		}
	}
	if strings.Contains(before+f.read("a.org"), "PROPERTIES") {
		t.Error("looking at a memex wrote to it")
	}
}

func TestEveryChangeKindWritesWhatItSays(t *testing.T) {
	const doc = "* TODO Task :a:\nbody\n* Other\n"
	for _, tt := range []struct {
		name   string
		change memory.Change
		want   string
	}{
		{"todo", memory.Change{Kind: memory.SetTodo, Value: "DONE"}, "* DONE Task :a:\nCLOSED: [2026-03-10 Tue 12:00]\nbody\n* Other\n"},
		{"title", memory.Change{Kind: memory.SetTitle, Value: "Job"}, "* TODO Job :a:\n:PROPERTIES:\n:ID:       new-1\n:END:\nbody\n* Other\n"},
		{"priority", memory.Change{Kind: memory.SetPriority, Value: "A"}, "* TODO [#A] Task :a:\nbody\n* Other\n"},
		{"tags", memory.Change{Kind: memory.SetTags, Tags: []string{"b", "c"}}, "* TODO Task :b:c:\nbody\n* Other\n"},
		{"property", memory.Change{Kind: memory.SetProperty, Key: "K", Value: "v"}, "* TODO Task :a:\n:PROPERTIES:\n:K:        v\n:END:\nbody\n* Other\n"},
		{"schedule", memory.Change{Kind: memory.Schedule, Value: "<2026-04-01 Wed>"}, "* TODO Task :a:\nSCHEDULED: <2026-04-01 Wed>\nbody\n* Other\n"},
		{"deadline", memory.Change{Kind: memory.SetDeadline, Value: "<2026-04-01 Wed>"}, "* TODO Task :a:\nDEADLINE: <2026-04-01 Wed>\nbody\n* Other\n"},
		{"body", memory.Change{Kind: memory.SetBody, Value: "new\n* no headline"}, "* TODO Task :a:\nnew\n,* no headline\n* Other\n"},
		{"insert", memory.Change{Kind: memory.Insert, Entry: org.Entry{Title: "Sub", Todo: "TODO"}}, "* TODO Task :a:\nbody\n** TODO Sub\n:PROPERTIES:\n:ID:       new-1\n:END:\n* Other\n"},
		{"delete", memory.Change{Kind: memory.Delete}, "* Other\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, map[string]string{"a.org": doc})
			s := f.open()
			change(t, s, "Task", tt.change)
			if got := f.read("a.org"); got != tt.want {
				t.Errorf("want %q\nfound %q", tt.want, got)
			}
			if p := s.Verify(); len(p) > 0 {
				t.Error(p)
			}
		})
	}
}

func TestCaptureMakesTheFileAndReturnsTheID(t *testing.T) {
	f := newFixture(t, nil)
	s := f.open()
	r, err := s.Apply(context.Background(), memory.Tx{Edits: []memory.Edit{{
		File: "inbox/today.org", Change: memory.Change{Kind: memory.Insert, Entry: org.Entry{Title: "Buy milk", Todo: "TODO", Body: "two"}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	o, ok := s.View().Get(r.IDs[0])
	if !ok || o.Title != "Buy milk" || o.File != "inbox/today.org" {
		t.Fatalf("captured %+v", o)
	}
}

func TestRefileAndArchiveMoveTheSubtreeUnderOneID(t *testing.T) {
	f := newFixture(t, map[string]string{"a.org": "* Task\n** Sub\n* Stay\n", "b.org": "* Home\n"})
	s := f.open()
	home := titled(t, s.View(), "Home")
	r := change(t, s, "Task", memory.Change{Kind: memory.Refile, Target: home.ID})
	if got := f.read("a.org"); got != "* Stay\n" {
		t.Errorf("source %q", got)
	}
	if got := f.read("b.org"); !strings.Contains(got, "** Task") || !strings.Contains(got, "*** Sub") {
		t.Errorf("target %q", got)
	}
	o, ok := s.View().Get(r.IDs[0])
	if !ok || o.File != "b.org" || o.Level != 2 {
		t.Fatalf("moved %+v", o)
	}
	change(t, s, "Task", memory.Change{Kind: memory.Archive})
	o, ok = s.View().Get(r.IDs[0])
	if !ok || o.File != "b.org_archive" {
		t.Errorf("archived %+v", o)
	}
}

func TestAnEditOfAChangedHeadlineIsAConflictAndBothVersionsAreKept(t *testing.T) {
	f := newFixture(t, map[string]string{"a.org": "* TODO Task\nmine\n** Child\n* Other\n"})
	s := f.open()
	o := titled(t, s.View(), "Task")
	f.write("a.org", "* TODO Task\nthe user's\n** Child\n* Other\n")
	_, err := s.Apply(context.Background(), memory.Tx{Edits: []memory.Edit{{Object: o.ID, Expect: o.Hash, Change: memory.Change{Kind: memory.SetBody, Value: "agent's"}}}})
	var c *memory.ConflictError
	if !errors.As(err, &c) {
		t.Fatalf("want a conflict, found %v", err)
	}
	if !strings.Contains(c.Theirs, "the user's") || !strings.Contains(c.Ours, "agent's") {
		t.Errorf("theirs %q, ours %q", c.Theirs, c.Ours)
	}
	if got := f.read("a.org"); !strings.Contains(got, "the user's") {
		t.Errorf("the user's text was overwritten: %q", got)
	}
}

func TestAnEditMergesWithAChangeOfAnotherHeadline(t *testing.T) {
	f := newFixture(t, map[string]string{"a.org": "* TODO Task\nmine\n** Child\n* Other\n"})
	s := f.open()
	o := titled(t, s.View(), "Task")
	f.write("a.org", "* New\n* TODO Task\nmine\n** Child\nchanged\n* Other\n")
	if _, err := s.Apply(context.Background(), memory.Tx{Edits: []memory.Edit{{Object: o.ID, Expect: o.Hash, Change: memory.Change{Kind: memory.SetBody, Value: "agent's"}}}}); err != nil {
		t.Fatal(err)
	}
	if got, want := f.read("a.org"), "* New\n* TODO Task\nagent's\n** Child\nchanged\n* Other\n"; got != want {
		t.Errorf("want %q\nfound %q", want, got)
	}
}

// TestINV10 is the promise of the design: bytes outside the edit stay, a file
// changed underneath is never overwritten.
func TestINV10EditsAreLosslessAndNeverOverwriteAChange(t *testing.T) {
	const odd = "#+TITLE:odd \r\n\t * not a headline\n*  TODO   Spaced   title\t:a:\n   :PROPERTIES:\n   :X:    1\n   :END:\nlast line without end"
	f := newFixture(t, map[string]string{"a.org": odd})
	s := f.open()
	o := titled(t, s.View(), "Spaced   title")
	r := change(t, s, o.Title, memory.Change{Kind: memory.SetPriority, Value: "A"})
	after := string(r.Files[0].After)
	if strings.Replace(after, "[#A] ", "", 1) != odd {
		t.Errorf("more than the priority changed:\n%q\n%q", odd, after)
	}
	if f.read("a.org") != after {
		t.Error("the file is not what the result says")
	}
	f.write("a.org", after+"!")
	if err := setBody(s, titled(t, s.View(), o.Title), "x"); err == nil || f.read("a.org") != after+"!" {
		t.Errorf("a change underneath was overwritten (%v)", err)
	}
}
