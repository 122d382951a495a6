package shell

import (
	"path"
	"strings"

	"passepartout/internal/host"
)

// binDirs hold the machine's own programs; a program named by a path elsewhere is judged as a script.
var binDirs = map[string]bool{
	"/bin": true, "/usr/bin": true, "/sbin": true, "/usr/sbin": true, "/usr/local/bin": true, "/usr/local/sbin": true, "/opt/homebrew/bin": true, "/snap/bin": true,
	"/usr/libexec": true, "/system/bin": true,
}

// command judges one simple command, given as its expanded words, and returns what is known about its output.
func (j *judge) command(argv []string) flow {
	if j.rep.Commands++; j.rep.Commands > MaxCommands && !j.over {
		j.limit("shell.too-many", "the command line holds more than 256 commands")
	}
	if j.over {
		return flow{}
	}
	if len(argv) == 0 {
		return flow{known: true}
	}
	if !j.enter() {
		j.leave()
		return flow{}
	}
	defer j.leave()
	name := argv[0]
	saved := j.name
	j.name = plain(name)
	defer func() { j.name = saved }()
	j.stops = j.stops || j.bulk == 0 && bounded(argv)
	if !known(name) {
		return j.dynamicCommand(argv)
	}
	if globbed(name) {
		if name != "\x03" {
			j.deny("shell.glob-command", "the program's name is a pattern, which hides what would run")
			return flow{}
		}
		name = "["
	}
	if body, ok := j.funcs[name]; ok {
		return j.callFunc(name, body, argv[1:])
	}
	base := name
	if strings.Contains(name, "/") {
		if !binDirs[path.Dir(j.resolve(name))] {
			return j.runFile(argv)
		}
		base = path.Base(name)
	}
	return j.program(base, argv)
}

// dynamicCommand judges a command whose program is not known: its arguments still say something.
func (j *judge) dynamicCommand(argv []string) flow {
	j.effect(Executes)
	if j.netSubst {
		j.deny("shell.run-download", "what another machine answers would be run as a command")
	}
	j.ask("shell.dynamic", "which program would run is not known before it runs")
	for i, a := range argv[1:] {
		j.suspicious(a)
		if a == "-c" && i+2 < len(argv) {
			j.nestedCode(argv[i+2])
		}
	}
	if strings.Contains(strings.Join(argv[1:], " "), "-rf") {
		for _, a := range argv[1:] {
			if a != "" && a[0] != '-' && j.env.Places.Covers(j.resolve(a)) {
				j.deletePath(a, true)
			}
		}
	}
	return flow{}
}

// runFile judges running a program by a path that is not one of the machine's own programs.
func (j *judge) runFile(argv []string) flow {
	for _, a := range argv[1:] {
		j.suspicious(a)
	}
	saved := j.args
	j.args = argv[1:]
	j.runScript(argv[0], j.scriptText)
	j.args = saved
	return flow{net: j.stdin.net}
}

// scriptText judges the content of an executable file by its first line.
func (j *judge) scriptText(text string) {
	line, _, _ := strings.Cut(text, "\n")
	if !strings.HasPrefix(line, "#!") {
		if strings.HasPrefix(text, "\x7fELF") || strings.IndexByte(text, 0) >= 0 {
			j.ask("shell.binary", "the program is not text and cannot be judged")
			return
		}
		j.nested(text)
		return
	}
	f := strings.Fields(line[2:])
	if len(f) > 0 && path.Base(f[0]) == "env" {
		f = f[1:]
		for len(f) > 0 && strings.HasPrefix(f[0], "-") {
			f = f[1:]
		}
	}
	if len(f) == 0 {
		j.ask("shell.binary", "the script does not say which program runs it")
		return
	}
	switch base := path.Base(f[0]); {
	case isShell(base):
		j.nested(text)
	case languageOf(base) != "":
		j.code(languageOf(base), text)
	default:
		j.ask("shell.binary", "the script is for a program this analysis does not know: "+base)
	}
}

// program judges a program by name: the ones written in Go first, then the table.
func (j *judge) program(base string, argv []string) flow {
	args := argv[1:]
	if len(args) == 1 && (args[0] == "--version" || args[0] == "--help") {
		return flow{}
	}
	if out, ok := j.builtin(base, args); ok {
		return out
	}
	if out, ok := j.special(base, args); ok {
		return out
	}
	s := table()[base]
	if s == nil {
		if lower := strings.ToLower(base); lower != base && (table()[lower] != nil || isShell(lower)) {
			j.ask("shell.case", "the program's name differs from a known one only in case")
			return j.program(lower, argv)
		}
		if v := versioned(base); v != base {
			return j.program(v, argv)
		}
		return j.unknown(base, args)
	}
	return j.tabled(s, args)
}

// versioned strips a version from the end of a program's name: gcc-13, python3.11.
func versioned(base string) string {
	v := strings.TrimRight(base, "0123456789.")
	v = strings.TrimSuffix(v, "-")
	if v == "" || v == base || table()[v] == nil && languageOf(v) == "" && !isShell(v) {
		return base
	}
	return v
}

// helpOnly reports a call that only prints help or a version.
func helpOnly(args []string) bool {
	if len(args) == 0 || len(args) > 5 {
		return false
	}
	switch args[len(args)-1] {
	case "--help", "--version":
	case "-h", "-V", "-help", "-version", "help", "version":
		if len(args) != 1 {
			return false
		}
	default:
		return false
	}
	for _, a := range args[:len(args)-1] {
		if a == "" || a[0] == '-' || strings.ContainsAny(a, "/.=:\x00") {
			return false
		}
	}
	return true
}

// onlyHelps reports a call that only prints help or a version. Behind the name of a subcommand it is for that to say, and behind the name of a package,
// a script or a program the option is theirs, not ours: npx x --help runs x.
func (s *spec) onlyHelps(args []string) bool {
	if !helpOnly(args) || len(args) > 1 && s.sub(args[0]) != nil {
		return false
	}
	switch s.class {
	case classWrap:
		return false
	case classNone, classCli, classBuild, classFetch:
		return len(args) == 1
	case classAsk, classDeny:
		return len(args) == 1 || s.code != "exec" && s.code != "remote" && s.code != "shell" && s.code != "install"
	default:
		return true
	}
}

// unknown judges a program nobody described.
func (j *judge) unknown(base string, args []string) flow {
	for _, a := range args {
		j.suspicious(a)
	}
	j.effect(Executes)
	j.ask("shell.unknown-command", "the program is not among the described ones: "+base)
	return flow{net: true}
}

// tabled judges a program by its table entry.
func (j *judge) tabled(s *spec, args []string) flow {
	if s.onlyHelps(args) {
		return flow{}
	}
	root, all := s, args
	at := s.at
	var other *spec // what applies to words the described subcommand does not know
	for len(s.subs) > 0 || len(s.prefix) > 0 || s.verbs || other != nil {
		i := j.subcommand(s, args)
		if len(args) > 0 && s.sub(args[0]) != nil {
			i = 0 // also options that act as subcommands
		}
		if i < 0 {
			break
		}
		sub := s.sub(args[i])
		if sub == nil {
			sub = other.sub(args[i])
		}
		if sub == nil {
			sub = s.rest()
		}
		if sub == nil && root.verbs {
			return j.verb(root, all)
		}
		if sub == nil {
			break
		}
		j.options(s, args[:i])
		other = s.rest()
		s, args = sub, args[i+1:]
		if s.at != "" {
			at = s.at
		}
		if s.onlyHelps(args) {
			return flow{}
		}
	}
	p := j.options(s, args)
	if s.class == classWrap {
		return j.wrapped(s, p.operands)
	}
	j.operandRoles(s, p)
	if s.links && len(p.operands) > 0 && !stopsEarly(args) {
		j.ask("shell.executable", "makes a program that nobody has judged")
	}
	if at == "lock" && len(p.operands) > 0 {
		at = root.at // a package named here is not one that the lock file pins
	}
	if at != "" && (s.class == classNet || s.class == classFetch || s.at != "") {
		j.reach(s.class, at, args)
	}
	return j.classAnswer(s, args)
}

// stopsEarly reports an option with which a compiler makes no executable. The options of compilers are whole words, so no cluster is looked into.
func stopsEarly(args []string) bool {
	for _, a := range args {
		switch a {
		case "-c", "-S", "-E", "-M", "-MM", "-fsyntax-only", "--emit=metadata", "--emit=obj", "--crate-type=lib", "--crate-type=rlib":
			return true
		}
	}
	return false
}

// offline reports an option that keeps a package manager from reaching for its registry.
func offline(args []string) bool {
	return contains(args, "--offline") || contains(args, "--no-index") || contains(args, "--local")
}

// NeedsService is the code of the question whether a program that only reads may talk to the one service its settings, or its maker, name.
const NeedsService = "shell.needs-service"

// reach judges what a program must be able to talk to, which it cannot from inside the sandbox. Looking something up in a registry brings nothing
// in, and what a lock file pins is fetched by every build: neither is a question.
func (j *judge) reach(c class, at string, args []string) {
	j.effect(Network)
	switch {
	case at == "lock", strings.HasPrefix(at, "registry:") && (c == classNet || offline(args)):
		return
	case at == "socket":
		j.ask("shell.needs-socket", "works only through the control socket of a daemon, which the sandbox keeps away")
		return
	case at == "remote":
		j.ask(NeedsService, "works only with a machine that its settings or credentials name, which the sandbox keeps away")
		return
	}
	hosts := []string{at}
	if strings.HasPrefix(at, "registry:") {
		hosts = j.env.Services[at]
	}
	for _, h := range hosts {
		if p, err := host.Parse(h); err != nil || !j.env.Hosts.Allows(p) {
			hosts = nil
			break
		}
	}
	if len(hosts) == 0 {
		code := NeedsService // a program with one place of its own
		if strings.HasPrefix(at, "registry:") {
			code = "shell.needs-network" // what comes from there will run
		}
		j.ask(code, "works only over the network, and this is not on the list of allowed hosts: "+at)
		return
	}
	j.rep.Hosts = append(j.rep.Hosts, hosts...)
}

// classAnswer adds what the class itself means.
func (j *judge) classAnswer(s *spec, args []string) flow {
	switch s.class {
	case classOK:
		return flow{net: j.stdin.net}
	case classBuild:
		j.effect(Executes | Writes | Reads)
		j.buildPlace()
		j.builtFiles(args)
		return flow{}
	case classFetch:
		j.effect(Executes | Writes | Network)
		j.buildPlace()
		return flow{net: true}
	case classNet:
		j.effect(Network)
		for _, a := range args {
			if !known(a) && strings.Contains(a, ".") {
				j.ask("shell.host-unknown", "what would be sent with the request is not known before it runs")
			}
		}
		return flow{net: true}
	case classAsk, classDeny:
		o := objections[s.code]
		j.effect(o.effects)
		for _, a := range args {
			j.suspicious(a)
		}
		l := Question
		if s.class == classDeny {
			l = Forbidden
		}
		j.find(l, "shell."+s.code, o.reason)
		return flow{net: o.effects&Network != 0}
	default:
		for _, a := range args {
			j.suspicious(a)
		}
		j.ask("shell.unknown-subcommand", "the subcommand is not among the described ones")
		return flow{net: true}
	}
}

// subcommand returns the index of the first word among args, skipping described options and their values; -1 if there is none.
func (j *judge) subcommand(s *spec, args []string) int {
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			return -1
		}
		if len(a) < 2 || a[0] != '-' && a[0] != '+' {
			if !known(a) {
				j.ask("shell.dynamic", "which subcommand would run is not known before it runs")
			}
			return i
		}
		if rule := s.opts[a]; takesValue(rule) && rule != 0 {
			i++
		}
	}
	return -1
}

// verb judges a command of a service client by the verbs among its words: one that changes something outweighs all others.
func (j *judge) verb(s *spec, args []string) flow {
	p := j.options(s, args)
	reads := false
	for _, w := range p.operands {
		if changeVerb(w) {
			return j.classAnswer(&spec{class: classAsk, code: "remote"}, args)
		}
		reads = reads || readVerb(w)
	}
	if !reads {
		return j.classAnswer(&spec{}, args)
	}
	j.reach(classNet, s.at, args)
	return flow{net: true}
}

var readVerbs = map[string]bool{
	"list": true, "ls": true, "show": true, "describe": true, "get": true, "view": true, "status": true, "search": true, "info": true, "inspect": true, "history": true, "logs": true,
	"top": true, "explain": true, "diff": true, "version": true, "versions": true, "whoami": true, "validate": true, "check": true, "exists": true, "find": true, "read": true, "tail": true,
}

func readVerb(w string) bool {
	return readVerbs[w] || strings.HasPrefix(w, "list-") || strings.HasPrefix(w, "show-") || strings.HasPrefix(w, "describe-") || strings.HasPrefix(w, "get-") && !strings.Contains(w, "token") && !strings.Contains(w, "cred") && !strings.Contains(w, "key")
}

var changeVerbs = map[string]bool{
	"create": true, "delete": true, "remove": true, "rm": true, "update": true, "set": true, "add": true, "start": true, "stop": true, "restart": true, "deploy": true, "destroy": true,
	"purge": true, "enable": true, "disable": true, "attach": true, "detach": true, "put": true, "send": true, "publish": true, "push": true, "upload": true, "import": true, "export": true,
	"login": true, "logout": true, "run": true, "exec": true, "ssh": true, "connect": true, "activate": true, "reset": true, "scale": true, "apply": true, "edit": true, "patch": true, "grant": true, "revoke": true, "download": true, "copy": true, "cp": true, "mv": true, "move": true, "sync": true,
}

func changeVerb(w string) bool {
	v, _, _ := strings.Cut(w, "-")
	return changeVerbs[v]
}

// wrapped judges the command after a wrapper's own options.
func (j *judge) wrapped(s *spec, operands []string) flow {
	if len(operands) < s.skip {
		return flow{}
	}
	rest := operands[s.skip:]
	if s.code != "" {
		o := objections[s.code]
		j.effect(o.effects)
		j.ask("shell."+s.code, o.reason)
	}
	if len(rest) == 0 {
		return flow{}
	}
	return j.command(rest)
}

// isCommand reports whether a text could be a command line.
func (j *judge) isCommand(text string) bool {
	if tooDeep(text) || tooMany(text) {
		return false
	}
	list, err := j.parse(text)
	return err == nil && len(list) > 0
}
