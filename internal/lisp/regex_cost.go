package lisp

import (
	"io"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"
	"unicode/utf8"
)

// This file knows what regular expressions cost. One search takes time in
// proportion to the text and the program. Two things do not: making a program, of
// which few characters can make much, and finding all matches, because each search
// may read to the end of the text before it settles for a short match.

// parseCost is what reading a pattern costs in steps.
func parseCost(src, flags string) uint64 {
	n := len(src)
	for _, class := range []string{`\p`, `\P`, `\w`, `\W`} {
		n += 64 * strings.Count(src, class)
	}
	if strings.Contains(flags, "i") || strings.Contains(src, "(?") { // case is folded a character at a time
		for i := 0; i+1 < len(src); i++ {
			if src[i] == '-' && (src[i+1] >= utf8.RuneSelf || strings.HasPrefix(src[i+1:], `\x{`)) {
				n += 4096
			}
		}
	}
	return uint64(n)
}

// programSize is about how many instructions a pattern is compiled to.
func programSize(re *syntax.Regexp) int {
	n := 1
	for _, sub := range re.Sub {
		n += programSize(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		n = len(re.Rune)
	case syntax.OpCapture, syntax.OpStar:
		n++
	case syntax.OpAlternate:
		n += len(re.Sub)
	case syntax.OpRepeat:
		n *= max(re.Min, re.Max, 1) // at most a thousand, which the parser sees to
	default:
	}
	return n
}

// looksFar reports whether a search may read much further than the match it finds:
// there are characters after which the pattern is not yet satisfied, either in a
// loop or many of them.
func looksFar(prog *syntax.Prog) bool {
	done := satisfied(prog)
	open := 0
	for pc := range prog.Inst {
		if !consumes(&prog.Inst[pc]) || done[prog.Inst[pc].Out] {
			continue
		}
		if open++; open > 32 || reaches(prog, prog.Inst[pc].Out, uint32(pc)) {
			return true
		}
	}
	return false
}

func consumes(in *syntax.Inst) bool {
	switch in.Op {
	case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		return true
	default:
		return false
	}
}

// next are the instructions that may follow one.
func next(in *syntax.Inst) []uint32 {
	switch in.Op {
	case syntax.InstMatch, syntax.InstFail:
		return nil
	case syntax.InstAlt, syntax.InstAltMatch:
		return []uint32{in.Out, in.Arg}
	default:
		return []uint32{in.Out}
	}
}

// satisfied says at which instructions the pattern matches whatever follows.
func satisfied(prog *syntax.Prog) []bool {
	before := make([][]uint32, len(prog.Inst))
	done := make([]bool, len(prog.Inst))
	var work []uint32
	for pc := range prog.Inst {
		in := &prog.Inst[pc]
		switch {
		case in.Op == syntax.InstMatch:
			work = append(work, uint32(pc))
		case consumes(in), in.Op == syntax.InstEmptyWidth:
		default:
			for _, to := range next(in) {
				before[to] = append(before[to], uint32(pc))
			}
		}
	}
	for len(work) > 0 {
		pc := work[len(work)-1]
		work = work[:len(work)-1]
		if !done[pc] {
			done[pc] = true
			work = append(work, before[pc]...)
		}
	}
	return done
}

// reaches reports whether there is a way from one instruction to another.
func reaches(prog *syntax.Prog, from, to uint32) bool {
	seen := make([]bool, len(prog.Inst))
	work := []uint32{from}
	for len(work) > 0 {
		pc := work[len(work)-1]
		work = work[:len(work)-1]
		if pc == to {
			return true
		}
		if !seen[pc] {
			seen[pc] = true
			work = append(work, next(&prog.Inst[pc])...)
		}
	}
	return false
}

// engine is a compiled pattern, and the same for searches that are paid for while
// they read.
type engine struct {
	*regexp.Regexp
	metered func() *meteredEngine
}

func newEngine(pattern string) (engine, error) {
	re, err := regexp.Compile(pattern)
	return engine{re, sync.OnceValue(func() *meteredEngine { return newMeteredEngine(pattern) })}, err
}

// meteredEngine holds patterns that begin at the beginning of what they read and
// skip to a match, which is their first group. The engine knows nothing of what
// lies before its text, so inside a text the search begins a character early.
type meteredEngine struct{ first, inside *regexp.Regexp }

func newMeteredEngine(pattern string) *meteredEngine {
	if strings.Contains(pattern, `\Q`) { // could quote what is put behind it
		parsed, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			return nil
		}
		pattern = parsed.String()
	}
	first, err := regexp.Compile(`\A(?s:.*?)(` + pattern + `)`)
	inside, err2 := regexp.Compile(`\A(?s:.)(?s:.*?)(` + pattern + `)`)
	if err != nil || err2 != nil {
		return nil
	}
	return &meteredEngine{first, inside}
}

// farEnough is how much work all searches together may be before each is metered.
const farEnough = 1 << 18

// meteredMatches finds what FindAllStringSubmatchIndex finds.
func (th *Thread) meteredMatches(r *regex, e *engine, text string) [][]int {
	th.step(uint64(2 * r.size))
	m := e.metered()
	if m == nil {
		th.fail(classRegexError, "regular expression %s: it is too large to find all matches", th.show(newStr(r.src)))
	}
	var out [][]int
	lastEnd := -1
	for pos := 0; pos <= len(text); {
		re, from := m.first, 0
		if pos > 0 {
			_, n := utf8.DecodeLastRuneInString(text[:pos])
			re, from = m.inside, pos-n
		}
		loc := re.FindReaderSubmatchIndex(&meteredReader{th: th, text: text[from:], cost: r.cost})
		if loc == nil {
			break
		}
		loc = moved(loc[2:], from)
		accept := true
		if loc[1] == pos { // empty, and not right behind the last one
			accept = loc[0] != lastEnd
			_, n := utf8.DecodeRuneInString(text[pos:])
			pos += max(n, 1)
		} else {
			pos = loc[1]
		}
		lastEnd = loc[1]
		if accept {
			out = append(out, loc)
		}
	}
	return out
}

// meteredReader charges for a text as it is read.
type meteredReader struct {
	th   *Thread
	text string
	cost uint64
	debt uint64
}

func (m *meteredReader) ReadRune() (rune, int, error) {
	if m.text == "" {
		return 0, 0, io.EOF
	}
	c, n := utf8.DecodeRuneInString(m.text)
	m.text = m.text[n:]
	m.debt += 4 * uint64(n) * (m.cost + 1) // this way of matching is the slow one
	m.th.step(m.debt / 32)
	m.debt %= 32
	return c, n, nil
}

// textBuilder collects a text and charges for it.
type textBuilder struct {
	th   *Thread
	text strings.Builder
	debt int
}

func (b *textBuilder) write(s string) {
	b.debt += len(s)
	b.th.alloc(b.debt / 16)
	b.debt %= 16
	b.text.WriteString(s)
}
