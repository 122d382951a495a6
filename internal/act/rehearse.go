package act

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"passepartout/internal/gate"
	"passepartout/internal/sandbox"
	"passepartout/internal/sexp"
)

// A Preview is what a command would change, found by running it where nothing it
// does lasts. It says no more than was seen: a command may do something else the
// next time.
type Preview struct {
	Tried   bool
	Text    string   // in sentences: how it ended, or why it was not tried
	Changed []string // "deleted notes/a.org", in order of path
	Diff    string   // of the text files among them, capped
}

// Plist is the preview as it is kept and shown.
func (p Preview) Plist() sexp.Plist {
	return sexp.P(
		sexp.Keyword("TRIED"), p.Tried, sexp.Keyword("TEXT"), p.Text,
		sexp.Keyword("CHANGED"), p.Changed, sexp.Keyword("DIFF"), p.Diff)
}

// A rehearser is an actuator that can show what it would do.
type rehearser interface {
	rehearse(ctx context.Context, r gate.Rehearsal) Preview
}

// Rehearse tries an action that a person is about to be asked about. ok is false
// for actions of which there is nothing to try.
func (t *Table) Rehearse(ctx context.Context, r gate.Ruling) (p Preview, ok bool) {
	a, can := t.actuators[r.Action().Target()].(rehearser)
	if !can {
		return Preview{}, false
	}
	right, err := r.Rehearsal()
	if err != nil {
		return untried(err), true
	}
	return a.rehearse(ctx, right), true
}

func untried(err error) Preview {
	return Preview{Text: "Not tried beforehand: " + strings.TrimPrefix(err.Error(), gate.ErrNotRehearsed.Error()+": ") + "."}
}

// Bounds of a trial.
const (
	trialOutput   = 4 << 10  // bytes of each stream shown
	trialHeld     = 64 << 20 // bytes of changes held, and of any one file
	trialChanges  = 1000     // paths listed
	trialDiff     = 64 << 10 // bytes of diff shown
	trialFile     = 1 << 20  // bytes of a file that is compared line by line
	trialContexts = 3        // lines around a change
)

// errNoTrials is why nothing is tried where that was switched off.
var errNoTrials = errors.New("commands are not tried beforehand (PASSEPARTOUT_TRY_SECONDS is 0)")

// rehearse implements [rehearser]: the command on an overlay of every root, without
// a network.
func (s Shell) rehearse(ctx context.Context, r gate.Rehearsal) Preview {
	if s.Trials == "" || s.Trial <= 0 {
		return untried(errNoTrials)
	}
	if !r.Valid() {
		return untried(gate.ErrNotRehearsed)
	}
	argv, err := command(r.Action().Args())
	if err == nil {
		err = unchanged(r.Files())
	}
	if err != nil {
		return untried(err)
	}
	if err := os.MkdirAll(s.Trials, 0o700); err != nil {
		return untried(err)
	}
	dir, err := os.MkdirTemp(s.Trials, "trial")
	if err != nil {
		return untried(err)
	}
	defer discard(dir)
	spec := s.spec(argv, r.Action().Args())
	spec.WriteRoots = outermost(s.WriteRoots)
	spec.Limits = sandbox.Limits{Wall: s.Trial, Output: trialOutput, FileSize: trialHeld, Scratch: trialHeld}
	res, changes, err := sandbox.DryRun(ctx, spec, dir)
	if err != nil {
		return untried(err)
	}
	return s.preview(res, changes)
}

// preview puts what a trial gave into words.
func (s Shell) preview(res sandbox.Result, changes []sandbox.Change) Preview {
	p := Preview{Tried: true}
	counts := map[sandbox.ChangeKind]int{}
	var diff strings.Builder
	for i, c := range changes {
		counts[c.Kind]++
		if i < trialChanges {
			p.Changed = append(p.Changed, fmt.Sprintf("%s %s", c.Kind, s.short(c.Path)))
		}
		if diff.Len() < trialDiff {
			diff.WriteString(s.difference(c))
		}
	}
	p.Diff = diff.String()
	if len(p.Diff) > trialDiff {
		p.Diff = strings.ToValidUTF8(p.Diff[:trialDiff], "") + "\n[the rest of the differences is not shown]\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Tried without network where nothing lasts: it %s after %v", ending(res), res.Duration.Round(time.Millisecond))
	if len(changes) == 0 {
		b.WriteString(" and changed nothing.")
	} else {
		fmt.Fprintf(&b, ", with %d created, %d modified, %d deleted.", counts[sandbox.Created], counts[sandbox.Modified], counts[sandbox.Deleted])
	}
	if left := len(changes) - len(p.Changed); left > 0 {
		fmt.Fprintf(&b, " %d more are not listed.", left)
	}
	p.Text = b.String()
	if said := strings.TrimSpace(res.Stdout.String() + res.Stderr.String()); said != "" {
		p.Diff = "It printed:\n" + indent(strings.ToValidUTF8(said, "\uFFFD")) + p.Diff
	}
	return p
}

// ending says how a command ended.
func ending(r sandbox.Result) string {
	switch r.Cause {
	case sandbox.Exited:
		return fmt.Sprintf("ended with exit code %d", r.ExitCode)
	case sandbox.Signalled:
		return "was killed by " + r.Signal
	case sandbox.TimedOut:
		return "was stopped for taking too long"
	case sandbox.Cancelled:
		return "was interrupted"
	case sandbox.CauseUnknown:
	}
	return "ended in an unknown way"
}

func indent(s string) string { return "    " + strings.ReplaceAll(s, "\n", "\n    ") + "\n" }

// short is a path as seen from where commands start.
func (s Shell) short(path string) string {
	if rel, err := filepath.Rel(s.Dir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// difference shows what one change does to a file's lines.
func (s Shell) difference(c sandbox.Change) string {
	old, okOld := lines(c.Path, c.Kind == sandbox.Created)
	now, okNow := lines(c.Upper, c.Upper == "")
	name := s.short(c.Path)
	switch {
	case c.Target != "":
		return fmt.Sprintf("%s -> %s\n", name, c.Target)
	case c.Kind != sandbox.Deleted && !c.Mode.IsRegular():
		return ""
	case !okOld || !okNow:
		return fmt.Sprintf("%s: too large, or not text\n", name)
	case old == now && c.Kind == sandbox.Modified:
		return fmt.Sprintf("%s: mode %v\n", name, c.Mode.Perm())
	}
	text, err := udiff.ToUnified("a/"+name, "b/"+name, old, udiff.Strings(old, now), trialContexts)
	if err != nil {
		return fmt.Sprintf("%s: %v\n", name, err)
	}
	return text
}

// lines is a text file's content. What is not there is empty; what is no text, or
// too much of it, is not ok.
func lines(path string, absent bool) (text string, ok bool) {
	if absent {
		return "", true
	}
	at, err := locate(path, false)
	if err != nil {
		return "", false
	}
	defer at.close()
	f, err := at.open()
	if err != nil {
		return "", false
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || st.IsDir() {
		return "", err == nil
	}
	if !st.Mode().IsRegular() || st.Size() > trialFile {
		return "", false
	}
	raw, err := io.ReadAll(io.LimitReader(f, trialFile))
	if err != nil || !utf8.Valid(raw) || bytes.IndexByte(raw, 0) >= 0 {
		return "", false
	}
	return string(raw), true
}

// discard removes what a trial left. The command may have taken its own
// directories' rights away, which must not keep them here.
func discard(dir string) {
	_ = filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			_ = os.Chmod(p, 0o700)
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}
