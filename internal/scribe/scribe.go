// Package scribe distils the daily log into notes of one thought each.
//
// The central types:
//
//   - [Day] is what of one day's log may be distilled: never a private heading.
//   - [Extract] finds notes by rules: headings with text, definitions, decisions,
//     links, tasks. [Prompt] and [Read] are the same with a model in between.
//   - [Note] is a proposal: a file for notes/, with a link back to where it came from.
//     [Report] shows proposals with boxes to tick, [Ticked] reads which were.
//
// Nothing here writes. Running twice proposes nothing twice: a note carries the key
// of what it was made from, and what has a note is left out.
//
// The rule a newcomer will break: a note's source must have a written identifier
// for the link back. Where it has none, the note says which one to write first.
package scribe

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"

	"passepartout/internal/memory"
	"passepartout/internal/pattern"
	"passepartout/internal/sexp"
)

// A Kind is what a note is made from.
type Kind string

// The kinds of notes.
const (
	Thought    Kind = "thought"    // a heading with text
	Definition Kind = "definition" // - term :: what it is
	Decision   Kind = "decision"
	Reference  Kind = "reference" // a link with words
	Task       Kind = "task"
	Concept    Kind = "concept" // what a model made of a passage
)

// AgentTag marks what the agent wrote into the log itself. It is no source.
const AgentTag = "agent"

// A Source is a heading of a log that may be distilled.
type Source struct {
	Object memory.Object
	ID     string // to link to
	Write  bool   // the identifier must be written first
	Text   string // its own text, without what is private
}

// A Day is one day's log.
type Day struct {
	File    string
	Date    string // as in the file's name
	Sources []Source
}

// A Note is a proposal.
type Note struct {
	Kind   Kind
	Key    string // of what it was made from
	Title  string
	Body   string
	File   string // where it goes
	Source Source
	Date   string
	Origin string // where the source's text came from, "" for the person's own
}

var dayFile = pattern.New(`^daily/(\d{4}-\d{2}-\d{2})\.org$`)

// Days are the logs of a view, oldest first; those before a date only, if one is
// given.
func Days(v *memory.View, before time.Time) []Day {
	var out []Day
	for f := range v.FileObjects() {
		m := dayFile.FindStringSubmatch(f.File)
		if m == nil || !before.IsZero() && m[1] >= before.Format(time.DateOnly) {
			continue
		}
		out = append(out, Day{File: f.File, Date: m[1], Sources: sources(v, f)})
	}
	return out
}

// sources are the headings of a log that are not private, each with its own text
// only.
func sources(v *memory.View, f memory.Object) []Source {
	var out []Source
	var walk func(memory.Object)
	walk = func(o memory.Object) {
		if v.PrivateObject(o) || o.HasTag("ARCHIVE") || slices.Contains(o.Tags, AgentTag) {
			return // and so is everything below
		}
		s := Source{Object: o, Text: strings.TrimSpace(o.Body())}
		if id, ok := o.Property("ID"); ok && id == string(o.ID) {
			s.ID = id
		} else {
			s.ID, s.Write = madeID(o), true
		}
		out = append(out, s)
		for c := range o.Children() {
			walk(c)
		}
	}
	if v.PrivateObject(f) {
		return nil
	}
	for c := range f.Children() {
		walk(c)
	}
	return out
}

// madeID is an identifier for a heading that has none: always the same, so that
// two notes from one heading agree on it.
func madeID(o memory.Object) string {
	h := sexp.Sum(sexp.Strings([]string{"scribe", o.File, string(o.ID)})).String()
	return fmt.Sprintf("%s-%s-%s-%s-%s", h[:8], h[8:12], h[12:16], h[16:20], h[20:32])
}

// known are the keys that notes of the view were made from, and the files taken.
type known struct {
	keys  map[string]bool
	files map[string]bool
}

func knownIn(v *memory.View) known {
	k := known{map[string]bool{}, map[string]bool{}}
	for f := range v.FileObjects() {
		k.files[f.File] = true
		text := f.Subtree()
		if !strings.Contains(text, keyProperty) {
			continue
		}
		for _, m := range keyLine.FindAllStringSubmatch(text, -1) {
			k.keys[m[1]] = true
		}
	}
	return k
}

const keyProperty = ":SCRIBE:"

var keyLine = pattern.New(`(?m)^\s*:SCRIBE:\s+([0-9a-f]{16})\s*$`)

// Extract finds the notes of some days by rules. What a note exists for is left
// out.
func Extract(v *memory.View, days []Day) []Note {
	var out []Note
	for _, d := range days {
		for _, s := range d.Sources {
			out = append(out, d.extract(s)...)
		}
	}
	return fresh(v, out)
}

// fresh leaves out what there is a note for, and gives each a file of its own.
func fresh(v *memory.View, notes []Note) []Note {
	k := knownIn(v)
	out := notes[:0:0]
	for _, n := range notes {
		n.Key = key(n)
		if k.keys[n.Key] {
			continue
		}
		k.keys[n.Key] = true
		n.File = "notes/" + slug(n.Title) + ".org"
		if k.files[n.File] {
			n.File = fmt.Sprintf("notes/%s-%s.org", slug(n.Title), n.Key[:6])
		}
		k.files[n.File] = true
		out = append(out, n)
	}
	return out
}

// key tells what a note was made from, not how its words read today.
func key(n Note) string {
	return sexp.Sum(sexp.Strings([]string{string(n.Kind), n.Source.Object.File, strings.ToLower(n.Title)})).String()[:16]
}

var (
	definition = pattern.New(`^\s*[-+] (\S.*?) :: (.+)$`)
	decision   = pattern.New(`(?i)^\s*(?:[-+] )?(?:decision|decided|we decided|i decided)\s*[:—-]\s*(.+)$`)
	reference  = pattern.New(`\[\[(https?://[^\]]+)\]\[([^\]]+)\]\]`)
)

// minWords is how many words a heading's text must have to be a thought.
const minWords = 8

func (d Day) extract(s Source) []Note {
	var out []Note
	add := func(k Kind, title, body string) {
		if title = plain(title); title != "" {
			out = append(out, Note{Kind: k, Title: title, Body: strings.TrimSpace(body), Source: s, Date: d.Date, Origin: s.Object.Origin()})
		}
	}
	if s.Object.Todo != "" && !s.Object.Done {
		add(Task, s.Object.Title, s.Text)
		return out
	}
	rest := []string{}
	block := false
	for line := range strings.Lines(s.Text) {
		line = strings.TrimRight(line, "\n")
		low := strings.ToLower(strings.TrimSpace(line))
		block = (block || strings.HasPrefix(low, "#+begin_")) && !strings.HasPrefix(low, "#+end_")
		switch m, n := definition.FindStringSubmatch(line), decision.FindStringSubmatch(line); {
		case block:
			rest = append(rest, line)
		case m != nil:
			add(Definition, m[1], m[2])
		case n != nil:
			add(Decision, n[1], n[1])
		default:
			for _, l := range reference.FindAllStringSubmatch(line, -1) {
				add(Reference, l[2], line)
			}
			rest = append(rest, line)
		}
	}
	switch text := strings.TrimSpace(strings.Join(rest, "\n")); {
	case slices.Contains(s.Object.Tags, "decision"):
		add(Decision, s.Object.Title, text)
	case len(strings.Fields(text)) >= minWords:
		add(Thought, s.Object.Title, text)
	}
	return out
}

// plain is a text as a title: one line, without links and marks.
func plain(text string) string {
	text = linkText.ReplaceAllString(text, "$1")
	words := strings.Fields(strings.Trim(text, "*#:|-+[] \t"))
	title := strings.Join(words[:min(len(words), 14)], " ")
	return strings.TrimRight(title, ":.,;")
}

var linkText = pattern.New(`\[\[[^\]]*\](?:\[([^\]]*)\])?\]`)

// slug is a title as a file's name.
func slug(title string) string {
	const most = 60
	var b strings.Builder
	for _, r := range strings.ToLower(title) {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() >= most {
			break
		}
	}
	return cmp.Or(strings.Trim(b.String(), "-"), "note")
}

// Text is the note as a file.
func (n Note) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, ":PROPERTIES:\n:ID:       %s\n:SCRIBE:   %s\n", n.ID(), n.Key)
	if n.Origin != "" {
		fmt.Fprintf(&b, ":ORIGIN:   %s\n", strings.Join(strings.Fields(n.Origin), " "))
	}
	fmt.Fprintf(&b, ":END:\n#+TITLE: %s\n#+FILETAGS: :%s:\n\n", n.Title, n.Kind)
	if body := quoteHeadings(n.Body); body != "" {
		b.WriteString(body + "\n\n")
	}
	fmt.Fprintf(&b, "From [[id:%s][%s: %s]].\n", n.Source.ID, n.Date, plain(n.Source.Object.Title))
	return b.String()
}

// ID is the note's own identifier.
func (n Note) ID() string { return "note-" + n.Key }

// quoteHeadings keeps text from being read as headings or settings of the note. A
// setting is one however far it is indented, so it is shown as it was written.
func quoteHeadings(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, l := range lines {
		low := strings.ToLower(strings.TrimLeft(l, " \t"))
		switch {
		case strings.HasPrefix(l, "*"):
			lines[i] = " " + l
		case strings.HasPrefix(low, "#+") && !strings.HasPrefix(low, "#+begin") && !strings.HasPrefix(low, "#+end"):
			lines[i] = ": " + l
		}
	}
	return strings.Join(lines, "\n")
}

// Report shows proposals as an Org file with boxes to tick.
func Report(notes []Note, now time.Time, ticked map[string]bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "#+TITLE: What the scribe proposes\n\n%s: %d notes. Tick what is to be kept ([X]), then: passepartout scribe apply\n", now.Format("2006-01-02 15:04"), len(notes))
	day := ""
	for _, n := range notes {
		if n.Date != day {
			day = n.Date
			fmt.Fprintf(&b, "* %s\n", day)
		}
		box := " "
		if ticked[n.Key] {
			box = "X"
		}
		fmt.Fprintf(&b, "- [%s] %s: %s → %s =%s=\n", box, n.Kind, n.Title, path.Base(n.File), n.Key)
		for line := range strings.Lines(n.Body) {
			if t := strings.TrimSpace(line); t != "" {
				fmt.Fprintf(&b, "  : %s\n", t)
			}
		}
	}
	return b.String()
}

var tick = pattern.New(`(?m)^\s*- \[[xX]\] .*=([0-9a-f]{16})=\s*$`)

// Ticked are the keys of a report's ticked items.
func Ticked(report string) map[string]bool {
	out := map[string]bool{}
	for _, m := range tick.FindAllStringSubmatch(report, -1) {
		out[m[1]] = true
	}
	return out
}
