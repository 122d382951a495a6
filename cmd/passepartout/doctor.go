package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"passepartout/internal/gate"
	"passepartout/internal/journal"
	"passepartout/internal/proto"
	"passepartout/internal/sandbox"
	"passepartout/internal/sexp"
)

// A finding is one thing doctor looked at.
type finding struct {
	Name  string   `json:"name"`
	State string   `json:"state"` // "ok", "weak", "bad"
	Note  string   `json:"note"`
	More  []string `json:"more,omitempty"`
}

// States of a finding. Weak works, but less well than it could.
const (
	stateOK   = "ok"
	stateWeak = "weak"
	stateBad  = "bad"
)

func well(name, format string, args ...any) finding {
	return finding{Name: name, State: stateOK, Note: fmt.Sprintf(format, args...)}
}

func weak(name, format string, args ...any) finding {
	return finding{Name: name, State: stateWeak, Note: fmt.Sprintf(format, args...)}
}

func bad(name, format string, args ...any) finding {
	return finding{Name: name, State: stateBad, Note: fmt.Sprintf(format, args...)}
}

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Look whether everything is in order, and say what is not",
		Long: `Look at the settings, the sandbox, the memex, the policy, the journal, the disk, the
clock and the daemon. Nothing is changed and no daemon is started. The exit code is
1 when something is broken; what is merely weaker than it could be is said.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context()) },
	}
}

func (a *app) doctor(ctx context.Context) error {
	found := a.examine(ctx)
	broken := 0
	for _, f := range found {
		if f.State == stateBad {
			broken++
		}
	}
	if a.json {
		if err := a.printJSON(map[string]any{"ok": broken == 0, "findings": found}); err != nil {
			return err
		}
	} else {
		for _, f := range found {
			fmt.Fprintf(a.out, "%-5s %-9s %s\n", f.State, f.Name, printable(f.Note))
			for _, m := range f.More {
				fmt.Fprintf(a.out, "                %s\n", printable(m))
			}
		}
	}
	if broken > 0 {
		return &exitError{exitFailed, fmt.Errorf("%d of %d checks found something broken", broken, len(found))}
	}
	return nil
}

func (a *app) examine(ctx context.Context) []finding {
	cfg, err := a.config()
	if err != nil {
		return []finding{bad("settings", "%v", err), sandboxFinding(ctx)}
	}
	out := []finding{well("settings", "read; the memex is %s, state is in %s", cfg.MemexDir, cfg.StateDir)}
	out = append(out, sandboxFinding(ctx), memexFinding(cfg.MemexDir), a.policyFinding())
	out = append(out, journalFindings(filepath.Join(cfg.StateDir, "journal"), time.Now())...)
	out = append(out, stateFinding(cfg.StateDir), diskFinding("disk", existingAbove(cfg.StateDir)))
	return append(out, a.daemonFinding(ctx))
}

func sandboxFinding(ctx context.Context) finding {
	st := sandbox.Probe(ctx)
	var f finding
	switch st.Level {
	case sandbox.Full:
		f = well("sandbox", "level %s, by %s, Landlock version %d", st.Level, st.Method, st.LandlockABI)
	case sandbox.Isolated:
		f = weak("sandbox", "level %s, by %s: one wall is missing", st.Level, st.Method)
	case sandbox.None:
		f = bad("sandbox", "none can be had, so no command is run")
	}
	for _, p := range st.Parts {
		mark := "+"
		if !p.OK {
			mark = "-"
		}
		f.More = append(f.More, fmt.Sprintf("%s %s: %s", mark, p.Name, p.Note))
	}
	return f
}

func memexFinding(dir string) finding {
	n := 0
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil && p == dir {
			return err
		}
		if err == nil && !d.IsDir() && strings.HasSuffix(p, ".org") {
			n++
		}
		return nil // what cannot be read is the daemon's to report
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return weak("memex", "%s does not exist yet", dir)
	case err != nil:
		return bad("memex", "%v", err)
	case unix.Access(dir, unix.W_OK) != nil:
		return bad("memex", "%s may not be written by this user", dir)
	}
	return well("memex", "%s, %d Org files", dir, n)
}

func (a *app) policyFinding() finding {
	b, err := a.bench()
	if err != nil {
		return bad("policy", "%v", err)
	}
	c, err := gate.Standard(b.Policy, b.Vocabulary)
	if err != nil {
		return bad("policy", "%v", err)
	}
	return well("policy", "loads: %d gates, %d permissions, %d rules, digest %s", len(c.Gates()), len(b.Policy.Permissions), len(b.Policy.Rules), c.Policy())
}

// journalFindings verify the record, and with it the clock: time that ran
// backwards would confuse what expires.
func journalFindings(dir string, now time.Time) []finding {
	clock := well("clock", "%s", now.Format(time.RFC1123))
	if now.Year() < 2025 {
		clock = bad("clock", "%s: that is in the past", now.Format(time.RFC1123))
	}
	sum, err := journal.Verify(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []finding{well("journal", "not begun yet"), clock}
	case err != nil:
		return []finding{bad("journal", "%v", err), clock}
	case sum.Last.After(now.Add(time.Minute)):
		clock = bad("clock", "%s, but the journal's last entry is from %s", now.Format(time.RFC1123), sum.Last.Format(time.RFC1123))
	}
	if sum.Torn != nil {
		return []finding{weak("journal", "whole up to a torn end, which the daemon repairs: %v", sum.Torn), clock}
	}
	return []finding{well("journal", "whole: %d entries, head %s", sum.Entries, sum.Head), clock}
}

func stateFinding(dir string) finding {
	st, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return well("state", "%s is made at the first start", dir)
	case err != nil:
		return bad("state", "%v", err)
	case st.Mode().Perm()&0o077 != 0:
		return bad("state", "%s has mode %v: others can look into it; chmod 700", dir, st.Mode().Perm())
	}
	return well("state", "%s is the owner's alone", dir)
}

// existingAbove is the nearest directory that exists.
func existingAbove(dir string) string {
	for dir != filepath.Dir(dir) && !exists(dir) {
		dir = filepath.Dir(dir)
	}
	return dir
}

func diskFinding(name, dir string) finding {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return bad(name, "%s: %v", dir, err)
	}
	free := st.Bavail * uint64(st.Bsize) >> 20
	switch {
	case free < 100:
		return bad(name, "%d MiB are free at %s: nothing can be recorded soon, so nothing will be done", free, dir)
	case free < 1024:
		return weak(name, "%d MiB are free at %s", free, dir)
	}
	return well(name, "%d GiB are free at %s", free>>10, dir)
}

// daemonFinding asks a daemon that runs how it is.
func (a *app) daemonFinding(ctx context.Context) finding {
	quiet := *a
	quiet.noStart = true
	c, err := quiet.connect(ctx, "cli")
	if err != nil {
		if notRunning(err) {
			return well("daemon", "not running; it starts when it is needed")
		}
		return bad("daemon", "%v", err)
	}
	defer c.close()
	r, err := c.exchange(proto.Message{Kind: proto.Request, Payload: sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("HEALTH-CHECK"))}, nil)
	if err != nil {
		return bad("daemon", "%v", err)
	}
	if problem := r.Payload.Text("POLICY-PROBLEM"); problem != "" {
		return bad("daemon", "runs with its last good policy, because the files do not load: %s", problem)
	}
	pid, _ := r.Payload.Get("PID")
	return well("daemon", "process %v, since %s", pid, r.Payload.Text("STARTED"))
}
