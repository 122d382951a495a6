package proto

import (
	"fmt"

	"passepartout/internal/sexp"
)

// A Message is the content of one frame: the seeds' envelope. What a peer writes
// into Meta is a claim, never authority.
type Message struct {
	Kind    Kind
	Meta    sexp.Plist // :SESSION-ID :ID :TURN …
	Payload sexp.Plist // :ACTION or :SENSOR, and what belongs to it
	Depth   int        // as the peer says; the daemon keeps its own count
	Target  string     // of a :REQUEST that proposes an action, lower case
}

// Value is the message as data.
func (m Message) Value() sexp.Value {
	p := sexp.P(sexp.Keyword("TYPE"), m.Kind.Keyword())
	if m.Target != "" {
		p = p.With("TARGET", sexp.Keyword(fold(m.Target)))
	}
	if m.Meta.Len() > 0 {
		p = p.With("META", m.Meta.List())
	}
	if m.Depth > 0 {
		p = p.With("DEPTH", sexp.NewInt(int64(m.Depth)))
	}
	return p.With("PAYLOAD", m.Payload.List()).List()
}

// Session is the conversation the message belongs to, "" for none.
func (m Message) Session() string { return m.Meta.Text("SESSION-ID") }

// Do is the payload's :ACTION in lower case: "handshake", "message", "why".
func (m Message) Do() string { return unfold(string(m.Payload.Word("ACTION"))) }

// Sensor is the payload's :SENSOR in lower case: "user-input", "interrupt".
func (m Message) Sensor() string { return unfold(string(m.Payload.Word("SENSOR"))) }

// ParseMessage reads a frame's value as an envelope. Keys in lower case or
// without their colon are folded; other shapes are a [*FrameError].
func ParseMessage(v sexp.Value) (Message, error) {
	p, err := plist(v)
	if err != nil {
		return Message{}, &FrameError{"frame.shape", err}
	}
	if err := known(p, "TYPE", "META", "PAYLOAD", "DEPTH", "TARGET"); err != nil {
		return Message{}, &FrameError{"frame.shape", err}
	}
	t, _ := p.Get("TYPE")
	kind, ok := ParseKind(word(t))
	if !ok {
		return Message{}, frameErrorf("frame.shape", ":TYPE is %s: want :EVENT, :REQUEST, :RESPONSE, :STATUS, :LOG or :STREAM-CHUNK", printed(t))
	}
	m := Message{Kind: kind}
	if m.Meta, err = section(p, "META"); err != nil {
		return Message{}, err
	}
	if m.Payload, err = section(p, "PAYLOAD"); err != nil {
		return Message{}, err
	}
	if d, ok := p.Get("DEPTH"); ok {
		n, isInt := d.(sexp.Int)
		small, fits := n.Int64()
		if !isInt || !fits || small < 0 || small > 1<<20 {
			return Message{}, frameErrorf("frame.shape", ":DEPTH is %s: want a small count", brief(d))
		}
		m.Depth = int(small)
	}
	if tv, ok := p.Get("TARGET"); ok {
		m.Target = unfold(word(tv))
	}
	return m, nil
}

// section reads one part of the envelope, with its keyword values folded so that
// (:action handshake) and (:ACTION :HANDSHAKE) are one.
func section(p sexp.Plist, key sexp.Keyword) (sexp.Plist, error) {
	v, ok := p.Get(key)
	if !ok {
		return sexp.Plist{}, nil
	}
	s, err := plist(v)
	if err != nil {
		return sexp.Plist{}, &FrameError{"frame.shape", fmt.Errorf("%s: %w", key, err)}
	}
	for _, k := range [...]sexp.Keyword{"ACTION", "SENSOR", "STATUS", "DECISION"} {
		if v, ok := s.Get(k); ok && word(v) != "" {
			s = s.With(k, sexp.Keyword(fold(word(v))))
		}
	}
	return s, nil
}

func printed(v sexp.Value) string {
	if v == nil {
		return "missing"
	}
	return brief(v)
}

// ErrorMessage is the frame a peer gets before it is cut off, and the answer to
// a request that could not be met.
func ErrorMessage(code, text string) Message {
	return Message{Kind: Log, Payload: sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("ERROR"), sexp.Keyword("CODE"), code, sexp.Keyword("TEXT"), text)}
}
