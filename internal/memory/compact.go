package memory

import (
	"encoding/binary"
	"fmt"
)

// compactHistory drops the oldest operations at opening once the log exceeds its
// limit, down to half of it. The log is never altered in place: what stays is
// written anew and takes the old one's name.
func (s *Store) compactHistory() error {
	h := s.hist
	if h.path == "" || h.readOnly || h.size <= s.opt.KeepHistory || h.pending != nil {
		return nil
	}
	keep := len(h.ops)
	for size := int64(0); keep > 0 && size+int64(h.ops[keep-1].len) <= s.opt.KeepHistory/2; keep-- {
		size += int64(h.ops[keep-1].len)
	}
	var out []byte
	var last chain
	frame := func(payload []byte) {
		last = last.next(payload)
		out = binary.LittleEndian.AppendUint32(out, uint32(len(payload)))
		out = append(append(out, last[:]...), payload...)
	}
	next := &history{disk: h.disk, path: h.path, base: map[Hash]Hash{}, seq: h.seq}
	head, err := encodeOp(frameDropped, &Op{Seq: h.seq})
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	frame(head)
	for _, op := range h.ops[keep:] {
		full, err := h.load(op)
		if err != nil {
			return err
		}
		payload, err := encodeOp(frameFact, full)
		if err != nil {
			return fmt.Errorf("history: %w", err)
		}
		op.pos, op.len = int64(len(out)+frameHead), len(payload)
		frame(payload)
		next.keep(op)
	}
	if err := overwrite(h.disk, h.path, out); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	next.last, next.size = last, int64(len(out))
	s.hist = next
	return nil
}
