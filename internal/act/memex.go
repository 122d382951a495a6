package act

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"passepartout/internal/label"
	"passepartout/internal/memory"
	"passepartout/internal/org"
	"passepartout/internal/proto"
)

// Memex gives tools the user's Org files as objects.
type Memex struct {
	Store *memory.Store
	Now   func() time.Time
	Inbox string // file that captured headings go to, relative to the memex
	// Find returns the headings a text is about, best first; nil finds those
	// that have all its words.
	Find func(v *memory.View, text string, limit int) []memory.Object
	// PrivateTags mark what must not leave this machine. The first is put on what
	// a turn writes that has read such text.
	PrivateTags []string
	// Closed names files whose headings no action changes, whatever the gates were
	// told of a heading that has moved since. Nil: none.
	Closed func(path string) bool
	// Labels are those of files that do not say themselves where their text came
	// from: a command may have changed a note. Nil: there are none.
	Labels *label.Store
}

// Holding are the files, by their whole path, in which the heading stands that an
// action means by an id, a title or a file's name.
func (m Memex) Holding(name string) []string {
	o, err := destination(m.Store.View(), name)
	if err != nil {
		return nil // then there is nothing to change either
	}
	return []string{m.path(o)}
}

func (m Memex) path(o memory.Object) string {
	return filepath.Join(m.Store.Root(), filepath.FromSlash(o.File))
}

// open refuses headings of a closed file.
func (m Memex) open(o memory.Object) error {
	if m.Closed != nil && m.Closed(m.path(o)) {
		return fmt.Errorf("%s belongs to the policy or the record, which no action changes", o.File)
	}
	return nil
}

// listed is how many headings a tool shows when it is not told.
const listed = 30

// Tools are the tools over the memex.
func (m Memex) Tools() []Tool {
	return []Tool{
		{
			Name: "agenda", Effect: proto.ReadLocal, Doc: "Show what is due, scheduled or overdue.",
			Params: []proto.Param{{Name: "SPAN", Type: proto.Text, Doc: "today, tomorrow, week, next week, month, next month, overdue, or next N days"}},
			Run:    m.agenda,
		},
		{
			Name: "org-find-headline", Effect: proto.ReadLocal, Doc: "List headings by state, tag, words or an Org match string.",
			Params: []proto.Param{
				{Name: "MATCH", Type: proto.Text, Doc: "an Org match string such as +work-@home/TODO"},
				{Name: "TODO", Type: proto.Text, Doc: "open, done, or a keyword"},
				{Name: "TAG", Type: proto.Text, Doc: "a tag, own or inherited"},
				{Name: "TEXT", Type: proto.Text, Doc: "words the title must contain"},
				{Name: "FULL", Type: proto.Flag, Doc: "show the text of what is found, too"},
				{Name: "LIMIT", Type: proto.Number, Doc: "how many, 30 by default"},
			},
			Run: m.find,
		},
		{
			Name: "memory-search", Effect: proto.ReadLocal, Timeout: 30 * time.Second, Doc: "Find what the memex says about something, best first.",
			Params: []proto.Param{
				{Name: "QUERY", Type: proto.Text, Required: true, Doc: "what it is about, in any words"},
				{Name: "LIMIT", Type: proto.Number, Doc: "how many, 10 by default"},
			},
			Run: m.search,
		},
		{
			Name: "capture", Effect: proto.WriteMemory, Doc: "Add a heading to the inbox.",
			Params: []proto.Param{
				{Name: "TITLE", Type: proto.Text, Means: proto.Content, Required: true, Doc: "the heading"},
				{Name: "TODO", Type: proto.Text, Doc: "a state such as TODO"},
				{Name: "DEADLINE", Type: proto.Text, Doc: "a date, YYYY-MM-DD"},
				{Name: "SCHEDULED", Type: proto.Text, Doc: "a date, YYYY-MM-DD"},
				{Name: "TAGS", Type: proto.Texts, Doc: "tags"},
				{Name: "BODY", Type: proto.Text, Means: proto.Content, Doc: "text below the heading"},
			},
			Run: m.capture,
		},
		{
			Name: "org-edit", Effect: proto.WriteMemory, Doc: "Change one heading: its state, dates, tags, title, text or a property; add a heading below it, move it, archive it.",
			Params: []proto.Param{
				{Name: "ID", Type: proto.Text, Means: proto.Node, Doc: "the heading's id"},
				{Name: "HEADING", Type: proto.Text, Means: proto.Node, Doc: "its title, when the id is not known and no other heading has it"},
				{Name: "TODO", Type: proto.Text, Doc: "the new state, such as DONE"},
				{Name: "DEADLINE", Type: proto.Text, Doc: "a date, YYYY-MM-DD, or empty to remove it"},
				{Name: "SCHEDULED", Type: proto.Text, Doc: "a date, YYYY-MM-DD, or empty to remove it"},
				{Name: "TITLE", Type: proto.Text, Means: proto.Content, Doc: "the new title"},
				{Name: "TAGS", Type: proto.Texts, Doc: "all of its own tags"},
				{Name: "BODY", Type: proto.Text, Means: proto.Content, Doc: "the new text"},
				{Name: "PRIORITY", Type: proto.Text, Doc: "a letter, or empty to remove it"},
				{Name: "PROPERTY", Type: proto.Text, Doc: "the name of a property to set, or to remove when there is no value"},
				{Name: "VALUE", Type: proto.Text, Means: proto.Content, Doc: "the property's value"},
				{Name: "CHILD", Type: proto.Text, Means: proto.Content, Doc: "the title of a heading to add below"},
				{Name: "REFILE-TO", Type: proto.Text, Means: proto.Node, Doc: "where to move it: a heading's id or title, or a file of the memex"},
				{Name: "ARCHIVE", Type: proto.Flag, Doc: "move it to the archive of its file"},
			},
			Guard: func(c Call) error {
				switch {
				case c.Has("VALUE") && c.Text("PROPERTY") == "":
					return fmt.Errorf(":VALUE is the value of a :PROPERTY, and none is named")
				case c.Flag("ARCHIVE") && c.Text("REFILE-TO") != "":
					return fmt.Errorf("give :ARCHIVE or :REFILE-TO, not both")
				}
				return nil
			},
			Run: m.edit,
		},
	}
}

// line is a heading as lists show it.
func line(o memory.Object) string {
	var b strings.Builder
	if o.Todo != "" {
		b.WriteString(o.Todo + " ")
	}
	b.WriteString(o.Title)
	if len(o.Tags) > 0 {
		b.WriteString("  :" + strings.Join(o.Tags, ":") + ":")
	}
	for _, d := range []struct {
		word string
		ts   org.Timestamp
	}{{"deadline", o.Deadline}, {"scheduled", o.Scheduled}} {
		if raw := d.ts.Raw; raw != "" {
			fmt.Fprintf(&b, "  %s %s", d.word, raw)
		}
	}
	fmt.Fprintf(&b, "  (%s:%d)", o.File, o.Line)
	return b.String()
}

// show joins headings into an outcome that says whether private ones took part.
func (m Memex) show(v *memory.View, objects []memory.Object, most int, full bool, none string) Outcome {
	if len(objects) == 0 {
		return Outcome{OK: true, Text: none}
	}
	var b strings.Builder
	var taint proto.Taint
	for _, o := range objects[:min(most, len(objects))] {
		taint = taint.Join(m.label(v, o))
		if full {
			b.WriteString(strings.TrimRight(o.Subtree(), "\n") + "\n")
			continue
		}
		b.WriteString(line(o) + "\n")
	}
	if n := len(objects) - most; n > 0 {
		fmt.Fprintf(&b, "… and %d more\n", n)
	}
	return Outcome{OK: true, Text: strings.TrimRight(b.String(), "\n"), Taint: taint, Truncated: len(objects) > most}
}

// label is what reading an object does to a turn.
func (m Memex) label(v *memory.View, o memory.Object) proto.Taint {
	t := m.Labels.Of(filepath.Join(m.Store.Root(), filepath.FromSlash(o.File)))
	return t.Join(proto.Taint{Private: v.PrivateObject(o), Untrusted: o.Origin() != ""})
}

func (m Memex) find(_ context.Context, c Call) (Outcome, error) {
	v := m.Store.View()
	var objects []memory.Object
	if match := c.Text("MATCH"); match != "" {
		var err error
		if objects, err = v.Match(match); err != nil {
			return Outcome{}, err
		}
	} else {
		objects = slices.Collect(v.All())
	}
	todo, tag, words := c.Text("TODO"), c.Text("TAG"), strings.Fields(strings.ToLower(c.Text("TEXT")))
	objects = slices.DeleteFunc(objects, func(o memory.Object) bool {
		return o.IsFile() || !hasState(o, todo) || tag != "" && !o.HasTag(tag) || !hasWords(o.Title, words)
	})
	if tag == "project" && todo == "" {
		objects = slices.DeleteFunc(objects, func(o memory.Object) bool { return !slices.Contains(o.Tags, "project") })
	}
	return m.show(v, objects, c.Int("LIMIT", listed), c.Flag("FULL"), "No heading matches."), nil
}

func hasState(o memory.Object, todo string) bool {
	switch strings.ToLower(todo) {
	case "":
		return true
	case "open":
		return o.Todo != "" && !o.Done
	case "done":
		return o.Done
	}
	return strings.EqualFold(o.Todo, todo)
}

func hasWords(title string, words []string) bool {
	title = strings.ToLower(title)
	for _, w := range words {
		if !strings.Contains(title, w) {
			return false
		}
	}
	return true
}

func (m Memex) search(_ context.Context, c Call) (Outcome, error) {
	v := m.Store.View()
	text := c.Text("QUERY")
	hits := m.hits(v, text, c.Int("LIMIT", 10))
	if len(hits) == 0 {
		return Outcome{OK: true, Text: fmt.Sprintf("Nothing in the memex is about %q.", text)}, nil
	}
	var b strings.Builder
	var taint proto.Taint
	for _, h := range hits {
		taint = taint.Join(m.label(v, h.Object))
		b.WriteString(line(h.Object) + "\n")
		if h.Line != "" {
			b.WriteString("    " + h.Line + "\n")
		}
	}
	return Outcome{OK: true, Text: strings.TrimRight(b.String(), "\n"), Taint: taint}, nil
}

func (m Memex) hits(v *memory.View, text string, limit int) []memory.Hit {
	if m.Find == nil {
		return v.Search(text, limit)
	}
	var hits []memory.Hit
	for _, o := range m.Find(v, text, limit) {
		hits = append(hits, memory.Hit{Object: o, Line: telling(o.Body(), text)})
	}
	return hits
}

// telling is the first line that has one of the words, else the first of all.
func telling(body, text string) string {
	words := strings.Fields(strings.ToLower(text))
	first := ""
	for l := range strings.Lines(body) {
		if l = strings.TrimSpace(l); l == "" {
			continue
		}
		low := strings.ToLower(l)
		if slices.ContainsFunc(words, func(w string) bool { return len(w) > 3 && strings.Contains(low, w) }) {
			return shorten([]byte(l))
		}
		if first == "" {
			first = l
		}
	}
	return shorten([]byte(first))
}

// stamp turns a day into an Org timestamp.
func stamp(day string) (string, error) {
	if day == "" {
		return "", nil
	}
	t, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return "", fmt.Errorf("date %q: want YYYY-MM-DD", day)
	}
	return t.Format("<2006-01-02 Mon>"), nil
}

func (m Memex) capture(ctx context.Context, c Call) (Outcome, error) {
	e := org.Entry{Title: c.Text("TITLE"), Todo: strings.ToUpper(c.Text("TODO")), Tags: c.Texts("TAGS"), Body: c.Text("BODY")}
	if strings.TrimSpace(e.Title) == "" {
		return Outcome{}, fmt.Errorf("the title is empty")
	}
	var err error
	if e.Deadline, err = stamp(c.Text("DEADLINE")); err != nil {
		return Outcome{}, err
	}
	if e.Scheduled, err = stamp(c.Text("SCHEDULED")); err != nil {
		return Outcome{}, err
	}
	t := turnOf(ctx)
	_, err = m.Store.Apply(ctx, memory.Tx{
		Actor: "agent", Turn: t.ID, Label: t.label("capture " + e.Title),
		Edits: []memory.Edit{{File: m.Inbox, Change: memory.Change{Kind: memory.Insert, Entry: m.labelled(t, e)}}},
	})
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{OK: true, Text: fmt.Sprintf("Captured in %s: %s", m.Inbox, strings.TrimSpace(e.Todo+" "+e.Title+due(e))), Changed: []string{m.Inbox}}, nil
}

func due(e org.Entry) string {
	switch {
	case e.Deadline != "":
		return "  deadline " + e.Deadline
	case e.Scheduled != "":
		return "  scheduled " + e.Scheduled
	}
	return ""
}

// target is the one heading an edit names.
func (m Memex) target(v *memory.View, c Call) (memory.Object, error) {
	if id := c.Text("ID"); id != "" {
		o, ok := v.Get(memory.ID(id))
		if !ok {
			return o, fmt.Errorf("no heading has the id %q", id)
		}
		return o, nil
	}
	if strings.TrimSpace(c.Text("HEADING")) == "" {
		return memory.Object{}, fmt.Errorf("which heading? give :ID or :HEADING")
	}
	return titled(v, c.Text("HEADING"))
}

// titled is the one heading whose title has all the words: the one that has no
// others, else the only open one, else the only one.
func titled(v *memory.View, title string) (memory.Object, error) {
	words := strings.Fields(strings.ToLower(title))
	var exact, loose []memory.Object
	for o := range v.All() {
		if o.IsFile() || !hasWords(o.Title, words) {
			continue
		}
		loose = append(loose, o)
		if strings.EqualFold(o.Title, strings.Join(words, " ")) {
			exact = append(exact, o)
		}
	}
	open := slices.DeleteFunc(slices.Clone(loose), func(o memory.Object) bool { return o.Todo == "" || o.Done })
	for _, found := range [][]memory.Object{exact, open, loose} {
		if len(found) == 1 {
			return found[0], nil
		}
	}
	if len(loose) == 0 {
		return memory.Object{}, fmt.Errorf("no heading contains %q", title)
	}
	return memory.Object{}, fmt.Errorf("%d headings contain %q, such as %s: say more of the title", len(loose), title, line(loose[0]))
}
