package daemon

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"passepartout/internal/llm"
	"passepartout/internal/sexp"
)

func answerModels(ctx context.Context, d *Daemon, a asking) (sexp.Plist, error) {
	return d.catalog(ctx, a.wants("FRESH")), nil
}

func answerModelsUse(_ context.Context, d *Daemon, a asking) (sexp.Plist, error) {
	text, err := d.choose(a.message.Payload.Text("ROUTE"))
	return sexp.P(sexp.Keyword("TEXT"), text), err
}

func answerCost(_ context.Context, d *Daemon, _ asking) (sexp.Plist, error) { return d.costs(), nil }

// purposes are what models are chosen for.
var purposes = []llm.Purpose{
	{Tier: llm.Cognition, Slot: llm.Chat},
	{Tier: llm.Reasoning, Slot: llm.Code},
	{Tier: llm.Reasoning, Slot: llm.Plan},
	{Tier: llm.Cognition, Slot: llm.Background},
}

// catalog is what there is, and which model does what.
func (d *Daemon) catalog(ctx context.Context, fresh bool) sexp.Plist {
	var models, problems, uses []sexp.Value
	var offers []llm.ModelInfo
	for _, cat := range d.engine.Catalogs(ctx, fresh) {
		if cat.Err != nil {
			problems = append(problems, sexp.P(sexp.Keyword("PROVIDER"), cat.Provider, sexp.Keyword("PROBLEM"), cat.Err.Error()).List())
		}
		offers = append(offers, cat.Models...)
		for _, m := range cat.Models {
			models = append(models, sexp.P(
				sexp.Keyword("NAME"), m.Provider+"/"+m.ID, sexp.Keyword("WINDOW"), m.Window, sexp.Keyword("LOCAL"), m.Local,
				sexp.Keyword("PRICED"), m.Priced, sexp.Keyword("IN"), perMillion(m.Price.In), sexp.Keyword("OUT"), perMillion(m.Price.Out)).List())
		}
	}
	for _, p := range purposes {
		use := sexp.P(
			sexp.Keyword("TIER"), p.Tier.String(), sexp.Keyword("SLOT"), p.Slot.String(),
			sexp.Keyword("MODELS"), sexp.Strings(d.engine.Choice(ctx, p)))
		if best, why, ok := llm.Recommend(offers, p); ok {
			use = use.With("BEST", sexp.String(best.Provider+"/"+best.ID)).With("WHY", sexp.String(why))
		}
		uses = append(uses, use.List())
	}
	return sexp.P(sexp.Keyword("MODELS"), sexp.NewList(models...), sexp.Keyword("PROBLEMS"), sexp.NewList(problems...), sexp.Keyword("USES"), sexp.NewList(uses...))
}

func perMillion(dollars float64) string { return fmt.Sprintf("%.2f", dollars) }

// costs is what was spent, and what may be.
func (d *Daemon) costs() sexp.Plist {
	l := d.engine.Ledger()
	day, month := l.Spent(d.now())
	caps := l.Caps()
	type sum struct {
		calls, failed, in, cached, out int
		cost                           llm.USD
	}
	by := map[string]*sum{}
	var names []string
	for _, e := range l.Entries() {
		s := by[e.Model]
		if s == nil {
			s = &sum{}
			by[e.Model] = s
			names = append(names, e.Model)
		}
		s.calls++
		if e.Class != "" {
			s.failed++
		}
		s.in, s.cached, s.out, s.cost = s.in+e.Usage.In, s.cached+e.Usage.Cached, s.out+e.Usage.Out, s.cost+e.Cost
	}
	slices.Sort(names)
	var rows []sexp.Value
	for _, n := range names {
		s := by[n]
		rows = append(rows, sexp.P(
			sexp.Keyword("MODEL"), n, sexp.Keyword("CALLS"), s.calls, sexp.Keyword("FAILED"), s.failed,
			sexp.Keyword("IN"), s.in, sexp.Keyword("CACHED"), s.cached, sexp.Keyword("OUT"), s.out, sexp.Keyword("COST"), s.cost.String()).List())
	}
	return sexp.P(
		sexp.Keyword("DAY"), day.String(), sexp.Keyword("MONTH"), month.String(),
		sexp.Keyword("CAP-TURN"), capText(caps.Turn), sexp.Keyword("CAP-SESSION"), capText(caps.Session), sexp.Keyword("CAP-JOB"), capText(caps.Job),
		sexp.Keyword("CAP-DAY"), capText(caps.Day), sexp.Keyword("CAP-MONTH"), capText(caps.Month), sexp.Keyword("MODELS"), sexp.NewList(rows...))
}

func capText(u llm.USD) string {
	if u == 0 {
		return "none"
	}
	return u.String()
}

// answerPrompt says what a model would be shown, part by part.
func answerPrompt(ctx context.Context, d *Daemon, q asking) (sexp.Plist, error) {
	a, err := d.agent.Explain(ctx, q.session, q.message.Payload.Text("TEXT"), q.conn.origin)
	if err != nil {
		return sexp.Plist{}, err
	}
	var parts []sexp.Value
	for _, p := range a.Parts {
		parts = append(parts, sexp.P(
			sexp.Keyword("NAME"), p.Name, sexp.Keyword("TRUST"), p.Trust, sexp.Keyword("STABLE"), p.Stable,
			sexp.Keyword("FULL"), p.Full, sexp.Keyword("TOKENS"), p.Tokens, sexp.Keyword("NOTE"), p.Note).List())
	}
	return sexp.P(
		sexp.Keyword("PARTS"), sexp.NewList(parts...), sexp.Keyword("TOTAL"), a.Total, sexp.Keyword("LIMIT"), a.Limit,
		sexp.Keyword("PRIVATE"), a.Request.Private, sexp.Keyword("SYSTEM"), a.Request.System, sexp.Keyword("TAIL"), a.Request.Tail), nil
}

// costWord answers /cost.
func (d *Daemon) costWord([]string) string {
	p := d.costs()
	return fmt.Sprintf("Spent today %s of %s, this month %s of %s.", p.Text("DAY"), p.Text("CAP-DAY"), p.Text("MONTH"), p.Text("CAP-MONTH"))
}

// modelsWord answers /models, /models tier/slot=provider/model and
// /models cascade=provider,provider.
func (d *Daemon) modelsWord(args []string) string {
	if len(args) == 1 {
		text, err := d.choose(args[0])
		if err != nil {
			return fmt.Sprintf("That was not chosen: %v.", err)
		}
		return text
	}
	var b strings.Builder
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	for _, p := range purposes {
		fmt.Fprintf(&b, "%s/%s: %s\n", p.Tier, p.Slot, strings.Join(d.engine.Choice(ctx, p), ", "))
	}
	return strings.TrimSuffix(b.String(), "\n")
}
