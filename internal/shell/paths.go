package shell

import (
	"path"
	"strings"

	"passepartout/internal/host"
	"passepartout/internal/place"
)

// resolve turns a word into an absolute path; it keeps holes and active glob characters.
func (j *judge) resolve(word string) string {
	if strings.HasPrefix(word, "/") || strings.HasPrefix(word, "~") || known(j.cwd) {
		if !known(word) || globbed(word) {
			if strings.HasPrefix(word, "/") || word != "" && word[0] == hole {
				return path.Clean(word)
			}
			return path.Join(j.cwd, word)
		}
		return j.env.Places.Resolve(j.cwd, word)
	}
	return j.cwd + "/" + word
}

// scratch reports whether abs lies in the directory for temporary files, which is private to the command inside the sandbox.
func (j *judge) scratch(abs string) bool {
	return strings.HasPrefix(abs, "/tmp/") || strings.HasPrefix(abs, "/var/tmp/")
}

// kind classifies a path, looking through a glob at the names it could match.
func (j *judge) kind(word, abs string) place.Kind {
	l := j.env.Places
	if j.over {
		return place.Unknown
	}
	if j.paths++; j.paths > maxPaths || len(abs) > maxValue {
		j.limit("shell.too-many", "the command names more paths, or longer ones, than can be looked at")
		return place.Unknown
	}
	if strings.HasPrefix(abs, "/proc/") && (!known(abs) || globbed(abs)) {
		return place.Process
	}
	if !known(abs) {
		// The known tail of a path with an unknown head can still name a secret or a start-up file.
		tail := abs[strings.LastIndexByte(abs, hole)+1:]
		if i := strings.IndexByte(tail, '/'); i >= 0 && !globbed(tail) && l.Home != "" {
			switch k := l.Kind(path.Clean(l.Home + tail[i:])); k {
			case place.Secret, place.Startup, place.Agent, place.Own:
				return k
			default:
			}
		}
		return place.Unknown
	}
	if !globbed(abs) {
		return l.Kind(abs)
	}
	return j.globKind(abs)
}

// lureNames are path elements a glob may be hiding.
var lureNames = [...]string{
	".ssh", ".aws", ".gnupg", ".kube", ".docker", ".config", ".env", ".netrc", ".npmrc", ".pypirc", ".pgpass", ".git-credentials", ".bashrc", ".profile", ".zshrc",
	".bash_history", ".zsh_history", ".claude", ".git", "hooks", "id_rsa", "id_ed25519", "id_ecdsa", "id_dsa", "authorized_keys", "credentials", "config", "shadow", "gshadow",
	"sudoers", "etc", "root", "home", "proc", "environ", "mem", "self", "dev", "sda", "nvme0n1", "gh", "hosts.yml", "passwd", "cron.d", "crontab",
}

// globKind is the strictest kind among the names a pattern can match.
func (j *judge) globKind(abs string) place.Kind {
	l := j.env.Places
	if paths, ok := j.globFiles(abs); ok && len(paths) > 0 {
		worst := place.Ordinary
		for _, p := range paths {
			if k := l.Kind(p); sensitive(k) {
				return k
			} else if k != place.Ordinary {
				worst = k
			}
		}
		return worst
	}
	cands := []string{""}
	for _, elem := range strings.Split(strings.TrimPrefix(abs, "/"), "/") {
		var next []string
		for _, c := range cands {
			if !globbed(elem) {
				next = append(next, c+"/"+elem)
				continue
			}
			pat := unglob(elem)
			next = append(next, c+"/"+pat)
			if broad(pat) {
				continue
			}
			for _, name := range lureNames {
				if name[0] == '.' && pat[0] != '.' {
					continue // a pattern does not match a leading dot by itself
				}
				if ok, err := path.Match(pat, name); ok && err == nil && len(next) < 64 {
					next = append(next, c+"/"+name)
				}
			}
		}
		cands = next
	}
	for _, c := range cands {
		if k := l.Kind(c); sensitive(k) {
			return k
		}
	}
	return l.Kind(path.Dir(cands[0]) + "/x")
}

// broad reports a pattern that says so little about names that it hides nothing: everything, or everything but a few letters. Patterns of
// question marks spell a length, and patterns with a leading dot ask for hidden files, so those are not broad.
func broad(pat string) bool {
	if pat[0] == '?' || pat[0] == '.' {
		return false
	}
	inClass := false
	for i := 0; i < len(pat); i++ {
		switch c := pat[i]; {
		case c == '[':
			inClass = true
		case c == ']':
			inClass = false
		case !inClass && c != '*' && c != '?' && c != '.':
			return false
		}
	}
	return true
}

func sensitive(k place.Kind) bool {
	switch k {
	case place.Secret, place.Startup, place.Agent, place.Own, place.Device, place.Process:
		return true
	default:
	}
	return false
}

func (j *judge) globFiles(abs string) ([]string, bool) {
	if j.env.Files == nil {
		return nil, false
	}
	return j.env.Files.Glob(unglob(abs))
}

// glob expands an active pattern against the files, or returns the word itself.
func (j *judge) glob(word string) []string {
	if !globbed(word) || !known(word) {
		return []string{word}
	}
	if paths, ok := j.globFiles(j.resolve(word)); ok && len(paths) > 0 && len(paths) <= maxLoop {
		return paths
	}
	return []string{word}
}

// readPath judges reading the file a word names.
func (j *judge) readPath(word string) {
	if word == "" || word == "-" || j.remote {
		return
	}
	j.effect(Reads)
	abs := j.resolve(word)
	switch j.kind(word, abs) {
	case place.Secret:
		j.deny("shell.read-secret", "reads credentials or private keys: "+plain(word))
	case place.Process:
		j.deny("shell.read-process", "reads another process's memory or environment: "+plain(word))
	case place.Own:
		j.ask("shell.read-own", "reads the agent's own state: "+plain(word))
	case place.Device:
		j.deny("shell.read-device", "reads a raw device: "+plain(word))
	default:
	}
	if !known(abs) {
		return
	}
	if settingsName(abs) {
		j.ask("shell.read-settings", "reads a settings file, where credentials are often kept: "+plain(word))
	}
	if endless(abs) {
		j.endless = true
	}
	if j.foreign(abs) {
		j.ask("shell.read-system", "reads files of the system or of another user: "+plain(word))
	}
	if !globbed(abs) {
		j.rep.Reads = append(j.rep.Reads, abs)
		if !j.env.Places.Readable(abs) {
			j.ask("shell.read-outside", "reads outside the folders that may be read: "+plain(word))
		}
	}
}

// settingsName recognises files named as the settings of a program.
func settingsName(abs string) bool {
	base := strings.ToLower(path.Base(abs))
	stem, ext, _ := strings.Cut(strings.TrimPrefix(base, "."), ".")
	switch ext {
	case "yaml", "yml", "json", "toml", "ini", "xml", "php", "properties", "conf", "cfg", "py", "rb", "js", "env", "cnf":
		return stem == "config" || stem == "settings" || stem == "secrets" || stem == "credentials" || stem == "application" || stem == "database"
	}
	return false
}

// foreign reports the parts of a machine that hold neither the person's work nor programs' data: settings, other users' homes, devices and the
// inside of other processes.
func (j *judge) foreign(abs string) bool {
	if strings.HasSuffix(abs, ".pub") {
		return false // the public half of a key
	}
	top, rest, _ := strings.Cut(strings.TrimPrefix(abs, "/"), "/")
	switch top {
	case "etc", "usr", "root", "boot", "sys", "lib", "lib64", "sbin", "bin":
		return true
	case "home", "Users":
		own := j.env.Places.Home
		return path.Dir(own) == "/"+top && abs != own && !strings.HasPrefix(abs, own+"/") && !j.env.Places.Writable(unglob(abs))
	case "proc":
		return rest == "" || rest[0] >= '0' && rest[0] <= '9'
	case "dev":
		switch rest {
		case "null", "zero", "random", "urandom", "stdin", "stdout", "stderr", "tty", "full":
			return false
		}
		return !strings.HasPrefix(rest, "fd/")
	}
	return false
}

// endless reports the devices that can be read forever.
func endless(abs string) bool {
	return abs == "/dev/zero" || abs == "/dev/urandom" || abs == "/dev/random"
}

// finite are the programs that stop reading by themselves, however much there is.
var finite = set("head ghead timeout gtimeout read shuf sort openssl gpg ssh-keygen true false :")

// bounds are the beginnings of the arguments with which a program stops after so much.
var bounds = map[string][]string{
	"dd": {"count="}, "od": {"-N", "--read-bytes"}, "hexdump": {"-n"}, "xxd": {"-l"}, "cmp": {"-n", "--bytes"},
	"grep": {"-m", "-q", "--max-count"},
}

// bounded reports a command that stops reading by itself.
func bounded(argv []string) bool {
	base := path.Base(argv[0])
	if metadata[base] || finite[base] {
		return true
	}
	for _, a := range argv[1:] {
		for _, b := range bounds[base] {
			if strings.HasPrefix(a, b) {
				return true
			}
		}
	}
	return false
}

// writePath judges creating or changing the file a word names.
func (j *judge) writePath(word string) {
	if word == "" || word == "-" || j.remote {
		return
	}
	abs := j.resolve(word)
	k := j.kind(word, abs)
	if k == place.Sink {
		if abs == "/dev/tty" {
			j.ask("shell.terminal", "writes to the terminal itself, past everything that records what is shown")
		}
		return
	}
	j.effect(Writes)
	switch {
	case !known(abs):
	case globbed(abs):
		j.filled = append(j.filled, unglob(abs))
	default:
		j.rep.Writes = append(j.rep.Writes, abs)
	}
	if j.protected(k, "writes", word) {
		return
	}
	if j.bulk > 0 && (!known(word) || globbed(word)) {
		j.ask("shell.write-many", "changes every file that a list or search names, and the list is not known before it runs")
	}
	switch {
	case !known(abs):
		j.ask("shell.write-unknown", "which file would be written is not known before it runs")
	case k == place.Top && !j.env.Places.Writable(abs):
		j.ask("shell.write-top", "writes directly into a top-level directory: "+plain(word))
	case j.env.Places.Writable(unglob(abs)):
	case j.env.Sandboxed && j.scratch(abs):
		if strings.Contains(abs, "/.") {
			j.ask("shell.hidden", "hides a file among temporary ones: "+plain(word))
		}
	default:
		j.ask("shell.write-outside", "writes outside the folders that may be written: "+plain(word))
	}
}

// writeInto judges putting files whose names are not known into a directory.
func (j *judge) writeInto(dir string) {
	j.writePath(strings.TrimSuffix(dir, "/") + "/x")
	if abs := j.resolve(dir); known(abs) {
		j.filled = append(j.filled, unglob(abs))
	}
}

// hiddenFile objects to writing text of the command's own into a file that tools take as their settings.
func (j *judge) hiddenFile(word string) {
	if abs := j.resolve(word); known(abs) && obeyed(path.Base(abs)) && j.env.Places.Writable(unglob(abs)) {
		j.ask("shell.hidden", "changes a hidden file, which tools obey and listings do not show: "+plain(word))
	}
}

// obeyed reports a hidden file that programs started in its folder take as their settings. Lists of what to leave out and empty markers are not.
func obeyed(name string) bool {
	if len(name) < 2 || name[0] != '.' || name == ".." || strings.HasSuffix(name, "ignore") {
		return false
	}
	switch name {
	case ".gitkeep", ".keep", ".nojekyll", ".editorconfig", ".mailmap":
		return false
	}
	return true
}

// protected refuses changing what must never be changed by a command.
func (j *judge) protected(k place.Kind, verb, word string) bool {
	switch k {
	case place.Secret:
		j.deny("shell.write-secret", verb+" credentials or private keys: "+plain(word))
	case place.Startup:
		j.effect(Persists)
		j.deny("shell.persist", verb+" a file that runs by itself later: "+plain(word))
	case place.Agent:
		j.effect(Persists)
		j.deny("shell.write-agent", verb+" settings or instructions of an agent or editor: "+plain(word))
	case place.Own:
		j.deny("shell.write-own", verb+" the agent's own journal, policy or vault: "+plain(word))
	case place.System:
		j.deny("shell.write-system", verb+" a system file: "+plain(word))
	case place.Device:
		j.deny("shell.write-device", verb+" a raw device: "+plain(word))
	case place.Process:
		j.deny("shell.write-process", verb+" another process's memory: "+plain(word))
	default:
		return false
	}
	return true
}

// deletePath judges removing a file, or a whole tree.
func (j *judge) deletePath(word string, tree bool) {
	if j.remote {
		j.ask("shell.delete-remote", "deletes on another machine")
		return
	}
	j.effect(Deletes)
	abs := j.resolve(word)
	if known(abs) && !globbed(abs) {
		j.rep.Deletes = append(j.rep.Deletes, abs)
	}
	l := j.env.Places
	k := j.kind(word, abs)
	if k == place.Sink {
		k = place.Device
	}
	if j.protected(k, "deletes", word) {
		return
	}
	if !known(abs) {
		switch {
		case tree && couldBeRoot(abs):
			j.deny("shell.delete-unknown", "deletes a whole tree whose place is not known: it could be a home or root directory")
		default:
			j.ask("shell.delete-unknown", "which files would be deleted is not known before it runs")
		}
		return
	}
	covers := j.covers(abs)
	if _, last := path.Split(abs); globbed(last) && tree && strings.HasPrefix(last, ".") && everything(last) {
		covers = true // which takes the folder above along
	}
	switch {
	case covers:
		j.deny("shell.delete-home", "deletes a home, a root or a top-level directory: "+plain(word))
	case j.coversAfterFailedCd(word):
		j.deny("shell.delete-home", "deletes a home, a root or a top-level directory if the cd before it fails; join them with && instead: "+plain(word))
	case l.Writable(unglob(abs)):
		j.ask("shell.delete", "deletes files: "+plain(word))
	case tree && !j.scratch(abs):
		j.deny("shell.delete-outside", "deletes a whole tree outside the folders that may be written: "+plain(word))
	default:
		j.ask("shell.delete-outside", "deletes outside the folders that may be written: "+plain(word))
	}
}

// covers reports whether removing abs, which may be a pattern, takes a home, a root or a top-level directory with it. A pattern that matches
// everything in a directory is as good as the directory.
func (j *judge) covers(abs string) bool {
	if j.env.Places.Covers(unglob(abs)) {
		return true
	}
	dir, last := path.Split(abs)
	return globbed(last) && everything(last) && j.env.Places.Covers(path.Clean(dir))
}

func everything(pattern string) bool { return strings.Trim(unglob(pattern), "*?.") == "" }

// coversAfterFailedCd asks the same for where the command would be run if an earlier cd failed.
func (j *judge) coversAfterFailedCd(word string) bool {
	if word == "" || strings.IndexByte("/~", word[0]) >= 0 {
		return false
	}
	cwd := j.cwd
	defer func() { j.cwd = cwd }()
	for _, dir := range j.stayed {
		j.cwd = dir
		if abs := j.resolve(word); known(abs) && j.covers(abs) {
			return true
		}
	}
	return false
}

// couldBeRoot reports whether some value of the holes makes the path a root or home: only path elements that are wholly unknown, or nothing
// after them but a pattern, can do that.
func couldBeRoot(abs string) bool {
	last := abs[strings.LastIndexByte(abs, hole)+1:]
	for _, e := range strings.Split(last, "/") {
		switch strings.Trim(unglob(e), "*?") {
		case "", ".", "..":
		default:
			return false
		}
	}
	head := abs[:strings.IndexByte(abs, hole)]
	return head == "" || strings.HasSuffix(head, "/") && (strings.Count(head, "/") <= 3 || strings.Contains(last, ".."))
}

// host judges talking to a machine named by s: a URL, host:port, scp form or address.
func (j *judge) host(s string) {
	j.effect(Network)
	if !known(s) {
		j.ask("shell.host-unknown", "which machine would be contacted is not known before it runs")
		return
	}
	h, err := host.Parse(s)
	if err != nil {
		j.ask("shell.host-invalid", "the machine to contact cannot be recognised: "+plain(s))
		return
	}
	j.rep.Hosts = append(j.rep.Hosts, h.String())
	switch h.Class() {
	case host.Metadata:
		j.deny("shell.host-metadata", "contacts a cloud metadata service, which hands out credentials: "+h.Name())
	case host.Public:
		if !j.env.Hosts.Allows(h) {
			j.ask("shell.host", "contacts a machine that is not on the list of allowed hosts: "+h.Name())
		}
	default:
		if !j.env.Hosts.Allows(h) {
			j.ask("shell.host-private", "contacts a machine on the local network: "+plain(s))
		}
	}
}
