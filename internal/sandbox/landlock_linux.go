package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// landlockABI is the version the kernel speaks, 0 for none.
func landlockABI() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

const (
	llRead    = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	llOnFiles = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE |
		unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	// llNodes are rights nobody gets back: device nodes cannot be made.
	llNodes = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
)

// landlockRights is every file right the given version knows.
func landlockRights(abi int) uint64 {
	all := uint64(1<<13 - 1) // version 1: EXECUTE to MAKE_SYM
	if abi >= 2 {
		all |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if abi >= 3 {
		all |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi >= 5 {
		all |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	return all
}

// landlockRule gives rights below path.
type landlockRule struct {
	path   string
	access uint64
}

// landlockRules allows reading everywhere (what must not be read is not in
// the mount tree at all) and writing where the plan says. Devices may be
// written and asked, since the tree holds only harmless ones.
func (p *plan) landlockRules(abi int) []landlockRule {
	all := landlockRights(abi)
	rules := []landlockRule{
		{"/", llRead},
		{"/dev", (llOnFiles | llRead) & all},
	}
	for _, w := range append(p.scratchDirs(), p.WriteRoots...) {
		rules = append(rules, landlockRule{w, all &^ llNodes &^ unix.LANDLOCK_ACCESS_FS_IOCTL_DEV})
	}
	return rules
}

// restrict puts the calling thread, and what it starts, under the rules.
func restrictLandlock(abi int, rules []landlockRule) error {
	arg, err := newKernelArg(64)
	if err != nil {
		return err
	}
	defer arg.close()
	attr := binary.NativeEndian.AppendUint64(nil, landlockRights(abi))
	if abi >= 4 {
		// Network rights are left alone: the network namespace has nothing
		// to reach, and a command may talk to itself on its loopback.
		attr = binary.NativeEndian.AppendUint64(attr, 0)
	}
	if abi >= 6 {
		attr = binary.NativeEndian.AppendUint64(attr, unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET|unix.LANDLOCK_SCOPE_SIGNAL)
	}
	at, err := arg.put(0, attr)
	if err != nil {
		return err
	}
	set, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, at, uintptr(len(attr)), 0)
	if errno != 0 {
		return fmt.Errorf("landlock rule set: %w", errno)
	}
	defer unix.Close(int(set))
	for _, r := range rules {
		if err := addLandlockRule(arg, set, r); err != nil {
			return err
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, set, 0, 0); errno != 0 {
		return fmt.Errorf("landlock: %w", errno)
	}
	return nil
}

func addLandlockRule(arg *kernelArg, set uintptr, r landlockRule) error {
	fd, err := unix.Open(r.path, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing there to allow
	}
	if err != nil {
		return fmt.Errorf("landlock rule for %s: %w", r.path, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("landlock rule for %s: %w", r.path, err)
	}
	access := r.access
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= llOnFiles
	}
	b := binary.NativeEndian.AppendUint64(nil, access)
	b = binary.NativeEndian.AppendUint32(b, uint32(fd))
	at, err := arg.put(0, b)
	if err != nil {
		return err
	}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, set, unix.LANDLOCK_RULE_PATH_BENEATH, at, 0, 0, 0); errno != 0 {
		return fmt.Errorf("landlock rule for %s: %w", r.path, errno)
	}
	return nil
}
