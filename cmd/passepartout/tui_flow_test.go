package main_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"passepartout/internal/sexp"
)

// TestTheTerminalClientShowsAnAnswerAsItGrows: the first words are on the screen
// while the model is still speaking, and what it speaks is drawn, not quoted.
func TestTheTerminalClientShowsAnAnswerAsItGrows(t *testing.T) {
	more := make(chan struct{})
	pp := with(t, func(_ int, say func(string)) {
		say(strings.Repeat("This was said before. ", 30))
		<-more
		say("\n\n# A heading\n\n**Bold** words, a [name](https://example.org/place), and\n\n```go\nfunc main() {}\n```\n\n| Fruit | Number |\n|---|---:|\n| pear | 7 |\n\nThat is all.")
	})
	x := bareTerminal(t, pp().Env...)
	x.open(100, 40, binary+" tui")
	x.wait("● main")
	x.say("tell me a story")
	x.wait("This was said before.")
	x.wait("Esc stops")
	if s := x.screen(); strings.Contains(s, "That is all") || !strings.Contains(s, "thinking") {
		t.Errorf("the model is still speaking, and the screen shows\n%s", s)
	}
	close(more)
	x.wait("That is all.")
	x.wait("reply ✓")
	for _, want := range []string{"\n  A heading\n", "  Bold words, a name (https://example.org/place), and", "╭─ go", "│ func main() {}", "  pear  │      7"} {
		if !strings.Contains(x.screen(), want) {
			t.Errorf("the answer is not drawn: no %q in\n%s", want, x.screen())
		}
	}
	x.say("/quit")
	x.wait("it left with 0")
}

func TestTheTerminalClientCompletesAndObeysTheMouse(t *testing.T) {
	t.Parallel()
	x := newTerminal(t, 140, 40)
	x.write("/appr")
	x.keys("Tab")
	x.wait("approvals approve")
	x.keys("C-u")
	x.write("/cont")
	x.keys("Tab")
	x.wait("what of the memex a model was shown, and why") // how it goes on
	x.keys("C-u")
	x.say("what is due this week?")
	x.wait("▸ ✓ allowed tool.agenda")
	x.wait("Last rulings")
	x.write("/why a-")
	x.keys("Tab")
	x.until("an id", regexp.MustCompile(`› /why a-\w+ |\na-\w+ a-\w+`).MatchString)
	x.keys("C-u")

	row := 0
	for i, line := range strings.Split(x.screen(), "\n") {
		if strings.Contains(line, "▸ ✓ allowed tool.agenda") {
			row = i + 1
		}
	}
	x.write(fmt.Sprintf("\x1b[<0;6;%dM\x1b[<0;6;%dm", row, row)) // a click on it
	x.wait("▾ ✓ allowed tool.agenda")
	x.keys("C-b")
	x.gone("Last rulings")
	x.keys("C-x", "b")
	x.wait("Last rulings")
	x.say("/mouse")
	x.wait("belongs to the terminal")
	x.say("/sidebar")
	x.gone("Last rulings")
	x.say("/quit")
	x.wait("it left with 0")
}

// TestTheTerminalClientColoursTheGauge: green, yellow, orange, red, as the context fills.
func TestTheTerminalClientColoursTheGauge(t *testing.T) {
	t.Parallel()
	fill := []int{10, 49, 50, 79, 80, 94, 95, 120}
	answer := func(n int, _ func(string)) string { return fmt.Sprintf("Answer %d.", n) }
	f := newFastDaemon(t, answer, func(question string, n int) sexp.Plist {
		switch question {
		case "health-check":
			return sexp.P(sexp.Keyword("GATES"), []string{"origin"})
		case "overview":
			return sexp.P(sexp.Keyword("TOKENS"), 10*fill[min(n, len(fill))-min(n, 1)], sexp.Keyword("LIMIT"), 1000)
		}
		return sexp.Plist{}
	})
	x := bareTerminal(t, "PASSEPARTOUT_SOCKET="+f.socket, "HOME="+t.TempDir())
	x.open(140, 30, binary+" tui --no-start --theme dark")
	x.wait("context   ")
	colour := regexp.MustCompile(`context\s+(?:\x1b\[1m)?\x1b\[(38;[25];[\d;]+)m`)
	var seen []string
	for i, percent := range fill {
		x.say("more")
		x.wait(fmt.Sprintf("Answer %d.", i+1))
		x.wait(fmt.Sprintf(" %d%%", percent))
		raw := strings.ReplaceAll(x.do("capture-pane", "-e", "-p"), "\x1b[39m", "")
		c := colour.FindStringSubmatch(raw)
		if c == nil {
			t.Fatalf("at %d%% the gauge has no colour:\n%q", percent, raw)
		}
		seen = append(seen, c[1])
	}
	for i := range seen {
		if same := i%2 == 1; i > 0 && (seen[i] == seen[i-1]) != same {
			t.Errorf("%d%% has %s, %d%% has %s", fill[i-1], seen[i-1], fill[i], seen[i])
		}
	}
	x.say("/quit")
	x.wait("it left with 0")
}

// TestTheTerminalClientIsNotDrivenByWhatItShows: a note, a file's name and a command's
// output hold sequences that would rename the window and clear the screen.
func TestTheTerminalClientIsNotDrivenByWhatItShows(t *testing.T) {
	t.Parallel()
	const hostile = "\x1b]0;owned\x07\x1b[2J\x1b[31m\u202egnp.exe\u009b1m"
	h := bareHome(t, "PROVIDER_CASCADE=reflex")
	h.file("memex/notes.org", "* TODO Pay the "+hostile+" bill\nSCHEDULED: <2026-01-01 Thu>\nBody "+hostile+" end.\n", 0o600)
	x := bareTerminal(t, h.env...)
	x.open(100, 30, binary+" tui")
	x.wait("● main")
	x.say("/memory notes.org")
	x.wait("Pay the")
	x.keys("Enter")
	x.wait("Body")
	x.keys("q")
	x.say("list my todos")
	x.wait("bill", "may not")
	x.say("/search " + "bill")
	x.keys("Escape")
	x.say("look for \x16\x1b[2Jthis")
	x.wait("Ask something")
	if title := x.do("display-message", "-p", "#{pane_title}"); strings.TrimSpace(title) != "passepartout: main" {
		t.Errorf("the window is called %q", title)
	}
	if raw := x.do("capture-pane", "-e", "-p"); strings.ContainsAny(raw, "\u202e\u009b\a") || !strings.Contains(x.screen(), "● main") {
		t.Errorf("the screen is\n%q", raw)
	}
	x.keys("C-c")
	x.say("/quit")
	x.wait("it left with 0")
}

// TestTheTerminalClientShowsEmbeddingAsItGoes: a provider that takes its time.
func TestTheTerminalClientShowsEmbeddingAsItGoes(t *testing.T) {
	t.Parallel()
	more := make(chan struct{})
	calls := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/api/embed") {
			http.NotFound(rw, r)
			return
		}
		select {
		case calls <- struct{}{}: // the first
		default:
			select {
			case <-more:
			case <-r.Context().Done():
			}
		}
		http.Error(rw, `{"error":"busy"}`, http.StatusServiceUnavailable)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(more) })
	h := bareHome(t, "PROVIDER_CASCADE=reflex", "EMBEDDING_PROVIDER=local", "OLLAMA_URL="+server.URL)
	var b strings.Builder
	for i := range 50 {
		fmt.Fprintf(&b, "* Note %d\nThe pump of the cellar number %d.\n", i, i)
	}
	h.file("memex/notes.org", b.String(), 0o600)
	x := bareTerminal(t, h.env...)
	x.open(100, 30, binary+" tui")
	x.wait("embedding ▱▱▱▱▱▱▱▱▱▱ 0/50")
	x.say("/quit")
	x.wait("it left with 0")
}

// TestThePlainPromptDoesWithoutAScreen: for screen readers, and where TERM is dumb.
func TestThePlainPromptDoesWithoutAScreen(t *testing.T) {
	if testing.Short() {
		t.Skip("a conversation takes seconds: run by make test")
	}
	t.Parallel()
	for name, dumb := range map[string]bool{"--plain": false, "TERM=dumb": true} {
		h := bareHome(t, "PROVIDER_CASCADE=reflex")
		h.file("memex/inbox.org", "* TODO Buy a ladder\n", 0o600)
		c := exec.Command(binary)
		if !dumb {
			c.Args = append(c.Args, "--plain")
		}
		c.Env = h.env
		g := newGlass(t, c, map[bool]string{true: "TERM=dumb", false: "TERM=xterm-256color"}[dumb])
		all := ""
		say := func(text, want string) {
			t.Helper()
			g.write(text + "\r")
			all += g.read(want)
		}
		all += g.read("> ")
		say("list my todos", "Buy a ladder")
		say("run curl https://one.invalid/", "needs your approval")
		say("/aprove", "Did you mean /approve?")
		say("/deny", "Denied a-")
		say("/why", "decision: ")
		say("/memory inbox.org", "* TODO Buy a ladder")
		say("/help", "/permissions")
		say("/etc/hosts", "> ")
		g.write("/quit\r")
		if err := c.Wait(); err != nil {
			t.Errorf("%s: it left with %v", name, err)
		}
		if strings.Contains(all, "\x1b") {
			t.Errorf("%s: the prompt drives the terminal: %q", name, all)
		}
	}
}

func TestTheCommandLineNeedsNoInput(t *testing.T) {
	h := bareHome(t, "PROVIDER_CASCADE=reflex")
	h.file("memex/inbox.org", "* TODO Buy a ladder\n", 0o600)
	for _, c := range []struct {
		line, want string
		code       int
	}{
		{` "list my todos" <&-`, "Buy a ladder", 0},
		{` <&-`, "nothing was said", 2},
		{` </dev/null`, "nothing was said", 2},
		{` "list my todos" </dev/null 2>&-`, "Buy a ladder", 0},
		{` "list my todos" >&-`, "", 0}, // there it is /dev/null
		{` --plain <&- >&-`, "", 2},
	} {
		cmd := exec.Command("/bin/sh", "-c", binary+c.line)
		cmd.Env = h.env
		out, err := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(string(out), c.want) || strings.Contains(string(out), "goroutine ") {
			t.Errorf("passepartout%s: exit %d, %v\n%s", c.line, code, err, out)
		}
	}
}

// flows are what a person does in the terminal, in the words of docs/tui.md.
var flows = []string{
	"answer as it streams", "Markdown, Org, code and links", "multi-line input", "history", "completion of commands, ids and files",
	"gate trace, Ctrl+G, `/why`", "approval: once, session, rule, deny, reason", "side bar", "context gauge", "palette", "message search",
	"agenda", "memory: outline, history, difference, undo", "sessions, resume, rewind", "progress", "interrupt with Esc", "`$EDITOR`", "mouse",
	"resize, 80×24, 300×80, 20×5", "themes", "`NO_COLOR`, ASCII, other locales", "plain mode, dumb terminal", "control characters", "daemon restart",
	"hang-up", "closed input", "full disk",
}

// TestEveryFlowIsPressedInARealTerminal keeps the table of docs/tui.md whole: each flow
// names tests, and each of them holds a terminal.
func TestEveryFlowIsPressedInARealTerminal(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "tui.md"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	bodies := map[string]string{}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range regexp.MustCompile(`(?ms)^func (Test\w+)\(.*?^}`).FindAllStringSubmatch(string(raw), -1) {
			bodies[f[1]] = f[0]
		}
	}
	for _, flow := range flows {
		row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(flow) + ` \| (.*) \|$`).FindStringSubmatch(string(doc))
		if row == nil {
			t.Errorf("docs/tui.md does not say which test presses %q", flow)
			continue
		}
		names := regexp.MustCompile(`Test\w+`).FindAllString(row[1], -1)
		if len(names) == 0 {
			t.Errorf("%q names no test", flow)
		}
		for _, name := range names {
			if !regexp.MustCompile(`newTerminal\(|bareTerminal\(|newGlass\(|/bin/sh|exec\.Command\(|newSlowStart\(`).MatchString(bodies[name]) {
				t.Errorf("%q: %s holds no terminal", flow, name)
			}
		}
	}
}
