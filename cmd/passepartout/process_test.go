package main_test

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// pidOf is the process a daemon's lock file names, 0 for none.
func pidOf(lock string) int {
	raw, err := os.ReadFile(lock)
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		return 0
	}
	return pid
}

// stopDaemon asks a daemon to end and waits until it has.
func stopDaemon(lock string) { signalDaemon(lock, syscall.SIGTERM) }

// killDaemon ends a daemon at once, as a crash would.
func killDaemon(lock string) { signalDaemon(lock, syscall.SIGKILL) }

func signalDaemon(lock string, sig syscall.Signal) {
	pid := pidOf(lock)
	if pid == 0 || syscall.Kill(pid, sig) != nil {
		return
	}
	f, err := os.Open(lock)
	if err != nil {
		return
	}
	defer f.Close()
	for range 2000 { // until it has let go of its lock
		if syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}
