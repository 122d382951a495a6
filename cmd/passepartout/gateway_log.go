package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"passepartout/internal/journal"
)

func (a *app) gatewayLogCommand() *cobra.Command {
	var n int
	c := &cobra.Command{
		Use: "log [CHANNEL]", Short: "Show what happened at the channels: who was refused, paired or linked",
		Long: `Show, from the journal, what happened at the channels and led to nothing else: who was
refused and why, who was paired, which files came in, what was linked. No daemon is
needed.`,
		Example: "  passepartout gateway log\n  passepartout gateway log telegram -n 100 --json",
		Args:    cobra.MaximumNArgs(1), ValidArgs: channelNames(),
		RunE: func(_ *cobra.Command, args []string) error { return a.gatewayLog(strings.Join(args, ""), n) },
	}
	c.Flags().IntVarP(&n, "lines", "n", 20, "how many entries")
	return c
}

func (a *app) gatewayLog(name string, n int) error {
	if name != "" {
		if _, err := channelNamed(name); err != nil {
			return err
		}
	}
	if n < 1 {
		return usageError("--lines: want at least 1, found %d", n)
	}
	dir, err := a.journalDir()
	if err != nil {
		return err
	}
	var last []journal.Entry // the newest n
	for e, err := range journal.Read(dir) {
		if err != nil {
			return err
		}
		if e.Body.Word("KIND") != "CHANNEL" || name != "" && e.Body.Text("CHANNEL") != name {
			continue
		}
		if last = append(last, e); len(last) > n {
			last = last[1:]
		}
	}
	rows := make([]map[string]string, len(last))
	for i, e := range last {
		rows[i] = channelRow(e)
	}
	if a.json {
		return a.printJSON(rows)
	}
	for _, r := range rows {
		fmt.Fprintf(a.out, "%s  %-10s %s\n", r["at"], r["event"], printable(r["text"]))
	}
	if len(rows) == 0 {
		fmt.Fprintln(a.errw, "Nothing has happened at the channels.")
	}
	return nil
}

// channelRow is an entry about a channel as a person reads it.
func channelRow(e journal.Entry) map[string]string {
	p := e.Body
	who := strings.TrimSpace(p.Text("FROM") + "  " + p.Text("NAME"))
	row := map[string]string{
		"at": e.At.UTC().Format(time.RFC3339), "channel": p.Text("CHANNEL"), "event": strings.ToLower(string(p.Word("EVENT"))),
		"from": p.Text("FROM"), "name": p.Text("NAME"), "what": p.Text("WHAT"), "why": p.Text("WHY"), "said": p.Text("TEXT"), "file": p.Text("FILE"),
	}
	switch p.Word("EVENT") {
	case "REFUSED":
		row["text"] = fmt.Sprintf("%s, %s: %s", who, p.Text("WHAT"), p.Text("WHY"))
		if said := p.Text("TEXT"); said != "" {
			row["text"] += fmt.Sprintf(" (%q)", said)
		}
	case "PAIRED":
		row["role"] = p.Text("ROLE")
		row["text"] = fmt.Sprintf("%s, as %s", who, p.Text("ROLE"))
	case "FILE", "FILE-REFUSED":
		row["text"] = strings.TrimSuffix(fmt.Sprintf("%s sent %s: %s", who, p.Text("FILE"), p.Text("WHY")), ": ")
	case "NOTICE":
		row["what"] = p.Text("ABOUT")
		row["text"] = fmt.Sprintf("%d told of %s", p.Number("OWNERS"), p.Text("ABOUT"))
	case "UNDELIVERED":
		row["text"] = fmt.Sprintf("to %s: %s", p.Text("TO"), p.Text("WHY"))
	default: // pairing, unpaired, linked, unlinked: done by somebody here
		row["text"] = fmt.Sprintf("%s: %s", p.Text("CHANNEL"), p.Text("WHAT"))
		if by := p.Sub("BY"); by.Len() > 0 {
			row["by"] = by.Text("CHANNEL")
			row["text"] += ", over " + by.Text("CHANNEL")
		}
	}
	return row
}
