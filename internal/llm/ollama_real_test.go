package llm_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"passepartout/internal/llm"
)

// realOllama starts the program OLLAMA_BIN names on a port of its own and gives it
// the model in the file OLLAMA_GGUF names. Any small model will do, and best one
// of random weights: what is tested is the wire.
func realOllama(t *testing.T) (base string) {
	bin, gguf := os.Getenv("OLLAMA_BIN"), os.Getenv("OLLAMA_GGUF")
	if bin == "" || gguf == "" {
		t.Skip("no real Ollama to talk to: OLLAMA_BIN names the program, OLLAMA_GGUF a small model for it")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	base = "http://" + addr
	home := t.TempDir()
	var log bytes.Buffer
	c := exec.Command(bin, "serve")
	c.Env = []string{"HOME=" + home, "OLLAMA_MODELS=" + filepath.Join(home, "models"), "OLLAMA_HOST=" + addr, "PATH=" + os.Getenv("PATH")}
	c.Stdout, c.Stderr = &log, &log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(os.Interrupt)
		_ = c.Wait()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		if t.Failed() {
			t.Logf("what the server said:\n%s", log.String())
		}
	})
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if _, err := post(base, "/api/version", nil); err == nil {
			break
		}
		if time.Since(began) > time.Minute {
			t.Fatal("it does not answer")
		}
	}
	raw, err := os.ReadFile(gguf)
	if err != nil {
		t.Fatal(err)
	}
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(raw))
	if _, err := post(base, "/api/blobs/"+digest, raw); err != nil {
		t.Fatal(err)
	}
	model := js(map[string]any{
		"model": "tiny", "stream": false, "files": map[string]string{"tiny.gguf": digest},
		"template": "{{- range .Messages }}<|im_start|>{{ .Role }}\n{{ .Content }}<|im_end|>{{ end }}<|im_start|>assistant\n",
	})
	if out, err := post(base, "/api/create", []byte(model)); err != nil || !strings.Contains(out, "success") {
		t.Fatalf("%s, %v", out, err)
	}
	return base
}

// post sends a body, or asks when there is none.
func post(base, path string, body []byte) (string, error) {
	method := http.MethodPost
	if body == nil {
		method = http.MethodGet
	}
	req, err := http.NewRequest(method, base+path, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("%s: %s", resp.Status, raw)
	}
	return string(raw), err
}

func TestARealOllama(t *testing.T) {
	base := realOllama(t)
	engine := func(model string) *llm.Engine {
		e, err := llm.New(llm.Options{
			Providers: []llm.Provider{{Name: "ollama", Base: base, Model: model}}, Cascade: []string{"ollama"}, Timeout: time.Minute, Backoff: time.Millisecond,
			Transport: http.DefaultTransport,
		})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	ask := func(text string) llm.Request {
		return llm.Request{System: "You are tiny.", Messages: []llm.Message{{Role: llm.User, Text: text}}, MaxReply: 16}
	}

	t.Run("it is found and listed", func(t *testing.T) {
		e := engine("")
		if got := e.Choice(ctx, llm.Purpose{Tier: llm.Cognition, Slot: llm.Chat}); len(got) == 0 || got[0] != "ollama/tiny:latest" {
			t.Errorf("chosen: %q", got)
		}
		cs := e.Catalogs(ctx, true)
		if len(cs) != 1 || len(cs[0].Models) != 1 || cs[0].Models[0].Window == 0 || !cs[0].Models[0].Local {
			t.Errorf("offered: %+v", cs)
		}
	})
	t.Run("it streams an answer", func(t *testing.T) {
		var pieces []string
		r, err := engine("tiny").Complete(ctx, ask("hello"), func(d string) { pieces = append(pieces, d) })
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d pieces: %q, usage %+v, cut %v", len(pieces), r.Text, r.Usage, r.Cut)
		if len(pieces) < 2 || strings.Join(pieces, "") != r.Text || r.Usage.In == 0 || r.Usage.Out == 0 || r.Usage.Out > 16 {
			t.Errorf("%+v from %q", r, pieces)
		}
	})
	t.Run("it is told of tools in words when it has no native calls", func(t *testing.T) {
		req := ask("hello")
		req.Tools = allTools[:1]
		if r, err := engine("tiny").Complete(ctx, req, nil); err != nil || r.Text == "" {
			t.Errorf("%+v, %v", r, err)
		}
	})
	// The tiny model has a token for every letter, so its prompts are far longer
	// than the estimate: exactly the case in which a check before sending is blind.
	t.Run("a prompt it cannot hold is refused and not cut", func(t *testing.T) {
		req := ask("question")
		req.Messages = append([]llm.Message{
			{Role: llm.User, Text: strings.Repeat("hello there my friend ", 200)}, {Role: llm.Assistant, Text: "yes"},
		}, req.Messages...)
		_, err := engine("tiny").Complete(ctx, req, nil)
		t.Logf("estimate %d tokens: %v", req.Estimate(), err)
		if class(err) != "context-length" {
			t.Errorf("ended with %v", err)
		}
		req.Messages[0].Text = strings.Repeat("far beyond what it holds ", 4000)
		if _, err := engine("tiny").Complete(ctx, req, nil); class(err) != "context-length" {
			t.Errorf("ended with %v", err)
		}
	})
	t.Run("a model it does not have is no-model", func(t *testing.T) {
		if _, err := engine("absent").Complete(ctx, ask("hello"), nil); class(err) != "no-model" {
			t.Errorf("ended with %v", err)
		}
	})
	t.Run("it can be stopped in the middle and goes on for others", func(t *testing.T) {
		e := engine("tiny")
		sub, stop := context.WithCancel(ctx)
		req := ask("hello")
		req.MaxReply = 1500
		if _, err := e.Complete(sub, req, func(string) { stop() }); err == nil {
			t.Error("it was not stopped")
		}
		stop()
		if _, err := e.Complete(ctx, ask("hello"), nil); err != nil {
			t.Error(err)
		}
	})
	t.Run("its OpenAI endpoint is understood too", func(t *testing.T) {
		e, err := llm.New(llm.Options{
			Providers: []llm.Provider{{Name: "local", Base: base + "/v1", Model: "tiny"}}, Cascade: []string{"local"}, Timeout: time.Minute, Transport: http.DefaultTransport,
		})
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.Complete(ctx, ask("hello"), nil)
		t.Logf("%q, usage %+v", r.Text, r.Usage)
		if err != nil || r.Text == "" || r.Usage.Out == 0 {
			t.Errorf("%+v, %v", r, err)
		}
	})
	t.Run("it embeds", func(t *testing.T) {
		texts := []string{"alpha bravo", "charlie", "alpha bravo"}
		var all [][][]float32
		for _, p := range []llm.Provider{{Name: "ollama", Base: base, Model: "tiny"}, {Name: "local", Base: base + "/v1", Model: "tiny"}} {
			m, err := engine("tiny").Embedder(p)
			if err != nil {
				t.Fatal(err)
			}
			vs, err := m.Embed(ctx, texts, false)
			if err != nil || len(vs) != 3 || !m.Local() {
				t.Fatalf("%s: %d vectors, local %v, %v", m.Name(), len(vs), m.Local(), err)
			}
			t.Logf("%s: %d numbers each, like %v", m.Name(), len(vs[0]), vs[0][:4])
			if !slices.Equal(vs[0], vs[2]) || slices.Equal(vs[0], vs[1]) {
				t.Errorf("%s: the same text has two vectors, or two texts have one", m.Name())
			}
			all = append(all, vs)
		}
		if !slices.Equal(all[0][1], all[1][1]) {
			t.Errorf("by its own interface and by OpenAI's: %v and %v", all[0][1][:4], all[1][1][:4])
		}
	})
}
