package act

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"passepartout/internal/memory"
	"passepartout/internal/proto"
	"passepartout/internal/undo"
)

// History is everything the agent changed, in one order: files as they were
// before a tool or a command, and edits of the memex. Each of the two stores keeps
// its own part and restores it; neither overwrites what somebody did since.
type History struct {
	Files  *undo.Store   // nil: files are not remembered
	Memory *memory.Store // nil: there is no memex
}

// A Step is one change the agent made.
type Step struct {
	At     time.Time
	Label  string
	Turn   string
	Ruling string // that let it happen
	Paths  []string
	Undone bool

	memory bool
	id     uint64 // the entry's, or the operation's to take back
}

// Steps lists the changes, newest first.
func (h History) Steps() []Step {
	var out []Step
	if h.Files != nil {
		for _, e := range h.Files.Entries() {
			s := Step{At: e.At, Label: e.Label, Turn: e.Group, Ruling: stepOf(e.Label), Undone: e.Undone, id: e.ID}
			for _, c := range e.Changes {
				s.Paths = append(s.Paths, c.Abs())
			}
			s.Paths = append(s.Paths, e.Lost...)
			out = append(out, s)
		}
	}
	if h.Memory != nil {
		out = append(out, memorySteps(h.Memory.History())...)
	}
	slices.SortStableFunc(out, func(a, b Step) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(b.id, a.id))
	})
	return out
}

// memorySteps are the edits of the memex. An edit that was undone and redone is
// one step; what a next undo takes back is then the redo.
func memorySteps(ops []memory.Op) []Step {
	var out []Step
	of := map[uint64][]int{} // an operation's steps, by index
	for _, op := range ops {
		switch op.Kind {
		case memory.OpEdit:
			s := Step{At: op.At, Label: op.Label, Turn: op.Turn, Ruling: stepOf(op.Label), memory: true, id: op.Seq}
			for _, f := range op.Files {
				s.Paths = append(s.Paths, f.Path)
			}
			of[op.Seq] = []int{len(out)}
			out = append(out, s)
		case memory.OpUndo, memory.OpRedo:
			for _, r := range op.Reverses {
				for _, i := range of[r] {
					out[i].Undone, out[i].id = op.Kind == memory.OpUndo, op.Seq
					of[op.Seq] = append(of[op.Seq], i)
				}
			}
		default:
		}
	}
	return out
}

// ErrNothing means that there is no such change to undo or redo.
var ErrNothing = errors.New("nothing to undo or redo")

// Undo takes back the last n changes that stand, newest first. It stops at the
// first that was changed since; the steps returned were taken back.
func (h History) Undo(ctx context.Context, n int) ([]Step, error) {
	standing := slices.DeleteFunc(h.Steps(), func(s Step) bool { return s.Undone })
	return h.takeBack(ctx, standing[:min(n, len(standing))])
}

// UndoOf takes back what one turn did, or one step of it.
func (h History) UndoOf(ctx context.Context, turnOrRuling string) ([]Step, error) {
	return h.takeBack(ctx, slices.DeleteFunc(h.Steps(), func(s Step) bool {
		return s.Undone || s.Turn != turnOrRuling && s.Ruling != turnOrRuling
	}))
}

func (h History) takeBack(ctx context.Context, steps []Step) ([]Step, error) {
	if len(steps) == 0 {
		return nil, ErrNothing
	}
	for i, s := range steps {
		var err error
		if s.memory {
			_, err = h.Memory.Undo(ctx, memory.Mark{Op: s.id})
		} else {
			err = h.Files.Undo(s.id)
		}
		if err != nil {
			return steps[:i], fmt.Errorf("%s: %w", s.Label, err)
		}
	}
	return steps, nil
}

// Redo brings back the changes undone last, the oldest of them first: those
// behind the newest change that stands.
func (h History) Redo(ctx context.Context, n int) ([]Step, error) {
	all := h.Steps()
	first := slices.IndexFunc(all, func(s Step) bool { return !s.Undone })
	if first >= 0 {
		all = all[:first]
	}
	slices.Reverse(all)
	if all = all[:min(n, len(all))]; len(all) == 0 {
		return nil, ErrNothing
	}
	for i, s := range all {
		var err error
		if s.memory {
			_, err = h.Memory.Redo(ctx)
		} else {
			err = h.Files.Redo(s.id)
		}
		if err != nil {
			return all[:i], fmt.Errorf("%s: %w", s.Label, err)
		}
	}
	return all, nil
}

// kept is what came of remembering a change.
type kept struct {
	note  string   // for the person, when it cannot be undone
	paths []string // that changed
}

// keep does something and remembers what it changed within the scopes, without what
// the memex's own edits did there meanwhile: those are steps of their own. With must, a
// change that cannot be remembered is not made.
func (h History) keep(ctx context.Context, what string, scopes []undo.Scope, must bool, do func() error) (kept, error) {
	if h.Files == nil || len(scopes) == 0 {
		return kept{}, do()
	}
	t := turnOf(ctx)
	var notes undo.Claim
	if h.Memory != nil {
		since := h.Memory.Last()
		notes = func(abs string, texts func() (before, after []byte, err error)) bool {
			return h.Memory.Wrote(since, abs, texts)
		}
	}
	c, err := h.Files.Begin(t.label(what), t.ID, scopes...)
	if err != nil {
		if must {
			return kept{}, fmt.Errorf("nothing was changed, because it could not be undone: %w", err)
		}
		return kept{note: fmt.Sprintf("\n(What this changed cannot be undone: %v.)", err)}, do()
	}
	failed := do()
	e, err := c.Commit(notes)
	if err != nil {
		return kept{note: fmt.Sprintf("\n(What this changed cannot be undone: %v.)", err)}, failed
	}
	var k kept
	for _, ch := range e.Changes {
		k.paths = append(k.paths, ch.Abs())
	}
	if len(e.Lost) > 0 {
		k.paths = append(k.paths, e.Lost...)
		k.note = fmt.Sprintf("\n(Not kept for undo, being too large or no files: %s.)", strings.Join(e.Lost[:min(3, len(e.Lost))], ", "))
	}
	return k, failed
}

// maxSteps is how many steps one call undoes or lists.
const maxSteps = 1000

// Tools are the tools over the history. Putting back what the agent itself wrote
// is an edit of what is the agent's to edit, whichever files it lies in: the
// effect is that of writing the memex.
func (h History) Tools() []Tool {
	count := proto.Param{Name: "COUNT", Type: proto.Number, Doc: "how many changes, 1 by default"}
	return []Tool{
		{
			Name: "undo", Effect: proto.WriteMemory, Doc: "Take back the agent's own last changes to files and notes, unless they were changed since.",
			Params: []proto.Param{count, {Name: "OF", Type: proto.Text, Doc: "a turn or an action, by its id, instead of the last"}},
			Guard: func(c Call) error {
				if c.Has("OF") && c.Has("COUNT") {
					return errors.New("give :COUNT or :OF, not both")
				}
				return positive("COUNT")(c)
			},
			Run: h.undoTool,
		},
		{
			Name: "redo", Effect: proto.WriteMemory, Doc: "Bring back the changes that were undone last.",
			Params: []proto.Param{count}, Guard: positive("COUNT"), Run: h.redoTool,
		},
		{
			Name: "list-changes", Effect: proto.ReadLocal, Doc: "List the agent's own last changes, newest first.",
			Params: []proto.Param{{Name: "COUNT", Type: proto.Number, Doc: "how many, 20 by default"}}, Guard: positive("COUNT"), Run: h.listTool,
		},
	}
}

func (h History) undoTool(ctx context.Context, c Call) (Outcome, error) {
	if of := c.Text("OF"); of != "" {
		steps, err := h.UndoOf(ctx, of)
		return told("Undone", steps, err)
	}
	steps, err := h.Undo(ctx, min(c.Int("COUNT", 1), maxSteps))
	return told("Undone", steps, err)
}

func (h History) redoTool(ctx context.Context, c Call) (Outcome, error) {
	steps, err := h.Redo(ctx, min(c.Int("COUNT", 1), maxSteps))
	return told("Redone", steps, err)
}

// told says what was restored, and what stood in the way of the rest.
func told(word string, steps []Step, err error) (Outcome, error) {
	if errors.Is(err, ErrNothing) {
		return Failed("There is nothing to be %s.", strings.ToLower(word)), nil
	}
	o := Outcome{OK: err == nil}
	var lines []string
	for _, s := range steps {
		lines = append(lines, fmt.Sprintf("%s: %s", word, s.Label))
		o.Changed = append(o.Changed, s.Paths...)
	}
	if err != nil {
		lines = append(lines, "Stopped: "+refusal(err))
	}
	o.Text = strings.Join(lines, "\n")
	return o, nil
}

// refusal is why something was not restored, for the person.
func refusal(err error) string {
	var conflict *undo.ConflictError
	var lost *undo.IncompleteError
	var diverged *memory.DivergedError
	switch {
	case errors.As(err, &conflict):
		return "changed since, and left alone: " + strings.Join(conflict.Paths, ", ")
	case errors.As(err, &lost):
		return "the earlier state was not kept: " + strings.Join(lost.Paths, ", ")
	case errors.As(err, &diverged):
		return fmt.Sprintf("changed since, and left alone: %s\n%s", diverged.Path, diverged.Diff)
	}
	return err.Error()
}

func (h History) listTool(_ context.Context, c Call) (Outcome, error) {
	steps := h.Steps()
	if len(steps) == 0 {
		return Outcome{OK: true, Text: "Nothing was changed yet."}, nil
	}
	shown := min(c.Int("COUNT", 20), len(steps), maxSteps)
	var b strings.Builder
	for _, s := range steps[:shown] {
		state := ""
		if s.Undone {
			state = "  undone"
		}
		fmt.Fprintf(&b, "%s  %s  %s%s\n", s.At.Format("2006-01-02 15:04:05"), s.Turn, s.Label, state)
		for _, p := range s.Paths[:min(len(s.Paths), 10)] {
			fmt.Fprintf(&b, "    %s\n", p)
		}
	}
	return Outcome{OK: true, Text: strings.TrimRight(b.String(), "\n"), Truncated: shown < len(steps)}, nil
}
