package act

import "golang.org/x/sys/unix"

// dirFlags opens a directory only as a place to start from, which needs no right
// to list it.
const dirFlags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
