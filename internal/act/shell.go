package act

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"time"

	"passepartout/internal/gate"
	"passepartout/internal/proto"
	"passepartout/internal/sandbox"
)

// shellTimeout is how long a command may run.
const shellTimeout = 300 * time.Second

// Shell is the actuator behind the target "shell": one command line, in the
// sandbox or not at all.
type Shell struct {
	Dir        string   // where commands start
	WriteRoots []string // what they may change
	Hidden     []string // what they must not see
	Env        map[string]string
}

var _ Actuator = Shell{}

// Target implements [Actuator].
func (Shell) Target() string { return "shell" }

// Verbs implements [Actuator].
func (Shell) Verbs() []proto.Verb {
	return []proto.Verb{{
		Target: "shell", Name: "run", Tool: "shell", Effect: proto.Execute,
		Doc:    "Run a Bash command line in a sandbox: no network, writes only under the permitted roots.",
		Params: []proto.Param{{Name: "CMD", Type: proto.Text, Means: proto.Command, Required: true, Doc: "the command line"}},
	}}
}

// Act implements [Actuator]. Where no sandbox can be had nothing runs.
func (s Shell) Act(ctx context.Context, p gate.Permit) (Outcome, error) {
	files := p.Files()
	a, err := p.Redeem()
	if err != nil {
		return Outcome{}, err
	}
	if err := unchanged(files); err != nil {
		return Failed("not run: %v", err), nil
	}
	r, err := sandbox.Run(ctx, sandbox.Spec{
		Argv:       []string{"bash", "--norc", "--noprofile", "-c", a.Args().Text("CMD")},
		Dir:        s.Dir,
		Env:        s.Env,
		WriteRoots: existing(s.WriteRoots),
		Hidden:     s.Hidden,
		Limits:     sandbox.Limits{Wall: shellTimeout, Output: MaxOutput / 2},
	})
	if err != nil {
		return Failed("not run: %v", err), nil
	}
	return shellOutcome(r), nil
}

// unchanged sees that the scripts the gates read are still the scripts that would
// run.
func unchanged(files []gate.File) error {
	for _, f := range files {
		data, err := os.ReadFile(f.Path)
		if err != nil {
			return fmt.Errorf("%s was read by the gates and cannot be read now: %w", f.Path, err)
		}
		sum := sha256.Sum256(data)
		if "sha256:"+hex.EncodeToString(sum[:]) != f.Digest {
			return fmt.Errorf("%s changed after the gates read it", f.Path)
		}
	}
	return nil
}

// existing drops roots that are not there: the sandbox refuses to guess.
func existing(roots []string) []string {
	var out []string
	for _, r := range roots {
		if _, err := os.Stat(r); err == nil {
			out = append(out, r)
		}
	}
	return out
}

func shellOutcome(r sandbox.Result) Outcome {
	var b strings.Builder
	b.WriteString(r.Stdout.String())
	if errText := strings.TrimRight(r.Stderr.String(), "\n"); errText != "" {
		if b.Len() > 0 && !bytes.HasSuffix([]byte(b.String()), []byte("\n")) {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "stderr: %s\n", errText)
	}
	switch r.Cause {
	case sandbox.Exited:
		if r.ExitCode != 0 {
			fmt.Fprintf(&b, "exit code %d\n", r.ExitCode)
		}
	case sandbox.Signalled:
		fmt.Fprintf(&b, "killed by %s\n", r.Signal)
	case sandbox.TimedOut:
		fmt.Fprintf(&b, "stopped after %v\n", shellTimeout)
	case sandbox.Cancelled:
		b.WriteString("interrupted\n")
	case sandbox.CauseUnknown:
		b.WriteString("ended in an unknown way\n")
	}
	text := strings.TrimRight(strings.ToValidUTF8(b.String(), "\uFFFD"), "\n")
	if text == "" {
		text = "(no output)"
	}
	// What a program prints is data from outside, whoever started it.
	return Outcome{OK: r.OK(), Text: text, Truncated: r.Truncated(), Taint: proto.Taint{Untrusted: true}}
}
