package main

import (
	"context"
	"fmt"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"passepartout/internal/sexp"
)

func (a *app) labelsCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "labels", Short: "List the files that hold private text or text from outside without saying so",
		Long: `List the files that hold private text, or text from outside, without saying so.

What a turn writes carries the labels of what it has read. A note says so itself, in
its tags and properties. For plain files, and for whatever a command changed, the
daemon keeps the labels: whoever reads such a file later has read private text, or
text from outside.`,
		Example: "  passepartout labels\n  passepartout labels clear letters/summary.txt",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.labels(cmd.Context()) },
	}
	c.AddCommand(&cobra.Command{
		Use: "clear FILE", Short: "Take the labels off a file you have looked at",
		Long: `Take the labels off a file you have looked at. No action of a model can do that;
it stands in the journal.`,
		Example: "  passepartout labels clear letters/summary.txt",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.labelClear(cmd.Context(), args[0]) },
	})
	return c
}

func (a *app) labels(ctx context.Context) error {
	p, err := a.inquire(ctx, "", sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("LABELS")))
	if err != nil {
		return err
	}
	if a.json {
		list := []any{}
		for _, r := range rows(p, "LABELS") {
			list = append(list, map[string]any{"file": r.Text("FILE"), "private": r.Flag("PRIVATE"), "untrusted": r.Flag("UNTRUSTED")})
		}
		return a.printJSON(map[string]any{"count": p.Number("COUNT"), "labels": list})
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	shown := 0
	for _, r := range rows(p, "LABELS") {
		shown++
		private, origin := "-", "-"
		if r.Flag("PRIVATE") {
			private = "private"
		}
		if r.Flag("UNTRUSTED") {
			origin = "from outside"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", private, origin, printable(r.Text("FILE")))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if n := p.Number("COUNT"); n == 0 {
		fmt.Fprintln(a.errw, "No file needs a label kept for it.")
	} else if n > shown {
		fmt.Fprintf(a.errw, "%d more are not listed.\n", n-shown)
	}
	return nil
}

func (a *app) labelClear(ctx context.Context, file string) error {
	// As the shell would: relative to where one stands.
	abs, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	p, err := a.inquire(ctx, "", sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("LABEL-CLEAR"), sexp.Keyword("FILE"), abs))
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]any{"file": p.Text("FILE"), "were": p.Text("LABELS")})
	}
	fmt.Fprintf(a.out, "%s was %s and has no label any more.\n", printable(p.Text("FILE")), p.Text("LABELS"))
	return nil
}
