package daemon_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"passepartout/internal/daemon"
	"passepartout/internal/llm"
)

// instant is a model that costs no time: what remains is ours.
type instant struct {
	body   string
	prefix *prefixes
}

func (i instant) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		i.prefix.hear(raw)
	}
	return &http.Response{StatusCode: 200, Status: "200 OK", Header: http.Header{}, Body: io.NopCloser(strings.NewReader(i.body)), Request: r}, nil
}

// BenchmarkOverheadOfATurn is everything but the model: socket, prompt assembly
// with a full conversation, redaction, request, stream, parser, gates, journal and
// reply, on a memex of ten thousand headings, with the context that belongs to the
// question. Beside the time on the clock it reports processor time, which other
// work on the machine does not lengthen, and how much of a request a provider has
// seen before.
func BenchmarkOverheadOfATurn(b *testing.B) {
	s := settings(b)
	for f := range 100 {
		var org strings.Builder
		for n := range 100 {
			fmt.Fprintf(&org, "* TODO Heading %d of file %d\nSome words about the garden, the workshop and topic %d.\n", n, f, n*f)
		}
		if err := os.WriteFile(filepath.Join(s.MemexDir, fmt.Sprintf("notes-%03d.org", f)), []byte(org.String()), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	seen := &prefixes{}
	s.Models = daemon.Models{
		Providers: []llm.Provider{{Name: "groq", Key: "key-of-groq", Model: "llama-3.1-8b-instant"}}, Cascade: []string{"groq"},
		Transport: instant{prefix: seen, body: `data: {"choices":[{"delta":{"content":` + quoted(strings.Repeat("A sentence of the answer. ", 20)) + `},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"},
	}
	h := open(b, s)
	p := h.connect()
	for i := range 20 { // a conversation of its usual length
		p.request(say("main", fmt.Sprintf("question %d %s", i, strings.Repeat("with a few more words ", 20))))
	}
	settle(b)
	for i := range 200 { // until what they need is allocated and touched
		p.request(say("main", fmt.Sprintf("a further question %d", i)))
	}
	*seen = prefixes{last: seen.last}
	var took []time.Duration
	before := processorTime(b)
	b.ResetTimer()
	for i := range b.N {
		began := time.Now()
		if r := p.request(say("main", fmt.Sprintf("another question %d", i))); r.Payload.Word("STATUS") != "DONE" {
			b.Fatalf("ended %s", r.Payload)
		}
		took = append(took, time.Since(began))
	}
	b.StopTimer()
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
	b.ReportMetric(100*float64(seen.again)/float64(seen.all), "prefix-%")
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}

// prefixes measures how much of each prompt is the beginning of the one before. A
// prompt is what a provider makes of a request: tools first, then the messages.
type prefixes struct {
	last       []byte
	again, all int
}

func (p *prefixes) hear(raw []byte) {
	var r struct{ Tools, Messages json.RawMessage }
	if err := json.Unmarshal(raw, &r); err != nil {
		return // shows as a prompt that never repeats
	}
	body, n := slices.Concat(r.Tools, r.Messages), 0
	for n < min(len(body), len(p.last)) && body[n] == p.last[n] {
		n++
	}
	p.last, p.again, p.all = body, p.again+n, p.all+len(body)
}

// processorTime is what this process has used so far.
func processorTime(t testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// settle waits until what a daemon does after its start, indexing and learning, is
// done: until the process hardly works.
func settle(t testing.TB) {
	const step = 200 * time.Millisecond
	for range 300 {
		before := processorTime(t)
		time.Sleep(step)
		if processorTime(t)-before < step/20 {
			return
		}
	}
	t.Log("the daemon was still at work after a minute")
}
