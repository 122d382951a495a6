package gate

import (
	"fmt"

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
	return Pass()
}
