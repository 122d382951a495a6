package llm

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// An Exchange is one request to a provider and its answer, without credentials:
// no request header is kept, and text is redacted.
type Exchange struct {
	Method   string `json:"method"`
	Path     string `json:"path"` // with its query, without the host
	Digest   string `json:"digest"`
	Request  string `json:"request"`
	Status   int    `json:"status"`
	Type     string `json:"type"` // of the response's content
	Response string `json:"response"`
}

// Record returns a transport that passes everything on to next and gives each
// exchange to save once its answer has been read. Redact removes credentials; it
// must not be nil, because what is saved is kept.
func Record(next http.RoundTripper, redact func(string) string, save func(Exchange)) http.RoundTripper {
	return recorder{next, redact, save}
}

type recorder struct {
	next   http.RoundTripper
	redact func(string) string
	save   func(Exchange)
}

// RoundTrip implements [http.RoundTripper].
func (r recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := readBody(req)
	if err != nil {
		return nil, err
	}
	resp, err := r.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	clean := r.redact(body)
	x := Exchange{
		Method: req.Method, Path: req.URL.RequestURI(), Digest: digest(clean), Request: clean,
		Status: resp.StatusCode, Type: resp.Header.Get("Content-Type"),
	}
	resp.Body = &tape{ReadCloser: resp.Body, end: func(text string) {
		x.Response = r.redact(text)
		r.save(x)
	}}
	return resp, nil
}

// readBody takes a request's body and puts it back.
func readBody(req *http.Request) (string, error) {
	if req.Body == nil {
		return "", nil
	}
	raw, err := io.ReadAll(req.Body)
	if err != nil {
		return "", err
	}
	req.Body = io.NopCloser(bytes.NewReader(raw))
	return string(raw), nil
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}

// A tape keeps what is read of a body.
type tape struct {
	io.ReadCloser
	buf  bytes.Buffer
	end  func(string)
	once sync.Once
}

func (t *tape) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if t.buf.Len() < maxStream {
		t.buf.Write(p[:n])
	}
	return n, err
}

func (t *tape) Close() error {
	t.once.Do(func() { t.end(t.buf.String()) })
	return t.ReadCloser.Close()
}

// Replay returns a transport that answers from recorded exchanges, each once, and
// reaches nobody. Redact must be the one they were recorded with.
func Replay(xs []Exchange, redact func(string) string) http.RoundTripper {
	return &replayer{left: append([]Exchange(nil), xs...), redact: redact}
}

// ReplayInOrder is [Replay] for a conversation that is had again at another time:
// what no exchange was recorded for is answered by the next one with the same path.
func ReplayInOrder(xs []Exchange, redact func(string) string) http.RoundTripper {
	return &replayer{left: append([]Exchange(nil), xs...), redact: redact, inOrder: true}
}

type replayer struct {
	redact  func(string) string
	inOrder bool
	mu      sync.Mutex // guards left
	left    []Exchange
}

// RoundTrip implements [http.RoundTripper].
func (r *replayer) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := readBody(req)
	if err != nil {
		return nil, err
	}
	d := digest(r.redact(body))
	r.mu.Lock()
	defer r.mu.Unlock()
	same := func(x Exchange) bool { return x.Method == req.Method && x.Path == req.URL.RequestURI() }
	i := slices.IndexFunc(r.left, func(x Exchange) bool { return same(x) && x.Digest == d })
	if i < 0 && r.inOrder {
		i = slices.IndexFunc(r.left, same)
	}
	if i >= 0 {
		x := r.left[i]
		r.left = append(r.left[:i:i], r.left[i+1:]...)
		return &http.Response{
			StatusCode: x.Status, Status: fmt.Sprintf("%d %s", x.Status, http.StatusText(x.Status)), Request: req,
			Header: http.Header{"Content-Type": {x.Type}}, Body: io.NopCloser(strings.NewReader(x.Response)),
		}, nil
	}
	return nil, fmt.Errorf("no recorded exchange for %s %s with the body %s", req.Method, req.URL.Path, d)
}
