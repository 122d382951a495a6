package shell

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"path"
	"sort"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// flow is what is known about the bytes on a pipe.
type flow struct {
	piped   bool   // there is something on standard input
	known   bool   // text is exactly what flows
	text    string // may hold holes
	net     bool   // some of it came from another machine
	endless bool   // it never ends by itself
}

// judge is one analysis in progress. Each field below the report is the state of the simulated shell at the current point.
type judge struct {
	env   Env
	rep   Report
	level Level

	parser   *syntax.Parser // used again for every inner text; each is read to its end before it is judged
	vars     map[string]string
	numbers  map[string]bool // variables whose values are evaluated: declare -i, declare -n
	funcs    map[string]*syntax.Stmt
	cwd      string   // may hold a hole after cd "$x"
	stayed   []string // where the commands run instead if an earlier cd failed and nobody looked
	errexit  bool     // set -e: a cd of its own that fails is the end
	args     []string
	script   string // $0 of the script being read
	stdin    flow
	files    map[string]flow // what this command line wrote, so that running it can be judged
	filled   []string        // directories into which files are put whose names are not known
	calls    []string        // functions being judged, innermost last
	judged   map[*syntax.Stmt]bool
	assigns  map[syntax.Node][]string // by loop, the variables set in it
	over     bool                     // a limit was hit
	steps    int
	parsed   int // bytes
	paths    int
	depth    int
	pos      syntax.Pos
	inner    int // >0: positions refer to an inner text, so they are not reported
	name     string
	bulk     int  // >0: inside a command that is run over files somebody else lists
	netSubst bool // a substitution in the current command read from another machine
	endless  bool // the current command reads a device that never ends
	stops    bool // the current command stops reading by itself
	remote   bool // the command would run on another machine, so local paths say nothing
}

func newJudge(e Env) *judge {
	j := &judge{env: e, level: Harmless, cwd: e.Cwd}
	if j.cwd == "" {
		j.cwd = anything
	}
	return j
}

// find records an objection and lowers the level to it.
func (j *judge) find(l Level, code, reason string) {
	if l >= Harmless {
		return
	}
	j.level = min(j.level, l)
	f := Finding{Level: l, Code: code, Reason: reason, Command: j.name}
	if j.inner == 0 && j.pos.IsValid() {
		f.Line, f.Col = j.pos.Line(), j.pos.Col()
	}
	for _, g := range j.rep.Findings {
		if g.Code == f.Code && g.Command == f.Command && g.Line == f.Line && g.Col == f.Col && g.Reason == f.Reason {
			return
		}
	}
	if len(j.rep.Findings) < MaxCommands {
		j.rep.Findings = append(j.rep.Findings, f)
	}
}

func (j *judge) deny(code, reason string) { j.find(Forbidden, code, reason) }
func (j *judge) ask(code, reason string)  { j.find(Question, code, reason) }

// enter counts one level of nesting and reports whether there is room for it.
func (j *judge) enter() bool {
	j.depth++
	if j.depth > MaxDepth {
		j.limit("shell.too-deep", "the command is nested deeper than 64 levels")
		return false
	}
	return true
}

func (j *judge) leave() { j.depth-- }

// Limits that keep the analysis linear. Like the exported ones, going beyond them is Forbidden.
const (
	maxValue   = 4 << 10      // bytes of a variable's value that are followed
	maxParsed  = 4 * MaxBytes // bytes parsed in all, inner texts counted again
	maxSteps   = 4096         // statements, loops counted per turn
	maxPaths   = 2048         // paths classified
	maxStmts   = 1024         // statements of one text, not counting nested ones
	maxSigns   = 4096         // separators in one text
	maxDollars = 8192         // expansions in one text
	maxBlanks  = 16384        // words in one text, those of here-documents included
)

// stopped reports that a limit was hit, so that walking on can change nothing.
func (j *judge) stopped() bool { return j.over }

// limit refuses the whole text because it is too much to look at, and ends the analysis: nothing found later could matter.
func (j *judge) limit(code, reason string) {
	j.deny(code, reason)
	j.over = true
}

// step counts one statement.
func (j *judge) step() bool {
	j.steps++
	if j.steps == maxSteps+1 {
		j.limit("shell.too-many", "the command line runs more than 4096 steps")
	}
	return !j.stopped()
}

// source judges a whole text in the current state.
func (j *judge) source(src string) {
	j.parsed += len(src)
	if len(src) > MaxBytes || j.parsed > maxParsed {
		j.limit("shell.too-long", "the command is longer than 64 KiB, or unfolds to much more")
		return
	}
	j.scanText(src)
	if tooDeep(src) {
		j.limit("shell.too-deep", "the command is nested deeper than 64 levels")
		return
	}
	if tooMany(src) {
		j.limit("shell.too-many", "the text holds more commands than can be looked at")
		return
	}
	if j.level == Forbidden && j.depth == 0 {
		return
	}
	list, err := j.parse(src)
	switch {
	case err != nil:
		j.pos = syntax.Pos{}
		j.deny("shell.unparsed", "the command does not parse: "+strings.TrimPrefix(err.Error(), ":"))
		return
	case len(list) > maxStmts:
		j.limit("shell.too-many", "the text holds more than 1024 statements")
		return
	case len(list) == 0 && j.depth == 0:
		j.ask("shell.empty", "there is no command in the text")
	}
	j.stmts(list)
	if j.depth == 0 {
		j.uncalled()
	}
}

// untilReader ends early when it is told to.
type untilReader struct {
	strings.Reader
	done bool
}

func (r *untilReader) Read(b []byte) (int, error) {
	if r.done {
		return 0, io.EOF
	}
	return r.Reader.Read(b)
}

// parse returns the statements of a text, and stops reading soon after there are too many. It never leaves the parser's iterator early: the parser
// would go on to report an error. Nor does it hand out a statement before the end: the body of its here-document may still be to come.
func (j *judge) parse(src string) ([]*syntax.Stmt, error) {
	if j.parser == nil {
		j.parser = syntax.NewParser(syntax.Variant(syntax.LangBash))
	}
	r := &untilReader{Reader: *strings.NewReader(src)}
	var list []*syntax.Stmt
	var failed error
	for s, err := range j.parser.StmtsSeq(r) {
		switch {
		case err != nil:
			failed = err
		case s != nil:
			list = append(list, s)
			r.done = len(list) > maxStmts
		}
	}
	if len(list) > maxStmts {
		return list, nil
	}
	return list, failed
}

// nested judges src as a text inside the current one: the argument of bash -c, eval, trap, or the content of a script.
func (j *judge) nested(src string) flow {
	if strings.IndexByte(src, hole) >= 0 {
		src = j.patch(src)
	}
	if !j.enter() {
		return flow{}
	}
	defer j.leave()
	saved, pos := j.stdin, j.pos
	j.inner++
	j.source(src)
	j.inner--
	j.stdin, j.pos = saved, pos
	return flow{piped: true, net: saved.net}
}

// patch makes a text with holes parse: a hole that stands where a word can stand becomes an unset variable, which expands to a hole again.
func (j *judge) patch(src string) string {
	return strings.ReplaceAll(src, anything, "${"+holeName+"}")
}

// subshell runs fn on a copy of the variables, functions and directory, as ( ), pipes and substitutions do.
func (j *judge) subshell(fn func() flow) flow {
	vars, funcs, cwd, args, stayed, errexit := j.vars, j.funcs, j.cwd, j.args, j.stayed, j.errexit
	endless, stops := j.endless, j.stops
	j.vars, j.funcs = cloneMap(vars), cloneMap(funcs)
	out := fn()
	for _, n := range sortedKeys(j.funcs) {
		if f := j.funcs[n]; funcs[n] != f {
			j.once(n, f)
		}
	}
	j.vars, j.funcs, j.cwd, j.args, j.stayed, j.errexit = vars, funcs, cwd, args, stayed, errexit
	j.endless, j.stops = endless, stops
	return out
}

// maybe runs fn as something that may or may not happen: what it changed is unknown afterwards.
func (j *judge) maybe(fn func()) {
	vars, cwd := cloneMap(j.vars), j.cwd
	fn()
	for k, v := range j.vars {
		if old, ok := vars[k]; !ok || old != v {
			j.vars[k] = anything
		}
	}
	for k := range vars {
		if _, ok := j.vars[k]; !ok {
			j.setVar(k, anything)
		}
	}
	if j.cwd != cwd {
		j.cwd = anything
	}
}

func cloneMap[V any](m map[string]V) map[string]V {
	if m == nil {
		return nil
	}
	out := make(map[string]V, len(m)+2)
	for k, v := range m {
		out[k] = v
	}
	return out
}

func (j *judge) setVar(name, value string) {
	if len(value) > maxValue {
		value = anything
	}
	if j.vars == nil {
		j.vars = make(map[string]string, 8)
	}
	j.vars[name] = value
}

func (j *judge) effect(e EffectSet) { j.rep.Effects |= e }

// runScript judges the file a command would execute or source.
func (j *judge) runScript(word string, judgeText func(string)) {
	j.effect(Executes)
	if !known(word) {
		j.ask("shell.script-unknown", "which script would run is not known before it runs")
		return
	}
	abs := j.resolve(word)
	if w, ok := j.files[abs]; ok {
		switch {
		case w.net:
			j.deny("shell.run-download", "a file just fetched from another machine would be run")
		case w.known:
			judgeText(w.text)
			j.ask("shell.run-written", "a file written by this same command line would be run")
		default:
			j.deny("shell.run-written", "a file written by this same command line would be run, and its content is not known")
		}
		return
	}
	j.readPath(word)
	if j.env.Files != nil {
		if text, ok := j.env.Files.ReadFile(abs); ok {
			sum := sha256.Sum256(text)
			j.rep.Scripts = append(j.rep.Scripts, Script{Path: abs, Digest: "sha256:" + hex.EncodeToString(sum[:])})
			judgeText(string(text))
			return
		}
	}
	j.ask("shell.script-unread", "the script that would run cannot be read beforehand")
}

// rewrites objects to running a script that this same command line changes, before or after: what was read is then not what runs.
func (j *judge) rewrites() {
	for _, s := range j.rep.Scripts {
		if _, told := j.files[s.Path]; told || !j.changes(s.Path) {
			continue
		}
		j.pos, j.name = syntax.Pos{}, ""
		j.ask("shell.run-written", "a script that would run is changed by this same command line: "+plain(s.Path))
	}
}

// changes reports whether the command line writes the file, a directory above it, or files of unknown names beside or above it.
func (j *judge) changes(abs string) bool {
	for _, w := range j.rep.Writes {
		if abs == w || strings.HasPrefix(abs, w+"/") {
			return true
		}
	}
	for _, dir := range j.filled {
		if ok, err := path.Match(dir, abs); ok && err == nil || strings.HasPrefix(abs, strings.TrimSuffix(dir, "/")+"/") {
			return true
		}
	}
	return false
}

// once judges a function nobody called, as if with unknown arguments: it may be exported, or called by a name that was not known.
func (j *judge) once(name string, body *syntax.Stmt) {
	if j.judged[body] {
		return
	}
	args, vars, cwd := j.args, j.vars, j.cwd
	j.vars = cloneMap(vars)
	j.callFunc(name, body, []string{anything})
	j.args, j.vars, j.cwd = args, vars, cwd
}

func (j *judge) uncalled() {
	for _, n := range sortedKeys(j.funcs) {
		j.once(n, j.funcs[n])
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
