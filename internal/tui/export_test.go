package tui

import (
	"errors"

	"passepartout/internal/proto"
)

// Names for tests outside the package.
var (
	Clean  = clean
	Reveal = reveal
	Fuzzy  = fuzzy
	ASCII  = ascii
)

type deadConn struct{}

func (deadConn) Send(proto.Message) error { return errors.New("not a real connection") }
func (deadConn) Receive() (proto.Message, error) {
	return proto.Message{}, errors.New("not a real connection")
}
func (deadConn) Close() error { return nil }

// Join connects the model to a link without goroutines, so that tests see what it
// sends in the order it does.
func (m *Model) Join() {
	m.joined(&link{conn: deadConn{}, in: make(chan proto.Message), out: make(chan proto.Message, outQueue), stop: make(chan struct{})})
}

// Lose ends the connection.
func (m *Model) Lose() { m.Update(lostMsg{m.link}) }

// Sent is what has been sent since the last look.
func (m *Model) Sent() []proto.Message {
	var out []proto.Message
	for m.link != nil {
		select {
		case f := <-m.link.out:
			out = append(out, f)
		default:
			return out
		}
	}
	return out
}

// Feed takes frames as if they had arrived.
func (m *Model) Feed(frames ...proto.Message) { m.Update(framesMsg{m.link, frames}) }

// LetGo lets the time pass after which a letter that stands alone is an answer.
func (m *Model) LetGo() { m.Update(tickMsg{what: "hold", gen: m.holding}) }

// Arm lets the time pass after which a question takes keys.
func (m *Model) Arm() { m.Update(tickMsg{what: "arm", gen: m.armup}) }

// Input is what stands in the input.
func (m *Model) Input() string { return m.in.Value() }

// Unsent is what would be kept as a draft.
func (m *Model) Unsent() string { return m.unsent() }

// Running reports whether an answer is waited for.
func (m *Model) Running() bool { return m.running() }

// Fill adds answers until the transcript has about so many lines.
func (m *Model) Fill(blocks int, text string) {
	for range blocks {
		b := m.newAnswer("t")
		b.status = "done"
		b.set(text)
	}
}

// Laid is how many lines of layout are kept.
func (m *Model) Laid() int {
	n := 0
	for _, b := range m.transcript.blocks {
		n += len(b.lines)
	}
	return n
}

// Layout lays text out as an answer would be, whole.
func Layout(text string, width int) []string {
	var m markup
	return m.update(newLook("mono", false), width, text)
}

// LayoutStream lays text out as it arrives in pieces.
func LayoutStream(pieces []string, width int) []string {
	var m markup
	l, text := newLook("mono", false), ""
	var out []string
	for _, p := range pieces {
		text += p
		out = m.update(l, width, text)
	}
	return out
}

// HistoryRound writes entries and reads them back.
func HistoryRound(file string, entries []string) ([]string, error) {
	for _, e := range entries {
		if cmd := appendHistory(file, e); cmd != nil {
			if s, ok := cmd().(savedMsg); ok && s.err != nil {
				return nil, s.err
			}
		}
	}
	return readHistory(file)
}

// Restore reads history and draft.
func (m *Model) Restore() error { return m.restore() }

// WriteDraft keeps unsent input.
var WriteDraft = writeDraft

// Size is the terminal's size as the model knows it.
func (m *Model) Size() (w, h int) { return m.width, m.height }

// Failures is how often in a row the daemon could not be kept.
func (m *Model) Failures() int { return m.failures }

// Highlight is a line of code put together again from its spans.
func Highlight(lang, line string) string {
	out := ""
	for _, s := range highlight(lang, line) {
		out += s.text
	}
	return out
}

// GaugeRole names the colour of a gauge.
func GaugeRole(tokens, limit int) string {
	_, r := newLook("mono", false).gauge(tokens, limit, 10)
	return map[role]string{roleOK: "ok", roleWarn: "warn", roleHigh: "high", roleDeny: "deny"}[r]
}

// Look lets the time pass after which the client looks again at what goes on.
func (m *Model) Look() { m.Update(tickMsg{what: "look", gen: m.looking}) }

// Wait lets the time pass after which the start of the daemon is looked at again.
func (m *Model) Wait() { m.Update(tickMsg{what: "start", gen: m.try}) }
