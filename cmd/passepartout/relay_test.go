package main_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"passepartout/internal/channel/channeltest"
)

// A phone is somebody's Telegram.
type phone struct {
	*testing.T
	*channeltest.Telegram
	who int64
}

// shows waits for a message; the limit only ends a test that would wait for ever.
func (p phone) shows(text string) channeltest.Line {
	p.Helper()
	for deadline := time.Now().Add(90 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		for _, l := range p.Chat(p.who) {
			if strings.Contains(l.Text, text) && !strings.HasSuffix(l.Text, "…") {
				return l
			}
		}
	}
	p.Fatalf("Telegram never shows %q: %+v", text, p.Chat(p.who))
	return channeltest.Line{}
}

// says writes, and returns the line that then contains a text.
func (p phone) says(text, then string) channeltest.Line {
	p.Helper()
	p.Say(p.who, text)
	return p.shows(then)
}

// The same conversation is continued in the terminal, in Emacs and on a telephone:
// it stays one session with one question, which is answered once and shows its end
// everywhere.
func TestOneConversationGoesFromTheTerminalToEmacsToTelegram(t *testing.T) {
	if testing.Short() {
		t.Skip("drives two terminals: run by make test")
	}
	emacsOf(t) // or skip
	t.Parallel()
	server := channeltest.NewTelegram()
	t.Cleanup(server.Close)
	tg := phone{t, server, 4711}
	env, memex := editorHome(t)
	env = append(env, "TELEGRAM_API_URL="+tg.URL, "TELEGRAM_BOT_TOKEN="+channeltest.Token)
	run := func(args ...string) string {
		t.Helper()
		c := exec.Command(binary, args...)
		c.Env = env
		out, err := c.Output()
		if err != nil {
			t.Fatalf("passepartout %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	waits := func() []string {
		t.Helper()
		var open []struct{ Token, Session, Action string }
		if err := json.Unmarshal([]byte(run("approvals", "--json")), &open); err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, p := range open {
			out = append(out, p.Token+" "+p.Action+" in "+p.Session)
		}
		return out
	}

	// At the terminal: something is said, and something is asked.
	tg.says(strings.TrimSpace(run("gateway", "pair", "telegram")), "Paired as owner")
	tui := holdTerminal(t, env...)
	tui.open(100, 40, binary+" tui")
	tui.wait("● main")
	tui.say("echo begun at the desk")
	tui.wait("I heard: begun at the desk")
	tui.say("keep the lamp in mind")
	tui.wait("y allow once")
	question := waits()
	if len(question) != 1 || !strings.HasSuffix(question[0], " tool.capture in main") {
		t.Fatalf("what waits is %q", question)
	}

	// In Emacs: the same words, the same question.
	ed := newEmacs(t, env, 100, 40)
	ed.wait("I heard: begun at the desk")
	ed.wait("keep the lamp in mind")
	ed.wait("[Approve once]")
	ed.write("echo gone on in Emacs")
	ed.keys("C-c", "C-c")
	ed.wait("I heard: gone on in Emacs")
	tui.wait("echo gone on in Emacs") // what was said elsewhere is shown, too
	tui.wait("I heard: gone on in Emacs")

	// On the telephone: the conversation goes on, the question is answered.
	tg.says("echo ended in the street 日本", "I heard: ended in the street 日本")
	for _, x := range []*terminal{tui, ed} {
		x.wait("echo ended in the street")
		x.wait("I heard: ended in the street")
	}
	if now := waits(); len(now) != 1 || now[0] != question[0] {
		t.Fatalf("what waits is %q, and was %q", now, question)
	}
	ask := tg.says("/approvals", "May I? tool.capture")
	if len(ask.Buttons) != 2 {
		t.Fatalf("the question has the buttons %q", ask.Buttons)
	}
	tg.Touch(tg.who, channeltest.Private(tg.who), ask.ID, ask.Buttons[0])
	tg.shows("was approved over telegram and carried out")
	tg.Touch(tg.who, channeltest.Private(tg.who), ask.ID, ask.Buttons[0]) // again, by mistake

	// Everywhere: it is done, once.
	for _, x := range []*terminal{tui, ed} {
		x.wait("That is done.")
		x.gone("y allow once")
		x.gone("[Approve once]")
	}
	if left := waits(); len(left) != 0 {
		t.Errorf("it still waits: %q", left)
	}
	raw, err := os.ReadFile(filepath.Join(memex, "inbox", "inbox.org"))
	if n := strings.Count(string(raw), "the lamp"); err != nil || n != 1 {
		t.Errorf("it was captured %d times: %q, %v", n, raw, err)
	}
	sessions := run("send", "(:TYPE :REQUEST :PAYLOAD (:ACTION :SESSIONS))")
	if n := strings.Count(sessions, ":NAME "); n != 1 || !strings.Contains(sessions, `:NAME "main"`) {
		t.Errorf("the sessions are %s", sessions)
	}
	past := run("send", "(:TYPE :REQUEST :META (:SESSION-ID \"main\") :PAYLOAD (:ACTION :CONVERSATION))")
	at := -1
	for _, said := range []string{"begun at the desk", "keep the lamp", "gone on in Emacs", "ended in the street"} {
		next := strings.Index(past, said)
		if next <= at {
			t.Errorf("%q is not where it was said:\n%s", said, past)
		}
		at = next
	}
}
