package gate

import (
	"fmt"
	"strings"

	"passepartout/internal/proto"
)

// vaultPrefix begins a reference to an entry of the vault. A World names values
// it recognised in a text the same way.
const vaultPrefix = "vault:"

// judgeVault (600) watches references to the vault. A reference stays one until
// the actuator resolves it after the permit, and only where a program or a server
// gets to see it; in text to be stored or said it is just a word. Using a
// credential always needs a person or a rule of theirs.
func judgeVault(v *view) Verdict {
	for _, h := range v.facts.withheld {
		for _, kind := range h.kinds {
			if strings.HasPrefix(kind, vaultPrefix) {
				return Verdict{Code: "vault.literal", Reason: fmt.Sprintf("argument :%s holds the value of %s: write the reference instead", h.arg, kind)}
			}
		}
	}
	switch v.facts.Effect() {
	case proto.Execute, proto.Network, proto.SendMessage:
	case proto.EffectUnknown, proto.Speak, proto.ReadLocal, proto.WriteMemory, proto.WriteLocal, proto.Rewrite:
		return Pass()
	}
	var used []string
	for _, a := range v.args {
		for _, name := range references(a.text) {
			switch {
			case a.means == proto.Outbound || a.means == proto.Content || a.means == proto.Recipient:
				return Verdict{Code: "vault.leaves", Reason: fmt.Sprintf("argument %s would carry %s%s out of the vault", a.name, vaultPrefix, name)}
			case len(v.facts.World.Know("vault", name)) == 0:
				return Verdict{Code: "vault.unknown", Reason: fmt.Sprintf("the vault has no entry %s", quote(name))}
			}
			used = append(used, vaultPrefix+name)
		}
	}
	if len(used) == 0 {
		return Pass()
	}
	return Verdict{Decision: Ask, Code: "vault.reference", Reason: fmt.Sprintf("%s would use %s", v.action.Name(), strings.Join(used, ", "))}
}

// references finds the names after "vault:" in a text.
func references(s string) []string {
	var out []string
	for {
		i := strings.Index(s, vaultPrefix)
		if i < 0 {
			return out
		}
		standsAlone := i == 0 || !nameByte(s[i-1])
		s = s[i+len(vaultPrefix):]
		n := 0
		for n < len(s) && nameByte(s[n]) {
			n++
		}
		if n > 0 && standsAlone {
			out = append(out, s[:n])
		}
	}
}

func nameByte(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.'
}

// judgeVaultValues is check 6 of the dispatcher: no value of the vault may stand
// anywhere in an action, in whatever encoding.
func judgeVaultValues(v *view) Verdict {
	return v.withheldVerdict("vault-value.found", "a value kept in the vault", func(kind string) bool {
		return strings.HasPrefix(kind, vaultPrefix)
	})
}
