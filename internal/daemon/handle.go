package daemon

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"passepartout/internal/agent"
	"passepartout/internal/flight"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// defaultSession is the conversation of clients that name none.
const defaultSession = "main"

// maxSessionName bounds what a client may call its conversation.
const maxSessionName = 128

// handle takes one message of a client. An error ends the connection; a message
// that is merely wrong gets a failed response.
func (d *Daemon) handle(c *conn, m proto.Message) error {
	session := m.Session()
	if session == "" {
		session = defaultSession
	}
	if len(session) > maxSessionName || strings.ContainsFunc(session, func(r rune) bool { return r < ' ' }) {
		return &proto.FrameError{Code: "frame.shape", Err: errors.New(":SESSION-ID: want a short name without control characters")}
	}
	switch m.Kind {
	case proto.Event:
		d.handleEvent(c, m, session)
	case proto.Request:
		d.handleRequest(c, m, session)
	case proto.Response, proto.Status, proto.Log, proto.StreamChunk, proto.KindInvalid:
		c.fail(m, "message.kind", fmt.Sprintf("a client may send :EVENT and :REQUEST, found :%s", m.Kind.Keyword()))
	}
	return nil
}

// handleEvent takes what a client perceived. Sensors of the kernel's own, such as
// tool output or a heartbeat, cannot be claimed by a client.
func (d *Daemon) handleEvent(c *conn, m proto.Message, session string) {
	if m.Do() == "hitl-respond" {
		d.answerQuestion(c, m)
		return
	}
	switch m.Sensor() {
	case "user-input", "chat-message":
		d.catchUp()
		body := sexp.P(sexp.Keyword("SENSOR"), sexp.Keyword("USER-INPUT"), sexp.Keyword("TEXT"), m.Payload.Text("TEXT"))
		if attached := m.Payload.Text("ATTACHED"); attached != "" {
			body = body.With("ATTACHED", sexp.String(attached))
		}
		d.submit(c, m, session, proto.Event, body)
	case "repl-eval":
		d.askFor("repl-eval", asking{c, m, session})
	case "point-update":
		d.pointUpdate(c, m, session)
	case "interrupt":
		stopped := d.agent.Interrupt(session)
		text := "Nothing was running."
		if stopped {
			text = "Stopping."
		}
		c.answer(m, sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("INTERRUPT"), sexp.Keyword("TEXT"), text, sexp.Keyword("STATUS"), sexp.Keyword("DONE")))
	default:
		c.fail(m, "event.sensor", fmt.Sprintf("a client may report :USER-INPUT, :CHAT-MESSAGE, :REPL-EVAL, :POINT-UPDATE and :INTERRUPT, found %q", m.Sensor()))
	}
}

// catchUp lets a note that was saved just now count for what is said next. What
// takes longer is found by the watcher as ever.
func (d *Daemon) catchUp() {
	ctx, cancel := context.WithTimeout(context.Background(), catchUpFor)
	defer cancel()
	d.memory.CatchUp(ctx)
}

const catchUpFor = 250 * time.Millisecond

// handleRequest takes a client's own proposal, which goes through the gates like
// any other, or a question about the daemon.
func (d *Daemon) handleRequest(c *conn, m proto.Message, session string) {
	if m.Target != "" {
		proposal := proto.Message{Kind: proto.Request, Target: m.Target, Payload: m.Payload}.Value()
		d.submit(c, m, session, proto.Request, sexp.P(sexp.Keyword("SENSOR"), sexp.Keyword("CLIENT-REQUEST"), sexp.Keyword("PROPOSAL"), proposal))
		return
	}
	switch m.Do() {
	case "hitl-respond":
		d.answerQuestion(c, m)
		return
	case "answer":
		d.answerInquiry(c, m)
		return
	}
	d.ask(asking{c, m, session})
}

// submit makes a signal of a client's message. Its origin is the connection's,
// whatever the message says.
func (d *Daemon) submit(c *conn, m proto.Message, session string, k proto.Kind, body sexp.Plist) {
	d.hub.join(c, session)
	sig := proto.Signal{ID: d.newID("s"), Kind: k, Origin: c.origin, Session: session, At: time.Now(), Body: body}
	if err := d.agent.Submit(sig, c.asked(m)); err != nil {
		code := "submit.refused"
		if errors.Is(err, agent.ErrBusy) {
			code = "submit.busy"
		}
		c.fail(m, code, err.Error())
	}
}

// recentPlans is how many ended plans clients are shown.
const recentPlans = 20

// answerApprovals gives the open questions, what is being carried out, and how the
// last ones ended.
func answerApprovals(_ context.Context, d *Daemon, _ asking) (sexp.Plist, error) {
	var asked []sexp.Value
	for _, q := range d.agent.Inquiries() {
		asked = append(asked, q.Plist().List())
	}
	return sexp.P(
		sexp.Keyword("PENDING"), sexp.NewList(d.agent.Shown()...), sexp.Keyword("QUESTIONS"), sexp.NewList(asked...),
		sexp.Keyword("RUNNING"), fates(d.plans.Running()), sexp.Keyword("ENDED"), fates(d.plans.Ended(recentPlans))), nil
}

// fates are plans in one sentence each.
func fates(plans []flight.Plan) sexp.List {
	out := make([]sexp.Value, len(plans))
	for i, p := range plans {
		out[i] = sexp.P(
			sexp.Keyword("TOKEN"), p.Token, sexp.Keyword("NAME"), p.Name(), sexp.Keyword("STATE"), sexp.Keyword(p.State.String()),
			sexp.Keyword("TEXT"), p.Fate(), sexp.Keyword("RESULT"), p.Result).List()
	}
	return sexp.NewList(out...)
}

// answerInquiry takes what a person says to a question the agent put: the number
// of an option, or any text. The turn that follows is the reply.
func (d *Daemon) answerInquiry(c *conn, m proto.Message) {
	said := m.Payload.Text("TEXT")
	if n, ok := m.Payload.Get("CHOICE"); ok && said == "" {
		said = n.String()
	}
	for _, q := range d.agent.Inquiries() {
		if q.Token == m.Payload.Text("TOKEN") {
			d.hub.join(c, q.Session) // who answers wants to see what follows
		}
	}
	if _, err := d.agent.Tell(m.Payload.Text("TOKEN"), said, c.origin, c.asked(m)); err != nil {
		c.fail(m, "answer.refused", err.Error())
	}
}

// answerQuestion takes a person's answer to an approval.
func (d *Daemon) answerQuestion(c *conn, m proto.Message) {
	token := m.Payload.Text("TOKEN")
	var yes bool
	switch m.Payload.Word("DECISION") {
	case "APPROVED":
		yes = true
	case "DENIED":
	default:
		c.fail(m, "approval.decision", ":DECISION: want :APPROVED or :DENIED")
		return
	}
	scope, err := flight.ParseScope(string(m.Payload.Word("SCOPE")))
	if err != nil {
		c.fail(m, "approval.scope", ":SCOPE: "+err.Error())
		return
	}
	p, ok := d.plans.Get(token)
	if ok && !p.State.Ended() {
		d.hub.join(c, p.Session) // who answers wants to see what follows
	}
	text, err := d.agent.Answer(token, flight.Answer{Yes: yes, Scope: scope, Reason: m.Payload.Text("REASON"), By: c.origin})
	if err != nil {
		c.fail(m, "approval.refused", err.Error())
		return
	}
	c.answer(m, sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("HITL-RESPOND"), sexp.Keyword("TEXT"), text, sexp.Keyword("TURN"), p.Turn.Text("ID"), sexp.Keyword("STATUS"), sexp.Keyword("DONE")))
}
