package skill

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"passepartout/internal/gate"
	"passepartout/internal/lisp"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// A Set is one generation of skills, sorted by name. It never changes, apart from
// the accounts its skills keep.
type Set struct {
	Skills   []*Skill
	Guides   []Guide
	Problems []Problem

	jail *jail // in which drafts are tried
}

// A Problem is why a file is not in force as it stands.
type Problem struct {
	Name string
	File string
	Err  error // names the file, and the line where there is one
	Kept bool  // an earlier version is still running
	Held bool  // the file changed though it had been granted something, and is not taken up
}

func (p Problem) Error() string {
	if p.Kept {
		return p.Err.Error() + " (the version before stays in force)"
	}
	return p.Err.Error()
}

// Find returns the skill of that name.
func (s *Set) Find(name string) (*Skill, bool) {
	i, ok := slices.BinarySearchFunc(s.Skills, name, func(k *Skill, n string) int { return cmp.Compare(k.Name, n) })
	if !ok {
		return nil, false
	}
	return s.Skills[i], true
}

// Gates are the gates of the skills. A skill in quarantine keeps its gate: leaving
// it out would loosen what is permitted.
func (s *Set) Gates() []gate.Gate {
	var out []gate.Gate
	for _, k := range s.Skills {
		if g := k.Gate(); g != nil {
			out = append(out, g)
		}
	}
	return out
}

// Digest identifies the versions in the set.
func (s *Set) Digest() sexp.Digest {
	var vs []sexp.Value
	for _, k := range s.Skills {
		vs = append(vs, sexp.String(k.Name), sexp.String(k.stamp.String()))
	}
	return sexp.Sum(sexp.NewList(vs...))
}

// Plist is the set as the journal records it.
func (s *Set) Plist() sexp.Plist {
	var vs []sexp.Value
	for _, k := range s.Skills {
		vs = append(vs, sexp.P(sexp.Keyword("NAME"), k.Name, sexp.Keyword("DIGEST"), k.Digest.String(), sexp.Keyword("GATE"), k.gate != nil,
			sexp.Keyword("CAPABILITIES"), sexp.Strings(k.Has)).List())
	}
	return sexp.P(sexp.Keyword("KIND"), sexp.Keyword("SKILLS"), sexp.Keyword("DIGEST"), s.Digest().String(), sexp.Keyword("SKILLS"), sexp.NewList(vs...))
}

// Mandates are what the skills add to a prompt for a signal: every mandate, the
// prompt of the skill with the highest priority that the signal triggers, and one
// line for each guide. A skill that fails is left out.
func (s *Set) Mandates(sig proto.Signal) []string {
	var out []string
	for _, k := range s.Skills {
		if k.mandate == nil || k.quarantined() {
			continue
		}
		if text, err := k.text(k.mandate, sig); err == nil && strings.TrimSpace(text) != "" {
			out = append(out, text)
		}
	}
	if text := s.prompt(sig); text != "" {
		out = append(out, text)
	}
	if len(s.Guides) > 0 {
		var b strings.Builder
		b.WriteString("Guides you can read with the tool read-guide when the task calls for one:")
		for _, g := range s.Guides {
			fmt.Fprintf(&b, "\n- %s: %s", g.Name, g.Description)
		}
		out = append(out, b.String())
	}
	return out
}

// prompt is the text of the first skill in order of priority that has one for the
// signal.
func (s *Set) prompt(sig proto.Signal) string {
	order := slices.Clone(s.Skills)
	slices.SortStableFunc(order, func(a, b *Skill) int { return cmp.Compare(b.Priority, a.Priority) })
	for _, k := range order {
		if k.prompt == nil || k.quarantined() {
			continue
		}
		if text, err := k.text(k.prompt, sig); err == nil && strings.TrimSpace(text) != "" {
			return text
		}
	}
	return ""
}

// Guide returns the guide of that name.
func (s *Set) Guide(name string) (Guide, error) {
	var known []string
	for _, g := range s.Guides {
		if g.Name == name {
			return g, nil
		}
		known = append(known, g.Name)
	}
	return Guide{}, fmt.Errorf("no guide %q, want one of: %s", name, strings.Join(known, ", "))
}

// A Tool is what a skill declared with def-cognitive-tool. It computes: it has the
// capabilities of its skill and no effect.
type Tool struct {
	Skill  string
	Name   string
	Doc    string
	Params []proto.Param
}

// paramTypes are the types a tool's parameters can have.
var paramTypes = map[string]proto.Type{
	"string": proto.Text, "text": proto.Text, "integer": proto.Number, "number": proto.Number, "boolean": proto.Flag, "list": proto.Texts, "keyword": proto.Text, "symbol": proto.Text,
}

// Tools are the tools the skill declares.
func (s *Skill) Tools() ([]Tool, error) {
	v, _ := s.about.Get("TOOLS")
	list, _ := v.(sexp.List)
	var out []Tool
	for _, x := range list.Items() {
		l, _ := x.(sexp.List)
		p, err := sexp.AsPlist(l)
		if err != nil {
			return nil, err
		}
		t := Tool{Skill: s.Name, Name: p.Text("NAME"), Doc: p.Text("DOC")}
		if !namePattern.MatchString(t.Name) || t.Doc == "" {
			return nil, fmt.Errorf("%s: tool %q: want a name of small letters and hyphens, and a description", s.File, t.Name)
		}
		if t.Params, err = params(p); err != nil {
			return nil, fmt.Errorf("%s: tool %s: %w", s.File, t.Name, err)
		}
		verb := proto.Verb{Target: "tool", Name: t.Name, Tool: t.Name, Doc: t.Doc, Effect: proto.ReadLocal, Params: t.Params}
		if _, err := proto.NewVocabulary(verb); err != nil { // the daemon must not find out when it starts
			return nil, fmt.Errorf("%s: %w", s.File, err)
		}
		out = append(out, t)
	}
	return out, nil
}

func params(p sexp.Plist) ([]proto.Param, error) {
	v, _ := p.Get("PARAMETERS")
	list, _ := v.(sexp.List)
	var out []proto.Param
	for _, x := range list.Items() {
		l, _ := x.(sexp.List)
		q, err := sexp.AsPlist(l)
		if err != nil {
			return nil, err
		}
		t, ok := paramTypes[q.Text("TYPE")]
		if !ok {
			return nil, fmt.Errorf("parameter %s: unknown type %q, want one of %s", q.Text("NAME"), q.Text("TYPE"), strings.Join(names(paramTypes), ", "))
		}
		required, _ := q.Get("REQUIRED")
		out = append(out, proto.Param{Name: sexp.Keyword(q.Text("NAME")), Type: t, Required: !sexp.IsNil(required), Doc: q.Text("DOC")})
	}
	return out, nil
}

// Tools are the tools of all skills, sorted by name. Of two with one name the
// skill that comes first by its own name has it.
func (s *Set) Tools() []Tool {
	var out []Tool
	for _, k := range s.Skills {
		ts, err := k.Tools()
		if err != nil {
			continue // such a skill was not loaded
		}
		for _, t := range ts {
			if !slices.ContainsFunc(out, func(o Tool) bool { return o.Name == t.Name }) {
				out = append(out, t)
			}
		}
	}
	slices.SortFunc(out, func(a, b Tool) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// ErrQuarantined means that a skill failed too often to be asked again.
var ErrQuarantined = errors.New("the skill failed too often and is in quarantine until its file changes")

// CallTool runs a skill's tool. An error means that it failed, and says how.
func (s *Set) CallTool(name string, args sexp.Plist) (Answer, error) {
	for _, t := range s.Tools() {
		if t.Name == name {
			k, _ := s.Find(t.Skill)
			return k.callTool(name, args)
		}
	}
	return Answer{}, fmt.Errorf("no skill has the tool %s any more", name)
}

func (s *Skill) callTool(name string, args sexp.Plist) (Answer, error) {
	p, err := s.call("passepartout::call-tool", args, lisp.String(name))
	if err != nil {
		return Answer{}, err
	}
	out := s.answer(p)
	out.Text = p.Text("CONTENT")
	if p.Word("STATUS") != "SUCCESS" {
		return out, errors.New(out.Text)
	}
	return out, nil
}
