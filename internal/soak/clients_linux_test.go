package soak

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"time"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// patience is how long a client may be left without an answer and without being told
// that there will be none. It is far more than any limit of the program.
const patience = 90 * time.Second

// kinds are what clients ask for, by how often.
var kinds = []string{"echo", "echo", "capture", "capture", "capture", "tests", "ask", "ask", "write", "read", "find", "steal"}

// conversation is a session's name. What a session has read taints it, after which
// the gates ask about everything; so sessions are left after a while, as people do.
func conversation(by string, n int, kind string) string {
	if kind == "steal" || kind == "tests" || kind == "ask" {
		return fmt.Sprintf("%s-%s-%d", by, kind, n)
	}
	return fmt.Sprintf("%s-%d", by, n/6)
}

// commandLine is a person who types one command after the other.
func (w *world) commandLine(ctx context.Context, by string, env []string, start bool) {
	r := w.random(by)
	for n := 0; ctx.Err() == nil; n++ {
		w.oneCommand(ctx, by, env, start, kinds[r.IntN(len(kinds))], n)
		if r.IntN(4) == 0 {
			w.lookAround(ctx, env, start, r)
		}
		rest(ctx, time.Duration(r.Int64N(int64(400*time.Millisecond))))
	}
}

// oneCommand says something and waits for what comes back.
func (w *world) oneCommand(ctx context.Context, by string, env []string, start bool, kind string, n int) *message {
	m, text := w.ledger.open(w, by, kind, "")
	args := []string{"--json", "chat", "-s", conversation(by, n, kind), text}
	if !start {
		args = append([]string{"--no-start"}, args...)
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	out, talk, code := w.run(limit, env, args...)
	var a struct{ Status, Text string }
	switch err := json.Unmarshal([]byte(out), &a); {
	case limit.Err() != nil: // it stays open: nobody was told anything
		w.note("%s %s: the command did not end", by, m.mark)
	case err == nil && a.Status != "":
		w.ledger.answer(w, m, a.Status, a.Text)
	case code == 0:
		w.note("%s %s: success without an answer: %q %q", by, m.mark, out, talk)
	default:
		w.ledger.report(w, m, talk)
	}
	return m
}

// lookAround reads what the program knows. Whatever it says, it must end.
func (w *world) lookAround(ctx context.Context, env []string, start bool, r *rand.Rand) {
	looks := [][]string{
		{"recall", "item"}, {"agenda"}, {"approvals"}, {"schedule", "history"}, {"status"}, {"skill", "list"}, {"undo", "--list"}, {"journal", "tail"}, {"gateway", "list"}, {"memory", "find", "item"},
	}
	args := looks[r.IntN(len(looks))]
	if !start {
		args = append([]string{"--no-start"}, args...)
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if w.run(limit, env, args...); limit.Err() != nil {
		w.books.wrong("%v did not end within %v", args, patience)
	}
}

// connect opens a connection of the wire's own kind.
func (w *world) connect(ctx context.Context, socket, name string) (*proto.Client, net.Conn, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, nil, err
	}
	nc.SetDeadline(time.Now().Add(patience)) // it must not hang for ever either
	c, err := proto.Connect(nc, name, nil)
	if err != nil {
		nc.Close()
		return nil, nil, err
	}
	return c, nc, nil
}

// key is a keyword.
func key(k string) sexp.Keyword { return sexp.Keyword(k) }

// sayIn is a message of user input.
func sayIn(session, id, text string) proto.Message {
	return proto.Message{
		Kind: proto.Event, Meta: sexp.P(key("SESSION-ID"), session, key("ID"), id),
		Payload: sexp.P(key("SENSOR"), key("USER-INPUT"), key("TEXT"), text),
	}
}

// wireClient holds a connection and says several things at once. Each must come
// back once; what is open when the connection ends counts as reported, since the
// client sees that.
func (w *world) wireClient(ctx context.Context, by, socket string) {
	r := w.random(by)
	for n := 0; ctx.Err() == nil; n++ {
		c, nc, err := w.connect(ctx, socket, "cli")
		if err != nil {
			rest(ctx, 100*time.Millisecond)
			continue
		}
		w.pipeline(ctx, by, c, r, n)
		nc.Close()
	}
}

func (w *world) pipeline(ctx context.Context, by string, c *proto.Client, r *rand.Rand, n int) {
	for round := 0; round < 8 && ctx.Err() == nil; round++ {
		open := map[string]*message{}
		var err error
		for range 1 + r.IntN(3) {
			kind := kinds[r.IntN(len(kinds))]
			m, text := w.ledger.open(w, by, kind, "")
			open[m.mark] = m
			if err == nil {
				err = c.Send(sayIn(conversation(by, n, kind), m.mark, text))
			}
		}
		if err == nil {
			err = c.Send(proto.Message{Kind: proto.Request, Meta: sexp.P(key("ID"), "q"), Payload: sexp.P(key("ACTION"), key([]string{"HEALTH-CHECK", "STATUS", "OVERVIEW", "SESSIONS"}[r.IntN(4)]))})
		}
		err = w.collect(c, open, err)
		for _, m := range open {
			w.ledger.report(w, m, fmt.Sprint(err))
		}
		if err != nil {
			return
		}
		rest(ctx, time.Duration(r.Int64N(int64(300*time.Millisecond))))
	}
}

// collect receives until everything open has its answer.
func (w *world) collect(c *proto.Client, open map[string]*message, err error) error {
	for err == nil && len(open) > 0 {
		var m proto.Message
		if m, err = c.Receive(); err != nil || m.Kind != proto.Response {
			continue
		}
		mark := m.Meta.Text("IN-REPLY-TO")
		switch sent := w.ledger.find(mark); {
		case open[mark] != nil:
			w.ledger.answer(w, open[mark], strings.ToLower(string(m.Payload.Word("STATUS"))), m.Payload.Text("TEXT"))
			delete(open, mark)
		case sent != nil:
			w.ledger.again(sent)
		}
	}
	return err
}

// find is the message with a mark, nil for none.
func (l *ledger) find(mark string) *message {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byID[mark]
}

// again counts one answer too many.
func (l *ledger) again(m *message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m.answers++
}

// cellWriter changes the cells of one file, one after the other.
func (w *world) cellWriter(ctx context.Context, file int) {
	by := fmt.Sprintf("cells-%d", file)
	r := w.random(by)
	for ctx.Err() == nil {
		cell := fmt.Sprintf("cell-%d-%d", file, r.IntN(cellsEach))
		if r.IntN(6) == 0 {
			cell = fmt.Sprintf("victim-%d", r.IntN(victimFiles))
		}
		w.changeCell(ctx, by, cell)
		rest(ctx, time.Duration(r.Int64N(int64(300*time.Millisecond))))
	}
}

func (w *world) changeCell(ctx context.Context, by, cell string) {
	m, text := w.ledger.open(w, by, "edit", cell)
	m.value = m.mark
	w.books.write(cell, m)
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	c, nc, err := w.connect(limit, w.path("far", "pp.sock"), "cli")
	if err == nil {
		defer nc.Close()
		open := map[string]*message{m.mark: m}
		err = w.collect(c, open, c.Send(sayIn(by, m.mark, text)))
	}
	if err != nil {
		w.ledger.report(w, m, err.Error())
	}
}

// approver answers what waits, by whatever means, sometimes twice at once, and
// sometimes not at all.
func (w *world) approver(ctx context.Context) {
	r := w.random("approver")
	ignored := map[string]bool{}
	for rest(ctx, 700*time.Millisecond) {
		limit, cancel := context.WithTimeout(ctx, patience)
		out, _, _ := w.run(limit, w.env, "--no-start", "--json", "approvals")
		cancel()
		var open []struct{ Token string }
		if json.Unmarshal([]byte(out), &open) != nil {
			continue
		}
		for _, q := range open {
			if q.Token == "" || ignored[q.Token] {
				continue
			}
			if r.IntN(5) == 0 {
				ignored[q.Token] = true // silence is a no
				continue
			}
			var both sync.WaitGroup
			for range 1 + r.IntN(2) {
				yes, way := r.IntN(3) > 0, r.IntN(3)
				both.Go(func() { w.decide(ctx, q.Token, yes, way) })
			}
			both.Wait()
		}
	}
}

// decide answers one question.
func (w *world) decide(ctx context.Context, token string, yes bool, way int) {
	word, decision := "deny", "DENIED"
	if yes {
		word, decision = "approve", "APPROVED"
	}
	limit, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	w.books.decided(token, yes)
	switch way {
	case 0:
		w.run(limit, w.far, "--no-start", word, token)
	case 1:
		c, nc, err := w.connect(limit, w.path("far", "pp.sock"), "tui")
		if err != nil {
			return
		}
		defer nc.Close()
		err = c.Send(proto.Message{Kind: proto.Request, Meta: sexp.P(key("ID"), "d"), Payload: sexp.P(
			key("ACTION"), key("HITL-RESPOND"), key("TOKEN"), token, key("DECISION"), key(decision), key("SCOPE"), key("ONCE"))})
		for err == nil {
			var m proto.Message
			if m, err = c.Receive(); err == nil && m.Kind == proto.Response {
				return
			}
		}
	default:
		w.telegram.Say(owner, "/"+word+" "+token)
	}
}
