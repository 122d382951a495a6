package gate

import (
	"fmt"

	"passepartout/internal/proto"
)

// originGate (700) knows who may ask for what. It runs first because a stranger's
// proposal deserves no further thought.
type originGate struct{}

func (originGate) Name() string  { return "origin" }
func (originGate) Priority() int { return 700 }

// reach is the strictest answer each role gets for each effect. What is not
// listed is denied.
var reach = map[proto.Role]map[proto.Effect]Decision{
	proto.RoleOwner: {
		proto.Speak: Allow, proto.ReadLocal: Allow, proto.WriteMemory: Allow, proto.WriteLocal: Allow,
		proto.Execute: Allow, proto.Network: Allow, proto.SendMessage: Allow, proto.Rewrite: Allow,
	},
	proto.RoleGuest: {
		proto.Speak: Allow, proto.ReadLocal: Ask, proto.WriteMemory: Ask,
	},
	proto.RoleJob: {
		proto.Speak: Allow, proto.ReadLocal: Allow, proto.WriteMemory: Allow, proto.WriteLocal: Ask,
		proto.Execute: Ask, proto.Network: Ask, proto.SendMessage: Ask,
	},
	proto.RolePeer: {
		proto.Speak: Allow, proto.ReadLocal: Ask,
	},
}

func (originGate) Check(a proto.Action, f Facts) Verdict {
	by := a.Cause().Origin
	if by != f.Signal.Origin {
		return Verdict{Code: "origin.mismatch", Reason: "the action claims another origin than the signal that caused it"}
	}
	d, ok := reach[by.Role][f.Effect()]
	switch {
	case !ok:
		return Verdict{Code: "origin.denied", Reason: fmt.Sprintf("%s on %s may not cause the effect %q", article(by.Role), channel(by), f.Effect())}
	case d == Ask:
		return Verdict{Decision: Ask, Code: "origin.ask", Reason: fmt.Sprintf("%s on %s wants the effect %q, which the owner must approve", article(by.Role), channel(by), f.Effect())}
	}
	return Pass()
}

func article(r proto.Role) string {
	switch r {
	case proto.RoleOwner:
		return "the owner"
	case proto.RoleNone:
		return "an unknown origin"
	case proto.RolePeer, proto.RoleJob, proto.RoleGuest:
	}
	return "a " + r.String()
}

func channel(o proto.Origin) string {
	if o.Channel == "" {
		return "no channel"
	}
	return o.Channel
}
