package daemon

import (
	"sync"

	"passepartout/internal/proto"
)

// A hub knows which clients listen to which session. It is safe for concurrent
// use.
type hub struct {
	mu       sync.Mutex // guards sessions
	sessions map[string]map[*conn]bool
}

func newHub() *hub { return &hub{sessions: map[string]map[*conn]bool{}} }

// join lets a client hear a session.
func (h *hub) join(c *conn, session string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sessions[session] == nil {
		h.sessions[session] = map[*conn]bool{}
	}
	h.sessions[session][c] = true
}

// leave forgets a client.
func (h *hub) leave(c *conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, cs := range h.sessions {
		delete(cs, c)
		if len(cs) == 0 {
			delete(h.sessions, name)
		}
	}
}

// emit tells a session's clients. Queues never block, so the lock is held only
// for moments.
func (h *hub) emit(session string, m proto.Message) {
	for _, c := range h.listeners(session) {
		c.send(c.heard(m))
	}
}

func (h *hub) listeners(session string) []*conn {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]*conn, 0, len(h.sessions[session]))
	for c := range h.sessions[session] {
		out = append(out, c)
	}
	return out
}
