package acp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// stopPatience is how long a turn may take to end after it was stopped.
const stopPatience = 10 * time.Second

// A prompt is one question of the person on its way. It belongs to the goroutine
// that answers the editor's request.
type prompt struct {
	s       *server
	l       *link
	session sdk.SessionId
	ctx     context.Context //nolint:containedctx // of the request, without its cancellation: updates still go out
	id      string          // of our message
	turn    string          // as the daemon calls it
	shown   string          // what of the answer the editor has
	running sdk.ToolCallId  // "" for none
	plan    plan
	asked   map[string]sdk.ToolCallId
	resting int // questions put to the editor whose turn has not said yet that it rests: the answer may be faster
	answers chan answer
	asking  context.CancelFunc // ends an open permission request; nil for none
}

// An answer is what the editor's person said about a plan.
type answer struct {
	token, option string
	err           error
}

// Prompt implements [sdk.Agent].
func (s *server) Prompt(ctx context.Context, r sdk.PromptRequest) (sdk.PromptResponse, error) {
	text, attached, err := said(r.Prompt)
	if err == nil && text == "" {
		err = errors.New("there are no words in this prompt")
	}
	if err != nil {
		return sdk.PromptResponse{}, sdk.NewInvalidParams(map[string]any{"error": err.Error()})
	}
	l, err := s.daemon()
	if err != nil {
		return sdk.PromptResponse{}, err
	}
	session := string(r.SessionId)
	box, err := l.follow(session)
	if err != nil {
		return sdk.PromptResponse{}, err
	}
	defer l.unfollow(session)
	if err := s.commands(ctx, r.SessionId); err != nil {
		return sdk.PromptResponse{}, err
	}
	p := &prompt{
		s: s, l: l, session: r.SessionId, ctx: context.WithoutCancel(ctx),
		asked: map[string]sdk.ToolCallId{}, answers: make(chan answer, 1),
	}
	payload := sexp.P(sexp.Keyword("SENSOR"), sexp.Keyword("USER-INPUT"), sexp.Keyword("TEXT"), text)
	if attached != "" {
		payload = payload.With("ATTACHED", sexp.String(attached))
	}
	p.id, _, err = l.send(proto.Message{Kind: proto.Event, Payload: payload}, session, false)
	if err != nil {
		return sdk.PromptResponse{}, err
	}
	defer func() {
		if p.asking != nil {
			p.asking()
		}
	}()
	return p.follow(ctx, box)
}

// follow shows what happens until the turn has ended.
func (p *prompt) follow(ctx context.Context, box *inbox) (sdk.PromptResponse, error) {
	stopped := ctx.Done()
	var late <-chan time.Time
	for {
		select {
		case <-stopped:
			stopped, late = nil, time.After(stopPatience)
			if err := p.l.interrupt(string(p.session)); err != nil {
				return sdk.PromptResponse{}, err
			}
			if p.asking != nil || len(p.asked) > 0 { // nothing runs: the plan waits
				return sdk.PromptResponse{StopReason: sdk.StopReasonCancelled}, nil
			}
		case <-late:
			return sdk.PromptResponse{StopReason: sdk.StopReasonCancelled}, nil
		case <-p.l.done:
			return sdk.PromptResponse{}, errGone
		case a := <-p.answers:
			if end, err := p.answered(a); end != "" || err != nil {
				return sdk.PromptResponse{StopReason: end}, err
			}
		case <-box.wake:
			for _, m := range box.take() {
				end, err := p.frame(m)
				if end != "" && late != nil {
					end = sdk.StopReasonCancelled
				}
				if end != "" || err != nil {
					return sdk.PromptResponse{StopReason: end}, err
				}
			}
		}
	}
}

func (p *prompt) update(u sdk.SessionUpdate) error {
	return p.s.editor.SessionUpdate(p.ctx, sdk.SessionNotification{SessionId: p.session, Update: u})
}

// frame shows one thing that happened; a reason ends the prompt.
func (p *prompt) frame(m proto.Message) (sdk.StopReason, error) {
	turn := m.Meta.Text("TURN")
	if m.Meta.Text("IN-REPLY-TO") == p.id && p.turn == "" {
		p.turn = turn
	}
	if m.Meta.Text("IN-REPLY-TO") != p.id && (turn == "" || turn != p.turn) {
		return "", nil // of another client
	}
	switch m.Kind {
	case proto.StreamChunk:
		return "", p.chunk(m.Payload)
	case proto.Status:
		if m.Payload.Word("STATUS") == "REASONED" {
			return "", p.finish(sdk.ToolCallStatusCompleted)
		}
	case proto.Event:
		switch m.Do() {
		case "gate-trace":
			p.resumed()
			return "", p.ruled(m.Payload)
		case "approval-required":
			return "", p.permission(m.Payload)
		}
	case proto.Response:
		return p.ended(m.Payload)
	case proto.Request, proto.Log, proto.KindInvalid:
	}
	return "", nil
}

// resumed notices that the turn goes on, so that an open question was answered
// here or elsewhere.
func (p *prompt) resumed() {
	if p.asking != nil {
		p.asking()
		p.asking = nil
	}
	clear(p.asked)
}

// chunk shows more of the answer, or what a command prints.
func (p *prompt) chunk(c sexp.Plist) error {
	if out := c.Text("OUTPUT"); out != "" && p.running != "" {
		return p.update(sdk.UpdateToolCall(p.running, sdk.WithUpdateContent([]sdk.ToolCallContent{sdk.ToolContent(sdk.TextBlock(out))})))
	}
	if reset, ok := c.Get("RESET"); ok && !sexp.IsNil(reset) && p.shown != "" {
		p.shown = "" // the protocol cannot take words back
		return p.update(sdk.UpdateAgentMessageText("\n\n(What I said so far is taken back.)\n\n"))
	}
	text := c.Text("TEXT")
	if text == "" {
		return nil
	}
	p.shown += text
	return p.update(sdk.UpdateAgentMessageText(text))
}

// ruled shows a ruling as a tool call. That an answer may be shown is none.
func (p *prompt) ruled(t sexp.Plist) error {
	name := t.Text("NAME")
	if strings.HasSuffix(name, ".message") {
		return nil
	}
	if err := p.finish(sdk.ToolCallStatusCompleted); err != nil {
		return err
	}
	if steps := rows(t.Sub("ARGS"), "STEPS"); len(steps) > 0 {
		p.plan = newPlan(steps)
		if err := p.update(p.plan.show()); err != nil {
			return err
		}
	}
	id, status := sdk.ToolCallId(t.Text("ID")), sdk.ToolCallStatusInProgress
	switch t.Sub("TRACE").Word("DECISION") {
	case "ALLOW":
		p.running = id
		if p.plan.begin(t.Sub("ARGS")) {
			if err := p.update(p.plan.show()); err != nil {
				return err
			}
		}
	case "ASK":
		status = sdk.ToolCallStatusPending
	default:
		status = sdk.ToolCallStatusFailed
	}
	return p.update(sdk.StartToolCall(id, title(name, t.Sub("ARGS")),
		sdk.WithStartKind(kind(name)), sdk.WithStartStatus(status), sdk.WithStartRawInput(raw(t.Sub("ARGS"))),
		sdk.WithStartContent([]sdk.ToolCallContent{sdk.ToolContent(sdk.TextBlock(verdicts(t)))})))
}

// finish ends the tool call that runs.
func (p *prompt) finish(status sdk.ToolCallStatus) error {
	if p.running == "" {
		return nil
	}
	id := p.running
	p.running = ""
	if status == sdk.ToolCallStatusCompleted && p.plan.end() {
		if err := p.update(p.plan.show()); err != nil {
			return err
		}
	}
	return p.update(sdk.UpdateToolCall(id, sdk.WithUpdateStatus(status)))
}

// The answers a person can give.
const (
	allowOnce    = "allow-once"
	allowSession = "allow-session"
	allowRule    = "allow-rule"
	reject       = "reject"
)

// permission asks the editor's person, without waiting for the answer here.
func (p *prompt) permission(q sexp.Plist) error {
	token := q.Text("TOKEN")
	if _, twice := p.asked[token]; twice || p.asking != nil {
		return nil
	}
	id := sdk.ToolCallId(token)
	p.asked[token] = id
	p.resting++
	name := title(q.Text("NAME"), q.Sub("ARGS"))
	ctx, cancel := context.WithCancel(p.ctx)
	p.asking = cancel
	request := sdk.RequestPermissionRequest{
		SessionId: p.session,
		ToolCall: sdk.ToolCallUpdate{
			ToolCallId: id, Title: &name, Kind: sdk.Ptr(kind(q.Text("NAME"))), Status: sdk.Ptr(sdk.ToolCallStatusPending),
			RawInput: raw(q.Sub("ARGS")), Content: []sdk.ToolCallContent{sdk.ToolContent(sdk.TextBlock(question(q)))},
		},
		Options: []sdk.PermissionOption{
			{Kind: sdk.PermissionOptionKindAllowOnce, Name: "Allow once", OptionId: allowOnce},
			{Kind: sdk.PermissionOptionKindAllowAlways, Name: "Allow its like in this session", OptionId: allowSession},
			{Kind: sdk.PermissionOptionKindAllowAlways, Name: "Allow, and try a rule for its like", OptionId: allowRule},
			{Kind: sdk.PermissionOptionKindRejectOnce, Name: "Reject", OptionId: reject},
		},
	}
	go func() { // ends with the request's context at the latest; the channel holds its one answer
		defer cancel()
		r, err := p.s.editor.RequestPermission(ctx, request)
		a := answer{token: token, err: err}
		if r.Outcome.Selected != nil {
			a.option = string(r.Outcome.Selected.OptionId)
		}
		if ctx.Err() == nil {
			p.answers <- a
		}
	}()
	return nil
}

// answered takes the person's answer back to the daemon, or leaves the plan waiting.
func (p *prompt) answered(a answer) (sdk.StopReason, error) {
	if _, open := p.asked[a.token]; !open {
		return "", nil // it was answered elsewhere meanwhile
	}
	p.asking = nil
	decision, scope := "APPROVED", "ONCE"
	switch a.option {
	case allowOnce:
	case allowSession:
		scope = "SESSION"
	case allowRule:
		scope = "RULE"
	case reject:
		decision = "DENIED"
	default: // cancelled, failed, or nonsense: no answer
		return sdk.StopReasonCancelled, p.update(sdk.UpdateAgentMessageText(
			fmt.Sprintf("\n\nIt still waits for an answer: passepartout approve %s, or deny.", a.token)))
	}
	delete(p.asked, a.token)
	got, err := p.l.ask(p.ctx, string(p.session), sexp.P(
		sexp.Keyword("ACTION"), sexp.Keyword("HITL-RESPOND"), sexp.Keyword("TOKEN"), a.token,
		sexp.Keyword("DECISION"), sexp.Keyword(decision), sexp.Keyword("SCOPE"), sexp.Keyword(scope)))
	if err != nil {
		return sdk.StopReasonEndTurn, p.update(sdk.UpdateAgentMessageText("\n\n" + err.Error()))
	}
	status := sdk.ToolCallStatusCompleted
	if decision == "DENIED" {
		status = sdk.ToolCallStatusFailed
	}
	return "", p.update(sdk.UpdateToolCall(sdk.ToolCallId(a.token), sdk.WithUpdateStatus(status),
		sdk.WithUpdateContent([]sdk.ToolCallContent{sdk.ToolContent(sdk.TextBlock(got.Text("TEXT")))})))
}

// ended takes the terminal response.
func (p *prompt) ended(r sexp.Plist) (sdk.StopReason, error) {
	status := r.Word("STATUS")
	if status == "PENDING" && p.resting > 0 {
		p.resting--
		return "", nil // the answer continues the turn
	}
	end := sdk.ToolCallStatusCompleted
	if status == "FAILED" || status == "INTERRUPTED" {
		end = sdk.ToolCallStatusFailed
	}
	if err := p.finish(end); err != nil {
		return "", err
	}
	text := r.Text("TEXT")
	if rest, begun := strings.CutPrefix(text, p.shown); begun {
		text = rest
	} else if p.shown != "" {
		text = "\n\n" + text
	}
	if strings.TrimSpace(text) != "" {
		if err := p.update(sdk.UpdateAgentMessageText(text)); err != nil {
			return "", err
		}
	}
	if status == "INTERRUPTED" {
		return sdk.StopReasonCancelled, nil
	}
	return sdk.StopReasonEndTurn, nil
}
