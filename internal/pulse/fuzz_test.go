package pulse_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"passepartout/internal/memory"
	"passepartout/internal/pulse"
)

// FuzzOrders reads whatever somebody may write into a file of orders. A job that
// is read has a schedule that moves on.
func FuzzOrders(f *testing.F) {
	f.Add(job("A", "words", "CRON=0 8 * * *", "WHEN=due 2d", "CATCHUP=last 3h"))
	f.Add("#+HOOK: file * => prompt x\n* TODO B :job:\nSCHEDULED: <2026-11-16 Mon 10:00 ++1w -2h>\n")
	f.Add(job("C", "(:a 1)", "HOOK=todo DONE x/", "DO=tool capture", "RETRIES=3"))
	f.Fuzz(func(t *testing.T, text string) {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "system"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "system", "schedule.org"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := memory.Open(context.Background(), dir, memory.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		src := pulse.Source{Zone: time.UTC}
		for _, j := range src.Read(s.View()).Jobs {
			at := start
			for range 3 {
				due, ok := j.Next(at, at)
				if !ok {
					break
				}
				if !due.After(at) {
					t.Fatalf("%q: %s is not after %s", j.Schedule, due, at)
				}
				at = due
			}
		}
	})
}
