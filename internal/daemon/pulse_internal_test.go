package daemon

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"passepartout/internal/llm"
)

// deaf counts requests to providers, and answers none.
type deaf struct{ asked atomic.Int64 }

func (d *deaf) RoundTrip(*http.Request) (*http.Response, error) {
	d.asked.Add(1)
	return nil, errors.New("nobody is to be asked")
}

// TestINV14ADayOfHeartbeatsCallsNobody lets a daemon with a provider in the cloud
// live through 24 hours, minute by minute, with all of its checks.
func TestINV14ADayOfHeartbeatsCallsNobody(t *testing.T) {
	dir := t.TempDir()
	memex := filepath.Join(dir, "memex")
	start := time.Date(2031, 5, 4, 9, 0, 0, 0, time.UTC)
	var passed atomic.Int64 // minutes; parts of the daemon look at the clock by themselves
	clock := func() time.Time { return start.Add(time.Duration(passed.Load()) * time.Minute) }
	if err := WriteDemo(memex, start); err != nil {
		t.Fatal(err)
	}
	net := &deaf{}
	d, err := Open(context.Background(), Settings{
		MemexDir: memex, StateDir: filepath.Join(dir, "state"), SocketPath: filepath.Join(dir, "pp.sock"), Assistant: "test", Home: dir, User: "test",
		PrivacyTags: []string{"@personal"}, ApprovalTTL: time.Hour, MaxClients: 8, Now: clock,
		Models: Models{
			Providers: []llm.Provider{{Name: "groq", Key: "key-of-groq", Model: "llama-3.1-8b-instant"}, {Name: "ollama"}}, Transport: net, Timeout: time.Second,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.release(); err != nil {
			t.Error(err)
		}
	}()
	minutes := func(n int) uint64 {
		for range n {
			passed.Add(1)
			d.pulse.Tick(clock())
			d.pulse.Beat(context.Background(), clock())
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	early := minutes(2 * 60)
	late := minutes(22 * 60)
	grown := int64(late) - int64(early)
	for _, c := range d.pulse.Status().Checks {
		if c.Failed || c.Times < 20 {
			t.Errorf("%s: %d times, failed %t: %s", c.Name, c.Times, c.Failed, c.Text)
		}
	}
	t.Logf("24 hours of heartbeats: %d requests, heap grew by %d bytes in the last 22", net.asked.Load(), grown)
	if n := net.asked.Load(); n != 0 || grown > 1<<20 {
		t.Errorf("%d requests, %d bytes", n, grown)
	}
}
