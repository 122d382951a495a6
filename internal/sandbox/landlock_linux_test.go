package sandbox_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"passepartout/internal/sandbox"
)

// Landlock is the second wall: should the mount tree have a hole, a command still
// writes only where it may, and reaches no socket or process outside. Here it stands
// alone, without a namespace around it.
func TestEscapeBehindLandlockAlone(t *testing.T) {
	abi := sandbox.Probe(t.Context()).LandlockABI
	if abi == 0 {
		t.Skip("no Landlock in this kernel")
	}
	base := publicDir(t)
	root, out := filepath.Join(base, "root"), filepath.Join(base, "out")
	mustWrite(t, filepath.Join(root, "mine"), "mine")
	mustWrite(t, filepath.Join(out, "file"), "theirs")
	mustWrite(t, filepath.Join(out, "dir", "below"), "theirs")
	self := filepath.Join(realTempDir(t), "attempt")
	copySelf(t, self)
	before := fingerprint(t, out)
	l, err := net.Listen("unix", "@passepartout-"+marker(11))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	behind := func(argv ...string) bool {
		return exec.CommandContext(t.Context(), self, append([]string{attemptArg, "behind-landlock", root}, argv...)...).Run() == nil
	}
	sh := func(script string) bool { return behind("/bin/sh", "-c", "cd "+base+" && "+script) }
	for _, script := range []string{"echo x > root/new", "echo x >> root/mine", "mkdir root/d", "mv root/mine root/d/", "cat out/file", "echo x > /dev/null"} {
		if !sh(script) {
			t.Errorf("refused: %s", script)
		}
	}
	for _, script := range []string{
		"echo x > out/file", "echo x >> out/file", "echo x > out/new", "mkdir out/new", "rmdir out/dir", "rm out/file", "mv out/file root/", "mv root/new out/",
		"ln out/file root/hard", "ln root/new out/hard", "ln -s x out/link", "mkfifo out/pipe", "truncate -s 0 out/file", "mknod root/node c 1 3", ": <> out/file",
	} {
		if sh(script) {
			t.Errorf("allowed: %s", script)
		}
	}
	if after := fingerprint(t, out); after != before {
		t.Errorf("outside the root became\n%s\nwas\n%s", after, before)
	}
	if abi < 6 {
		t.Logf("Landlock %d knows no scopes: sockets and signals are left to the namespaces", abi)
		return
	}
	if behind(self, attemptArg, "dial", "unix", l.Addr().String()) {
		t.Error("an abstract socket outside was reached")
	}
	if behind(self, attemptArg, "signal", strconv.Itoa(os.Getpid())) {
		t.Error("a process outside was signalled")
	}
}

// publicDir is a directory of the test's own that does not lie where every run may
// write, as /tmp does.
func publicDir(t *testing.T) string {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{here, "/var", os.Getenv("HOME")} {
		if strings.HasPrefix(d, "/tmp/") || strings.HasPrefix(d, "/var/tmp/") || d == "" {
			continue
		}
		if base, err := os.MkdirTemp(d, "passepartout-landlock-"); err == nil {
			t.Cleanup(func() { os.RemoveAll(base) })
			return base
		}
	}
	t.Skip("no directory to write to but temporary ones")
	return ""
}
