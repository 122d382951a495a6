// Package sandbox starts processes, and is the only package that does.
//
// [Run] carries out one [Spec] inside Linux namespaces (user, mount, PID,
// network, IPC, UTS), with Landlock and a seccomp filter as further walls, and
// returns a [Result]. [Probe] says what this machine can offer. [DryRun] runs
// a Spec on an overlay and returns the [Change]s it would have made. [Init]
// must be the first call of main, because the set-up inside the namespaces is
// done by this same binary, started again.
//
// How a run goes: the parent checks the Spec and turns it into a plan (every
// path absolute, real and free of symbolic links), starts the stage in fresh
// namespaces (or inside bubblewrap), hands it the plan in a memory file and
// reads what it reports over a control socket. The stage builds the mount
// tree, drops every capability, locks the filters, starts the command and
// stays behind as its reaper. When the command ends, the stage ends; with it
// the kernel ends everything else that ran in its PID namespace.
//
// The rule a newcomer will break: there is no fallback. A wall that cannot be
// raised is an error wrapping [ErrUnavailable], never a weaker run. Whoever
// wants to run a command on a machine without namespaces has to ask a person,
// not this package.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"
)

// ErrUnavailable means that a protection the Spec needs cannot be had here;
// nothing was run. The caller should show the message to a person, who can
// repair the machine; it must not run the command another way.
var ErrUnavailable = errors.New("sandbox unavailable")

// ErrStart means that the sandbox stood but the command could not be started
// in it: no such program, no such directory, not executable.
var ErrStart = errors.New("command not started")

// ErrSpec means that the Spec contradicts itself or names a path that is not
// what it seems (a symbolic link, a relative path). Nothing was run.
var ErrSpec = errors.New("bad sandbox spec")

// Method is the way the namespaces are made.
type Method uint8

// Methods. Auto takes Namespaces where the kernel grants them and Bubblewrap
// otherwise (a distribution may let only a blessed program make namespaces).
const (
	Auto Method = iota
	Namespaces
	Bubblewrap
)

// String names the method for people and for recorded facts.
func (m Method) String() string {
	switch m {
	case Auto:
		return "auto"
	case Namespaces:
		return "namespaces"
	case Bubblewrap:
		return "bubblewrap"
	}
	return "unknown method"
}

// Level is how much protection a run has. The zero value is none at all.
type Level uint8

// Levels, weakest first. Isolated is namespaces and seccomp; Full adds
// Landlock, so that a hole in the mount tree alone does not open a file.
const (
	None Level = iota
	Isolated
	Full
)

// String names the level for doctor and for recorded facts.
func (l Level) String() string {
	switch l {
	case None:
		return "none"
	case Isolated:
		return "isolated"
	case Full:
		return "full"
	}
	return "unknown level"
}

// Limits bounds what a command may consume. A zero field means the default of
// [DefaultLimits], never "unlimited".
type Limits struct {
	// Wall is the time after which everything is killed.
	Wall time.Duration
	// CPU is processor time of any one process.
	CPU time.Duration
	// Memory is the writable private memory of any one process, in bytes.
	// Where a memory control group can be had it also bounds the sum.
	Memory int64
	// Processes counts processes and threads together.
	Processes int
	// FileSize is the largest file that may be written.
	FileSize int64
	// Files is the number of open descriptors of one process.
	Files int
	// Scratch is the size of each private temporary directory.
	Scratch int64
	// Output is how many bytes of each stream are kept, half from the
	// beginning and half from the end.
	Output int
}

// DefaultLimits are the limits a zero Limits stands for.
func DefaultLimits() Limits {
	return Limits{
		Wall:      30 * time.Second,
		CPU:       5 * time.Minute,
		Memory:    4 << 30,
		Processes: 512,
		FileSize:  1 << 30,
		Files:     1024,
		Scratch:   256 << 20,
		Output:    256 << 10,
	}
}

// minMemory keeps the stage, which shares the limit, able to report.
const minMemory = 32 << 20

// withDefaults fills zero fields and refuses values that cannot be meant.
func (l Limits) withDefaults() (Limits, error) {
	d := DefaultLimits()
	if l.Wall < 0 || l.CPU < 0 || l.Memory < 0 || l.Processes < 0 || l.FileSize < 0 ||
		l.Files < 0 || l.Scratch < 0 || l.Output < 0 {
		return l, fmt.Errorf("%w: limits must not be negative, got %+v", ErrSpec, l)
	}
	l.Wall = orElse(l.Wall, d.Wall)
	l.CPU = orElse(l.CPU, d.CPU)
	l.Memory = max(orElse(l.Memory, d.Memory), minMemory)
	l.Processes = orElse(l.Processes, d.Processes)
	l.FileSize = orElse(l.FileSize, d.FileSize)
	l.Files = max(orElse(l.Files, d.Files), 16)
	l.Scratch = orElse(l.Scratch, d.Scratch)
	l.Output = orElse(l.Output, d.Output)
	return l, nil
}

func orElse[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// Resolver turns a host name into addresses. *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Network opens a way out through a filtering proxy. Without one a command
// has a loopback interface of its own and nothing else.
type Network struct {
	// Hosts lists what may be reached: "name", "name:port", "address:port".
	// A leading "*." admits any name below. Without a port: 80 and 443.
	Hosts []string
	// Private lists ranges that an allowed *name* may resolve to although
	// they are loopback, private, link-local or the like. Empty refuses
	// them all, which is what stops DNS rebinding.
	Private []netip.Prefix
	// Resolver is asked once for each name and run. Nil is the system's.
	Resolver Resolver
}

// Stream says where a piece of output came from.
type Stream uint8

// Streams. A command on a terminal has only Stdout.
const (
	Stdout Stream = iota + 1
	Stderr
)

// Chunk is a piece of live output. Data is valid only during the call.
type Chunk struct {
	Stream Stream
	Data   []byte
}

// Spec says what to run and what it may touch. The zero value of every field
// but Argv is the strictest choice.
type Spec struct {
	// Argv is the program and its arguments. A name without a slash is
	// looked up in the PATH of the sandbox.
	Argv []string
	// Dir is the working directory; empty is the first write root, or the
	// private temporary directory.
	Dir string
	// Env is the whole environment, added to a fixed minimum. Variables
	// that make a loader or shell run code are refused.
	Env map[string]string
	// Stdin is copied to the command. If it is an io.Closer it is closed
	// when the command ends, so that a blocked Read returns. Nil is empty.
	Stdin io.Reader

	// ReadRoots lists what can be seen. Nil is the whole file system, less
	// what is always private (/tmp, /run, /dev, /sys, /proc) and Hidden.
	// SystemRoots has what most programs need to start.
	ReadRoots []string
	// WriteRoots lists existing files and directories that may be changed.
	WriteRoots []string
	// Hidden lists paths that must not be seen, nor come into being.
	Hidden []string

	// Watched lists files of which the Result tells whether they were opened,
	// and directories, whether a file directly in them was.
	// A dry run cannot tell, and names all of them.
	Watched []string
	// Watching is called when the watch has begun and the command has not, with a
	// function that tells whether any of Watched was opened by now. Nil is none.
	Watching func(opened func() bool)

	// Network is the way out; nil is none.
	Network *Network
	// UnixSockets lets the command make Unix sockets. They are off by
	// default, since any socket file in sight (an agent, a container
	// daemon) would be a way out.
	UnixSockets bool

	// Limits bounds consumption; zero fields are defaults.
	Limits Limits
	// PTY gives the command a terminal of its own. Stdin then is what is
	// typed, and both streams arrive as Stdout.
	PTY bool
	// Sink is called with live output, never from two goroutines at once.
	// A slow Sink slows the command. Nil is none.
	Sink func(Chunk)
	// Method is how the namespaces are made.
	Method Method
}

// Cause says why a command ended.
type Cause uint8

// Causes. Exited covers any exit code; Signalled is a signal that did not
// come from this package.
const (
	CauseUnknown Cause = iota
	Exited
	Signalled
	TimedOut
	Cancelled
)

// String names the cause for people and records.
func (c Cause) String() string {
	switch c {
	case CauseUnknown:
		return "unknown"
	case Exited:
		return "exited"
	case Signalled:
		return "signalled"
	case TimedOut:
		return "timed out"
	case Cancelled:
		return "cancelled"
	}
	return "unknown"
}

// Result is what a command did.
type Result struct {
	// ExitCode is meaningful when Cause is Exited, and -1 otherwise.
	ExitCode int
	// Signal names the signal when Cause is Signalled.
	Signal string
	Cause  Cause
	// Duration is from before the sandbox was built until nothing of it was left.
	Duration time.Duration
	Stdout   Output
	Stderr   Output
	// Method and Level are what was really used.
	Method Method
	Level  Level
	// Requests lists what the proxy was asked for, in order, with its answer.
	Requests []Request
	// Opened lists the watched files that were meanwhile opened, renamed or
	// linked, by the command or by a third program, the directories above them
	// that were renamed, and what could not be watched. What this program did
	// itself is left out where the kernel can tell.
	Opened []string
}

// Truncated tells whether output was cut.
func (r Result) Truncated() bool { return r.Stdout.Cut() > 0 || r.Stderr.Cut() > 0 }

// OK tells whether the command ran to its end and reported success.
func (r Result) OK() bool { return r.Cause == Exited && r.ExitCode == 0 }

// Part is one protection and whether it can be had.
type Part struct {
	Name string
	OK   bool
	// Note says what was found, or what is missing and what that means.
	Note string
}

// Status is what the machine offers.
type Status struct {
	Level Level
	// Method is what Auto would use; meaningless when Level is None.
	Method Method
	// LandlockABI is 0 where Landlock is missing.
	LandlockABI int
	Parts       []Part
}

// Missing lists the notes of the parts that cannot be had.
func (s Status) Missing() []string {
	var out []string
	for _, p := range s.Parts {
		if !p.OK {
			out = append(out, p.Name+": "+p.Note)
		}
	}
	return out
}

// Run carries out s and waits until nothing of it is left running. When ctx
// ends everything is killed at once; that is a Result with Cause Cancelled,
// not an error. Errors wrap ErrSpec, ErrUnavailable or ErrStart. Run is safe
// for concurrent use.
func Run(ctx context.Context, s Spec) (Result, error) {
	return run(ctx, s, nil)
}
