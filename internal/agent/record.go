package agent

import (
	"fmt"
	"strings"
	"time"

	"passepartout/internal/act"
	"passepartout/internal/gate"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// record writes a ruling to the journal, on disk before it returns when an effect
// will follow, and shows its trace to the session's clients.
func (t *turn) record(r gate.Ruling, durable bool) (proto.ID, error) {
	id := t.a.NewID("a")
	entry := sexp.P(
		sexp.Keyword("KIND"), sexp.Keyword("RULING"), sexp.Keyword("ID"), string(id), sexp.Keyword("TURN"), string(t.id),
		sexp.Keyword("ACTION"), r.Action().Plist(), sexp.Keyword("TRACE"), r.Trace(), sexp.Keyword("FACTS"), r.Facts())
	entry = t.a.clean(entry)
	write := t.a.Journal.Note
	if durable {
		write = t.a.Journal.Append
	}
	if err := write(entry); err != nil {
		return "", err
	}
	t.emit(proto.Event, sexp.P(
		sexp.Keyword("ACTION"), sexp.Keyword("GATE-TRACE"), sexp.Keyword("ID"), string(id),
		sexp.Keyword("NAME"), r.Action().Name(), sexp.Keyword("ARGS"), entry.Sub("ACTION").Sub("ARGS"),
		sexp.Keyword("TRACE"), entry.Sub("TRACE")))
	return id, nil
}

func (a *Agent) signalEntry(s proto.Signal) sexp.Plist {
	return a.clean(sexp.P(
		sexp.Keyword("KIND"), sexp.Keyword("SIGNAL"), sexp.Keyword("ID"), string(s.ID),
		sexp.Keyword("AT"), s.At.UTC().Format(time.RFC3339Nano), sexp.Keyword("SESSION"), s.Session,
		sexp.Keyword("ORIGIN"), s.Origin.Plist(), sexp.Keyword("TAINT"), taintPlist(s.Taint),
		sexp.Keyword("TYPE"), s.Kind.Keyword(), sexp.Keyword("BODY"), s.Body))
}

// summary is how much of an outcome the journal keeps.
const summary = 2000

// short is a text as the journal keeps it.
func short(text string) string {
	if len(text) > summary {
		return strings.ToValidUTF8(text[:summary], "") + "…"
	}
	return text
}

// outcomeEntry is how an action went. What it read of private notes is not part of
// it: the journal is kept and shown for other reasons than the notes are.
func (t *turn) outcomeEntry(ruling proto.ID, o act.Outcome) sexp.Plist {
	text := short(o.Text)
	if o.Taint.Private {
		text = fmt.Sprintf("(%d bytes with private text, not recorded)", len(o.Text))
	}
	p := sexp.P(
		sexp.Keyword("KIND"), sexp.Keyword("OUTCOME"), sexp.Keyword("RULING"), string(ruling),
		sexp.Keyword("SESSION"), t.s.name, sexp.Keyword("TURN"), string(t.id),
		sexp.Keyword("AT"), t.a.Now().UTC().Format(time.RFC3339Nano), sexp.Keyword("OK"), o.OK, sexp.Keyword("TEXT"), text,
		sexp.Keyword("TAINT"), taintPlist(o.Taint))
	if len(o.Changed) > 0 {
		p = p.With("CHANGED", sexp.Strings(o.Changed))
	}
	if o.Detail.Len() > 0 {
		p = p.With("DETAIL", o.Detail.List())
	}
	return t.a.clean(p)
}

// recordReply keeps how a turn ended whose end no ruling tells, and what the session
// must be kept from. That it fails changes nothing of the end: the person is told.
func (t *turn) recordReply(r Result, text string) {
	err := t.a.Journal.Note(t.a.clean(t.a.sessionEntry("REPLY", t.s, t.id).
		With("STATUS", sexp.Keyword(r)).With("TEXT", sexp.String(short(text))).With("TAINT", taintPlist(t.s.taint).List())))
	if err != nil {
		t.s.log("the reply could not be recorded: %v", err)
	}
}

func (t *turn) answerEntry(token string, yes bool, reason string, by proto.Origin) sexp.Plist {
	return t.a.clean(sexp.P(
		sexp.Keyword("KIND"), sexp.Keyword("ANSWER"), sexp.Keyword("TOKEN"), token, sexp.Keyword("SESSION"), t.s.name, sexp.Keyword("YES"), yes,
		sexp.Keyword("REASON"), reason, sexp.Keyword("BY"), by.Plist(), sexp.Keyword("AT"), t.a.Now().UTC().Format(time.RFC3339Nano)))
}

// clean removes credentials from every string that will be kept.
func (a *Agent) clean(p sexp.Plist) sexp.Plist {
	pairs := make([]sexp.Pair, 0, p.Len())
	for _, e := range p.Pairs() {
		pairs = append(pairs, sexp.Pair{Key: e.Key, Value: a.cleanValue(e.Value)})
	}
	out, err := sexp.NewPlist(pairs...)
	if err != nil {
		return sexp.Plist{} // unreachable: the keys are those of a property list
	}
	return out
}

func (a *Agent) cleanValue(v sexp.Value) sexp.Value {
	switch v := v.(type) {
	case sexp.String:
		return sexp.String(a.Redact(string(v)))
	case sexp.List:
		items := make([]sexp.Value, v.Len())
		for i, x := range v.Items() {
			items[i] = a.cleanValue(x)
		}
		return sexp.NewDotted(items, v.Tail())
	default:
		return v
	}
}

// meta says which session and turn a frame belongs to.
func (t *turn) meta() sexp.Plist {
	m := sexp.P(sexp.Keyword("SESSION-ID"), t.s.name, sexp.Keyword("TURN"), string(t.id))
	if t.replyTo != nil {
		m = m.With("IN-REPLY-TO", t.replyTo)
	}
	return m
}

func (t *turn) emit(k proto.Kind, payload sexp.Plist) {
	t.a.Emit(t.s.name, proto.Message{Kind: k, Meta: t.meta(), Payload: payload, Depth: t.sig.Depth})
}

func (t *turn) status(s sexp.Keyword) {
	t.emit(proto.Status, sexp.P(sexp.Keyword("STATUS"), s))
}

// perceived tells a session's clients that its turn has begun. Those who did not
// say it themselves learn what was said, and over which channel.
func (t *turn) perceived() {
	p := sexp.P(sexp.Keyword("STATUS"), sexp.Keyword("PERCEIVED"))
	if t.sig.Sensor() == "user-input" && t.sig.Depth == 0 {
		p = p.With("SAID", sexp.String(t.a.Redact(t.sig.Text()))).With("OVER", sexp.String(t.sig.Origin.Channel))
	}
	t.emit(proto.Status, p)
}

func (t *turn) ask(q Question) {
	t.emit(proto.Event, t.a.clean(q.Plist()).With("ACTION", sexp.Keyword("APPROVAL-REQUIRED")))
}

func (t *turn) reply(r Result, text string) {
	t.emit(proto.Response, sexp.P(
		sexp.Keyword("ACTION"), sexp.Keyword("MESSAGE"), sexp.Keyword("TEXT"), text, sexp.Keyword("STATUS"), sexp.Keyword(r)))
}
