package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"passepartout/internal/memory"
)

// opJSON is an operation as scripts see it.
type opJSON struct {
	Seq      uint64        `json:"seq"`
	Kind     memory.OpKind `json:"kind"`
	At       time.Time     `json:"at"`
	Actor    string        `json:"actor,omitempty"`
	Turn     string        `json:"turn,omitempty"`
	Label    string        `json:"label,omitempty"`
	Reverses []uint64      `json:"reverses,omitempty"`
	Files    []string      `json:"files,omitempty"`
	Text     string        `json:"text,omitempty"`
}

func opOf(op memory.Op) opJSON {
	j := opJSON{Seq: op.Seq, Kind: op.Kind, At: op.At.UTC(), Actor: op.Actor, Turn: op.Turn, Label: op.Label, Reverses: op.Reverses}
	for _, f := range op.Files {
		j.Files = append(j.Files, f.Path)
	}
	return j
}

func (a *app) memoryHistory(m *memexFlag) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "history [ID|PATH:LINE]", Short: "List operations, or the versions of one object", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withMemory(cmd.Context(), *m, false, func(s *memory.Store) error {
				out := []opJSON{}
				if len(args) == 0 {
					for _, op := range s.History() {
						out = append(out, opOf(op))
					}
				} else {
					id := memory.ID(args[0])
					o, missing := lookup(s, args[0])
					if missing == nil { // else it may be gone by now, and have a history
						id = o.ID
					}
					versions, err := s.Versions(id)
					if err != nil {
						return err
					}
					if missing != nil && len(versions) == 0 {
						return missing
					}
					for _, v := range versions {
						j := opOf(v.Op)
						j.Files, j.Text = []string{v.File}, v.Text
						out = append(out, j)
					}
				}
				if limit > 0 && len(out) > limit {
					out = out[len(out)-limit:]
				}
				return a.printOps(out)
			})
		},
	}
	cmd.Flags().IntVarP(&limit, "limit", "n", 0, "print only the last ones (0: all)")
	return cmd
}

func (a *app) printOps(ops []opJSON) error {
	if a.json {
		return a.printJSON(ops)
	}
	for _, op := range ops {
		note := strings.Join([]string{op.Actor, op.Turn, op.Label}, " ")
		if len(op.Reverses) > 0 {
			note += fmt.Sprint(" takes back ", op.Reverses)
		}
		fmt.Fprintf(a.out, "%5d  %s  %-8s  %s  %s\n", op.Seq, op.At.Format(time.DateTime), op.Kind, printable(strings.Join(op.Files, " ")), printable(strings.TrimSpace(note)))
		for line := range strings.Lines(op.Text) {
			fmt.Fprintf(a.out, "       | %s\n", printable(strings.TrimRight(line, "\r\n")))
		}
	}
	return nil
}

func (a *app) memoryDiff(m *memexFlag) *cobra.Command {
	return &cobra.Command{
		Use: "diff OPERATION", Short: "Show what an operation changed", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			seq, err := strconv.ParseUint(args[0], 10, 64)
			if err != nil {
				return usageError("want the number of an operation, found %q", args[0])
			}
			return a.withMemory(cmd.Context(), *m, false, func(s *memory.Store) error {
				op, err := s.Operation(seq)
				if err != nil {
					return err
				}
				type change struct {
					ID   memory.ID `json:"id"`
					File string    `json:"file"`
					Diff string    `json:"diff"`
				}
				var out []change
				for _, c := range op.Objects {
					if d := unified(c.File, c.File, c.OldText, c.NewText); d != "" {
						out = append(out, change{c.ID, c.File, d})
					}
				}
				if a.json {
					return a.printJSON(out)
				}
				for _, c := range out {
					fmt.Fprint(a.out, c.Diff)
				}
				return nil
			})
		},
	}
}

// markOf reads a place in history: the number of an operation, a time, or a turn.
func markOf(arg string) memory.Mark {
	if n, err := strconv.ParseUint(arg, 10, 64); err == nil {
		return memory.Mark{Op: n}
	}
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04", time.DateTime, "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(form, arg, time.Local); err == nil {
			return memory.Mark{Time: t}
		}
	}
	return memory.Mark{Turn: arg}
}

// reverse runs an undo, redo or rewind and tells what it did.
func (a *app) reverse(cmd *cobra.Command, m memexFlag, do func(*memory.Store) (memory.Result, error)) error {
	return a.withMemory(cmd.Context(), m, true, func(s *memory.Store) error {
		r, err := do(s)
		var diverged *memory.DivergedError
		if errors.As(err, &diverged) {
			fmt.Fprint(a.errw, diverged.Diff)
		}
		if err != nil {
			return err
		}
		if a.json {
			files := make([]string, len(r.Files))
			for i, f := range r.Files {
				files[i] = f.Path
			}
			return a.printJSON(map[string]any{"operation": r.Seq, "files": files})
		}
		for _, f := range r.Files {
			fmt.Fprint(a.out, unified(f.Path, f.Path, f.Before, f.After))
		}
		return nil
	})
}

func (a *app) memoryUndo(m *memexFlag) *cobra.Command {
	return &cobra.Command{
		Use: "undo [OPERATION|TURN]", Short: "Take back what the agent did last, one operation, or a whole turn", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var mark memory.Mark
			if len(args) > 0 {
				mark = markOf(args[0])
			}
			return a.reverse(cmd, *m, func(s *memory.Store) (memory.Result, error) { return s.Undo(cmd.Context(), mark) })
		},
	}
}

func (a *app) memoryRedo(m *memexFlag) *cobra.Command {
	return &cobra.Command{
		Use: "redo", Short: "Take back the last undo", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.reverse(cmd, *m, func(s *memory.Store) (memory.Result, error) { return s.Redo(cmd.Context()) })
		},
	}
}

func (a *app) memoryRewind(m *memexFlag) *cobra.Command {
	return &cobra.Command{
		Use: "rewind OPERATION|TURN|TIME", Short: "Take back everything the agent did after a point", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			mark := markOf(args[0])
			return a.reverse(cmd, *m, func(s *memory.Store) (memory.Result, error) { return s.Rewind(cmd.Context(), mark) })
		},
	}
}
