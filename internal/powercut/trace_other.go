//go:build !linux || !(amd64 || arm64)

package powercut

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

func watch(*disk, []string, []string, *os.File) error {
	return fmt.Errorf("%s on %s: %w", runtime.GOOS, runtime.GOARCH, errors.ErrUnsupported)
}
