package shell

import (
	"strings"
)

// tools judges programs whose dangerous side is in the grammar of an operand.
func (j *judge) tools(base string, args []string) (flow, bool) {
	switch base {
	case "nc", "ncat", "netcat", "socat", "telnet":
		return j.rawSocket(base, args), true
	case "sqlite3":
		return j.sqlite(args), true
	case "psql", "mysql", "mariadb":
		return j.database(base, args), true
	case "jq", "gojq", "jaq":
		return j.jq(args), true
	case "man":
		return j.man(args), true
	case "less":
		return j.less(args), true
	case "make", "gmake":
		return j.make(args), true
	case "dc":
		for _, a := range args {
			if strings.Contains(a, "!") {
				j.deny("shell.exec-option", "the calculator's ! runs a command: "+plain(a))
			}
		}
		return flow{}, true
	case "printenv":
		return j.printenv(args), true
	case "kill", "killall", "pkill":
		return j.kill(base, args), true
	case "chmod":
		return j.chmod(args), true
	case "docker", "podman", "nerdctl":
		return j.docker(args), true
	case "kubectl", "oc":
		return j.kubectl(args), true
	case "openssl":
		return j.openssl(args), true
	}
	return flow{}, false
}

// rawSocket judges programs that connect standard input to the network.
func (j *judge) rawSocket(base string, args []string) flow {
	j.effect(Network)
	listen := false
	for i, a := range args {
		lower := strings.ToLower(a)
		switch {
		case base != "socat" && base != "telnet" && len(a) > 1 && a[0] == '-' && a[1] != '-' && strings.ContainsAny(a, "ec") || a == "--exec" || a == "--sh-exec" || a == "--lua-exec":
			j.effect(Executes)
			j.deny("shell.remote-shell", "connects a program to the network")
		case strings.Contains(lower, "exec:") || strings.Contains(lower, "system:") || strings.Contains(lower, "docker.sock"):
			j.effect(Executes)
			j.deny("shell.remote-shell", "connects a program or a control socket to the network")
		case len(a) > 1 && a[0] == '-':
			listen = listen || a[1] != '-' && strings.Contains(a, "l") || a == "--listen"
		case base != "socat" && known(a) && !isDigits(a) && (i == 0 || !strings.HasPrefix(args[i-1], "-p")):
			j.host(a)
		case base == "socat":
			j.suspicious(a)
			if f := strings.Split(a, ":"); len(f) == 3 && strings.Contains(lower, "connect") || len(f) == 3 && strings.HasPrefix(lower, "tcp") {
				j.host(f[1])
			}
			listen = listen || strings.Contains(lower, "listen")
		}
	}
	switch {
	case listen:
		j.ask("shell.listen", "opens the machine to connections")
	case j.stdin.piped:
		j.deny("shell.upload", "sends what it is fed to another machine, with nothing in between")
	default:
		j.ask("shell.net", "opens a raw connection")
	}
	return flow{net: true}
}

// sqlite judges the database shell: plain queries are fine, its dot-commands can run programs.
func (j *judge) sqlite(args []string) flow {
	s := &spec{single: true, opts: map[string]byte{"-cmd": 'v', "-init": 'v', "-separator": 'v', "-newline": 'v', "-nullvalue": 'v', "-mmap": 'v', "-vfs": 'v', "-lookaside": 'v', "-maxsize": 'v', "-pagecache": 'v'}}
	p := j.options(s, args)
	if helpOnly(args) {
		return flow{}
	}
	sql := strings.Join(p.each("-cmd"), "\n") + "\n"
	for i, w := range p.operands {
		if i == 0 {
			j.readPath(w)
			continue
		}
		sql += w + "\n"
	}
	if j.stdin.piped {
		if !j.stdin.known {
			j.ask("shell.run-unread", "statements that cannot be read beforehand would be run")
		}
		sql += j.stdin.text
	}
	for _, f := range p.each("-init") {
		j.runScript(f, func(t string) { sql += t })
	}
	j.sql(sql, true)
	return flow{}
}

// sql judges statements: reading is fine when readOK, everything else is a question, and what reaches the shell is refused.
func (j *judge) sql(text string, readOK bool) {
	for _, line := range strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == ';' }) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		lower := strings.ToLower(line)
		word, rest, _ := strings.Cut(lower, " ")
		switch {
		case word == ".shell" || word == ".system" || strings.HasPrefix(lower, `\!`) || strings.Contains(lower, "program '") || strings.Contains(lower, "xp_cmdshell") || strings.Contains(lower, "sys_exec") || strings.Contains(lower, "load_extension") || word == ".load" || word == "system" || strings.HasPrefix(rest, "|") || word == `\copy` || strings.Contains(lower, "into outfile") || strings.Contains(lower, "into dumpfile"):
			j.effect(Executes)
			j.deny("shell.sql-exec", "the statement runs a program or writes a file: "+plain(line))
			if strings.HasPrefix(rest, "sh") || rest != "" && word[0] == '.' {
				j.suspicious(line)
			}
		case word == "select" && !strings.Contains(lower, " into ") || word == ".tables" || word == ".schema" || word == ".mode" || word == ".headers" || word == ".databases" || word == ".indexes" || word == "explain" || word == ".help" || word == ".quit" || word == "show" || word == "describe" || word == ".dump":
			if !readOK {
				j.ask("shell.sql", "queries a database")
			}
		default:
			j.ask("shell.sql", "the statement can change data: "+plain(line))
		}
		j.suspicious(line)
	}
}

// database judges clients of database servers: always at least a question.
func (j *judge) database(base string, args []string) flow {
	if helpOnly(args) {
		return flow{}
	}
	s := &spec{opts: map[string]byte{"-c": 'v', "--command": 'v', "-e": 'v', "--execute": 'v', "-f": 'r', "--file": 'r', "-o": 'v', "--output": 'v', "-L": 'w', "--log-file": 'w', "-h": 'n', "--host": 'n', "--pager": 'x', "--tee": 'w', "-U": 'v', "-p": '.', "-P": 'v', "-d": 'v', "-u": 'v', "-v": 'v'}}
	p := j.options(s, args)
	j.effect(Network)
	j.ask("shell.database", "works on a database server")
	orders := []string{"-e", "--execute"}
	if base == "psql" {
		orders = []string{"-c", "--command"}
	}
	for _, v := range p.each(orders...) {
		j.sql(v, false)
	}
	for _, o := range []string{"-o", "--output"} {
		if v, ok := p.given[o]; ok && base == "psql" {
			if cmd, pipe := strings.CutPrefix(v, "|"); pipe {
				j.deny("shell.sql-exec", "the output is piped into a command")
				j.nested(cmd)
			} else {
				j.writePath(v)
			}
		}
	}
	if j.stdin.known {
		j.sql(j.stdin.text, false)
	}
	return flow{net: true}
}

// jq judges the JSON filter: its language only reads, but it can see the environment and load files.
func (j *judge) jq(args []string) flow {
	first, need := true, 0
	for i, a := range args {
		switch {
		case need > 0:
			need--
			if need == 0 && (args[max(i-2, 0)] == "--slurpfile" || args[max(i-2, 0)] == "--rawfile" || args[max(i-2, 0)] == "--argfile") {
				j.readPath(a)
			}
		case a == "--arg" || a == "--argjson" || a == "--slurpfile" || a == "--rawfile" || a == "--argfile":
			need = 2
		case a == "--indent" || a == "-L":
			need = 1
		case a == "-f" || a == "--from-file":
			first = false
			if i+1 < len(args) {
				j.readPath(args[i+1])
			}
		case len(a) > 1 && a[0] == '-':
		case first:
			first = false
			if strings.Contains(a, "$ENV") || strings.Contains(a, "env") && (a == "env" || strings.HasPrefix(a, "env.") || strings.HasPrefix(a, "env|") || strings.Contains(a, "|env") || strings.Contains(a, "| env")) {
				j.ask("shell.environment", "prints the environment, where credentials are often kept")
			}
			if strings.Contains(a, "import ") || strings.Contains(a, "include ") {
				j.ask("shell.exec", "the filter loads another file")
			}
		default:
			j.readPath(a)
		}
	}
	return flow{net: j.stdin.net}
}

func (j *judge) man(args []string) flow {
	s := &spec{opts: map[string]byte{"-P": 'x', "--pager": 'x', "-H": 'x', "--html": 'x', "-C": '?', "--config-file": '?', "-M": '?', "--manpath": '?', "-p": '?', "--preprocessor": '?', "-S": 'v', "-s": 'v', "-L": 'v', "-r": 'v', "-l": '.', "-E": 'v', "-e": 'v', "-m": 'v', "-B": 'x', "-X": '.', "-T": '.', "-R": 'v'}}
	p := j.options(s, args)
	for _, w := range p.operands {
		if strings.ContainsAny(w, "/.~\x00") {
			j.readPath(w)
		}
	}
	return flow{}
}

func (j *judge) less(args []string) flow {
	s := &spec{opts: map[string]byte{"-o": 'w', "-O": 'w', "--log-file": 'w', "--LOG-FILE": 'w', "-k": '?', "--lesskey-file": '?', "--lesskey-src": '?', "--lesskey-content": '!', "-p": 'v', "--pattern": 'v', "-t": '.', "-T": '?', "-X": '.', "-F": '.', "-I": '.', "-b": 'v', "-h": 'v', "-j": 'v', "-x": 'v', "-y": 'v', "-z": 'v', "-P": 'v', "-D": 'v'}}
	var rest []string
	for _, a := range args {
		if len(a) > 1 && a[0] == '+' {
			cmd := strings.TrimLeft(a, "+")
			if cmd == "" || strings.IndexByte("/?Gg&", cmd[0]) >= 0 || cmd == "F" || isDigits(cmd) {
				continue
			}
			j.deny("shell.exec-option", "the pager would run a command at its start: "+plain(a))
			continue
		}
		rest = append(rest, a)
	}
	p := j.options(s, rest)
	for _, w := range p.operands {
		j.readPath(w)
	}
	return flow{net: j.stdin.net}
}

var makeSpec = &spec{opts: map[string]byte{
	"-f": 'v', "--file": 'v', "--makefile": 'v', "-C": 'v', "--directory": 'v', "-I": 'v', "--include-dir": 'v', "-o": 'v', "--old-file": 'v', "-W": 'v', "--what-if": 'v', "--new-file": 'v', "--eval": 'x', "-E": 'x', "-j": '.', "--jobs": '.', "-l": '.', "--load-average": '.', "-O": '.', "--output-sync": '.', "--debug": '.',
}}

// changingTargets are the targets of build tools that, by convention, reach beyond the build folder.
var changingTargets = set("clean distclean mrproper realclean maintainer-clean install uninstall deploy publish release push upload destroy reset purge nuke wipe down stop drop dropdb prune undeploy promote rollback migrate sudo start up")

// make judges running the project's own Makefile: a build, unless the command line brings code of its own.
func (j *judge) make(args []string) flow {
	if helpOnly(args) {
		return flow{}
	}
	j.effect(Executes | Reads | Writes)
	p := j.options(makeSpec, args)
	cwd := j.cwd
	for _, d := range p.each("-C", "--directory") {
		j.chdir([]string{d})
	}
	j.buildPlace()
	for _, f := range p.each("-f", "--file", "--makefile") {
		abs := j.resolve(f)
		if w, written := j.files[abs]; written || f == "-" || f == "/dev/stdin" {
			j.deny("shell.run-written", "the build would run what this command line wrote")
			j.suspicious(w.text)
		}
		if !known(abs) || !j.env.Places.Writable(abs) {
			j.ask("shell.exec", "the build file is outside the project: "+plain(f))
		}
	}
	j.cwd = cwd
	for _, w := range p.operands {
		name, value, assign := strings.Cut(w, "=")
		switch {
		case assign && (name == "SHELL" || name == "MAKEFLAGS" || strings.Contains(value, "$(shell") || strings.Contains(value, "`") || strings.HasSuffix(name, "!") || name == ".SHELLFLAGS"):
			j.effect(Executes)
			j.deny("shell.exec-option", "the assignment makes the build run something else: "+plain(w))
		case assign && (name == "CC" || name == "CXX" || name == "LD" || name == "AR") && !pagers[value]:
			j.ask("shell.exec-option", "the assignment makes the build run another program: "+plain(w))
		case assign && (name == "DESTDIR" || name == "prefix" || name == "PREFIX"):
			j.suspicious(value)
		case changingTargets[w]:
			j.ask("shell.build-target", "the target usually changes more than the build: "+w)
		case !known(w):
			j.ask("shell.dynamic", "which target would be built is not known before it runs")
		}
	}
	return flow{}
}

// buildPlace objects to building where the person's work is not.
func (j *judge) buildPlace() {
	if !known(j.cwd) {
		j.ask("shell.build-place", "where the build would run is not known before it runs")
		return
	}
	if !j.env.Places.Writable(j.cwd) {
		j.ask("shell.build-place", "runs a build outside the folders that may be written")
	}
	for f, w := range j.files {
		if w.net && (j.cwd == f || strings.HasPrefix(j.cwd, f+"/")) {
			j.effect(Executes)
			j.deny("shell.run-download", "code just fetched from another machine would be built or run")
		}
		switch f[strings.LastIndexByte(f, '/')+1:] {
		case "Makefile", "makefile", "GNUmakefile", "package.json", "Gemfile", "build.rs", "Cargo.toml", "setup.py", "pyproject.toml", "conftest.py", "build.gradle", "pom.xml", "Rakefile", "Taskfile.yml", "justfile", "composer.json", "configure.ac", "CMakeLists.txt", "build.sbt", "mix.exs", "tox.ini", "noxfile.py", "Dockerfile":
			j.deny("shell.run-written", "the build would run what this command line wrote")
			j.suspicious(j.files[f].text)
		}
	}
}

// builtFiles objects to building and running a file that this same command line wrote.
func (j *judge) builtFiles(args []string) {
	for _, a := range args {
		if a == "" || a[0] == '-' {
			continue
		}
		if (a[0] == '/' || a[0] == '~' || strings.HasPrefix(a, "../")) && !j.env.Places.Writable(unglob(j.resolve(a))) {
			j.ask("shell.build-place", "builds or runs code outside the folders that may be written: "+plain(a))
		}
		if f, ok := j.files[j.resolve(a)]; ok {
			j.deny("shell.run-written", "a file written by this same command line would be run")
			j.suspicious(f.text)
		}
	}
}

func (j *judge) printenv(args []string) flow {
	if len(args) == 0 {
		j.ask("shell.environment", "prints the environment, where credentials are often kept")
	}
	for _, a := range args {
		if credentialName(a) || !known(a) {
			j.ask("shell.environment", "prints a variable that looks like a credential: "+plain(a))
		}
	}
	return flow{}
}

// credentialName recognises variables in which credentials are kept.
func credentialName(name string) bool {
	u := strings.ToUpper(name)
	for _, s := range [...]string{"API_KEY", "APIKEY", "ACCESS_KEY", "SECRET", "TOKEN", "PASSWORD", "PASSWD", "CREDENTIAL", "PRIVATE_KEY"} {
		if strings.Contains(u, s) {
			return true
		}
	}
	return false
}

// kill judges signals: asking whether a process lives is fine.
func (j *judge) kill(base string, args []string) flow {
	if len(args) > 0 && (args[0] == "-l" || args[0] == "-L" || args[0] == "--list" || args[0] == "-0" && base == "kill") || helpOnly(args) {
		return flow{}
	}
	j.effect(Privilege)
	ops := 0
	for _, a := range args {
		if a == "-1" && ops == 0 && a != args[0] || a == "1" && base == "kill" {
			j.deny("shell.kill-all", "signals every process, or the first one")
		}
		if a != "" && a[0] != '-' {
			ops++
			if systemProcesses[strings.TrimSuffix(a, "d")] || systemProcesses[a] {
				j.deny("shell.kill-system", "stops a process the machine needs: "+a)
			}
		}
	}
	j.ask("shell.process", "stops or signals other processes")
	return flow{}
}

var systemProcesses = set("systemd init sshd ssh dbus-daemon dbus rsyslogd rsyslog syslogd syslog auditd audit cron crond NetworkManager firewalld firewall udevd systemd-journald systemd-logind systemd-udevd polkitd Xorg gdm lightdm WindowServer launchd loginwindow Finder kernel_task dockerd docker containerd kubelet snapd cupsd apparmor falco osqueryd clamd fail2ban")

// chmod judges permissions: the bits that make a program run as somebody else are refused.
func (j *judge) chmod(args []string) flow {
	if helpOnly(args) {
		return flow{}
	}
	var ops []string
	for _, a := range args {
		if len(a) > 1 && a[0] == '-' && strings.Trim(a[1:], "RvcfHLPh") == "" || strings.HasPrefix(a, "--") {
			continue
		}
		ops = append(ops, a)
	}
	j.effect(Writes)
	if len(ops) > 0 {
		mode := ops[0]
		if setuidMode(mode) {
			j.effect(Privilege)
			j.deny("shell.setuid", "makes a program run with the rights of its owner")
		}
		for _, w := range ops[1:] {
			abs := j.resolve(w)
			if !j.protected(j.kind(w, abs), "changes the permissions of", w) && known(abs) && j.env.Places.Covers(unglob(abs)) && abs != j.cwd {
				j.deny("shell.mode", "changes the permissions of a home, a root or a top-level directory: "+plain(w))
			}
		}
	}
	j.ask("shell.mode", objections["mode"].reason)
	return flow{}
}

// setuidMode reports a mode that makes a program run with the rights of its owner or group.
func setuidMode(mode string) bool {
	if isDigits(mode) {
		return len(mode) == 4 && mode[0] >= '2' && mode[0] != '3' || len(mode) == 5 && mode[1] >= '2'
	}
	return strings.Contains(mode, "s") && strings.ContainsAny(mode, "+=") && !strings.Contains(mode, "/")
}

// docker judges containers: commands inside are looked at, mounts and privileges that reach the host are refused.
func (j *judge) docker(args []string) flow {
	s := table()["docker"]
	i := j.subcommand(s, args)
	if i >= 0 {
		sub, rest := args[i], args[i+1:]
		if sub == "container" && len(rest) > 0 {
			sub, rest = rest[0], rest[1:]
		}
		switch sub {
		case "run", "create", "exec":
			j.options(s, args[:i])
			if len(rest) == 1 && helpOnly(rest) {
				return flow{}
			}
			return j.container(rest)
		}
	}
	return j.tabled(s, args)
}

var containerSpec = &spec{first: true, opts: map[string]byte{
	"-v": 'v', "--volume": 'v', "--mount": 'v', "-e": 'v', "--env": 'v', "--env-file": 'r', "-p": 'v', "--publish": 'v', "--name": 'v', "-w": 'v', "--workdir": 'v', "-u": 'v', "--user": 'v', "--entrypoint": 'v', "--network": 'v', "--net": 'v', "-h": 'v', "--hostname": 'v', "-l": 'v', "--label": 'v', "-m": 'v', "--memory": 'v', "--cpus": 'v',
	"--restart": 'v', "--cap-add": '!', "--privileged": '!', "--security-opt": '?', "--device": '!', "--pid": 'v', "--ipc": 'v', "--userns": 'v', "--link": 'v', "--add-host": 'v', "--dns": 'v', "--platform": 'v', "--pull": 'v', "--log-driver": 'v', "--log-opt": 'v', "--tmpfs": 'v', "--ulimit": 'v', "--gpus": 'v', "--cidfile": 'w', "--shm-size": 'v', "--volumes-from": 'v', "--env-from": 'v', "--stop-signal": 'v', "--health-cmd": 'v',
}}

func (j *judge) container(args []string) flow {
	j.effect(Executes | Network)
	p := j.options(containerSpec, args)
	j.ask("shell.container", "runs something in a container, outside the sandbox")
	mounts := p.each("-v", "--volume")
	for _, v := range p.each("--mount") {
		for _, f := range strings.Split(v, ",") {
			if s, ok := strings.CutPrefix(f, "source="); ok {
				mounts = append(mounts, s)
			} else if s, ok := strings.CutPrefix(f, "src="); ok {
				mounts = append(mounts, s)
			}
		}
	}
	for _, v := range mounts {
		src, _, _ := strings.Cut(v, ":")
		if src == "" || !known(src) || !strings.ContainsAny(src, "/~.") {
			continue
		}
		abs := j.resolve(src)
		if j.env.Places.Covers(abs) && !j.env.Places.Writable(abs) || strings.HasSuffix(abs, "docker.sock") || j.protected(j.kind(src, abs), "mounts", src) {
			j.effect(Privilege)
			j.deny("shell.container-mount", "gives the container a part of this machine it must not have: "+plain(src))
		}
	}
	if contains(p.each("--pid", "--ipc", "--userns", "--net", "--network"), "host") {
		j.deny("shell.container-host", "takes away the separation between container and machine")
	}
	if len(p.operands) > 1 {
		saved := j.remote
		j.remote = true
		j.command(p.operands[1:])
		j.remote = saved
	}
	return flow{net: true}
}

// kubectl judges the cluster client: secrets are not shown, commands inside pods are looked at.
func (j *judge) kubectl(args []string) flow {
	s := table()["kubectl"]
	i := j.subcommand(s, args)
	if i < 0 {
		return j.tabled(s, args)
	}
	rest := args[i+1:]
	switch args[i] {
	case "version":
		if contains(rest, "--client") || contains(rest, "--client=true") {
			return flow{}
		}
	case "get", "describe":
		for _, a := range rest {
			for _, r := range strings.Split(strings.ToLower(a), ",") {
				kind, _, _ := strings.Cut(r, "/")
				if kind == "secret" || kind == "secrets" || strings.HasPrefix(kind, "secrets.") {
					j.effect(Network | Reads)
					j.deny("shell.secret", "shows the secrets of a cluster")
				}
			}
		}
	case "exec", "debug", "run":
		for k, a := range rest {
			if a == "--" && k+1 < len(rest) {
				j.ask("shell.container", "runs something in a pod")
				saved := j.remote
				j.remote = true
				j.command(rest[k+1:])
				j.remote = saved
				for _, w := range rest[k+1:] {
					if strings.Contains(w, "/secrets/") || strings.Contains(w, "/serviceaccount/") {
						j.deny("shell.secret", "reads the credentials of a pod")
					}
				}
				return flow{net: true}
			}
		}
	}
	return j.tabled(s, args)
}

// openssl judges by subcommand; engines and providers load code.
func (j *judge) openssl(args []string) flow {
	for i, a := range args {
		switch a {
		case "-engine", "-provider", "-provider-path", "-config":
			j.deny("shell.load-library", "loads code or settings from another place: "+plain(a))
		case "-in", "-inkey", "-key", "-CAfile", "-cert", "-certfile", "-kfile", "-sigfile", "-signature", "-verify", "-prverify", "-CAkey", "-CA":
			if i+1 < len(args) {
				j.readPath(strings.TrimPrefix(args[i+1], "file:"))
			}
		case "-out", "-keyout", "-writerand", "-CAserial":
			if i+1 < len(args) {
				j.writePath(args[i+1])
			}
		case "-connect", "-proxy", "-url", "-host":
			if i+1 < len(args) {
				j.host(args[i+1])
			}
		}
	}
	if len(args) == 0 {
		return flow{}
	}
	switch args[0] {
	case "version", "help", "list", "ciphers", "speed", "dgst", "md5", "sha1", "sha256", "sha512", "x509", "verify", "prime", "errstr", "asn1parse", "rand", "crl", "req", "pkcs7", "rsa", "ec", "pkey", "enc", "genrsa", "genpkey", "ecparam", "dhparam", "passwd", "base64", "pkcs12", "pkcs8", "storeutl", "nseq", "crl2pkcs7", "ocsp", "cms", "smime", "sha224", "sha384":
		for k, a := range args[1:] {
			if a != "" && a[0] != '-' && strings.ContainsAny(a, "/.~") && (k == 0 || !strings.HasPrefix(args[k], "-")) {
				j.readPath(a)
			}
		}
		return flow{net: j.stdin.net}
	case "s_client", "s_server", "s_time":
		j.effect(Network)
		if args[0] == "s_client" && j.stdin.piped && !(j.stdin.known && len(j.stdin.text) < 16) {
			j.deny("shell.upload", "sends what it is fed to another machine, with nothing in between")
		}
		j.ask("shell.net", "opens a raw connection")
		return flow{net: true}
	case "engine":
		j.deny("shell.load-library", "loads a shared object")
		return flow{}
	}
	for _, a := range args {
		j.suspicious(a)
	}
	j.ask("shell.unknown-subcommand", "the subcommand is not among the described ones: "+plain(args[0]))
	return flow{}
}
