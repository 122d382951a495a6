package org

import (
	"bytes"
	"strings"
)

// Keyword is a #+KEY: value line. Key is upper case.
type Keyword struct {
	Key, Value string
	Span       Span // the line; empty if it came from a setup file
}

// settings is what the file's keyword lines say about the whole file.
type settings struct {
	todo, done []string
	states     map[string]bool   // keyword → done
	logging    map[string]string // keyword → what follows "(": "d!", "w@/!" …
	fileTags   []string
	links      map[string]string // #+LINK abbreviations
	title      string
	category   string
	archive    string
	startup    []string
	priorities [3]byte // highest, lowest, default
	odd        bool    // STARTUP odd: two stars a level
	props      []Property
	keywords   []Keyword
	sequences  [][]string
	typed      map[string]bool // keywords of a TYP_TODO line
}

// fewKeywords is up to where looking at each keyword beats a map.
const fewKeywords = 8

// keyword reports whether word is a TODO keyword, and whether it means done.
func (s *settings) keyword(word []byte) (done, ok bool) {
	if len(s.todo) > fewKeywords {
		done, ok = s.states[string(word)]
		return done, ok
	}
	for _, k := range s.done {
		if string(word) == k {
			return true, true
		}
	}
	for _, k := range s.todo {
		if string(word) == k {
			return false, true
		}
	}
	return false, false
}

// settingName reports whether a keyword, in any case, speaks for the whole file.
func settingName(name []byte) bool {
	return anyFold(name, "TODO", "SEQ_TODO", "TYP_TODO", "FILETAGS", "LINK", "SETUPFILE", "STARTUP",
		"PROPERTY", "CATEGORY", "PRIORITIES", "ARCHIVE", "TITLE")
}

const maxSettingName = len("PRIORITIES")

// settingAt reports whether the #+ at p starts a setting line of the whole file.
func settingAt(b []byte, p, bom int) bool {
	q := p
	for q > bom && blank(b[q-1]) {
		q--
	}
	if q > bom && b[q-1] != '\n' {
		return false
	}
	k := p + 2
	for k < len(b) && k-p <= maxSettingName+2 && (b[k] == '_' || asciiAlnum(b[k])) {
		k++
	}
	return k < len(b) && b[k] == ':' && settingName(b[p+2:k])
}

// nextSetting is the first offset at or after i that may be a setting, or -1.
func nextSetting(b []byte, i, limit, bom int) int {
	for i < limit {
		j := bytes.Index(b[i:limit], []byte("#+"))
		if j < 0 {
			return -1
		}
		if settingAt(b, i+j, bom) {
			return i + j
		}
		i += j + 2
	}
	return -1
}

// settingLines returns the settings that are real keyword lines, not text inside
// a block. Only sections with a candidate are walked.
func settingLines(f *File) []Keyword {
	c := &keywordSink{f: f}
	w := walker{f: f, out: c, plain: true}
	for p := nextSetting(f.src, f.bom, len(f.src), f.bom); p >= 0; {
		i := f.headAfter(p)
		beg, limit := f.bom, f.headStart(i)
		if i > 0 {
			beg = f.heads[i-1].beg + int(f.heads[i-1].lineNext)
		}
		w.walkSection(min(beg, limit), limit)
		p = nextSetting(f.src, limit, len(f.src), f.bom)
	}
	return c.found
}

type keywordSink struct {
	f     *File
	found []Keyword
}

func (c *keywordSink) open(n *node) {
	if n.kind != kindKeyword {
		return
	}
	if !settingAt(c.f.src, skipBlank(c.f.src, n.inner.Start, n.inner.End), c.f.bom) {
		return
	}
	if k, ok := c.f.keywordAt(n); ok && settingName([]byte(k.Key)) { // not #+TODO:x:
		c.found = append(c.found, k)
	}
}

func (c *keywordSink) shut(*node) {}

// keywordAt splits a keyword line at the last colon of its first word.
func (f *File) keywordAt(n *node) (Keyword, bool) {
	b, e := f.src, n.inner.End
	q := skipBlank(b, n.inner.Start, e)
	c := bytes.LastIndexByte(b[q+2:nonBlankRun(b, q+2, e)], ':')
	if c <= 0 {
		if c = bytes.IndexByte(b[q+2:e], ':'); c <= 0 {
			return Keyword{}, false
		}
	}
	c += q + 2
	return Keyword{asciiUpper(b[q+2 : c]), strings.TrimSpace(string(b[c+1 : e])), n.span}, true
}

// What a file that names no keywords has. Never written to.
var (
	defaultTodo      = []string{"TODO", "DONE"}
	defaultSequences = [][]string{defaultTodo}
)

// maxSetupDepth bounds how many setup files one file may pull in.
const maxSetupDepth = 32

func readSettings(f *File) *settings {
	s := &settings{priorities: [3]byte{'A', 'C', 'B'}}
	var todo, seq, typ []string
	var seen map[string]bool
	var walk func(g *File)
	walk = func(g *File) {
		for _, k := range settingLines(g) {
			if g != f {
				k.Span = Span{}
			}
			s.keywords = append(s.keywords, k)
			switch k.Key {
			case "TODO":
				todo = append(todo, k.Value)
			case "SEQ_TODO":
				seq = append(seq, k.Value)
			case "TYP_TODO":
				typ = append(typ, k.Value)
			case "SETUPFILE":
				if g := f.setupFile(k.Value, &seen); g != nil {
					walk(g)
				}
			default:
				s.add(k)
			}
		}
	}
	walk(f)
	for _, v := range typ {
		s.addSequence(v)
		for _, k := range s.sequences[len(s.sequences)-1] {
			put(&s.typed, k, true)
		}
	}
	for _, v := range append(todo, seq...) {
		s.addSequence(v)
	}
	if len(typ)+len(todo)+len(seq) == 0 {
		s.todo, s.done, s.sequences = defaultTodo, defaultTodo[1:], defaultSequences
	}
	if len(s.done) == 0 && len(s.todo) > 0 {
		s.done = s.todo[len(s.todo)-1:]
	}
	if len(s.todo) > fewKeywords {
		for _, k := range s.todo {
			put(&s.states, k, false)
		}
		for _, k := range s.done {
			put(&s.states, k, true)
		}
	}
	return s
}

// put sets a key of a map that is made when it is first needed: most files set
// nothing, and an outline should cost them nothing.
func put[V any](m *map[string]V, key string, v V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[key] = v
}

// setupFile outlines the file a #+SETUPFILE names, once each, never over the network.
func (f *File) setupFile(value string, seen *map[string]bool) *File {
	name := strings.Trim(value, `"`)
	if f.opt.Setup == nil || name == "" || strings.Contains(name, "://") || (*seen)[name] || len(*seen) >= maxSetupDepth {
		return nil
	}
	put(seen, name, true)
	src, ok := f.opt.Setup(name)
	if !ok || len(src) > maxSource {
		return nil
	}
	g := &File{src: src, bom: markLen(src)}
	g.crlf, g.firstLF = lineEnds(src)
	g.heads = findHeads(g, nil, g.bom, len(src))
	return g
}

// add takes in one setting other than the TODO family.
func (s *settings) add(k Keyword) {
	switch k.Key {
	case "FILETAGS":
		for w := range strings.FieldsSeq(k.Value) {
			s.fileTags = append(s.fileTags, splitTags(w)...)
		}
	case "LINK":
		if name, url, ok := strings.Cut(strings.ReplaceAll(k.Value, "\t", " "), " "); ok {
			put(&s.links, name, strings.TrimSpace(url))
		}
	case "STARTUP":
		for w := range strings.FieldsSeq(strings.ToLower(k.Value)) {
			s.startup = append(s.startup, w)
			if w == "odd" || w == "oddeven" {
				s.odd = w == "odd"
			}
		}
	case "TITLE":
		s.title = strings.TrimSpace(s.title + " " + k.Value)
	case "CATEGORY":
		s.category = k.Value
	case "ARCHIVE":
		s.archive = k.Value
	case "PRIORITIES":
		for i, w := range strings.Fields(k.Value) {
			if i < len(s.priorities) {
				s.priorities[i] = w[0]
			}
		}
	case "PROPERTY":
		if key, v, _ := strings.Cut(k.Value, " "); key != "" {
			s.props = append(s.props, Property{key, strings.TrimSpace(v)})
		}
	}
}

// addSequence takes in one list of keywords, "TODO(t) NEXT | DONE(d!)".
func (s *settings) addSequence(v string) {
	var names, done []string
	bar := false
	for word := range strings.FieldsSeq(v) {
		if word == "|" {
			if bar { // Emacs keeps a second bar as a done keyword
				done = append(done, "|")
			}
			bar = true
			continue
		}
		if i := strings.IndexByte(word, '('); i >= 0 && strings.HasSuffix(word, ")") {
			put(&s.logging, word[:i], word[i+1:len(word)-1])
			word = word[:i]
		}
		names = append(names, word)
		if bar {
			done = append(done, word)
		}
	}
	if !bar && len(names) > 0 {
		done = names[len(names)-1:]
	}
	s.todo = append(s.todo, names...)
	s.done = append(s.done, done...)
	s.sequences = append(s.sequences, names)
}

// splitTags splits like org-split-string: outer separators go, an inner "::"
// leaves an empty tag.
func splitTags(s string) []string {
	if !strings.Contains(s, ":") {
		return []string{s}
	}
	s = strings.TrimPrefix(s, ":")
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, ":"), ":")
}
