package tui

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// propose sends the owner's own wish to use a tool. It is judged like any other
// proposal, and what becomes of it arrives as a turn.
func (m *Model) propose(said, tool string, args sexp.Plist) tea.Cmd {
	b := &block{kind: userBlock}
	b.set(clean(said))
	ok := m.send(proto.Message{Kind: proto.Request, Target: "tool", Payload: sexp.P(
		word("TOOL"), tool, word("ARGS"), args, word("EXPLANATION"), "The owner typed this command.")}, request{what: "turn", block: b})
	if !ok {
		m.hint = "The daemon cannot be reached, so nothing was done."
		return nil
	}
	m.transcript.add(b)
	m.transcript.away = false
	m.began = m.opt.Now()
	return m.animate()
}

// undo takes back the agent's last changes, or those of a turn or an action.
func (m *Model) undo(args []string) tea.Cmd {
	said := strings.TrimSpace("/undo " + strings.Join(args, " "))
	if len(args) == 1 && strings.Contains(args[0], "-") {
		return m.propose(said, "undo", sexp.P(word("OF"), args[0]))
	}
	return m.counted(said, "undo", args)
}

func (m *Model) redo(args []string) tea.Cmd {
	return m.counted(strings.TrimSpace("/redo "+strings.Join(args, " ")), "redo", args)
}

func (m *Model) changes([]string) tea.Cmd { return m.propose("/changes", "list-changes", sexp.P()) }

// counted proposes a tool that takes how many.
func (m *Model) counted(said, tool string, args []string) tea.Cmd {
	n := 1
	if len(args) > 0 {
		var err error
		if n, err = strconv.Atoi(args[0]); err != nil || n < 1 || len(args) > 1 {
			m.note(fmt.Sprintf("/%s takes how many changes, such as /%s 3.", tool, tool))
			return nil
		}
	}
	return m.propose(said, tool, sexp.P(word("COUNT"), n))
}

// rewind takes back what the agent did since the n-th message before this one, and
// puts that message into the input again.
func (m *Model) rewind(args []string) tea.Cmd {
	n := 1
	if len(args) > 0 {
		var err error
		if n, err = strconv.Atoi(args[0]); err != nil || n < 1 {
			m.note("/rewind takes how many of your messages to go back, such as /rewind 2.")
			return nil
		}
	}
	if m.running() {
		m.note("Something is running; stop it first with Esc.")
		return nil
	}
	var said *block
	var turns []string
	back := n
	for _, b := range slices.Backward(m.transcript.blocks) {
		if b.kind == traceBlock && b.turn != "" && b.trace.decision == "allow" && !b.trace.restores() && !slices.Contains(turns, b.turn) {
			turns = append(turns, b.turn)
		}
		if b.kind == userBlock && !strings.HasPrefix(b.text(), "/") {
			if said = b; n == 1 {
				break
			}
			n--
		}
	}
	if said == nil {
		m.note("Nothing was said here yet. /resume shows what was said before.")
		return nil
	}
	if m.in.Value() == "" {
		m.in.SetValue(said.text())
		m.in.MoveToEnd()
	}
	if len(turns) == 0 {
		m.note("Nothing was done since. Your message is in the input again.")
	}
	var cmds []tea.Cmd
	for _, t := range turns {
		cmds = append(cmds, m.propose("/undo "+t, "undo", sexp.P(word("OF"), t)))
	}
	// The daemon forgets the messages too, so that no model is shown them again.
	return tea.Batch(append(cmds, m.say(fmt.Sprintf("/rewind %d", back)))...)
}

// agenda opens the agenda.
func (m *Model) agenda(args []string) tea.Cmd {
	s := &sheet{what: "agenda", title: "Agenda", keys: "Left Right days, d w m span, t today, Enter opens, h history, Esc back", days: 7}
	for _, a := range args {
		switch a {
		case "day", "today":
			s.days = 1
		case "week":
			s.days = 7
		case "month":
			s.days = 31
		default:
			t, err := time.ParseInLocation(time.DateOnly, a, m.opt.Now().Location())
			if err != nil {
				m.note("/agenda takes day, week or month, and a first day such as 2026-12-24.")
				return nil
			}
			s.from = t
		}
	}
	m.openSheet(s)
	return nil
}

// memory opens the memex, or a node of it.
func (m *Model) memory(args []string) tea.Cmd {
	m.openSheet(m.nodeSheet(strings.Join(args, " "), nil))
	return nil
}

// history opens what became of a node.
func (m *Model) history(args []string) tea.Cmd {
	if len(args) == 0 {
		return m.changes(nil)
	}
	m.openSheet(&sheet{what: "node-history", title: "History", keys: "Enter difference, u take back, Esc back", node: strings.Join(args, " ")})
	return nil
}

// sessions opens the list of conversations.
func (m *Model) sessions([]string) tea.Cmd {
	m.openSheet(&sheet{what: "sessions", title: "Sessions", keys: "Enter goes on with it, / filter, Esc back"})
	return nil
}

// restores reports whether the action itself took something back.
func (t *trace) restores() bool {
	return t.speaks() || t.name == "tool.undo" || t.name == "tool.redo" || t.name == "tool.list-changes"
}

// resume goes on with a conversation and shows what was said in it; without a name
// it shows what was said in this one.
func (m *Model) resume(args []string) tea.Cmd {
	if m.running() {
		m.note("Something is running; stop it first with Esc.")
		return nil
	}
	var cmd tea.Cmd
	if len(args) > 0 && args[0] != m.opt.Session {
		before := m.opt.Session
		if cmd = m.session(args); m.opt.Session == before {
			return cmd
		}
	}
	m.ask("conversation")
	return cmd
}

// recalled shows what was said before, above what this window has seen.
func (m *Model) recalled(p sexp.Plist) {
	if p.Text("SESSION") != m.opt.Session {
		return
	}
	t := &m.transcript
	var said []*block
	for _, r := range plists(p, "SAID") {
		b := &block{turn: clean(r.Text("TURN")), status: "done"}
		switch r.Text("WHO") {
		case "you":
			b.kind, b.status = userBlock, ""
			b.set(clean(r.Text("TEXT")))
		case "agent":
			b.kind, b.trace = answerBlock, readTrace(r)
			b.set(clean(r.Text("TEXT")))
		case "gates":
			b.kind, b.trace = traceBlock, readTrace(r)
		default:
			continue
		}
		said = append(said, b)
	}
	if len(said) == 0 {
		m.note("Nothing was said in this session, as far back as the journal was looked at.")
		return
	}
	kept := slices.DeleteFunc(slices.Concat(m.outbox, m.asks), func(b *block) bool { return t.index(b) < 0 })
	t.blocks = slices.Concat(said, []*block{new(block).set(fmt.Sprintf("This is what was said in %s, from the journal.", m.opt.Session))}, kept)
	t.away, t.top, t.search = false, place{}, search{}
}
