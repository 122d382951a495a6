package channel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"passepartout/internal/channel"
	"passepartout/internal/channel/channeltest"
	"passepartout/internal/proto"
)

// hasHeard reports whether somebody said this to the robot.
func (r *robot) hasHeard(text string) bool {
	return slices.ContainsFunc(r.signals(), func(s proto.Signal) bool { return s.Text() == text })
}

func TestAServiceIsUnlinkedAndLinkedAgainWithoutLosingOrRepeatingAnything(t *testing.T) {
	w := newWorld(t)
	w.unlinked = true
	l := w.live(0)
	if st := l.Status(); st.State != channel.Unlinked {
		t.Errorf("before it is linked it is %q", st.State)
	}
	release := make(chan struct{})
	l.loop = func(turn proto.ID) { // a turn that takes its time
		go func() {
			<-release
			l.reply(turn, "DONE", "looped at last")
		}()
	}
	unlink := l.link(l.service)
	w.pair(l, owner, proto.RoleOwner)
	if st := l.Status(); st.State != channel.Connected {
		t.Errorf("while it is linked it is %q", st.State)
	}
	w.telegram.Say(owner, "loop")
	w.eventually(func() bool { return w.robot.hasHeard("loop") }, "not heard")
	unlink()
	if st := l.Status(); st.State != channel.Unlinked || len(st.Peers) != 1 {
		t.Errorf("after that it is %+v", st)
	}
	close(release) // the turn ends while nobody can be told
	w.telegram.Say(owner, "do tea")
	w.eventually(func() bool { return l.Status().Unsent == 1 }, "the answer is not kept")
	if w.robot.hasHeard("do tea") || w.count(owner, "looped") != 0 {
		t.Error("it listens or speaks while it is unlinked")
	}
	if _, err := l.Probe(t.Context()); err == nil {
		t.Error("it can be probed")
	}
	unlink = l.link(l.service)
	w.eventually(func() bool { return w.count(owner, "looped at last") == 1 && w.count(owner, "did tea") == 1 }, "not everything is answered")
	w.settled(l)
	n := 0
	for _, s := range w.robot.signals() {
		if s.Text() == "loop" {
			n++
		}
	}
	if n != 1 || w.robot.effects("tea") != 1 {
		t.Errorf("loop was begun %d times, tea was made %d times", n, w.robot.effects("tea"))
	}
	unlink()
}

// Another bot numbers its updates and messages from anywhere. What was kept of the
// first one's must neither hide the second one's nor be written over them.
func TestAnotherAccountsNumbersAreNotTakenForThoseOfTheFirst(t *testing.T) {
	w := newWorld(t)
	w.unlinked = true
	l := w.live(0)
	unlink := l.link(l.service)
	w.pair(l, owner, proto.RoleOwner)
	w.telegram.Say(owner, "ask tea")
	w.eventually(func() bool { return len(w.buttons(owner)) == 2 }, "nothing is asked")
	w.settled(l)
	unlink()

	first := w.telegram
	w.telegram = channeltest.NewTelegram() // begins to count anew
	t.Cleanup(w.telegram.Close)
	second, err := channel.NewTelegram(channel.TelegramOptions{Token: "5151:" + strings.Repeat("b", 35), URL: w.telegram.URL, Poll: 1e9, Quick: 1e9})
	if err != nil {
		t.Fatal(err)
	}
	w.telegram.Accept("5151:" + strings.Repeat("b", 35))
	unlink = l.link(second)
	defer unlink()
	w.telegram.Say(owner, "say hello")
	w.telegram.Say(owner, "say again")
	w.eventually(func() bool { return w.count(owner, "said hello") == 1 && w.count(owner, "said again") == 1 }, "the second account is not heard")
	before := fmt.Sprint(w.telegram.Chat(owner))
	if _, err := l.answer("a-1", answerOf(owner)); err != nil {
		t.Fatal(err)
	}
	w.eventually(func() bool { return w.count(owner, "did tea") == 1 }, "what came of it is not told")
	w.settled(l)
	if after := fmt.Sprint(w.telegram.Chat(owner)[:2]); after != before {
		t.Errorf("messages of the second account were written over:\n%s\n%s", before, after)
	}
	if n := len(first.Chat(owner)); n == 0 {
		t.Error("the first account's messages are gone")
	}
}

func TestAnOwnerIsShownWhatWaitsWithButtonsWhereverItCameUp(t *testing.T) {
	w := newWorld(t)
	l := w.live(0)
	w.pair(l, owner, proto.RoleOwner)
	w.pair(l, guest, proto.RoleGuest)
	w.robot.wants["a-9"] = "coffee"
	l.ask("a-9", proto.Signal{ID: "s-elsewhere", Session: "main", Origin: proto.Origin{Role: proto.RoleOwner, Channel: "tui", Who: "uid:1"}})
	w.telegram.Post("message", owner, channeltest.Group(group), "/approvals@"+channeltest.BotName)
	w.telegram.Say(owner, "/approvals")
	w.eventually(func() bool { return len(w.buttons(owner)) == 2 }, "it is not shown with buttons")
	w.telegram.Say(owner, "/approvals") // the first is far up by now
	w.eventually(func() bool { return len(w.buttons(owner)) == 4 }, "it is not shown again")
	w.settled(l)
	if len(w.buttons(group))+len(w.buttons(guest)) != 0 {
		t.Errorf("others are asked:\n%s", w.picture())
	}
	q := w.question(owner)
	w.telegram.Touch(owner, private(owner), q.ID, "/approve a-9")
	w.eventually(func() bool { return w.count(owner, "was approved over telegram") == 2 && len(w.buttons(owner)) == 0 }, "both are to show what came of it")
	w.telegram.Touch(owner, private(owner), q.ID, "/approve a-9")
	w.settled(l)
	if n := w.robot.effects("coffee"); n != 1 {
		t.Errorf("it was done %d times", n)
	}
}

// A courier is a service that is as small as one can be: what a third channel
// needs is all here.
type courier struct {
	in  chan channel.Incoming
	out chan string
}

func (c *courier) Receive(ctx context.Context, _ string, up func(), take func(channel.Incoming) error) error {
	up()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case in := <-c.in:
			if err := take(in); err != nil {
				return err
			}
		}
	}
}

func (c *courier) Send(context.Context, string, string) (string, error) { return "1", nil }

func (c *courier) Edit(_ context.Context, _, _, text string) error {
	c.out <- text
	return nil
}

func (c *courier) Ask(_ context.Context, _, _ string, q channel.Question) error {
	c.out <- q.Text + " " + q.Token
	return nil
}

func TestAThirdChannelNeedsFourMethodsAndNothingElse(t *testing.T) {
	w := newWorld(t)
	w.unlinked = true
	l := w.live(0)
	c := &courier{in: make(chan channel.Incoming), out: make(chan string, 100)}
	unlink := l.link(c)
	defer unlink()
	code, _, err := l.Pair(proto.RoleOwner)
	if err != nil {
		t.Fatal(err)
	}
	said := func(id, text string) channel.Incoming {
		return channel.Incoming{ID: id, Kind: channel.Message, From: channel.Sender{ID: "ada", Name: "Ada"}, Chat: "ada", Text: text}
	}
	c.in <- said("1", code)
	if got := <-c.out; !strings.Contains(got, "Paired as owner") {
		t.Errorf("pairing is answered with %q", got)
	}
	c.in <- said("2", "do tea")
	if got := <-c.out; got != "did tea" {
		t.Errorf("the answer is %q", got)
	}
	c.in <- said("2", "do tea") // handed over again
	c.in <- said("3", "ask coffee")
	if got := <-c.out; !strings.Contains(got, "May I?") || !strings.HasSuffix(got, "a-1") {
		t.Errorf("the question is %q", got)
	}
	withFile := said("4", "say look")
	withFile.Files = []channel.File{{ID: "x", Name: "y"}}
	c.in <- withFile
	if got := <-c.out; !strings.Contains(got, "said look") || !strings.Contains(got, "files are not taken here") {
		t.Errorf("a file it cannot fetch: %q", got)
	}
	if w.robot.effects("tea") != 1 {
		t.Errorf("tea was made %d times", w.robot.effects("tea"))
	}
	if _, err := l.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot be probed") {
		t.Errorf("probing it: %v", err)
	}
}

// The table of services is all that commands and the daemon go by.
func TestEveryServiceInTheTableCanBeLinked(t *testing.T) {
	values := map[string]string{
		"TELEGRAM_BOT_TOKEN": channeltest.Token, "SIGNAL_ACCOUNT": channeltest.SignalAccount, "SIGNAL_CLI": "127.0.0.1:7583", "TELEGRAM_WEBHOOK_LISTEN": "127.0.0.1:1",
	}
	none := func(string) string { return "" }
	for _, s := range channel.Services() {
		if s.Name == "" || s.Title == "" || s.Open == nil || len(s.Keys) == 0 || s.Linked(none) {
			t.Errorf("%+v is not whole", s)
		}
		if _, err := s.Open(none); err == nil {
			t.Errorf("%s is opened with nothing", s.Name)
		}
		get := func(key string) string {
			if key == "TELEGRAM_WEBHOOK_LISTEN" {
				return ""
			}
			return values[key]
		}
		c, err := s.Open(get)
		if err != nil || !s.Linked(get) {
			t.Errorf("%s: %v", s.Name, err)
		}
		if a, ok := c.(channel.Accounted); !ok || a.Account() == "" {
			t.Errorf("%s does not say whose account it is", s.Name)
		}
		if s.Check != nil && (s.Check(get) != nil || s.Check(func(key string) string { return values[key] }) == nil) {
			t.Errorf("%s does not tell good settings from bad ones", s.Name)
		}
	}
}

func TestAProblemIsShownWhileItLastsAndRememberedAfterwards(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for polls to end: run by make test")
	}
	w := newWorld(t)
	l := w.live(0)
	w.pair(l, owner, proto.RoleOwner)
	w.telegram.Misbehave(func(method string) channeltest.Fault {
		if method == "getUpdates" {
			return channeltest.Broken
		}
		return channeltest.None
	}, false, false)
	w.eventually(func() bool { st := l.Status(); return st.State == channel.Waiting && st.Problem != "" }, "it is not said")
	w.telegram.Misbehave(nil, false, false)
	w.eventually(func() bool { st := l.Status(); return st.State == channel.Connected && st.Problem == "" }, "it is said for ever")
	if st := l.Status(); st.Failure == "" || st.Failed.IsZero() || strings.Contains(st.Failure, channeltest.Token) {
		t.Errorf("what last went wrong is %+v", st)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := l.Serve(ctx, l.service); !errors.Is(err, context.Canceled) { // while another is linked
		t.Errorf("serving for no time: %v", err)
	}
}
