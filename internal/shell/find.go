package shell

import (
	"path"
	"strings"

	"passepartout/internal/place"
)

// findTests maps each primary of find that neither writes nor runs anything to the number of its arguments.
var findTests = map[string]int{
	"-name": 1, "-iname": 1, "-path": 1, "-ipath": 1, "-wholename": 1, "-iwholename": 1, "-lname": 1, "-ilname": 1, "-regex": 1, "-iregex": 1, "-regextype": 1, "-type": 1, "-xtype": 1, "-size": 1, "-perm": 1, "-user": 1, "-group": 1,
	"-uid": 1, "-gid": 1, "-inum": 1, "-links": 1, "-samefile": 1, "-newer": 1, "-anewer": 1, "-cnewer": 1, "-mtime": 1, "-atime": 1, "-ctime": 1, "-mmin": 1, "-amin": 1, "-cmin": 1, "-used": 1, "-fstype": 1, "-maxdepth": 1, "-mindepth": 1, "-printf": 1,
	"-context": 1, "-Bmin": 1, "-Btime": 1, "-Bnewer": 1, "-flags": 1, "-acl": 0, "-xattr": 0, "-xattrname": 1, "-depth": 0, "-d": 0, "-empty": 0, "-executable": 0, "-readable": 0, "-writable": 0, "-nouser": 0, "-nogroup": 0, "-true": 0, "-false": 0, "-print": 0, "-print0": 0,
	"-ls": 0, "-prune": 0, "-quit": 0, "-daystart": 0, "-follow": 0, "-noleaf": 0, "-xdev": 0, "-x": 0, "-warn": 0, "-nowarn": 0, "-ignore_readdir_race": 0, "-noignore_readdir_race": 0, "-a": 0, "-and": 0, "-o": 0, "-or": 0, "-not": 0, "-E": 0, "-X": 0, "-s": 0,
	"!": 0, "(": 0, ")": 0, ",": 0, "-H": 0, "-L": 0, "-P": 0, "-D": 1, "-f": 1, "-help": 0, "--help": 0, "--version": 0, "-version": 0, "-sparse": 0, "-hidden": 0, "-nohidden": 0, "-fprint0": -1, "-fprint": -1, "-fls": -1, "-fprintf": -2, "-files0-from": 1,
}

// search is a call of find, taken apart.
type search struct {
	starts  []string
	either  bool   // an "or" or a "not" lets more through than the tests say
	pattern string // the last -name pattern, with active glob characters
	narrow  bool   // some test limits what is found by name, age or size
	actions []action
}

// action is something a search does to what it finds. Only the tests before it limit what that is.
type action struct {
	argv    []string // nil: the files are deleted
	pattern string
	narrow  bool
}

// findProgram judges find: what it prints is harmless, what it runs, writes and deletes is judged.
func (j *judge) findProgram(args []string) flow {
	var s search
	i := 0
	for i < len(args) {
		a := args[i]
		if a == "-D" || a == "-f" {
			if a == "-f" && i+1 < len(args) {
				s.starts = append(s.starts, args[i+1])
			}
			i += 2
			continue
		}
		if a == "-H" || a == "-L" || a == "-P" || a == "-E" || a == "-X" || a == "-s" || strings.HasPrefix(a, "-O") {
			i++
			continue
		}
		if a == "" || a[0] == '-' || a == "!" || a == "(" || a == ")" {
			break
		}
		s.starts = append(s.starts, a)
		i++
	}
	if len(s.starts) == 0 {
		s.starts = []string{"."}
	}
	for _, p := range s.starts {
		j.readPath(p)
	}
	for i < len(args) {
		i += j.primary(&s, args[i:])
	}
	j.findActions(&s)
	return flow{}
}

// primary judges one test or action and returns how many words it took.
func (j *judge) primary(s *search, args []string) int {
	a := args[0]
	switch a {
	case "-delete":
		s.actions = append(s.actions, action{nil, s.pattern, s.narrow})
		return 1
	case "-exec", "-ok", "-execdir", "-okdir":
		end := 1
		for end < len(args) && args[end] != ";" && (args[end] != "+" || args[end-1] != "{}") {
			end++
		}
		if end == len(args) {
			j.ask("shell.unfinished", "the command that the search would run has no end, so what belongs to it is not clear")
		}
		if end > 1 {
			s.actions = append(s.actions, action{args[1:end], s.pattern, s.narrow})
		}
		if strings.HasSuffix(a, "dir") {
			j.ask("shell.exec", "runs a command inside every folder found, where the folder's own files can take its place")
		}
		return end + 1
	}
	n, ok := findTests[a]
	if !ok && strings.HasPrefix(a, "-newer") && len(a) == 8 {
		n, ok = 1, true
	}
	switch {
	case !ok && !known(a):
		j.ask("shell.dynamic-option", "a test or action of the search is not known before it runs")
		return 1
	case !ok && a != "" && a[0] != '-':
		return 1
	case !ok:
		j.ask("shell.unknown-option", "the test or action is not among the described ones: "+plain(a))
		return 1
	case n < 0:
		if len(args) > 1 {
			j.writePath(args[1])
		}
		return 1 - n
	}
	switch a {
	case "-o", "-or", "!", "-not", ",":
		s.either = true
	case "-name", "-iname", "-path", "-wholename", "-ipath":
		if len(args) > 1 {
			s.pattern = activate(args[1])
			if tail := strings.TrimLeft(args[1], "*/"); strings.Contains(tail, "/") && j.kind(tail, "/home/any/"+strings.NewReplacer("*", "x", "?", "x").Replace(tail)) == place.Secret {
				j.ask("shell.find-secret", "looks for files in which credentials are kept: "+plain(args[1]))
			}
		}
		s.narrow = true
	case "-mtime", "-mmin", "-atime", "-ctime", "-size", "-regex", "-iregex", "-empty", "-inum":
		s.narrow = true
	case "-newer", "-anewer", "-cnewer", "-samefile", "-files0-from":
		s.narrow = true
		if len(args) > 1 {
			j.readPath(args[1])
		}
	}
	return 1 + n
}

// activate marks the glob characters of a pattern that find itself matches.
func activate(p string) string {
	return strings.NewReplacer("*", "\x01", "?", "\x02", "[", "\x03").Replace(p)
}

// found is a word for the files under start whose names match a pattern.
func found(start, pattern string) string {
	name := anything
	if pattern != "" && !strings.Contains(pattern, "/") && strings.Trim(unglob(pattern), "*?") != "" {
		name = pattern
	}
	return strings.TrimSuffix(start, "/") + "/" + name
}

// findActions judges -delete and -exec for every start directory, and looking for credentials by name.
func (j *judge) findActions(s *search) {
	for _, start := range s.starts {
		if strings.Trim(unglob(s.pattern), "*?.") != "" && known(start) {
			abs := j.resolve(found(start, s.pattern))
			if known(abs) && (j.kind(abs, abs) == place.Secret || j.kind(abs+"/x", abs+"/x") == place.Secret) {
				j.ask("shell.find-secret", "looks for files in which credentials are kept: "+plain(s.pattern))
			}
		}
		for _, act := range s.actions {
			if s.either {
				act.pattern, act.narrow = "", false
			}
			switch {
			case act.argv != nil:
				j.execFound(act, start)
			case act.narrow:
				j.deletePath(found(start, act.pattern), true)
			default:
				j.deletePath(start, true)
			}
		}
	}
}

// execFound judges the command that a search runs for what it finds under start.
func (j *judge) execFound(act action, start string) {
	j.execOver(act.argv, act.pattern)
	argv := make([]string, len(act.argv))
	for i, w := range act.argv {
		argv[i] = strings.ReplaceAll(w, "{}", found(start, act.pattern))
	}
	saved := j.stdin
	j.stdin = flow{}
	j.bulk++
	j.command(argv)
	j.bulk--
	j.stdin = saved
}

// metadata are the programs that tell about files without showing or changing what is in them.
var metadata = set("ls gls dir vdir stat gstat file du gdu wc basename dirname echo printf readlink realpath test [ true false pwd namei getfacl lsattr md5sum sha1sum sha256sum sha512sum cksum b2sum")

// readers are the programs that show what is in the files named to them, and do nothing else.
var readers = set("cat head tail nl tac grep egrep fgrep zgrep zcat jq less more od hexdump xxd strings sort uniq cut diff cmp identify ffprobe pdftotext pdfinfo exiv2 xmllint")

// execOver judges running a command once for every file a search finds. pattern is the search's last test of names.
//
// Telling about files is harmless wherever they are. Their content is shown without a question only if the search names a kind of document, as
// "*.json" does: a search for everything also finds what a person forgot that it is there. Creating without ever overwriting (unzip -n) is harmless
// under the same condition. Everything else may do to a thousand files what nobody wants done to one.
func (j *judge) execOver(argv []string, pattern string) {
	base := path.Base(argv[0])
	ext := strings.TrimPrefix(pattern, "\x01.")
	narrow := ext != pattern && ext != "" && !globbed(ext)
	switch {
	case metadata[base]:
	case narrow && (readers[base] || base == "unzip" && contains(argv, "-n")):
	case isShell(base) && strings.Contains(strings.Join(argv[1:], " "), "{}") && contains(argv, "-c"):
		j.ask("shell.exec", "puts the names of files into the text of a command, where a name can become one")
	default:
		j.ask("shell.exec", "runs a command for every file that a search finds")
	}
}

var fdSpec = &spec{opts: map[string]byte{
	"-e": 'v', "--extension": 'v', "-t": 'v', "--type": 'v', "-d": 'v', "--max-depth": 'v', "--min-depth": 'v', "--exact-depth": 'v', "-E": 'v', "--exclude": 'v', "-S": 'v', "--size": 'v', "--changed-within": 'v', "--changed-before": 'v', "--newer": 'v', "--older": 'v',
	"-o": 'v', "--owner": 'v', "-c": 'v', "--color": 'v', "-j": 'v', "--threads": 'v', "--max-results": 'v', "--base-directory": 'v', "-C": 'v', "--search-path": 'r', "--ignore-file": 'r', "--path-separator": 'v', "--batch-size": 'v', "--gen-completions": 'v',
}}

// fd judges the find replacement, whose -x and -X end its own options.
func (j *judge) fd(args []string) flow {
	for i, a := range args {
		if a == "-x" || a == "--exec" || a == "-X" || a == "--exec-batch" || strings.HasPrefix(a, "--exec") {
			argv := append([]string(nil), args[i+1:]...)
			if _, v, ok := strings.Cut(a, "="); ok {
				argv = append([]string{v}, argv...)
			}
			placed := false
			for k, w := range argv {
				for _, ph := range []string{"{}", "{/}", "{//}", "{.}", "{/.}"} {
					if strings.Contains(w, ph) {
						argv[k] = strings.ReplaceAll(w, ph, anything)
						placed = true
					}
				}
			}
			if !placed {
				argv = append(argv, anything)
			}
			j.fdOperands(args[:i])
			if len(argv) > 0 && known(argv[0]) {
				j.execOver(argv, "")
			}
			j.command(argv)
			return flow{}
		}
		if len(a) > 2 && a[0] == '-' && a[1] != '-' && strings.ContainsAny(a, "xX") {
			j.ask("shell.exec", "runs a command for every file found")
		}
	}
	j.fdOperands(args)
	return flow{}
}

func (j *judge) fdOperands(args []string) {
	p := j.options(fdSpec, args)
	for i, w := range p.operands {
		if i > 0 {
			j.readPath(w)
		}
	}
}
