package agent

import (
	"errors"

	"passepartout/internal/pattern"
)

// Why a text holds a proposal and does not make it.
var (
	errExample = errors.New("it is not clear whether this is a proposal or an example of one: want the proposal alone, or plain text")
	errVoices  = errors.New("the answer speaks for somebody else before it proposes: want the proposal alone, or plain text")
	errMarks   = errors.New("a call in marks that are not read here: want a native call, one property list, or plain text")
)

// A proposal in prose counts when the prose leaves no doubt that it is made. To
// doubt costs one more attempt of the model; to believe what it only quoted,
// remembered or offered would cost an action nobody proposed. What the words are
// followed by is as telling as what they follow.
var (
	doubtBefore = pattern.New(`(?i)\b(?:for example|for instance|an example|e\.g\.|such as|(?:would|might|could) look like|looks like this|would be written|syntax|hypothetical` +
		`|(?:do not|don['’]t|not|never) (?:run|do|send|use|execute|call)|you (?:can|could|would|might|may)|(?:i|one|we) (?:could|might|would)` +
		`|if you (?:want|like|wish|agree|approve|confirm|say)|(?:once|when|after|unless) you|with your (?:permission|approval|consent)` +
		`|approved?|approval|permitted|authori[sz]\w*|gates? (?:allow|permit|let)\w*` +
		`|previously|earlier|last time|proposed|was refused|(?:says|said|reads|wrote|writes|contains|quote[ds]?)\b[^.\n]*:)` +
		`|#\+begin_(?:example|quote)`)
	doubtAfter = pattern.New(`(?i)\b(?:(?:was|were|got|been) (?:refused|denied|rejected)|(?:did|do|will|would|should|must|can)(?: not|n['’]t) (?:run|do|follow|use|execute|call|send|carry)` +
		`|won['’]t|(?:if|once|when|unless) you (?:agree|approve|confirm|say|allow)|wait(?:ing)? for (?:your|you|approval)|do you (?:agree|approve|want me to)|(?:shall|should|may) i)\b`)
	otherVoice = pattern.New(`(?im)^[ \t]*(?:\*\*)?(?:user|human|person|owner|system|observation|tool result|result)(?:\*\*)?[ \t]*:` +
		`|<\|(?:im_start|start_header_id)\|>|<tool-result|<memex|<log[ >]`)
)

// doubt says why a proposal between two pieces of prose is not believed, nil when
// it is.
func doubt(before, after string) error {
	switch {
	case otherVoice.MatchString(before):
		return errVoices
	case doubtBefore.MatchString(before), doubtAfter.MatchString(after):
		return errExample
	}
	return nil
}

// strangeMarks are how models write calls that only their own servers read. Shown
// to a person they would be noise, so the model is told.
var strangeMarks = pattern.Needing("(?m)^[ \\t]*(?:<function_calls>|<invoke name=|<execute_command>|<tool_code>|```tool_code|<\\|tool_call|<\\|python_tag\\|>|<｜tool▁|"+
	`\[TOOL_CALLS\]|functools\[|>>>\w+[ \t]*\n[ \t]*\{)|<\|channel\|>commentary to=`, "<", "```tool_code", "[TOOL_CALLS]", "functools[", ">>>")
