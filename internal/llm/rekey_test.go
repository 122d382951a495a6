package llm_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"passepartout/internal/llm"
)

// TestAKeyThatIsReplacedIsUsedFromTheNextRequestOn: also by a provider that had none,
// and what was redacted before is looked at again.
func TestAKeyThatIsReplacedIsUsedFromTheNextRequestOn(t *testing.T) {
	var heard []string
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/models") {
			fmt.Fprint(rw, `{"data":[{"id":"m"}]}`)
			return
		}
		heard = append(heard, r.Header.Get("Authorization"))
		fmt.Fprint(rw, "data: {\"choices\":[{\"delta\":{\"content\":\"fine\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	defer server.Close()
	secret := "one"
	var redacted []string
	e, err := llm.New(llm.Options{
		Providers: []llm.Provider{{Name: "local", Base: server.URL, Key: "one", Model: "m"}}, Cascade: []string{"local"},
		Redact: func(s string) string {
			redacted = append(redacted, s)
			return strings.ReplaceAll(s, secret, "[redacted]")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ask := func() {
		t.Helper()
		if _, err := e.Complete(context.Background(), llm.Request{Messages: []llm.Message{{Role: llm.User, Text: "hello"}}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	ask()
	secret = "two"
	e.RedactAnew()
	if err := e.Rekey("local", "two"); err != nil {
		t.Fatal(err)
	}
	ask()
	if got := fmt.Sprint(heard); got != "[Bearer one Bearer two]" {
		t.Errorf("the provider heard %s", got)
	}
	n := 0
	for _, s := range redacted {
		if s == "hello" {
			n++
		}
	}
	if n != 2 {
		t.Errorf("the same text was looked at %d times, want once for each time that credentials changed", n)
	}
	if err := e.Rekey("nobody", "x"); err == nil {
		t.Error("a provider nobody knows was given a key")
	}
	if err := e.Rekey("groq", "three"); err != nil {
		t.Error(err)
	}
	if err := e.Use(llm.Route{Tier: llm.Cognition, Slot: llm.Chat, Model: "groq/m"}); err != nil {
		t.Errorf("a provider that got a key cannot be used: %v", err)
	}
}
