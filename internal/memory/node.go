package memory

import (
	"bytes"
	"cmp"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"passepartout/internal/org"
)

// node is one file of a view: its text, its outline and one record per headline.
// It never changes once built; views that agree on a file share the node.
type node struct {
	path    string
	stat    fileStat
	of      *org.File
	id      ID // as written or derived; views may demote a duplicate
	key     anchor
	own     Hash
	sum     Hash
	recs    []record
	order   []int32    // indexes of recs, sorted by id
	tagSets [][]string // distinct inherited tag lists; 0 is the file's own
	ownTags [][]string // what the headlines that made each of them carry themselves
	todos   []string   // keywords; record.todo is 1 + index
	stamps  []stamp    // planned and plain active dates, in document order
	unsaved bool
	limit   error  // why the file cannot be edited, or nil
	veiled  bool   // not even its tags can be read
	origin  string // what the file says of where its text came from

	setups  []string // setup files by name
	setup   uint64   // how they were; see setupNow
	settled uint64   // what their settings, and its own, make of the file

	archived map[int][]string // tags that archived headlines had from where they stood
}

// record is what queries need of a headline without reading text.
type record struct {
	id   ID
	own  Hash
	sum  Hash
	line uint32
	tags uint32 // index into tagSets
	todo uint16 // 1 + index into todos, 0 for none
	bits uint8
	deep uint8 // level, 255 for more
}

const (
	bitDone uint8 = 1 << iota
	bitScheduled
	bitDeadline
	bitClosed
	bitCommented // COMMENT in front of the title, here or above
	bitArchived  // ARCHIVE tag, here or above
	bitTagged    // has tags of its own

	bitPlanned = bitScheduled | bitDeadline | bitClosed
)

// fileStat tells whether a file may have changed without reading it.
type fileStat struct {
	size  int64
	mtime int64 // nanoseconds
	inode uint64
	racy  bool // modified so recently that a later write could look the same
}

func (s fileStat) same(t fileStat) bool { return s.looks(t) && !s.racy }

// looks is same, but for a write too soon after the last to be told from it.
func (s fileStat) looks(t fileStat) bool {
	return s.size == t.size && s.mtime == t.mtime && s.inode == t.inode
}

// hashes are what the index remembers of a file, so that an unchanged one need not be hashed.
type hashes struct {
	own  Hash
	recs []Hash // own hashes in document order
}

// buildNode reads a file's bytes. known may be nil.
func buildNode(p string, of *org.File, st fileStat, known *hashes) *node {
	n := &node{path: p, stat: st, of: of, todos: of.TodoKeywords(), limit: of.Editable()}
	if n.limit == nil && !utf8.ValidString(p) {
		n.limit = errName
	}
	n.recs = make([]record, of.Len())
	n.tagSets, n.ownTags = [][]string{of.FileTags()}, [][]string{nil}
	n.identify()
	tags := map[string]uint32{}
	line, at := 1, 0
	src := of.Bytes()
	for h := range of.Headlines() {
		beg := h.LineSpan().Start
		line += bytes.Count(src[at:beg], []byte{'\n'})
		at = beg
		r := &n.recs[h.Index()]
		r.line = uint32(line)
		n.describe(h, r, tags)
	}
	if known != nil && len(known.recs) == len(n.recs) {
		n.own = known.own
		for i := range n.recs {
			n.recs[i].own = known.recs[i]
		}
	} else {
		n.own = sumSection(n.section(-1))
		for i := range n.recs {
			n.recs[i].own = sumSection(n.section(i))
		}
	}
	n.sumUp()
	n.findStamps()
	n.findArchived()
	n.origin = fileOrigin(of)
	n.findSetups()
	n.veiled = n.limit != nil && unreadable(src)
	return n
}

// findSetups notes which setup files a file has, and what all settings come to.
func (n *node) findSetups() {
	for _, k := range n.of.Keywords() {
		if k.Key == "SETUPFILE" {
			n.setups = append(n.setups, strings.Trim(k.Value, `"`))
		}
	}
	h := fnv.New64a()
	for _, list := range [][]string{n.tagSets[0], n.todos, n.of.DoneKeywords()} {
		for _, s := range list {
			h.Write([]byte(s)) // a hash never fails to write
			h.Write([]byte{0})
		}
		h.Write([]byte{1})
	}
	n.settled = h.Sum64()
}

// unreadable reports text in which no line can be told from another: the wide
// characters of UTF-16, or lines that end in a CR alone.
func unreadable(b []byte) bool { return bytes.IndexByte(b, 0) >= 0 || bytes.IndexByte(b, '\n') < 0 }

// carryHashes finds the sections that the common prefix and suffix of two versions
// cover and keeps their hashes; the others are hashed here.
func carryHashes(old *node, of *org.File) *hashes {
	a, b := old.of.Bytes(), of.Bytes()
	pre := commonPrefix(a, b)
	suf := commonSuffix(a[pre:], b[pre:])
	shift := len(b) - len(a)
	next := &node{of: of}
	k := &hashes{recs: make([]Hash, of.Len())}
	at := map[int]int{} // start of an old section → its index
	for i := range old.recs {
		if s := old.sectionSpan(i); s.Start >= len(a)-suf || s.End <= pre {
			at[s.Start] = i
		}
	}
	k.own = sumSection(next.section(-1))
	for i := range k.recs {
		s := next.sectionSpan(i)
		from := s.Start
		if s.Start >= len(b)-suf {
			from -= shift
		} else if s.End > pre {
			k.recs[i] = sumSection(next.section(i))
			continue
		}
		if j, ok := at[from]; ok && old.sectionSpan(j).Len() == s.Len() {
			k.recs[i] = old.recs[j].own
		} else {
			k.recs[i] = sumSection(next.section(i))
		}
	}
	return k
}

// identify gives every headline its identifier: the first written one, or one
// derived from the nearest named ancestor, the titles below it and, for siblings
// of equal title, their order.
func (n *node) identify() {
	n.key = anchorOf(n.path)
	n.id = n.key.id()
	seen := map[ID]bool{}
	if id := ID(n.of.ID()); id != "" && !id.Derived() {
		n.id, seen[id] = id, true
	}
	type twin struct {
		parent int
		title  string
	}
	keys := make([]anchor, len(n.recs))
	twins := map[twin]int{}
	for h := range n.of.Headlines() {
		i := h.Index()
		if id := ID(h.ID()); id != "" && !id.Derived() && !seen[id] {
			seen[id] = true
			n.recs[i].id, keys[i] = id, anchorOf("id", string(id))
			continue
		}
		parent, key := -1, n.key
		if p, ok := h.Parent(); ok {
			parent, key = p.Index(), keys[p.Index()]
		}
		t := twin{parent, h.Title()}
		keys[i] = key.below(t.title, twins[t])
		twins[t]++
		n.recs[i].id = keys[i].id()
	}
	n.order = make([]int32, len(n.recs))
	for i := range n.order {
		n.order[i] = int32(i)
	}
	slices.SortFunc(n.order, func(a, b int32) int { return cmp.Compare(n.recs[a].id, n.recs[b].id) })
}

// find returns the index of the headline with the identifier.
func (n *node) find(id ID) (int, bool) {
	k, ok := slices.BinarySearchFunc(n.order, id, func(i int32, id ID) int { return cmp.Compare(n.recs[i].id, id) })
	if !ok {
		return 0, false
	}
	return int(n.order[k]), true
}

// describe fills in what queries ask of a headline. known maps the tag lists seen
// so far, so that headlines with the same tags share one slice and a tag
// expression is judged once per distinct list.
func (n *node) describe(h org.Headline, r *record, known map[string]uint32) {
	if t := h.Todo(); t != "" {
		r.todo = uint16(slices.Index(n.todos, t) + 1)
	}
	if h.Done() {
		r.bits |= bitDone
	}
	if h.Commented() {
		r.bits |= bitCommented
	}
	r.deep = uint8(min(h.Level(), math.MaxUint8))
	if p, ok := h.Parent(); ok {
		r.tags = n.recs[p.Index()].tags
		r.bits |= n.recs[p.Index()].bits & (bitCommented | bitArchived)
	}
	own := h.Tags()
	if len(own) == 0 {
		return
	}
	r.bits |= bitTagged
	if slices.Contains(own, "ARCHIVE") {
		r.bits |= bitArchived
	}
	key := strconv.Itoa(int(r.tags)) + ":" + strings.Join(own, ":")
	set, ok := known[key]
	if !ok {
		set = uint32(len(n.tagSets))
		n.tagSets, n.ownTags = append(n.tagSets, h.AllTags()), append(n.ownTags, own)
		known[key] = set
	}
	r.tags = set
}

// sumUp computes the Merkle hashes from the leaves.
func (n *node) sumUp() {
	var buf []byte
	var kids []Hash
	for i := len(n.recs) - 1; i >= 0; i-- {
		kids = kids[:0]
		for c := range n.of.Headline(i).Children() {
			kids = append(kids, n.recs[c.Index()].sum)
		}
		n.recs[i].sum, buf = sumNode(buf, n.recs[i].own, kids)
	}
	kids = kids[:0]
	for c := range n.of.Top() {
		kids = append(kids, n.recs[c.Index()].sum)
	}
	n.sum, _ = sumNode(buf, n.own, kids)
}

// sectionSpan is where section i stands; -1 is the text before the first headline.
func (n *node) sectionSpan(i int) org.Span {
	if i < 0 {
		return org.Span{Start: 0, End: n.of.Preamble().End}
	}
	return n.of.Headline(i).SectionSpan()
}

func (n *node) section(i int) []byte {
	s := n.sectionSpan(i)
	return n.of.Bytes()[s.Start:s.End]
}

// tagsOf are the tags headline i carries itself.
func (n *node) tagsOf(i int) []string {
	if r := &n.recs[i]; r.bits&bitTagged != 0 {
		return n.ownTags[r.tags]
	}
	return nil
}

func (n *node) ownOf(i int) Hash {
	if i < 0 {
		return n.own
	}
	return n.recs[i].own
}

func (n *node) sumOf(i int) Hash {
	if i < 0 {
		return n.sum
	}
	return n.recs[i].sum
}

// title is the file's #+TITLE, else its name.
func (n *node) title() string {
	if t := n.of.Title(); t != "" {
		return t
	}
	return n.path
}

func (n *node) modified() time.Time { return time.Unix(0, n.stat.mtime) }

func commonPrefix(a, b []byte) int {
	const step = 256
	i, end := 0, min(len(a), len(b))
	for i+step <= end && bytes.Equal(a[i:i+step], b[i:i+step]) {
		i += step
	}
	for i < end && a[i] == b[i] {
		i++
	}
	return i
}

func commonSuffix(a, b []byte) int {
	const step = 256
	i, end := 0, min(len(a), len(b))
	for i+step <= end && bytes.Equal(a[len(a)-i-step:len(a)-i], b[len(b)-i-step:len(b)-i]) {
		i += step
	}
	for i < end && a[len(a)-1-i] == b[len(b)-1-i] {
		i++
	}
	return i
}
