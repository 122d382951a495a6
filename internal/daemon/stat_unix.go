package daemon

import (
	"io/fs"
	"syscall"
)

// nlink is the number of names of a file.
func nlink(st fs.FileInfo) (int, bool) {
	s, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(s.Nlink), true
}
