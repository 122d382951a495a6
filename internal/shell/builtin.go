package shell

import (
	"encoding/base64"
	"encoding/hex"
	"path"
	"strings"
)

// builtin judges what the shell does itself; ok is false when base is no builtin.
func (j *judge) builtin(base string, args []string) (out flow, ok bool) {
	switch base {
	case ":", "true", "false", "break", "continue", "return", "exit", "wait", "times", "pwd", "dirs", "popd", "jobs", "fg", "bg", "getopts", "umask", "suspend", "logout", "disown", "shift", "ulimit", "caller":
		for _, a := range args {
			j.subscript(a) // wait -p takes the name of a variable
		}
		if base == "ulimit" || base == "umask" {
			return flow{}, true
		}
		if base == "pwd" {
			return flow{known: true, text: j.cwd + "\n"}, true
		}
		return flow{known: true}, true
	case "echo":
		return j.echo(args), true
	case "printf":
		return j.printf(args), true
	case "cd", "pushd", "chdir":
		j.chdir(args)
		return flow{known: base == "cd"}, true
	case "eval":
		return j.eval(args), true
	case ".", "source":
		j.sourceFile(args)
		return flow{}, true
	case "exec", "command", "builtin", "noglob", "nocorrect", "coproc":
		return j.execBuiltin(base, args), true
	case "trap":
		if len(args) > 0 && args[0] != "-l" && args[0] != "-p" && args[0] != "-" {
			if args[0] == "--" {
				args = args[1:]
			}
			if len(args) > 0 {
				j.nested(args[0])
			}
		}
		return flow{}, true
	case "set":
		j.set(args)
		return flow{}, true
	case "read", "mapfile", "readarray", "unset", "let":
		j.assignBuiltin(base, args)
		return flow{}, true
	case "export", "declare", "typeset", "local", "readonly", "integer", "float":
		for _, a := range args {
			if n, v, found := strings.Cut(a, "="); found {
				j.envVar(n, v)
				j.setVar(n, v)
			}
		}
		return flow{}, true
	case "test", "[":
		for i, a := range args {
			if (a == "-v" || a == "-R") && i+1 < len(args) {
				j.subscript(args[i+1])
			}
		}
		return flow{}, true
	case "shopt", "bind", "complete", "compopt", "compgen", "enable", "hash", "history", "fc", "alias", "unalias", "type", "help", "zmodload", "autoload", "setopt", "unsetopt", "emulate":
		return j.shellAdmin(base, args), true
	}
	return flow{}, false
}

// echo knows its own output.
func (j *judge) echo(args []string) flow {
	newline, escapes := true, false
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && strings.Trim(args[0][1:], "neE") == "" {
		newline = newline && !strings.Contains(args[0], "n")
		escapes = escapes || strings.Contains(args[0], "e")
		args = args[1:]
	}
	text := strings.Join(args, " ")
	if globbed(text) {
		text = unglob(text)
	}
	if escapes {
		text = ansiC(text)
	}
	if newline {
		text += "\n"
	}
	return flow{known: true, text: text, net: j.netSubst}
}

// printf knows its output for the formats that matter: text and %s, %b.
func (j *judge) printf(args []string) flow {
	if len(args) > 1 && args[0] == "-v" {
		j.subscript(args[1])
		j.setVar(args[1], anything)
		return flow{known: true}
	}
	if len(args) > 0 && strings.HasPrefix(args[0], "-v") {
		j.subscript(args[0][2:])
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return flow{known: true}
	}
	format, rest := ansiC(unglob(args[0])), args[1:]
	var b strings.Builder
	for {
		used := 0
		for i := 0; i < len(format); i++ {
			if format[i] != '%' || i+1 == len(format) {
				b.WriteByte(format[i])
				continue
			}
			i++
			switch format[i] {
			case '%':
				b.WriteByte('%')
			case 's', 'b', 'd':
				if used < len(rest) {
					v := unglob(rest[used])
					if format[i] == 'b' {
						v = ansiC(v)
					}
					b.WriteString(v)
					used++
				}
			default:
				return flow{net: j.netSubst}
			}
		}
		if used == 0 || used >= len(rest) || b.Len() > MaxBytes {
			break
		}
		rest = rest[used:]
	}
	return flow{known: true, text: b.String(), net: j.netSubst}
}

// chdir follows a change of directory.
func (j *judge) chdir(args []string) {
	dir, found := "", false
	for _, a := range args {
		if a == "--" || len(a) > 1 && (a[0] == '-' || a[0] == '+') {
			continue
		}
		if !found {
			dir, found = a, true
		}
	}
	switch {
	case !found:
		dir = j.home()
	case dir == "-" || globbed(dir):
		dir = anything
	}
	if !known(dir) {
		j.cwd = anything
		if strings.HasPrefix(dir, "/") || dir[0] != hole {
			j.cwd = path.Clean(dir)
		}
		return
	}
	j.cwd = j.resolve(dir)
	delete(j.vars, "PWD")
}

// eval judges the text its arguments make.
func (j *judge) eval(args []string) flow {
	text := strings.Join(args, " ")
	j.evalText(text, "eval")
	return flow{net: j.netSubst}
}

// evalText judges text that a shell would run, part of which may be unknown.
func (j *judge) evalText(text, by string) {
	if j.netSubst && !known(text) {
		j.effect(Executes | Network)
		j.deny("shell.run-download", "what another machine answers would be run as a command")
	}
	if strings.Trim(text, "\x00 \t\n\"'") == "" && !known(text) {
		j.effect(Executes)
		j.ask("shell.dynamic", "the text that "+by+" would run is not known before it runs")
		return
	}
	j.nested(unglob(text))
}

// sourceFile judges running a file in the current shell.
func (j *judge) sourceFile(args []string) {
	if len(args) == 0 {
		return
	}
	if args[0] == "--" && len(args) > 1 {
		args = args[1:]
	}
	if args[0] == procPath || strings.HasPrefix(args[0], "/dev/stdin") || args[0] == "/dev/fd/0" {
		f := j.stdin
		if args[0] == procPath {
			f = j.files[procPath]
		}
		j.runFlow(f, "the shell")
		return
	}
	j.runScript(args[0], func(text string) { j.nested(text) })
}

// runFlow judges text that reaches a shell through a pipe or a process substitution.
func (j *judge) runFlow(f flow, by string) {
	j.effect(Executes)
	j.ask("shell.run-piped", "text that is fed to "+by+" would be run")
	switch {
	case f.known && known(f.text):
		j.nested(f.text)
	case f.net:
		j.deny("shell.run-download", "what another machine answers would be run by "+by)
	case f.known && strings.Trim(f.text, "\x00 \n") != "":
		j.nested(f.text)
	default:
		j.deny("shell.run-unread", "text that cannot be read beforehand would be run by "+by)
	}
}

// execBuiltin judges exec, command and builtin.
func (j *judge) execBuiltin(base string, args []string) flow {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		a := args[0]
		args = args[1:]
		if base == "command" && (a == "-v" || a == "-V") {
			return flow{}
		}
		if base == "exec" && strings.Trim(a, "-cl") == "a" && strings.HasSuffix(a, "a") && len(args) > 0 {
			args = args[1:] // the name it runs under
		}
		if a == "--" {
			break
		}
	}
	if len(args) == 0 {
		return flow{known: true}
	}
	return j.command(args)
}

// set handles set -- args and refuses nothing else: options of set only change how this text runs.
func (j *judge) set(args []string) {
	for i, a := range args {
		if len(a) > 1 && (a[0] == '-' || a[0] == '+') && strings.Contains(a, "e") || a == "errexit" && i > 0 {
			j.errexit = a[0] == '-' || a == "errexit" && args[i-1] == "-o"
		}
		if a == "history" && i > 0 && args[i-1] == "+o" {
			j.ask("shell.history-clear", "keeps commands out of the history")
		}
		if a == "--" {
			j.args = args[i+1:]
			return
		}
		if a != "" && a[0] != '-' && a[0] != '+' {
			if i > 0 && (args[i-1] == "-o" || args[i-1] == "+o") {
				continue
			}
			j.args = args[i:]
			return
		}
	}
}

// assignBuiltin judges the builtins that set or evaluate variables by name.
func (j *judge) assignBuiltin(base string, args []string) {
	skip := false
	for i, a := range args {
		j.subscript(a)
		if skip {
			skip = false
			continue
		}
		if base == "mapfile" || base == "readarray" {
			if a == "-C" && i+1 < len(args) {
				j.nested(args[i+1])
			}
		}
		if strings.HasPrefix(a, "-") {
			if base == "read" && strings.Contains(a, "s") && a[1] != 'p' {
				j.ask("shell.password", "reads a password from the person")
			}
			skip = len(a) == 2 && strings.IndexByte("dinNptuaCcOs", a[1]) >= 0 && a != "-s" && a != "-a"
			continue
		}
		if !known(a) {
			continue
		}
		switch base {
		case "unset":
			if strings.HasPrefix(a, "HIST") {
				j.ask("shell.history-clear", "keeps commands out of the history")
			}
			delete(j.vars, a)
			j.setVar(a, anything)
		default:
			if n, v, ok := strings.Cut(a, "="); ok {
				j.envVar(n, v)
				a = n
			}
			j.setVar(a, anything)
		}
	}
}

// shellAdmin judges the builtins that look at or change the shell itself.
func (j *judge) shellAdmin(base string, args []string) flow {
	opt := ""
	if len(args) > 0 {
		opt = args[0]
	}
	switch base {
	case "enable":
		if strings.HasPrefix(opt, "-") && strings.Contains(opt, "f") {
			j.deny("shell.load-library", "loads a shared object into the shell")
		}
	case "zmodload":
		j.ask("shell.exec", "loads a module into the shell")
	case "hash":
		for _, a := range args {
			if strings.HasPrefix(a, "-") && strings.Contains(a, "p") {
				j.deny("shell.hash", "makes the shell run another file for a command's name")
			}
		}
	case "history", "fc":
		j.history(base, args)
	case "bind", "complete":
		if len(args) > 0 && opt != "-p" && opt != "-l" {
			j.ask("shell.persist", "binds a command to a key or completion")
		}
		for i, a := range args {
			if (a == "-C" || a == "-F" || a == "-x") && i+1 < len(args) {
				j.nested(args[i+1])
			}
		}
	case "compgen":
		for i, a := range args {
			if (a == "-C" || a == "-F" || a == "-W") && i+1 < len(args) {
				j.nested(args[i+1])
			}
		}
	case "shopt", "setopt":
		if strings.Contains(strings.Join(args, " "), "alias") {
			j.ask("shell.alias", "makes aliases replace commands, which this analysis does not follow")
		}
	case "alias":
		for _, a := range args {
			if n, v, ok := strings.Cut(a, "="); ok && table()[n] != nil {
				j.ask("shell.alias", "gives a known program another meaning: "+n)
				j.nested(v)
			}
		}
	case "emulate", "autoload":
		j.ask("shell.exec", "changes how the shell reads commands")
	}
	return flow{}
}

// history judges reading, writing or clearing the record of commands.
func (j *judge) history(base string, args []string) {
	if base == "history" && (len(args) == 0 || isDigits(args[0])) {
		j.ask("shell.read-history", "shows earlier commands, in which credentials are often found")
	}
	for i, a := range args {
		switch {
		case a == "-c" || a == "-d" && base == "history":
			j.deny("shell.history-clear", "removes the record of what was run")
		case a == "-r" || a == "-n" || a == "-a" || a == "-w":
			if i+1 < len(args) {
				if a == "-r" || a == "-n" {
					j.readPath(args[i+1])
				} else {
					j.writePath(args[i+1])
				}
			}
		case base == "fc" && (a == "-e" || a == "-s"):
			j.ask("shell.exec", "runs an earlier command again")
		}
	}
}

// decoded is the output of a decoder fed with known text.
func decoded(text string, how string) (string, bool) {
	s := strings.Map(func(r rune) rune {
		if r == '\n' || r == ' ' || r == '\t' {
			return -1
		}
		return r
	}, text)
	switch how {
	case "base64":
		out, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			out, err = base64.RawStdEncoding.DecodeString(s)
		}
		return string(out), err == nil
	case "hex":
		out, err := hex.DecodeString(s)
		return string(out), err == nil
	}
	return "", false
}
