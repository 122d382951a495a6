//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// ownGroup puts a command into a process group of its own, and ends all of it when its
// time is over: go test leaves the test binary behind otherwise.
func ownGroup(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
}
