package fovea

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"passepartout/internal/memory"
)

// Focus is where attention lies.
type Focus struct {
	ID     memory.ID   // the node the eye rests on; "" for none
	Query  string      // what is being asked
	Scopes []memory.ID // projects the focus lies in, the current one last
	Pinned []memory.ID // always wanted
	Now    time.Time   // for deadlines; the zero value shows none
	Budget int         // tokens; [DefaultBudget] if 0

	// Threshold is the score, relative to the best hit's, from which a note near
	// in meaning is shown whole; [DefaultThreshold] if 0.
	Threshold float64

	// Leave says that the question may be sent to an embedder that is not on this
	// machine: nothing private has been read by who asks it.
	Leave   bool
	Cloud   bool // the reader is not on this machine: nothing privacy-tagged
	Trusted bool // nothing that is not the person's own
}

// Defaults of a [Focus].
const (
	DefaultBudget    = 4000
	DefaultThreshold = 0.75
)

// Shares of the budget, in per cent, that keep one kind from crowding out others.
const (
	focusShare   = 45
	relatedShare = 30
	oneShare     = 12 // of a single note that is not the focus
	dueShare     = 8
)

// relatedHits is how many notes near in meaning are weighed.
const relatedHits = 24

// Render chooses what of the view to show. Room is given in this order, and what
// comes later is shortened or dropped first: the focused node with what is below
// and above it, projects in focus, pinned nodes, the best notes on the question, deadlines in their
// warning time, linked and linking nodes, what changed since the mirror began, the
// other notes on the question, and the outline down to depth 2.
//
// What a model elsewhere may see can change while it is chosen: a file is labelled as
// soon as a running command has read something private. A choice that was overtaken is
// made again, and in the end nothing is shown.
func (m *Mirror) Render(v *memory.View, f Focus) Context {
	m.Sync(v)
	if f.Budget <= 0 {
		f.Budget = DefaultBudget
	}
	if f.Threshold <= 0 {
		f.Threshold = DefaultThreshold
	}
	for range 3 {
		if c := m.choose(v, f); !f.Cloud || !c.Private {
			return c
		}
	}
	return newPage(v, f).finish()
}

// choose fills a page.
func (m *Mirror) choose(v *memory.View, f Focus) Context {
	p := newPage(v, f)
	focus, focused := v.Get(f.ID)
	if focused {
		p.addFocus(focus)
	}
	for _, id := range slices.Backward(f.Scopes) {
		if o, ok := v.Get(id); ok {
			p.add(want{o: o, section: secPinned, form: Full, reason: "project in focus", most: f.Budget * oneShare / 100})
		}
	}
	for _, id := range f.Pinned {
		if o, ok := v.Get(id); ok {
			p.add(want{o: o, section: secPinned, form: Full, reason: "pinned", most: f.Budget * oneShare / 100})
		}
	}
	near := m.related(v, f, focus)
	rest := p.addRelated(near)
	m.addDue(p)
	if focused {
		m.addLinked(p, focus)
	}
	for _, id := range m.changed() {
		if o, ok := v.Get(id); ok {
			p.add(want{o: o, section: secChanged, form: Full, reason: "changed this session", most: f.Budget * oneShare / 100})
		}
	}
	for _, w := range rest {
		w.form, w.reason = Line, "near in meaning, below the threshold"
		p.add(w)
	}
	p.addOutline(focus.File)
	return p.finish()
}

// addFocus shows the node whole, then what is below it, then the way up.
func (p *page) addFocus(o memory.Object) {
	limit := p.used + p.f.Budget*focusShare/100
	p.add(want{o: o, section: secFocus, form: Full, reason: "focus", most: limit - p.used})
	for up := o; up.Parent != ""; {
		parent, ok := p.v.Get(up.Parent)
		if !ok {
			break
		}
		p.add(want{o: parent, section: secOutline, form: Line, reason: "above the focus"})
		up = parent
	}
	p.addBelow(o, o.Level, limit)
}

// addBelow shows descendants whole while there is room, then as lines, and stops
// where not even a line fits: the rest is only counted.
func (p *page) addBelow(o memory.Object, level, limit int) bool {
	for c := range o.Children() {
		left := min(limit-p.used, p.f.Budget-p.used)
		if left <= 0 || p.full() {
			if p.barred(c) == "" {
				p.drop(entry(want{o: c, section: secFocus}), "no room: below the focus, with its siblings")
			}
			return false
		}
		if p.barred(c) == "" && !p.add(want{o: c, section: secFocus, form: Full, reason: "below the focus", most: left, below: c.Level - level}) {
			return false
		}
		if !p.addBelow(c, level, limit) {
			return false
		}
	}
	return true
}

// related searches for what is near to the question and the focus.
func (m *Mirror) related(v *memory.View, f Focus, focus memory.Object) []want {
	const mostAsked = 400 // bytes of the focus that stand in for a question
	text := f.Query
	if text == "" && focus.ID != "" {
		body := focus.Body()
		text = strings.ToValidUTF8(focus.Title+" "+body[:min(len(body), mostAsked)], "")
	}
	text = strings.ReplaceAll(text, `"`, " ") // a question quotes without meaning a phrase
	if strings.TrimSpace(text) == "" {
		return nil
	}
	var out []want
	best := 0.0
	leave := f.Leave && (f.Query != "" || !v.PrivateObject(focus))
	for _, h := range m.index.SearchNear(text, m.question(text, leave), relatedHits, m.mode) {
		o, ok := v.Get(memory.ID(h.ID))
		if !ok || o.ID == focus.ID {
			continue
		}
		best = max(best, h.Score)
		out = append(out, want{o: o, section: secRelated, form: Full, reason: "near in meaning", score: max(h.Score/best, h.Alike)})
	}
	slices.SortStableFunc(out, func(a, b want) int { return cmp.Compare(b.score, a.score) })
	return out
}

// addRelated shows the best notes and returns those below the threshold.
func (p *page) addRelated(near []want) (rest []want) {
	limit := p.used + p.f.Budget*relatedShare/100
	for i, w := range near {
		left := limit - p.used
		if w.score < p.f.Threshold || left <= 0 {
			return near[i:]
		}
		w.most = min(left, p.f.Budget*oneShare/100)
		p.add(w)
	}
	return nil
}

// addDue shows open deadlines whose warning has begun, as lines.
func (m *Mirror) addDue(p *page) {
	if p.f.Now.IsZero() {
		return
	}
	limit := p.used + p.f.Budget*dueShare/100
	for _, id := range m.due(p.f.Now) {
		o, ok := p.v.Get(id)
		if !ok || o.Done {
			continue
		}
		p.add(want{o: o, section: secDue, form: Line, reason: "deadline within its warning time", most: max(limit-p.used, 1)})
	}
}

// addLinked shows what the focus links to, and what links to it.
func (m *Mirror) addLinked(p *page, focus memory.Object) {
	const most = 24
	n := 0
	show := func(o memory.Object, reason string) {
		if n++; n <= most && o.ID != "" {
			p.add(want{o: o, section: secLinked, form: Full, reason: reason, most: p.f.Budget * oneShare / 200})
		}
	}
	for _, l := range p.v.Links(focus) {
		show(l.To, "linked from the focus")
	}
	for _, id := range m.linking(focus.ID) {
		if o, ok := p.v.Get(id); ok {
			show(o, "links to the focus")
		}
	}
}

// addOutline fills what is left with headings of depth 1 and 2, those of the
// focused file first. It stops when lines no longer fit: a memex of a million
// headings is not walked.
func (p *page) addOutline(near string) {
	misses := 0
	if f, ok := p.v.File(near); ok {
		p.addTops(f, &misses)
	}
	for f := range p.v.FileObjects() {
		if !p.addTops(f, &misses) {
			return
		}
	}
}

// mostMisses is how many headings may be too long for what is left before the
// outline ends.
const mostMisses = 8

// addTops shows the headings below a node and reports whether there may be room
// for more.
func (p *page) addTops(o memory.Object, misses *int) bool {
	const deepest = 2
	for c := range o.Children() {
		if p.full() || *misses >= mostMisses {
			return false
		}
		if p.barred(c) != "" {
			continue
		}
		if !p.add(want{o: c, section: secOutline, form: Line, reason: "depth of at most 2"}) {
			*misses++
		}
		if c.Level < deepest && !p.addTops(c, misses) {
			return false
		}
	}
	return true
}
