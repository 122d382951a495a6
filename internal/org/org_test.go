package org_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"passepartout/internal/org"
)

const sample = `#+TITLE: Garden
#+FILETAGS: :home:
#+TODO: TODO(t) NEXT(n!) | DONE(d) DROPPED(x@)
#+PROPERTY: header-args :results silent

Some text before.
* TODO [#A] Plant the /beans/ [1/2]    :spring:veg:
SCHEDULED: <2024-04-01 Mon 09:00 +1w> DEADLINE: <2024-05-01 Wed -3d>
:PROPERTIES:
:ID: beans-1
:Effort: 0:30
:NOTE: a
:note+: b
:END:
Body with [[https://example.org][a link]] and <2024-01-01 Mon>.
** NEXT COMMENT Soak them :spring:wet:
:LOGBOOK:
CLOCK: [2024-03-01 Fri 10:00]--[2024-03-01 Fri 10:30] =>  0:30
:END:
* Not TODO :-)
*bold* is no headline
** DONE Child
CLOSED: [2024-02-02 Fri 12:00]
`

func titles(f *org.File) (out []string) {
	for h := range f.Headlines() {
		out = append(out, h.Title())
	}
	return out
}

func TestHeadlineFieldsAreReadAsEmacsReadsThem(t *testing.T) {
	f := org.Parse([]byte(sample))
	if got, want := titles(f), []string{"Plant the /beans/ [1/2]", "Soak them", "Not TODO :-)", "Child"}; !slices.Equal(got, want) {
		t.Fatalf("titles = %q, want %q", got, want)
	}
	h := f.Headline(0)
	if h.Level() != 1 || h.Todo() != "TODO" || h.Done() || h.Priority() != "A" || h.ID() != "beans-1" {
		t.Errorf("level %d, todo %q, done %v, priority %q, id %q", h.Level(), h.Todo(), h.Done(), h.Priority(), h.ID())
	}
	if v, _ := h.Property("note"); v != "a b" {
		t.Errorf("NOTE = %q, want the + line appended", v)
	}
	if got := h.Scheduled().Repeater(); got != "+1w" {
		t.Errorf("repeater = %q", got)
	}
	if got := h.Deadline().Warn.String(); got != "-3d" {
		t.Errorf("warning = %q", got)
	}
	c := f.Headline(1)
	if !c.Commented() || !slices.Equal(c.AllTags(), []string{"home", "veg", "spring", "wet"}) {
		t.Errorf("commented %v, all tags %q", c.Commented(), c.AllTags())
	}
	if v, ok := c.Inherited("EFFORT"); !ok || v != "0:30" {
		t.Errorf("inherited effort = %q, %v", v, ok)
	}
	if p, ok := c.Parent(); !ok || p.Index() != 0 {
		t.Errorf("parent of the second headline is %v, %v", p.Index(), ok)
	}
	d := f.Headline(3)
	if !d.Done() || d.Closed().Raw != "[2024-02-02 Fri 12:00]" {
		t.Errorf("done %v, closed %q", d.Done(), d.Closed().Raw)
	}
	if f.Title() != "Garden" || !slices.Equal(f.DoneKeywords(), []string{"DONE", "DROPPED"}) {
		t.Errorf("title %q, done keywords %q", f.Title(), f.DoneKeywords())
	}
}

func TestOneHeadlineLineCanBeReadInManyWays(t *testing.T) {
	type fields struct{ todo, priority, title, tags string }
	for line, want := range map[string]fields{
		"* TODO":                    {"TODO", "", "", ""},
		"* TODOx y":                 {"", "", "TODOx y", ""},
		"* TODO\ty":                 {"", "", "TODO\ty", ""},
		"* [#1] x":                  {"", "1", "x", ""},
		"* [#10] x":                 {"", "", "[#10] x", ""},
		"* :only:":                  {"", "", "", "only"},
		"* a :b: c":                 {"", "", "a :b: c", ""},
		"* a :b:c-d:":               {"", "", "a :b:c-d:", ""},
		"* a :ünï:":                 {"", "", "a", "ünï"},
		"* a :b:\t ":                {"", "", "a", "b"},
		"* DONE [#B] COMMENT x :t:": {"DONE", "B", "x", "t"},
		"* COMMENTx":                {"", "", "COMMENTx", ""},
		"* a\r":                     {"", "", "a", ""},
	} {
		f := org.Parse([]byte(line + "\n"))
		if f.Len() != 1 {
			t.Errorf("%q: %d headlines", line, f.Len())
			continue
		}
		h := f.Headline(0)
		if got := (fields{h.Todo(), h.Priority(), h.Title(), strings.Join(h.Tags(), " ")}); got != want {
			t.Errorf("%q read as %+v, want %+v", line, got, want)
		}
	}
}

func TestLinesThatOnlyLookLikeHeadlinesAreText(t *testing.T) {
	for _, src := range []string{"*\n", "**", "*\tx\n", " * x\n", "x\n*bold*\n", "", "\n"} {
		if n := org.Parse([]byte(src)).Len(); n != 0 {
			t.Errorf("%q holds %d headlines, want none", src, n)
		}
	}
	for _, src := range []string{"* ", "* \n", "\xef\xbb\xbf* x\n", "#+begin_src c\n* x\n#+end_src\n"} {
		if n := org.Parse([]byte(src)).Len(); n != 1 {
			t.Errorf("%q holds %d headlines, want one", src, n)
		}
	}
}

func TestPropertyDrawersCountOnlyInTheirPlace(t *testing.T) {
	for src, want := range map[string]int{
		"* a\n:PROPERTIES:\n:K: v\n:END:\n":                                    1,
		"* a\n  :properties:\n  :K: v\n  :K2:\n  :end:\n":                      2,
		"* a\n\n:PROPERTIES:\n:K: v\n:END:\n":                                  0,
		"* a\ntext\n:PROPERTIES:\n:K: v\n:END:\n":                              0,
		"* a\n:PROPERTIES:\n:K: v\nnot a property\n:END:\n":                    0,
		"* a\n:PROPERTIES:\n:K: v\n":                                           0,
		"* a\nDEADLINE: <2024-01-01 Mon>\n:PROPERTIES:\n:K: v\n:END:":          1,
		"* a\n:PROPERTIES:\n:K: v\n:END:\nDEADLINE: <2024-01-01 Mon>\n":        1,
		"* a\r\n:PROPERTIES:\r\n:K: v\r\n:END:\r\n":                            1,
		"* a\n:PROPERTIES:\n:END:\n:PROPERTIES:\n:K: v\n:END:\n":               0,
		"* a\nCLOSED: [2024-01-01 Mon]\n\n:PROPERTIES:\n:K: v\n:END:\n** b\nc": 0,
	} {
		if got := len(org.Parse([]byte(src)).Headline(0).Properties()); got != want {
			t.Errorf("%q has %d properties, want %d", src, got, want)
		}
	}
}

func TestTimestampsAreTakenApart(t *testing.T) {
	ts, err := org.ParseTimestamp("<2024-02-29 Thu 09:30-10:15 .+2d/4d --1w>")
	if err != nil {
		t.Fatal(err)
	}
	if !ts.Active || !ts.Range || !ts.HasTime || ts.Repeater() != ".+2d/4d" || ts.Warn.String() != "--1w" ||
		ts.Start.Format("2006-01-02 15:04") != "2024-02-29 09:30" || ts.End.Format("15:04") != "10:15" {
		t.Errorf("%+v", ts)
	}
	ts, err = org.ParseTimestamp("[2024-01-30 Tue]--[2024-02-02 Fri]")
	if err != nil || ts.Active || !ts.Range || ts.End.Format("01-02") != "02-02" {
		t.Errorf("%+v, %v", ts, err)
	}
	if ts, err := org.ParseTimestamp("<%%(diary-float t 4 2)>"); err != nil || !ts.Diary {
		t.Errorf("diary: %+v, %v", ts, err)
	}
	for _, bad := range []string{"", "2024-01-01", "<2024-1-1>", "<2024-02-30 Fri>", "<2024-01-01 Mon> x", "<2024-01-01"} {
		if _, err := org.ParseTimestamp(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

// sharedOrgFiles lists the real files of the acceptance data, or skips the test.
func sharedOrgFiles(t testing.TB) []string {
	t.Helper()
	files := findSharedOrgFiles()
	if len(files) == 0 {
		t.Skip("the shared data directory is not here; set PASSEPARTOUT_SHARED")
	}
	return files
}

func findSharedOrgFiles() (files []string) {
	dir := os.Getenv("PASSEPARTOUT_SHARED")
	for wd, err := os.Getwd(); err == nil && dir == "" && wd != filepath.Dir(wd); wd = filepath.Dir(wd) {
		if _, err := os.Stat(filepath.Join(wd, "shared", "DESIGN.md")); err == nil {
			dir = filepath.Join(wd, "shared")
		}
	}
	if dir == "" {
		return nil
	}
	// A part that cannot be read is a part that is not tested.
	_ = filepath.WalkDir(filepath.Join(dir, "data", "org", "files"), func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, p)
		}
		return nil
	})
	return files
}

func readAll(t testing.TB, files []string) (docs [][]byte) {
	t.Helper()
	for _, name := range files {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, src)
	}
	return docs
}

func TestASetupFileMayStartWithAByteOrderMark(t *testing.T) {
	f := org.ParseWith([]byte("#+SETUPFILE: s.org\n* a\n"), org.Options{Setup: func(string) ([]byte, bool) {
		return []byte("\ufeff#+FILETAGS: :private:\n"), true
	}})
	if got := f.Headline(0).AllTags(); len(got) != 1 || got[0] != "private" {
		t.Errorf("tags %q", got)
	}
}
