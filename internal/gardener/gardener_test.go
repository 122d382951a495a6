package gardener_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"passepartout/internal/gardener"
	"passepartout/internal/memory"
	"passepartout/internal/org"
)

var now = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

// odd is text that no repair has any business with, written so that rewriting it
// would show.
const odd = "** Kept   as it is\t :x:\n   odd   spacing\t\n\n\n- item [[https://example.org][out]]\n  #+begin_src sh\n  echo *\n  #+end_src\n"

const each = 20

// plant writes a memex with each kind of defect twenty times.
func plant(t *testing.T) (dir string, want map[gardener.Kind]int) {
	t.Helper()
	dir = t.TempDir()
	files := map[string]*strings.Builder{}
	add := func(file, format string, args ...any) {
		if files[file] == nil {
			files[file] = &strings.Builder{}
		}
		fmt.Fprintf(files[file], format, args...)
	}
	want = map[gardener.Kind]int{}
	// A healthy note that others mean to link to.
	add("notes/hub.org", "#+TITLE: Hub\n")
	for i := range each {
		add("notes/hub.org", "* Target %02d\n:PROPERTIES:\n:ID: target-%02d-abcdefgh\n:END:\nText.\n", i, i)
		add(fmt.Sprintf("notes/parts/part%02d.org", i), "#+TITLE: Part %02d\n* Chapter One %02d\n[[file:../hub.org][hub]]\n", i, i)

		add("areas/links.org", "* Id by words %02d\nSee [[id:gone-%02d][Target %02d]] and more.\n%s", i, i, i, odd)
		add("areas/links.org", "* Id mistyped %02d\nSee [[id:target-%02d-abcdefgx]].\n%s", i, i, odd)
		add("areas/links.org", "* Id gone %02d\nSee [[id:q%02dz][nothing like it]].\n%s", i, i, odd)
		want[gardener.BrokenID] += 3
		add("areas/files.org", "* File moved %02d\nSee [[file:../old/part%02d.org][it]].\n%s", i, i, odd)
		add("areas/files.org", "* File gone %02d\nSee [[file:nowhere%02d.txt]].\n%s", i, i, odd)
		want[gardener.BrokenFile] += 2
		add("areas/heads.org", "* Heading elsewhere %02d\nSee [[file:../notes/parts/part%02d.org::*Chapter One%02d][it]].\n%s", i, i, i, odd)
		add("areas/heads.org", "* Heading here %02d\nSee [[*Heading heer %02d]].\n%s", i, i, odd)
		want[gardener.BrokenHeading] += 2
		add("areas/twice.org", "* First %02d\n:PROPERTIES:\n:ID: twice-%02d\n:END:\n* Second %02d\n:PROPERTIES:\n:ID: twice-%02d\n:END:\n%s", i, i, i, i, odd)
		want[gardener.DuplicateID]++
		add(fmt.Sprintf("notes/lonely%02d.org", i), "#+TITLE: Lonely %02d\n* Thought %02d\nNobody links here.\n", i, i)
		want[gardener.Orphan]++
		add("projects/tasks.org", "* TODO Old %02d\nSCHEDULED: <2024-01-%02d>\n%s", i, 1+i, odd)
		want[gardener.StaleTask]++
		add("projects/tasks.org", "* DONE Finished %02d\n** TODO Not quite %02d\n%s", i, i, odd)
		want[gardener.OpenBelowDone]++
		add("projects/tasks.org", "* TODO Closed %02d\nCLOSED: [2026-11-01 Sun]\n%s", i, odd)
		want[gardener.ClosedOpen]++
		add(fmt.Sprintf("areas/empty%02d.org", i), "* Full %02d\n** \n%s", i, odd)
		want[gardener.EmptyHeading]++
		add(fmt.Sprintf("areas/same%02d.org", i), "* Parent %02d\n** Said twice\nText.\n** Said twice\nText.\n%s", i, odd)
		want[gardener.TwinHeading]++
		add("areas/tags.org", "* Usual %02d :garden:\n* Usual too %02d :garden:\n* Other %02d :Gardens:\n%s", i, i, i, odd)
		want[gardener.TagVariant]++
		add("areas/dates.org", "* Never %02d\nDEADLINE: <2027-02-30>\n%s", i, odd)
		want[gardener.ImpossibleDate]++
		add("areas/dates.org", "* Not that day %02d\nSCHEDULED: <2027-03-01 Sun 10:00 +1w>\n%s", i, odd)
		want[gardener.WrongDay]++
	}
	add("areas/fine.org", "#+TITLE: Fine\r\n* \xc3\xa4 heading\r\n%s", strings.ReplaceAll(odd, "\n", "\r\n"))
	for name, b := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir, want
}

func open(t *testing.T, dir string) *memory.Store {
	t.Helper()
	s, err := memory.Open(context.Background(), dir, memory.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func inspect(s *memory.Store) []gardener.Defect {
	return gardener.Inspect(s.View(), gardener.Options{Now: now, Inbox: "inbox/inbox.org", Exists: func(name string) bool {
		_, err := os.Stat(filepath.Join(s.Root(), filepath.FromSlash(name)))
		return err == nil
	}})
}

// repair carries a fix out as the tools do.
func repair(t *testing.T, s *memory.Store, f *gardener.Fix) {
	t.Helper()
	e := memory.Edit{File: "inbox/inbox.org", Change: memory.Change{Kind: memory.Insert, Entry: org.Entry{Title: f.Capture}}}
	if f.Capture == "" {
		o, ok := s.View().Get(f.Object)
		if !ok {
			t.Fatalf("%s is gone", f.Object)
		}
		e = memory.Edit{Object: o.ID, Expect: o.Hash, Change: f.Change}
	}
	if _, err := s.Apply(context.Background(), memory.Tx{Actor: "test", Edits: []memory.Edit{e}}); err != nil {
		t.Fatalf("%+v: %v", f, err)
	}
}

func TestPlantedDefectsAreFoundAndTheirRepairsLeaveNone(t *testing.T) {
	dir, want := plant(t)
	s := open(t, dir)
	found := map[gardener.Kind]int{}
	for _, d := range inspect(s) {
		found[d.Kind]++
		if d.Fix == nil {
			t.Errorf("no repair for %+v", d)
		}
	}
	for k, n := range want {
		if found[k] != n {
			t.Errorf("%s: planted %d, found %d", k, n, found[k])
		}
	}
	for k, n := range found {
		if want[k] == 0 {
			t.Errorf("%s: planted none, found %d", k, n)
		}
	}
	fine, err := os.ReadFile(filepath.Join(dir, "areas", "fine.org"))
	if err != nil {
		t.Fatal(err)
	}
	before := kept(t, dir)
	total := len(inspect(s))
	repairs := 0
	for ds := inspect(s); len(ds) > 0; ds = inspect(s) {
		if ds[0].Fix == nil || repairs > 2*total {
			t.Fatalf("after %d repairs %d are left, the first %+v", repairs, len(ds), ds[0])
		}
		for _, d := range batch(ds) {
			repair(t, s, d.Fix)
			repairs++
		}
	}
	if after := kept(t, dir); after != before {
		t.Errorf("text nobody was to touch: %d passages before, %d after", before, after)
	}
	if now, err := os.ReadFile(filepath.Join(dir, "areas", "fine.org")); err != nil || string(now) != string(fine) {
		t.Errorf("a file without a defect was changed: %v", err)
	}
	t.Logf("%d defects of %d kinds, %d repairs, none left", total, len(want), repairs)
}

// batch is as many repairs as can be made before looking again: one an object.
func batch(ds []gardener.Defect) (out []gardener.Defect) {
	seen := map[memory.ID]bool{}
	files := map[string]bool{}
	for _, d := range ds {
		moves := d.Fix != nil && d.Fix.Change.Kind == memory.Archive // what follows may be called otherwise
		if d.Fix != nil && !seen[d.Object] && !files[d.File] {
			out = append(out, d)
			seen[d.Object] = true
			files[d.File] = moves
		}
	}
	return out
}

// kept counts the passages no repair has any business with.
func kept(t *testing.T, dir string) (n int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(p)
		n += strings.Count(string(raw), odd)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestTheReportKeepsTicksAndTellsNothingPrivate(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.org"), []byte("* TODO Shop\nCLOSED: [2026-01-01 Thu]\n* Diary :@personal:\n** TODO Meet Zoe\nCLOSED: [2026-01-01 Thu]\n[[id:zoe][Zoe]]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	ds := inspect(s)
	text := gardener.Report(ds, now, nil)
	if strings.Contains(text, "Zoe") || strings.Contains(strings.ToLower(text), "id:zoe") {
		t.Errorf("private words in the report:\n%s", text)
	}
	if strings.Count(text, "- [ ]") != 3 || len(gardener.Ticked(text)) != 0 {
		t.Errorf("report:\n%s", text)
	}
	ticked := gardener.Ticked(strings.Replace(text, "- [ ]", "- [X]", 1))
	if len(ticked) != 1 {
		t.Fatalf("ticked: %v", ticked)
	}
	again := gardener.Report(inspect(s), now.Add(time.Hour), ticked)
	if strings.Count(again, "- [X]") != 1 || !slices.Equal(keys(gardener.Ticked(again)), keys(ticked)) {
		t.Errorf("the tick is lost:\n%s", again)
	}
}

func keys(m map[string]bool) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func TestEveryRepairIsAnActionForTheGates(t *testing.T) {
	dir, _ := plant(t)
	for _, d := range inspect(open(t, dir)) {
		tool, args := d.Fix.Action()
		if tool == "capture" && args.Text("TITLE") != "" {
			continue
		}
		if tool != "org-edit" || args.Len() != 2 || args.Text("ID") == "" {
			t.Fatalf("%s: %s %s", d.Kind, tool, args)
		}
	}
}
