package gate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// An approval is a person's yes to the questions of one ruling. It can only be
// made by [Ledger.Answer].
type approval struct {
	digest sexp.Digest // of the exact action
	asked  []string    // every question the person saw, as [question] spells it
	by     proto.Origin
}

// covers reports whether the person was shown this very question about this very
// action. A new question needs a new answer.
func (a *approval) covers(act proto.Action, v Verdict) bool {
	return a != nil && slices.Contains(a.asked, question(v)) && a.digest == act.Digest()
}

// question identifies what a verdict asks. The files it was based on are part of
// it, so that a script swapped while the question was open is a new question.
func question(v Verdict) string {
	return strings.TrimRight(strings.Join([]string{v.Gate, v.Code, v.Also, v.Bound}, "|"), "|")
}

func (a *approval) plist() sexp.Plist {
	return sexp.P(sexp.Keyword("DIGEST"), a.digest.String(), sexp.Keyword("ASKED"), a.asked, sexp.Keyword("BY"), a.by.Plist())
}

func approvalOf(p sexp.Plist) *approval {
	d, err := sexp.ParseDigest(p.Text("DIGEST"))
	if err != nil {
		return nil
	}
	return &approval{digest: d, asked: texts(p, "ASKED"), by: proto.OriginOf(p.Sub("BY"))}
}

// Reasons an answer counts for nothing. Each is told to the person as it stands.
var (
	// ErrNotPending means the question is unknown or was answered already.
	ErrNotPending = errors.New("no such pending approval")
	// ErrNotApprover means this origin may not answer it; it stays open.
	ErrNotApprover = errors.New("not somebody who may approve")
	// ErrExpired means the time to answer has passed, and silence meant no.
	ErrExpired = errors.New("the approval has expired")
)

// A Pending is one question waiting for a person.
type Pending struct {
	ID      sexp.Digest // of the action
	Ruling  Ruling
	Expires time.Time
}

// A Ledger holds asking rulings that wait for a person. It is safe for
// concurrent use.
type Ledger struct {
	mu   sync.Mutex // guards open
	open map[sexp.Digest]Pending
}

// Open records an asking ruling until expires.
func (l *Ledger) Open(r Ruling, expires time.Time) (Pending, error) {
	if r.decision != Ask || r.unused == nil {
		return Pending{}, fmt.Errorf("ruling is %s: only ask can wait for a person", r.decision)
	}
	p := Pending{ID: r.action.Digest(), Ruling: r, Expires: expires}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open = map[sexp.Digest]Pending{}
	}
	l.open[p.ID] = p
	return p, nil
}

// Reopen puts a question back that was open when the program ended, from the
// action and the trace as they were recorded. What the person was shown is what
// counts, so the verdicts are the recorded ones; nothing is decided here, and a
// reopened ruling gives no permit.
func (l *Ledger) Reopen(a proto.Action, trace sexp.Plist, expires time.Time) (Pending, error) {
	r := Ruling{action: a, decision: Ask, verdicts: VerdictsOf(trace)}
	if trace.Word("DECISION") != "ASK" || len(r.Objections()) == 0 {
		return Pending{}, fmt.Errorf("recorded ruling is %s: only ask can wait for a person", strings.ToLower(string(trace.Word("DECISION"))))
	}
	p := Pending{ID: a.Digest(), Ruling: r, Expires: expires}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open = map[sexp.Digest]Pending{}
	}
	l.open[p.ID] = p
	return p, nil
}

// List returns the open questions, oldest deadline first.
func (l *Ledger) List() []Pending {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]Pending, 0, len(l.open))
	for _, p := range l.open {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b Pending) int {
		if c := a.Expires.Compare(b.Expires); c != 0 {
			return c
		}
		return strings.Compare(a.ID.String(), b.ID.String())
	})
	return out
}

// Drop closes a question without an answer, because its turn ended.
func (l *Ledger) Drop(id sexp.Digest) {
	l.mu.Lock()
	delete(l.open, id)
	l.mu.Unlock()
}

// take removes the question if by may answer it; of several answers one wins.
func (l *Ledger) take(id sexp.Digest, by proto.Origin, now time.Time) (Pending, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, ok := l.open[id]
	if !ok {
		return Pending{}, ErrNotPending
	}
	if by.Role != proto.RoleOwner {
		return Pending{}, fmt.Errorf("%w: %s on %s", ErrNotApprover, by.Role, by.Channel)
	}
	delete(l.open, id)
	if !now.Before(p.Expires) {
		return Pending{}, ErrExpired
	}
	return p, nil
}

// Answer closes a pending question. A no is final. After a yes the action is
// decided again from the top with the facts of now, and may still be denied, or
// ask something the person was not shown.
func (l *Ledger) Answer(id sexp.Digest, yes bool, by proto.Origin, c *Chain, f Facts) (Ruling, error) {
	p, err := l.take(id, by, f.Now)
	if err != nil {
		return Ruling{}, err
	}
	if !yes {
		r := p.Ruling
		r.unused = nil
		r.decision = Deny
		r.verdicts = append(slices.Clone(r.verdicts), Verdict{
			Gate: "person", Code: "person.denied", Reason: "the person asked said no",
			Round: r.verdicts[len(r.verdicts)-1].Round,
		})
		return r, nil
	}
	a := &approval{digest: id, by: by}
	for _, v := range p.Ruling.verdicts {
		if v.Decision == Ask {
			a.asked = append(a.asked, question(v))
		}
	}
	f.approval = a
	return c.Decide(p.Ruling.action, f), nil
}
