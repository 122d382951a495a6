package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// bubblewrapPath finds bwrap in the places a system installs it to. PATH is
// not asked: the sandbox must not be chosen by the environment.
func bubblewrapPath() (string, error) {
	for _, p := range []string{"/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap", "/run/current-system/sw/bin/bwrap"} {
		if unix.Access(p, unix.X_OK) == nil {
			return p, nil
		}
	}
	return "", fmt.Errorf("%w: bubblewrap is not installed", ErrUnavailable)
}

// startBubblewrap lets bwrap build the tree; the stage runs inside and raises
// the remaining walls.
func (j *job) startBubblewrap() (*os.Process, error) {
	bwrap, err := bubblewrapPath()
	if err != nil {
		return nil, err
	}
	exe, err := os.Open("/proc/self/exe")
	if err != nil {
		return nil, fmt.Errorf("own binary: %w", err)
	}
	j.theirs = append(j.theirs, exe)
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	j.infant = r
	j.outputs = append(j.outputs, r)
	j.theirs = append(j.theirs, w)
	infoFD := len(j.theirs) - 1
	sources := map[string]int{}
	for _, path := range slices.Concat(j.plan.ReadRoots, j.plan.WriteRoots) {
		fd, err := openNoLinks(unix.AT_FDCWD, path)
		if err != nil {
			return nil, err
		}
		sources[path] = len(j.theirs)
		j.theirs = append(j.theirs, os.NewFile(uintptr(fd), path))
	}
	argsFD := len(j.theirs)
	list, err := argsFile(append([]string{"--info-fd", strconv.Itoa(infoFD)}, j.plan.bubblewrapArgs(sources)...))
	if err != nil {
		return nil, err
	}
	j.theirs = append(j.theirs, list)
	args := []string{"bwrap", "--args", strconv.Itoa(argsFD), "--", fdPath(exeFD), stageArg}
	attr := namespaces(false)
	attr.Cloneflags, attr.UidMappings, attr.GidMappings, attr.AmbientCaps = 0, nil, nil, nil
	return os.StartProcess(bwrap, args, &os.ProcAttr{Dir: "/", Env: stageEnv, Files: j.theirs, Sys: attr})
}

// argsFile holds arguments where a command cannot read them: bwrap's own
// command line would show it the names of what is hidden.
func argsFile(args []string) (*os.File, error) {
	fd, err := unix.MemfdCreate("arguments", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("arguments of bubblewrap: %w", err)
	}
	f := os.NewFile(uintptr(fd), "arguments")
	_, err = f.WriteString(strings.Join(args, "\x00") + "\x00")
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("arguments of bubblewrap: %w", err)
	}
	return f, nil
}

// bubblewrapArgs describes the same tree as buildTree. Sources are numbers of
// descriptors bwrap inherits, so that it mounts what was checked.
func (p *plan) bubblewrapArgs(sources map[string]int) []string {
	var a []string
	add := func(s ...string) { a = append(a, s...) }
	add("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try",
		"--hostname", "sandbox", "--die-with-parent", "--as-pid-1", "--cap-drop", "ALL")
	if p.ReadRoots == nil {
		add("--ro-bind", "/", "/")
	}
	read := func(private bool) {
		for _, r := range p.ReadRoots {
			if slices.ContainsFunc(privateDirs, func(d string) bool { return within(r, d) }) == private {
				add("--ro-bind", fdPath(sources[r]), r)
			}
		}
	}
	read(false)
	for _, d := range p.scratchDirs() {
		if d != "/dev/shm" {
			add("--perms", "1777", "--size", strconv.FormatInt(p.Limits.Scratch, 10), "--tmpfs", d)
		}
	}
	read(true)
	for _, l := range p.Links {
		add("--symlink", l.Target, l.Path)
	}
	add("--dev", "/dev", "--size", strconv.FormatInt(p.Limits.Scratch, 10), "--tmpfs", "/dev/shm", "--remount-ro", "/dev")
	add("--size", "1048576", "--tmpfs", "/sys", "--ro-bind-try", cpuInfo, cpuInfo, "--remount-ro", "/sys")
	add("--proc", "/proc")
	for _, n := range maskedProc {
		if _, err := os.Lstat(filepath.Join("/proc", n)); err == nil {
			add("--ro-bind", "/dev/null", filepath.Join("/proc", n))
		}
	}
	add("--remount-ro", "/proc")
	for _, w := range p.WriteRoots {
		add("--bind", fdPath(sources[w]), w)
	}
	for _, d := range p.Pins {
		add("--bind", d, d)
	}
	for _, m := range p.Masks {
		if m.Dir {
			add("--perms", "0000", "--size", "4096", "--tmpfs", m.Path, "--remount-ro", m.Path)
		} else {
			add("--ro-bind", "/dev/null", m.Path)
		}
	}
	if p.ReadRoots != nil {
		add("--remount-ro", "/")
	}
	return a
}

// meetInfant learns which process is the init of bubblewrap's namespaces. The
// stage inside waits for the parent's word, so it is still there.
func (j *job) meetInfant(wait time.Duration) (pid int, err error) {
	if err := j.infant.SetReadDeadline(time.Now().Add(wait)); err != nil {
		return 0, fmt.Errorf("bubblewrap: %w", err)
	}
	var info struct {
		PID int `json:"child-pid"`
	}
	if err := json.NewDecoder(j.infant).Decode(&info); err != nil || info.PID <= 0 {
		return 0, fmt.Errorf("bubblewrap did not start: %w", err)
	}
	if j.infantFD, err = unix.PidfdOpen(info.PID, 0); err != nil {
		return 0, fmt.Errorf("bubblewrap did not start: %w", err)
	}
	return info.PID, nil
}

// awaitInfant waits for that init, which outlives the outer process by a
// moment when that is killed.
func (j *job) awaitInfant() {
	if j.infantFD <= 0 {
		return
	}
	// Its parent is gone. The signal that should have told it so is lost when
	// it changes its credentials, so it may be about to start the command.
	_ = unix.PidfdSendSignal(j.infantFD, unix.SIGKILL, nil, 0) // fails when it is gone, too
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(j.infantFD), Events: unix.POLLIN}}, -1)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	unix.Close(j.infantFD)
}

// awaitStopped waits until a process stands still, or is gone. A signal acts
// before its process returns from the kernel, so this takes moments.
func awaitStopped(pid int) {
	for range 1000 {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return
		}
		if _, rest, ok := strings.Cut(string(stat), ") "); !ok || strings.HasPrefix(rest, "T") || strings.HasPrefix(rest, "Z") {
			return
		}
		time.Sleep(100 * time.Microsecond)
	}
}

// childrenOf lists the children of a process.
func childrenOf(pid int) []int {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return nil
	}
	var out []int
	for f := range strings.FieldsSeq(string(raw)) {
		if n, err := strconv.Atoi(f); err == nil {
			out = append(out, n)
		}
	}
	return out
}
