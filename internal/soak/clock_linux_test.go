package soak

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// clockVar names the file whose first eight bytes, little end first, are the seconds
// by which the wall clock is wrong.
const clockVar = "SOAK_CLOCK"

// fault is added to the standard library's package time when the binary of a soak is
// built. The kernel lets nobody give a process a wall clock of its own (a time
// namespace has only the others), and a hook in the product would be code that only
// tests use. This way every call of time.Now in the program and all its libraries is
// wrong together, while the monotonic clock goes on: as when somebody sets the clock.
// The file is mapped, because timers ask for the time where no call of the system can
// be made.
const fault = `package time

import "syscall"

var faultPage = faultMap()

func faultMap() []byte {
	path, _ := syscall.Getenv("` + clockVar + `")
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	page, err := syscall.Mmap(fd, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	syscall.Close(fd)
	if err != nil {
		return nil
	}
	return page
}

func faultSeconds() (v int64) {
	for i, b := range faultPage {
		v |= int64(b) << (8 * i)
	}
	return v
}
`

const (
	readsClock  = "sec, nsec, mono := runtimeNow()\n\tif mono == 0 {"
	readsFaulty = "sec, nsec, mono := runtimeNow()\n\tsec += faultSeconds()\n\tif mono == 0 {"
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
	f, err := os.OpenFile(w.path("clock"), os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(int64(off/time.Second))), 0)
	return err
}
