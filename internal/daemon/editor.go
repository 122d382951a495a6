package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"passepartout/internal/act"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// editor is the channel whose clients can be asked to change a buffer, and canEdit
// the capability with which one says that it will ask its person.
const (
	editor  = "emacs"
	canEdit = "EDIT"
)

// editorPatience is how long a person may take to confirm an edit.
const editorPatience = 10 * time.Minute

// errEdited means that nobody waits for such an answer, or not for this client's.
var errEdited = errors.New("no such edit waits for this client")

// An edited is what became of a request to an editor.
type edited struct {
	outcome, text string
}

// editsAsked are the requests editors have not answered. They are safe for
// concurrent use.
type editsAsked struct {
	mu   sync.Mutex // guards open
	open map[string]editAsked
}

type editAsked struct {
	by   *conn
	done chan edited // holds one
}

func (e *editsAsked) add(token string, by *conn) <-chan edited {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.open == nil {
		e.open = map[string]editAsked{}
	}
	ch := make(chan edited, 1)
	e.open[token] = editAsked{by, ch}
	return ch
}

func (e *editsAsked) forget(token string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.open, token)
}

// give takes an answer, which counts once and only from the editor that was asked.
func (e *editsAsked) give(token string, from *conn, what edited) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	asked, ok := e.open[token]
	if !ok || asked.by != from {
		return errEdited
	}
	delete(e.open, token)
	asked.done <- what
	return nil
}

// leave ends what a client that is gone was asked.
func (e *editsAsked) leave(c *conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for token, asked := range e.open {
		if asked.by == c {
			delete(e.open, token)
			asked.done <- edited{"FAILED", "the editor went away before it answered"}
		}
	}
}

// editorOf is an editor of the owner that listens to the session, nil for none.
func (d *Daemon) editorOf(session string) *conn {
	for _, c := range d.hub.listeners(session) {
		if c.edits && c.origin.Role == proto.RoleOwner {
			return c
		}
	}
	return nil
}

// editing reports whether an editor is connected at all: only then is a model told
// of it.
func (d *Daemon) editing() bool {
	d.hub.mu.Lock()
	defer d.hub.mu.Unlock()
	for _, cs := range d.hub.sessions {
		for c := range cs {
			if c.edits {
				return true
			}
		}
	}
	return false
}

// offers reports whether models are told of a verb.
func (d *Daemon) offers(v proto.Verb) bool {
	return !d.policy.forbids(v) && (v.Target != editor || d.editing())
}

// askEditor sends a permitted request to an editor and waits for its person.
func (d *Daemon) askEditor(ctx context.Context, session string, cause proto.ID, request sexp.Plist) (act.Outcome, error) {
	c := d.editorOf(session)
	if c == nil {
		return act.Failed("no editor listens to this session"), nil
	}
	token := string(d.newID("e"))
	answer := d.asked.add(token, c)
	defer d.asked.forget(token)
	c.send(proto.Message{
		Kind: proto.Request, Target: editor, Meta: sexp.P(sexp.Keyword("SESSION-ID"), session, sexp.Keyword("TURN"), string(cause)),
		Payload: request.With("TOKEN", sexp.String(token)),
	})
	ctx, cancel := context.WithTimeout(ctx, editorPatience)
	defer cancel()
	select {
	case <-ctx.Done():
		return act.Failed("nobody confirmed it in the editor: %v", ctx.Err()), nil
	case got := <-answer:
		if got.outcome != "DONE" {
			return act.Failed("%s: %s", strings.ToLower(got.outcome), got.text), nil
		}
		return act.Outcome{OK: true, Text: got.text}, nil
	}
}

// outcomes are what an editor may answer.
var outcomes = []string{"DONE", "REFUSED", "CONFLICT", "FAILED"}

// mostEdited bounds what an editor may say about an edit.
const mostEdited = 1000

// answerEdited takes what became of a request to an editor.
func answerEdited(_ context.Context, d *Daemon, a asking) (sexp.Plist, error) {
	p := a.message.Payload
	what := edited{string(p.Word("OUTCOME")), p.Text("TEXT")}
	if !slices.Contains(outcomes, what.outcome) {
		return sexp.Plist{}, fmt.Errorf(":OUTCOME: want one of %s, found %q", strings.Join(outcomes, ", "), what.outcome)
	}
	if len(what.text) > mostEdited {
		what.text = strings.ToValidUTF8(what.text[:mostEdited], "") + "…"
	}
	return sexp.Plist{}, d.asked.give(p.Text("TOKEN"), a.conn, what)
}
