package skill

import (
	"errors"
	"fmt"
	"strings"

	"passepartout/internal/gate"
	"passepartout/internal/lisp"
	"passepartout/internal/proto"
)

// CreateSkill is the tool that proposes a new skill. Its arguments are the name
// and the text of the file.
const CreateSkill = "create-skill"

// Draft loads a text as the skill of that name beside the skills of the set, runs
// its tests, and puts nothing into force. It has no capabilities.
func (s *Set) Draft(name string, text []byte) (*Skill, error) {
	name, err := NameOf(name + ".org")
	if err != nil {
		return nil, err
	}
	k, missing, err := s.try(name, name+".org", text, Grants{})
	if err = errors.Join(err, missing); err != nil {
		return nil, err
	}
	if k.Tests == 0 {
		return nil, fmt.Errorf("%s.org: it has no tests: want at least one deftest", name)
	}
	return k, nil
}

// try loads a file beside the skills of the set, and says what it names that is not
// among them.
func (s *Set) try(name, file string, raw []byte, grants Grants) (k *Skill, missing, err error) {
	if s.jail == nil {
		return nil, nil, errors.New("there is no jail to try a skill in")
	}
	src, err := parse(name, file, raw)
	if err != nil {
		return nil, nil, err
	}
	all := map[string]*source{}
	for _, k := range s.Skills {
		all[k.Name] = k.src
	}
	all[name] = src
	ord := arrange(all)
	if err := ord.failed[name]; err != nil {
		return nil, nil, err
	}
	var deps []*source
	for _, b := range ord.below[name] {
		deps = append(deps, all[b])
	}
	if k, err = s.jail.skill(src, deps, ord.below[name], grants); err != nil {
		return nil, nil, err
	}
	return k, errors.Join(ord.lacks[name], k.missing(all)), nil
}

// Drafts is the gate that tries what create-skill proposes.
func (s *Set) Drafts() gate.Gate { return draftGate{s} }

// draftGate tries a proposed skill before anybody is asked about it: one that does
// not load or fails its own tests goes back to whoever drafted it. It judges with
// the skills of its set alone, so a ruling can be repeated.
type draftGate struct{ set *Set }

// Name cannot be that of a skill's gate: no skill is called so.
func (draftGate) Name() string { return "skill/(draft)" }

func (draftGate) Priority() int { return MaxPriority }

func (g draftGate) Check(a proto.Action, _ gate.Facts) gate.Verdict {
	if a.Spec().Tool != CreateSkill {
		return gate.Pass()
	}
	name := a.Args().Text("NAME")
	k, err := g.set.Draft(name, []byte(a.Args().Text("CONTENT")))
	if err != nil {
		code := "draft.failed"
		if lisp.Exhausted(err) {
			code = "draft.exhausted"
		}
		return gate.Verdict{Code: code, Reason: fmt.Sprintf("the draft does not load: %v", err)}
	}
	return gate.Verdict{Decision: gate.Ask, Code: "draft.new", Reason: g.describe(k)}
}

// describe is what a person should know about a draft that works.
func (g draftGate) describe(k *Skill) string {
	var b strings.Builder
	fmt.Fprintf(&b, "the skill %s loads and passes its %d tests", k.Name, k.Tests)
	if _, ok := g.set.Find(k.Name); ok {
		b.WriteString("; it takes the place of the one in force")
	}
	if k.gate != nil {
		fmt.Fprintf(&b, "; it has a gate at %d", k.Priority)
	}
	if tools, err := k.Tools(); err == nil && len(tools) > 0 {
		for i, t := range tools {
			b.WriteString(map[bool]string{true: "; its tools: ", false: " "}[i == 0] + t.Name)
		}
	}
	if k.mandate != nil || k.prompt != nil {
		b.WriteString("; it speaks to the model")
	}
	if len(k.Wants) > 0 {
		fmt.Fprintf(&b, "; it will ask for %s", strings.Join(k.Wants, ", "))
	}
	return b.String()
}
