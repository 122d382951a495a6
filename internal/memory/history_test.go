package memory_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"passepartout/internal/memory"
	"passepartout/internal/org"
)

func TestUndoKeepsWhatTheUserDidElsewhereInTheFile(t *testing.T) {
	f := newFixture(t, map[string]string{"a.org": "* A\nold\n* B\n"})
	s := f.open()
	change(t, s, "A", memory.Change{Kind: memory.SetBody, Value: "new"})
	f.write("a.org", "* Zero\n* A\nnew\n* B\nuser\n")
	if _, err := s.Undo(t.Context(), memory.Mark{}); err != nil {
		t.Fatal(err)
	}
	if got, want := f.read("a.org"), "* Zero\n* A\nold\n* B\nuser\n"; got != want {
		t.Errorf("want %q, found %q", want, got)
	}
	if _, err := s.Redo(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := f.read("a.org"), "* Zero\n* A\nnew\n* B\nuser\n"; got != want {
		t.Errorf("redo: want %q, found %q", want, got)
	}
}

func TestUndoPassesOverWhatOnlyShowsSomethingElse(t *testing.T) {
	f := newFixture(t, map[string]string{"a.org": "* A\nold\n", "board.org": "* Plans\n"})
	s := f.open()
	change(t, s, "A", memory.Change{Kind: memory.SetBody, Value: "new"})
	show := memory.Tx{Shown: true, Edits: []memory.Edit{{File: "board.org", Change: memory.Change{Kind: memory.Insert, Value: "* PLAN one\n"}}}}
	if _, err := s.Apply(t.Context(), show); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Undo(t.Context(), memory.Mark{}); err != nil {
		t.Fatal(err)
	}
	if got := f.read("a.org"); got != "* A\nold\n" {
		t.Errorf("the agent's edit stands: %q", got)
	}
	if got := f.read("board.org"); !strings.Contains(got, "PLAN one") {
		t.Errorf("what was shown is gone: %q", got)
	}
	if _, err := s.Undo(t.Context(), memory.Mark{}); !errors.Is(err, memory.ErrNothing) {
		t.Errorf("want nothing more to undo, found %v", err)
	}
	if _, err := s.Redo(t.Context()); err != nil || f.read("a.org") != "* A\nnew\n" {
		t.Errorf("redo: %q, %v", f.read("a.org"), err)
	}
}

func TestUndoRefusesWhereTheUserChangedTheSamePlaceAndShowsHow(t *testing.T) {
	f := newFixture(t, map[string]string{"a.org": "* A\nold\n* B\n"})
	s := f.open()
	change(t, s, "A", memory.Change{Kind: memory.SetBody, Value: "new"})
	f.write("a.org", "* A\nnewer\n* B\n")
	_, err := s.Undo(t.Context(), memory.Mark{})
	var d *memory.DivergedError
	if !errors.As(err, &d) || !strings.Contains(d.Diff, "-new\n+newer") {
		t.Fatalf("want a divergence with its diff, found %v %+v", err, d)
	}
	if got := f.read("a.org"); got != "* A\nnewer\n* B\n" {
		t.Errorf("a refused undo wrote %q", got)
	}
}

func TestATurnIsUndoneAsAWholeAcrossFilesAndRestarts(t *testing.T) {
	f := newFixture(t, map[string]string{"a.org": "* A\n", "b.org": "* B\n"})
	s := f.open()
	apply := func(turn, title, file string) {
		t.Helper()
		o := titled(t, s.View(), title)
		_, err := s.Apply(t.Context(), memory.Tx{Turn: turn, Edits: []memory.Edit{
			{Object: o.ID, Expect: o.Hash, Change: memory.Change{Kind: memory.SetBody, Value: turn}},
			{File: file, Change: memory.Change{Kind: memory.Insert, Entry: org.Entry{Title: "made in " + turn}}},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	apply("t1", "A", "new.org")
	apply("t2", "B", "b.org")
	apply("t2", "A", "a.org")
	after := f.read("a.org") + f.read("b.org")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = f.open()
	if _, err := s.Undo(t.Context(), memory.Mark{Turn: "t2"}); err != nil {
		t.Fatal(err)
	}
	if got := f.read("a.org") + f.read("b.org"); got != "* A\nt1\n* B\n" {
		t.Errorf("after undoing t2: %q", got)
	}
	if _, err := s.Redo(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := f.read("a.org") + f.read("b.org"); got != after {
		t.Errorf("after redo: %q", got)
	}
	if _, err := s.Rewind(t.Context(), memory.Mark{}); err != nil {
		t.Fatal(err)
	}
	if got := f.read("a.org") + f.read("b.org"); got != "* A\n* B\n" {
		t.Errorf("after rewinding everything: %q", got)
	}
	if _, ok := s.View().File("new.org"); ok {
		t.Error("a file the agent made is still there")
	}
	if _, err := s.Undo(t.Context(), memory.Mark{}); !errors.Is(err, memory.ErrNothing) {
		t.Errorf("want nothing to undo, found %v", err)
	}
}

func TestRewindToATimeTakesBackWhatCameLater(t *testing.T) {
	f := newFixture(t, map[string]string{"a.org": "* A\n"})
	o := f.options()
	now := noon
	o.Now = func() time.Time { return now }
	s, err := memory.Open(t.Context(), f.dir, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range 4 {
		now = noon.Add(time.Duration(i) * time.Hour)
		change(t, s, "A", memory.Change{Kind: memory.SetBody, Value: fmt.Sprint(i)})
	}
	if _, err := s.Rewind(t.Context(), memory.Mark{Time: noon.Add(90 * time.Minute)}); err != nil {
		t.Fatal(err)
	}
	if got := titled(t, s.View(), "A").Body(); got != "1\n" {
		t.Errorf("body %q", got)
	}
	if os, err := s.View().Match("since:now"); err != nil || len(os) != 1 {
		t.Errorf("changed now: %v %v", os, err)
	}
}

func TestEveryVersionOfAnObjectIsKeptUnderItsIDWhereverItGoes(t *testing.T) {
	f := newFixture(t, map[string]string{"a.org": "* A\nzero\n", "b.org": "* B\n"})
	s := f.open()
	change(t, s, "A", memory.Change{Kind: memory.SetBody, Value: "one"})
	r := change(t, s, "A", memory.Change{Kind: memory.SetTitle, Value: "A renamed"}) // an ID is written here
	id := r.IDs[0]
	if id.Derived() {
		t.Fatalf("the renamed object has the derived identifier %s", id)
	}
	// The user moves it to another file and edits it.
	text := f.read("a.org")
	f.write("a.org", "")
	f.write("b.org", "* B\n"+strings.Replace(text, "one", "two", 1))
	refresh(t, s)
	change(t, s, "A renamed", memory.Change{Kind: memory.SetTodo, Value: "DONE"})
	versions, err := s.Versions(id)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range versions {
		got = append(got, fmt.Sprintf("%s %s %v", v.Op.Kind, v.File, strings.Contains(v.Text, "two")))
	}
	want := "edit a.org false|edit a.org false|external b.org true|edit b.org true"
	if strings.Join(got, "|") != want {
		t.Errorf("want %s, found %s", want, strings.Join(got, "|"))
	}
	o, _ := s.View().Get(id)
	if o.Version != 4 || !o.Changed.Equal(noon) {
		t.Errorf("version %d, changed %s", o.Version, o.Changed)
	}
}

func TestADryRunShowsTheOutcomeAndWritesNothing(t *testing.T) {
	f := newFixture(t, map[string]string{"a.org": "* A\nold\n"})
	s := f.open()
	o := titled(t, s.View(), "A")
	r, err := s.Apply(t.Context(), memory.Tx{DryRun: true, Edits: []memory.Edit{{Object: o.ID, Expect: o.Hash, Change: memory.Change{Kind: memory.SetBody, Value: "new"}}}})
	if err != nil || len(r.Files) != 1 || string(r.Files[0].After) != "* A\nnew\n" || r.Seq != 0 {
		t.Errorf("result %+v, %v", r, err)
	}
	if f.read("a.org") != "* A\nold\n" || len(s.History()) != 0 || titled(t, s.View(), "A").Hash != o.Hash {
		t.Error("a dry run left traces")
	}
}

func TestATransactionWithOneBadEditDoesNothing(t *testing.T) {
	f := newFixture(t, map[string]string{"a.org": "* A\n* B\n"})
	s := f.open()
	a, b := titled(t, s.View(), "A"), titled(t, s.View(), "B")
	for name, bad := range map[string]memory.Edit{
		"unknown kind":   {Object: b.ID, Expect: b.Hash, Change: memory.Change{Kind: "set-tood"}},
		"no expectation": {Object: b.ID, Change: memory.Change{Kind: memory.SetBody}},
		"no object":      {Object: "nobody", Expect: b.Hash, Change: memory.Change{Kind: memory.SetBody}},
		"wrong hash":     {Object: b.ID, Expect: a.Hash, Change: memory.Change{Kind: memory.SetBody}},
		"bad keyword":    {Object: b.ID, Expect: b.Hash, Change: memory.Change{Kind: memory.SetTodo, Value: "NOPE"}},
		"bad timestamp":  {Object: b.ID, Expect: b.Hash, Change: memory.Change{Kind: memory.Schedule, Value: "soon"}},
		"forged entry":   {Object: b.ID, Change: memory.Change{Kind: memory.Insert, Entry: org.Entry{Title: "x", Properties: []org.Property{{Key: "K", Value: "v\n:END:\n* forged"}}}}},
		"forged tag":     {Object: b.ID, Change: memory.Change{Kind: memory.Insert, Entry: org.Entry{Title: "x", Tags: []string{"a b"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.Apply(t.Context(), memory.Tx{Edits: []memory.Edit{{Object: a.ID, Expect: a.Hash, Change: memory.Change{Kind: memory.SetBody, Value: "x"}}, bad}})
			if err == nil {
				t.Fatal("the transaction was accepted")
			}
			if got := f.read("a.org"); got != "* A\n* B\n" {
				t.Errorf("it wrote %q", got)
			}
			if name == "unknown kind" && !strings.Contains(err.Error(), `did you mean "set-todo"`) {
				t.Errorf("no suggestion in %v", err)
			}
		})
	}
}

func TestABufferIsShownAndNeverWritten(t *testing.T) {
	f := newFixture(t, map[string]string{"a.org": "* A\nsaved\n"})
	s := f.open()
	if err := s.ShowBuffer("emacs", "a.org", []byte("* A\ntyped\n")); err != nil {
		t.Fatal(err)
	}
	o := titled(t, s.View(), "A")
	if o.Body() != "typed\n" || !o.Unsaved || f.read("a.org") != "* A\nsaved\n" {
		t.Errorf("shown %q, on disk %q", o.Body(), f.read("a.org"))
	}
	if err := setBody(s, o, "agent"); !errors.Is(err, memory.ErrUnsaved) {
		t.Errorf("editing under a buffer: %v", err)
	}
	f.write("a.org", "* A\nchanged on disk\n")
	refresh(t, s)
	if titled(t, s.View(), "A").Body() != "typed\n" {
		t.Error("a change on disk hid the buffer")
	}
	f.write("a.org", "* A\ntyped\n") // the client saves
	refresh(t, s)
	if o = titled(t, s.View(), "A"); o.Unsaved || o.Body() != "typed\n" {
		t.Errorf("after saving: %+v", o)
	}
	if err := setBody(s, o, "agent"); err != nil {
		t.Error(err)
	}
	if err := s.ShowBuffer("emacs", "a.org", []byte("* B\n")); err != nil {
		t.Fatal(err)
	}
	s.DropBuffer("emacs", "")
	if titled(t, s.View(), "A").Body() != "agent\n" {
		t.Error("the dropped buffer is still shown")
	}
}

func TestASnapshotIsAViewThatIsKept(t *testing.T) {
	f := newFixture(t, map[string]string{"a.org": "* A\nold\n"})
	s := f.open()
	snapshot := s.View()
	hash := snapshot.Hash()
	change(t, s, "A", memory.Change{Kind: memory.SetBody, Value: "new"})
	change(t, s, "A", memory.Change{Kind: memory.Delete})
	if snapshot.Hash() != hash || titled(t, snapshot, "A").Body() != "old\n" || s.View().Len() != 0 {
		t.Error("the snapshot changed")
	}
}

func TestMerkleHashesCoverTheWholeSubtreeAndNothingElse(t *testing.T) {
	f := newFixture(t, map[string]string{"a.org": "* A\n** B\n*** C\n* D\n"})
	s := f.open()
	before := map[string]memory.Object{}
	for o := range s.View().All() {
		before[o.Title] = o
	}
	root := s.View().Hash()
	change(t, s, "C", memory.Change{Kind: memory.SetBody, Value: "x"})
	for o := range s.View().All() {
		was := before[o.Title]
		if changed := o.Hash != was.Hash; changed != (o.Title != "D") {
			t.Errorf("%s: hash changed %v", o.Title, changed)
		}
		if changed := o.Own != was.Own; changed != (o.Title == "C") {
			t.Errorf("%s: own hash changed %v", o.Title, changed)
		}
	}
	if s.View().Hash() == root {
		t.Error("the root hash did not change")
	}
	if _, err := s.Undo(t.Context(), memory.Mark{}); err != nil || s.View().Hash() != root {
		t.Errorf("after undo the root hash differs (%v)", err)
	}
}

func TestAnAncestorsSnapshotComesInWithIDsAndTree(t *testing.T) {
	const snap = `(:MEMORY
 (("n1" . (:ID "n1" :TYPE :HEADLINE :ATTRIBUTES (:TITLE "Garden" :TAGS ("project" "out-door") :TODO-STATE "TODO") :CONTENT "Garden
Plant *things*.
* not a headline" :PARENT-ID NIL :CHILDREN ("n2" "n3") :VERSION 12 :HASH "ab"))
  ("n2" . (:ID "n2" :TYPE :HEADLINE :ATTRIBUTES (:TITLE "Buy seeds") :CONTENT "Buy seeds" :PARENT-ID "n1" :CHILDREN NIL))
  (:ID "n3" :TYPE :HEADLINE :ATTRIBUTES (:TITLE "日本") :CONTENT "" :PARENT-ID "n1")
  ("known" . (:ID "known" :ATTRIBUTES (:TITLE "Old") :CONTENT "Old")))
 :HISTORY-STORE NIL)`
	f := newFixture(t, map[string]string{"a.org": "* Mine\n:PROPERTIES:\n:ID: known\n:END:\n"})
	s := f.open()
	_, known, err := s.ImportSnapshot(t.Context(), []byte(snap), "inbox/imported.org")
	if err != nil || len(known) != 1 || known[0] != "known" {
		t.Fatalf("known %v, %v", known, err)
	}
	o, ok := s.View().Get("n1")
	if !ok || o.Title != "Garden" || o.Todo != "TODO" || !o.HasTag("out_door") || o.Body() != "Plant *things*.\n,* not a headline\n" {
		t.Errorf("imported %+v %q", o, o.Body())
	}
	for id, title := range map[memory.ID]string{"n2": "Buy seeds", "n3": "日本"} {
		if c, ok := s.View().Get(id); !ok || c.Title != title || c.Parent != "n1" {
			t.Errorf("%s: %+v", id, c)
		}
	}
	if mine, _ := s.View().Get("known"); mine.Title != "Mine" {
		t.Errorf("the memex's own object became %q", mine.Title)
	}
	if _, _, err := s.ImportSnapshot(t.Context(), []byte(`(:MEMORY ((:ID #.(quit))))`), "x.org"); err == nil {
		t.Error("a snapshot that wants to be evaluated was accepted")
	}
	if _, err := s.Undo(t.Context(), memory.Mark{}); err != nil || s.View().Len() != 1 {
		t.Errorf("undoing the import: %v", err)
	}
}
