package tui

import (
	"regexp"
	"strings"
)

// A markup lays text out line by line. Everything up to stable is final: text
// appended later cannot change it, so a stream costs its last line only.
type markup struct {
	head   string   // what stands above the text
	indent string   // before every line
	lines  []string // the layout of the whole
	kept   int      // of which this many belong to the head and text[:stable]
	stable int
	fence  string // what ends the code block that is open at stable, "" for none
}

// maxTable bounds how many rows are aligned with one another.
const maxTable = 200

// below begins again if what stands above the text has changed.
func (m *markup) below(head []string, indent string) *markup {
	if joined := strings.Join(head, "\n"); m.kept == 0 || joined != m.head {
		*m = markup{head: joined, indent: indent, lines: head, kept: len(head)}
	}
	return m
}

// put adds lines of layout.
func (m *markup) put(lines ...string) {
	for _, s := range lines {
		m.lines = append(m.lines, m.indent+s)
	}
}

// update lays out what the text has beyond the stable part.
func (m *markup) update(l look, width int, text string) []string {
	width = max(width-len(m.indent), 1)
	m.lines = m.lines[:m.kept]
	for m.stable < len(text) {
		end := strings.IndexByte(text[m.stable:], '\n')
		if end < 0 {
			m.tail(l, width, text[m.stable:])
			return m.lines
		}
		line := text[m.stable : m.stable+end]
		if m.fence == "" && isRow(line) {
			rows, n, closed := tableAt(text[m.stable:])
			m.put(table(l, width, rows)...)
			if !closed {
				return m.lines
			}
			m.settle(n)
			continue
		}
		m.logical(l, width, line)
		m.settle(end + 1)
	}
	return m.lines
}

func (m *markup) settle(n int) {
	m.stable += n
	m.kept = len(m.lines)
}

// tail lays out a last line that has not ended, leaving the state as it is.
func (m *markup) tail(l look, width int, line string) {
	if m.fence == "" && isRow(line) {
		m.put(table(l, width, []string{line})...)
		return
	}
	fence := m.fence
	m.logical(l, width, line)
	m.fence = fence
}

// tableAt is the run of table rows a text begins with, its length in bytes, and
// whether it can grow no more.
func tableAt(text string) (rows []string, n int, closed bool) {
	for n < len(text) && len(rows) < maxTable {
		line, _, ended := strings.Cut(text[n:], "\n")
		if !isRow(line) {
			return rows, n, ended || line != ""
		}
		rows = append(rows, line)
		n += len(line)
		if ended {
			n++
		}
	}
	return rows, n, len(rows) == maxTable
}

var (
	fenceOpen  = regexp.MustCompile("^\\s*(?:(`{3,}|~{3,})\\s*([\\w+-]*)|(?i:#\\+begin_(\\w+))(?:\\s+([\\w+-]*).*)?)\\s*$")
	mdHeading  = regexp.MustCompile(`^#{1,6}\s+(.*?)\s*#*\s*$`)
	orgHeading = regexp.MustCompile(`^(\*{2,}|\*(?:\s+(?:TODO|DONE|NEXT|WAITING|CANCELLED)\b))`)
	bullet     = regexp.MustCompile(`^(\s*)([-+*]|\d{1,3}[.)])\s+(.*)$`)
	quote      = regexp.MustCompile(`^\s*>\s?(.*)$`)
	ruleLine   = regexp.MustCompile(`^\s*(?:-{3,}|\*{3,}|_{3,})\s*$`)
	orgMeta    = regexp.MustCompile(`^\s*(?:#\+\w+:|:[A-Za-z_-]+:(?:\s|$)|(?:SCHEDULED|DEADLINE|CLOSED):)`)
)

// logical lays out one line of the source.
func (m *markup) logical(l look, width int, line string) {
	if m.fence != "" {
		m.code(l, width, line)
		return
	}
	if strings.ContainsAny(line, "`~#") {
		if f := fenceOpen.FindStringSubmatch(line); f != nil {
			m.open(l, f)
			return
		}
	}
	switch {
	case strings.TrimSpace(line) == "":
		m.put("")
	case line[0] == '#' && mdHeading.MatchString(line):
		m.wrap(l, width, "", []span{{mdHeading.FindStringSubmatch(line)[1], roleHeading}})
	case line[0] == '*' && orgHeading.MatchString(line) && !ruleLine.MatchString(line) && !strings.Contains(strings.TrimLeft(line, "*"), "**"):
		m.wrap(l, width, "", heading(line))
	case ruleLine.MatchString(line):
		m.put(l.paint(roleBorder, strings.Repeat(l.rule, min(width, 40))))
	case orgMeta.MatchString(line):
		m.wrap(l, width, "", []span{{line, roleDim}})
	default:
		m.paragraph(l, width, line)
	}
}

func (m *markup) paragraph(l look, width int, line string) {
	if b := bullet.FindStringSubmatch(line); b != nil {
		mark := b[2]
		if len(mark) == 1 {
			mark = l.bullet
		}
		first := b[1] + l.paint(roleAccent, mark) + " "
		m.put(wrap(l, width, first, strings.Repeat(" ", len(b[1])+len([]rune(mark))+1), inline(b[3]))...)
		return
	}
	if q := quote.FindStringSubmatch(line); q != nil {
		first := l.paint(roleBorder, l.bar) + " "
		m.put(wrap(l, width, first, "  ", []span{{q[1], roleEmph}})...)
		return
	}
	rest := strings.TrimLeft(line, " ")
	m.wrap(l, width, line[:len(line)-len(rest)], inline(rest))
}

// wrap lays out spans whose further lines are indented like the first.
func (m *markup) wrap(l look, width int, indent string, spans []span) {
	hang := indent
	if len(hang) > width/2 {
		indent, hang = hang[:width/2], "  "
	}
	m.put(wrap(l, width, indent, hang, spans)...)
}

// heading is an Org heading: the stars fade, the rest stands out.
func heading(line string) []span {
	stars := len(line) - len(strings.TrimLeft(line, "*"))
	spans := []span{{line[:stars], roleDim}}
	for _, s := range keywords(line[stars:], roleHeading) {
		spans = append(spans, s)
	}
	return spans
}

func (m *markup) open(l look, f []string) {
	name := f[2]
	switch {
	case f[1] != "":
		m.fence = f[1]
	default:
		m.fence = "#+end_" + strings.ToLower(f[3])
		if name = f[4]; name == "" {
			name = strings.ToLower(f[3])
		}
	}
	m.put(l.paint(roleBorder, l.corner[0]+l.rule) + l.paint(roleDim, strings.TrimRight(" "+name, " ")))
}

// code lays out a line of a code block, or its end.
func (m *markup) code(l look, width int, line string) {
	trimmed := strings.ToLower(strings.TrimSpace(line))
	if trimmed == m.fence || m.fence[0] != '#' && strings.HasPrefix(trimmed, m.fence) && strings.Trim(trimmed, m.fence[:1]) == "" {
		m.fence = ""
		m.put(l.paint(roleBorder, l.corner[3]+l.rule))
		return
	}
	if l.plain {
		line = ascii(line)
	}
	for _, part := range chop(line, width-2) {
		m.put(l.paint(roleBorder, l.bar) + " " + l.paint(roleCode, part))
	}
}

func isRow(line string) bool {
	t := strings.TrimSpace(line)
	return len(t) > 1 && t[0] == '|'
}

// table lays rows out in columns. Where they do not fit, the widest give way.
func table(l look, limit int, rows []string) []string {
	var cells [][]string
	var rules []bool
	var cols []int
	for _, row := range rows {
		t := strings.Trim(strings.TrimSpace(row), "|")
		rule := t != "" && strings.Trim(t, "-+:| ") == ""
		rules = append(rules, rule)
		var cs []string
		for i, c := range strings.Split(t, "|") {
			c = strings.TrimSpace(c)
			if l.plain {
				c = ascii(c)
			}
			cs = append(cs, c)
			if i == len(cols) {
				cols = append(cols, 1)
			}
			if !rule {
				cols[i] = max(cols[i], width(c))
			}
		}
		cells = append(cells, cs)
	}
	squeeze(cols, limit-3*(len(cols)-1))
	out := make([]string, len(rows))
	for i, cs := range cells {
		out[i] = pad(tableRow(l, cols, cs, rules[i], i+1 < len(rules) && rules[i+1] && i == 0), limit)
		out[i] = strings.TrimRight(out[i], " ")
	}
	return out
}

func tableRow(l look, cols []int, cs []string, rule, head bool) string {
	var b strings.Builder
	for i, w := range cols {
		if rule {
			if i > 0 {
				b.WriteString(l.paint(roleBorder, l.rule+l.rule+l.rule))
			}
			b.WriteString(l.paint(roleBorder, strings.Repeat(l.rule, w)))
			continue
		}
		if i > 0 {
			b.WriteString(" " + l.paint(roleBorder, l.bar) + " ")
		}
		c := ""
		if i < len(cs) {
			c = pad(l.short(cs[i], w), w)
		} else {
			c = strings.Repeat(" ", w)
		}
		if head {
			c = l.paint(roleStrong, c)
		}
		b.WriteString(c)
	}
	return b.String()
}

// squeeze narrows the widest columns until they fit together.
func squeeze(cols []int, limit int) {
	for {
		sum, widest := 0, 0
		for i, c := range cols {
			sum += c
			if c > cols[widest] {
				widest = i
			}
		}
		if sum <= limit || cols[widest] <= 3 {
			return
		}
		cols[widest] = max(3, cols[widest]-(sum-limit+1)/2)
	}
}
