package soak

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// clockVar names the file with the seconds by which the wall clock is wrong.
const clockVar = "SOAK_CLOCK"

// fault is added to the standard library's package time when the binary of a soak is
// built. The kernel lets nobody give a process a wall clock of its own (a time
// namespace has only the others), and a hook in the product would be code that only
// tests use. This way every call of time.Now in the program and all its libraries is
// wrong together, while the monotonic clock goes on: as when somebody sets the clock.
const fault = `package time

import (
	"sync/atomic"
	"syscall"
)

var (
	faultLook   atomic.Int64 // monotonic time of the next look
	faultOffset atomic.Int64
)

func faultSeconds(mono int64) int64 {
	if next := faultLook.Load(); mono < next || !faultLook.CompareAndSwap(next, mono+20e6) {
		return faultOffset.Load()
	}
	path, ok := syscall.Getenv("` + clockVar + `")
	if !ok {
		return 0
	}
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return faultOffset.Load()
	}
	var b [24]byte
	n, _ := syscall.Read(fd, b[:])
	syscall.Close(fd)
	var v int64
	for _, c := range b[:max(n, 0)] {
		if c >= '0' && c <= '9' {
			v = v*10 + int64(c-'0')
		}
	}
	if n > 0 && b[0] == '-' {
		v = -v
	}
	faultOffset.Store(v)
	return v
}
`

const (
	readsClock  = "sec, nsec, mono := runtimeNow()\n\tif mono == 0 {"
	readsFaulty = "sec, nsec, mono := runtimeNow()\n\tsec += faultSeconds(mono)\n\tif mono == 0 {"
)

// build makes the binary; with a clock that can be set when the run wants one.
func build(t *testing.T, dir string, clock bool) {
	t.Helper()
	args := []string{"build", "-o", filepath.Join(dir, "bin", "passepartout")}
	if clock {
		overlay, err := clockOverlay(filepath.Join(dir, "overlay"))
		if err != nil {
			t.Fatalf("the clock cannot be built in: %v", err)
		}
		args = append(args, "-overlay", overlay)
	}
	c := exec.Command("go", append(args, "passepartout/cmd/passepartout")...)
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("building the binary: %v\n%s", err, out)
	}
}

func clockOverlay(dir string) (string, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	std := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	raw, err := os.ReadFile(filepath.Join(std, "time.go"))
	if err != nil {
		return "", err
	}
	if strings.Count(string(raw), readsClock) != 1 {
		return "", fmt.Errorf("%s/time.go reads the clock in a way this test does not know", std)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	replace := map[string]string{}
	for name, text := range map[string]string{"time.go": strings.Replace(string(raw), readsClock, readsFaulty, 1), "fault.go": fault} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return "", err
		}
		replace[filepath.Join(std, name)] = path
	}
	spec, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, spec, 0o644)
}

// setClock makes the clock of every process of the program wrong by so much.
func (w *world) setClock(off time.Duration) error {
	tmp := w.path("clock.new")
	if err := os.WriteFile(tmp, fmt.Appendf(nil, "%d", int64(off/time.Second)), 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, w.path("clock"))
}
