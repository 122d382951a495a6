//go:build !linux

package memory

func swapNames(string, string) error { return errNoSwap }
