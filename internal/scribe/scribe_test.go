package scribe_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"passepartout/internal/memory"
	"passepartout/internal/org"
	"passepartout/internal/scribe"
)

const secretWord = "XYZZYPRIVATE"

// year writes 365 days of log: thoughts, definitions, decisions, links, tasks, and
// private parts of three kinds that all hold one word.
func year(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "daily"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 365 {
		day := time.Date(2025, 11, 15, 0, 0, 0, 0, time.UTC).AddDate(0, 0, i)
		var b strings.Builder
		private := i%50 == 7
		if private {
			b.WriteString("#+FILETAGS: :@personal:\n")
		}
		word := "something"
		if private {
			word = secretWord
		}
		fmt.Fprintf(&b, "* Thought %d about %s\n", i, word)
		if i%3 == 0 {
			fmt.Fprintf(&b, ":PROPERTIES:\n:ID: day-%d\n:END:\n", i)
		}
		fmt.Fprintf(&b, "On day %d it became clear that %s grows best when it is left alone for a while.\n", i, word)
		fmt.Fprintf(&b, "- term%d :: what %s means on that day\nDecision: keep %s number %d\nSee [[https://example.org/%d][a page on %s %d]].\n", i, word, word, i, i, word, i)
		fmt.Fprintf(&b, "** %s diary :@personal:\n%s was here, with much to say about many things on that day.\n- %s :: a thing\n*** TODO call %s\nMore of %s.\n", secretWord, secretWord, secretWord, secretWord, secretWord)
		fmt.Fprintf(&b, "* TODO Call the plumber about %s %d\n* DONE Old task %d\n* Short\nToo short.\n", word, i, i)
		if err := os.WriteFile(filepath.Join(dir, "daily", day.Format(time.DateOnly)+".org"), []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func open(t *testing.T, dir string) *memory.Store {
	t.Helper()
	s, err := memory.Open(context.Background(), dir, memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// keep makes a note as its action does: the identifier first, then the file.
func keep(t *testing.T, s *memory.Store, n scribe.Note) {
	t.Helper()
	if n.Source.Write {
		if o, ok := s.View().Get(n.Source.Object.ID); ok {
			e := memory.Edit{Object: o.ID, Expect: o.Hash, Change: memory.Change{Kind: memory.SetProperty, Key: "ID", Value: n.Source.ID}}
			if _, err := s.Apply(context.Background(), memory.Tx{Edits: []memory.Edit{e}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	path := filepath.Join(s.Root(), filepath.FromSlash(n.File))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(n.Text()); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAYearOfLogsIsDistilledOnceAndNothingPrivateIsTold(t *testing.T) {
	s := open(t, year(t))
	days := scribe.Days(s.View(), time.Time{})
	notes := scribe.Extract(s.View(), days)
	var told strings.Builder
	kinds := map[scribe.Kind]int{}
	for _, n := range notes {
		kinds[n.Kind]++
		told.WriteString(n.Text() + n.File)
		keep(t, s, n)
	}
	told.WriteString(scribe.Report(notes, time.Now(), nil))
	prompts := 0
	for _, d := range days {
		if p := scribe.Prompt(d, func(s string) string { return s }); p != "" {
			told.WriteString(p)
			prompts++
		}
	}
	if strings.Contains(told.String(), secretWord) {
		i := strings.Index(told.String(), secretWord)
		t.Errorf("private text is told: %q", told.String()[max(0, i-200):i+50])
	}
	if err := s.Refresh(context.Background()); err != nil {
		t.Fatal(err)
	}
	if again := scribe.Extract(s.View(), scribe.Days(s.View(), time.Time{})); len(again) != 0 {
		t.Errorf("the second run proposes %d notes, such as %+v", len(again), again[0])
	}
	back := regexp.MustCompile(`\[\[id:([^\]]+)\]`)
	v := s.View()
	linked := 0
	for f := range v.FileObjects() {
		if !strings.HasPrefix(f.File, "notes/") {
			continue
		}
		for _, m := range back.FindAllStringSubmatch(f.Subtree(), -1) {
			o, ok := v.Get(memory.ID(m[1]))
			if !ok || !strings.HasPrefix(o.File, "daily/") || v.PrivateObject(o) {
				t.Fatalf("%s links to %s, which leads to %q", f.File, m[1], o.File)
			}
			linked++
		}
	}
	if linked != len(notes) || len(notes) < 365 {
		t.Errorf("%d notes, %d links back", len(notes), linked)
	}
	t.Logf("365 days: %d notes (%v), %d prompts, second run 0, every link leads to a day, nothing private", len(notes), kinds, prompts)
}

func TestAModelsConceptsLinkBackOrAreDropped(t *testing.T) {
	s := open(t, year(t))
	d := scribe.Days(s.View(), time.Time{})[0]
	answer := "Sure!\nNOTE 1\nTITLE: Patience\nBODY: Things grow.\n* Not a heading\nEND\nNOTE 99\nTITLE: Nowhere\nBODY: x\nEND\nTITLE: Loose\nNOTE 1\nTITLE: Empty\nEND\n"
	notes := scribe.Read(s.View(), d, answer)
	if len(notes) != 1 || notes[0].Title != "Patience" || notes[0].Kind != scribe.Concept {
		t.Fatalf("notes: %+v", notes)
	}
	if text := notes[0].Text(); !strings.Contains(text, "\n * Not a heading") || !strings.Contains(text, "[[id:day-0][2025-11-15: Thought 0 about something]]") {
		t.Errorf("note:\n%s", text)
	}
	if len(scribe.Read(s.View(), d, "NONE")) != 0 {
		t.Error("NONE is no note")
	}
}

func TestAModelMakesNoNoteOfWhatItWasNotShown(t *testing.T) {
	dir := t.TempDir()
	text := "* Short\nToo short.\n* Page\n:PROPERTIES:\n:ORIGIN: web\n:END:\nA stranger's words, enough of them to be a thought of their own.\n"
	if err := os.MkdirAll(filepath.Join(dir, "daily"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "daily", "2026-01-01.org"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	d := scribe.Days(s.View(), time.Time{})[0]
	if p := scribe.Prompt(d, strings.ToUpper); p != "" {
		t.Errorf("shown: %s", p)
	}
	for n := range len(d.Sources) {
		if got := scribe.Read(s.View(), d, fmt.Sprintf("NOTE %d\nTITLE: Mine\nBODY: The person's own thought.\nEND\n", n+1)); len(got) > 0 {
			t.Errorf("passage %d was not shown, and became %+v", n+1, got)
		}
	}
}

// TestANoteTakesNoSettingsFromItsText: indented or not, in whatever letter case.
func TestANoteTakesNoSettingsFromItsText(t *testing.T) {
	n := scribe.Note{Kind: scribe.Thought, Title: "T", Body: "Text.\n#+FILETAGS: :project:\n  #+filetags: :work:\n\t#+PROPERTY: SCOPE session\n* Head\n#+begin_src org\n,* x\n#+end_src\n#+TODO: A | B"}
	f := org.Parse([]byte(n.Text()))
	if got := f.FileTags(); len(got) != 1 || got[0] != "thought" {
		t.Errorf("tags %q", got)
	}
	if _, ok := f.Property("SCOPE"); ok || f.Len() != 0 || len(f.TodoKeywords()) != 2 || f.TodoKeywords()[0] != "TODO" {
		t.Errorf("the text was read as more than text:\n%s", n.Text())
	}
}
