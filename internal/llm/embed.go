package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync/atomic"
	"time"
)

// An Embedder turns texts into vectors, with one model of one provider. It is safe
// for concurrent use.
type Embedder struct {
	e      *Engine
	w      wire
	model  string
	local  bool
	price  Price
	prefix prefixes
	ollama bool
	older  atomic.Bool // an Ollama that only takes one text at a time
}

// prefixes are what a model wants before a text, so that it knows what it is for.
type prefixes struct{ model, query, note string }

// embedPrefixes are from the models' own descriptions; the first whose name the
// model's begins with counts.
var embedPrefixes = []prefixes{
	{"nomic-embed-text", "search_query: ", "search_document: "},
	{"mxbai-embed", "Represent this sentence for searching relevant passages: ", ""},
	{"snowflake-arctic-embed", "Represent this sentence for searching relevant passages: ", ""},
	{"bge-small-en", "Represent this sentence for searching relevant passages: ", ""},
	{"bge-base-en", "Represent this sentence for searching relevant passages: ", ""},
	{"bge-large-en", "Represent this sentence for searching relevant passages: ", ""},
	{"multilingual-e5", "query: ", "passage: "},
	{"e5-", "query: ", "passage: "},
	{"embeddinggemma", "task: search result | query: ", "title: none | text: "},
}

// embedPrices are in dollars for a million tokens, of November 2025.
var embedPrices = map[string]float64{
	"openai/text-embedding-3-small": 0.02,
	"openai/text-embedding-3-large": 0.13,
	"openai/text-embedding-ada-002": 0.10,
}

// Embedder returns the embedder of a provider's model: of Ollama by its own
// interface, of any other by OpenAI's. The provider need not be one that answers
// questions, and may have another address than the one that does.
func (e *Engine) Embedder(p Provider) (*Embedder, error) {
	v, ok := vendorOf(p.Name)
	switch {
	case !ok:
		return nil, fmt.Errorf("embeddings: there is no provider %q", p.Name)
	case v.dialect == dialectAnthropic || v.dialect == dialectGemini:
		return nil, fmt.Errorf("embeddings: %s does not speak OpenAI's /v1/embeddings", p.Name)
	case p.Model == "":
		return nil, errors.New("embeddings: want the name of a model")
	}
	if p.Base == "" {
		p.Base = v.base
	}
	p.Base = strings.TrimSuffix(p.Base, "/")
	if err := checkBase(p.Base, p.Key); err != nil {
		return nil, fmt.Errorf("embeddings: %w", err)
	}
	name := p.Name + "/" + p.Model
	m := &Embedder{
		e: e, w: e.wire(p, name), model: p.Model, local: isLocal(p.Base), ollama: v.dialect == dialectOllama,
		price: Price{In: unlisted.In},
	}
	if usd, listed := embedPrices[name]; listed {
		m.price = Price{In: usd}
	}
	if own, ok := e.o.Prices[name]; ok {
		m.price = own
	}
	for _, x := range embedPrefixes {
		if strings.HasPrefix(p.Model[strings.LastIndexByte(p.Model, '/')+1:], x.model) {
			m.prefix = x
			break
		}
	}
	return m, nil
}

// Name is "provider/model". Vectors of different names cannot be compared.
func (m *Embedder) Name() string { return m.w.name }

// Local reports whether texts stay on this machine.
func (m *Embedder) Local() bool { return m.local }

// Embed returns one vector a text, all of one length. A text that may not leave
// this machine is not sent, and has none. Credentials are taken out of what leaves.
func (m *Embedder) Embed(ctx context.Context, texts []string, query bool) ([][]float32, error) {
	out := make([][]float32, len(texts))
	var send []string
	var at []int
	for i, t := range texts {
		if !m.local && m.e.o.Private != nil && m.e.o.Private(t) || strings.TrimSpace(t) == "" {
			continue
		}
		if !m.local && m.e.o.Redact != nil {
			t = m.e.o.Redact(t)
		}
		if query {
			t = m.prefix.query + t
		} else {
			t = m.prefix.note + t
		}
		send, at = append(send, t), append(at, i)
	}
	if len(send) == 0 {
		return out, nil
	}
	vectors, err := m.paid(ctx, send)
	if err != nil {
		return nil, err
	}
	if err := m.check(vectors, len(send)); err != nil {
		return nil, err
	}
	for i, v := range vectors {
		out[at[i]] = v
	}
	return out, nil
}

// paid makes one call, its cost checked before and booked after. What runs here
// costs nothing and is not booked.
func (m *Embedder) paid(ctx context.Context, texts []string) ([][]float32, error) {
	if m.local {
		v, _, err := m.call(ctx, texts)
		return v, m.clean(err)
	}
	most := Usage{}
	for _, t := range texts {
		most.In += Tokens(t) + 1
	}
	now := m.e.o.Now()
	purpose := Purpose{Slot: Background, Job: true, Turn: "embeddings " + now.Format(time.DateOnly)}
	h, err := m.e.ledger.reserve(m.w.name, purpose, m.price.of(most), now)
	if err != nil {
		return nil, &Error{Provider: m.w.name, Class: classBudget, Err: err}
	}
	v, used, err := m.call(ctx, texts)
	var class Class
	if e := (*Error)(nil); errors.As(err, &e) {
		class = e.Class
		if used = 0; e.Sent {
			used = most.In
		}
	} else if used <= 0 {
		used = most.In
	}
	took := Usage{In: used}.believable()
	m.e.ledger.settle(h, took, m.price.of(took), class)
	return v, m.clean(err)
}

// clean takes credentials out of an error.
func (m *Embedder) clean(err error) error {
	e := (*Error)(nil)
	if m.e.o.Redact == nil || !errors.As(err, &e) {
		return err
	}
	c := *e
	c.Err = redactedError{m.e.o.Redact(e.Err.Error()), e.Err}
	return &c
}

// mostEmbedded bounds an answer: 256 vectors of 4,096 numbers as text.
const mostEmbedded = 32 << 20

func (m *Embedder) call(ctx context.Context, texts []string) (vectors [][]float32, used int, err error) {
	if !m.ollama {
		return m.openai(ctx, texts)
	}
	if m.older.Load() {
		vectors, err = m.oneByOne(ctx, texts)
		return vectors, 0, err
	}
	var got struct {
		Embeddings [][]float32 `json:"embeddings"`
	}
	err = m.ask(ctx, "/api/embed", map[string]any{"model": m.model, "input": texts, "truncate": true}, &got)
	if e := (*Error)(nil); errors.As(err, &e) && e.Class == classNoModel && !strings.Contains(e.Err.Error(), m.model) {
		// Ollama before 0.3 does not know the path; a model it lacks it would name.
		if vectors, err = m.oneByOne(ctx, texts); err == nil {
			m.older.Store(true)
		}
		return vectors, 0, err
	}
	return got.Embeddings, 0, err
}

func (m *Embedder) oneByOne(ctx context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, t := range texts {
		var got struct {
			Embedding []float32 `json:"embedding"`
		}
		if err := m.ask(ctx, "/api/embeddings", map[string]any{"model": m.model, "prompt": t}, &got); err != nil {
			return nil, err
		}
		out[i] = got.Embedding
	}
	return out, nil
}

func (m *Embedder) openai(ctx context.Context, texts []string) ([][]float32, int, error) {
	var got struct {
		Data []struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
		Usage struct {
			Prompt int `json:"prompt_tokens"`
		} `json:"usage"`
	}
	err := m.ask(ctx, "/embeddings", map[string]any{"model": m.model, "input": texts, "encoding_format": "float"}, &got)
	if err != nil {
		return nil, 0, err
	}
	out := make([][]float32, len(texts))
	for _, d := range got.Data {
		if d.Index < 0 || d.Index >= len(out) || out[d.Index] != nil {
			return nil, got.Usage.Prompt, m.w.fail(classMalformed, true, "want an embedding for each of %d texts, found one of index %d twice or beyond", len(texts), d.Index)
		}
		out[d.Index] = d.Embedding
	}
	return out, got.Usage.Prompt, nil
}

func (m *Embedder) ask(ctx context.Context, path string, body, into any) error {
	return m.w.post(ctx, path, body, func(r io.Reader) error {
		return json.NewDecoder(io.LimitReader(r, mostEmbedded)).Decode(into)
	})
}

// check refuses vectors nothing can be measured with.
func (m *Embedder) check(vectors [][]float32, want int) error {
	if len(vectors) != want {
		return m.w.fail(classMalformed, true, "want %d embeddings, found %d", want, len(vectors))
	}
	for i, v := range vectors {
		if len(v) == 0 || len(v) != len(vectors[0]) {
			return m.w.fail(classMalformed, true, "want embeddings of one length, found %d and %d numbers", len(vectors[0]), len(v))
		}
		var sum float64
		for _, f := range v {
			sum += float64(f) * float64(f)
		}
		if sum == 0 || math.IsNaN(sum) || math.IsInf(sum, 0) {
			return m.w.fail(classMalformed, true, "embedding %d of %d has no direction", i+1, want)
		}
	}
	return nil
}

// AboutInput reports whether the provider objects to the text rather than to being
// asked: another text may do better.
func (e *Error) AboutInput() bool {
	return e.Class == classContext || e.Class == classInvalid || e.Class == classRefused
}

// Wait is how long the provider wants to be left alone, 0 if it did not say.
func (e *Error) Wait() time.Duration { return e.After }
