//go:build unix

package main

import (
	"io/fs"
	"syscall"
)

// severalNames reports whether a file has hard links.
func severalNames(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink > 1
}
