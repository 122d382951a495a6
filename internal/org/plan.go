package org

import "strings"

const (
	scheduledWord = "SCHEDULED:"
	deadlineWord  = "DEADLINE:"
	closedWord    = "CLOSED:"
)

// Schedule sets the SCHEDULED timestamp, or removes it when raw is "". As in
// Emacs, planning a closed task anew drops CLOSED, and the old repeater and warning are
// kept unless the new timestamp brings its own.
func (h Headline) Schedule(raw string) ([]Patch, error) { return h.plan(scheduledWord, raw) }

// SetDeadline is Schedule for DEADLINE.
func (h Headline) SetDeadline(raw string) ([]Patch, error) { return h.plan(deadlineWord, raw) }

func (h Headline) plan(word, raw string) ([]Patch, error) {
	if raw == "" {
		return h.edit(func(s *section) error { s.unplan(word); return nil })
	}
	t, err := ParseTimestamp(raw)
	if err != nil || !t.Active || t.Diary {
		return nil, refuse("%s wants an active timestamp, not %q", strings.TrimSuffix(word, ":"), raw)
	}
	if old := h.planned(word); t.Repeat.Mark == "" && t.Warn.Mark == "" && !strings.Contains(raw, ">--<") {
		old.Range = false // keep the intervals, not the old end
		raw = raw[:len(raw)-1] + old.tail() + ">"
	}
	return h.edit(func(s *section) error { s.plan(word, raw, closedWord); return nil })
}

// plan puts "word stamp" first on the planning line, taking away what stood for
// word and for the words in drop. With an empty stamp it only takes away.
func (s *section) plan(word, stamp string, drop ...string) {
	hd := s.h().head()
	if hd.planEnd == 0 {
		if stamp != "" {
			s.insertLines(int(hd.lineNext), word+" "+stamp)
		}
		return
	}
	line := Span{int(hd.lineNext), int(hd.planEnd)}
	indent := s.indentAt(line.Start)
	rest := s.Text(line)[len(indent):]
	for _, w := range append([]string{word}, drop...) {
		rest = dropEntry(rest, w)
	}
	switch {
	case stamp == "" && strings.TrimSpace(rest) == "":
		s.put(Span{line.Start, s.metaEnd()}, "")
		s.fixLastLine()
	case stamp == "":
		s.put(line, indent+strings.TrimRight(rest, " \t"))
	case rest == "":
		s.put(line, indent+word+" "+stamp)
	default:
		s.put(line, indent+word+" "+stamp+" "+strings.TrimRight(rest, " \t"))
	}
}

// fixLastLine keeps a section that had no final line end without one when its
// last line was taken away.
func (s *section) fixLastLine() {
	if old := s.whole.f.src[:s.whole.SectionSpan().End]; old[len(old)-1] != '\n' && len(s.src) > 0 && s.src[len(s.src)-1] == '\n' {
		s.put(Span{len(s.src) - len(s.EOL()), len(s.src)}, "")
	}
}

// unplan takes one entry off the planning line.
func (s *section) unplan(word string) { s.plan(word, "") }

// dropEntry cuts "WORD: <stamp>" up to the next entry or the end of the line.
func dropEntry(line, word string) string {
	at := strings.Index(line, word)
	if at < 0 {
		return line
	}
	v := at + len(word)
	for v < len(line) && line[v] == ' ' {
		v++
	}
	n := stampLen([]byte(line[v:]))
	if v == at+len(word) || n == 0 {
		return line
	}
	end := len(line)
	for _, w := range []string{scheduledWord, deadlineWord, closedWord} {
		if j := strings.Index(line[v+n:], w); j >= 0 {
			end = min(end, v+n+j)
		}
	}
	return line[:at] + line[end:]
}
