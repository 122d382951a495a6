package skill

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"passepartout/internal/lisp"
	"passepartout/internal/sexp"
)

// A Hook is a function of a skill that others may have called: when an event
// happens, when a signal of its own sensor comes, or because a job names it.
type Hook struct {
	Skill string
	Event string // what it waits for, in small letters: todo-changed, file-changed, heartbeat …

	kind  string // :HOOK or :HANDLER, "" for a function by name
	index int    // among the skill's hooks, or handlers
	name  string // of the function
}

// An Answer is what a call came to.
type Answer struct {
	Skill   string
	Text    string // what it returned, if that was a text
	True    bool   // what it returned was not NIL
	Signals []sexp.Plist
}

// Hooks are the hooks of all skills, in order of skills and as each registered
// them. The rest of a set in quarantine is left out.
func (s *Set) Hooks() []Hook { return s.registered(":HOOK", "HOOKS") }

// Handlers are the functions that take the signals of a sensor before any model
// sees them.
func (s *Set) Handlers() []Hook { return s.registered(":HANDLER", "HANDLERS") }

func (s *Set) registered(kind string, key sexp.Keyword) []Hook {
	var out []Hook
	for _, k := range s.Skills {
		if k.quarantined() {
			continue
		}
		for i, e := range textList(k.about, key) {
			out = append(out, Hook{Skill: k.Name, Event: e, kind: kind, index: i})
		}
	}
	return out
}

// Function is a function of a skill by name, written SKILL/FUNCTION: what a job's
// predicate names. Whether it exists is known when it is called.
func (s *Set) Function(ref string) (Hook, error) {
	skill, name, ok := strings.Cut(ref, "/")
	if _, found := s.Find(skill); !ok || !found || name == "" {
		return Hook{}, fmt.Errorf("want SKILL/FUNCTION with a skill that is there, found %q", ref)
	}
	return Hook{Skill: skill, name: name}, nil
}

// Call calls a hook with a property list, in the version the set has, on a budget.
// What the skill injected comes back in the answer: it is for the caller to submit
// as any other signal or proposal.
func (s *Set) Call(ctx context.Context, h Hook, event sexp.Plist) (Answer, error) {
	if err := ctx.Err(); err != nil {
		return Answer{}, err
	}
	k, ok := s.Find(h.Skill)
	if !ok {
		return Answer{}, fmt.Errorf("there is no skill %s any more", h.Skill)
	}
	var p sexp.Plist
	var err error
	if h.kind == "" {
		p, err = k.call("passepartout::call-function", event, lisp.String(packageOf(k.Name)), lisp.String(h.name))
	} else {
		p, err = k.callRegistered(h, event)
	}
	if err != nil {
		return Answer{}, fmt.Errorf("%s: %w", k.File, err)
	}
	return k.answer(p), nil
}

func (s *Skill) callRegistered(h Hook, event sexp.Plist) (sexp.Plist, error) {
	return s.call("passepartout::call-"+strings.ToLower(h.kind[1:]), event, lisp.Int(h.index))
}

// answer reads what a call came to. A skill that may not signal does not.
func (s *Skill) answer(p sexp.Plist) Answer {
	truth, _ := p.Get("TRUE")
	out := Answer{Skill: s.Name, Text: p.Text("TEXT"), True: !sexp.IsNil(truth)}
	if s.caps&signalsCap == 0 {
		return out
	}
	v, _ := p.Get("SIGNALS")
	l, _ := v.(sexp.List)
	for _, x := range l.Items() {
		m, _ := x.(sexp.List)
		if q, err := sexp.AsPlist(m); err == nil && m.Len() > 0 {
			out.Signals = append(out.Signals, q)
		}
	}
	return out
}

// call runs a function of the prelude with data behind its other arguments, and
// keeps the account.
func (s *Skill) call(fn string, data sexp.Plist, args ...lisp.Value) (sexp.Plist, error) {
	if s.quarantined() {
		return sexp.Plist{}, ErrQuarantined
	}
	r := s.begin(workBudget, s.caps)
	p, err := r.call(fn, data, args)
	r.end(err, true)
	return p, err
}

func (r run) call(fn string, data sexp.Plist, args []lisp.Value) (sexp.Plist, error) {
	a, err := r.th.FromData(data.List())
	if err != nil {
		return sexp.Plist{}, err
	}
	v, err := r.th.Call(fn, append(args, a)...)
	if err != nil {
		return sexp.Plist{}, err
	}
	d, err := r.th.ToData(v)
	if err != nil {
		return sexp.Plist{}, err
	}
	l, ok := d.(sexp.List)
	if !ok {
		return sexp.Plist{}, errors.New("want a property list from the prelude")
	}
	return sexp.AsPlist(l)
}
