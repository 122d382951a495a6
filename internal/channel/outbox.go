package channel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"passepartout/internal/flight"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// posts are the records of a text to be sent; an empty one is not sent.
func (g *Gateway) posts(chat, text string) []sexp.Plist {
	text = strings.TrimSpace(Clean(g.o.Screen(text)))
	if text == "" {
		return nil
	}
	parts := Split(text, g.o.MaxText)
	if len(parts) > maxParts {
		left := len(parts) - maxParts
		parts = parts[:maxParts]
		parts = append(parts, fmt.Sprintf("[%d more messages are not sent. The whole answer is in the other clients of this conversation.]", left))
	}
	out := make([]sexp.Plist, len(parts))
	for i, p := range parts {
		out[i] = postRecord(post{ID: randomID(), Chat: chat, Text: p})
	}
	return out
}

// A sender remembers what went wrong with whom.
type sender struct {
	later map[string]time.Time // conversations that are left alone until then
	fails map[string]int       // failures in a row, by conversation
	gone  map[string]int       // how often a post's message had vanished
}

// send delivers what waits, until the context ends.
func (g *Gateway) send(ctx context.Context) {
	s := sender{later: map[string]time.Time{}, fails: map[string]int{}, gone: map[string]int{}}
	for ctx.Err() == nil {
		if g.sendOne(ctx, &s) {
			continue
		}
		t := time.NewTimer(g.idle(&s))
		select {
		case <-ctx.Done():
		case <-g.outbox:
		case <-t.C:
		}
		t.Stop()
	}
}

// idle is how long there is nothing to do: until a conversation may be tried
// again, or a question runs out.
func (g *Gateway) idle(s *sender) time.Duration {
	now := g.o.Now()
	next := now.Add(time.Hour)
	for _, at := range s.later {
		if at.Before(next) {
			next = at
		}
	}
	for _, a := range g.openAsks() {
		if p, ok := g.o.Plan(a.Token); ok && p.State == flight.Planned && p.Expires.Before(next) {
			next = p.Expires
		}
	}
	return max(next.Sub(now), 0) + time.Millisecond
}

func (g *Gateway) openAsks() (out []asked) {
	g.store.see(func(s *state) {
		for _, a := range s.asks {
			if !a.Over && a.Ref != "" {
				out = append(out, *a)
			}
		}
	})
	return out
}

// sendOne does one thing, and reports whether there was one.
func (g *Gateway) sendOne(ctx context.Context, s *sender) bool {
	for _, a := range g.openAsks() {
		if text, over := g.standing(a); text != a.Shown && !s.waits(a.Chat, g.o.Now()) {
			g.show(ctx, s, a, text, over)
			return true
		}
	}
	var o post
	found := false
	g.store.see(func(st *state) {
		seen := map[string]bool{}
		for _, x := range st.outbox {
			if !seen[x.Chat] && !s.waits(x.Chat, g.o.Now()) {
				o, found = *x, true
				return
			}
			seen[x.Chat] = true // what follows must not overtake it
		}
	})
	if found {
		g.deliver(ctx, s, o)
	}
	return found
}

func (s *sender) waits(chat string, now time.Time) bool {
	at, ok := s.later[chat]
	if ok && !now.Before(at) {
		delete(s.later, chat)
		return false
	}
	return ok
}

// deliver brings one post one step further: sends its beginning, or puts the
// whole text in its place.
func (g *Gateway) deliver(ctx context.Context, s *sender, o post) {
	if o.Ref == "" {
		ref, err := g.service().Send(ctx, o.Chat, teaser(o.Text))
		g.step("sent")
		if err != nil {
			g.failed(ctx, s, o, err)
			return
		}
		g.record(rec(recPlaced, sexp.Keyword("ID"), o.ID, sexp.Keyword("REF"), ref))
		g.step("placed")
		return
	}
	var err error
	if o.Ask == "" {
		err = g.service().Edit(ctx, o.Chat, o.Ref, o.Text)
	} else {
		err = g.service().Ask(ctx, o.Chat, o.Ref, Question{Token: o.Ask, Text: o.Text})
	}
	g.step("edited")
	if errors.Is(err, ErrGone) && s.gone[o.ID] < 1 {
		s.gone[o.ID]++ // somebody deleted the beginning before the rest came
		g.record(rec(recPlaced, sexp.Keyword("ID"), o.ID, sexp.Keyword("REF"), ""))
		return
	}
	if err != nil {
		g.failed(ctx, s, o, err)
		return
	}
	delete(s.fails, o.Chat)
	delete(s.gone, o.ID)
	g.record(rec(recSent, sexp.Keyword("ID"), o.ID, sexp.Keyword("REF"), o.Ref, sexp.Keyword("SHOWN"), o.Text))
	g.step("delivered")
}

// failed decides what becomes of a post that could not be delivered.
func (g *Gateway) failed(ctx context.Context, s *sender, o post, err error) {
	if ctx.Err() != nil {
		return
	}
	fin := (*FinalError)(nil)
	if errors.As(err, &fin) || errors.Is(err, ErrGone) {
		g.o.Log.Error("a message cannot be delivered", "channel", g.o.Name, "to", o.Chat, "error", err)
		g.note("UNDELIVERED", Incoming{Chat: o.Chat}, sexp.Keyword("TO"), o.Chat, sexp.Keyword("WHY"), err.Error(), sexp.Keyword("TEXT"), line(o.Text, 200))
		g.record(rec(recSent, sexp.Keyword("ID"), o.ID, sexp.Keyword("REF"), "", sexp.Keyword("SHOWN"), ""))
		return
	}
	g.postpone(s, o.Chat, err)
}

// postpone leaves a conversation alone for a while. Where the service says for
// how long, it means everybody.
func (g *Gateway) postpone(s *sender, chat string, err error) {
	s.fails[chat]++
	delay := min(g.o.Delay<<min(s.fails[chat]-1, 10), maxDelay)
	wait := g.waitFor(err, delay)
	g.o.Log.Warn("a message could not be delivered yet", "channel", g.o.Name, "again in", wait, "error", err)
	until := g.o.Now().Add(wait)
	s.later[chat] = until
	if w := (*WaitError)(nil); errors.As(err, &w) {
		g.store.see(func(st *state) {
			for _, o := range st.outbox {
				s.later[o.Chat] = until
			}
			for _, a := range st.asks {
				if !a.Over {
					s.later[a.Chat] = until
				}
			}
		})
	}
}

func (g *Gateway) record(p sexp.Plist) {
	if err := g.store.do(func(*state) []sexp.Plist { return []sexp.Plist{p} }); err != nil {
		g.o.Log.Error("the channel's record cannot be written", "channel", g.o.Name, "error", err)
	}
}

// standing is what a question's message is to say now.
func (g *Gateway) standing(a asked) (text string, over bool) {
	p, ok := g.o.Plan(a.Token)
	switch {
	case !ok:
		return a.Token + " was closed long ago.", true
	case p.State == flight.Planned:
		return a.Shown, false
	}
	return strings.TrimSpace(Clean(g.o.Screen(p.Name() + "\n" + p.Fate() + "."))), p.State.Ended()
}

// show makes a question's message say how the plan stands.
func (g *Gateway) show(ctx context.Context, s *sender, a asked, text string, over bool) {
	err := g.service().Edit(ctx, a.Chat, a.Ref, text)
	g.step("shown")
	fin := (*FinalError)(nil)
	switch {
	case ctx.Err() != nil:
		return
	case errors.Is(err, ErrGone) || errors.As(err, &fin):
		over = true // there is nobody to show it to
	case err != nil:
		g.postpone(s, a.Chat, err)
		return
	}
	g.record(rec(recShown,
		sexp.Keyword("TOKEN"), a.Token, sexp.Keyword("CHAT"), a.Chat, sexp.Keyword("REF"), a.Ref, sexp.Keyword("SHOWN"), text, sexp.Keyword("OVER"), over))
	g.step("shown recorded")
}

// askAbout are the records of a question, for everybody who is to be asked: the
// owner who caused it where they are alone with us, else all owners.
func (g *Gateway) askAbout(s *state, token string, in Incoming, turn string) []sexp.Plist {
	p, ok := g.o.Plan(token)
	if !ok {
		return nil
	}
	var chats []string
	if peer := s.peers[in.From.ID]; in.From.ID != "" && peer.Role == proto.RoleOwner {
		chats = append(chats, peer.Chat)
	} else {
		for _, o := range sorted(s.peers) {
			if o.Role == proto.RoleOwner {
				chats = append(chats, o.Chat)
			}
		}
	}
	var out []sexp.Plist
	for _, chat := range chats {
		if slices.ContainsFunc(s.asks, func(a *asked) bool { return a.Token == token && a.Chat == chat }) {
			continue
		}
		out = append(out, g.ask(p, chat, in.Chat, turn)...)
	}
	if len(chats) == 0 { // asked elsewhere; what comes of it is still to be told here
		out = append(out, askedRecord(asked{Token: token, For: in.Chat, Turn: turn, At: g.o.Now()}))
	}
	if in.Chat != "" && !slices.Contains(chats, in.Chat) {
		out = append(out, g.posts(in.Chat, "This needs the owner's approval. It has been asked for.")...)
	}
	return out
}

// ask are the records of a question in one conversation.
func (g *Gateway) ask(p flight.Plan, chat, waits, turn string) []sexp.Plist {
	o := post{ID: randomID(), Chat: chat, Text: g.questionText(p), Ask: p.Token}
	return []sexp.Plist{postRecord(o), askedRecord(asked{Token: p.Token, Chat: chat, For: waits, Post: o.ID, Turn: turn, At: g.o.Now()})}
}

// openQuestions are the records of what an owner wants to see who asks, alone with
// us, what waits: each question with the means to answer it, wherever it came up.
// The agent's own list follows.
func (g *Gateway) openQuestions(in Incoming, peer Peer) (out []sexp.Plist) {
	if in.Text != wordOpen || in.Group || in.Forwarded || peer.Role != proto.RoleOwner {
		return nil
	}
	for i, p := range g.o.Open() {
		if i == maxOpen {
			break
		}
		out = append(out, g.ask(p, peer.Chat, "", "")...)
	}
	return out
}

// maxOpen is how many questions are shown at once.
const maxOpen = 5

// describe writes what a plan is about: what exactly, why, and who asks.
func describe(b *strings.Builder, p flight.Plan) {
	fmt.Fprintf(b, "%s\n", line(p.Action.Sub("ARGS").String(), 600))
	if why := p.Action.Text("EXPLANATION"); why != "" {
		fmt.Fprintf(b, "Why: %s\n", line(why, 300))
	}
	for _, v := range p.Asked() {
		fmt.Fprintf(b, "Asked by %s (%s): %s\n", v.Gate, v.Code, line(v.Reason, 300))
	}
	for i, s := range p.Steps {
		fmt.Fprintf(b, "%d. %s %s\n", i+1, s.Name(), line(s.Action.Sub("ARGS").String(), 200))
	}
}

// questionText is a plan as a person is asked about it.
func (g *Gateway) questionText(p flight.Plan) string {
	var b strings.Builder
	fmt.Fprintf(&b, "May I? %s\n", p.Name())
	if p.Turn.Sub("TAINT").Flag("PRIVATE") || p.Turn.Sub("SIGNAL").Sub("TAINT").Flag("PRIVATE") {
		b.WriteString("Private notes took part, so what exactly is shown only on your machine: passepartout approvals\n")
	} else {
		describe(&b, p)
	}
	if p.Requester.Channel != g.o.Name {
		fmt.Fprintf(&b, "It came up over %s.\n", p.Requester.Channel)
	}
	fmt.Fprintf(&b, "No answer until %s means no.", p.Expires.Local().Format("2006-01-02 15:04"))
	text, cut := head(strings.TrimSpace(Clean(g.o.Screen(b.String()))), g.o.MaxText-200)
	if cut {
		text += "…"
	}
	return text
}
