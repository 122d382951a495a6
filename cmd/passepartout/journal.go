package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"passepartout/internal/gate"
	"passepartout/internal/journal"
	"passepartout/internal/sexp"
)

// journalDir is where the daemon keeps its record.
func (a *app) journalDir() (string, error) {
	cfg, err := a.config()
	if err != nil {
		return "", err
	}
	return filepath.Join(cfg.StateDir, "journal"), nil
}

func (a *app) journalCommand() *cobra.Command {
	c := &cobra.Command{Use: "journal", Short: "Read and verify the record of every decision"}
	var n int
	tail := &cobra.Command{
		Use: "tail", Short: "Print the last entries", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.journalTail(n) },
	}
	tail.Flags().IntVarP(&n, "lines", "n", 10, "how many entries")
	verify := &cobra.Command{
		Use: "verify", Short: "Check the hash chain from the first entry to the last", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.journalVerify() },
	}
	replay := a.policyReplayCommand() // the same under the name of what it reads
	replay.Example = "  passepartout journal replay --verify\n  passepartout journal replay --since 30d --policy new-rules.org"
	c.AddCommand(tail, verify, replay)
	return c
}

func (a *app) journalTail(n int) error {
	dir, err := a.journalDir()
	if err != nil {
		return err
	}
	entries, err := journal.Tail(dir, n)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if a.json {
			err = a.printJSON(map[string]any{"seq": e.Seq, "at": e.At, "entry": e.Body.String()})
		} else {
			_, err = fmt.Fprintf(a.out, "%d %s %s\n", e.Seq, e.At.Format("2006-01-02 15:04:05"), printable(strings.ReplaceAll(e.Body.String(), "\n", "␊")))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *app) journalVerify() error {
	dir, err := a.journalDir()
	if err != nil {
		return err
	}
	sum, err := journal.Verify(dir)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(sum)
	}
	_, err = fmt.Fprintf(a.out, "journal whole: %d entries, head %s\n", sum.Entries, sum.Head)
	return err
}

func (a *app) whyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "why [ID]", Short: "Explain a decision: every gate, its verdict, code, reason and rule",
		Long: `Explain the decision of that id; the start of an id is enough. Without one, explain
the last decision about something to be done: that a reply may be shown is rarely
the question.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.why(strings.Join(args, "")) },
	}
}

func (a *app) why(id string) error {
	dir, err := a.journalDir()
	if err != nil {
		return err
	}
	ruling, outcome, err := findRuling(dir, id)
	if err != nil {
		return err
	}
	if a.json {
		out := traceJSON(ruling.Text("ID"), actionName(ruling.Sub("ACTION")), ruling.Sub("TRACE"))
		out["args"] = ruling.Sub("ACTION").Sub("ARGS").String()
		out["explanation"] = ruling.Sub("ACTION").Text("WHY")
		return a.printJSON(out)
	}
	return explain(a.out, ruling, outcome)
}

// findRuling is the ruling whose id starts with id, and its outcome if it had one.
// For an empty id it is the last that was not just about showing a reply, or the
// last of all.
func findRuling(dir, id string) (ruling, outcome sexp.Plist, err error) {
	found, deed := 0, sexp.Plist{}
	for e, err := range journal.Read(dir) {
		if err != nil {
			return ruling, outcome, err
		}
		switch p := e.Body; p.Word("KIND") {
		case "RULING":
			if strings.HasPrefix(p.Text("ID"), id) {
				if p.Text("ID") == id {
					return p, outcomeOf(dir, id), nil
				}
				ruling, found = p, found+1
			}
			if !onlySpeaks(p) {
				deed = p
			}
		}
	}
	switch {
	case found == 0 && id == "":
		return ruling, outcome, errors.New("the journal holds no ruling yet")
	case found == 0:
		return ruling, outcome, fmt.Errorf("the journal holds no ruling %q", id)
	case found > 1 && id != "":
		return ruling, outcome, fmt.Errorf("%d rulings start with %q: give more of the id", found, id)
	case id == "" && deed.Len() > 0:
		ruling = deed
	}
	return ruling, outcomeOf(dir, ruling.Text("ID")), nil
}

// onlySpeaks reports whether a ruling let a reply be shown.
func onlySpeaks(ruling sexp.Plist) bool {
	return ruling.Sub("ACTION").Word("VERB") == "MESSAGE" && ruling.Sub("TRACE").Word("DECISION") == "ALLOW"
}

func outcomeOf(dir, id string) sexp.Plist {
	for e, err := range journal.Read(dir) {
		if err == nil && e.Body.Word("KIND") == "OUTCOME" && e.Body.Text("RULING") == id {
			return e.Body
		}
	}
	return sexp.Plist{}
}

func actionName(p sexp.Plist) string {
	return strings.ToLower(string(p.Word("TARGET")) + "." + string(p.Word("VERB")))
}

// explain prints a ruling for a person.
func explain(w io.Writer, ruling, outcome sexp.Plist) error {
	action, trace, facts := ruling.Sub("ACTION"), ruling.Sub("TRACE"), ruling.Sub("FACTS")
	origin := action.Sub("ORIGIN")
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n", ruling.Text("ID"), actionName(action))
	for _, e := range action.Sub("ARGS").Pairs() {
		fmt.Fprintf(&b, "  %-12s %s\n", strings.ToLower(string(e.Key)), e.Value)
	}
	fmt.Fprintf(&b, "  %-12s %s\n", "because", action.Text("WHY"))
	fmt.Fprintf(&b, "  %-12s %s, for the %s on %s (%s)\n", "proposed by", action.Text("PROPOSER"), origin.Text("ROLE"), origin.Text("CHANNEL"), origin.Text("WHO"))
	fmt.Fprintf(&b, "  %-12s %s\n", "at", facts.Text("NOW"))
	fmt.Fprintf(&b, "  %-12s %s\n", "policy", trace.Text("POLICY"))
	fmt.Fprintf(&b, "decision: %s\n", strings.ToUpper(string(trace.Word("DECISION"))))
	for _, v := range gate.VerdictsOf(trace) {
		fmt.Fprintf(&b, "  %-24s %-5s %-28s %s", v.Gate, v.Decision, v.Code, v.Reason)
		if v.Rule != "" {
			fmt.Fprintf(&b, " [%s]", v.Rule)
		}
		b.WriteByte('\n')
	}
	if outcome.Len() > 0 {
		ok, _ := outcome.Get("OK")
		word := "failed"
		if !sexp.IsNil(ok) {
			word = "done"
		}
		first, _, _ := strings.Cut(outcome.Text("TEXT"), "\n")
		fmt.Fprintf(&b, "outcome: %s at %s: %s\n", word, outcome.Text("AT"), first)
	}
	_, err := io.WriteString(w, printable(b.String()))
	return err
}
