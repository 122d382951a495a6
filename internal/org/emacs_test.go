package org_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"passepartout/internal/org"
)

// emacsCase is one edit of one file, done by Emacs and by us.
type emacsCase struct {
	name string
	src  []byte
	line int
	op   string
	args []string // strings, or for refile a line number
}

func (c emacsCase) lisp() string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "(%q %d %s", c.name, c.line, c.op)
	for _, a := range c.args {
		if c.op == "refile" {
			sb.WriteString(" " + a)
		} else {
			sb.WriteString(" " + strconv.Quote(a))
		}
	}
	return sb.String() + ")"
}

// ours carries out the case; archive is the text for the archive file.
func (c emacsCase) ours(at time.Time, file string) (out []byte, archive string, err error) {
	f := org.Parse(c.src)
	lines := f.Lines()
	h, _ := f.At(lines.Start(c.line))
	arg := func(i int) string {
		if i < len(c.args) {
			return c.args[i]
		}
		return ""
	}
	stamp := func(s string) string {
		if s == "" {
			return ""
		}
		form := "2006-01-02"
		if strings.Contains(s, ":") {
			form += " 15:04"
		}
		t, err := time.Parse(form, s)
		if err != nil {
			panic(err)
		}
		return org.FormatTimestamp(t, true, strings.Contains(s, ":"))
	}
	var ps []org.Patch
	switch c.op {
	case "todo":
		ps, err = h.SetTodo(arg(0), org.Change{At: at, Note: arg(1)})
	case "priority":
		ps, err = h.SetPriority(arg(0))
	case "title":
		ps, err = h.SetTitle(arg(0))
	case "tags":
		ps, err = h.SetTags(c.args)
	case "property":
		ps, err = h.SetProperty(arg(0), arg(1))
	case "unproperty":
		ps, err = h.RemoveProperty(arg(0))
	case "schedule":
		ps, err = h.Schedule(stamp(arg(0)))
	case "deadline":
		ps, err = h.SetDeadline(stamp(arg(0)))
	case "promote":
		ps, err = h.Shift(-1)
	case "demote":
		ps, err = h.Shift(1)
	case "delete":
		ps, err = h.Delete()
	case "up", "down":
		ps, err = h.Move(c.op == "up")
	case "sort":
		key := map[string]org.SortKey{"a": org.SortTitle, "o": org.SortTodo, "p": org.SortPriority, "s": org.SortScheduled, "d": org.SortDeadline}[arg(0)]
		ps, err = h.Sort(key, false)
	case "refile":
		n, _ := strconv.Atoi(arg(0))
		target, _ := f.At(lines.Start(n))
		ps, err = h.Refile(target)
	case "archive":
		ps, archive, err = h.Archive(at, file)
	}
	if err != nil {
		return nil, "", err
	}
	g, err := f.Apply(ps)
	if err != nil {
		return nil, "", err
	}
	return g.Bytes(), archive, nil
}

// generator writes random Org files in the many habits people have.
type generator struct {
	*rand.Rand
	todo, done []string
	indent     string
	tight      bool
	sb         strings.Builder
}

func (g *generator) pick(of ...string) string { return of[g.IntN(len(of))] }

func (g *generator) date(active bool) string {
	t := time.Date(2026, time.Month(1+g.IntN(12)), 1+g.IntN(28), g.IntN(24), 5*g.IntN(12), 0, 0, time.UTC)
	return org.FormatTimestamp(t, active, g.IntN(2) == 0)
}

func (g *generator) repeated() string {
	s := g.date(true)
	return s[:len(s)-1] + " " + g.pick("+1w", "++1m", ".+3d", "+2d -1d", "++1y", ".+1d/3d", "+1m") + ">"
}

func (g *generator) file() []byte {
	g.sb.Reset()
	g.todo, g.done = []string{"TODO"}, []string{"DONE"}
	g.indent = g.pick("", "", "", "  ")
	g.tight = g.IntN(4) == 0
	if g.IntN(3) == 0 {
		g.sb.WriteString("#+TITLE: Notes\n")
	}
	switch g.IntN(5) {
	case 0:
		g.sb.WriteString("#+TODO: TODO NEXT(n!) WAIT(w@/!) | DONE(d!) DROPPED\n")
		g.todo, g.done = []string{"TODO", "NEXT", "WAIT"}, []string{"DONE", "DROPPED"}
	case 1:
		g.sb.WriteString("#+SEQ_TODO: OPEN | SHUT\n")
		g.todo, g.done = []string{"OPEN"}, []string{"SHUT"}
	}
	if g.IntN(3) == 0 {
		g.sb.WriteString("#+STARTUP: " + g.pick("logdone", "lognotedone", "logdrawer", "logdone logdrawer", "nologrepeat", "overview") + "\n")
	}
	if g.IntN(4) == 0 {
		g.sb.WriteString("#+FILETAGS: :all:\n")
	}
	if g.IntN(2) == 0 {
		g.sb.WriteString("\nSome words before.\n\n")
	}
	level := 1
	for n := 3 + g.IntN(9); n > 0; n-- {
		g.headline(level)
		level = max(1, level+g.IntN(4)-2)
		if level > 4 {
			level = 2
		}
	}
	if g.IntN(10) == 0 {
		g.sb.WriteString("# Local Variables:\n# fill-column: 70\n# End:\n")
	}
	if g.IntN(12) == 0 {
		return []byte(strings.ReplaceAll(g.sb.String(), "\n", "\r\n"))
	}
	return []byte(g.sb.String())
}

func (g *generator) headline(level int) {
	w := func(s ...string) { g.sb.WriteString(strings.Join(s, "")) }
	w(strings.Repeat("*", level))
	if g.IntN(2) == 0 {
		w(" ", g.pick(append(g.todo, g.done...)...))
	}
	if g.IntN(5) == 0 {
		w(" [#", g.pick("A", "B", "C"), "]")
	}
	if g.IntN(12) != 0 {
		w(" ", g.pick("Buy milk", "call the plumber", "Ünïcode title", "zeta", "Alpha beta", "Report [[https://example.org][site]]", "count [1/3]", "done [50%]", "m", "beta /test/"), " ", strconv.Itoa(g.IntN(100)))
	} else {
		w(" x")
	}
	if g.IntN(4) == 0 {
		w(g.pick(" ", "    ", "\t"), g.pick(":work:", ":home:errand:", ":@desk:"))
	}
	w("\n")
	if g.IntN(3) == 0 {
		var plan []string
		if g.IntN(4) == 0 {
			plan = append(plan, "CLOSED: "+g.date(false))
		}
		if g.IntN(2) == 0 {
			plan = append(plan, "DEADLINE: "+[]string{g.date(true), g.repeated()}[g.IntN(2)])
		}
		if g.IntN(2) == 0 {
			plan = append(plan, "SCHEDULED: "+[]string{g.date(true), g.repeated()}[g.IntN(2)])
		}
		if len(plan) > 0 {
			w(g.indent, strings.Join(plan, " "), "\n")
		}
	}
	if g.IntN(3) == 0 {
		w(g.indent, ":PROPERTIES:\n")
		for range 1 + g.IntN(3) {
			key := g.pick("ID", "Effort", "CUSTOM_ID", "Owner", "LONG_PROPERTY_NAME")
			gap := strings.Repeat(" ", max(0, 8-len(key))) + " "
			if g.tight {
				gap = " "
			}
			w(g.indent, ":", key, ":", gap, g.pick("0:30", "abc", "some words here"), "\n")
		}
		w(g.indent, ":END:\n")
	}
	if g.IntN(5) == 0 {
		w(g.indent, ":LOGBOOK:\n", g.indent, "CLOCK: [2026-01-01 Thu 10:00]--[2026-01-01 Thu 11:00] =>  1:00\n", g.indent, ":END:\n")
	}
	switch g.IntN(6) {
	case 0:
		w("Some text over\ntwo lines.\n")
	case 1:
		w(g.indent, "- item one\n", g.indent, "- [ ] item two\n")
	case 2:
		w("\nText after a blank line, ", g.date(true), ".\n\n")
	case 3:
		w("#+begin_src sh\necho hello\n#+end_src\n")
	case 4:
		w(g.indent, "- State \"DONE\"       from \"TODO\"       [2026-01-05 Mon 10:00]\n")
	}
}

func (g *generator) edit(src []byte) emacsCase {
	f := org.Parse(src)
	lines := f.Lines()
	h := f.Headline(g.IntN(f.Len()))
	at := func(h org.Headline) int { return lines.At(h.Span().Start) }
	c := emacsCase{src: src, line: at(h)}
	date := func() string {
		s := fmt.Sprintf("2026-%02d-%02d", 1+g.IntN(12), 1+g.IntN(28))
		if g.IntN(2) == 0 {
			s += fmt.Sprintf(" %02d:%02d", g.IntN(24), g.IntN(60))
		}
		return s
	}
	switch g.IntN(17) {
	case 0, 1, 2, 3:
		kw := append(f.TodoKeywords(), "")
		c.op, c.args = "todo", []string{g.pick(kw...), "a note"}
	case 4:
		c.op, c.args = "priority", []string{g.pick("A", "B", "C", "")}
		if strings.Contains(h.Title(), "[#") {
			c.op, c.args = "demote", nil // Emacs would change the cookie inside the title
		}
	case 5:
		c.op, c.args = "title", []string{g.pick("New title", "Ein ganz anderer Titel", "t")}
	case 6:
		c.op, c.args = "tags", [][]string{{"one"}, {"one", "two"}, {"@home", "x_1"}, {}}[g.IntN(4)]
	case 7, 8:
		c.op, c.args = "property", []string{g.pick("ID", "Effort", "NEW_KEY", "A_VERY_LONG_KEY"), g.pick("v", "0:45", "many words")}
	case 9:
		c.op, c.args = "unproperty", []string{g.pick("ID", "Effort", "Owner", "CUSTOM_ID")}
	case 10:
		c.op, c.args = "schedule", []string{date()}
		if g.IntN(3) == 0 {
			c.args = []string{""}
		}
	case 11:
		c.op, c.args = "deadline", []string{date()}
		if g.IntN(3) == 0 {
			c.args = []string{""}
		}
	case 12:
		c.op = g.pick("promote", "demote")
		if h.Level() == 1 {
			c.op = "demote"
		}
	case 13:
		c.op = g.pick("delete", "up", "down")
	case 14:
		c.op, c.args = "sort", []string{g.pick("a", "o", "p")}
	case 15:
		t := f.Headline(g.IntN(f.Len()))
		if s := h.Span(); t.Span().Start >= s.Start && t.Span().Start < s.End {
			c.op = "delete"
		} else {
			c.op, c.args = "refile", []string{strconv.Itoa(at(t))}
		}
	case 16:
		c.op = "archive"
	}
	return c
}

// The differences from Emacs we mean, all explained in docs/org.md, are white
// space we keep: around the words of a headline, before tags, after a property
// key, the indentation of a drawer's or log's neighbourhood, between planning
// entries, and the final line end. Nothing else is forgiven.
var (
	tagGap  = regexp.MustCompile(`(?m)^(\*+ .*?)[ \t]+(:[\p{L}\p{N}_@#%:]+:)[ \t]*$`)
	propGap = regexp.MustCompile(`(?m)^[ \t]*(:[^ \t\n:]+\+?:)[ \t]+`)
	stars   = regexp.MustCompile(`(?m)^(\*+) +(.*?)[ \t]*$`)
	joined  = regexp.MustCompile(`([\]>])((?:SCHEDULED|DEADLINE|CLOSED):)`)
	indents = regexp.MustCompile(`(?m)^[ \t]+(:[^ \t\n:]+:$|- State "|- CLOSING NOTE |  a note$)`)
)

// An archived task is taken out of its parent's count. Emacs looks for the parent
// after the cut, from the headline that follows, and often counts the wrong one.
var cookie = regexp.MustCompile(`\[[0-9]*(?:%|/[0-9]*)\]`)

func normal(op, s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	if op == "archive" {
		s = cookie.ReplaceAllString(s, "[]")
	}
	s = propGap.ReplaceAllString(tagGap.ReplaceAllString(s, "$1 $2"), "$1 ")
	s = joined.ReplaceAllString(stars.ReplaceAllString(s, "$1 $2"), "$1 $2")
	return strings.TrimRight(indents.ReplaceAllString(s, "$1"), "\n")
}

// around shows the lines in which the two results differ, and the same place before.
func around(before, emacs, ours string) string {
	b, e, o := strings.Split(before, "\n"), strings.Split(emacs, "\n"), strings.Split(ours, "\n")
	first := 0
	for first < min(len(e), len(o)) && e[first] == o[first] {
		first++
	}
	cut := func(l []string) string {
		return "    |" + strings.Join(l[min(len(l), max(0, first-4)):min(len(l), first+5)], "\n    |")
	}
	return "before:\n" + cut(b) + "\nemacs:\n" + cut(e) + "\nours:\n" + cut(o)
}

func TestEmacsPerformsTheSameEdits(t *testing.T) {
	emacs, err := exec.LookPath("emacs")
	if err != nil {
		t.Skip("emacs is not installed")
	}
	if testing.Short() {
		t.Skip("runs Emacs for about a minute")
	}
	g := &generator{Rand: rand.New(rand.NewPCG(20261115, *emacsSeed))}
	t.Run("on files made up", func(t *testing.T) {
		var cases []emacsCase
		for range 1200 {
			cases = append(cases, g.edit(g.file()))
		}
		confirm(t, emacs, cases)
	})
	t.Run("on real files", func(t *testing.T) {
		docs := readAll(t, sharedOrgFiles(t))
		var cases []emacsCase
		for len(cases) < 800 {
			src := docs[g.IntN(len(docs))]
			if f := org.Parse(src); len(src) < 60_000 && f.Len() > 0 && f.Editable() == nil && !bytes.Contains(src, []byte("SETUPFILE")) && !bytes.Contains(src, []byte("Local Variables")) {
				cases = append(cases, g.edit(src))
			}
		}
		confirm(t, emacs, cases)
	})
}

// emacsSeed varies the random files and edits.
var emacsSeed = flag.Uint64("emacs-seed", 3, "seed for the edits compared with Emacs")

// confirm has Emacs carry out the cases and compares.
func confirm(t *testing.T, emacs string, cases []emacsCase) {
	t.Helper()
	dir := t.TempDir()
	var script strings.Builder
	script.WriteString("(")
	for i := range cases {
		c := &cases[i]
		c.name = fmt.Sprintf("c%04d", i)
		if err := os.WriteFile(filepath.Join(dir, c.name+".org"), c.src, 0o600); err != nil {
			t.Fatal(err)
		}
		script.WriteString(c.lisp() + "\n")
	}
	script.WriteString(")")
	if err := os.WriteFile(filepath.Join(dir, "cases.el"), []byte(script.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(emacs, "-Q", "--batch", "-l", filepath.Join("testdata", "edit-oracle.el"), dir)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TZ=UTC", "HOME="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("emacs: %v\n%s", err, out)
	}
	results, err := os.ReadFile(filepath.Join(dir, "results.txt"))
	if err != nil {
		t.Fatal(err)
	}
	exact, near, skipped, emacsFailed, failed := 0, 0, 0, 0, map[string]int{}
	for i, line := range strings.Split(strings.TrimSuffix(string(results), "\n"), "\n") {
		c := cases[i]
		f := strings.SplitN(line, "\t", 4)
		if f[1] != f[2] {
			skipped++ // the minute changed under Emacs
			continue
		}
		at, err := time.Parse("2006-01-02T15:04", f[1])
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, c.name)
		out, archive, err := c.ours(at, "~/"+c.name+".org")
		if f[3] != "" || err != nil {
			if c.op == "archive" && strings.Contains(f[3], "Before first headline") {
				emacsFailed++ // it cut the only subtree, then looked for its parent
			} else if f[3] == "" || err == nil && string(out) != string(c.src) {
				failed[c.op]++
				t.Errorf("%s %v line %d: emacs error %q, ours %v\n%s", c.op, c.args, c.line, f[3], err, c.src)
			} else {
				exact++ // both leave the file alone
			}
			continue
		}
		theirs, err := os.ReadFile(name + ".out")
		if err != nil {
			t.Fatal(err)
		}
		got, wanted := string(out), string(theirs)
		if c.op == "archive" {
			arc, err := os.ReadFile(name + ".arc")
			if err != nil {
				t.Fatal(err)
			}
			// Emacs writes a header above and a blank line below; where an entry
			// goes in the archive is the caller's business.
			_, entry, _ := strings.Cut(string(arc), "\n\n\n")
			got += "\n=====\n" + strings.TrimRight(archive, "\n")
			wanted += "\n=====\n" + strings.TrimRight(entry, "\n")
		}
		if bytes.Contains(c.src, []byte("\r\n")) && strings.Count(got, "\n") != strings.Count(got, "\r\n") && c.op != "archive" &&
			bytes.Count(c.src, []byte("\n")) == bytes.Count(c.src, []byte("\r\n")) {
			t.Errorf("%s %q left bare line feeds in a CR LF file", c.op, c.args)
		}
		switch {
		case got == wanted:
			exact++
		case normal(c.op, got) == normal(c.op, wanted):
			near++
		default:
			if failed[c.op]++; failed[c.op] <= 3 {
				t.Errorf("%s %q\n%s", c.op, c.args, around(string(c.src), wanted, got))
			}
		}
	}
	t.Logf("%d pairs: %d the same bytes, %d but for a gap we keep, %d in which Emacs fails, %d skipped, failed %v", len(cases), exact, near, emacsFailed, skipped, failed)
}
