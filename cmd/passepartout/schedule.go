package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"passepartout/internal/sexp"
)

func (a *app) scheduleCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "schedule", Short: "Show and steer what runs by itself: jobs, hooks and their history", Args: cobra.NoArgs,
		Long: `Jobs are headings with a time: a :CRON: property, or a SCHEDULED or DEADLINE date
with the tag job or a :JOB: property. Hooks are headings with a :HOOK: property.
Those in the folder system of the memex count at once; any other waits until you
allow it. See docs/schedule.md.`,
		Example: `  passepartout schedule list
  passepartout schedule history "Morning briefing"
  passepartout schedule allow "Water the plants"`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.scheduleList(cmd.Context()) },
	}
	var n int
	list := &cobra.Command{
		Use: "list", Short: "List jobs and hooks, the next due first", Args: cobra.NoArgs, Example: "  passepartout schedule list --json",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.scheduleList(cmd.Context()) },
	}
	next := &cobra.Command{
		Use: "next NAME", Short: "Show when a job is due next", Args: cobra.ExactArgs(1), Example: "  passepartout schedule next backup -n 10",
		ValidArgsFunction: a.completeOrders,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.scheduleNext(cmd.Context(), args[0], n) },
	}
	next.Flags().IntVarP(&n, "count", "n", 5, "how many due times")
	history := &cobra.Command{
		Use: "history [NAME]", Short: "Show what became of due times, newest first", Args: cobra.MaximumNArgs(1), Example: "  passepartout schedule history backup -n 50",
		ValidArgsFunction: a.completeOrders,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.scheduleHistory(cmd.Context(), strings.Join(args, ""), n)
		},
	}
	history.Flags().IntVarP(&n, "count", "n", 20, "how many runs")
	var wait bool
	run := &cobra.Command{
		Use: "run NAME", Short: "Run a job now, whatever its schedule and predicate say", Args: cobra.ExactArgs(1), Example: "  passepartout schedule run --wait backup",
		ValidArgsFunction: a.completeOrders,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.scheduleRun(cmd.Context(), args[0], wait) },
	}
	run.Flags().BoolVar(&wait, "wait", false, "wait for it to end, and end as it did")
	c.AddCommand(list, next, history, run)
	for _, s := range []struct{ word, short string }{
		{"pause", "Let a job rest; what falls due meanwhile is recorded as skipped"},
		{"resume", "Let a paused job go on"},
		{"allow", "Let an order outside the folder system count, in the form it has now"},
	} {
		c.AddCommand(&cobra.Command{
			Use: s.word + " NAME", Short: s.short, Args: cobra.ExactArgs(1), Example: "  passepartout schedule " + s.word + " backup",
			ValidArgsFunction: a.completeOrders,
			RunE:              func(cmd *cobra.Command, args []string) error { return a.scheduleChange(cmd.Context(), s.word, args[0]) },
		})
	}
	return c
}

// completeOrders offers the names of jobs, if a daemon is there to ask.
func (a *app) completeOrders(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	a.noStart = true
	p, err := a.inquire(cmd.Context(), "", sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("SCHEDULE")))
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, j := range append(rows(p, "JOBS"), rows(p, "HOOKS")...) {
		names = append(names, j.Text("NAME"))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func jobJSON(j sexp.Plist) map[string]any {
	return map[string]any{
		"id": j.Text("ID"), "name": j.Text("NAME"), "schedule": j.Text("SCHEDULE"), "next": j.Text("NEXT"), "state": j.Text("STATE"),
		"tier": j.Text("TIER"), "do": j.Text("DO"), "when": j.Text("WHEN"), "catchup": j.Text("CATCHUP"),
		"file": j.Text("FILE"), "line": j.Number("LINE"), "last": j.Text("LAST"), "last_at": j.Text("LAST-AT"),
	}
}

func (a *app) scheduleList(ctx context.Context) error {
	p, err := a.inquire(ctx, "", sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("SCHEDULE")))
	if err != nil {
		return err
	}
	problems := words(p, "PROBLEMS")
	if a.json {
		out := map[string]any{"problems": problems, "left_out": p.Number("LEFT-OUT")}
		for key, name := range map[sexp.Keyword]string{"JOBS": "jobs", "HOOKS": "hooks"} {
			list := []any{}
			for _, j := range rows(p, key) {
				list = append(list, jobJSON(j))
			}
			out[name] = list
		}
		return a.printJSON(out)
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	all := append(rows(p, "JOBS"), rows(p, "HOOKS")...)
	if len(all) == 0 {
		fmt.Fprintln(a.errw, "Nothing runs by itself: a heading with a time in system/schedule.org would")
	}
	for _, j := range all {
		when := local(j.Text("NEXT"))
		if s := j.Text("STATE"); s != "" {
			when = strings.TrimSpace(s + " " + when)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s:%d\n", printable(j.Text("NAME")), when, printable(j.Text("SCHEDULE")), lastOf(j), printable(j.Text("FILE")), j.Number("LINE"))
	}
	for _, text := range problems {
		fmt.Fprintf(a.errw, "problem: %s\n", printable(text))
	}
	if n := p.Number("LEFT-OUT"); n > 0 {
		fmt.Fprintf(a.errw, "%d more are not shown\n", n)
	}
	return w.Flush()
}

func lastOf(j sexp.Plist) string {
	if j.Text("LAST") == "" {
		return "never run"
	}
	return j.Text("LAST") + " " + local(j.Text("LAST-AT"))
}

// local is a moment as people here read it.
func local(text string) string {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

func words(p sexp.Plist, key sexp.Keyword) []string {
	v, _ := p.Get(key)
	l, _ := v.(sexp.List)
	out := []string{}
	for _, x := range l.Items() {
		if s, ok := x.(sexp.String); ok {
			out = append(out, string(s))
		}
	}
	return out
}

func (a *app) scheduleNext(ctx context.Context, name string, n int) error {
	p, err := a.inquire(ctx, "", sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("SCHEDULE-NEXT"), sexp.Keyword("NAME"), name, sexp.Keyword("COUNT"), n))
	if err != nil {
		return err
	}
	due := words(p, "DUE")
	if a.json {
		return a.printJSON(due)
	}
	for _, d := range due {
		fmt.Fprintln(a.out, local(d))
	}
	return nil
}

func runJSON(r sexp.Plist) map[string]any {
	return map[string]any{
		"run": r.Text("RUN"), "job": r.Text("JOB"), "name": r.Text("NAME"), "state": strings.ToLower(string(r.Word("STATE"))),
		"due": r.Text("DUE"), "until": r.Text("UNTIL"), "count": max(1, r.Number("COUNT")), "attempt": max(1, r.Number("ATTEMPT")),
		"at": r.Text("AT"), "ended": r.Text("ENDED"), "retry": r.Text("RETRY"), "text": r.Text("TEXT"), "manual": r.Flag("MANUAL"),
	}
}

func (a *app) scheduleHistory(ctx context.Context, name string, n int) error {
	p, err := a.inquire(ctx, "", sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("SCHEDULE-HISTORY"), sexp.Keyword("NAME"), name, sexp.Keyword("COUNT"), n))
	if err != nil {
		return err
	}
	runs := rows(p, "RUNS")
	if a.json {
		out := []any{}
		for _, r := range runs {
			out = append(out, runJSON(r))
		}
		return a.printJSON(out)
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, r := range runs {
		fmt.Fprintln(w, runLine(r))
	}
	return w.Flush()
}

// runLine is a run in one line.
func runLine(r sexp.Plist) string {
	state := strings.ToLower(string(r.Word("STATE")))
	if n := r.Number("COUNT"); n > 1 {
		state += fmt.Sprintf(" ×%d", n)
	}
	if n := r.Number("ATTEMPT"); n > 1 {
		state += fmt.Sprintf(" #%d", n)
	}
	text, _, _ := strings.Cut(printable(r.Text("TEXT")), "\n")
	return fmt.Sprintf("%s\t%s\t%s\t%s", local(r.Text("DUE")), state, printable(r.Text("NAME")), text)
}

func (a *app) scheduleChange(ctx context.Context, word, name string) error {
	p, err := a.inquire(ctx, "", sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("SCHEDULE-CHANGE"), sexp.Keyword("CHANGE"), sexp.Keyword(strings.ToUpper(word)), sexp.Keyword("NAME"), name))
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]string{"name": p.Text("TEXT"), "change": word})
	}
	did := map[string]string{"pause": "Paused", "resume": "Goes on", "allow": "Allowed"}[word]
	_, err = fmt.Fprintf(a.out, "%s: %s\n", did, printable(p.Text("TEXT")))
	return err
}

// Waiting for a run: how often to look, and how long.
const (
	runPoll = 50 * time.Millisecond
	runWait = 24 * time.Hour
)

func (a *app) scheduleRun(ctx context.Context, name string, wait bool) error {
	p, err := a.inquire(ctx, "", sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("SCHEDULE-CHANGE"), sexp.Keyword("CHANGE"), sexp.Keyword("RUN"), sexp.Keyword("NAME"), name))
	if err != nil {
		return err
	}
	if !wait {
		_, err := fmt.Fprintf(a.out, "%s  %s\n", p.Text("RUN"), printable(p.Text("TEXT")))
		return err
	}
	r, err := a.awaitRun(ctx, name, p.Text("RUN"))
	if err != nil {
		return err
	}
	if a.json {
		if err := a.printJSON(runJSON(r)); err != nil {
			return err
		}
	} else if text := printable(r.Text("TEXT")); text != "" {
		fmt.Fprintln(a.out, text)
	}
	if r.Word("STATE") != "DONE" {
		return &exitError{code: exitFailed}
	}
	return nil
}

// awaitRun asks until a run has ended.
func (a *app) awaitRun(ctx context.Context, name, id string) (sexp.Plist, error) {
	for deadline := time.Now().Add(runWait); time.Now().Before(deadline); time.Sleep(runPoll) {
		p, err := a.inquire(ctx, "", sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("SCHEDULE-HISTORY"), sexp.Keyword("NAME"), name, sexp.Keyword("COUNT"), 50))
		if err != nil {
			return sexp.Plist{}, err
		}
		for _, r := range rows(p, "RUNS") {
			if r.Text("RUN") == id && r.Text("ENDED") != "" {
				return r, nil
			}
		}
	}
	return sexp.Plist{}, errors.New("it has not ended within a day")
}

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show what the daemon is doing in the background", Args: cobra.NoArgs,
		Long: `Show the daemon's health, the checks of its heartbeat, what is running and waiting,
what is due next, and what ran last.`,
		Example: "  passepartout status\n  passepartout status --json",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.status(cmd.Context()) },
	}
}

func (a *app) status(ctx context.Context) error {
	p, err := a.inquire(ctx, "", sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("STATUS")))
	if err != nil {
		return err
	}
	if a.json {
		return a.statusJSON(p)
	}
	fmt.Fprintf(a.out, "daemon %d since %s, %d headings, %d clients\n", p.Number("PID"), local(p.Text("STARTED")), p.Number("HEADINGS"), p.Number("CLIENTS"))
	fmt.Fprintf(a.out, "%d jobs, %d hooks, %d paused, %d not allowed; %d running, %d waiting, %d to be tried again, %d events dropped\n",
		p.Number("JOBS"), p.Number("HOOKS"), p.Number("PAUSED"), p.Number("BLOCKED"), len(rows(p, "RUNNING")), p.Number("WAITING"), p.Number("RETRYING"), p.Number("DROPPED"))
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, c := range rows(p, "CHECKS") {
		state := "ok"
		switch {
		case c.Flag("FAILED"):
			state = "FAILED"
		case c.Text("AT") == "":
			state = "not yet"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", c.Text("NAME"), state, local(c.Text("AT")), printable(c.Text("TEXT")))
	}
	for _, s := range []struct {
		word string
		key  sexp.Keyword
	}{{"runs", "RUNNING"}, {"ran", "RECENT"}} {
		for _, r := range rows(p, s.key) {
			fmt.Fprintf(w, "%s\t%s\n", s.word, runLine(r))
		}
	}
	for _, j := range rows(p, "NEXT") {
		fmt.Fprintf(w, "next\t%s\t\t%s\n", local(j.Text("NEXT")), printable(j.Text("NAME")))
	}
	for _, text := range words(p, "PROBLEMS") {
		fmt.Fprintf(a.errw, "problem: %s\n", printable(text))
	}
	return w.Flush()
}

func (a *app) statusJSON(p sexp.Plist) error {
	out := map[string]any{
		"pid": p.Number("PID"), "started": p.Text("STARTED"), "memex": p.Text("MEMEX"), "headings": p.Number("HEADINGS"), "clients": p.Number("CLIENTS"),
		"jobs": p.Number("JOBS"), "hooks": p.Number("HOOKS"), "paused": p.Number("PAUSED"), "not_allowed": p.Number("BLOCKED"),
		"waiting": p.Number("WAITING"), "retrying": p.Number("RETRYING"), "dropped": p.Number("DROPPED"), "problems": words(p, "PROBLEMS"),
	}
	checks, next := []any{}, []any{}
	for _, c := range rows(p, "CHECKS") {
		checks = append(checks, map[string]any{"name": c.Text("NAME"), "at": c.Text("AT"), "text": c.Text("TEXT"), "failed": c.Flag("FAILED"), "times": c.Number("TIMES")})
	}
	for _, j := range rows(p, "NEXT") {
		next = append(next, jobJSON(j))
	}
	for key, name := range map[sexp.Keyword]string{"RUNNING": "running", "RECENT": "recent"} {
		list := []any{}
		for _, r := range rows(p, key) {
			list = append(list, runJSON(r))
		}
		out[name] = list
	}
	out["checks"], out["next"] = checks, next
	return a.printJSON(out)
}
