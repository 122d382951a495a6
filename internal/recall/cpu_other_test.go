//go:build !unix

package recall_test

import "time"

func cpuTime() time.Duration { return 0 }
