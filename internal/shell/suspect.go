package shell

import (
	"strings"

	"passepartout/internal/place"
)

// suspicious looks for protected paths and shells anywhere inside an argument whose meaning is not described: script text, key=value pairs,
// addresses with a file in them.
func (j *judge) suspicious(arg string) {
	for rest := arg; rest != ""; {
		n := strings.IndexAny(rest, " \t\n\"'`(){}<>,;|&=@:$")
		tok := rest
		if n >= 0 {
			tok, rest = rest[:n], rest[n+1:]
		} else {
			rest = ""
		}
		if tok != "" {
			j.suspectToken(tok)
		}
	}
}

func (j *judge) suspectToken(tok string) {
	if j.remote || tok[0] == '-' && len(tok) > 2 && tok[1] != '-' {
		if i := strings.IndexAny(tok, "/~"); i > 0 && !j.remote {
			tok = tok[i:] // a value glued to its option
		}
	}
	if shellPaths[tok] || shellPaths[strings.TrimPrefix(tok, "!")] {
		j.effect(Executes)
		j.deny("shell.escape", "hands a shell to a program that would run it")
		return
	}
	if j.remote || !known(tok) || !strings.ContainsAny(tok, "/.~") {
		return
	}
	if strings.HasPrefix(tok, "/dev/tcp/") || strings.HasPrefix(tok, "/dev/udp/") {
		j.deny("shell.net-redirect", "opens a network connection through a file name")
		return
	}
	abs := j.resolve(tok)
	switch k := j.kind(tok, abs); k {
	case place.Secret, place.Process:
		j.readPath(tok)
	case place.Startup, place.Agent, place.Own, place.Device:
		j.protected(k, "touches", tok)
	default:
	}
}

var shellPaths = map[string]bool{
	"/bin/sh": true, "/bin/bash": true, "/bin/dash": true, "/bin/zsh": true, "/bin/ksh": true, "/bin/csh": true, "/bin/tcsh": true, "/bin/fish": true, "/bin/ash": true,
	"/usr/bin/sh": true, "/usr/bin/bash": true, "/usr/bin/dash": true, "/usr/bin/zsh": true, "/usr/bin/ksh": true, "/usr/bin/fish": true, "/system/bin/sh": true, "cmd.exe": true,
}
