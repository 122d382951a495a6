package main

import "syscall"

// besideUs lets a program be ended together with what it starts. This system has no
// way to end it when we are killed.
func besideUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
