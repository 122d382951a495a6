// Command passepartout is the daemon, its clients and its tools in one binary.
//
// This package holds flags, exit codes and the wiring of commands, and nothing
// else: each file is one command or one concern of the command line.
//
//   - main.go: entry, exit codes
//   - root.go: the command tree, and what a bare call does
//   - client.go: finding or starting the daemon, asking it something
//
// The rule a newcomer will break: stdout is data, stderr is talk. Nothing that a
// script would not want to read may go to stdout.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"passepartout/internal/sandbox"
)

// Exit codes, the same for every command.
const (
	exitOK      = 0
	exitFailed  = 1
	exitUsage   = 2
	exitDenied  = 3 // a gate refused
	exitPending = 4 // a person must approve
)

func main() {
	sandbox.Init() // does not return where this process is a sandbox's first stage
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
}

// An exitError carries the code a command ends with. A nil err has been told
// already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usageError marks a mistake in how a command was called.
func usageError(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// run is main without the process, so that tests can call it.
func run(args []string, in io.Reader, out, errw io.Writer, environ []string) int {
	a := &app{in: in, out: out, errw: errw, environ: environ}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errw)
	err := root.Execute()
	code := exitOK
	if ee := (*exitError)(nil); errors.As(err, &ee) {
		code, err = ee.code, ee.err
	} else if err != nil {
		code = exitFailed
	}
	if err != nil {
		fmt.Fprintf(errw, "passepartout: %v\n", err)
	}
	return code
}
