package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// with returns how the program is called in a home of its own, with a scripted
// model on this machine. What the model says to request n is said by answer.
func with(t *testing.T, answer func(n int, say func(delta string))) func(args ...string) *exec.Cmd {
	t.Helper()
	n := 0
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/models", func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(rw, `{"object":"list","data":[{"id":"tiny.gguf","meta":{"n_ctx_train":32768}}]}`)
	})
	mux.HandleFunc("/v1/chat/completions", func(rw http.ResponseWriter, _ *http.Request) {
		n++ // the client asks one after the other
		answer(n, func(delta string) {
			raw, err := json.Marshal(delta)
			if err != nil {
				t.Error(err)
			}
			fmt.Fprintf(rw, "data: {\"choices\":[{\"delta\":{\"content\":%s}}]}\n\n", raw)
			rw.(http.Flusher).Flush()
		})
		_, _ = io.WriteString(rw, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	home := t.TempDir()
	run, err := os.MkdirTemp("", "pp") // short: socket paths are limited
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(run) })
	t.Cleanup(func() { stopDaemon(filepath.Join(home, ".local", "state", "passepartout", "daemon.lock")) })
	memex := filepath.Join(home, "memex")
	if err := os.MkdirAll(memex, 0o755); err != nil {
		t.Fatal(err)
	}
	return func(args ...string) *exec.Cmd {
		c := exec.Command(binary, args...)
		c.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "XDG_RUNTIME_DIR=" + run, "MEMEX_DIR=" + memex, "LOCAL_URL=" + server.URL + "/v1", "OLLAMA_URL=http://127.0.0.1:1"}
		return c
	}
}

func TestAnAnswerIsPrintedWhileTheModelIsStillSpeaking(t *testing.T) {
	first, second := strings.Repeat("The first part was said before. ", 20), strings.Repeat("The second part came later. ", 20)
	more := make(chan struct{})
	pp := with(t, func(_ int, say func(string)) {
		say(first)
		select {
		case <-more:
		case <-time.After(time.Minute):
			t.Error("nothing was printed before the answer was whole")
		}
		say(second)
	})
	c := pp("chat", "--stream", "tell me a story")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	begin := make([]byte, 32)
	if _, err := io.ReadFull(out, begin); err != nil {
		t.Fatal(err)
	}
	close(more)
	rest, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := string(begin) + string(rest); got != strings.TrimSpace(first+second)+"\n" {
		t.Errorf("printed %q", got)
	}
	if whole, err := pp("chat", "again").Output(); err != nil || string(whole) != strings.TrimSpace(first+second)+"\n" {
		t.Errorf("without --stream %q, %v", whole, err)
	}
}

func TestWhatWasShownAndIsNotTheAnswerIsTakenBack(t *testing.T) {
	preface := strings.Repeat("I will look at the agenda for you now. ", 20)
	pp := with(t, func(n int, say func(string)) {
		if n == 1 {
			say(preface)
			say("\n(:TARGET :TOOL :PAYLOAD (:TOOL \"agenda\" :ARGS (:SPAN \"today\") :EXPLANATION \"The person asked for it.\"))")
			return
		}
		say("Nothing is due.")
	})
	c := pp("--stream", "what is due?")
	var talk bytes.Buffer
	c.Stderr = &talk
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if last := lines[len(lines)-1]; last != "Nothing is due." || !strings.HasPrefix(string(out), "I will look") || strings.Contains(string(out), ":TARGET") {
		t.Errorf("printed %q", out)
	}
	if !strings.Contains(talk.String(), "taken back") {
		t.Errorf("the person was not told: %q", talk.String())
	}
}
