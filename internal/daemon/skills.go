package daemon

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"passepartout/internal/act"
	"passepartout/internal/agent"
	"passepartout/internal/memory"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
	"passepartout/internal/skill"
)

// openSkills loads the skills, unless there is no place for any. One that does not
// load is told and left out: it must not keep the daemon from starting.
func (d *Daemon) openSkills() (*skill.Library, error) {
	if d.s.SkillsDir == "" {
		return nil, nil
	}
	now := d.now
	if now == nil {
		now = time.Now
	}
	return skill.Open(skill.Options{
		Dir: d.s.SkillsDir, Grants: SkillGrants(d.s.StateDir), Bundled: skill.Bundled(), Memory: skillMemory{d.memory}, Now: now,
	})
}

// SkillGrants is where the user's grants lie, in the agent's own state.
func SkillGrants(state string) string { return filepath.Join(state, "skills", "grants") }

// tellSkills says what is wrong with the skills of a set.
func tellSkills(log *slog.Logger, set *skill.Set) {
	for _, p := range set.Problems {
		log.Error("skill", "name", p.Name, "error", p.Error())
	}
}

// skillTools are the tools skills declare, as they are when the daemon starts, and
// the one that reads guides. A skill cannot take the name of a compiled-in tool.
func (d *Daemon) skillTools(ours []act.Tool) []act.Tool {
	if d.skills == nil {
		return nil
	}
	taken := map[string]bool{"shell": true, "run-tests": true, "read-guide": true}
	for _, t := range ours {
		taken[t.Name] = true
	}
	var out []act.Tool
	for _, t := range d.skills.Set().Tools() {
		if taken[t.Name] {
			continue
		}
		out = append(out, act.Tool{Name: t.Name, Doc: t.Doc, Effect: proto.ReadLocal, Params: t.Params, Run: d.runSkillTool(t.Name)})
	}
	if len(d.skills.Set().Guides) > 0 {
		out = append(out, act.Tool{
			Name: "read-guide", Doc: "Read one of the installed guides.", Effect: proto.ReadLocal,
			Params: []proto.Param{{Name: "NAME", Type: proto.Text, Required: true, Doc: "the guide's name"}},
			Run: func(_ context.Context, c act.Call) (act.Outcome, error) {
				g, err := d.skills.Set().Guide(c.Text("NAME"))
				if err != nil {
					return act.Failed("%v", err), nil
				}
				return act.Outcome{OK: true, Text: g.Text, Taint: proto.Taint{Untrusted: true}}, nil
			},
		})
	}
	return out
}

// runSkillTool calls the tool as the version of its skill in force has it. What it
// returns may hold anything the skill has read.
func (d *Daemon) runSkillTool(name string) func(context.Context, act.Call) (act.Outcome, error) {
	return func(_ context.Context, c act.Call) (act.Outcome, error) {
		got, err := d.skills.Set().CallTool(name, c.Args)
		if err != nil {
			return act.Failed("%v", err), nil
		}
		return act.Outcome{OK: true, Text: got.Text, Taint: proto.Taint{Untrusted: true}}, nil
	}
}

// withSkills adds what skills have to say to the prompt.
func (d *Daemon) withSkills(p agent.Prompt) agent.Prompt {
	if d.skills != nil {
		p.Mandates = func(sig proto.Signal) []string { return d.skills.Set().Mandates(sig) }
	}
	return p
}

// skillMemory is the memex as skills with the capability see it: nothing private,
// nothing that came from elsewhere.
type skillMemory struct{ store *memory.Store }

func (m skillMemory) Lookup(id string) (sexp.Plist, bool) {
	if m.store == nil {
		return sexp.Plist{}, false
	}
	v := m.store.View()
	o, ok := v.Get(memory.ID(id))
	if !ok || !shown(v, o) {
		return sexp.Plist{}, false
	}
	return objectPlist(v, o), true
}

func (m skillMemory) WithAttribute(key, value string) []sexp.Plist {
	if m.store == nil {
		return nil
	}
	v := m.store.View()
	var out []sexp.Plist
	for o := range v.All() {
		if attribute(o, key) == value && value != "" && shown(v, o) {
			out = append(out, objectPlist(v, o))
		}
	}
	return out
}

func (m skillMemory) All() []sexp.Plist {
	if m.store == nil {
		return nil
	}
	v := m.store.View()
	var out []sexp.Plist
	for o := range v.All() {
		if shown(v, o) {
			out = append(out, objectPlist(v, o))
		}
	}
	return out
}

func shown(v *memory.View, o memory.Object) bool { return !v.PrivateObject(o) && o.Origin() == "" }

func attribute(o memory.Object, key string) string {
	switch strings.ToUpper(key) {
	case "TODO", "TODO-STATE":
		return o.Todo
	case "TITLE":
		return o.Title
	}
	value, _ := o.Property(key)
	return value
}

// objectPlist is an object as skills know it.
func objectPlist(v *memory.View, o memory.Object) sexp.Plist {
	attrs := sexp.P(sexp.Keyword("TITLE"), o.Title, sexp.Keyword("TODO"), o.Todo, sexp.Keyword("TAGS"), sexp.Strings(o.AllTags))
	for _, p := range o.Properties() {
		k := sexp.Keyword(strings.ToUpper(p.Key))
		if _, taken := attrs.Get(k); !taken {
			attrs = attrs.With(k, sexp.String(p.Value))
		}
	}
	var children []string
	for c := range o.Children() {
		if shown(v, c) {
			children = append(children, string(c.ID))
		}
	}
	kind := sexp.Keyword("HEADLINE")
	if o.IsFile() {
		kind = "FILE"
	}
	return sexp.P(sexp.Keyword("ID"), string(o.ID), sexp.Keyword("TYPE"), kind, sexp.Keyword("ATTRIBUTES"), attrs,
		sexp.Keyword("CONTENT"), o.Body(), sexp.Keyword("PARENT-ID"), string(o.Parent), sexp.Keyword("CHILDREN"), sexp.Strings(children))
}
