package daemon

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"passepartout/internal/pulse"
)

// checks are what the heartbeat looks after. None of them calls a model.
func (d *Daemon) checks() []pulse.Check {
	return []pulse.Check{
		{Name: "memory", Every: time.Minute, Run: d.checkMemory},
		{Name: "approvals", Every: time.Minute, Run: d.checkApprovals},
		{Name: "deadlines", Every: time.Minute, Run: d.checkDeadlines},
		{Name: "policy", Every: time.Minute, Run: d.checkPolicy},
		{Name: "journal", Every: time.Minute, Run: d.checkJournal},
		{Name: "index", Every: 10 * time.Minute, Run: d.checkIndex},
		{Name: "integrity", Every: time.Hour, Run: d.checkIntegrity},
	}
}

// checkMemory saves the index of the memory where it is behind.
func (d *Daemon) checkMemory(context.Context) (string, error) {
	if err := d.memory.Save(); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d headings, %d problems", d.memory.View().Len(), len(d.memory.Problems())), nil
}

// checkApprovals lets questions expire whose time is over.
func (d *Daemon) checkApprovals(context.Context) (string, error) {
	if _, err := d.plans.Pending(); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d wait", len(d.agent.Questions())), nil
}

// checkPolicy looks whether the compiled-in gates are all in force, and which
// policy and skills they were built with.
func (d *Daemon) checkPolicy(context.Context) (string, error) {
	chain := d.policy.chain()
	if err := d.policy.problem(); err != nil {
		return "", err
	}
	text := fmt.Sprintf("%d gates, policy %.12s", len(chain.Gates()), chain.Policy().String())
	if d.skills != nil {
		set := d.skills.Set()
		text += fmt.Sprintf(", skills %.12s", set.Digest().String())
		if n := len(set.Problems); n > 0 {
			return "", fmt.Errorf("%d skills have problems: %w", n, set.Problems[0])
		}
	}
	return text, nil
}

func (d *Daemon) checkJournal(context.Context) (string, error) {
	if err := d.journal.Sync(); err != nil {
		return "", err
	}
	seq, head := d.journal.Head()
	return fmt.Sprintf("%d entries, head %.12s", seq, head.String()), nil
}

// checkIndex brings the index up to date, so that the next question need not wait
// for it.
func (d *Daemon) checkIndex(context.Context) (string, error) {
	d.mirror.Sync(d.memory.View())
	return "up to date", nil
}

// checkIntegrity computes every hash of the memex again.
func (d *Daemon) checkIntegrity(context.Context) (string, error) {
	if !d.still.TryLock() {
		return "a command is running: every file is read again at the next beat", nil
	}
	defer d.still.Unlock()
	if ps := d.memory.Verify(); len(ps) > 0 {
		return "", fmt.Errorf("%d places do not agree, the first: %s: %w", len(ps), ps[0].Path, ps[0].Err)
	}
	return "every hash agrees: " + d.memory.View().Hash().String()[:12], nil
}

// calls are what an order may call by name.
func (d *Daemon) calls() map[string]func(context.Context) (string, error) {
	return map[string]func(context.Context) (string, error){
		"deadlines": d.checkDeadlines,
		"gardener":  d.callGardener,
		"integrity": d.checkIntegrity,
		"save":      d.checkMemory,
		"scribe":    d.callScribe,
	}
}

func callNames(m map[string]func(context.Context) (string, error)) []string {
	return slices.Sorted(maps.Keys(m))
}
