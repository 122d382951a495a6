package memory_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"passepartout/internal/memory"
)

const queryDoc = `#+FILETAGS: :work:
#+TODO: TODO NEXT | DONE
* TODO [#A] Report :urgent:
SCHEDULED: <2026-03-10 Tue> DEADLINE: <2026-03-20 Fri>
:PROPERTIES:
:ID: report
:EFFORT: 2:00
:COST: 15
:END:
About whales. See [[id:ann][Ann]].
** NEXT Ask Ann :@phone:
:PROPERTIES:
:ID: ann
:END:
** DONE Read
CLOSED: [2026-03-01 Sun 10:00]
* Ideas :@personal:
:PROPERTIES:
:ORIGIN: web
:END:
** A boat
* COMMENT Hidden
* Old :ARCHIVE:
* Garden :project:
`

func TestQueries(t *testing.T) {
	f := newFixture(t, map[string]string{"tasks.org": queryDoc, "projects/p.org": "* TODO Paint :home:\nwith [[file:../tasks.org]]\n"})
	v := f.open().View()
	for query, want := range map[string]string{
		"+work-urgent/!":                      "",
		"+work/!":                             "Report,Ask Ann",
		"urgent":                              "Report,Ask Ann,Read",
		"own:urgent":                          "Report",
		"@phone|home":                         "Paint,Ask Ann",
		"urgent-@phone":                       "Report,Read",
		"{^@p}":                               "Ask Ann,Ideas,A boat",
		`PRIORITY="A"`:                        "Report",
		"COST>10":                             "Report",
		"COST<10+urgent+LEVEL=2":              "Ask Ann,Read",
		`EFFORT>="1:00"`:                      "Report",
		`TODO="NEXT"`:                         "Ask Ann",
		"/NEXT|DONE":                          "Ask Ann,Read",
		"/-DONE LEVEL=2":                      "Ask Ann,A boat",
		"todo:NEXT,TODO":                      "Paint,Report,Ask Ann",
		"is:open level:1":                     "Paint,Report",
		"is:project":                          "Garden",
		"is:archived":                         "Old",
		"is:commented":                        "Hidden",
		"is:private":                          "Ideas,A boat",
		"is:untrusted":                        "Ideas,A boat",
		"scope:project":                       "Paint",
		"path:projects":                       "Paint",
		"path:*.org LEVEL=2 -is:done":         "Ask Ann,A boat",
		"text:WHALES":                         "Report",
		`"about whales"`:                      "Report",
		"title:bo":                            "A boat",
		"deadline:<=2026-03-20":               "Report",
		"deadline:<+1w":                       "",
		"scheduled:today":                     "Report",
		"closed:any":                          "Read",
		`DEADLINE<"<2026-04-01>"`:             "Report",
		`DEADLINE<"<today>"`:                  "",
		"id:ann":                              "Ask Ann",
		"parent:report":                       "Ask Ann,Read",
		"links:ann":                           "Report",
		"links:tasks.org":                     "Paint",
		"prop:COST":                           "Report",
		"prop:COST=15":                        "Report",
		`(and (tag "work") (todo "NEXT"))`:    "Ask Ann",
		`(or (todo "NEXT") (title "paint"))`:  "Paint,Ask Ann",
		`(and (level 2) (not (is "done")))`:   "Ask Ann,A boat",
		`(deadline < "2026-04-01")`:           "Report",
		`(prop "COST" > 10)`:                  "Report",
		`(prop "EFFORT" "2:00")`:              "Report",
		`(match "+work+LEVEL=2/!")`:           "Ask Ann",
		`(and "whales" (since "2020-01-01"))`: "Report",
		`(and (tag "urgent") (or (tag "@phone") (is done)))`: "Ask Ann,Read",
	} {
		t.Run(query, func(t *testing.T) {
			got, err := v.Match(query)
			if err != nil {
				t.Fatal(err)
			}
			if titles(got) != want {
				t.Errorf("want %q, found %q", want, titles(got))
			}
			q, err := memory.ParseQuery(query, noon)
			if err != nil || v.Count(q) != len(got) {
				t.Errorf("Count and Match disagree: %v", err)
			}
		})
	}
}

func TestAQueryThatCannotBeMeantIsCorrected(t *testing.T) {
	for query, meant := range map[string]string{
		"tdo:NEXT": "todo", "is:opne": "open", "scope:projct": "project", `(tagg "x")`: "tag", `(adn (tag "x"))`: "and",
		"deadline:soon": "", "level:x": "", "+work+": "", "{[}": "", `COST>"`: "", "(and": "", `(tag "a") (tag "b")`: "", "(tag . b)": "", "a~b": "",
	} {
		_, err := memory.ParseQuery(query, noon)
		if err == nil {
			t.Errorf("%s was accepted", query)
		} else if meant != "" && !strings.Contains(err.Error(), `did you mean "`+meant+`"`) {
			t.Errorf("%s: no suggestion of %q in %v", query, meant, err)
		}
	}
}

func TestSearchRanksTitlesFirstAndIsStable(t *testing.T) {
	f := newFixture(t, map[string]string{"a.org": "* One\nwhale whale\n* Whale song\n* Two :whale:\n* None\n", "b.org": "* Three\nWHALE\n"})
	var got []string
	for _, h := range f.open().View().Search("whale", 10) {
		got = append(got, h.Object.Title)
	}
	if strings.Join(got, ",") != "Whale song,Two,One,Three" {
		t.Errorf("found %q", got)
	}
}

func TestBacklinksAndLinksFormAGraph(t *testing.T) {
	f := newFixture(t, map[string]string{"tasks.org": queryDoc, "projects/p.org": "* Paint\nwith [[file:../tasks.org]] and [[id:ann]] and [[https://example.org]]\n"})
	v := f.open().View()
	ann, _ := v.Get("ann")
	if got := titles(v.Backlinks(ann)); got != "Paint,Report" {
		t.Errorf("backlinks of Ann: %q", got)
	}
	file, _ := v.File("tasks.org")
	if got := titles(v.Backlinks(file)); got != "Paint" {
		t.Errorf("backlinks of the file: %q", got)
	}
	links := v.Links(titled(t, v, "Paint"))
	if len(links) != 3 || links[0].To.File != "tasks.org" || links[1].To.ID != "ann" || links[2].To.ID != "" {
		t.Errorf("links %+v", links)
	}
}

func TestPrivacyFollowsInheritanceAndWhatIsUnknownIsPrivate(t *testing.T) {
	f := newFixture(t, map[string]string{"tasks.org": queryDoc, "p.org": "* Open\n", "dir/q.org": "* Open too\n", "secret.org": "#+FILETAGS: :@personal:\n* X\n"})
	s := f.open()
	v := s.View()
	for name, want := range map[string]bool{
		"report": false, string(titled(t, v, "A boat").ID): true, "tasks.org": true, "p.org": false, "secret.org": true, "nothing.org": true,
		string(titled(t, v, "X").ID): true,
	} {
		if s.Private(name) != want {
			t.Errorf("%s: private is %v", name, !want)
		}
	}
	for path, want := range map[string]bool{"p.org": false, "tasks.org": true, ".": true, "dir": false, "../elsewhere.org": false} {
		if got := s.Private(filepath.Join(f.dir, path)); got != want {
			t.Errorf("absolute %s: private is %v", path, got)
		}
	}
	if tags := s.Tags("ann"); strings.Join(tags, ",") != "work,urgent,@phone" {
		t.Errorf("tags %q", tags)
	}
}

func TestAgendaOfADayWithEverything(t *testing.T) {
	f := newFixture(t, map[string]string{"a.org": `* TODO Late
SCHEDULED: <2026-03-01 Sun>
* TODO Overdue
DEADLINE: <2026-03-05 Thu>
* TODO Soon
DEADLINE: <2026-03-12 Thu>
* TODO Far
DEADLINE: <2026-04-30 Thu>
* TODO Far but warned
DEADLINE: <2026-04-30 Thu -60d>
* DONE Finished
SCHEDULED: <2026-03-01 Sun>
* Meeting <2026-03-10 Tue 09:30>
* Weekly <2026-02-24 Tue 08:00 +1w>
* Fair
<2026-03-09 Mon>--<2026-03-11 Wed>
* TODO Habit
SCHEDULED: <2026-03-10 Tue .+1d/3d>
* COMMENT Not this
SCHEDULED: <2026-03-10 Tue>
* Nor this :ARCHIVE:
SCHEDULED: <2026-03-10 Tue>
* Code
#+begin_src org
<2026-03-10 Tue>
#+end_src
`})
	var got []string
	for _, it := range f.open().View().Agenda(memory.AgendaQuery{From: noon}) {
		got = append(got, it.Kind+" "+it.Object.Title)
	}
	want := []string{
		"date Weekly <2026-02-24 Tue 08:00 +1w>", "date Meeting <2026-03-10 Tue 09:30>",
		"late Late", "scheduled Habit", "overdue Overdue", "range Fair", "upcoming Soon", "upcoming Far but warned",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func FuzzQueryNeverPanics(f *testing.F) {
	for _, s := range []string{`+work-@home/!TODO|NEXT`, `EFFORT>"1:00"`, `(and (tag "x") (not (prop "A" < 3)))`, `{a\|b}`, `deadline:<=-3d`, `"open`, `((((`} {
		f.Add(s)
	}
	dir := newFixture(f, map[string]string{"tasks.org": queryDoc})
	v := dir.open().View()
	f.Fuzz(func(t *testing.T, s string) {
		q, err := memory.ParseQuery(s, noon)
		if err != nil {
			return
		}
		if n := v.Count(q); n > v.Len() {
			t.Errorf("%d of %d match", n, v.Len())
		}
		v.Agenda(memory.AgendaQuery{From: noon, To: noon.Add(48 * time.Hour), Match: q})
		_ = v.Hint(q)
	})
}
