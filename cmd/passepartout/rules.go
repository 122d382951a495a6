package main

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"passepartout/internal/durable"
	"passepartout/internal/flight"
	"passepartout/internal/gate"
	"passepartout/internal/org"
	"passepartout/internal/sexp"
)

// rulesCommand works on the rules in the memex: which there are, what they did,
// and which could be learnt from the answers a person gave.
func (a *app) rulesCommand() *cobra.Command {
	c := &cobra.Command{Use: "rules", Short: "Read, learn, try and revoke rules"}
	c.AddCommand(a.rulesListCommand(), a.rulesShowCommand(), a.rulesMineCommand(), a.rulesShadowCommand(), a.rulesRevokeCommand())
	return c
}

func (a *app) rulesListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the rules in force, on trial and expired, and what they answered", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.rulesList() },
	}
}

// A ruleRow is one rule as it is listed.
type ruleRow struct {
	Name     string `json:"name"`
	Decision string `json:"decision"`
	Verb     string `json:"verb"`
	State    string `json:"state"` // in force, on trial, expired, fails
	Hits     int    `json:"hits"`
	Expires  string `json:"expires,omitempty"`
	Where    string `json:"where"`
}

func (a *app) rulesList() error {
	rows, err := a.ruleRows(func(gate.Rule) bool { return true })
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(rows)
	}
	if len(rows) == 0 {
		fmt.Fprintln(a.errw, "There are no rules. `passepartout rules mine` proposes some once you have answered the same question a few times.")
	}
	tw := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	for _, r := range rows {
		until := r.Expires
		if until == "" {
			until = "no end"
		}
		fmt.Fprintf(tw, "%s\t%s\t%d hits\t%s\t%s\n", r.State, r.Decision, r.Hits, until, printable(r.Name))
	}
	return tw.Flush()
}

// ruleRows tells of the wanted rules how often each of them was met.
func (a *app) ruleRows(wanted func(gate.Rule) bool) ([]ruleRow, error) {
	b, err := a.bench()
	if err != nil {
		return nil, err
	}
	entries, err := a.entries()
	if err != nil {
		return nil, err
	}
	hits, err := flight.Hits(entries)
	if err != nil {
		return nil, err
	}
	rows := []ruleRow{}
	var faults []error
	for _, r := range b.Policy.Rules {
		row := ruleRowOf(r, hits[r.Name], time.Now())
		if err := gate.TestRule(r, b.Policy, b.Vocabulary, b.Gates...); err != nil {
			row.State = "fails"
			faults = append(faults, err)
		}
		if wanted(r) {
			rows = append(rows, row)
		}
	}
	if len(faults) > 0 { // one that fails keeps the whole file from loading
		fmt.Fprintf(a.errw, "The file does not load, so the policy before it stays in force: %v\n", faults[0])
	}
	return rows, nil
}

func ruleRowOf(r gate.Rule, hits int, now time.Time) ruleRow {
	row := ruleRow{Name: r.Name, Decision: r.Decision.String(), Verb: r.Verb, State: "in force", Hits: hits, Where: r.Where}
	if r.Shadow {
		row.State = "on trial"
	}
	if !r.Expires.IsZero() {
		row.Expires = r.Expires.Format(time.DateOnly)
		if !now.Before(r.Expires) {
			row.State = "expired"
		}
	}
	return row
}

// entries reads the journal; one that does not exist yet is empty.
func (a *app) entries() (iter.Seq2[sexp.Plist, error], error) {
	dir, err := a.journalDir()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return func(func(sexp.Plist, error) bool) {}, nil
	}
	return bodies(dir), nil
}

func (a *app) rulesShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Print a rule as it is written; NAME may be a part of its name", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			f, err := a.rulesFile()
			if err != nil {
				return err
			}
			h, err := f.find(args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(a.out, printable(f.org.Text(h.Span())))
			return err
		},
	}
}

func (a *app) rulesMineCommand() *cobra.Command {
	var after, take int
	c := &cobra.Command{
		Use: "mine", Short: "Propose rules from the answers you gave",
		Long: `Propose the smallest rules that cover what you have approved, or denied, again and
again in the last 30 days, with what each would have answered and what else it
admits. --take puts one on trial: it is written to system/rules.org and only
counts what it would do, until you end its trial with "rules shadow --end".`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.rulesMine(after, take) },
	}
	c.Flags().IntVar(&after, "after", flight.LearnAfter, "answers of one kind before a rule is proposed")
	c.Flags().IntVar(&take, "take", 0, "put the proposal of this `NUMBER` on trial")
	return c
}

// mine finds proposals; those that cannot be rules come last.
func (a *app) mine(after int) ([]flight.Proposal, error) {
	b, err := a.bench()
	if err != nil {
		return nil, err
	}
	entries, err := a.entries()
	if err != nil {
		return nil, err
	}
	ps, err := flight.Miner{Vocabulary: b.Vocabulary, Policy: b.Policy, Now: time.Now(), After: after}.Mine(entries)
	slices.SortStableFunc(ps, func(x, y flight.Proposal) int { return min(len(x.Problem), 1) - min(len(y.Problem), 1) })
	return ps, err
}

func (a *app) rulesMine(after, take int) error {
	if after < 1 {
		return usageError("--after %d: want at least 1", after)
	}
	ps, err := a.mine(after)
	if err != nil {
		return err
	}
	if take != 0 {
		if take < 1 || take > len(ps) {
			return usageError("--take %d: there are %d proposals", take, len(ps))
		}
		return a.takeProposal(ps[take-1])
	}
	if a.json {
		return a.printJSON(proposalsJSON(ps))
	}
	if len(ps) == 0 {
		fmt.Fprintln(a.errw, "Nothing was answered the same way often enough.")
	}
	for i, p := range ps {
		fmt.Fprintf(a.out, "%d. %s\n   from %d answers\n", i+1, printable(p.Rule.Name), p.Answers)
		if p.Problem != "" {
			fmt.Fprintf(a.out, "   cannot be a rule: %s\n", printable(p.Problem))
			continue
		}
		for _, s := range p.Scope {
			fmt.Fprintf(a.out, "   admits  %s\n", printable(s))
		}
		fmt.Fprintf(a.out, "   would have answered %d further questions\n", len(p.Would))
		for _, w := range p.Would {
			fmt.Fprintf(a.out, "     %s\n", printable(w))
		}
	}
	return nil
}

func proposalsJSON(ps []flight.Proposal) []map[string]any {
	out := []map[string]any{}
	for _, p := range ps {
		out = append(out, map[string]any{
			"name": p.Rule.Name, "decision": p.Rule.Decision.String(), "answers": p.Answers, "match": p.Rule.Match,
			"lifts": p.Rule.Lifts, "scope": p.Scope, "would": p.Would, "problem": p.Problem,
		})
	}
	return out
}

// takeProposal writes a proposal into the rules' file.
func (a *app) takeProposal(p flight.Proposal) error {
	if p.Problem != "" {
		return fmt.Errorf("%q cannot be a rule: %s", p.Rule.Name, p.Problem)
	}
	f, err := a.rulesFile()
	if err != nil {
		return err
	}
	author := a.getenv("USER")
	if author == "" {
		author = "owner"
	}
	text := string(f.src)
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if err := f.save(a, []byte(text+p.Org(author, time.Now()))); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "%s: %s\n", f.name, p.Rule.Name)
	return err
}

func (a *app) rulesShadowCommand() *cobra.Command {
	var end bool
	c := &cobra.Command{
		Use: "shadow [NAME]", Short: "Say what the rules on trial would have answered; --end puts one in force",
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if end && len(args) == 0 {
				return usageError("--end: say which rule")
			}
			if end {
				return a.endTrial(args[0])
			}
			return a.rulesShadow(strings.Join(args, ""))
		},
	}
	c.Flags().BoolVar(&end, "end", false, "end its trial: from now on it answers")
	return c
}

func (a *app) rulesShadow(name string) error {
	rows, err := a.ruleRows(func(r gate.Rule) bool { return r.Shadow && strings.Contains(r.Name, name) })
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(rows)
	}
	for _, r := range rows {
		fmt.Fprintf(a.out, "%s would have answered %d questions\n", printable(r.Name), r.Hits)
	}
	return nil
}

func (a *app) endTrial(name string) error {
	f, err := a.rulesFile()
	if err != nil {
		return err
	}
	h, err := f.find(name)
	if err != nil {
		return err
	}
	if v, _ := h.Property("SHADOW"); v != "t" {
		return fmt.Errorf("%q is not on trial", h.Title())
	}
	patches, err := h.RemoveProperty("SHADOW")
	if err != nil {
		return err
	}
	return f.patch(a, patches)
}

func (a *app) rulesRevokeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "revoke NAME", Short: "Take a rule out of system/rules.org; NAME may be a part of its name", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			f, err := a.rulesFile()
			if err != nil {
				return err
			}
			h, err := f.find(args[0])
			if err != nil {
				return err
			}
			patches, err := h.Delete()
			if err != nil {
				return err
			}
			return f.patch(a, patches)
		},
	}
}

// A rulesOrg is the file the rules are written in.
type rulesOrg struct {
	name string
	src  []byte
	org  *org.File
}

func (a *app) rulesFile() (*rulesOrg, error) {
	cfg, err := a.config()
	if err != nil {
		return nil, err
	}
	f := &rulesOrg{name: filepath.Join(cfg.MemexDir, "system", "rules.org")}
	f.src, err = os.ReadFile(f.name)
	if errors.Is(err, fs.ErrNotExist) {
		err = durable.MkdirAll(filepath.Dir(f.name), 0o755)
	}
	f.org = org.Parse(f.src)
	return f, err
}

// find is the one rule whose name contains the words.
func (f *rulesOrg) find(words string) (org.Headline, error) {
	var found []org.Headline
	for h := range f.org.Headlines() {
		if _, ok := h.Property("DECISION"); !ok {
			continue
		}
		if h.Title() == words {
			return h, nil
		}
		if strings.Contains(h.Title(), words) {
			found = append(found, h)
		}
	}
	if len(found) != 1 {
		return org.Headline{}, fmt.Errorf("%d rules in %s are called %q: want one", len(found), f.name, words)
	}
	return found[0], nil
}

func (f *rulesOrg) patch(a *app, ps []org.Patch) error {
	now, err := f.org.Apply(ps)
	if err != nil {
		return err
	}
	return f.save(a, now.Bytes())
}

// save replaces the file, after seeing that the rules in it hold: a file that does
// not load would leave the old rules in force.
func (f *rulesOrg) save(a *app, text []byte) error {
	b, err := a.bench()
	if err != nil {
		return err
	}
	if b.Policy.Rules, err = gate.ParseRules(f.name, text, b.Vocabulary); err != nil {
		return err
	}
	if _, err := gate.Standard(b.Policy, b.Vocabulary); err != nil {
		return err
	}
	return replaceFile(f.name, f.src, text)
}
