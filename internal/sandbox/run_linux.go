package sandbox

import (
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// run is Run, or a dry run when o is given, or a probe when the plan says so.
func run(ctx context.Context, s Spec, o *overlay) (Result, error) {
	method, err := chooseMethod(ctx, s.Method, o != nil)
	if err != nil {
		return Result{}, err
	}
	p, release, err := prepare(s, o)
	for tries := 0; errors.Is(err, fs.ErrExist) && tries < 3; tries++ {
		p, release, err = prepare(s, o) // its owner made a hidden path while we looked: now it is there
	}
	if err != nil {
		return Result{}, err
	}
	defer release()
	var px *proxy
	if s.Network != nil {
		if px, err = newProxy(*s.Network); err != nil {
			return Result{}, err
		}
	}
	j := &job{plan: p, method: method, proxy: px, sink: &lockedSink{f: s.Sink}}
	w := watch(s.Watched, p.WriteRoots)
	if s.Watching != nil {
		s.Watching(w.some)
	}
	res, err := j.run(ctx, s.Stdin)
	if res.Opened = w.opened(); o != nil {
		res.Opened = s.Watched // an overlay opens the files below without anybody hearing of it
	}
	return res, err
}

// prepare checks the Spec and puts in place what its masks stand on.
func prepare(s Spec, o *overlay) (*plan, func(), error) {
	p, err := newPlan(s)
	if err != nil {
		return nil, nil, err
	}
	if err := o.plan(p); err != nil {
		return nil, nil, err
	}
	release, err := p.takePlaceholders()
	return p, release, err
}

// job is one run. It belongs to the goroutine that called Run.
type job struct {
	plan   *plan
	method Method
	proxy  *proxy
	sink   *lockedSink

	control  *net.UnixConn // our end
	theirs   []*os.File    // descriptors the stage gets; closed after it started
	out, err *collector
	readers  sync.WaitGroup // drains and the stdin copier
	outputs  []io.Closer    // our ends, closed when all is over
	stdin    io.WriteCloser // where Spec.Stdin goes
	group    *cgroup
	infant   *os.File // bubblewrap tells the inner process's id here
	infantFD int      // pidfd of that process, 0 for none
	started  bool
	ended    *report
}

func (j *job) run(ctx context.Context, stdin io.Reader) (Result, error) {
	began := time.Now()
	// The stage dies with the thread that started it, so this goroutine
	// keeps its thread until the end.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer func() { j.group.remove() }()
	defer j.closeTheirs()
	defer j.closeOurs()

	limited, cancel := context.WithTimeout(ctx, j.plan.Limits.Wall)
	defer cancel()
	if err := j.wire(stdin); err != nil {
		return Result{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	proc, err := j.launch()
	if err != nil {
		return Result{}, err
	}
	if j.stdin != nil {
		j.readers.Go(func() {
			_, _ = io.Copy(j.stdin, stdin) // a command may end without reading it all
			_ = j.stdin.Close()
		})
	}
	stop := context.AfterFunc(limited, func() { j.kill(proc) })
	defer stop()
	failure := j.supervise(limited, proc)
	j.finish(proc, stdin)
	if failure != nil {
		return Result{}, failure
	}
	return j.result(ctx, limited, began)
}

// wire makes the pipes, or the terminal, and the control socket.
func (j *job) wire(stdin io.Reader) error {
	j.plan.Bubblewrap = j.method == Bubblewrap
	j.out, j.err = newCollector(j.plan.Limits.Output), newCollector(j.plan.Limits.Output)
	var err error
	if j.plan.PTY {
		err = j.wireTerminal(stdin)
	} else {
		err = j.wirePipes(stdin)
	}
	if err != nil {
		return err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	mine := os.NewFile(uintptr(pair[0]), "control")
	defer mine.Close()
	j.theirs = append(j.theirs, os.NewFile(uintptr(pair[1]), "control"))
	conn, err := net.FileConn(mine)
	if err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	j.control = conn.(*net.UnixConn)
	return j.wirePlan()
}

// wirePlan puts the plan where the stage reads it.
func (j *job) wirePlan() error {
	fd, err := unix.MemfdCreate("plan", unix.MFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	f := os.NewFile(uintptr(fd), "plan")
	j.theirs = append(j.theirs, f)
	return j.writePlan(f)
}

// writePlan uses gob and not JSON: arguments and paths are bytes, which need
// not be text, and what was judged is what must run.
func (j *job) writePlan(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	if err := gob.NewEncoder(f).Encode(j.plan); err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	return nil
}

func (j *job) wirePipes(stdin io.Reader) error {
	if stdin == nil {
		null, err := os.Open(os.DevNull)
		if err != nil {
			return err
		}
		j.theirs = append(j.theirs, null)
	} else {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		j.theirs = append(j.theirs, r)
		j.stdin = w
	}
	for _, c := range []struct {
		stream Stream
		to     *collector
	}{{Stdout, j.out}, {Stderr, j.err}} {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		widen(r)
		j.theirs = append(j.theirs, w)
		j.outputs = append(j.outputs, r)
		j.readers.Go(func() { drain(r, c.to, c.stream, j.sink) })
	}
	return nil
}

// widen asks for a larger pipe, which means fewer switches; a refusal costs
// only speed.
func widen(f *os.File) {
	if c, err := f.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, 1<<20) })
	}
}

func (j *job) wireTerminal(stdin io.Reader) error {
	master, slave, err := pty.Open()
	if err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	j.outputs = append(j.outputs, master)
	if err := pty.Setsize(master, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		slave.Close()
		return fmt.Errorf("terminal: %w", err)
	}
	for range 3 {
		fd, err := unix.FcntlInt(slave.Fd(), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			slave.Close()
			return fmt.Errorf("terminal: %w", err)
		}
		j.theirs = append(j.theirs, os.NewFile(uintptr(fd), slave.Name()))
	}
	slave.Close()
	j.readers.Go(func() { drain(master, j.out, Stdout, j.sink) })
	if stdin != nil {
		j.stdin = typist{master}
	}
	return nil
}

// typist types on a terminal. Closing it is typing end-of-file, since the
// master must stay open for reading.
type typist struct{ master *os.File }

func (t typist) Write(p []byte) (int, error) { return t.master.Write(p) }

func (t typist) Close() error {
	_, err := t.master.Write([]byte{4})
	return err
}

// launch starts the stage, puts it in its control group and lets it go on.
func (j *job) launch() (*os.Process, error) {
	if err := j.bound(); err != nil {
		return nil, err
	}
	proc, err := j.start()
	j.closeTheirs()
	if err != nil {
		return nil, fmt.Errorf("%w: starting the stage: %w", ErrUnavailable, err)
	}
	if err := j.release(proc.Pid); err != nil {
		j.kill(proc)
		_, _ = proc.Wait()
		_ = j.control.Close() // a stage that waits to be let go ends
		j.awaitInfant()
		j.readers.Wait()
		return nil, fmt.Errorf("%w: %w %s", ErrUnavailable, err, j.err.output())
	}
	return proc, nil
}

// kill ends the sandbox, whatever it is doing. The stage is the init of its PID
// namespace and takes everything along. Bubblewrap stands outside of the one it
// made, and its child may not know yet that it should die with it: it is held
// still, so that it can make no other, and its children go first.
func (j *job) kill(proc *os.Process) {
	if j.method == Bubblewrap && unix.Kill(proc.Pid, unix.SIGSTOP) == nil {
		awaitStopped(proc.Pid)
		for _, pid := range childrenOf(proc.Pid) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
	_ = proc.Kill()
}

// release puts the init of the new PID namespace into the control group, so
// that everything it will start is in it, and tells it to go on.
func (j *job) release(pid int) error {
	if j.method == Bubblewrap {
		inner, err := j.meetInfant(j.plan.Limits.Wall)
		if err != nil {
			return err
		}
		pid = inner
	}
	if err := j.group.add(pid); err != nil {
		return err
	}
	_, err := j.control.Write([]byte{1})
	return err
}

// bound finds a way to bound the number of processes that holds for this user.
func (j *job) bound() error {
	group, err := newCgroup(j.plan.Limits)
	j.group = group
	if err == nil || os.Getuid() != 0 {
		return nil // for anyone but root the process limit counts by itself
	}
	if j.method == Namespaces && pidMaxIsPerNamespace() {
		j.plan.PIDMax = true
		if err := j.writePlan(j.theirs[planFD]); err != nil {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		return nil
	}
	return fmt.Errorf("%w: root's processes cannot be bounded here: %w", ErrUnavailable, err)
}

// start makes the process, in new namespaces or under bubblewrap.
func (j *job) start() (*os.Process, error) {
	if j.method == Bubblewrap {
		return j.startBubblewrap()
	}
	return os.StartProcess("/proc/self/exe", []string{"sandbox", stageArg}, &os.ProcAttr{
		Dir: "/", Env: stageEnv, Files: j.theirs, Sys: namespaces(len(j.plan.Overlays) > 0),
	})
}

// stageEnv keeps the stage small: it lives for milliseconds and then waits. The last
// is for binaries with the race detector, which would sleep a second at their end.
var stageEnv = []string{"GOMAXPROCS=1", "GOGC=off", "GODEBUG=asyncpreemptoff=1", "GORACE=atexit_sleep_ms=0"}

// namespaces asks for all of them. Inside, the user keeps their own id; the
// capabilities to build the tree come along as ambient ones.
// An overlay does its copying with the rights of whoever mounted it.
func namespaces(overlay bool) *syscall.SysProcAttr {
	uid, gid := os.Geteuid(), os.Getegid()
	a := &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
			unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}},
		Setsid:      true,
		Pdeathsig:   syscall.SIGKILL,
	}
	if uid != 0 {
		a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP}
		if overlay {
			a.AmbientCaps = append(a.AmbientCaps, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_CHOWN, unix.CAP_FSETID, unix.CAP_MKNOD)
		}
	}
	return a
}

// supervise follows the stage's reports until it has no more to say.
func (j *job) supervise(ctx context.Context, proc *os.Process) error {
	for {
		r, fd, err := j.receive()
		if err != nil {
			return nil // the stage is gone: killed, or done
		}
		switch r.Stage {
		case pointUnavailable:
			return fmt.Errorf("%w: %s", ErrUnavailable, r.Message)
		case pointNotStarted:
			return fmt.Errorf("%w: %s", ErrStart, r.Message)
		case pointListener:
			if err := j.proxy.serve(ctx, fd); err != nil {
				_ = proc.Kill()
				return fmt.Errorf("%w: %w", ErrUnavailable, err)
			}
		case pointStarting:
			j.started = true
		case pointReady, pointEnded:
			j.ended = &r
		case pointUnknown:
			_ = proc.Kill()
			return fmt.Errorf("%w: the stage sent an unknown report", ErrUnavailable)
		}
	}
}

// receive reads one report and the descriptor it may carry.
func (j *job) receive() (report, int, error) {
	buf, oob := make([]byte, 8<<10), make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := j.control.ReadMsgUnix(buf, oob)
	if err != nil {
		return report{}, -1, err
	}
	if n == 0 {
		return report{}, -1, io.EOF
	}
	fd := -1
	if msgs, err := unix.ParseSocketControlMessage(oob[:oobn]); err == nil && len(msgs) == 1 {
		if fds, err := unix.ParseUnixRights(&msgs[0]); err == nil && len(fds) == 1 {
			fd = fds[0]
			unix.CloseOnExec(fd)
		}
	}
	var r report
	if err := json.Unmarshal(buf[:n], &r); err != nil {
		return report{}, fd, fmt.Errorf("report of the stage: %w", err)
	}
	return r, fd, nil
}

// finish waits until nothing is left: the init of the PID namespace cannot
// end before everything in it has.
func (j *job) finish(proc *os.Process, stdin io.Reader) {
	_, _ = proc.Wait()
	j.awaitInfant()
	j.proxy.close()
	if c, ok := stdin.(io.Closer); ok {
		_ = c.Close()
	}
	j.readers.Wait()
}

func (j *job) result(ctx, limited context.Context, began time.Time) (Result, error) {
	res := Result{
		ExitCode: -1, Stdout: j.out.output(), Stderr: j.err.output(),
		Method: j.method, Level: Isolated, Requests: j.proxy.requests(), Duration: time.Since(began),
	}
	if j.plan.ABI > 0 {
		res.Level = Full
	}
	switch {
	case j.ended != nil && j.ended.Signal != 0:
		res.Cause, res.Signal = Signalled, unix.SignalName(syscall.Signal(j.ended.Signal))
	case j.ended != nil:
		res.Cause, res.ExitCode = Exited, j.ended.Code
	case ctx.Err() != nil:
		res.Cause = Cancelled
	case limited.Err() != nil:
		res.Cause = TimedOut
	case j.started:
		// Somebody else ended it all: the kernel for want of memory, or a
		// person. The command did run.
		res.Cause, res.Signal = Signalled, "SIGKILL"
	default:
		return res, fmt.Errorf("%w: the stage ended without a report", ErrUnavailable)
	}
	return res, nil
}

func (j *job) closeTheirs() {
	for _, f := range j.theirs {
		_ = f.Close()
	}
	j.theirs = nil
}

func (j *job) closeOurs() {
	if j.control != nil {
		_ = j.control.Close()
	}
	for _, c := range j.outputs {
		_ = c.Close()
	}
	if j.stdin != nil && !j.plan.PTY {
		_ = j.stdin.Close()
	}
	j.readers.Wait()
}

// chooseMethod settles Auto, and refuses what cannot be had.
func chooseMethod(ctx context.Context, m Method, dry bool) (Method, error) {
	switch {
	case m == Namespaces:
		return m, nil
	case m == Bubblewrap && dry:
		return m, errors.Join(ErrUnavailable, errors.New("a dry run needs namespaces of its own, not bubblewrap"))
	case m == Bubblewrap:
		_, err := bubblewrapPath()
		return m, err
	case m != Auto:
		return m, fmt.Errorf("%w: %s", ErrSpec, m)
	case dry || namespacesWork(ctx) == nil:
		return Namespaces, nil
	}
	if _, err := bubblewrapPath(); err != nil {
		return m, fmt.Errorf("%w: %w; and without bubblewrap: %w", ErrUnavailable, namespacesWork(ctx), err)
	}
	return Bubblewrap, nil
}
