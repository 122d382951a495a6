package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"passepartout/internal/journal"
	"passepartout/internal/sexp"
)

// BenchmarkStartBesideALongJournal is a start of the daemon with a journal of many
// segments (JOURNAL_MB, usually 64) whose conversations are in the index, until it has
// answered what there are, and the first such start, which reads all of it.
func BenchmarkStartBesideALongJournal(b *testing.B) {
	mb := 64
	if n, err := strconv.Atoi(os.Getenv("JOURNAL_MB")); err == nil {
		mb = n
	}
	s := settings(b)
	if err := os.MkdirAll(s.StateDir, 0o700); err != nil {
		b.Fatal(err)
	}
	j, _, err := journal.Open(filepath.Join(s.StateDir, "journal"), journal.Options{})
	if err != nil {
		b.Fatal(err)
	}
	filler := strings.Repeat("What was said, at some length. ", 30)
	for i := range mb << 20 / 1300 {
		if _, err := j.AppendLazy(sexp.P(
			sexp.Keyword("KIND"), sexp.Keyword("SIGNAL"), sexp.Keyword("ID"), fmt.Sprintf("s-%d", i), sexp.Keyword("SESSION"), fmt.Sprintf("talk %d", i/500),
			sexp.Keyword("TYPE"), sexp.Keyword("EVENT"), sexp.Keyword("BODY"), sexp.P(sexp.Keyword("SENSOR"), sexp.Keyword("USER-INPUT"), sexp.Keyword("TEXT"), filler))); err != nil {
			b.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		b.Fatal(err)
	}
	start := func() time.Duration {
		began := time.Now()
		h := open(b, s)
		defer h.close()
		p := h.connect()
		for {
			r := p.request(data(b, `(:TYPE :REQUEST :PAYLOAD (:ACTION :SESSIONS))`))
			if r.Payload.Word("STATUS") == "DONE" {
				return time.Since(began)
			}
			if time.Since(began) > 10*time.Minute {
				b.Fatalf("%s", r.Payload)
			}
		}
	}
	first := start()
	for b.Loop() {
		start()
	}
	b.ReportMetric(float64(first.Milliseconds()), "first-ms")
}
