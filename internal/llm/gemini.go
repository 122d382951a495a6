package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
)

// gemini speaks Google's generateContent.
type gemini struct {
	wire
	model string
	info  Info
}

func (c *gemini) Info() Info { return c.info }

func (c *gemini) body(req Request) map[string]any {
	b := map[string]any{"generationConfig": map[string]any{"maxOutputTokens": req.replyLimit()}}
	if req.System != "" {
		b["systemInstruction"] = map[string]any{"parts": []any{map[string]any{"text": req.System}}}
	}
	if len(req.Tools) > 0 {
		b["tools"] = []any{map[string]any{"functionDeclarations": c.box.describe(req.Tools, func(t Tool) any {
			return map[string]any{"name": t.Name, "description": t.Doc, "parameters": schema(t, true)}
		})}}
	}
	contents := []any{}
	for _, s := range dialogue(req) {
		role := "user"
		if s.assistant {
			role = "model"
		}
		var parts []any
		for _, p := range s.parts {
			parts = append(parts, geminiPart(p))
		}
		contents = append(contents, map[string]any{"role": role, "parts": parts})
	}
	b["contents"] = contents
	return b
}

func geminiPart(p part) map[string]any {
	switch {
	case p.call != nil:
		out := map[string]any{"functionCall": map[string]any{"name": p.call.Name, "args": json.RawMessage(arguments(p.call))}}
		if p.call.Seal != "" {
			out["thoughtSignature"] = p.call.Seal
		}
		return out
	case p.result:
		key := "error"
		if p.ok {
			key = "result"
		}
		return map[string]any{"functionResponse": map[string]any{"name": p.tool, "response": map[string]any{key: p.text}}}
	}
	return map[string]any{"text": p.text}
}

type geminiChunk struct {
	Candidates []struct {
		Content struct {
			Parts []struct {
				Text         string `json:"text"`
				Thought      bool   `json:"thought"`
				FunctionCall *struct {
					Name string          `json:"name"`
					Args json.RawMessage `json:"args"`
				} `json:"functionCall"`
				ThoughtSignature string `json:"thoughtSignature"`
			} `json:"parts"`
		} `json:"content"`
		FinishReason string `json:"finishReason"`
	} `json:"candidates"`
	PromptFeedback struct {
		BlockReason string `json:"blockReason"`
	} `json:"promptFeedback"`
	Usage *struct {
		Prompt   int `json:"promptTokenCount"`
		Answer   int `json:"candidatesTokenCount"`
		Thoughts int `json:"thoughtsTokenCount"`
		Cached   int `json:"cachedContentTokenCount"`
	} `json:"usageMetadata"`
	Error *wireError `json:"error"`
}

// Complete implements [Backend].
func (c *gemini) Complete(ctx context.Context, req Request, sink func(string)) (Reply, error) {
	path := "/v1beta/models/" + url.PathEscape(c.model) + ":streamGenerateContent?alt=sse"
	return c.converse(ctx, path, c.body(req), sink, c.event, unrefused)
}

func (c *gemini) event(a *answer, data []byte) error {
	var k geminiChunk
	if err := json.Unmarshal(data, &k); err != nil {
		return fmt.Errorf("%w: %w", errFormat, err)
	}
	switch {
	case k.Error != nil:
		return c.fail(streamClass(k.Error.kind(), k.Error.Message), true, "%s", c.short(k.Error.Message))
	case k.PromptFeedback.BlockReason != "":
		return c.fail(classRefused, true, "the prompt was blocked: %s", c.short(k.PromptFeedback.BlockReason))
	}
	if u := k.Usage; u != nil {
		a.usage = Usage{In: u.Prompt, Cached: u.Cached, Out: u.Answer + u.Thoughts}
	}
	if len(k.Candidates) == 0 {
		return nil
	}
	for _, p := range k.Candidates[0].Content.Parts {
		if f := p.FunctionCall; f != nil {
			call := a.call(fmt.Sprint(len(a.calls)))
			call.name, call.seal = f.Name, p.ThoughtSignature
			if err := a.arg(call, string(f.Args)); err != nil {
				return err
			}
			continue
		}
		if p.Thought {
			continue
		}
		if err := a.say(p.Text); err != nil {
			return err
		}
	}
	return c.stopped(a, k.Candidates[0].FinishReason)
}

func (c *gemini) stopped(a *answer, reason string) error {
	switch reason {
	case "", "FINISH_REASON_UNSPECIFIED":
	case "STOP":
		a.ended = true
	case "MAX_TOKENS":
		a.ended, a.cut = true, true
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS":
		return c.fail(classMalformed, true, "the model's call could not be read: %s", reason)
	default: // SAFETY, RECITATION, LANGUAGE, BLOCKLIST, PROHIBITED_CONTENT, SPII, OTHER, and what is new
		return c.fail(classRefused, true, "the provider stopped the answer: %s", c.short(reason))
	}
	return nil
}
