package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"passepartout/internal/sandbox"
)

// A finding is one thing doctor looked at.
type finding struct {
	ID    string
	State string // "ok", "weak", "bad"
	Note  string
	More  []string
	Remedy
}

// A Remedy is how a finding can be mended without a decision of the user's. The
// zero Remedy is none.
type Remedy struct {
	Does string // what it would do, as a sentence
	mend func() error
}

// States of a finding. Weak works, but less well than it could.
const (
	stateOK   = "ok"
	stateWeak = "weak"
	stateBad  = "bad"
)

// severities are the states' names for programs.
var severities = map[string]string{stateOK: "ok", stateWeak: "warning", stateBad: "error"}

func well(id, format string, args ...any) finding {
	return finding{ID: id, State: stateOK, Note: fmt.Sprintf(format, args...)}
}

func weak(id, format string, args ...any) finding {
	return finding{ID: id, State: stateWeak, Note: fmt.Sprintf(format, args...)}
}

func bad(id, format string, args ...any) finding {
	return finding{ID: id, State: stateBad, Note: fmt.Sprintf(format, args...)}
}

// by says how a finding is mended.
func (f finding) by(does string, mend func() error) finding {
	f.Remedy = Remedy{does, mend}
	return f
}

func (a *app) doctorCommand() *cobra.Command {
	var lint, fix, online bool
	c := &cobra.Command{
		Use: "doctor", Short: "Look whether everything is in order, and say what is not",
		Long: `Look at the settings, the vault, the sandbox, the memex, the policy, the journal, the
skills, the models, the disk, the clock, the daemon and the service. Nothing is changed
and no daemon is started. Every finding has an id that stays the same.

The exit code is 1 when something is broken; what is merely weaker than it could be is
said. With --lint it is 0 when all is well, 1 when something is weak, and 2 when
something is broken, and what is well is not listed. With --fix, what can be mended
without a decision of yours is mended, and everything is looked at again.`,
		Example: "  passepartout doctor\n  passepartout doctor --fix\n  passepartout doctor --lint --json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context(), lint, fix, online) },
	}
	c.Flags().BoolVar(&lint, "lint", false, "list only what is not well; exit 0, 1 or 2 by the worst")
	c.Flags().BoolVar(&fix, "fix", false, "mend what needs no decision")
	c.Flags().BoolVar(&online, "online", false, "also ask the providers that have a key")
	return c
}

func (a *app) doctor(ctx context.Context, lint, fix, online bool) error {
	found := a.examine(ctx, online)
	var mended []string
	if fix {
		for _, f := range found {
			if f.mend == nil || f.State == stateOK {
				continue
			}
			if err := f.mend(); err != nil {
				fmt.Fprintf(a.errw, "%s was not mended: %v\n", f.ID, err)
				continue
			}
			mended = append(mended, f.ID)
			fmt.Fprintf(a.errw, "mended %s: %s\n", f.ID, printable(f.Does))
		}
		if len(mended) > 0 {
			a.cfg = nil // read anew
			found = a.examine(ctx, online)
		}
	}
	count := map[string]int{}
	for _, f := range found {
		count[f.State]++
	}
	if err := a.tellFindings(found, count, mended, lint); err != nil {
		return err
	}
	return verdict(count, len(found), lint)
}

func verdict(count map[string]int, all int, lint bool) error {
	switch broken, soft := count[stateBad], count[stateWeak]; {
	case lint && broken > 0:
		return &exitError{code: exitUsage}
	case lint && soft > 0:
		return &exitError{code: exitFailed}
	case broken > 0:
		return &exitError{exitFailed, fmt.Errorf("%d of %d checks found something broken", broken, all)}
	}
	return nil
}

func (a *app) tellFindings(found []finding, count map[string]int, mended []string, lint bool) error {
	rows := []map[string]any{}
	fixable := 0
	for _, f := range found {
		if lint && f.State == stateOK {
			continue
		}
		row := map[string]any{"id": f.ID, "severity": severities[f.State], "note": f.Note}
		if len(f.More) > 0 {
			row["more"] = f.More
		}
		if f.mend != nil && f.State != stateOK {
			row["fix"] = f.Does
			fixable++
		}
		rows = append(rows, row)
		if a.json {
			continue
		}
		fmt.Fprintf(a.out, "%-5s %-18s %s\n", f.State, f.ID, printable(f.Note))
		for _, m := range f.More {
			fmt.Fprintf(a.out, "%-25s%s\n", "", printable(m))
		}
		if f.mend != nil && f.State != stateOK {
			fmt.Fprintf(a.out, "%-25s--fix: %s\n", "", printable(f.Does))
		}
	}
	if a.json {
		return a.printJSON(map[string]any{
			"ok": count[stateBad] == 0, "errors": count[stateBad], "warnings": count[stateWeak], "mended": append([]string{}, mended...), "findings": rows,
		})
	}
	if fixable > 0 {
		fmt.Fprintf(a.errw, "%d of these can be mended: passepartout doctor --fix\n", fixable)
	}
	return nil
}

// examine looks at everything. What the settings say comes after the settings
// themselves, which may be what is broken.
func (a *app) examine(ctx context.Context, online bool) []finding {
	out := a.settingsFindings()
	cfg, err := a.config()
	if err != nil {
		return append(out, sandboxFinding(ctx), clockFinding(time.Now()))
	}
	out = append(out, a.sandboxFindings(ctx, cfg)...)
	out = append(out, a.placeFindings(cfg)...)
	out = append(out, a.vaultFindings(cfg)...)
	out = append(out, memexFindings(cfg)...)
	out = append(out, a.policyFindings(cfg)...)
	out = append(out, journalFindings(filepath.Join(cfg.StateDir, "journal"), time.Now())...)
	out = append(out, a.skillFindings(cfg)...)
	out = append(out, a.modelFindings(ctx, cfg, online)...)
	out = append(out, a.daemonFindings(ctx, cfg)...)
	out = append(out, gatewayFindings(ctx, cfg)...)
	return append(out, a.serviceFinding(), a.localeFinding())
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
