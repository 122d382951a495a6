//go:build !unix

package memory

import "os"

// lockState only marks the directory here: one daemon is the user's promise.
func lockState(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_RDWR|os.O_CREATE, newFileMode)
}
