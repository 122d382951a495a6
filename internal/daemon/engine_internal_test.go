package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"passepartout/internal/llm"
)

// A smallDisk takes so many bytes and then is full.
type smallDisk struct {
	*os.File
	room int
}

func (d *smallDisk) Write(p []byte) (int, error) {
	n := min(len(p), d.room)
	d.room -= n
	n, err := d.File.Write(p[:n])
	if n < len(p) {
		err = errors.Join(err, syscall.ENOSPC)
	}
	return n, err
}

// Found by the soak: half a line that a full disk had left made one with the next, and
// no daemon started any more.
func TestBooksThatMetAFullDiskCanBeReadAndContinued(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	path := filepath.Join(t.TempDir(), costFile)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := &smallDisk{f, 1000}
	written := 0
	for range 100 { // room comes back in the middle, as if somebody had deleted something
		switch err := appendJSON(d, llm.Entry{At: now, Model: "m", Cost: 1}); {
		case err == nil:
			written++
		case !errors.Is(err, syscall.ENOSPC):
			t.Fatal(err)
		default:
			d.room = 37
			if appendJSON(d, llm.Entry{At: now, Model: "m", Cost: 1}) == nil {
				t.Fatal("37 bytes were enough")
			}
			d.room = 500
		}
	}
	got, err := readCosts(path, now)
	if err != nil || len(got) != written {
		t.Errorf("%d entries were written; read %d, %v", written, len(got), err)
	}
}
