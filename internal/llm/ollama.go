package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
)

// ollama speaks Ollama's own chat. Its OpenAI-compatible endpoint cuts prompts
// that are too long without saying so; here the context is asked for and checked.
type ollama struct {
	wire
	model string
	info  Info

	mu     sync.Mutex // guards what follows
	window int        // tokens the model can hold, 0 until it was asked
	words  bool       // the model knows no native calls
}

func (c *ollama) Info() Info { return c.info }

// minWindow is the smallest context asked for.
const minWindow = 4096

// context asks once how long a prompt the model can hold.
func (c *ollama) context(ctx context.Context) (int, error) {
	c.mu.Lock()
	known := c.window
	c.mu.Unlock()
	if known > 0 {
		return known, nil
	}
	var show struct {
		Info map[string]any `json:"model_info"`
	}
	err := c.post(ctx, "/api/show", map[string]any{"model": c.model}, func(r io.Reader) error {
		return json.NewDecoder(io.LimitReader(r, maxEvent)).Decode(&show)
	})
	if err != nil {
		return 0, err
	}
	window := minWindow
	for k, v := range show.Info {
		if n, ok := v.(float64); ok && strings.HasSuffix(k, ".context_length") {
			window = int(n)
		}
	}
	c.mu.Lock()
	c.window = window
	c.mu.Unlock()
	return window, nil
}

// size is the context to ask for: a power of two that holds prompt and answer, so
// that the model is not loaded anew for every small difference.
func size(need, window int) int {
	n := minWindow
	for n < need {
		n *= 2
	}
	return min(n, window)
}

type ollamaCall struct {
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

type ollamaMessage struct {
	Role      string       `json:"role"`
	Content   string       `json:"content"`
	ToolCalls []ollamaCall `json:"tool_calls,omitempty"`
	ToolName  string       `json:"tool_name,omitempty"`
}

// ollamaTool describes a tool. Ollama's own type does not know that a schema can be
// closed.
func ollamaTool(t Tool) any {
	s := schema(t, false)
	delete(s, "additionalProperties")
	return chatFunction(t, s)
}

func (c *ollama) body(req Request, window int, words bool) (map[string]any, int) {
	system := req.System
	// Unless it is told not to, Ollama drops the oldest messages of a prompt that is
	// too long and says nothing: what it then counts is short and looks well.
	b := map[string]any{"model": c.model, "stream": true, "truncate": false, "shift": false}
	if len(req.Tools) > 0 {
		if words {
			system += inWords(req.Tools)
		} else {
			b["tools"] = c.box.describe(req.Tools, ollamaTool)
		}
	}
	msgs := []ollamaMessage{{Role: "system", Content: system}}
	for _, s := range dialogue(req) {
		msgs = append(msgs, ollamaMessages(s)...)
	}
	b["messages"] = msgs
	need := req.Estimate() + req.replyLimit()
	ask := size(need, window)
	b["options"] = map[string]any{"num_ctx": ask, "num_predict": req.replyLimit()}
	return b, ask
}

func ollamaMessages(s speech) []ollamaMessage {
	if s.assistant {
		m := ollamaMessage{Role: "assistant", Content: s.joined()}
		for _, p := range s.parts {
			if p.call != nil {
				var call ollamaCall
				call.Function.Name, call.Function.Arguments = p.call.Name, json.RawMessage(arguments(p.call))
				m.ToolCalls = append(m.ToolCalls, call)
			}
		}
		return []ollamaMessage{m}
	}
	var out []ollamaMessage
	for _, p := range s.parts {
		if p.result {
			out = append(out, ollamaMessage{Role: "tool", Content: p.text, ToolName: p.tool})
		}
	}
	if text := s.joined(); text != "" {
		out = append(out, ollamaMessage{Role: "user", Content: text})
	}
	return out
}

type ollamaChunk struct {
	Message    ollamaMessage `json:"message"`
	Done       bool          `json:"done"`
	DoneReason string        `json:"done_reason"`
	Prompt     int           `json:"prompt_eval_count"`
	Eval       int           `json:"eval_count"`
	Error      string        `json:"error"`
}

// Complete implements [Backend].
func (c *ollama) Complete(ctx context.Context, req Request, sink func(string)) (Reply, error) {
	window, err := c.context(ctx)
	if err != nil {
		return Reply{}, err
	}
	if need := req.Estimate(); need >= window {
		return Reply{}, c.fail(classContext, false, "the prompt has about %d tokens, the model holds %d", need, window)
	}
	c.mu.Lock()
	words := c.words
	c.mu.Unlock()
	r, err := c.ask(ctx, req, sink, window, words)
	if e := (*Error)(nil); !words && errors.As(err, &e) && strings.Contains(e.Err.Error(), "does not support tools") {
		c.mu.Lock()
		c.words = true
		c.mu.Unlock()
		return c.ask(ctx, req, sink, window, true)
	}
	return r, err
}

func (c *ollama) ask(ctx context.Context, req Request, sink func(string), window int, words bool) (Reply, error) {
	a := &answer{sink: sink}
	body, asked := c.body(req, window, words)
	err := c.post(ctx, "/api/chat", body, func(r io.Reader) error {
		err := readLines(r, func(line []byte) error { return c.line(a, line) })
		if err != nil {
			return err
		}
		return c.check(a, "")
	})
	if err != nil {
		return Reply{}, err
	}
	if a.usage.In >= asked-1 { // an older one, which cuts all the same
		return Reply{}, c.fail(classContext, true, "the prompt filled all %d tokens of the context, so its beginning was cut off", asked)
	}
	return c.finish(a)
}

func (c *ollama) line(a *answer, line []byte) error {
	var k ollamaChunk
	if err := json.Unmarshal(line, &k); err != nil {
		return fmt.Errorf("%w: %w", errFormat, err)
	}
	if k.Error != "" {
		return c.fail(streamClass("", k.Error), true, "%s", c.short(k.Error))
	}
	for _, tc := range k.Message.ToolCalls {
		p := a.call(fmt.Sprint(len(a.calls)))
		p.name = tc.Function.Name
		if err := a.arg(p, string(tc.Function.Arguments)); err != nil {
			return err
		}
	}
	if err := a.say(k.Message.Content); err != nil {
		return err
	}
	if k.Done {
		a.ended, a.cut = true, k.DoneReason == "length"
		a.usage = Usage{In: k.Prompt, Out: k.Eval}
		return errDone
	}
	return nil
}
