package shell

import (
	"strings"
)

// special judges the programs whose arguments need more than the table can say; ok is false for all others.
func (j *judge) special(base string, args []string) (out flow, ok bool) {
	if isShell(base) {
		return j.shellProgram(base, args), true
	}
	if lang := languageOf(base); lang != "" {
		return j.interpreter(base, lang, args), true
	}
	switch base {
	case "env":
		return j.envProgram(args), true
	case "sudo", "doas", "pkexec", "gosu", "su-exec":
		return j.sudo(base, args), true
	case "su", "runuser":
		return j.su(args), true
	case "xargs", "gxargs":
		return j.xargs(args), true
	case "parallel", "rust-parallel":
		return j.parallel(args), true
	case "find", "gfind", "bfs":
		return j.findProgram(args), true
	case "fd", "fdfind":
		return j.fd(args), true
	case "git":
		return j.git(args), true
	case "sed", "gsed":
		return j.sed(args), true
	case "awk", "gawk", "mawk", "nawk", "original-awk", "goawk":
		return j.awk(args), true
	case "busybox", "toybox":
		return j.multicall(args), true
	case "watch":
		return j.watch(args), true
	case "rm", "grm", "rmdir", "unlink", "shred", "srm", "trash", "trash-put", "rip":
		return j.remove(base, args), true
	case "dd", "dcfldd", "dc3dd":
		return j.dd(args), true
	case "ln", "gln", "link":
		return j.link(args), true
	case "cat", "tac", "gcat":
		return j.cat(base, args), true
	case "base64", "base32", "gbase64", "xxd", "rev":
		return j.decoder(base, args), true
	case "tar", "gtar", "bsdtar":
		return j.tar(args), true
	case "curl":
		return j.curl(args), true
	case "wget", "wget2":
		return j.wget(args), true
	case "ssh", "autossh", "mosh", "slogin":
		return j.ssh(args), true
	case "scp", "sftp", "rsync":
		return j.copyRemote(base, args), true
	case "nc", "ncat", "netcat", "socat", "telnet", "openssl", "sqlite3", "psql", "mysql", "mariadb", "jq", "gojq", "jaq", "man", "less", "make", "gmake", "printenv", "dc", "mktemp", "kill", "killall", "pkill", "chmod", "docker", "podman", "nerdctl", "kubectl", "oc", "expr", "split":
		return j.tools(base, args)
	}
	return flow{}, false
}

func isShell(base string) bool {
	switch base {
	case "sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "fish", "csh", "tcsh", "elvish", "nu", "xonsh", "pwsh", "yash", "ksh93", "pdksh", "oksh", "rksh", "osh":
		return true
	}
	return false
}

// shellProgram judges starting a shell.
func (j *judge) shellProgram(base string, args []string) flow {
	noexec, script := false, ""
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--version" || a == "--help":
			return flow{}
		case a == "--rcfile" || a == "--init-file":
			if i+1 < len(args) {
				i++
				j.runScript(args[i], func(t string) { j.nested(t) })
			}
		case a == "--":
			if i+1 < len(args) {
				script = args[i+1]
				args = args[i+2:]
			}
			i = len(args)
		case strings.HasPrefix(a, "--"):
		case len(a) > 1 && (a[0] == '-' || a[0] == '+'):
			flags := a[1:]
			noexec = noexec || strings.Contains(flags, "n") && a[0] == '-'
			if strings.Contains(flags, "c") && a[0] == '-' {
				return j.shellText(args[i+1:], noexec)
			}
			if strings.HasSuffix(flags, "o") || strings.HasSuffix(flags, "O") {
				i++
			}
		default:
			script = a
			args = args[i+1:]
			i = len(args)
		}
	}
	if noexec {
		j.readPath(script)
		return flow{}
	}
	switch script {
	case "":
		if j.stdin.piped {
			saved := j.stdin
			j.stdin = flow{}
			j.runFlow(saved, base)
			return flow{net: saved.net}
		}
		j.effect(Executes)
		j.deny("shell.escape", "opens a shell for whoever is at the other end")
		return flow{}
	case "-", "/dev/stdin", "/dev/fd/0":
		j.runFlow(j.stdin, base)
		return flow{}
	case procPath:
		j.runFlow(j.files[procPath], base)
		return flow{}
	}
	for _, a := range args {
		j.suspicious(a)
	}
	saved, vars := j.args, j.vars
	j.args, j.vars, j.script = args, cloneMap(vars), script
	j.runScript(script, func(t string) { j.nested(t) })
	j.args, j.vars, j.script = saved, vars, ""
	return flow{net: j.stdin.net}
}

// shellText judges the argument of -c in a fresh shell.
func (j *judge) shellText(args []string, noexec bool) flow {
	for len(args) > 0 && len(args[0]) > 1 && (args[0][0] == '-' || args[0][0] == '+') {
		if strings.ContainsAny(args[0][1:], "oO") && len(args) > 1 {
			args = args[1:] // the name of what is switched
		}
		args = args[1:]
	}
	if len(args) == 0 || noexec {
		return flow{}
	}
	text := args[0]
	saved, cwd, vars, funcs, script := j.args, j.cwd, j.vars, j.funcs, j.script
	j.args, j.vars, j.funcs = nil, cloneMap(vars), nil
	if len(args) > 1 {
		j.script = args[1]
		j.args = args[2:]
	}
	j.evalText(text, "the shell")
	j.args, j.cwd, j.vars, j.funcs, j.script = saved, cwd, vars, funcs, script
	return flow{net: j.stdin.net || j.netSubst}
}

// envFlags are the long options of env that change nothing about which program runs, or have their value glued to them.
var envFlags = set("--argv0 --unset --ignore-environment --null --debug --block-signal --default-signal --ignore-signal --list-signal-handling --help --version")

// envProgram judges env: its variables, then its command.
func (j *judge) envProgram(args []string) flow {
	vars, cwd := cloneMap(j.vars), j.cwd
	defer func() { j.vars, j.cwd = vars, cwd }()
	for i := 0; i < len(args); i++ {
		a := args[i]
		next := func() string {
			if i+1 < len(args) {
				i++
				return args[i]
			}
			return ""
		}
		switch {
		case a == "-S" || a == "--split-string":
			return j.nested(next() + " " + strings.Join(args[min(i+1, len(args)):], " "))
		case strings.HasPrefix(a, "-S"):
			return j.nested(a[2:] + " " + strings.Join(args[i+1:], " "))
		case strings.HasPrefix(a, "--split-string="):
			return j.nested(a[15:] + " " + strings.Join(args[i+1:], " "))
		case a == "-C" || a == "--chdir":
			j.chdir([]string{next()})
		case strings.HasPrefix(a, "--chdir="):
			j.chdir([]string{a[8:]})
		case strings.HasPrefix(a, "-C"):
			j.chdir([]string{a[2:]})
		case a == "-u" || a == "--unset" || a == "-P":
			if next(); a == "-P" {
				j.ask("shell.env-path", "programs would be looked up in another folder")
			}
		case strings.HasPrefix(a, "-P"):
			j.ask("shell.env-path", "programs would be looked up in another folder")
		case a == "-a" || a == "--argv0":
			next() // the name it runs under
		case strings.HasPrefix(a, "--"):
			if name, _, _ := strings.Cut(a, "="); !envFlags[name] {
				j.ask("shell.unknown-option", "the option is not among the described ones: "+plain(a))
			}
		case len(a) > 1 && a[0] == '-':
			if strings.Trim(a[1:], "0iv") != "" && !strings.HasPrefix(a, "-u") && !strings.HasPrefix(a, "-a") {
				j.ask("shell.unknown-option", "the option is not among the described ones: "+plain(a))
			}
		case strings.Contains(a, "="):
			n, v, _ := strings.Cut(a, "=")
			j.envVar(n, v)
			j.setVar(n, v)
		case a == "-":
		default:
			return j.command(args[i:])
		}
	}
	if len(args) == 0 || args[len(args)-1] != "--version" && args[len(args)-1] != "--help" {
		j.ask("shell.environment", "prints the environment, where credentials are often kept")
	}
	return flow{}
}

var sudoSpec = &spec{first: true, opts: map[string]byte{
	"-u": 'v', "-g": 'v', "-h": 'v', "-p": 'v', "-C": 'v', "-r": 'v', "-t": 'v', "-T": 'v', "-U": 'v', "-D": 'v', "-R": 'v', "-a": 'v', "-c": 'v',
	"--user": 'v', "--group": 'v', "--host": 'v', "--prompt": 'v', "--chdir": 'v', "--chroot": 'v', "--role": 'v', "--type": 'v', "--other-user": 'v', "--close-from": 'v',
}}

// sudo judges acting as another user: never harmless, and worse when it changes anything.
func (j *judge) sudo(base string, args []string) flow {
	j.effect(Privilege)
	p := j.options(sudoSpec, args)
	j.ask("shell.privilege", "runs with the rights of another user")
	ops := p.operands
	if base == "gosu" || base == "su-exec" {
		if len(ops) > 0 {
			ops = ops[1:]
		}
	}
	for len(ops) > 0 && strings.Contains(ops[0], "=") && ops[0][0] != '/' {
		n, v, _ := strings.Cut(ops[0], "=")
		j.envVar(n, v)
		ops = ops[1:]
	}
	switch {
	case len(ops) == 0 && p.has("-s", "-i", "--shell", "--login"):
		j.deny("shell.escape", "opens a shell with the rights of another user")
	case len(ops) == 0 && p.has("-S", "--stdin"):
	case p.has("-e", "--edit"):
		for _, w := range ops {
			j.writePath(w)
		}
	case len(ops) > 0:
		if p.has("-S", "--stdin") && j.stdin.piped {
			j.deny("shell.password", "feeds a password to gain the rights of another user")
		}
		if base == "pkexec" || len(ops) > 0 {
			return j.command(ops)
		}
	}
	return flow{}
}

// su judges switching user, with or without a command.
func (j *judge) su(args []string) flow {
	j.effect(Privilege)
	j.ask("shell.privilege", "runs with the rights of another user")
	for i, a := range args {
		if (a == "-c" || a == "--command") && i+1 < len(args) {
			return j.nested(args[i+1])
		}
		if v, ok := strings.CutPrefix(a, "--command="); ok {
			return j.nested(v)
		}
		if a == "--" && i+1 < len(args) {
			return j.command(args[i+1:])
		}
	}
	j.deny("shell.escape", "opens a shell with the rights of another user")
	return flow{}
}

var xargsSpec = &spec{first: true, strict: true, opts: map[string]byte{
	"-a": 'r', "--arg-file": 'r', "-d": 'v', "--delimiter": 'v', "-E": 'v', "-e": '.', "-I": 'v', "-J": 'v', "-i": '.', "-L": 'v', "-l": '.', "-n": 'v', "--max-args": 'v', "-P": 'v', "--max-procs": 'v',
	"-s": 'v', "--max-chars": 'v', "-0": '.', "--null": '.', "-o": '.', "--open-tty": '.', "-p": '.', "--interactive": '.', "-r": '.', "--no-run-if-empty": '.', "-t": '.', "--verbose": '.', "-x": '.', "--exit": '.',
	"--replace": '.', "--max-lines": '.', "--eof": '.', "--process-slot-var": 'v', "--show-limits": '.', "-R": 'v', "-S": 'v', "--help": '.', "--version": '.',
}}

// xargs judges the command it builds from standard input.
func (j *judge) xargs(args []string) flow {
	var p parsed
	repl, i := "", 0
	for ; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			i++
			break
		}
		if len(a) < 2 || a[0] != '-' {
			break
		}
		switch {
		case strings.HasPrefix(a, "-i"), strings.HasPrefix(a, "--replace"): // the value is optional and glued
			repl = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(a, "-i"), "--replace"), "=")
			if repl == "" {
				repl = "{}"
			}
		case strings.HasPrefix(a, "-l"), strings.HasPrefix(a, "-e"):
		case strings.HasPrefix(a, "--"):
			i += j.longOption(xargsSpec, &p, a, args[i+1:])
		default:
			i += j.shortOptions(xargsSpec, &p, a, args[i+1:])
		}
	}
	for _, o := range []string{"-I", "-J"} {
		if v, ok := p.given[o]; ok {
			repl = v
		}
	}
	items := []string{anything}
	if in := j.stdin; in.known && known(in.text) && !p.has("-a", "--arg-file", "-d", "--delimiter") && len(in.text) < 4096 && !strings.ContainsAny(in.text, `'"\`) {
		items = strings.Fields(in.text) // xargs takes quotes and backslashes away itself
	}
	argv := append([]string(nil), args[min(i, len(args)):]...)
	if len(argv) == 0 {
		argv = []string{"echo"}
	}
	saved := j.stdin
	j.stdin = flow{}
	defer func() { j.stdin = saved }()
	if repl == "" {
		argv = append(argv, items...)
	} else {
		value := anything
		if len(items) == 1 {
			value = items[0]
		}
		if !known(value) {
			j.ask("shell.exec", "puts text that is not known before it runs into the middle of a command")
		}
		for i := range argv {
			argv[i] = strings.ReplaceAll(argv[i], repl, value)
		}
	}
	j.bulk++
	out := j.command(argv)
	j.bulk--
	return flow{net: out.net || saved.net}
}

// Options of GNU parallel: letters with a value, and long ones without.
var (
	parallelValues = set("-j -P -a -S -I -n -N -C -L -d")
	parallelFlags  = set("--dry-run --keep-order --bar --line-buffer --eta --progress --null --no-notice --will-cite --tag --xargs --group --ungroup --verbose --version --help")
)

// parallel judges GNU parallel: the template with each literal argument, and never less than a question.
func (j *judge) parallel(args []string) flow {
	j.ask("shell.exec", "runs its arguments as commands")
	var tmpl []string
	items := []string{}
	list := false
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case strings.HasPrefix(a, ":::"):
			list = true
		case list:
			items = append(items, a)
		case len(tmpl) == 0 && strings.HasPrefix(a, "-"):
			if parallelValues[a] || strings.HasPrefix(a, "--") && !strings.Contains(a, "=") && !parallelFlags[a] {
				i++
			}
		default:
			tmpl = append(tmpl, a)
		}
	}
	if len(items) == 0 {
		items = []string{anything}
	}
	if len(tmpl) == 0 {
		for _, it := range items {
			j.nested(it)
		}
		return flow{}
	}
	for _, it := range items[:min(len(items), maxLoop)] {
		line := make([]string, len(tmpl))
		used := false
		for i, t := range tmpl {
			line[i] = strings.NewReplacer("{}", it, "{1}", it, "{.}", it, "{/}", it, "{2}", anything).Replace(t)
			used = used || line[i] != t
		}
		if !used {
			line = append(line, it)
		}
		j.command(line)
		if len(tmpl) == 1 && strings.Contains(tmpl[0], " ") {
			j.nested(strings.Join(line, " "))
		}
	}
	return flow{net: true}
}

// multicall judges busybox and its like: the applet is the program.
func (j *judge) multicall(args []string) flow {
	if len(args) == 0 || args[0] == "--list" || args[0] == "--help" || args[0] == "--list-full" {
		return flow{}
	}
	if !known(args[0]) || strings.HasPrefix(args[0], "-") {
		j.ask("shell.dynamic", "which applet would run is not known")
		return flow{}
	}
	return j.command(args)
}

// watch judges a command that is repeated; without -x it goes through a shell.
func (j *judge) watch(args []string) flow {
	s := &spec{first: true, opts: map[string]byte{"-n": 'v', "--interval": 'v', "-q": 'v', "--equexit": 'v', "-s": 'v', "--shotsdir": 'd'}}
	p := j.options(s, args)
	if len(p.operands) == 0 {
		return flow{}
	}
	if p.has("-x", "--exec") {
		return j.command(p.operands)
	}
	return j.nested(strings.Join(p.operands, " "))
}
