// Package gardener looks for what has gone wrong in a memex, and says how it could
// be repaired.
//
// The central types:
//
//   - [Inspect] looks at a view and returns a list of [Defect] values, in a fixed order.
//   - [Fix] is a repair as an action somebody may propose: it changes one heading.
//   - [Report] is the list as an Org file with boxes to tick; [Ticked] reads which
//     were. A defect keeps its key while it is the same defect.
//
// Nothing here writes: a repair that was ticked is proposed like any other action,
// one at a time, and looked for again in between, because one repair changes what
// the next must be.
//
// The rule a newcomer will break: a private heading is named by its place, never
// by its words. The report is a file like others.
package gardener

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"passepartout/internal/memory"
	"passepartout/internal/org"
	"passepartout/internal/sexp"
)

// A Kind is a kind of defect.
type Kind string

// The kinds, in the order of the report.
const (
	BrokenID       Kind = "broken-id"       // an id: link that leads nowhere
	BrokenFile     Kind = "broken-file"     // a file: link that leads nowhere
	BrokenHeading  Kind = "broken-heading"  // a link to a heading that is not there
	DuplicateID    Kind = "duplicate-id"    // an identifier two headings have
	Orphan         Kind = "orphan"          // a note that links to none and none links to
	StaleTask      Kind = "stale-task"      // an open task that nobody has touched for long
	OpenBelowDone  Kind = "open-below-done" // a task that is done with open ones below
	ClosedOpen     Kind = "closed-open"     // an open task with a closing date
	EmptyHeading   Kind = "empty-heading"   // a heading without title and text
	TwinHeading    Kind = "twin-heading"    // two neighbours that say the same
	TagVariant     Kind = "tag-variant"     // a tag that is usually written otherwise
	ImpossibleDate Kind = "impossible-date" // a date no calendar has
	WrongDay       Kind = "wrong-day"       // a date with another day's name
	Spelling       Kind = "org"             // what the Org reader finds odd; see org lint
)

var kinds = []Kind{
	BrokenID, BrokenFile, BrokenHeading, DuplicateID, Orphan, StaleTask, OpenBelowDone, ClosedOpen,
	EmptyHeading, TwinHeading, TagVariant, ImpossibleDate, WrongDay, Spelling,
}

// A Defect is one thing that is wrong.
type Defect struct {
	Kind   Kind
	Key    string // the same as long as it is the same defect
	File   string
	Line   int
	Object memory.ID
	Title  string // "" for a private heading
	Text   string // what is wrong
	Fix    *Fix   // nil: a person must see to it
}

// A Fix is a repair: a change to one heading, or a new one in the inbox.
type Fix struct {
	Text    string // what it would do
	Object  memory.ID
	Change  memory.Change
	Capture string // title of a heading to capture instead
}

// Options say what counts as what.
type Options struct {
	Now   time.Time
	Stale time.Duration // after which an open task is stale; half a year if zero
	Inbox string        // where captured headings go
	// Exists tells of a path in the memex whether a file is there, Org or not.
	Exists func(name string) bool
}

const usualStale = 182 * 24 * time.Hour

// restTag marks tasks that may lie.
const restTag = "someday"

// Inspect looks at everything but archives, reports and what the agent keeps in
// system/.
func Inspect(v *memory.View, o Options) []Defect {
	o.Stale = cmp.Or(o.Stale, usualStale)
	g := &garden{v: v, o: o, titles: map[string][]memory.Object{}, spelt: map[string]map[string]int{}, linked: map[string]bool{}}
	for f := range v.FileObjects() {
		if !tended(f) {
			continue
		}
		g.beds = append(g.beds, newBed(v, f))
	}
	for _, b := range g.beds {
		g.survey(b)
	}
	for _, b := range g.beds {
		g.tend(b)
	}
	slices.SortFunc(g.found, func(a, b Defect) int {
		return cmp.Or(cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Text, b.Text))
	})
	return g.found
}

// tended reports whether a file is looked at.
func tended(f memory.Object) bool {
	return !strings.HasSuffix(f.File, ".org_archive") && !strings.HasPrefix(f.File, "archives/") && !strings.HasPrefix(f.File, "system/") && !slices.Contains(f.Tags, "ARCHIVE")
}

// A bed is one file with its headings, as memory and as the Org reader have them.
type bed struct {
	file  memory.Object
	of    *org.File
	heads []memory.Object // in the order of the file
}

func newBed(v *memory.View, f memory.Object) *bed {
	b := &bed{file: f, of: org.Parse([]byte(f.Subtree()))}
	var walk func(memory.Object)
	walk = func(o memory.Object) {
		b.heads = append(b.heads, o)
		for c := range o.Children() {
			walk(c)
		}
	}
	for c := range f.Children() {
		walk(c)
	}
	return b
}

// garden is one inspection.
type garden struct {
	v      *memory.View
	o      Options
	beds   []*bed
	titles map[string][]memory.Object // headings and files by folded title
	spelt  map[string]map[string]int  // tags by their folded form, with how often each is written
	linked map[string]bool            // files that link to another or are linked to
	found  []Defect
}

// survey notes what the whole must be known for.
func (g *garden) survey(b *bed) {
	g.titles[fold(b.file.Title)] = append(g.titles[fold(b.file.Title)], b.file)
	for _, h := range b.heads {
		if h.Title != "" {
			g.titles[fold(h.Title)] = append(g.titles[fold(h.Title)], h)
		}
		for _, t := range h.Tags {
			if g.spelt[tagForm(t)] == nil {
				g.spelt[tagForm(t)] = map[string]int{}
			}
			g.spelt[tagForm(t)][t]++
		}
	}
	for _, l := range b.links() {
		if to, ok := g.leads(b, l.Link); ok && to != "" && to != b.file.File {
			g.linked[to], g.linked[b.file.File] = true, true
		}
	}
}

// tend looks for the defects of one file.
func (g *garden) tend(b *bed) {
	g.links(b)
	g.orphan(b)
	for i, h := range b.heads {
		if i >= b.of.Len() || h.HasTag("ARCHIVE") {
			continue
		}
		g.tasks(b, h)
		g.emptiness(b, h)
		g.tags(b, h)
		g.dates(b, h)
		g.identity(b, h, b.of.Headline(i))
	}
	g.twins(b)
	g.spelling(b)
}

// add notes a defect. What says which one it is among others of its kind and
// heading.
func (g *garden) add(k Kind, o memory.Object, what, text string, fix *Fix) {
	d := Defect{Kind: k, File: o.File, Line: o.Line, Object: o.ID, Title: o.Title, Text: text, Fix: fix}
	if g.v.PrivateObject(o) || g.v.Private(string(o.ID)) {
		d.Title, d.Text = "", "a private heading: "+string(k)
		if fix != nil {
			d.Fix = &Fix{Text: "as for others of its kind", Object: fix.Object, Change: fix.Change, Capture: fix.Capture}
			if fix.Capture != "" {
				d.Fix = nil // it would be named elsewhere
			}
		}
	}
	d.Key = sexp.Sum(sexp.Strings([]string{string(k), o.File, string(o.ID), what})).String()[:12]
	g.found = append(g.found, d)
}

func fold(s string) string { return strings.Join(strings.Fields(strings.ToLower(s)), " ") }

// tagForm is what spellings of one tag have in common.
func tagForm(t string) string {
	t = strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(t))
	if len(t) > 3 {
		t = strings.TrimSuffix(t, "s")
	}
	return t
}

// orphan finds notes outside every web of links.
func (g *garden) orphan(b *bed) {
	f := b.file
	if !strings.HasPrefix(f.File, "notes/") || g.linked[f.File] || g.v.Private(f.File) {
		return
	}
	target := "file:" + relative(g.o.Inbox, f.File)
	if id, ok := idOf(b); ok {
		target = "id:" + id
	}
	title := cmp.Or(f.Title, path.Base(f.File))
	link := fmt.Sprintf("[[%s][%s]]", target, strings.NewReplacer("[", "(", "]", ")").Replace(title))
	g.add(Orphan, f, "", "no other note links here, and it links to none", &Fix{Text: "capture a reminder that links to it", Object: f.ID, Capture: "Find a place for " + link})
}

// idOf is an identifier that is written in the file: its own, or its first
// heading's.
func idOf(b *bed) (string, bool) {
	if id, ok := b.file.Property("ID"); ok && id != "" {
		return id, true
	}
	for _, h := range b.heads {
		if id, ok := h.Property("ID"); ok && id != "" && string(h.ID) == id {
			return id, true
		}
	}
	return "", false
}

// relative is the path from one file of the memex to another.
func relative(from, to string) string {
	a, b := strings.Split(path.Dir(from), "/"), strings.Split(to, "/")
	if path.Dir(from) == "." {
		a = nil
	}
	for len(a) > 0 && len(b) > 1 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	return strings.Repeat("../", len(a)) + strings.Join(b, "/")
}

// tasks finds states that do not fit.
func (g *garden) tasks(_ *bed, h memory.Object) {
	switch {
	case h.Todo == "":
		return
	case h.Done:
		for c := range h.Children() {
			if c.Todo != "" && !c.Done && !c.HasTag("ARCHIVE") {
				g.add(OpenBelowDone, h, "", fmt.Sprintf("%s, and %q below it is open", h.Todo, c.Title), g.change(h, "open it again", memory.Change{Kind: memory.SetTodo, Value: "TODO"}))
				return
			}
		}
		return
	case !h.Closed.IsZero():
		g.add(ClosedOpen, h, "", "open, and closed at "+h.Closed.Raw, g.change(h, "mark it DONE", memory.Change{Kind: memory.SetTodo, Value: "DONE"}))
		return
	}
	if h.HasTag(restTag) || h.Scheduled.Repeat.Mark != "" || h.Deadline.Repeat.Mark != "" {
		return
	}
	last := h.Changed
	for _, t := range []org.Timestamp{h.Scheduled, h.Deadline} {
		if !t.Start.IsZero() {
			last = time.Time{}
		}
	}
	for _, t := range []org.Timestamp{h.Scheduled, h.Deadline} {
		if t.Start.After(last) {
			last = t.Start
		}
	}
	if age := g.o.Now.Sub(last); !last.IsZero() && age > g.o.Stale {
		tags := append(slices.Clone(h.Tags), restTag)
		g.add(StaleTask, h, "", fmt.Sprintf("nothing has happened for %d days", int(age.Hours()/24)), g.change(h, "let it lie: tag it "+restTag, memory.Change{Kind: memory.SetTags, Tags: tags}))
	}
}

func (g *garden) change(h memory.Object, text string, c memory.Change) *Fix {
	return &Fix{Text: text, Object: h.ID, Change: c}
}

// emptiness finds headings that say nothing.
func (g *garden) emptiness(_ *bed, h memory.Object) {
	if strings.TrimSpace(h.Title) != "" {
		return
	}
	for range h.Children() {
		g.add(EmptyHeading, h, "", "a heading without a title, with others below it", g.change(h, "call it Untitled", memory.Change{Kind: memory.SetTitle, Value: "Untitled"}))
		return
	}
	if body := strings.TrimSpace(h.Body()); body != "" {
		first, _, _ := strings.Cut(body, "\n")
		g.add(EmptyHeading, h, "", "a heading without a title", g.change(h, "give it the first words of its text", memory.Change{Kind: memory.SetTitle, Value: plainTitle(first)}))
		return
	}
	g.add(EmptyHeading, h, "", "a heading without title and text", g.change(h, "archive it", memory.Change{Kind: memory.Archive}))
}

// plainTitle is a line as a title: short, and without what a title would be read
// as.
func plainTitle(line string) string {
	words := strings.Fields(strings.Trim(line, "*#:|-+[] \t"))
	title := strings.Join(words[:min(len(words), 8)], " ")
	if title = strings.TrimRight(title, ":"); title == "" {
		return "Untitled"
	}
	return title
}

// twins finds neighbours with the same text.
func (g *garden) twins(b *bed) {
	seen := map[string]bool{}
	for _, h := range b.heads {
		if h.Title == "" || h.HasTag("ARCHIVE") {
			continue
		}
		key := string(h.Parent) + "\x00" + strings.TrimSpace(h.Subtree())
		if seen[key] {
			g.add(TwinHeading, h, "", "the same stands just above", g.change(h, "archive the second", memory.Change{Kind: memory.Archive}))
		}
		seen[key] = true
	}
}

// tags finds spellings of tags that are rarer than another.
func (g *garden) tags(_ *bed, h memory.Object) {
	var own []string
	var wrong []string
	for _, t := range h.Tags {
		usual := t
		for other, n := range g.spelt[tagForm(t)] {
			if m := g.spelt[tagForm(t)][usual]; n > m || n == m && other < usual {
				usual = other
			}
		}
		if usual != t {
			wrong = append(wrong, fmt.Sprintf("%s is usually written %s", t, usual))
		}
		if !slices.Contains(own, usual) {
			own = append(own, usual)
		}
	}
	if len(wrong) > 0 {
		g.add(TagVariant, h, "", strings.Join(wrong, ", "), g.change(h, "write it so", memory.Change{Kind: memory.SetTags, Tags: own}))
	}
}

// dates finds planning no calendar agrees with.
func (g *garden) dates(_ *bed, h memory.Object) {
	for _, p := range []struct {
		word string
		ts   org.Timestamp
		kind memory.ChangeKind
	}{{"SCHEDULED", h.Scheduled, memory.Schedule}, {"DEADLINE", h.Deadline, memory.SetDeadline}} {
		if p.ts.IsZero() || p.ts.Diary || len(p.ts.Raw) < 11 {
			continue
		}
		day := p.ts.Raw[1:11]
		if p.ts.Start.IsZero() || p.ts.Start.Format(time.DateOnly) != day {
			if near, ok := nearestDay(day); ok {
				g.add(ImpossibleDate, h, p.word, p.word+": no calendar has "+day, g.change(h, "make it "+near.Format(time.DateOnly), memory.Change{Kind: p.kind, Value: near.Format("<2006-01-02 Mon>")}))
			}
			continue
		}
		words := strings.Fields(strings.Trim(p.ts.Raw, "<>[]"))
		if want := p.ts.Start.Format("Mon"); len(words) > 1 && slices.Contains(dayNames, words[1]) && words[1] != want {
			g.add(WrongDay, h, p.word, fmt.Sprintf("%s: %s is a %s", p.word, day, want), g.change(h, "write "+want, memory.Change{Kind: p.kind, Value: strings.Replace(p.ts.Raw, words[1], want, 1)}))
		}
	}
}

var dayNames = []string{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}

// nearestDay is the last day of the month a date means to be in.
func nearestDay(text string) (time.Time, bool) {
	month, err := time.Parse("2006-01", text[:7])
	if err != nil {
		return time.Time{}, false
	}
	return month.AddDate(0, 1, -1), true
}

// identity finds identifiers that are taken.
func (g *garden) identity(_ *bed, h memory.Object, oh org.Headline) {
	id := oh.ID()
	if id == "" || string(h.ID) == id {
		return
	}
	if owner, ok := g.v.Get(memory.ID(id)); ok {
		g.add(DuplicateID, h, id, fmt.Sprintf("id %s belongs to %s:%d", id, owner.File, owner.Line), g.change(h, "take the second away", memory.Change{Kind: memory.RemoveProperty, Key: "ID"}))
	}
}

// spelling passes on what the Org reader finds, apart from what is found here
// better.
func (g *garden) spelling(b *bed) {
	lines := b.of.Lines()
	for _, f := range b.of.Lint() {
		switch f.Code {
		case "duplicate-id", "bad-date", "wrong-day", "unknown-keyword":
			continue
		}
		at := b.file
		line := lines.At(f.Pos)
		for _, h := range b.heads {
			if h.Line <= line {
				at = h
			}
		}
		at.Line = line
		g.add(Spelling, at, fmt.Sprintf("%s %s", f.Code, f.Message), f.Code+": "+f.Message, nil)
	}
}
