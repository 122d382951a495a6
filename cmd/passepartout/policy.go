package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"passepartout/internal/daemon"
	"passepartout/internal/gate"
	"passepartout/internal/sexp"
	"passepartout/internal/skill"
)

// policyCommand works on policies: their rules' examples, the record they made,
// what distinguishes two of them.
func (a *app) policyCommand() *cobra.Command {
	c := &cobra.Command{Use: "policy", Short: "Test rules, replay decisions, compare policies"}
	c.AddCommand(a.policyTestCommand(), a.policyReplayCommand(), a.policyDiffCommand(), a.policyPermissionsCommand())
	return c
}

func (a *app) policyPermissionsCommand() *cobra.Command {
	var builtIn bool
	c := &cobra.Command{
		Use: "permissions", Short: "Print the table of tools in force", Args: cobra.NoArgs,
		Long: `Print the table of tools in force: system/permissions.org of the memex, or the one
that is built in. To write your own, begin with the built-in one: a table takes its
place whole, and what is not in it asks, answers included.`,
		Example: "  passepartout policy permissions\n  passepartout policy permissions --built-in > ~/memex/system/permissions.org",
		RunE: func(*cobra.Command, []string) error {
			if builtIn { // not what the memex says: a shell may just have emptied that file
				_, err := a.out.Write(daemon.BuiltInPermissions())
				return err
			}
			b, err := a.bench()
			if err != nil {
				return err
			}
			if !a.json {
				_, err = a.out.Write(b.Table)
				return err
			}
			type row struct {
				Tool     string `json:"tool"`
				Decision string `json:"decision"`
				Where    string `json:"where"`
			}
			rows := make([]row, len(b.Policy.Permissions))
			for i, p := range b.Policy.Permissions {
				rows[i] = row{p.Name, p.Decision.String(), p.Rule}
			}
			return a.printJSON(rows)
		},
	}
	c.Flags().BoolVar(&builtIn, "built-in", false, "the text of the built-in table, whatever the memex has")
	return c
}

func (a *app) policyTestCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "test [FILE…]",
		Short: "Run the examples of the rules",
		Long: `Run the match and no-match examples of every rule, in the files named or in the
memex's system/rules.org. An example of an allow rule must also not be refused by
a gate, a skill's included, because no rule can lift a refusal. Without a file the
skills are tested too: each is loaded, which runs its own tests.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, files []string) error { return a.policyTest(files) },
	}
}

// A ruleResult is how one rule's examples went.
type ruleResult struct {
	Rule     string `json:"rule"`
	Where    string `json:"where"`
	Examples int    `json:"examples"`
	Error    string `json:"error,omitempty"`
}

func (a *app) policyTest(files []string) error {
	b, err := a.bench()
	if err != nil {
		return err
	}
	rules := b.Policy.Rules
	if len(files) > 0 {
		rules = nil
	}
	for _, f := range files {
		src, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		more, err := gate.ParseRules(f, src, b.Vocabulary)
		if err != nil {
			return err
		}
		rules = append(rules, more...)
	}
	results, failed := testRules(rules, b)
	if len(files) == 0 {
		more, bad := testSkills(b.Skills)
		results, failed = append(results, more...), failed+bad
	}
	if a.json {
		err = a.printJSON(results)
	} else {
		err = a.printRuleResults(results)
	}
	if err == nil && failed > 0 {
		return fmt.Errorf("%d of %d rules fail their examples", failed, len(results))
	}
	return err
}

func testRules(rules []gate.Rule, b *daemon.Bench) (results []ruleResult, failed int) {
	results = []ruleResult{}
	for _, r := range rules {
		one := ruleResult{Rule: r.Name, Where: r.Where, Examples: len(r.Match) + len(r.NoMatch)}
		if err := gate.TestRule(r, b.Policy, b.Vocabulary, b.Gates...); err != nil {
			one.Error = err.Error()
			failed++
		}
		results = append(results, one)
	}
	return results, failed
}

// testSkills tells how loading the skills went, which runs their tests.
func testSkills(set *skill.Set) (results []ruleResult, failed int) {
	for _, k := range set.Skills {
		results = append(results, ruleResult{Rule: "skill " + k.Name, Where: k.File, Examples: k.Tests})
	}
	for _, p := range set.Problems {
		results = append(results, ruleResult{Rule: "skill " + p.Name, Where: p.File, Error: p.Error()})
	}
	return results, len(set.Problems)
}

func (a *app) printRuleResults(results []ruleResult) error {
	if len(results) == 0 {
		fmt.Fprintln(a.errw, "There are no rules to test. The permissions' own examples were run when the policy loaded.")
	}
	tw := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	for _, r := range results {
		state, note := "ok", fmt.Sprintf("%d examples", r.Examples)
		if r.Error != "" {
			state, note = "FAIL", printable(r.Error)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", state, printable(r.Rule), r.Where, note)
	}
	return tw.Flush()
}

func (a *app) policyDiffCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "List what distinguishes two policies",
		Long: `List what distinguishes two policies. Each is "current", which is the one the files
in the memex make now, an Org file with rules in the place of the current ones, a
file with a recorded policy, or the digest, or its beginning, of a policy in the
journal.`,
		Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error { return a.policyDiff(args[0], args[1]) },
	}
}

func (a *app) policyDiff(old, now string) error {
	p, err := a.policyNamed(old)
	if err != nil {
		return err
	}
	q, err := a.policyNamed(now)
	if err != nil {
		return err
	}
	changes := p.Diff(q)
	if a.json {
		type row struct {
			What string `json:"what"`
			Old  string `json:"old"`
			New  string `json:"new"`
		}
		rows := make([]row, len(changes))
		for i, c := range changes {
			rows[i] = row(c)
		}
		return a.printJSON(rows)
	}
	for _, c := range changes {
		if c.Old != "" {
			fmt.Fprintf(a.out, "- %s: %s\n", c.What, printable(c.Old))
		}
		if c.New != "" {
			fmt.Fprintf(a.out, "+ %s: %s\n", c.What, printable(c.New))
		}
	}
	return nil
}

// policyNamed finds a policy by a file's name or by the beginning of a digest.
func (a *app) policyNamed(name string) (gate.Policy, error) {
	if name == "current" {
		b, err := a.bench()
		if err != nil {
			return gate.Policy{}, err
		}
		return b.Policy, nil
	}
	src, err := os.ReadFile(name)
	if err != nil {
		if p, ok := a.policyRecorded(name); ok {
			return p, nil
		}
		return gate.Policy{}, fmt.Errorf("policy %q: %w, and no such digest in the journal", name, err)
	}
	if isOrg(name) {
		b, err := a.bench()
		if err != nil {
			return gate.Policy{}, err
		}
		b.Policy.Rules, err = gate.ParseRules(name, src, b.Vocabulary)
		return b.Policy, err
	}
	pl, err := sexp.ReadPlist(src, sexp.Limits{})
	if err != nil {
		return gate.Policy{}, fmt.Errorf("policy %s: %w", name, err)
	}
	p, err := gate.ParsePolicy(pl)
	if err != nil {
		return gate.Policy{}, fmt.Errorf("policy %s: %w", name, err)
	}
	return p, nil
}

func isOrg(name string) bool { return strings.EqualFold(filepath.Ext(name), ".org") }

// policyRecorded finds a policy of the journal by the beginning of its digest.
func (a *app) policyRecorded(prefix string) (gate.Policy, bool) {
	const shortest = 6
	dir, err := a.journalDir()
	if err != nil || len(prefix) < shortest {
		return gate.Policy{}, false
	}
	r := replayer{}
	for body := range bodies(dir) {
		if err := r.policy(body); err != nil {
			continue
		}
	}
	var found gate.Policy
	n := 0
	for digest, p := range r.policies {
		if strings.HasPrefix(digest, strings.ToLower(prefix)) {
			found, n = p, n+1
		}
	}
	return found, n == 1
}
