package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// A part is one call of go test -bench.
type part struct {
	name    string
	pkg     string // below internal, or a path that begins with cmd
	pattern string
	time    string // -benchtime
	count   int
	env     []string
	limit   time.Duration

	// In a quick run. A figure that a promise is judged by must be the steady one there,
	// too: after a handful of turns or edits it tells of pages not yet touched.
	quickTime string // -benchtime, "100ms" if ""
	quickOnly string // in the place of pattern, if not ""
	quickEnv  []string
	short     bool // with -short
	slow      bool // left out
}

// suite is every benchmark the document and the report draw on. Parts that take the
// machine to its limits stand last, so that the small ones are not disturbed.
var suite = []part{
	{name: "gates", pkg: "gate", pattern: "^BenchmarkDecide|^BenchmarkLookup$|^BenchmarkCheckShell$|^BenchmarkHostileCommand64KiB$", time: "500ms", count: 3},
	{name: "frames", pkg: "proto", pattern: "^BenchmarkFrame$", time: "500ms", count: 3},
	{name: "cosine", pkg: "recall", pattern: "^BenchmarkCosine$", time: "300ms", count: 3},
	{name: "skills", pkg: "skill", pattern: "^BenchmarkGate$", time: "300ms", count: 3},
	{name: "org", pkg: "org", pattern: "^BenchmarkOutline$|^BenchmarkEverything$", time: "500ms", count: 3, limit: 3 * time.Minute},
	{name: "edits", pkg: "org", pattern: "^BenchmarkEdit$", time: "500ms", count: 3, quickTime: "100x"},
	{name: "emacs", pkg: "org", pattern: "^BenchmarkAgainstEmacs$", time: "1s", count: 1, slow: true},
	{name: "sandbox", pkg: "sandbox", pattern: "^BenchmarkSpawn$", time: "1s", count: 3, quickTime: "50x"},
	{name: "output", pkg: "sandbox", pattern: "^BenchmarkOutput$", time: "1s", count: 3, quickTime: "3x"},
	{name: "approvals", pkg: "daemon", pattern: "^BenchmarkApproveToEffect$|^BenchmarkApprovals10k$", time: "200x", count: 1, quickTime: "60x", quickOnly: "^BenchmarkApproveToEffect$"},
	{name: "overhead", pkg: "daemon", pattern: "^BenchmarkOverheadOfATurn$", time: "1000x", count: 1, quickTime: "500x"},
	{name: "schedule", pkg: "pulse", pattern: "^BenchmarkStart$", time: "500ms", count: 3, quickTime: "1x"},
	{name: "terminal", pkg: "cmd/passepartout", pattern: "^BenchmarkTerminalClient$", time: "1x", count: 1, limit: 5 * time.Minute, slow: true},
	{name: "frames per second", pkg: "tui", pattern: "^BenchmarkFrameAt100kLines$|^BenchmarkThousandChunks$", time: "300ms", count: 3},
	{name: "start", pkg: "cmd/passepartout", pattern: "^BenchmarkColdStart$|^BenchmarkDaemonStart$|^BenchmarkCommand$", time: "10x", count: 1, quickTime: "3x", short: true},
	{name: "turns", pkg: "cmd/passepartout", pattern: "^BenchmarkTurn$", time: "500x", count: 1, quickTime: "300x"},
	{name: "clients", pkg: "cmd/passepartout", pattern: "^BenchmarkClients$|^BenchmarkLongReply$|^BenchmarkHealthCheck$|^BenchmarkConnectAtOnce$|^BenchmarkMemexTurn$", time: "1x", count: 1, limit: 5 * time.Minute, quickTime: "1x", short: true},
	{name: "search", pkg: "recall", pattern: "^BenchmarkSearch$|^BenchmarkBuild$|^BenchmarkUpdate$|^BenchmarkScan$", time: "500ms", count: 1, env: []string{"PASSEPARTOUT_SCALE=1M"}, limit: 8 * time.Minute, slow: true},
	{name: "scale", pkg: "fovea", pattern: "^BenchmarkScale$", time: "500ms", count: 1, env: []string{"PASSEPARTOUT_SCALES=1k,10k,100k,1m"}, quickEnv: []string{"PASSEPARTOUT_SCALES=1k,10k,100k"}, limit: 10 * time.Minute},
}

// A bench runs the suite.
type bench struct {
	quick bool
	only  string
	talk  io.Writer
}

// A measured is the outcome of the suite.
type measured struct {
	cpu     string
	figures figures
	failed  []string // parts that did not run to their end, with the reason
}

// all runs every part, and goes on after one that fails.
func (b bench) all(ctx context.Context) measured {
	m := measured{figures: figures{}}
	for _, p := range suite {
		if !strings.Contains(p.name, b.only) || b.quick && p.slow {
			continue
		}
		start := time.Now()
		fmt.Fprintf(b.talk, "measure: %s … ", p.name)
		o, err := b.part(ctx, p)
		if err != nil {
			m.failed = append(m.failed, fmt.Sprintf("%s: %v", p.name, err))
		}
		for k, v := range o.medians() {
			m.figures[k] = v
		}
		m.cpu = max(m.cpu, o.cpu)
		fmt.Fprintf(b.talk, "%d figures, %s\n", len(o.values), time.Since(start).Round(time.Second))
	}
	return m
}

// args is the command line of a part.
func (p part) args(quick bool) []string {
	bt, count, pattern := p.time, p.count, p.pattern
	if quick {
		count = 1
		if p.quickOnly != "" {
			pattern = p.quickOnly
		}
		if bt = p.quickTime; bt == "" {
			bt = "100ms"
		}
	}
	args := []string{"go", "test", "-run", "^$", "-bench", pattern, "-benchtime", bt, "-count", fmt.Sprint(count), "-timeout", "20m"}
	if quick && p.short {
		args = append(args, "-short")
	}
	return append(args, packagePath(p.pkg))
}

// packagePath is where a package lies in the tree.
func packagePath(pkg string) string {
	if strings.HasPrefix(pkg, "cmd/") {
		return "./" + pkg
	}
	return "./internal/" + pkg
}

// part runs one part within its time.
func (b bench) part(ctx context.Context, p part) (benchOutput, error) {
	limit := p.limit
	if limit == 0 {
		limit = 2 * time.Minute
	}
	env := p.env
	if b.quick && p.quickEnv != nil {
		env = p.quickEnv
	}
	out, err := command(ctx, limit, env, p.args(b.quick))
	o, rerr := readBench(bytes.NewReader(out))
	switch {
	case err != nil && len(o.failed) > 0:
		return o, fmt.Errorf("%w: %s", err, o.failed[0])
	case err != nil:
		return o, err
	}
	return o, rerr
}

// command runs a command line in the current directory and returns what it printed,
// also when it failed. Whatever it started ends with it.
func command(ctx context.Context, limit time.Duration, env, argv []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.Env = append(os.Environ(), env...)
	ownGroup(c)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	c.WaitDelay = 5 * time.Second
	err := c.Run()
	if ctx.Err() != nil {
		err = fmt.Errorf("not done after %s", limit)
	}
	return out.Bytes(), err
}
