package tui

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"

	"passepartout/internal/proto"
)

// A mode says who gets the keys. The zero mode is the conversation.
type mode uint8

const (
	chatting  mode = iota
	searching      // n and N go through hits
	picking        // the palette is open
	reasoning      // the input is the reason of a refusal
	browsing       // a sheet lies over the conversation
)

// A Model is the client's whole state. Bubble Tea calls its methods from one
// goroutine; nothing else may touch it.
type Model struct {
	opt Options
	ctx context.Context // the lifetime of Run, for dialling

	transcript transcript
	in         textarea.Model
	hist       history
	mode       mode
	palette    picker
	sheet      *sheet // while browsing
	kept       string // the input, while a reason is typed
	hint       string // one line above the status, until the next key
	chord      string // a key that waits for its second

	link     *link
	dialing  *sync.WaitGroup
	try      int // the number of the newest dial; older ones are ignored
	failures int
	proved   bool   // this connection has brought something
	down     string // why the daemon is not reached; "" while it is

	tag     string
	next    int
	pending map[string]request // what we asked and are not answered yet
	outbox  []*block           // said while the daemon was away
	turns   map[string]string  // running turns and how far they are
	began   time.Time          // when the first of them began
	asks    []*block           // open questions, oldest first
	done    map[string]bool    // tokens answered here; a list made before that may still have them
	heard   map[string]bool    // other sessions in which we answered a question and want to see the end
	armed   bool               // the panel takes keys
	held    string             // the letter that answers in a moment, unless more follows
	holding int                // counts them
	health  health
	over    overview

	width, height   int
	framed          int // the width the input was laid out for
	sidebar         bool
	mouse           bool
	auto            bool // the theme follows the terminal
	leaving         bool // Ctrl+C was pressed once
	spin            int
	spinning, armup int // generations of ticks, so that stale ones are ignored
	looking         int
}

// A request is what one of our messages asked for.
type request struct {
	what  string // "turn", "health-check", "approvals", "hitl-respond", "listen", "interrupt", or a sheet's question
	block *block
	sheet *sheet // that waits for the answer
	line  string // the input as it was, for a completion
}

// New returns a model that is not connected yet.
func New(o Options) *Model {
	o.Session = cmp.Or(o.Session, "main")
	o.Assistant = cmp.Or(clean(oneLine(o.Assistant)), "Passepartout")
	if o.Now == nil {
		o.Now = time.Now
	}
	m := &Model{
		opt: o, ctx: context.Background(), dialing: &sync.WaitGroup{}, tag: nonce(), pending: map[string]request{}, turns: map[string]string{}, heard: map[string]bool{}, done: map[string]bool{},
		sidebar: true, mouse: o.Mouse, auto: o.Theme == "" || o.Theme == "auto", down: "connecting",
	}
	m.in = textarea.New()
	m.in.ShowLineNumbers = false
	m.in.MaxHeight = 0
	m.in.CharLimit = maxInput
	m.in.EndOfBufferCharacter = ' '
	m.in.SetVirtualCursor(false)
	m.in.KeyMap.Paste.SetEnabled(false) // it would start a clipboard program; the terminal pastes by itself
	m.in.KeyMap.CopySelection.SetEnabled(false)
	m.in.Focus()
	m.setTheme(cmp.Or(strings.TrimPrefix(o.Theme, "auto"), "dark"))
	m.transcript.name = o.Assistant
	m.resize(80, 24)
	return m
}

// What can be typed or pasted: bytes and lines. The input would cut off what is
// beyond its own limit of lines without a word.
const (
	maxInput      = 1 << 20
	maxInputLines = 9_000
)

func (m *Model) look() look { return m.transcript.look }

// setTheme changes the colours; unknown names have been refused before.
func (m *Model) setTheme(name string) {
	m.transcript.look = newLook(name, m.opt.ASCII)
	m.transcript.look.links = m.opt.Links
	l := m.look()
	st := textarea.StyleState{
		Text: l.styles[rolePlain], CursorLine: l.styles[rolePlain], EndOfBuffer: l.styles[rolePlain],
		Placeholder: l.styles[roleDim], Prompt: l.styles[roleAccent], Selection: l.styles[roleSelect],
	}
	m.in.SetStyles(textarea.Styles{Focused: st, Blurred: st, Cursor: textarea.CursorStyle{Shape: tea.CursorBar}})
	m.in.SetPromptFunc(2, func(p textarea.PromptInfo) string {
		if p.LineNumber == 0 {
			return l.prompt
		}
		return "  "
	})
}

// Init dials the daemon and asks the terminal for its background.
func (m *Model) Init() tea.Cmd {
	cmds := []tea.Cmd{m.redial()}
	if m.auto {
		cmds = append(cmds, tea.RequestBackgroundColor)
	}
	return tea.Batch(cmds...)
}

// redial tries to reach the daemon now.
func (m *Model) redial() tea.Cmd {
	if m.opt.Dial == nil {
		return nil
	}
	m.try++
	return tea.Batch(dial(m.ctx, m.dialing, m.opt.Dial, m.try), m.starting(m.try))
}

// Update takes one message. It does no input or output itself.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	cmd := m.update(msg)
	m.arrange()
	return m, cmd
}

func (m *Model) update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.resize(msg.Width, msg.Height)
	case tea.KeyPressMsg:
		return m.key(msg)
	case tea.PasteMsg:
		return m.paste(msg.Content)
	case tea.MouseWheelMsg:
		m.wheel(msg.Button)
	case tea.MouseClickMsg:
		m.click(msg.X, msg.Y)
	case tea.BackgroundColorMsg:
		if m.auto && !dark(msg.Color) {
			m.setTheme("light")
		}
	case tickMsg:
		return m.tick(msg)
	case editMsg:
		return tea.Exec(m.opt.Editor(msg.file), func(err error) tea.Msg { return collectEdit(msg.file, err) })
	case editedMsg:
		m.edited(msg)
	case savedMsg:
		if msg.err != nil {
			m.hint = "The history could not be written: " + clean(msg.err.Error())
		}
	default:
		return m.connection(msg)
	}
	return nil
}

func (m *Model) edited(msg editedMsg) {
	if msg.err != nil {
		m.hint = "The editor's text was not taken: " + clean(msg.err.Error())
		return
	}
	m.in.SetValue(msg.text)
	m.in.MoveToEnd()
}

// paste adds text as it is, whatever line ends it has.
func (m *Model) paste(s string) tea.Cmd {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	s = clean(strings.ReplaceAll(s, "\r", "\n"))
	if m.mode == picking {
		m.palette.filter(m.palette.query + oneLine(s))
		return nil
	}
	if m.mode == browsing {
		return nil // letters mean something else there
	}
	m.endSearch()
	if lines := strings.Count(s, "\n"); lines+m.in.LineCount() > maxInputLines || len(s)+m.in.Length() > maxInput {
		m.hint = fmt.Sprintf("%d lines are too many for the input; nothing was pasted. `passepartout < file` takes them.", lines+1)
		return nil
	}
	m.in.InsertString(s)
	return nil
}

// endSearch leaves the search, if there is one.
func (m *Model) endSearch() {
	if m.mode == searching {
		m.transcript.search = search{}
		m.mode = chatting
	}
}

func (m *Model) wheel(b tea.MouseButton) {
	if m.sheet != nil {
		switch b {
		case tea.MouseWheelUp:
			m.sheet.at = max(0, m.sheet.at-3)
		case tea.MouseWheelDown:
			m.sheet.at += 3
		}
		return
	}
	switch b {
	case tea.MouseWheelUp:
		m.transcript.scroll(-3)
	case tea.MouseWheelDown:
		m.transcript.scroll(3)
	}
}

// click folds or unfolds the trace under the pointer.
func (m *Model) click(x, y int) {
	if m.sheet != nil || y >= m.transcript.height || x >= m.transcript.width {
		return
	}
	if b := m.transcript.at(y); b != nil && b.trace != nil {
		m.fold(b, !b.open)
	}
}

// fold opens or closes a trace without moving what is above it.
func (m *Model) fold(b *block, open bool) {
	at := m.transcript.start()
	b.open = open
	b.touch()
	m.transcript.show(at)
	if open {
		m.transcript.reveal(m.transcript.index(b))
	}
}

// note adds a line of the client's own.
func (m *Model) note(s string) {
	m.transcript.add(new(block).set(clean(s)))
}

// resize takes a new size of the terminal.
func (m *Model) resize(w, h int) {
	m.width, m.height = max(w, 1), max(h, 1)
	m.arrange()
}

// arrange divides the screen. The input grows with its text up to a third of it.
func (m *Model) arrange() {
	t := &m.transcript
	t.width = m.width
	if m.hasSidebar() {
		t.width = m.width - sidebarWidth - 3
	}
	if rows := min(m.inputRows(), max(1, m.height/3)); m.in.Height() != rows || m.framed != m.width {
		m.framed = m.width
		m.in.SetWidth(m.width)
		m.in.SetHeight(rows)
		m.in, _ = m.in.Update(nil) // brings the cursor's line into the new frame
	}
	m.in.Placeholder = m.placeholder()
	t.height = max(0, m.height-m.in.Height()-m.chrome())
}

// placeholder says what the empty input takes.
func (m *Model) placeholder() string {
	switch {
	case m.mode == reasoning:
		return "Why not? The reason goes back to the proposer"
	case m.panel() != nil:
		return "A question waits above: its keys answer it; others type"
	}
	return "Ask something, or / for commands"
}

// inputRows is how many rows the input's text takes.
func (m *Model) inputRows() int {
	rows, room := 0, max(1, m.width-2)
	for line := range strings.SplitSeq(m.in.Value(), "\n") {
		if rows += 1 + width(line)/room; rows > m.height {
			break
		}
	}
	return rows
}

// chrome is the rows that are neither transcript nor input: the status always,
// a rule and the hint where there is room.
func (m *Model) chrome() int {
	switch {
	case m.height <= 2:
		return m.height - 1
	case m.height < 8:
		return 1
	}
	return 3
}

// Time.
type tickMsg struct {
	what string // "spin", "arm", "hold", "expire", "look", "start"
	gen  int
	ask  *block
}

// Delays of ticks.
const (
	spinEvery = 120 * time.Millisecond
	// armAfter keeps what a person was already typing from answering a question
	// that has just appeared.
	armAfter = 600 * time.Millisecond
	// holdFor is how long a letter must stand alone to answer a question.
	holdFor = 500 * time.Millisecond
)

func later(d time.Duration, t tickMsg) tea.Cmd {
	return tea.Tick(d, func(time.Time) tea.Msg { return t })
}

func (m *Model) tick(t tickMsg) tea.Cmd {
	switch t.what {
	case "spin":
		if t.gen == m.spinning && m.running() {
			m.spin++
			return later(spinEvery, t)
		}
	case "start":
		return m.starting(t.gen)
	case "look":
		if t.gen == m.looking {
			m.ask("overview")
		}
	case "arm":
		m.armed = m.armed || t.gen == m.armup
	case "hold":
		return m.letGo(t.gen)
	case "expire":
		m.settle(t.ask, "expired, so it is refused")
	}
	return nil
}

// running reports whether an answer is being waited for.
func (m *Model) running() bool { return len(m.turns) > 0 || m.waiting() }

func (m *Model) waiting() bool {
	for _, r := range m.pending {
		if r.what == "turn" {
			return true
		}
	}
	return false
}

// animate starts the spinner.
func (m *Model) animate() tea.Cmd {
	m.spinning++
	return later(spinEvery, tickMsg{what: "spin", gen: m.spinning})
}

// unsent is the input, and what was said while the daemon was away.
func (m *Model) unsent() string {
	var parts []string
	for _, b := range m.outbox {
		parts = append(parts, b.text())
	}
	text := m.in.Value()
	if m.mode == reasoning {
		text = m.kept
	}
	return strings.Join(append(parts, text), "\n")
}

// send numbers a message and hands it to the writer.
func (m *Model) send(msg proto.Message, r request) bool {
	if m.link == nil {
		return false
	}
	m.next++
	id := fmt.Sprintf("%s-%d", m.tag, m.next)
	msg.Meta = msg.Meta.With("ID", text(id)).With("SESSION-ID", text(m.opt.Session))
	if !m.link.send(msg) {
		return false
	}
	m.pending[id] = r
	return true
}
