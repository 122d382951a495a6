package daemon_test

import (
	"fmt"
	"strings"
	"testing"

	"passepartout/internal/sexp"
)

// view asks the daemon something and wants an answer.
func (p *peer) view(session, action string) sexp.Plist {
	p.t.Helper()
	m := p.request(data(p.t, fmt.Sprintf(`(:TYPE :REQUEST :META (:SESSION-ID %q) :PAYLOAD (:ACTION %s))`, session, action)))
	if m.Payload.Word("STATUS") != "DONE" {
		p.t.Fatalf("%s: %s", action, m.Payload)
	}
	return m.Payload
}

func TestWhatStandsBesideAConversationIsTold(t *testing.T) {
	s := settings(t)
	write(t, s, "garden.org", "#+title: Garden\n* Beds :@personal:outside:\n:PROPERTIES:\n:ID: beds\n:END:\nWhat grows.\n** TODO Water the lemon tree\nSCHEDULED: <2026-05-04 Mon 08:30 +1d>\n")
	h := open(t, s)
	p := h.connect()
	p.request(say("main", "remind me to call Ana by friday"))
	p.request(say("trip", "what do I know about the lemon tree?"))
	p.view("main", `:FOCUS :OP :PUSH :NODE "beds"`)

	o := p.view("main", ":OVERVIEW")
	for _, want := range []string{`:FOCUS ("Beds")`, `"inbox/inbox.org"`, ":PROTECTION "} {
		if !strings.Contains(o.String(), want) {
			t.Errorf("the overview lacks %s: %s", want, o)
		}
	}
	if n, _ := o.Get("LIMIT"); n.String() == "0" {
		t.Errorf("after a turn the context has no limit: %s", o)
	}

	out := p.view("main", `:OUTLINE :NODE "garden.org"`)
	if rows := plists(t, out, "CHILDREN"); len(rows) != 1 || rows[0].Text("TITLE") != "Beds" || out.Text("TEXT") == "" {
		t.Errorf("the outline of a file is %s", out)
	}
	if files := plists(t, p.view("main", ":OUTLINE"), "CHILDREN"); len(files) < 2 {
		t.Errorf("the outline of the memex is %v", files)
	}
	if r := p.request(data(t, `(:TYPE :REQUEST :PAYLOAD (:ACTION :OUTLINE :NODE "../../etc/passwd"))`)); r.Payload.Word("STATUS") == "DONE" {
		t.Errorf("a path outside the memex was shown: %s", r.Payload)
	}

	items := plists(t, p.view("main", `:AGENDA :FROM "2026-05-04" :COUNT 2`), "ITEMS")
	if len(items) == 0 || items[0].Text("TITLE") != "Water the lemon tree" || items[0].Text("TIME") != "08:30" {
		t.Errorf("the agenda is %v", items)
	}
	if r := p.request(data(t, `(:TYPE :REQUEST :PAYLOAD (:ACTION :AGENDA :FROM "soon"))`)); r.Payload.Word("STATUS") == "DONE" {
		t.Error("a day that is none has an agenda")
	}

	hist := plists(t, p.view("main", `:NODE-HISTORY :NODE "call Ana"`), "VERSIONS")
	if len(hist) != 1 || !strings.Contains(hist[0].Text("DIFF"), "+* TODO call Ana") || hist[0].Text("TURN") == "" {
		t.Errorf("the history of what was captured is %v", hist)
	}
	if tags := p.view("main", ":TAGS").String(); !strings.Contains(tags, `:NAME "@personal" :COUNT 2 :LEAVES "never"`) || !strings.Contains(tags, `:NAME "outside" :COUNT 1 :LEAVES "yes"`) {
		t.Errorf("the tags are %s", tags)
	}
	for what, want := range map[string]string{`:KIND :FILE :TEXT "gar"`: `"garden.org"`, `:KIND :NODE :TEXT "bed"`: `"beds"`, `:KIND :SESSION :TEXT "tr"`: `"trip"`} {
		if got := p.view("main", ":COMPLETE "+what).String(); !strings.Contains(got, want) {
			t.Errorf("%s is completed to %s", what, got)
		}
	}
}

func TestConversationsOutliveTheDaemon(t *testing.T) {
	s := settings(t)
	h := open(t, s)
	p := h.connect()
	p.request(say("main", "remind me to call Ana by friday"))
	p.request(say("main", "/cost"))
	p.request(say("trip", "a line\nand another"))
	h.close()

	h = open(t, s)
	p = h.connect()
	list := plists(t, p.view("main", ":SESSIONS"), "SESSIONS")
	if len(list) != 2 || list[0].Text("NAME") != "trip" || list[1].Text("NAME") != "main" || list[1].Text("LAST") != "remind me to call Ana by friday" {
		t.Fatalf("the sessions are %v", list)
	}
	var got []string
	for _, r := range plists(t, p.view("main", ":CONVERSATION"), "SAID") {
		got = append(got, r.Text("WHO")+" "+r.Text("NAME")+r.Text("TEXT"))
	}
	if len(got) < 3 || got[0] != "you remind me to call Ana by friday" || got[1] != "gates tool.capture" || !strings.HasPrefix(got[2], "agent cli.messageCaptured in inbox/inbox.org") {
		t.Errorf("the conversation is %q", got)
	}
	if said := plists(t, p.view("trip", ":CONVERSATION"), "SAID"); len(said) == 0 || said[0].Text("TEXT") != "a line\nand another" {
		t.Errorf("lines came back as %v", said)
	}
	if said := plists(t, p.view("elsewhere", ":CONVERSATION"), "SAID"); len(said) != 0 {
		t.Errorf("a session in which nothing was said has %v", said)
	}
}
