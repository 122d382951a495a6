package act

import (
	"context"
	"errors"

	"passepartout/internal/gate"
	"passepartout/internal/proto"
)

// PlanTarget is the target of a plan: several steps a person is asked about once.
const PlanTarget = "plan"

// A Planner declares the verb for a plan, so that it can be proposed and judged. It
// carries nothing out: whoever runs the turn takes the steps out of it, and each
// needs a permit of its own.
type Planner struct{}

var _ Actuator = Planner{}

// Target implements [Actuator].
func (Planner) Target() string { return PlanTarget }

// Verbs implements [Actuator].
func (Planner) Verbs() []proto.Verb {
	return []proto.Verb{{
		Target: PlanTarget, Name: "steps", Tool: "plan", Effect: proto.Speak,
		Doc: "Propose several steps at once, when what they are does not depend on each other's results. They are judged before the first runs, the person is asked once about all of them, and they run in order until one fails.",
		Params: []proto.Param{{
			Name: "STEPS", Type: proto.Steps, Required: true,
			Doc: "the steps in order, each with the tool, its arguments and why",
		}},
	}}
}

// Act implements [Actuator]. It always refuses.
func (Planner) Act(context.Context, gate.Permit) (Outcome, error) {
	return Outcome{}, errors.New("a plan is carried out step by step, each with a permit of its own")
}
