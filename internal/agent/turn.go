package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"passepartout/internal/act"
	"passepartout/internal/flight"
	"passepartout/internal/gate"
	"passepartout/internal/llm"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// A phase is where a turn stands.
type phase uint8

const (
	done phase = iota // the zero phase ends a turn rather than starting one
	perceiving
	thinking
	judging
	acting
	stepping // through a plan
)

// A Result is how a turn ended.
type Result string

// The results, as they stand in the terminal reply.
const (
	Done        Result = "DONE"        // the reply answers
	Denied      Result = "DENIED"      // gates refused every attempt
	Pending     Result = "PENDING"     // a person must approve
	Failed      Result = "FAILED"      // something broke, and the text says what
	Interrupted Result = "INTERRUPTED" // a person stopped it
	Dropped     Result = "DROPPED"     // the chain of signals grew too deep
)

// A turn is one signal on its way. It belongs to the goroutine that runs it.
type turn struct {
	a       *Agent
	s       *session
	id      proto.ID     // the first signal's; clients correlate by it
	sig     proto.Signal // the signal being answered now
	replyTo sexp.Value   // the client's own id of its message

	phase    phase
	attempts int
	action   proto.Action
	ruling   gate.Ruling
	approved bool   // ruling came from a person's answer and is not to be asked again
	token    string // of the plan being carried out, "" for none
	direct   bool   // a client proposed the action itself; no engine reasons about it
	refusal  bool   // the last thing proposed besides speaking was refused
	failure  bool   // the last thing done did not work
	ended    bool
	thought  bool   // the engine was asked
	talks    bool   // the signal is part of the conversation
	acted    bool   // something besides speaking was carried out
	spoke    bool   // the reply is a message whose ruling is on record
	aside    bool   // the reply is no part of the conversation
	shown    string // what clients were shown of the answer being judged
	extra    int    // calls of the same answer that nobody looked at
	large    bool   // a standing order asks for a large model
	preface  string // what a further question must begin with
	batch    *batch // the plan being carried out, nil for none

	only []string // tools the rest of the turn may use; nil: any
}

func (a *Agent) newTurn(s *session, sig proto.Signal, replyTo sexp.Value) *turn {
	return &turn{a: a, s: s, id: sig.ID, sig: sig, replyTo: replyTo, phase: perceiving, large: sig.Body.Word("TIER") == "REASONING"}
}

// guarded does what belongs to the turn. It recovers, because one turn's bug must not
// take the others with it. The plan that was being carried out has ended: nobody takes
// up after a restart what the person was told has failed.
func (t *turn) guarded(do func()) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		text := fmt.Sprintf("An internal error ended this turn: %v", p)
		if plan, ok := t.a.Plans.Get(t.token); ok && plan.State == flight.Started {
			t.planEnds(flight.Unknown, text)
		}
		t.planEnds(flight.Failed, "nothing was done: "+text)
		t.finish(Failed, text)
	}()
	do()
}

// run drives the turn to its end. It always replies.
func (t *turn) run(ctx context.Context) {
	for t.phase != done {
		if ctx.Err() != nil {
			t.stopped(context.Cause(ctx))
			break
		}
		switch t.phase {
		case perceiving:
			t.phase = t.perceive(ctx)
		case thinking:
			t.phase = t.think(ctx)
		case judging:
			t.phase = t.judge(ctx)
		case acting:
			t.phase = t.act(ctx)
		case stepping:
			t.phase = t.takeStep(ctx)
		case done:
		}
	}
	if !t.ended {
		t.finish(Failed, "This turn ended without a reply, which is a bug.")
	}
}

func (t *turn) stopped(cause error) {
	if errors.Is(cause, ErrInterrupted) {
		text := "Stopped."
		if t.batch != nil {
			text += " " + t.account("it was stopped")
			t.planEnds(flight.Failed, text)
		}
		t.planEnds(flight.Failed, "nothing was done: it was stopped before it began")
		t.finish(Interrupted, text)
		return
	}
	t.finish(Failed, fmt.Sprintf("The turn was cut short: %v.", cause))
}

// perceive records the signal and finds who answers it: the control words, a
// handler, the gates at once for a client's own proposal, or the engine.
func (t *turn) perceive(ctx context.Context) phase {
	if err := t.a.Journal.Note(t.a.signalEntry(t.sig)); err != nil {
		t.finish(Failed, fmt.Sprintf("The journal cannot be written, so nothing is done: %v.", err))
		return done
	}
	t.perceived()
	if t.sig.Sensor() == "heartbeat" {
		t.finish(Done, "")
		return done
	}
	if h, ok := t.a.Handlers[t.sig.Sensor()]; ok {
		return t.handled(h(ctx, t.sig))
	}
	if next, ok := t.ownWords(ctx); ok {
		return next
	}
	if t.sig.Sensor() == "user-input" && t.sig.Origin.Role == proto.RoleOwner {
		if text, ok := t.a.control(t.sig); ok {
			t.aside = true // no engine hears the word, nor what it gives
			t.finish(Done, text)
			return done
		}
	}
	if t.sig.Kind == proto.Request {
		return t.direction()
	}
	return t.listen()
}

func (t *turn) handled(text string, err error) phase {
	t.aside = true
	if err != nil {
		t.finish(Failed, fmt.Sprintf("The handler of %q failed: %v.", t.sig.Sensor(), err))
		return done
	}
	t.finish(Done, text)
	return done
}

// direction takes a client's own proposal straight to the gates.
func (t *turn) direction() phase {
	v, _ := t.sig.Body.Get("PROPOSAL")
	a, err := t.a.Table.Vocabulary().Decode(v, t.cause("client"))
	if err != nil {
		t.finish(Denied, fmt.Sprintf("The request was refused before it reached the gates: %v.", err))
		return done
	}
	t.action, t.direct = a, true
	return judging
}

// listen adds what was said to the conversation.
func (t *turn) listen() phase {
	if !listensTo(t.sig.Sensor()) {
		t.finish(Failed, fmt.Sprintf("Nothing here listens to the sensor %q.", t.sig.Sensor()))
		return done
	}
	text := t.sig.Text()
	if strings.TrimSpace(text) == "" {
		t.finish(Failed, "The message has no text.")
		return done
	}
	own := t.sig.Origin.Role == proto.RoleOwner && !t.sig.Taint.Untrusted // a forwarded message is not in the owner's words
	t.talks = true
	t.s.begin(t.id, own)
	t.s.hear(llm.Message{Role: llm.User, Text: llm.Attach(t.meant(text), t.sig.Body.Text("ATTACHED"))})
	if t.sig.Body.Text("ATTACHED") != "" {
		t.s.taint = t.s.taint.Join(proto.Taint{Untrusted: true})
	}
	// What was said is the number, not the option: its words are the engine's, and
	// must not pass for the person's own.
	if own {
		t.s.said = keep(append(t.s.said, t.a.Redact(text)), maxTalk) // it will be recorded
	} else {
		t.s.taint = t.s.taint.Join(proto.Taint{Untrusted: true})
	}
	return thinking
}

// listensTo says whether what a sensor brings is for an engine.
func listensTo(sensor string) bool {
	return slices.Contains([]string{"user-input", "chat-message", "scheduled", "hook"}, sensor)
}

// maxSeen is how many addresses of what was read are remembered.
const maxSeen = 200

// see remembers the addresses in a tool's result, so that showing them again is
// not mistaken for carrying something away.
func (s *session) see(out act.Outcome) {
	if out.Quiet {
		return
	}
	for _, l := range gate.Links(out.Text) {
		if !slices.Contains(s.seen, l) {
			s.seen = keep(append(s.seen, l), maxSeen)
		}
	}
}

// hear adds to the conversation. When it is too long a quarter of it goes at once,
// so that its beginning stays the same for many turns and a provider can keep it.
func (s *session) hear(m llm.Message) {
	if s.talk = append(s.talk, m); len(s.talk) > maxTalk {
		s.talk = keep(s.talk, maxTalk*3/4)
	}
}

// log remembers one line of what happened.
func (s *session) log(format string, args ...any) {
	s.logs = keep(append(s.logs, fmt.Sprintf(format, args...)), maxTalk)
}

func keep[T any](xs []T, most int) []T {
	if len(xs) <= most {
		return xs
	}
	return append([]T(nil), xs[len(xs)-most:]...)
}

func (t *turn) cause(proposer string) proto.Cause {
	return proto.Cause{Signal: t.sig.ID, Session: t.sig.Session, Origin: t.sig.Origin, Proposer: proposer}
}

func (t *turn) facts() gate.Facts {
	sig := t.sig
	sig.Taint = sig.Taint.Join(t.s.taint)
	return gate.Facts{Now: t.a.Now(), Signal: sig, Said: append([]string(nil), t.s.said...), Seen: append([]string(nil), t.s.seen...), Only: t.only, World: t.a.World}
}

// judge decides the action. What may be done is decided once more, and recorded,
// at the last moment; what may not is recorded here.
func (t *turn) judge(ctx context.Context) phase {
	t.status("REASONED")
	if t.action.Target() == act.PlanTarget {
		return t.judgePlan()
	}
	t.ruling = t.a.Chain().Decide(t.action, t.facts())
	switch t.ruling.Decision() {
	case gate.Allow:
		return acting
	case gate.Ask:
		return t.suspend(ctx)
	case gate.Deny:
	}
	id, err := t.record(t.ruling, false)
	if err != nil {
		t.finish(Failed, fmt.Sprintf("The refusal could not be recorded: %v.", err))
		return done
	}
	return t.refused(id, objections(t.ruling), codesOf(t.ruling))
}

// refused gives the objections back to the engine, or after the last attempt to
// the person.
func (t *turn) refused(id proto.ID, why string, codes []string) phase {
	t.attempts++
	t.s.log("%s: refused (%s)", t.action.Name(), strings.Join(codes, " "))
	t.refusal = t.reach() != proto.Speak
	if t.direct || t.attempts >= maxAttempts {
		text := t.preface + fmt.Sprintf("Refused: %s.\n%s", t.action.Name(), why)
		if id != "" {
			text += fmt.Sprintf("\nThe whole trace: passepartout why %s", id)
		}
		return t.giveUp(text)
	}
	t.retract()
	t.s.hear(llm.Message{Role: llm.Objection, Text: why + acceptable(codes...)})
	return thinking
}

func objections(r gate.Ruling) string {
	var lines []string
	for _, v := range r.Objections() {
		lines = append(lines, fmt.Sprintf("%s (%s): %s.", v.Gate, v.Code, strings.TrimSuffix(v.Reason, ".")))
	}
	return strings.Join(lines, "\n")
}

// act decides once more with the facts of now, records the ruling on disk, and
// only then redeems the permit.
func (t *turn) act(ctx context.Context) phase {
	r := t.ruling
	if !t.approved {
		r = t.a.Chain().Decide(t.action, t.facts())
	}
	t.ruling, t.approved = r, false
	if r.Decision() != gate.Allow {
		t.action = r.Action()
		return judging
	}
	out, ok := t.carryOut(ctx, r)
	if !ok {
		return done
	}
	return t.outcome(ctx, out)
}

// undone ends a turn whose action, though permitted, did not begin. Nobody may take
// the plan up later: the person has been told that nothing was done.
func (t *turn) undone(text string) {
	if t.batch != nil {
		text += " " + t.account("it did not begin")
	}
	t.planEnds(flight.Failed, text)
	t.finish(Failed, text)
}

// carryOut records a ruling, on disk when an effect will follow, and redeems its
// permit. When ok is false the turn has ended.
func (t *turn) carryOut(ctx context.Context, r gate.Ruling) (out act.Outcome, ok bool) {
	id, err := t.record(r, r.Action().Spec().Effect != proto.Speak)
	if err != nil {
		text := fmt.Sprintf("The ruling could not be recorded, so nothing was done: %v.", err)
		if t.acted {
			text = fmt.Sprintf("It was done, but what follows from it could not be recorded, so I went no further: %v.", err)
		}
		t.undone(text)
		return out, false
	}
	p, err := r.Permit()
	if err != nil {
		t.undone(fmt.Sprintf("No permit: %v.", err))
		return out, false
	}
	if err := t.planStarts(id); err != nil {
		t.undone(fmt.Sprintf("The plan could not be recorded, so nothing was done: %v.", err))
		return out, false
	}
	show := t.showOutput(r.Action())
	out, err = t.a.Table.Do(act.InTurn(ctx, act.Turn{ID: string(t.id), Step: string(id), Taint: t.facts().Signal.Taint, Output: show.piece}), p)
	show.close()
	t.acted = t.acted || r.Action().Spec().Effect != proto.Speak
	if err != nil {
		out = act.Failed("%s was not carried out: %v", r.Action().Name(), err)
	}
	t.only = gate.Narrow(t.only, out.Only)
	t.planDone(out)
	t.status("ACTED")
	if err := t.a.Journal.Note(t.outcomeEntry(id, out)); err != nil {
		t.finish(Failed, fmt.Sprintf("It was done, but the outcome could not be recorded: %v.", err))
		return out, false
	}
	return out, true
}

// outcome ends the turn with a delivered message, or gives a tool's result to the
// engine as the next, deeper signal.
func (t *turn) outcome(ctx context.Context, out act.Outcome) phase {
	t.s.taint = t.s.taint.Join(out.Taint)
	t.s.see(out)
	switch {
	case ctx.Err() != nil:
		t.stopped(context.Cause(ctx))
		return done
	case out.Quiet && out.OK && t.ruling.Action().Spec().Tool == "ask-human":
		args := t.ruling.Action().Args()
		t.spoke = true
		t.finish(Done, t.inquire(args.Text("QUESTION"), texts(args, "OPTIONS")).text())
		return done
	case out.Quiet || t.direct:
		t.spoke = true
		t.finish(t.result(out), out.Text)
		return done
	}
	t.refusal, t.failure = false, !out.OK
	tool := t.ruling.Action().Spec().Tool
	sensor := sexp.Keyword("TOOL-OUTPUT")
	if !out.OK {
		sensor = "TOOL-ERROR"
	}
	parent := t.sig
	t.sig = proto.Signal{
		ID: t.a.NewID("s"), Parent: parent.ID, Kind: proto.Event, Origin: parent.Origin, Session: parent.Session,
		Depth: parent.Depth + 1, Taint: parent.Taint.Join(out.Taint), At: t.a.Now(),
		Body: sexp.P(sexp.Keyword("SENSOR"), sensor, sexp.Keyword("TOOL"), tool, sexp.Keyword("TEXT"), out.Text),
	}
	text := out.Text
	if t.extra > 0 {
		text += fmt.Sprintf("\n(%d further calls of the same answer were not looked at. Propose one step at a time, or a plan of several.)", t.extra)
	}
	t.s.hear(llm.Message{Role: llm.ToolResult, Tool: tool, Text: text, OK: out.OK})
	t.s.log("%s: done, ok %t, %d bytes", t.ruling.Action().Name(), out.OK, len(out.Text))
	t.attempts, t.extra = 0, 0
	if t.sig.Depth > proto.MaxDepth {
		t.finish(Dropped, fmt.Sprintf("I stopped after %d steps without reaching an answer. The last step gave:\n%s", proto.MaxDepth, out.Text))
		return done
	}
	return thinking
}

// result is how a turn ends that ends with this outcome: an answer that only
// reports a refusal is a refusal. So with what did not work, if rules report it; a
// model may have found another way, or answered what was asked.
func (t *turn) result(out act.Outcome) Result {
	switch {
	case !out.OK, t.failure && t.ruling.Action().Cause().Proposer == "reflex":
		return Failed
	case t.refusal:
		return Denied
	}
	return Done
}

// finish sends the one terminal reply. Later calls do nothing.
func (t *turn) finish(r Result, text string) {
	if t.ended {
		return
	}
	t.ended = true
	t.phase = done
	if t.thought && r == Done {
		t.s.last = t.s.exchange(text)
	}
	if text != "" && !t.aside {
		t.s.hear(llm.Message{Role: llm.Assistant, Text: text})
	}
	if t.talks && !t.spoke {
		t.recordReply(r, text)
	}
	t.endStream(text)
	t.reply(r, t.withNotes(text))
}
