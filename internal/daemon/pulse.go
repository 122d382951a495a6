package daemon

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"passepartout/internal/memory"
	"passepartout/internal/proto"
	"passepartout/internal/pulse"
	"passepartout/internal/sexp"
)

// openPulse puts the background together: what standing orders may do is named
// here.
func (d *Daemon) openPulse() (*pulse.Pulse, error) {
	return pulse.Open(pulse.Options{
		Dir: filepath.Join(d.s.StateDir, "pulse"), Root: d.s.MemexDir, Now: d.now, Zone: time.Local, View: d.memory.View, Log: d.log,
		NewID:      func(prefix string) string { return string(d.newID(prefix)) },
		Do:         d.carryOut,
		Ask:        d.askSkill,
		Written:    d.wrote,
		Tell:       d.tellRun,
		Registered: d.skillEvents,
		Checks:     d.checks(),
	})
}

// carryOut does what a standing order says. Words and actions go to the agent with
// the role of a job: they are judged like anybody's, can answer no question and say
// no control word.
func (d *Daemon) carryOut(ctx context.Context, o pulse.Order) (string, error) {
	switch o.Do {
	case pulse.DoPrompt:
		body := sexp.P(sexp.Keyword("SENSOR"), sexp.Keyword(strings.ToUpper(o.Sensor)), sexp.Keyword("TEXT"), o.Text,
			sexp.Keyword("TIER"), sexp.Keyword(strings.ToUpper(string(o.Tier))), sexp.Keyword("NAME"), o.Name)
		return d.delegate(ctx, o, proto.Event, body)
	case pulse.DoTool:
		p, err := proposal(o)
		if err != nil {
			return "", err
		}
		body := sexp.P(sexp.Keyword("SENSOR"), sexp.Keyword(strings.ToUpper(o.Sensor)), sexp.Keyword("NAME"), o.Name, sexp.Keyword("PROPOSAL"), p)
		return d.delegate(ctx, o, proto.Request, body)
	case pulse.DoSkill:
		return d.callSkill(ctx, o)
	case pulse.DoCall:
		call, ok := d.calls()[o.What]
		if !ok {
			return "", fmt.Errorf("there is no %q to call: want %s", o.What, strings.Join(callNames(d.calls()), ", "))
		}
		return call(ctx)
	case pulse.DoRemind:
		text := strings.TrimSpace(o.Name + "\n" + o.Text)
		return text, d.tell(reminder(o, text))
	}
	return "", fmt.Errorf("order %q: nobody knows how", o.Do)
}

// proposal is a tool order as the gates read it.
func proposal(o pulse.Order) (sexp.Value, error) {
	args := sexp.Plist{}
	if o.Text != "" {
		var err error
		if args, err = sexp.ReadPlist([]byte(o.Text), sexp.Limits{}); err != nil {
			return nil, fmt.Errorf("arguments of %s: %w", o.What, err)
		}
	}
	return sexp.P(sexp.Keyword("TYPE"), sexp.Keyword("REQUEST"), sexp.Keyword("TARGET"), sexp.Keyword("TOOL"), sexp.Keyword("PAYLOAD"), sexp.P(
		sexp.Keyword("TOOL"), o.What, sexp.Keyword("ARGS"), args.List(),
		sexp.Keyword("EXPLANATION"), fmt.Sprintf("the standing order %q asks for this", o.Name))).List(), nil
}

// delegate gives an order to the agent, in a session of its own, and waits for how
// it ends.
func (d *Daemon) delegate(ctx context.Context, o pulse.Order, k proto.Kind, body sexp.Plist) (string, error) {
	session := "job/" + o.Run
	reply, done := d.replies.await(session)
	defer done()
	channel := "cron"
	if o.Sensor == "hook" {
		channel = "hook"
	}
	sig := proto.Signal{
		ID: proto.ID(o.Run), Kind: k, Session: session, At: d.now(), Body: body,
		Origin: proto.Origin{Role: proto.RoleJob, Channel: channel, Who: o.Name},
	}
	if err := d.agent.Submit(sig, nil); err != nil {
		return "", err
	}
	select {
	case m := <-reply:
		return d.outcome(o, m)
	case <-ctx.Done():
		d.agent.Interrupt(session)
		return "", context.Cause(ctx)
	}
}

// outcome reads how a delegated turn ended. A question to the person is no failure:
// the run is over, and the plan waits.
func (d *Daemon) outcome(o pulse.Order, m proto.Message) (string, error) {
	text := strings.TrimSpace(m.Payload.Text("TEXT"))
	status := m.Payload.Word("STATUS")
	if !o.Quiet && (status == "DONE" || status == "PENDING") {
		if err := d.tell(d.result(o, text, status == "PENDING")); err != nil {
			d.log.Error("what came of a job is not told on the telephone", "name", o.Name, "error", err)
		}
	}
	if d.causes.isPrivate(o.Run) {
		text = "something private took part, so the words are not kept" // whoever was there has been told
	}
	switch status {
	case "DONE":
		return d.redact(text), nil
	case "PENDING":
		return "waits for an answer: " + d.redact(text), nil
	}
	return "", errors.New(d.redact(text))
}

// tellRun says of runs that did not go well that they did not.
func (d *Daemon) tellRun(r pulse.Run, quiet bool) {
	if r.State == pulse.Failed || r.State == pulse.Missed {
		d.log.Warn("standing order", "name", r.Name, "state", string(r.State), "due", r.Due, "text", r.Text)
	}
	if r.State != pulse.Failed || quiet || !r.Retry.IsZero() {
		return
	}
	if err := d.tell(failure(r)); err != nil {
		d.log.Error("that a job failed is not told on the telephone", "name", r.Name, "error", err)
	}
}

// askSkill asks a predicate of a skill.
func (d *Daemon) askSkill(ctx context.Context, name, function string) (bool, error) {
	if d.skills == nil {
		return false, errors.New("there are no skills")
	}
	set := d.skills.Set()
	h, err := set.Function(name + "/" + function)
	if err != nil {
		return false, err
	}
	a, err := set.Call(ctx, h, sexp.P(sexp.Keyword("EVENT"), sexp.Keyword("PREDICATE")))
	return a.True, err
}

// callSkill calls a function of a skill, by name or as it registered it; what the
// skill wants done goes the way of everything skills say.
func (d *Daemon) callSkill(ctx context.Context, o pulse.Order) (string, error) {
	if d.skills == nil {
		return "", errors.New("there are no skills")
	}
	set := d.skills.Set()
	event := sexp.P(sexp.Keyword("EVENT"), sexp.Keyword(strings.ToUpper(o.Sensor)), sexp.Keyword("TEXT"), o.Text, sexp.Keyword("RUN"), o.Run)
	for _, h := range set.Hooks() {
		if registeredName(h) == o.What {
			a, err := set.Call(ctx, h, event)
			d.hearSkill(ctx, a)
			return a.Text, err
		}
	}
	h, err := set.Function(strings.Join(strings.Fields(o.What), "/"))
	if err != nil {
		return "", err
	}
	a, err := set.Call(ctx, h, event)
	d.hearSkill(ctx, a)
	return a.Text, err
}

// replies are the ends of turns that jobs wait for.
type replies struct {
	mu sync.Mutex // guards of
	of map[string]chan proto.Message
}

// await says that somebody waits for the next terminal reply of a session.
func (r *replies) await(session string) (<-chan proto.Message, func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[string]chan proto.Message{}
	}
	c := make(chan proto.Message, 1)
	r.of[session] = c
	return c, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.of, session)
	}
}

func (r *replies) give(session string, m proto.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, ok := r.of[session]; ok {
		select {
		case c <- m:
		default: // only the first ends the wait
		}
	}
}

// emit tells a session's clients, near and far, and whoever waits for its end.
func (d *Daemon) emit(session string, m proto.Message) {
	d.hub.emit(session, m)
	for _, l := range d.lines.list() {
		l.gateway.Hear(m)
	}
	if m.Kind == proto.Response {
		d.replies.give(session, m)
		d.diary.ended(session, m)
	}
}

// edits know which text of the memex was last written by this program: such text
// gives no orders without a person's yes.
type edits struct {
	mu   sync.Mutex // guards what follows
	seq  uint64
	ours map[memory.ID]memory.Hash // of an object's own section
}

func (d *Daemon) wrote(o memory.Object) bool {
	e := &d.edits
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ours == nil {
		e.ours = map[memory.ID]memory.Hash{}
	}
	for _, op := range d.memory.Since(e.seq) {
		e.seq = op.Seq
		if op.Kind == memory.OpExternal {
			continue
		}
		for i := range op.Objects {
			e.ours[op.Objects[i].ID] = op.Objects[i].NewOwn
		}
	}
	own, ok := e.ours[o.ID]
	return ok && own == o.Own
}
