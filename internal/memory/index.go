package memory

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/zeebo/blake3"
)

// The index remembers the hashes of every section together with size, time and
// inode of the file, so that the next start need not hash what did not change. It
// holds no text and decides nothing: a file whose stat differs is hashed anew, and
// deleting the index only costs that time.
const (
	indexName  = "index"
	indexMagic = "passepartout memory index 1\n"
)

type index struct {
	files map[string]indexed
}

type indexed struct {
	stat fileStat
	sum  Hash // Merkle hash of the file
	hashes
}

// known returns the hashes of a file that has not changed since they were saved.
func (x *index) known(p string, st fileStat) *hashes {
	if x == nil {
		return nil
	}
	f, ok := x.files[p]
	if !ok || st.racy || !f.stat.same(st) {
		return nil
	}
	return &f.hashes
}

// behind reports whether the view has anything the index does not.
func (x *index) behind(v *View) bool {
	if len(x.files) != len(v.sorted) {
		return true
	}
	for _, k := range v.sorted {
		n := v.files[k]
		if f, ok := x.files[n.path]; !ok || f.sum != n.sum || f.stat != n.stat {
			return true
		}
	}
	return false
}

func (s *Store) indexPath() string { return filepath.Join(s.state, indexName) }

// loadIndex reads the index; a missing one is nil, a damaged one is nil and a problem.
func (s *Store) loadIndex() (*index, *Problem) {
	if s.opt.State == "" {
		return nil, nil
	}
	b, err := os.ReadFile(s.indexPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		var x *index
		if x, err = decodeIndex(b); err == nil {
			return x, nil
		}
	}
	return nil, &Problem{indexName, fmt.Errorf("rebuilt: %w", err)}
}

// saveIndexLocked writes the index of what is on disk.
func (s *Store) saveIndexLocked() error {
	if s.opt.State == "" || s.opt.ReadOnly || !s.unsaved {
		return nil
	}
	v := s.View()
	b := []byte(indexMagic)
	for _, k := range v.sorted {
		n := v.files[k]
		if o, ok := s.overlays[n.path]; ok {
			if n = o.saved; n == nil {
				continue
			}
		}
		b = appendIndexed(b, n)
	}
	sum := blake3.Sum256(b)
	if err := overwrite(s.disk, s.indexPath(), append(b, sum[:]...)); err != nil {
		return fmt.Errorf("index: %w", err)
	}
	s.unsaved = false
	return nil
}

func appendIndexed(b []byte, n *node) []byte {
	b = binary.AppendUvarint(b, uint64(len(n.path)))
	b = append(b, n.path...)
	b = binary.AppendVarint(b, n.stat.size)
	b = binary.AppendVarint(b, n.stat.mtime)
	b = binary.AppendUvarint(b, n.stat.inode)
	racy := byte(0)
	if n.stat.racy {
		racy = 1
	}
	b = append(b, racy)
	b = append(b, n.sum[:]...)
	b = append(b, n.own[:]...)
	b = binary.AppendUvarint(b, uint64(len(n.recs)))
	for i := range n.recs {
		b = append(b, n.recs[i].own[:]...)
	}
	return b
}

var errIndex = errors.New("index is damaged or of another version")

func decodeIndex(b []byte) (*index, error) {
	if len(b) < len(indexMagic)+32 || string(b[:len(indexMagic)]) != indexMagic {
		return nil, errIndex
	}
	body := b[:len(b)-32]
	if sum := blake3.Sum256(body); string(sum[:]) != string(b[len(body):]) {
		return nil, errIndex
	}
	r := indexReader{b: body[len(indexMagic):]}
	x := &index{files: map[string]indexed{}}
	for len(r.b) > 0 && !r.bad {
		p := string(r.take(int(r.uvarint())))
		var f indexed
		f.stat.size, f.stat.mtime, f.stat.inode = r.varint(), r.varint(), r.uvarint()
		f.stat.racy = len(r.b) > 0 && r.take(1)[0] != 0
		r.hash(&f.sum)
		r.hash(&f.own)
		n := r.uvarint()
		if n > uint64(len(r.b)/32) {
			return nil, errIndex
		}
		f.recs = make([]Hash, n)
		for i := range f.recs {
			r.hash(&f.recs[i])
		}
		x.files[p] = f
	}
	if r.bad {
		return nil, errIndex
	}
	return x, nil
}

// indexReader takes values off a byte slice and remembers the first failure.
type indexReader struct {
	b   []byte
	bad bool
}

func (r *indexReader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.bad = true
		r.b = nil
		return make([]byte, max(0, min(n, 32)))
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *indexReader) hash(h *Hash) { copy(h[:], r.take(len(h))) }

func (r *indexReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	return advance(r, v, n)
}

func (r *indexReader) varint() int64 {
	v, n := binary.Varint(r.b)
	return advance(r, v, n)
}

func advance[T int64 | uint64](r *indexReader, v T, n int) T {
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

// noteAbsence records what changed while nobody was looking: the index knows the
// old hashes, though not the old text.
func (s *Store) noteAbsence(x *index, v *View) {
	if x == nil {
		return
	}
	op := &Op{Kind: OpExternal, At: s.opt.Now(), Label: "while away"}
	for _, k := range v.sorted {
		n := v.files[k]
		if f, ok := x.files[n.path]; ok && f.sum != n.sum {
			op.Files = append(op.Files, FileChange{Path: n.path, After: sumFile(n.of.Bytes()), Opaque: true})
			op.Objects = append(op.Objects, ObjectChange{ID: n.id, File: n.path, Old: f.sum, New: n.sum, OldOwn: f.own, NewOwn: n.own})
		}
	}
	for _, p := range slices.Sorted(maps.Keys(x.files)) {
		if _, ok := v.byPath.m[p]; !ok {
			op.Files = append(op.Files, FileChange{Path: p, Opaque: true})
		}
	}
	if len(op.Files) > 0 && s.hist.fact(op) == nil {
		s.unsaved = true
	}
}
