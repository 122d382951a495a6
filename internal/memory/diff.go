package memory

import (
	"bytes"
	"slices"
	"sort"

	"passepartout/internal/org"
)

// hunksBetween describes the change from one version of a file to another as few,
// small replacements: sections that are equal in both and in order stay, and what
// lies between them is trimmed to what really differs.
func hunksBetween(old, now *node) []hunk {
	a, b := old.of.Bytes(), now.of.Bytes()
	whole := appendHunk(nil, a, b, org.Span{End: len(a)}, org.Span{End: len(b)})
	if len(whole) == 1 && oneSection(whole[0].Old) && oneSection(whole[0].New) {
		return whole
	}
	var out []hunk
	ai, bi := 0, 0 // done up to here
	for _, m := range keptSections(old, now) {
		sa, sb := old.sectionSpan(m[0]), now.sectionSpan(m[1])
		out = appendHunk(out, a, b, org.Span{Start: ai, End: sa.Start}, org.Span{Start: bi, End: sb.Start})
		ai, bi = sa.End, sb.End
	}
	return appendHunk(out, a, b, org.Span{Start: ai, End: len(a)}, org.Span{Start: bi, End: len(b)})
}

// oneSection reports whether a text in whole lines holds no headline, except
// perhaps as its first line: aligning sections would not make it smaller.
func oneSection(b []byte) bool { return !bytes.Contains(b, []byte("\n*")) }

// appendHunk adds the difference of two spans in whole lines: changes of
// neighbouring lines are independent, changes within one line are not.
func appendHunk(out []hunk, a, b []byte, sa, sb org.Span) []hunk {
	x, y := a[sa.Start:sa.End], b[sb.Start:sb.End]
	if bytes.Equal(x, y) {
		return out
	}
	pre := commonPrefix(x, y)
	pre = bytes.LastIndexByte(x[:pre], '\n') + 1
	suf := commonSuffix(x[pre:], y[pre:])
	if i := len(x) - suf; suf > 0 && !(lineStart(x, i, pre) && lineStart(y, len(y)-suf, pre)) {
		k := bytes.IndexByte(x[i:], '\n')
		if k < 0 {
			k = suf - 1
		}
		suf -= k + 1
	}
	return append(out, hunk{
		At:  sa.Start + pre,
		Old: bytes.Clone(x[pre : len(x)-suf]),
		New: bytes.Clone(y[pre : len(y)-suf]),
	})
}

// lineStart reports whether a line starts at i; from is known to start one.
func lineStart(b []byte, i, from int) bool { return i == from || b[i-1] == '\n' }

// keptSections pairs sections of equal text that occur once in each version and
// keep their order: a longest increasing subsequence.
func keptSections(old, now *node) [][2]int {
	const once = -2
	place := make(map[Hash]int, len(old.recs))
	for i := range old.recs {
		if _, twice := place[old.recs[i].own]; twice {
			place[old.recs[i].own] = once
		} else {
			place[old.recs[i].own] = i
		}
	}
	seen := map[Hash]int{}
	for j := range now.recs {
		seen[now.recs[j].own]++
	}
	var pairs [][2]int
	for j := range now.recs {
		if i, ok := place[now.recs[j].own]; ok && i >= 0 && seen[now.recs[j].own] == 1 {
			pairs = append(pairs, [2]int{i, j})
		}
	}
	return increasing(pairs)
}

// increasing is a longest subsequence whose first members ascend; the second ones do already.
func increasing(pairs [][2]int) [][2]int {
	tails := []int{} // index into pairs of the smallest end of a run of each length
	prev := make([]int, len(pairs))
	for k, p := range pairs {
		n := sort.Search(len(tails), func(t int) bool { return pairs[tails[t]][0] >= p[0] })
		prev[k] = -1
		if n > 0 {
			prev[k] = tails[n-1]
		}
		if n == len(tails) {
			tails = append(tails, k)
		} else {
			tails[n] = k
		}
	}
	if len(tails) == 0 {
		return nil
	}
	var out [][2]int
	for k := tails[len(tails)-1]; k >= 0; k = prev[k] {
		out = append(out, pairs[k])
	}
	slices.Reverse(out)
	return out
}

// objectChanges lists what differs between two versions of a file; either may be nil.
func objectChanges(path string, old, now *node) []ObjectChange {
	var out []ObjectChange
	add := func(id ID, i, j int) {
		c := ObjectChange{ID: id, File: path}
		if i > absent {
			c.Old, c.OldOwn = old.sumOf(i), old.ownOf(i)
		}
		if j > absent {
			c.New, c.NewOwn = now.sumOf(j), now.ownOf(j)
		}
		if c.Old == c.New {
			return
		}
		if c.OldOwn != c.NewOwn {
			if i > absent {
				c.OldText = bytes.Clone(old.section(i))
			}
			if j > absent {
				c.NewText = bytes.Clone(now.section(j))
			}
		}
		out = append(out, c)
	}
	switch {
	case old == nil:
		add(now.id, absent, -1)
	case now == nil:
		add(old.id, -1, absent)
	case old.id == now.id:
		add(old.id, -1, -1)
	default:
		add(old.id, -1, absent)
		add(now.id, absent, -1)
	}
	i, j := 0, 0
	for i < old.len() || j < now.len() {
		switch {
		case j == now.len() || i < old.len() && old.idAt(i) < now.idAt(j):
			add(old.idAt(i), int(old.order[i]), absent)
			i++
		case i == old.len() || now.idAt(j) < old.idAt(i):
			add(now.idAt(j), absent, int(now.order[j]))
			j++
		default:
			add(old.idAt(i), int(old.order[i]), int(now.order[j]))
			i, j = i+1, j+1
		}
	}
	return out
}

// absent is the section index of what is not there.
const absent = -2

func (n *node) len() int {
	if n == nil {
		return 0
	}
	return len(n.recs)
}

// joinMoves turns an object removed in one place and added in another into one
// change, so that history follows it. was maps new identifiers to old ones.
func joinMoves(cs []ObjectChange, was map[ID]ID) []ObjectChange {
	gone := map[ID]int{}
	for i := range cs {
		if cs[i].New.IsZero() {
			gone[cs[i].ID] = i
		}
	}
	if len(gone) == 0 {
		return cs
	}
	drop := map[int]bool{}
	for i := range cs {
		if !cs[i].Old.IsZero() {
			continue
		}
		name := cs[i].ID
		if old, renamed := was[name]; renamed {
			name, cs[i].Was = old, old
		}
		if k, ok := gone[name]; ok {
			cs[i].Old, cs[i].OldOwn, cs[i].OldText = cs[k].Old, cs[k].OldOwn, cs[k].OldText
			drop[k] = true
		}
	}
	out := cs[:0]
	for i, c := range cs {
		if !drop[i] {
			out = append(out, c)
		}
	}
	return out
}
