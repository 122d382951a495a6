// Package shell says, without running anything, what a command line would do.
//
// Analyze parses Bash with a real parser, walks every simple command in every list, pipe, substitution, function, loop, trap, wrapper and
// inline script, expands what can be expanded statically, and joins the answers. The result is a Report: a Level, the Findings that led to it,
// the paths and hosts involved, and the digests of the scripts that were read and judged.
//
//   - Level: Forbidden, Question, Harmless. Levels are joined with min; nothing ever raises one.
//   - Env: everything the answer may depend on (places, directory, variables, host list, a read-only view of files). Same Env, same Report.
//   - commands.txt: the data table of programs, subcommands and options; its head explains the notation. Programs whose arguments are
//     themselves programs (find, xargs, git, sed, awk, interpreters, wrappers) are judged in Go, one file each.
//   - A word is a string in which the byte hole stands for "anything": what could not be expanded. Ask known(word) before comparing it.
//
// The rule a newcomer will break: silence is not consent. A program, option or construct nobody described is a Question, a text that does not
// parse or exceeds a limit is Forbidden, and Harmless is only ever said by something that looked. The package is pure: no clock, no files
// except through Env.Files, no global state but the immutable table.
package shell

import (
	"sort"

	"passepartout/internal/host"
	"passepartout/internal/place"
)

// Level says how a command line may be treated. The zero value is the strictest, and levels are joined by taking the smaller one.
type Level uint8

// The levels, strictest first.
const (
	// Forbidden must not run, whoever asks.
	Forbidden Level = iota
	// Question needs a person.
	Question
	// Harmless reads ordinary files or writes under the roots inside the sandbox.
	Harmless
)

// String names the level; unknown values read as forbidden.
func (l Level) String() string {
	switch l {
	case Question:
		return "question"
	case Harmless:
		return "harmless"
	default:
		return "forbidden"
	}
}

// EffectSet is a set of Effect bits.
type EffectSet uint16

// The effects a command line can have.
const (
	// Reads looks at files.
	Reads EffectSet = 1 << iota
	// Writes creates or changes files.
	Writes
	// Deletes removes files, history or remote resources.
	Deletes
	// Network talks, or would talk, to another machine.
	Network
	// Executes runs code that is not on the command line: builds, scripts, plugins.
	Executes
	// Privilege acts as another user or changes what users may do.
	Privilege
	// Persists leaves something that runs later.
	Persists
)

// Has reports whether every bit of f is in e.
func (e EffectSet) Has(f EffectSet) bool { return e&f == f }

// Names lists the effects in a fixed order.
func (e EffectSet) Names() []string {
	var out []string
	for i, n := range [...]string{"read", "write", "delete", "network", "execute", "privilege", "persist"} {
		if e&(1<<i) != 0 {
			out = append(out, n)
		}
	}
	return out
}

// Finding is one objection, with the place in the source it is about.
type Finding struct {
	Level   Level
	Code    string // stable dotted word, e.g. "shell.delete-home"
	Reason  string // a sentence for the person and the model
	Command string // name of the program concerned, if there is one
	Line    uint   // 1-based; 0 when the finding is about the whole text
	Col     uint
}

// Script is a file whose bytes were read and judged as part of the command line. A caller that permits the command must make sure that the
// bytes that run have this digest.
type Script struct {
	Path   string
	Digest string // "sha256:" and lower-case hex
}

// Report is what Analyze found. Its slices are sorted and free of duplicates, except Findings, which are in source order.
type Report struct {
	Level    Level
	Findings []Finding
	Effects  EffectSet
	Reads    []string
	Writes   []string
	Deletes  []string
	Hosts    []string // name, or name:port where the command says a port
	Scripts  []Script
	Commands int // simple commands judged, wrapped and inline ones included
}

// Codes lists the codes of the findings at the report's level, without duplicates.
func (r Report) Codes() []string {
	var out []string
	for _, f := range r.Findings {
		if f.Level == r.Level && !contains(out, f.Code) {
			out = append(out, f.Code)
		}
	}
	return out
}

// Files is the read-only view of the file system that an analysis may use. Answers must not change while one analysis runs.
type Files interface {
	// Glob returns the paths matching an absolute pattern; false means it does not know.
	Glob(pattern string) ([]string, bool)
	// ReadFile returns a file's content; false when there is none or it may not be read.
	ReadFile(path string) ([]byte, bool)
}

// Env is everything an analysis depends on besides the text.
type Env struct {
	Places    place.Layout
	Cwd       string              // absolute; empty means unknown
	Hosts     host.List           // hosts that may be talked to without asking
	Services  map[string][]string // hosts behind the symbolic names of the command table, such as "registry:python"; all must be in Hosts
	Sandboxed bool                // no network, writes only under the roots and a private /tmp, secrets hidden; otherwise nothing is Harmless
	Files     Files               // nil: nothing is known to exist
}

// Limits on what is looked at. Beyond them the answer is Forbidden, never "looked at in part".
const (
	MaxBytes    = 64 << 10
	MaxCommands = 256
	MaxDepth    = 64
)

// Analyze judges the text of a command line or script as Bash would run it.
func Analyze(src string, e Env) Report {
	j := newJudge(e)
	j.source(src)
	return j.report()
}

// AnalyzeArgv judges one program started with these arguments, without a shell in between.
func AnalyzeArgv(argv []string, e Env) Report {
	j := newJudge(e)
	size := 0
	for _, a := range argv {
		size += len(a) + 1
		j.scanText(a)
	}
	switch {
	case len(argv) == 0 || argv[0] == "":
		j.find(Forbidden, "shell.empty", "no program was named")
	case size > MaxBytes:
		j.find(Forbidden, "shell.too-long", "the command is longer than 64 KiB")
	case j.level != Forbidden:
		j.command(argv)
		j.ends(flow{endless: j.endless && !j.stops})
	}
	return j.report()
}

func (j *judge) report() Report {
	j.rewrites()
	r := j.rep
	if !j.env.Sandboxed && j.level > Question {
		j.find(Question, "shell.no-sandbox", "there is no sandbox to run this in")
		r.Findings = j.rep.Findings
	}
	r.Level = j.level
	r.Reads = sortedSet(r.Reads)
	r.Writes = sortedSet(r.Writes)
	r.Deletes = sortedSet(r.Deletes)
	r.Hosts = sortedSet(r.Hosts)
	return r
}

func sortedSet(s []string) []string {
	sort.Strings(s)
	out := s[:0]
	for i, v := range s {
		if i == 0 || v != s[i-1] {
			out = append(out, v)
		}
	}
	return out
}

func contains(list []string, s string) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}
