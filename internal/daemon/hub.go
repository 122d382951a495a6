package daemon

import (
	"slices"
	"sync"

	"passepartout/internal/proto"
)

// A hub knows which clients listen to which session. It is safe for concurrent
// use.
type hub struct {
	mu       sync.Mutex // guards what follows
	sessions map[string]map[*conn]bool
	watchers map[*conn]bool // that stay and listen: what waits for a person is for all of them
}

func newHub() *hub { return &hub{sessions: map[string]map[*conn]bool{}, watchers: map[*conn]bool{}} }

// watch lets a client hear a session, and what waits for a person in any.
func (h *hub) watch(c *conn, session string) {
	h.join(c, session)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watchers[c] = true
}

// watched reports whether a client stays and listens.
func (h *hub) watched() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.watchers) > 0
}

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
	delete(h.watchers, c)
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
	for _, c := range h.audience(session, m.Do() == "approval-required") {
		c.send(c.heard(m))
	}
}

// tell tells all who listen, whatever they listen to.
func (h *hub) tell(m proto.Message) {
	for _, c := range h.audience("", true) {
		c.send(m)
	}
}

// tellOthers tells all who listen, but not to this session.
func (h *hub) tellOthers(session string, m proto.Message) {
	in := h.listeners(session)
	for _, c := range h.audience("", true) {
		if !slices.Contains(in, c) {
			c.send(m)
		}
	}
}

// audience are a session's listeners, or with everybody all who listen at all.
func (h *hub) audience(session string, everybody bool) []*conn {
	out := h.listeners(session)
	if !everybody {
		return out
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.watchers {
		if !h.sessions[session][c] {
			out = append(out, c)
		}
	}
	return out
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
