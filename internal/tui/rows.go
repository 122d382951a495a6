package tui

import (
	"fmt"
	"strings"
	"time"

	"passepartout/internal/sexp"
)

// field is a cleaned text of a property list on one line.
func field(p sexp.Plist, key sexp.Keyword) string { return clean(oneLine(p.Text(key))) }

// texts are the strings in the list under a key, cleaned.
func texts(p sexp.Plist, key sexp.Keyword) []string {
	v, _ := p.Get(key)
	l, _ := v.(sexp.List)
	var out []string
	for _, item := range l.Items() {
		if s, ok := item.(sexp.String); ok {
			out = append(out, clean(oneLine(string(s))))
		}
	}
	return out
}

// agendaRows shows days with what is on each.
func (m *Model) agendaRows(s *sheet, p sexp.Plist) {
	s.title = fmt.Sprintf("Agenda, %s to %s", field(p, "FROM"), field(p, "TO"))
	day := ""
	today := m.opt.Now().Format(time.DateOnly)
	for _, it := range plists(p, "ITEMS") {
		if d := field(it, "DAY"); d != day {
			day = d
			head, r := d, roleHeading
			if t, err := time.Parse(time.DateOnly, d); err == nil {
				head = t.Format("Monday 2 January 2006")
			}
			if d == today {
				head, r = head+", today", roleAccent
			}
			s.rows = append(s.rows, row{spans: []span{{head, r}}})
		}
		note, r := agendaNote(it)
		spans := []span{{fmt.Sprintf("%-12s ", fit(field(it, "CATEGORY"), 12)), roleDim}, {fmt.Sprintf("%5s ", field(it, "TIME")), roleStrong}, {fmt.Sprintf("%-12s ", note), r}}
		s.rows = append(s.rows, row{key: it.Text("ID"), spans: append(spans, todoSpans(it)...)})
	}
}

// agendaNote says how a line stands to its day.
func agendaNote(it sexp.Plist) (string, role) {
	days := it.Number("DAYS")
	switch it.Word("KIND") {
	case "DEADLINE":
		return "deadline", roleAsk
	case "UPCOMING":
		return "in " + daysOf(days), roleDim
	case "OVERDUE":
		return daysOf(-days) + " ago", roleDeny
	case "SCHEDULED":
		return "scheduled", roleOK
	case "LATE":
		return "late " + daysOf(-days), roleDeny
	}
	return "", rolePlain
}

func daysOf(n int) string {
	if n == 1 {
		return "1 day"
	}
	return fmt.Sprintf("%d days", n)
}

// todoSpans is a heading: its state, its title, its tags.
func todoSpans(p sexp.Plist) []span {
	var out []span
	if todo := field(p, "TODO"); todo != "" {
		r := roleAsk
		if done, _ := p.Get("DONE"); done != nil && !sexp.IsNil(done) || todo == "DONE" || todo == "CANCELLED" {
			r = roleOK
		}
		out = append(out, span{todo + " ", r})
	}
	out = append(out, span{field(p, "TITLE"), rolePlain})
	if tags := texts(p, "TAGS"); len(tags) > 0 {
		out = append(out, span{" ", roleDim}, span{":" + strings.Join(tags, ":") + ":", roleDim})
	}
	return out
}

// outlineRows shows a part of the memex: its text and what is below it.
func outlineRows(s *sheet, p sexp.Plist) {
	s.title = "Memory: " + field(p, "TITLE")
	if s.node != "" {
		s.title = "Memory: " + strings.Join(append(append([]string{field(p, "FILE")}, texts(p, "OUTLINE")...), field(p, "TITLE")), " > ")
		s.text = clean(p.Text("TEXT"))
	}
	for _, c := range plists(p, "CHILDREN") {
		spans := []span{{"* ", roleDim}}
		if s.node == "" {
			spans = []span{{field(c, "FILE") + "  ", roleLink}}
		}
		spans = append(spans, todoSpans(c)...)
		if n := c.Number("BELOW"); n > 0 {
			spans = append(spans, span{" ", roleDim}, span{fmt.Sprintf("(%d)", n), roleDim})
		}
		s.rows = append(s.rows, row{key: c.Text("ID"), spans: spans})
	}
}

// versionRows shows what became of a node, newest first.
func (m *Model) versionRows(s *sheet, p sexp.Plist) {
	s.title = "History: " + field(p, "TITLE")
	for _, v := range plists(p, "VERSIONS") {
		who := field(v, "ACTOR")
		if who == "" {
			who = "you or another program"
		}
		s.rows = append(s.rows, row{
			key: fmt.Sprint(v.Number("OPERATION")), text: clean(v.Text("DIFF")), turn: v.Text("TURN"),
			spans: []span{{m.moment(v.Text("AT")) + "  ", roleDim}, {fmt.Sprintf("%-9s ", field(v, "KIND")), roleAccent}, {who + "  ", roleStrong}, {field(v, "LABEL"), rolePlain}},
		})
	}
	if len(s.rows) == 0 {
		s.text = "Nothing was changed here since the memex was first read."
	}
}

// sessionRows shows the conversations there were, the latest first.
func (m *Model) sessionRows(s *sheet, p sexp.Plist) {
	for _, c := range plists(p, "SESSIONS") {
		name := field(c, "NAME")
		sign := "  "
		if name == m.opt.Session {
			sign = "* "
		}
		s.rows = append(s.rows, row{key: c.Text("NAME"), spans: []span{
			{sign, roleAccent},
			{fmt.Sprintf("%-16s ", fit(name, 16)), roleStrong},
			{m.moment(c.Text("AT")) + "  ", roleDim},
			{fmt.Sprintf("%4d said  ", c.Number("TURNS")), roleDim},
			{field(c, "LAST"), rolePlain},
		}})
	}
}

// moment is a time of the daemon's in this terminal's zone.
func (m *Model) moment(s string) string {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return strings.Repeat(" ", len("02 Jan 15:04"))
	}
	return t.In(m.opt.Now().Location()).Format("02 Jan 15:04")
}
