package tui

import (
	"strings"

	"passepartout/internal/pattern"
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
	lang   string // what is written in it
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
				if rest := text[m.stable+n:]; rest != "" {
					m.tail(l, width, rest)
				}
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
			t := strings.TrimSpace(line)
			return rows, n, ended || t != "" && t[0] != '|'
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
	fenceOpen  = pattern.New("^\\s*(?:(`{3,}|~{3,})\\s*([\\w+-]*)|(?i:#\\+begin_(\\w+))(?:\\s+([\\w+-]*).*)?)\\s*$")
	mdHeading  = pattern.New(`^#{1,6}\s+(.*?)\s*#*\s*$`)
	orgHeading = pattern.New(`^(\*{2,}|\*(?:\s+(?:` + strings.Join(todoWords, "|") + `)\b))`)
	bullet     = pattern.New(`^(\s*)([-+*]|\d{1,3}[.)])\s+(.*)$`)
	quote      = pattern.New(`^\s*>\s?(.*)$`)
	ruleLine   = pattern.New(`^\s*(?:-{3,}|\*{3,}|_{3,})\s*$`)
	orgMeta    = pattern.New(`^\s*(?:#\+\w+:|:[A-Za-z_-]+:(?:\s|$)|(?:SCHEDULED|DEADLINE|CLOSED):)`)
)

// logical lays out one line of the source.
func (m *markup) logical(l look, width int, line string) {
	if m.fence != "" {
		m.code(l, width, line)
		return
	}
	if strings.ContainsAny(line, "`~#") {
		if f := fenceOpen.FindStringSubmatch(line); f != nil {
			m.open(l, width, f)
			return
		}
	}
	first := strings.TrimLeft(line, " ")
	switch {
	case first == "":
		m.put("")
	case line[0] == '#' && mdHeading.MatchString(line):
		m.wrap(l, width, "", []span{{mdHeading.FindStringSubmatch(line)[1], roleHeading}})
	case line[0] == '*' && orgHeading.MatchString(line) && !ruleLine.MatchString(line) && !strings.Contains(strings.TrimLeft(line, "*"), "**"):
		m.wrap(l, width, "", heading(line))
	case strings.IndexByte("-*_", first[0]) >= 0 && ruleLine.MatchString(line):
		m.put(l.paint(roleBorder, strings.Repeat(l.rule, min(width, 40))))
	case strings.IndexByte("#:SDC", first[0]) >= 0 && orgMeta.MatchString(line):
		m.wrap(l, width, "", []span{{line, roleDim}})
	default:
		m.paragraph(l, width, line, first)
	}
}

// paragraph lays out a line of running text; rest is the line without its indent.
func (m *markup) paragraph(l look, width int, line, rest string) {
	if strings.IndexByte("-+*>0123456789", rest[0]) < 0 { // neither list nor quotation
		m.wrap(l, width, line[:len(line)-len(rest)], inline(rest))
		return
	}
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
		bar := line[:min(len(line)-len(rest), width/2)] + l.paint(roleBorder, l.bar) + " "
		m.put(wrap(l, width, bar, bar, cited(q[1]))...)
		return
	}
	m.wrap(l, width, line[:len(line)-len(rest)], inline(rest))
}

// cited is running text in the voice of somebody else.
func cited(s string) []span {
	spans := inline(s)
	for i := range spans {
		if spans[i].role == rolePlain {
			spans[i].role = roleEmph
		}
	}
	return spans
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
	return append([]span{{line[:stars], roleDim}}, keywords(line[stars:], roleHeading)...)
}

// open begins a code block.
func (m *markup) open(l look, width int, f []string) {
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
	m.lang = strings.ToLower(name)
	m.put(fitRow(l.paint(roleBorder, l.corner[0]+l.rule)+l.paint(roleDim, strings.TrimRight(" "+name, " ")), width))
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
	for _, part := range chopSpans(l, highlight(m.lang, line), width-2) {
		m.put(l.paint(roleBorder, l.bar) + " " + part)
	}
}

// maxColumns is how many columns a table may have; more is no table.
const maxColumns = 64

func isRow(line string) bool {
	t := strings.TrimSpace(line)
	return len(t) > 1 && t[0] == '|' && strings.Count(t, "|") <= maxColumns+1
}

// table lays rows out in columns. Where they do not fit, the widest give way and
// their text goes on in further lines: nothing is cut off.
func table(l look, limit int, rows []string) []string {
	cells := make([][]string, len(rows))
	var cols []int
	for i, row := range rows {
		cells[i] = rowCells(row)
		for j, c := range cells[i] {
			if j == len(cols) {
				cols = append(cols, 1)
			}
			if !isRule(row) {
				cols[j] = max(cols[j], ansiWidth(wrap(l, 1<<20, "", "", inline(c))[0]))
			}
		}
	}
	squeeze(cols, limit-3*(len(cols)-1))
	var sides []string
	if len(rows) > 1 && isRule(rows[1]) {
		sides = cells[1]
	}
	var out []string
	for i, cs := range cells {
		if isRule(rows[i]) {
			out = append(out, fitRow(tableRule(l, cols), limit))
			continue
		}
		for _, line := range tableRow(l, cols, cs, sides, i == 0 && sides != nil) {
			out = append(out, fitRow(line, limit))
		}
	}
	return out
}

// rowCells are the cells of a row. A bar after a backslash is one of the text.
func rowCells(row string) []string {
	const bar = "\x00" // cleaned text has none
	row = strings.TrimSpace(strings.ReplaceAll(row, `\|`, bar))
	row = strings.TrimSuffix(strings.TrimPrefix(row, "|"), "|")
	cells := strings.Split(row, "|")
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(strings.TrimSpace(c), bar, "|")
	}
	return cells
}

// isRule reports whether a row only separates others.
func isRule(row string) bool { return strings.Trim(row, "-+:| ") == "" && strings.Contains(row, "-") }

func tableRule(l look, cols []int) string {
	n := 3 * (len(cols) - 1)
	for _, w := range cols {
		n += w
	}
	return l.paint(roleBorder, strings.Repeat(l.rule, n))
}

// aligned puts a cell to the side its column's rule names, as in "---:".
func aligned(cell string, n int, sides []string, column int) string {
	side := ""
	if column < len(sides) {
		side = sides[column]
	}
	gap := max(0, n-ansiWidth(cell))
	switch left, right := strings.HasPrefix(side, ":"), strings.HasSuffix(side, ":"); {
	case right && left:
		return strings.Repeat(" ", gap/2) + cell
	case right:
		return strings.Repeat(" ", gap) + cell
	}
	return cell
}

// tableRow is one row, as many lines tall as its tallest cell.
func tableRow(l look, cols []int, cs, sides []string, head bool) []string {
	parts, tall := make([][]string, len(cols)), 1
	for i, c := range cs {
		spans := inline(c)
		if head {
			spans = []span{{c, roleStrong}}
		}
		parts[i] = wrap(l, cols[i], "", "", spans)
		tall = max(tall, len(parts[i]))
	}
	out := make([]string, tall)
	for y := range out {
		var b strings.Builder
		for i, w := range cols {
			if i > 0 {
				b.WriteString(" " + l.paint(roleBorder, l.bar) + " ")
			}
			cell := ""
			if y < len(parts[i]) {
				cell = aligned(parts[i][y], w, sides, i)
			}
			if i < len(cols)-1 {
				cell = pad(cell, w)
			}
			b.WriteString(cell)
		}
		out[y] = b.String()
	}
	return out
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
