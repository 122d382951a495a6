package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

func (a *app) undoCommand() *cobra.Command {
	var turn string
	var list bool
	c := &cobra.Command{
		Use: "undo [N|ID]", Short: "Take back what the agent changed: files, notes, and what its commands did",
		Long: `Take back the agent's last change, its last N changes, or those of one action or
turn by its id. Files come back byte for byte, with their modes; what somebody
changed since is left alone and said. ` + "`redo`" + ` brings them back again.`,
		Example: `  passepartout undo                 # the last change
  passepartout undo 3               # the last three
  passepartout undo a-4kq2mx        # one action, as named by why
  passepartout undo --turn s-82h3d  # all of one turn
  passepartout undo --list`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case list && len(args) == 0 && turn == "":
				return a.restore(cmd.Context(), "list-changes", sexp.P())
			case turn != "" && len(args) == 0 && !list:
				return a.restore(cmd.Context(), "undo", sexp.P(sexp.Keyword("OF"), turn))
			case turn != "" || list:
				return usageError("undo: want one of N, ID, --turn and --list")
			case len(args) == 1 && strings.Contains(args[0], "-") && args[0][0] != '-':
				return a.restore(cmd.Context(), "undo", sexp.P(sexp.Keyword("OF"), args[0]))
			}
			n, err := counted(args)
			if err != nil {
				return err
			}
			return a.restore(cmd.Context(), "undo", sexp.P(sexp.Keyword("COUNT"), n))
		},
	}
	c.Flags().StringVar(&turn, "turn", "", "take back everything one turn did")
	c.Flags().BoolVarP(&list, "list", "l", false, "list the changes, newest first, and take nothing back")
	return c
}

func (a *app) redoCommand() *cobra.Command {
	return &cobra.Command{
		Use: "redo [N]", Short: "Bring back the changes that were undone last", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := counted(args)
			if err != nil {
				return err
			}
			return a.restore(cmd.Context(), "redo", sexp.P(sexp.Keyword("COUNT"), n))
		},
	}
}

// counted is the number in the arguments, 1 when there is none.
func counted(args []string) (int, error) {
	if len(args) == 0 {
		return 1, nil
	}
	n, err := strconv.Atoi(args[0])
	if err != nil || n < 1 {
		return 0, usageError("%q: want a positive number", args[0])
	}
	return n, nil
}

// restore has the daemon do it: the owner's own proposal, judged and recorded like
// any other.
func (a *app) restore(ctx context.Context, tool string, args sexp.Plist) error {
	c, err := a.connect(ctx, "cli")
	if err != nil {
		return err
	}
	defer c.close()
	r, err := c.exchange(proto.Message{Kind: proto.Request, Target: "tool", Payload: sexp.P(
		sexp.Keyword("TOOL"), tool, sexp.Keyword("ARGS"), args, sexp.Keyword("EXPLANATION"), "The owner typed this command.")}, nil)
	if err != nil {
		return err
	}
	if a.json {
		err = a.printJSON(answerJSON(r, nil))
	} else {
		_, err = fmt.Fprintln(a.out, printable(r.Payload.Text("TEXT")))
	}
	if code := codeOf(r); code != exitOK && err == nil {
		return &exitError{code: code}
	}
	return err
}
