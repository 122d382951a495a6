package sexp

import (
	"fmt"
	"slices"
)

// A Pos is a place in the input. Lines and columns count from 1, columns in
// bytes; Offset counts bytes from 0.
type Pos struct{ Line, Col, Offset int }

// String is "line:column".
func (p Pos) String() string { return fmt.Sprintf("%d:%d", p.Line, p.Col) }

// A Span is the text of one datum, from its first byte to the one after its last.
type Span struct{ Start, End Pos }

// A SyntaxError says what is wrong with the input, and where.
type SyntaxError struct {
	File              string // may be empty
	Line, Col, Offset int    // as in [Pos]
	Msg               string
	// Incomplete means that the input ended too early: more of it could have
	// made it right. A prompt then reads another line.
	Incomplete bool
}

func (e *SyntaxError) Error() string {
	if e.File == "" {
		return fmt.Sprintf("%d:%d: %s", e.Line, e.Col, e.Msg)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Msg)
}

// Positions tells where the lists and vectors of one datum were written. It
// knows exactly the lists that came out of [Reader.ReadPos], not equal copies.
type Positions struct{ of map[*Value]place }

// A place is held under the address of a list's first item, which is what
// makes a list this one and not another of the same contents.
type place struct {
	span  Span
	items []Pos
}

// List returns the span of l. NIL has none.
func (p *Positions) List(l List) (Span, bool) { return p.span(l.items) }

// Vector returns the span of v. An empty vector has none.
func (p *Positions) Vector(v Vector) (Span, bool) { return p.span(v.items) }

// Item returns where item i of l starts.
func (p *Positions) Item(l List, i int) (Pos, bool) {
	if p == nil || len(l.items) == 0 || i < 0 {
		return Pos{}, false
	}
	w, ok := p.of[&l.items[0]]
	if !ok || i >= len(w.items) {
		return Pos{}, false
	}
	return w.items[i], true
}

func (p *Positions) span(items []Value) (Span, bool) {
	if p == nil || len(items) == 0 {
		return Span{}, false
	}
	w, ok := p.of[&items[0]]
	return w.span, ok
}

// ReadPos is [Reader.Read] that also returns where each list in the datum is.
func (r *Reader) ReadPos() (Value, *Positions, error) {
	p := &Positions{of: make(map[*Value]place)}
	r.where = p
	v, err := r.Read()
	r.where, r.marks = nil, r.marks[:0]
	if err != nil {
		return nil, nil, err
	}
	return v, p, nil
}

// Pos returns where the datum last read starts.
func (r *Reader) Pos() Pos { return r.posAt(r.start) }

// End returns the place after the datum last read.
func (r *Reader) End() Pos { return r.posAt(r.off) }

// record notes the place of the list whose items' offsets are r.marks[mark:].
func (r *Reader) record(items []Value, at, mark int) {
	if r.where == nil {
		return
	}
	if len(items) > 0 {
		w := place{span: Span{r.posAt(at), r.posAt(r.off)}, items: make([]Pos, 0, len(items))}
		for _, off := range r.marks[mark:] {
			w.items = append(w.items, r.posAt(off))
		}
		r.where.of[&items[0]] = w
	}
	r.marks = r.marks[:mark]
}

func (r *Reader) posAt(off int) Pos {
	if r.lines == nil {
		r.lines = []int{0}
		for i, c := range r.src {
			if c == '\n' {
				r.lines = append(r.lines, i+1)
			}
		}
	}
	line, found := slices.BinarySearch(r.lines, off)
	if !found {
		line--
	}
	return Pos{Line: line + 1, Col: off - r.lines[line] + 1, Offset: off}
}

func (r *Reader) errorAt(off int, format string, args ...any) *SyntaxError {
	const most = 200 // bytes: a token can be as long as the input
	p := r.posAt(off)
	return &SyntaxError{File: r.file, Line: p.Line, Col: p.Col, Offset: off, Msg: shorten(fmt.Sprintf(format, args...), most)}
}

// fail stops the reading; [Reader.Read] turns the panic into its result.
func (r *Reader) fail(off int, format string, args ...any) {
	panic(r.errorAt(off, format, args...))
}

func (r *Reader) failIncomplete(off int, format string, args ...any) {
	e := r.errorAt(off, format, args...)
	e.Incomplete = true
	panic(e)
}
