package main

import "syscall"

// besideUs lets a program be ended together with what it starts, and end with us
// however we end.
func besideUs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
