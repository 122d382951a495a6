//go:build !unix

package main

import "io/fs"

// severalNames is not known here, so nothing is said.
func severalNames(fs.FileInfo) bool { return false }
