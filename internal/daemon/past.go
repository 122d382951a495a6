package daemon

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"passepartout/internal/journal"
	"passepartout/internal/sexp"
)

// lookBack is how many of the last entries of the journal conversations are read
// from.
const lookBack = 4_000

// A past is the last entries of the journal, oldest first.
type past []journal.Entry

// past reads what is recorded, down to the last entry accepted.
func (d *Daemon) past() (past, error) {
	if err := d.journal.Sync(); err != nil {
		return nil, err
	}
	return journal.Tail(filepath.Join(d.s.StateDir, "journal"), lookBack)
}

// A talked is a conversation as the journal knows it.
type talked struct {
	name  string
	first string // what was said first, as far back as was looked
	last  string // and last
	at    time.Time
	turns int
}

// sessions are the conversations people had, the latest first.
func (p past) sessions() []talked {
	by := map[string]*talked{}
	for _, e := range p {
		name, text, ok := heard(e)
		if !ok {
			continue
		}
		t := by[name]
		if t == nil {
			t = &talked{name: name, first: text}
			by[name] = t
		}
		t.last, t.at = text, e.At
		t.turns++
	}
	out := make([]talked, 0, len(by))
	for _, t := range by {
		out = append(out, *t)
	}
	slices.SortFunc(out, func(a, b talked) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.name, b.name)) })
	return out
}

// heard is what a person said in an entry. Control words are not conversation.
func heard(e journal.Entry) (session, text string, ok bool) {
	body := e.Body.Sub("BODY")
	if e.Body.Word("KIND") != "SIGNAL" || body.Word("SENSOR") != "USER-INPUT" {
		return "", "", false
	}
	text = body.Text("TEXT")
	return e.Body.Text("SESSION"), text, text != "" && !strings.HasPrefix(text, "/")
}

// answerSessions lists the conversations people had.
func answerSessions(_ context.Context, d *Daemon, _ asking) (sexp.Plist, error) {
	p, err := d.past()
	if err != nil {
		return sexp.Plist{}, err
	}
	var rows []sexp.Value
	for _, t := range p.sessions() {
		if len(rows) == maxShown {
			break
		}
		rows = append(rows, sexp.P(
			sexp.Keyword("NAME"), t.name, sexp.Keyword("AT"), moment(t.at), sexp.Keyword("TURNS"), t.turns,
			sexp.Keyword("FIRST"), brief(t.first), sexp.Keyword("LAST"), brief(t.last)).List())
	}
	return sexp.P(sexp.Keyword("SESSIONS"), sexp.NewList(rows...)), nil
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
// first: the last :COUNT things a person said and what followed.
func answerConversation(_ context.Context, d *Daemon, a asking) (sexp.Plist, error) {
	p, err := d.past()
	if err != nil {
		return sexp.Plist{}, err
	}
	left := count(a, 20)
	from := len(p)
	for i := len(p) - 1; i >= 0 && left > 0; i-- {
		if name, _, ok := heard(p[i]); ok && name == a.session {
			from = i
			left--
		}
	}
	var rows []sexp.Value
	for _, e := range p[from:] {
		if row := spoken(e, a.session); row.Len() > 0 {
			rows = append(rows, row.List())
		}
	}
	return sexp.P(sexp.Keyword("SESSION"), a.session, sexp.Keyword("SAID"), sexp.NewList(rows...)), nil
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
