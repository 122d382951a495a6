package main

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"passepartout/internal/gate"
	"passepartout/internal/journal"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

func (a *app) policyReplayCommand() *cobra.Command {
	var o struct {
		since, policy, journal string
		verify                 bool
	}
	c := &cobra.Command{
		Use:   "replay",
		Short: "Decide again what the journal records",
		Long: `Decide every recorded action again from its recorded facts.

With --verify the answers must be the same, verdict for verdict; a difference
means that the gates, not the world, have changed. With --policy the actions are
decided under another policy, and what would change is listed: an Org file of
rules takes the place of the rules then in force, a recorded policy replaces
everything.`,
		Example: `  passepartout policy replay --verify
  passepartout policy replay --since 30d --policy new-rules.org`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			since, err := parseSince(o.since, time.Now())
			if err != nil {
				return &exitError{exitUsage, err}
			}
			if o.verify && o.policy != "" {
				return usageError("--verify decides under the recorded policies: leave out --policy")
			}
			if o.journal == "" {
				if o.journal, err = a.journalDir(); err != nil {
					return err
				}
			}
			return a.policyReplay(o.journal, since, o.policy, o.verify)
		},
	}
	f := c.Flags()
	f.StringVar(&o.since, "since", "", "only rulings since then: a date, or an age like `30d`")
	f.StringVar(&o.policy, "policy", "", "decide under the policy or rules in this `FILE`")
	f.StringVar(&o.journal, "journal", "", "read the journal in this `DIRECTORY`")
	f.BoolVar(&o.verify, "verify", false, "fail unless every answer is the same")
	return c
}

// parseSince reads a date, a time or an age; "" is the beginning.
func parseSince(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 {
			return now.AddDate(0, 0, -n), nil
		}
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, layout := range [...]string{time.DateOnly, time.DateTime, time.RFC3339} {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("--since %q: want a date like 2026-11-01 or an age like 30d", s)
}

// A replayReport is what a replay found.
type replayReport struct {
	Rulings int          `json:"rulings"`
	Same    int          `json:"same"`
	Changed []difference `json:"changed"`
	Failed  []difference `json:"failed"` // could not be decided again
}

// A difference is one ruling that comes out otherwise.
type difference struct {
	ID     string `json:"id"`
	Action string `json:"action"`
	Old    string `json:"old"`
	New    string `json:"new"`
	Why    string `json:"why"`
}

func (a *app) policyReplay(dir string, since time.Time, policyFile string, verify bool) error {
	b, err := a.bench()
	if err != nil {
		return err
	}
	r := replayer{vocabulary: b.Vocabulary, verify: verify || policyFile == ""}
	if policyFile != "" {
		if r.other, err = otherPolicy(policyFile, b.Vocabulary); err != nil {
			return err
		}
	}
	for body, err := range bodies(dir) {
		if err != nil {
			return err
		}
		if err := r.entry(body, since); err != nil {
			return err
		}
	}
	if a.json {
		err = a.printJSON(r.report())
	} else {
		err = a.printReplay(r.report())
	}
	bad := len(r.failed)
	if r.verify {
		bad += len(r.changed)
	}
	if err == nil && bad > 0 {
		return fmt.Errorf("%d of %d rulings are not the same", bad, r.rulings)
	}
	return err
}

func (a *app) printReplay(r replayReport) error {
	for _, d := range r.Changed {
		fmt.Fprintf(a.out, "%s  %s → %s  %s  (%s)\n", d.ID, d.Old, d.New, printable(d.Action), printable(d.Why))
	}
	for _, d := range r.Failed {
		fmt.Fprintf(a.out, "%s  %s → ?  %s  (%s)\n", d.ID, d.Old, printable(d.Action), printable(d.Why))
	}
	_, err := fmt.Fprintf(a.out, "%d rulings: %d the same, %d changed, %d could not be decided again\n", r.Rulings, r.Same, len(r.Changed), len(r.Failed))
	return err
}

// otherPolicy returns how a recorded policy is changed by a file.
func otherPolicy(file string, v *proto.Vocabulary) (func(gate.Policy) gate.Policy, error) {
	src, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if isOrg(file) {
		rules, err := gate.ParseRules(file, src, v)
		if err != nil {
			return nil, err
		}
		return func(p gate.Policy) gate.Policy { p.Rules = rules; return p }, nil
	}
	pl, err := sexp.ReadPlist(src, sexp.Limits{})
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w", file, err)
	}
	p, err := gate.ParsePolicy(pl)
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w", file, err)
	}
	return func(gate.Policy) gate.Policy { return p }, nil
}

// bodies are the entries of a journal, oldest first.
func bodies(dir string) iter.Seq2[sexp.Plist, error] {
	return func(yield func(sexp.Plist, error) bool) {
		for e, err := range journal.Read(dir) {
			if !yield(e.Body, err) || err != nil {
				return
			}
		}
	}
}

// A replayer decides recorded rulings again.
type replayer struct {
	vocabulary *proto.Vocabulary
	other      func(gate.Policy) gate.Policy // nil: the recorded policy
	verify     bool                          // compare whole traces, not decisions only

	policies map[string]gate.Policy
	chains   map[string]*gate.Chain
	rulings  int
	changed  []difference
	failed   []difference
}

func (r *replayer) report() replayReport {
	return replayReport{
		Rulings: r.rulings, Same: r.rulings - len(r.changed) - len(r.failed),
		Changed: append([]difference{}, r.changed...), Failed: append([]difference{}, r.failed...),
	}
}

// entry takes one entry of the journal: a policy is remembered, a ruling decided.
func (r *replayer) entry(body sexp.Plist, since time.Time) error {
	switch body.Word("KIND") {
	case "POLICY":
		return r.policy(body)
	case "RULING":
		at, err := time.Parse(time.RFC3339Nano, body.Sub("FACTS").Text("NOW"))
		if err == nil && at.Before(since) {
			return nil
		}
		r.ruling(body)
	}
	return nil
}

func (r *replayer) policy(body sexp.Plist) error {
	if body.Word("KIND") != "POLICY" {
		return errors.New("entry is no policy")
	}
	p, err := gate.ParsePolicy(body.Sub("POLICY"))
	if err != nil {
		return fmt.Errorf("recorded policy %.12s: %w", body.Text("DIGEST"), err)
	}
	if r.policies == nil {
		r.policies = map[string]gate.Policy{}
	}
	r.policies[body.Text("DIGEST")] = p
	return nil
}

func (r *replayer) ruling(body sexp.Plist) {
	r.rulings++
	trace := body.Sub("TRACE")
	d := difference{
		ID: body.Text("ID"), Old: strings.ToLower(string(trace.Word("DECISION"))),
		Action: fmt.Sprintf("%s.%s %s", strings.ToLower(string(body.Sub("ACTION").Word("TARGET"))), strings.ToLower(string(body.Sub("ACTION").Word("VERB"))), body.Sub("ACTION").Sub("ARGS")),
	}
	again, given, err := r.decide(body)
	if err != nil {
		d.Why = err.Error()
		r.failed = append(r.failed, d)
		return
	}
	decision := again.Decision()
	for _, v := range given.others {
		decision = min(decision, v.Decision)
	}
	d.New = decision.String()
	switch {
	case d.New != d.Old:
		d.Why = reasonOf(again)
	case r.verify && !slices.Equal(given.ours, again.Verdicts()):
		d.Why = "the same decision for other reasons: " + reasonOf(again)
	default:
		return
	}
	r.changed = append(r.changed, d)
}

// verdicts are those of a record, by whether the chain can give them again. What
// a person or a skill's gate said is taken as it was.
type verdicts struct{ ours, others []gate.Verdict }

func (r *replayer) decide(body sexp.Plist) (gate.Ruling, verdicts, error) {
	var given verdicts
	c, err := r.chain(body.Sub("TRACE").Text("POLICY"))
	if err != nil {
		return gate.Ruling{}, given, err
	}
	a, err := r.vocabulary.Recorded(body.Sub("ACTION"))
	if err != nil {
		return gate.Ruling{}, given, err
	}
	again, err := gate.Replay(c, a, body.Sub("FACTS"))
	for _, v := range gate.VerdictsOf(body.Sub("TRACE")) {
		if v.Gate == "chain" || slices.Contains(c.Gates(), v.Gate) {
			given.ours = append(given.ours, v)
		} else {
			given.others = append(given.others, v)
		}
	}
	return again, given, err
}

// chain is the one a ruling was made by, or would be made by now.
func (r *replayer) chain(digest string) (*gate.Chain, error) {
	if c, ok := r.chains[digest]; ok {
		return c, nil
	}
	p, ok := r.policies[digest]
	if !ok {
		return nil, fmt.Errorf("policy %.12s is not in the journal", digest)
	}
	if r.other != nil {
		p = r.other(p)
	}
	c, err := gate.Standard(p, r.vocabulary)
	if err != nil {
		return nil, err
	}
	if r.chains == nil {
		r.chains = map[string]*gate.Chain{}
	}
	r.chains[digest] = c
	return c, nil
}

func reasonOf(r gate.Ruling) string {
	for _, v := range r.Objections() {
		return v.Gate + ": " + v.Reason
	}
	return "no gate objects"
}
