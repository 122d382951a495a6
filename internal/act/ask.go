package act

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"passepartout/internal/lisp"
	"passepartout/internal/proto"
)

// Plain are the tools that need nothing but their arguments.
func Plain() []Tool {
	return []Tool{
		{
			Name: "ask-human", Effect: proto.Speak, Doc: "Ask the person something and end the turn; the answer is what they say next.",
			Params: []proto.Param{
				{Name: "QUESTION", Type: proto.Text, Means: proto.Outbound, Required: true, Doc: "the question"},
				{Name: "OPTIONS", Type: proto.Texts, Means: proto.Outbound, Doc: "answers to choose from"},
			},
			Guard: func(c Call) error {
				if strings.TrimSpace(c.Text("QUESTION")) == "" {
					return errors.New("the question is empty")
				}
				return nil
			},
			Run: askHuman,
		},
		{
			Name: "eval-form", Effect: proto.Execute, Timeout: evalTimeout, Doc: "Evaluate Lisp forms in a jail without files, network or clock, and show the last one's values.",
			Params: []proto.Param{{Name: "CODE", Type: proto.Text, Means: proto.Code, Required: true, Doc: "one or more forms"}},
			Run:    evalForm,
		},
	}
}

func askHuman(_ context.Context, c Call) (Outcome, error) {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(c.Text("QUESTION")))
	for i, o := range c.Texts("OPTIONS") {
		fmt.Fprintf(&b, "\n  %d. %s", i+1, strings.TrimSpace(o))
	}
	return Outcome{OK: true, Text: b.String(), Quiet: true}, nil
}

const evalTimeout = 10 * time.Second

// evalBudget ends a computation before its time is up: the jail counts steps, not
// seconds.
var evalBudget = lisp.Budget{Steps: 50_000_000, Cells: 5_000_000, Depth: 10_000, Output: MaxOutput}

func evalForm(_ context.Context, c Call) (Outcome, error) {
	img, err := lisp.New(nil)
	if err != nil {
		return Outcome{}, err
	}
	th := img.Thread(evalBudget)
	values, err := th.EvalString("form", c.Text("CODE"))
	text := th.Output()
	if err != nil {
		if text != "" {
			text = "\nprinted before: " + text
		}
		return Outcome{}, fmt.Errorf("%w%s", err, text)
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	for _, v := range values {
		s, err := th.Print(v)
		if err != nil {
			return Outcome{}, err
		}
		text += s + "\n"
	}
	return Outcome{OK: true, Text: strings.TrimRight(text, "\n")}, nil
}
