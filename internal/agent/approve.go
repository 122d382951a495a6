package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"passepartout/internal/act"
	"passepartout/internal/flight"
	"passepartout/internal/gate"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// A suspended turn waits for a person. It is the memory of a plan; the authority
// is the plan in the log.
type suspended struct {
	token   string
	turn    *turn // at rest: nobody runs it until the answer
	pending gate.Pending
	shown   sexp.Value // the question as clients get it, once somebody asked; guarded by Agent.mu

	restored bool // approved before a restart
}

// A grant is a person's yes to a class of actions in one session.
type grant struct {
	class string
	asked []string // the questions the person was shown
	by    proto.Origin
	token string // the plan it was given with
}

// A Question is an open approval as clients show it.
type Question struct {
	Token   string
	Session string
	Action  proto.Action
	Asked   []gate.Verdict
	Steps   []flight.Step // of a plan; none for a single action
	Effects []string      // what carrying it out can do
	Unknown []string      // what about it nobody can know beforehand
	Created time.Time
	Expires time.Time
	// Preview is what a trial of it changed, for the owner's own eyes: it holds
	// text of files, so it goes to no channel that leaves this machine.
	Preview sexp.Plist
}

// Plist is the question as it goes to clients.
func (q Question) Plist() sexp.Plist {
	out := sexp.P(
		sexp.Keyword("TOKEN"), q.Token, sexp.Keyword("SESSION-ID"), q.Session,
		sexp.Keyword("NAME"), q.Action.Name(), sexp.Keyword("ARGS"), q.Action.Args(),
		sexp.Keyword("WHY"), q.Action.Why(), sexp.Keyword("REASONS"), q.reasons(),
		sexp.Keyword("CREATED"), q.Created.UTC().Format(time.RFC3339), sexp.Keyword("EXPIRES"), q.Expires.UTC().Format(time.RFC3339),
		sexp.Keyword("EFFECTS"), q.Effects, sexp.Keyword("UNKNOWN"), q.Unknown)
	if q.Preview.Len() > 0 {
		out = out.With("PREVIEW", q.Preview.List())
	}
	if class := q.class(); class != "" {
		out = out.With("CLASS", sexp.String(class))
	}
	if len(q.Steps) == 0 {
		return out
	}
	steps := make([]sexp.Value, len(q.Steps))
	for i, s := range q.Steps {
		steps[i] = sexp.P(
			sexp.Keyword("STEP"), i+1, sexp.Keyword("NAME"), s.Name(), sexp.Keyword("ARGS"), s.Action.Sub("ARGS"),
			sexp.Keyword("WHY"), s.Action.Text("WHY"), sexp.Keyword("DECISION"), s.Trace.Word("DECISION"), sexp.Keyword("VERDICT"), s.Verdict()).List()
	}
	return out.With("STEPS", sexp.NewList(steps...))
}

// class is what a yes for the session would cover besides this action, in words;
// "" when it would cover nothing more.
func (q Question) class() string {
	if len(q.Steps) > 0 {
		return "what is like one of these steps"
	}
	class, ok := flight.Class(q.Action)
	if !ok {
		return ""
	}
	return strings.ReplaceAll(class, "\x1f", " ")
}

// reasons say why it is asked: what the gates said, and of a plan what they said of
// every step, so that a client that knows no steps shows them too.
func (q Question) reasons() []string {
	var out []string
	for _, v := range q.Asked {
		out = append(out, fmt.Sprintf("%s (%s): %s", v.Gate, v.Code, v.Reason))
	}
	for i, s := range q.Steps {
		out = append(out, fmt.Sprintf("step %d, %s %s: %s", i+1, s.Name(), s.Action.Sub("ARGS"), s.Verdict()))
	}
	return out
}

func (w *suspended) question(p flight.Plan) Question {
	q := Question{
		Token: w.token, Session: p.Session, Action: w.turn.action,
		Asked: w.pending.Ruling.Objections(), Created: p.Created, Expires: p.Expires, Steps: p.Steps, Preview: p.Preview,
		Effects: p.Effects, Unknown: p.Unforeseen(),
	}
	if len(p.Steps) > 0 {
		q.Asked = p.Asked()
	}
	return q
}

// suspend puts the turn to rest and asks, unless the person has agreed to this
// class of actions for the session. The reply says how to answer.
func (t *turn) suspend(ctx context.Context) phase {
	id, err := t.record(t.ruling, true)
	if err != nil {
		t.finish(Failed, fmt.Sprintf("The question could not be recorded: %v.", err))
		return done
	}
	p, err := t.a.ledger.Open(t.ruling, t.a.Now().Add(t.a.ApprovalTTL))
	if err != nil {
		t.finish(Failed, fmt.Sprintf("The question could not be asked: %v.", err))
		return done
	}
	if next, ok := t.useGrant(id, p); ok {
		return next
	}
	t.a.step("asked")
	preview, err := t.rehearse(ctx, id)
	if err != nil {
		t.a.ledger.Drop(p.ID)
		t.stopped(err)
		return done
	}
	w := &suspended{token: string(id), pending: p}
	rest := *t // a copy at rest; this turn ends with the question
	rest.action = t.ruling.Action()
	w.turn = &rest
	t.a.mu.Lock()
	t.a.waiting[w.token] = w
	t.a.mu.Unlock()
	kept := t.plan(w.token)
	kept.Preview = preview
	plan, err := t.a.Plans.Ask(kept, t.a.ApprovalTTL)
	if err != nil {
		t.a.forget(w)
		t.finish(Failed, fmt.Sprintf("The question could not be kept: %v.", err))
		return done
	}
	t.a.step("recorded")
	t.status("REQUIRES-APPROVAL")
	t.ask(w.question(plan))
	t.finish(Pending, t.preface+fmt.Sprintf("This needs your approval: %s %s\n%s\n%sApprove with: passepartout approve %s (or /approve %s); refuse with deny.",
		t.ruling.Action().Name(), t.ruling.Action().Args(), objections(t.ruling), tried(preview), w.token, w.token))
	t.a.step("notified")
	return done
}

// forget drops what is remembered of a question.
func (a *Agent) forget(w *suspended) {
	a.mu.Lock()
	delete(a.waiting, w.token)
	a.mu.Unlock()
	a.ledger.Drop(w.pending.ID)
}

// useGrant answers a question by what the person agreed to in this session.
func (t *turn) useGrant(id proto.ID, p gate.Pending) (phase, bool) {
	g := t.granted(p.Ruling)
	if g == nil {
		return done, false
	}
	r, err := t.useOf(*g, id, p)
	if err != nil {
		t.finish(Failed, fmt.Sprintf("%s was not carried out: %v.", p.Ruling.Action().Name(), err))
		return done, true
	}
	t.ruling, t.action = r, r.Action()
	if r.Decision() != gate.Allow {
		return judging, true
	}
	t.approved = true
	return acting, true
}

// granted is what the person agreed to in this session that covers every question
// of a ruling, nil for nothing.
func (t *turn) granted(r gate.Ruling) *grant {
	class, ok := flight.Class(r.Action())
	if !ok {
		return nil
	}
	asked := questionsOf(r)
	for i, g := range t.s.grants {
		if g.class == class && !slices.ContainsFunc(asked, func(c string) bool { return !slices.Contains(g.asked, c) }) {
			return &t.s.grants[i]
		}
	}
	return nil
}

// useOf answers an open question by a grant, and puts that on record.
func (t *turn) useOf(g grant, id proto.ID, p gate.Pending) (gate.Ruling, error) {
	r, err := t.a.ledger.Answer(p.ID, true, g.by, t.a.Chain(), t.facts())
	if err != nil {
		return gate.Ruling{}, err
	}
	return r, t.a.Journal.Note(t.answerEntry(string(id), true, "agreed to for this session with "+g.token, g.by).With("GRANT", sexp.String(g.token)))
}

// Questions lists the open approvals, the next to expire first.
func (a *Agent) Questions() []Question {
	return openAs(a, func(w *suspended, p flight.Plan) Question { return w.question(p) })
}

// Shown lists the open approvals as they go to clients. A question does not change,
// so it is put into this form once.
func (a *Agent) Shown() []sexp.Value {
	return openAs(a, func(w *suspended, p flight.Plan) sexp.Value {
		if w.shown == nil {
			w.shown = w.question(p).Plist().List()
		}
		return w.shown
	})
}

// openAs lists the open approvals in some form, the next to expire first, and
// forgets those that have ended without an answer.
func openAs[T any](a *Agent, form func(*suspended, flight.Plan) T) []T {
	plans, err := a.Plans.Pending()
	if err != nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	out := make([]T, 0, len(plans))
	for _, p := range plans {
		if w, ok := a.waiting[p.Token]; ok && p.State == flight.Planned {
			out = append(out, form(w, p))
		}
	}
	if len(a.waiting) > len(out) {
		for token, w := range a.waiting {
			if p, ok := a.Plans.Get(token); ok && p.State.Ended() {
				a.ledger.Drop(w.pending.ID)
				delete(a.waiting, token)
			}
		}
	}
	return out
}

// Answer closes a question. The first answer of somebody who may give one wins,
// on disk before anything follows from it; the turn goes on in its own session.
// The text says what will happen.
func (a *Agent) Answer(token string, ans flight.Answer) (string, error) {
	ans.Reason = a.Redact(ans.Reason)
	p, err := a.Plans.Answer(token, ans)
	if err != nil {
		return "", err
	}
	a.step("approved")
	a.mu.Lock()
	w, ok := a.waiting[token]
	a.mu.Unlock()
	if !ok {
		return "", errors.Join(fmt.Errorf("the turn behind %s is gone", token), a.Plans.End(token, flight.Failed, "nothing was done: the turn behind it is gone"))
	}
	act := w.turn.action // from now on the turn is the session's
	if err := a.proceed(w, p); err != nil {
		return "", errors.Join(err, a.Plans.Withdraw(token))
	}
	if !ans.Yes {
		return fmt.Sprintf("Denied %s.", w.token), nil
	}
	text := fmt.Sprintf("Approved %s.", w.token)
	if p.Scope == flight.WithRule {
		if a.Learn == nil {
			return text + " No rule was made: rules are not learnt here.", nil
		}
		return text + " " + a.Learn(p), nil
	}
	if n := a.alike(act); n >= flight.LearnAfter {
		text += fmt.Sprintf(" You have approved %d of this kind: passepartout rules mine offers a rule.", n)
	}
	return text, nil
}

// recentPlans is how far back a like approval is looked for.
const recentPlans = 100

// alike counts the approvals of an action's class, this one included.
func (a *Agent) alike(act proto.Action) int {
	class, ok := flight.Class(act)
	if !ok {
		return 0
	}
	n := 1
	for _, p := range a.Plans.Ended(recentPlans) {
		if p.State != flight.Done || p.Name() != act.Name() || p.Digest == act.Digest().String() {
			continue
		}
		if other, err := a.Table.Vocabulary().Recorded(p.Action); err == nil {
			if c, ok := flight.Class(other); ok && c == class {
				n++
			}
		}
	}
	return n
}

// proceed lets an answered turn go on in its session.
func (a *Agent) proceed(w *suspended, p flight.Plan) error {
	return a.enqueue(p.Session, func(ctx context.Context, s *session) {
		a.mu.Lock()
		delete(a.waiting, w.token)
		a.mu.Unlock()
		t := w.turn
		t.s, t.ended, t.replyTo = s, false, nil // its request has had its reply
		if p.State == flight.Approved {
			t.token = w.token
		}
		t.guarded(func() {
			if err := a.remember(ctx, s); err != nil {
				t.undone(fmt.Sprintf("Nothing was done: %v.", err))
			} else if t.batch != nil {
				t.resumePlan(ctx, w, p)
			} else {
				t.resume(ctx, w, p)
			}
		})
		if w.restored { // its reply had nobody to go to
			if now, ok := a.Plans.Get(w.token); ok {
				a.tell(now, fmt.Sprintf("%s (%s).", now.Fate(), now.Name()))
			}
		}
		a.step("reported")
	})
}

// resume continues a suspended turn with a person's answer.
func (t *turn) resume(ctx context.Context, w *suspended, p flight.Plan) {
	t.preface = ""
	yes := p.State == flight.Approved
	r, err := t.a.ledger.Answer(w.pending.ID, yes, p.By, t.a.Chain(), t.facts())
	if err == nil { // on disk with the ruling that follows it, before any effect
		err = t.a.Journal.Note(t.answerEntry(w.token, yes, p.Reason, p.By))
	}
	if err != nil {
		t.planEnds(flight.Failed, fmt.Sprintf("nothing was done: %v", err))
		t.finish(Failed, fmt.Sprintf("%s was not carried out: %v.", w.pending.Ruling.Action().Name(), err))
		return
	}
	t.a.step("decided")
	t.ruling, t.action = r, r.Action()
	switch {
	case !yes:
		t.phase = t.refused(proto.ID(w.token), denial(p), codesOf(r))
	case r.Decision() == gate.Allow:
		t.phase, t.approved = acting, true
		t.remember(w, p)
	default:
		why := swapped(w.pending.Ruling, r)
		t.preface = fmt.Sprintf("What you approved with %s was not carried out: %s.\n", w.token, strings.TrimSuffix(why, "."))
		t.planEnds(flight.Failed, "nothing was done: "+why)
		t.phase = judging
	}
	t.run(ctx)
}

// swapped says why a yes is not enough any more: a file that would run is another
// one than the person was asked about, or the gates object to something else.
func swapped(shown, now gate.Ruling) string {
	files := func(r gate.Ruling) (out []string) {
		for _, v := range r.Objections() {
			out = append(out, strings.Fields(v.Bound)...)
		}
		return out
	}
	before := files(shown)
	for _, f := range files(now) {
		i := strings.LastIndexByte(f, '=') // path=digest
		if i > 0 && !slices.Contains(before, f) && slices.ContainsFunc(before, func(b string) bool { return strings.HasPrefix(b, f[:i+1]) }) {
			return fmt.Sprintf("%s was changed since you were asked, so it is not what you agreed to", f[:i])
		}
	}
	return "it was decided again, and " + objections(now)
}

// denial is a person's no as an objection.
func denial(p flight.Plan) string {
	reason := p.Reason
	if reason == "" {
		reason = "no reason was given"
	}
	return fmt.Sprintf("person (person.denied): %s.", strings.TrimSuffix(reason, "."))
}

// remember keeps a yes that was given for the whole session.
func (t *turn) remember(w *suspended, p flight.Plan) {
	class, ok := flight.Class(t.action)
	if p.Scope != flight.Session || !ok {
		return
	}
	t.s.grants = keep(append(t.s.grants, grant{class: class, asked: questionsOf(w.pending.Ruling), by: p.By, token: p.Token}), maxTalk)
}

// planStarts records, on disk, that the effect of the plan is about to happen. A
// turn without a plan has nothing to record.
func (t *turn) planStarts(ruling proto.ID) error {
	if t.token == "" {
		return nil
	}
	var err error
	if t.batch != nil {
		err = t.a.Plans.StartStep(t.token, t.batch.next, string(ruling))
	} else {
		err = t.a.Plans.Start(t.token, string(ruling))
	}
	if err != nil {
		return err
	}
	t.a.step("started")
	return nil
}

// planEnds records how the plan went. That this fails changes nothing of what was
// done, and the next start will say that it is not known.
func (t *turn) planEnds(s flight.State, result string) {
	if t.token == "" {
		return
	}
	if err := t.a.Plans.End(t.token, s, t.a.Redact(result)); err != nil {
		t.s.log("plan %s: its end could not be recorded: %v", t.token, err)
	}
	t.token = ""
}

// planDone is planEnds by what an actuator reports.
func (t *turn) planDone(out act.Outcome) {
	if t.batch != nil {
		t.stepEnds(out)
		return
	}
	if t.token == "" {
		return
	}
	t.a.step("acted")
	if out.OK {
		t.planEnds(flight.Done, out.Text)
	} else {
		t.planEnds(flight.Failed, out.Text)
	}
	t.a.step("ended")
}

// isWord reports whether a message of the owner's is a control word.
func (a *Agent) isWord(text string) bool {
	words := strings.Fields(text)
	if len(words) == 0 {
		return false
	}
	if slices.Contains([]string{"/approve", "/deny", "/answer", "/approvals", newWord, rewindWord, distillWord}, words[0]) {
		return true
	}
	_, word := a.Words[words[0]]
	_, ours := a.SessionWords[words[0]]
	return word || ours
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
	case "/answer":
		return a.controlTell(words, sig.Origin), true
	case "/approvals":
		return a.describeQuestions(), true
	}
	if say, ok := a.Words[words[0]]; ok {
		return say(words[1:]), true
	}
	if say, ok := a.SessionWords[words[0]]; ok {
		return say(sig.Session, words[1:]), true
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
	reason, scope := "", flight.Once
	if len(words) > 2 {
		reason = strings.Join(words[2:], " ")
	}
	if words[0] == "/approve" {
		if s, err := flight.ParseScope(reason); err == nil {
			reason, scope = "", s
		}
	}
	text, err := a.Answer(token, flight.Answer{Yes: words[0] == "/approve", Scope: scope, Reason: reason, By: by})
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
		if len(q.Steps) > 0 {
			fmt.Fprintf(&b, "%s  a plan of %d steps: %s\n", q.Token, len(q.Steps), q.Action.Why())
		} else {
			fmt.Fprintf(&b, "%s  %s %s\n", q.Token, q.Action.Name(), q.Action.Args())
		}
		for _, r := range q.reasons() {
			fmt.Fprintf(&b, "    %s\n", r)
		}
		if text := q.Preview.Text("TEXT"); text != "" {
			fmt.Fprintf(&b, "    %s\n", text)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}
