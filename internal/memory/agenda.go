package memory

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"passepartout/internal/org"
)

// AgendaQuery asks for the days From to To, both included. Only dates matter, in
// the location the times carry.
type AgendaQuery struct {
	From, To time.Time
	// Now tells which day is today; overdue things and warnings are shown there.
	// From if zero.
	Now time.Time
	// Warning is how many days ahead deadlines are announced; 14 if zero.
	Warning int
	// Match keeps only objects the query matches; nil keeps all.
	Match *Query
}

// AgendaItem is one line of an agenda.
type AgendaItem struct {
	Day time.Time // the day it is shown on, at midnight UTC
	// Kind is "deadline", "upcoming" (a deadline to come), "overdue",
	// "scheduled", "late" (scheduled before today and not done), "date" or "range".
	Kind   string
	Days   int // distance from Day to the date: positive if it is to come
	Stamp  org.Timestamp
	Timed  bool // shown at Stamp's time of day
	Object Object
}

const (
	defaultWarning = 14
	// longestLate is after how many days Emacs stops reminding.
	longestLate = 10000
)

// Agenda lists what the dates in the memex say about some days, as org-agenda-list
// does under stock settings: ordered by day, then time of day, then priority, then
// place. Archived and commented subtrees are left out; diary expressions, which are
// Emacs Lisp, are not evaluated.
func (v *View) Agenda(q AgendaQuery) []AgendaItem {
	if q.To.IsZero() {
		q.To = q.From
	}
	if q.Now.IsZero() {
		q.Now = q.From
	}
	if q.Warning == 0 {
		q.Warning = defaultWarning
	}
	a := agenda{v: v, q: q, from: dayOf(q.From), to: dayOf(q.To), today: dayOf(q.Now)}
	for _, k := range v.sorted {
		n := v.files[k]
		if slices.Contains(n.tagSets[0], "ARCHIVE") || strings.HasSuffix(n.path, ".org_archive") {
			continue
		}
		var m *matcher
		if q.Match != nil {
			m = q.Match.on(v, n)
		}
		for i := range n.stamps {
			if m == nil || m.headline(int(n.stamps[i].head)) {
				a.add(n, &n.stamps[i])
			}
		}
	}
	slices.SortFunc(a.lines, agendaLine.compare)
	items := make([]AgendaItem, len(a.lines))
	for i, l := range a.lines {
		a.fill(&items[i], l)
	}
	return items
}

type agenda struct {
	v               *View
	q               AgendaQuery
	from, to, today int32
	lines           []agendaLine
}

// agendaLine is an item before it is made: small, because lines are sorted.
type agendaLine struct {
	n          *node
	s          *stamp
	kind       string
	day, date  int32
	clock      int32 // minute of the day, -1 without a time
	importance int32
	place      int32 // order in the memex
}

func (a *agenda) add(n *node, s *stamp) {
	done := n.recs[s.head].bits&bitDone != 0
	lo, hi := a.days(s, done)
	for day := lo; day <= hi; day++ {
		kind, date := "", int32(0)
		switch s.kind {
		case stampDeadline:
			kind, date = a.deadline(s, day, done)
		case stampScheduled:
			kind, date = a.scheduled(s, day, done)
		case stampPlain:
			kind, date = a.plain(s, day)
		case stampRange:
			if s.day <= day && day <= s.last {
				kind, date = "range", day
			}
		}
		if kind != "" {
			a.show(n, s, kind, day, date)
		}
	}
}

// days narrows the days a stamp can possibly be shown on, so that most stamps cost
// two comparisons.
func (a *agenda) days(s *stamp, done bool) (lo, hi int32) {
	switch {
	case s.every > 0:
		return a.from, a.to
	case s.kind == stampRange:
		return max(a.from, s.day), min(a.to, s.last)
	case s.kind == stampPlain || done || a.today < a.from || a.today > a.to:
		if s.day < a.from || s.day > a.to {
			return 1, 0
		}
		return s.day, s.day
	}
	return a.from, a.to
}

// deadline tells how a deadline is shown on a day, "" if not at all.
func (a *agenda) deadline(s *stamp, day int32, done bool) (string, int32) {
	repeat := s.day
	if day > a.today {
		repeat = s.occurrence(day, true)
	}
	lead := int32(a.q.Warning)
	if s.lead >= 0 {
		lead = s.lead
	}
	switch {
	case done && s.day != day:
		return "", 0
	case day == s.day:
		return "deadline", s.day
	case day == repeat:
		return "deadline", repeat
	case day != a.today:
		return "", 0
	case s.day > day && s.day-day <= lead:
		return "upcoming", s.day
	case s.day < day && day-s.day <= longestLate:
		return "overdue", s.day
	}
	return "", 0
}

// scheduled tells how a scheduled task is shown on a day.
func (a *agenda) scheduled(s *stamp, day int32, done bool) (string, int32) {
	repeat := s.day
	if day > a.today {
		repeat = s.occurrence(day, true)
	}
	late := day - s.day
	switch {
	case s.lead > 0 && late < s.lead, late > longestLate, s.day > day:
		return "", 0
	case day != s.day && day != a.today && day != repeat:
		return "", 0
	case done && s.day != day:
		return "", 0
	case day == a.today && s.day < a.today:
		return "late", s.day
	}
	return "scheduled", day
}

// plain tells whether a timestamp in running text falls on a day.
func (a *agenda) plain(s *stamp, day int32) (string, int32) {
	if day == s.day {
		return "date", day
	}
	if s.every == 0 {
		return "", 0
	}
	past := s.occurrence(min(day, a.today), false)
	future := past
	if day > a.today {
		future = s.occurrence(day, true)
	}
	if day == past || day == future {
		return "date", day
	}
	return "", 0
}

// show notes a line; what the user sees of it is made after sorting.
func (a *agenda) show(n *node, s *stamp, kind string, day, date int32) {
	l := agendaLine{n: n, s: s, kind: kind, day: day, date: date, clock: -1, place: int32(len(a.lines))}
	if kind != "upcoming" && kind != "overdue" && kind != "late" {
		l.clock = s.clock
	}
	l.importance = l.weight()
	a.lines = append(a.lines, l)
}

func (a *agenda) fill(it *AgendaItem, l agendaLine) {
	a.v.fill(&it.Object, l.n, int(l.s.head))
	it.Day, it.Kind, it.Days, it.Timed = dateOf(l.day), l.kind, int(l.date-l.day), l.clock >= 0
	it.Stamp = *l.s.ts
}

func (l agendaLine) compare(m agendaLine) int {
	if c := cmp.Compare(l.day, m.day); c != 0 {
		return c
	}
	if (l.clock < 0) != (m.clock < 0) {
		return cmp.Compare(m.clock, l.clock) // with a time of day first
	}
	if c := cmp.Compare(l.clock, m.clock); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(m.importance, l.importance), cmp.Compare(l.place, m.place))
}

// weight ranks lines without a time of day: priority, with what is late or near in front.
func (l agendaLine) weight() int32 {
	const perStep, scheduledBonus = 1000, 99
	w := int32(perStep)
	if p := l.n.of.Headline(int(l.s.head)).Priority(); p != "" {
		w = perStep * (int32('A') + 2 - int32(p[0]))
	}
	switch l.kind {
	case "upcoming", "overdue", "deadline":
		w += l.day - l.date
	case "scheduled", "late":
		w += scheduledBonus + l.day - l.date
	}
	return w
}
