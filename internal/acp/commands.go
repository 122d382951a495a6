package acp

import (
	"context"

	sdk "github.com/coder/acp-go-sdk"
)

// The words a person may begin a message with. They are answered by the daemon
// itself and reach no model.
var words = []struct{ name, does, takes string }{
	{"approvals", "What waits for you, in any client", ""},
	{"approve", "Allow what waits", "token, or nothing where only one waits"},
	{"deny", "Refuse what waits", "token and reason"},
	{"answer", "Answer what the agent asked", "token and answer"},
	{"new", "Begin the conversation anew", ""},
	{"focus", "Look at a heading or file of the memex", "its name"},
	{"unfocus", "Look away again", ""},
	{"context", "What would be put in front of a model now, and why", ""},
	{"models", "Which models are used", ""},
	{"cost", "What models have cost", ""},
	{"status", "How the daemon is doing", ""},
}

// commands tells the editor, once for each session, what may be typed. An editor
// knows a session only when it has the answer to session/new, so a new one is told
// with its first prompt.
func (s *server) commands(ctx context.Context, session sdk.SessionId) error {
	s.mu.Lock()
	told := s.told[session]
	s.told[session] = true
	s.mu.Unlock()
	if told {
		return nil
	}
	list := make([]sdk.AvailableCommand, len(words))
	for i, w := range words {
		list[i] = sdk.AvailableCommand{Name: w.name, Description: w.does}
		if w.takes != "" {
			list[i].Input = &sdk.AvailableCommandInput{Unstructured: &sdk.UnstructuredCommandInput{Hint: w.takes}}
		}
	}
	return s.editor.SessionUpdate(ctx, sdk.SessionNotification{SessionId: session, Update: sdk.SessionUpdate{
		AvailableCommandsUpdate: &sdk.SessionAvailableCommandsUpdate{AvailableCommands: list, SessionUpdate: "available_commands_update"},
	}})
}
