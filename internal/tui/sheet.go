package tui

import (
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// A sheet lies over the conversation: an agenda, a part of the memex, what became
// of a node, the sessions. It is a text with rows below; the cursor goes through
// both, and Enter opens the row it is on.
type sheet struct {
	what    string // the question it answers, in the daemon's words
	title   string
	keys    string // what its own keys do, for the rule above the input
	text    string // cleaned; Org or Markdown, or a difference
	diff    bool   // the text is a difference
	rows    []row
	at      int    // the line the cursor is on, counted over text and rows
	top     int    // the first line shown
	node    string // of a part of the memex
	from    time.Time
	days    int
	waiting bool
	filter  string // keeps the rows that have it
	narrow  bool   // letters go into the filter
	back    *sheet

	body  markup
	drawn drawn
}

// A row is one line that can be opened; without a key it only parts others.
type row struct {
	key   string
	spans []span
	text  string // what opening it shows, where that is known already
	turn  string // which turn made it, for taking it back
}

// openSheet lays a sheet over what is shown and asks the daemon for it.
func (m *Model) openSheet(s *sheet) {
	m.endSearch()
	if m.mode == reasoning {
		m.endReason()
	}
	m.mode, m.sheet = browsing, s
	m.load(s)
}

// load asks for what a sheet shows.
func (m *Model) load(s *sheet) {
	p := sexp.P(word("ACTION"), word(strings.ToUpper(s.what)))
	switch s.what {
	case "agenda":
		p = p.With("COUNT", sexp.NewInt(int64(s.days)))
		if !s.from.IsZero() {
			p = p.With("FROM", text(s.from.Format(time.DateOnly)))
		}
	case "outline", "node-history":
		p = p.With("NODE", text(s.node))
	}
	s.waiting = m.send(proto.Message{Kind: proto.Request, Payload: p}, request{what: s.what, sheet: s})
	if !s.waiting {
		s.text = "The daemon cannot be reached."
	}
}

// closeSheet goes back to the sheet before, or to the conversation.
func (m *Model) closeSheet() {
	if m.sheet = m.sheet.back; m.sheet == nil {
		m.mode = chatting
	}
}

// arrived takes what a sheet asked for. One that was closed meanwhile is not
// opened again by it.
func (m *Model) arrived(s *sheet, p sexp.Plist) {
	s.waiting, s.rows, s.text = false, nil, ""
	switch s.what {
	case "agenda":
		m.agendaRows(s, p)
	case "outline":
		outlineRows(s, p)
	case "node-history":
		m.versionRows(s, p)
	case "sessions":
		m.sessionRows(s, p)
	}
	s.drawn = drawn{}
	if s.at == 0 {
		s.at = -1 // the first row, once the text is laid out
	}
}

// refused shows why there is nothing on a sheet.
func (s *sheet) refused(why string) {
	s.waiting, s.rows, s.text, s.drawn = false, nil, clean(why), drawn{}
}

// shown are the rows the filter keeps.
func (s *sheet) shown() []row {
	if s.filter == "" {
		return s.rows
	}
	want := strings.ToLower(s.filter)
	return slices.DeleteFunc(slices.Clone(s.rows), func(r row) bool {
		if r.key == "" {
			return true
		}
		var b strings.Builder
		for _, sp := range r.spans {
			b.WriteString(sp.text)
		}
		return !strings.Contains(strings.ToLower(b.String()), want)
	})
}

// lines is the text above the rows, laid out.
func (s *sheet) lines(l look, width int) []string {
	if s.text == "" {
		return nil
	}
	if want := (drawn{width, l.theme, 1}); s.drawn != want {
		s.drawn, s.body = want, markup{}
		if s.diff {
			s.body.lines = diffLines(l, width, s.text)
		} else {
			s.body.lines = append(s.body.update(l, width, s.text), "")
		}
	}
	return s.body.lines
}

// diffLines paints a difference.
func diffLines(l look, width int, text string) []string {
	var out []string
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		r := diffRole(line)
		if l.plain {
			line = ascii(line)
		}
		for _, part := range chop(line, width) {
			out = append(out, l.paint(r, part))
		}
	}
	return out
}

// view is the sheet in exactly height rows.
func (s *sheet) view(l look, width, height int) []string {
	if height <= 0 {
		return nil
	}
	title := s.title
	if s.waiting {
		title += " " + l.dots
	}
	if s.filter != "" || s.narrow {
		title += "  /" + s.filter
	}
	out := []string{l.paint(roleHeading, l.short(title, width))}
	body, rows := s.lines(l, width), s.shown()
	s.settle(len(body), rows, height-1)
	for i := s.top; i < len(body)+len(rows) && len(out) < height; i++ {
		var line string
		if i < len(body) {
			line = body[i]
		} else {
			line = wrapOne(l, width-2, rows[i-len(body)].spans)
		}
		switch {
		case i == s.at && i >= len(body):
			line = l.paint(roleSelect, pad(l.prompt+ansi.Strip(line), width))
		case i == s.at && len(body)+len(rows) >= height: // there is somewhere to go
			line = pad(line, width-1) + l.paint(roleAccent, l.bar)
		case i >= len(body):
			line = "  " + line
		}
		out = append(out, line)
	}
	if len(body)+len(rows) == 0 && !s.waiting && len(out) < height {
		out = append(out, l.paint(roleDim, "There is nothing here."))
	}
	for len(out) < height {
		out = append(out, "")
	}
	return out
}

// settle keeps the cursor on a line that exists and that line on the screen.
func (s *sheet) settle(text int, rows []row, height int) {
	if s.at < 0 {
		s.at = text + max(0, slices.IndexFunc(rows, func(r row) bool { return r.key != "" }))
		if s.at >= height { // a long text is read from its beginning
			s.at = 0
		}
	}
	s.at = max(0, min(s.at, text+len(rows)-1))
	s.top = max(0, min(s.top, s.at))
	s.top = max(s.top, s.at-max(1, height)+1)
}

// wrapOne is spans on one line, with dots where they were cut.
func wrapOne(l look, width int, spans []span) string {
	var b strings.Builder
	for _, s := range spans {
		if l.plain {
			s.text = ascii(s.text)
		}
		t := truncate(s.text, max(0, width), l.dots)
		width -= ansiWidth(t)
		b.WriteString(l.paint(s.role, t))
	}
	return b.String()
}

// current is the row under the cursor, nil for none.
func (m *Model) current() *row {
	s := m.sheet
	rows, body := s.shown(), len(s.lines(m.look(), m.transcript.width))
	s.settle(body, rows, m.transcript.height-1)
	i := s.at - body
	if i < 0 || i >= len(rows) || rows[i].key == "" {
		return nil
	}
	return &rows[i]
}

// sheetKey takes a key while a sheet is open.
func (m *Model) sheetKey(name, typed string) tea.Cmd {
	s := m.sheet
	if s.narrow && m.filterKey(name, typed) {
		return nil
	}
	page := max(1, m.transcript.height-2)
	switch name {
	case "esc", "backspace", "ctrl+c":
		m.closeSheet()
	case "q":
		m.sheet, m.mode = nil, chatting
	case "up", "k":
		s.at--
	case "down", "j":
		s.at++
	case "pgup":
		s.at -= page
	case "pgdown", "space":
		s.at += page
	case "home", "ctrl+home":
		s.at, s.top = 0, 0
	case "end", "ctrl+end":
		s.at = 1 << 30
	case "tab":
		m.nextRow()
	case "/":
		s.narrow = true
	case "enter", "right":
		if name == "right" && s.what == "agenda" {
			m.turnDays(1)
			return nil
		}
		return m.openRow()
	case "left":
		if s.what == "agenda" {
			m.turnDays(-1)
			return nil
		}
		m.closeSheet()
	default:
		return m.sheetWord(name)
	}
	if m.sheet == s {
		s.at = max(0, s.at)
	}
	return nil
}

// sheetWord takes the letters that mean something on some sheets only.
func (m *Model) sheetWord(name string) tea.Cmd {
	s := m.sheet
	switch s.what + " " + name {
	case "agenda d", "agenda w", "agenda m":
		s.days = map[string]int{"d": 1, "w": 7, "m": 31}[name]
		m.load(s)
	case "agenda t":
		s.from = time.Time{}
		m.load(s)
	case "outline h", "agenda h":
		node := s.node
		if r := m.current(); r != nil {
			node = r.key
		}
		if node != "" {
			m.openSheet(&sheet{what: "node-history", title: "History", keys: "Enter difference, u take back, Esc back", node: node, back: s})
		}
	case "outline f", "agenda f":
		if r := m.current(); r != nil {
			return m.say("/focus push " + r.key)
		}
	case "node-history u":
		if r := m.current(); r != nil {
			if r.turn == "" {
				m.hint = "That was not done by the agent, so it is not the agent's to take back"
				return nil
			}
			m.sheet, m.mode = nil, chatting
			return m.propose("/undo "+r.turn, "undo", sexp.P(word("OF"), r.turn))
		}
	}
	return nil
}

// filterKey takes letters for the filter. It reports whether the key was taken.
func (m *Model) filterKey(name, typed string) bool {
	s := m.sheet
	switch name {
	case "enter":
		s.narrow = false
	case "esc", "ctrl+c":
		s.narrow, s.filter = false, ""
	case "backspace":
		if r := []rune(s.filter); len(r) > 0 {
			s.filter = string(r[:len(r)-1])
		} else {
			s.narrow = false
		}
	default:
		if typed == "" {
			return false
		}
		s.filter += clean(typed)
	}
	s.at, s.top = -1, 0
	return true
}

// nextRow goes to the next row that can be opened, from the last to the first.
func (m *Model) nextRow() {
	s := m.sheet
	rows, skip := s.shown(), len(s.lines(m.look(), m.transcript.width))
	for n := range rows {
		i := (max(s.at-skip, -1) + 1 + n) % len(rows)
		if rows[i].key != "" {
			s.at = skip + i
			return
		}
	}
}

// openRow opens what the cursor is on.
func (m *Model) openRow() tea.Cmd {
	s, r := m.sheet, m.current()
	if r == nil {
		return nil
	}
	switch {
	case s.what == "sessions":
		m.sheet, m.mode = nil, chatting
		return m.resume([]string{r.key})
	case r.text != "":
		m.sheet = &sheet{what: "difference", title: s.title, keys: "Esc back", text: r.text, diff: true, back: s}
	case s.what == "agenda" || s.what == "outline":
		m.openSheet(m.nodeSheet(r.key, s))
	}
	return nil
}

func (m *Model) nodeSheet(node string, back *sheet) *sheet {
	return &sheet{what: "outline", title: "Memory", keys: "Enter opens, h history, f focus, / filter, Esc back", node: node, back: back}
}

// turnDays goes to the days before or after.
func (m *Model) turnDays(n int) {
	s := m.sheet
	if s.from.IsZero() {
		s.from = m.opt.Now()
	}
	s.from = s.from.AddDate(0, 0, n*s.days)
	s.at, s.top = 0, 0
	m.load(s)
}
