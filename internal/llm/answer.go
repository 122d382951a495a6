package llm

import (
	"errors"
	"fmt"
	"strings"
)

// maxCalls bounds how many calls one answer may hold; more is a runaway.
const maxCalls = 16

// maxText bounds an answer's text and arguments, in bytes.
const maxText = 4 << 20

// An answer collects what a stream brings.
type answer struct {
	sink  func(string)
	text  strings.Builder
	calls []*partCall
	usage Usage
	size  int
	ended bool // the provider said that this is all
	cut   bool
}

// A partCall is a call whose arguments may still be coming.
type partCall struct {
	key  string // what the provider tells calls apart by
	name string
	args strings.Builder
	seal string
}

// say adds text.
func (a *answer) say(delta string) error {
	if delta == "" {
		return nil
	}
	if a.size += len(delta); a.size > maxText {
		return fmt.Errorf("an answer of more than %d bytes", maxText)
	}
	a.text.WriteString(delta)
	if a.sink != nil {
		a.sink(delta)
	}
	return nil
}

// call finds the call of that key, or begins it.
func (a *answer) call(key string) *partCall {
	for _, c := range a.calls {
		if c.key == key {
			return c
		}
	}
	c := &partCall{key: key}
	a.calls = append(a.calls, c)
	return c
}

// arg adds a piece of a call's arguments.
func (a *answer) arg(c *partCall, delta string) error {
	if a.size += len(delta); a.size > maxText || len(a.calls) > 4096 {
		return fmt.Errorf("an answer of more than %d bytes or too many calls", maxText)
	}
	c.args.WriteString(delta)
	return nil
}

// errEarly means the stream ended before the provider said that it was over.
// What came is not an answer: the missing part may change its meaning.
var errEarly = errors.New("the stream ended in the middle of the answer")

// reply is the whole answer.
func (a *answer) reply() (Reply, error) {
	if !a.ended {
		return Reply{}, errEarly
	}
	r := Reply{Text: a.text.String(), Cut: a.cut, Usage: a.usage}
	if len(a.calls) == 0 {
		if strings.TrimSpace(r.Text) == "" {
			return Reply{}, errors.New("the answer is empty")
		}
		return r, nil
	}
	if len(a.calls) > maxCalls {
		r.Problem = fmt.Sprintf("%d calls at once: want one", len(a.calls))
		return r, nil
	}
	first := a.calls[0]
	r.Extra = len(a.calls) - 1
	switch args, err := first.decode(); {
	case a.cut:
		r.Problem = fmt.Sprintf("the call of %q was cut off because the answer was too long", first.name)
	case err != nil:
		r.Problem = fmt.Sprintf("the arguments of %q are not one JSON object: %v", first.name, err)
	default:
		r.Call = &Call{Name: first.name, Args: args, Seal: first.seal}
	}
	return r, nil
}

func (c *partCall) decode() (map[string]any, error) {
	src := c.args.String()
	if strings.TrimSpace(src) == "" {
		return map[string]any{}, nil // a tool without arguments
	}
	v, err := DecodeJSON(src)
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("found %T", v)
	}
	return m, nil
}
