package gate

import (
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// A Policy is everything a person can configure about the standard gates. Its
// digest is part of every ruling.
type Policy struct {
	Permissions []Permission
}

// Plist is the policy as the journal keeps it, so that rulings can be replayed.
func (p Policy) Plist() sexp.Plist {
	var perms []sexp.Value
	for _, r := range p.Permissions {
		perms = append(perms, sexp.NewList(sexp.String(r.Name), sexp.String(r.Decision.String()), sexp.String(r.Rule)))
	}
	return sexp.P(sexp.Keyword("PERMISSIONS"), sexp.NewList(perms...))
}

// Digest identifies the policy.
func (p Policy) Digest() sexp.Digest { return sexp.Sum(p.Plist().List()) }

// required names the gates without which a chain refuses to be built. A skill's
// gate can be added to them and can replace none.
var required = []string{"origin", "permissions", "policy", "validator"}

// Standard builds the chain of the compiled-in gates, and any extra ones, under a
// policy.
func Standard(p Policy, v *proto.Vocabulary, extra ...Gate) (*Chain, error) {
	gates := []Gate{
		originGate{},
		newPermissions(p.Permissions),
		explainGate{},
		validatorGate{v},
	}
	return New(v, p.Digest(), required, append(gates, extra...)...)
}
