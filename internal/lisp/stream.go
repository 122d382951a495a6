package lisp

import (
	"strings"
	"unicode/utf8"
)

// stream is a stream over a string. There are no others: what a program prints
// goes to the thread's output, and there is nothing to read but strings.
type stream struct {
	out    *strings.Builder // of a string output stream
	target *Str             // with-output-to-string into a string with a fill pointer
	std    bool             // the thread's output
	null   bool             // discards
	src    string           // of an input stream
	pos    int
	input  bool
	closed bool
	column int
	frozen bool
}

func (s *stream) kind() string {
	switch {
	case s.input:
		return "STRING-INPUT-STREAM"
	case s.std, s.null:
		return "FD-STREAM"
	}
	return "STRING-OUTPUT-STREAM"
}

func (th *Thread) newStringOutput() *stream {
	th.alloc(4)
	return &stream{out: &strings.Builder{}}
}

func (th *Thread) newStringInput(s string) *stream {
	th.alloc(4)
	return &stream{input: true, src: s}
}

// take returns what was written and starts anew.
func (s *stream) take() string {
	t := s.out.String()
	s.out = &strings.Builder{}
	s.column = 0
	return t
}

func (s *stream) write(th *Thread, t string) {
	if t == "" {
		return
	}
	if i := strings.LastIndexByte(t, '\n'); i >= 0 {
		s.column = utf8.RuneCountInString(t[i+1:])
	} else {
		s.column += utf8.RuneCountInString(t)
	}
	th.step(uint64(1 + len(t)/64))
	switch {
	case s.null:
	case s.std:
		th.write(t)
	case s.target != nil:
		for _, c := range t {
			th.pushChar(s.target, Char(c), true)
		}
	case s.out != nil:
		th.alloc(len(t) / 16)
		s.out.WriteString(t)
	default:
		th.typeError(s, symOutputStream)
	}
}

// streamToChange returns the thread's own version of a stream: reading and writing
// both change it.
func (th *Thread) streamToChange(s *stream) *stream {
	if !s.frozen {
		return s
	}
	if s = th.current(s).(*stream); !s.frozen {
		return s
	}
	own := *s
	own.frozen = false
	if s.out != nil {
		th.alloc(4 + s.out.Len()/16)
		own.out = &strings.Builder{}
		own.out.WriteString(s.out.String())
	}
	th.thaw(s, &own)
	return &own
}

// outStream resolves an output stream designator.
func (th *Thread) outStream(v Value) *stream {
	switch x := v.(type) {
	case nil:
		return th.outStream(th.symbolValue(symStdout))
	case *stream:
		if x = th.streamToChange(x); x.input || x.closed {
			th.typeError(v, symOutputStream)
		}
		return x
	case *Symbol:
		if x == symT || x == Nil {
			return th.outStream(th.symbolValue(symStdout))
		}
	}
	th.typeError(v, symStreamType)
	return nil
}

func (th *Thread) inStream(v Value) *stream {
	switch x := v.(type) {
	case *stream:
		if x.input {
			return th.streamToChange(x)
		}
	case nil:
		return th.inStream(th.symbolValue(symStdin))
	case *Symbol:
		if x == symT || x == Nil {
			return th.inStream(th.symbolValue(symStdin))
		}
	}
	th.typeError(v, symStreamType)
	return nil
}

// eof ends a read at the end of input: an error, or the given value.
func (th *Thread) eof(s *stream, errorp, value Value) Value {
	if errorp == nil || isTrue(errorp) {
		th.raise(th.condition(classEndOfFile, "end of file", symStream, s))
	}
	if value == nil {
		return Nil
	}
	return value
}

func biRead(th *Thread, a []Value) Value {
	s := th.inStream(a[0])
	return th.readFrom(s, a[1], a[2], false)
}

func (th *Thread) readFrom(s *stream, errorp, value Value, keep bool) Value {
	r := th.newReader(s.src)
	r.pos, r.stream = s.pos, s
	v, ok := r.next()
	s.pos = r.pos
	if !ok {
		return th.eof(s, errorp, value)
	}
	if !keep && s.pos < len(s.src) && isSpace(rune(s.src[s.pos])) {
		s.pos++
	}
	return v
}

func biReadFromString(th *Thread, a []Value) Value {
	str := th.stringArg(a[0])
	i, j := th.bounds(a[3], a[4], str.length())
	th.chargeLook(j - i)
	s := th.newStringInput(str.slice(i, j))
	v := th.readFrom(s, a[1], a[2], a[5] != nil && isTrue(a[5]))
	return th.values(v, mkInt(int64(i+utf8.RuneCountInString(s.src[:s.pos]))))
}

func biReadLine(th *Thread, a []Value) Value {
	s := th.inStream(a[0])
	if s.pos >= len(s.src) {
		return th.values(th.eof(s, a[1], a[2]), symT)
	}
	rest := s.src[s.pos:]
	line, _, found := strings.Cut(rest, "\n")
	s.pos += len(line)
	if found {
		s.pos++
	}
	return th.values(th.str(line), mkBool(!found))
}

func readChar(consume bool) func(*Thread, []Value) Value {
	return func(th *Thread, a []Value) Value {
		s := th.inStream(a[0])
		if s.pos >= len(s.src) {
			return th.eof(s, a[1], a[2])
		}
		c, n := utf8.DecodeRuneInString(s.src[s.pos:])
		if consume {
			s.pos += n
		}
		return Char(c)
	}
}

// biPeekChar: (peek-char type stream eof-error-p eof-value)
func biPeekChar(th *Thread, a []Value) Value {
	s := th.inStream(a[1])
	if a[0] != nil && isTrue(a[0]) {
		for s.pos < len(s.src) {
			c, n := utf8.DecodeRuneInString(s.src[s.pos:])
			if want, ok := a[0].(Char); ok && rune(want) == c || !ok && !isSpace(c) {
				break
			}
			th.step(1)
			s.pos += n
		}
	}
	return readChar(false)(th, []Value{s, a[2], a[3]})
}

func biUnreadChar(th *Thread, a []Value) Value {
	s := th.inStream(a[1])
	_, n := utf8.DecodeLastRuneInString(s.src[:s.pos])
	s.pos -= n
	return Nil
}

// printFn makes a printing function: what to write around the text.
func printFn(text func(*Thread, Value) string, before, after string) func(*Thread, []Value) Value {
	return func(th *Thread, a []Value) Value {
		s := th.outStream(a[1])
		s.write(th, before+text(th, a[0])+after)
		return a[0]
	}
}

func (th *Thread) prin1As(v Value) string {
	if isTrue(th.symbolValue(symPrintEscape)) {
		return th.prin1(v)
	}
	return th.princ(v)
}

// biWriteToString prints with the printer variables bound to its keywords.
func biWriteToString(th *Thread, a []Value) Value {
	mark := len(th.dyn)
	for i, s := range printerVars {
		if v := a[1+i]; v != nil {
			th.bind(s, v)
		}
	}
	t := th.prin1As(a[0])
	th.unbind(mark)
	return th.str(t)
}

func biWrite(th *Thread, a []Value) Value {
	t := biWriteToString(th, append([]Value{a[0]}, a[2:]...))
	th.outStream(a[1]).write(th, t.(*Str).text())
	return a[0]
}

func biWriteString(newline string) func(*Thread, []Value) Value {
	return func(th *Thread, a []Value) Value {
		t, _ := th.part(th.stringArg(a[0]), a[2], a[3])
		th.outStream(a[1]).write(th, t+newline)
		return a[0]
	}
}

var printerVars = []*Symbol{symPrintEscape, symPrintBase, symPrintRadix, symPrintCase, symPrintLength, symPrintLevel, symPrintPretty, symPrintCircle, symPrintReadably, symPrintGensym, symPrintArray}

const printerKeys = "escape base radix case length level pretty circle readably gensym array"

var streamPrims = []prim{
	{usage: "(make-string-output-stream &key element-type)", doc: "a stream that collects what is written", fn: func(th *Thread, _ []Value) Value { return th.newStringOutput() }},
	{usage: "(get-output-stream-string stream)", doc: "what was written since last asked", fn1: func(th *Thread, x Value) Value {
		s, ok := x.(*stream)
		if !ok || s.out == nil {
			th.typeError(x, symStreamType)
		}
		return th.str(th.streamToChange(s).take())
	}},
	{usage: "(make-string-input-stream string &optional start end)", doc: "a stream that reads a string", fn: func(th *Thread, a []Value) Value {
		t, _ := th.part(th.stringArg(a[0]), a[1], a[2])
		return th.newStringInput(t)
	}},
	{usage: "(make-broadcast-stream &rest streams)", doc: "a stream that discards, or writes to the first stream", fn: func(_ *Thread, a []Value) Value {
		if len(a) > 0 {
			return a[0]
		}
		return &stream{null: true}
	}},
	{usage: "(passepartout-kernel:string-target string)", doc: "a stream that writes into a string with a fill pointer", fn1: func(th *Thread, x Value) Value { return &stream{target: th.stringArg(x)} }},
	{usage: "(passepartout-kernel:stream-position stream)", doc: "characters read so far", fn1: func(th *Thread, x Value) Value {
		s := th.inStream(x)
		th.chargeLook(s.pos)
		return mkInt(int64(utf8.RuneCountInString(s.src[:s.pos])))
	}},
	{usage: "(read &optional stream eof-error-p eof-value recursive-p)", doc: "read one object; nothing is evaluated", fn: biRead},
	{usage: "(read-preserving-whitespace &optional stream eof-error-p eof-value recursive-p)", doc: "read one object, leaving the space after it", fn: func(th *Thread, a []Value) Value {
		return th.readFrom(th.inStream(a[0]), a[1], a[2], true)
	}},
	{usage: "(read-from-string string &optional eof-error-p eof-value &key start end preserve-whitespace)", doc: "read one object from a string, and where it ends", fn: biReadFromString},
	{usage: "(read-line &optional stream eof-error-p eof-value recursive-p)", doc: "read a line", fn: biReadLine},
	{usage: "(read-char &optional stream eof-error-p eof-value recursive-p)", doc: "read a character", fn: readChar(true)},
	{usage: "(read-char-no-hang &optional stream eof-error-p eof-value recursive-p)", doc: "read a character", fn: readChar(true)},
	{usage: "(peek-char &optional type stream eof-error-p eof-value recursive-p)", doc: "the next character, left in place", fn: biPeekChar},
	{usage: "(unread-char char &optional stream)", doc: "put a character back", fn: biUnreadChar},
	{usage: "(listen &optional stream)", doc: "true if there is more to read", fn: func(th *Thread, a []Value) Value {
		s := th.inStream(a[0])
		return mkBool(s.pos < len(s.src))
	}},
	{usage: "(prin1 object &optional stream)", doc: "print so that it can be read", fn: printFn((*Thread).prin1, "", "")},
	{usage: "(princ object &optional stream)", doc: "print for people", fn: printFn((*Thread).princ, "", "")},
	{usage: "(print object &optional stream)", doc: "print on a line of its own", fn: printFn((*Thread).prin1, "\n", " ")},
	{usage: "(pprint object &optional stream)", doc: "print on a line of its own", fn: func(th *Thread, a []Value) Value {
		th.outStream(a[1]).write(th, "\n"+th.prin1(a[0]))
		return th.values()
	}},
	{usage: "(write object &key stream " + printerKeys + ")", doc: "print, as the keywords say", fn: biWrite},
	{usage: "(write-to-string object &key " + printerKeys + ")", doc: "the printed form, as the keywords say", fn: biWriteToString},
	{usage: "(prin1-to-string object)", doc: "the readable printed form", fn1: func(th *Thread, x Value) Value { return th.str(th.prin1(x)) }},
	{usage: "(princ-to-string object)", doc: "the printed form for people", fn1: func(th *Thread, x Value) Value { return th.str(th.princ(x)) }},
	{usage: "(write-string string &optional stream &key start end)", doc: "write the characters", fn: biWriteString("")},
	{usage: "(write-line string &optional stream &key start end)", doc: "write the characters and a newline", fn: biWriteString("\n")},
	{usage: "(write-char char &optional stream)", doc: "write a character", fn: func(th *Thread, a []Value) Value {
		th.outStream(a[1]).write(th, string(th.charArg(a[0])))
		return a[0]
	}},
	{usage: "(terpri &optional stream)", doc: "write a newline", fn: func(th *Thread, a []Value) Value { th.outStream(a[0]).write(th, "\n"); return Nil }},
	{usage: "(fresh-line &optional stream)", doc: "write a newline unless at the start of a line", fn: func(th *Thread, a []Value) Value {
		s := th.outStream(a[0])
		if s.column == 0 {
			return Nil
		}
		s.write(th, "\n")
		return symT
	}},
	{usage: "(finish-output &optional stream)", doc: "nothing: output is not buffered", fn: func(th *Thread, a []Value) Value { th.outStream(a[0]); return Nil }},
	{usage: "(force-output &optional stream)", doc: "nothing: output is not buffered", fn: func(th *Thread, a []Value) Value { th.outStream(a[0]); return Nil }},
	{usage: "(clear-output &optional stream)", doc: "nothing: output is not buffered", fn: func(*Thread, []Value) Value { return Nil }},
	{usage: "(close stream &key abort)", doc: "end a stream", fn: func(th *Thread, a []Value) Value {
		s, ok := a[0].(*stream)
		if !ok {
			th.typeError(a[0], symStreamType)
		}
		if !s.std {
			th.streamToChange(s).closed = true
		}
		return symT
	}},
	{usage: "(streamp object)", doc: "true for a stream", fn1: func(_ *Thread, x Value) Value { _, ok := x.(*stream); return mkBool(ok) }},
	{usage: "(input-stream-p stream)", doc: "true for an input stream", fn1: func(_ *Thread, x Value) Value { s, ok := x.(*stream); return mkBool(ok && s.input) }},
	{usage: "(output-stream-p stream)", doc: "true for an output stream", fn1: func(_ *Thread, x Value) Value { s, ok := x.(*stream); return mkBool(ok && !s.input) }},
	{usage: "(open-stream-p stream)", doc: "true until a stream is closed", fn1: func(th *Thread, x Value) Value {
		s, ok := x.(*stream)
		return mkBool(ok && !th.current(s).(*stream).closed)
	}},
}
