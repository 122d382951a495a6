package daemon

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"

	"passepartout/internal/act"
	"passepartout/internal/gate"
	"passepartout/internal/memory"
	"passepartout/internal/sexp"
)

// Bounds of what one answer shows a client.
const (
	mostTouched  = 8      // files the agent changed last
	mostItems    = 2_000  // lines of an agenda, of an outline, of completions
	mostVersions = 100    // of a node
	mostText     = 64_000 // bytes of one text
)

// answerOverview is what a client shows beside a conversation: where it looks, how
// full its context is, what the agent does and did, and how it is held.
func answerOverview(_ context.Context, d *Daemon, a asking) (sexp.Plist, error) {
	v := d.memory.View()
	stack, pins, point := d.gazes.look(a.session)
	var focus []string
	for _, id := range append(stack, point) {
		if o, ok := v.Get(id); ok && id != "" {
			focus = append(focus, o.Title)
		}
	}
	st := d.pulse.Status()
	running := make([]string, len(st.Running))
	for i, r := range st.Running {
		running[i] = r.Name
	}
	tokens, limit := d.agent.Gauge(a.session)
	day, _ := d.engine.Ledger().Spent(d.now())
	caps := d.engine.Ledger().Caps()
	level, note := protection(d.policy.base.Sandbox, d.policy.problem())
	p := sexp.P(
		sexp.Keyword("FOCUS"), focus, sexp.Keyword("PINNED"), len(pins), sexp.Keyword("TOKENS"), tokens, sexp.Keyword("LIMIT"), limit,
		sexp.Keyword("COST"), day.String(), sexp.Keyword("CAP"), capText(caps.Day),
		sexp.Keyword("JOBS"), len(st.Jobs), sexp.Keyword("WAITING"), st.Waiting, sexp.Keyword("RUNNING"), running,
		sexp.Keyword("TOUCHED"), d.touched(), sexp.Keyword("PROTECTION"), level, sexp.Keyword("PROTECTION-NOTE"), note, sexp.Keyword("WORK"), d.workList())
	if e, ok := d.mirror.Progress(); ok {
		p = p.With("EMBEDDINGS", embeddings(e).List())
	}
	return p, nil
}

// protection is how the agent is held, in a word and in a sentence.
func protection(s gate.Sandbox, problem error) (level, note string) {
	switch {
	case problem != nil:
		return "old policy", "the policy on disk cannot be read, so the one before is in force"
	case s == gate.SandboxFull:
		return "full", "every command runs in a full sandbox"
	case s == gate.SandboxPart:
		return "partial", "commands run without network, but files are not shut off"
	}
	return "none", "there is no sandbox here, so every command asks"
}

// touched are the files the agent changed last, newest first, below the memex by
// their relative names.
func (d *Daemon) touched() []string {
	var out []string
	for _, s := range (act.History{Files: d.undo, Memory: d.memory}).Steps() {
		for _, p := range s.Paths {
			if rel, err := filepath.Rel(d.s.MemexDir, p); err == nil && filepath.IsAbs(p) && filepath.IsLocal(rel) {
				p = filepath.ToSlash(rel)
			}
			if !s.Undone && !slices.Contains(out, p) && p != plansFile {
				out = append(out, p)
			}
			if len(out) == mostTouched {
				return out
			}
		}
	}
	return out
}

// answerAgenda is what the dates of the memex say about some days.
func answerAgenda(_ context.Context, d *Daemon, a asking) (sexp.Plist, error) {
	now := d.now()
	q := memory.AgendaQuery{From: now, Now: now}
	if from := a.message.Payload.Text("FROM"); from != "" {
		t, err := time.ParseInLocation(time.DateOnly, from, now.Location())
		if err != nil {
			return sexp.Plist{}, fmt.Errorf(":FROM: want a date like 2026-12-24, found %q", from)
		}
		q.From = t
	}
	q.To = q.From.AddDate(0, 0, min(count(a, 7), 366)-1)
	items := d.memory.View().Agenda(q)
	rows := make([]sexp.Value, 0, len(items))
	for _, it := range items[:min(len(items), mostItems)] {
		clock := ""
		if it.Timed {
			clock = it.Stamp.Start.Format("15:04")
		}
		rows = append(rows, located(it.Object).With("DAY", sexp.String(it.Day.Format(time.DateOnly))).
			With("KIND", sexp.Keyword(strings.ToUpper(it.Kind))).With("DAYS", sexp.NewInt(int64(it.Days))).With("TIME", sexp.String(clock)).
			With("TODO", sexp.String(it.Object.Todo)).With("CATEGORY", sexp.String(it.Object.Category())).List())
	}
	return sexp.P(sexp.Keyword("FROM"), q.From.Format(time.DateOnly), sexp.Keyword("TO"), q.To.Format(time.DateOnly), sexp.Keyword("ITEMS"), sexp.NewList(rows...)), nil
}

// answerOutline is the files of the memex, or one node: its text and what is
// directly below it.
func answerOutline(_ context.Context, d *Daemon, a asking) (sexp.Plist, error) {
	v := d.memory.View()
	name := a.message.Payload.Text("NODE")
	if name == "" {
		var rows []sexp.Value
		for o := range v.FileObjects() {
			if len(rows) == mostItems {
				break
			}
			rows = append(rows, outlined(o).List())
		}
		return sexp.P(sexp.Keyword("TITLE"), d.memex, sexp.Keyword("CHILDREN"), sexp.NewList(rows...)), nil
	}
	o, err := d.node(v, name)
	if err != nil {
		return sexp.Plist{}, err
	}
	var rows []sexp.Value
	for c := range o.Children() {
		if len(rows) == mostItems {
			break
		}
		rows = append(rows, outlined(c).List())
	}
	return outlined(o).With("PARENT", sexp.String(string(o.Parent))).With("TEXT", sexp.String(cut(o.Text()))).
		With("OUTLINE", sexp.Strings(o.Outline())).With("CHILDREN", sexp.NewList(rows...)), nil
}

func outlined(o memory.Object) sexp.Plist {
	n := 0
	for range o.Children() {
		n++
	}
	return sexp.P(
		sexp.Keyword("ID"), string(o.ID), sexp.Keyword("TITLE"), o.Title, sexp.Keyword("FILE"), o.File, sexp.Keyword("LINE"), o.Line,
		sexp.Keyword("TODO"), o.Todo, sexp.Keyword("DONE"), o.Done, sexp.Keyword("TAGS"), o.Tags, sexp.Keyword("VERSION"), o.Version, sexp.Keyword("BELOW"), n)
}

// cut bounds a text.
func cut(s string) string {
	if len(s) <= mostText {
		return s
	}
	return strings.ToValidUTF8(s[:mostText], "") + "\n…"
}

// answerNodeHistory is what became of one node, newest first, each version with
// how it differs from the one before.
func answerNodeHistory(_ context.Context, d *Daemon, a asking) (sexp.Plist, error) {
	o, err := d.node(d.memory.View(), a.message.Payload.Text("NODE"))
	if err != nil {
		return sexp.Plist{}, err
	}
	versions, err := d.memory.Versions(o.ID)
	if err != nil {
		return sexp.Plist{}, err
	}
	var rows []sexp.Value
	for i := len(versions) - 1; i >= 0 && len(rows) < mostVersions; i-- {
		v, before := versions[i], ""
		if i > 0 {
			before = versions[i-1].Text
		}
		rows = append(rows, sexp.P(
			sexp.Keyword("OPERATION"), int64(v.Op.Seq), sexp.Keyword("KIND"), string(v.Op.Kind), sexp.Keyword("AT"), moment(v.Op.At),
			sexp.Keyword("ACTOR"), v.Op.Actor, sexp.Keyword("TURN"), v.Op.Turn, sexp.Keyword("LABEL"), v.Op.Label, sexp.Keyword("FILE"), v.File,
			sexp.Keyword("DIFF"), cut(udiff.Unified(v.File, v.File, before, v.Text))).List())
	}
	return located(o).With("VERSIONS", sexp.NewList(rows...)), nil
}

// answerComplete is how a word could go on: the memex's files by their path, nodes
// by the beginning of their title or identifier, sessions by their name.
func answerComplete(ctx context.Context, d *Daemon, a asking) (sexp.Plist, error) {
	const most = 50
	prefix := strings.ToLower(a.message.Payload.Text("TEXT"))
	var out []string
	add := func(s string) {
		if len(out) < most && strings.HasPrefix(strings.ToLower(s), prefix) && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	v := d.memory.View()
	switch kind := a.message.Payload.Word("KIND"); kind {
	case "FILE", "NODE", "":
		for f := range v.Files() {
			add(f)
		}
		if kind == "NODE" && prefix != "" {
			for o := range v.All() {
				if !o.ID.Derived() {
					add(string(o.ID))
				}
				if len(out) == most {
					break
				}
			}
		}
	case "SESSION":
		all, _, err := d.talks.list(ctx)
		if err != nil {
			return sexp.Plist{}, err
		}
		for _, s := range all {
			add(s.name)
		}
	default:
		return sexp.Plist{}, fmt.Errorf(":KIND: want :FILE, :NODE or :SESSION, found %q", kind)
	}
	return sexp.P(sexp.Keyword("WORDS"), out), nil
}

// answerTags lists the tags of the memex, the most used first.
func answerTags(_ context.Context, d *Daemon, _ asking) (sexp.Plist, error) {
	tags := d.memory.View().Stats().Tags
	names := slices.SortedFunc(maps.Keys(tags), func(a, b string) int { return cmp.Or(cmp.Compare(tags[b], tags[a]), cmp.Compare(a, b)) })
	var rows []sexp.Value
	for _, n := range names[:min(len(names), maxShown)] {
		leaves := "yes"
		if slices.ContainsFunc(d.s.PrivacyTags, func(p string) bool { return strings.EqualFold(strings.TrimPrefix(p, "@"), strings.TrimPrefix(n, "@")) }) {
			leaves = "never"
		}
		rows = append(rows, sexp.P(sexp.Keyword("NAME"), n, sexp.Keyword("COUNT"), tags[n], sexp.Keyword("LEAVES"), leaves).List())
	}
	return sexp.P(sexp.Keyword("TAGS"), sexp.NewList(rows...)), nil
}
