//go:build linux && (amd64 || arm64)

package powercut

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// patience bounds the watched work.
const patience = 2 * time.Minute

// A call is a system call on its way.
type call struct {
	nr     uint64
	args   [6]uint64
	paths  [2]string // the files it names, resolved when it began
	covers int
}

// A tracer watches all threads of one process.
type tracer struct {
	d     *disk
	calls map[int]call
}

// watch runs a program to its end and records in d what it does.
func watch(d *disk, argv, env []string, out *os.File) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the kernel answers the thread that began to watch
		defer runtime.UnlockOSThread()
		done <- (&tracer{d, map[int]call{}}).run(argv, env, out)
	}()
	return <-done
}

func (t *tracer) run(argv, env []string, out *os.File) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	p, err := os.StartProcess(argv[0], argv, &os.ProcAttr{
		Env: env, Files: []*os.File{null, out, out, null},
		Sys: &syscall.SysProcAttr{Ptrace: true, Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	pid := p.Pid
	late := time.AfterFunc(patience, func() { _ = unix.Kill(pid, unix.SIGKILL) }) // its number is taken until it was waited for
	defer late.Stop()
	defer func() { _ = p.Release() }()
	var ws unix.WaitStatus
	if _, err := unix.Wait4(pid, &ws, unix.WALL, nil); err != nil {
		return err
	}
	err = unix.PtraceSetOptions(pid, unix.PTRACE_O_TRACESYSGOOD|unix.PTRACE_O_TRACECLONE|unix.PTRACE_O_EXITKILL)
	if err == nil {
		err = unix.PtraceSyscall(pid, 0)
	}
	if err == nil {
		err = t.loop(pid)
	}
	if err != nil {
		_ = unix.Kill(pid, unix.SIGKILL)
		for reaped := 0; reaped != pid; { // so that no zombie is left
			var werr error
			if reaped, werr = unix.Wait4(-pid, &ws, unix.WALL, nil); werr != nil && !errors.Is(werr, unix.EINTR) {
				break
			}
			if ws.Stopped() {
				reaped = 0
			}
		}
	}
	return err
}

// loop lets the threads go from one system call to the next.
func (t *tracer) loop(pid int) error {
	for {
		var ws unix.WaitStatus
		tid, err := unix.Wait4(-pid, &ws, unix.WALL, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("wait: %w", err)
		}
		signal := 0
		switch {
		case ws.Exited() || ws.Signaled():
			if tid != pid {
				continue
			}
			if ws.Signaled() || ws.ExitStatus() != 0 {
				return fmt.Errorf("it ended with status %d, signal %v", ws.ExitStatus(), ws.Signal())
			}
			return nil
		case ws.StopSignal() == unix.SIGTRAP|0x80:
			if err := t.stop(tid); err != nil {
				return err
			}
		case ws.StopSignal() == unix.SIGTRAP, ws.StopSignal() == unix.SIGSTOP:
			// a thread began, or was begun
		default:
			signal = int(ws.StopSignal())
		}
		if err := unix.PtraceSyscall(tid, signal); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("go on: %w", err)
		}
	}
}

// stop looks at a thread that enters or leaves a system call.
func (t *tracer) stop(tid int) error {
	var info [88]byte // struct ptrace_syscall_info
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GET_SYSCALL_INFO, uintptr(tid), uintptr(len(info)), uintptr(unsafe.Pointer(&info[0])), 0, 0)
	if errno != 0 {
		return fmt.Errorf("%w: system calls cannot be read: %w", errors.ErrUnsupported, errno)
	}
	word := func(i int) uint64 { return binary.NativeEndian.Uint64(info[24+8*i:]) }
	switch info[0] {
	case unix.PTRACE_SYSCALL_INFO_ENTRY:
		c := call{nr: word(0), covers: len(t.d.ops)}
		for i := range c.args {
			c.args[i] = word(1 + i)
		}
		if err := t.begin(tid, &c); err != nil {
			return err
		}
		t.calls[tid] = c
	case unix.PTRACE_SYSCALL_INFO_EXIT:
		c, ok := t.calls[tid]
		delete(t.calls, tid)
		if result := int64(word(0)); ok && result >= 0 {
			return t.end(tid, c, result)
		}
	}
	return nil
}

// begin resolves the paths a call names, while they still lead there.
func (t *tracer) begin(tid int, c *call) (err error) {
	at := func(i int, dirfd, path uint64) {
		if err == nil {
			c.paths[i], err = t.path(tid, dirfd, path)
		}
	}
	switch c.nr {
	case unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_LINKAT:
		at(0, c.args[0], c.args[1])
		at(1, c.args[2], c.args[3])
	case unix.SYS_UNLINKAT, unix.SYS_MKDIRAT, unix.SYS_MKNODAT, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2:
		at(0, c.args[0], c.args[1])
	case unix.SYS_SYMLINKAT:
		at(0, c.args[1], c.args[2])
	case unix.SYS_TRUNCATE:
		cwd := int64(unix.AT_FDCWD)
		at(0, uint64(cwd), c.args[0])
	}
	return err
}

// end records a call that succeeded.
func (t *tracer) end(tid int, c call, result int64) error {
	switch c.nr {
	case unix.SYS_OPENAT:
		return t.opened(tid, int(result), c.args[2])
	case unix.SYS_OPENAT2:
		how, err := t.memory(tid, c.args[2], 8)
		if err != nil {
			return err
		}
		return t.opened(tid, int(result), binary.NativeEndian.Uint64(how))
	case unix.SYS_WRITE:
		if c.args[0] == markFile {
			text, err := t.memory(tid, c.args[1], int(result))
			t.d.add(&op{kind: opMark, text: string(text)})
			return err
		}
		return t.wrote(tid, int(c.args[0]), -1, result)
	case unix.SYS_WRITEV, unix.SYS_SENDFILE:
		return t.wrote(tid, int(c.args[0]), -1, result)
	case unix.SYS_COPY_FILE_RANGE, unix.SYS_SPLICE:
		return t.wrote(tid, int(c.args[2]), -1, result)
	case unix.SYS_PWRITE64, unix.SYS_PWRITEV:
		return t.wrote(tid, int(c.args[0]), int64(c.args[3]), result)
	case unix.SYS_FTRUNCATE:
		t.truncated(t.file(tid, int(c.args[0])), int64(c.args[1]))
	case unix.SYS_TRUNCATE:
		if dir, name, ok := t.d.place(c.paths[0]); ok {
			t.truncated(dir.names[name], int64(c.args[1]))
		}
	case unix.SYS_FSYNC, unix.SYS_FDATASYNC:
		if n := t.file(tid, int(c.args[0])); n != nil {
			t.d.add(&op{kind: opSync, node: n, covers: c.covers})
		}
	case unix.SYS_SYNC, unix.SYS_SYNCFS:
		t.d.add(&op{kind: opSync, covers: c.covers})
	case unix.SYS_RENAMEAT:
		return t.d.renamed(c.paths[0], c.paths[1], false)
	case unix.SYS_RENAMEAT2:
		return t.d.renamed(c.paths[0], c.paths[1], c.args[4]&unix.RENAME_EXCHANGE != 0)
	case unix.SYS_UNLINKAT:
		t.d.removed(c.paths[0])
	case unix.SYS_MKDIRAT, unix.SYS_SYMLINKAT, unix.SYS_MKNODAT:
		_, err := t.d.made(c.paths[0])
		return err
	case unix.SYS_LINKAT:
		_, err := t.d.made(c.paths[1])
		return err
	case unix.SYS_FCHMOD:
		return t.chmod(t.link(tid, int(c.args[0])))
	case unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2:
		return t.chmod(c.paths[0])
	case unix.SYS_MMAP:
		return t.mapped(tid, c)
	case unix.SYS_FALLOCATE, unix.SYS_SYNC_FILE_RANGE:
		if t.file(tid, int(c.args[0])) != nil {
			return fmt.Errorf("system call %d on a watched file is not understood here", c.nr)
		}
	}
	return nil
}

// mapped refuses what would be written behind our back.
func (t *tracer) mapped(tid int, c call) error {
	if c.args[2]&unix.PROT_WRITE != 0 && c.args[3]&unix.MAP_SHARED != 0 && int32(c.args[4]) >= 0 && t.file(tid, int(c.args[4])) != nil {
		return errors.New("a watched file was mapped to be written: that cannot be seen")
	}
	return nil
}

// opened records a file that open made or emptied.
func (t *tracer) opened(tid, fd int, flags uint64) error {
	if flags&(unix.O_CREAT|unix.O_TRUNC) == 0 {
		return nil
	}
	path := t.link(tid, fd)
	dir, name, ok := t.d.place(path)
	if !ok {
		return nil
	}
	old := dir.names[name]
	n, err := t.d.made(path)
	if err == nil && old != nil && flags&unix.O_TRUNC != 0 && n.mode.IsRegular() {
		t.truncated(n, 0)
	}
	return err
}

// wrote records bytes as they now stand in the file.
func (t *tracer) wrote(tid, fd int, off, count int64) error {
	n := t.file(tid, fd)
	if n == nil || count == 0 {
		return nil
	}
	if off < 0 {
		pos, err := position(tid, fd)
		if err != nil {
			return err
		}
		off = pos - count
	}
	f, err := os.Open(fdPath(tid, fd))
	if err != nil {
		return err
	}
	data := make([]byte, count)
	_, err = f.ReadAt(data, off)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("read what was written: %w", err)
	}
	t.d.add(&op{kind: opWrite, node: n, off: off, data: data})
	return nil
}

func (t *tracer) truncated(n *node, size int64) {
	if n != nil {
		t.d.add(&op{kind: opTruncate, node: n, off: size})
	}
}

// chmod takes a mode over. That it could be lost is not looked at.
func (t *tracer) chmod(path string) error {
	dir, name, ok := t.d.place(path)
	if !ok || dir.names[name] == nil {
		return nil
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	dir.names[name].mode = info.Mode()
	return nil
}

func fdPath(tid, fd int) string { return fmt.Sprintf("/proc/%d/fd/%d", tid, fd) }

// link is the path of an open file, "" for none.
func (t *tracer) link(tid, fd int) string {
	path, err := os.Readlink(fdPath(tid, fd))
	if err != nil {
		return ""
	}
	return path
}

// file is the node of an open file, nil for one that is not watched.
func (t *tracer) file(tid, fd int) *node {
	path := strings.TrimSuffix(t.link(tid, fd), " (deleted)")
	if _, _, ok := t.d.place(path); !ok && path != t.d.path {
		if !strings.HasPrefix(path, t.d.path+"/") {
			return nil
		}
	}
	info, err := os.Stat(fdPath(tid, fd))
	if err != nil {
		return nil
	}
	return t.d.inodes[inodeOf(info)]
}

// position is where the next byte of an open file would go.
func position(tid, fd int) (int64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", tid, fd))
	if err != nil {
		return 0, err
	}
	line, _, _ := bytes.Cut(raw, []byte("\n"))
	_, pos, ok := strings.Cut(string(line), "pos:")
	if !ok {
		return 0, fmt.Errorf("want the position of a file, found %q", line)
	}
	return strconv.ParseInt(strings.TrimSpace(pos), 10, 64)
}

// path reads a path from the thread's memory and makes it absolute, without links
// except in its last part.
func (t *tracer) path(tid int, dirfd, addr uint64) (string, error) {
	raw, err := t.memory(tid, addr, unix.PathMax)
	if err != nil {
		return "", err
	}
	text, _, ok := bytes.Cut(raw, []byte{0})
	if !ok {
		return "", fmt.Errorf("a path has no end: %q", raw)
	}
	path := string(text)
	if !filepath.IsAbs(path) {
		base := t.link(tid, int(int32(dirfd)))
		if int32(dirfd) == unix.AT_FDCWD {
			if base, err = os.Readlink(fmt.Sprintf("/proc/%d/cwd", tid)); err != nil {
				return "", err
			}
		}
		path = filepath.Join(base, path)
	}
	path = filepath.Clean(path)
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(dir, filepath.Base(path))
	}
	return path, nil
}

// memory reads at most n bytes of the thread's memory.
func (t *tracer) memory(tid int, addr uint64, n int) ([]byte, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/mem", tid))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	buf := make([]byte, n)
	got, err := f.ReadAt(buf, int64(addr))
	if got > 0 || errors.Is(err, io.EOF) {
		err = nil
	}
	return buf[:got], err
}
