package tui

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"passepartout/internal/sexp"
)

// A command is a slash command. The same table is the help, the completion and
// the palette.
type command struct {
	name, args, doc string
	run             func(*Model, []string) tea.Cmd
	words           func(*Model) []string // what its argument may be, for completion
	takes           string                // what of the daemon's its argument names: NODE or SESSION
}

// commands returns the table. It is a function, since help refers to it.
func commands() []command { return slices.Concat(talking(), looking(), elsewhere()) }

// talking are the commands of the conversation and of the client itself.
func talking() []command {
	return []command{
		{name: "help", args: "[COMMAND]", doc: "what can be typed and pressed here", run: (*Model).helpCommand, words: commandNames},
		{name: "why", args: "[ID]", doc: "every gate's verdict on the last action, or on one", run: (*Model).why, words: (*Model).traceIDs},
		{name: "approvals", doc: "list the actions that wait for you", run: (*Model).listAsks},
		{name: "approve", args: "[TOKEN] [once|session|rule]", doc: "allow a waiting action", run: approveWith(true), words: (*Model).tokens},
		{name: "deny", args: "[TOKEN] [REASON]", doc: "refuse a waiting action", run: approveWith(false), words: (*Model).tokens},
		{name: "search", args: "TEXT", doc: "find text in the transcript; n and N go on", run: (*Model).searchFor},
		{name: "clear", doc: "empty the screen; nothing is forgotten by the daemon", run: (*Model).clear},
		{name: "theme", args: "[NAME]", doc: "change the colours: dark, light, contrast, mono", run: (*Model).theme, words: func(*Model) []string { return themeNames }},
		{name: "sidebar", doc: "show or hide the side bar (120 columns or more)", run: func(m *Model, _ []string) tea.Cmd { m.sidebar = !m.sidebar; return nil }},
		{name: "mouse", doc: "give the mouse to the terminal, for selecting, or take it back", run: (*Model).toggleMouse},
		{name: "new", doc: "forget this conversation and begin another", run: forward("new")},
		{name: "distill", doc: "keep the last good exchange as a template note", run: forward("distill")},
		{name: "session", args: "NAME", doc: "go on with another conversation", run: (*Model).session, takes: "SESSION"},
		{name: "status", doc: "what the daemon says about itself", run: (*Model).showStatus},
		{name: "models", args: "[TIER/SLOT=NAME]", doc: "which model does what; or choose one", run: forward("models")},
		{name: "cost", doc: "what models have cost today and this month", run: forward("cost")},
		{name: "editor", doc: "write the input in your editor", run: func(m *Model, _ []string) tea.Cmd { return m.edit() }},
		{name: "interrupt", doc: "stop what is running", run: func(m *Model, _ []string) tea.Cmd { m.interrupt(); return nil }},
		{name: "reconnect", doc: "reach for the daemon again", run: (*Model).reconnect},
		{name: "quit", doc: "leave; the daemon stays", run: func(*Model, []string) tea.Cmd { return tea.Quit }},
		{name: "exit", doc: "leave; the daemon stays", run: func(*Model, []string) tea.Cmd { return tea.Quit }},
	}
}

// forward is a command the daemon itself answers: to it, a control word.
func forward(name string) func(*Model, []string) tea.Cmd {
	return func(m *Model, args []string) tea.Cmd {
		return m.say(clean(strings.Join(append([]string{"/" + name}, args...), " ")))
	}
}

func commandNames(*Model) []string {
	var out []string
	for _, c := range commands() {
		out = append(out, c.name)
	}
	return out
}

// slash reads a line as a command. A path is none: its first word has a second
// slash.
func slash(line string) (name string, args []string, ok bool) {
	words := strings.Fields(line)
	if len(words) == 0 || !strings.HasPrefix(words[0], "/") || strings.Contains(words[0][1:], "/") {
		return "", nil, false
	}
	return strings.ToLower(words[0][1:]), words[1:], true
}

// command runs a slash command. One that is not known never reaches the daemon:
// it might be a slip in a word that gives an approval.
func (m *Model) command(name string, args []string) tea.Cmd {
	m.transcript.away = false
	for _, c := range commands() {
		if c.name == name {
			return c.run(m, args)
		}
	}
	s := fmt.Sprintf("There is no command /%s.", clean(name))
	if near, ok := sexp.Nearest(name, commandNames(m)); ok {
		s += fmt.Sprintf(" Did you mean /%s?", near)
	} else {
		s += " /help lists them."
	}
	m.note(s)
	return nil
}

func (m *Model) helpCommand(args []string) tea.Cmd {
	topic := ""
	if len(args) > 0 {
		topic = strings.TrimPrefix(args[0], "/")
	}
	m.note(m.help(topic))
	return nil
}

// cell is text as a cell of a table.
func cell(s string) string { return strings.ReplaceAll(oneLine(s), "|", `\|`) }

// keyHelp lists the keys.
const keyHelp = `| Key | What it does |
|---|---|
| Enter | send; after a backslash, or as Alt+Enter, a new line |
| Up Down | history |
| Tab | complete a command and its argument |
| Ctrl+P | palette of commands |
| Ctrl+G | fold or unfold the gates' verdicts on the last action |
| y s m n r | answer the open question: allow once, for this session, with a rule on trial; deny, deny with a reason |
| Esc | stop what is running; leave a search |
| PgUp PgDn, wheel | scroll; Ctrl+Home and Ctrl+End go to the ends |
| Ctrl+O, Ctrl+X E | write in your editor |
| Ctrl+B | side bar |
| Ctrl+C | clear the input, stop, and twice: leave |
| Ctrl+D | leave |`

func (m *Model) help(topic string) string {
	var b strings.Builder
	for _, c := range commands() {
		if topic != "" && topic != c.name {
			continue
		}
		fmt.Fprintf(&b, "| %s | %s |\n", cell("/"+c.name+" "+c.args), cell(c.doc))
	}
	switch {
	case topic == "":
		return "# Commands\n| Command | What it does |\n|---|---|\n" + b.String() + "\n# Keys\n" + keyHelp
	case b.Len() == 0:
		return fmt.Sprintf("There is no command /%s. /help lists them.", topic)
	}
	return b.String()
}

// why unfolds a trace: the last, or that of an id.
func (m *Model) why(args []string) tea.Cmd {
	if len(args) == 0 {
		if b := m.lastTrace(); b != nil {
			m.fold(b, true)
			return nil
		}
		m.note("No action has been judged yet.")
		return nil
	}
	for i := len(m.transcript.blocks) - 1; i >= 0; i-- {
		if b := m.transcript.blocks[i]; b.trace != nil && b.trace.id == args[0] {
			m.fold(b, true)
			m.transcript.reveal(i)
			return nil
		}
	}
	m.note(fmt.Sprintf("No action %s was judged in this window. `passepartout why %s` looks it up in the journal.", args[0], args[0]))
	return nil
}

func (m *Model) traceIDs() []string {
	var out []string
	for i := len(m.transcript.blocks) - 1; i >= 0 && len(out) < 20; i-- {
		if t := m.transcript.blocks[i].trace; t != nil {
			out = append(out, t.id)
		}
	}
	return out
}

func (m *Model) listAsks([]string) tea.Cmd {
	m.ask("approvals")
	if len(m.asks) == 0 {
		m.note("Nothing waits for approval.")
		return nil
	}
	var b strings.Builder
	b.WriteString("| Token | Action | Until |\n|---|---|---|\n")
	for _, q := range m.asks {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", cell(q.ask.token), cell(q.ask.name+" "+strings.Join(q.ask.args, " ")), cell(q.ask.until()))
	}
	m.note(b.String())
	return nil
}

func approveWith(yes bool) func(*Model, []string) tea.Cmd {
	return func(m *Model, args []string) tea.Cmd { return m.respondTo(args, yes) }
}

func (m *Model) searchFor(args []string) tea.Cmd {
	needle := strings.Join(args, " ")
	if needle == "" {
		m.note("Say what to look for: /search TEXT.")
		return nil
	}
	m.transcript.find(needle)
	if len(m.transcript.search.hits) == 0 {
		m.transcript.search = search{}
		m.note(fmt.Sprintf("%q was not found.", clean(needle)))
		return nil
	}
	m.mode = searching
	return nil
}

// clear empties the screen but for what still needs an answer.
func (m *Model) clear([]string) tea.Cmd {
	m.transcript.blocks = slices.Concat(m.outbox, m.asks)
	m.transcript.away, m.transcript.top, m.transcript.search = false, place{}, search{}
	return nil
}

func (m *Model) theme(args []string) tea.Cmd {
	name := ""
	if len(args) > 0 {
		name = strings.ToLower(args[0])
	} else {
		name = themeNames[(slices.Index(themeNames, m.look().name)+1)%len(themeNames)]
	}
	if !slices.Contains(themeNames, name) {
		m.note(fmt.Sprintf("There is no theme %q; there are %s.", clean(name), strings.Join(themeNames, ", ")))
		return nil
	}
	m.auto = false
	m.setTheme(name)
	m.hint = "Theme: " + name
	return nil
}

func (m *Model) toggleMouse([]string) tea.Cmd {
	m.mouse = !m.mouse
	m.hint = "The mouse belongs to the terminal: select as usual"
	if m.mouse {
		m.hint = "The mouse scrolls and unfolds traces"
	}
	return nil
}

// session goes to another conversation. The screen starts empty; the daemon
// remembers what was said in either.
func (m *Model) session(args []string) tea.Cmd {
	if len(args) != 1 {
		m.note(fmt.Sprintf("This is the session %s. /session NAME goes to another.", m.opt.Session))
		return nil
	}
	name := clean(args[0])
	if len(name) > maxSession {
		m.note("That name is too long.")
		return nil
	}
	if m.running() || len(m.outbox) > 0 {
		m.note("Something is running or waiting to be sent here; stop it first with Esc.")
		return nil
	}
	for _, b := range m.asks {
		switch b.ask.session {
		case "":
			b.ask.session = m.opt.Session
		case name:
			b.ask.session = ""
		}
		b.touch()
	}
	m.opt.Session = name
	m.clear(nil)
	clear(m.turns)
	m.note(fmt.Sprintf("This is the session %s.", name))
	m.ask("listen")
	m.refresh()
	return nil
}

// maxSession is the longest name the daemon takes, in bytes.
const maxSession = 128

func (m *Model) showStatus([]string) tea.Cmd {
	var b strings.Builder
	b.WriteString("| What | Value |\n|---|---|\n")
	for _, f := range m.facts() {
		fmt.Fprintf(&b, "| %s | %s |\n", f.label, cell(f.value))
	}
	if m.over.note != "" {
		fmt.Fprintf(&b, "| protection | %s |\n", cell(m.over.note))
	}
	m.note(b.String())
	return nil
}

func (m *Model) reconnect([]string) tea.Cmd {
	if m.link != nil {
		m.link.close()
		m.link = nil
		clear(m.pending)
		clear(m.turns)
	}
	m.down = "connecting"
	return m.redial()
}
