package gate

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"passepartout/internal/proto"
)

// minExplanation is how long an explanation must be more than, in characters.
const minExplanation = 10

// explainGate (500) is the seeds' policy gate: every action says why. The text is
// for the person who reads the trace; no authority follows from it.
type explainGate struct{}

func (explainGate) Name() string  { return "policy" }
func (explainGate) Priority() int { return 500 }

func (explainGate) Check(a proto.Action, _ Facts) Verdict {
	n := utf8.RuneCountInString(strings.Join(strings.Fields(a.Why()), " "))
	if n > minExplanation {
		return Pass()
	}
	return Verdict{
		Code:   "policy.explanation",
		Reason: fmt.Sprintf("the :EXPLANATION has %d characters: say in more than %d why this should be done", n, minExplanation),
	}
}
