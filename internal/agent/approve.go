package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"passepartout/internal/gate"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// A suspended turn waits for a person.
type suspended struct {
	token   string
	turn    *turn // at rest: nobody runs it until the answer
	pending gate.Pending
}

// A Question is an open approval as clients show it.
type Question struct {
	Token   string
	Session string
	Action  proto.Action
	Asked   []gate.Verdict
	Expires time.Time
}

// Plist is the question as it goes to clients.
func (q Question) Plist() sexp.Plist {
	reasons := make([]string, len(q.Asked))
	for i, v := range q.Asked {
		reasons[i] = fmt.Sprintf("%s (%s): %s", v.Gate, v.Code, v.Reason)
	}
	return sexp.P(
		sexp.Keyword("TOKEN"), q.Token, sexp.Keyword("SESSION-ID"), q.Session,
		sexp.Keyword("NAME"), q.Action.Name(), sexp.Keyword("ARGS"), q.Action.Args(),
		sexp.Keyword("WHY"), q.Action.Why(), sexp.Keyword("REASONS"), reasons,
		sexp.Keyword("EXPIRES"), q.Expires.UTC().Format(time.RFC3339))
}

func (w *suspended) question() Question {
	return Question{
		Token: w.token, Session: w.turn.s.name, Action: w.pending.Ruling.Action(),
		Asked: w.pending.Ruling.Objections(), Expires: w.pending.Expires,
	}
}

// suspend puts the turn to rest and asks. The reply says how to answer.
func (t *turn) suspend() phase {
	id, err := t.record(t.ruling, false)
	if err != nil {
		t.finish(Failed, fmt.Sprintf("The question could not be recorded: %v.", err))
		return done
	}
	p, err := t.a.ledger.Open(t.ruling, t.a.Now().Add(t.a.ApprovalTTL))
	if err != nil {
		t.finish(Failed, fmt.Sprintf("The question could not be asked: %v.", err))
		return done
	}
	w := &suspended{token: string(id), pending: p}
	rest := *t // a copy at rest; this turn ends with the question
	w.turn = &rest
	t.a.mu.Lock()
	t.a.waiting[w.token] = w
	t.a.mu.Unlock()
	t.status("REQUIRES-APPROVAL")
	t.ask(w.question())
	t.finish(Pending, fmt.Sprintf("This needs your approval: %s %s\n%s\nApprove with: passepartout approve %s (or /approve %s); refuse with deny.",
		t.ruling.Action().Name(), t.ruling.Action().Args(), objections(t.ruling), w.token, w.token))
	return done
}

// Questions lists the open approvals, the next to expire first.
func (a *Agent) Questions() []Question {
	now := a.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	out := make([]Question, 0, len(a.waiting))
	for token, w := range a.waiting {
		if !now.Before(w.pending.Expires) {
			a.ledger.Drop(w.pending.ID)
			delete(a.waiting, token)
			continue
		}
		out = append(out, w.question())
	}
	slices.SortFunc(out, func(x, y Question) int {
		return cmp.Or(x.Expires.Compare(y.Expires), cmp.Compare(x.Token, y.Token))
	})
	return out
}

// Answer closes a question. The first answer of somebody who may give one wins;
// the turn goes on in its own session. The text says what will happen.
func (a *Agent) Answer(token string, yes bool, reason string, by proto.Origin) (string, error) {
	w, err := a.claim(token, by)
	if err != nil {
		return "", err
	}
	err = a.enqueue(w.turn.s.name, func(ctx context.Context, s *session) {
		w.turn.s = s
		w.turn.resume(ctx, w, yes, reason, by)
	})
	if err != nil {
		a.mu.Lock()
		a.waiting[w.token] = w
		a.mu.Unlock()
		return "", err
	}
	if yes {
		return fmt.Sprintf("Approved %s.", w.token), nil
	}
	return fmt.Sprintf("Denied %s.", w.token), nil
}

func (a *Agent) claim(token string, by proto.Origin) (*suspended, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w, ok := a.waiting[token]
	if !ok {
		return nil, fmt.Errorf("%w: %q is unknown, answered or expired", gate.ErrNotPending, token)
	}
	if by.Role != proto.RoleOwner {
		return nil, fmt.Errorf("%w: %s on %s", gate.ErrNotApprover, by.Role, by.Channel)
	}
	delete(a.waiting, token)
	return w, nil
}

// resume continues a suspended turn with a person's answer.
func (t *turn) resume(ctx context.Context, w *suspended, yes bool, reason string, by proto.Origin) {
	t.ended = false
	r, err := t.a.ledger.Answer(w.pending.ID, yes, by, t.a.Chain(), t.facts())
	if err == nil {
		err = t.a.Journal.Append(t.a.answerEntry(w.token, yes, reason, by))
	}
	if err != nil {
		t.finish(Failed, fmt.Sprintf("%s was not carried out: %v.", w.pending.Ruling.Action().Name(), err))
		return
	}
	t.ruling, t.action = r, r.Action()
	switch {
	case !yes:
		if reason == "" {
			reason = "no reason was given"
		}
		t.phase = t.refused(proto.ID(w.token), fmt.Sprintf("person (person.denied): %s.", strings.TrimSuffix(reason, ".")))
	case r.Decision() == gate.Allow:
		t.phase, t.approved = acting, true
	default:
		t.phase = judging
	}
	t.run(ctx)
}

// control recognises a whole message that is a control word. Such a message never
// reaches an engine.
func (a *Agent) control(sig proto.Signal) (string, bool) {
	words := strings.Fields(sig.Text())
	if len(words) == 0 {
		return "", false
	}
	switch words[0] {
	case "/approve", "/deny":
		return a.controlAnswer(words, sig.Origin), true
	case "/approvals":
		return a.describeQuestions(), true
	}
	if say, ok := a.Words[words[0]]; ok {
		return say(words[1:]), true
	}
	return "", false
}

func (a *Agent) controlAnswer(words []string, by proto.Origin) string {
	open := a.Questions()
	token := ""
	switch {
	case len(words) > 1:
		token = words[1]
	case len(open) == 1:
		token = open[0].Token
	case len(open) == 0:
		return "Nothing waits for approval."
	default:
		return "Several actions wait, so say which.\n" + a.describeQuestions()
	}
	reason := ""
	if len(words) > 2 {
		reason = strings.Join(words[2:], " ")
	}
	text, err := a.Answer(token, words[0] == "/approve", reason, by)
	if err != nil {
		return fmt.Sprintf("That answer counts for nothing: %v.", err)
	}
	return text
}

func (a *Agent) describeQuestions() string {
	open := a.Questions()
	if len(open) == 0 {
		return "Nothing waits for approval."
	}
	var b strings.Builder
	for _, q := range open {
		fmt.Fprintf(&b, "%s  %s %s\n", q.Token, q.Action.Name(), q.Action.Args())
		for _, v := range q.Asked {
			fmt.Fprintf(&b, "    %s (%s): %s\n", v.Gate, v.Code, v.Reason)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}
