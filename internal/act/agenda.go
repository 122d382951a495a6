package act

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"passepartout/internal/memory"
	"passepartout/internal/pattern"
	"passepartout/internal/proto"
)

var nextDays = pattern.New(`^(?:the )?next (\d+) days?$`)

// span is a range of days by name, both ends included.
func span(name string, now time.Time) (from, to time.Time, err error) {
	day := func(n int) time.Time { return now.AddDate(0, 0, n) }
	switch name = strings.ToLower(strings.TrimSpace(name)); name {
	case "today":
		return now, now, nil
	case "tomorrow":
		return day(1), day(1), nil
	case "", "week", "this week", "coming week":
		return now, day(6), nil
	case "next week":
		monday := day(7 - (int(now.Weekday())+6)%7)
		return monday, monday.AddDate(0, 0, 6), nil
	case "month", "this month":
		return now, now.AddDate(0, 1, 0), nil
	case "next month":
		first := time.Date(now.Year(), now.Month()+1, 1, 12, 0, 0, 0, now.Location())
		return first, first.AddDate(0, 1, -1), nil
	case "overdue":
		return now, now, nil
	}
	if m := nextDays.FindStringSubmatch(name); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil && n > 0 && n <= 3660 {
			return now, day(n - 1), nil
		}
	}
	return now, now, fmt.Errorf("span %q: want today, tomorrow, week, next week, month, next month, overdue, or next N days", name)
}

func (m Memex) agenda(_ context.Context, c Call) (Outcome, error) {
	name := c.Text("SPAN")
	from, to, err := span(name, m.Now())
	if err != nil {
		return Outcome{}, err
	}
	v := m.Store.View()
	var b strings.Builder
	var taint proto.Taint
	day := time.Time{}
	n := 0
	for _, it := range v.Agenda(memory.AgendaQuery{From: from, To: to, Now: m.Now()}) {
		late := it.Kind == "overdue" || it.Kind == "late"
		if it.Object.Done || it.Kind == "upcoming" || name == "overdue" && !late {
			continue
		}
		if !it.Day.Equal(day) {
			day = it.Day
			fmt.Fprintf(&b, "%s\n", day.Format("Monday 2 January 2006"))
		}
		taint = taint.Join(m.label(v, it.Object))
		fmt.Fprintf(&b, "  %s\n", agendaLine(it))
		n++
	}
	if n == 0 {
		return Outcome{OK: true, Text: "Nothing is due or scheduled then."}, nil
	}
	return Outcome{OK: true, Text: strings.TrimRight(b.String(), "\n"), Taint: taint}, nil
}

func agendaLine(it memory.AgendaItem) string {
	what := strings.TrimSpace(it.Object.Todo + " " + it.Object.Title)
	kind := it.Kind
	if kind == "late" {
		kind = "scheduled"
	}
	line := fmt.Sprintf("%-9s  %s", kind, what)
	if it.Days < 0 {
		line += fmt.Sprintf(", %s ago", days(-it.Days))
	}
	if it.Timed {
		line += " at " + it.Stamp.Start.Format("15:04")
	}
	return line + fmt.Sprintf("  (%s:%d)", it.Object.File, it.Object.Line)
}

func days(n int) string {
	if n == 1 {
		return "1 day"
	}
	return fmt.Sprintf("%d days", n)
}
