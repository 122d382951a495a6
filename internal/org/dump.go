package org

import (
	"strings"
	"unicode/utf8"
)

// Dump is a file as Emacs's org-element reads it, in the form that is compared
// with Emacs: see docs/org.md. Pointers are nil where Emacs says nil.
type Dump struct {
	File           string         `json:"file"`
	OK             bool           `json:"ok"`
	Error          string         `json:"error,omitempty"`
	TodoKeywords   []string       `json:"todo_keywords"`
	DoneKeywords   []string       `json:"done_keywords"`
	FileTags       []string       `json:"filetags"`
	FileID         *string        `json:"file_id"`
	FileProperties [][2]string    `json:"file_properties"`
	Headlines      []DumpHeadline `json:"headlines"`
	Links          []DumpItem     `json:"links"`
	SrcBlocks      []DumpItem     `json:"src_blocks"`
	Timestamps     []DumpItem     `json:"timestamps"`
	Drawers        []DumpItem     `json:"drawers"`
	Clocks         []DumpItem     `json:"clocks"`
}

// DumpHeadline is one headline of a Dump.
type DumpHeadline struct {
	Line       int         `json:"line"`
	EndLine    int         `json:"end_line"`
	Level      int         `json:"level"`
	Todo       *string     `json:"todo"`
	TodoType   *string     `json:"todo_type"`
	Priority   *string     `json:"priority"`
	Tags       []string    `json:"tags"`
	AllTags    []string    `json:"all_tags"`
	Title      string      `json:"title"`
	Commented  bool        `json:"commented"`
	Archived   bool        `json:"archived"`
	Scheduled  *string     `json:"scheduled"`
	Deadline   *string     `json:"deadline"`
	Closed     *string     `json:"closed"`
	Properties [][2]string `json:"properties"`
	ID         *string     `json:"id"`
}

// DumpItem is a line number and the few named values of one list entry.
type DumpItem map[string]any

// Dump reads everything; name is the file name to report.
func (f *File) Dump(name string) Dump {
	lines := f.Lines()
	d := Dump{
		File: name, OK: true,
		TodoKeywords: clean(f.set.todo), DoneKeywords: clean(f.set.done), FileTags: clean(f.set.fileTags),
		FileID: nullable(f.ID()), FileProperties: pairs(f.Properties()),
		Headlines: make([]DumpHeadline, 0, f.Len()),
		Links:     []DumpItem{}, SrcBlocks: []DumpItem{}, Timestamps: []DumpItem{}, Drawers: []DumpItem{}, Clocks: []DumpItem{},
	}
	for h := range f.Headlines() {
		d.Headlines = append(d.Headlines, dumpHeadline(h, lines))
	}
	c := f.Contents()
	for _, l := range c.Links {
		typ, path := l.Type, l.Path
		if typ == "attachment" { // stock Emacs has not loaded org-attach
			typ, path = "fuzzy", typ+":"+path
		}
		d.Links = append(d.Links, DumpItem{"line": lines.At(l.Span.Start), "type": valid(typ), "path": valid(path)})
	}
	for _, b := range c.Blocks {
		if b.Name == "SRC" {
			item := DumpItem{"line": lines.At(b.Span.Start), "language": nullable(b.Language), "tangle": nil}
			if t, ok := headerArg(b.Params, "tangle"); ok {
				item["tangle"] = valid(t)
			}
			d.SrcBlocks = append(d.SrcBlocks, item)
		}
	}
	for _, s := range c.Timestamps {
		d.Timestamps = append(d.Timestamps, DumpItem{"line": lines.At(s.Span.Start), "raw": valid(s.Raw), "repeater": nullable(rawRepeater(s.Raw))})
	}
	for _, r := range c.Drawers {
		d.Drawers = append(d.Drawers, DumpItem{"line": lines.At(r.Span.Start), "name": valid(r.Name)})
	}
	for _, k := range c.Clocks {
		if k.Raw == "" { // Emacs overlooks a duration that stands alone
			k.Duration = ""
		}
		d.Clocks = append(d.Clocks, DumpItem{"line": lines.At(k.Span.Start), "raw": nullable(k.Raw), "duration": nullable(k.Duration)})
	}
	return d
}

func dumpHeadline(h Headline, lines Lines) DumpHeadline {
	props := h.Properties()
	d := DumpHeadline{
		Line: lines.At(h.Span().Start), EndLine: lines.At(max(h.Span().Start, h.Span().End-1)),
		Level: h.Level(), Todo: nullable(h.Todo()), Priority: nullable(h.Priority()),
		Tags: clean(h.Tags()), AllTags: clean(h.AllTags()), Title: valid(h.Title()),
		Commented: h.Commented(), Archived: h.Archived(),
		Scheduled: nullable(h.plannedRaw("SCHEDULED:")), Deadline: nullable(h.plannedRaw("DEADLINE:")), Closed: nullable(h.plannedRaw("CLOSED:")),
		Properties: pairs(props),
	}
	for _, p := range props {
		if strings.EqualFold(p.Key, "ID") {
			v := valid(p.Value)
			d.ID = &v
			break
		}
	}
	if d.Todo != nil {
		kind := "todo"
		if h.Done() {
			kind = "done"
		}
		d.TodoType = &kind
	}
	return d
}

// rawRepeater is the first repeater anywhere in the text of a timestamp.
func rawRepeater(raw string) string {
	for i := range len(raw) {
		if raw[i] != '+' && raw[i] != '.' {
			continue
		}
		if iv, habit, ok := parseInterval(raw[i:]); ok {
			return iv.String() + habit.String()
		}
	}
	return ""
}

// valid replaces each undecodable byte by U+FFFD, one for one.
func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var sb strings.Builder
	for _, r := range s {
		sb.WriteRune(r)
	}
	return sb.String()
}

func nullable(s string) *string {
	if s == "" {
		return nil
	}
	s = valid(s)
	return &s
}

func clean(ss []string) []string {
	out := make([]string, len(ss))
	for i, s := range ss {
		out[i] = valid(s)
	}
	return out
}

func pairs(props []Property) [][2]string {
	out := make([][2]string, len(props))
	for i, p := range props {
		out[i] = [2]string{valid(p.Key), valid(p.Value)}
	}
	return out
}
