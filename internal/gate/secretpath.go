package gate

import (
	"fmt"
	"strings"

	"passepartout/internal/place"
	"passepartout/internal/proto"
)

// judgeSecretPath is check 3 of the dispatcher: files that hold credentials or
// private histories are neither read nor written, and neither is another
// process's memory. Commands are judged by the shell check.
func judgeSecretPath(v *view) Verdict {
	for _, p := range v.paths {
		switch p.kind {
		case place.Secret, place.Process:
			if p.means == proto.WritePath {
				return Verdict{Code: "secret-path.write", Reason: fmt.Sprintf("%s is where credentials or private histories are kept", quote(p.abs))}
			}
			return Verdict{Code: "secret-path.read", Reason: fmt.Sprintf("%s holds credentials or private histories", quote(p.abs))}
		default:
		}
	}
	for _, a := range v.texts(proto.Plain) {
		if !spellsPath(a.text) {
			continue
		}
		abs := v.layout.Resolve(v.policy.Cwd, a.text)
		switch v.layout.Kind(abs) {
		case place.Secret, place.Process, place.Own:
			return Verdict{Code: "secret-path.read", Reason: fmt.Sprintf("argument %s names %s, which no tool needs to know", a.name, quote(abs))}
		default:
		}
	}
	return Pass()
}

// spellsPath reports whether a text that nobody declared to be a path is one in
// all likelihood: a tool may open it under whatever name its argument has.
func spellsPath(s string) bool {
	if strings.ContainsAny(s, " \t\r\n") || strings.Contains(s, "://") {
		return false
	}
	return strings.HasPrefix(s, "/") || strings.HasPrefix(s, "~") || strings.HasPrefix(s, ".") || strings.Contains(s, "/.")
}
