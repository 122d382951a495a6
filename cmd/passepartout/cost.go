package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"passepartout/internal/sexp"
)

func (a *app) costCommand() *cobra.Command {
	return &cobra.Command{
		Use: "cost", Short: "Show what models cost today and this month, and the caps", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.cost(cmd.Context()) },
	}
}

// scopes are what there can be caps for.
var scopes = []string{"turn", "session", "job", "day", "month"}

func (a *app) cost(ctx context.Context) error {
	p, err := a.inquire(ctx, "", sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("COST")))
	if err != nil {
		return err
	}
	caps := map[string]string{}
	for _, s := range scopes {
		caps[s] = p.Text(sexp.Keyword("CAP-" + strings.ToUpper(s)))
	}
	if a.json {
		models := []any{}
		for _, m := range rows(p, "MODELS") {
			models = append(models, map[string]any{
				"model": m.Text("MODEL"), "calls": m.Number("CALLS"), "failed": m.Number("FAILED"),
				"in": m.Number("IN"), "cached": m.Number("CACHED"), "out": m.Number("OUT"), "cost": m.Text("COST"),
			})
		}
		return a.printJSON(map[string]any{"day": p.Text("DAY"), "month": p.Text("MONTH"), "caps": caps, "models": models})
	}
	fmt.Fprintf(a.out, "today %s of %s, this month %s of %s\n", p.Text("DAY"), caps["day"], p.Text("MONTH"), caps["month"])
	fmt.Fprintf(a.out, "caps: turn %s, session %s, job %s\n", caps["turn"], caps["session"], caps["job"])
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, m := range rows(p, "MODELS") {
		fmt.Fprintf(w, "%s\t%d calls\t%d failed\t%d in (%d %% from the provider's cache)\t%d out\t%s\n", printable(m.Text("MODEL")),
			m.Number("CALLS"), m.Number("FAILED"), m.Number("IN"), 100*m.Number("CACHED")/max(1, m.Number("IN")), m.Number("OUT"), m.Text("COST"))
	}
	return w.Flush()
}

func (a *app) promptCommand() *cobra.Command {
	var session string
	var full bool
	c := &cobra.Command{
		Use: "prompt [TEXT…]", Short: "Show what a model would be shown, part by part, and what was trimmed",
		Long: `Show what a model would be shown for these words in this conversation: every
part, whether it is trusted, its tokens before and after trimming, and what was
done to it. Nothing is sent.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.explainPrompt(cmd.Context(), session, args, full)
		},
	}
	c.Flags().StringVarP(&session, "session", "s", "", "the conversation (default main)")
	c.Flags().BoolVar(&full, "full", false, "print the system text and the tail as well")
	return c
}

func (a *app) explainPrompt(ctx context.Context, session string, words []string, full bool) error {
	p, err := a.inquire(ctx, session, sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("PROMPT"), sexp.Keyword("TEXT"), strings.Join(words, " ")))
	if err != nil {
		return err
	}
	if a.json {
		parts := []any{}
		for _, m := range rows(p, "PARTS") {
			parts = append(parts, map[string]any{
				"name": m.Text("NAME"), "trust": m.Text("TRUST"), "stable": m.Flag("STABLE"),
				"full": m.Number("FULL"), "tokens": m.Number("TOKENS"), "note": m.Text("NOTE"),
			})
		}
		return a.printJSON(map[string]any{
			"parts": parts, "total": p.Number("TOTAL"), "limit": p.Number("LIMIT"), "private": p.Flag("PRIVATE"),
			"system": p.Text("SYSTEM"), "tail": p.Text("TAIL"),
		})
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, m := range rows(p, "PARTS") {
		kept := "changes"
		if m.Flag("STABLE") {
			kept = "stable"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d of %d tokens\t%s\n", m.Text("NAME"), m.Text("TRUST"), kept, m.Number("TOKENS"), m.Number("FULL"), m.Text("NOTE"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "total %d of %d tokens (estimated)\n", p.Number("TOTAL"), p.Number("LIMIT"))
	if p.Flag("PRIVATE") {
		fmt.Fprintln(a.out, "private: only models on this machine may see it")
	}
	if full {
		fmt.Fprintf(a.out, "\n%s\n\n[conversation]\n\n%s\n", printable(p.Text("SYSTEM")), printable(p.Text("TAIL")))
	}
	return nil
}
