package sexp_test

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"runtime/debug"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"passepartout/internal/sexp"
)

// anyValue draws values of every kind, with names and strings that need care.
func anyValue() *rapid.Generator[sexp.Value] {
	text := rapid.OneOf(
		rapid.StringMatching(`[A-Z]{1,8}`),
		rapid.StringMatching(`[-+.0-9eE/]{1,6}`),
		rapid.StringMatching(`[a-z:|\\#"';,@(). \n]{0,6}`),
		rapid.String().Filter(func(s string) bool { return !strings.Contains(s, "\x00") }),
		rapid.SampledFrom([]string{"NIL", "T", "QUOTE", "UNQUOTE", "FUNCTION", ".X", "@X", "ſ", "ı", "straße", "ΣΑΣ", "\u00a0", "İ"}),
	)
	atom := rapid.OneOf(
		rapid.Custom(func(t *rapid.T) sexp.Value {
			pkg := rapid.SampledFrom([]string{"", "", "#", "CL-USER", "a b"}).Draw(t, "pkg")
			return sexp.Symbol{Pkg: pkg, Name: text.Draw(t, "symbol")}
		}),
		rapid.Custom(func(t *rapid.T) sexp.Value { return sexp.Keyword(text.Draw(t, "keyword")) }),
		rapid.Custom(func(t *rapid.T) sexp.Value { return sexp.String(text.Draw(t, "string")) }),
		rapid.Custom(func(t *rapid.T) sexp.Value { return sexp.NewInt(rapid.Int64().Draw(t, "int")) }),
		rapid.Custom(func(t *rapid.T) sexp.Value {
			n := new(big.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "big"))
			if rapid.Bool().Draw(t, "minus") {
				n.Neg(n)
			}
			return sexp.NewBigInt(n)
		}),
		rapid.Custom(func(t *rapid.T) sexp.Value { return sexp.Float(rapid.Float64().Draw(t, "float")) }),
		rapid.Custom(func(t *rapid.T) sexp.Value {
			v, err := sexp.NewRatio(big.NewInt(rapid.Int64().Draw(t, "num")), big.NewInt(rapid.Int64Range(1, math.MaxInt64).Draw(t, "den")))
			if err != nil {
				t.Fatal(err)
			}
			return v
		}),
		rapid.Custom(func(t *rapid.T) sexp.Value { return sexp.Char(rapid.Rune().Draw(t, "char")) }),
	)
	var value func(depth int) *rapid.Generator[sexp.Value]
	value = func(depth int) *rapid.Generator[sexp.Value] {
		if depth == 0 {
			return atom
		}
		sub := rapid.Deferred(func() *rapid.Generator[sexp.Value] { return value(depth - 1) })
		items := rapid.SliceOfN(sub, 0, 5)
		return rapid.OneOf(
			atom,
			rapid.Custom(func(t *rapid.T) sexp.Value { return sexp.NewList(items.Draw(t, "items")...) }),
			rapid.Custom(func(t *rapid.T) sexp.Value { return sexp.NewDotted(items.Draw(t, "items"), sub.Draw(t, "tail")) }),
			rapid.Custom(func(t *rapid.T) sexp.Value { return sexp.NewVector(items.Draw(t, "items")...) }),
			rapid.Custom(func(t *rapid.T) sexp.Value {
				name := rapid.SampledFrom([]string{"QUOTE", "QUASIQUOTE", "UNQUOTE", "UNQUOTE-SPLICING", "FUNCTION"}).Draw(t, "prefix")
				return sexp.NewList(sexp.Sym(name), sub.Draw(t, "quoted"))
			}),
		)
	}
	return value(4)
}

func TestEveryValueIsReadBackFromItsPrintedForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := anyValue().Draw(t, "value")
		printed := sexp.Print(v)
		for _, lisp := range []bool{false, true} {
			back, err := sexp.NewReader([]byte(printed), sexp.Options{Lisp: lisp}).Read()
			if err != nil {
				t.Fatalf("Read(%q), lisp %v: %v", printed, lisp, err)
			}
			if !sexp.Equal(v, back) {
				t.Fatalf("%q read back as %q", printed, sexp.Print(back))
			}
			if again := sexp.Print(back); again != printed {
				t.Fatalf("printed %q, read, printed %q", printed, again)
			}
			if sexp.Sum(v) != sexp.Sum(back) {
				t.Fatalf("%q: digest changed by printing and reading", printed)
			}
		}
	})
}

func TestReadAcceptsTheNotation(t *testing.T) {
	tests := []struct{ src, want string }{
		{"foo", "FOO"},
		{"|foo bar|", "|foo bar|"},
		{`\foo`, "|fOO|"},
		{"nil", "NIL"},
		{"()", "NIL"},
		{"|NIL|", "NIL"},
		{":Key", ":KEY"},
		{":|key|", ":|key|"},
		{"cl:car", "CL::CAR"},
		{"cl::car", "CL::CAR"},
		{"#:gensym", "#:GENSYM"},
		{"1+", "|1+|"},
		{"-", "-"},
		{"+", "+"},
		{"...x", "...X"},
		{"12", "12"},
		{"-12.", "-12"},
		{"+7", "7"},
		{"123456789012345678901234567890", "123456789012345678901234567890"},
		{"9223372036854775807", "9223372036854775807"},
		{"-9223372036854775808", "-9223372036854775808"},
		{"6/4", "3/2"},
		{"-6/3", "-2"},
		{"1.5", "1.5"},
		{".5", "0.5"},
		{"1e3", "1000.0"},
		{"1.5d0", "1.5"},
		{"1.e2", "100.0"},
		{"-0.0", "-0.0"},
		{"1e100", "1e+100"},
		{`"a\"b\\c"`, `"a\"b\\c"`},
		{`"\n"`, `"n"`},
		{"\"two\nlines\"", "\"two\nlines\""},
		{`#\a`, `#\a`},
		{`#\(`, `#\(`},
		{`#\space`, `#\Space`},
		{`#\u+e9`, `#\é`},
		{"(a . b)", "(A . B)"},
		{"(a . (b c))", "(A B C)"},
		{"(a . (b . c))", "(A B . C)"},
		{"(a . nil)", "(A)"},
		{"(a.b)", "(A.B)"},
		{"#(1 #() 2)", "#(1 #() 2)"},
		{"'x", "'X"},
		{"(quote x)", "'X"},
		{"(quote x y)", "(QUOTE X Y)"},
		{"(quote . x)", "(QUOTE . X)"},
		{"`(a ,b ,@c)", "`(A ,B ,@C)"},
		{", @x", ", @X"},
		{"#'car", "#'CAR"},
		{"; note\n(a ; b\n c)", "(A C)"},
		{"naïve", "NAÏVE"},
		{"ſhell", "ſHELL"},
	}
	for _, tt := range tests {
		v, err := sexp.Read([]byte(tt.src), sexp.Limits{})
		if err != nil {
			t.Errorf("Read(%q): %v", tt.src, err)
			continue
		}
		if got := v.String(); got != tt.want {
			t.Errorf("Read(%q) = %s, want %s", tt.src, got, tt.want)
		}
	}
}

func TestReadRefusesWithAPosition(t *testing.T) {
	tests := []struct {
		src        string
		wantError  string
		incomplete bool
	}{
		{"", "1:1: end of input", true},
		{" ; only a comment", "1:18: end of input", true},
		{"(a\n  (b", "2:3: a list without its closing parenthesis", true},
		{`(a "b`, "1:4: a string without its closing quote", true},
		{`"b\`, "1:1: a string without its closing quote", true},
		{"|a", "1:1: a name without its closing bar", true},
		{"'", "1:2: end of input", true},
		{"#", "1:1: end of input after #", true},
		{`#\`, "1:1: end of input", true},
		{"(a . ", "1:1: a list without", true},
		{")", "1:1: a closing parenthesis", false},
		{"a b", "1:3: a second datum", false},
		{"(a . b c)", "1:8: more than one datum after the dot", false},
		{"(. a)", "1:2: a dot with nothing before", false},
		{"(a .)", "1:5: a dot with nothing after", false},
		{"#(a . b)", "1:5: a dot in a vector", false},
		{"(')", "1:3: ", false},
		{"..", "1:1: ..: want a dot alone", false},
		{":", "1:1: a colon alone", false},
		{"a:b:c", "1:1: more than one package marker", false},
		{"a:::b", "1:1: more than one package marker", false},
		{"a:", "1:1: a:: want a name", false},
		{"::a", "1:1: ::a: want one colon", false},
		{"||:a", "1:1: ||:a: want a package", false},
		{"#.(quit)", "1:1: #. is refused", false},
		{"(a #.(quit))", "1:4: #. is refused", false},
		{"#1=(a)", "1:1: the notation #1 is refused", false},
		{"#1#", "1:1: the notation #1 is refused", false},
		{"#S(a)", "1:1: the notation #S is refused", false},
		{`#P"/etc"`, "1:1: the notation #P is refused", false},
		{"#+sbcl a", "1:1: the notation #+ is refused", false},
		{"#|c|# a", "1:1: the notation #| is refused", false},
		{"#xFF", "1:1: the notation #x is refused", false},
		{"#é", "1:1: the notation #é is refused", false},
		{`#\nosuch`, `1:1: #\nosuch: want one character`, false},
		{`#\U+D800`, `1:1: #\U+D800: want one character`, false},
		{"1/0", "1:1: ratio 1/0", false},
		{"1e400", "1:1: 1e400: want a number that fits", false},
		{",.x", "1:1: the destructive splice", false},
		{"a\x00b", "1:2: a NUL byte", false},
		{"\"\x00\"", "1:2: a NUL byte", false},
		{"(a\n\"\xff\")", "2:2: a byte that is not UTF-8", false},
		{"\x01", "1:1: the character U+0001 between data", false},
		{"a\u00a0b", "1:2: the character U+00A0 in a name", false},
		{strings.Repeat("9", sexp.MaxDigits+1), "1:1: a number of 10001 digits", false},
	}
	for _, tt := range tests {
		v, err := sexp.Read([]byte(tt.src), sexp.Limits{})
		var syntax *sexp.SyntaxError
		if !errors.As(err, &syntax) {
			t.Errorf("Read(%.40q) = %v, %v; want a syntax error", tt.src, v, err)
			continue
		}
		if !strings.HasPrefix(err.Error(), tt.wantError) || syntax.Incomplete != tt.incomplete {
			t.Errorf("Read(%.40q): %q, incomplete %v; want %q, incomplete %v", tt.src, err, syntax.Incomplete, tt.wantError, tt.incomplete)
		}
	}
}

func TestLimitsBoundWhatIsRead(t *testing.T) {
	tests := []struct {
		name, src, wantError string
		limits               sexp.Limits
	}{
		{"bytes", "(a b c)", "input has 7 bytes", sexp.Limits{Bytes: 6}},
		{"depth of lists", "(((a)))", "nesting deeper than 2", sexp.Limits{Depth: 2}},
		{"depth of vectors", "#(#(#(a)))", "nesting deeper than 2", sexp.Limits{Depth: 2}},
		{"depth of quotes", "'''a", "nesting deeper than 2", sexp.Limits{Depth: 2}},
		{"default depth", strings.Repeat("(", 1_000_000), "nesting deeper than 256", sexp.Limits{}},
		{"highest depth", strings.Repeat("(", 1_000_000), "nesting deeper than 10000", sexp.Limits{Depth: math.MaxInt}},
		{"items", "(a a a)", "more than 3 items", sexp.Limits{Items: 3}},
		{"few names", "(a :a |a| b)", "more than 3 distinct names", sexp.Limits{Symbols: 3}},
		{"many names", manyNames(1 << 17), "more than 65536 distinct names", sexp.Limits{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := sexp.Read([]byte(tt.src), tt.limits)
			if err == nil || !strings.Contains(err.Error(), tt.wantError) {
				t.Errorf("got error %v, want %q", err, tt.wantError)
			}
		})
	}
	within := []struct {
		src    string
		limits sexp.Limits
	}{
		{"(((a)))", sexp.Limits{Depth: 3}},
		{"(a) ", sexp.Limits{Bytes: 4}},
		{"(a a a)", sexp.Limits{Items: 4, Symbols: 1}},
		{"(a :a |a|)", sexp.Limits{Symbols: 3}},
		{manyNames(1000), sexp.Limits{Symbols: 1000}},
	}
	for _, tt := range within {
		if _, err := sexp.Read([]byte(tt.src), tt.limits); err != nil {
			t.Errorf("Read(%.20q, %+v): %v", tt.src, tt.limits, err)
		}
	}
}

// manyNames returns a list of n distinct symbols, each written twice.
func manyNames(n int) string {
	var b strings.Builder
	b.WriteByte('(')
	for i := range n {
		name := "S" + sexp.NewInt(int64(i)).String() + " "
		b.WriteString(name + name)
	}
	b.WriteByte(')')
	return b.String()
}

func TestLispModeReadsProgramText(t *testing.T) {
	tests := []struct{ src, want string }{
		{"#xFF", "255"},
		{"#x-ff", "-255"},
		{"#b101/11", "5/3"},
		{"#o777777777777777777777777777", "2417851639229258349412351"},
		{"#| a #| nested |# b |# c", "C"},
		{"(a #+go b #-go c)", "(A B)"},
		{"(a #+sbcl b #-sbcl c)", "(A C)"},
		{"(#+(and go (not sbcl)) x #+(or sbcl ccl) y)", "(X)"},
		{"#+go #+sbcl a b", "B"},
		{"(a #+sbcl b)", "(A)"},
	}
	for _, tt := range tests {
		v, err := sexp.NewReader([]byte(tt.src), sexp.Options{Lisp: true, Features: []string{"go"}}).Read()
		if err != nil {
			t.Errorf("Read(%q): %v", tt.src, err)
			continue
		}
		if got := v.String(); got != tt.want {
			t.Errorf("Read(%q) = %s, want %s", tt.src, got, tt.want)
		}
	}
	refused := []struct{ src, want string }{
		{"#.(a)", "#. is refused"},
		{"#xyz", "want an integer or a ratio in base 16"},
		{"#| open", "block comment without its end"},
		{"(a #+go)", "a feature test without a datum"},
		{"#+go", "a feature test without a datum"},
		{"#+(xor a b) c", "want a feature"},
		{strings.Repeat("#+go ", 1_000_000), "a feature test without a datum"},
		{strings.Repeat("#+sbcl ", 1_000_000), "nesting deeper than 256"},
	}
	for _, tt := range refused {
		_, err := sexp.NewReader([]byte(tt.src), sexp.Options{File: "x.org", Lisp: true, Features: []string{"go"}}).Read()
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "x.org:1:") {
			t.Errorf("Read(%.30q): error %v, want %q", tt.src, err, tt.want)
		}
	}
}

func TestReaderReturnsDataInOrderAndStaysAtItsError(t *testing.T) {
	r := sexp.NewReader([]byte("a (b)\n\n  c )"), sexp.Options{})
	for _, want := range []struct {
		text string
		pos  sexp.Pos
	}{{"A", sexp.Pos{Line: 1, Col: 1}}, {"(B)", sexp.Pos{Line: 1, Col: 3, Offset: 2}}, {"C", sexp.Pos{Line: 3, Col: 3, Offset: 9}}} {
		v, err := r.Read()
		if err != nil {
			t.Fatal(err)
		}
		if end := r.End().Offset; end != r.Pos().Offset+len(want.text) {
			t.Errorf("%s ends at %d", v, end)
		}
		if v.String() != want.text || r.Pos() != want.pos || r.Pos().String() == "" {
			t.Errorf("read %s at %v, want %s at %v", v, r.Pos(), want.text, want.pos)
		}
	}
	_, first := r.Read()
	_, second := r.Read()
	if first == nil || !errors.Is(second, first) {
		t.Errorf("errors %v, then %v: want the same one twice", first, second)
	}
	r = sexp.NewReader([]byte(" a ; end"), sexp.Options{})
	if _, err := r.Read(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := r.Read(); !errors.Is(err, io.EOF) {
			t.Errorf("at the end: error %v, want EOF", err)
		}
	}
}

func TestReadPosKnowsEverySubList(t *testing.T) {
	src := "(defun f (x)\n  '(1 x) #(2))"
	v, where, err := sexp.NewReader([]byte(src), sexp.Options{Lisp: true}).ReadPos()
	if err != nil {
		t.Fatal(err)
	}
	form := v.(sexp.List)
	span := func(l sexp.List) string {
		s, ok := where.List(l)
		if !ok {
			return "unknown"
		}
		return src[s.Start.Offset:s.End.Offset]
	}
	quoted := form.At(3).(sexp.List)
	for _, tt := range []struct {
		list sexp.List
		want string
	}{{form, src}, {form.At(2).(sexp.List), "(x)"}, {quoted, "'(1 x)"}, {quoted.At(1).(sexp.List), "(1 x)"}} {
		if got := span(tt.list); got != tt.want {
			t.Errorf("span of %s = %q, want %q", tt.list, got, tt.want)
		}
	}
	if s, ok := where.Vector(form.At(4).(sexp.Vector)); !ok || s.Start != (sexp.Pos{Line: 2, Col: 10, Offset: 22}) {
		t.Errorf("span of the vector = %v, %v", s, ok)
	}
	if p, ok := where.Item(quoted.At(1).(sexp.List), 1); !ok || src[p.Offset] != 'x' {
		t.Errorf("second item of (1 x) at %v, %v", p, ok)
	}
	if _, ok := where.List(sexp.NewList(sexp.Sym("X"))); ok {
		t.Error("a list that was not read has a position")
	}
}

func TestTheSpanOfAListReadsAsThatList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := sexp.Print(anyValue().Draw(t, "value"))
		v, where, err := sexp.NewReader([]byte(src), sexp.Options{}).ReadPos()
		if err != nil {
			t.Fatal(err)
		}
		var walk func(v sexp.Value)
		walk = func(v sexp.Value) {
			l, ok := v.(sexp.List)
			if !ok || l.Len() == 0 {
				return
			}
			span, ok := where.List(l)
			if !ok {
				t.Fatalf("%s has no span", l)
			}
			part, err := sexp.Read([]byte(src[span.Start.Offset:span.End.Offset]), sexp.Limits{})
			if err != nil || !sexp.Equal(part, l) {
				t.Fatalf("the span of %s reads as %v, %v", l, part, err)
			}
			for i, item := range l.Items() {
				if p, ok := where.Item(l, i); ok && (p.Offset < span.Start.Offset || p.Offset >= span.End.Offset) {
					t.Fatalf("item %d of %s is at %v, outside %v", i, l, p, span)
				}
				walk(item)
			}
		}
		walk(v)
	})
}

func TestErrorsStayShortHoweverLongTheInput(t *testing.T) {
	long := strings.Repeat("é", 1<<20)
	for _, src := range []string{":" + long + ":x", long + ":x:y", "#:" + long + ":x", `#\` + long, "1/0" + "/" + long + ":", "(:" + long + " 1 :" + long + " 2)", "(" + long + " 1)", "(1 . " + long + ")"} {
		_, err := sexp.ReadPlist([]byte(src), sexp.Limits{})
		if err == nil || len(err.Error()) > 300 {
			t.Errorf("ReadPlist(%.10q…): an error of %d bytes", src, len(fmt.Sprint(err)))
		}
	}
}

func TestPrintNeverWritesWhatCannotBeRead(t *testing.T) {
	tests := []struct {
		v    sexp.Value
		want string
	}{
		{sexp.String("a\x00b\xffc"), "\"a\uFFFDb\uFFFDc\""},
		{sexp.String("\xff" + strings.Repeat("long ", 20)), "\"\uFFFD" + strings.Repeat("long ", 20) + "\""},
		{sexp.Keyword("A\x00"), ":|A\uFFFD|"},
		{sexp.Sym("A\xfe"), "|A\uFFFD|"},
		{sexp.Float(math.NaN()), ":NAN"},
		{sexp.Float(math.Inf(1)), ":INFINITY"},
		{sexp.Float(math.Inf(-1)), ":-INFINITY"},
		{sexp.Char(0), `#\Nul`},
		{sexp.Char(-1), "#\\\uFFFD"},
		{sexp.Sym("NIL"), "NIL"},
		{sexp.NewList(nil, sexp.Sym("A")), "(NIL A)"},
		{sexp.NewDotted([]sexp.Value{sexp.Sym("A")}, sexp.Sym("NIL")), "(A)"},
	}
	for _, tt := range tests {
		got := sexp.Print(tt.v)
		if got != tt.want {
			t.Errorf("Print = %q, want %q", got, tt.want)
		}
		back, err := sexp.Read([]byte(got), sexp.Limits{})
		if err != nil {
			t.Errorf("Read(%q): %v", got, err)
			continue
		}
		if sexp.Sum(back) != sexp.Sum(tt.v) {
			t.Errorf("%s: digest changed by printing and reading", got)
		}
	}
}

func TestValuesDeeperThanAnyReaderLimitPrintCompareAndDigest(t *testing.T) {
	const deep = 200_000
	defer debug.SetMaxStack(debug.SetMaxStack(4 << 20)) // recursion this deep would not fit
	build := func() sexp.Value {
		var v sexp.Value = sexp.Nil
		for range deep {
			v = sexp.NewList(v)
		}
		return v
	}
	a, b := build(), build()
	if got := len(sexp.AppendValue(nil, a)); got != 2*deep+len("NIL") {
		t.Errorf("printed %d bytes", got)
	}
	if !sexp.Equal(a, b) || sexp.Sum(a) != sexp.Sum(b) {
		t.Error("equal deep values differ")
	}
}

func TestEqualAndSumTellDifferentValuesApart(t *testing.T) {
	s := func(src string) sexp.Value {
		v, err := sexp.Read([]byte(src), sexp.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	srcs := []string{
		"nil", "t", "|t|", ":t", `"t"`, `#\t`, "#:t", "cl:t", "1", "1.0", "-1", "0.0", "-0.0", "1/2", "1/3", "#()", "#(1)", "(1)", "(1 2)", "((1) 2)", "(1 (2))",
		"(1 . 2)", "(1 2 . 3)", "(1 2 3)", `("ab" "c")`, `("a" "bc")`, `("abc")`, "99999999999999999999", "99999999999999999998", "#(nil)", "(nil)", "((nil))",
	}
	for i, a := range srcs {
		for j, b := range srcs {
			if eq := sexp.Equal(s(a), s(b)); eq != (i == j) {
				t.Errorf("Equal(%s, %s) = %v", a, b, eq)
			}
			if eq := sexp.Sum(s(a)) == sexp.Sum(s(b)); eq != (i == j) {
				t.Errorf("digests of %s and %s equal: %v", a, b, eq)
			}
		}
	}
}

func TestSumFollowsItsDocumentedEncoding(t *testing.T) {
	// printf 'l\0\0\0\0\0\0\0\2k\0\0\0\0\0\0\0\1As\0\0\0\0\0\0\0\2\303\251' | sha256sum
	const want = "a4bbe35223984d2497051e26846a858e660484db4d95c7d0af798c38fc00b3d9"
	v := sexp.NewList(sexp.Keyword("A"), sexp.String("é"))
	if got := sexp.Sum(v).String(); got != want {
		t.Errorf("Sum(%s) = %s, want %s", v, got, want)
	}
	d, err := sexp.ParseDigest(want)
	if err != nil || d != sexp.Sum(v) {
		t.Errorf("ParseDigest = %v, %v", d, err)
	}
	for _, bad := range []string{"", want[1:], "g" + want[1:], want + "00"} {
		if _, err := sexp.ParseDigest(bad); err == nil {
			t.Errorf("ParseDigest(%q) has no error", bad)
		}
	}
}
