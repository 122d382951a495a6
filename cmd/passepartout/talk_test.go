package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A heardModel answers over HTTP and remembers what it was shown.
type heardModel struct {
	*httptest.Server
	answer func(last string) string // what is said last to the delta of an answer

	mu    sync.Mutex
	shown [][]string // "role: text" of every request
}

func newHeardModel(t *testing.T, answer func(last string) string) *heardModel {
	t.Helper()
	m := &heardModel{answer: answer}
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/models", func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(rw, `{"object":"list","data":[{"id":"tiny.gguf","meta":{"n_ctx_train":32768}}]}`)
	})
	mux.HandleFunc("/v1/chat/completions", func(rw http.ResponseWriter, r *http.Request) {
		var req struct {
			Messages []struct {
				Role    string
				Content string
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}
		var said []string
		last := ""
		for _, x := range req.Messages {
			said = append(said, x.Role+": "+x.Content)
			if x.Role == "user" || x.Role == "tool" {
				if text := x.Content; !strings.HasPrefix(text, "TIME\n") {
					last = text
				}
			}
		}
		m.mu.Lock()
		m.shown = append(m.shown, said)
		m.mu.Unlock()
		fmt.Fprintf(rw, "data: {\"choices\":[{\"delta\":%s,\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", m.answer(last))
	})
	m.Server = httptest.NewServer(mux)
	t.Cleanup(m.Close)
	return m
}

// last is the last request, without what does not belong to the conversation.
func (m *heardModel) last() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.shown) == 0 {
		return ""
	}
	return strings.Join(slices.DeleteFunc(slices.Clone(m.shown[len(m.shown)-1]), func(s string) bool { return strings.HasPrefix(s, "system: ") }), "\n")
}

func (h *newcomersHome) lock() string {
	return filepath.Join(h.home, ".local", "state", "passepartout", "daemon.lock")
}

// TestAKilledDaemonRemembersTheConversation: the model is shown what was said before
// the daemon died, and not what was taken back.
func TestAKilledDaemonRemembersTheConversation(t *testing.T) {
	model := newHeardModel(t, func(last string) string { return says("I heard " + last) })
	h := bareHome(t)
	h.env = append(h.env, "LOCAL_URL="+model.URL+"/v1")
	h.file("memex/inbox/inbox.org", "* TODO Something\n", 0o600)
	say := func(text string) string {
		t.Helper()
		out, code := h.call("", text)
		if code != 0 {
			t.Fatalf("%q: exit %d, %s", text, code, out)
		}
		return out
	}
	say("my bicycle is green")
	killDaemon(h.lock())
	if out := say("which colour was it?"); !strings.Contains(out, "I heard which colour") {
		t.Errorf("answered %q", out)
	}
	if got := model.last(); !strings.Contains(got, "user: my bicycle is green") || !strings.Contains(got, "assistant: I heard my bicycle is green") {
		t.Errorf("after a kill the model is shown\n%s", got)
	}

	say("my bicycle was stolen")
	if out := say("/rewind"); !strings.Contains(out, "forgotten") {
		t.Errorf("/rewind: %s", out)
	}
	for _, when := range []string{"before", "after"} {
		say("and now?")
		if got := model.last(); strings.Contains(got, "stolen") || !strings.Contains(got, "my bicycle is green") {
			t.Errorf("%s a kill a rewound turn makes this conversation\n%s", when, got)
		}
		killDaemon(h.lock())
	}
	say("/new")
	killDaemon(h.lock())
	say("hello")
	if got := model.last(); strings.Contains(got, "bicycle") || !strings.Contains(got, "hello") {
		t.Errorf("after /new and a kill the model is shown\n%s", got)
	}
}

// TestAKilledDaemonForgetsNoLabel: what a session has read keeps it from the network
// after a crash as before.
func TestAKilledDaemonForgetsNoLabel(t *testing.T) {
	model := newHeardModel(t, func(last string) string {
		switch {
		case strings.HasPrefix(last, "read"):
			return calls("org-find-headline", map[string]any{"explanation": "The script of this test says so.", "text": "diary"})
		case strings.HasPrefix(last, "send"):
			return calls("web-fetch", map[string]any{"explanation": "The script of this test says so.", "url": "https://example.com/?q=birds"})
		}
		return says("done")
	})
	h := bareHome(t)
	h.env = append(h.env, "LOCAL_URL="+model.URL+"/v1", "PRIVACY_FILTER_TAGS=@personal")
	h.file("memex/diary.org", "* Diary :@personal:\nI met a bird.\n", 0o600)
	objections := func(session string) string {
		t.Helper()
		h.call("", "--session", session, "send it")
		return model.last()
	}
	if out := objections("clean"); strings.Contains(out, "(flow.") {
		t.Fatalf("a session that read nothing: %s", out)
	}
	if out, code := h.call("", "--session", "tainted", "read it"); code != 0 {
		t.Fatalf("exit %d, %s", code, out)
	}
	before := objections("tainted")
	killDaemon(h.lock())
	after := objections("tainted")
	for when, out := range map[string]string{"before": before, "after": after} {
		if !strings.Contains(out, "(flow.") {
			t.Errorf("%s a kill a session that read something private: %s", when, out)
		}
	}
}
