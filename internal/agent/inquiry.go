package agent

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// An Inquiry is something the agent wants to know before it goes on. It is no
// approval: the answer is a message like any other, and whatever follows from it is
// judged like anything else. It is open until the next message of its session.
type Inquiry struct {
	Token    string
	Session  string
	Question string
	Options  []string // numbered from 1; may be empty
	At       time.Time

	to proto.Origin // whom it was put to
}

// Plist is the inquiry as it goes to clients.
func (q Inquiry) Plist() sexp.Plist {
	return sexp.P(
		sexp.Keyword("TOKEN"), q.Token, sexp.Keyword("SESSION-ID"), q.Session, sexp.Keyword("QUESTION"), q.Question,
		sexp.Keyword("OPTIONS"), q.Options, sexp.Keyword("CREATED"), q.At.UTC().Format(time.RFC3339))
}

// text is the inquiry for those who see no frames.
func (q Inquiry) text() string {
	var b strings.Builder
	b.WriteString(q.Question)
	for i, o := range q.Options {
		fmt.Fprintf(&b, "\n  %d. %s", i+1, o)
	}
	return b.String()
}

// choice is the option a whole message stands for, if it is the number of one.
func (q Inquiry) choice(said string) (string, bool) {
	n, err := strconv.Atoi(strings.TrimRight(strings.TrimSpace(said), ".)"))
	if err != nil || n < 1 || n > len(q.Options) {
		return "", false
	}
	return fmt.Sprintf("%d. %s", n, q.Options[n-1]), true
}

// inquire puts a question to whoever the turn answers, and to every client of the
// session.
func (t *turn) inquire(question string, options []string) Inquiry {
	q := Inquiry{
		Token: string(t.a.NewID("q")), Session: t.s.name, Question: strings.TrimSpace(question), At: t.a.Now(), to: t.sig.Origin,
	}
	for _, o := range options {
		q.Options = append(q.Options, strings.Join(strings.Fields(o), " "))
	}
	t.a.mu.Lock()
	t.s.inquiry = &q
	t.a.mu.Unlock()
	t.emit(proto.Event, t.a.clean(q.Plist()).With("ACTION", sexp.Keyword("QUESTION")))
	return q
}

// meant is a message with the number of an option spelt out, for the engine. The
// question is closed by it.
func (t *turn) meant(said string) string {
	t.a.mu.Lock()
	q := t.s.inquiry
	mine := q != nil && (t.sig.Origin.Role == proto.RoleOwner || t.sig.Origin == q.to)
	if mine {
		t.s.inquiry = nil
	}
	t.a.mu.Unlock()
	if !mine {
		return said
	}
	if option, ok := q.choice(said); ok {
		return option
	}
	return said
}

// refusedWays are what a person can say to a turn whose every attempt was refused.
var refusedWays = []string{"Leave it.", "Do it in another way: say which.", "Do only a part of it: say which."}

// giveUp ends a turn after its last attempt: with a question where a person can
// answer one, because they may know a way.
func (t *turn) giveUp(text string) phase {
	if !t.direct && t.sig.Origin.Role == proto.RoleOwner {
		text += "\n" + t.inquire("Every way I tried was refused. What shall I do?", refusedWays).text()
	}
	t.finish(Denied, text)
	return done
}

// Inquiries lists what the agent waits to be told, oldest first.
func (a *Agent) Inquiries() []Inquiry {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []Inquiry
	for _, s := range a.sessions {
		if s.inquiry != nil {
			out = append(out, *s.inquiry)
		}
	}
	slices.SortFunc(out, func(x, y Inquiry) int { return x.At.Compare(y.At) })
	return out
}

// ErrNoInquiry means that nobody waits for this answer.
var ErrNoInquiry = errors.New("no such open question")

// Tell answers an inquiry, over whatever channel the owner happens to be at: what
// they say becomes the next message of the session that asked.
func (a *Agent) Tell(token, said string, by proto.Origin, replyTo sexp.Value) (Inquiry, error) {
	if by.Role != proto.RoleOwner {
		return Inquiry{}, fmt.Errorf("%s on %s may not answer for the owner", by.Role, by.Channel)
	}
	if strings.TrimSpace(said) == "" {
		return Inquiry{}, errors.New("the answer is empty: want a number or a text")
	}
	open := a.Inquiries()
	i := slices.IndexFunc(open, func(q Inquiry) bool { return q.Token == token })
	if i < 0 {
		return Inquiry{}, fmt.Errorf("%w: %q was answered, or overtaken by another message", ErrNoInquiry, token)
	}
	return open[i], a.Submit(proto.Signal{
		ID: a.NewID("s"), Kind: proto.Event, Origin: by, Session: open[i].Session, At: a.Now(),
		Body: sexp.P(sexp.Keyword("SENSOR"), sexp.Keyword("USER-INPUT"), sexp.Keyword("TEXT"), said),
	}, replyTo)
}

// controlTell is the control word /answer [TOKEN] NUMBER-OR-TEXT.
func (a *Agent) controlTell(words []string, by proto.Origin) string {
	open := a.Inquiries()
	token, rest := "", words[1:]
	switch {
	case len(rest) > 1 && slices.ContainsFunc(open, func(q Inquiry) bool { return q.Token == rest[0] }):
		token, rest = rest[0], rest[1:]
	case len(open) == 1:
		token = open[0].Token
	case len(open) == 0:
		return "Nobody waits for an answer."
	default:
		var b strings.Builder
		b.WriteString("Several questions wait, so say which.")
		for _, q := range open {
			fmt.Fprintf(&b, "\n%s  %s", q.Token, q.text())
		}
		return b.String()
	}
	q, err := a.Tell(token, strings.Join(rest, " "), by, nil)
	if err != nil {
		return fmt.Sprintf("That answers nothing: %v.", err)
	}
	return fmt.Sprintf("Answered %s; what follows is told in the session %s.", q.Token, q.Session)
}
