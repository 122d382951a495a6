package gate

import (
	"fmt"
	"path"
	"strings"

	"passepartout/internal/place"
	"passepartout/internal/proto"
)

// judgeSelfBuild is check 4 of the dispatcher: the agent does not rewrite what
// decides about it. Its journal, policy and vault are out of reach; what steers
// it or another agent is for a person to change.
func judgeSelfBuild(v *view) Verdict {
	verdict := Pass()
	for _, p := range v.paths {
		switch {
		case p.kind == place.Own:
			return Verdict{Code: "self-build.own", Reason: fmt.Sprintf("%s belongs to the journal, the policy or the vault, which no action touches", quote(p.abs))}
		case p.means != proto.WritePath:
		case p.kind == place.Agent:
			return Verdict{Code: "self-build.agent", Reason: fmt.Sprintf("%s tells an agent or an editor what to run", quote(p.abs))}
		case inside(p.abs, v.policy.Steering):
			verdict = Verdict{Decision: Ask, Code: "self-build.steering", Reason: fmt.Sprintf("%s changes what the agent does by itself", quote(p.abs))}
		}
	}
	return verdict
}

// inside reports whether p is one of the places or lies below one. On a file system
// that ignores case other letters are the same place.
func inside(p string, places []string) bool {
	p = strings.ToLower(p)
	for _, dir := range places {
		dir = strings.ToLower(path.Clean(dir))
		if p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/") {
			return true
		}
	}
	return false
}
