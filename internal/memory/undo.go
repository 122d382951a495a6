package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"
)

// Mark names a place in history: an operation, a turn of the agent, or a time.
// The zero Mark is the last operation.
type Mark struct {
	Op   uint64
	Turn string
	Time time.Time
}

// ErrNothing means there is nothing to undo or redo.
var ErrNothing = errors.New("nothing to undo or redo")

// History returns the recorded operations, oldest first, without their texts.
func (s *Store) History() []Op {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Op, len(s.hist.ops))
	for i, op := range s.hist.ops {
		out[i] = *op
	}
	return out
}

// Since returns the operations after a number, oldest first, without their texts.
func (s *Store) Since(seq uint64) []Op {
	s.mu.Lock()
	defer s.mu.Unlock()
	from, _ := slices.BinarySearchFunc(s.hist.ops, seq+1, func(op *Op, seq uint64) int { return cmp.Compare(op.Seq, seq) })
	out := make([]Op, 0, len(s.hist.ops)-from)
	for _, op := range s.hist.ops[from:] {
		out = append(out, *op)
	}
	return out
}

// Last is the number of the last operation, 0 when there was none.
func (s *Store) Last() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.hist.ops); n > 0 {
		return s.hist.ops[n-1].Seq
	}
	return 0
}

// Wrote reports whether the store's own operations after a number, and nobody else's,
// made one text of a file into another; nil is no file. What it wrote a text into before
// that got its name is its own, too, once it is gone: what stays under such a name is not.
func (s *Store) Wrote(since uint64, abs string, texts func() (before, after []byte, err error)) bool {
	rel, err := filepath.Rel(s.root, abs)
	if err != nil || !filepath.IsLocal(rel) {
		return false
	}
	done := s.Since(since) // waits for what is being written
	if isTemp(rel) {
		_, err := os.Lstat(abs)
		return errors.Is(err, fs.ErrNotExist)
	}
	ops := slices.DeleteFunc(done, func(op Op) bool { return !op.wrote() || op.file(rel) == nil })
	if len(ops) == 0 {
		return false
	}
	before, after, err := texts()
	if err != nil {
		return false
	}
	at := sumOrNone(before)
	for _, op := range ops {
		if f := op.file(rel); f.Before == at {
			at = f.After
		}
	}
	return at == sumOrNone(after)
}

// wrote reports whether the store itself wrote the files of an operation.
func (op Op) wrote() bool {
	switch op.Kind {
	case OpEdit, OpUndo, OpRedo, opImport, opShown:
		return true
	default:
		return false
	}
}

// file is what an operation did to a file, nil if nothing.
func (op Op) file(rel string) *FileChange {
	i := slices.IndexFunc(op.Files, func(f FileChange) bool { return f.Path == rel })
	if i < 0 {
		return nil
	}
	return &op.Files[i]
}

// sumOrNone is a file's hash, zero if there is none.
func sumOrNone(text []byte) Hash {
	if text == nil {
		return Hash{}
	}
	return sumFile(text)
}

// Operation returns one operation with its texts.
func (s *Store) Operation(seq uint64) (Op, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	op, ok := s.hist.find(seq)
	if !ok {
		return Op{}, fmt.Errorf("operation %d: %w", seq, ErrNotFound)
	}
	full, err := s.hist.load(op)
	if err != nil {
		return Op{}, err
	}
	return *full, nil
}

// Version is one recorded state of an object.
type Version struct {
	Op   Op // without its lists of files and objects
	Hash Hash
	Own  Hash
	Text string // the section as it became; "" if it was removed or the text is not known
	File string
}

// Versions are the recorded changes of an object's own text, oldest first.
func (s *Store) Versions(id ID) ([]Version, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Version
	names := []ID{id}
	for _, op := range slices.Backward(s.hist.ops) {
		for i := range op.Objects {
			c := &op.Objects[i]
			if !slices.Contains(names, c.ID) || c.OldOwn == c.NewOwn && op.Kind != opConflict {
				continue
			}
			if c.Was != "" {
				names = append(names, c.Was)
			}
			full, err := s.hist.load(op)
			if err != nil {
				return nil, err
			}
			head := *op
			head.Files, head.Objects = nil, nil
			out = append(out, Version{head, c.New, c.NewOwn, string(full.Objects[i].NewText), c.File})
		}
	}
	slices.Reverse(out)
	return out, nil
}

// sectionTextLocked finds the text of a section by the hash it, or its subtree,
// had when a recorded operation replaced it.
func (s *Store) sectionTextLocked(h Hash) ([]byte, bool) {
	for _, op := range slices.Backward(s.hist.ops) {
		for i := range op.Objects {
			c := &op.Objects[i]
			if c.Old != h && c.OldOwn != h || c.OldOwn == c.NewOwn {
				continue
			}
			full, err := s.hist.load(op)
			if err == nil && full.Objects[i].OldText != nil {
				return full.Objects[i].OldText, true
			}
		}
	}
	return nil, false
}

// Undo takes back an operation of the agent, or all of a turn's, and records that
// as an operation of its own. If something else has changed the same place since,
// it refuses with a [*DivergedError]; changes elsewhere in the file stay.
func (s *Store) Undo(ctx context.Context, m Mark) (Result, error) {
	return s.reverse(ctx, OpUndo, func() ([]*Op, error) {
		live := s.liveLocked()
		switch {
		case m.Op != 0:
			op, ok := s.hist.find(m.Op)
			if !ok {
				return nil, fmt.Errorf("operation %d: %w", m.Op, ErrNotFound)
			}
			if !slices.Contains(live, op) {
				return nil, fmt.Errorf("operation %d (%s): %w", m.Op, op.Kind, ErrNothing)
			}
			return []*Op{op}, nil
		case m.Turn != "":
			return slices.DeleteFunc(live, func(o *Op) bool { return o.Turn != m.Turn }), nil
		case !m.Time.IsZero():
			return slices.DeleteFunc(live, func(o *Op) bool { return !o.At.After(m.Time) }), nil
		}
		return live[:min(1, len(live))], nil
	})
}

// Redo takes back the last undo that was not redone.
func (s *Store) Redo(ctx context.Context) (Result, error) {
	return s.reverse(ctx, OpRedo, func() ([]*Op, error) {
		taken := s.takenBackLocked()
		for _, op := range slices.Backward(s.hist.ops) {
			switch {
			case op.Kind == OpUndo && !taken[op.Seq]:
				return []*Op{op}, nil
			case op.Kind == OpEdit || op.Kind == opImport:
				return nil, nil // a new edit ends the chain, as in every editor
			}
		}
		return nil, nil
	})
}

// Rewind takes back every operation of the agent after the mark, newest first, in
// one transaction. What the user did since stays, or makes it refuse.
func (s *Store) Rewind(ctx context.Context, m Mark) (Result, error) {
	return s.reverse(ctx, OpUndo, func() ([]*Op, error) {
		last := m.Op
		if m.Turn != "" {
			for _, op := range s.hist.ops {
				if op.Turn == m.Turn {
					last = op.Seq
				}
			}
			if last == 0 {
				return nil, fmt.Errorf("turn %s: %w", m.Turn, ErrNotFound)
			}
		}
		return slices.DeleteFunc(s.liveLocked(), func(o *Op) bool {
			return o.Seq <= last || !m.Time.IsZero() && !o.At.After(m.Time)
		}), nil
	})
}

// takenBackLocked are the operations some later one reversed.
func (s *Store) takenBackLocked() map[uint64]bool {
	taken := map[uint64]bool{}
	for _, op := range slices.Backward(s.hist.ops) {
		if !taken[op.Seq] { // an undo that was redone no longer counts
			for _, r := range op.Reverses {
				taken[r] = true
			}
		}
	}
	return taken
}

// liveLocked are the agent's operations that stand, newest first. An edit that was
// undone and redone is represented by the redo, which a next undo takes back.
func (s *Store) liveLocked() []*Op {
	taken := s.takenBackLocked()
	redone := map[uint64]bool{}
	for _, op := range s.hist.ops {
		if taken[op.Seq] {
			for _, r := range op.Reverses {
				redone[r] = true
			}
		}
	}
	var out []*Op
	for _, op := range slices.Backward(s.hist.ops) {
		agents := op.Kind == OpEdit || op.Kind == OpRedo || op.Kind == opImport
		if agents && !taken[op.Seq] && !redone[op.Seq] {
			out = append(out, op)
		}
	}
	return out
}

func (s *Store) reverse(ctx context.Context, kind OpKind, pick func() ([]*Op, error)) (Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for race := 0; ; race++ {
		if err := s.writableLocked(); err != nil {
			return Result{}, err
		}
		if err := ctx.Err(); err != nil {
			return Result{}, err
		}
		ops, err := pick()
		if err != nil {
			return Result{}, err
		}
		if len(ops) == 0 {
			return Result{}, ErrNothing
		}
		r, err := s.reverseOnceLocked(kind, ops)
		if !errors.Is(err, errRaced) || race == maxRaces {
			return r, err
		}
	}
}

// reverseOnceLocked undoes operations, newest first, on top of what is on disk now.
func (s *Store) reverseOnceLocked(kind OpKind, ops []*Op) (Result, error) {
	var paths []string
	for _, op := range ops {
		for _, f := range op.Files {
			paths = append(paths, f.Path)
		}
	}
	if err := s.rereadLocked(paths); err != nil {
		return Result{}, err
	}
	b := back{s: s, texts: map[string]text{}, undone: map[uint64]bool{}}
	out := &Op{Kind: kind, At: s.opt.Now(), Label: ops[0].Label}
	for _, op := range ops {
		full, err := s.hist.load(op)
		if err != nil {
			return Result{}, err
		}
		for _, f := range full.Files {
			if err := b.file(op.Seq, f); err != nil {
				return Result{}, err
			}
		}
		b.undone[op.Seq] = true
		out.Reverses = append(out.Reverses, op.Seq)
		if op.Turn != "" {
			out.Turn = op.Turn
		}
	}
	var ts []target
	for p, t := range b.texts {
		if o, ok := s.overlays[p]; ok {
			return Result{}, fmt.Errorf("%s: %w: %s", p, ErrUnsaved, o.client)
		}
		tg := target{path: p, base: s.diskNode(p)}
		if t.exists {
			tg.after = t.b
			tg.now = s.nodeOf(tg, s.parse(p, t.b))
		}
		ts = append(ts, tg)
	}
	return s.writeLocked(out, ts, nil, Result{}, false)
}

// back is the state of an undo: the files as they would become.
type back struct {
	s      *Store
	texts  map[string]text
	undone map[uint64]bool
}

type text struct {
	b      []byte
	exists bool
}

func (b *back) text(p string) text {
	if t, ok := b.texts[p]; ok {
		return t
	}
	if n := b.s.diskNode(p); n != nil {
		return text{append([]byte{}, n.of.Bytes()...), true}
	}
	return text{}
}

func (t text) hash() Hash {
	if !t.exists {
		return Hash{}
	}
	return sumFile(t.b)
}

// file takes one file's change back. If the file is just as the operation left
// it, that is exact; else the places it changed are followed through everything
// recorded since.
func (b *back) file(seq uint64, f FileChange) error {
	t := b.text(f.Path)
	hs := inverse(f.Hunks)
	if t.hash() != f.After {
		moved, ok := b.follow(seq, f.Path, hs)
		if !ok || f.Before.IsZero() || f.After.IsZero() {
			return b.diverged(seq, f, t)
		}
		hs = moved
	}
	out, ok := splice(t.b, hs)
	if !ok {
		return b.diverged(seq, f, t)
	}
	b.texts[f.Path] = text{out, !f.Before.IsZero()}
	return nil
}

// follow maps hunks through the operations recorded after seq; false if one of
// them touched the same place, or is not known in detail.
func (b *back) follow(seq uint64, path string, hs []hunk) ([]hunk, bool) {
	later, ok := b.since(seq, path)
	if !ok {
		return nil, false
	}
	hs = slices.Clone(hs)
	for _, step := range later {
		for i := range hs {
			at, ok := moveThrough(hs[i], step)
			if !ok {
				return nil, false
			}
			hs[i].At = at
		}
	}
	return hs, true
}

// since are the changes of a file after an operation, less the pairs of neighbours
// that cancel out.
func (b *back) since(seq uint64, path string) ([][]hunk, bool) {
	type step struct {
		op    *Op
		hunks []hunk
	}
	var steps []step
	for _, op := range b.s.hist.ops {
		if op.Seq <= seq {
			continue
		}
		for i := range op.Files {
			if op.Files[i].Path != path {
				continue
			}
			full, err := b.s.hist.load(op)
			if err != nil || full.Files[i].Opaque || full.Files[i].Before.IsZero() || full.Files[i].After.IsZero() {
				return nil, false
			}
			if n := len(steps); n > 0 && slices.Contains(op.Reverses, steps[n-1].op.Seq) {
				steps = steps[:n-1]
				continue
			}
			steps = append(steps, step{op, full.Files[i].Hunks})
		}
	}
	// What this very undo has taken back already, if nothing came in between.
	for n := len(steps); n > 0 && b.undone[steps[n-1].op.Seq]; n = len(steps) {
		steps = steps[:n-1]
	}
	var out [][]hunk
	for _, st := range steps {
		if b.undone[st.op.Seq] {
			return nil, false
		}
		out = append(out, st.hunks)
	}
	return out, true
}

// moveThrough is where a hunk lies after a later change; false if they meet.
func moveThrough(h hunk, later []hunk) (int, bool) {
	at, end := h.At, h.At+len(h.Old)
	shift := 0
	for _, l := range later {
		lend := l.At + len(l.Old)
		switch {
		case lend < at || lend == at && (len(l.Old) > 0 || len(h.Old) > 0):
			shift += len(l.New) - len(l.Old)
		case l.At > end || l.At == end && (len(l.Old) > 0 || len(h.Old) > 0):
		default:
			return 0, false
		}
	}
	return at + shift, true
}

// diverged shows how the file differs from what the operation left.
func (b *back) diverged(seq uint64, f FileChange, t text) error {
	e := &DivergedError{Seq: seq, Path: f.Path}
	if left, ok := b.leftBy(seq, f.Path, t.b); ok {
		e.Diff = udiff.Unified("as operation left it", "as it is", string(left), string(t.b))
		return e
	}
	var sb strings.Builder
	for _, h := range f.Hunks {
		fmt.Fprintf(&sb, "@@ byte %d @@\n", h.At)
		for line := range strings.Lines(string(h.Old)) {
			sb.WriteString("-" + line)
		}
		for line := range strings.Lines(string(h.New)) {
			sb.WriteString("+" + line)
		}
	}
	e.Diff = sb.String()
	return e
}

// leftBy reconstructs the file as an operation left it by going back through
// everything recorded since.
func (b *back) leftBy(seq uint64, path string, now []byte) ([]byte, bool) {
	for _, op := range slices.Backward(b.s.hist.ops) {
		if op.Seq <= seq {
			break
		}
		for i := range op.Files {
			if op.Files[i].Path != path {
				continue
			}
			full, err := b.s.hist.load(op)
			if err != nil || full.Files[i].Opaque {
				return nil, false
			}
			var ok bool
			if now, ok = splice(now, inverse(full.Files[i].Hunks)); !ok {
				return nil, false
			}
		}
	}
	return now, true
}
