package channel_test

import (
	"strings"
	"testing"

	"passepartout/internal/proto"
)

func TestAPairedOwnerTalksToTheAgentInTheSharedConversation(t *testing.T) {
	w := newWorld(t)
	l := w.live(0)
	w.pair(l, owner, proto.RoleOwner)
	w.telegram.Say(owner, "do tea")
	w.eventually(func() bool { return w.count(owner, "did tea") == 1 }, "no answer")
	w.settled(l)
	got := w.robot.signals()
	if len(got) != 1 || got[0].Session != "main" || got[0].Origin != (proto.Origin{Role: proto.RoleOwner, Channel: "telegram", Who: "telegram:4711"}) {
		t.Errorf("the signals are %+v", got)
	}
	if n := w.robot.effects("tea"); n != 1 {
		t.Errorf("tea was made %d times", n)
	}
}

func TestAButtonAnswersAndTheMessageSaysWhatReallyHappened(t *testing.T) {
	for _, c := range []struct {
		name, data, want string
		effects          int
	}{
		{"a yes", "/approve ", "carried out", 1},
		{"a no", "/deny ", "was denied over telegram", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			l := w.live(0)
			w.pair(l, owner, proto.RoleOwner)
			w.telegram.Say(owner, "ask tea")
			w.eventually(func() bool { return len(w.buttons(owner)) == 2 }, "no buttons")
			m := w.question(owner)
			w.telegram.Touch(owner, private(owner), m.ID, c.data+"a-1")
			w.eventually(func() bool { return w.count(owner, c.want) == 1 }, "the message never says what happened")
			w.settled(l)
			if n := w.robot.effects("tea"); n != c.effects {
				t.Errorf("tea was made %d times, want %d", n, c.effects)
			}
			if len(w.buttons(owner)) != 0 {
				t.Error("the buttons are still there")
			}
			w.telegram.Touch(owner, private(owner), m.ID, "/approve a-1") // too late
			w.eventually(func() bool { return strings.Contains(strings.Join(w.telegram.Answers(), "\n"), "counts for nothing") }, "the late touch is not told")
			if n := w.robot.effects("tea"); n != c.effects {
				t.Errorf("a late touch had an effect")
			}
		})
	}
}

func TestTheWordsAreInPeoplesMenus(t *testing.T) {
	w := newWorld(t)
	l := w.live(0)
	w.pair(l, owner, proto.RoleOwner)
	if m := w.telegram.Menu(); len(m) < 5 || m[0] != "approvals" {
		t.Errorf("the menu is %q", m)
	}
	for _, word := range w.telegram.Menu() { // none of them is taken for something else
		w.telegram.Say(owner, "/"+word)
	}
	w.eventually(func() bool { return w.count(owner, "Say what you want in plain words.") == 2 }, "no help")
}
