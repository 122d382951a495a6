package channel

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// errFull makes a service keep its messages until there is room.
var errFull = errors.New("too many messages wait to be answered")

// take accepts one thing from the service: when it returns nil, it is on disk, or
// was before, or is not for us and recorded as that.
func (g *Gateway) take(ctx context.Context, in Incoming) error {
	g.step("handed over")
	raw := in
	in.From.Name, in.Text = line(in.From.Name, 80), Clean(in.Text)
	if len(in.Text) > maxIn {
		in.Text = strings.ToValidUTF8(in.Text[:maxIn], "") + "\n[the rest of the message was too long]"
	}
	var refused error
	paired := Peer{}
	err := g.store.do(func(s *state) []sexp.Plist {
		if s.account != "" { // another account gives the same numbers
			in.ID = s.account + "/" + in.ID
		}
		moved := rec(recCursor, sexp.Keyword("CURSOR"), in.Cursor, sexp.Keyword("AT"), stamp(g.o.Now()))
		if _, known := s.ids[in.ID]; known {
			if in.Cursor == s.cursor || in.Cursor == "" {
				return nil
			}
			return []sexp.Plist{moved}
		}
		var out []sexp.Plist
		if out, refused = g.admit(s, in); refused == nil && out == nil {
			if len(s.inbox) >= maxInbox {
				refused = errFull
				return nil
			}
			in.Text = g.o.Redact(in.Text)
			return []sexp.Plist{takenRecord(in, g.o.Now(), false)}
		}
		if refused == nil {
			paired = Peer{ID: in.From.ID, Role: s.code.Role}
		}
		out = append(out, rec(recSeen, sexp.Keyword("ID"), in.ID, sexp.Keyword("AT"), stamp(g.o.Now())))
		if in.Cursor != "" {
			out = append(out, moved)
		}
		return out
	})
	g.step("taken")
	switch {
	case err != nil:
		return err
	case errors.Is(refused, errFull):
		return refused
	case refused != nil && !errors.Is(refused, errNotForUs) && g.worthNoting(in):
		g.note("REFUSED", in, sexp.Keyword("WHY"), refused.Error(), sexp.Keyword("TEXT"), g.o.Redact(line(in.Text, 200)))
		g.o.Log.Warn("a message was refused", "channel", g.o.Name, "from", g.who(in.From.ID), "why", refused)
		g.tellRefused(in, refused)
	case paired.ID != "":
		g.note("PAIRED", in, sexp.Keyword("ROLE"), paired.Role.String())
		g.o.Tell(g.o.Redact(fmt.Sprintf("%s (%s) is paired as %s from now on.", g.who(paired.ID), in.From.Name, paired.Role)))
	}
	g.mu.Lock()
	g.status.Heard = g.o.Now()
	g.mu.Unlock()
	if refused != nil && in.Kind == Touch {
		g.touched(ctx, raw, "This is not yours to answer.")
	}
	wake(g.inbox)
	wake(g.outbox)
	return nil
}

// worthNoting keeps somebody who writes without end from filling the journal: of
// many refusals only some are recorded, and all are counted.
func (g *Gateway) worthNoting(in Incoming) bool {
	const all = 20
	n := 0
	g.store.see(func(s *state) { n = s.strangers[in.From.ID].Count })
	return n <= all || n&(n-1) == 0
}

// tellRefused lets the owner see on their own screen that somebody was refused:
// the first time, and ever more seldom while a stranger goes on.
func (g *Gateway) tellRefused(in Incoming, why error) {
	n := 0
	g.store.see(func(s *state) { n = s.strangers[in.From.ID].Count })
	if n&(n-1) != 0 {
		return
	}
	what := map[Kind]string{Message: "A message", Edited: "An edited message", Touch: "A touched button"}[in.Kind]
	g.o.Tell(g.o.Redact(fmt.Sprintf("%s of %s (%s) was refused: %v. passepartout gateway log", what, g.who(in.From.ID), line(in.From.Name, 80), why)))
}

// errNotForUs is about talk in a group that does not concern us.
var errNotForUs = errors.New("not addressed to us")

// admit says whether a message may be taken: nil and no records for yes. Records
// are what else follows from it, such as a pairing.
func (g *Gateway) admit(s *state, in Incoming) ([]sexp.Plist, error) {
	if in.From.ID == "" || in.Chat == "" || in.Kind == Unknown {
		return nil, errNotForUs // a service's own news: somebody joined, a poll, a story
	}
	peer, known := s.peers[in.From.ID]
	if in.Group && !in.Addressed && in.Kind != Touch {
		return nil, errNotForUs
	}
	if !known {
		out, err := g.pairing(s, in)
		if err == nil {
			return out, nil
		}
		if errors.Is(err, errNoPairing) {
			err = errors.New("the sender is not paired")
		}
		return append(out, g.stranger(s, in, err)), err
	}
	switch {
	case in.Kind == Touch:
		return nil, g.mayTouch(s, peer, in)
	case in.Kind == Edited && isAnswer(in.Text):
		return nil, errors.New("an edited message answers no question")
	case in.Forwarded && isAnswer(in.Text):
		return nil, errors.New("a forwarded message answers no question")
	case isAnswer(in.Text) && peer.Role != proto.RoleOwner:
		return nil, fmt.Errorf("a %s answers no question", peer.Role)
	case !in.Group && in.Chat != peer.Chat:
		return nil, errors.New("the sender was paired in another conversation")
	}
	return nil, nil
}

// mayTouch checks that a button was touched by somebody who was shown it. What
// the button says is the sender's claim, so the question must be one this
// conversation shows.
func (g *Gateway) mayTouch(s *state, peer Peer, in Incoming) error {
	token, _, ok := touchOf(in.Text)
	switch {
	case !ok:
		return errors.New("no button of ours says that")
	case peer.Role != proto.RoleOwner:
		return fmt.Errorf("a %s answers no question", peer.Role)
	case !slices.ContainsFunc(s.asks, func(a *asked) bool { return a.Token == token && a.Chat == in.Chat }):
		return errors.New("no such question was asked here")
	}
	return nil
}

// touchOf reads what a button stands for: the word and the token.
func touchOf(text string) (token string, yes, ok bool) {
	word, token, _ := strings.Cut(text, " ")
	return token, word == wordYes, token != "" && (word == wordYes || word == wordNo)
}

// isAnswer reports whether a text would answer a question.
func isAnswer(text string) bool {
	words := strings.Fields(text)
	return len(words) > 0 && (words[0] == wordYes || words[0] == wordNo || words[0] == wordOpen)
}

// stranger records that somebody wrote who is not paired.
func (g *Gateway) stranger(s *state, in Incoming, why error) sexp.Plist {
	x, ok := s.strangers[in.From.ID]
	if !ok {
		x = Stranger{ID: in.From.ID, First: g.o.Now()}
	}
	x.Name, x.Last, x.Why = g.o.Redact(in.From.Name), g.o.Now(), why.Error()
	x.Count++
	return strangerRecord(x)
}

// takeUp looks at what an earlier life left: messages the agent had are begun
// again if nothing came of them, and else the sender is told.
func (g *Gateway) takeUp() error {
	err := g.store.do(func(s *state) (out []sexp.Plist) {
		for _, t := range s.inbox {
			if !t.Begun {
				continue
			}
			turn := g.turn(t.ID)
			switch became, token := g.o.Became(turn); became {
			case Nothing:
				t.Begun = false // the file may say otherwise: it is looked at again next time
			case Asked:
				out = append(append(out, g.answered(t.ID)), g.askAbout(s, token, t.Incoming, string(turn))...)
			case Acted:
				out = append(append(out, g.answered(t.ID)), g.posts(t.Chat, fmt.Sprintf(
					"I was interrupted while working on %q. Something had been done by then, so I do not begin again by myself. What was decided: passepartout journal tail. If it is still wanted, say it again.",
					line(t.Text, 80)))...)
			}
		}
		return out
	})
	wake(g.inbox)
	wake(g.outbox)
	return err
}

func (g *Gateway) answered(id string) sexp.Plist {
	return rec(recAnswered, sexp.Keyword("ID"), id)
}

// turn is the id of the turn that answers a message. It follows from the message,
// so that a later life can ask what became of it.
func (g *Gateway) turn(id string) proto.ID {
	sum := sha256.Sum256([]byte(g.o.Name + "\x00" + id))
	return proto.ID("s-" + idText.EncodeToString(sum[:10]))
}

// work hands messages to the agent, in order, a few at a time.
func (g *Gateway) work(ctx context.Context) {
	for ctx.Err() == nil {
		t, ok := g.next()
		if ok {
			g.handle(ctx, t)
			continue
		}
		select {
		case <-ctx.Done():
		case <-g.inbox:
		}
	}
}

// next is the first message that was not begun, unless the agent has enough.
func (g *Gateway) next() (t taken, ok bool) {
	g.mu.Lock()
	stuck := g.stuck
	g.mu.Unlock()
	if stuck {
		return t, false
	}
	g.store.see(func(s *state) {
		begun := 0
		for _, x := range s.inbox {
			if x.Begun {
				if begun++; begun >= maxBegun {
					return
				}
				continue
			}
			t, ok = *x, true
			return
		}
	})
	return t, ok
}

// handle does what one message wants. Whatever happens, the message is begun or
// answered when it returns, or the context has ended.
func (g *Gateway) handle(ctx context.Context, t taken) {
	if r, ok := g.service().(Reader); ok && t.Kind == Message {
		if err := r.Read(ctx, t.Incoming); err != nil {
			g.o.Log.Debug("a receipt could not be sent", "channel", g.o.Name, "error", err)
		}
	}
	var peer Peer
	g.store.see(func(s *state) { peer = s.peers[t.From.ID] })
	switch {
	case peer.ID == "": // unpaired since
		g.reply(t, "")
	case t.Kind == Touch:
		g.answer(ctx, t, peer)
	case t.Kind == Edited:
		g.note("REFUSED", t.Incoming, sexp.Keyword("WHY"), "an edited message is not taken up again")
		g.reply(t, "I do not take up a message again that was edited. Send it as a new one.")
	default:
		if text, mine := g.word(t, peer); mine {
			g.reply(t, text)
			return
		}
		g.submit(ctx, t, peer)
	}
}

// halt stops handing messages to the agent: what cannot be recorded must not be
// done.
func (g *Gateway) halt(what string, err error) {
	g.o.Log.Error(what+" could not be recorded; no more messages are handed over", "channel", g.o.Name, "error", err)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stuck = true
}

// reply answers a message in one record: the answer is on disk when the message
// is done with.
func (g *Gateway) reply(t taken, text string) {
	err := g.store.do(func(*state) []sexp.Plist {
		return append(g.posts(t.Chat, text), g.answered(t.ID))
	})
	if err != nil {
		g.halt("a reply", err)
	}
	g.step("answered")
	wake(g.outbox)
	wake(g.inbox)
}

// word recognises what the gateway answers itself.
func (g *Gateway) word(t taken, peer Peer) (string, bool) {
	words := strings.Fields(t.Text)
	if len(words) == 0 || t.Forwarded {
		return "", false
	}
	switch words[0] {
	case "/start", "/help":
		return help, true
	case "/stop":
		if g.o.Interrupt(g.session(t.Incoming, peer)) {
			return "Stopping.", true
		}
		return "Nothing was running.", true
	case "/session":
		return g.switchSession(t, peer, words[1:]), true
	}
	return "", false
}

// switchSession lets an owner's conversation continue another one.
func (g *Gateway) switchSession(t taken, peer Peer, words []string) string {
	switch {
	case len(words) == 0:
		return fmt.Sprintf("This continues %q.", g.session(t.Incoming, peer))
	case peer.Role != proto.RoleOwner || t.Group:
		return "Only an owner can do that, and not in a group."
	case len(words) > 1 || len(words[0]) > 64:
		return "A conversation's name is one short word."
	}
	peer.Session = words[0]
	if err := g.store.do(func(*state) []sexp.Plist { return []sexp.Plist{peerRecord(peer)} }); err != nil {
		return fmt.Sprintf("That could not be recorded: %v.", err)
	}
	return fmt.Sprintf("This continues %q from now on.", words[0])
}

// mainSession is the conversation clients share that name none.
const mainSession = "main"

// session is the conversation a message belongs to. An owner alone continues the
// one of their other clients; everybody else has one of their own.
func (g *Gateway) session(in Incoming, peer Peer) string {
	switch {
	case in.Group:
		return g.who(in.Chat)
	case peer.Session != "":
		return peer.Session
	case peer.Role == proto.RoleOwner:
		return mainSession
	}
	return g.who(peer.ID)
}

// origin is who a message is from, as far as the gates are concerned. In a group
// others read the answer, so there an owner is no more than a guest, but for
// answering a question.
func (g *Gateway) origin(in Incoming, peer Peer) proto.Origin {
	o := proto.Origin{Role: peer.Role, Channel: g.o.Name, Who: g.who(peer.ID)}
	if in.Group && !isAnswer(in.Text) {
		o.Role = proto.RoleGuest
	}
	return o
}

// submit gives a message to the agent.
func (g *Gateway) submit(ctx context.Context, t taken, peer Peer) {
	text := t.Text
	if t.Group && strings.HasPrefix(text, wordOpen) {
		g.reply(t, "Ask me that in private.")
		return
	}
	if t.Forwarded {
		text = "Forwarded to you, in somebody else's words:\n> " + strings.ReplaceAll(text, "\n", "\n> ")
	}
	if len(t.Files) > 0 {
		text = strings.TrimSpace(text + "\n" + g.fetch(ctx, t, peer))
	}
	if ctx.Err() != nil {
		return
	}
	if strings.TrimSpace(text) == "" {
		g.reply(t, "There is nothing in this message that I can read.")
		return
	}
	sig := proto.Signal{
		ID: g.turn(t.ID), Kind: proto.Event, Origin: g.origin(t.Incoming, peer), Session: g.session(t.Incoming, peer), At: g.o.Now(),
		Taint: proto.Taint{Untrusted: t.Forwarded},
		Body:  sexp.P(sexp.Keyword("SENSOR"), sexp.Keyword("USER-INPUT"), sexp.Keyword("TEXT"), text),
	}
	err := g.store.do(func(*state) []sexp.Plist {
		return append(g.openQuestions(t.Incoming, peer), rec(recBegun, sexp.Keyword("ID"), t.ID))
	})
	if err != nil {
		g.halt("a message", err)
		return
	}
	wake(g.outbox)
	g.step("begun")
	for attempt := 0; ; attempt++ {
		err := g.o.Submit(sig)
		if err == nil {
			g.step("submitted")
			return
		}
		if ctx.Err() != nil { // the service is unlinked: it is begun when it is linked again
			g.store.see(func(s *state) {
				if t := s.message(t.ID); t != nil {
					t.Begun = false
				}
			})
			return
		}
		if attempt >= submitTries {
			g.reply(t, fmt.Sprintf("I cannot take this now: %v.", err))
			return
		}
		pause(ctx, g.o.Delay)
	}
}

// submitTries is how often a busy session is asked.
const submitTries = 30

// fetch brings in the files of a message and says where they are.
func (g *Gateway) fetch(ctx context.Context, t taken, peer Peer) string {
	var lines []string
	for i, f := range t.Files {
		where, err := g.fetchOne(ctx, t, peer, f, fmt.Sprintf("%s-%d", safeName(string(g.turn(t.ID))), i+1))
		if err != nil {
			g.note("FILE-REFUSED", t.Incoming, sexp.Keyword("FILE"), safeName(f.Name), sexp.Keyword("WHY"), err.Error())
			lines = append(lines, fmt.Sprintf("[a file came along and was not kept: %v]", err))
			continue
		}
		g.note("FILE", t.Incoming, sexp.Keyword("FILE"), where)
		lines = append(lines, fmt.Sprintf("[a file came along, it is from outside and not to be trusted: %s]", where))
	}
	return strings.Join(lines, "\n")
}

// MaxFile is the largest file that is taken in, which is what Telegram hands out.
const MaxFile = 20 << 20

func (g *Gateway) fetchOne(ctx context.Context, t taken, peer Peer, f File, id string) (string, error) {
	fetcher, ok := g.service().(Fetcher)
	switch {
	case !ok || g.o.Keep == nil:
		return "", errors.New("files are not taken here")
	case f.Size > MaxFile:
		return "", fmt.Errorf("it has %d bytes, more than %d", f.Size, MaxFile)
	}
	ctx, stop := context.WithTimeout(ctx, fetching)
	defer stop()
	for attempt := time.Duration(1); ; attempt++ {
		where, err := g.o.Keep(ctx, Kept{
			ID: id, Name: safeName(f.Name), From: g.origin(t.Incoming, peer), Sent: t.At, Bytes: f.Size,
			Read: func(w io.Writer) error { return fetcher.Fetch(ctx, f, &limited{w, MaxFile}) },
		})
		fin := (*FinalError)(nil)
		if err == nil || attempt >= 3 || errors.As(err, &fin) || ctx.Err() != nil {
			return where, err
		}
		pause(ctx, g.waitFor(err, attempt*g.o.Delay))
	}
}

// limited refuses to write more than it was told.
type limited struct {
	w    io.Writer
	left int64
}

func (l *limited) Write(b []byte) (int, error) {
	if l.left -= int64(len(b)); l.left < 0 {
		return 0, final("the file is larger than %d bytes", MaxFile)
	}
	return l.w.Write(b)
}

// safeName is a file's name with nothing in it that a path, a shell or a screen
// could take for something else.
func safeName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '_'
	}, Clean(name))
	const most = 80
	if len(name) > most {
		name = name[len(name)-most:] // the end tells what kind of file it is
	}
	if name = strings.TrimLeft(name, ".-_"); name == "" {
		return "file"
	}
	return name
}
