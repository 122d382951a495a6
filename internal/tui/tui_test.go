package tui_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
	"passepartout/internal/tui"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// noon is when the tests take place.
var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// keys are the names tests use for keys that are no letters.
var keys = map[string]tea.KeyPressMsg{
	"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "tab": {Code: tea.KeyTab}, "up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown},
	"left": {Code: tea.KeyLeft}, "right": {Code: tea.KeyRight},
	"pgup": {Code: tea.KeyPgUp}, "pgdown": {Code: tea.KeyPgDown}, "backspace": {Code: tea.KeyBackspace}, "alt+enter": {Code: tea.KeyEnter, Mod: tea.ModAlt},
	"ctrl+g": {Code: 'g', Mod: tea.ModCtrl}, "ctrl+p": {Code: 'p', Mod: tea.ModCtrl}, "ctrl+c": {Code: 'c', Mod: tea.ModCtrl},
	"ctrl+d": {Code: 'd', Mod: tea.ModCtrl}, "ctrl+o": {Code: 'o', Mod: tea.ModCtrl}, "ctrl+x": {Code: 'x', Mod: tea.ModCtrl}, "ctrl+b": {Code: 'b', Mod: tea.ModCtrl},
	"ctrl+home": {Code: tea.KeyHome, Mod: tea.ModCtrl}, "ctrl+end": {Code: tea.KeyEnd, Mod: tea.ModCtrl}, "ctrl+l": {Code: 'l', Mod: tea.ModCtrl},
}

// A screen is a model with a hand on its keys.
type screen struct {
	testing.TB
	*tui.Model
	quit bool
}

func newScreen(t testing.TB, w, h int, change ...func(*tui.Options)) *screen {
	o := tui.Options{Now: func() time.Time { return noon }, Theme: "mono"}
	for _, f := range change {
		f(&o)
	}
	s := &screen{TB: t, Model: tui.New(o)}
	s.Update(tea.WindowSizeMsg{Width: w, Height: h})
	s.Join()
	s.Sent()
	return s
}

// press sends keys by name.
func (s *screen) press(names ...string) {
	s.Helper()
	for _, n := range names {
		k, ok := keys[n]
		if !ok {
			r := []rune(n)
			if len(r) != 1 {
				s.Fatalf("no key is called %q", n)
			}
			k = tea.KeyPressMsg{Code: r[0], Text: n}
		}
		s.do(k)
		s.LetGo() // nobody presses them all at once; see hurry
	}
}

// hurry types faster than a letter alone would count.
func (s *screen) hurry(text string) {
	s.Helper()
	for _, r := range text {
		s.do(tea.KeyPressMsg{Code: r, Text: string(r)})
	}
	s.LetGo()
}

func (s *screen) do(msg tea.Msg) {
	_, cmd := s.Update(msg)
	s.quit = s.quit || quits(cmd)
}

// quits reports whether a command is tea.Quit itself; other commands are not run.
func quits(cmd tea.Cmd) bool {
	return cmd != nil && fmt.Sprintf("%p", cmd) == fmt.Sprintf("%p", tea.Cmd(tea.Quit))
}

// write types text letter by letter.
func (s *screen) write(text string) {
	s.Helper()
	for _, r := range text {
		s.press(string(r))
	}
}

// say types a line and sends it.
func (s *screen) say(line string) {
	s.Helper()
	s.write(line)
	s.press("enter")
}

// shows is the screen as plain text.
func (s *screen) shows() string {
	lines := strings.Split(ansi.Strip(s.View().Content), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n")
}

func (s *screen) wants(parts ...string) {
	s.Helper()
	got := s.shows()
	for _, p := range parts {
		if !strings.Contains(got, p) {
			s.Fatalf("the screen lacks %q:\n%s", p, got)
		}
	}
}

func (s *screen) lacks(parts ...string) {
	s.Helper()
	got := s.shows()
	for _, p := range parts {
		if strings.Contains(got, p) {
			s.Fatalf("the screen has %q:\n%s", p, got)
		}
	}
}

// golden compares the screen with a file.
func (s *screen) golden(name string) {
	s.Helper()
	path := filepath.Join("testdata", name+".golden")
	got := s.shows() + "\n"
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			s.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		s.Fatal(err)
	}
	if got != string(want) {
		s.Errorf("%s has changed; run go test ./internal/tui -update if that is right.\nhave:\n%s\nwant:\n%s", path, got, want)
	}
}

func kw(s string) sexp.Keyword { return sexp.Keyword(s) }

// ofTurn is a frame of a turn in the session main.
func ofTurn(k proto.Kind, turn string, payload sexp.Plist) proto.Message {
	return proto.Message{Kind: k, Meta: sexp.P(kw("SESSION-ID"), "main", kw("TURN"), turn), Payload: payload}
}

func status(turn, s string) proto.Message {
	return ofTurn(proto.Status, turn, sexp.P(kw("STATUS"), kw(s)))
}

func chunk(turn, s string) proto.Message {
	return ofTurn(proto.StreamChunk, turn, sexp.P(kw("TEXT"), s))
}

func reply(turn, result, text string) proto.Message {
	return ofTurn(proto.Response, turn, sexp.P(kw("ACTION"), kw("MESSAGE"), kw("TEXT"), text, kw("STATUS"), kw(result)))
}

// replyTo is the terminal reply to a message that was sent.
func replyTo(m proto.Message, turn, result, text string) proto.Message {
	r := reply(turn, result, text)
	id, _ := m.Meta.Get("ID")
	r.Meta = r.Meta.With("IN-REPLY-TO", id)
	return r
}

func gateVerdict(gate, decision, code, reason string) sexp.Value {
	p := sexp.P(kw("GATE"), gate, kw("DECISION"), kw(decision), kw("CODE"), code)
	if reason != "" {
		p = p.With("REASON", sexp.String(reason))
	}
	return p.List()
}

func ruling(turn, id, name, decision string, args sexp.Plist, verdicts ...sexp.Value) proto.Message {
	return ofTurn(proto.Event, turn, sexp.P(kw("ACTION"), kw("GATE-TRACE"), kw("ID"), id, kw("NAME"), name, kw("ARGS"), args,
		kw("TRACE"), sexp.P(kw("DECISION"), kw(decision), kw("POLICY"), "0123456789abcdef", kw("VERDICTS"), sexp.NewList(verdicts...))))
}

func asked(turn, token, cmd string) proto.Message {
	return ofTurn(proto.Event, turn, sexp.P(kw("ACTION"), kw("APPROVAL-REQUIRED"), kw("TOKEN"), token, kw("SESSION-ID"), "main",
		kw("NAME"), "shell.run", kw("ARGS"), sexp.P(kw("CMD"), cmd), kw("WHY"), "The user asked for this page.",
		kw("REASONS"), []string{"dispatcher/network (network.host): example.org is not on the list"},
		kw("EXPIRES"), noon.Add(10*time.Minute).Format(time.RFC3339)))
}

// exchange is one whole question and answer with an action between.
func (s *screen) exchange(question, answer string) {
	s.Helper()
	s.say(question)
	s.Feed(
		status("t1", "PERCEIVED"), status("t1", "REASONED"),
		ruling("t1", "a-1", "tool.agenda", "ALLOW", sexp.P(kw("SPAN"), "week"), gateVerdict("origin", "ALLOW", "", ""), gateVerdict("permissions", "ALLOW", "permission.rule", "agenda is allowed")),
		status("t1", "ACTED"), status("t1", "REASONED"),
		ruling("t1", "a-2", "tui.message", "ALLOW", sexp.P(kw("TEXT"), answer), gateVerdict("origin", "ALLOW", "", ""), gateVerdict("validator", "ALLOW", "", "")),
	)
	for _, m := range s.Sent() {
		if m.Sensor() == "user-input" {
			s.Feed(replyTo(m, "t1", "DONE", answer))
		}
	}
}

// ask makes a question open and ready for keys.
func (s *screen) ask(turn, token, cmd string) {
	s.Helper()
	pending := reply(turn, "PENDING", "This needs your approval: …")
	for _, m := range s.Sent() {
		if m.Sensor() == "user-input" {
			pending = replyTo(m, turn, "PENDING", "This needs your approval: …")
		}
	}
	s.Feed(
		ruling(turn, token, "shell.run", "ASK", sexp.P(kw("CMD"), cmd), gateVerdict("origin", "ALLOW", "", ""), gateVerdict("dispatcher/network", "ASK", "network.host", "example.org is not on the list")),
		status(turn, "REQUIRES-APPROVAL"), asked(turn, token, cmd), pending)
	s.Arm()
	s.Sent()
}

const note = `# Tomatoes
They need **sun** and ` + "`water`" + `.

| Sort | Weeks |
|---|---|
| Roma | 10 |
| Marmande | 12 |

- plant in [May](https://example.org/may)
- [X] dig the bed

` + "```sh\nls -l notes\n```" + `
See [[file:garden.org][the garden]].`
