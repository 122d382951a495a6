package memory

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/zeebo/blake3"
)

// OpKind tells who changed the memex and how.
type OpKind string

// The kinds of operation.
const (
	OpEdit     OpKind = "edit"     // Apply
	OpUndo     OpKind = "undo"     // Undo or Rewind
	OpRedo     OpKind = "redo"     // Redo
	OpExternal OpKind = "external" // found on disk: the user, an editor, git

	opImport   OpKind = "import"   // ImportSnapshot
	opShown    OpKind = "shown"    // Apply of what is recorded elsewhere
	opConflict OpKind = "conflict" // an edit that was refused: its texts are kept, no file changed
)

// Op is one recorded change of the memex.
type Op struct {
	Seq      uint64         `json:"seq"`
	Kind     OpKind         `json:"kind"`
	At       time.Time      `json:"at"`
	Actor    string         `json:"actor,omitempty"`
	Turn     string         `json:"turn,omitempty"`
	Label    string         `json:"label,omitempty"`
	Reverses []uint64       `json:"reverses,omitempty"` // what an undo or redo takes back
	Files    []FileChange   `json:"files"`
	Objects  []ObjectChange `json:"objects,omitempty"`

	pos int64 // of the payload in the log
	len int
}

// FileChange is what an operation did to one file. A zero Before means the file
// was new, a zero After that it was removed.
type FileChange struct {
	Path   string `json:"path"`
	Before Hash   `json:"before"`
	After  Hash   `json:"after"`
	Hunks  []hunk `json:"hunks,omitempty"`
	// Opaque means the change happened while nobody was looking: only the
	// outcome is known.
	Opaque bool `json:"opaque,omitempty"`
}

// hunk replaces Old, found At the byte offset of the text before, by New.
type hunk struct {
	At  int    `json:"at"`
	Old []byte `json:"-"`
	New []byte `json:"-"`

	OldRef blobRef `json:"old"`
	NewRef blobRef `json:"new"`
}

// ObjectChange is what an operation did to one object. Zero hashes mean that it
// was added or removed; Was is its earlier identifier if that changed.
type ObjectChange struct {
	ID     ID     `json:"id"`
	Was    ID     `json:"was,omitempty"`
	File   string `json:"file"`
	Old    Hash   `json:"o"` // Merkle hashes
	New    Hash   `json:"n"`
	OldOwn Hash   `json:"oo"` // hashes of the section alone
	NewOwn Hash   `json:"no"`

	// OldText and NewText are the sections, where they differ.
	OldText []byte `json:"-"`
	NewText []byte `json:"-"`

	OldRef blobRef `json:"ot"`
	NewRef blobRef `json:"nt"`
}

// blobRef is where a text lies in the blob area of its record; nil means none.
type blobRef []int

// MarshalText writes the hash in hexadecimal, nothing for no hash.
func (h Hash) MarshalText() ([]byte, error) {
	if h.IsZero() {
		return nil, nil
	}
	return []byte(h.String()), nil
}

// UnmarshalText reads what MarshalText wrote.
func (h *Hash) UnmarshalText(b []byte) (err error) {
	*h = Hash{}
	if len(b) > 0 {
		*h, err = ParseHash(string(b))
	}
	return err
}

// A log is a sequence of frames: the payload's length, 16 bytes of the hash that
// chains it to everything before, the payload. A payload is a kind, the length of
// the JSON part, that part, and the texts it refers to.
const (
	frameHead = 4 + 16

	frameIntent  = 'P' // an operation about to be carried out
	frameCommit  = 'C' // the intent of that number was carried out
	frameAbort   = 'A' // it was withdrawn
	frameFact    = 'X' // an operation that had already happened
	frameDropped = 'D' // start of a compacted log: older operations are gone
)

type chain [16]byte

func (c chain) next(payload []byte) chain {
	h := blake3.New()
	h.Write(c[:])
	h.Write(payload)
	var sum [32]byte
	h.Sum(sum[:0])
	return chain(sum[:16])
}

// errHistory means the history cannot be read beyond some point; what was readable
// is kept and the damaged log is set aside.
var errHistory = errors.New("history is damaged")

// history is the append-only record of operations. With an empty path it lives in
// memory only. Its owner is the store, under the store's lock.
type history struct {
	disk disk
	path string
	size int64
	last chain
	seq  uint64
	ops  []*Op
	// base maps Merkle hashes seen in the past to section hashes: the common
	// ancestor a three-way merge needs.
	base    map[Hash]Hash
	pending *Op // intent without an outcome, found at opening
	problem error
	owed    uint64 // operation whose commit record is not written yet
	// undoIntent removes the last intent from the log.
	undoIntent func() error
	// readOnly forgets instead of recording.
	readOnly bool
}

func openHistory(d disk, path string, readOnly bool) (*history, error) {
	h := &history{disk: d, path: path, base: map[Hash]Hash{}, readOnly: readOnly}
	if path == "" {
		return h, nil
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	good, err := h.replay(b)
	if good < len(b) && !readOnly {
		if err := h.setAside(b, good, err); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// setAside cuts the log back to its good part. A torn end is what a crash leaves
// and goes silently; anything else is kept under another name and reported.
func (h *history) setAside(b []byte, good int, cause error) error {
	if cause != nil {
		bad := fmt.Sprintf("%s.damaged-%d", h.path, good)
		if err := overwrite(h.disk, bad, b); err != nil {
			return fmt.Errorf("history: %w", err)
		}
		h.problem = fmt.Errorf("%w after %d bytes, set aside as %s: %w", errHistory, good, filepath.Base(bad), cause)
	}
	if err := overwrite(h.disk, h.path, b[:good]); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	return nil
}

// replay reads frames and returns how many bytes are good; an error says that what
// follows is not just a torn end.
func (h *history) replay(b []byte) (int, error) {
	at := 0
	for at < len(b) {
		if len(b)-at < frameHead {
			return at, nil
		}
		n := int(binary.LittleEndian.Uint32(b[at:]))
		if n > len(b)-at-frameHead {
			return at, nil
		}
		payload := b[at+frameHead : at+frameHead+n]
		sum := h.last.next(payload)
		if chain(b[at+4:at+frameHead]) != sum {
			if at+frameHead+n == len(b) {
				return at, nil
			}
			return at, fmt.Errorf("wrong checksum at byte %d", at)
		}
		if err := h.take(payload, int64(at+frameHead)); err != nil {
			return at, err
		}
		h.last = sum
		at += frameHead + n
		h.size = int64(at)
	}
	return at, nil
}

// take digests one payload.
func (h *history) take(payload []byte, pos int64) error {
	kind, op, err := decodeOp(payload)
	if err != nil {
		return err
	}
	h.seq = max(h.seq, op.Seq)
	switch kind {
	case frameIntent:
		op.pos, op.len = pos, len(payload)
		h.pending = op
	case frameCommit:
		if h.pending != nil && h.pending.Seq == op.Seq {
			h.keep(h.pending)
		}
		h.pending = nil
	case frameAbort:
		h.pending = nil
	case frameFact:
		op.pos, op.len = pos, len(payload)
		h.keep(op)
	}
	return nil
}

// keep remembers an operation without its texts; load brings them back.
func (h *history) keep(op *Op) {
	for i := range op.Objects {
		o := &op.Objects[i]
		if !o.Old.IsZero() {
			h.base[o.Old] = o.OldOwn
		}
		if h.path != "" {
			o.OldText, o.NewText = nil, nil
		}
	}
	if h.path != "" {
		for i := range op.Files {
			for j := range op.Files[i].Hunks {
				op.Files[i].Hunks[j].Old, op.Files[i].Hunks[j].New = nil, nil
			}
		}
	}
	h.ops = append(h.ops, op)
}

// intent writes down what is about to be done and makes it durable.
func (h *history) intent(op *Op) error {
	size, last := h.size, h.last
	h.seq++
	op.Seq = h.seq
	if err := h.append(frameIntent, op, true); err != nil {
		return err
	}
	h.undoIntent = func() error {
		if err := os.Truncate(h.path, size); err != nil {
			return err
		}
		h.size, h.last = size, last
		return nil
	}
	return nil
}

// commit closes an intent that was carried out. Should there be no room for the
// record, it is owed: the files are in place and the intent is durable, so the
// operation stands, and the record is written before the next one.
func (h *history) commit(op *Op) {
	h.pending = nil
	h.keep(op)
	h.owed = op.Seq
	_ = h.pay() // owed until it succeeds
}

// pay writes the commit record that is owed, if any.
func (h *history) pay() error {
	if h.owed == 0 {
		return nil
	}
	seq := h.owed
	h.owed = 0
	if err := h.append(frameCommit, &Op{Seq: seq}, true); err != nil {
		h.owed = seq
		return err
	}
	return nil
}

// abort closes an intent that was withdrawn. If there is no room to say so, the
// intent itself is taken back.
func (h *history) abort(op *Op) error {
	h.pending = nil
	err := h.append(frameAbort, &Op{Seq: op.Seq}, true)
	if err != nil && h.undoIntent != nil && h.undoIntent() == nil {
		return nil
	}
	return err
}

// fact records something that happened on disk; losing it in a crash loses no text.
func (h *history) fact(op *Op) error {
	if h.readOnly {
		return nil
	}
	h.seq++
	op.Seq = h.seq
	if err := h.append(frameFact, op, false); err != nil {
		return err
	}
	h.keep(op)
	return nil
}

func (h *history) append(kind byte, op *Op, sync bool) error {
	if h.path == "" {
		return nil
	}
	if err := h.pay(); err != nil {
		return err
	}
	payload, err := encodeOp(kind, op)
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	sum := h.last.next(payload)
	frame := binary.LittleEndian.AppendUint32(make([]byte, 0, frameHead+len(payload)), uint32(len(payload)))
	frame = append(append(frame, sum[:]...), payload...)
	fresh := h.size == 0
	f, err := h.disk.OpenFile(h.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, newFileMode)
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	_, err = f.Write(frame)
	if err == nil && sync {
		err = f.Sync()
	}
	if err2 := f.Close(); err == nil {
		err = err2
	}
	if err == nil && fresh {
		err = h.disk.SyncDir(filepath.Dir(h.path))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("history: %w", err), h.cutBack())
	}
	op.pos, op.len = h.size+frameHead, len(payload)
	h.size += int64(len(frame))
	h.last = sum
	return nil
}

// cutBack removes a frame that was written in part (a full disk), so that the next
// one is not appended to rubble.
func (h *history) cutBack() error {
	fi, err := os.Stat(h.path)
	if err != nil || fi.Size() == h.size {
		return nil
	}
	return os.Truncate(h.path, h.size)
}

// load returns the operation with its texts.
func (h *history) load(op *Op) (*Op, error) {
	if h.path == "" {
		return op, nil
	}
	f, err := os.Open(h.path)
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	defer f.Close()
	b := make([]byte, op.len)
	if _, err := io.ReadFull(io.NewSectionReader(f, op.pos, int64(op.len)), b); err != nil {
		return nil, fmt.Errorf("history: operation %d: %w", op.Seq, err)
	}
	_, full, err := decodeOp(b)
	if err != nil {
		return nil, err
	}
	full.pos, full.len = op.pos, op.len
	return full, nil
}

func (h *history) find(seq uint64) (*Op, bool) {
	i, ok := slices.BinarySearchFunc(h.ops, seq, func(o *Op, s uint64) int {
		switch {
		case o.Seq < s:
			return -1
		case o.Seq > s:
			return 1
		}
		return 0
	})
	if !ok {
		return nil, false
	}
	return h.ops[i], true
}

// encodeOp lays an operation out: kind, JSON length, JSON, texts.
func encodeOp(kind byte, op *Op) ([]byte, error) {
	var blobs []byte
	put := func(b []byte) blobRef {
		if b == nil {
			return nil
		}
		r := blobRef{len(blobs), len(b)}
		blobs = append(blobs, b...)
		return r
	}
	c := *op
	c.Files = slices.Clone(op.Files)
	for i := range c.Files {
		c.Files[i].Hunks = slices.Clone(c.Files[i].Hunks)
		for j := range c.Files[i].Hunks {
			k := &c.Files[i].Hunks[j]
			k.OldRef, k.NewRef = put(k.Old), put(k.New)
		}
	}
	c.Objects = slices.Clone(op.Objects)
	for i := range c.Objects {
		o := &c.Objects[i]
		o.OldRef, o.NewRef = put(o.OldText), put(o.NewText)
	}
	head, err := json.Marshal(&c)
	if err != nil {
		return nil, err
	}
	out := append(make([]byte, 0, 5+len(head)+len(blobs)), kind)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(head)))
	return append(append(out, head...), blobs...), nil
}

func decodeOp(payload []byte) (byte, *Op, error) {
	bad := func(why string) (byte, *Op, error) { return 0, nil, fmt.Errorf("%w: %s", errHistory, why) }
	if len(payload) < 5 {
		return bad("record too short")
	}
	n := int(binary.LittleEndian.Uint32(payload[1:]))
	if n > len(payload)-5 {
		return bad("record shorter than it says")
	}
	var op Op
	if err := json.Unmarshal(payload[5:5+n], &op); err != nil {
		return bad(err.Error())
	}
	blobs := payload[5+n:]
	ok := true
	get := func(r blobRef) []byte {
		if r == nil {
			return nil
		}
		if len(r) != 2 || r[0] < 0 || r[1] < 0 || r[0] > len(blobs)-r[1] {
			ok = false
			return nil
		}
		return blobs[r[0] : r[0]+r[1] : r[0]+r[1]]
	}
	for i := range op.Files {
		for j := range op.Files[i].Hunks {
			k := &op.Files[i].Hunks[j]
			k.Old, k.New = get(k.OldRef), get(k.NewRef)
		}
	}
	for i := range op.Objects {
		o := &op.Objects[i]
		o.OldText, o.NewText = get(o.OldRef), get(o.NewRef)
	}
	if !ok {
		return bad("text outside its record")
	}
	return payload[0], &op, nil
}

// inverse turns the hunks of before → after into those of after → before.
func inverse(hs []hunk) []hunk {
	out := make([]hunk, len(hs))
	shift := 0
	for i, h := range hs {
		out[i] = hunk{At: h.At + shift, Old: h.New, New: h.Old}
		shift += len(h.New) - len(h.Old)
	}
	return out
}

// splice carries out sorted hunks on a text; false if the text is not the one they were made for.
func splice(b []byte, hs []hunk) ([]byte, bool) {
	out := make([]byte, 0, len(b))
	at := 0
	for _, h := range hs {
		if h.At < at || h.At+len(h.Old) > len(b) || string(b[h.At:h.At+len(h.Old)]) != string(h.Old) {
			return nil, false
		}
		out = append(append(out, b[at:h.At]...), h.New...)
		at = h.At + len(h.Old)
	}
	return append(out, b[at:]...), true
}
