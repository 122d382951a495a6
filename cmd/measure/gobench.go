package main

import (
	"bufio"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// A figure is named by package, benchmark and unit: "gate Lookup ns/op".
type figures map[string]float64

// key names a figure.
func key(pkg, benchmark, unit string) string { return pkg + " " + benchmark + " " + unit }

// A benchOutput is what go test -bench printed.
type benchOutput struct {
	cpu    string
	values map[string][]float64 // one for each repetition
	failed []string             // lines that say that something went wrong
}

// readBench reads the output of one or more packages' benchmarks.
func readBench(r io.Reader) (benchOutput, error) {
	o := benchOutput{values: map[string][]float64{}}
	pkg, failing := "", false
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if failing && strings.HasPrefix(line, "    ") {
			o.failed[len(o.failed)-1] += ": " + strings.TrimSpace(line) // why
		}
		failing = strings.HasPrefix(line, "--- FAIL")
		switch word, rest, _ := strings.Cut(line, " "); {
		case word == "pkg:":
			pkg = shortPackage(rest)
		case word == "cpu:":
			o.cpu = rest
		case failing, strings.HasPrefix(line, "FAIL"), strings.HasPrefix(line, "panic:"):
			o.failed = append(o.failed, line)
		case strings.HasPrefix(line, "Benchmark"):
			o.add(pkg, strings.Fields(line))
		}
	}
	return o, lines.Err()
}

// add takes one line of results: name, runs, then values and units in turn.
func (o *benchOutput) add(pkg string, fields []string) {
	if len(fields) < 4 {
		return // the name alone, printed before a benchmark that logs
	}
	if _, err := strconv.Atoi(fields[1]); err != nil {
		return
	}
	name := strings.TrimSuffix(strings.TrimPrefix(fields[0], "Benchmark"), procs())
	for i := 2; i+1 < len(fields); i += 2 {
		v, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return
		}
		k := key(pkg, name, fields[i+1])
		o.values[k] = append(o.values[k], v)
	}
}

// procs is what go test puts behind the names of benchmarks.
func procs() string {
	if n := runtime.GOMAXPROCS(0); n > 1 {
		return "-" + strconv.Itoa(n)
	}
	return ""
}

// shortPackage is a package's path without the module and "internal".
func shortPackage(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, "passepartout/"), "internal/")
}

// medians is one value for each figure.
func (o benchOutput) medians() figures {
	f := figures{}
	for k, vs := range o.values {
		f[k] = median(vs)
	}
	return f
}

func median(vs []float64) float64 {
	s := slices.Sorted(slices.Values(vs))
	if len(s)%2 == 1 {
		return s[len(s)/2]
	}
	return (s[len(s)/2-1] + s[len(s)/2]) / 2
}
