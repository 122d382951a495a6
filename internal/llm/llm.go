// Package llm turns a conversation into the next proposal: text, or a call of one
// of the tools it was offered.
//
// The central types:
//
//   - [Backend] is anything that can complete a conversation. A backend only ever
//     proposes; it holds no authority and no other package's types.
//   - [Request] is the conversation and the tools on offer; [Reply] is the answer.
//   - [Reflex] is the backend that needs no model, no key and no network: rules
//     over plain English that propose the same tools a model would.
//
// The rule a newcomer will break: a tool call in a Reply is a wish. Nobody may
// act on it before the gates have judged it, so nothing here runs anything.
package llm

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Role says who speaks in a conversation.
type Role uint8

// The roles. The zero Role is invalid.
const (
	RoleInvalid Role = iota
	User             // the person
	Assistant        // an earlier reply of the engine
	ToolResult       // what a tool returned
	Objection        // what the gates said about the last proposal
)

// A Message is one turn of the conversation.
type Message struct {
	Role Role
	Text string
	Tool string // the tool's name, for ToolResult
	OK   bool   // the tool succeeded, for ToolResult
}

// A Param is one argument of a tool as it is described to a model.
type Param struct {
	Name, Type, Doc string // Type as in JSON Schema: string, integer, boolean, array
	Required        bool
}

// A Tool is one thing the engine may propose.
type Tool struct {
	Name, Doc string
	Params    []Param
}

// A Request is a conversation to be continued.
type Request struct {
	System   string
	Messages []Message
	Tools    []Tool
	Now      time.Time
}

// A Call is a proposal to use a tool. Args hold strings, int64s, bools and lists
// of strings; "explanation" says why.
type Call struct {
	Name string
	Args map[string]any
}

// A Reply is the engine's next step: a call, or else text.
type Reply struct {
	Text string
	Call *Call
}

// Info says which engine a backend is.
type Info struct {
	Name  string
	Local bool // nothing leaves the machine
	Model bool // a language model answers, not rules
}

// A Backend continues conversations. Complete must return soon after its context
// ends. Deltas of text may be passed to sink as they come.
type Backend interface {
	Info() Info
	Complete(ctx context.Context, req Request, sink func(delta string)) (Reply, error)
}

// ErrNoConversation is returned for a request without messages.
var ErrNoConversation = errors.New("the conversation is empty: want at least one message")

// Guard calls a backend so that neither its panic nor its late answer can hurt
// the turn that asked.
func Guard(ctx context.Context, b Backend, req Request, sink func(string)) (reply Reply, err error) {
	type result struct {
		reply Reply
		err   error
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			if p := recover(); p != nil {
				r = result{err: fmt.Errorf("backend %s failed: %v", b.Info().Name, p)}
			}
			done <- r
		}()
		r.reply, r.err = b.Complete(ctx, req, sink)
	}()
	select {
	case r := <-done:
		return r.reply, r.err
	case <-ctx.Done():
		return Reply{}, fmt.Errorf("backend %s: %w", b.Info().Name, context.Cause(ctx))
	}
}
