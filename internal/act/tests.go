package act

import (
	"context"
	"fmt"
	"strings"

	"passepartout/internal/gate"
	"passepartout/internal/pattern"
	"passepartout/internal/proto"
)

// Tests is the actuator behind the target "tests": a command like any other, whose
// outcome begins with what failed.
type Tests struct{ Shell Shell }

var _ Actuator = Tests{}

// Target implements [Actuator].
func (Tests) Target() string { return "tests" }

// Verbs implements [Actuator].
func (Tests) Verbs() []proto.Verb {
	return []proto.Verb{{
		Target: "tests", Name: "run", Tool: "run-tests", Effect: proto.Execute,
		Doc:    "Run a project's tests in the sandbox and say what failed.",
		Params: []proto.Param{{Name: "CMD", Type: proto.Text, Means: proto.Command, Required: true, Doc: "the command line that runs them, from the memex: cd project && go test ./..."}},
	}}
}

// Act implements [Actuator].
func (t Tests) Act(ctx context.Context, p gate.Permit) (Outcome, error) {
	o, err := t.Shell.Act(ctx, p)
	if err != nil || strings.HasPrefix(o.Text, notRun) {
		return o, err
	}
	verdict := "The tests passed."
	if failed := failures(o.Text); !o.OK && len(failed) > 0 {
		verdict = fmt.Sprintf("%d failed: %s", len(failed), strings.Join(failed, ", "))
	} else if !o.OK {
		verdict = "The tests failed."
	}
	o.Text = verdict + "\n" + o.Text
	return o, nil
}

func (t Tests) rehearse(ctx context.Context, r gate.Rehearsal) Preview {
	return t.Shell.rehearse(ctx, r)
}

// failing are the ways in which common runners name a test that failed: Go,
// pytest, TAP, Cargo.
var failing = pattern.New(`(?m)^\s*(?:--- FAIL: (\S+)|FAILED (\S+)|not ok \d+ (?:- )?(.+)|test (\S+) \.\.\. FAILED)`)

func failures(text string) []string {
	const most = 20
	var out []string
	for _, m := range failing.FindAllStringSubmatch(text, most) {
		out = append(out, strings.Join(m[1:], ""))
	}
	return out
}
