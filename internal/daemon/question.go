package daemon

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// askTimeout is how long an answer may take to put together: some wait for a
// provider or for the session.
const askTimeout = 10 * time.Second

// An asking is one client's question.
type asking struct {
	conn    *conn
	message proto.Message
	session string
}

// A question is something a client may ask the daemon about itself: a :REQUEST
// without a :TARGET. What changes the world is a proposal instead, and goes through
// the gates.
type question struct {
	name   string // of the :ACTION, in lower case
	anyone bool   // also for a client that is not the owner
	here   bool   // only over the socket, whose user the kernel names
	waits  bool   // on something: then it must not hold up the connection's reader
	answer func(context.Context, *Daemon, asking) (sexp.Plist, error)
}

// questions is the whole list; each row's function lives with the part that knows
// the answer.
var questions = []question{
	{name: "health-check", anyone: true, answer: answerHealth},
	{name: "approvals", answer: answerApprovals},
	{name: "listen", answer: answerListen},
	{name: "models", waits: true, answer: answerModels},
	{name: "models-use", waits: true, answer: answerModelsUse},
	{name: "cost", waits: true, answer: answerCost},
	{name: "prompt", waits: true, answer: answerPrompt},
	{name: "skills", answer: answerSkills},
	{name: "status", answer: answerStatus},
	{name: "overview", answer: answerOverview},
	{name: "working", answer: answerWorking},
	{name: "agenda", answer: answerAgenda},
	{name: "outline", waits: true, answer: answerOutline},
	{name: "node-history", waits: true, answer: answerNodeHistory},
	{name: "sessions", waits: true, answer: answerSessions},
	{name: "conversation", waits: true, answer: answerConversation},
	{name: "tags", answer: answerTags},
	{name: "labels", answer: answerLabels},
	{name: "label-clear", answer: answerLabelClear},
	{name: "complete", waits: true, answer: answerComplete},
	{name: "garden", waits: true, answer: answerGarden},
	{name: "scribe", waits: true, answer: answerScribe},
	{name: "schedule", answer: answerSchedule},
	{name: "schedule-next", answer: answerScheduleNext},
	{name: "schedule-history", answer: answerScheduleHistory},
	{name: "schedule-change", answer: answerScheduleChange},
	{name: "repl-eval", waits: true, answer: answerEval},
	{name: "focus", waits: true, answer: answerFocus},
	{name: "context", waits: true, answer: answerContext},
	{name: "recall", waits: true, answer: answerRecall},
	{name: "recall-status", answer: answerRecallStatus},
	{name: "edited", answer: answerEdited},
	{name: "vault-reload", here: true, waits: true, answer: answerVaultReload},
	{name: "gateways", waits: true, answer: answerGateways},
	{name: "gateway-link", here: true, waits: true, answer: answerGatewayLink},
	{name: "gateway-pair", here: true, waits: true, answer: answerGatewayPair},
	{name: "gateway-unpair", waits: true, answer: answerGatewayUnpair},
	{name: "gateway-test", waits: true, answer: answerGatewayTest},
}

// ask answers a client's question, or says which ones there are.
func (d *Daemon) ask(a asking) { d.askFor(a.message.Do(), a) }

func (d *Daemon) askFor(name string, a asking) {
	c, m := a.conn, a.message
	i := slices.IndexFunc(questions, func(q question) bool { return q.name == name })
	switch {
	case i < 0:
		c.fail(m, "request.action", fmt.Sprintf("a request without :TARGET may be %s, found %q", questionNames(), name))
	case !questions[i].anyone && c.origin.Role != proto.RoleOwner:
		c.fail(m, "request.role", fmt.Sprintf("only the owner may ask for %s", name))
	case questions[i].here && c.far:
		c.fail(m, "request.place", fmt.Sprintf("%s is asked for over the daemon's own socket only", name))
	case !questions[i].waits:
		d.reply(context.Background(), a, questions[i])
	default:
		d.conns.Add(1)
		go func() {
			defer d.conns.Done()
			ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
			defer cancel()
			d.reply(ctx, a, questions[i])
		}()
	}
}

// reply answers, even where the answer meets a bug: most are put together on a
// goroutine of their own, on which it would end the daemon.
func (d *Daemon) reply(ctx context.Context, a asking, q question) {
	defer func() {
		if p := recover(); p != nil {
			d.log.Error("a question met a bug", "question", q.name, "panic", p, "stack", string(debug.Stack()))
			a.conn.fail(a.message, q.name+".failed", fmt.Sprintf("an internal error: %v", p))
		}
	}()
	p, err := q.answer(ctx, d, a)
	if err != nil {
		a.conn.fail(a.message, q.name+".failed", err.Error())
		return
	}
	if _, named := p.Get("ACTION"); !named {
		p = p.With("ACTION", sexp.Keyword(strings.ToUpper(q.name)))
	}
	a.conn.answer(a.message, p.With("STATUS", sexp.Keyword("DONE")))
}

// questionNames is the list for a client that asked for something else.
func questionNames() string {
	names := []string{":ANSWER", ":HITL-RESPOND"}
	for _, q := range questions {
		names = append(names, ":"+strings.ToUpper(q.name))
	}
	slices.Sort(names)
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

func answerHealth(_ context.Context, d *Daemon, _ asking) (sexp.Plist, error) {
	return d.health().With("ACTION", sexp.Keyword("HEALTH-RESPONSE")), nil
}

// answerListen makes the asker hear what happens in its session, and what waits for
// a person anywhere.
func answerListen(_ context.Context, d *Daemon, a asking) (sexp.Plist, error) {
	d.hub.watch(a.conn, a.session)
	return sexp.Plist{}, nil
}
