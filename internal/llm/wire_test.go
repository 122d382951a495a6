package llm_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"passepartout/internal/llm"
)

var update = flag.Bool("update", false, "write the golden files")

func TestEveryBackendReadsTextItsUsageAndItsDeltas(t *testing.T) {
	const text = "Grüße, 世界! Nothing is due."
	for _, f := range fakes {
		t.Run(f.provider, func(t *testing.T) {
			w := newWorld(t)
			f.install(w, f.stream(f.answer(text)))
			var deltas strings.Builder
			r, err := w.engineFor(f, nil).Complete(ctxFor(t), hello(), func(s string) { deltas.WriteString(s) })
			if err != nil {
				t.Fatal(err)
			}
			want := llm.Usage{In: 100, Cached: 64, Out: 7}
			if f.provider == "ollama" {
				want.Cached = 0 // it does not say
			}
			if r.Text != text || deltas.String() != text || r.Usage != want || r.Model != f.provider+"/test" || r.Cut {
				t.Errorf("reply %+v, deltas %q", r, deltas.String())
			}
		})
	}
}

func TestEveryBackendReadsACallWithItsArguments(t *testing.T) {
	args := `{"span":"week","limit":3,"deep":true,"none":null,"tags":["a","b"],"explanation":"because the person asked"}`
	for _, f := range fakes {
		t.Run(f.provider, func(t *testing.T) {
			w := newWorld(t)
			f.install(w, f.stream(f.call("agenda", args)))
			r, err := w.engineFor(f, nil).Complete(ctxFor(t), talk(), nil)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]any{"span": "week", "limit": int64(3), "deep": true, "tags": []string{"a", "b"}, "explanation": "because the person asked"}
			if r.Call == nil || r.Call.Name != "agenda" || !cmp.Equal(r.Call.Args, want) || r.Problem != "" {
				t.Errorf("reply %+v, call %+v", r, r.Call)
			}
		})
	}
}

func TestEveryBackendTellsAnAnswerThatWasCutOff(t *testing.T) {
	for _, f := range fakes {
		w := newWorld(t)
		f.install(w, f.stream(f.cut("half a sent")))
		r, err := w.engineFor(f, nil).Complete(ctxFor(t), hello(), nil)
		if err != nil || !r.Cut || r.Text != "half a sent" {
			t.Errorf("%s: %+v, %v", f.provider, r, err)
		}
	}
}

func TestACallWithBrokenArgumentsIsAProblemAndNeverACall(t *testing.T) {
	for _, args := range []string{`{"span":"week"`, `{"span":"a","span":"b"}`, `{"span":"a","SPAN":"b"}`, `["week"]`, `week`, `{"a":1} {"b":2}`} {
		w := newWorld(t)
		chatFake.install(w, chatFake.stream(chatFake.call("agenda", args)))
		r, err := w.engineFor(chatFake, nil).Complete(ctxFor(t), talk(), nil)
		if err != nil || r.Call != nil || r.Problem == "" {
			t.Errorf("%s: %+v, %v", args, r, err)
		}
	}
}

func TestAThousandCallsAreARunawayAndAFewAreCounted(t *testing.T) {
	many := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteString(`{"message":{"tool_calls":[{"function":{"name":"agenda","arguments":{}}}]},"done":false}` + "\n")
		}
		return b.String() + `{"done":true,"done_reason":"stop"}` + "\n"
	}
	for n, extra := range map[int]int{1: 0, 3: 2, 1000: 0} {
		w := newWorld(t)
		ollamaFake.install(w, ollamaFake.stream(many(n)))
		r, err := w.engineFor(ollamaFake, nil).Complete(ctxFor(t), talk(), nil)
		if err != nil || r.Extra != extra || (r.Call == nil) != (n == 1000) || (r.Problem != "") != (n == 1000) {
			t.Errorf("%d calls: %+v, %v", n, r, err)
		}
	}
}

// TestRequestsAreAsTheProvidersDocumentThem compares whole requests with files
// that were checked by hand against the documentation, and the rules that the
// providers enforce.
func TestRequestsAreAsTheProvidersDocumentThem(t *testing.T) {
	for _, f := range fakes {
		t.Run(f.provider, func(t *testing.T) {
			w := newWorld(t)
			f.install(w, f.stream(f.answer("fine")))
			if _, err := w.engineFor(f, nil).Complete(ctxFor(t), talk(), nil); err != nil {
				t.Fatal(err)
			}
			rs := w.requests()
			last := rs[len(rs)-1]
			var pretty bytes.Buffer
			if err := json.Indent(&pretty, []byte(last.body), "", "  "); err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", "wire", f.provider+".json")
			if *update {
				if err := os.WriteFile(golden, append(pretty.Bytes(), '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), pretty.String()+"\n"); d != "" {
				t.Errorf("the request changed (-want +got):\n%s", d)
			}
			keyAt := map[string]string{"groq": "Authorization", "openai": "Authorization", "anthropic": "X-Api-Key", "gemini": "X-Goog-Api-Key"}[f.provider]
			if keyAt != "" && !strings.Contains(last.header.Get(keyAt), key(f.provider)) {
				t.Errorf("no key in %s", keyAt)
			}
			if strings.Contains(last.path, "key") || strings.Contains(last.body, key(f.provider)) && key(f.provider) != "" {
				t.Error("the key stands where it can be logged")
			}
		})
	}
}

func TestEveryResultFollowsItsCall(t *testing.T) {
	w := newWorld(t)
	chatFake.install(w, chatFake.stream(chatFake.answer("fine")))
	if _, err := w.engineFor(chatFake, nil).Complete(ctxFor(t), talk(), nil); err != nil {
		t.Fatal(err)
	}
	var body struct {
		Messages []struct {
			Role       string `json:"role"`
			ToolCallID string `json:"tool_call_id"`
			ToolCalls  []struct {
				ID string `json:"id"`
			} `json:"tool_calls"`
		} `json:"messages"`
	}
	if err := json.Unmarshal([]byte(w.requests()[0].body), &body); err != nil {
		t.Fatal(err)
	}
	open := map[string]bool{}
	for i, m := range body.Messages {
		for _, c := range m.ToolCalls {
			open[c.ID] = true
		}
		if m.Role == "tool" {
			if !open[m.ToolCallID] {
				t.Errorf("message %d answers %q, which is not open", i, m.ToolCallID)
			}
			delete(open, m.ToolCallID)
		}
	}
	if len(open) > 0 {
		t.Errorf("calls without a result: %v", open)
	}
}

func TestForeignTextCannotEndItsOwnMark(t *testing.T) {
	w := newWorld(t)
	anthropicFake.install(w, anthropicFake.stream(anthropicFake.answer("fine")))
	if _, err := w.engineFor(anthropicFake, nil).Complete(ctxFor(t), talk(), nil); err != nil {
		t.Fatal(err)
	}
	body := w.requests()[0].body
	if strings.Count(body, `\u003c/tool-result\u003e`) != 2 || !strings.Contains(body, `trust=\"untrusted\"`) {
		t.Errorf("marks are not kept apart: %s", body)
	}
}

func TestSSEIsReadHoweverItIsCut(t *testing.T) {
	text := "Grüße, 世界!"
	whole := chatFake.answer(text)
	noDone := strings.ReplaceAll(whole, "data: [DONE]\n\n", "")
	for name, body := range map[string]string{
		"as documented":          whole,
		"CR LF":                  strings.ReplaceAll(whole, "\n", "\r\n"),
		"CR alone":               strings.ReplaceAll(whole, "\n", "\r"),
		"keep-alives":            ": OPENROUTER PROCESSING\n\n" + strings.ReplaceAll(whole, "\n\n", "\n\n: ping\n\n"),
		"no blank after data":    strings.ReplaceAll(whole, "data: ", "data:"),
		"a byte order mark":      "\ufeff" + whole,
		"no [DONE]":              noDone,
		"no last blank line":     strings.TrimRight(noDone, "\n"),
		"unknown fields":         "id: 1\nretry: 5\nfoo: bar\n" + whole,
		"data over many lines":   strings.ReplaceAll(whole, `"choices":[{`, "\ndata: \"choices\":[{"),
		"empty events":           "event: ping\n\n\n\n" + whole,
		"text after [DONE]":      whole + "data: garbage\n\n",
		"unknown kinds of chunk": events(`{"object":"x","choices":[]}`) + whole,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			// One byte a write splits every line, every CR LF and every rune.
			chatFake.install(w, func(rw http.ResponseWriter, _ *http.Request) {
				for i := range len(body) {
					_, _ = io.WriteString(rw, body[i:i+1])
					rw.(http.Flusher).Flush()
				}
			})
			r, err := w.engineFor(chatFake, nil).Complete(ctxFor(t), hello(), nil)
			if err != nil || r.Text != text {
				t.Errorf("%q, %v", r.Text, err)
			}
		})
	}
}

func TestAPartOfAnAnswerIsNotAnAnswer(t *testing.T) {
	for _, f := range fakes {
		w := newWorld(t)
		f.install(w, f.stream(f.early))
		r, err := w.engineFor(f, nil).Complete(ctxFor(t), hello(), nil)
		if class(err) != "network" {
			t.Errorf("%s: %+v, %v", f.provider, r, err)
		}
	}
}

func TestOllamaIsAskedForEnoughContextAndChecked(t *testing.T) {
	w := newWorld(t)
	ollamaFake.install(w, ollamaFake.stream(ollamaFake.answer("fine")))
	e := w.engineFor(ollamaFake, nil)
	if _, err := e.Complete(ctxFor(t), hello(), nil); err != nil {
		t.Fatal(err)
	}
	rs := w.requests()
	if !strings.Contains(rs[len(rs)-1].body, `"num_ctx":8192`) {
		t.Errorf("no room was asked for: %s", rs[len(rs)-1].body)
	}
	long := hello()
	long.Messages[0].Text = strings.Repeat("word ", 9000)
	before := len(w.requests())
	if _, err := e.Complete(ctxFor(t), long, nil); class(err) != "context-length" {
		t.Errorf("a prompt longer than the model: %v", err)
	}
	for _, r := range w.requests()[before:] {
		if strings.HasSuffix(r.path, "/api/chat") {
			t.Error("a prompt that cannot fit was sent")
		}
	}
	w.handle(ollamaFake.hostPath, ollamaFake.stream(`{"message":{"content":"hm"},"done":true,"done_reason":"stop","prompt_eval_count":8192,"eval_count":1}`+"\n"))
	if _, err := e.Complete(ctxFor(t), hello(), nil); class(err) != "context-length" {
		t.Errorf("a prompt that was cut in silence: %v", err)
	}
}

func TestAModelWithoutToolsIsToldOfThemInWords(t *testing.T) {
	w := newWorld(t)
	ollamaFake.install(w, func(rw http.ResponseWriter, r *http.Request) {
		body := w.requests()[len(w.requests())-1].body
		if strings.Contains(body, `"tools"`) {
			status(400, `{"error":"registry.ollama.ai/library/test does not support tools"}`)(rw, r)
			return
		}
		if !strings.Contains(body, "(:TARGET :TOOL :PAYLOAD") {
			status(500, `{"error":"nobody described the tools"}`)(rw, r)
			return
		}
		ollamaFake.stream(ollamaFake.answer("fine"))(rw, r)
	})
	if r, err := w.engineFor(ollamaFake, nil).Complete(ctxFor(t), talk(), nil); err != nil || r.Text != "fine" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	w := newWorld(t)
	chatFake.install(w, status(302, "", "Location", "https://evil.example/collect"))
	if _, err := w.engineFor(chatFake, nil).Complete(ctxFor(t), hello(), nil); err == nil {
		t.Error("a redirect was taken for an answer")
	}
	for _, r := range w.requests() {
		if r.host != "api.groq.com" {
			t.Errorf("the key went to %s", r.host)
		}
	}
}

func TestKeysDoNotTravelInTheClear(t *testing.T) {
	for base, ok := range map[string]bool{
		"https://models.example.org": true, "http://127.0.0.1:1": true, "http://[::1]:1": true,
		"http://models.example.org": false, "http://192.168.1.5:11434": false, "ftp://x": false, "https://user@host": false, "nonsense": false,
	} {
		_, err := llm.New(llm.Options{Providers: []llm.Provider{{Name: "openai", Base: base, Key: "k"}}})
		if (err == nil) != ok {
			t.Errorf("%s: %v", base, err)
		}
	}
	if _, err := llm.New(llm.Options{Providers: []llm.Provider{{Name: "ollama", Base: "http://192.168.1.5:11434"}}}); err != nil {
		t.Errorf("a server in one's own network without a key: %v", err)
	}
}

// class is the class of the one failure in an error.
func class(err error) string {
	if e := (*llm.ExhaustedError)(nil); errors.As(err, &e) && len(e.Attempts) > 0 {
		return string(e.Attempts[len(e.Attempts)-1].Class)
	}
	return ""
}

// TestTheScriptedServersAreOnFile keeps what the scripted servers say where
// tools/wire finds it, which has the providers' own clients read it.
func TestTheScriptedServersAreOnFile(t *testing.T) {
	for _, f := range fakes {
		for name, body := range map[string]string{
			"answer": f.answer("Grüße, 世界! Nothing is due."),
			"call":   f.call("agenda", `{"explanation":"because","span":"week"}`),
		} {
			file := filepath.Join("testdata", "wire", f.provider+"."+name)
			if *update {
				if err := os.WriteFile(file, []byte(body), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(file); err != nil || string(want) != body {
				t.Errorf("%s is not what the scripted server says: %v", file, err)
			}
		}
	}
}
