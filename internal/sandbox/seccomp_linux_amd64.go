package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

var archDenied = []uint32{
	unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_USELIB,
	unix.SYS_CREATE_MODULE, unix.SYS__SYSCTL, unix.SYS_NFSSERVCTL,
}

// archArgRules adds the older spellings that newer architectures dropped.
func archArgRules() []argRule {
	return []argRule{
		{nr: unix.SYS_CHMOD, arg: 1, mask: setIDBits, result: unix.EPERM},
		{nr: unix.SYS_OPEN, arg: 2, mask: setIDBits, result: unix.EPERM},
		{nr: unix.SYS_CREAT, arg: 1, mask: setIDBits, result: unix.EPERM},
		{nr: unix.SYS_MKNOD, arg: 1, mask: setIDBits, result: unix.EPERM},
	}
}
