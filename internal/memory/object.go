package memory

import (
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/zeebo/blake3"

	"passepartout/internal/org"
)

// ID names an object. It is the value of the ID property where there is one, and
// otherwise derived from the file's path and the outline ("~" and 20 characters),
// so that looking at a memex never writes to it.
type ID string

// Derived reports whether the identifier was computed, not written in the file.
func (id ID) Derived() bool { return strings.HasPrefix(string(id), "~") }

// Hash is a BLAKE3 digest. The zero value is no hash and matches nothing.
type Hash [32]byte

// String is the hash in hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// IsZero reports whether there is no hash.
func (h Hash) IsZero() bool { return h == Hash{} }

// ParseHash reads the hexadecimal form.
func ParseHash(s string) (Hash, error) {
	var h Hash
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(h) {
		return h, fmt.Errorf("want a hash of %d hexadecimal digits, found %q", 2*len(h), s)
	}
	copy(h[:], b)
	return h, nil
}

// Object is one file or headline as a view holds it. It is a value; slices in it
// are shared and must not be written to.
type Object struct {
	ID, Parent ID // Parent is "" for a file
	Title      string
	Todo       string
	Done       bool
	Priority   string
	Tags       []string // its own
	AllTags    []string // with the inherited ones

	Scheduled, Deadline, Closed org.Timestamp

	File  string // relative to the memex, with slashes
	Line  int    // 1-based
	Level int    // 0 for a file

	Version int       // 1 for what was first seen, one more for every recorded change
	Changed time.Time // last recorded change, else the file's time
	Hash    Hash      // Merkle: this object and everything below it
	Own     Hash      // this object's section alone
	Unsaved bool      // from a client's buffer, not from disk

	v *View
	n *node
	i int // index in the node, -1 for the file itself
}

// IsFile reports whether the object is a file, not a headline.
func (o Object) IsFile() bool { return o.n != nil && o.i < 0 }

// Body is the object's own text, after planning line and property drawer.
func (o Object) Body() string {
	if o.i < 0 {
		return o.n.of.Text(o.n.of.Preamble())
	}
	return o.n.of.Headline(o.i).Body()
}

// Text is the object's whole section as written, headline line included,
// without its children.
func (o Object) Text() string { return string(o.n.section(o.i)) }

// Subtree is the object with everything below it as written.
func (o Object) Subtree() string {
	if o.i < 0 {
		return string(o.n.of.Bytes())
	}
	return o.n.of.Text(o.n.of.Headline(o.i).Span())
}

// Properties are the object's own properties as written.
func (o Object) Properties() []org.Property {
	if o.i < 0 {
		return o.n.of.Properties()
	}
	return o.n.of.Headline(o.i).Properties()
}

// Property is the object's own property in any letter case.
func (o Object) Property(key string) (string, bool) {
	if o.i < 0 {
		return o.n.of.Property(key)
	}
	return o.n.of.Headline(o.i).Property(key)
}

// Inherited is the property of the object or of the nearest ancestor that has it.
func (o Object) Inherited(key string) (string, bool) {
	if o.i < 0 {
		return o.n.of.Property(key)
	}
	return o.n.of.Headline(o.i).Inherited(key)
}

// Category is what the agenda calls the object: its CATEGORY, else the file's name.
func (o Object) Category() string {
	if o.i >= 0 {
		if c := o.n.of.Headline(o.i).Category(); c != "" {
			return c
		}
	} else if c, ok := o.n.of.Property("CATEGORY"); ok {
		return c
	}
	return strings.TrimSuffix(path.Base(o.File), path.Ext(o.File))
}

// Scope is "memex", "session" or "project": the inherited SCOPE property if it is
// one of these, else what the file's folder says.
func (o Object) Scope() string {
	if s, ok := o.Inherited("SCOPE"); ok {
		if s = strings.ToLower(s); s == "memex" || s == "session" || s == "project" {
			return s
		}
	}
	switch first, _, _ := strings.Cut(o.File, "/"); first {
	case "projects":
		return "project"
	case "sessions":
		return "session"
	}
	return "memex"
}

// originKey is the property that says that a text is not the user's own.
const originKey = "ORIGIN"

// Origin is the inherited ORIGIN property: where text that did not come from the
// user came from. "" means the user's own. An empty one lower down, or further on,
// takes nothing back: whoever wrote the text could have written that too.
func (o Object) Origin() string {
	if o.i >= 0 {
		for h, ok := o.n.of.Headline(o.i), true; ok; h, ok = h.Parent() {
			if s := originIn(h.Properties()); s != "" {
				return s
			}
		}
	}
	return o.n.origin
}

// originIn is the first origin that some properties name.
func originIn(props []org.Property) string {
	for _, p := range props {
		if p.Value != "" && strings.EqualFold(strings.TrimSuffix(p.Key, "+"), originKey) {
			return p.Value
		}
	}
	return ""
}

// fileOrigin is the origin a file names for all of it.
func fileOrigin(of *org.File) string {
	props := of.Properties()
	for _, k := range of.Keywords() {
		if words := strings.Fields(k.Value); k.Key == "PROPERTY" && len(words) > 1 {
			props = append(props, org.Property{Key: words[0], Value: strings.Join(words[1:], " ")})
		}
	}
	return originIn(props)
}

// Outline is the titles from the file's top down to the object's parent.
func (o Object) Outline() []string {
	if o.i < 0 {
		return nil
	}
	p := o.n.of.Headline(o.i).Path()
	return p[:len(p)-1]
}

// Children yields the objects directly below in order.
func (o Object) Children() iter.Seq[Object] {
	seq := o.n.of.Top()
	if o.i >= 0 {
		seq = o.n.of.Headline(o.i).Children()
	}
	return func(yield func(Object) bool) {
		for h := range seq {
			if !yield(o.v.object(o.n, h.Index())) {
				return
			}
		}
	}
}

// HasTag reports whether the object has the tag, itself or inherited.
func (o Object) HasTag(tag string) bool { return slices.Contains(o.AllTags, tag) }

// Domains keep the preimages of different things apart.
const (
	domainSection byte = iota + 1
	domainNode
	domainRoot
	domainID
	domainFile
)

// sumSection hashes one section: the domain, the length, the bytes.
func sumSection(b []byte) Hash { return sumBytes(domainSection, b) }

// sumFile hashes the bytes of a whole file.
func sumFile(b []byte) Hash { return sumBytes(domainFile, b) }

func sumBytes(domain byte, b []byte) Hash {
	const inline = 1 << 10
	var stack [9 + inline]byte
	stack[0] = domain
	binary.LittleEndian.PutUint64(stack[1:], uint64(len(b)))
	if len(b) <= inline {
		n := copy(stack[9:], b)
		return blake3.Sum256(stack[:9+n])
	}
	h := blake3.New()
	h.Write(stack[:9]) // a hash never fails to write
	h.Write(b)
	var out Hash
	h.Sum(out[:0])
	return out
}

// sumNode hashes a section's hash with its children's.
func sumNode(buf []byte, own Hash, children []Hash) (Hash, []byte) {
	buf = append(buf[:0], domainNode)
	buf = binary.LittleEndian.AppendUint64(buf, uint64(len(children)))
	buf = append(buf, own[:]...)
	for i := range children {
		buf = append(buf, children[i][:]...)
	}
	return blake3.Sum256(buf), buf
}

var idAlphabet = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// anchor is what derived identifiers below an object hang on.
type anchor [16]byte

func anchorOf(parts ...string) anchor {
	var stack [256]byte
	buf := append(stack[:0], domainID)
	for _, p := range parts {
		buf = binary.LittleEndian.AppendUint32(buf, uint32(len(p)))
		buf = append(buf, p...)
	}
	sum := blake3.Sum256(buf)
	return anchor(sum[:16])
}

// below is the anchor of the ordinal-th child with this title.
func (a anchor) below(title string, ordinal int) anchor {
	var stack [256]byte
	buf := append(stack[:0], domainID)
	buf = append(buf, a[:]...)
	buf = binary.LittleEndian.AppendUint32(buf, uint32(ordinal))
	buf = append(buf, title...)
	sum := blake3.Sum256(buf)
	return anchor(sum[:16])
}

func (a anchor) id() ID {
	var b [21]byte
	b[0] = '~'
	var enc [26]byte
	idAlphabet.Encode(enc[:], a[:])
	copy(b[1:], enc[:20])
	return ID(b[:])
}
