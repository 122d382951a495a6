package agent

import (
	"fmt"

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
	if t.waitedFor() {
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

// waitedFor ends the turn if an action of its conversation waits: for the person, or,
// answered already, for its turn.
func (t *turn) waitedFor() bool {
	t.a.Questions() // forgets those whose time is over
	n := 0
	t.a.mu.Lock()
	for _, w := range t.a.waiting {
		if w.turn.sig.Session == t.s.name {
			n++
		}
	}
	t.a.mu.Unlock()
	if n == 0 {
		return false
	}
	t.finish(Failed, fmt.Sprintf("Actions of this conversation wait for you, or for what you said before to be done (%d). Answer them first: /approvals lists them.", n))
	return true
}
