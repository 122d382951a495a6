package main

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A promise is one thing an issue said must be shown.
type promise struct {
	issue int
	claim string
	bar   string
	shown []proof
}

// A verdict is how a promise stands. They are in order: of several proofs the last in
// this list speaks for the promise.
type verdict uint8

const (
	met verdict = iota + 1
	told
	notRun
	short
	failed
)

func (v verdict) String() string {
	return map[verdict]string{met: "met", told: "told", notRun: "not run", short: "SHORT", failed: "FAILED"}[v]
}

// A proof is what is run for a promise, and how its outcome is read.
type proof struct {
	job   job
	judge func(outcome) (figure string, v verdict)
}

// A job is one command. Proofs with the same name share one run.
type job struct {
	name  string
	argv  []string
	env   []string
	limit time.Duration
	needs string // a file without which it cannot be run
	alone bool   // it is timed: nothing else may run beside it
	long  bool   // not in a quick run

	part  string // instead of a command: a part of the benchmarks
	pkg   string // instead of argv: tests of this package,
	tests string // whose names match this
	race  bool
}

// An outcome is what a job gave.
type outcome struct {
	why     string // not "": it was not run, for this reason
	err     error
	out     string
	took    time.Duration
	tests   map[string]testResult
	figures figures
}

// passing is a proof by tests: those of a package whose names match. What a quote
// matches in their output is the figure, else how many there are.
func passing(pkg, pattern string, quotes ...string) proof {
	return proof{job{pkg: pkg, tests: pattern}, func(o outcome) (string, verdict) { return judgeTests(o, pkg, pattern, quotes) }}
}

// with sets what tests are run with.
func (p proof) with(env ...string) proof {
	p.job.env = append(p.job.env, env...)
	return p
}

// soaking runs tests at their full length.
func (p proof) soaking(limit time.Duration) proof {
	p.job.env, p.job.limit, p.job.long = append(p.job.env, "PASSEPARTOUT_SOAK=1"), limit, true
	return p
}

// racing runs tests under the race detector.
func (p proof) racing() proof {
	p.job.race, p.job.long = true, true
	return p
}

// A testResult is how one test ended.
type testResult struct {
	status string // pass, fail or skip
	log    string
}

func judgeTests(o outcome, pkg, pattern string, quotes []string) (string, verdict) {
	if o.why != "" {
		return o.why, notRun
	}
	re := regexp.MustCompile(pattern)
	count := map[string]int{}
	var log strings.Builder
	var failing []string
	reason := ""
	for _, name := range slices.Sorted(maps.Keys(o.tests)) {
		r := o.tests[name]
		if !re.MatchString(name) {
			continue
		}
		count[r.status]++
		log.WriteString(r.log)
		switch {
		case r.status == "fail":
			failing = append(failing, name)
		case r.status == "skip" && reason == "":
			reason = skipReason(r.log)
		}
	}
	said := quoted(log.String(), quotes)
	switch {
	case count["fail"] > 0:
		return fmt.Sprintf("%d of %d tests fail: %s", count["fail"], count["fail"]+count["pass"], strings.Join(failing[:min(3, len(failing))], ", ")), failed
	case count["pass"] == 0 && count["skip"] > 0:
		return "skipped: " + reason, notRun
	case count["pass"] == 0:
		if o.err != nil {
			return fmt.Sprintf("%s: %v", pkg, o.err), failed
		}
		return fmt.Sprintf("%s has no test that matches %s", pkg, pattern), failed
	}
	s := plural(count["pass"], "test") + " of " + pkg
	if count["skip"] > 0 {
		s += fmt.Sprintf(" (%d skipped: %s)", count["skip"], reason)
	}
	if said != "" {
		s = said
	}
	return s, met
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// skipReason is the last line a skipped test said.
func skipReason(log string) string {
	reason := "no reason given"
	for line := range strings.Lines(log) {
		if _, said, ok := strings.Cut(strings.TrimSpace(line), ".go:"); ok {
			_, said, _ = strings.Cut(said, ": ")
			reason = said
		}
	}
	return reason
}

// quoted is everything the quotes match, their groups if they have some.
func quoted(text string, quotes []string) string {
	var said []string
	for _, q := range quotes {
		for _, m := range regexp.MustCompile(q).FindAllStringSubmatch(text, 4) {
			if len(m) > 1 {
				m = m[1:]
			}
			said = append(said, strings.Join(m, " "))
		}
	}
	return strings.Join(said, "; ")
}

// A bound is what a figure is held against. The zero value only tells.
type bound struct {
	limit float64
	most  bool
}

func atMost(v float64) bound  { return bound{v, true} }
func atLeast(v float64) bound { return bound{v, false} }

var untold = bound{}

func (b bound) holds(v float64) verdict {
	switch {
	case b == bound{}:
		return told
	case b.most && v <= b.limit, !b.most && v >= b.limit:
		return met
	}
	return short
}

// measuring is a proof by a figure of the benchmarks, times a factor, in a unit.
func measuring(part, figure string, times float64, unit string, b bound) proof {
	return proof{job{part: part, alone: true, long: longPart(part)}, func(o outcome) (string, verdict) {
		v, ok := o.figures[figure]
		switch {
		case ok:
			return human(v*times, unit), b.holds(v * times)
		case o.why != "":
			return o.why, notRun
		case o.err != nil:
			return o.err.Error(), failed
		}
		return "not in this run: " + figure, notRun
	}}
}

// longPart says whether a quick run leaves a part out.
func longPart(name string) bool {
	for _, p := range suite {
		if p.name == name {
			return p.slow
		}
	}
	return false
}

// difference is a proof by what one figure is above another.
func difference(part, figure, base string, times float64, unit string, b bound) proof {
	p := measuring(part, figure, times, unit, b)
	whole := p.judge
	p.judge = func(o outcome) (string, verdict) {
		v, ok := o.figures[figure]
		less, ok2 := o.figures[base]
		if !ok || !ok2 {
			return whole(o)
		}
		return fmt.Sprintf("%s (%s less %s)", human((v-less)*times, unit), human(v*times, ""), human(less*times, "")), b.holds((v - less) * times)
	}
	return p
}

// worst is a proof by the largest of several figures, those whose key has the prefix
// and the unit.
func worst(part, prefix, unitOf string, times float64, unit string, b bound) proof {
	p := measuring(part, prefix, times, unit, b)
	none := p.judge
	p.judge = func(o outcome) (string, verdict) {
		largest, found := 0.0, 0
		for k, v := range o.figures {
			if strings.HasPrefix(k, prefix) && strings.HasSuffix(k, " "+unitOf) {
				largest, found = max(largest, v), found+1
			}
		}
		if found == 0 {
			return none(o)
		}
		return fmt.Sprintf("worst of %d: %s", found, human(largest*times, unit)), b.holds(largest * times)
	}
	return p
}

// saying is a proof by a command that must succeed, with what a quote matches in its
// output as the figure.
func saying(j job, quotes ...string) proof {
	return proof{j, func(o outcome) (string, verdict) {
		if o.why != "" {
			return o.why, notRun
		}
		said := quoted(o.out, quotes)
		if said == "" && o.err == nil {
			said = "succeeds"
		}
		if o.err != nil {
			return strings.TrimPrefix(said+"; ", "; ") + o.err.Error(), failed
		}
		return said, met
	}}
}

// counting is a proof by a number in the output of a command, or of tests.
func counting(p proof, quote, unit string, b bound) proof {
	before := p.judge
	p.judge = func(o outcome) (string, verdict) {
		figure, v := before(o)
		if v != met {
			return figure, v
		}
		text := o.out
		for _, r := range o.tests {
			text += r.log
		}
		m := regexp.MustCompile(quote).FindStringSubmatch(text)
		if len(m) < 2 {
			return "the output does not say " + quote, failed
		}
		n, err := strconv.ParseFloat(strings.ReplaceAll(m[1], ",", ""), 64)
		if err != nil {
			return err.Error(), failed
		}
		return human(n, unit), b.holds(n)
	}
	return p
}

// besting is a proof by rows of a table in the output, each a name, our time and
// another's: none of ours may be longer.
func besting(p proof, rows string) proof {
	before := p.judge
	p.judge = func(o outcome) (string, verdict) {
		figure, v := before(o)
		if v != met {
			return figure, v
		}
		text := o.out
		for _, r := range o.tests {
			text += r.log
		}
		var said []string
		for _, m := range regexp.MustCompile(rows).FindAllStringSubmatch(text, -1) {
			ours, err1 := strconv.ParseFloat(m[2], 64)
			theirs, err2 := strconv.ParseFloat(m[3], 64)
			if err1 != nil || err2 != nil {
				return fmt.Sprintf("cannot read the row %q", m[0]), failed
			}
			if ours > theirs {
				v = short
			}
			said = append(said, fmt.Sprintf("%s %s", strings.TrimSpace(m[1]), ratio(theirs/ours)))
		}
		if len(said) == 0 {
			return "the output has no rows", failed
		}
		return strings.Join(said, ", "), v
	}
	return p
}

// lasting is a proof by how long a command takes.
func lasting(j job, b bound) proof {
	p := saying(j)
	before := p.judge
	p.judge = func(o outcome) (string, verdict) {
		figure, v := before(o)
		if v != met {
			return figure, v
		}
		return human(o.took.Seconds(), "s"), b.holds(o.took.Seconds())
	}
	return p
}

// weighing is a proof by the size of a file that a job makes.
func weighing(j job, file string, b bound) proof {
	p := saying(j)
	before := p.judge
	p.judge = func(o outcome) (string, verdict) {
		figure, v := before(o)
		if v != met {
			return figure, v
		}
		info, err := os.Stat(file)
		if err != nil {
			return err.Error(), failed
		}
		mb := float64(info.Size()) / 1e6
		return human(mb, "MB"), b.holds(mb)
	}
	return p
}

// fuzzing is a proof by a fuzz target that finds nothing for a minute.
func fuzzing(pkg, target string) proof {
	p := saying(job{
		name: "fuzz " + target, long: true, limit: 3 * time.Minute,
		argv: []string{"go", "test", "-run", "^$", "-fuzz", "^" + target + "$", "-fuzztime", "60s", packagePath(pkg)},
	})
	before := p.judge
	p.judge = func(o outcome) (string, verdict) {
		figure, v := before(o)
		if v != met {
			return figure, v
		}
		said := regexp.MustCompile(`execs: (\d+)`).FindAllStringSubmatch(o.out, -1)
		if len(said) == 0 {
			return "it does not say how much it tried", failed
		}
		n, err := strconv.ParseFloat(said[len(said)-1][1], 64)
		if err != nil {
			return err.Error(), failed
		}
		return fmt.Sprintf("%s: 60 s, %s tries, nothing found", target, group(n)), met
	}
	return p
}
