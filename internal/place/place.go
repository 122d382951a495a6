// Package place says what a path is before anything touches it.
//
// A [Layout] describes one machine as the gates see it: the home, the roots that may be read and written, our own files. Its methods
// take a path through two steps, and a caller needs both:
//
//   - [Layout.Resolve] turns what was written (~user, .., //, /proc/self/root, /dev/fd, file: URLs) into one absolute path, following
//     symbolic links when Layout.Real is given.
//   - [Layout.Kind] classifies that path against the tables in table.go; [Layout.Writable], [Layout.Readable] and [Layout.Covers]
//     compare it with the roots.
//
// The rule a newcomer will break: never classify a path that was not resolved, and never conclude from one answer alone. A path can be
// inside a write root and still be Startup or Secret; being Ordinary says nothing about the roots. Classification works on names, so
// a protected file is protected before it exists.
//
// The package is pure: it reads no file. Link resolution comes in through Layout.Real.
package place

import (
	"path"
	"strings"
)

// Kind is what a path is, as far as its name tells.
type Kind uint8

// The kinds. Unknown is the zero value and means that the name cannot be trusted to mean one file (relative, control characters, NT or UNC
// syntax): callers refuse it.
const (
	Unknown  Kind = iota
	Ordinary      // nothing special by name
	Sink          // standard streams and the null, zero and random devices
	System        // belongs to the operating system
	Top           // a root, a home, a top-level directory: too much to lose at once
	Agent         // steers another agent, an editor or an MCP server
	Startup       // will be run or obeyed later without anybody asking
	Process       // another look into a running process
	Device        // raw hardware, kernel memory, control sockets, bash's network paths
	Secret        // holds credentials or private histories
	Own           // our journal, policy, vault, socket, configuration
)

var kindNames = [...]string{
	Unknown: "unknown", Ordinary: "ordinary", Sink: "sink", System: "system", Top: "top", Agent: "agent",
	Startup: "startup", Process: "process", Device: "device", Secret: "secret", Own: "own",
}

// String returns the kind in lower case, as used in reasons and rules.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// Layout is one machine's arrangement of directories. The zero value has no home and no roots: nothing is writable or readable.
type Layout struct {
	Home, User string   // the user's home directory and login name
	WriteRoots []string // directories that may be written, absolute
	ReadRoots  []string // directories that may be read, absolute
	Own        []string // our own files and directories, absolute

	// Real resolves every symbolic link of an absolute path. It answers false when nothing of that name exists, and follows a dangling
	// link to the name it points at. Nil means paths are judged as text.
	Real func(path string) (string, bool)
}

// Resolve returns the absolute path that the words mean in directory cwd. The result is lexically clean; with Real it holds no symbolic
// link in any part that exists, and ".." is taken after links were followed, as the kernel does.
func (l Layout) Resolve(cwd, p string) string {
	p = l.expand(cwd, stripFileURL(p))
	if !strings.HasPrefix(p, "/") {
		p = cwd + "/" + p
	}
	switch {
	case l.Real != nil && !strings.Contains(p, "/.."):
		return l.alias(cwd, l.real(path.Clean(p)))
	case l.Real == nil && !strings.Contains(p, "/proc") && !strings.Contains(p, "/dev"):
		return path.Clean(p)
	}
	cur := "/"
	for elem := range strings.SplitSeq(p, "/") {
		switch elem {
		case "", ".":
		case "..":
			cur = path.Dir(cur)
		default:
			cur = l.step(cwd, path.Join(cur, elem))
		}
	}
	return canonicalFD(cur)
}

// step follows what one path element stands for, before the next element is applied.
func (l Layout) step(cwd, p string) string {
	if l.Real != nil {
		if r, ok := l.Real(p); ok {
			p = path.Clean(r)
		}
	}
	return unalias(cwd, p)
}

// real follows links in the longest part of p that exists.
func (l Layout) real(p string) string {
	rest := ""
	for dir := p; dir != "/"; dir = path.Dir(dir) {
		if r, ok := l.Real(dir); ok {
			return path.Join(path.Clean(r), rest)
		}
		rest = path.Join(path.Base(dir), rest)
	}
	return p
}

// alias applies the /proc and /dev names that mean another path, element by element.
func (l Layout) alias(cwd, p string) string {
	if !strings.HasPrefix(p, "/proc/") && !strings.HasPrefix(p, "/dev/") {
		return p
	}
	cur := "/"
	for elem := range strings.SplitSeq(p[1:], "/") {
		cur = unalias(cwd, path.Join(cur, elem))
	}
	if cur != p && strings.HasPrefix(cur, "/") && !strings.HasPrefix(cur, "/proc/") && !strings.HasPrefix(cur, "/dev/") {
		cur = l.real(cur)
	}
	return canonicalFD(cur)
}

// unalias replaces p when the kernel would: a process's root and working directory, a thread's directory, /dev/fd.
func unalias(cwd, p string) string {
	if p == "/dev/fd" {
		return "/proc/self/fd"
	}
	if p == "/proc/thread-self" || p == "/proc/curproc" {
		return "/proc/self"
	}
	rest, ok := strings.CutPrefix(p, "/proc/")
	if !ok {
		return p
	}
	pid, rest, ok := strings.Cut(rest, "/")
	if !ok || pid != "self" && !digits(pid) {
		return p
	}
	switch {
	case rest == "root":
		return "/"
	case rest == "cwd" && pid == "self":
		return path.Clean("/" + cwd)
	}
	if tid, ok := strings.CutPrefix(rest, "task/"); ok && digits(tid) {
		return "/proc/" + pid
	}
	return p
}

// canonicalFD gives our own descriptors their short name.
func canonicalFD(p string) string {
	if n, ok := strings.CutPrefix(p, "/proc/self/fd/"); ok && digits(n) {
		return "/dev/fd/" + n
	}
	return p
}

// expand replaces a leading tilde the way a shell does.
func (l Layout) expand(cwd, p string) string {
	if !strings.HasPrefix(p, "~") {
		return p
	}
	name, rest, _ := strings.Cut(p[1:], "/")
	var home string
	switch {
	case name == "", l.User != "" && name == l.User:
		home = l.Home
	case name == "+":
		home = cwd
	case name == "root":
		home = "/root"
	case strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == "" && name[0] != '-':
		home = path.Join(path.Dir(l.Home), name)
		if l.Home == "/root" || l.Home == "" {
			home = "/home/" + name
		}
	default:
		return p
	}
	return home + "/" + rest
}

// stripFileURL reduces a file: URL to its path; libraries open them as readily as plain names.
func stripFileURL(p string) string {
	if len(p) < 5 || !strings.EqualFold(p[:5], "file:") {
		return p
	}
	rest := p[5:]
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		if i := strings.IndexByte(after, '/'); i >= 0 {
			return after[i:]
		}
		return "/"
	}
	return rest
}

// Kind classifies an absolute path and returns the strictest kind that applies. Names are compared without regard to case, to invisible
// characters, to percent-encoding or to trailing dots, because some file system or library ignores each of them.
func (l Layout) Kind(abs string) Kind {
	if !strings.HasPrefix(abs, "/") || !oneMeaning(abs) {
		return Unknown
	}
	k := l.kind(abs)
	if strings.IndexByte(abs, '%') >= 0 {
		if dec := unpercent(abs); dec != abs {
			if !oneMeaning(dec) {
				return Unknown
			}
			k = max(k, l.kind(dec))
		}
	}
	return k
}

func (l Layout) kind(abs string) Kind {
	folded := fold(abs)
	k := Ordinary
	for _, own := range l.Own {
		if own != "" && under(folded, fold(own)) {
			return Own
		}
	}
	if l.isTop(folded) {
		k = Top
	}
	var buf [24]string
	return max(k, classify(split(buf[:0], folded)))
}

// isTop reports whether folded is a directory whose loss would be a disaster in itself.
func (l Layout) isTop(folded string) bool {
	if strings.Count(folded, "/") <= 1 {
		return true
	}
	if l.Home != "" && folded == fold(l.Home) {
		return true
	}
	for _, homes := range [...]string{"/home/", "/users/"} {
		if rest, ok := strings.CutPrefix(folded, homes); ok && !strings.Contains(rest, "/") {
			return true
		}
	}
	for _, root := range l.WriteRoots {
		if folded == fold(root) {
			return true
		}
	}
	return false
}

// Writable reports whether abs lies in a write root. It says nothing about the kind.
func (l Layout) Writable(abs string) bool { return l.in(l.WriteRoots, abs) }

// Readable reports whether abs lies in a read or write root. It says nothing about the kind.
func (l Layout) Readable(abs string) bool { return l.in(l.ReadRoots, abs) || l.in(l.WriteRoots, abs) }

func (l Layout) in(roots []string, abs string) bool {
	if !strings.HasPrefix(abs, "/") || !oneMeaning(abs) {
		return false
	}
	abs = path.Clean(abs)
	for _, root := range roots {
		if !strings.HasPrefix(root, "/") {
			continue
		}
		if root = path.Clean(root); under(abs, root) {
			return true
		}
		if l.Real == nil {
			continue
		}
		if r, ok := l.Real(root); ok && under(abs, path.Clean(r)) {
			return true
		}
	}
	return false
}

// Covers reports whether removing or replacing abs would take a home, a root, a top-level directory or our own files with it.
func (l Layout) Covers(abs string) bool {
	if !strings.HasPrefix(abs, "/") {
		return false
	}
	folded := fold(abs)
	if l.isTop(folded) {
		return true
	}
	for _, group := range [...][]string{{l.Home}, l.WriteRoots, l.Own} {
		for _, p := range group {
			if p != "" && under(fold(p), folded) {
				return true
			}
		}
	}
	for _, p := range l.ReadRoots {
		if p != "" && fold(p) != "/" && under(fold(p), folded) {
			return true
		}
	}
	return false
}

// under reports whether p is dir or lies below it; both are clean and absolute.
func under(p, dir string) bool {
	if dir == "/" {
		return true
	}
	return strings.HasPrefix(p, dir) && (len(p) == len(dir) || p[len(dir)] == '/')
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
