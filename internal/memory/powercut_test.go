package memory_test

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"testing"

	"passepartout/internal/durable"
	"passepartout/internal/memory"
	"passepartout/internal/powercut"
)

// TestAfterAPowerCutEachTransactionIsWholeOrAbsent watches the store as it ships, with
// nothing of ours between it and the disk: files are those after a transaction that was
// acknowledged, or after the one on its way, and history says the same.
func TestAfterAPowerCutEachTransactionIsWholeOrAbsent(t *testing.T) {
	if testing.Short() {
		t.Skip("many disks: run by make test")
	}
	ref := crashFixture(t)
	want, err := crashScenario(t, ref, newCrashDisk(t, -1, ref.dir))
	if err != nil {
		t.Fatal(err)
	}
	at := func(dir string) *fixture {
		return &fixture{t: t, dir: filepath.Join(dir, "memex"), state: filepath.Join(dir, "home", "state")}
	}
	powercut.Run(t, powercut.Scenario{
		Work: func(dir string, mark func(string)) error {
			f := at(dir)
			for name, text := range want[0] {
				path := filepath.Join(f.dir, name)
				if err := durable.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					return err
				}
				if err := durable.Replace(path, []byte(text), 0o600); err != nil {
					return err
				}
			}
			mark("ready")
			s, err := memory.Open(context.Background(), f.dir, f.options())
			if err != nil {
				return err
			}
			for i, step := range crashSteps(t, s) {
				if err := step(); err != nil {
					return err
				}
				mark(fmt.Sprint(i))
			}
			return s.Close()
		},
		Check: func(dir string, marks []string) error {
			if len(marks) == 0 {
				return nil
			}
			f := at(dir)
			s, err := memory.Open(context.Background(), f.dir, f.options())
			if err != nil {
				return err
			}
			got, n := crashRound(t, f), len(marks)-1
			switch {
			case maps.Equal(got, want[n]):
			case n+1 < len(want) && maps.Equal(got, want[n+1]):
				n++ // the one in flight was finished
			default:
				return fmt.Errorf("neither before nor after transaction %d: %q", n+1, got)
			}
			done := 0
			for _, op := range s.History() {
				if op.Kind != memory.OpExternal {
					done++
				}
			}
			if done != n {
				return fmt.Errorf("files are after transaction %d, history after %d", n, done)
			}
			if p := s.Verify(); len(p) > 0 {
				return fmt.Errorf("after transaction %d: %v", n, p)
			}
			return s.Close()
		},
		Again: 2,
	})
}
