package daemon_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"passepartout/internal/channel"
	"passepartout/internal/channel/channeltest"
	"passepartout/internal/daemon"
	"passepartout/internal/journal"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// A pigeon is a third channel, as small as one can be. It carries one person's
// messages.
type pigeon struct {
	in  chan string
	out chan string
}

func (p *pigeon) Receive(ctx context.Context, _ string, up func(), take func(channel.Incoming) error) error {
	up()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case text := <-p.in:
			err := take(channel.Incoming{
				ID: strings.Repeat("i", n+1), Kind: channel.Message, From: channel.Sender{ID: "ada", Name: "Ada"}, Chat: "ada", Text: text,
			})
			if err != nil {
				return err
			}
		}
	}
}

func (p *pigeon) Send(context.Context, string, string) (string, error) { return "1", nil }

func (p *pigeon) Edit(_ context.Context, _, _, text string) error {
	p.out <- text
	return nil
}

func (p *pigeon) Ask(_ context.Context, _, _ string, q channel.Question) error {
	p.out <- q.Text + "\n" + q.Token
	return nil
}

// A third service is linked through the table alone: the daemon, its policy and its
// questions know it without a line about it.
func TestAThirdServiceIsOneRowInTheTable(t *testing.T) {
	s := settings(t)
	permissions := askFirst + "| pigeon.message | allow |\n"
	if err := os.WriteFile(filepath.Join(s.MemexDir, "system", "permissions.org"), []byte(permissions), 0o644); err != nil {
		t.Fatal(err)
	}
	bird := &pigeon{in: make(chan string), out: make(chan string, 100)}
	s.Channels = daemon.Channels{Get: values{"PIGEON_RING": "blue"}.get, Services: append(channel.Services(), channel.Service{
		Name: "pigeon", Title: "Pigeon", MaxText: 1000, Keys: []channel.Key{{Name: "PIGEON_RING", Asks: "ring"}},
		Open: func(get func(string) string) (channel.Channel, error) {
			if get("PIGEON_RING") != "blue" {
				return nil, errors.New("the ring is not blue")
			}
			return bird, nil
		},
	})}
	h := open(t, s)
	p := h.connect()
	g := plists(t, p.request(gatewayRequest("GATEWAYS")).Payload, "GATEWAYS")
	if len(g) != 3 || g[2].Text("NAME") != "pigeon" || g[0].Text("STATE") != "not linked" {
		t.Fatalf("the list is %v", g)
	}
	bird.in <- p.request(gatewayRequest("GATEWAY-PAIR", sexp.Keyword("CHANNEL"), "pigeon", sexp.Keyword("ROLE"), "owner")).Payload.Text("CODE")
	if got := <-bird.out; !strings.Contains(got, "Paired as owner") {
		t.Fatalf("pairing: %q", got)
	}
	bird.in <- "note that pigeons fly"
	question := <-bird.out
	_, token, _ := strings.Cut(question[strings.LastIndex(question, "\n"):], "\n")
	if !strings.Contains(question, "tool.capture") || token == "" {
		t.Fatalf("the question is %q", question)
	}
	bird.in <- "/approve " + token
	waitFor(t, filepath.Join(s.MemexDir, "inbox", "inbox.org"), "* pigeons fly")
	if n := captured(t, s, "pigeons fly"); n != 1 {
		t.Errorf("it was captured %d times", n)
	}
	h.close() // else the journal is not whole
	origin := false
	for e, err := range journal.Read(filepath.Join(s.StateDir, "journal")) {
		if err != nil {
			t.Fatal(err)
		}
		origin = origin || strings.Contains(e.Body.String(), "pigeon:ada")
	}
	if !origin {
		t.Error("the journal does not say who it was")
	}
}

// changing are settings of channels that change while the daemon runs.
type changing struct {
	mu  sync.Mutex // guards now
	now values
	err error
}

func (c *changing) set(v values, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now, c.err = v, err
}

func (c *changing) reread() (func(string) string, map[string]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now.get, map[string]string{"TELEGRAM_BOT_TOKEN": c.now["TELEGRAM_BOT_TOKEN"]}, c.err
}

func linkRequest(name string) proto.Message {
	return gatewayRequest("GATEWAY-LINK", sexp.Keyword("CHANNEL"), name)
}

func TestAChannelIsLinkedAndUnlinkedWhileTheDaemonRuns(t *testing.T) {
	tg := newTelegram(t)
	s := linkedSettings(t, tg)
	s.Secrets = nil
	at := &changing{}
	s.Channels.Get, s.Channels.Reread = values{}.get, at.reread
	s.IdleExit = 0
	h := open(t, s)
	p := h.connect()
	state := func() string {
		return plists(t, p.request(gatewayRequest("GATEWAYS")).Payload, "GATEWAYS")[0].Text("STATE")
	}
	link := func(want string) {
		t.Helper()
		r := p.request(linkRequest("telegram"))
		linked, _ := r.Payload.Get("LINKED")
		if r.Payload.Word("STATUS") != "DONE" || sexp.IsNil(linked) != (want == "not linked") {
			t.Fatalf("linking: %v", r.Payload)
		}
		eventually(t, tg, func() bool { return state() == want }, "it is never "+want)
	}
	if state() != "not linked" {
		t.Fatalf("it begins %s", state())
	}
	link("not linked") // nothing has changed
	at.set(values{"TELEGRAM_BOT_TOKEN": channeltest.Token}, nil)
	link("connected")
	pairAda(t, tg, p)
	link("connected") // again is the same
	tg.Say(ada, "note that heard live, token "+channeltest.Token)
	eventually(t, tg, func() bool { _, ok := asked(tg); return ok }, "nothing is asked")
	if m, _ := asked(tg); strings.Contains(m.Text, channeltest.Token[6:]) {
		t.Errorf("a token linked while the daemon runs is said aloud: %q", m.Text)
	}
	at.set(values{"TELEGRAM_BOT_TOKEN": "nonsense"}, nil)
	if r := p.request(linkRequest("telegram")); r.Payload.Word("STATUS") != "FAILED" || strings.Contains(r.Payload.Text("TEXT"), "nonsense") || state() != "connected" {
		t.Errorf("a bad token: %v, and it is %s", r.Payload, state())
	}
	at.set(nil, errors.New("the vault is locked"))
	if r := p.request(linkRequest("telegram")); !strings.Contains(r.Payload.Text("TEXT"), "the vault is locked") || state() != "connected" {
		t.Errorf("settings nobody can read: %v, and it is %s", r.Payload, state())
	}
	at.set(values{}, nil)
	link("not linked")
	polls := tg.Calls("getUpdates")
	tg.Say(ada, "note that said to nobody")
	p.request(say("main", "what is due this week?"))
	if tg.Calls("getUpdates") != polls || captured(t, s, "said to nobody") != 0 {
		t.Error("it goes on listening")
	}
	if r := p.request(linkRequest("pigeon")); !strings.Contains(r.Payload.Text("TEXT"), `there is no channel "pigeon"`) {
		t.Errorf("an unknown channel: %v", r.Payload)
	}
	h.close()
	events := ""
	for e, err := range journal.Read(filepath.Join(s.StateDir, "journal")) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(e.Body.String(), channeltest.Token[6:]) {
			t.Errorf("the journal has the token: %v", e.Body)
		}
		if e.Body.Word("KIND") == "CHANNEL" {
			events += string(e.Body.Word("EVENT")) + " "
		}
	}
	if want := "UNLINKED LINKED PAIRING PAIRED LINKED UNLINKED "; events != want {
		t.Errorf("the journal has %s, want %s", events, want)
	}
}

func TestLinkingAndPairingAreAskedForOverTheSocketOnly(t *testing.T) {
	tg := newTelegram(t)
	p := open(t, overTCP(t, linkedSettings(t, tg))).far(token)
	for _, m := range []proto.Message{linkRequest("telegram"), gatewayRequest("GATEWAY-PAIR", sexp.Keyword("CHANNEL"), "telegram", sexp.Keyword("ROLE"), "owner")} {
		if r := p.request(m); r.Payload.Text("CODE") != "request.place" {
			t.Errorf("%v is answered with %v", m.Payload, r.Payload)
		}
	}
	if r := p.request(gatewayRequest("GATEWAYS")); r.Payload.Word("STATUS") != "DONE" {
		t.Errorf("looking is allowed: %v", r.Payload)
	}
}

// The owner sees in any client, whatever conversation it is in, that somebody was
// refused, and what others said in the conversation it listens to.
func TestWhoListensSeesStrangersAndWhatWasSaidElsewhere(t *testing.T) {
	tg := newTelegram(t)
	s := linkedSettings(t, tg)
	h := open(t, s)
	p := h.connect()
	pairAda(t, tg, p)
	same, other := h.connectAs("emacs"), h.connectAs("tui")
	same.request(data(t, `(:TYPE :REQUEST :META (:SESSION-ID "main") :PAYLOAD (:ACTION :LISTEN))`))
	other.request(data(t, `(:TYPE :REQUEST :META (:SESSION-ID "elsewhere") :PAYLOAD (:ACTION :LISTEN))`))
	tg.Say(666, "note that evil")
	for _, c := range []*peer{same, other} {
		m, err := c.Receive()
		if err != nil || m.Kind != proto.Log || m.Do() != "notice" || !strings.Contains(m.Payload.Text("TEXT"), "telegram:666") {
			t.Fatalf("it hears %v, %v", m.Value(), err)
		}
	}
	tg.Say(ada, "what is due this week?")
	m, err := same.Receive()
	if err != nil || m.Kind != proto.Status || m.Payload.Text("SAID") != "what is due this week?" || m.Payload.Text("OVER") != "telegram" {
		t.Fatalf("it hears %v, %v", m.Value(), err)
	}
	p.id++
	own := say("main", "hello")
	own.Meta = own.Meta.With("ID", sexp.NewInt(p.id))
	if err := p.Send(own); err != nil {
		t.Fatal(err)
	}
	for {
		m, err := p.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if m.Payload.Text("SAID") == "hello" {
			t.Error("who said it is told what they said")
		}
		if _, own := m.Meta.Get("IN-REPLY-TO"); own && m.Kind == proto.Response {
			break
		}
	}
}
