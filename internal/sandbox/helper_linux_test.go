package sandbox_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"passepartout/internal/sandbox"
)

// attemptArg makes the test binary try one thing, inside the sandbox, and say
// how it went.
const attemptArg = "attempt"

func TestMain(m *testing.M) {
	sandbox.Init()
	if len(os.Args) > 2 && os.Args[1] == attemptArg {
		if err := attempt(os.Args[2], os.Args[3:]); err != nil {
			fmt.Println("refused:", err)
			os.Exit(1)
		}
		fmt.Println("done")
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// attempt is what an escaping program would do.
func attempt(what string, args []string) error {
	switch what {
	case "dial":
		c, err := net.DialTimeout(args[0], args[1], 2*time.Second)
		if err != nil {
			return err
		}
		defer c.Close()
		if strings.HasPrefix(args[0], "udp") {
			return exchange(c)
		}
		return nil
	case "syscall":
		nr, err := strconv.Atoi(args[0])
		if err != nil {
			return err
		}
		var a [6]uintptr
		for i, s := range args[1:] {
			v, err := strconv.ParseInt(s, 0, 64)
			if err != nil {
				return err
			}
			a[i] = uintptr(v)
		}
		if _, _, errno := unix.Syscall6(uintptr(nr), a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
			return errno
		}
		return nil
	case "fetch":
		return fetch(args[0], args[1:])
	case "raw":
		return rawRequest(args[0])
	case "signal":
		pid, err := strconv.Atoi(args[0])
		if err != nil {
			return err
		}
		return unix.Kill(pid, 0)
	case "open":
		f, err := os.OpenFile(args[0], os.O_RDWR, 0)
		if err != nil {
			return err
		}
		return f.Close()
	case "files":
		return makeFiles(args[0], args[1])
	case "fork":
		return forkUntilRefused(args[0])
	case "identity":
		fmt.Println("euid", os.Geteuid(), "uid", os.Getuid())
		return nil
	case "memory":
		n, err := strconv.Atoi(args[0])
		if err != nil {
			return err
		}
		b := make([]byte, n)
		for i := 0; i < n; i += 4096 {
			b[i] = 1
		}
		return nil
	case "behind-landlock":
		if _, err := sandbox.LandlockAlone(args[0]); err != nil {
			return err
		}
		return unix.Exec(args[1], args[1:], os.Environ())
	case "run":
		// A daemon in miniature, for being killed.
		dir := args[0]
		_, err := sandbox.Run(context.Background(), sandbox.Spec{
			Argv: []string{"/bin/sh", "-c", args[1]}, WriteRoots: []string{dir}, Method: methodNamed(args[2]),
			Limits: sandbox.Limits{Wall: time.Minute},
		})
		return err
	}
	return fmt.Errorf("no attempt called %s", what)
}

// fetch prints what a URL answers, through the proxy of the environment unless
// "direct"; any other word is the server name to ask for. Certificates are not
// the proxy's business and not checked.
func fetch(url string, how []string) error {
	tr := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	switch {
	case len(how) == 0:
	case how[0] == "direct":
		tr.Proxy = nil
	default:
		tr.TLSClientConfig.ServerName = how[0]
	}
	c := &http.Client{Transport: tr, Timeout: 5 * time.Second}
	resp, err := c.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", resp.Status, b)
	}
	fmt.Printf("%s\n", b)
	return nil
}

// rawRequest sends the proxy exactly these bytes and prints its answer.
func rawRequest(request string) error {
	c, err := net.Dial("tcp", "127.0.0.1:47128")
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	if _, err := io.WriteString(c, request); err != nil {
		return err
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	fmt.Println(resp.StatusCode)
	_, err = io.Copy(os.Stdout, io.LimitReader(resp.Body, 200))
	return err
}

func methodNamed(s string) sandbox.Method {
	for _, m := range methods {
		if m.String() == s {
			return m
		}
	}
	return sandbox.Auto
}

// exchange tells whether a datagram comes back.
func exchange(c net.Conn) error {
	if _, err := c.Write([]byte("hello")); err != nil {
		return err
	}
	if err := c.SetReadDeadline(time.Now().Add(500 * time.Millisecond)); err != nil {
		return err
	}
	_, err := c.Read(make([]byte, 16))
	return err
}

func makeFiles(dir, count string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	for i := range n {
		fd, err := unix.Open(filepath.Join(dir, strconv.Itoa(i)), unix.O_CREAT|unix.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("file %d: %w", i, err)
		}
		unix.Close(fd)
	}
	return nil
}

// forkUntilRefused starts sleepers, at most the given number, and says how
// many there came to be.
func forkUntilRefused(limit string) error {
	n, err := strconv.Atoi(limit)
	if err != nil {
		return err
	}
	for i := range n {
		_, err := syscall.ForkExec("/bin/sleep", []string{"sleep", "1000"}, &syscall.ProcAttr{Files: []uintptr{0, 1, 2}})
		if err != nil {
			return fmt.Errorf("process %d: %w", i, err)
		}
	}
	return nil
}

var methods = []sandbox.Method{sandbox.Namespaces, sandbox.Bubblewrap}

// box is a place to run escapes from: a write root with this binary in it,
// beside a directory that must not be touched.
type box struct {
	t      *testing.T
	method sandbox.Method
	root   string // writable
	out    string // outside
	self   string // this binary, inside root
}

// onEach runs f on every path there is, skipping what the machine lacks.
func onEach(t *testing.T, f func(t *testing.T, b *box)) {
	t.Helper()
	for _, m := range methods {
		t.Run(m.String(), func(t *testing.T) {
			b := newBox(t, m)
			if _, err := sandbox.Run(t.Context(), b.spec("true")); errors.Is(err, sandbox.ErrUnavailable) {
				if os.Getenv("PASSEPARTOUT_SANDBOX_REQUIRED") != "" {
					t.Fatalf("this machine is meant to have it: %v", err)
				}
				t.Skipf("cannot be shown here: %v", err)
			}
			f(t, b)
		})
	}
}

func newBox(t *testing.T, m sandbox.Method) *box {
	t.Helper()
	base := realTempDir(t)
	b := &box{t: t, method: m, root: filepath.Join(base, "root"), out: filepath.Join(base, "outside")}
	for _, d := range []string{b.root, b.out} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b.self = filepath.Join(b.root, "attempt")
	copySelf(t, b.self)
	return b
}

// realTempDir is outside /tmp where that is possible, so that what is tested
// is the read-only tree and not the private /tmp over it.
func realTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var", "passepartout-test-")
	if err != nil {
		dir, err = os.MkdirTemp("", "passepartout-test-")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func copySelf(t *testing.T, to string) {
	t.Helper()
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	f, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(f, from); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// on is the same box with failures reported to a subtest.
func (b *box) on(t *testing.T) *box {
	c := *b
	c.t = t
	return &c
}

func (b *box) spec(script string) sandbox.Spec {
	return sandbox.Spec{
		Argv: []string{"/bin/sh", "-c", script}, WriteRoots: []string{b.root}, Method: b.method,
		Limits: sandbox.Limits{Wall: 20 * time.Second},
	}
}

func (b *box) run(s sandbox.Spec) sandbox.Result {
	b.t.Helper()
	res, err := sandbox.Run(b.t.Context(), s)
	if err != nil {
		b.t.Fatalf("%v: %v", s.Argv, err)
	}
	return res
}

func (b *box) sh(script string) sandbox.Result {
	b.t.Helper()
	return b.run(b.spec(script))
}

// attempt runs one of the attempts above inside.
func (b *box) attempt(args ...string) sandbox.Result {
	b.t.Helper()
	s := b.spec("")
	s.Argv = append([]string{b.self, attemptArg}, args...)
	return b.run(s)
}

// refused wants an attempt to have failed, by being told so.
func (b *box) refused(args ...string) {
	b.t.Helper()
	res := b.attempt(args...)
	if res.ExitCode != 1 || !strings.Contains(res.Stdout.String(), "refused:") {
		b.t.Errorf("%v: wanted a refusal, got %v %d\n%s%s", args, res.Cause, res.ExitCode, res.Stdout, res.Stderr)
	}
}

// survivors counts processes that carry the marker in their arguments.
func survivors(t *testing.T, marker string) int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		b, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err == nil && slices.ContainsFunc(bytes.Split(b, []byte{0}), func(a []byte) bool { return string(a) == marker }) {
			n++
		}
	}
	return n
}

// marker is an argument for sleep that no other process has: about a
// thousand seconds, and our own process number behind the point.
func marker(n int) string { return fmt.Sprintf("%d.%d", 1000+n, os.Getpid()) }

func mustWrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// startMiniature runs this binary as a daemon that has a command running.
func (b *box) startMiniature(script string) *exec.Cmd {
	b.t.Helper()
	cmd := exec.Command(b.self, attemptArg, "run", b.root, script, b.method.String())
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	return cmd
}

// eventually waits until f holds, and gives up after a while that is far
// longer than it should take.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	give := time.After(20 * time.Second)
	for !f() {
		select {
		case <-tick.C:
		case <-give:
			t.Fatalf("never happened: %s", what)
		}
	}
}
