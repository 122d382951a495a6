package pulse_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"passepartout/internal/memory"
	"passepartout/internal/powercut"
	"passepartout/internal/pulse"
)

// TestEveryDueTimeIsAccountedForAfterAPowerCut: whenever the power fails, each due time
// that had passed is in the history of its job once, and none leads to two runs.
func TestEveryDueTimeIsAccountedForAfterAPowerCut(t *testing.T) {
	if testing.Short() {
		t.Skip("many disks: run by make test")
	}
	b := &bed{t: t, memex: t.TempDir(), now: start}
	var jobs []string
	policies := []string{"all", "last", "none"}
	for _, p := range policies {
		jobs = append(jobs, job("Job "+p, "Do it.", "CRON=* * * * *", "CATCHUP="+p))
	}
	for name, text := range schedule(jobs...) {
		b.write(name, text)
	}
	var err error
	if b.store, err = memory.Open(context.Background(), b.memex, memory.Options{Now: b.clock}); err != nil {
		t.Fatal(err)
	}
	defer b.store.Close()
	const minutes = 6
	options := func(dir string, ran func(pulse.Order)) pulse.Options {
		o := b.options()
		o.Dir = filepath.Join(dir, "state", "pulse")
		o.Do = func(_ context.Context, order pulse.Order) (string, error) {
			ran(order)
			return "fine", nil
		}
		return o
	}
	look := func(p *pulse.Pulse, at time.Time) {
		b.set(at)
		for range 3 { // what waited for a place, or for another run of its job
			p.Tick(at)
			p.Settled()
		}
	}
	said := func(o pulse.Order) string { return o.Name + " " + o.Due.Format("15:04") }
	powercut.Run(t, powercut.Scenario{
		Work: func(dir string, mark func(string)) error {
			p, err := pulse.Open(options(dir, func(o pulse.Order) { mark("ran " + said(o)) }))
			if err != nil {
				return err
			}
			look(p, start)
			mark("seen")
			mark("pausing")
			if _, err := p.Pause("Job none", true); err != nil {
				return err
			}
			mark("paused")
			for _, i := range []int{1, 2, 5, 6} { // the machine slept for a while
				look(p, start.Add(time.Duration(i)*time.Minute))
			}
			return p.Close()
		},
		Check: func(dir string, marks []string) error {
			runs := map[string]int{}
			for _, m := range marks {
				if order, ok := strings.CutPrefix(m, "ran "); ok {
					runs[order]++
				}
			}
			b.mu.Lock()
			b.now = start.Add(minutes*time.Minute + 30*time.Second)
			b.mu.Unlock()
			p, err := pulse.Open(options(dir, func(o pulse.Order) { b.mu.Lock(); runs[said(o)]++; b.mu.Unlock() }))
			if err != nil {
				return err
			}
			look(p, b.clock())
			if err := accounted(p, policies, marks, minutes, runs); err != nil {
				return err
			}
			return p.Close()
		},
		Again: 2,
	})
}

func accounted(p *pulse.Pulse, policies, marks []string, minutes int, runs map[string]int) error {
	for order, n := range runs {
		if n > 1 {
			return fmt.Errorf("%s was run %d times", order, n)
		}
	}
	for _, policy := range policies {
		history, err := p.History("Job "+policy, 1000)
		if err != nil {
			return err
		}
		for i := range minutes {
			due := start.Add(time.Duration(i+1) * time.Minute)
			told := 0
			for _, r := range history {
				if until := r.Until; !r.Due.After(due) && (r.Due.Equal(due) || !until.Before(due)) {
					told++
				}
			}
			if told > 1 || told == 0 && slices.Contains(marks, "seen") && !(policy == "none" && slices.Contains(marks, "pausing")) {
				return fmt.Errorf("job %s: the due time %s is told %d times in %v", policy, due.Format("15:04"), told, history)
			}
		}
		if policy == "none" && slices.Contains(marks, "paused") && runs["Job none "+start.Add(time.Minute).Format("15:04")] > 0 {
			return fmt.Errorf("a job that was paused ran: %v", runs)
		}
	}
	return nil
}
