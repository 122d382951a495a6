package memory

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/zeebo/blake3"
)

// View is the memex at one moment. It is immutable and safe for concurrent use;
// holding one is a snapshot, and costs only the files that changed since.
type View struct {
	rev      uint64
	files    []*node // by file number; nil where a file is gone
	sorted   []int32 // file numbers in path order
	byPath   *pathIndex
	ids      *idIndex
	count    int
	changes  *changeLog
	private  []string
	secluded func(file string) bool // private without a tag; may be nil
	now      func() time.Time
}

// pathIndex maps paths to file numbers; it is copied only when files come or go.
type pathIndex struct{ m map[string]int32 }

func comparePaths(a, b *node) int { return cmp.Compare(a.path, b.path) }

// demotedID is the identifier of a headline whose written one belongs to another file.
func demotedID(files []*node, file int32, id ID) ID {
	return anchorOf(files[file].path, "duplicate", string(id)).id()
}

// clock is the store's time, from which relative dates are reckoned.
func (v *View) clock() time.Time { return v.now() }

// Rev counts the views of a store: a later view has a greater one.
func (v *View) Rev() uint64 { return v.rev }

// Len is the number of headlines.
func (v *View) Len() int { return v.count }

// Files yields the relative paths in order.
func (v *View) Files() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, k := range v.sorted {
			if !yield(v.files[k].path) {
				return
			}
		}
	}
}

// Get returns the object with the identifier.
func (v *View) Get(id ID) (Object, bool) {
	k, ok := v.ids.file(id)
	if !ok {
		d, demoted := v.ids.demoted[id]
		if !demoted {
			return Object{}, false
		}
		k, id = d.file, d.written
	}
	n := v.files[k]
	if i, ok := n.find(id); ok {
		return v.object(n, i), true
	}
	if n.id == id {
		return v.object(n, -1), true
	}
	return Object{}, false
}

// File returns the object of a file by its path relative to the memex.
func (v *View) File(path string) (Object, bool) {
	k, ok := v.byPath.m[path]
	if !ok {
		return Object{}, false
	}
	return v.object(v.files[k], -1), true
}

// Lookup finds an object by identifier, by path, by "path:line", or by an
// identifier's beginning if only one object has it.
func (v *View) Lookup(name string) (Object, bool) {
	if o, ok := v.Get(ID(strings.TrimPrefix(name, "id:"))); ok {
		return o, true
	}
	if o, ok := v.File(name); ok {
		return o, true
	}
	if p, line, ok := cutLine(name); ok {
		if k, found := v.byPath.m[p]; found {
			n := v.files[k]
			i, exact := slices.BinarySearchFunc(n.recs, uint32(line), func(r record, l uint32) int { return cmp.Compare(r.line, l) })
			if !exact {
				i--
			}
			return v.object(n, i), true
		}
	}
	return v.byPrefix(ID(name))
}

func (v *View) byPrefix(prefix ID) (Object, bool) {
	const shortest = 4
	if len(prefix) < shortest {
		return Object{}, false
	}
	var found Object
	hits := 0
	for _, k := range v.sorted {
		n := v.files[k]
		at, _ := slices.BinarySearchFunc(n.order, prefix, func(i int32, id ID) int { return cmp.Compare(n.recs[i].id, id) })
		for ; at < len(n.order) && strings.HasPrefix(string(n.idAt(at)), string(prefix)); at++ {
			if hits++; hits > 1 {
				return Object{}, false
			}
			found = v.object(n, int(n.order[at]))
		}
	}
	return found, hits == 1
}

func cutLine(s string) (string, int, bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 || i+1 == len(s) {
		return "", 0, false
	}
	line := 0
	for _, c := range s[i+1:] {
		if c < '0' || c > '9' || line > 1<<30 {
			return "", 0, false
		}
		line = line*10 + int(c-'0')
	}
	return s[:i], line, line > 0
}

// Standings returns what tells, of the object of a file, whether anything its objects
// have from outside its text changed: settings of a setup file, whether it is private
// without a tag, and which identifiers written in it belong to another file. Hash
// tells of the text.
func (v *View) Standings() func(file Object) uint64 {
	demoted := map[int32]uint64{}
	for id, d := range v.ids.demoted {
		h := fnv.New64a()
		h.Write([]byte(id)) // a hash never fails to write
		demoted[d.file] ^= h.Sum64()
	}
	return func(file Object) uint64 {
		standing := file.n.settled ^ demoted[v.byPath.m[file.File]]
		if v.hides(file.n) {
			standing = ^standing
		}
		return standing
	}
}

// All yields every headline, files in path order, headlines in document order.
func (v *View) All() iter.Seq[Object] {
	return func(yield func(Object) bool) {
		for _, k := range v.sorted {
			n := v.files[k]
			for i := range n.recs {
				if !yield(v.object(n, i)) {
					return
				}
			}
		}
	}
}

// FileObjects yields the object of every file in path order.
func (v *View) FileObjects() iter.Seq[Object] {
	return func(yield func(Object) bool) {
		for _, k := range v.sorted {
			if !yield(v.object(v.files[k], -1)) {
				return
			}
		}
	}
}

// Hash is the Merkle hash of the whole memex: equal hashes, equal files.
func (v *View) Hash() Hash {
	h := blake3.New()
	h.Write([]byte{domainRoot})
	var size [8]byte
	for _, k := range v.sorted {
		n := v.files[k]
		binary.LittleEndian.PutUint64(size[:], uint64(len(n.path)))
		h.Write(size[:])
		h.Write([]byte(n.path))
		h.Write(n.sum[:])
	}
	var out Hash
	h.Sum(out[:0])
	return out
}

// idOf is the identifier headline i of a file goes by in this view.
func (v *View) idOf(n *node, i int) ID {
	id := n.id
	if i >= 0 {
		id = n.recs[i].id
	}
	if len(v.ids.twins) > 0 && !v.ids.owns(id, v.byPath.m[n.path]) {
		return demotedID(v.files, v.byPath.m[n.path], id)
	}
	return id
}

// object makes the value callers see.
func (v *View) object(n *node, i int) Object {
	var o Object
	v.fill(&o, n, i)
	return o
}

// fill is object in place: an Object is large, and lists of them are long.
func (v *View) fill(o *Object, n *node, i int) {
	o.v, o.n, o.i = v, n, i
	o.ID, o.File, o.Hash, o.Own, o.Unsaved = v.idOf(n, i), n.path, n.sumOf(i), n.ownOf(i), n.unsaved
	o.Version, o.Changed = v.changes.last(o.ID, n)
	if i < 0 {
		o.Title, o.Line = n.title(), 1
		o.Tags, o.AllTags = n.tagSets[0], n.tagSets[0]
		return
	}
	h, r := n.of.Headline(i), &n.recs[i]
	o.Title, o.Line, o.Level = h.Title(), int(r.line), h.Level()
	o.Priority = h.Priority()
	o.Tags, o.AllTags = n.tagsOf(i), n.tagSets[r.tags]
	if r.todo > 0 {
		o.Todo, o.Done = n.todos[r.todo-1], r.bits&bitDone != 0
	}
	if r.bits&bitScheduled != 0 {
		o.Scheduled = n.planned(i, stampScheduled)
	}
	if r.bits&bitDeadline != 0 {
		o.Deadline = n.planned(i, stampDeadline)
	}
	if r.bits&bitClosed != 0 {
		o.Closed = h.Closed()
	}
	if p, ok := h.Parent(); ok {
		o.Parent = v.idOf(n, p.Index())
	} else {
		o.Parent = v.idOf(n, -1)
	}
}

// Tags are the tags of an object, inherited ones included, by identifier or by
// path. For a file or directory they are all tags anywhere in it, and for an
// object all tags below it too, because whoever is handed it is handed everything
// in it. A name that can be read in several ways has the tags of all of them: an
// identifier must not hide those of a folder that is called the same.
func (v *View) Tags(idOrPath string) []string {
	tags, _ := v.tagsOf(idOrPath)
	return tags
}

func (v *View) tagsOf(idOrPath string) (tags []string, found bool) {
	seen := map[string]bool{}
	add := func(n *node, more []string) {
		found = true
		if len(v.private) > 0 && v.hides(n) {
			more = append(slices.Clone(more), v.private[0])
		}
		for _, t := range more {
			if !seen[t] {
				seen[t] = true
				tags = append(tags, t)
			}
		}
	}
	if k, ok := v.byPath.m[idOrPath]; ok {
		add(v.files[k], v.files[k].everyTag())
	}
	if o, ok := v.Lookup(idOrPath); ok {
		add(o.n, subtreeTags(o))
	}
	dir := strings.TrimSuffix(idOrPath, "/") + "/"
	at := 0
	if dir == "./" {
		dir = ""
	} else {
		at, _ = slices.BinarySearchFunc(v.sorted, dir, func(k int32, dir string) int { return cmp.Compare(v.files[k].path, dir) })
	}
	for _, k := range v.sorted[at:] {
		n := v.files[k]
		if !strings.HasPrefix(n.path, dir) {
			break
		}
		add(n, n.everyTag())
	}
	return tags, found
}

// hides reports whether a file's text is private without a tag: somebody said so, or
// it is written in a way that could hide one.
func (v *View) hides(n *node) bool { return n.veiled || v.secluded != nil && v.secluded(n.path) }

// archivedKey is the property in which archiving keeps the tags a heading had from
// where it stood. They are no tags to search by any more, and still say whose eyes
// it is for, wherever it is moved next.
const archivedKey = "ARCHIVE_ITAGS"

// findArchived collects the tags that archived headings had.
func (n *node) findArchived() {
	if !mentions(n.of.Bytes(), archivedKey) {
		return
	}
	n.archived = map[int][]string{}
	for i := range n.recs {
		if tags, ok := n.of.Headline(i).Property(archivedKey); ok {
			n.archived[i] = strings.Fields(tags)
		}
	}
}

// mentions reports whether a word that holds an underscore occurs in any letter case.
func mentions(b []byte, word string) bool {
	before := strings.IndexByte(word, '_')
	for at := 0; ; at++ {
		i := bytes.IndexByte(b[at:], '_')
		if i < 0 {
			return false
		}
		at += i
		if from := at - before; from >= 0 && from+len(word) <= len(b) && strings.EqualFold(string(b[from:from+len(word)]), word) {
			return true
		}
	}
}

// archivedTags are the tags that headline i, or one above it, had before it was archived.
func (n *node) archivedTags(i int) []string {
	if len(n.archived) == 0 || i < 0 {
		return nil
	}
	var all []string
	for h, ok := n.of.Headline(i), true; ok; h, ok = h.Parent() {
		all = append(all, n.archived[h.Index()]...)
	}
	return all
}

// everyTag is each tag in a file, those that archived headings had among them.
func (n *node) everyTag() []string {
	var all []string
	for _, tags := range n.archived {
		all = append(all, tags...)
	}
	slices.Sort(all) // a map has no order
	all = slices.Compact(all)
	for _, set := range n.tagSets {
		for _, t := range set {
			if !slices.Contains(all, t) {
				all = append(all, t)
			}
		}
	}
	return all
}

func subtreeTags(o Object) []string {
	if o.i < 0 {
		return o.n.everyTag()
	}
	all := append(slices.Clone(o.AllTags), o.n.archivedTags(o.i)...)
	for h := range o.n.of.Headline(o.i).Subtree() {
		all = append(all, o.n.archived[h.Index()]...)
		for _, t := range o.n.tagSets[o.n.recs[h.Index()].tags] {
			if !slices.Contains(all, t) {
				all = append(all, t)
			}
		}
	}
	return all
}

// Private reports whether the object, file or directory, or anything in it, carries
// one of the store's privacy tags. What is not found is private: nobody can say it is not.
func (v *View) Private(idOrPath string) bool {
	tags, found := v.tagsOf(idOrPath)
	return !found || v.anyPrivate(tags)
}

func (v *View) anyPrivate(tags []string) bool {
	return slices.ContainsFunc(tags, func(t string) bool {
		return slices.ContainsFunc(v.private, func(p string) bool { return strings.EqualFold(t, p) })
	})
}

// PrivateObject reports whether the object itself, not what lies below it,
// carries a privacy tag, or its file is private without one.
func (v *View) PrivateObject(o Object) bool { return v.privateAt(o.n, o.i) }

func (v *View) privateAt(n *node, i int) bool {
	if n == nil {
		return true // no object: nobody can say that it is not
	}
	tags := n.tagSets[0]
	if i >= 0 {
		tags = n.tagSets[n.recs[i].tags]
	}
	return v.anyPrivate(tags) || v.anyPrivate(n.archivedTags(i)) || v.hides(n)
}
