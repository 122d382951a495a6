package sandbox_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"passepartout/internal/sandbox"
)

// The escape suite: each test is a way out that somebody has tried somewhere,
// taken for real, on every path there is.

func TestEscapeWritingOutsideTheRoots(t *testing.T) {
	onEach(t, func(t *testing.T, b *box) {
		victim := filepath.Join(b.out, "file")
		mustWrite(t, victim, "before")
		for _, script := range []string{
			"echo x > " + victim,
			"echo x >> " + victim,
			"rm -f " + victim,
			"mv " + victim + " " + victim + "2",
			"mv " + victim + " " + b.root + "/stolen",
			"chmod 777 " + victim,
			"truncate -s 0 " + victim,
			"ln " + victim + " " + b.root + "/hard; echo x > " + b.root + "/hard",
			"ln -s " + victim + " " + b.root + "/soft; echo x > " + b.root + "/soft",
			"mkdir " + b.out + "/dir",
			"cd " + b.root + "/.. && echo x > outside/file",
			"echo x > /proc/self/root" + victim,
			"echo x > /proc/self/cwd/../outside/file",
			"cp " + victim + " /etc/passepartout-test",
			"touch " + victim,
		} {
			before, err := os.Stat(victim)
			if err != nil {
				t.Fatal(err)
			}
			b.sh(script)
			after, err := os.Stat(victim)
			if err != nil || mustRead(t, victim) != "before" || after.Mode() != before.Mode() || !after.ModTime().Equal(before.ModTime()) {
				t.Fatalf("%s: the file outside is %v %v", script, after, err)
			}
		}
		entries, err := os.ReadDir(b.out)
		if err != nil || len(entries) != 1 {
			t.Errorf("wanted one file outside, got %v %v", entries, err)
		}
		if res := b.sh("echo inside > file && cat file"); res.Stdout.String() != "inside\n" {
			t.Errorf("the root itself could not be written: %s%s", res.Stdout, res.Stderr)
		}
	})
}

// secrets makes a home with things in it that nobody may see.
func secrets(t *testing.T, home string) []string {
	t.Helper()
	for _, f := range []string{".ssh/id", "vault.age", "state/journal/1", "policy.org"} {
		mustWrite(t, filepath.Join(home, f), "swordfish")
	}
	l, err := net.Listen("unix", filepath.Join(home, "sock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	var hidden []string
	for _, f := range []string{".ssh", "vault.age", "state", "policy.org", "sock"} {
		hidden = append(hidden, filepath.Join(home, f))
	}
	return hidden
}

func TestEscapeReadingSecrets(t *testing.T) {
	onEach(t, func(t *testing.T, b *box) {
		for name, home := range map[string]string{"read-only": b.out, "inside a write root": b.root} {
			t.Run(name, func(t *testing.T) {
				b := b.on(t)
				s := b.spec("cd " + home + "; cat .ssh/id .ssh/* vault.age state/journal/1 policy.org; ls -R .ssh state; " +
					"cp -r . /tmp/copy; cat /tmp/copy/vault.age; dd if=vault.age; tar cf - . | tr -d '\\0'; " +
					"chmod 777 .ssh vault.age; mv vault.age v2; rm -rf .ssh state policy.org; cat v2; umount vault.age; " +
					"cat /proc/self/root" + home + "/vault.age")
				s.Hidden = secrets(t, home)
				res := b.run(s)
				if got := res.Stdout.String() + res.Stderr.String(); strings.Contains(got, "swordfish") {
					t.Errorf("a secret was read:\n%s", got)
				}
				for _, f := range []string{".ssh/id", "vault.age", "state/journal/1", "policy.org"} {
					if mustRead(t, filepath.Join(home, f)) != "swordfish" {
						t.Errorf("%s was changed", f)
					}
				}
				s.Argv = []string{b.self, attemptArg, "dial", "unix", filepath.Join(home, "sock")}
				s.UnixSockets = true
				if res := b.run(s); res.OK() {
					t.Error("the daemon's socket was reached")
				}
			})
		}
	})
}

func TestEscapeCreatingAHiddenFileThatIsMissing(t *testing.T) {
	onEach(t, func(t *testing.T, b *box) {
		file := filepath.Join(b.root, "settings")
		deep := filepath.Join(b.root, "missing", "dir", "hook")
		s := b.spec("echo evil > settings; mkdir -p missing/dir; echo evil > missing/dir/hook; rm -rf missing settings; " +
			"mv settings s2; ln -s /etc settings; echo evil > settings; ls -la; cat settings; true")
		s.Hidden = []string{file, deep}
		res := b.run(s)
		for _, p := range []string{file, filepath.Join(b.root, "missing"), filepath.Join(b.root, "s2")} {
			if info, err := os.Lstat(p); err == nil {
				t.Errorf("%s came into being: %v\n%s%s", p, info.Mode(), res.Stdout, res.Stderr)
			}
		}
	})
}

func TestHiddenPathsMayLieInEachOther(t *testing.T) {
	onEach(t, func(t *testing.T, b *box) {
		s := b.spec("cat a/x/f a-b/f; echo evil > a/y; ls")
		for _, p := range []string{"a", "a-b", "a/x", "a", "a/y", "a-b/none/deep"} {
			s.Hidden = append(s.Hidden, filepath.Join(b.root, p))
		}
		mustWrite(t, filepath.Join(b.root, "a/x/f"), "swordfish")
		mustWrite(t, filepath.Join(b.root, "a-b/f"), "swordfish")
		res := b.run(s)
		if got := res.Stdout.String(); got != "a\na-b\nattempt\n" {
			t.Errorf("got %q", got)
		}
		if list, err := os.ReadDir(filepath.Join(b.root, "a")); err != nil || len(list) != 1 {
			t.Errorf("wanted only what was there, got %v %v", list, err)
		}
	})
}

func TestEscapeMovingTheDirectoryAroundAHiddenFile(t *testing.T) {
	onEach(t, func(t *testing.T, b *box) {
		hidden := filepath.Join(b.root, "a", "b", "policy")
		mustWrite(t, hidden, "true policy")
		s := b.spec("mv a elsewhere; mv a/b a/c; mkdir -p a/b; echo evil > a/b/policy; cat */*/policy elsewhere/b/policy; true")
		s.Hidden = []string{hidden}
		res := b.run(s)
		if got := mustRead(t, hidden); got != "true policy" || strings.Contains(res.Stdout.String(), "true") {
			t.Errorf("policy is now %q; the command saw %q", got, res.Stdout)
		}
	})
}

func TestEscapeSwappingALinkIn(t *testing.T) {
	onEach(t, func(t *testing.T, b *box) {
		victim := filepath.Join(b.out, "inner", "file")
		mustWrite(t, victim, "before")
		parent := filepath.Join(b.root, "sub")
		root := filepath.Join(parent, "inner")
		if err := os.MkdirAll(root, 0o755); err != nil {
			t.Fatal(err)
		}
		// Judged while it was a directory, a link when it is used: another
		// program swaps the two while runs start.
		stop, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			swapUntil(stop, parent, b.out)
		}()
		ran := 0
		for range 500 {
			s := b.spec("echo x > " + root + "/file; echo x > ./file")
			s.WriteRoots = []string{root}
			_, err := sandbox.Run(t.Context(), s)
			if err == nil {
				ran++
			} else if !errors.Is(err, sandbox.ErrSpec) && !errors.Is(err, sandbox.ErrUnavailable) && !errors.Is(err, sandbox.ErrStart) {
				t.Errorf("unexpected error %v", err)
			}
		}
		close(stop)
		<-done
		if got := mustRead(t, victim); got != "before" {
			t.Errorf("a swapped link led outside: %q", got)
		}
		t.Logf("%d of 500 runs met a directory and went through", ran)
	})
}

// swapUntil makes path now a directory, now a link to target, and never
// nothing.
func swapUntil(stop <-chan struct{}, path, target string) {
	spare := path + ".spare"
	_ = os.Symlink(target, spare)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			_ = unix.Renameat2(unix.AT_FDCWD, path, unix.AT_FDCWD, spare, unix.RENAME_EXCHANGE)
		}
	}
}

func TestEscapeConnectingOut(t *testing.T) {
	servers := startServers(t)
	onEach(t, func(t *testing.T, b *box) {
		for _, s := range servers {
			t.Run(s.name, func(t *testing.T) {
				b := b.on(t)
				if err := attempt("dial", []string{s.network, s.addr}); err != nil {
					t.Skipf("not reachable from outside either: %v", err)
				}
				b.refused("dial", s.network, s.addr)
			})
		}
		b.refused("dial", "udp4", "127.0.0.53:53")
		b.refused("dial", "tcp", "example.org:80")
	})
}

type server struct{ name, network, addr string }

// startServers listens in every way a process can on this machine.
func startServers(t *testing.T) []server {
	t.Helper()
	var out []server
	listen := func(name, network, addr string) {
		l, err := net.Listen(network, addr)
		if err != nil {
			t.Logf("%s: %v", name, err)
			return
		}
		t.Cleanup(func() { l.Close() })
		out = append(out, server{name, network, l.Addr().String()})
	}
	listen("TCP", "tcp4", "127.0.0.1:0")
	listen("IPv6", "tcp6", "[::1]:0")
	listen("abstract Unix socket", "unix", "@passepartout-"+marker(2))
	listen("Unix socket", "unix", filepath.Join(realTempDir(t), "s"))
	if c, err := net.ListenPacket("udp4", "127.0.0.1:0"); err == nil {
		t.Cleanup(func() { c.Close() })
		go func() {
			buf := make([]byte, 64)
			for {
				n, from, err := c.ReadFrom(buf)
				if err != nil {
					return
				}
				_, _ = c.WriteTo(buf[:n], from)
			}
		}()
		out = append(out, server{"UDP", "udp4", c.LocalAddr().String()})
	}
	return out
}

func TestEscapeConnectingToAUnixSocketWhenUnixSocketsAreAllowed(t *testing.T) {
	onEach(t, func(t *testing.T, b *box) {
		l, err := net.Listen("unix", "@passepartout-"+marker(3))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		s := b.spec("")
		s.UnixSockets = true
		s.Argv = []string{b.self, attemptArg, "dial", "unix", l.Addr().String()}
		if res := b.run(s); res.OK() {
			t.Error("an abstract socket of the host was reached")
		}
	})
}

// sockets lists families and protocols that leave a network namespace, or
// would give a kernel interface nobody needs.
func TestEscapeUncommonSockets(t *testing.T) {
	onEach(t, func(t *testing.T, b *box) {
		for name, family := range map[string]int{
			"vsock, to the machine's host": unix.AF_VSOCK,
			"kernel crypto":                unix.AF_ALG,
			"raw packets":                  unix.AF_PACKET,
			"bluetooth":                    unix.AF_BLUETOOTH,
			"tipc":                         unix.AF_TIPC,
			"xdp":                          unix.AF_XDP,
			"unix":                         unix.AF_UNIX,
		} {
			t.Run(name, func(t *testing.T) {
				b.on(t).refused("syscall", strconv.Itoa(unix.SYS_SOCKET), strconv.Itoa(family), strconv.Itoa(unix.SOCK_STREAM), "0")
			})
		}
		// The upper half of the argument must not smuggle a family past.
		b.refused("syscall", strconv.Itoa(unix.SYS_SOCKET), strconv.Itoa(1<<32|unix.AF_VSOCK), strconv.Itoa(unix.SOCK_STREAM), "0")
	})
}

func TestEscapeSystemCallsThatReachOut(t *testing.T) {
	calls := map[string][]int{
		"ptrace":             {unix.SYS_PTRACE, unix.PTRACE_TRACEME},
		"process_vm_readv":   {unix.SYS_PROCESS_VM_READV, 1},
		"process_vm_writev":  {unix.SYS_PROCESS_VM_WRITEV, 1},
		"pidfd_getfd":        {unix.SYS_PIDFD_GETFD},
		"keyctl":             {unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID, -4},
		"bpf":                {unix.SYS_BPF},
		"userfaultfd":        {unix.SYS_USERFAULTFD},
		"perf_event_open":    {unix.SYS_PERF_EVENT_OPEN},
		"io_uring_setup":     {unix.SYS_IO_URING_SETUP, 1},
		"mount":              {unix.SYS_MOUNT},
		"umount":             {unix.SYS_UMOUNT2},
		"fsopen":             {unix.SYS_FSOPEN},
		"open_tree":          {unix.SYS_OPEN_TREE, unix.AT_FDCWD},
		"move_mount":         {unix.SYS_MOVE_MOUNT},
		"mount_setattr":      {unix.SYS_MOUNT_SETATTR},
		"pivot_root":         {unix.SYS_PIVOT_ROOT},
		"chroot":             {unix.SYS_CHROOT},
		"setns":              {unix.SYS_SETNS},
		"unshare user":       {unix.SYS_UNSHARE, unix.CLONE_NEWUSER},
		"clone user":         {unix.SYS_CLONE, unix.CLONE_NEWUSER | int(unix.SIGCHLD)},
		"kexec_load":         {unix.SYS_KEXEC_LOAD},
		"init_module":        {unix.SYS_INIT_MODULE},
		"finit_module":       {unix.SYS_FINIT_MODULE},
		"delete_module":      {unix.SYS_DELETE_MODULE},
		"reboot":             {unix.SYS_REBOOT},
		"swapon":             {unix.SYS_SWAPON},
		"syslog":             {unix.SYS_SYSLOG, 10},
		"open_by_handle_at":  {unix.SYS_OPEN_BY_HANDLE_AT},
		"fanotify_init":      {unix.SYS_FANOTIFY_INIT},
		"clock_settime":      {unix.SYS_CLOCK_SETTIME},
		"TIOCSTI":            {unix.SYS_IOCTL, 0, unix.TIOCSTI},
		"TIOCSTI, high bits": {unix.SYS_IOCTL, 0, 1<<32 | unix.TIOCSTI},
		"TIOCLINUX":          {unix.SYS_IOCTL, 0, unix.TIOCLINUX},
		"clone3":             {unix.SYS_CLONE3},
		"a call of tomorrow": {5000},
	}
	want := map[string]string{"clone3": "function not implemented", "a call of tomorrow": "function not implemented"}
	onEach(t, func(t *testing.T, b *box) {
		for name, call := range calls {
			t.Run(name, func(t *testing.T) {
				args := []string{"syscall"}
				for _, a := range call {
					args = append(args, strconv.Itoa(a))
				}
				res := b.on(t).attempt(args...)
				w := want[name]
				if w == "" {
					w = "operation not permitted"
				}
				if got := res.Stdout.String(); got != "refused: "+w+"\n" {
					t.Errorf("wanted %q, got %q %v", w, got, res.Cause)
				}
			})
		}
	})
}

func TestEscapeThroughProc(t *testing.T) {
	t.Setenv("PASSEPARTOUT_TEST_SECRET", "swordfish")
	outer := strconv.Itoa(os.Getpid())
	onEach(t, func(t *testing.T, b *box) {
		mustWrite(t, filepath.Join(b.out, "file"), "swordfish")
		s := b.spec("cat /proc/*/environ; for p in 1 2 $PPID; do cat /proc/$p/root" + b.out + "/file; ls -l /proc/$p/fd /proc/$p/root /proc/$p/exe; " +
			"head -c 1 /proc/$p/mem; cat /proc/$p/cwd/*; done; " +
			"echo 0 > /proc/1/oom_score_adj; " +
			"cat /proc/kcore | head -c 1; cat /proc/keys; echo 0 > /proc/self/uid_map; true")
		s.Hidden = []string{filepath.Join(b.out, "file")}
		res := b.run(s)
		if got := res.Stdout.String(); strings.Contains(got, "swordfish") || strings.Contains(got, "->") {
			t.Errorf("something of another process was seen:\n%s", got)
		}
		b.refused("open", "/proc/1/mem")
		b.refused("open", "/proc/2/mem")
		// Opened only: if this wall fell, the machine must not suffer for it.
		b.refused("open", "/proc/sys/kernel/core_pattern")
		b.refused("open", "/proc/sysrq-trigger")
		b.refused("signal", outer) // numbers are small inside, so an outer one is nobody's
		list := b.sh("ls /proc | grep -c '^[0-9]'").Stdout.String()
		if n, err := strconv.Atoi(strings.TrimSpace(list)); err != nil || n > 8 {
			t.Errorf("wanted a handful of processes, got %q", list)
		}
	})
}

func TestEscapeTracingTheDaemon(t *testing.T) {
	outer := strconv.Itoa(os.Getpid())
	onEach(t, func(t *testing.T, b *box) {
		for _, pid := range []string{outer, "1", "2"} {
			b.refused("syscall", strconv.Itoa(unix.SYS_PTRACE), strconv.Itoa(unix.PTRACE_ATTACH), pid)
			b.refused("syscall", strconv.Itoa(unix.SYS_PTRACE), strconv.Itoa(unix.PTRACE_SEIZE), pid)
		}
	})
}

func TestEscapeSetUserID(t *testing.T) {
	onEach(t, func(t *testing.T, b *box) {
		if res := b.sh("cp /bin/sh mine; chmod u+s mine || echo refused; chmod 2755 mine || echo refused"); strings.Count(res.Stdout.String(), "refused") != 2 {
			t.Errorf("a set-id program could be made: %s", res.Stdout)
		}
		// A set-id program that was there before must not work either.
		prog := filepath.Join(b.root, "setuid")
		copySelf(t, prog)
		if os.Getuid() == 0 {
			if err := os.Chown(prog, 65534, 65534); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(prog, 0o755|os.ModeSetuid|os.ModeSetgid); err != nil {
			t.Fatal(err)
		}
		s := b.spec("")
		s.Argv = []string{prog, attemptArg, "identity"}
		want := fmt.Sprintf("euid %d uid %d\ndone\n", os.Getuid(), os.Getuid())
		if got := b.run(s).Stdout.String(); got != want {
			t.Errorf("wanted %q, got %q", want, got)
		}
		caps := b.sh("grep -E '^Cap(Prm|Eff|Bnd|Amb)|NoNewPrivs' /proc/self/status").Stdout.String()
		if strings.Count(caps, "0000000000000000") != 4 || !strings.Contains(caps, "NoNewPrivs:\t1") {
			t.Errorf("capabilities are left:\n%s", caps)
		}
	})
}

func TestEscapeDeviceNodes(t *testing.T) {
	onEach(t, func(t *testing.T, b *box) {
		res := b.sh("mknod disk b 254 0; mknod mem c 1 1; ls /dev/vda /dev/sda /dev/mem /dev/kmsg /dev/kvm /dev/fuse /dev/vsock; true")
		if res.Stdout.Total != 0 {
			t.Errorf("got %s", res.Stdout)
		}
		for _, n := range []string{"disk", "mem"} {
			if _, err := os.Lstat(filepath.Join(b.root, n)); err == nil {
				t.Errorf("the device node %s was made", n)
			}
		}
	})
}

func TestEscapeForkBomb(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run by make test")
	}
	onEach(t, func(t *testing.T, b *box) {
		s := b.spec("")
		s.Argv = []string{b.self, attemptArg, "fork", "2000"}
		s.Limits.Processes = 64
		res := b.run(s)
		var reached int
		if _, err := fmt.Sscanf(res.Stdout.String(), "refused: process %d:", &reached); err != nil || reached >= 64 {
			t.Errorf("wanted a refusal below 64 processes, got %v %q %s", res.Cause, res.Stdout, res.Stderr)
		}
		m := marker(4)
		bomb := b.spec("bomb() { sleep " + m + " & bomb | bomb & }; bomb; sleep " + m)
		bomb.Limits.Processes, bomb.Limits.Wall = 64, time.Second
		b.run(bomb)
		if n := survivors(t, m); n != 0 {
			t.Errorf("%d processes are still running", n)
		}
	})
}

func TestEscapeSurvivors(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run by make test")
	}
	onEach(t, func(t *testing.T, b *box) {
		m := marker(5)
		ways := "nohup sleep " + m + " >/dev/null 2>&1 & setsid sleep " + m + " & (setsid sh -c 'sleep " + m + " & sleep " + m + " &' &) ; " +
			"sh -c 'trap \"\" TERM HUP INT; sleep " + m + "' & (sleep " + m + " <&- >&- 2>&- &); "
		for name, end := range map[string]string{"when the command ends": "read line", "at the deadline": "sleep " + m} {
			s := b.spec(ways + "echo up; " + end)
			s.Limits.Wall = 2 * time.Second
			r, w := io.Pipe()
			s.Stdin = r
			seen := 0
			s.Sink = func(sandbox.Chunk) {
				seen = max(seen, survivors(t, m))
				w.Close() // lets the command end, now that its offspring was counted
			}
			b.run(s)
			if n := survivors(t, m); n != 0 {
				t.Errorf("%s: %d processes are still running", name, n)
			}
			if seen == 0 {
				t.Errorf("%s: none was ever seen running, so nothing was shown", name)
			}
		}
	})
}

func TestEscapeStopAndKillGames(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run by make test")
	}
	onEach(t, func(t *testing.T, b *box) {
		m := marker(6)
		for _, game := range []string{"kill -STOP 1; kill -STOP 2; kill -STOP $$", "kill -KILL 1; kill -STOP -1; sleep " + m, "kill -STOP 0"} {
			s := b.spec("sleep " + m + " & " + game)
			s.Limits.Wall = 500 * time.Millisecond
			res := b.run(s)
			if n := survivors(t, m); n != 0 {
				t.Errorf("%s: %d processes are still running (%v)", game, n, res.Cause)
			}
		}
	})
}

func TestEscapeOutlivingTheDaemon(t *testing.T) {
	onEach(t, func(t *testing.T, b *box) {
		m := marker(7)
		cmd := b.startMiniature("setsid sleep " + m + " & sleep " + m)
		eventually(t, "the command runs", func() bool { return survivors(t, m) >= 2 })
		if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		var exit *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &exit) {
			t.Fatalf("wanted it killed, got %v", err)
		}
		eventually(t, "everything died with it", func() bool { return survivors(t, m) == 0 })
	})
}

func TestEscapeInheritedDescriptors(t *testing.T) {
	onEach(t, func(t *testing.T, b *box) {
		mustWrite(t, filepath.Join(b.out, "file"), "swordfish")
		fd, err := unix.Open(b.out, unix.O_DIRECTORY, 0) // deliberately without close-on-exec
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		res := b.sh("ls /proc/self/fd; for i in 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do cat /proc/self/fd/$i/file; cat <&$i; done 2>/dev/null; true")
		if got := strings.Fields(res.Stdout.String()); len(got) != 4 { // 0, 1, 2 and ls's own
			t.Errorf("wanted three descriptors and the listing's own, got %v", got)
		}
	})
}

func TestEscapeSharedMemoryAndQueues(t *testing.T) {
	onEach(t, func(t *testing.T, b *box) {
		id, err := unix.SysvShmGet(0x50415353, 4096, unix.IPC_CREAT|0o666)
		if err != nil {
			t.Skipf("no shared memory: %v", err)
		}
		defer unix.SysvShmCtl(id, unix.IPC_RMID, nil)
		b.refused("syscall", strconv.Itoa(unix.SYS_SHMGET), strconv.Itoa(0x50415353), "4096", "0")
	})
}

func TestEscapeAMillionFiles(t *testing.T) {
	onEach(t, func(t *testing.T, b *box) {
		count := "1000000"
		if b.method == sandbox.Bubblewrap && os.Getenv("PASSEPARTOUT_SOAK") == "" {
			// bwrap cannot bound the number of files, only their bytes, so all of
			// them are really made; they are gone with the run all the same.
			count = "100000"
		}
		res := b.attempt("files", "/tmp", count)
		if b.method == sandbox.Namespaces && !strings.Contains(res.Stdout.String(), "no space left") {
			t.Errorf("wanted the scratch directory to fill up, got %q %v", res.Stdout, res.Cause)
		}
		if _, err := os.Lstat("/tmp/99"); err == nil {
			t.Error("the files are on the host")
		}
	})
}

func TestEscapeTenGigabytesOfOutput(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("takes some seconds")
	}
	onEach(t, func(t *testing.T, b *box) {
		const size = 10 << 30
		s := b.spec(fmt.Sprintf("head -c %d /dev/zero", int64(size)))
		s.Limits.Wall = time.Minute
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		res := b.run(s)
		runtime.ReadMemStats(&after)
		if res.Stdout.Total != size || !res.Truncated() {
			t.Errorf("wanted %d bytes, cut; got %d %v", int64(size), res.Stdout.Total, res.Cause)
		}
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 8<<20 {
			t.Errorf("memory grew with the output: %d bytes were allocated", grown)
		}
		t.Logf("%.0f MB/s", float64(size)/1e6/res.Duration.Seconds())
	})
}

// TestEscapesAsAnOrdinaryUser runs this suite again without root's rights.
func TestEscapesAsAnOrdinaryUser(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run by make test")
	}
	if os.Getuid() != 0 {
		t.Skip("already an ordinary user")
	}
	dir, err := os.MkdirTemp("/var", "passepartout-user-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	self := filepath.Join(dir, "test")
	copySelf(t, self)
	cmd := exec.CommandContext(t.Context(), self, "-test.run", "^Test[^E]|^TestEscape[^s]", "-test.v")
	cmd.Dir = dir
	cmd.Env = []string{"TMPDIR=" + dir, "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("as an ordinary user: %v\n%s", err, out)
	}
	t.Logf("%d passed, %d skipped", strings.Count(string(out), "--- PASS"), strings.Count(string(out), "--- SKIP"))
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "--- SKIP") {
			t.Log(strings.TrimSpace(line))
		}
	}
}
