package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

// compare runs the suite again and prints each figure beside the one on record. It is
// an error where a figure became worse than its kind allows.
func (b bench) compare(ctx context.Context, docs string, factor float64, out io.Writer) error {
	raw, err := os.ReadFile(filepath.Join(docs, "benchmarks.json"))
	if err != nil {
		return fmt.Errorf("nothing to compare with: %w", err)
	}
	var old record
	if err := json.Unmarshal(raw, &old); err != nil {
		return fmt.Errorf("docs/benchmarks.json: %w", err)
	}
	now := b.all(ctx)
	worse := printComparison(out, old.Figures, now.figures, factor)
	fmt.Fprintf(out, "on record: %s\nnow:       %s\n", old.Machine, now.machine())
	switch {
	case len(now.failed) > 0:
		return now.err()
	case len(worse) > 0:
		return fmt.Errorf("%d figures are worse than noise explains: %s", len(worse), strings.Join(worse, ", "))
	}
	return nil
}

// printComparison prints every figure both runs have, and returns those that became
// worse.
func printComparison(out io.Writer, old, now figures, factor float64) (worse []string) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "figure\ton record\tnow\ttimes\t\t")
	names := make([]string, 0, len(old))
	for k := range old {
		if _, ok := now[k]; ok {
			names = append(names, k)
		}
	}
	slices.Sort(names)
	for _, k := range names {
		allowed, judged := tolerance(k, factor)
		verdict := "shown only"
		if judged {
			verdict = "same"
			if isWorse(k, old[k], now[k], allowed) {
				verdict = fmt.Sprintf("WORSE than %.2g times", allowed)
				worse = append(worse, k)
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%.2f\t%s\t\n", k, human(old[k], ""), human(now[k], ""), now[k]/old[k], verdict)
	}
	if err := w.Flush(); err != nil {
		worse = append(worse, err.Error())
	}
	return worse
}

// tolerance is how many times worse a figure may be, and whether it is judged at all.
// Counts repeat; times and rates depend on what else the machine does; the slow end of
// a distribution, and what takes nanoseconds, says too little to be held against
// anybody.
func tolerance(figure string, factor float64) (float64, bool) {
	unit := figure[strings.LastIndexByte(figure, ' ')+1:]
	switch {
	case strings.HasPrefix(unit, "p9"), strings.Contains(unit, "gap"), strings.HasSuffix(figure, "/memory ns/op"):
		return 0, false
	case unit == "allocs/op", unit == "B/op", unit == "chars":
		return 1.2, true
	case strings.Contains(unit, "RSS"), strings.Contains(unit, "B/"), unit == "MB":
		return 1.5, true
	}
	return factor, true
}

// isWorse says whether a figure left what is allowed on its bad side.
func isWorse(figure string, old, now, allowed float64) bool {
	unit := figure[strings.LastIndexByte(figure, ' ')+1:]
	if strings.HasSuffix(unit, "/s") { // a rate
		return now*allowed < old
	}
	if strings.HasSuffix(unit, "s/op") && now-old <= 2 { // one allocation more, or a nanosecond
		return false
	}
	return now > old*allowed
}
