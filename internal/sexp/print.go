package sexp

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A printFrame is an open list or vector of which some items are printed.
type printFrame struct {
	items []Value // still to print
	tail  Value
}

// Print returns the canonical printed form of v.
func Print(v Value) string {
	var buf [256]byte
	return string(AppendValue(buf[:0], v))
}

// AppendValue appends the canonical printed form of v, which a [Reader] in any
// mode reads back to an equal value: one space between items, names in bars
// only where they need them, quote forms by their prefix, line breaks in
// strings as they are.
//
// Three things that Go code can build have no notation, and are printed as
// the nearest thing that has one: a byte that is NUL or not UTF-8 as U+FFFD, a
// nil Value as NIL, and the floats that are no numbers as the keywords :NAN,
// :INFINITY and :-INFINITY.
func AppendValue(dst []byte, v Value) []byte {
	// A loop with its own stack, since code can nest values deeper than a
	// Reader would, and the goroutine's stack is not ours to exhaust.
	var first [16]printFrame
	open := first[:0]
	for {
		var items []Value
		switch x := v.(type) {
		case List:
			if prefix, arg := quoteForm(x); prefix != "" {
				dst = append(dst, prefix...)
				v = arg
				continue
			}
			if len(x.items) == 0 {
				dst = append(dst, "NIL"...)
				break
			}
			dst = append(dst, '(')
			items = x.items
			open = append(open, printFrame{items, x.tail})
		case Vector:
			dst = append(dst, "#("...)
			items = x.items
			open = append(open, printFrame{items, nil})
		default:
			dst = appendAtom(dst, v)
		}
		if len(items) > 0 {
			v = items[0]
			open[len(open)-1].items = items[1:]
			continue
		}
		var more bool
		if dst, open, v, more = nextItem(dst, open); !more {
			return dst
		}
	}
}

// nextItem closes what is complete and returns the next value to print.
func nextItem(dst []byte, open []printFrame) ([]byte, []printFrame, Value, bool) {
	for len(open) > 0 {
		f := &open[len(open)-1]
		if len(f.items) > 0 {
			v := f.items[0]
			f.items = f.items[1:]
			return append(dst, ' '), open, v, true
		}
		if f.tail != nil {
			v := f.tail
			f.tail = nil
			return append(dst, " . "...), open, v, true
		}
		dst = append(dst, ')')
		open = open[:len(open)-1]
	}
	return dst, open, nil, false
}

// quoteForm returns the prefix and argument of a list such as (QUOTE x).
func quoteForm(l List) (string, Value) {
	if len(l.items) != 2 || l.tail != nil {
		return "", nil
	}
	s, ok := l.items[0].(Symbol)
	if !ok || s.Pkg != "" {
		return "", nil
	}
	switch s.Name {
	case "QUOTE":
		return "'", l.items[1]
	case "QUASIQUOTE":
		return "`", l.items[1]
	case "UNQUOTE-SPLICING":
		return ",@", l.items[1]
	case "FUNCTION":
		return "#'", l.items[1]
	case "UNQUOTE":
		if arg, ok := l.items[1].(Symbol); ok && strings.IndexAny(arg.Pkg+arg.Name, ".@") == 0 {
			return ", ", arg // else it would read as a splice
		}
		return ",", l.items[1]
	}
	return "", nil
}

func appendAtom(dst []byte, v Value) []byte {
	switch v := v.(type) {
	case Keyword:
		return appendName(append(dst, ':'), string(v), false)
	case String:
		return appendString(dst, string(v))
	case Symbol:
		return appendSymbol(dst, v)
	case Int:
		if v.big != nil {
			return v.big.Append(dst, 10)
		}
		return strconv.AppendInt(dst, v.small, 10)
	case Float:
		return appendFloat(dst, float64(v))
	case Ratio:
		dst = v.rat.Num().Append(dst, 10)
		return v.rat.Denom().Append(append(dst, '/'), 10)
	case Char:
		return appendChar(dst, rune(v))
	case List, Vector:
		return AppendValue(dst, v)
	}
	return append(dst, "NIL"...)
}

// appendFloat writes the shortest digits that read back, always with a point
// or an exponent, and no exponent where people would not use one.
func appendFloat(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, ":NAN"...)
	case math.IsInf(f, 1):
		return append(dst, ":INFINITY"...)
	case math.IsInf(f, -1):
		return append(dst, ":-INFINITY"...)
	}
	if abs := math.Abs(f); abs != 0 && (abs < 1e-5 || abs >= 1e16) {
		return strconv.AppendFloat(dst, f, 'e', -1, 64)
	}
	from := len(dst)
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	for _, c := range dst[from:] {
		if c == '.' {
			return dst
		}
	}
	return append(dst, ".0"...)
}

func appendChar(dst []byte, c rune) []byte {
	dst = append(dst, `#\`...)
	for _, e := range charNames {
		if e.c == c {
			return append(dst, e.name...)
		}
	}
	if !utf8.ValidRune(c) || bareRune(c) {
		return utf8.AppendRune(dst, c)
	}
	dst = append(dst, "U+"...)
	return append(dst, strings.ToUpper(strconv.FormatInt(int64(c), 16))...)
}

func appendSymbol(dst []byte, s Symbol) []byte {
	switch s.Pkg {
	case "":
		return appendName(dst, s.Name, true)
	case "#":
		dst = append(dst, "#:"...)
	default:
		dst = append(appendName(dst, s.Pkg, true), "::"...)
	}
	return appendName(dst, s.Name, false)
}

// appendName writes a name, between bars if it would be read as another name
// or, with alone, as a number or another notation.
func appendName(dst []byte, name string, alone bool) []byte {
	if isBare(name) && !(alone && notSymbol(name)) {
		return append(dst, name...)
	}
	dst = append(dst, '|')
	for _, c := range name { // a byte that is not UTF-8 ranges as U+FFFD
		switch c {
		case '|', '\\':
			dst = append(dst, '\\')
		case 0:
			c = utf8.RuneError
		}
		dst = utf8.AppendRune(dst, c)
	}
	return append(dst, '|')
}

func isBare(name string) bool {
	if name == "" {
		return false
	}
	for i := 0; i < len(name); i++ {
		switch k := class[name[i]]; {
		case k == isHigh:
			return isBareUnicode(name)
		case k&^isGap != 0:
			return false
		}
	}
	return true
}

func isBareUnicode(name string) bool {
	for _, c := range name {
		if c == utf8.RuneError || c < utf8.RuneSelf && class[c]&^isGap != 0 || c >= utf8.RuneSelf && !bareRune(c) || foldRune(c) != c {
			return false
		}
	}
	return true
}

// notSymbol reports whether a bare name would be read as something else.
func notSymbol(name string) bool {
	if name[0] == '#' || strings.Trim(name, ".") == "" {
		return true
	}
	// Anything like a number: better bars too many than a number by surprise.
	c := name[0]
	return c >= '0' && c <= '9' || (c == '+' || c == '-' || c == '.') && strings.ContainsAny(name, "0123456789")
}

func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	if isPlain(s) {
		dst = append(dst, s...)
		return append(dst, '"')
	}
	if strings.IndexByte(s, 0) >= 0 || !utf8.ValidString(s) {
		s = clean(s)
	}
	run := 0 // start of what is not copied yet
	for i := 0; i < len(s); i++ {
		if c := s[i]; c == '"' || c == '\\' {
			dst = append(append(dst, s[run:i]...), '\\')
			run = i
		}
	}
	dst = append(dst, s[run:]...)
	return append(dst, '"')
}

// isPlain reports whether s can be copied between quotes as it is.
func isPlain(s string) bool {
	if len(s) > 32 { // several passes, each of them vectorised
		return strings.IndexByte(s, '"') < 0 && strings.IndexByte(s, '\\') < 0 && strings.IndexByte(s, 0) < 0 && utf8.ValidString(s)
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; c == '"' || c == '\\' || c == 0 {
			return false
		} else if c >= utf8.RuneSelf && !utf8.ValidString(s) {
			return false
		}
	}
	return true
}

// String is the canonical printed form.
func (s Symbol) String() string { return Print(s) }

// String is the canonical printed form, with the colon.
func (k Keyword) String() string { return Print(k) }

// String is the canonical printed form, in quotes.
func (s String) String() string { return Print(s) }

// String is the number in decimal.
func (i Int) String() string { return Print(i) }

// String is the shortest decimal that reads back.
func (f Float) String() string { return Print(f) }

// String is numerator/denominator.
func (r Ratio) String() string { return Print(r) }

// String is the canonical printed form, such as #\a.
func (c Char) String() string { return Print(c) }

// String is the canonical printed form.
func (l List) String() string { return Print(l) }

// String is the canonical printed form, #(…).
func (v Vector) String() string { return Print(v) }
