package undo

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// changeTime is the one time of a file that no program can set.
func changeTime(st *syscall.Stat_t) int64 { return st.Ctim.Nano() }

// syncAll makes everything written to the file system of dir durable. One call
// for a whole capture is far cheaper than one for each blob.
func syncAll(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return unix.Syncfs(int(d.Fd()))
}
