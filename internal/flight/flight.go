// Package flight keeps what waits for a person, and learns from the answers.
//
// The central types:
//
//   - [Plan] is one action that needs a person: what exactly, who asked for it, what
//     the gates said, until when, and how it went. Its [State] only moves forward.
//     One with several [Step]s is asked about once and carried out step by step.
//   - [Log] is the authority on plans: an append-only file outside the agent's
//     reach, on disk before anybody is told. Of several answers to a plan one wins.
//   - [Approvers] says who may answer.
//   - [Board] shows plans as Org headings. It is a view: what is written there
//     counts for nothing.
//   - [Class] puts like actions together; [Mine] finds, in a journal, the classes
//     a person keeps agreeing to and makes the smallest [Proposal] covering them.
//
// The rule a newcomer will break: a plan that has started is never started again.
// When the program died in between, the truth is "not known", and that is what is
// recorded, unless a witness knows better.
package flight

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"passepartout/internal/gate"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// A State is where a plan stands. The zero State is invalid.
type State uint8

// The states. Open plans come before Denied, ended ones from it on.
const (
	StateInvalid State = iota
	Planned            // waits for a person
	Approved           // a person agreed; nothing has happened yet
	Started            // the effect was about to happen
	Denied             // a person refused
	Expired            // nobody answered in time, which means no
	Done               // carried out
	Failed             // not carried out, or with an error; the result says which
	Unknown            // the program died while it was carried out
)

var stateNames = [...]string{"INVALID", "PLAN", "APPROVED", "STARTED", "DENIED", "EXPIRED", "DONE", "FAILED", "UNKNOWN"}

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return stateNames[StateInvalid]
}

// parseState is the inverse of [State.String]; an unknown name is StateInvalid.
func parseState(name string) State {
	for s, n := range stateNames {
		if n == name {
			return State(s)
		}
	}
	return StateInvalid
}

// Ended reports whether nothing more will happen to a plan in this state.
func (s State) Ended() bool { return s >= Denied }

// A Scope says how far a person's yes reaches. The zero Scope is this once.
type Scope uint8

// The scopes.
const (
	Once     Scope = iota
	Session        // further actions of the same class in this session
	WithRule       // this once, and a rule for the class is put on trial
)

func (s Scope) String() string {
	switch s {
	case Session:
		return "session"
	case WithRule:
		return "rule"
	case Once:
	}
	return "once"
}

// ParseScope is the inverse of [Scope.String]; "" is once.
func ParseScope(s string) (Scope, error) {
	switch strings.ToLower(s) {
	case "", "once":
		return Once, nil
	case "session":
		return Session, nil
	case "rule":
		return WithRule, nil
	}
	return Once, fmt.Errorf("scope %q: want once, session or rule", s)
}

// A Plan is one action that waits, or waited, for a person.
type Plan struct {
	Token     string // also the id of the asking ruling in the journal
	Session   string
	State     State
	Action    sexp.Plist // as [proto.Action.Plist]
	Digest    string     // of the exact action
	Trace     sexp.Plist // what the gates said, as the person was shown it
	Steps     []Step     // of a plan of several; none for a single action
	Effects   []string   // what carrying it out can do
	Requester proto.Origin
	Policy    string     // digest of the policy that asked
	Turn      sexp.Plist // the suspended turn, for whoever resumes it
	Preview   sexp.Plist // what it did where nothing lasts, as the person was shown it; may be empty
	Created   time.Time
	Expires   time.Time

	By       proto.Origin // who answered
	Scope    Scope
	Reason   string // the answer's
	Answered time.Time
	Ruling   string // id of the ruling that permitted it
	Started  time.Time
	Ended    time.Time
	Result   string // one line of what came of it

	deadline time.Time // Expires by this process's own clock
}

// Name is the action's name as people read it.
func (p Plan) Name() string {
	return strings.ToLower(string(p.Action.Word("TARGET")) + "." + string(p.Action.Word("VERB")))
}

// Asked are the questions the person was shown.
func (p Plan) Asked() []gate.Verdict {
	return slices.DeleteFunc(gate.VerdictsOf(p.Trace), func(v gate.Verdict) bool { return v.Decision != gate.Ask })
}

// Fate says in one sentence how the plan stands.
func (p Plan) Fate() string {
	when := func(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }
	so := ""
	if p.State == Approved && p.Next() > 0 {
		so = "; " + p.Progress()
	}
	switch p.State {
	case Planned:
		return fmt.Sprintf("%s waits for an answer until %s", p.Token, when(p.Expires))
	case Approved:
		return fmt.Sprintf("%s was approved over %s at %s and is about to be carried out%s", p.Token, p.By.Channel, when(p.Answered), so)
	case Started:
		return fmt.Sprintf("%s was approved over %s at %s and is being carried out", p.Token, p.By.Channel, when(p.Answered))
	case Denied:
		return fmt.Sprintf("%s was denied over %s at %s", p.Token, p.By.Channel, when(p.Answered))
	case Expired:
		return fmt.Sprintf("%s expired without an answer, and silence means no", p.Token)
	case Done:
		return fmt.Sprintf("%s was approved over %s and carried out at %s", p.Token, p.By.Channel, when(p.Ended))
	case Failed:
		return fmt.Sprintf("%s was approved over %s and failed: %s", p.Token, p.By.Channel, p.Result)
	case Unknown:
		return fmt.Sprintf("%s was approved over %s and begun at %s, but the program ended before it could be seen whether it was carried out; it will not be tried again", p.Token, p.By.Channel, when(p.Started))
	case StateInvalid:
	}
	return p.Token + " is in no known state"
}

// Plist is the plan as it is recorded.
func (p Plan) Plist() sexp.Plist {
	out := sexp.P(
		sexp.Keyword("TOKEN"), p.Token, sexp.Keyword("SESSION"), p.Session, sexp.Keyword("STATE"), p.State.String(),
		sexp.Keyword("ACTION"), p.Action, sexp.Keyword("DIGEST"), p.Digest, sexp.Keyword("TRACE"), p.Trace,
		sexp.Keyword("REQUESTER"), p.Requester.Plist(), sexp.Keyword("POLICY"), p.Policy)
	for _, e := range p.times() {
		if !e.at.IsZero() {
			out = out.With(e.key, sexp.String(e.at.UTC().Format(time.RFC3339Nano)))
		}
	}
	if p.State == Approved || !p.Answered.IsZero() {
		out = out.With("BY", p.By.Plist().List()).With("SCOPE", sexp.String(p.Scope.String())).With("REASON", sexp.String(p.Reason))
	}
	if p.Ruling != "" {
		out = out.With("RULING", sexp.String(p.Ruling))
	}
	if p.Result != "" {
		out = out.With("RESULT", sexp.String(p.Result))
	}
	if len(p.Effects) > 0 {
		out = out.With("EFFECTS", sexp.Strings(p.Effects))
	}
	if len(p.Steps) > 0 {
		steps := make([]sexp.Value, len(p.Steps))
		for i, s := range p.Steps {
			steps[i] = s.plist().List()
		}
		out = out.With("STEPS", sexp.NewList(steps...))
	}
	if p.Preview.Len() > 0 {
		out = out.With("PREVIEW", p.Preview.List())
	}
	if p.Turn.Len() > 0 {
		out = out.With("TURN", p.Turn.List())
	}
	return out
}

type timeField struct {
	key sexp.Keyword
	at  *time.Time
}

func (p *Plan) times() []timeField {
	return []timeField{{"CREATED", &p.Created}, {"EXPIRES", &p.Expires}, {"ANSWERED", &p.Answered}, {"STARTED", &p.Started}, {"ENDED", &p.Ended}}
}

// planOf is the inverse of [Plan.Plist].
func planOf(pl sexp.Plist) (Plan, error) {
	p := Plan{
		Token: pl.Text("TOKEN"), Session: pl.Text("SESSION"), State: parseState(pl.Text("STATE")),
		Action: pl.Sub("ACTION"), Digest: pl.Text("DIGEST"), Trace: pl.Sub("TRACE"),
		Requester: proto.OriginOf(pl.Sub("REQUESTER")), Policy: pl.Text("POLICY"), Turn: pl.Sub("TURN"), Preview: pl.Sub("PREVIEW"),
		By: proto.OriginOf(pl.Sub("BY")), Reason: pl.Text("REASON"), Ruling: pl.Text("RULING"), Result: pl.Text("RESULT"),
	}
	if p.Token == "" || p.State == StateInvalid {
		return Plan{}, fmt.Errorf("recorded plan %q is in the state %q: want a token and a known state", p.Token, pl.Text("STATE"))
	}
	v, _ := pl.Get("EFFECTS")
	l, _ := v.(sexp.List)
	for _, e := range l.Items() {
		if s, ok := e.(sexp.String); ok {
			p.Effects = append(p.Effects, string(s))
		}
	}
	var err error
	if p.Steps, err = stepsOf(pl); err != nil {
		return Plan{}, fmt.Errorf("recorded plan %s: %w", p.Token, err)
	}
	if p.Scope, err = ParseScope(pl.Text("SCOPE")); err != nil {
		return Plan{}, fmt.Errorf("recorded plan %s: %w", p.Token, err)
	}
	for _, e := range p.times() {
		text := pl.Text(e.key)
		if text == "" {
			continue
		}
		if *e.at, err = time.Parse(time.RFC3339Nano, text); err != nil {
			return Plan{}, fmt.Errorf("recorded plan %s: %w", p.Token, err)
		}
	}
	return p, nil
}

// Approvers says who may answer. The zero Approvers is the owner, over any
// channel.
type Approvers struct {
	Channels  []string // "cli", or "telegram:4711" for one sender; none: every channel
	Elsewhere bool     // the answer must come over another channel than the request
}

// Check returns why this origin may not answer that requester's plan. Jobs,
// peers, guests and models never may.
func (a Approvers) Check(by, requester proto.Origin) error {
	if by.Role != proto.RoleOwner {
		return fmt.Errorf("%w: %s on %s", gate.ErrNotApprover, by.Role, by.Channel)
	}
	if len(a.Channels) > 0 && !slices.Contains(a.Channels, by.Channel) && !slices.Contains(a.Channels, by.Who) {
		return fmt.Errorf("%w: approvals are not taken from %s, only from %s", gate.ErrNotApprover, by.Channel, strings.Join(a.Channels, ", "))
	}
	if a.Elsewhere && by.Channel == requester.Channel {
		return fmt.Errorf("%w: it was asked for over %s, so it must be answered over another channel", gate.ErrNotApprover, by.Channel)
	}
	return nil
}
