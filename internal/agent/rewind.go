package agent

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"passepartout/internal/llm"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// rewindWord takes a conversation back to before one of the person's messages.
const rewindWord = "/rewind"

// A spoken is a message of a conversation that began a turn.
type spoken struct {
	turn proto.ID
	own  bool // it was in the owner's own words
}

// begin notes that a message begins a turn. It is heard next.
func (s *session) begin(turn proto.ID, own bool) {
	s.turns = keep(append(s.turns, spoken{turn, own}), maxTalk)
}

// rewindTo forgets a turn and all that came after it, and says which they were. What
// is so old that it is not remembered takes everything with it. Labels stay: what was
// read may have been repeated since, in notes and in files.
func (s *session) rewindTo(turn proto.ID) []proto.ID {
	from := max(0, slices.IndexFunc(s.turns, func(t spoken) bool { return t.turn == turn }))
	gone := s.turns[from:]
	s.turns = slices.Clone(s.turns[:from])
	ids := make([]proto.ID, len(gone))
	said, left := len(s.said), len(gone)
	for i, t := range gone {
		if ids[i] = t.turn; t.own {
			said--
		}
	}
	s.said = slices.Clone(s.said[:max(0, said)])
	at := len(s.talk)
	for at > 0 && left > 0 {
		if at--; s.talk[at].Role == llm.User {
			left--
		}
	}
	if left > 0 || from == 0 {
		at = 0
	}
	s.talk, s.logs, s.last = slices.Clone(s.talk[:at]), nil, exchange{}
	return ids
}

// rewind is the control word /rewind [N|TURN]: it forgets the last N messages of the
// person and what followed them, so that no engine is shown them again. What was done
// stays done; undo takes that back.
func (t *turn) rewind(args []string) phase {
	t.aside = true
	turn, err := t.s.pick(args)
	if err != nil {
		t.finish(Failed, err.Error())
		return done
	}
	if t.waitedFor() {
		return done
	}
	turns, said, talk, logs, last := t.s.turns, t.s.said, t.s.talk, t.s.logs, t.s.last
	gone := t.s.rewindTo(turn)
	ids := make([]string, len(gone))
	for i, id := range gone {
		ids[i] = string(id)
	}
	if err := t.a.Journal.Note(t.a.sessionEntry("REWIND", t.s, t.id).With("TURNS", sexp.Strings(ids))); err != nil {
		t.s.turns, t.s.said, t.s.talk, t.s.logs, t.s.last = turns, said, talk, logs, last
		t.finish(Failed, fmt.Sprintf("The journal cannot be written, so nothing is forgotten: %v.", err))
		return done
	}
	t.a.mu.Lock()
	t.s.inquiry = nil
	t.a.mu.Unlock()
	t.finish(Done, fmt.Sprintf("I have forgotten your last %d messages and what followed. What was done stays done: /undo takes it back.", len(gone)))
	return done
}

// pick is the turn to go back to.
func (s *session) pick(args []string) (proto.ID, error) {
	n := 1
	if len(args) > 0 {
		if slices.ContainsFunc(s.turns, func(t spoken) bool { return string(t.turn) == args[0] }) {
			return proto.ID(args[0]), nil
		}
		var err error
		if n, err = strconv.Atoi(args[0]); err != nil || n < 1 || len(args) > 1 {
			return "", fmt.Errorf("%s takes how many of your messages to go back, such as %s 2, or the turn to forget first", rewindWord, rewindWord)
		}
	}
	if len(s.turns) == 0 {
		return "", fmt.Errorf("nothing was said in this conversation yet")
	}
	return s.turns[max(0, len(s.turns)-n)].turn, nil
}

// sessionEntry begins a record about a session as a whole.
func (a *Agent) sessionEntry(kind sexp.Keyword, s *session, turn proto.ID) sexp.Plist {
	return a.clean(sexp.P(
		sexp.Keyword("KIND"), kind, sexp.Keyword("SESSION"), s.name, sexp.Keyword("TURN"), string(turn),
		sexp.Keyword("AT"), a.Now().UTC().Format(time.RFC3339Nano)))
}
