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

func (a *app) answerCommand() *cobra.Command {
	return &cobra.Command{
		Use: "answer TOKEN NUMBER|TEXT…", Short: "Answer something the agent wants to know",
		Long: `Answer something the agent wants to know, by the number of an option or in your own
words. "approvals" lists what is open. The answer is your next message in the
conversation that asked, and the reply is printed.`,
		Example: `  passepartout answer q-4kq2mx 2
  passepartout answer q-4kq2mx only the first page`,
		Args: cobra.MinimumNArgs(2), ValidArgsFunction: a.tokens("QUESTIONS"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.tell(cmd.Context(), args[0], strings.Join(args[1:], " "))
		},
	}
}

func (a *app) tell(ctx context.Context, token, said string) error {
	c, err := a.connect(ctx, "cli")
	if err != nil {
		return err
	}
	defer c.close()
	r, err := c.exchange(proto.Message{Kind: proto.Request, Payload: sexp.P(
		sexp.Keyword("ACTION"), sexp.Keyword("ANSWER"), sexp.Keyword("TOKEN"), token, sexp.Keyword("TEXT"), said)}, nil)
	if err != nil {
		return err
	}
	switch {
	case a.json:
		err = a.printJSON(answerJSON(r, nil))
	case r.Do() == "error": // it was no answer
		return errors.New(printable(r.Payload.Text("TEXT")))
	default:
		_, err = fmt.Fprintln(a.out, printable(r.Payload.Text("TEXT")))
	}
	if code := codeOf(r); err == nil && code != exitOK {
		return &exitError{code: code}
	}
	return err
}

// printInquiry shows one open question with its options.
func (a *app) printInquiry(q sexp.Plist) {
	fmt.Fprintf(a.out, "%s  asks: %s\n", q.Text("TOKEN"), printable(q.Text("QUESTION")))
	for i, o := range textsOf(q, "OPTIONS") {
		fmt.Fprintf(a.out, "    %d. %s\n", i+1, printable(o))
	}
}
