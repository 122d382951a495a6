package fovea

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"passepartout/internal/llm"
	"passepartout/internal/memory"
)

// Form is how much of a node is shown.
type Form string

// The forms.
const (
	Full    Form = "full"    // heading, properties and text
	Cut     Form = "cut"     // as Full, the text shortened
	Line    Form = "line"    // one line with title and id
	Dropped Form = "dropped" // not shown
)

// Entry says what became of a node, and why.
type Entry struct {
	ID      memory.ID `json:"id"`
	Title   string    `json:"title"`
	File    string    `json:"file"`
	Line    int       `json:"line"`
	Section string    `json:"section"`
	Form    Form      `json:"form"`
	Reason  string    `json:"reason"`
	Score   float64   `json:"score,omitempty"`
	Tokens  int       `json:"tokens"`
}

// Context is what a model is shown of the memex.
type Context struct {
	Text    string  `json:"text"`
	Tokens  int     `json:"tokens"` // of Text; never more than Budget
	Budget  int     `json:"budget"`
	Entries []Entry `json:"entries"`
	// Unseen is how many headings were not even weighed.
	Unseen  int  `json:"unseen"`
	Private bool `json:"private"` // a privacy-tagged node is in it
	// Untrusted is set when text that is not the person's own is in it.
	Untrusted bool `json:"untrusted"`
}

// The sections in the order they are printed: what changes least comes first, so
// that a provider's cache keeps the longest beginning.
const (
	secOutline = iota
	secPinned
	secDue
	secLinked
	secChanged
	secRelated
	secFocus
	sections
)

var sectionNames = [sections]string{"Outline", "Pinned", "Due", "Linked", "Changed", "Related", "Focus"}

const header = "#+TITLE: GLOBAL MEMEX AWARENESS\n"

// A page collects nodes until the budget is used. It is the one place where a
// node becomes text.
type page struct {
	v      *memory.View
	f      Focus
	used   int
	parts  [sections][]part
	opened [sections]bool
	shown  map[memory.ID]bool
	c      Context
}

// A part is a piece of text and the place of its node in the memex.
type part struct {
	file string
	line int
	text string
}

func newPage(v *memory.View, f Focus) *page {
	p := &page{v: v, f: f, shown: map[memory.ID]bool{}, c: Context{Budget: f.Budget, Entries: []Entry{}}}
	p.used = llm.Tokens(header)
	return p
}

// A want is a node asking for room.
type want struct {
	o       memory.Object
	section int
	form    Form // at most
	reason  string
	score   float64
	most    int // tokens it may take; 0 for all that are left
	below   int // levels below the node it is shown under
}

// barred says why a node may not be shown at all, "" if it may.
func (p *page) barred(o memory.Object) string {
	switch {
	case p.f.Cloud && p.v.PrivateObject(o):
		return "privacy tag: not for a model elsewhere"
	case p.f.Trusted && o.Origin() != "":
		return "untrusted origin: read it with a tool"
	}
	return ""
}

// add shows a node in the largest form there is room for: whole, cut, a line. It
// reports whether it is shown.
func (p *page) add(w want) bool {
	if p.shown[w.o.ID] {
		return true
	}
	if why := p.barred(w.o); why != "" {
		e := entry(w)
		e.Title = "" // the reason is no secret, the title may be
		p.drop(e, why)
		return false
	}
	room := p.f.Budget - p.used
	if !p.opened[w.section] {
		room -= llm.Tokens(sectionHead(w.section))
	}
	if w.most > 0 {
		room = min(room, w.most)
	}
	for _, form := range []Form{Full, Cut, Line} {
		if w.form == Line && form != Line {
			continue
		}
		text := p.text(w, form, room)
		if n := llm.Tokens(text); text != "" && n <= room {
			p.put(w, form, text, n)
			return true
		}
	}
	p.drop(entry(w), "no room: "+w.reason)
	return false
}

func (p *page) put(w want, form Form, text string, n int) {
	if !p.opened[w.section] {
		p.opened[w.section] = true
		p.used += llm.Tokens(sectionHead(w.section))
	}
	p.used += n
	p.shown[w.o.ID] = true
	p.parts[w.section] = append(p.parts[w.section], part{w.o.File, w.o.Line, text})
	e := entry(w)
	e.Form, e.Tokens = form, n
	p.c.Entries = append(p.c.Entries, e)
	p.c.Private = p.c.Private || p.v.PrivateObject(w.o)
	p.c.Untrusted = p.c.Untrusted || w.o.Origin() != ""
}

func (p *page) drop(e Entry, why string) {
	e.Form, e.Reason = Dropped, why
	p.c.Entries = append(p.c.Entries, e)
}

func entry(w want) Entry {
	return Entry{
		ID: w.o.ID, Title: w.o.Title, File: w.o.File, Line: w.o.Line, Section: sectionNames[w.section], Reason: w.reason, Score: w.score,
	}
}

// full reports whether not even a short line fits any more.
func (p *page) full() bool {
	const shortLine = 24
	return p.f.Budget-p.used < shortLine
}

// text is a node in a form, "" where the form does not apply.
func (p *page) text(w want, form Form, room int) string {
	o := w.o
	if form == Line {
		where := o.File
		if out := o.Outline(); len(out) > 0 && w.section != secOutline {
			where += ": " + out[len(out)-1]
		}
		return fmt.Sprintf("- %s [[id:%s]] (%s)\n", headline(o), o.ID, where)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "**%s %s\n:PROPERTIES:\n:ID: %s\n:FILE: %s:%d\n", strings.Repeat("*", w.below), headline(o), o.ID, o.File, o.Line)
	if w.score > 0 {
		fmt.Fprintf(&b, ":SEMANTIC_SCORE: %.2f\n", w.score)
	}
	b.WriteString(":END:\n")
	body := strings.TrimSpace(o.Body())
	if form == Full {
		if body != "" {
			b.WriteString(body + "\n")
		}
		return b.String()
	}
	left := room - llm.Tokens(b.String()) - llm.Tokens("…\n")
	kept := trim(body, left)
	if kept == "" {
		return ""
	}
	return b.String() + kept + "…\n"
}

// trim returns the longest beginning of whole lines, or of words of the first
// line, within so many tokens.
func trim(s string, tokens int) string {
	end := 0
	for _, unit := range []string{"\n", " "} {
		for left := tokens; end < len(s); {
			next := strings.Index(s[end:], unit)
			if next < 0 {
				break
			}
			if left -= llm.Tokens(s[end : end+next+1]); left < 0 {
				break
			}
			end += next + 1
		}
		if end > 0 {
			break
		}
	}
	return s[:end]
}

// headline is a node's heading without stars.
func headline(o memory.Object) string {
	var b strings.Builder
	if o.Todo != "" {
		b.WriteString(o.Todo + " ")
	}
	b.WriteString(o.Title)
	if len(o.Tags) > 0 {
		b.WriteString(" :" + strings.Join(o.Tags, ":") + ":")
	}
	if o.Deadline.Raw != "" {
		b.WriteString(" DEADLINE: " + o.Deadline.Raw)
	}
	if o.Scheduled.Raw != "" {
		b.WriteString(" SCHEDULED: " + o.Scheduled.Raw)
	}
	return b.String()
}

func sectionHead(s int) string { return "* " + sectionNames[s] + "\n" }

// finish prints the sections, nodes in the order of the memex.
func (p *page) finish() Context {
	var b strings.Builder
	b.WriteString(header)
	for s, parts := range p.parts {
		if len(parts) == 0 {
			continue
		}
		b.WriteString(sectionHead(s))
		slices.SortStableFunc(parts, func(a, b part) int {
			if c := cmp.Compare(a.file, b.file); c != 0 {
				return c
			}
			return cmp.Compare(a.line, b.line)
		})
		for _, t := range parts {
			b.WriteString(t.text)
		}
	}
	p.c.Text, p.c.Tokens = b.String(), p.used
	p.c.Unseen = max(p.v.Len()-len(p.c.Entries), 0)
	return p.c
}
