package lisp

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestMeteredMatchesAreThoseOfTheEngine compares the search that pays while it reads
// with the one of the standard library.
func TestMeteredMatchesAreThoseOfTheEngine(t *testing.T) {
	img, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	part := rapid.SampledFrom([]string{"a", "b", "é", ".", "^", "$", `\b`, `\B`, `\A`, `\z`, "(?m:^)", "(?m:$)", "[^a]", `\w`, "(?s:.)", "(a)", "(?i:B)", `\Qa.`})
	suffix := rapid.SampledFrom([]string{"", "", "*", "+", "?", "*?", "+?", "{0,2}"})
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		for range rapid.IntRange(1, 4).Draw(t, "parts") {
			p := part.Draw(t, "part")
			switch rapid.IntRange(0, 3).Draw(t, "join") {
			case 0:
				b.WriteString("(" + p + ")" + suffix.Draw(t, "suffix"))
			case 1:
				b.WriteString("|" + p)
			default:
				b.WriteString(p)
			}
		}
		pattern := b.String()
		want, err := regexp.Compile(pattern)
		if err != nil {
			t.Skip("no pattern")
		}
		text := rapid.StringMatching(`[abé \n]{0,12}`).Draw(t, "text")
		th := img.Thread(Budget{Steps: 1e6, Cells: 1e6, Depth: 100})
		var got [][]int
		_, err = th.guard(func() Value {
			e, err := newEngine(pattern)
			if err != nil {
				t.Fatal(err)
			}
			got = th.meteredMatches(&regex{src: pattern, size: 1, cost: 1}, &e, text)
			return Nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if all := want.FindAllStringSubmatchIndex(text, -1); !slices.EqualFunc(got, all, slices.Equal[[]int]) {
			t.Fatalf("%q on %q: found %v, want %v", pattern, text, got, all)
		}
	})
}

// TestWhichPatternsLookFar tells those that may read on for long from those that
// stop where their match does.
func TestWhichPatternsLookFar(t *testing.T) {
	for pattern, want := range map[string]bool{
		`foo`: false, `\w+`: false, `[^,]*`: false, `(a|b)+`: false, `(\w+\s*)+`: false, `a{3,30}`: false, `colou?r`: false,
		`a(.*b)?`: true, `"[^"]*"`: true, `.*b|a`: true, `a(.{0,99}b)?`: true, `\w+\b`: true,
	} {
		parsed, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		prog, err := syntax.Compile(parsed.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		if got := looksFar(prog); got != want {
			t.Errorf("%s: looks far is %v, want %v", pattern, got, want)
		}
	}
}

// TestWidenKnowsWhereAClassEnds checks \w in and outside of classes.
func TestWidenKnowsWhereAClassEnds(t *testing.T) {
	for pattern, want := range map[string]string{
		`\w`: `[` + wordRunes + `]`, `[\w]`: `[` + wordRunes + `]`, `[]\w]`: `[]` + wordRunes + `]`, `[^]\w]\w`: `[^]` + wordRunes + `][` + wordRunes + `]`,
		`[[:digit:]\w]`: `[[:digit:]` + wordRunes + `]`, `\[\w`: `\[[` + wordRunes + `]`,
	} {
		if got := widen(pattern); got != want {
			t.Errorf("%s: got %s, want %s", pattern, got, want)
		}
	}
}
