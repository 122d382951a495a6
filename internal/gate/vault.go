package gate

import (
	"fmt"
	"strings"

	"passepartout/internal/proto"
)

// vaultPrefix begins a reference to an entry of the vault. A World names values
// it recognised in a text the same way.
const vaultPrefix = "vault:"

// judgeVault (600) watches references to the vault. Where a program or a server
// would get to see one, it is refused: credentials go where the owner's settings send
// them, and never because an action asks for it. In text to be stored or said to the
// owner it is just a word.
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
	for _, a := range v.args {
		names := references(a.text)
		switch {
		case len(names) == 0:
		case a.means == proto.Outbound || a.means == proto.Content || a.means == proto.Recipient:
			return Verdict{Code: "vault.leaves", Reason: fmt.Sprintf("argument %s would carry %s%s out of the vault", a.name, vaultPrefix, names[0])}
		case len(v.facts.World.Know("vault", names[0])) == 0:
			return Verdict{Code: "vault.unknown", Reason: fmt.Sprintf("the vault has no entry %s", quote(names[0]))}
		default:
			return Verdict{Code: "vault.reference", Reason: fmt.Sprintf("argument %s names %s%s, and no action is given a credential: the owner's settings say which host is shown one", a.name, vaultPrefix, names[0])}
		}
	}
	return Pass()
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
