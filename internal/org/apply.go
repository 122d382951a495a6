package org

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Patch replaces the bytes [Start,End) of a file by Text.
type Patch struct {
	Start, End int
	Text       []byte
}

// ErrPatch means patches overlap or reach outside the file: they were made for another text.
var ErrPatch = errors.New("patch does not fit the file")

// Apply returns the file with the patches carried out; offsets are those of f,
// in any order, not overlapping. Only the sections the patches touch are read
// again, unless a setting of the whole file stands in them.
func (f *File) Apply(patches []Patch) (*File, error) {
	ps, err := f.checked(patches)
	if err != nil {
		return nil, err
	}
	if len(ps) == 0 {
		return f, nil
	}
	src := f.splice(ps)
	lo, hi := ps[0].Start, ps[len(ps)-1].End
	if g := f.reread(src, lo, hi); g != nil {
		return g, nil
	}
	return ParseWith(src, f.opt), nil
}

// Inverse returns the patches that turn the patched file back into f.
func (f *File) Inverse(patches []Patch) ([]Patch, error) {
	ps, err := f.checked(patches)
	if err != nil {
		return nil, err
	}
	out := make([]Patch, len(ps))
	shift := 0
	for i, p := range ps {
		out[i] = Patch{p.Start + shift, p.Start + shift + len(p.Text), f.src[p.Start:p.End:p.End]}
		shift += len(p.Text) - (p.End - p.Start)
	}
	return out, nil
}

// checked sorts the patches and makes sure they fit.
func (f *File) checked(patches []Patch) ([]Patch, error) {
	ps := slices.Clone(patches)
	slices.SortStableFunc(ps, func(a, b Patch) int { return a.Start - b.Start })
	at := 0
	for _, p := range ps {
		if p.Start < at || p.End < p.Start || p.End > len(f.src) {
			return nil, fmt.Errorf("%w: %d to %d in %d bytes, after %d", ErrPatch, p.Start, p.End, len(f.src), at)
		}
		at = p.End
	}
	return ps, nil
}

func (f *File) splice(ps []Patch) []byte {
	n := len(f.src)
	for _, p := range ps {
		n += len(p.Text) - (p.End - p.Start)
	}
	src := make([]byte, 0, n)
	at := 0
	for _, p := range ps {
		src = append(append(src, f.src[at:p.Start]...), p.Text...)
		at = p.End
	}
	return append(src, f.src[at:]...)
}

// reread builds the File of src, which differs from f only inside what was
// [lo,hi), from f's records and a reading of the sections around that range. It
// returns nil where the change may reach further and all must be read.
func (f *File) reread(src []byte, lo, hi int) *File {
	delta := len(src) - len(f.src)
	bom := 0
	if bytes.HasPrefix(src, []byte(byteOrderMark)) {
		bom = len(byteOrderMark)
	}
	if bom != f.bom || lo < bom || len(src) > maxSource || len(f.src) > maxSource {
		return nil
	}
	// a: first headline read again (a section also ends differently when the
	// byte before it changes); b: first headline left as it is.
	a, b := max(0, f.headAfter(lo-1)-1), f.headAfter(hi)
	beg, end := f.bom, f.headStart(b)
	if lo > f.headStart(0) {
		beg = f.heads[a].beg
	}
	g := &File{src: src, opt: f.opt, bom: f.bom, drawer: f.drawer, set: f.set, reparsed: Span{beg, end + delta}}
	if !g.keepsLineEnds(f, beg, end, delta) ||
		nextSetting(f.src, beg, end, f.bom) >= 0 || nextSetting(src, beg, end+delta, f.bom) >= 0 {
		return nil
	}
	g.set = f.set.shifted(end, delta)
	heads := make([]head, 0, len(f.heads)+4)
	heads = append(heads, f.heads[:a]...)
	heads = findHeads(g, heads, beg, end+delta)
	for i := a; i < len(heads); i++ {
		parseHead(g, &heads[i])
	}
	fresh := len(heads)
	heads = append(heads, f.heads[b:]...)
	for i := fresh; i < len(heads); i++ {
		heads[i].beg += delta
	}
	g.heads = heads
	if !sameLevels(f.heads[a:b], heads[a:fresh]) {
		link(heads)
	} else {
		for i := a; i < fresh; i++ {
			heads[i].parent, heads[i].after = f.heads[i].parent, f.heads[i].after
		}
	}
	if beg == f.bom {
		g.drawer = g.fileDrawer()
	}
	g.radio = sync.OnceValue(func() []string { return radioTargets(g) })
	g.editable = sync.OnceValue(g.checkEncoding)
	if f.editable() == nil && plainText(src[beg:end+delta]) && !enriched(src[bom:]) {
		g.editable = func() error { return nil }
	}
	return g
}

// keepsLineEnds carries over the file's line end convention, or reports that the
// change may alter it.
func (g *File) keepsLineEnds(f *File, beg, end, delta int) bool {
	g.crlf, g.firstLF = f.crlf, f.firstLF
	switch {
	case f.firstLF >= 0 && f.firstLF < beg:
		return true
	case f.firstLF >= end:
		g.firstLF += delta
		_, bare := lineEnds(g.src[beg : end+delta])
		if bare >= 0 {
			g.firstLF = beg + bare
		}
		return true
	case f.firstLF >= 0:
		g.crlf, g.firstLF = lineEnds(g.src)
		return g.crlf == f.crlf
	case f.crlf && (beg > f.bom || end < len(f.src)):
		_, bare := lineEnds(g.src[beg : end+delta])
		return bare < 0
	}
	return false
}

func sameLevels(a, b []head) bool {
	return slices.EqualFunc(a, b, func(x, y head) bool { return x.level == y.level })
}

// shifted is the settings with the spans behind end moved by delta.
func (s *settings) shifted(end, delta int) *settings {
	if n := len(s.keywords); delta == 0 || n == 0 || s.keywords[n-1].Span.Start < end {
		return s
	}
	c := *s
	c.keywords = slices.Clone(s.keywords)
	for i := range c.keywords {
		if k := &c.keywords[i]; k.Span.Start >= end {
			k.Span.Start += delta
			k.Span.End += delta
		}
	}
	return &c
}

// Correspond says, for each headline of next, which headline of prev it was, or
// -1 if it is new: by id; else by path and content; else by path, in order; else,
// for one that was moved, by content alone.
func Correspond(prev, next *File) []int {
	out := make([]int, next.Len())
	taken := make([]bool, prev.Len())
	for i := range out {
		out[i] = -1
	}
	for _, key := range []func(Headline) string{
		func(h Headline) string { return h.ID() },
		func(h Headline) string { return h.pathKey() + "\x00" + h.f.Text(h.SectionSpan()) },
		func(h Headline) string { return h.pathKey() },
		func(h Headline) string { return h.f.Text(h.SectionSpan()) },
	} {
		byKey := map[string][]int{}
		for h := range prev.Headlines() {
			if k := key(h); !taken[h.i] && k != "" {
				byKey[k] = append(byKey[k], h.i)
			}
		}
		for h := range next.Headlines() {
			if out[h.i] >= 0 {
				continue
			}
			if old := byKey[key(h)]; len(old) > 0 {
				out[h.i], taken[old[0]] = old[0], true
				byKey[key(h)] = old[1:]
			}
		}
	}
	return out
}

// pathKey is the outline path as one string that no title can imitate.
func (h Headline) pathKey() string {
	var sb bytes.Buffer
	for _, t := range h.Path() {
		sb.WriteByte('\n') // a title holds no line end
		sb.WriteString(t)
	}
	return sb.String()
}
