package org

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// head is a headline as offsets: beg is absolute, everything else relative to
// it, so that text changed elsewhere in the file moves a headline by one addition.
type head struct {
	beg    int
	parent int32 // index of the parent, -1 at the top
	after  int32 // index of the first headline past the subtree
	level  int32 // number of stars

	lineEnd, lineNext uint32 // end of the line's content, start of the next line
	todoBeg, todoEnd  uint32
	prioBeg, prioEnd  uint32 // the character inside [#x]
	comment           uint32 // start of the word COMMENT, 0 if absent
	titleBeg          uint32
	titleEnd          uint32
	tagsBeg, tagsEnd  uint32 // :a:b:
	planEnd           uint32 // end of the planning line's content, 0 if absent
	drawerBeg         uint32 // :PROPERTIES: line, 0 if absent
	body              uint32 // first byte after planning line and drawer
	done              bool
}

// findHeads appends the headlines whose stars lie in [at,limit); at must be a line start.
// Only beg, level and the line's ends are filled in.
func findHeads(f *File, heads []head, at, limit int) []head {
	b := f.src
	for at < limit {
		if b[at] != '*' {
			if at = nextStarLine(b, at, limit); at >= limit {
				break
			}
		}
		s := at
		for s < len(b) && b[s] == '*' {
			s++
		}
		if s == len(b) {
			break
		}
		if b[s] != ' ' {
			at = s
			continue
		}
		e, n := f.eol(s)
		if len(heads) == cap(heads) {
			heads = grow(heads, at, limit)
		}
		heads = append(heads, head{beg: at, level: int32(s - at), lineEnd: uint32(e - at), lineNext: uint32(n - at)})
		if n == limit {
			break
		}
		at = n
	}
	return heads
}

// grow makes room for as many headlines as the rest of the file will hold if it
// goes on like the part before at.
func grow(heads []head, at, limit int) []head {
	n := len(heads)
	more := int(float64(n) / float64(at+1) * float64(limit-at))
	return slices.Grow(heads, min(max(more+more/16, n/4, 16), limit-at))
}

// nextStarLine finds the next star at the beginning of a line, from i on.
func nextStarLine(b []byte, i, limit int) int {
	for i < limit {
		j := bytes.IndexByte(b[i:limit], '*')
		if j < 0 {
			return limit
		}
		if i += j; i > 0 && b[i-1] == '\n' {
			return i
		}
		i++
	}
	return limit
}

// link fills in parent and after from the levels.
func link(heads []head) {
	open := int32(-1) // innermost headline still open; parents chain outward
	for i := range heads {
		h := &heads[i]
		for open >= 0 && heads[open].level >= h.level {
			heads[open].after = int32(i)
			open = heads[open].parent
		}
		h.parent = open
		open = int32(i)
	}
	for ; open >= 0; open = heads[open].parent {
		heads[open].after = int32(len(heads))
	}
}

// parseHead reads the headline line, the planning line and the property drawer.
func parseHead(f *File, h *head) {
	b, beg := f.src, h.beg
	end := beg + int(h.lineEnd)
	p := skipBlank(b, beg+int(h.level), end)
	h.todoBeg, h.todoEnd, h.prioBeg, h.prioEnd = uint32(p-beg), uint32(p-beg), 0, 0
	h.comment, h.tagsBeg, h.tagsEnd, h.done = 0, 0, 0, false

	q := p
	for q < end && b[q] != ' ' {
		q++
	}
	if q > p {
		if done, ok := f.set.keyword(b[p:q]); ok {
			h.todoEnd, h.done = uint32(q-beg), done
			p = skipBlank(b, q, end)
		}
	}
	if p+3 < end && b[p] == '[' && b[p+1] == '#' {
		_, w := utf8.DecodeRune(b[p+2 : end])
		if c := p + 2 + w; c < end && b[c] == ']' {
			h.prioBeg, h.prioEnd = uint32(p+2-beg), uint32(c-beg)
			p = skipBlank(b, c+1, end)
		}
	}
	const comment = "COMMENT"
	if bytes.HasPrefix(b[p:end], []byte(comment)) && (p+len(comment) == end || b[p+len(comment)] == ' ') {
		h.comment = uint32(p - beg)
		p = skipBlank(b, p+len(comment), end)
	}
	if t := findTags(b, p, end); !t.Empty() {
		h.tagsBeg, h.tagsEnd = uint32(t.Start-beg), uint32(t.End-beg)
		end = t.Start
	}
	title := trimSpan(b, p, end)
	h.titleBeg, h.titleEnd = uint32(title.Start-beg), uint32(title.End-beg)
	parseMeta(f, h)
}

// findTags finds the leftmost :tag:tag: that reaches the end of the line.
func findTags(b []byte, p, end int) Span {
	e := trimRight(b, p, end)
	if e-p < 3 || b[e-1] != ':' {
		return Span{}
	}
	s := e
	for s > p {
		r, w := utf8.DecodeLastRune(b[p:s])
		if !tagChar(r) || r == utf8.RuneError && w == 1 {
			break
		}
		s -= w
	}
	for s < e && b[s] != ':' {
		s++
	}
	if e-s < 3 {
		return Span{}
	}
	return Span{s, e}
}

// parseMeta finds the planning line and the property drawer, which count only in
// exactly this place: right after the headline, in this order.
func parseMeta(f *File, h *head) {
	n := h.beg + int(h.lineNext)
	h.planEnd, h.drawerBeg, h.body = 0, 0, h.lineNext
	if n >= len(f.src) || f.src[n] == '*' {
		return
	}
	e, next := f.eol(n)
	if q := skipBlank(f.src, n, e); isPlanning(f.src[:e], q) {
		h.planEnd = uint32(e - h.beg)
		h.body = uint32(next - h.beg)
		n = next
	}
	if d := f.propDrawer(n, len(f.src)); !d.Empty() {
		h.drawerBeg = uint32(d.Start - h.beg)
		h.body = uint32(d.End - h.beg)
	}
}

func isPlanning(line []byte, q int) bool {
	if q >= len(line) {
		return false
	}
	switch upper(line[q]) {
	case 'S':
		return hasFold(line, q, "SCHEDULED:")
	case 'D':
		return hasFold(line, q, "DEADLINE:")
	case 'C':
		return hasFold(line, q, "CLOSED:")
	}
	return false
}

// propDrawer returns the property drawer that starts at the line p, or an empty
// span. Every line in it must be a property, else it is an ordinary drawer.
func (f *File) propDrawer(p, limit int) Span {
	if p >= limit {
		return Span{}
	}
	e, n := f.eol(p)
	q := skipBlank(f.src, p, e)
	const open, shut = ":PROPERTIES:", ":END:"
	if q == e || f.src[q] != ':' || !hasFold(f.src[:e], q, open) || trimRight(f.src, q, e) != q+len(open) {
		return Span{}
	}
	for l := n; l < limit; l = n {
		e, n = f.eol(l)
		q = skipBlank(f.src, l, e)
		if q >= e || f.src[q] != ':' {
			return Span{}
		}
		if hasFold(f.src[:e], q, shut) && trimRight(f.src, q, e) == q+len(shut) {
			return Span{p, n}
		}
		if _, _, ok := propLine(f.src, q, e); !ok {
			return Span{}
		}
	}
	return Span{}
}

// propLine reads ":key: value" starting at the colon q.
func propLine(b []byte, q, e int) (key, value Span, ok bool) {
	k := q + 1
	for k < e {
		if c := b[k]; c < utf8.RuneSelf {
			if c <= ' ' && spaceChar(rune(c)) {
				break
			}
			k++
			continue
		}
		r, w := utf8.DecodeRune(b[k:e])
		if spaceChar(r) {
			break
		}
		k += w
	}
	if k-q < 3 || b[k-1] != ':' || k < e && !blank(b[k]) {
		return Span{}, Span{}, false
	}
	v := skipBlank(b, k, e)
	return Span{q + 1, k - 1}, Span{v, max(v, trimRight(b, v, e))}, true
}

// fileDrawer finds the file-level drawer: only blank lines and then comments may precede it.
func (f *File) fileDrawer() Span {
	limit := f.headStart(0)
	p := f.skipLines(f.bom, limit, func(q, e int) bool { return q == e })
	p = f.skipLines(p, limit, func(q, e int) bool { return f.isComment(q, e) })
	return f.propDrawer(p, limit)
}

// skipLines passes the lines for which ok(first non-blank, end) holds.
func (f *File) skipLines(p, limit int, ok func(q, e int) bool) int {
	for p < limit {
		e, n := f.eol(p)
		if !ok(skipBlank(f.src, p, e), e) {
			break
		}
		p = n
	}
	return p
}

func (f *File) isComment(q, e int) bool {
	return q < e && f.src[q] == '#' && (q+1 == e || f.src[q+1] == ' ')
}
