package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"passepartout/internal/channel/channeltest"
)

// A beside is a program in the place of signal-cli that writes down how it was
// started and stays.
type beside struct {
	*testing.T
	log string
}

func newBeside(t *testing.T) (b beside, program string) {
	t.Helper()
	dir := t.TempDir()
	b = beside{t, filepath.Join(dir, "log")}
	program = filepath.Join(dir, "signal-cli")
	script := "#!/bin/sh\necho \"$$ $TELEGRAM_BOT_TOKEN $*\" >>" + b.log + "\nexec sleep 600\n"
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return b, program
}

// started waits for the n-th start and returns its process and what it was given.
// The limit only ends a test that would wait for ever.
func (b beside) started(n int) (pid int, given string) {
	b.Helper()
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		raw, _ := os.ReadFile(b.log) // none yet: not started
		lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
		if len(lines) < n || !strings.HasSuffix(string(raw), "\n") {
			continue
		}
		first, rest, _ := strings.Cut(lines[n-1], " ")
		pid, err := strconv.Atoi(first)
		if err != nil {
			b.Fatalf("the log says %q", lines)
		}
		return pid, strings.TrimSpace(rest)
	}
	b.Fatalf("it was not started %d times", n)
	return 0, ""
}

func (b beside) gone(pid int) {
	b.Helper()
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err != nil || strings.Contains(string(raw), ") Z ") {
			return
		}
	}
	b.Fatalf("process %d is still there", pid)
}

func TestSignalCLIRunsBesideTheDaemonAndAgainWhenItEnds(t *testing.T) {
	if testing.Short() {
		t.Skip("starts daemons: run by make test")
	}
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("this system does not show its processes in /proc")
	}
	t.Parallel()
	env, _ := editorHome(t)
	home := strings.TrimPrefix(env[0], "HOME=")
	run, err := os.MkdirTemp("", "pp") // short: socket paths are limited
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(run) })
	signal, err := channeltest.NewSignal(run)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(signal.Stop)
	b, program := newBeside(t)
	env = append(env, "SIGNAL_CLI_PROGRAM="+program, "TELEGRAM_BOT_TOKEN=", "OPENAI_API_KEY=sk-canary-22222222")
	call := func(args ...string) string {
		t.Helper()
		c := exec.Command(binary, args...)
		c.Env = env
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("passepartout %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	call("gateway", "list") // a daemon runs
	if out := call("gateway", "link", "signal", channeltest.SignalAccount, signal.Address); !strings.Contains(out, "listens there now") {
		t.Errorf("linking says %q", out)
	}
	pid, given := b.started(1)
	if want := "-a " + channeltest.SignalAccount + " daemon --socket " + signal.Address + " --receive-mode=manual --no-receive-stdout"; given != want {
		t.Errorf("it is started with %q, want %q", given, want)
	}
	if environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ"); err != nil || strings.Contains(string(environ), "canary") {
		t.Errorf("its environment holds a key, or %v", err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil { // it dies
		t.Fatal(err)
	}
	pid, _ = b.started(2)
	if out := call("gateway", "list"); !strings.Contains(out, "signal: connected") {
		t.Errorf("it is %s", out)
	}
	call("gateway", "unlink", "signal")
	b.gone(pid)
	call("gateway", "link", "signal", channeltest.SignalAccount, signal.Address)
	pid, _ = b.started(3)
	lock := filepath.Join(home, ".local", "state", "passepartout", "daemon.lock")
	stopDaemon(lock)
	b.gone(pid)
	call("gateway", "list") // and it is there again with the next daemon
	pid, _ = b.started(4)
	killDaemon(lock) // a daemon that is killed leaves nothing behind
	b.gone(pid)
}

func TestNothingInTheSettingsBecomesAnOptionOfSignalCLI(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a program: run by make test")
	}
	t.Parallel()
	env, _ := editorHome(t)
	_, program := newBeside(t)
	for _, bad := range [][]string{{"--config=/etc"}, {"+15550001", "--help"}, {"+15550001", "192.0.2.1:7583"}, {"+15550001 --verbose"}} {
		c := exec.Command(binary, append([]string{"gateway", "link", "signal", "--"}, bad...)...)
		c.Env = append(env, "SIGNAL_CLI_PROGRAM="+program)
		if out, err := c.CombinedOutput(); err == nil {
			t.Errorf("%q is accepted: %s", bad, out)
		}
	}
}
