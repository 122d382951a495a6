// Package skill loads skills: Org files whose Lisp blocks add gates, prompts and
// tools to the agent while it runs.
//
// The central types:
//
//   - [Library] watches the places skills come from. [Library.Refresh] reads what
//     changed: parse, order by what builds on what, load each into a jail of its
//     own, run its tests, and only then swap.
//   - [Set] is one immutable generation of loaded skills. A version that does not
//     load leaves the last good one in the set, with a [Problem] beside it.
//   - [Skill] is one of them. [Skill.Gate] adapts its deterministic function to a
//     gate that can only tighten; [Skill.Tools] and [Set.Mandates] are the rest.
//   - [Hook] is a function of a skill that others may call, with [Set.Call]: on an
//     event, for a sensor of its own, or as the condition of a job.
//   - [Set.Draft] and [Library.Install] are how a skill that a model drafted comes
//     in: tried by a gate, approved by a person, tried again and put into force.
//   - [Grants] is what the user lets skills use, pinned to the bytes of the file.
//   - [Guide] is an Agent Skill, a folder with a SKILL.md: text for a model, told by
//     its description and read only when asked for.
//
// The rule a newcomer will break: what a gate says may depend on the action and the
// facts alone, or a ruling could not be repeated. Of the capabilities granted to its
// skill it gets those that read facts (judging.go), and no other.
package skill

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"passepartout/internal/gate"
	"passepartout/internal/lisp"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// MaxPriority is the highest priority a skill's gate runs at: below every
// compiled-in gate, so that those are reported first.
const MaxPriority = 90

// maxFailures is how often the parts of a skill that are not its gate may fail
// before they are left out.
const maxFailures = 3

// A Skill is one loaded version of a skill. It is safe for concurrent use.
type Skill struct {
	Name     string
	File     string
	Bundled  bool // came with the program
	Digest   sexp.Digest
	Priority int      // as its gate runs; see MaxPriority
	Below    []string // what it builds on, directly or not
	Wants    []string // capabilities it asks for
	Has      []string // capabilities it was granted
	Tests    int      // how many of its own it passed
	Log      string   // what it said while it was loaded

	about   sexp.Plist
	src     *source
	stamp   sexp.Digest // of everything that decides how it loads
	image   *lisp.Image
	caps    lisp.Caps
	gate    lisp.Value // nil: none
	trigger lisp.Value // nil: always
	mandate lisp.Value // nil: none, or text
	prompt  lisp.Value // nil: none

	held bool // its file changed after a grant

	calls, failures, steps atomic.Uint64
	strikes                atomic.Uint64 // failures of anything but the gate
	last                   atomic.Pointer[string]
}

// A Usage is what a skill has done since it was loaded.
type Usage struct {
	Calls, Failures, Steps uint64
	Quarantined            bool
	LastFailure            string
}

// Usage is the skill's own account.
func (s *Skill) Usage() Usage {
	u := Usage{Calls: s.calls.Load(), Failures: s.failures.Load(), Steps: s.steps.Load(), Quarantined: s.quarantined()}
	if p := s.last.Load(); p != nil {
		u.LastFailure = *p
	}
	return u
}

func (s *Skill) quarantined() bool { return s.held || s.strikes.Load() >= maxFailures }

// Speaks reports whether the skill adds to what a model is told.
func (s *Skill) Speaks() bool { return s.mandate != nil || s.prompt != nil }

// Events are what the skill's hooks and handlers wait for.
func (s *Skill) Events() []string {
	return append(textList(s.about, "HOOKS"), textList(s.about, "HANDLERS")...)
}

// newSkill takes the functions of a loaded skill out of its image.
func newSkill(src *source, below []string, caps lisp.Caps, l loaded) (*Skill, error) {
	s := &Skill{
		Name: src.name, File: src.file, Digest: src.digest, Below: below, Tests: l.tests, Log: l.log,
		Wants: textList(l.about, "CAPABILITIES"), Has: capWords(caps),
		about: l.about, src: src, image: l.image, caps: caps,
	}
	if len(s.Wants) == 0 {
		s.Wants = guessCaps(src.code)
	}
	if _, err := parseCaps(s.Wants); err != nil {
		return nil, fmt.Errorf("%s: %w", src.file, err)
	}
	priority, err := integer(l.about, "PRIORITY")
	if err != nil {
		return nil, fmt.Errorf("%s: :priority: %w", src.file, err)
	}
	s.Priority = max(0, min(priority, MaxPriority))
	for _, f := range []struct {
		key string
		to  *lisp.Value
	}{{"DETERMINISTIC", &s.gate}, {"TRIGGER", &s.trigger}, {"MANDATE", &s.mandate}, {"PROBABILISTIC", &s.prompt}} {
		v, err := s.field(f.key)
		if err != nil {
			return nil, fmt.Errorf("%s: :%s: %w", src.file, strings.ToLower(f.key), err)
		}
		*f.to = v
	}
	return s, nil
}

// field is one function the skill registered, nil for none. Whatever its code has put
// in the way is run too, and has no capabilities.
func (s *Skill) field(key string) (lisp.Value, error) {
	th := s.image.Thread(loadBudget)
	th.Drop(allCaps)
	vs, err := th.EvalString(s.File, "(getf (first passepartout::*registered*) :"+key+")")
	if err != nil {
		return nil, err
	}
	switch v := vs[0].(type) {
	case *lisp.Function:
		return v, nil
	case *lisp.Str:
		return v, nil
	case *lisp.Symbol:
		if v == lisp.Nil {
			return nil, nil
		}
		return v, nil
	}
	return nil, errors.New("want a function or the name of one")
}

func integer(p sexp.Plist, k sexp.Keyword) (int, error) {
	v, _ := p.Get(k)
	i, ok := v.(sexp.Int)
	n, fits := i.Int64()
	if !ok || !fits || n > 1<<20 || n < -1<<20 {
		return 0, fmt.Errorf("want a small whole number, found %s", sexp.Print(v))
	}
	return int(n), nil
}

// run is one metered use of the skill.
type run struct {
	s      *Skill
	th     *lisp.Thread
	budget lisp.Budget
}

func (s *Skill) begin(b lisp.Budget, caps lisp.Caps) run {
	s.calls.Add(1)
	th := s.image.Thread(b)
	th.Drop(^caps)
	return run{s, th, b}
}

// end keeps the account; strike says whether a failure counts towards quarantine.
func (r run) end(err error, strike bool) {
	r.s.steps.Add(r.budget.Steps - r.th.Left().Steps)
	if err == nil {
		return
	}
	r.s.failures.Add(1)
	text := err.Error()
	r.s.last.Store(&text)
	if strike {
		r.s.strikes.Add(1)
	}
}

// signalData is a signal in the form skills know: :TYPE :META :PAYLOAD :DEPTH.
func signalData(sig proto.Signal) sexp.List {
	return sexp.NewList(
		sexp.Keyword("TYPE"), sig.Kind.Keyword(),
		sexp.Keyword("META"), sexp.NewList(sexp.Keyword("SOURCE"), sexp.Keyword(strings.ToUpper(sig.Origin.Channel)),
			sexp.Keyword("SESSION-ID"), sexp.String(sig.Session), sexp.Keyword("ROLE"), sexp.Keyword(strings.ToUpper(sig.Origin.Role.String()))),
		sexp.Keyword("PAYLOAD"), sig.Body.List(),
		sexp.Keyword("DEPTH"), sexp.NewInt(int64(sig.Depth)),
	)
}

// triggered asks the skill whether a signal is its business. No trigger means it
// always is.
func (s *Skill) triggered(th *lisp.Thread, ctx lisp.Value) (bool, error) {
	if s.trigger == nil {
		return true, nil
	}
	v, err := th.Apply(s.trigger, ctx)
	if err != nil {
		return false, err
	}
	return !lisp.IsNil(v), nil
}

// Gate is the skill's gate, nil when it has none.
func (s *Skill) Gate() gate.Gate {
	if s.gate == nil {
		return nil
	}
	return skillGate{s}
}

// text calls one of the skill's functions for a text; what it registered as text
// is the answer itself.
func (s *Skill) text(fn lisp.Value, sig proto.Signal) (string, error) {
	if t, ok := fn.(*lisp.Str); ok {
		text, _ := lisp.Text(t)
		return text, nil
	}
	r := s.begin(workBudget, s.caps)
	text, err := func() (string, error) {
		ctx, err := r.th.FromData(signalData(sig))
		if err != nil {
			return "", err
		}
		if on, err := s.triggered(r.th, ctx); !on || err != nil {
			return "", err
		}
		v, err := r.th.Apply(fn, ctx)
		if err != nil || lisp.IsNil(v) {
			return "", err
		}
		text, ok := v.(*lisp.Str)
		if !ok {
			return "", errors.New("want a text from the skill's prompt function")
		}
		out, _ := lisp.Text(text)
		return out, nil
	}()
	r.end(err, true)
	return text, err
}
