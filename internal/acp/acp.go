// Package acp lets editors that speak the Agent Client Protocol be clients of the
// daemon, over standard input and output.
//
// The central types:
//
//   - [Serve] speaks to one editor until it hangs up.
//   - Conn is the way to the daemon; a link sorts what comes from it by request and
//     by session.
//   - A prompt is one question of the person: it follows the session until the turn
//     has ended, also through approvals, and shows what happens as updates.
//
// Sessions are the daemon's own: what was begun here goes on in any other client. A
// question of the gates becomes session/request_permission; the answer goes back as
// that of the local user this process belongs to.
//
// The rule a newcomer will break: an editor's silence, or a permission request it
// cancels, is not an answer. The plan goes on waiting and can be answered elsewhere.
package acp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// Options are what a server needs.
type Options struct {
	Dial    func(context.Context) (Conn, error)
	Version string
	In      io.Reader
	Out     io.Writer
}

// Serve speaks to the editor at the other end until it hangs up or the context ends.
func Serve(ctx context.Context, o Options) error {
	s := &server{o: o, ctx: ctx, told: map[sdk.SessionId]bool{}}
	defer s.close()
	s.editor = sdk.NewAgentSideConnection(s, o.Out, o.In)
	s.editor.SetLogger(slog.New(slog.DiscardHandler)) // an editor may show its agent's stderr
	select {
	case <-s.editor.Done():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A server is the agent's side of one connection.
type server struct {
	o      Options
	ctx    context.Context //nolint:containedctx // of the whole connection: a dial outlives the request that caused it
	editor *sdk.AgentSideConnection

	mu   sync.Mutex // guards what follows
	link *link
	told map[sdk.SessionId]bool // which words there are
}

var (
	_ sdk.Agent       = (*server)(nil)
	_ sdk.AgentLoader = (*server)(nil)
)

// daemon is the connection, made anew when the last one was lost.
func (s *server) daemon() (*link, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link != nil {
		select {
		case <-s.link.done:
		default:
			return s.link, nil
		}
	}
	c, err := s.o.Dial(s.ctx)
	if err != nil {
		return nil, err
	}
	s.link = newLink(c)
	return s.link, nil
}

func (s *server) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link != nil {
		_ = s.link.conn.Close() // the daemon needs no goodbye
		<-s.link.done
	}
}

func (s *server) ask(ctx context.Context, session, action string, more ...any) (sexp.Plist, error) {
	l, err := s.daemon()
	if err != nil {
		return sexp.Plist{}, err
	}
	return l.ask(ctx, session, sexp.P(append([]any{sexp.Keyword("ACTION"), sexp.Keyword(action)}, more...)...))
}

// Initialize implements [sdk.Agent].
func (s *server) Initialize(context.Context, sdk.InitializeRequest) (sdk.InitializeResponse, error) {
	return sdk.InitializeResponse{
		ProtocolVersion: sdk.ProtocolVersionNumber,
		AgentInfo:       &sdk.Implementation{Name: "passepartout", Title: sdk.Ptr("Passepartout"), Version: s.o.Version},
		AuthMethods:     []sdk.AuthMethod{},
		AgentCapabilities: sdk.AgentCapabilities{
			LoadSession:        true,
			PromptCapabilities: sdk.PromptCapabilities{EmbeddedContext: true},
			SessionCapabilities: sdk.SessionCapabilities{
				List: &sdk.SessionListCapabilities{}, Resume: &sdk.SessionResumeCapabilities{}, Close: &sdk.SessionCloseCapabilities{},
			},
		},
	}, nil
}

// Authenticate implements [sdk.Agent]. The socket's credentials are all there is.
func (s *server) Authenticate(context.Context, sdk.AuthenticateRequest) (sdk.AuthenticateResponse, error) {
	return sdk.AuthenticateResponse{}, nil
}

// NewSession implements [sdk.Agent].
func (s *server) NewSession(ctx context.Context, _ sdk.NewSessionRequest) (sdk.NewSessionResponse, error) {
	id := "acp-" + strings.ToLower(rand.Text()[:10])
	if _, err := s.ask(ctx, id, "LISTEN"); err != nil {
		return sdk.NewSessionResponse{}, err
	}
	return sdk.NewSessionResponse{SessionId: sdk.SessionId(id)}, nil
}

// LoadSession implements [sdk.AgentLoader]: it says again what was said.
func (s *server) LoadSession(ctx context.Context, p sdk.LoadSessionRequest) (sdk.LoadSessionResponse, error) {
	id := string(p.SessionId)
	past, err := s.ask(ctx, id, "CONVERSATION", sexp.Keyword("COUNT"), 100)
	if err != nil {
		return sdk.LoadSessionResponse{}, err
	}
	if _, err := s.ask(ctx, id, "LISTEN"); err != nil {
		return sdk.LoadSessionResponse{}, err
	}
	for _, row := range rows(past, "SAID") {
		update := sdk.UpdateAgentMessageText(row.Text("TEXT"))
		switch row.Text("WHO") {
		case "you":
			update = sdk.UpdateUserMessageText(row.Text("TEXT"))
		case "agent":
		default:
			continue // rulings of the past are explained by `why`
		}
		if err := s.editor.SessionUpdate(ctx, sdk.SessionNotification{SessionId: p.SessionId, Update: update}); err != nil {
			return sdk.LoadSessionResponse{}, err
		}
	}
	return sdk.LoadSessionResponse{}, s.commands(ctx, p.SessionId)
}

// ResumeSession implements [sdk.Agent].
func (s *server) ResumeSession(ctx context.Context, p sdk.ResumeSessionRequest) (sdk.ResumeSessionResponse, error) {
	if _, err := s.ask(ctx, string(p.SessionId), "LISTEN"); err != nil {
		return sdk.ResumeSessionResponse{}, err
	}
	return sdk.ResumeSessionResponse{}, s.commands(ctx, p.SessionId)
}

// ListSessions implements [sdk.Agent]. All of them live in the memex.
func (s *server) ListSessions(ctx context.Context, _ sdk.ListSessionsRequest) (sdk.ListSessionsResponse, error) {
	health, err := s.ask(ctx, "", "HEALTH-CHECK")
	if err != nil {
		return sdk.ListSessionsResponse{}, err
	}
	list, err := s.ask(ctx, "", "SESSIONS")
	if err != nil {
		return sdk.ListSessionsResponse{}, err
	}
	out := sdk.ListSessionsResponse{Sessions: []sdk.SessionInfo{}}
	for _, row := range rows(list, "SESSIONS") {
		info := sdk.SessionInfo{SessionId: sdk.SessionId(row.Text("NAME")), Cwd: health.Text("MEMEX"), Title: sdk.Ptr(row.Text("FIRST"))}
		if at := row.Text("AT"); at != "" {
			info.UpdatedAt = &at
		}
		out.Sessions = append(out.Sessions, info)
	}
	return out, nil
}

// CloseSession implements [sdk.Agent]: it stops what runs. The conversation stays.
func (s *server) CloseSession(ctx context.Context, p sdk.CloseSessionRequest) (sdk.CloseSessionResponse, error) {
	return sdk.CloseSessionResponse{}, s.Cancel(ctx, sdk.CancelNotification{SessionId: p.SessionId})
}

// Cancel implements [sdk.Agent].
func (s *server) Cancel(_ context.Context, p sdk.CancelNotification) error {
	l, err := s.daemon()
	if err != nil {
		return err
	}
	return l.interrupt(string(p.SessionId))
}

func (l *link) interrupt(session string) error {
	_, _, err := l.send(proto.Message{Kind: proto.Event, Payload: sexp.P(sexp.Keyword("SENSOR"), sexp.Keyword("INTERRUPT"))}, session, false)
	return err
}

// SetSessionMode implements [sdk.Agent]. There are none: the policy decides.
func (s *server) SetSessionMode(context.Context, sdk.SetSessionModeRequest) (sdk.SetSessionModeResponse, error) {
	return sdk.SetSessionModeResponse{}, errors.New("there are no modes: what may be done is written in the policy")
}

// SetSessionConfigOption implements [sdk.Agent].
func (s *server) SetSessionConfigOption(context.Context, sdk.SetSessionConfigOptionRequest) (sdk.SetSessionConfigOptionResponse, error) {
	return sdk.SetSessionConfigOptionResponse{}, errors.New("sessions have no options")
}

// rows are the property lists of a list.
func rows(p sexp.Plist, key sexp.Keyword) []sexp.Plist {
	v, _ := p.Get(key)
	l, _ := v.(sexp.List)
	var out []sexp.Plist
	for _, v := range l.Items() {
		if r, ok := v.(sexp.List); ok {
			if row, err := sexp.AsPlist(r); err == nil {
				out = append(out, row)
			}
		}
	}
	return out
}

// said is a prompt: the person's words, and the text of what the editor attaches,
// which is not theirs.
func said(blocks []sdk.ContentBlock) (words, attached string, err error) {
	var b, more strings.Builder
	for _, c := range blocks {
		switch {
		case c.Text != nil:
			b.WriteString(c.Text.Text)
		case c.ResourceLink != nil:
			fmt.Fprintf(&b, " %s ", c.ResourceLink.Uri)
		case c.Resource != nil && c.Resource.Resource.TextResourceContents != nil:
			r := c.Resource.Resource.TextResourceContents
			fmt.Fprintf(&more, "%s:\n%s\n\n", r.Uri, r.Text)
			fmt.Fprintf(&b, " %s ", r.Uri)
		default:
			return "", "", errors.New("only text, links and text resources are understood")
		}
	}
	return strings.TrimSpace(b.String()), strings.TrimSpace(more.String()), nil
}
