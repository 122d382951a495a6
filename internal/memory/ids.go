package memory

import (
	"hash/maphash"
	"maps"
	"slices"
)

// shardCount divides the identifiers so that a change copies a small part only.
const shardCount = 1024

// idIndex maps identifiers to the files that hold them. It is persistent: edit
// returns a copy that shares every shard it does not touch. It names files, not
// positions, so most edits leave it alone.
type idIndex struct {
	seed   maphash.Seed
	shards [shardCount]map[ID]int32
	// twins lists identifiers written in more than one file, with all their
	// files in path order; the first one owns the identifier.
	twins map[ID][]int32
	// demoted maps the derived identifiers of the others back to what was written.
	demoted map[ID]demotion
}

type demotion struct {
	file    int32
	written ID
}

func newIndex() *idIndex {
	return &idIndex{seed: maphash.MakeSeed(), twins: map[ID][]int32{}, demoted: map[ID]demotion{}}
}

func (x *idIndex) shard(id ID) int { return int(maphash.String(x.seed, string(id)) % shardCount) }

// file returns the number of the file that owns the identifier.
func (x *idIndex) file(id ID) (int32, bool) {
	f, ok := x.shards[x.shard(id)][id]
	return f, ok
}

// owns reports whether the file is the one an identifier leads to.
func (x *idIndex) owns(id ID, file int32) bool {
	t, shared := x.twins[id]
	return !shared || t[0] == file
}

// idEdit is a batch of changes to an idIndex.
type idEdit struct {
	x      *idIndex
	copied [shardCount]bool
	files  []*node // of the view under construction, for path order
	fresh  bool    // twins and demoted have been copied
}

func (x *idIndex) edit(files []*node) *idEdit {
	c := *x
	return &idEdit{x: &c, files: files}
}

func (e *idEdit) shard(id ID) map[ID]int32 {
	s := e.x.shard(id)
	if !e.copied[s] {
		e.copied[s] = true
		if m := e.x.shards[s]; m != nil {
			e.x.shards[s] = maps.Clone(m)
		} else {
			e.x.shards[s] = map[ID]int32{}
		}
	}
	return e.x.shards[s]
}

func (e *idEdit) own() {
	if !e.fresh {
		e.fresh = true
		e.x.twins, e.x.demoted = maps.Clone(e.x.twins), maps.Clone(e.x.demoted)
	}
}

// replace exchanges the identifiers of one node for those of another in the same
// place; either may be nil.
func (e *idEdit) replace(file int32, old, now *node) {
	switch {
	case old == nil:
		for _, i := range now.order {
			e.add(now.recs[i].id, file)
		}
		e.add(now.id, file)
		return
	case now == nil:
		for _, i := range old.order {
			e.remove(old.recs[i].id, file)
		}
		e.remove(old.id, file)
		return
	}
	if old.id != now.id {
		e.remove(old.id, file)
		e.add(now.id, file)
	}
	// Both are sorted: walk them together and touch the differences only.
	i, j := 0, 0
	for i < len(old.order) || j < len(now.order) {
		switch {
		case j == len(now.order) || i < len(old.order) && old.idAt(i) < now.idAt(j):
			e.remove(old.idAt(i), file)
			i++
		case i == len(old.order) || now.idAt(j) < old.idAt(i):
			e.add(now.idAt(j), file)
			j++
		default:
			i, j = i+1, j+1
		}
	}
}

func (n *node) idAt(k int) ID { return n.recs[n.order[k]].id }

func (e *idEdit) add(id ID, file int32) {
	m := e.shard(id)
	first, taken := m[id]
	if !taken {
		m[id] = file
		return
	}
	all := e.x.twins[id]
	if all == nil {
		all = []int32{first}
	}
	e.settle(id, append(slices.Clone(all), file))
}

func (e *idEdit) remove(id ID, file int32) {
	all, shared := e.x.twins[id]
	if !shared {
		delete(e.shard(id), id)
		return
	}
	all = slices.Clone(all)
	if k := slices.Index(all, file); k >= 0 {
		all = slices.Delete(all, k, k+1)
	}
	e.own()
	delete(e.x.demoted, demotedID(e.files, file, id))
	e.settle(id, all)
}

// settle records which files hold an identifier and who owns it.
func (e *idEdit) settle(id ID, all []int32) {
	e.own()
	slices.SortFunc(all, func(a, b int32) int {
		return comparePaths(e.files[a], e.files[b])
	})
	e.shard(id)[id] = all[0]
	for _, f := range all {
		delete(e.x.demoted, demotedID(e.files, f, id))
	}
	if len(all) == 1 {
		delete(e.x.twins, id)
		return
	}
	e.x.twins[id] = all
	for _, f := range all[1:] {
		e.x.demoted[demotedID(e.files, f, id)] = demotion{f, id}
	}
}
