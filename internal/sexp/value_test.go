package sexp_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"passepartout/internal/sexp"
)

// encode is the encoding that [sexp.Sum] documents, written once more from its
// description.
func encode(v sexp.Value) string {
	n8 := func(n int) string { return string(binary.BigEndian.AppendUint64(nil, uint64(n))) }
	text := func(s string) string { return n8(len(s)) + s }
	all := func(items []sexp.Value) string {
		out := n8(len(items))
		for _, it := range items {
			out += encode(it)
		}
		return out
	}
	if sexp.IsNil(v) {
		return "N"
	}
	switch v := v.(type) {
	case sexp.Symbol:
		return "y" + text(v.Pkg) + text(v.Name)
	case sexp.Keyword:
		return "k" + text(string(v))
	case sexp.String:
		return "s" + text(string(v))
	case sexp.Int:
		return "i" + text(v.Big().String())
	case sexp.Float:
		return "f" + n8(int(math.Float64bits(float64(v))))
	case sexp.Ratio:
		return "r" + text(v.Rat().String())
	case sexp.Char:
		return "c" + string(binary.BigEndian.AppendUint32(nil, uint32(v)))
	case sexp.List:
		if v.Tail() != nil {
			return "d" + all(v.Items()) + encode(v.Tail())
		}
		return "l" + all(v.Items())
	case sexp.Vector:
		return "v" + all(v.Items())
	}
	panic(fmt.Sprintf("a value of type %T", v))
}

func TestSumIsTheHashOfTheDocumentedEncoding(t *testing.T) {
	check := func(v sexp.Value) error {
		if want := sexp.Digest(sha256.Sum256([]byte(encode(v)))); sexp.Sum(v) != want {
			return fmt.Errorf("Sum(%.60s) = %s, want %s", v, sexp.Sum(v), want)
		}
		return nil
	}
	rapid.Check(t, func(t *rapid.T) {
		if err := check(anyValue().Draw(t, "value")); err != nil {
			t.Fatal(err)
		}
	})
	long := sexp.String(strings.Repeat("long ", 10_000))
	for _, v := range []sexp.Value{long, sexp.NewList(long, long, sexp.NewInt(1), long), sexp.NewVector(sexp.Strings(strings.Fields(string(long))))} {
		if err := check(v); err != nil {
			t.Error(err)
		}
	}
	if (sexp.Digest{}).IsZero() != true || sexp.Sum(sexp.Nil).IsZero() {
		t.Error("IsZero tells computed digests from others wrongly")
	}
}

func TestNumbersKeepTheirValueAndNobodyElsesMemory(t *testing.T) {
	for _, s := range []string{"0", "-1", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "340282366920938463463374607431768211456"} {
		n, ok := new(big.Int).SetString(s, 10)
		if !ok {
			t.Fatal(s)
		}
		v := sexp.NewBigInt(n)
		got, fits := v.Int64()
		if fits != n.IsInt64() || fits && got != n.Int64() {
			t.Errorf("Int64 of %s = %d, %v", s, got, fits)
		}
		v.Big().SetInt64(7)
		n.SetInt64(7)
		if v.String() != s {
			t.Errorf("%s became %s when a copy of it was changed", s, v)
		}
	}
	v, err := sexp.NewRatio(big.NewInt(-6), big.NewInt(4))
	if err != nil {
		t.Fatal(err)
	}
	r := v.(sexp.Ratio)
	r.Rat().SetInt64(7)
	if r.String() != "-3/2" {
		t.Errorf("-6/4 is %s", r)
	}
	if _, err := sexp.NewRatio(big.NewInt(1), new(big.Int)); err == nil {
		t.Error("1/0 is a ratio")
	}
}

func TestListsAreWhatTheirConstructorsSay(t *testing.T) {
	a, b := sexp.Sym("A"), sexp.Sym("B")
	items := []sexp.Value{a, b}
	l, v := sexp.NewList(items...), sexp.NewVector(items...)
	d := sexp.NewDotted(items, sexp.NewInt(1))
	items[0] = sexp.Nil
	for _, tt := range []struct {
		v    sexp.Value
		want string
	}{
		{l, "(A B)"},
		{v, "#(A B)"},
		{d, "(A B . 1)"},
		{sexp.NewDotted([]sexp.Value{a}, l), "(A A B)"},
		{sexp.NewDotted([]sexp.Value{a}, d), "(A A B . 1)"},
		{sexp.NewDotted(nil, a), "NIL"},
		{sexp.NewDotted([]sexp.Value{a}, nil), "(A)"},
		{sexp.NewList(), "NIL"},
		{sexp.Strings([]string{"a", `b"`}), `("a" "b\"")`},
		{sexp.Bool(true), "T"},
		{sexp.Bool(false), "NIL"},
	} {
		if got := tt.v.String(); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
	if !sexp.IsNil(nil) || !sexp.IsNil(sexp.Sym("NIL")) || sexp.IsNil(sexp.Keyword("NIL")) || sexp.IsNil(sexp.Symbol{Pkg: "#", Name: "NIL"}) {
		t.Error("IsNil knows not what NIL is")
	}
}

func TestPTakesLiteralsAndRefusesMistakes(t *testing.T) {
	k := sexp.Keyword("K")
	for _, tt := range []struct {
		v    any
		want string
	}{
		{"text", `(:K "text")`}, {7, "(:K 7)"}, {int64(8), "(:K 8)"}, {true, "(:K T)"}, {[]string{"a"}, `(:K ("a"))`}, {sexp.P(k, 1), "(:K (:K 1))"}, {sexp.Char('x'), `(:K #\x)`},
	} {
		if got := sexp.P(k, tt.v).String(); got != tt.want {
			t.Errorf("P(:K, %v) = %s, want %s", tt.v, got, tt.want)
		}
	}
	for _, args := range [][]any{{k}, {k, 1.5}, {k, 1, k, 2}, {"K", 1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("P(%v) does not panic", args)
				}
			}()
			sexp.P(args...)
		}()
	}
	if _, err := sexp.NewPlist(sexp.Pair{Key: k, Value: sexp.Nil}, sexp.Pair{Key: k, Value: sexp.Nil}); err == nil {
		t.Error("NewPlist takes a key twice")
	}
	if pairs := sexp.P(k, 1).Pairs(); len(pairs) != 1 || pairs[0].Key != k {
		t.Errorf("Pairs = %v", pairs)
	}
}
