package tui

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"
)

// A picker is the command palette: a list narrowed by what is typed.
type picker struct {
	query string
	all   []command
	shown []command
	at    int
}

func (m *Model) openPicker() {
	m.endSearch()
	if m.mode == reasoning {
		m.endReason()
	}
	m.mode = picking
	m.palette = picker{all: commands()}
	m.palette.filter("")
}

// filter keeps the commands whose name has the query's letters in order, or whose
// purpose has the query as it stands; the best match first.
func (p *picker) filter(query string) {
	type scored struct {
		command
		score int
	}
	var out []scored
	for _, c := range p.all {
		score, ok := fuzzy(query, c.name)
		if ok {
			score += 100 // a name beats a description
		} else if !strings.Contains(c.doc, strings.ToLower(query)) {
			continue
		}
		out = append(out, scored{c, score})
	}
	slices.SortStableFunc(out, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	p.query, p.at, p.shown = query, 0, nil
	for _, s := range out {
		p.shown = append(p.shown, s.command)
	}
}

// fuzzy scores how well the letters of query appear in text in order: runs and
// beginnings of words count more, gaps less. The empty query matches everything
// alike.
func fuzzy(query, text string) (score int, ok bool) {
	t := []rune(strings.ToLower(text))
	at, run := 0, 0
	for _, q := range strings.ToLower(query) {
		if q == ' ' {
			continue
		}
		i := slices.Index(t[at:], q)
		if i < 0 {
			return 0, false
		}
		switch {
		case i == 0 && at > 0:
			run++
			score += 3 + run
		default:
			run = 0
			score -= min(i, 3)
		}
		if at+i == 0 || !unicode.IsLetter(t[at+i-1]) {
			score += 6
		}
		at += i + 1
	}
	return score, true
}

// pickerKey takes a key while the palette is open.
func (m *Model) pickerKey(name, typed string) tea.Cmd {
	p := &m.palette
	switch name {
	case "esc", "ctrl+c", "ctrl+p":
		m.mode = chatting
	case "up", "ctrl+k", "shift+tab":
		p.at = max(0, p.at-1)
	case "down", "ctrl+n", "tab":
		p.at = min(len(p.shown)-1, p.at+1)
	case "pgup", "home":
		p.at = 0
	case "pgdown", "end":
		p.at = max(0, len(p.shown)-1)
	case "backspace":
		if r := []rune(p.query); len(r) > 0 {
			p.filter(string(r[:len(r)-1]))
		}
	case "ctrl+u":
		p.filter("")
	case "enter":
		m.mode = chatting
		if len(p.shown) > 0 {
			return m.pick(p.shown[p.at])
		}
	default:
		if typed != "" {
			p.filter(p.query + clean(typed))
		}
	}
	return nil
}

// pick runs a command, or puts it into the input if it needs an argument.
func (m *Model) pick(c command) tea.Cmd {
	if c.args != "" && !strings.HasPrefix(c.args, "[") {
		if v := m.in.Value(); v != "" {
			m.hist.add(v) // Up brings it back
		}
		m.in.SetValue("/" + c.name + " ")
		m.in.MoveToEnd()
		return nil
	}
	return m.command(c.name, nil)
}

// nameWidth is the palette's left column, with the blank that ends it.
const nameWidth = 24

// view is the palette as a box of at most height rows.
func (p *picker) view(l look, width, height int) []string {
	inner := width - 4
	rows := min(len(p.shown), max(1, height-3))
	first := max(0, min(p.at-rows/2, len(p.shown)-rows))
	body := []string{l.paint(roleAccent, l.prompt) + l.short(p.query+"_", inner-2)}
	for i := first; i < first+rows; i++ {
		c := p.shown[i]
		name, doc := pad(l.short(strings.TrimSpace("/"+c.name+" "+c.args), nameWidth-1), nameWidth), l.short(c.doc, inner-nameWidth)
		if i == p.at {
			body = append(body, l.paint(roleSelect, pad(name+doc, inner)))
			continue
		}
		body = append(body, l.paint(roleStrong, name)+l.paint(roleDim, doc))
	}
	if len(p.shown) == 0 {
		body = append(body, l.paint(roleDim, "nothing of that name"))
	}
	return box(l, width, roleAccent, "commands", body)
}
