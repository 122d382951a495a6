package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"passepartout/internal/fovea"
	"passepartout/internal/memory"
	"passepartout/internal/recall"
)

// contextCommand shows what of the memex a model would be shown, and why.
func (a *app) contextCommand() *cobra.Command {
	var m memexFlag
	var at, ask string
	var pins []string
	var explain, local bool
	f := fovea.Focus{}
	cmd := &cobra.Command{
		Use:   "context",
		Short: "Show what of the memex a model would see, and why",
		Long: `Show what of the memex a model would see for a question, with the eye on a node,
within a budget of tokens. Privacy-tagged notes are left out unless --local says
that the model is on this machine.`,
		Example: `  passepartout context --focus 7f3a… --explain
  passepartout context --query "when is the passport due?" --budget 2000
  passepartout context --focus projects/house.org:40 --explain --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withMemory(cmd.Context(), m, false, func(s *memory.Store) error {
				v := s.View()
				f.Query, f.Now, f.Cloud = ask, time.Now(), !local
				if at != "" {
					o, err := lookup(s, at)
					if err != nil {
						return err
					}
					f.ID = o.ID
				}
				for _, p := range pins {
					o, err := lookup(s, p)
					if err != nil {
						return err
					}
					f.Pinned = append(f.Pinned, o.ID)
				}
				mir, err := mirror(cmd.Context(), v, recall.Fused)
				if err != nil {
					return err
				}
				return a.printContext(mir.Render(v, f), explain)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&m.dir, "memex", "", "the directory of Org files (default MEMEX_DIR)")
	flags.StringVar(&at, "focus", "", "the node the eye rests on: an id, or PATH[:LINE]")
	flags.StringVar(&ask, "query", "", "what is being asked")
	flags.StringArrayVar(&pins, "pin", nil, "a node that is always wanted; may be repeated")
	flags.IntVar(&f.Budget, "budget", fovea.DefaultBudget, "the most tokens")
	flags.Float64Var(&f.Threshold, "threshold", fovea.DefaultThreshold, "how near in meaning a note must be to be shown whole, 0 to 1")
	flags.BoolVar(&explain, "explain", false, "say of every node why it is shown or dropped")
	flags.BoolVar(&local, "local", false, "the model is on this machine: show privacy-tagged notes, too")
	return cmd
}

func (a *app) printContext(c fovea.Context, explain bool) error {
	if !explain {
		if a.json {
			c.Entries = nil
			return a.printJSON(c)
		}
		_, err := io.WriteString(a.out, printable(c.Text))
		return err
	}
	if a.json {
		return a.printJSON(c)
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, e := range c.Entries {
		fmt.Fprintf(w, "%s\t%d\t%s:%d\t%s\t%s\n", e.Form, e.Tokens, printable(e.File), e.Line, printable(e.Title), e.Reason)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.out, "%d of %d tokens; %d headings were not weighed\n", c.Tokens, c.Budget, c.Unseen)
	return err
}
