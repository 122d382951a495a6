package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"passepartout/internal/memory"
)

// changedCommand shows what changed in the memex since a time.
func (a *app) changedCommand() *cobra.Command {
	var m memexFlag
	c := &cobra.Command{
		Use: "changed [SINCE]", Short: "Show which headings changed since a time, the latest first",
		Long: `Show which headings changed since a time, the latest first: a number of days (3d),
weeks (1w), hours (6h), a date, or yesterday, which it is if nothing is said. A
change is one the memory has seen, by whomever it was made.`,
		Example: "  passepartout changed\n  passepartout changed 1w\n  passepartout changed 2026-11-01 --json",
		Args:    cobra.MaximumNArgs(1), ValidArgs: []string{"yesterday", "6h", "3d", "1w"},
		RunE: func(cmd *cobra.Command, args []string) error {
			since, err := sinceTime(strings.Join(args, ""), time.Now())
			if err != nil {
				return &exitError{exitUsage, err}
			}
			return a.withMemory(cmd.Context(), m, false, func(s *memory.Store) error { return a.printChanged(s.View(), since) })
		},
	}
	c.Flags().StringVar(&m.dir, "memex", "", "the directory of Org files (default MEMEX_DIR)")
	return c
}

// sinceTime reads a time in the past.
func sinceTime(text string, now time.Time) (time.Time, error) {
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	switch text {
	case "", "yesterday":
		return midnight.AddDate(0, 0, -1), nil
	case "today":
		return midnight, nil
	}
	if t, err := time.ParseInLocation(time.DateOnly, text, now.Location()); err == nil {
		return t, nil
	}
	var n int
	var unit string
	if k, err := fmt.Sscanf(text, "%d%s", &n, &unit); err == nil && k == 2 && n >= 0 {
		switch unit {
		case "h":
			return now.Add(-time.Duration(n) * time.Hour), nil
		case "d":
			return midnight.AddDate(0, 0, -n), nil
		case "w":
			return midnight.AddDate(0, 0, -7*n), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q: want a date, yesterday, or a time such as 6h, 3d or 1w", text)
}

func (a *app) printChanged(v *memory.View, since time.Time) error {
	var found []memory.Object
	for o := range v.All() {
		if o.Changed.After(since) {
			found = append(found, o)
		}
	}
	slices.SortStableFunc(found, func(a, b memory.Object) int { return b.Changed.Compare(a.Changed) })
	if a.json {
		out := make([]any, len(found))
		for i, o := range found {
			out[i] = map[string]any{"changed": o.Changed.Format(time.RFC3339), "object": toJSON(o)}
		}
		return a.printJSON(out)
	}
	for _, o := range found {
		fmt.Fprintf(a.out, "%s  %s\n", o.Changed.Local().Format("2006-01-02 15:04"), strings.TrimLeft(heading(o), "* "))
	}
	return nil
}
