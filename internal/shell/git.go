package shell

import (
	"path"
	"strings"
)

// git judges by subcommand, and by everything that can make git run something else: configuration, transports, helpers.
func (j *judge) git(args []string) flow {
	cwd := j.cwd
	defer func() { j.cwd = cwd }()
	i := 0
	for ; i < len(args); i++ {
		a := args[i]
		if len(a) < 2 || a[0] != '-' {
			break
		}
		next := ""
		if i+1 < len(args) {
			next = args[i+1]
		}
		switch {
		case a == "-C":
			j.gitDir(next)
			i++
		case strings.HasPrefix(a, "-C"):
			j.gitDir(a[2:])
		case a == "-c":
			j.gitConfig(next)
			i++
		case strings.HasPrefix(a, "-c"):
			j.gitConfig(a[2:])
		case a == "--git-dir" || a == "--work-tree" || a == "--namespace" || a == "--super-prefix" || a == "--config-env" || a == "--attr-source":
			j.ask("shell.git-other", "git would work on another repository or with other settings: "+plain(a))
			i++
		case strings.HasPrefix(a, "--exec-path="):
			j.effect(Executes)
			j.deny("shell.exec-option", "git would run its parts from another folder")
		case strings.HasPrefix(a, "--git-dir="), strings.HasPrefix(a, "--work-tree="), strings.HasPrefix(a, "--namespace="), strings.HasPrefix(a, "--config-env="), strings.HasPrefix(a, "--super-prefix="):
			j.ask("shell.git-other", "git would work on another repository or with other settings: "+plain(a))
		case a == "-p", a == "--paginate", a == "-P", a == "--no-pager", a == "--bare", a == "--no-replace-objects", a == "--literal-pathspecs", a == "--no-optional-locks", a == "--version", a == "-v", a == "-h", a == "--exec-path",
			a == "--html-path", a == "--man-path", a == "--info-path", a == "--no-lazy-fetch", a == "--no-advice", a == "--glob-pathspecs", a == "--noglob-pathspecs", a == "--icase-pathspecs":
		case a == "--help" && i+1 < len(args):
			j.ask("shell.interactive", "opens the manual in a viewer that git's settings name")
		case a == "--help":
		default:
			j.ask("shell.unknown-option", "the option is not among the described ones: "+plain(a))
		}
	}
	if i >= len(args) {
		return flow{}
	}
	j.repositoryConfig()
	return j.gitCommand(args[i], args[i+1:])
}

func (j *judge) gitDir(dir string) {
	if abs := j.resolve(dir); abs != j.cwd {
		j.ask("shell.git-other", "git would use the settings of another repository, which can name commands to run: "+plain(dir))
	}
	j.chdir([]string{dir})
}

// gitRunKeys are settings whose value git runs or which change where it fetches and what it trusts; * stands for any part.
var gitRunKeys = []string{
	"core.pager", "core.editor", "core.fsmonitor", "core.sshcommand", "core.hookspath", "core.askpass", "core.gitproxy", "core.attributesfile", "core.worktree", "credential.*", "diff.external", "diff.*.textconv", "diff.*.command", "difftool.*", "mergetool.*", "merge.*.driver", "merge.tool",
	"filter.*", "alias.*", "gpg.program", "gpg.*.program", "gpg.ssh.defaultkeycommand", "pager.*", "sequence.editor", "uploadpack.packobjectshook", "remote.*.uploadpack", "remote.*.receivepack", "remote.*.proxy", "remote.*.vcs", "remote.*.url", "remote.*.pushurl", "url.*", "protocol.*", "include.*", "includeif.*",
	"submodule.*", "receive.*", "interactive.difffilter", "browser.*", "man.*", "web.browser", "sendemail.*", "trailer.*", "http.proxy", "http.*.proxy", "http.sslverify", "http.cookiefile", "http.extraheader", "init.templatedir", "tar.*", "instaweb.*", "hook.*", "safe.*", "blame.ignorerevsfile", "sendpack.*", "bisect.*", "maintenance.*", "guitool.*", "imap.*", "svn-remote.*", "extensions.*", "ssh.variant", "commit.template", "transfer.*", "fetch.*", "http.sslcainfo",
}

// gitRuns reports whether a setting can make git run something or trust something else.
func gitRuns(key string) bool {
	key = strings.ToLower(key)
	for _, k := range gitRunKeys {
		switch n := strings.Count(k, "*"); {
		case n == 0 && k == key:
			return true
		case n > 0:
			head, tail, _ := strings.Cut(k, "*")
			if strings.HasPrefix(key, head) && strings.HasSuffix(key, tail) && len(key) >= len(head)+len(tail) {
				return true
			}
		}
	}
	return false
}

// gitConfig judges key=value given on the command line.
func (j *judge) gitConfig(kv string) {
	key, value, _ := strings.Cut(kv, "=")
	lower := strings.ToLower(key)
	switch {
	case !known(key):
		j.ask("shell.git-config", "which git setting is changed is not known")
	case gitRuns(key):
		switch {
		case value == "false" || value == "" || value == "/dev/null":
			if lower == "core.fsmonitor" || lower == "core.hookspath" || strings.HasPrefix(lower, "credential.") || lower == "core.pager" || strings.HasPrefix(lower, "pager.") {
				return
			}
		case (lower == "core.pager" || lower == "core.editor") && pagers[value]:
			return
		}
		j.effect(Executes)
		j.deny("shell.git-config", "the git setting "+plain(key)+" can make git run a command")
	case strings.HasPrefix(lower, "color."), strings.HasPrefix(lower, "user."), strings.HasPrefix(lower, "advice."), strings.HasPrefix(lower, "log."), strings.HasPrefix(lower, "column."), strings.HasPrefix(lower, "diff."), strings.HasPrefix(lower, "status."), strings.HasPrefix(lower, "commit."), strings.HasPrefix(lower, "author."), strings.HasPrefix(lower, "committer."),
		lower == "core.quotepath", lower == "core.autocrlf", lower == "core.abbrev", lower == "core.safecrlf", lower == "init.defaultbranch", lower == "grep.linenumber", lower == "core.whitespace", lower == "merge.conflictstyle", lower == "gc.auto", lower == "i18n.logoutputencoding", lower == "core.ignorecase", lower == "core.filemode":
	default:
		j.ask("shell.git-config", "the git setting is not among the harmless ones: "+plain(key))
	}
}

// repositoryConfig looks at the settings of the repository git would use, when they can be read.
func (j *judge) repositoryConfig() {
	if j.env.Files == nil || !known(j.cwd) {
		return
	}
	for dir := j.cwd; ; dir = path.Dir(dir) {
		text, ok := j.env.Files.ReadFile(path.Join(dir, ".git", "config"))
		if ok {
			j.configText(string(text))
			return
		}
		if dir == "/" || dir == "." {
			return
		}
	}
}

// configText finds settings that run something in the text of a git config file.
func (j *judge) configText(text string) {
	section := ""
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			head, rest, _ := strings.Cut(strings.TrimPrefix(line, "["), "]")
			name, sub, has := strings.Cut(head, " ")
			section = name
			if has {
				section += "." + strings.Trim(sub, "\" ")
			}
			line = strings.TrimSpace(rest)
		}
		key, value, _ := strings.Cut(line, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if key == "" || key[0] == '#' || key[0] == ';' {
			continue
		}
		full := section + "." + key
		switch lower := strings.ToLower(full); {
		case strings.HasPrefix(lower, "remote.") && (strings.HasSuffix(lower, ".url") || strings.HasSuffix(lower, ".pushurl")):
			if !strings.HasPrefix(value, "ext::") {
				continue
			}
		case strings.HasPrefix(lower, "submodule.") && !strings.HasPrefix(value, "!"), strings.HasPrefix(lower, "extensions."), strings.HasPrefix(lower, "fetch."), strings.HasPrefix(lower, "transfer."), value == "false":
			continue
		}
		if gitRuns(full) {
			j.ask("shell.git-config", "the repository's settings make git run a command: "+full)
		}
	}
}

// gitURL judges a repository address.
func (j *judge) gitURL(w string) {
	switch {
	case strings.Contains(w, "::"):
		j.effect(Executes)
		j.deny("shell.git-transport", "the address makes git run a command: "+plain(w))
	case isURL(w):
		if strings.HasPrefix(w, "file:") {
			j.readPath(strings.TrimPrefix(w, "file://"))
			return
		}
		j.host(w)
	case remoteSpec(w) && known(w):
		j.host(w)
	case strings.HasPrefix(w, "-"):
		j.deny("shell.exec-option", "the address would be read as an option")
	case strings.HasPrefix(w, "/") || strings.HasPrefix(w, ".") || strings.HasPrefix(w, "~"):
		j.readPath(w)
	}
}

// cloned remembers where a repository was put, so that running its code can be judged.
func (j *judge) cloned(ops []string) {
	dir := strings.TrimSuffix(path.Base(strings.TrimSuffix(ops[0], "/")), ".git")
	if len(ops) > 1 {
		dir = ops[1]
	}
	j.writePath(dir)
	j.wrote(dir, flow{net: true})
}

// gitCommand judges one subcommand.
func (j *judge) gitCommand(sub string, args []string) flow {
	s := table()["git"].sub(sub)
	if !known(sub) || s == nil {
		for _, a := range args {
			j.suspicious(a)
		}
		j.ask("shell.git-unknown", "the git subcommand is not among the described ones, and could be an alias for anything: "+plain(sub))
		return flow{}
	}
	if len(args) == 1 && args[0] == "-h" {
		return flow{}
	}
	if contains(args, "--help") {
		j.ask("shell.interactive", "opens the manual in a viewer that git's settings name")
		return flow{}
	}
	p := j.options(s, args)
	switch sub {
	case "clone", "fetch", "pull", "ls-remote", "push":
		for _, w := range p.operands {
			j.gitURL(w)
			if strings.HasPrefix(w, "+") || sub != "clone" && strings.Contains(w, ":+") {
				j.ask("shell.history", "forces a branch to another history: "+plain(w))
			}
		}
		if sub == "clone" && len(p.operands) > 0 {
			j.cloned(p.operands)
		}
	case "config":
		return j.gitConfigCommand(p)
	case "remote":
		if len(p.operands) > 0 && p.operands[0] != "show" && p.operands[0] != "get-url" {
			for _, w := range p.operands[1:] {
				j.gitURL(w)
			}
			j.ask("shell.git-remote", "changes where the repository fetches from or pushes to")
		}
		return flow{}
	case "stash", "bisect", "submodule", "worktree", "reflog", "notes", "sparse-checkout", "bundle", "lfs", "flow", "maintenance", "commit-graph":
		return j.gitVerb(s, sub, p, args)
	case "show", "diff", "cat-file":
		for _, w := range p.operands {
			if i := strings.IndexByte(w, ':'); i >= 0 {
				w = w[i+1:] // a file as it was in a revision
			}
			if abs := j.resolve(w); known(abs) && settingsName(abs) {
				j.ask("shell.read-settings", "shows a settings file, where credentials are often kept: "+plain(w))
			}
		}
	case "symbolic-ref":
		if len(p.operands) == 1 && !p.has("-d", "--delete") {
			return flow{}
		}
	case "branch", "tag":
		j.gitRef(sub, p)
	}
	j.operandRoles(s, p)
	return j.classAnswer(s, args)
}

// gitVerb judges subcommands that have subcommands of their own.
func (j *judge) gitVerb(s *spec, sub string, p parsed, args []string) flow {
	verb := ""
	if len(p.operands) > 0 {
		verb = p.operands[0]
	}
	if sub == "bisect" && verb == "run" && len(p.operands) > 1 {
		j.effect(Executes)
		j.ask("shell.exec", "runs a command again and again while searching")
		return j.command(p.operands[1:])
	}
	if sub == "submodule" && verb == "foreach" && len(p.operands) > 1 {
		j.ask("shell.exec", "runs a command in every submodule")
		return j.nested(strings.Join(p.operands[1:], " "))
	}
	if c := s.sub(verb); c != nil {
		i := 0
		for i < len(args) && args[i] != verb {
			i++
		}
		cp := j.options(c, args[min(i+1, len(args)):])
		j.operandRoles(c, cp)
		return j.classAnswer(c, args)
	}
	if verb != "" && s.class == classOK {
		j.ask("shell.unknown-subcommand", "the subcommand is not among the described ones: "+plain(verb))
		return flow{}
	}
	return j.classAnswer(s, args)
}

// gitRef judges branch and tag: listing and creating is fine, the options say the rest.
func (j *judge) gitRef(sub string, p parsed) {
	for _, w := range p.operands {
		if strings.HasPrefix(w, "-") {
			j.ask("shell.history", "the "+sub+" name looks like an option")
		}
	}
}

// gitConfigCommand judges git config: reading is fine, settings that run something are not.
func (j *judge) gitConfigCommand(p parsed) flow {
	ops := p.operands
	if p.has("--get", "--get-all", "--get-regexp", "-l", "--list", "--get-urlmatch", "--get-color", "--get-colorbool") {
		return flow{}
	}
	if len(ops) > 0 && (ops[0] == "list" || ops[0] == "get") {
		return flow{}
	}
	if len(ops) > 0 && (ops[0] == "set" || ops[0] == "unset") {
		ops = ops[1:]
	}
	if len(ops) == 1 && !p.has("--unset", "--unset-all", "--remove-section", "--rename-section", "-e", "--edit") {
		return flow{}
	}
	if len(ops) > 1 && (gitRuns(ops[0]) || !known(ops[0])) {
		j.effect(Persists | Executes)
		j.deny("shell.git-config", "the git setting "+plain(ops[0])+" can make git run a command from now on")
		return flow{}
	}
	j.ask("shell.settings", "changes git settings")
	return flow{}
}
