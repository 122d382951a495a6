package daemon_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"passepartout/internal/daemon"
	"passepartout/internal/proto"
)

// work receives until all who listen are told what long work goes on.
func (p *peer) work() string {
	p.t.Helper()
	for {
		m, err := p.Receive()
		if err != nil {
			p.t.Fatal(err)
		}
		if m.Kind == proto.Event && m.Do() == "work" {
			v, _ := m.Payload.Get("WORK")
			return v.String()
		}
	}
}

func TestLongWorkOfAClientIsToldToAllUntilItIsGone(t *testing.T) {
	h := open(t, settings(t))
	watcher, worker := h.connect(), h.connect()
	watcher.view("main", ":LISTEN")
	worker.view("main", `:WORKING :WHAT "importing" :HAVE 3 :WANT 120`)
	const want = `(:WHAT "importing" :HAVE 3 :WANT 120)` // the index may still be at work too
	if got := watcher.work(); !strings.Contains(got, want) {
		t.Errorf("those who listen hear %s, want %s", got, want)
	}
	if v, _ := watcher.view("main", ":OVERVIEW").Get("WORK"); !strings.Contains(v.String(), want) {
		t.Errorf("the overview has %s, want %s", v, want)
	}
	worker.nc.Close()
	if got := watcher.work(); strings.Contains(got, "importing") {
		t.Errorf("the client is gone, and its work is still %s", got)
	}
	for _, bad := range []string{`"mining" :HAVE 3 :WANT 120`, `"importing" :HAVE -1 :WANT 2`, `NIL`} {
		if m := watcher.request(data(t, `(:TYPE :REQUEST :PAYLOAD (:ACTION :WORKING :WHAT `+bad+`))`)); m.Do() != "error" {
			t.Errorf("%s: %s", bad, m.Payload)
		}
	}
}

func TestHowFarAStartIsEndsWithTheStart(t *testing.T) {
	s := settings(t)
	left := filepath.Join(s.StateDir, "starting")
	for text, want := range map[string]daemon.Work{
		"reading 256 1024\n": {What: "reading", Have: 256, Want: 1024},
		"reading 256":        {},
		"":                   {},
	} {
		if err := os.MkdirAll(s.StateDir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(left, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, ok := daemon.Starting(s.StateDir); ok != (want.What != "") || ok && got != want {
			t.Errorf("%q is %+v, %v", text, got, ok)
		}
	}
	if err := os.WriteFile(left, []byte("reading 1 2\n"), 0o600); err != nil { // of one that was killed
		t.Fatal(err)
	}
	h := open(t, s)
	h.connect()
	if got, ok := daemon.Starting(s.StateDir); ok {
		t.Errorf("the daemon listens, and is said to be %+v", got)
	}
}
