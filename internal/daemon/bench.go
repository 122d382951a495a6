package daemon

import (
	"passepartout/internal/gate"
	"passepartout/internal/proto"
	"passepartout/internal/secret"
	"passepartout/internal/skill"
)

// A Bench judges actions as the daemon of the same settings would, while none
// runs. Nothing is carried out and nothing is recorded.
type Bench struct {
	Vocabulary *proto.Vocabulary
	Policy     gate.Policy
	Table      []byte // the text of the table of tools, the memex's or the built-in one
	World      gate.World
	Skills     *skill.Set  // empty where there are none
	Gates      []gate.Gate // those of skills, which judge too
}

// OpenBench reads the policy of these settings. Of the memex only the policy's
// files are looked at.
func OpenBench(s Settings) (*Bench, error) {
	s = s.resolved()
	d := &Daemon{s: s, now: s.Now, level: sandboxLevel}
	var err error
	if d.skills, err = d.openSkills(); err != nil {
		return nil, err
	}
	table, err := d.actuators()
	if err != nil {
		return nil, err
	}
	source := &policySource{memex: s.MemexDir, base: d.basePolicy(), vocabulary: table.Vocabulary()}
	pol, err := source.load()
	if err != nil {
		return nil, err
	}
	text, _, err := source.permissions()
	if err != nil {
		return nil, err
	}
	set := &skill.Set{}
	var gates []gate.Gate
	if d.skills != nil {
		set = d.skills.Set()
		gates = append(set.Gates(), set.Drafts())
	}
	scanner := secret.Default().WithValues(s.Secrets)
	return &Bench{
		Skills: set, Gates: gates, Vocabulary: table.Vocabulary(), Policy: pol, Table: text,
		World: world{scanner: func() *secret.Scanner { return scanner }, places: d.layout(), vault: newEntries(s.Secrets, s.Vault)},
	}, nil
}
