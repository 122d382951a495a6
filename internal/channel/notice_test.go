package channel_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"passepartout/internal/channel"
	"passepartout/internal/channel/channeltest"
	"passepartout/internal/proto"
)

const dueText = "Water the plants, all of them, and mind the one on the roof."

// notify gives a notice in a life that may end at it.
func (l *life) notify(n channel.Notice) {
	l.w.t.Helper()
	if _, err := l.Notify(n); err != nil && !l.crash.isDead() {
		l.w.t.Fatal(err)
	}
}

func TestANoticeReachesEveryOwnerOnceWhereverTheProgramDies(t *testing.T) {
	n := channel.Notice{Key: "job-1 11:00", Text: dueText}
	const other = owner + 1
	for at := 1; ; at++ {
		if at > 100 {
			t.Fatal("the scenario never ends without a crash")
		}
		w := newWorld(t)
		l := w.live(0)
		w.pair(l, owner, proto.RoleOwner)
		w.pair(l, other, proto.RoleOwner)
		w.pair(l, guest, proto.RoleGuest)
		w.settled(l)
		l.close()
		l = w.live(at)
		l.notify(n)
		crashed := false
		w.eventually(func() bool {
			crashed = l.crash.isDead()
			return crashed || l.Status().Unsent == 0
		}, "it never comes to rest")
		if crashed {
			l.bury()
		} else {
			l.close()
		}
		l = w.live(0)
		l.notify(n) // who was cut off says it again
		w.settled(l)
		if a, b, c := w.count(owner, dueText), w.count(other, dueText), w.count(guest, "plants"); a != 1 || b != 1 || c != 0 {
			t.Errorf("step %d: the owners are told %d and %d times, a guest %d times\n%s", at, a, b, c, w.picture())
		}
		l.close()
		if !crashed || t.Failed() {
			return
		}
	}
}

func TestANoticeReachesItsOwnerOnceOverABadNetwork(t *testing.T) {
	if testing.Short() {
		t.Skip("many faults: run by make test")
	}
	w := newWorld(t)
	l := w.live(0)
	w.pair(l, owner, proto.RoleOwner)
	w.settled(l)
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(7, 7))
	faults := []channeltest.Fault{channeltest.Drop, channeltest.Lose, channeltest.Broken, channeltest.Late, channeltest.TooMany, channeltest.None}
	left := 30
	w.telegram.Misbehave(func(string) channeltest.Fault {
		mu.Lock()
		defer mu.Unlock()
		if left--; left < 0 {
			return channeltest.None
		}
		return faults[r.IntN(len(faults))]
	}, false, false)
	for i := range 12 {
		l.notify(channel.Notice{Key: fmt.Sprint("k", i), Text: fmt.Sprintf("Notice %02d. %s", i, dueText)})
		if i%5 == 2 { // a restart in the middle of it
			l.close()
			l = w.live(0)
			l.notify(channel.Notice{Key: fmt.Sprint("k", i), Text: "again"})
		}
	}
	w.settled(l)
	for i := range 12 {
		if n := w.count(owner, fmt.Sprintf("Notice %02d. %s", i, dueText)); n != 1 {
			t.Errorf("notice %d is there %d times\n%s", i, n, w.picture())
		}
	}
	if n := w.count(owner, "again"); n != 0 {
		t.Errorf("what was told is told again %d times", n)
	}
}

func TestNoticesWithoutEndDoNotMakeATelephoneRingWithoutEnd(t *testing.T) {
	w := newWorld(t)
	l := w.live(0)
	w.pair(l, owner, proto.RoleOwner)
	for i := range 100 {
		l.notify(channel.Notice{Key: fmt.Sprint("k", i), Text: fmt.Sprintf("It failed again: %d.", i)})
		if i == 50 { // also over a restart
			l.close()
			l = w.live(0)
		}
	}
	w.settled(l)
	if told, more := w.count(owner, "It failed again"), w.count(owner, "There is more than is told here"); told != 29 || more != 1 {
		t.Errorf("told %d times, and %d times that there is more", told, more)
	}
}

func TestANoticeIsScreenedAndInTheJournalWithoutItsWords(t *testing.T) {
	w := newWorld(t)
	w.screen = func(s string) string { return strings.ReplaceAll(s, "roof", "[withheld]") }
	l := w.live(0)
	w.pair(l, owner, proto.RoleOwner)
	l.notify(channel.Notice{Key: "job-1", Text: dueText})
	w.settled(l)
	if w.count(owner, "[withheld]") != 1 || w.count(owner, "roof") != 0 {
		t.Errorf("it left unscreened\n%s", w.picture())
	}
	w.robot.mu.Lock()
	defer w.robot.mu.Unlock()
	last := w.robot.notes[len(w.robot.notes)-1]
	if last.Word("EVENT") != "NOTICE" || last.Text("ABOUT") != "job-1" || strings.Contains(last.String(), "plants") {
		t.Errorf("the journal has %v", last)
	}
}

func TestWhoWasShownAQuestionIsNotToldOfItAsWell(t *testing.T) {
	w := newWorld(t)
	w.approver = true
	l := w.live(0)
	w.pair(l, owner, proto.RoleOwner)
	l.notify(channel.Notice{Key: "q", Text: "It waits for your answer.", Asks: true})
	l.notify(channel.Notice{Key: "n", Text: dueText, Asks: false})
	w.settled(l)
	if w.count(owner, "waits for your answer") != 0 || w.count(owner, dueText) != 1 {
		t.Errorf("told of it twice\n%s", w.picture())
	}
}

// A telephone that was lost is unpaired; what waited for it must not reach whoever has it.
func TestWhoIsUnpairedGetsNothingThatWasStillToBeSaid(t *testing.T) {
	w := newWorld(t)
	l := w.live(0)
	w.pair(l, owner, proto.RoleOwner)
	w.pair(l, owner+1, proto.RoleOwner)
	w.settled(l)
	w.telegram.Misbehave(func(method string) channeltest.Fault {
		if method == "sendMessage" {
			return channeltest.Broken
		}
		return channeltest.None
	}, false, false)
	w.telegram.Say(owner, "ask too late")
	w.eventually(func() bool { return len(w.robot.signals()) == 1 && l.Status().Waiting == 0 }, "nothing is asked")
	l.notify(channel.Notice{Key: "k", Text: dueText})
	if known, err := l.Unpair(fmt.Sprint(owner)); err != nil || !known {
		t.Fatalf("not forgotten: %v, %v", known, err)
	}
	l.close()
	w.telegram.Misbehave(nil, false, false)
	l = w.live(0)
	w.settled(l)
	if w.count(owner+1, dueText) != 1 {
		t.Errorf("the other owner is not told\n%s", w.picture())
	}
	if n := len(w.telegram.Chat(owner)); n != 1 { // that they are paired
		t.Errorf("%d messages reach who is unpaired\n%s", n, w.picture())
	}
}
