package daemon_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"passepartout/internal/daemon"
	"passepartout/internal/llm"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// prose is n bytes of sentences of several lengths, in paragraphs.
func prose(n int) string {
	words := strings.Fields("the garden keeps what was planted there and every year some of it comes back without being asked " +
		"while the rest has to be sown again in rows that nobody else would have chosen for carrots or for beans")
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		b.WriteString(words[i*7%len(words)])
		switch {
		case i%131 == 130:
			b.WriteString(".\n\n")
		case i%17 == 16:
			b.WriteString(". ")
		default:
			b.WriteByte(' ')
		}
	}
	return b.String()[:n]
}

// tokenServer sends a text as a model would that writes so many tokens a second.
func tokenServer(tb testing.TB, text string, perSecond int) *httptest.Server {
	tb.Helper()
	const every = 10 * time.Millisecond
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		flush := http.NewResponseController(rw)
		tick := time.NewTicker(every)
		defer tick.Stop()
		began, sent := time.Now(), 0
		for rest := text; rest != ""; {
			select {
			case <-r.Context().Done():
				return
			case <-tick.C:
			}
			for due := int(time.Since(began).Seconds() * float64(perSecond)); sent < due && rest != ""; sent++ {
				n := min(5, len(rest))
				fmt.Fprintf(rw, "data: {\"choices\":[{\"delta\":{\"content\":%s}}]}\n\n", quoted(rest[:n]))
				rest = rest[n:]
			}
			_ = flush.Flush()
		}
		fmt.Fprint(rw, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	tb.Cleanup(server.Close)
	return server
}

// BenchmarkALongAnswerIsShown is the way of 100 KB from a model that writes 1,000
// tokens a second, over HTTP, through judging and the socket, to a client: how often
// the client sees something new, the longest it sees nothing in the middle, and how
// much of a processor all of it takes, the model and the client included.
func BenchmarkALongAnswerIsShown(b *testing.B) {
	text := prose(100_000)
	server := tokenServer(b, text, 1000)
	s := settings(b)
	s.Models = daemon.Models{
		Providers: []llm.Provider{{Name: "groq", Key: "key-of-groq", Model: "llama-3.1-8b-instant", Base: server.URL}}, Cascade: []string{"groq"},
	}
	h := open(b, s)
	p := h.connect()
	settle(b)
	for b.Loop() {
		before, began := processorTime(b), time.Now()
		var first, last time.Time
		var longest time.Duration
		updates, shown := 0, 0
		p.id++
		m := say("main", "tell me everything about it")
		m.Meta = m.Meta.With("ID", sexp.NewInt(p.id))
		if err := p.Send(m); err != nil {
			b.Fatal(err)
		}
		for {
			f, err := p.Receive()
			if err != nil {
				b.Fatal(err)
			}
			if f.Kind == proto.StreamChunk && f.Payload.Text("TEXT") != "" {
				now := time.Now()
				if updates++; updates > 1 {
					longest = max(longest, now.Sub(last))
				} else {
					first = now
				}
				last, shown = now, shown+len(f.Payload.Text("TEXT"))
			}
			if f.Kind == proto.Response {
				if f.Payload.Word("STATUS") != "DONE" {
					b.Fatalf("ended %s", f.Payload)
				}
				break
			}
		}
		took := time.Since(began)
		b.ReportMetric(float64(updates)/last.Sub(first).Seconds(), "updates/s")
		b.ReportMetric(float64(longest.Milliseconds()), "longest-gap-ms")
		b.ReportMetric(100*float64(processorTime(b)-before)/float64(took), "cpu-%")
		b.ReportMetric(100*float64(shown)/float64(len(text)), "shown-%")
	}
}
