package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"passepartout/internal/config"
	"passepartout/internal/daemon"
	"passepartout/internal/llm"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// modelSettings are the models the settings name. Servers on this machine need no
// key: they are there when they answer.
func modelSettings(cfg *config.Config) (daemon.Models, error) {
	m := daemon.Models{
		Prices:  map[string]llm.Price{},
		Timeout: cfg.RequestTimeout, Tokens: cfg.ContextTokens, Consensus: cfg.Consensus, Record: cfg.RecordFile,
		Providers: []llm.Provider{
			{Name: "ollama", Base: cfg.OllamaURL},
			{Name: "local", Base: cfg.LocalURL, Key: cfg.Keys["local"].Reveal()},
		},
	}
	if !cfg.Origin("PROVIDER_CASCADE").IsDefault() {
		m.Cascade = cfg.Cascade
	}
	for name, key := range cfg.Keys {
		if name != "local" && key.IsSet() {
			m.Providers = append(m.Providers, llm.Provider{Name: name, Key: key.Reveal()})
		}
	}
	m.Embedder, m.Hashing = embedding(cfg), cfg.EmbeddingProvider == "hashing"
	for _, text := range cfg.Routes {
		r, err := llm.ParseRoute(text)
		if err != nil {
			return m, fmt.Errorf("PASSEPARTOUT_MODELS: %w", err)
		}
		m.Routes = append(m.Routes, r)
	}
	for _, text := range cfg.Prices {
		name, price, err := llm.ParsePrice(text)
		if err != nil {
			return m, fmt.Errorf("PASSEPARTOUT_PRICES: %w", err)
		}
		m.Prices[name] = price
	}
	for _, c := range []struct {
		key, text string
		to        *llm.USD
	}{
		{"TURN_BUDGET_USD", cfg.TurnBudget, &m.Caps.Turn},
		{"SESSION_BUDGET_USD", cfg.SessionBudget, &m.Caps.Session},
		{"JOB_BUDGET_USD", cfg.JobBudget, &m.Caps.Job},
		{"DAY_BUDGET_USD", cfg.DayBudget, &m.Caps.Day},
		{"MONTH_BUDGET_USD", cfg.MonthBudget, &m.Caps.Month},
	} {
		if c.text == "none" || c.text == "" {
			continue
		}
		usd, err := llm.ParseUSD(c.text)
		if err != nil {
			return m, fmt.Errorf("%s: %w", c.key, err)
		}
		if usd == 0 {
			usd = 1 // a cap of nothing is a cap, not the lack of one
		}
		*c.to = usd
	}
	return m, nil
}

// embedding is the provider of vectors the settings name; none has no name.
func embedding(cfg *config.Config) llm.Provider {
	p := llm.Provider{Base: cfg.EmbeddingURL, Model: cfg.EmbeddingModel}
	switch cfg.EmbeddingProvider {
	case "local":
		p.Name, p.Base, p.Model = "ollama", cmp.Or(p.Base, cfg.OllamaURL), cmp.Or(p.Model, "nomic-embed-text")
	case "openai":
		p.Name, p.Model, p.Key = "openai", cmp.Or(p.Model, "text-embedding-3-small"), cfg.Keys["openai"].Reveal()
	default:
		return llm.Provider{}
	}
	return p
}

// inquire asks the daemon something and returns the answer's payload.
func (a *app) inquire(ctx context.Context, session string, payload sexp.Plist) (sexp.Plist, error) {
	c, err := a.connect(ctx, "cli")
	if err != nil {
		return sexp.Plist{}, err
	}
	defer c.close()
	m := proto.Message{Kind: proto.Request, Payload: payload}
	if session != "" {
		m.Meta = sexp.P(sexp.Keyword("SESSION-ID"), session)
	}
	r, err := c.exchange(m, nil)
	if err != nil {
		return sexp.Plist{}, err
	}
	if codeOf(r) != exitOK {
		return sexp.Plist{}, fmt.Errorf("the daemon refused: %s", printable(r.Payload.Text("TEXT")))
	}
	return r.Payload, nil
}

// rows are the property lists in a list.
func rows(p sexp.Plist, key sexp.Keyword) (out []sexp.Plist) {
	v, _ := p.Get(key)
	l, _ := v.(sexp.List)
	for _, item := range l.Items() {
		if il, ok := item.(sexp.List); ok {
			if row, err := sexp.AsPlist(il); err == nil {
				out = append(out, row)
			}
		}
	}
	return out
}

func (a *app) modelsCommand() *cobra.Command {
	var fresh bool
	c := &cobra.Command{
		Use: "models", Short: "List the models there are, and which does what",
		Long: `List what each configured provider offers, with context, price and place, and
which models are asked for what, in order. A server on this machine is there when
it answers; a provider in the cloud when it has a key. Where another model of those
that are offered would suit a kind of work better, it is recommended: small work
goes to this machine, or else to the least dear; large work to the largest.`,
		Example: "  passepartout models\n  passepartout models use chat=ollama/llama3.2",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.models(cmd.Context(), fresh) },
	}
	c.Flags().BoolVar(&fresh, "fresh", false, "ask the providers anew")
	c.AddCommand(&cobra.Command{
		Use: "use TIER/SLOT=PROVIDER/MODEL | cascade=PROVIDER,…", Short: "Choose a model for a kind of work, or the order of providers, at once and from now on",
		Example: "  passepartout models use reasoning/code=anthropic/claude-sonnet-4-5\n  passepartout models use any=ollama/llama3.2\n  passepartout models use cascade=ollama,anthropic,reflex",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := llm.ParseRoute(args[0]); err != nil && !strings.HasPrefix(args[0], "cascade=") {
				return &exitError{exitUsage, err}
			}
			p, err := a.inquire(cmd.Context(), "", sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("MODELS-USE"), sexp.Keyword("ROUTE"), args[0]))
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(a.out, printable(p.Text("TEXT")))
			return err
		},
	})
	return c
}

func (a *app) models(ctx context.Context, fresh bool) error {
	p, err := a.inquire(ctx, "", sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("MODELS"), sexp.Keyword("FRESH"), fresh))
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(modelsJSON(p))
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, m := range rows(p, "MODELS") {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", printable(m.Text("NAME")), window(m.Number("WINDOW")), priceText(m), where(m))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, m := range rows(p, "PROBLEMS") {
		fmt.Fprintf(a.errw, "%s: %s\n", m.Text("PROVIDER"), printable(m.Text("PROBLEM")))
	}
	for _, u := range rows(p, "USES") {
		fmt.Fprintf(a.out, "%s/%s: %s\n", u.Text("TIER"), u.Text("SLOT"), printable(strings.Join(texts(u, "MODELS"), ", ")))
		if best, now := u.Text("BEST"), texts(u, "MODELS"); best != "" && (len(now) == 0 || now[0] != best) {
			fmt.Fprintf(a.out, "  recommended: %s (%s)\n", printable(best), u.Text("WHY"))
		}
	}
	return nil
}

func texts(p sexp.Plist, key sexp.Keyword) (out []string) {
	v, _ := p.Get(key)
	l, _ := v.(sexp.List)
	for _, item := range l.Items() {
		if s, ok := item.(sexp.String); ok {
			out = append(out, string(s))
		}
	}
	return out
}

func window(n int) string {
	if n == 0 {
		return "?"
	}
	return fmt.Sprintf("%dk", n/1000)
}

func priceText(m sexp.Plist) string {
	switch {
	case m.Flag("LOCAL"):
		return "free"
	case !m.Flag("PRICED"):
		return "price unknown"
	}
	return fmt.Sprintf("$%s in, $%s out", m.Text("IN"), m.Text("OUT"))
}

func where(m sexp.Plist) string {
	if m.Flag("LOCAL") {
		return "local"
	}
	return "cloud"
}

func modelsJSON(p sexp.Plist) map[string]any {
	models, uses, problems := []any{}, []any{}, []any{}
	for _, m := range rows(p, "MODELS") {
		models = append(models, map[string]any{
			"name": m.Text("NAME"), "window": m.Number("WINDOW"), "local": m.Flag("LOCAL"), "priced": m.Flag("PRICED"),
			"usd_per_million_in": m.Text("IN"), "usd_per_million_out": m.Text("OUT"),
		})
	}
	for _, u := range rows(p, "USES") {
		uses = append(uses, map[string]any{"tier": u.Text("TIER"), "slot": u.Text("SLOT"), "models": texts(u, "MODELS"), "recommended": u.Text("BEST"), "why": u.Text("WHY")})
	}
	for _, x := range rows(p, "PROBLEMS") {
		problems = append(problems, map[string]any{"provider": x.Text("PROVIDER"), "problem": x.Text("PROBLEM")})
	}
	return map[string]any{"models": models, "uses": uses, "problems": problems}
}
