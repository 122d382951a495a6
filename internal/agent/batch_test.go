package agent_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"passepartout/internal/agent"
	"passepartout/internal/flight"
	"passepartout/internal/gate"
	"passepartout/internal/llm"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// planned is a reply that proposes several steps at once: "tool argument" each.
func planned(steps ...string) llm.Reply {
	var list []any
	for _, s := range steps {
		tool, x, _ := strings.Cut(s, " ")
		list = append(list, map[string]any{"tool": tool, "args": map[string]any{"x": x}})
	}
	return llm.Reply{Call: &llm.Call{Name: "plan", Args: map[string]any{"steps": list, "explanation": "the script has a plan"}}}
}

// approve answers the only open question.
func (r *rig) approve(scope flight.Scope) string {
	r.t.Helper()
	open := r.a.Questions()
	if len(open) != 1 {
		r.t.Fatalf("%d questions are open, want 1", len(open))
	}
	if _, err := r.a.Answer(open[0].Token, flight.Answer{Yes: true, Scope: scope, By: owner}); err != nil {
		r.t.Fatal(err)
	}
	return open[0].Token
}

// swappable lets a test put another policy in force.
func swappable(t *testing.T, replies ...llm.Reply) (r *rig, swap func(perms ...gate.Permission)) {
	t.Helper()
	var now atomic.Pointer[gate.Chain]
	r = newRigWith(t, func(o *agent.Options) {
		now.Store(o.Chain())
		o.Chain = now.Load
	}, replies...)
	return r, func(perms ...gate.Permission) {
		c, err := gate.Standard(gate.Policy{
			Permissions: append([]gate.Permission{{Name: "*", Decision: gate.Allow}}, perms...), ReadRoots: []string{"/"}, LocalChannels: []string{"cli"},
		}, r.a.Table.Vocabulary())
		if err != nil {
			t.Fatal(err)
		}
		now.Store(c)
	}
}

func TestAPlanAsksOnceWithTheVerdictOfEveryStepBeforeTheFirst(t *testing.T) {
	r := newRig(t, planned("look a", "risky b", "keep c", "risky d"), text("all four are done"))
	status, reply := r.say("go")
	if status != "PENDING" || len(r.effects()) != 0 {
		t.Fatalf("ended %s %q with the effects %v, want PENDING and none", status, reply, r.effects())
	}
	q := r.a.Questions()[0]
	var got []string
	for _, s := range q.Steps {
		got = append(got, s.Name()+" "+strings.ToLower(string(s.Trace.Word("DECISION"))))
	}
	want := "[tool.look allow tool.risky ask tool.keep allow tool.risky ask]"
	if fmt.Sprint(got) != want {
		t.Errorf("the steps are %v, want %s", got, want)
	}
	for _, want := range []string{`step 1, tool.look (:X "a"): allowed`, `step 4, tool.risky (:X "d"): asks: permissions (permissions.ask)`} {
		if !strings.Contains(reply, want) {
			t.Errorf("the reply lacks %q:\n%s", want, reply)
		}
	}
	if frame := q.Plist(); len(frame.Sub("ARGS").String()) == 0 || !strings.Contains(frame.String(), `:STEP 4 :NAME "tool.risky"`) {
		t.Errorf("the frame is %s", frame)
	}
	r.approve(flight.Once)
	if status, reply := r.next(); status != "DONE" || reply != "all four are done" {
		t.Errorf("ended %s %q", status, reply)
	}
	if got := fmt.Sprint(r.effects()); got != "[effect look a effect risky b effect keep c effect risky d]" {
		t.Errorf("effects %s", got)
	}
	last := r.engine.heard[1].Messages
	if m := last[len(last)-1]; m.Role != llm.ToolResult || m.Tool != "plan" || !strings.Contains(m.Text, "Step 4, tool.risky:\nrisky done") {
		t.Errorf("the engine heard %+v", m)
	}
}

func TestAPlanNobodyObjectsToRunsAtOnce(t *testing.T) {
	r := newRig(t, planned("look a", "keep b"), text("done"))
	if status, reply := r.say("go"); status != "DONE" || reply != "done" {
		t.Errorf("ended %s %q", status, reply)
	}
	if got := fmt.Sprint(r.effects()); got != "[effect look a effect keep b]" {
		t.Errorf("effects %s", got)
	}
}

func TestAPlanWithARefusedStepRunsNothing(t *testing.T) {
	r := newRig(t, planned("keep a", "forbidden b", "risky c"), text("I see"))
	if status, _ := r.say("go"); status != "DENIED" {
		t.Errorf("ended %s, want DENIED", status)
	}
	if len(r.effects()) != 0 || len(r.a.Questions()) != 0 {
		t.Errorf("effects %v, %d questions", r.effects(), len(r.a.Questions()))
	}
	last := r.engine.heard[1].Messages
	if m := last[len(last)-1]; m.Role != llm.Objection || !strings.Contains(m.Text, "step 2, tool.forbidden: permissions (permissions.deny)") {
		t.Errorf("the engine heard %+v", m)
	}
}

func TestAStepThatIsNoLongerWhatWasAgreedToStopsThePlanAndSaysSo(t *testing.T) {
	for name, tt := range map[string]struct {
		then gate.Permission
		says string
	}{
		"refused by now":            {gate.Permission{Name: "keep", Decision: gate.Deny}, "step 2, tool.keep, was not carried out: it is now refused: permissions (permissions.deny)"},
		"asks what nobody was told": {gate.Permission{Name: "keep", Decision: gate.Ask}, "step 2, tool.keep, was not carried out: it now raises a question you were not shown"},
	} {
		t.Run(name, func(t *testing.T) {
			r, swap := swappable(t, planned("risky a", "keep b", "look c"), text("unused"))
			r.say("go")
			swap(gate.Permission{Name: "risky", Decision: gate.Ask}, tt.then)
			token := r.approve(flight.Once)
			status, reply := r.next()
			if status != "DENIED" || !strings.Contains(reply, tt.says) || !strings.Contains(reply, "step 1, tool.risky, was carried out") || !strings.Contains(reply, "step 3, tool.look, was not carried out") {
				t.Errorf("ended %s %q", status, reply)
			}
			if got := fmt.Sprint(r.effects()); got != "[effect risky a]" {
				t.Errorf("effects %s", got)
			}
			if p, _ := r.a.Plans.Get(token); p.State != flight.Failed || p.Progress() != "1 of 3 steps were carried out" {
				t.Errorf("the plan is %s: %s", p.State, p.Progress())
			}
		})
	}
}

func TestAFailedStepEndsThePlanAndTheEngineHearsHowFarItCame(t *testing.T) {
	r := newRig(t, planned("risky a", "crash b", "keep c"), text("I see"))
	r.say("go")
	token := r.approve(flight.Once)
	if status, reply := r.next(); status != "DONE" || reply != "I see" {
		t.Errorf("ended %s %q", status, reply)
	}
	last := r.engine.heard[1].Messages
	if m := last[len(last)-1]; m.OK || !strings.Contains(m.Text, "step 2, tool.crash, failed; step 3, tool.keep, was not carried out") {
		t.Errorf("the engine heard %+v", m)
	}
	if p, _ := r.a.Plans.Get(token); p.State != flight.Failed {
		t.Errorf("the plan is %s", p.State)
	}
}

func TestADeniedPlanDoesNothingAndTheReasonReachesTheEngine(t *testing.T) {
	r := newRig(t, planned("keep a", "risky b"), text("I see"))
	r.say("go")
	r.say("/deny " + r.a.Questions()[0].Token + " not on a Sunday")
	r.next()
	last := r.engine.heard[1].Messages
	if m := last[len(last)-1]; m.Role != llm.Objection || !strings.Contains(m.Text, "not on a Sunday") || !strings.Contains(m.Text, "do not propose it again") {
		t.Errorf("the engine heard %+v", m)
	}
	if len(r.effects()) != 0 {
		t.Errorf("effects %v", r.effects())
	}
}

func TestWhatIsNoPlanIsRefusedWhole(t *testing.T) {
	eleven := make([]string, 11)
	for i := range eleven {
		eleven[i] = fmt.Sprint("look ", i)
	}
	nested := planned("look a")
	nested.Call.Args["steps"] = []any{map[string]any{"tool": "plan", "args": map[string]any{"steps": []any{map[string]any{"tool": "look", "args": map[string]any{}}}}}}
	claims := planned("risky a")
	claims.Call.Args["steps"].([]any)[0].(map[string]any)["approved"] = true
	for name, tt := range map[string]struct {
		reply llm.Reply
		says  string
	}{
		"too many steps":         {planned(eleven...), "11 steps: want at most 10"},
		"a plan in a plan":       {nested, "a plan inside a plan"},
		"a step that talks":      {llm.Reply{Text: `(:TARGET :PLAN :PAYLOAD (:STEPS ((:TARGET :CLI :PAYLOAD (:ACTION :MESSAGE :TEXT "hi"))) :EXPLANATION "to say something"))`}, "only says something"},
		"an unknown tool":        {planned("looks a"), `unknown tool "looks"`},
		"a step with authority":  {claims, "APPROVED"},
		"no steps at all":        {llm.Reply{Call: &llm.Call{Name: "plan", Args: map[string]any{"steps": []any{}, "explanation": "nothing to do here"}}}, "STEPS"},
		"a step that is a word":  {llm.Reply{Call: &llm.Call{Name: "plan", Args: map[string]any{"steps": []any{"look"}, "explanation": "nothing to do here"}}}, "a list of proposals"},
		"a step with other keys": {llm.Reply{Text: `(:TARGET :PLAN :PAYLOAD (:STEPS ((:TOOL "look" :ARGS (:X "a" :LEVEL 3))) :EXPLANATION "to look at it"))`}, "LEVEL"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, tt.reply, text("I see"))
			r.say("go")
			last := r.engine.heard[1].Messages
			if m := last[len(last)-1]; m.Role != llm.Objection || !strings.Contains(m.Text, tt.says) {
				t.Errorf("the engine heard %+v, want %q", m, tt.says)
			}
			if len(r.effects()) != 0 || len(r.a.Questions()) != 0 {
				t.Errorf("effects %v, %d questions", r.effects(), len(r.a.Questions()))
			}
		})
	}
}

func TestAYesForTheSessionLetsLaterStepsStayInsideThePattern(t *testing.T) {
	r := newRig(t, planned("risky a", "look b"), text("one"), planned("look c", "risky a"), text("two"), planned("risky other"), text("three"))
	r.say("go")
	r.approve(flight.Session)
	r.next()
	if status, reply := r.say("again"); status != "DONE" || reply != "two" {
		t.Errorf("the same class ended %s %q, want it done", status, reply)
	}
	if status, _ := r.say("and another"); status != "PENDING" {
		t.Errorf("another class ended %s, want PENDING", status)
	}
}

func TestINV09APlanOutlivesARestartAndGoesOnWhereItWas(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, planned("risky a", "keep b", "risky c"), text("it is done"))
	log := r.restart(dir, nil)
	if status, _ := r.say("go"); status != "PENDING" {
		t.Fatalf("ended %s", status)
	}
	log.Close()
	log = r.restart(dir, nil)
	token := r.a.Questions()[0].Token
	if len(r.a.Questions()[0].Steps) != 3 {
		t.Fatal("the steps are not shown after the restart")
	}
	// It is approved, and the program dies when the first step is done.
	if _, err := log.Answer(token, flight.Answer{Yes: true, By: owner}); err != nil {
		t.Fatal(err)
	}
	if err := log.StartStep(token, 0, "a-first"); err != nil {
		t.Fatal(err)
	}
	if err := log.EndStep(token, 0, flight.Done, "risky done"); err != nil {
		t.Fatal(err)
	}
	log.Close()
	log = r.restart(dir, nil)
	if status, reply := r.next(); status != "DONE" || reply != "it is done" {
		t.Errorf("ended %s %q", status, reply)
	}
	if got := fmt.Sprint(r.effects()); got != "[effect keep b effect risky c]" {
		t.Errorf("after the restart the effects are %s, want those of steps 2 and 3", got)
	}
	if p, _ := log.Get(token); p.State != flight.Done || p.Progress() != "3 of 3 steps were carried out" {
		t.Errorf("the plan is %s: %s", p.State, p.Progress())
	}
}

func TestAStepThatWasBegunWhenTheProgramDiedIsNotTriedAgainNorAreThoseAfterIt(t *testing.T) {
	for name, tt := range map[string]struct {
		saw   agent.Witness
		state flight.State
		says  string
	}{
		"nobody knows":     {nil, flight.Unknown, "step 2, tool.keep: whether it was carried out is not known; the 1 before it were carried out; the 1 after it were not"},
		"a witness saw it": {func(p flight.Plan) (bool, bool) { return p.Name() == "tool.keep" && p.Ruling == "a-2nd", true }, flight.Failed, "step 2, tool.keep: it was carried out;"},
		"nothing happened": {func(flight.Plan) (bool, bool) { return false, true }, flight.Failed, "step 2, tool.keep: nothing of it was done;"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			r := newRig(t, planned("risky a", "keep b", "risky c"), text("later"))
			log := r.restart(dir, nil)
			r.say("go")
			token := r.a.Questions()[0].Token
			if _, err := log.Answer(token, flight.Answer{Yes: true, By: owner}); err != nil {
				t.Fatal(err)
			}
			for i, ruling := range []string{"a-1st", "a-2nd"} {
				if err := log.StartStep(token, i, ruling); err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					if err := log.EndStep(token, 0, flight.Done, ""); err != nil {
						t.Fatal(err)
					}
				}
			}
			log.Close()
			log = r.restart(dir, tt.saw)
			if p, _ := log.Get(token); p.State != tt.state {
				t.Errorf("the plan is %s, want %s", p.State, tt.state)
			}
			if _, reply := r.say("what happened?"); !strings.Contains(reply, token) || !strings.Contains(reply, tt.says) {
				t.Errorf("the next reply is %q, want %q", reply, tt.says)
			}
			if len(r.effects()) != 0 {
				t.Errorf("something was tried again: %v", r.effects())
			}
		})
	}
}

func TestAClientsOwnPlanIsJudgedLikeAnyOther(t *testing.T) {
	r := newRig(t, text("unused"))
	v, err := sexp.Read([]byte(`(:TYPE :REQUEST :TARGET :PLAN :PAYLOAD (:STEPS ((:TOOL "look" :ARGS (:X "a")) (:TARGET :TOOL :PAYLOAD (:TOOL "risky" :ARGS (:X "b") :EXPLANATION "because of the client"))) :EXPLANATION "sent by a client"))`), sexp.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	r.submit("main", proto.Request, owner, sexp.P(sexp.Keyword("SENSOR"), sexp.Keyword("CLIENT-REQUEST"), sexp.Keyword("PROPOSAL"), v))
	if status, reply := r.next(); status != "PENDING" {
		t.Fatalf("ended %s %q", status, reply)
	}
	r.approve(flight.Once)
	if status, reply := r.next(); status != "DONE" || !strings.Contains(reply, "step 2, tool.risky, was carried out") {
		t.Errorf("ended %s %q", status, reply)
	}
}
