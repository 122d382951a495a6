package org

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
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
	parts := make([][]byte, 0, 2*len(ps)+1)
	at := 0
	for _, p := range ps {
		parts = append(parts, f.src[at:p.Start], p.Text)
		at = p.End
	}
	return bytes.Join(append(parts, f.src[at:]), nil) // Join does not clear what it is about to fill
}

// reread builds the File of src, which differs from f only inside what was
// [lo,hi), from f's records and a reading of the sections around that range. It
// returns nil where the change may reach further and all must be read.
func (f *File) reread(src []byte, lo, hi int) *File {
	delta := len(src) - len(f.src)
	bom := markLen(src)
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
	fresh := findHeads(g, nil, beg, end+delta)
	for i := range fresh {
		parseHead(g, &fresh[i])
	}
	g.heads = spliceHeads(f.heads, fresh, a, b)
	for i := a + len(fresh); i < len(g.heads); i++ {
		g.heads[i].beg += delta
	}
	if beg == f.bom {
		g.drawer = g.fileDrawer()
	}
	if f.Editable() == nil && plainText(src[beg:end+delta]) && !enriched(src[bom:]) {
		g.encodingOnce.Do(func() {}) // known: nothing else changed
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

// spliceHeads puts fresh in the place of heads[a:b]. Where the levels are the
// same the tree is, too, and the links are kept.
func spliceHeads(heads, fresh []head, a, b int) []head {
	same := slices.EqualFunc(heads[a:b], fresh, func(x, y head) bool { return x.level == y.level })
	if !same {
		out := slices.Concat(heads[:a], fresh, heads[b:])
		link(out)
		return out
	}
	out := append([]head(nil), heads...)
	for i, h := range fresh {
		h.parent, h.after = heads[a+i].parent, heads[a+i].after
		out[a+i] = h
	}
	return out
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
