package org

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Change says when a TODO change happens and how it is recorded beyond what the
// file asks for (#+STARTUP: logdone, keywords like DONE(d!), the LOGGING and
// LOG_INTO_DRAWER properties).
type Change struct {
	// At is the moment of the change, as wall-clock time.
	At time.Time
	// LogDone adds a CLOSED timestamp when the task becomes done, as if the
	// file said "#+STARTUP: logdone".
	LogDone bool
	// Note is text for the log entry of a keyword that asks for a note.
	Note string
}

// SetTodo sets the TODO keyword, or clears it with "", and does what Emacs does
// with it under default settings: CLOSED and log entries where the file asks for
// them, a repeating task moves on instead of ending, the parent's [1/2] is counted anew.
func (h Headline) SetTodo(keyword string, c Change) ([]Patch, error) {
	set := h.f.set
	if keyword != "" && !slices.Contains(set.todo, keyword) {
		return nil, refuse("keyword %q is not one of %q", keyword, set.todo)
	}
	log := h.logging(c.LogDone)
	old, state := h.Todo(), keyword
	patches, err := h.edit(func(s *section) error {
		s.setKeyword(state)
		nowDone := slices.Contains(set.done, state) && !slices.Contains(set.done, old)
		rec := s.record(log, old, state, nowDone, c)
		if nowDone && s.repeats() {
			state = s.repeat(old, log, &rec, c)
		}
		if rec.how != noLog {
			s.addLog(log, rec, c)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return append(patches, h.countParent(state, false)...), nil
}

// setKeyword writes the keyword on the headline line.
func (s *section) setKeyword(keyword string) {
	hd := s.h().head()
	at := Span{int(hd.todoBeg), int(hd.todoEnd)}
	switch {
	case keyword == "":
		at.End = skipBlank(s.src, at.End, int(hd.lineEnd))
	case at.Empty():
		keyword += " "
	}
	s.put(at, keyword)
}

// logHow says whether a change leaves a log entry.
type logHow uint8

const (
	noLog logHow = iota
	logTime
	logNote
)

// logging is what the file and the headline's properties say about log entries.
type logging struct {
	done     logHow            // org-log-done
	repeat   logHow            // org-log-repeat
	states   map[string]string // keyword → "x!/@"
	drawer   string            // "" writes entries into the body
	oldFirst bool
}

func (h Headline) logging(logDone bool) logging {
	l := logging{repeat: logTime, states: h.f.set.logging}
	if logDone {
		l.done = logTime
	}
	for _, w := range h.f.set.startup {
		l.word(w)
	}
	if v, ok := h.Inherited("LOGGING"); ok {
		l.done, l.repeat, l.states = noLog, noLog, map[string]string{}
		for w := range strings.FieldsSeq(v) {
			if name, spec, ok := strings.Cut(w, "("); ok {
				l.states[name] = strings.TrimSuffix(spec, ")")
			} else {
				l.word(strings.ToLower(w))
			}
		}
	}
	if v, ok := h.Inherited("LOG_INTO_DRAWER"); ok {
		switch v {
		case "nil":
			l.drawer = ""
		case "t":
			l.drawer = "LOGBOOK"
		default:
			l.drawer = v
		}
	}
	return l
}

// word takes in one #+STARTUP word.
func (l *logging) word(w string) {
	switch w {
	case "logdone":
		l.done = logTime
	case "lognotedone":
		l.done = logNote
	case "nologdone":
		l.done = noLog
	case "logrepeat":
		l.repeat = logTime
	case "lognoterepeat":
		l.repeat = logNote
	case "nologrepeat":
		l.repeat = noLog
	case "logdrawer":
		l.drawer = "LOGBOOK"
	case "nologdrawer":
		l.drawer = ""
	case "logstatesreversed":
		l.oldFirst = false
	case "nologstatesreversed":
		l.oldFirst = true
	}
}

// how is the record a keyword asks for when it is entered, or left.
func (l *logging) how(keyword string, leaving bool) logHow {
	enter, leave, _ := strings.Cut(l.states[keyword], "/")
	if leaving {
		enter = leave
	}
	switch {
	case strings.Contains(enter, "@"):
		return logNote
	case strings.Contains(enter, "!"):
		return logTime
	}
	return noLog
}

func (l *logging) any() bool {
	for k := range l.states {
		if l.how(k, false) != noLog || l.how(k, true) != noLog {
			return true
		}
	}
	return l.done != noLog
}

// entry is a log entry about to be written.
type entry struct {
	how      logHow
	closing  bool // "CLOSING NOTE" instead of a change of state
	repeated bool // Emacs then writes "" for no state, not nothing
	from, to string
}

// record puts CLOSED right and says which log entry the change needs.
func (s *section) record(l logging, old, state string, nowDone bool, c Change) entry {
	if !l.any() {
		return entry{}
	}
	set := s.set
	openNow := state == "" || !slices.Contains(set.done, state)
	openBefore := old != "" && !slices.Contains(set.done, old)
	if state == "" || openNow && !openBefore {
		s.unplan(closedWord)
	}
	how := l.how(state, false)
	if how == noLog {
		how = l.how(old, true)
	}
	if nowDone && l.done != noLog {
		s.plan(closedWord, FormatTimestamp(c.At, false, true))
		if how == noLog && l.done == logNote {
			return entry{how: logNote, closing: true, from: old, to: state}
		}
	}
	if state == "" {
		return entry{}
	}
	return entry{how: how, from: old, to: state}
}

// text is the first line of the log entry.
func (e entry) text(at time.Time) string {
	stamp := FormatTimestamp(at, false, true)
	if e.closing {
		return "- CLOSING NOTE " + stamp
	}
	quote := func(state string) string {
		if state == "" && !e.repeated {
			return ""
		}
		return `"` + state + `"`
	}
	return fmt.Sprintf("- State %-12s from %-12s %s", quote(e.to), quote(e.from), stamp)
}

// addLog writes the entry: into the log drawer, or above the body, newest first.
func (s *section) addLog(l logging, e entry, c Change) {
	lines := []string{e.text(c.At)}
	if note := strings.TrimSpace(c.Note); e.how == logNote && note != "" {
		lines[0] += ` \\`
		for line := range strings.SplitSeq(note, "\n") {
			if line = strings.TrimRight(line, " \t\r"); line != "" {
				line = "  " + line
			}
			lines = append(lines, line)
		}
	}
	at, indent := s.logPlace(l)
	for i := range lines {
		if lines[i] != "" {
			lines[i] = indent + lines[i]
		}
	}
	s.insertLines(at, lines...)
}

// logPlace finds where an entry goes, making the drawer if one is wanted.
func (s *section) logPlace(l logging) (at int, indent string) {
	body := s.h().BodySpan()
	if l.drawer == "" {
		at = s.skipLines(body.Start, body.End, func(q, e int) bool { return q == e })
		if l.oldFirst {
			at = s.afterNotes(at)
		}
		return at, s.noteIndent(at)
	}
	for _, d := range s.h().Contents().Drawers {
		if strings.EqualFold(d.Name, l.drawer) {
			if l.oldFirst {
				return d.Inner.End, s.indentAt(d.Span.Start)
			}
			return d.Inner.Start, s.indentAt(d.Span.Start)
		}
	}
	indent = s.metaIndent()
	s.insertLines(body.Start, indent+":"+l.drawer+":", indent+":END:")
	_, at = s.eol(s.h().BodySpan().Start)
	return at, indent
}

// metaIndent is the indentation of the planning line or drawer, "" without them.
func (s *section) metaIndent() string {
	hd := s.h().head()
	switch {
	case hd.drawerBeg != 0:
		return s.indentAt(int(hd.drawerBeg))
	case hd.planEnd != 0:
		return s.indentAt(int(hd.lineNext))
	}
	return ""
}

// noteIndent is the indentation for an entry at a body line: that of the list it joins.
func (s *section) noteIndent(at int) string {
	if e, _ := s.eol(at); bulletEnd(s.src, at, e) >= 0 {
		return s.indentAt(at)
	}
	return s.metaIndent()
}

// afterNotes skips the state notes that stand at p.
func (s *section) afterNotes(p int) int {
	for p < len(s.src) {
		e, n := s.eol(p)
		line := bytes.TrimLeft(s.src[p:e], " \t")
		note := bytes.HasPrefix(line, []byte("- State \"")) || bytes.HasPrefix(line, []byte("- CLOSING NOTE ["))
		if more := len(line) > 0 && line[0] != '-' && blank(s.src[p]); !note && !more {
			break
		}
		p = n
	}
	return p
}

// repeats reports whether the entry holds a timestamp with a repeater that moves.
func (s *section) repeats() bool {
	for t := range s.repeaters() {
		return t.Repeat.N != 0
	}
	return false
}

// repeaters yields the active timestamps with repeater of the section, with the
// place of each; the section may be changed behind the one yielded.
func (s *section) repeaters() func(yield func(Timestamp, Span) bool) {
	return func(yield func(Timestamp, Span) bool) {
		for p := 0; p < len(s.src); p++ {
			j := bytes.IndexByte(s.src[p:], '<')
			if j < 0 {
				return
			}
			p += j
			e, _ := s.eol(p)
			c := bytes.IndexByte(s.src[p:e], '>')
			if c < 0 {
				continue
			}
			t, err := ParseTimestamp(string(s.src[p : p+c+1]))
			if err == nil && t.Repeat.Mark != "" && !yield(t, Span{p, p + c + 1}) {
				return
			}
		}
	}
}

// repeat starts the task again: back to its first keyword, timestamps moved on.
// It returns the keyword the headline ends up with.
func (s *section) repeat(old string, l logging, rec *entry, c Change) string {
	done := s.h().Todo()
	state := s.repeatTo(old)
	s.setKeyword(state)
	s.unplan(closedWord)
	if l.repeat != noLog || len(s.h().Contents().Clocks) > 0 {
		s.setProperty("LAST_REPEAT", FormatTimestamp(c.At, false, true))
	}
	if l.repeat != noLog {
		if rec.how == noLog {
			*rec = entry{how: l.repeat, from: old, to: done, repeated: true}
		} else if l.repeat == logNote {
			rec.how = logNote
		}
	}
	if t := s.h().Scheduled(); !t.IsZero() && t.Repeat.Mark == "" {
		s.unplan(scheduledWord)
	}
	for t, at := range s.repeaters() {
		s.put(at, t.next(c.At))
	}
	return state
}

// repeatTo is the keyword a repeating task returns to.
func (s *section) repeatTo(old string) string {
	if v, ok := s.whole.Inherited("REPEAT_TO_STATE"); ok && slices.Contains(s.set.todo, v) {
		return v
	}
	for _, seq := range s.set.sequences {
		if slices.Contains(seq, old) {
			if s.set.typed[old] {
				return old
			}
			return seq[0]
		}
	}
	return ""
}

// next is the timestamp's text after one repetition at the given time. "+" moves
// by one step, "++" by as many as it takes to lie in the future, ".+" counts from today.
func (t Timestamp) next(now time.Time) string {
	day := func(t time.Time) time.Time { return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC) }
	wall := time.Date(now.Year(), now.Month(), now.Day(), now.Hour(), now.Minute(), now.Second(), 0, time.UTC)
	start := t.Start
	switch t.Repeat.Mark {
	case ".+":
		if t.Repeat.Unit == 'h' {
			start = wall
		} else {
			start = start.AddDate(0, 0, int(day(wall).Sub(day(start)).Hours()/24))
		}
		start = t.Repeat.after(start)
	case "++":
		start = t.catchUp(start, wall)
	default:
		start = t.Repeat.after(start)
	}
	text := start.Format("2006-01-02 Mon")
	if t.HasTime {
		text += start.Format(" 15:04")
	}
	return "<" + text + t.tail() + ">"
}

// catchUp moves start by whole steps until it lies after now.
func (t Timestamp) catchUp(start, now time.Time) time.Time {
	if t.Repeat.N <= 0 {
		return start
	}
	for start = t.Repeat.after(start); !start.After(now); start = t.Repeat.after(start) {
		if gap := now.Sub(start); gap > 1000*24*time.Hour && (t.Repeat.Unit == 'd' || t.Repeat.Unit == 'w' || t.Repeat.Unit == 'h') {
			// Far in the past: take most of the way in one stride of whole steps.
			step := t.Repeat.after(start).Sub(start)
			start = start.Add(gap / step * step)
		}
	}
	return start
}

// after moves a time by the interval; a month too short runs over into the next, as in Emacs.
func (i Interval) after(t time.Time) time.Time {
	switch i.Unit {
	case 'h': // by days first: a Duration ends after 292 years
		return t.AddDate(0, 0, i.N/24).Add(time.Duration(i.N%24) * time.Hour)
	case 'w':
		return t.AddDate(0, 0, 7*i.N)
	case 'm':
		return t.AddDate(0, i.N, 0)
	case 'y':
		return t.AddDate(i.N, 0, 0)
	}
	return t.AddDate(0, 0, i.N)
}

// tail is what follows date and time in the timestamp: end time, repeater, warning.
func (t Timestamp) tail() string {
	end := ""
	if t.HasTime && t.Range {
		end = t.End.Format("-15:04")
	}
	var words []string
	for w := range strings.FieldsSeq(strings.Trim(t.Raw, "<>")) {
		if _, _, ok := parseInterval(w); ok {
			words = append(words, w)
		}
	}
	if len(words) == 0 {
		return end
	}
	return end + " " + strings.Join(words, " ")
}

// countParent is the patches that bring the parent's statistics cookies up to
// date when h is given the keyword state, or is gone.
func (h Headline) countParent(state string, gone bool) []Patch {
	var out []Patch
	data, _ := h.Inherited("COOKIE_DATA")
	recursive := strings.Contains(data, "recursive")
	for p, ok := h.Parent(); ok; p, ok = p.Parent() {
		if own, _ := p.Property("COOKIE_DATA"); strings.Contains(strings.ToLower(own), "checkbox") {
			return out
		}
		all, done := 0, 0
		for c := range p.Subtree() {
			kw := c.Todo()
			if c.i == h.i {
				kw = state
			}
			if gone && c.i >= h.i && c.i < int(h.head().after) {
				continue
			}
			if c.i == p.i || !recursive && c.Stars() != h.Stars() || kw == "" {
				continue
			}
			all++
			if slices.Contains(h.f.set.done, kw) {
				done++
			}
		}
		out = append(out, p.setCookies(done, all)...)
		if !recursive {
			break
		}
	}
	return out
}

// setCookies rewrites the statistics cookies of the headline line.
func (h Headline) setCookies(done, all int) []Patch {
	var out []Patch
	line := h.LineSpan()
	for p := line.Start; p < line.End; p++ {
		if h.f.src[p] != '[' {
			continue
		}
		e := cookieEnd(h.f.src, p, line.End)
		if e == 0 {
			continue
		}
		text := fmt.Sprintf("[%d/%d]", done, all)
		if h.f.src[e-2] == '%' {
			text = fmt.Sprintf("[%d%%]", 100*done/max(1, all))
		}
		if text != string(h.f.src[p:e]) {
			out = append(out, Patch{p, e, []byte(text)})
		}
		p = e - 1
	}
	return out
}
