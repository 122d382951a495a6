package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// chat speaks the chat completions of OpenAI, which most servers understand.
type chat struct {
	wire
	model string
	info  Info
	quirk chatQuirks
}

// chatQuirks are the differences between those who speak it.
type chatQuirks struct {
	single  bool // knows parallel_tool_calls
	newName bool // wants max_completion_tokens for max_tokens
	noTools bool // tools are described in words
}

func (c *chat) Info() Info { return c.info }

type chatMessage struct {
	Role       string     `json:"role"`
	Content    *string    `json:"content,omitempty"`
	ToolCalls  []chatCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type chatCall struct {
	Index    *int   `json:"index,omitempty"`
	ID       string `json:"id,omitempty"`
	Type     string `json:"type,omitempty"`
	Function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

func (c *chat) body(req Request) map[string]any {
	system := req.System
	b := map[string]any{"model": c.model, "stream": true, "stream_options": map[string]any{"include_usage": true}}
	limit := "max_tokens"
	if c.quirk.newName {
		limit = "max_completion_tokens"
	}
	b[limit] = req.replyLimit()
	switch {
	case len(req.Tools) == 0:
	case c.quirk.noTools:
		system += inWords(req.Tools)
	default:
		b["tools"] = c.box.describe(req.Tools, chatTool)
		if c.quirk.single {
			b["parallel_tool_calls"] = false
		}
	}
	msgs := []chatMessage{{Role: "system", Content: &system}}
	for _, s := range dialogue(req) {
		msgs = append(msgs, chatMessages(s)...)
	}
	b["messages"] = msgs
	return b
}

func chatTool(t Tool) any { return chatFunction(t, schema(t, false)) }

func chatFunction(t Tool, parameters map[string]any) any {
	return map[string]any{"type": "function", "function": map[string]any{"name": t.Name, "description": t.Doc, "parameters": parameters}}
}

// chatMessages writes one speech. Results must directly follow their call.
func chatMessages(s speech) []chatMessage {
	var out []chatMessage
	if s.assistant {
		m := chatMessage{Role: "assistant"}
		if text := s.joined(); text != "" {
			m.Content = &text
		}
		for _, p := range s.parts {
			if p.call != nil {
				call := chatCall{ID: p.id, Type: "function"}
				call.Function.Name, call.Function.Arguments = p.call.Name, arguments(p.call)
				m.ToolCalls = append(m.ToolCalls, call)
			}
		}
		return append(out, m)
	}
	for _, p := range s.parts {
		if p.result {
			text := p.text
			out = append(out, chatMessage{Role: "tool", Content: &text, ToolCallID: p.id})
		}
	}
	if text := s.joined(); text != "" {
		out = append(out, chatMessage{Role: "user", Content: &text})
	}
	return out
}

// arguments is a call's arguments as JSON text. Keys are sorted, so that the same
// conversation gives the same bytes.
func arguments(c *Call) string {
	args := c.Args
	if args == nil {
		args = map[string]any{}
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return "{}" // unreachable: arguments came from JSON or from plain values
	}
	return string(raw)
}

type chatChunk struct {
	Choices []struct {
		Delta struct {
			Content   string     `json:"content"`
			Refusal   string     `json:"refusal"`
			ToolCalls []chatCall `json:"tool_calls"`
		} `json:"delta"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Details    struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		DeepSeekHit int `json:"prompt_cache_hit_tokens"`
	} `json:"usage"`
	Error *wireError `json:"error"`
}

// A wireError is an error within a stream. Codes are strings or numbers.
type wireError struct {
	Message string `json:"message"`
	Type    string `json:"type"`
	Status  string `json:"status"`
	Code    any    `json:"code"`
}

func (e *wireError) kind() string {
	if s, ok := e.Code.(string); ok && s != "" {
		return s
	}
	if n, ok := e.Code.(float64); ok && e.Type == "" && e.Status == "" {
		return fmt.Sprint(int(n))
	}
	if e.Status != "" {
		return e.Status
	}
	return e.Type
}

// Complete implements [Backend].
func (c *chat) Complete(ctx context.Context, req Request, sink func(string)) (Reply, error) {
	var refusal strings.Builder
	event := func(a *answer, data []byte) error { return c.event(a, &refusal, data) }
	return c.converse(ctx, "/chat/completions", c.body(req), sink, event, refusal.String)
}

// converse posts a request and collects the events of its answer. What a model
// says in place of an answer is known only after the last of them.
func (w *wire) converse(ctx context.Context, path string, body any, sink func(string),
	event func(*answer, []byte) error, refusal func() string,
) (Reply, error) {
	a := &answer{sink: sink}
	err := w.post(ctx, path, body, func(r io.Reader) error {
		if err := readEvents(r, func(_ string, data []byte) error { return event(a, data) }); err != nil {
			return err
		}
		return w.check(a, refusal())
	})
	if err != nil {
		return Reply{}, err
	}
	return w.finish(a)
}

// unrefused is the refusal of a wire that has no field for one.
func unrefused() string { return "" }

// check sees that a stream ended the way an answer ends.
func (w *wire) check(a *answer, refusal string) error {
	switch {
	case refusal != "":
		return w.fail(classRefused, true, "%s", w.short(refusal))
	case !a.ended:
		return errEarly
	}
	return nil
}

// finish makes the reply of an answer that came to its end.
func (w *wire) finish(a *answer) (Reply, error) {
	r, err := a.reply()
	if err != nil {
		return Reply{}, w.fail(classMalformed, true, "%w", err)
	}
	r.Model = w.name
	return r, nil
}

func (c *chat) event(a *answer, refusal *strings.Builder, data []byte) error {
	if string(data) == "[DONE]" {
		return errDone
	}
	var k chatChunk
	if err := json.Unmarshal(data, &k); err != nil {
		return fmt.Errorf("%w: %w", errFormat, err)
	}
	if k.Error != nil {
		return c.fail(streamClass(k.Error.kind(), k.Error.Message), true, "%s", c.short(k.Error.Message))
	}
	if u := k.Usage; u != nil {
		a.usage = Usage{In: u.Prompt, Cached: max(u.Details.Cached, u.DeepSeekHit), Out: u.Completion}
	}
	if len(k.Choices) == 0 {
		return nil
	}
	d := k.Choices[0]
	refusal.WriteString(d.Delta.Refusal)
	for i, tc := range d.Delta.ToolCalls {
		if err := a.chatDelta(i, tc); err != nil {
			return err
		}
	}
	switch d.FinishReason {
	case "":
	case "content_filter":
		return c.fail(classRefused, true, "the provider's filter stopped the answer")
	case "length":
		a.ended, a.cut = true, true
	default:
		a.ended = true
	}
	return a.say(d.Delta.Content)
}

// chatDelta adds a piece of a call. Calls are told apart by their index; servers
// that leave it out send each call whole.
func (a *answer) chatDelta(i int, tc chatCall) error {
	key := tc.ID
	if tc.Index != nil {
		key = fmt.Sprint(*tc.Index)
	} else if key == "" {
		key = fmt.Sprint("at ", i)
	}
	p := a.call(key)
	if p.name == "" {
		p.name = tc.Function.Name
	}
	return a.arg(p, tc.Function.Arguments)
}
