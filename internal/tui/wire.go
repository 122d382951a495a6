package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

func word(s string) sexp.Keyword { return sexp.Keyword(s) }
func text(s string) sexp.String  { return sexp.String(s) }

// health is what the daemon says about itself.
type health struct {
	memex, policy            string
	headings, journal, gates int
	clients                  int
	started                  time.Time
}

// connection takes what the link reports.
func (m *Model) connection(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case dialedMsg:
		return m.dialed(msg)
	case redialMsg:
		if msg.try == m.try && m.link == nil {
			return m.redial()
		}
	case framesMsg:
		if msg.link != m.link {
			return nil
		}
		m.failures, m.proved = 0, true
		cmds := []tea.Cmd{msg.link.listen}
		for _, f := range msg.frames {
			cmds = append(cmds, m.frame(f))
		}
		return tea.Batch(cmds...)
	case lostMsg:
		if msg.link == m.link {
			return m.lost()
		}
	}
	return nil
}

// dialed takes the outcome of a dial. After a success it asks for what the screen
// shows and says what was typed meanwhile.
func (m *Model) dialed(msg dialedMsg) tea.Cmd {
	if msg.try != m.try || m.link != nil {
		if msg.conn != nil {
			msg.conn.Close() //nolint:errcheck // a newer one is in use
		}
		return nil
	}
	if msg.err != nil {
		m.down = clean(oneLine(msg.err.Error()))
		return m.redialLater()
	}
	return m.joined(newLink(msg.conn))
}

// redialLater tries again after a while that grows with each failure.
func (m *Model) redialLater() tea.Cmd {
	m.failures++
	try := m.try
	return tea.Tick(delay(m.failures), func(time.Time) tea.Msg { return redialMsg{try} })
}

func (m *Model) joined(l *link) tea.Cmd {
	m.link = l
	if m.failures > 0 || m.down == lostNote {
		m.note("Connected again.")
	}
	m.down, m.proved, m.over.work = "", false, nil
	m.ask("listen")
	m.refresh()
	return tea.Batch(l.listen, m.flush())
}

const lostNote = "the daemon went away"

// lost takes the end of a connection. What was not answered may have been done
// already, so nothing is sent twice by itself.
func (m *Model) lost() tea.Cmd {
	m.link.close()
	m.link, m.down = nil, lostNote
	for _, r := range m.pending {
		if r.what == "turn" {
			m.note("The daemon went away before it answered. It may or may not have acted; press Up to ask again.")
			break
		}
	}
	clear(m.pending)
	clear(m.turns)
	if !m.proved { // a daemon that hangs up at once would keep us busy
		return m.redialLater()
	}
	return m.redial()
}

// ask sends a request about the daemon itself.
func (m *Model) ask(action string) {
	m.send(proto.Message{Kind: proto.Request, Payload: sexp.P(word("ACTION"), word(strings.ToUpper(action)))}, request{what: action})
}

// refresh asks for what the side bar and the panel show.
func (m *Model) refresh() {
	m.ask("health-check")
	m.ask("approvals")
	m.ask("overview")
}

// say shows the user's words and sends them, now or when the daemon is back.
func (m *Model) say(s string) tea.Cmd {
	b := m.transcript.add(&block{kind: userBlock, status: "not sent yet"}).set(s)
	m.transcript.away = false
	m.outbox = append(m.outbox, b)
	return m.flush()
}

// flush sends what waits.
func (m *Model) flush() tea.Cmd {
	var cmd tea.Cmd
	for len(m.outbox) > 0 {
		b := m.outbox[0]
		msg := proto.Message{Kind: proto.Event, Payload: sexp.P(word("SENSOR"), word("USER-INPUT"), word("TEXT"), b.text())}
		if !m.send(msg, request{what: "turn", block: b}) {
			return cmd
		}
		m.outbox = m.outbox[1:]
		b.status = ""
		b.touch()
		if m.began.IsZero() || len(m.turns) == 0 {
			m.began = m.opt.Now()
		}
		cmd = m.animate()
	}
	return cmd
}

// frame takes one message of the daemon.
func (m *Model) frame(f proto.Message) tea.Cmd {
	if s := f.Session(); s != "" && s != m.opt.Session {
		if f.Do() != "approval-required" && !m.mine(f) && !m.heard[s] {
			return nil
		}
		if f.Kind == proto.Response && f.Do() == "message" {
			delete(m.heard, s)
		}
	}
	turn := f.Meta.Text("TURN")
	switch f.Kind {
	case proto.Status:
		m.saidElsewhere(f, turn)
		return m.status(turn, string(f.Payload.Word("STATUS")))
	case proto.StreamChunk:
		if reset, ok := f.Payload.Get("RESET"); ok && !sexp.IsNil(reset) {
			m.retract(turn)
		}
		if out := f.Payload.Text("OUTPUT"); out != "" {
			m.printed(turn, out)
		}
		m.chunk(turn, f.Payload.Text("TEXT"))
	case proto.Event:
		switch f.Do() {
		case "gate-trace":
			m.resumed(turn)
			m.ruled(turn, readTrace(f.Payload))
		case "approval-required":
			return m.question(turn, f.Payload)
		case "work":
			return m.worked(f.Payload)
		}
	case proto.Response:
		return m.response(f, turn)
	case proto.Log:
		if f.Do() == "error" {
			m.note(fmt.Sprintf("The daemon refused a message: %s: %s", f.Payload.Text("CODE"), f.Payload.Text("TEXT")))
		} else if text := f.Payload.Text("TEXT"); text != "" { // a reminder, or what was refused at a channel
			m.note(text)
		}
	case proto.Request, proto.KindInvalid:
	}
	return nil
}

// saidElsewhere shows what was said in this conversation with another client.
func (m *Model) saidElsewhere(f proto.Message, turn string) {
	if said := f.Payload.Text("SAID"); said != "" && !m.mine(f) {
		m.transcript.add(&block{kind: userBlock, turn: turn, status: "over " + clean(f.Payload.Text("OVER"))}).set(clean(said))
	}
}

// ruled shows a ruling. That on an answer which is being streamed belongs to the
// answer's header.
func (m *Model) ruled(turn string, t *trace) {
	if b := m.streaming(turn); b != nil && b.trace == nil && t.speaks() {
		b.trace = t
		b.touch()
		return
	}
	m.transcript.add(&block{kind: traceBlock, turn: turn, trace: t})
}

// mine reports whether a frame answers a request of this client.
func (m *Model) mine(f proto.Message) bool {
	_, ok := m.pending[f.Meta.Text("IN-REPLY-TO")]
	return ok
}

func (m *Model) status(turn, status string) tea.Cmd {
	if status != "REQUIRES-APPROVAL" {
		m.resumed(turn)
	}
	start := !m.running()
	m.turns[turn] = status
	if start {
		m.began = m.opt.Now()
		return m.animate()
	}
	return nil
}

// resumed notices that a question was answered by somebody else: its turn goes on.
func (m *Model) resumed(turn string) {
	for _, b := range slices.Clone(m.asks) {
		if b.turn == turn && turn != "" {
			m.settle(b, "answered elsewhere")
		}
	}
}

// chunk adds streamed text to the answer of its turn.
func (m *Model) chunk(turn, s string) {
	if s == "" {
		return
	}
	b := m.streaming(turn)
	if b == nil {
		b = m.newAnswer(turn)
	}
	b.append(clean(s))
}

// printed shows what the turn's command prints, below the ruling that let it run.
func (m *Model) printed(turn, piece string) {
	for _, b := range slices.Backward(m.transcript.blocks) {
		if b.kind == traceBlock && b.turn == turn {
			b.trace.printed(piece)
			b.touch()
			return
		}
	}
}

// retract takes back what was streamed and is not the answer after all.
func (m *Model) retract(turn string) {
	if b := m.streaming(turn); b != nil {
		i := m.transcript.index(b)
		m.transcript.blocks = slices.Delete(m.transcript.blocks, i, i+1)
	}
}

// streaming is the turn's answer that has not ended, or nil.
func (m *Model) streaming(turn string) *block {
	for i := len(m.transcript.blocks) - 1; i >= 0; i-- {
		switch b := m.transcript.blocks[i]; {
		case b.kind == answerBlock && b.turn == turn && b.status == "":
			return b
		case b.kind == userBlock:
			return nil
		}
	}
	return nil
}

// response takes an answer: to a question of ours about the daemon, or to a turn.
func (m *Model) response(f proto.Message, turn string) tea.Cmd {
	id := f.Meta.Text("IN-REPLY-TO")
	r, ours := m.pending[id]
	delete(m.pending, id)
	switch {
	case f.Do() == "message":
		m.answered(turn, strings.ToLower(string(f.Payload.Word("STATUS"))), f.Payload.Text("TEXT"))
	case !ours:
	case f.Do() == "error":
		m.failed(r, f.Payload)
	case r.what == "health-check":
		m.healthy(f.Payload)
	case r.what == "overview":
		return m.looked(f.Payload)
	case r.sheet != nil:
		m.arrived(r.sheet, f.Payload)
	case r.what == "conversation":
		m.recalled(f.Payload)
	case r.what == "complete":
		m.completed(r.line, f.Payload)
	case r.what == "approvals":
		return m.questions(f.Payload)
	case r.what == "hitl-respond":
		// "Approved a-7." is on the screen already; a rule, or an offer of one, is not.
		if _, more, ok := strings.Cut(f.Payload.Text("TEXT"), ". "); ok {
			m.note(clean(more))
		}
	case r.what == "interrupt":
		m.hint = clean(f.Payload.Text("TEXT"))
	default:
		m.told(r.what, f.Payload)
	}
	return nil
}

// failed tells of a request that came to nothing, if a person made it.
func (m *Model) failed(r request, p sexp.Plist) {
	if r.sheet != nil {
		r.sheet.refused(p.Text("TEXT"))
		return
	}
	switch r.what {
	case "health-check", "approvals", "overview", "complete":
		return
	case "hitl-respond":
		r.block.ask.state = "the answer was refused"
		r.block.touch()
		delete(m.done, r.block.ask.token)
		m.ask("approvals")
	}
	m.note(fmt.Sprintf("That did not work: %s (%s).", p.Text("TEXT"), p.Text("CODE")))
}

// answered ends a turn on the screen.
func (m *Model) answered(turn, status, s string) {
	delete(m.turns, turn)
	m.refresh()
	if status == "pending" {
		if slices.ContainsFunc(m.asks, func(b *block) bool { return b.turn == turn }) {
			return // the panel says it better
		}
	} else {
		m.resumed(turn)
	}
	b := m.streaming(turn)
	if b == nil {
		if s == "" && status == "done" {
			return
		}
		b = m.newAnswer(turn)
	}
	b.status = status
	if s = clean(s); s != "" {
		b.set(s)
	}
	b.touch()
}

// newAnswer begins an answer. The ruling that let it be said moves to its header.
func (m *Model) newAnswer(turn string) *block {
	b := &block{kind: answerBlock, turn: turn}
	t := &m.transcript
	if n := len(t.blocks); n > 0 && t.blocks[n-1].kind == traceBlock && t.blocks[n-1].turn == turn && t.blocks[n-1].trace.speaks() {
		b.trace = t.blocks[n-1].trace
		t.blocks = t.blocks[:n-1]
	}
	return t.add(b)
}

func (m *Model) healthy(p sexp.Plist) {
	gates, _ := p.Get("GATES")
	l, _ := gates.(sexp.List)
	started, _ := time.Parse(time.RFC3339, p.Text("STARTED")) // shown only when it is a time
	m.health = health{
		memex: clean(oneLine(p.Text("MEMEX"))), policy: clean(oneLine(p.Text("POLICY"))), headings: p.Number("HEADINGS"), journal: p.Number("JOURNAL"),
		gates: l.Len(), clients: p.Number("CLIENTS"), started: started,
	}
}
