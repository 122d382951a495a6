package skill_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"passepartout/internal/gate"
	"passepartout/internal/sexp"
	"passepartout/internal/skill"
)

// A planet is a World that knows a memex, and counts what it is asked.
type planet struct {
	objects []sexp.Plist
	asked   *[]string
}

func (planet) Real(string) (string, bool)   { return "", false }
func (planet) Read(string) (string, bool)   { return "", false }
func (planet) Glob(string) ([]string, bool) { return nil, false }

func (p planet) Know(what, text string) []string {
	if what != skill.KnowObject && what != skill.KnowObjects {
		return nil
	}
	*p.asked = append(*p.asked, what+" "+text)
	return skill.Known(func(yield func(sexp.Plist) bool) {
		for _, o := range p.objects {
			key, value, all := strings.Cut(text, "=")
			switch {
			case what == skill.KnowObject && o.Text("ID") != text:
			case what == skill.KnowObjects && all && o.Sub("ATTRIBUTES").Text(sexp.Keyword(key)) != value:
			default:
				if !yield(o) {
					return
				}
			}
		}
	})
}

func object(id, todo, content string) sexp.Plist {
	return sexp.P(sexp.Keyword("ID"), id, sexp.Keyword("TYPE"), sexp.Keyword("HEADLINE"), sexp.Keyword("CONTENT"), content,
		sexp.Keyword("ATTRIBUTES"), sexp.P(sexp.Keyword("TODO"), todo, sexp.Keyword("TITLE"), "about "+id))
}

// granted is a skill with these capabilities, alone in a chain.
func granted(t *testing.T, code string, caps ...string) *gate.Chain {
	t.Helper()
	l, dir := open(t, map[string]string{"one.org": lispFile(code)})
	k, ok := l.Set().Find("one")
	if !ok {
		t.Fatal(l.Set().Problems)
	}
	grants := filepath.Join(dir, "state", "grants")
	g, err := skill.LoadGrants(grants)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Set(skill.Grant{Name: "one", Digest: k.Digest, Capabilities: caps}); err != nil {
		t.Fatal(err)
	}
	if err := g.Save(grants); err != nil {
		t.Fatal(err)
	}
	set := l.Refresh()
	c, err := gate.New(vocabulary, sexp.Digest{}, nil, set.Gates()...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const quietHours = `(defskill :one :capabilities '(:memory :clock :random :signals :journal)
  :deterministic (lambda (action context) (declare (ignore context))
    (cond ((list-objects-with-attribute :todo "BUSY") (reject "busy until ~a" (+ 60 (unix-time))))
          ((lookup-object "quiet") (require-approval action "it says ~a" (org-object-content (lookup-object "quiet"))))
          ((= 1 (hash-table-count *memory*)) (reject "a single note at ~a" (get-universal-time)))
          (t action))))`

// TestAGatesReadingIsPartOfTheRecord judges by the memex and the clock, and again by
// what was recorded alone, when the memex has changed and time has passed.
func TestAGatesReadingIsPartOfTheRecord(t *testing.T) {
	c := granted(t, quietHours, "memory", "clock")
	for name, w := range map[string]struct {
		objects []sexp.Plist
		want    gate.Decision
		reason  string
	}{
		"busy":   {[]sexp.Plist{object("a", "BUSY", ""), object("b", "TODO", "")}, gate.Deny, "busy until 1700000060"},
		"quiet":  {[]sexp.Plist{object("quiet", "", "whisper"), object("b", "TODO", "")}, gate.Ask, "it says whisper"},
		"single": {[]sexp.Plist{object("b", "TODO", "")}, gate.Deny, "a single note at 3908988800"},
		"free":   {[]sexp.Plist{object("b", "TODO", ""), object("c", "TODO", "")}, gate.Allow, ""},
		"empty":  {nil, gate.Allow, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			f := facts()
			f.World = planet{w.objects, &asked}
			r := c.Decide(say(t, "hi"), f)
			if r.Decision() != w.want || !strings.Contains(r.Verdicts()[0].Reason, w.reason) {
				t.Fatalf("got %s %+v", r.Decision(), r.Verdicts())
			}
			if s := slices.Clone(asked); len(s) != len(slices.Compact(slices.Sorted(slices.Values(s)))) {
				t.Errorf("asked twice in one decision: %q", asked)
			}
			again, err := gate.Replay(c, r.Action(), r.Facts())
			if err != nil || again.Decision() != r.Decision() || !slices.Equal(again.Verdicts(), r.Verdicts()) {
				t.Errorf("by the record: %s %+v, %v", again.Decision(), again.Verdicts(), err)
			}
		})
	}
}

// TestAGateThatMayNotReadRefuses has gates read what they were not granted, or more
// than can be recorded: an empty answer would let things pass.
func TestAGateThatMayNotReadRefuses(t *testing.T) {
	const pass = `(defskill :one :capabilities '(:memory :clock :random :signals :journal) :deterministic (lambda (a c) (declare (ignore c)) %s a))`
	var many []sexp.Plist
	for range 300 {
		many = append(many, object("n", "TODO", strings.Repeat("long ", 250)))
	}
	all := []string{"memory", "clock", "random", "signals", "journal"}
	for form, c := range map[string]struct {
		caps []string
		want string
	}{
		`(lookup-object "x")`:                  {nil, "skill grant one clock memory)"},
		`(list-objects-with-attribute :a "b")`: {[]string{"clock"}, "skill grant one memory)"},
		`(hash-table-count *memory*)`:          {nil, "skill grant one clock memory)"},
		`(maphash #'list *memory*)`:            {all, "more of the memex than a gate may read"},
		`(get-universal-time)`:                 {[]string{"memory"}, "skill grant one clock)"},
		`(org-id-new)`:                         {all, "lacks the capability"},
		`(journal-entries 3)`:                  {all, "lacks the capability"},
	} {
		t.Run(form, func(t *testing.T) {
			f := facts()
			f.World = planet{many, new([]string)}
			r := granted(t, strings.Replace(pass, "%s", form, 1), c.caps...).Decide(say(t, "hi"), f)
			if v := r.Verdicts()[0]; v.Decision != gate.Deny || v.Code != "skill.failed" || !strings.Contains(v.Reason, c.want) {
				t.Errorf("got %+v", v)
			}
		})
	}
	f := facts()
	f.World = planet{nil, new([]string)}
	if r := granted(t, strings.Replace(pass, "%s", `(inject-stimulus '(:type :event))`, 1), all...).Decide(say(t, "hi"), f); r.Decision() != gate.Allow {
		t.Errorf("got %+v", r.Verdicts()) // it is said to the log, and goes nowhere
	}
	if time.Unix(1_700_000_000, 0) != now() {
		t.Error("the clock of these tests has changed")
	}
}

func TestASkillThatAsksForNothingIsAskedFor(t *testing.T) {
	k := only(t, `(defskill :one :deterministic (lambda (a c) (declare (ignore c)) (opencortex:lookup-object "x") (maphash #'list *memory*) (get-universal-time) a))`)
	if got := strings.Join(k.Wants, " "); got != "clock memory" {
		t.Errorf("it wants %q", got)
	}
}
