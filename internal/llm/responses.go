package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// responses speaks OpenAI's Responses. Nothing is kept on their side.
type responses struct {
	wire
	model string
	info  Info
}

func (c *responses) Info() Info { return c.info }

func (c *responses) body(req Request) map[string]any {
	b := map[string]any{
		"model": c.model, "instructions": req.System, "stream": true, "store": false,
		"max_output_tokens": req.replyLimit(),
	}
	if len(req.Tools) > 0 {
		b["parallel_tool_calls"] = false
		b["tools"] = c.box.describe(req.Tools, func(t Tool) any {
			return map[string]any{"type": "function", "name": t.Name, "description": t.Doc, "parameters": schema(t, false), "strict": false}
		})
	}
	input := []any{}
	for _, s := range dialogue(req) {
		for _, p := range s.parts {
			input = append(input, responsesItem(s.assistant, p))
		}
	}
	b["input"] = input
	return b
}

func responsesItem(assistant bool, p part) map[string]any {
	switch {
	case p.call != nil:
		return map[string]any{"type": "function_call", "call_id": p.id, "name": p.call.Name, "arguments": arguments(p.call)}
	case p.result:
		return map[string]any{"type": "function_call_output", "call_id": p.id, "output": p.text}
	case assistant:
		return map[string]any{"type": "message", "role": "assistant", "content": []any{map[string]any{"type": "output_text", "text": p.text}}}
	}
	return map[string]any{"type": "message", "role": "user", "content": []any{map[string]any{"type": "input_text", "text": p.text}}}
}

type responsesEvent struct {
	Type        string `json:"type"`
	Delta       string `json:"delta"`
	Arguments   string `json:"arguments"`
	OutputIndex int    `json:"output_index"`
	Item        struct {
		Type      string `json:"type"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"item"`
	Response struct {
		Usage struct {
			In      int `json:"input_tokens"`
			Out     int `json:"output_tokens"`
			Details struct {
				Cached int `json:"cached_tokens"`
			} `json:"input_tokens_details"`
		} `json:"usage"`
		Error             *wireError `json:"error"`
		IncompleteDetails struct {
			Reason string `json:"reason"`
		} `json:"incomplete_details"`
	} `json:"response"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Complete implements [Backend].
func (c *responses) Complete(ctx context.Context, req Request, sink func(string)) (Reply, error) {
	var refusal strings.Builder
	event := func(a *answer, data []byte) error { return c.event(a, &refusal, data) }
	return c.converse(ctx, "/responses", c.body(req), sink, event, refusal.String)
}

func (c *responses) event(a *answer, refusal *strings.Builder, data []byte) error {
	if string(data) == "[DONE]" {
		return errDone
	}
	var e responsesEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("%w: %w", errFormat, err)
	}
	call := func() *partCall { return a.call(fmt.Sprint(e.OutputIndex)) }
	switch e.Type {
	case "response.output_text.delta":
		return a.say(e.Delta)
	case "response.refusal.delta":
		refusal.WriteString(e.Delta)
	case "response.output_item.added":
		if e.Item.Type == "function_call" {
			call().name = e.Item.Name
		}
	case "response.function_call_arguments.delta":
		return a.arg(call(), e.Delta)
	case "response.output_item.done":
		if e.Item.Type == "function_call" { // the whole call, once more
			p := call()
			p.name = e.Item.Name
			p.args.Reset()
			return a.arg(p, e.Item.Arguments)
		}
	case "response.completed", "response.incomplete":
		u := e.Response.Usage
		a.usage = Usage{In: u.In, Cached: u.Details.Cached, Out: u.Out}
		if e.Response.IncompleteDetails.Reason == "content_filter" {
			return c.fail(classRefused, true, "the provider's filter stopped the answer")
		}
		a.ended, a.cut = true, e.Type == "response.incomplete"
		return errDone
	case "response.failed":
		if x := e.Response.Error; x != nil {
			return c.fail(streamClass(x.kind(), x.Message), true, "%s", c.short(x.Message))
		}
		return c.fail(classServer, true, "the response failed without a reason")
	case "error":
		return c.fail(streamClass(e.Code, e.Message), true, "%s", c.short(e.Message))
	}
	return nil
}
