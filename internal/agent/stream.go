package agent

import (
	"strings"
	"sync"
	"time"

	"passepartout/internal/gate"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// Sizes of what is shown before an answer is whole.
const (
	heldBack = 256 // bytes that are judged and not yet shown
	stepSize = 80  // bytes that must be new before it is judged again
)

// All of an answer is judged again for each showing, which takes the longer the more
// has come. So judging may take this part of the time, and so much in advance: short
// answers are never held up, and a long one never takes more of a processor.
const (
	judgingPart  = 0.4
	judgingAhead = 50 * time.Millisecond
)

// A stream shows an answer while it is being written, and nothing of it that the
// gates have not judged. All text that has come is judged as the message it would
// be; what may be said is shown up to a sentence's end, and the last part is held
// back, because a credential or a mark can show its nature only at its end. One
// refusal stops the showing; the whole answer is judged as ever.
//
// Deltas come from the backend's goroutine, and may come after the turn has gone
// on: the lock and closed see to that.
type stream struct {
	allow func(text string) bool
	show  func(text string)
	now   func() time.Time // nil: the clock

	mu     sync.Mutex // guards what follows
	text   strings.Builder
	prose  int // how much of it certainly is
	looked int // how far sentences were looked for
	edge   int // where the last of them ends
	shown  int
	judged int
	began  time.Time
	spent  time.Duration // judging
	closed bool
}

// delta takes a piece of the answer.
func (s *stream) delta(piece string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.text.WriteString(piece)
	text := s.text.String()
	if len(text)-s.judged < stepSize {
		return
	}
	at := s.clock()
	if s.began.IsZero() {
		s.began = at
	}
	if s.spent > judgingAhead+time.Duration(judgingPart*float64(at.Sub(s.began))) {
		return
	}
	end := s.showable(text)
	if end <= s.shown {
		return
	}
	s.judged = len(text)
	allowed := s.allow(text)
	s.spent += s.clock().Sub(at)
	if !allowed {
		s.closed = true
		return
	}
	s.show(text[s.shown:end])
	s.shown = end
}

func (s *stream) clock() time.Time {
	if s.now != nil {
		return s.now()
	}
	return time.Now()
}

// close ends the stream and returns what was shown.
func (s *stream) close() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.text.String()[:s.shown]
}

// showable is how much of an unfinished answer is certainly prose and ends with a
// sentence. What was looked at stays as it was found, and is not looked at again.
func (s *stream) showable(text string) int {
	limit := len(text) - heldBack
	for s.prose < limit {
		line := text[s.prose:]
		i := strings.IndexByte(line, '\n')
		if mayPropose(line) {
			limit = s.prose
			break
		}
		if i < 0 {
			break // its beginning is prose, and the rest of it may still come
		}
		s.prose += i + 1
	}
	for i := limit - 1; i >= max(1, s.looked); i-- {
		if text[i] == '\n' || text[i] == ' ' && strings.IndexByte(".!?:", text[i-1]) >= 0 {
			s.edge = i + 1
			break
		}
	}
	s.looked = max(s.looked, limit)
	return s.edge
}

// mayPropose reports whether a line could begin something that is not prose.
func mayPropose(line string) bool {
	line = strings.TrimLeft(line, " \t'\ufeff")
	return line != "" && strings.ContainsRune("({[<`", rune(line[0])) || strings.HasPrefix(line, "Action:")
}

// stream begins showing the answer to come.
func (t *turn) stream() *stream {
	facts, chain, vocabulary, cause := t.facts(), t.a.Chain(), t.a.Table.Vocabulary(), t.cause(t.a.Engine.Info().Name)
	return &stream{
		allow: func(text string) bool {
			a, err := vocabulary.Decode(t.message(text), cause)
			return err == nil && chain.Decide(a, facts).Decision() == gate.Allow
		},
		show: func(text string) { t.chunk(sexp.P(sexp.Keyword("TEXT"), text)) },
	}
}

func (t *turn) chunk(p sexp.Plist) { t.emit(proto.StreamChunk, p) }

// endStream tells clients that what they were shown was the beginning of the
// answer, or was not.
func (t *turn) endStream(final string) {
	if !strings.HasPrefix(final, t.shown) {
		t.retract()
	}
	if t.shown != "" {
		t.chunk(sexp.P(sexp.Keyword("TEXT"), ""))
		t.shown = ""
	}
}

// retract tells clients to forget what they were shown.
func (t *turn) retract() {
	if t.shown != "" {
		t.chunk(sexp.P(sexp.Keyword("TEXT"), "", sexp.Keyword("RESET"), true))
		t.shown = ""
	}
}
