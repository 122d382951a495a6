package channel

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"passepartout/internal/flight"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// Hear takes what the agent tells the clients of a session. It does not block:
// what concerns us is recorded by a goroutine of its own.
func (g *Gateway) Hear(m proto.Message) {
	ask := m.Kind == proto.Event && m.Do() == "approval-required"
	if m.Kind != proto.Response && !ask {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return
	}
	if len(g.queue) >= maxHeard {
		g.o.Log.Error("the agent answers faster than can be recorded; an answer is left out", "channel", g.o.Name)
		return
	}
	g.queue = append(g.queue, m)
	wake(g.heard)
}

// Changed is told that a plan has changed. It does not block.
func (g *Gateway) Changed(flight.Plan) { wake(g.outbox) }

// hearing records what was heard, in order. When the context ends it goes on with
// what is there and then closes its ears, so that a turn which is cut short by the
// end of the program counts as not answered.
func (g *Gateway) hearing(ctx context.Context) {
	for {
		for {
			m, ok := g.nextHeard(ctx.Err() != nil)
			if !ok {
				break
			}
			if err := g.digestHeard(m); err != nil {
				g.o.Log.Error("an answer could not be recorded", "channel", g.o.Name, "error", err)
			}
		}
		if ctx.Err() != nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-g.heard:
		}
	}
}

func (g *Gateway) nextHeard(last bool) (proto.Message, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) == 0 {
		g.closed = g.closed || last
		return proto.Message{}, false
	}
	m := g.queue[0]
	g.queue = g.queue[1:]
	return m, true
}

// digestHeard finds whose turn it was and makes posts of what was said.
func (g *Gateway) digestHeard(m proto.Message) error {
	turn, text := m.Meta.Text("TURN"), m.Payload.Text("TEXT")
	if m.Payload.Word("STATUS") == "DROPPED" { // its end is what a tool gave, which nobody judged
		text, _, _ = strings.Cut(text, "\n")
		text += " That is to be seen on your machine."
	}
	linked := g.service() != nil
	err := g.store.do(func(s *state) []sexp.Plist {
		in, waiting, ours := g.whose(s, turn)
		switch {
		case m.Kind == proto.Event:
			token := m.Payload.Text("TOKEN")
			if !ours && !linked { // nobody could be asked there
				return nil
			}
			if !ours {
				return g.askApprovers(s, token)
			}
			out := g.askAbout(s, token, in, turn)
			if waiting {
				out = append(out, g.answered(in.ID))
			}
			return out
		case !ours:
			return nil
		case m.Payload.Word("STATUS") == "PENDING": // the question was posted, and says it all
			return nil
		case waiting:
			return append(g.posts(in.Chat, text), g.answered(in.ID))
		}
		return g.posts(in.Chat, text)
	})
	g.step("heard")
	wake(g.outbox)
	wake(g.inbox)
	return err
}

// whose finds the message a turn answers: one that waits, or one whose question
// was answered.
func (g *Gateway) whose(s *state, turn string) (in Incoming, waiting, ok bool) {
	if turn == "" {
		return in, false, false
	}
	for _, t := range s.inbox {
		if string(g.turn(t.ID)) == turn {
			return t.Incoming, true, true
		}
	}
	for _, a := range s.asks {
		if a.Turn == turn {
			return Incoming{Chat: a.For, From: Sender{ID: g.ownerOf(s, a.Chat)}}, false, true
		}
	}
	return in, false, false
}

// ownerOf is the peer who is spoken to alone in a conversation.
func (g *Gateway) ownerOf(s *state, chat string) string {
	for _, p := range s.peers {
		if p.Chat == chat {
			return p.ID
		}
	}
	return ""
}

// askApprovers shows a question that came up elsewhere to those owners who are to
// be asked about everything.
func (g *Gateway) askApprovers(s *state, token string) (out []sexp.Plist) {
	for _, p := range sorted(s.peers) {
		if g.o.Approver(proto.Origin{Role: p.Role, Channel: g.o.Name, Who: g.who(p.ID)}) {
			out = append(out, g.askAbout(s, token, Incoming{From: Sender{ID: p.ID}}, "")...)
		}
	}
	return out
}

// answer takes the touch of a button as its owner's answer. What the message then
// shows is how the plan really stands.
func (g *Gateway) answer(ctx context.Context, t taken, peer Peer) {
	token, yes, _ := touchOf(t.Text)
	by := proto.Origin{Role: peer.Role, Channel: g.o.Name, Who: g.who(peer.ID)}
	text, err := g.o.Answer(token, flight.Answer{Yes: yes, By: by})
	if err != nil {
		text = fmt.Sprintf("That answer counts for nothing: %v.", err)
		g.note("REFUSED", t.Incoming, sexp.Keyword("WHY"), err.Error(), sexp.Keyword("TOKEN"), token)
	}
	g.step("answer given")
	g.touched(ctx, t.Incoming, text)
	g.reply(t, "")
}

// touched answers the touch of a button, as far as the service can.
func (g *Gateway) touched(ctx context.Context, in Incoming, text string) {
	toucher, ok := g.service().(Toucher)
	if !ok || in.Touch == "" {
		return
	}
	if err := toucher.Touched(ctx, in.Touch, line(Clean(g.o.Screen(text)), 180)); err != nil && !errors.Is(err, context.Canceled) {
		g.o.Log.Debug("a touch could not be answered", "channel", g.o.Name, "error", err)
	}
}
