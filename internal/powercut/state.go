package powercut

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	sector   = 512
	maxNames = 64 // combinations of what directories may show, at one point
)

// A tree is what a disk holds: paths and what is there.
type tree map[string]thing

type thing struct {
	mode   fs.FileMode
	data   []byte
	target string
}

func (t tree) hash(seed maphash.Seed, marks int) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	var n [8]byte
	sized := func(b []byte) {
		binary.LittleEndian.PutUint64(n[:], uint64(len(b)))
		h.Write(n[:])
		h.Write(b)
	}
	for _, p := range slices.Sorted(maps.Keys(t)) {
		sized([]byte(p))
		sized(t[p].data)
		sized([]byte(t[p].target))
		sized([]byte(t[p].mode.String()))
	}
	binary.LittleEndian.PutUint64(n[:], uint64(marks))
	h.Write(n[:])
	return h.Sum64()
}

// write makes the tree below a new directory.
func (t tree) write(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	paths := slices.Sorted(maps.Keys(t)) // a directory before what is in it
	for _, p := range paths {
		at, x := filepath.Join(dir, p), t[p]
		var err error
		switch {
		case x.mode.IsDir():
			err = os.Mkdir(at, 0o700)
		case x.mode&fs.ModeSymlink != 0:
			err = os.Symlink(x.target, at)
		default:
			err = os.WriteFile(at, x.data, 0o600)
		}
		if err != nil {
			return err
		}
	}
	for _, p := range slices.Backward(paths) {
		if x := t[p]; x.mode&fs.ModeSymlink == 0 {
			if err := os.Chmod(filepath.Join(dir, p), x.mode.Perm()); err != nil {
				return err
			}
		}
	}
	return nil
}

// String lists the tree for a failed test.
func (t tree) String() string {
	var b strings.Builder
	for _, p := range slices.Sorted(maps.Keys(t)) {
		x := t[p]
		fmt.Fprintf(&b, "\n  %v %s", x.mode, p)
		if x.mode.IsRegular() {
			fmt.Fprintf(&b, " %d bytes: %.200q", len(x.data), x.data)
		}
	}
	return b.String()
}

// A state is one disk that a power cut may leave.
type state struct {
	tree  tree
	marks []string
	name  string
	seen  []*op
}

// story tells what happened last before the cut.
func (s state) story() string {
	const shown = 12
	var b strings.Builder
	b.WriteString("the power failed after:")
	for _, o := range s.seen[max(0, len(s.seen)-shown):] {
		fmt.Fprintf(&b, "\n  %s", o)
	}
	return b.String()
}

// each makes the disks of every beginning of the trace, until visit says no.
func (tr *trace) each(visit func(state) bool) {
	var marks []string
	for n := 0; n <= len(tr.ops); n++ {
		if n > 0 && tr.ops[n-1].kind == opMark {
			marks = append(marks, tr.ops[n-1].text)
		}
		if !tr.at(n, slices.Clone(marks), visit) {
			return
		}
	}
}

// at makes the disks of one beginning.
func (tr *trace) at(n int, marks []string, visit func(state) bool) bool {
	durable, pending := tr.split(n)
	names, files := groups(pending)
	for _, kept := range namings(names) {
		for _, f := range fates(files) {
			s := state{marks: marks, seen: tr.ops[:n], name: kept.said + ", " + f.said}
			s.tree = tr.build(n, func(i int, o *op) (bool, *fate) {
				switch {
				case durable[i]:
					return true, nil
				case o.naming():
					return kept.has[o], nil
				}
				return true, f.of[o.node]
			})
			if !visit(s) {
				return false
			}
		}
	}
	return true
}

// split tells what of the first n operations is durable, and what may be lost.
func (tr *trace) split(n int) (durable map[int]bool, pending []*op) {
	durable = map[int]bool{}
	for _, s := range tr.ops[:n] {
		if s.kind != opSync {
			continue
		}
		for i, o := range tr.ops[:s.covers] {
			if s.node == nil || o.on(s.node) {
				durable[i] = true
			}
		}
	}
	for i, o := range tr.ops[:n] {
		if !durable[i] && o.kind != opSync && o.kind != opMark {
			pending = append(pending, o)
		}
	}
	return durable, pending
}

// groups sorts what may be lost: names by directory, bytes by file. Directories that
// one rename ties together are one group.
func groups(pending []*op) (names [][]*op, files [][]*op) {
	group, file := map[*node]int{}, map[*node]int{}
	for _, o := range pending {
		if !o.naming() {
			f, ok := file[o.node]
			if !ok {
				f = len(files)
				files = append(files, nil)
				file[o.node] = f
			}
			files[f] = append(files[f], o)
			continue
		}
		g, ok := group[o.dir]
		if !ok {
			g = len(names)
			names = append(names, nil)
			group[o.dir] = g
		}
		if h, ok := group[o.dir2]; o.dir2 != nil && ok && h != g {
			names[g] = append(names[g], names[h]...)
			names[h] = nil
			for d, k := range group {
				if k == h {
					group[d] = g
				}
			}
		}
		if o.dir2 != nil {
			group[o.dir2] = g
		}
		names[g] = append(names[g], o)
	}
	return slices.DeleteFunc(names, func(g []*op) bool { return len(g) == 0 }), files
}

// A naming is which changes of names survive.
type naming struct {
	has  map[*op]bool
	said string
}

// namings are the ways in which directories may show their changes: each a beginning
// of its own.
func namings(groups [][]*op) []naming {
	total := 1
	for _, g := range groups {
		total *= len(g) + 1
		if total > maxNames {
			break
		}
	}
	pick := func(cuts []int) naming {
		k := naming{has: map[*op]bool{}, said: "names"}
		for i, g := range groups {
			for _, o := range g[:cuts[i]] {
				k.has[o] = true
			}
			k.said += fmt.Sprintf(" %d/%d", cuts[i], len(g))
		}
		return k
	}
	cuts := make([]int, len(groups))
	if total > maxNames {
		all := make([]int, len(groups))
		for i, g := range groups {
			all[i] = len(g)
		}
		out := []naming{pick(cuts), pick(all)}
		for i := range groups {
			only, without := slices.Clone(cuts), slices.Clone(all)
			only[i], without[i] = all[i], 0
			out = append(out, pick(only), pick(without))
		}
		return out
	}
	var out []naming
	for {
		out = append(out, pick(cuts))
		i := 0
		for ; i < len(cuts); i++ {
			if cuts[i]++; cuts[i] <= len(groups[i]) {
				break
			}
			cuts[i] = 0
		}
		if i == len(cuts) {
			return out
		}
	}
}

// A fate says which bytes of a file's unsynced writes survive.
type fate struct {
	// keep decides about the at-th of the unsynced bytes, which is at off of the file.
	keep func(at, of, off int64) bool
	size bool // the file has grown even where its bytes are missing
}

// A doom is the fate of every file that has unsynced bytes.
type doom struct {
	of   map[*node]*fate
	said string
}

func everything(_, _, _ int64) bool { return true }

func nothing(_, _, _ int64) bool { return false }

// middle is where the sector in the middle of the unsynced bytes begins.
func middle(at, of, off int64) int64 { return (off - at + of/2) / sector * sector }

// fates are the ways in which files may lose what was not synced.
func fates(files [][]*op) []doom {
	if len(files) == 0 {
		return []doom{{said: "bytes all synced"}}
	}
	kinds := []struct {
		said string
		fate fate
	}{
		{"bytes lost", fate{keep: nothing}},
		{"bytes kept", fate{keep: everything, size: true}},
		{"bytes half", fate{keep: func(at, of, _ int64) bool { return at < of/2 }}},
		{"bytes half, by sectors", fate{keep: func(at, of, off int64) bool { return off < middle(at, of, off) }}},
		{"all but the last byte", fate{keep: func(at, of, _ int64) bool { return at < of-1 }}},
		{"grown by zeros", fate{keep: nothing, size: true}},
		{"the last half only", fate{keep: func(at, of, off int64) bool { return off >= middle(at, of, off) }, size: true}},
		{"every other sector", fate{keep: func(_, _, off int64) bool { return off/sector%2 == 1 }, size: true}},
		{"the other sectors", fate{keep: func(_, _, off int64) bool { return off/sector%2 == 0 }, size: true}},
	}
	uniform := func(f *fate, said string) doom {
		d := doom{of: map[*node]*fate{}, said: said}
		for _, writes := range files {
			d.of[writes[0].node] = f
		}
		return d
	}
	lost, kept := &kinds[0].fate, &kinds[1].fate
	var out []doom
	for i := range kinds {
		out = append(out, uniform(&kinds[i].fate, kinds[i].said))
	}
	for _, writes := range files {
		n, cut := writes[0].node, int64(0)
		for _, o := range writes[:len(writes)-1] {
			cut += int64(len(o.data))
			end := cut
			d := uniform(kept, fmt.Sprintf("%s cut at %d", n.said, end))
			d.of[n] = &fate{keep: func(at, _, _ int64) bool { return at < end }}
			out = append(out, d)
		}
		if len(files) > 1 {
			only, without := uniform(lost, "bytes of "+n.said+" only"), uniform(kept, "bytes of all but "+n.said)
			only.of[n], without.of[n] = kept, lost
			out = append(out, only, without)
		}
	}
	return out
}

// build replays the first n operations with what survives of them, and reads off the
// tree.
func (tr *trace) build(n int, survives func(int, *op) (bool, *fate)) tree {
	r := &replay{data: map[*node][]byte{}, names: map[*node]map[string]*node{}, done: map[*node]int64{}, total: map[*node]int64{}}
	for i, o := range tr.ops[:n] {
		if ok, f := survives(i, o); o.kind == opWrite && ok && f != nil {
			r.total[o.node] += int64(len(o.data))
		}
	}
	for i, o := range tr.ops[:n] {
		if ok, f := survives(i, o); ok {
			r.apply(o, f)
		}
	}
	out := tree{}
	r.walk(tr.root, "", out)
	return out
}

// A replay is the system's view while operations are carried out again.
type replay struct {
	data        map[*node][]byte
	names       map[*node]map[string]*node
	done, total map[*node]int64 // unsynced bytes seen so far, and in all
}

func (r *replay) in(dir *node) map[string]*node {
	m, ok := r.names[dir]
	if !ok {
		m = maps.Clone(dir.start)
		r.names[dir] = m
	}
	return m
}

func (r *replay) bytes(n *node) []byte {
	b, ok := r.data[n]
	if !ok {
		b = slices.Clone(n.data)
	}
	return b
}

func (r *replay) apply(o *op, f *fate) {
	switch o.kind {
	case opName:
		r.in(o.dir)[o.name] = o.node
	case opUnname:
		delete(r.in(o.dir), o.name)
	case opRename:
		delete(r.in(o.dir), o.name)
		r.in(o.dir2)[o.new] = o.node
	case opExchange:
		r.in(o.dir)[o.name], r.in(o.dir2)[o.new] = o.swap, o.node
	case opWrite:
		r.write(o, f)
	case opTruncate:
		if f != nil && !f.size && !f.keep(0, 1, o.off) {
			return // lost
		}
		b := r.bytes(o.node)
		if o.off <= int64(len(b)) {
			r.data[o.node] = b[:o.off]
		} else {
			r.data[o.node] = append(b, make([]byte, o.off-int64(len(b)))...)
		}
	case opSync, opMark:
	}
}

func (r *replay) write(o *op, f *fate) {
	b := r.bytes(o.node)
	grow := func(to int64) {
		if more := to - int64(len(b)); more > 0 {
			b = append(b, make([]byte, more)...)
		}
	}
	end := o.off + int64(len(o.data))
	if f == nil || f.size {
		grow(end)
	}
	for i, c := range o.data {
		at := int64(i)
		if f == nil || f.keep(r.done[o.node]+at, r.total[o.node], o.off+at) {
			grow(o.off + at + 1)
			b[o.off+at] = c
		}
	}
	if f != nil {
		r.done[o.node] += int64(len(o.data))
	}
	r.data[o.node] = b
}

func (r *replay) walk(n *node, rel string, out tree) {
	if rel != "" {
		out[rel] = thing{mode: n.mode, data: r.bytes(n), target: n.target}
	}
	for name, m := range r.in(n) {
		r.walk(m, filepath.Join(rel, name), out)
	}
}
