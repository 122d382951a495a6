package memory_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"passepartout/internal/memory"
)

// sharedOrg is the folder of real Org files, or a reason to skip.
func sharedOrg(t *testing.T) string {
	t.Helper()
	root := os.Getenv("PASSEPARTOUT_SHARED")
	if root == "" {
		dir, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		for ; ; dir = filepath.Dir(dir) {
			if _, err := os.Stat(filepath.Join(dir, "shared", "DESIGN.md")); err == nil {
				root = filepath.Join(dir, "shared")
				break
			}
			if dir == filepath.Dir(dir) {
				t.Skip("no shared directory above, and PASSEPARTOUT_SHARED is not set")
			}
		}
	}
	return filepath.Join(root, "data", "org", "files")
}

// some is how much to ask: Emacs is slow, so ordinary runs ask less.
func some(ordinary, full int) int {
	if soak() > 0 {
		return full
	}
	return ordinary
}

// askEmacs runs forms through a real Emacs and returns one answer each.
func askEmacs(t *testing.T, forms []string) []string {
	t.Helper()
	emacs, err := exec.LookPath("emacs")
	if err != nil {
		t.Skip("emacs is not installed")
	}
	in := filepath.Join(t.TempDir(), "forms.el")
	if err := os.WriteFile(in, []byte(strings.Join(forms, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs(filepath.Join("testdata", "oracle.el"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(emacs, "--batch", "-Q", "-l", script, in)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TZ=UTC", "HOME="+t.TempDir())
	cmd.Dir = t.TempDir()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("emacs: %v", err)
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) != len(forms) {
		t.Fatalf("want %d answers, found %d", len(forms), len(lines))
	}
	return lines
}

// copies puts some real files, each in a memex of its own name, where neither
// Emacs nor we can harm them.
func copies(t *testing.T, want func(text string) bool, most int) *fixture {
	t.Helper()
	root := sharedOrg(t)
	f := newFixture(t, nil)
	n := 0
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(p, ".org") || n == most {
			return err
		}
		b, err := os.ReadFile(p)
		const large = 200_000
		if err == nil && len(b) < large && want(string(b)) && !strings.Contains(string(b), "#+SETUPFILE") {
			f.write(fmt.Sprintf("f%03d.org", n), string(b))
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if n == 0 {
		t.Skip("no file fits")
	}
	return f
}

// questions makes match strings from what a file holds.
func questions(os []memory.Object) []string {
	var tags, todos, props []string
	for _, o := range os {
		tags = append(tags, o.AllTags...)
		if o.Todo != "" {
			todos = append(todos, o.Todo)
		}
		for _, p := range o.Properties() {
			if plainWord(p.Key) && !strings.ContainsAny(p.Value, `"/|`) && p.Value != "" {
				props = append(props, fmt.Sprintf("%s=\"%s\"", p.Key, p.Value), p.Key+`<>""`, p.Key+`>"m"`, p.Key+"<=10")
			}
		}
	}
	pick := func(l []string) []string {
		slices.Sort(l)
		l = slices.DeleteFunc(slices.Compact(l), func(s string) bool { return s == "" })
		return l[:min(len(l), 3)]
	}
	tags, todos, props = pick(tags), pick(todos), pick(props)
	out := []string{"LEVEL>1", "LEVEL=1|LEVEL=3", "nosuchtag", "-nosuchtag", `PRIORITY="A"`, `PRIORITY<>"B"`, "/!", `TODO<>""`, `ITEM={a}`}
	for i, tag := range tags {
		out = append(out, "+"+tag, "-"+tag, tag+"+LEVEL>1", "{"+tag[:1]+"}", "-{"+tag[:1]+"}", tag+"/!", tag+"/DONE")
		if i > 0 {
			out = append(out, tags[i-1]+"+"+tag, tags[i-1]+"-"+tag, tags[i-1]+"|"+tag, tags[i-1]+"&"+tag)
		}
	}
	for _, k := range todos {
		if plainWord(k) {
			out = append(out, "/"+k, "/-"+k, fmt.Sprintf("TODO=\"%s\"", k), "/"+k+"|DONE")
		}
	}
	out = append(out, props...)
	return append(out, `SCHEDULED<"<2015-01-01>"`, `DEADLINE>="<2012-06-01>"`, `CLOSED>"<2014-01-01>"`, `SCHEDULED=""`)
}

func plainWord(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_") == ""
}

func TestMatchStringsAgreeWithEmacs(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run by make test")
	}
	f := copies(t, func(s string) bool { return strings.Contains(s, "\n* ") && strings.Contains(s, ":\n") }, some(13, 40))
	s, err := memory.Open(context.Background(), f.dir, memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	v := s.View()
	var forms, queries, files []string
	for p := range v.Files() {
		q, err := memory.ParseQuery("path:"+p, noon)
		if err != nil {
			t.Fatal(err)
		}
		for _, query := range questions(slices.Collect(v.Select(q))) {
			files, queries = append(files, p), append(queries, query)
			forms = append(forms, fmt.Sprintf("(match %s %s)", lispString(filepath.Join(f.dir, p)), lispString(query)))
		}
	}
	wrong := 0
	for i, answer := range askEmacs(t, forms) {
		q, err := memory.ParseQuery("path:"+files[i]+" "+queries[i], noon)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		var lines []string
		for o := range v.Select(q) {
			lines = append(lines, strconv.Itoa(o.Line))
		}
		if got := strings.Join(lines, " "); got != answer {
			if wrong++; wrong <= 20 {
				t.Errorf("%s in %s: Emacs says %.200q, we say %.200q", queries[i], files[i], answer, got)
			}
		}
	}
	t.Logf("%d queries, %d differ", len(forms), wrong)
	if len(forms) < some(150, 200) {
		t.Errorf("want at least %d queries, found %d", some(150, 200), len(forms))
	}
}

func lispString(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// dayNumber counts days as Emacs does: 719163 is the first of January 1970.
func dayNumber(t time.Time) int {
	y, m, d := t.Date()
	return int(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix()/86400) + 719163
}

// emacsType is what Emacs calls our kinds.
var emacsType = map[string]string{
	"deadline": "deadline", "overdue": "deadline", "upcoming": "upcoming-deadline", "scheduled": "scheduled",
	"late": "past-scheduled", "date": "timestamp", "range": "block",
}

func TestTheAgendaAgreesWithEmacs(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run by make test")
	}
	hasDate := func(s string) bool {
		return strings.Contains(s, "<20") && strings.Contains(s, "\n* ") && !strings.Contains(s, "<%%")
	}
	f := copies(t, hasDate, some(20, 110))
	s, err := memory.Open(context.Background(), f.dir, memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	v := s.View()
	type ask struct {
		file  string
		start time.Time
		days  int
		today time.Time
	}
	var asks []ask
	var forms []string
	for p := range v.Files() {
		for i, start := range busyDays(v, p) {
			a := ask{p, start.AddDate(0, 0, -2), 7, start.AddDate(0, 0, i%3-1)}
			if i%4 == 3 {
				a.days, a.today = 31, start.AddDate(0, 0, -20)
			}
			asks = append(asks, a)
			forms = append(forms, fmt.Sprintf("(agenda %s %d %d %d)", lispString(filepath.Join(f.dir, p)), dayNumber(a.start), a.days, dayNumber(a.today)))
		}
	}
	wrong, items, refused := 0, 0, 0
	for i, answer := range askEmacs(t, forms) {
		a := asks[i]
		if strings.HasPrefix(answer, "error ") { // an effort or a date Emacs cannot read
			refused++
			continue
		}
		q, err := memory.ParseQuery("path:"+a.file, noon)
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, it := range v.Agenda(memory.AgendaQuery{From: a.start, To: a.start.AddDate(0, 0, a.days-1), Now: a.today, Match: q}) {
			kind := emacsType[it.Kind]
			if kind == "scheduled" && dayNumber(it.Stamp.Start) < dayNumber(a.today) {
				kind = "past-scheduled" // its name even where the line is not a reminder
			}
			lines = append(lines, fmt.Sprintf("%d:%s:%d", dayNumber(it.Day), kind, it.Object.Line))
		}
		slices.Sort(lines)
		items += len(lines)
		if got := strings.Join(lines, " "); got != answer {
			if wrong++; wrong <= 20 {
				t.Errorf("%s from %s, %d days, today %s:\nEmacs %.300s\nwe    %.300s", a.file, a.start.Format(time.DateOnly), a.days, a.today.Format(time.DateOnly), answer, got)
			}
		}
	}
	t.Logf("%d agendas with %d lines, %d differ, %d refused by Emacs", len(forms), items, wrong, refused)
	if len(forms)-refused < some(50, 200) {
		t.Errorf("want at least %d agendas, found %d", some(50, 200), len(forms)-refused)
	}
}

// busyDays are some days a file has something on.
func busyDays(v *memory.View, p string) []time.Time {
	q, err := memory.ParseQuery("path:"+p, noon)
	if err != nil {
		return nil
	}
	seen := map[time.Time]bool{}
	var out []time.Time
	for y := 2005; y < 2027; y++ {
		from := time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC)
		for _, it := range v.Agenda(memory.AgendaQuery{From: from, To: from.AddDate(1, 0, -1), Now: from.AddDate(-20, 0, 0), Match: q}) {
			if !seen[it.Day] && len(out) < 14 {
				seen[it.Day] = true
				out = append(out, it.Day)
			}
		}
	}
	return out
}
