package main_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheRealBinaryTalksToAServerOnThisMachine starts the program as a person
// would, with a server that speaks the chat completions and nothing else set.
func TestTheRealBinaryTalksToAServerOnThisMachine(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/models", func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(rw, `{"object":"list","data":[{"id":"tiny.gguf","meta":{"n_ctx_train":32768}}]}`)
	})
	mux.HandleFunc("/v1/chat/completions", func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		delta := `{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"org-find-headline","arguments":"{\"text\":\"ladder\",\"explanation\":\"The person asks about the ladder.\"}"}}]}`
		if strings.Contains(string(body), `"role":"tool"`) {
			delta = `{"content":"You still have to buy a ladder."}`
		}
		fmt.Fprintf(rw, "data: {\"choices\":[{\"delta\":%s,\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", delta)
	})
	server := httptest.NewServer(mux)
	defer server.Close()

	home := t.TempDir()
	run, err := os.MkdirTemp("", "pp") // short: socket paths are limited
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(run)
	memex := filepath.Join(home, "memex")
	if err := os.MkdirAll(memex, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(memex, "inbox.org"), []byte("* TODO Buy a ladder\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	defer stopDaemon(filepath.Join(home, ".local", "state", "passepartout", "daemon.lock"))
	pp := func(args ...string) string {
		t.Helper()
		c := exec.Command(binary, args...)
		c.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "XDG_RUNTIME_DIR=" + run, "MEMEX_DIR=" + memex, "LOCAL_URL=" + server.URL + "/v1", "OLLAMA_URL=http://127.0.0.1:1"}
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	if got := pp("what about that ladder thing?"); got != "You still have to buy a ladder.\n" {
		t.Errorf("answered %q", got)
	}
	if got := pp("models"); !strings.Contains(got, "local/tiny.gguf  32k  free  local") || !strings.Contains(got, "cognition/chat: local/tiny.gguf, reflex") {
		t.Errorf("models: %s", got)
	}
	if got := pp("--json", "models"); !strings.Contains(got, `"recommended": "local/tiny.gguf"`) || !strings.Contains(got, `"why": "on this machine`) {
		t.Errorf("models as JSON: %s", got)
	}
	if got := pp("cost"); !strings.Contains(got, "local/tiny.gguf  2 calls  0 failed") {
		t.Errorf("cost: %s", got)
	}
}
