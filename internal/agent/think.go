package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"passepartout/internal/gate"
	"passepartout/internal/llm"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// think asks the engine for the next step and reads its answer as one action:
// assemble, call, parse. What is shown of the answer meanwhile has been judged.
func (t *turn) think(ctx context.Context) phase {
	as := t.assemble(ctx)
	t.weigh(as)
	if as.sent != nil {
		as.sent()
	}
	req := as.Request
	t.thought = true
	show := t.stream()
	reply, err := llm.Guard(ctx, t.a.Engine, req, show.delta)
	t.shown = show.close()
	if ctx.Err() != nil {
		t.stopped(context.Cause(ctx))
		return done
	}
	if err != nil {
		t.finish(Failed, failure(err))
		return done
	}
	var message bool
	t.action, message, err = t.parse(reply)
	if err != nil || !message {
		t.retract() // what was shown before it was not the answer
	}
	if err != nil {
		return t.unreadable(reply, err)
	}
	t.extra = reply.Extra
	if !message {
		t.s.hear(llm.Message{Role: llm.Assistant, Text: reply.Text, Call: reply.Call})
		return t.agree(ctx, req, reply)
	}
	return judging
}

// failure is the end of an engine for the person.
func failure(err error) string {
	if all := (*llm.ExhaustedError)(nil); errors.As(err, &all) {
		return all.Explain()
	}
	return fmt.Sprintf("The engine gave no answer: %v.", err)
}

// unreadable treats a proposal that cannot be decoded as a refusal: nothing is
// guessed. The engine hears what was wrong with it.
func (t *turn) unreadable(r llm.Reply, err error) phase {
	t.attempts++
	note := t.a.clean(sexp.P(
		sexp.Keyword("KIND"), sexp.Keyword("SIGNAL"), sexp.Keyword("ID"), string(t.a.NewID("s")), sexp.Keyword("TURN"), string(t.id),
		sexp.Keyword("AT"), t.a.Now().UTC().Format(time.RFC3339Nano), sexp.Keyword("SESSION"), t.s.name,
		sexp.Keyword("TYPE"), sexp.Keyword("EVENT"), sexp.Keyword("BODY"), sexp.P(
			sexp.Keyword("SENSOR"), sexp.Keyword("SYNTAX-ERROR"), sexp.Keyword("CODE"), head(r.Text, 500), sexp.Keyword("ERROR"), err.Error())))
	if jerr := t.a.Journal.Note(note); jerr != nil {
		t.finish(Failed, fmt.Sprintf("The journal cannot be written, so nothing is done: %v.", jerr))
		return done
	}
	if t.attempts >= maxAttempts {
		return t.giveUp(fmt.Sprintf("I could not put my intention into a form that may be judged: %v.", err))
	}
	if r.Text != "" {
		t.s.hear(llm.Message{Role: llm.Assistant, Text: r.Text})
	}
	t.s.hear(llm.Message{Role: llm.Objection, Text: fmt.Sprintf("decoder (proposal.unreadable): %v.", err) + acceptable("proposal.unreadable")})
	return thinking
}

// A consulter can ask further models the same question.
type consulter interface {
	Consult(ctx context.Context, req llm.Request, not string, most int) []llm.Reply
}

// voteTime is how long the further models have.
const voteTime = 30 * time.Second

// agree puts a far-reaching proposal to the vote of other models, where that is
// wanted and there are any. The majority's action goes on; without one, the
// strictest ruling among the proposals decides, and if all of them would be
// allowed, the person does.
func (t *turn) agree(ctx context.Context, req llm.Request, first llm.Reply) phase {
	c, ok := t.a.Engine.(consulter)
	if !ok || t.a.Consensus <= 0 || t.reach() < proto.Execute {
		return judging
	}
	vctx, cancel := context.WithTimeout(ctx, voteTime)
	defer cancel()
	votes := []proto.Action{t.action}
	for _, r := range c.Consult(vctx, req, first.Model, t.a.Consensus) {
		if a, _, err := t.parse(r); err == nil {
			votes = append(votes, a)
		}
	}
	if ctx.Err() != nil {
		t.stopped(context.Cause(ctx))
		return done
	}
	if a, ok := majority(votes); ok {
		t.action = a
		return judging
	}
	return t.disagree(votes)
}

// same is what makes two proposals one: the verb and its arguments, not the words
// in which it was explained.
func same(a proto.Action) sexp.Digest {
	return sexp.Sum(sexp.NewList(sexp.String(a.Name()), a.Args().List()))
}

// majority is the action more than half of the votes are for.
func majority(votes []proto.Action) (proto.Action, bool) {
	count := map[sexp.Digest]int{}
	for _, a := range votes {
		d := same(a)
		if count[d]++; 2*count[d] > len(votes) {
			return a, true
		}
	}
	return proto.Action{}, false
}

func (t *turn) disagree(votes []proto.Action) phase {
	strictest, facts, chain := gate.Allow, t.facts(), t.a.Chain()
	for _, a := range votes {
		if d := chain.Decide(a, facts).Decision(); d < strictest {
			strictest, t.action = d, a
		}
	}
	if strictest != gate.Allow {
		return judging
	}
	var b strings.Builder
	b.WriteString("The models do not agree on what to do, so nothing was done. They propose:")
	for _, a := range votes {
		fmt.Fprintf(&b, "\n  %s %s  (%s)", a.Name(), a.Args(), a.Why())
	}
	b.WriteString("\nSay which, or ask differently.")
	t.finish(Denied, b.String())
	return done
}
