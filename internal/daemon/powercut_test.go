package daemon_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"passepartout/internal/daemon"
	"passepartout/internal/durable"
	"passepartout/internal/journal"
	"passepartout/internal/powercut"
	"passepartout/internal/proto"
)

// TestAWholeDaemonSurvivesAPowerCut has a daemon ask, be answered and act, and pulls the
// plug under all of its stores at once: it starts again, the record is whole, what was
// done was done once, and what was asked is asked still, done, or told as not known.
func TestAWholeDaemonSurvivesAPowerCut(t *testing.T) {
	if os.Getenv("PASSEPARTOUT_SOAK") == "" {
		t.Skip("starts a daemon hundreds of times: run with PASSEPARTOUT_SOAK=1")
	}
	const things = 2
	powercut.Run(t, powercut.Scenario{
		Every: 16,
		Work: func(dir string, mark func(string)) error {
			policy := filepath.Join(dir, "memex", "system", "permissions.org")
			if err := durable.MkdirAll(filepath.Dir(policy), 0o700); err != nil {
				return err
			}
			if err := durable.Replace(policy, []byte(askFirst), 0o600); err != nil {
				return err
			}
			mark("ready")
			h := open(t, powercutSettings(t, dir))
			p := h.connect()
			for i := range things {
				m := p.request(say("main", fmt.Sprintf("note that thing%d", i)))
				token := tokenIn(m)
				if token == "" {
					return fmt.Errorf("want a question, found %s", m.Value())
				}
				mark(fmt.Sprintf("asked %d %s", i, token))
				if m = p.request(say("main", "/approve "+token)); m.Payload.Word("STATUS") != "DONE" {
					return fmt.Errorf("approved: %s", m.Value())
				}
				if err := planOver(p, token); err != nil {
					return err
				}
				mark(fmt.Sprintf("done %d", i))
			}
			h.close()
			return nil
		},
		Check: func(dir string, marks []string) error {
			if len(marks) == 0 {
				return nil
			}
			s := powercutSettings(t, dir)
			ctx, stop := context.WithCancel(context.Background())
			defer stop()
			d, err := daemon.Open(ctx, s)
			if err != nil {
				return err
			}
			h := &house{t: t, settings: s, stop: stop, ended: make(chan error, 1)}
			go func() { h.ended <- d.Run(ctx) }()
			p := h.connect()
			for i := range things {
				token := ""
				for _, m := range marks {
					if rest, ok := strings.CutPrefix(m, fmt.Sprintf("asked %d ", i)); ok {
						token = rest
					}
				}
				if token == "" {
					continue
				}
				p.request(say("main", "/approve "+token)) // by somebody who does not remember
				if err := planOver(p, token); err != nil {
					return err
				}
				n, err := count(dir, fmt.Sprintf("thing%d", i))
				if err != nil {
					return err
				}
				if n > 1 || n == 0 && slices.Contains(marks, fmt.Sprintf("done %d", i)) {
					return fmt.Errorf("thing%d was noted %d times, after %q", i, n, marks)
				}
			}
			h.close()
			if _, err := journal.Verify(filepath.Join(s.StateDir, "journal")); err != nil {
				return err
			}
			return nil
		},
	})
}

// planOver waits until a plan is no longer on its way.
func planOver(p *peer, token string) error {
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); runtime.Gosched() {
		m := p.request(approvalsRequest())
		open, _ := m.Payload.Get("PENDING")
		running, _ := m.Payload.Get("RUNNING")
		if !strings.Contains(fmt.Sprint(open, running), token) {
			return nil
		}
	}
	return fmt.Errorf("%s is still on its way", token)
}

func tokenIn(m proto.Message) string {
	for word := range strings.FieldsSeq(m.Payload.Text("TEXT")) {
		if strings.HasPrefix(word, "a-") {
			return word
		}
	}
	return ""
}

// count is how often a word is in the notes.
func count(dir, word string) (int, error) {
	raw, err := os.ReadFile(filepath.Join(dir, "memex", "inbox", "inbox.org"))
	if os.IsNotExist(err) {
		return 0, nil
	}
	return strings.Count(string(raw), word), err
}

func powercutSettings(t *testing.T, dir string) daemon.Settings {
	t.Helper()
	s := settings(t) // for its socket, which is no part of the disk
	s.MemexDir, s.StateDir, s.Home = filepath.Join(dir, "memex"), filepath.Join(dir, "state"), dir
	return s
}
