package agent

import (
	"fmt"
	"slices"

	"passepartout/internal/llm"
	"passepartout/internal/proto"
)

// newWord begins a conversation anew. What a session has read labels all it says
// later, so there must be a way out of a label that costs nothing but the memory
// of it.
const newWord = "/new"

// renew forgets the conversation: words, results, labels, and what the person
// agreed to for it. While an action of it waits for an answer it stays, because
// that action would go on without the labels it was judged with.
func (t *turn) renew() phase {
	if n := waitingIn(t.a.Questions(), t.s.name); n > 0 {
		t.finish(Failed, fmt.Sprintf("%d actions of this conversation wait for you. Answer them first: /approvals lists them.", n))
		return done
	}
	if err := t.a.Journal.Note(t.a.sessionEntry("RENEW", t.s, t.id)); err != nil {
		t.finish(Failed, fmt.Sprintf("The journal cannot be written, so the conversation stays: %v.", err))
		return done
	}
	t.finish(Done, "A new conversation. I remember nothing of the old one; your notes and the journal are as they were.")
	s := t.s
	s.talk, s.turns, s.said, s.seen, s.logs, s.grants = nil, nil, nil, nil, nil, nil
	t.a.mu.Lock()
	s.inquiry, s.tokens = nil, 0
	t.a.mu.Unlock()
	s.taint, s.last, s.count = proto.Taint{}, exchange{}, llm.Counter{}
	return done
}

func waitingIn(qs []Question, session string) int {
	return len(slices.DeleteFunc(qs, func(q Question) bool { return q.Session != session }))
}
