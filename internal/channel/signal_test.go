package channel_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"passepartout/internal/channel"
	"passepartout/internal/channel/channeltest"
	"passepartout/internal/proto"
)

// People of the tests, by the names Signal has for them.
const (
	ada     = "0b5d4f2e-6c1a-4e57-9f0e-2a51c0ffee01"
	mallory = "0b5d4f2e-6c1a-4e57-9f0e-2a51c0ffee66"
	circle  = "dGhlIGNpcmNsZSBvZiBmcmllbmRzIG9mIGFkYSE="
)

func newSignalWorld(t testing.TB) *world {
	t.Helper()
	w := newWorld(t)
	dir, err := os.MkdirTemp("", "pp") // short: socket paths are limited
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if w.signal, err = channeltest.NewSignal(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.signal.Stop)
	w.maxText = channel.SignalText
	w.signalOptions = channel.SignalOptions{
		Account: channeltest.SignalAccount, Address: w.signal.Address, Name: "Passepartout", Silence: time.Hour, Beat: 10 * time.Millisecond, Quick: 500 * time.Millisecond,
	}
	return w
}

// told is how many messages to somebody contain a text.
func (w *world) told(whom, text string) (n int) {
	for _, m := range w.signal.Sent(whom) {
		if strings.Contains(m.Text, text) {
			n++
		}
	}
	return n
}

func (w *world) pairSignal(l *life, whom string, role proto.Role) {
	w.t.Helper()
	code, _, err := l.Pair(role)
	if err != nil {
		w.t.Fatal(err)
	}
	w.signal.Say(whom, code)
	w.eventually(func() bool { return w.told(whom, "Paired as "+role.String()) == 1 }, "%s was never paired", whom)
}

func TestSignalCarriesAConversationAndAnApprovalInWords(t *testing.T) {
	w := newSignalWorld(t)
	w.signal.Reverse = true // answers overtake each other, as the real one's do
	l := w.live(0)
	w.pairSignal(l, ada, proto.RoleOwner)
	w.signal.Say(ada, "do tea")
	w.eventually(func() bool { return w.told(ada, "did tea") == 1 }, "no answer")
	w.signal.Say(ada, "ask coffee")
	w.eventually(func() bool { return w.told(ada, "Answer: /approve a-1\nor: /deny a-1") == 1 }, "nothing is asked")
	w.signal.Say(ada, "/approve a-1") // the agent's own control word
	w.eventually(func() bool { return len(w.robot.signals()) == 3 }, "the answer is not heard")
	if s := w.robot.signals()[2]; s.Text() != "/approve a-1" || s.Origin != (proto.Origin{Role: proto.RoleOwner, Channel: "signal", Who: "signal:" + ada}) {
		t.Errorf("the answer is heard as %+v", s)
	}
	w.eventually(func() bool { return len(w.signal.Receipts()) == 3 }, "messages are not marked as read: %v", w.signal.Receipts())
}

func TestSignalStrangersAreNotHeard(t *testing.T) {
	w := newSignalWorld(t)
	l := w.live(0)
	w.pairSignal(l, ada, proto.RoleOwner)
	heard := len(w.robot.signals())
	w.signal.Say(mallory, "do evil")
	w.signal.Say(mallory, "/approve a-1")
	w.signal.Say(mallory, "do evil", map[string]any{"groupInfo": map[string]any{"groupId": circle, "type": "DELIVER"}, "mentions": []any{map[string]any{"number": channeltest.SignalAccount}}})
	w.signal.Edit(ada, "/approve a-1")
	w.signal.Hand(map[string]any{"sourceUuid": "--config=/etc", "timestamp": 5, "dataMessage": map[string]any{"timestamp": 5, "message": "do evil"}})
	w.signal.Hand(map[string]any{"sourceUuid": ada, "timestamp": 6, "receiptMessage": map[string]any{"isRead": true}})
	w.signal.Hand(map[string]any{"sourceUuid": ada, "timestamp": 7, "dataMessage": "no object"})
	w.signal.Say(ada, "say done")
	w.eventually(func() bool { return w.told(ada, "said done") == 1 }, "no answer")
	if got := w.robot.signals()[heard:]; len(got) != 1 {
		t.Errorf("heard were %+v", got)
	}
	refused := strings.Join(w.robot.refusals(), "\n")
	if strings.Count(refused, "signal:"+mallory+": the sender is not paired") != 3 || !strings.Contains(refused, "an edited message answers no question") {
		t.Errorf("the journal says\n%s", refused)
	}
	if n := len(w.signal.Sent(mallory)) + len(w.signal.Sent(circle)); n != 0 {
		t.Errorf("strangers were told %d things", n)
	}
}

func TestSignalComesBackHoweverItWentAway(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for what went away: run by make test")
	}
	w := newSignalWorld(t)
	var mute atomic.Bool
	w.signal.Mute = func(string) bool { return mute.Load() }
	w.signalOptions.Silence = 30 * time.Millisecond
	l := w.live(0)
	w.pairSignal(l, ada, proto.RoleOwner)
	for i, trouble := range []func(){
		func() {},
		w.signal.HangUp,
		func() {
			w.signal.Stop()
			if err := w.signal.Start(); err != nil {
				t.Fatal(err)
			}
		},
		func() { // half-open: it hears and does not answer
			mute.Store(true)
			n := w.signal.Calls("version")
			w.eventually(func() bool { return w.signal.Calls("version") > n }, "the connection is not tried")
			w.eventually(func() bool { return l.Status().State == "waiting" }, "nobody notices")
			mute.Store(false)
		},
		w.signal.Again, // everything comes once more
		func() { // nothing for long: the subscription is renewed
			n := w.signal.Calls("unsubscribeReceive")
			w.eventually(func() bool { return w.signal.Calls("unsubscribeReceive") > n }, "the receiver is not tried")
		},
	} {
		trouble()
		w.signal.Say(ada, fmt.Sprintf("do m%d", i))
		w.eventually(func() bool { return w.told(ada, fmt.Sprintf("did m%d", i)) == 1 }, "after trouble %d: no answer", i)
	}
	l.close()
	w.signal.Say(ada, "do late") // nobody listens; it waits there
	l = w.live(0)
	w.eventually(func() bool { return w.told(ada, "did late") == 1 }, "what came meanwhile is lost")
	for i := range 6 {
		if n := w.robot.effects(fmt.Sprintf("m%d", i)); n != 1 {
			t.Errorf("m%d was done %d times", i, n)
		}
		if n := w.told(ada, fmt.Sprintf("did m%d", i)); n != 1 {
			t.Errorf("m%d was answered %d times", i, n)
		}
	}
}

func TestSignalAttachmentsAndGroups(t *testing.T) {
	w := newSignalWorld(t)
	l := w.live(0)
	w.pairSignal(l, ada, proto.RoleOwner)
	w.signal.Say(ada, "say look", w.signal.Attach("Abc_1.txt", []byte("contents")))
	w.eventually(func() bool { return len(w.robot.signals()) == 1 }, "not heard")
	if got := w.robot.files["notes.txt"]; got != "contents" {
		t.Errorf("the files are %q", w.robot.files)
	}
	in := map[string]any{"groupInfo": map[string]any{"groupId": circle, "type": "DELIVER"}}
	w.signal.Say(ada, "say nothing", in)
	w.signal.Say(ada, "passepartout, say hello", in)
	w.eventually(func() bool { return w.told(circle, "said hello") == 1 }, "no answer in the group")
	if n := len(w.robot.signals()); n != 2 {
		t.Errorf("%d messages were heard", n)
	}
}

// Nothing a peer sends becomes an option of signal-cli: every call is an object
// with known names, and whom it is to has one of three forms.
func TestSignalCallsCarryNoOptions(t *testing.T) {
	w := newSignalWorld(t)
	l := w.live(0)
	w.pairSignal(l, ada, proto.RoleOwner)
	w.signal.Say(ada, "say --config=/etc/passwd -a +1555 \n--send-read-receipts", w.signal.Attach("--help", nil))
	w.eventually(func() bool { return w.told(ada, "said --config") == 1 }, "no answer")
	if w.signal.Calls("getAttachment") != 0 {
		t.Error("an attachment that is named like an option was asked for")
	}
	known := map[string]bool{"account": true, "recipient": true, "message": true, "editTimestamp": true, "targetTimestamp": true, "type": true, "subscription": true}
	for _, raw := range w.signal.Requests() {
		var m struct {
			Params map[string]any `json:"params"`
		}
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatal(err)
		}
		for k := range m.Params {
			if !known[k] {
				t.Errorf("a call has the parameter %q: %s", k, raw)
			}
		}
	}
	sig, err := channel.NewSignal(w.signalOptions)
	if err != nil {
		t.Fatal(err)
	}
	for _, chat := range []string{"", "-a", "--help", "+", "all", ada + " " + mallory, "group", "../x"} {
		if _, err := sig.Send(t.Context(), chat, "x"); err == nil || !strings.Contains(err.Error(), "neither a person nor a group") {
			t.Errorf("sending to %q: %v", chat, err)
		}
	}
	for _, o := range []channel.SignalOptions{
		{Account: "-a", Address: "/x"}, {Account: "+15550001", Address: "example.com:7583"}, {Account: "+15550001", Address: "192.0.2.1:7583"}, {Account: "+15550001"},
	} {
		if _, err := channel.NewSignal(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}
