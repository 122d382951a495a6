// Package llm turns a conversation into the next proposal: text, or a call of one
// of the tools it was offered.
//
// The central types:
//
//   - [Backend] is anything that can complete a conversation. A backend only ever
//     proposes; it holds no authority and no other package's types.
//   - [Request] is the conversation and the tools on offer; [Reply] is the answer.
//   - [Engine] is the backend the product uses: it routes a request to models by
//     tier and slot, keeps private text on this machine, removes credentials,
//     checks the budget, and falls through a cascade when a provider fails.
//   - [Reflex] is the backend that needs no model, no key and no network: rules
//     over plain English that propose the same tools a model would.
//   - [Embedder] turns texts into vectors, with the same care for privacy, credentials
//     and cost (embed.go).
//   - [Ledger] knows what every call cost and refuses the one too many.
//
// One file speaks one wire format: chat.go (OpenAI-compatible), responses.go,
// anthropic.go, gemini.go, ollama.go. They share the transport with its watchdog
// (wire.go), the event stream (sse.go) and what is collected from it (answer.go).
// A failure is an [Error] with a [Class], and the class alone decides what the
// cascade does next.
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
	Call *Call  // what an Assistant proposed, if that was a call
}

// A Param is one argument of a tool as it is described to a model.
type Param struct {
	Name, Type, Doc string // Type as in JSON Schema: string, integer, boolean, array; or steps
	Required        bool
}

// A Tool is one thing the engine may propose.
type Tool struct {
	Name, Doc string
	Params    []Param
	Forbidden bool // the policy rules it out: no model is shown it
	tokens    int  // of its description; 0: not worked out
}

// A Request is a conversation to be continued.
type Request struct {
	System   string // the same from turn to turn, so that providers can keep it warm
	Messages []Message
	Tail     string // what changes with every request; a model is shown it last
	Tools    []Tool
	Now      time.Time
	Private  bool // holds text that must not leave this machine
	MaxReply int  // tokens of the answer; 0 for the usual
	Purpose  Purpose
}

// A Purpose says what a request is for. It selects the model and is what the
// cost is booked on.
type Purpose struct {
	Tier    Tier
	Slot    Slot
	Session string
	Turn    string
	Job     bool   // nobody is waiting: cron, hooks, background work
	Model   string // "provider/model" to use instead of the routes, "" for none
}

// A Call is a proposal to use a tool. Args hold strings, int64s, bools, lists of
// strings, and for tools with a foreign schema what else JSON can hold;
// "explanation" says why.
type Call struct {
	Name string
	Args map[string]any
	Seal string // a provider's own note on its call, to be given back to it
}

// A Reply is the engine's next step: a call, or else text.
type Reply struct {
	Text    string
	Call    *Call
	Extra   int    // calls proposed beyond the first; none of them is looked at
	Cut     bool   // the answer ended because it was too long
	Problem string // what could not be read of a call, "" when all could
	Model   string // "provider/model" that answered, "" for one that does not say
	Note    string // what the person should know about how this came about
	Usage   Usage
}

// Usage is what an exchange took, in tokens. Cached is the part of In the provider
// had kept from before; Stored is the part it was paid to keep.
type Usage struct {
	In, Cached, Stored, Out int
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

// errNoConversation is returned for a request without messages.
var errNoConversation = errors.New("the conversation is empty: want at least one message")

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
