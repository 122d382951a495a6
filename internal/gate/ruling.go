package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
	"passepartout/internal/shell"
)

// A Ruling is the chain's answer: the strictest verdict and all of them. It is
// opaque so that nothing outside this package can turn a refusal into a permit.
// The zero Ruling denies.
type Ruling struct {
	action   proto.Action
	decision Decision
	verdicts []Verdict
	facts    Facts
	policy   sexp.Digest
	waivers  []waiver // of the round being judged
	effects  []string
	view     *view // of the last round; nil when no standard gate ran
	unused   *use  // one use, however often copied; nil for a replayed ruling
}

type use struct{ left atomic.Bool }

func newUse() *use {
	u := new(use)
	u.left.Store(true)
	return u
}

// object adds a verdict. An approval satisfies exactly the questions it was given
// for, a rule those whose codes it names; nothing satisfies a deny.
func (r *Ruling) object(v Verdict) {
	if v.Decision == Ask {
		if r.facts.approval.covers(r.action, v) {
			v.Decision = Allow
			v.Code += "+approved"
		} else {
			lift(&v, r.waivers)
		}
	}
	r.verdicts = append(r.verdicts, v)
	r.decision = min(r.decision, v.Decision)
}

// Action is the action judged last: the proposal, or what a gate made of it.
func (r Ruling) Action() proto.Action { return r.action }

// Decision is the strictest verdict of the last round.
func (r Ruling) Decision() Decision { return r.decision }

// Effects names what carrying out the action can do: what its verb declares, and
// what its commands were found to do.
func (r Ruling) Effects() []string { return slices.Clone(r.effects) }

// Policy is the digest of the policy in force.
func (r Ruling) Policy() sexp.Digest { return r.policy }

// Verdicts is the whole trace in the order the gates ran.
func (r Ruling) Verdicts() []Verdict { return slices.Clone(r.verdicts) }

// Objections are the verdicts of the last round that are as strict as the
// ruling; the first is the one to report. An allowing ruling has none.
func (r Ruling) Objections() []Verdict {
	if r.decision == Allow || len(r.verdicts) == 0 {
		return nil
	}
	last := r.verdicts[len(r.verdicts)-1].Round
	var out []Verdict
	for _, v := range r.verdicts {
		if v.Decision == r.decision && v.Round == last {
			out = append(out, v)
		}
	}
	return out
}

// Trace is the ruling as the journal and clients show it. Facts are separate.
func (r Ruling) Trace() sexp.Plist {
	verdicts := make([]sexp.Value, len(r.verdicts))
	for i, v := range r.verdicts {
		verdicts[i] = v.plist().List()
	}
	return sexp.P(
		sexp.Keyword("DECISION"), sexp.Keyword(strings.ToUpper(r.decision.String())),
		sexp.Keyword("POLICY"), r.policy.String(),
		sexp.Keyword("VERDICTS"), sexp.NewList(verdicts...))
}

func (v Verdict) plist() sexp.Plist {
	p := sexp.P(
		sexp.Keyword("GATE"), v.Gate,
		sexp.Keyword("DECISION"), sexp.Keyword(strings.ToUpper(v.Decision.String())),
		sexp.Keyword("CODE"), v.Code)
	if v.Also != "" {
		p = p.With("ALSO", sexp.String(v.Also))
	}
	if v.Reason != "" {
		p = p.With("REASON", sexp.String(v.Reason))
	}
	if v.Rule != "" {
		p = p.With("RULE", sexp.String(v.Rule))
	}
	if v.Bound != "" {
		p = p.With("BOUND", sexp.String(v.Bound))
	}
	if v.Round > 0 {
		p = p.With("ROUND", sexp.NewInt(int64(v.Round)))
	}
	return p
}

// VerdictsOf reads the verdicts out of a recorded [Ruling.Trace].
func VerdictsOf(trace sexp.Plist) []Verdict {
	v, _ := trace.Get("VERDICTS")
	l, _ := v.(sexp.List)
	out := make([]Verdict, 0, l.Len())
	for _, item := range l.Items() {
		il, _ := item.(sexp.List)
		p, err := sexp.AsPlist(il)
		if err != nil {
			continue
		}
		d, _ := ParseDecision(strings.ToLower(string(p.Word("DECISION"))))
		rv, _ := p.Get("ROUND")
		n, _ := rv.(sexp.Int)
		round, _ := n.Int64()
		out = append(out, Verdict{
			Gate: p.Text("GATE"), Decision: d, Code: p.Text("CODE"), Also: p.Text("ALSO"),
			Reason: p.Text("REASON"), Bound: p.Text("BOUND"), Rule: p.Text("RULE"), Round: int(round),
		})
	}
	return out
}

// A File is one whose bytes took part in a ruling. What runs must be these bytes:
// an actuator compares them once more before it starts anything.
type File struct {
	Path   string
	Digest string // "sha256:" and lower-case hex
}

// Files are the files whose text the gates read, such as scripts, sorted by path.
func (r Ruling) Files() []File {
	if r.facts.answers == nil {
		return nil
	}
	var out []File
	for _, k := range r.facts.answers.keys {
		if path, ok := strings.CutPrefix(k, "read "); ok {
			sum := sha256.Sum256([]byte(r.facts.answers.vals[k][0]))
			out = append(out, File{path, "sha256:" + hex.EncodeToString(sum[:])})
		}
	}
	slices.SortFunc(out, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// ErrNotPermitted is returned where an allowing, unused ruling was needed.
var ErrNotPermitted = errors.New("action is not permitted")

// Permit turns an allowing ruling into a Permit. However often it is called, the
// permits of one ruling work once between them.
func (r Ruling) Permit() (Permit, error) {
	if r.unused == nil || r.decision != Allow || !r.action.Valid() {
		return Permit{}, fmt.Errorf("%w: the ruling is %s", ErrNotPermitted, r.decision)
	}
	return Permit{r}, nil
}

// A Permit is the right to carry out one action once. The zero Permit is
// worthless.
type Permit struct{ ruling Ruling }

// Action is what the permit is for, without using it up.
func (p Permit) Action() proto.Action { return p.ruling.action }

// Files are the files the gates read; see [Ruling.Files].
func (p Permit) Files() []File { return p.ruling.Files() }

// OnlyReads reports whether the gates found commands in the action and nothing but
// reading in them. An actuator then gives them nothing to write to, so that the
// gates need not be right.
func (p Permit) OnlyReads() bool {
	v := p.ruling.view
	return v != nil && len(v.reports) > 0 && !slices.ContainsFunc(v.reports, func(r shell.Report) bool {
		return r.Effects&^shell.Reads != 0
	})
}

// Path is where a path argument leads, links followed, as the gates judged it. An
// actuator opens this and follows no link any more: one that is there now was not
// there when the gates looked.
func (p Permit) Path(arg sexp.Keyword) (abs string, ok bool) {
	if p.ruling.view == nil {
		return "", false
	}
	for _, a := range p.ruling.view.paths {
		if a.name == arg {
			return a.abs, true
		}
	}
	return "", false
}

// Hosts are the machines the action's commands were found to talk to, sorted, each
// with its port where the command names one.
func (p Permit) Hosts() []string {
	if p.ruling.view == nil {
		return nil
	}
	var out []string
	for _, r := range p.ruling.view.reports {
		out = append(out, r.Hosts...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Redeem returns the action the gates judged, the first time only.
func (p Permit) Redeem() (proto.Action, error) {
	if p.ruling.unused == nil || !p.ruling.unused.left.CompareAndSwap(true, false) {
		return proto.Action{}, fmt.Errorf("%w: the permit is empty or was used", ErrNotPermitted)
	}
	return p.ruling.action, nil
}
