package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

func (a *app) daemonStopCommand() *cobra.Command {
	return &cobra.Command{
		Use: "stop", Short: "End the daemon, after what it is doing", Args: cobra.NoArgs,
		Long: "End the daemon. What waits for a person or a time is kept; the next command starts\n" +
			"it again, with the settings as they are then.",
		Example: "  passepartout config set MEMEX_ASSISTANT Fogg && passepartout daemon stop",
		RunE:    func(c *cobra.Command, _ []string) error { return a.daemonStop(c.Context()) },
	}
}

// daemonStop asks the daemon to end, and waits until it has.
func (a *app) daemonStop(ctx context.Context) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	pid, held, err := daemonPID(cfg.StateDir)
	if err != nil {
		return err
	}
	if !held {
		fmt.Fprintln(a.errw, "No daemon is running.")
		return nil
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return fmt.Errorf("process %d: %w", pid, err)
	}
	ctx, cancel := context.WithTimeout(ctx, stopPatience)
	defer cancel()
	look := time.NewTicker(stopLook)
	defer look.Stop()
	for {
		now, held, err := daemonPID(cfg.StateDir)
		if err != nil || !held || now != pid { // another may have been started since
			return err
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return fmt.Errorf("process %d was told to end and has not yet: %w", pid, ctx.Err())
		}
	}
}

const (
	stopPatience = time.Minute // a daemon lets a running command finish or be cut off
	stopLook     = 20 * time.Millisecond
)

// daemonPID is the process that holds the lock of a state directory. The number in
// the file alone would not do: a crash leaves it, and another process may have it now.
func daemonPID(state string) (pid int, held bool, err error) {
	path := filepath.Join(state, "daemon.lock")
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	defer f.Close()
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if err == nil {
		return 0, false, nil // closing gives it up again
	}
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return 0, false, err
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return 0, false, err
	}
	if pid, err = strconv.Atoi(strings.TrimSpace(string(raw))); err != nil || pid < 2 {
		return 0, false, fmt.Errorf("%s: want the daemon's process, found %q", path, raw)
	}
	return pid, true, nil
}
