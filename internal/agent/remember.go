package agent

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"passepartout/internal/flight"
	"passepartout/internal/llm"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// A session that is used for the first time in a process is remembered from the
// journal: what was said, what was done and refused, and the labels of all of it.
// The journal is what can be trusted to be whole, so there is no second record that
// could disagree with it. Results are as long as the journal keeps them.

// ErrDamagedPast means that a session's record cannot be read, now or later.
var ErrDamagedPast = errors.New("the record of the conversation is damaged")

// enoughTurns is how many turns of a session's record fill its conversation.
const enoughTurns = maxTalk

// Enough reports whether a session can be remembered by its last entries, given the
// last of them first: they fill a conversation and tell its labels, or reach back to
// where it began.
func Enough(entries iter.Seq[sexp.Plist]) bool {
	turns, labelled := 0, false
	for e := range entries {
		switch e.Word("KIND") {
		case "RENEW":
			return true
		case "SIGNAL":
			if body := e.Sub("BODY"); body.Text("TEXT") != "" && !strings.HasPrefix(body.Text("TEXT"), "/") && e.Word("TYPE") == proto.Event.Keyword() {
				turns++
			}
		case "RULING", "REPLY":
			labelled = true
		}
		if turns > enoughTurns && labelled {
			return true
		}
	}
	return false
}

// remember makes a session what it was, once. After an error its turn must not go
// on: what cannot be read now may hold a label. What is damaged for good is not waited
// for: the session begins empty, under the strictest labels, and the person is told.
func (a *Agent) remember(ctx context.Context, s *session) error {
	if a.Past == nil || s.remembered {
		return nil
	}
	a.mu.Lock()
	again := a.forgot
	a.mu.Unlock()
	entries, err := a.Past(ctx, s.name, again)
	if errors.Is(err, ErrDamagedPast) {
		s.remembered = true
		s.talk, s.said, s.turns, s.last = nil, nil, nil, exchange{}
		s.taint = proto.Taint{Untrusted: true, Private: true}
		a.leave(s, fmt.Sprintf("What was said before in this conversation cannot be known, because its record is damaged (%v). "+
			"I begin without it, and until you say %s everything here counts as private and as somebody else's word.", err, newWord))
		return nil
	}
	if err != nil {
		return fmt.Errorf("what was said before cannot be read now, and with it what it must be kept from: %w", err)
	}
	s.remembered = true
	if len(entries) == 0 {
		return nil
	}
	m := memoir{a: a, s: &session{name: s.name}, rulings: map[string]sexp.Plist{}, waits: map[string]string{}, asked: map[string]bool{}}
	for _, e := range entries {
		m.take(e)
	}
	m.close()
	was := m.s
	s.talk, s.said, s.turns, s.last = was.talk, was.said, was.turns, was.last
	s.taint = s.taint.Join(was.taint)
	a.mu.Lock()
	s.inquiry = was.inquiry
	a.mu.Unlock()
	if m.unanswered != "" {
		a.leave(s, fmt.Sprintf("%q was not answered: the program ended while I worked on it.", clip(m.unanswered)))
	}
	return nil
}

// leave puts down what the person must be told with the next reply.
func (a *Agent) leave(s *session, note string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s.notes = keep(append(s.notes, note), maxTalk)
}

// A memoir goes through a session's entries, oldest first, and makes the session
// they tell of.
type memoir struct {
	a       *Agent
	s       *session
	rulings map[string]sexp.Plist // actions that were allowed and may still have an outcome
	waits   map[string]string     // the tools of actions that were put to a person, by the action
	asked   map[string]bool       // the rulings that put them

	open       string // the message being answered
	unanswered string // the last message, if its turn never ended
	unlabelled bool   // the last outcome does not say what was read, and no ruling after it does
}

func (m *memoir) take(e sexp.Plist) {
	switch e.Word("KIND") {
	case "SIGNAL":
		m.signal(e)
	case "RULING":
		if e.Sub("ACTION").Text("SESSION") == m.s.name {
			m.ruling(e)
		}
	case "OUTCOME":
		m.outcome(e)
	case "ANSWER":
		m.answer(e)
	case "REPLY":
		m.labels(e.Sub("TAINT"))
		m.say(e.Text("TEXT"))
	case "RENEW":
		m.s, m.open, m.unlabelled = &session{name: m.s.name}, "", false
		clear(m.rulings)
		clear(m.waits)
	case "REWIND":
		if turns := texts(e, "TURNS"); len(turns) > 0 {
			m.s.rewindTo(proto.ID(turns[0]))
			m.open = ""
		}
	}
}

// labels takes all labels the session had at some time.
func (m *memoir) labels(p sexp.Plist) {
	m.s.taint = m.s.taint.Join(taintOf(p))
	m.unlabelled = false
}

// signal takes what was said, if an engine heard it.
func (m *memoir) signal(e sexp.Plist) {
	body, who := e.Sub("BODY"), proto.OriginOf(e.Sub("ORIGIN"))
	text, sensor := body.Text("TEXT"), strings.ToLower(string(body.Word("SENSOR")))
	if e.Text("SESSION") != m.s.name || e.Word("TYPE") != proto.Event.Keyword() || strings.TrimSpace(text) == "" || !listensTo(sensor) {
		return
	}
	if _, handled := m.a.Handlers[sensor]; handled || who.Role == proto.RoleOwner && m.a.isWord(text) {
		return
	}
	_, labelled := e.Get("TAINT") // older entries say nothing about it
	taint := taintOf(e.Sub("TAINT"))
	own := who.Role == proto.RoleOwner && labelled && !taint.Untrusted
	if own {
		m.s.said = keep(append(m.s.said, text), maxTalk)
	} else {
		taint.Untrusted = true
	}
	taint.Untrusted = taint.Untrusted || body.Text("ATTACHED") != ""
	m.s.taint = m.s.taint.Join(taint)
	m.s.inquiry, m.open = nil, text
	m.s.begin(proto.ID(e.Text("ID")), own)
	m.s.hear(llm.Message{Role: llm.User, Text: llm.Attach(text, body.Text("ATTACHED"))})
}

// ruling takes what was decided. Its facts hold the labels the session had.
func (m *memoir) ruling(e sexp.Plist) {
	act := e.Sub("ACTION")
	m.labels(e.Sub("FACTS"))
	switch e.Sub("TRACE").Word("DECISION") {
	case "ALLOW":
		m.rulings[e.Text("ID")] = act
	case "ASK":
		if act.Text("PROPOSER") != "client" {
			m.waits[act.String()], m.asked[e.Text("ID")] = m.call(act), true
		}
	case "DENY":
		if act.Text("PROPOSER") == "client" {
			return
		}
		if act.Word("VERB") != "MESSAGE" {
			m.call(act)
		}
		m.s.hear(llm.Message{Role: llm.Objection, Text: objected(e.Sub("TRACE"))})
	}
}

// outcome takes what came of a ruling.
func (m *memoir) outcome(e sexp.Plist) {
	act, ok := m.rulings[e.Text("RULING")]
	if !ok {
		return
	}
	delete(m.rulings, e.Text("RULING"))
	speaks := act.Word("VERB") == "MESSAGE"
	_, labelled := e.Get("TAINT")
	m.s.taint = m.s.taint.Join(taintOf(e.Sub("TAINT")))
	m.unlabelled = !labelled && !speaks
	switch {
	case speaks:
		text := act.Sub("ARGS").Text("TEXT")
		m.s.last = m.s.exchange(text)
		m.say(text)
	case act.Word("VERB") == "ASK-HUMAN" && e.Flag("OK"):
		m.inquiry(act, e)
	case act.Text("PROPOSER") == "client":
		m.s.hear(llm.Message{Role: llm.Assistant, Text: e.Text("TEXT")})
	default:
		tool, waited := m.waits[act.String()]
		if !waited {
			tool = m.call(act)
		}
		delete(m.waits, act.String())
		m.s.hear(llm.Message{Role: llm.ToolResult, Tool: tool, Text: e.Text("TEXT"), OK: e.Flag("OK")})
	}
}

// answer takes what a person said to a question; a yes is told by what follows.
func (m *memoir) answer(e sexp.Plist) {
	if m.asked[e.Text("TOKEN")] && !e.Flag("YES") {
		m.s.hear(llm.Message{Role: llm.Objection, Text: denial(flight.Plan{Reason: e.Text("REASON")}) + acceptable("person.denied")})
	}
}

// say takes what ended a turn.
func (m *memoir) say(text string) {
	m.open = ""
	if text != "" {
		m.s.hear(llm.Message{Role: llm.Assistant, Text: text})
	}
}

// inquiry takes a question the agent put. It waits again, under another name.
func (m *memoir) inquiry(act, e sexp.Plist) {
	at, _ := time.Parse(time.RFC3339Nano, e.Text("AT")) // a question without a time is the oldest
	q := Inquiry{
		Token: string(m.a.NewID("q")), Session: m.s.name, Question: strings.TrimSpace(act.Sub("ARGS").Text("QUESTION")),
		At: at, to: proto.OriginOf(act.Sub("ORIGIN")),
	}
	for _, o := range texts(act.Sub("ARGS"), "OPTIONS") {
		q.Options = append(q.Options, strings.Join(strings.Fields(o), " "))
	}
	m.call(act)
	m.say(q.text())
	m.s.inquiry = &q
}

// call takes a proposal, as a call of its tool.
func (m *memoir) call(act sexp.Plist) (tool string) {
	tool = strings.ToLower(string(act.Word("TARGET")) + "." + string(act.Word("VERB")))
	if a, err := m.a.Table.Vocabulary().Recorded(act); err == nil && a.Spec().Tool != "" {
		tool = a.Spec().Tool
	}
	args := map[string]any{"explanation": act.Text("WHY")}
	for _, p := range act.Sub("ARGS").Pairs() {
		args[strings.ToLower(string(p.Key))] = plainly(p.Value)
	}
	m.s.hear(llm.Message{Role: llm.Assistant, Call: &llm.Call{Name: tool, Args: args}})
	return tool
}

// plainly is an argument as a model would have written it.
func plainly(v sexp.Value) any {
	switch v := v.(type) {
	case sexp.String:
		return string(v)
	case sexp.Int:
		if n, ok := v.Int64(); ok {
			return n
		}
	case sexp.List:
		var out []string
		for _, x := range v.Items() {
			s, ok := x.(sexp.String)
			if !ok {
				return v.String()
			}
			out = append(out, string(s))
		}
		if len(out) > 0 {
			return out
		}
	}
	if sexp.IsNil(v) {
		return false
	}
	if sexp.Equal(v, sexp.True) {
		return true
	}
	return v.String()
}

// objected is what the gates said against an action, as it was said to the engine.
func objected(trace sexp.Plist) string {
	var lines, codes []string
	var verdicts []sexp.Plist
	for _, item := range items(trace, "VERDICTS") {
		l, _ := item.(sexp.List)
		if v, err := sexp.AsPlist(l); err == nil {
			verdicts = append(verdicts, v)
		}
	}
	for _, v := range verdicts {
		if v.Word("DECISION") != "DENY" || v.Number("ROUND") != verdicts[len(verdicts)-1].Number("ROUND") {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s (%s): %s.", v.Text("GATE"), v.Text("CODE"), strings.TrimSuffix(v.Text("REASON"), ".")))
		codes = append(codes, v.Text("CODE"))
	}
	return strings.Join(lines, "\n") + acceptable(codes...)
}

// close ends what no entry ended.
func (m *memoir) close() {
	if m.unlabelled {
		m.s.taint = proto.Taint{Untrusted: true, Private: true}
	}
	if m.open != "" {
		m.unanswered = m.open
		m.say("(I was cut short before I answered. What I had begun may or may not have been done.)")
	}
}
