package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const printed = `goos: linux
pkg: passepartout/internal/gate
cpu: A Processor @ 2.50GHz
BenchmarkLookup%[1]s         	 1000	        12.50 ns/op	       0 B/op	       0 allocs/op
BenchmarkLookup%[1]s         	 1000	        14.50 ns/op	       0 B/op	       0 allocs/op
BenchmarkLookup%[1]s         	 1000	       900 ns/op	       1 B/op	       0 allocs/op
BenchmarkDecide/message-200%[1]s  	  10	  2000 ns/op	 1.5 p99-ms
BenchmarkLogs
    x_test.go:1: BenchmarkLogs says something
pkg: passepartout/cmd/passepartout
BenchmarkClients/100%[1]s    	       1	        35.00 RSS-MB	       0.25 p50-ms
--- FAIL: BenchmarkBroken
    x_test.go:9: no such thing
FAIL
`

func TestBenchmarksAreReadByPackageNameAndUnitAndTheMiddleIsTaken(t *testing.T) {
	o, err := readBench(strings.NewReader(fmt.Sprintf(printed, procs())))
	if err != nil {
		t.Fatal(err)
	}
	got := o.medians()
	for k, want := range map[string]float64{
		"gate Lookup ns/op": 14.5, "gate Lookup B/op": 0, "gate Decide/message-200 ns/op": 2000, "gate Decide/message-200 p99-ms": 1.5,
		"cmd/passepartout Clients/100 RSS-MB": 35, "cmd/passepartout Clients/100 p50-ms": 0.25,
	} {
		if got[k] != want {
			t.Errorf("%s is %v, want %v", k, got[k], want)
		}
	}
	if o.cpu != "A Processor @ 2.50GHz" || len(o.failed) != 2 || o.failed[0] != "--- FAIL: BenchmarkBroken: x_test.go:9: no such thing" {
		t.Errorf("cpu %q, failed %q", o.cpu, o.failed)
	}
}

func TestAFigureIsPrintedWithTheDigitsThatMeanSomething(t *testing.T) {
	for v, want := range map[float64]string{0: "0 ms", 0.000123: "0.00012 ms", 12: "12 ms", 0.385: "0.39 ms", 4.4: "4.40 ms", 5: "5 ms", 43.62: "43.6 ms", 713.4: "713 ms", 676832: "676,832 ms", 1234567.8: "1,234,568 ms"} {
		if got := human(v, "ms"); got != want {
			t.Errorf("%v is %q, want %q", v, got, want)
		}
	}
	for v, want := range map[float64]string{0.5: "0.5×", 2.44: "2.4×", 17.6: "18×", 43600: "43,600×"} {
		if got := ratio(v); got != want {
			t.Errorf("%v is %q, want %q", v, got, want)
		}
	}
}

func TestOnlyWhatIsWorseThanNoiseFailsAComparison(t *testing.T) {
	old := figures{"a X ns/op": 100, "a X p99-ms": 1, "a X allocs/op": 10, "a Y turns/s": 1000, "a Z RSS-MB": 30, "a Gone ns/op": 1, "a P p50-ms": 0.4}
	for name, tt := range map[string]struct {
		now   figures
		worse string
	}{
		"the same":             {figures{"a X ns/op": 110, "a X allocs/op": 10, "a Y turns/s": 900, "a Z RSS-MB": 33}, ""},
		"twice and more":       {figures{"a X ns/op": 210}, "a X ns/op"},
		"a slow end":           {figures{"a X p99-ms": 100}, ""},
		"a fast run":           {figures{"a X ns/op": 1, "a Y turns/s": 9000}, ""},
		"one allocation":       {figures{"a X allocs/op": 12}, ""},
		"more allocations":     {figures{"a X allocs/op": 13}, "a X allocs/op"},
		"fewer turns":          {figures{"a Y turns/s": 400}, "a Y turns/s"},
		"more memory":          {figures{"a Z RSS-MB": 50}, "a Z RSS-MB"},
		"milliseconds":         {figures{"a P p50-ms": 0.9}, "a P p50-ms"},
		"nothing on record":    {figures{"a New ns/op": 9}, ""},
		"a figure in one only": {figures{"a X ns/op": 100}, ""},
	} {
		var out bytes.Buffer
		if got := strings.Join(printComparison(&out, old, tt.now, 2), " "); got != tt.worse {
			t.Errorf("%s: worse are %q, want %q\n%s", name, got, tt.worse, out.String())
		}
	}
}

func TestACurveDrawsWhatThereIsAndLeavesOutWhatIsNot(t *testing.T) {
	c := curve{"x", "Title", "things", []string{"10", "100", "1000"}, "ms", []series{{"one", "p B/* ns/op", 1e-6}, {"none", "p None/* ns/op", 1}}}
	f := figures{"p B/10 ns/op": 1e6, "p B/1000 ns/op": 5e7}
	if got := c.table(f); !strings.Contains(got, "| one | 1 ms | – | 50 ms |") || strings.Contains(got, "none") {
		t.Errorf("table:\n%s", got)
	}
	svg := c.svg(f)
	if strings.Count(svg, "<circle") != 2 || strings.Contains(svg, "NaN") || svg != c.svg(f) {
		t.Errorf("picture:\n%s", svg)
	}
	if got := c.svg(figures{}); strings.Contains(got, "NaN") || strings.Contains(got, "Inf") {
		t.Errorf("an empty picture:\n%s", got)
	}
}

func TestTestsAreReadWithWhatTheirSubtestsSaid(t *testing.T) {
	events := `{"Action":"run","Test":"TestA"}
{"Action":"output","Test":"TestA/sub","Output":"    a_test.go:3: 12 queries, 0 differ\n"}
{"Action":"pass","Test":"TestA/sub"}
{"Action":"pass","Test":"TestA"}
{"Action":"output","Test":"TestB","Output":"    b_test.go:9: emacs is not installed\n"}
{"Action":"skip","Test":"TestB"}
{"Action":"fail","Test":"TestC/x"}
{"Action":"fail","Test":"TestC"}
{"Action":"fail"}
`
	o := outcome{tests: readTests(strings.NewReader(events))}
	for name, tt := range map[string]struct {
		p      proof
		figure string
		v      verdict
	}{
		"a figure said":       {passing("p", "^TestA$", `\d+ queries, \d+ differ`), "12 queries, 0 differ", met},
		"no figure asked for": {passing("p", "^TestA$"), "1 test of p", met},
		"with one skipped":    {passing("p", "^Test[AB]$"), "1 test of p (1 skipped: emacs is not installed)", met},
		"all skipped":         {passing("p", "^TestB$"), "skipped: emacs is not installed", notRun},
		"one failed":          {passing("p", "^Test"), "1 of 2 tests fail: TestC", failed},
		"no such test":        {passing("p", "^TestNone$"), "p has no test that matches ^TestNone$", failed},
		"a number in bounds":  {counting(passing("p", "^TestA$"), `(\d+) queries`, "queries", atLeast(10)), "12 queries", met},
		"a number below":      {counting(passing("p", "^TestA$"), `(\d+) queries`, "queries", atLeast(13)), "12 queries", short},
		"a number not said":   {counting(passing("p", "^TestA$"), `(\d+) agendas`, "", atLeast(1)), `the output does not say (\d+) agendas`, failed},
	} {
		if figure, v := tt.p.judge(o); figure != tt.figure || v != tt.v {
			t.Errorf("%s: %q %v, want %q %v", name, figure, v, tt.figure, tt.v)
		}
	}
}

func TestProofsSayOnlyWhatThisRunMeasured(t *testing.T) {
	f := figures{"sandbox Spawn/plain ns/op": 1e6, "sandbox Spawn/bubblewrap ns/op": 17e6, "gate H/a ns/op": 1e6, "gate H/b ns/op": 9e6}
	fuzz := "fuzz: elapsed: 3s, execs: 100 (33/sec)\nfuzz: elapsed: 60s, execs: 12345 (205/sec)\nPASS\n"
	speed := outcome{tests: map[string]testResult{"TestSpeed": {"pass", "    bench_test.go:102: µs per call            passepartout   sbcl interpreted  sbcl compiled\n" +
		"    bench_test.go:114: fib 25                     126694.3          9100000.0        38222.2\n    bench_test.go:114: plist walk                      4.0                2.0            1.0\n"}}}
	for name, tt := range map[string]struct {
		p      proof
		o      outcome
		figure string
		v      verdict
	}{
		"a figure":          {measuring("x", "sandbox Spawn/plain ns/op", 1e-6, "ms", atMost(15)), outcome{figures: f}, "1 ms", met},
		"only told":         {measuring("x", "sandbox Spawn/plain ns/op", 1e-6, "ms", untold), outcome{figures: f}, "1 ms", told},
		"not measured":      {measuring("x", "gone ns/op", 1, "", atMost(15)), outcome{figures: f}, "not in this run: gone ns/op", notRun},
		"not run":           {measuring("x", "gone ns/op", 1, "", atMost(15)), outcome{why: "needs ../shared"}, "needs ../shared", notRun},
		"broken off":        {measuring("x", "gone ns/op", 1, "", atMost(15)), outcome{err: errors.New("not done after 2m0s")}, "not done after 2m0s", failed},
		"a difference":      {difference("x", "sandbox Spawn/bubblewrap ns/op", "sandbox Spawn/plain ns/op", 1e-6, "ms", atMost(15)), outcome{figures: f}, "16 ms (17 less 1)", short},
		"the worst":         {worst("x", "gate H/", "ns/op", 1e-6, "ms", atMost(5)), outcome{figures: f}, "worst of 2: 9 ms", short},
		"the worst of none": {worst("x", "gate N/", "ns/op", 1e-6, "ms", atMost(5)), outcome{figures: f}, "not in this run: gate N/", notRun},
		"words":             {saying(job{}, `\d+ of \d+ rows hold`), outcome{out: "ok\n25 of 25 rows hold\n"}, "25 of 25 rows hold", met},
		"words and failure": {saying(job{}, `\d+ of \d+ rows hold`), outcome{out: "24 of 25 rows hold\n", err: errors.New("exit status 1")}, "24 of 25 rows hold; exit status 1", failed},
		"recall":            {recallSet("fused"), outcome{out: "cranfield        fused    nDCG@10  41.7  R@100  80.1  n=225   p50 0.5 ms  wall 2.0 s\n"}, "cranfield nDCG@10  41.7 R@100  80.1", met},
		"time in bounds":    {lasting(job{}, atMost(120)), outcome{took: 90 * time.Second}, "90 s", met},
		"time over":         {lasting(job{}, atMost(120)), outcome{took: 130 * time.Second}, "130 s", short},
		"rows":              {besting(passing("p", "Speed"), `bench_test.go:\d+: (\S.*?) {2,}([\d.]+) {2,}([\d.]+) {2,}[\d.]+\n`), speed, "fib 25 72×, plist walk 0.5×", short},
		"no rows":           {besting(passing("p", "Speed"), `none (a) (b)(c)`), speed, "the output has no rows", failed},
		"a fuzz target":     {fuzzing("p", "FuzzX"), outcome{out: fuzz}, "FuzzX: 60 s, 12,345 tries, nothing found", met},
		"a finding":         {fuzzing("p", "FuzzX"), outcome{out: fuzz, err: errors.New("exit status 1")}, "exit status 1", failed},
	} {
		if figure, v := tt.p.judge(tt.o); figure != tt.figure || v != tt.v {
			t.Errorf("%s: %q %v, want %q %v", name, figure, v, tt.figure, tt.v)
		}
	}
}

func TestWhatFailedSaysItsLastWords(t *testing.T) {
	long := strings.Repeat("a line\n", 100) + "why it failed\n"
	for name, o := range map[string]outcome{
		"a test":    {tests: map[string]testResult{"TestA": {"pass", "fine\n"}, "TestB": {"fail", long}}},
		"a command": {out: long, err: errors.New("exit status 1")},
	} {
		got := o.complaints()
		if !strings.HasSuffix(got, "    | why it failed\n") || strings.Count(got, "\n") != 15 || strings.Contains(got, "fine") {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := (outcome{out: long, tests: map[string]testResult{"TestA": {"pass", long}}}).complaints(); got != "" {
		t.Errorf("nothing failed, and it says %q", got)
	}
}

func TestAPromiseStandsAsItsWorstProof(t *testing.T) {
	p := promise{7, "claim", "bar", []proof{passing("p", "^TestA$"), passing("p", "^TestB$")}}
	j := p.shown[0].job.named()
	v, r := p.row(map[string]outcome{j.name: {tests: map[string]testResult{"TestA": {status: "pass"}, "TestB": {status: "fail"}}}})
	if v != failed || r.Verdict != "FAILED" || r.Figure != "1 test of p; FAILED: 1 of 1 tests fail: TestB" {
		t.Errorf("%v %+v", v, r)
	}
	if want := "go test -run '^TestA$' ./internal/p && go test -run '^TestB$' ./internal/p"; r.Command != want {
		t.Errorf("command %q, want %q", r.Command, want)
	}
	if jobs := jobsOf([]promise{p}); len(jobs) != 1 || jobs[0].tests != "^TestA$|^TestB$" {
		t.Errorf("tests of one package are %d runs: %+v", len(jobs), jobs)
	}
}

// TestEveryPromiseNamesWhatExists keeps the tables from coming apart from the tree: a
// renamed test or benchmark must not turn a promise into one that is never shown.
func TestEveryPromiseNamesWhatExists(t *testing.T) {
	known := map[string][]string{}
	declared := func(pkg, kind string) (names []string) {
		if names, ok := known[kind+pkg]; ok {
			return names
		}
		defer func() { known[kind+pkg] = names }()
		of := regexp.MustCompile(`(?m)^func (` + kind + `\w+)\(`)
		files, err := filepath.Glob(filepath.Join("..", "..", packagePath(pkg), "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("package %s has no tests: %v", pkg, err)
		}
		for _, f := range files {
			raw, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range of.FindAllSubmatch(raw, -1) {
				names = append(names, string(m[1]))
			}
		}
		return names
	}
	matches := func(names []string, pattern string) bool {
		for alternative := range strings.SplitSeq(pattern, "|") {
			if strings.ContainsAny(alternative, "()") { // it would be cut in the middle
				alternative = pattern
			}
			if !slices.ContainsFunc(names, regexp.MustCompile(alternative).MatchString) {
				return false
			}
		}
		return true
	}
	parts := map[string]part{}
	for _, p := range suite {
		parts[p.name] = p
		if !matches(declared(p.pkg, "Benchmark"), p.pattern) {
			t.Errorf("part %s: not all of %s exist in %s", p.name, p.pattern, p.pkg)
		}
	}
	for _, p := range promises {
		if len(p.shown) == 0 || p.claim == "" || p.bar == "" {
			t.Errorf("issue %d: %q shows nothing", p.issue, p.claim)
		}
		for _, s := range p.shown {
			if s.job.part != "" && parts[s.job.part].name == "" {
				t.Errorf("%s: no benchmarks are called %q", p.claim, s.job.part)
			}
			if s.job.pkg != "" && !matches(declared(s.job.pkg, "Test"), s.job.tests) {
				t.Errorf("%s: not all of %s exist in %s", p.claim, s.job.tests, s.job.pkg)
			}
		}
	}
}

func TestEveryRowOfTheDocumentIsInAPartOfTheSuite(t *testing.T) {
	known := func(figure string) bool {
		pkg, rest, _ := strings.Cut(figure, " ")
		name, _, _ := strings.Cut(rest, " ")
		name, _, _ = strings.Cut(name, "/")
		for _, p := range suite {
			if p.pkg == pkg && regexp.MustCompile(p.pattern).MatchString("Benchmark"+name) {
				return true
			}
		}
		return false
	}
	for _, o := range operations {
		if !known(o.figure) {
			t.Errorf("%s: %s is never measured", o.what, o.figure)
		}
	}
	for _, c := range curves {
		for _, s := range c.series {
			if !known(s.figure) || !strings.Contains(s.figure, "*") {
				t.Errorf("%s, %s: %s is never measured, or at one size only", c.title, s.name, s.figure)
			}
		}
	}
}

func TestWrongCallsAreRefusedWithTheUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"dance"}, {"bench", "-wrong"}, {"report", "-issue", "four"}, {"bench", "more"}} {
		var out, talk bytes.Buffer
		if got := run(t.Context(), args, &out, &talk); got != 2 || out.Len() > 0 || talk.Len() == 0 {
			t.Errorf("%q ends with %d, prints %q, says %q", args, got, out.String(), talk.String())
		}
	}
}

func TestACommandThatTakesTooLongIsEndedWithItsChildren(t *testing.T) {
	out, err := command(t.Context(), 300*time.Millisecond, nil, []string{"sh", "-c", "echo begun; sleep 600 & wait"})
	if err == nil || !strings.Contains(err.Error(), "not done after") || string(out) != "begun\n" {
		t.Errorf("%v, %q", err, out)
	}
}
