package flight

import (
	"fmt"
	"slices"
	"strings"

	"passepartout/internal/gate"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// A Step is one action of a plan that has several. The person saw what the gates
// said of each before the first began; each is decided again by itself.
type Step struct {
	Action sexp.Plist // as [proto.Action.Plist]
	Digest string     // of the exact action
	Trace  sexp.Plist // what the gates said when the person was asked
	Token  string     // the id of that ruling in the journal
	State  State      // Planned, Started, or how it ended
	Ruling string     // id of the ruling that permitted it
	Result string
}

// Name is the step's action as people read it.
func (s Step) Name() string { return Plan{Action: s.Action}.Name() }

// Asks reports whether the gates wanted a person for this step.
func (s Step) Asks() bool { return s.Trace.Word("DECISION") == "ASK" }

// Verdict says in one line what the gates said of the step.
func (s Step) Verdict() string {
	if !s.Asks() {
		return "allowed"
	}
	var why []string
	for _, v := range (Plan{Trace: s.Trace}).Asked() {
		why = append(why, fmt.Sprintf("%s (%s): %s", v.Gate, v.Code, v.Reason))
	}
	return "asks: " + strings.Join(why, "; ")
}

func (s Step) plist() sexp.Plist {
	return sexp.P(
		sexp.Keyword("ACTION"), s.Action, sexp.Keyword("DIGEST"), s.Digest, sexp.Keyword("TRACE"), s.Trace, sexp.Keyword("TOKEN"), s.Token,
		sexp.Keyword("STATE"), s.State.String(), sexp.Keyword("RULING"), s.Ruling, sexp.Keyword("RESULT"), s.Result)
}

// stepsOf reads the steps of a recorded plan.
func stepsOf(pl sexp.Plist) ([]Step, error) {
	v, _ := pl.Get("STEPS")
	l, _ := v.(sexp.List)
	var out []Step
	for i, item := range l.Items() {
		il, _ := item.(sexp.List)
		p, err := sexp.AsPlist(il)
		if err != nil {
			return nil, fmt.Errorf("step %d: %w", i+1, err)
		}
		s := Step{
			Action: p.Sub("ACTION"), Digest: p.Text("DIGEST"), Trace: p.Sub("TRACE"), Token: p.Text("TOKEN"),
			State: parseState(p.Text("STATE")), Ruling: p.Text("RULING"), Result: p.Text("RESULT"),
		}
		if s.State == StateInvalid {
			return nil, fmt.Errorf("step %d is in the state %q: want a known one", i+1, p.Text("STATE"))
		}
		out = append(out, s)
	}
	return out, nil
}

// Unforeseen are the questions about what nobody can know beforehand, of all steps.
func (p Plan) Unforeseen() []string {
	var out []string
	asked := p.Asked()
	for _, s := range p.Steps {
		asked = append(asked, Plan{Trace: s.Trace}.Asked()...)
	}
	for _, v := range asked {
		if slices.ContainsFunc(append(strings.Fields(v.Also), v.Code), gate.Unforeseen) {
			out = append(out, v.Reason)
		}
	}
	return out
}

// Next is the first step that has not ended, len(Steps) when all have.
func (p Plan) Next() int {
	for i, s := range p.Steps {
		if !s.State.Ended() {
			return i
		}
	}
	return len(p.Steps)
}

// Progress says how far a plan of several steps has come, "" for one that is a
// single action.
func (p Plan) Progress() string {
	if len(p.Steps) == 0 {
		return ""
	}
	done := 0
	for _, s := range p.Steps {
		if s.State == Done {
			done++
		}
	}
	return fmt.Sprintf("%d of %d steps were carried out", done, len(p.Steps))
}

// AsStep is the plan as if its one action were step i, for whoever knows about
// single actions only.
func (p Plan) AsStep(i int) Plan {
	s := p.Steps[i]
	p.Action, p.Digest, p.Trace, p.Ruling, p.Steps = s.Action, s.Digest, s.Trace, s.Ruling, nil
	return p
}

// StartStep records that the effect of an approved plan's next step is about to
// happen.
func (l *Log) StartStep(token string, i int, ruling string) error {
	return l.moveStep(token, Approved, i, Planned, func(p *Plan, s *Step) {
		s.State, s.Ruling = Started, ruling
		p.State, p.Started = Started, l.o.Now()
	})
}

// EndStep records how a started step went. The plan itself goes on, and is ended by
// [Log.End].
func (l *Log) EndStep(token string, i int, s State, result string) error {
	if !s.Ended() {
		return fmt.Errorf("step %d of plan %s cannot end in the state %s", i+1, token, s)
	}
	return l.moveStep(token, Started, i, Started, func(p *Plan, st *Step) {
		st.State, st.Result = s, brief(result)
		p.State = Approved
	})
}

// moveStep changes step i, which must be the next one and stand where it is said
// to, of a plan that does too.
func (l *Log) moveStep(token string, plan State, i int, step State, change func(*Plan, *Step)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, ok := l.plans[token]
	if !ok {
		return fmt.Errorf("%w: %q is unknown", gate.ErrNotPending, token)
	}
	if p.State != plan || i != p.Next() || i >= len(p.Steps) || p.Steps[i].State != step {
		return fmt.Errorf("%w: %s, and step %d is not its turn", gate.ErrNotPending, p.Fate(), i+1)
	}
	q := *p
	q.Steps = append([]Step(nil), p.Steps...) // others may hold a copy of the plan
	change(&q, &q.Steps[i])
	return l.write(q, false)
}

// Recorded rebuilds the actions of the steps, and sees that each is the one that
// was shown.
func (p Plan) Recorded(v *proto.Vocabulary) ([]proto.Action, error) {
	out := make([]proto.Action, len(p.Steps))
	for i, s := range p.Steps {
		a, err := v.Recorded(s.Action)
		if err != nil {
			return nil, fmt.Errorf("step %d: %w", i+1, err)
		}
		if a.Digest().String() != s.Digest {
			return nil, fmt.Errorf("the record of step %d is not the action that was shown", i+1)
		}
		out[i] = a
	}
	return out, nil
}
