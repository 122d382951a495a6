package gate

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"passepartout/internal/proto"
)

// validatorGate (95) checks the proposal's form once more, behind all other
// gates: the decoder should have refused anything it objects to.
type validatorGate struct{ vocabulary *proto.Vocabulary }

func (validatorGate) Name() string  { return "validator" }
func (validatorGate) Priority() int { return 95 }

func (g validatorGate) Check(a proto.Action, f Facts) Verdict {
	switch {
	case !a.Valid():
		return Verdict{Code: "validator.empty", Reason: "the action names no verb"}
	case a.Cause().Session == "" || a.Cause().Signal == "":
		return Verdict{Code: "validator.cause", Reason: "the action belongs to no session or answers no signal"}
	case a.Cause().Session != f.Signal.Session || a.Cause().Signal != f.Signal.ID:
		return Verdict{Code: "validator.cause", Reason: "the action answers another signal than the one being judged"}
	case f.Signal.Depth > proto.MaxDepth:
		return Verdict{Code: "validator.depth", Reason: fmt.Sprintf("the chain of signals is %d deep: at most %d", f.Signal.Depth, proto.MaxDepth)}
	}
	if _, ok := g.vocabulary.Verb(a.Target(), a.Verb()); !ok {
		return Verdict{Code: "validator.verb", Reason: fmt.Sprintf("%s is not in the vocabulary", a.Name())}
	}
	if _, err := a.Replace(a.Args()); err != nil {
		return Verdict{Code: "validator.args", Reason: err.Error()}
	}
	for _, e := range a.Args().Pairs() {
		for _, text := range leaves(e.Value, nil) {
			if !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 {
				return Verdict{Code: "validator.text", Reason: fmt.Sprintf("argument %s holds bytes that no record can show", e.Key)}
			}
		}
	}
	return Pass()
}
