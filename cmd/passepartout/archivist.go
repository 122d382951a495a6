package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

func (a *app) gardenerCommand() *cobra.Command {
	return a.archivistCommand("gardener", "GARDEN", "system/gardener.org", "Find what has gone wrong in the memex, and repair what you tick",
		`Look for broken links, taken identifiers, notes nothing links to, stale tasks, tags
written in several ways and the like. With --write the list goes to
system/gardener.org, where you tick what is to be repaired; apply then proposes
those repairs, and the gates judge each.`)
}

func (a *app) scribeCommand() *cobra.Command {
	return a.archivistCommand("scribe", "SCRIBE", "system/scribe.org", "Distil notes from the daily log, and keep those you tick",
		`Propose notes from the logs in daily/ before today: definitions, decisions, links,
tasks and headings with text. Nothing private is touched. With --write the list
goes to system/scribe.org, where you tick what is to be kept; apply then proposes
to write those notes, and the gates judge each.`)
}

func (a *app) archivistCommand(name string, ask sexp.Keyword, file, short, long string) *cobra.Command {
	var write bool
	c := &cobra.Command{
		Use: name, Short: short, Long: long, Args: cobra.NoArgs,
		Example: fmt.Sprintf("  passepartout %s\n  passepartout %s --write   # then tick in %s\n  passepartout %s apply", name, name, file, name),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.archivist(cmd.Context(), ask, write) },
	}
	c.Flags().BoolVar(&write, "write", false, "write the list to "+file)
	c.AddCommand(&cobra.Command{
		Use: "apply", Short: "Propose what is ticked in " + file, Args: cobra.NoArgs, Example: "  passepartout " + name + " apply",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.archivistApply(cmd.Context(), ask) },
	})
	return c
}

func (a *app) archivist(ctx context.Context, ask sexp.Keyword, write bool) error {
	p, err := a.inquire(ctx, "", sexp.P(sexp.Keyword("ACTION"), ask, sexp.Keyword("WRITE"), write))
	if err != nil {
		return err
	}
	if a.json {
		found := []any{}
		for _, r := range rows(p, "FOUND") {
			row := map[string]any{"kind": r.Text("KIND"), "key": r.Text("KEY"), "file": r.Text("FILE"), "title": r.Text("TITLE"), "text": r.Text("TEXT")}
			if day := r.Text("DAY"); day != "" {
				row["day"] = day
			} else {
				row["line"], row["fix"] = r.Number("LINE"), r.Text("FIX")
			}
			found = append(found, row)
		}
		return a.printJSON(map[string]any{"count": p.Number("COUNT"), "found": found})
	}
	_, err = fmt.Fprint(a.out, printable(p.Text("TEXT")))
	return err
}

// archivistApply proposes what is ticked, one action at a time: one changes what
// the next must be, so what is left is asked for again in between.
func (a *app) archivistApply(ctx context.Context, ask sexp.Keyword) error {
	c, err := a.connect(ctx, "cli")
	if err != nil {
		return err
	}
	defer c.close()
	tried := map[string]bool{}
	code := exitOK
	for {
		p, err := c.exchange(proto.Message{Kind: proto.Request, Payload: sexp.P(sexp.Keyword("ACTION"), ask)}, nil)
		if err != nil {
			return err
		}
		todo := rows(p.Payload, "TODO")
		for len(todo) > 0 && tried[todo[0].Text("KEY")] {
			todo = todo[1:]
		}
		if len(todo) == 0 {
			break
		}
		tried[todo[0].Text("KEY")] = true
		r, err := c.exchange(propose(todo[0]), nil)
		if err != nil {
			return err
		}
		code = max(code, codeOf(r))
		text, _, _ := strings.Cut(printable(r.Payload.Text("TEXT")), "\n")
		fmt.Fprintln(a.out, text)
	}
	if len(tried) == 0 {
		fmt.Fprintln(a.errw, "Nothing is ticked.")
	}
	if code != exitOK {
		return &exitError{code: code}
	}
	return nil
}

// propose is an action as a client's own proposal.
func propose(todo sexp.Plist) proto.Message {
	return proto.Message{
		Kind: proto.Request, Target: "tool",
		Payload: sexp.P(sexp.Keyword("TOOL"), todo.Text("TOOL"), sexp.Keyword("ARGS"), todo.Sub("ARGS").List(), sexp.Keyword("EXPLANATION"), todo.Text("WHY")),
	}
}
