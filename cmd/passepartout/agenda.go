package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"passepartout/internal/memory"
)

// agendaCommand shows what the dates in the memex say about some days.
func (a *app) agendaCommand() *cobra.Command {
	var m memexFlag
	var from, match string
	var days int
	cmd := &cobra.Command{
		Use:   "agenda [day|week|month]",
		Short: "Show appointments, scheduled tasks and deadlines",
		Long: `Show appointments, scheduled tasks and deadlines as Org's agenda does: deadlines
are announced two weeks ahead, what is overdue stays on today.`,
		Example: `  passepartout agenda
  passepartout agenda month --match +work
  passepartout agenda day --from 2026-12-24`,
		Args: cobra.MaximumNArgs(1), ValidArgs: []string{"day", "week", "month"},
		RunE: func(cmd *cobra.Command, args []string) error {
			now := time.Now()
			q := memory.AgendaQuery{From: now, Now: now}
			if from != "" {
				t, err := time.ParseInLocation(time.DateOnly, from, time.Local)
				if err != nil {
					return usageError("--from: want a date like 2026-12-24, found %q", from)
				}
				q.From = t
			}
			span := append(args, "week")[0]
			switch {
			case days > 0:
				q.To = q.From.AddDate(0, 0, days-1)
			case span == "day":
				q.To = q.From
			case span == "week":
				q.To = q.From.AddDate(0, 0, 6)
			case span == "month":
				q.To = q.From.AddDate(0, 1, -1)
			default:
				return usageError("want day, week or month, found %q", span)
			}
			if match != "" {
				mq, err := memory.ParseQuery(match, now)
				if err != nil {
					return &exitError{exitUsage, err}
				}
				q.Match = mq
			}
			return a.withMemory(cmd.Context(), m, false, func(s *memory.Store) error { return a.printAgenda(s.View().Agenda(q)) })
		},
	}
	cmd.Flags().StringVar(&m.dir, "memex", "", "the directory of Org files (default MEMEX_DIR)")
	cmd.Flags().StringVar(&from, "from", "", "the first day (default today)")
	cmd.Flags().IntVar(&days, "days", 0, "the number of days")
	cmd.Flags().StringVar(&match, "match", "", "show only what matches a query")
	return cmd
}

func (a *app) printAgenda(items []memory.AgendaItem) error {
	if a.json {
		type itemJSON struct {
			Day    string     `json:"day"`
			Kind   string     `json:"kind"`
			Days   int        `json:"days"`
			Time   string     `json:"time,omitempty"`
			Stamp  string     `json:"stamp"`
			Object objectJSON `json:"object"`
		}
		out := make([]itemJSON, len(items))
		for i, it := range items {
			out[i] = itemJSON{it.Day.Format(time.DateOnly), it.Kind, it.Days, clockOf(it), it.Stamp.Raw, toJSON(it.Object)}
		}
		return a.printJSON(out)
	}
	var day time.Time
	for _, it := range items {
		if !it.Day.Equal(day) {
			day = it.Day
			fmt.Fprintln(a.out, day.Format("Monday 2 January 2006"))
		}
		line := heading(it.Object)
		fmt.Fprintf(a.out, "  %-12s %5s %-14s %s\n", printable(it.Object.Category())+":", clockOf(it), agendaNote(it), strings.TrimLeft(line, "* "))
	}
	return nil
}

func clockOf(it memory.AgendaItem) string {
	if !it.Timed {
		return ""
	}
	return it.Stamp.Start.Format("15:04")
}

// agendaNote says how an item relates to the day it is shown on.
func agendaNote(it memory.AgendaItem) string {
	switch it.Kind {
	case "deadline":
		return "Deadline"
	case "upcoming":
		return fmt.Sprintf("in %d d.", it.Days)
	case "overdue":
		return fmt.Sprintf("%d d. ago", -it.Days)
	case "scheduled":
		return "Scheduled"
	case "late":
		return fmt.Sprintf("Sched. %dx", -it.Days)
	}
	return ""
}
