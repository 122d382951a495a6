package shell

import (
	"strings"

	"passepartout/internal/place"
)

// remove judges the programs that delete.
func (j *judge) remove(base string, args []string) flow {
	s := &spec{}
	switch base {
	case "shred":
		s.opts = map[string]byte{"-n": 'v', "--iterations": 'v', "-s": 'v', "--size": 'v', "--random-source": 'r'}
	case "rmdir":
		s.opts = map[string]byte{"-p": '.'}
	}
	if helpOnly(args) {
		return flow{}
	}
	p := j.options(s, args)
	tree := p.has("-r", "-R", "-d", "--recursive") || base == "rip" || base == "srm"
	for o := range p.given {
		if len(o) > 4 && strings.HasPrefix("--recursive", o) {
			tree = true
		}
		if o == "--no-preserve-root" {
			j.deny("shell.delete-home", "switches off the protection of the root directory")
		}
	}
	for _, w := range p.operands {
		if base == "rmdir" && known(w) && !globbed(w) && j.env.Places.Writable(j.resolve(w)) && !j.env.Places.Covers(j.resolve(w)) {
			j.effect(Deletes)
			continue // only ever removes an empty directory
		}
		if base == "shred" || base == "srm" {
			j.deny("shell.wipe", "overwrites the file so that it cannot be restored: "+plain(w))
		}
		for _, v := range j.glob(w) {
			j.deletePath(v, tree)
		}
	}
	return flow{}
}

// dd judges copying raw data: its operands are key=value.
func (j *judge) dd(args []string) flow {
	for _, a := range args {
		k, v, _ := strings.Cut(a, "=")
		switch k {
		case "if":
			j.readPath(v)
		case "of":
			j.writePath(v)
			j.ask("shell.overwrite", "overwrites a file from its beginning: "+plain(v))
		default:
			if !known(k) {
				j.ask("shell.dynamic-option", "an operand is not known before it runs: "+plain(a))
			}
		}
	}
	return flow{net: j.stdin.net}
}

// link judges ln: a link to something protected would make it readable or writable under another name.
func (j *judge) link(args []string) flow {
	s := &spec{opts: map[string]byte{"-t": 'd', "--target-directory": 'd', "-S": 'v', "--suffix": 'v', "-f": '?', "--force": '?', "-T": '.'}}
	if helpOnly(args) {
		return flow{}
	}
	p := j.options(s, args)
	ops := p.operands
	n := len(ops)
	if n > 1 && !p.has("-t", "--target-directory") {
		j.writePath(ops[n-1])
		ops = ops[:n-1]
	}
	for _, w := range ops {
		abs := j.resolve(w)
		switch k := j.kind(w, abs); {
		case sensitive(k):
			j.deny("shell.link", "makes another name for a protected file: "+plain(w))
		case shellPaths[abs]:
			j.ask("shell.link", "makes another name for a shell")
		}
		if !p.has("-s", "--symbolic") && known(abs) && !j.env.Places.Writable(abs) && !j.scratch(abs) {
			j.ask("shell.link", "makes a hard link to a file outside the folders that may be written: "+plain(w))
		}
		if n == 1 {
			j.writePath(abs[strings.LastIndexByte(abs, '/')+1:])
		}
	}
	return flow{}
}

// cat passes its input on, so known text stays known.
func (j *judge) cat(base string, args []string) flow {
	p := j.options(&spec{opts: map[string]byte{"-T": '.'}}, args)
	out := flow{known: base != "tac" && len(p.given) == 0}
	if len(p.operands) == 0 {
		p.operands = []string{"-"}
	}
	for _, w := range p.operands {
		f := j.stdin
		if w != "-" {
			j.readPath(w)
			f = j.fileFlow(w)
		}
		out.known = out.known && f.known
		out.text += f.text
		out.net = out.net || f.net
	}
	if !out.known || len(out.text) > MaxBytes {
		return flow{net: out.net}
	}
	return out
}

// decoder judges base64 and its like; decoding known text gives known text.
func (j *judge) decoder(base string, args []string) flow {
	s := &spec{opts: map[string]byte{"-w": 'v', "--wrap": 'v', "-i": 'r', "--input": 'r', "-o": 'w', "--output": 'w'}}
	if base == "xxd" {
		s = &spec{single: true, opts: map[string]byte{"-c": 'v', "-g": 'v', "-l": 'v', "-s": 'v', "-o": 'v', "-n": 'v', "-cols": 'v', "-len": 'v', "-seek": 'v', "-name": 'v'}}
	}
	if base == "base64" || base == "gbase64" || base == "base32" {
		delete(s.opts, "-i") // GNU: ignore garbage
	}
	p := j.options(s, args)
	in := j.stdin
	for i, w := range p.operands {
		if base == "xxd" && i == 1 {
			j.writePath(w)
			continue
		}
		j.readPath(w)
		in = j.fileFlow(w)
	}
	out := flow{net: in.net}
	if !in.known || !known(in.text) {
		return out
	}
	switch {
	case base == "rev":
		lines := strings.Split(in.text, "\n")
		for i, l := range lines {
			lines[i] = reverse(l)
		}
		out.text, out.known = strings.Join(lines, "\n"), true
	case strings.HasSuffix(base, "base64") && p.has("-d", "-D", "--decode"):
		out.text, out.known = decoded(in.text, "base64")
	case base == "xxd" && p.has("-r", "-r-p") && (p.has("-p") || p.has("-ps") || p.has("-plain")):
		out.text, out.known = decoded(in.text, "hex")
	}
	out.known = out.known && !strings.ContainsAny(out.text, "\x00\x01\x02\x03")
	return out
}

func reverse(s string) string {
	r := []rune(s)
	for i, k := 0, len(r)-1; i < k; i, k = i+1, k-1 {
		r[i], r[k] = r[k], r[i]
	}
	return string(r)
}

var tarSpec = &spec{opts: map[string]byte{
	"-f": 'v', "--file": 'v', "-C": 'v', "--directory": 'v', "--cd": 'v', "-T": 'r', "--files-from": 'r', "-X": 'r', "--exclude-from": 'r', "--exclude": 'v', "-I": 'x', "--use-compress-program": 'x',
	"--to-command": 'x', "--checkpoint-action": 'x', "--info-script": 'x', "--new-volume-script": 'x', "-F": 'x', "--rsh-command": 'x', "--rmt-command": 'x', "-b": 'v', "-g": 'w', "--listed-incremental": 'w',
	"--transform": 'v', "--xform": 'v', "-s": '.', "--strip-components": 'v', "--owner": 'v', "--group": 'v', "--mode": 'v', "--mtime": 'v', "--newer": 'v', "-N": 'v', "-K": 'v', "-L": 'v', "-V": 'v', "-H": 'v', "--format": 'v',
	"-P": '?', "--absolute-names": '?', "--delete": '?', "--remove-files": '?', "--unlink-first": '?', "--recursive-unlink": '?', "-U": '?', "--overwrite-dir": '?', "--index-file": 'w', "--one-top-level": '.', "--suffix": 'v', "--backup": '.', "--level": 'v',
}}

// tar judges archives: what is read into one, where one is unpacked.
func (j *judge) tar(args []string) flow {
	if helpOnly(args) {
		return flow{}
	}
	if len(args) > 0 && args[0] != "" && args[0][0] != '-' && known(args[0]) {
		args = tarBundle(args)
	}
	p := j.options(tarSpec, args)
	for _, s := range p.each("--transform", "--xform") {
		if !known(s) || strings.HasSuffix(s, "e") {
			j.ask("shell.exec", "the transformation can run commands")
		}
	}
	file := p.given["-f"] + p.given["--file"]
	dirs := p.each("-C", "--directory", "--cd") // which one an operand belongs to depends on the order, so each counts for all
	if len(dirs) == 0 {
		dirs = []string{"."}
	}
	if strings.Contains(file, ":") && known(file) && !strings.HasPrefix(file, "/") && !p.has("--force-local") {
		j.host(strings.SplitN(file, ":", 2)[0])
		j.deny("shell.upload", "the archive is on another machine")
	}
	switch {
	case p.has("-x", "--extract", "--get"):
		j.readPath(file)
		if p.has("-O", "--to-stdout") {
			break
		}
		for _, dir := range dirs {
			j.writeInto(dir)
			if abs := j.resolve(dir); known(abs) && j.env.Places.Covers(abs) && !j.env.Places.Writable(abs) {
				j.deny("shell.write-top", "unpacks over a home, a root or a top-level directory: "+plain(dir))
			}
		}
	case p.has("-t", "--list", "-d", "--diff", "--compare"):
		j.readPath(file)
	case p.has("-c", "--create", "-r", "--append", "-u", "--update", "-A"):
		j.writePath(file)
		cwd := j.cwd
		for _, dir := range dirs {
			j.cwd = cwd
			j.chdir([]string{dir})
			for _, w := range p.operands {
				j.readPath(w)
				j.holdsSecrets(w)
			}
		}
		j.cwd = cwd
	case len(args) > 0 && !p.has("--version", "--help"):
		j.ask("shell.unknown-option", "the archive operation is not known")
	}
	return flow{net: j.stdin.net}
}

// tarBundle turns the old style "xzf archive" into options.
func tarBundle(args []string) []string {
	var out, rest []string
	rest = args[1:]
	for _, c := range args[0] {
		o := "-" + string(c)
		if takesValue(tarSpec.opts[o]) && tarSpec.opts[o] != 0 && len(rest) > 0 {
			out = append(out, o, rest[0])
			rest = rest[1:]
			continue
		}
		out = append(out, o)
	}
	return append(out, rest...)
}

// holdsSecrets objects to taking along a whole directory in which credentials are kept.
func (j *judge) holdsSecrets(word string) {
	abs := j.resolve(word)
	if !known(abs) || globbed(abs) {
		return
	}
	switch {
	case j.env.Places.Kind(strings.TrimSuffix(abs, "/")+"/any-file") == place.Secret:
		j.deny("shell.read-secret", "takes along a directory in which credentials are kept: "+plain(word))
	case j.env.Places.Covers(abs) && !j.env.Places.Writable(abs):
		j.ask("shell.read-tree", "takes along a whole home or top-level directory: "+plain(word))
	}
}
