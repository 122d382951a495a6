package org_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"passepartout/internal/org"
)

// check verifies what must hold of any bytes whatsoever.
func check(t *testing.T, src []byte) {
	t.Helper()
	kept := bytes.Clone(src)
	f := org.Parse(src)
	if !bytes.Equal(f.Bytes(), kept) {
		t.Fatalf("printing %q gave %q", kept, f.Bytes())
	}
	at := f.Preamble().End
	for h := range f.Headlines() {
		s, b, line := h.SectionSpan(), h.BodySpan(), h.LineSpan()
		if s.Start != at || b.End != s.End || b.Start < line.End || line.Start != s.Start || h.Span().End < s.End {
			t.Fatalf("headline %d of %q: section %v, body %v, line %v, expected start %d", h.Index(), kept, s, b, line, at)
		}
		if p, ok := h.Parent(); ok && p.Stars() >= h.Stars() {
			t.Fatalf("headline %d of %q is not below its parent", h.Index(), kept)
		}
		at = s.End
	}
	if at != len(kept) {
		t.Fatalf("%q is accounted for only up to %d", kept, at)
	}
	within := func(s org.Span) {
		if s.Start < 0 || s.End < s.Start || s.End > len(kept) {
			t.Fatalf("%q: span %v", kept, s)
		}
	}
	c := f.Contents()
	for _, l := range c.Links {
		within(l.Span)
		within(l.Description)
	}
	for _, b := range c.Blocks {
		within(b.Span)
		within(b.Inner)
		f.HeaderArgs(b)
	}
	f.Lint()
	f.Dump("x")
	for _, to := range []org.Format{org.HTML, org.Markdown, org.PlainText} {
		if out := f.Convert(to); to == org.HTML && unsafeHTML(out) {
			t.Fatalf("%q became unsafe HTML %q", kept, out)
		}
	}
	org.FromMarkdown(src)
	checkEdit(t, f)
	if !bytes.Equal(src, kept) {
		t.Fatal("the caller's bytes were written to")
	}
}

// unsafeHTML looks for what only raw text from the file could have brought in.
func unsafeHTML(out string) bool {
	low := strings.ToLower(out)
	return strings.Contains(low, "<script") || strings.Contains(low, "<img") || strings.Contains(low, `href="javascript`) || strings.Contains(low, `href="data`)
}

// checkEdit makes one edit and takes it back.
func checkEdit(t *testing.T, f *org.File) {
	t.Helper()
	if f.Len() == 0 {
		return
	}
	h := f.Headline(f.Len() / 2)
	for _, edit := range []func() ([]org.Patch, error){
		func() ([]org.Patch, error) {
			return h.SetTodo(append(f.TodoKeywords(), "")[0], org.Change{At: moment, LogDone: true})
		},
		func() ([]org.Patch, error) { return h.SetProperty("ID", "x") },
		func() ([]org.Patch, error) { return h.Schedule("<2026-01-01 Thu>") },
		func() ([]org.Patch, error) { return h.Move(false) },
	} {
		ps, err := edit()
		if err != nil {
			continue
		}
		g, err := f.Apply(ps)
		if err != nil {
			t.Fatalf("%q: %v", f.Bytes(), err)
		}
		if got, want := describe(g), describe(org.Parse(g.Bytes())); got != want {
			t.Fatalf("%q with %v: Apply reads\n%s\nParse reads\n%s", f.Bytes(), ps, got, want)
		}
		back, err := f.Inverse(ps)
		if err != nil {
			t.Fatal(err)
		}
		if o, err := g.Apply(back); err != nil || !bytes.Equal(o.Bytes(), f.Bytes()) {
			t.Fatalf("%q was not restored: %v", f.Bytes(), err)
		}
	}
}

var oddFiles = []string{
	"", "\n", "* ", "*", "* a", "\xef\xbb\xbf* a\n", "* a\r\n** b\r\n", "* a\r\n** b\n", "* a\r", "\r\n",
	"* \xff\xfe :t\xff:\n\xc3(\n", "* a\x00b\n", "\xff\xfe*\x00 \x00", "* a\f\n\f\n** b\n", "* a\v\n",
	"* TODO\n", "* TODO [#A]\n", "* COMMENT\n", "* :a:\n", "* a :b:c::d:\n", "* a\n:PROPERTIES:\n:END:", "* a\n:PROPERTIES:",
	"* a\nSCHEDULED:", "* a\nSCHEDULED: <2024-01-01 Mon>--<2024-01-02 Tue> CLOSED: [", "#+TODO:\n* a\n", "#+TODO: |\n* | a\n", "#+TODO: A(a@/!) | B(b!)\n* A x\n",
	":PROPERTIES:\n:ID: f\n:END:\n", "# c\n:PROPERTIES:\n:ID: f\n:END:\n* a\n", "#+begin_src\n", "#+begin_src\n#+end_src", "#+begin:\n#+begin: x\n#+end:",
	"[[", "[[]]", "[[a", "[[a]", "[[a][", "[[a][b]]", "[[a\\]b]]", "<", "<<", "<<<a>>> a", "<<a>>", "<http:", "<http:a>", "http:", "http://a_b*c*", "[fn:", "[fn:a:b]", "[fn::x]",
	"src_", "src_a{", "src_a{b}", "call_a()", "{{{a", "{{{a(b)}}}", "$", "$$", "$a$", "\\", "\\(", "\\a{b}", "@@", "@@a:b@@", "_", "a_b", "a_{b{c}d}", "*a* /b/ _c_ +d+ =e= ~f~", "[1/2] [50%] [/]",
	"- a\n  - [X] b :: c\n    d\n1. x\n\n\n- y", "+ a\n * b\n", "|a|b|\n|-\n|c\n#+TBLFM: x", ": fixed\n:\n", "%%(diary)\n", "\\begin{a}\nx\\end{a}\n", "-----\n", "CLOCK: [2024-01-01 Mon 10:00]\nclock: =>  1:00\n",
	"* a\n# Local Variables:\n# x: y\n# End:\n* b", "#+SETUPFILE: x\n", "#+STARTUP: odd\n*** a\n** b\n", "#+FILETAGS: a :b:\n* c\n",
	"<script>alert(1)</script> [[javascript:alert(1)][x]] @@html:<script>@@\n#+begin_export html\n<script>\n#+end_export\n#+begin_x\"><script>\ny\n#+end_x\"><script>\n",
}

func TestAnyBytesComeBackAsTheyWere(t *testing.T) {
	for _, src := range append(oddFiles, sample, strings.ReplaceAll(sample, "\n", "\r\n")) {
		check(t, []byte(src))
	}
}

func TestRealFilesComeBackAsTheyWere(t *testing.T) {
	for i, src := range readAll(t, sharedOrgFiles(t)) {
		if (testing.Short() || underRace) && i%10 != 0 {
			continue
		}
		check(t, src)
	}
}

func FuzzOrgLossless(f *testing.F) {
	for _, src := range append(oddFiles, sample) {
		f.Add([]byte(src))
	}
	real := 0
	for _, name := range findSharedOrgFiles() {
		if src, err := os.ReadFile(name); err == nil && len(src) < 2000 && real < 50 {
			f.Add(src)
			real++
		}
	}
	f.Fuzz(check)
}

// Sizes are such that work growing with the square would not end within the
// test's time limit by a factor of a thousand; linear work takes moments.
func TestHostileFilesCostNoMoreThanTheirLength(t *testing.T) {
	n, million := 300_000, 1_000_000
	if testing.Short() || underRace {
		n, million = 20_000, 50_000
	}
	repeat := func(unit string, count int) func() string {
		return func() string { return strings.Repeat(unit, count) }
	}
	numbered := func(format string, count int) func() string {
		return func() string {
			var sb strings.Builder
			for i := range count {
				fmt.Fprintf(&sb, format, i)
			}
			return sb.String()
		}
	}
	for name, text := range map[string]func() string{
		"a million headlines":         repeat("* a\n", million),
		"a million tagged headlines":  repeat("* a :b:\n", million),
		"deeper and deeper headlines": func() string { return deep(4000) },
		"drawers":                     repeat(":D:\n:END:\n", n),
		"unclosed drawers":            repeat(":D:\n", million),
		"unclosed property drawers":   repeat("* a\n:PROPERTIES:\n:a: b\n", n),
		"one endless property drawer": func() string { return "* a\n:PROPERTIES:\n" + strings.Repeat(":a: b\n", n) },
		"unclosed blocks":             repeat("#+begin_src\n", n),
		"blocks of different names":   numbered("#+begin_a%d\n", n),
		"blocks in blocks":            func() string { return strings.Repeat("#+begin_a\n", n) + strings.Repeat("#+end_a\n", n) },
		"environments":                numbered("\\begin{a%d}\n", n),
		"affiliated keywords":         repeat("#+NAME: a\n", n),
		"settings":                    numbered("#+TODO: A%d\n* A1 x\n", 2_000),
		"footnotes":                   func() string { return strings.Repeat("[fn:", n) + "]" },
		"nested footnotes":            func() string { return strings.Repeat("[fn::", n) + strings.Repeat("]", n) },
		"citations":                   func() string { return strings.Repeat("[cite:", n) + strings.Repeat("]", n) },
		"links":                       repeat("[[a][", n),
		"links without end":           repeat("[[a", n),
		"angle links":                 repeat("<http:a ", n),
		"angle links in verse":        func() string { return "#+begin_verse\n" + strings.Repeat("<http:a ", n) + "\n\n>\n#+end_verse\n" },
		"plain links":                 repeat("http:(a ", n),
		"timestamps":                  repeat("<2024-01-01 ", n),
		"old timestamps":              repeat("<1-1-1 ", n),
		"emphasis":                    repeat("*a ", n),
		"emphasis in emphasis":        func() string { return strings.Repeat("*/", n) + "a" + strings.Repeat("/*", n) },
		"closing emphasis":            repeat("a* ", n),
		"scripts":                     repeat("a_{", n),
		"macros":                      repeat("{{{a(", n),
		"export snippets":             repeat("@@a:", n),
		"mathematics":                 repeat("\\( ", n),
		"dollars":                     repeat("$a ", n),
		"inline source":               repeat("src_a[", n),
		"radio targets":               numbered("<<<a%d>>> ", 20_000),
		"cells":                       repeat("|", n),
		"rows":                        repeat("|a|\n", n),
		"deeper and deeper lists": func() string {
			var sb strings.Builder
			for i := range 3000 {
				sb.WriteString(strings.Repeat(" ", i) + "- a\n")
			}
			return sb.String()
		},
		"items": repeat("- a\n", n),
		"tags":  func() string { return "* " + strings.Repeat("a:", n) + "\n" },
	} {
		t.Run(name, func(t *testing.T) {
			f := org.Parse([]byte(text()))
			f.Contents()
			f.Lint()
			f.Convert(org.HTML)
			f.Convert(org.Markdown)
		})
	}
}

// deep has one headline on each level.
func deep(levels int) string {
	var sb strings.Builder
	for i := 1; i <= levels; i++ {
		sb.WriteString(strings.Repeat("*", i) + " a\n")
	}
	return sb.String()
}

func TestALineOfAHundredMegabytesIsOneLine(t *testing.T) {
	if testing.Short() || underRace {
		t.Skip("needs several hundred megabytes")
	}
	src := bytes.Repeat([]byte("word *x [[ < "), 100<<20/13)
	f := org.Parse(append([]byte("* a\n"), src...))
	if f.Len() != 1 || f.Headline(0).BodySpan().Len() != len(src) {
		t.Fatal("the line was cut")
	}
	f.Contents()
}
