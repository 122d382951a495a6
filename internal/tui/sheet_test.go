package tui_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
	"passepartout/internal/tui"
)

// sentOne is the only message sent of that action.
func (s *screen) sentOne(action string) proto.Message {
	s.Helper()
	all := slices.DeleteFunc(s.Sent(), func(m proto.Message) bool { return m.Do() != action })
	if len(all) != 1 {
		s.Fatalf("sent %d of %s: %v", len(all), action, all)
	}
	return all[0]
}

func rows(ps ...sexp.Plist) sexp.List {
	var out []sexp.Value
	for _, p := range ps {
		out = append(out, p.List())
	}
	return sexp.NewList(out...)
}

func TestAYesCanReachFurther(t *testing.T) {
	cases := []struct {
		key   string
		scope sexp.Keyword
		state string
	}{
		{"y", "ONCE", "allowed once by you"},
		{"s", "SESSION", "allowed by you for this session"},
		{"m", "RULE", "allowed once by you, with a rule on trial"},
	}
	for _, c := range cases {
		s := newScreen(t, 100, 30)
		q := asked("t1", "a-7", "curl https://example.org")
		q.Payload = q.Payload.With("CLASS", sexp.String("shell.run CMD curl https://example.org/*"))
		s.Feed(q)
		s.press(c.key)
		if sent := s.Sent(); len(sent) != 0 {
			t.Fatalf("%s before the question could be read sent %v", c.key, sent)
		}
		s.Arm()
		s.wants("s: and in this session shell.run CMD curl https://example.org/*", "a rule for such actions", "y allow once, s this session, m make a rule")
		s.press(c.key)
		m := s.sentOne("hitl-respond")
		if m.Payload.Word("DECISION") != "APPROVED" || m.Payload.Word("SCOPE") != c.scope {
			t.Errorf("%s sent %v", c.key, m)
		}
		s.wants(c.state)
		s.Feed(answerTo(m, sexp.P(kw("ACTION"), kw("HITL-RESPOND"), kw("TEXT"), "Approved a-7. On trial: allow curl.")))
		s.wants("On trial: allow curl.")
	}
	s := newScreen(t, 100, 30)
	s.ask("t1", "a-7", "$(cat x)") // in no class
	s.press("s", "m")
	if sent := s.Sent(); len(sent) != 0 {
		t.Fatalf("a yes without a class to cover sent %v", sent)
	}
	s.wants("can only be allowed once")
	s.say("/approve a-7 forever")
	s.wants("once, session or rule")
	s.say("/approve a-7 session")
	if m := s.sentOne("hitl-respond"); m.Payload.Word("SCOPE") != "SESSION" {
		t.Errorf("sent %v", m)
	}
}

var agendaItems = sexp.P(kw("ACTION"), kw("AGENDA"), kw("FROM"), "2026-05-04", kw("TO"), "2026-05-10", kw("ITEMS"), rows(
	sexp.P(kw("ID"), "n-1", kw("TITLE"), "Water the lemon tree", kw("DAY"), "2026-05-04", kw("KIND"), kw("SCHEDULED"), kw("DAYS"), 0, kw("TIME"), "08:30", kw("TODO"), "TODO", kw("CATEGORY"), "garden"),
	sexp.P(kw("ID"), "n-2", kw("TITLE"), "Return the \x1b[2Jshredder", kw("DAY"), "2026-05-04", kw("KIND"), kw("OVERDUE"), kw("DAYS"), -2, kw("TIME"), "", kw("TODO"), "NEXT", kw("CATEGORY"), "household"),
	sexp.P(kw("ID"), "n-3", kw("TITLE"), "Talk", kw("DAY"), "2026-05-06", kw("KIND"), kw("DEADLINE"), kw("DAYS"), 0, kw("TIME"), "", kw("TODO"), "", kw("CATEGORY"), "talk"),
))

func TestTheAgendaIsBrowsed(t *testing.T) {
	s := newScreen(t, 100, 24)
	s.say("/agenda")
	s.Feed(answerTo(s.sentOne("agenda"), agendaItems))
	s.golden("agenda")
	s.press("down")
	s.wants("› household          2 days ago   NEXT Return the [2Jshredder")
	s.press("right")
	if m := s.sentOne("agenda"); m.Payload.Text("FROM") != "2026-05-11" {
		t.Errorf("the next week was asked for as %v", m)
	} else {
		s.Feed(answerTo(m, agendaItems))
	}
	s.press("m")
	s.Feed(answerTo(s.sentOne("agenda"), agendaItems))
	s.press("enter")
	if m := s.sentOne("outline"); m.Payload.Text("NODE") != "n-1" {
		t.Errorf("Enter asked for %v", m)
	}
	s.press("esc")
	s.wants("Water the lemon tree")
	s.press("esc")
	s.lacks("Water the lemon tree")
	s.say("/agenda tomorrowish")
	s.wants("/agenda takes day, week or month")
}

func TestTheMemexIsBrowsedAndTakenBack(t *testing.T) {
	s := newScreen(t, 100, 24)
	s.say("/memory")
	s.Feed(answerTo(s.sentOne("outline"), sexp.P(kw("ACTION"), kw("OUTLINE"), kw("TITLE"), "/home/ana/memex", kw("CHILDREN"), rows(
		sexp.P(kw("ID"), "f-1", kw("TITLE"), "Inbox", kw("FILE"), "inbox/inbox.org", kw("BELOW"), 2),
		sexp.P(kw("ID"), "f-2", kw("TITLE"), "Garden", kw("FILE"), "projects/garden.org", kw("BELOW"), 4)))))
	s.wants("Memory: /home/ana/memex", "inbox/inbox.org  Inbox (2)")
	s.press("/")
	s.write("gard")
	s.lacks("inbox/inbox.org")
	s.press("enter", "enter")
	m := s.sentOne("outline")
	if m.Payload.Text("NODE") != "f-2" {
		t.Fatalf("the filtered row asked for %v", m)
	}
	s.Feed(answerTo(m, sexp.P(kw("ACTION"), kw("OUTLINE"), kw("ID"), "f-2", kw("TITLE"), "Garden", kw("FILE"), "projects/garden.org", kw("TEXT"), "#+title: Garden\nWhat grows.\n", kw("CHILDREN"), rows(
		sexp.P(kw("ID"), "n-1", kw("TITLE"), "Water the lemon tree", kw("TODO"), "TODO", kw("TAGS"), []string{"home"}, kw("BELOW"), 0)))))
	s.golden("memory")
	s.press("h")
	m = s.sentOne("node-history")
	if m.Payload.Text("NODE") != "n-1" {
		t.Fatalf("h asked for %v", m)
	}
	s.Feed(answerTo(m, sexp.P(kw("ACTION"), kw("NODE-HISTORY"), kw("TITLE"), "Water the lemon tree", kw("VERSIONS"), rows(
		sexp.P(kw("OPERATION"), 9, kw("KIND"), "edit", kw("AT"), "2026-05-04T10:00:00Z", kw("ACTOR"), "agent", kw("TURN"), "s-9", kw("LABEL"), "capture", kw("DIFF"), "@@ -1 +1 @@\n-* old\n+* new\n"),
		sexp.P(kw("OPERATION"), 3, kw("KIND"), "external", kw("AT"), "2026-05-03T10:00:00Z", kw("ACTOR"), "", kw("TURN"), "", kw("LABEL"), "", kw("DIFF"), "+* old\n")))))
	s.wants("04 May 10:00  edit      agent  capture", "you or another program")
	s.press("enter")
	s.wants("-* old", "+* new")
	s.press("esc", "down", "u")
	s.wants("not the agent's to take back")
	s.press("up", "u")
	for _, m := range s.Sent() {
		if m.Target != "tool" || m.Payload.Text("TOOL") != "undo" || m.Payload.Sub("ARGS").Text("OF") != "s-9" {
			t.Errorf("taking back sent %v", m)
		}
	}
	s.wants("/undo s-9")
}

func TestASheetSaysWhyItIsEmpty(t *testing.T) {
	s := newScreen(t, 80, 24)
	s.say("/memory nowhere")
	m := s.sentOne("outline")
	id, _ := m.Meta.Get("ID")
	s.Feed(proto.Message{Kind: proto.Response, Meta: sexp.P(kw("IN-REPLY-TO"), id), Payload: sexp.P(kw("ACTION"), kw("ERROR"), kw("CODE"), "outline.failed", kw("TEXT"), "nowhere: not found")})
	s.wants("nowhere: not found")
	s.press("q")
	s.Lose()
	s.say("/sessions")
	s.wants("The daemon cannot be reached.")
	s.press("esc")
	s.lacks("cannot be reached")
}

func TestAQuestionIsNotAnsweredThroughASheet(t *testing.T) {
	s := newScreen(t, 100, 24)
	s.say("/agenda")
	s.Feed(answerTo(s.sentOne("agenda"), agendaItems))
	s.ask("t1", "a-7", "curl https://example.org")
	s.press("y", "s", "n", "enter")
	for _, m := range s.Sent() {
		if m.Do() == "hitl-respond" {
			t.Fatalf("a key on a sheet answered a question: %v", m)
		}
	}
	s.wants("a question waits: q goes back to it")
	s.press("q")
	s.wants("needs your approval")
}

func TestAConversationIsResumed(t *testing.T) {
	s := newScreen(t, 100, 30)
	s.say("/sessions")
	s.Feed(answerTo(s.sentOne("sessions"), sexp.P(kw("ACTION"), kw("SESSIONS"), kw("SESSIONS"), rows(
		sexp.P(kw("NAME"), "main", kw("AT"), "2026-05-04T11:00:00Z", kw("TURNS"), 12, kw("LAST"), "what is due?"),
		sexp.P(kw("NAME"), "trip", kw("AT"), "2026-05-03T11:00:00Z", kw("TURNS"), 3, kw("LAST"), "book the ferry")))))
	s.golden("sessions")
	s.press("down", "enter")
	m := s.sentOne("conversation")
	if m.Session() != "trip" {
		t.Fatalf("the conversation of %q was asked for", m.Session())
	}
	trace := sexp.P(kw("DECISION"), kw("ALLOW"), kw("VERDICTS"), rows(sexp.P(kw("GATE"), "origin", kw("DECISION"), kw("ALLOW"))))
	a := answerTo(m, sexp.P(kw("ACTION"), kw("CONVERSATION"), kw("SESSION"), "trip", kw("SAID"), rows(
		sexp.P(kw("WHO"), "you", kw("TEXT"), "book the ferry", kw("TURN"), "s-1"),
		sexp.P(kw("WHO"), "gates", kw("NAME"), "tool.capture", kw("ID"), "a-1", kw("TURN"), "s-1", kw("ARGS"), sexp.P(kw("TITLE"), "ferry"), kw("TRACE"), trace),
		sexp.P(kw("WHO"), "agent", kw("NAME"), "tui.message", kw("ID"), "a-2", kw("TURN"), "s-1", kw("TEXT"), "Captured.", kw("TRACE"), trace))))
	a.Meta = a.Meta.With("SESSION-ID", sexp.String("trip"))
	s.Feed(a)
	s.wants("book the ferry", "allowed tool.capture", "Captured.", "from the journal")
	s.press("ctrl+g")
	s.wants("origin")

	s.say("/rewind")
	var undone []string
	for _, m := range s.Sent() {
		undone = append(undone, m.Payload.Sub("ARGS").Text("OF")+m.Payload.Text("TEXT"))
	}
	if !slices.Equal(undone, []string{"s-1", "/rewind 1"}) || s.Input() != "book the ferry" {
		t.Errorf("rewinding took back %v and left %q in the input", undone, s.Input())
	}
}

func TestTabAsksTheDaemonForFilesAndNodes(t *testing.T) {
	s := newScreen(t, 80, 24)
	s.write("look at proj")
	s.press("tab")
	m := s.sentOne("complete")
	if m.Payload.Word("KIND") != "FILE" || m.Payload.Text("TEXT") != "proj" {
		t.Fatalf("Tab asked %v", m)
	}
	s.Feed(answerTo(m, sexp.P(kw("ACTION"), kw("COMPLETE"), kw("WORDS"), []string{"projects/garden.org", "projects/talk.org"})))
	if s.Input() != "look at projects/" {
		t.Errorf("the input is %q", s.Input())
	}
	s.wants("projects/garden.org projects/talk.org")
	s.write("g")
	s.press("tab")
	m = s.sentOne("complete")
	s.write("x")
	s.Feed(answerTo(m, sexp.P(kw("ACTION"), kw("COMPLETE"), kw("WORDS"), []string{"projects/garden.org"})))
	if s.Input() != "look at projects/gx" {
		t.Errorf("a late completion changed the input to %q", s.Input())
	}
	s.press("ctrl+c")
	s.write("/focus gard")
	s.press("tab")
	if m := s.sentOne("complete"); m.Payload.Word("KIND") != "NODE" || m.Payload.Text("TEXT") != "gard" {
		t.Errorf("Tab asked %v", m)
	}
}

// Names the ancestor had, and those people know from its neighbours.
func TestEveryNamePeopleExpectAnswers(t *testing.T) {
	for name := range strings.FieldsSeq("help exit quit clear eval focus scope unfocus approve deny reconnect search why identity tags cost undo redo sessions resume rewind context sidebar setup status config commit skill-load theme audit" +
		" model models compact new permissions mcp skills doctor init agenda memory jobs rules history changes") {
		s := newScreen(t, 100, 40)
		s.Sent()
		s.say("/" + name)
		if strings.Contains(s.shows(), "There is no command") {
			t.Errorf("/%s is not known", name)
		}
		for _, m := range s.Sent() {
			if m.Sensor() == "user-input" && !strings.HasPrefix(m.Payload.Text("TEXT"), "/") {
				t.Errorf("/%s was said to a model: %v", name, m)
			}
		}
	}
}

func TestHighlightingChangesNoLetter(t *testing.T) {
	langs := []string{"go", "python", "lisp", "sql", "diff", "json", "unknown", ""}
	rapid.Check(t, func(t *rapid.T) {
		lang, line := rapid.SampledFrom(langs).Draw(t, "lang"), rapid.StringMatching("[ -~äß日]{0,60}").Draw(t, "line")
		if got := tui.Highlight(lang, line); got != line {
			t.Fatalf("%q in %s became %q", line, lang, got)
		}
	})
	s := newScreen(t, 80, 24, func(o *tui.Options) { o.Theme = "dark" })
	s.Feed(reply("t1", "DONE", "```go\nfunc main() { return \"x\" } // end\n```"))
	painted := s.View().Content
	s.wants(`func main() { return "x" } // end`)
	if strings.Contains(painted, "func main") {
		t.Error("a keyword is not set off from a name")
	}
}

func TestLinksLeadWhereTheySay(t *testing.T) {
	s := newScreen(t, 40, 24, func(o *tui.Options) { o.Links = true })
	s.Feed(reply("t1", "DONE", "See [the page](https://example.org/a/very/long/address/that/is/broken) and [[file:x][y]]."))
	raw := s.View().Content
	if n := strings.Count(raw, ansi.SetHyperlink("https://example.org/a/very/long/address/that/is/broken")); n < 2 {
		t.Errorf("a broken address leads to itself from %d of its lines", n)
	}
	s.Feed(reply("t2", "DONE", "https://example.org/\x1b]8;;https://evil.example\x07x"))
	if strings.Contains(s.View().Content, ";https://evil.example\x07") {
		t.Error("text from outside made a link of its own")
	}
	off := newScreen(t, 40, 24)
	off.Feed(reply("t1", "DONE", "https://example.org"))
	if strings.Contains(off.View().Content, "\x1b]8") {
		t.Error("links are written although the terminal is not to get them")
	}
}

func TestTheGaugeTellsHowFullTheContextIs(t *testing.T) {
	for _, c := range []struct {
		tokens int
		colour string
	}{{4900, "ok"}, {5000, "warn"}, {7900, "warn"}, {8000, "high"}, {9400, "high"}, {9500, "deny"}, {12_000, "deny"}} {
		if got := tui.GaugeRole(c.tokens, 10_000); got != c.colour {
			t.Errorf("%d of 10000 is %s, want %s", c.tokens, got, c.colour)
		}
	}
}

func TestProgressIsShownWhileThereIsAny(t *testing.T) {
	s := newScreen(t, 100, 24)
	s.Feed(reply("t1", "DONE", "Hello."))
	s.Feed(answerTo(s.sentOne("overview"), overview))
	s.wants("embedding ▰▰▰▱▱▱▱▱▱▱ 120/400")
	s.Look()
	m := s.sentOne("overview")
	s.Feed(answerTo(m, overview.With("WORK", rows(doing("embedding", 400, 400)))))
	s.lacks("embedding")
}

func doing(what string, have, want int) sexp.Plist {
	return sexp.P(kw("WHAT"), what, kw("HAVE"), have, kw("WANT"), want)
}

func TestWorkOfOthersIsShownUntilItIsOver(t *testing.T) {
	s := newScreen(t, 100, 24)
	work := func(ps ...sexp.Plist) {
		s.Feed(proto.Message{Kind: proto.Event, Payload: sexp.P(kw("ACTION"), kw("WORK"), kw("WORK"), rows(ps...))})
	}
	work(doing("importing", 30, 120))
	s.wants("importing ▰▰▱▱▱▱▱▱▱▱ 30/120")
	work(doing("imp\x1b[2Jorting", 1, 2), doing("indexing", 3, 9))
	s.wants("imp", "▰▰▰▰▰▱▱▱▱▱ 1/2")
	s.Sent()
	work()
	s.lacks("▰")
	s.sentOne("overview") // what was imported may still have to be indexed
}

func TestAStartThatTakesLongSaysHowFarItIs(t *testing.T) {
	have := 0
	m := tui.New(tui.Options{
		Dial:     func(context.Context) (tui.Conn, error) { return nil, errors.New("nobody is there") },
		Starting: func() (string, int, int) { return "reading", have, 1000 },
	})
	m.Init()
	have = 512
	m.Wait()
	if got := ansi.Strip(m.View().Content); !strings.Contains(got, "reading ▰▰▰▰▰▱▱▱▱▱ 512/1000") {
		t.Errorf("the screen is\n%s", got)
	}
	m.Join()
	if got := ansi.Strip(m.View().Content); strings.Contains(got, "512") {
		t.Errorf("the daemon is there, and the screen still\n%s", got)
	}
}
