package sandbox

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// kernelArg is a block of memory whose address can be given to a system call
// that x/sys/unix has no wrapper for. It is a shared mapping of a memory file:
// bytes are put in by writing to the file, so no Go pointer is ever turned
// into a number, the collector cannot move anything, and this package needs
// no unsafe.
type kernelArg struct {
	fd   int
	addr uintptr
	size int
}

func newKernelArg(size int) (*kernelArg, error) {
	fd, err := unix.MemfdCreate("sandbox-arg", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memory file: %w", err)
	}
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("memory file: %w", err)
	}
	p, err := unix.MmapPtr(fd, 0, nil, uintptr(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("mapping a memory file: %w", err)
	}
	return &kernelArg{fd: fd, addr: uintptr(p), size: size}, nil
}

// put writes p at offset off and returns its address.
func (k *kernelArg) put(off int, p []byte) (uintptr, error) {
	if off < 0 || off+len(p) > k.size {
		return 0, fmt.Errorf("kernel argument: wanted at most %d bytes, got %d at %d", k.size, len(p), off)
	}
	if n, err := unix.Pwrite(k.fd, p, int64(off)); err != nil || n != len(p) {
		return 0, fmt.Errorf("writing a kernel argument: wanted %d bytes, wrote %d: %w", len(p), n, err)
	}
	return k.addr + uintptr(off), nil
}

// close gives up the file; the mapping stays until the process is replaced.
func (k *kernelArg) close() { unix.Close(k.fd) }
