// Command measure makes the project's figures. It is no part of the product: it runs
// the tests, benchmarks and evaluations of this tree and says what they said.
//
//	measure bench    run the benchmarks, write docs/benchmarks.md with its curves and data
//	measure compare  run them again and hold the outcome against what is written there
//	measure report   run what shows each promise of the project and print one table
//
// Its parts:
//
//   - gobench.go: reading what go test -bench prints
//   - suite.go: which benchmarks are run, and how
//   - operations.go: what stands in the document, beside the ancestor's figures
//   - document.go, curve.go: the document and its pictures
//   - compare.go: two runs side by side
//   - promise.go, promises*.go: the promises as data, and what shows each
//   - report.go: running that and printing the table
//
// The rule a newcomer will break: a figure is printed only if this very run measured
// it. What could not be run says so; nothing is remembered from an earlier run.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

const usage = `usage: measure bench   [-quick] [-only PART]           write docs/benchmarks.md
       measure compare [-quick] [-only PART] [-factor N]  hold a new run against it
       measure report  [-quick] [-issue N,…] [-json | -markdown]
`

// run is main without the process. It ends with 0, 1 where something failed or fell
// short, 2 where it was called wrongly.
func run(ctx context.Context, args []string, out, talk io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(talk, usage)
		return 2
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.SetOutput(talk)
	flags.Usage = func() { fmt.Fprint(talk, usage) }
	quick := flags.Bool("quick", false, "small sizes and short times: figures to see that it works, not to publish")
	only := flags.String("only", "", "run only the parts whose name contains this")
	factor := flags.Float64("factor", 2, "how much slower a time may be before compare fails")
	issues := flags.String("issue", "", "report only these issues: 4 or 4,8")
	asJSON := flags.Bool("json", false, "print the report as JSON")
	asMarkdown := flags.Bool("markdown", false, "print the report as a Markdown table")
	if err := flags.Parse(args[1:]); err != nil {
		return 2 // it has been told
	}
	if flags.NArg() > 0 {
		fmt.Fprint(talk, usage)
		return 2
	}
	wanted, err := numbers(*issues)
	if err != nil {
		fmt.Fprintf(talk, "measure: -issue: %v\n", err)
		return 2
	}
	b := bench{quick: *quick, only: *only, talk: talk}
	switch args[0] {
	case "bench":
		err = b.write(ctx, "docs")
	case "compare":
		err = b.compare(ctx, "docs", *factor, out)
	case "report":
		form := asText
		if *asJSON {
			form = asJSONLines
		} else if *asMarkdown {
			form = asTable
		}
		err = report{bench: b, wanted: wanted, form: form}.print(ctx, out)
	default:
		fmt.Fprint(talk, usage)
		return 2
	}
	if err != nil {
		fmt.Fprintf(talk, "measure: %v\n", err)
		return 1
	}
	return 0
}

// numbers reads "4,8".
func numbers(list string) (out []int, err error) {
	for word := range strings.SplitSeq(list, ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		n, err := strconv.Atoi(word)
		if err != nil {
			return nil, fmt.Errorf("%q is not a number", word)
		}
		out = append(out, n)
	}
	slices.Sort(out)
	return out, nil
}
