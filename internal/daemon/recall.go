package daemon

import (
	"context"
	"time"

	"passepartout/internal/fovea"
	"passepartout/internal/proto"
)

// relearn is how often the daemon looks whether the memex has grown so much that
// its vectors should be learnt again.
const relearn = 10 * time.Minute

// follow keeps the index equal to the memex until the context ends.
func (d *Daemon) follow(ctx context.Context) {
	tick := time.NewTicker(relearn)
	defer tick.Stop()
	for {
		d.mirror.Sync(d.memory.View())
		if err := d.mirror.Learn(ctx); err != nil && ctx.Err() == nil {
			d.log.Warn("recall: vectors were not learnt", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// awareness is what of the memex belongs to a signal. Which model will read it is
// not known yet, so nothing privacy-tagged is in it, nor text that is not the
// person's own: both are for tools, which label what they return.
func (d *Daemon) awareness(_ context.Context, sig proto.Signal, tokens int) (string, proto.Taint) {
	c := d.mirror.Render(d.memory.View(), fovea.Focus{
		Query: sig.Text(), Now: d.now(), Budget: min(tokens, fovea.DefaultBudget), Cloud: true, Trusted: true,
	})
	return c.Text, proto.Taint{Private: c.Private, Untrusted: c.Untrusted}
}
