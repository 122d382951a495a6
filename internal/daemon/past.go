package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"passepartout/internal/agent"
	"passepartout/internal/journal"
	"passepartout/internal/sexp"
)

// flush makes what was accepted readable. On a full disk what is there must do.
func (d *Daemon) flush() error {
	if err := d.journal.Sync(); err != nil && !errors.Is(err, journal.ErrFailed) {
		return err
	}
	return nil
}

// indexTalks reads the record of conversations before somebody asks for it.
func (d *Daemon) indexTalks(ctx context.Context) {
	if err := d.talks.update(ctx); err != nil && ctx.Err() == nil {
		d.log.Error("the record of conversations cannot be read", "error", err)
	}
}

// pastOf is what the journal holds of a session, for the agent to remember it by.
func (d *Daemon) pastOf(ctx context.Context, session string, again bool) ([]sexp.Plist, error) {
	if again {
		if err := d.journal.Sync(); err != nil {
			return nil, err
		}
	}
	entries, err := d.talks.read(ctx, session, again, func(es []journal.Entry) bool {
		return agent.Enough(func(yield func(sexp.Plist) bool) {
			for _, e := range slices.Backward(es) {
				if !yield(e.Body) {
					return
				}
			}
		})
	})
	if damage := (*journal.BrokenError)(nil); errors.As(err, &damage) {
		return nil, fmt.Errorf("%w: %w", agent.ErrDamagedPast, err)
	}
	if err != nil {
		return nil, err
	}
	out := make([]sexp.Plist, len(entries))
	for i, e := range entries {
		out[i] = e.Body
	}
	return out, nil
}

// answerSessions lists the conversations people had.
func answerSessions(ctx context.Context, d *Daemon, _ asking) (sexp.Plist, error) {
	if err := d.flush(); err != nil {
		return sexp.Plist{}, err
	}
	all, damage, err := d.talks.list(ctx)
	if err != nil {
		return sexp.Plist{}, err
	}
	var rows []sexp.Value
	for _, t := range all[:min(len(all), maxShown)] {
		rows = append(rows, sexp.P(
			sexp.Keyword("NAME"), t.name, sexp.Keyword("AT"), moment(t.at), sexp.Keyword("TURNS"), t.turns,
			sexp.Keyword("FIRST"), t.first, sexp.Keyword("LAST"), t.last).List())
	}
	out := sexp.P(sexp.Keyword("SESSIONS"), sexp.NewList(rows...), sexp.Keyword("COUNT"), len(all))
	if damage != nil {
		out = out.With("DAMAGE", sexp.String(damage.Error()))
	}
	return out, nil
}

// brief is the beginning of a text, for a list.
func brief(s string) string {
	const most = 200
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// answerConversation is what was said, judged and answered in the session, oldest
// first: the last :COUNT things a person said and what followed. What was taken
// back with /rewind is not shown.
func answerConversation(ctx context.Context, d *Daemon, a asking) (sexp.Plist, error) {
	if err := d.flush(); err != nil {
		return sexp.Plist{}, err
	}
	most, from := count(a, 20), 0
	var gone map[string]bool
	p, err := d.talks.read(ctx, a.session, true, func(es []journal.Entry) bool {
		gone, from = rewound(es), 0
		left := most
		for i, e := range slices.Backward(es) {
			if name, _, ok := heard(e); ok && name == a.session && !gone[e.Body.Text("ID")] {
				if left--; left == 0 {
					from = i
					return true
				}
			}
		}
		return false
	})
	if damage := (*journal.BrokenError)(nil); err != nil && !errors.As(err, &damage) {
		return sexp.Plist{}, err
	}
	var rows []sexp.Value
	for _, e := range p[from:] {
		if row := spoken(e, a.session); row.Len() > 0 && !gone[row.Text("TURN")] {
			rows = append(rows, row.List())
		}
	}
	out := sexp.P(sexp.Keyword("SESSION"), a.session, sexp.Keyword("SAID"), sexp.NewList(rows...))
	if err != nil { // what came before it cannot be known
		out = out.With("DAMAGE", sexp.String(err.Error()))
	}
	return out, nil
}

// rewound are the turns that were taken back.
func rewound(es []journal.Entry) map[string]bool {
	out := map[string]bool{}
	for _, e := range es {
		if e.Body.Word("KIND") != "REWIND" {
			continue
		}
		v, _ := e.Body.Get("TURNS")
		l, _ := v.(sexp.List)
		for _, item := range l.Items() {
			if s, ok := item.(sexp.String); ok {
				out[string(s)] = true
			}
		}
	}
	return out
}

// spoken is an entry as part of a session's conversation; empty if it is none.
func spoken(e journal.Entry, session string) sexp.Plist {
	if name, text, ok := heard(e); ok && name == session {
		return sexp.P(sexp.Keyword("WHO"), "you", sexp.Keyword("TEXT"), text, sexp.Keyword("TURN"), e.Body.Text("ID"), sexp.Keyword("AT"), moment(e.At))
	}
	act := e.Body.Sub("ACTION")
	if e.Body.Word("KIND") != "RULING" || act.Text("SESSION") != session {
		return sexp.Plist{}
	}
	row := sexp.P(
		sexp.Keyword("ID"), e.Body.Text("ID"), sexp.Keyword("TURN"), e.Body.Text("TURN"), sexp.Keyword("AT"), moment(e.At),
		sexp.Keyword("NAME"), strings.ToLower(string(act.Word("TARGET"))+"."+string(act.Word("VERB"))), sexp.Keyword("TRACE"), e.Body.Sub("TRACE").List())
	if act.Word("VERB") == "MESSAGE" && e.Body.Sub("TRACE").Word("DECISION") == "ALLOW" {
		return row.With("WHO", sexp.String("agent")).With("TEXT", sexp.String(act.Sub("ARGS").Text("TEXT")))
	}
	return row.With("WHO", sexp.String("gates")).With("ARGS", act.Sub("ARGS").List())
}
