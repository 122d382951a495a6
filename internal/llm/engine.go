package llm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A Provider is one that is configured.
type Provider struct {
	Name  string
	Base  string // "" for the usual address
	Key   string
	Model string // to use where no route says otherwise, "" for the usual
}

// Options are what an engine is built from. The zero Options give the rules alone.
type Options struct {
	Providers []Provider
	// Cascade names providers in the order they are tried; "reflex" stands for
	// the rules and is always last. Empty means: what answers on this machine,
	// then every provider with a key, then the rules.
	Cascade []string
	Routes  []Route
	Prices  map[string]Price // by "provider/model", before the list
	Ledger  *Ledger          // nil for one that only counts

	Redact  func(string) string // removes credentials from what leaves; nil removes nothing
	Private func(string) bool   // recognises text that must not leave; may be nil

	Timeout   time.Duration     // for an answer to begin; 0 for 30 s
	Stall     time.Duration     // for the next piece of it; 0 for 30 s
	Backoff   time.Duration     // before asking the same provider again; 0 for 250 ms
	Transport http.RoundTripper // nil for the usual
	Now       func() time.Time  // nil for the clock
}

// An Engine is the backend the product uses. It is safe for concurrent use.
type Engine struct {
	o         Options // constant after construction
	client    *http.Client
	providers atomic.Pointer[map[string]Provider] // never changed, only replaced
	ledger    *Ledger
	redacted  memo
	sizes     scale

	plan atomic.Pointer[plan]

	mu       sync.Mutex // guards what follows
	backends map[string]Backend
	breakers map[string]*breaker
	found    discovery
	catalogs map[string]catalog
	quoted   map[string]Price // what providers themselves say their models cost
}

var _ Backend = (*Engine)(nil)

// A plan is what can be changed while the engine runs. It is immutable.
type plan struct {
	cascade []string
	routes  []Route
}

// New checks the options and returns an engine. Nothing is sent yet.
func New(o Options) (*Engine, error) {
	if o.Transport == nil {
		o.Transport = &http.Transport{
			MaxIdleConnsPerHost: idleConns, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true,
			WriteBufferSize: wholeRequest,
		}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Backoff == 0 {
		o.Backoff = 250 * time.Millisecond
	}
	o.Timeout, o.Stall = or(o.Timeout, defaultTimeout), or(o.Stall, defaultStall)
	e := &Engine{
		o: o, client: newClient(o.Transport), ledger: o.Ledger,
		backends: map[string]Backend{}, breakers: map[string]*breaker{}, catalogs: map[string]catalog{}, quoted: map[string]Price{},
	}
	if e.ledger == nil {
		e.ledger = NewLedger(Caps{}, nil, nil)
	}
	all := map[string]Provider{}
	for _, p := range o.Providers {
		if err := add(all, p); err != nil {
			return nil, fmt.Errorf("provider %s: %w", p.Name, err)
		}
	}
	e.providers.Store(&all)
	e.plan.Store(&plan{routes: slices.Clone(o.Routes)})
	return e, e.Reorder(o.Cascade)
}

const reflexName = "reflex"

// A provider is reached over one connection for each turn that waits for it; those
// that fall idle are kept for the next. A request usually goes out in one write.
const (
	idleConns    = 64
	wholeRequest = 64 << 10
)

func or(d, usual time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return usual
}

func add(all map[string]Provider, p Provider) error {
	v, ok := vendorOf(p.Name)
	if !ok {
		return errors.New("not a provider that is known here")
	}
	if p.Base == "" {
		p.Base = v.base
	}
	p.Base = strings.TrimSuffix(p.Base, "/")
	if err := checkBase(p.Base, p.Key); err != nil {
		return err
	}
	all[p.Name] = p
	return nil
}

// provider is a provider that is configured.
func (e *Engine) provider(name string) (Provider, bool) {
	p, ok := (*e.providers.Load())[name]
	return p, ok
}

// RedactAnew is to be called when other texts are credentials than before.
func (e *Engine) RedactAnew() { e.redacted.clear() }

// Rekey gives a provider another key, and makes one known that had none. Requests
// under way keep theirs.
func (e *Engine) Rekey(name, key string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := maps.Clone(*e.providers.Load())
	p := all[name]
	if p.Name == name && p.Key == key {
		return nil
	}
	p.Name, p.Key = name, key
	if err := add(all, p); err != nil {
		return fmt.Errorf("provider %s: %w", name, err)
	}
	e.providers.Store(&all)
	maps.DeleteFunc(e.backends, func(model string, _ Backend) bool { return strings.HasPrefix(model, name+"/") })
	delete(e.breakers, name) // with another key it may answer
	delete(e.catalogs, name)
	e.found = discovery{}
	return nil
}

// Info implements [Backend].
func (e *Engine) Info() Info { return Info{Name: "probabilistic", Model: true} }

// Ledger returns the record of what was spent.
func (e *Engine) Ledger() *Ledger { return e.ledger }

// Routes returns the routes in force.
func (e *Engine) Routes() []Route { return slices.Clone(e.plan.Load().routes) }

// Cascade returns the order in force, empty for the usual one.
func (e *Engine) Cascade() []string { return slices.Clone(e.plan.Load().cascade) }

// Reorder puts another cascade in force. Requests under way keep theirs.
func (e *Engine) Reorder(cascade []string) error {
	for _, name := range cascade {
		if _, known := vendorOf(name); !known && name != reflexName {
			return fmt.Errorf("cascade: there is no provider %q", name)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.plan.Store(&plan{cascade: slices.Clone(cascade), routes: e.Routes()})
	return nil
}

// Use puts a route in force, in place of one for the same tier and slot. Requests
// under way keep the routes they began with.
func (e *Engine) Use(r Route) error {
	name, _ := modelOf(r.Model)
	if _, ok := e.provider(name); !ok {
		return fmt.Errorf("route to %s: provider %q is not configured", r.Model, name)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	next := slices.DeleteFunc(e.Routes(), func(x Route) bool { return x.Tier == r.Tier && x.Slot == r.Slot })
	e.plan.Store(&plan{cascade: e.Cascade(), routes: append(next, r)})
	return nil
}

// A candidate is a model that may answer.
type candidate struct {
	name    string // "provider/model"
	backend Backend
	local   bool
}

// Complete implements [Backend]: the first candidate that answers.
func (e *Engine) Complete(ctx context.Context, req Request, sink func(string)) (Reply, error) {
	if len(req.Messages) == 0 {
		return Reply{}, errNoConversation
	}
	cands, rules := e.candidates(ctx, req.Purpose)
	var failed []*Error
	if len(cands) > 0 {
		clean, private := e.prepare(req)
		for _, c := range cands {
			r, err := e.try(ctx, c, clean, private, sink)
			if err == nil {
				return r, nil
			}
			if ctx.Err() != nil {
				return Reply{}, context.Cause(ctx)
			}
			failed = append(failed, err)
			if err.Sent {
				sink = nil // part of a failed answer may have been passed on
			}
		}
	}
	if rules {
		r, err := Reflex{}.Complete(ctx, req, sink)
		r.Model = reflexName
		if len(failed) > 0 {
			r.Note = byRules(failed)
		}
		return r, err
	}
	return Reply{}, &ExhaustedError{failed}
}

// byRules tells the person why rules answered where a model was expected.
func byRules(failed []*Error) string {
	whys := make([]string, len(failed))
	for i, f := range failed {
		whys[i] = fmt.Sprintf("%s: %s", f.Provider, f.Class)
	}
	note := "No model answered (" + strings.Join(whys, ", ") + "), so this answer is by rules."
	if (&ExhaustedError{failed}).private() {
		note += " The conversation has read private text, so only a model on this machine may answer it; " + privateWay + "."
	}
	return note
}

// prepare removes credentials and finds out whether the text may leave.
func (e *Engine) prepare(req Request) (clean Request, private bool) {
	clean, private = req, req.Private
	look := func(s string) string {
		if e.o.Private != nil && !private {
			private = e.o.Private(s)
		}
		if e.o.Redact == nil || s == "" {
			return s
		}
		return e.redacted.get(s, e.o.Redact)
	}
	clean.Tools = slices.DeleteFunc(slices.Clone(req.Tools), func(t Tool) bool { return t.Forbidden })
	clean.System, clean.Tail = look(req.System), look(req.Tail)
	clean.Messages = make([]Message, len(req.Messages))
	for i, m := range req.Messages {
		m.Text = look(m.Text)
		if m.Call != nil {
			m.Call = &Call{Name: m.Call.Name, Args: cleanArgs(m.Call.Args, look), Seal: m.Call.Seal}
		}
		clean.Messages[i] = m
	}
	return clean, private
}

func cleanArgs(args map[string]any, look func(string) string) map[string]any {
	out := make(map[string]any, len(args))
	for k, v := range args {
		out[k] = cleanArg(v, look)
	}
	return out
}

func cleanArg(v any, look func(string) string) any {
	switch v := v.(type) {
	case string:
		return look(v)
	case []string:
		out := make([]string, len(v))
		for i, s := range v {
			out[i] = look(s)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = cleanArg(x, look)
		}
		return out
	case map[string]any:
		return cleanArgs(v, look)
	}
	return v
}

// maxTries is how often one provider is asked for one request.
const maxTries = 2

// longestWait is the longest pause before the same provider is asked again; beyond
// it the next one is.
const longestWait = 5 * time.Second

// try asks one candidate, twice if its failure looks like passing.
func (e *Engine) try(ctx context.Context, c candidate, req Request, private bool, sink func(string)) (Reply, *Error) {
	refuse := func(class Class, format string, args ...any) (Reply, *Error) {
		return Reply{}, &Error{Provider: c.name, Class: class, Err: fmt.Errorf(format, args...)}
	}
	if private && !c.local {
		return refuse(classPrivate, "the conversation holds text that may not leave this machine")
	}
	br := e.breaker(c.name)
	if wait, ok := br.admit(e.o.Now()); !ok {
		return refuse(classOpen, "it failed a moment ago; asked again in %v", wait.Round(time.Second))
	}
	var last *Error
	for n := range maxTries {
		r, err := e.once(ctx, c, req, sink)
		if err == nil {
			br.succeeded()
			return r, nil
		}
		if ctx.Err() != nil {
			br.failed(&Error{}, e.o.Now()) // the person's doing, not the provider's
			return Reply{}, err
		}
		br.failed(err, e.o.Now())
		last = err
		if err.Sent {
			sink = nil
		}
		wait := max(err.After, time.Duration(float64(e.o.Backoff<<n)*(0.5+rand.Float64())))
		if !steps[err.Class].retry || n+1 == maxTries || wait > longestWait || !pause(ctx, wait) {
			break
		}
	}
	return Reply{}, last
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// once makes one call, with its cost checked before and booked after.
func (e *Engine) once(ctx context.Context, c candidate, req Request, sink func(string)) (Reply, *Error) {
	price := e.price(c)
	most := Usage{In: e.sizes.of(req), Out: req.replyLimit()}
	h, err := e.ledger.reserve(c.name, req.Purpose, price.of(most), e.o.Now())
	if err != nil {
		return Reply{}, &Error{Provider: c.name, Class: classBudget, Err: err}
	}
	said := 0
	var mu sync.Mutex // guards said: a backend that was given up may still be talking
	count := func(delta string) {
		mu.Lock()
		said += Tokens(delta)
		mu.Unlock()
		if sink != nil {
			sink(delta)
		}
	}
	r, err := Guard(ctx, c.backend, req, count)
	if err == nil {
		r.Usage = r.Usage.believable()
		if r.Usage == (Usage{}) {
			r.Usage = Usage{In: most.In, Out: Tokens(r.Text)}
		}
		e.ledger.settle(h, r.Usage, price.of(r.Usage), "")
		r.Model = c.name
		return r, nil
	}
	var fail *Error
	if !errors.As(err, &fail) {
		fail = &Error{Provider: c.name, Class: classPanic, Sent: true, Err: err}
		if ctx.Err() != nil {
			fail.Class = ""
		}
	}
	if e.o.Redact != nil {
		fail = &Error{Provider: fail.Provider, Class: fail.Class, After: fail.After, Sent: fail.Sent, Err: redactedError{e.o.Redact(fail.Err.Error()), fail.Err}}
	}
	var used Usage
	if fail.Sent { // it may be charged for, so it is
		mu.Lock()
		used = Usage{In: most.In, Out: said}
		mu.Unlock()
	}
	e.ledger.settle(h, used, price.of(used), fail.Class)
	return Reply{}, fail
}

// price is what a candidate costs: by the settings, by the list, by what the
// provider said when it was asked for its models, and else the highest.
func (e *Engine) price(c candidate) Price {
	p, known := priceOf(c.name, c.local, e.o.Prices)
	if known {
		return p
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if q, ok := e.quoted[c.name]; ok {
		return q
	}
	return p
}

// A redactedError reads without credentials and unwraps to its cause.
type redactedError struct {
	text  string
	cause error
}

func (e redactedError) Error() string { return e.text }
func (e redactedError) Unwrap() error { return e.cause }

// breaker is that of a model's provider: what ails one of its models, a key or a
// connection, ails all.
func (e *Engine) breaker(model string) *breaker {
	provider, _ := modelOf(model)
	e.mu.Lock()
	defer e.mu.Unlock()
	b, ok := e.breakers[provider]
	if !ok {
		b = &breaker{}
		e.breakers[provider] = b
	}
	return b
}

// Consult asks other models than the one named the same question, side by side.
// Who does not answer before the context ends has no voice.
func (e *Engine) Consult(ctx context.Context, req Request, not string, most int) []Reply {
	cands, _ := e.candidates(ctx, req.Purpose)
	cands = slices.DeleteFunc(cands, func(c candidate) bool { return c.name == not })
	cands = cands[:min(most, len(cands))]
	if len(cands) == 0 {
		return nil
	}
	clean, private := e.prepare(req)
	replies := make([]*Reply, len(cands))
	var wg sync.WaitGroup
	for i, c := range cands {
		wg.Go(func() {
			if r, err := e.try(ctx, c, clean, private, nil); err == nil {
				replies[i] = &r
			}
		})
	}
	wg.Wait()
	var out []Reply
	for _, r := range replies {
		if r != nil {
			out = append(out, *r)
		}
	}
	return out
}

// A scale weighs requests. It is safe for concurrent use.
type scale struct {
	mu sync.Mutex // guards c
	c  Counter
}

func (s *scale) of(r Request) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.c.Request(r)
}

// A memo remembers what redaction made of a text, since a conversation is sent
// again with every step.
type memo struct {
	mu  sync.Mutex // guards what follows
	m   map[string]string
	age int // how often it was emptied
}

// clear forgets everything, also what is being worked out.
func (c *memo) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.m = nil
	c.age++
}

const maxMemo = 512

func (c *memo) get(s string, f func(string) string) string {
	c.mu.Lock()
	out, ok := c.m[s]
	age := c.age
	c.mu.Unlock()
	if ok {
		return out
	}
	out = f(s)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.age != age {
		return out
	}
	if c.m == nil || len(c.m) >= maxMemo {
		c.m = map[string]string{}
	}
	c.m[s] = out
	return out
}
