package llm

import (
	"context"
	"encoding/json"
	"fmt"
)

// anthropic speaks Anthropic's Messages.
type anthropic struct {
	wire
	model string
	info  Info
}

func (c *anthropic) Info() Info { return c.info }

// warm marks the end of what the provider is to keep for the next request.
var warm = map[string]any{"type": "ephemeral"}

func (c *anthropic) body(req Request) map[string]any {
	b := map[string]any{"model": c.model, "stream": true, "max_tokens": req.replyLimit()}
	if req.System != "" {
		b["system"] = []any{map[string]any{"type": "text", "text": req.System, "cache_control": warm}}
	}
	if len(req.Tools) > 0 {
		b["tools"] = c.box.describe(req.Tools, func(t Tool) any {
			return map[string]any{"name": t.Name, "description": t.Doc, "input_schema": schema(t, false)}
		})
		b["tool_choice"] = map[string]any{"type": "auto", "disable_parallel_tool_use": true}
	}
	msgs := []any{}
	var last map[string]any // of the conversation, before the tail
	speeches := dialogue(req)
	for i, s := range speeches {
		role := "user"
		if s.assistant {
			role = "assistant"
		}
		var blocks []any
		for j, p := range s.parts {
			if p.text == "" && p.call == nil {
				continue // an empty text block is refused
			}
			block := anthropicBlock(p)
			blocks = append(blocks, block)
			if tail := req.Tail != "" && i == len(speeches)-1 && j == len(s.parts)-1; !tail {
				last = block
			}
		}
		msgs = append(msgs, map[string]any{"role": role, "content": blocks})
	}
	if last != nil {
		last["cache_control"] = warm
	}
	b["messages"] = msgs
	return b
}

func anthropicBlock(p part) map[string]any {
	switch {
	case p.call != nil:
		return map[string]any{"type": "tool_use", "id": p.id, "name": p.call.Name, "input": json.RawMessage(arguments(p.call))}
	case p.result:
		return map[string]any{"type": "tool_result", "tool_use_id": p.id, "is_error": !p.ok, "content": []any{map[string]any{"type": "text", "text": p.text}}}
	}
	return map[string]any{"type": "text", "text": p.text}
}

type anthropicUsage struct {
	In     int `json:"input_tokens"`
	Out    int `json:"output_tokens"`
	Read   int `json:"cache_read_input_tokens"`
	Stored int `json:"cache_creation_input_tokens"`
}

type anthropicEvent struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message struct {
		Usage anthropicUsage `json:"usage"`
	} `json:"message"`
	ContentBlock struct {
		Type string `json:"type"`
		Text string `json:"text"`
		Name string `json:"name"`
	} `json:"content_block"`
	Delta struct {
		Type        string `json:"type"`
		Text        string `json:"text"`
		PartialJSON string `json:"partial_json"`
		StopReason  string `json:"stop_reason"`
	} `json:"delta"`
	Usage *anthropicUsage `json:"usage"`
	Error *wireError      `json:"error"`
}

// Complete implements [Backend].
func (c *anthropic) Complete(ctx context.Context, req Request, sink func(string)) (Reply, error) {
	return c.converse(ctx, "/v1/messages", c.body(req), sink, c.event, unrefused)
}

func (c *anthropic) event(a *answer, data []byte) error {
	var e anthropicEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("%w: %w", errFormat, err)
	}
	switch e.Type {
	case "message_start":
		u := e.Message.Usage
		a.usage = Usage{In: u.In + u.Read + u.Stored, Cached: u.Read, Stored: u.Stored, Out: u.Out}
	case "content_block_start":
		if e.ContentBlock.Type == "tool_use" {
			a.call(fmt.Sprint(e.Index)).name = e.ContentBlock.Name
		}
		return a.say(e.ContentBlock.Text)
	case "content_block_delta":
		if e.Delta.Type == "input_json_delta" {
			return a.arg(a.call(fmt.Sprint(e.Index)), e.Delta.PartialJSON)
		}
		return a.say(e.Delta.Text)
	case "message_delta":
		if e.Usage != nil {
			a.usage.Out = e.Usage.Out
		}
		return c.stopped(a, e.Delta.StopReason)
	case "message_stop":
		a.ended = true
		return errDone
	case "error":
		if e.Error == nil {
			return c.fail(classServer, true, "an error without a reason")
		}
		return c.fail(streamClass(e.Error.kind(), e.Error.Message), true, "%s", c.short(e.Error.Message))
	}
	return nil
}

func (c *anthropic) stopped(a *answer, reason string) error {
	switch reason {
	case "":
	case "refusal":
		return c.fail(classRefused, true, "the model declined to answer")
	case "max_tokens", "model_context_window_exceeded":
		a.ended, a.cut = true, true
	default:
		a.ended = true
	}
	return nil
}
