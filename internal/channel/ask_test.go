package channel_test

import (
	"fmt"
	"strings"
	"testing"

	"passepartout/internal/flight"
	"passepartout/internal/proto"
)

func TestAQuestionIsAnsweredOnceWhereverTheProgramDies(t *testing.T) {
	crashes := 0
	for at := 1; ; at++ {
		if at > 500 {
			t.Fatal("the scenario never ends without a crash")
		}
		w := newWorld(t)
		l := w.live(0)
		w.pair(l, owner, proto.RoleOwner)
		w.settled(l)
		l.close()
		l = w.live(at)
		w.telegram.Say(owner, "ask tea")
		touched, died := false, false
		w.eventually(func() bool {
			if l.crash.isDead() {
				crashes++
				died = true
				l.bury()
				l = w.live(0)
			}
			if len(w.buttons(owner)) > 0 && !touched {
				touched = true
				w.telegram.Touch(owner, private(owner), w.question(owner).ID, "/approve a-1")
			}
			st := l.Status()
			return touched && w.count(owner, "was approved over telegram and carried out") >= 1 && len(w.buttons(owner)) == 0 &&
				st.Waiting == 0 && st.Unsent == 0 && w.telegram.Waiting() == 0 && (died || w.count(owner, "did tea") == 1)
		}, "step %d: never carried out", at)
		if n := w.robot.effects("tea"); n != 1 {
			t.Errorf("step %d: it was done %d times", at, n)
		}
		if n := w.count(owner, "carried out"); n != 1 {
			t.Errorf("step %d: it is said %d times that it was carried out\n%s", at, n, w.picture())
		}
		if n := w.count(owner, "did tea"); n > 1 || n == 0 && !died {
			t.Errorf("step %d: the reply stands there %d times\n%s", at, n, w.picture())
		}
		l.close()
		w.telegram.Close()
		if !died {
			break
		}
	}
	t.Logf("died at %d steps", crashes)
}

func TestAnUnansweredQuestionIsShownAsExpired(t *testing.T) {
	w := newWorld(t)
	l := w.live(0)
	w.pair(l, owner, proto.RoleOwner)
	w.telegram.Say(owner, "ask tea")
	w.eventually(func() bool { return len(w.buttons(owner)) == 2 }, "nothing is asked")
	if err := w.plans.End("a-1", flight.Expired, ""); err != nil { // as time would
		t.Fatal(err)
	}
	l.Changed(flight.Plan{})
	w.eventually(func() bool { return w.count(owner, "expired without an answer") == 1 && len(w.buttons(owner)) == 0 }, "it is not said")
}

func TestAnAnswerGivenElsewhereIsShown(t *testing.T) {
	w := newWorld(t)
	l := w.live(0)
	w.pair(l, owner, proto.RoleOwner)
	w.telegram.Say(owner, "ask tea")
	w.eventually(func() bool { return len(w.buttons(owner)) == 2 }, "nothing is asked")
	if _, err := l.answer("a-1", flight.Answer{By: proto.Origin{Role: proto.RoleOwner, Channel: "tui", Who: "uid:1"}}); err != nil {
		t.Fatal(err)
	}
	l.close() // also when nobody was there to see it
	l = w.live(0)
	w.eventually(func() bool { return w.count(owner, "a-1 was denied over tui") == 1 && len(w.buttons(owner)) == 0 }, "it is not said")
	w.settled(l)
}

func TestALongReplyComesInPartsInOrder(t *testing.T) {
	w := newWorld(t)
	w.maxText = 256
	l := w.live(0)
	w.pair(l, owner, proto.RoleOwner)
	before := len(w.telegram.Chat(owner))
	var words []string
	for i := range 250 {
		words = append(words, fmt.Sprintf("w%03d", i))
	}
	w.telegram.Say(owner, "say "+strings.Join(words, " "))
	w.eventually(func() bool { return w.count(owner, "w249") == 1 }, "the end never comes")
	w.settled(l)
	var got []string
	for _, m := range w.telegram.Chat(owner)[before:] {
		got = append(got, strings.Fields(m.Text)...)
	}
	if want := append([]string{"said"}, words...); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("the reply reads %q", strings.Join(got, " "))
	}
	w.telegram.Say(owner, "say "+strings.Repeat(strings.Join(words, " ")+" ", 4))
	w.eventually(func() bool { return w.count(owner, "more messages are not sent") == 1 }, "a reply without end is not cut")
}

func TestADeletedBeginningDoesNotLoseTheReply(t *testing.T) {
	w := newWorld(t)
	l := w.live(0)
	w.pair(l, owner, proto.RoleOwner)
	w.settled(l)
	known := map[int64]bool{}
	for _, m := range w.telegram.Chat(owner) {
		known[m.ID] = true
	}
	l.close()
	l = w.live(0)
	w.telegram.Say(owner, "say hello there")
	deleted := false
	w.eventually(func() bool {
		for _, m := range w.telegram.Chat(owner) {
			if !known[m.ID] && strings.HasSuffix(m.Text, "…") && !deleted {
				w.telegram.Delete(owner, m.ID)
				deleted = true
			}
		}
		return w.count(owner, "said hello there") == 1
	}, "the reply is lost")
	w.settled(l)
}

func TestEditedMessagesAreNotTakenUpAgain(t *testing.T) {
	w := newWorld(t)
	l := w.live(0)
	w.pair(l, owner, proto.RoleOwner)
	w.telegram.Say(owner, "do tea")
	w.telegram.Post("edited_message", owner, private(owner), "do tea twice")
	w.eventually(func() bool { return w.count(owner, "Send it as a new one") == 1 && w.count(owner, "did tea") == 1 }, "no answer")
	w.settled(l)
	if w.robot.effects("tea") != 1 || w.robot.effects("tea twice") != 0 {
		t.Errorf("the effects are %v", w.robot.effect)
	}
}

func TestAnOwnerChoosesWhichConversationToContinue(t *testing.T) {
	w := newWorld(t)
	l := w.live(0)
	w.pair(l, owner, proto.RoleOwner)
	w.telegram.Say(owner, "/session")
	w.telegram.Say(owner, "/session work")
	w.telegram.Say(owner, "say hi")
	w.telegram.Say(owner, "/stop")
	w.telegram.Say(owner, "/help")
	w.eventually(func() bool {
		return w.count(owner, `This continues "main".`) == 1 && w.count(owner, "said hi") == 1 && w.count(owner, "Stopping.") == 1 && w.count(owner, "/approvals") == 2
	}, "not all is answered")
	w.settled(l)
	l.close()
	l = w.live(0)
	w.telegram.Say(owner, "say again")
	w.eventually(func() bool { return w.count(owner, "said again") == 1 }, "no answer")
	for _, s := range w.robot.signals() {
		if s.Session != "work" {
			t.Errorf("%q belongs to %q", s.Text(), s.Session)
		}
	}
	w.settled(l)
}

func TestWhatNobodyJudgedIsNotSent(t *testing.T) {
	w := newWorld(t)
	l := w.live(0)
	w.pair(l, owner, proto.RoleOwner)
	l.loop = func(turn proto.ID) {
		l.reply(turn, "DROPPED", "I stopped after 10 steps without reaching an answer. The last step gave:\nthe diary")
	}
	w.telegram.Say(owner, "loop")
	w.eventually(func() bool { return w.count(owner, "I stopped after 10 steps") == 1 }, "no answer")
	w.settled(l)
	if w.count(owner, "diary") != 0 {
		t.Errorf("a tool's output was sent:\n%s", w.picture())
	}
}

func TestAQuestionOfAPrivateConversationShowsNoDetails(t *testing.T) {
	w := newWorld(t)
	w.private = true
	l := w.live(0)
	w.pair(l, owner, proto.RoleOwner)
	w.telegram.Say(owner, "ask diary")
	w.eventually(func() bool { return len(w.buttons(owner)) == 2 }, "nothing is asked")
	if m := w.question(owner); strings.Contains(m.Text, "diary") || !strings.Contains(m.Text, "tool.capture") {
		t.Errorf("the question is %q", m.Text)
	}
}
