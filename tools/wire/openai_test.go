//go:build openai

// OpenAI's own client takes minutes to build, so it is asked only on demand:
// go test -tags openai.

package wire

import (
	"context"
	"testing"

	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
)

func TestOpenAIsTypesDecodeOurRequests(t *testing.T) {
	t.Run("chat completions by OpenAI", func(t *testing.T) {
		whole(t, without(t, file(t, "groq.json"), "stream"), &openai.ChatCompletionNewParams{})
	})
	t.Run("responses", func(t *testing.T) {
		whole(t, without(t, file(t, "openai.json"), "stream"), &responses.ResponseNewParams{})
	})
}

func TestOpenAIsClientReadsOurScriptedServers(t *testing.T) {
	ctx := context.Background()
	each(t, "groq", sse, func(t *testing.T, base string) (string, string, string, error) {
		c := openai.NewClient(openaioption.WithBaseURL(base), openaioption.WithAPIKey("k"))
		s := c.Chat.Completions.NewStreaming(ctx, openai.ChatCompletionNewParams{Model: "x", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")}})
		acc := openai.ChatCompletionAccumulator{}
		for s.Next() {
			acc.AddChunk(s.Current())
		}
		if s.Err() != nil || len(acc.Choices) == 0 {
			return "", "", "", s.Err()
		}
		m := acc.Choices[0].Message
		if len(m.ToolCalls) > 0 {
			return "", m.ToolCalls[0].Function.Name, m.ToolCalls[0].Function.Arguments, nil
		}
		return m.Content, "", "", nil
	})
	each(t, "openai", sse, func(t *testing.T, base string) (said, tool, given string, err error) {
		c := openai.NewClient(openaioption.WithBaseURL(base), openaioption.WithAPIKey("k"))
		s := c.Responses.NewStreaming(ctx, responses.ResponseNewParams{Model: "x"})
		for s.Next() {
			switch e := s.Current().AsAny().(type) {
			case responses.ResponseTextDeltaEvent:
				said += e.Delta
			case responses.ResponseOutputItemDoneEvent:
				tool, given = e.Item.Name, e.Item.AsFunctionCall().Arguments
			}
		}
		return said, tool, given, s.Err()
	})
}
