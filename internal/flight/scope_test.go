package flight_test

import (
	"strings"
	"testing"

	"passepartout/internal/flight"
	"passepartout/internal/gate"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

func TestAYesForTheSessionReachesNoOtherWords(t *testing.T) {
	v, err := proto.NewVocabulary(
		proto.Verb{Target: "chat", Name: "send", Effect: proto.SendMessage, Params: []proto.Param{{Name: "TO", Type: proto.Text, Means: proto.Recipient}, {Name: "TEXT", Type: proto.Text, Means: proto.Outbound}}},
		proto.Verb{Target: "lisp", Name: "eval", Effect: proto.Execute, Params: []proto.Param{{Name: "FORM", Type: proto.Text, Means: proto.Code}}},
		proto.Verb{Target: "tool", Name: "show", Effect: proto.ReadLocal, Params: []proto.Param{{Name: "ID", Type: proto.Text, Means: proto.Node}}},
		proto.Verb{Target: "shell", Name: "run", Effect: proto.Execute, Params: []proto.Param{{Name: "CMD", Type: proto.Text, Means: proto.Command}}},
		proto.Verb{Target: "tool", Name: "read", Effect: proto.ReadLocal, Params: []proto.Param{{Name: "PATH", Type: proto.Text, Means: proto.ReadPath}}},
	)
	if err != nil {
		t.Fatal(err)
	}
	class := func(verb string, args ...string) string {
		p := sexp.P(sexp.Keyword("EXPLANATION"), "because the test wants it")
		for i := 0; i < len(args); i += 2 {
			p = p.With(sexp.Keyword(args[i]), sexp.String(args[i+1]))
		}
		target, name, _ := strings.Cut(verb, ".")
		a, err := v.Decode(sexp.P(sexp.Keyword("TARGET"), sexp.Keyword(strings.ToUpper(target)), sexp.Keyword("PAYLOAD"), p.With("ACTION", sexp.Keyword(strings.ToUpper(name)))).List(),
			proto.Cause{Signal: "s", Session: "one", Origin: owner, Proposer: "test"})
		if err != nil {
			t.Fatal(err)
		}
		c, _ := flight.Class(a)
		return c
	}
	for name, tt := range map[string]struct {
		a, b string
		same bool
	}{
		"a message with an address in it": {class("chat.send", "TO", "bob", "TEXT", "see https://x.org/a"), class("chat.send", "TO", "bob", "TEXT", "see https://x.org/the-diary"), false},
		"a message with a slash in it":    {class("chat.send", "TO", "bob", "TEXT", "yes/no"), class("chat.send", "TO", "bob", "TEXT", "yes/the diary"), false},
		"a recipient with a slash":        {class("chat.send", "TO", "team/bob", "TEXT", "hi"), class("chat.send", "TO", "team/eve", "TEXT", "hi"), false},
		"code with a slash":               {class("lisp.eval", "FORM", `(f "a/b")`), class("lisp.eval", "FORM", `(f "a/" (g))`), false},
		"a heading":                       {class("tool.show", "ID", "a/b"), class("tool.show", "ID", "a/c"), false},
		"an address without a host":       {class("shell.run", "CMD", "curl https:///a.org/x"), class("shell.run", "CMD", "curl https:///evil.com/x"), false},
		"files of one directory":          {class("tool.read", "PATH", "/srv/a.txt"), class("tool.read", "PATH", "/srv/b.txt"), true},
		"addresses of one host":           {class("shell.run", "CMD", "curl https://a.org/x"), class("shell.run", "CMD", "curl https://a.org/y"), true},
	} {
		if got := tt.a == tt.b; got != tt.same {
			t.Errorf("%s: one class: %v, want %v (%q, %q)", name, got, tt.same, tt.a, tt.b)
		}
	}
}

func TestAStarInAnAnswerIsNoPattern(t *testing.T) {
	l := newLife(t)
	for range 3 {
		l.do(l.action("tool.write-file", sexp.P(sexp.Keyword("FILEPATH"), "/srv/site/*", sexp.Keyword("CONTENT"), "x")), true)
	}
	for _, p := range l.mine() {
		if p.Problem == "" {
			t.Errorf("the rule %v is offered for a file whose name is a star", p.Rule.When)
		}
	}
}

func TestARuleLearntForOneAddressAdmitsNoOther(t *testing.T) {
	l := newLife(t)
	fetch := func(s string) proto.Action { return l.action("tool.web-fetch", sexp.P(sexp.Keyword("URL"), s)) }
	for range 3 {
		l.do(fetch("https://api.example.com/today"), true)
	}
	ps := l.mine()
	if len(ps) != 1 || ps[0].Problem != "" {
		t.Fatalf("proposed %+v, want one rule", ps)
	}
	l.take(ps[0], false)
	for s, want := range map[string]gate.Decision{
		"https://api.example.com/today": gate.Allow, "https://api.example.com/today?d=the-diary": gate.Ask, "https://api.example.com/": gate.Ask, "http://api.example.com/today": gate.Ask,
	} {
		a := fetch(s)
		if r := l.chain.Decide(a, l.facts(a)); r.Decision() != want {
			t.Errorf("%s is %s, want %s; the scope was told as %q", s, r.Decision(), want, ps[0].Scope)
		}
	}
}
