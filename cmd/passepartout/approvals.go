package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

func (a *app) approvalsCommand() *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use: "approvals", Short: "List the actions that wait for a person, and what the agent wants to know",
		Example: `  passepartout approvals --all
  passepartout approvals --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.approvals(cmd.Context(), all) },
	}
	c.Flags().BoolVar(&all, "all", false, "also how the last ones ended")
	return c
}

func (a *app) approvals(ctx context.Context, all bool) error {
	c, err := a.connect(ctx, "cli")
	if err != nil {
		return err
	}
	defer c.close()
	r, err := c.exchange(proto.Message{Kind: proto.Request, Payload: sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("APPROVALS"))}, nil)
	if err != nil {
		return err
	}
	open, err := plistsOf(r.Payload, "PENDING")
	if err != nil {
		return err
	}
	running, err := plistsOf(r.Payload, "RUNNING")
	if err != nil {
		return err
	}
	ended, err := plistsOf(r.Payload, "ENDED")
	if err != nil {
		return err
	}
	ended = append(running, ended...)
	out := make([]map[string]any, 0, len(open))
	for _, p := range open {
		out = append(out, questionJSON(p))
	}
	if !all {
		ended = nil
	}
	if a.json {
		asked, err := plistsOf(r.Payload, "QUESTIONS")
		if err != nil {
			return err
		}
		for _, q := range asked {
			out = append(out, map[string]any{"token": q.Text("TOKEN"), "session": q.Text("SESSION-ID"), "state": "question", "question": q.Text("QUESTION"), "options": textsOf(q, "OPTIONS")})
		}
		for _, p := range ended {
			out = append(out, map[string]any{"token": p.Text("TOKEN"), "action": p.Text("NAME"), "state": strings.ToLower(string(p.Word("STATE"))), "fate": p.Text("TEXT"), "result": p.Text("RESULT")})
		}
		return a.printJSON(out)
	}
	if len(out) == 0 {
		fmt.Fprintln(a.errw, "Nothing waits for approval.")
	}
	asked, err := plistsOf(r.Payload, "QUESTIONS")
	if err != nil {
		return err
	}
	for _, q := range asked {
		a.printInquiry(q)
	}
	for _, p := range open {
		a.printQuestion(p)
	}
	for _, p := range ended {
		fmt.Fprintf(a.out, "%s  %s: %s\n", p.Text("TOKEN"), p.Text("NAME"), printable(p.Text("TEXT")))
	}
	return nil
}

// printQuestion shows one open question: what would happen, and of a plan what the
// gates said of every step.
func (a *app) printQuestion(p sexp.Plist) {
	steps, _ := plistsOf(p, "STEPS")
	what := printable(p.Sub("ARGS").String())
	if len(steps) > 0 {
		what = fmt.Sprintf("a plan of %d steps", len(steps))
	}
	fmt.Fprintf(a.out, "%s  %s %s\n    why: %s\n    until %s\n", p.Text("TOKEN"), p.Text("NAME"), what, printable(p.Text("WHY")), p.Text("EXPIRES"))
	if can := textsOf(p, "EFFECTS"); len(can) > 0 {
		fmt.Fprintf(a.out, "    can: %s\n", printable(strings.Join(can, ", ")))
	}
	for _, u := range textsOf(p, "UNKNOWN") {
		fmt.Fprintf(a.out, "    not known beforehand: %s\n", printable(u))
	}
	for i, s := range steps {
		fmt.Fprintf(a.out, "    step %d: %s %s\n      %s\n", i+1, s.Text("NAME"), printable(s.Sub("ARGS").String()), printable(s.Text("VERDICT")))
	}
	q := questionJSON(p)
	for _, r := range q["reasons"].([]string) {
		if len(steps) == 0 || !strings.HasPrefix(r, "step ") { // which stand above
			fmt.Fprintf(a.out, "    asks: %s\n", printable(r))
		}
	}
	if preview, ok := q["preview"].(map[string]any); ok {
		fmt.Fprint(a.out, printable(previewText(preview)))
	}
}

// plistsOf reads a list of property lists out of the daemon's answer.
func plistsOf(p sexp.Plist, key sexp.Keyword) ([]sexp.Plist, error) {
	v, _ := p.Get(key)
	list, _ := v.(sexp.List)
	var out []sexp.Plist
	for _, item := range list.Items() {
		l, _ := item.(sexp.List)
		pl, err := sexp.AsPlist(l)
		if err != nil {
			return nil, fmt.Errorf("the daemon's answer: %w", err)
		}
		out = append(out, pl)
	}
	return out, nil
}

// textsOf are the strings of a list.
func textsOf(p sexp.Plist, key sexp.Keyword) []string {
	v, _ := p.Get(key)
	l, _ := v.(sexp.List)
	out := make([]string, 0, l.Len())
	for _, r := range l.Items() {
		if s, ok := r.(sexp.String); ok {
			out = append(out, string(s))
		}
	}
	return out
}

func questionJSON(p sexp.Plist) map[string]any {
	out := map[string]any{
		"token": p.Text("TOKEN"), "session": p.Text("SESSION-ID"), "action": p.Text("NAME"), "args": p.Sub("ARGS").String(),
		"state": "plan", "explanation": p.Text("WHY"), "expires": p.Text("EXPIRES"), "reasons": textsOf(p, "REASONS"),
		"effects": textsOf(p, "EFFECTS"), "unknown": textsOf(p, "UNKNOWN"),
	}
	if preview := p.Sub("PREVIEW"); preview.Len() > 0 {
		tried, _ := preview.Get("TRIED")
		out["preview"] = map[string]any{
			"tried": !sexp.IsNil(tried), "text": preview.Text("TEXT"), "changed": textsOf(preview, "CHANGED"), "diff": preview.Text("DIFF"),
		}
	}
	steps := []map[string]any{}
	list, _ := plistsOf(p, "STEPS")
	for _, s := range list {
		steps = append(steps, map[string]any{
			"action": s.Text("NAME"), "args": s.Sub("ARGS").String(), "explanation": s.Text("WHY"),
			"decision": strings.ToLower(string(s.Word("DECISION"))), "verdict": s.Text("VERDICT"),
		})
	}
	out["steps"] = steps
	return out
}

// previewText is what a trial of a waiting action gave, for a person.
func previewText(p map[string]any) string {
	lines := append([]string{fmt.Sprint(p["text"])}, p["changed"].([]string)...)
	if diff := strings.TrimRight(fmt.Sprint(p["diff"]), "\n"); diff != "" {
		lines = append(lines, strings.Split(diff, "\n")...)
	}
	return "    " + strings.Join(lines, "\n      ") + "\n"
}

func (a *app) approveCommand() *cobra.Command {
	var once, session, rule bool
	c := &cobra.Command{
		Use: "approve TOKEN", Short: "Approve one waiting action and see it carried out",
		Long: `Approve one waiting action and see it carried out. It is decided again first, and
may still be refused.

With --session, actions of the same kind are not asked about again in this
session; with --rule, a rule for them is put on trial in system/rules.org.`,
		Example: `  passepartout approve a-4kq2mx
  passepartout approve --session a-4kq2mx`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.tokens("PENDING"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if once && (session || rule) || session && rule {
				return usageError("--once, --session and --rule: give one of them")
			}
			scope := sexp.Keyword("ONCE")
			switch {
			case session:
				scope = "SESSION"
			case rule:
				scope = "RULE"
			}
			return a.respond(cmd.Context(), args[0], "APPROVED", scope, "")
		},
	}
	f := c.Flags()
	f.BoolVar(&once, "once", false, "this action only (the default)")
	f.BoolVar(&session, "session", false, "actions of this kind, for the rest of the session")
	f.BoolVar(&rule, "rule", false, "and put a rule for actions of this kind on trial")
	return c
}

func (a *app) denyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "deny TOKEN [REASON…]", Short: "Refuse one waiting action; the reason goes back to the proposer",
		Example: `  passepartout deny a-4kq2mx not on a Sunday`,
		Args:    cobra.MinimumNArgs(1), ValidArgsFunction: a.tokens("PENDING"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.respond(cmd.Context(), args[0], "DENIED", "ONCE", strings.Join(args[1:], " "))
		},
	}
}

// respond answers a question and waits for what the resumed turn says.
func (a *app) respond(ctx context.Context, token string, decision, scope sexp.Keyword, reason string) error {
	c, err := a.connect(ctx, "cli")
	if err != nil {
		return err
	}
	defer c.close()
	ends := map[string]proto.Message{} // of turns that were quicker than the answer to us
	r, err := c.exchange(proto.Message{Kind: proto.Request, Payload: sexp.P(
		sexp.Keyword("ACTION"), sexp.Keyword("HITL-RESPOND"), sexp.Keyword("TOKEN"), token,
		sexp.Keyword("DECISION"), decision, sexp.Keyword("SCOPE"), scope, sexp.Keyword("REASON"), reason)}, func(m proto.Message) {
		if m.Kind == proto.Response {
			ends[m.Meta.Text("TURN")] = m
		}
	})
	if err != nil {
		return err
	}
	if code := codeOf(r); code != exitOK {
		return &exitError{code, errors.New(printable(r.Payload.Text("TEXT")))}
	}
	fmt.Fprintln(a.errw, printable(r.Payload.Text("TEXT")))
	turn := r.Payload.Text("TURN") // others of its session may end meanwhile
	end, ended := ends[turn]
	for !ended {
		if end, err = c.Receive(); err != nil {
			return fmt.Errorf("the daemon hung up before the action ended: %w", err)
		}
		ended = end.Kind == proto.Response && end.Meta.Text("TURN") == turn
	}
	if a.json {
		err = a.printJSON(answerJSON(end, nil))
	} else {
		_, err = fmt.Fprintln(a.out, printable(end.Payload.Text("TEXT")))
	}
	if code := codeOf(end); err == nil && decision == "APPROVED" && code != exitOK {
		return &exitError{code: code} // it was approved, and yet not done
	}
	return err
}

// tokens completes the token of something that waits, from a daemon that runs.
func (a *app) tokens(kind sexp.Keyword) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		a.noStart = true
		c, err := a.connect(cmd.Context(), "cli")
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer c.close()
		r, err := c.exchange(proto.Message{Kind: proto.Request, Payload: sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("APPROVALS"))}, nil)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		open, _ := plistsOf(r.Payload, kind) // what cannot be read completes nothing
		var out []cobra.Completion
		for _, p := range open {
			out = append(out, cobra.CompletionWithDesc(p.Text("TOKEN"), printable(p.Text("NAME")+p.Text("QUESTION"))))
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}
