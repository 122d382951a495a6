package lisp

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"passepartout/internal/sexp"
)

// A frame is one activation of a function. Frames are kept by the thread and
// used again, so closures copy what they need instead of holding a frame.
type frame struct {
	th    *Thread
	slots []Value
	up    []Value // captured values of the running closure
	buf   []Value
}

// node is one piece of compiled code.
type node interface{ eval(f *frame) Value }

type dynSave struct {
	c   *cell
	old Value
}

// A Thread is one metered run over an [Image]. Whatever it defines, assigns or
// interns stays in the thread. It is not safe for concurrent use; many threads
// may run over one image at once.
type Thread struct {
	img    *Image
	caps   Caps
	budget Budget
	steps  uint64 // left
	cells  uint64 // left
	depth  int    // used
	out    []byte
	dead   error // set once the budget is spent; nothing runs afterwards

	frames []*frame
	fp     int
	stk    []Value
	dyn    []dynSave
	mv     []Value // the values behind manyValues

	handlers *handlerLink
	restarts *restartLink
	catches  []*token

	exitTo  node // block or tagbody a statement is leaving for
	exitTag int
	exitVal Value
	pend    *token // target of the panic in flight
	pendVal Value
	top     *token // of the innermost guard
	failure error  // why pend is top

	over   []*cell
	next   int
	pkgs   map[string]*pkgTable
	thawed map[Value]Value
	// literals are those of the code compiled here, until Freeze makes them the image's
	literals []Value
	lastTail *Cons // what a loop collected last: certainly the thread's own
	gensyms  int
	file     string
	pos      int32 // line of the last call that had one
	where    map[*Cons]int32
	unlock   bool // the base image is being built: locked packages may change
	errand   any  // see Attach
}

// unwindSignal is the panic value of a non-local exit; its target is in pend.
type unwindSignal struct{}

// An ExhaustedError says which part of the budget a thread has used up.
// Nothing in the program could have caught it.
type ExhaustedError struct{ What string }

func (e *ExhaustedError) Error() string { return "budget exhausted: no " + e.What + " left" }

// A ConditionError is a Lisp condition nobody in the program handled.
type ConditionError struct {
	Type string // the condition's type, as TYPE-OF gives it
	Msg  string // the condition's report
	File string
	Line int // 0 when unknown
}

func (e *ConditionError) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File + ":")
		if e.Line > 0 {
			fmt.Fprintf(&b, "%d:", e.Line)
		}
		b.WriteByte(' ')
	}
	return b.String() + strings.ToLower(e.Type) + ": " + e.Msg
}

func (th *Thread) exhaust(what string) {
	th.dead = &ExhaustedError{what}
	panic(th.dead)
}

// step charges n steps.
func (th *Thread) step(n uint64) {
	if th.steps < n {
		th.spent(&th.steps, "steps")
	}
	th.steps -= n
}

// alloc charges n cells, each worth one cons, before they are allocated.
func (th *Thread) alloc(n int) {
	if th.cells < uint64(n) {
		th.spent(&th.cells, "cells")
	}
	th.cells -= uint64(n)
}

func (th *Thread) spent(left *uint64, what string) {
	*left = 0
	th.exhaust(what)
}

// enter charges w levels of nesting until leave gives them back.
func (th *Thread) enter(w int) {
	th.depth += w
	if th.depth > th.budget.Depth {
		th.exhaust("depth")
	}
}

func (th *Thread) leave(w int) { th.depth -= w }

// mark is the state a non-local exit returns to.
type mark struct {
	fp, stk, dyn, depth int
	catches             []*token
	handlers            *handlerLink
	restarts            *restartLink
}

func (th *Thread) mark() mark {
	return mark{th.fp, len(th.stk), len(th.dyn), th.depth, th.catches, th.handlers, th.restarts}
}

func (th *Thread) restore(m mark) {
	th.fp, th.stk, th.depth = m.fp, th.stk[:m.stk], m.depth
	th.catches, th.handlers, th.restarts = m.catches, m.handlers, m.restarts
	th.unbind(m.dyn)
}

func (th *Thread) push(n int) *frame {
	if th.fp == len(th.frames) {
		th.frames = append(th.frames, &frame{th: th})
	}
	f := th.frames[th.fp]
	th.fp++
	if cap(f.buf) < n {
		f.buf = make([]Value, n+n/2)
	}
	f.slots = f.buf[:n]
	return f
}

// catch runs body; a throw to tok meanwhile ends it and gives the thrown value.
func (th *Thread) catch(tok *token, body func() Value) (v Value, caught bool) {
	m := th.mark()
	defer func() {
		if th.pend == tok {
			_ = recover() // the value is in pendVal
			v, caught = th.pendVal, true
			th.pend, th.pendVal = nil, nil
			th.restore(m)
		}
		tok.dead = true
	}()
	return body(), false
}

func (th *Thread) throw(tok *token, v Value) {
	if tok.dead {
		th.fail(classControlError, "attempt to exit to a place that has been left")
	}
	th.pend, th.pendVal = tok, v
	panic(unwindSignal{})
}

// protect runs body and then cleanup, also when a non-local exit leaves body.
// A spent budget runs no cleanup: it could not pay for it.
func (th *Thread) protect(body func() Value, cleanup func()) Value {
	m := th.mark()
	done := false
	defer func() {
		if done || th.dead != nil || th.pend == nil {
			return
		}
		tok, val := th.pend, th.pendVal
		kept := th.kept(val)
		th.pend, th.pendVal = nil, nil
		th.restore(m)
		cleanup()
		th.pend, th.pendVal = tok, val
		th.mv = append(th.mv[:0], kept...)
	}()
	v := body()
	done = true
	kept := th.kept(v)
	if v == exiting {
		kept = th.kept(th.exitVal)
	}
	exitTo, exitTag, exitVal := th.exitTo, th.exitTag, th.exitVal
	cleanup()
	th.mv = append(th.mv[:0], kept...)
	th.exitTo, th.exitTag, th.exitVal = exitTo, exitTag, exitVal
	return v
}

// kept is a copy of the values behind v, if there are any.
func (th *Thread) kept(v Value) []Value {
	if v != manyValues {
		return nil
	}
	th.step(uint64(len(th.mv) / 16))
	return slices.Clone(th.mv)
}

// guard is the boundary between Go and Lisp: inside, errors are panics; outside
// there is one error. A panic that is no exit of ours is a bug of this package;
// it is reported as one and ends the thread.
func (th *Thread) guard(body func() Value) (v Value, err error) {
	if th.dead != nil {
		return nil, th.dead
	}
	m := th.mark()
	outer := th.top
	top := &token{}
	th.top = top
	defer func() {
		th.top = outer
		if th.pend != nil && th.pend != top && th.dead == nil {
			return // on its way to a place outside this call
		}
		r := recover()
		if r == nil {
			return
		}
		v = nil
		th.restore(m)
		th.pend, th.pendVal = nil, nil
		switch r := r.(type) {
		case *ExhaustedError:
			err = r
		case unwindSignal:
			err = th.failure
		case *sexp.SyntaxError:
			err = r
		default:
			th.dead = fmt.Errorf("internal error in lisp: %v", r)
			err = th.dead
		}
	}()
	v = th.one(body())
	return v, nil
}

// uncaught ends the run: no handler took the condition. Cleanups still run.
func (th *Thread) uncaught(err *ConditionError) {
	th.failure = err
	th.pend, th.pendVal = th.top, Nil
	panic(unwindSignal{})
}

// one reduces the values of a call to the first.
func (th *Thread) one(v Value) Value {
	if v == manyValues {
		if len(th.mv) == 0 {
			return Nil
		}
		return th.mv[0]
	}
	return v
}

// values returns several values at once.
func (th *Thread) values(vs ...Value) Value {
	th.mv = append(th.mv[:0], vs...)
	return manyValues
}

// all returns every value of v. The slice is good until the next evaluation.
func (th *Thread) all(v Value) []Value {
	if v == manyValues {
		return th.mv
	}
	th.mv = append(th.mv[:0], v)
	return th.mv
}

// cell returns what a symbol means now; the result must not be written.
func (th *Thread) cell(s *Symbol) *cell {
	i := s.idx
	if i < len(th.over) {
		if c := th.over[i]; c != nil {
			return c
		}
	}
	if i < len(th.img.cells) {
		if c := th.img.cells[i]; c != nil {
			return c
		}
	}
	return emptyCell
}

// own returns the thread's own copy of a symbol's cell.
func (th *Thread) own(s *Symbol) *cell {
	if s.idx >= len(th.over) {
		grown := make([]*cell, max(th.next, s.idx+1)+64)
		copy(grown, th.over)
		th.over = grown
	}
	if c := th.over[s.idx]; c != nil {
		return c
	}
	c := *th.cell(s)
	th.over[s.idx] = &c
	return &c
}

func (th *Thread) bind(s *Symbol, v Value) {
	if th.cell(s).constant || s.keyword() {
		th.fail(classProgramError, "%s is a constant and cannot be bound", s.name)
	}
	c := th.own(s)
	th.dyn = append(th.dyn, dynSave{c, c.value})
	c.value = v
}

func (th *Thread) unbind(to int) {
	for len(th.dyn) > to {
		d := th.dyn[len(th.dyn)-1]
		d.c.value = d.old
		th.dyn = th.dyn[:len(th.dyn)-1]
	}
}

// symbolValue returns the value of a special variable.
func (th *Thread) symbolValue(s *Symbol) Value {
	if v := th.cell(s).value; v != nil {
		return v
	}
	if s.keyword() {
		return s
	}
	th.unboundVariable(s)
	return nil
}

func (th *Thread) setSymbolValue(s *Symbol, v Value) {
	if th.cell(s).constant || s.keyword() {
		th.fail(classSimpleError, "%s is a constant and cannot be changed", s.name)
	}
	th.own(s).value = v
}

// Output returns what the program has written to its standard output.
func (th *Thread) Output() string { return string(th.out) }

// Attach gives the thread a value of the host's, for its builtins to find: what
// this run is for. The program cannot see it.
func (th *Thread) Attach(v any) { th.errand = v }

// Attached is the value of the last Attach.
func (th *Thread) Attached() any { return th.errand }

// Drop takes powers away from the thread. There is no way to give them back.
func (th *Thread) Drop(c Caps) { th.caps &^= c }

// Left returns what remains of the budget.
func (th *Thread) Left() Budget {
	return Budget{Steps: th.steps, Cells: th.cells, Depth: th.budget.Depth - th.depth, Output: th.budget.Output - len(th.out)}
}

// write appends to the program's standard output.
func (th *Thread) write(s string) {
	if len(th.out)+len(s) > th.budget.Output {
		th.out = append(th.out, s[:max(0, th.budget.Output-len(th.out))]...)
		th.exhaust("output")
	}
	th.out = append(th.out, s...)
}

// Exhausted reports whether err means that a budget was used up.
func Exhausted(err error) bool {
	var e *ExhaustedError
	return errors.As(err, &e)
}

// Renew gives the thread a new budget, also after the last one was used up. It
// is for hosts that run one thread for long, like a REPL: between calls, never
// from a builtin.
func (th *Thread) Renew(b Budget) {
	if th.dead != nil && !Exhausted(th.dead) {
		return
	}
	th.dead = nil
	th.budget, th.steps, th.cells, th.depth, th.out = b, b.Steps, b.Cells, 0, nil
}
