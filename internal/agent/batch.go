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

// maxSteps is how many steps one plan may have: as many as a person reads.
const maxSteps = 10

// A batch is a plan of several steps on its way. All of them are judged before the
// first runs; a person is asked once; each is decided again, by itself, when its
// turn comes.
type batch struct {
	ruling gate.Ruling // of the plan as a whole
	steps  []flight.Step
	acts   []proto.Action // the steps, decoded
	next   int
	by     proto.Origin // who agreed; nobody when nothing asked
	token  string       // of the plan, "" when nothing asked
	texts  []string     // what came of each step

	effects []string // what all of them together can do
}

// reach is the furthest effect an action can have: of a plan, that of its steps.
func (t *turn) reach() proto.Effect {
	e := t.action.Spec().Effect
	if t.action.Target() != act.PlanTarget {
		return e
	}
	steps, err := t.stepsOf(t.action)
	if err != nil {
		return proto.Rewrite // it will be refused; until then it is the worst
	}
	for _, s := range steps {
		e = max(e, s.Spec().Effect)
	}
	return e
}

// stepsOf takes the steps out of a plan, each decoded as strictly as if it had been
// proposed alone. A step is a whole proposal, or a tool with its arguments.
func (t *turn) stepsOf(plan proto.Action) ([]proto.Action, error) {
	list := items(plan.Args(), "STEPS")
	if len(list) > maxSteps {
		return nil, fmt.Errorf("a plan of %d steps: want at most %d", len(list), maxSteps)
	}
	out := make([]proto.Action, len(list))
	for i, item := range list {
		a, err := t.stepOf(item, plan)
		if err != nil {
			return nil, fmt.Errorf("step %d: %w", i+1, err)
		}
		out[i] = a
	}
	return out, nil
}

func (t *turn) stepOf(item sexp.Value, plan proto.Action) (proto.Action, error) {
	l, _ := item.(sexp.List)
	if !has(l, "TARGET") {
		p, err := sexp.AsPlist(l)
		if err != nil {
			return proto.Action{}, err
		}
		if _, ok := p.Get("EXPLANATION"); !ok {
			p = p.With("EXPLANATION", sexp.String(plan.Why()))
		}
		item = sexp.P(sexp.Keyword("TARGET"), sexp.Keyword("TOOL"), sexp.Keyword("PAYLOAD"), p).List()
	}
	a, err := t.a.Table.Vocabulary().Decode(item, plan.Cause())
	switch {
	case err != nil:
		return proto.Action{}, err
	case a.Target() == act.PlanTarget:
		return proto.Action{}, errors.New("a plan inside a plan: want single steps")
	case a.Spec().Effect == proto.Speak:
		return proto.Action{}, fmt.Errorf("%s only says something: say it when the steps are done", a.Name())
	}
	return a, nil
}

// judgePlan decides every step of a plan before the first runs. One refused step
// refuses the plan; one that asks makes the whole plan one question.
func (t *turn) judgePlan() phase {
	acts, err := t.stepsOf(t.action)
	if err != nil {
		if t.direct {
			t.finish(Denied, fmt.Sprintf("The plan was refused before it reached the gates: %v.", err))
			return done
		}
		return t.unreadable(llm.Reply{}, err)
	}
	chain, facts := t.a.Chain(), t.facts()
	b := &batch{ruling: chain.Decide(t.action, facts)}
	rulings := []gate.Ruling{b.ruling}
	strictest := b.ruling.Decision()
	for _, a := range acts {
		r := chain.Decide(a, facts)
		if r.Decision() != gate.Ask || t.granted(r) == nil {
			strictest = min(strictest, r.Decision())
		}
		rulings = append(rulings, r)
	}
	t.ruling = b.ruling
	if strictest == gate.Deny {
		return t.refusePlan(rulings)
	}
	for i, r := range rulings[1:] {
		id, err := t.record(r, false) // the plan's own, which comes last, takes them to the disk
		if err != nil {
			t.finish(Failed, fmt.Sprintf("The plan could not be recorded: %v.", err))
			return done
		}
		b.acts = append(b.acts, r.Action())
		b.effects = append(b.effects, r.Effects()...)
		b.steps = append(b.steps, flight.Step{
			Action: t.a.clean(r.Action().Plist()), Digest: r.Action().Digest().String(), Trace: t.a.clean(r.Trace()),
			Token: string(id), State: flight.Planned,
		})
		t.s.log("step %d of a plan, %s: %s", i+1, r.Action().Name(), r.Decision())
	}
	slices.Sort(b.effects)
	b.effects, b.texts = slices.Compact(b.effects), make([]string, len(b.steps))
	t.batch = b
	if strictest == gate.Ask {
		return t.suspendPlan()
	}
	return stepping
}

// refusePlan says what is wrong with every step that is refused.
func (t *turn) refusePlan(rulings []gate.Ruling) phase {
	var first proto.ID
	var why, codes []string
	for i, r := range rulings {
		if r.Decision() != gate.Deny {
			continue
		}
		id, err := t.record(r, false)
		if err != nil {
			t.finish(Failed, fmt.Sprintf("The refusal could not be recorded: %v.", err))
			return done
		}
		if first == "" {
			first = id
		}
		name := "the plan"
		if i > 0 {
			name = fmt.Sprintf("step %d, %s", i, r.Action().Name())
		}
		why = append(why, name+": "+objections(r))
		codes = append(codes, codesOf(r)...)
	}
	return t.refused(first, strings.Join(why, "\n"), codes)
}

// suspendPlan asks about all steps at once.
func (t *turn) suspendPlan() phase {
	b := t.batch
	id, err := t.record(b.ruling, true)
	if err != nil {
		t.finish(Failed, fmt.Sprintf("The question could not be recorded: %v.", err))
		return done
	}
	t.a.step("asked")
	w := &suspended{token: string(id)}
	b.token = w.token
	rest := *t
	w.turn = &rest
	t.a.mu.Lock()
	t.a.waiting[w.token] = w
	t.a.mu.Unlock()
	plan := t.plan(w.token)
	plan.Steps, plan.Effects = b.steps, b.effects
	plan, err = t.a.Plans.Ask(plan, t.a.ApprovalTTL)
	if err != nil {
		t.a.forget(w)
		t.finish(Failed, fmt.Sprintf("The question could not be kept: %v.", err))
		return done
	}
	t.a.step("recorded")
	t.status("REQUIRES-APPROVAL")
	q := w.question(plan)
	t.ask(q)
	t.finish(Pending, fmt.Sprintf("This plan of %d steps needs your approval: %s\n%s\nApprove with: passepartout approve %s (or /approve %s); refuse with deny.",
		len(b.steps), t.action.Why(), t.a.Redact(strings.Join(q.reasons(), "\n")), w.token, w.token))
	t.a.step("notified")
	return done
}

// resumePlan takes up a plan with a person's answer, at the step it had come to.
func (t *turn) resumePlan(ctx context.Context, w *suspended, p flight.Plan) {
	yes := p.State == flight.Approved
	if err := t.a.Journal.Note(t.answerEntry(w.token, yes, p.Reason, p.By)); err != nil {
		t.planEnds(flight.Failed, fmt.Sprintf("nothing was done: %v", err))
		t.finish(Failed, fmt.Sprintf("The plan was not carried out: %v.", err))
		return
	}
	if !yes {
		t.batch = nil
		t.phase = t.refused(proto.ID(w.token), denial(p), []string{"person.denied"})
		t.run(ctx)
		return
	}
	t.batch.by = p.By
	r, err := t.answered(t.action, p.Trace)
	t.a.step("decided")
	switch {
	case err != nil:
		t.phase = t.stopPlan(err.Error())
	case r.Decision() != gate.Allow:
		t.phase = t.stopPlan("the plan was decided again: " + objections(r))
	default:
		t.batch.ruling = r
		t.grantSteps(p)
		t.phase = stepping
	}
	t.run(ctx)
}

// answered decides an action again from the top, with what the person was shown
// about it, and agreed to, satisfied.
func (t *turn) answered(a proto.Action, trace sexp.Plist) (gate.Ruling, error) {
	if trace.Word("DECISION") != "ASK" {
		return t.a.Chain().Decide(a, t.facts()), nil
	}
	p, err := t.a.ledger.Reopen(a, trace, t.a.Now().Add(t.a.ApprovalTTL))
	if err != nil {
		return gate.Ruling{}, err
	}
	return t.a.ledger.Answer(p.ID, true, t.batch.by, t.a.Chain(), t.facts())
}

// grantSteps keeps a yes that was given for the whole session: the class of each
// step that asked is the pattern later steps may stay inside.
func (t *turn) grantSteps(p flight.Plan) {
	if p.Scope != flight.Session {
		return
	}
	for i, s := range t.batch.steps {
		if class, ok := flight.Class(t.batch.acts[i]); ok && s.Asks() {
			var asked []string
			for _, v := range (flight.Plan{Trace: s.Trace}).Asked() {
				asked = append(asked, questionOf(v))
			}
			t.s.grants = keep(append(t.s.grants, grant{class: class, asked: asked, by: p.By, token: p.Token}), maxTalk)
		}
	}
}

// takeStep decides the next step again and carries it out. A step that may no
// longer be done, asks something the person was not shown, or would become another
// one ends the plan.
func (t *turn) takeStep(ctx context.Context) phase {
	b := t.batch
	if b.next == len(b.steps) {
		return t.planOver(ctx, true)
	}
	a, s := b.acts[b.next], b.steps[b.next]
	r, err := t.decideStep(a, s)
	switch {
	case err != nil:
		return t.stopPlan(err.Error())
	case r.Decision() != gate.Allow:
		if _, err := t.record(r, false); err != nil {
			return t.stopPlan(fmt.Sprintf("the ruling could not be recorded: %v", err))
		}
		if r.Decision() == gate.Ask {
			return t.stopPlan("it now raises a question you were not shown: " + objections(r))
		}
		return t.stopPlan("it is now refused: " + objections(r))
	case r.Action().Digest().String() != s.Digest:
		return t.stopPlan("a gate would make another action of it than the one you were shown")
	}
	t.ruling = r
	out, ok := t.carryOut(ctx, r)
	if !ok {
		return done
	}
	t.s.taint = t.s.taint.Join(out.Taint)
	t.s.see(out)
	b.texts[b.next] = out.Text
	b.next++
	t.s.log("%s: done, ok %t, %d bytes", a.Name(), out.OK, len(out.Text))
	if !out.OK {
		return t.planOver(ctx, false)
	}
	return stepping
}

// decideStep is the ruling on a step with the facts of now.
func (t *turn) decideStep(a proto.Action, s flight.Step) (gate.Ruling, error) {
	r := t.a.Chain().Decide(a, t.facts())
	if r.Decision() != gate.Ask {
		return r, nil
	}
	if t.batch.by.Role == proto.RoleOwner && s.Asks() {
		r, err := t.answered(a, s.Trace)
		if err == nil {
			err = t.a.Journal.Note(t.answerEntry(s.Token, true, "agreed to with the plan "+t.batch.token, t.batch.by).With("PLAN", sexp.String(t.batch.token)))
		}
		return r, err
	}
	if g := t.granted(r); g != nil {
		p, err := t.a.ledger.Open(r, t.a.Now().Add(t.a.ApprovalTTL))
		if err != nil {
			return gate.Ruling{}, err
		}
		return t.useOf(*g, proto.ID(s.Token), p)
	}
	return r, nil
}

// planOver gives what came of the steps to whoever proposed them.
func (t *turn) planOver(ctx context.Context, ok bool) phase {
	b := t.batch
	text := t.account("")
	if ok {
		t.planEnds(flight.Done, text)
	} else {
		t.planEnds(flight.Failed, text)
	}
	most := act.MaxOutput / len(b.steps)
	for i, out := range b.texts[:b.next] {
		if out == "" {
			continue // it said nothing, or was carried out before a restart
		}
		if len(out) > most {
			out = strings.ToValidUTF8(out[:most], "") + "\n[cut]"
		}
		text += fmt.Sprintf("\n\nStep %d, %s:\n%s", i+1, b.acts[i].Name(), out)
	}
	t.ruling, t.batch = b.ruling, nil
	return t.outcome(ctx, act.Outcome{OK: ok, Text: text})
}

// stopPlan ends a plan before its next step, and says so to the person: what they
// agreed to is not what would happen.
func (t *turn) stopPlan(why string) phase {
	text := t.account(why)
	t.planEnds(flight.Failed, text)
	t.batch = nil
	t.finish(Denied, text)
	return done
}

// account says of every step whether it was carried out.
func (t *turn) account(why string) string {
	b := t.batch
	var lines []string
	for i, a := range b.acts {
		name := fmt.Sprintf("step %d, %s", i+1, a.Name())
		switch {
		case b.steps[i].State == flight.Done:
			lines = append(lines, name+", was carried out")
		case b.steps[i].State == flight.Failed:
			lines = append(lines, name+", failed")
		case i == b.next && why != "":
			lines = append(lines, name+", was not carried out: "+strings.TrimSuffix(why, "."))
		default:
			lines = append(lines, name+", was not carried out")
		}
	}
	return "The plan: " + strings.Join(lines, "; ") + "."
}

// stepEnds notes how the running step went, on disk for a plan somebody agreed to.
func (t *turn) stepEnds(out act.Outcome) {
	b := t.batch
	state := flight.Done
	if !out.OK {
		state = flight.Failed
	}
	b.steps = slices.Clone(b.steps) // the plan that was shown holds the others
	b.steps[b.next].State = state
	if t.token == "" {
		return
	}
	t.a.step("acted")
	if err := t.a.Plans.EndStep(t.token, b.next, state, t.a.Redact(out.Text)); err != nil {
		t.s.log("plan %s: the end of step %d could not be recorded: %v", t.token, b.next+1, err)
	}
	t.a.step("ended")
}

// settleSteps closes a plan the program died in the middle of a step of. The steps
// after it were agreed to as what follows it, and whether they still make sense is
// for a person to say: they are not carried out.
func (a *Agent) settleSteps(p flight.Plan, saw Witness) error {
	i := p.Next()
	step, state, result := flight.Unknown, flight.Unknown, "whether it was carried out is not known"
	if saw != nil {
		switch happened, known := saw(p.AsStep(i)); {
		case known && happened:
			step, state, result = flight.Done, flight.Failed, "it was carried out"
			if i == len(p.Steps)-1 {
				state = flight.Done
			}
		case known:
			step, state, result = flight.Failed, flight.Failed, "nothing of it was done"
		}
	}
	text := fmt.Sprintf("the program ended during step %d, %s: %s", i+1, p.Steps[i].Name(), result)
	if i > 0 {
		text += fmt.Sprintf("; the %d before it were carried out", i)
	}
	if left := len(p.Steps) - i - 1; left > 0 {
		text += fmt.Sprintf("; the %d after it were not", left)
	}
	if err := a.Plans.EndStep(p.Token, i, step, result); err != nil {
		return err
	}
	if err := a.Plans.End(p.Token, state, text); err != nil {
		return err
	}
	a.tell(p, fmt.Sprintf("%s (a plan of %d steps): %s.", p.Token, len(p.Steps), text))
	return nil
}

// batchOf rebuilds the plan a turn was carrying out, for a turn of one action nil.
func (a *Agent) batchOf(p flight.Plan) (*batch, error) {
	if len(p.Steps) == 0 {
		return nil, nil
	}
	acts, err := p.Recorded(a.Table.Vocabulary())
	if err != nil {
		return nil, err
	}
	return &batch{steps: p.Steps, acts: acts, next: p.Next(), token: p.Token, texts: make([]string, len(acts))}, nil
}
