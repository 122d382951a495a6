package act_test

import (
	"regexp"
	"strings"
	"testing"

	"passepartout/internal/act"
)

func TestOrgEditChangesOneHeadingAndNothingElse(t *testing.T) {
	for what, c := range map[string]struct{ args, old, new string }{
		"state":           {`:TODO "DONE"`, "** TODO Order seeds\nDEADLINE", "** DONE Order seeds\nDEADLINE"},
		"title":           {`:TITLE "Order bulbs"`, "** TODO Order seeds\n", "** TODO Order bulbs\n"},
		"priority":        {`:PRIORITY "a"`, "** TODO Order seeds\n", "** TODO [#A] Order seeds\n"},
		"deadline":        {`:DEADLINE "2026-04-01"`, "<2026-03-13 Fri>", "<2026-04-01 Wed>"},
		"no deadline":     {`:DEADLINE ""`, "DEADLINE: <2026-03-13 Fri>\n", ""},
		"body":            {`:BODY "only peas"`, "beans and peas\n", "only peas\n"},
		"property":        {`:PROPERTY "EFFORT" :VALUE "1h"`, "DEADLINE: <2026-03-13 Fri>\n", "DEADLINE: <2026-03-13 Fri>\n:PROPERTIES:\n:EFFORT:   1h\n:END:\n"},
		"state and title": {`:TODO "" :TITLE "Seeds"`, "** TODO Order seeds\n", "** Seeds\n"},
	} {
		t.Run(what, func(t *testing.T) {
			s := open(t, act.Web{})
			s.succeeds("org-edit", `:HEADING "order seeds" %s`, c.args)
			if got, want := s.read("memex/notes/garden.org"), strings.Replace(garden, c.old, c.new, 1); unstamped(got) != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// stamped is what an edit adds of its own: when something was done, and an id by
// which a heading that gets another title stays the same.
var stamped = regexp.MustCompile(`CLOSED: \[[^]]*\] |:PROPERTIES:\n:ID:.*\n:END:\n`)

func unstamped(s string) string { return stamped.ReplaceAllString(s, "") }

func TestOrgEditAddsMovesAndArchives(t *testing.T) {
	s := open(t, act.Web{})
	s.succeeds("org-edit", `:HEADING "Plan" :CHILD "Build a fence"`)
	if got := s.read("memex/notes/garden.org"); !strings.Contains(got, "** Build a fence\n") {
		t.Errorf("no child:\n%s", got)
	}
	s.succeeds("org-edit", `:HEADING "Dig the beds" :REFILE-TO "inbox.org"`)
	if in, from := s.read("memex/inbox.org"), s.read("memex/notes/garden.org"); !strings.Contains(in, "* TODO Dig the beds\n") || strings.Contains(from, "Dig the beds") {
		t.Errorf("not moved:\n%s\n%s", in, from)
	}
	s.succeeds("org-edit", `:HEADING "Order seeds" :REFILE-TO "Water the plants"`)
	if in := s.read("memex/inbox.org"); !strings.Contains(in, "** TODO Order seeds\n") {
		t.Errorf("not moved below:\n%s", in)
	}
	o := s.succeeds("org-edit", `:HEADING "Order seeds" :ARCHIVE T`)
	if strings.Contains(s.read("memex/inbox.org"), "Order seeds") || !strings.Contains(s.read("memex/inbox.org_archive"), "Order seeds") || len(o.Changed) != 2 {
		t.Errorf("not archived, changed %v", o.Changed)
	}
	s.fails("which heading?", "org-edit", `:TODO "DONE"`)
	s.fails("no heading contains", "org-edit", `:HEADING "unheard of" :TODO "DONE"`)
	s.fails("nothing is to be changed", "org-edit", `:HEADING "Plan"`)
	s.fails("no heading has the id", "org-edit", `:ID "nope" :TODO "DONE"`)
	s.fails("where to", "org-edit", `:HEADING "Plan" :REFILE-TO "unheard of"`)
	s.fails("none is named", "org-edit", `:HEADING "Plan" :VALUE "x"`)
	s.fails("YYYY-MM-DD", "org-edit", `:HEADING "Plan" :DEADLINE "tomorrow"`)
	for _, n := range []string{"1", "2"} {
		s.succeeds("capture", `:TITLE "twin %s"`, n)
	}
	s.fails("2 headings contain", "org-edit", `:HEADING "twin" :TODO "DONE"`)
}

func TestHeadingsAreFoundByStateTagWordsAndMatch(t *testing.T) {
	s := open(t, act.Web{})
	for _, c := range []struct{ tool, args, want string }{
		{"org-find-headline", `:TODO "open" :TEXT "seeds"`, "TODO Order seeds  deadline <2026-03-13 Fri>  (notes/garden.org:3)"},
		{"org-find-headline", `:TAG "home"`, "TODO Water the plants  :home:  (inbox.org:1)"},
		{"org-find-headline", `:MATCH "+home"`, "TODO Water the plants  :home:  (inbox.org:1)"},
		{"org-find-headline", `:TODO "done"`, "No heading matches."},
		{"org-find-headline", `:TODO "open" :LIMIT 1`, "TODO Water the plants  :home:  (inbox.org:1)\n… and 2 more"},
		{"org-find-headline", `:TEXT "seeds" :FULL T`, "** TODO Order seeds\nDEADLINE: <2026-03-13 Fri>\nbeans and peas"},
		{"memory-search", `:QUERY "beans"`, "TODO Order seeds  deadline <2026-03-13 Fri>  (notes/garden.org:3)\n    beans and peas"},
		{"memory-search", `:QUERY "volcano"`, `Nothing in the memex is about "volcano".`},
	} {
		if o := s.succeeds(c.tool, "%s", c.args); o.Text != c.want {
			t.Errorf("%s %s: got\n%s\nwant\n%s", c.tool, c.args, o.Text, c.want)
		}
	}
}

// The clock stands on Wednesday, 11 March 2026.
func TestTheAgendaKnowsItsSpans(t *testing.T) {
	s := open(t, act.Web{})
	for _, c := range []struct{ span, has, lacks string }{
		{"today", "Dig the beds, 2 days ago", "Order seeds"},
		{"tomorrow", "Nothing", "Order"},
		{"week", "Order seeds", "Nothing"},
		{"", "Order seeds", "Nothing"},
		{"overdue", "Dig the beds", "Order seeds"},
		{"next week", "Nothing", "Order seeds"},
		{"month", "Order seeds", "Nothing"},
		{"next month", "Nothing", "Order seeds"},
		{"next 3 days", "Order seeds", "Nothing"},
		{"the next 2 days", "Dig the beds", "Order seeds"},
	} {
		if o := s.succeeds("agenda", `:SPAN %q`, c.span); !strings.Contains(o.Text, c.has) || strings.Contains(o.Text, c.lacks) {
			t.Errorf("%q: got\n%s", c.span, o.Text)
		}
	}
	s.fails("want today", "agenda", `:SPAN "someday"`)
	s.fails("want today", "agenda", `:SPAN "next 0 days"`)
}
