package sexp_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"passepartout/internal/sexp"
)

func TestReadPlistRefusesWhatIsNotOne(t *testing.T) {
	long := "(" + strings.Repeat(":K 1 ", 20) + ")"
	tests := []struct{ src, want string }{
		{"(:a)", "1 items: want key and value pairs"},
		{"(:a 1 . 2)", "ends in 2"},
		{"(a 1)", "A in place of a key"},
		{`("a" 1)`, `"a" in place of a key`},
		{"(:a 1 :A 2)", "key :A twice"},
		{long, "key :K twice"},
		{":a", ":A: want a property list"},
		{`"` + strings.Repeat("é", 100) + `"`, "…: want a property list"},
	}
	for _, tt := range tests {
		_, err := sexp.ReadPlist([]byte(tt.src), sexp.Limits{})
		if err == nil || !strings.Contains(err.Error(), tt.want) || len(err.Error()) > 150 {
			t.Errorf("ReadPlist(%.30s): error %v, want %q", tt.src, err, tt.want)
		}
	}
	if p, err := sexp.ReadPlist([]byte("nil"), sexp.Limits{}); err != nil || p.Len() != 0 {
		t.Errorf("NIL is the empty property list: got %v, %v", p, err)
	}
}

func TestPlistChangesAreCopies(t *testing.T) {
	p := sexp.P(sexp.Keyword("A"), 1, sexp.Keyword("B"), "two")
	q := p.With("A", sexp.True).With("C", sexp.Nil)
	r := p.Without("A")
	for _, tt := range []struct {
		p    sexp.Plist
		want string
	}{
		{p, `(:A 1 :B "two")`},
		{q, `(:A T :B "two" :C NIL)`},
		{r, `(:B "two")`},
		{sexp.P(sexp.Keyword("Z"), 1, sexp.Keyword("A"), sexp.P(sexp.Keyword("K"), true)).Sorted(), "(:A (:K T) :Z 1)"},
	} {
		if got := tt.p.String(); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}

func TestPlistLooksUpByKeyAndType(t *testing.T) {
	p, err := sexp.ReadPlist([]byte(`(:text "hello" :word :yes :sub (:x "inner") :list (1 2 3))`), sexp.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if p.Text("TEXT") != "hello" || p.Text("WORD") != "" || p.Text("NONE") != "" {
		t.Error("Text returns something else than the strings")
	}
	if p.Word("WORD") != "YES" || p.Word("TEXT") != "" {
		t.Error("Word returns something else than the keywords")
	}
	if p.Sub("SUB").Text("X") != "inner" || p.Sub("LIST").Len() != 0 || p.Sub("TEXT").Len() != 0 {
		t.Error("Sub returns something else than the property lists")
	}
}

func TestSortedPlistsOfTheSamePairsShareADigest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfNDistinct(rapid.StringMatching(`[A-Z]{1,4}`), 0, 30, rapid.ID[string]).Draw(t, "keys")
		var pairs []sexp.Pair
		for i, k := range keys {
			pairs = append(pairs, sexp.Pair{Key: sexp.Keyword(k), Value: sexp.NewInt(int64(i))})
		}
		p, err := sexp.NewPlist(pairs...)
		if err != nil {
			t.Fatal(err)
		}
		q, err := sexp.NewPlist(rapid.Permutation(pairs).Draw(t, "shuffled")...)
		if err != nil {
			t.Fatal(err)
		}
		if sexp.Sum(p.Sorted().List()) != sexp.Sum(q.Sorted().List()) {
			t.Fatalf("%s and %s differ when sorted", p, q)
		}
	})
}

func TestNearestSuggestsOnlyWhatWasProbablyMeant(t *testing.T) {
	known := []string{"MEMEX_DIR", "MEMEX_USER", "read-file", "write-note", "list-directory", "SHELL"}
	tests := []struct{ word, want string }{
		{"MEMEX_DRI", "MEMEX_DIR"},
		{"memex-dir", "MEMEX_DIR"},
		{"MEMEXDIR", "MEMEX_DIR"},
		{"raed-file", "read-file"},
		{"readfile", "read-file"},
		{"shell", "SHELL"},
		{"SHEL", "SHELL"},
		{"delete-everything", ""},
		{"x", ""},
		{"", ""},
		{strings.Repeat("MEMEX_DIR", 100), ""},
	}
	for _, tt := range tests {
		got, ok := sexp.Nearest(tt.word, known)
		if got != tt.want || ok != (tt.want != "") {
			t.Errorf("Nearest(%.20q) = %q, %v; want %q", tt.word, got, ok, tt.want)
		}
	}
}
