package main

import (
	"passepartout/internal/daemon"
	"passepartout/internal/gate"
)

// bench is what the daemon of these settings would judge with.
func (a *app) bench() (*daemon.Bench, error) {
	cfg, err := a.config()
	if err != nil {
		return nil, err
	}
	return daemon.OpenBench(a.settings(cfg, 0))
}

// localChecker judges as the daemon would: this user's settings, the permissions
// and rules in the memex, the gates of skills, links and scripts as they are on
// disk.
func (a *app) localChecker() (*checker, error) {
	b, err := a.bench()
	if err != nil {
		return nil, err
	}
	c := &checker{policy: b.Policy, vocabulary: b.Vocabulary, world: b.World}
	c.chain, err = gate.Standard(b.Policy, b.Vocabulary, b.Gates...)
	return c, err
}
