package daemon_test

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// editing is a connection that introduces itself as an editor.
type editing struct {
	net.Conn
	greeted bool
}

func (e *editing) Write(b []byte) (int, error) {
	if !e.greeted {
		e.greeted = true
		hello, err := proto.AppendFrame(nil, proto.Hello{Client: "emacs", Capabilities: []string{"EDIT"}}.Message().Value())
		if err != nil {
			return 0, err
		}
		if _, err := e.Conn.Write(hello); err != nil {
			return 0, err
		}
		return len(b), nil
	}
	return e.Conn.Write(b)
}

// editor is an editor that listens to a session.
func (h *house) editor(session string) *peer {
	h.t.Helper()
	nc := h.dial()
	c, err := proto.Connect(&editing{Conn: nc}, "emacs", nil)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { nc.Close() })
	p := &peer{t: h.t, Client: c, nc: nc}
	p.request(proto.Message{
		Kind: proto.Request, Meta: sexp.P(sexp.Keyword("SESSION-ID"), session), Payload: sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("LISTEN")),
	})
	return p
}

// wanted waits until the editor is asked for an edit.
func (p *peer) wanted() sexp.Plist {
	p.t.Helper()
	for {
		m, err := p.Receive()
		if err != nil {
			p.t.Fatal(err)
		}
		if m.Kind == proto.Request {
			return m.Payload
		}
	}
}

func insertion(path string) proto.Message {
	return proto.Message{
		Kind: proto.Request, Target: "emacs", Meta: sexp.P(sexp.Keyword("SESSION-ID"), "main"), Payload: sexp.P(
			sexp.Keyword("ACTION"), sexp.Keyword("INSERT"), sexp.Keyword("FILE"), path, sexp.Keyword("TEXT"), "- bread",
			sexp.Keyword("EXPLANATION"), "The owner wants bread on the list."),
	}
}

func outcome(token, what string) proto.Message {
	return proto.Message{Kind: proto.Request, Payload: sexp.P(
		sexp.Keyword("ACTION"), sexp.Keyword("EDITED"), sexp.Keyword("TOKEN"), token, sexp.Keyword("OUTCOME"), sexp.Keyword(what), sexp.Keyword("TEXT"), "said the editor")}
}

// propose sends a proposal and returns where its response will be.
func (h *house) propose(m proto.Message) <-chan proto.Message {
	got := make(chan proto.Message, 1)
	p := h.connect()
	go func() { got <- p.request(m) }()
	return got
}

func TestOnlyTheEditorThatWasAskedAnswersAndOnlyOnce(t *testing.T) {
	h := open(t, settings(t))
	e, path := h.editor("main"), filepath.Join(h.settings.MemexDir, "notes", "list.org")
	got := h.propose(insertion(path))
	asked := e.wanted()
	if asked.Text("FILE") != path || asked.Text("TEXT") != "- bread" || asked.Word("ACTION") != "INSERT" {
		t.Errorf("asked %s", asked)
	}
	for _, stranger := range []*peer{h.connect(), h.connectAs("emacs"), h.editor("main")} {
		if r := stranger.request(outcome(asked.Text("TOKEN"), "DONE")); r.Payload.Word("STATUS") != "FAILED" {
			t.Errorf("a stranger's answer counted: %s", r.Value())
		}
	}
	if r := e.request(outcome(asked.Text("TOKEN"), "MAYBE")); r.Payload.Word("STATUS") != "FAILED" {
		t.Errorf("nonsense counted: %s", r.Value())
	}
	if r := e.request(outcome(asked.Text("TOKEN"), "DONE")); r.Payload.Word("STATUS") != "DONE" {
		t.Errorf("the answer was refused: %s", r.Value())
	}
	if r := <-got; r.Payload.Word("STATUS") != "DONE" || !strings.Contains(r.Payload.Text("TEXT"), "said the editor") {
		t.Errorf("ends with %s", r.Value())
	}
	if r := e.request(outcome(asked.Text("TOKEN"), "DONE")); r.Payload.Word("STATUS") != "FAILED" {
		t.Errorf("a second answer counted: %s", r.Value())
	}
}

func TestAnEditorThatRefusesOrHangsUpMadeNoChange(t *testing.T) {
	h := open(t, settings(t))
	path := filepath.Join(h.settings.MemexDir, "notes", "list.org")
	e := h.editor("main")
	got := h.propose(insertion(path))
	e.request(outcome(e.wanted().Text("TOKEN"), "REFUSED"))
	if r := <-got; r.Payload.Word("STATUS") == "DONE" || !strings.Contains(r.Payload.Text("TEXT"), "refused") {
		t.Errorf("refused: %s", r.Value())
	}
	got = h.propose(insertion(path))
	e.wanted()
	e.nc.Close()
	if r := <-got; r.Payload.Word("STATUS") == "DONE" || !strings.Contains(r.Payload.Text("TEXT"), "went away") {
		t.Errorf("hung up: %s", r.Value())
	}
	if r := h.connect().request(insertion(path)); r.Payload.Word("STATUS") == "DONE" || !strings.Contains(r.Payload.Text("TEXT"), "no editor listens") {
		t.Errorf("without an editor: %s", r.Value())
	}
}

// TestINV04AnEditIsJudgedLikeAnyWrite: what the gates refuse never reaches the editor.
func TestINV04AnEditIsJudgedLikeAnyWrite(t *testing.T) {
	h := open(t, settings(t))
	e := h.editor("main")
	for _, path := range []string{
		filepath.Join(h.settings.MemexDir, "system", "permissions.org"),
		filepath.Join(h.settings.StateDir, "journal", "000001.plist"),
		"/etc/passwd",
		filepath.Join(h.settings.Home, ".ssh", "authorized_keys"),
	} {
		if r := h.connect().request(insertion(path)); r.Payload.Word("STATUS") == "DONE" {
			t.Errorf("%s: %s", path, r.Value())
		}
	}
	got := h.propose(insertion(filepath.Join(h.settings.MemexDir, "notes", "list.org")))
	if asked := e.wanted(); !strings.HasSuffix(asked.Text("FILE"), "list.org") {
		t.Errorf("the editor was asked for %s", asked)
	} else {
		e.request(outcome(asked.Text("TOKEN"), "DONE"))
	}
	<-got
}
