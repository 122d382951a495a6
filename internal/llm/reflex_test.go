package llm_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"passepartout/internal/llm"
)

// sunday is a fixed now for dates in words.
var sunday = time.Date(2026, 11, 15, 10, 0, 0, 0, time.UTC)

var allTools = []llm.Tool{
	{Name: "agenda"},
	{Name: "memory-search"},
	{Name: "org-find-headline"},
	{Name: "org-edit"},
	{Name: "capture"},
	{Name: "shell"},
	{Name: "read-file"},
	{Name: "list-directory"},
}

func ask(t *testing.T, text string) llm.Reply {
	t.Helper()
	r, err := llm.Reflex{}.Complete(context.Background(), llm.Request{
		Messages: []llm.Message{{Role: llm.User, Text: text}}, Tools: allTools, Now: sunday,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReflexProposesTheToolAPersonMeant(t *testing.T) {
	for _, tt := range []struct {
		say, tool string
		args      map[string]any
	}{
		{"what is due this week?", "agenda", map[string]any{"span": "week"}},
		{"What's due today", "agenda", map[string]any{"span": "today"}},
		{"agenda", "agenda", map[string]any{"span": "week"}},
		{"what do I have tomorrow?", "memory-search", map[string]any{"query": "what do I have tomorrow?"}},
		{"show my agenda for next week", "agenda", map[string]any{"span": "next week"}},
		{"what is overdue?", "agenda", map[string]any{"span": "overdue"}},
		{"list my todos", "org-find-headline", map[string]any{"todo": "open"}},
		{"show tasks tagged work", "org-find-headline", map[string]any{"todo": "open", "tag": "work"}},
		{"list my projects", "org-find-headline", map[string]any{"tag": "project"}},
		{"remind me to call Ana by friday", "capture", map[string]any{"title": "call Ana", "todo": "TODO", "deadline": "2026-11-20"}},
		{"add a task: water the plants tomorrow", "capture", map[string]any{"title": "water the plants", "todo": "TODO", "deadline": "2026-11-16"}},
		{"todo buy milk", "capture", map[string]any{"title": "buy milk", "todo": "TODO"}},
		{"note that the server moved to the cellar", "capture", map[string]any{"title": "the server moved to the cellar"}},
		{"mark call the plumber as done", "org-edit", map[string]any{"heading": "call the plumber", "todo": "DONE"}},
		{"set trip to cancelled", "org-edit", map[string]any{"heading": "trip", "todo": "CANCELLED"}},
		{"run `ls -la`", "shell", map[string]any{"cmd": "ls -la"}},
		{"$ git status", "shell", map[string]any{"cmd": "git status"}},
		{"read file notes/garden.org", "read-file", map[string]any{"filepath": "notes/garden.org"}},
		{"ls", "list-directory", map[string]any{"path": "."}},
		{"search for invoices", "memory-search", map[string]any{"query": "invoices"}},
		{"what do I know about tomatoes?", "memory-search", map[string]any{"query": "tomatoes"}},
		{"show note garden", "org-find-headline", map[string]any{"text": "garden", "full": true}},
	} {
		t.Run(tt.say, func(t *testing.T) {
			r := ask(t, tt.say)
			if r.Call == nil {
				t.Fatalf("no proposal, only text: %q", r.Text)
			}
			if why, _ := r.Call.Args["explanation"].(string); len(why) <= 10 {
				t.Errorf("explanation %q is too short for the policy gate", why)
			}
			delete(r.Call.Args, "explanation")
			if r.Call.Name != tt.tool || !cmp.Equal(r.Call.Args, tt.args) {
				t.Errorf("proposed %s %v, want %s %v", r.Call.Name, r.Call.Args, tt.tool, tt.args)
			}
		})
	}
}

func TestReflexUnderstandsEveryExampleItsHelpShows(t *testing.T) {
	lines := strings.Split(llm.Help(), "\n")
	tried := 0
	for _, l := range lines {
		if !strings.HasPrefix(l, "  ") {
			continue
		}
		tried++
		example := strings.TrimSpace(l[12:])
		if r := ask(t, example); r.Call != nil && r.Call.Args["query"] == example {
			t.Errorf("the example %q is not understood, only searched for", example)
		}
	}
	if tried < 10 {
		t.Fatalf("help shows only %d examples", tried)
	}
}

func TestReflexSaysHonestlyThatNoModelIsConfigured(t *testing.T) {
	r, err := llm.Reflex{}.Complete(context.Background(), llm.Request{Messages: []llm.Message{
		{Role: llm.User, Text: "compose a sonnet on static binaries"},
		{Role: llm.ToolResult, Tool: "memory-search", Text: "nothing found", OK: true},
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(r.Text, llm.NoModel) {
		t.Errorf("reply hides that no model is configured: %q", r.Text)
	}
}

func TestReflexDoesNotProposeAToolThatIsNotOffered(t *testing.T) {
	r, err := llm.Reflex{}.Complete(context.Background(), llm.Request{Messages: []llm.Message{{Role: llm.User, Text: "$ ls"}}, Now: sunday}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Call != nil {
		t.Errorf("proposed %s, which was not offered", r.Call.Name)
	}
}

type misbehaving struct{ how string }

func (misbehaving) Info() llm.Info { return llm.Info{Name: "misbehaving"} }

func (m misbehaving) Complete(ctx context.Context, _ llm.Request, _ func(string)) (llm.Reply, error) {
	if m.how == "panics" {
		panic("out of cheese")
	}
	select {} // hangs, whatever its context says
}

func TestGuardOutlivesABackendThatPanicsOrHangs(t *testing.T) {
	_, err := llm.Guard(context.Background(), misbehaving{"panics"}, llm.Request{}, nil)
	if err == nil || !strings.Contains(err.Error(), "out of cheese") {
		t.Errorf("panic became %v", err)
	}
	stop := errors.New("the person pressed escape")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(stop)
	if _, err := llm.Guard(ctx, misbehaving{"hangs"}, llm.Request{}, nil); !errors.Is(err, stop) {
		t.Errorf("hanging backend gave %v, want the reason of the interrupt", err)
	}
}
