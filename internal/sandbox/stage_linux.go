package sandbox

import (
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// stageArg marks a process as the stage. It is started with the descriptors
// below, which nobody else can supply.
const stageArg = "passepartout-sandbox-stage"

// Descriptors of the stage beyond the command's own three.
const (
	controlFD = 3 + iota
	planFD
	exeFD // bubblewrap only: this binary, to be executed
)

// report is what the stage says over the control socket, one in a packet.
type report struct {
	Stage   stagePoint
	Message string // for failures
	Code    int    // for ended
	Signal  int    // for ended, when not zero
}

// stagePoint says how far the stage got.
type stagePoint uint8

const (
	pointUnknown     stagePoint = iota
	pointUnavailable            // a wall could not be raised
	pointNotStarted             // the command could not be started
	pointListener               // carries the proxy's listener
	pointReady                  // a probe: everything stands
	pointStarting               // the command is about to be started
	pointEnded                  // the command ended
)

// Init must be called first in main. In an ordinary process it returns at
// once; in a process that Run started to prepare a sandbox it does that work
// and does not return.
func Init() {
	if len(os.Args) == 2 && os.Args[1] == stageArg {
		os.Exit(stage())
	}
}

// stage prepares the sandbox, starts the command and reaps until it ends. Its
// exit code means nothing; what counts is what it reported.
func stage() int {
	// Capabilities, Landlock and no_new_privs belong to a thread, and the
	// command inherits those of the thread that starts it.
	runtime.LockOSThread()
	// Signals are for the command. They are caught, not ignored, because
	// the command would inherit ignoring.
	signal.Notify(make(chan os.Signal, 1))
	unix.CloseOnExec(controlFD)
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fail(pointUnavailable, fmt.Errorf("tying the sandbox to its parent: %w", err))
	}
	p, err := receivePlan()
	if err != nil {
		return fail(pointUnavailable, err)
	}
	if err := raiseWalls(p); err != nil {
		return fail(pointUnavailable, err)
	}
	if p.Probe {
		return send(report{Stage: pointReady}, -1)
	}
	if code := send(report{Stage: pointStarting}, -1); code != 0 {
		return code // nobody would hear what became of it
	}
	pid, err := start(p)
	if err != nil {
		return fail(pointNotStarted, err)
	}
	return reap(pid)
}

// receivePlan waits for the parent's word (it may have to put this process
// into a control group first) and reads the plan.
func receivePlan() (*plan, error) {
	var b [1]byte
	if n, err := unix.Read(controlFD, b[:]); err != nil || n != 1 {
		return nil, fmt.Errorf("waiting for the parent: got %d bytes: %w", n, err)
	}
	f := os.NewFile(planFD, "plan")
	defer f.Close()
	var p plan
	if err := gob.NewDecoder(io.NewSectionReader(f, 0, 1<<30)).Decode(&p); err != nil {
		return nil, fmt.Errorf("reading the plan: %w", err)
	}
	return &p, nil
}

// raiseWalls goes from the outside in; after it this thread can do no more
// than the command may.
func raiseWalls(p *plan) error {
	if !p.Bubblewrap {
		if err := unix.Sethostname([]byte("sandbox")); err != nil {
			return fmt.Errorf("host name: %w", err)
		}
		if err := loopbackUp(); err != nil {
			return err
		}
		if err := buildTree(p); err != nil {
			return err
		}
	}
	if p.Proxy {
		if err := sendListener(); err != nil {
			return err
		}
	}
	if err := setLimits(p.Limits); err != nil {
		return err
	}
	if err := dropPrivileges(); err != nil {
		return err
	}
	if p.ABI > 0 {
		if err := restrictLandlock(p.ABI, p.landlockRules(p.ABI)); err != nil {
			return err
		}
	}
	// Nothing of this process may be read or steered by the command.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("hiding the reaper: %w", err)
	}
	if err := unix.CloseRange(3, ^uint(0)>>33, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("closing descriptors: %w", err)
	}
	return buildFilter(p.UnixSockets).install()
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("loopback interface: %w", err)
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("loopback interface: %w", err)
	}
	ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr); err != nil {
		return fmt.Errorf("loopback interface: %w", err)
	}
	return nil
}

// sendListener makes the proxy's socket in this network namespace and hands
// it out. A socket stays in the namespace it was made in, so the parent can
// serve it from outside and nothing has to forward.
func sendListener() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("proxy socket: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: proxyPort, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return fmt.Errorf("proxy socket: %w", err)
	}
	if err := unix.Listen(fd, 64); err != nil {
		return fmt.Errorf("proxy socket: %w", err)
	}
	if send(report{Stage: pointListener}, fd) != 0 {
		return errors.New("proxy socket: the parent did not take it")
	}
	return nil
}

// setLimits bounds this process and what it starts. Memory is limited as data
// (private and writable), not as address space, of which many runtimes
// reserve far more than they use.
func setLimits(l Limits) error {
	cpu := uint64(max(int64(l.CPU.Seconds()), 1))
	for _, r := range []struct {
		name     string
		resource int
		value    uint64
	}{
		{"core size", unix.RLIMIT_CORE, 0},
		{"processor time", unix.RLIMIT_CPU, cpu},
		{"memory", unix.RLIMIT_DATA, uint64(l.Memory)},
		{"processes", unix.RLIMIT_NPROC, uint64(l.Processes)},
		{"file size", unix.RLIMIT_FSIZE, uint64(l.FileSize)},
		{"open files", unix.RLIMIT_NOFILE, uint64(l.Files)},
		{"message queues", unix.RLIMIT_MSGQUEUE, 0},
		{"locked memory", unix.RLIMIT_MEMLOCK, 1 << 20},
	} {
		var old unix.Rlimit
		if err := unix.Getrlimit(r.resource, &old); err != nil {
			return fmt.Errorf("limit of %s: %w", r.name, err)
		}
		v := min(r.value, old.Max)
		if err := unix.Setrlimit(r.resource, &unix.Rlimit{Cur: v, Max: v}); err != nil {
			return fmt.Errorf("limit of %s: %w", r.name, err)
		}
	}
	return nil
}

// dropPrivileges gives up every capability of the namespace and the ways to
// get one back: the bounding set, the meaning of uid 0, and set-uid programs.
func dropPrivileges() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	const secure = 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<5 | 1<<6 | 1<<7 // NOROOT, NO_SETUID_FIXUP, KEEP_CAPS off, NO_CAP_AMBIENT_RAISE, all locked
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) {
			break // this kernel knows no more
		}
		if errors.Is(err, unix.EPERM) && !capable(unix.CAP_SETPCAP) {
			break // bubblewrap took them all already
		}
		if err != nil {
			return fmt.Errorf("dropping capability %d: %w", c, err)
		}
	}
	if capable(unix.CAP_SETPCAP) {
		if err := unix.Prctl(unix.PR_SET_SECUREBITS, secure, 0, 0, 0); err != nil {
			return fmt.Errorf("secure bits: %w", err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("ambient capabilities: %w", err)
	}
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&hdr, &none[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	return nil
}

// capable tells whether this thread has the capability.
func capable(c uint) bool {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&hdr, &data[0]) == nil && data[c/32].Effective&(1<<(c%32)) != 0
}

// start starts the command in a session of its own.
func start(p *plan) (int, error) {
	path, err := lookPath(p)
	if err != nil {
		return 0, err
	}
	pid, err := syscall.ForkExec(path, p.Argv, &syscall.ProcAttr{
		Dir: p.Dir, Env: p.Env, Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{Setsid: true, Setctty: p.PTY, Ctty: 0},
	})
	if err != nil {
		return 0, fmt.Errorf("%s in %s: %w", p.Argv[0], p.Dir, err)
	}
	return pid, nil
}

// lookPath finds the program as seen from inside.
func lookPath(p *plan) (string, error) {
	name := p.Argv[0]
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(p.Dir, name)
		}
		return name, nil
	}
	for _, e := range p.Env {
		list, ok := strings.CutPrefix(e, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(list) {
			path := filepath.Join(dir, name)
			if filepath.IsAbs(dir) && unix.Access(path, unix.X_OK) == nil {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("%s: %w in the sandbox's PATH", name, fs.ErrNotExist)
}

// reap waits for the command and for every orphan it leaves. The wait stays
// out of the scheduler's sight (RawSyscall), so that the runtime never needs a
// new thread while a fork bomb has used up the process limit.
func reap(pid int) int {
	for {
		_, _, _ = unix.RawSyscall6(unix.SYS_WAITID, unix.P_ALL, 0, 0, unix.WEXITED|unix.WNOWAIT, 0, 0)
		var status unix.WaitStatus
		got, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if err != nil {
			return fail(pointNotStarted, fmt.Errorf("waiting for the command: %w", err))
		}
		if got != pid {
			continue
		}
		r := report{Stage: pointEnded, Code: status.ExitStatus()}
		if status.Signaled() {
			r.Code, r.Signal = -1, int(status.Signal())
		}
		return send(r, -1)
	}
}

func fail(at stagePoint, err error) int {
	return send(report{Stage: at, Message: err.Error()}, -1)
}

// send reports to the parent, with a descriptor if fd is not negative.
func send(r report, fd int) int {
	b, err := json.Marshal(r)
	if err != nil {
		return 1
	}
	var rights []byte
	if fd >= 0 {
		rights = unix.UnixRights(fd)
	}
	if err := unix.Sendmsg(controlFD, b, rights, nil, 0); err != nil {
		return 1
	}
	return 0
}
