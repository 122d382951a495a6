//go:build unix

package fovea_test

import (
	"syscall"
	"time"
)

// cpuTime is what the process has used so far. Benchmarks report it beside the
// clock, because a shared machine makes the clock tell little.
func cpuTime() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
