//go:build !linux

package sandbox

import (
	"context"
	"fmt"
	"runtime"
)

// Init does nothing on systems without a sandbox.
func Init() {}

// Probe says that there is no sandbox on this system.
func Probe(context.Context) Status {
	return Status{Parts: []Part{{Name: "system", Note: "no sandbox is built for " + runtime.GOOS}}}
}

// Strength is None on systems without a sandbox.
func Strength(context.Context) Level { return None }

// SystemRoots is empty on systems without a sandbox.
func SystemRoots() []string { return nil }

// Everything is empty on systems without a sandbox.
func Everything(...string) []string { return nil }

// DryRun refuses on systems without a sandbox.
func DryRun(context.Context, Spec, string) (Result, []Change, error) {
	return Result{}, nil, fmt.Errorf("%w: wanted Linux namespaces, found %s", ErrUnavailable, runtime.GOOS)
}

func run(context.Context, Spec, *overlay) (Result, error) {
	return Result{}, fmt.Errorf("%w: wanted Linux namespaces, found %s", ErrUnavailable, runtime.GOOS)
}
