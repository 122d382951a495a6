package tui_test

import (
	"fmt"
	"testing"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

func TestWhatACommandPrintsIsSeenWhileItRuns(t *testing.T) {
	s := newScreen(t, 80, 40)
	s.Feed(status("t1", "PERCEIVED"), ruling("t1", "a-3", "shell.run", "ALLOW", sexp.P(kw("CMD"), "make"), gateVerdict("origin", "ALLOW", "", "")))
	for i := range 30 {
		s.Feed(ofTurn(proto.StreamChunk, "t1", sexp.P(kw("TOOL"), "shell", kw("OUTPUT"), fmt.Sprintf("step %d of 30\x1b[2J\n", i))))
	}
	s.wants("    step 29 of 30")
	s.wants("    step 22 of 30")
	s.lacks("step 21 of 30") // the end of it is enough
	s.lacks("\x1b[2J")
	s.Feed(reply("t1", "DONE", "Built."))
	s.wants("Built.")
}

func TestALineThatIsWrittenOverIsShownAsItStands(t *testing.T) {
	s := newScreen(t, 80, 40)
	s.Feed(status("t1", "PERCEIVED"), ruling("t1", "a-3", "shell.run", "ALLOW", sexp.P(kw("CMD"), "curl"), gateVerdict("origin", "ALLOW", "", "")))
	for _, piece := range []string{"a   table\r\n", " 10%\r", " 50%", "\r\x1b[3", "1m 99%\x1b[0m", "\r", "\n", "now  here"} {
		s.Feed(ofTurn(proto.StreamChunk, "t1", sexp.P(kw("TOOL"), "shell", kw("OUTPUT"), piece)))
	}
	s.wants("    a   table\n     99%\n    now  here")
	s.lacks("10%")
	s.lacks("[31m")
}

func TestAQuestionShowsWhatATrialChanged(t *testing.T) {
	s := newScreen(t, 80, 40)
	q := asked("t1", "a-7", "tidy up")
	q.Payload = q.Payload.With("PREVIEW", sexp.P(
		kw("TRIED"), true, kw("TEXT"), "Tried without network where nothing lasts.",
		kw("CHANGED"), []string{"deleted notes/old.org"}, kw("DIFF"), "--- a/x\n+++ b/x\n-two\n+zw\u202eei\n").List())
	s.Feed(status("t1", "PERCEIVED"), q)
	for _, part := range []string{"Tried without network", "deleted notes/old.org", "-two", "+zw⟨U+202E⟩ei"} {
		s.wants(part)
	}
}
