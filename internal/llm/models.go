package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// How long is believed what was found.
const (
	lookTimeout  = 500 * time.Millisecond // for something on this machine to answer
	lookAgain    = 30 * time.Second
	catalogFresh = time.Hour
)

// discovery is what answered on this machine when it was last looked for.
type discovery struct {
	at     time.Time
	models map[string][]string // by provider
}

// discoverable are the providers that may run here without being configured.
var discoverable = []string{"ollama", "local"}

// local returns the models of the servers on this machine.
func (e *Engine) local(ctx context.Context) map[string][]string {
	e.mu.Lock()
	found := e.found
	e.mu.Unlock()
	if e.o.Now().Sub(found.at) < lookAgain && !found.at.IsZero() {
		return found.models
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	lists := make([][]ModelInfo, len(discoverable))
	var wg sync.WaitGroup
	for i, name := range discoverable {
		if p, ok := e.provider(name); ok && isLocal(p.Base) {
			wg.Go(func() {
				if ms, err := e.list(ctx, p); err == nil {
					lists[i] = ms
				}
			})
		}
	}
	wg.Wait()
	found = discovery{at: e.o.Now(), models: map[string][]string{}}
	for i, name := range discoverable {
		for _, m := range lists[i] {
			found.models[name] = append(found.models[name], m.ID)
		}
	}
	e.mu.Lock()
	e.found = found
	e.mu.Unlock()
	return found.models
}

// candidates are the models to ask, in order, and whether the rules may answer
// when all of them fail.
func (e *Engine) candidates(ctx context.Context, p Purpose) (out []candidate, rules bool) {
	if p.Model != "" {
		if c, ok := e.candidate(p.Model); ok {
			return []candidate{c}, false
		}
		return nil, false
	}
	if p.Tier == Reflexive {
		return nil, true
	}
	add := func(name string) {
		known := slices.ContainsFunc(out, func(c candidate) bool { return c.name == name })
		if c, ok := e.candidate(name); ok && !known {
			out = append(out, c)
		}
	}
	now := e.plan.Load()
	if m := routed(now.routes, p); m != "" {
		add(m)
	}
	order, auto := now.cascade, len(now.cascade) == 0
	if auto {
		for _, v := range vendors {
			order = append(order, v.name)
		}
		rules = true
	}
	for _, name := range order {
		if name == reflexName {
			rules = true
			continue
		}
		pr, ok := e.provider(name)
		if !ok || auto && pr.Key == "" && !slices.Contains(discoverable, name) {
			continue
		}
		if m := e.modelFor(ctx, pr, p.Tier); m != "" {
			add(name + "/" + m)
		}
	}
	return out, rules
}

// modelFor is the model of a provider for a tier, "" when it has none to offer.
func (e *Engine) modelFor(ctx context.Context, p Provider, t Tier) string {
	v, _ := vendorOf(p.Name)
	switch {
	case p.Model != "":
		if slices.Contains(discoverable, p.Name) && isLocal(p.Base) && len(e.local(ctx)[p.Name]) == 0 {
			return "" // it is configured and does not run
		}
		return p.Model
	case t == Reasoning && v.large != "":
		return v.large
	case v.small != "":
		return v.small
	}
	if ms := e.local(ctx)[p.Name]; len(ms) > 0 {
		return ms[0]
	}
	return ""
}

func (e *Engine) candidate(name string) (candidate, bool) {
	provider, model := modelOf(name)
	e.mu.Lock()
	defer e.mu.Unlock()
	p, ok := e.provider(provider) // with the lock: a backend must not keep a key that was replaced
	if !ok || model == "" {
		return candidate{}, false
	}
	b, ok := e.backends[name]
	if !ok {
		b = e.backend(p, model)
		e.backends[name] = b
	}
	return candidate{name: name, backend: b, local: b.Info().Local}, true
}

func (e *Engine) backend(p Provider, model string) Backend {
	v, _ := vendorOf(p.Name)
	name := p.Name + "/" + model
	info := Info{Name: name, Local: isLocal(p.Base), Model: true}
	w := e.wire(p, name)
	switch v.dialect {
	case dialectResponses:
		return &responses{wire: w, model: model, info: info}
	case dialectAnthropic:
		return &anthropic{wire: w, model: model, info: info}
	case dialectGemini:
		return &gemini{wire: w, model: model, info: info}
	case dialectOllama:
		return &ollama{wire: w, model: model, info: info}
	case dialectChat:
	}
	return &chat{wire: w, model: model, info: info, quirk: v.quirks}
}

func (e *Engine) wire(p Provider, name string) wire {
	v, _ := vendorOf(p.Name)
	h := map[string]string{}
	switch {
	case p.Key == "":
	case v.dialect == dialectAnthropic:
		h["x-api-key"] = p.Key
	case v.dialect == dialectGemini:
		h["x-goog-api-key"] = p.Key
	default:
		h["Authorization"] = "Bearer " + p.Key
	}
	if v.dialect == dialectAnthropic {
		h["anthropic-version"] = "2023-06-01"
	}
	if p.Name == "openrouter" {
		h["X-Title"] = "Passepartout"
	}
	return wire{client: e.client, base: p.Base, header: h, key: p.Key, name: name, timeout: e.o.Timeout, stall: e.o.Stall, now: e.o.Now, box: &toolbox{}}
}

// A ModelInfo is one model somebody offers.
type ModelInfo struct {
	Provider string
	ID       string
	Window   int // tokens a prompt may have, 0 when not said
	Price    Price
	Priced   bool // the price is known
	Local    bool
}

// A Catalog is what one provider offers, or why that is not known.
type Catalog struct {
	Provider string
	Base     string
	Local    bool
	Models   []ModelInfo
	Err      error
}

type catalog struct {
	at     time.Time
	models []ModelInfo
}

// Catalogs asks every configured provider what it offers. Answers are kept for an
// hour, unless fresh ones are wanted.
func (e *Engine) Catalogs(ctx context.Context, fresh bool) []Catalog {
	var names []string
	all := *e.providers.Load()
	for n := range all {
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(vendorIndex(a), vendorIndex(b)) })
	out := make([]Catalog, len(names))
	var wg sync.WaitGroup
	for i, n := range names {
		wg.Go(func() {
			p := all[n]
			ms, err := e.offered(ctx, p, fresh)
			out[i] = Catalog{Provider: n, Base: p.Base, Local: isLocal(p.Base), Models: ms, Err: err}
		})
	}
	wg.Wait()
	return slices.DeleteFunc(out, func(c Catalog) bool {
		return c.Err != nil && all[c.Provider].Key == "" && !slices.Contains(e.Cascade(), c.Provider)
	})
}

func vendorIndex(name string) int {
	return slices.IndexFunc(vendors, func(v vendor) bool { return v.name == name })
}

func (e *Engine) offered(ctx context.Context, p Provider, fresh bool) ([]ModelInfo, error) {
	e.mu.Lock()
	c := e.catalogs[p.Name]
	e.mu.Unlock()
	if !fresh && !c.at.IsZero() && e.o.Now().Sub(c.at) < catalogFresh {
		return c.models, nil
	}
	ms, err := e.list(ctx, p)
	if err != nil {
		return nil, err
	}
	e.windows(ctx, p, ms)
	e.mu.Lock()
	e.catalogs[p.Name] = catalog{e.o.Now(), ms}
	for _, m := range ms {
		if m.Priced {
			e.quoted[p.Name+"/"+m.ID] = m.Price
		}
	}
	e.mu.Unlock()
	return ms, nil
}

// maxWindows is how many models are asked one by one for their context.
const maxWindows = 64

// windows completes a list of Ollama's, which does not say how long a prompt each
// model holds. What is not answered stays unknown.
func (e *Engine) windows(ctx context.Context, p Provider, ms []ModelInfo) {
	for i := range ms[:min(len(ms), maxWindows)] {
		c, ok := e.candidate(p.Name + "/" + ms[i].ID)
		if !ok || ms[i].Window > 0 {
			continue
		}
		o, ok := c.backend.(*ollama)
		if !ok {
			return
		}
		if n, err := o.context(ctx); err == nil {
			ms[i].Window = n
		}
	}
}

// The lists of all dialects, read by one structure: fields that are not of the
// dialect stay empty.
type modelList struct {
	Data []struct {
		ID      string `json:"id"`
		Window  int    `json:"context_length"`
		Pricing struct {
			Prompt     string `json:"prompt"`
			Completion string `json:"completion"`
		} `json:"pricing"`
		Meta struct {
			Train int `json:"n_ctx_train"`
		} `json:"meta"`
	} `json:"data"`
	Models []struct {
		Name   string `json:"name"`
		Window int    `json:"inputTokenLimit"`
	} `json:"models"`
}

// list asks a provider for its models.
func (e *Engine) list(ctx context.Context, p Provider) ([]ModelInfo, error) {
	v, _ := vendorOf(p.Name)
	path := "/models"
	switch v.dialect {
	case dialectOllama:
		path = "/api/tags"
	case dialectAnthropic:
		path = "/v1/models?limit=1000"
	case dialectGemini:
		path = "/v1beta/models?pageSize=1000"
	case dialectChat, dialectResponses:
	}
	w := e.wire(p, p.Name)
	var l modelList
	err := w.do(ctx, "GET", path, nil, func(r io.Reader) error {
		return json.NewDecoder(io.LimitReader(r, maxEvent)).Decode(&l)
	})
	if err != nil {
		return nil, err
	}
	var out []ModelInfo
	for _, d := range l.Data {
		m := e.model(p, d.ID, max(d.Window, d.Meta.Train))
		if in, err := strconv.ParseFloat(d.Pricing.Prompt, 64); err == nil && in >= 0 && !m.Priced {
			if o, err := strconv.ParseFloat(d.Pricing.Completion, 64); err == nil && o >= 0 && !math.IsInf(in+o, 0) {
				m.Price, m.Priced = Price{In: in * 1e6, Cached: in * 1e6, Stored: in * 1e6, Out: o * 1e6}, true
			}
		}
		out = append(out, m)
	}
	if len(l.Data) == 0 {
		for _, d := range l.Models {
			out = append(out, e.model(p, strings.TrimPrefix(d.Name, "models/"), d.Window))
		}
	}
	return out, nil
}

func (e *Engine) model(p Provider, id string, window int) ModelInfo {
	name := p.Name + "/" + id
	m := ModelInfo{Provider: p.Name, ID: id, Window: window, Local: isLocal(p.Base)}
	m.Price, m.Priced = priceOf(name, m.Local, e.o.Prices)
	if l, ok := listed(name); ok && m.Window == 0 {
		m.Window = l.window
	}
	return m
}

// Choice says which models a request of that purpose would be sent to, in order.
func (e *Engine) Choice(ctx context.Context, p Purpose) []string {
	cands, rules := e.candidates(ctx, p)
	var out []string
	for _, c := range cands {
		out = append(out, c.name)
	}
	if rules {
		out = append(out, reflexName)
	}
	return out
}
