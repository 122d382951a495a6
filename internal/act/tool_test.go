package act_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"passepartout/internal/act"
	"passepartout/internal/gate"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// odd are tools that misbehave.
func odd() []act.Tool {
	tool := func(name string, run func(context.Context, act.Call) (act.Outcome, error)) act.Tool {
		return act.Tool{Name: name, Effect: proto.ReadLocal, Run: run, Params: []proto.Param{{Name: "N", Type: proto.Number}}}
	}
	slow := tool("slow", func(ctx context.Context, _ act.Call) (act.Outcome, error) {
		<-ctx.Done()
		return act.Outcome{}, fmt.Errorf("waiting: %w", ctx.Err())
	})
	slow.Timeout = time.Nanosecond
	guarded := tool("guarded", func(context.Context, act.Call) (act.Outcome, error) {
		panic("a guarded tool ran")
	})
	guarded.Guard = func(c act.Call) error { return fmt.Errorf("%d is not for me", c.Int("N", 0)) }
	return []act.Tool{
		slow, guarded,
		tool("crash", func(context.Context, act.Call) (act.Outcome, error) { panic("a bug") }),
		tool("broken", func(context.Context, act.Call) (act.Outcome, error) { return act.Outcome{}, errors.New("a fault") }),
		tool("wordy", func(_ context.Context, c act.Call) (act.Outcome, error) {
			return act.Outcome{OK: true, Text: strings.Repeat("é", c.Int("N", 0)/2)}, nil
		}),
	}
}

func TestEveryWayToFailIsToldApart(t *testing.T) {
	s := open(t, act.Web{}, odd()...)
	for _, c := range []struct{ tool, args, want string }{
		{"slow", "", "slow did not finish within 1ns"},
		{"crash", "", "crash crashed: a bug"},
		{"broken", "", "broken: a fault"},
		{"guarded", ":N 7", "guarded refused its arguments: 7 is not for me"},
	} {
		o := s.do(c.tool, "%s", c.args)
		if o.OK || o.Text != c.want {
			t.Errorf("%s: ok %t, %q: want %q", c.tool, o.OK, o.Text, c.want)
		}
		if p := o.Plist(); p.Word("STATUS") != "ERROR" || p.Text("MESSAGE") != c.want {
			t.Errorf("%s: as data %s", c.tool, p)
		}
	}
	for src, want := range map[string]string{
		`(:TARGET :TOOL :PAYLOAD (:TOOL "read-fil" :ARGS (:FILEPATH "x")))`:          "read-file",
		`(:TARGET :TOOL :PAYLOAD (:TOOL "read-file" :ARGS (:FILEPAHT "x")))`:         "FILEPATH",
		`(:TARGET :TOOL :PAYLOAD (:TOOL "read-file" :ARGS (:FILEPATH 7)))`:           "want a string",
		`(:TARGET :TOOL :PAYLOAD (:TOOL "read-file" :ARGS ()))`:                      ":FILEPATH is missing",
		`(:TARGET :TOOL :PAYLOAD (:TOOL "slow" :ARGS (:TIMEOUT 1)))`:                 "unknown key",
		`(:TARGET :TOOL :PAYLOAD (:TOOL "shell" :ARGS (:CMD "ls" :APPROVED T)))`:     "APPROVED",
		`(:TARGET :SHELL :PAYLOAD (:CMD ("ls") :EXPLANATION "a list is no string"))`: "want a string",
	} {
		_, err := s.table.Vocabulary().Decode(must1(sexp.Read([]byte(src), sexp.Limits{})), proto.Cause{Origin: owner})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v: want %q", src, err, want)
		}
	}
}

func TestLongTextIsCutBetweenLettersAndSaysSo(t *testing.T) {
	s := open(t, act.Web{}, odd()...)
	for _, n := range []int{act.MaxOutput - 2, act.MaxOutput, act.MaxOutput + 2, 3 * act.MaxOutput} {
		o := s.succeeds("wordy", ":N %d", n)
		if cut := n > act.MaxOutput; o.Truncated != cut || strings.Contains(o.Text, "[cut:") != cut || !utf8.ValidString(o.Text) {
			t.Errorf("%d bytes: truncated %t, valid %t, end %q", n, o.Truncated, utf8.ValidString(o.Text), o.Text[len(o.Text)-40:])
		}
		if len(o.Text) > act.MaxOutput+100 {
			t.Errorf("%d bytes of %d shown", len(o.Text), n)
		}
	}
}

func TestINV01APermitWorksOnceAndAnEmptyOneNever(t *testing.T) {
	s := open(t, act.Web{})
	p := s.permit("write-note", `:FILEPATH "once.org" :CONTENT "* Once"`)
	if o := s.carryOut(context.Background(), p); !o.OK {
		t.Fatal(o.Text)
	}
	if _, err := s.table.Do(context.Background(), p); !errors.Is(err, gate.ErrNotPermitted) {
		t.Errorf("the second use gave %v", err)
	}
	if _, err := s.table.Do(context.Background(), gate.Permit{}); !errors.Is(err, act.ErrNoActuator) {
		t.Errorf("the empty permit gave %v", err)
	}
	other := open(t, act.Web{}, odd()...)
	if _, err := s.table.Do(context.Background(), other.permit("crash", "")); !errors.Is(err, act.ErrNoActuator) {
		t.Errorf("a tool of another table gave %v", err)
	}
}

func TestATableRefusesWhatContradictsItself(t *testing.T) {
	run := func(context.Context, act.Call) (act.Outcome, error) { return act.Outcome{}, nil }
	for what, tools := range map[string][]act.Tool{
		"a tool twice":      {{Name: "a", Effect: proto.ReadLocal, Run: run}, {Name: "a", Effect: proto.ReadLocal, Run: run}},
		"a tool that idles": {{Name: "a", Effect: proto.ReadLocal}},
	} {
		if _, err := act.NewToolbox(tools...); err == nil {
			t.Errorf("%s was accepted", what)
		}
	}
	box := must1(act.NewToolbox(act.Tool{Name: "a", Run: run}))
	if _, err := act.NewTable(box); err == nil {
		t.Error("a tool without an effect was accepted")
	}
	if _, err := act.NewTable(act.Speaker{Channel: "cli"}, act.Speaker{Channel: "cli"}); err == nil {
		t.Error("one target twice was accepted")
	}
}

func TestAskingAPersonEndsTheTurnWithNumberedAnswers(t *testing.T) {
	s := open(t, act.Web{})
	o := s.succeeds("ask-human", `:QUESTION "Which bed first?" :OPTIONS ("the left one" "the right one")`)
	if o.Text != "Which bed first?\n  1. the left one\n  2. the right one" || !o.Quiet {
		t.Errorf("quiet %t: %q", o.Quiet, o.Text)
	}
	s.fails("empty", "ask-human", `:QUESTION " "`)
}

func TestFormsAreEvaluatedInAJail(t *testing.T) {
	s := open(t, act.Web{})
	if o := s.succeeds("eval-form", `:CODE "(princ 1) (mapcar #'1+ '(1 2 3))"`); o.Text != "1\n(2 3 4)" {
		t.Errorf("got %q", o.Text)
	}
	s.fails("eval-form: ", "eval-form", `:CODE "(loop)"`)
	s.fails("eval-form: ", "eval-form", `:CODE "(open \"/etc/passwd\")"`)
}

func TestSpeakersDeliverOrLeaveItToTheReply(t *testing.T) {
	var heard []string
	loud := act.Speaker{Channel: "loud", Deliver: func(session string, _ proto.ID, text string) error {
		heard = append(heard, session+": "+text)
		return nil
	}}
	deaf := act.Speaker{Channel: "deaf", Deliver: func(string, proto.ID, string) error { return errors.New("nobody listens") }}
	table := must1(act.NewTable(loud, deaf, act.Speaker{Channel: "cli"}))
	chain := must1(gate.Standard(gate.Policy{Permissions: []gate.Permission{{Name: "*", Decision: gate.Allow}}, LocalChannels: []string{"cli"}}, table.Vocabulary()))
	say := func(target string) act.Outcome {
		v := must1(sexp.Read([]byte(fmt.Sprintf(`(:TARGET %q :PAYLOAD (:ACTION :MESSAGE :TEXT "hello there" :EXPLANATION "saying hello"))`, target)), sexp.Limits{}))
		a := must1(table.Vocabulary().Decode(v, proto.Cause{Signal: "s-1", Session: "main", Origin: owner}))
		return must1(table.Do(context.Background(), must1(chain.Decide(a, gate.Facts{Now: noon, Signal: proto.Signal{ID: "s-1", Session: "main", Origin: owner}}).Permit())))
	}
	if o := say("loud"); !o.OK || len(heard) != 1 || heard[0] != "main: hello there" {
		t.Errorf("%v, heard %q", o, heard)
	}
	if o := say("deaf"); o.OK || !strings.Contains(o.Text, "nobody listens") {
		t.Errorf("%v", o)
	}
	if o := say("cli"); !o.OK || o.Text != "hello there" || !o.Quiet {
		t.Errorf("%v", o)
	}
	if got := table.Resolve("nowhere", "deaf", "cli"); got != "deaf" {
		t.Errorf("resolved to %s", got)
	}
}
