package act

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"passepartout/internal/gate"
	"passepartout/internal/label"
	"passepartout/internal/proto"
	"passepartout/internal/sandbox"
	"passepartout/internal/sexp"
	"passepartout/internal/undo"
)

// shellTimeout is how long a command may run.
const shellTimeout = 300 * time.Second

// notRun begins the outcome of a command that was not started.
const notRun = "not run: "

// Shell is the actuator behind the target "shell": one command, in the sandbox or
// not at all.
type Shell struct {
	Dir        string          // where commands start
	WriteRoots []string        // what they may change
	Hidden     func() []string // what they must not see, looked for before each; nil: nothing
	// Secluded says where private text stands, before each command: what one that
	// opens it prints is private. Until Done is called this program opens it only where
	// it has to: not every kernel can tell who did. Nil: nowhere.
	Secluded func() Seclusion
	Env      map[string]string
	History  History
	Labels   *label.Store     // of what they change; nil: none are kept
	Private  []netip.Prefix   // of this network that permitted hosts may lie in
	Resolver sandbox.Resolver // of permitted names; nil is the system's
	Trials   string           // a directory of the agent's own for what commands change when tried
	Trial    time.Duration    // how long a command may be tried before a person is asked; 0: never
}

var _ Actuator = Shell{}

// Target implements [Actuator].
func (Shell) Target() string { return "shell" }

// Verbs implements [Actuator].
func (Shell) Verbs() []proto.Verb {
	return []proto.Verb{{
		Target: "shell", Name: "run", Tool: "shell", Effect: proto.Execute,
		Doc: "Run a program in a sandbox: writes only under the permitted roots, network only to permitted hosts.",
		Params: []proto.Param{
			{Name: "ARGV", Type: proto.Texts, Means: proto.Command, Doc: "the program and its arguments, one string each: the form to prefer"},
			{Name: "CMD", Type: proto.Text, Means: proto.Command, Doc: "a Bash command line, where one is needed"},
			{Name: "PTY", Type: proto.Flag, Doc: "give it a terminal, for programs that need one"},
		},
	}}
}

// Act implements [Actuator]. Where no sandbox can be had nothing runs.
func (s Shell) Act(ctx context.Context, p gate.Permit) (Outcome, error) {
	files, hosts, reads := p.Files(), p.Hosts(), p.OnlyReads()
	a, err := p.Redeem()
	if err != nil {
		return Outcome{}, err
	}
	argv, err := command(a.Args())
	if err != nil {
		return Failed(notRun+"%v", err), nil
	}
	spec := s.spec(argv, a.Args())
	if roots := outermost(s.WriteRoots); reads {
		spec.ReadRoots = sandbox.Everything(roots...)
	} else {
		spec.WriteRoots = roots
	}
	if len(hosts) > 0 {
		spec.Network = &sandbox.Network{Hosts: hosts, Private: s.Private, Resolver: s.Resolver}
	}
	if s.Secluded != nil {
		private := s.Secluded()
		defer private.Done()
		spec.Watched = private.watchedBy(argv)
	}
	if out := turnOf(ctx).Output; out != nil {
		spec.Sink = func(c sandbox.Chunk) { out(c.Data) }
	}
	return s.run(ctx, spec, files, argv[len(argv)-1]), nil
}

// spec is the sandbox of a command that may write nowhere yet.
func (s Shell) spec(argv []string, args sexp.Plist) sandbox.Spec {
	pty, _ := args.Get("PTY")
	spec := sandbox.Spec{
		Argv: argv, Dir: s.Dir, Env: s.Env, PTY: !sexp.IsNil(pty),
		Limits: sandbox.Limits{Wall: shellTimeout, Output: MaxOutput / 2},
	}
	if s.Hidden != nil {
		spec.Hidden = s.Hidden()
	}
	return spec
}

// run starts the command with the files it may change remembered.
func (s Shell) run(ctx context.Context, spec sandbox.Spec, files []gate.File, what string) Outcome {
	end := func() {}
	defer func() { end() }() // when what it changed is marked
	var scopes []undo.Scope
	for _, r := range spec.WriteRoots {
		scopes = append(scopes, undo.Scope{Root: r})
	}
	var r sandbox.Result
	spread := false // another command may be writing what this one reads
	spec.Watching = func(opened func() bool) {
		spread = s.Labels.Spreading()
		if len(spec.WriteRoots) > 0 {
			end = s.Labels.Begin(func() bool { return turnOf(ctx).Taint.Private || opened() })
		}
	}
	k, err := s.History.keep(ctx, "shell "+what, scopes, false, func() error {
		err := unchanged(files)
		if err == nil {
			r, err = sandbox.Run(ctx, spec)
		}
		return err
	})
	if err != nil {
		return Failed(notRun+"%v", err)
	}
	o := shellOutcome(r)
	o.Taint.Private = o.Taint.Private || spread
	o.Text += k.note
	o.Changed = k.paths
	// What a command prints is from outside, and what it writes need not be: without
	// a network it had only this machine to read from.
	taint := turnOf(ctx).Taint.Join(proto.Taint{Private: o.Taint.Private, Untrusted: len(r.Requests) > 0})
	if err := s.Labels.Mark(k.paths, taint); err != nil {
		o.Text += fmt.Sprintf("\n(%v.)", err)
	}
	return o
}

// bash runs a command line, and nothing of a person's settings.
var bash = []string{"bash", "--norc", "--noprofile", "-c"}

// command is what is to be started: exactly one of the two forms.
func command(args sexp.Plist) ([]string, error) {
	v, _ := args.Get("ARGV")
	l, _ := v.(sexp.List)
	var argv []string
	for _, x := range l.Items() {
		if s, ok := x.(sexp.String); ok {
			argv = append(argv, string(s))
		}
	}
	line := args.Text("CMD")
	switch {
	case len(argv) > 0 && line == "" && argv[0] != "":
		return argv, nil
	case len(argv) == 0 && strings.TrimSpace(line) != "":
		return append(slices.Clone(bash), line), nil
	}
	return nil, errors.New("give the program and its arguments in :ARGV, or a command line in :CMD")
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

// outermost are the roots that exist, by their real names and without those that
// lie in another: the sandbox refuses to guess, and a file is remembered once.
func outermost(roots []string) []string {
	var out []string
	for _, r := range roots {
		if real, err := filepath.EvalSymlinks(r); err == nil {
			out = append(out, real)
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return slices.DeleteFunc(slices.Clone(out), func(r string) bool {
		return slices.ContainsFunc(out, func(o string) bool { return o != r && strings.HasPrefix(r, strings.TrimSuffix(o, "/")+"/") })
	})
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
	text := strings.TrimRight(seen(strings.ToValidUTF8(b.String(), "\uFFFD")), "\n")
	if text == "" {
		text = "(no output)"
	}
	// What a program prints is data from outside, whoever started it, and may be
	// whatever it has read.
	taint := proto.Taint{Untrusted: true, Private: len(r.Opened) > 0}
	return Outcome{OK: r.OK(), Text: text, Truncated: r.Truncated(), Taint: taint, Detail: detail(r)}
}

// detail is how a command ended and behind which walls, for the record.
func detail(r sandbox.Result) sexp.Plist {
	p := sexp.P(
		sexp.Keyword("CAUSE"), r.Cause.String(), sexp.Keyword("EXIT-CODE"), r.ExitCode,
		sexp.Keyword("MILLISECONDS"), r.Duration.Milliseconds(),
		sexp.Keyword("SANDBOX"), r.Level.String(), sexp.Keyword("METHOD"), r.Method.String())
	if r.Signal != "" {
		p = p.With("SIGNAL", sexp.String(r.Signal))
	}
	if n := len(r.Opened); n > 0 {
		p = p.With("PRIVATE-FILES", sexp.NewInt(int64(n)))
	}
	const most = 20
	var asked []string
	for _, q := range r.Requests[:min(len(r.Requests), most)] {
		answer := "reached at " + q.Addr.String()
		if q.Refused != "" {
			answer = q.Refused
		}
		asked = append(asked, fmt.Sprintf("%s:%d %s", q.Host, q.Port, answer))
	}
	if len(asked) > 0 {
		p = p.With("REQUESTS", sexp.Strings(asked))
	}
	return p
}
