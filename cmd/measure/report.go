package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// A report runs what the promises need and prints how each stands.
type report struct {
	bench  bench
	wanted []int // issues; all if empty
	form   func(io.Writer, []row) error
}

// A row is one promise as it stands.
type row struct {
	Issue   int    `json:"issue"`
	Claim   string `json:"claim"`
	Bar     string `json:"bar"`
	Figure  string `json:"figure"`
	Verdict string `json:"verdict"`
	Command string `json:"command"`
}

// print runs everything, prints the table and says as an error how much is amiss.
func (r report) print(ctx context.Context, out io.Writer) error {
	var chosen []promise
	for _, p := range promises {
		if len(r.wanted) == 0 || slices.Contains(r.wanted, p.issue) {
			chosen = append(chosen, p)
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("no promise of issues %v", r.wanted)
	}
	outcomes := r.run(ctx, jobsOf(chosen))
	var rows []row
	amiss := map[verdict]int{}
	for _, p := range chosen {
		v, w := p.row(outcomes)
		rows = append(rows, w)
		amiss[v]++
	}
	if err := r.form(out, rows); err != nil {
		return err
	}
	fmt.Fprintf(r.bench.talk, "measure: %d promises: %d met, %d told, %d not run, %d short, %d failed\n", len(rows), amiss[met], amiss[told], amiss[notRun], amiss[short], amiss[failed])
	if amiss[short]+amiss[failed] > 0 {
		return fmt.Errorf("%d promises are short, %d failed", amiss[short], amiss[failed])
	}
	return nil
}

// row judges a promise by all of its proofs.
func (p promise) row(outcomes map[string]outcome) (verdict, row) {
	worstOf, figures, commands := met, []string{}, []string{}
	for _, s := range p.shown {
		j := s.job.named()
		figure, v := s.judge(outcomes[j.name])
		worstOf = max(worstOf, v)
		if v != met && v != told && len(p.shown) > 1 {
			figure = v.String() + ": " + figure
		}
		figures = append(figures, figure)
		if c := s.job.line(); !slices.Contains(commands, c) {
			commands = append(commands, c)
		}
	}
	return worstOf, row{p.issue, p.claim, p.bar, strings.Join(figures, "; "), worstOf.String(), strings.Join(commands, " && ")}
}

// named gives a job the name under which proofs share it. Tests of one package that
// are run the same way are one run.
func (j job) named() job {
	switch {
	case j.part != "":
		j.name = "bench " + j.part
	case j.pkg != "":
		j.name = fmt.Sprintf("test %s %v %s", j.pkg, j.race, strings.Join(j.env, " "))
	}
	return j
}

// line is the command a person would type for this proof alone.
func (j job) line() string {
	env := strings.Join(j.env, " ")
	switch {
	case j.part != "":
		return "measure bench -only '" + j.part + "'"
	case j.pkg != "":
		race := ""
		if j.race {
			race = "-race "
		}
		return strings.TrimSpace(fmt.Sprintf("%s go test %s-run '%s' %s", env, race, j.tests, packagePath(j.pkg)))
	}
	return strings.TrimSpace(env + " " + strings.Join(j.argv, " "))
}

// jobsOf are the jobs some promises need, each once.
func jobsOf(ps []promise) []job {
	var jobs []job
	for _, p := range ps {
		for _, s := range p.shown {
			j := s.job.named()
			i := slices.IndexFunc(jobs, func(other job) bool { return other.name == j.name })
			if i < 0 {
				jobs = append(jobs, j)
				continue
			}
			if j.tests != "" {
				jobs[i].tests += "|" + j.tests
			}
			jobs[i].limit = max(jobs[i].limit, j.limit)
		}
	}
	return jobs
}

// run carries out the jobs: those that are timed one by one, then the others two at a
// time. A job that fails does not hold up the others.
func (r report) run(ctx context.Context, jobs []job) map[string]outcome {
	outcomes := map[string]outcome{}
	var mu sync.Mutex
	one := func(j job) {
		start := time.Now()
		o := r.job(ctx, j)
		o.took = time.Since(start)
		mu.Lock()
		defer mu.Unlock()
		outcomes[j.name] = o
		state := "done"
		if o.why != "" {
			state = o.why
		} else if o.err != nil {
			state = o.err.Error()
		}
		fmt.Fprintf(r.bench.talk, "measure: %-60s %6s  %s\n%s", j.name, o.took.Round(time.Second), state, o.complaints())
	}
	var others []job
	for _, j := range jobs {
		if j.alone {
			one(j)
		} else {
			others = append(others, j)
		}
	}
	slices.SortStableFunc(others, func(a, b job) int { return int(b.limit - a.limit) }) // the longest first
	queue := make(chan job)
	var wait sync.WaitGroup
	for range 2 {
		wait.Go(func() {
			for j := range queue {
				one(j)
			}
		})
	}
	for _, j := range others {
		queue <- j
	}
	close(queue)
	wait.Wait()
	return outcomes
}

// job carries out one job.
func (r report) job(ctx context.Context, j job) outcome {
	if ctx.Err() != nil {
		return outcome{why: "interrupted"}
	}
	if r.bench.quick && j.long {
		return outcome{why: "left out of a quick run"}
	}
	if j.needs != "" {
		if _, err := os.Stat(j.needs); err != nil {
			return outcome{why: "needs " + j.needs}
		}
	}
	limit := j.limit
	if limit == 0 {
		limit = 10 * time.Minute
	}
	switch {
	case j.part != "":
		for _, p := range suite {
			if p.name == j.part {
				o, err := r.bench.part(ctx, p)
				return outcome{figures: o.medians(), err: err}
			}
		}
		return outcome{err: fmt.Errorf("no benchmarks are called %q", j.part)}
	case j.pkg != "":
		args := []string{"go", "test", "-count=1", "-json", "-timeout", limit.String(), "-run", j.tests}
		if j.race {
			args = append(args, "-race")
		}
		out, err := command(ctx, limit+time.Minute, append(j.env, "GORACE=atexit_sleep_ms=0"), append(args, packagePath(j.pkg)))
		return outcome{tests: readTests(bytes.NewReader(out)), err: err}
	}
	out, err := command(ctx, limit, j.env, j.argv)
	return outcome{out: string(out), err: err}
}

// complaints are the last words of what failed, for whoever looks into it.
func (o outcome) complaints() string {
	last := func(text string) string {
		const most = 15
		lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
		return "    | " + strings.Join(lines[max(0, len(lines)-most):], "\n    | ") + "\n"
	}
	if o.err != nil && o.out != "" {
		return last(o.out)
	}
	said := ""
	for _, name := range slices.Sorted(maps.Keys(o.tests)) {
		if t := o.tests[name]; t.status == "fail" {
			said += last(t.log)
		}
	}
	return said
}

// readTests reads what go test -json prints, by test of the top level: what its
// subtests said belongs to it.
func readTests(r io.Reader) map[string]testResult {
	results := map[string]testResult{}
	d := json.NewDecoder(r)
	for {
		var e struct{ Action, Test, Output string }
		if err := d.Decode(&e); err != nil {
			return results // the end, or a line that is no event: a build that failed
		}
		name, sub, _ := strings.Cut(e.Test, "/")
		if name == "" {
			continue
		}
		t := results[name]
		switch e.Action {
		case "output":
			t.log += e.Output
		case "pass", "fail", "skip":
			if sub == "" {
				t.status = e.Action
			}
		}
		results[name] = t
	}
}

// asText prints the table for a terminal.
func asText(out io.Writer, rows []row) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "issue\tverdict\tclaim\tbar\tfigure")
	for _, r := range rows {
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\n", r.Issue, r.Verdict, r.Claim, r.Bar, r.Figure)
	}
	return w.Flush()
}

// asTable prints the table as Markdown, with the commands.
func asTable(out io.Writer, rows []row) error {
	fmt.Fprint(out, "| issue | claim | bar | figure | verdict | command |\n|---|---|---|---|---|---|\n")
	for _, r := range rows {
		cell := strings.NewReplacer("|", "\\|", "\n", " ").Replace
		if _, err := fmt.Fprintf(out, "| %d | %s | %s | %s | %s | `%s` |\n", r.Issue, cell(r.Claim), cell(r.Bar), cell(r.Figure), r.Verdict, cell(r.Command)); err != nil {
			return err
		}
	}
	return nil
}

// asJSONLines prints one object a line.
func asJSONLines(out io.Writer, rows []row) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	for _, r := range rows {
		if err := e.Encode(r); err != nil {
			return err
		}
	}
	return nil
}
