package daemon

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"passepartout/internal/agent"
	"passepartout/internal/durable"
	"passepartout/internal/llm"
	"passepartout/internal/proto"
)

// Models say which language models there are and what they may cost. The zero
// Models are none: rules answer.
type Models struct {
	Providers []llm.Provider
	Cascade   []string // empty: what answers here, then who has a key, then rules
	Routes    []llm.Route
	Prices    map[string]llm.Price // before the list
	Caps      llm.Caps
	Timeout   time.Duration
	Tokens    int // the most a prompt may have
	Consensus int
	Embedder  llm.Provider // makes vectors of notes; without a name nobody does
	Hashing   bool         // search by trigrams alone
	Record    string       // file to record providers' traffic in, "" for none
	Replay    string       // file of recorded traffic to answer from instead of the network, "" for none
	// Transport reaches the providers; nil for the network.
	Transport http.RoundTripper
}

// Files of the engine, in the state directory.
const (
	costFile  = "costs.jsonl"
	routeFile = "models"
)

// openEngine builds the engine, continues its books and takes up the routes that
// were chosen while an earlier daemon ran.
func (d *Daemon) openEngine(redact func(string) string) (*llm.Engine, error) {
	past, err := readCosts(d.statePath(costFile), d.now())
	if err != nil {
		return nil, fmt.Errorf("cost ledger: %w", err)
	}
	if d.books, err = os.OpenFile(d.statePath(costFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		return nil, fmt.Errorf("cost ledger: %w", err)
	}
	chosen, cascade, err := readChoices(d.statePath(routeFile))
	if err != nil {
		return nil, err
	}
	if cascade == nil {
		cascade = d.s.Models.Cascade
	}
	transport, err := d.transport(redact)
	if err != nil {
		return nil, err
	}
	e, err := llm.New(llm.Options{
		Providers: d.s.Models.Providers, Cascade: cascade, Routes: d.s.Models.Routes, Prices: d.s.Models.Prices,
		Ledger: llm.NewLedger(d.s.Models.Caps, past, func(e llm.Entry) error { return appendJSON(d.books, e) }),
		Redact: redact, Private: carriesTag(d.s.PrivacyTags),
		Timeout: d.s.Models.Timeout, Transport: transport, Now: d.now,
	})
	if err != nil {
		return nil, err
	}
	for _, r := range chosen {
		if err := e.Use(r); err != nil {
			d.log.Warn("a route that was chosen earlier no longer holds", "route", r.String(), "error", err)
		}
	}
	return e, nil
}

func (d *Daemon) statePath(name string) string { return filepath.Join(d.s.StateDir, name) }

// transport reaches the providers, with a recorder before it if one is wanted.
func (d *Daemon) transport(redact func(string) string) (http.RoundTripper, error) {
	next := d.s.Models.Transport
	if d.s.Models.Replay != "" {
		xs, err := readTape(d.s.Models.Replay)
		if err != nil {
			return nil, fmt.Errorf("replaying: %w", err)
		}
		next = llm.ReplayInOrder(xs, redact)
	}
	if d.s.Models.Record == "" {
		return next, nil
	}
	if next == nil {
		next = http.DefaultTransport
	}
	var err error
	if d.tape, err = os.OpenFile(d.s.Models.Record, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	var mu sync.Mutex // keeps lines whole
	return llm.Record(next, redact, func(x llm.Exchange) {
		mu.Lock()
		defer mu.Unlock()
		if err := appendJSON(d.tape, x); err != nil {
			d.log.Warn("an exchange was not recorded", "error", err)
		}
	}), nil
}

// readTape reads recorded exchanges, one a line.
func readTape(path string) ([]llm.Exchange, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []llm.Exchange
	for dec := json.NewDecoder(f); ; {
		var x llm.Exchange
		if err := dec.Decode(&x); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s, after %d exchanges: %w", path, len(out), err)
		}
		out = append(out, x)
	}
}

// A growing file is what appendJSON needs of an *os.File.
type growing interface {
	io.Writer
	Stat() (fs.FileInfo, error)
	Truncate(size int64) error
}

// appendJSON adds a line, whole or not at all: of a line that did not fit on the
// disk nothing stays, since what is added later would be part of it.
func appendJSON(f growing, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if n, err := f.Write(append(raw, '\n')); err != nil {
		if n > 0 {
			err = errors.Join(err, f.Truncate(st.Size()))
		}
		return err
	}
	return nil
}

// readCosts returns this month's entries of the ledger. A last line that a crash
// cut short is ignored; any other line that does not read is an error, because
// money that was spent must not be forgotten.
func readCosts(path string, now time.Time) ([]llm.Entry, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	whole := bytes.LastIndexByte(raw, '\n') + 1
	var out []llm.Entry
	for n, line := range bytes.Split(raw[:whole], []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		var e llm.Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n+1, err)
		}
		if e.At.Year() == now.Year() && e.At.Month() == now.Month() {
			out = append(out, e)
		}
	}
	if whole < len(raw) {
		return out, os.Truncate(path, int64(whole))
	}
	return out, nil
}

// readChoices reads what was chosen while a daemon ran: routes, and the line
// cascade=a,b,c if there is one.
func readChoices(path string) (routes []llm.Route, cascade []string, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if list, ok := strings.CutPrefix(line, cascadeKey); ok {
			cascade = strings.Split(list, ",")
			continue
		}
		if line == "" {
			continue
		}
		r, err := llm.ParseRoute(line)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", path, err)
		}
		routes = append(routes, r)
	}
	return routes, cascade, lines.Err()
}

// cascadeKey begins the choice of a cascade.
const cascadeKey = "cascade="

// choose puts a route or a cascade in force and remembers it.
func (d *Daemon) choose(text string) (string, error) {
	d.choosing.Lock()
	defer d.choosing.Unlock()
	path := d.statePath(routeFile)
	routes, cascade, err := readChoices(path)
	if err != nil {
		return "", err
	}
	if list, ok := strings.CutPrefix(text, cascadeKey); ok {
		cascade = strings.Split(list, ",")
		if err := d.engine.Reorder(cascade); err != nil {
			return "", err
		}
	} else {
		r, err := llm.ParseRoute(text)
		if err != nil {
			return "", err
		}
		if err := d.engine.Use(r); err != nil {
			return "", err
		}
		text = r.String()
		routes = append(slices.DeleteFunc(routes, func(x llm.Route) bool { return x.Tier == r.Tier && x.Slot == r.Slot }), r)
	}
	var b strings.Builder
	if len(cascade) > 0 {
		b.WriteString(cascadeKey + strings.Join(cascade, ",") + "\n")
	}
	for _, x := range routes {
		b.WriteString(x.String() + "\n")
	}
	return "From now on: " + text, durable.Replace(path, []byte(b.String()), 0o600)
}

// carriesTag reports of a text whether one of the privacy tags stands in it.
func carriesTag(tags []string) func(string) bool {
	return func(text string) bool {
		return slices.ContainsFunc(tags, func(tag string) bool { return tag != "" && strings.Contains(text, tag) })
	}
}

// asksModels reports whether there is any model to ask, or only the rules.
func (d *Daemon) asksModels(ctx context.Context) bool {
	return slices.ContainsFunc(d.engine.Choice(ctx, llm.Purpose{Tier: llm.Cognition, Slot: llm.Chat}), func(m string) bool {
		return m != "reflex"
	})
}

// maxAdvice bounds what is read of a file that goes into every prompt.
const maxAdvice = 16 << 10

// prompt is what a model is told beside the conversation.
func (d *Daemon) prompt() agent.Prompt {
	return agent.Prompt{
		Tokens:   d.s.Models.Tokens,
		Identity: func() string { return d.readPart("system/identity.org") },
		Advice:   func() string { return d.readPart("AGENTS.md") },
		Context: func(ctx context.Context, sig proto.Signal, tokens int) (string, proto.Taint, func()) {
			if !d.asksModels(ctx) {
				return "", proto.Taint{}, nil // rules do not read it
			}
			return d.awareness(ctx, sig, tokens)
		},
		Time: d.soon,
		Config: func() string {
			chain := d.policy.chain()
			return fmt.Sprintf("%d gates judge; policy %.12s; models for this: %s", len(chain.Gates()), chain.Policy().String(),
				strings.Join(d.engine.Choice(context.Background(), llm.Purpose{Tier: llm.Cognition, Slot: llm.Chat}), ", "))
		},
		Offer: d.offers,
	}
}

// readPart reads a small file of the memex, "" when there is none.
func (d *Daemon) readPart(name string) string {
	f, err := os.Open(filepath.Join(d.s.MemexDir, filepath.FromSlash(name)))
	if err != nil {
		return ""
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxAdvice))
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(string(raw), "")
}
