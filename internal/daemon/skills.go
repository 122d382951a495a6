package daemon

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"passepartout/internal/act"
	"passepartout/internal/agent"
	"passepartout/internal/journal"
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
	return skill.Open(skill.Options{
		Dir: d.s.SkillsDir, Grants: SkillGrants(d.s.StateDir), Bundled: skill.Bundled(), Memory: skillMemory{d.memory}, Journal: d.lastEntries, Now: d.clock,
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

// lastEntries is the journal as skills with the capability see it: what it holds
// was cleaned before it was written.
func (d *Daemon) lastEntries(limit int) []sexp.Plist {
	es, err := journal.Tail(filepath.Join(d.s.StateDir, "journal"), limit)
	if err != nil && d.log != nil { // there is none while nothing runs
		d.log.Error("the journal cannot be shown to a skill", "error", err)
	}
	out := make([]sexp.Plist, 0, len(es))
	for _, e := range slices.Backward(es) {
		out = append(out, e.Body)
	}
	return out
}

// skillTools are the tools skills declare, as they are when the daemon starts, the
// ones that make skills, and the one that reads guides. A skill cannot take the
// name of a compiled-in tool.
func (d *Daemon) skillTools(ours []act.Tool) []act.Tool {
	if d.skills == nil {
		return nil
	}
	out := d.makingSkills()
	if len(d.skills.Set().Guides) > 0 {
		var there []string
		for _, t := range slices.Concat(ours, out) {
			there = append(there, t.Name)
		}
		for _, t := range d.skills.Set().Tools() {
			there = append(there, t.Name)
		}
		out = append(out, d.guideTool(append(there, "shell", "run-tests")))
	}
	taken := map[string]bool{"shell": true, "run-tests": true, "read-guide": true}
	for _, t := range slices.Concat(ours, out) {
		taken[t.Name] = true
	}
	for _, t := range d.skills.Set().Tools() {
		if !taken[t.Name] {
			out = append(out, act.Tool{Name: t.Name, Doc: t.Doc, Effect: proto.ReadLocal, Params: t.Params, Run: d.runSkillTool(t.Name)})
		}
	}
	return out
}

// makingSkills are the tools with which a model drafts a skill. Trying one has no
// effect; creating one is for a person to approve, who is shown what it does, and
// only one that works gets so far.
func (d *Daemon) makingSkills() []act.Tool {
	params := []proto.Param{
		{Name: "NAME", Type: proto.Text, Required: true, Doc: "small letters and hyphens"},
		{Name: "CONTENT", Type: proto.Text, Means: proto.Content, Required: true, Doc: "the Org file: prose, lisp blocks, and at least one deftest"},
	}
	return []act.Tool{
		{
			Name: "try-skill", Doc: "Load the draft of a skill into a jail and run its tests, without installing it.", Effect: proto.ReadLocal, Params: params,
			Run: func(_ context.Context, c act.Call) (act.Outcome, error) {
				k, err := d.skills.Set().Draft(c.Text("NAME"), []byte(c.Text("CONTENT")))
				if err != nil {
					return act.Failed("%v", err), nil
				}
				return act.Outcome{OK: true, Text: fmt.Sprintf("%s loads and passes its %d tests.\n%s", k.Name, k.Tests, k.Log)}, nil
			},
		},
		{
			Name: skill.CreateSkill, Doc: "Install a skill that works, after a person has approved it.", Effect: proto.Rewrite, Params: params,
			Run: func(_ context.Context, c act.Call) (act.Outcome, error) {
				k, err := d.skills.Install(c.Text("NAME"), []byte(c.Text("CONTENT")))
				if err != nil {
					return act.Failed("%v", err), nil
				}
				text := fmt.Sprintf("The skill %s is installed; its %d tests pass. Its tools are offered from the next start on.", k.Name, k.Tests)
				if len(k.Wants) > 0 {
					text += fmt.Sprintf(" To let it use what it asks for: passepartout skill grant %s %s", k.Name, strings.Join(k.Wants, " "))
				}
				return act.Outcome{OK: true, Text: text}, nil
			},
		},
	}
}

func (d *Daemon) guideTool(there []string) act.Tool {
	return act.Tool{
		Name: "read-guide", Doc: "Read one of the installed guides.", Effect: proto.ReadLocal,
		Params: []proto.Param{{Name: "NAME", Type: proto.Text, Required: true, Doc: "the guide's name"}},
		Run: func(_ context.Context, c act.Call) (act.Outcome, error) {
			g, err := d.skills.Set().Guide(c.Text("NAME"))
			if err != nil {
				return act.Failed("%v", err), nil
			}
			return act.Outcome{OK: true, Text: g.Told(there), Taint: proto.Taint{Untrusted: true}, Only: g.Allowed(there)}, nil
		},
	}
}

// runSkillTool calls the tool as the version of its skill in force has it. What it
// returns may hold anything the skill has read.
func (d *Daemon) runSkillTool(name string) func(context.Context, act.Call) (act.Outcome, error) {
	return func(ctx context.Context, c act.Call) (act.Outcome, error) {
		got, err := d.skills.Set().CallTool(name, c.Args)
		if err != nil {
			return act.Failed("%v", err), nil
		}
		text := got.Text
		if len(got.Signals) > 0 && c.Origin.Channel == skillChannel {
			text += "\n[what it wanted to say of its own accord was dropped: it was called because of a skill]"
			got.Signals = nil
		}
		d.hearSkill(ctx, got)
		return act.Outcome{OK: true, Text: text, Taint: proto.Taint{Untrusted: true}}, nil
	}
}

// skillChannel is where signals of skills come from.
const skillChannel = "skill"

// maxInjected is how many signals one call of a skill may cause.
const maxInjected = 8

// hearSkill takes what a call of a skill injected: proposals go to the gates, texts
// become turns of a session of the skill's own, and other sensors go to the skill
// that handles them, if any does. All of it comes from a job: it can answer no
// question and give no command.
func (d *Daemon) hearSkill(ctx context.Context, a skill.Answer) {
	for i, m := range a.Signals {
		if i == maxInjected {
			d.log.Warn("a skill says too much at once; the rest is dropped", "skill", a.Skill, "dropped", len(a.Signals)-i)
			return
		}
		if err := d.hearOne(ctx, a.Skill, m); err != nil {
			d.log.Warn("what a skill said is dropped", "skill", a.Skill, "error", err)
		}
	}
}

func (d *Daemon) hearOne(ctx context.Context, from string, m sexp.Plist) error {
	payload := m.Sub("PAYLOAD")
	sig := proto.Signal{
		ID: d.newID("s"), Kind: proto.Event, Session: skillChannel + "/" + from, At: d.clock(),
		Origin: proto.Origin{Role: proto.RoleJob, Channel: skillChannel, Who: from}, Taint: proto.Taint{Untrusted: true},
	}
	sensor := strings.ToLower(string(payload.Word("SENSOR")))
	switch {
	case m.Word("TYPE") == "REQUEST":
		sig.Kind = proto.Request
		sig.Body = sexp.P(sexp.Keyword("SENSOR"), sexp.Keyword("CLIENT-REQUEST"), sexp.Keyword("PROPOSAL"), m.List())
	case m.Word("TYPE") != "EVENT":
		return fmt.Errorf("want an :EVENT or a :REQUEST, found %s", m.Word("TYPE"))
	case sensor == "user-input" || sensor == "chat-message":
		sig.Body = sexp.P(sexp.Keyword("SENSOR"), sexp.Keyword("CHAT-MESSAGE"), sexp.Keyword("TEXT"), payload.Text("TEXT"))
	default:
		for _, h := range d.skills.Set().Handlers() {
			if h.Event == sensor {
				got, err := d.skills.Set().Call(ctx, h, m)
				if err == nil {
					d.log.Info("handled", "sensor", sensor, "by", h.Skill, "from", from, "answer", got.Text)
				}
				return err
			}
		}
		return fmt.Errorf("nobody handles the sensor %q", sensor)
	}
	return d.agent.Submit(sig, sexp.Nil)
}

// clock is the time as the daemon sees it.
func (d *Daemon) clock() time.Time {
	if d.now != nil {
		return d.now()
	}
	return time.Now()
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
	if value == "" {
		return nil
	}
	return slices.Collect(m.having(key, value))
}

func (m skillMemory) All() []sexp.Plist { return slices.Collect(m.having("", "")) }

// having are the objects whose attribute has that value; no key means all.
func (m skillMemory) having(key, value string) iter.Seq[sexp.Plist] {
	return func(yield func(sexp.Plist) bool) {
		if m.store == nil || key != "" && value == "" {
			return
		}
		v := m.store.View()
		for o := range v.All() {
			if (key == "" || attribute(o, key) == value) && shown(v, o) && !yield(objectPlist(v, o)) {
				return
			}
		}
	}
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
