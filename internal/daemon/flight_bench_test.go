package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"passepartout/internal/daemon"
	"passepartout/internal/flight"
)

// crowd leaves n questions in the daemon's state: the one it was really asked, again
// and again under other tokens. They are written where waiting for the disk costs
// nothing.
func crowd(tb testing.TB, s daemon.Settings, n int) {
	tb.Helper()
	h := open(tb, s)
	h.connect().request(say("main", "note that many"))
	h.close()
	dir := filepath.Join(s.StateDir, "flight")
	quick, err := os.MkdirTemp("/dev/shm", "pp")
	if err != nil {
		quick = tb.TempDir()
	}
	defer os.RemoveAll(quick)
	copyFile(tb, filepath.Join(dir, "plans.log"), filepath.Join(quick, "plans.log"))
	log, err := flight.Open(flight.Options{Dir: quick, Now: time.Now})
	if err != nil {
		tb.Fatal(err)
	}
	open, err := log.Pending()
	if err != nil || len(open) != 1 {
		tb.Fatal(len(open), err)
	}
	for i := range n - 1 {
		p := open[0]
		p.Token = fmt.Sprintf("a-%06d", i)
		if _, err := log.Ask(p, time.Hour); err != nil {
			tb.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		tb.Fatal(err)
	}
	copyFile(tb, filepath.Join(quick, "plans.log"), filepath.Join(dir, "plans.log"))
}

func copyFile(tb testing.TB, from, to string) {
	tb.Helper()
	raw, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, raw, 0o600)
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// BenchmarkApprovals10k lists ten thousand open questions over the socket.
func BenchmarkApprovals10k(b *testing.B) {
	const n = 10_000
	s := askingSettings(b)
	crowd(b, s, n)
	p := open(b, s).connect()
	for b.Loop() {
		if got := len(plists(b, p.request(approvalsRequest()).Payload, "PENDING")); got != n {
			b.Fatalf("%d questions are listed, want %d", got, n)
		}
	}
}

func TestManyOpenQuestionsAreListedOverTheSocketAndOneIsAnswered(t *testing.T) {
	n := 500
	if os.Getenv("PASSEPARTOUT_SOAK") != "" {
		n = 10_000
	}
	s := askingSettings(t)
	crowd(t, s, n)
	p := open(t, s).connect()
	start := time.Now()
	tokens := p.pending()
	t.Logf("%d questions listed over the socket in %v", len(tokens), time.Since(start))
	if len(tokens) != n {
		t.Fatalf("%d questions are open after a restart, want %d", len(tokens), n)
	}
	p.request(answerMessage(tokens[n/2], "APPROVED"))
	p.untilCaptured("many")
	if got := captured(t, s, "many"); got != 1 {
		t.Errorf("one answer had %d effects", got)
	}
}
