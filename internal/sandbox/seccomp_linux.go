package sandbox

import (
	"encoding/binary"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// The filter is a deny-list with a ceiling: what can reach out of the
// namespaces, or has a record of kernel holes and no use for a shell command,
// is refused; numbers newer than this list do not exist. It is the third
// wall, behind the namespaces and Landlock.

// Offsets into struct seccomp_data.
const (
	dataNr   = 0
	dataArch = 4
	dataArgs = 16
)

// lastSyscall is the newest system call this list was read against. Anything
// above answers ENOSYS, which programs are written to survive. The x32 numbers
// (bit 30) lie above it too.
const lastSyscall = unix.SYS_RSEQ_SLICE_YIELD

// deniedCalls answer EPERM, whatever their arguments.
var deniedCalls = []uint32{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE,
	unix.SYS_KCMP, unix.SYS_PIDFD_GETFD,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_BPF, unix.SYS_USERFAULTFD, unix.SYS_PERF_EVENT_OPEN, unix.SYS_FANOTIFY_INIT,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
	unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR, unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR,
	unix.SYS_SETNS, unix.SYS_UNSHARE,
	unix.SYS_OPEN_BY_HANDLE_AT,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_REBOOT, unix.SYS_ACCT, unix.SYS_SYSLOG,
	unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_VHANGUP,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX,
	unix.SYS_LSM_SET_SELF_ATTR,
}

// hiddenCalls answer ENOSYS: their arguments lie behind a pointer the filter
// cannot follow, and every caller knows how to do without.
var hiddenCalls = []uint32{unix.SYS_CLONE3, unix.SYS_OPENAT2}

// namespaceFlags are the flags of clone that make namespaces.
const namespaceFlags = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// setIDBits would leave a privileged program behind in a write root.
const setIDBits = unix.S_ISUID | unix.S_ISGID

// argRule refuses a call by one argument's low word, which is all the kernel
// itself looks at for the calls listed.
type argRule struct {
	nr     uint32
	arg    uint32
	mask   uint32   // refuse when the argument has any of these bits
	equal  []uint32 // refuse when it is one of these
	only   []uint32 // refuse when it is none of these
	result unix.Errno
}

func argRules(unixSockets bool) []argRule {
	families := []uint32{unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}
	if unixSockets {
		families = append(families, unix.AF_UNIX)
	}
	rules := []argRule{
		{nr: unix.SYS_CLONE, arg: 0, mask: namespaceFlags, result: unix.EPERM},
		{nr: unix.SYS_IOCTL, arg: 1, equal: []uint32{unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCSETD, unix.TIOCCONS}, result: unix.EPERM},
		{nr: unix.SYS_SOCKET, arg: 0, only: families, result: unix.EAFNOSUPPORT},
		{nr: unix.SYS_SOCKETPAIR, arg: 0, only: []uint32{unix.AF_UNIX}, result: unix.EAFNOSUPPORT},
		{nr: unix.SYS_FCHMOD, arg: 1, mask: setIDBits, result: unix.EPERM},
		{nr: unix.SYS_FCHMODAT, arg: 2, mask: setIDBits, result: unix.EPERM},
		{nr: unix.SYS_FCHMODAT2, arg: 2, mask: setIDBits, result: unix.EPERM},
		{nr: unix.SYS_OPENAT, arg: 3, mask: setIDBits, result: unix.EPERM},
		{nr: unix.SYS_MKNODAT, arg: 2, mask: setIDBits, result: unix.EPERM},
	}
	return append(rules, archArgRules()...)
}

// filter is the program under construction.
type filter []unix.SockFilter

func (f *filter) stmt(code uint16, k uint32) {
	*f = append(*f, unix.SockFilter{Code: code, K: k})
}

// ifEqual runs the next n instructions only when the accumulator equals k.
func (f *filter) ifEqual(k uint32, n uint8) { f.jump(unix.BPF_JEQ, k, 0, n) }

// jump skips jt instructions when the comparison holds and jf when it does not.
func (f *filter) jump(op uint16, k uint32, jt, jf uint8) {
	*f = append(*f, unix.SockFilter{Code: unix.BPF_JMP | op | unix.BPF_K, Jt: jt, Jf: jf, K: k})
}

func (f *filter) load(off uint32) { f.stmt(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, off) }
func (f *filter) ret(k uint32)    { f.stmt(unix.BPF_RET|unix.BPF_K, k) }

func refuse(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e)&unix.SECCOMP_RET_DATA }

// buildFilter writes the whole program. A foreign architecture (32-bit code on
// a 64-bit kernel has other numbers for the same calls) kills the process.
func buildFilter(unixSockets bool) filter {
	var f filter
	f.load(dataArch)
	f.jump(unix.BPF_JEQ, auditArch, 1, 0)
	f.ret(unix.SECCOMP_RET_KILL_PROCESS)
	f.load(dataNr)
	f.jump(unix.BPF_JGT, lastSyscall, 0, 1)
	f.ret(refuse(unix.ENOSYS))
	for _, nr := range slices.Concat(deniedCalls, archDenied) {
		f.ifEqual(nr, 1)
		f.ret(refuse(unix.EPERM))
	}
	for _, nr := range hiddenCalls {
		f.ifEqual(nr, 1)
		f.ret(refuse(unix.ENOSYS))
	}
	for _, r := range argRules(unixSockets) {
		body := r.body()
		f.ifEqual(r.nr, uint8(len(body)))
		f = append(f, body...)
	}
	f.ret(unix.SECCOMP_RET_ALLOW)
	return f
}

// body judges one argument; it returns from the filter on every path, since
// one call has one rule.
func (r argRule) body() filter {
	var b filter
	b.load(dataArgs + 8*r.arg)
	if r.mask != 0 {
		b.jump(unix.BPF_JSET, r.mask, 0, 1)
		b.ret(refuse(r.result))
	}
	for _, v := range r.equal {
		b.ifEqual(v, 1)
		b.ret(refuse(r.result))
	}
	for _, v := range r.only {
		b.ifEqual(v, 1)
		b.ret(unix.SECCOMP_RET_ALLOW)
	}
	if r.only != nil {
		b.ret(refuse(r.result))
		return b
	}
	b.ret(unix.SECCOMP_RET_ALLOW)
	return b
}

// bytes is the program as the kernel reads it.
func (f filter) bytes() []byte {
	var b []byte
	for _, i := range f {
		b = binary.NativeEndian.AppendUint16(b, i.Code)
		b = append(b, i.Jt, i.Jf)
		b = binary.NativeEndian.AppendUint32(b, i.K)
	}
	return b
}

// install puts the filter on every thread of this process. The caller must
// have set no_new_privs.
func (f filter) install() error {
	prog := f.bytes()
	const header = 16 // struct sock_fprog on a 64-bit machine: length, padding, pointer
	arg, err := newKernelArg(header + len(prog))
	if err != nil {
		return err
	}
	defer arg.close()
	at, err := arg.put(header, prog)
	if err != nil {
		return err
	}
	head := make([]byte, header)
	binary.NativeEndian.PutUint16(head, uint16(len(f)))
	binary.NativeEndian.PutUint64(head[8:], uint64(at))
	fprog, err := arg.put(0, head)
	if err != nil {
		return err
	}
	stuck, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, fprog)
	if errno != 0 {
		return fmt.Errorf("seccomp filter: %w", errno)
	}
	if stuck != 0 {
		return fmt.Errorf("seccomp filter: thread %d did not take it", stuck)
	}
	return nil
}
