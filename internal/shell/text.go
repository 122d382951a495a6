package shell

import (
	"strings"
)

var sedSpec = &spec{strict: true, opts: map[string]byte{
	"-n": '.', "--quiet": '.', "--silent": '.', "-e": 'v', "--expression": 'v', "-f": 'v', "--file": 'v', "-E": '.', "-r": '.', "--regexp-extended": '.', "-i": '.', "--in-place": '.', "-l": 'v', "--line-length": 'v', "--posix": '.', "-s": '.', "--separate": '.',
	"-u": '.', "--unbuffered": '.', "-z": '.', "--null-data": '.', "-b": '.', "--binary": '.', "--debug": '.', "--sandbox": '.', "--follow-symlinks": '.', "-a": '.', "--help": '.', "--version": '.',
}}

// sed judges the stream editor: its scripts can run commands and write files.
func (j *judge) sed(args []string) flow {
	var p parsed
	var scripts, files []string
	inPlace := false
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			files = append(files, args[i+1:]...)
			i = len(args)
		case strings.HasPrefix(a, "-i") || strings.HasPrefix(a, "--in-place"):
			inPlace = true // what follows the letter is a suffix for the copy
			if a == "-i" && i+1 < len(args) && args[i+1] == "" {
				i++ // BSD spells "no suffix" as an empty argument
			}
		case len(a) > 1 && a[0] == '-' && a[1] == '-':
			i += j.longOption(sedSpec, &p, a, args[i+1:])
			if v, ok := p.given["--expression"]; ok {
				scripts = append(scripts, v)
				delete(p.given, "--expression")
			}
		case len(a) > 1 && a[0] == '-':
			// In a cluster such as -ni.bak everything after the i is the suffix for the copy.
			cluster := a
			if head := cutAt(a, "ef"); strings.Contains(head, "i") {
				inPlace = true
				cluster = cutAt(a, "i")
			}
			i += j.shortOptions(sedSpec, &p, cluster, args[i+1:])
			if v, ok := p.given["-e"]; ok {
				scripts = append(scripts, v)
				delete(p.given, "-e")
			}
		default:
			files = append(files, a)
		}
	}
	for _, f := range p.each("-f", "--file") {
		scripts = append(scripts, "")
		j.runScript(f, func(t string) { j.sedScript(t) })
	}
	if len(scripts) == 0 && len(files) > 0 {
		scripts, files = files[:1], files[1:]
	}
	j.sedScript(strings.Join(scripts, "\n"))
	for _, f := range files {
		j.readPath(f)
		if inPlace {
			j.writePath(f)
		}
	}
	return flow{net: j.stdin.net}
}

// cutAt returns s up to the first of the characters.
func cutAt(s, chars string) string {
	if i := strings.IndexAny(s, chars); i >= 0 {
		return s[:i]
	}
	return s
}

// sedScript walks a sed script, looking for the commands that run or write something.
func (j *judge) sedScript(s string) {
	s = unglob(s)
	i := 0
	for i < len(s) {
		c := s[i]
		switch {
		case strings.IndexByte(" \t\n;{}!,", c) >= 0 || c >= '0' && c <= '9' || c == '$' || c == '+' || c == '~' || c == '-':
			i++
		case c == '/':
			i = skipRegexp(s, i+1, '/')
		case c == '\\' && i+1 < len(s):
			i = skipRegexp(s, i+2, s[i+1])
		case c == hole:
			i++
		case c == '#':
			i = endOfLine(s, i)
		case c == 's':
			i = j.sedSubstitute(s, i+1)
		case c == 'y':
			if i+1 >= len(s) {
				return
			}
			d := s[i+1]
			i = skipRegexp(s, skipRegexp(s, i+2, d), d)
		case c == 'e':
			end := endOfLine(s, i)
			j.effect(Executes)
			j.deny("shell.sed-exec", "the sed script runs a command")
			j.nested(s[i+1 : end])
			i = end
		case c == 'w' || c == 'W':
			end := endOfLine(s, i)
			j.writePath(strings.TrimSpace(s[i+1 : end]))
			i = end
		case c == 'r' || c == 'R':
			end := endOfLine(s, i)
			j.readPath(strings.TrimSpace(s[i+1 : end]))
			i = end
		case c == 'a' || c == 'i' || c == 'c':
			i = endOfText(s, i)
		case c == 'b' || c == 't' || c == 'T' || c == ':':
			for i < len(s) && s[i] != '\n' && s[i] != ';' && s[i] != '}' {
				i++
			}
		case c == 'I' || c == 'M' || strings.IndexByte("dDgGhHlnNpPqQxzFv=", c) >= 0:
			i++
		default:
			j.ask("shell.sed", "the sed script has a command that is not known")
			return
		}
	}
}

func endOfLine(s string, i int) int {
	if k := strings.IndexByte(s[i:], '\n'); k >= 0 {
		return i + k
	}
	return len(s)
}

// endOfText skips the text of a, i and c, which continues after a backslash at the end of a line.
func endOfText(s string, i int) int {
	for {
		e := endOfLine(s, i)
		if e == len(s) || e == 0 || s[e-1] != '\\' {
			return e
		}
		i = e + 1
	}
}

// skipRegexp returns the index after the delimiter that ends a pattern starting at i.
func skipRegexp(s string, i int, delim byte) int {
	class := false
	for ; i < len(s); i++ {
		switch {
		case s[i] == '\\':
			i++
		case s[i] == '[' && !class:
			class = true
			if i+1 < len(s) && s[i+1] == '^' {
				i++
			}
			if i+1 < len(s) && s[i+1] == ']' {
				i++
			}
		case s[i] == ']':
			class = false
		case s[i] == delim && (!class || strings.IndexByte(s[i+1:], ']') < 0):
			return i + 1
		case s[i] == delim && class:
			return i + 1 // POSIX lets it stand here, but ending early only makes the reader stricter
		}
	}
	return len(s)
}

// sedSubstitute judges s/…/…/flags and returns the index after it.
func (j *judge) sedSubstitute(s string, i int) int {
	if i >= len(s) {
		return i
	}
	d := s[i]
	i = skipRegexp(s, i+1, d)
	for ; i < len(s) && s[i] != d; i++ { // in the replacement brackets mean nothing
		if s[i] == '\\' {
			i++
		}
	}
	i++
	for i < len(s) {
		switch c := s[i]; {
		case c == 'e':
			j.effect(Executes)
			j.deny("shell.sed-exec", "the substitution runs its result as a command")
			i++
		case c == 'w':
			end := endOfLine(s, i)
			j.writePath(strings.TrimSpace(s[i+1 : end]))
			return end
		case c == 'g' || c == 'p' || c == 'i' || c == 'I' || c == 'm' || c == 'M' || c >= '0' && c <= '9' || c == hole:
			i++
		default:
			return i
		}
	}
	return i
}

var awkSpec = &spec{first: true, opts: map[string]byte{
	"-F": 'v', "--field-separator": 'v', "-v": 'v', "--assign": 'v', "-f": 'v', "--file": 'v', "-e": 'v', "--source": 'v', "-i": 'v', "--include": 'v', "-l": 'x', "--load": 'x', "-E": 'v', "--exec": 'v', "-o": 'w', "--pretty-print": 'w', "-p": 'w', "--profile": 'w',
	"-d": 'w', "--dump-variables": 'w', "-D": 'x', "--debug": 'x', "-W": 'v', "-m": 'v',
}}

// awk judges the pattern language: programs in it can run commands and write files.
func (j *judge) awk(args []string) flow {
	if helpOnly(args) {
		return flow{}
	}
	p := j.options(awkSpec, args)
	ops := p.operands
	hasProgram := false
	for _, v := range p.each("-e", "--source") {
		j.awkProgram(v)
		hasProgram = true
	}
	for _, v := range p.each("-f", "--file", "-E", "--exec") {
		j.runScript(v, j.awkProgram)
		hasProgram = true
	}
	inPlace := false
	for _, v := range p.each("-i", "--include") {
		if v == "inplace" {
			inPlace = true
		} else {
			j.runScript(v, j.awkProgram)
		}
	}
	if !hasProgram && len(ops) > 0 {
		j.awkProgram(ops[0])
		ops = ops[1:]
	}
	for _, w := range ops {
		if i := strings.IndexByte(w, '='); i > 0 && strings.IndexByte(w[:i], '/') < 0 {
			continue
		}
		j.readPath(w)
		if inPlace {
			j.writePath(w)
		}
	}
	return flow{net: j.stdin.net}
}

// awkProgram looks for the ways out of an awk program: system, pipes, output files, loaded code.
func (j *judge) awkProgram(s string) {
	s = unglob(s)
	if !known(s) && strings.Trim(s, "\x00 ") == "" {
		j.ask("shell.dynamic", "the awk program is not known before it runs")
		return
	}
	printing, depth, lastLit := false, 0, ""
	prev := byte('{')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"':
			lit, n, _ := codeString(s[i:], '"')
			lastLit = lit
			i += n
			prev = '"'
			continue
		case c == '/' && strings.IndexByte("(,{;!~&|\n}", prev) >= 0:
			i = skipRegexp(s, i+1, '/')
			prev = '/'
			continue
		case c == '#':
			i = endOfLine(s, i)
			continue
		case wordByte(c):
			k := i
			for k < len(s) && wordByte(s[k]) {
				k++
			}
			j.awkWord(s[i:k], s[k:], &printing)
			i = k
			prev = 'a'
			continue
		case c == '(' || c == '[':
			depth++
		case c == ')' || c == ']':
			depth--
		case c == ';' || c == '\n' || c == '}' || c == '{':
			printing = false
		case c == '|' && i+1 < len(s) && s[i+1] == '|':
			i++
		case c == '|':
			j.awkPipe(s[i+1:], lastLit)
		case c == '>' && printing && depth <= 0:
			j.awkRedirect(strings.TrimLeft(s[i+1:], "> \t"))
		case c == '@':
			j.ask("shell.awk", "the awk program calls something by an indirect name or loads code")
		}
		if c != ' ' && c != '\t' {
			prev = c
		}
		i++
	}
}

func (j *judge) awkWord(w, rest string, printing *bool) {
	switch w {
	case "print", "printf":
		*printing = true
	case "system":
		j.effect(Executes)
		lit := strings.TrimLeft(rest, " (")
		if strings.HasPrefix(lit, "\"") {
			text, n, _ := codeString(lit, '"')
			j.nested(text)
			if strings.HasPrefix(strings.TrimLeft(lit[n:], " "), ")") {
				j.ask("shell.awk", "the awk program runs a command")
				return
			}
		}
		j.deny("shell.awk-exec", "the awk program builds and runs commands")
	case "getline":
		if r := strings.TrimLeft(rest, " abcdefghijklmnopqrstuvwxyz_"); strings.HasPrefix(r, "<") {
			r = strings.TrimLeft(r[1:], " ")
			if strings.HasPrefix(r, "\"") {
				lit, _, _ := codeString(r, '"')
				j.readPath(lit)
			}
		}
	case "ENVIRON", "PROCINFO":
		j.ask("shell.environment", "the awk program reads the environment, where credentials are often kept")
	}
}

// awkPipe judges a command at either end of an awk pipe.
func (j *judge) awkPipe(rest, left string) {
	j.effect(Executes)
	r := strings.TrimLeft(rest, "& \t")
	if strings.HasPrefix(r, "\"") {
		cmd, _, _ := codeString(r, '"')
		saved := j.stdin
		j.stdin = flow{piped: true}
		j.nested(cmd)
		j.stdin = saved
		if strings.HasPrefix(cmd, "sort") && !strings.ContainsAny(cmd, ";&|<>`$-") {
			return
		}
		j.ask("shell.awk", "the awk program pipes into a command")
		return
	}
	if strings.HasPrefix(r, "getline") && left != "" {
		if strings.HasPrefix(left, "/inet") {
			j.deny("shell.net-redirect", "the awk program opens a network connection")
			return
		}
		j.nested(left)
		j.ask("shell.awk", "the awk program reads from a command")
		return
	}
	j.deny("shell.awk-exec", "the awk program builds and runs commands")
}

func (j *judge) awkRedirect(target string) {
	if !strings.HasPrefix(target, "\"") {
		j.ask("shell.write-unknown", "the awk program writes files whose names it makes up")
		return
	}
	lit, n, _ := codeString(target, '"')
	if t := strings.TrimLeft(target[n:], " \t"); t != "" && strings.IndexByte(";}\n)", t[0]) < 0 {
		lit += anything
	}
	j.writePath(lit)
}
