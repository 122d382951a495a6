package gate_test

import (
	"math/rand/v2"
	"testing"

	"passepartout/internal/secret"
	"passepartout/internal/sexp"
)

// Whoever writes the journal redacts it once more. A ruling must pass through
// that unchanged, or it could not be replayed.
func TestARulingHasNothingLeftToRedact(t *testing.T) {
	c := standard(t, policy())
	scanner := secret.Default()
	rng := rand.New(rand.NewPCG(5, 6))
	var look func(v sexp.Value)
	look = func(v sexp.Value) {
		switch v := v.(type) {
		case sexp.String:
			if got := scanner.Redact(string(v)); got != string(v) {
				t.Errorf("%q would be kept as %q", v, got)
			}
		case sexp.List:
			for _, item := range v.Items() {
				look(item)
			}
		default:
		}
	}
	for range 300 {
		r := record(mixed(t, c, rng))
		for _, p := range []sexp.Plist{r.action, r.trace, r.facts} {
			look(p.List())
		}
	}
	f := benchFacts()
	for _, text := range []string{
		"the key is ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789", "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMIK7MDENGbPxRfiCYzzKEYzz12345", "password: correct-horse-9battery",
	} {
		r := record(c.Decide(action(t, "cli.message", "TEXT", text), f))
		for _, p := range []sexp.Plist{r.action, r.trace, r.facts} {
			look(p.List())
		}
	}
}
