package org_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"passepartout/internal/org"
)

var moment = time.Date(2026, 3, 14, 15, 9, 0, 0, time.UTC)

func apply(t *testing.T, f *org.File, ps []org.Patch, err error) *org.File {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	g, err := f.Apply(ps)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Edits of the first headline; want is the whole file afterwards.
func TestEditsWriteWhatEmacsWrites(t *testing.T) {
	todo := func(kw string) func(org.Headline) ([]org.Patch, error) {
		return func(h org.Headline) ([]org.Patch, error) { return h.SetTodo(kw, org.Change{At: moment}) }
	}
	for _, c := range []struct {
		name, src, want string
		edit            func(org.Headline) ([]org.Patch, error)
	}{
		{"a keyword is set", "* a\n", "* TODO a\n", todo("TODO")},
		{"a keyword is replaced and odd spacing kept", "*  TODO   a\n", "*  DONE   a\n", todo("DONE")},
		{"a keyword is cleared", "* TODO a\n", "* a\n", todo("")},
		{"CLOSED comes with logdone", "#+STARTUP: logdone\n* TODO a\n", "#+STARTUP: logdone\n* DONE a\nCLOSED: [2026-03-14 Sat 15:09]\n", todo("DONE")},
		{
			"a repeating task moves on and says when",
			"* TODO a\nSCHEDULED: <2026-03-10 Tue ++1w>\n",
			"* TODO a\nSCHEDULED: <2026-03-17 Tue ++1w>\n:PROPERTIES:\n:LAST_REPEAT: [2026-03-14 Sat 15:09]\n:END:\n" +
				"- State \"DONE\"       from \"TODO\"       [2026-03-14 Sat 15:09]\n",
			todo("DONE"),
		},
		{"the last day of a month runs over", "* TODO a\n<2026-01-31 Sat +1m>\n", "* TODO a\n:PROPERTIES:\n:LAST_REPEAT: [2026-03-14 Sat 15:09]\n:END:\n- State \"DONE\"       from \"TODO\"       [2026-03-14 Sat 15:09]\n<2026-03-03 Tue +1m>\n", todo("DONE")},
		{"the parent's cookie is counted", "* TODO a\n", "* DONE a\n", todo("DONE")},
		{"a file without final line end gains none", "* a", "* TODO a", todo("TODO")},
		{"CR LF stays CR LF", "#+STARTUP: logdone\r\n* TODO a\r\n", "#+STARTUP: logdone\r\n* DONE a\r\nCLOSED: [2026-03-14 Sat 15:09]\r\n", todo("DONE")},
		{"a body takes the file's line ends", "* a\r\nold\r\n* b\r\n", "* a\r\nx\r\ny\r\n* b\r\n", func(h org.Headline) ([]org.Patch, error) { return h.SetBody("x\ny\n") }},
		{"a body from elsewhere does too", "* a\nold\n* b\n", "* a\nx\ny\n* b\n", func(h org.Headline) ([]org.Patch, error) { return h.SetBody("x\r\ny\r\n") }},
		{"a CR that is text stays", "* a\nold\r\n* b\n", "* a\nx\r\ny\n* b\n", func(h org.Headline) ([]org.Patch, error) { return h.SetBody("x\r\ny\n") }},
		{"a title changes alone", "* TODO [#A] old   :t:\n", "* TODO [#A] new   :t:\n", func(h org.Headline) ([]org.Patch, error) { return h.SetTitle("new") }},
		{"tags are added", "* a  \n", "* a :x:y:\n", func(h org.Headline) ([]org.Patch, error) { return h.SetTags([]string{"x", "y"}) }},
		{"tags are removed with their gap", "* a    :x:\n", "* a\n", func(h org.Headline) ([]org.Patch, error) { return h.SetTags(nil) }},
		{"a drawer is made", "* a\nb\n", "* a\n:PROPERTIES:\n:ID:       u-1\n:END:\nb\n", func(h org.Headline) ([]org.Patch, error) { return h.SetID("u-1") }},
		{"a value keeps its gap", "* a\n:PROPERTIES:\n:K:   v\n:END:\n", "* a\n:PROPERTIES:\n:K:   w\n:END:\n", func(h org.Headline) ([]org.Patch, error) { return h.SetProperty("k", "w") }},
		{"a tight, indented drawer stays so", "* a\n  :PROPERTIES:\n  :K: v\n  :END:\n", "* a\n  :PROPERTIES:\n  :K: v\n  :L: w\n  :END:\n", func(h org.Headline) ([]org.Patch, error) { return h.SetProperty("L", "w") }},
		{"the last property takes its drawer along", "* a\n:PROPERTIES:\n:K: v\n:END:\nb\n", "* a\nb\n", func(h org.Headline) ([]org.Patch, error) { return h.RemoveProperty("K") }},
		{"a schedule is set", "* a\n", "* a\nSCHEDULED: <2026-05-01 Fri>\n", func(h org.Headline) ([]org.Patch, error) { return h.Schedule("<2026-05-01 Fri>") }},
		{"a new date keeps the repeater", "* a\nDEADLINE: <2026-04-01 Wed +1m -3d>\n", "* a\nDEADLINE: <2026-05-01 Fri +1m -3d>\n", func(h org.Headline) ([]org.Patch, error) { return h.SetDeadline("<2026-05-01 Fri>") }},
		{"the only plan takes its line along", "* a\nDEADLINE: <2026-04-01 Wed>\nb\n", "* a\nb\n", func(h org.Headline) ([]org.Patch, error) { return h.SetDeadline("") }},
		{"a body is replaced", "* a\n:PROPERTIES:\n:K: v\n:END:\nold\n** b\n", "* a\n:PROPERTIES:\n:K: v\n:END:\nnew\n** b\n", func(h org.Headline) ([]org.Patch, error) { return h.SetBody("new") }},
		{"a child is added, one level down", "* a\nx\n* b\n", "* a\nx\n** c\n*** d\n* b\n", func(h org.Headline) ([]org.Patch, error) { return h.AppendChild("* c\n** d\n") }},
		{"odd levels take two stars", "#+STARTUP: odd\n* a\n", "#+STARTUP: odd\n* a\n*** c\n", func(h org.Headline) ([]org.Patch, error) { return h.AppendChild("* c") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := org.Parse([]byte(c.src))
			ps, err := c.edit(f.Headline(0))
			g := apply(t, f, ps, err)
			if got := string(g.Bytes()); got != c.want {
				t.Fatalf("got\n%s\nwant\n%s", got, c.want)
			}
			back, err := f.Inverse(ps)
			if o := apply(t, g, back, err); !bytes.Equal(o.Bytes(), f.Bytes()) {
				t.Errorf("the inverse gives %q, not %q", o.Bytes(), f.Bytes())
			}
		})
	}
}

func TestEditsThatWouldMeanSomethingElseAreRefused(t *testing.T) {
	f := org.Parse([]byte("* TODO a :t:\nbody\n** b\n"))
	h := f.Headline(0)
	for name, edit := range map[string]func() ([]org.Patch, error){
		"an unknown keyword":           func() ([]org.Patch, error) { return h.SetTodo("NOPE", org.Change{}) },
		"a title of two lines":         func() ([]org.Patch, error) { return h.SetTitle("a\nb") },
		"a title that ends in tags":    func() ([]org.Patch, error) { return f.Headline(1).SetTitle("x :y:") },
		"a title that is a priority":   func() ([]org.Patch, error) { return h.SetTitle("[#A] x") },
		"a tag with a blank":           func() ([]org.Patch, error) { return h.SetTags([]string{"a b"}) },
		"a long priority":              func() ([]org.Patch, error) { return h.SetPriority("10") },
		"a body with a headline":       func() ([]org.Patch, error) { return h.SetBody("x\n* y\n") },
		"a body that is a plan":        func() ([]org.Patch, error) { return h.SetBody("DEADLINE: <2026-01-01 Thu>\n") },
		"a property of two lines":      func() ([]org.Patch, error) { return h.SetProperty("K", "a\n:END:") },
		"a property key with blanks":   func() ([]org.Patch, error) { return h.SetProperty("a b", "v") },
		"an inactive schedule":         func() ([]org.Patch, error) { return h.Schedule("[2026-01-01 Thu]") },
		"a promotion out of the top":   func() ([]org.Patch, error) { return h.Shift(-1) },
		"a move into itself":           func() ([]org.Patch, error) { return h.Refile(f.Headline(1)) },
		"a child that is no headline":  func() ([]org.Patch, error) { return h.AppendChild("text") },
		"a sibling that is not there":  func() ([]org.Patch, error) { return h.Move(true) },
		"a sort by nothing":            func() ([]org.Patch, error) { return h.Sort(0, false) },
		"an edit of another encoding":  func() ([]org.Patch, error) { return org.Parse([]byte("* a\n\xff\n")).Headline(0).SetTitle("b") },
		"a subtree with a NUL":         func() ([]org.Patch, error) { return h.AppendChild("* a\x00\n") },
		"a subtree rising above level": func() ([]org.Patch, error) { return h.AppendChild("** a\n* b\n") },
	} {
		if ps, err := edit(); !errors.Is(err, org.ErrEdit) {
			t.Errorf("%s gave patches %v, error %v", name, ps, err)
		}
	}
	if _, err := f.Apply([]org.Patch{{Start: 3, End: 1}}); !errors.Is(err, org.ErrPatch) {
		t.Errorf("a backward patch gave %v", err)
	}
}

// anyEdit draws one edit; nil patches with no error mean there was nothing to do.
func anyEdit(t *rapid.T, f *org.File) ([]org.Patch, error) {
	h := f.Headline(rapid.IntRange(0, f.Len()-1).Draw(t, "headline"))
	g := f.Headline(rapid.IntRange(0, f.Len()-1).Draw(t, "other"))
	switch rapid.IntRange(0, 13).Draw(t, "edit") {
	case 0:
		kw := append(f.TodoKeywords(), "")
		return h.SetTodo(rapid.SampledFrom(kw).Draw(t, "todo"), org.Change{At: moment, LogDone: rapid.Bool().Draw(t, "log")})
	case 1:
		return h.SetPriority(rapid.SampledFrom([]string{"A", "Z", "1", ""}).Draw(t, "priority"))
	case 2:
		return h.SetTitle(rapid.SampledFrom([]string{"x", "new title", "ünï", ""}).Draw(t, "title"))
	case 3:
		return h.SetTags(rapid.SampledFrom([][]string{nil, {"a"}, {"b", "@c"}}).Draw(t, "tags"))
	case 4:
		return h.SetProperty(rapid.SampledFrom([]string{"ID", "K", "LONG_KEY_NAME"}).Draw(t, "key"), rapid.SampledFrom([]string{"v", "two words", ""}).Draw(t, "value"))
	case 5:
		return h.RemoveProperty(rapid.SampledFrom([]string{"ID", "Effort", "Owner"}).Draw(t, "key"))
	case 6:
		return h.Schedule(rapid.SampledFrom([]string{"<2026-01-02 Fri>", "<2026-01-02 Fri 10:00 +1w>", ""}).Draw(t, "when"))
	case 7:
		return h.SetBody(rapid.SampledFrom([]string{"", "text", "- list\n", "#+begin_src\nx\n#+end_src\n"}).Draw(t, "body"))
	case 8:
		return h.Shift(rapid.IntRange(-1, 2).Draw(t, "levels"))
	case 9:
		return h.Refile(g)
	case 10:
		return h.Move(rapid.Bool().Draw(t, "up"))
	case 11:
		return h.Sort(org.SortTitle, rapid.Bool().Draw(t, "reverse"))
	case 12:
		return h.AppendChild("* TODO child :c:\nbody\n")
	}
	return g.InsertAfter("* sibling\n")
}

func anyFile(t *rapid.T) *org.File {
	g := &generator{Rand: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))}
	src := g.file()
	if rapid.Bool().Draw(t, "no final line end") {
		src = bytes.TrimRight(src, "\r\n")
	}
	return org.Parse(src)
}

func TestEveryEditCanBeUndoneAndTouchesNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := anyFile(t)
		f := first
		var undo [][]org.Patch
		for range rapid.IntRange(1, 8).Draw(t, "edits") {
			ps, err := anyEdit(t, f)
			if errors.Is(err, org.ErrEdit) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			g, err := f.Apply(ps)
			if err != nil {
				t.Fatal(err)
			}
			checkUntouched(t, f, g, ps)
			sameReading(t, g)
			back, err := f.Inverse(ps)
			if err != nil {
				t.Fatal(err)
			}
			undo = append(undo, back)
			f = g
			if f.Len() == 0 {
				break
			}
		}
		for _, ps := range slices.Backward(undo) {
			g, err := f.Apply(ps)
			if err != nil {
				t.Fatal(err)
			}
			f = g
		}
		if !bytes.Equal(f.Bytes(), first.Bytes()) {
			t.Fatalf("after undoing everything:\n%q\nwant\n%q", f.Bytes(), first.Bytes())
		}
	})
}

// checkUntouched verifies byte by byte that only what the patches name changed.
func checkUntouched(t *rapid.T, f, g *org.File, ps []org.Patch) {
	ps = slices.Clone(ps)
	slices.SortStableFunc(ps, func(a, b org.Patch) int { return a.Start - b.Start })
	old, text := f.Bytes(), g.Bytes()
	at, to := 0, 0
	for _, p := range ps {
		n := p.Start - at
		if !bytes.Equal(old[at:p.Start], text[to:to+n]) || !bytes.Equal(text[to+n:to+n+len(p.Text)], p.Text) {
			t.Fatalf("patch %d–%d is not all that changed", p.Start, p.End)
		}
		at, to = p.End, to+n+len(p.Text)
	}
	if !bytes.Equal(old[at:], text[to:]) {
		t.Fatal("the text behind the last patch changed")
	}
}

// sameReading verifies that the file Apply made is the file Parse would make.
func sameReading(t *rapid.T, g *org.File) {
	fresh := org.Parse(g.Bytes())
	if got, want := describe(g), describe(fresh); got != want {
		t.Fatalf("after Apply:\n%s\nafter Parse:\n%s", got, want)
	}
}

func TestApplyReadsOnlyTheSectionsItTouches(t *testing.T) {
	src := strings.Repeat("* head\nbody\n** child\nmore\n", 1000)
	f := org.Parse([]byte(src))
	ps, err := f.Headline(999).SetTitle("other")
	g := apply(t, f, ps, err)
	if n := g.Reparsed().Len(); n > 100 {
		t.Errorf("%d bytes were read again for one title", n)
	}
	if g.Headline(999).Title() != "other" || g.Headline(1000).Title() != "head" {
		t.Error("the wrong headline changed")
	}
}

// describe prints everything the outline knows.
func describe(f *org.File) string {
	var sb strings.Builder
	for h := range f.Headlines() {
		p, _ := h.Parent()
		sb.WriteString(strings.Join([]string{
			strings.Repeat("*", h.Stars()), h.Todo(), h.Priority(), h.Title(), strings.Join(h.AllTags(), ":"),
			h.Scheduled().Raw, h.Deadline().Raw, h.Closed().Raw, h.ID(), f.Text(h.Span()), f.Text(h.BodySpan()),
		}, "|"))
		sb.WriteString("|" + string(rune('0'+p.Index()%64)) + "\n")
	}
	return sb.String() + f.EOL() + strings.Join(f.TodoKeywords(), " ") + f.ID()
}

// TestWhatIsNotTextIsNotWritten: a zero byte in a note would make the whole file one
// that can never be edited again.
func TestWhatIsNotTextIsNotWritten(t *testing.T) {
	for _, bad := range []string{"a\x00b", "a\xffb", "\x00", "\xff"} {
		f := org.Parse([]byte("* a\n"))
		h := f.Headline(0)
		for name, edit := range map[string]func() ([]org.Patch, error){
			"title":    func() ([]org.Patch, error) { return h.SetTitle(bad) },
			"body":     func() ([]org.Patch, error) { return h.SetBody(bad) },
			"key":      func() ([]org.Patch, error) { return h.SetProperty(bad, "v") },
			"value":    func() ([]org.Patch, error) { return h.SetProperty("K", bad) },
			"priority": func() ([]org.Patch, error) { return h.SetPriority(bad[len(bad)-1:]) },
			"child":    func() ([]org.Patch, error) { return h.AppendChild("* " + bad) },
		} {
			if ps, err := edit(); !errors.Is(err, org.ErrEdit) && (name != "priority" || !strings.HasSuffix(bad, "b")) {
				t.Errorf("%s %q: want a refusal, found %v %v", name, bad, ps, err)
			}
		}
	}
}

func TestAFileOfBareCarriageReturnsIsReadOnly(t *testing.T) {
	f := org.Parse([]byte("#+TITLE: x\r* a\rtext\r"))
	if err := f.Editable(); !errors.Is(err, org.ErrEncoding) {
		t.Errorf("Emacs reads three lines where one would be edited: %v", err)
	}
}
