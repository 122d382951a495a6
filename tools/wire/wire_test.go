// Package wire has the providers' own clients check the wire formats of the
// product: they decode its requests, and they read what its scripted servers say.
// It is a module of its own, so that the product does not carry them.
package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	ollama "github.com/ollama/ollama/api"
	chat "github.com/sashabaranov/go-openai"
	"google.golang.org/genai"
)

const (
	text = "Grüße, 世界! Nothing is due."
	args = `{"explanation":"because","span":"week"}`
)

func file(t *testing.T, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "internal", "llm", "testdata", "wire", name))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// strict decodes into a type that must know every field.
func strict(t *testing.T, raw []byte, into any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Error(err)
	}
}

// whole decodes into a type, writes it again, and wants the same back.
func whole(t *testing.T, raw []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(into)
	if err != nil {
		t.Fatal(err)
	}
	var a, b any
	if json.Unmarshal(raw, &a) != nil || json.Unmarshal(again, &b) != nil {
		t.Fatal("not JSON")
	}
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	if !bytes.Equal(x, y) {
		t.Errorf("the official type lost something:\n%s\n%s", x, y)
	}
}

// without drops keys that belong to the transport, not to the type.
func without(t *testing.T, raw []byte, keys ...string) []byte {
	t.Helper()
	m := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		delete(m, k)
	}
	out, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestOfficialTypesDecodeOurRequests(t *testing.T) {
	t.Run("chat completions", func(t *testing.T) { strict(t, file(t, "groq.json"), &chat.ChatCompletionRequest{}) })
	t.Run("messages", func(t *testing.T) {
		whole(t, without(t, file(t, "anthropic.json"), "stream"), &anthropic.MessageNewParams{})
	})
	t.Run("ollama", func(t *testing.T) { strict(t, file(t, "ollama.json"), &ollama.ChatRequest{}) })
	t.Run("gemini", func(t *testing.T) {
		var body struct {
			Contents          []*genai.Content        `json:"contents"`
			SystemInstruction *genai.Content          `json:"systemInstruction"`
			Tools             []*genai.Tool           `json:"tools"`
			GenerationConfig  *genai.GenerationConfig `json:"generationConfig"`
		}
		strict(t, file(t, "gemini.json"), &body)
	})
}

// serve answers everything with one of the scripted streams.
func serve(t *testing.T, name, kind string) string {
	t.Helper()
	raw := file(t, name)
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		rw.Header().Set("Content-Type", kind)
		_, _ = rw.Write(raw)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

const sse = "text/event-stream"

func check(t *testing.T, said, tool, given string, err error, wantText bool) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if wantText && said != text {
		t.Errorf("read %q", said)
	}
	if !wantText && (tool != "agenda" || !same(given, args)) {
		t.Errorf("read the call %s %s", tool, given)
	}
}

func same(a, b string) bool {
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	p, _ := json.Marshal(x)
	q, _ := json.Marshal(y)
	return bytes.Equal(p, q)
}

func each(t *testing.T, provider, kind string, read func(t *testing.T, base string) (said, tool, given string, err error)) {
	for _, what := range []string{"answer", "call"} {
		t.Run(provider+"/"+what, func(t *testing.T) {
			said, tool, given, err := read(t, serve(t, provider+"."+what, kind))
			check(t, said, tool, given, err, what == "answer")
		})
	}
}

func TestOfficialClientsReadOurScriptedServers(t *testing.T) {
	ctx := context.Background()
	each(t, "groq", sse, func(_ *testing.T, base string) (said, tool, given string, err error) {
		conf := chat.DefaultConfig("k")
		conf.BaseURL = base
		st, err := chat.NewClientWithConfig(conf).CreateChatCompletionStream(ctx, chat.ChatCompletionRequest{Model: "x"})
		if err != nil {
			return "", "", "", err
		}
		defer st.Close()
		for {
			r, err := st.Recv()
			if errors.Is(err, io.EOF) {
				return said, tool, given, nil
			}
			if err != nil {
				return "", "", "", err
			}
			for _, c := range r.Choices {
				said += c.Delta.Content
				for _, tc := range c.Delta.ToolCalls {
					tool, given = tool+tc.Function.Name, given+tc.Function.Arguments
				}
			}
		}
	})
	each(t, "anthropic", sse, func(t *testing.T, base string) (said, tool, given string, err error) {
		c := anthropic.NewClient(anthropicoption.WithBaseURL(base), anthropicoption.WithAPIKey("k"))
		s := c.Messages.NewStreaming(ctx, anthropic.MessageNewParams{Model: "x", MaxTokens: 10, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("hi"))}})
		m := anthropic.Message{}
		for s.Next() {
			if err := m.Accumulate(s.Current()); err != nil {
				return "", "", "", err
			}
		}
		for _, b := range m.Content {
			switch b := b.AsAny().(type) {
			case anthropic.TextBlock:
				said += b.Text
			case anthropic.ToolUseBlock:
				tool, given = b.Name, string(b.Input)
			}
		}
		return said, tool, given, s.Err()
	})
	each(t, "gemini", sse, func(t *testing.T, base string) (said, tool, given string, err error) {
		c, err := genai.NewClient(ctx, &genai.ClientConfig{APIKey: "k", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: base}})
		if err != nil {
			return "", "", "", err
		}
		for r, err := range c.Models.GenerateContentStream(ctx, "x", genai.Text("hi"), nil) {
			if err != nil {
				return "", "", "", err
			}
			for _, p := range r.Candidates[0].Content.Parts {
				switch {
				case p.FunctionCall != nil:
					raw, _ := json.Marshal(p.FunctionCall.Args)
					tool, given = p.FunctionCall.Name, string(raw)
				case !p.Thought:
					said += p.Text
				}
			}
		}
		return said, tool, given, nil
	})
	each(t, "ollama", "application/x-ndjson", func(t *testing.T, base string) (said, tool, given string, err error) {
		u, err := url.Parse(base)
		if err != nil {
			return "", "", "", err
		}
		err = ollama.NewClient(u, http.DefaultClient).Chat(ctx, &ollama.ChatRequest{Model: "x"}, func(r ollama.ChatResponse) error {
			said += r.Message.Content
			for _, c := range r.Message.ToolCalls {
				tool, given = c.Function.Name, c.Function.Arguments.String()
			}
			return nil
		})
		return said, tool, strings.TrimSpace(given), err
	})
}
