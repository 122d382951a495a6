package agent

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"passepartout/internal/flight"
	"passepartout/internal/gate"
	"passepartout/internal/llm"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// A Witness says whether the effect of a plan happened that the program died in
// the middle of. known is false when it cannot tell.
type Witness func(flight.Plan) (happened, known bool)

func (a *Agent) step(name string) {
	if a.Step != nil {
		a.Step(name)
	}
}

// Restore takes up what an earlier process left: questions wait again, what was
// approved and not begun is decided again and carried out, and of what was begun
// the person is told what is known. It is called once, before the first signal.
func (a *Agent) Restore(saw Witness) error {
	plans, err := a.Plans.Pending()
	if err != nil {
		return err
	}
	for _, p := range plans {
		var err error
		switch p.State {
		case flight.Started:
			err = a.settle(p, saw)
		case flight.Planned, flight.Approved:
			err = a.reopen(p)
		default:
			err = fmt.Errorf("plan %s is in the state %s, which has ended", p.Token, p.State)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// settle closes a plan the program died in the middle of.
func (a *Agent) settle(p flight.Plan, saw Witness) error {
	state, result := flight.Unknown, "the program ended while it was carried out; whether it happened is not known"
	if len(p.Steps) > 0 {
		return a.settleSteps(p, saw)
	}
	if saw != nil {
		switch happened, known := saw(p); {
		case known && happened:
			state, result = flight.Done, "it was carried out; the program ended before it could report"
		case known:
			state, result = flight.Failed, "the program ended before it happened; nothing was done"
		}
	}
	if err := a.Plans.End(p.Token, state, result); err != nil {
		return err
	}
	a.tell(p, fmt.Sprintf("%s (%s): %s.", p.Token, p.Name(), result))
	return nil
}

// tell leaves a note that the session's next reply begins with.
func (a *Agent) tell(p flight.Plan, note string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.sessionLocked(p.Session)
	s.notes = keep(append(s.notes, note), maxTalk)
}

// reopen puts a suspended turn back, and lets an approved one go on. What cannot
// be understood any more is closed, and said.
func (a *Agent) reopen(p flight.Plan) error {
	w, err := a.rebuild(p)
	if err != nil {
		a.tell(p, fmt.Sprintf("%s (%s) could not be taken up again after a restart and was not carried out: %v.", p.Token, p.Name(), err))
		return a.Plans.End(p.Token, flight.Failed, "nothing was done: "+err.Error())
	}
	a.mu.Lock()
	a.waiting[p.Token] = w
	a.mu.Unlock()
	if p.State != flight.Approved {
		return nil
	}
	w.restored = true
	return a.proceed(w, p)
}

func (a *Agent) rebuild(p flight.Plan) (*suspended, error) {
	act, err := a.Table.Vocabulary().Recorded(p.Action)
	if err != nil {
		return nil, err
	}
	if act.Digest().String() != p.Digest {
		return nil, fmt.Errorf("the record of the action is not the action that was shown")
	}
	t, err := a.turnOf(p)
	if err != nil {
		return nil, err
	}
	if t.batch, err = a.batchOf(p); err != nil {
		return nil, err
	}
	if t.batch != nil {
		t.action = act
		return &suspended{token: p.Token, turn: t}, nil
	}
	pending, err := a.ledger.Reopen(act, p.Trace, p.Expires)
	if err != nil {
		return nil, err
	}
	t.action, t.ruling = act, pending.Ruling
	return &suspended{token: p.Token, turn: t, pending: pending}, nil
}

// plan is the suspended turn as it is kept. Credentials are taken out of all of
// it; an action that would be changed by that cannot be taken up after a restart.
func (t *turn) plan(token string) flight.Plan {
	act := t.ruling.Action()
	return flight.Plan{
		Token: token, Session: t.s.name,
		Action: t.a.clean(act.Plist()), Digest: act.Digest().String(), Trace: t.a.clean(t.ruling.Trace()),
		Requester: t.sig.Origin, Policy: t.ruling.Policy().String(), Effects: t.ruling.Effects(), Turn: t.a.clean(t.state()),
	}
}

// state is what a turn needs to go on in another process.
func (t *turn) state() sexp.Plist {
	talk := make([]sexp.Value, len(t.s.talk))
	for i, m := range t.s.talk {
		talk[i] = messageList(m)
	}
	s := t.sig
	st := sexp.P(
		sexp.Keyword("ID"), string(t.id), sexp.Keyword("ATTEMPTS"), t.attempts, sexp.Keyword("DIRECT"), t.direct,
		sexp.Keyword("SIGNAL"), sexp.P(
			sexp.Keyword("ID"), string(s.ID), sexp.Keyword("PARENT"), string(s.Parent), sexp.Keyword("KIND"), s.Kind.Keyword(),
			sexp.Keyword("ORIGIN"), s.Origin.Plist(), sexp.Keyword("SESSION"), s.Session, sexp.Keyword("DEPTH"), s.Depth,
			sexp.Keyword("TAINT"), taintPlist(s.Taint), sexp.Keyword("AT"), s.At.UTC().Format(time.RFC3339Nano), sexp.Keyword("BODY"), s.Body),
		sexp.Keyword("TALK"), sexp.NewList(talk...), sexp.Keyword("SAID"), t.s.said, sexp.Keyword("LOGS"), t.s.logs,
		sexp.Keyword("TAINT"), taintPlist(t.s.taint))
	if t.only != nil {
		st = st.With("ONLY", sexp.Strings(t.only))
	}
	return st
}

// turnOf rebuilds a turn from its state. The session's conversation is restored
// with the first of its plans; where there is a journal to remember it by, that
// replaces it before the session is used.
func (a *Agent) turnOf(p flight.Plan) (*turn, error) {
	st, sg := p.Turn, p.Turn.Sub("SIGNAL")
	kind, ok := proto.ParseKind(string(sg.Word("KIND")))
	at, err := time.Parse(time.RFC3339Nano, sg.Text("AT"))
	if !ok || err != nil || sg.Text("ID") == "" {
		return nil, fmt.Errorf("the record of the turn is incomplete")
	}
	t := &turn{
		a: a, id: proto.ID(st.Text("ID")), attempts: st.Number("ATTEMPTS"), direct: st.Flag("DIRECT"), talks: !st.Flag("DIRECT"),
		sig: proto.Signal{
			ID: proto.ID(sg.Text("ID")), Parent: proto.ID(sg.Text("PARENT")), Kind: kind, Origin: proto.OriginOf(sg.Sub("ORIGIN")),
			Session: sg.Text("SESSION"), Depth: sg.Number("DEPTH"), Taint: taintOf(sg.Sub("TAINT")), At: at, Body: sg.Sub("BODY"),
		},
	}
	if _, ok := st.Get("ONLY"); ok {
		t.only = append([]string{}, texts(st, "ONLY")...)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	t.s = a.sessionLocked(p.Session)
	t.s.taint = t.s.taint.Join(taintOf(st.Sub("TAINT")))
	if len(t.s.talk) == 0 {
		t.s.said, t.s.logs = texts(st, "SAID"), texts(st, "LOGS")
		for _, item := range items(st, "TALK") {
			l, _ := item.(sexp.List)
			m, err := messageOf(l)
			if err != nil {
				return nil, err
			}
			t.s.talk = append(t.s.talk, m)
		}
	}
	return t, nil
}

func messageList(m llm.Message) sexp.List {
	call := ""
	if m.Call != nil {
		raw, err := json.Marshal(m.Call)
		if err == nil { // else it came from no JSON, and only its words are kept
			call = string(raw)
		}
	}
	return sexp.P(
		sexp.Keyword("ROLE"), int(m.Role), sexp.Keyword("TEXT"), m.Text, sexp.Keyword("TOOL"), m.Tool,
		sexp.Keyword("OK"), m.OK, sexp.Keyword("CALL"), call).List()
}

func messageOf(l sexp.List) (llm.Message, error) {
	p, err := sexp.AsPlist(l)
	if err != nil {
		return llm.Message{}, err
	}
	m := llm.Message{Role: llm.Role(p.Number("ROLE")), Text: p.Text("TEXT"), Tool: p.Text("TOOL"), OK: p.Flag("OK")}
	if call := p.Text("CALL"); call != "" {
		m.Call = new(llm.Call)
		if err := json.Unmarshal([]byte(call), m.Call); err != nil {
			m.Call = nil // redaction broke its form; the conversation goes on without it
		}
	}
	return m, nil
}

func taintPlist(t proto.Taint) sexp.Plist {
	return sexp.P(sexp.Keyword("UNTRUSTED"), t.Untrusted, sexp.Keyword("PRIVATE"), t.Private)
}

func taintOf(p sexp.Plist) proto.Taint {
	return proto.Taint{Untrusted: p.Flag("UNTRUSTED"), Private: p.Flag("PRIVATE")}
}

func items(p sexp.Plist, k sexp.Keyword) []sexp.Value {
	v, _ := p.Get(k)
	l, _ := v.(sexp.List)
	return l.Items()
}

func texts(p sexp.Plist, k sexp.Keyword) []string {
	var out []string
	for _, v := range items(p, k) {
		if s, ok := v.(sexp.String); ok {
			out = append(out, string(s))
		}
	}
	return out
}

// withNotes puts what the person must still be told before a reply.
func (t *turn) withNotes(text string) string {
	t.a.mu.Lock()
	notes := t.s.notes
	t.s.notes = nil
	t.a.mu.Unlock()
	if len(notes) == 0 {
		return text
	}
	return strings.TrimRight("Since the restart: "+strings.Join(notes, "\n")+"\n\n"+text, "\n")
}

// questionsOf are what a ruling asks, each with the files it was based on, so that
// a grant covers the same questions only.
func questionsOf(r gate.Ruling) []string {
	var out []string
	for _, v := range r.Objections() {
		out = append(out, questionOf(v))
	}
	return out
}

func questionOf(v gate.Verdict) string {
	return strings.Join([]string{v.Gate, v.Code, v.Also, v.Bound}, "|")
}
