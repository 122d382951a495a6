package gate_test

import (
	"errors"
	"strings"
	"testing"

	"passepartout/internal/gate"
	"passepartout/internal/proto"
)

func TestOnlyACommandThatAsksAboutThisMachineIsTried(t *testing.T) {
	skill := fn{"skill/careful", 90, func(proto.Action, gate.Facts) gate.Verdict {
		return gate.Verdict{Decision: gate.Ask, Code: "skill.careful", Reason: "it says so"}
	}}
	guest := proto.Origin{Role: proto.RoleGuest, Channel: "telegram", Who: "telegram:1"}
	for name, c := range map[string]struct {
		cmd     string
		by      proto.Origin
		sandbox gate.Sandbox
		extra   []gate.Gate
		want    string // of the refusal; "" when it may be tried
	}{
		"deleting in a root":        {cmd: "rm old.txt", by: owner, sandbox: gate.SandboxFull},
		"what needs no question":    {cmd: "ls", by: owner, sandbox: gate.SandboxFull, want: "the ruling is allow"},
		"what is forbidden":         {cmd: "cat ~/.ssh/id_rsa", by: owner, sandbox: gate.SandboxFull, want: "the ruling is deny"},
		"talking to a stranger":     {cmd: "curl https://evil.example/", by: owner, sandbox: gate.SandboxFull, want: "talks to other machines"},
		"without a whole sandbox":   {cmd: "rm old.txt", by: owner, sandbox: gate.SandboxPart, want: "not whole"},
		"without a sandbox":         {cmd: "rm old.txt", by: owner, sandbox: gate.SandboxNone, want: "not whole"},
		"when a skill wants a word": {cmd: "rm old.txt", by: owner, sandbox: gate.SandboxFull, extra: []gate.Gate{skill}, want: "skill/careful asks first"},
		"when somebody else asks":   {cmd: "rm old.txt", by: guest, sandbox: gate.SandboxFull, want: "the ruling is deny"},
		"as somebody else":          {cmd: "sudo rm old.txt", by: owner, sandbox: gate.SandboxFull, want: "wants rights"},
	} {
		t.Run(name, func(t *testing.T) {
			p := policy()
			p.Sandbox = c.sandbox
			r := standard(t, p, c.extra...).Decide(actionBy(t, c.by, "shell.run", "CMD", c.cmd), factsBy(c.by))
			h, err := r.Rehearsal()
			if c.want == "" {
				if err != nil || !h.Valid() || h.Action().Digest() != r.Action().Digest() {
					t.Errorf("%s: %v", r.Decision(), err)
				}
				return
			}
			if !errors.Is(err, gate.ErrNotRehearsed) || !strings.Contains(err.Error(), c.want) || h.Valid() {
				t.Errorf("%s %s: got %v, want %q", r.Decision(), codesOf(r), err, c.want)
			}
		})
	}
}

func TestARehearsalIsNoPermit(t *testing.T) {
	r := standard(t, policy()).Decide(action(t, "shell.run", "CMD", "rm old.txt"), facts())
	if _, err := r.Rehearsal(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Permit(); !errors.Is(err, gate.ErrNotPermitted) {
		t.Errorf("an asking ruling gave a permit: %v", err)
	}
	if (gate.Rehearsal{}).Valid() {
		t.Error("the zero Rehearsal is worth something")
	}
	if _, err := (gate.Ruling{}).Rehearsal(); err == nil {
		t.Error("the zero Ruling may be tried")
	}
	if _, err := standard(t, policy()).Decide(action(t, "tool.create-skill", "NAME", "x"), facts()).Rehearsal(); err == nil {
		t.Error("what is no command may be tried")
	}
}
