package main_test

import (
	"encoding/xml"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestTheServiceFileIsWhatSystemdUnderstands(t *testing.T) {
	h := bareHome(t)
	out, code := h.call("", "service", "install", "--no-start")
	unit := filepath.Join(h.home, ".config", "systemd", "user", "passepartout.service")
	if code != 0 || !strings.Contains(out, unit) {
		t.Fatalf("exit %d: %s", code, out)
	}
	raw, err := os.ReadFile(unit)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Type=notify\n", "NoNewPrivileges=yes\n", "UMask=0077\n", "ExecStart=\"" + binary + "\" daemon\n", "WantedBy=default.target\n"} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("the unit lacks %q:\n%s", want, raw)
		}
	}
	if out, code := h.call("", "service", "status"); code != 0 || !strings.Contains(out, "current") {
		t.Errorf("exit %d: %s", code, out)
	}
	if analyze, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Log("systemd-analyze is not installed: the unit was only read")
	} else if out, err := exec.Command(analyze, "verify", "--man=no", unit).CombinedOutput(); err != nil || strings.Contains(string(out), "passepartout.service:") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	if out, code := h.call("", "service", "uninstall"); code != 0 {
		t.Errorf("exit %d: %s", code, out)
	}
	if _, err := os.Stat(unit); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
	// A file of the user's own stays.
	if err := os.WriteFile(unit, []byte("[Service]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"service", "install", "--no-start"}, {"service", "uninstall"}, {"service", "status"}} {
		if out, code := h.call("", args...); code != 1 {
			t.Errorf("%v: exit %d: %s", args, code, out)
		}
	}
	if raw, err := os.ReadFile(unit); err != nil || string(raw) != "[Service]\n" {
		t.Errorf("the user's file became %q: %v", raw, err)
	}
}

func TestTheLaunchAgentIsWellFormed(t *testing.T) {
	h := bareHome(t)
	out, code := h.call("", "service", "install", "--print", "--kind", "launchd")
	if code != 0 || !strings.Contains(out, "<string>"+binary+"</string><string>daemon</string>") {
		t.Fatalf("exit %d: %s", code, out)
	}
	for d := xml.NewDecoder(strings.NewReader(out)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// TestTheDaemonTellsItsManagerWhenItIsReady listens as a service manager does.
func TestTheDaemonTellsItsManagerWhenItIsReady(t *testing.T) {
	h := bareHome(t, "PROVIDER_CASCADE=reflex")
	if err := os.Mkdir(filepath.Join(h.home, "memex"), 0o700); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "pp")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	sock := filepath.Join(dir, "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: sock, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := exec.Command(binary, "daemon")
	c.Env = append(h.env, "NOTIFY_SOCKET="+sock)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	hear := func() string {
		t.Helper()
		if err := l.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 1024)
		n, err := l.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		return string(buf[:n])
	}
	if got := hear(); !strings.HasPrefix(got, "READY=1\n") {
		t.Errorf("it said %q", got)
	}
	if out, code := h.call("", "--no-start", "list my todos"); code != 0 { // ready means ready
		t.Errorf("exit %d: %s", code, out)
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := hear(); got != "STOPPING=1" {
		t.Errorf("it said %q", got)
	}
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}
