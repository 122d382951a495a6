package soak

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The stage a process of this test is in, and where the run's directory is.
const (
	stageVar = "SOAK_STAGE"
	dirVar   = "SOAK_DIR"
	mountNow = "mount" // in new namespaces, with the rights to arrange them
	runNow   = "run"   // arranged, without rights
	plainNow = "plain" // the machine allows no namespaces
)

// actor is whom everything runs as when the test itself is root: to root no
// permission can be refused, so faults of permissions would be none.
const actor = 54321

// elsewhere is an address that is not this machine to the program, and yet never
// leaves it: the network namespace has nothing but its own loopback.
const elsewhere = "10.77.0.1"

// Sizes of the small disks.
const (
	stateDisk = "size=768m"
	memexDisk = "size=96m"
)

// noStage is the exit code of a process that could not arrange its stage.
const noStage = 77

func TestMain(m *testing.M) {
	if os.Getenv(stageVar) == mountNow {
		fmt.Fprintln(os.Stderr, "soak: arranging the stage:", arrange(os.Getenv(dirVar)))
		os.Exit(noStage) // arrange returns only when it failed
	}
	os.Exit(m.Run())
}

// enter runs the test once more in namespaces of its own and reports how it went.
// Where the machine allows none it runs there as it is, with fewer faults.
func enter(t *testing.T, dir string) error {
	t.Helper()
	spaces := &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC,
		Pdeathsig:  syscall.SIGKILL,
	}
	if uid, gid := os.Getuid(), os.Getgid(); uid != 0 {
		spaces.Cloneflags |= syscall.CLONE_NEWUSER
		spaces.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		spaces.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		spaces.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN}
	} else if err := filepath.WalkDir(dir, func(p string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(p, actor, actor))
	}); err != nil {
		return err
	}
	err := again(t, dir, mountNow, spaces)
	if exit := (*exec.ExitError)(nil); err == nil || errors.As(err, &exit) && exit.ExitCode() != noStage {
		return err
	}
	t.Logf("no namespaces here (%v): no full disks, and private notes may be shown to the model", err)
	return again(t, dir, plainNow, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL})
}

// again runs the test in another process, which ends with this one.
func again(t *testing.T, dir, stage string, how *syscall.SysProcAttr) error {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=3h")
	c.Env = append(os.Environ(), stageVar+"="+stage, dirVar+"="+dir)
	c.Stdout, c.Stderr, c.SysProcAttr = os.Stdout, os.Stderr, how
	runtime.LockOSThread() // the child ends with the thread that made it
	defer runtime.UnlockOSThread()
	if err := c.Start(); err != nil {
		return err
	}
	return c.Wait()
}

// arrange makes the small disks and the network, gives its rights away, and becomes
// the test.
func arrange(dir string) error {
	owner := fmt.Sprintf(",mode=700,uid=%d,gid=%d", actor, actor)
	drop := []string{"--reuid", strconv.Itoa(actor), "--regid", strconv.Itoa(actor), "--clear-groups"}
	if uid := os.Getuid(); uid != 0 {
		owner = fmt.Sprintf(",mode=700,uid=%d,gid=%d", uid, os.Getgid())
		drop = []string{"--ambient-caps=-all", "--inh-caps=-all"}
	}
	for _, m := range []struct {
		what, where, kind string
		flags             uintptr
		data              string
	}{
		{"none", "/", "", syscall.MS_REC | syscall.MS_PRIVATE, ""},
		{"proc", "/proc", "proc", 0, ""},
		{"soak", filepath.Join(dir, "state"), "tmpfs", 0, stateDisk + owner},
		{"soak", filepath.Join(dir, "memex"), "tmpfs", 0, memexDisk + owner},
	} {
		if err := syscall.Mount(m.what, m.where, m.kind, m.flags, m.data); err != nil {
			return fmt.Errorf("mounting %s: %w", m.where, err)
		}
	}
	if err := network(); err != nil {
		return fmt.Errorf("network: %w", err)
	}
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		return err
	}
	if err := os.Setenv(stageVar, runNow); err != nil {
		return err
	}
	drop = append(drop, "--pdeathsig", "KILL") // giving rights away has cleared it
	argv := append(append([]string{setpriv}, drop...), os.Args...)
	return syscall.Exec(setpriv, argv, os.Environ())
}

// network brings the namespace's loopback up and gives it one more address.
func network() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	up, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	up.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	more, err := unix.NewIfreq("lo:1")
	if err != nil {
		return err
	}
	if err := more.SetInet4Addr([]byte{10, 77, 0, 1}); err != nil {
		return err
	}
	return errors.Join(unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, up), unix.IoctlIfreq(s, unix.SIOCSIFADDR, more))
}
