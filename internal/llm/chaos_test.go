package llm_test

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"go.uber.org/goleak"

	"passepartout/internal/llm"
)

// A mishap is one way a provider fails, what it must be taken for, how often the
// provider is asked, and whether it may charge for it.
type mishap struct {
	class  string
	tries  int
	billed bool
	serve  func(f fake) http.HandlerFunc
}

var mishaps = []mishap{
	{"rate-limit", 2, false, func(fake) http.HandlerFunc {
		return status(429, `{"error":{"message":"slow down","type":"rate_limit_error"}}`, "Retry-After-Ms", "5")
	}},
	{"quota", 1, false, func(fake) http.HandlerFunc {
		return status(429, `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`)
	}},
	{"auth", 1, false, func(f fake) http.HandlerFunc { return f.badKey }},
	{"overload", 2, false, func(fake) http.HandlerFunc {
		return status(529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)
	}},
	{"context-length", 1, false, func(f fake) http.HandlerFunc { return f.tooLong }},
	{"refused", 1, true, func(f fake) http.HandlerFunc { return f.stream(f.refused) }},
	{"malformed", 1, true, func(f fake) http.HandlerFunc {
		return f.stream("data: <html>welcome to the hotel network</html>\n\n")
	}},
	{"timeout", 1, true, func(fake) http.HandlerFunc { return hang }},
	{"stalled", 1, true, func(f fake) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(rw, f.early)
			rw.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}},
	{"network", 2, true, func(fake) http.HandlerFunc {
		return func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	}},
	{"server", 2, true, func(f fake) http.HandlerFunc { return f.stream(f.midError) }},
	{"no-model", 1, false, func(f fake) http.HandlerFunc { return f.noModel }},
}

func TestChaos(t *testing.T) {
	for _, f := range fakes {
		for _, m := range mishaps {
			t.Run(f.provider+"/"+m.class, func(t *testing.T) {
				leaks := goleak.IgnoreCurrent()
				w := newWorld(t)
				f.install(w, m.serve(f))
				// The next provider is well, and shows that the cascade goes on.
				next := anthropicFake
				if f.provider == "anthropic" {
					next = chatFake
				}
				next.install(w, next.stream(next.answer("I am the next one.")))
				ledger := llm.NewLedger(llm.Caps{Day: mustUSD(t, "1")}, nil, nil)
				e := w.engineFor(f, func(o *llm.Options) {
					o.Timeout, o.Stall = 150*time.Millisecond, 150*time.Millisecond
					o.Providers = append(o.Providers, llm.Provider{Name: next.provider, Key: "k", Model: "test"})
					o.Cascade = append(o.Cascade, next.provider)
					o.Ledger = ledger
				})
				r, err := e.Complete(ctxFor(t), hello(), nil)
				if err != nil || r.Text != "I am the next one." || r.Model != next.provider+"/test" {
					t.Fatalf("the cascade ended with %+v, %v", r, err)
				}
				asked := 0
				for _, q := range w.requests() {
					if q.host+q.path == f.hostPath || q.host+q.path == f.hostPath+"?alt=sse" {
						asked++
					}
				}
				if asked != m.tries {
					t.Errorf("asked %d times, want %d", asked, m.tries)
				}
				entries := ledger.Entries()
				if len(entries) != m.tries+1 {
					t.Fatalf("%d entries in the ledger for %d calls", len(entries), m.tries+1)
				}
				for _, x := range entries[:m.tries] {
					if string(x.Class) != m.class {
						t.Errorf("taken for %q, want %q", x.Class, m.class)
					}
					if billed := x.Usage.In > 0; billed != m.billed {
						t.Errorf("billed %v, want %v", billed, m.billed)
					}
				}
				w.client.CloseIdleConnections()
				w.server.CloseClientConnections()
				w.server.Close()
				if err := goleak.Find(leaks); err != nil {
					t.Errorf("left behind: %v", err)
				}
			})
		}
	}
}

func TestACascadeThatIsExhaustedSaysWhatWasTriedAndWhatWouldHelp(t *testing.T) {
	w := newWorld(t)
	chatFake.install(w, chatFake.badKey)
	anthropicFake.install(w, anthropicFake.tooLong)
	e := w.engine(llm.Options{
		Providers: []llm.Provider{{Name: "groq", Key: "k", Model: "test"}, {Name: "anthropic", Key: "k", Model: "test"}}, Cascade: []string{"groq", "anthropic"},
	})
	_, err := e.Complete(ctxFor(t), hello(), nil)
	var all *llm.ExhaustedError
	if !errors.As(err, &all) || len(all.Attempts) != 2 {
		t.Fatalf("%v", err)
	}
	want := "Neural Cascade Failure: no model answered.\n" +
		"  groq/test  auth: 401 Unauthorized: Invalid API Key (check the provider's key)\n" +
		"  anthropic/test  context-length: 400 Bad Request: prompt is too long: 210000 tokens > 200000 maximum (lower CONTEXT_MAX_TOKENS or choose a model with a longer context)"
	if all.Explain() != want {
		t.Errorf("explained as\n%s\nwant\n%s", all.Explain(), want)
	}
	var one *llm.Error
	if !errors.As(err, &one) || one.Provider != "groq/test" {
		t.Errorf("the attempts cannot be asked for: %v", one)
	}
}

func TestAHangingProviderCostsItsDeadlineOnly(t *testing.T) {
	w := newWorld(t)
	chatFake.install(w, hang)
	anthropicFake.install(w, anthropicFake.stream(anthropicFake.midError))
	ollamaFake.install(w, ollamaFake.stream(ollamaFake.answer("third")))
	e := w.engine(llm.Options{
		Timeout:   200 * time.Millisecond,
		Providers: []llm.Provider{{Name: "groq", Key: "k", Model: "test"}, {Name: "anthropic", Key: "k", Model: "test"}, {Name: "ollama", Model: "test"}},
		Cascade:   []string{"groq", "anthropic", "ollama"},
	})
	began := time.Now()
	r, err := e.Complete(ctxFor(t), hello(), nil)
	if err != nil || r.Text != "third" {
		t.Fatalf("%+v, %v", r, err)
	}
	t.Logf("answered after %v with a deadline of 200 ms", time.Since(began).Round(time.Millisecond))
}

func TestAfterThreeFailuresAProviderIsLeftAloneForAWhile(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	w := newWorld(t)
	chatFake.install(w, status(500, "broken"))
	e := w.engineFor(chatFake, func(o *llm.Options) { o.Now = func() time.Time { return now } })
	ask := func() string {
		_, err := e.Complete(ctxFor(t), hello(), nil)
		return class(err)
	}
	for range 2 { // two tries each
		if c := ask(); c != "server" {
			t.Fatalf("class %q", c)
		}
	}
	before := len(w.requests())
	if c := ask(); c != "breaker-open" || len(w.requests()) != before {
		t.Errorf("class %q, %d requests during the break", c, len(w.requests())-before)
	}
	now = now.Add(time.Minute)
	chatFake.install(w, chatFake.stream(chatFake.answer("well again")))
	if r, err := e.Complete(ctxFor(t), hello(), nil); err != nil || r.Text != "well again" {
		t.Errorf("after the break: %+v, %v", r, err)
	}
	if r, err := e.Complete(ctxFor(t), hello(), nil); err != nil || r.Text != "well again" {
		t.Errorf("the breaker did not close: %+v, %v", r, err)
	}
}

func TestAnInterruptEndsACallAtOnceAndIsNobodysFailure(t *testing.T) {
	w := newWorld(t)
	entered := make(chan struct{})
	chatFake.install(w, func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
	})
	e := w.engineFor(chatFake, nil)
	ctx, stop := contextWithCause()
	done := make(chan error, 1)
	go func() {
		_, err := e.Complete(ctx, hello(), nil)
		done <- err
	}()
	<-entered
	why := errors.New("escape")
	stop(why)
	select {
	case err := <-done:
		if !errors.Is(err, why) {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the interrupt was not heard")
	}
}
