package tui

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"passepartout/internal/sexp"
)

// An overview is what stands beside the conversation.
type overview struct {
	focus            []string
	pinned           int
	tokens, limit    int
	cost, cap        string
	jobs, waiting    int
	running, touched []string
	protection, note string
	work             []work
}

// A work is something that takes long, and how far it is.
type work struct {
	what       string
	have, want int
}

func readWork(p sexp.Plist) []work {
	var out []work
	for _, w := range plists(p, "WORK") {
		if one := (work{field(w, "WHAT"), w.Number("HAVE"), w.Number("WANT")}); one.have < one.want {
			out = append(out, one)
		}
	}
	return out
}

func readOverview(p sexp.Plist) overview {
	return overview{
		focus: texts(p, "FOCUS"), pinned: p.Number("PINNED"), tokens: p.Number("TOKENS"), limit: p.Number("LIMIT"),
		cost: field(p, "COST"), cap: field(p, "CAP"), jobs: p.Number("JOBS"), waiting: p.Number("WAITING"),
		running: texts(p, "RUNNING"), touched: texts(p, "TOUCHED"), protection: field(p, "PROTECTION"), note: field(p, "PROTECTION-NOTE"),
		work: readWork(p),
	}
}

// busy reports whether something goes on that a person may want to watch.
func (o overview) busy() bool { return len(o.running) > 0 || len(o.work) > 0 }

// lookAgain is how long after an overview the next is asked for, while something
// goes on.
const lookAgain = 2 * time.Second

// looked takes an overview. Only while something goes on is there another.
func (m *Model) looked(p sexp.Plist) tea.Cmd {
	m.over = readOverview(p)
	if !m.over.busy() {
		return nil
	}
	m.looking++
	return later(lookAgain, tickMsg{what: "look", gen: m.looking})
}

// worked takes what long work goes on. When there is none any more, what it leaves
// to be done is asked for.
func (m *Model) worked(p sexp.Plist) tea.Cmd {
	m.over.work = readWork(p)
	m.looking++
	if len(m.over.work) == 0 {
		m.ask("overview")
		return nil
	}
	return later(lookAgain, tickMsg{what: "look", gen: m.looking})
}

// meter is a measure of n cells with its share filled.
func (l look) meter(part, whole int, n int) string {
	full := 0
	if whole > 0 {
		full = max(0, min(n, part*n/whole))
	}
	return strings.Repeat(l.full, full) + strings.Repeat(l.empty, n-full)
}

// gauge is how full the context is, in the colour of how much that matters.
func (l look) gauge(tokens, limit int, n int) (string, role) {
	percent := tokens * 100 / max(limit, 1)
	r := roleDeny
	switch {
	case percent < 50:
		r = roleOK
	case percent < 80:
		r = roleWarn
	case percent < 95:
		r = roleHigh
	}
	return fmt.Sprintf("%s %d%%", l.meter(tokens, limit, n), percent), r
}

// progress is long work as a bar and a count; "" when there is none.
func (m *Model) progress(n int) string {
	if len(m.over.work) == 0 {
		return ""
	}
	w := m.over.work[0]
	return fmt.Sprintf("%s %s %d/%d", w.what, m.look().meter(w.have, w.want, n), w.have, w.want)
}

// starting is how far the daemon is that is not there yet, for the newest dial.
func (m *Model) starting(try int) tea.Cmd {
	if m.link != nil || m.opt.Starting == nil || try != m.try {
		return nil
	}
	m.over.work = nil
	if what, have, want := m.opt.Starting(); have < want {
		m.over.work = []work{{clean(oneLine(what)), have, want}}
	}
	return later(spinEvery, tickMsg{what: "start", gen: try})
}

// A fact is one line of the side bar.
type fact struct {
	label, value string
	role         role
}

// facts are what is known of the daemon, for the side bar and /status.
func (m *Model) facts() []fact {
	link := fact{"daemon", "connected", rolePlain}
	if m.link == nil {
		link = fact{"daemon", m.down, roleDeny}
	}
	out := []fact{{"session", m.opt.Session, rolePlain}, link}
	h, o, l := m.health, m.over, m.look()
	if h.gates == 0 {
		return out
	}
	if !h.started.IsZero() {
		out = append(out, fact{"since", h.started.In(m.opt.Now().Location()).Format("02 Jan 15:04"), rolePlain})
	}
	if n := len(o.focus); n > 0 {
		out = append(out, fact{"focus", o.focus[n-1], roleAccent})
	}
	if o.pinned > 0 {
		out = append(out, fact{"pinned", fmt.Sprint(o.pinned), rolePlain})
	}
	if o.limit > 0 {
		v, r := l.gauge(o.tokens, o.limit, 12)
		out = append(out, fact{"context", v, r})
	}
	if o.cost != "" {
		cost := o.cost + " today"
		if o.cap != "" && o.cap != "none" {
			cost = o.cost + " of " + o.cap
		}
		out = append(out, fact{"cost", cost, rolePlain})
	}
	if o.protection != "" {
		r := roleOK
		if o.protection != "full" {
			r = roleHigh
		}
		out = append(out, fact{"sandbox", o.protection, r})
	}
	if o.jobs > 0 || len(o.running) > 0 {
		jobs := fmt.Sprint(o.jobs)
		if len(o.running) > 0 {
			jobs += ", running " + strings.Join(o.running, ", ")
		}
		out = append(out, fact{"jobs", jobs, rolePlain})
	}
	for _, w := range o.work {
		out = append(out, fact{w.what, fmt.Sprintf("%s %d/%d", l.meter(w.have, w.want, 8), w.have, w.want), roleAccent})
	}
	return append(
		out,
		fact{"approvals", fmt.Sprintf("%d open", len(m.asks)), rolePlain},
		fact{"gates", fmt.Sprint(h.gates), rolePlain},
		fact{"policy", fit(h.policy, 12), rolePlain},
		fact{"journal", fmt.Sprintf("entry %d", h.journal), rolePlain},
		fact{"memex", h.memex, rolePlain},
		fact{"headings", fmt.Sprint(h.headings), rolePlain},
		fact{"clients", fmt.Sprint(h.clients), rolePlain})
}
