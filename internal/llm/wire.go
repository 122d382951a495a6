package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"passepartout/internal/host"
)

// How long to wait when nobody says otherwise.
const (
	defaultTimeout = 30 * time.Second // for an answer to begin
	defaultStall   = 30 * time.Second // between two pieces of it
)

// A wire speaks to one provider over HTTP. It is constant after construction, but for
// what its toolbox remembers.
type wire struct {
	client  *http.Client
	base    string
	header  map[string]string
	key     string // what the header shows; no error may repeat it
	name    string // "provider/model", for errors
	timeout time.Duration
	stall   time.Duration
	now     func() time.Time
	box     *toolbox
}

// newClient returns an HTTP client that follows no redirect, because a redirect
// would carry a key and a prompt to a host nobody chose.
func newClient(t http.RoundTripper) *http.Client {
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// isLocal reports whether an address is on this machine. A name that somebody else's
// name server is asked for is not, even if it leads here today.
func isLocal(base string) bool {
	u, err := url.Parse(base)
	if err != nil {
		return false
	}
	h, err := host.Parse(u.Host)
	if err != nil || h.Class() != host.Loopback {
		return false
	}
	_, err = netip.ParseAddr(h.Name())
	return err == nil || h.Name() == "localhost" || strings.HasSuffix(h.Name(), ".localhost")
}

// checkBase refuses addresses over which a key, or on the public network a prompt,
// could be read by others.
func checkBase(base, key string) error {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil {
		return fmt.Errorf("address %q: want https://host, or http:// on this machine", base)
	}
	if u.Scheme == "https" || isLocal(base) {
		return nil
	}
	if h, err := host.Parse(u.Host); err == nil && h.Class() == host.Private && key == "" {
		return nil // a server in one's own network
	}
	return fmt.Errorf("address %q: want https, since others can read along", base)
}

func (w *wire) fail(c Class, sent bool, format string, args ...any) *Error {
	return &Error{Provider: w.name, Class: c, Sent: sent, Err: fmt.Errorf(format, args...)}
}

// post sends a request and gives the body of a successful answer to read. Silence
// for too long, before the answer or within it, ends it.
func (w *wire) post(ctx context.Context, path string, body any, read func(io.Reader) error) error {
	raw, err := encode(body)
	if err != nil {
		return w.fail(classInvalid, false, "%w", err)
	}
	return w.do(ctx, http.MethodPost, path, raw, read)
}

// encode is json.Marshal, but takes what was written by it before as it is: the tools
// are half of a request, and reading them again costs as much as all the rest. The
// names of the fields are ours, and plain.
func encode(body any) ([]byte, error) {
	fields, ok := body.(map[string]any)
	if !ok {
		return json.Marshal(body)
	}
	keys, size := slices.Sorted(maps.Keys(fields)), len("{}")
	values := make([]json.RawMessage, len(keys))
	for i, k := range keys {
		raw, written := fields[k].(json.RawMessage)
		if !written {
			var err error
			if raw, err = json.Marshal(fields[k]); err != nil {
				return nil, err
			}
		}
		values[i] = raw
		size += len(k) + len(raw) + len(`"":,`)
	}
	out := append(make([]byte, 0, size), '{')
	for i, k := range keys {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(strconv.AppendQuote(out, k), ':')
		out = append(out, values[i]...)
	}
	return append(out, '}'), nil
}

func (w *wire) do(ctx context.Context, method, path string, body []byte, read func(io.Reader) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	dog := watch(w.timeout, func() { cancel(context.DeadlineExceeded) })
	defer dog.stop()
	req, err := http.NewRequestWithContext(ctx, method, w.base+path, bytes.NewReader(body))
	if err != nil {
		return w.fail(classInvalid, false, "%w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "passepartout")
	for k, v := range w.header {
		req.Header.Set(k, v)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return w.broken(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return w.status(resp)
	}
	err = read(&watched{r: resp.Body, dog: dog, stall: w.stall, cancel: cancel})
	if e := (*Error)(nil); err == nil || errors.As(err, &e) {
		return err
	}
	return w.broken(ctx, err)
}

// broken is the failure of a connection or of what came over it.
func (w *wire) broken(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(cause, errStalled):
		return w.fail(classStalled, true, "no data for %v", w.stall)
	case errors.Is(cause, context.DeadlineExceeded):
		return w.fail(classTimeout, true, "no answer within %v", w.timeout)
	case cause != nil:
		return w.fail("", true, "%w", cause) // the caller's own reason, such as an interrupt
	case errors.As(err, &syntax), errors.As(err, &kind), errors.Is(err, errFormat):
		return w.fail(classMalformed, true, "%w", err)
	case errors.As(err, &timeout) && timeout.Timeout():
		return w.fail(classTimeout, true, "%w", err)
	case errors.Is(err, errEarly), errors.Is(err, io.ErrUnexpectedEOF):
		return w.fail(classNetwork, true, "%w", err)
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // without the address, which may hold what should not be shown
	}
	return w.fail(classNetwork, true, "%w", err)
}

// errFormat marks an answer that is JSON but not the provider's.
var errFormat = errors.New("the answer is not in the expected form")

// status is the failure an HTTP status stands for.
func (w *wire) status(resp *http.Response) error {
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // what came of it is enough
	e := w.fail(classify(resp.StatusCode, string(raw)), false, "%s: %s", w.short(resp.Status), w.short(message(raw)))
	e.After = retryAfter(resp.Header, w.now())
	return e
}

// message is what a provider says in the body of an error.
func message(raw []byte) string {
	var body struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
	}
	text := strings.TrimSpace(string(raw))
	if json.Unmarshal(raw, &body) == nil {
		var inner struct {
			Message string `json:"message"`
		}
		var plain string
		switch {
		case json.Unmarshal(body.Error, &inner) == nil && inner.Message != "":
			text = inner.Message
		case json.Unmarshal(body.Error, &plain) == nil && plain != "":
			text = plain
		case body.Message != "":
			text = body.Message
		}
	}
	return text
}

// short is what a provider said, fit for one line of an error: without the key,
// which some repeat to say that it is wrong.
func (w *wire) short(s string) string {
	const most, leastKey = 300, 8 // no key is shorter, and every text holds a letter
	if len(w.key) >= leastKey {
		s = strings.ReplaceAll(s, w.key, "[the key]")
	}
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "")), " ")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// A watchdog calls bark unless it is fed in time.
type watchdog struct {
	mu    sync.Mutex // guards timer and ended
	timer *time.Timer
	ended bool
}

func watch(d time.Duration, bark func()) *watchdog { return &watchdog{timer: time.AfterFunc(d, bark)} }

func (d *watchdog) feed(next time.Duration, bark func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended || !d.timer.Stop() {
		return
	}
	d.timer = time.AfterFunc(next, bark)
}

func (d *watchdog) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	d.timer.Stop()
}

// watched feeds the watchdog with every piece that is read.
type watched struct {
	r      io.Reader
	dog    *watchdog
	stall  time.Duration
	cancel context.CancelCauseFunc
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if n > 0 {
		w.dog.feed(w.stall, func() { w.cancel(errStalled) })
	}
	return n, err
}
