//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package journal

import (
	"errors"
	"fmt"
	"io"
)

// lockFile refuses: without a lock that ends with its process, two writers
// could fork the chain.
func lockFile(name string) (io.Closer, error) {
	return nil, fmt.Errorf("lock %s: %w", name, errors.ErrUnsupported)
}
