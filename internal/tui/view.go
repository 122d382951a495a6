package tui

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// The side bar appears in wide terminals.
const (
	sidebarFrom  = 120
	sidebarWidth = 34
)

func (m *Model) hasSidebar() bool { return m.sidebar && m.width >= sidebarFrom }

// View draws the screen.
func (m *Model) View() tea.View {
	rows := m.transcript.view()
	if m.sheet != nil {
		rows = m.sheet.view(m.look(), m.transcript.width, m.transcript.height)
	}
	if m.mode == picking {
		m.overlay(rows)
	}
	if m.hasSidebar() {
		side := m.side(len(rows))
		bar := " " + m.look().paint(roleBorder, m.look().bar) + " "
		for i := range rows {
			rows[i] = pad(rows[i], m.transcript.width) + bar + side[i]
		}
	}
	top := len(rows)
	switch m.chrome() {
	case 3:
		rows = append(rows, m.rule())
		top++
		rows = append(rows, strings.Split(m.in.View(), "\n")...)
		rows = append(rows, pad(m.hintLine(), m.width), m.statusLine())
	case 1:
		rows = append(rows, strings.Split(m.in.View(), "\n")...)
		rows = append(rows, m.statusLine())
	default:
		rows = append(rows, strings.Split(m.in.View(), "\n")...)
	}
	for i, r := range rows {
		rows[i] = fitRow(r, m.width)
	}
	v := tea.NewView(strings.Join(rows[:min(len(rows), m.height)], "\n"))
	v.AltScreen = true
	v.WindowTitle = "passepartout: " + m.opt.Session
	if m.mouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	if c := m.in.Cursor(); c != nil && m.typing() && c.Y < m.in.Height() && c.X < m.width {
		c.Y += top
		v.Cursor = c
	}
	return v
}

// typing reports whether a letter goes into the input, which is when it has the
// cursor.
func (m *Model) typing() bool {
	return m.mode == reasoning || m.mode == chatting && (m.panel() == nil || m.in.Value() != "")
}

// fitRow cuts a row that is wider than the screen.
func fitRow(s string, n int) string {
	if len(s) <= n {
		return s
	}
	if ansiWidth(s) > n {
		return pad(s, n)
	}
	return s
}

// overlay draws the palette over the end of the transcript.
func (m *Model) overlay(rows []string) {
	w := min(m.transcript.width, 84)
	box := m.palette.view(m.look(), w, len(rows))
	box = box[max(0, len(box)-len(rows)):]
	copy(rows[len(rows)-len(box):], box)
}

// rule is the line above the input. It says what keys mean when they do not
// simply type.
func (m *Model) rule() string {
	l := m.look()
	say, r := "", roleBorder
	switch b := m.panel(); {
	case m.sheet != nil:
		say, r = m.sheet.keys, roleAccent
		if b != nil {
			say, r = "a question waits: q goes back to it.  "+say, roleAsk
		}
	case m.mode == searching:
		s := m.transcript.search
		say = fmt.Sprintf("search %q: %d of %d, n older, N newer, Esc ends", s.needle, s.at+1, len(s.hits))
		r = roleAccent
	case m.mode == reasoning:
		say, r = "deny with a reason: Enter sends, Esc goes back", roleAsk
	case b != nil && m.held != "" && m.in.Value() == m.held:
		say, r = m.held+" answers in a moment; go on typing, and it is a message", roleAsk
	case b != nil && m.in.Value() != "":
		say, r = "a question waits: empty the input (Ctrl+C) to answer it by key", roleAsk
	case b != nil && m.armed:
		say, r = "y allow once, n deny, r deny with a reason", roleAsk
		if b.ask.class != "" {
			say = "y allow once, s this session, m make a rule, n deny, r deny with a reason"
		}
		if n := len(m.asks); n > 1 {
			say += fmt.Sprintf(" (%d wait)", n)
		}
		if !m.read(b) {
			say = "a question waits: y reads on, n deny, r deny with a reason"
		}
	case b != nil:
		say, r = "a question waits", roleAsk
	case m.transcript.away:
		say = "more below, Ctrl+End"
		if n := m.transcript.below(); n > 0 {
			say = fmt.Sprintf("%d more below, Ctrl+End", n)
		}
	}
	if say == "" {
		return l.paint(r, strings.Repeat(l.rule, m.width))
	}
	say = l.short(say, m.width-6)
	return l.paint(r, strings.Repeat(l.rule, 2)+" "+say+" "+strings.Repeat(l.rule, max(0, m.width-4-ansiWidth(say))))
}

// hintLine is a passing remark, or what a begun command could become.
func (m *Model) hintLine() string {
	l := m.look()
	if m.hint != "" {
		return l.paint(roleAsk, l.short(m.hint, m.width))
	}
	line := m.in.Value()
	if m.mode != chatting || !strings.HasPrefix(line, "/") {
		return ""
	}
	words, _ := m.candidates(line)
	name, _, ok := slash(line)
	if len(words) == 1 && !strings.Contains(line, " ") {
		name = words[0]
	}
	if ok && len(words) <= 1 {
		for _, c := range commands() {
			if c.name == name {
				return l.paint(roleDim, l.short(strings.TrimSpace("/"+c.name+" "+c.args)+": "+c.doc, m.width))
			}
		}
	}
	return l.paint(roleDim, l.short(strings.Join(words, "  "), m.width))
}

// statusLine is the last row: where we are connected, what is going on, and the
// keys that help.
func (m *Model) statusLine() string {
	l := m.look()
	var left string
	if m.link != nil {
		left = l.paint(roleOK, l.online) + " " + l.short(m.opt.Session, max(4, m.width/4))
	} else {
		left = l.paint(roleDeny, l.offline+" "+l.short(m.down, max(8, m.width/2)))
	}
	if s := m.activity(); s != "" {
		left += "  " + l.paint(roleAccent, s)
	}
	if m.chrome() == 1 && m.panel() != nil && m.armed && m.in.Value() == "" {
		left = l.paint(roleAsk, l.ask+" y allow n deny r") // there is no rule to say it
		if !m.read(m.panel()) {
			left = l.paint(roleAsk, l.ask+" y read on n deny")
		}
	}
	if s := m.progress(10); s != "" {
		left += "  " + l.paint(roleAccent, s)
	}
	if n := len(m.asks); n > 0 {
		left += "  " + l.paint(roleAsk, fmt.Sprintf("%d to approve", n))
	}
	right := "Ctrl+P commands  Ctrl+G why  /help"
	if m.running() {
		right = "Esc stops  " + right
	}
	if gap := m.width - ansiWidth(left) - ansiWidth(right); gap >= 2 {
		return left + strings.Repeat(" ", gap) + l.paint(roleDim, right)
	}
	return pad(left, m.width)
}

// activity is what the daemon is doing for us.
func (m *Model) activity() string {
	if !m.running() {
		return ""
	}
	phase := "thinking"
	for _, s := range m.turns {
		switch s {
		case "PERCEIVED", "ACTED":
			phase = "thinking"
		case "REASONED":
			phase = "judging"
		}
	}
	l := m.look()
	return fmt.Sprintf("%s %s %s", l.spin[m.spin%len(l.spin)], phase, m.opt.Now().Sub(m.began).Truncate(time.Second))
}

// side is the side bar, exactly height rows.
func (m *Model) side(height int) []string {
	l := m.look()
	out := []string{l.paint(roleAccent, l.agent+" "+l.short(m.opt.Assistant, sidebarWidth-2)), ""}
	for _, f := range m.facts() {
		value := f.value
		if f.label == "memex" {
			value = l.tail(value, sidebarWidth-10)
		}
		out = append(out, l.paint(roleDim, fmt.Sprintf("%-10s", f.label))+l.paint(f.role, l.short(value, sidebarWidth-10)))
	}
	if len(m.asks) > 0 {
		out = append(out, "", l.paint(roleAsk, "Waiting for you"))
		for _, b := range m.asks {
			out = append(out, l.short(b.ask.name+" "+strings.Join(b.ask.args, " "), sidebarWidth), l.paint(roleDim, "  until "+b.ask.until()))
		}
	}
	if len(m.over.touched) > 0 {
		out = append(out, "", l.paint(roleAccent, "Files touched"))
		for _, f := range m.over.touched {
			out = append(out, l.tail(f, sidebarWidth))
		}
	}
	out = append(out, m.recent()...)
	for len(out) < height {
		out = append(out, "")
	}
	return out[:height]
}

// tail is a path on one line: its end tells more than its beginning.
func (l look) tail(path string, n int) string {
	if w := ansiWidth(path); w > n {
		path = ansi.TruncateLeft(path, w-n+1, l.dots)
	}
	return l.short(path, n)
}

// recent is the last rulings, newest first.
func (m *Model) recent() []string {
	l := m.look()
	out := []string{"", l.paint(roleAccent, "Last rulings")}
	for i := len(m.transcript.blocks) - 1; i >= 0 && len(out) < 12; i-- {
		if t := m.transcript.blocks[i].trace; t != nil {
			g, r := l.sign(t.decision)
			out = append(out, l.paint(r, g)+" "+l.short(t.name, sidebarWidth-2))
		}
	}
	if len(out) == 2 {
		return nil
	}
	return out
}
