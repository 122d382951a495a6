package daemon

import (
	"context"
	"fmt"
	"strings"
	"time"

	"passepartout/internal/pulse"
	"passepartout/internal/sexp"
)

// answerStatus tells what the daemon does in the background.
func answerStatus(_ context.Context, d *Daemon, _ asking) (sexp.Plist, error) {
	st := d.pulse.Status()
	paused, blocked := 0, 0
	for _, j := range append(st.Jobs, st.Hooks...) {
		switch j.State {
		case "paused":
			paused++
		case "not allowed":
			blocked++
		}
	}
	p := d.health().With("JOBS", sexp.NewInt(int64(len(st.Jobs)))).With("HOOKS", sexp.NewInt(int64(len(st.Hooks)))).
		With("PAUSED", sexp.NewInt(int64(paused))).With("BLOCKED", sexp.NewInt(int64(blocked))).
		With("WAITING", sexp.NewInt(int64(st.Waiting))).With("RETRYING", sexp.NewInt(int64(st.Retrying))).With("DROPPED", sexp.NewInt(int64(st.Dropped))).
		With("RUNNING", runList(st.Running)).With("PROBLEMS", sexp.Strings(st.Problems))
	var checks []sexp.Value
	for _, c := range st.Checks {
		checks = append(checks, sexp.P(sexp.Keyword("NAME"), c.Name, sexp.Keyword("AT"), moment(c.At), sexp.Keyword("TEXT"), c.Text,
			sexp.Keyword("FAILED"), c.Failed, sexp.Keyword("TIMES"), c.Times).List())
	}
	next := []pulse.JobState{}
	for _, j := range st.Jobs[:min(5, len(st.Jobs))] {
		if !j.Next.IsZero() {
			next = append(next, j)
		}
	}
	recent, err := d.pulse.History("", 5)
	return p.With("CHECKS", sexp.NewList(checks...)).With("NEXT", jobList(next)).With("RECENT", runList(recent)), err
}

// statusWord is the control word that tells, in a conversation, what goes on in the
// background.
func (d *Daemon) statusWord([]string) string {
	st := d.pulse.Status()
	var b strings.Builder
	fmt.Fprintf(&b, "%d jobs, %d hooks; %d running, %d waiting.", len(st.Jobs), len(st.Hooks), len(st.Running), st.Waiting)
	for _, r := range st.Running {
		fmt.Fprintf(&b, "\nruns: %s, since %s", r.Name, r.At.Local().Format(time.TimeOnly))
	}
	for _, j := range st.Jobs[:min(3, len(st.Jobs))] {
		if !j.Next.IsZero() {
			fmt.Fprintf(&b, "\nnext: %s, %s", j.Name, j.Next.Local().Format("Mon 15:04"))
		}
	}
	for _, c := range st.Checks {
		if c.Failed {
			fmt.Fprintf(&b, "\n%s FAILED: %s", c.Name, c.Text)
		}
	}
	for _, text := range st.Problems {
		fmt.Fprintf(&b, "\nproblem: %s", text)
	}
	return b.String()
}

func answerSchedule(_ context.Context, d *Daemon, _ asking) (sexp.Plist, error) {
	st := d.pulse.Status()
	return sexp.P(
		sexp.Keyword("JOBS"), jobList(st.Jobs), sexp.Keyword("HOOKS"), jobList(st.Hooks), sexp.Keyword("PROBLEMS"), st.Problems,
		sexp.Keyword("LEFT-OUT"), max(0, len(st.Jobs)-maxShown)+max(0, len(st.Hooks)-maxShown)), nil
}

// maxShown bounds what one answer lists.
const maxShown = 1000

func answerScheduleNext(_ context.Context, d *Daemon, a asking) (sexp.Plist, error) {
	n := count(a, 5)
	due, err := d.pulse.Upcoming(a.message.Payload.Text("NAME"), n)
	if err != nil {
		return sexp.Plist{}, err
	}
	times := make([]string, len(due))
	for i, t := range due {
		times[i] = moment(t)
	}
	return sexp.P(sexp.Keyword("DUE"), times), nil
}

func answerScheduleHistory(_ context.Context, d *Daemon, a asking) (sexp.Plist, error) {
	runs, err := d.pulse.History(a.message.Payload.Text("NAME"), count(a, 20))
	return sexp.P(sexp.Keyword("RUNS"), runList(runs)), err
}

// answerScheduleChange lets the owner run, pause, resume or allow an order. It is
// the person's own decision about what the person wrote, like an approval.
func answerScheduleChange(_ context.Context, d *Daemon, a asking) (sexp.Plist, error) {
	name := a.message.Payload.Text("NAME")
	var text string
	var err error
	switch what := a.message.Payload.Word("CHANGE"); what {
	case "RUN":
		var r pulse.Run
		if r, err = d.pulse.RunNow(name); err == nil {
			return sexp.P(sexp.Keyword("TEXT"), r.Name, sexp.Keyword("RUN"), r.ID), nil
		}
	case "PAUSE", "RESUME":
		text, err = d.pulse.Pause(name, what == "PAUSE")
	case "ALLOW":
		text, err = d.pulse.Allow(name)
	default:
		err = fmt.Errorf(":CHANGE: want :RUN, :PAUSE, :RESUME or :ALLOW, found %q", what)
	}
	return sexp.P(sexp.Keyword("TEXT"), text), err
}

func count(a asking, usual int) int {
	v, _ := a.message.Payload.Get("COUNT")
	n, ok := v.(sexp.Int)
	if k, fits := n.Int64(); ok && fits && k > 0 {
		return int(min(k, maxShown))
	}
	return usual
}

func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339)
}

func jobList(jobs []pulse.JobState) sexp.List {
	out := make([]sexp.Value, 0, min(len(jobs), maxShown))
	for _, j := range jobs[:min(len(jobs), maxShown)] {
		out = append(out, sexp.P(
			sexp.Keyword("ID"), j.ID, sexp.Keyword("NAME"), j.Name, sexp.Keyword("SCHEDULE"), j.Schedule, sexp.Keyword("NEXT"), moment(j.Next),
			sexp.Keyword("STATE"), j.State, sexp.Keyword("TIER"), string(j.Tier), sexp.Keyword("DO"), j.Do, sexp.Keyword("WHEN"), j.When.String(),
			sexp.Keyword("CATCHUP"), j.CatchUp.Policy, sexp.Keyword("FILE"), j.File, sexp.Keyword("LINE"), j.Line,
			sexp.Keyword("LAST"), string(j.LastRun.State), sexp.Keyword("LAST-AT"), moment(j.LastRun.At)).List())
	}
	return sexp.NewList(out...)
}

func runList(runs []pulse.Run) sexp.List {
	out := make([]sexp.Value, len(runs))
	for i, r := range runs {
		out[i] = r.Plist().List()
	}
	return sexp.NewList(out...)
}
