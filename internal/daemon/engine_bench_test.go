package daemon_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"passepartout/internal/daemon"
	"passepartout/internal/llm"
)

// instant is a model that costs no time: what remains is ours.
type instant struct{ body string }

func (i instant) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
	}
	return &http.Response{StatusCode: 200, Status: "200 OK", Header: http.Header{}, Body: io.NopCloser(strings.NewReader(i.body)), Request: r}, nil
}

// BenchmarkOverheadOfATurn is everything but the model: socket, prompt assembly
// with a full conversation, redaction, request, stream, parser, gates, journal and
// reply, on a memex of ten thousand headings.
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
	s.Models = daemon.Models{
		Providers: []llm.Provider{{Name: "groq", Key: "key-of-groq", Model: "llama-3.1-8b-instant"}}, Cascade: []string{"groq"},
		Transport: instant{`data: {"choices":[{"delta":{"content":` + quoted(strings.Repeat("A sentence of the answer. ", 20)) + `},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"},
	}
	h := open(b, s)
	p := h.connect()
	for i := range 20 { // a conversation of its usual length
		p.request(say("main", fmt.Sprintf("question %d %s", i, strings.Repeat("with a few more words ", 20))))
	}
	var took []time.Duration
	b.ResetTimer()
	for i := range b.N {
		began := time.Now()
		if r := p.request(say("main", fmt.Sprintf("another question %d", i))); r.Payload.Word("STATUS") != "DONE" {
			b.Fatalf("ended %s", r.Payload)
		}
		took = append(took, time.Since(began))
	}
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}
