package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"passepartout/internal/fovea"
	"passepartout/internal/memory"
	"passepartout/internal/recall"
	"passepartout/internal/sexp"
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
that the model is on this machine. The whole prompt, part by part and with what was
trimmed to fit, is what "passepartout prompt" shows.`,
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
				f.Leave = true // the person's own question
				x, err := a.indexed(cmd.Context(), v, recallFlags{memex: m}, recall.Fused)
				if err != nil {
					return err
				}
				return errors.Join(a.printContext(x.Render(v, f), explain), x.done())
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

// focusCommand shows and changes which projects a conversation is about.
func (a *app) focusCommand() *cobra.Command {
	var session string
	c := &cobra.Command{
		Use:   "focus [list|push NODE|pop|clear|pin NODE|unpin NODE]",
		Short: "Show or change which projects a conversation is about",
		Long: `Show or change which projects a conversation is about. They form a stack that is
kept per conversation: the last one pushed is what a model is shown in full, unless
an editor says where its cursor is. A pinned node is always shown. NODE is an
identifier, PATH[:LINE], or words of a heading.`,
		Example: `  passepartout focus push projects/house.org
  passepartout focus push heat pump
  passepartout focus pop`,
		ValidArgs: []cobra.Completion{"list", "push", "pop", "clear", "pin", "unpin"},
		RunE: func(cmd *cobra.Command, args []string) error {
			op, node := "list", ""
			if len(args) > 0 {
				op, node = args[0], strings.Join(args[1:], " ")
			}
			takes := op == "push" || op == "pin" || op == "unpin"
			switch {
			case !takes && op != "list" && op != "pop" && op != "clear":
				return usageError("want list, push, pop, clear, pin or unpin, found %q", op)
			case takes != (node != ""):
				return usageError("focus %s: want %s", op, map[bool]string{true: "a node", false: "no node"}[takes])
			}
			return a.focus(cmd.Context(), session, op, node)
		},
	}
	c.Flags().StringVarP(&session, "session", "s", "", "the conversation (default main)")
	return c
}

func (a *app) focus(ctx context.Context, session, op, node string) error {
	p, err := a.inquire(ctx, session, sexp.P(
		sexp.Keyword("ACTION"), sexp.Keyword("FOCUS"), sexp.Keyword("OP"), sexp.Keyword(strings.ToUpper(op)), sexp.Keyword("NODE"), node))
	if err != nil {
		return err
	}
	type spot struct {
		ID    string `json:"id"`
		Title string `json:"title"`
		File  string `json:"file"`
		Line  int    `json:"line"`
	}
	spots := func(key sexp.Keyword) []spot {
		out := []spot{}
		for _, r := range rows(p, key) {
			out = append(out, spot{r.Text("ID"), r.Text("TITLE"), r.Text("FILE"), r.Number("LINE")})
		}
		return out
	}
	if a.json {
		return a.printJSON(map[string]any{"stack": spots("STACK"), "pinned": spots("PINNED"), "point": p.Text("POINT")})
	}
	if said := p.Text("TEXT"); said != "" {
		_, err := fmt.Fprintln(a.out, printable(said))
		return err
	}
	if len(spots("STACK"))+len(spots("PINNED")) == 0 {
		fmt.Fprintln(a.errw, "Nothing is in focus: passepartout focus push NODE")
	}
	for _, key := range []sexp.Keyword{"STACK", "PINNED"} {
		for _, s := range spots(key) {
			if _, err := fmt.Fprintf(a.out, "%s  %s:%d: %s\n", strings.ToLower(string(key)), printable(s.File), s.Line, printable(s.Title)); err != nil {
				return err
			}
		}
	}
	return nil
}
