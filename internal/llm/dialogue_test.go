package llm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"passepartout/internal/llm"
)

// listening answers like Anthropic and keeps the last request.
type listening struct{ body []byte }

func (l *listening) RoundTrip(r *http.Request) (*http.Response, error) {
	var err error
	if l.body, err = io.ReadAll(r.Body); err != nil {
		return nil, err
	}
	return canned{sse, anthropicFake.answer("fine")}.RoundTrip(r)
}

// TestWhateverWasSaidIsAConversationToTheStrictestProvider checks what Anthropic
// refuses otherwise: sides take turns, the person begins and ends, every use of a
// tool is followed by its one result, no text is empty.
func TestWhateverWasSaidIsAConversationToTheStrictestProvider(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		roles := []llm.Role{llm.User, llm.Assistant, llm.ToolResult, llm.Objection}
		var ms []llm.Message
		for range rapid.IntRange(1, 20).Draw(t, "messages") {
			m := llm.Message{Role: rapid.SampledFrom(roles).Draw(t, "role"), Text: rapid.SampledFrom([]string{"a", "b c", ""}).Draw(t, "text"), Tool: "look", OK: rapid.Bool().Draw(t, "ok")}
			if m.Role == llm.Assistant && rapid.Bool().Draw(t, "calls") {
				m.Call = &llm.Call{Name: "look", Args: map[string]any{"x": int64(1)}}
			}
			ms = append(ms, m)
		}
		heard := &listening{}
		e, err := llm.New(llm.Options{Providers: []llm.Provider{{Name: "anthropic", Key: "k", Model: "m"}}, Cascade: []string{"anthropic"}, Transport: heard})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Complete(context.Background(), llm.Request{System: "s", Messages: ms, Tail: rapid.SampledFrom([]string{"", "TIME"}).Draw(t, "tail")}, nil); err != nil {
			t.Fatal(err)
		}
		var body struct {
			Messages []struct {
				Role    string `json:"role"`
				Content []struct {
					Type      string `json:"type"`
					Text      string `json:"text"`
					ID        string `json:"id"`
					ToolUseID string `json:"tool_use_id"`
				} `json:"content"`
			} `json:"messages"`
		}
		if err := json.Unmarshal(heard.body, &body); err != nil {
			t.Fatal(err)
		}
		if len(body.Messages) == 0 {
			t.Fatal("no messages")
		}
		open := ""
		for i, m := range body.Messages {
			if want := []string{"user", "assistant"}[i%2]; m.Role != want {
				t.Fatalf("message %d is of %s, want %s: %s", i, m.Role, want, heard.body)
			}
			if len(m.Content) == 0 {
				t.Fatalf("message %d is empty: %s", i, heard.body)
			}
			if open != "" && (m.Content[0].Type != "tool_result" || m.Content[0].ToolUseID != open) {
				t.Fatalf("%s has no result in message %d: %s", open, i, heard.body)
			}
			open = ""
			for j, c := range m.Content {
				switch c.Type {
				case "tool_use":
					if j != len(m.Content)-1 {
						t.Fatalf("text after a use of a tool: %s", heard.body)
					}
					open = c.ID
				case "tool_result":
					if j != 0 {
						t.Fatalf("a result after text: %s", heard.body)
					}
				case "text":
					if c.Text == "" {
						t.Fatalf("an empty text: %s", heard.body)
					}
				}
			}
		}
		if open != "" {
			t.Fatalf("%s was never answered: %s", open, heard.body)
		}
	})
}

type panicking struct{}

func (panicking) RoundTrip(*http.Request) (*http.Response, error) { panic("out of cheese") }

func TestAProviderWhoseCodePanicsIsOnlyAFailure(t *testing.T) {
	e, err := llm.New(llm.Options{Providers: []llm.Provider{{Name: "groq", Key: "k", Model: "m"}}, Cascade: []string{"groq", "reflex"}, Transport: panicking{}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Complete(ctxFor(t), llm.Request{Messages: []llm.Message{{Role: llm.User, Text: "help"}}}, nil)
	if err != nil || !strings.Contains(r.Note, "groq/m: panic") {
		t.Errorf("%+v, %v", r, err)
	}
	if es := e.Ledger().Entries(); len(es) != 1 || fmt.Sprint(es[0].Class) != "panic" {
		t.Errorf("booked %+v", es)
	}
}
