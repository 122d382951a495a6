package recall_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"passepartout/internal/llm"
	"passepartout/internal/recall"
)

// An embeddingServer gives vectors by a function of the text, over real HTTP, in
// every dialect. All hosts lead to it.
type embeddingServer struct {
	*httptest.Server
	client http.Transport

	mu     sync.Mutex
	vector func(model, text string) []float32 // nil refuses the text
	broken int                                // status of every answer, 0 for none
	after  int                                // texts until it breaks
	old    bool                               // an Ollama without /api/embed
	seen   []string
	calls  int
}

func serveVectors(t *testing.T, vector func(model, text string) []float32) *embeddingServer {
	t.Helper()
	s := &embeddingServer{vector: vector, after: -1}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		s.Close()
	})
	return s
}

func (s *embeddingServer) RoundTrip(r *http.Request) (*http.Response, error) {
	to, err := url.Parse(s.URL)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host = to.Scheme, to.Host
	return s.client.RoundTrip(r)
}

func (s *embeddingServer) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var in struct {
		Model  string   `json:"model"`
		Input  []string `json:"input"`
		Prompt string   `json:"prompt"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if r.URL.Path == "/api/embed" && s.old {
		http.NotFound(w, r)
		return
	}
	s.calls++
	if in.Prompt != "" {
		in.Input = []string{in.Prompt}
	}
	s.seen = append(s.seen, in.Input...)
	if s.after >= 0 {
		if s.after -= len(in.Input); s.after < 0 {
			s.broken, s.after = http.StatusServiceUnavailable, -1
		}
	}
	if s.broken != 0 {
		http.Error(w, `{"error":{"message":"broken"}}`, s.broken)
		return
	}
	out := make([][]float32, len(in.Input))
	for i, t := range in.Input {
		if out[i] = s.vector(in.Model, t); out[i] == nil {
			http.Error(w, `{"error":{"message":"this text is invalid"}}`, http.StatusBadRequest)
			return
		}
	}
	s.answer(w, r.URL.Path, out)
}

func (s *embeddingServer) answer(w io.Writer, path string, vectors [][]float32) {
	enc := json.NewEncoder(w)
	switch path {
	case "/api/embed":
		_ = enc.Encode(map[string]any{"embeddings": vectors}) // the client sees what is missing
	case "/api/embeddings":
		_ = enc.Encode(map[string]any{"embedding": vectors[0]})
	default:
		var data []map[string]any
		for i := range vectors {
			i = len(vectors) - 1 - i // an order of its own
			data = append(data, map[string]any{"index": i, "embedding": vectors[i]})
		}
		_ = enc.Encode(map[string]any{"data": data})
	}
}

// texts are all that was sent, and how many calls it took.
func (s *embeddingServer) texts() ([]string, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen), s.calls
}

func (s *embeddingServer) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// embedder is one that uses the server; openai is elsewhere, ollama is here.
func (s *embeddingServer) embedder(t *testing.T, provider, model string, o llm.Options) *llm.Embedder {
	t.Helper()
	o.Transport = s
	e, err := llm.New(o)
	if err != nil {
		t.Fatal(err)
	}
	m, err := e.Embedder(llm.Provider{Name: provider, Model: model, Key: map[string]string{"openai": "k"}[provider]})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// stamped are notes as a memex has them: with a stamp that follows the text.
func stamped(docs []recall.Doc) []recall.Doc {
	docs = slices.Clone(docs)
	for i := range docs {
		docs[i].Stamp = sha256.Sum256([]byte(docs[i].Title + "\n" + docs[i].Body))
	}
	return docs
}

// library is an index of notes that knows their parts.
func library(docs []recall.Doc) *recall.Index {
	by := map[string]recall.Doc{}
	for _, d := range docs {
		by[d.ID] = d
	}
	x := recall.New(recall.Options{
		Parts: func(id string) (string, string, bool) { return by[id].Title, by[id].Body, by[id].Private },
		Text:  func(id string) string { return by[id].Title + "\n" + by[id].Body },
	})
	for _, d := range docs {
		x.Put(d)
	}
	return x
}

// noise is a vector that says nothing about its text.
func noise(dims int) func(model, text string) []float32 {
	return func(model, text string) []float32 {
		h := fnv.New64a()
		_, _ = h.Write([]byte(model + text)) // a hash never fails to write
		r := rand.New(rand.NewPCG(h.Sum64(), 3))
		v := make([]float32, dims)
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		return v
	}
}

// until waits for something another goroutine does.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for range 4000 {
		if done() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("never: %s", what)
}

func drain(t *testing.T, f *recall.Feed) {
	t.Helper()
	if err := f.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestVectorsAreMadeOnceAndKept(t *testing.T) {
	for _, provider := range []string{"ollama", "openai"} {
		t.Run(provider, func(t *testing.T) {
			s := serveVectors(t, noise(100))
			docs := stamped(invented(300, 1))
			dir := t.TempDir()
			f := recall.NewFeed(library(docs), recall.FeedOptions{Dir: dir, Embedder: s.embedder(t, provider, "m", llm.Options{})})
			drain(t, f)
			if p := f.Progress(); p.Have != 300 || p.Want != 300 || p.Serving != provider+"/m" {
				t.Fatalf("want 300 of 300 served, found %+v", p)
			}
			_, calls := s.texts()
			again := recall.NewFeed(library(docs), recall.FeedOptions{Dir: dir, Embedder: s.embedder(t, provider, "m", llm.Options{})})
			drain(t, again)
			if _, now := s.texts(); now != calls || again.Progress().Have != 300 {
				t.Errorf("after a restart: %d calls more, %+v", now-calls, again.Progress())
			}
			docs[7].Body += " changed"
			docs = stamped(docs)
			third := recall.NewFeed(library(docs), recall.FeedOptions{Dir: dir, Embedder: s.embedder(t, provider, "m", llm.Options{})})
			drain(t, third)
			if texts, now := s.texts(); now != calls+1 || !strings.Contains(texts[len(texts)-1], "changed") {
				t.Errorf("one note changed: %d calls more", now-calls)
			}
		})
	}
}

func TestAnOlderOllamaIsAskedForOneTextAtATime(t *testing.T) {
	s := serveVectors(t, noise(64))
	s.set(func() { s.old = true })
	f := recall.NewFeed(library(stamped(invented(20, 1))), recall.FeedOptions{Dir: t.TempDir(), Embedder: s.embedder(t, "ollama", "nomic-embed-text", llm.Options{})})
	drain(t, f)
	texts, _ := s.texts()
	if p := f.Progress(); p.Have != 20 || !strings.HasPrefix(texts[0], "search_document: ") {
		t.Errorf("found %+v, first text %q", p, texts[0])
	}
}

// Files that a crash cut short, or that something wrote into, lose what is behind
// the damage and nothing else.
func TestDamagedVectorsAreMadeAgain(t *testing.T) {
	docs := stamped(invented(100, 1))
	s := serveVectors(t, noise(64))
	for name, damage := range map[string]func([]byte) []byte{
		"torn":    func(b []byte) []byte { return b[:len(b)-5] },
		"flipped": func(b []byte) []byte { b[len(b)-20] ^= 1; return b },
		"longer":  func(b []byte) []byte { return append(b, "rubbish"...) },
		"empty":   func([]byte) []byte { return nil },
		"other":   func([]byte) []byte { return []byte("#!/bin/sh\n") },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			drain(t, recall.NewFeed(library(docs), recall.FeedOptions{Dir: dir, Embedder: s.embedder(t, "ollama", "m", llm.Options{})}))
			files, err := filepath.Glob(filepath.Join(dir, "*.vec"))
			if err != nil || len(files) != 1 {
				t.Fatal(files, err)
			}
			raw, err := os.ReadFile(files[0])
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(files[0], damage(raw), 0o600); err != nil {
				t.Fatal(err)
			}
			for range 2 { // what was repaired stays so
				f := recall.NewFeed(library(docs), recall.FeedOptions{Dir: dir, Embedder: s.embedder(t, "ollama", "m", llm.Options{})})
				drain(t, f)
				if p := f.Progress(); p.Have != 100 {
					t.Fatalf("want 100, found %+v", p)
				}
			}
		})
	}
}

// Another model, or the same with longer vectors, makes a new set beside the old,
// which serves until the new one is whole; then the old is gone.
func TestAnotherModelLeavesNoGap(t *testing.T) {
	docs := stamped(invented(300, 1))
	dims := map[string]int{"a": 64, "b": 96}
	var mu sync.Mutex
	s := serveVectors(t, func(model, text string) []float32 {
		mu.Lock()
		defer mu.Unlock()
		return noise(dims[model])(model, text)
	})
	dir := t.TempDir()
	feed := func(model string) (*recall.Feed, *recall.Index) {
		x := library(docs)
		return recall.NewFeed(x, recall.FeedOptions{
			Dir: dir, Embedder: s.embedder(t, "ollama", model, llm.Options{}),
			Former: func(name string) recall.Embedder {
				if name != "ollama/a" && name != "ollama/b" {
					t.Errorf("asked for %q", name)
				}
				return s.embedder(t, "ollama", strings.TrimPrefix(name, "ollama/"), llm.Options{})
			},
		}), x
	}
	f, _ := feed("a")
	drain(t, f)
	serving := func(f *recall.Feed, x *recall.Index, dims int) {
		t.Helper()
		f.Unmute()
		q := f.Question(t.Context(), "topic1word1", false)
		if len(q) != dims {
			t.Fatalf("want a question of %d components, found %d", dims, len(q))
		}
		if hits := x.SearchNear("topic1word1", q, 300, recall.Vector); len(hits) < 60 {
			t.Fatalf("want the set of %d components to serve, found %d hits", dims, len(hits))
		}
	}
	s.set(func() { s.after = 150 })
	f, x := feed("b")
	if err := f.Drain(t.Context()); err == nil {
		t.Fatal("the server broke, and nothing is said of it")
	}
	if p := f.Progress(); p.Serving != "ollama/a" || p.Have == 0 || p.Have == 300 || p.Problem == "" {
		t.Fatalf("want the old set to serve, half of the new there, and the problem named; found %+v", p)
	}
	s.set(func() { s.broken = 0 })
	serving(f, x, 64)
	f, x = feed("b") // a restart in between
	s.set(func() { s.after = 60 })
	if err := f.Drain(t.Context()); err == nil || f.Progress().Serving != "ollama/a" {
		t.Fatalf("after a restart: %v, %+v", err, f.Progress())
	}
	s.set(func() { s.broken = 0 })
	serving(f, x, 64)
	drain(t, f)
	serving(f, x, 96)
	mu.Lock()
	dims["b"] = 128
	mu.Unlock()
	docs[0].Body += " anew"
	docs = stamped(docs)
	f, x = feed("b")
	drain(t, f)
	serving(f, x, 128)
	if files, _ := filepath.Glob(filepath.Join(dir, "*.vec")); len(files) != 1 {
		t.Errorf("old sets are still there: %v", files)
	}
}

func TestATextTheProviderRefusesDoesNotHoldUpTheOthers(t *testing.T) {
	s := serveVectors(t, func(m, text string) []float32 {
		if strings.Contains(text, "poison") {
			return nil
		}
		return noise(64)(m, text)
	})
	docs := invented(150, 1)
	docs[33].Body, docs[99].Body = "poison", "more poison"
	f := recall.NewFeed(library(stamped(docs)), recall.FeedOptions{Dir: t.TempDir(), Embedder: s.embedder(t, "ollama", "m", llm.Options{})})
	drain(t, f)
	if p := f.Progress(); p.Have != 148 || p.Refused != 2 {
		t.Errorf("want 148 and 2 refused, found %+v", p)
	}
}

func TestNothingIsEmbeddedBeyondTheBudget(t *testing.T) {
	s := serveVectors(t, noise(64))
	cap := llm.USD(800_000) // less than a tenth of a cent
	e := s.embedder(t, "openai", "text-embedding-3-small", llm.Options{Ledger: llm.NewLedger(llm.Caps{Job: cap}, nil, nil)})
	f := recall.NewFeed(library(stamped(invented(1000, 1))), recall.FeedOptions{Dir: t.TempDir(), Embedder: e})
	err := f.Drain(t.Context())
	if err == nil || !strings.Contains(err.Error(), "cap of") {
		t.Fatalf("want the cap to be named, found %v", err)
	}
	if p := f.Progress(); p.Have == 0 || p.Have == 1000 || p.Problem == "" {
		t.Errorf("want some vectors and the problem shown, found %+v", p)
	}
}

// A thousand secrets: none is in any request to a provider elsewhere, nor in any
// file; files are their owner's alone.
func TestNoPrivateNoteIsEmbeddedElsewhere(t *testing.T) {
	s := serveVectors(t, noise(64))
	docs := invented(200, 1)
	for i := range 1000 {
		docs = append(docs, recall.Doc{ID: fmt.Sprintf("secret%d", i), Title: fmt.Sprintf("canary%04d", i), Body: fmt.Sprintf("the plan of canary%04d is hidden", i), Private: true})
	}
	docs = append(docs, recall.Doc{ID: "leak", Title: "A list", Body: "milk\nkey sk-canary9999 and @personal"})
	dir := t.TempDir()
	o := llm.Options{
		Private: func(s string) bool { return strings.Contains(s, "@personal") },
		Redact:  func(s string) string { return strings.ReplaceAll(s, "canary", "[redacted]") },
	}
	x := library(stamped(docs))
	f := recall.NewFeed(x, recall.FeedOptions{Dir: dir, Embedder: s.embedder(t, "openai", "m", o)})
	drain(t, f)
	p := f.Progress()
	if p.Withheld != 1000 || p.Have != 200 {
		t.Errorf("want 1000 withheld and 200 embedded, found %+v", p)
	}
	if f.Question(t.Context(), "canary0001", false) != nil {
		t.Error("a question that may not leave was embedded elsewhere")
	}
	texts, _ := s.texts()
	if all := strings.Join(texts, "\n"); strings.Contains(all, "canary") || strings.Contains(all, "@personal") {
		t.Error("a secret was sent")
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		raw, err := os.ReadFile(path)
		if strings.Contains(string(raw), "canary") || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, or holds a secret", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	local := recall.NewFeed(library(stamped(docs)), recall.FeedOptions{Dir: t.TempDir(), Embedder: s.embedder(t, "ollama", "m", o)})
	drain(t, local)
	if p := local.Progress(); p.Have != 1201 || p.Withheld != 0 {
		t.Errorf("on this machine all may be embedded, found %+v", p)
	}
}

// A feed tries again by itself after a failure.
func TestAFeedRecovers(t *testing.T) {
	s := serveVectors(t, noise(64))
	s.set(func() { s.broken = http.StatusServiceUnavailable })
	f := recall.NewFeed(library(stamped(invented(100, 1))), recall.FeedOptions{Dir: t.TempDir(), Embedder: s.embedder(t, "ollama", "m", llm.Options{})})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { f.Run(ctx) })
	until(t, "a problem is shown", func() bool { return f.Progress().Problem != "" })
	s.set(func() { s.broken = 0 })
	until(t, "all have vectors", func() bool { f.Wake(); return f.Progress().Have == 100 })
	cancel()
	wg.Wait()
}

// A model that knows what notes are about gets a share; one that does not, or that
// means harm, gets none, and searches are as they were without it.
func TestAModelHasAsMuchSayAsItHelps(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	var docs []recall.Doc
	for i := range 240 { // what a title says, the text says in other words
		topic, other := i/2, r.IntN(120)
		docs = append(docs, recall.Doc{
			ID: fmt.Sprintf("n%03d", i), Title: fmt.Sprintf("about%d matter%d-%d", topic, topic, i%2),
			Body: fmt.Sprintf("subject%d thing%d element%d and further words of no weight, plain%d plain%d", topic, topic, topic, other, i%9),
		})
	}
	docs = stamped(docs)
	number := regexp.MustCompile(`(?:about|matter|subject|thing|element)(\d+)`)
	knows := func(_, text string) []float32 { // every topic is a direction of its own
		v := make([]float32, 128)
		v[127] = 0.5
		for _, m := range number.FindAllStringSubmatch(text, -1) {
			n, _ := strconv.Atoi(m[1])
			v[n]++
		}
		return v
	}
	for name, c := range map[string]struct {
		vector func(model, text string) []float32
		helps  bool
	}{
		"knows":    {knows, true},
		"random":   {noise(128), false},
		"constant": {func(string, string) []float32 { return []float32{1, 2, 3} }, false},
		"hostile": {func(m, text string) []float32 {
			v := knows(m, text)
			if !strings.Contains(text, "subject") {
				slices.Reverse(v)
			}
			return v
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveVectors(t, c.vector)
			x := library(docs)
			before := x.Search("subject7 plain3 about9", 20, recall.Fused)
			f := recall.NewFeed(x, recall.FeedOptions{Dir: t.TempDir(), Embedder: s.embedder(t, "ollama", "m", llm.Options{})})
			drain(t, f)
			if got := f.Progress().Cal; got.Weight > 0 != c.helps || got.Questions < 100 {
				t.Errorf("found %+v", got)
			}
			after := x.SearchNear("subject7 plain3 about9", f.Question(t.Context(), "subject7 plain3 about9", false), 20, recall.Fused)
			if !c.helps && !slices.Equal(before, after) {
				t.Errorf("a model without a share changed a search:\n%v\n%v", before, after)
			}
		})
	}
}

// TestANoteThatBecamePrivateSinceItWasPutIsNotSent: the text that is sent is the newest
// there is, and so must be the word on whether it may be.
func TestANoteThatBecamePrivateSinceItWasPutIsNotSent(t *testing.T) {
	s := serveVectors(t, noise(64))
	docs := stamped(invented(50, 1))
	x := recall.New(recall.Options{Parts: func(id string) (string, string, bool) { return "now private", id, true }})
	for _, d := range docs {
		x.Put(d)
	}
	f := recall.NewFeed(x, recall.FeedOptions{Dir: t.TempDir(), Embedder: s.embedder(t, "openai", "m", llm.Options{})})
	drain(t, f)
	if texts, _ := s.texts(); len(texts) > 0 {
		t.Errorf("sent: %q", texts)
	}
}
