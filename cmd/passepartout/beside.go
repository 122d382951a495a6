package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"passepartout/internal/config"
)

// How a program that runs beside the daemon is started again, and ended.
const (
	besideFirst = time.Second // after it ended; doubled each time
	besideMost  = time.Minute // and no longer than this
	besideGrace = 5 * time.Second
)

// besideKnows are the variables such a program is given. The daemon's own
// environment may hold keys that are not its business.
var besideKnows = []string{"HOME", "PATH", "LANG", "LC_ALL", "TMPDIR", "JAVA_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"}

// keepBeside runs a program a channel needs, and starts it again whenever it ends,
// until the context does. The program is one the owner named in the settings; no
// word of a model or of a message is among its arguments.
func (a *app) keepBeside(cfg *config.Config, told func(string, error)) func(context.Context, string, []string) {
	return func(ctx context.Context, name string, argv []string) {
		logs := filepath.Join(cfg.StateDir, name+".log")
		for delay := besideFirst; ctx.Err() == nil; delay = min(2*delay, besideMost) {
			began := time.Now()
			err := a.runBeside(ctx, argv, logs)
			if ctx.Err() != nil {
				return
			}
			if time.Since(began) > besideMost {
				delay = besideFirst
			}
			told(fmt.Sprintf("%s ended and is started again in %v; what it said is in %s", filepath.Base(argv[0]), delay, logs), err)
			t := time.NewTimer(delay)
			select {
			case <-ctx.Done():
			case <-t.C:
			}
			t.Stop()
		}
	}
}

// runBeside runs a program until it or the context ends.
func (a *app) runBeside(ctx context.Context, argv []string, logs string) error {
	runtime.LockOSThread() // the kernel ends the program with the thread that started it
	defer runtime.UnlockOSThread()
	out, err := os.OpenFile(logs, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	p, err := os.StartProcess(argv[0], argv, &os.ProcAttr{
		Dir: "/", Env: a.environOf(besideKnows), Files: []*os.File{null, null, out}, Sys: besideUs(),
	})
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		st, err := p.Wait()
		if err == nil {
			err = errors.New(st.String())
		}
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	_ = syscall.Kill(-p.Pid, syscall.SIGTERM) // it may have ended by now
	t := time.NewTimer(besideGrace)
	defer t.Stop()
	select {
	case <-ended:
	case <-t.C:
	}
	_ = syscall.Kill(-p.Pid, syscall.SIGKILL) // and whatever it has left behind
	return ctx.Err()
}

// environOf is the part of the environment that has these names.
func (a *app) environOf(names []string) (out []string) {
	for _, kv := range a.environ {
		if k, _, ok := strings.Cut(kv, "="); ok && slices.Contains(names, k) {
			out = append(out, kv)
		}
	}
	return out
}
