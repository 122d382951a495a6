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

// readQuestion takes an open approval. Everything in it is revealed: a person
// decides by it.
func readQuestion(p sexp.Plist, loc *time.Location) *question {
	q := &question{token: reveal(p.Text("TOKEN")), name: reveal(p.Text("NAME")), why: reveal(p.Text("WHY"))}
	for _, a := range p.Sub("ARGS").Pairs() {
		value := a.Value.String()
		if s, ok := a.Value.(sexp.String); ok {
			value = string(s)
		}
		q.args = append(q.args, reveal(string(a.Key))+" "+reveal(value))
	}
	v, _ := p.Get("REASONS")
	l, _ := v.(sexp.List)
	for _, r := range l.Items() {
		if s, ok := r.(sexp.String); ok {
			q.reasons = append(q.reasons, reveal(string(s)))
		}
	}
	q.class = reveal(p.Text("CLASS"))
	q.preview = previewLines(p.Sub("PREVIEW"))
	if t, err := time.Parse(time.RFC3339, p.Text("EXPIRES")); err == nil {
		q.expires = t.In(loc)
	}
	return q
}

// maxPreview is how many lines of a trial the panel shows.
const maxPreview = 40

// previewLines is what a trial of the action changed: the differences are text of
// files, so they are revealed like everything else here.
func previewLines(p sexp.Plist) []string {
	text := p.Text("TEXT")
	if text == "" {
		return nil
	}
	lines := []string{reveal(text)}
	v, _ := p.Get("CHANGED")
	l, _ := v.(sexp.List)
	for _, c := range l.Items() {
		if s, ok := c.(sexp.String); ok {
			lines = append(lines, reveal(string(s)))
		}
	}
	if diff := strings.TrimRight(p.Text("DIFF"), "\n"); diff != "" {
		for line := range strings.SplitSeq(diff, "\n") {
			lines = append(lines, reveal(line))
		}
	}
	if left := len(lines) - maxPreview; left > 0 {
		lines = append(lines[:maxPreview], fmt.Sprintf("… %d more lines: passepartout approvals", left))
	}
	return lines
}

// question shows an approval that is asked for.
func (m *Model) question(turn string, p sexp.Plist) tea.Cmd {
	token := reveal(p.Text("TOKEN"))
	if token == "" || m.done[token] || slices.ContainsFunc(m.asks, func(b *block) bool { return b.ask.token == token }) {
		return nil
	}
	now := m.opt.Now()
	q := readQuestion(p, now.Location())
	if s := clean(oneLine(p.Text("SESSION-ID"))); s != m.opt.Session {
		q.session = s
	}
	b := m.transcript.add(&block{kind: askBlock, turn: turn, ask: q})
	m.asks = append(m.asks, b)
	cmds := []tea.Cmd{m.disarm()}
	if !q.expires.IsZero() {
		cmds = append(cmds, later(q.expires.Sub(now), tickMsg{what: "expire", ask: b}))
	}
	return tea.Batch(cmds...)
}

// disarm makes the panel deaf for a moment.
func (m *Model) disarm() tea.Cmd {
	m.armed = false
	m.armup++
	return later(armAfter, tickMsg{what: "arm", gen: m.armup})
}

// questions compares the panel with what the daemon says is open.
func (m *Model) questions(p sexp.Plist) tea.Cmd {
	open := plists(p, "PENDING")
	for _, b := range slices.Clone(m.asks) {
		if !slices.ContainsFunc(open, func(q sexp.Plist) bool { return reveal(q.Text("TOKEN")) == b.ask.token }) {
			m.settle(b, "answered elsewhere or expired")
		}
	}
	var cmds []tea.Cmd
	for _, q := range open {
		cmds = append(cmds, m.question("", q))
	}
	return tea.Batch(cmds...)
}

// settle closes a question on the screen.
func (m *Model) settle(b *block, how string) {
	i := slices.Index(m.asks, b)
	if i < 0 {
		return
	}
	m.asks = slices.Delete(m.asks, i, i+1)
	b.ask.state = how
	b.touch()
	if m.mode == reasoning && i == 0 {
		m.endReason()
	}
}

// panel is the question that takes the keys, or nil.
func (m *Model) panel() *block {
	if len(m.asks) == 0 {
		return nil
	}
	return m.asks[0]
}

// read reports whether a question has been on the screen from its first line to
// its last. One that has not cannot be allowed by a key.
func (m *Model) read(b *block) bool {
	from, to := m.transcript.span(m.transcript.index(b))
	return (b.ask.begun || from >= 0) && to > 0 && to <= m.transcript.height
}

// readOn shows the next part of a question.
func (m *Model) readOn(b *block) {
	i := m.transcript.index(b)
	if from, to := m.transcript.span(i); b.ask.begun && from <= 0 && to > m.transcript.height {
		m.transcript.scroll(max(1, m.transcript.height-1))
		return
	}
	b.ask.begun = true
	m.transcript.show(place{i, 0})
}

// panelKey lets the open question have a key. It reports whether it was taken.
func (m *Model) panelKey(k string) (tea.Cmd, bool) {
	b := m.panel()
	if b != nil && k == "enter" && m.held != "" {
		return m.letGo(m.holding), true // "y" and Enter: no need to wait
	}
	if b == nil || m.mode != chatting || m.in.Value() != "" {
		m.held = ""
		return nil, false
	}
	_, yes := consents[strings.ToLower(k)]
	switch k {
	case "n", "N", "esc", "r", "R":
	default:
		if !yes {
			return nil, false
		}
	}
	if !m.armed {
		return nil, true // swallowed: it was typed before the question could be read
	}
	if len(k) == 1 {
		return m.hold(k), true
	}
	return m.answerBy(b, k), true
}

// hold keeps a letter for a moment. Alone it answers the question; when more follows
// it was the beginning of a message, and no "summarise" may allow anything.
func (m *Model) hold(k string) tea.Cmd {
	m.holding++
	m.held = k
	m.in.SetValue(k)
	return later(holdFor, tickMsg{what: "hold", gen: m.holding})
}

// letGo answers by the letter that was held, if it stayed alone.
func (m *Model) letGo(gen int) tea.Cmd {
	b, k := m.panel(), m.held
	if gen != m.holding || k == "" {
		return nil
	}
	m.held = ""
	if b == nil || m.mode != chatting || m.in.Value() != k {
		return nil
	}
	m.in.Reset()
	if !m.armed {
		return nil // another question came in between
	}
	return m.answerBy(b, k)
}

// answerBy answers a question by a key.
func (m *Model) answerBy(b *block, k string) tea.Cmd {
	say, yes := consents[strings.ToLower(k)]
	switch {
	case yes && !m.read(b):
		m.readOn(b)
		return nil
	case yes && say != "once" && b.ask.class == "":
		m.hint = "No class of actions is like this one: it can only be allowed once"
		return nil
	case yes:
		return m.respond(b, answer{yes: true, scope: say})
	case k != "r" && k != "R":
		return m.respond(b, answer{})
	}
	m.kept, m.mode = m.in.Value(), reasoning
	m.in.Reset()
	return nil
}

// endReason gives the input back to the conversation.
func (m *Model) endReason() {
	m.mode = chatting
	m.in.SetValue(m.kept)
	m.kept = ""
}

// consents are the keys that allow, and how far each reaches.
var consents = map[string]string{"y": "once", "enter": "once", "s": "session", "m": "rule"}

// An answer is what a person says to a question. The zero answer is no.
type answer struct {
	yes    bool
	scope  string // of a yes: once, session or rule
	reason string // of a no
}

// state is how the question looks once it is answered.
func (a answer) state() string {
	switch {
	case !a.yes && a.reason != "":
		return "denied by you: " + oneLine(a.reason)
	case !a.yes:
		return "denied by you"
	case a.scope == "session":
		return "allowed by you for this session"
	case a.scope == "rule":
		return "allowed once by you, with a rule on trial"
	}
	return "allowed once by you"
}

// respond answers a question.
func (m *Model) respond(b *block, a answer) tea.Cmd {
	decision, scope := "DENIED", "ONCE"
	if a.yes {
		decision, scope = "APPROVED", strings.ToUpper(a.scope)
	}
	state := a.state()
	sent := m.send(proto.Message{Kind: proto.Request, Payload: sexp.P(
		word("ACTION"), word("HITL-RESPOND"), word("TOKEN"), b.ask.token,
		word("DECISION"), word(decision), word("SCOPE"), word(scope), word("REASON"), a.reason)}, request{what: "hitl-respond", block: b})
	if !sent {
		m.hint = "The daemon cannot be reached, so nothing was answered."
		return nil
	}
	m.settle(b, state)
	m.done[b.ask.token] = true
	if b.ask.session != "" {
		m.heard[b.ask.session] = true
	}
	if len(m.asks) > 0 {
		return m.disarm()
	}
	return nil
}

// respondTo answers the question of that token, or the only one there is.
func (m *Model) respondTo(args []string, yes bool) tea.Cmd {
	if len(m.asks) == 0 {
		m.note("Nothing waits for approval.")
		return nil
	}
	if len(args) == 0 && len(m.asks) > 1 {
		m.note("Several actions wait, so say which: " + strings.Join(m.tokens(), ", ") + ".")
		return nil
	}
	a := answer{yes: yes, scope: "once"}
	if len(args) == 0 {
		return m.respond(m.asks[0], a)
	}
	switch rest := strings.Join(args[1:], " "); {
	case !yes:
		a.reason = rest
	case slices.Contains(scopeNames, rest):
		a.scope = rest
	case rest != "":
		m.note("A yes reaches once, session or rule: /approve " + clean(args[0]) + " session.")
		return nil
	}
	for _, b := range m.asks {
		if b.ask.token == args[0] {
			return m.respond(b, a)
		}
	}
	m.note("Nothing of the name " + args[0] + " waits for approval.")
	return nil
}

// scopeNames are how far a yes can reach.
var scopeNames = []string{"once", "session", "rule"}

func (m *Model) tokens() []string {
	out := make([]string, len(m.asks))
	for i, b := range m.asks {
		out[i] = b.ask.token
	}
	return out
}
