package label

import (
	"io/fs"
	"syscall"
	"time"
)

// changeTime is the one time of a file that no program can set.
func changeTime(info fs.FileInfo) time.Time {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return time.Now() // as good as changed
	}
	return time.Unix(st.Ctim.Unix())
}
