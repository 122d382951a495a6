package shell

import (
	"strings"

	"passepartout/internal/place"
)

// parsed is a command's arguments after its options were judged.
type parsed struct {
	operands []string
	given    map[string]string // options that were given, with their last value
	values   []optionValue     // every option that was given, in order
	text     []string          // values that are plain text, which may mention any path
	unsure   bool              // an argument with a hole may have been an option
}

// optionValue is one option with its value.
type optionValue struct{ name, value string }

// each returns the values of every time one of these options was given: programs take some of them again and again.
func (p *parsed) each(names ...string) []string {
	var out []string
	for _, v := range p.values {
		if contains(names, v.name) {
			out = append(out, v.value)
		}
	}
	return out
}

func (p *parsed) has(names ...string) bool {
	for _, n := range names {
		if _, ok := p.given[n]; ok {
			return true
		}
	}
	return false
}

func (p *parsed) set(name, value string) {
	if p.given == nil {
		p.given = make(map[string]string, 4)
	}
	p.given[name] = value
	p.values = append(p.values, optionValue{name, value})
}

// options judges the options in args by the rules of s and returns the rest.
func (j *judge) options(s *spec, args []string) parsed {
	var p parsed
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			p.operands = append(p.operands, args[i+1:]...)
			return p
		case len(a) < 2 || a[0] != '-' && (a[0] != '+' || s.opts[a[:2]] == 0):
			if a != "" && a[0] == hole {
				p.unsure = true
			}
			p.operands = append(p.operands, a)
			if s.first {
				p.operands = append(p.operands, args[i+1:]...)
				return p
			}
		case strings.HasPrefix(a, "--") || s.single || len(a) > 2 && s.opts[a] != 0:
			i += j.longOption(s, &p, a, args[i+1:])
		default:
			i += j.shortOptions(s, &p, a, args[i+1:])
		}
	}
	return p
}

// longOption judges --name, --name=value or, for single-dash programs, -name; it returns how many following arguments it used.
func (j *judge) longOption(s *spec, p *parsed, a string, rest []string) int {
	name, value, glued := strings.Cut(a, "=")
	rule, full := s.opts[name], name
	if rule == 0 && len(name) > 3 && !s.single {
		// GNU programs take any unambiguous beginning of a long option, so a beginning of a described one counts as it.
		for _, o := range sortedKeys(s.opts) {
			if strings.HasPrefix(o, name) && (rule == 0 || stricter(s.opts[o], rule)) {
				rule, full = s.opts[o], o
			}
		}
	}
	if rule == 0 {
		if !known(name) {
			j.ask("shell.dynamic-option", "an option is not known before it runs: "+plain(a))
		} else if s.strict || riskyName(name) {
			j.ask("shell.unknown-option", "the option is not among the described ones: "+plain(name))
		}
		j.optionValue(value, glued, rest)
		p.set(name, value)
		return 0
	}
	used := 0
	if takesValue(rule) && !glued {
		if len(rest) > 0 {
			value, used = rest[0], 1
		}
	}
	p.set(full, value)
	j.optionRule(p, rule, full, value)
	return used
}

// shortOptions judges a cluster such as -abcVALUE.
func (j *judge) shortOptions(s *spec, p *parsed, a string, rest []string) int {
	for k := 1; k < len(a); k++ {
		if a[k] == hole {
			j.ask("shell.dynamic-option", "an option is not known before it runs: "+plain(a))
			return 0
		}
		name := string(a[0]) + string(a[k])
		rule := s.opts[name]
		if rule == 0 {
			if s.strict && !isDigits(a[k:]) || a[0] == '-' && strings.IndexByte(riskyLetters, a[k]) >= 0 {
				j.ask("shell.unknown-option", "the option is not among the described ones: "+name)
			}
			p.set(name, a[k+1:])
			j.optionValue(a[k+1:], k+1 < len(a), rest)
			continue
		}
		if !takesValue(rule) {
			p.set(name, "")
			j.optionRule(p, rule, name, "")
			continue
		}
		value, used := a[k+1:], 0
		if value == "" && len(rest) > 0 {
			value, used = rest[0], 1
		}
		value = strings.TrimPrefix(value, "=")
		p.set(name, value)
		j.optionRule(p, rule, name, value)
		return used
	}
	return 0
}

// riskyLetters are the one-letter options that run, send or replace something in some widely used program. Where nobody described them for the
// program at hand, they are a question even if its other options are not.
const riskyLetters = "IFTX"

// riskyWords are the beginnings of long options that, judging by their names alone, run, send, remove or replace something.
var riskyWords = [...]string{"exec", "eval", "run", "shell", "command", "cmd", "script", "hook", "plugin", "load", "preload", "form", "data", "upload", "post", "send", "push", "delete", "remove", "purge", "prune", "destroy", "force", "overwrite", "config", "write", "output", "log-file", "pager", "editor", "browser", "filter-cmd", "source", "export", "import", "proxy", "token", "password", "daemon", "listen", "serve", "install"}

// riskyName reports a long option whose name begins with a risky word.
func riskyName(name string) bool {
	n := strings.TrimLeft(name, "-")
	for _, w := range riskyWords {
		if strings.HasPrefix(n, w) {
			return true
		}
	}
	return false
}

// optionValue looks at what may be the value of an option nobody described: a protected path, or a program the option would run.
func (j *judge) optionValue(value string, glued bool, rest []string) {
	if !glued && len(rest) > 0 {
		value = rest[0]
	}
	if !strings.ContainsAny(value, "/~") {
		return
	}
	if glued {
		j.suspicious(value[strings.IndexAny(value, "/~"):])
	}
	first, _, _ := strings.Cut(strings.TrimLeft(value, "!| "), " ")
	if shellPaths[first] || strings.HasSuffix(first, ".sh") || strings.HasSuffix(first, ".so") {
		j.ask("shell.exec-option", "an option seems to name a program or library to run: "+plain(value))
	}
}

func takesValue(rule byte) bool { return strings.IndexByte("vrwenxsdpu", rule) >= 0 }

func stricter(a, b byte) bool {
	return strings.IndexByte("!ex?wdrpnusv.", a) < strings.IndexByte("!ex?wdrpnusv.", b)
}

// optionRule applies one rule of the table to an option's value.
func (j *judge) optionRule(p *parsed, rule byte, name, value string) {
	switch rule {
	case 'r':
		j.readPath(strings.TrimPrefix(value, "@"))
	case 'w':
		j.writePath(value)
	case 'd':
		j.writeInto(value)
	case 'e':
		j.effect(Executes)
		j.nested(value)
		j.ask("shell.exec-option", "the option "+name+" runs a command")
	case 'x':
		j.effect(Executes)
		j.deny("shell.exec-option", "the option "+name+" makes the program run another one: "+plain(value))
	case 'n':
		j.host(value)
	case 'u':
		if isURL(value) {
			j.host(value)
		}
	case 's', 'v':
		p.text = append(p.text, value)
	case 'p':
		j.suspicious(value)
	case '?':
		j.ask("shell.option", "the option "+name+" needs a person's eye")
	case '!':
		j.deny("shell.option", "the option "+name+" is never needed and dangerous")
	}
}

// operandRoles judges operands by the roles of the table.
func (j *judge) operandRoles(s *spec, p parsed) {
	ops := p.operands
	for _, mode := range p.each("-m", "--mode") {
		if setuidMode(mode) {
			j.effect(Privilege)
			j.deny("shell.setuid", "makes a program run with the rights of its owner")
		}
	}
	for i, w := range ops {
		role := byte('.')
		if s.roles != "" {
			role = s.roles[min(i, len(s.roles)-1)]
		}
		last := i == len(ops)-1
		switch role {
		case 'r':
			j.readPath(w)
			if len(w) > 1 && w[0] == '@' {
				j.readPath(w[1:]) // a file of further arguments
			}
		case 'w':
			j.writePath(w)
		case 'i': // edited in place
			j.readPath(w)
			j.writePath(w)
		case 'm': // created, which destroys nothing
			if known(w) || !j.env.Sandboxed || sensitive(j.kind(w, j.resolve(w))) {
				j.writePath(w)
			} else {
				j.effect(Writes)
			}
		case 'X': // an archive, unpacked into the current folder unless an option says otherwise
			j.readPath(w)
			if i == 0 && !p.has("-d", "-l", "-p", "-t", "-v", "-z", "-Z", "-so") {
				j.writeInto(".")
			}
		case 'C': // copied to the last
			if w == "/dev/null" && i == 0 {
				j.ask("shell.truncate", "the file would be emptied")
			}
			if last && i > 0 {
				j.writePath(w)
			} else {
				j.readPath(w)
			}
		case 'L': // copied to the last
			if last && i > 0 {
				j.writePath(w)
			} else {
				j.readPath(w)
			}
		case 'M': // moved to the last
			j.moved(w, last && i > 0)
		case 'n':
			j.host(w)
		case 'D': // machine to ask or reach
			if !known(w) {
				j.ask("shell.host-unknown", "which machine would be contacted is not known before it runs")
			}
			if len(w) > 1 && w[0] == '@' {
				j.host(w[1:])
			}
			j.suspicious(w)
		case 'G': // pattern
			j.credentialPattern(w, p)
		case 'u': // file or URL
			if isURL(w) {
				j.host(w)
			} else {
				j.readPath(w)
			}
		case 'U': // repository address
			if !known(w) {
				j.ask("shell.host-unknown", "which machine would be contacted is not known before it runs")
			} else if isURL(w) {
				j.host(w)
			}
		case 'e':
			j.effect(Executes)
			j.nested(w)
		case 'k': // a package by name
			j.packageName(w)
		case '?':
			j.ask("shell.operand", "what the program does with the argument needs a person's eye: "+plain(w))
		case 's': // anything: look for what is protected
			j.suspicious(w)
		}
	}
}

// credentialPattern objects to searching whole trees for passwords and keys.
func (j *judge) credentialPattern(w string, p parsed) {
	if !p.has("-r", "-R", "--recursive", "-i", "-l") {
		return
	}
	lower := strings.ToLower(w)
	for _, s := range [...]string{"password", "passwd", "private key", "credential", "api_key", "apikey", "api-key", "secret_", "aws_", "begin rsa"} {
		if strings.Contains(lower, s) {
			j.ask("shell.find-secret", "looks for credentials in whole folders: "+plain(w))
			return
		}
	}
}

func (j *judge) moved(w string, target bool) {
	if target {
		j.writePath(w)
		if k := j.kind(w, j.resolve(w)); k == place.Sink {
			j.deny("shell.delete", "moves files into nothing")
		}
		return
	}
	j.readPath(w)
	abs := j.resolve(w)
	if j.protected(j.kind(w, abs), "moves away", w) {
		return
	}
	if j.bulk > 0 && (!known(w) || globbed(w)) {
		j.ask("shell.write-many", "moves every file that a list or search names, and the list is not known before it runs")
	}
	if known(abs) && !globbed(abs) && j.env.Places.Covers(abs) {
		j.deny("shell.delete-home", "moves away a home, a root or a top-level directory: "+plain(w))
	} else if known(abs) && !j.env.Places.Writable(unglob(abs)) && !j.scratch(abs) {
		j.ask("shell.write-outside", "moves files from outside the folders that may be written: "+plain(w))
	}
}

func isURL(w string) bool {
	i := strings.Index(w, "://")
	return i > 0 && i < 16 && !strings.ContainsAny(w[:i], "/ ")
}

// packageName judges an argument of an installer: a name of the registry is fine, an address or a path brings its own code.
func (j *judge) packageName(w string) {
	switch {
	case isURL(w), strings.HasPrefix(w, "git+"), strings.HasPrefix(w, "git@"), strings.HasPrefix(w, "github:"), strings.HasPrefix(w, "gitlab:"), strings.HasPrefix(w, "bitbucket:"),
		strings.Contains(w, "@git+"), strings.Contains(w, "@http"), strings.Contains(w, "@file:"):
		j.effect(Executes | Network)
		j.deny("shell.install-url", "installs and runs code from an address instead of the registry: "+plain(w))
	case !known(w):
		j.ask("shell.install-unknown", "which package would be installed is not known before it runs")
	case strings.HasPrefix(w, "/"), strings.HasPrefix(w, "~"), strings.HasPrefix(w, "../"), strings.HasSuffix(w, ".tgz"), strings.HasSuffix(w, ".whl"), strings.HasSuffix(w, ".tar.gz"),
		strings.HasSuffix(w, ".zip"), strings.HasSuffix(w, ".gem"), strings.HasSuffix(w, ".deb"), strings.HasSuffix(w, ".rpm"), strings.HasPrefix(w, "file:"):
		j.ask("shell.install-file", "installs a package from a file: "+plain(w))
	}
}
