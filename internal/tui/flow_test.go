package tui_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
	"passepartout/internal/tui"
)

func TestScreensLookAsTheyDid(t *testing.T) {
	sizes := []struct {
		name string
		w, h int
	}{{"80x24", 80, 24}, {"20x5", 20, 5}, {"140x40", 140, 40}}
	for _, size := range sizes {
		t.Run("chat "+size.name, func(t *testing.T) {
			s := newScreen(t, size.w, size.h)
			s.exchange("what do I know about tomatoes?", note)
			s.golden("chat-" + size.name)
		})
		t.Run("trace "+size.name, func(t *testing.T) {
			s := newScreen(t, size.w, size.h)
			s.exchange("what is due?", "Nothing.")
			s.press("ctrl+g")
			s.golden("trace-" + size.name)
		})
		t.Run("approval "+size.name, func(t *testing.T) {
			s := newScreen(t, size.w, size.h)
			s.say("run curl https://example.org")
			s.ask("t1", "a-7", "curl https://example.org")
			s.golden("approval-" + size.name)
		})
		t.Run("palette "+size.name, func(t *testing.T) {
			s := newScreen(t, size.w, size.h)
			s.press("ctrl+p")
			s.write("se")
			s.golden("palette-" + size.name)
		})
	}
	t.Run("help", func(t *testing.T) {
		s := newScreen(t, 80, 50)
		s.say("/help")
		s.golden("help")
	})
	t.Run("ascii", func(t *testing.T) {
		s := newScreen(t, 80, 24, func(o *tui.Options) { o.ASCII = true })
		s.exchange("naïve → “quotes”…", note)
		s.golden("ascii")
		for _, r := range s.shows() {
			if r > 0x7e {
				t.Fatalf("an ASCII screen shows %q", r)
			}
		}
	})
}

func TestWhatIsTypedGoesToTheDaemonOnce(t *testing.T) {
	s := newScreen(t, 80, 24)
	s.say("what is due?")
	sent := s.Sent()
	if len(sent) != 1 || sent[0].Sensor() != "user-input" || sent[0].Payload.Text("TEXT") != "what is due?" || sent[0].Session() != "main" {
		t.Fatalf("sent %v", sent)
	}
	if s.Input() != "" {
		t.Errorf("the input still has %q", s.Input())
	}
	if !s.Running() {
		t.Error("nothing seems to be running")
	}
	s.Feed(replyTo(sent[0], "t1", "DONE", "Nothing."))
	s.wants("Nothing.")
	if s.Running() {
		t.Error("something seems to be running after the reply")
	}
}

func TestNewLinesComeFromABackslashOrAlt(t *testing.T) {
	s := newScreen(t, 80, 24)
	s.write("one\\")
	s.press("enter")
	s.write("two")
	s.press("alt+enter")
	s.write("three")
	if got, want := s.Input(), "one\ntwo\nthree"; got != want {
		t.Fatalf("input is %q, want %q", got, want)
	}
	if sent := s.Sent(); len(sent) != 0 {
		t.Fatalf("sent %v", sent)
	}
	s.press("enter")
	if sent := s.Sent(); len(sent) != 1 || sent[0].Payload.Text("TEXT") != "one\ntwo\nthree" {
		t.Fatalf("sent %v", sent)
	}
}

func TestHistoryGoesBackAndReturnsToTheDraft(t *testing.T) {
	s := newScreen(t, 80, 24)
	s.say("first")
	s.say("second")
	s.write("draft")
	for _, step := range []struct{ key, want string }{
		{"up", "second"}, {"up", "first"}, {"up", "first"}, {"down", "second"}, {"down", "draft"}, {"down", "draft"},
	} {
		s.press(step.key)
		if got := s.Input(); got != step.want {
			t.Fatalf("after %s the input is %q, want %q", step.key, got, step.want)
		}
	}
}

func TestHistoryAndDraftOutliveTheClient(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "history")
	in := []string{"plain", "two\nlines", `a \ backslash and \n no line end`, " secret: begins with a blank"}
	got, err := tui.HistoryRound(file, in)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, in[:3]) {
		t.Errorf("read back %q, want %q", got, in[:3])
	}
	draft := filepath.Join(dir, "draft")
	if err := tui.WriteDraft(draft, "half a thought"); err != nil {
		t.Fatal(err)
	}
	s := newScreen(t, 80, 24, func(o *tui.Options) { o.History, o.Draft = file, draft })
	if err := s.Restore(); err != nil {
		t.Fatal(err)
	}
	if s.Input() != "half a thought" {
		t.Errorf("the draft came back as %q", s.Input())
	}
	s.press("up", "up")
	if s.Input() != "two\nlines" {
		t.Errorf("the history came back as %q", s.Input())
	}
	if err := tui.WriteDraft(draft, " \n"); err != nil {
		t.Fatal(err)
	}
	if err := newScreen(t, 80, 24, func(o *tui.Options) { o.Draft = draft }).Restore(); err != nil {
		t.Errorf("a missing draft is an error: %v", err)
	}
}

func TestTracesFoldUnderTheirAction(t *testing.T) {
	s := newScreen(t, 100, 30)
	s.exchange("what is due?", "Nothing.")
	s.wants("allowed tool.agenda", "2 gates")
	s.lacks("permission.rule")
	s.press("ctrl+g")
	s.wants("permissions allow permission.rule  agenda is allowed", "policy 0123456789ab")
	s.press("ctrl+g")
	s.lacks("permission.rule")
	s.say("/why a-2")
	s.wants("origin, validator")
	s.say("/why a-99")
	s.wants("No action a-99 was judged in this window")
}

func TestAQuestionIsAnsweredByOneKey(t *testing.T) {
	cases := []struct {
		name, key string
		decision  sexp.Keyword
		state     string
	}{
		{"y allows", "y", "APPROVED", "allowed once by you"},
		{"enter allows", "enter", "APPROVED", "allowed once by you"},
		{"n denies", "n", "DENIED", "denied by you"},
		{"esc denies", "esc", "DENIED", "denied by you"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newScreen(t, 80, 24)
			s.ask("t1", "a-7", "curl https://example.org")
			s.wants("needs your approval: shell.run", "curl https://example.org", "network.host", "silence means no")
			s.press(c.key)
			sent := s.Sent()
			if len(sent) != 1 || sent[0].Do() != "hitl-respond" || sent[0].Payload.Text("TOKEN") != "a-7" || sent[0].Payload.Word("DECISION") != c.decision {
				t.Fatalf("sent %v", sent)
			}
			s.wants(c.state)
			s.press(c.key)
			for _, m := range s.Sent() {
				if m.Do() == "hitl-respond" {
					t.Error("the same question was answered twice")
				}
			}
		})
	}
}

func TestADenialCanHaveAReason(t *testing.T) {
	s := newScreen(t, 80, 24)
	s.ask("t1", "a-7", "curl https://example.org")
	s.press("r")
	s.say("not today")
	sent := s.Sent()
	if len(sent) != 1 || sent[0].Payload.Word("DECISION") != "DENIED" || sent[0].Payload.Text("REASON") != "not today" {
		t.Fatalf("sent %v", sent)
	}
	s.ask("t2", "a-8", "curl https://example.org/2")
	s.press("r", "x", "esc")
	if sent := s.Sent(); len(sent) != 0 {
		t.Fatalf("going back from the reason sent %v", sent)
	}
	s.wants("needs your approval")
}

func TestAQuestionThatJustAppearedTakesNoKey(t *testing.T) {
	s := newScreen(t, 80, 24)
	s.Feed(asked("t1", "a-7", "curl https://example.org"))
	s.press("y", "enter")
	if sent := s.Sent(); len(sent) != 0 {
		t.Fatalf("keys typed before the question could be read sent %v", sent)
	}
	s.Arm()
	s.press("y")
	if sent := s.Sent(); len(sent) != 1 {
		t.Fatalf("sent %v", sent)
	}
}

func TestTheBeginningOfAMessageIsNoAnswer(t *testing.T) {
	for _, text := range []string{"summarise my day", "yesterday", "my notes", "no idea", "remind me"} {
		s := newScreen(t, 80, 24)
		s.ask("t1", "a-7", "curl https://example.org")
		s.hurry(text)
		if sent := s.Sent(); len(sent) != 0 {
			t.Errorf("typing %q sent %v", text, sent)
		}
		s.wants(text, "needs your approval", "silence means no")
	}
	s := newScreen(t, 80, 24)
	s.ask("t1", "a-7", "curl https://example.org")
	s.do(tea.KeyPressMsg{Code: 's', Text: "s"})
	s.wants("s answers in a moment; go on typing")
	s.do(tea.KeyPressMsg{Code: tea.KeyBackspace})
	s.LetGo()
	if sent := s.Sent(); len(sent) != 0 {
		t.Errorf("a letter that was taken back sent %v", sent)
	}
	s.do(tea.KeyPressMsg{Code: 'y', Text: "y"})
	s.do(tea.KeyPressMsg{Code: tea.KeyEnter})
	if sent := s.Sent(); len(sent) != 1 || sent[0].Payload.Word("DECISION") != "APPROVED" {
		t.Errorf("y and Enter sent %v", sent)
	}
}

func TestTextInTheInputIsNeverTakenForAnAnswer(t *testing.T) {
	s := newScreen(t, 80, 24)
	s.write("wh")
	s.ask("t1", "a-7", "curl https://example.org")
	s.write("y not")
	s.press("enter")
	for _, m := range s.Sent() {
		if m.Do() == "hitl-respond" {
			t.Fatalf("typing answered the question: %v", m)
		}
	}
	s.Update(tea.PasteMsg{Content: "y\n"})
	for _, m := range s.Sent() {
		t.Fatalf("pasting sent %v", m)
	}
}

func TestAQuestionOutOfSightIsShownBeforeItIsAnswered(t *testing.T) {
	s := newScreen(t, 80, 24)
	s.Fill(5, strings.Repeat("line\n", 30))
	s.ask("t1", "a-7", "curl https://example.org")
	s.press("pgup", "pgup")
	s.lacks("needs your approval")
	s.press("y")
	if sent := s.Sent(); len(sent) != 0 {
		t.Fatalf("sent %v", sent)
	}
	s.wants("needs your approval")
	s.press("y")
	if sent := s.Sent(); len(sent) != 1 {
		t.Fatalf("sent %v", sent)
	}
}

func TestAQuestionTallerThanTheScreenIsReadToItsEnd(t *testing.T) {
	for _, h := range []int{5, 12} {
		s := newScreen(t, 40, h)
		s.ask("t1", "a-7", "first\n"+strings.Repeat("middle\n", 20)+"last")
		seen, sent := "", []proto.Message(nil)
		for range 40 {
			s.press("y")
			if sent = s.Sent(); len(sent) > 0 {
				break
			}
			seen += s.shows()
		}
		if !strings.Contains(seen, "first") || strings.Count(seen, "middle") < 20 || !strings.Contains(seen, "token   a-7") {
			t.Errorf("at %d rows it was allowed before it was read:\n%s", h, seen)
		}
		if len(sent) != 1 || sent[0].Payload.Word("DECISION") != "APPROVED" {
			t.Errorf("at %d rows reading to the end and y sent %v", h, sent)
		}
	}
}

func TestQuestionsAnsweredElsewhereCloseHere(t *testing.T) {
	s := newScreen(t, 80, 24)
	s.ask("t1", "a-7", "curl https://example.org")
	s.Feed(status("t1", "ACTED"))
	s.wants("answered elsewhere")
	s.ask("t2", "a-8", "curl https://example.org/2")
	s.say("/approvals") // 'a' types, since it answers nothing
	for _, m := range s.Sent() {
		if m.Do() != "approvals" {
			continue
		}
		id, _ := m.Meta.Get("ID")
		s.Feed(proto.Message{Kind: proto.Response, Meta: sexp.P(kw("IN-REPLY-TO"), id), Payload: sexp.P(kw("ACTION"), kw("APPROVALS"), kw("PENDING"), sexp.NewList())})
	}
	s.wants("answered elsewhere or expired")
}

func TestWhatAPersonDecidesOnHidesNothing(t *testing.T) {
	s := newScreen(t, 100, 30)
	s.Feed(asked("t1", "a-7", "rm \u202ecod.txt\u200b\x1b[2K\r  two  blanks\nsecond"))
	s.wants("cmd     rm ⟨U+202E⟩cod.txt⟨U+200B⟩⟨U+001B⟩[2K⟨U+000D⟩  two  blanks↵", "│         second")
	s.Feed(ruling("t2", "a-8", "shell.run", "DENY", sexp.P(kw("CMD"), "echo \u202eolleh")))
	s.wants(`(:CMD "echo ⟨U+202E⟩olleh")`)
}

func TestClearingKeepsWhatNeedsAnAnswer(t *testing.T) {
	s := newScreen(t, 100, 30)
	s.exchange("hello", "Hello.")
	s.ask("t1", "a-7", "curl https://example.org")
	s.say("/clear")
	s.lacks("Hello.")
	s.wants("needs your approval")
}

func TestCommands(t *testing.T) {
	cases := []struct{ say, want string }{
		{"/aprove", "There is no command /aprove. Did you mean /approve?"},
		{"/zzzzzzzzz", "/help lists them"},
		{"/approve", "Nothing waits for approval."},
		{"/deny a-1", "Nothing waits for approval."},
		{"/approvals", "Nothing waits for approval."},
		{"/why", "No action has been judged yet."},
		{"/search", "Say what to look for"},
		{"/search nowhere", `"nowhere" was not found`},
		{"/theme pink", `There is no theme "pink"`},
		{"/theme light", "Theme: light"},
		{"/session", "This is the session main."},
		{"/session trip", "This is the session trip."},
		{"/help why", "/why [ID]"},
		{"/help nothing", "There is no command /nothing"},
		{"/status", "connected"},
		{"/mouse", "The mouse scrolls"},
	}
	for _, c := range cases {
		t.Run(c.say, func(t *testing.T) {
			s := newScreen(t, 100, 30)
			s.say(c.say)
			s.wants(c.want)
			for _, m := range s.Sent() {
				if m.Sensor() == "user-input" {
					t.Errorf("a slash command reached the daemon: %v", m)
				}
			}
		})
	}
}

func TestAPathIsNoCommand(t *testing.T) {
	s := newScreen(t, 80, 24)
	s.say("/etc/hosts: what is in it?")
	if sent := s.Sent(); len(sent) != 1 || sent[0].Sensor() != "user-input" {
		t.Fatalf("sent %v", sent)
	}
}

func TestLeaving(t *testing.T) {
	for _, way := range [][]string{{"/", "q", "u", "i", "t", "enter"}, {"/", "e", "x", "i", "t", "enter"}, {"ctrl+d"}, {"ctrl+c", "ctrl+c"}} {
		t.Run(strings.Join(way, " "), func(t *testing.T) {
			s := newScreen(t, 80, 24)
			s.press(way[:len(way)-1]...)
			if s.quit {
				t.Fatal("it left too early")
			}
			s.press(way[len(way)-1])
			if !s.quit {
				t.Error("it did not leave")
			}
		})
	}
	s := newScreen(t, 80, 24)
	s.write("text")
	s.press("ctrl+d", "ctrl+c", "up")
	if s.quit || s.Input() != "text" {
		t.Errorf("the input is %q; want it back after Ctrl+C and Up", s.Input())
	}
}

func TestCompletion(t *testing.T) {
	cases := []struct{ typed, want string }{
		{"/the", "/theme "}, {"/app", "/approv"}, {"/theme l", "/theme light "}, {"/zz", "/zz"}, {"hello", "hello"}, {"/why ", "/why a-"},
	}
	for _, c := range cases {
		s := newScreen(t, 80, 24)
		s.exchange("what is due?", "Nothing.")
		s.write(c.typed)
		s.press("tab")
		if got := s.Input(); got != c.want {
			t.Errorf("Tab made %q of %q, want %q", got, c.typed, c.want)
		}
	}
}

func TestThePaletteFindsAndRuns(t *testing.T) {
	s := newScreen(t, 100, 30)
	s.press("ctrl+p")
	s.wants("/help [COMMAND]", "/approvals")
	s.write("sts")
	s.wants("/status")
	s.lacks("/approvals")
	s.press("enter")
	s.wants("What", "connected")
	s.press("ctrl+p")
	s.write("search")
	s.press("enter")
	if s.Input() != "/search " {
		t.Errorf("a command that needs an argument left %q in the input", s.Input())
	}
}

func TestSearchGoesThroughHits(t *testing.T) {
	s := newScreen(t, 80, 24)
	s.Fill(3, strings.Repeat("hay\n", 40)+"the Needle one\n"+strings.Repeat("hay\n", 40))
	s.say("/search needle")
	s.wants("the Needle one", "3 of 3")
	s.press("n")
	s.wants("the Needle one", "2 of 3")
	s.press("N")
	s.wants("3 of 3")
	s.press("esc")
	s.lacks("of 3")
	s.say("/search needle")
	s.write("h")
	if s.Input() != "h" {
		t.Errorf("a letter during a search left %q in the input", s.Input())
	}
}

func TestEscStopsWhatRuns(t *testing.T) {
	s := newScreen(t, 80, 24)
	s.say("think hard")
	s.Sent()
	s.Feed(status("t1", "PERCEIVED"))
	s.wants("thinking", "Esc stops")
	s.press("esc")
	if sent := s.Sent(); len(sent) != 1 || sent[0].Sensor() != "interrupt" {
		t.Fatalf("sent %v", sent)
	}
}

func TestNothingIsLostWhenTheDaemonGoesAway(t *testing.T) {
	s := newScreen(t, 100, 30)
	s.say("first")
	s.Sent()
	s.write("half a tho")
	s.Lose()
	s.wants("went away before it answered")
	if s.Input() != "half a tho" || s.Running() {
		t.Fatalf("input %q, running %v", s.Input(), s.Running())
	}
	s.say("ught")
	s.wants("not sent yet")
	if got := s.Unsent(); !strings.Contains(got, "half a thought") {
		t.Errorf("the draft would be %q", got)
	}
	s.Join()
	s.wants("Connected again.")
	var said []string
	for _, m := range s.Sent() {
		if m.Sensor() == "user-input" {
			said = append(said, m.Payload.Text("TEXT"))
		}
	}
	if !slices.Equal(said, []string{"half a thought"}) {
		t.Errorf("said %q after the reconnect: want only what was never sent", said)
	}
	s.lacks("not sent yet")
}

func TestOtherSessionsStayOffTheScreen(t *testing.T) {
	s := newScreen(t, 80, 24)
	other := reply("t9", "DONE", "for somebody else")
	other.Meta = other.Meta.With("SESSION-ID", sexp.String("else"))
	s.Feed(other)
	s.lacks("for somebody else")
}

func TestAStreamedAnswerGrowsAndEndsWithTheFinalText(t *testing.T) {
	s := newScreen(t, 80, 24)
	s.Feed(status("t1", "PERCEIVED"), chunk("t1", "Hel"), chunk("t1", "lo **wor"), chunk("t1", "ld**"))
	s.wants("Hello world")
	s.Feed(ruling("t1", "a-3", "tui.message", "ALLOW", sexp.P(kw("TEXT"), "Hello"), gateVerdict("origin", "ALLOW", "", "")))
	s.wants("Passepartout  reply ✓  1 gate  a-3")
	s.Feed(chunk("t1", ""), reply("t1", "DONE", "Hello **world**."))
	s.wants("Hello world.")
	if strings.Count(s.shows(), "Hello") != 1 {
		t.Errorf("the answer is there twice:\n%s", s.shows())
	}
}

func TestWhatIsTakenBackLeavesTheScreen(t *testing.T) {
	s := newScreen(t, 80, 24)
	s.Feed(status("t1", "PERCEIVED"), chunk("t1", "Certainly, the key is"))
	s.wants("Certainly")
	s.Feed(ofTurn(proto.StreamChunk, "t1", sexp.P(kw("TEXT"), "", kw("RESET"), true)), reply("t1", "DENIED", "I may not say that."))
	s.lacks("Certainly")
	s.wants("I may not say that.")
}

func TestControlWordsOfTheDaemonGoThere(t *testing.T) {
	s := newScreen(t, 80, 24)
	s.say("/models  reasoning/code=local/coder")
	if sent := s.Sent(); len(sent) != 1 || sent[0].Payload.Text("TEXT") != "/models reasoning/code=local/coder" {
		t.Fatalf("sent %v", sent)
	}
}

func TestTooMuchToPasteIsRefusedAloud(t *testing.T) {
	s := newScreen(t, 100, 24)
	s.write("kept")
	s.Update(tea.PasteMsg{Content: strings.Repeat("x\n", 20_000)})
	s.wants("nothing was pasted")
	if s.Input() != "kept" {
		t.Errorf("input has %d bytes", len(s.Input()))
	}
	s.Update(tea.PasteMsg{Content: "a\r\nb\x1b[31m\rc"})
	if got := s.Input(); got != "kepta\nb[31m\nc" {
		t.Errorf("pasted %q", got)
	}
}

func TestScrollingLeavesTheEndAndComesBack(t *testing.T) {
	s := newScreen(t, 80, 24)
	s.Fill(10, strings.Repeat("line\n", 30)+"end of block\n")
	s.wants("end of block")
	s.Update(tea.MouseWheelMsg{Button: tea.MouseWheelUp})
	s.press("pgup")
	s.wants("more below")
	s.Feed(reply("t1", "DONE", "brand new"))
	s.lacks("brand new") // reading is not disturbed
	s.press("ctrl+end")
	s.wants("brand new")
	s.press("ctrl+home")
	s.lacks("brand new")
	for range 40 {
		s.press("pgdown")
	}
	s.wants("brand new")
}

// answerTo is the daemon's answer to a request about itself.
func answerTo(m proto.Message, payload sexp.Plist) proto.Message {
	id, _ := m.Meta.Get("ID")
	return proto.Message{Kind: proto.Response, Meta: sexp.P(kw("SESSION-ID"), "main", kw("IN-REPLY-TO"), id), Payload: payload}
}

func TestAnAnswerThatIsRefusedIsToldAndTheQuestionStays(t *testing.T) {
	s := newScreen(t, 100, 40)
	s.ask("t1", "a-7", "curl https://example.org")
	s.press("y")
	sent := s.Sent()
	s.Feed(answerTo(sent[0], sexp.P(kw("ACTION"), kw("ERROR"), kw("STATUS"), kw("FAILED"), kw("CODE"), "approval.refused", kw("TEXT"), "somebody else must answer")))
	s.wants("the answer was refused", "somebody else must answer (approval.refused)")
	var list proto.Message
	for _, m := range s.Sent() {
		if m.Do() == "approvals" {
			list = m
		}
	}
	s.Feed(answerTo(list, sexp.P(kw("ACTION"), kw("APPROVALS"), kw("PENDING"), sexp.NewList(asked("t1", "a-7", "curl https://example.org").Payload.List()))))
	s.wants("1 to approve")
}

func TestAnOldListDoesNotBringAnAnsweredQuestionBack(t *testing.T) {
	s := newScreen(t, 100, 40)
	s.ask("t1", "a-7", "curl https://example.org")
	s.say("/approvals")
	var list proto.Message
	for _, m := range s.Sent() {
		if m.Do() == "approvals" {
			list = m
		}
	}
	s.press("y")
	s.Feed(answerTo(list, sexp.P(kw("ACTION"), kw("APPROVALS"), kw("PENDING"), sexp.NewList(asked("t1", "a-7", "curl https://example.org").Payload.List()))))
	s.lacks("1 to approve")
}

// overview is what a busy daemon says stands beside the conversation.
var overview = sexp.P(
	kw("ACTION"), kw("OVERVIEW"), kw("FOCUS"), []string{"House", "Garden"}, kw("PINNED"), 2, kw("TOKENS"), 6100, kw("LIMIT"), 10_000,
	kw("COST"), "$0.12", kw("CAP"), "$5.00", kw("JOBS"), 3, kw("WAITING"), 0, kw("RUNNING"), []string{"garden walk"},
	kw("TOUCHED"), []string{"inbox/inbox.org", "a/very/long/way/down/to/the/place/notes.org"}, kw("PROTECTION"), "full", kw("PROTECTION-NOTE"), "every command runs in a full sandbox",
	kw("WORK"), rows(doing("embedding", 120, 400)))

func TestTheSideBarShowsWhatTheDaemonSaysOfItself(t *testing.T) {
	s := newScreen(t, 140, 40)
	s.Feed(reply("t1", "DONE", "Hello.")) // after each turn the client asks again
	for _, m := range s.Sent() {
		switch m.Do() {
		case "health-check":
			s.Feed(answerTo(m, sexp.P(kw("ACTION"), kw("HEALTH-RESPONSE"), kw("STARTED"), "2026-05-04T11:00:00Z", kw("MEMEX"), "/home/ana/a-rather-long-way/to/memex",
				kw("HEADINGS"), 32, kw("GATES"), []string{"origin", "vault"}, kw("POLICY"), "1cd32c6138501229", kw("JOURNAL"), 6, kw("CLIENTS"), 2)))
		case "overview":
			s.Feed(answerTo(m, overview))
		}
	}
	s.wants("journal   entry 6", "policy    1cd32c613850", "gates     2", "headings  32", "long-way/to/memex", "since     04 May 11:00", "cost      $0.12 of $5.00",
		"focus     Garden", "pinned    2", "context   ▰▰▰▰▰▰▰▱▱▱▱▱ 61%", "jobs      3, running garden walk", "sandbox   full", "embedding ▰▰▱▱▱▱▱▱ 120/400",
		"Files touched", "inbox/inbox.org", "to/the/place/notes.org")
	s.press("ctrl+b")
	s.lacks("journal")
}

func TestAnswersGivenForOtherSessionsShowTheirEnd(t *testing.T) {
	s := newScreen(t, 100, 40)
	q := asked("t9", "a-9", "curl https://example.org")
	q.Meta = q.Meta.With("SESSION-ID", sexp.String("trip"))
	q.Payload = q.Payload.With("SESSION-ID", sexp.String("trip"))
	s.Feed(q)
	s.Arm()
	s.wants("session trip")
	s.press("y")
	end := reply("t9", "DONE", "The page says hello.")
	end.Meta = end.Meta.With("SESSION-ID", sexp.String("trip"))
	s.Feed(end)
	s.wants("The page says hello.")
	later := reply("t10", "DONE", "something else")
	later.Meta = later.Meta.With("SESSION-ID", sexp.String("trip"))
	s.Feed(later)
	s.lacks("something else")
}

func TestALongTranscriptIsNotKeptLaidOut(t *testing.T) {
	s := newScreen(t, 80, 24)
	s.Fill(2000, strings.Repeat("line\n", 50))
	s.press("ctrl+home")
	for range 1500 {
		s.press("pgdown")
	}
	if n := s.Laid(); n > 25_000 {
		t.Errorf("%d lines of layout are kept after scrolling through 100,000", n)
	}
	s.press("ctrl+home")
	s.wants("Passepartout")
}

func TestADaemonThatHangsUpAtOnceIsNotCalledAtOnce(t *testing.T) {
	s := newScreen(t, 80, 24, func(o *tui.Options) {
		o.Dial = func(context.Context) (tui.Conn, error) { return nil, errors.New("nobody is there") }
	})
	for range 5 {
		s.Lose()
		s.Join()
	}
	if got := s.Failures(); got != 5 {
		t.Errorf("%d failures were counted, want 5: the wait must grow", got)
	}
	s.Feed(reply("t1", "DONE", "Hello."))
	if got := s.Failures(); got != 0 {
		t.Errorf("%d failures are left after a frame", got)
	}
}
