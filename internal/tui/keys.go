package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// key takes one key press: chords first, then whoever has the keys.
func (m *Model) key(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	m.hint = ""
	if name != "ctrl+c" {
		m.leaving = false
	}
	if m.chord != "" {
		name, m.chord = m.chord+" "+name, ""
	} else if name == "ctrl+x" {
		m.chord = name
		m.hint = "Ctrl+X: E for the editor, B for the side bar"
		return nil
	}
	if m.mode == picking {
		return m.pickerKey(name, k.Text)
	}
	everywhere := name == "ctrl+b" || name == "ctrl+l" || name == "ctrl+z" || name == "ctrl+d"
	if m.mode == browsing && !everywhere {
		return m.sheetKey(name, k.Text)
	}
	if cmd, taken := m.globalKey(name); taken {
		return cmd
	}
	if m.mode == searching && m.searchKey(name) {
		return nil
	}
	if cmd, taken := m.panelKey(name); taken {
		return cmd
	}
	return m.inputKey(name, k)
}

// globalKey takes keys that mean the same in every mode.
func (m *Model) globalKey(name string) (tea.Cmd, bool) {
	page := max(1, m.transcript.height-2)
	switch name {
	case "ctrl+c":
		return m.interruptOrLeave(), true
	case "ctrl+d":
		if m.in.Value() != "" {
			return nil, false
		}
		return tea.Quit, true
	case "ctrl+z":
		return tea.Suspend, true
	case "ctrl+l":
		return tea.ClearScreen, true
	case "ctrl+p":
		m.openPicker()
	case "ctrl+\\":
		return m.command("setup", nil), true
	case "ctrl+g":
		m.toggleTrace()
	case "ctrl+b", "ctrl+x b", "ctrl+x ctrl+b":
		m.sidebar = !m.sidebar
	case "ctrl+o", "ctrl+x e", "ctrl+x ctrl+e":
		return m.edit(), true
	case "pgup":
		m.transcript.scroll(-page)
	case "pgdown":
		m.transcript.scroll(page)
	case "ctrl+home":
		m.transcript.show(place{})
	case "ctrl+end":
		m.transcript.away = false
	default:
		return nil, strings.HasPrefix(name, "ctrl+x ")
	}
	return nil, true
}

// interruptOrLeave is Ctrl+C: it clears the input, else stops what runs, else
// leaves when pressed twice.
func (m *Model) interruptOrLeave() tea.Cmd {
	switch {
	case m.mode == searching:
		m.endSearch()
	case m.mode == reasoning:
		m.endReason()
	case m.in.Value() != "":
		m.hist.add(m.in.Value()) // Up brings it back
		m.in.Reset()
	case m.running():
		m.interrupt()
	case m.leaving:
		return tea.Quit
	default:
		m.leaving = true
		m.hint = "Press Ctrl+C again to leave"
	}
	return nil
}

func (m *Model) interrupt() {
	m.send(proto.Message{Kind: proto.Event, Payload: sexp.P(word("SENSOR"), word("INTERRUPT"))}, request{what: "interrupt"})
}

// searchKey takes the keys of a search. Any other ends it and goes to the input.
func (m *Model) searchKey(name string) bool {
	switch name {
	case "n", "up", "enter":
		m.transcript.step(1)
	case "N", "shift+n", "down":
		m.transcript.step(-1)
	case "esc":
		m.endSearch()
	default:
		m.endSearch()
		return false
	}
	return true
}

// inputKey takes the keys of the input line.
func (m *Model) inputKey(name string, k tea.KeyPressMsg) tea.Cmd {
	switch name {
	case "esc":
		switch {
		case m.mode == reasoning:
			m.endReason()
		case m.running():
			m.interrupt()
		}
		return nil
	case "enter":
		return m.enter()
	case "alt+enter", "ctrl+j", "shift+enter":
		m.in.InsertString("\n")
		return nil
	case "tab":
		m.complete()
		return nil
	case "up", "down":
		if m.recall(name) {
			return nil
		}
	case "?":
		if m.in.Value() == "" && m.mode == chatting {
			m.note(m.help(""))
			m.transcript.away = false
			return nil
		}
	}
	var cmd tea.Cmd
	m.in, cmd = m.in.Update(k)
	return cmd
}

// enter sends the input; after a backslash it makes a new line instead.
func (m *Model) enter() tea.Cmd {
	value := m.in.Value()
	if before, ok := strings.CutSuffix(value, "\\"); ok && m.mode == chatting {
		m.in.SetValue(before + "\n")
		m.in.MoveToEnd()
		return nil
	}
	if m.mode == reasoning {
		b := m.panel()
		m.endReason()
		return m.respond(b, answer{reason: strings.TrimSpace(value)})
	}
	if strings.TrimSpace(value) == "" {
		return nil
	}
	m.in.Reset()
	m.hist.add(value)
	save := appendHistory(m.opt.History, value)
	line := strings.TrimSpace(value)
	if name, args, ok := slash(line); ok {
		return tea.Batch(save, m.command(name, args))
	}
	return tea.Batch(save, m.say(clean(line)))
}

// recall goes through the history at the first and the last line of the input.
func (m *Model) recall(name string) bool {
	if m.mode == reasoning {
		return false
	}
	step := -1
	if name == "down" {
		step = 1
	}
	if step < 0 && m.in.Line() > 0 || step > 0 && m.in.Line() < m.in.LineCount()-1 {
		return false
	}
	if s, ok := m.hist.move(step, m.in.Value()); ok {
		m.in.SetValue(s)
		m.in.MoveToEnd()
	}
	return true
}

// edit opens the input in the person's editor.
func (m *Model) edit() tea.Cmd {
	if m.opt.Editor == nil {
		m.hint = "No editor is set: EDITOR or VISUAL would name one"
		return nil
	}
	return prepareEdit(m.opt.TempDir, m.in.Value())
}

// toggleTrace opens or closes the newest trace that did something; where nothing
// was done, that of the reply.
func (m *Model) toggleTrace() {
	if b := m.lastTrace(); b != nil {
		m.fold(b, !b.open)
		return
	}
	m.hint = "No action has been judged yet"
}

func (m *Model) lastTrace() *block {
	var reply *block
	for i := len(m.transcript.blocks) - 1; i >= 0; i-- {
		switch b := m.transcript.blocks[i]; {
		case b.kind == traceBlock:
			return b
		case b.trace != nil && reply == nil:
			reply = b
		case b.kind == userBlock && reply != nil:
			return reply
		}
	}
	return reply
}
